//! A card taken apart for joining: where its lines are, and what each of them says, in one form.
//!
//! What two writings of one value have in common is decided here and nowhere else. It is apart from
//! the joining since it looks at one card only.

use super::super::version_conversion::{BinaryValue, POSITION_PARAMS, VcardStyle};
use super::super::{Contact, Problem, ProblemKind};
use crate::content_line::content_lines;
use crate::decoding::{self, split_raw, unescape_text};
use crate::edit::detect_line_end;
use crate::field_values::{clean_text, normalise_date, strip_scheme};
use crate::property::Property;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What a property is renamed to where its own name is taken.
pub(super) const LARDER_PREFIX: &str = "X-LARDER-";
/// They tell of the card.
const CARD_METADATA_PROPERTIES: &[&str] = &["VERSION", "PRODID", "REV"];

/// What a property says, by its meaning: the name it had first, and the value in one form.
pub(super) type CanonicalProperty = (String, Vec<u8>);

/// A card with the places of its lines.
pub(super) struct CardLayout<'t> {
    pub(super) card: Contact<'t>,
    /// Where each property is, with its line end.
    pub(super) spans: Vec<Range<usize>>,
    /// Where the line END:VCARD begins.
    pub(super) end: Option<usize>,
    pub(super) line_end: &'static str,
    /// Lines that are no properties: what they are kept as, and their text.
    pub(super) unparsed_lines: Vec<(&'static str, String)>,
    pub(super) canonical: Vec<CanonicalProperty>,
    /// For each name, in capitals, the first property of it, and how many there are.
    names: HashMap<String, (usize, usize)>,
    /// By the name of each group that has several properties, in small letters: what they say.
    groups: HashMap<String, HashSet<CanonicalProperty>>,
}

impl<'t> CardLayout<'t> {
    pub(super) fn parse(text: &'t [u8]) -> CardLayout<'t> {
        let card = Contact::parse_text(text);
        let meanings: Vec<CanonicalProperty> = card.properties().iter().map(canonicalise).collect();
        let mut parts = CardLayout {
            spans: Vec::new(),
            end: None,
            line_end: detect_line_end(text),
            unparsed_lines: Vec::new(),
            canonical: meanings,
            names: HashMap::new(),
            groups: HashMap::new(),
            card,
        };
        for (at, property) in parts.card.properties().iter().enumerate() {
            parts.names.entry(property.name().to_ascii_uppercase()).or_insert((at, 0)).1 += 1;
        }
        parts.locate_lines(text);
        parts.collect_groups();
        parts
    }

    fn locate_lines(&mut self, text: &[u8]) {
        let mut properties = self.card.properties().iter().peekable();
        let mut lines = content_lines(text);
        let (mut begun, mut run, mut last) = (false, None, None);
        while let Some(line) = lines.next() {
            let start = lines.offset() - line.raw.len();
            let property = properties.next_if(|property| property.line_number() == line.number);
            if let Some(property) = property {
                self.spans.push(start..lines.offset());
                // A card within the card (vCard 2.1) is told from other lines by what is before it.
                run = is_nested_card_start(property).then(|| {
                    ("AGENT", String::from_utf8_lossy(property.value()).trim().to_string())
                });
                (begun, last) = (true, None);
                self.unparsed_lines.extend(run.clone());
                continue;
            }
            let said = decoding::decode_charset(&line.text, None).replace('\0', "");
            last = Some((start, said.trim().eq_ignore_ascii_case("END:VCARD")));
            if !begun {
                begun = true;
                continue;
            }
            if run.is_none() {
                run = Some(("X-LARDER-LINES", String::new()));
                self.unparsed_lines.extend(run.clone());
            }
            if let Some((_, text)) = self.unparsed_lines.last_mut() {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(&said);
            }
        }
        if let Some((start, true)) = last {
            self.end = Some(start);
            // The last line is the card's own.
            if let Some((_, text)) = self.unparsed_lines.last_mut() {
                text.truncate(text.rfind('\n').unwrap_or(0));
            }
        }
        self.unparsed_lines.retain(|(_, text)| !text.trim().is_empty());
    }

    fn collect_groups(&mut self) {
        let mut groups: HashMap<String, HashSet<CanonicalProperty>> = HashMap::new();
        for (property, meaning) in self.card.properties().iter().zip(&self.canonical) {
            let Some(group) = property.group().filter(|_| has_content(property, meaning)) else {
                continue;
            };
            groups.entry(group.to_ascii_lowercase()).or_default().insert(meaning.clone());
        }
        groups.retain(|_, said| said.len() > 1);
        self.groups = groups;
    }

    /// The group of a property, where it has others in it.
    pub(super) fn find_group(
        &self,
        property: &Property<'_>,
    ) -> Option<(String, &HashSet<CanonicalProperty>)> {
        let name = property.group()?.to_ascii_lowercase();
        let said = self.groups.get(&name)?;
        Some((name, said))
    }

    pub(super) fn has_property(&self, name: &str) -> bool {
        self.names.contains_key(&name.to_ascii_uppercase())
    }

    /// The only property of this name.
    pub(super) fn find_single(&self, name: &str) -> Option<usize> {
        let (at, number) = self.names.get(name)?;
        (*number == 1).then_some(*at)
    }

    /// Is it a card whose end is its own?
    pub(super) fn is_complete(&self) -> bool {
        let no_end = |problem: &Problem| problem.kind == ProblemKind::MissingCardEnd;
        self.card.fatal_problem().is_none()
            && self.spans.len() == self.card.properties().len()
            && !self.card.problems().iter().any(no_end)
    }

    /// The lines that are no properties, without the empty ones around them.
    pub(super) fn unparsed_text(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unparsed_lines.iter().map(|(name, text)| (*name, text.trim()))
    }

    pub(super) fn style(&self) -> VcardStyle {
        VcardStyle { version: self.card.version(), line_end: self.line_end }
    }
}

/// Does a card within the card follow?
fn is_nested_card_start(property: &Property<'_>) -> bool {
    let value = property.value().trim_ascii();
    property.has_name("AGENT") && (value.is_empty() || value.eq_ignore_ascii_case(b"BEGIN:VCARD"))
}

/// The name without what it was renamed with.
pub(super) fn original_name(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix(LARDER_PREFIX).map(str::to_string).unwrap_or(name)
}

fn canonicalise(property: &Property<'_>) -> CanonicalProperty {
    let name = original_name(property.name());
    if let Some(binary) = BinaryValue::from_property(property) {
        let mut value = vec![0];
        value.extend(binary.bytes);
        return (name, value);
    }
    let text = property.text();
    let whole = || clean_text(&unescape_text(&text)).unwrap_or_default();
    let value = match name.as_str() {
        "N" | "ADR" | "ORG" | "GENDER" => {
            let part = |part: &str| clean_text(&unescape_text(part)).unwrap_or_default();
            let parts: Vec<String> = split_raw(&text, ';').map(part).collect();
            parts.join("\u{1f}").trim_end_matches('\u{1f}').to_string()
        }
        "TEL" => {
            let whole = whole();
            let number = strip_scheme(&whole, "tel:");
            number.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
        }
        "EMAIL" => strip_scheme(&whole(), "mailto:").to_ascii_lowercase(),
        "GEO" => strip_scheme(&whole(), "geo:").replace(';', ","),
        "BDAY" | "ANNIVERSARY" | "DEATHDATE" => {
            let whole = whole();
            let with_time = whole.contains(['T', 't', ' ']);
            if with_time { whole } else { normalise_date(&whole).unwrap_or(whole) }
        }
        _ => whole(),
    };
    (name, value.into_bytes())
}

/// Is it more than what stands between values?
pub(super) fn has_value((_, value): &CanonicalProperty) -> bool {
    value.iter().any(|byte| !b" ;,".contains(byte))
}

/// Has it a value, or parameters that are more than words about one?
pub(super) fn has_content(property: &Property<'_>, meaning: &CanonicalProperty) -> bool {
    let about = ["TYPE", "VALUE", "ENCODING", "CHARSET"];
    let is_about = |name: &str| {
        about.iter().chain(POSITION_PARAMS).any(|known| name.eq_ignore_ascii_case(known))
    };
    !CARD_METADATA_PROPERTIES.contains(&meaning.0.as_str())
        && !is_nested_card_start(property)
        && (has_value(meaning) || property.params().any(|param| !is_about(&param.name)))
}
