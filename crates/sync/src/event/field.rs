//! The fields of an event, a task or a memo that a person can set, and the values that they take.
//!
//! Times are no fields: they are for [`edit`](super::edit).

use super::Error;
use super::form::utc;
use super::part::Part;
use larder_format::component::{Component, Kind};
use larder_format::write::escape_text;
use larder_time::civil::Instant;

/// How a property has its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Text,
    List,
    /// One of these, in capital letters.
    Words(&'static str),
    /// One that depends on what it is of.
    Status,
    /// Up to this.
    Number(u8),
    Uri,
    Color,
}

/// The fields that can be set, by their names in the table of fields, and their properties.
const FIELDS: &[(&str, &str, Value)] = &[
    ("summary", "SUMMARY", Value::Text),
    ("description", "DESCRIPTION", Value::Text),
    ("location", "LOCATION", Value::Text),
    ("comment", "COMMENT", Value::Text),
    ("contact", "CONTACT", Value::Text),
    ("category", "CATEGORIES", Value::List),
    ("resources", "RESOURCES", Value::List),
    ("status", "STATUS", Value::Status),
    ("class", "CLASS", Value::Words("PUBLIC, PRIVATE or CONFIDENTIAL")),
    ("transp", "TRANSP", Value::Words("OPAQUE or TRANSPARENT")),
    ("priority", "PRIORITY", Value::Number(9)),
    ("percent", "PERCENT-COMPLETE", Value::Number(100)),
    ("url", "URL", Value::Uri),
    ("color", "COLOR", Value::Color),
];

/// Can it be set?
pub(super) fn known(name: &str) -> Result<(), Error> {
    property(name).map(drop)
}

fn property(name: &str) -> Result<(&'static str, Value), Error> {
    let field = larder_format::field::calendar_field(name).map(|field| field.name);
    let known = FIELDS.iter().find(|(known, ..)| Some(*known) == field);
    let (_, property, value) = known.ok_or_else(|| Error::NoProperty(name.to_string()))?;
    Ok((property, *value))
}

/// Does a field say the same of both? What says that a task is done is set together, and therefore is the same together.
pub(super) fn is_same(name: &str, one: &Part, other: &Part) -> bool {
    let Ok((property, value)) = property(name) else { return false };
    let says = |part: &Part, name: &str| match value {
        Value::List => part.texts(name).join(",").split(',').map(|one| one.trim().into()).collect(),
        _ => part.texts(name),
    };
    let is_task = *Component::parse(&one.bytes).kind() == Kind::Task;
    let names = match property {
        "STATUS" | "PERCENT-COMPLETE" if is_task => DONE,
        _ => &[property],
    };
    names.iter().all(|name| says(one, name) == says(other, name))
}

/// What says together whether a task is done.
const DONE: &[&str] = &["STATUS", "PERCENT-COMPLETE", "COMPLETED"];

/// Sets these fields; one that is to be nothing is taken out.
pub(super) fn set(part: &mut Part, fields: &[(String, String)], now: Instant) -> Result<(), Error> {
    let kind = Component::parse(&part.bytes).kind().clone();
    let mut changed = Vec::new();
    for (name, text) in fields {
        let (property, value) = property(name)?;
        let written = value.written(&kind, text).ok_or_else(|| Error::NoValue {
            name: name.clone(),
            text: text.clone(),
            expected: value.expected(&kind),
        })?;
        match written.is_empty() {
            true => part.remove(property),
            false => part.set(property, &[], &written),
        }
        changed.push(property);
    }
    if kind == Kind::Task {
        done(part, &changed, now);
    }
    Ok(())
}

impl Value {
    /// How a value is written; `None`: it is none.
    fn written(self, kind: &Kind, text: &str) -> Option<String> {
        let plain = text.trim();
        if plain.is_empty() {
            return Some(String::new());
        }
        let word = plain.to_ascii_uppercase();
        match self {
            Value::Text => Some(escape_text(text)),
            Value::List => {
                let all = text.split(',').map(str::trim).filter(|one| !one.is_empty());
                Some(all.map(escape_text).collect::<Vec<_>>().join(","))
            }
            Value::Words(_) | Value::Status => {
                let expected = self.expected(kind);
                let mut words = expected.split([',', ' ']);
                words.any(|known| known == word).then_some(word)
            }
            Value::Number(most) => {
                plain.parse::<u8>().ok().filter(|n| *n <= most).map(|n| n.to_string())
            }
            Value::Uri => {
                let (scheme, rest) = plain.split_once(':')?;
                let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
                let whole = !rest.is_empty() && !plain.contains(|c: char| c.is_whitespace());
                (named && whole && !plain.contains(char::is_control)).then(|| plain.to_string())
            }
            Value::Color => {
                plain.chars().all(|c| c.is_ascii_alphabetic()).then(|| plain.to_ascii_lowercase())
            }
        }
    }

    /// What a value has to be.
    fn expected(self, kind: &Kind) -> String {
        match self {
            Value::Text | Value::List => "a text".into(),
            Value::Words(words) => words.into(),
            Value::Status => match kind {
                Kind::Task => "NEEDS-ACTION, IN-PROCESS, COMPLETED or CANCELLED".into(),
                Kind::Memo => "DRAFT, FINAL or CANCELLED".into(),
                _ => "TENTATIVE, CONFIRMED or CANCELLED".into(),
            },
            Value::Number(most) => format!("a number from 0 to {most}"),
            Value::Uri => "an address, as https://example.org/".into(),
            Value::Color => "the name of a colour, as turquoise".into(),
        }
    }
}

/// Keeps what says that a task is done together: STATUS, COMPLETED and PERCENT-COMPLETE. What was set counts, the status first.
fn done(part: &mut Part, changed: &[&str], now: Instant) {
    const PERCENT: &str = "PERCENT-COMPLETE";
    let [status, percent] =
        ["STATUS", PERCENT].map(|name| part.texts(name).into_iter().next().unwrap_or_default());
    let by_status = changed.contains(&"STATUS");
    if !by_status && !changed.contains(&PERCENT) {
        return;
    }
    let whole = percent.trim() == "100";
    let is_done = if by_status { status.eq_ignore_ascii_case("COMPLETED") } else { whole };
    if is_done {
        part.set("STATUS", &[], "COMPLETED");
        part.set(PERCENT, &[], "100");
        if part.texts("COMPLETED").is_empty() {
            part.set("COMPLETED", &[], &utc(now));
        }
        return;
    }
    part.remove("COMPLETED");
    match by_status {
        true if whole => part.remove(PERCENT),
        true => {}
        false => {
            let begun = !matches!(percent.trim(), "" | "0");
            part.set("STATUS", &[], if begun { "IN-PROCESS" } else { "NEEDS-ACTION" });
        }
    }
}
