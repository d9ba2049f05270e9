//! History: the operations, and the item versions that batches replaced.
//!
//! Records, prunes and erases them. Separate from `operation_log`, which reads them, and from
//! `undo`, because every batch prunes.
//!
//! The age of a version is measured in the time for which the store was used, not by the clock: a
//! clock that is wrong for one command, by a hundred years, must not erase the history. Each
//! operation records the age of the store: the sum of the times between successive operations,
//! without those that are negative or longer than [`MAX_GAP_MS`].

use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::meta::{
    EPOCH_KEY, MetaTable, delete_meta, find_meta_number, read_meta_number, read_meta_text,
    write_meta,
};
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::ITEM_HISTORY;
use crate::row_ids::{ItemRow, OperationId};
use crate::write_transaction::WriteTransaction;
use crate::{Seq, blob, calendar_context_table};
use rusqlite::OptionalExtension as _;

/// The age up to which replaced versions are stored, unless [`HISTORY_RETENTION_BYTES`] is reached.
const HISTORY_RETENTION_MS: i64 = 90 * 24 * 3600 * 1000;
/// A longer time between two operations does not count: the store was not used, or the clock was
/// wrong.
const MAX_GAP_MS: i64 = 30 * 24 * 3600 * 1000;
/// The number of bytes of replaced versions that are stored, unless [`HISTORY_RETENTION_MS`] is
/// over.
const HISTORY_RETENTION_BYTES: i64 = 64 << 20;
/// The maximum number of batches pruned in one transaction, which limits the time that the lock is
/// held.
const MAX_PRUNED_BATCHES_PER_TX: usize = 4;

/// An operation in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// The number of the operation.
    pub id: OperationId,
    /// The command: `import`, `add`, `edit`, ...
    pub verb: String,
    /// Its object: names of files or collections.
    pub detail: String,
    /// The time of the start, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// The numbers of items added, updated and removed.
    pub counts: [u64; 3],
    /// The operation that this one undid.
    pub undoes: Option<OperationId>,
    /// The operation that undid this one.
    pub undone_by: Option<OperationId>,
}

/// A version of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The batch that made the version.
    pub since: Seq,
    /// The batch that replaced or removed it; `None`: it is the current version.
    pub until: Option<Seq>,
    /// Whether that batch removed the item.
    pub removed: bool,
    /// The operation that made the version, if it is known.
    pub operation: Option<OperationRecord>,
    /// The operation that replaced or removed it.
    pub ended_by: Option<OperationRecord>,
    /// The bytes; `None` after a purge.
    pub bytes: Option<Vec<u8>>,
}

/// The first batch that replaced an item, and the first one that replaced anything.
const OLDEST_VERSION: &str = "SELECT min(seq) FROM item_history";
const OLDEST_CHANGE: &str = "SELECT min(seq) FROM (
    SELECT min(seq) AS seq FROM item_history
    UNION ALL SELECT min(seq) FROM collection_history
    UNION ALL SELECT min(seq) FROM schedule_history)";

/// Returns the batch that a statement selects, its operation, and the age of the operation in
/// milliseconds when the operation `newest` began.
fn oldest_batch(
    tx: &ReadTransaction<'_>,
    newest: OperationId,
    selection: &str,
) -> rusqlite::Result<Option<(Seq, OperationId, i64)>> {
    let sql = format!(
        "SELECT b.seq, o.id, newest.store_age_ms - o.store_age_ms FROM batch b
           JOIN operation o ON o.id = b.operation JOIN operation newest ON newest.id = ?1
         WHERE b.seq = ({selection})"
    );
    let read_row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    tx.prepare_cached(&sql)?.query_row([newest], read_row).optional()
}

/// Deletes replaced versions beyond the retention limits, and returns the bytes that remain. The
/// operation `newest` is never pruned. The size limit does not apply to the operation active before
/// it either: it may be an import that is still running, interrupted by a small change.
pub(crate) fn prune(
    tx: &WriteTransaction<'_>,
    newest: OperationId,
    mut bytes: i64,
) -> rusqlite::Result<i64> {
    for _ in 0..MAX_PRUNED_BATCHES_PER_TX {
        let active = [Some(newest), previous_active_operation(tx, newest)?];
        // The rows of collections and schedules go with the replaced items of later batches, and
        // by themselves only if there are none: they are small.
        let is_expired = |(.., age): &(Seq, OperationId, i64)| *age > HISTORY_RETENTION_MS;
        let expired = match oldest_batch(tx, newest, OLDEST_VERSION)?.filter(is_expired) {
            None => oldest_batch(tx, newest, OLDEST_CHANGE)?.filter(is_expired),
            version => version,
        };
        // Only replaced items have bytes to free.
        let oldest = match expired {
            None if bytes > HISTORY_RETENTION_BYTES => oldest_batch(tx, newest, OLDEST_VERSION)?
                .filter(|(_, operation, _)| !active.contains(&Some(*operation))),
            expired => expired,
        };
        let Some((seq, operation, _)) = oldest else { break };
        if operation == newest || is_needed_for_undo(tx, seq)? {
            break;
        }
        bytes -= release_history_bytes(tx, "seq", seq)?;
        calendar_context_table::release_history(tx, "seq", seq)?;
        tx.prepare_cached("DELETE FROM item_history WHERE seq = ?1")?.execute([seq])?;
        tx.prepare_cached("DELETE FROM collection_history WHERE seq <= ?1")?.execute([seq])?;
        tx.prepare_cached("DELETE FROM schedule_history WHERE seq <= ?1")?.execute([seq])?;
        write_meta(tx, "history_from", seq + 1)?;
    }
    Ok(bytes)
}

/// Returns the age of the store at the start of a new operation.
pub(crate) fn store_age_ms(tx: &ReadTransaction<'_>, started_at_ms: i64) -> rusqlite::Result<i64> {
    let last: Option<(i64, i64)> = tx
        .prepare_cached("SELECT started_ms, store_age_ms FROM operation ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(last.map_or(0, |(last_started, age)| {
        let gap = started_at_ms.saturating_sub(last_started);
        if (0..=MAX_GAP_MS).contains(&gap) { age.saturating_add(gap) } else { age }
    }))
}

/// The key in `meta` of the first batch whose replaced schedules are all known.
pub(crate) const SCHEDULE_HISTORY_FROM_KEY: &str = "schedule_history_from";

/// Records that the schedules replaced by `batch` and earlier batches (`None`: by all batches so
/// far) are unknown or were computed by other rules.
pub(crate) fn set_schedule_history_start(
    tx: &WriteTransaction<'_>,
    batch: Option<Seq>,
) -> DatabaseResult<()> {
    let known = find_meta_number(tx, SCHEDULE_HISTORY_FROM_KEY)?.unwrap_or_default();
    let last = read_meta_number(tx, "last_seq")?.max(batch.unwrap_or_default());
    Ok(write_meta(tx, SCHEDULE_HISTORY_FROM_KEY, known.max(last + 1))?)
}

/// Records the schedule of an item that a batch changes without changing the item.
pub(crate) fn record_schedule(
    tx: &WriteTransaction<'_>,
    seq: Seq,
    item: ItemRow,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO schedule_history
         SELECT ?1, i.handle, t.data FROM item i LEFT JOIN idx_schedule t ON t.item = i.id WHERE i.id = ?2",
    )?
    .execute((seq, item))
    .map(drop)
}

/// Returns the operation that wrote last before `newest`.
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

/// An undo is still running if it wrote one of so many last batches: others may write between two
/// batches of it.
const RECENT_BATCHES: i64 = 256;

/// Returns whether an undo that is still running, or was just interrupted, is of an operation that
/// began before this batch. Such an undo needs all versions replaced since then.
fn is_needed_for_undo(tx: &WriteTransaction<'_>, seq: Seq) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT 1 FROM operation undo JOIN operation o ON o.id = undo.undoes
         WHERE undo.id IN (SELECT operation FROM batch ORDER BY seq DESC LIMIT ?2)
           AND o.undone_by IS NULL
           AND (SELECT min(seq) FROM batch WHERE operation = o.id) <= ?1",
    )?
    .query_row((seq, RECENT_BATCHES), |_| Ok(()))
    .optional()
    .map(|found| found.is_some())
}

/// Returns the epoch of the store. Numbers of operations are valid within one epoch.
pub(crate) fn read_epoch(tx: &ReadTransaction<'_>) -> DatabaseResult<String> {
    read_meta_text(tx, EPOCH_KEY)
}

/// Returns whether an operation is undone and has not been redone.
pub(crate) fn is_undone(tx: &ReadTransaction<'_>, id: OperationId) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT undone_by IS NOT NULL FROM operation WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

/// Returns the key in `meta` of the mark of an operation that was stopped, because it is being
/// undone.
fn stop_mark_key(id: OperationId) -> String {
    format!("stopped_operation:{}", id.to_number())
}

/// Lets an operation write no further batch until it is marked as undone, or [`delete_stop_mark`]
/// is called.
pub(crate) fn write_stop_mark(tx: &WriteTransaction<'_>, id: OperationId) -> rusqlite::Result<()> {
    write_meta(tx, &stop_mark_key(id), 1)
}

/// Deletes the mark of an operation that was stopped.
pub(crate) fn delete_stop_mark(tx: &WriteTransaction<'_>, id: OperationId) -> rusqlite::Result<()> {
    delete_meta(tx, &stop_mark_key(id))
}

/// Returns whether an operation must write no further batch: it was undone, or is being undone.
pub(crate) fn is_ended(
    tx: &ReadTransaction<'_>,
    meta: &MetaTable,
    id: OperationId,
) -> rusqlite::Result<bool> {
    Ok(meta.has_key(&stop_mark_key(id)) || is_undone(tx, id)?)
}

/// Returns whether an operation wrote a batch after another one.
pub(crate) fn has_later_batch(
    tx: &ReadTransaction<'_>,
    id: OperationId,
    after: Seq,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM batch WHERE seq > ?2 AND operation = ?1)";
    tx.prepare_cached(sql)?.query_row((id, after), |row| row.get(0))
}

/// Returns whether the newest version of an item was erased: the item was purged.
pub(crate) fn is_purged(tx: &ReadTransaction<'_>, handle: Handle) -> rusqlite::Result<bool> {
    let sql = "SELECT uid IS NULL FROM item_history WHERE handle = ?1
               ORDER BY seq DESC, ordinal DESC LIMIT 1";
    let newest = tx.prepare_cached(sql)?.query_row([handle.to_bytes()], |row| row.get(0));
    Ok(newest.optional()?.unwrap_or_default())
}

/// The verb of an operation that purged items.
pub(crate) const PURGE_COMMAND: &str = "purge";

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

/// Releases the bytes of replaced versions, and returns their number.
pub(crate) fn release_history_bytes(
    tx: &WriteTransaction<'_>,
    column: &'static str,
    key: impl rusqlite::ToSql + Copy,
) -> rusqlite::Result<i64> {
    let mut select = tx.prepare_cached(&format!(
        "SELECT f.blob_hash, coalesce(length(f.bytes), length(b.bytes), 0)
         FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash WHERE f.{column} = ?1"
    ))?;
    let rows = select
        .query_map([key], |row| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (hash, _) in &rows {
        blob::release_blob(tx, hash.as_deref())?;
    }
    Ok(rows.iter().map(|(_, length)| length).sum())
}

/// Erases the replaced versions of an item, and leaves tombstones. Returns the number of versions
/// and of bytes.
pub(crate) fn erase_item_history(
    tx: &WriteTransaction<'_>,
    handle: Handle,
) -> rusqlite::Result<(usize, i64)> {
    let bytes = release_history_bytes(tx, "handle", handle.to_bytes())?;
    calendar_context_table::release_history(tx, "handle", handle.to_bytes())?;
    tx.execute(
        "UPDATE item_history SET calendar_context = NULL WHERE handle = ?1",
        [handle.to_bytes()],
    )?;
    let erased = tx.execute(
        "UPDATE item_history SET uid = NULL, recurrence_id = NULL, bytes = NULL, blob_hash = NULL,
                checksum = NULL WHERE handle = ?1 AND uid IS NOT NULL",
        [handle.to_bytes()],
    )?;
    ITEM_HISTORY.write_checksums(tx, "handle = ?1", &[handle.to_bytes().to_vec().into()])?;
    Ok((erased, bytes))
}
