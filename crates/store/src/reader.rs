//! Reading: a read-only connection, its cache, and collections and single items.
//!
//! A reader never waits for a writer and never checkpoints. Each call is one short read
//! transaction, so a reader that is idle between calls blocks nothing; a long answer is continued
//! by key.

use crate::calendar_context_table;
use crate::connection::{check_sqlite_version, open_connection_without_cache, set_read_cache_size};
use crate::data_directory::DataDirectory;
use crate::derived_index::DerivedIndex;
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use crate::handle::{Handle, HandlePrefix};
use crate::item_meta::{ITEM_META_COLUMNS, ItemMeta, item_meta_from_row};
use crate::read_transaction::{DataVersion, ReadTransaction, ReaderCache, read_data_version};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::schema::{self, SchemaState};
use crate::{CollectionType, blob, series, uid_lookup};
use larder_extract::CalendarContext;
use larder_extract::Extractor;
use larder_extract::IndexConfig;
use larder_format::component::{CalendarVersion, Component};
use larder_format::parsed_source::ParsedSource;
use larder_time::zone::ZoneDatabase;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store that is open for reading.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
    pub(crate) path: PathBuf,
    pub(crate) extractor: Extractor,
    /// Unique in the process.
    pub(crate) reader_id: u64,
    pub(crate) cache: RefCell<Option<Arc<ReaderCache>>>,
    /// SQLite's data version in the current read transaction, once it was read.
    pub(crate) data_version: Cell<Option<i64>>,
    /// Whether the file is mapped into memory.
    pub(crate) mapped: Cell<bool>,
    /// The number of items that were read without the mapping.
    unmapped_items: Cell<usize>,
    /// The device and inode of the file.
    file_id: Option<(u64, u64)>,
}

/// A named set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The row in this file.
    pub row: CollectionRow,
    /// The name.
    pub name: String,
    /// The type of its items.
    pub collection_type: CollectionType,
    /// The number of items.
    pub item_count: u64,
    /// The index configuration.
    pub index_config: Arc<IndexConfig>,
}

/// The properties of a collection itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionProperties {
    /// The row in this file.
    pub row: CollectionRow,
    /// The name.
    pub name: String,
    /// The property lines as they came, see
    /// [`BatchChange::SetCollectionProperties`](crate::BatchChange::SetCollectionProperties).
    pub properties: Option<Vec<u8>>,
}

/// From this many items on, a read maps the file into memory, and so do small reads that come to
/// the second number; up to the greatest size that SQLite maps.
const MMAP_MIN_ITEMS: usize = 64;
const MMAP_MIN_ITEMS_TOTAL: usize = 512;
const MMAP_LIMIT_BYTES: i64 = 0x7fff_0000;

fn file_id(path: &Path) -> Option<(u64, u64)> {
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
    pub fn open(dir: &Path) -> Result<Reader> {
        Reader::open_with_zones(dir, ZoneDatabase::open_bundled())
    }

    /// Opens the store in `dir` read-only. An interval index that was filled with other zones is
    /// not used.
    ///
    /// # Errors
    /// [`Error::SchemaTooOld`] if an older version created the store; opening it for writing
    /// migrates it.
    pub fn open_with_zones(dir: &Path, zones: Arc<ZoneDatabase>) -> Result<Reader> {
        check_sqlite_version()?;
        let directory = DataDirectory::new(dir);
        let path = directory.database_path();
        let conn = match open_connection_without_cache(&path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
            Ok(conn) => conn,
            Err(error) => {
                directory.ensure_store_exists()?;
                // SQLite reports only that it could not open the file; the system reports the
                // reason.
                std::fs::File::open(&path).map_err(file_error_at(&path))?;
                return Err(sqlite_error_at(&path)(error));
            }
        };
        // The last connection to close would try to empty the write-ahead log, which a reader may
        // not.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(sqlite_error_at(&path))?;
        let known = Reader::read_initial_state(&conn, &directory)?;
        Ok(Reader {
            conn,
            path,
            extractor: Extractor::with_zones(known.meta.text("collation_locale"), zones),
            reader_id: NEXT_READER_ID.fetch_add(1, Ordering::Relaxed),
            cache: RefCell::new(Some(Arc::new(known))),
            data_version: Cell::new(None),
            mapped: Cell::new(false),
            unmapped_items: Cell::new(0),
            file_id: file_id(&directory.database_path()),
        })
    }

    /// Returns whether the path has another file than the one that is open: a damaged file was
    /// replaced, or the store was deleted. The reader then has to be opened again.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        file_id(&self.path) != self.file_id
    }

    /// Maps the file before many items are read: each is in a page of its own, and a system call
    /// for each takes longer than the work on it. For few items, the mapping takes longer. SQLite
    /// reads the write-ahead log without the mapping, never writes to it, and maps a changed file
    /// again.
    pub(crate) fn map_file_for_items(&self, items: usize) {
        let total = self.unmapped_items.get().saturating_add(items);
        self.unmapped_items.set(total);
        let is_worth_it = items >= MMAP_MIN_ITEMS || total >= MMAP_MIN_ITEMS_TOTAL;
        if is_worth_it && !self.mapped.replace(true) {
            // Without a mapping, pages are read by system calls.
            let _unmapped = self.conn.pragma_update(None, "mmap_size", MMAP_LIMIT_BYTES);
        }
    }

    /// Unmaps the file if a large read mapped it. For readers that read after each batch: SQLite
    /// maps the file again after each change, which takes longer than to read a few pages.
    pub fn unmap_file(&self) {
        self.unmapped_items.set(0);
        if self.mapped.replace(false) {
            // A mapping that remains does no harm.
            let _mapped = self.conn.pragma_update(None, "mmap_size", 0);
        }
    }

    /// Reads the state of a store when it is opened, in one transaction, which is faster than
    /// several.
    fn read_initial_state(conn: &Connection, directory: &DataDirectory) -> Result<ReaderCache> {
        let path = directory.database_path();
        let _snapshot = ReadTransaction::begin(conn).map_err(sqlite_error_at(&path))?;
        // This begins the transaction. Otherwise SQLite would read the schema in one of its own.
        let version = read_data_version(conn).map_err(sqlite_error_at(&path))?;
        set_read_cache_size(conn).map_err(sqlite_error_at(&path))?;
        let schema_state = schema::read_schema_state(conn, &path)?;
        schema::refuse_development_schema(conn, schema_state, &path)?;
        if let SchemaState::Older(major, minor) = schema_state {
            return Err(Error::SchemaTooOld { path, major, minor });
        }
        if schema_state == SchemaState::Empty {
            directory.check_not_truncated()?;
            return Err(Error::NoStore { dir: directory.path().to_path_buf() });
        }
        ReaderCache::read(conn, version).map_err(sqlite_error_at(&path))
    }

    /// Begins a read transaction. Within another one of the same reader, it continues that one.
    pub fn begin_read(&self) -> Result<ReadTransaction<'_>> {
        self.begin_read_raw().map_err(sqlite_error_at(&self.path))
    }

    pub(crate) fn begin_read_raw(&self) -> rusqlite::Result<ReadTransaction<'_>> {
        if !self.conn.is_autocommit() {
            return Ok(ReadTransaction(None));
        }
        self.data_version.set(None);
        ReadTransaction::begin(&self.conn)
    }

    /// Returns SQLite's data version, which a read transaction reads once.
    fn current_data_version(&self) -> rusqlite::Result<i64> {
        if self.conn.is_autocommit() {
            return read_data_version(&self.conn);
        }
        if let Some(version) = self.data_version.get() {
            return Ok(version);
        }
        let version = read_data_version(&self.conn)?;
        self.data_version.set(Some(version));
        Ok(version)
    }

    /// Returns the version of the data that this reader reads: it stays equal until somebody
    /// writes, and never equals that of another reader.
    pub fn data_version(&self) -> Result<DataVersion> {
        let data = self.current_data_version().map_err(sqlite_error_at(&self.path))?;
        Ok(DataVersion { reader_id: self.reader_id, version: data })
    }

    /// Returns the epoch of the store. A restore changes it, and numbers rows, batches and
    /// operations anew.
    pub fn epoch(&self) -> Result<Arc<str>> {
        let run = || -> rusqlite::Result<Arc<str>> {
            let _snapshot = self.begin_read_raw()?;
            Ok(Arc::clone(&self.cache()?.epoch))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the cache, as of the current read transaction.
    pub(crate) fn cache(&self) -> rusqlite::Result<Arc<ReaderCache>> {
        let version = self.current_data_version()?;
        if let Some(known) = self.cache.borrow().as_ref()
            && known.data_version == version
        {
            return Ok(Arc::clone(known));
        }
        let known = Arc::new(ReaderCache::read(&self.conn, version)?);
        self.cache.replace(Some(Arc::clone(&known)));
        Ok(known)
    }

    /// Releases cached memory, for a process that expects no query soon.
    pub fn release_memory(&self) {
        self.cache.replace(None);
        // A failure only leaves memory in use.
        let _kept = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    /// Returns the extractor with the sort order of this store.
    #[must_use]
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// Returns whether an index is complete and has the current fingerprint. Otherwise the caller
    /// has to scan.
    pub fn is_index_current(&self, set: DerivedIndex) -> Result<bool> {
        let run = || -> rusqlite::Result<bool> {
            let _snapshot = self.begin_read_raw()?;
            Ok(set.is_current(&self.cache()?.meta, &self.extractor))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the rows of all collections, or of the one with this name, without counting items.
    pub fn collection_rows(&self, name: Option<&str>) -> Result<Vec<CollectionRow>> {
        let run = || -> rusqlite::Result<Vec<CollectionRow>> {
            let _snapshot = self.begin_read_raw()?;
            let known = self.cache()?;
            let collections = known.collections.iter();
            let mut selected: Vec<_> =
                collections.filter(|known| name.is_none_or(|name| *known.name == *name)).collect();
            selected.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(selected.into_iter().map(|known| known.collection_key.id).collect())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the rows of all collections with their index configurations. They are valid for
    /// lookups within the same [`Reader::begin_read`].
    pub fn index_configs(&self) -> Result<Vec<(CollectionRow, Arc<IndexConfig>)>> {
        let run = || -> rusqlite::Result<Vec<(CollectionRow, Arc<IndexConfig>)>> {
            let _snapshot = self.begin_read_raw()?;
            let known = self.cache()?;
            let summaries = known.collections.iter();
            Ok(summaries
                .map(|known| (known.collection_key.id, Arc::clone(&known.index_config)))
                .collect())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the rows and names of all collections, by row.
    pub fn collection_names(&self) -> Result<Vec<(CollectionRow, Arc<str>)>> {
        let run = || -> rusqlite::Result<Vec<(CollectionRow, Arc<str>)>> {
            let _snapshot = self.begin_read_raw()?;
            let known = self.cache()?;
            Ok(known
                .collections
                .iter()
                .map(|collection| (collection.collection_key.id, Arc::clone(&collection.name)))
                .collect())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns all collections, by name.
    pub fn collections(&self) -> Result<Vec<Collection>> {
        let run = || -> rusqlite::Result<Vec<Collection>> {
            self.conn
                .prepare_cached(
                    "SELECT c.id, c.name, c.type,
                            (SELECT count(*) FROM item i WHERE i.collection = c.id), c.index_config
                     FROM collection c WHERE c.removed = 0 ORDER BY c.name",
                )?
                .query_map([], |row| {
                    let Some(collection_type) = CollectionType::from_number(row.get(2)?) else {
                        return Ok(None);
                    };
                    Ok(Some(Collection {
                        row: row.get(0)?,
                        name: row.get(1)?,
                        collection_type,
                        item_count: row.get::<_, i64>(3)?.unsigned_abs(),
                        index_config: IndexConfig::from_stored(
                            row.get_ref(4)?.as_str()?,
                            collection_type,
                        ),
                    }))
                })?
                .filter_map(Result::transpose)
                .collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the properties of all collections of a type, in the order of their creation, without
    /// counting items.
    pub fn list_collection_properties(
        &self,
        collection_type: CollectionType,
    ) -> Result<Vec<CollectionProperties>> {
        let sql = "SELECT id, name, properties FROM collection WHERE removed = 0 AND type = ?1 ORDER BY id";
        let run = || -> rusqlite::Result<Vec<CollectionProperties>> {
            let read_row = |row: &rusqlite::Row<'_>| {
                Ok(CollectionProperties {
                    row: row.get(0)?,
                    name: row.get(1)?,
                    properties: row.get(2)?,
                })
            };
            self.conn.prepare_cached(sql)?.query_map([collection_type as i64], read_row)?.collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the items whose handles begin with this prefix, at most `limit`.
    pub fn find_by_handle(&self, prefix: HandlePrefix, limit: usize) -> Result<Vec<ItemMeta>> {
        self.query_item_meta(
            &format!(
                "SELECT {ITEM_META_COLUMNS} FROM item i
                 WHERE i.handle BETWEEN ?1 AND ?2 ORDER BY i.handle LIMIT ?3"
            ),
            (prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64),
        )
    }

    /// Returns the items with this UID, in one collection or in all.
    pub fn find_by_uid(&self, collection: Option<&str>, uid: &str) -> Result<Vec<ItemMeta>> {
        let _snapshot = self.begin_read()?;
        let run = || -> rusqlite::Result<Vec<ItemRow>> {
            let keys = self
                .conn
                .prepare_cached(
                    "SELECT id, handle_key FROM collection
                     WHERE removed = 0 AND (?1 IS NULL OR name = ?1) ORDER BY name",
                )?
                .query_map([collection], |row| {
                    Ok(uid_lookup::CollectionKey { id: row.get(0)?, handle_key: row.get(1)? })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut rows = Vec::new();
            for key in keys {
                rows.extend(uid_lookup::find_row(&self.conn, &key, uid, "")?);
            }
            Ok(rows)
        };
        let mut found = Vec::new();
        for row in run().map_err(sqlite_error_at(&self.path))? {
            found.extend(self.find_by_row(row)?);
        }
        Ok(found)
    }

    /// Returns the items with the UID of an item in its collection: the master, if there is one,
    /// then the overrides.
    pub fn find_series_of_item(&self, head: &ItemMeta) -> Result<Vec<ItemMeta>> {
        self.find_series(&head.collection, &head.uid)
    }

    /// Returns the items with a UID in a collection: the master, if there is one, then the
    /// overrides.
    pub fn find_series(&self, collection: &str, uid: &str) -> Result<Vec<ItemMeta>> {
        let _snapshot = self.begin_read()?;
        let run = || -> rusqlite::Result<Vec<ItemRow>> {
            let key = uid_lookup::find_collection(&self.conn, collection)?;
            let Some(key) = key else { return Ok(Vec::new()) };
            let mut rows: Vec<ItemRow> =
                uid_lookup::find_row(&self.conn, &key, uid, "")?.into_iter().collect();
            let detached = series::find_overrides(&self.conn, key.id, uid)?;
            rows.extend(detached.into_iter().map(|(row, _)| row));
            Ok(rows)
        };
        let mut found = Vec::new();
        for row in run().map_err(sqlite_error_at(&self.path))? {
            found.extend(self.find_by_row(row)?);
        }
        Ok(found)
    }

    /// Returns the item in this row, if it still exists.
    pub fn find_by_row(&self, row: ItemRow) -> Result<Option<ItemMeta>> {
        let sql = format!("SELECT {ITEM_META_COLUMNS} FROM item i WHERE i.id = ?1");
        Ok(self.query_item_meta(&sql, [row])?.pop())
    }

    /// Returns the items of a collection after row `after`, in the order of their creation, at most
    /// `limit`: one step of an export.
    pub fn items_after_row(
        &self,
        collection: &Collection,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<ItemMeta>> {
        // The plus keeps SQLite from sorting the whole collection for each page.
        self.query_item_meta(
            &format!(
                "SELECT {ITEM_META_COLUMNS} FROM item i
                 WHERE +i.collection = ?1 AND i.id > coalesce(?2, 0) ORDER BY i.id LIMIT ?3"
            ),
            (collection.row, after, limit as i64),
        )
    }

    fn query_item_meta(&self, sql: &str, args: impl rusqlite::Params) -> Result<Vec<ItemMeta>> {
        let run = || -> rusqlite::Result<Vec<ItemMeta>> {
            let _snapshot = self.begin_read_raw()?;
            let known = self.cache()?;
            let mut select = self.conn.prepare_cached(sql)?;
            select
                .query_map(args, |row| item_meta_from_row(row, &known.collections))?
                .filter_map(Result::transpose)
                .collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the calendar context in this row.
    pub fn calendar_context(
        &self,
        row: CalendarContextRow,
    ) -> Result<Option<Arc<CalendarContext>>> {
        calendar_context_table::read_context(&self.conn, row).map_err(sqlite_error_at(&self.path))
    }

    /// Parses a calendar item in its version of the format.
    #[must_use]
    pub fn parse_component<'b>(&self, head: &ItemMeta, bytes: &'b [u8]) -> Component<'b> {
        Component::parse_with_version(bytes, self.calendar_version(head))
    }

    /// Parses an item of any kind.
    #[must_use]
    pub fn parse_source<'b>(&self, head: &ItemMeta, bytes: &'b [u8]) -> ParsedSource<'b> {
        ParsedSource::parse(head.kind, self.calendar_version(head), bytes)
    }

    /// Returns the version of the calendar around an item.
    fn calendar_version(&self, head: &ItemMeta) -> CalendarVersion {
        let is_1 =
            |row| calendar_context_table::is_vcalendar_1(&self.conn, row).unwrap_or_default();
        if head.calendar_context.is_some_and(is_1) {
            CalendarVersion::V1_0
        } else {
            CalendarVersion::V2_0
        }
    }

    /// Returns the calendar contexts of a collection's items, each once; `None`: some have none.
    pub fn calendar_contexts(
        &self,
        collection: &Collection,
    ) -> Result<Vec<Option<CalendarContextRow>>> {
        let sql = "SELECT DISTINCT calendar_context FROM item WHERE collection = ?1 ORDER BY calendar_context";
        let run = || -> rusqlite::Result<Vec<Option<CalendarContextRow>>> {
            self.conn.prepare_cached(sql)?.query_map([collection.row], |row| row.get(0))?.collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the property lines of the collection itself, as they came.
    pub fn collection_properties(&self, collection: &Collection) -> Result<Option<Vec<u8>>> {
        self.conn
            .prepare_cached("SELECT properties FROM collection WHERE id = ?1")
            .and_then(|mut select| select.query_row([collection.row], |row| row.get(0)).optional())
            .map(Option::flatten)
            .map_err(sqlite_error_at(&self.path))
    }

    /// Returns the source bytes of the item in this row.
    pub fn source_bytes(&self, row: ItemRow) -> Result<Option<Vec<u8>>> {
        blob::read_source_bytes(&self.conn, row).map_err(sqlite_error_at(&self.path))
    }

    /// Returns the length of the shortest unique prefix of a handle, at least eight.
    pub fn unique_prefix_len(&self, handle: Handle) -> Result<usize> {
        let full = handle.to_string();
        for letters in 8..full.len() {
            let Some(prefix) = HandlePrefix::parse(&full[..letters]) else { break };
            let run = || -> rusqlite::Result<i64> {
                self.conn
                    .prepare_cached(
                        "SELECT count(*) FROM
                           (SELECT 1 FROM item WHERE handle BETWEEN ?1 AND ?2 LIMIT 2)",
                    )?
                    .query_row((prefix.first.to_bytes(), prefix.last.to_bytes()), |row| row.get(0))
            };
            if run().map_err(sqlite_error_at(&self.path))? <= 1 {
                return Ok(letters);
            }
        }
        Ok(full.len())
    }

    /// Returns the locale of the store.
    pub fn locale(&self) -> Result<String> {
        self.meta_text("collation_locale")
    }

    /// Returns a value of `meta` as text, for messages.
    pub(crate) fn meta_text(&self, key: &str) -> Result<String> {
        self.conn
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(sqlite_error_at(&self.path))
    }
}
