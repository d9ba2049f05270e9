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

    fn changes(&self, most: usize) -> Vec<(Instant, i32)> {
        let mut onsets = vec![self.instant(self.onset)];
        for date in self.dates.iter().take(most) {
            onsets.push(match date.utc {
                true => Instant::clamped(date.civil.seconds()),
                false => self.instant(date.civil),
            });
        }
        for rule in &self.rules {
            let Some(rule) = self.local(rule).ended(self.onset, Budget::default()) else {
                continue;
            };
            let left = most.saturating_sub(onsets.len());
            let found = rule.from(self.onset, self.onset).map(|civil| self.instant(civil));
            onsets.extend(found.take_while(|at| at.seconds() < TABLED).take(left));
        }
        onsets.into_iter().map(|at| (at, self.to.seconds())).collect()
    }

    /// The last change of this part at or before a moment.
    fn last_change(&self, instant: Instant) -> Option<Instant> {
        let bound = instant.civil(self.from.seconds());
        let of_rules = self.rules.iter().filter_map(|rule| {
            let rule = self.local(rule).ended(self.onset, Budget::default())?;
            let bound = rule.bound().map_or(bound, |end| end.min(bound));
            match rule.with_until(bound).last(self.onset, Budget::default()) {
                Last::At(last) => Some(self.instant(last)),
                _ => None,
            }
        });
        of_rules.chain([self.instant(self.onset)]).filter(|at| *at <= instant).max()
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
}

impl Own {
    pub(super) fn new(definition: Definition, name: &str) -> Own {
        let mut changes = Vec::new();
        for part in &definition.observances {
            changes.extend(part.changes(MOST.saturating_sub(changes.len())));
        }
        changes.sort_by_key(|(at, _)| *at);
        // Before the first onset, the time before it holds.
        let first = definition.observances.iter().min_by_key(|part| part.instant(part.onset));
        let first = first.map_or(0, |part| part.from.seconds());
        let goes_on = changes.last().is_some_and(|(at, _)| at.seconds() > TABLED - 11 * 366 * DAY);
        let to = if goes_on { Instant::clamped(TABLED) } else { Instant::MAX };
        let table = Table::new(Instant::MIN, to, first, changes);
        let offsets = definition.observances.iter().flat_map(|part| [part.from, part.to]);
        // Where nothing is defined, it is UTC.
        let offsets = offsets
            .map(|offset| offset.seconds())
            .fold((0, 0), |(low, high), offset| (low.min(offset), high.max(offset)));
        Own { name: name.to_string(), definition, table, offsets }
    }

    /// The offset behind the table: that of the part which changed last.
    pub(super) fn far_offset(&self, instant: Instant) -> i32 {
        let parts = self.definition.observances.iter();
        let changes =
            parts.filter_map(|part| Some((part.last_change(instant)?, part.to.seconds())));
        changes.max_by_key(|(at, _)| *at).map_or(0, |(_, offset)| offset)
    }
}
