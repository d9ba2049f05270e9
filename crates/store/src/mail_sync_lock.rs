//! The store as a synchronisation of mail uses it: one at a time, with rows of its own.
//!
//! Separate from `batch`: this is work of many batches, in between which others write.

use crate::error::{DatabaseError, DatabaseResult, Result, sqlite_error_at};
use crate::lock::WorkLock;
use crate::meta::read_meta_number;
use crate::store::Store;

/// The lock of a synchronisation, held until dropped: no other process gives rows to messages.
#[derive(Debug)]
pub struct MailSyncLock {
    _work: WorkLock,
    /// The first row that is free for new messages.
    pub first_row: u32,
}

impl Store {
    /// Waits until no other process synchronises mail.
    ///
    /// # Errors
    /// The lock file or the store cannot be used.
    pub fn lock_mail_sync(&self) -> Result<MailSyncLock> {
        let work = self.lock_files.acquire_work_lock()?;
        let first_row = || -> DatabaseResult<u32> {
            let last = read_meta_number(&self.autocommit_read(), "last_item")?;
            u32::try_from(last + 1)
                .map_err(|_| DatabaseError::Damaged("the last row is too large".into()))
        };
        let first_row = first_row().map_err(sqlite_error_at(&self.path))?;
        Ok(MailSyncLock { _work: work, first_row })
    }
}
