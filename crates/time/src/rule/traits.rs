//! What can be said of a rule's occurrences without finding them: enough for an index to pass over the rule.
//!
//! All of it may promise too little, never too much: a month that is not in the mask has no occurrence, a gap is
//! never longer than said.

use super::last::constant;
use super::period::{NthOf, Parts};
use super::{Frequency, Rule, Skip};
use crate::civil::{Civil, DAY};

impl Rule {
    /// The months in which an occurrence can begin: bit 0 is January.
    #[must_use]
    pub fn months(&self, start: Civil) -> u16 {
        const ALL: u16 = (1 << 12) - 1;
        match Parts::new(self, start).months {
            0 => ALL,
            months if self.skip == Skip::Forward => (months | months << 1 | months >> 11) & ALL,
            months => months,
        }
    }

    /// The days of a month on which an occurrence can begin, by their numbers: bit 1 is the first.
    #[must_use]
    pub fn month_days(&self, start: Civil) -> u32 {
        let parts = Parts::new(self, start);
        match parts.month_days {
            0 => u32::MAX - 1,
            _ if self.month_days_back != 0 || self.skip != Skip::Omit => u32::MAX - 1,
            days => days,
        }
    }

    /// The weekdays on which an occurrence can begin: bit 0 is Monday.
    #[must_use]
    pub fn weekdays(&self, start: Civil) -> u8 {
        let parts = Parts::new(self, start);
        let numbered = self.nth.iter().map(|nth| 1 << nth.weekday.number());
        match numbered.fold(parts.weekdays, |set, day: u8| set | day) {
            0 => 127,
            set => set,
        }
    }

    /// Do all occurrences begin at the time of day of DTSTART?
    #[must_use]
    pub fn keeps_time_of_day(&self) -> bool {
        let by_days = !matches!(
            self.frequency,
            Frequency::Secondly | Frequency::Minutely | Frequency::Hourly
        );
        by_days && self.hours == 0 && self.minutes == 0 && self.seconds == 0
    }

    /// Does it have, in each week, an occurrence on each of its weekdays?
    #[must_use]
    pub fn is_each_week(&self, start: Civil) -> bool {
        let by_weeks = matches!(self.frequency, Frequency::Weekly | Frequency::Daily);
        let all = self.interval == 1 && self.positions.is_empty();
        by_weeks && all && !Parts::new(self, start).beyond_weekdays()
    }

    /// An upper bound of the seconds from one occurrence to the next, for rules of a simple kind.
    #[must_use]
    pub fn longest_gap(&self, start: Civil) -> Option<i64> {
        let parts = Parts::new(self, start);
        let chosen = match &*self.positions {
            [] => 0,
            // The first or last of a period's is somewhere in it.
            positions if positions.contains(&1) || positions.contains(&-1) => self.unit_seconds(),
            _ => return None,
        };
        if !self.year_days.is_empty() || parts.by_weeks() {
            return None;
        }
        let interval = i64::from(self.interval);
        let periods = interval.saturating_mul(self.unit_seconds());
        let every_time = interval == 1;
        let gap = match self.frequency {
            // What is on one day of a period is not nearer to its beginning in one than in another.
            Frequency::Yearly if in_every_month(&parts) => {
                let one = on_one_day(&parts) && parts.months.is_power_of_two();
                periods.saturating_add(if one { 0 } else { 37 * DAY })
            }
            Frequency::Monthly if parts.months == 0 && in_every_month(&parts) => {
                periods.saturating_add(if on_one_day(&parts) { 0 } else { 6 * DAY })
            }
            Frequency::Weekly if !parts.beyond_weekdays() => {
                days_apart(&parts, interval).saturating_mul(DAY)
            }
            Frequency::Daily if !parts.limits_days() => periods,
            Frequency::Daily if every_time && !parts.beyond_weekdays() => {
                days_apart(&parts, 1).saturating_mul(DAY)
            }
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                match constant(&parts) {
                    Some(_) => periods,
                    None if every_time && !parts.limits_days() => DAY,
                    None => return None,
                }
            }
            _ => return None,
        };
        Some(gap.saturating_add(chosen))
    }
}

/// The most days from one of a rule's weekdays to the next, if it has them in every so many weeks.
fn days_apart(parts: &Parts<'_>, interval: i64) -> i64 {
    let begins = parts.rule.week_start.number();
    let days = u32::from(parts.weekdays);
    let week = (days | days << 7) >> begins & 127;
    let week: Vec<i64> = (0..7).filter(|day| week >> day & 1 == 1).collect();
    let (Some(first), Some(last)) = (week.first(), week.last()) else { return 7 * interval };
    let within = week.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    within.fold(7 * interval - (last - first), i64::max)
}

/// Does a rule that has a day in every month have one only, and always the same?
fn on_one_day(parts: &Parts<'_>) -> bool {
    let (ahead, back) = (parts.month_days, parts.rule.month_days_back);
    ahead.count_ones() + back.count_ones() == 1
}

/// Does every month, if the rule allows it, have a day that the rule asks for?
fn in_every_month(parts: &Parts<'_>) -> bool {
    let has_weekdays = parts.weekdays != 0 || parts.nth != NthOf::Nothing;
    let (ahead, back) = (parts.month_days, parts.rule.month_days_back);
    if ahead | back != 0 {
        return !has_weekdays && (ahead | back) & ((1 << 29) - 1) != 0;
    }
    let near = parts.rule.nth.iter().any(|nth| nth.number.unsigned_abs() <= 4);
    parts.weekdays != 0 || parts.nth != NthOf::Nothing && near
}
