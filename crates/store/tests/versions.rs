//! Tests of files of other versions and of other programs.

use crate::book::{Book, NOW_MS, card, create_options, put, read_contents, write_meta};
use larder_store::{DataDirectory, Error, Operation, Precondition, Reader, Store, StoreOptions};
use rusqlite::Connection;
use std::fs;
use std::path::Path;

/// Makes a store one of another version, whose script has another digest.
pub(crate) fn set_version(data: &Path, version: i64) {
    let conn = Connection::open(data).unwrap();
    conn.pragma_update(None, "user_version", version).unwrap();
    write_meta(&conn, "schema_digest", version);
}

#[test]
fn a_newer_minor_version_can_only_be_read() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (id, _) = book.put(&card("b", "Berta", ""));
    let (scratch, ()) = book.with_store_closed(|dir| {
        let data = dir.join("data.db");
        set_version(&data, 1001);
        let sql = "CREATE TABLE photo(item INTEGER); ALTER TABLE item ADD COLUMN photo INTEGER";
        Connection::open(data).unwrap().execute_batch(sql).unwrap();
    });
    let dir = scratch.path().join("data");
    assert_eq!(Reader::open(&dir).unwrap().collections().list().unwrap()[0].item_count, 2);
    let mut store = Store::open(&dir, &create_options()).unwrap();
    let reader = store.open_reader().unwrap();
    let handle = reader.items().find_by_uid(None, "a").unwrap()[0].handle;
    let mut operation = Operation::new("test", "", 0);
    let errors = [
        store.apply(&mut operation, Vec::new()).map(drop),
        store.undo(id, 0).map(drop),
        store.purge(&mut operation, &[handle]).map(drop),
        store.rebuild().map(drop),
        DataDirectory::new(&dir).rebuild_and_check(&create_options()).map(drop),
    ];
    for error in errors {
        assert!(
            matches!(&error, Err(Error::ReadOnly { version, .. }) if version == "1.1"),
            "{error:?}"
        );
    }
    assert_eq!(store.check().unwrap().faults, []);
    store.backup(scratch.path().join("copy.db")).unwrap();
    let data = Connection::open(dir.join("data.db")).unwrap();
    data.execute("INSERT INTO photo VALUES(1)", []).unwrap();
}

#[test]
fn what_is_refused_stays_as_it_is() {
    let check = |prepare: &dyn Fn(&Path), expect: &str| {
        let book = Book::new();
        let (scratch, before) = book.with_store_closed(|dir| {
            prepare(&dir.join("data.db"));
            fs::read(dir.join("data.db")).unwrap()
        });
        let dir = scratch.path().join("data");
        let error = Store::open(&dir, &create_options()).unwrap_err().to_string();
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
        "schema 2.0 of a newer larder; this version supports schema 1.0",
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
        &|data| {
            set_version(data, 1000);
            let sql = "PRAGMA application_id = 7";
            Connection::open(data).unwrap().execute_batch(sql).unwrap();
        },
        "is not a larder store (application id 0x7)",
    );
    check(&|data| fs::write(data, "a letter to grandmother ".repeat(100)).unwrap(), "damaged");
}

/// A changed bit of the version or of the application id is damage, and no other version.
#[test]
fn a_changed_header_is_damage() {
    for (byte, bit) in [(63, 0), (62, 2), (61, 0), (63, 5), (71, 0)] {
        let mut book = Book::new();
        book.put(&card("a", "Anna", ""));
        let (contents, copy) = (book.contents(), book.sibling_path("copy.db"));
        book.store.backup(&copy).unwrap();
        let (scratch, ()) = book.with_store_closed(|dir| {
            let mut bytes = fs::read(dir.join("data.db")).unwrap();
            bytes[byte] ^= 1 << bit;
            fs::write(dir.join("data.db"), &bytes).unwrap();
            let other = dir.parent().unwrap().join("other.db");
            fs::write(&other, &bytes).unwrap();
        });
        let (dir, other) = (scratch.path().join("data"), scratch.path().join("other.db"));
        let damaged = |result: Result<(), Error>, file: &Path| {
            let error = result.unwrap_err();
            assert_eq!(error.damaged_file(), Some(file), "{byte} {bit}: {error}");
        };
        damaged(Store::open(&dir, &create_options()).map(drop), &dir.join("data.db"));
        damaged(Reader::open(&dir).map(drop), &dir.join("data.db"));
        damaged(Book::new().store.restore(&other).map(drop), &other);
        let directory = DataDirectory::new(&dir);
        let rebuilt = directory.rebuild_and_check(&create_options()).unwrap();
        assert!(rebuilt.damaged_copy.is_some(), "{byte} {bit}");
        assert_eq!(read_contents(&Reader::open(&dir).unwrap()), contents, "{byte} {bit}");
        fs::copy(&other, dir.join("data.db")).unwrap();
        directory.restore(&create_options(), &copy).unwrap();
        assert_eq!(read_contents(&Reader::open(&dir).unwrap()), contents, "{byte} {bit}");
    }
}

/// A backup replaces a store that this program cannot write, whose file is kept. Version 1.0 has
/// another digest here, as that of a development version.
#[test]
fn a_store_of_another_version_makes_room_for_a_backup() {
    for version in [900, 1000, 1001, 2000] {
        let mut book = Book::new();
        book.put(&card("a", "Anna", ""));
        let (contents, copy) = (book.contents(), book.sibling_path("copy.db"));
        book.store.backup(&copy).unwrap();
        let (_scratch, ()) = book.with_store_closed(|dir| {
            set_version(&dir.join("data.db"), version);
            let before = fs::read(dir.join("data.db")).unwrap();
            let restored = DataDirectory::new(dir).restore(&create_options(), &copy).unwrap();
            assert!(fs::read(restored.previous_copy.unwrap()).unwrap() == before, "{version}");
            assert_eq!(read_contents(&Reader::open(dir).unwrap()), contents, "{version}");
        });
    }
}

#[test]
fn an_older_version_without_a_way_from_it() {
    let book = Book::new();
    let (scratch, ()) = book.with_store_closed(|dir| set_version(&dir.join("data.db"), 900));
    let dir = scratch.path().join("data");
    let error = Store::open(&dir, &create_options()).unwrap_err().to_string();
    assert!(error.contains("schema 0.900, which this version of larder cannot migrate"), "{error}");
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
    let mut store = Store::open(&dir, &create_options()).unwrap();
    store.apply(&mut Operation::new("test", "", 0), Vec::new()).unwrap();
    assert_eq!(store.check().unwrap().faults, []);
    assert_eq!(store.last_seq().unwrap(), 0);
}

/// Kinds and types of collections that a newer minor version added are skipped: they are in no list
/// and never read as another kind.
#[test]
fn unknown_kinds_are_skipped() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    book.put(&card("b", "Berta", ""));
    book.put_into("others", &card("c", "Clara", ""));
    let (scratch, ()) = book.with_store_closed(|dir| {
        set_version(&dir.join("data.db"), 1001);
        let conn = Connection::open(dir.join("data.db")).unwrap();
        let sql = "UPDATE item SET kind = 99 WHERE uid IN ('b', 'c');
            UPDATE collection SET type = 99 WHERE name = 'others'";
        conn.execute_batch(sql).unwrap();
    });
    let reader = Reader::open(&scratch.path().join("data")).unwrap();
    let collections = reader.collections().list().unwrap();
    let names: Vec<&str> = collections.iter().map(|known| known.name.as_str()).collect();
    assert_eq!(names, ["contacts"]);
    let items = reader.items().list_after(&collections[0], None, 10).unwrap();
    assert_eq!(items.iter().map(|item| item.uid.as_str()).collect::<Vec<_>>(), ["a"]);
    for uid in ["b", "c"] {
        assert_eq!(reader.items().find_by_uid(None, uid).unwrap(), []);
    }
}

/// A file that another program emptied is not taken for a new store.
#[test]
fn a_store_that_was_emptied() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let (scratch, ()) = book.with_store_closed(|dir| fs::write(dir.join("data.db"), "").unwrap());
    let dir = scratch.path().join("data");
    for error in [Store::open(&dir, &create_options()).map(drop), Reader::open(&dir).map(drop)] {
        assert!(matches!(error, Err(Error::Damaged { .. })), "{error:?}");
    }
}

/// SQLite deletes the log of an empty file. Salvage reads it.
#[test]
fn the_log_of_a_store_that_was_emptied_stays() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    for name in ["data.db-wal", "data.notify"] {
        fs::copy(book.dir().join(name), path(name)).unwrap();
    }
    fs::write(path("data.db"), "").unwrap();
    let log = fs::read(path("data.db-wal")).unwrap();
    assert!(!log.is_empty());
    let options = [create_options(), StoreOptions::default()];
    for has_record in [true, false] {
        let opened = options.iter().map(|options| Store::open(scratch.path(), options).map(drop));
        for error in opened.chain([Reader::open(scratch.path()).map(drop)]) {
            assert!(matches!(error, Err(Error::Damaged { .. })), "{has_record}: {error:?}");
        }
        assert!(fs::read(path("data.db-wal")).unwrap() == log, "{has_record}");
        fs::write(path("data.notify"), "").unwrap();
    }
    let directory = DataDirectory::new(scratch.path());
    let other = tempfile::tempdir().unwrap();
    let report = directory.salvage(&create_options(), other.path().join("saved.db")).unwrap();
    assert_eq!((report.items, report.losses), (1, Vec::new()));
}

#[test]
fn a_directory_that_cannot_be_made() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("data"), &create_options()).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
}

/// A newer program migrates the store while this one has it open.
#[test]
fn a_version_that_comes_while_it_is_open_is_seen() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    set_version(&book.data(), 2000);
    let change = put(&book.store, "contacts", &card("b", "Berta", ""), Precondition::Any);
    let applied = book.store.apply(&mut Operation::new("import", "", NOW_MS), vec![change.clone()]);
    assert!(matches!(applied, Err(Error::SchemaTooNew { .. })), "{applied:?}");
    set_version(&book.data(), 1001);
    let applied = book.store.apply(&mut Operation::new("import", "", NOW_MS), vec![change]);
    assert!(matches!(applied, Err(Error::ReadOnly { .. })), "{applied:?}");
}

/// A store with another schema digest, and one without a digest, are refused by name: no migration
/// starts from them.
#[test]
fn a_store_of_a_development_version_is_refused() {
    let older_files = "
        DELETE FROM meta WHERE key = 'schema_digest';
        ALTER TABLE item_history RENAME TO former;
        ALTER TABLE collection RENAME COLUMN properties TO head;
        PRAGMA user_version = 1005;";
    let other_script = |conn: &Connection| write_meta(conn, "schema_digest", 7);
    let older_files = |conn: &Connection| conn.execute_batch(older_files).unwrap();
    let states: [&dyn Fn(&Connection); 2] = [&other_script, &older_files];
    for make_state in states {
        let mut book = Book::new();
        book.put(&card("a", "Anna", ""));
        let (scratch, before) = book.with_store_closed(|dir| {
            make_state(&Connection::open(dir.join("data.db")).unwrap());
            fs::read(dir.join("data.db")).unwrap()
        });
        let dir = scratch.path().join("data");
        let refused = |result: Result<(), Error>, file: &Path| {
            let error = result.unwrap_err();
            assert!(matches!(&error, Error::DevelopmentSchema { path } if path == file), "{error}");
            let expect =
                "was created by a development version of larder; this version cannot read it";
            assert!(error.to_string().contains(expect), "{error}");
        };
        refused(Store::open(&dir, &create_options()).map(drop), &dir.join("data.db"));
        refused(Reader::open(&dir).map(drop), &dir.join("data.db"));
        assert_eq!(fs::read(dir.join("data.db")).unwrap(), before);
        let backup = scratch.path().join("backup.db");
        fs::rename(dir.join("data.db"), &backup).unwrap();
        let mut other = Book::new();
        refused(other.store.restore(&backup).map(drop), &backup);
        other.assert_sound();
    }
}

/// Items of kinds that only a newer version knows come between known ones, also as whole pages of a
/// list.
#[test]
fn unknown_kinds_do_not_end_a_list() {
    let mut book = Book::new();
    let uids: Vec<String> = (0..10).map(|n| format!("u{n}")).collect();
    let changes = uids.iter().map(|uid| {
        put(&book.store, "contacts", &card(uid, "Name", ""), larder_store::Precondition::Any)
    });
    let changes = changes.collect();
    book.apply(changes);
    let conn = Connection::open(book.data()).unwrap();
    conn.execute("UPDATE item SET kind = 99 WHERE id BETWEEN 3 AND 8", []).unwrap();
    let reader = book.reader();
    let collection = &reader.collections().list().unwrap()[0];
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = reader.items().list_after(collection, after, 2).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.row);
        listed.extend(page.iter().map(|meta| meta.uid.clone()));
    }
    assert_eq!(listed, ["u0", "u1", "u8", "u9"]);
    for collection in [None, Some(collection.row)] {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = reader.items().list_rows_with_kind(collection, after, 2).unwrap();
            let Some((last, ..)) = page.last() else { break };
            after = Some(*last);
            rows.extend(page.iter().map(|(row, ..)| row.to_number()));
        }
        assert_eq!(rows, [1, 2, 9, 10]);
    }
}

/// A trigger in a backup would change what is stored, and a table would keep what is purged.
#[test]
fn a_foreign_schema_is_named_and_not_restored() {
    let check = |sql: &str, name: &str| {
        let mut book = Book::new();
        book.put(&card("a", "Anna", ""));
        let backup = book.sibling_path("backup.db");
        book.store.backup(&backup).unwrap();
        Connection::open(&backup).unwrap().execute_batch(sql).unwrap();
        let error = book.store.restore(&backup).unwrap_err();
        assert!(error.to_string().contains(name), "{sql}: {error}");
        assert_eq!(error.damaged_file(), Some(&*backup), "{sql}");
        book.assert_sound();
        // In the store itself, nothing of it runs, and check names it.
        Connection::open(book.data()).unwrap().execute_batch(sql).unwrap();
        let bytes = card("b", "Nice", "");
        book.put(&bytes);
        assert!(book.contents().values().any(|stored| *stored == bytes), "{sql}");
        let faults: Vec<String> =
            book.store.check().unwrap().faults.iter().map(ToString::to_string).collect();
        assert!(faults.iter().any(|fault| fault.contains(name)), "{sql}: {faults:?}");
        // A rebuild copies the items into a file without it.
        let (_scratch, ()) = book.with_store_closed(|dir| {
            let directory = larder_store::DataDirectory::new(dir);
            let report = directory.rebuild_and_check(&create_options()).unwrap();
            assert!(report.damaged_copy.is_some(), "{sql}");
            let store = Store::open(dir, &create_options()).unwrap();
            assert_eq!(store.check().unwrap().faults, [], "{sql}");
        });
    };
    check(
        "CREATE TRIGGER evil AFTER INSERT ON source_bytes BEGIN
           UPDATE source_bytes SET bytes = x'00' WHERE item = NEW.item; END",
        "trigger evil was not created by larder",
    );
    check("CREATE TABLE hidden(a)", "table hidden was not created by larder");
    check("CREATE INDEX more ON item(kind)", "index more was not created by larder");
    check("CREATE VIEW seen AS SELECT * FROM item", "view seen was not created by larder");
    check("DROP INDEX item_override", "missing in the schema: CREATE INDEX item_override");
}
