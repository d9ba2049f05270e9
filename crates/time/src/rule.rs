//! Recurrence rules: RFC 5545 section 3.3.10, with SKIP of RFC 7529 and the rules of vCalendar 1.0.
//!
//! A [`Rule`] is the parsed text of a rule. Its lists are bit sets, so that one `and` tests a day.
//! `period_set` combines the parts of a rule, `occurrences` seeks without iterating from the start,
//! `last_occurrence` finds where a rule ends. A rule has no zone: its occurrences are civil times.
//! They include the start only if the rule matches it; [`series`](crate::series) adds the other
//! properties of an item.

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

/// The frequency of a rule.
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

/// The end of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleEnd {
    /// No end before the year 9999.
    Never,
    /// UNTIL as written. Occurrences are compared with it as civil times. The caller converts it to
    /// the zone of the start and replaces it by [`Rule::with_until`].
    Until(IcalDateTime),
    /// COUNT. [`Rule::occurrences_from`] ignores it; [`Rule::last_occurrence`] finds the last
    /// occurrence.
    Count(u64),
    /// Both, which is invalid: the earlier one applies.
    UntilAndCount(IcalDateTime, u64),
    /// The last civil time of the rule.
    ResolvedUntil(CivilTime),
}

/// The treatment of dates that a month does not have (RFC 7529).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "they are called as in the RFC")]
pub enum SkipMode {
    Omit,
    Backward,
    Forward,
}

/// The nth weekday of a month or year, counted from the end if negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NthWeekday {
    pub(crate) number: i16,
    pub(crate) weekday: Weekday,
}

/// A recurrence rule. An absent part is an empty set.
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
    /// Bit 0 is January.
    months: u16,
    /// Bits 1 to 31; the second field counts from the end of the month.
    month_days: u32,
    month_days_from_end: u32,
    /// Bit 0 is Monday; weekdays with an ordinal are in `nth_weekdays`.
    weekdays: u8,
    /// Bits 1 to 53; the second field counts from the end of the year.
    weeks: u64,
    weeks_from_end: u64,
    /// Sorted, without duplicates and without 0.
    nth_weekdays: Vec<NthWeekday>,
    year_days: Vec<i16>,
    positions: Vec<i32>,
}

impl Rule {
    /// Creates a rule with a frequency and no other part.
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

    /// The frequency.
    #[must_use]
    pub fn frequency(&self) -> Frequency {
        self.frequency
    }

    /// The interval in periods, at least 1.
    #[must_use]
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// The end.
    #[must_use]
    pub fn end(&self) -> RuleEnd {
        self.end
    }

    /// Returns the rule with this last civil time, inclusive.
    #[must_use]
    pub fn with_until(self, last: CivilTime) -> Rule {
        Rule { end: RuleEnd::ResolvedUntil(last), ..self }
    }

    /// Returns the rule with another end.
    #[must_use]
    pub fn with_end(self, end: RuleEnd) -> Rule {
        Rule { end, ..self }
    }

    /// Returns the last civil time that UNTIL allows, read in the zone of the start; for a date,
    /// the end of that day.
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

    /// Returns the weekdays whose ordinal is at most `most`. A period has no others, and hostile
    /// rules have many.
    fn nth_up_to(&self, most: i16) -> &[NthWeekday] {
        let least = self.nth_weekdays.partition_point(|nth| nth.number < -most);
        let end = self.nth_weekdays.partition_point(|nth| nth.number <= most);
        self.nth_weekdays.get(least..end).unwrap_or_default()
    }

    /// Returns the rule without times of day, which have no meaning for dates (RFC 5545, section
    /// 3.3.10).
    pub(crate) fn into_date_only(self) -> Rule {
        Rule { seconds: 0, minutes: 0, hours: 0, ..self }
    }

    /// COUNT, if present.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self.end {
            RuleEnd::Count(count) | RuleEnd::UntilAndCount(_, count) => Some(count),
            _ => None,
        }
    }
}
