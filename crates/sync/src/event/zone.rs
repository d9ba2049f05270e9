//! Definitions of time zones for new items: what a zone of the system does, as a VTIMEZONE says it.
//!
//! A zone that changes its clock by the same rule year after year is defined by that rule, from the first year in which it
//! did, so that all items of that zone have one definition. What is irregular is listed for the years around.

use larder_format::write::{Draft, escape_text};
use larder_store::Zone as Defined;
use larder_time::civil::{Civil, DAY, Instant, Weekday, month_length, year_start};
use larder_time::value::Offset;
use larder_time::zone::Zone;

/// Years that are looked at: zones are of one mind about what comes later.
const FIRST: i32 = 1970;
const LAST: i32 = 2037;
/// Of an irregular zone, the changes of the decade are listed, and of so many years from its beginning.
const LISTED: i32 = 16;
const DAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// The definition of a zone for something that begins in a year; `None`: it is UTC, which needs none.
#[must_use]
pub fn definition(zone: &Zone, year: i32) -> Option<Defined> {
    if *zone == Zone::UTC {
        return None;
    }
    let draft = Draft::new("VTIMEZONE").add("TZID", &[], &escape_text(zone.name()));
    let (since, slots) = regular(zone);
    let draft = match (slots.is_empty(), since < year) {
        (false, true) => slots.into_iter().fold(draft, |draft, slot| draft.part(slot.observance())),
        (true, true) => draft.part(steady(zone, since)),
        (_, false) => listed(zone, year, draft),
    };
    Defined::new(draft.finish().as_bytes())
}

/// A change of the clock.
#[derive(Debug, Clone, Copy)]
struct Onset {
    /// What the clock showed when it was changed.
    shown: Civil,
    from: i32,
    to: i32,
}

/// The changes of a year.
fn onsets(zone: &Zone, year: i32) -> Vec<Onset> {
    let new_year = |year: i32| Instant::clamped(year_start(year.clamp(1, 9999)) * DAY);
    let changes = zone.transitions(new_year(year), new_year(year + 1));
    let onset = |(at, to): (Instant, i32)| {
        let from = zone.offset(at.plus(-1));
        Onset { shown: at.civil(from), from, to }
    };
    changes.into_iter().map(onset).filter(|onset| onset.from != onset.to).collect()
}

/// A change that comes every year by the same rule.
#[derive(Debug, Clone)]
struct Slot {
    first: Onset,
    /// Which of its weekday in the month it can be: 1 to 5 from the front, -1 the last.
    nth: Vec<i8>,
}

impl Slot {
    fn of(onset: Onset) -> Slot {
        let date = onset.shown.date();
        let last = date.day + 7 > month_length(date.year, date.month);
        let nth = ((date.day - 1) / 7 + 1) as i8;
        Slot { first: onset, nth: last.then_some(-1).into_iter().chain([nth]).collect() }
    }

    /// The rule of this year and of the year before, if there is one for both.
    fn and(&self, before: &Slot) -> Option<Slot> {
        let key = |onset: &Onset| {
            let weekday = Weekday::of_day(onset.shown.day());
            let clock = onset.shown.second_of_day();
            (onset.shown.date().month, weekday, clock, onset.from, onset.to)
        };
        let nth: Vec<i8> =
            self.nth.iter().filter(|nth| before.nth.contains(nth)).copied().collect();
        let same = key(&self.first) == key(&before.first) && !nth.is_empty();
        same.then_some(Slot { first: before.first, nth })
    }

    fn observance(&self) -> Draft {
        let (shown, nth) = (self.first.shown, self.nth.first().copied().unwrap_or(1));
        let weekday = usize::from(Weekday::of_day(shown.day()).number());
        let weekday = DAYS.get(weekday).copied().unwrap_or_default();
        let month = shown.date().month;
        let rule = format!("FREQ=YEARLY;BYMONTH={month};BYDAY={nth}{weekday}");
        observance(self.first).add("RRULE", &[], &rule)
    }
}

/// Since which year the clock is changed by the same rules every year, and these.
fn regular(zone: &Zone) -> (i32, Vec<Slot>) {
    let of = |year: i32| -> Vec<Slot> { onsets(zone, year).into_iter().map(Slot::of).collect() };
    let (mut since, mut slots) = (LAST, of(LAST));
    for year in (FIRST..LAST).rev() {
        let before = of(year);
        let both = slots.iter().zip(&before).map(|(slot, before)| slot.and(before));
        match both.collect::<Option<Vec<_>>>() {
            Some(both) if before.len() == slots.len() => (since, slots) = (year, both),
            _ => break,
        }
    }
    (since, slots)
}

/// One offset, since the last change.
fn steady(zone: &Zone, since: i32) -> Draft {
    let last = (FIRST..since).rev().find_map(|year| onsets(zone, year).pop());
    observance(last.unwrap_or_else(|| {
        let offset = zone.offset(Instant::clamped(0));
        Onset { shown: Civil::clamped(0), from: offset, to: offset }
    }))
}

fn listed(zone: &Zone, year: i32, draft: Draft) -> Draft {
    let first = year - year.rem_euclid(10) - 1;
    let all: Vec<Onset> = (first..first + LISTED).flat_map(|year| onsets(zone, year)).collect();
    if all.is_empty() {
        return draft.part(steady(zone, year));
    }
    let mut draft = draft;
    let mut kinds: Vec<(i32, i32)> = Vec::new();
    for onset in &all {
        let kind = (onset.from, onset.to);
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        let same = all.iter().filter(|other| (other.from, other.to) == kind);
        let rest: Vec<String> = same.skip(1).map(|other| other.shown.to_string()).collect();
        let part = observance(*onset);
        let part = if rest.is_empty() { part } else { part.add("RDATE", &[], &rest.join(",")) };
        draft = draft.part(part);
    }
    draft
}

fn observance(onset: Onset) -> Draft {
    let offset = |seconds: i32| Offset::new(seconds).unwrap_or_default().to_string();
    Draft::new(if onset.to > onset.from { "DAYLIGHT" } else { "STANDARD" })
        .add("DTSTART", &[], &onset.shown.to_string())
        .add("TZOFFSETFROM", &[], &offset(onset.from))
        .add("TZOFFSETTO", &[], &offset(onset.to))
}
