//! The occurrences of a rule from any clock time on, found by going to the period that holds it.
//!
//! Years, months, weeks and days are numbered, so the first period at or after a clock time that the interval
//! allows is one division away. HOURLY and below have steps instead, which are looked at only where a day and a
//! time of day pass: a limit that fails leads at once to the next day, hour or minute that can pass, and from
//! there to the next step. What that costs is counted in [`Occurrences::steps`], and bounded by a [`Budget`].

use super::period::{DayFrom, Parts, Set};
use super::{Frequency, Rule, Skip};
use crate::civil::{Civil, DAY, LAST_DAY};

/// The Gregorian calendar repeats after so many days, weekdays included: what has not happened by then, never will.
const CYCLE: i64 = 146_097;

/// How many steps an answer may take: periods looked at and occurrences given. It is used up by what it is given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// So many steps.
    #[must_use]
    pub const fn new(steps: u64) -> Budget {
        Budget { left: steps }
    }

    /// Steps that are left.
    #[must_use]
    pub const fn left(self) -> u64 {
        self.left
    }

    /// Takes some; false when there are not that many left, and then none are.
    pub(crate) fn take(&mut self, steps: u64) -> bool {
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        enough
    }
}

/// Enough for any rule that a person wrote: 200,000 steps, some milliseconds.
impl Default for Budget {
    fn default() -> Budget {
        Budget::new(200_000)
    }
}

/// The occurrences of a rule, in order, each once.
#[derive(Debug, Clone)]
pub struct Occurrences<'r> {
    parts: Parts<'r>,
    pace: Pace,
    /// The period or step to look at next, and those of the start.
    next: i64,
    origin: i64,
    set: Option<Set>,
    /// No occurrence before it is given.
    floor: Civil,
    last: Civil,
    /// The day after which nothing can come that has not come.
    horizon: i64,
    ended: bool,
    exhausted: bool,
    budget: Budget,
    granted: u64,
}

/// What the numbers of periods count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Years, months, weeks.
    Periods,
    Days,
    /// Steps of so many seconds.
    Steps(i64),
}

impl Rule {
    /// The occurrences at or after `at` of this rule when it starts at `start`, which is one only if it
    /// matches. The end of the rule counts, but for COUNT.
    #[must_use]
    pub fn from(&self, start: Civil, at: Civil) -> Occurrences<'_> {
        Occurrences::new(self, start, at)
    }
}

impl<'r> Occurrences<'r> {
    fn new(rule: &'r Rule, start: Civil, at: Civil) -> Occurrences<'r> {
        let parts = Parts::new(rule, start);
        let pace = match rule.frequency {
            Frequency::Secondly => Pace::Steps(1),
            Frequency::Minutely => Pace::Steps(60),
            Frequency::Hourly => Pace::Steps(3600),
            Frequency::Daily => Pace::Days,
            _ => Pace::Periods,
        };
        let floor = at.max(start);
        // SKIP=FORWARD puts an occurrence of a month on the first day of the next.
        let day = floor.day() - i64::from(rule.skip == Skip::Forward);
        let (origin, next) = match pace {
            Pace::Steps(unit) => {
                (start.seconds().div_euclid(unit), floor.seconds().div_euclid(unit))
            }
            _ => (parts.period(start.day()), parts.period(day)),
        };
        let budget = Budget::default();
        let mut occurrences = Occurrences {
            parts,
            pace,
            next: origin,
            origin,
            set: None,
            floor,
            last: rule.bound().unwrap_or(Civil::MAX),
            horizon: 0,
            ended: false,
            exhausted: false,
            budget,
            granted: budget.left(),
        };
        occurrences.go_to(next);
        occurrences.look_ahead();
        occurrences
    }

    /// The same with another budget.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Occurrences { budget, granted: budget.left(), ..self }
    }

    /// The same without what comes after a clock time: whoever asks no further pays for no search behind it.
    #[must_use]
    pub fn up_to(self, last: Civil) -> Self {
        Occurrences { last: self.last.min(last), ..self }
    }

    /// Steps taken so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.granted - self.budget.left()
    }

    /// What is left of the budget.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Did the budget end before the rule did?
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.exhausted
    }

    pub(super) fn parts(&self) -> &Parts<'r> {
        &self.parts
    }

    /// The first period or step of the interval at or after one.
    fn go_to(&mut self, number: i64) {
        let interval = i64::from(self.parts.rule.interval);
        let behind = (number - self.origin).max(0);
        let count = (behind + interval - 1) / interval;
        self.next = self.origin.saturating_add(count.saturating_mul(interval));
    }

    /// The next period or step of the interval.
    fn advance(&mut self) {
        self.next = self.next.saturating_add(self.parts.rule.interval.into());
    }

    fn look_ahead(&mut self) {
        let cycle = CYCLE.saturating_mul(self.parts.rule.interval.into());
        self.horizon = self.floor.day().saturating_add(cycle).min(LAST_DAY);
    }

    /// The next set that is not empty; none when the rule has ended, or the budget.
    fn load(&mut self) -> Option<Set> {
        loop {
            if !self.budget.take(1) {
                self.exhausted = true;
                return None;
            }
            let first = match self.pace {
                Pace::Periods => self.parts.first_day(self.next),
                Pace::Days => self.next,
                Pace::Steps(unit) => self.next.saturating_mul(unit).div_euclid(DAY),
            };
            if first > self.horizon || first > self.last.day() {
                self.ended = true;
                return None;
            }
            let set = match self.pace {
                Pace::Periods => {
                    let set = self.parts.set(self.next);
                    self.advance();
                    (!set.is_empty()).then_some(set)
                }
                Pace::Days => self.day(),
                Pace::Steps(unit) => self.step(unit),
            };
            if set.is_some() {
                return set;
            }
        }
    }

    /// The next day if it passes; else goes on to the first that can.
    fn day(&mut self) -> Option<Set> {
        match self.parts.day_from(self.next) {
            DayFrom::Passes(day) if day == self.next => {
                let set = self.parts.set(day);
                self.advance();
                Some(set)
            }
            DayFrom::Passes(day) | DayFrom::NotBefore(day) => {
                self.go_to(day);
                None
            }
        }
    }

    /// The next step if its day and its time pass; else goes on to the first that can.
    fn step(&mut self, unit: i64) -> Option<Set> {
        let at = Civil::clamped(self.next * unit);
        let after = |seconds: i64| (seconds + unit - 1).div_euclid(unit);
        match self.parts.day_from(at.day()) {
            DayFrom::Passes(day) if day == at.day() => {}
            DayFrom::Passes(day) | DayFrom::NotBefore(day) => {
                self.go_to(after(day * DAY));
                return None;
            }
        }
        // Parts finer than the step are not for it to meet.
        let mut times = self.parts.times;
        times.minutes = if unit > 60 { 1 } else { times.minutes };
        times.seconds = if unit > 1 { 1 } else { times.seconds };
        let second = at.second_of_day();
        match times.from(second) {
            Some(passes) if passes == second => {
                self.advance();
                Some(self.parts.set_of_step(at, unit))
            }
            Some(later) => {
                self.go_to(after(at.day() * DAY + later));
                None
            }
            None => {
                self.go_to(after((at.day() + 1) * DAY));
                None
            }
        }
    }

    /// The first chosen member of a set that may still be given.
    fn pick(&mut self, set: &Set) -> Option<Civil> {
        if self.parts.rule.positions.is_empty() {
            return set.from(self.floor);
        }
        self.pay_for_positions();
        let length = set.len() as i64;
        let places = self.parts.rule.positions.iter().map(|position| i64::from(*position));
        let places =
            places.map(|position| if position > 0 { position - 1 } else { length + position });
        let chosen = places.filter(|place| (0..length).contains(place));
        chosen.filter_map(|place| set.nth(place as u64)).filter(|at| *at >= self.floor).min()
    }

    /// A list of positions is looked through for each occurrence.
    fn pay_for_positions(&mut self) {
        self.exhausted |= !self.budget.take(self.parts.rule.positions.len() as u64 / 8);
    }

    /// How many members of a set are chosen.
    fn chosen(&self, set: &Set) -> u64 {
        let positions = &self.parts.rule.positions;
        let length = set.len();
        if positions.is_empty() {
            return length;
        }
        let signed = length as i64;
        let valid = |position: &&i32| u64::from(position.unsigned_abs()) <= length;
        // A place that is named from both ends counts once.
        let twice = |position: &&i32| {
            let back = i64::from(**position) - 1 - signed;
            **position > 0
                && i32::try_from(back).is_ok_and(|back| positions.binary_search(&back).is_ok())
        };
        let named = positions.iter().filter(valid);
        named.filter(|position| !twice(position)).count() as u64
    }

    /// Passes over whole sets of at most so many occurrences together, without giving them; what is left.
    pub(super) fn pass_over(&mut self, mut count: u64) -> u64 {
        if self.parts.rule.skip == Skip::Forward || count == 0 {
            return count;
        }
        while self.set.is_some() || !self.ended && !self.exhausted {
            if self.set.is_none() {
                self.set = self.load();
            }
            let Some(set) = self.set else { return count };
            let whole = set.nth(0).is_some_and(|first| first >= self.floor);
            self.pay_for_positions();
            let chosen = self.chosen(&set);
            // The last one is found by giving it.
            if !whole || chosen >= count {
                return count;
            }
            count -= chosen;
            if chosen > 0 {
                self.floor = set.nth(set.len() - 1).map_or(self.floor, |last| last.plus(1));
                self.look_ahead();
            }
            self.set = None;
        }
        count
    }

    /// The occurrence that has `before` others before it, when each period has `each`; none when the calendar ends
    /// before that.
    pub(super) fn nth_of_constant(&mut self, each: u64, before: u64) -> Option<Civil> {
        let earlier = self.set_at(self.origin)?.before(self.floor);
        let place = before.checked_add(earlier)?;
        let periods = i64::try_from(place / each).ok()?;
        let number = periods.checked_mul(self.parts.rule.interval.into())?;
        self.set_at(self.origin.checked_add(number)?)?.nth(place % each)
    }

    /// The set of a period or step, whether the interval allows it or not.
    fn set_at(&mut self, number: i64) -> Option<Set> {
        match self.pace {
            Pace::Steps(unit) => {
                let at = Civil::new(number.checked_mul(unit)?.max(Civil::MIN.seconds()))?;
                Some(self.parts.set_of_step(at, unit))
            }
            _ => (self.parts.first_day(number) <= LAST_DAY).then(|| self.parts.set(number)),
        }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Civil;

    fn next(&mut self) -> Option<Civil> {
        while !self.ended && !self.exhausted {
            let set = match self.set {
                Some(set) => set,
                None => self.load()?,
            };
            let Some(at) = self.pick(&set) else {
                self.set = None;
                continue;
            };
            self.set = Some(set);
            if at > self.last {
                self.ended = true;
                return None;
            }
            self.exhausted |= !self.budget.take(1);
            if self.exhausted {
                return None;
            }
            match Civil::new(at.seconds() + 1) {
                Some(floor) => self.floor = floor,
                None => self.ended = true,
            }
            self.look_ahead();
            return Some(at);
        }
        None
    }
}
