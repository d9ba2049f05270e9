//! Checksums: a flipped bit is found wherever it is, its object is named, and no damaged byte is
//! read, copied or restored.

use crate::book::{Book, card, create_options, large_card, outcome_handle, put};
use crate::calendar::{calendar_context, component, put as put_component};
use larder_store::{
    BatchChange, DamagedObject, DataDirectory, Error, Fault, Handle, ItemRow, Operation,
    OperationId, Precondition, Reader, UndoReport, UnreadableVersion,
};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::fs;

/// A store with rows in each table that has checksums: items, former versions, both also in
/// `blob`, calendar contexts and definitions.
pub(crate) fn varied_book() -> Book {
    let mut book = Book::new();
    for uid in ["a", "b", "c", "d"] {
        book.put(&card(uid, &format!("Name of {uid}"), "TEL:+43 664 123\r\nX-NEEDLE:find me\r\n"));
    }
    book.put(&large_card("large", 'A', 70_000));
    book.put(&large_card("large", 'B', 80_000));
    book.put(&card("b", "Former name", ""));
    book.put(&card("b", "Present name", ""));
    let (_, removed) = book.put(&card("removed", "Removed", ""));
    book.remove(outcome_handle(&removed));
    for (n, uid) in ["e1", "e2", "e3"].into_iter().enumerate() {
        put_event(&mut book, uid, n + 1, "Meeting");
    }
    put_event(&mut book, "e1", 1, "Moved meeting");
    for lines in ["PRODID:-//Own//Own\r\n", "PRODID:-//Own//Other\r\n"] {
        let properties = BatchChange::SetCollectionProperties("home".into(), Some(lines.into()));
        book.apply(vec![properties]);
    }
    book
}

fn put_event(book: &mut Book, uid: &str, context: usize, summary: &str) {
    let bytes = component(&format!(
        "VEVENT\nUID:{uid}\nDTSTART;TZID=Own:20260305T120000\nDTEND;TZID=Other:20260305T130000
         SUMMARY:{summary}"
    ));
    let context = calendar_context(context);
    let change = put_component(&book.store, "home", &bytes, &context, Precondition::Any);
    book.apply(vec![change]);
}

/// Everything that a reader gives: the bytes of items by row, and of versions by handle.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadResult {
    items: BTreeMap<ItemRow, Vec<u8>>,
    versions: BTreeMap<Handle, Vec<Option<Vec<u8>>>>,
}

/// Reads what can be read.
fn read_everything(reader: &Reader, expected: Option<&ReadResult>) -> ReadResult {
    let mut served = ReadResult { items: BTreeMap::new(), versions: BTreeMap::new() };
    let rows: Vec<ItemRow> = match expected {
        Some(expected) => expected.items.keys().copied().collect(),
        None => crate::book::item_rows(reader),
    };
    for row in rows {
        if let Ok(Some(bytes)) = reader.items().source_bytes(row) {
            served.items.insert(row, bytes);
        }
        let mut by_page = Vec::new();
        let _damaged = reader.items().for_each_source_bytes(&[row], &mut |_, bytes| {
            by_page = bytes.to_vec();
            true
        });
        let _damaged = reader.items().for_each(&[row], &mut |meta, bytes| {
            assert_eq!(bytes, by_page, "two ways of reading differ");
            if let Ok(versions) = reader.changes().list_versions(meta.handle) {
                let versions = versions.into_iter().map(|version| version.bytes).collect();
                served.versions.insert(meta.handle, versions);
            }
            true
        });
        if !by_page.is_empty() {
            assert_eq!(served.items.get(&row), Some(&by_page), "two ways of reading differ");
        }
    }
    served
}

/// Asserts that nothing is given that differs from `expected`.
#[track_caller]
fn assert_nothing_wrong_is_served(reader: &Reader, expected: &ReadResult, what: &str) {
    let served = read_everything(reader, Some(expected));
    for (row, bytes) in &served.items {
        assert!(Some(bytes) == expected.items.get(row), "{what}");
    }
    for (handle, versions) in &served.versions {
        let right = &expected.versions[handle];
        assert!(versions.iter().all(|version| right.contains(version)), "{what}");
    }
}

/// Flips a bit of a value; `None`: it has no such bit.
fn flip(value: &Value, bit: usize) -> Option<Value> {
    let flip_bytes = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let place = bit / 8 % bytes.len().max(1);
        *bytes.get_mut(place)? ^= 1 << (bit % 8);
        Some(bytes)
    };
    match value {
        Value::Integer(number) => Some(Value::Integer(number ^ (1 << (bit % 63)))),
        Value::Text(text) => Some(Value::Blob(flip_bytes(text.as_bytes())?)),
        Value::Blob(bytes) => Some(Value::Blob(flip_bytes(bytes)?)),
        Value::Null | Value::Real(_) => None,
    }
}

/// A cell of a table, and the text by which its damage has to be named.
struct Cell {
    table: &'static str,
    key_column: &'static str,
    column: &'static str,
    key: Value,
    value: Value,
    name: String,
}

impl Cell {
    fn write(&self, conn: &Connection, key: &Value, value: &Value) -> rusqlite::Result<usize> {
        // Flipped text need not be UTF-8, so it is written through a cast.
        let cast = match self.value {
            Value::Text(_) => "CAST(?2 AS TEXT)",
            _ => "?2",
        };
        let (table, column, key_column) = (self.table, self.column, self.key_column);
        let sql = format!("UPDATE {table} SET {column} = {cast} WHERE {key_column} = ?1");
        conn.execute(&sql, (key, value))
    }
}

/// The columns whose damage is found, with the key of each table and the name of a row's object.
const COLUMNS: &[(&str, &str, &[&str], &str)] = &[
    (
        "source_bytes",
        "item",
        &["bytes", "checksum", "blob_hash"],
        "SELECT item, hex(handle) FROM source_bytes JOIN item ON id = item",
    ),
    (
        "item_history",
        "id",
        &["bytes", "checksum", "blob_hash", "uid", "handle", "item", "collection"],
        "SELECT id, hex(handle) FROM item_history",
    ),
    (
        "item",
        "id",
        &["uid", "handle", "recurrence_id", "collection"],
        "SELECT id, hex(handle) FROM item",
    ),
    ("blob", "rowid", &["bytes"], "SELECT rowid, '' FROM blob"),
    (
        "calendar_context",
        "id",
        &["calendar_version", "zone_definitions", "checksum"],
        "SELECT id, 'calendar context ' || id FROM calendar_context",
    ),
    (
        "zone_definition",
        "id",
        &["bytes", "hash", "tzid", "checksum"],
        "SELECT id, 'time-zone definition' FROM zone_definition",
    ),
    (
        "collection",
        "id",
        &["properties", "properties_checksum"],
        "SELECT id, 'the properties of collection home' FROM collection",
    ),
    (
        "collection_history",
        "seq",
        &["properties", "properties_checksum"],
        "SELECT seq, 'the properties of collection home' FROM collection_history
         WHERE properties IS NOT NULL",
    ),
    ("meta", "key", &["value", "checksum"], "SELECT key, key FROM meta"),
];

/// Returns all cells of these columns that are not NULL.
fn cells(conn: &Connection) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(table, key_column, columns, sql) in COLUMNS {
        let rows: Vec<(Value, String)> = conn
            .prepare(sql)
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        for (key, name) in rows {
            for &column in columns {
                let sql = format!("SELECT {column} FROM {table} WHERE {key_column} = ?1");
                let value: Value = conn.query_row(&sql, [&key], |row| row.get(0)).unwrap();
                let is_empty = matches!(&value, Value::Null)
                    || matches!(&value, Value::Text(text) if text.is_empty());
                if !is_empty {
                    let (key, name) = (key.clone(), name.clone());
                    cells.push(Cell { table, key_column, column, key, value, name });
                }
            }
        }
    }
    cells
}

/// Returns the names of damaged objects; those of items as the hexadecimal digits of the handle.
fn fault_names(faults: &[Fault]) -> Vec<String> {
    faults.iter().filter_map(fault_name).collect()
}

fn fault_name(fault: &Fault) -> Option<String> {
    let Fault::Checksum(object) = fault else { return None };
    Some(match object {
        DamagedObject::Item { handle, .. }
        | DamagedObject::Identity { handle, .. }
        | DamagedObject::FormerVersion { handle, .. } => handle_digits(*handle),
        other => other.to_string(),
    })
}

fn handle_digits(handle: Handle) -> String {
    let letters = "0123456789abcdefghjkmnpqrstvwxyz";
    let bits = handle.to_string().chars().fold(0_u128, |bits, letter| {
        bits << 5 | letters.find(letter).expect("a letter of a handle") as u128
    });
    format!("{:016X}", bits >> 1)
}

/// Every fifth bit or so of a cell, beginning elsewhere in each cell.
fn sample_bits(cell: &Cell, place: usize) -> Vec<usize> {
    let bits = match &cell.value {
        Value::Text(text) => text.len() * 8,
        Value::Blob(bytes) => bytes.len() * 8,
        _ => 63,
    };
    (0..3).map(|n| (place * 7919 + n * bits / 3 + n) % bits).collect()
}

#[test]
fn a_flipped_bit_is_found_named_and_not_served() {
    let book = varied_book();
    book.assert_sound();
    let reader = book.reader();
    let expected = read_everything(&reader, None);
    let backup = book.sibling_path("backup.db");
    book.store.backup(&backup).unwrap();
    let good_backup = fs::read(&backup).unwrap();
    let conn = Connection::open(book.data()).unwrap();
    let (mut flips, mut seen) = (0, BTreeMap::<(&str, &str), usize>::new());
    for (place, cell) in cells(&conn).iter().enumerate() {
        for bit in sample_bits(cell, place) {
            let Some(flipped) = flip(&cell.value, bit) else { continue };
            let what = format!("{}.{} of {:?}, bit {bit}", cell.table, cell.column, cell.key);
            if cell.write(&conn, &cell.key, &flipped).is_err() {
                continue; // Two rows would have one key: SQLite finds that.
            }
            let faults = book.store.check().unwrap().faults;
            let names = fault_names(&faults);
            let is_handle = cell.column == "handle";
            assert!(
                names.iter().any(|name| is_handle || name.contains(&cell.name)),
                "{what}: {names:?} has no {}; {faults:?}",
                cell.name
            );
            assert!(!faults.iter().any(|fault| matches!(fault, Fault::Index { .. })), "{faults:?}");
            let error = book.store.backup(&backup).expect_err(&what);
            assert_eq!(error.damaged_file(), Some(&*book.data()), "{what}: {error}");
            assert!(matches!(error, Error::DamagedObject { .. }), "{what}: {error}");
            assert_eq!(fs::read(&backup).unwrap(), good_backup, "{what}");
            if !matches!(cell.table, "item" | "meta") {
                assert_nothing_wrong_is_served(&reader, &expected, &what);
            }
            cell.write(&conn, &cell.key, &cell.value).unwrap();
            flips += 1;
            *seen.entry((cell.table, cell.column)).or_default() += 1;
        }
    }
    assert!(flips > 150, "{flips}");
    for (table, _, columns, _) in COLUMNS {
        for column in *columns {
            let is_filled = !matches!((*table, *column), ("item", "recurrence_id"));
            assert!(!is_filled || seen.contains_key(&(*table, *column)), "{table}.{column}");
        }
    }
    assert_eq!(read_everything(&reader, None), expected);
    book.assert_sound();
}

#[test]
fn a_byte_changed_in_the_file_is_found() {
    let book = varied_book();
    let (scratch, dir) = book.with_store_closed(|dir| {
        let path = dir.join("data.db");
        let mut file = fs::read(&path).unwrap();
        let needle = b"Name of c\r\n";
        let places: Vec<usize> =
            (0..file.len()).filter(|at| file[*at..].starts_with(needle)).collect();
        assert!(!places.is_empty());
        for at in places {
            file[at] ^= 2;
        }
        fs::write(&path, file).unwrap();
        dir.to_path_buf()
    });
    let store = larder_store::Store::open(&dir, &create_options()).unwrap();
    let faults = store.check().unwrap().faults;
    let [Fault::Checksum(object @ DamagedObject::Item { collection, .. })] = faults.as_slice()
    else {
        panic!("{faults:?}")
    };
    assert_eq!(collection, "contacts");
    assert!(object.to_string().ends_with("in contacts"), "{object}");
    let backup = scratch.path().join("backup.db");
    let error = store.backup(&backup).unwrap_err();
    assert!(error.to_string().contains("in contacts"), "{error}");
    assert!(!backup.exists());
}

#[test]
fn exchanged_rows_are_found() {
    let book = varied_book();
    let conn = Connection::open(book.data()).unwrap();
    conn.execute_batch(
        "CREATE TEMP TABLE two AS SELECT * FROM source_bytes WHERE item IN (1, 3);
         UPDATE source_bytes SET (bytes, checksum) = (SELECT bytes, checksum FROM two
           WHERE item = 4 - source_bytes.item) WHERE item IN (1, 3);",
    )
    .unwrap();
    let faults = book.store.check().unwrap().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert_eq!(fault_names(&faults).len(), 2, "{faults:?}");
}

/// Changes a letter of the bytes of the item in this row.
fn damage_item(book: &Book, row: i64) {
    let conn = Connection::open(book.data()).unwrap();
    let sql =
        "UPDATE source_bytes SET bytes = CAST(replace(CAST(bytes AS TEXT), 'Name', 'Mame') AS BLOB)
               WHERE item = ?1";
    assert_eq!(conn.execute(sql, [row]).unwrap(), 1);
}

#[test]
fn a_rebuild_leaves_a_damaged_item_damaged() {
    let mut book = varied_book();
    damage_item(&book, 1);
    for _ in 0..2 {
        let faults = book.store.rebuild_and_check().unwrap().faults;
        let [Fault::Checksum(DamagedObject::Item { .. })] = faults.as_slice() else {
            panic!("{faults:?}")
        };
    }
    // Opening with another locale fills the sort index again.
    let options = larder_store::StoreOptions { locale: Some("sv".into()), ..create_options() };
    let book = book.reopen(&options);
    assert_eq!(book.store.check().unwrap().faults.len(), 1);
    assert!(matches!(
        book.reader().items().source_bytes(ItemRow::from_number(1)),
        Err(Error::DamagedObject { .. })
    ));
}

/// Fails unless an undo restored nothing, and names the former version of this item.
#[track_caller]
fn assert_names_former_version(undo: &UndoReport, handle: Handle) {
    assert_eq!((undo.operation, undo.items), (None, 0));
    let [UnreadableVersion { handle: named, object: DamagedObject::FormerVersion { .. } }] =
        undo.unreadable.as_slice()
    else {
        panic!("{undo:?}")
    };
    assert_eq!(*named, handle);
}

#[test]
fn a_damaged_item_can_be_replaced_removed_and_purged() {
    let good = card("a", "Name of a", "TEL:+43 664 123\r\nX-NEEDLE:find me\r\n");
    let handle_of = |book: &Book| book.reader().items().find_by_uid(None, "a").unwrap()[0].handle;
    // Replaced by its own good bytes: the item is sound again, its former version is not.
    let mut book = varied_book();
    damage_item(&book, 1);
    let (replacement, _) = book.put(&good);
    book.store.refresh().unwrap();
    let faults = book.store.check().unwrap().faults;
    let [Fault::Checksum(DamagedObject::FormerVersion { .. })] = faults.as_slice() else {
        panic!("{faults:?}")
    };
    assert_eq!(book.contents()[&("contacts".into(), "a".into())], good);
    let undo = book.store.undo(replacement, 1).unwrap();
    assert_names_former_version(&undo, handle_of(&book));
    assert_eq!(book.contents()[&("contacts".into(), "a".into())], good);
    let handle = handle_of(&book);
    book.store.purge(&mut Operation::new("purge", "", 1), &[handle]).unwrap();
    book.assert_sound();
    // Removed, and purged at once.
    for is_purged in [false, true] {
        let mut book = varied_book();
        damage_item(&book, 1);
        let handle = handle_of(&book);
        match is_purged {
            true => drop(book.store.purge(&mut Operation::new("purge", "", 1), &[handle]).unwrap()),
            false => drop(book.remove(handle)),
        }
        book.store.refresh().unwrap();
        let faults = book.store.check().unwrap().faults;
        assert_eq!(faults.len(), usize::from(!is_purged), "{faults:?}");
    }
}

#[test]
fn the_same_bytes_mend_a_blob_and_a_definition() {
    let mut book = varied_book();
    let conn = Connection::open(book.data()).unwrap();
    conn.execute(
        "UPDATE blob SET bytes = CAST(replace(CAST(bytes AS TEXT), 'FN', 'FM') AS BLOB)",
        [],
    )
    .unwrap();
    conn.execute("UPDATE zone_definition SET tzid = 'Oun' WHERE tzid = 'Own'", []).unwrap();
    drop(conn);
    assert!(book.store.check().unwrap().faults.len() > 4);
    for fill in [('A', 70_000), ('B', 80_000)] {
        let bytes = large_card("large", fill.0, fill.1);
        book.put_into("copies", &bytes);
    }
    for context in 1..4 {
        put_event(&mut book, &format!("new{context}"), context, "Another");
    }
    book.assert_sound();
}

/// Imports, undoes and trims with checksums of former versions in place.
#[test]
fn checksums_stay_right_through_undo_and_restore() {
    let mut book = varied_book();
    let operations: Vec<OperationId> = {
        let reader = book.reader();
        let listed = reader.changes().list_operations(None, 100).unwrap();
        listed.into_iter().map(|operation| operation.id).collect()
    };
    for id in operations {
        book.store.undo(id, 1).unwrap();
        book.assert_sound();
    }
    let mut book = varied_book();
    let before = book.contents();
    let backup = book.sibling_path("backup.db");
    book.store.backup(&backup).unwrap();
    book.put(&card("a", "Later", ""));
    book.store.restore(&backup).unwrap();
    assert_eq!(book.contents(), before);
    book.assert_sound();
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let mut book = varied_book();
    let backup = book.sibling_path("backup.db");
    book.store.backup(&backup).unwrap();
    let conn = Connection::open(&backup).unwrap();
    conn.execute(
        "UPDATE item_history SET bytes = CAST(replace(CAST(bytes AS TEXT), 'Former', 'Farmer') AS BLOB)",
        [],
    )
    .unwrap();
    drop(conn);
    book.put(&card("later", "Later", ""));
    let before = book.contents();
    let error = book.store.restore(&backup).unwrap_err();
    assert!(
        matches!(
            &error,
            Error::DamagedObject { path, object: DamagedObject::FormerVersion { .. } }
                if *path == backup
        ),
        "{error}"
    );
    assert_eq!(book.contents(), before);
}

#[test]
fn a_damaged_store_is_replaced_by_a_backup() {
    let book = varied_book();
    let (before, backup) = (book.contents(), book.sibling_path("backup.db"));
    book.store.backup(&backup).unwrap();
    damage_item(&book, 1);
    let report = DataDirectory::new(book.dir()).restore(&create_options(), &backup).unwrap();
    assert!(report.previous_copy.unwrap().exists());
    let book = book.reopen(&create_options());
    assert_eq!(book.contents(), before);
    book.assert_sound();
}

/// A damaged value that says how to read the file is named, and not called another version.
#[test]
fn a_damaged_digest_is_damage() {
    let book = varied_book();
    let (_scratch, dir) = book.with_store_closed(|dir| {
        let conn = Connection::open(dir.join("data.db")).unwrap();
        conn.execute("UPDATE meta SET value = value + 1 WHERE key = 'schema_digest'", []).unwrap();
        dir.to_path_buf()
    });
    let error = Reader::open(&dir).unwrap_err();
    let expect = "the checksum of the value schema_digest in table meta is wrong";
    assert!(error.to_string().contains(expect), "{error}");
}

#[test]
fn a_conflicting_writer_does_not_hide_damage() {
    let mut book = varied_book();
    damage_item(&book, 1);
    let change = put(&book.store, "contacts", &card("a", "New", ""), Precondition::Absent);
    let (_, applied) = book.apply(vec![change]);
    assert!(matches!(applied.outcomes[0], larder_store::ChangeOutcome::Conflict(..)));
    assert_eq!(book.store.check().unwrap().faults.len(), 1);
    let remove = |handle| BatchChange::Remove(handle, Precondition::Any);
    let handle = book.reader().items().find_by_uid(None, "a").unwrap()[0].handle;
    let (removal, _) = book.apply(vec![remove(handle)]);
    book.store.refresh().unwrap();
    assert_names_former_version(&book.store.undo(removal, 1).unwrap(), handle);
}
