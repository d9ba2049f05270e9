//! Series summaries: a few facts about a series that decide most time ranges without it.
//!
//! A summary tells when the series certainly has an occurrence in a time range, and when it
//! certainly has none; in all other cases the series itself is evaluated (see `interval_search`).
//! It is packed into one column of the interval index, which is NULL for a single event. Separate
//! from `larder-index`, whose tests on time patterns would need `larder-time`.

use larder_index::varint::{read_varint, write_varint};
use larder_time::civil::{DAY_SECONDS, Weekday};
use larder_time::series::TimePattern;

/// Flags of a packed summary.
const FIRST_FLAG: u64 = 1;
const LAST_FLAG: u64 = 2;
const EACH_DAY_FLAG: u64 = 4;
const PATTERN_FLAG: u64 = 8;
const GAP_FLAG: u64 = 16;
const EACH_WEEK_FLAG: u64 = 32;
const COMPLETE_AFTER_FLAG: u64 = 64;

/// The days on which occurrences of a long series can lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RecurrenceBucket {
    Any,
    Weekday(Weekday),
    MonthDay(u8),
    /// A month and a day of it; day 0 is any day of the month.
    YearDay(u8, u8),
}

/// Facts about a series other than its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeriesSummary {
    /// The greatest distance from one start to the next; on its own clock if that floats.
    pub(crate) max_gap_seconds: Option<i64>,
    /// Whether an occurrence begins at the beginning of the interval, and one ends at its end.
    pub(crate) has_occurrences_at_ends: (bool, bool),
    /// No occurrence is missing after this second: the gap and the two flags below hold only there.
    pub(crate) complete_after: i64,
    /// Each day of the bucket has an occurrence.
    pub(crate) is_on_each_bucket_day: bool,
    /// Each of the weekdays of the series has an occurrence in each week.
    pub(crate) is_gapless_weekly: bool,
    /// The times of the week and days of the year at which an occurrence can lie.
    pub(crate) time_pattern: Option<TimePattern>,
}

impl SeriesSummary {
    /// The summary that decides nothing.
    pub(crate) const UNKNOWN: SeriesSummary = SeriesSummary {
        max_gap_seconds: None,
        has_occurrences_at_ends: (false, false),
        complete_after: i64::MIN,
        is_on_each_bucket_day: false,
        is_gapless_weekly: false,
        time_pattern: None,
    };

    /// Returns the summary of a series that lies in this bucket alone. The series leaves out no day
    /// of the bucket if consecutive occurrences are less than two such days apart.
    pub(crate) fn with_bucket(self, bucket: RecurrenceBucket) -> SeriesSummary {
        let min_days = match bucket {
            RecurrenceBucket::MonthDay(_) => 28,
            RecurrenceBucket::YearDay(_, 1..) => 365,
            RecurrenceBucket::Any
            | RecurrenceBucket::Weekday(_)
            | RecurrenceBucket::YearDay(_, 0) => return self,
        };
        // The offset from UTC may change in between.
        let limit = 2 * min_days * DAY_SECONDS - DAY_SECONDS;
        let is_on_each_bucket_day = self.max_gap_seconds.is_some_and(|gap| gap < limit);
        SeriesSummary { is_on_each_bucket_day, ..self }
    }

    /// Packs the summary. In the column, the packed schedule may follow.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
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

    /// Unpacks a summary and leaves the packed schedule; `None` if the bytes are malformed.
    pub(crate) fn unpack(bytes: &mut &[u8]) -> Option<SeriesSummary> {
        let flags = read_varint(bytes)?;
        let gap = match flags & GAP_FLAG {
            0 => None,
            _ => Some(i64::try_from(read_varint(bytes)?).ok()?),
        };
        let complete_after = match flags & COMPLETE_AFTER_FLAG {
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
            complete_after,
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
