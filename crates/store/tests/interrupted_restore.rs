//! Tests of the leftovers of interrupted restores: they are finished or deleted, and nothing else
//! is.

use crate::book::{Book, Contents, card, create_options, read_contents};
use larder_store::{DataDirectory, Error, Reader, Store, StoreOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// A store with two items, a backup of it with the first one only, and the contents of both.
struct Case {
    book: Book,
    backup: PathBuf,
    old: Contents,
    new: Contents,
}

fn case() -> Case {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let backup = book.sibling_path("backup.db");
    book.store.backup(&backup).unwrap();
    let old = book.contents();
    book.put(&card("b", "Berta", ""));
    let new = book.contents();
    Case { book, backup, old, new }
}

/// Returns the names of the files of the database in a directory.
fn databases(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("data.db")).collect();
    names.retain(|name| name != "data.db-wal" && name != "data.db-shm");
    names.sort();
    names
}

/// Staging files of killed processes are deleted when the store is opened, with the journals that
/// belong to them.
#[test]
fn leftovers_are_swept_when_the_store_is_opened() {
    let Case { book, backup, new, .. } = case();
    let left = [
        "data.db.check-0123456789abcdef.partial",
        "data.db.restore-0123456789abcdef.partial",
        "data.db.before-restore.0123456789abcdef.partial",
    ];
    let dir = book.dir();
    for name in left {
        fs::copy(&backup, dir.join(name)).unwrap();
        for end in ["-journal", "-wal", "-shm"] {
            fs::write(dir.join(format!("{name}{end}")), "x").unwrap();
        }
    }
    fs::write(dir.join("data.db.restore-fedcba9876543210.partial-journal"), "x").unwrap();
    fs::write(dir.join("mine.partial"), "x").unwrap();
    let book = book.reopen(&StoreOptions::default());
    assert_eq!(databases(&dir), ["data.db"]);
    assert!(dir.join("mine.partial").exists());
    assert_eq!(book.store.recovered_copy(), None);
    assert_eq!(book.contents(), new);
}

/// A restore that was killed before it happened leaves a copy with the epoch of the store; one that
/// was killed afterwards leaves a copy of the previous state, which has another epoch.
#[test]
fn the_copy_of_a_restore_is_kept_if_the_restore_happened() {
    let name = "data.db.before-restore-0123456789abcdef.partial";
    let Case { book, backup, .. } = case();
    let dir = book.dir();
    fs::copy(&backup, dir.join(name)).unwrap();
    let book = book.reopen(&StoreOptions::default());
    assert_eq!((databases(&dir), book.store.recovered_copy()), (vec!["data.db".into()], None));

    // Every store has an epoch of its own.
    let mut other = Book::new();
    other.put(&card("c", "Clara", ""));
    let previous = book.sibling_path("previous.db");
    other.store.backup(&previous).unwrap();
    fs::copy(&previous, dir.join(name)).unwrap();
    let mut book = book.reopen(&StoreOptions::default());
    let kept = dir.join("data.db.before-restore");
    assert_eq!(databases(&dir), ["data.db", "data.db.before-restore"]);
    assert_eq!(book.store.recovered_copy(), Some(kept.as_path()));
    book.store.restore(&kept).unwrap();
    assert_eq!(book.contents(), other.contents());

    // An incomplete copy is none.
    let whole = fs::read(&previous).unwrap();
    fs::write(dir.join(name), &whole[..whole.len() / 2]).unwrap();
    let book = book.reopen(&StoreOptions::default());
    assert_eq!(databases(&dir), ["data.db", "data.db.before-restore", "data.db.before-restore-1"]);
    book.assert_sound();
}

/// The restore of a damaged store is interrupted after each of its steps.
#[test]
fn a_pending_restore_is_finished_by_the_next_writer() {
    for step in 0..4 {
        let Case { book, backup, old, .. } = case();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            let (data, wal) = (dir.join("data.db"), dir.join("data.db-wal"));
            fs::write(&data, "damaged").unwrap();
            fs::write(&wal, "log").unwrap();
            fs::write(dir.join("data.db-shm"), "index").unwrap();
            // A rollback journal, which SQLite would apply to the backup.
            fs::write(dir.join("data.db-journal"), "journal").unwrap();
            begin_restore(dir, &backup, "data.db.before-damaged");
            let before = dir.join("data.db.before-damaged");
            if step > 0 {
                let to = dir.join("data.db.before-damaged-journal");
                fs::rename(dir.join("data.db-journal"), to).unwrap();
                fs::rename(&wal, dir.join("data.db.before-damaged-wal")).unwrap();
            }
            if step > 1 {
                fs::remove_file(dir.join("data.db-shm")).unwrap();
            }
            if step > 2 {
                fs::rename(&data, &before).unwrap();
            }
            let read = Reader::open(dir);
            assert!(matches!(read, Err(Error::RestorePending { .. })), "step {step}: {read:?}");
            let store = Store::open(dir, &StoreOptions::default()).unwrap();
            assert_eq!(store.recovered_copy(), Some(before.as_path()), "step {step}");
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), old, "step {step}");
            assert_eq!(fs::read(&before).unwrap(), b"damaged", "step {step}");
            for (end, bytes) in [("wal", "log"), ("journal", "journal")] {
                let aside = dir.join(format!("data.db.before-damaged-{end}"));
                assert_eq!(fs::read_to_string(aside).unwrap(), bytes, "step {step}");
            }
            assert_eq!(store.check().unwrap().faults, [], "step {step}");
            drop(store);
            let again = Store::open(dir, &StoreOptions::default()).unwrap();
            assert_eq!(again.recovered_copy(), None, "step {step}");
        });
    }
}

/// Does the first steps of a restore of a damaged store, which is set aside under a name.
fn begin_restore(dir: &Path, backup: &Path, name: &str) {
    fs::write(dir.join("data.db.damaged-name"), name).unwrap();
    fs::copy(backup, dir.join("data.db.restoring")).unwrap();
}

/// Puts a damaged store with a log aside in a directory, as an earlier restore did, and takes
/// `data.db` away from its log.
fn prepare_missing_database(dir: &Path, log: &str) {
    fs::write(dir.join("data.db.before-damaged"), "earlier").unwrap();
    fs::write(dir.join("data.db.before-damaged-wal"), "earlier log").unwrap();
    fs::remove_file(dir.join("data.db")).unwrap();
    fs::write(dir.join("data.db-wal"), log).unwrap();
}

/// The store that an earlier restore set aside is not the one that is missing now. The restore is
/// begun, or was interrupted before its first step, or after it.
#[test]
fn a_restore_without_a_database_leaves_earlier_copies() {
    for (log, step) in [("", 0), ("log", 0), ("", 1), ("log", 1), ("log", 2)] {
        let Case { book, backup, old, .. } = case();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            prepare_missing_database(dir, log);
            let aside = |name: &str| fs::read_to_string(dir.join(name)).ok();
            if step == 0 {
                let directory = DataDirectory::new(dir);
                let restored = directory.restore(&create_options(), &backup).unwrap();
                assert_eq!(restored.previous_copy, None, "{log:?}");
            } else {
                begin_restore(dir, &backup, "data.db.before-damaged-1");
                if step == 2 {
                    let to = dir.join("data.db.before-damaged-1-wal");
                    fs::rename(dir.join("data.db-wal"), to).unwrap();
                }
                let store = Store::open(dir, &StoreOptions::default()).unwrap();
                assert_eq!(store.recovered_copy(), None, "{log:?} {step}");
            }
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), old, "{log:?} {step}");
            assert_eq!(aside("data.db.before-damaged").as_deref(), Some("earlier"));
            assert_eq!(aside("data.db.before-damaged-wal").as_deref(), Some("earlier log"));
            let moved = aside("data.db.before-damaged-1-wal");
            assert_eq!(moved.as_deref(), Some(log).filter(|log| !log.is_empty()), "{step}");
        });
    }
}

/// A log that lies alone where the next damaged store would be set aside. The restore is begun, or
/// was interrupted before its first step, after each, or after the last one.
#[test]
fn a_damaged_store_is_set_aside_beside_no_log_of_another_one() {
    for step in 0..4 {
        let Case { book, backup, old, .. } = case();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            fs::write(dir.join("data.db"), "damaged").unwrap();
            fs::write(dir.join("data.db-wal"), "log").unwrap();
            fs::write(dir.join("data.db.before-damaged-wal"), "earlier log").unwrap();
            let before = dir.join("data.db.before-damaged-1");
            if step == 0 {
                let directory = DataDirectory::new(dir);
                let restored = directory.restore(&create_options(), &backup).unwrap();
                assert_eq!(restored.previous_copy.as_ref(), Some(&before));
            } else {
                begin_restore(dir, &backup, "data.db.before-damaged-1");
                if step > 1 {
                    let log = dir.join("data.db.before-damaged-1-wal");
                    fs::rename(dir.join("data.db-wal"), log).unwrap();
                }
                if step > 2 {
                    fs::rename(dir.join("data.db"), &before).unwrap();
                }
                let store = Store::open(dir, &StoreOptions::default()).unwrap();
                assert_eq!(store.recovered_copy(), Some(before.as_path()), "{step}");
            }
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), old, "{step}");
            let aside = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
            assert_eq!(aside("data.db.before-damaged-wal"), "earlier log", "{step}");
            // A restore opens the store first, and SQLite deletes a log that is none.
            if step > 0 {
                assert_eq!(aside("data.db.before-damaged-1-wal"), "log", "{step}");
            }
            assert_eq!(aside("data.db.before-damaged-1"), "damaged", "{step}");
        });
    }
}

/// A damaged store without a log, where a log lies alone, and where another program put a file in
/// the place of the database that was moved.
#[test]
fn an_interrupted_restore_mixes_no_files() {
    for (step, name) in [(0, "-1"), (1, "-1"), (2, "-2")] {
        let Case { book, backup, old, .. } = case();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            let path = |end: &str| dir.join(format!("data.db.before-damaged{end}"));
            fs::write(dir.join("data.db"), "damaged").unwrap();
            fs::write(path("-wal"), "earlier log").unwrap();
            begin_restore(dir, &backup, "data.db.before-damaged-1");
            fs::write(dir.join("data.db-wal"), "").unwrap();
            if step > 0 {
                fs::remove_file(dir.join("data.db-wal")).unwrap();
            }
            if step > 1 {
                fs::rename(dir.join("data.db"), path("-1")).unwrap();
                fs::write(dir.join("data.db"), "another").unwrap();
            }
            let store = Store::open(dir, &StoreOptions::default()).unwrap();
            assert_eq!(store.recovered_copy(), Some(path(name).as_path()), "{step}");
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), old, "{step}");
            assert_eq!(fs::read_to_string(path("-1")).unwrap(), "damaged", "{step}");
            assert!(!path("").exists() && !dir.join("data.db.damaged-name").exists(), "{step}");
        });
    }
}

/// A restore that is stopped changes nothing and leaves nothing.
#[test]
fn a_stopped_restore_changes_nothing() {
    let Case { book, backup, new, .. } = case();
    let dir = book.dir();
    let stop = AtomicBool::new(true);
    let before = databases(&dir);
    let restore =
        || DataDirectory::new(&dir).restore_unless_stopped(&create_options(), &backup, &stop);
    let result = restore();
    assert!(matches!(result, Err(Error::RestoreStopped)), "{result:?}");
    assert_eq!(databases(&dir), before);
    assert_eq!(book.contents(), new);
    book.assert_sound();
    let (_scratch, ()) = book.with_store_closed(|dir| {
        fs::write(dir.join("data.db"), "damaged").unwrap();
        let result = restore();
        assert!(matches!(result, Err(Error::RestoreStopped)), "{result:?}");
        assert_eq!(databases(dir), before);
        assert_eq!(fs::read(dir.join("data.db")).unwrap(), b"damaged");
    });
}

/// Each name of a database has a write-ahead log of its own, so changes would be lost.
#[test]
fn a_database_with_several_names_is_not_written() {
    let Case { book, new, .. } = case();
    let other = book.sibling_path("other.db");
    let (_scratch, ()) = book.with_store_closed(|dir| {
        fs::hard_link(dir.join("data.db"), &other).unwrap();
        let opened = Store::open(dir, &StoreOptions::default());
        assert!(matches!(opened, Err(Error::SeveralNames { names: 2, .. })), "{opened:?}");
        assert_eq!(read_contents(&Reader::open(dir).unwrap()), new);
        fs::remove_file(&other).unwrap();
        Store::open(dir, &StoreOptions::default()).unwrap();
    });
}
