//! A changed value in any column of the tables of truth is found by a check and by a backup, and by
//! each read of the whole item.

use crate::book::{Book, card};
use crate::checksums::varied_book;
use crate::salvage::{read_dump, salvage_and_dump, salvage_and_restore};
use larder_store::{
    BatchChange, CalendarContext, CollectionType, DamagedObject, Error, Fault, ItemPut, ItemRow,
    Kind, Precondition, SalvageLoss,
};
use rusqlite::Connection;
use rusqlite::types::Value;

/// Columns whose change neither a check nor a backup finds, with the reason.
const UNCOVERED: &[(&str, &str, &str)] = &[
    ("item_history", "id", "names the row within a transaction only; the place identifies it"),
    ("item_history", "schedule", "derived from bytes; only views that are open read it"),
    ("schedule_history", "seq", "derived, like idx_schedule; only views that are open read it"),
    ("schedule_history", "handle", "derived, like idx_schedule"),
    ("schedule_history", "schedule", "derived, like idx_schedule"),
];

/// Columns whose change a check finds, but a backup copies, with the reason.
const FOUND_BY_CHECK_ONLY: &[(&str, &str, &str)] = &[
    ("item", "stored_fields", "derived: a rebuild fills it again"),
    ("blob", "ref_count", "follows from other rows"),
    ("calendar_context", "ref_count", "follows from other rows"),
    ("handle_collision", "collection", "follows from the row of the item"),
    ("handle_collision", "uid_key", "follows from the row of the item"),
    ("handle_collision", "item", "follows from the row of the item"),
];

/// A value of a column, with the key of its row.
struct ColumnValue {
    table: String,
    column: String,
    keys: Vec<(String, Value)>,
    value: Value,
}

impl ColumnValue {
    /// Writes a value where the column has `present`.
    fn write(&self, conn: &Connection, present: &Value, value: &Value) -> rusqlite::Result<usize> {
        let condition: Vec<String> =
            self.keys.iter().zip(2..).map(|((name, _), n)| format!("{name} IS ?{n}")).collect();
        let sql = format!(
            "UPDATE {} SET {} = ?1 WHERE {}",
            self.table,
            self.column,
            condition.join(" AND ")
        );
        let keys =
            self.keys.iter().map(|(name, key)| if *name == self.column { present } else { key });
        let parameters: Vec<&Value> = std::iter::once(value).chain(keys).collect();
        conn.execute(&sql, rusqlite::params_from_iter(parameters))
    }

    /// Returns other values of the column, one of which every constraint allows.
    fn other_values(&self) -> Vec<Value> {
        let change = |bytes: &[u8], bit: u8| {
            let mut bytes = bytes.to_vec();
            match bytes.first_mut() {
                Some(first) => *first ^= 1 << bit,
                None => bytes.push(b'x'),
            }
            bytes
        };
        let value = |bit: u8| match &self.value {
            Value::Integer(number) => Value::Integer(number ^ (1 << bit)),
            Value::Text(text) => {
                Value::Text(String::from_utf8(change(text.as_bytes(), bit)).expect("ASCII"))
            }
            Value::Blob(bytes) => Value::Blob(change(bytes, bit)),
            other => panic!("{other:?}"),
        };
        (0..6).map(value).collect()
    }
}

fn select<T>(
    conn: &Connection,
    sql: &str,
    read: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    conn.prepare(sql).unwrap().query_map([], read).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Returns the columns of the tables that are not indexes, each with the columns of its key.
fn list_columns(conn: &Connection) -> Vec<(String, String, Vec<String>)> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'idx_*'
               AND name NOT GLOB 'sqlite_*'";
    let mut columns = Vec::new();
    for table in select(conn, sql, |row| row.get::<_, String>(0)) {
        let sql = format!("SELECT name, pk FROM pragma_table_info('{table}')");
        let found = select(conn, &sql, |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)));
        let keys: Vec<String> =
            found.iter().filter(|(_, pk)| *pk > 0).map(|(name, _)| name.clone()).collect();
        let keys = if keys.is_empty() { vec!["rowid".to_string()] } else { keys };
        columns.extend(found.into_iter().map(|(name, _)| (table.clone(), name, keys.clone())));
    }
    columns
}

/// Returns the first and the last value of a column that are not NULL.
fn sample_values(
    conn: &Connection,
    table: &str,
    column: &str,
    keys: &[String],
) -> Vec<ColumnValue> {
    let mut values = Vec::new();
    for order in ["ASC", "DESC"] {
        let sql = format!(
            "SELECT {column}, {} FROM {table} WHERE {column} IS NOT NULL ORDER BY {} {order} LIMIT 1",
            keys.join(", "),
            keys[0]
        );
        let mut select = conn.prepare(&sql).unwrap();
        let mut rows = select.query([]).unwrap();
        let Some(row) = rows.next().unwrap() else { continue };
        let keys =
            keys.iter().zip(1..).map(|(key, n)| (key.clone(), row.get(n).unwrap())).collect();
        values.push(ColumnValue {
            table: table.to_string(),
            column: column.to_string(),
            keys,
            value: row.get(0).unwrap(),
        });
    }
    values
}

/// A store with rows in each table.
fn full_book() -> Book {
    let mut book = varied_book();
    let (operation, _) = book.put(&card("undone", "Undone", ""));
    book.store.undo(operation, 1).unwrap();
    let conn = Connection::open(book.data()).unwrap();
    conn.execute_batch(
        "INSERT INTO handle_collision SELECT collection, uid, id FROM item WHERE uid = 'c'",
    )
    .unwrap();
    book
}

#[test]
fn a_change_of_any_column_is_found() {
    let book = full_book();
    assert_eq!(book.store.check().unwrap().faults, []);
    let conn = Connection::open(book.data()).unwrap();
    let backup = book.sibling_path("backup.db");
    let is_in = |list: &[(&str, &str, &str)], table: &str, column: &str| {
        list.iter().any(|(known, name, _)| (*known, *name) == (table, column))
    };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (table, column, keys) in list_columns(&conn) {
        let is_uncovered = is_in(UNCOVERED, &table, &column);
        let is_copied = is_uncovered || is_in(FOUND_BY_CHECK_ONLY, &table, &column);
        let values = sample_values(&conn, &table, &column, &keys);
        if values.is_empty() && !is_uncovered {
            wrong.push(format!("{table}.{column}: no value to change"));
        }
        for cell in values {
            let others = cell.other_values();
            let changed = others.iter().find(|other| cell.write(&conn, &cell.value, other).is_ok());
            let changed = changed.expect("a change that the constraints allow");
            let faults = book.store.check().unwrap().faults;
            let is_copied_now = book.store.backup(&backup).is_ok();
            if (faults.is_empty(), is_copied_now) != (is_uncovered, is_copied) {
                wrong.push(format!(
                    "{table}.{column}: check {faults:?}, a backup was made: {is_copied_now}"
                ));
            }
            let is_item = matches!(table.as_str(), "item" | "source_bytes") && !is_copied;
            if is_item && !faults.iter().any(names_item) {
                wrong.push(format!("{table}.{column}: no item is named: {faults:?}"));
            }
            assert_eq!(cell.write(&conn, changed, &cell.value).unwrap(), 1);
            tried += 1;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(tried > 120, "{tried}");
    assert_eq!(book.store.check().unwrap().faults, []);
}

fn names_item(fault: &Fault) -> bool {
    let Fault::Checksum(object) = fault else { return false };
    matches!(object, DamagedObject::Item { .. } | DamagedObject::Identity { .. })
}

#[test]
fn a_read_of_an_item_verifies_its_row() {
    let changes = [
        "kind = 66",
        "kind = 3",
        "calendar_context = 2",
        "calendar_context = NULL",
        "uid_origin = 2",
        "seq = 77",
        "ordinal = 77",
        "recurrence_id = '20260101'",
    ];
    for change in changes {
        let book = varied_book();
        let conn = Connection::open(book.data()).unwrap();
        let id: i64 =
            conn.query_row("SELECT id FROM item WHERE uid = 'e1'", [], |row| row.get(0)).unwrap();
        conn.execute(&format!("UPDATE item SET {change} WHERE id = {id}"), []).unwrap();
        let reader = book.reader();
        let row = ItemRow::from_number(id);
        let mut passed = 0;
        let read = reader.items().for_each(&[row], &mut |_, _| {
            passed += 1;
            true
        });
        assert!(matches!(read, Err(Error::DamagedObject { .. })), "{change}: {read:?}");
        assert_eq!(passed, 0, "{change}");
        if !change.starts_with("recurrence_id") {
            let read = reader.items().get("home", "e1").map(|found| found.is_some());
            assert!(matches!(read, Err(Error::DamagedObject { .. })), "{change}: {read:?}");
        }
    }
}

/// The row of an item follows from its bytes, also its kind; the item is named.
#[test]
fn a_changed_row_is_made_again_by_a_salvage() {
    for change in ["kind = 66", "kind = 3", "uid_origin = 2", "calendar_context = NULL"] {
        let book = varied_book();
        let before = book.contents();
        let conn = Connection::open(book.data()).unwrap();
        conn.execute(&format!("UPDATE item SET {change} WHERE uid = 'e2'"), []).unwrap();
        drop(conn);
        let (report, contents) = salvage_and_restore(&book.dir());
        let names_item = |loss: &SalvageLoss| {
            matches!(loss, SalvageLoss::Changed(DamagedObject::Item { collection, .. })
                if collection == "home")
        };
        assert!(report.losses.iter().any(names_item), "{change}: {:?}", report.losses);
        assert_eq!(contents, before, "{change}");
    }
}

/// The bytes of labels have neither a UID nor a mark of their kind.
#[test]
fn a_changed_row_of_labels_is_made_again_by_a_salvage() {
    for change in ["kind = 3", "uid_origin = 1", "ordinal = ordinal + 64"] {
        let mut book = Book::new();
        for (uid, labels) in [("m1@example.org", "tax\n"), ("m2@example.org", "todo\n")] {
            let bytes = labels.as_bytes().to_vec();
            let context = CalendarContext::default();
            let parsed = book.store.extractor().parse_item(Kind::Labels, bytes, &context);
            let put = ItemPut {
                collection: CollectionType::Labels.default_collection().into(),
                uid: uid.to_string(),
                derived_uid: false,
                parsed: parsed.unwrap(),
                precondition: Precondition::Any,
            };
            book.apply(vec![BatchChange::Put(put)]);
        }
        let (_scratch, (before, (report, after))) = book.with_store_closed(|dir| {
            let data = dir.join("data.db");
            let before = read_dump(&data);
            let conn = Connection::open(&data).unwrap();
            let sql = format!("UPDATE item SET {change} WHERE uid = 'm2@example.org'");
            assert_eq!(conn.execute(&sql, []).unwrap(), 1);
            drop(conn);
            (before, salvage_and_dump(dir))
        });
        let [SalvageLoss::Changed(DamagedObject::Item { collection, .. })] = &report.losses[..]
        else {
            panic!("{change}: {:?}", report.losses);
        };
        assert_eq!(collection, CollectionType::Labels.default_collection(), "{change}");
        let [before, after] = [before, after].map(|dump| {
            let items = dump.into_iter().filter(|(table, _)| *table == "item");
            // A changed place in the batch is not known.
            let columns = items.map(|(_, mut row)| (row.remove(7), row).1);
            columns.collect::<Vec<_>>()
        });
        assert_eq!(before, after, "{change}");
    }
}
