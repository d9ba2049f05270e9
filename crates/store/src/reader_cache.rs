//! The data that a reader caches until the next write.
//!
//! Apart from `reader`, as several modules read an index through the cache.

use crate::collection::{self, CollectionMeta};
use crate::meta::MetaTable;
use crate::read_transaction::ReadTransaction;
use larder_index::Segment;
use std::sync::{Arc, OnceLock};

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
    /// The segments of the indexes, once they were read; `None`: the index is not current.
    pub(crate) text_segments: OnceLock<Option<Vec<Segment>>>,
    pub(crate) sort_segments: OnceLock<Option<Vec<Segment>>>,
}

impl ReaderCache {
    /// Reads the data, in a read transaction with this data version.
    pub(crate) fn read(tx: &ReadTransaction<'_>, version: i64) -> rusqlite::Result<ReaderCache> {
        let meta = MetaTable::read(tx)?;
        Ok(ReaderCache {
            data_version: version,
            epoch: meta.text("epoch").into(),
            meta,
            collections: collection::read_collections(tx)?,
            text_segments: OnceLock::new(),
            sort_segments: OnceLock::new(),
        })
    }
}
