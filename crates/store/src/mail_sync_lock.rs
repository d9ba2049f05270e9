//! The store as a synchronisation of mail uses it: one at a time, with rows of its own.
//!
//! Separate from `batch`: this is work of many batches, in between which others write.

use crate::error::{DatabaseError, DatabaseResult, Result, sqlite_error_at};
use crate::lock::WorkLock;
use crate::mail_schema::WORDS_END_KEY;
use crate::meta::{find_meta_number, read_meta_number};
use crate::store::Store;

/// The lock of a synchronisation, held until dropped: no other process gives rows to messages.
#[derive(Debug)]
pub struct MailSyncLock {
    _work: WorkLock,
}

impl Store {
    /// Waits until no other process synchronises mail.
    ///
    /// # Errors
    /// The lock file cannot be used.
    pub fn lock_mail_sync(&self) -> Result<MailSyncLock> {
        Ok(MailSyncLock { _work: self.lock_files.acquire_work_lock()? })
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
