//! Erasing for good: afterwards no byte of the item is in any file of the data directory, the
//! write-ahead log and free pages included.

use crate::batch::{Change, Operation, Outcome};
use crate::error::{Error, Result, at};
use crate::handle::Handle;
use crate::history;
use crate::store::{Store, meta, set_meta};
use rusqlite::Connection;
use std::path::Path;

impl Store {
    /// Takes items and all their former versions away and rewrites the files without them, the copies
    /// that migrations and restores left included. Cannot be undone. Returns how many items there were.
    ///
    /// # Errors
    /// [`Error::ReaderInTheWay`] where a reader kept the old pages in use: the items are gone, but bytes of
    /// them may be left until the purge is run again.
    pub fn purge(&mut self, operation: &mut Operation, handles: &[Handle]) -> Result<u64> {
        self.writable()?;
        // The copies first: where one of them cannot be purged, nothing is.
        {
            let _lock = self.locks.acquire()?;
            self.directory.sweep()?;
        }
        for copy in self.directory.copies()? {
            purge_copy(&copy, handles)?;
        }
        // Deleted rows are overwritten at once, so that a crash before the rewrite leaves as little as can be.
        self.conn.pragma_update(None, "secure_delete", true).map_err(at(&self.path))?;
        let changes = handles.iter().map(|&handle| Change::Purge(handle)).collect();
        let applied = self.apply(operation, changes)?;
        self.rewrite()?;
        let purged = |outcome: &&Outcome| matches!(outcome, Outcome::Removed(_));
        Ok(applied.outcomes.iter().filter(purged).count() as u64)
    }

    /// Rewrites the file without free pages and empties the write-ahead log.
    fn rewrite(&mut self) -> Result<()> {
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        compact(&self.conn).map_err(at(&self.path))?;
        let busy: i64 = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(at(&self.path))?;
        if busy == 0 { Ok(()) } else { Err(Error::ReaderInTheWay) }
    }
}

/// Merges the full-text index into one segment, which leaves out what was deleted, and rewrites all pages.
fn compact(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO idx_text(idx_text) VALUES('optimize')", [])?;
    conn.execute_batch("VACUUM")
}

/// Erases the items from a copy. Its indexes are simply emptied: a restore refills them.
fn purge_copy(copy: &Path, handles: &[Handle]) -> Result<()> {
    let run = || -> rusqlite::Result<()> {
        let conn = Connection::open(copy)?;
        conn.pragma_update(None, "secure_delete", true)?;
        let tx = crate::store::immediate(&conn)?;
        for &handle in handles {
            let (_, bytes) = history::erase(&tx, handle)?;
            set_meta(&tx, "former_bytes", meta(&tx, "former_bytes")? - bytes)?;
            tx.execute(
                "UPDATE blob SET uses = uses - 1 WHERE hash IN (SELECT blob FROM source
                   WHERE item IN (SELECT id FROM item WHERE handle = ?1))",
                [handle.to_bytes()],
            )?;
            tx.execute("DELETE FROM blob WHERE uses <= 0", [])?;
            tx.execute(
                "DELETE FROM source WHERE item IN (SELECT id FROM item WHERE handle = ?1)",
                [handle.to_bytes()],
            )?;
            tx.execute("DELETE FROM item WHERE handle = ?1", [handle.to_bytes()])?;
        }
        tx.execute_batch(
            "DELETE FROM idx_value; DELETE FROM idx_large; DELETE FROM idx_sort;
             INSERT INTO idx_text(idx_text) VALUES('delete-all');
             UPDATE meta SET value = 'emptied' WHERE key LIKE 'idx:%';",
        )?;
        tx.commit()?;
        compact(&conn)
    };
    run().map_err(at(copy))
}
