//! Interval entries: the intervals under which the interval index finds a schedule.
//!
//! An entry is a span, with a first start and a last end, or a bucket of a long series (see
//! `larder_index::interval`). Entries are pure values; `interval_table` stores them.

use crate::series_summary::{RecurrenceBucket, SeriesSummary};
use larder_extract::TimeTarget;
use larder_time::civil::DAY_SECONDS;

/// An entry of the interval index. Without a series summary, the schedule overlaps every time range
/// that its interval overlaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IntervalEntry {
    pub(crate) target: TimeTarget,
    /// The seconds are floating local time.
    pub(crate) is_floating: bool,
    /// The bucket of a long series; `None`: the entry is a span.
    pub(crate) bucket: Option<RecurrenceBucket>,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) series_summary: Option<SeriesSummary>,
}

impl IntervalEntry {
    /// Creates a span. A span without a duration counts as one second.
    pub(crate) fn from_span(
        target: TimeTarget,
        is_floating: bool,
        (start, end): (i64, i64),
        series_summary: Option<SeriesSummary>,
    ) -> IntervalEntry {
        let end = end.max(start + 1);
        IntervalEntry { target, is_floating, bucket: None, start, end, series_summary }
    }

    /// Creates the entry of a long series in one bucket.
    pub(crate) fn from_bucket(
        target: TimeTarget,
        is_floating: bool,
        bucket: RecurrenceBucket,
        (start, end): (i64, i64),
        series_summary: Option<SeriesSummary>,
    ) -> IntervalEntry {
        IntervalEntry { target, is_floating, bucket: Some(bucket), start, end, series_summary }
    }

    /// Returns the seconds in UTC between which the entry lies in any zone.
    pub(crate) fn bounds(&self) -> (i64, i64) {
        (self.start.saturating_sub(DAY_SECONDS), self.end.saturating_add(DAY_SECONDS))
    }

    /// Merges another entry into this one if both have the same interval, and returns whether it
    /// did. If their summaries differ, the merged entry has no summary.
    pub(crate) fn merge_if_equal(&mut self, other: &IntervalEntry) -> bool {
        let key = |entry: &IntervalEntry| {
            (entry.target, entry.is_floating, entry.bucket, entry.start, entry.end)
        };
        let is_same = key(self) == key(other);
        if is_same && self.series_summary != other.series_summary {
            self.series_summary = Some(SeriesSummary::UNKNOWN);
        }
        is_same
    }
}
