//! Write transactions: the only way in which SQL changes the database.
//!
//! Used instead of rusqlite's transaction, which parses each BEGIN and COMMIT again; for a small
//! change that is a considerable part of the work.

use crate::read_transaction::ReadTransaction;
use rusqlite::{CachedStatement, Connection, Params};
use std::ops::Deref;

/// A write transaction, which is rolled back unless it is committed. It is a read transaction, too:
/// code that only reads takes a [`ReadTransaction`].
pub(crate) struct WriteTransaction<'a> {
    conn: &'a Connection,
    read: ReadTransaction<'a>,
}

impl<'a> WriteTransaction<'a> {
    /// Begins a transaction with SQLite's write lock: a read transaction is never upgraded.
    pub(crate) fn begin(conn: &'a Connection) -> rusqlite::Result<WriteTransaction<'a>> {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(WriteTransaction { conn, read: ReadTransaction::join(conn) })
    }

    /// Commits the transaction to the disk.
    pub(crate) fn commit(self) -> rusqlite::Result<()> {
        self.conn.prepare_cached("COMMIT")?.execute([]).map(drop)
    }

    /// Prepares a statement, which may write, and keeps it for the next time.
    pub(crate) fn prepare_cached(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.conn.prepare_cached(sql)
    }

    /// Runs a statement that runs rarely. Returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.conn.execute(sql, params)
    }

    /// Runs several statements.
    pub(crate) fn execute_batch(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.execute_batch(sql)
    }

    /// Returns the number of the last row that was inserted.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        self.conn.last_insert_rowid()
    }
}

impl<'a> Deref for WriteTransaction<'a> {
    type Target = ReadTransaction<'a>;

    fn deref(&self) -> &ReadTransaction<'a> {
        &self.read
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        // It may be committed already, or SQLite may have rolled it back.
        if !self.conn.is_autocommit() {
            let _ended = self.conn.execute_batch("ROLLBACK");
        }
    }
}
