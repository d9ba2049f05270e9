//! Spans.

use crate::context::PhraseContext;
use crate::time_of_day::TimeOfDay;
use larder_time::civil::{Civil, DAY, Date, FIRST_DAY, LAST_DAY, month_length, month_start};

/// How much of the calendar a phrase names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanUnit {
    Instant,
    Day,
    /// A week, a month, a year, some days.
    Longer,
}

/// What a phrase names: from its beginning to its end, which is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalendarSpan {
    pub(crate) from: Civil,
    pub(crate) to: Civil,
    pub(crate) unit: SpanUnit,
    /// It is another one on another day.
    pub(crate) is_relative: bool,
    /// A weekday, of which there is another one a week later.
    pub(crate) is_weekly: bool,
    /// A word or number that means something else as often, as "sun" and `3/5`: among other words it needs a
    /// neighbour that makes it a date.
    pub(crate) is_weak: bool,
}

impl CalendarSpan {
    /// From a day to another, which is exclusive.
    pub(crate) fn from_days(first: i64, end: i64, unit: SpanUnit) -> CalendarSpan {
        let to = if end > LAST_DAY { Civil::MAX } else { Civil::midnight(end) };
        let from = Civil::midnight(first);
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

    pub(crate) fn from_instant(from: Civil, exact: bool) -> CalendarSpan {
        let to = from.plus(if exact { 1 } else { 60 });
        CalendarSpan {
            from,
            to,
            unit: SpanUnit::Instant,
            is_relative: false,
            is_weekly: false,
            is_weak: false,
        }
    }

    /// A month, of any number: 12 is December of the year, 13 is January of the next.
    pub(crate) fn from_months(year: i64, month: i64, count: i64) -> CalendarSpan {
        let start = |number: i64| {
            let year = number.div_euclid(12);
            match i32::try_from(year) {
                Ok(year @ 1..=9999) => month_start(year, (number.rem_euclid(12) + 1) as u8),
                _ if year < 1 => FIRST_DAY,
                _ => LAST_DAY + 1,
            }
        };
        let number = year * 12 + month - 1;
        CalendarSpan::from_days(start(number), start(number + count), SpanUnit::Longer)
    }

    pub(crate) fn into_relative(self) -> CalendarSpan {
        CalendarSpan { is_relative: true, ..self }
    }

    /// Counted from the base of a context.
    pub(crate) fn relative_unless_fixed(self, context: &PhraseContext) -> CalendarSpan {
        CalendarSpan { is_relative: !context.is_fixed, ..self }
    }

    pub(crate) fn into_weak(self) -> CalendarSpan {
        CalendarSpan { is_weak: true, ..self }
    }

    /// The moment of its first day that a clock says.
    pub(crate) fn at_time(self, clock: TimeOfDay) -> CalendarSpan {
        let from = Civil::midnight(self.from.day()).plus(clock.second);
        CalendarSpan {
            is_weekly: self.is_weekly,
            is_relative: self.is_relative,
            ..CalendarSpan::from_instant(from, clock.has_seconds)
        }
    }

    /// The same of the night that begins on it: "tonight 1:00" is on the next day, unless that night is now.
    pub(crate) fn at_night_time(self, clock: TimeOfDay, context: &PhraseContext) -> CalendarSpan {
        const NIGHT_END_SECONDS: i64 = 6 * 3600;
        let now = context.now;
        let ours = self.from.day() == now.day() && now.second_of_day() < NIGHT_END_SECONDS;
        if clock.second >= NIGHT_END_SECONDS || (ours && clock.second >= now.second_of_day()) {
            return self.at_time(clock);
        }
        self.at_time(TimeOfDay { second: clock.second + DAY, ..clock })
    }
}

/// The next day of this name, the day of `base` included: 29 February may be years away.
pub(crate) fn next_yearly_date(month: u8, day: i64, base: Civil) -> Option<i64> {
    let first = base.date().year;
    let day = u8::try_from(day).ok()?;
    let dates = (first..first + 9).filter_map(|year| Date::new(year, month, day));
    let mut days = dates.map(Date::day_number);
    let next = days.find(|day| *day >= base.day());
    // In the last years of the calendar there may be no next one.
    next.or_else(|| Date::new(first, month, day).map(Date::day_number))
}

/// The day of a month's number in the month of a day or the next that has one: "the 15th".
pub(crate) fn next_day_of_month(day: i64, base: Civil) -> Option<i64> {
    let Date { year, month, .. } = base.date();
    let start = i64::from(year) * 12 + i64::from(month) - 1;
    let months = (start..start + 3).map(|number| {
        let year = (number.div_euclid(12) as i32).min(9999);
        (year, (number.rem_euclid(12) + 1) as u8)
    });
    let fits =
        months.filter(|(year, month)| (1..=i64::from(month_length(*year, *month))).contains(&day));
    let mut days = fits.map(|(year, month)| month_start(year, month) + day - 1);
    days.find(|day| *day * DAY >= Civil::midnight(base.day()).seconds())
}
