//! Reading the indexes: the items that match a query, positions in a sort order, time ranges.
//!
//! Separate from `item_reader`, which reads the items that an index names.

use crate::collection::CollectionMeta;
use crate::derived_index::DerivedIndex;
use crate::error::{Result, RowResult, sqlite_error_at};
use crate::index_pages::IndexPages;
use crate::index_query::{self, IndexQuery};
use crate::interval_search::{self, TimeRangeHits};
use crate::item_meta::{ItemMeta, bytes_from_row, item_meta_of_kind, stored_fields_from_row};
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::reader_cache::ReaderCache;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::{Kind, Seq, blob};
use larder_extract::{StoredFields, TimeRange};
use larder_index::{Matches, Segment, SortIndex, SortPosition};
use rusqlite::{OptionalExtension as _, Row};
use std::borrow::Cow;

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

impl IndexedOrder {
    fn sort_index(&self) -> SortIndex {
        SortIndex {
            order: self.field,
            partitions: self.collections.iter().map(|row| row.to_number()).collect(),
        }
    }
}

/// The items that an index lookup named; the caller verifies them.
#[derive(Debug, Clone, Default)]
pub struct IndexMatches {
    matches: Matches,
    /// The number of index entries that were read.
    pub entries_read: u64,
}

impl IndexMatches {
    /// Returns the number of matched items, including items that changed after they were indexed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.matches.len()
    }

    /// Returns whether no item is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }
}

/// An item that the index named, while its row is read.
pub struct Candidate<'a> {
    reader: &'a Reader,
    tx: &'a ReadTransaction<'a>,
    collections: &'a [CollectionMeta],
    sql_row: &'a Row<'a>,
    with_bytes: bool,
    /// The row of the item.
    pub row: ItemRow,
    /// The row of its collection.
    pub collection: CollectionRow,
    /// The kind of the item.
    kind: Kind,
    /// The batch that last changed it.
    pub seq: Seq,
    /// Whether the item certainly matches. If not, it has more text than is indexed, and may match.
    pub exact: bool,
}

impl Candidate<'_> {
    /// Reads the metadata of the item.
    pub fn meta(&self) -> Result<ItemMeta> {
        item_meta_of_kind(self.sql_row, self.kind, self.collections)
            .map_err(sqlite_error_at(&self.reader.path))
    }

    /// Returns the stored fields of the item.
    #[must_use]
    pub fn stored_fields(&self) -> Option<StoredFields<'_>> {
        stored_fields_from_row(self.sql_row)
    }

    /// Returns the source bytes; without another query if [`IndexReader::for_each_candidate`] was
    /// called with `with_bytes`.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = match self.with_bytes {
            true => bytes_from_row(self.tx, self.sql_row, self.row),
            false => blob::require_source_bytes(self.tx, self.row).map(Cow::Owned),
        };
        bytes.map_err(sqlite_error_at(&self.reader.path))
    }
}

/// Reads the indexes. Each call is one short read transaction, or part of the open one.
#[derive(Debug, Clone, Copy)]
pub struct IndexReader<'a> {
    reader: &'a Reader,
}

impl Reader {
    /// Returns the indexes of the store.
    #[must_use]
    pub fn index(&self) -> IndexReader<'_> {
        IndexReader { reader: self }
    }
}

impl IndexReader<'_> {
    /// Returns whether an index is complete and has the current fingerprint. Otherwise the caller
    /// has to scan.
    pub fn is_current(self, index: DerivedIndex) -> Result<bool> {
        self.reader
            .read(|tx| Ok(index.is_current(&self.reader.cache(tx)?.meta, self.reader.extractor())))
    }

    /// Looks up a query in the index. The matches include all matches in these collections (empty:
    /// in all), and may include matches in others. `None`: the index is incomplete or has another
    /// fingerprint, and the caller has to scan. The matches are valid within the same
    /// [`ReadTransaction`] only.
    pub fn look_up(
        self,
        query: &IndexQuery,
        collections: &[CollectionRow],
    ) -> Result<Option<IndexMatches>> {
        let extractor = self.reader.extractor();
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let Some(segments) = cache.segments(tx, DerivedIndex::Text, extractor)? else {
                return Ok(None);
            };
            if index_query::has_time_range(query) && !cache.is_interval_index_current(extractor) {
                return Ok(None);
            }
            let is_selected = |collection: &&CollectionMeta| {
                collections.is_empty() || collections.contains(&collection.collection_key.id)
            };
            let selected: Vec<&CollectionMeta> =
                cache.collections.iter().filter(is_selected).collect();
            let (matches, entries_read) =
                index_query::find_matches(tx, extractor, segments, &selected, query)?;
            Ok(Some(IndexMatches { matches, entries_read }))
        })
    }

    /// Passes the matches from number `start` on to `each`, in the order of their rows and without
    /// items that changed after they were indexed, until it returns false. `with_bytes`: whether
    /// the source bytes are read in the same statement. Call it in the read transaction of the
    /// lookup; `each` must not block. Returns the number of matches that were processed.
    pub fn for_each_candidate(
        self,
        found: &IndexMatches,
        start: usize,
        with_bytes: bool,
        each: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<usize> {
        self.reader.map_file_for_items(found.len().saturating_sub(start));
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let mut select = tx.prepare_cached(match with_bytes {
                false => concat!(
                    "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields ",
                    "FROM item i WHERE i.id = ?1"
                ),
                true => concat!(
                    "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes ",
                    "FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1"
                ),
            })?;
            for (at, found_match) in found.matches.iter().enumerate().skip(start) {
                let mut rows = select.query([found_match.item])?;
                let Some(sql_row) = rows.next()? else { continue };
                let seq: Seq = sql_row.get(6)?;
                if seq > found_match.valid_until {
                    continue;
                }
                let Some(kind) = Kind::from_number(sql_row.get(2)?) else { continue };
                let candidate = Candidate {
                    reader: self.reader,
                    tx,
                    collections: &cache.collections,
                    sql_row,
                    with_bytes,
                    row: ItemRow::from_number(found_match.item),
                    collection: sql_row.get(3)?,
                    kind,
                    seq,
                    exact: seq <= found_match.exact_until,
                };
                if !each(&candidate) {
                    return Ok(at + 1);
                }
            }
            Ok(found.matches.len())
        })
    }

    /// Returns the items of these collections that have occurrences or alarms in a time range.
    /// `None`: the interval index is incomplete or has another fingerprint, and the caller has to
    /// scan.
    pub fn find_in_time_range(
        self,
        collections: &[CollectionRow],
        range: &TimeRange,
    ) -> Result<Option<TimeRangeHits>> {
        let extractor = self.reader.extractor();
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            if !cache.is_interval_index_current(extractor) {
                return Ok(None);
            }
            let selected: Vec<&CollectionMeta> = cache
                .collections
                .iter()
                .filter(|collection| collections.contains(&collection.collection_key.id))
                .collect();
            Ok(Some(interval_search::search(tx, extractor, &selected, range)?))
        })
    }

    /// Returns positions in a sort order: at most `limit`, after `after`, or before it if the order
    /// is reversed. `None`: a collection has no such index, or it is incomplete or has another
    /// fingerprint. Reads in one read transaction, without reading the positions in between.
    pub fn sort_positions(
        self,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        limit: usize,
    ) -> Result<Option<Vec<SortPosition>>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let Some(segments) = self.sort_segments(tx, &cache, order)? else { return Ok(None) };
            let mut select_seq = tx.prepare_cached("SELECT seq FROM item WHERE id = ?1")?;
            let mut positions = Vec::new();
            order.sort_index().scan(
                &IndexPages::new(tx),
                segments,
                after,
                order.backwards,
                &mut |position, valid_until| {
                    if positions.len() >= limit {
                        return Ok(false);
                    }
                    let seq: Option<Seq> =
                        select_seq.query_row([position.row], |row| row.get(0)).optional()?;
                    if seq.is_some_and(|seq| seq <= valid_until) {
                        positions.push(position);
                    }
                    Ok(true)
                },
            )?;
            Ok(Some(positions))
        })
    }

    /// Returns the number of items before a position in a sort order, whether or not an item is
    /// there, and the number of all items; both are counted from the beginning even if the order is
    /// reversed. The time does not depend on the number of items before; only rows of items with
    /// the same key are read. `None`: as in [`IndexReader::sort_positions`].
    pub fn rank(self, order: &IndexedOrder, position: &SortPosition) -> Result<Option<(u64, u64)>> {
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let Some(segments) = self.sort_segments(tx, &cache, order)? else { return Ok(None) };
            Ok(Some(order.sort_index().rank(&IndexPages::new(tx), segments, position)?))
        })
    }

    /// Returns the segments of a sort order; `None` if one of its collections has no such index.
    fn sort_segments<'k>(
        self,
        tx: &ReadTransaction<'_>,
        cache: &'k ReaderCache,
        order: &IndexedOrder,
    ) -> RowResult<Option<&'k [Segment]>> {
        let mut selected = cache
            .collections
            .iter()
            .filter(|collection| order.collections.contains(&collection.collection_key.id));
        match selected.all(|collection| collection.index_config.has_sort_index(order.field)) {
            true => cache.segments(tx, DerivedIndex::Sort, self.reader.extractor()),
            false => Ok(None),
        }
    }
}
