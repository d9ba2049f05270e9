//! Zones as items bring them: what a VTIMEZONE says, its rules in one text, and its evaluation.

use super::table::Table;
use crate::civil::{Civil, DAY, Instant, year_start};
use crate::rule::{Budget, End, Last, Rule};
use crate::value::{Offset, Stamp};
use std::fmt::Write as _;

/// The rules of a VTIMEZONE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its STANDARD and DAYLIGHT parts, in any order.
    pub observances: Vec<Observance>,
}

/// A STANDARD or DAYLIGHT part: from when on a clock shows which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observance {
    /// DAYLIGHT.
    pub daylight: bool,
    /// DTSTART: when it begins first, as the clock shows it before.
    pub onset: Civil,
    /// TZOFFSETFROM.
    pub from: Offset,
    /// TZOFFSETTO.
    pub to: Offset,
    /// RRULE.
    pub rules: Vec<Rule>,
    /// RDATE.
    pub dates: Vec<Stamp>,
}

/// Up to here changes are tabled; those behind it, which only rules without end have, are sought.
const TABLED: i64 = year_start(2200) * DAY;

/// How many changes a definition may have: thirty times those of the liveliest zone there is.
const MOST: usize = 8_192;
/// How many rules without an end, and how many steps each may take to tell its last change before a moment.
const ENDLESS: usize = 16;
const FAR: Budget = Budget::new(500);

impl Definition {
    /// One text for all definitions of the same rules: the sorted set of what the observances say, without
    /// names, order, comments, INTERVAL=1 and WKST.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut lines: Vec<String> = self.observances.iter().map(Observance::canonical).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.join("\n")
    }
}

impl Observance {
    fn canonical(&self) -> String {
        let mut rules: Vec<String> = self.rules.iter().map(rule_without_wkst).collect();
        rules.sort_unstable();
        rules.dedup();
        let mut dates: Vec<String> = self.dates.iter().map(ToString::to_string).collect();
        dates.sort_unstable();
        dates.dedup();
        let kind = if self.daylight { "DAYLIGHT" } else { "STANDARD" };
        let mut line = format!("{kind} {} {} {}", self.from, self.to, self.onset);
        for (name, list) in [("RRULE", rules), ("RDATE", dates)] {
            for text in list {
                // Writing to a string cannot fail.
                let _ = write!(line, " {name}:{text}");
            }
        }
        line
    }

    /// The moment that a clock of the time before shows this.
    fn instant(&self, civil: Civil) -> Instant {
        Instant::clamped(civil.seconds() - i64::from(self.from.seconds()))
    }

    /// A rule whose UNTIL, which is in UTC, is in the clock of the time before.
    fn local(&self, rule: &Rule) -> Rule {
        match rule.end() {
            End::Until(until) | End::Both(until, _) if until.utc => {
                let civil = until.civil.plus(self.from.seconds().into());
                let until = Stamp { civil, date: false, utc: false };
                let end = match rule.count() {
                    Some(count) => End::Both(until, count),
                    None => End::Until(until),
                };
                rule.clone().with_end(end)
            }
            _ => rule.clone(),
        }
    }

    /// The last change by a rule at or before a moment.
    fn last_change(&self, rule: &Rule, instant: Instant) -> Option<Instant> {
        let bound = instant.civil(self.from.seconds());
        let bound = rule.bound().map_or(bound, |end| end.min(bound));
        match rule.clone().with_until(bound).last(self.onset, FAR) {
            Last::At(last) => Some(self.instant(last)),
            _ => None,
        }
    }
}

fn rule_without_wkst(rule: &Rule) -> String {
    let text = rule.to_string();
    let parts = text.split(';').filter(|part| !part.starts_with("WKST="));
    parts.collect::<Vec<_>>().join(";")
}

/// A definition that is evaluated.
pub(super) struct Own {
    pub(super) name: String,
    pub(super) definition: Definition,
    pub(super) table: Table,
    pub(super) offsets: (i32, i32),
    /// Rules that go on behind the table.
    endless: Vec<Endless>,
    /// All that it says was followed.
    pub(super) whole: bool,
}

/// A rule without an end, or with a far one.
struct Endless {
    part: usize,
    rule: Rule,
}

impl Own {
    pub(super) fn new(definition: Definition, name: &str) -> Own {
        let mut evaluation = Evaluation {
            changes: Vec::new(),
            endless: Vec::new(),
            budget: Budget::default(),
            whole: true,
        };
        for (number, part) in definition.observances.iter().enumerate() {
            evaluation.take(number, part);
        }
        let Evaluation { mut changes, endless, whole, .. } = evaluation;
        changes.sort_by_key(|(at, _)| *at);
        // Before the first onset, the time before it holds.
        let first = definition.observances.iter().min_by_key(|part| part.instant(part.onset));
        let first = first.map_or(0, |part| part.from.seconds());
        let to = if endless.is_empty() { Instant::MAX } else { Instant::clamped(TABLED) };
        let table = Table::new(Instant::MIN, to, first, changes);
        let offsets = definition.observances.iter().flat_map(|part| [part.from, part.to]);
        // Where nothing is defined, it is UTC.
        let offsets = offsets
            .map(|offset| offset.seconds())
            .fold((0, 0), |(low, high), offset| (low.min(offset), high.max(offset)));
        Own { name: name.to_string(), definition, table, offsets, endless, whole }
    }

    /// The offset behind the table: that of the rule which changed last.
    pub(super) fn far_offset(&self, instant: Instant) -> i32 {
        let changes = self.endless.iter().filter_map(|endless| {
            let part = self.definition.observances.get(endless.part)?;
            Some((part.last_change(&endless.rule, instant)?, part.to.seconds()))
        });
        let last = std::iter::once(self.table.last()).chain(changes).max_by_key(|(at, _)| *at);
        last.map_or(0, |(_, offset)| offset)
    }
}

/// What comes of the parts of a definition, one after the other, within one budget for all of them.
struct Evaluation {
    changes: Vec<(Instant, i32)>,
    endless: Vec<Endless>,
    budget: Budget,
    whole: bool,
}

impl Evaluation {
    fn take(&mut self, number: usize, part: &Observance) {
        self.change(part, part.instant(part.onset));
        for date in &part.dates {
            let at = match date.utc {
                true => Instant::clamped(date.civil.seconds()),
                false => part.instant(date.civil),
            };
            self.change(part, at);
        }
        for rule in &part.rules {
            self.follow(number, part, part.local(rule));
        }
    }

    /// A change, if there is room for it.
    fn change(&mut self, part: &Observance, at: Instant) -> bool {
        let room = self.changes.len() < MOST;
        if room {
            self.changes.push((at, part.to.seconds()));
        }
        self.whole &= room;
        room
    }

    fn follow(&mut self, number: usize, part: &Observance, rule: Rule) {
        let mut left = rule.count().unwrap_or(u64::MAX);
        let mut found = rule.from(part.onset, part.onset).with_budget(self.budget);
        let mut goes_on = false;
        while left > 0 && !goes_on {
            let Some(civil) = found.next() else { break };
            let at = part.instant(civil);
            goes_on = at.seconds() >= TABLED;
            if !goes_on && !self.change(part, at) {
                break;
            }
            left -= 1;
        }
        self.whole &= !found.exhausted();
        self.budget = found.budget();
        if goes_on {
            self.go_on(number, part, rule);
        }
    }

    /// A rule that has changes behind the table is kept, if it tells them soon enough.
    fn go_on(&mut self, number: usize, part: &Observance, rule: Rule) {
        let behind = Instant::clamped(TABLED + 8 * 366 * DAY);
        let soon = |rule: &Rule| part.last_change(rule, behind).is_some();
        match rule.ended(part.onset, FAR).filter(soon) {
            Some(rule) if self.endless.len() < ENDLESS => {
                self.endless.push(Endless { part: number, rule });
            }
            _ => self.whole = false,
        }
    }
}
