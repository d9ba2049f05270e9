//! What is asked of a series beside its occurrences: from when to when it goes, and what else an index needs to
//! pass over it.

use super::{Clock, Place, Series, Start};
use crate::civil::{DAY, Instant};
use crate::rule::{End, Rule};
use crate::value::Length;
use crate::zone::Zone;

/// From when to when a series goes. It holds every occurrence that is not changed on its own, perhaps a little more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The seconds are of UTC; else of a clock that floats, as if it never changed: where it does, what takes so many seconds
    /// ends sooner or later by it.
    pub fixed: bool,
    /// When the first begins.
    pub first: i64,
    /// When the last has ended; none if there is no last.
    pub end: Option<i64>,
}

impl Series {
    /// From when to when it goes.
    #[must_use]
    pub fn span(&self) -> Span {
        let start = self.key(self.start);
        let shifts = || self.ranges.iter().map(|range| range.shift).chain([0]);
        let earliest = self.extras.first().map_or(start, |extra| extra.key.min(start));
        let first = earliest.saturating_add(shifts().min().unwrap_or(0));
        let longest = self.ranges.iter().filter_map(|range| range.length).map(Length::longest);
        let late = longest.max().unwrap_or(0).saturating_add(shifts().max().unwrap_or(0));
        let extras = self.extras.iter();
        let mut end = self.end_key(start, self.length);
        end = extras.fold(end, |end, extra| {
            end.max(self.end_key(extra.key, extra.length.unwrap_or(self.length)))
        });
        let mut last = Some(end);
        for rule in &self.rules {
            last = match (rule.bound(), last) {
                (Some(civil), Some(last)) if civil >= self.start => {
                    Some(last.max(self.end_key(self.key(civil), self.length)))
                }
                (Some(_), last) => last,
                (None, _) => None,
            };
        }
        // What is moved on the clock, and what happens several times a day, may be out of order where that changes.
        let change =
            if self.ranges.is_empty() && self.keeps_order() { 0 } else { self.clock_change() };
        let end = last.map(|last| last.saturating_add(late).saturating_add(change));
        Span { fixed: self.is_fixed(), first: first.saturating_sub(change), end }
    }

    /// Do its rules give the moments of occurrences in their order, as they are once a day at most?
    fn keeps_order(&self) -> bool {
        self.rules.iter().all(Rule::keeps_time_of_day)
    }

    /// How much its clock changes, at most.
    #[must_use]
    pub fn clock_change(&self) -> i64 {
        match &self.clock {
            Clock::Zone(zone) => i64::from(zone.offsets().1) - i64::from(zone.offsets().0),
            Clock::Utc | Clock::Floating => 0,
        }
    }

    /// From when to when the changed occurrence of this tag is itself, which may be anywhere.
    #[must_use]
    pub fn span_of_changed(&self, tag: u64) -> Option<Span> {
        let single = self.singles.iter().find(|single| single.tag == tag)?;
        let (fixed, first, day) = match single.place {
            Place::Instant(at) => (true, at.seconds(), 0),
            Place::Civil(civil) => (false, civil.seconds(), 0),
            Place::Date(civil) => (false, civil.seconds(), DAY),
        };
        let end = first.saturating_add(single.length.longest()).saturating_add(day);
        Some(Span { fixed, first, end: Some(end) })
    }

    /// The key of what a RECURRENCE-ID says: seconds UTC, or of the clock if it floats, by which occurrences of
    /// this series can be told apart however they are written.
    #[must_use]
    pub fn key_of_original(&self, original: &Start) -> i64 {
        self.original(original)
    }

    /// When something ends that begins at a key.
    fn end_key(&self, key: i64, length: Length) -> i64 {
        let zone = self.zone(&Zone::UTC);
        let (end, civil) = self.end(Instant::clamped(key), self.shown(key), length, zone);
        if self.is_fixed() { end.seconds() } else { civil.seconds() }
    }

    /// Is nothing of it excluded or changed?
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.excluded.is_empty()
            && self.excluded_days.is_empty()
            && self.exrules.is_empty()
            && self.singles.is_empty()
            && self.ranges.is_empty()
    }

    /// Does it happen by rules alone, none of which a change has shifted? Occurrences may be excluded, or be elsewhere.
    #[must_use]
    pub fn is_by_rules(&self) -> bool {
        self.extras.is_empty() && self.ranges.is_empty()
    }

    /// The rule that plans all of it, its start as well.
    fn only_rule(&self) -> Option<&Rule> {
        match &*self.rules {
            [rule] if self.is_by_rules() && self.matches(rule) => Some(rule),
            _ => None,
        }
    }

    /// Are there occurrences at the two ends of its span, the one that begins with it and the one that ends with it? It
    /// may be that there are although this says no.
    #[must_use]
    pub fn reaches_its_ends(&self) -> (bool, bool) {
        let ordered = self.keeps_order() || self.clock_change() == 0;
        let Some(rule) = self.only_rule().filter(|_| ordered && self.exrules.is_empty()) else {
            return (false, false);
        };
        let takes_place = |key| {
            !self.is_excluded(key)
                && self.singles.binary_search_by_key(&key, |single| single.original).is_err()
        };
        let last = match rule.end() {
            End::At(civil) => {
                rule.from(self.start, civil).up_to(civil).next().is_some()
                    && takes_place(self.key(civil))
            }
            _ => false,
        };
        (takes_place(self.key(self.start)), last)
    }

    /// Behind this second, of UTC or of a clock that floats, none is missing of those that its rule plans, nor would one that is
    /// still go on; none where nothing simple can be said.
    #[must_use]
    pub fn whole_behind(&self) -> Option<i64> {
        self.only_rule().filter(|_| self.exrules.is_empty())?;
        let days = self.excluded_days.last().map(|day| day.saturating_add(2).saturating_mul(DAY));
        let singles = self.singles.last().map(|single| single.original);
        let last = [self.excluded.last().copied(), days, singles].into_iter().flatten().max();
        let goes_on = self.longest().saturating_add(self.clock_change()).saturating_add(DAY);
        Some(last.map_or(i64::MIN, |last| last.saturating_add(goes_on)))
    }

    /// An upper bound of the seconds from one occurrence to the next that its rule plans, by its own clock and while the series goes
    /// on; none where nothing simple can be said.
    #[must_use]
    pub fn longest_gap(&self) -> Option<i64> {
        self.only_rule()?.longest_gap(self.start)
    }

    /// Does its rule plan something on each of its weekdays, in each week?
    #[must_use]
    pub fn is_each_week(&self) -> bool {
        self.only_rule().is_some_and(|rule| rule.is_each_week(self.start))
    }
}
