//! Tests of backup and restore.

use crate::book::{Book, card, create_options, outcome_handle, put, read_contents};
use crate::versions::set_version;
use larder_store::{
    DataDirectory, Error, Operation, OutputError, Precondition, Reader, Store, StoreOptions,
};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn files(dir: &Path) -> Vec<String> {
    let names =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_copy_of_a_busy_store_holds_whole_batches() {
    let book = Book::new();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (dir, done) = (book.dir(), &done);
        scope.spawn(move || {
            let mut store = Store::open(&dir, &StoreOptions::default()).unwrap();
            let mut operation = Operation::new("import", "", 0);
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let changes = (0..10).map(|m| {
                    put(&store, "contacts", &card(&format!("{n} {m}"), "A", ""), Precondition::Any)
                });
                let changes = changes.collect();
                store.apply(&mut operation, changes).unwrap();
            }
        });
        let to = book.sibling_path("copy.db");
        for _ in 0..8 {
            let size = book.store.backup(&to).unwrap();
            assert_eq!(size, fs::metadata(&to).unwrap().len());
            assert_eq!(mode(&to), 0o600);
            let conn = Connection::open(&to).unwrap();
            let (items, seq): (i64, i64) = conn
                .query_row(
                    "SELECT (SELECT count(*) FROM item), value FROM meta WHERE key = 'last_seq'",
                    [],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .unwrap();
            assert_eq!(items, seq * 10);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        files(book.sibling_path("").as_path()),
        ["copy.db", "data"],
        "one file, nothing beside it"
    );
    assert_eq!(mode(&book.dir()), 0o700);
    for name in files(&book.dir()) {
        assert_eq!(mode(&book.dir().join(&name)), 0o600, "{name}");
    }
}

#[test]
fn a_backup_is_restored() {
    let mut book = Book::new();
    let first = book.put(&card("a", "Anna", "")).1;
    book.put(&crate::book::large_card("large", 'A', 100_000));
    let kept = book.contents();
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    let cursor = book.reader().changes().current_cursor().unwrap();
    book.put(&card("b", "Berta", ""));
    book.remove(outcome_handle(&first));
    let lost = book.contents();
    let reader = book.reader();

    let restored = book.store.restore(&copy).unwrap();
    assert_eq!(restored.items, 2);
    assert_eq!(book.contents(), kept);
    assert_eq!(crate::book::read_contents(&reader), kept, "who had it open sees it, too");
    assert!(matches!(reader.changes().list_after(&cursor, 9), Err(Error::CursorExpired)));
    book.assert_sound();
    // The previous state is copied, and the copy is a backup itself.
    let previous_copy = restored.previous_copy.unwrap();
    assert_eq!(previous_copy, book.dir().join("data.db.before-restore"));
    assert_eq!(mode(&previous_copy), 0o600);
    let again = book.store.restore(&previous_copy).unwrap();
    assert_eq!(book.contents(), lost);
    assert_eq!(again.previous_copy, Some(book.dir().join("data.db.before-restore-1")));
    book.put(&card("c", "Clara", ""));
    book.assert_sound();
    assert!(
        !files(&book.dir())
            .iter()
            .any(|name| name.contains("restoring") || name.contains("partial"))
    );
}

#[test]
fn a_restore_brings_its_locale_and_its_own_indexes() {
    let mut swedish = Book::with_options(&StoreOptions {
        locale: Some("sv".into()),
        ..crate::book::create_options()
    });
    for name in ["Zebra", "Ärger"] {
        swedish.put(&card(name, name, ""));
    }
    let copy = swedish.sibling_path("copy.db");
    swedish.store.backup(&copy).unwrap();
    let mut book = Book::new();
    book.store.restore(&copy).unwrap();
    assert_eq!(book.reader().locale().unwrap(), "sv");
    book.put(&card("Öl", "Öl", ""));
    book.assert_sound();
}

#[test]
fn a_backup_replaces_only_a_backup() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let refused = |path: &Path| {
        let before = fs::read(path).unwrap();
        let result = book.store.backup(path);
        assert!(result.is_err(), "{}", path.display());
        assert_eq!(fs::read(path).unwrap(), before);
    };
    let text = book.sibling_path("text");
    fs::write(&text, "a letter to grandmother, much longer than the header of a database would be")
        .unwrap();
    refused(&text);
    let foreign = book.sibling_path("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    refused(&foreign);
    // A store in use is no backup, and this store least of all.
    refused(&book.data());
    let other = Book::new();
    refused(&other.data());
    assert!(other.data().with_file_name("data.db-wal").metadata().unwrap().len() > 0);
    let error = book.store.backup(other.data()).unwrap_err().to_string();
    assert!(error.ends_with("data.db: is a store in use, not a backup"), "{error}");
    assert!(matches!(
        book.store.backup(book.sibling_path("no/such/folder")),
        Err(Error::Output(OutputError::File { .. }))
    ));
    let good = book.sibling_path("good.db");
    book.store.backup(&good).unwrap();
    book.store.backup(&good).unwrap();
    book.assert_sound();
    other.assert_sound();
}

/// SQLite would apply the log of another database to the backup.
#[test]
fn a_log_beside_the_name_of_a_copy_is_named() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (copy, good) = (book.sibling_path("copy.db"), book.sibling_path("good.db"));
    book.store.backup(&good).unwrap();
    for end in ["-wal", "-journal"] {
        let log = book.sibling_path(&format!("copy.db{end}"));
        fs::write(&log, "log").unwrap();
        let salvaged = DataDirectory::new(book.dir()).salvage(&create_options(), &copy);
        for error in [book.store.backup(&copy).map(drop), salvaged.map(drop)] {
            match error {
                Err(Error::Output(OutputError::File { path, .. })) => assert_eq!(path, log),
                error => panic!("{error:?}"),
            }
        }
        assert!(!copy.exists() && fs::read(&log).unwrap() == b"log");
        fs::write(&log, "").unwrap();
        book.store.backup(&copy).unwrap();
        fs::remove_file(&copy).unwrap();
        fs::remove_file(&log).unwrap();
    }
    fs::write(book.dir().join("data.db.before-restore-wal"), "log").unwrap();
    let restored = book.store.restore(&good).unwrap();
    assert_eq!(restored.previous_copy, Some(book.dir().join("data.db.before-restore-1")));
}

#[test]
fn what_is_no_backup_is_not_restored() {
    let mut book = Book::new();
    let changes = (0..300)
        .map(|n| {
            put(&book.store, "contacts", &card(&format!("u{n}"), "Name", ""), Precondition::Any)
        })
        .collect();
    book.apply(changes);
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    let (before, listed) = (book.contents(), files(&book.dir()));
    let cursor = book.reader().changes().current_cursor().unwrap();

    let mut whole = fs::read(&copy).unwrap();
    let half = book.sibling_path("half.db");
    fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let broken = book.sibling_path("broken.db");
    whole[5 * 4096..].fill(0xa5);
    fs::write(&broken, &whole).unwrap();
    let foreign = book.sibling_path("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let (text, empty) = (book.sibling_path("text"), book.sibling_path("empty"));
    fs::write(&text, "a letter to grandmother").unwrap();
    fs::write(&empty, "").unwrap();
    let newer = book.sibling_path("newer.db");
    fs::copy(&copy, &newer).unwrap();
    set_version(&newer, 2000);

    for path in [&half, &broken, &foreign, &text, &empty, &newer, &book.sibling_path("missing")] {
        let result = book.store.restore(path);
        let error = result.expect_err(&path.display().to_string());
        let shown = error.to_string();
        assert!(shown.contains(path.file_name().unwrap().to_str().unwrap()), "{shown}");
        assert_eq!(book.contents(), before);
        assert_eq!(files(&book.dir()), listed, "{}", path.display());
    }
    assert!(matches!(book.store.restore(&newer), Err(Error::SchemaTooNew { major: 2, .. })));
    assert!(matches!(book.store.restore(&foreign), Err(Error::NotAStore { .. })));
    assert!(book.reader().changes().list_after(&cursor, 9).is_ok());
    book.assert_sound();
}

/// A backup replaces a store with any damage, and the damaged files remain.
#[test]
fn a_damaged_store_makes_room_for_a_backup() {
    for first in [0, 4, 9] {
        let mut book = Book::new();
        let cards = (0..300).map(|n| card(&format!("u{n}"), "Name", ""));
        let changes = cards.map(|card| put(&book.store, "contacts", &card, Precondition::Any));
        let changes = changes.collect();
        book.apply(changes);
        let copy = book.sibling_path("copy.db");
        book.store.backup(&copy).unwrap();
        let contents = book.contents();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            let data = dir.join("data.db");
            let mut bytes = fs::read(&data).unwrap();
            bytes[first * 4096..].fill(0xa5);
            fs::write(&data, &bytes).unwrap();
            let restored = DataDirectory::new(dir).restore(&create_options(), &copy).unwrap();
            assert_eq!(restored.items, 300, "damaged from page {first} on");
            assert_eq!(
                fs::read(restored.previous_copy.unwrap()).unwrap().len(),
                bytes.len(),
                "kept as it was"
            );
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), contents);
            let mut store = Store::open(dir, &StoreOptions::default()).unwrap();
            assert_eq!(store.rebuild_and_check().unwrap().faults, []);
        });
    }
}
