//! Tests of the sort index: batches that wait in level 0, and what a purge leaves of them.

use crate::book::{Book, card, outcome_handle, put};
use larder_store::{
    BatchChange, ChangeOutcome, CollectionRow, IndexedOrder, Operation, Precondition,
};
use std::ops::Range;

/// Puts numbered contacts in one batch, whose names come in no order.
fn put_batch(book: &mut Book, numbers: Range<u64>, collection_type: &str) -> Vec<ChangeOutcome> {
    let changes = numbers
        .map(|n| {
            let name = format!("{collection_type} {:05}", n * 7919 % 10_007);
            put(&book.store, "contacts", &card(&format!("u{n}"), &name, ""), Precondition::Any)
        })
        .collect();
    book.apply(changes).1.outcomes
}

fn waiting_runs(book: &Book) -> i64 {
    book.count("SELECT count(*) FROM idx_sort_run")
}

#[test]
fn orders_hold_while_batches_wait_in_level_zero() {
    let mut book = Book::new();
    put_batch(&mut book, 0..2000, "Berger");
    assert_eq!(waiting_runs(&book), 0, "a first batch is all of level 1");
    book.assert_sound();
    // One reader sees all states, beside those that a check opens.
    let reader = book.reader();
    let order = IndexedOrder {
        field: larder_format::field::find_contact_field("full_name").unwrap().id,
        collections: vec![CollectionRow::from_number(1)],
        backwards: false,
    };
    let assert_count = |count: usize| {
        let mut rows = Vec::new();
        assert!(
            reader
                .index()
                .for_each_position(&order, None, &mut |_, row| {
                    rows.push(row);
                    true
                })
                .unwrap()
        );
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), count);
    };
    assert_count(2000);
    let outcomes = put_batch(&mut book, 2000..2150, "Adler");
    assert_eq!(waiting_runs(&book), 1);
    book.assert_sound();
    assert_count(2150);
    // A small batch takes those that wait along: an edit of an item in level 0 and of one in level
    // 1, one back to where it was, and removals of both.
    book.put(&card("u2001", "Zander", ""));
    book.put(&card("u1", "Zander", ""));
    book.put(&card("u1", "Berger 07919", ""));
    book.remove(outcome_handle(&outcomes[2]));
    let first = book.reader().items().find_by_uid(None, "u5").unwrap()[0].handle;
    book.remove(first);
    assert_eq!(waiting_runs(&book), 0);
    book.assert_sound();
    assert_count(2148);
    put_batch(&mut book, 2200..2350, "Adler");
    assert_eq!(waiting_runs(&book), 1);
    book.store.merge_segments().unwrap();
    assert_eq!(waiting_runs(&book), 0);
    book.assert_sound();
    assert_count(2298);
    // Enough of them are moved without being asked.
    for start in [3000, 3150, 3300, 3450] {
        put_batch(&mut book, start..start + 150, "Adler");
        book.assert_sound();
    }
    assert!(waiting_runs(&book) < 3);
}

#[test]
fn a_purge_leaves_no_sort_key_in_level_zero() {
    let mut book = Book::new();
    put_batch(&mut book, 0..2000, "Berger");
    let victim = outcome_handle(&book.put(&card("victim", "Zanzibarius Quux", "")).1);
    let names: Vec<BatchChange> = (0..150)
        .map(|n| {
            let bytes = card(&format!("w{n}"), &format!("Xylander {n}"), "");
            put(&book.store, "contacts", &bytes, Precondition::Any)
        })
        .collect();
    book.apply(names);
    assert_eq!(waiting_runs(&book), 1);
    let waiting = book.reader().items().find_by_uid(None, "w7").unwrap()[0].handle;
    book.store.purge(&mut Operation::new("purge", "", 0), &[victim, waiting]).unwrap();
    assert_eq!(waiting_runs(&book), 0);
    book.assert_sound();
    let bytes = std::fs::read(book.data()).unwrap();
    let key = book.store.extractor().sort_key("Zanzibarius");
    assert!(!bytes.windows(7).any(|window| window == &key[1..8]));
}
