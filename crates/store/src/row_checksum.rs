//! Checksums of whole rows: which columns of which tables they cover, and the statements that
//! compare and write them.
//!
//! Separate from `checksum`, which computes over values that the caller has: writers of items use
//! only that, because a new item must not cost another statement. The rows of the other tables are
//! few, so their checksums are computed from the stored row after each change of it.

use crate::Seq;
use crate::checksum::{Checksum, damaged_item_error};
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::write_transaction::WriteTransaction;
use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};

/// A table whose rows have a checksum.
pub(crate) struct CheckedTable {
    name: &'static str,
    /// The columns that the checksum covers; the first ones are the key.
    columns: &'static [&'static str],
    key_columns: usize,
    checksum_column: &'static str,
    rule: ChecksumRule,
}

/// The way in which a checksum is made from the covered columns.
enum ChecksumRule {
    /// All columns together.
    Columns,
    /// The last column is the place of an item in its batch.
    Item,
    /// The last columns are the place of a former version in the history.
    Version,
}

const ITEM_COLUMNS: &[&str] = &[
    "id",
    "handle",
    "kind",
    "collection",
    "uid",
    "uid_origin",
    "seq",
    "recurrence_id",
    "calendar_context",
    "ordinal",
];

/// The number of columns that an item and a former version of it have in common.
pub(crate) const VERSION_COLUMNS: usize = 9;

pub(crate) const ITEM: CheckedTable = CheckedTable {
    name: "item",
    columns: ITEM_COLUMNS,
    key_columns: 1,
    checksum_column: "row_checksum",
    rule: ChecksumRule::Item,
};

pub(crate) const ITEM_HISTORY: CheckedTable = CheckedTable {
    name: "item_history",
    columns: &[
        "item",
        "handle",
        "kind",
        "collection",
        "uid",
        "uid_origin",
        "since",
        "recurrence_id",
        "calendar_context",
        "seq",
        "ordinal",
        "removed",
    ],
    // The key is the row id, which is not covered: `seq` and `ordinal` identify a version.
    key_columns: 0,
    checksum_column: "row_checksum",
    rule: ChecksumRule::Version,
};

pub(crate) const COLLECTION: CheckedTable = CheckedTable {
    name: "collection",
    columns: &["id", "handle_key", "name", "type", "seq", "removed", "index_config"],
    key_columns: 1,
    checksum_column: "checksum",
    rule: ChecksumRule::Columns,
};

pub(crate) const COLLECTION_HISTORY: CheckedTable = CheckedTable {
    name: "collection_history",
    columns: &["seq", "ordinal", "collection", "name", "removed", "index_config"],
    key_columns: 2,
    checksum_column: "checksum",
    rule: ChecksumRule::Columns,
};

pub(crate) const OPERATION: CheckedTable = CheckedTable {
    name: "operation",
    columns: &[
        "id",
        "verb",
        "detail",
        "started_ms",
        "store_age_ms",
        "added",
        "updated",
        "removed",
        "undoes",
        "undone_by",
    ],
    key_columns: 1,
    checksum_column: "checksum",
    rule: ChecksumRule::Columns,
};

pub(crate) const BATCH: CheckedTable = CheckedTable {
    name: "batch",
    columns: &["seq", "operation"],
    key_columns: 1,
    checksum_column: "checksum",
    rule: ChecksumRule::Columns,
};

/// All tables whose rows have a checksum, but for those whose checksum covers bytes.
pub(crate) const CHECKED_TABLES: &[&CheckedTable] =
    &[&COLLECTION, &COLLECTION_HISTORY, &OPERATION, &BATCH, &ITEM, &ITEM_HISTORY];

impl CheckedTable {
    /// Returns the columns of the key.
    fn key(&self) -> &'static [&'static str] {
        if self.key_columns == 0 { &["id"] } else { &self.columns[..self.key_columns] }
    }

    /// Returns a query of the key, the checksum and the covered columns.
    fn select_sql(&self, condition: &str) -> String {
        format!(
            "SELECT {}, {}, {} FROM {} WHERE {condition}",
            self.key().join(", "),
            self.checksum_column,
            self.columns.join(", "),
            self.name
        )
    }

    /// Computes the checksum of a row of [`CheckedTable::select_sql`].
    fn compute(&self, row: &Row<'_>) -> rusqlite::Result<Checksum> {
        let first = self.key().len() + 1;
        let mut values = Vec::with_capacity(self.columns.len());
        for column in first..first + self.columns.len() {
            values.push(row.get_ref(column)?);
        }
        let (version, place) = values.split_at(VERSION_COLUMNS.min(values.len()));
        Ok(match self.rule {
            ChecksumRule::Columns => Checksum::from_columns(&values),
            ChecksumRule::Item => Checksum::from_columns(version).at_ordinal(number_of(place[0])),
            ChecksumRule::Version => {
                Checksum::from_columns(version).combine(Checksum::from_columns(place))
            }
        })
    }

    /// Returns whether a row of [`CheckedTable::select_sql`] matches its checksum.
    fn is_sound(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        Ok(row.get(self.key().len()).ok() == Some(self.compute(row)?))
    }

    /// Returns the keys of the rows that do not match their checksum: the first column of each.
    pub(crate) fn find_changed_rows(&self, tx: &ReadTransaction<'_>) -> rusqlite::Result<Vec<i64>> {
        let mut select = tx.prepare_cached(&self.select_sql("1"))?;
        let (mut rows, mut changed) = (select.query([])?, Vec::new());
        while let Some(row) = rows.next()? {
            if !self.is_sound(row)? {
                changed.push(row.get(0)?);
            }
        }
        Ok(changed)
    }

    /// Returns whether the row with this row id matches its checksum, or does not exist.
    pub(crate) fn is_row_sound(
        &self,
        tx: &ReadTransaction<'_>,
        row_id: i64,
    ) -> rusqlite::Result<bool> {
        let condition = format!("{} = ?1", self.key()[0]);
        let mut select = tx.prepare_cached(&self.select_sql(&condition))?;
        let mut rows = select.query([row_id])?;
        rows.next()?.map_or(Ok(true), |row| self.is_sound(row))
    }

    /// Updates the row with this row id, and its checksum; a damaged row stays one.
    pub(crate) fn update_row(
        &self,
        tx: &WriteTransaction<'_>,
        row_id: i64,
        update: impl FnOnce() -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<()> {
        let was_sound = self.is_row_sound(tx, row_id)?;
        update()?;
        if was_sound {
            let condition = format!("{} = ?1", self.key()[0]);
            self.write_checksums(tx, &condition, &[row_id.into()])?;
        }
        Ok(())
    }

    /// Writes the checksums of the rows that a condition selects, after a change of them.
    pub(crate) fn write_checksums(
        &self,
        tx: &WriteTransaction<'_>,
        condition: &str,
        parameters: &[Value],
    ) -> rusqlite::Result<()> {
        let mut wrong = Vec::new();
        {
            let mut select = tx.prepare_cached(&self.select_sql(condition))?;
            let mut rows = select.query(rusqlite::params_from_iter(parameters))?;
            while let Some(row) = rows.next()? {
                let checksum = self.compute(row)?;
                if row.get(self.key().len()).ok() != Some(checksum) {
                    let mut written = vec![Value::Integer(checksum.to_number())];
                    for column in 0..self.key().len() {
                        written.push(row.get(column)?);
                    }
                    wrong.push(written);
                }
            }
        }
        let keys: Vec<String> =
            self.key().iter().zip(2..).map(|(key, place)| format!("{key} = ?{place}")).collect();
        let sql = format!(
            "UPDATE {} SET {} = ?1 WHERE {}",
            self.name,
            self.checksum_column,
            keys.join(" AND ")
        );
        let mut update = tx.prepare_cached(&sql)?;
        for written in wrong {
            update.execute(rusqlite::params_from_iter(written))?;
        }
        Ok(())
    }
}

/// The columns that an item and a former version of it have in common.
pub(crate) struct VersionColumns<'a> {
    pub(crate) item: ItemRow,
    pub(crate) handle: Handle,
    pub(crate) kind: i64,
    pub(crate) collection: CollectionRow,
    pub(crate) uid: &'a str,
    pub(crate) uid_origin: i64,
    pub(crate) seq: Seq,
    pub(crate) recurrence_id: &'a str,
    pub(crate) calendar_context: Option<CalendarContextRow>,
}

impl VersionColumns<'_> {
    /// Computes the checksum of these columns.
    pub(crate) fn to_checksum(&self) -> Checksum {
        let context = self.calendar_context;
        Checksum::from_columns(&[
            ValueRef::Integer(self.item.to_number()),
            ValueRef::Blob(&self.handle.to_bytes()),
            ValueRef::Integer(self.kind),
            ValueRef::Integer(self.collection.to_number()),
            ValueRef::Text(self.uid.as_bytes()),
            ValueRef::Integer(self.uid_origin),
            ValueRef::Integer(self.seq),
            ValueRef::Text(self.recurrence_id.as_bytes()),
            context.map_or(ValueRef::Null, |context| ValueRef::Integer(context.to_number())),
        ])
    }
}

/// Computes the checksum of the place of a former version in the history, which is combined with
/// the one of its other columns.
pub(crate) fn history_place_checksum(seq: Seq, ordinal: i64, is_removed: bool) -> Checksum {
    let columns = [seq, ordinal, i64::from(is_removed)].map(ValueRef::Integer);
    Checksum::from_columns(&columns)
}

/// Returns a column that has numbers; 0 if damage gave it another type.
fn number_of(value: ValueRef<'_>) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Returns whether a row whose first columns are [`ITEM_META_COLUMNS`] matches the checksum of the
/// row of the item.
///
/// [`ITEM_META_COLUMNS`]: crate::item_meta::ITEM_META_COLUMNS
pub(crate) fn is_item_row_sound(
    row: &Row<'_>,
    ordinal_column: usize,
    checksum_column: usize,
) -> rusqlite::Result<bool> {
    let checksum = item_row_checksum(&read_version_columns(row)?, row.get_ref(ordinal_column)?);
    Ok(row.get(checksum_column).ok() == Some(checksum))
}

/// Reads the columns that an item and a former version of it have in common, if they are the first
/// ones of a row.
pub(crate) fn read_version_columns<'r>(
    row: &'r Row<'_>,
) -> rusqlite::Result<[ValueRef<'r>; VERSION_COLUMNS]> {
    let mut values = [ValueRef::Null; VERSION_COLUMNS];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.get_ref(column)?;
    }
    Ok(values)
}

/// Computes the checksum of the row of an item from these columns and its place in its batch.
pub(crate) fn item_row_checksum(
    columns: &[ValueRef<'_>; VERSION_COLUMNS],
    ordinal: ValueRef<'_>,
) -> Checksum {
    Checksum::from_columns(columns).at_ordinal(number_of(ordinal))
}

/// Fails if the row of an item does not match its checksum; the error names the item.
pub(crate) fn verify_item_row(tx: &ReadTransaction<'_>, item: ItemRow) -> DatabaseResult<()> {
    if ITEM.is_row_sound(tx, item.to_number())? {
        return Ok(());
    }
    Err(damaged_item_error(tx, item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_meta::ITEM_META_COLUMNS;

    #[test]
    fn the_columns_of_an_item_are_those_of_its_metadata() {
        let columns = ITEM_COLUMNS[..VERSION_COLUMNS].join(", i.");
        assert_eq!(format!("i.{columns}"), ITEM_META_COLUMNS);
    }
}
