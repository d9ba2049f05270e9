//! What evolution-data-server, which expands rules with libical 3, makes of a rule otherwise than
//! RFC 5545 says.
//!
//! Whoever brings a calendar from there may find occurrences that were not shown before, and is
//! told why. The classes are those that a comparison of seven engines found; libical itself is not
//! asked.

use super::{Frequency, Rule};
use std::fmt;

/// How evolution-data-server reads a rule otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LibicalDifference {
    /// Days of the month without a month are those of the start's month there, of every month here.
    StartMonthOnly,
    /// Positions in a week's or a day's set are passed over there.
    SetPosIgnored,
    /// Parts that limit each other are refused there, and nothing recurs.
    RuleRejected,
    /// Days counted from the end of the month find nothing there when they limit days.
    NegativeMonthDaysIgnored,
    /// No month has that many of a weekday, so nothing is found; engines differ in what they do
    /// then.
    NoSuchOrdinal,
    /// Weeks without a weekday are other weeks there.
    WeekNumbersDiffer,
}

impl fmt::Display for LibicalDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LibicalDifference::StartMonthOnly => "it recurred in the month of its start only",
            LibicalDifference::SetPosIgnored => "its BYSETPOS was passed over",
            LibicalDifference::RuleRejected => "its combination of parts was refused",
            LibicalDifference::NegativeMonthDaysIgnored => {
                "its days counted from the end of the month were not found"
            }
            LibicalDifference::NoSuchOrdinal => "no month has that many of a weekday",
            LibicalDifference::WeekNumbersDiffer => "its weeks were other weeks",
        })
    }
}

impl Rule {
    /// How evolution-data-server reads the rule, if not as it is read here.
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
