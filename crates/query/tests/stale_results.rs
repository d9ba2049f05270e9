//! Result sets that are read after the store has changed: by a writer, by a restore, or with
//! another reader.

use crate::book::{Book, card, search_request};
use larder_query::{Query, SearchRequest, SortSpec, find};
use larder_store::{
    BatchChange, ItemPut, Kind, Operation, Precondition, Reader, Store, StoreOptions,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

#[test]
fn a_prefetched_item_that_was_removed_is_not_returned() {
    let cards = ["UID:a\nFN:Anna", "UID:b\nFN:Bob"].map(card);
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let first = Reader::open(&book.dir()).unwrap();
    let request = search_request(Query::parse_sexp("(is \"id\" \"a\")").unwrap());
    let answer = find(&first, &request).unwrap();
    let (meta, _) = first.items().get("contacts", "a").unwrap().unwrap();
    book.apply(vec![BatchChange::Remove(meta.handle, Precondition::Any)]);
    let second = Reader::open(&book.dir()).unwrap();
    let mut given = Vec::new();
    answer
        .for_each(&second, &mut |meta, _| {
            given.push(meta.uid.clone());
            true
        })
        .unwrap();
    assert!(given.is_empty(), "returned by a new reader although it was removed: {given:?}");
}

fn other_store() -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let options = StoreOptions { create: true, ..StoreOptions::default() };
    let mut store = Store::open(&scratch.path().join("data"), &options).unwrap();
    // Another collection comes first, so that "contacts" is in row 2.
    store
        .apply(
            &mut Operation::new("t", "", 0),
            vec![BatchChange::CreateCollection("work".into(), Kind::Contact)],
        )
        .unwrap();
    let text = card("UID:a\nFN:Zoe");
    let parsed = store.extractor().parse_contact(text.into_bytes()).unwrap();
    store
        .apply(
            &mut Operation::new("t", "", 0),
            vec![BatchChange::Put(ItemPut {
                collection: "contacts".into(),
                uid: "a".into(),
                derived_uid: false,
                parsed,
                precondition: Precondition::Any,
            })],
        )
        .unwrap();
    let to = scratch.path().join("backup.db");
    store.backup(&to).unwrap();
    (scratch, to)
}

#[test]
fn a_lookup_after_a_restore_finds_the_new_collection() {
    let cards = ["UID:a\nFN:Anna"].map(card);
    let mut book = Book::with_contacts(cards.iter().map(String::as_str));
    let reader = book.reader();
    assert!(reader.items().get("contacts", "a").unwrap().is_some());
    let (_keep, from) = other_store();
    book.store.restore(&from).unwrap();
    let (meta, _) = reader.items().get("contacts", "a").unwrap().unwrap();
    assert_eq!(&*meta.collection, "contacts");
}

#[test]
fn a_result_set_of_a_replaced_store_returns_nothing() {
    // Batch 2, row 1 in both stores.
    let mut book = Book::new();
    book.apply(vec![BatchChange::CreateCollection("contacts".into(), Kind::Contact)]);
    let c = card("UID:x\nFN:Anna");
    book.put("contacts", [c.as_str()]);
    let reader = book.reader();
    let answer = find(
        &reader,
        &search_request(Query::parse_sexp("(contains \"full_name\" \"anna\")").unwrap()),
    )
    .unwrap();
    assert_eq!(answer.len(), 1);
    let (_keep, from) = other_store();
    book.store.restore(&from).unwrap();
    let mut given = Vec::new();
    answer
        .for_each(&reader, &mut |_, bytes| {
            given.push(String::from_utf8_lossy(bytes).into_owned());
            true
        })
        .unwrap();
    assert!(given.is_empty(), "{given:?}");
}

#[test]
fn a_sorted_scan_during_writes_lists_every_item_once() {
    let mut book = Book::new();
    let cards: Vec<String> = (0..9000).map(|n| card(&format!("UID:u{n}\nFN:M {n:05}"))).collect();
    for chunk in cards.chunks(3000) {
        book.put("contacts", chunk.iter().map(String::as_str));
    }
    let reader = book.reader();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let writer = std::thread::spawn(move || {
        let mut n = 0;
        while !flag.load(Ordering::Relaxed) {
            n += 1;
            let cards: Vec<String> = (0..20)
                .map(|i| card(&format!("UID:u{i}\nFN:{} {n}", if n % 2 == 0 { "A" } else { "Z" })))
                .collect();
            book.put("contacts", cards.iter().map(String::as_str));
        }
        n
    });
    let (mut twice, mut missing) = (0, 0);
    for _ in 0..20 {
        let rows = find(
            &reader,
            &SearchRequest {
                sort: Some(SortSpec::parse("full_name").unwrap()),
                ..SearchRequest::default()
            },
        )
        .unwrap()
        .rows();
        let mut once = rows.clone();
        once.sort_unstable();
        once.dedup();
        twice += rows.len() - once.len();
        missing += 9000 - once.len();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0);
    assert_eq!((twice, missing), (0, 0), "every item was there all the time");
}
