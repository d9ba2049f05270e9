//! Purging: afterwards no byte of the item is in any file of the data directory, including the
//! write-ahead log and free pages.
//!
//! One transaction deletes the rows, then the file is rewritten without their bytes. In between,
//! `purge_pending` in `meta` records that the rewrite is due, so that the next purge completes one
//! that was interrupted.

use crate::batch::{BatchChange, ChangeOutcome, Operation};
use crate::calendar_context_table;
use crate::connection::{WriteConnection, run_quick_check};
use crate::derived_index::DerivedIndex;
use crate::error::{DatabaseError, DatabaseResult, Error, Result, file_error_at, sqlite_error_at};
use crate::handle::Handle;
use crate::meta::{delete_meta, read_meta_number, write_meta};
use crate::staging_file::remove_with_companions;
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use crate::{derived_index, history, interrupted_restore};
use larder_extract::Extractor;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a rewrite waits for readers. It is short because a purge can be repeated.
const PURGE_READER_TIMEOUT: Duration = Duration::from_secs(2);

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// The number of purged items, including removed ones with versions in the history.
    pub items: u64,
    /// Whether it completed an earlier purge that was interrupted.
    pub completed: bool,
    /// Copies next to the store that were deleted because they are damaged, and nothing can be
    /// erased from them.
    pub deleted: Vec<PathBuf>,
}

impl Store {
    /// Erases items and all their versions, and rewrites the files without them, including the
    /// copies that migrations and restores made; a damaged copy is deleted. A purge cannot be
    /// undone. Completes an earlier purge that was interrupted, also without handles.
    ///
    /// # Errors
    /// [`Error::ReaderBlocksPurge`] if a reader kept old pages in use: the items are deleted, but
    /// their bytes may remain until the purge is repeated; see
    /// [`ChangeReader::is_purge_pending`](crate::ChangeReader::is_purge_pending).
    pub fn purge(&mut self, operation: &mut Operation, handles: &[Handle]) -> Result<PurgeReport> {
        self.ensure_writable()?;
        let mut purged =
            PurgeReport { completed: self.is_rewrite_pending()?, ..PurgeReport::default() };
        // Purges the copies first, so that nothing is purged if one of them cannot be.
        {
            let _lock = self.lock_files.acquire()?;
            interrupted_restore::sweep(&self.directory, &self.conn)?;
        }
        let copies = self.directory.list_copies()?;
        for copy in &copies {
            purge_copy(copy, handles, &mut purged.deleted)?;
        }
        // Deleted rows are overwritten immediately, so that a crash before the rewrite leaves as
        // little as possible.
        self.conn.set_secure_delete(true).map_err(sqlite_error_at(&self.path))?;
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
        history::has_pending_rewrite(&self.conn.autocommit_read())
            .map_err(sqlite_error_at(&self.path))
    }

    /// Purges the copies that a restore made in the meantime, rewrites the file without free pages,
    /// and empties the write-ahead log.
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
        let run = || -> DatabaseResult<bool> {
            merge_and_vacuum(&self.conn, &self.extractor)?;
            if !self.conn.empty_wal(PURGE_READER_TIMEOUT)? {
                return Ok(false);
            }
            let tx = self.conn.begin_write()?;
            delete_meta(&tx, history::PURGE_PENDING_KEY)?;
            tx.commit()?;
            Ok(true)
        };
        if run().map_err(sqlite_error_at(&self.path))? {
            Ok(())
        } else {
            Err(Error::ReaderBlocksPurge)
        }
    }
}

/// Erases the recorded schedules: the schedule of a series depends on all of its items, including
/// purged ones.
fn erase_schedule_history(tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(
        "UPDATE item_history SET schedule = NULL WHERE schedule IS NOT NULL;
         DELETE FROM schedule_history;",
    )
}

/// Merges the indexes, so that they hold no term and no sort key of a deleted item, and rewrites
/// all pages.
fn merge_and_vacuum(conn: &WriteConnection, extractor: &Extractor) -> DatabaseResult<()> {
    let tx = conn.begin_write()?;
    derived_index::clear_stale(&tx, extractor)?;
    derived_index::merge_all_levels(&tx)?;
    erase_schedule_history(&tx)?;
    history::set_schedule_history_start(&tx, None)?;
    tx.execute(
        "DELETE FROM idx_zone_set WHERE id NOT IN (SELECT zone_set FROM idx_schedule WHERE zone_set IS NOT NULL)",
        [],
    )?;
    tx.commit()?;
    conn.vacuum().map_err(DatabaseError::from)
}

/// Erases the items from a copy, or deletes the copy if it is damaged: a repair set it aside, and
/// it may have the items' bytes.
fn purge_copy(copy: &Path, handles: &[Handle], deleted: &mut Vec<PathBuf>) -> Result<()> {
    let Err(error) = erase_items_from_copy(copy, handles) else { return Ok(()) };
    if !error.is_damage() {
        return Err(sqlite_error_at(copy)(error));
    }
    remove_with_companions(copy).map_err(file_error_at(copy))?;
    deleted.push(copy.to_path_buf());
    Ok(())
}

/// Erases the items from a copy. Its indexes are emptied; a restore refills them.
fn erase_items_from_copy(copy: &Path, handles: &[Handle]) -> DatabaseResult<()> {
    let conn = WriteConnection::open(copy)?;
    // In an inconsistent file, bytes of the items may be in pages that no query finds.
    if let Some(finding) = run_quick_check(&conn.autocommit_read())? {
        return Err(DatabaseError::Damaged(finding));
    }
    conn.set_secure_delete(true)?;
    let tx = conn.begin_write()?;
    for &handle in handles {
        let (_, bytes) = history::erase_item_history(&tx, handle)?;
        write_meta(&tx, "history_bytes", read_meta_number(&tx, "history_bytes")? - bytes)?;
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
    // The copy may have any schema version, so its tables are looked up.
    let tables = tx
        .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'idx_*' AND sql LIKE 'CREATE%'")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for table in tables {
        tx.execute(&format!("DELETE FROM {table}"), [])?;
    }
    for index in DerivedIndex::ALL {
        write_meta(&tx, index.meta_key(), "emptied".to_string())?;
    }
    tx.commit()?;
    conn.vacuum().map_err(DatabaseError::from)
}
