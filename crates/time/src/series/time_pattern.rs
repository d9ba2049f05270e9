//! The times of the week and the days of the year at which occurrences can be: two masks, by which
//! a query for a time range skips or accepts a series without expanding it.
//!
//! A mask may include times without occurrences, but never omits a time with one. If an occurrence
//! overlaps a range, they share an instant, so the masks of both contain the time of that instant.
//! Separate from `bounds` because a pattern only serves comparison.

use super::{Series, ZoneReference};
use crate::civil::{DAY_SECONDS, Date, FIRST_DAY_NUMBER, LAST_DAY_NUMBER};
use crate::value::{EventLength, IcalDuration};

/// The length of a part of the week in seconds, and the number of parts.
const PART_SECONDS: i64 = 3 * 3600;
const PARTS_PER_WEEK: i64 = 7 * DAY_SECONDS / PART_SECONDS;
/// 1970 began on a Thursday.
const EPOCH_SECONDS_AFTER_MONDAY: i64 = 3 * DAY_SECONDS;
/// A longer occurrence can be at any time.
const MAX_LENGTH_SECONDS: i64 = 3 * DAY_SECONDS;
/// Bits of the year mask: days of a month, followed by months.
const MONTH_DAY_BITS: u32 = 31;
const ALL_MONTH_DAYS_MASK: u64 = (1 << MONTH_DAY_BITS) - 1;
const ALL_MONTHS_MASK: u64 = (1 << 12) - 1;
/// The number of days of the shortest month.
const SHORTEST_MONTH_DAYS: u32 = 28;

/// Times of the week and days of the year: in UTC, or in floating time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimePattern {
    /// Parts of the week, three hours each: bit 0 begins on Monday at midnight.
    pub week_mask: u64,
    /// Days of a month in bits 0 to 30, months from bit 31 (January) on. Occurrences are on one of
    /// these days of one of these months.
    pub year_mask: u64,
}

impl TimePattern {
    /// Any time.
    pub const ANY: TimePattern = TimePattern {
        week_mask: (1 << PARTS_PER_WEEK) - 1,
        year_mask: ALL_MONTH_DAYS_MASK | ALL_MONTHS_MASK << MONTH_DAY_BITS,
    };

    /// Returns the pattern of a series: of its rule, not of its overrides.
    #[must_use]
    pub fn from_series(series: &Series) -> TimePattern {
        let [rule] = series.rules() else { return TimePattern::ANY };
        let length = length_on_clock_seconds(series);
        if !series.has_only_rules() || length > MAX_LENGTH_SECONDS {
            return TimePattern::ANY;
        }
        let start = series.start();
        let second = start.second_of_day();
        let times =
            if rule.has_fixed_time_of_day() { (second, second) } else { (0, DAY_SECONDS - 1) };
        let (low, high) = match series.zone_reference() {
            ZoneReference::Zone(zone) => zone.offset_bounds(),
            ZoneReference::Utc | ZoneReference::Floating => (0, 0),
        };
        // The first and last second, from the start of a civil day, that an occurrence on it can
        // cover.
        let first = times.0 - i64::from(high);
        let last = times.1 + length.max(1) - 1 - i64::from(low);
        // DTSTART is an occurrence whether or not the rule matches it.
        let date = start.date();
        let weekdays =
            u64::from(rule.weekday_mask(start)) | 1 << (start.day_number() + 3).rem_euclid(7);
        let days = u64::from(rule.month_day_mask(start) >> 1) | 1 << (date.day - 1);
        let months = u64::from(rule.month_mask(start)) | 1 << (date.month - 1);
        TimePattern {
            week_mask: week_mask(weekdays, first, last),
            year_mask: year_mask(days, months, first, last),
        }
    }

    /// Returns the pattern of a half-open range in seconds.
    #[must_use]
    pub fn from_time_range(from: i64, to: i64) -> TimePattern {
        let last = to.saturating_sub(1);
        let lasts = last.saturating_sub(from);
        if lasts < 0 {
            return TimePattern { week_mask: 0, year_mask: 0 };
        }
        let week = parts_between(from, last);
        let days = from.div_euclid(DAY_SECONDS)..=last.div_euclid(DAY_SECONDS);
        let known = FIRST_DAY_NUMBER..=LAST_DAY_NUMBER;
        if lasts > 366 * DAY_SECONDS || !known.contains(days.start()) || !known.contains(days.end())
        {
            return TimePattern { week_mask: week, ..TimePattern::ANY };
        }
        let year = days.fold(0, |set, day| {
            let date = Date::from_day_number(day);
            set | 1 << (date.day - 1) | 1 << (MONTH_DAY_BITS + u32::from(date.month) - 1)
        });
        TimePattern { week_mask: week, year_mask: year }
    }

    /// The possible weekdays: bit 0 is Monday.
    #[must_use]
    pub fn weekday_mask(self) -> u8 {
        let parts = DAY_SECONDS / PART_SECONDS;
        let day = |day: i64| self.week_mask >> (day * parts) & ((1 << parts) - 1) != 0;
        (0..7).filter(|number| day(*number)).fold(0, |set, number| set | 1 << number)
    }

    /// The possible days of a month: bit 0 is the first.
    #[must_use]
    pub fn month_day_mask(self) -> u32 {
        (self.year_mask & ALL_MONTH_DAYS_MASK) as u32
    }

    /// The possible months: bit 0 is January.
    #[must_use]
    pub fn month_mask(self) -> u16 {
        (self.year_mask >> MONTH_DAY_BITS & ALL_MONTHS_MASK) as u16
    }

    /// Returns whether an occurrence certainly starts in the half-open range, for a series that
    /// starts before the range, continues after it, and has gaps of at most `gap` seconds.
    ///
    /// The last occurrence before the range starts at a time of this pattern. If these times lie
    /// well before the range, the next occurrence need not wait for the whole gap.
    #[must_use]
    pub fn has_start_in(self, gap: i64, from: i64, to: i64) -> bool {
        let (turned, parts) = self.rotate_week(from, to);
        let rest = turned.leading_zeros() - TimePattern::ANY.week_mask.leading_zeros();
        gap <= to.saturating_sub(from)
            || parts > 0 && gap <= parts.saturating_add(rest.into()).saturating_mul(PART_SECONDS)
    }

    /// Returns whether the half-open range contains all times of one of the pattern's days. Such a
    /// range contains an occurrence if there is one on each of these days in each week.
    #[must_use]
    pub fn has_whole_day_in(self, from: i64, to: i64) -> bool {
        let (turned, parts) = self.rotate_week(from, to);
        // A range of a week or more may contain a time twice, and an occurrence may be at another
        // time if the clock changed.
        if parts >= PARTS_PER_WEEK {
            return false;
        }
        let mut inside = turned & ((1 << parts) - 1);
        if turned >> (PARTS_PER_WEEK - 1) & 1 == 1 {
            inside &= inside + 1;
        }
        if turned >> parts & 1 == 1 && parts > 0 {
            let reach_out = (inside << (64 - parts)).leading_ones();
            inside &= (1 << (parts - i64::from(reach_out))) - 1;
        }
        inside != 0
    }

    /// Returns the parts of the week in range order, starting with the first part that lies wholly
    /// in the range as bit 0, and their number.
    fn rotate_week(self, from: i64, to: i64) -> (u64, i64) {
        let part = |second: i64| {
            second.saturating_add(EPOCH_SECONDS_AFTER_MONDAY).div_euclid(PART_SECONDS)
        };
        let (first, end) = (part(from.saturating_add(PART_SECONDS - 1)), part(to));
        let place = first.rem_euclid(PARTS_PER_WEEK);
        let turned = (self.week_mask >> place | self.week_mask << (PARTS_PER_WEEK - place))
            & TimePattern::ANY.week_mask;
        (turned, (end - first).max(0))
    }

    /// Returns whether the two patterns have a time in common.
    #[must_use]
    pub fn can_meet(self, other: TimePattern) -> bool {
        let year = self.year_mask & other.year_mask;
        self.week_mask & other.week_mask != 0
            && year & ALL_MONTH_DAYS_MASK != 0
            && year >> MONTH_DAY_BITS != 0
    }
}

/// The length of an occurrence in civil seconds.
fn length_on_clock_seconds(series: &Series) -> i64 {
    let length = match series.length() {
        EventLength::Exact(seconds) => seconds,
        EventLength::Nominal(IcalDuration { days, seconds }) => {
            days.saturating_mul(DAY_SECONDS).saturating_add(seconds)
        }
    };
    length.max(if series.is_date() { DAY_SECONDS } else { 0 })
}

/// Returns the parts of the week in a closed range of seconds.
fn parts_between(first: i64, last: i64) -> u64 {
    let part =
        |second: i64| second.saturating_add(EPOCH_SECONDS_AFTER_MONDAY).div_euclid(PART_SECONDS);
    let (first, last) = (part(first), part(last));
    if last - first >= PARTS_PER_WEEK {
        return TimePattern::ANY.week_mask;
    }
    (first..=last).fold(0, |set, part| set | 1 << part.rem_euclid(PARTS_PER_WEEK))
}

/// Returns the parts of the week covered by occurrences on these weekdays, between these seconds of
/// the day.
fn week_mask(weekdays: u64, first: i64, last: i64) -> u64 {
    (0..7).filter(|day| weekdays >> day & 1 == 1).fold(0, |set, day| {
        set | parts_between(
            day * DAY_SECONDS - EPOCH_SECONDS_AFTER_MONDAY + first,
            day * DAY_SECONDS - EPOCH_SECONDS_AFTER_MONDAY + last,
        )
    })
}

/// Returns the days of the month, and the months, covered by occurrences that start on these.
fn year_mask(days: u64, months: u64, first: i64, last: i64) -> u64 {
    let (earlier, later) = (-first.div_euclid(DAY_SECONDS), last.div_euclid(DAY_SECONDS));
    let (mut set, mut of) = (days, months);
    let mut shifted = days;
    for _ in 0..earlier {
        if shifted & 1 == 1 {
            of |= (of >> 1 | of << 11) & ALL_MONTHS_MASK;
        }
        // The last day of a month is one of four.
        let last_days = if shifted & 1 == 1 {
            ALL_MONTH_DAYS_MASK & !((1 << (SHORTEST_MONTH_DAYS - 1)) - 1)
        } else {
            0
        };
        shifted = shifted >> 1 | last_days;
        set |= shifted;
    }
    shifted = days;
    for _ in 0..later {
        if shifted >> (SHORTEST_MONTH_DAYS - 1) != 0 {
            of |= (of << 1 | of >> 11) & ALL_MONTHS_MASK;
            shifted = shifted << 1 | 1;
        } else {
            shifted <<= 1;
        }
        shifted &= ALL_MONTH_DAYS_MASK;
        set |= shifted;
    }
    set | of << MONTH_DAY_BITS
}
