//! Operations and former versions: the log, and what is forgotten when.
//!
//! Nothing is put back here, that is `undo`; this is apart because every batch prunes and every
//! reader may ask for the log.

use crate::error::{Result, sqlite_error_at};
use crate::handle::Handle;
use crate::meta::set_meta;
use crate::purge::release_history_bytes;
use crate::reader::Reader;
use crate::write_transaction::WriteTransaction;
use crate::{Seq, blob, calendar_context_table};
use rusqlite::{Connection, OptionalExtension as _};

/// The number of an operation, as `larder log` prints it.
pub type OperationId = i64;

/// Former versions are kept for 90 days, in milliseconds ...
const HISTORY_RETENTION_MS: i64 = 90 * 24 * 3600 * 1000;
/// ... or up to this many bytes, whichever is less.
const HISTORY_RETENTION_BYTES: i64 = 64 << 20;
/// At most so many batches are forgotten at once, so that the lock is not held for long.
const MAX_PRUNED_BATCHES_PER_TX: usize = 4;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// Its number.
    pub id: OperationId,
    /// What was done: `import`, `add`, `edit`, ...
    pub verb: String,
    /// To what: names of files or collections.
    pub detail: String,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// Items added, updated and removed.
    pub counts: [u64; 3],
    /// The operation that this one undid.
    pub undoes: Option<OperationId>,
    /// The operation that undid this one.
    pub undone_by: Option<OperationId>,
}

/// What an item was for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The batch that made it so.
    pub since: Seq,
    /// The batch that replaced or removed it; `None`: it is so now.
    pub until: Option<Seq>,
    /// That batch removed it.
    pub removed: bool,
    /// The operation that made it so, where that is known.
    pub operation: Option<OperationRecord>,
    /// The operation that replaced or removed it.
    pub ended_by: Option<OperationRecord>,
    /// The bytes; `None` after a purge.
    pub bytes: Option<Vec<u8>>,
}

/// Forgets what is too old or too much, and returns the bytes that are still kept. The operation
/// `newest` is always whole; however much is kept, the one active before it is, too: it may be an
/// import that is still running, with a small change in between.
pub(crate) fn prune(
    tx: &WriteTransaction<'_>,
    newest: OperationId,
    now: i64,
    mut bytes: i64,
) -> rusqlite::Result<i64> {
    for _ in 0..MAX_PRUNED_BATCHES_PER_TX {
        let oldest: Option<(Seq, OperationId, i64)> = tx
            .prepare_cached(
                "SELECT b.seq, o.id, o.started_ms FROM batch b JOIN operation o ON o.id = b.operation
                 WHERE b.seq = (SELECT min(seq) FROM item_history)",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((seq, operation, began)) = oldest else { break };
        let old = began < now - HISTORY_RETENTION_MS;
        let active = [Some(newest), previous_active_operation(tx, newest)?];
        let much = bytes > HISTORY_RETENTION_BYTES && !active.contains(&Some(operation));
        if operation == newest || !(old || much) || is_needed_for_undo(tx, seq, active)? {
            break;
        }
        bytes -= release_history_bytes(tx, "seq", seq)?;
        calendar_context_table::release_history(tx, "seq", seq)?;
        tx.prepare_cached("DELETE FROM item_history WHERE seq = ?1")?.execute([seq])?;
        tx.prepare_cached("DELETE FROM collection_history WHERE seq <= ?1")?.execute([seq])?;
        tx.prepare_cached("DELETE FROM schedule_history WHERE seq <= ?1")?.execute([seq])?;
        set_meta(tx, "history_from", seq + 1)?;
    }
    Ok(bytes)
}

/// The key in `meta` of the first batch whose replaced schedules are all known.
pub(crate) const SCHEDULE_HISTORY_FROM_KEY: &str = "schedule_history_from";

/// Notes that the schedules which `batch` and earlier batches replaced are no longer known, or not
/// by the rules of this program; `None`: those of all batches so far.
pub(crate) fn set_schedule_history_start(
    conn: &Connection,
    batch: Option<Seq>,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO meta
         SELECT ?1, max(max(iif(key = ?1, value, value + 1)), coalesce(?2, 0) + 1)
         FROM meta WHERE key IN ('last_seq', ?1)",
    )?
    .execute((SCHEDULE_HISTORY_FROM_KEY, batch))
    .map(drop)
}

/// Records the schedule of an item that a batch changes without changing the item.
pub(crate) fn log_schedule(tx: &WriteTransaction<'_>, seq: Seq, item: i64) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO schedule_history
         SELECT ?1, i.handle, t.data FROM item i LEFT JOIN idx_schedule t ON t.item = i.id WHERE i.id = ?2",
    )?
    .execute((seq, item))
    .map(drop)
}

/// The operation that wrote last before `newest` did.
fn previous_active_operation(
    tx: &WriteTransaction<'_>,
    newest: OperationId,
) -> rusqlite::Result<Option<OperationId>> {
    tx.prepare_cached(
        "SELECT operation FROM batch WHERE operation <> ?1 ORDER BY seq DESC LIMIT 1",
    )?
    .query_row([newest], |row| row.get(0))
    .optional()
}

/// Is one of the active operations an undo that has not come to its end, of an operation that began
/// before this batch? It needs all that was replaced since.
fn is_needed_for_undo(
    tx: &WriteTransaction<'_>,
    seq: Seq,
    active: [Option<OperationId>; 2],
) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT 1 FROM operation undo JOIN operation o ON o.id = undo.undoes
         WHERE undo.id IN (?1, ?2) AND o.undone_by IS NULL
           AND (SELECT min(seq) FROM batch WHERE operation = o.id) <= ?3",
    )?
    .query_row((active[0], active[1], seq), |_| Ok(()))
    .optional()
    .map(|found| found.is_some())
}

/// What a store is known by until a restore replaces it: numbers of operations hold within one
/// epoch.
pub(crate) fn read_epoch(conn: &Connection) -> rusqlite::Result<String> {
    conn.prepare_cached("SELECT value FROM meta WHERE key = 'epoch'")?
        .query_row([], |row| row.get(0))
}

/// Was it undone, and not done again since?
pub(crate) fn is_undone(conn: &Connection, id: OperationId) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT undone_by IS NOT NULL FROM operation WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

/// The verb of an operation that erased items for good.
pub(crate) const PURGE_VERB: &str = "purge";

pub(crate) const OPERATION_COLUMNS: &str =
    "o.id, o.verb, o.detail, o.started_ms, o.added, o.updated, o.removed, o.undoes, o.undone_by";

pub(crate) fn operation_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<OperationRecord> {
    let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(OperationRecord {
        id: row.get(0)?,
        verb: row.get(1)?,
        detail: row.get(2)?,
        started_at_ms: row.get(3)?,
        counts: [count(4)?, count(5)?, count(6)?],
        undoes: row.get(7)?,
        undone_by: row.get(8)?,
    })
}

impl Reader {
    /// The newest operations, newest first, those before `before` if given.
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

    /// The operation that `undo` without a number means: the newest that is neither undone nor an
    /// undo, nor a purge, which cannot be.
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

    /// What an item was, oldest first, as far as that is kept; the last one may be what it is now.
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
            let now: Option<(i64, Seq)> = self
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

    /// The handles of removed items of which a version is kept, for a beginning of a handle.
    pub fn find_removed_handles(
        &self,
        prefix: crate::HandlePrefix,
        limit: usize,
    ) -> Result<Vec<Handle>> {
        self.find_history_handles("uid IS NOT NULL", prefix, limit)
    }

    pub(crate) fn find_history_handles(
        &self,
        condition: &'static str,
        prefix: crate::HandlePrefix,
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
