//! A card parsed for a merge: the positions of its lines, and the canonical value of each.
//!
//! Canonical values decide whether two spellings denote the same value; this is the only place that
//! defines them. Separate from the merge because it concerns one card only.

use super::super::version_conversion::{BinaryValue, POSITION_PARAMS, VcardStyle};
use super::super::{Contact, Problem, ProblemKind};
use crate::content_line::content_lines;
use crate::decoding::{self, clean_text, split_raw, unescape_text};
use crate::field_values::{normalise_date, strip_scheme};
use crate::property::Property;
use crate::splice::detect_line_end;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The prefix of a property that is renamed because its name is taken.
pub(super) const LARDER_PREFIX: &str = "X-LARDER-";
/// Properties that describe the card, not the person.
const CARD_METADATA_PROPERTIES: &[&str] = &["VERSION", "PRODID", "REV"];

/// The meaning of a property: its original name, and its value in canonical form.
pub(super) type CanonicalProperty = (String, Vec<u8>);

/// A card with the positions of its lines.
pub(in super::super) struct CardLayout<'t> {
    pub(in super::super) card: Contact<'t>,
    /// The byte range of each property, including its line end.
    pub(in super::super) spans: Vec<Range<usize>>,
    /// The offset of END:VCARD.
    pub(in super::super) end: Option<usize>,
    pub(super) line_end: &'static str,
    /// Lines that are not properties: the name to keep them under, and their text.
    pub(super) unparsed_lines: Vec<(&'static str, String)>,
    pub(super) canonical: Vec<CanonicalProperty>,
    /// For each name in upper case: its first property, and their number.
    names: HashMap<String, (usize, usize)>,
    /// For each group with several properties, by lower-case name: their canonical values.
    groups: HashMap<String, HashSet<CanonicalProperty>>,
}

impl<'t> CardLayout<'t> {
    pub(in super::super) fn parse(text: &'t [u8]) -> CardLayout<'t> {
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
                // The line before distinguishes a nested card (vCard 2.1) from other lines.
                run = is_nested_card_start(property).then(|| {
                    ("AGENT", String::from_utf8_lossy(property.value()).trim().to_string())
                });
                (begun, last) = (true, None);
                self.unparsed_lines.extend(run.clone());
                continue;
            }
            let line_text = decoding::decode_charset(&line.text, None).replace('\0', "");
            last = Some((start, line_text.trim().eq_ignore_ascii_case("END:VCARD")));
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
                text.push_str(&line_text);
            }
        }
        if let Some((start, true)) = last {
            self.end = Some(start);
            // The last line is END of the card itself.
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

    /// Returns the group of a property, if it has other members.
    pub(super) fn find_group(
        &self,
        property: &Property<'_>,
    ) -> Option<(String, &HashSet<CanonicalProperty>)> {
        let name = property.group()?.to_ascii_lowercase();
        let label = self.groups.get(&name)?;
        Some((name, label))
    }

    pub(super) fn has_property(&self, name: &str) -> bool {
        self.names.contains_key(&name.to_ascii_uppercase())
    }

    /// Returns the property with this name if there is only one.
    pub(super) fn find_single(&self, name: &str) -> Option<usize> {
        let (at, number) = self.names.get(name)?;
        (*number == 1).then_some(*at)
    }

    /// Returns whether the card has an END of its own.
    pub(in super::super) fn is_complete(&self) -> bool {
        let no_end = |problem: &Problem| problem.kind == ProblemKind::MissingCardEnd;
        self.card.fatal_problem().is_none()
            && self.spans.len() == self.card.properties().len()
            && !self.card.problems().iter().any(no_end)
    }

    /// The lines that are not properties, without surrounding empty ones.
    pub(in super::super) fn unparsed_text(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unparsed_lines.iter().map(|(name, text)| (*name, text.trim()))
    }

    pub(in super::super) fn style(&self) -> VcardStyle {
        VcardStyle { version: self.card.version(), line_end: self.line_end }
    }
}

/// Returns whether a nested card follows this property.
fn is_nested_card_start(property: &Property<'_>) -> bool {
    let value = property.value().trim_ascii();
    property.has_name("AGENT") && (value.is_empty() || value.eq_ignore_ascii_case(b"BEGIN:VCARD"))
}

/// Returns the name without the prefix of renamed properties.
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

/// Returns whether the value has more than separators.
pub(super) fn has_value((_, value): &CanonicalProperty) -> bool {
    value.iter().any(|byte| !b" ;,".contains(byte))
}

/// Returns whether the property has a value, or parameters that are more than qualifiers of one.
pub(super) fn has_content(property: &Property<'_>, meaning: &CanonicalProperty) -> bool {
    let about = ["TYPE", "VALUE", "ENCODING", "CHARSET"];
    let is_about = |name: &str| {
        about.iter().chain(POSITION_PARAMS).any(|known| name.eq_ignore_ascii_case(known))
    };
    !CARD_METADATA_PROPERTIES.contains(&meaning.0.as_str())
        && !is_nested_card_start(property)
        && (has_value(meaning) || property.params().any(|param| !is_about(&param.name)))
}
