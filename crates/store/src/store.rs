//! Opening a store for writing, and its connection.

use crate::batch::LastCommit;
use crate::blank_database::create_database_file;
use crate::combined_schedules::CombinedSchedules;
use crate::commit_record::{self, CommittedState};
use crate::connection::{
    ReadConnection, SyncMode, WriteConnection, check_sqlite_version, quick_check,
};
use crate::data_directory::{DataDirectory, StoreFile};
use crate::disk_state::fill_shared_memory;
use crate::error::{DatabaseResult, Error, Result, sqlite_error_at};
use crate::lock::{LockFiles, WriteLock};
use crate::lock_holder::LockRequester;
use crate::meta::{LOCALE_KEY, MetaTable, read_locale, read_meta_number, write_meta};
use crate::pending_work::{self, PendingWork};
use crate::read_access::{ensure_writable_disk, is_forbidden, is_unwritable, open_for_reading};
use crate::read_transaction::ReadTransaction;
use crate::reader::{Reader, file_id};
use crate::schema::{self, SchemaState};
use crate::unsynced_mark::check_mark;
use crate::write_transaction::WriteTransaction;
use crate::{CollectionType, Seq, derived_index, interrupted_restore, series, uid_lookup};
use larder_extract::Extractor;
use larder_extract::IndexConfig;
use larder_time::zone::ZoneDatabase;
use rusqlite::OptionalExtension as _;
use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The sizes of the write-ahead log, in pages of 4 KB, at which a writer copies it into the
/// database.
#[derive(Debug, Clone, Copy)]
struct WalLimits {
    /// A writer checkpoints, after it has released the lock, if the log has this many pages that
    /// are not in the database yet.
    checkpoint_pages: i64,
    /// The number of pages at which a writer checkpoints a log of small commits. A checkpoint of
    /// thousands of pages would delay the commit of a single message.
    small_checkpoint_pages: i64,
    /// SQLite begins the log anew when no reader uses it. If readers or writers follow each other
    /// so fast that this never happens, the log grows; from this size on, a writer waits under the
    /// lock until all readers have left it. New readers then read the database only.
    restart_pages: i64,
}

impl WalLimits {
    /// Returns the limits of a store: 4 and 10 MB for what exists nowhere else. The index of mail
    /// is written in large batches with random keys, of which each changes the same pages again, so
    /// that a longer log writes them to the database less often: 32 and 40 MB, and 8 MB while
    /// messages come one by one.
    fn from_store_file(store_file: StoreFile) -> WalLimits {
        match store_file {
            StoreFile::Data => WalLimits {
                checkpoint_pages: 1 << 10,
                small_checkpoint_pages: 1 << 10,
                restart_pages: 5 << 9,
            },
            StoreFile::Index | StoreFile::Commits => WalLimits {
                checkpoint_pages: 8 << 10,
                small_checkpoint_pages: 2 << 10,
                restart_pages: 10 << 10,
            },
        }
    }

    /// Returns the number of pages to checkpoint at if the largest commit has so many pages.
    fn checkpoint_pages_after(self, largest_commit: i64) -> i64 {
        match largest_commit <= SMALL_COMMIT_PAGES {
            true => self.small_checkpoint_pages,
            false => self.checkpoint_pages,
        }
    }
}

/// The most pages of a small commit.
const SMALL_COMMIT_PAGES: i64 = 128;

/// After a vain attempt, the log has to grow by this before the next one.
const WAL_RESTART_RETRY_PAGES: i64 = 1 << 8;
/// The time that a writer waits for readers; a read transaction is shorter.
pub(crate) const WAL_READER_PATIENCE: Duration = Duration::from_millis(200);
/// The time that it waits for them while other writers wait for it.
const WAL_RESTART_PATIENCE: Duration = Duration::from_millis(50);
/// The most bytes of the log that a writer leaves behind when it closes the store.
const LEFT_LOG_BYTES: u64 = 1 << 20;

/// Options for opening a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Whether to create the store if there is none.
    pub create: bool,
    /// The locale of the sort order from now on; `None`: it stays the same.
    pub locale: Option<String>,
    /// The locale of a new store if `locale` is `None`; `None`: the root order.
    pub locale_if_new: Option<String>,
    /// The time-zone database.
    pub zones: Arc<ZoneDatabase>,
    /// The program, which others see while they wait for it.
    pub requester: LockRequester,
    /// How far the commits of a synchronisation wait for the disk, in a store that can be made
    /// again.
    pub sync_mode: SyncMode,
    /// Keeps the number of the last operation that stores opened with these options committed.
    pub last_commit: LastCommit,
}

impl Default for StoreOptions {
    /// Creates no store, keeps the locale, uses the bundled time zones, and is nameless.
    fn default() -> StoreOptions {
        StoreOptions {
            create: false,
            locale: None,
            locale_if_new: None,
            zones: ZoneDatabase::open_bundled(),
            requester: LockRequester::default(),
            sync_mode: SyncMode::default(),
            last_commit: LastCommit::default(),
        }
    }
}

/// A store that is open for writing. Any number of processes may open it; the write lock is fair,
/// so no writer waits forever.
#[derive(Debug)]
pub struct Store {
    pub(crate) directory: DataDirectory,
    pub(crate) path: PathBuf,
    pub(crate) conn: WriteConnection,
    pub(crate) lock_files: LockFiles,
    pub(crate) extractor: Extractor,
    read_only: Option<ReadOnlyReason>,
    /// Keeps writers away from a file that is read as if it never changed.
    _write_lock: Option<File>,
    recovered_copy: Option<PathBuf>,
    /// Schedules that a step of a rebuild combined, for the next step.
    pub(crate) combined_schedules: CombinedSchedules,
    /// The device and inode of the open file.
    file_id: Option<(u64, u64)>,
    /// The size of the write-ahead log from which on it is begun anew.
    wal_restart_pages: Cell<i64>,
    /// The pages of the log after the last write of this store.
    wal_pages: Cell<i64>,
    /// The pages of the largest commit in the log.
    largest_commit: Cell<i64>,
    wal_limits: WalLimits,
    pub(crate) sync_mode: SyncMode,
    pub(crate) last_commit: LastCommit,
}

/// The reason why a store that is open is not written.
#[derive(Debug)]
enum ReadOnlyReason {
    /// Its schema has this newer minor version.
    NewerSchema(String),
    /// The disk is full, or cannot be written.
    Disk,
}

impl Drop for Store {
    /// Completes the database, so that a copy of `data.db` alone has every batch, and empties a
    /// long log. SQLite does this itself if no other connection is open.
    fn drop(&mut self) {
        let log = self.conn.wal_pages();
        if self.read_only.is_none() && !self.is_log_of_others(log.all) {
            if log.backlog() > 0 {
                self.conn.checkpoint();
            }
            self.complete_and_empty_log();
        }
    }
}

impl Store {
    /// Opens the store in `dir`. Creates or migrates it if needed, and refills indexes that another
    /// version or locale filled.
    pub fn open(directory: impl Into<DataDirectory>, options: &StoreOptions) -> Result<Store> {
        Store::open_keeping_lock(directory.into(), options, false)
    }

    /// Opens the store as [`Store::open`], for a change that follows at once: the write lock, for
    /// which opening waits, is kept until the first change is written, or the store is closed. With
    /// another writer at work of many transactions, each wait lasts as long as one of these.
    pub fn open_for_change(
        directory: impl Into<DataDirectory>,
        options: &StoreOptions,
    ) -> Result<Store> {
        Store::open_keeping_lock(directory.into(), options, true)
    }

    fn open_keeping_lock(
        directory: DataDirectory,
        options: &StoreOptions,
        is_kept: bool,
    ) -> Result<Store> {
        check_sqlite_version()?;
        if !options.create && !directory.pending_restore_path().exists() {
            directory.ensure_store_exists()?;
        }
        directory.ensure_directory()?;
        ensure_writable_disk(directory.path())?;
        directory.check_is_file()?;
        let locks = LockFiles::open(&directory, options.requester.clone())?;
        let path = directory.database_path();
        let (conn, read_only, recovered_copy) = {
            let lock = locks.acquire()?;
            let damaged = interrupted_restore::finish_pending(&directory, &locks)?;
            directory.check_not_emptied()?;
            if options.create {
                create_database_file(&directory)?;
            }
            directory.ensure_store_exists()?;
            check_mark(&directory)?;
            directory.check_single_name()?;
            let record = commit_record::read_record(&directory);
            directory.create_log_files()?;
            let conn = WriteConnection::open(&path).map_err(sqlite_error_at(&path))?;
            // Until the store is verified, its write-ahead log, which may belong to another store,
            // must not be copied into it.
            conn.set_checkpoint_on_close(false).map_err(sqlite_error_at(&path))?;
            if lock.unclean {
                quick_check(&conn.autocommit_read(), &path)?;
                lock.mark_clean();
            }
            let read_only = create_or_migrate(&conn, &directory, options, &record)?;
            conn.set_checkpoint_on_close(true).map_err(sqlite_error_at(&path))?;
            let previous = interrupted_restore::sweep(&directory, &conn)?;
            if is_kept {
                lock.keep();
            }
            (conn, read_only, damaged.or(previous))
        };
        let locale = read_locale(&conn.autocommit_read()).map_err(sqlite_error_at(&path))?;
        let extractor = Extractor::with_zones(&locale, options.zones.clone());
        let file_id = file_id(&path);
        fill_shared_memory(&directory.shared_memory_path());
        let wal_limits = WalLimits::from_store_file(directory.store_file());
        let mut store = Store {
            directory,
            path,
            conn,
            lock_files: locks,
            extractor,
            read_only: read_only.map(ReadOnlyReason::NewerSchema),
            _write_lock: None,
            recovered_copy,
            combined_schedules: CombinedSchedules::default(),
            file_id,
            wal_restart_pages: Cell::new(wal_limits.restart_pages),
            wal_pages: Cell::new(0),
            largest_commit: Cell::new(0),
            wal_limits,
            sync_mode: options.sync_mode,
            last_commit: options.last_commit.clone(),
        };
        if store.read_only.is_none() {
            store.refresh_when_opened()?;
        }
        Ok(store)
    }

    /// Opens an existing store, to write to it if that is possible. If the disk is full or cannot
    /// be written, or the user may not write to the files, the store can be checked and copied
    /// only.
    pub fn open_to_copy(
        directory: impl Into<DataDirectory>,
        options: &StoreOptions,
    ) -> Result<Store> {
        let directory = directory.into();
        let options = StoreOptions { create: false, ..options.clone() };
        match Store::open(&directory, &options) {
            Err(error) if is_unwritable(directory.path(), &error) || is_forbidden(&error) => {
                Store::open_read_only(directory, &options)
            }
            store => store,
        }
    }

    fn open_read_only(directory: DataDirectory, options: &StoreOptions) -> Result<Store> {
        if directory.pending_restore_path().exists() {
            return Err(Error::RestorePending { dir: directory.path().to_path_buf() });
        }
        let path = directory.database_path();
        let (access, locale) = open_for_reading(&directory, |conn| {
            let locale = read_locale_of_sound_schema(conn, &directory)?;
            match Reader::find_lost_commits(conn, &directory)? {
                Some(lost) => Err(lost),
                None => Ok(locale),
            }
        })?;
        let wal_limits = WalLimits::from_store_file(directory.store_file());
        Ok(Store {
            lock_files: LockFiles::open_read_only(&directory, options.requester.clone())?,
            conn: WriteConnection::from_read_only(access.conn),
            extractor: Extractor::with_zones(&locale, options.zones.clone()),
            directory,
            combined_schedules: CombinedSchedules::default(),
            file_id: file_id(&path),
            path,
            read_only: Some(ReadOnlyReason::Disk),
            _write_lock: access.write_lock,
            recovered_copy: None,
            wal_restart_pages: Cell::new(wal_limits.restart_pages),
            wal_pages: Cell::new(0),
            largest_commit: Cell::new(0),
            wal_limits,
            sync_mode: options.sync_mode,
            last_commit: options.last_commit.clone(),
        })
    }

    /// Returns the data directory.
    #[must_use]
    pub fn directory(&self) -> &DataDirectory {
        &self.directory
    }

    /// Returns the copy of the previous state if opening the store finished a restore that had been
    /// interrupted.
    #[must_use]
    pub fn recovered_copy(&self) -> Option<&Path> {
        self.recovered_copy.as_deref()
    }

    /// Returns the extractor with the store's locale and the default index configuration.
    #[must_use]
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// Returns the extractor for the items of this collection; if the collection does not exist
    /// yet, with the initial index configuration of this type. An entry with another configuration
    /// is extracted again when it is written, so this only saves time.
    pub fn extractor_for_collection(
        &self,
        collection: &str,
        collection_type: CollectionType,
    ) -> Result<Extractor> {
        let sql = "SELECT index_config, type FROM collection WHERE name = ?1 AND removed = 0";
        let found: Option<(String, i64)> = self
            .autocommit_read()
            .prepare_cached(sql)
            .and_then(|mut select| {
                select.query_row([collection], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .map_err(sqlite_error_at(&self.path))?;
        let config = found.and_then(|(config, number)| {
            Some(IndexConfig::from_stored(&config, CollectionType::from_number(number)?))
        });
        let config = config.unwrap_or_else(|| IndexConfig::shared_default(collection_type));
        Ok(self.extractor.with_index_config(config))
    }

    /// Returns the type of the collection with this name; `None`: there is none.
    pub fn collection_type(&self, collection: &str) -> Result<Option<CollectionType>> {
        let sql = "SELECT type FROM collection WHERE name = ?1 AND removed = 0";
        let collection_type: Option<i64> = self
            .autocommit_read()
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([collection], |row| row.get(0)).optional())
            .map_err(sqlite_error_at(&self.path))?;
        Ok(collection_type.and_then(CollectionType::from_number))
    }

    /// Returns the collections of calendar items that have an item with this UID, by name.
    pub fn calendars_with_uid(&self, uid: &str) -> Result<Vec<String>> {
        let run = || -> rusqlite::Result<Vec<String>> {
            let sql =
                "SELECT id, handle_key, name, type FROM collection WHERE removed = 0 ORDER BY name";
            let tx = self.conn.begin_read()?;
            let mut select = tx.prepare_cached(sql)?;
            let mut rows = select.query([])?;
            let mut names = Vec::new();
            while let Some(row) = rows.next()? {
                let collection_type = CollectionType::from_number(row.get(3)?);
                if !collection_type.is_some_and(CollectionType::is_exported_in_calendar) {
                    continue;
                }
                let key = uid_lookup::CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
                if uid_lookup::find_row(&tx, &key, uid, "")?.is_some()
                    || series::has_overrides(&tx, key.id, uid)?
                {
                    names.push(row.get(2)?);
                }
            }
            Ok(names)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns whether the collection with this name has properties of its own.
    pub fn has_collection_properties(&self, collection: &str) -> Result<bool> {
        let sql =
            "SELECT 1 FROM collection WHERE name = ?1 AND removed = 0 AND properties IS NOT NULL";
        let found = self
            .autocommit_read()
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row([collection], |_| Ok(())).optional())
            .map_err(sqlite_error_at(&self.path))?;
        Ok(found.is_some())
    }

    /// Opens a reader of this store.
    pub fn open_reader(&self) -> Result<Reader> {
        Reader::open_with_zones(&self.directory, self.extractor.zone_database().clone())
    }

    /// Returns the number of the last batch.
    pub fn last_seq(&self) -> Result<Seq> {
        read_meta_number(&self.autocommit_read(), "last_seq").map_err(sqlite_error_at(&self.path))
    }

    /// Returns the work that was interrupted in this store.
    pub fn pending_work(&self) -> Result<Vec<PendingWork>> {
        let meta = MetaTable::read(&self.autocommit_read()).map_err(sqlite_error_at(&self.path))?;
        Ok(PendingWork::list(&meta, &self.extractor, &self.directory))
    }

    /// Returns a transaction in which each statement is a separate transaction. The store changes
    /// between them if others write.
    pub(crate) fn autocommit_read(&self) -> ReadTransaction<'_> {
        self.conn.autocommit_read()
    }

    /// Returns whether another process is at work that writes a store which can be made again. It
    /// copies the log, of so many pages, when that is long and when it ends. The others, which
    /// write little, would be late, and never at an end. It may pause, so a longer log is copied.
    fn is_log_of_others(&self, pages: i64) -> bool {
        self.directory.store_file() != StoreFile::Data
            && pages < 2 * self.wal_limits.restart_pages
            && self.lock_files.is_work_of_others()
    }

    /// Checkpoints what readers of an older state kept from being copied, and empties a long log,
    /// unless another process writes: then that one does so. What is in the log only, the next
    /// writer copies.
    fn complete_and_empty_log(&self) {
        let is_complete = self.conn.wal_pages().backlog() == 0;
        let bytes = fs::metadata(self.directory.wal_path()).map_or(0, |log| log.len());
        if is_complete && bytes <= LEFT_LOG_BYTES {
            return;
        }
        let Ok(Some(lock)) = self.lock_files.try_acquire() else { return };
        if lock.unclean {
            return;
        }
        // Others cannot write while this waits for a reader.
        if !is_complete && self.directory.store_file() == StoreFile::Data {
            let _blocked = self.conn.checkpoint_fully(WAL_READER_PATIENCE);
        }
        if bytes > LEFT_LOG_BYTES {
            let _in_use = self.conn.empty_wal(Duration::ZERO);
        }
    }

    /// Runs a transaction under the write lock.
    pub(crate) fn write_step<T>(
        &mut self,
        write: impl FnOnce(&WriteTransaction<'_>) -> DatabaseResult<T>,
    ) -> Result<T> {
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let step = || -> DatabaseResult<T> {
            let tx = self.conn.begin_write()?;
            let result = write(&tx)?;
            tx.commit()?;
            Ok(result)
        };
        let result = step().map_err(sqlite_error_at(&self.path))?;
        self.release_and_checkpoint(lock);
        Ok(result)
    }

    /// Releases the lock, and checkpoints the write-ahead log if it is large. Others may write
    /// during the checkpoint.
    pub(crate) fn release_and_checkpoint(&self, lock: WriteLock<'_>) {
        let log = self.conn.wal_pages();
        let former_pages = self.wal_pages.replace(log.all);
        if log.all >= self.wal_restart_pages.get() {
            drop(lock);
            if !self.is_log_of_others(log.all) {
                self.restart_log(log.all);
            }
            return;
        }
        // A log that became shorter was begun anew.
        let largest_commit = match log.all < former_pages {
            true => log.all,
            false => self.largest_commit.get().max(log.all - former_pages),
        };
        self.largest_commit.set(largest_commit);
        drop(lock);
        if log.backlog() >= self.wal_limits.checkpoint_pages_after(largest_commit)
            && !self.is_log_of_others(log.all)
        {
            self.conn.checkpoint();
        }
    }

    /// Begins a log of so many pages anew: most is copied while others write, the rest under the
    /// lock.
    fn restart_log(&self, pages: i64) {
        self.conn.checkpoint();
        let has_restarted = match self.lock_files.acquire() {
            // The next writer verifies the store first.
            Ok(lock) if lock.unclean => false,
            Ok(_lock) => self.conn.restart_wal(WAL_RESTART_PATIENCE),
            Err(_) => false,
        };
        // A reader that stays is not waited for after each batch.
        let again = if has_restarted { 0 } else { pages + WAL_RESTART_RETRY_PAGES };
        self.wal_restart_pages.set(again.max(self.wal_limits.restart_pages));
    }

    /// Returns whether the store can be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.read_only.is_none()
    }

    /// Fails if the store cannot be written, or has a newer minor schema version.
    pub(crate) fn ensure_writable(&self) -> Result<()> {
        match &self.read_only {
            Some(ReadOnlyReason::NewerSchema(minor)) => {
                Err(Error::ReadOnly { path: self.path.clone(), version: minor.clone() })
            }
            // The disk may have room by now, but this connection cannot write.
            Some(ReadOnlyReason::Disk) => ensure_writable_disk(self.directory.path())
                .and(Err(Error::DiskFull { dir: self.directory.path().to_path_buf() })),
            None => Ok(()),
        }
    }

    /// Verifies the store before a write. If the last writer died during one, SQLite rolls its
    /// transaction back; this checks that nothing else is damaged. A newer program may also have
    /// migrated the store since it was opened here, or replaced its file: what was written to the
    /// former file would be lost. While a purge is pending, deleted bytes are overwritten, see
    /// `page_eraser`.
    pub(crate) fn verify_before_write(&self, lock: &WriteLock<'_>) -> Result<()> {
        if file_id(&self.path) != self.file_id {
            return Err(Error::StoreRestored);
        }
        if let SchemaState::NewerMinor(major, minor) =
            schema::read_schema_state(&self.autocommit_read(), &self.path)?
        {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: self.path.clone(), version: minor });
        }
        if lock.unclean {
            quick_check(&self.autocommit_read(), &self.path)?;
            lock.mark_clean();
        }
        let tx = self.autocommit_read();
        pending_work::has_purge(&tx)
            .and_then(|is_secure| self.conn.set_secure_delete(is_secure))
            .map_err(sqlite_error_at(&self.path))
    }
}

/// Reads the locale of a store that cannot be migrated.
fn read_locale_of_sound_schema(conn: &ReadConnection, directory: &DataDirectory) -> Result<String> {
    let path = directory.database_path();
    let tx = conn.begin_read().map_err(sqlite_error_at(&path))?;
    let state = schema::verify_version(&tx, &path, directory.store_file())?;
    if let SchemaState::Older(major, minor) = state {
        return Err(Error::SchemaTooOld { path, major, minor });
    }
    read_locale(&tx).map_err(sqlite_error_at(&path))
}

/// Creates or migrates the file, under the lock. Returns the schema version if the store may only
/// be read.
fn create_or_migrate(
    conn: &WriteConnection,
    directory: &DataDirectory,
    options: &StoreOptions,
    record: &[CommittedState],
) -> Result<Option<String>> {
    let path = directory.database_path();
    let store_file = directory.store_file();
    let schema_state = schema::verify_version(&conn.autocommit_read(), &path, store_file)?;
    if let SchemaState::NewerMinor(major, minor) = schema_state {
        return Ok(Some(format!("{major}.{minor}")));
    }
    if schema_state == SchemaState::Empty {
        directory.check_not_truncated()?;
    } else {
        commit_record::compare_with_store(record, &conn.autocommit_read(), directory)?;
    }
    conn.set_write_pragmas(directory.store_file()).map_err(sqlite_error_at(&path))?;
    match schema_state {
        SchemaState::Empty if !options.create => {
            return Err(Error::NoStore { dir: directory.path().to_path_buf() });
        }
        SchemaState::Empty => {
            let locale = options.locale.as_deref().or(options.locale_if_new.as_deref());
            let locale = locale.unwrap_or("und");
            let make = || -> DatabaseResult<()> {
                let tx = conn.begin_write()?;
                schema::create_tables(&tx, directory.store_file(), locale)?;
                derived_index::mark_complete(
                    &tx,
                    &Extractor::with_zones(locale, options.zones.clone()),
                )?;
                Ok(tx.commit()?)
            };
            make().map_err(sqlite_error_at(&path))?;
        }
        SchemaState::Older(major, minor) => {
            schema::migrate(conn, directory, (major, minor), schema::MIGRATIONS)?;
        }
        SchemaState::Current | SchemaState::NewerMinor(..) => {}
    }
    if let Some(locale) = &options.locale {
        set_locale(conn, locale).map_err(sqlite_error_at(&path))?;
    }
    Ok(None)
}

/// Sets the locale of the sort order. Writes nothing if the store has it already.
fn set_locale(conn: &WriteConnection, locale: &str) -> DatabaseResult<()> {
    if read_locale(&conn.autocommit_read())? == locale {
        return Ok(());
    }
    let tx = conn.begin_write()?;
    write_meta(&tx, LOCALE_KEY, locale.to_string())?;
    Ok(tx.commit()?)
}
