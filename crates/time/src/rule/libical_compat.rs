//! Rules that evolution-data-server, which uses libical 3, expands differently from RFC 5545.
//!
//! A user who imports a calendar from there may see occurrences that were not shown before; a
//! warning explains them. The classes come from a comparison of seven engines; libical itself is
//! not called.

use super::{Frequency, Rule};
use std::fmt;

/// A difference in how evolution-data-server expands a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LibicalDifference {
    /// BYMONTHDAY without BYMONTH: there in the month of the start only, here in every month.
    StartMonthOnly,
    /// BYSETPOS in weekly and daily rules is ignored there.
    SetPosIgnored,
    /// A combination of limiting parts is rejected there, and nothing recurs.
    RuleRejected,
    /// Negative BYMONTHDAY as a limit matches nothing there.
    NegativeMonthDaysIgnored,
    /// No month has this ordinal of a weekday, so nothing matches; engines differ.
    NoSuchOrdinal,
    /// BYWEEKNO without BYDAY selects other weeks there.
    WeekNumbersDiffer,
}

impl fmt::Display for LibicalDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LibicalDifference::StartMonthOnly => "only in the month of the start",
            LibicalDifference::SetPosIgnored => "it ignores BYSETPOS",
            LibicalDifference::RuleRejected => "it rejects this combination of parts",
            LibicalDifference::NegativeMonthDaysIgnored => {
                "it ignores days counted from the end of the month"
            }
            LibicalDifference::NoSuchOrdinal => "no month has that many of a weekday",
            LibicalDifference::WeekNumbersDiffer => "it selects other weeks",
        })
    }
}

impl Rule {
    /// Returns how evolution-data-server expands the rule differently, if it does.
    #[must_use]
    pub fn libical_difference(&self) -> Option<LibicalDifference> {
        let has_month_days = self.month_days | self.month_days_from_end != 0;
        let has_weeks = self.weeks | self.weeks_from_end != 0;
        let has_weekdays = self.weekdays != 0 || !self.nth_weekdays.is_empty();
        let has_year_days = !self.year_days.is_empty();
        let yearly = self.frequency == Frequency::Yearly;
        let of_months = self.frequency == Frequency::Monthly || yearly && self.months != 0;
        let positions = !self.positions.is_empty();
        if has_month_days && !self.nth_weekdays.is_empty()
            || has_weeks && (has_year_days || has_month_days)
        {
            return Some(LibicalDifference::RuleRejected);
        }
        if yearly && has_weeks && !has_weekdays {
            return Some(LibicalDifference::WeekNumbersDiffer);
        }
        if yearly && has_month_days && self.months == 0 && !has_weekdays && !has_year_days {
            return Some(LibicalDifference::StartMonthOnly);
        }
        if positions && matches!(self.frequency, Frequency::Weekly | Frequency::Daily) {
            return Some(LibicalDifference::SetPosIgnored);
        }
        if self.month_days_from_end != 0 && self.frequency <= Frequency::Daily {
            return Some(LibicalDifference::NegativeMonthDaysIgnored);
        }
        let too_many = self.nth_weekdays.iter().any(|nth| nth.number.unsigned_abs() > 5);
        (of_months && too_many).then_some(LibicalDifference::NoSuchOrdinal)
    }
}
