//! What a row of the interval index tells of a series, so that a window need not ask it: packed into one column, as a single
//! event, which is most of them, has nothing of it.
//!
//! It says when the series is surely in a window, and when it surely is not; `search` decides with it, and asks the series in all
//! other cases. How rows lie is found in `span`.

use crate::index::varint::{put, take};
use larder_time::civil::DAY;
use larder_time::series::Pattern;

use super::Slot;

/// Flags of a packed hint.
const FIRST: u64 = 1;
const LAST: u64 = 2;
const EACH_DAY: u64 = 4;
const PATTERN: u64 = 8;
const GAP: u64 = 16;
const EACH_WEEK: u64 = 32;
const BEHIND: u64 = 64;

/// What is known of a series beside its beginning and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Hint {
    /// The most seconds from one occurrence to the next, by its own clock if that floats.
    pub(crate) gap: Option<i64>,
    /// There is one at its beginning, and one at its end.
    pub(crate) ends: (bool, bool),
    /// Behind this second none is missing: what is said of the gap, and of days, holds there only.
    pub(crate) whole_behind: i64,
    /// There is one on each day of its slot.
    pub(crate) each_day: bool,
    /// There is one on each of its weekdays in each week.
    pub(crate) each_week: bool,
    /// When in the week and the year it can be.
    pub(crate) pattern: Option<Pattern>,
}

impl Hint {
    /// Nothing is known.
    pub(crate) const NONE: Hint = Hint {
        gap: None,
        ends: (false, false),
        whole_behind: i64::MIN,
        each_day: false,
        each_week: false,
        pattern: None,
    };

    /// The same of a series that is in this slot alone. It passes over none of the slot's days where those that follow each other
    /// are never as far apart as every second day is.
    pub(crate) fn in_slot(self, slot: Slot) -> Hint {
        let shortest = match slot {
            Slot::MonthDay(_) => 28,
            Slot::YearDay(_, 1..) => 365,
            Slot::Any | Slot::Weekday(_) | Slot::YearDay(_, 0) => return self,
        };
        // The clock may change in between.
        let each_day = self.gap.is_some_and(|gap| gap < 2 * shortest * DAY - DAY);
        Hint { each_day, ..self }
    }

    /// As it stands in its column, before what is kept of the series itself.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(self.ends.0, FIRST)
            | flag(self.ends.1, LAST)
            | flag(self.each_day, EACH_DAY)
            | flag(self.each_week, EACH_WEEK)
            | flag(self.whole_behind > i64::MIN, BEHIND)
            | flag(self.pattern.is_some(), PATTERN)
            | flag(self.gap.is_some(), GAP);
        let mut bytes = Vec::with_capacity(24);
        put(&mut bytes, flags);
        if let Some(gap) = self.gap {
            put(&mut bytes, gap.max(0).unsigned_abs());
        }
        if self.whole_behind > i64::MIN {
            bytes.extend(self.whole_behind.to_le_bytes());
        }
        if let Some(Pattern { week, year }) = self.pattern {
            bytes.extend(week.to_le_bytes());
            bytes.extend(year.to_le_bytes());
        }
        bytes
    }

    /// Reads it, and leaves what is kept of the series; `None` where it is malformed.
    pub(crate) fn unpack(bytes: &mut &[u8]) -> Option<Hint> {
        let flags = take(bytes)?;
        let gap = match flags & GAP {
            0 => None,
            _ => Some(i64::try_from(take(bytes)?).ok()?),
        };
        let whole_behind = match flags & BEHIND {
            0 => i64::MIN,
            _ => word(bytes)? as i64,
        };
        let pattern = match flags & PATTERN {
            0 => None,
            _ => Some(Pattern { week: word(bytes)?, year: word(bytes)? }),
        };
        let ends = (flags & FIRST != 0, flags & LAST != 0);
        Some(Hint {
            gap,
            ends,
            whole_behind,
            each_day: flags & EACH_DAY != 0,
            each_week: flags & EACH_WEEK != 0,
            pattern,
        })
    }
}

fn word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}
