//! The explanation of a search, as `--explain` prints it.

use crate::book::{Book, Stale, card, search_request, small};
use larder_query::{Explanation, Query, SearchRequest, SortSpec, find};
use larder_store::Reader;

fn explain(reader: &Reader, line: &str, sort: Option<&str>) -> Explanation {
    let sort = sort.map(|sort| SortSpec::parse(sort).unwrap());
    let request = SearchRequest { sort, ..search_request(Query::parse(line).unwrap()) };
    find(reader, &request).unwrap().explain
}

#[test]
fn plans_are_explained_with_their_cost() {
    let book = small();
    let reader = book.reader();
    // The numbers: rows visited by the index or the scan, items tested, items matched.
    let check = |line: &str, plan: &str, numbers: [u64; 3]| {
        let explanation = explain(&reader, line, None);
        assert_eq!(explanation.plan.join("; "), plan, "{line:?}");
        assert_eq!(
            [explanation.rows_read, explanation.verified, explanation.matched],
            numbers,
            "{line:?}"
        );
        assert_eq!(explanation.order, "insertion order");
        assert_eq!(explanation.query, Query::parse(line).unwrap().to_string());
    };
    check("", "index: all items", [8, 0, 8]);
    check("anna", "index: trigrams \"ann\", \"nna\"", [1, 1, 1]);
    check("b", "index: a word begins with \"b\"", [3, 0, 2]);
    check("小", "index: the characters of \"小\"", [1, 0, 1]);
    check("小明", "index: the characters of \"小明\"", [1, 1, 1]);
    // Values, their presence and their prefixes are in the index, and suffixes of some fields.
    check("email:=bob@example.com", "index: email is \"bob@example.com\"", [1, 0, 1]);
    check("email:bob*", "index: email begins with \"bob\"", [1, 0, 1]);
    check("email:*example.com", "index: email ends with \"example.com\"", [1, 0, 1]);
    check("email:b", "index: scan of the values of email for \"b\"", [5, 0, 3]);
    check("has:birthday", "index: has birth_date", [1, 0, 1]);
    // Fields indexed by presence and trigrams only, and parts of other fields.
    check("has:title", "index: has title", [1, 0, 1]);
    check("title:join*", "index: trigrams \"joi\", \"oin\"", [1, 1, 1]);
    check("mobile:=664", "index: phone is \"664\"", [0, 0, 0]);
    check("email_1:=nobody@x", "index: email is \"nobody@x\"", [0, 0, 0]);
    check("has:email", "index: has email", [4, 0, 4]);
    check("anna or bob", "index: (trigrams \"ann\", \"nna\" or trigram \"bob\")", [2, 2, 2]);
    // The most selective part of a conjunction is first; parts that do not pay are left out.
    check(
        "anna email:=bob@example.com",
        "index: (email is \"bob@example.com\" and trigrams \"ann\", \"nna\")",
        [1, 1, 0],
    );
    check("anna -bob", "index: trigrams \"ann\", \"nna\"", [1, 1, 1]);
    check("a b", "index: (a word begins with \"a\" and a word begins with \"b\")", [5, 0, 1]);
    check("-anna", "scan: test every item", [8, 8, 7]);
    check("photo:x", "scan: test every item", [8, 8, 0]);
    check("anna or -bob", "scan: test every item", [8, 8, 7]);
    let nothing =
        find(&reader, &search_request(Query::parse_sexp("(exists \"no name\")").unwrap()))
            .unwrap()
            .explain;
    assert_eq!(
        (nothing.plan, nothing.rows_read, nothing.verified),
        (vec!["nothing can match".into()], 0, 0)
    );
}

#[test]
fn orders_are_explained() {
    let book = small();
    let reader = book.reader();
    let whole = explain(&reader, "", Some("full_name"));
    assert_eq!(
        (whole.plan.join("; ").as_str(), whole.order.as_str()),
        ("index: all by full_name", "order of the index")
    );
    assert_eq!([whole.rows_read, whole.verified, whole.matched, whole.returned], [8, 0, 8, 8]);
    let some = explain(&reader, "anna", Some("full_name"));
    assert_eq!(some.order, "sort keys of full_name, computed for each match");
    let other = explain(&reader, "", Some("email"));
    assert_eq!((other.plan.join("; ").as_str(), other.verified), ("scan: test every item", 8));
}

#[test]
fn a_full_scan_is_explained() {
    let (_scratch, reader) = small().with_stale(Stale::ALL);
    let explanation = explain(&reader, "anna", Some("full_name"));
    assert_eq!(
        (explanation.plan.join("; ").as_str(), explanation.verified),
        ("scan: test every item", 8)
    );
    assert_eq!(explain(&reader, "", Some("full_name")).plan.join("; "), "scan: test every item");
}

#[test]
fn a_large_item_is_always_a_candidate() {
    let long = card(&format!("UID:long\nFN:Long\nNOTE:{}", "word ".repeat(20_000)));
    let book = Book::with_contacts([card("UID:anna\nFN:Anna").as_str(), &long]);
    let reader = book.reader();
    let explanation = explain(&reader, "anna", None);
    assert_eq!([explanation.rows_read, explanation.verified, explanation.matched], [2, 2, 1]);
    assert_eq!(explain(&reader, "note:word", None).matched, 1);
}

/// Items of other kinds are visited but not tested.
#[test]
fn a_scan_for_one_kind_tests_no_other() {
    let mut book = small();
    let component =
        |kind: &str, uid: &str| format!("BEGIN:{kind}\r\nUID:{uid}\r\nSUMMARY:x\r\nEND:{kind}\r\n");
    let of = [component("VEVENT", "a"), component("VEVENT", "b"), component("VTODO", "c")];
    book.put_components("calendar", of.iter().map(String::as_str));
    let explanation = explain(&book.reader(), "is:task", None);
    assert_eq!(explanation.plan.last().unwrap(), "scan: test every task");
    assert_eq!([explanation.rows_read, explanation.verified, explanation.matched], [3, 1, 1]);
}
