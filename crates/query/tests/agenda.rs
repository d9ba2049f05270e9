//! The occurrences of an answer, and the domain of a query.

use crate::book::Book;
use larder_query::{
    AgendaContent, Query, ResultDomain, SearchRequest, find, read_agenda_with, resolve_domain,
};
use larder_store::{BatchChange, CalendarContext, CollectionType, ItemPut, Precondition};
use std::sync::Arc;

/// Creates a calendar of components, each with its kind and its lines separated by blanks.
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

/// An event without a duration at midnight is on the day that begins, recurring or not.
#[test]
fn an_event_without_duration_is_on_one_day() {
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
                let time_range = larder_query::required_time_range(&find.query).unwrap();
                let count =
                    larder_query::count_occurrences(&book.reader(), &answer, time_range, 1000)
                        .unwrap();
                (answer.rows().len(), count.number, count.undecided_rows.len())
            });
            assert_eq!(answers, [(found, found as u64, 0); 2], "{rule} on {day}");
        }
    }
}

#[test]
fn a_query_has_a_domain() {
    let book = calendar(&[("EVENT", "SUMMARY:lunch DTSTART:20260305T090000Z")]);
    let check = |line: &str, expect: ResultDomain| {
        let find = SearchRequest { query: Query::parse(line).unwrap(), ..SearchRequest::default() };
        assert_eq!(resolve_domain(&book.reader(), &find).unwrap(), expect, "{line}");
    };
    check("", ResultDomain::One(CollectionType::Calendar));
    check("lunch", ResultDomain::One(CollectionType::Calendar));
    check("when:2026-03", ResultDomain::One(CollectionType::Calendar));
    check("summary:lunch", ResultDomain::One(CollectionType::Calendar));
    check("lunch is:task", ResultDomain::One(CollectionType::Calendar));
    check("full_name:anna", ResultDomain::One(CollectionType::AddressBook));
    check("is:contact or is:event", ResultDomain::One(CollectionType::Calendar));
}

/// Tasks in progress that are due later, and for busy times all tasks and transparent events, do
/// not count against the limit.
#[test]
fn only_entries_of_an_agenda_count_against_its_limit() {
    let book = calendar(&[
        ("TODO", "SUMMARY:x DTSTART:20261201T000000Z DUE:20270102T120000Z"),
        ("TODO", "SUMMARY:y DTSTART:20261201T000000Z DUE:20270103T120000Z"),
        ("TODO", "SUMMARY:z DTSTART:20261201T000000Z DUE:20270101T070000Z"),
        (
            "EVENT",
            "SUMMARY:free DTSTART:20270101T080000Z DTEND:20270101T100000Z TRANSP:TRANSPARENT",
        ),
        ("EVENT", "SUMMARY:a DTSTART:20270101T090000Z DTEND:20270101T100000Z"),
        ("EVENT", "SUMMARY:b DTSTART:20270101T120000Z DTEND:20270101T130000Z"),
    ]);
    let query = Query::parse("when:2027-01-01").unwrap();
    let time_range = larder_query::required_time_range(&query).unwrap();
    let reader = book.reader();
    let check = |content: AgendaContent, limit: usize, expect: &str, is_cut: bool| {
        let search = &mut |request: &SearchRequest| find(&reader, request);
        let found = read_agenda_with(search, &reader, &[], time_range, content, limit).unwrap();
        let names: Vec<&str> = found.entries.iter().map(|on| on.item.summary.as_str()).collect();
        assert_eq!((names.join(" ").as_str(), found.truncated), (expect, is_cut), "{limit}");
    };
    check(AgendaContent::EventsAndTasks, 1000, "z free a b", false);
    check(AgendaContent::EventsAndTasks, 4, "z free a b", false);
    check(AgendaContent::EventsAndTasks, 3, "z free a", true);
    check(AgendaContent::BusyTime, 2, "a b", false);
    check(AgendaContent::BusyTime, 1, "a", true);
    check(AgendaContent::BusyTime, 0, "", true);
}
