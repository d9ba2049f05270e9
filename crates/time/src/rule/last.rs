//! Where a rule ends: COUNT and UNTIL as the last occurrence, found once and kept, so that no question counts.

use super::period::{NthOf, Parts};
use super::{Budget, Frequency, Rule};
use crate::civil::Civil;

/// The last occurrence of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// This one.
    At(Civil),
    /// It goes on until the calendar ends.
    Endless,
    /// It has none at all.
    Never,
    /// The budget did not suffice to find it.
    Unknown,
}

impl Rule {
    /// The last of the rule's own occurrences. Where the number of a period's is always the same, a COUNT is one
    /// division; else periods are counted, at most as many as the budget has.
    #[must_use]
    pub fn last(&self, start: Civil, budget: Budget) -> Last {
        let by_count = match self.count() {
            Some(count) => self.last_of(count, start, budget),
            None => Last::Endless,
        };
        let bound = self.bound().unwrap_or(Civil::MAX);
        match by_count {
            Last::At(last) if last <= bound => by_count,
            Last::Unknown | Last::Never => by_count,
            _ if bound < start => Last::Never,
            _ if bound < Civil::MAX => self.last_until(bound, start, budget),
            _ => {
                let mut all = self.from(start, start).with_budget(budget);
                match all.next() {
                    Some(_) => Last::Endless,
                    None if all.exhausted() => Last::Unknown,
                    None => Last::Never,
                }
            }
        }
    }

    /// The same rule with its end found: one that never was ends before its start. None when the budget did not
    /// suffice.
    #[must_use]
    pub fn ended(self, start: Civil, budget: Budget) -> Option<Rule> {
        match self.last(start, budget) {
            Last::At(last) => Some(self.with_until(last)),
            Last::Endless => Some(self.with_end(super::End::Never)),
            Last::Never => Some(self.with_until(start.plus(-1))),
            Last::Unknown => None,
        }
    }

    /// The occurrence that has `count - 1` before it.
    fn last_of(&self, count: u64, start: Civil, budget: Budget) -> Last {
        let mut all = self.from(start, start).with_budget(budget);
        if let Some(each) = constant(all.parts()).filter(|each| *each > 0) {
            return all
                .nth_of_constant(each, count.saturating_sub(1))
                .map_or(Last::Endless, Last::At);
        }
        let mut left = all.pass_over(count);
        let mut last = None;
        while left > 0 {
            match all.next() {
                Some(at) => last = Some(at),
                None if all.exhausted() => return Last::Unknown,
                // The calendar ends before the count does.
                None if last.is_some() || left < count => return Last::Endless,
                None => return Last::Never,
            }
            left -= 1;
            left = all.pass_over(left);
        }
        last.map_or(Last::Never, Last::At)
    }

    /// The last occurrence at or before a bound: looked for in a stretch before it that grows until it holds one.
    fn last_until(&self, bound: Civil, start: Civil, mut budget: Budget) -> Last {
        let mut stretch = self.unit_seconds().saturating_mul(self.interval.into());
        loop {
            let from = bound.plus(stretch.saturating_neg()).max(start);
            let mut found = self.from(start, from).with_budget(budget);
            let last = found.by_ref().take_while(|at| *at <= bound).last();
            if found.exhausted() {
                return Last::Unknown;
            }
            match last {
                Some(last) => return Last::At(last),
                None if from == start => return Last::Never,
                None => {}
            }
            let _ = budget.take(found.steps());
            stretch = stretch.saturating_mul(4);
        }
    }

    /// About how long one of its periods takes.
    pub(super) fn unit_seconds(&self) -> i64 {
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

/// How many occurrences every period of a rule has, if that never differs.
pub(super) fn constant(parts: &Parts<'_>) -> Option<u64> {
    let rule = parts.rule;
    if !rule.positions.is_empty() || !rule.year_days.is_empty() || parts.by_weeks() {
        return None;
    }
    let ones = |set: u64| u64::from(set.count_ones());
    let times = parts.times;
    let (minutes, seconds) = (ones(times.minutes), ones(times.seconds));
    let times_of_day = ones(times.hours) * minutes * seconds;
    match rule.frequency {
        Frequency::Yearly => {
            let months = if parts.months == 0 { 12 } else { ones(parts.months.into()) };
            Some(months * days_of_month(parts)? * times_of_day)
        }
        Frequency::Monthly if parts.months == 0 => Some(days_of_month(parts)? * times_of_day),
        Frequency::Weekly if !parts.beyond_weekdays() => {
            Some(ones(parts.weekdays.into()) * times_of_day)
        }
        Frequency::Daily if !parts.limits_days() => Some(times_of_day),
        _ if parts.limits_days() => None,
        Frequency::Hourly if rule.hours == 0 => Some(minutes * seconds),
        Frequency::Minutely if rule.hours == 0 && rule.minutes == 0 => Some(seconds),
        Frequency::Secondly if rule.hours == 0 && rule.minutes | rule.seconds == 0 => Some(1),
        _ => None,
    }
}

/// How many days every month has of those that the rule asks for, if that never differs: days that every month
/// has, counted from one end.
fn days_of_month(parts: &Parts<'_>) -> Option<u64> {
    const IN_EVERY_MONTH: u32 = (1 << 29) - 1;
    let (ahead, back) = (parts.month_days, parts.rule.month_days_back);
    let nth = &parts.rule.nth;
    let one_end =
        |least: i16, most: i16| nth.iter().all(|nth| (least..=most).contains(&nth.number));
    if parts.weekdays == 0 && nth.is_empty() && (ahead == 0 || back == 0) {
        let days = ahead | back;
        return (days & !IN_EVERY_MONTH == 0 && days != 0).then(|| days.count_ones().into());
    }
    let numbered = parts.nth == NthOf::Month && parts.weekdays == 0 && ahead | back == 0;
    (numbered && (one_end(1, 4) || one_end(-4, -1))).then_some(nth.len() as u64)
}
