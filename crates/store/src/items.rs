//! Reading items: by UID, by row, by an index lookup.
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
use crate::read_transaction::ReaderCache;
use crate::reader::Reader;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::{Kind, Seq, blob, uid_lookup};
use larder_extract::StoredFields;
use larder_index::{IndexMatch, Matches, ReadPages as _, Segment};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Row, Rows};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

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

    /// Returns the match of an item.
    pub(crate) fn find(&self, item: ItemRow) -> Option<&IndexMatch> {
        self.matches.find(item.to_number())
    }
}

/// An item that the index named, while its row is read.
pub struct Candidate<'a> {
    reader: &'a Reader,
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

/// Runs of rows without gaps are read by a statement each if they are at least this long on
/// average; else one statement looks up all rows.
const MIN_RUN_ROWS: usize = 4;
/// The greatest distance of two rows that one statement reads although those between are not wanted.
const MAX_SKIPPED_ROWS: i64 = 4;
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
            true => bytes_from_row(&self.reader.conn, self.sql_row, self.row),
            false => blob::require_source_bytes(&self.reader.conn, self.row).map(Cow::Owned),
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
    conn: &Connection,
    of: &'a Row<'_>,
    row: ItemRow,
) -> RowResult<Cow<'a, [u8]>> {
    Ok(match of.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(blob::require_source_bytes(conn, row)?),
    })
}

impl Reader {
    /// Returns the segments of the text index, in the read transaction of the cache; `None` if the
    /// index is incomplete or has another fingerprint.
    fn segments<'k>(&self, known: &'k ReaderCache) -> RowResult<Option<&'k [Segment]>> {
        if let Some(segments) = known.text_segments.get() {
            return Ok(segments.as_deref());
        }
        let is_current = DerivedIndex::Text.is_current(&known.meta, &self.extractor);
        let pages = IndexPages::new(&self.conn);
        let segments =
            is_current.then(|| pages.segments(DerivedIndex::Text.index_id())).transpose()?;
        Ok(known.text_segments.get_or_init(|| segments).as_deref())
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
            let mut select = self.conn.prepare_cached(concat!(
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
        self.for_each_in_rows(&remembered, &[row], &mut |head, bytes| {
            found = Some((head, bytes.to_vec()));
            false
        })?;
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
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            self.for_each_in_rows(&remembered, rows, each)
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
            let _snapshot = self.begin_read_raw()?;
            // Most runs have one row: the statement for it does not step again.
            let mut one =
                self.conn.prepare_cached("SELECT bytes FROM source_bytes WHERE item = ?1")?;
            let sql =
                "SELECT bytes, item FROM source_bytes WHERE item BETWEEN ?1 AND ?2 ORDER BY item";
            let mut many = self.conn.prepare_cached(sql)?;
            let mut give = |item: ItemRow, row: &Row<'_>| -> RowResult<bool> {
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

    /// Passes the UIDs of the items in these rows to `each`, with the index of each in `rows`, which
    /// are ascending; without items that do not exist any more, until it returns false. All within
    /// one read transaction: `each` must not block.
    pub fn for_each_uid(
        &self,
        rows: &[ItemRow],
        each: &mut dyn FnMut(usize, &str) -> bool,
    ) -> Result<()> {
        self.map_file_for_items(rows.len());
        let mut run = || -> RowResult<()> {
            let _transaction = self.begin_read_raw()?;
            let sql = "SELECT id, uid FROM item WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
            let mut select = self.conn.prepare_cached(sql)?;
            let mut index = 0;
            // To pass over a few rows takes less than another statement.
            let is_near =
                |a: &ItemRow, b: &ItemRow| b.to_number() - a.to_number() <= MAX_SKIPPED_ROWS;
            for run in rows.chunk_by(is_near) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                let mut items = select.query((first, last))?;
                while let Some(item) = items.next()? {
                    let row: ItemRow = item.get(0)?;
                    while rows.get(index).is_some_and(|wanted| *wanted < row) {
                        index += 1;
                    }
                    if rows.get(index) == Some(&row) && !each(index, item.get_ref(1)?.as_str()?) {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    fn for_each_in_rows(
        &self,
        known: &ReaderCache,
        rows: &[ItemRow],
        each: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> RowResult<()> {
        let mut give_all = |mut items: Rows<'_>| -> RowResult<bool> {
            while let Some(item) = items.next()? {
                let Some(meta) = item_meta_from_row(item, &known.collections)? else { continue };
                let bytes = bytes_from_row(&self.conn, item, meta.row)?;
                if !each(meta, &bytes) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if contiguous_runs(rows).count() * MIN_RUN_ROWS > rows.len() {
            let mut select = self.conn.prepare_cached(concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, NULL, s.bytes ",
                "FROM rarray(?1) wanted CROSS JOIN item i ON i.id = wanted.value CROSS JOIN source_bytes s ON s.item = i.id"
            ))?;
            let rows = rows.iter().map(|row| Value::Integer(row.to_number())).collect();
            return give_all(select.query([Rc::<Vec<Value>>::new(rows)])?).map(drop);
        }
        let mut select = self.conn.prepare_cached(concat!(
            "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, NULL, s.bytes ",
            "FROM item i CROSS JOIN source_bytes s ON s.item = i.id ",
            "WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
        ))?;
        for run in contiguous_runs(rows) {
            if !give_all(select.query(run)?)? {
                break;
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
            let mut select = self.conn.prepare_cached(sql)?;
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
                Some(collection) => self
                    .conn
                    .prepare_cached(
                        "SELECT id, collection, kind FROM item INDEXED BY item_collection
                         WHERE collection = ?1 AND id > coalesce(?2, 0) ORDER BY id LIMIT ?3",
                    )?
                    .query_map((collection, after, limit as i64), each)?
                    .filter_map(Result::transpose)
                    .collect(),
                None => self
                    .conn
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
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let usable = self.segments(&remembered)?.is_some();
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
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let segments = self.segments(&remembered)?;
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
            let (named, read) = index_query::find_matches(
                &self.conn,
                &self.extractor,
                segments,
                &selected,
                lookup,
            )?;
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
            let _snapshot = self.begin_read_raw()?;
            let remembered = self.cache()?;
            let mut select = self.prepare_candidates(with_bytes)?;
            for (at, found) in found.matches.iter().enumerate().skip(from) {
                if !self.read_candidate(&mut select, &remembered, found, with_bytes, each)? {
                    return Ok(at + 1);
                }
            }
            Ok(found.matches.len())
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Prepares the statement of [`Reader::read_candidate`].
    pub(crate) fn prepare_candidates(
        &self,
        with_bytes: bool,
    ) -> rusqlite::Result<CachedStatement<'_>> {
        self.conn.prepare_cached(match with_bytes {
            false => concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields ",
                "FROM item i WHERE i.id = ?1"
            ),
            true => concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes ",
                "FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1"
            ),
        })
    }

    /// Passes a match to `each` and returns its result; true without a call if the item changed
    /// after it was indexed.
    pub(crate) fn read_candidate(
        &self,
        select: &mut CachedStatement<'_>,
        known: &ReaderCache,
        found: &IndexMatch,
        with_bytes: bool,
        each: &mut dyn FnMut(&Candidate<'_>) -> bool,
    ) -> RowResult<bool> {
        let mut rows = select.query([found.item])?;
        let Some(sql_row) = rows.next()? else { return Ok(true) };
        let seq: Seq = sql_row.get(6)?;
        if seq > found.valid_until {
            return Ok(true);
        }
        let Some(kind) = Kind::from_number(sql_row.get(2)?) else { return Ok(true) };
        Ok(each(&Candidate {
            reader: self,
            collections: &known.collections,
            sql_row,
            with_bytes,
            row: ItemRow::from_number(found.item),
            collection: sql_row.get(3)?,
            kind,
            seq,
            exact: seq <= found.exact_until,
        }))
    }
}
