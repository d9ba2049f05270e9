//! Reading items: by UID, by row, by an index lookup, in a sort order.
//!
//! A person waits for these reads at each keystroke, so each takes as few steps of SQLite as
//! possible, and `read_transaction` caches the data that stay the same until the next write. All
//! other reads are in `reader`.

use crate::collection::CollectionMeta;
use crate::derived_index::DerivedIndex;
use crate::error::{Result, RowResult, sqlite_error_at};
use crate::handle::Handle;
use crate::index_pages::IndexPages;
use crate::index_query::{self, IndexQuery};
use crate::item_meta::{ItemMeta, item_meta_from_row, item_meta_of_kind};
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::reader_cache::ReaderCache;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::{Kind, Seq, blob, uid_lookup};
use larder_extract::StoredFields;
use larder_index::{Matches, ReadPages as _, Segment, SortIndex, SortPosition};
use rusqlite::{OptionalExtension as _, Row};
use std::borrow::Cow;
use std::sync::Arc;

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
    /// Returns the number of named items, including those that changed after they were indexed.
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

/// The columns of the stored fields and of the source bytes, after those of
/// [`ITEM_META_COLUMNS`](crate::item_meta::ITEM_META_COLUMNS).
const STORED_FIELDS_COLUMN: usize = 9;
const BYTES_COLUMN: usize = 10;

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

    /// Returns the source bytes; without a further read if [`Reader::for_each_candidate`] was
    /// called with `with_bytes`.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = match self.with_bytes {
            true => bytes_from_row(self.tx, self.sql_row, self.row),
            false => blob::require_source_bytes(self.tx, self.row).map(Cow::Owned),
        };
        bytes.map_err(sqlite_error_at(&self.reader.path))
    }
}

/// Divides ascending rows into runs without gaps, each of which is read by one statement.
fn contiguous_runs(rows: &[ItemRow]) -> impl Iterator<Item = (ItemRow, ItemRow)> {
    rows.chunk_by(|a, b| a.next() == *b).filter_map(|run| Some((*run.first()?, *run.last()?)))
}

fn stored_fields_from_row<'a>(row: &'a Row<'_>) -> Option<StoredFields<'a>> {
    let kind = Kind::from_number(row.get(2).ok()?)?;
    let bytes = row.get_ref(STORED_FIELDS_COLUMN).ok()?.as_blob_or_null().ok()??;
    StoredFields::from_bytes(kind, bytes)
}

fn bytes_from_row<'a>(
    tx: &ReadTransaction<'_>,
    of: &'a Row<'_>,
    row: ItemRow,
) -> RowResult<Cow<'a, [u8]>> {
    Ok(match of.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(blob::require_source_bytes(tx, row)?),
    })
}

impl Reader {
    /// Returns the segments of an index, in the read transaction of the cache; `None` if the index
    /// is incomplete or has another fingerprint.
    fn segments<'k>(
        &self,
        tx: &ReadTransaction<'_>,
        remembered: &'k ReaderCache,
        set: DerivedIndex,
    ) -> RowResult<Option<&'k [Segment]>> {
        let known = if set == DerivedIndex::Sort {
            &remembered.sort_segments
        } else {
            &remembered.text_segments
        };
        if let Some(segments) = known.get() {
            return Ok(segments.as_deref());
        }
        let usable = set.is_current(&remembered.meta, &self.extractor);
        let pages = IndexPages::new(tx);
        let segments = usable.then(|| pages.segments(set.index_id())).transpose()?;
        Ok(known.get_or_init(|| segments).as_deref())
    }

    /// Returns the segments of a sort order; `None` if one of its collections has no such index.
    fn sort_segments<'k>(
        &self,
        tx: &ReadTransaction<'_>,
        known: &'k ReaderCache,
        order: &IndexedOrder,
    ) -> RowResult<Option<&'k [Segment]>> {
        let mut selected = known
            .collections
            .iter()
            .filter(|known| order.collections.contains(&known.collection_key.id));
        match selected.all(|known| known.index_config.has_sort_index(order.field)) {
            true => self.segments(tx, known, DerivedIndex::Sort),
            false => Ok(None),
        }
    }

    /// Returns whether the interval index is complete and has the current fingerprint.
    pub(crate) fn is_time_index_current(&self, known: &ReaderCache) -> bool {
        DerivedIndex::Schedule.is_current(&known.meta, &self.extractor)
    }

    /// Returns the item with this UID in a collection, with its bytes, in the fewest steps.
    pub fn get(&self, collection: &str, uid: &str) -> Result<Option<(ItemMeta, Vec<u8>)>> {
        let quick = || -> RowResult<Option<(ItemMeta, Vec<u8>)>> {
            // A collection never changes its key, so even an outdated cache leads to the item or to
            // none.
            let remembered = self.cache.borrow();
            let mut known = remembered.iter().flat_map(|known| &known.collections);
            let Some(known) = known.find(|known| *known.name == *collection) else {
                return Ok(None);
            };
            let tx = self.autocommit_read();
            let mut select = tx.prepare_cached(concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes ",
                "FROM item i CROSS JOIN source_bytes s ON s.item = i.id CROSS JOIN collection c ON c.id = i.collection ",
                "WHERE i.handle = ?1 AND i.uid = ?2 AND c.name = ?3 AND c.removed = 0"
            ))?;
            let handle = Handle::from_uid(&known.collection_key.handle_key, uid, "", 0);
            let mut rows = select.query((handle.to_bytes(), uid, collection))?;
            let Some(row) = rows.next()? else { return Ok(None) };
            // In a store that was restored, another collection may have the name.
            let Some(meta) = item_meta_from_row(row, std::slice::from_ref(known))? else {
                return Ok(None);
            };
            let head = ItemMeta { collection: Arc::clone(&known.name), ..meta };
            let bytes = bytes_from_row(&tx, row, head.row)?.into_owned();
            Ok(Some((head, bytes)))
        };
        match quick().map_err(sqlite_error_at(&self.path))? {
            Some(found) => Ok(Some(found)),
            None => self.get_uncached(collection, uid).map_err(sqlite_error_at(&self.path)),
        }
    }

    fn get_uncached(&self, collection: &str, uid: &str) -> RowResult<Option<(ItemMeta, Vec<u8>)>> {
        let tx = self.begin_read_raw()?;
        let remembered = self.cache(&tx)?;
        let known = remembered.collections.iter().find(|known| *known.name == *collection);
        let Some(known) = known else { return Ok(None) };
        let Some(row) = uid_lookup::find_row(&tx, &known.collection_key, uid, "")? else {
            return Ok(None);
        };
        let mut found = None;
        self.for_each_in_runs(
            &tx,
            &remembered,
            &mut std::iter::once((row, row)),
            &mut |head, bytes| {
                found = Some((head, bytes.to_vec()));
                false
            },
        )?;
        Ok(found)
    }

    /// Passes the items in these rows with their bytes to `each`, in the order of `rows` and
    /// without items that do not exist any more, until it returns false. All within one read
    /// transaction: `each` must not block.
    pub fn for_each_item(
        &self,
        rows: &[ItemRow],
        each: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
            self.for_each_in_runs(&tx, &remembered, &mut contiguous_runs(rows), each)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes the rows and bytes of the items to `each`, like [`Reader::for_each_item`], without
    /// reading their metadata.
    pub fn for_each_source(
        &self,
        rows: &[ItemRow],
        each: &mut dyn FnMut(ItemRow, &[u8]) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let tx = self.begin_read_raw()?;
            // Most runs have one row: the statement for it does not step again.
            let mut one = tx.prepare_cached("SELECT bytes FROM source_bytes WHERE item = ?1")?;
            let sql =
                "SELECT bytes, item FROM source_bytes WHERE item BETWEEN ?1 AND ?2 ORDER BY item";
            let mut many = tx.prepare_cached(sql)?;
            let mut give = |item: ItemRow, row: &Row<'_>| -> RowResult<bool> {
                Ok(match row.get_ref(0)?.as_blob_or_null()? {
                    Some(bytes) => each(item, bytes),
                    None => each(item, &blob::require_source_bytes(&tx, item)?),
                })
            };
            for (first, last) in contiguous_runs(rows) {
                if first == last {
                    let mut sources = one.query([first])?;
                    if let Some(row) = sources.next()?
                        && !give(first, row)?
                    {
                        return Ok(());
                    }
                    continue;
                }
                let mut sources = many.query((first, last))?;
                while let Some(row) = sources.next()? {
                    if !give(row.get(1)?, row)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    fn for_each_in_runs(
        &self,
        tx: &ReadTransaction<'_>,
        remembered: &ReaderCache,
        runs: &mut dyn Iterator<Item = (ItemRow, ItemRow)>,
        each: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> RowResult<()> {
        let mut select = tx.prepare_cached(concat!(
            "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes ",
            "FROM item i CROSS JOIN source_bytes s ON s.item = i.id ",
            "WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
        ))?;
        for run in runs {
            let mut rows = select.query(run)?;
            while let Some(row) = rows.next()? {
                let Some(head) = item_meta_from_row(row, &remembered.collections)? else {
                    continue;
                };
                let bytes = bytes_from_row(tx, row, head.row)?;
                if !each(head, &bytes) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the rows of a collection's items after row `after`, ascending, at most `limit`,
    /// without reading the items.
    pub fn item_rows(
        &self,
        collection: CollectionRow,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<ItemRow>> {
        let run = || -> rusqlite::Result<Vec<ItemRow>> {
            let sql = "SELECT id FROM item INDEXED BY item_collection
                       WHERE collection = ?1 AND id > coalesce(?2, 0) ORDER BY id LIMIT ?3";
            let mut select = self.autocommit_read().prepare_cached(sql)?;
            select.query_map((collection, after, limit as i64), |row| row.get(0))?.collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the rows, collections and kinds of the items of one collection or of all, after row
    /// `after`, ascending, at most `limit`. Reads nothing else of the items.
    pub fn item_rows_with_kind(
        &self,
        collection: Option<CollectionRow>,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<(ItemRow, CollectionRow, Kind)>> {
        let run = || -> rusqlite::Result<Vec<(ItemRow, CollectionRow, Kind)>> {
            let each = |row: &Row<'_>| -> rusqlite::Result<Option<(ItemRow, CollectionRow, Kind)>> {
                let (id, collection) = (row.get(0)?, row.get(1)?);
                Ok(Kind::from_number(row.get(2)?).map(|kind| (id, collection, kind)))
            };
            match collection {
                Some(collection) => self.autocommit_read()
                    .prepare_cached(
                        "SELECT id, collection, kind FROM item INDEXED BY item_collection
                         WHERE collection = ?1 AND id > coalesce(?2, 0) ORDER BY id LIMIT ?3",
                    )?
                    .query_map((collection, after, limit as i64), each)?
                    .filter_map(Result::transpose)
                    .collect(),
                None => self.autocommit_read()
                    .prepare_cached(
                        "SELECT id, collection, kind FROM item WHERE id > coalesce(?1, 0) ORDER BY id LIMIT ?2",
                    )?
                    .query_map((after, limit as i64), each)?
                    .filter_map(Result::transpose)
                    .collect(),
            }
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes the items in these rows with their stored fields to `each`, in the order of `rows`
    /// and without items that do not exist any more, until it returns false. Items without valid
    /// stored fields come without them. All within one read transaction: `each` must not block.
    pub fn for_each_with_stored_fields(
        &self,
        rows: &[ItemRow],
        each: &mut dyn FnMut(ItemMeta, Option<StoredFields<'_>>) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
            let usable = self.segments(&tx, &remembered, DerivedIndex::Text)?.is_some();
            let mut select = tx.prepare_cached(concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields ",
                "FROM item i WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
            ))?;
            for run in contiguous_runs(rows) {
                let mut rows = select.query(run)?;
                while let Some(row) = rows.next()? {
                    let kept = if usable { stored_fields_from_row(row) } else { None };
                    let Some(meta) = item_meta_from_row(row, &remembered.collections)? else {
                        continue;
                    };
                    if !each(meta, kept) {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Looks up a query in the index. The matches are of these collections (empty: of all), and
    /// perhaps of others. `None`: the index is incomplete or has another fingerprint, and the
    /// caller has to scan. The matches are valid within the same
    /// [`ReadTransaction`](crate::ReadTransaction) only.
    pub fn look_up(
        &self,
        lookup: &IndexQuery,
        collections: &[CollectionRow],
    ) -> Result<Option<IndexMatches>> {
        let run = || -> RowResult<Option<IndexMatches>> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
            let segments = self.segments(&tx, &remembered, DerivedIndex::Text)?;
            let Some(segments) = segments else { return Ok(None) };
            if index_query::has_time_range(lookup) && !self.is_time_index_current(&remembered) {
                return Ok(None);
            }
            let known = remembered.collections.iter();
            let selected: Vec<&CollectionMeta> = known
                .filter(|known| {
                    collections.is_empty() || collections.contains(&known.collection_key.id)
                })
                .collect();
            let (named, read) =
                index_query::find_matches(&tx, &self.extractor, segments, &selected, lookup)?;
            Ok(Some(IndexMatches { matches: named, entries_read: read }))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes the matches from number `from` on to `each`, in the order of their rows and without
    /// items that changed after they were indexed, until it returns false. `with_bytes`: whether
    /// the source bytes are read in the same statement. Call it in the read transaction of the
    /// lookup; `each` must not block. Returns the number of matches that are done.
    pub fn for_each_candidate(
        &self,
        found: &IndexMatches,
        from: usize,
        with_bytes: bool,
        each: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<usize> {
        self.map_file_for_items(found.len().saturating_sub(from));
        let mut run = || -> RowResult<usize> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
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
            for (at, named) in found.matches.iter().enumerate().skip(from) {
                let mut rows = select.query([named.item])?;
                let Some(row) = rows.next()? else { continue };
                let seq: Seq = row.get(6)?;
                if seq > named.valid_until {
                    continue;
                }
                let Some(kind) = Kind::from_number(row.get(2)?) else { continue };
                let (of, sure) = (row, seq <= named.exact_until);
                let (collections, collection) = (&remembered.collections, row.get(3)?);
                let row = ItemRow::from_number(named.item);
                let reader = self;
                let candidate = Candidate {
                    reader,
                    tx: &tx,
                    collections,
                    sql_row: of,
                    with_bytes,
                    row,
                    collection,
                    kind,
                    seq,
                    exact: sure,
                };
                if !each(&candidate) {
                    return Ok(at + 1);
                }
            }
            Ok(found.matches.len())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns positions in a sort order: at most `limit`, after `after`, or before it if the order
    /// is reversed. `None`: a collection has no such index, or it is incomplete or has another
    /// fingerprint. All within one read transaction, without reading the positions in between.
    pub fn sort_positions(
        &self,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        limit: usize,
    ) -> Result<Option<Vec<SortPosition>>> {
        let run = || -> RowResult<Option<Vec<SortPosition>>> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
            let segments = self.sort_segments(&tx, &remembered, order)?;
            let Some(segments) = segments else { return Ok(None) };
            let mut seq = tx.prepare_cached("SELECT seq FROM item WHERE id = ?1")?;
            let mut places = Vec::new();
            order.sort_index().scan(
                &IndexPages::new(&tx),
                segments,
                after,
                order.backwards,
                &mut |place, until| {
                    if places.len() >= limit {
                        return Ok(false);
                    }
                    let changed: Option<Seq> =
                        seq.query_row([place.row], |row| row.get(0)).optional()?;
                    if changed.is_some_and(|changed| changed <= until) {
                        places.push(place);
                    }
                    Ok(true)
                },
            )?;
            Ok(Some(places))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the number of items before a position in a sort order, whether or not an item is
    /// there, and the number of all items; both are counted from the beginning even if the order is
    /// reversed. The time does not depend on the number of items before; only rows of items with
    /// the same key are read. `None`: as in [`Reader::sort_positions`].
    pub fn rank(&self, order: &IndexedOrder, place: &SortPosition) -> Result<Option<(u64, u64)>> {
        let run = || -> RowResult<Option<(u64, u64)>> {
            let tx = self.begin_read_raw()?;
            let remembered = self.cache(&tx)?;
            let segments = self.sort_segments(&tx, &remembered, order)?;
            let Some(segments) = segments else { return Ok(None) };
            Ok(Some(order.sort_index().rank(&IndexPages::new(&tx), segments, place)?))
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}
