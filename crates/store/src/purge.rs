//! Erasing for good: afterwards no byte of the item is in any file of the data directory, the
//! write-ahead log and free pages included.
//!
//! The rows go in one transaction, the bytes in the pages after it. In between, `rewrite` in `meta`
//! says that the second is still owed, so that a purge that was interrupted can be finished by the
//! next one.

use crate::batch::{BatchChange, ChangeOutcome, Operation};
use crate::calendar_context_table;
use crate::error::{Error, Result, RowError, RowResult, file_error_at, sqlite_error_at};
use crate::handle::Handle;
use crate::meta::{read_meta_number, set_meta};
use crate::reader::Reader;
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use crate::{Seq, blob, history, index_maintenance};
use larder_extract::Extractor;
use rusqlite::{Connection, OptionalExtension as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For how long a rewrite waits for readers. A purge can be run again, so this is short.
const PURGE_READER_TIMEOUT: Duration = Duration::from_secs(2);

/// What a purge did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Items taken away, removed ones of which versions were kept included.
    pub items: u64,
    /// A purge that was interrupted before was finished by this one.
    pub completed: bool,
    /// Copies beside the store that were damaged, and were deleted since nothing can be erased from
    /// them.
    pub deleted: Vec<PathBuf>,
}

impl Store {
    /// Takes items and all their former versions away and rewrites the files without them, the
    /// copies that migrations and restores left included; a copy that is damaged is deleted. Cannot
    /// be undone. Finishes an earlier purge that was interrupted, also with no handles.
    ///
    /// # Errors
    /// [`Error::ReaderBlocksPurge`] where a reader kept the old pages in use: the items are gone,
    /// but bytes of them may be left until a purge is run again; [`Reader::is_purge_pending`]
    /// tells.
    pub fn purge(&mut self, operation: &mut Operation, handles: &[Handle]) -> Result<PurgeReport> {
        self.ensure_writable()?;
        let mut purged =
            PurgeReport { completed: self.is_rewrite_pending()?, ..PurgeReport::default() };
        // The copies first: where one of them cannot be purged, nothing is.
        {
            let _lock = self.lock_files.acquire()?;
            self.directory.delete_partial_files()?;
        }
        let copies = self.directory.list_copies()?;
        for copy in &copies {
            purge_copy(copy, handles, &mut purged.deleted)?;
        }
        // Deleted rows are overwritten at once, so that a crash before the rewrite leaves as little
        // as can be.
        self.conn
            .pragma_update(None, "secure_delete", true)
            .map_err(sqlite_error_at(&self.path))?;
        let changes = handles
            .iter()
            .map(|&handle| BatchChange::Internal(crate::batch::InternalChange::Purge(handle)))
            .collect();
        let applied = self.apply(operation, changes)?;
        if self.is_rewrite_pending()? {
            self.rewrite_database_file(handles, &copies, &mut purged.deleted)?;
        }
        let gone = |outcome: &&ChangeOutcome| matches!(outcome, ChangeOutcome::Removed(_));
        purged.items = applied.outcomes.iter().filter(gone).count() as u64;
        Ok(purged)
    }

    fn is_rewrite_pending(&self) -> Result<bool> {
        has_pending_rewrite(&self.conn).map_err(sqlite_error_at(&self.path))
    }

    /// Purges the copies that a restore made since, rewrites the file without free pages and
    /// empties the write-ahead log.
    fn rewrite_database_file(
        &mut self,
        handles: &[Handle],
        known: &[PathBuf],
        deleted: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        for copy in self.directory.list_copies()? {
            if !known.contains(&copy) {
                purge_copy(&copy, handles, deleted)?;
            }
        }
        let run = || -> RowResult<bool> {
            merge_and_vacuum(&self.conn, &self.extractor)?;
            let patience: u32 =
                self.conn.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
            self.conn.busy_timeout(PURGE_READER_TIMEOUT)?;
            let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
            let busy = self.conn.query_row(truncate, [], |row| row.get::<_, bool>(0));
            self.conn.busy_timeout(Duration::from_millis(patience.into()))?;
            if !busy? {
                self.conn.execute("DELETE FROM meta WHERE key = 'purge_pending'", [])?;
                return Ok(true);
            }
            Ok(false)
        };
        if run().map_err(sqlite_error_at(&self.path))? {
            Ok(())
        } else {
            Err(Error::ReaderBlocksPurge)
        }
    }
}

impl Reader {
    /// Was a purge interrupted, so that bytes of what it took away may be left in the files?
    pub fn is_purge_pending(&self) -> Result<bool> {
        has_pending_rewrite(&self.conn).map_err(sqlite_error_at(&self.path))
    }

    /// The handles of items that were purged, as far as their traces are kept, for a beginning of a
    /// handle.
    pub fn find_purged_handles(
        &self,
        prefix: crate::HandlePrefix,
        limit: usize,
    ) -> Result<Vec<Handle>> {
        self.find_history_handles("uid IS NULL", prefix, limit)
    }
}

fn has_pending_rewrite(conn: &Connection) -> rusqlite::Result<bool> {
    let mark = "SELECT 1 FROM meta WHERE key = 'purge_pending'";
    Ok(conn.prepare_cached(mark)?.query_row([], |_| Ok(())).optional()?.is_some())
}

/// Notes, in the transaction that takes an item away, that its bytes are still to be erased from
/// the pages.
pub(crate) fn mark_rewrite_pending(conn: &Connection, batch: Seq) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta VALUES('purge_pending', 1)")?.execute([])?;
    history::set_schedule_history_start(conn, Some(batch))
}

/// Erases the recorded schedules: that of a series follows from all of its items, purged ones
/// included.
fn erase_schedule_history(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch(
        "UPDATE item_history SET schedule = NULL WHERE schedule IS NOT NULL;
         DELETE FROM schedule_history;",
    )
}

/// Gives up the bytes of former versions, and returns how many those were.
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

/// Erases what is kept of an item, leaving tombstones. Returns how many versions, and how many
/// bytes.
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
        "UPDATE item_history SET uid = NULL, recurrence_id = NULL, bytes = NULL, blob_hash = NULL
         WHERE handle = ?1 AND uid IS NOT NULL",
        [handle.to_bytes()],
    )?;
    Ok((erased, bytes))
}

/// Merges the inverted index into one segment, which says nothing of what was taken away, and
/// rewrites all pages.
fn merge_and_vacuum(conn: &Connection, deriver: &Extractor) -> RowResult<()> {
    let tx = WriteTransaction::begin(conn)?;
    index_maintenance::clear_stale(&tx, deriver)?;
    index_maintenance::merge_all_segments(&tx)?;
    erase_schedule_history(&tx)?;
    history::set_schedule_history_start(&tx, None)?;
    tx.execute(
        "DELETE FROM idx_zone_set WHERE id NOT IN (SELECT zone_set FROM idx_schedule WHERE zone_set IS NOT NULL)",
        [],
    )?;
    tx.commit()?;
    conn.execute_batch("VACUUM").map_err(RowError::from)
}

/// Erases the items from a copy, or deletes it where that cannot be done because it is damaged: a
/// repair set it aside, and it may hold the items' bytes.
fn purge_copy(copy: &Path, handles: &[Handle], deleted: &mut Vec<PathBuf>) -> Result<()> {
    let Err(error) = erase_items_from_copy(copy, handles) else { return Ok(()) };
    if !error.is_damage() {
        return Err(sqlite_error_at(copy)(error));
    }
    for end in ["-wal", "-shm", "-journal", ""] {
        let mut name = copy.as_os_str().to_owned();
        name.push(end);
        let path = PathBuf::from(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(file_error_at(&path)(error));
            }
            _ => {}
        }
    }
    deleted.push(copy.to_path_buf());
    Ok(())
}

/// Erases the items from a copy. Its indexes are simply emptied: a restore refills them.
fn erase_items_from_copy(copy: &Path, handles: &[Handle]) -> RowResult<()> {
    let conn = Connection::open(copy)?;
    // Where pages contradict each other, bytes may lie where no query finds them.
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(RowError::Damaged(verdict));
    }
    conn.pragma_update(None, "secure_delete", true)?;
    let tx = WriteTransaction::begin(&conn)?;
    for &handle in handles {
        let (_, bytes) = erase_item_history(&tx, handle)?;
        set_meta(&tx, "history_bytes", read_meta_number(&tx, "history_bytes")? - bytes)?;
        tx.execute(
            "UPDATE blob SET ref_count = ref_count - 1 WHERE hash IN (SELECT blob_hash FROM source_bytes
               WHERE item IN (SELECT id FROM item WHERE handle = ?1))",
            [handle.to_bytes()],
        )?;
        tx.execute("DELETE FROM blob WHERE ref_count <= 0", [])?;
        tx.execute(
            "DELETE FROM source_bytes WHERE item IN (SELECT id FROM item WHERE handle = ?1)",
            [handle.to_bytes()],
        )?;
        tx.execute(
            "DELETE FROM handle_collision WHERE item IN (SELECT id FROM item WHERE handle = ?1)",
            [handle.to_bytes()],
        )?;
        tx.execute(
            "UPDATE calendar_context SET ref_count = ref_count - 1
             WHERE id = (SELECT calendar_context FROM item WHERE handle = ?1)",
            [handle.to_bytes()],
        )?;
        tx.execute("DELETE FROM item WHERE handle = ?1", [handle.to_bytes()])?;
    }
    calendar_context_table::delete_unreferenced(&tx)?;
    erase_schedule_history(&tx)?;
    // Of whatever version the copy is.
    let tables = tx
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'idx_*' AND sql LIKE 'CREATE%'")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for table in tables {
        tx.execute(&format!("DELETE FROM {table}"), [])?;
    }
    tx.execute("UPDATE meta SET value = 'emptied' WHERE key LIKE 'fingerprint:%'", [])?;
    tx.commit()?;
    conn.execute_batch("VACUUM").map_err(RowError::from)
}
