//! Deleting `index.db`, which is made again from what is elsewhere.
//!
//! Separate from `store`, which opens the file: here the file may be damaged.

use crate::data_directory::DataDirectory;
use crate::error::{Result, file_error_at};
use crate::lock::LockFiles;
use crate::store::StoreOptions;
use crate::unsynced_mark::delete_mark;
use std::fs;
use std::io::ErrorKind;

impl DataDirectory {
    /// Deletes a store that can be made again, while no other process writes to it. The next
    /// process that opens it deletes the log files and begins anew.
    ///
    /// # Errors
    /// The lock files cannot be used, or the file cannot be deleted.
    pub fn delete_derived_store(&self, options: &StoreOptions) -> Result<()> {
        debug_assert!(self.store_file().is_disposable());
        let locks = LockFiles::open(self, options.requester.clone())?;
        let _work = locks.acquire_work_lock()?;
        let _write = locks.acquire()?;
        let path = self.database_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(file_error_at(&path)(error));
            }
            _ => {}
        }
        delete_mark(self)
    }
}
