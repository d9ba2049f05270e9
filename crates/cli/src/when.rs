//! When something is, for people: `Fri 6 Mar 2026, 12:30-13:30 (1 hour), Europe/Prague`.

use larder_query::when::{When, clock};
use larder_query::{Asker, describe};
use larder_store::Kind;
use larder_time::series::{Clock, Start};
use larder_time::zone::Zone;

/// When something begins and ends, by its own clock, and by that of who asks where it shows another time; `None`: at no time.
pub(crate) fn shown(
    kind: Kind,
    start: Option<&Start>,
    end: Option<&Start>,
    asker: &Asker,
) -> Option<String> {
    let language = &asker.language;
    let due = end.filter(|_| kind == Kind::Task);
    let first = start.or(end)?;
    let mut text = match (start, due) {
        (Some(start), None) => When::between(start, end).words(language),
        (start, due) => {
            let begins =
                start.filter(|start| due != Some(start)).map(|start| When::between(start, None));
            let begins = begins.map(|when| format!("{}, ", when.due_words(language)));
            // By the clock of its beginning, which is named behind it.
            let timed = start.filter(|start| !start.date);
            let until =
                |due| timed.map_or(When::between(due, None), |at| When::between(at, Some(due)));
            let due = due.map(|due| format!("due {}", until(due).due_words(language)));
            format!("{}{}", begins.unwrap_or_default(), due.unwrap_or_default())
        }
    };
    if !first.date {
        text.push_str(&format!(", {}", name(first)));
    }
    if let Some(clock) = left_out(first) {
        text.push_str(&format!("; there is no {clock} on that day"));
    }
    if let Some(here) = here(first, asker) {
        text.push_str(&format!("; here {here}"));
    }
    Some(text)
}

/// A rule in words, with its end by the clock of what recurs.
pub(crate) fn repeated(rule: &str, start: Option<&Start>, asker: &Asker) -> String {
    let zone = start.map_or(Zone::UTC, zone_of);
    describe::rule(rule, &zone, &asker.language)
}

/// A time by the clock of who asks, where its own clock shows another one.
fn here(time: &Start, asker: &Asker) -> Option<String> {
    if time.date || time.clock == Clock::Floating {
        return None;
    }
    let zone = zone_of(time);
    let at = zone.instant(time.civil);
    let civil = asker.local.civil(at);
    let here = Start::at(civil, Clock::Floating);
    (civil != zone.civil(at)).then(|| When::between(&here, None).due_words(&asker.language))
}

/// What is said of a time that its clock leaves out.
fn left_out(time: &Start) -> Option<String> {
    let zone = zone_of(time);
    let shown = zone.civil(zone.instant(time.civil));
    (!time.date && shown != time.civil).then(|| clock(time.civil))
}

fn zone_of(time: &Start) -> Zone {
    match &time.clock {
        Clock::Zone(zone) => zone.clone(),
        Clock::Utc | Clock::Floating => Zone::UTC,
    }
}

fn name(time: &Start) -> &str {
    match &time.clock {
        Clock::Utc => "UTC",
        Clock::Floating => "by any clock",
        Clock::Zone(zone) => zone.name(),
    }
}
