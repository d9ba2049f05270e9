//! Purging: afterwards no byte of the item is in any file of the data directory, including the
//! write-ahead log and free pages.
//!
//! The items are recorded as pending work first, see `pending_work`. Then the copies next to the
//! store are rewritten, the rows are deleted, the indexes are merged without their terms, and the
//! unused bytes of all pages are overwritten. Each step is a transaction that holds the write lock
//! for a short time. A purge that was interrupted begins again from the record. Everything is
//! written inside of the data directory.

use crate::batch::{BatchChange, ChangeOutcome, InternalChange, Operation};
use crate::calendar_context_table;
use crate::connection::{ReadConnection, SharedMemory, WriteConnection, quick_check};
use crate::data_directory::{DataDirectory, StoreFile};
use crate::database_copy::{copy_into, create_staging};
use crate::derived_index::{self, DerivedIndex};
use crate::error::{DatabaseResult, Error, Result, file_error_at, sqlite_error_at};
use crate::handle::Handle;
use crate::history;
use crate::interrupted_restore;
use crate::meta::{MetaTable, read_meta_number, write_meta};
use crate::page_eraser::PageEraser;
use crate::pending_work;
use crate::schema::{self, SchemaState};
use crate::staging_file::{
    folder_of, ignore_missing, link_target, remove_companions, remove_with_companions,
    sync_folder_of, with_suffix,
};
use crate::step_size::StepSize;
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use larder_index::FullMerge;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a purge waits for readers at its end. It is short because a purge can be repeated.
const PURGE_READER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for which a purge holds the write lock at most while it waits for readers, and then
/// leaves it to other writers.
const LOCKED_WAIT: Duration = Duration::from_millis(50);
const UNLOCKED_WAIT: Duration = Duration::from_millis(10);
/// The number of items deleted in one batch.
const MAX_ITEMS_PER_BATCH: usize = 500;
/// The number of recorded schedules erased in one transaction.
const MAX_ERASED_SCHEDULES_PER_TX: i64 = 2000;
/// The number of bytes of the text index that one step merges.
const MERGE_STEP_BYTES: StepSize = StepSize::new(1 << 20, 64 << 10..=2 << 20);
/// The number of rows of an index that is not in use that one step deletes.
const CLEARED_ROWS: StepSize = StepSize::new(500, 100..=5000);
/// The number of pages that one step overwrites.
const ERASED_PAGES: StepSize = StepSize::new(256, 16..=1024);

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// The number of purged items, including removed ones with versions in the history.
    pub items: u64,
    /// Whether it completed an earlier purge that was interrupted.
    pub completed: bool,
    /// Copies next to the store that were deleted because they are damaged, or copies of an index
    /// of mail, and logs and journals
    /// that missing copies left: nothing can be erased from them.
    pub deleted: Vec<PathBuf>,
}

impl Store {
    /// Erases items and all their versions, also from the copies that migrations and restores made;
    /// a damaged copy is deleted. A purge cannot be undone. Completes an earlier purge that was
    /// interrupted, also without handles.
    ///
    /// # Errors
    /// [`Error::ReaderBlocksPurge`] if a reader kept old pages in use: the items are deleted, but
    /// their bytes may remain until the purge is repeated; [`Error::PurgeNotFinished`] for any
    /// other reason. After both, the purge is [`PendingWork`](crate::PendingWork). After another
    /// error, such as [`Error::UnknownCopy`], nothing was purged.
    pub fn purge(&mut self, operation: &mut Operation, handles: &[Handle]) -> Result<PurgeReport> {
        self.ensure_writable()?;
        let _work = self.lock_files.acquire_work_lock()?;
        self.directory.delete_unfinished_replacement()?;
        let before = self.read_pending_purge()?;
        let mut purged = PurgeReport { completed: before.is_some(), ..PurgeReport::default() };
        if before.is_none() && handles.is_empty() {
            return Ok(purged);
        }
        let mut all = before.clone().unwrap_or_default();
        all.extend(handles.iter().filter(|handle| !all.contains(handle)).collect::<Vec<_>>());
        self.record_purge(Some(&all))?;
        // Copies come first, so that nothing is purged if one of them cannot be.
        let copies = self.directory.list_copies().map_err(not_finished)?;
        for copy in &copies {
            if let Err(error) = purge_copy(&self.directory, copy, &all, &mut purged.deleted) {
                // Without the record of what was not begun. If it cannot be written, the purge
                // stays pending.
                return Err(match self.record_purge(before.as_deref()) {
                    Ok(()) if before.is_none() => error,
                    _ => not_finished(error),
                });
            }
        }
        self.purge_recorded(operation, &all, &copies, &mut purged).map_err(not_finished)?;
        Ok(purged)
    }

    /// Purges the recorded items from the store itself.
    fn purge_recorded(
        &mut self,
        operation: &mut Operation,
        all: &[Handle],
        copies: &[PathBuf],
        purged: &mut PurgeReport,
    ) -> Result<()> {
        for handles in all.chunks(MAX_ITEMS_PER_BATCH) {
            let purge = |&handle| BatchChange::Internal(InternalChange::Purge(handle));
            let applied = self.apply(operation, handles.iter().map(purge).collect())?;
            let gone = |outcome: &&ChangeOutcome| matches!(outcome, ChangeOutcome::Removed(_));
            purged.items += applied.outcomes.iter().filter(gone).count() as u64;
        }
        // An index may have had the labels of a message that is none of its items.
        let is_index = self.directory.store_file().is_disposable();
        if purged.completed || purged.items > 0 || is_index {
            self.erase_derived_data()?;
            self.erase_pages()?;
        }
        self.finish_purge(all, copies, &mut purged.deleted)
    }

    /// Completes a purge that was interrupted, and waits for one that is running.
    pub(crate) fn finish_pending_purge(&mut self) -> Result<()> {
        let is_pending = pending_work::has_purge(&self.autocommit_read());
        if is_pending.map_err(sqlite_error_at(&self.path))? {
            self.purge(&mut Operation::new(history::PURGE_COMMAND, "", 0), &[])?;
        }
        Ok(())
    }

    fn read_pending_purge(&self) -> Result<Option<Vec<Handle>>> {
        let meta = MetaTable::read(&self.autocommit_read()).map_err(sqlite_error_at(&self.path))?;
        Ok(pending_work::read_purge(&meta))
    }

    fn record_purge(&mut self, handles: Option<&[Handle]>) -> Result<()> {
        self.write_step(|tx| pending_work::write_purge(tx, handles))
    }

    /// Runs transactions, each of which gets a size and returns whether there is more to do.
    fn write_steps(
        &mut self,
        mut size: StepSize,
        mut write: impl FnMut(&WriteTransaction<'_>, usize) -> DatabaseResult<bool>,
    ) -> Result<()> {
        loop {
            let step = |tx: &WriteTransaction<'_>| {
                let began = Instant::now();
                Ok((write(tx, size.current())?, began.elapsed()))
            };
            let (has_more, held) = self.write_step(step)?;
            if !has_more {
                return Ok(());
            }
            size.adapt(held);
        }
    }

    /// Erases all that was derived from the items and is not a row of theirs: recorded schedules,
    /// as those of a series depend on all of its items, terms and sort keys in the indexes, and
    /// words of messages.
    fn erase_derived_data(&mut self) -> Result<()> {
        let extractor = self.extractor.clone();
        self.write_steps(CLEARED_ROWS, |tx, rows| {
            derived_index::clear_stale_step(tx, &extractor, rows)
        })?;
        let begin = |tx: &WriteTransaction<'_>| {
            derived_index::compact_sort_index(tx)?;
            history::set_schedule_history_start(tx, None)?;
            tx.execute(
                "DELETE FROM idx_zone_set WHERE id NOT IN
                   (SELECT zone_set FROM idx_schedule WHERE zone_set IS NOT NULL)",
                [],
            )?;
            read_meta_number(tx, history::SCHEDULE_HISTORY_FROM_KEY)
        };
        let schedules_from = self.write_step(begin)?;
        while self.write_step(|tx| Ok(erase_schedules(tx, schedules_from)?))? {}
        let mut merge = FullMerge::default();
        self.write_steps(MERGE_STEP_BYTES, |tx, bytes| {
            derived_index::full_merge_step(tx, &mut merge, bytes)
        })?;
        match self.directory.store_file() {
            StoreFile::Data => Ok(()),
            StoreFile::Index | StoreFile::Commits => self.erase_removed_words(),
        }
    }

    /// Overwrites the unused bytes of the file.
    fn erase_pages(&mut self) -> Result<()> {
        let mut eraser = PageEraser::default();
        self.conn.set_pages_writable(true).map_err(sqlite_error_at(&self.path))?;
        let erased = self.write_steps(ERASED_PAGES, |tx, pages| eraser.step(tx, pages));
        // Pages that stay writable undo no erasure.
        let _writable = self.conn.set_pages_writable(false);
        erased
    }

    /// Waits for readers of old pages and deletes the record of the purge. The write lock is held
    /// for a short time, again and again: other writers do not wait for these readers.
    fn finish_purge(
        &mut self,
        handles: &[Handle],
        known: &[PathBuf],
        deleted: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let (began, mut known) = (Instant::now(), known.to_vec());
        while !self.try_finish_purge(handles, &mut known, deleted)? {
            if began.elapsed() >= PURGE_READER_TIMEOUT {
                return Err(Error::ReaderBlocksPurge);
            }
            thread::sleep(UNLOCKED_WAIT);
        }
        Ok(())
    }

    /// Purges the copies that were made in the meantime, empties the write-ahead log, and deletes
    /// the record of the purge. Returns false if a reader is in the way.
    fn try_finish_purge(
        &mut self,
        handles: &[Handle],
        known: &mut Vec<PathBuf>,
        deleted: &mut Vec<PathBuf>,
    ) -> Result<bool> {
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        interrupted_restore::sweep(&self.directory, &self.conn)?;
        for copy in self.directory.list_copies()? {
            if !known.contains(&copy) {
                purge_copy(&self.directory, &copy, handles, deleted)?;
                known.push(copy);
            }
        }
        delete_orphaned_companions(&self.directory, deleted)?;
        let run = || -> DatabaseResult<bool> {
            if !self.conn.empty_wal(LOCKED_WAIT)? {
                return Ok(false);
            }
            let tx = self.conn.begin_write()?;
            pending_work::write_purge(&tx, None)?;
            tx.commit()?;
            Ok(true)
        };
        let is_finished = run().map_err(sqlite_error_at(&self.path))?;
        self.release_and_checkpoint(lock);
        Ok(is_finished)
    }
}

/// Adds to an error that the purge is pending, unless the error says so.
fn not_finished(error: Error) -> Error {
    match error {
        Error::ReaderBlocksPurge => error,
        error => Error::PurgeNotFinished { source: Box::new(error) },
    }
}

/// Erases schedules that batches before `end` replaced. Returns whether there may be more. The
/// names of the items whose schedules changed stay: a query that runs at the time needs them.
fn erase_schedules(tx: &WriteTransaction<'_>, end: i64) -> rusqlite::Result<bool> {
    let erased = tx.execute(
        "UPDATE item_history SET schedule = NULL WHERE id IN
           (SELECT id FROM item_history WHERE seq < ?1 AND schedule IS NOT NULL LIMIT ?2)",
        (end, MAX_ERASED_SCHEDULES_PER_TX),
    )?;
    let erased_of_series = tx.execute(
        "UPDATE schedule_history SET schedule = NULL WHERE (seq, handle) IN
           (SELECT seq, handle FROM schedule_history
            WHERE seq < ?1 AND schedule IS NOT NULL LIMIT ?2)",
        (end, MAX_ERASED_SCHEDULES_PER_TX),
    )?;
    Ok(erased + erased_of_series > 0)
}

impl DataDirectory {
    /// Returns whether a copy of the database has an item, or had it. A copy that cannot be read
    /// may have it.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn copies_may_have_item(&self, handle: Handle) -> Result<bool> {
        Ok(self.list_copies()?.iter().any(|copy| match verify_copy_version(self, copy) {
            Err(Error::NotAStore { .. }) => false,
            Err(_) => true,
            Ok(()) => has_item(copy, handle).unwrap_or(true),
        }))
    }
}

fn has_item(copy: &Path, handle: Handle) -> rusqlite::Result<bool> {
    let conn = open_copy(copy)?;
    let tx = conn.autocommit_read();
    tx.query_row(
        "SELECT EXISTS(SELECT 1 FROM item WHERE handle = ?1)
             OR EXISTS(SELECT 1 FROM item_history WHERE handle = ?1)",
        [handle.to_bytes()],
        |row| row.get(0),
    )
}

/// Erases the items from a copy, or deletes the copy if it is one of the index of mail, or damaged:
/// a repair set it aside, and it may have the items' bytes. If the former database was a link, the
/// file where it leads is deleted, too. A file of another program stays, as it has no items.
fn purge_copy(
    directory: &DataDirectory,
    copy: &Path,
    handles: &[Handle],
    deleted: &mut Vec<PathBuf>,
) -> Result<()> {
    // The index of mail can be made again, so a copy of it is not worth a rewrite. A link that
    // leads nowhere is what an interrupted purge left of a damaged copy.
    let is_kept = directory.store_file() == StoreFile::Data
        && (!directory.is_damaged_copy(copy) || copy.try_exists().unwrap_or(true))
        && match rewrite_copy(directory, copy, handles) {
            Err(Error::NotAStore { .. }) => true,
            Err(error) if error.damaged_file().is_some() => false,
            done => done.map(|()| true)?,
        };
    if is_kept {
        return Ok(());
    }
    // The link goes last, and the file before it goes after its log: an interrupted purge finds
    // what is left only through them.
    if directory.is_damaged_copy(copy)
        && let Some(target) = link_target(copy)
        && !is_database_or_copy(directory, &target)?
    {
        let removed = remove_companions(&target)
            .and_then(|()| ignore_missing(fs::remove_file(&target)))
            .and_then(|()| sync_folder_of(&target));
        removed.map_err(file_error_at(&target))?;
        deleted.push(target);
    }
    remove_with_companions(copy).map_err(file_error_at(copy))?;
    deleted.push(copy.to_path_buf());
    Ok(())
}

/// Returns whether a file, by its path without links, is a database of the directory, or a copy,
/// which is purged by its own name.
fn is_database_or_copy(directory: &DataDirectory, file: &Path) -> Result<bool> {
    let is_same = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|own| own == file);
    let mut paths = directory.list_copies()?;
    paths.retain(|copy| !copy.is_symlink());
    let stores = [StoreFile::Data, StoreFile::Index, StoreFile::Commits];
    paths.extend(stores.map(|store| directory.clone().with_store_file(store).database_path()));
    Ok(paths.iter().any(is_same))
}

/// Deletes the logs and journals of copies that are missing: they may have the items' bytes, and no
/// database is left to which they belong.
fn delete_orphaned_companions(directory: &DataDirectory, deleted: &mut Vec<PathBuf>) -> Result<()> {
    for orphan in directory.list_orphaned_companions()? {
        ignore_missing(fs::remove_file(&orphan)).map_err(file_error_at(&orphan))?;
        sync_folder_of(&orphan).map_err(file_error_at(&orphan))?;
        deleted.push(orphan);
    }
    Ok(())
}

/// Replaces a copy by one without the items, which is written beside it: a purge that is
/// interrupted leaves the copy as it was.
fn rewrite_copy(directory: &DataDirectory, copy: &Path, handles: &[Handle]) -> Result<()> {
    verify_copy_version(directory, copy)?;
    let prefix = directory.staging_prefix("purge");
    let staged = create_staging(folder_of(copy), &prefix)?;
    let rewritten = create_staging(folder_of(copy), &prefix)?;
    apply_log(copy);
    let source = open_copy(copy).map_err(sqlite_error_at(copy))?;
    // In an inconsistent file, bytes of the items may be in pages that no query finds.
    quick_check(&source.autocommit_read(), copy)?;
    let conn = copy_into(&source, copy, staged.path())?;
    let erase = || -> DatabaseResult<()> {
        let tx = conn.begin_write()?;
        erase_items_from_copy(&tx, handles)?;
        tx.commit()?;
        Ok(())
    };
    erase().map_err(sqlite_error_at(copy))?;
    conn.vacuum_into(rewritten.path()).map_err(sqlite_error_at(rewritten.path()))?;
    drop((conn, source));
    // The log of the copy has the items' bytes. Beside the new file, SQLite would apply it.
    remove_companions(copy).map_err(file_error_at(copy))?;
    rewritten.persist(copy).map_err(file_error_at(copy))
}

/// Fails if a copy has tables that this program does not know: they may have the items' bytes.
fn verify_copy_version(directory: &DataDirectory, copy: &Path) -> Result<()> {
    let conn = open_copy(copy).map_err(sqlite_error_at(copy))?;
    let path = copy.to_path_buf();
    match schema::verify_version(&conn.autocommit_read(), copy, directory.store_file()) {
        Ok(SchemaState::NewerMinor(major, minor)) => {
            let version = format!("{major}.{minor}");
            Err(Error::UnknownCopy { source: Box::new(Error::ReadOnly { path, version }) })
        }
        Ok(SchemaState::Empty) => {
            Err(Error::Damaged { path, what: "the file is empty".to_string() })
        }
        Ok(SchemaState::Current | SchemaState::Older(..)) => Ok(()),
        Err(error @ (Error::SchemaTooNew { .. } | Error::DevelopmentSchema { .. })) => {
            Err(Error::UnknownCopy { source: Box::new(error) })
        }
        Err(error) => Err(error),
    }
}

/// Writes the log beside a copy into the copy: if the process is killed when the log is deleted and
/// the copy is not replaced yet, the copy has the batches of the log. A copy of which SQLite cannot
/// write the log is read together with it.
fn apply_log(copy: &Path) {
    if with_suffix(copy, "-wal").exists() {
        let _unread = WriteConnection::open(copy).and_then(|conn| conn.empty_wal(Duration::ZERO));
    }
}

/// Opens a copy read-only. A journal that SQLite would have to apply is ignored, because a reader
/// cannot apply it: Larder writes none, so it is of another program.
fn open_copy(copy: &Path) -> rusqlite::Result<ReadConnection> {
    match ReadConnection::open(copy) {
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK =>
        {
            ReadConnection::open_with_shared_memory(copy, SharedMemory::None)
        }
        opened => opened,
    }
}

/// Erases the items from a copy. Its indexes are emptied; a restore refills them.
fn erase_items_from_copy(tx: &WriteTransaction<'_>, handles: &[Handle]) -> DatabaseResult<()> {
    for &handle in handles {
        let (_, bytes) = history::erase_item_history(tx, handle)?;
        write_meta(tx, "history_bytes", read_meta_number(tx, "history_bytes")? - bytes)?;
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
    calendar_context_table::delete_unreferenced(tx)?;
    while erase_schedules(tx, i64::MAX)? {}
    // The copy may have an older schema version, so its tables are looked up.
    let tables = tx
        .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'idx_*' AND sql LIKE 'CREATE%'")?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for table in tables {
        tx.execute(&format!("DELETE FROM {table}"), [])?;
    }
    for index in DerivedIndex::ALL {
        write_meta(tx, index.meta_key(), "emptied".to_string())?;
    }
    // The copy may be one of a store whose purge was interrupted.
    pending_work::write_purge(tx, None)
}
