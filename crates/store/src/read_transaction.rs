//! Read transactions.
//!
//! A read transaction prepares statements that read, and refuses all others. Separate from
//! `connection`, which begins the transactions, because almost every module names this type.

use rusqlite::{CachedStatement, Connection, MappedRows, Params, Row, Rows};

/// A read transaction. Until it is dropped, its reader sees the store as it was at the first call,
/// and each call costs less. It keeps the write-ahead log from being reset, so it must not last
/// longer than 200 ms, nor block.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ReadTransaction<'a> {
    conn: &'a Connection,
    /// Whether this began the transaction. If not, another one did and ends it, or none is open and
    /// each statement is a transaction of its own.
    is_owner: bool,
}

impl<'a> ReadTransaction<'a> {
    /// Begins a transaction.
    pub(crate) fn begin(conn: &'a Connection) -> rusqlite::Result<ReadTransaction<'a>> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(ReadTransaction { conn, is_owner: true })
    }

    /// Joins the transaction of the connection that is open, if one is.
    pub(crate) fn join(conn: &'a Connection) -> ReadTransaction<'a> {
        ReadTransaction { conn, is_owner: false }
    }

    /// Prepares a statement, and keeps it for the next time. Fails if the statement writes.
    pub(crate) fn prepare_cached(&self, sql: &str) -> rusqlite::Result<ReadStatement<'a>> {
        let statement = self.conn.prepare_cached(sql)?;
        if !statement.readonly() {
            return Err(rusqlite::Error::InvalidQuery);
        }
        Ok(ReadStatement(statement))
    }

    /// Runs a statement that returns one row.
    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.prepare_cached(sql)?.query_row(params, read)
    }

    /// Returns SQLite's data version, which changes when another connection writes.
    pub(crate) fn data_version(&self) -> rusqlite::Result<i64> {
        self.query_row("PRAGMA data_version", [], |row| row.get(0))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        if self.is_owner {
            // Nothing was written, so a failure loses nothing.
            let _ended = self.conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
}

/// A statement that reads.
pub(crate) struct ReadStatement<'a>(CachedStatement<'a>);

impl ReadStatement<'_> {
    /// Runs the statement, and returns its rows.
    pub(crate) fn query(&mut self, params: impl Params) -> rusqlite::Result<Rows<'_>> {
        self.0.query(params)
    }

    /// Runs the statement, and converts its rows.
    pub(crate) fn query_map<T, F: FnMut(&Row<'_>) -> rusqlite::Result<T>>(
        &mut self,
        params: impl Params,
        read: F,
    ) -> rusqlite::Result<MappedRows<'_, F>> {
        self.0.query_map(params, read)
    }

    /// Runs the statement, and converts its first row.
    pub(crate) fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.0.query_row(params, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_writes_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t(n); INSERT INTO t VALUES(1)").unwrap();
        for tx in [ReadTransaction::join(&conn), ReadTransaction::begin(&conn).unwrap()] {
            for sql in ["UPDATE t SET n = 2", "DELETE FROM t RETURNING n", "DROP TABLE t"] {
                let refused = tx.prepare_cached(sql).map(drop);
                assert!(matches!(refused, Err(rusqlite::Error::InvalidQuery)), "{sql}");
            }
            assert_eq!(tx.query_row("SELECT n FROM t", [], |row| row.get(0)), Ok(1));
        }
    }
}
