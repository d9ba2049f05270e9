//! What is derived from a contact's bytes: whatever its fields give.

use crate::deriver::{Deriver, Entry, Fields, Placed, Prepared, SortKeys};
use larder_format::contact::{Contact, Problem};
use larder_format::field::{FIELDS, Field};
use std::sync::Arc;

impl Deriver {
    /// Reads a card and derives its rows. The problems are warnings; bytes that are no contact are given
    /// back with the problem that makes them none.
    #[allow(clippy::result_large_err, reason = "the refusal gives the bytes back, unmoved")]
    pub fn contact(&self, bytes: Vec<u8>) -> Result<(Prepared, Vec<Problem>), (Vec<u8>, Problem)> {
        let card = Contact::parse(&bytes);
        if let Some(refusal) = card.refusal() {
            let refusal = *refusal;
            drop(card);
            return Err((bytes, refusal));
        }
        let (entry, uid, problems) =
            (self.entry(&card, FIELDS), card.uid(), card.problems().to_vec());
        drop(card);
        let (summary, place) = (Arc::clone(self.summary()), Placed::contact());
        Ok((Prepared { bytes, entry, summary, uid, place }, problems))
    }

    pub(crate) fn contact_entry(&self, bytes: &[u8]) -> Entry {
        self.entry(&Contact::parse(bytes), FIELDS)
    }

    pub(crate) fn contact_sort(&self, bytes: &[u8]) -> SortKeys {
        self.sort(&Contact::parse(bytes), FIELDS)
    }
}

impl Fields for Contact<'_> {
    fn values(&self, field: &Field) -> Vec<String> {
        Contact::values(self, field)
    }

    fn first(&self, field: &Field) -> Option<String> {
        Contact::first(self, field)
    }

    fn names_uid(&self) -> bool {
        self.uid().is_some()
    }
}
