//! Time ranges that the interval index answers without evaluating a series, in irregular cases of
//! calendars and clocks. The result must equal the result from the occurrences.

use crate::book::Book;
use crate::calendar::component;
use larder_store::{Overlap, TimeRange, TimeTarget};
use larder_time::civil::Instant;
use larder_time::value;
use larder_time::zone::{Zone, ZoneDatabase};

fn seconds(text: &str) -> Instant {
    let stamp = value::IcalDateTime::parse(text).unwrap();
    Instant::from_seconds_clamped(stamp.civil.seconds())
}

fn zone(name: &str) -> Zone {
    ZoneDatabase::open_bundled().get(name).unwrap()
}

/// Checks whether components are in a time range, by the index and by their occurrences.
fn check(lines: &[&str], local: &str, from: &str, to: &str, expected: bool) {
    let all = lines
        .iter()
        .map(|lines| component(&format!("VEVENT\nUID:u\nDTSTAMP:20200101T000000Z\n{lines}")));
    let components: Vec<String> = all.collect();
    let book = Book::calendar(components.iter().map(String::as_str));
    let reader = book.store.open_reader().unwrap();
    let time_range = TimeRange {
        from: seconds(from),
        to: seconds(to),
        local_zone: zone(local),
        target: TimeTarget::Occurrences,
    };
    let collections = reader.collections().list_rows(None).unwrap();
    let found = reader
        .index()
        .find_in_time_range(&collections, &time_range)
        .unwrap()
        .expect("the index is whole");
    let collection = reader.collections().list().unwrap().remove(0);
    let mut truth = Vec::new();
    for meta in reader.items().list_after(&collection, None, 10).unwrap() {
        let times = reader.items().recompute_schedule(meta.row).unwrap();
        if times.is_some_and(|times| times.overlap(&time_range) == Overlap::Yes) {
            truth.push(meta.row);
        }
    }
    assert_eq!(found.items, truth, "{lines:?} from {from} to {to} in {local}");
    assert_eq!(!truth.is_empty(), expected, "{lines:?} from {from} to {to} in {local}");
}

#[test]
fn months_and_years_vary_in_length() {
    for start in
        ["DTSTART:20200115T100000", "DTSTART;VALUE=DATE:20200115", "DTSTART:20200115T100000Z"]
    {
        let lines = format!("{start}\nRRULE:FREQ=MONTHLY");
        for local in ["UTC", "Europe/Berlin", "America/New_York"] {
            check(&[&lines], local, "20260201T000000Z", "20260301T000000Z", true);
            check(&[&lines], local, "20260201T050000Z", "20260301T050000Z", true);
            check(&[&lines], local, "20280131T230000Z", "20280301T000000Z", true);
        }
    }
    for start in ["DTSTART:20200614T090000Z", "DTSTART;VALUE=DATE:20200614"] {
        let lines = format!("{start}\nRRULE:FREQ=YEARLY");
        check(&[&lines], "UTC", "20270615T000000Z", "20280614T000000Z", false);
        check(&[&lines], "UTC", "20270615T000000Z", "20280615T000000Z", true);
    }
    let new_year = "DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=YEARLY";
    check(&[new_year], "UTC", "20280102T000000Z", "20290101T000000Z", false);
}

#[test]
fn a_week_may_contain_a_time_twice() {
    let sunday = "DTSTART;TZID=America/New_York:20200105T193000\nDTEND;TZID=America/New_York:20200105T194500\nRRULE:FREQ=WEEKLY";
    check(&[sunday], "UTC", "20261026T000000Z", "20261102T000000Z", false);
    let monday = "DTSTART;TZID=Europe/London:20200106T003000\nRRULE:FREQ=WEEKLY";
    check(&[monday], "UTC", "20261019T000000Z", "20261026T000000Z", false);
}

#[test]
fn an_excluded_occurrence_has_no_duration() {
    let lines = "DTSTART;VALUE=DATE:20260302\nDTEND;VALUE=DATE:20260305\nRRULE:FREQ=DAILY;UNTIL=20260306\nEXDATE;VALUE=DATE:20260305,20260306";
    check(&[lines], "UTC", "20260307T000000Z", "20260308T000000Z", false);
    check(&[lines], "UTC", "20260306T000000Z", "20260307T000000Z", true);
}

#[test]
fn a_change_of_the_clock_may_reorder_occurrences() {
    let daily = "DTSTART;TZID=Europe/Berlin:20261001T100000\nDTEND;TZID=Europe/Berlin:20261001T103000\nRRULE:FREQ=DAILY;COUNT=20";
    let moved = "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261003T100000\n\
        DTSTART;TZID=Europe/Berlin:20261017T100000\nDTEND;TZID=Europe/Berlin:20261017T103000";
    check(&[daily, moved], "UTC", "20261103T091000Z", "20261103T092000Z", true);
    let often = "DTSTART;TZID=Europe/Berlin:20260329T020000\nDURATION:PT10M\nRRULE:FREQ=MINUTELY;INTERVAL=15;COUNT=5";
    check(&[often], "UTC", "20260329T013000Z", "20260329T020000Z", true);
}

#[test]
fn the_last_occurrence_may_have_no_duration() {
    let none = "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=5";
    let longer = "RECURRENCE-ID:20260102T090000Z\nDTSTART:20260102T090000Z\nDTEND:20260102T100000Z";
    check(&[none, longer], "UTC", "20260105T090000Z", "20260105T100000Z", true);
}

#[test]
fn clock_changes_apply_to_floating_times() {
    let night = "DTSTART:20250329T230000\nDURATION:PT6H";
    // The event ends at six, because an hour is skipped.
    check(&[night], "Europe/Berlin", "20250330T033000Z", "20250330T034500Z", true);
    check(&[night], "Europe/Berlin", "20250330T040000Z", "20250330T041500Z", false);
}
