//! Recurrence rules: RFC 5545 section 3.3.10, with SKIP of RFC 7529 and the rules of vCalendar 1.0.
//!
//! A [`Rule`] is the text taken apart: lists as bits, so that a day is tested by an `and`. What its
//! parts mean together is in `rule/period.rs`, how occurrences are found without walking from the
//! start in `rule/walk.rs`, where a rule ends in `rule/last.rs`. A rule knows no zone: its
//! occurrences are clock times. It gives bare occurrences, that is, the start is only one if it
//! matches; [`series`](crate::series) adds what an item adds.

mod bounds;
mod display;
mod last_occurrence;
mod libical_compat;
mod occurrences;
mod parse;
mod period_set;
mod serialization;
mod vcalendar;

pub use self::last_occurrence::LastOccurrence;
pub use self::libical_compat::LibicalDifference;
pub use self::occurrences::{RuleOccurrences, StepBudget};
pub use self::parse::RuleError;

use crate::civil::{CivilTime, DAY_SECONDS, Weekday};
use crate::value::IcalDateTime;

/// How often a rule's periods follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "they are called as in the RFC")]
pub enum Frequency {
    Secondly,
    Minutely,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

/// Where a rule ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleEnd {
    /// With the calendar, at the end of the year 9999.
    Never,
    /// UNTIL as written. Occurrences are compared with it as clock times; in which clock it is
    /// meant, and what that is in the start's, the caller finds out and replaces it by
    /// [`Rule::with_until`].
    Until(IcalDateTime),
    /// COUNT; [`Rule::from`] knows nothing of it, [`Rule::last`] finds the last occurrence.
    Count(u64),
    /// Both, which is invalid: the earlier one counts.
    UntilAndCount(IcalDateTime, u64),
    /// With the last clock time that still belongs to it.
    ResolvedUntil(CivilTime),
}

/// What becomes of dates that a month has not (RFC 7529).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "they are called as in the RFC")]
pub enum SkipMode {
    Omit,
    Backward,
    Forward,
}

/// The nth weekday of a month or a year, from its end if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NthWeekday {
    pub(crate) number: i16,
    pub(crate) weekday: Weekday,
}

/// A recurrence rule. A part that is not there is an empty set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    frequency: Frequency,
    interval: u32,
    end: RuleEnd,
    week_start: Weekday,
    skip: SkipMode,
    /// Bits 0 to 59, 0 to 59 and 0 to 23.
    seconds: u64,
    minutes: u64,
    hours: u32,
    /// Bits 0, January, to 11.
    months: u16,
    /// Bits 1 to 31, and the same counted from the end of the month.
    month_days: u32,
    month_days_from_end: u32,
    /// Bits 0, Monday, to 6; those with a number are in `nth`.
    weekdays: u8,
    /// Bits 1 to 53, and the same counted from the end of the year.
    weeks: u64,
    weeks_from_end: u64,
    /// Sorted, each once, none 0.
    nth_weekdays: Vec<NthWeekday>,
    year_days: Vec<i16>,
    positions: Vec<i32>,
}

impl Rule {
    /// A rule of its frequency alone.
    #[must_use]
    pub fn with_frequency(interval: u32, frequency: Frequency) -> Rule {
        Rule {
            frequency,
            interval: interval.max(1),
            end: RuleEnd::Never,
            week_start: Weekday::Monday,
            skip: SkipMode::Omit,
            seconds: 0,
            minutes: 0,
            hours: 0,
            months: 0,
            month_days: 0,
            month_days_from_end: 0,
            weekdays: 0,
            weeks: 0,
            weeks_from_end: 0,
            nth_weekdays: Vec::new(),
            year_days: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Its frequency.
    #[must_use]
    pub fn frequency(&self) -> Frequency {
        self.frequency
    }

    /// Every how many periods, at least 1.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> RuleEnd {
        self.end
    }

    /// The same rule that ends with a clock time, which still belongs to it.
    #[must_use]
    pub fn with_until(self, last: CivilTime) -> Rule {
        Rule { end: RuleEnd::ResolvedUntil(last), ..self }
    }

    /// The same rule, which ends elsewhere.
    #[must_use]
    pub fn with_end(self, end: RuleEnd) -> Rule {
        Rule { end, ..self }
    }

    /// The last clock time that UNTIL allows, read in the start's own clock; of a date, the end of
    /// its day.
    #[must_use]
    pub fn until_bound(&self) -> Option<CivilTime> {
        match self.end {
            RuleEnd::Never | RuleEnd::Count(_) => None,
            RuleEnd::ResolvedUntil(last) => Some(last),
            RuleEnd::Until(stamp) | RuleEnd::UntilAndCount(stamp, _) => Some(match stamp.is_date {
                true => stamp.civil.saturating_add(DAY_SECONDS - 1),
                false => stamp.civil,
            }),
        }
    }

    /// The numbered weekdays whose number is at most so large: no others can be found, and hostile
    /// rules have many.
    fn nth_up_to(&self, most: i16) -> &[NthWeekday] {
        let least = self.nth_weekdays.partition_point(|nth| nth.number < -most);
        let end = self.nth_weekdays.partition_point(|nth| nth.number <= most);
        self.nth_weekdays.get(least..end).unwrap_or_default()
    }

    /// The same rule without times of day, which mean nothing for days (RFC 5545, section 3.3.10).
    pub(crate) fn into_date_only(self) -> Rule {
        Rule { seconds: 0, minutes: 0, hours: 0, ..self }
    }

    /// COUNT, if it has one.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self.end {
            RuleEnd::Count(count) | RuleEnd::UntilAndCount(_, count) => Some(count),
            _ => None,
        }
    }
}
