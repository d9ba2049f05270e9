//! The labels that wait for messages which are not in the index.
//!
//! Separate from `mail_reader`, which reads what is there.

use super::MailReader;
use crate::error::Result;
use larder_format::label::MessageLabels;
use rusqlite::OptionalExtension as _;

impl MailReader<'_> {
    /// Returns the number of messages that have labels and are not in the index.
    pub fn count_waiting_labels(&self) -> Result<u64> {
        self.run(|tx| {
            let sql = "SELECT count(DISTINCT coalesce(message_id, uid)) FROM mail_waiting_label
                       WHERE is_given = 0";
            Ok(tx.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    /// Returns the names of the first messages that have labels and are not in the index.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn waiting_names(&self, limit: usize) -> Result<Vec<String>> {
        self.run(|tx| {
            let sql = "SELECT DISTINCT coalesce(message_id, uid) FROM mail_waiting_label
                       WHERE is_given = 0 ORDER BY 1 LIMIT ?1";
            let mut select = tx.prepare_cached(sql)?;
            let names =
                select.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?;
            Ok(names.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the number of items with labels that are kept beside the labels of messages.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count_all_waiting_labels(&self) -> Result<u64> {
        self.run(|tx| {
            let sql = "SELECT count(*) FROM mail_waiting_label";
            Ok(tx.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    /// Returns the labels that wait for a message; `None`: none wait.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn waiting_labels(&self, uid: &str) -> Result<Option<MessageLabels>> {
        self.run(|tx| {
            let sql = "SELECT labels FROM mail_waiting_label WHERE uid = ?1";
            let read = |row: &rusqlite::Row<'_>| {
                Ok(MessageLabels::parse(row.get_ref(0)?.as_blob().unwrap_or_default()))
            };
            Ok(tx.prepare_cached(sql)?.query_row([uid], read).optional()?)
        })
    }
}
