//! The table `meta`: single values of a store by key; the documentation of `schema` lists the keys.
//!
//! Only this module writes the table, because each value has a checksum, and reads it by key.
//! Separate from `store` because every module that reads or writes uses it.

use crate::checksum::Checksum;
use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{OptionalExtension as _, Row};

/// The key of the locale of the sort keys.
pub(crate) const LOCALE_KEY: &str = "collation_locale";
/// The key of the random id of this incarnation of the store.
pub(crate) const EPOCH_KEY: &str = "epoch";

/// Reads the number with this key.
pub(crate) fn read_meta_number(tx: &ReadTransaction<'_>, key: &str) -> DatabaseResult<i64> {
    find_meta_number(tx, key)?.ok_or_else(|| DatabaseError::missing_meta(key))
}

/// Reads the number with this key; `None`: there is none.
pub(crate) fn find_meta_number(tx: &ReadTransaction<'_>, key: &str) -> DatabaseResult<Option<i64>> {
    match find_meta_value(tx, key)? {
        Some(Value::Integer(number)) => Ok(Some(number)),
        Some(_) => Err(DatabaseError::missing_meta(key)),
        None => Ok(None),
    }
}

/// Reads the text with this key.
pub(crate) fn read_meta_text(tx: &ReadTransaction<'_>, key: &str) -> DatabaseResult<String> {
    match find_meta_value(tx, key)? {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(DatabaseError::missing_meta(key)),
    }
}

/// Reads the locale of the sort keys.
pub(crate) fn read_locale(tx: &ReadTransaction<'_>) -> DatabaseResult<String> {
    read_meta_text(tx, LOCALE_KEY)
}

/// Reads the state of an index with this key; `None` if it is missing or damaged: the index is then
/// filled again.
pub(crate) fn read_index_state(
    tx: &ReadTransaction<'_>,
    key: &str,
) -> DatabaseResult<Option<String>> {
    match find_meta_value(tx, key) {
        Ok(Some(Value::Text(state))) => Ok(Some(state)),
        Ok(_) | Err(DatabaseError::DamagedObject(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn find_meta_value(tx: &ReadTransaction<'_>, key: &str) -> DatabaseResult<Option<Value>> {
    let found = tx
        .prepare_cached("SELECT key, value, checksum FROM meta WHERE key = ?1")?
        .query_row([key], sound_value)
        .optional()?;
    match found {
        Some(None) => Err(damaged_value_error(key)),
        found => Ok(found.flatten()),
    }
}

/// Returns the value of a row with the columns `key, value, checksum`; `None`: it does not match
/// its checksum.
fn sound_value(row: &Row<'_>) -> rusqlite::Result<Option<Value>> {
    if is_sound(row)? { row.get(1).map(Some) } else { Ok(None) }
}

fn is_sound(row: &Row<'_>) -> rusqlite::Result<bool> {
    let key = row.get_ref(0)?;
    let Ok(key) = key.as_str() else { return Ok(false) };
    Ok(row.get(2).ok() == Some(Checksum::from_meta_value(key, row.get_ref(1)?)))
}

fn damaged_value_error(key: &str) -> DatabaseError {
    DatabaseError::DamagedObject(DamagedObject::MetaValue { key: key.to_string() })
}

/// Returns whether a value is damaged. A table without checksums is not.
pub(crate) fn is_meta_value_damaged(tx: &ReadTransaction<'_>, key: &str) -> bool {
    matches!(find_meta_value(tx, key), Err(DatabaseError::DamagedObject(_)))
}

/// Returns the damaged values.
pub(crate) fn find_damaged_values(tx: &ReadTransaction<'_>) -> DatabaseResult<Vec<DamagedObject>> {
    let mut select = tx.prepare_cached("SELECT key, value, checksum FROM meta")?;
    let (mut rows, mut damaged) = (select.query([])?, Vec::new());
    while let Some(row) = rows.next()? {
        if !is_sound(row)? {
            let key = row.get_ref(0)?.as_bytes().unwrap_or_default();
            let key = String::from_utf8_lossy(key).into_owned();
            damaged.push(DamagedObject::MetaValue { key });
        }
    }
    Ok(damaged)
}

/// Returns whether there is a value with this key, which may be damaged.
pub(crate) fn has_meta(tx: &ReadTransaction<'_>, key: &str) -> rusqlite::Result<bool> {
    let mut select = tx.prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?;
    Ok(select.query_row([key], |_| Ok(())).optional()?.is_some())
}

/// Writes the value with this key.
pub(crate) fn write_meta(
    tx: &WriteTransaction<'_>,
    key: &str,
    value: impl Into<Value>,
) -> rusqlite::Result<()> {
    let value = value.into();
    let checksum = Checksum::from_meta_value(key, ValueRef::from(&value));
    tx.prepare_cached("INSERT OR REPLACE INTO meta VALUES(?1, ?2, ?3)")?
        .execute((key, value, checksum))
        .map(drop)
}

/// Deletes the value with this key, if there is one.
pub(crate) fn delete_meta(tx: &WriteTransaction<'_>, key: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM meta WHERE key = ?1")?.execute([key]).map(drop)
}

/// Gives the store a new epoch, so that older cursors expire.
pub(crate) fn write_new_epoch(tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
    let epoch: String = tx.query_row("SELECT lower(hex(randomblob(8)))", [], |row| row.get(0))?;
    write_meta(tx, EPOCH_KEY, epoch)
}

/// All values of `meta`, read by one statement.
#[derive(Debug)]
pub(crate) struct MetaTable(Vec<MetaEntry>);

#[derive(Debug)]
struct MetaEntry {
    key: String,
    /// `None`: it does not match its checksum.
    value: Option<Value>,
}

impl MetaTable {
    /// Reads the table.
    pub(crate) fn read(tx: &ReadTransaction<'_>) -> rusqlite::Result<MetaTable> {
        let mut select = tx.prepare_cached("SELECT key, value, checksum FROM meta")?;
        select
            .query_map([], |row| {
                let key = row.get_ref(0)?.as_bytes().unwrap_or_default();
                let key = String::from_utf8_lossy(key).into_owned();
                Ok(MetaEntry { key, value: sound_value(row)? })
            })?
            .collect::<rusqlite::Result<_>>()
            .map(MetaTable)
    }

    fn value(&self, key: &str) -> DatabaseResult<&Value> {
        match self.0.iter().find(|entry| entry.key == key) {
            Some(entry) => entry.value.as_ref().ok_or_else(|| damaged_value_error(key)),
            None => Err(DatabaseError::missing_meta(key)),
        }
    }

    /// Returns whether there is a value with this key, which may be damaged.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.0.iter().any(|entry| entry.key == key)
    }

    /// Returns the bytes with this key.
    pub(crate) fn bytes(&self, key: &str) -> DatabaseResult<&[u8]> {
        match self.value(key)? {
            Value::Blob(bytes) => Ok(bytes),
            _ => Err(DatabaseError::missing_meta(key)),
        }
    }

    /// Returns the text with this key.
    pub(crate) fn text(&self, key: &str) -> DatabaseResult<&str> {
        match self.value(key)? {
            Value::Text(text) => Ok(text),
            _ => Err(DatabaseError::missing_meta(key)),
        }
    }

    /// Returns the state of an index with this key; empty if it is missing or damaged: the index is
    /// then not used, and filled again.
    pub(crate) fn index_state(&self, key: &str) -> &str {
        self.text(key).unwrap_or_default()
    }

    /// Returns the number with this key.
    pub(crate) fn number(&self, key: &str) -> DatabaseResult<i64> {
        match self.value(key)? {
            Value::Integer(number) => Ok(*number),
            _ => Err(DatabaseError::missing_meta(key)),
        }
    }
}
