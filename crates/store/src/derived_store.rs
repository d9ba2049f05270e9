//! Making a store anew that can be made again from its sources: `index.db` or `commits.db`.
//!
//! The new store is filled in a folder of its own, while searches use the old one. Then a copy of
//! it takes the place of the old file, as a backup takes that of a damaged store: whoever opens the
//! store finishes a replacement that was interrupted, so the store is the old one or the new one.
//!
//! Separate from `backup`, which keeps what was there: here nothing is lost with it.

use crate::data_directory::DataDirectory;
use crate::database_copy::TempCopy;
use crate::error::{Result, file_error_at};
use crate::interrupted_restore;
use crate::lock::{LockFiles, WorkLock};
use crate::staging_file::{ignore_missing, remove_with_companions};
use crate::store::{Store, StoreOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// A store that is being made anew. No synchronisation writes to the old one until this is dropped.
#[derive(Debug)]
pub struct StoreReplacement {
    directory: DataDirectory,
    new: DataDirectory,
    locks: LockFiles,
    _work: WorkLock,
}

impl DataDirectory {
    /// Begins to make the store anew. What an interrupted replacement left is deleted.
    ///
    /// # Errors
    /// The lock files cannot be used, or files cannot be deleted.
    pub fn begin_replacement(&self, options: &StoreOptions) -> Result<StoreReplacement> {
        debug_assert!(self.store_file().is_disposable());
        let locks = LockFiles::open(self, options.requester.clone())?;
        let work = locks.acquire_work_lock()?;
        self.delete_unfinished_replacement()?;
        for copy in self.list_copies()? {
            remove_with_companions(&copy).map_err(file_error_at(&copy))?;
        }
        let new = DataDirectory::new(self.replacement_path()).with_store_file(self.store_file());
        Ok(StoreReplacement { directory: self.clone(), new, locks, _work: work })
    }

    /// Returns whether a replacement of the store was interrupted that opening it for writing
    /// finishes.
    #[must_use]
    pub fn has_pending_replacement(&self) -> bool {
        self.pending_restore_path().exists()
    }

    /// Deletes the folder of a replacement that was interrupted. For callers that hold the lock of
    /// work.
    pub(crate) fn delete_unfinished_replacement(&self) -> Result<()> {
        let path = self.replacement_path();
        ignore_missing(fs::remove_dir_all(&path)).map_err(file_error_at(&path))
    }

    /// The folder in which the store is made anew.
    fn replacement_path(&self) -> PathBuf {
        let name = self.database_path().file_name().unwrap_or_default().to_os_string();
        let mut folder = std::ffi::OsString::from("new-");
        folder.push(name);
        self.path().join(folder)
    }
}

impl StoreReplacement {
    /// Returns the directory in which the new store is to be made.
    #[must_use]
    pub fn new_directory(&self) -> &DataDirectory {
        &self.new
    }

    /// Puts the new store in the place of the old one.
    ///
    /// # Errors
    /// The new store cannot be opened, or is damaged, or files cannot be written. The store is the
    /// old one or the new one.
    pub fn commit(self, options: &StoreOptions) -> Result<()> {
        let new = Store::open(self.new.clone(), options)?;
        let path: &Path = &new.path;
        let copy = TempCopy::create(&new.conn, path, &self.directory, "replacement", |_| Ok(()))?;
        copy.verify(path)?;
        drop(new);
        let lock = self.locks.acquire()?;
        interrupted_restore::replace_database(&self.directory, &self.locks, copy.into_staging())?;
        lock.mark_clean();
        Ok(())
    }
}

impl Drop for StoreReplacement {
    fn drop(&mut self) {
        // What is left is deleted by the next synchronisation.
        let _left = self.directory.delete_unfinished_replacement();
    }
}
