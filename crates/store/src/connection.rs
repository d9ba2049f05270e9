//! Connections to the database file, with the settings that all of them have.
//!
//! A [`ReadConnection`] begins read transactions only, a [`WriteConnection`] both kinds. Everything
//! that SQLite does only outside of transactions is here: opening, pragmas, checkpoints, VACUUM and
//! the copying of databases. Separate from `store` and `reader`, which both open connections, and
//! from `database_copy`, which copies from one to another. Only this module and the two transaction
//! types name `rusqlite::Connection`, so no other statement runs outside of a transaction.

use crate::data_directory::StoreFile;
use crate::error::{Error, Result, sqlite_error_at};
use crate::failure_cause::read_failure_in_finding;
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};
use std::cell::Cell;
use std::ffi::OsString;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// SQLite before this version can corrupt a WAL database (fixed in 3.51.3).
const MIN_SQLITE_VERSION: i32 = 3_051_003;
/// The page cache of a reader in kilobytes; SQLite expects a negative number for this unit.
const READ_CACHE_KIB: i64 = -8192;
/// The page cache of a writer in kilobytes (negative); it is large because the index rows of a
/// batch are spread over their tables.
const WRITE_CACHE_KIB: i64 = -16384;
/// The maximum size of a file that SQLite maps into memory.
const MMAP_LIMIT_BYTES: i64 = 0x7fff_0000;
/// The time that a statement waits for a lock of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which a checkpoint is tried again that met another one.
const CHECKPOINT_RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// Prepared statements that a connection keeps: more than the program has, because preparing a
/// statement takes longer than running most of them.
const STATEMENT_CACHE_CAPACITY: usize = 256;
/// The size to which the write-ahead log is truncated when SQLite restarts it. Single changes
/// between two checkpoints need less, so commits rarely extend the file; extending it costs a
/// second write.
const WAL_LIMIT_BYTES: i64 = 5 << 20;
/// The size for a store that can be made again; its write-ahead log is longer (`WalLimits`).
const INDEX_WAL_LIMIT_BYTES: i64 = 40 << 20;

/// Refuses a version of SQLite that can damage a store. The bundled version is new enough, but
/// another version may be linked in its place.
pub(crate) fn check_sqlite_version() -> Result<()> {
    let found = rusqlite::version_number();
    if found < MIN_SQLITE_VERSION { Err(Error::SqliteTooOld { found }) } else { Ok(()) }
}

/// A connection that reads.
#[derive(Debug)]
pub(crate) struct ReadConnection(Connection);

/// A connection that reads and writes.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    conn: ReadConnection,
    /// Whether deleted rows are overwritten.
    is_secure: Cell<bool>,
}

/// How far commits wait for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// They do not: after a power cut, the store has to be made again.
    Off,
    /// A power cut may take the last commits.
    #[default]
    Normal,
    /// Each waits until it is on the disk.
    Full,
}

impl SyncMode {
    fn name(self) -> &'static str {
        match self {
            SyncMode::Off => "off",
            SyncMode::Normal => "normal",
            SyncMode::Full => "full",
        }
    }
}

/// The place of the index of the write-ahead log, which connections share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedMemory {
    /// A file beside the database.
    File,
    /// That file if another process has made it, otherwise the memory of this process.
    Heap,
    /// There is no write-ahead log, and nobody writes.
    None,
}

/// The pages in the write-ahead log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WalPages {
    /// All pages.
    pub(crate) all: i64,
    /// The pages that are in the database, too.
    copied: i64,
}

impl WalPages {
    /// Returns the number of pages that are only in the log.
    pub(crate) fn backlog(self) -> i64 {
        self.all - self.copied
    }
}

/// Opens a connection with the settings of all connections. Its page cache has no size yet, because
/// setting it reads the file.
fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<ReadConnection> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    // Without this setting, SQLite plans a statement again for each bound value if the statement
    // could use the partial index of collection names, because the value decides whether the index
    // applies.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Temporary tables have data of items, and must not be in a directory that others can read.
    conn.pragma_update(None, "temp_store", "memory")?;
    // The schema of a file that others made must not run anything: no trigger, no view, no function
    // in an expression of it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Only a purge overwrites pages, see `set_pages_writable`.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // A statement over a list of rows, `rarray(?)`, costs less than one for each row.
    rusqlite::vtab::array::load_module(&conn)?;
    Ok(ReadConnection(conn))
}

/// Returns the URI of a file with a parameter.
fn uri(path: &Path, parameter: &str) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(byte),
        }
    }
    uri.push(b'?');
    uri.extend(parameter.bytes());
    PathBuf::from(OsString::from_vec(uri))
}

impl ReadConnection {
    /// Opens a file read-only that may come from anywhere: the cells of each page are verified when
    /// it is read.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<ReadConnection> {
        let conn = ReadConnection::open_without_cache(path)?;
        conn.set_cache_size()?;
        conn.0.pragma_update(None, "cell_size_check", true)?;
        Ok(conn)
    }

    /// Opens a file read-only. Its page cache has no size yet, because setting it reads the file.
    pub(crate) fn open_without_cache(path: &Path) -> rusqlite::Result<ReadConnection> {
        open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    /// As [`ReadConnection::open_without_cache`], with the shared memory at this place.
    pub(crate) fn open_with_shared_memory(
        path: &Path,
        shared_memory: SharedMemory,
    ) -> rusqlite::Result<ReadConnection> {
        let parameter = match shared_memory {
            SharedMemory::File => return ReadConnection::open_without_cache(path),
            SharedMemory::Heap => "readonly_shm=1",
            SharedMemory::None => "immutable=1",
        };
        let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        open(&uri(path, parameter), access)
    }

    /// Sets the size of the page cache of a reader.
    pub(crate) fn set_cache_size(&self) -> rusqlite::Result<()> {
        self.0.pragma_update(None, "cache_size", READ_CACHE_KIB)
    }

    /// Never checkpoints: a connection that closes last tries to empty the write-ahead log; a
    /// read-only connection cannot do this.
    pub(crate) fn disable_checkpoint_on_close(&self) -> rusqlite::Result<()> {
        self.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
    }

    /// Begins a read transaction.
    pub(crate) fn begin_read(&self) -> rusqlite::Result<ReadTransaction<'_>> {
        ReadTransaction::begin(&self.0)
    }

    /// Returns a view of the open transaction, or, if none is open, a view in which each statement
    /// is a separate transaction. For callers that run one statement.
    pub(crate) fn autocommit_read(&self) -> ReadTransaction<'_> {
        ReadTransaction::join(&self.0)
    }

    /// Returns whether a transaction is open.
    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.0.is_autocommit()
    }

    /// Sets whether the file is mapped into memory.
    pub(crate) fn set_mapped(&self, is_mapped: bool) {
        let size = if is_mapped { MMAP_LIMIT_BYTES } else { 0 };
        // Without a mapping, pages are read by system calls; a mapping that remains does no harm.
        let _unchanged = self.0.pragma_update(None, "mmap_size", size);
    }

    /// Releases cached memory.
    pub(crate) fn shrink_memory(&self) {
        // If this fails, the memory remains in use.
        let _kept = self.0.execute_batch("PRAGMA shrink_memory");
    }

    /// Returns the journal mode of the file.
    pub(crate) fn journal_mode(&self) -> rusqlite::Result<String> {
        self.0.pragma_query_value(None, "journal_mode", |row| row.get(0))
    }
}

impl WriteConnection {
    /// Opens a file for reading and writing.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<WriteConnection> {
        let conn = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        conn.set_cache_size()?;
        Ok(WriteConnection { conn, is_secure: Cell::new(false) })
    }

    /// Wraps a connection that only reads, for a store that cannot be written.
    pub(crate) fn from_read_only(conn: ReadConnection) -> WriteConnection {
        WriteConnection { conn, is_secure: Cell::new(false) }
    }

    /// Begins a write transaction.
    pub(crate) fn begin_write(&self) -> rusqlite::Result<WriteTransaction<'_>> {
        WriteTransaction::begin(&self.conn.0)
    }

    /// Selects a write-ahead log, and syncs each commit to the disk.
    pub(crate) fn set_write_pragmas(&self, store_file: StoreFile) -> rusqlite::Result<()> {
        let conn = &self.conn.0;
        conn.pragma_update(None, "cache_size", WRITE_CACHE_KIB)?;
        conn.pragma_update(None, "journal_mode", "wal")?;
        // A power cut may take the last commits of a store that can be made again.
        let (sync_mode, wal_limit_bytes) = match store_file {
            StoreFile::Data => (SyncMode::Full, WAL_LIMIT_BYTES),
            StoreFile::Index | StoreFile::Commits => (SyncMode::Normal, INDEX_WAL_LIMIT_BYTES),
        };
        self.set_sync_mode(sync_mode)?;
        // SQLite would checkpoint within the commit, while others wait for our lock.
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        conn.pragma_update(None, "journal_size_limit", wal_limit_bytes)
    }

    /// Sets how far commits and checkpoints wait for the disk. For callers that are in no
    /// transaction.
    pub(crate) fn set_sync_mode(&self, mode: SyncMode) -> rusqlite::Result<()> {
        self.conn.0.pragma_update(None, "synchronous", mode.name())
    }

    /// Opens a staging file, which nothing else has open. No file is written beside it, and nothing
    /// is synced: a staging file of a process that died is deleted, and one that gets its final
    /// name is synced before.
    pub(crate) fn open_staging(path: &Path) -> rusqlite::Result<WriteConnection> {
        let conn = WriteConnection::open(path)?;
        conn.conn.0.pragma_update(None, "locking_mode", "exclusive")?;
        conn.conn.0.pragma_update(None, "synchronous", "off")?;
        conn.set_single_file()?;
        Ok(conn)
    }

    /// Writes the first page of an empty file.
    pub(crate) fn write_first_page(&self) -> rusqlite::Result<()> {
        self.conn.0.pragma_update(None, "user_version", 0)
    }

    /// Makes the file a single one: without a write-ahead log, and with a rollback journal in
    /// memory.
    pub(crate) fn set_single_file(&self) -> rusqlite::Result<()> {
        self.conn.0.pragma_update(None, "journal_mode", "memory")
    }

    /// Sets whether deleted rows are overwritten immediately.
    pub(crate) fn set_secure_delete(&self, is_secure: bool) -> rusqlite::Result<()> {
        if self.is_secure.replace(is_secure) != is_secure {
            self.conn.0.pragma_update(None, "secure_delete", is_secure)?;
        }
        Ok(())
    }

    /// Sets whether pages can be written directly, which only the page eraser does.
    pub(crate) fn set_pages_writable(&self, is_set: bool) -> rusqlite::Result<()> {
        self.conn.0.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, !is_set).map(drop)
    }

    /// Returns the pages in the write-ahead log; none if that is unknown.
    pub(crate) fn wal_pages(&self) -> WalPages {
        let pages = || -> rusqlite::Result<WalPages> {
            self.conn
                .0
                .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
                .query_row([], |row| Ok(WalPages { all: row.get(1)?, copied: row.get(2)? }))
        };
        pages().unwrap_or_default()
    }

    /// Checkpoints the write-ahead log as far as readers allow it.
    pub(crate) fn checkpoint(&self) {
        // A reader or another checkpoint may block this one; a later commit tries again.
        let _blocked = self.conn.0.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// Checkpoints the whole write-ahead log, after waiting at most this long for readers of older
    /// states. Returns false if one was in the way.
    pub(crate) fn checkpoint_fully(&self, timeout: Duration) -> rusqlite::Result<bool> {
        self.wait_for_checkpoint("PRAGMA wal_checkpoint(FULL)", timeout)
    }

    /// Checkpoints the whole write-ahead log and lets the next write begin it anew, after waiting
    /// at most this long for its readers. Returns false if a reader still uses it.
    pub(crate) fn restart_wal(&self, timeout: Duration) -> bool {
        self.wait_for_checkpoint("PRAGMA wal_checkpoint(RESTART)", timeout).unwrap_or_default()
    }

    /// Sets whether the connection that closes last checkpoints the write-ahead log.
    pub(crate) fn set_checkpoint_on_close(&self, is_set: bool) -> rusqlite::Result<()> {
        self.conn.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !is_set).map(drop)
    }

    /// Empties the write-ahead log after waiting at most this long for readers. Returns false if a
    /// reader still uses it.
    pub(crate) fn empty_wal(&self, timeout: Duration) -> rusqlite::Result<bool> {
        self.wait_for_checkpoint("PRAGMA wal_checkpoint(TRUNCATE)", timeout)
    }

    /// Runs a checkpoint that waits for readers, and for the checkpoint of another connection, for
    /// which SQLite does not wait. Returns false if one was in the way.
    fn wait_for_checkpoint(&self, sql: &str, timeout: Duration) -> rusqlite::Result<bool> {
        let conn = &self.conn.0;
        let began = Instant::now();
        loop {
            conn.busy_timeout(timeout.saturating_sub(began.elapsed()))?;
            let is_busy = conn.query_row(sql, [], |row| row.get::<_, bool>(0));
            conn.busy_timeout(BUSY_TIMEOUT)?;
            let is_busy = is_busy?;
            if !is_busy || began.elapsed() >= timeout {
                return Ok(!is_busy);
            }
            thread::sleep(CHECKPOINT_RETRY_INTERVAL);
        }
    }

    /// Writes the content, without unused bytes, into an empty file.
    pub(crate) fn vacuum_into(&self, to: &Path) -> rusqlite::Result<()> {
        // A path may be any bytes. SQLite passes those of a text on to the system as they are.
        let name = ToSqlOutput::Borrowed(ValueRef::Text(to.as_os_str().as_bytes()));
        self.conn.0.execute("VACUUM INTO ?1", [name]).map(drop)
    }

    /// Syncs everything that was written without waiting for the disk, after waiting at most this
    /// long for readers of older states. Returns false if one was in the way. For writers that hold
    /// the lock.
    pub(crate) fn sync_files(&self, timeout: Duration) -> rusqlite::Result<bool> {
        self.set_sync_mode(SyncMode::Full)?;
        // A checkpoint that has nothing to copy syncs nothing, so the first page is written again.
        let version: i64 =
            self.conn.0.pragma_query_value(None, "user_version", |row| row.get(0))?;
        self.conn.0.pragma_update(None, "user_version", version)?;
        let is_synced = self.checkpoint_fully(timeout)?;
        self.set_sync_mode(SyncMode::Normal)?;
        Ok(is_synced)
    }

    /// Begins to replace the content of the file by the content of another file, which may be in
    /// use.
    pub(crate) fn begin_copy<'a>(
        &'a mut self,
        source: &'a ReadConnection,
    ) -> rusqlite::Result<Backup<'a, 'a>> {
        Backup::new(&source.0, &mut self.conn.0)
    }
}

impl Deref for WriteConnection {
    type Target = ReadConnection;

    fn deref(&self) -> &ReadConnection {
        &self.conn
    }
}

/// Fails if the structure of the pages is inconsistent; much faster than the full integrity check.
pub(crate) fn quick_check(tx: &ReadTransaction<'_>, path: &Path) -> Result<()> {
    match run_quick_check(tx).map_err(sqlite_error_at(path))? {
        None => Ok(()),
        Some(what) => Err(Error::Damaged { path: path.to_path_buf(), what }),
    }
}

/// Returns the first finding of SQLite's quick check; `None`: no page contradicts another.
pub(crate) fn run_quick_check(tx: &ReadTransaction<'_>) -> rusqlite::Result<Option<String>> {
    Ok(run_check_pragma(tx, "PRAGMA quick_check(1)")?.into_iter().next())
}

/// Returns the first hundred findings of SQLite's full integrity check.
pub(crate) fn integrity_check(tx: &ReadTransaction<'_>) -> rusqlite::Result<Vec<String>> {
    run_check_pragma(tx, "PRAGMA integrity_check(100)")
}

/// Returns the findings of a check. A page that could not be read is an error, not a finding.
fn run_check_pragma(tx: &ReadTransaction<'_>, sql: &str) -> rusqlite::Result<Vec<String>> {
    let lines = tx
        .prepare_cached(sql)?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    match lines.iter().find_map(|line| read_failure_in_finding(line)) {
        Some(failure) => Err(failure),
        None => Ok(lines.into_iter().filter(|line| line != "ok").collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_transaction_refuses_to_write() {
        let conn = WriteConnection::open(Path::new(":memory:")).expect("a database");
        let tx = conn.begin_read().expect("a transaction");
        let refused = tx.prepare_cached("CREATE TABLE made(a)").map(|_| ());
        assert_eq!(refused, Err(rusqlite::Error::InvalidQuery));
    }

    /// Outside of a purge, no statement can write pages.
    #[test]
    fn pages_can_be_written_only_when_that_is_set() {
        let conn = WriteConnection::open(Path::new(":memory:")).expect("a database");
        let can_write = || {
            let tx = conn.begin_write().expect("a transaction");
            tx.execute_batch("CREATE TABLE IF NOT EXISTS made(a)").expect("a table");
            tx.execute_batch("UPDATE sqlite_dbpage SET data = data WHERE pgno = 2").is_ok()
        };
        assert!(!can_write());
        conn.set_pages_writable(true).expect("a setting");
        assert!(can_write());
        conn.set_pages_writable(false).expect("a setting");
        assert!(!can_write());
    }

    /// Without a busy handler, SQLite gives up at once.
    #[test]
    fn a_checkpoint_waits_for_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.db");
        std::fs::write(&path, "").expect("an empty file");
        let conn = WriteConnection::open(&path).expect("a database");
        conn.set_write_pragmas(StoreFile::Data).expect("a write-ahead log");
        let write = |sql| {
            let tx = conn.begin_write().expect("a transaction");
            tx.execute_batch(sql).expect("a change");
            tx.commit().expect("a commit");
        };
        write("CREATE TABLE made(a)");
        let reader = ReadConnection::open(&path).expect("a reader");
        let old_state = reader.begin_read().expect("a transaction");
        old_state.query_row("SELECT count(*) FROM made", [], |_| Ok(())).expect("a read");
        write("INSERT INTO made VALUES(1)");
        thread::scope(|scope| {
            // It keeps the lock of checkpoints while it waits for the reader.
            scope.spawn(|| {
                let other = WriteConnection::open(&path).expect("a database");
                other.checkpoint_fully(Duration::from_secs(60)).expect("a checkpoint");
            });
            let probe = WriteConnection::open(&path).expect("a database");
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            let is_running = || probe.conn.0.query_row(sql, [], |row| row.get::<_, bool>(0));
            while !is_running().expect("an answer") {
                thread::yield_now();
            }
            drop(old_state);
            assert!(conn.empty_wal(Duration::from_secs(60)).expect("a checkpoint"));
        });
    }
}
