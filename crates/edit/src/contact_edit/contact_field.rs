//! The fields of a contact that can be set, the names of their values, and the form of the values.
//!
//! Separate from the changes themselves: a new field is a new row here.

use super::ContactEditError;
use larder_format::contact::VcardVersion;
use larder_format::contact::card_edit::is_same_label;
use larder_format::field::{Field, find_contact_field, suggest_contact_field};

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldForm {
    /// Text.
    Text,
    /// FN, which N may follow.
    FullName,
    /// A list of short texts.
    List,
    /// A component of a structured value, counted from 0.
    Component(usize),
    /// A value that may have a label.
    Labelled,
    /// A URI.
    Uri,
    /// A date.
    Date,
}

/// A row of [`EDITABLE_CONTACT_FIELDS`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditableContactField {
    /// The name in the table of fields.
    pub(super) name: &'static str,
    /// The property that is written.
    pub(super) property: &'static str,
    pub(super) form: FieldForm,
}

const fn row(name: &'static str, property: &'static str, form: FieldForm) -> EditableContactField {
    EditableContactField { name, property, form }
}

const EDITABLE_CONTACT_FIELDS: &[EditableContactField] = &[
    row("full_name", "FN", FieldForm::FullName),
    row("family_name", "N", FieldForm::Component(0)),
    row("given_name", "N", FieldForm::Component(1)),
    row("nickname", "NICKNAME", FieldForm::List),
    row("file_as", "X-EVOLUTION-FILE-AS", FieldForm::Text),
    row("phone", "TEL", FieldForm::Labelled),
    row("email", "EMAIL", FieldForm::Labelled),
    row("address", "ADR", FieldForm::Labelled),
    row("url", "URL", FieldForm::Labelled),
    row("org", "ORG", FieldForm::Component(0)),
    row("org_unit", "ORG", FieldForm::Component(1)),
    row("office", "ORG", FieldForm::Component(2)),
    row("title", "TITLE", FieldForm::Text),
    row("role", "ROLE", FieldForm::Text),
    row("note", "NOTE", FieldForm::Text),
    row("categories", "CATEGORIES", FieldForm::List),
    row("manager", "X-EVOLUTION-MANAGER", FieldForm::Text),
    row("assistant", "X-EVOLUTION-ASSISTANT", FieldForm::Text),
    row("spouse", "X-EVOLUTION-SPOUSE", FieldForm::Text),
    row("caluri", "CALURI", FieldForm::Uri),
    row("fburl", "FBURL", FieldForm::Uri),
    row("birth_date", "BDAY", FieldForm::Date),
    row("anniversary", "ANNIVERSARY", FieldForm::Date),
];

/// Names of values with a label of their own: name in the table of fields, field, label.
const LABELLED_NAMES: &[(&str, &str, &str)] = &[
    ("mobile_phone", "phone", "mobile"),
    ("home_phone", "phone", "home"),
    ("business_phone", "phone", "work"),
    ("home_fax", "phone", "home fax"),
    ("business_fax", "phone", "work fax"),
    ("other_fax", "phone", "fax"),
    ("pager", "phone", "pager"),
    ("car_phone", "phone", "car"),
    ("isdn_phone", "phone", "isdn"),
    ("address_home", "address", "home"),
    ("address_work", "address", "work"),
];

/// Returns the field with this name or alias. The name `name` is the whole name.
fn find_editable(name: &str) -> Option<&'static EditableContactField> {
    let name = if name.eq_ignore_ascii_case("name") { "full_name" } else { name };
    let field = find_contact_field(name)?;
    EDITABLE_CONTACT_FIELDS.iter().find(|row| row.name == field.name)
}

impl EditableContactField {
    /// The names of the properties that have the values, also those of other programs.
    pub(super) fn properties(&self) -> Vec<&'static str> {
        match find_contact_field(self.name).map(Field::property_names) {
            Some(names) if !names.is_empty() => names.to_vec(),
            _ => vec![self.property],
        }
    }

    /// Returns whether a contact has at most one value.
    pub(super) fn is_single_valued(&self) -> bool {
        find_contact_field(self.name).is_some_and(|field| !field.is_multi_valued)
    }

    /// Returns whether a change replaces a whole property, one of possibly several.
    pub(super) fn is_whole_value(&self) -> bool {
        matches!(self.form, FieldForm::Text | FieldForm::Uri | FieldForm::Labelled)
            && !self.is_single_valued()
    }

    /// The name of the property in a new line. An anniversary is an extension before version 4.0.
    pub(super) fn property_in(&self, version: VcardVersion) -> &'static str {
        match self.property {
            "ANNIVERSARY" if version != VcardVersion::V4_0 => "X-ANNIVERSARY",
            name => name,
        }
    }

    pub(super) fn is_labelled(&self) -> bool {
        self.form == FieldForm::Labelled
    }

    /// Returns the value as it is written; empty if it is removed.
    pub(super) fn normalise(&self, text: &str) -> Result<String, ContactEditError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(String::new());
        }
        let (valid, expected) = match (self.property, self.form) {
            ("TEL", _) => (
                text.chars().any(char::is_numeric) && !text.contains(['@', '\n']),
                "a number such as +43 664 1234567",
            ),
            ("EMAIL", _) => (is_email(text), "an address such as anna@example.org"),
            ("URL", _) | (_, FieldForm::Uri) => {
                (is_uri(text), "an address such as https://example.org/")
            }
            (_, FieldForm::Date) => {
                let date = normalise_day(text);
                let is_date = date.is_some();
                if let Some(date) = date {
                    return Ok(date);
                }
                (is_date, "YYYY-MM-DD, or --MM-DD without the year")
            }
            _ => (true, ""),
        };
        match valid {
            true => Ok(text.to_string()),
            false => Err(ContactEditError::InvalidValue {
                name: self.name,
                text: text.to_string(),
                expected,
            }),
        }
    }
}

fn is_email(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !rest.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Returns a date as `YYYY-MM-DD` or `--MM-DD`, or `None` if there is no such day.
fn normalise_day(text: &str) -> Option<String> {
    let (year, day) = match text.strip_prefix("--") {
        // A leap year has every day.
        Some(day) => ("2000", day),
        None => (text.get(..4)?, text.get(4..)?.trim_start_matches('-')),
    };
    let digits: String = day.chars().filter(|c| *c != '-').collect();
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if digits.len() != 4 || !is_number(&digits) || !is_number(year) || day.len() > 5 {
        return None;
    }
    let (month, day) = digits.split_at(2);
    let (number, count) = (month.parse::<u32>().ok()?, day.parse::<u32>().ok()?);
    let year_number = year.parse::<u32>().ok()?;
    let is_leap = year_number % 4 == 0 && (year_number % 100 != 0 || year_number % 400 == 0);
    let days = match number {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&count).then(|| match text.starts_with("--") {
        true => format!("--{month}-{day}"),
        false => format!("{year}-{month}-{day}"),
    })
}

/// The value or the values that a change names.
#[derive(Debug, Clone)]
pub(super) struct FieldTarget {
    pub(super) field: &'static EditableContactField,
    pub(super) label: Option<String>,
    /// The number among the values with the label, from 1.
    pub(super) number: Option<usize>,
}

/// Labels are equal whatever their case, and if they are names of one type (`cell`, `mobile`).
impl PartialEq for FieldTarget {
    fn eq(&self, other: &FieldTarget) -> bool {
        let is_same_label = match (&self.label, &other.label) {
            (Some(one), Some(other)) => is_same_label(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.field == other.field && self.number == other.number && is_same_label
    }
}

impl Eq for FieldTarget {}

impl FieldTarget {
    /// Parses a name: `phone`, `mobile`, `work.phone`, `phone.work`, `mobile.2`.
    pub(super) fn parse(name: &str) -> Result<FieldTarget, ContactEditError> {
        let name = name.trim();
        let (rest, number) = match name.rsplit_once('.') {
            Some((rest, number)) => match number.parse::<usize>() {
                Ok(number) => (rest, Some(number)),
                Err(_) => (name, None),
            },
            None => (name, None),
        };
        let (field, label) = parse_field_and_label(rest.trim())?;
        if label.is_some() && !field.is_labelled() {
            return Err(ContactEditError::UnknownField {
                name: rest.to_string(),
                suggestion: None,
            });
        }
        Ok(FieldTarget { field, label, number })
    }

    /// The label and the field, as the user names them.
    pub(super) fn name_without_number(&self) -> String {
        match &self.label {
            Some(label) => format!("{label}.{}", self.field.name),
            None => self.field.name.to_string(),
        }
    }
}

fn parse_field_and_label(
    name: &str,
) -> Result<(&'static EditableContactField, Option<String>), ContactEditError> {
    if let Some(field) = find_editable(name) {
        return Ok((field, None));
    }
    let phone_label = || (name.eq_ignore_ascii_case("fax")).then_some("other_fax");
    let known = find_contact_field(phone_label().unwrap_or(name)).map(|field| field.name);
    if let Some((_, field, label)) = LABELLED_NAMES.iter().find(|row| Some(row.0) == known)
        && let Some(field) = find_editable(field)
    {
        return Ok((field, Some((*label).to_string())));
    }
    let pairs = [name.rsplit_once('.').map(|(label, field)| (field, label)), name.split_once('.')];
    for (field, label) in pairs.into_iter().flatten() {
        if let Some(field) = find_editable(field.trim()).filter(|_| !label.trim().is_empty()) {
            return Ok((field, Some(label.trim().to_string())));
        }
    }
    if let Some(name) = known {
        return Err(ContactEditError::NotEditable { name: name.to_string() });
    }
    if ["home", "work", "other"].iter().any(|place| name.eq_ignore_ascii_case(place)) {
        return Err(ContactEditError::LabelWithoutField { label: name.to_string() });
    }
    let suggestion = suggest_contact_field(name);
    Err(ContactEditError::UnknownField { name: name.to_string(), suggestion })
}
