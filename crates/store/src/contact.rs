//! What is derived from a contact's bytes: whatever its fields give.

use crate::extractor::{Extractor, FieldValues, IndexEntry, ItemContext, ParsedItem, SortKeys};
use larder_format::contact::{Contact, Problem};
use larder_format::field::{CONTACT_FIELDS, Field};
use std::sync::Arc;

impl Extractor {
    /// Reads a card and derives its rows. The problems are warnings; bytes that are no contact are
    /// given back with the problem that makes them none.
    #[allow(clippy::result_large_err, reason = "the refusal gives the bytes back, unmoved")]
    pub fn parse_contact(
        &self,
        bytes: Vec<u8>,
    ) -> Result<(ParsedItem, Vec<Problem>), (Vec<u8>, Problem)> {
        let card = Contact::parse(&bytes);
        if let Some(refusal) = card.fatal_problem() {
            let refusal = *refusal;
            drop(card);
            return Err((bytes, refusal));
        }
        let (entry, uid, problems) =
            (self.extract_fields(&card, CONTACT_FIELDS), card.uid(), card.problems().to_vec());
        drop(card);
        let (summary, place) = (Arc::clone(self.index_config()), ItemContext::for_contact());
        Ok((ParsedItem { bytes, entry, index_config: summary, uid, context: place }, problems))
    }

    pub(crate) fn extract_contact(&self, bytes: &[u8]) -> IndexEntry {
        self.extract_fields(&Contact::parse(bytes), CONTACT_FIELDS)
    }

    pub(crate) fn extract_contact_sort_keys(&self, bytes: &[u8]) -> SortKeys {
        self.extract_field_sort_keys(&Contact::parse(bytes), CONTACT_FIELDS)
    }
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
