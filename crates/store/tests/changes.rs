//! News since a cursor: the net effect, each item once, in order; or the word that it has expired.

use crate::book::{Book, DAY, NOW, card, handle_of, put};
use larder_store::{Change, Cursor, Error, Expect, Family, Kind, NewsKind, Operation};

/// The news since a cursor, as text: seq, and what happened to which UID.
fn news(book: &Book, since: &Cursor) -> Vec<String> {
    let reader = book.reader();
    let (news, _) = reader.changes_since(since, 100).unwrap();
    let text = |news: &larder_store::News| match news.what {
        NewsKind::Put(row) => {
            format!("{} put {}", news.seq, reader.by_row(row).unwrap().unwrap().uid)
        }
        NewsKind::Removed => format!("{} removed", news.seq),
    };
    news.iter().map(text).collect()
}

#[test]
fn each_item_once_with_its_last_change() {
    let mut book = Book::new();
    let beginning = book.reader().beginning().unwrap();
    let a = handle_of(&book.put(&card("a", "Anna", "")).1);
    book.put(&card("b", "Berta", ""));
    let middle = book.reader().now().unwrap();
    assert_eq!(news(&book, &middle), [""; 0]);
    book.put(&card("a", "Anna II", ""));
    book.put(&card("c", "Clara", ""));
    assert_eq!(news(&book, &middle), ["3 put a", "4 put c"]);
    book.remove(a);
    assert_eq!(news(&book, &middle), ["4 put c", "5 removed"]);
    book.put(&card("a", "Anna", ""));
    assert_eq!(news(&book, &middle), ["4 put c", "6 put a"]);
    assert_eq!(news(&book, &beginning), ["2 put b", "4 put c", "6 put a"]);
}

#[test]
fn page_by_page() {
    let mut book = Book::new();
    let beginning = book.reader().beginning().unwrap();
    book.apply(vec![Change::CreateCollection("contacts".into(), Kind::Contact)]);
    let changes = (0..10)
        .map(|n| put(&book.store, "contacts", &card(&format!("u{n}"), "A", ""), Expect::Anything))
        .collect();
    book.apply(changes);
    let reader = book.reader();
    let mut cursor = beginning;
    let mut seen = Vec::new();
    for pages in 0.. {
        let (news, next) = reader.changes_since(&cursor, 4).unwrap();
        seen.extend(news.iter().map(|news| (news.seq, news.ordinal)));
        cursor = next;
        if news.len() < 4 {
            assert_eq!(pages, 2);
            break;
        }
    }
    assert_eq!(seen, (1..=10).map(|n| (2, n)).collect::<Vec<_>>());
    assert_eq!(reader.changes_since(&cursor, 4).unwrap().0, []);
}

#[test]
fn cursors_as_text() {
    let book = Book::new();
    let now = book.reader().now().unwrap();
    assert_eq!(Cursor::parse(&now.to_string()), Some(now));
    for text in ["", "data", "data-", "data-x-1", "data-x-1-y", "data-x-1-2-3-4", "index-x-1-2"] {
        assert_eq!(Cursor::parse(text), None, "{text:?}");
    }
}

#[test]
fn a_cursor_of_another_store_has_expired() {
    let (book, other) = (Book::new(), Book::new());
    for cursor in [other.reader().now().unwrap(), other.reader().beginning().unwrap()] {
        assert!(matches!(book.reader().changes_since(&cursor, 9), Err(Error::Expired)));
    }
}

#[test]
fn a_purge_is_news_too() {
    let mut book = Book::new();
    let handle = handle_of(&book.put(&card("a", "Anna", "")).1);
    let cursor = book.reader().now().unwrap();
    book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!(news(&book, &cursor), ["2 removed"]);
}

/// A reading from the beginning ends, whatever was forgotten before it began.
#[test]
fn a_fresh_reading_in_pages_ends() {
    let mut book = Book::new();
    for n in 0..20 {
        book.put(&card(&format!("u{n}"), "Name", ""));
    }
    for (years, name) in [(1, "One"), (2, "Two")] {
        let changes = vec![put(&book.store, "contacts", &card("u3", name, ""), Expect::Anything)];
        book.apply_at(NOW + years * 365 * DAY, changes);
    }
    let reader = book.reader();
    let mut cursor = Cursor::parse(&reader.beginning().unwrap().to_string()).unwrap();
    let mut seen = 0;
    loop {
        let (news, next) = reader.changes_since(&cursor, 3).unwrap();
        seen += news.len();
        cursor = Cursor::parse(&next.to_string()).unwrap();
        if news.len() < 3 {
            break;
        }
    }
    assert_eq!(seen, 20);
    assert_eq!(cursor, reader.now().unwrap());
}

#[test]
fn a_cursor_ahead_of_the_store_has_expired() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let now = book.reader().now().unwrap().to_string();
    let epoch = now.split('-').nth(1).unwrap();
    for place in ["999-1", &format!("{0}-{0}", i64::MAX), &format!("1-1-{}", i64::MAX)] {
        let cursor = Cursor::parse(&format!("data-{epoch}-{place}")).unwrap();
        let read = book.reader().changes_since(&cursor, 0);
        let expired = matches!(read, Err(Error::Expired));
        assert!(expired || place.starts_with("1-1"), "{place}: {read:?}");
    }
}

#[test]
fn within_a_snapshot() {
    let mut book = Book::new();
    let reader = book.reader();
    let cursor = reader.now().unwrap();
    book.put(&card("a", "Anna", ""));
    let _snapshot = reader.snapshot().unwrap();
    assert_eq!(reader.changes_since(&cursor, 10).unwrap().0.len(), 1);
}

#[test]
fn when_a_collection_was_changed() {
    let mut book = Book::new();
    let handle = handle_of(&book.put(&card("a", "Anna", "")).1);
    let row = |book: &Book, name: &str| {
        book.reader().said(Family::Contacts).unwrap().into_iter().find(|it| it.name == name)
    };
    let contacts = row(&book, "contacts").unwrap().row;
    let check = |book: &Book, row: i64, expect: i64| {
        let reader = book.reader();
        assert_eq!(reader.changed_in(row, 0).unwrap(), Some(expect));
        assert_eq!(reader.changed_in(row, expect - 1).unwrap(), Some(expect));
        assert_eq!(reader.changed_in(row, expect).unwrap(), None);
    };
    check(&book, contacts, 1);
    // Another collection, and what it says of itself.
    let head = Change::SetHead("other".into(), Some(b"[Data Source]\n".to_vec()));
    book.apply(vec![Change::CreateCollection("other".into(), Kind::Contact), head]);
    let other = row(&book, "other").unwrap();
    assert_eq!(other.head.as_deref(), Some(&b"[Data Source]\n"[..]));
    check(&book, contacts, 1);
    check(&book, other.row, 2);
    // What is removed leaves its mark, even when it is forgotten.
    book.apply(vec![Change::Remove(handle, Expect::Anything)]);
    check(&book, contacts, 3);
    let changes = vec![put(&book.store, "other", &card("b", "Berta", ""), Expect::Anything)];
    book.apply_at(NOW + 365 * DAY, changes);
    assert!(book.reader().changed_in(contacts, 0).unwrap() >= Some(3));
    check(&book, other.row, 4);
    assert_eq!(book.reader().written_at(4).unwrap(), Some(NOW + 365 * DAY));
    assert_eq!(book.reader().written_at(5).unwrap(), None);
}

/// Who follows has to be able to tell a damaged item from a store that cannot be read.
#[test]
fn an_item_without_its_bytes_is_damage() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let reader = book.reader();
    let row = reader.by_uid(None, "a").unwrap()[0].row;
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    conn.execute("DELETE FROM source WHERE item = ?1", [row]).unwrap();
    let names = reader.collection_names().unwrap();
    let told = reader.changed(0, 10, &names, &mut |_| {});
    assert!(matches!(told, Err(Error::Damaged { .. })), "{told:?}");
}
