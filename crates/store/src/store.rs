//! Opening a store, and the one connection that may write.

use crate::data_directory::DataDirectory;
use crate::error::{Error, Result, RowError, RowResult, sqlite_error_at};
use crate::extractor::Extractor;
use crate::index_config::IndexConfig;
use crate::lock::{LockFiles, WriteLock};
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::schema::{self, SchemaState};
use crate::write_transaction::WriteTransaction;
use crate::{CollectionType, Seq, index_maintenance, series, uid_lookup};
use larder_time::zone::ZoneDatabase;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// SQLite before this version can corrupt a WAL database (fixed in 3.51.3).
const MIN_SQLITE_VERSION: i32 = 3_051_003;
/// A writer checkpoints when the write-ahead log has this many pages, after it has let go of the
/// lock: 4 MB.
const CHECKPOINT_PAGES: i64 = 1 << 10;
/// Where writers follow each other so fast that the log was never empty in between, one of them
/// checkpoints before it lets go.
const CHECKPOINT_UNDER_LOCK_PAGES: i64 = 3 << 10;
/// Page cache of a reader, in kilobytes (negative, as the pragma has it).
const READ_CACHE_KIB: i64 = -8192;
/// Page cache of a writer: index rows of a batch fall all over their tables.
const WRITE_CACHE_KIB: i64 = -16384;
/// Statements that a connection keeps ready: more than there are, as reading one anew takes longer
/// than most take to run.
const STATEMENT_CACHE_CAPACITY: usize = 256;
/// What the write-ahead log is cut back to when it begins anew, in bytes: more than single changes
/// make of it until they are copied into the file. A commit that lets it grow waits for the file's
/// length, too, which is a second write.
const WAL_LIMIT_BYTES: i64 = 5 << 20;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Make the store where there is none.
    pub create: bool,
    /// Whose sort order the store is to keep from now on; `None` leaves it as it is.
    pub locale: Option<String>,
    /// Whose sort order a new store gets where `locale` does not say; `None` is the root order.
    pub locale_if_new: Option<String>,
    /// What time zones are.
    pub zones: Arc<ZoneDatabase>,
}

impl Default for StoreOptions {
    /// Nothing is made, the sort order stays, and time zones are those that are built in.
    fn default() -> StoreOptions {
        StoreOptions {
            create: false,
            locale: None,
            locale_if_new: None,
            zones: ZoneDatabase::open_bundled(),
        }
    }
}

/// A store open for writing. Any number of processes may have one; they wait for each other in
/// turn.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: DataDirectory,
    pub(crate) path: PathBuf,
    pub(crate) conn: Connection,
    pub(crate) lock_files: LockFiles,
    pub(crate) extractor: Extractor,
    newer_schema: Option<String>,
}

impl Store {
    /// Opens the store in `dir`, made or migrated where that is needed, with its indexes refilled
    /// where another version or locale filled them.
    pub fn open(dir: &Path, options: &StoreOptions) -> Result<Store> {
        check_sqlite_version()?;
        let directory = DataDirectory::new(dir);
        if !options.create {
            directory.ensure_store_exists()?;
        }
        directory.ensure_directory()?;
        let locks = LockFiles::open(&directory)?;
        let path = directory.database_path();
        let (conn, read_only) = {
            let lock = locks.acquire()?;
            directory.create_database_file()?;
            let mut conn = open_connection(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
                .map_err(sqlite_error_at(&path))?;
            if lock.unclean {
                quick_check(&conn, &path)?;
                lock.mark_clean();
            }
            let read_only = create_or_migrate(&mut conn, &directory, options)?;
            (conn, read_only)
        };
        let locale = read_locale(&conn).map_err(sqlite_error_at(&path))?;
        let deriver = Extractor::with_zones(&locale, options.zones.clone());
        let mut store = Store {
            directory,
            path,
            conn,
            lock_files: locks,
            extractor: deriver,
            newer_schema: read_only,
        };
        if store.newer_schema.is_none() {
            store.refresh()?;
        }
        Ok(store)
    }

    /// Where it is.
    #[must_use]
    pub fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// What derives index rows from bytes in this store's locale, by the default summary.
    #[must_use]
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// The same for the items of this collection, by its summary; where it is not there yet, by
    /// what one of this family begins with. What another summary gave is derived again when it is
    /// written, so this only saves time.
    pub fn extractor_for_collection(
        &self,
        collection: &str,
        family: CollectionType,
    ) -> Result<Extractor> {
        let sql = "SELECT index_config, type FROM collection WHERE name = ?1 AND removed = 0";
        let found: Option<(String, i64)> = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut select| {
                select.query_row([collection], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(sqlite_error_at(&self.path))?;
        Ok(self.extractor.with_index_config(match found {
            Some((summary, family)) => {
                IndexConfig::from_stored(&summary, CollectionType::from_number(family))
            }
            None => IndexConfig::shared_default(family),
        }))
    }

    /// What the collection of this name holds; `None`: there is none.
    pub fn collection_type(&self, collection: &str) -> Result<Option<CollectionType>> {
        let sql = "SELECT type FROM collection WHERE name = ?1 AND removed = 0";
        let family: Option<i64> = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([collection], |row| row.get(0)).optional())
            .map_err(sqlite_error_at(&self.path))?;
        Ok(family.map(CollectionType::from_number))
    }

    /// The calendars that have an item of this UID.
    pub fn calendars_with_uid(&self, uid: &str) -> Result<Vec<String>> {
        let run = || -> rusqlite::Result<Vec<String>> {
            let sql = "SELECT id, handle_key, name FROM collection WHERE removed = 0 AND type = ?1 ORDER BY name";
            let _snapshot = ReadTransaction::begin(&self.conn)?;
            let mut select = self.conn.prepare_cached(sql)?;
            let mut rows = select.query([CollectionType::Calendar as i64])?;
            let mut names = Vec::new();
            while let Some(row) = rows.next()? {
                let of = uid_lookup::CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
                if uid_lookup::find_row(&self.conn, &of, uid, "")?.is_some()
                    || series::has_overrides(&self.conn, of.id, uid)?
                {
                    names.push(row.get(2)?);
                }
            }
            Ok(names)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Does the calendar of this name say anything of itself?
    pub fn has_collection_properties(&self, collection: &str) -> Result<bool> {
        let sql =
            "SELECT 1 FROM collection WHERE name = ?1 AND removed = 0 AND properties IS NOT NULL";
        let found = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([collection], |_| Ok(())).optional())
            .map_err(sqlite_error_at(&self.path))?;
        Ok(found.is_some())
    }

    /// A reader of this store.
    pub fn open_reader(&self) -> Result<Reader> {
        Reader::open_with_zones(self.directory.path(), self.extractor.zone_database().clone())
    }

    /// The number of the last batch.
    pub fn last_seq(&self) -> Result<Seq> {
        read_meta_number(&self.conn, "last_seq").map_err(sqlite_error_at(&self.path))
    }

    /// Lets go of the lock, and copies the write-ahead log into the file where it has grown. Others
    /// may write meanwhile.
    pub(crate) fn release_and_checkpoint(&self, lock: WriteLock<'_>) {
        let uncopied = self.wal_backlog_pages();
        if uncopied >= CHECKPOINT_UNDER_LOCK_PAGES {
            self.checkpoint();
        }
        drop(lock);
        if (CHECKPOINT_PAGES..CHECKPOINT_UNDER_LOCK_PAGES).contains(&uncopied) {
            self.checkpoint();
        }
    }

    /// How many pages the write-ahead log has, where not all of them were copied into the file.
    fn wal_backlog_pages(&self) -> i64 {
        let pages = || -> rusqlite::Result<i64> {
            let (pages, copied): (i64, i64) = self
                .conn
                .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
                .query_row([], |row| Ok((row.get(1)?, row.get(2)?)))?;
            Ok(if copied < pages { pages } else { 0 })
        };
        pages().unwrap_or(0)
    }

    fn checkpoint(&self) {
        // A reader, or somebody else's checkpoint, may be in the way; there will be another commit.
        let _in_the_way = self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// Fails where a newer minor version made the store.
    pub(crate) fn ensure_writable(&self) -> Result<()> {
        match &self.newer_schema {
            Some(minor) => Err(Error::ReadOnly { path: self.path.clone(), version: minor.clone() }),
            None => Ok(()),
        }
    }

    /// After a writer died in mid-write: SQLite rolls its transaction back by itself; this makes
    /// sure that nothing else is wrong before anything is written on top. And a newer program may
    /// have migrated the store since it was opened here.
    pub(crate) fn verify_before_write(&self, lock: &WriteLock<'_>) -> Result<()> {
        if let SchemaState::NewerMinor(major, minor) =
            schema::read_schema_state(&self.conn, &self.path)?
        {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: self.path.clone(), version: minor });
        }
        if lock.unclean {
            quick_check(&self.conn, &self.path)?;
            lock.mark_clean();
        }
        Ok(())
    }
}

/// Refuses a SQLite that can damage a store; ours is bundled, so this holds unless someone links
/// another.
pub(crate) fn check_sqlite_version() -> Result<()> {
    let found = rusqlite::version_number();
    if found < MIN_SQLITE_VERSION { Err(Error::SqliteTooOld { found }) } else { Ok(()) }
}

/// A connection with the pragmas that every one of ours has.
pub(crate) fn open_connection(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = open_connection_without_cache(path, access)?;
    set_read_cache_size(&conn)?;
    Ok(conn)
}

/// The same before anything of the file was read; its page cache has no size yet.
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
    Ok(conn)
}

pub(crate) fn set_read_cache_size(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_size", READ_CACHE_KIB)
}

/// One number of `meta`.
pub(crate) fn read_meta_number(conn: &Connection, key: &str) -> RowResult<i64> {
    conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?
        .ok_or_else(|| RowError::missing_meta(key))
}

pub(crate) fn set_meta(conn: &Connection, key: &str, value: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1")?
        .execute((key, value))
        .map(drop)
}

/// All of `meta`, read at once.
#[derive(Debug)]
pub(crate) struct MetaTable(Vec<(String, Value)>);

impl MetaTable {
    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<MetaTable> {
        let mut select = conn.prepare_cached("SELECT key, value FROM meta")?;
        select
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()
            .map(MetaTable)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The text of this key; empty: there is none.
    pub(crate) fn text(&self, key: &str) -> &str {
        match self.value(key) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// The number of this key.
    pub(crate) fn number(&self, key: &str) -> RowResult<i64> {
        match self.value(key) {
            Some(Value::Integer(number)) => Ok(*number),
            _ => Err(RowError::missing_meta(key)),
        }
    }
}

pub(crate) fn read_locale(conn: &Connection) -> RowResult<String> {
    conn.query_row("SELECT value FROM meta WHERE key = 'collation_locale'", [], |row| row.get(0))
        .optional()?
        .ok_or_else(|| RowError::missing_meta("collation_locale"))
}

/// Looks for contradictions within pages; much faster than the full integrity check.
fn quick_check(conn: &Connection, path: &Path) -> Result<()> {
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(sqlite_error_at(path))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Error::Damaged { path: path.to_path_buf(), what: verdict })
    }
}

/// Makes the file what this program expects, under the lock; says so where it may only be read.
fn create_or_migrate(
    conn: &mut Connection,
    directory: &DataDirectory,
    options: &StoreOptions,
) -> Result<Option<String>> {
    let path = directory.database_path();
    let standing = schema::read_schema_state(conn, &path)?;
    schema::refuse_development_schema(conn, standing, &path)?;
    if let SchemaState::NewerMinor(major, minor) = standing {
        return Ok(Some(format!("{major}.{minor}")));
    }
    set_write_pragmas(conn).map_err(sqlite_error_at(&path))?;
    if standing == SchemaState::Empty {
        directory.check_not_truncated()?;
    }
    match standing {
        SchemaState::Empty if !options.create => {
            return Err(Error::NoStore { dir: directory.path().to_path_buf() });
        }
        SchemaState::Empty => {
            let locale = options.locale.as_deref().or(options.locale_if_new.as_deref());
            let locale = locale.unwrap_or("und");
            let make = || -> rusqlite::Result<()> {
                let tx = WriteTransaction::begin(conn)?;
                schema::create_tables(&tx, locale)?;
                index_maintenance::mark_complete(
                    &tx,
                    &Extractor::with_zones(locale, options.zones.clone()),
                )?;
                tx.commit()
            };
            make().map_err(sqlite_error_at(&path))?;
        }
        SchemaState::Older(major, minor) => {
            schema::migrate(conn, directory, (major, minor), schema::MIGRATIONS)?;
        }
        SchemaState::Current | SchemaState::NewerMinor(..) => {}
    }
    if let Some(locale) = &options.locale {
        conn.execute(
            "UPDATE meta SET value = ?1 WHERE key = 'collation_locale' AND value <> ?1",
            [locale],
        )
        .map_err(sqlite_error_at(&path))?;
    }
    Ok(None)
}

fn set_write_pragmas(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_size", WRITE_CACHE_KIB)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "synchronous", "full")?;
    // SQLite would checkpoint within the commit, while others wait for our lock.
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)
}
