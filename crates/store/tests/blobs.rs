//! Tests of large items: `blob` has their bytes once, however many items and versions share them.

use crate::book::{Book, card, large_card, outcome_handle};
use larder_store::{Operation, Precondition};

const LARGE: usize = 100 << 10;

#[track_caller]
fn check(book: &Book, expect: &[i64]) {
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    let mut select = conn.prepare("SELECT ref_count FROM blob ORDER BY ref_count").unwrap();
    let uses = select.query_map([], |row| row.get(0)).unwrap();
    assert_eq!(uses.collect::<Result<Vec<i64>, _>>().unwrap(), expect);
    book.assert_sound();
}

#[test]
fn shared_counted_and_released() {
    let mut book = Book::new();
    let large = large_card("a", 'A', LARGE);
    let (_, added) = book.put(&large);
    check(&book, &[1]);
    // The same bytes in another collection share the row.
    let (_, elsewhere) = book.put_into("elsewhere", &large);
    check(&book, &[2]);
    // The same bytes again add no reference.
    book.put(&large);
    check(&book, &[2]);
    // A replaced version keeps its reference; the new bytes are small.
    let (edit, _) = book.put(&card("a", "Small", ""));
    check(&book, &[2]);
    let undo = book.store.undo(edit, 0).unwrap();
    assert_eq!(undo.items, 1);
    check(&book, &[3]);
    assert_eq!(book.contents()[&("contacts".into(), "a".into())], large);
    // Other large bytes have a row of their own.
    book.put(&large_card("b", 'B', LARGE));
    check(&book, &[1, 3]);
    book.remove(outcome_handle(&elsewhere));
    check(&book, &[1, 3]);
    book.store.purge(&mut Operation::new("purge", "", 0), &[outcome_handle(&elsewhere)]).unwrap();
    check(&book, &[1, 2]);
    book.store.purge(&mut Operation::new("purge", "", 0), &[outcome_handle(&added)]).unwrap();
    check(&book, &[1]);
}

#[test]
fn the_last_user_takes_the_bytes_along() {
    let mut book = Book::new();
    let (_, outcome) = book.put(&large_card("a", 'A', LARGE));
    book.remove(outcome_handle(&outcome));
    check(&book, &[1]);
    // After 90 days no version needs them.
    let later = crate::book::NOW_MS + 91 * crate::book::DAY_MS;
    let change =
        crate::book::put(&book.store, "contacts", &card("n", "New", ""), Precondition::Any);
    book.age_by(91);
    book.apply_at(later, vec![change]);
    check(&book, &[]);
}

#[test]
fn just_below_and_above_the_limit() {
    for (size, rows) in [(65_000, 0), (66_000, 1)] {
        let mut book = Book::new();
        let bytes = large_card("a", 'A', size);
        book.put(&bytes);
        assert_eq!(book.count("SELECT count(*) FROM blob"), rows, "{size} bytes");
        assert_eq!(book.contents().into_values().next(), Some(bytes));
    }
}
