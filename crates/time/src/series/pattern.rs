//! When in the week, and on which days of the year, something can be: two masks, by which a window passes over a series, or
//! takes it, without finding its occurrences.
//!
//! A mask may name times at which nothing is, never leave one out at which something is. What meets a window shares a moment with
//! it, so the masks of both have that moment in common. This is apart from `question` because it says nothing of a series but
//! for a comparison.

use super::{Clock, Series};
use crate::civil::{DAY, Date, FIRST_DAY, LAST_DAY};
use crate::value::{Length, Nominal};

/// Seconds of a part of the week, and how many parts a week has.
const PART: i64 = 3 * 3600;
const PARTS: i64 = 7 * DAY / PART;
/// 1970 began on a Thursday.
const MONDAY: i64 = 3 * DAY;
/// An occurrence that takes longer than this can be at any time.
const LONGEST: i64 = 3 * DAY;
/// Bits of a year: the days of a month, and behind them the months.
const MONTH_DAYS: u32 = 31;
const ALL_DAYS: u64 = (1 << MONTH_DAYS) - 1;
const ALL_MONTHS: u64 = (1 << 12) - 1;
/// Days of a month that the shortest one does not have.
const SHORTEST: u32 = 28;

/// When in the week, and on which days of the year: in UTC, or in the time of a clock that floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// Parts of the week, of three hours each: bit 0 begins on Monday at midnight.
    pub week: u64,
    /// Days of a month, bit 0 is the first; behind these 31, the months, bit 31 is January. Something is on one of these days of
    /// one of these months.
    pub year: u64,
}

impl Pattern {
    /// At any time.
    pub const ANY: Pattern =
        Pattern { week: (1 << PARTS) - 1, year: ALL_DAYS | ALL_MONTHS << MONTH_DAYS };

    /// When occurrences of a series can be: those of its rule, not those that were moved.
    #[must_use]
    pub fn of(series: &Series) -> Pattern {
        let [rule] = series.rules() else { return Pattern::ANY };
        let length = by_the_clock(series);
        if !series.is_by_rules() || length > LONGEST {
            return Pattern::ANY;
        }
        let start = series.start();
        let second = start.second_of_day();
        let times = if rule.keeps_time_of_day() { (second, second) } else { (0, DAY - 1) };
        let (low, high) = match series.clock() {
            Clock::Zone(zone) => zone.offsets(),
            Clock::Utc | Clock::Floating => (0, 0),
        };
        // From the beginning of a day by its own clock: the first and the last second that something on it can take.
        let first = times.0 - i64::from(high);
        let last = times.1 + length.max(1) - 1 - i64::from(low);
        // DTSTART counts, whether the rule matches it or not.
        let date = start.date();
        let weekdays = u64::from(rule.weekdays(start)) | 1 << (start.day() + 3).rem_euclid(7);
        let days = u64::from(rule.month_days(start) >> 1) | 1 << (date.day - 1);
        let months = u64::from(rule.months(start)) | 1 << (date.month - 1);
        Pattern { week: week(weekdays, first, last), year: year(days, months, first, last) }
    }

    /// The window from one second up to, not including, another one.
    #[must_use]
    pub fn of_window(from: i64, to: i64) -> Pattern {
        let last = to.saturating_sub(1);
        let lasts = last.saturating_sub(from);
        if lasts < 0 {
            return Pattern { week: 0, year: 0 };
        }
        let week = parts(from, last);
        let days = from.div_euclid(DAY)..=last.div_euclid(DAY);
        let known = FIRST_DAY..=LAST_DAY;
        if lasts > 366 * DAY || !known.contains(days.start()) || !known.contains(days.end()) {
            return Pattern { week, ..Pattern::ANY };
        }
        let year = days.fold(0, |set, day| {
            let date = Date::of_day(day);
            set | 1 << (date.day - 1) | 1 << (MONTH_DAYS + u32::from(date.month) - 1)
        });
        Pattern { week, year }
    }

    /// The weekdays on which something can be: bit 0 is Monday.
    #[must_use]
    pub fn weekdays(self) -> u8 {
        let parts = DAY / PART;
        let day = |day: i64| self.week >> (day * parts) & ((1 << parts) - 1) != 0;
        (0..7).filter(|number| day(*number)).fold(0, |set, number| set | 1 << number)
    }

    /// The days of a month on which something can be: bit 0 is the first.
    #[must_use]
    pub fn month_days(self) -> u32 {
        (self.year & ALL_DAYS) as u32
    }

    /// The months in which something can be: bit 0 is January.
    #[must_use]
    pub fn months(self) -> u16 {
        (self.year >> MONTH_DAYS & ALL_MONTHS) as u16
    }

    /// Does something surely begin in the window from one second up to another one, that begins before it and goes on behind it, and
    /// of which one follows another after at most `gap` seconds?
    ///
    /// The last that begins before the window begins at one of the times of this pattern: if these lie well before the window, the
    /// next need not wait for the whole of the gap.
    #[must_use]
    pub fn begins_in(self, gap: i64, from: i64, to: i64) -> bool {
        let (turned, parts) = self.turned(from, to);
        let rest = turned.leading_zeros() - Pattern::ANY.week.leading_zeros();
        gap <= to.saturating_sub(from)
            || parts > 0 && gap <= parts.saturating_add(rest.into()).saturating_mul(PART)
    }

    /// Are all times in the window, up to not including its end, at which something can be on one of its days? Then it has what
    /// happens on each of these days in each week.
    #[must_use]
    pub fn has_day_in(self, from: i64, to: i64) -> bool {
        let (turned, parts) = self.turned(from, to);
        // In a week and more there may be a time twice, and what happens then at another one where the clock has changed.
        if parts >= PARTS {
            return false;
        }
        let mut inside = turned & ((1 << parts) - 1);
        if turned >> (PARTS - 1) & 1 == 1 {
            inside &= inside + 1;
        }
        if turned >> parts & 1 == 1 && parts > 0 {
            let reach_out = (inside << (64 - parts)).leading_ones();
            inside &= (1 << (parts - i64::from(reach_out))) - 1;
        }
        inside != 0
    }

    /// The parts of the week in the order in which they come from the first that is all in the window, which is bit 0; and how many are.
    fn turned(self, from: i64, to: i64) -> (u64, i64) {
        let part = |second: i64| second.saturating_add(MONDAY).div_euclid(PART);
        let (first, end) = (part(from.saturating_add(PART - 1)), part(to));
        let place = first.rem_euclid(PARTS);
        let turned = (self.week >> place | self.week << (PARTS - place)) & Pattern::ANY.week;
        (turned, (end - first).max(0))
    }

    /// Can something of the one be at a time of the other?
    #[must_use]
    pub fn meets(self, other: Pattern) -> bool {
        let year = self.year & other.year;
        self.week & other.week != 0 && year & ALL_DAYS != 0 && year >> MONTH_DAYS != 0
    }
}

/// How long an occurrence takes, as its clock shows it.
fn by_the_clock(series: &Series) -> i64 {
    let length = match series.length() {
        Length::Exact(seconds) => seconds,
        Length::Nominal(Nominal { days, seconds }) => {
            days.saturating_mul(DAY).saturating_add(seconds)
        }
    };
    length.max(if series.is_date() { DAY } else { 0 })
}

/// The parts of the week from one second to another one, both included.
fn parts(first: i64, last: i64) -> u64 {
    let part = |second: i64| second.saturating_add(MONDAY).div_euclid(PART);
    let (first, last) = (part(first), part(last));
    if last - first >= PARTS {
        return Pattern::ANY.week;
    }
    (first..=last).fold(0, |set, part| set | 1 << part.rem_euclid(PARTS))
}

/// The parts of the week in which something is that is on these weekdays, within these seconds from the day's beginning.
fn week(weekdays: u64, first: i64, last: i64) -> u64 {
    (0..7)
        .filter(|day| weekdays >> day & 1 == 1)
        .fold(0, |set, day| set | parts(day * DAY - MONDAY + first, day * DAY - MONDAY + last))
}

/// The days of the month, and the months, on which something is that begins on these.
fn year(days: u64, months: u64, first: i64, last: i64) -> u64 {
    let (earlier, later) = (-first.div_euclid(DAY), last.div_euclid(DAY));
    let (mut set, mut of) = (days, months);
    let mut shifted = days;
    for _ in 0..earlier {
        if shifted & 1 == 1 {
            of |= (of >> 1 | of << 11) & ALL_MONTHS;
        }
        // The last day of a month has any of four numbers.
        let last_days = if shifted & 1 == 1 { ALL_DAYS & !((1 << (SHORTEST - 1)) - 1) } else { 0 };
        shifted = shifted >> 1 | last_days;
        set |= shifted;
    }
    shifted = days;
    for _ in 0..later {
        if shifted >> (SHORTEST - 1) != 0 {
            of |= (of << 1 | of >> 11) & ALL_MONTHS;
            shifted = shifted << 1 | 1;
        } else {
            shifted <<= 1;
        }
        shifted &= ALL_DAYS;
        set |= shifted;
    }
    set | of << MONTH_DAYS
}
