//! Write transactions.
//!
//! Apart from rusqlite's transaction, which parses each BEGIN and COMMIT again; for a small change
//! that is a considerable part of the work.

use rusqlite::Connection;
use std::ops::Deref;

/// A write transaction, which is rolled back unless it is committed.
pub(crate) struct WriteTransaction<'a>(&'a Connection);

impl WriteTransaction<'_> {
    /// Begins a transaction with SQLite's write lock: a read transaction is never upgraded.
    pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<WriteTransaction<'_>> {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(WriteTransaction(conn))
    }

    /// Commits the transaction to the disk.
    pub(crate) fn commit(self) -> rusqlite::Result<()> {
        self.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Deref for WriteTransaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        // It may be committed already, or SQLite may have rolled it back.
        if !self.0.is_autocommit() {
            let _ended = self.0.execute_batch("ROLLBACK");
        }
    }
}
