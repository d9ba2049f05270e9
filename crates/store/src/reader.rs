//! Opening a store for reading, and the transactions and the cache of a reader.
//!
//! A reader never waits for a writer and never checkpoints. Each call is one short read
//! transaction, so a reader that is idle between calls blocks nothing; a long answer is continued
//! by key. Separate from its four parts, which have the reads themselves.

use crate::commit_record;
use crate::connection::{ReadConnection, check_sqlite_version};
use crate::data_directory::DataDirectory;
use crate::error::{DatabaseResult, Error, Result, sqlite_error_at};
use crate::meta::{LOCALE_KEY, read_locale};
use crate::pending_work::PendingWork;
use crate::read_access::{ReadAccess, open_for_reading};
use crate::read_transaction::ReadTransaction;
use crate::reader_cache::{DataVersion, ReaderCache};
use crate::schema::{self, SchemaState};
use larder_extract::Extractor;
use larder_time::zone::ZoneDatabase;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store that is open for reading. It has four parts: [`Reader::items`], [`Reader::index`],
/// [`Reader::changes`] and [`Reader::collections`].
#[derive(Debug)]
pub struct Reader {
    access: ReadAccess,
    directory: DataDirectory,
    pub(crate) path: PathBuf,
    extractor: Extractor,
    /// Unique in the process.
    reader_id: u64,
    cache: RefCell<Option<Arc<ReaderCache>>>,
    /// SQLite's data version in the current read transaction, once it was read.
    data_version: Cell<Option<i64>>,
    /// Whether the file is mapped into memory.
    is_mapped: Cell<bool>,
    /// The number of items that were read without the mapping.
    unmapped_items: Cell<usize>,
    /// The device and inode of the file.
    file_id: Option<(u64, u64)>,
    lost_commits: Option<Error>,
    /// The collections whose messages searches leave out.
    pub(crate) left_out_collections: Vec<String>,
}

/// From this many items on, a read maps the file into memory, and so do small reads that come to
/// the second number.
const MMAP_MIN_ITEMS: usize = 64;
const MMAP_MIN_ITEMS_TOTAL: usize = 512;

/// The number of times that a reader compares the store with the record of the last commit before
/// it reports a difference.
const MAX_RECORD_COMPARISONS: usize = 3;

/// Returns the device and inode of a file.
pub(crate) fn file_id(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// The number of readers opened in this process.
static NEXT_READER_ID: AtomicU64 = AtomicU64::new(0);

impl Reader {
    /// Opens the store in `dir` read-only, with the bundled time zones.
    ///
    /// # Errors
    /// See [`Reader::open_with_zones`].
    pub fn open(directory: impl Into<DataDirectory>) -> Result<Reader> {
        Reader::open_with_zones(directory, ZoneDatabase::open_bundled())
    }

    /// Opens a store as [`Reader::open_with_zones`] does; `None`: there is none, or it is being
    /// made, or made anew.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open_if_present(
        directory: &DataDirectory,
        zones: Arc<ZoneDatabase>,
    ) -> Result<Option<Reader>> {
        if !directory.has_store() {
            return Ok(None);
        }
        match Reader::open_with_zones(directory, zones) {
            Err(
                Error::NoStore { .. } | Error::StoreMissing { .. } | Error::RestorePending { .. },
            ) => Ok(None),
            reader => reader.map(Some),
        }
    }

    /// Opens the store in `dir` read-only. An interval index that was filled with other zones is
    /// not used.
    ///
    /// # Errors
    /// [`Error::SchemaTooOld`] if an older version created the store; opening it for writing
    /// migrates it. [`Error::RestorePending`] if a restore of a damaged store was interrupted;
    /// opening it for writing finishes it.
    pub fn open_with_zones(
        directory: impl Into<DataDirectory>,
        zones: Arc<ZoneDatabase>,
    ) -> Result<Reader> {
        check_sqlite_version()?;
        let directory = directory.into();
        if directory.pending_restore_path().exists() {
            return Err(Error::RestorePending { dir: directory.path().to_path_buf() });
        }
        let path = directory.database_path();
        let (access, (known, lost_commits)) = open_for_reading(&directory, |conn| {
            let record = commit_record::read_record(&directory);
            let known = Reader::read_initial_state(conn, &directory)?;
            let lost_commits = match known.committed_state() {
                Ok(state) if commit_record::compare(&record, &state, &directory).is_ok() => None,
                _ => Reader::find_lost_commits(conn, &directory)?,
            };
            Ok((known, lost_commits))
        })?;
        let locale = known.meta.text(LOCALE_KEY).map_err(sqlite_error_at(&path))?.to_string();
        Ok(Reader {
            access,
            path,
            extractor: Extractor::with_zones(&locale, zones),
            reader_id: NEXT_READER_ID.fetch_add(1, Ordering::Relaxed),
            cache: RefCell::new(Some(Arc::new(known))),
            data_version: Cell::new(None),
            is_mapped: Cell::new(false),
            unmapped_items: Cell::new(0),
            file_id: file_id(&directory.database_path()),
            directory,
            lost_commits,
            left_out_collections: Vec::new(),
        })
    }

    /// Leaves the messages of these collections out of all searches with this reader. Those that
    /// were left out before are searched again.
    pub fn leave_out_collections(&mut self, names: Vec<String>) {
        self.left_out_collections = names;
    }

    /// Returns the error that a writer of this store gets: when the store was opened, it had fewer
    /// batches than were committed, or was another store than was last written. `None`: it had all.
    #[must_use]
    pub fn lost_commits(&self) -> Option<&Error> {
        self.lost_commits.as_ref()
    }

    /// Returns the reader, for work that would take what the store lacks for removed.
    ///
    /// # Errors
    /// The error of [`Reader::lost_commits`], if there is one.
    pub fn refuse_lost_commits(mut self) -> Result<Reader> {
        self.lost_commits.take().map_or(Ok(self), Err)
    }

    /// Returns whether the path now names another file than the open one: a damaged file was
    /// replaced, or the store was deleted. The reader then has to be opened again.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        file_id(&self.path) != self.file_id
    }

    /// Maps the file before many items are read: each item is on its own page, and a system call
    /// for each page takes longer than processing the item. For few items, the mapping takes
    /// longer. SQLite reads the write-ahead log without the mapping, never writes to it, and maps a
    /// changed file again.
    pub(crate) fn map_file_for_items(&self, items: usize) {
        let total = self.unmapped_items.get().saturating_add(items);
        self.unmapped_items.set(total);
        let is_worth_it = items >= MMAP_MIN_ITEMS || total >= MMAP_MIN_ITEMS_TOTAL;
        if is_worth_it && !self.is_mapped.replace(true) {
            self.access.conn.set_mapped(true);
        }
    }

    /// Unmaps the file if a large read mapped it. For readers that read after each batch: SQLite
    /// maps the file again after each change, which takes longer than to read a few pages.
    pub fn unmap_file(&self) {
        self.unmapped_items.set(0);
        if self.is_mapped.replace(false) {
            self.access.conn.set_mapped(false);
        }
    }

    /// Reads the state of a store when it is opened, in one transaction, which is faster than
    /// several.
    fn read_initial_state(conn: &ReadConnection, directory: &DataDirectory) -> Result<ReaderCache> {
        let path = directory.database_path();
        let tx = conn.begin_read().map_err(sqlite_error_at(&path))?;
        // This begins the transaction. Otherwise SQLite would read the schema in a separate
        // transaction.
        let version = tx.data_version().map_err(sqlite_error_at(&path))?;
        conn.set_cache_size().map_err(sqlite_error_at(&path))?;
        let schema_state = schema::verify_version(&tx, &path, directory.store_file())?;
        if let SchemaState::Older(major, minor) = schema_state {
            return Err(Error::SchemaTooOld { path, major, minor });
        }
        if schema_state == SchemaState::Empty {
            directory.check_not_truncated()?;
            return Err(Error::NoStore { dir: directory.path().to_path_buf() });
        }
        ReaderCache::read(&tx, version).map_err(sqlite_error_at(&path))
    }

    /// Compares the store with the record of the last commit, several times: a restore may come
    /// between the record and the store.
    pub(crate) fn find_lost_commits(
        conn: &ReadConnection,
        directory: &DataDirectory,
    ) -> Result<Option<Error>> {
        let mut lost = None;
        for _ in 0..MAX_RECORD_COMPARISONS {
            let record = commit_record::read_record(directory);
            let tx = conn.begin_read().map_err(sqlite_error_at(&directory.database_path()))?;
            lost = match commit_record::compare_with_store(&record, &tx, directory) {
                Ok(()) => return Ok(None),
                Err(error @ (Error::BatchesMissing { .. } | Error::StoreReplaced { .. })) => {
                    Some(error)
                }
                Err(error) => return Err(error),
            };
        }
        Ok(lost)
    }

    /// Begins a read transaction. Within another one of the same reader, it continues that one.
    pub fn begin_read(&self) -> Result<ReadTransaction<'_>> {
        self.begin_or_join().map_err(sqlite_error_at(&self.path))
    }

    fn begin_or_join(&self) -> rusqlite::Result<ReadTransaction<'_>> {
        if self.access.conn.is_in_transaction() {
            return Ok(self.access.conn.autocommit_read());
        }
        self.data_version.set(None);
        self.access.conn.begin_read()
    }

    /// Reads in the open transaction, or in a new one if none is open.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction<'_>) -> DatabaseResult<T>,
    ) -> Result<T> {
        let read_in_transaction = || read(&self.begin_or_join()?);
        read_in_transaction().map_err(sqlite_error_at(&self.path))
    }

    /// Runs one statement, which is a transaction of its own if none is open: BEGIN and COMMIT
    /// would take longer than the statement.
    pub(crate) fn read_statement<T>(
        &self,
        read: impl FnOnce(&ReadTransaction<'_>) -> DatabaseResult<T>,
    ) -> Result<T> {
        read(&self.autocommit_read()).map_err(sqlite_error_at(&self.path))
    }

    /// Returns the open read transaction, or one in which each statement is a transaction of its
    /// own: for a read of one statement, BEGIN and COMMIT would take longer than the read.
    pub(crate) fn autocommit_read(&self) -> ReadTransaction<'_> {
        self.access.conn.autocommit_read()
    }

    /// Returns SQLite's data version, which a read transaction reads once.
    fn current_data_version(&self, tx: &ReadTransaction<'_>) -> rusqlite::Result<i64> {
        if !self.access.conn.is_in_transaction() {
            return tx.data_version();
        }
        if let Some(version) = self.data_version.get() {
            return Ok(version);
        }
        let version = tx.data_version()?;
        self.data_version.set(Some(version));
        Ok(version)
    }

    /// Returns the version of the data that this reader reads: it stays the same until a write, and
    /// differs from the data version of every other reader.
    pub fn data_version(&self) -> Result<DataVersion> {
        let version = self.read_statement(|tx| Ok(self.current_data_version(tx)?))?;
        Ok(DataVersion { reader_id: self.reader_id, version })
    }

    /// Returns the epoch of the store. A restore changes it; afterwards the same row, batch and
    /// operation numbers may mean other things.
    pub fn epoch(&self) -> Result<Arc<str>> {
        self.read(|tx| Ok(Arc::clone(&self.cache(tx)?.epoch)))
    }

    /// Returns the cache, as of the current read transaction.
    pub(crate) fn cache(&self, tx: &ReadTransaction<'_>) -> DatabaseResult<Arc<ReaderCache>> {
        let version = self.current_data_version(tx)?;
        if let Some(known) = self.cache.borrow().as_ref()
            && known.data_version == version
        {
            return Ok(Arc::clone(known));
        }
        let known = Arc::new(ReaderCache::read(tx, version)?);
        self.cache.replace(Some(Arc::clone(&known)));
        Ok(known)
    }

    /// Returns the cache as of the last call, which may be outdated.
    pub(crate) fn outdated_cache(&self) -> Option<Arc<ReaderCache>> {
        self.cache.borrow().clone()
    }

    /// Releases cached memory, for a process that expects no query soon.
    pub fn release_memory(&self) {
        self.cache.replace(None);
        self.access.conn.shrink_memory();
    }

    /// Returns the work that was interrupted in this store.
    pub fn pending_work(&self) -> Result<Vec<PendingWork>> {
        let directory = &self.directory;
        self.read(|tx| Ok(PendingWork::list(&self.cache(tx)?.meta, &self.extractor, directory)))
    }

    /// Returns the extractor with the sort order of this store.
    #[must_use]
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// Returns the locale of the store.
    pub fn locale(&self) -> Result<String> {
        self.read_statement(read_locale)
    }
}
