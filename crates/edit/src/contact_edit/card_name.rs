//! The name of a person as a whole (FN), in parts (N), and for sorting (Evolution's FILE-AS).
//!
//! Separate because both the change of FN and that of N keep the others up to date.

use larder_format::contact::Contact;
use larder_format::contact::card_edit::card_properties;
use larder_format::field::find_contact_field;

/// The property with the name for sorting in Evolution.
pub(super) const FILE_AS_PROPERTY: &str = "X-EVOLUTION-FILE-AS";

/// A form in which a text has the parts of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameForm {
    /// All parts in spoken order.
    AllParts,
    /// `GIVEN FAMILY`, without the other parts.
    GivenFamily,
    /// `FAMILY, GIVEN`, as [`CardName::split_full_name`] reads it.
    FamilyGiven,
}

/// The name of a contact.
pub(super) struct CardName {
    /// FN.
    full: Option<String>,
    /// The name for sorting in Evolution.
    file_as: Option<String>,
    /// N in spoken order.
    spoken: Option<String>,
    family: Option<String>,
    given: Option<String>,
    /// Whether the card has an N.
    pub(super) has_parts: bool,
    /// Whether the card is a list of contacts, whose name has no parts.
    pub(super) is_group: bool,
}

impl CardName {
    pub(super) fn from_card(bytes: &[u8]) -> CardName {
        let card = Contact::parse(bytes);
        let value = |name| find_contact_field(name).and_then(|field| card.first_value(field));
        // Without the property, the field has a substitute.
        let has_property = |name| !card_properties(bytes, &[name]).is_empty();
        CardName {
            full: value("full_name").filter(|_| has_property("FN")),
            file_as: value("file_as").filter(|_| has_property(FILE_AS_PROPERTY)),
            spoken: value("name"),
            family: value("family_name"),
            given: value("given_name"),
            has_parts: has_property("N"),
            is_group: value("list").is_some_and(|flag| flag == "1"),
        }
    }

    /// Returns the form in which FN has the parts of N, so that it changes with them.
    pub(super) fn full_name_form(&self) -> Option<NameForm> {
        self.full.as_deref().and_then(|full| self.find_form(full))
    }

    /// Returns FN after a change of N; `None` if it does not follow.
    pub(super) fn full_name_after(&self, changed: &[u8]) -> Option<String> {
        let after = CardName::from_card(changed);
        after.format(self.full_name_form()?).or(after.spoken)
    }

    /// Returns the name for sorting after a change of FN or N; `None` if it stays. It follows if it
    /// has the parts of N, or is FN.
    pub(super) fn file_as_after(&self, changed: &[u8]) -> Option<String> {
        let after = CardName::from_card(changed);
        let text = match self.find_form(self.file_as.as_deref()?) {
            Some(form) => after.format(form),
            None if self.file_as == self.full => after.full,
            None => None,
        };
        text.filter(|text| self.file_as.as_ref() != Some(text))
    }

    fn find_form(&self, text: &str) -> Option<NameForm> {
        let forms = [NameForm::AllParts, NameForm::GivenFamily, NameForm::FamilyGiven];
        forms.into_iter().find(|form| self.format(*form).is_some_and(|name| name == text))
    }

    fn format(&self, form: NameForm) -> Option<String> {
        match (form, &self.given, &self.family) {
            (NameForm::AllParts, ..) => self.spoken.clone(),
            (NameForm::GivenFamily, Some(given), Some(family)) => Some(format!("{given} {family}")),
            (NameForm::FamilyGiven, Some(given), Some(family)) => {
                Some(format!("{family}, {given}"))
            }
            (_, given, family) => given.clone().or(family.clone()),
        }
    }

    /// Splits a full name into family and given names: the last word is the family name, unless a
    /// comma separates the family name from the given names. A single word is a given name. The
    /// name of a group is the family name.
    pub(super) fn split_full_name(&self, name: &str) -> [String; 2] {
        let name = name.trim();
        let (family, given) = match (name.split_once(','), name.rsplit_once(char::is_whitespace)) {
            _ if self.is_group => (name, ""),
            (Some((family, given)), _) => (family, given),
            (None, Some((given, family))) => (family, given),
            (None, None) => ("", name),
        };
        [family, given].map(|part| part.trim().to_string())
    }
}
