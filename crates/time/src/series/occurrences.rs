//! The occurrences of a series in a time range.
//!
//! The search for original times covers the civil range widened by a day, because of zones.
//! Overrides are applied afterwards, and an exact comparison of instants selects the occurrences in
//! the range. A long range is expanded in slices, so that the first occurrence is available before
//! the last is computed. When the budget is exhausted, the rest of the range is the last slice: the
//! rules add nothing to it, but the start, RDATEs and overrides need no budget.

use super::{
    CompiledOverride, FutureOverride, Occurrence, OverrideStart, PlannedOccurrence, Series,
};
use crate::civil::{CivilTime, DAY_SECONDS, Instant};
use crate::rule::{Frequency, Rule, StepBudget};
use crate::value::EventLength;
use crate::zone::Zone;

/// The treatment of overrides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideMode {
    /// They are omitted, because they are separate items.
    Exclude,
    /// They are returned at their own time.
    Include,
}

/// Iterates over occurrences by start.
#[derive(Debug, Clone)]
pub struct SeriesOccurrences<'s> {
    series: &'s Series,
    local: &'s Zone,
    zone: &'s Zone,
    override_mode: OverrideMode,
    from: Instant,
    to: Instant,
    /// All occurrences that start earlier have been returned.
    next: Instant,
    slice: i64,
    ready: std::vec::IntoIter<Occurrence>,
    budget: StepBudget,
    initial_steps: u64,
    is_ended: bool,
    is_exhausted: bool,
    is_uncertain: bool,
}

/// The length of a slice, about a year; a series that may recur every second begins with an hour.
const SLICE_SECONDS: i64 = 400 * DAY_SECONDS;
const FIRST_SLICE_SECONDS: i64 = 3600;
/// A slice with fewer occurrences is followed by a longer one.
const MIN_SLICE_OCCURRENCES: usize = 64;

impl Series {
    /// Returns the occurrences that overlap `[from, to)`: that start before its end and end after
    /// its start, or start in it. Dates and floating times are read in `local`.
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
            initial_steps: budget.remaining_steps(),
            is_ended: from >= to,
            is_exhausted: false,
            is_uncertain: false,
        }
    }

    /// Returns the occurrence at DTSTART, whether or not an exception or an override replaces it.
    #[must_use]
    pub fn start_occurrence(&self, local: &Zone) -> Occurrence {
        let zone = self.zone(local);
        let start = zone.to_instant(self.start);
        let civil = if self.has_instant_keys() { zone.to_civil(start) } else { self.start };
        let (end, end_civil) = self.occurrence_end(start, civil, self.length, zone);
        Occurrence {
            original: start,
            original_civil: civil,
            start,
            end,
            start_civil: civil,
            end_civil,
            tag: None,
            is_override: false,
        }
    }

    /// Returns the planned, not excluded occurrences in a closed civil range, sorted by key,
    /// without duplicates.
    pub(super) fn planned_occurrences(
        &self,
        from: CivilTime,
        to: CivilTime,
        budget: &mut StepBudget,
    ) -> Vec<PlannedOccurrence> {
        // For dates, a time of day of the rule denotes its day.
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
        // A stable sort keeps dates with their own length first.
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

    /// Returns the keys of a rule's occurrences in `[from, to]`.
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

    /// Returns the first civil time at or after this one for which an occurrence may be planned.
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

    /// Returns the largest shifts of THISANDFUTURE overrides, backward and forward.
    fn shift_bounds(&self) -> (i64, i64) {
        let shifts = self.future_overrides.iter().map(|range| range.shift_seconds);
        shifts.fold((0, 0), |(back, ahead), shift| (back.min(shift), ahead.max(shift)))
    }
}

impl SeriesOccurrences<'_> {
    /// The steps consumed so far.
    #[must_use]
    pub fn spent_steps(&self) -> u64 {
        self.initial_steps - self.budget.remaining_steps()
    }

    /// Returns whether the budget was exhausted before the end of the range, so that later
    /// occurrences are missing.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Returns whether these are exactly the occurrences of the series. They are not if the budget
    /// was exhausted, or if an occurrence comes from a rule whose COUNT could not be resolved.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.is_exhausted && !self.is_uncertain
    }

    /// Loads all occurrences that start in the next slice, sorted.
    fn load_slice(&mut self) {
        let end = match self.budget.remaining_steps() {
            0 => self.to,
            _ => self.next.saturating_add(self.slice).min(self.to),
        };
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
        self.is_exhausted |= self.budget.remaining_steps() == 0;
        self.is_uncertain |= !found.is_empty() && !self.series.has_resolved_ends();
        self.is_ended = end >= self.to;
        self.next = end;
        if found.len() < MIN_SLICE_OCCURRENCES {
            self.slice = self.slice.saturating_mul(4);
        }
        if found.is_empty() && !self.is_ended {
            self.skip_gap(back);
        }
        self.ready = found.into_iter();
    }

    /// Converts an instant to a civil time, widened by a day if the clock changes near it, because
    /// civil times may be out of order there.
    fn widen_to_civil(&self, moment: Instant, direction: i64) -> CivilTime {
        let shown = self.zone.to_civil(moment);
        let steady = self.zone.offset(moment.saturating_add(-DAY_SECONDS))
            == self.zone.offset(moment.saturating_add(DAY_SECONDS));
        if steady { shown } else { shown.saturating_add(direction * DAY_SECONDS) }
    }

    /// Advances to the next time with a possible occurrence.
    fn skip_gap(&mut self, back: i64) {
        let (_, ahead) = self.series.shift_bounds();
        let from = self.widen_to_civil(self.next, -1).saturating_add(-ahead);
        let planned = self.series.next_planned_civil(from, &mut self.budget);
        if self.budget.remaining_steps() == 0 {
            self.is_exhausted = true;
            return;
        }
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
    }

    /// Builds the occurrence of a planned time; `None` if it is a separate item.
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

    /// Returns the instant and the civil time of a key.
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
