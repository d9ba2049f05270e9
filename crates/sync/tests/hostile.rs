//! Calendars built to be expensive: each is imported or reported, and the cost of later queries is
//! bounded, measured in steps and rows and not by a clock.

use crate::book::{Book, ImportOutcome, options};
use larder_query::{Query, SearchRequest, TimeTest, expand_occurrences, find};
use larder_store::{TimeRange, TimeTarget};
use larder_sync::ImportOptions;
use larder_time::civil::Instant;
use larder_time::value::IcalDateTime;
use larder_time::zone::Zone;
use std::fmt::Write as _;

fn instant(text: &str) -> Instant {
    Instant::from_seconds_clamped(IcalDateTime::parse(text).unwrap().civil.seconds())
}

fn window(from: &str, to: &str) -> TimeRange {
    let (from, to) = (instant(from), instant(to));
    TimeRange { from, to, local_zone: Zone::UTC, target: TimeTarget::Occurrences }
}

fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n{components}END:VCALENDAR\r\n")
}

fn event(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("{}\r\n", line.trim())).collect();
    format!("BEGIN:VEVENT\r\n{lines}END:VEVENT\r\n")
}

/// The result of a query for a time range: items found, and their occurrences as far as they are
/// expanded.
#[derive(Debug, PartialEq, Eq)]
struct QueryOutcome {
    found: usize,
    occurrences: usize,
    is_truncated: bool,
}

/// Imports a calendar, checks the store, and queries a time range.
fn take(book: &mut Book, text: &str, range: &TimeRange) -> (ImportOutcome, QueryOutcome) {
    // In few batches: each reads all other items that have the UIDs of its items.
    let outcome = book.take(text, &ImportOptions { batch: Some(4000), ..options() });
    assert_eq!(book.store.check().unwrap().faults, []);
    (outcome, query_range(book, range))
}

fn query_range(book: &Book, window: &TimeRange) -> QueryOutcome {
    let reader = book.store.open_reader().unwrap();
    let request = SearchRequest {
        query: Query::Time(TimeTest::InRange(window.clone())),
        ..SearchRequest::default()
    };
    let answer = find(&reader, &request).unwrap();
    let expansion = expand_occurrences(&reader, &answer, window, 10_000).unwrap();
    QueryOutcome {
        found: answer.len(),
        occurrences: expansion.occurrences.len(),
        is_truncated: expansion.truncated,
    }
}

/// Rules that never end, that never match, that have empty parts, and that exceed the budget of a
/// query.
#[test]
fn hostile_rules_are_bounded() {
    let mut wrong = Vec::new();
    let mut check = |lines: &str, expect: (usize, usize, bool), warning: &str| {
        let mut book = Book::new();
        let start = if lines.contains("DTSTART") { "" } else { "DTSTART:20260301T000000Z\n" };
        let text = calendar(&event(&format!("UID:a\n{start}DURATION:PT1S\n{lines}")));
        let (outcome, result) = take(&mut book, &text, &window("20260310", "20260311"));
        let (found, occurrences, is_truncated) = expect;
        assert_eq!(outcome.summary.added, 1, "{lines}");
        let warnings = outcome.warnings.join("; ");
        let is_warned = warnings.contains(warning) && warning.is_empty() == warnings.is_empty();
        if result != (QueryOutcome { found, occurrences, is_truncated }) || !is_warned {
            wrong.push(format!("{lines}: {result:?}, {warnings:?}"));
        }
    };
    check("RRULE:FREQ=SECONDLY", (1, 10_000, true), "");
    check("RRULE:FREQ=SECONDLY;COUNT=1000000000000", (1, 10_000, true), "");
    check("RRULE:FREQ=MINUTELY", (1, 1440, false), "");
    let never = "has no occurrence";
    // 30 February does not exist, nor does the 53rd Monday of a month.
    check("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", (0, 0, false), never);
    check("RRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", (0, 0, false), never);
    check("RRULE:FREQ=MONTHLY;BYDAY=53MO", (0, 0, false), never);
    check("RRULE:FREQ=DAILY;BYSETPOS=366", (0, 0, false), never);
    check("RRULE:FREQ=YEARLY;BYWEEKNO=53;BYYEARDAY=100", (0, 0, false), never);
    // A part without a value is ignored.
    check("RRULE:FREQ=DAILY;BYHOUR=,;BYDAY=", (1, 1, false), "");
    check("RRULE:FREQ=DAILY;INTERVAL=4294967295", (0, 0, false), "");
    check("RRULE:FREQ=YEARLY;INTERVAL=2147483647", (0, 0, false), "");
    check("DTSTART:00010101T000000Z\nRRULE:FREQ=SECONDLY", (1, 10_000, true), "");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Numbers and dates outside any calendar, and empty lists: the event remains, and the faulty
/// property is reported with its line.
#[test]
fn malformed_properties_are_reported() {
    let mut wrong = Vec::new();
    let mut check = |lines: &str, line: u64| {
        let mut book = Book::new();
        let text = calendar(&event(&format!("UID:a\nDTSTART:20260301T000000Z\n{lines}")));
        let (outcome, result) = take(&mut book, &text, &window("20260301", "20260302"));
        assert_eq!((outcome.summary.added, result.found), (1, 1), "{lines}");
        let at = format!("standard input:{line}: ");
        if !outcome.warnings.iter().any(|line| line.starts_with(&at)) {
            wrong.push(format!("{lines}: {:?}", outcome.warnings));
        }
    };
    check("RRULE:FREQ=DAILY;INTERVAL=0", 7);
    check("RRULE:FREQ=DAILY;INTERVAL=99999999999999999999999", 7);
    check("RRULE:FREQ=YEARLY;UNTIL=10000000000101T000000Z", 7);
    check("RRULE:FREQ=FORTNIGHTLY", 7);
    check("RDATE:10000000000101T000000Z", 7);
    check("EXDATE:20260230T000000Z", 7);
    check("SUMMARY:x\nDTEND:1000000000-01-01", 8);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn list(name: &str, count: i64, visit: i64) -> String {
    let start = instant("20260301T000000").seconds();
    let mut line = format!("{name}:");
    for number in 0..count {
        let stamp = IcalDateTime {
            civil: Instant::from_seconds_clamped(start + number * visit).to_civil(0),
            is_date: false,
            is_utc: true,
        };
        write!(line, "{}{stamp}", if number > 0 { "," } else { "" }).unwrap();
    }
    line
}

#[test]
fn a_hundred_thousand_exceptions_apply() {
    let mut book = Book::new();
    let exceptions = list("EXDATE", 100_000, 60);
    let text = calendar(&event(&format!(
        "UID:a\nDTSTART:20260301T000000Z\nRRULE:FREQ=MINUTELY\n{exceptions}"
    )));
    let (outcome, result) = take(&mut book, &text, &window("20260310", "20260311"));
    assert_eq!((outcome.summary.added, result.found), (1, 0));
    // The hundred-thousandth minute is on 9 May.
    let reader = book.store.open_reader().unwrap();
    let find_in = |from, to| {
        let request = SearchRequest {
            query: Query::Time(TimeTest::InRange(window(from, to))),
            ..SearchRequest::default()
        };
        find(&reader, &request).unwrap().len()
    };
    assert_eq!((find_in("20260508", "20260509"), find_in("20260509", "20260510")), (0, 1));
}

/// Of a list of a million dates, a bounded number is used.
#[test]
fn a_million_dates_are_bounded() {
    let mut book = Book::new();
    let dates = list("RDATE", 1_000_000, 3600);
    let text = calendar(&event(&format!("UID:a\nDTSTART:20260301T000000Z\n{dates}")));
    let (outcome, result) = take(&mut book, &text, &window("20260310", "20260311"));
    assert_eq!(outcome.summary.added, 1);
    assert_eq!(result, QueryOutcome { found: 1, occurrences: 24, is_truncated: false });
}

#[test]
fn thousands_of_overrides_are_imported() {
    let mut book = Book::new();
    let mut text = event("UID:a\nDTSTART:20260301T000000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY");
    let start = instant("20260301T000000").seconds();
    for number in 0..10_000 {
        let civil = Instant::from_seconds_clamped(start + number * 86_400).to_civil(0);
        let stamp = IcalDateTime { civil, is_date: false, is_utc: true };
        text += &event(&format!(
            "UID:a\nRECURRENCE-ID:{stamp}\nDTSTART:{stamp}\nDURATION:PT2H\nSUMMARY:{number}"
        ));
    }
    let (outcome, result) = take(&mut book, &calendar(&text), &window("20260310", "20260311"));
    assert_eq!((outcome.summary.added, outcome.warnings), (10_001, vec![]));
    assert_eq!(result, QueryOutcome { found: 1, occurrences: 1, is_truncated: false });
}

/// Each batch reads all items of a UID, so a series is imported in few batches.
#[test]
fn overrides_are_imported_in_few_batches() {
    let mut book = Book::new();
    let mut text = event("UID:a\nDTSTART:20260301T000000Z\nRRULE:FREQ=DAILY");
    let start = instant("20260301T000000").seconds();
    for number in 0..3000 {
        let civil = Instant::from_seconds_clamped(start + number * 86_400).to_civil(0);
        let stamp = IcalDateTime { civil, is_date: false, is_utc: true };
        text += &event(&format!("UID:a\nRECURRENCE-ID:{stamp}\nDTSTART:{stamp}"));
    }
    text += &event("UID:b\nDTSTART:20260301T000000Z");
    let outcome = book.take(calendar(&text), &options());
    assert_eq!(outcome.summary.added, 3002);
    // One batch for the series, one for the items after it, and one for the own lines of the
    // calendar.
    assert_eq!(book.store.last_seq().unwrap(), 3);
}

/// Of three hundred THISANDFUTURE overrides, 64 are applied to later occurrences; the others
/// replace only their own.
#[test]
fn overrides_of_later_occurrences_are_bounded() {
    let mut book = Book::new();
    let mut text = event("UID:a\nDTSTART:20260301T000000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY");
    let start = instant("20260301T000000").seconds();
    for number in 0..300 {
        let civil = Instant::from_seconds_clamped(start + number * 86_400).to_civil(0);
        let stamp = IcalDateTime { civil, is_date: false, is_utc: true };
        text += &event(&format!(
            "UID:a\nRECURRENCE-ID;RANGE=THISANDFUTURE:{stamp}\nDTSTART:{stamp}\nDURATION:PT2H\nSUMMARY:{number}"
        ));
    }
    let (outcome, result) = take(&mut book, &calendar(&text), &window("20260310", "20260311"));
    assert_eq!(outcome.summary.added, 301);
    assert_eq!(result, QueryOutcome { found: 1, occurrences: 1, is_truncated: false });
    let result = query_range(&book, &window("20261110", "20261111"));
    assert_eq!((result.occurrences, result.is_truncated), (1, false));
}

/// Components nested deeper than any real one, and larger than the limit.
#[test]
fn deep_and_large_components_are_bounded() {
    let mut book = Book::new();
    let deep = format!("{}{}", "BEGIN:VALARM\r\n".repeat(5000), "END:VALARM\r\n".repeat(5000));
    let nested = event("UID:nested\nDTSTART:20260310T000000Z")
        .replace("END:VEVENT", &format!("{deep}END:VEVENT"));
    let events = format!("{}{}", "BEGIN:VEVENT\r\n".repeat(1000), "END:VEVENT\r\n".repeat(1000));
    let large = "x".repeat(40 << 20);
    let huge = event(&format!("UID:huge\nDTSTART:20260310T000000Z\nDESCRIPTION:{large}"));
    let last = event("UID:last\nDTSTART:20260310T000000Z");
    let text = calendar(&format!("{nested}{events}{huge}{last}"));
    let (outcome, result) = take(&mut book, &text, &window("20260310", "20260311"));
    let uids: Vec<String> = {
        let reader = book.store.open_reader().unwrap();
        let collection = reader.collections().list().unwrap().remove(0);
        reader
            .items()
            .list_after(&collection, None, 99)
            .unwrap()
            .into_iter()
            .map(|head| head.uid)
            .collect()
    };
    assert!(uids.contains(&"last".to_string()), "{uids:?}");
    assert!(result.found >= 1);
    let at = format!("standard input:{}: ", 4 + 2 + 2 + 10_000 + 2000);
    assert!(
        outcome.rejected.iter().any(|line| line.starts_with(&at)),
        "{at}: {:?}",
        outcome.rejected
    );
    assert!(!uids.contains(&"huge".to_string()));
}
