//! The name of a person as a whole (FN) and in parts (N).
//!
//! Separate because both the change of FN and that of N keep the other one up to date.

use larder_format::contact::Contact;
use larder_format::contact::card_edit::card_properties;
use larder_format::field::find_contact_field;

/// The name of a contact.
pub(super) struct CardName {
    /// FN.
    full: Option<String>,
    /// N in spoken order.
    spoken: Option<String>,
    /// N as `FAMILY, GIVEN`, as [`CardName::split_full_name`] reads it.
    sorted: Option<String>,
    /// Whether the card has an N.
    pub(super) has_parts: bool,
    /// Whether the card is a list of contacts, whose name has no parts.
    pub(super) is_group: bool,
}

impl CardName {
    pub(super) fn from_card(bytes: &[u8]) -> CardName {
        let card = Contact::parse(bytes);
        let value = |name| find_contact_field(name).and_then(|field| card.first_value(field));
        let has_parts = !card_properties(bytes, &["N"]).is_empty();
        let has_full = !card_properties(bytes, &["FN"]).is_empty();
        let sorted = match (value("family_name"), value("given_name")) {
            (Some(family), Some(given)) => Some(format!("{family}, {given}")),
            _ => None,
        };
        CardName {
            full: value("full_name").filter(|_| has_full),
            spoken: value("name"),
            sorted,
            has_parts,
            is_group: value("list").is_some_and(|flag| flag == "1"),
        }
    }

    /// Returns whether FN has the parts of N, so that it changes with them.
    pub(super) fn is_full_name_of_parts(&self) -> bool {
        self.full.is_some() && (self.full == self.spoken || self.full == self.sorted)
    }

    /// Returns FN after a change of N; `None` if it does not follow.
    pub(super) fn full_name_after(&self, changed: &[u8]) -> Option<String> {
        let after = CardName::from_card(changed);
        match &self.full {
            Some(_) if self.full == self.spoken => after.spoken,
            // Without one of the parts there is nothing to put a comma between.
            Some(_) if self.full == self.sorted => after.sorted.or(after.spoken),
            _ => None,
        }
    }

    /// Splits a full name into the components of N: the last word is the family name, unless a
    /// comma separates the family name from the given names. A single word is a given name. The
    /// name of a group is the first component.
    pub(super) fn split_full_name(&self, name: &str) -> [String; 5] {
        let name = name.trim();
        let (family, given) = match (name.split_once(','), name.rsplit_once(char::is_whitespace)) {
            _ if self.is_group => (name, ""),
            (Some((family, given)), _) => (family, given),
            (None, Some((given, family))) => (family, given),
            (None, None) => ("", name),
        };
        let [family, given] = [family, given].map(|part| part.trim().to_string());
        [family, given, String::new(), String::new(), String::new()]
    }
}
