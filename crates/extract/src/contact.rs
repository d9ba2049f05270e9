//! Contacts: the entries of their fields.

use crate::field_extraction::{FieldExtractor, FieldValues};
use crate::parsed_item::{IndexEntry, SortKeys};
use larder_format::contact::Contact;
use larder_format::field::{CONTACT_FIELDS, Field};

/// Extracts the entry of a contact.
pub(crate) fn extract(fields: &FieldExtractor, contact: &Contact<'_>) -> IndexEntry {
    fields.extract(contact, CONTACT_FIELDS)
}

/// Extracts the sort keys of a contact.
pub(crate) fn extract_sort_keys(fields: &FieldExtractor, contact: &Contact<'_>) -> SortKeys {
    fields.extract_sort_keys(contact, CONTACT_FIELDS)
}

impl FieldValues for Contact<'_> {
    fn values(&self, field: &Field) -> Vec<String> {
        Contact::values(self, field)
    }

    fn first(&self, field: &Field) -> Option<String> {
        Contact::first_value(self, field)
    }

    fn has_uid(&self) -> bool {
        self.uid().is_some()
    }
}
