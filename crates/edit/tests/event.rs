//! Events that a person changes: one occurrence, it and all that follow, or all. The semantics are
//! those of the modes of evolution-data-server's ModifyObjects and RemoveObjects, verified on the
//! real service; where we do otherwise, a case says so.

use crate::test_store::TestStore;
use larder_date_phrase::{Language, UserLocale};
use larder_edit::event::{
    EditOutcome, Error, EventEdit, OccurrenceEdit, OccurrenceRef, OccurrenceSelector,
    RecurrenceScope, build_vtimezone, edit_occurrences, remove_occurrences,
};
use larder_edit::item_text::SplitText;
use larder_format::component::Component;
use larder_format::field::find_calendar_field;
use larder_store::{
    CalendarContext, CollectionType, ItemMeta, Operation, Reader, TimeRange, TimeTarget,
};
use larder_time::civil::{CivilTime, Instant};
use larder_time::series::ZoneReference;
use larder_time::value::IcalDateTime;
use larder_time::zone::{Zone, ZoneDatabase, offset_differences};
use std::sync::Arc;

pub(crate) const CALENDAR: &str = "calendar";
/// 1 March 2026, noon in Prague.
const NOW: i64 = 1_772_362_800;

pub(crate) fn prague() -> Zone {
    ZoneDatabase::open_bundled().get("Europe/Prague").unwrap()
}

/// Returns the locale of a user in Prague.
pub(crate) fn prague_locale() -> UserLocale {
    UserLocale {
        now: Instant::from_seconds_clamped(NOW),
        zone: prague(),
        zones: ZoneDatabase::open_bundled(),
        language: Language::from_locale("C"),
    }
}

pub(crate) fn civil(text: &str) -> CivilTime {
    IcalDateTime::parse(text).unwrap().civil
}

/// A store with these events, and tasks where something is due, each without BEGIN, END, UID, times
/// and whatever is not said.
pub(crate) fn calendar(components: &[&str]) -> TestStore {
    let mut book = TestStore::new();
    let text: String = components
        .iter()
        .map(|lines| {
            let uid = if lines.contains("UID:") { "" } else { "UID:u\r\n" };
            let lines = lines.trim().replace('\n', "\r\n");
            let kind = if lines.contains("DUE") { "VTODO" } else { "VEVENT" };
            format!("BEGIN:{kind}\r\n{uid}{lines}\r\nEND:{kind}\r\n")
        })
        .collect();
    let pieces = SplitText::from_bytes(text.as_bytes()).unwrap();
    let extractor =
        book.store.extractor_for_collection(CALENDAR, CollectionType::Calendar).unwrap();
    let typed = pieces.parse_items(&extractor, &mut || Ok([1; 16])).unwrap();
    let mut operation = Operation::new("add", "", 0);
    let mut told = |_: &larder_store::Store, _| Ok::<(), larder_store::Error>(());
    larder_edit::add_items(&mut book.store, &mut operation, CALENDAR, typed.items, &mut told)
        .unwrap();
    book
}

pub(crate) fn metas(reader: &Reader) -> Vec<ItemMeta> {
    let collections = reader.collections().list().unwrap();
    let found = collections.into_iter().find(|collection| collection.name == CALENDAR);
    found.map_or_else(Vec::new, |of| reader.items().list_after(&of, None, 10_000).unwrap())
}

/// All that happens, as `20260305T123000 Summary`, by the clock of Prague.
pub(crate) fn occurrences(book: &TestStore, from: &str, to: &str) -> Vec<String> {
    all(book, from, to, TimeTarget::Occurrences)
}

/// The same, or when alarms ring.
fn all(book: &TestStore, from: &str, to: &str, what: TimeTarget) -> Vec<String> {
    let reader = book.store.open_reader().unwrap();
    let local = prague();
    let (from, to) = (local.to_instant(civil(from)), local.to_instant(civil(to)));
    let time_range = TimeRange { from, to, local_zone: local.clone(), target: what };
    let mut found = Vec::new();
    for meta in metas(&reader) {
        let bytes = reader.items().source_bytes(meta.row).unwrap().unwrap();
        let summary = Component::parse(&bytes).first_value(find_calendar_field("summary").unwrap());
        let summary = summary.unwrap_or_default();
        reader
            .items()
            .for_each_schedule(&[meta.row], &mut |_, times| {
                assert!(times.for_each_in(&time_range, &mut |one| {
                    let day = if one.is_date { "day " } else { "" };
                    let at = one.alarm.map_or(one.occurrence.start, |(at, _)| at);
                    found.push(format!("{day}{} {summary}", local.to_civil(at)));
                    true
                }));
                true
            })
            .unwrap();
    }
    found.sort();
    found
}

/// The bytes of all items, sorted.
pub(crate) fn bytes(book: &TestStore) -> Vec<String> {
    let reader = book.store.open_reader().unwrap();
    let source = |meta: &ItemMeta| reader.items().source_bytes(meta.row).unwrap().unwrap();
    let mut all: Vec<_> = metas(&reader).iter().map(source).collect();
    all.sort();
    all.into_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

/// An edit by a person.
pub(crate) enum Action {
    Remove,
    Change(EventEdit),
}

pub(crate) fn act(
    book: &mut TestStore,
    uid: &str,
    which: OccurrenceSelector,
    action: &Action,
    new_uid: &str,
) -> Result<EditOutcome, Error> {
    let reader = book.store.open_reader().unwrap();
    let meta = metas(&reader).into_iter().find(|meta| meta.uid == uid).unwrap();
    drop(reader);
    let mut operation = Operation::new("test", "", 0).all_or_nothing();
    let locale = prague_locale();
    match action {
        Action::Remove => {
            remove_occurrences(&mut book.store, &mut operation, &meta, which, &locale)
        }
        Action::Change(edit) => {
            let request = OccurrenceEdit { selector: which, edit, new_uid };
            edit_occurrences(&mut book.store, &mut operation, &meta, request, &locale)
        }
    }
}

pub(crate) fn edit(settings: &[(&str, &str)]) -> Action {
    let mut edit = EventEdit::default();
    for (name, value) in settings {
        match *name {
            "for" => edit.length = Some((*value).into()),
            "move" => edit.shift = Some((*value).into()),
            "zone" => edit.zone = Some((*value).into()),
            "all day" => edit.all_day = true,
            "alarm" => edit.alarms = Some(value.split(',').map(String::from).collect()),
            name => edit.set_field(name, value).unwrap(),
        }
    }
    Action::Change(edit)
}

pub(crate) fn select_occurrence(scope: &str, at: &str) -> OccurrenceSelector {
    let scope = match scope {
        "this" => Some(RecurrenceScope::This),
        "future" => Some(RecurrenceScope::ThisAndFuture),
        "all" => Some(RecurrenceScope::All),
        _ => None,
    };
    let at = match at {
        "" => None,
        at if at.contains('-') => Some(OccurrenceRef::Local(civil(at))),
        at => Some(OccurrenceRef::RecurrenceId(IcalDateTime::parse(at).unwrap())),
    };
    OccurrenceSelector { scope, occurrence: at }
}

/// What happens in 2026 after an action, or why it cannot be done; then it is undone, and all is as
/// before.
fn check(components: &[&str], scope: &str, at: &str, action: &Action, expect: &[&str]) {
    let mut book = calendar(components);
    let before = bytes(&book);
    match act(&mut book, "u", select_occurrence(scope, at), action, "new") {
        Err(error) => {
            assert_eq!(vec![format!("error: {error}")], expect, "{components:?}");
            assert_eq!(bytes(&book), before);
            return;
        }
        Ok(done) => {
            assert_eq!(occurrences(&book, "20260101", "20270101"), expect, "{components:?}");
            assert_eq!(book.store.check().unwrap().faults, [], "{components:?}");
            assert!(!done.conflict);
            book.store.undo(done.operation.unwrap(), 0).unwrap();
        }
    }
    assert_eq!(bytes(&book), before, "undone");
}

pub(crate) const DAILY: &str = "SUMMARY:A\nDTSTART;TZID=Europe/Prague:20260305T120000\nDTEND;TZID=Europe/Prague:20260305T130000\nRRULE:FREQ=DAILY;COUNT=4";
const WEEKLY: &str =
    "SUMMARY:A\nDTSTART:20260302T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20260312T000000";
const DAYS: &str = "SUMMARY:A\nDTSTART;VALUE=DATE:20260305\nRRULE:FREQ=DAILY;COUNT=3";
pub(crate) const CHANGED: &str = "SUMMARY:B\nRECURRENCE-ID;TZID=Europe/Prague:20260306T120000\nDTSTART;TZID=Europe/Prague:20260306T180000";
const ONCE: &str = "SUMMARY:A\nDTSTART:20260305T110000Z\nDTEND:20260305T120000Z";

#[test]
fn one_is_removed() {
    let remove = Action::Remove;
    let check = |all: &[&str], at: &str, expect: &[&str]| check(all, "this", at, &remove, expect);
    check(
        &[DAILY],
        "20260306T120000",
        &["20260305T120000 A", "20260307T120000 A", "20260308T120000 A"],
    );
    // By its moment, by the clock of Prague, by its day.
    check(
        &[DAILY],
        "20260306T110000Z",
        &["20260305T120000 A", "20260307T120000 A", "20260308T120000 A"],
    );
    check(
        &[DAILY],
        "2026-03-06T12:00",
        &["20260305T120000 A", "20260307T120000 A", "20260308T120000 A"],
    );
    check(&[DAILY], "20260305", &["20260306T120000 A", "20260307T120000 A", "20260308T120000 A"]);
    check(&[DAYS], "20260306", &["day 20260305T000000 A", "day 20260307T000000 A"]);
    // A changed one goes with its place, by either of its times.
    for at in ["20260306T120000", "2026-03-06T18:00"] {
        check(
            &[DAILY, CHANGED],
            at,
            &["20260305T120000 A", "20260307T120000 A", "20260308T120000 A"],
        );
    }
    check(&[DAILY], "20260306T130000", &["error: the series has no occurrence at 20260306T130000"]);
    check(&[DAILY], "20260404", &["error: the series has no occurrence at 20260404"]);
    check(
        &["SUMMARY:A\nDTSTART:20260305T090000\nRRULE:FREQ=HOURLY;COUNT=3"],
        "20260305",
        &["error: several occurrences on that day: add the time of one"],
    );
    // The last of all takes the item with it; what happens once needs no occurrence.
    check(
        &["SUMMARY:A\nDTSTART:20260305T090000\nRRULE:FREQ=DAILY;COUNT=1"],
        "20260305T090000",
        &[],
    );
    check(&[ONCE], "20260305T110000Z", &[]);
    // A changed one without its series.
    check(&[CHANGED], "20260306T110000Z", &[]);
    check(&[CHANGED], "20260306T120000", &[]);
    // A changed one is found by what it is called, whatever zone that is in.
    let tokyo = CHANGED.replace("Europe/Prague:20260306T120000", "Asia/Tokyo:20260306T200000");
    let left = ["20260305T120000 A", "20260307T120000 A", "20260308T120000 A"];
    check(&[DAILY, &tokyo], "20260306T200000", &left);
    check(&[DAILY, &tokyo], "20260306T110000Z", &left);
}

#[test]
fn it_and_those_that_follow_are_removed() {
    let remove = Action::Remove;
    let check = |all: &[&str], at: &str, expect: &[&str]| check(all, "future", at, &remove, expect);
    check(&[DAILY], "20260307T120000", &["20260305T120000 A", "20260306T120000 A"]);
    check(&[DAILY, CHANGED], "20260306T120000", &["20260305T120000 A"]);
    check(&[DAILY, CHANGED], "20260307T120000", &["20260305T120000 A", "20260306T180000 B"]);
    check(&[WEEKLY], "20260309T090000", &["20260302T090000 A", "20260304T090000 A"]);
    check(&[DAYS], "20260306", &["day 20260305T000000 A"]);
    // From the first on, it is all of it, with the changed ones.
    check(&[DAILY, CHANGED], "20260305T120000", &[]);
    let dated = "SUMMARY:A\nDTSTART:20260305T090000\nRDATE:20260306T090000,20260307T090000\nEXDATE:20260306T090000";
    check(&[dated], "20260307T090000", &["20260305T090000 A"]);
    // From the start on, where an added date precedes it.
    for rule in ["RRULE:FREQ=DAILY;COUNT=3", "RRULE:FREQ=DAILY", "EXDATE:20260316T090000"] {
        let start = "SUMMARY:A\nDTSTART;TZID=Europe/Prague:20260315T090000";
        let dated = format!("{start}\n{rule}\nRDATE;TZID=Europe/Prague:20260310T090000");
        check(&[&dated], "20260315T090000", &["20260310T090000 A"]);
    }
}

#[test]
fn all_are_removed_only_if_that_is_said() {
    let remove = Action::Remove;
    check(&[DAILY, CHANGED], "all", "", &remove, &[]);
    check(
        &[DAILY],
        "",
        "",
        &remove,
        &["error: the item recurs: choose which occurrences to change"],
    );
    check(
        &[DAILY],
        "future",
        "",
        &remove,
        &["error: the item recurs: choose the occurrence to change"],
    );
    check(&[ONCE], "", "", &remove, &[]);
}

#[test]
fn one_is_changed() {
    let check = |all: &[&str], at: &str, settings: &[(&str, &str)], expect: &[&str]| {
        check(all, "this", at, &edit(settings), expect);
    };
    check(
        &[DAILY],
        "20260306T120000",
        &[("start", "15:00"), ("summary", "B")],
        &["20260305T120000 A", "20260306T150000 B", "20260307T120000 A", "20260308T120000 A"],
    );
    // One that was changed before, by either of its times.
    for at in ["20260306T120000", "2026-03-06T18:00"] {
        check(
            &[DAILY, CHANGED],
            at,
            &[("move", "-1h")],
            &["20260305T120000 A", "20260306T170000 B", "20260307T120000 A", "20260308T120000 A"],
        );
    }
    check(
        &[DAYS],
        "20260306",
        &[("start", "2026-03-10")],
        &["day 20260305T000000 A", "day 20260307T000000 A", "day 20260310T000000 A"],
    );
    // What was changed from one on (RANGE=THISANDFUTURE) stays changed.
    let following = CHANGED.replace("RECURRENCE-ID", "RECURRENCE-ID;RANGE=THISANDFUTURE");
    check(
        &[DAILY, &following],
        "20260307T120000",
        &[("location", "Bistro")],
        &["20260305T120000 A", "20260306T180000 B", "20260307T180000 B", "20260308T180000 B"],
    );
    check(
        &[DAILY],
        "20260306T120000",
        &[("rule", "FREQ=DAILY")],
        &["error: a single occurrence cannot have a rule"],
    );
    check(
        &[DAILY],
        "20260406",
        &[("summary", "B")],
        &["error: the series has no occurrence at 20260406"],
    );
    check(
        &[DAILY],
        "20260306",
        &[("end", "2026-03-05 10:00")],
        &["error: the end (Thu 5 Mar 2026, 10:00) is before the start (Fri 6 Mar 2026, 12:00)"],
    );
    // evolution-data-server does not find it by its new time until it reads the calendar again.
    check(
        &[DAILY],
        "20260306",
        &[("start", "2026-06-01 9:00")],
        &["20260305T120000 A", "20260307T120000 A", "20260308T120000 A", "20260601T090000 A"],
    );
}

#[test]
fn it_and_those_that_follow_are_changed() {
    let check = |all: &[&str], at: &str, settings: &[(&str, &str)], expect: &[&str]| {
        check(all, "future", at, &edit(settings), expect);
    };
    check(
        &[DAILY],
        "20260307T120000",
        &[("summary", "B"), ("start", "14:00")],
        &["20260305T120000 A", "20260306T120000 A", "20260307T140000 B", "20260308T140000 B"],
    );
    // The changed ones go where they belong, and move along if they were not moved before.
    let second = CHANGED
        .replace(
            "RECURRENCE-ID;TZID=Europe/Prague:20260306",
            "RECURRENCE-ID;TZID=Europe/Prague:20260308",
        )
        .replace("20260306T180000", "20260308T120000");
    check(
        &[DAILY, CHANGED, &second],
        "20260307T120000",
        &[("move", "+1h")],
        &["20260305T120000 A", "20260306T180000 B", "20260307T130000 A", "20260308T130000 B"],
    );
    check(
        &[WEEKLY],
        "20260309T090000",
        &[("move", "1 day")],
        &["20260302T090000 A", "20260304T090000 A", "20260310T090000 A", "20260312T090000 A"],
    );
    // What was changed from one on leads what follows, in its own words and at its own time.
    let following = CHANGED.replace("RECURRENCE-ID", "RECURRENCE-ID;RANGE=THISANDFUTURE");
    for at in ["20260306T120000", "20260307T120000"] {
        let rest = ["B", "C"].map(|of| of.repeat(2));
        let rest =
            if at.contains("06T") { "CCC" } else { &format!("{}{}", &rest[0][..1], &rest[1]) };
        let mut expect = vec!["20260305T120000 A".to_string()];
        for (day, summary) in (6..).zip(rest.chars()) {
            expect.push(format!(
                "2026030{day}T{}0000 {summary}",
                if summary == 'C' { 19 } else { 18 }
            ));
        }
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check(&[DAILY, &following], at, &[("summary", "C"), ("move", "+1h")], &expect);
    }
    // To another day, with a rule that names days, an exception, and a change after it.
    let weekly = format!("{WEEKLY}\nEXDATE:20260309T090000").replace("0312T", "0319T");
    let led = "SUMMARY:B\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260304T090000\nDTSTART:20260305T100000\nDURATION:PT2H";
    let behind = "SUMMARY:C\nRECURRENCE-ID:20260316T090000\nDTSTART:20260316T080000";
    check(
        &[&weekly, led, behind],
        "20260311T090000",
        &[("location", "Bistro")],
        &[
            "20260302T090000 A",
            "20260305T100000 B",
            "20260312T100000 B",
            "20260316T080000 C",
            "20260319T100000 B",
        ],
    );
    // On the first it is all of them.
    check(
        &[DAYS],
        "20260305",
        &[("summary", "B")],
        &["day 20260305T000000 B", "day 20260306T000000 B", "day 20260307T000000 B"],
    );
    // From the start on, where an added date precedes it.
    check(
        &["SUMMARY:A\nDTSTART:20260315T090000\nRRULE:FREQ=DAILY;COUNT=2\nRDATE:20260310T090000"],
        "20260315T090000",
        &[("summary", "B")],
        &["20260310T090000 A", "20260315T090000 B", "20260316T090000 B"],
    );
    // Every second day from a date that was added: the rule would mean other days.
    let dated = "SUMMARY:A\nDTSTART:20260305T090000\nRRULE:FREQ=DAILY;INTERVAL=2;COUNT=3\nRDATE:20260306T090000";
    check(
        &[dated],
        "20260306T090000",
        &[("summary", "B")],
        &[
            "error: cannot split the series at this occurrence: the two parts would not have the same occurrences as the series",
        ],
    );
}

#[test]
fn all_are_changed() {
    let check = |all: &[&str], at: &str, settings: &[(&str, &str)], expect: &[&str]| {
        check(all, "all", at, &edit(settings), expect);
    };
    let dated =
        format!("{DAILY}\nEXDATE:20260307T110000Z\nRDATE;TZID=Europe/Prague:20260310T120000");
    check(
        &[&dated, CHANGED],
        "",
        &[("start", "13:30"), ("summary", "C")],
        &["20260305T133000 C", "20260306T180000 B", "20260308T133000 C", "20260310T133000 C"],
    );
    // Seen from one of them.
    check(
        &[DAILY],
        "20260307T120000",
        &[("start", "2026-03-08 12:00")],
        &["20260306T120000 A", "20260307T120000 A", "20260308T120000 A", "20260309T120000 A"],
    );
    check(
        &[WEEKLY],
        "",
        &[("move", "-1 day")],
        &["20260301T090000 A", "20260303T090000 A", "20260308T090000 A", "20260310T090000 A"],
    );
    check(
        &["SUMMARY:A\nDTSTART:20260305T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=5;COUNT=2"],
        "",
        &[("move", "1 day")],
        &["error: the new start is not in the recurrence set: set a new rule as well"],
    );
    check(
        &["SUMMARY:A\nDTSTART:20260305T090000\nRRULE:FREQ=MONTHLY;COUNT=2"],
        "",
        &[("move", "1 day")],
        &["20260306T090000 A", "20260406T090000 A"],
    );
    // By another clock: at noon in New York. Days become times.
    check(
        &[DAILY],
        "",
        &[("zone", "America/New_York")],
        &["20260305T180000 A", "20260306T180000 A", "20260307T180000 A", "20260308T170000 A"],
    );
    check(
        &[DAYS, "SUMMARY:B\nRECURRENCE-ID;VALUE=DATE:20260306\nDTSTART;VALUE=DATE:20260306"],
        "",
        &[("start", "10:00")],
        &["20260305T100000 A", "20260306T100000 B", "20260307T100000 A"],
    );
    // What leads all that follow is a part of the series, from wherever that is seen.
    let following = CHANGED.replace("RECURRENCE-ID", "RECURRENCE-ID;RANGE=THISANDFUTURE");
    for (at, settings, last) in [
        ("20260306T120000", [("move", "1h"), ("location", "Bistro")], ["13", "19", "19", "19"]),
        ("", [("move", "1h"), ("location", "Bistro")], ["13", "19", "19", "19"]),
        ("20260306T120000", [("start", "14:00"), ("summary", "B")], ["14", "14", "14", "14"]),
    ] {
        let title = |day: usize| if settings[1].0 == "summary" || day > 0 { "B" } else { "A" };
        let shown =
            |(day, hour): (usize, &str)| format!("2026030{}T{hour}0000 {}", day + 5, title(day));
        let expect: Vec<String> = last.into_iter().enumerate().map(shown).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check(&[DAILY, &following], at, &settings, &expect);
    }
    check(&[DAILY], "", &[("rule", "")], &["20260305T120000 A"]);
    check(&[ONCE], "", &[("start", "15:00")], &["20260305T150000 A"]);
}

/// The bytes themselves, where it matters how they are written.
#[test]
fn what_is_written() {
    let mut book = calendar(&[DAILY]);
    let change = edit(&[("summary", "B, C"), ("for", "30min")]);
    act(&mut book, "u", select_occurrence("this", "20260306"), &change, "").unwrap();
    act(&mut book, "u", select_occurrence("future", "20260307"), &Action::Remove, "").unwrap();
    act(&mut book, "u", select_occurrence("this", "20260305"), &Action::Remove, "").unwrap();
    insta::assert_snapshot!(bytes(&book).concat().replace('\r', ""), @r"
    BEGIN:VEVENT
    UID:u
    SUMMARY:A
    DTSTART;TZID=Europe/Prague:20260305T120000
    DTEND;TZID=Europe/Prague:20260305T130000
    RRULE:FREQ=DAILY;COUNT=2
    LAST-MODIFIED:20260301T110000Z
    DTSTAMP:20260301T110000Z
    SEQUENCE:2
    EXDATE;TZID=Europe/Prague:20260305T120000
    END:VEVENT
    BEGIN:VEVENT
    UID:u
    SUMMARY:B\, C
    DTSTART;TZID=Europe/Prague:20260306T120000
    DTEND;TZID=Europe/Prague:20260306T123000
    RECURRENCE-ID;TZID=Europe/Prague:20260306T120000
    LAST-MODIFIED:20260301T110000Z
    DTSTAMP:20260301T110000Z
    SEQUENCE:1
    END:VEVENT
    ");
}

/// An alarm at a moment of its own is the series', and rings once, however the series is changed.
#[test]
fn alarms_at_a_moment_ring_once() {
    let alarm =
        |trigger: &str| format!("\nBEGIN:VALARM\nACTION:DISPLAY\nTRIGGER{trigger}\nEND:VALARM");
    let moment = alarm(";VALUE=DATE-TIME:20260304T110000Z");
    let series = format!("{DAILY}{moment}{}\nAALARM:20260304T120000Z", alarm(":-PT15M"));
    for (scope, summaries) in [("this", "AABA"), ("future", "AABB"), ("all", "BBBB")] {
        let mut book = calendar(&[&series]);
        act(
            &mut book,
            "u",
            select_occurrence(scope, "20260307"),
            &edit(&[("summary", "B")]),
            "new",
        )
        .unwrap();
        let first = &summaries[..1];
        let mut expect =
            vec![format!("20260304T120000 {first}"), format!("20260304T130000 {first}")];
        for (day, summary) in (5..).zip(summaries.chars()) {
            expect.push(format!("2026030{day}T114500 {summary}"));
        }
        assert_eq!(all(&book, "20260101", "20270101", TimeTarget::Alarms), expect, "{scope}");
    }
}

/// A definition that is made for a new item does what the zone does, for years to come, also where
/// the item is older than the rules of its zone.
#[test]
fn zones_are_defined() {
    for name in [
        "Europe/Prague",
        "Europe/Dublin",
        "Europe/Lisbon",
        "Europe/Moscow",
        "America/New_York",
        "America/Santiago",
        "America/Sao_Paulo",
        "America/St_Johns",
        "Africa/Casablanca",
        "Africa/Cairo",
        "Asia/Gaza",
        "Asia/Jerusalem",
        "Asia/Kathmandu",
        "Asia/Tokyo",
        "Australia/Lord_Howe",
        "Australia/Sydney",
        "Pacific/Auckland",
        "Pacific/Chatham",
        "Antarctica/Troll",
    ] {
        let zone = ZoneDatabase::open_bundled().get(name).unwrap();
        for year in [1985, 2006, 2007, 2008, 2026] {
            let (mine, text) = zone_by_definition_alone(&zone, year);
            let start = |year: i32| zone.to_instant(civil(&format!("{year}0101T000000")));
            let differing = offset_differences(&mine, &zone, start(year), start(2037));
            assert_eq!(differing, [], "{name} since {year}\n{text}");
        }
    }
    assert!(build_vtimezone(&Zone::UTC, 2026).is_none());
}

/// The zone that the definition for an item of a year defines, and its text.
fn zone_by_definition_alone(zone: &Zone, year: i32) -> (Zone, String) {
    let defined = build_vtimezone(zone, year).unwrap();
    // By another name, so that nothing but the definition says what it is.
    let text = String::from_utf8(defined.bytes().to_vec()).unwrap();
    let text = text.replace(&format!("TZID:{}", zone.name()), "TZID:Mine");
    let definition = larder_store::ZoneDefinition::new(text.as_bytes()).unwrap();
    let calendar_context =
        CalendarContext { is_vcalendar_1: false, zone_definitions: vec![Arc::new(definition)] };
    let line = format!("BEGIN:VEVENT\nDTSTART;TZID=Mine:{year}0101T003000\nEND:VEVENT\n");
    let component = Component::parse(line.as_bytes());
    let start = larder_store::Extractor::new("C")
        .resolve_date_time(&component.time_properties("DTSTART").next().unwrap(), &calendar_context)
        .unwrap();
    let ZoneReference::Zone(mine) = start.zone_reference else { panic!("{} floats", zone.name()) };
    (mine, text)
}
