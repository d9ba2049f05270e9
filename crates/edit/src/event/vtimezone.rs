//! Time-zone definitions for new items: a zone of the system as a VTIMEZONE.
//!
//! A zone that changes its clock by the same rules every year is defined by these rules, from their
//! first year on, so that all items in the zone share one definition. For an older item, the
//! changes before that year are listed, too. The changes of a zone without rules are listed for the
//! years around the item.

use super::rule_text::WEEKDAY_CODES;
use larder_format::writer::{ComponentBuilder, escape_text};
use larder_store::ZoneDefinition;
use larder_time::civil::{
    CivilTime, DAY_SECONDS, Instant, Weekday, days_in_month, first_day_of_year,
};
use larder_time::value::UtcOffset;
use larder_time::zone::Zone;
use std::ops::Range;

/// The years that are examined; the rules of the last year are assumed to continue.
const FIRST_YEAR: i32 = 1970;
const LAST_YEAR: i32 = 2037;
/// The number of years for which the changes of an irregular zone are listed at least, starting
/// with the year before the decade of the item.
const LISTED_YEARS: i32 = 16;

/// Builds the definition of a zone for an item that starts in a year. Returns `None` for UTC, which
/// needs none.
#[must_use]
pub fn build_vtimezone(zone: &Zone, year: i32) -> Option<ZoneDefinition> {
    if *zone == Zone::UTC {
        return None;
    }
    let draft =
        ComponentBuilder::new("VTIMEZONE").add_property("TZID", &[], &escape_text(zone.name()));
    let first = year - year.rem_euclid(10) - 1;
    let (since, slots) = match find_yearly_rules(zone) {
        // The changes of the last year alone are no rule.
        (LAST_YEAR, _) => ((first + LISTED_YEARS).max(LAST_YEAR + 1), Vec::new()),
        found => found,
    };
    let draft = match since < year {
        true if slots.is_empty() => draft.add_subcomponent(fixed_offset_observance(zone, since)),
        true => draft,
        false => add_listed_onsets(zone, first..since, year, draft),
    };
    let draft =
        slots.into_iter().fold(draft, |draft, slot| draft.add_subcomponent(slot.to_observance()));
    ZoneDefinition::new(draft.finish().as_bytes())
}

/// A change of the offset.
#[derive(Debug, Clone, Copy)]
struct Onset {
    /// The clock time of the change, before it.
    local_time: CivilTime,
    offset_from: i32,
    offset_to: i32,
}

/// Returns the changes in a year.
fn find_onsets(zone: &Zone, year: i32) -> Vec<Onset> {
    let new_year = |year: i32| {
        Instant::from_seconds_clamped(first_day_of_year(year.clamp(1, 9999)) * DAY_SECONDS)
    };
    let changes = zone.transitions(new_year(year), new_year(year + 1));
    let onset = |(at, to): (Instant, i32)| {
        let from = zone.offset(at.saturating_add(-1));
        Onset { local_time: at.to_civil(from), offset_from: from, offset_to: to }
    };
    changes.into_iter().map(onset).filter(|onset| onset.offset_from != onset.offset_to).collect()
}

/// A yearly change of the offset.
#[derive(Debug, Clone)]
struct YearlyTransition {
    first: Onset,
    /// The possible positions of its weekday in the month: 1 to 5, or -1 for the last.
    nth: Vec<i8>,
}

impl YearlyTransition {
    fn from_onset(onset: Onset) -> YearlyTransition {
        let date = onset.local_time.date();
        let last = date.day + 7 > days_in_month(date.year, date.month);
        let nth = ((date.day - 1) / 7 + 1) as i8;
        YearlyTransition {
            first: onset,
            nth: last.then_some(-1).into_iter().chain([nth]).collect(),
        }
    }

    /// Returns the rule that covers this year and the year before, if there is one.
    fn intersect(&self, before: &YearlyTransition) -> Option<YearlyTransition> {
        let key = |onset: &Onset| {
            let weekday = Weekday::from_day_number(onset.local_time.day_number());
            let clock = onset.local_time.second_of_day();
            (onset.local_time.date().month, weekday, clock, onset.offset_from, onset.offset_to)
        };
        let nth: Vec<i8> =
            self.nth.iter().filter(|nth| before.nth.contains(nth)).copied().collect();
        let same = key(&self.first) == key(&before.first) && !nth.is_empty();
        same.then_some(YearlyTransition { first: before.first, nth })
    }

    fn to_observance(&self) -> ComponentBuilder {
        let (shown, nth) = (self.first.local_time, self.nth.first().copied().unwrap_or(1));
        let weekday =
            usize::from(Weekday::from_day_number(shown.day_number()).number_from_monday());
        let weekday = WEEKDAY_CODES.get(weekday).copied().unwrap_or_default();
        let month = shown.date().month;
        let rule = format!("FREQ=YEARLY;BYMONTH={month};BYDAY={nth}{weekday}");
        build_observance(self.first).add_property("RRULE", &[], &rule)
    }
}

/// Returns the yearly rules of a zone, and the first year in which they apply.
fn find_yearly_rules(zone: &Zone) -> (i32, Vec<YearlyTransition>) {
    let in_year = |year: i32| -> Vec<YearlyTransition> {
        find_onsets(zone, year).into_iter().map(YearlyTransition::from_onset).collect()
    };
    let (mut since, mut slots) = (LAST_YEAR, in_year(LAST_YEAR));
    for year in (FIRST_YEAR..LAST_YEAR).rev() {
        let before = in_year(year);
        let both = slots.iter().zip(&before).map(|(slot, before)| slot.intersect(before));
        match both.collect::<Option<Vec<_>>>() {
            Some(both) if before.len() == slots.len() => (since, slots) = (year, both),
            _ => break,
        }
    }
    (since, slots)
}

/// Builds an observance of the offset since the last change.
fn fixed_offset_observance(zone: &Zone, since: i32) -> ComponentBuilder {
    let last = (FIRST_YEAR..since).rev().find_map(|year| find_onsets(zone, year).pop());
    build_observance(last.unwrap_or_else(|| {
        let offset = zone.offset(Instant::from_seconds_clamped(0));
        Onset {
            local_time: CivilTime::from_seconds_clamped(0),
            offset_from: offset,
            offset_to: offset,
        }
    }))
}

/// Adds the changes in a range of years, for an item that starts in `year`.
fn add_listed_onsets(
    zone: &Zone,
    years: Range<i32>,
    year: i32,
    draft: ComponentBuilder,
) -> ComponentBuilder {
    let all: Vec<Onset> = years.flat_map(|year| find_onsets(zone, year)).collect();
    if all.is_empty() {
        return draft.add_subcomponent(fixed_offset_observance(zone, year));
    }
    let mut draft = draft;
    let mut kinds: Vec<(i32, i32)> = Vec::new();
    for onset in &all {
        let kind = (onset.offset_from, onset.offset_to);
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        let same = all.iter().filter(|other| (other.offset_from, other.offset_to) == kind);
        let rest: Vec<String> = same.skip(1).map(|other| other.local_time.to_string()).collect();
        let part = build_observance(*onset);
        let part =
            if rest.is_empty() { part } else { part.add_property("RDATE", &[], &rest.join(",")) };
        draft = draft.add_subcomponent(part);
    }
    draft
}

fn build_observance(onset: Onset) -> ComponentBuilder {
    let offset = |seconds: i32| UtcOffset::new(seconds).unwrap_or_default().to_string();
    ComponentBuilder::new(if onset.offset_to > onset.offset_from { "DAYLIGHT" } else { "STANDARD" })
        .add_property("DTSTART", &[], &onset.local_time.to_string())
        .add_property("TZOFFSETFROM", &[], &offset(onset.offset_from))
        .add_property("TZOFFSETTO", &[], &offset(onset.offset_to))
}
