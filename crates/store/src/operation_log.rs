//! Reading the log of operations, and the versions of items.
//!
//! Separate from `history`, which records and prunes them below the readers, and from
//! `change_reader`, which has the methods that readers call.

use crate::error::DatabaseResult;
use crate::handle::{Handle, HandlePrefix};
use crate::history::{
    OPERATION_COLUMNS, OperationRecord, PURGE_COMMAND, Version, operation_from_row,
};
use crate::item_meta::kind_condition;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::verify_item_row;
use crate::row_ids::{ItemRow, OperationId};
use crate::stored_version::StoredVersion;
use crate::{Seq, blob};
use rusqlite::OptionalExtension as _;

/// Reads operations, newest first, at most `limit`, only those before `before` if it is given.
pub(crate) fn list_operations(
    tx: &ReadTransaction<'_>,
    before: Option<OperationId>,
    limit: usize,
) -> rusqlite::Result<Vec<OperationRecord>> {
    let sql = format!(
        "SELECT {OPERATION_COLUMNS} FROM operation o WHERE ?1 IS NULL OR o.id < ?1
         ORDER BY o.id DESC LIMIT ?2"
    );
    tx.prepare_cached(&sql)?.query_map((before, limit as i64), operation_from_row)?.collect()
}

/// Reads the operation with this number.
pub(crate) fn find_operation(
    tx: &ReadTransaction<'_>,
    id: OperationId,
) -> rusqlite::Result<Option<OperationRecord>> {
    let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation o WHERE o.id = ?1");
    tx.query_row(&sql, [id], operation_from_row).optional()
}

/// Reads the newest operation that is neither undone, nor an undo, nor a purge.
pub(crate) fn last_undoable_operation(
    tx: &ReadTransaction<'_>,
) -> rusqlite::Result<Option<OperationRecord>> {
    let sql = format!(
        "SELECT {OPERATION_COLUMNS} FROM operation o WHERE undone_by IS NULL AND undoes IS NULL
           AND verb <> '{PURGE_COMMAND}'
         ORDER BY id DESC LIMIT 1"
    );
    tx.query_row(&sql, [], operation_from_row).optional()
}

/// Reads the time at which the operation of a batch began.
pub(crate) fn batch_time(tx: &ReadTransaction<'_>, seq: Seq) -> rusqlite::Result<Option<i64>> {
    let sql =
        "SELECT o.started_ms FROM batch b JOIN operation o ON o.id = b.operation WHERE b.seq = ?1";
    tx.query_row(sql, [seq], |row| row.get(0)).optional()
}

/// Reads the versions of an item, oldest first, as far as they are not pruned.
pub(crate) fn list_versions(
    tx: &ReadTransaction<'_>,
    handle: Handle,
) -> DatabaseResult<Vec<Version>> {
    let mut select = tx.prepare_cached(
        "SELECT f.since, f.seq, f.removed, coalesce(f.bytes, b.bytes), f.id, f.item, f.checksum
         FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash
         WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
    )?;
    let (mut rows, mut versions) = (select.query([handle.to_bytes()])?, Vec::new());
    while let Some(row) = rows.next()? {
        let (since, until): (Seq, Seq) = (row.get(0)?, row.get(1)?);
        let bytes: Option<Vec<u8>> = row.get(3)?;
        let stored = StoredVersion {
            row: row.get(4)?,
            item: row.get(5)?,
            bytes: bytes.as_deref(),
            checksum: row.get(6)?,
        };
        stored.verify(tx)?;
        versions.push(Version {
            since,
            until: Some(until),
            removed: row.get(2)?,
            operation: find_batch_operation(tx, since)?,
            ended_by: find_batch_operation(tx, until)?,
            bytes,
        });
    }
    let sql = "SELECT id, seq FROM item WHERE handle = ?1";
    let current: Option<(ItemRow, Seq)> =
        tx.query_row(sql, [handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    if let Some((row, since)) = current {
        verify_item_row(tx, row)?;
        versions.push(Version {
            since,
            until: None,
            removed: false,
            operation: find_batch_operation(tx, since)?,
            ended_by: None,
            bytes: blob::read_source_bytes(tx, row)?,
        });
    }
    Ok(versions)
}

/// The items whose handles a search of the history returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistoryItems {
    /// Those with a version that was replaced or removed.
    Kept,
    /// Those that were purged.
    Purged,
}

/// Reads the handles in the history that begin with this prefix, of collections that lists show.
pub(crate) fn find_history_handles(
    tx: &ReadTransaction<'_>,
    items: HistoryItems,
    prefix: HandlePrefix,
    limit: usize,
) -> rusqlite::Result<Vec<Handle>> {
    let condition = match items {
        HistoryItems::Kept => "i.uid IS NOT NULL",
        HistoryItems::Purged => "i.uid IS NULL",
    };
    let is_unlisted = kind_condition(|kind| !kind.collection_type().is_listed());
    let sql = format!(
        "SELECT DISTINCT i.handle FROM item_history i
         WHERE i.handle BETWEEN ?1 AND ?2 AND {condition} AND NOT {is_unlisted}
         ORDER BY i.handle LIMIT ?3"
    );
    tx.prepare_cached(&sql)?
        .query_map((prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64), |row| {
            Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?))
        })?
        .collect()
}

fn find_batch_operation(
    tx: &ReadTransaction<'_>,
    seq: Seq,
) -> rusqlite::Result<Option<OperationRecord>> {
    let sql = format!(
        "SELECT {OPERATION_COLUMNS} FROM batch b JOIN operation o ON o.id = b.operation WHERE b.seq = ?1"
    );
    tx.query_row(&sql, [seq], operation_from_row).optional()
}
