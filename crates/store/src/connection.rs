//! Connections to the database file, with the settings that all of them have.
//!
//! Apart from `store` and `reader`, which both open connections, and from `backup`, which copies
//! from one to another.

use crate::error::{Error, Result, sqlite_error_at};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// SQLite before this version can corrupt a WAL database (fixed in 3.51.3).
const MIN_SQLITE_VERSION: i32 = 3_051_003;
/// Page cache of a reader, in kilobytes (negative, as the pragma has it).
const READ_CACHE_KIB: i64 = -8192;
/// Page cache of a writer: the index rows of a batch are spread over their tables.
const WRITE_CACHE_KIB: i64 = -16384;
/// Prepared statements that a connection keeps: more than there are in the program, as preparing
/// one takes longer than running most of them.
const STATEMENT_CACHE_CAPACITY: usize = 256;
/// The length that the write-ahead log is cut back to when it begins anew: more than single changes
/// make of it between two checkpoints. A commit that lets it grow also waits for the file's new
/// length, which is a second write.
const WAL_LIMIT_BYTES: i64 = 5 << 20;

/// Refuses a version of SQLite that can damage a store. The bundled one is new enough; another may
/// be linked in its place.
pub(crate) fn check_sqlite_version() -> Result<()> {
    let found = rusqlite::version_number();
    if found < MIN_SQLITE_VERSION { Err(Error::SqliteTooOld { found }) } else { Ok(()) }
}

/// Opens a connection with the settings of all connections.
pub(crate) fn open_connection(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = open_connection_without_cache(path, access)?;
    set_read_cache_size(&conn)?;
    Ok(conn)
}

/// Opens a connection whose page cache has no size yet, as setting that reads the file.
pub(crate) fn open_connection_without_cache(
    path: &Path,
    access: OpenFlags,
) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(std::time::Duration::from_secs(10))?;
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    // Without this, a statement that could use the index of collections' names, which is a partial
    // one, is planned anew for each value that is bound to it: SQLite hopes to see by the value
    // whether it may.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A statement over a list of rows, `rarray(?)`, costs less than one for each row.
    rusqlite::vtab::array::load_module(&conn)?;
    Ok(conn)
}

/// Sets the size of the page cache of a reader.
pub(crate) fn set_read_cache_size(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_size", READ_CACHE_KIB)
}

/// Makes a connection one that writes: a write-ahead log, and each commit on the disk.
pub(crate) fn set_write_pragmas(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_size", WRITE_CACHE_KIB)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "full")?;
    // SQLite would checkpoint within the commit, while others wait for our lock.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)
}

/// Fails where pages contradict themselves; much faster than the full integrity check.
pub(crate) fn quick_check(conn: &Connection, path: &Path) -> Result<()> {
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(sqlite_error_at(path))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Damaged { path: path.to_path_buf(), what: verdict })
    }
}

/// Returns the first hundred findings of SQLite's full integrity check.
pub(crate) fn integrity_check(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let lines = conn
        .prepare("PRAGMA integrity_check(100)")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
