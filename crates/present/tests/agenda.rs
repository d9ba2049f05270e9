//! Agendas and busy time: occurrences as a person reads them, day by day.

use larder_date_phrase::DateRange;
use larder_present::local_time::{format_clock, format_date, format_start};
use larder_present::{format_free_busy, group_by_day};
use larder_query::{AgendaEntry, UserLocale, busy_periods, date_range_to_time_range, read_agenda};
use larder_store::{
    BatchChange, CalendarContext, ItemPut, Operation, Precondition, Reader, Store, StoreOptions,
    TimeRange, TimeTarget,
};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::sync::Arc;
use tempfile::TempDir;

/// A store with one calendar, in a directory of its own.
struct TestCalendar {
    _directory: TempDir,
    store: Store,
}

impl TestCalendar {
    /// Fills the calendar with components: each is a kind and its content lines, which are
    /// separated by spaces; `_` is a space.
    fn new(items: &[(&str, &str)]) -> TestCalendar {
        let directory = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let mut store = Store::open(&directory.path().join("data"), &options).unwrap();
        let changes = items.iter().enumerate().map(|(number, (kind, lines))| {
            let lines = lines.replace(' ', "\r\n").replace('_', " ");
            let uid =
                if lines.contains("UID:") { String::new() } else { format!("UID:{number}\r\n") };
            let text = format!("BEGIN:V{kind}\r\n{uid}{lines}\r\nEND:V{kind}\r\n");
            let component =
                store.extractor().parse_component(text.into_bytes(), &CalendarContext::default());
            let parsed = component.unwrap();
            BatchChange::Put(ItemPut {
                collection: Arc::from("calendar"),
                uid: parsed.uid().unwrap().to_string(),
                derived_uid: false,
                parsed,
                precondition: Precondition::Any,
            })
        });
        let changes = changes.collect();
        store.apply(&mut Operation::new("test", "", 0), changes).unwrap();
        TestCalendar { _directory: directory, store }
    }

    fn reader(&self) -> Reader {
        self.store.open_reader().unwrap()
    }
}

/// A user in Berlin, at noon of 5 March 2026.
fn berlin_locale() -> UserLocale {
    let zones = ZoneDatabase::open_bundled();
    let local = zones.get("Europe/Berlin").unwrap();
    UserLocale {
        now: Instant::from_seconds_clamped(1_772_708_400),
        zone: local,
        zones,
        ..UserLocale::default()
    }
}

fn time_range(phrase: &str) -> TimeRange {
    let locale = berlin_locale();
    let now = locale.zone.to_civil(locale.now);
    let phrase = DateRange::parse(phrase, now, &locale.language).unwrap();
    date_range_to_time_range(&locale, &phrase, TimeTarget::Occurrences)
}

fn agenda_entries(items: &[(&str, &str)], time_range: &TimeRange) -> Vec<AgendaEntry> {
    let calendar = TestCalendar::new(items);
    read_agenda(&calendar.reader(), &[], time_range, 1000).unwrap().entries
}

/// Returns the agenda of a time range: dates, and under each the entries of the day.
fn agenda_text(items: &[(&str, &str)], phrase: &str) -> String {
    let time_range = time_range(phrase);
    let entries = agenda_entries(items, &time_range);
    let mut text = String::new();
    for day in group_by_day(&entries, &time_range) {
        text.push_str(&format!("{}\n", format_date(day.date)));
        for on_day in &day.entries {
            let part = on_day.part_text().map(|part| format!(" ({part})")).unwrap_or_default();
            let summary = &on_day.entry.item.summary;
            text.push_str(&format!("{} {summary}{part}\n", on_day.time_text()));
        }
    }
    text
}

#[test]
fn an_agenda_lists_the_entries_of_each_day() {
    let check = |items: &[(&str, &str)], phrase: &str, expect: &[&str]| {
        assert_eq!(
            agenda_text(items, phrase).lines().collect::<Vec<_>>(),
            expect,
            "{items:?} in {phrase}"
        );
    };
    let lunch = ("EVENT", "SUMMARY:lunch DTSTART:20260305T113000Z DTEND:20260305T123000Z");
    let trip = ("EVENT", "SUMMARY:trip DTSTART;VALUE=DATE:20260304 DTEND;VALUE=DATE:20260307");
    let night = ("EVENT", "SUMMARY:night DTSTART:20260305T200000 DTEND:20260306T010000");
    let weekly = ("EVENT", "SUMMARY:class DTSTART:20190103T180000 DURATION:PT1H RRULE:FREQ=WEEKLY");
    let moment = ("EVENT", "SUMMARY:bell DTSTART:20260305T080000");
    let whole = ("EVENT", "SUMMARY:until_midnight DTSTART:20260305T220000 DTEND:20260306T000000");
    check(&[lunch], "2026-03-05", &["2026-03-05", "12:30-13:30 lunch"]);
    check(&[lunch], "2026-03-06", &[]);
    check(
        &[lunch, trip, moment, weekly],
        "2026-03-05",
        &[
            "2026-03-05",
            "all day trip (day 2 of 3)",
            "08:00 bell",
            "12:30-13:30 lunch",
            "18:00-19:00 class",
        ],
    );
    check(
        &[night],
        "2026-03",
        &["2026-03-05", "20:00- night (day 1 of 2)", "2026-03-06", "-01:00 night (day 2 of 2)"],
    );
    check(&[night], "2026-03-06", &["2026-03-06", "-01:00 night (day 2 of 2)"]);
    check(&[whole], "2026-03", &["2026-03-05", "22:00-24:00 until midnight"]);
    check(
        &[weekly],
        "2026-03-05..2026-03-12",
        &["2026-03-05", "18:00-19:00 class", "2026-03-12", "18:00-19:00 class"],
    );
}

#[test]
fn tasks_are_listed_on_the_day_when_they_are_due() {
    let tasks = [
        ("TODO", "SUMMARY:a DTSTART:20260301T090000 DUE:20260305T170000"),
        ("TODO", "SUMMARY:b DUE;VALUE=DATE:20260305"),
        ("TODO", "SUMMARY:c"),
        ("TODO", "SUMMARY:d DTSTART:20260305T090000"),
        ("JOURNAL", "SUMMARY:e DTSTART;VALUE=DATE:20260305"),
    ];
    assert_eq!(agenda_text(&tasks, "2026-03"), "2026-03-05\ndue b\n09:00 d\ndue 17:00 a\n");
    assert_eq!(agenda_text(&tasks, "2026-03-03"), "");
}

#[test]
fn endless_occurrences_are_bounded() {
    let long = ("EVENT", "SUMMARY:long DTSTART;VALUE=DATE:20200101 DTEND;VALUE=DATE:99991231");
    let range = time_range("2026-03-05..");
    assert_eq!(group_by_day(&agenda_entries(&[long], &range), &range).len(), 1001);
    let often = ("EVENT", "SUMMARY:often DTSTART:20260101T000000Z RRULE:FREQ=SECONDLY");
    let found = read_agenda(&TestCalendar::new(&[often]).reader(), &[], &range, 10).unwrap();
    assert_eq!((found.entries.len(), found.truncated), (10, true));
}

#[test]
fn an_occurrence_has_its_recurrence_id() {
    let items = [
        ("EVENT", "UID:a DTSTART:20260302T080000Z RRULE:FREQ=DAILY;COUNT=2"),
        ("EVENT", "UID:a RECURRENCE-ID:20260303T080000Z DTSTART:20260303T100000Z"),
        (
            "EVENT",
            "UID:b DTSTART;VALUE=DATE:20260302 RRULE:FREQ=DAILY;COUNT=1 RDATE;VALUE=DATE:20260304",
        ),
        ("EVENT", "UID:c DTSTART:20260302T080000 RRULE:FREQ=WEEKLY"),
        ("EVENT", "UID:d DTSTART:20260302T080000"),
    ];
    let entries = agenda_entries(&items, &time_range("2026-03-02..2026-03-08"));
    let mut names: Vec<(String, String, String)> = entries
        .iter()
        .map(|entry| {
            (entry.item.meta.uid.clone(), entry.recurrence_id(), format_start(&entry.local_time))
        })
        .collect();
    names.sort();
    let names: Vec<String> = names.iter().map(|(a, b, c)| format!("{a} {b} {c}")).collect();
    assert_eq!(
        names,
        [
            "a 20260302T080000Z 2026-03-02T09:00:00+01:00",
            "a 20260303T080000Z 2026-03-03T11:00:00+01:00",
            "b 20260302 2026-03-02",
            "b 20260304 2026-03-04",
            "c 20260302T080000 2026-03-02T08:00:00",
            "d  2026-03-02T08:00:00",
        ]
    );
}

#[test]
fn busy_periods_are_merged_by_certainty() {
    let check = |items: &[&str], expect: &[&str]| {
        let items: Vec<(&str, &str)> = items.iter().map(|lines| ("EVENT", *lines)).collect();
        let range = time_range("2026-03-05");
        let spans: Vec<String> = busy_periods(&agenda_entries(&items, &range), &range)
            .iter()
            .map(|busy| {
                let clock = |at| format_clock(range.local_zone.to_civil(at));
                let mark = if busy.tentative { "?" } else { "" };
                format!("{}-{}{mark}", clock(busy.from), clock(busy.to))
            })
            .collect();
        assert_eq!(spans, expect, "{items:?}");
    };
    let at = |from: &str, to: &str, more: &str| {
        format!("DTSTART:20260305T{from}00 DTEND:20260305T{to}00{more}")
    };
    let (a, b, c) = (at("0900", "1000", ""), at("0930", "1100", ""), at("1100", "1130", ""));
    check(&[&a, &b, &c], &["09:00-11:30"]);
    check(&[&c, &a], &["09:00-10:00", "11:00-11:30"]);
    let perhaps = at("0800", "1200", " STATUS:TENTATIVE");
    check(&[&perhaps], &["08:00-12:00?"]);
    check(
        &[&perhaps, &a, &c],
        &["08:00-09:00?", "09:00-10:00", "10:00-11:00?", "11:00-11:30", "11:30-12:00?"],
    );
    check(&[&at("0915", "0945", " STATUS:TENTATIVE"), &a], &["09:00-10:00"]);
    check(&[&at("0900", "1000", " STATUS:CANCELLED")], &[]);
    check(&[&at("0900", "1000", " TRANSP:TRANSPARENT")], &[]);
    check(&[&at("0900", "0900", "")], &[]);
    check(&["DTSTART;VALUE=DATE:20260305"], &["00:00-00:00"]);
    check(&["DTSTART:20260304T220000 DTEND:20260305T010000"], &["00:00-01:00"]);
}

#[test]
fn busy_periods_are_written_as_a_component() {
    let items = [("EVENT", "DTSTART:20260305T090000Z DTEND:20260305T100000Z STATUS:TENTATIVE")];
    let range = time_range("2026-03-05");
    let busy = busy_periods(&agenda_entries(&items, &range), &range);
    let text = format_free_busy(&busy, &range, berlin_locale().now);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("UID:")).collect();
    assert_eq!(
        lines,
        [
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//Larder//EN",
            "BEGIN:VFREEBUSY",
            "DTSTAMP:20260305T110000Z",
            "DTSTART:20260304T230000Z",
            "DTEND:20260305T230000Z",
            "FREEBUSY;FBTYPE=BUSY-TENTATIVE:20260305T090000Z/20260305T100000Z",
            "END:VFREEBUSY",
            "END:VCALENDAR",
        ]
    );
}
