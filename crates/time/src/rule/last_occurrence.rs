//! The last occurrence of a rule: COUNT and UNTIL resolved once and stored, so that queries need
//! not count.

use super::period_set::{NthScope, RuleParts};
use super::{Frequency, Rule, StepBudget};
use crate::civil::CivilTime;

/// The last occurrence of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastOccurrence {
    /// The last occurrence.
    At(CivilTime),
    /// The rule continues until the calendar ends.
    Endless,
    /// The rule has no occurrence.
    NoOccurrence,
    /// The budget was exhausted.
    Unknown,
}

impl Rule {
    /// Finds the last occurrence of the rule itself. If every period has the same number of
    /// occurrences, COUNT is one division; otherwise periods are counted, within the budget.
    #[must_use]
    pub fn last_occurrence(&self, start: CivilTime, budget: StepBudget) -> LastOccurrence {
        let by_count = match self.count() {
            Some(count) => self.last_by_count(count, start, budget),
            None => LastOccurrence::Endless,
        };
        let bound = self.until_bound().unwrap_or(CivilTime::MAX);
        match by_count {
            LastOccurrence::At(last) if last <= bound => by_count,
            LastOccurrence::Unknown | LastOccurrence::NoOccurrence => by_count,
            _ if bound < start => LastOccurrence::NoOccurrence,
            _ if bound < CivilTime::MAX => self.last_by_until(bound, start, budget),
            _ => {
                let mut all = self.occurrences_from(start, start).with_budget(budget);
                match all.next() {
                    Some(_) => LastOccurrence::Endless,
                    None if all.is_exhausted() => LastOccurrence::Unknown,
                    None => LastOccurrence::NoOccurrence,
                }
            }
        }
    }

    /// Returns the rule with its end resolved; a rule without occurrences ends before its start.
    /// `None` if the budget was exhausted.
    #[must_use]
    pub fn with_resolved_end(self, start: CivilTime, budget: StepBudget) -> Option<Rule> {
        match self.last_occurrence(start, budget) {
            LastOccurrence::At(last) => Some(self.with_until(last)),
            LastOccurrence::Endless => Some(self.with_end(super::RuleEnd::Never)),
            LastOccurrence::NoOccurrence => Some(self.with_until(start.saturating_add(-1))),
            LastOccurrence::Unknown => None,
        }
    }

    /// Returns the occurrence with `count - 1` occurrences before it.
    fn last_by_count(&self, count: u64, start: CivilTime, budget: StepBudget) -> LastOccurrence {
        let mut all = self.occurrences_from(start, start).with_budget(budget);
        if let Some(visit) = constant_period_size(all.parts()).filter(|visit| *visit > 0) {
            return all
                .nth_by_constant_size(visit, count.saturating_sub(1))
                .map_or(LastOccurrence::Endless, LastOccurrence::At);
        }
        let mut left = all.skip_whole_sets(count);
        let mut last = None;
        while left > 0 {
            match all.next() {
                Some(at) => last = Some(at),
                None if all.is_exhausted() => return LastOccurrence::Unknown,
                // The calendar ends before the count does.
                None if last.is_some() || left < count => return LastOccurrence::Endless,
                None => return LastOccurrence::NoOccurrence,
            }
            left -= 1;
            left = all.skip_whole_sets(left);
        }
        last.map_or(LastOccurrence::NoOccurrence, LastOccurrence::At)
    }

    /// Finds the last occurrence at or before a bound by searching a range that ends at the bound
    /// and grows until it contains an occurrence.
    fn last_by_until(
        &self,
        bound: CivilTime,
        start: CivilTime,
        mut budget: StepBudget,
    ) -> LastOccurrence {
        let mut stretch = self.period_seconds().saturating_mul(self.interval.into());
        loop {
            let from = bound.saturating_add(stretch.saturating_neg()).max(start);
            let mut found = self.occurrences_from(start, from).with_budget(budget);
            let last = found.by_ref().take_while(|at| *at <= bound).last();
            if found.is_exhausted() {
                return LastOccurrence::Unknown;
            }
            match last {
                Some(last) => return LastOccurrence::At(last),
                None if from == start => return LastOccurrence::NoOccurrence,
                None => {}
            }
            let _ = budget.spend(found.spent_steps());
            stretch = stretch.saturating_mul(4);
        }
    }

    /// The approximate length of a period.
    pub(super) fn period_seconds(&self) -> i64 {
        match self.frequency {
            Frequency::Secondly => 1,
            Frequency::Minutely => 60,
            Frequency::Hourly => 3600,
            Frequency::Daily => 86_400,
            Frequency::Weekly => 7 * 86_400,
            Frequency::Monthly => 31 * 86_400,
            Frequency::Yearly => 366 * 86_400,
        }
    }
}

/// Returns the number of occurrences in every period, if it is constant.
pub(super) fn constant_period_size(parts: &RuleParts<'_>) -> Option<u64> {
    let rule = parts.rule;
    if !rule.positions.is_empty() || !rule.year_days.is_empty() || parts.has_week_numbers() {
        return None;
    }
    let ones = |set: u64| u64::from(set.count_ones());
    let times = parts.times;
    let (minutes, seconds) = (ones(times.minutes), ones(times.seconds));
    let times_of_day = ones(times.hours) * minutes * seconds;
    match rule.frequency {
        Frequency::Yearly => {
            let months = if parts.months == 0 { 12 } else { ones(parts.months.into()) };
            Some(months * constant_days_per_month(parts)? * times_of_day)
        }
        Frequency::Monthly if parts.months == 0 => {
            Some(constant_days_per_month(parts)? * times_of_day)
        }
        Frequency::Weekly if !parts.has_limits_beyond_weekdays() => {
            Some(ones(parts.weekdays.into()) * times_of_day)
        }
        Frequency::Daily if !parts.has_day_limits() => Some(times_of_day),
        _ if parts.has_day_limits() => None,
        Frequency::Hourly if rule.hours == 0 => Some(minutes * seconds),
        Frequency::Minutely if rule.hours == 0 && rule.minutes == 0 => Some(seconds),
        Frequency::Secondly if rule.hours == 0 && rule.minutes | rule.seconds == 0 => Some(1),
        _ => None,
    }
}

/// Returns the number of matching days in every month, if it is constant: for days that every month
/// has, counted from one end.
fn constant_days_per_month(parts: &RuleParts<'_>) -> Option<u64> {
    const DAYS_OF_EVERY_MONTH_MASK: u32 = (1 << 29) - 1;
    let (ahead, back) = (parts.month_days, parts.rule.month_days_from_end);
    let nth = &parts.rule.nth_weekdays;
    let one_end =
        |least: i16, most: i16| nth.iter().all(|nth| (least..=most).contains(&nth.number));
    if parts.weekdays == 0 && nth.is_empty() && (ahead == 0 || back == 0) {
        let days = ahead | back;
        return (days & !DAYS_OF_EVERY_MONTH_MASK == 0 && days != 0)
            .then(|| days.count_ones().into());
    }
    let numbered = parts.nth_scope == NthScope::Month && parts.weekdays == 0 && ahead | back == 0;
    (numbered && (one_end(1, 4) || one_end(-4, -1))).then_some(nth.len() as u64)
}
