//! The tables of truth, and the rows that they can have.
//!
//! A row in a page that no tree leads to has no table name: its shape, and its checksum where the
//! table has one, say where it belongs.

use super::btree::Record;
use crate::checksum::Checksum;
use crate::row_ids::{CalendarContextRow, ItemRow, ZoneDefinitionRow};
use rusqlite::types::{Value, ValueRef};
use sha2::{Digest as _, Sha256};

/// A table of truth.
#[derive(Debug)]
pub(super) struct TableSpec {
    pub(super) name: &'static str,
    /// The types of the columns: `k` is the row id, which the record has as NULL; `i`, `t` and `b`
    /// are integer, text and blob, in capitals also NULL; `a` is any type.
    shape: &'static str,
    /// Whether the table has row ids.
    pub(super) has_row_ids: bool,
    /// Columns that are derived, and are not copied.
    derived: &'static [usize],
    /// Whether rows in stray pages can be recognised.
    pub(super) is_recognisable: bool,
}

const fn table(name: &'static str, shape: &'static str) -> TableSpec {
    TableSpec { name, shape, has_row_ids: true, derived: &[], is_recognisable: true }
}

/// The tables of truth. `schedule_history` is not among them: it is of use only with the schedules
/// of the same program, and is marked as incomplete.
pub(super) const TABLES: &[TableSpec] = &[
    TableSpec { has_row_ids: false, ..table("meta", "tai") },
    table("collection", "kbtiiitBIi"),
    TableSpec { derived: &[9], ..table("item", "kiittibiiBIi") },
    // An entry of the index `item_override` looks the same.
    TableSpec { has_row_ids: false, is_recognisable: false, ..table("handle_collision", "iti") },
    table("source_bytes", "kBBi"),
    table("blob", "bib"),
    table("calendar_context", "kitii"),
    table("zone_definition", "kbtbi"),
    table("operation", "kttiiiiiIIi"),
    table("batch", "kii"),
    TableSpec { derived: &[16], ..table("item_history", "kiibiiiiTTiBBIIIBi") },
    TableSpec { has_row_ids: false, ..table("collection_history", "iiiTitBIi") },
];

/// The indexes that have an entry for each row of a table of truth with row ids: they tell whether
/// rows are missing.
pub(super) const INDEXES: &[(&str, &str)] = &[
    ("sqlite_autoindex_collection_1", "collection"),
    ("item_handle", "item"),
    ("item_seq", "item"),
    ("item_collection", "item"),
    ("sqlite_autoindex_blob_1", "blob"),
    ("sqlite_autoindex_calendar_context_1", "calendar_context"),
    ("sqlite_autoindex_zone_definition_1", "zone_definition"),
    ("item_history_seq", "item_history"),
    ("item_history_handle", "item_history"),
];

impl TableSpec {
    /// Returns the statement that inserts a row, unless there is one with its key.
    pub(super) fn insert_sql(&self) -> String {
        let places: Vec<String> = (1..=self.shape.len()).map(|n| format!("?{n}")).collect();
        format!("INSERT OR IGNORE INTO {} VALUES({})", self.name, places.join(", "))
    }

    /// Returns the columns of a row of this table, without the derived ones; `None`: the record has
    /// another shape.
    pub(super) fn to_row(&self, record: &Record) -> Option<Vec<Value>> {
        if record.values.len() != self.shape.len() {
            return None;
        }
        let mut row = Vec::with_capacity(self.shape.len());
        for (index, (kind, value)) in self.shape.bytes().zip(&record.values).enumerate() {
            let is_right = match (kind.to_ascii_lowercase(), value) {
                (b'k', Value::Null) | (b'i', Value::Integer(_)) => true,
                (b't', Value::Text(_)) | (b'b', Value::Blob(_)) => true,
                (b'a', value) => *value != Value::Null,
                (_, Value::Null) => kind.is_ascii_uppercase(),
                _ => false,
            };
            if !is_right {
                return None;
            }
            row.push(match kind {
                b'k' => Value::Integer(record.row_id),
                _ if self.derived.contains(&index) => Value::Null,
                _ => value.clone(),
            });
        }
        Some(row)
    }

    /// Returns whether a row of a stray page belongs to this table: its checksum is right, or the
    /// table has none.
    pub(super) fn is_own_row(&self, row: &[Value]) -> bool {
        match (self.name, row) {
            ("meta", [Value::Text(key), value, Value::Integer(sum)]) => {
                Checksum::from_meta_value(key, ValueRef::from(value)).to_number() == *sum
            }
            (
                "source_bytes",
                [Value::Integer(item), Value::Blob(bytes), _, Value::Integer(sum)],
            ) => {
                let item = ItemRow::from_number(*item);
                Checksum::from_item(item, bytes).to_number() == *sum
            }
            ("source_bytes", [_, Value::Null, Value::Blob(hash), _]) => hash.len() == 32,
            ("blob", [Value::Blob(hash), _, Value::Blob(bytes)]) => {
                Sha256::digest(bytes).as_slice() == hash
            }
            (
                "calendar_context",
                [
                    Value::Integer(id),
                    Value::Integer(version),
                    Value::Text(zones),
                    _,
                    Value::Integer(sum),
                ],
            ) => {
                let row = CalendarContextRow::from_number(*id);
                Checksum::from_calendar_context(row, *version, zones).to_number() == *sum
            }
            (
                "zone_definition",
                [
                    Value::Integer(id),
                    Value::Blob(hash),
                    Value::Text(tzid),
                    Value::Blob(bytes),
                    Value::Integer(sum),
                ],
            ) => {
                let row = ZoneDefinitionRow::from_number(*id);
                Checksum::from_zone_definition(row, hash, tzid, bytes).to_number() == *sum
            }
            ("meta" | "source_bytes" | "blob" | "calendar_context" | "zone_definition", _) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::WriteConnection;
    use std::path::Path;

    /// Returns the shape of a table as SQLite describes it.
    fn schema_shape(conn: &WriteConnection, table: &TableSpec) -> String {
        let tx = conn.autocommit_read();
        let sql = "SELECT type, \"notnull\", pk FROM pragma_table_info(?1)";
        let mut select = tx.prepare_cached(sql).expect("a statement");
        let columns = select
            .query_map([table.name], |row| {
                let (kind, is_required, key): (String, bool, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?);
                let letter = match kind.as_str() {
                    "INTEGER" if key > 0 && table.has_row_ids => 'k',
                    kind => kind.chars().next().unwrap_or('?').to_ascii_lowercase(),
                };
                let is_nullable = !is_required && key == 0;
                Ok(if is_nullable { letter.to_ascii_uppercase() } else { letter })
            })
            .expect("columns");
        columns.collect::<rusqlite::Result<String>>().expect("columns")
    }

    #[test]
    fn the_tables_are_those_of_the_schema() {
        let conn = WriteConnection::open(Path::new(":memory:")).expect("a database");
        let tx = conn.begin_write().expect("a transaction");
        crate::schema::create_tables(&tx, crate::StoreFile::Data, "und").expect("the tables");
        for table in TABLES {
            assert_eq!(table.shape, schema_shape(&conn, table), "{}", table.name);
        }
        let sql = "SELECT name FROM sqlite_schema
                   WHERE type = 'index' AND coalesce(sql, '') NOT LIKE '% WHERE %'
                     AND tbl_name NOT LIKE 'idx_%' AND name <> 'item_override'";
        let mut select = tx.prepare_cached(sql).expect("a statement");
        let names = select.query_map([], |row| row.get::<_, String>(0)).expect("indexes");
        for name in names.map(|name| name.expect("a name")) {
            let is_known = INDEXES.iter().any(|(index, _)| *index == name);
            let table = TABLES.iter().find(|table| name.contains(table.name) && !table.has_row_ids);
            assert!(is_known || table.is_some() || name.contains("schedule_history"), "{name}");
        }
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'idx_%'";
        let mut select = tx.prepare_cached(sql).expect("a statement");
        let names = select.query_map([], |row| row.get::<_, String>(0)).expect("tables");
        for name in names.map(|name| name.expect("a name")) {
            let is_known = TABLES.iter().any(|table| table.name == name);
            assert!(is_known || name == "schedule_history", "{name} is not salvaged");
        }
    }
}
