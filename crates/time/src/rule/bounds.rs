//! Bounds of a rule's occurrences that are known without finding them, so that an index can skip
//! the rule.
//!
//! Bounds are conservative: a month outside the mask has no occurrence, and no gap is longer than
//! the bound.

use super::last_occurrence::constant_period_size;
use super::period_set::{NthScope, RuleParts};
use super::{Frequency, Rule, SkipMode};
use crate::civil::{CivilTime, DAY_SECONDS};

impl Rule {
    /// Returns the months in which an occurrence can start: bit 0 is January.
    #[must_use]
    pub fn month_mask(&self, start: CivilTime) -> u16 {
        const ALL_MONTHS_MASK: u16 = (1 << 12) - 1;
        match RuleParts::new(self, start).months {
            0 => ALL_MONTHS_MASK,
            months if self.skip == SkipMode::Forward => {
                (months | months << 1 | months >> 11) & ALL_MONTHS_MASK
            }
            months => months,
        }
    }

    /// Returns the days of a month on which an occurrence can start: bit 1 is the first.
    #[must_use]
    pub fn month_day_mask(&self, start: CivilTime) -> u32 {
        let parts = RuleParts::new(self, start);
        match parts.month_days {
            0 => u32::MAX - 1,
            _ if self.month_days_from_end != 0 || self.skip != SkipMode::Omit => u32::MAX - 1,
            days => days,
        }
    }

    /// Returns the weekdays on which an occurrence can start: bit 0 is Monday.
    #[must_use]
    pub fn weekday_mask(&self, start: CivilTime) -> u8 {
        let parts = RuleParts::new(self, start);
        let numbered = self.nth_weekdays.iter().map(|nth| 1 << nth.weekday.number_from_monday());
        match numbered.fold(parts.weekdays, |set, day: u8| set | day) {
            0 => 127,
            set => set,
        }
    }

    /// Returns whether all occurrences start at the time of day of DTSTART.
    #[must_use]
    pub fn has_fixed_time_of_day(&self) -> bool {
        let by_days = !matches!(
            self.frequency,
            Frequency::Secondly | Frequency::Minutely | Frequency::Hourly
        );
        by_days && self.hours == 0 && self.minutes == 0 && self.seconds == 0
    }

    /// Returns whether each week has an occurrence on each weekday of the rule.
    #[must_use]
    pub fn is_gapless_weekly(&self, start: CivilTime) -> bool {
        let by_weeks = matches!(self.frequency, Frequency::Weekly | Frequency::Daily);
        let all = self.interval == 1 && self.positions.is_empty();
        by_weeks && all && !RuleParts::new(self, start).has_limits_beyond_weekdays()
    }

    /// Returns an upper bound of the seconds between two occurrences, for simple rules.
    #[must_use]
    pub fn max_gap_seconds(&self, start: CivilTime) -> Option<i64> {
        let parts = RuleParts::new(self, start);
        let chosen = match &*self.positions {
            [] => 0,
            // The first or last occurrence of a period may be anywhere in it.
            positions if positions.contains(&1) || positions.contains(&-1) => self.period_seconds(),
            _ => return None,
        };
        if !self.year_days.is_empty() || parts.has_week_numbers() {
            return None;
        }
        let interval = i64::from(self.interval);
        let periods = interval.saturating_mul(self.period_seconds());
        let every_time = interval == 1;
        let gap = match self.frequency {
            // An occurrence on one day of a period has the same offset from the start of every
            // period.
            Frequency::Yearly if is_in_every_month(&parts) => {
                let one = is_on_one_day(&parts) && parts.months.is_power_of_two();
                periods.saturating_add(if one { 0 } else { 37 * DAY_SECONDS })
            }
            Frequency::Monthly if parts.months == 0 && is_in_every_month(&parts) => {
                periods.saturating_add(if is_on_one_day(&parts) { 0 } else { 6 * DAY_SECONDS })
            }
            Frequency::Weekly if !parts.has_limits_beyond_weekdays() => {
                max_days_between(&parts, interval).saturating_mul(DAY_SECONDS)
            }
            Frequency::Daily if !parts.has_day_limits() => periods,
            Frequency::Daily if every_time && !parts.has_limits_beyond_weekdays() => {
                max_days_between(&parts, 1).saturating_mul(DAY_SECONDS)
            }
            Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => {
                match constant_period_size(&parts) {
                    Some(_) => periods,
                    None if every_time && !parts.has_day_limits() => DAY_SECONDS,
                    None => return None,
                }
            }
            _ => return None,
        };
        Some(gap.saturating_add(chosen))
    }
}

/// Returns the maximum number of days between weekdays of a rule with this interval in weeks.
fn max_days_between(parts: &RuleParts<'_>, interval: i64) -> i64 {
    let begins = parts.rule.week_start.number_from_monday();
    let days = u32::from(parts.weekdays);
    let week = (days | days << 7) >> begins & 127;
    let week: Vec<i64> = (0..7).filter(|day| week >> day & 1 == 1).collect();
    let (Some(first), Some(last)) = (week.first(), week.last()) else { return 7 * interval };
    let within = week.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    within.fold(7 * interval - (last - first), i64::max)
}

/// Returns whether a rule with a day in every month has exactly one such day, the same in every
/// month.
fn is_on_one_day(parts: &RuleParts<'_>) -> bool {
    let (ahead, back) = (parts.month_days, parts.rule.month_days_from_end);
    ahead.count_ones() + back.count_ones() == 1
}

/// Returns whether every month that the rule allows has a matching day.
fn is_in_every_month(parts: &RuleParts<'_>) -> bool {
    let has_weekdays = parts.weekdays != 0 || parts.nth_scope != NthScope::Nothing;
    let (ahead, back) = (parts.month_days, parts.rule.month_days_from_end);
    if ahead | back != 0 {
        return !has_weekdays && (ahead | back) & ((1 << 29) - 1) != 0;
    }
    let near = parts.rule.nth_weekdays.iter().any(|nth| nth.number.unsigned_abs() <= 4);
    parts.weekdays != 0 || parts.nth_scope != NthScope::Nothing && near
}
