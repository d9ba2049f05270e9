//! Result sets: order, limits, collections, and items that change while a result is read.

use crate::book::{Book, Stale, card, search_request, small, uids};
use larder_query::{
    Error, FieldSelector, FieldTest, MatchOp, Query, SearchRequest, SortSpec, find, full_scan,
};
use larder_store::{BatchChange, Precondition, Reader, Store, StoreOptions};
use std::fs;

fn request(line: &str, sort: Option<&str>) -> SearchRequest {
    let sort = sort.map(|sort| SortSpec::parse(sort).unwrap());
    SearchRequest { sort, ..search_request(Query::parse(line).unwrap()) }
}

fn names(names: &[&str]) -> Book {
    let cards: Vec<String> =
        names.iter().map(|name| card(&format!("UID:{name}\nFN:{name}"))).collect();
    Book::with_contacts(cards.iter().map(String::as_str))
}

#[test]
fn results_are_sorted_by_a_field() {
    let book = small();
    let check = |reader: &Reader| {
        let check = |line: &str, sort: &str, expect: &[&str]| {
            assert_eq!(uids(reader, &request(line, Some(sort))), expect, "{line:?} by {sort}");
        };
        let all = ["anna", "bob", "club", "istanbul", "Straße", "ivan", "ali", "wang"];
        check("", "full_name", &all);
        check("", "-full_name", &all.iter().rev().copied().collect::<Vec<_>>());
        check("has:email", "full_name", &["anna", "bob", "club", "ivan"]);
        check("has:email", "-full_name", &["ivan", "club", "bob", "anna"]);
        check("has:email", "email", &["club", "anna", "bob", "ivan"]);
        // Items without a value are first; items with equal values are in the order of their rows.
        check("", "title", &["anna", "wang", "ivan", "ali", "istanbul", "Straße", "club", "bob"]);
        check("", "-title", &["bob", "club", "Straße", "istanbul", "ali", "ivan", "wang", "anna"]);
    };
    check(&book.reader());
    for stale in [&Stale::ALL[..1], &Stale::ALL[1..], Stale::ALL] {
        let (_scratch, reader) = small().with_stale(stale);
        check(&reader);
    }
}

#[test]
fn results_are_sorted_by_the_rules_of_a_language() {
    let book = names(&["Zebra", "Ärger", "Otto", "Öl", "Anna"]);
    let check = |reader: &Reader, expect: &[&str]| {
        let request = request("", Some("full_name"));
        assert_eq!(uids(reader, &request), expect);
        assert_eq!(
            find(reader, &request).unwrap().rows(),
            full_scan(reader, &request).unwrap().rows()
        );
    };
    let before = book.reader();
    check(&before, &["Anna", "Ärger", "Öl", "Otto", "Zebra"]);
    let swedish = StoreOptions { locale: Some("sv".into()), ..StoreOptions::default() };
    let store = Store::open(&book.dir(), &swedish).unwrap();
    check(&store.open_reader().unwrap(), &["Anna", "Otto", "Zebra", "Ärger", "Öl"]);
    // A reader that was open before keeps the previous order.
    check(&before, &["Anna", "Ärger", "Öl", "Otto", "Zebra"]);
}

#[test]
fn sort_fields_are_parsed() {
    assert!(SortSpec::parse("-file_as").unwrap().descending);
    assert_eq!(SortSpec::parse("mail").unwrap().field.name, "email");
    let error = SortSpec::parse("-emial").unwrap_err();
    assert_eq!(error.to_string(), "unknown field \"emial\"");
    assert!(matches!(error, Error::NoField { nearest: Some("email"), .. }));
}

#[test]
fn results_are_limited_and_restricted_to_a_collection() {
    let mut book = small();
    book.put("work", [card("UID:anna\nFN:Anna at work").as_str(), &card("UID:zoe\nFN:Zoe")]);
    let reader = book.reader();
    let check = |line: &str, collection: Option<&str>, limit: Option<usize>, expect: &[&str]| {
        for sort in [None, Some("full_name"), Some("note")] {
            let collection = collection.map(str::to_string);
            let request = SearchRequest { collection, limit, ..request(line, sort) };
            let answer = find(&reader, &request).unwrap();
            assert_eq!(answer.rows(), full_scan(&reader, &request).unwrap().rows());
            if sort.is_none() {
                assert_eq!(uids(&reader, &request), expect, "{line:?}");
            }
        }
    };
    check("anna", None, None, &["anna", "anna"]);
    check("anna", Some("work"), None, &["anna"]);
    check("", Some("work"), None, &["anna", "zoe"]);
    check("", Some("work"), Some(1), &["anna"]);
    check("", None, Some(0), &[]);
    check("zoe", Some("contacts"), None, &[]);
    let nowhere = SearchRequest { collection: Some("nowhere".into()), ..request("", None) };
    for result in [find(&reader, &nowhere), full_scan(&reader, &nowhere)] {
        assert!(matches!(result, Err(Error::Store(larder_store::Error::NoCollection { .. }))));
    }
}

#[test]
fn items_that_changed_since_the_search_are_left_out() {
    let mut book = names(&["Anna 1", "Anna 2", "Anna 3", "Anna 4"]);
    let reader = book.reader();
    let answer = find(&reader, &request("anna", None)).unwrap();
    let everything = find(&reader, &request("", None)).unwrap();
    assert_eq!((answer.len(), answer.is_empty()), (4, false));
    let second = reader.items().find_by_uid(None, "Anna 2").unwrap()[0].handle;
    book.apply(vec![BatchChange::Remove(second, Precondition::Any)]);
    book.put("contacts", [card("UID:Anna 3\nFN:Berta").as_str()]);
    let given = |answer: &larder_query::ResultSet, most: usize| {
        let mut given = Vec::new();
        answer
            .for_each(&reader, &mut |meta, _| {
                given.push(meta.uid.clone());
                given.len() < most
            })
            .unwrap();
        given
    };
    assert_eq!(given(&answer, 9), ["Anna 1", "Anna 4"]);
    assert_eq!(given(&answer, 1), ["Anna 1"]);
    assert_eq!(given(&everything, 9), ["Anna 1", "Anna 3", "Anna 4"]);
    // The same holds for projections, whether the fields are stored or not.
    for name in ["uid", "full_name", "note"] {
        let field = larder_query::find_contact_field(name).unwrap();
        let given = |answer: &larder_query::ResultSet| {
            let mut given = Vec::new();
            let visit = &mut |meta: &larder_query::ItemMeta,
                              _: &larder_query::ProjectedItem<'_>| {
                given.push(meta.uid.clone());
                true
            };
            answer.for_each_projected(&reader, &[field], visit).unwrap();
            given
        };
        assert_eq!(given(&answer), ["Anna 1", "Anna 4"], "{name}");
        assert_eq!(given(&everything), ["Anna 1", "Anna 3", "Anna 4"], "{name}");
    }
    let mut cards = 0;
    let counted = &mut |_: &[u8]| {
        cards += 1;
        true
    };
    everything.for_each_source_bytes(&reader, counted).unwrap();
    answer.for_each_source_bytes(&reader, counted).unwrap();
    assert_eq!(cards, 3 + 2);
}

/// Cards may have pictures of several megabytes. A result set reads at most a megabyte ahead, so an
/// item that is removed during the reading is not returned.
#[test]
fn large_items_are_read_one_at_a_time() {
    let picture = "A".repeat(1 << 20);
    let cards = ["Anna 1", "Anna 2", "Anna 3"]
        .map(|name| card(&format!("UID:{name}\nFN:{name}\nPHOTO:{picture}")));
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    let answer = find(&reader, &request("anna", None)).unwrap();
    let second = reader.items().find_by_uid(None, "Anna 2").unwrap()[0].handle;
    let mut given = Vec::new();
    answer
        .for_each(&reader, &mut |meta, _| {
            if given.is_empty() {
                book.apply(vec![BatchChange::Remove(second, Precondition::Any)]);
            }
            given.push(meta.uid.clone());
            true
        })
        .unwrap();
    assert_eq!(given, ["Anna 1", "Anna 3"]);
}

#[test]
fn a_query_may_have_many_parts() {
    // More parts than SQLite allows in a compound SELECT or in a nested full-text expression.
    let book = names(&["Anna 7", "Berta 42", "Clara 999"]);
    let reader = book.reader();
    let list = |join: &str, part: &dyn Fn(usize) -> String| {
        (0..1500).map(part).collect::<Vec<_>>().join(join)
    };
    let check = |line: String, expect: &[&str]| {
        let request = request(&line, None);
        assert_eq!(uids(&reader, &request), expect, "{}", &line[..40]);
        assert_eq!(
            find(&reader, &request).unwrap().rows(),
            full_scan(&reader, &request).unwrap().rows()
        );
    };
    check(list(" or ", &|n| format!("full_name:=\"Berta {n}\"")), &["Berta 42"]);
    check(list(" or ", &|n| format!("\"Clara {n}\"")), &["Clara 999"]);
    check(list(" ", &|_| "anna".to_string()), &["Anna 7"]);
    check(list(" ", &|n| format!("ann{}", if n == 700 { "x" } else { "" })), &[]);
    check(list(" or ", &|n| format!("({n} full_name:{n})")), &["Anna 7", "Berta 42", "Clara 999"]);
    let deep = format!("{}anna{}", "(a or ".repeat(99), ")".repeat(99));
    check(deep, &["Anna 7"]);
}

#[test]
fn results_larger_than_a_page_are_complete() {
    let cards: Vec<String> =
        (0..600).map(|n| card(&format!("UID:u{n}\nFN:Name {:03}", n % 300))).collect();
    let book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    for line in ["", "name", "name -\"name 001\""] {
        for sort in [None, Some("full_name"), Some("-full_name"), Some("uid")] {
            let request = request(line, sort);
            let answer = find(&reader, &request).unwrap();
            assert_eq!(answer.rows(), full_scan(&reader, &request).unwrap().rows());
            assert_eq!(uids(&reader, &request).len(), answer.len());
        }
    }
}

#[test]
fn a_slow_reader_holds_no_transaction() {
    let mut book = names(&["Anna", "Berta", "Clara"]);
    let reader = book.reader();
    let answer = find(&reader, &request("", Some("full_name"))).unwrap();
    let wal = book.store.directory().wal_path();
    let mut given = 0;
    answer
        .for_each(&reader, &mut |_, _| {
            given += 1;
            for n in 0..20 {
                let photo = "A".repeat(1 << 20);
                let large = card(&format!("UID:{given} {n}\nPHOTO;ENCODING=b:{photo}"));
                book.put("contacts", [large.as_str()]);
            }
            given < 2
        })
        .unwrap();
    assert_eq!(given, 2);
    let size = fs::metadata(wal).unwrap().len();
    assert!(size <= 16 << 20, "the write-ahead log has {size} bytes");
}

/// Plans and full scans agree on queries for which they once differed.
#[test]
fn formerly_wrong_plans_agree_with_the_full_scan() {
    let check = |cards: &[String], field: &str, op: MatchOp, text: &str, region: Option<&str>| {
        let mut book = Book::with_contacts([]);
        for one in cards {
            book.put("contacts", [one.as_str()]);
        }
        let field = larder_format::field::find_contact_field(field).unwrap();
        let mut test = FieldTest::new(FieldSelector::Field(field), op, text);
        test.region = region.map(Into::into);
        let (reader, request) = (book.reader(), search_request(Query::Test(test)));
        let (found, walked) =
            (find(&reader, &request).unwrap(), full_scan(&reader, &request).unwrap());
        assert_eq!(
            found.rows(),
            walked.rows(),
            "{op:?} {text:?}: {}",
            found.explain.plan.join("; ")
        );
    };
    // The item is a candidate for its long text, and its former name must not count.
    let long = format!("UID:u1\nFN:Bert\nORG:{}", "x".repeat(300));
    check(&[card("UID:u1\nFN:Anna"), card(&long)], "full_name", MatchOp::Is, "anna", None);
    // A long value is cut between characters.
    let long = format!("UID:u1\nFN:a{}", "王".repeat(100));
    for letters in 75..=80 {
        let text = format!("a{}", "王".repeat(letters));
        check(&[card(&long)], "full_name", MatchOp::Is, &text, None);
    }
    // Folding composes letters.
    let uid = card("UID:ka\u{304b}\u{3099}\nFN:A");
    for op in [MatchOp::BeginsWith, MatchOp::ContainsWords, MatchOp::EndsWith, MatchOp::Is] {
        check(std::slice::from_ref(&uid), "uid", op, "ka\u{304b}", None);
    }
    // Numbers may have long dialling prefixes.
    let numbers = ["12345", "+358 0 12345", "+358 12345", "030 123 x 1234567890", "030 123 x 12"]
        .map(|number| card(&format!("FN:{number}\nTEL:{number}")));
    for text in ["0000000012345", "0011 358 0 12345", "00 358 0 12345", "1234567890", "030 123"] {
        for region in [None, Some("AU"), Some("DE"), Some("US")] {
            for op in [MatchOp::EqPhone, MatchOp::EqPhoneNational, MatchOp::EqPhoneShort] {
                check(&numbers, "phone", op, text, region);
            }
        }
    }
}

#[test]
fn sets_of_uids_are_united() {
    let cards = ["UID:a\nFN:A", "UID:b\nFN:B", "UID:c\nFN:C", "UID:d\nFN:D"].map(card);
    let book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    let query = Query::parse_sexp("(or (uids \"a\" \"b\") (uids \"c\" \"d\"))").unwrap();
    let request = search_request(query);
    assert_eq!(
        find(&reader, &request).unwrap().rows(),
        full_scan(&reader, &request).unwrap().rows()
    );
}

#[test]
fn nested_disjunctions_of_uids_are_united() {
    let cards: Vec<String> = (0..40).map(|n| card(&format!("UID:u{n}\nFN:A{n}"))).collect();
    let book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    let half = |from: usize| {
        (from..from + 20).map(|n| format!("(is \"id\" \"u{n}\")")).collect::<String>()
    };
    let query = Query::parse_sexp(&format!("(or (or {}) (or {}))", half(0), half(20))).unwrap();
    let request = search_request(query);
    assert_eq!(find(&reader, &request).unwrap().len(), full_scan(&reader, &request).unwrap().len());
}
