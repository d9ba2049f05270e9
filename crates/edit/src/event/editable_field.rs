//! The fields of an event, a task or a memo that can be set, and their values.
//!
//! Separate from [`edit`](super::edit), which sets times: the times of a series depend on each
//! other.

use super::Error;
use super::date_time_form::format_utc;
use super::editable_component::EditableComponent;
use larder_format::component::{Component, ComponentKind};
use larder_format::writer::escape_text;
use larder_time::civil::Instant;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditableValueType {
    Text,
    TextList,
    /// One of these words.
    Keyword(&'static str),
    /// A word that depends on the kind of the component.
    Status,
    /// A number up to this one.
    Number(u8),
    Priority,
    Uri,
    Color,
}

/// The fields that can be set: name in the table of fields, property, type.
const EDITABLE_FIELDS: &[(&str, &str, EditableValueType)] = &[
    ("summary", "SUMMARY", EditableValueType::Text),
    ("description", "DESCRIPTION", EditableValueType::Text),
    ("location", "LOCATION", EditableValueType::Text),
    ("comment", "COMMENT", EditableValueType::Text),
    ("contact", "CONTACT", EditableValueType::Text),
    ("category", "CATEGORIES", EditableValueType::TextList),
    ("resources", "RESOURCES", EditableValueType::TextList),
    ("status", "STATUS", EditableValueType::Status),
    ("class", "CLASS", EditableValueType::Keyword("PUBLIC, PRIVATE or CONFIDENTIAL")),
    ("transp", "TRANSP", EditableValueType::Keyword("OPAQUE or TRANSPARENT")),
    ("priority", "PRIORITY", EditableValueType::Priority),
    ("percent", "PERCENT-COMPLETE", EditableValueType::Number(100)),
    ("url", "URL", EditableValueType::Uri),
    ("color", "COLOR", EditableValueType::Color),
];

/// The names of the fields that can be set.
pub fn editable_field_names() -> impl Iterator<Item = &'static str> {
    EDITABLE_FIELDS.iter().map(|(name, ..)| *name)
}

/// Parses a priority: a number from 0, which is none, to 9, or a word.
#[must_use]
pub fn parse_priority(text: &str) -> Option<u8> {
    match text.to_ascii_lowercase().as_str() {
        "high" => Some(1),
        "medium" => Some(5),
        "low" => Some(9),
        number => number.parse().ok().filter(|level| *level <= 9),
    }
}

/// Fails if a field cannot be set.
pub(super) fn check_editable(name: &str) -> Result<(), Error> {
    find_property(name).map(drop)
}

fn find_property(name: &str) -> Result<(&'static str, EditableValueType), Error> {
    let field = larder_format::field::find_calendar_field(name).map(|field| field.name);
    let known = EDITABLE_FIELDS.iter().find(|(known, ..)| Some(*known) == field);
    let (_, property, value) = known.ok_or_else(|| Error::UnknownField(name.to_string()))?;
    Ok((property, *value))
}

/// Returns whether two components have the same value of a field. The properties that mark a task
/// as completed are set together, and are compared together.
pub(super) fn is_field_equal(
    name: &str,
    one: &EditableComponent,
    other: &EditableComponent,
) -> bool {
    let Ok((property, value)) = find_property(name) else { return false };
    let values = |part: &EditableComponent, name: &str| match value {
        EditableValueType::TextList => {
            part.property_texts(name).join(",").split(',').map(|one| one.trim().into()).collect()
        }
        _ => part.property_texts(name),
    };
    let is_task = *Component::parse(&one.bytes).kind() == ComponentKind::Task;
    let names = match property {
        "STATUS" | "PERCENT-COMPLETE" if is_task => COMPLETION_PROPERTIES,
        _ => &[property],
    };
    names.iter().all(|name| values(one, name) == values(other, name))
}

/// The properties that mark a task as completed.
const COMPLETION_PROPERTIES: &[&str] = &["STATUS", "PERCENT-COMPLETE", "COMPLETED"];

/// Sets fields. An empty value removes the property.
pub(super) fn set_fields(
    part: &mut EditableComponent,
    fields: &[(String, String)],
    now: Instant,
) -> Result<(), Error> {
    let kind = Component::parse(&part.bytes).kind().clone();
    let mut changed = Vec::new();
    for (name, text) in fields {
        let (property, value) = find_property(name)?;
        let written = value.format_value(&kind, text).ok_or_else(|| Error::InvalidValue {
            name: name.clone(),
            text: text.clone(),
            expected: value.describe_expected(&kind),
        })?;
        match written.is_empty() {
            true => part.remove_property(property),
            false => part.set_property(property, &[], &written),
        }
        changed.push(property);
    }
    if kind == ComponentKind::Task {
        update_completion(part, &changed, now);
    }
    Ok(())
}

/// Splits a list at its commas; `\,` is a comma in a member.
fn split_members(text: &str) -> Vec<String> {
    let mut members = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            (',', _) => members.push(String::new()),
            ('\\', Some(next @ (',' | '\\'))) => {
                let next = *next;
                chars.next();
                members.last_mut().into_iter().for_each(|last| last.push(next));
            }
            _ => members.last_mut().into_iter().for_each(|last| last.push(c)),
        }
    }
    members
}

/// Returns the text of a list with these members, for a field that takes several.
#[must_use]
pub fn join_members(members: &[String]) -> String {
    let escape = |one: &String| one.replace('\\', "\\\\").replace(',', "\\,");
    members.iter().map(escape).collect::<Vec<_>>().join(",")
}

impl EditableValueType {
    /// Formats a value. Returns `None` if it is invalid.
    fn format_value(self, kind: &ComponentKind, text: &str) -> Option<String> {
        let plain = text.trim();
        if plain.is_empty() {
            return Some(String::new());
        }
        let word = plain.to_ascii_uppercase();
        match self {
            EditableValueType::Text => Some(escape_text(text)),
            EditableValueType::TextList => {
                let all = split_members(text);
                let all = all.iter().map(|one| one.trim()).filter(|one| !one.is_empty());
                Some(all.map(escape_text).collect::<Vec<_>>().join(","))
            }
            EditableValueType::Keyword(_) | EditableValueType::Status => {
                let expected = self.describe_expected(kind);
                let mut words = expected.split([',', ' ']);
                words.any(|known| known == word).then_some(word)
            }
            EditableValueType::Number(most) => {
                plain.parse::<u8>().ok().filter(|n| *n <= most).map(|n| n.to_string())
            }
            EditableValueType::Priority => parse_priority(plain).map(|level| level.to_string()),
            EditableValueType::Uri => {
                let (scheme, rest) = plain.split_once(':')?;
                let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
                let is_complete = !rest.is_empty() && !plain.contains(|c: char| c.is_whitespace());
                (named && is_complete && !plain.contains(char::is_control))
                    .then(|| plain.to_string())
            }
            EditableValueType::Color => {
                plain.chars().all(|c| c.is_ascii_alphabetic()).then(|| plain.to_ascii_lowercase())
            }
        }
    }

    /// Describes valid values, for error messages.
    fn describe_expected(self, kind: &ComponentKind) -> String {
        match self {
            EditableValueType::Text | EditableValueType::TextList => "a text".into(),
            EditableValueType::Keyword(words) => words.into(),
            EditableValueType::Status => match kind {
                ComponentKind::Task => "NEEDS-ACTION, IN-PROCESS, COMPLETED or CANCELLED".into(),
                ComponentKind::Memo => "DRAFT, FINAL or CANCELLED".into(),
                _ => "TENTATIVE, CONFIRMED or CANCELLED".into(),
            },
            EditableValueType::Number(most) => format!("a number from 0 to {most}"),
            EditableValueType::Priority => "1 (highest) to 9, or high, medium or low".into(),
            EditableValueType::Uri => "an address such as https://example.org/".into(),
            EditableValueType::Color => "the name of a colour such as turquoise".into(),
        }
    }
}

/// Keeps STATUS, COMPLETED and PERCENT-COMPLETE of a task consistent. STATUS decides if it was set,
/// else PERCENT-COMPLETE.
fn update_completion(part: &mut EditableComponent, changed: &[&str], now: Instant) {
    const PERCENT_COMPLETE: &str = "PERCENT-COMPLETE";
    let [status, percent] = ["STATUS", PERCENT_COMPLETE]
        .map(|name| part.property_texts(name).into_iter().next().unwrap_or_default());
    let by_status = changed.contains(&"STATUS");
    if !by_status && !changed.contains(&PERCENT_COMPLETE) {
        return;
    }
    let is_full = percent.trim() == "100";
    let is_done = if by_status { status.eq_ignore_ascii_case("COMPLETED") } else { is_full };
    if is_done {
        part.set_property("STATUS", &[], "COMPLETED");
        part.set_property(PERCENT_COMPLETE, &[], "100");
        if part.property_texts("COMPLETED").is_empty() {
            part.set_property("COMPLETED", &[], &format_utc(now));
        }
        return;
    }
    part.remove_property("COMPLETED");
    match by_status {
        true if is_full => part.remove_property(PERCENT_COMPLETE),
        true => {}
        false => {
            let begun = !matches!(percent.trim(), "" | "0");
            part.set_property("STATUS", &[], if begun { "IN-PROCESS" } else { "NEEDS-ACTION" });
        }
    }
}
