//! Time zone definitions (VTIMEZONE): their rules, a canonical text, and their evaluation.

use super::transition_table::TransitionTable;
use crate::civil::{CivilTime, DAY_SECONDS, Instant, first_day_of_year};
use crate::rule::{LastOccurrence, Rule, RuleEnd, StepBudget};
use crate::value::{IcalDateTime, UtcOffset};
use std::fmt::Write as _;

/// The observances of a VTIMEZONE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vtimezone {
    /// STANDARD and DAYLIGHT, in any order.
    pub observances: Vec<ZoneObservance>,
}

/// An observance: STANDARD or DAYLIGHT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneObservance {
    /// DAYLIGHT.
    pub is_daylight: bool,
    /// DTSTART: the first onset, in the local time before it.
    pub onset: CivilTime,
    /// TZOFFSETFROM.
    pub offset_from: UtcOffset,
    /// TZOFFSETTO.
    pub offset_to: UtcOffset,
    /// RRULE.
    pub rules: Vec<Rule>,
    /// RDATE.
    pub rdates: Vec<IcalDateTime>,
}

/// The end of the transition table; later transitions, of rules without end, are computed on
/// demand.
const TABLE_END_SECONDS: i64 = first_day_of_year(2200) * DAY_SECONDS;

/// The maximum number of transitions: thirty times as many as the real zone with the most
/// transitions has.
const MAX_TRANSITIONS: usize = 8_192;
/// The maximum number of rules without end, and the steps each may take to find its last transition
/// before an instant.
const MAX_OPEN_RULES: usize = 16;
const OPEN_RULE_BUDGET: StepBudget = StepBudget::new(500);

impl Vtimezone {
    /// Returns a text that is equal for equal definitions: the sorted observances without names,
    /// order, comments, INTERVAL=1 and WKST.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let mut lines: Vec<String> =
            self.observances.iter().map(ZoneObservance::canonical_text).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.join("\n")
    }
}

impl ZoneObservance {
    fn canonical_text(&self) -> String {
        let mut rules: Vec<String> = self.rules.iter().map(rule_text_without_wkst).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut dates: Vec<String> = self.rdates.iter().map(ToString::to_string).collect();
        dates.sort_unstable();
        dates.dedup();
        let kind = if self.is_daylight { "DAYLIGHT" } else { "STANDARD" };
        let mut line = format!("{kind} {} {} {}", self.offset_from, self.offset_to, self.onset);
        for (name, list) in [("RRULE", rules), ("RDATE", dates)] {
            for text in list {
                // Writing to a string cannot fail.
                let _ = write!(line, " {name}:{text}");
            }
        }
        line
    }

    /// Converts a civil time with the offset before the onset.
    fn to_instant(&self, civil: CivilTime) -> Instant {
        Instant::from_seconds_clamped(civil.seconds() - i64::from(self.offset_from.seconds()))
    }

    /// Converts UNTIL from UTC to the local time before the onset.
    fn localize_until(&self, rule: &Rule) -> Rule {
        match rule.end() {
            RuleEnd::Until(until) | RuleEnd::UntilAndCount(until, _) if until.is_utc => {
                let civil = until.civil.saturating_add(self.offset_from.seconds().into());
                let until = IcalDateTime { civil, is_date: false, is_utc: false };
                let end = match rule.count() {
                    Some(count) => RuleEnd::UntilAndCount(until, count),
                    None => RuleEnd::Until(until),
                };
                rule.clone().with_end(end)
            }
            _ => rule.clone(),
        }
    }

    /// Returns the last transition by a rule at or before an instant.
    fn last_transition(&self, rule: &Rule, instant: Instant) -> Option<Instant> {
        let bound = instant.to_civil(self.offset_from.seconds());
        let bound = rule.until_bound().map_or(bound, |end| end.min(bound));
        match rule.clone().with_until(bound).last_occurrence(self.onset, OPEN_RULE_BUDGET) {
            LastOccurrence::At(last) => Some(self.to_instant(last)),
            _ => None,
        }
    }
}

fn rule_text_without_wkst(rule: &Rule) -> String {
    let text = rule.to_string();
    let parts = text.split(';').filter(|part| !part.starts_with("WKST="));
    parts.collect::<Vec<_>>().join(";")
}

/// An evaluated definition.
pub(super) struct EvaluatedVtimezone {
    pub(super) name: String,
    pub(super) vtimezone: Vtimezone,
    pub(super) table: TransitionTable,
    pub(super) offsets: (i32, i32),
    /// Rules that continue after the table.
    open_rules: Vec<OpenRule>,
    /// Whether the definition was evaluated completely.
    pub(super) is_complete: bool,
}

/// A rule without end, or with one after the table.
struct OpenRule {
    observance: usize,
    rule: Rule,
}

impl EvaluatedVtimezone {
    pub(super) fn new(vtimezone: Vtimezone, name: &str) -> EvaluatedVtimezone {
        let mut evaluation = VtimezoneEvaluation {
            transitions: Vec::new(),
            open_rules: Vec::new(),
            budget: StepBudget::default(),
            is_complete: true,
        };
        for (number, part) in vtimezone.observances.iter().enumerate() {
            evaluation.add_observance(number, part);
        }
        let VtimezoneEvaluation { mut transitions, open_rules, is_complete, .. } = evaluation;
        transitions.sort_by_key(|(at, _)| *at);
        // Before the first onset, its old offset applies.
        let first = vtimezone.observances.iter().min_by_key(|part| part.to_instant(part.onset));
        let first = first.map_or(0, |part| part.offset_from.seconds());
        let to = if open_rules.is_empty() {
            Instant::MAX
        } else {
            Instant::from_seconds_clamped(TABLE_END_SECONDS)
        };
        let table = TransitionTable::new(Instant::MIN, to, first, transitions);
        let offsets =
            vtimezone.observances.iter().flat_map(|part| [part.offset_from, part.offset_to]);
        // An empty definition is UTC.
        let offsets = offsets
            .map(|offset| offset.seconds())
            .fold((0, 0), |(low, high), offset| (low.min(offset), high.max(offset)));
        EvaluatedVtimezone {
            name: name.to_string(),
            vtimezone,
            table,
            offsets,
            open_rules,
            is_complete,
        }
    }

    /// Returns the offset after the last entry of the table: the offset of the rule with the latest
    /// transition.
    pub(super) fn offset_after_table(&self, instant: Instant) -> i32 {
        let changes = self.open_rules.iter().filter_map(|endless| {
            let part = self.vtimezone.observances.get(endless.observance)?;
            Some((part.last_transition(&endless.rule, instant)?, part.offset_to.seconds()))
        });
        let last =
            std::iter::once(self.table.last_transition()).chain(changes).max_by_key(|(at, _)| *at);
        last.map_or(0, |(_, offset)| offset)
    }
}

/// The evaluation of a definition, one observance after the other, with one budget.
struct VtimezoneEvaluation {
    transitions: Vec<(Instant, i32)>,
    open_rules: Vec<OpenRule>,
    budget: StepBudget,
    is_complete: bool,
}

impl VtimezoneEvaluation {
    fn add_observance(&mut self, number: usize, part: &ZoneObservance) {
        self.add_transition(part, part.to_instant(part.onset));
        for date in &part.rdates {
            let at = match date.is_utc {
                true => Instant::from_seconds_clamped(date.civil.seconds()),
                false => part.to_instant(date.civil),
            };
            self.add_transition(part, at);
        }
        for rule in &part.rules {
            self.expand_rule(number, part, part.localize_until(rule));
        }
    }

    /// Adds a transition, within the limit.
    fn add_transition(&mut self, part: &ZoneObservance, at: Instant) -> bool {
        let room = self.transitions.len() < MAX_TRANSITIONS;
        if room {
            self.transitions.push((at, part.offset_to.seconds()));
        }
        self.is_complete &= room;
        room
    }

    fn expand_rule(&mut self, number: usize, part: &ZoneObservance, rule: Rule) {
        let mut left = rule.count().unwrap_or(u64::MAX);
        let mut found = rule.occurrences_from(part.onset, part.onset).with_budget(self.budget);
        let mut goes_on = false;
        while left > 0 && !goes_on {
            let Some(civil) = found.next() else { break };
            let at = part.to_instant(civil);
            goes_on = at.seconds() >= TABLE_END_SECONDS;
            if !goes_on && !self.add_transition(part, at) {
                break;
            }
            left -= 1;
        }
        self.is_complete &= !found.is_exhausted();
        self.budget = found.budget();
        if goes_on {
            self.add_open_rule(number, part, rule);
        }
    }

    /// Keeps a rule with transitions after the table, if they can be found within the budget.
    fn add_open_rule(&mut self, number: usize, part: &ZoneObservance, rule: Rule) {
        let tail = Instant::from_seconds_clamped(TABLE_END_SECONDS + 8 * 366 * DAY_SECONDS);
        let soon = |rule: &Rule| part.last_transition(rule, tail).is_some();
        match rule.with_resolved_end(part.onset, OPEN_RULE_BUDGET).filter(soon) {
            Some(rule) if self.open_rules.len() < MAX_OPEN_RULES => {
                self.open_rules.push(OpenRule { observance: number, rule });
            }
            _ => self.is_complete = false,
        }
    }
}
