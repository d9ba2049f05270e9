//! The store as a synchronisation of mail uses it: one at a time, with rows of its own.
//!
//! Separate from `batch`: this is work of many batches, in between which others write.

use crate::connection::SyncMode;
use crate::data_directory::StoreFile;
use crate::error::{DatabaseError, DatabaseResult, Result, file_error_at, sqlite_error_at};
use crate::lock::WorkLock;
use crate::mail_schema::WORDS_END_KEY;
use crate::meta::{find_meta_number, read_meta_number};
use crate::staging_file::sync_file_system_of;
use crate::store::{Store, WAL_READER_PATIENCE};
use crate::unsynced_mark::{delete_mark, has_mark, write_mark};

/// The lock of a synchronisation, held until dropped: no other process gives rows to messages.
#[derive(Debug)]
pub struct MailSyncLock {
    _work: WorkLock,
}

impl Store {
    /// Waits until no other process synchronises mail. If the store was opened with
    /// [`SyncMode::Off`], nothing is synced until [`Store::end_mail_sync`].
    ///
    /// # Errors
    /// The lock file or the mark of unsynced writes cannot be used.
    pub fn lock_mail_sync(&self) -> Result<MailSyncLock> {
        self.begin_mail_sync(MailSyncLock { _work: self.lock_files.acquire_work_lock()? })
    }

    /// Takes the lock of a synchronisation; `None`: another process has it.
    ///
    /// # Errors
    /// As [`Store::lock_mail_sync`].
    pub fn try_lock_mail_sync(&self) -> Result<Option<MailSyncLock>> {
        let work = self.lock_files.try_work_lock()?;
        work.map(|work| self.begin_mail_sync(MailSyncLock { _work: work })).transpose()
    }

    fn begin_mail_sync(&self, lock: MailSyncLock) -> Result<MailSyncLock> {
        // It has words of messages, which may have been purged since.
        self.directory.delete_unfinished_replacement()?;
        // A killed process left it.
        self.sync_marked_writes()?;
        if self.directory.store_file() != StoreFile::Data && self.is_writable() {
            if self.sync_mode == SyncMode::Off {
                write_mark(&self.directory)?;
            }
            self.conn.set_sync_mode(self.sync_mode).map_err(sqlite_error_at(&self.path))?;
        }
        Ok(lock)
    }

    /// Ends a synchronisation: what it wrote is on the disk. Without this call, the next
    /// synchronisation does it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn end_mail_sync(&self, lock: MailSyncLock) -> Result<()> {
        self.sync_marked_writes()?;
        drop(lock);
        Ok(())
    }

    /// Syncs what was written without waiting for the disk, and deletes the mark.
    fn sync_marked_writes(&self) -> Result<()> {
        let path = self.directory.unsynced_mark_path();
        if !has_mark(&self.directory).map_err(file_error_at(&path))? || !self.is_writable() {
            return Ok(());
        }
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let is_synced =
            self.conn.sync_files(WAL_READER_PATIENCE).map_err(sqlite_error_at(&self.path))?;
        if !is_synced {
            // A reader keeps the log from being copied. Files that are opened to sync them release
            // the locks of SQLite when they are closed, so their file system is synced.
            sync_file_system_of(&self.path).map_err(file_error_at(&self.path))?;
        }
        drop(lock);
        delete_mark(&self.directory)
    }

    /// Returns the first row that is free for new messages.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn next_mail_row(&self, _lock: &MailSyncLock) -> Result<u32> {
        let next_row = || -> DatabaseResult<u32> {
            let tx = self.autocommit_read();
            let last = read_meta_number(&tx, "last_item")?;
            let words_end = find_meta_number(&tx, WORDS_END_KEY)?.unwrap_or_default();
            u32::try_from(words_end.max(last + 1))
                .map_err(|_| DatabaseError::Damaged("the last row is too large".into()))
        };
        next_row().map_err(sqlite_error_at(&self.path))
    }
}
