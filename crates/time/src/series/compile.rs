//! A series from its description: everything in the start's clock, and every end found.

use super::{
    Added, Clock, Description, Extra, Override, Place, Range, Series, Single, Start, Trouble,
};
use crate::civil::{Civil, DAY, Instant};
use crate::rule::{Budget, End, Rule};
use crate::value::Stamp;
use crate::zone::Zone;

impl Series {
    /// Compiles a description. The budget is for finding where each rule ends.
    #[must_use]
    pub fn new(description: &Description, budget: Budget) -> (Series, Vec<Trouble>) {
        let Start { civil, date, clock } = &description.start;
        let civil = if *date { Civil::midnight(civil.day()) } else { *civil };
        let mut series = Series {
            start: civil,
            date: *date,
            clock: if *date { Clock::Floating } else { clock.clone() },
            length: description.length,
            rules: Vec::new(),
            exrules: Vec::new(),
            extras: Vec::new(),
            excluded: Vec::new(),
            excluded_days: Vec::new(),
            singles: Vec::new(),
            ranges: Vec::new(),
        };
        let mut troubles = Vec::new();
        series.rules = series.ended(&description.rules, true, budget, &mut troubles);
        series.exrules = series.ended(&description.exrules, false, budget, &mut Vec::new());
        series.add(&description.dates);
        series.exclude(&description.exclusions);
        (series.with_overrides(&description.overrides), troubles)
    }

    /// The same with these changes to it, besides those that it has. Where its rules end is known already.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &[Override]) -> Series {
        overrides.iter().for_each(|change| self.change(change));
        self.singles.sort_by_key(|single| single.original);
        self.singles.dedup_by_key(|single| single.original);
        self.ranges.sort_by_key(|range| range.from);
        self.ranges.dedup_by_key(|range| range.from);
        self
    }

    /// Rules with their ends found. The start takes one of COUNT, whether the rule matches it or not.
    fn ended(
        &self,
        rules: &[Rule],
        start_counts: bool,
        budget: Budget,
        troubles: &mut Vec<Trouble>,
    ) -> Vec<Rule> {
        let mut ended = Vec::with_capacity(rules.len());
        for (number, rule) in rules.iter().enumerate() {
            let mut rule = self.in_clock(rule);
            if self.date {
                rule = rule.of_days();
            }
            if start_counts && rule.count().is_some() && !self.matches(&rule) {
                rule = one_less(rule, self.start);
            }
            let bound = rule.bound();
            let known = rule.clone().ended(self.start, budget);
            match known.as_ref().map(Rule::bound) {
                None => troubles.push(Trouble::EndUnknown(number)),
                Some(Some(end)) if end < self.start => troubles.push(Trouble::Empty(number)),
                Some(_) => {}
            }
            let unknown = || match (rule.count(), bound) {
                // It is followed without that end, and says so.
                (Some(_), _) => rule.clone(),
                (None, Some(bound)) => rule.clone().with_until(bound),
                (None, None) => rule.clone().with_end(End::Never),
            };
            ended.push(known.unwrap_or_else(unknown));
        }
        ended
    }

    /// Is the start an occurrence of a rule?
    pub(super) fn matches(&self, rule: &Rule) -> bool {
        rule.from(self.start, self.start).up_to(self.start).next().is_some()
    }

    /// A rule whose UNTIL is the last time of the series' clock that belongs to it.
    fn in_clock(&self, rule: &Rule) -> Rule {
        let (End::Until(until) | End::Both(until, _)) = rule.end() else { return rule.clone() };
        let last = match &self.clock {
            _ if until.date || self.date => Civil::midnight(until.civil.day()).plus(DAY - 1),
            Clock::Zone(zone) if until.utc => last_until(zone, until.civil),
            _ => until.civil,
        };
        let until = Stamp { civil: last, date: false, utc: false };
        match rule.count() {
            Some(count) => rule.clone().with_end(End::Both(until, count)),
            None => rule.clone().with_until(last),
        }
    }

    /// A date-time as a key. A clock that floats and one that does not have nothing in common, so what is
    /// written counts.
    fn key_of(&self, start: &Start) -> i64 {
        match start.zone() {
            Some(zone) if self.is_fixed() => zone.instant(start.civil).seconds(),
            _ => self.key(start.civil),
        }
    }

    /// The key of a date or date-time in a series that may be of the other kind: a day has the start's time, a
    /// time its day.
    #[must_use]
    pub fn key_near(&self, start: &Start) -> i64 {
        match (start.date, self.date) {
            (true, false) => {
                let midnight = Civil::midnight(start.civil.day());
                self.key(midnight.plus(self.start.second_of_day()))
            }
            (_, true) => Civil::midnight(start.civil.day()).seconds(),
            (false, false) => self.key_of(start),
        }
    }

    fn add(&mut self, dates: &[Extra]) {
        let added = |extra: &Extra| Added { key: self.key_near(&extra.at), length: extra.length };
        let mut extras: Vec<Added> = dates.iter().map(added).collect();
        // Of two at one time, the one that says how long it takes.
        extras.sort_by_key(|extra| (extra.key, extra.length.is_none()));
        extras.dedup_by_key(|extra| extra.key);
        self.extras = extras;
    }

    fn exclude(&mut self, exclusions: &[Start]) {
        let (days, moments): (Vec<&Start>, Vec<&Start>) =
            exclusions.iter().partition(|exclusion| exclusion.date && !self.date);
        self.excluded_days = days.into_iter().map(|day| day.civil.day()).collect();
        self.excluded = moments.into_iter().map(|moment| self.key_near(moment)).collect();
        for list in [&mut self.excluded_days, &mut self.excluded] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
    }

    fn change(&mut self, change: &Override) {
        let original = self.original(&change.original);
        let length = change.length.unwrap_or(self.length);
        let place = match &change.start {
            Some(start) => place(start),
            None if self.date => Place::Date(Civil::clamped(original)),
            None if self.is_fixed() => Place::Instant(Instant::clamped(original)),
            None => Place::Civil(Civil::clamped(original)),
        };
        self.singles.push(Single { original, place, length, tag: change.tag });
        if change.following {
            let shift = change.start.as_ref().map_or(0, |start| {
                self.shown(self.key_near(start)).seconds() - self.shown(original).seconds()
            });
            let range = Range { from: original, shift, length: change.length, tag: change.tag };
            self.ranges.push(range);
        }
    }

    /// The key that a RECURRENCE-ID names. A day in a timed series means what is on that day.
    pub(super) fn original(&self, named: &Start) -> i64 {
        if !named.date || self.date {
            return self.key_near(named);
        }
        let midnight = Civil::midnight(named.civil.day());
        let on_that_day =
            self.planned(midnight.plus(-DAY), midnight.plus(2 * DAY), &mut Budget::default());
        let on_that_day =
            on_that_day.iter().find(|added| self.shown(added.key).day() == midnight.day());
        on_that_day.map_or_else(|| self.key_near(named), |added| added.key)
    }
}

fn place(start: &Start) -> Place {
    match start.zone() {
        _ if start.date => Place::Date(Civil::midnight(start.civil.day())),
        Some(zone) => Place::Instant(zone.instant(start.civil)),
        None => Place::Civil(start.civil),
    }
}

fn one_less(rule: Rule, start: Civil) -> Rule {
    match rule.end() {
        End::Count(1) | End::Both(_, 1) => rule.with_until(start.plus(-1)),
        End::Count(count) => rule.with_end(End::Count(count - 1)),
        End::Both(until, count) => rule.with_end(End::Both(until, count - 1)),
        _ => rule,
    }
}

/// The last clock time whose moment is not after one: where the clock shows a time twice and the moment is in
/// the second pass, all of the first pass is before it.
fn last_until(zone: &Zone, until: Civil) -> Civil {
    let until = Instant::clamped(until.seconds());
    let shown = zone.civil(until);
    let (mut least, mut most) = (0, until.seconds() - zone.instant(shown).seconds());
    while least < most {
        let middle = (least + most + 1) / 2;
        match zone.instant(shown.plus(middle)) <= until {
            true => least = middle,
            false => most = middle - 1,
        }
    }
    shown.plus(least)
}
