//! What a reader sees: held still while it is looked at, told apart from what it sees later, and
//! remembered as long as nobody writes.
//!
//! It knows no items; reading those is in `items` and `reader`.

use crate::collection::{self, CollectionMeta};
use crate::error::{Result, sqlite_error_at};
use crate::meta::MetaTable;
use crate::reader::Reader;
use larder_index::Segment;
use rusqlite::Connection;
use std::sync::{Arc, OnceLock};

/// What a reader sees, see [`Reader::data_version`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataVersion {
    reader_id: u64,
    version: i64,
}

/// What stays as it is as long as nobody writes.
#[derive(Debug)]
pub(crate) struct ReaderCache {
    /// SQLite's own count of what others wrote.
    data_version: i64,
    /// What the store is known by until a restore replaces it.
    epoch: Arc<str>,
    /// What it says of itself.
    pub(crate) meta: MetaTable,
    /// All collections, by row.
    pub(crate) collections: Vec<CollectionMeta>,
    /// The segments of the sets, once they were asked for: of those that are whole and of this
    /// program's making.
    pub(crate) text_segments: OnceLock<Option<Vec<Segment>>>,
    pub(crate) sort_segments: OnceLock<Option<Vec<Segment>>>,
}

impl ReaderCache {
    /// What there is to remember, in the snapshot in which SQLite's count is this.
    pub(crate) fn read(conn: &Connection, version: i64) -> rusqlite::Result<ReaderCache> {
        let meta = MetaTable::read(conn)?;
        Ok(ReaderCache {
            data_version: version,
            epoch: meta.text("epoch").into(),
            meta,
            collections: collection::read_collections(conn)?,
            text_segments: OnceLock::new(),
            sort_segments: OnceLock::new(),
        })
    }
}

/// SQLite's count of what others wrote.
pub(crate) fn read_data_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// While it lives, its reader sees the store as it was when the first of its calls was made, and
/// each call costs less. It keeps the write-ahead log from being cut back, so it must not live for
/// longer than 200 ms, nor wait for anybody.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ReadTransaction<'a>(Option<&'a Connection>);

impl ReadTransaction<'_> {
    pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<ReadTransaction<'_>> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(ReadTransaction(Some(conn)))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.0 {
            // Nothing was written, so there is nothing that ending could lose.
            let _ended = conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
}

impl Reader {
    /// Holds still what this reader sees. Within another snapshot of the same reader it is that
    /// one.
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

    /// SQLite's count of what others wrote; within a snapshot it stays as it is, and is asked once.
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

    /// What this reader sees: equal as long as nobody writes, and never equal to what another
    /// reader sees.
    pub fn data_version(&self) -> Result<DataVersion> {
        let data = self.current_data_version().map_err(sqlite_error_at(&self.path))?;
        Ok(DataVersion { reader_id: self.reader_id, version: data })
    }

    /// What the store is known by until a restore replaces it: rows, batches and operations are
    /// numbered anew then.
    pub fn epoch(&self) -> Result<Arc<str>> {
        let run = || -> rusqlite::Result<Arc<str>> {
            let _snapshot = self.begin_read_raw()?;
            Ok(Arc::clone(&self.cache()?.epoch))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// What is remembered, as of the snapshot in which this is called.
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
}
