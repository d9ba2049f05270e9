//! Compiles a series: converts everything to the zone of the start, and resolves every end.

use super::{
    CalendarDateTime, CompiledOverride, FutureOverride, Override, OverrideStart, PlannedOccurrence,
    Rdate, Series, SeriesSpec, SeriesWarning, ZoneReference,
};
use crate::civil::{CivilTime, DAY_SECONDS, Instant};
use crate::rule::{Rule, RuleEnd, StepBudget};
use crate::value::IcalDateTime;
use crate::zone::Zone;

impl Series {
    /// Compiles a spec. The budget bounds the search for the end of each rule.
    #[must_use]
    pub fn new(description: &SeriesSpec, budget: StepBudget) -> (Series, Vec<SeriesWarning>) {
        let CalendarDateTime { civil, is_date: date, zone_reference: clock } = &description.start;
        let civil = if *date { CivilTime::midnight(civil.day_number()) } else { *civil };
        let mut series = Series {
            start: civil,
            is_date: *date,
            zone_reference: if *date { ZoneReference::Floating } else { clock.clone() },
            length: description.length,
            rules: Vec::new(),
            exrules: Vec::new(),
            rdates: Vec::new(),
            excluded_keys: Vec::new(),
            excluded_days: Vec::new(),
            overrides: Vec::new(),
            future_overrides: Vec::new(),
        };
        let mut troubles = Vec::new();
        series.rules = series.resolve_rule_ends(&description.rules, true, budget, &mut troubles);
        series.exrules =
            series.resolve_rule_ends(&description.exrules, false, budget, &mut Vec::new());
        series.set_rdates(&description.rdates);
        series.set_exdates(&description.exdates);
        (series.with_overrides(&description.overrides), troubles)
    }

    /// Compiles the series again with additional overrides. The ends of its rules are known
    /// already.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &[Override]) -> Series {
        overrides.iter().for_each(|change| self.add_override(change));
        self.overrides.sort_by_key(|single| single.original);
        self.overrides.dedup_by_key(|single| single.original);
        self.future_overrides.sort_by_key(|range| range.from);
        self.future_overrides.dedup_by_key(|range| range.from);
        self
    }

    /// Resolves the ends of rules. The start counts toward COUNT, whether or not the rule matches
    /// it.
    fn resolve_rule_ends(
        &self,
        rules: &[Rule],
        start_counts: bool,
        budget: StepBudget,
        troubles: &mut Vec<SeriesWarning>,
    ) -> Vec<Rule> {
        let mut ended = Vec::with_capacity(rules.len());
        for (number, rule) in rules.iter().enumerate() {
            let mut rule = self.localize_until(rule);
            if self.is_date {
                rule = rule.into_date_only();
            }
            if start_counts && rule.count().is_some() && !self.is_start_matched_by(&rule) {
                rule = decrement_count(rule, self.start);
            }
            let bound = rule.until_bound();
            let known = rule.clone().with_resolved_end(self.start, budget);
            match known.as_ref().map(Rule::until_bound) {
                None => troubles.push(SeriesWarning::UnknownEnd(number)),
                Some(Some(end)) if end < self.start => {
                    troubles.push(SeriesWarning::NoOccurrence(number));
                }
                Some(_) => {}
            }
            let unknown = || match (rule.count(), bound) {
                // The series continues without that end, and a warning says so.
                (Some(_), _) => rule.clone(),
                (None, Some(bound)) => rule.clone().with_until(bound),
                (None, None) => rule.clone().with_end(RuleEnd::Never),
            };
            ended.push(known.unwrap_or_else(unknown));
        }
        ended
    }

    /// Returns whether the start is an occurrence of a rule.
    pub(super) fn is_start_matched_by(&self, rule: &Rule) -> bool {
        rule.occurrences_from(self.start, self.start).with_last(self.start).next().is_some()
    }

    /// Converts UNTIL to the last civil time in the zone of the series.
    fn localize_until(&self, rule: &Rule) -> Rule {
        let (RuleEnd::Until(until) | RuleEnd::UntilAndCount(until, _)) = rule.end() else {
            return rule.clone();
        };
        let last = match &self.zone_reference {
            _ if until.is_date || self.is_date => {
                CivilTime::midnight(until.civil.day_number()).saturating_add(DAY_SECONDS - 1)
            }
            ZoneReference::Zone(zone) if until.is_utc => last_civil_until(zone, until.civil),
            _ => until.civil,
        };
        let until = IcalDateTime { civil: last, is_date: false, is_utc: false };
        match rule.count() {
            Some(count) => rule.clone().with_end(RuleEnd::UntilAndCount(until, count)),
            None => rule.clone().with_until(last),
        }
    }

    /// Returns the key of a date-time. A floating time and a time with a zone cannot be converted,
    /// so the written time is used.
    fn exact_key(&self, start: &CalendarDateTime) -> i64 {
        match start.zone() {
            Some(zone) if self.has_instant_keys() => zone.to_instant(start.civil).seconds(),
            _ => self.civil_key(start.civil),
        }
    }

    /// Returns the key of a date or date-time in a series of the other value type: a date takes the
    /// time of the start, a date-time its date.
    #[must_use]
    pub fn lenient_key(&self, start: &CalendarDateTime) -> i64 {
        match (start.is_date, self.is_date) {
            (true, false) => {
                let midnight = CivilTime::midnight(start.civil.day_number());
                self.civil_key(midnight.saturating_add(self.start.second_of_day()))
            }
            (_, true) => CivilTime::midnight(start.civil.day_number()).seconds(),
            (false, false) => self.exact_key(start),
        }
    }

    fn set_rdates(&mut self, dates: &[Rdate]) {
        let added = |extra: &Rdate| PlannedOccurrence {
            key: self.lenient_key(&extra.start),
            length: extra.length,
        };
        let mut extras: Vec<PlannedOccurrence> = dates.iter().map(added).collect();
        // If two RDATEs have the same time, the RDATE with its own length takes precedence.
        extras.sort_by_key(|extra| (extra.key, extra.length.is_none()));
        extras.dedup_by_key(|extra| extra.key);
        self.rdates = extras;
    }

    fn set_exdates(&mut self, exclusions: &[CalendarDateTime]) {
        let (days, moments): (Vec<&CalendarDateTime>, Vec<&CalendarDateTime>) =
            exclusions.iter().partition(|exclusion| exclusion.is_date && !self.is_date);
        self.excluded_days = days.into_iter().map(|day| day.civil.day_number()).collect();
        self.excluded_keys = moments.into_iter().map(|moment| self.lenient_key(moment)).collect();
        for list in [&mut self.excluded_days, &mut self.excluded_keys] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
    }

    fn add_override(&mut self, change: &Override) {
        let original = self.resolve_recurrence_id(&change.original);
        let length = change.length.unwrap_or(self.length);
        let place = match &change.start {
            Some(start) => override_start(start),
            None if self.is_date => OverrideStart::Date(CivilTime::from_seconds_clamped(original)),
            None if self.has_instant_keys() => {
                OverrideStart::Instant(Instant::from_seconds_clamped(original))
            }
            None => OverrideStart::Civil(CivilTime::from_seconds_clamped(original)),
        };
        self.overrides.push(CompiledOverride { original, start: place, length, tag: change.tag });
        if change.is_this_and_future {
            let shift = change.start.as_ref().map_or(0, |start| {
                self.civil_at_key(self.lenient_key(start)).seconds()
                    - self.civil_at_key(original).seconds()
            });
            let range = FutureOverride {
                from: original,
                shift_seconds: shift,
                length: change.length,
                tag: change.tag,
            };
            self.future_overrides.push(range);
        }
    }

    /// Returns the key that a RECURRENCE-ID names. A date in a timed series names the occurrence on
    /// that day.
    pub(super) fn resolve_recurrence_id(&self, named: &CalendarDateTime) -> i64 {
        if !named.is_date || self.is_date {
            return self.lenient_key(named);
        }
        let midnight = CivilTime::midnight(named.civil.day_number());
        let on_that_day = self.planned_occurrences(
            midnight.saturating_add(-DAY_SECONDS),
            midnight.saturating_add(2 * DAY_SECONDS),
            &mut StepBudget::default(),
        );
        let on_that_day = on_that_day
            .iter()
            .find(|added| self.civil_at_key(added.key).day_number() == midnight.day_number());
        on_that_day.map_or_else(|| self.lenient_key(named), |added| added.key)
    }
}

fn override_start(start: &CalendarDateTime) -> OverrideStart {
    match start.zone() {
        _ if start.is_date => OverrideStart::Date(CivilTime::midnight(start.civil.day_number())),
        Some(zone) => OverrideStart::Instant(zone.to_instant(start.civil)),
        None => OverrideStart::Civil(start.civil),
    }
}

fn decrement_count(rule: Rule, start: CivilTime) -> Rule {
    match rule.end() {
        RuleEnd::Count(1) | RuleEnd::UntilAndCount(_, 1) => {
            rule.with_until(start.saturating_add(-1))
        }
        RuleEnd::Count(count) => rule.with_end(RuleEnd::Count(count - 1)),
        RuleEnd::UntilAndCount(until, count) => {
            rule.with_end(RuleEnd::UntilAndCount(until, count - 1))
        }
        _ => rule,
    }
}

/// Returns the last civil time whose instant is not after this one. If the clock shows a time twice
/// and the instant is in the second pass, all of the first pass precedes it.
fn last_civil_until(zone: &Zone, until: CivilTime) -> CivilTime {
    let until = Instant::from_seconds_clamped(until.seconds());
    let shown = zone.to_civil(until);
    let (mut least, mut most) = (0, until.seconds() - zone.to_instant(shown).seconds());
    while least < most {
        let middle = (least + most + 1) / 2;
        match zone.to_instant(shown.saturating_add(middle)) <= until {
            true => least = middle,
            false => most = middle - 1,
        }
    }
    shown.saturating_add(least)
}
