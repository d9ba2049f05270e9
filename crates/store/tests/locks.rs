//! Tests of the write lock: writers in turn, readers that block nothing, and the state that a
//! killed writer leaves.

use crate::book::{Book, card, large_card, put};
use larder_store::{BatchChange, Error, Operation, Precondition, Reader, Store, StoreOptions};
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

fn open(dir: &Path) -> Store {
    Store::open(dir, &StoreOptions::default()).unwrap()
}

fn put_one(store: &Store, uid: &str) -> Vec<BatchChange> {
    vec![put(store, "contacts", &card(uid, "Name", ""), Precondition::Any)]
}

/// Counts batches, not time: a fair lock admits a waiting writer after the batch that is being
/// written. The count also depends on when the system runs the threads, so the best of several
/// turns is tested.
#[test]
fn a_small_change_gets_in_while_a_big_import_runs() {
    let book = Book::new();
    let dir = book.dir();
    let (batches, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let waited = thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = open(&dir);
            let mut operation = Operation::new("import", "", 0);
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let changes = put_one(&store, &format!("import {n}"));
                store.apply(&mut operation, changes).unwrap();
                batches.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut store = open(&dir);
        while batches.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let waits = (0..9).map(|n| {
            let changes = put_one(&store, &format!("small {n}"));
            let before = batches.load(Ordering::Relaxed);
            store.apply(&mut Operation::new("add", "", 0), changes).unwrap();
            batches.load(Ordering::Relaxed) - before
        });
        let waits = waits.collect::<Vec<u64>>();
        done.store(true, Ordering::Relaxed);
        waits
    });
    assert!(waited.iter().min() <= Some(&3), "batches that came before: {waited:?}");
    book.assert_sound();
}

#[test]
fn two_stores_write_at_once() {
    let book = Book::new();
    let dir = book.dir();
    thread::scope(|scope| {
        for name in ["a", "b"] {
            let dir = &dir;
            scope.spawn(move || {
                let mut store = open(dir);
                for n in 0..20 {
                    let changes =
                        (0..5)
                            // Both writers write every fifth item.
                            .map(|m| {
                                if m == 0 { format!("both {n}") } else { format!("{name} {n} {m}") }
                            })
                            .map(|uid| {
                                let bytes = card(&uid, &format!("{name} {n}"), "");
                                put(&store, "contacts", &bytes, Precondition::Any)
                            });
                    let changes = changes.collect();
                    store.apply(&mut Operation::new("import", name, 0), changes).unwrap();
                }
            });
        }
    });
    assert_eq!(book.contents().len(), 2 * 20 * 4 + 20);
    assert_eq!(book.store.last_seq().unwrap(), 40);
    book.assert_sound();
}

#[test]
fn the_bell_tells_the_last_batch() {
    let mut book = Book::new();
    for n in 1..=11 {
        book.put(&card(&format!("u{n}"), "A", ""));
        let bell = fs::read_to_string(book.store.directory().notify_path()).unwrap();
        assert_eq!(bell, format!("{n}\n"));
    }
    // A batch without changes sends no notification.
    fs::write(book.store.directory().notify_path(), "").unwrap();
    book.put(&card("u1", "A", ""));
    assert_eq!(fs::read_to_string(book.store.directory().notify_path()).unwrap(), "");
}

#[test]
fn after_an_unclean_stop() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let lock = book.dir().join("data.lock");
    for mark in [&b"writing\n"[..], b"\xff\xfe", b"idle   \nand more of it than that"] {
        fs::write(&lock, mark).unwrap();
        // The open store continues...
        book.put(&card("b", &format!("Berta {}", mark.len()), ""));
        assert_eq!(fs::read(&lock).unwrap(), b"idle   \n");
        // ... and so does one that is opened again.
        fs::write(&lock, mark).unwrap();
        assert_eq!(open(&book.dir()).last_seq().unwrap(), book.store.last_seq().unwrap());
        assert_eq!(fs::read(&lock).unwrap(), b"idle   \n");
    }
    book.assert_sound();
}

/// Overwrites everything after the first pages.
fn damage(data: &Path) {
    let length = fs::metadata(data).unwrap().len();
    let mut file = fs::OpenOptions::new().write(true).open(data).unwrap();
    file.seek(SeekFrom::Start(5 * 4096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(length).unwrap() - 5 * 4096]).unwrap();
}

#[test]
fn damaged_pages_are_found_after_an_unclean_stop() {
    let mut book = Book::new();
    let changes = (0..300)
        .map(|n| {
            put(&book.store, "contacts", &card(&format!("u{n}"), "Name", ""), Precondition::Any)
        })
        .collect();
    book.apply(changes);
    let (scratch, ()) = book.with_store_closed(|dir| {
        damage(&dir.join("data.db"));
        fs::write(dir.join("data.lock"), "writing\n").unwrap();
    });
    let dir = scratch.path().join("data");
    for attempt in 1..=2 {
        let opened = Store::open(&dir, &StoreOptions::default());
        assert!(matches!(opened, Err(Error::Damaged { .. })), "attempt {attempt}: {opened:?}");
    }
}

#[test]
fn damage_is_named_by_check_and_by_reading() {
    let mut book = Book::new();
    let changes = (0..300)
        .map(|n| {
            put(&book.store, "contacts", &card(&format!("u{n}"), "Name", ""), Precondition::Any)
        })
        .collect();
    book.apply(changes);
    let (scratch, ()) = book.with_store_closed(|dir| damage(&dir.join("data.db")));
    let dir = scratch.path().join("data");
    if let Ok(store) = Store::open(&dir, &StoreOptions::default()) {
        match store.check() {
            Err(Error::Damaged { path, .. }) => assert_eq!(path, dir.join("data.db")),
            Ok(report) => assert!(!report.faults.is_empty()),
            Err(other) => panic!("{other}"),
        }
    }
    let read = Reader::open(&dir).and_then(|reader| reader.items().find_by_uid(None, "u7"));
    assert!(matches!(read, Err(Error::Damaged { .. }) | Ok(_)), "{read:?}");
}

#[test]
fn an_answer_in_progress_keeps_its_moment_and_stops_nobody() {
    let mut book = Book::new();
    for n in 0..5 {
        book.put(&card(&format!("u{n}"), "A", ""));
    }
    let reader = book.reader();
    let rows = crate::book::item_rows(&reader);
    let mut seen = Vec::new();
    reader
        .items()
        .for_each(&rows, &mut |item, _| {
            book.put(&card(&format!("during {}", seen.len()), "A", ""));
            seen.push(item.uid);
            seen.len() < 4
        })
        .unwrap();
    assert_eq!(seen, ["u0", "u1", "u2", "u3"]);
    assert_eq!(book.contents().len(), 9);
}

#[test]
fn the_log_file_stays_small() {
    let mut book = Book::new();
    for n in 0..40 {
        book.put(&large_card(&format!("u{n}"), 'A', 1 << 20));
    }
    let size = fs::metadata(book.store.directory().wal_path()).unwrap().len();
    assert!(size <= 16 << 20, "{size} bytes");
}

/// A restore reuses operation numbers: a writer that continues after it must not write into another
/// operation.
#[test]
fn an_operation_that_goes_on_after_a_restore_is_another() {
    let mut book = Book::new();
    book.put(&card("first", "First", ""));
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    let mut import = Operation::new("import", "", 0);
    let changes = put_one(&book.store, "import 1");
    book.store.apply(&mut import, changes).unwrap();
    let early = import.id();

    let mut other = open(&book.dir());
    other.restore(&copy).unwrap();
    let mut add = Operation::new("add", "", 0);
    let changes = put_one(&other, "other");
    other.apply(&mut add, changes).unwrap();
    assert_eq!(add.id(), early, "the number is given again");

    let changes = put_one(&book.store, "import 2");
    book.store.apply(&mut import, changes).unwrap();
    assert_ne!(import.id(), early);
    let log = book.reader().changes().list_operations(None, 9).unwrap();
    let seen: Vec<_> = log.iter().map(|row| (row.verb.as_str(), row.counts)).collect();
    let visit = [1, 0, 0];
    assert_eq!(seen, [("import", visit), ("add", visit), ("test", visit)]);
    book.assert_sound();
}
