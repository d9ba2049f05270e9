//! Civil times and instants in whole seconds, and calendar arithmetic on day numbers.
//!
//! The module is independent of time zones: a [`CivilTime`] is the reading of a clock, an
//! [`Instant`] is a point on the UTC timeline, and only [`zone`](crate::zone) converts between
//! them. All arithmetic is on integers within the years 1 to 9999. A result outside is clamped for
//! a time range and refused for a date.

use std::fmt;

/// Seconds of a civil day. The real length of a local day depends on its zone.
pub const DAY_SECONDS: i64 = 86_400;

/// The day number of 1 January of the year 1, the first supported day.
pub const FIRST_DAY_NUMBER: i64 = -719_162;

/// The day number of 31 December 9999, the last supported day.
pub const LAST_DAY_NUMBER: i64 = 2_932_896;

/// The reading of a clock, in seconds since its 1970-01-01T00:00:00; the zone of the clock is kept
/// elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CivilTime(i64);

/// A point in time: seconds since 1970-01-01T00:00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(i64);

impl CivilTime {
    /// 0001-01-01T00:00:00.
    pub const MIN: CivilTime = CivilTime(FIRST_DAY_NUMBER * DAY_SECONDS);
    /// 9999-12-31T23:59:59.
    pub const MAX: CivilTime = CivilTime(LAST_DAY_NUMBER * DAY_SECONDS + DAY_SECONDS - 1);

    /// Returns the civil time for these seconds, if it is in the years 1 to 9999.
    #[must_use]
    pub const fn new(seconds: i64) -> Option<CivilTime> {
        if seconds >= Self::MIN.0 && seconds <= Self::MAX.0 {
            Some(CivilTime(seconds))
        } else {
            None
        }
    }

    /// Returns the civil time for these seconds, clamped to the supported range.
    #[must_use]
    pub fn from_seconds_clamped(seconds: i64) -> CivilTime {
        CivilTime(seconds.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Returns midnight of a day, clamped to the supported range.
    #[must_use]
    pub fn midnight(day: i64) -> CivilTime {
        CivilTime(day.clamp(FIRST_DAY_NUMBER, LAST_DAY_NUMBER) * DAY_SECONDS)
    }

    /// Returns the civil time on this date, given the seconds since midnight (less than a day).
    #[must_use]
    pub fn from_date(date: Date, seconds: i64) -> Option<CivilTime> {
        (0..DAY_SECONDS)
            .contains(&seconds)
            .then(|| CivilTime(date.day_number() * DAY_SECONDS + seconds))
    }

    /// Seconds since 1970-01-01T00:00:00.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// The number of the day; 0 is 1 January 1970.
    #[must_use]
    pub const fn day_number(self) -> i64 {
        self.0.div_euclid(DAY_SECONDS)
    }

    /// Seconds since midnight.
    #[must_use]
    pub const fn second_of_day(self) -> i64 {
        self.0.rem_euclid(DAY_SECONDS)
    }

    /// The date.
    #[must_use]
    pub fn date(self) -> Date {
        Date::from_day_number(self.day_number())
    }

    /// Adds seconds, clamped to the supported range.
    #[must_use]
    pub fn saturating_add(self, seconds: i64) -> CivilTime {
        CivilTime::from_seconds_clamped(self.0.saturating_add(seconds))
    }
}

/// Formats as an RFC 5545 date-time without zone: `20260305T120000`.
impl fmt::Display for CivilTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Date { year, month, day }, second) = (self.date(), self.second_of_day());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
    }
}

impl Instant {
    /// Before every civil time in every zone.
    pub const MIN: Instant = Instant(CivilTime::MIN.0 - 2 * DAY_SECONDS);
    /// After every civil time in every zone.
    pub const MAX: Instant = Instant(CivilTime::MAX.0 + 2 * DAY_SECONDS);

    /// Returns whether an instant with these seconds needs no clamping.
    pub(crate) fn is_in_range(seconds: i64) -> bool {
        Instant::from_seconds_clamped(seconds).0 == seconds
    }

    /// Returns the instant for these seconds, clamped to the supported range.
    #[must_use]
    pub fn from_seconds_clamped(seconds: i64) -> Instant {
        Instant(seconds.clamp(Self::MIN.0, Self::MAX.0))
    }

    /// Seconds since 1970-01-01T00:00:00 UTC.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// Adds seconds, clamped to the supported range.
    #[must_use]
    pub fn saturating_add(self, seconds: i64) -> Instant {
        Instant::from_seconds_clamped(self.0.saturating_add(seconds))
    }

    /// Returns the civil time at this offset from UTC in seconds, east positive.
    #[must_use]
    pub fn to_civil(self, offset: i32) -> CivilTime {
        CivilTime::from_seconds_clamped(self.0 + i64::from(offset))
    }
}

/// A date of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 1 to 9999.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl Date {
    /// Returns the date if it exists.
    #[must_use]
    pub fn new(year: i32, month: u8, day: u8) -> Option<Date> {
        let valid = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        valid.then_some(Date { year, month, day })
    }

    /// Returns the date of a day number, clamped to the supported range.
    #[must_use]
    pub fn from_day_number(day: i64) -> Date {
        // Years count from 1 March of the year 0, so that the leap day is the last day of a year.
        let day = day.clamp(FIRST_DAY_NUMBER, LAST_DAY_NUMBER) + 719_468;
        let (era, of_era) = (day / 146_097, day % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let date = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = 400 * era + year + i64::from(month <= 2);
        Date { year: year as i32, month: month as u8, day: date as u8 }
    }

    /// The number of the day.
    #[must_use]
    pub fn day_number(self) -> i64 {
        first_day_of_month(self.year, self.month) + i64::from(self.day) - 1
    }
}

/// Returns whether the year has a 29 February.
#[must_use]
pub const fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the number of days of a year.
#[must_use]
pub const fn days_in_year(year: i32) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

/// Returns the number of days of a month (1 to 12).
#[must_use]
pub const fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 => 28 + is_leap(year) as u8,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the day number of 1 January of a year.
#[must_use]
pub const fn first_day_of_year(year: i32) -> i64 {
    let before = year as i64 - 1;
    FIRST_DAY_NUMBER + 365 * before + before.div_euclid(4) - before.div_euclid(100)
        + before.div_euclid(400)
}

/// Returns the day number of the first day of a month (1 to 12).
#[must_use]
pub const fn first_day_of_month(year: i32, month: u8) -> i64 {
    const DAYS_BEFORE_MONTH: [i64; 13] = [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap = (month > 2 && is_leap(year)) as i64;
    first_day_of_year(year) + DAYS_BEFORE_MONTH[(month % 13) as usize] + leap
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "they are called what they are")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Weekday {
    /// All weekdays, Monday first.
    pub const ALL: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    /// Returns the weekday of a day number.
    #[must_use]
    pub const fn from_day_number(day: i64) -> Weekday {
        Self::ALL[(day + 3).rem_euclid(7) as usize]
    }

    /// 0 for Monday to 6 for Sunday.
    #[must_use]
    pub const fn number_from_monday(self) -> u8 {
        self as u8
    }
}

/// Returns the first day of the week of a day, if weeks begin on `first`.
#[must_use]
pub const fn first_day_of_week(day: i64, first: Weekday) -> i64 {
    day - (day + 3 - first.number_from_monday() as i64).rem_euclid(7)
}

/// Returns the first day of the first week of a year: the first week with at least four days in it,
/// as in ISO 8601 for weeks that begin on Monday.
#[must_use]
pub const fn first_day_of_week_one(year: i32, first: Weekday) -> i64 {
    first_day_of_week(first_day_of_year(year) + 3, first)
}

/// Returns the week year of a day, and the number of its week.
#[must_use]
pub fn week_year_and_number(day: i64, first: Weekday) -> (i32, u8) {
    // The fourth day of a week lies in the week year.
    let start = first_day_of_week(day, first);
    let year = Date::from_day_number(start + 3).year;
    (year, ((start - first_day_of_week_one(year, first)) / 7 + 1) as u8)
}

/// Returns the number of weeks of a week year: 52 or 53.
#[must_use]
pub const fn weeks_in_year(year: i32, first: Weekday) -> u8 {
    ((first_day_of_week_one(year + 1, first) - first_day_of_week_one(year, first)) / 7) as u8
}
