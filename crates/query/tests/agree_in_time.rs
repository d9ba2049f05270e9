//! For calendars: the result of a plan equals the result of a full scan, and an expansion equals
//! the part of a larger expansion in the time range.

use crate::book::{Book, Stale};
use crate::calendar::{DAYS, random_component};
use larder_format::field::find_calendar_field;
use larder_query::{
    Comparison, DateProperty, FieldSelector, FieldTest, MatchOp, NumericOperand, Query,
    QueryContext, SearchRequest, SortSpec, TimeTest, expand_occurrences, find, full_scan,
};
use larder_store::{BatchChange, ItemRow, Kind, Precondition, Reader, TimeRange, TimeTarget};
use larder_time::civil::{CivilTime, Instant};
use larder_time::value;
use larder_time::zone::{Zone, ZoneDatabase};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const DAY: i64 = 86_400;
const HERE: &[&str] =
    &["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Pacific/Kiritimati"];

fn zone(name: &str) -> Zone {
    ZoneDatabase::open_bundled().get(name).unwrap()
}

fn midnight(day: &str) -> i64 {
    value::IcalDateTime::parse(day).unwrap().civil.seconds()
}

/// Generates a time range of any size, near a day on which clocks change.
fn time_range(what: TimeTarget) -> impl Strategy<Value = TimeRange> {
    let lengths = &[
        0,
        1,
        60,
        3600,
        6 * 3600,
        DAY - 1,
        DAY,
        DAY + 3600,
        7 * DAY,
        27 * DAY,
        28 * DAY,
        29 * DAY,
        31 * DAY,
        100 * DAY,
        364 * DAY,
        365 * DAY,
        366 * DAY,
        3660 * DAY,
        -DAY,
    ];
    let offsets = &[-DAY, -7200, -3600, -1, 0, 1, 1800, 3600, 7200, 9 * 3600, 12 * 3600, DAY - 1];
    (select(DAYS), select(&offsets[..]), select(&lengths[..]), select(HERE)).prop_map(
        move |(day, offset, length, local)| {
            let from = Instant::from_seconds_clamped(midnight(day) + offset);
            TimeRange {
                from,
                to: from.saturating_add(length),
                local_zone: zone(local),
                target: what,
            }
        },
    )
}

fn text() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "standup",
            "zahn",
            "Brasilia",
            "strasse",
            "100 %",
            "東",
            "a",
            "work",
            "Home",
            "CANCELLED",
            "mailto:anna@example.org",
            "anna",
            "1",
            "u1",
            "",
        ][..],
    )
}

fn leaf() -> impl Strategy<Value = Query> {
    let fields = &[
        "uid",
        "summary",
        "description",
        "location",
        "category",
        "status",
        "class",
        "priority",
        "organizer",
        "attendee",
        "percent",
        "alarm",
        "recurring",
        "done",
        "all_day",
        "start",
        "due",
        "attach",
        "rule",
    ];
    let ops = &[
        MatchOp::ContainsWords,
        MatchOp::Is,
        MatchOp::BeginsWith,
        MatchOp::EndsWith,
        MatchOp::Exists,
        MatchOp::Substring,
    ];
    let test = (select(&fields[..]), select(&ops[..]), text()).prop_map(|(field, op, text)| {
        let text = if op == MatchOp::Exists { "" } else { text };
        Query::Test(FieldTest::new(
            FieldSelector::Field(find_calendar_field(field).unwrap()),
            op,
            text,
        ))
    });
    let stamps = &[
        DateProperty::Start,
        DateProperty::End,
        DateProperty::Due,
        DateProperty::Completed,
        DateProperty::Created,
        DateProperty::Modified,
    ];
    let comparisons = &[Comparison::Less, Comparison::Equal, Comparison::Greater];
    let number = (select(&["priority", "percent"][..]), select(&comparisons[..]), -1..60i64)
        .prop_map(|(field, comparison, value)| {
            Query::Number(
                NumericOperand::Field(find_calendar_field(field).unwrap()),
                comparison,
                value,
            )
        });
    let count = (time_range(TimeTarget::Occurrences), select(&comparisons[..]), 0..4i64).prop_map(
        |(time_range, comparison, value)| {
            Query::Number(NumericOperand::Occurrences(Some(time_range)), comparison, value)
        },
    );
    prop_oneof![
        8 => time_range(TimeTarget::Occurrences).prop_map(|time_range| Query::Time(TimeTest::InRange(time_range))),
        3 => time_range(TimeTarget::Alarms).prop_map(|time_range| Query::Time(TimeTest::InRange(time_range))),
        2 => (select(&stamps[..]), time_range(TimeTarget::Occurrences))
            .prop_map(|(stamp, time_range)| Query::Time(TimeTest::DateInRange(stamp, time_range))),
        5 => test,
        2 => text().prop_map(|text| Query::Word(text.to_string())),
        1 => number,
        1 => count,
        1 => select(&[Kind::Event, Kind::Task, Kind::Memo, Kind::Component, Kind::Contact][..])
            .prop_map(Query::Kind),
        1 => vec((0..6).prop_map(|n| format!("u{n}")), 0..3).prop_map(Query::from_uids),
        1 => Just(Query::All),
    ]
}

pub(crate) fn question() -> impl Strategy<Value = Query> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Query::And),
            vec(inner.clone(), 0..4).prop_map(Query::Or),
            inner.prop_map(|query| Query::Not(Box::new(query))),
        ]
    })
}

fn random_request() -> impl Strategy<Value = SearchRequest> {
    let sorts = &["start", "-start", "summary", "-summary", "priority"];
    let collection = option::weighted(0.3, select(&["calendar", "other"][..]));
    let limit = option::weighted(0.3, 0..5usize);
    (question(), collection, option::weighted(0.5, select(&sorts[..])), limit).prop_map(
        |(query, collection, sort, limit)| SearchRequest {
            query,
            collection: collection.map(str::to_string),
            sort: sort.map(|sort| SortSpec::parse(sort).unwrap()),
            limit,
            ..SearchRequest::default()
        },
    )
}

#[track_caller]
fn check(reader: &Reader, request: &SearchRequest) {
    let found = find(reader, request).unwrap_or_else(|error| panic!("{error}: {request:?}"));
    let walked = full_scan(reader, request).unwrap();
    assert_eq!(found.rows(), walked.rows(), "{}: {request:?}", found.explain.plan.join("; "));
    let parsed = Query::parse_sexp(&request.query.to_string());
    assert_eq!(parsed.as_ref(), Ok(&request.query), "{}", request.query);
}

fn book(components: &[String], more: &[String]) -> Book {
    let mut book = Book::new();
    for name in ["calendar", "other"] {
        book.apply(vec![BatchChange::CreateCollection(name.into(), Kind::Event)]);
    }
    book.put_components("calendar", components.iter().map(String::as_str));
    book.put_components("other", more.iter().map(String::as_str));
    book
}

/// Checks that an expansion equals the part of a larger one in its time range.
#[track_caller]
fn check_expansion(reader: &Reader, time_range: &TimeRange, all: &TimeRange) {
    let everything = find(reader, &SearchRequest::default()).unwrap();
    let few = expand_occurrences(reader, &everything, time_range, 1 << 20).unwrap();
    let many = expand_occurrences(reader, &everything, all, 1 << 20).unwrap();
    if few.truncated || many.truncated {
        return;
    }
    let inside = |start: Instant, end: Instant| {
        let (from, to) = (time_range.from, time_range.to);
        start < to && (end > from || (start == end && start >= from)) && from < to
    };
    let mut expect: Vec<_> = many
        .occurrences
        .iter()
        .filter(|(_, occurring)| match occurring.alarm {
            Some((at, _)) => inside(at, at),
            None => inside(occurring.occurrence.start, occurring.occurrence.end),
        })
        .map(|(row, occurring)| {
            (*row, occurring.occurrence.start, occurring.occurrence.end, occurring.alarm)
        })
        .collect();
    let mut given: Vec<_> = few
        .occurrences
        .iter()
        .map(|(row, occurring)| {
            (*row, occurring.occurrence.start, occurring.occurrence.end, occurring.alarm)
        })
        .collect();
    expect.sort();
    given.sort();
    assert_eq!(given, expect, "{time_range:?}");
    // A time range finds an item exactly if it has an occurrence there.
    let request = SearchRequest {
        query: Query::Time(TimeTest::InRange(time_range.clone())),
        ..SearchRequest::default()
    };
    let mut rows: Vec<ItemRow> = expect.into_iter().map(|(row, ..)| row).collect();
    rows.dedup();
    let found = find(reader, &request).unwrap().rows();
    let open = |row: &ItemRow| {
        let mut open = false;
        reader
            .items()
            .for_each_schedule(&[*row], &mut |_, times| {
                open = times.series().is_none();
                true
            })
            .unwrap();
        open
    };
    let found: Vec<ItemRow> = found.into_iter().filter(|row| !open(row)).collect();
    assert_eq!(found, rows, "{time_range:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_equal_full_scans(
        components in vec(random_component(), 1..14),
        more in vec(random_component(), 0..4),
        requests in vec(random_request(), 1..24),
    ) {
        let book = book(&components, &more);
        let reader = book.reader();
        for request in &requests {
            check(&reader, request);
        }
    }

    /// Series with overrides, and items that are removed and replaced.
    #[test]
    fn plans_equal_full_scans_after_edits(
        components in vec(random_component(), 2..10),
        edits in vec(random_component(), 1..8),
        removed in vec(0..8usize, 0..3),
        requests in vec(random_request(), 1..12),
    ) {
        let mut book = book(&components, &components[..1]);
        for edit in &edits {
            book.put_components("calendar", [edit.as_str()]);
        }
        for removed in removed {
            let collection = book.reader().collections().list().unwrap().remove(0);
            let items = book.reader().items().list_after(&collection, None, 99).unwrap();
            if !items.is_empty() {
                let gone = items[removed % items.len()].handle;
                book.apply(vec![BatchChange::Remove(gone, Precondition::Any)]);
            }
        }
        prop_assert_eq!(book.store.check().unwrap().faults, []);
        let reader = book.reader();
        for request in &requests {
            check(&reader, request);
        }
    }

    #[test]
    fn plans_equal_full_scans_without_indexes(
        components in vec(random_component(), 1..8),
        stale in select(vec![&[Stale::Time][..], &[Stale::Text][..], &[Stale::Time, Stale::Sort, Stale::Text][..]]),
        requests in vec(random_request(), 1..8),
    ) {
        let (_scratch, reader) = book(&components, &[]).with_stale(stale);
        for request in &requests {
            check(&reader, request);
        }
    }

    #[test]
    fn an_expansion_is_a_part_of_a_larger_one(
        components in vec(random_component(), 1..8),
        windows in vec(prop_oneof![3 => time_range(TimeTarget::Occurrences), 1 => time_range(TimeTarget::Alarms)], 1..12),
    ) {
        let book = book(&components, &[]);
        let reader = book.reader();
        for time_range in &windows {
            let (from, to) = (midnight("20230101"), midnight("20380101"));
            let (from, to) = (Instant::from_seconds_clamped(from), Instant::from_seconds_clamped(to));
            let all = TimeRange { from, to, ..time_range.clone() };
            check_expansion(&reader, time_range, &all);
        }
    }
}

/// The text of a query is parsed to the same query, also if the query is from a search line.
#[test]
fn printed_queries_are_parsed_back() {
    let lines = [
        "when:2026-03",
        "when:today..+7d",
        "start:2026 end:2026 due:2026-W12 completed:2026 created:2026 modified:2026",
        "is:overdue",
        "is:recurring is:completed is:all-day is:event",
        "priority:high or priority:low or priority:5 or priority:none",
        "has:alarm alarm:2026-03-29",
        "status:confirmed location:wien organizer:anna attendee:bob category:work",
    ];
    for local in HERE {
        let mut settings = QueryContext::default();
        settings.user_locale.zone = zone(local);
        settings.user_locale.now = settings
            .user_locale
            .zone
            .to_instant(CivilTime::from_seconds_clamped(midnight("20260329")));
        for line in lines {
            let query = Query::parse_with(line, &settings)
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            let again = Query::parse_sexp_with(&query.to_string(), &settings);
            assert_eq!(again.as_ref(), Ok(&query), "{line}");
        }
    }
}
