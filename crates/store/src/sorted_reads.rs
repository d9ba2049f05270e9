//! Reading in a sort order: positions, ranks, and the matches of a lookup in the order's sequence.
//!
//! Separate from `index_reader`, which reads in the sequence of rows.

use crate::error::Result;
use crate::index_reader::{Candidate, CandidateReader, IndexMatches, IndexReader};
use crate::reader_cache::ReaderCache;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::sort_index_pages::SortIndexPages;
use larder_index::{PartitionOrder, SortIndex, SortPosition};

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
    /// Whether it came to its end, or `visit` ended it; false: it was given up.
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

impl IndexReader<'_> {
    /// Returns whether the sort index has an order of all its collections, and is current.
    pub fn has_order(self, order: &IndexedOrder) -> Result<bool> {
        self.reader.read(|tx| Ok(self.has_cached_order(&*self.reader.cache(tx)?, order)))
    }

    fn has_cached_order(self, cache: &ReaderCache, order: &IndexedOrder) -> bool {
        let mut selected = cache
            .collections
            .iter()
            .filter(|collection| order.collections.contains(&collection.collection_key.id));
        selected.all(|collection| collection.index_config.has_sort_index(order.field))
            && cache.is_sort_index_current(self.reader.extractor())
    }

    /// Passes the key and the row of each item in a sort order to `visit`, after `after`, or before
    /// it if the order is reversed, until it returns false. Returns false, without a call of
    /// `visit`, if a collection has no such index, or it is incomplete or has another fingerprint.
    /// All within one read transaction: `visit` must not block. No item is read.
    pub fn for_each_position(
        self,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        visit: &mut dyn FnMut(&[u8], ItemRow) -> bool,
    ) -> Result<bool> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            if !self.has_cached_order(&cache, order) {
                return Ok(false);
            }
            let pages = SortIndexPages::new(tx);
            SortIndex::new(&pages, cache.level_zero(tx)?).scan(
                &order.partitions(),
                after,
                order.backwards,
                &mut |key, row| Ok(visit(key, ItemRow::from_number(row))),
            )?;
            Ok(true)
        })
    }

    /// Returns the number of items before a position in a sort order, whether or not an item is
    /// there, and the number of all items; both are counted from the beginning even if the order is
    /// reversed. The items before it are not read. `None`: as in
    /// [`IndexReader::for_each_position`].
    pub fn rank(self, order: &IndexedOrder, position: &SortPosition) -> Result<Option<(u64, u64)>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            if !self.has_cached_order(&cache, order) {
                return Ok(None);
            }
            let mut partitions = Vec::with_capacity(order.collections.len());
            for partition in order.partitions() {
                partitions.push((partition, cache.rank_directory(tx, partition)?));
            }
            let orders = partitions.iter().map(|(partition, directory)| (*partition, &**directory));
            let pages = SortIndexPages::new(tx);
            SortIndex::new(&pages, cache.level_zero(tx)?).rank(orders, position).map(Some)
        })
    }

    /// Passes matches to `visit` as [`IndexReader::for_each_candidate`] does, but in a sort order
    /// and after a position, until it returns false. Scans the order for them, and gives up after
    /// `max_positions`. `None`: as in [`IndexReader::for_each_position`].
    pub fn for_each_sorted_candidate(
        self,
        matches: &IndexMatches,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        max_positions: usize,
        visit: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<Option<SortedScan>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            if !self.has_cached_order(&cache, order) {
                return Ok(None);
            }
            let mut candidates = CandidateReader::begin(self.reader, tx, &cache, false)?;
            let mut scan = SortedScan { positions_read: 0, is_complete: true };
            let pages = SortIndexPages::new(tx);
            SortIndex::new(&pages, cache.level_zero(tx)?).scan(
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
                        Some(found) => candidates.read(found, visit),
                        None => Ok(true),
                    }
                },
            )?;
            Ok(Some(scan))
        })
    }
}
