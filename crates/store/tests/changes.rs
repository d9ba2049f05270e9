//! Tests of the change feed: the net effect after a cursor, each item once, in order, or an expired
//! cursor.

use crate::book::{Book, DAY_MS, NOW_MS, card, outcome_handle, put};
use larder_store::{
    BatchChange, ChangeCursor, CollectionRow, CollectionType, Error, Kind, NetEffect, Operation,
    Precondition,
};

/// Returns the changes after a cursor as text: sequence number, effect and UID.
fn read_changes(book: &Book, since: &ChangeCursor) -> Vec<String> {
    let reader = book.reader();
    let (news, _) = reader.changes().list_after(since, 100).unwrap();
    let text = |news: &larder_store::ChangeRecord| match news.effect {
        NetEffect::Put(row) => {
            format!("{} put {}", news.seq, reader.items().find_by_row(row).unwrap().unwrap().uid)
        }
        NetEffect::Removed => format!("{} removed", news.seq),
    };
    news.iter().map(text).collect()
}

#[test]
fn each_item_once_with_its_last_change() {
    let mut book = Book::new();
    let beginning = book.reader().changes().start_cursor().unwrap();
    let a = outcome_handle(&book.put(&card("a", "Anna", "")).1);
    book.put(&card("b", "Berta", ""));
    let middle = book.reader().changes().current_cursor().unwrap();
    assert_eq!(read_changes(&book, &middle), [""; 0]);
    book.put(&card("a", "Anna II", ""));
    book.put(&card("c", "Clara", ""));
    assert_eq!(read_changes(&book, &middle), ["3 put a", "4 put c"]);
    book.remove(a);
    assert_eq!(read_changes(&book, &middle), ["4 put c", "5 removed"]);
    book.put(&card("a", "Anna", ""));
    assert_eq!(read_changes(&book, &middle), ["4 put c", "6 put a"]);
    assert_eq!(read_changes(&book, &beginning), ["2 put b", "4 put c", "6 put a"]);
}

#[test]
fn changes_are_read_in_pages() {
    let mut book = Book::new();
    let beginning = book.reader().changes().start_cursor().unwrap();
    book.apply(vec![BatchChange::CreateCollection("contacts".into(), Kind::Contact)]);
    let changes = (0..10)
        .map(|n| put(&book.store, "contacts", &card(&format!("u{n}"), "A", ""), Precondition::Any))
        .collect();
    book.apply(changes);
    let reader = book.reader();
    let mut cursor = beginning;
    let mut seen = Vec::new();
    for pages in 0.. {
        let (news, next) = reader.changes().list_after(&cursor, 4).unwrap();
        seen.extend(news.iter().map(|news| (news.seq, news.ordinal)));
        cursor = next;
        if news.len() < 4 {
            assert_eq!(pages, 2);
            break;
        }
    }
    assert_eq!(seen, (1..=10).map(|n| (2, n)).collect::<Vec<_>>());
    assert_eq!(reader.changes().list_after(&cursor, 4).unwrap().0, []);
}

#[test]
fn cursors_have_a_text_form() {
    let book = Book::new();
    let now = book.reader().changes().current_cursor().unwrap();
    assert_eq!(ChangeCursor::parse(&now.to_string()), Some(now));
    for text in ["", "data", "data-", "data-x-1", "data-x-1-y", "data-x-1-2-3-4", "index-x-1-2"] {
        assert_eq!(ChangeCursor::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_cursor_of_another_store_has_expired() {
    let (book, other) = (Book::new(), Book::new());
    for cursor in [
        other.reader().changes().current_cursor().unwrap(),
        other.reader().changes().start_cursor().unwrap(),
    ] {
        assert!(matches!(
            book.reader().changes().list_after(&cursor, 9),
            Err(Error::CursorExpired)
        ));
    }
}

#[test]
fn a_purge_is_news_too() {
    let mut book = Book::new();
    let handle = outcome_handle(&book.put(&card("a", "Anna", "")).1);
    let cursor = book.reader().changes().current_cursor().unwrap();
    book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!(read_changes(&book, &cursor), ["2 removed"]);
}

/// A reading from the beginning ends, even if versions were pruned before it began.
#[test]
fn a_fresh_reading_in_pages_ends() {
    let mut book = Book::new();
    for n in 0..20 {
        book.put(&card(&format!("u{n}"), "Name", ""));
    }
    for (years, name) in [(1, "One"), (2, "Two")] {
        let changes = vec![put(&book.store, "contacts", &card("u3", name, ""), Precondition::Any)];
        book.age_by(365);
        book.apply_at(NOW_MS + years * 365 * DAY_MS, changes);
    }
    let reader = book.reader();
    let mut cursor =
        ChangeCursor::parse(&reader.changes().start_cursor().unwrap().to_string()).unwrap();
    let mut seen = 0;
    loop {
        let (news, next) = reader.changes().list_after(&cursor, 3).unwrap();
        seen += news.len();
        cursor = ChangeCursor::parse(&next.to_string()).unwrap();
        if news.len() < 3 {
            break;
        }
    }
    assert_eq!(seen, 20);
    assert_eq!(cursor, reader.changes().current_cursor().unwrap());
}

#[test]
fn a_cursor_ahead_of_the_store_has_expired() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let now = book.reader().changes().current_cursor().unwrap().to_string();
    let epoch = now.split('-').nth(1).unwrap();
    for place in ["999-1", &format!("{0}-{0}", i64::MAX), &format!("1-1-{}", i64::MAX)] {
        let cursor = ChangeCursor::parse(&format!("data-{epoch}-{place}")).unwrap();
        let read = book.reader().changes().list_after(&cursor, 0);
        let expired = matches!(read, Err(Error::CursorExpired));
        assert!(expired || place.starts_with("1-1"), "{place}: {read:?}");
    }
}

#[test]
fn a_read_transaction_sees_one_state() {
    let mut book = Book::new();
    let reader = book.reader();
    let cursor = reader.changes().current_cursor().unwrap();
    book.put(&card("a", "Anna", ""));
    let _transaction = reader.begin_read().unwrap();
    assert_eq!(reader.changes().list_after(&cursor, 10).unwrap().0.len(), 1);
}

#[test]
fn when_a_collection_was_changed() {
    let mut book = Book::new();
    let handle = outcome_handle(&book.put(&card("a", "Anna", "")).1);
    let row = |book: &Book, name: &str| {
        book.reader()
            .collections()
            .list_properties(CollectionType::AddressBook)
            .unwrap()
            .into_iter()
            .find(|it| it.name == name)
    };
    let contacts = row(&book, "contacts").unwrap().row;
    let check = |book: &Book, row: CollectionRow, expect: i64| {
        let reader = book.reader();
        assert_eq!(reader.changes().last_collection_change(row, 0).unwrap(), Some(expect));
        assert_eq!(reader.changes().last_collection_change(row, expect - 1).unwrap(), Some(expect));
        assert_eq!(reader.changes().last_collection_change(row, expect).unwrap(), None);
    };
    check(&book, contacts, 1);
    // Another collection, and its own properties.
    let head =
        BatchChange::SetCollectionProperties("other".into(), Some(b"[Data Source]\n".to_vec()));
    book.apply(vec![BatchChange::CreateCollection("other".into(), Kind::Contact), head]);
    let other = row(&book, "other").unwrap();
    assert_eq!(other.properties.as_deref(), Some(&b"[Data Source]\n"[..]));
    check(&book, contacts, 1);
    check(&book, other.row, 2);
    // A removal counts as a change, even after it was pruned.
    book.apply(vec![BatchChange::Remove(handle, Precondition::Any)]);
    check(&book, contacts, 3);
    let changes = vec![put(&book.store, "other", &card("b", "Berta", ""), Precondition::Any)];
    book.age_by(365);
    book.apply_at(NOW_MS + 365 * DAY_MS, changes);
    assert!(book.reader().changes().last_collection_change(contacts, 0).unwrap() >= Some(3));
    check(&book, other.row, 4);
    assert_eq!(book.reader().changes().batch_time(4).unwrap(), Some(NOW_MS + 365 * DAY_MS));
    assert_eq!(book.reader().changes().batch_time(5).unwrap(), None);
}

/// A subscriber has to distinguish a damaged item from a store that cannot be read.
#[test]
fn an_item_without_its_bytes_is_damage() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let reader = book.reader();
    let row = reader.items().find_by_uid(None, "a").unwrap()[0].row;
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute("DELETE FROM source_bytes WHERE item = ?1", [row]).unwrap();
    let names = reader.collections().list_names().unwrap();
    let told = reader.changes().for_each(0, 10, &names, &mut |_| {});
    assert!(matches!(told, Err(Error::Damaged { .. })), "{told:?}");
}
