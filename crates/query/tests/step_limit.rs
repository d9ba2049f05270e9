//! Queries that would take too long: each ends within its budget, with an error.

use crate::book::{Book, card, search_request, small};
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewOptions, ViewQuery, Views, ViewsOptions,
};
use larder_query::{
    Error, MAX_QUERY_BYTES, MAX_QUERY_STEPS, Query, QueryBudget, QueryContext, SearchRequest,
    SortSpec, find, full_scan,
};
use larder_store::Reader;
use std::fmt::Write as _;
use std::sync::Arc;

/// Returns a query for any of these tests.
fn any_of(tests: impl IntoIterator<Item = String>) -> String {
    let tests: Vec<String> = tests.into_iter().collect();
    format!("(or {})", tests.join(" "))
}

/// Returns a test that no index answers and no item passes.
fn any_field(text: &str) -> String {
    format!("(not (not (contains \"x-evolution-any-field\" \"{text}\")))")
}

fn request(text: &str, max_steps: u64) -> SearchRequest {
    let query = Query::parse_sexp(text).unwrap();
    SearchRequest { max_steps: QueryBudget(max_steps), ..search_request(query) }
}

/// Returns the smallest budget within which a query is answered.
fn steps(reader: &Reader, text: &str) -> u64 {
    let is_enough = |max_steps| match full_scan(reader, &request(text, max_steps)) {
        Ok(_) => true,
        Err(Error::StepLimit { max_steps: limit }) => {
            assert_eq!(limit, max_steps);
            false
        }
        Err(error) => panic!("{error}"),
    };
    let (mut too_few, mut enough) = (0_u64, 1 << 24);
    while too_few + 1 < enough {
        let middle = too_few.midpoint(enough);
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    enough
}

#[test]
fn a_query_that_exceeds_its_budget_fails() {
    let book = small();
    let reader = book.reader();
    let text = any_of((0..200).map(|n| any_field(&format!("zq{n}"))));
    let needed = steps(&reader, &text);
    for run in [find, full_scan] {
        let error = run(&reader, &request(&text, needed / 2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the query is too expensive: it takes more than {} steps, each the comparison of one term with one byte of an item",
                needed / 2
            )
        );
        assert!(run(&reader, &request(&text, needed)).unwrap().is_empty());
    }
    assert!(needed < MAX_QUERY_STEPS / 1000);
    // A negation must not turn the end of the budget into a match.
    assert!(find(&reader, &request(&format!("(not {text})"), needed / 2)).is_err());
}

#[test]
fn each_kind_of_test_is_counted() {
    let book = small();
    let reader = book.reader();
    for test in [
        "(contains \"full_name\" \"zq\")",
        "(word \"zq\")",
        "(is \"note\" \"zq\")",
        "(eqphone \"phone\" \"+43664555\")",
        "(regex_raw \"note\" \"z{20}q\")",
        "(exists_vcard \"X-EVOLUTION-SPOUSE\")",
        "(is \"uid\" \"nobody\")",
    ] {
        assert!(full_scan(&reader, &request(test, 1)).is_err(), "{test}");
    }
}

#[test]
fn equal_terms_are_tested_once() {
    let book = small();
    let reader = book.reader();
    let (one, other) = (any_field("zq"), any_field("qz"));
    let single = steps(&reader, &any_of([one.clone()]));
    assert_eq!(steps(&reader, &any_of(vec![one.clone(); 1000])), single);
    // Also in different lists: only the terms that differ are added.
    let both = steps(&reader, &format!("(or {one} {other})"));
    let lists = (0..50).map(|n| format!("(and (not {one}) {other} (not (is \"uid\" \"{n}\")))"));
    let many = steps(&reader, &any_of(lists));
    assert!(many < both + 50 * 64 * 8, "{many} steps for two terms that take {both}");
    // The answer is the same as that of the terms themselves.
    let text = format!("(or (and {one} {one}) (and {one} (word \"anna\")) (word \"anna\"))");
    assert_eq!(full_scan(&reader, &request(&text, 1 << 24)).unwrap().len(), 1);
}

#[test]
fn a_long_pattern_costs_as_much_as_a_short_one() {
    // A naive search for a repetitive text in a repetitive value compares each pair of letters.
    let note = "ab".repeat(200_000);
    let book = Book::with_contacts([card(&format!("UID:a\nFN:A\nNOTE:{note}")).as_str()]);
    let reader = book.reader();
    let pattern = format!("{}c", "ab".repeat(100_000));
    for test in ["contains", "includes"] {
        let text = format!("({test} \"note\" \"{pattern}\")");
        assert!(full_scan(&reader, &request(&text, MAX_QUERY_STEPS)).unwrap().is_empty());
    }
    let line = Query::parse(&pattern).unwrap();
    assert!(full_scan(&reader, &search_request(line)).unwrap().is_empty());
}

#[test]
fn an_expensive_pattern_is_not_run_on_a_long_value() {
    let note = "é".repeat(1 << 20);
    let book = Book::with_contacts([card(&format!("UID:a\nFN:A\nNOTE:{note}")).as_str()]);
    let text = r#"(regex_raw "note" "\\pL{1,10}z")"#;
    let error = full_scan(&book.reader(), &request(text, 100_000_000)).unwrap_err();
    assert!(matches!(error, Error::StepLimit { .. }), "{error}");
}

#[test]
fn the_text_of_a_query_is_limited() {
    let text = |letters: usize| format!("(word \"{}\")", "a".repeat(letters - 9));
    assert!(Query::parse_sexp(&text(MAX_QUERY_BYTES)).is_ok());
    let error = Query::parse_sexp(&text(MAX_QUERY_BYTES + 1)).unwrap_err();
    assert_eq!(error.message, "the query is longer than 1048576 bytes");
    assert!(Query::parse(&"a".repeat(MAX_QUERY_BYTES)).is_ok());
    assert_eq!(Query::parse(&"é".repeat(MAX_QUERY_BYTES)).unwrap_err().message, error.message);
    let patterns =
        |count: usize| any_of((0..count).map(|n| format!("(regex_normal \"note\" \"a{n}\")")));
    assert!(Query::parse_sexp(&patterns(64)).is_ok());
    let error = Query::parse_sexp(&patterns(65)).unwrap_err();
    assert_eq!(error.message, "more than 64 regular expressions in one query");
    let line = (0..65).fold(String::new(), |mut line, n| {
        let _infallible = write!(line, "note:~a{n} ");
        line
    });
    assert_eq!(Query::parse(&line).unwrap_err().message, error.message);
}

/// Opens a view on an S-expression.
fn open(views: &Views, text: &str) -> Result<View, Error> {
    let query = ViewQuery::new(QuerySyntax::Sexp, text, Arc::new(QueryContext::default()));
    views.open_view(query, ViewOptions::default())
}

fn read_to_completion(view: &mut View) -> Vec<usize> {
    let mut added = Vec::new();
    while let Some(event) = view.try_next().unwrap() {
        if let ViewEvent::Added(items) = event {
            added.push(items.len());
        }
    }
    added
}

#[test]
fn a_view_that_is_too_expensive_for_a_change_ends_with_an_error() {
    let mut book = small();
    let options = ViewsOptions { watch: false, ..ViewsOptions::default() };
    let views = Views::open(&book.dir(), options).unwrap();
    let term = |n| format!("(not (not (endswith \"x-evolution-any-field\" \"zq{n}\")))");
    let text = any_of((0..1200).map(term));
    let mut expensive = open(&views, &text).unwrap();
    let mut cheap = open(&views, "(not (word \"zq\"))").unwrap();
    assert!(read_to_completion(&mut expensive).is_empty());
    assert_eq!(read_to_completion(&mut cheap), [8]);
    book.put(
        "contacts",
        ["UID:small\nFN:Small".to_string()].map(|it| card(&it)).each_ref().map(String::as_str),
    );
    views.catch_up().unwrap();
    assert!(read_to_completion(&mut expensive).is_empty(), "a usual change is affordable");
    assert_eq!(read_to_completion(&mut cheap), [1]);

    let large = card(&format!("UID:large\nFN:Large\nNOTE:{}", "x".repeat(100_000)));
    book.put("contacts", [large.as_str()]);
    views.catch_up().unwrap();
    for _ in 0..2 {
        assert!(matches!(expensive.try_next(), Err(Error::StepLimit { .. })));
    }
    assert_eq!(read_to_completion(&mut cheap), [1], "other views go on");
    assert!(matches!(open(&views, &text), Err(Error::StepLimit { .. })));
    drop(expensive);
    assert!(read_to_completion(&mut open(&views, &text).unwrap()).is_empty());
}

/// Contacts that the index takes for matches of `abca`, and one match after them in the order.
fn contacts_before_a_match(count: usize) -> Book {
    let cards = (0..count).map(|n| card(&format!("UID:{n}\nFN:bcabc {n:05}\nN:bcabc {n:05}")));
    let last = card("UID:last\nFN:zabca\nN:zabca");
    let cards: Vec<String> = cards.chain([last]).collect();
    Book::with_contacts(cards.iter().map(String::as_str))
}

fn first_by_name(reader: &Reader) -> larder_query::Explanation {
    let request = SearchRequest {
        sort: Some(SortSpec::parse("full_name").unwrap()),
        limit: Some(1),
        ..search_request(Query::parse("abca").unwrap())
    };
    let result = find(reader, &request).unwrap();
    assert_eq!(result.len(), 1);
    result.explain
}

#[test]
fn the_last_test_of_a_scan_may_complete_the_answer() {
    let book = contacts_before_a_match(999);
    let explain = first_by_name(&book.reader());
    assert_eq!((explain.order.as_str(), explain.verified), ("order of the index", 1000));
}

#[test]
fn the_work_of_an_abandoned_scan_is_explained() {
    let book = contacts_before_a_match(1000);
    let explain = first_by_name(&book.reader());
    assert_eq!(explain.order, "sort keys of full_name, computed for each match");
    // The scan tests a thousand candidates and reads their positions; then all are tested.
    assert_eq!(explain.verified, 1000 + 1001);
    assert!(explain.rows_read >= 1001 + 1000, "{} rows", explain.rows_read);
}
