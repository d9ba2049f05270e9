//! Cursors: steps in both directions, moves, letters, and changes of the store.

use crate::book::{Book, Stale, card, search_request, small};
use larder_format::collate::primary_weights;
use larder_format::contact::Contact;
use larder_query::{Error, IndexLabel, Query, SearchRequest, SortSpec, SortedCursor, full_scan};
use larder_store::{BatchChange, ItemRow, Kind, Precondition, Reader, Store, StoreOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn open_cursor(sort: &str) -> SortedCursor {
    SortedCursor::new(Query::All, None, SortSpec::parse(sort).unwrap())
}

/// Steps a cursor and returns the names of the items.
fn names(cursor: &mut SortedCursor, reader: &Reader, count: isize) -> String {
    let mut names = Vec::new();
    let answer = cursor.step(reader, count).unwrap();
    answer
        .for_each(reader, &mut |_, bytes| {
            let name = larder_format::field::find_contact_field("full_name").unwrap();
            names.push(Contact::parse(bytes).first_value(name).unwrap_or_default());
            true
        })
        .unwrap();
    names.join(", ")
}

fn book(names: &[&str]) -> Book {
    let cards: Vec<String> =
        (0..).zip(names).map(|(number, name)| card(&format!("UID:u{number}\nFN:{name}"))).collect();
    Book::with_contacts(cards.iter().map(String::as_str))
}

#[test]
fn a_cursor_steps_in_both_directions() {
    let book = book(&["Otto", "Anna", "Ärger", "Berta", "berta", "Zoë", "Berta"]);
    let check = |reader: &Reader| {
        let mut cursor = open_cursor("full_name");
        let mut step = |count: isize, expect: &str, before: u64| {
            assert_eq!(names(&mut cursor, reader, count), expect);
            assert_eq!(cursor.position(reader).unwrap(), (before, 7));
        };
        step(-1, "", 0);
        step(3, "Anna, Ärger, berta", 3);
        step(-1, "berta", 2);
        step(0, "", 2);
        step(3, "berta, Berta, Berta", 5);
        step(9, "Otto, Zoë", 7);
        step(1, "", 7);
        step(-2, "Zoë, Otto", 5);
        step(isize::MIN, "Berta, Berta, berta, Ärger, Anna", 0);
        cursor.move_to_end();
        assert_eq!(names(&mut cursor, reader, -1), "Zoë");
        cursor.move_to_start();
        assert_eq!(names(&mut cursor, reader, 1), "Anna");

        let mut cursor = open_cursor("-full_name");
        assert_eq!(names(&mut cursor, reader, 3), "Zoë, Otto, Berta");
        assert_eq!(cursor.position(reader).unwrap(), (3, 7));
        assert_eq!(names(&mut cursor, reader, -2), "Berta, Otto");
        cursor.move_to_end();
        assert_eq!(names(&mut cursor, reader, -1), "Anna");
    };
    check(&book.reader());
    let (_scratch, reader) = book.with_stale(Stale::ALL);
    check(&reader);
}

#[test]
fn a_cursor_moves_to_texts() {
    let book = book(&["Anna", "Änne", "Berta", "Émile", "eva", "Otto", "王小明", ""]);
    let reader = book.reader();
    let check = |sort: &str, text: &str, next: &str, before: u64| {
        let mut cursor = open_cursor(sort);
        cursor.move_to_text(&reader, text);
        assert_eq!(cursor.position(&reader).unwrap(), (before, 8), "{text:?} by {sort}");
        // A request that starts at the text agrees.
        let sort = Some(SortSpec::parse(sort).unwrap());
        let request = SearchRequest {
            sort,
            start_text: Some(text.into()),
            limit: Some(1),
            ..search_request(Query::All)
        };
        let answer = larder_query::find(&reader, &request).unwrap();
        assert_eq!(answer.rows(), cursor.clone().step(&reader, 1).unwrap().rows());
        assert_eq!(answer.explain.matched, 8 - before);
        assert_eq!(names(&mut cursor, &reader, 1), next, "{text:?}");
    };
    check("full_name", "", "", 0);
    check("full_name", "a", "Anna", 1);
    check("full_name", "Á", "Anna", 1);
    check("full_name", "ANNE", "Änne", 2);
    check("full_name", "c", "Émile", 4);
    check("full_name", "E", "Émile", 4);
    check("full_name", "em", "Émile", 4);
    check("full_name", "z", "王小明", 7);
    check("full_name", "龜", "", 8);
    // In descending order the items that begin with the text are included.
    check("-full_name", "", "王小明", 0);
    check("-full_name", "E", "eva", 2);
    check("-full_name", "em", "Émile", 3);
    check("-full_name", "d", "Berta", 4);
    check("-full_name", "1", "", 7);
}

#[test]
fn letters_follow_the_language() {
    let check = |locale: &str, names: &[&str], expect: &[(&str, u64)]| {
        let book = book(names);
        let options = StoreOptions { locale: Some(locale.into()), ..StoreOptions::default() };
        let reader = Store::open(&book.dir(), &options).unwrap().open_reader().unwrap();
        let mut cursor = open_cursor("full_name");
        let letters: Vec<(String, u64)> =
            cursor.letters(&reader).unwrap().into_iter().map(|l| (l.text, l.before)).collect();
        let expect: Vec<(String, u64)> = expect.iter().map(|(l, n)| ((*l).into(), *n)).collect();
        assert_eq!(letters, expect, "{locale}");
        for (letter, before) in expect {
            if letter != "#" {
                cursor.move_to_text(&reader, &letter);
                assert_eq!(cursor.position(&reader).unwrap().0, before, "{letter} in {locale}");
            }
        }
        // In descending order.
        let backwards = open_cursor("-full_name").letters(&reader).unwrap();
        assert_eq!(backwards.len(), letters.len());
        let total = names.len() as u64;
        for (down, up) in backwards.iter().rev().zip(&letters) {
            assert_eq!(down.text, up.0, "{locale}");
        }
        let ends = letters.iter().map(|(_, before)| *before).chain([total]).skip(1);
        let ends: Vec<u64> = ends.collect();
        let found: Vec<u64> = backwards.iter().rev().map(|letter| total - letter.before).collect();
        assert_eq!(found, ends, "{locale}");
    };
    check("en", &[], &[]);
    check("en", &["", "", ""], &[("#", 0)]);
    check(
        "en",
        &["", "(x)", "12", "34", "émile", "Eva", "Anna", "Ärger", "ﬁnn", "ßen", "王", "Яна"],
        &[("#", 0), ("A", 4), ("E", 6), ("F", 8), ("S", 9), ("Я", 10), ("王", 11)],
    );
    let german = ["Ärger", "Öl", "Zoë", "Adam"];
    check("sv", &german, &[("A", 0), ("Z", 1), ("Ä", 2), ("Ö", 3)]);
    check("de", &german, &[("A", 0), ("O", 2), ("Z", 3)]);
    check(
        "da",
        &["Aagaard", "Åse", "Ærø", "Øl", "a", "z"],
        &[("A", 0), ("Z", 1), ("Æ", 2), ("Ø", 3), ("Å", 4)],
    );
    check(
        "cs",
        &["Chata", "Cyril", "Hora", "Číp", "Jan"],
        &[("C", 0), ("Č", 1), ("H", 2), ("CH", 3), ("J", 4)],
    );
    check(
        "tr",
        &["ıssız", "İzmir", "çelik", "Can", "Jale"],
        &[("C", 0), ("Ç", 1), ("I", 2), ("İ", 3), ("J", 4)],
    );
    check("ko", &["김철수", "강", "이영희", "Kim"], &[("ㄱ", 0), ("ㅇ", 2), ("K", 3)]);
    check("ja", &["かとう", "ガトウ", "がく", "サトウ"], &[("か", 0), ("さ", 3)]);
    check("el", &["Άννα", "Αλέξης", "ωμέγα"], &[("Α", 0), ("Ω", 2)]);
}

#[test]
fn a_cursor_has_a_query_and_a_collection() {
    let mut book = small();
    book.put("work", [card("UID:zoe\nFN:Zoe\nEMAIL:z@example.org").as_str()]);
    let reader = book.reader();
    let sort = SortSpec::parse("full_name").unwrap();
    let mut cursor = SortedCursor::new(Query::parse("has:email").unwrap(), None, sort);
    assert_eq!(
        names(&mut cursor, &reader, 9),
        "Anna Bergström, Bob O'Brien, Chess Club, Zoe, Иван Ёлкин"
    );
    cursor.move_to_text(&reader, "C");
    assert_eq!(cursor.position(&reader).unwrap(), (2, 5));
    let letters = cursor.letters(&reader).unwrap();
    assert_eq!(letters[2], IndexLabel { text: "C".into(), before: 2 });
    // Reading the letters does not move the cursor.
    assert_eq!(names(&mut cursor, &reader, 1), "Chess Club");
    let mut cursor = SortedCursor::new(Query::All, Some("work"), sort);
    assert_eq!(names(&mut cursor, &reader, 9), "Zoe");
    let mut cursor = SortedCursor::new(Query::All, Some("nowhere"), sort);
    assert!(matches!(cursor.step(&reader, 1), Err(Error::Store(_))));
    // Inside a read transaction of the program.
    let snapshot = reader.begin_read().unwrap();
    let mut cursor = open_cursor("email");
    assert_eq!(cursor.position(&reader).unwrap(), (0, 9));
    drop(snapshot);
}

/// An action on a cursor or on its store.
#[derive(Debug, Clone)]
enum CursorAction {
    Step(isize),
    First,
    Last,
    MoveTo(&'static str),
    Put(usize, &'static str, &'static str),
    Remove(usize),
}

const NAMES: &[&str] =
    &["", "Anna", "anna", "Änne", "B", "Berta", "Berta", "Ch", "ch", "M", "Max", "Zoë", "1", "王"];

fn action() -> impl Strategy<Value = CursorAction> {
    prop_oneof![
        6 => (-5..6isize).prop_map(CursorAction::Step),
        1 => Just(CursorAction::First),
        1 => Just(CursorAction::Last),
        3 => select(NAMES).prop_map(CursorAction::MoveTo),
        5 => (0..24usize, select(NAMES), select(&["contacts", "work"][..]))
            .prop_map(|(uid, name, collection)| CursorAction::Put(uid, name, collection)),
        2 => (0..24usize).prop_map(CursorAction::Remove),
    ]
}

/// The expected position of the cursor, independent of an index.
#[derive(Debug, Clone)]
enum ExpectedPosition {
    /// After all items (true) or before them.
    End(bool),
    /// After an item (true) or before it.
    Item(Vec<u8>, ItemRow, bool),
    /// At the first item that is not before a text.
    Text(Vec<u8>),
}

impl ExpectedPosition {
    /// Returns whether the item is before the position.
    fn has_passed(&self, key: &[u8], row: ItemRow, sort: SortSpec) -> bool {
        let less =
            |a: (&[u8], ItemRow), b: (&[u8], ItemRow)| if sort.descending { a > b } else { a < b };
        match self {
            ExpectedPosition::End(end) => *end,
            ExpectedPosition::Item(at, of, tail) => {
                less((key, row), (at, *of)) || (*tail && (key, row) == (at, *of))
            }
            ExpectedPosition::Text(text) => {
                let key = primary_weights(key);
                !key.starts_with(text)
                    && (if sort.descending { key > text.as_slice() } else { key < text.as_slice() })
            }
        }
    }
}

/// Sorts the items of a full scan by their sort keys.
fn sort_names(reader: &Reader, request: &SearchRequest) -> Vec<(Vec<u8>, ItemRow)> {
    let field = request.sort.unwrap().field;
    let key = |row: ItemRow| {
        let card = reader.items().source_bytes(row).unwrap().unwrap();
        reader.extractor().sort_key(&Contact::parse(&card).first_value(field).unwrap_or_default())
    };
    full_scan(reader, request).unwrap().rows().into_iter().map(|row| (key(row), row)).collect()
}

fn check(actions: &[CursorAction], request: &SearchRequest) {
    let mut book = Book::new();
    for name in ["contacts", "work"] {
        book.apply(vec![BatchChange::CreateCollection(name.into(), Kind::Contact)]);
    }
    let reader = book.reader();
    let sort = request.sort.unwrap();
    let mut cursor = SortedCursor::new(request.query.clone(), request.collection.as_deref(), sort);
    let mut expected = ExpectedPosition::End(false);
    for action in actions {
        match action {
            CursorAction::Put(uid, name, collection) => {
                let card = card(&format!("UID:u{uid}\nFN:{name}\nEMAIL:{name}"));
                book.put(collection, [card.as_str()]);
            }
            CursorAction::Remove(number) => {
                let rows = full_scan(&reader, &search_request(Query::All)).unwrap().rows();
                if let Some(row) = rows.get(*number) {
                    let handle = reader.items().find_by_row(*row).unwrap().unwrap().handle;
                    book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
                }
            }
            CursorAction::First => {
                cursor.move_to_start();
                expected = ExpectedPosition::End(false);
            }
            CursorAction::Last => {
                cursor.move_to_end();
                expected = ExpectedPosition::End(true);
            }
            CursorAction::MoveTo(text) => {
                cursor.move_to_text(&reader, text);
                expected = match primary_weights(&reader.extractor().sort_key(text)) {
                    [] => ExpectedPosition::End(false),
                    text => ExpectedPosition::Text(text.to_vec()),
                };
            }
            CursorAction::Step(count) => {
                let all = sort_names(&reader, request);
                let at = all.partition_point(|(key, row)| expected.has_passed(key, *row, sort));
                let (before, tail) = all.split_at(at);
                let met: Vec<&(Vec<u8>, ItemRow)> = match count {
                    0.. => tail.iter().take(count.unsigned_abs()).collect(),
                    _ => before.iter().rev().take(count.unsigned_abs()).collect(),
                };
                let rows: Vec<ItemRow> = met.iter().map(|(_, row)| *row).collect();
                assert_eq!(cursor.step(&reader, *count).unwrap().rows(), rows);
                if let Some((key, row)) = met.last() {
                    expected = ExpectedPosition::Item(key.clone(), *row, *count > 0);
                }
            }
        }
        let all = sort_names(&reader, request);
        let at = all.partition_point(|(key, row)| expected.has_passed(key, *row, sort));
        assert_eq!(
            cursor.position(&reader).unwrap(),
            (at as u64, all.len() as u64),
            "{expected:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cursor_equals_a_sorted_full_scan_after_any_actions(
        actions in vec(action(), 1..60),
        sort in select(&["full_name", "-full_name", "file_as", "-file_as", "email", "-email"][..]),
        query in select(&["", "", "has:full_name", "a"][..]),
        collection in select(&[None, Some("contacts")][..]),
    ) {
        let request = SearchRequest {
            sort: Some(SortSpec::parse(sort).unwrap()),
            collection: collection.map(str::to_string),
            ..search_request(Query::parse(query).unwrap())
        };
        check(&actions, &request);
    }
}
