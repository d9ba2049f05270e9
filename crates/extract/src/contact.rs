//! Contacts: parsing one that comes in.
//!
//! Their fields are indexed by the means that all kinds share.

use crate::calendar_context::CalendarContext;
use crate::extractor::Extractor;
use crate::parsed_item::{ParsedItem, RejectedItem};
use larder_format::kind::Kind;

impl Extractor {
    /// Parses a vCard, and extracts its entry.
    ///
    /// # Errors
    /// Fails if the bytes are not a contact; returns them with the problem.
    #[allow(clippy::result_large_err, reason = "the error gives the bytes back, unmoved")]
    pub fn parse_contact(&self, bytes: Vec<u8>) -> Result<ParsedItem, RejectedItem> {
        self.parse_item(Kind::Contact, bytes, &CalendarContext::default())
    }
}
