//! The property that all searches rest on: for any store and any query, the result of a plan equals
//! the result of a full scan, with any index configuration.

use crate::book::{Book, Stale, card, search_request};
use crate::random::{CALLS, WORDS, one_card, random_request, summary, type_line};
use larder_format::contact::Contact;
use larder_format::field::{CONTACT_FIELDS, FieldType, find_contact_field};
use larder_query::{
    FieldSelector, FieldTest, MatchOp, Query, ResultSet, SearchRequest, SortSpec, find, full_scan,
    visit_uids,
};
use larder_store::{BatchChange, ItemRow, Precondition, Reader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Checks that a plan finds the items of the full scan, in the same order.
fn check(reader: &Reader, request: &SearchRequest) {
    let found = find(reader, request).unwrap_or_else(|error| panic!("{error}: {request:?}"));
    let walked = full_scan(reader, request).unwrap();
    assert_eq!(found.rows(), walked.rows(), "{}: {request:?}", found.explain.plan.join("; "));
    assert_eq!(found.len(), walked.len());
    assert_eq!(found.explain.returned, found.len() as u64);
    // With a limit, both stop early.
    if request.limit.is_none() {
        assert_eq!(found.explain.matched, walked.explain.matched);
    }
    let parsed = Query::parse_sexp(&request.query.to_string());
    assert_eq!(parsed.as_ref(), Ok(&request.query));
    let mut given = Vec::new();
    found
        .for_each(reader, &mut |meta, bytes| {
            assert_eq!(reader.items().source_bytes(meta.row).unwrap().as_deref(), Some(bytes));
            given.push(meta.row);
            true
        })
        .unwrap();
    assert_eq!(given, found.rows());
    let mut uids = Vec::new();
    found
        .for_each_uid(reader, &mut |uid| {
            uids.push(uid.to_string());
            true
        })
        .unwrap();
    let expected = given.iter().map(|row| reader.items().find_by_row(*row).unwrap().unwrap().uid);
    assert_eq!(uids, expected.collect::<Vec<_>>());
    let mut visited = Vec::new();
    visit_uids(reader, request, &mut |uid| {
        visited.push(uid.to_string());
        true
    })
    .unwrap();
    assert_eq!(visited, uids);
    for names in [&[][..], &["uid", "rev", "full_name", "phone"], &["email", "note"]] {
        check_fields(reader, &found, names);
    }
}

/// Checks that the projected fields of each item equal the fields of its source bytes.
fn check_fields(reader: &Reader, found: &ResultSet, names: &[&str]) {
    let fields: Vec<_> = names.iter().map(|name| find_contact_field(name).unwrap()).collect();
    let mut given = Vec::new();
    found
        .for_each_projected(reader, &fields, &mut |meta, of| {
            let card = reader.items().source_bytes(meta.row).unwrap().unwrap();
            let card = Contact::parse(&card);
            for field in &fields {
                assert_eq!(of.values(field), card.values(field), "{}", field.name);
                assert_eq!(of.first(field).as_deref(), card.first_value(field).as_deref());
            }
            given.push(meta.row);
            true
        })
        .unwrap();
    assert_eq!(given, found.rows());
}

/// The first of many hits come from a scan of the order where that is worth it, whatever was
/// changed since, and wherever the result begins.
#[test]
fn the_first_of_many_hits() {
    let card_of = |n: usize, word: &str| card(&format!("UID:u{n}\nFN:{:03} {word}", n * 37 % 500));
    let word_of = |n: usize| if n % 5 < 2 { "Anna" } else { "Otto" };
    let cards: Vec<String> = (0..500).map(|n| card_of(n, word_of(n))).collect();
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let lines =
        ["anna", "full_name:=\"007 otto\"", "anna or otto", "full_name:0*", "has:full_name"];
    let mut scanned = 0;
    for _round in 0..2 {
        let reader = book.reader();
        for line in lines {
            for (sort, limit) in ["full_name", "-full_name", "email"]
                .into_iter()
                .flat_map(|sort| [1, 20, 400].map(|limit| (sort, limit)))
            {
                for start_text in [None, Some("25".to_string())] {
                    let request = SearchRequest {
                        sort: Some(SortSpec::parse(sort).unwrap()),
                        limit: Some(limit),
                        start_text,
                        ..search_request(Query::parse(line).unwrap())
                    };
                    check(&reader, &request);
                    let order = find(&reader, &request).unwrap().explain.order;
                    scanned += usize::from(order == "order of the index");
                }
            }
        }
        // Items that had the other word are found by it no longer, and those that moved are met at
        // their new position.
        let changed: Vec<String> =
            (0..500).step_by(3).map(|n| card_of(499 - n, word_of(n + 1))).collect();
        book.put("contacts", changed.iter().map(String::as_str));
    }
    assert!(scanned > 20, "{scanned} results from a scan of their order");
}

fn book(cards: &[String], more: &[String]) -> Book {
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    book.apply(vec![BatchChange::CreateCollection("work".into(), larder_store::Kind::Contact)]);
    book.put("work", more.iter().map(String::as_str));
    book
}

/// Returns queries for values of the cards, for every kind of index.
fn queries_for_values(cards: &[String]) -> Vec<Query> {
    let mut queries = vec![Query::from_uids(vec!["anna".into(), "bob".into()])];
    for card in cards {
        let card = Contact::parse(card.as_bytes());
        for field in CONTACT_FIELDS.iter().filter(|field| field.field_type != FieldType::Binary) {
            for value in card.values(field) {
                let chars: Vec<char> = value.chars().collect();
                let part = |from: usize, to: usize| {
                    chars.iter().skip(from).take(to.saturating_sub(from)).collect::<String>()
                };
                let last = chars.len().saturating_sub(4);
                let subject = FieldSelector::Field(field);
                let test = |op, text: &str| Query::Test(FieldTest::new(subject.clone(), op, text));
                queries.extend([
                    test(MatchOp::Is, &value),
                    test(MatchOp::BeginsWith, &part(0, 3)),
                    test(MatchOp::EndsWith, &part(last, chars.len())),
                    test(MatchOp::ContainsWords, &part(1, 5)),
                    test(MatchOp::Exists, ""),
                    test(MatchOp::EqPhoneShort, &value),
                    Query::Test(FieldTest::new(
                        FieldSelector::Any,
                        MatchOp::ContainsWords,
                        part(1, 5),
                    )),
                    Query::Test(FieldTest::new(FieldSelector::Any, MatchOp::Is, value.as_str())),
                    Query::Word(part(0, 2)),
                    Query::Word(part(1, 5)),
                ]);
            }
        }
    }
    queries.sort_unstable_by_key(ToString::to_string);
    queries.dedup();
    queries
}

/// The default configuration without one kind of index of one field, and that index alone.
#[test]
fn plans_equal_full_scans_without_any_one_index() {
    let cards = [
        "UID:anna\nFN:Änne Berg\nN:Bergström;Anna;;;\nNICKNAME:Nan\nEMAIL:post@example.org\nTEL:+43 664 1234567
         ORG:Müller & Söhne;Verkauf;Zimmer 7\nTITLE:Joiner\nROLE:Carpenter\nNOTE:likes blue\nCATEGORIES:Freunde
         BDAY:1970-02-28\nURL:https://web.example\nADR:;;Gasse 1;Wien;;1010;Austria\nIMPP:xmpp:max@jabber.example
         X-EVOLUTION-SPOUSE:Maxine\nX-EVOLUTION-MANAGER:Boss\nX-EVOLUTION-FILE-AS:Filed\nREV:20200102",
        "UID:bob\nFN:Bob",
    ]
    .map(card);
    let queries = queries_for_values(&cards);
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    let requests: Vec<(SearchRequest, Vec<ItemRow>)> = queries
        .into_iter()
        .map(|query| SearchRequest { query, ..SearchRequest::default() })
        .map(|request| (request.clone(), full_scan(&reader, &request).unwrap().rows()))
        .collect();
    let default = larder_store::IndexConfig::default().to_string();
    let words: Vec<(&str, Vec<&str>)> = default
        .split(' ')
        .filter_map(|word| word.split_once(':'))
        .map(|(field, kinds)| (field, kinds.split(',').collect()))
        .collect();
    for (field, kinds) in &words {
        for kind in kinds.iter().filter(|kind| **kind != "prefix") {
            let without = |(name, kinds): &(&str, Vec<&str>)| {
                let left = kinds.iter().filter(|one| {
                    name != field || (*one != kind && !(*kind == "exact" && **one == "prefix"))
                });
                let left: Vec<&str> = left.copied().collect();
                if left.is_empty() { String::new() } else { format!("{name}:{}", left.join(",")) }
            };
            let without = words.iter().map(without).collect::<Vec<_>>().join(" ");
            for text in [without, format!("{field}:{kind}")] {
                book.apply(vec![BatchChange::SetIndexConfig(
                    "contacts".into(),
                    text.parse().unwrap(),
                )]);
                book.store.refresh().unwrap();
                for (request, walked) in &requests {
                    let found = find(&reader, request).unwrap();
                    assert_eq!(found.rows(), *walked, "{} with {text}", request.query);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plans_equal_full_scans(
        cards in vec(one_card(), 1..10),
        more in vec(one_card(), 0..3),
        requests in vec(random_request(), 1..24),
    ) {
        let book = book(&cards, &more);
        let reader = book.reader();
        for request in &requests {
            check(&reader, request);
        }
    }

    #[test]
    fn plans_equal_full_scans_after_edits(
        cards in vec(one_card(), 2..8),
        edits in vec(one_card(), 1..8),
        removed in 0..8usize,
        requests in vec(random_request(), 1..12),
    ) {
        let mut book = book(&cards, &[]);
        book.put("contacts", edits.iter().map(String::as_str));
        let collection = book.reader().collections().list().unwrap().remove(0);
        let items = book.reader().items().list_after(&collection, None, 99).unwrap();
        let gone = items[removed % items.len()].handle;
        book.apply(vec![BatchChange::Remove(gone, Precondition::Any)]);
        prop_assert_eq!(book.store.check().unwrap().faults, []);
        let reader = book.reader();
        for request in &requests {
            check(&reader, request);
        }
    }

    #[test]
    fn plans_equal_full_scans_without_indexes(
        cards in vec(one_card(), 1..6),
        stale in select(vec![&Stale::ALL[..1], &Stale::ALL[1..], Stale::ALL]),
        requests in vec(random_request(), 1..8),
    ) {
        let (_scratch, reader) = book(&cards, &[]).with_stale(stale);
        for request in &requests {
            check(&reader, request);
        }
    }

    /// With any index configuration, and while it changes.
    #[test]
    fn plans_equal_full_scans_with_any_index_configuration(
        cards in vec(one_card(), 1..8),
        more in vec(one_card(), 1..5),
        edits in vec(one_card(), 1..4),
        summaries in (summary(), summary(), summary()),
        step in 1..6usize,
        requests in vec(random_request(), 1..8),
    ) {
        let mut book = Book::new();
        let set = |name: &str, text: &str| BatchChange::SetIndexConfig(name.into(), text.parse().unwrap());
        for (name, text, cards) in [("contacts", &summaries.0, &cards), ("work", &summaries.1, &more)] {
            let create = BatchChange::CreateCollection(name.into(), larder_store::Kind::Contact);
            book.apply(vec![create, set(name, text)]);
            book.put(name, cards.iter().map(String::as_str));
        }
        prop_assert_eq!(book.store.check().unwrap().faults, []);
        let reader = book.reader();
        let all = || requests.iter().for_each(|request| check(&reader, request));
        all();
        book.apply(vec![set("contacts", &summaries.2)]);
        all();
        let mut edits = edits.chunks(1);
        while book.store.refresh_step(step).unwrap().is_some() {
            all();
            let name = if step % 2 == 0 { "work" } else { "contacts" };
            book.put(name, edits.next().unwrap_or_default().iter().map(String::as_str));
            all();
        }
        prop_assert_eq!(book.store.check().unwrap().faults, []);
    }

    #[test]
    fn plans_of_typed_lines_equal_full_scans(
        cards in vec(one_card(), 1..6),
        lines in vec(vec(type_line(), 0..5), 1..12),
        summary in prop_oneof![Just("default".to_string()), summary()],
    ) {
        let mut book = book(&cards, &cards);
        book.apply(vec![BatchChange::SetIndexConfig("contacts".into(), summary.parse().unwrap())]);
        book.store.refresh().unwrap();
        let reader = book.reader();
        for line in lines {
            if let Ok(query) = Query::parse(&line.join(" ")) {
                check(&reader, &search_request(query));
            }
        }
    }

    #[test]
    fn the_parsers_do_not_panic(
        text in "\\PC{0,40}",
        sexp in "[()a-z\"\\\\# -]{0,60}",
        calls in vec(select(CALLS), 0..12),
        words in vec(select(WORDS), 0..12),
    ) {
        for text in [text, sexp, calls.join(" "), words.concat()] {
            for parsed in [Query::parse(&text), Query::parse_sexp(&text)] {
                match parsed {
                    Ok(query) => prop_assert_eq!(Query::parse_sexp(&query.to_string()), Ok(query)),
                    Err(error) => prop_assert!(error.at <= text.chars().count() + 1, "{}", error),
                }
            }
        }
    }
}

#[test]
fn uids_of_small_and_large_collections() {
    let mut book = Book::new();
    let numbers: Vec<usize> = (0..1500).collect();
    for part in numbers.chunks(300) {
        let cards: Vec<String> = part.iter().map(|n| card(&format!("FN:name {n}\r\n"))).collect();
        book.put("large", cards.iter().map(String::as_str));
        book.put("small", cards.iter().take(2).map(String::as_str));
    }
    for (collection, count) in [(Some("large"), 1500), (Some("small"), 10), (None, 1510)] {
        let collection = collection.map(str::to_string);
        let request = SearchRequest { collection, ..SearchRequest::default() };
        let (reader, mut uids) = (book.reader(), Vec::new());
        visit_uids(&reader, &request, &mut |uid| {
            uids.push(uid.to_string());
            true
        })
        .unwrap();
        assert_eq!(uids.len(), count);
        let mut expected = Vec::new();
        let found = find(&reader, &request).unwrap();
        found
            .for_each(&reader, &mut |meta, _| {
                expected.push(meta.uid.clone());
                true
            })
            .unwrap();
        assert_eq!(uids, expected);
        let mut visit_count = 0;
        visit_uids(&reader, &request, &mut |_| {
            visit_count += 1;
            visit_count < 5
        })
        .unwrap();
        assert_eq!(visit_count, 5);
    }
}
