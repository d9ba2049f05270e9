//! Read transactions, and the data that a reader caches until the next write.
//!
//! Apart from `reader` because writers begin read transactions, too.

use crate::collection::{self, CollectionMeta};
use crate::meta::MetaTable;
use larder_index::{LevelZero, PartitionOrder, RankDirectory, Segment};
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The version of the data that a reader reads, see
/// [`Reader::data_version`](crate::Reader::data_version).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataVersion {
    pub(crate) reader_id: u64,
    pub(crate) version: i64,
}

/// The data that stay the same until the next write.
#[derive(Debug)]
pub(crate) struct ReaderCache {
    /// SQLite's data version.
    pub(crate) data_version: i64,
    /// The epoch of the store.
    pub(crate) epoch: Arc<str>,
    /// The values of `meta`.
    pub(crate) meta: MetaTable,
    /// All collections, by row.
    pub(crate) collections: Vec<CollectionMeta>,
    /// The segments of the text index, once they were read; `None`: the index is not current.
    pub(crate) text_segments: OnceLock<Option<Vec<Segment>>>,
    /// Whether the sort index is current, once that was needed.
    pub(crate) is_sort_index_current: OnceLock<bool>,
    /// Level 0 of the sort index, once it was read.
    pub(crate) level_zero: OnceLock<LevelZero>,
    /// The ranks of the chunks of orders in the sort index, of those that were needed.
    pub(crate) rank_directories: Mutex<HashMap<PartitionOrder, Arc<RankDirectory>>>,
}

impl ReaderCache {
    /// Reads the data, in a read transaction with this data version.
    pub(crate) fn read(conn: &Connection, version: i64) -> rusqlite::Result<ReaderCache> {
        let meta = MetaTable::read(conn)?;
        Ok(ReaderCache {
            data_version: version,
            epoch: meta.text("epoch").into(),
            meta,
            collections: collection::read_collections(conn)?,
            text_segments: OnceLock::new(),
            is_sort_index_current: OnceLock::new(),
            level_zero: OnceLock::new(),
            rank_directories: Mutex::default(),
        })
    }
}

/// Returns SQLite's data version, which changes when another connection writes.
pub(crate) fn read_data_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// A read transaction. Until it is dropped, its reader sees the store as it was at the first call,
/// and each call costs less. It keeps the write-ahead log from being reset, so it must not last
/// longer than 200 ms, nor block.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct ReadTransaction<'a>(pub(crate) Option<&'a Connection>);

impl ReadTransaction<'_> {
    pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<ReadTransaction<'_>> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(ReadTransaction(Some(conn)))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.0 {
            // Nothing was written, so a failure loses nothing.
            let _ended = conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
}
