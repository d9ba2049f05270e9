//! The occurrences of a series in a window of time.
//!
//! What is planned is found on the clock, widened by a day for what zones do; then it is decided
//! what became of it, and only the moments decide whether it is in the window. A long window is
//! answered in slices, so that its first occurrence does not wait for its last.

use super::{
    CompiledOverride, FutureOverride, Occurrence, OverrideStart, PlannedOccurrence, Series,
};
use crate::civil::{CivilTime, DAY_SECONDS, Instant};
use crate::rule::{Frequency, Rule, StepBudget};
use crate::value::EventLength;
use crate::zone::Zone;

/// What becomes of occurrences that were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideMode {
    /// They are left out, as they are items of their own.
    Exclude,
    /// They are given where they are now.
    Include,
}

/// Occurrences in the order of their starts.
#[derive(Debug, Clone)]
pub struct SeriesOccurrences<'s> {
    series: &'s Series,
    local: &'s Zone,
    zone: &'s Zone,
    override_mode: OverrideMode,
    from: Instant,
    to: Instant,
    /// Those that begin before it have been given.
    next: Instant,
    slice: i64,
    ready: std::vec::IntoIter<Occurrence>,
    budget: StepBudget,
    initial_steps: u64,
    is_ended: bool,
    is_exhausted: bool,
    is_uncertain: bool,
}

/// A slice of a window is about a year; one of a series that may happen every second begins with an
/// hour.
const SLICE_SECONDS: i64 = 400 * DAY_SECONDS;
const FIRST_SLICE_SECONDS: i64 = 3600;
/// A slice that has fewer than these is followed by a longer one.
const MIN_SLICE_OCCURRENCES: usize = 64;

impl Series {
    /// The occurrences that meet `[from, to)`: that begin before its end and end after its
    /// beginning, or begin in it. Days and clocks that float are read in `local`.
    #[must_use]
    pub fn occurrences<'s>(
        &'s self,
        from: Instant,
        to: Instant,
        local: &'s Zone,
        detached: OverrideMode,
        budget: StepBudget,
    ) -> SeriesOccurrences<'s> {
        let often =
            !self.is_date && self.rules.iter().any(|rule| rule.frequency() < Frequency::Daily);
        SeriesOccurrences {
            series: self,
            local,
            zone: self.zone(local),
            override_mode: detached,
            from,
            to,
            next: from.saturating_add(self.max_length_seconds().saturating_neg()),
            slice: if often { FIRST_SLICE_SECONDS } else { SLICE_SECONDS },
            ready: Vec::new().into_iter(),
            budget,
            initial_steps: budget.remaining(),
            is_ended: from >= to,
            is_exhausted: false,
            is_uncertain: false,
        }
    }

    /// What is planned in a stretch of the clock, its ends included, and not excluded: sorted by
    /// key, each once.
    pub(super) fn planned_occurrences(
        &self,
        from: CivilTime,
        to: CivilTime,
        budget: &mut StepBudget,
    ) -> Vec<PlannedOccurrence> {
        // What a rule has at any time of a day is on that day.
        let (from, to) = match self.is_date {
            true => (
                CivilTime::midnight(from.day_number()),
                CivilTime::midnight(to.day_number()).saturating_add(DAY_SECONDS - 1),
            ),
            false => (from, to),
        };
        let mut planned = Vec::with_capacity(8);
        let (first, last) = (self.civil_key(from), self.civil_key(to));
        let begin = self.rdates.partition_point(|extra| extra.key < first);
        let extras = self.rdates.iter().skip(begin).take_while(|extra| extra.key <= last);
        planned.extend(extras);
        if from <= self.start && self.start <= to {
            planned.push(PlannedOccurrence { key: self.civil_key(self.start), length: None });
        }
        for rule in &self.rules {
            let keys = self.rule_keys(rule, from, to, budget);
            planned.extend(keys.map(|key| PlannedOccurrence { key, length: None }));
        }
        // Those that say how long they take are in front.
        planned.sort_by_key(|added| added.key);
        planned.dedup_by_key(|added| added.key);
        if !self.excluded_keys.is_empty() || !self.excluded_days.is_empty() {
            planned.retain(|added| !self.is_excluded(added.key));
        }
        if !self.exrules.is_empty() {
            let mut removed = Vec::new();
            for rule in &self.exrules {
                removed.extend(self.rule_keys(rule, from, to, budget));
            }
            removed.sort_unstable();
            planned.retain(|added| removed.binary_search(&added.key).is_err());
        }
        planned
    }

    pub(super) fn is_excluded(&self, key: i64) -> bool {
        self.excluded_keys.binary_search(&key).is_ok()
            || !self.excluded_days.is_empty()
                && self.excluded_days.binary_search(&self.civil_at_key(key).day_number()).is_ok()
    }

    /// The keys of a rule's occurrences in `[from, to]`.
    fn rule_keys<'a>(
        &'a self,
        rule: &'a Rule,
        from: CivilTime,
        to: CivilTime,
        budget: &'a mut StepBudget,
    ) -> impl Iterator<Item = i64> + 'a {
        let mut found = rule.occurrences_from(self.start, from).with_last(to).with_budget(*budget);
        std::iter::from_fn(move || {
            let next = found.next();
            let left = found.budget();
            *budget = if found.is_exhausted() { StepBudget::new(0) } else { left };
            next.map(|civil| self.civil_key(civil))
        })
    }

    /// The first time at or after one that something may be planned for.
    fn next_planned_civil(&self, from: CivilTime, budget: &mut StepBudget) -> Option<CivilTime> {
        let of_rules = self.rules.iter().filter_map(|rule| {
            let mut found = rule.occurrences_from(self.start, from).with_budget(*budget);
            let next = found.next();
            *budget = if found.is_exhausted() { StepBudget::new(0) } else { found.budget() };
            next
        });
        let earliest = of_rules.min().map(|civil| self.civil_at_key(self.civil_key(civil)));
        let key = self.civil_key(from);
        let extra = self.rdates.get(self.rdates.partition_point(|extra| extra.key < key));
        let extra = extra.map(|extra| self.civil_at_key(extra.key));
        let start = Some(self.start).filter(|start| *start >= from);
        [earliest, extra, start].into_iter().flatten().min()
    }

    /// How far changes have moved occurrences on the clock: at most so far back, and so far ahead.
    fn shift_bounds(&self) -> (i64, i64) {
        let shifts = self.future_overrides.iter().map(|range| range.shift_seconds);
        shifts.fold((0, 0), |(back, ahead), shift| (back.min(shift), ahead.max(shift)))
    }
}

impl SeriesOccurrences<'_> {
    /// Steps taken so far.
    #[must_use]
    pub fn spent_steps(&self) -> u64 {
        self.initial_steps - self.budget.remaining()
    }

    /// Did the budget end before the window did? Then later occurrences are missing.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Are these its occurrences, all of them and no others? Not if the budget ended before the
    /// window did, nor if something was given of a rule with a COUNT that could not be counted.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_exhausted && !self.is_uncertain
    }

    /// All that begin in the next slice, sorted.
    fn load_slice(&mut self) {
        let end = self.next.saturating_add(self.slice).min(self.to);
        let (back, ahead) = self.series.shift_bounds();
        let first = self.widen_to_civil(self.next, -1).saturating_add(-ahead);
        let last = self.widen_to_civil(end, 1).saturating_add(-back);
        let planned = self.series.planned_occurrences(first, last, &mut self.budget);
        let mut found: Vec<Occurrence> = Vec::with_capacity(planned.len());
        found.extend(planned.iter().filter_map(|added| self.build_occurrence(added)));
        if self.override_mode == OverrideMode::Include {
            found.extend(self.series.overrides.iter().map(|single| self.build_override(single)));
        }
        let (next, from, to) = (self.next, self.from, self.to);
        found.retain(|one| one.start >= next && (one.start < end || end == Instant::MAX));
        found.retain(|one| one.start < to && (one.end > from || one.start >= from));
        found.sort_by_key(|one| (one.start, one.original));
        self.is_exhausted |= self.budget.remaining() == 0;
        self.is_uncertain |= !found.is_empty() && !self.series.has_resolved_ends();
        self.is_ended = end >= self.to || self.is_exhausted;
        self.next = end;
        if found.len() < MIN_SLICE_OCCURRENCES {
            self.slice = self.slice.saturating_mul(4);
        }
        if found.is_empty() && !self.is_ended {
            self.skip_gap(back);
        }
        self.ready = found.into_iter();
    }

    /// What the clock shows at a moment; a day further where it changes about then, as what is
    /// shown may not be in order there.
    fn widen_to_civil(&self, moment: Instant, direction: i64) -> CivilTime {
        let shown = self.zone.to_civil(moment);
        let steady = self.zone.offset(moment.saturating_add(-DAY_SECONDS))
            == self.zone.offset(moment.saturating_add(DAY_SECONDS));
        if steady { shown } else { shown.saturating_add(direction * DAY_SECONDS) }
    }

    /// Goes on to the next time that something may be.
    fn skip_gap(&mut self, back: i64) {
        let (_, ahead) = self.series.shift_bounds();
        let from = self.widen_to_civil(self.next, -1).saturating_add(-ahead);
        let planned = self.series.next_planned_civil(from, &mut self.budget);
        let planned = planned.map(|civil| {
            self.zone.to_instant(civil.saturating_add(back)).saturating_add(-DAY_SECONDS)
        });
        let changed =
            self.series.overrides.iter().filter(|_| self.override_mode == OverrideMode::Include);
        let changed = changed.map(|single| self.build_override(single).start);
        let changed = changed.filter(|start| *start >= self.next).min();
        match planned.into_iter().chain(changed).min() {
            Some(next) => self.next = self.next.max(next),
            None => self.is_ended = true,
        }
        self.is_exhausted |= self.budget.remaining() == 0;
        self.is_ended |= self.is_exhausted;
    }

    /// What became of something planned; none if it is an item of its own.
    fn build_occurrence(&self, added: &PlannedOccurrence) -> Option<Occurrence> {
        let Series { overrides: singles, future_overrides: ranges, .. } = self.series;
        if singles.binary_search_by_key(&added.key, |single| single.original).is_ok() {
            return None;
        }
        let (original, original_civil) = self.key_times(added.key);
        let length = added.length.unwrap_or(self.series.length);
        let after = ranges.partition_point(|range| range.from <= added.key);
        let range = after.checked_sub(1).and_then(|last| ranges.get(last));
        let (start, start_civil, length) = match range {
            Some(FutureOverride { shift_seconds: shift, length: changed, .. })
                if *shift != 0 || changed.is_some() =>
            {
                let start = self.zone.to_instant(original_civil.saturating_add(*shift));
                (start, self.zone.to_civil(start), changed.unwrap_or(length))
            }
            _ => (original, original_civil, length),
        };
        let (end, end_civil) = self.series.occurrence_end(start, start_civil, length, self.zone);
        let tag = range.map(|range| range.tag);
        Some(Occurrence {
            original,
            original_civil,
            start,
            end,
            start_civil,
            end_civil,
            tag,
            is_override: false,
        })
    }

    fn build_override(&self, single: &CompiledOverride) -> Occurrence {
        let (original, original_civil) = self.key_times(single.original);
        let (start, start_civil, zone) = match single.start {
            OverrideStart::Instant(start) => (start, self.zone.to_civil(start), self.zone),
            OverrideStart::Civil(civil) | OverrideStart::Date(civil) => {
                (self.local.to_instant(civil), civil, self.local)
            }
        };
        let length = match (single.start, single.length) {
            (OverrideStart::Date(_), EventLength::Exact(seconds)) => {
                EventLength::from_days(seconds / DAY_SECONDS)
            }
            (_, length) => length,
        };
        let (end, end_civil) = self.series.occurrence_end(start, start_civil, length, zone);
        Occurrence {
            original,
            original_civil,
            start,
            end,
            start_civil,
            end_civil,
            tag: Some(single.tag),
            is_override: true,
        }
    }

    /// The moment of a key, and what the clock shows then.
    fn key_times(&self, key: i64) -> (Instant, CivilTime) {
        if self.series.has_instant_keys() {
            let instant = Instant::from_seconds_clamped(key);
            return (instant, self.zone.to_civil(instant));
        }
        let civil = CivilTime::from_seconds_clamped(key);
        (self.local.to_instant(civil), civil)
    }
}

impl Iterator for SeriesOccurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            if let Some(next) = self.ready.next() {
                return Some(next);
            }
            if self.is_ended {
                return None;
            }
            self.load_slice();
        }
    }
}
