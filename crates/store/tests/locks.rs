//! Tests of the write lock: writers in turn, readers that block nothing, and the state that a
//! killed writer leaves.

use crate::book::{Book, card, large_card, put};
use larder_store::{BatchChange, Error, Operation, Precondition, Reader, Store, StoreOptions};
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

fn open(dir: &Path) -> Store {
    Store::open(dir, &StoreOptions::default()).unwrap()
}

fn put_one(store: &Store, uid: &str) -> Vec<BatchChange> {
    vec![put(store, "contacts", &card(uid, "Name", ""), Precondition::Any)]
}

/// A lock that is kept is that of the first change; without a change, closing releases it.
#[test]
fn the_lock_of_opening_is_kept_for_one_change() {
    let book = Book::new();
    let dir = book.dir();
    let lock = fs::File::options().read(true).write(true).open(dir.join("data.lock")).unwrap();
    let is_free = || {
        let is_free = lock.try_lock().is_ok();
        if is_free {
            lock.unlock().unwrap();
        }
        is_free
    };
    let open_for_change = || Store::open_for_change(&dir, &StoreOptions::default()).unwrap();
    assert!(is_free());
    let mut store = open_for_change();
    assert!(!is_free());
    let changes = put_one(&store, "one");
    store.apply(&mut Operation::new("add", "", 0), changes).unwrap();
    assert!(is_free());
    let changes = put_one(&store, "two");
    store.apply(&mut Operation::new("add", "", 0), changes).unwrap();
    drop(store);
    let store = open_for_change();
    assert!(!is_free());
    drop(store);
    assert!(is_free());
    book.assert_sound();
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
        let state = format!("{n} {} ", book.reader().epoch().unwrap());
        let checksum = bell.strip_prefix(&state).and_then(|end| end.strip_suffix('\n'));
        assert!(checksum.is_some_and(|checksum| checksum.len() == 16), "{bell:?}, {state:?}");
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
    let idle = fs::read(&lock).unwrap();
    assert!(idle.starts_with(b"idle   \n"), "{idle:?}");
    for mark in [&b"writing\n"[..], b"\xff\xfe", b"idle   \n", &[&idle[..], b"and more"].concat()] {
        fs::write(&lock, mark).unwrap();
        // The open store continues...
        book.put(&card("b", &format!("Berta {}", mark.len()), ""));
        assert_eq!(fs::read(&lock).unwrap(), idle);
        // ... and so does one that is opened again.
        fs::write(&lock, mark).unwrap();
        assert_eq!(open(&book.dir()).last_seq().unwrap(), book.store.last_seq().unwrap());
        assert_eq!(fs::read(&lock).unwrap(), idle);
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
    match Store::open(&dir, &StoreOptions::default()).and_then(|store| store.check()) {
        Err(Error::Damaged { path, .. }) => assert_eq!(path, dir.join("data.db")),
        Ok(report) => assert!(!report.faults.is_empty()),
        Err(other) => panic!("{other}"),
    }
    let read_all = |reader: Reader| {
        let mut rows = (1..=300).map(larder_store::ItemRow::from_number);
        rows.try_for_each(|row| reader.items().source_bytes(row).map(drop))
    };
    let error = Reader::open(&dir).and_then(read_all).unwrap_err();
    assert_eq!(error.damaged_file(), Some(&*dir.join("data.db")), "{error}");
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

/// The one who waits is told once who holds the lock, and gets it afterwards.
#[test]
fn a_writer_that_waits_is_told_who_holds_the_lock() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let dir = book.dir();
    let lock = fs::File::options().write(true).open(dir.join("data.lock")).unwrap();
    lock.lock().unwrap();
    for (record, expect) in [
        (format!("writing\n{:<55}\n", "4711 larder import"), Some("larder import (process 4711)")),
        (format!("idle   \n{:<55}\n", "4711 larder import"), None),
    ] {
        (&lock).seek(SeekFrom::Start(0)).unwrap();
        (&lock).write_all(record.as_bytes()).unwrap();
        let (told, notices) = std::sync::mpsc::channel();
        let on_wait = move |holder: Option<&larder_store::LockHolder>| {
            told.send(holder.map(ToString::to_string)).unwrap();
        };
        let requester = larder_store::LockRequester {
            command: "larder add".into(),
            on_wait: Some(std::sync::Arc::new(on_wait)),
        };
        let options = StoreOptions { requester, ..StoreOptions::default() };
        thread::scope(|scope| {
            let opened = scope.spawn(|| Store::open(&dir, &options).map(drop));
            let holder = notices.recv().unwrap();
            assert_eq!(holder.as_deref(), expect);
            lock.unlock().unwrap();
            opened.join().unwrap().unwrap();
        });
        assert!(notices.try_recv().is_err(), "told once");
        lock.lock().unwrap();
    }
}

/// The notice of a wait may block, as when nobody reads standard error. The lock is released all
/// the same after the change.
#[test]
fn a_writer_whose_notice_blocks_releases_the_lock() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (told, notices) = std::sync::mpsc::channel();
    let (reader, unread) = std::sync::mpsc::channel::<()>();
    let unread = std::sync::Mutex::new(unread);
    let on_wait = move |_: Option<&larder_store::LockHolder>| {
        told.send(()).unwrap();
        let _disconnected = unread.lock().unwrap().recv();
    };
    let requester = larder_store::LockRequester {
        command: "larder add".into(),
        on_wait: Some(std::sync::Arc::new(on_wait)),
    };
    let options = StoreOptions { requester, ..StoreOptions::default() };
    let lock = fs::File::options().write(true).open(book.dir().join("data.lock")).unwrap();
    lock.lock().unwrap();
    let (done_sender, done) = std::sync::mpsc::channel();
    let dir = book.dir();
    let opener = thread::spawn(move || {
        done_sender.send(Store::open(&dir, &options).map(drop)).unwrap();
    });
    notices.recv().unwrap();
    lock.unlock().unwrap();
    done.recv_timeout(std::time::Duration::from_secs(30))
        .expect("the notice is waited for")
        .unwrap();
    book.put(&card("b", "Bob", ""));
    drop(reader);
    opener.join().unwrap();
}

/// While another process is at long work, the indexes are left to it and its record is no
/// interruption.
#[test]
fn work_that_runs_is_not_pending() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let conn = rusqlite::Connection::open(book.data()).unwrap();
    let key = "fingerprint:text";
    let whole: String =
        conn.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).unwrap();
    crate::book::write_meta(&conn, key, format!("rebuilding 0 {whole}"));
    drop(conn);
    let work = fs::File::create(book.dir().join("data.lock-work")).unwrap();
    work.lock().unwrap();
    let opened = open(&book.dir());
    assert!(!opened.is_index_current(larder_store::DerivedIndex::Text).unwrap());
    assert_eq!(opened.pending_work().unwrap(), []);
    assert_eq!(book.reader().pending_work().unwrap(), []);
    work.unlock().unwrap();
    assert_eq!(opened.pending_work().unwrap(), [larder_store::PendingWork::Rebuild]);
    assert_eq!(book.reader().pending_work().unwrap(), [larder_store::PendingWork::Rebuild]);
    // Opening the store for writing completes a rebuild.
    assert_eq!(open(&book.dir()).pending_work().unwrap(), []);
    book.assert_sound();
}

/// Overlapping readers keep SQLite from beginning the log anew by itself.
#[test]
fn the_log_file_stays_small_beside_readers() {
    const READERS: usize = 16;
    let mut book = Book::new();
    let dir = book.dir();
    book.put(&card("first", "First", ""));
    // The number of begun transactions, and whether the readers are to end.
    let (state, changed) = (Mutex::new((0_u64, false)), Condvar::new());
    let largest = thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let reader = Reader::open(&dir).unwrap();
                let rows = crate::book::item_rows(&reader);
                loop {
                    // A transaction lasts until another reader has begun one.
                    let tx = reader.begin_read().unwrap();
                    reader.items().source_bytes(rows[0]).unwrap().unwrap();
                    let mut state = state.lock().unwrap();
                    state.0 += 1;
                    changed.notify_all();
                    let begun = state.0;
                    let state = changed
                        .wait_while(state, |(turns, is_done)| *turns <= begun && !*is_done)
                        .unwrap();
                    drop(tx);
                    if state.1 {
                        break;
                    }
                }
            });
        }
        let mut largest = 0;
        for n in 0..60 {
            book.put(&large_card(&format!("u{n}"), 'A', 1 << 20));
            let size = fs::metadata(book.store.directory().wal_path()).unwrap().len();
            largest = largest.max(size);
        }
        state.lock().unwrap().1 = true;
        changed.notify_all();
        largest
    });
    assert!(largest <= 16 << 20, "{largest} bytes");
}

/// A reader closes last, and may not checkpoint.
#[test]
fn the_database_alone_has_every_batch_when_a_writer_has_ended() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let reader = book.reader();
    let (scratch, ()) = {
        for n in 0..20 {
            book.put(&card(&format!("u{n}"), "Name", ""));
        }
        book.with_store_closed(|_| ())
    };
    let copied = scratch.path().join("copied");
    fs::create_dir(&copied).unwrap();
    fs::copy(scratch.path().join("data/data.db"), copied.join("data.db")).unwrap();
    let copy = Reader::open(&copied).unwrap();
    assert_eq!(crate::book::item_rows(&copy).len(), 21);
    assert_eq!(copy.changes().last_seq().unwrap(), reader.changes().last_seq().unwrap());
    assert!(copy.lost_commits().is_none());
}

/// Creates a store whose last batches are only in the write-ahead log, as after a kill, and calls
/// `act` with its directory.
fn with_batches_in_log(act: impl FnOnce(&Path)) {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let mut book = book.reopen(&StoreOptions::default());
    for n in 0..3 {
        book.put(&card(&format!("u{n}"), "Name", ""));
    }
    let killed = book.sibling_path("killed");
    fs::create_dir(&killed).unwrap();
    for name in ["data.db", "data.db-wal", "data.notify"] {
        fs::copy(book.dir().join(name), killed.join(name)).unwrap();
    }
    act(&killed);
}

fn assert_named(dir: &Path, expect: &str) {
    for _ in 0..2 {
        let reader = Reader::open(dir).unwrap();
        assert_eq!(reader.lost_commits().map(ToString::to_string).as_deref(), Some(expect));
        drop(reader);
        let opened = Store::open(dir, &StoreOptions::default());
        assert_eq!(opened.map(drop).map_err(|error| error.to_string()), Err(expect.to_string()));
    }
}

#[test]
fn a_log_that_was_deleted_or_replaced_is_named() {
    let missing = |dir: &Path, batches: &str| {
        let data = dir.join("data.db");
        let data = data.display();
        format!("{batches} missing from {data}: its write-ahead log was deleted or replaced")
    };
    with_batches_in_log(|dir| {
        let store = open(dir);
        assert_eq!(store.last_seq().unwrap(), 4, "nothing is missing after a kill");
    });
    with_batches_in_log(|dir| {
        fs::remove_file(dir.join("data.db-wal")).unwrap();
        assert_named(dir, &missing(dir, "3 committed batches are"));
        // Without the record, the store is used as it is.
        fs::remove_file(dir.join("data.notify")).unwrap();
        assert_eq!(open(dir).last_seq().unwrap(), 1);
    });
    with_batches_in_log(|dir| {
        with_batches_in_log(|other| {
            let log = "data.db-wal";
            fs::copy(other.join(log), dir.join(log)).unwrap();
            let data = dir.join("data.db");
            let data = data.display();
            let replaced = format!("{data} or its write-ahead log was replaced by another program");
            assert_named(dir, &replaced);
        });
    });
    with_batches_in_log(|dir| {
        // An older state of the log.
        let log = dir.join("data.db-wal");
        let length = fs::metadata(&log).unwrap().len();
        fs::File::options().write(true).open(&log).unwrap().set_len(length - 4096).unwrap();
        assert_named(dir, &missing(dir, "1 committed batch is"));
        let backup = {
            let mut book = Book::new();
            book.put(&card("kept", "Kept", ""));
            let to = dir.join("backup.db");
            book.store.backup(&to).unwrap();
            to
        };
        let directory = larder_store::DataDirectory::new(dir);
        directory.restore(&StoreOptions::default(), &backup).unwrap();
        assert!(Reader::open(dir).unwrap().lost_commits().is_none());
        assert_eq!(open(dir).check().unwrap().faults, []);
    });
}
