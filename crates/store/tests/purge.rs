//! Tests of purge: no byte of the item remains in any file.

use crate::book::{Book, card, create_options, outcome_handle, put};
use crate::versions::set_version;
use larder_store::{
    DataDirectory, Error, Fault, Handle, HandlePrefix, Operation, PendingWork, Precondition,
    PurgeReport, Store,
};
use rusqlite::Connection;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const TOKEN: &str = "Zqxjplänted9931Straße";
const FOLDED_TOKEN: &str = "zqxjplanted9931strasse";

/// Returns the files of the data directory that have the token in any form.
fn files_with_token(book: &Book) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(book.dir()).unwrap() {
        let entry = entry.unwrap();
        let bytes = fs::read(entry.path()).unwrap();
        let holds =
            |token: &str| bytes.windows(token.len()).any(|window| window == token.as_bytes());
        if holds(TOKEN) || holds(FOLDED_TOKEN) {
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names.sort();
    names
}

/// Puts an item with the token in many places and edits it several times, among other items.
fn put_token_item(book: &mut Book) -> larder_store::Handle {
    for n in 0..50 {
        book.put(&card(&format!("u{n}"), "Innocent", "NOTE:nothing to see\r\n"));
    }
    let mut handle = None;
    for n in 0..5 {
        let lines = format!("EMAIL:{TOKEN}@example.org\r\nORG:{TOKEN} {n}\r\nNOTE:{TOKEN}\r\n");
        handle = Some(outcome_handle(&book.put(&card(TOKEN, &format!("{TOKEN} {n}"), &lines)).1));
    }
    // More bytes than a row holds, and more text than is indexed.
    let long = format!("NOTE:{}\r\n", format!("{TOKEN} ").repeat(6000));
    book.put(&card(TOKEN, TOKEN, &long));
    book.put(&card(TOKEN, TOKEN, ""));
    handle.unwrap()
}

fn purge(book: &mut Book, handle: larder_store::Handle) -> Result<u64, Error> {
    let purged = book.store.purge(&mut Operation::new("purge", "one item", 0), &[handle])?;
    assert_eq!(purged.deleted, [""; 0].map(std::path::PathBuf::from));
    Ok(purged.items)
}

#[test]
fn nothing_is_left_in_any_file() {
    for removed_before in [false, true] {
        let mut book = Book::new();
        let handle = put_token_item(&mut book);
        let copy = book.sibling_path("copy.db");
        book.store.backup(&copy).unwrap();
        book.store.restore(&copy).unwrap();
        if removed_before {
            book.remove(handle);
        }
        let before = files_with_token(&book);
        assert!(before.iter().any(|name| name.starts_with("data.db.before-")), "{before:?}");
        assert_eq!(purge(&mut book, handle).unwrap(), 1);
        assert_eq!(files_with_token(&book), [""; 0]);
        assert_eq!(book.contents().len(), 50);
        book.assert_sound();
        // A second purge changes nothing.
        let seq = book.store.last_seq().unwrap();
        assert_eq!(purge(&mut book, handle).unwrap(), 0);
        assert_eq!(book.store.last_seq().unwrap(), seq);
        // The copy was purged, too, and can still be restored.
        book.store.restore(&book.dir().join("data.db.before-restore")).unwrap();
        assert_eq!(book.contents().len(), 50);
        book.assert_sound();
        assert_eq!(files_with_token(&book), [""; 0]);
    }
}

#[test]
fn large_bytes_that_others_share_stay_for_them() {
    let mut book = Book::new();
    let large = crate::book::large_card("a", 'A', 100_000);
    let handle = outcome_handle(&book.put(&large).1);
    book.put_into("elsewhere", &large);
    assert_eq!(purge(&mut book, handle).unwrap(), 1);
    assert_eq!(book.contents().into_values().collect::<Vec<_>>(), [large]);
    book.assert_sound();
}

#[test]
fn a_reader_in_mid_answer_is_in_the_way_or_not_and_then_it_is_done() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let reader = book.reader();
    let mut first = None;
    let rows = crate::book::item_rows(&reader);
    reader
        .items()
        .for_each(&rows, &mut |_, _| {
            first.get_or_insert_with(|| purge(&mut book, handle));
            true
        })
        .unwrap();
    match first.unwrap() {
        Ok(1) => assert_eq!(files_with_token(&book), [""; 0]),
        Err(Error::ReaderBlocksPurge) => {}
        other => panic!("{other:?}"),
    }
    purge(&mut book, handle).unwrap();
    assert_eq!(files_with_token(&book), [""; 0]);
    book.assert_sound();
}

/// A reader kept the old pages in use, or the computer stopped before they were rewritten.
#[test]
fn a_purge_that_was_interrupted_is_completed_by_the_next() {
    for handles_again in [true, false] {
        let mut book = Book::new();
        let handle = put_token_item(&mut book);
        let reader = book.reader();
        let mut first = None;
        let began = std::time::Instant::now();
        let rows = crate::book::item_rows(&reader);
        reader
            .items()
            .for_each(&rows, &mut |_, _| {
                first.get_or_insert_with(|| purge(&mut book, handle));
                true
            })
            .unwrap();
        assert!(matches!(first, Some(Err(Error::ReaderBlocksPurge))), "{first:?}");
        assert!(began.elapsed().as_secs() < 8, "{:?}", began.elapsed());
        assert_ne!(files_with_token(&book), [""; 0]);
        assert_eq!(reader.pending_work().unwrap(), [PendingWork::Purge]);
        assert_eq!(book.store.check().unwrap().faults, [Fault::Pending(PendingWork::Purge)]);
        // A copy would have the bytes.
        let refused = book.store.backup(book.sibling_path("refused.db"));
        assert!(matches!(refused, Err(Error::PurgePending { .. })), "{refused:?}");
        let prefix = HandlePrefix::parse(&handle.to_string()).unwrap();
        assert_eq!(reader.changes().find_purged_handles(prefix, 2).unwrap(), [handle]);
        drop(reader);

        let handles = if handles_again { vec![handle] } else { Vec::new() };
        let mut operation = Operation::new("purge", "", 0);
        let purged = book.store.purge(&mut operation, &handles).unwrap();
        assert_eq!((purged.items, purged.completed, operation.id()), (0, true, None));
        assert_eq!(files_with_token(&book), [""; 0]);
        assert_eq!(book.reader().pending_work().unwrap(), []);
        let purged = book.store.purge(&mut operation, &handles).unwrap();
        assert!(!purged.completed, "nothing is left to do");
        book.assert_sound();
    }
}

/// A file that a repair set aside may have any content, and cannot be purged.
#[test]
fn a_damaged_copy_is_deleted() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    for first in [0, 9] {
        let (_scratch, ()) = {
            let mut book = Book::new();
            put_token_item(&mut book);
            book.with_store_closed(|dir| {
                let data = dir.join("data.db");
                let mut bytes = fs::read(&data).unwrap();
                bytes[first * 4096..(first + 6) * 4096].fill(0xa5);
                fs::write(&data, &bytes).unwrap();
                let before = DataDirectory::new(dir)
                    .restore(&crate::book::create_options(), &copy)
                    .unwrap()
                    .previous_copy
                    .unwrap();
                let mut store = larder_store::Store::open(dir, &Default::default()).unwrap();
                let mut operation = Operation::new("purge", "", 0);
                let purged = store.purge(&mut operation, &[handle]).unwrap();
                assert_eq!((purged.items, purged.deleted), (1, vec![before]));
                let left: Vec<_> = DataDirectory::new(dir).path().read_dir().unwrap().collect();
                let copies = left.iter().filter(|entry| {
                    let name = entry.as_ref().unwrap().file_name();
                    name.to_string_lossy().contains("before")
                });
                assert_eq!(copies.count(), 0, "damaged from page {first} on: {left:?}");
            })
        };
    }
}

/// Bytes of an item may be in the log or the journal beside a copy, which a repair moves aside
/// with the damaged store, or which remain when only the copy is deleted.
#[test]
fn nothing_is_left_in_files_beside_copies() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let dir = book.dir();
    for (from, to) in [
        ("data.db", "data.db.before-damaged"),
        ("data.db-wal", "data.db.before-damaged-wal"),
        ("data.db-shm", "data.db.before-damaged-shm"),
    ] {
        fs::copy(dir.join(from), dir.join(to)).unwrap();
    }
    let orphans = ["-1-journal", "-1-shm", "-1-wal"];
    let orphans = orphans.map(|end| format!("data.db.before-damaged{end}"));
    for name in &orphans {
        fs::write(dir.join(name), TOKEN).unwrap();
    }
    let before = files_with_token(&book);
    assert!(before.iter().any(|name| name == "data.db.before-damaged-wal"), "{before:?}");
    let purged = book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!((purged.items, purged.deleted), (1, orphans.map(|name| dir.join(name)).to_vec()));
    assert_eq!(files_with_token(&book), [""; 0]);
    let mut copies: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("data.db.before-"))
        .collect();
    copies.sort();
    assert_eq!(copies, ["data.db.before-damaged"]);
    book.store.restore(&dir.join("data.db.before-damaged")).unwrap();
    assert_eq!(book.contents().len(), 50);
    book.assert_sound();
}

/// A damaged database that was set aside may have been a link: its bytes are elsewhere, perhaps
/// under another name in the directory.
#[test]
fn nothing_is_left_where_a_damaged_copy_leads() {
    for is_inside in [false, true] {
        let mut book = Book::new();
        let handle = put_token_item(&mut book);
        let copy = book.dir().join("data.db.before-damaged");
        let folder = if is_inside { book.dir() } else { book.sibling_path("") };
        let (real, log) = (folder.join("real.db"), folder.join("real.db-wal"));
        fs::write(&real, TOKEN.repeat(100)).unwrap();
        fs::write(&log, TOKEN).unwrap();
        symlink(&real, &copy).unwrap();
        // The store itself is no such file, whatever leads to it.
        symlink(book.data(), book.dir().join("data.db.before-mine")).unwrap();
        let purged = book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
        assert_eq!(purged.deleted, [real.clone(), copy.clone()]);
        assert!(!real.exists() && !log.exists() && !copy.is_symlink());
        assert_eq!(files_with_token(&book), [""; 0]);
        book.assert_sound();
    }
}

/// A backup elsewhere is the user's, also if a link in the directory leads to it. A readable copy
/// is replaced by one without the item.
#[test]
fn a_backup_stays_where_a_link_leads() {
    for (name, is_damaged) in [("damaged", false), ("disk", false), ("disk", true)] {
        let mut book = Book::new();
        let handle = put_token_item(&mut book);
        let real = book.sibling_path("real.db");
        book.store.backup(&real).unwrap();
        if is_damaged {
            fs::write(&real, TOKEN.repeat(100)).unwrap();
        }
        let bytes = fs::read(&real).unwrap();
        let copy = book.dir().join(format!("data.db.before-{name}"));
        symlink(&real, &copy).unwrap();
        let purged = book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
        let deleted = if is_damaged { vec![copy.clone()] } else { Vec::new() };
        assert_eq!(purged.deleted, deleted, "{name}");
        assert!(fs::read(&real).unwrap() == bytes, "{name}");
        assert!(!copy.is_symlink() && copy.exists() != is_damaged, "{name}");
        assert_eq!(files_with_token(&book), [""; 0]);
    }
}

/// A purge that is interrupted leaves a link to a file that it has deleted.
#[test]
fn a_copy_that_leads_nowhere_is_deleted() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let copy = book.dir().join("data.db.before-damaged");
    symlink(book.sibling_path("missing.db"), &copy).unwrap();
    let purged = book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!((purged.items, purged.deleted), (1, vec![copy.clone()]));
    assert!(!copy.is_symlink());
    // Another copy may be on a disk that is not there now, and have the item.
    let copy = book.dir().join("data.db.before-restore");
    symlink(book.sibling_path("missing.db"), &copy).unwrap();
    book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap_err();
    assert!(copy.is_symlink());
}

/// Gets the path of the copy and its bytes, the store, the purged handle and the result.
type CopyCheck<'c> = dyn Fn(&Path, &[u8], &mut Store, Handle, Result<PurgeReport, Error>) + 'c;

/// Restores a backup in the place of a database that `prepare` changes, and purges the item.
/// `check` gets the file that was set aside, its bytes before the purge, and the result of that.
fn purge_after_replacement(prepare: &dyn Fn(&Path), check: &CopyCheck<'_>) {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let backup = book.sibling_path("copy.db");
    book.store.backup(&backup).unwrap();
    book.with_store_closed(|dir| {
        prepare(&dir.join("data.db"));
        let restored = DataDirectory::new(dir).restore(&create_options(), &backup).unwrap();
        let before = restored.previous_copy.unwrap();
        assert_eq!(before, dir.join("data.db.before-damaged"));
        let bytes = fs::read(&before).unwrap();
        let mut store = Store::open(dir, &Default::default()).unwrap();
        let purged = store.purge(&mut Operation::new("purge", "", 0), &[handle]);
        check(&before, &bytes, &mut store, handle, purged);
    });
}

/// A file of another program has no items.
#[test]
fn a_copy_of_another_program_stays() {
    let prepare = |data: &Path| {
        fs::remove_file(data).unwrap();
        Connection::open(data).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    };
    purge_after_replacement(&prepare, &|before, bytes, _, _, purged| {
        let purged = purged.unwrap();
        assert_eq!((purged.items, purged.deleted), (1, Vec::new()));
        assert!(fs::read(before).unwrap() == bytes);
    });
}

/// A newer version may have the bytes of the item in tables that this program does not know.
#[test]
fn a_copy_of_a_newer_version_is_named() {
    for version in [1001, 2000] {
        let prepare = |data: &Path| {
            set_version(data, version);
            let sql = format!("CREATE TABLE photo(x); INSERT INTO photo VALUES('{TOKEN}')");
            Connection::open(data).unwrap().execute_batch(&sql).unwrap();
        };
        purge_after_replacement(&prepare, &|before, bytes, store, handle, purged| {
            let error = purged.unwrap_err();
            assert!(matches!(error, Error::UnknownCopy { .. }), "{error:?}");
            assert!(error.to_string().contains(before.to_str().unwrap()), "{error}");
            assert!(fs::read(before).unwrap() == bytes);
            assert_eq!(store.check().unwrap().faults, []);
            // Nothing was purged, so that the whole purge can be repeated.
            fs::rename(before, before.parent().unwrap().with_file_name("moved.db")).unwrap();
            let mut operation = Operation::new("purge", "", 0);
            assert_eq!(store.purge(&mut operation, &[handle]).unwrap().items, 1);
        });
    }
}

/// A journal beside a copy cannot be applied, and has bytes of the items.
#[test]
fn a_journal_beside_a_copy_is_deleted() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let copy = book.dir().join("data.db.before-damaged");
    let backup = book.sibling_path("copy.db");
    book.store.backup(&backup).unwrap();
    fs::rename(&backup, &copy).unwrap();
    fs::write(book.dir().join("data.db.before-damaged-journal"), TOKEN).unwrap();
    book.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!(files_with_token(&book), [""; 0]);
    assert!(!book.dir().join("data.db.before-damaged-journal").exists());
}

/// A restore copies the store first, so it completes the purge before.
#[test]
fn a_restore_completes_a_purge_that_was_interrupted() {
    let mut book = Book::new();
    book.put(&card("kept", "Kept", ""));
    let backup = book.sibling_path("copy.db");
    book.store.backup(&backup).unwrap();
    let handle = put_token_item(&mut book);
    interrupt_purge(&mut book, handle);
    let before = book.store.restore(&backup).unwrap().previous_copy.unwrap();
    assert_eq!(files_with_token(&book), [""; 0]);
    assert!(before.exists());
    assert_eq!(book.contents().len(), 1);
    book.assert_sound();
}

/// Begins a purge that a reader keeps from its end.
fn interrupt_purge(book: &mut Book, handle: larder_store::Handle) {
    let reader = book.reader();
    let rows = crate::book::item_rows(&reader);
    let mut purged = None;
    let mut visit = |_, _: &[u8]| {
        purged.get_or_insert_with(|| purge(book, handle));
        true
    };
    reader.items().for_each(&rows, &mut visit).unwrap();
    assert!(matches!(purged, Some(Err(Error::ReaderBlocksPurge))), "{purged:?}");
}

/// Returns the number of transactions that were committed since the store was opened, modulo 2^32:
/// the field `iChange` of the index of the write-ahead log.
fn count_transactions(book: &Book) -> u32 {
    let index = fs::read(book.dir().join("data.db-shm")).unwrap();
    u32::from_ne_bytes(index[8..12].try_into().unwrap())
}

/// A purge is done in steps: other writers do not wait for its end.
#[test]
fn small_changes_get_in_during_a_purge() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let changes = (0..3000).map(|n| {
        let lines = format!("NOTE:{}\r\n", "words of a note ".repeat(220));
        let bytes = card(&format!("many {n}"), &format!("Name {n}"), &lines);
        crate::book::put(&book.store, "contacts", &bytes, larder_store::Precondition::Any)
    });
    let changes = changes.collect();
    book.apply(changes);
    let (dir, is_done) = (book.dir(), AtomicBool::new(false));
    let before = count_transactions(&book);
    let small_changes = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut store = larder_store::Store::open(&dir, &Default::default()).unwrap();
            let mut count = 0_u32;
            while !is_done.load(Ordering::Relaxed) {
                let bytes = card("small", &format!("Small {count}"), "");
                let any = larder_store::Precondition::Any;
                let changes = vec![crate::book::put(&store, "contacts", &bytes, any)];
                store.apply(&mut Operation::new("edit", "", 0), changes).unwrap();
                count += 1;
            }
            count
        });
        assert_eq!(purge(&mut book, handle).unwrap(), 1);
        is_done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let steps = count_transactions(&book) - before - small_changes;
    assert!(steps >= 8, "{steps} steps of the purge, and {small_changes} small changes");
    assert_eq!(files_with_token(&book), [""; 0]);
    book.assert_sound();
}

/// A reader keeps a purge from its end: while the purge waits, others write.
#[test]
fn small_changes_get_in_while_a_purge_waits_for_a_reader() {
    let mut book = Book::new();
    let handle = put_token_item(&mut book);
    let (dir, is_done) = (book.dir(), AtomicBool::new(false));
    let ends = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut store = Store::open(&dir, &Default::default()).unwrap();
            let mut ends = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                let bytes = card("small", &format!("Small {}", ends.len()), "");
                let change = put(&store, "contacts", &bytes, Precondition::Any);
                store.apply(&mut Operation::new("edit", "", 0), vec![change]).unwrap();
                ends.push(Instant::now());
            }
            ends
        });
        interrupt_purge(&mut book, handle);
        is_done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    // The purge waits for two seconds before it gives up. If it held the lock, the last change
    // would end after it, and the one before two seconds earlier.
    let last = ends.last().copied().unwrap();
    let late = ends.iter().filter(|end| (500..1500).contains(&(last - **end).as_millis()));
    assert_ne!(late.count(), 0, "{} small changes", ends.len());
}

#[test]
fn an_item_is_purged_in_a_directory_whose_name_is_not_utf_8() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join(OsStr::from_bytes(b"na\xefve"));
    let mut store = Store::open(&dir, &create_options()).unwrap();
    let change = put(&store, "contacts", &card("x", "Anna", ""), Precondition::Any);
    let applied = store.apply(&mut Operation::new("import", "", 0), vec![change]).unwrap();
    let handle = outcome_handle(&applied.outcomes[0]);
    let purged = store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    assert_eq!(purged.items, 1);
    assert!(store.check().unwrap().faults.is_empty());
}
