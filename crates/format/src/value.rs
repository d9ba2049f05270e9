//! The values of an item's fields: each [`Source`] of the tables, read from the properties.

use crate::decode::{split_raw, split_structured, unescape_text};
use crate::field::{FIELDS, Field, Kind, Source};
use crate::properties::Properties;
use crate::property::Property;
use std::borrow::Cow;
use std::collections::HashSet;

/// The values of a field: trimmed, none of them empty; one at most where the field takes no more.
pub(crate) fn values(
    properties: &Properties<'_>,
    version: &'static str,
    field: &Field,
) -> Vec<String> {
    let mut values = Values { properties, version, kind: field.kind, found: Vec::new() };
    values.read(field.source);
    if !field.multi {
        values.found.truncate(1);
    }
    values.found
}

/// A text as values are given: without white space around it, with plain line feeds. `None`: nothing is left.
pub(crate) fn clean(text: &str) -> Option<String> {
    let text = text.trim();
    match text {
        "" => None,
        text if text.contains('\r') => Some(text.replace("\r\n", "\n").replace('\r', "\n")),
        text => Some(text.to_string()),
    }
}

/// Values being gathered.
struct Values<'c> {
    properties: &'c Properties<'c>,
    /// The version of the item's format.
    version: &'static str,
    kind: Kind,
    found: Vec<String>,
}

impl<'c> Values<'c> {
    fn read(&mut self, source: Source) {
        match source {
            Source::Of(names) => self.each(names, Values::whole),
            Source::ListOf(names) => self.each(names, Values::list),
            Source::Nth(name, nth) => self.nth(nth, |values| values.each(&[name], Values::whole)),
            Source::Component(name, nth) => {
                self.each(&[name], |values, property| values.component(property, nth));
            }
            Source::FullName => self.full_name(),
            Source::FileAs => self.file_as(),
            Source::SpokenName => self.each(&["N"], |values, property| {
                values.add(&spoken_name(&property.text()));
            }),
            Source::Phone(with, without) => self.phone(with, without),
            Source::NthPhone(with, without, nth) => {
                self.nth(nth, |values| values.phone(with, without));
            }
            Source::Address(with, without) => self.typed("ADR", with, without, Values::address),
            Source::Label(with, without) => self.label(with, without),
            Source::Messenger(names, services) => self.messenger(names, services),
            Source::AnyMessenger => self.any_messenger(),
            Source::Person(names) => self.each(names, Values::person),
            Source::Position => self.each(&["GEO"], Values::position),
            Source::IsList => self.is_list(),
            // A component tells of itself.
            Source::HasAlarm | Source::Recurs | Source::IsDone | Source::IsAllDay => {}
            Source::Key(of_type) => self.key(of_type),
            Source::Version => self.add(self.version),
        }
    }

    /// Adds a value in the form of the field's kind.
    fn add(&mut self, text: &str) {
        let Some(text) = clean(text) else {
            return;
        };
        let text = match self.kind {
            Kind::Phone => without_scheme(&text, "tel:").to_string(),
            Kind::Email => without_scheme(&text, "mailto:").to_string(),
            Kind::Date => date(&text).unwrap_or(text),
            Kind::Flag => flag(&text).to_string(),
            _ => text,
        };
        if !text.is_empty() {
            self.found.push(text);
        }
    }

    fn each(&mut self, names: &[&str], mut read: impl FnMut(&mut Values<'c>, &'c Property<'c>)) {
        let properties = self.properties;
        for property in properties.named(names) {
            read(self, property);
        }
    }

    /// Keeps one of the values that are read: the first is 0.
    fn nth(&mut self, nth: usize, read: impl FnOnce(&mut Values<'c>)) {
        read(self);
        self.found = self.found.drain(..).skip(nth).take(1).collect();
    }

    fn typed(
        &mut self,
        name: &str,
        with: &[&str],
        without: &[&str],
        read: fn(&mut Values<'c>, &'c Property<'c>),
    ) {
        self.each(&[name], |values, property| {
            if has_types(property, with, without) {
                read(values, property);
            }
        });
    }

    fn whole(&mut self, property: &Property<'_>) {
        let text = property.text();
        // The only dates that are no dates: a year that Apple's programs write for an unknown one.
        if let Some(omitted) = property.param("X-APPLE-OMIT-YEAR")
            && let Some(rest) = text.trim().strip_prefix(omitted.trim())
        {
            return self.add(&format!("--{}", rest.trim_start_matches('-')));
        }
        // A key or a picture has no escapes.
        let text = if self.kind == Kind::Binary { text } else { own(text, unescape_text) };
        self.add(&text);
    }

    fn list(&mut self, property: &Property<'_>) {
        let text = property.text();
        // vCalendar 1.0 has semicolons between the members of its lists.
        let separator = if self.version == "1.0" && text.contains(';') { ';' } else { ',' };
        for part in split_structured(&text, separator) {
            self.add(&part);
        }
    }

    /// The address of a person, and the name; of vCalendar 1.0 both are in the value.
    fn person(&mut self, property: &Property<'_>) {
        let text = own(property.text(), unescape_text);
        let (name, address) =
            match text.trim().strip_suffix('>').and_then(|text| text.split_once('<')) {
                Some(both) => both,
                None => ("", text.trim()),
            };
        let address = without_scheme(address, "mailto:");
        self.add(address);
        self.add(name);
        for value in property.single_params(["CN", "EMAIL"]).into_iter().flatten() {
            let value = without_scheme(value.trim(), "mailto:");
            if value != address {
                self.add(value);
            }
        }
    }

    fn component(&mut self, property: &Property<'_>, nth: usize) {
        if let Some(component) = split_raw(&property.text(), ';').nth(nth) {
            self.add(&listed(component, " "));
        }
    }

    fn full_name(&mut self) {
        self.each(&["FN"], Values::whole);
        // Names that a merge kept of other cards.
        self.each(&["X-LARDER-FN"], Values::whole);
        for stand_in in [Source::SpokenName, Source::Component("ORG", 0), Source::Of(&["EMAIL"])] {
            if self.found.is_empty() {
                self.kind =
                    if stand_in == Source::Of(&["EMAIL"]) { Kind::Email } else { Kind::Text };
                self.read(stand_in);
                self.found.truncate(1);
            }
        }
    }

    fn file_as(&mut self) {
        self.each(&["X-EVOLUTION-FILE-AS"], Values::whole);
        self.each(&["SORT-STRING"], Values::whole);
        if self.found.is_empty() {
            self.each(&["N", "ORG"], |values, property| {
                let sort_as =
                    property.params().find(|param| param.name.eq_ignore_ascii_case("SORT-AS"));
                let list = sort_as.map(|param| param.values.join(",")).unwrap_or_default();
                values.add(&listed(&list, ", "));
            });
        }
        if self.found.is_empty() {
            self.each(&["N"], |values, property| {
                let text = property.text();
                let mut parts = split_raw(&text, ';').map(|part| listed(part, " "));
                if let (Some(family), Some(given)) = (parts.next(), parts.next())
                    && !family.trim().is_empty()
                    && !given.trim().is_empty()
                {
                    values.add(&format!("{}, {}", family.trim(), given.trim()));
                }
            });
        }
        if self.found.is_empty() {
            self.full_name();
        }
    }

    fn phone(&mut self, with: &[&str], without: &[&str]) {
        self.typed("TEL", with, without, Values::whole);
    }

    /// The components of an address that are filled, on one line.
    fn address(&mut self, property: &Property<'_>) {
        let text = property.text();
        let parts: Vec<String> =
            split_raw(&text, ';').filter_map(|part| clean(&listed(part, ", "))).collect();
        self.add(&parts.join(", "));
    }

    fn label(&mut self, with: &[&str], without: &[&str]) {
        self.typed("LABEL", with, without, Values::whole);
        self.typed("ADR", with, without, |values, property| {
            if let Some(label) = property.param("LABEL") {
                values.add(&unescape_text(&label));
            }
        });
    }

    fn messenger(&mut self, names: &[&str], services: &[&str]) {
        self.each(names, Values::whole);
        self.each(&["IMPP"], |values, property| {
            let text = own(property.text(), unescape_text);
            let (scheme, name) = messenger_name(&text);
            let service = property.param("X-SERVICE-TYPE").unwrap_or_default();
            let is_one = |name: &str| services.iter().any(|known| same_letters(known, name));
            if is_one(scheme) || is_one(&service) {
                values.add(name);
            }
        });
    }

    /// Each messenger's names, and those in IMPP that belong to none of the table.
    fn any_messenger(&mut self) {
        for field in FIELDS.iter().filter(|field| matches!(field.source, Source::Messenger(..))) {
            self.read(field.source);
        }
        self.each(&["IMPP"], |values, property| {
            let text = own(property.text(), unescape_text);
            values.add(messenger_name(&text).1);
        });
        let mut seen = HashSet::new();
        self.found.retain(|value| seen.insert(value.clone()));
    }

    fn position(&mut self, property: &Property<'_>) {
        let text = own(property.text(), unescape_text);
        self.add(&without_scheme(text.trim(), "geo:").replace(';', ","));
    }

    fn is_list(&mut self) {
        self.each(&["X-EVOLUTION-LIST"], Values::whole);
        self.each(&["KIND", "X-ADDRESSBOOKSERVER-KIND"], |values, property| {
            if property.text().trim().eq_ignore_ascii_case("group") {
                values.add("1");
            }
        });
    }

    fn key(&mut self, of_type: &str) {
        self.each(&["KEY"], |values, property| {
            let media = property.param("MEDIATYPE").unwrap_or_default().to_ascii_lowercase();
            let start = property.value().get(..40).unwrap_or(property.value()).to_ascii_lowercase();
            let start = String::from_utf8_lossy(&start);
            let lower = of_type.to_ascii_lowercase();
            if property.has_type(of_type) || media.contains(&lower) || start.contains(&lower) {
                values.whole(property);
            }
        });
    }
}

/// Applies a function that borrows to a text that may be owned.
fn own<'a>(text: Cow<'a, str>, change: fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => change(text),
        Cow::Owned(text) => Cow::Owned(change(&text).into_owned()),
    }
}

fn has_types(property: &Property<'_>, with: &[&str], without: &[&str]) -> bool {
    with.iter().all(|name| property.has_type(name))
        && !without.iter().any(|name| property.has_type(name))
}

/// The members of a list inside a component, joined.
fn listed(component: &str, between: &str) -> String {
    let members = split_structured(component, ',');
    let members: Vec<&str> =
        members.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    members.join(between)
}

/// The parts of N in the order they are spoken in: prefix, given, additional, family, suffix.
fn spoken_name(text: &str) -> String {
    let parts: Vec<String> = split_raw(text, ';').map(|part| listed(part, " ")).collect();
    let part = |nth: usize| parts.get(nth).map(String::as_str).filter(|part| !part.is_empty());
    let spoken: Vec<&str> = [3, 1, 2, 0, 4].into_iter().filter_map(part).collect();
    spoken.join(" ")
}

pub(crate) fn without_scheme<'t>(text: &'t str, scheme: &str) -> &'t str {
    match text.get(..scheme.len()) {
        Some(start) if start.eq_ignore_ascii_case(scheme) => text[scheme.len()..].trim(),
        _ => text,
    }
}

/// The scheme of a messenger's URI and the name in it; of one that names a host, all is the name.
fn messenger_name(text: &str) -> (&str, &str) {
    match text.split_once(':') {
        Some((scheme, name)) if name.starts_with("//") => (scheme, text),
        Some((scheme, name)) => (scheme, name),
        None => ("", text),
    }
}

/// Equal but for case, blanks and hyphens (`Google Talk`, `GoogleTalk`).
fn same_letters(a: &str, b: &str) -> bool {
    let letters = |text: &str| -> Vec<u8> {
        text.bytes()
            .filter(u8::is_ascii_alphanumeric)
            .map(|byte| byte.to_ascii_lowercase())
            .collect()
    };
    letters(a) == letters(b)
}

fn flag(text: &str) -> &'static str {
    let is_true = ["TRUE", "1", "YES"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_true { "1" } else { "0" }
}

/// A date in its long form (ISO 8601, RFC 6350 4.3.1): `YYYY-MM-DD`, or `--MM-DD` without the year. A time
/// behind it is left out. `None`: it is no such date.
pub(crate) fn date(text: &str) -> Option<String> {
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
