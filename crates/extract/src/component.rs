//! Components of a calendar of any kind: parsing one that comes in.
//!
//! Events, tasks and memos also have a schedule ([`event`](crate::event)); other components
//! (VFREEBUSY, VPOLL, ...) are stored and exported, but not searched.

use crate::calendar_context::CalendarContext;
use crate::extractor::Extractor;
use crate::parsed_item::{ParsedItem, RejectedItem};
use larder_format::kind::Kind;

impl Extractor {
    /// Parses a component of a calendar, and extracts its entry.
    ///
    /// # Errors
    /// Fails if the bytes are not a component; returns them with the problem.
    #[allow(clippy::result_large_err, reason = "the error gives the bytes back, unmoved")]
    pub fn parse_component(
        &self,
        bytes: Vec<u8>,
        calendar: &CalendarContext,
    ) -> Result<ParsedItem, RejectedItem> {
        self.parse_item(Kind::Component, bytes, calendar)
    }
}
