//! The data that a reader caches until the next write.
//!
//! Separate from `reader` because several modules read an index through the cache.

use crate::collection::{self, CollectionMeta};
use crate::commit_record::CommittedState;
use crate::derived_index::DerivedIndex;
use crate::error::DatabaseResult;
use crate::index_tables::IndexTables;
use crate::mail::page_cache::MailPageCache;
use crate::meta::{EPOCH_KEY, MetaTable};
use crate::read_transaction::ReadTransaction;
use crate::sort_index_pages::SortIndexPages;
use larder_extract::Extractor;
use larder_index::{LevelZero, PartitionOrder, RankDirectory, ReadSegments as _, Segment};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    text_segments: OnceLock<Option<Vec<Segment>>>,
    /// Whether the sort index is current, once that was needed.
    is_sort_index_current: OnceLock<bool>,
    /// Level 0 of the sort index, once it was read.
    level_zero: OnceLock<LevelZero>,
    /// The ranks of the blocks of orders in the sort index, of those that were needed.
    rank_directories: Mutex<HashMap<PartitionOrder, Arc<RankDirectory>>>,
    /// Pages and lists of mail, as they were read.
    pub(crate) mail: MailPageCache,
}

impl ReaderCache {
    /// Reads the data, in a read transaction with this data version.
    pub(crate) fn read(tx: &ReadTransaction<'_>, version: i64) -> DatabaseResult<ReaderCache> {
        let meta = MetaTable::read(tx)?;
        Ok(ReaderCache {
            data_version: version,
            epoch: meta.text(EPOCH_KEY)?.into(),
            meta,
            collections: collection::read_collections(tx)?,
            text_segments: OnceLock::new(),
            is_sort_index_current: OnceLock::new(),
            level_zero: OnceLock::new(),
            rank_directories: Mutex::default(),
            mail: MailPageCache::default(),
        })
    }

    /// Returns the number of the last batch, and the epoch.
    pub(crate) fn committed_state(&self) -> DatabaseResult<CommittedState> {
        Ok(CommittedState { seq: self.meta.number("last_seq")?, epoch: self.epoch.to_string() })
    }

    /// Returns the segments of the text index; `None` if the index is incomplete or has another
    /// fingerprint. In a read transaction with the data version of the cache.
    pub(crate) fn text_segments(
        &self,
        tx: &ReadTransaction<'_>,
        extractor: &Extractor,
    ) -> DatabaseResult<Option<&[Segment]>> {
        if let Some(segments) = self.text_segments.get() {
            return Ok(segments.as_deref());
        }
        let is_current = DerivedIndex::Text.is_current(&self.meta, extractor);
        let pages = IndexTables::new(tx);
        let segments =
            is_current.then(|| pages.segments(DerivedIndex::Text.index_id())).transpose()?;
        Ok(self.text_segments.get_or_init(|| segments).as_deref())
    }

    /// Returns whether the sort index is complete and has the current fingerprint.
    pub(crate) fn is_sort_index_current(&self, extractor: &Extractor) -> bool {
        let is_current = || DerivedIndex::Sort.is_current(&self.meta, extractor);
        *self.is_sort_index_current.get_or_init(is_current)
    }

    /// Returns level 0 of the sort index, in a read transaction with the data version of the cache.
    pub(crate) fn level_zero(&self, tx: &ReadTransaction<'_>) -> DatabaseResult<&LevelZero> {
        if let Some(level_zero) = self.level_zero.get() {
            return Ok(level_zero);
        }
        let level_zero = LevelZero::read(&SortIndexPages::new(tx))?;
        Ok(self.level_zero.get_or_init(|| level_zero))
    }

    /// Returns the ranks of the blocks of an order, in a read transaction with the data version of
    /// the cache.
    pub(crate) fn rank_directory(
        &self,
        tx: &ReadTransaction<'_>,
        order: PartitionOrder,
    ) -> DatabaseResult<Arc<RankDirectory>> {
        let mut directories = self.rank_directories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = directories.get(&order) {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(RankDirectory::read(&SortIndexPages::new(tx), order)?);
        directories.insert(order, Arc::clone(&directory));
        Ok(directory)
    }

    /// Returns whether the interval index is complete and has the current fingerprint.
    pub(crate) fn is_interval_index_current(&self, extractor: &Extractor) -> bool {
        DerivedIndex::Interval.is_current(&self.meta, extractor)
    }
}
