//! A transaction that writes.
//!
//! It is apart from SQLite's binding as that reads the words of each BEGIN and COMMIT anew, which
//! for a small change is a good part of the work.

use rusqlite::Connection;
use std::ops::Deref;

/// What is written through it is rolled back, unless it is committed.
pub(crate) struct WriteTransaction<'a>(&'a Connection);

impl WriteTransaction<'_> {
    /// Takes SQLite's write lock at its beginning: a read transaction is never upgraded.
    pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<WriteTransaction<'_>> {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(WriteTransaction(conn))
    }

    /// Puts all on the disk.
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
        // Not where it was committed, or SQLite has rolled it back by itself.
        if !self.0.is_autocommit() {
            let _ended = self.0.execute_batch("ROLLBACK");
        }
    }
}
