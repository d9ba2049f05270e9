//! What is on, day by day, and when time is taken.

use crate::book::Book;
use larder_date_phrase::DateRange;
use larder_query::{
    Query, ResultDomain, SearchRequest, UserLocale, busy_periods, format_free_busy, group_by_day,
    local_time, read_agenda, resolve_domain,
};
use larder_store::{BatchChange, CalendarContext, ItemPut, Precondition, TimeRange, TimeTarget};
use larder_time::civil::Instant;
use larder_time::zone::ZoneDatabase;
use std::sync::Arc;

/// Somebody in Berlin, where it is noon of 5 March 2026.
fn asker() -> UserLocale {
    let zones = ZoneDatabase::open_bundled();
    let local = zones.get("Europe/Berlin").unwrap();
    UserLocale {
        now: Instant::from_seconds_clamped(1_772_708_400),
        zone: local,
        zones,
        ..UserLocale::default()
    }
}

fn window(text: &str) -> TimeRange {
    let asker = asker();
    let now = asker.zone.to_civil(asker.now);
    let phrase = DateRange::parse(text, now, &asker.language).unwrap();
    larder_query::window_to_time_range(&asker, &phrase, TimeTarget::Occurrences)
}

/// A calendar of these components: each a kind and its lines, divided by blanks.
fn calendar(items: &[(&str, &str)]) -> Book {
    let mut book = Book::new();
    let changes = items.iter().enumerate().map(|(place, (kind, lines))| {
        let lines = lines.replace(' ', "\r\n").replace('_', " ");
        let uid = if lines.contains("UID:") { String::new() } else { format!("UID:{place}\r\n") };
        let text = format!("BEGIN:V{kind}\r\n{uid}{lines}\r\nEND:V{kind}\r\n");
        let component =
            book.store.extractor().parse_component(text.into_bytes(), &CalendarContext::default());
        let prepared = component.unwrap();
        BatchChange::Put(ItemPut {
            collection: Arc::from("calendar"),
            uid: prepared.uid().unwrap().to_string(),
            derived_uid: false,
            parsed: prepared,
            precondition: Precondition::Any,
        })
    });
    let changes = changes.collect();
    book.apply(changes);
    book
}

/// What is on in a window: days by their dates, and what is on each.
fn shown(items: &[(&str, &str)], text: &str) -> String {
    let (book, window) = (calendar(items), window(text));
    let found = read_agenda(&book.reader(), &[], &window, 1000).unwrap();
    let mut shown = String::new();
    for day in group_by_day(&found.entries, &window) {
        shown.push_str(&format!("{}\n", local_time::format_date(day.date)));
        for on in &day.entries {
            let part = on.part_text().map(|part| format!(" ({part})")).unwrap_or_default();
            shown.push_str(&format!("{} {}{part}\n", on.time_text(), on.entry.item.summary));
        }
    }
    shown
}

#[test]
fn days_and_what_is_on_them() {
    let check = |items: &[(&str, &str)], text: &str, expect: &[&str]| {
        assert_eq!(shown(items, text).lines().collect::<Vec<_>>(), expect, "{items:?} in {text}");
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
fn tasks_are_where_they_are_due() {
    let tasks = [
        ("TODO", "SUMMARY:a DTSTART:20260301T090000 DUE:20260305T170000"),
        ("TODO", "SUMMARY:b DUE;VALUE=DATE:20260305"),
        ("TODO", "SUMMARY:c"),
        ("TODO", "SUMMARY:d DTSTART:20260305T090000"),
        ("JOURNAL", "SUMMARY:e DTSTART;VALUE=DATE:20260305"),
    ];
    assert_eq!(shown(&tasks, "2026-03"), "2026-03-05\ndue b\n09:00 d\ndue 17:00 a\n");
    assert_eq!(shown(&tasks, "2026-03-03"), "");
}

#[test]
fn what_goes_on_for_ever_is_bounded() {
    let long = ("EVENT", "SUMMARY:long DTSTART;VALUE=DATE:20200101 DTEND;VALUE=DATE:99991231");
    let (book, window) = (calendar(&[long]), window("2026-03-05.."));
    let found = read_agenda(&book.reader(), &[], &window, 1000).unwrap();
    assert_eq!(group_by_day(&found.entries, &window).len(), 1001);
    let often = ("EVENT", "SUMMARY:often DTSTART:20260101T000000Z RRULE:FREQ=SECONDLY");
    let found = read_agenda(&calendar(&[often]).reader(), &[], &window, 10).unwrap();
    assert_eq!((found.entries.len(), found.truncated), (10, true));
}

/// What takes no time is where it begins, not where that touches the end of a day, whether it
/// recurs or not.
#[test]
fn what_takes_no_time_is_on_one_day() {
    for (rule, first) in
        [(" RRULE:FREQ=WEEKLY;COUNT=3", "02"), (" RRULE:FREQ=WEEKLY", "02"), ("", "16")]
    {
        let lines = format!("SUMMARY:a DTSTART:202603{first}T000000Z{rule}");
        let book = calendar(&[("EVENT", &lines)]);
        for (day, found) in [("2026-03-15", 0), ("2026-03-16", 1), ("2026-03-17", 0)] {
            let query = Query::parse(&format!("when:{day}")).unwrap();
            let find = SearchRequest { query, ..SearchRequest::default() };
            let answers = [larder_query::find, larder_query::full_scan].map(|run| {
                let answer = run(&book.reader(), &find).unwrap();
                let window = larder_query::required_time_range(&find.query).unwrap();
                let count =
                    larder_query::count_occurrences(&book.reader(), &answer, window).unwrap();
                (answer.rows().len(), count.number, count.uncertain_rows.len())
            });
            assert_eq!(answers, [(found, found as u64, 0); 2], "{rule} on {day}");
        }
    }
}

#[test]
fn occurrences_have_names() {
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
    let (book, window) = (calendar(&items), window("2026-03-02..2026-03-08"));
    let found = read_agenda(&book.reader(), &[], &window, 1000).unwrap();
    let mut names: Vec<(String, String, String)> = found
        .entries
        .iter()
        .map(|entry| {
            (entry.item.head.uid.clone(), entry.recurrence_id(), entry.local_time.format_start())
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
fn busy_time() {
    let check = |items: &[&str], expect: &[&str]| {
        let items: Vec<(&str, &str)> = items.iter().map(|lines| ("EVENT", *lines)).collect();
        let (book, window) = (calendar(&items), window("2026-03-05"));
        let found = read_agenda(&book.reader(), &[], &window, 1000).unwrap();
        let spans: Vec<String> = busy_periods(&found.entries, &window)
            .iter()
            .map(|busy| {
                let clock = |at| local_time::format_clock(window.local_zone.to_civil(at));
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
fn busy_time_as_a_component() {
    let items = [("EVENT", "DTSTART:20260305T090000Z DTEND:20260305T100000Z STATUS:TENTATIVE")];
    let (book, window) = (calendar(&items), window("2026-03-05"));
    let found = read_agenda(&book.reader(), &[], &window, 1000).unwrap();
    let text = format_free_busy(&busy_periods(&found.entries, &window), &window, asker().now);
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

#[test]
fn what_an_answer_is_about() {
    let book = calendar(&[("EVENT", "SUMMARY:lunch DTSTART:20260305T090000Z")]);
    let check = |line: &str, expect: ResultDomain| {
        let find = SearchRequest { query: Query::parse(line).unwrap(), ..SearchRequest::default() };
        assert_eq!(resolve_domain(&book.reader(), &find).unwrap(), expect, "{line}");
    };
    check("", ResultDomain::Calendar);
    check("lunch", ResultDomain::Calendar);
    check("when:2026-03", ResultDomain::Calendar);
    check("summary:lunch", ResultDomain::Calendar);
    check("lunch is:task", ResultDomain::Calendar);
    check("full_name:anna", ResultDomain::Contacts);
    check("is:contact or is:event", ResultDomain::Calendar);
}

#[test]
fn lengths_in_words() {
    let check =
        |seconds: i64, expect: &str| assert_eq!(local_time::describe_duration(seconds), expect);
    check(0, "no time");
    check(-5, "no time");
    check(60, "1 minute");
    check(5400, "1 hour 30 minutes");
    check(86_400 * 7, "1 week");
    check(86_400 * 10, "10 days");
    check(86_400 + 1, "1 day 1 second");
}
