//! Reading items: one by its UID, those in given rows, those that the index names, those that
//! follow in an order.
//!
//! These are the ways that a keystroke waits for, so each is as few steps into SQLite as it can be,
//! and what stays as it is while nobody writes is remembered (`snapshot`). Everything else that a
//! reader can tell is in `reader`.

use crate::collection::CollectionMeta;
use crate::error::{Result, RowResult, sqlite_error_at};
use crate::handle::Handle;
use crate::index_maintenance::DerivedIndex;
use crate::index_pages::IndexPages;
use crate::index_query::{self, IndexQuery};
use crate::read_transaction::ReaderCache;
use crate::reader::Reader;
use crate::{Kind, Seq, blob, uid_lookup};
use larder_extract::StoredFields;
use larder_index::{Matches, ReadPages as _, Segment, SortIndex, SortPosition};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::borrow::Cow;
use std::sync::Arc;

/// An item without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemMeta {
    /// Its row in this file: to ask for its bytes with, never to be shown or kept.
    pub row: i64,
    /// Its short name.
    pub handle: Handle,
    /// What it is.
    pub kind: Kind,
    /// The collection it is in.
    pub collection: Arc<str>,
    /// Its UID in that collection.
    pub uid: String,
    /// Which occurrence of a series it stands for, as it is written: `20260305T120000`, with a Z
    /// where it is in UTC, without the time where it is a day. Empty: it is a whole item.
    pub recurrence_id: String,
    /// True where the bytes do not name this UID themselves.
    pub derived_uid: bool,
    /// The batch that last changed it.
    pub seq: Seq,
    /// What the calendar around it says: a row of this file, to ask [`Reader::calendar_context`]
    /// with.
    pub calendar_context: Option<i64>,
}

/// The columns of an [`ItemMeta`], for a query over `item i`.
pub(crate) const ITEM_META_COLUMNS: &str = "i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context";

/// An order of items that is kept.
#[derive(Debug, Clone)]
pub struct IndexedOrder {
    /// The number of a field that the collections' summaries sort by.
    pub field: u16,
    /// The rows of the collections whose items are in it.
    pub collections: Vec<i64>,
    /// From its end to its beginning.
    pub backwards: bool,
}

impl IndexedOrder {
    fn sort_index(&self) -> SortIndex {
        SortIndex { order: self.field, partitions: self.collections.clone() }
    }
}

/// What a look-up found: what the index names, to be held against the items.
#[derive(Debug, Clone, Default)]
pub struct IndexMatches {
    matches: Matches,
    /// How many entries of the index were read.
    pub entries_read: u64,
}

impl IndexMatches {
    /// How many items are named; those that were changed since they were indexed are still among
    /// them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.matches.len()
    }

    /// Is no item named?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matches.is_empty()
    }
}

/// An item that the index names, as it is being read.
pub struct Candidate<'a> {
    reader: &'a Reader,
    collections: &'a [CollectionMeta],
    sql_row: &'a Row<'a>,
    with_bytes: bool,
    /// Its row.
    pub row: i64,
    /// The row of its collection.
    pub collection: i64,
    /// The kind.
    kind: Kind,
    /// The batch that last changed it.
    pub seq: Seq,
    /// It has what was looked up. Otherwise it has more text than is indexed, and may have it.
    pub exact: bool,
}

/// Where a row has the kept values, and an item's bytes, behind the columns of
/// [`ITEM_META_COLUMNS`].
const STORED_FIELDS_COLUMN: usize = 9;
const BYTES_COLUMN: usize = 10;

impl Candidate<'_> {
    /// What is known of it besides.
    pub fn meta(&self) -> Result<ItemMeta> {
        item_meta_of_kind(self.sql_row, self.kind, self.collections)
            .map_err(sqlite_error_at(&self.reader.path))
    }

    /// The values that are kept of it.
    #[must_use]
    pub fn stored_fields(&self) -> Option<StoredFields<'_>> {
        stored_fields_from_row(self.sql_row)
    }

    /// Its bytes, as they came; best where [`Reader::for_each_candidate`] was asked for them.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let bytes = match self.with_bytes {
            true => bytes_from_row(&self.reader.conn, self.sql_row, self.row),
            false => blob::require_source_bytes(&self.reader.conn, self.row).map(Cow::Owned),
        };
        bytes.map_err(sqlite_error_at(&self.reader.path))
    }
}

/// Rows that follow each other are read in one go.
fn contiguous_runs(rows: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    rows.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((*run.first()?, *run.last()?)))
}

fn stored_fields_from_row<'a>(of: &'a Row<'_>) -> Option<StoredFields<'a>> {
    let kind = Kind::from_number(of.get(2).ok()?)?;
    let bytes = of.get_ref(STORED_FIELDS_COLUMN).ok()?.as_blob_or_null().ok()??;
    StoredFields::from_bytes(kind, bytes)
}

fn bytes_from_row<'a>(conn: &Connection, of: &'a Row<'_>, row: i64) -> RowResult<Cow<'a, [u8]>> {
    Ok(match of.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(blob::require_source_bytes(conn, row)?),
    })
}

/// Reads the metadata of an item; `None` if its kind is unknown.
pub(crate) fn item_meta_from_row(
    row: &Row<'_>,
    collections: &[CollectionMeta],
) -> rusqlite::Result<Option<ItemMeta>> {
    let kind = Kind::from_number(row.get(2)?);
    kind.map(|kind| item_meta_of_kind(row, kind, collections)).transpose()
}

fn item_meta_of_kind(
    row: &Row<'_>,
    kind: Kind,
    collections: &[CollectionMeta],
) -> rusqlite::Result<ItemMeta> {
    let of: i64 = row.get(3)?;
    let known = collections.binary_search_by_key(&of, |known| known.collection_key.id).ok();
    let name = known.and_then(|at| collections.get(at)).map(|known| &known.name);
    item_meta_in_collection(row, kind, name)
}

/// The same, with the names of collections, by row.
pub(crate) fn item_meta_with_names(
    row: &Row<'_>,
    names: &[(i64, Arc<str>)],
) -> rusqlite::Result<Option<ItemMeta>> {
    let of: i64 = row.get(3)?;
    let known = names.binary_search_by_key(&of, |(row, _)| *row).ok();
    let name = known.and_then(|at| names.get(at)).map(|(_, name)| name);
    let kind = Kind::from_number(row.get(2)?);
    kind.map(|kind| item_meta_in_collection(row, kind, name)).transpose()
}

fn item_meta_in_collection(
    row: &Row<'_>,
    kind: Kind,
    collection: Option<&Arc<str>>,
) -> rusqlite::Result<ItemMeta> {
    Ok(ItemMeta {
        row: row.get(0)?,
        handle: Handle::from_bytes(row.get_ref(1)?.as_blob()?),
        kind,
        collection: collection.map_or_else(|| Arc::from(""), Arc::clone),
        uid: row.get(4)?,
        derived_uid: row.get(5)?,
        seq: row.get(6)?,
        recurrence_id: row.get(7)?,
        calendar_context: row.get(8)?,
    })
}

impl Reader {
    /// The segments of a set, in the snapshot of what is remembered; `None` where it is not whole,
    /// or not of this program's making.
    fn segments<'k>(
        &self,
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
        let pages = IndexPages::new(&self.conn);
        let segments = usable.then(|| pages.segments(set.index_id())).transpose()?;
        Ok(known.get_or_init(|| segments).as_deref())
    }

    /// Where an order is; `None` where it is not kept for all of its collections.
    fn sort_segments<'k>(
        &self,
        known: &'k ReaderCache,
        order: &IndexedOrder,
    ) -> RowResult<Option<&'k [Segment]>> {
        let mut mine = known
            .collections
            .iter()
            .filter(|known| order.collections.contains(&known.collection_key.id));
        match mine.all(|known| known.index_config.has_sort_index(order.field)) {
            true => self.segments(known, DerivedIndex::Sort),
            false => Ok(None),
        }
    }

    /// Is the interval index whole, and of this program's making?
    pub(crate) fn is_time_index_current(&self, known: &ReaderCache) -> bool {
        DerivedIndex::Schedule.is_current(&known.meta, &self.extractor)
    }

    /// The item of this UID in this collection, with its bytes: the shortest way to one item.
    pub fn get(&self, collection: &str, uid: &str) -> Result<Option<(ItemMeta, Vec<u8>)>> {
        let quick = || -> RowResult<Option<(ItemMeta, Vec<u8>)>> {
            // A collection keeps its key, so what is remembered, however old, leads to the item or
            // to none.
            let remembered = self.cache.borrow();
            let mut known = remembered.iter().flat_map(|known| &known.collections);
            let Some(known) = known.find(|known| *known.name == *collection) else {
                return Ok(None);
            };
            let mut select = self.conn.prepare_cached(concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes ",
                "FROM item i CROSS JOIN source_bytes s ON s.item = i.id CROSS JOIN collection c ON c.id = i.collection ",
                "WHERE i.handle = ?1 AND i.uid = ?2 AND c.name = ?3 AND c.removed = 0"
            ))?;
            let handle = Handle::from_uid(&known.collection_key.handle_key, uid, "", 0);
            let mut rows = select.query((handle.to_bytes(), uid, collection))?;
            let Some(row) = rows.next()? else { return Ok(None) };
            // It may be another collection now that has this name, in a store that was restored.
            let Some(meta) = item_meta_from_row(row, std::slice::from_ref(known))? else {
                return Ok(None);
            };
            let head = ItemMeta { collection: Arc::clone(&known.name), ..meta };
            let bytes = bytes_from_row(&self.conn, row, head.row)?.into_owned();
            Ok(Some((head, bytes)))
        };
        match quick().map_err(sqlite_error_at(&self.path))? {
            Some(found) => Ok(Some(found)),
            None => self.get_uncached(collection, uid).map_err(sqlite_error_at(&self.path)),
        }
    }

    fn get_uncached(&self, collection: &str, uid: &str) -> RowResult<Option<(ItemMeta, Vec<u8>)>> {
        let _snapshot = self.begin_read_raw()?;
        let remembered = self.cache()?;
        let known = remembered.collections.iter().find(|known| *known.name == *collection);
        let Some(known) = known else { return Ok(None) };
        let Some(row) = uid_lookup::find_row(&self.conn, &known.collection_key, uid, "")? else {
            return Ok(None);
        };
        let mut found = None;
        self.for_each_in_runs(
            &remembered,
            &mut std::iter::once((row, row)),
            &mut |head, bytes| {
                found = Some((head, bytes.to_vec()));
                false
            },
        )?;
        Ok(found)
    }

    /// Gives the items in these rows with their bytes to `each`, in the order of `rows` and without
    /// those that are gone, until it answers false. All within one read transaction: `each` must
    /// not wait for anybody.
    pub fn for_each_item(
        &self,
        rows: &[i64],
        each: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            self.for_each_in_runs(&remembered, &mut contiguous_runs(rows), each)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Gives the rows and the bytes of the items in these rows to `each`, as
    /// [`Reader::for_each_item`] does, without a look at anything else of them.
    pub fn for_each_source(
        &self,
        rows: &[i64],
        each: &mut dyn FnMut(i64, &[u8]) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let _snapshot = self.begin_read_raw()?;
            // Most runs are of one row: there is nothing behind it to step to.
            let mut one =
                self.conn.prepare_cached("SELECT bytes FROM source_bytes WHERE item = ?1")?;
            let sql =
                "SELECT bytes, item FROM source_bytes WHERE item BETWEEN ?1 AND ?2 ORDER BY item";
            let mut many = self.conn.prepare_cached(sql)?;
            let mut give = |item: i64, row: &Row<'_>| -> RowResult<bool> {
                Ok(match row.get_ref(0)?.as_blob_or_null()? {
                    Some(bytes) => each(item, bytes),
                    None => each(item, &blob::require_source_bytes(&self.conn, item)?),
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
        remembered: &ReaderCache,
        runs: &mut dyn Iterator<Item = (i64, i64)>,
        each: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> RowResult<()> {
        let mut select = self.conn.prepare_cached(concat!(
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
                let bytes = bytes_from_row(&self.conn, row, head.row)?;
                if !each(head, &bytes) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The rows of a collection's items, in their order: `limit` at most, behind row `after`. No
    /// item is read.
    pub fn item_rows(&self, collection: i64, after: i64, limit: usize) -> Result<Vec<i64>> {
        let run = || -> rusqlite::Result<Vec<i64>> {
            let sql = "SELECT id FROM item INDEXED BY item_collection
                       WHERE collection = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
            let mut select = self.conn.prepare_cached(sql)?;
            select.query_map((collection, after, limit as i64), |row| row.get(0))?.collect()
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// The rows of items and their kinds, of a collection or of all, in their order: `limit` at
    /// most, behind row `after`. Nothing else of an item is read.
    pub fn item_rows_with_kind(
        &self,
        collection: Option<i64>,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, i64, Kind)>> {
        let run = || -> rusqlite::Result<Vec<(i64, i64, Kind)>> {
            let each = |row: &Row<'_>| -> rusqlite::Result<Option<(i64, i64, Kind)>> {
                let (id, collection) = (row.get(0)?, row.get(1)?);
                Ok(Kind::from_number(row.get(2)?).map(|kind| (id, collection, kind)))
            };
            match collection {
                Some(collection) => self
                    .conn
                    .prepare_cached(
                        "SELECT id, collection, kind FROM item INDEXED BY item_collection
                         WHERE collection = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
                    )?
                    .query_map((collection, after, limit as i64), each)?
                    .filter_map(Result::transpose)
                    .collect(),
                None => self
                    .conn
                    .prepare_cached(
                        "SELECT id, collection, kind FROM item WHERE id > ?1 ORDER BY id LIMIT ?2",
                    )?
                    .query_map((after, limit as i64), each)?
                    .filter_map(Result::transpose)
                    .collect(),
            }
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Gives the items in these rows with the values that are kept of them to `each`, in the order
    /// of `rows` and without those that are gone, until it answers false; no value where none is
    /// kept, or what is kept is not of this program's making. All within one read transaction:
    /// `each` must not wait for anybody.
    pub fn for_each_with_stored_fields(
        &self,
        rows: &[i64],
        each: &mut dyn FnMut(ItemMeta, Option<StoredFields<'_>>) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let usable = self.segments(&remembered, DerivedIndex::Text)?.is_some();
            let mut select = self.conn.prepare_cached(concat!(
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

    /// What the index names of these collections, and perhaps of others; without any, of all.
    /// `None`: it is not whole, or not of this program's making; scan. What it names holds in the
    /// same [`Snapshot`](crate::ReadTransaction) only.
    pub fn look_up(
        &self,
        lookup: &IndexQuery,
        collections: &[i64],
    ) -> Result<Option<IndexMatches>> {
        let run = || -> RowResult<Option<IndexMatches>> {
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let segments = self.segments(&remembered, DerivedIndex::Text)?;
            let Some(segments) = segments else { return Ok(None) };
            if index_query::has_time_range(lookup) && !self.is_time_index_current(&remembered) {
                return Ok(None);
            }
            let known = remembered.collections.iter();
            let asked: Vec<&CollectionMeta> = known
                .filter(|known| {
                    collections.is_empty() || collections.contains(&known.collection_key.id)
                })
                .collect();
            let (named, read) =
                index_query::find_matches(&self.conn, &self.extractor, segments, &asked, lookup)?;
            Ok(Some(IndexMatches { matches: named, entries_read: read }))
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Gives what was found, from the item number `from` of it on, to `each`, in the order of their
    /// rows and without those that were changed since they were indexed, until that answers false;
    /// with their bytes if these are asked for. Within the snapshot in which they were found:
    /// `each` must not wait for anybody. Returns how many of what was found are done.
    pub fn for_each_candidate(
        &self,
        found: &IndexMatches,
        from: usize,
        with_bytes: bool,
        each: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> Result<usize> {
        self.map_file_for_items(found.len().saturating_sub(from));
        let mut run = || -> RowResult<usize> {
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let mut select = self.conn.prepare_cached(match with_bytes {
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
                let row = named.item;
                let reader = self;
                let candidate = Candidate {
                    reader,
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

    /// Places in the order by a field, of all items of these collections: `limit` at most, behind
    /// `after`, or before it if `backwards`. `None`: the order is not kept, or not of this
    /// program's making. All within one read transaction, without reading what lies between.
    pub fn sort_positions(
        &self,
        order: &IndexedOrder,
        after: Option<&SortPosition>,
        limit: usize,
    ) -> Result<Option<Vec<SortPosition>>> {
        let run = || -> RowResult<Option<Vec<SortPosition>>> {
            let (tx, _snapshot) = (&self.conn, self.begin_read_raw()?);
            let remembered = self.cache()?;
            let segments = self.sort_segments(&remembered, order)?;
            let Some(segments) = segments else { return Ok(None) };
            let mut seq = tx.prepare_cached("SELECT seq FROM item WHERE id = ?1")?;
            let mut places = Vec::new();
            order.sort_index().scan(
                &IndexPages::new(tx),
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

    /// How many items of an order lie before a place, whether or not an item is there, and how many
    /// there are, counted from the beginning also if it is `backwards`. Whatever lies before, it
    /// takes no longer; only of items with the place's own key the rows are read. `None` as with
    /// [`Reader::sort_positions`].
    pub fn rank(&self, order: &IndexedOrder, place: &SortPosition) -> Result<Option<(u64, u64)>> {
        let run = || -> RowResult<Option<(u64, u64)>> {
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let segments = self.sort_segments(&remembered, order)?;
            let Some(segments) = segments else { return Ok(None) };
            Ok(Some(order.sort_index().rank(&IndexPages::new(&self.conn), segments, place)?))
        };
        run().map_err(sqlite_error_at(&self.path))
    }
}
