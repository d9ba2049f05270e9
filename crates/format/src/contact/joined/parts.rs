//! A card taken apart for joining: where its lines are, and what each of them says, in one form.
//!
//! What two writings of one value have in common is decided here and nowhere else. It is apart from the joining
//! since it looks at one card only.

use super::super::written::{Binary, PLACES, Style};
use super::super::{Contact, Defect, Problem};
use crate::decode::{self, split_raw, unescape_text};
use crate::edit::line_end;
use crate::line::lines;
use crate::property::Property;
use crate::value::{clean, date, without_scheme};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What a property is renamed to where its own name is taken.
pub(super) const KEPT: &str = "X-LARDER-";
/// They tell of the card.
const OF_THE_CARD: &[&str] = &["VERSION", "PRODID", "REV"];

/// What a property says, by its meaning: the name it had first, and the value in one form.
pub(super) type Meaning = (String, Vec<u8>);

/// A card with the places of its lines.
pub(super) struct Parts<'t> {
    pub(super) card: Contact<'t>,
    /// Where each property is, with its line end.
    pub(super) spans: Vec<Range<usize>>,
    /// Where the line END:VCARD begins.
    pub(super) end: Option<usize>,
    pub(super) line_end: &'static str,
    /// Lines that are no properties: what they are kept as, and their text.
    pub(super) loose: Vec<(&'static str, String)>,
    pub(super) meanings: Vec<Meaning>,
    /// For each name, in capitals, the first property of it, and how many there are.
    names: HashMap<String, (usize, usize)>,
    /// By the name of each group that has several properties, in small letters: what they say.
    groups: HashMap<String, HashSet<Meaning>>,
}

impl<'t> Parts<'t> {
    pub(super) fn of(text: &'t [u8]) -> Parts<'t> {
        let card = Contact::read(text);
        let meanings: Vec<Meaning> = card.properties().iter().map(meaning).collect();
        let mut parts = Parts {
            spans: Vec::new(),
            end: None,
            line_end: line_end(text),
            loose: Vec::new(),
            meanings,
            names: HashMap::new(),
            groups: HashMap::new(),
            card,
        };
        for (at, property) in parts.card.properties().iter().enumerate() {
            parts.names.entry(property.name().to_ascii_uppercase()).or_insert((at, 0)).1 += 1;
        }
        parts.find_lines(text);
        parts.find_groups();
        parts
    }

    fn find_lines(&mut self, text: &[u8]) {
        let mut properties = self.card.properties().iter().peekable();
        let mut lines = lines(text);
        let (mut begun, mut run, mut last) = (false, None, None);
        while let Some(line) = lines.next() {
            let start = lines.offset() - line.raw.len();
            let property = properties.next_if(|property| property.number() == line.number);
            if let Some(property) = property {
                self.spans.push(start..lines.offset());
                // A card within the card (vCard 2.1) is told from other lines by what is before it.
                run = opens_card(property).then(|| {
                    ("AGENT", String::from_utf8_lossy(property.value()).trim().to_string())
                });
                (begun, last) = (true, None);
                self.loose.extend(run.clone());
                continue;
            }
            let said = decode::charset(&line.text, None).replace('\0', "");
            last = Some((start, said.trim().eq_ignore_ascii_case("END:VCARD")));
            if !begun {
                begun = true;
                continue;
            }
            if run.is_none() {
                run = Some(("X-LARDER-LINES", String::new()));
                self.loose.extend(run.clone());
            }
            if let Some((_, text)) = self.loose.last_mut() {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(&said);
            }
        }
        if let Some((start, true)) = last {
            self.end = Some(start);
            // The last line is the card's own.
            if let Some((_, text)) = self.loose.last_mut() {
                text.truncate(text.rfind('\n').unwrap_or(0));
            }
        }
        self.loose.retain(|(_, text)| !text.trim().is_empty());
    }

    fn find_groups(&mut self) {
        let mut groups: HashMap<String, HashSet<Meaning>> = HashMap::new();
        for (property, meaning) in self.card.properties().iter().zip(&self.meanings) {
            let Some(group) = property.group().filter(|_| says_something(property, meaning)) else {
                continue;
            };
            groups.entry(group.to_ascii_lowercase()).or_default().insert(meaning.clone());
        }
        groups.retain(|_, said| said.len() > 1);
        self.groups = groups;
    }

    /// The group of a property, where it has others in it.
    pub(super) fn group(&self, property: &Property<'_>) -> Option<(String, &HashSet<Meaning>)> {
        let name = property.group()?.to_ascii_lowercase();
        let said = self.groups.get(&name)?;
        Some((name, said))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains_key(&name.to_ascii_uppercase())
    }

    /// The only property of this name.
    pub(super) fn only(&self, name: &str) -> Option<usize> {
        let (at, number) = self.names.get(name)?;
        (*number == 1).then_some(*at)
    }

    /// Is it a card whose end is its own?
    pub(super) fn is_whole(&self) -> bool {
        let no_end = |problem: &Problem| problem.what == Defect::NoEnd;
        self.card.refusal().is_none()
            && self.spans.len() == self.card.properties().len()
            && !self.card.problems().iter().any(no_end)
    }

    /// The lines that are no properties, without the empty ones around them.
    pub(super) fn loose_text(&self) -> impl Iterator<Item = (&str, &str)> {
        self.loose.iter().map(|(name, text)| (*name, text.trim()))
    }

    pub(super) fn style(&self) -> Style {
        Style { version: self.card.version(), line_end: self.line_end }
    }
}

/// Does a card within the card follow?
fn opens_card(property: &Property<'_>) -> bool {
    let value = property.value().trim_ascii();
    property.is("AGENT") && (value.is_empty() || value.eq_ignore_ascii_case(b"BEGIN:VCARD"))
}

/// The name without what it was renamed with.
pub(super) fn first_name(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix(KEPT).map(str::to_string).unwrap_or(name)
}

fn meaning(property: &Property<'_>) -> Meaning {
    let name = first_name(property.name());
    if let Some(binary) = Binary::of(property) {
        let mut value = vec![0];
        value.extend(binary.bytes);
        return (name, value);
    }
    let text = property.text();
    let whole = || clean(&unescape_text(&text)).unwrap_or_default();
    let value = match name.as_str() {
        "N" | "ADR" | "ORG" | "GENDER" => {
            let part = |part: &str| clean(&unescape_text(part)).unwrap_or_default();
            let parts: Vec<String> = split_raw(&text, ';').map(part).collect();
            parts.join("\u{1f}").trim_end_matches('\u{1f}').to_string()
        }
        "TEL" => {
            let whole = whole();
            let number = without_scheme(&whole, "tel:");
            number.chars().filter(|c| !c.is_whitespace() && *c != '-').collect()
        }
        "EMAIL" => without_scheme(&whole(), "mailto:").to_ascii_lowercase(),
        "GEO" => without_scheme(&whole(), "geo:").replace(';', ","),
        "BDAY" | "ANNIVERSARY" | "DEATHDATE" => {
            let whole = whole();
            let with_time = whole.contains(['T', 't', ' ']);
            if with_time { whole } else { date(&whole).unwrap_or(whole) }
        }
        _ => whole(),
    };
    (name, value.into_bytes())
}

/// Is it more than what stands between values?
pub(super) fn is_value((_, value): &Meaning) -> bool {
    value.iter().any(|byte| !b" ;,".contains(byte))
}

/// Has it a value, or parameters that are more than words about one?
pub(super) fn says_something(property: &Property<'_>, meaning: &Meaning) -> bool {
    let about = ["TYPE", "VALUE", "ENCODING", "CHARSET"];
    let is_about =
        |name: &str| about.iter().chain(PLACES).any(|known| name.eq_ignore_ascii_case(known));
    !OF_THE_CARD.contains(&meaning.0.as_str())
        && !opens_card(property)
        && (is_value(meaning) || property.params().any(|param| !is_about(&param.name)))
}
