//! What a row of the interval index tells of a series, so that a window need not ask it: packed
//! into one column, as a single event, which is most of them, has nothing of it.
//!
//! It says when the series is surely in a window, and when it surely is not; `search` decides with
//! it, and asks the series in all other cases. How rows lie is found in `span`.

use crate::inverted_index::varint::{read_varint, write_varint};
use larder_time::civil::DAY_SECONDS;
use larder_time::series::TimePattern;

use super::RecurrenceBucket;

/// Flags of a packed hint.
const FIRST_FLAG: u64 = 1;
const LAST_FLAG: u64 = 2;
const EACH_DAY_FLAG: u64 = 4;
const PATTERN_FLAG: u64 = 8;
const GAP_FLAG: u64 = 16;
const EACH_WEEK_FLAG: u64 = 32;
const COMPLETE_AFTER_FLAG: u64 = 64;

/// What is known of a series beside its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesSummary {
    /// The most seconds from one occurrence to the next, by its own clock if that floats.
    pub(crate) max_gap_seconds: Option<i64>,
    /// There is one at its beginning, and one at its end.
    pub(crate) has_occurrences_at_ends: (bool, bool),
    /// Behind this second none is missing: what is said of the gap, and of days, holds there only.
    pub(crate) complete_after: i64,
    /// There is one on each day of its slot.
    pub(crate) is_on_each_bucket_day: bool,
    /// There is one on each of its weekdays in each week.
    pub(crate) is_gapless_weekly: bool,
    /// When in the week and the year it can be.
    pub(crate) time_pattern: Option<TimePattern>,
}

impl SeriesSummary {
    /// Nothing is known.
    pub(crate) const UNKNOWN: SeriesSummary = SeriesSummary {
        max_gap_seconds: None,
        has_occurrences_at_ends: (false, false),
        complete_after: i64::MIN,
        is_on_each_bucket_day: false,
        is_gapless_weekly: false,
        time_pattern: None,
    };

    /// The same of a series that is in this slot alone. It passes over none of the slot's days
    /// where those that follow each other are never as far apart as every second day is.
    pub(crate) fn with_bucket(self, slot: RecurrenceBucket) -> SeriesSummary {
        let shortest = match slot {
            RecurrenceBucket::MonthDay(_) => 28,
            RecurrenceBucket::YearDay(_, 1..) => 365,
            RecurrenceBucket::Any
            | RecurrenceBucket::Weekday(_)
            | RecurrenceBucket::YearDay(_, 0) => return self,
        };
        // The clock may change in between.
        let each_day =
            self.max_gap_seconds.is_some_and(|gap| gap < 2 * shortest * DAY_SECONDS - DAY_SECONDS);
        SeriesSummary { is_on_each_bucket_day: each_day, ..self }
    }

    /// As it stands in its column, before what is kept of the series itself.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(self.has_occurrences_at_ends.0, FIRST_FLAG)
            | flag(self.has_occurrences_at_ends.1, LAST_FLAG)
            | flag(self.is_on_each_bucket_day, EACH_DAY_FLAG)
            | flag(self.is_gapless_weekly, EACH_WEEK_FLAG)
            | flag(self.complete_after > i64::MIN, COMPLETE_AFTER_FLAG)
            | flag(self.time_pattern.is_some(), PATTERN_FLAG)
            | flag(self.max_gap_seconds.is_some(), GAP_FLAG);
        let mut bytes = Vec::with_capacity(24);
        write_varint(&mut bytes, flags);
        if let Some(gap) = self.max_gap_seconds {
            write_varint(&mut bytes, gap.max(0).unsigned_abs());
        }
        if self.complete_after > i64::MIN {
            bytes.extend(self.complete_after.to_le_bytes());
        }
        if let Some(TimePattern { week_mask: week, year_mask: year }) = self.time_pattern {
            bytes.extend(week.to_le_bytes());
            bytes.extend(year.to_le_bytes());
        }
        bytes
    }

    /// Reads it, and leaves what is kept of the series; `None` where it is malformed.
    pub(crate) fn unpack(bytes: &mut &[u8]) -> Option<SeriesSummary> {
        let flags = read_varint(bytes)?;
        let gap = match flags & GAP_FLAG {
            0 => None,
            _ => Some(i64::try_from(read_varint(bytes)?).ok()?),
        };
        let whole_behind = match flags & COMPLETE_AFTER_FLAG {
            0 => i64::MIN,
            _ => read_u64(bytes)? as i64,
        };
        let pattern = match flags & PATTERN_FLAG {
            0 => None,
            _ => Some(TimePattern { week_mask: read_u64(bytes)?, year_mask: read_u64(bytes)? }),
        };
        let ends = (flags & FIRST_FLAG != 0, flags & LAST_FLAG != 0);
        Some(SeriesSummary {
            max_gap_seconds: gap,
            has_occurrences_at_ends: ends,
            complete_after: whole_behind,
            is_on_each_bucket_day: flags & EACH_DAY_FLAG != 0,
            is_gapless_weekly: flags & EACH_WEEK_FLAG != 0,
            time_pattern: pattern,
        })
    }
}

fn read_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}
