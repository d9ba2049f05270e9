//! Bounds of a series: the time that it spans, and other facts that let an index skip it.

use super::{CalendarDateTime, OverrideStart, Series, ZoneReference};
use crate::civil::{DAY_SECONDS, Instant};
use crate::rule::{Rule, RuleEnd};
use crate::value::EventLength;
use crate::zone::Zone;

/// The time that a series spans. It contains every occurrence except overrides, perhaps a little
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesSpan {
    /// Whether the seconds are UTC. Otherwise they are floating, without any change of the clock;
    /// at a DST transition of the observer, an end moves by the change.
    pub is_utc: bool,
    /// The start of the first occurrence.
    pub first: i64,
    /// The end of the last occurrence; `None` for an endless series.
    pub end: Option<i64>,
}

impl Series {
    /// Returns the time that the series spans.
    #[must_use]
    pub fn span(&self) -> SeriesSpan {
        let start = self.civil_key(self.start);
        let shifts = || self.future_overrides.iter().map(|range| range.shift_seconds).chain([0]);
        let earliest = self.rdates.first().map_or(start, |extra| extra.key.min(start));
        let first = earliest.saturating_add(shifts().min().unwrap_or(0));
        let longest = self
            .future_overrides
            .iter()
            .filter_map(|range| range.length)
            .map(EventLength::max_seconds);
        let late = longest.max().unwrap_or(0).saturating_add(shifts().max().unwrap_or(0));
        let extras = self.rdates.iter();
        let mut end = self.occurrence_end_key(start, self.length);
        end = extras.fold(end, |end, extra| {
            end.max(self.occurrence_end_key(extra.key, extra.length.unwrap_or(self.length)))
        });
        let mut last = Some(end);
        for rule in &self.rules {
            last = match (rule.until_bound(), last) {
                (Some(civil), Some(last)) if civil >= self.start => {
                    Some(last.max(self.occurrence_end_key(self.civil_key(civil), self.length)))
                }
                (Some(_), last) => last,
                (None, _) => None,
            };
        }
        // Shifted occurrences, and several occurrences a day, may be out of order if the clock
        // changes.
        let change = if self.future_overrides.is_empty() && self.has_ordered_instants() {
            0
        } else {
            self.max_offset_change_seconds()
        };
        let end = last.map(|last| last.saturating_add(late).saturating_add(change));
        SeriesSpan { is_utc: self.has_instant_keys(), first: first.saturating_sub(change), end }
    }

    /// Returns whether the rules yield instants in order, as they do for at most one occurrence a
    /// day.
    fn has_ordered_instants(&self) -> bool {
        self.rules.iter().all(Rule::has_fixed_time_of_day)
    }

    /// Returns the maximum change of the series' clock in seconds.
    #[must_use]
    pub fn max_offset_change_seconds(&self) -> i64 {
        match &self.zone_reference {
            ZoneReference::Zone(zone) => {
                i64::from(zone.offset_bounds().1) - i64::from(zone.offset_bounds().0)
            }
            ZoneReference::Utc | ZoneReference::Floating => 0,
        }
    }

    /// Returns the time that the override with this tag spans, which may be anywhere.
    #[must_use]
    pub fn override_span(&self, tag: u64) -> Option<SeriesSpan> {
        let single = self.overrides.iter().find(|single| single.tag == tag)?;
        let (fixed, first, day) = match single.start {
            OverrideStart::Instant(at) => (true, at.seconds(), 0),
            OverrideStart::Civil(civil) => (false, civil.seconds(), 0),
            OverrideStart::Date(civil) => (false, civil.seconds(), DAY_SECONDS),
        };
        let end = first.saturating_add(single.length.max_seconds()).saturating_add(day);
        Some(SeriesSpan { is_utc: fixed, first, end: Some(end) })
    }

    /// Returns the key of a RECURRENCE-ID: seconds UTC, or floating seconds. It identifies an
    /// occurrence of this series however the RECURRENCE-ID is written.
    #[must_use]
    pub fn recurrence_id_key(&self, original: &CalendarDateTime) -> i64 {
        self.resolve_recurrence_id(original)
    }

    /// Returns the end of an occurrence whose start is a key.
    fn occurrence_end_key(&self, key: i64, length: EventLength) -> i64 {
        let zone = self.zone(&Zone::UTC);
        let (end, civil) = self.occurrence_end(
            Instant::from_seconds_clamped(key),
            self.civil_at_key(key),
            length,
            zone,
        );
        if self.has_instant_keys() { end.seconds() } else { civil.seconds() }
    }

    /// Returns whether no occurrence is excluded or overridden.
    #[must_use]
    pub fn has_no_exceptions(&self) -> bool {
        self.excluded_keys.is_empty()
            && self.excluded_days.is_empty()
            && self.exrules.is_empty()
            && self.overrides.is_empty()
            && self.future_overrides.is_empty()
    }

    /// Returns whether all occurrences come from rules without a THISANDFUTURE shift. Some may be
    /// excluded or overridden.
    #[must_use]
    pub fn has_only_rules(&self) -> bool {
        self.rdates.is_empty() && self.future_overrides.is_empty()
    }

    /// Returns the rule that yields the whole series, start included.
    fn only_rule(&self) -> Option<&Rule> {
        match &*self.rules {
            [rule] if self.has_only_rules() && self.is_start_matched_by(rule) => Some(rule),
            _ => None,
        }
    }

    /// Returns whether an occurrence starts at the start of the span, and whether one ends at its
    /// end. The result may be false although such an occurrence exists.
    #[must_use]
    pub fn has_occurrences_at_span_ends(&self) -> (bool, bool) {
        let ordered = self.has_ordered_instants() || self.max_offset_change_seconds() == 0;
        let Some(rule) = self.only_rule().filter(|_| ordered && self.exrules.is_empty()) else {
            return (false, false);
        };
        let takes_place = |key| {
            !self.is_excluded(key)
                && self.overrides.binary_search_by_key(&key, |single| single.original).is_err()
        };
        let last = match rule.end() {
            RuleEnd::ResolvedUntil(civil) => {
                rule.occurrences_from(self.start, civil).with_last(civil).next().is_some()
                    && takes_place(self.civil_key(civil))
            }
            _ => false,
        };
        (takes_place(self.civil_key(self.start)), last)
    }

    /// Returns the second (UTC, or floating) after which no occurrence of the rule is missing and
    /// every earlier occurrence has ended; `None` if there is no simple way to compute it.
    #[must_use]
    pub fn complete_after(&self) -> Option<i64> {
        self.only_rule().filter(|_| self.exrules.is_empty())?;
        let days =
            self.excluded_days.last().map(|day| day.saturating_add(2).saturating_mul(DAY_SECONDS));
        let singles = self.overrides.last().map(|single| single.original);
        let last = [self.excluded_keys.last().copied(), days, singles].into_iter().flatten().max();
        let goes_on = self
            .max_length_seconds()
            .saturating_add(self.max_offset_change_seconds())
            .saturating_add(DAY_SECONDS);
        Some(last.map_or(i64::MIN, |last| last.saturating_add(goes_on)))
    }

    /// Returns an upper bound of the seconds between occurrences of the rule in its own zone, while
    /// the series lasts; `None` if there is no simple way to compute it.
    #[must_use]
    pub fn max_gap_seconds(&self) -> Option<i64> {
        self.only_rule()?.max_gap_seconds(self.start)
    }

    /// Returns whether the rule has an occurrence on each of its weekdays in each week.
    #[must_use]
    pub fn is_gapless_weekly(&self) -> bool {
        self.only_rule().is_some_and(|rule| rule.is_gapless_weekly(self.start))
    }
}
