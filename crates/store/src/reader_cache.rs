//! The data that a reader caches until the next write.
//!
//! Separate from `reader` because several modules read an index through the cache.

use crate::collection::{self, CollectionMeta};
use crate::derived_index::DerivedIndex;
use crate::error::RowResult;
use crate::index_pages::IndexPages;
use crate::meta::MetaTable;
use crate::read_transaction::ReadTransaction;
use larder_extract::Extractor;
use larder_index::{ReadPages as _, Segment};
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
    text_segments: OnceLock<Option<Vec<Segment>>>,
    sort_segments: OnceLock<Option<Vec<Segment>>>,
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

    /// Returns the segments of an inverted index; `None` if the index is incomplete or has another
    /// fingerprint. In a read transaction with the data version of the cache.
    pub(crate) fn segments(
        &self,
        tx: &ReadTransaction<'_>,
        index: DerivedIndex,
        extractor: &Extractor,
    ) -> RowResult<Option<&[Segment]>> {
        let cached = match index {
            DerivedIndex::Sort => &self.sort_segments,
            DerivedIndex::Text | DerivedIndex::Schedule => &self.text_segments,
        };
        if let Some(segments) = cached.get() {
            return Ok(segments.as_deref());
        }
        let is_current = index.is_current(&self.meta, extractor);
        let pages = IndexPages::new(tx);
        let segments = is_current.then(|| pages.segments(index.index_id())).transpose()?;
        Ok(cached.get_or_init(|| segments).as_deref())
    }

    /// Returns whether the interval index is complete and has the current fingerprint.
    pub(crate) fn is_interval_index_current(&self, extractor: &Extractor) -> bool {
        DerivedIndex::Schedule.is_current(&self.meta, extractor)
    }
}
