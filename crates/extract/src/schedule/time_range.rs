//! Time ranges: the two instants that a query searches between.

use larder_time::civil::Instant;
use larder_time::zone::Zone;

/// The times that a time range is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeTarget {
    /// Occurrences: one overlaps the range if it ends after the beginning of the range and begins
    /// before its end.
    Occurrences,
    /// Alarms that go off within the range.
    Alarms,
}

/// A time range: from one instant up to another one, which is excluded.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeRange {
    /// The beginning.
    pub from: Instant,
    /// The end.
    pub to: Instant,
    /// The zone in which floating times and dates are read.
    pub local_zone: Zone,
    /// The times that are compared with the range.
    pub target: TimeTarget,
}
