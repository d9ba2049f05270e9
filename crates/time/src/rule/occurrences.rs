//! The occurrences of a rule from any civil time on, found by seeking to the right period.
//!
//! Years, months, weeks and days are numbered, so the first period of the interval at or after a
//! civil time is one division away. HOURLY and finer rules have steps. A step is examined only if
//! its day and time of day match: if a limit fails, the search continues at the next day, hour or
//! minute that can match, and there at the next step. [`RuleOccurrences::spent_steps`] counts the
//! cost, and a [`StepBudget`] bounds it.

use super::period_set::{DaySearch, PeriodSet, RuleParts, TimeOfDaySet};
use super::{Frequency, Rule, SkipMode};
use crate::civil::{CivilTime, DAY_SECONDS, LAST_DAY_NUMBER};

/// The Gregorian calendar repeats after this many days, weekdays included: a rule without a match
/// in one cycle has none.
const GREGORIAN_CYCLE_DAYS: i64 = 146_097;

/// The steps of the default budget.
const DEFAULT_STEPS: u64 = 200_000;
/// The steps that an occurrence of a rule takes that occurs in every period: one for the period,
/// one for the occurrence.
const STEPS_PER_OCCURRENCE: u64 = 2;
/// No budget is larger: some seconds of work.
const MAX_STEPS: u64 = 200_000_000;

/// Bounds the work of an expansion: periods examined plus occurrences returned. Consumed by the
/// iterator it is passed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepBudget {
    remaining: u64,
}

impl StepBudget {
    /// Creates a budget of this many steps.
    #[must_use]
    pub const fn new(steps: u64) -> StepBudget {
        StepBudget { remaining: steps }
    }

    /// Creates a budget that suffices for this many occurrences of a usual rule, and is at least
    /// the default.
    #[must_use]
    pub fn for_occurrences(count: usize) -> StepBudget {
        let steps = u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(STEPS_PER_OCCURRENCE);
        StepBudget::new(steps.clamp(DEFAULT_STEPS, MAX_STEPS))
    }

    /// The remaining steps.
    #[must_use]
    pub const fn remaining_steps(self) -> u64 {
        self.remaining
    }

    /// Consumes steps. Returns false, and leaves none, if there are too few.
    pub(crate) fn spend(&mut self, steps: u64) -> bool {
        let enough = self.remaining >= steps;
        self.remaining = self.remaining.saturating_sub(steps);
        enough
    }
}

/// 200,000 steps, some milliseconds: enough for any rule that a person wrote.
impl Default for StepBudget {
    fn default() -> StepBudget {
        StepBudget::new(DEFAULT_STEPS)
    }
}

/// Iterates over the occurrences of a rule, in order, each once.
#[derive(Debug, Clone)]
pub struct RuleOccurrences<'r> {
    parts: RuleParts<'r>,
    period_unit: PeriodUnit,
    /// The period or step to examine next, and the period or step of the start.
    next: i64,
    origin: i64,
    set: Option<PeriodSet>,
    /// Earlier occurrences are not returned.
    floor: CivilTime,
    last: CivilTime,
    /// The day after which the rule can have no further match.
    horizon: i64,
    is_ended: bool,
    is_exhausted: bool,
    budget: StepBudget,
    initial_steps: u64,
}

/// The unit that period numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PeriodUnit {
    /// Years, months, weeks.
    Periods,
    Days,
    /// Steps of this many seconds.
    Steps(i64),
}

impl Rule {
    /// Returns the occurrences at or after `at` of this rule with the start `start`, which is an
    /// occurrence only if it matches. The end of the rule applies, except COUNT.
    #[must_use]
    pub fn occurrences_from(&self, start: CivilTime, at: CivilTime) -> RuleOccurrences<'_> {
        RuleOccurrences::new(self, start, at)
    }
}

impl<'r> RuleOccurrences<'r> {
    fn new(rule: &'r Rule, start: CivilTime, at: CivilTime) -> RuleOccurrences<'r> {
        let parts = RuleParts::new(rule, start);
        let pace = match rule.frequency {
            Frequency::Secondly => PeriodUnit::Steps(1),
            Frequency::Minutely => PeriodUnit::Steps(60),
            Frequency::Hourly => PeriodUnit::Steps(3600),
            Frequency::Daily => PeriodUnit::Days,
            _ => PeriodUnit::Periods,
        };
        let floor = at.max(start);
        // SKIP=FORWARD moves an occurrence of a month to the first day of the next.
        let day = floor.day_number() - i64::from(rule.skip == SkipMode::Forward);
        let (origin, next) = match pace {
            PeriodUnit::Steps(unit) => {
                (start.seconds().div_euclid(unit), floor.seconds().div_euclid(unit))
            }
            _ => (parts.period_number(start.day_number()), parts.period_number(day)),
        };
        let budget = StepBudget::default();
        let mut occurrences = RuleOccurrences {
            parts,
            period_unit: pace,
            next: origin,
            origin,
            set: None,
            floor,
            last: rule.until_bound().unwrap_or(CivilTime::MAX),
            horizon: 0,
            is_ended: false,
            is_exhausted: false,
            budget,
            initial_steps: budget.remaining_steps(),
        };
        occurrences.is_ended = !occurrences.can_match_time_of_day();
        occurrences.seek_to_period(next);
        occurrences.extend_horizon();
        occurrences
    }

    /// Returns whether the time of day of some step matches. The times of day of steps repeat after
    /// the least common multiple of interval and day, so all of them can be tried.
    fn can_match_time_of_day(&self) -> bool {
        let PeriodUnit::Steps(unit) = self.period_unit else { return true };
        let times = self.times_of_steps(unit);
        let steps_per_day = DAY_SECONDS / unit;
        let stride = greatest_common_divisor(self.parts.rule.interval.into(), steps_per_day);
        let mut second = self.origin.rem_euclid(stride) * unit;
        while let Some(allowed) = times.next_time_from(second) {
            if allowed == second {
                return true;
            }
            // The first step at or after the allowed time.
            let steps = (allowed - second + stride * unit - 1) / (stride * unit);
            second += steps * stride * unit;
            if second >= DAY_SECONDS {
                return false;
            }
        }
        false
    }

    /// Returns the times of day that steps may have: parts finer than the step do not limit it.
    fn times_of_steps(&self, unit: i64) -> TimeOfDaySet {
        let mut times = self.parts.times;
        times.minutes = if unit > 60 { 1 } else { times.minutes };
        times.seconds = if unit > 1 { 1 } else { times.seconds };
        times
    }

    /// Replaces the budget.
    #[must_use]
    pub fn with_budget(self, budget: StepBudget) -> Self {
        RuleOccurrences { budget, initial_steps: budget.remaining_steps(), ..self }
    }

    /// Ends the iteration after a civil time, which saves the search after it.
    #[must_use]
    pub fn with_last(self, last: CivilTime) -> Self {
        RuleOccurrences { last: self.last.min(last), ..self }
    }

    /// The steps consumed so far.
    #[must_use]
    pub fn spent_steps(&self) -> u64 {
        self.initial_steps - self.budget.remaining_steps()
    }

    /// The remaining budget.
    #[must_use]
    pub fn budget(&self) -> StepBudget {
        self.budget
    }

    /// Returns whether the budget was exhausted before the rule ended.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    pub(super) fn parts(&self) -> &RuleParts<'r> {
        &self.parts
    }

    /// Seeks to the first period or step of the interval at or after this one.
    fn seek_to_period(&mut self, number: i64) {
        let interval = i64::from(self.parts.rule.interval);
        let tail = (number - self.origin).max(0);
        let count = (tail + interval - 1) / interval;
        self.next = self.origin.saturating_add(count.saturating_mul(interval));
    }

    /// Advances to the next period or step of the interval.
    fn advance_period(&mut self) {
        self.next = self.next.saturating_add(self.parts.rule.interval.into());
    }

    fn extend_horizon(&mut self) {
        let interval = i64::from(self.parts.rule.interval);
        // The steps of an interval that divides the cycle repeat with it.
        let common = match self.period_unit {
            PeriodUnit::Periods => 1,
            PeriodUnit::Days => greatest_common_divisor(interval, GREGORIAN_CYCLE_DAYS),
            PeriodUnit::Steps(unit) => {
                greatest_common_divisor(interval, GREGORIAN_CYCLE_DAYS * (DAY_SECONDS / unit))
            }
        };
        let cycle = GREGORIAN_CYCLE_DAYS.saturating_mul(interval / common);
        self.horizon = self.floor.day_number().saturating_add(cycle).min(LAST_DAY_NUMBER);
    }

    /// Returns the next set that is not empty; `None` at the end of the rule or of the budget.
    fn load_next_set(&mut self) -> Option<PeriodSet> {
        loop {
            if !self.budget.spend(1) {
                self.is_exhausted = true;
                return None;
            }
            let first = match self.period_unit {
                PeriodUnit::Periods => self.parts.first_day(self.next),
                PeriodUnit::Days => self.next,
                PeriodUnit::Steps(unit) => self.next.saturating_mul(unit).div_euclid(DAY_SECONDS),
            };
            if first > self.horizon || first > self.last.day_number() {
                self.is_ended = true;
                return None;
            }
            let set = match self.period_unit {
                PeriodUnit::Periods => {
                    let set = self.parts.set_of_period(self.next);
                    self.advance_period();
                    (!set.is_empty()).then_some(set)
                }
                PeriodUnit::Days => self.try_day(),
                PeriodUnit::Steps(unit) => self.try_step(unit),
            };
            if set.is_some() {
                return set;
            }
        }
    }

    /// Returns the set of the next day if it matches; otherwise seeks to the first day that can.
    fn try_day(&mut self) -> Option<PeriodSet> {
        match self.parts.search_day_from(self.next) {
            DaySearch::Day(day) if day == self.next => {
                let set = self.parts.set_of_period(day);
                self.advance_period();
                Some(set)
            }
            DaySearch::Day(day) | DaySearch::NotBefore(day) => {
                self.seek_to_period(day);
                None
            }
        }
    }

    /// Returns the set of the next step if its day and time match; otherwise seeks to the first
    /// step that can.
    fn try_step(&mut self, unit: i64) -> Option<PeriodSet> {
        let at = CivilTime::from_seconds_clamped(self.next * unit);
        let after = |seconds: i64| (seconds + unit - 1).div_euclid(unit);
        match self.parts.search_day_from(at.day_number()) {
            DaySearch::Day(day) if day == at.day_number() => {}
            DaySearch::Day(day) | DaySearch::NotBefore(day) => {
                self.seek_to_period(after(day * DAY_SECONDS));
                return None;
            }
        }
        let times = self.times_of_steps(unit);
        let second = at.second_of_day();
        match times.next_time_from(second) {
            Some(passes) if passes == second => {
                self.advance_period();
                Some(self.parts.set_of_unit(at, unit))
            }
            Some(later) => {
                self.seek_to_period(after(at.day_number() * DAY_SECONDS + later));
                None
            }
            None => {
                self.seek_to_period(after((at.day_number() + 1) * DAY_SECONDS));
                None
            }
        }
    }

    /// Returns the first selected member of a set at or after the floor.
    fn next_chosen(&mut self, set: &PeriodSet) -> Option<CivilTime> {
        if self.parts.rule.positions.is_empty() {
            return set.next_member_from(self.floor);
        }
        self.charge_for_positions();
        let length = set.len() as i64;
        let places = self.parts.rule.positions.iter().map(|position| i64::from(*position));
        let places =
            places.map(|position| if position > 0 { position - 1 } else { length + position });
        let chosen = places.filter(|place| (0..length).contains(place));
        chosen.filter_map(|place| set.nth(place as u64)).filter(|at| *at >= self.floor).min()
    }

    /// Charges the scan of the position list, which happens for each occurrence.
    fn charge_for_positions(&mut self) {
        self.is_exhausted |= !self.budget.spend(self.parts.rule.positions.len() as u64 / 8);
    }

    /// Returns the number of selected members of a set.
    fn count_chosen(&self, set: &PeriodSet) -> u64 {
        let positions = &self.parts.rule.positions;
        let length = set.len();
        if positions.is_empty() {
            return length;
        }
        let signed = length as i64;
        let valid = |position: &&i32| u64::from(position.unsigned_abs()) <= length;
        // A position that is given from the start and from the end counts once.
        let twice = |position: &&i32| {
            let back = i64::from(**position) - 1 - signed;
            **position > 0
                && i32::try_from(back).is_ok_and(|back| positions.binary_search(&back).is_ok())
        };
        let named = positions.iter().filter(valid);
        named.filter(|position| !twice(position)).count() as u64
    }

    /// Skips whole sets with at most `count` occurrences in total. Returns the rest of the count.
    pub(super) fn skip_whole_sets(&mut self, mut count: u64) -> u64 {
        if self.parts.rule.skip == SkipMode::Forward || count == 0 {
            return count;
        }
        while self.set.is_some() || !self.is_ended && !self.is_exhausted {
            if self.set.is_none() {
                self.set = self.load_next_set();
            }
            let Some(set) = self.set else { return count };
            let whole = set.nth(0).is_some_and(|first| first >= self.floor);
            self.charge_for_positions();
            let chosen = self.count_chosen(&set);
            // The last occurrence is found by iterating.
            if !whole || chosen >= count {
                return count;
            }
            count -= chosen;
            if chosen > 0 {
                self.floor =
                    set.nth(set.len() - 1).map_or(self.floor, |last| last.saturating_add(1));
                self.extend_horizon();
            }
            self.set = None;
        }
        count
    }

    /// Returns the occurrence with `before` others before it if each period has `visit`; `None` if
    /// the calendar ends first.
    pub(super) fn nth_by_constant_size(&mut self, visit: u64, before: u64) -> Option<CivilTime> {
        let earlier = self.set_of_unit(self.origin)?.count_before(self.floor);
        let place = before.checked_add(earlier)?;
        let periods = i64::try_from(place / visit).ok()?;
        let number = periods.checked_mul(self.parts.rule.interval.into())?;
        self.set_of_unit(self.origin.checked_add(number)?)?.nth(place % visit)
    }

    /// Returns the set of a period or step, whether or not the interval selects it.
    fn set_of_unit(&mut self, number: i64) -> Option<PeriodSet> {
        match self.period_unit {
            PeriodUnit::Steps(unit) => {
                let at = CivilTime::new(number.checked_mul(unit)?.max(CivilTime::MIN.seconds()))?;
                Some(self.parts.set_of_unit(at, unit))
            }
            _ => (self.parts.first_day(number) <= LAST_DAY_NUMBER)
                .then(|| self.parts.set_of_period(number)),
        }
    }
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.max(1), b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Iterator for RuleOccurrences<'_> {
    type Item = CivilTime;

    fn next(&mut self) -> Option<CivilTime> {
        while !self.is_ended && !self.is_exhausted {
            let set = match self.set {
                Some(set) => set,
                None => self.load_next_set()?,
            };
            let Some(at) = self.next_chosen(&set) else {
                self.set = None;
                continue;
            };
            self.set = Some(set);
            if at > self.last {
                self.is_ended = true;
                return None;
            }
            self.is_exhausted |= !self.budget.spend(1);
            if self.is_exhausted {
                return None;
            }
            match CivilTime::new(at.seconds() + 1) {
                Some(floor) => self.floor = floor,
                None => self.is_ended = true,
            }
            self.extend_horizon();
            return Some(at);
        }
        None
    }
}
