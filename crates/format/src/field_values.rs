//! Reads the values of a field from the properties of an item: each [`FieldSource`] of the tables.

use crate::decoding::{clean_text, split_raw, split_structured, unescape_text};
use crate::field::{CONTACT_FIELDS, Field, FieldSource, FieldType};
use crate::properties::PropertyList;
use crate::property::Property;
use crate::value_labels::{custom_label, property_label};
use std::borrow::Cow;
use std::collections::HashSet;

/// The version of vCard whose components have no lists.
const VCARD_2_1: &str = "2.1";

/// Returns the values of a field, trimmed, none of them empty; at most one for a single-valued
/// field.
pub(crate) fn read_values(
    properties: &PropertyList<'_>,
    version: &'static str,
    field: &Field,
) -> Vec<String> {
    let mut values =
        ValueCollector { properties, version, field_type: field.field_type, values: Vec::new() };
    values.read_source(field.source);
    if !field.is_multi_valued {
        values.values.truncate(1);
    }
    values.values
}

/// The label of a value without one, in a field with labels.
const NO_LABEL: &str = "-";

/// Returns the labels of the values of a field: as many as [`read_values`] returns, `None` for a
/// value without a label. Empty for fields whose values are not whole properties.
pub(crate) fn read_labels(
    properties: &PropertyList<'_>,
    version: &'static str,
    field: &Field,
) -> Vec<Option<String>> {
    let (names, with, without): (&[&str], &[&str], &[&str]) = match field.source {
        FieldSource::Properties(names) => (names, &[], &[]),
        FieldSource::Address(with, without) => (&["ADR"], with, without),
        _ => return Vec::new(),
    };
    let mut labels = Vec::new();
    for property in properties.iter_named_any(names).filter(|one| has_types(one, with, without)) {
        let (field_type, values) = (field.field_type, Vec::new());
        let mut values = ValueCollector { properties, version, field_type, values };
        match field.source {
            FieldSource::Address(..) => values.add_address(property),
            _ => values.add_whole(property),
        }
        labels.extend(values.values.iter().map(|_| property_label(properties, property)));
    }
    labels
}

/// Collects the values of one field.
struct ValueCollector<'c> {
    properties: &'c PropertyList<'c>,
    /// The version of the item's format.
    version: &'static str,
    field_type: FieldType,
    values: Vec<String>,
}

impl<'c> ValueCollector<'c> {
    fn read_source(&mut self, source: FieldSource) {
        match source {
            FieldSource::Properties(names) => {
                self.for_each_property(names, ValueCollector::add_whole);
            }
            FieldSource::ListProperties(names) => {
                self.for_each_property(names, ValueCollector::add_list);
            }
            FieldSource::NthValue(name, nth) => self.keep_nth(nth, |values| {
                values.for_each_property(&[name], ValueCollector::add_whole);
            }),
            FieldSource::StructuredPart(name, nth) => {
                self.for_each_property(&[name], |values, property| {
                    values.add_structured_part(property, nth);
                });
            }
            FieldSource::FullName => self.add_full_name(),
            FieldSource::FileAs => self.add_file_as(),
            FieldSource::SpokenName => self.for_each_property(&["N"], |values, property| {
                values.add_value(&values.spoken_name(property));
            }),
            FieldSource::Phone(with, without) => self.add_phones(with, without),
            FieldSource::NthPhone(with, without, nth) => {
                self.keep_nth(nth, |values| values.add_phones(with, without));
            }
            FieldSource::Address(with, without) => {
                self.for_each_typed("ADR", with, without, ValueCollector::add_address);
            }
            FieldSource::Label(with, without) => self.add_labels(with, without),
            FieldSource::Messenger(names, services) => self.add_messenger(names, services),
            FieldSource::AnyMessenger => self.add_any_messenger(),
            FieldSource::Person(names) => self.for_each_property(names, ValueCollector::add_person),
            FieldSource::Position => self.for_each_property(&["GEO"], ValueCollector::add_position),
            FieldSource::ValueLabels(names) => self.add_labels_of(names),
            FieldSource::CustomLabel => self.for_each_property(&["X-ABLABEL"], |values, label| {
                values.values.extend(custom_label(label));
            }),
            FieldSource::IsList => self.add_list_flag(),
            // The component computes these itself.
            FieldSource::HasAlarm
            | FieldSource::Recurs
            | FieldSource::IsDone
            | FieldSource::IsAllDay => {}
            FieldSource::Key(of_type) => self.add_keys(of_type),
            FieldSource::Version => self.add_value(self.version),
        }
    }

    /// Adds a value, normalised by the type of the field.
    fn add_value(&mut self, text: &str) {
        let Some(text) = clean_text(text) else {
            return;
        };
        let text = match self.field_type {
            FieldType::Phone => strip_scheme(&text, "tel:").to_string(),
            FieldType::Email => strip_scheme(&text, "mailto:").to_string(),
            FieldType::Date => normalise_date(&text).unwrap_or(text),
            FieldType::Flag => parse_flag(&text).to_string(),
            _ => text,
        };
        if !text.is_empty() {
            self.values.push(text);
        }
    }

    fn for_each_property(
        &mut self,
        names: &[&str],
        mut read: impl FnMut(&mut ValueCollector<'c>, &'c Property<'c>),
    ) {
        let properties = self.properties;
        for property in properties.iter_named_any(names) {
            read(self, property);
        }
    }

    /// Keeps one of the values that `read` adds, counted from 0.
    fn keep_nth(&mut self, nth: usize, read: impl FnOnce(&mut ValueCollector<'c>)) {
        read(self);
        self.values = self.values.drain(..).skip(nth).take(1).collect();
    }

    fn for_each_typed(
        &mut self,
        name: &str,
        with: &[&str],
        without: &[&str],
        read: fn(&mut ValueCollector<'c>, &'c Property<'c>),
    ) {
        self.for_each_property(&[name], |values, property| {
            if has_types(property, with, without) {
                read(values, property);
            }
        });
    }

    fn add_whole(&mut self, property: &Property<'_>) {
        let text = property.text();
        // Apple's programs write this year for an unknown one.
        if let Some(omitted) = property.param("X-APPLE-OMIT-YEAR")
            && let Some(rest) = text.trim().strip_prefix(omitted.trim())
        {
            return self.add_value(&format!("--{}", rest.trim_start_matches('-')));
        }
        // Keys and pictures have no escapes.
        let text =
            if self.field_type == FieldType::Binary { text } else { map_cow(text, unescape_text) };
        self.add_value(&text);
    }

    fn add_list(&mut self, property: &Property<'_>) {
        let text = property.text();
        // vCalendar 1.0 separates list members with semicolons.
        let separator = if self.version == "1.0" && text.contains(';') { ';' } else { ',' };
        for part in split_structured(&text, separator) {
            self.add_value(&part);
        }
    }

    /// Adds the address and the name of a person; in vCalendar 1.0 the value has both.
    fn add_person(&mut self, property: &Property<'_>) {
        let text = map_cow(property.text(), unescape_text);
        let (name, address) =
            match text.trim().strip_suffix('>').and_then(|text| text.split_once('<')) {
                Some(both) => both,
                None => ("", text.trim()),
            };
        let address = strip_scheme(address, "mailto:");
        self.add_value(address);
        self.add_value(name);
        for value in property.single_params(["CN", "EMAIL"]).into_iter().flatten() {
            let value = strip_scheme(value.trim(), "mailto:");
            if value != address {
                self.add_value(value);
            }
        }
    }

    fn add_structured_part(&mut self, property: &Property<'_>, nth: usize) {
        if let Some(component) = split_raw(&property.text(), ';').nth(nth) {
            self.add_value(&self.component_text(property, component, " "));
        }
    }

    /// Returns the text of a component of a structured value. N and ADR have lists in their
    /// components since vCard 3.0; everywhere else a comma is a character.
    fn component_text(&self, property: &Property<'_>, component: &str, between: &str) -> String {
        let has_lists = property.has_name("N") || property.has_name("ADR");
        match has_lists && self.version != VCARD_2_1 {
            true => join_list(component, between),
            false => unescape_text(component.trim()).into_owned(),
        }
    }

    /// Returns N in spoken order: prefix, given, additional, family, suffix.
    fn spoken_name(&self, property: &Property<'_>) -> String {
        let text = property.text();
        let parts: Vec<String> =
            split_raw(&text, ';').map(|part| self.component_text(property, part, " ")).collect();
        let part = |nth: usize| parts.get(nth).map(String::as_str).filter(|part| !part.is_empty());
        let spoken: Vec<&str> = [3, 1, 2, 0, 4].into_iter().filter_map(part).collect();
        spoken.join(" ")
    }

    fn add_full_name(&mut self) {
        self.for_each_property(&["FN"], ValueCollector::add_whole);
        // Names that a merge kept from other cards.
        self.for_each_property(&["X-LARDER-FN"], ValueCollector::add_whole);
        for stand_in in [
            FieldSource::SpokenName,
            FieldSource::StructuredPart("ORG", 0),
            FieldSource::Properties(&["EMAIL"]),
        ] {
            if self.values.is_empty() {
                self.field_type = if stand_in == FieldSource::Properties(&["EMAIL"]) {
                    FieldType::Email
                } else {
                    FieldType::Text
                };
                self.read_source(stand_in);
                self.values.truncate(1);
            }
        }
    }

    fn add_file_as(&mut self) {
        self.for_each_property(&["X-EVOLUTION-FILE-AS"], ValueCollector::add_whole);
        self.for_each_property(&["SORT-STRING"], ValueCollector::add_whole);
        if self.values.is_empty() {
            self.for_each_property(&["N", "ORG"], |values, property| {
                let sort_as =
                    property.params().find(|param| param.name.eq_ignore_ascii_case("SORT-AS"));
                let list = sort_as.map(|param| param.values.join(",")).unwrap_or_default();
                values.add_value(&join_list(&list, ", "));
            });
        }
        if self.values.is_empty() {
            self.for_each_property(&["N"], |values, property| {
                let text = property.text();
                let mut parts =
                    split_raw(&text, ';').map(|part| values.component_text(property, part, " "));
                if let (Some(family), Some(given)) = (parts.next(), parts.next())
                    && !family.trim().is_empty()
                    && !given.trim().is_empty()
                {
                    values.add_value(&format!("{}, {}", family.trim(), given.trim()));
                }
            });
        }
        if self.values.is_empty() {
            self.add_full_name();
        }
    }

    fn add_phones(&mut self, with: &[&str], without: &[&str]) {
        self.for_each_typed("TEL", with, without, ValueCollector::add_whole);
    }

    /// Adds the non-empty components of an address, on one line.
    fn add_address(&mut self, property: &Property<'_>) {
        let text = property.text();
        let parts: Vec<String> = split_raw(&text, ';')
            .filter_map(|part| clean_text(&self.component_text(property, part, ", ")))
            .collect();
        self.add_value(&parts.join(", "));
    }

    fn add_labels(&mut self, with: &[&str], without: &[&str]) {
        self.for_each_typed("LABEL", with, without, ValueCollector::add_whole);
        self.for_each_typed("ADR", with, without, |values, property| {
            if let Some(label) = property.param("LABEL") {
                values.add_value(&unescape_text(&label));
            }
        });
    }

    fn add_messenger(&mut self, names: &[&str], services: &[&str]) {
        self.for_each_property(names, ValueCollector::add_whole);
        self.for_each_property(&["IMPP"], |values, property| {
            let text = map_cow(property.text(), unescape_text);
            let (scheme, name) = split_messenger_uri(&text);
            let service = property.param("X-SERVICE-TYPE").unwrap_or_default();
            let is_one = |name: &str| services.iter().any(|known| has_same_letters(known, name));
            if is_one(scheme) || is_one(&service) {
                values.add_value(name);
            }
        });
    }

    /// Adds the names at each messenger, and those in IMPP with an unknown scheme.
    fn add_any_messenger(&mut self) {
        for field in
            CONTACT_FIELDS.iter().filter(|field| matches!(field.source, FieldSource::Messenger(..)))
        {
            self.read_source(field.source);
        }
        self.for_each_property(&["IMPP"], |values, property| {
            let text = map_cow(property.text(), unescape_text);
            values.add_value(split_messenger_uri(&text).1);
        });
        let mut seen = HashSet::new();
        self.values.retain(|value| seen.insert(value.clone()));
    }

    /// Adds the label of each property that has a value; nothing if no property has a label.
    fn add_labels_of(&mut self, names: &[&str]) {
        self.for_each_property(names, |values, property| {
            let before = values.values.len();
            values.add_whole(property);
            if values.values.len() > before {
                values.values.truncate(before);
                let label = property_label(values.properties, property);
                values.values.push(label.unwrap_or_else(|| NO_LABEL.into()));
            }
        });
        if self.values.iter().all(|label| label == NO_LABEL) {
            self.values.clear();
        }
    }

    fn add_position(&mut self, property: &Property<'_>) {
        let text = map_cow(property.text(), unescape_text);
        self.add_value(&strip_scheme(text.trim(), "geo:").replace(';', ","));
    }

    fn add_list_flag(&mut self) {
        self.for_each_property(&["X-EVOLUTION-LIST"], ValueCollector::add_whole);
        self.for_each_property(&["KIND", "X-ADDRESSBOOKSERVER-KIND"], |values, property| {
            if property.text().trim().eq_ignore_ascii_case("group") {
                values.add_value("1");
            }
        });
    }

    fn add_keys(&mut self, of_type: &str) {
        self.for_each_property(&["KEY"], |values, property| {
            let media = property.param("MEDIATYPE").unwrap_or_default().to_ascii_lowercase();
            let start = property.value().get(..40).unwrap_or(property.value()).to_ascii_lowercase();
            let start = String::from_utf8_lossy(&start);
            let lower = of_type.to_ascii_lowercase();
            if property.has_type(of_type) || media.contains(&lower) || start.contains(&lower) {
                values.add_whole(property);
            }
        });
    }
}

/// Applies a borrowing function to a text that may be owned.
fn map_cow<'a>(text: Cow<'a, str>, change: fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => change(text),
        Cow::Owned(text) => Cow::Owned(change(&text).into_owned()),
    }
}

fn has_types(property: &Property<'_>, with: &[&str], without: &[&str]) -> bool {
    with.iter().all(|name| property.has_type(name))
        && !without.iter().any(|name| property.has_type(name))
}

/// Joins the members of a list inside a component.
fn join_list(component: &str, between: &str) -> String {
    let members = split_structured(component, ',');
    let members: Vec<&str> =
        members.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    members.join(between)
}

pub(crate) fn strip_scheme<'t>(text: &'t str, scheme: &str) -> &'t str {
    match text.get(..scheme.len()) {
        Some(start) if start.eq_ignore_ascii_case(scheme) => text[scheme.len()..].trim(),
        _ => text,
    }
}

/// Splits a messenger URI into its scheme and the name. A URI with a host is a name as a whole.
fn split_messenger_uri(text: &str) -> (&str, &str) {
    match text.split_once(':') {
        Some((scheme, name)) if name.starts_with("//") => (scheme, text),
        Some((scheme, name)) => (scheme, name),
        None => ("", text),
    }
}

/// Returns whether two names are equal except for case, spaces and hyphens (`Google Talk`,
/// `GoogleTalk`).
fn has_same_letters(a: &str, b: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        text.bytes()
            .filter(u8::is_ascii_alphanumeric)
            .map(|byte| byte.to_ascii_lowercase())
            .collect()
    };
    letters(a) == letters(b)
}

fn parse_flag(text: &str) -> &'static str {
    let is_true = ["TRUE", "1", "YES"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_true { "1" } else { "0" }
}

/// Returns a date in extended form (ISO 8601; RFC 6350, 4.3.1): `YYYY-MM-DD`, or `--MM-DD` without
/// a year. A time after it is dropped. `None` if the text is not such a date.
pub(crate) fn normalise_date(text: &str) -> Option<String> {
    let day = text.split(['T', 't', ' ']).next()?;
    let number = |text: &str, from: u32, to: u32| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number: &u32| digits && (from..=to).contains(number))
    };
    let (year, rest) = match day.strip_prefix("--") {
        Some(rest) => ("-", rest),
        None => (day.get(..4).filter(|year| number(year, 0, 9999).is_some())?, day.get(4..)?),
    };
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let (month, rest) = (rest.get(..2)?, rest.get(2..)?);
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    number(month, 1, 12)?;
    number(rest, 1, 31).filter(|_| rest.len() == 2)?;
    Some(format!("{year}-{month}-{rest}"))
}
