//! Saved searches in search lines: what `@name` stands for, and the errors of names.

use crate::book::{Book, card, search_request, uids};
use crate::calendar::component;
use larder_format::saved_search::SavedSearch;
use larder_query::{
    Kind, MailQuery, MailQueryContext, Query, QueryContext, SavedSearches, SyntaxError,
};
use std::fmt::Display;
use std::sync::Arc;

/// A context with these saved searches: name, query, kind.
fn context(searches: &[(&str, &str, Kind)]) -> QueryContext {
    let mut saved = SavedSearches::default();
    for (name, query, kind) in searches {
        saved.insert(SavedSearch::new(name, query, kind.name()));
    }
    QueryContext { saved_searches: Arc::new(saved), ..QueryContext::default() }
}

fn show(parsed: Result<impl Display, SyntaxError>) -> String {
    match parsed {
        Ok(query) => query.to_string(),
        Err(error) => {
            format!("at {}: {}; {}", error.at, error.message, error.hint.unwrap_or_default())
        }
    }
}

fn mail(context: &QueryContext, line: &str) -> String {
    show(MailQuery::parse(line, &MailQueryContext::from(context)))
}

fn items(context: &QueryContext, line: &str) -> String {
    show(Query::parse_with(line, context))
}

#[test]
fn a_name_stands_for_its_line() {
    let context = context(&[
        ("work", "from:anna or subject:budget", Kind::Message),
        ("all", "", Kind::Message),
        ("new", "@work -flag:seen", Kind::Message),
        ("friends", "org:example or berg", Kind::Contact),
        ("berg", "berg", Kind::Contact),
        ("close-friends", "@friends anna", Kind::Contact),
        ("team", "from:anna or @berg", Kind::Message),
        ("vip", "berg or @work", Kind::Contact),
    ]);
    for (line, expect) in [
        ("@work", r#"(or (from "anna") (subject "budget"))"#),
        ("@work and to:bob", r#"(and (or (from "anna") (subject "budget")) (to "bob"))"#),
        ("x or -@work", r#"(or (any "x") (not (or (from "anna") (subject "budget"))))"#),
        ("subject:(a @work)", r#"(and (subject "a") (or (from "anna") (subject "budget")))"#),
        ("thread:{@work}", r#"(thread-of (or (from "anna") (subject "budget")))"#),
        ("@new", r#"(and (or (from "anna") (subject "budget")) (not (flag seen)))"#),
        ("@all", "(all)"),
        // A search for items of another kind matches no message.
        ("@friends or x", r#"(or (nothing) (any "x"))"#),
        ("not @friends", "(nothing)"),
        ("-(@friends or x)", r#"(and (nothing) (not (any "x")))"#),
        // Such a part of a definition does not restrict the negation of the search.
        ("-@team", r#"(not (or (from "anna") (nothing)))"#),
        ("@team", r#"(or (from "anna") (nothing))"#),
        ("-(-@team)", r#"(or (from "anna") (nothing))"#),
        ("-(@team or x)", r#"(and (not (or (from "anna") (nothing))) (not (any "x")))"#),
        ("-(@team or @berg)", r#"(and (not (or (from "anna") (nothing))) (nothing))"#),
        // Other words with an at sign are words.
        ("@example.org", r#"(any "@example.org")"#),
        ("\"@work\"", r#"(any "@work")"#),
        ("from:@work", r#"(from "@work")"#),
        ("@", r#"(any "@")"#),
    ] {
        assert_eq!(mail(&context, line), expect, "{line}");
    }
    for (line, expect) in [
        (
            "@close-friends",
            r#"(and (kind "contact") (and (and (kind "contact") (or (contains "org" "example") (word "berg"))) (word "anna")))"#,
        ),
        (
            "-@friends",
            r#"(and (kind "contact") (not (or (contains "org" "example") (word "berg"))))"#,
        ),
        ("-@berg", r#"(and (kind "contact") (not (word "berg")))"#),
        ("not (not @berg)", r#"(and (kind "contact") (word "berg"))"#),
        ("-@vip", r#"(and (kind "contact") (not (or (word "berg") (or))))"#),
        ("@work", "(or)"),
        ("-@work", "(or)"),
        ("@example.org", r#"(word "@example.org")"#),
        ("\"@friends\"", r#"(word "@friends")"#),
    ] {
        assert_eq!(items(&context, line), expect, "{line}");
    }
}

/// Each item of the kind of a search is in the search or in its negation, and no other item is,
/// also if a part of the search is about other kinds.
#[test]
fn a_search_and_its_negation_are_all_items_of_its_kind() {
    let context = context(&[
        ("work", "from:anna", Kind::Message),
        ("trips", "summary:trip", Kind::Event),
        ("vip", "org:example or @work or @trips", Kind::Contact),
        ("others", "-@trips -from:anna", Kind::Contact),
        ("open", "not is:done", Kind::Event),
    ]);
    let mut book = Book::with_contacts(
        [card("UID:a\nFN:Anna\nORG:Example"), card("UID:b\nFN:Bob")].each_ref().map(String::as_str),
    );
    let event = component("VEVENT\nUID:e\nSUMMARY:Trip\nDTSTART:20260301T100000Z");
    book.put_components("calendar", [event.as_str()]);
    let reader = book.reader();
    let found = |line: &str| {
        let query = Query::parse_with(line, &context).unwrap();
        let mut found = uids(&reader, &search_request(query));
        found.sort();
        found
    };
    for (name, with, without) in [
        ("vip", &["a"][..], &["b"][..]),
        ("others", &[], &["a", "b"]),
        ("trips", &["e"], &[]),
        ("open", &[], &["e"]),
    ] {
        assert_eq!(found(&format!("@{name}")), with, "{name}");
        assert_eq!(found(&format!("-@{name}")), without, "{name}");
    }
    assert_eq!(found("-(@vip or trip)"), ["b"]);
}

#[test]
fn errors_name_the_search_and_the_nearest_one() {
    let context = context(&[
        ("work", "from:anna", Kind::Message),
        ("a", "x @b", Kind::Message),
        ("b", "@a", Kind::Message),
        ("wrong", "date:nonsense", Kind::Message),
        ("outer", "@wrong", Kind::Message),
        ("people", "anna", Kind::Contact),
        ("self", "@self", Kind::Contact),
        ("nope", "@nope2 x", Kind::Message),
    ]);
    for (line, expect) in [
        (
            "walrus @wrok",
            "at 8: no saved search is named \"wrok\"; did you mean @work? To search for the word, quote it",
        ),
        (
            "@xyzzy",
            "at 1: no saved search is named \"xyzzy\"; `larder searches` lists them; to search for the word, quote it",
        ),
        (
            "@a",
            "at 1: the saved search @a uses itself: @a uses @b uses @a; to define it anew: larder searches add NAME QUERY",
        ),
        (
            "y @outer",
            "at 3: in the saved search @outer: in the saved search @wrong: unknown date \"nonsense\"; dates are 2016, 2016-03-01, today, 2w or @1456790400; ranges 2015..2016",
        ),
    ] {
        assert_eq!(mail(&context, line), expect, "{line}");
    }
    assert!(mail(&context, "@nope2 y").contains("did you mean @nope?"));
    // The search that is being defined is not proposed in its own line.
    assert!(!mail(&context, "@nope2 x").contains("did you mean"));
    assert!(items(&context, "@peopel").contains("did you mean @people?"));
    assert!(items(&context, "@self").contains("@self uses itself: @self uses @self"));
}

/// Searches that double at each level end with an error before they fill the memory.
#[test]
fn the_size_of_an_expansion_is_bounded() {
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let double: Vec<String> =
        names.iter().skip(1).map(|next| format!("@{next} @{next} x")).collect();
    for kind in [Kind::Message, Kind::Contact] {
        let pairs = names.iter().zip(&double).map(|(name, line)| (name.as_str(), line.as_str()));
        let mut searches: Vec<_> = pairs.map(|(name, line)| (name, line, kind)).collect();
        searches.push(("s39", "x", kind));
        let context = context(&searches);
        let parse = |line: &str| match kind {
            Kind::Message => mail(&context, line),
            _ => items(&context, line),
        };
        assert!(parse("@s0").contains("more than 16 saved searches use one another"), "{kind:?}");
        assert!(parse("@s25").contains("has more than 16384 words"), "{kind:?}");
        assert!(parse("@s36").starts_with("(and"), "{kind:?}");
    }
}
