//! Time ranges: the two instants that a query asks between.

use larder_time::civil::Instant;
use larder_time::zone::Zone;

/// The target of a search in a time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeTarget {
    /// Items with an occurrence that ends after the beginning of the range and begins before its
    /// end.
    Occurrences,
    /// Items with an alarm that rings in the range.
    Alarms,
}

/// A time range: from an instant up to, not including, another one.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeRange {
    /// The beginning.
    pub from: Instant,
    /// The end.
    pub to: Instant,
    /// The zone in which floating times and days are read.
    pub local_zone: Zone,
    /// The target of the search.
    pub target: TimeTarget,
}
