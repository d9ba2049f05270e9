//! Files of other versions and of other programs.

use crate::book::{Book, NOW, card, made, put};
use larder_store::{Error, Operation, Precondition, Reader, Store, StoreOptions};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

fn set_version(data: &Path, version: i64) {
    let conn = Connection::open(data).unwrap();
    conn.pragma_update(None, "user_version", version).unwrap();
}

#[test]
fn a_newer_minor_version_can_only_be_read() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (id, _) = book.put(&card("b", "Berta", ""));
    let (scratch, ()) = book.closed(|dir| set_version(&dir.join("data.db"), 1006));
    let dir = scratch.path().join("data");
    assert_eq!(Reader::open(&dir).unwrap().collections().unwrap()[0].item_count, 2);
    let mut store = Store::open(&dir, &made()).unwrap();
    let reader = store.open_reader().unwrap();
    let handle = reader.find_by_uid(None, "a").unwrap()[0].handle;
    let mut operation = Operation::new("test", "", 0);
    let errors = [
        store.apply(&mut operation, Vec::new()).map(drop),
        store.undo(id, 0).map(drop),
        store.purge(&mut operation, &[handle]).map(drop),
        store.rebuild().map(drop),
    ];
    for error in errors {
        assert!(
            matches!(&error, Err(Error::ReadOnly { version, .. }) if version == "1.6"),
            "{error:?}"
        );
    }
    assert_eq!(store.check().unwrap().faults, []);
    store.backup(&scratch.path().join("copy.db")).unwrap();
}

#[test]
fn what_is_refused_stays_as_it_is() {
    let check = |prepare: &dyn Fn(&Path), expect: &str| {
        let book = Book::new();
        let (scratch, before) = book.closed(|dir| {
            prepare(&dir.join("data.db"));
            fs::read(dir.join("data.db")).unwrap()
        });
        let dir = scratch.path().join("data");
        let error = Store::open(&dir, &made()).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        let error = Reader::open(&dir).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert_eq!(fs::read(dir.join("data.db")).unwrap(), before);
        assert!(!fs::read_dir(&dir).unwrap().any(|entry| {
            entry.unwrap().file_name().to_string_lossy().starts_with("data.db.before-")
        }));
    };
    check(
        &|data| set_version(data, 2000),
        "schema 2.0, made by a newer larder; this one knows 1.5",
    );
    check(&|data| set_version(data, 12_003), "schema 12.3");
    check(
        &|data| {
            fs::remove_file(data).unwrap();
            Connection::open(data).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
        },
        "is not a larder store (application id 0x0)",
    );
    check(
        &|data| Connection::open(data).unwrap().execute_batch("PRAGMA application_id = 7").unwrap(),
        "is not a larder store (application id 0x7)",
    );
    check(&|data| fs::write(data, "a letter to grandmother ".repeat(100)).unwrap(), "damaged");
}

#[test]
fn an_older_version_without_a_way_from_it() {
    let book = Book::new();
    let (scratch, ()) = book.closed(|dir| set_version(&dir.join("data.db"), 900));
    let dir = scratch.path().join("data");
    let error = Store::open(&dir, &made()).unwrap_err().to_string();
    assert!(error.contains("no way is known from schema 0.900"), "{error}");
}

#[test]
fn no_store_and_an_empty_file() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("data");
    let none = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::NoStore { .. })), "{result:?}");
    };
    none(Store::open(&dir, &StoreOptions::default()).map(drop));
    none(Reader::open(&dir).map(drop));
    assert!(!dir.exists(), "looking for a store makes none");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("data.db"), "").unwrap();
    none(Reader::open(&dir).map(drop));
    let mut store = Store::open(&dir, &made()).unwrap();
    store.apply(&mut Operation::new("test", "", 0), Vec::new()).unwrap();
    assert_eq!(store.check().unwrap().faults, []);
    assert_eq!(store.last_seq().unwrap(), 0);
}

/// A file that something emptied is not taken for a new store.
#[test]
fn a_store_that_was_emptied() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (scratch, ()) = book.closed(|dir| fs::write(dir.join("data.db"), "").unwrap());
    let dir = scratch.path().join("data");
    for error in [Store::open(&dir, &made()).map(drop), Reader::open(&dir).map(drop)] {
        assert!(matches!(error, Err(Error::Damaged { .. })), "{error:?}");
    }
}

#[test]
fn a_directory_that_cannot_be_made() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("data"), &made()).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
}

/// A newer program migrates the store while this one has it open.
#[test]
fn a_version_that_comes_while_it_is_open_is_seen() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    set_version(&book.data(), 2000);
    let change = put(&book.store, "contacts", &card("b", "Berta", ""), Precondition::Any);
    let applied = book.store.apply(&mut Operation::new("import", "", NOW), vec![change.clone()]);
    assert!(matches!(applied, Err(Error::SchemaTooNew { .. })), "{applied:?}");
    set_version(&book.data(), 1006);
    let applied = book.store.apply(&mut Operation::new("import", "", NOW), vec![change]);
    assert!(matches!(applied, Err(Error::ReadOnly { .. })), "{applied:?}");
}

/// 1.3 was never released, but whoever has a store of it keeps it: what it had otherwise is made
/// anew.
#[test]
fn a_store_of_1_3_opens() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let as_it_was = "
        DROP TABLE retimed;
        ALTER TABLE former DROP COLUMN time;
        ALTER TABLE former DROP COLUMN item;
        DROP TABLE idx_span;
        CREATE TABLE idx_span(collection INTEGER, class INTEGER, series BLOB);
        CREATE TABLE idx_slot(collection INTEGER, slot INTEGER, series BLOB);
        CREATE INDEX batch_operation ON batch(operation);
        INSERT INTO idx_fence VALUES(1, x'00', 0, 0);
        PRAGMA user_version = 1003;";
    let (_scratch, ()) = book.closed(|dir| {
        Connection::open(dir.join("data.db")).unwrap().execute_batch(as_it_was).unwrap();
        let mut store = Store::open(dir, &StoreOptions::default()).unwrap();
        assert_eq!(store.rebuild_and_check().unwrap().faults, []);
        let conn = Connection::open(dir.join("data.db")).unwrap();
        let fences = "SELECT count(*) FROM idx_fence WHERE chunk = 0";
        assert_eq!(conn.query_row(fences, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    });
}

/// Files in `tests/data`, each with an import of items and, as operation 2, the removal of one;
/// that of 1.2 has a summary, too.
const RELEASES: &[(&str, u64)] =
    &[("store-1.0.db", 81), ("store-1.1.db", 81), ("store-1.2.db", 81), ("store-1.4.db", 16)];

/// A store of each release is kept: it opens, holds what it held, and goes on.
#[test]
fn stores_of_all_releases_open() {
    for &(name, items) in RELEASES {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let (_scratch, ()) = Book::new().closed(|dir| {
            fs::copy(&kept, dir.join("data.db")).unwrap();
            for beside in ["data.db-wal", "data.db-shm"] {
                let _none = fs::remove_file(dir.join(beside));
            }
            let mut store = Store::open(dir, &StoreOptions::default()).unwrap();
            assert_eq!(store.rebuild_and_check().unwrap().faults, [], "{name}");
            assert_eq!(
                store.open_reader().unwrap().collections().unwrap()[0].item_count,
                items,
                "{name}"
            );
            let summaries = store.open_reader().unwrap().index_configs().unwrap();
            assert_eq!(summaries[0].1.is_default(), name != "store-1.2.db", "{name}");
            let undo = store.undo(2, NOW).unwrap();
            assert_eq!((undo.items, undo.conflicts.len()), (1, 0), "{name}");
        });
    }
}
