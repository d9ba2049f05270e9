//! Reading the log of operations, and the versions of items.
//!
//! Apart from `history`, which records and prunes them below the readers.

use crate::Seq;
use crate::blob;
use crate::error::{Result, sqlite_error_at};
use crate::handle::{Handle, HandlePrefix};
use crate::history::{OPERATION_COLUMNS, OperationRecord, PURGE_VERB, Version, operation_from_row};
use crate::reader::Reader;
use crate::row_ids::{ItemRow, OperationId};
use rusqlite::{Connection, OptionalExtension as _};

impl Reader {
    /// Returns operations, newest first, at most `limit`, only those before `before` if it is
    /// given.
    pub fn operations(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<OperationRecord>> {
        let run = || -> rusqlite::Result<Vec<OperationRecord>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT {OPERATION_COLUMNS} FROM operation o WHERE ?1 IS NULL OR o.id < ?1
                     ORDER BY o.id DESC LIMIT ?2"
                ))?
                .query_map((before, limit as i64), operation_from_row)?
                .collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the operation with this number; `None`: there is none.
    pub fn operation(&self, id: OperationId) -> Result<Option<OperationRecord>> {
        let sql = format!("SELECT {OPERATION_COLUMNS} FROM operation o WHERE o.id = ?1");
        self.conn
            .query_row(&sql, [id], operation_from_row)
            .optional()
            .map_err(sqlite_error_at(&self.path))
    }

    /// Returns the operation that `undo` without a number undoes: the newest that is neither
    /// undone, nor an undo, nor a purge.
    pub fn last_undoable_operation(&self) -> Result<Option<OperationRecord>> {
        self.conn
            .query_row(
                &format!(
                    "SELECT {OPERATION_COLUMNS} FROM operation o WHERE undone_by IS NULL AND undoes IS NULL
                       AND verb <> '{PURGE_VERB}'
                     ORDER BY id DESC LIMIT 1"
                ),
                [],
                operation_from_row,
            )
            .optional()
            .map_err(sqlite_error_at(&self.path))
    }

    /// Returns the versions of an item, oldest first, as far as they are not pruned. The last one
    /// may be the current version.
    pub fn versions(&self, handle: Handle) -> Result<Vec<Version>> {
        let run = || -> rusqlite::Result<Vec<Version>> {
            let mut select = self.conn.prepare_cached(
                "SELECT f.since, f.seq, f.removed, coalesce(f.bytes, b.bytes)
                 FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash
                 WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
            )?;
            let mut versions = select
                .query_map([handle.to_bytes()], |row| {
                    let (since, until): (Seq, Seq) = (row.get(0)?, row.get(1)?);
                    Ok(Version {
                        since,
                        until: Some(until),
                        removed: row.get(2)?,
                        operation: find_batch_operation(&self.conn, since)?,
                        ended_by: find_batch_operation(&self.conn, until)?,
                        bytes: row.get(3)?,
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let now: Option<(ItemRow, Seq)> = self
                .conn
                .prepare_cached("SELECT id, seq FROM item WHERE handle = ?1")?
                .query_row([handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some((id, since)) = now {
                versions.push(Version {
                    since,
                    until: None,
                    removed: false,
                    operation: find_batch_operation(&self.conn, since)?,
                    ended_by: None,
                    bytes: blob::read_source_bytes(&self.conn, id)?,
                });
            }
            Ok(versions)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the handles of removed items that begin with this prefix and have a version in the
    /// history.
    pub fn find_removed_handles(&self, prefix: HandlePrefix, limit: usize) -> Result<Vec<Handle>> {
        self.find_history_handles("uid IS NOT NULL", prefix, limit)
    }

    pub(crate) fn find_history_handles(
        &self,
        condition: &'static str,
        prefix: HandlePrefix,
        limit: usize,
    ) -> Result<Vec<Handle>> {
        let run = || -> rusqlite::Result<Vec<Handle>> {
            self.conn
                .prepare_cached(&format!(
                    "SELECT DISTINCT handle FROM item_history
                     WHERE handle BETWEEN ?1 AND ?2 AND {condition} ORDER BY handle LIMIT ?3"
                ))?
                .query_map(
                    (prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64),
                    |row| Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?)),
                )?
                .collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}

fn find_batch_operation(conn: &Connection, seq: Seq) -> rusqlite::Result<Option<OperationRecord>> {
    conn.prepare_cached(&format!(
        "SELECT {OPERATION_COLUMNS} FROM batch b JOIN operation o ON o.id = b.operation WHERE b.seq = ?1"
    ))?
    .query_row([seq], operation_from_row)
    .optional()
}
