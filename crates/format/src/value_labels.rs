//! The label of a value: `mobile`, `work fax`, or a person's own, for example `Sommerhaus`.
//!
//! Address books have the labels in TYPE parameters and in Apple's X-ABLabel, a property in the
//! same group. Separate from `field_values`, which reads the values themselves.

use crate::decoding::{clean_text, unescape_text};
use crate::properties::PropertyList;
use crate::property::Property;

/// The property with the label of the other properties of its group.
const LABEL_PROPERTY: &str = "X-ABLABEL";
/// Apple's marks around a label that it translates.
const TRANSLATED_LABEL_MARKS: (&str, &str) = ("_$!<", ">!$_");
/// Types that say nothing about the use of a value.
const FORMAL_TYPES: &[&str] =
    &["voice", "internet", "pref", "x400", "msg", "postal", "parcel", "dom", "intl", "text"];
/// Types with a more usual name.
const TYPE_NAMES: &[(&str, &str)] =
    &[("cell", "mobile"), ("x-evolution-ttytdd", "tty"), ("adr", "address")];

/// The words of a label that are types of a property; a phone has further ones.
const PLACE_TYPES: &[&str] = &["home", "work"];
/// Further words of the label of a phone, with the type that cards have for each.
const PHONE_TYPES: &[(&str, &str)] = &[
    ("mobile", "cell"),
    ("fax", "fax"),
    ("pager", "pager"),
    ("car", "car"),
    ("isdn", "isdn"),
    ("modem", "modem"),
    ("video", "video"),
    ("textphone", "textphone"),
];

/// Returns the types in which a property of this name has a label, or `None` if the label is a
/// person's own.
pub(crate) fn label_types(name: &str, label: &str) -> Option<Vec<&'static str>> {
    let is_phone = name.eq_ignore_ascii_case("TEL");
    let label = normalise_label(label);
    let type_of = |word: &str| {
        let place = PLACE_TYPES.iter().find(|known| **known == word).copied();
        let phone = PHONE_TYPES.iter().find(|(known, _)| is_phone && *known == word);
        place.or(phone.map(|(_, name)| *name))
    };
    label.split(' ').map(type_of).collect()
}

/// Returns a label of known words as [`property_label`] has it, any other one unchanged.
pub(crate) fn normalise_label(label: &str) -> String {
    let lower = label.trim().to_lowercase();
    let usual = |word| TYPE_NAMES.iter().find(|(name, _)| *name == word).map_or(word, |one| one.1);
    let mut words: Vec<&str> = lower.split_whitespace().map(usual).collect();
    let is_known = |word: &&str| {
        PLACE_TYPES.contains(word) || PHONE_TYPES.iter().any(|(known, _)| known == word)
    };
    if words.is_empty() || !words.iter().all(is_known) {
        return label.trim().to_string();
    }
    words.sort_by_key(|word| !PLACE_TYPES.contains(word));
    words.join(" ")
}

/// Returns the label of a property of an item.
pub(crate) fn property_label(
    properties: &PropertyList<'_>,
    property: &Property<'_>,
) -> Option<String> {
    group_label(properties, property).or_else(|| type_label(property))
}

/// Returns the label in the same group.
fn group_label(properties: &PropertyList<'_>, property: &Property<'_>) -> Option<String> {
    let group = property.group()?;
    let is_label = |other: &&Property<'_>| {
        other.group().is_some_and(|other| other.eq_ignore_ascii_case(group))
    };
    let label = properties.iter_named(LABEL_PROPERTY).find(is_label)?;
    let text = clean_text(&unescape_text(&label.text()))?;
    Some(translated_label(&text).map_or_else(|| text.clone(), str::to_lowercase))
}

/// Returns a person's own label, from X-ABLabel.
pub(crate) fn custom_label(property: &Property<'_>) -> Option<String> {
    let text = clean_text(&unescape_text(&property.text()))?;
    translated_label(&text).is_none().then_some(text)
}

/// Returns the name in `_$!<Mobile>!$_`.
fn translated_label(text: &str) -> Option<&str> {
    let (start, end) = TRANSLATED_LABEL_MARKS;
    text.strip_prefix(start)?.strip_suffix(end)
}

/// Returns the types as words, those of a place first: `work fax`; before them the service of an
/// account.
fn type_label(property: &Property<'_>) -> Option<String> {
    let (mut words, mut services) = (Vec::new(), [None, None]);
    for (index, param) in property.params_named(["X-SERVICE-TYPE", "SERVICE-TYPE", "TYPE"]) {
        match services.get_mut(index) {
            Some(service) => *service = service.take().or(param.values.into_iter().next()),
            None => param.values.iter().for_each(|types| add_type_words(&mut words, types)),
        }
    }
    words.sort_by_key(|word| !PLACE_TYPES.contains(&word.as_str()));
    let service = services.into_iter().flatten().next();
    if let Some(service) = service.and_then(|service| clean_text(&service)) {
        words.insert(0, service);
    }
    match words.len() {
        0 => None,
        1 => words.pop(),
        _ => Some(words.join(" ")),
    }
}

/// Adds the types of a list that say something about the use of a value, each once.
fn add_type_words(words: &mut Vec<String>, types: &str) {
    for word in types.split(',').map(str::trim) {
        if word.is_empty() || FORMAL_TYPES.iter().any(|known| word.eq_ignore_ascii_case(known)) {
            continue;
        }
        let mut word = word.to_lowercase();
        let usual = TYPE_NAMES.iter().find(|(name, _)| *name == word).map(|(_, name)| *name);
        let short = word.strip_prefix("x-evolution-").or_else(|| word.strip_prefix("x-"));
        if let Some(name) = usual.or(short) {
            word = name.to_string();
        }
        if !word.is_empty() && !FORMAL_TYPES.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
    }
}
