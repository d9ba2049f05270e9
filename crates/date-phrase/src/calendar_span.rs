//! A span of the calendar: the result of every parser of dates.
//!
//! Separate from the parsers because dates in words, dates in digits and holidays all return it.

use crate::context::PhraseContext;
use crate::time_of_day::TimeOfDay;
use larder_time::civil::{
    CivilTime, DAY_SECONDS, Date, FIRST_DAY_NUMBER, LAST_DAY_NUMBER, days_in_month,
    first_day_of_month,
};

/// The length of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanUnit {
    Instant,
    Day,
    /// A week, month, year or number of days.
    Longer,
}

/// The meaning of a phrase: a span of local time. Its end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalendarSpan {
    pub(crate) from: CivilTime,
    pub(crate) to: CivilTime,
    pub(crate) unit: SpanUnit,
    /// The span depends on the present moment.
    pub(crate) is_relative: bool,
    /// The span is a weekday, which recurs a week later.
    pub(crate) is_weekly: bool,
    /// The word or number often means something else, as "sun" and `3/5` do. In a sentence it is a
    /// date only next to another word of date or time.
    pub(crate) is_weak: bool,
}

impl CalendarSpan {
    /// The span from one day to another, which is excluded. Days are day numbers.
    pub(crate) fn from_days(first: i64, end: i64, unit: SpanUnit) -> CalendarSpan {
        let to = if end > LAST_DAY_NUMBER { CivilTime::MAX } else { CivilTime::midnight(end) };
        let from = CivilTime::midnight(first);
        CalendarSpan {
            from,
            to: to.max(from),
            unit,
            is_relative: false,
            is_weekly: false,
            is_weak: false,
        }
    }

    pub(crate) fn from_day(day: i64) -> CalendarSpan {
        CalendarSpan::from_days(day, day + 1, SpanUnit::Day)
    }

    pub(crate) fn from_instant(from: CivilTime, exact: bool) -> CalendarSpan {
        let to = from.saturating_add(if exact { 1 } else { 60 });
        CalendarSpan {
            from,
            to,
            unit: SpanUnit::Instant,
            is_relative: false,
            is_weekly: false,
            is_weak: false,
        }
    }

    /// A number of months. `month` may lie outside 1 to 12: 13 is January of the next year.
    pub(crate) fn from_months(year: i64, month: i64, count: i64) -> CalendarSpan {
        let start = |number: i64| {
            let year = number.div_euclid(12);
            match i32::try_from(year) {
                Ok(year @ 1..=9999) => first_day_of_month(year, (number.rem_euclid(12) + 1) as u8),
                _ if year < 1 => FIRST_DAY_NUMBER,
                _ => LAST_DAY_NUMBER + 1,
            }
        };
        let number = year * 12 + month - 1;
        CalendarSpan::from_days(start(number), start(number + count), SpanUnit::Longer)
    }

    pub(crate) fn into_relative(self) -> CalendarSpan {
        CalendarSpan { is_relative: true, ..self }
    }

    /// Marks the span as relative unless the base of the context is fixed.
    pub(crate) fn relative_unless_fixed(self, context: &PhraseContext) -> CalendarSpan {
        CalendarSpan { is_relative: !context.is_fixed, ..self }
    }

    pub(crate) fn into_weak(self) -> CalendarSpan {
        CalendarSpan { is_weak: true, ..self }
    }

    /// The given time on the first day of the span.
    pub(crate) fn at_time(self, time: TimeOfDay) -> CalendarSpan {
        let from = CivilTime::midnight(self.from.day_number()).saturating_add(time.second);
        CalendarSpan {
            is_weekly: self.is_weekly,
            is_relative: self.is_relative,
            ..CalendarSpan::from_instant(from, time.has_seconds)
        }
    }

    /// The given time in the night that begins on the first day of the span. "tonight 1:00" is on
    /// the next day, unless it is that night now.
    pub(crate) fn at_night_time(self, time: TimeOfDay, context: &PhraseContext) -> CalendarSpan {
        const NIGHT_END_SECONDS: i64 = 6 * 3600;
        let now = context.now;
        let ours =
            self.from.day_number() == now.day_number() && now.second_of_day() < NIGHT_END_SECONDS;
        if time.second >= NIGHT_END_SECONDS || (ours && time.second >= now.second_of_day()) {
            return self.at_time(time);
        }
        self.at_time(TimeOfDay { second: time.second + DAY_SECONDS, ..time })
    }
}

/// Returns the next such date in a year, from the day of `base` on. 29 February may be years away.
pub(crate) fn next_yearly_date(month: u8, day: i64, base: CivilTime) -> Option<i64> {
    let first = base.date().year;
    let day = u8::try_from(day).ok()?;
    let dates = (first..first + 9).filter_map(|year| Date::new(year, month, day));
    let mut days = dates.map(Date::day_number);
    let next = days.find(|day| *day >= base.day_number());
    // In the last years of the calendar there may be no next date.
    next.or_else(|| Date::new(first, month, day).map(Date::day_number))
}

/// Returns the next day with this number in a month, from the day of `base` on: "the 15th".
pub(crate) fn next_day_of_month(day: i64, base: CivilTime) -> Option<i64> {
    let Date { year, month, .. } = base.date();
    let start = i64::from(year) * 12 + i64::from(month) - 1;
    let months = (start..start + 3).map(|number| {
        let year = (number.div_euclid(12) as i32).min(9999);
        (year, (number.rem_euclid(12) + 1) as u8)
    });
    let fits =
        months.filter(|(year, month)| (1..=i64::from(days_in_month(*year, *month))).contains(&day));
    let mut days = fits.map(|(year, month)| first_day_of_month(year, month) + day - 1);
    days.find(|day| *day * DAY_SECONDS >= CivilTime::midnight(base.day_number()).seconds())
}
