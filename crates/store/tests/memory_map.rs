//! Tests of a reader that has mapped the file while others shrink, grow and replace it.

use crate::book::{Book, card, outcome_handle, put};
use larder_store::{Handle, Operation, Precondition, Reader};

fn text(n: usize) -> Vec<u8> {
    card(&format!("u{n}"), "Name", &format!("NOTE:{}\r\n", n.to_string().repeat(700)))
}

/// Puts items, and returns their handles.
fn fill(book: &mut Book, numbers: std::ops::Range<usize>) -> Vec<Handle> {
    let changes =
        numbers.map(|n| put(&book.store, "contacts", &text(n), Precondition::Any)).collect();
    book.apply(changes).1.outcomes.iter().map(outcome_handle).collect()
}

/// Reads the bytes of all items.
fn read(reader: &Reader) -> Vec<Vec<u8>> {
    let collection = reader.collections().list_rows(None).unwrap()[0];
    let rows = reader.items().list_rows(collection, None, usize::MAX >> 1).unwrap();
    let mut all = Vec::new();
    let mut visit = |_, bytes: &[u8]| {
        all.push(bytes.to_vec());
        true
    };
    reader.items().for_each_source_bytes(&rows, &mut visit).unwrap();
    all
}

#[test]
fn what_is_mapped_is_what_there_is() {
    let mut book = Book::new();
    let handles = fill(&mut book, 0..301);
    // The purge empties the write-ahead log.
    let mut purge = Operation::new("purge", "", 0);
    book.store.purge(&mut purge, &handles[300..]).unwrap();
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    let reader = book.reader();
    let expect = |numbers: &mut dyn Iterator<Item = usize>| numbers.map(text).collect::<Vec<_>>();
    assert_eq!(read(&reader), expect(&mut (0..300)));
    // A smaller store takes its place, and the file is truncated.
    let size = |book: &Book| book.data().metadata().unwrap().len();
    let before = size(&book);
    let mut small = Book::new();
    let handles = fill(&mut small, 0..11);
    let small_copy = book.sibling_path("small.db");
    small.store.backup(&small_copy).unwrap();
    book.store.restore(&small_copy).unwrap();
    let mut purge = Operation::new("purge", "", 0);
    book.store.purge(&mut purge, &handles[10..]).unwrap();
    assert!(size(&book) < before / 2, "{} of {before} bytes", size(&book));
    assert_eq!(read(&reader), expect(&mut (0..10)));
    // The file grows beyond its former size.
    fill(&mut book, 300..900);
    assert_eq!(read(&reader), expect(&mut (0..10).chain(300..900)));
    book.store.restore(&copy).unwrap();
    assert_eq!(read(&reader), expect(&mut (0..300)));
    // A write during a read transaction is visible after it.
    let snapshot = reader.begin_read().unwrap();
    assert_eq!(read(&reader).len(), 300);
    fill(&mut book, 900..1000);
    assert_eq!(read(&reader).len(), 300);
    drop(snapshot);
    assert_eq!(read(&reader).len(), 400);
    book.assert_sound();
}
