//! Reading in a sort order: positions, ranks, and the matches of a lookup in the order's sequence.
//!
//! Apart from `items`, which reads items one by one or in the sequence of their rows.

use crate::derived_index::DerivedIndex;
use crate::error::{Result, RowResult, sqlite_error_at};
use crate::items::{Candidate, IndexMatches};
use crate::read_transaction::ReaderCache;
use crate::reader::Reader;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::sort_index_pages::SortIndexPages;
use larder_index::{LevelZero, PartitionOrder, RankDirectory, SortIndex, SortPosition};
use std::sync::{Arc, PoisonError};

/// A sort order that an index has.
#[derive(Debug, Clone)]
pub struct IndexedOrder {
    /// The number of a field that the index configurations of the collections sort by.
    pub field: u16,
    /// The rows of the collections whose items are sorted.
    pub collections: Vec<CollectionRow>,
    /// Whether the order is reversed.
    pub backwards: bool,
}

/// The extent of a scan for candidates in an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortedScan {
    /// The number of positions that were read.
    pub positions_read: usize,
    /// Whether it came to its end, or `each` ended it; false: it was given up.
    pub is_complete: bool,
}

impl IndexedOrder {
    fn partitions(&self) -> Vec<PartitionOrder> {
        let of_collection = |collection: &CollectionRow| PartitionOrder {
            order: self.field,
            partition: collection.to_number(),
        };
        self.collections.iter().map(of_collection).collect()
    }
}

impl Reader {
    fn has_order(&self, known: &ReaderCache, order: &IndexedOrder) -> bool {
        let mut selected = known
            .collections
            .iter()
            .filter(|known| order.collections.contains(&known.collection_key.id));
        let is_current = || DerivedIndex::Sort.is_current(&known.meta, &self.extractor);
        selected.all(|known| known.index_config.has_sort_index(order.field))
            && *known.is_sort_index_current.get_or_init(is_current)
    }

    /// Returns level 0 of the sort index, in the read transaction of the cache.
    fn level_zero<'k>(&self, known: &'k ReaderCache) -> RowResult<&'k LevelZero> {
        if let Some(level_zero) = known.level_zero.get() {
            return Ok(level_zero);
        }
        let level_zero = LevelZero::read(&SortIndexPages::new(&self.conn))?;
        Ok(known.level_zero.get_or_init(|| level_zero))
    }

    /// Returns the ranks of the chunks of an order, in the read transaction of the cache.
    fn rank_directory(
        &self,
        known: &ReaderCache,
        order: PartitionOrder,
    ) -> RowResult<Arc<RankDirectory>> {
        let mut directories = known.rank_directories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = directories.get(&order) {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(RankDirectory::read(&SortIndexPages::new(&self.conn), order)?);
        directories.insert(order, Arc::clone(&directory));
        Ok(directory)
    }

    /// Returns whether the sort index has an order of all its collections, and is current.
    pub fn is_order_indexed(&self, order: &IndexedOrder) -> Result<bool> {
        let run = || -> RowResult<bool> {
            let _transaction = self.begin_read_raw()?;
            Ok(self.has_order(&*self.cache()?, order))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes the key and the row of each item in a sort order to `each`, after `after`, or before
    /// it if the order is reversed, until it returns false. Returns false, without a call of
    /// `each`, if a collection has no such index, or it is incomplete or has another fingerprint.
    /// All within one read transaction: `each` must not block. No item is read.
    pub fn for_each_position(
        &self,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        each: &mut dyn FnMut(&[u8], ItemRow) -> bool,
    ) -> Result<bool> {
        let mut run = || -> RowResult<bool> {
            let _transaction = self.begin_read_raw()?;
            let known = self.cache()?;
            if !self.has_order(&known, order) {
                return Ok(false);
            }
            let pages = SortIndexPages::new(&self.conn);
            SortIndex::new(&pages, self.level_zero(&known)?).scan(
                &order.partitions(),
                after,
                order.backwards,
                &mut |key, row| Ok(each(key, ItemRow::from_number(row))),
            )?;
            Ok(true)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the number of items before a position in a sort order, whether or not an item is
    /// there, and the number of all items; both are counted from the beginning even if the order is
    /// reversed. The items before it are not read. `None`: as in [`Reader::for_each_position`].
    pub fn rank(
        &self,
        order: &IndexedOrder,
        position: &SortPosition,
    ) -> Result<Option<(u64, u64)>> {
        let run = || -> RowResult<Option<(u64, u64)>> {
            let _transaction = self.begin_read_raw()?;
            let known = self.cache()?;
            if !self.has_order(&known, order) {
                return Ok(None);
            }
            let pages = SortIndexPages::new(&self.conn);
            let mut partitions = Vec::with_capacity(order.collections.len());
            for partition in order.partitions() {
                partitions.push((partition, self.rank_directory(&known, partition)?));
            }
            let orders = partitions.iter().map(|(partition, directory)| (*partition, &**directory));
            SortIndex::new(&pages, self.level_zero(&known)?).rank(orders, position).map(Some)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes matches to `each` as [`Reader::for_each_candidate`] does, but in a sort order and
    /// after a position, until it returns false. Scans the order for them, and gives up after
    /// `max_positions`. `None`: as in [`Reader::for_each_position`].
    pub fn for_each_sorted_candidate(
        &self,
        matches: &IndexMatches,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        max_positions: usize,
        each: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<Option<SortedScan>> {
        let mut run = || -> RowResult<Option<SortedScan>> {
            let _transaction = self.begin_read_raw()?;
            let known = self.cache()?;
            if !self.has_order(&known, order) {
                return Ok(None);
            }
            let mut select = self.prepare_candidates(false)?;
            let mut scan = SortedScan { positions_read: 0, is_complete: true };
            let pages = SortIndexPages::new(&self.conn);
            SortIndex::new(&pages, self.level_zero(&known)?).scan(
                &order.partitions(),
                after,
                order.backwards,
                &mut |_, row| {
                    if scan.positions_read >= max_positions {
                        scan.is_complete = false;
                        return Ok(false);
                    }
                    scan.positions_read += 1;
                    match matches.find(ItemRow::from_number(row)) {
                        Some(found) => self.read_candidate(&mut select, &known, found, false, each),
                        None => Ok(true),
                    }
                },
            )?;
            Ok(Some(scan))
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}
