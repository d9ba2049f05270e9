//! Edits of single values of a card that leave all other bytes unchanged.
//!
//! A property is replaced, added or removed in the version, the line ends and the encoding of its
//! card. The result is parsed again and compared before it is returned. Separate from
//! [`edit`](crate::edit), whose lines have the same form in every component: a card has versions,
//! and labels in groups.

use super::card_merge::CardLayout;
use super::version_conversion::{ParamValues, convert_params, format_params, format_text_line};
use super::{Contact, VcardVersion};
use crate::property::Property;
use crate::splice::{decode_text, splice};
use crate::value_labels::{label_types, normalise_label, property_label};
use crate::writer::{escape_text, normalise_line_ends};
use std::ops::Range;

/// Parameters that describe the former value and not the new one.
const VALUE_PARAMS: &[&str] = &[
    "ALTREP",
    "CALSCALE",
    "GEO",
    "LABEL",
    "MEDIATYPE",
    "SORT-AS",
    "TZ",
    "VALUE",
    OMITTED_YEAR_PARAM,
];
/// The parameter of Apple's programs for a year that is unknown.
const OMITTED_YEAR_PARAM: &str = "X-APPLE-OMIT-YEAR";
/// The year that Apple's programs write for an unknown one.
const OMITTED_YEAR: &str = "1604";
/// The property with a person's own label.
const LABEL_PROPERTY: &str = "X-ABLabel";
/// The beginning of the names of properties that describe another one of their group.
const GROUP_DETAIL_PREFIX: &str = "X-AB";

/// A property of a card that has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardProperty {
    /// Its position among the properties of the card.
    pub position: usize,
    /// The value: without transfer encoding, with escapes.
    pub text: String,
    /// The label, such as `mobile`.
    pub label: Option<String>,
}

/// A new value of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardValue<'v> {
    /// Plain text.
    Text(&'v str),
    /// The members of a list.
    List(&'v [String]),
    /// The components of a structured value, with the escapes of the card.
    Components(&'v [String]),
    /// A URI.
    Uri(&'v str),
    /// A date: `YYYY-MM-DD`, or `--MM-DD` without a year.
    Date(&'v str),
}

/// Returns the properties with one of these names that have a value, in order.
#[must_use]
pub fn card_properties(card: &[u8], names: &[&str]) -> Vec<CardProperty> {
    let card = Contact::parse(card);
    let has_name = |property: &Property<'_>| names.iter().any(|name| property.has_name(name));
    let properties = card.properties().iter().enumerate();
    let found =
        properties.filter(|(_, property)| has_name(property)).map(|(position, property)| {
            let label = property_label(&card.properties, property);
            CardProperty { position, text: property.text().trim().to_string(), label }
        });
    found.filter(|one| has_value(&one.text)).collect()
}

/// Returns whether the text has more than separators.
fn has_value(text: &str) -> bool {
    text.chars().any(|c| !" ;,".contains(c))
}

/// Escapes a component of a structured value as a card of this version has it.
#[must_use]
pub fn escape_component(text: &str, version: VcardVersion) -> String {
    if version != VcardVersion::V2_1 {
        return escape_text(text);
    }
    plain_text(text).replace('\\', "\\\\").replace(';', "\\;")
}

/// Replaces the value of a property; its name, group, label and other parameters stay. Returns
/// `None` if the card is damaged, so that the result would not be certain.
#[must_use]
pub fn replace_card_value(card: &[u8], position: usize, value: CardValue<'_>) -> Option<Vec<u8>> {
    let text = decode_text(card);
    let layout = CardLayout::parse(&text);
    let property = layout.card.properties().get(position)?;
    let version = layout.card.version();
    let mut params = convert_params(property, version, version);
    params.retain(|(name, _)| !VALUE_PARAMS.iter().any(|known| name.eq_ignore_ascii_case(known)));
    let start = property.group().map(|group| format!("{group}.")).unwrap_or_default();
    let line = format_line(&layout, &format!("{start}{}", property.name()), params, value);
    let span = layout.spans.get(position)?.clone();
    finish_edit(card, &layout, &[(span, line)], &[position], 1)
}

/// Adds a property before the end of the card. Returns `None` if the card is damaged.
#[must_use]
pub fn add_card_value(
    card: &[u8],
    name: &str,
    label: Option<&str>,
    value: CardValue<'_>,
) -> Option<Vec<u8>> {
    let text = decode_text(card);
    let layout = CardLayout::parse(&text);
    let end = layout.end?;
    let version = layout.card.version();
    let types = label.map(|label| label_types(name, label));
    let (lines, added) = match (types, label) {
        (Some(None), Some(label)) => {
            let group = unused_group(&layout.card);
            let lines = format_line(&layout, &format!("{group}.{name}"), Vec::new(), value);
            let label = CardValue::Text(label);
            let start = format!("{group}.{LABEL_PROPERTY}");
            (lines + &format_line(&layout, &start, Vec::new(), label), 2)
        }
        (types, _) => {
            let types = types.flatten().unwrap_or_default().into_iter().map(|word| match version {
                VcardVersion::V4_0 => word.to_string(),
                _ => word.to_ascii_uppercase(),
            });
            let types: Vec<String> = types.collect();
            let params = if types.is_empty() { vec![] } else { vec![("TYPE".into(), types)] };
            (format_line(&layout, name, params, value), 1)
        }
    };
    finish_edit(card, &layout, &[(end..end, lines)], &[], added)
}

/// Adds a property that a card has once: an empty one of this name gets the value, because a second
/// one would be invalid (RFC 6350, 6.2.2). Returns `None` if the card is damaged.
#[must_use]
pub fn add_only_card_value(card: &[u8], name: &str, value: CardValue<'_>) -> Option<Vec<u8>> {
    let parsed = Contact::parse(card);
    let mut properties = parsed.properties().iter();
    let is_empty =
        |property: &Property<'_>| property.has_name(name) && !has_value(property.text().trim());
    match properties.position(is_empty) {
        Some(position) => replace_card_value(card, position, value),
        None => add_card_value(card, name, None, value),
    }
}

/// Removes properties, each with the label in its group. Returns `None` if the card is damaged.
#[must_use]
pub fn remove_card_values(card: &[u8], positions: &[usize]) -> Option<Vec<u8>> {
    let text = decode_text(card);
    let layout = CardLayout::parse(&text);
    let properties = layout.card.properties();
    let mut removed: Vec<usize> = positions.to_vec();
    let is_detail = |property: &Property<'_>| {
        let start = property.name().get(..GROUP_DETAIL_PREFIX.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(GROUP_DETAIL_PREFIX))
    };
    for position in positions {
        let Some(group) = properties.get(*position)?.group() else { continue };
        let members = || {
            let all = properties.iter().enumerate();
            all.filter(|(_, other)| {
                other.group().is_some_and(|name| name.eq_ignore_ascii_case(group))
            })
        };
        let is_last = members().all(|(at, other)| is_detail(other) || positions.contains(&at));
        removed.extend(members().map(|(at, _)| at).filter(|_| is_last));
    }
    removed.sort_unstable();
    removed.dedup();
    let spans = removed.iter().map(|at| layout.spans.get(*at).cloned());
    let edits = spans.map(|span| Some((span?, String::new()))).collect::<Option<Vec<_>>>()?;
    finish_edit(card, &layout, &edits, &removed, 0)
}

/// Formats a property as a line of the card.
fn format_line(
    layout: &CardLayout<'_>,
    start: &str,
    mut params: ParamValues,
    value: CardValue<'_>,
) -> String {
    let style = layout.style();
    let is_old = style.version == VcardVersion::V2_1;
    let text = match value {
        CardValue::Text(text) if is_old => plain_text(text).replace('\\', "\\\\"),
        CardValue::Text(text) => escape_text(text),
        CardValue::List(members) => {
            let escape = |member: &String| match is_old {
                true => escape_component(member, style.version).replace(',', "\\,"),
                false => escape_text(member),
            };
            members.iter().map(escape).collect::<Vec<_>>().join(",")
        }
        CardValue::Components(components) if is_old => components.join(";"),
        // Components from quoted-printable may have line feeds.
        CardValue::Components(components) => {
            normalise_line_ends(&components.join(";")).replace('\n', "\\n")
        }
        CardValue::Uri(text) => text.to_string(),
        CardValue::Date(text) => match (text.strip_prefix("--"), style.version) {
            // The basic form (RFC 6350, 4.3.1).
            (Some(day), VcardVersion::V4_0) => format!("--{}", day.replace('-', "")),
            (None, VcardVersion::V4_0) => text.replace('-', ""),
            (Some(day), _) => {
                params.push((OMITTED_YEAR_PARAM.into(), vec![OMITTED_YEAR.into()]));
                format!("{OMITTED_YEAR}-{day}")
            }
            (None, _) => text.to_string(),
        },
    };
    format_text_line(start, &format_params(&params, style.version), &text, style)
}

/// Returns text without control characters except line feeds and tabs.
fn plain_text(text: &str) -> String {
    let text = normalise_line_ends(text);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Returns a group name that the card does not use.
fn unused_group(card: &Contact<'_>) -> String {
    let is_used = |name: &str| {
        let mut groups = card.properties().iter().filter_map(Property::group);
        groups.any(|group| group.eq_ignore_ascii_case(name))
    };
    let names = (1..).map(|number| format!("item{number}"));
    names.into_iter().find(|name| !is_used(name)).unwrap_or_default()
}

/// Makes the edits, and returns the result if all other properties and lines are as before, and as
/// many new properties were added.
fn finish_edit(
    card: &[u8],
    layout: &CardLayout<'_>,
    edits: &[(Range<usize>, String)],
    changed: &[usize],
    added: usize,
) -> Option<Vec<u8>> {
    if !layout.is_complete() {
        return None;
    }
    let result = splice(card, edits)?;
    let text = decode_text(&result);
    let after = CardLayout::parse(&text);
    let properties = layout.card.properties().iter().enumerate();
    let kept = properties.filter(|(at, _)| !changed.contains(at)).map(|(_, one)| one.raw());
    let mut found = after.card.properties().iter().map(Property::raw);
    let all_kept = kept.into_iter().all(|raw| found.any(|other| other == raw));
    let number = layout.card.properties().len() - changed.len() + added;
    let is_same = after.is_complete()
        && all_kept
        && unparsed_lines(&after).eq(unparsed_lines(layout))
        && after.card.properties().len() == number
        && after.card.version() == layout.card.version();
    is_same.then_some(result)
}

/// The lines that are not properties. Those around a removed property are one run afterwards.
fn unparsed_lines<'l>(layout: &'l CardLayout<'_>) -> impl Iterator<Item = &'l str> {
    layout.unparsed_text().flat_map(|(_, text)| text.lines()).map(str::trim)
}

/// Returns whether two texts are the same label of a property.
#[must_use]
pub fn is_same_label(one: &str, other: &str) -> bool {
    normalise_label(one).to_lowercase() == normalise_label(other).to_lowercase()
}
