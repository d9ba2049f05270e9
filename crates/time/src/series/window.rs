//! The occurrences of a series in a window of time.
//!
//! What is planned is found on the clock, widened by a day for what zones do; then it is decided what became of
//! it, and only the moments decide whether it is in the window. A long window is answered in slices, so that
//! its first occurrence does not wait for its last.

use super::{Added, Occurrence, Place, Range, Series, Single};
use crate::civil::{Civil, DAY, Instant};
use crate::rule::{Budget, Frequency, Rule};
use crate::value::Length;
use crate::zone::Zone;

/// What becomes of occurrences that were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detached {
    /// They are left out, as they are items of their own.
    Leave,
    /// They are given where they are now.
    Give,
}

/// Occurrences in the order of their starts.
#[derive(Debug, Clone)]
pub struct Window<'s> {
    series: &'s Series,
    local: &'s Zone,
    zone: &'s Zone,
    detached: Detached,
    from: Instant,
    to: Instant,
    /// Those that begin before it have been given.
    next: Instant,
    slice: i64,
    ready: std::vec::IntoIter<Occurrence>,
    budget: Budget,
    granted: u64,
    ended: bool,
    exhausted: bool,
    doubtful: bool,
}

/// A slice of a window is about a year; one of a series that may happen every second begins with an hour.
const SLICE: i64 = 400 * DAY;
const FIRST_SLICE: i64 = 3600;
/// A slice that has fewer than these is followed by a longer one.
const FEW: usize = 64;

impl Series {
    /// The occurrences that meet `[from, to)`: that begin before its end and end after its beginning, or begin
    /// in it. Days and clocks that float are read in `local`.
    #[must_use]
    pub fn occurrences<'s>(
        &'s self,
        from: Instant,
        to: Instant,
        local: &'s Zone,
        detached: Detached,
        budget: Budget,
    ) -> Window<'s> {
        let often = !self.date && self.rules.iter().any(|rule| rule.frequency() < Frequency::Daily);
        Window {
            series: self,
            local,
            zone: self.zone(local),
            detached,
            from,
            to,
            next: from.plus(self.longest().saturating_neg()),
            slice: if often { FIRST_SLICE } else { SLICE },
            ready: Vec::new().into_iter(),
            budget,
            granted: budget.left(),
            ended: from >= to,
            exhausted: false,
            doubtful: false,
        }
    }

    /// What is planned in a stretch of the clock, its ends included, and not excluded: sorted by key, each once.
    pub(super) fn planned(&self, from: Civil, to: Civil, budget: &mut Budget) -> Vec<Added> {
        // What a rule has at any time of a day is on that day.
        let (from, to) = match self.date {
            true => (Civil::midnight(from.day()), Civil::midnight(to.day()).plus(DAY - 1)),
            false => (from, to),
        };
        let mut planned = Vec::with_capacity(8);
        let (first, last) = (self.key(from), self.key(to));
        let begin = self.extras.partition_point(|extra| extra.key < first);
        let extras = self.extras.iter().skip(begin).take_while(|extra| extra.key <= last);
        planned.extend(extras);
        if from <= self.start && self.start <= to {
            planned.push(Added { key: self.key(self.start), length: None });
        }
        for rule in &self.rules {
            let keys = self.keys(rule, from, to, budget);
            planned.extend(keys.map(|key| Added { key, length: None }));
        }
        // Those that say how long they take are in front.
        planned.sort_by_key(|added| added.key);
        planned.dedup_by_key(|added| added.key);
        if !self.excluded.is_empty() || !self.excluded_days.is_empty() {
            planned.retain(|added| !self.is_excluded(added.key));
        }
        if !self.exrules.is_empty() {
            let mut removed = Vec::new();
            for rule in &self.exrules {
                removed.extend(self.keys(rule, from, to, budget));
            }
            removed.sort_unstable();
            planned.retain(|added| removed.binary_search(&added.key).is_err());
        }
        planned
    }

    pub(super) fn is_excluded(&self, key: i64) -> bool {
        self.excluded.binary_search(&key).is_ok()
            || !self.excluded_days.is_empty()
                && self.excluded_days.binary_search(&self.shown(key).day()).is_ok()
    }

    /// The keys of a rule's occurrences in `[from, to]`.
    fn keys<'a>(
        &'a self,
        rule: &'a Rule,
        from: Civil,
        to: Civil,
        budget: &'a mut Budget,
    ) -> impl Iterator<Item = i64> + 'a {
        let mut found = rule.from(self.start, from).up_to(to).with_budget(*budget);
        std::iter::from_fn(move || {
            let next = found.next();
            let left = found.budget();
            *budget = if found.exhausted() { Budget::new(0) } else { left };
            next.map(|civil| self.key(civil))
        })
    }

    /// The first time at or after one that something may be planned for.
    fn next_planned(&self, from: Civil, budget: &mut Budget) -> Option<Civil> {
        let of_rules = self.rules.iter().filter_map(|rule| {
            let mut found = rule.from(self.start, from).with_budget(*budget);
            let next = found.next();
            *budget = if found.exhausted() { Budget::new(0) } else { found.budget() };
            next
        });
        let earliest = of_rules.min().map(|civil| self.shown(self.key(civil)));
        let key = self.key(from);
        let extra = self.extras.get(self.extras.partition_point(|extra| extra.key < key));
        let extra = extra.map(|extra| self.shown(extra.key));
        let start = Some(self.start).filter(|start| *start >= from);
        [earliest, extra, start].into_iter().flatten().min()
    }

    /// How far changes have moved occurrences on the clock: at most so far back, and so far ahead.
    fn shifts(&self) -> (i64, i64) {
        let shifts = self.ranges.iter().map(|range| range.shift);
        shifts.fold((0, 0), |(back, ahead), shift| (back.min(shift), ahead.max(shift)))
    }
}

impl Window<'_> {
    /// Steps taken so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.granted - self.budget.left()
    }

    /// Did the budget end before the window did? Then later occurrences are missing.
    #[must_use]
    pub fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// Are these its occurrences, all of them and no others? Not if the budget ended before the window did, nor if
    /// something was given of a rule with a COUNT that could not be counted.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        !self.exhausted && !self.doubtful
    }

    /// All that begin in the next slice, sorted.
    fn fill(&mut self) {
        let end = self.next.plus(self.slice).min(self.to);
        let (back, ahead) = self.series.shifts();
        let first = self.widened(self.next, -1).plus(-ahead);
        let last = self.widened(end, 1).plus(-back);
        let planned = self.series.planned(first, last, &mut self.budget);
        let mut found: Vec<Occurrence> = Vec::with_capacity(planned.len());
        found.extend(planned.iter().filter_map(|added| self.occurrence(added)));
        if self.detached == Detached::Give {
            found.extend(self.series.singles.iter().map(|single| self.changed(single)));
        }
        let (next, from, to) = (self.next, self.from, self.to);
        found.retain(|one| one.start >= next && (one.start < end || end == Instant::MAX));
        found.retain(|one| one.start < to && (one.end > from || one.start >= from));
        found.sort_by_key(|one| (one.start, one.original));
        self.exhausted |= self.budget.left() == 0;
        self.doubtful |= !found.is_empty() && !self.series.is_counted();
        self.ended = end >= self.to || self.exhausted;
        self.next = end;
        if found.len() < FEW {
            self.slice = self.slice.saturating_mul(4);
        }
        if found.is_empty() && !self.ended {
            self.jump(back);
        }
        self.ready = found.into_iter();
    }

    /// What the clock shows at a moment; a day further where it changes about then, as what is shown may not be
    /// in order there.
    fn widened(&self, moment: Instant, direction: i64) -> Civil {
        let shown = self.zone.civil(moment);
        let steady = self.zone.offset(moment.plus(-DAY)) == self.zone.offset(moment.plus(DAY));
        if steady { shown } else { shown.plus(direction * DAY) }
    }

    /// Goes on to the next time that something may be.
    fn jump(&mut self, back: i64) {
        let (_, ahead) = self.series.shifts();
        let from = self.widened(self.next, -1).plus(-ahead);
        let planned = self.series.next_planned(from, &mut self.budget);
        let planned = planned.map(|civil| self.zone.instant(civil.plus(back)).plus(-DAY));
        let changed = self.series.singles.iter().filter(|_| self.detached == Detached::Give);
        let changed = changed.map(|single| self.changed(single).start);
        let changed = changed.filter(|start| *start >= self.next).min();
        match planned.into_iter().chain(changed).min() {
            Some(next) => self.next = self.next.max(next),
            None => self.ended = true,
        }
        self.exhausted |= self.budget.left() == 0;
        self.ended |= self.exhausted;
    }

    /// What became of something planned; none if it is an item of its own.
    fn occurrence(&self, added: &Added) -> Option<Occurrence> {
        let Series { singles, ranges, .. } = self.series;
        if singles.binary_search_by_key(&added.key, |single| single.original).is_ok() {
            return None;
        }
        let (original, original_civil) = self.moment(added.key);
        let length = added.length.unwrap_or(self.series.length);
        let after = ranges.partition_point(|range| range.from <= added.key);
        let range = after.checked_sub(1).and_then(|last| ranges.get(last));
        let (start, start_civil, length) = match range {
            Some(Range { shift, length: changed, .. }) if *shift != 0 || changed.is_some() => {
                let start = self.zone.instant(original_civil.plus(*shift));
                (start, self.zone.civil(start), changed.unwrap_or(length))
            }
            _ => (original, original_civil, length),
        };
        let (end, end_civil) = self.series.end(start, start_civil, length, self.zone);
        let tag = range.map(|range| range.tag);
        Some(Occurrence {
            original,
            original_civil,
            start,
            end,
            start_civil,
            end_civil,
            tag,
            detached: false,
        })
    }

    fn changed(&self, single: &Single) -> Occurrence {
        let (original, original_civil) = self.moment(single.original);
        let (start, start_civil, zone) = match single.place {
            Place::Instant(start) => (start, self.zone.civil(start), self.zone),
            Place::Civil(civil) | Place::Date(civil) => {
                (self.local.instant(civil), civil, self.local)
            }
        };
        let length = match (single.place, single.length) {
            (Place::Date(_), Length::Exact(seconds)) => Length::days(seconds / DAY),
            (_, length) => length,
        };
        let (end, end_civil) = self.series.end(start, start_civil, length, zone);
        Occurrence {
            original,
            original_civil,
            start,
            end,
            start_civil,
            end_civil,
            tag: Some(single.tag),
            detached: true,
        }
    }

    /// The moment of a key, and what the clock shows then.
    fn moment(&self, key: i64) -> (Instant, Civil) {
        if self.series.is_fixed() {
            let instant = Instant::clamped(key);
            return (instant, self.zone.civil(instant));
        }
        let civil = Civil::clamped(key);
        (self.local.instant(civil), civil)
    }
}

impl Iterator for Window<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            if let Some(next) = self.ready.next() {
                return Some(next);
            }
            if self.ended {
                return None;
            }
            self.fill();
        }
    }
}
