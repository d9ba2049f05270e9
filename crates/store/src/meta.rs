//! The table `meta`: single values of a store by key; the documentation of `schema` lists the keys.
//!
//! Separate from `store` because every module that reads or writes uses it.

use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use rusqlite::types::Value;

/// Reads the number with this key.
pub(crate) fn read_meta_number(tx: &ReadTransaction<'_>, key: &str) -> DatabaseResult<i64> {
    tx.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?
        .ok_or_else(|| DatabaseError::missing_meta(key))
}

/// Writes the number with this key, which is there already.
pub(crate) fn set_meta(tx: &WriteTransaction<'_>, key: &str, value: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1")?.execute((key, value)).map(drop)
}

/// All values of `meta`, read by one statement.
#[derive(Debug)]
pub(crate) struct MetaTable(Vec<(String, Value)>);

impl MetaTable {
    /// Reads the table.
    pub(crate) fn read(tx: &ReadTransaction<'_>) -> rusqlite::Result<MetaTable> {
        let mut select = tx.prepare_cached("SELECT key, value FROM meta")?;
        select
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()
            .map(MetaTable)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns whether there is a value with this key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Returns the bytes with this key; `None`: there are none.
    pub(crate) fn bytes(&self, key: &str) -> Option<&[u8]> {
        match self.value(key) {
            Some(Value::Blob(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the text with this key, or an empty text if there is none.
    pub(crate) fn text(&self, key: &str) -> &str {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns the number with this key.
    pub(crate) fn number(&self, key: &str) -> DatabaseResult<i64> {
        match self.value(key) {
            Some(Value::Integer(number)) => Ok(*number),
            _ => Err(DatabaseError::missing_meta(key)),
        }
    }
}

/// Reads the locale of the sort keys.
pub(crate) fn read_locale(tx: &ReadTransaction<'_>) -> DatabaseResult<String> {
    tx.query_row("SELECT value FROM meta WHERE key = 'collation_locale'", [], |row| row.get(0))
        .optional()?
        .ok_or_else(|| DatabaseError::missing_meta("collation_locale"))
}
