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
    pub(super) spoken: Option<String>,
    /// Whether the card has an N.
    pub(super) has_parts: bool,
}

impl CardName {
    pub(super) fn from_card(bytes: &[u8]) -> CardName {
        let card = Contact::parse(bytes);
        let value = |name| find_contact_field(name).and_then(|field| card.first_value(field));
        let has_parts = !card_properties(bytes, &["N"]).is_empty();
        let has_full = !card_properties(bytes, &["FN"]).is_empty();
        CardName { full: value("full_name").filter(|_| has_full), spoken: value("name"), has_parts }
    }

    /// Returns whether FN has the parts of N in spoken order, so that it changes with them.
    pub(super) fn is_full_name_of_parts(&self) -> bool {
        self.full.is_some() && self.full == self.spoken
    }
}

/// Splits a full name into the components of N: the last word is the family name, unless a comma
/// separates the family name from the given names. A single word is a given name.
pub(super) fn split_full_name(name: &str) -> [String; 5] {
    let name = name.trim();
    let (family, given) = match (name.split_once(','), name.rsplit_once(char::is_whitespace)) {
        (Some((family, given)), _) => (family, given),
        (None, Some((given, family))) => (family, given),
        (None, None) => ("", name),
    };
    let [family, given] = [family, given].map(|part| part.trim().to_string());
    [family, given, String::new(), String::new(), String::new()]
}
