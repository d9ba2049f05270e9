//! The result of extraction: an item's bytes with everything that was derived from them.
//!
//! Separate from the extractor because items of all kinds give this one result.

use crate::calendar_context::CalendarContext;
use crate::index_config::IndexConfig;
use crate::schedule::ParsedSchedule;
use crate::term_extraction::ExtractedTerms;
use larder_format::component::CalendarVersion;
use larder_format::kind::Kind;
use larder_format::problem::Problem;
use std::sync::Arc;

/// An item's bytes with the entry that was extracted from them.
#[derive(Debug, Clone)]
pub struct ParsedItem {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: IndexDocument,
    /// The index configuration that the entry was extracted by.
    pub(crate) index_config: Arc<IndexConfig>,
    pub(crate) uid: Option<String>,
    pub(crate) context: ItemContext,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<LineWarning>,
}

/// Bytes that are no item, with the problem that rejects them.
#[derive(Debug, Clone)]
pub struct RejectedItem {
    /// The bytes, as they were passed in.
    pub bytes: Vec<u8>,
    /// The problem.
    pub problem: Problem,
}

/// A warning about the value in a line of an item: about its meaning, whereas a [`Problem`] is
/// about its syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineWarning {
    /// The line, counted from 1 within the item.
    pub line: u32,
    /// The warning: short, without the line and without a period at the end.
    pub text: String,
}

/// The facts about an item that its bytes do not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemContext {
    /// The kind.
    pub kind: Kind,
    /// The time of the occurrence that an override replaces; empty for every other item.
    pub recurrence_id: String,
    /// The calendar context, if the item needs one.
    pub calendar_context: Option<Arc<CalendarContext>>,
}

/// The entries of one item in all indexes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexDocument {
    /// The terms that the item is found by.
    pub terms: ExtractedTerms,
    /// Whether the bytes name a UID.
    pub has_uid: bool,
    /// Packed field values to store in the item's row; `None` if they are too long.
    pub stored_fields: Option<Vec<u8>>,
    /// The sort keys.
    pub sort_keys: SortKeys,
    /// The schedule of the item by itself.
    pub parsed_schedule: Option<Box<ParsedSchedule>>,
}

/// Sort keys: field numbers and keys.
pub type SortKeys = Vec<(u16, Vec<u8>)>;

impl ParsedItem {
    /// Returns the UID that the bytes name.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Returns the source bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the source bytes, without the rest.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.context.kind
    }

    /// Returns the time of the occurrence that an override replaces; empty for every other item.
    #[must_use]
    pub fn recurrence_id(&self) -> &str {
        &self.context.recurrence_id
    }

    /// Returns the calendar context, if the item needs one.
    #[must_use]
    pub fn calendar_context(&self) -> Option<&Arc<CalendarContext>> {
        self.context.calendar_context.as_ref()
    }

    /// Returns the problems of the syntax, in the order of the lines.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the warnings about values.
    #[must_use]
    pub fn warnings(&self) -> &[LineWarning] {
        &self.warnings
    }
}

impl ItemContext {
    /// Returns the version of the calendar around the item.
    pub(crate) fn calendar_version(&self) -> CalendarVersion {
        self.calendar_context.as_deref().map_or(CalendarVersion::V2_0, CalendarContext::version)
    }
}
