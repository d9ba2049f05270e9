//! Days, and the recurrence patterns of generated events.
//!
//! The patterns do not use the recurrence rules of `larder-time`, because generated calendars serve
//! to test and measure these.

use larder_time::civil::{Date, first_day_of_month};
use std::fmt;

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DayNumber(pub i64);

impl DayNumber {
    /// Returns the day of a date of the Gregorian calendar.
    pub fn from_date(year: i64, month: u64, day: u64) -> DayNumber {
        DayNumber(first_day_of_month(year as i32, month as u8) + day as i64 - 1)
    }

    /// Returns year, month and day.
    pub fn to_date(self) -> (i64, u64, u64) {
        let Date { year, month, day } = Date::from_day_number(self.0);
        (year.into(), month.into(), day.into())
    }

    /// Returns the day of the week; 0 is Monday.
    pub fn weekday(self) -> i64 {
        (self.0 + 3).rem_euclid(7)
    }

    /// Returns the day a number of days later.
    pub fn add_days(self, days: i64) -> DayNumber {
        DayNumber(self.0 + days)
    }

    /// Returns the `nth` (from 1) such weekday of a month, or the last one.
    pub(super) fn from_nth_weekday(
        year: i64,
        month: u64,
        weekday: i64,
        nth: Option<i64>,
    ) -> DayNumber {
        match nth {
            Some(nth) => {
                let first = DayNumber::from_date(year, month, 1);
                first.add_days((weekday - first.weekday()).rem_euclid(7) + 7 * (nth - 1))
            }
            None => {
                let (after, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                let last = DayNumber::from_date(after, next, 1).add_days(-1);
                last.add_days(-(last.weekday() - weekday).rem_euclid(7))
            }
        }
    }
}

/// Formats a DATE of iCalendar.
impl fmt::Display for DayNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.to_date();
        write!(f, "{year:04}{month:02}{day:02}")
    }
}

/// The codes of weekdays in rules.
pub(super) const WEEKDAY_CODES: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// A recurrence pattern. Parts that the rule does not name follow from the first day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecurrencePattern {
    /// Every day.
    Daily,
    /// Monday to Friday.
    Workdays,
    /// Some days (bit 0 is Monday) of every week or every second week.
    Weekly { interval: i64, days: u8 },
    /// The same day of each month.
    MonthlyByDay,
    /// The same numbered weekday of each month, such as the second Tuesday or the last Friday.
    MonthlyByWeekday,
    /// The same date of each year.
    Yearly,
}

impl RecurrencePattern {
    /// Returns the day near `day` on which a series begins.
    pub(super) fn first_on_or_after(self, day: DayNumber) -> DayNumber {
        match self {
            RecurrencePattern::Workdays if day.weekday() > 4 => day.add_days(7 - day.weekday()),
            // At most the 28th, so that no month lacks the day.
            RecurrencePattern::MonthlyByDay | RecurrencePattern::Yearly => {
                day.add_days((28 - day.to_date().2 as i64).min(0))
            }
            _ => day,
        }
    }

    /// Returns the first occurrence after `day` of a series that begins on `first`.
    pub(super) fn next_occurrence(self, first: DayNumber, day: DayNumber) -> DayNumber {
        let (year, month, date) = day.to_date();
        let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        match self {
            RecurrencePattern::Daily => day.add_days(1),
            RecurrencePattern::Workdays => day.add_days(if day.weekday() == 4 { 3 } else { 1 }),
            RecurrencePattern::Weekly { interval, days } => {
                let monday = |day: DayNumber| day.0 - day.weekday();
                let mut next = day.add_days(1);
                while days >> next.weekday() & 1 == 0
                    || (monday(next) - monday(first)) / 7 % interval != 0
                {
                    next = next.add_days(1);
                }
                next
            }
            RecurrencePattern::MonthlyByDay => DayNumber::from_date(next_year, next_month, date),
            RecurrencePattern::MonthlyByWeekday => DayNumber::from_nth_weekday(
                next_year,
                next_month,
                first.weekday(),
                RecurrencePattern::weekday_ordinal(first),
            ),
            RecurrencePattern::Yearly => DayNumber::from_date(year + 1, month, date),
        }
    }

    /// Returns the ordinal of a day among the same weekdays of its month, from 1; `None` for the
    /// fifth, which counts as the last.
    pub(super) fn weekday_ordinal(day: DayNumber) -> Option<i64> {
        Some((day.to_date().2 as i64 - 1) / 7 + 1).filter(|&ordinal| ordinal < 5)
    }

    /// Returns the rule without its end.
    pub(super) fn to_rrule(self, first: DayNumber) -> String {
        let date = first.to_date().2;
        match self {
            RecurrencePattern::Daily => "FREQ=DAILY".to_owned(),
            RecurrencePattern::Workdays => "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR".to_owned(),
            RecurrencePattern::Weekly { interval, days } => {
                let interval = if interval == 1 { "" } else { ";INTERVAL=2" };
                let codes: Vec<_> = (0..7)
                    .filter(|day| days >> day & 1 == 1)
                    .map(|day: usize| WEEKDAY_CODES[day])
                    .collect();
                format!("FREQ=WEEKLY{interval};BYDAY={}", codes.join(","))
            }
            RecurrencePattern::MonthlyByDay => format!("FREQ=MONTHLY;BYMONTHDAY={date}"),
            RecurrencePattern::MonthlyByWeekday => {
                let ordinal = RecurrencePattern::weekday_ordinal(first).unwrap_or(-1);
                format!("FREQ=MONTHLY;BYDAY={ordinal}{}", WEEKDAY_CODES[first.weekday() as usize])
            }
            RecurrencePattern::Yearly => "FREQ=YEARLY".to_owned(),
        }
    }
}
