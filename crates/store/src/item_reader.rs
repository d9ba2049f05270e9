//! Reading items: by UID, by handle, by row; their bytes, stored fields and schedules.
//!
//! These reads run at each keystroke of a user, so each uses as few SQLite steps as possible, and
//! `reader_cache` has the data that stay the same until the next write. Separate from
//! `index_reader`, which finds the rows.

use crate::checksum::verify_item;
use crate::collection_reader::Collection;
use crate::error::{DatabaseError, DatabaseResult, Result};
use crate::extractor_cache::ExtractorCache;
use crate::handle::{HANDLE_LETTERS, Handle, HandlePrefix};
use crate::item_meta::{
    ITEM_META_COLUMNS, ItemColumns, ItemMeta, item_meta_from_row, kind_condition,
};
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::reader_cache::ReaderCache;
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::zone_loader::unpack_schedule;
use crate::{CollectionType, Kind, blob, calendar_context_table, series, uid_lookup};
use larder_extract::{CalendarContext, Schedule, StoredFields};
use larder_format::component::{CalendarVersion, Component};
use larder_format::parsed_source::ParsedSource;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, Row, Rows};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

/// Reads items. Each call is one short read transaction, or part of the open one.
#[derive(Debug, Clone, Copy)]
pub struct ItemReader<'a> {
    reader: &'a Reader,
}

impl Reader {
    /// Returns the items of the store.
    #[must_use]
    pub fn items(&self) -> ItemReader<'_> {
        ItemReader { reader: self }
    }
}

/// Runs of rows without gaps are read by a statement each if they are at least this long on
/// average; else one statement looks up all rows.
const MIN_RUN_ROWS: usize = 4;
/// The greatest distance of two rows that one statement reads although those between are not
/// wanted.
const MAX_SKIPPED_ROWS: i64 = 4;
/// The minimum number of letters of an ID that is shown.
const MIN_SHOWN_LETTERS: usize = 8;

/// Divides ascending rows into runs without gaps, each of which is read by one statement.
fn contiguous_runs(rows: &[ItemRow]) -> impl Iterator<Item = (ItemRow, ItemRow)> {
    rows.chunk_by(|a, b| a.next() == *b).filter_map(|run| Some((*run.first()?, *run.last()?)))
}

impl<'a> ItemReader<'a> {
    /// Returns the reader of the store.
    pub(crate) fn reader(self) -> &'a Reader {
        self.reader
    }
}

impl ItemReader<'_> {
    /// Returns the item with this UID in a collection, with its bytes, in as few SQLite steps as
    /// possible.
    pub fn get(self, collection: &str, uid: &str) -> Result<Option<(ItemMeta, Vec<u8>)>> {
        let found = self.reader.read_statement(|tx| self.get_by_first_handle(tx, collection, uid));
        match found? {
            Some(found) => Ok(Some(found)),
            None => self.reader.read(|tx| self.get_in_transaction(tx, collection, uid)),
        }
    }

    /// Reads an item by the first handle of its UID, which almost all items have, in one statement.
    fn get_by_first_handle(
        self,
        tx: &ReadTransaction<'_>,
        collection: &str,
        uid: &str,
    ) -> DatabaseResult<Option<(ItemMeta, Vec<u8>)>> {
        // A collection never changes its key, so even an outdated cache leads to the item or to
        // none.
        let cache = self.reader.outdated_cache();
        let mut known = cache.iter().flat_map(|cache| &cache.collections);
        let Some(known) = known.find(|known| *known.name == *collection) else {
            return Ok(None);
        };
        let mut select = tx.prepare_cached(concat!(
            "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields, s.bytes, s.checksum, i.ordinal, i.row_checksum ",
            "FROM item i CROSS JOIN source_bytes s ON s.item = i.id CROSS JOIN collection c ON c.id = i.collection ",
            "WHERE i.handle = ?1 AND i.uid = ?2 AND c.name = ?3 AND c.removed = 0"
        ))?;
        let handle = Handle::from_uid(&known.collection_key.handle_key, uid, "", 0);
        let mut rows = select.query((handle.to_bytes(), uid, collection))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        // In a store that was restored, another collection may have the name.
        let columns = ItemColumns::read(row)?;
        let Some(meta) = columns.known_meta(tx, slice::from_ref(known))? else { return Ok(None) };
        let meta = ItemMeta { collection: Arc::clone(&known.name), ..meta };
        let bytes = columns.verified_bytes(tx, meta.row)?.into_owned();
        Ok(Some((meta, bytes)))
    }

    fn get_in_transaction(
        self,
        tx: &ReadTransaction<'_>,
        collection: &str,
        uid: &str,
    ) -> DatabaseResult<Option<(ItemMeta, Vec<u8>)>> {
        let cache = self.reader.cache(tx)?;
        let known = cache.collections.iter().find(|known| *known.name == *collection);
        let Some(known) = known else { return Ok(None) };
        let Some(row) = uid_lookup::find_row(tx, &known.collection_key, uid, "")? else {
            return Ok(None);
        };
        let mut found = None;
        for_each_in_rows(tx, &cache, &[row], &mut |meta, bytes| {
            found = Some((meta, bytes.to_vec()));
            false
        })?;
        Ok(found)
    }

    /// Returns the items whose handles begin with this prefix, at most `limit`, also those of
    /// collections that lists do not show.
    pub fn find_by_handle(self, prefix: HandlePrefix, limit: usize) -> Result<Vec<ItemMeta>> {
        self.query_handles("TRUE", prefix, limit)
    }

    /// Returns the items whose handles begin with this prefix, at most `limit`, of collections that
    /// lists show.
    pub fn find_listed_by_handle(
        self,
        prefix: HandlePrefix,
        limit: usize,
    ) -> Result<Vec<ItemMeta>> {
        // An item whose kind is damaged is found, so that it can be removed.
        let is_unlisted = kind_condition(|kind| !kind.collection_type().is_listed());
        self.query_handles(&format!("NOT {is_unlisted}"), prefix, limit)
    }

    fn query_handles(
        self,
        condition: &str,
        prefix: HandlePrefix,
        limit: usize,
    ) -> Result<Vec<ItemMeta>> {
        let sql = format!(
            "SELECT {ITEM_META_COLUMNS} FROM item i
             WHERE i.handle BETWEEN ?1 AND ?2 AND {condition} ORDER BY i.handle LIMIT ?3"
        );
        let (first, last) = (prefix.first.to_bytes(), prefix.last.to_bytes());
        self.reader.read(|tx| self.query_meta(tx, &sql, (first, last, limit as i64)))
    }

    /// Returns the items with this UID, in one collection or in all that lists show.
    pub fn find_by_uid(self, collection: Option<&str>, uid: &str) -> Result<Vec<ItemMeta>> {
        self.reader.read(|tx| {
            let sql = "SELECT id, handle_key, type FROM collection
                       WHERE removed = 0 AND (?1 IS NULL OR name = ?1) ORDER BY name";
            let keys = tx
                .prepare_cached(sql)?
                .query_map([collection], |row| {
                    let key =
                        uid_lookup::CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
                    let collection_type = CollectionType::from_number(row.get(2)?);
                    Ok((key, collection_type.is_some_and(CollectionType::is_listed)))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut found = Vec::new();
            for (key, _) in keys.into_iter().filter(|(_, is_listed)| *is_listed) {
                if let Some(row) = uid_lookup::find_row(tx, &key, uid, "")? {
                    found.extend(self.read_meta(tx, row)?);
                }
            }
            Ok(found)
        })
    }

    /// Returns the items with the UID of an item in its collection: the master, if there is one,
    /// then the overrides.
    pub fn find_series_of_item(self, item: &ItemMeta) -> Result<Vec<ItemMeta>> {
        self.find_series(&item.collection, &item.uid)
    }

    /// Returns the items with a UID in a collection: the master, if there is one, then the
    /// overrides.
    pub fn find_series(self, collection: &str, uid: &str) -> Result<Vec<ItemMeta>> {
        self.reader.read(|tx| {
            let key = uid_lookup::find_collection(tx, collection)?;
            let Some(key) = key else { return Ok(Vec::new()) };
            let master = uid_lookup::find_row(tx, &key, uid, "")?;
            let overrides = series::find_overrides(tx, key.id, uid)?;
            let mut found = Vec::new();
            for row in master.into_iter().chain(overrides.into_iter().map(|(row, _)| row)) {
                found.extend(self.read_meta(tx, row)?);
            }
            Ok(found)
        })
    }

    /// Returns the item in this row, if it still exists.
    pub fn find_by_row(self, row: ItemRow) -> Result<Option<ItemMeta>> {
        self.reader.read(|tx| self.read_meta(tx, row))
    }

    /// Returns the items of a collection after the item in row `after`, in the order of their
    /// creation, at most `limit`. Items of unknown kinds are skipped; fewer than `limit` items:
    /// there are no more.
    pub fn list_after(
        self,
        collection: &Collection,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<ItemMeta>> {
        // The rows of a collection are in the order of their ids in this index; without it SQLite
        // would read all items of the store. Unknown kinds are skipped before the limit: a page of
        // them alone would look like the end.
        let sql = format!(
            "SELECT {ITEM_META_COLUMNS} FROM item i INDEXED BY item_collection
             WHERE i.collection = ?1 AND i.id > coalesce(?2, 0) AND {} ORDER BY i.id LIMIT ?3",
            kind_condition(|_| true)
        );
        self.reader.read(|tx| self.query_meta(tx, &sql, (collection.row, after, limit as i64)))
    }

    /// Returns the items of a collection in the rows behind `after` up to `last`, without an index:
    /// an index with a changed byte may lack items.
    pub(crate) fn list_in_table(
        self,
        collection: &Collection,
        after: i64,
        last: i64,
    ) -> Result<Vec<ItemMeta>> {
        let sql = format!(
            "SELECT {ITEM_META_COLUMNS} FROM item i NOT INDEXED
             WHERE i.collection = ?1 AND i.id > ?2 AND i.id <= ?3 AND {} ORDER BY i.id",
            kind_condition(|_| true)
        );
        self.reader.read(|tx| self.query_meta(tx, &sql, (collection.row, after, last)))
    }

    fn read_meta(self, tx: &ReadTransaction<'_>, row: ItemRow) -> DatabaseResult<Option<ItemMeta>> {
        let sql = format!("SELECT {ITEM_META_COLUMNS} FROM item i WHERE i.id = ?1");
        Ok(self.query_meta(tx, &sql, [row])?.pop())
    }

    fn query_meta(
        self,
        tx: &ReadTransaction<'_>,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> DatabaseResult<Vec<ItemMeta>> {
        let cache = self.reader.cache(tx)?;
        let mut select = tx.prepare_cached(sql)?;
        let rows = select.query_map(params, |row| item_meta_from_row(row, &cache.collections))?;
        Ok(rows.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the rows of a collection's items after row `after`, ascending, at most `limit`,
    /// without reading the items.
    pub fn list_rows(
        self,
        collection: CollectionRow,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<ItemRow>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT id FROM item INDEXED BY item_collection
                       WHERE collection = ?1 AND id > coalesce(?2, 0) ORDER BY id LIMIT ?3";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map((collection, after, limit as i64), |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the rows, collections and kinds of the items of one collection, or of all that lists
    /// show, after row `after`, ascending, at most `limit`. Reads nothing else of the items.
    pub fn list_rows_with_kind(
        self,
        collection: Option<CollectionRow>,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<Vec<(ItemRow, CollectionRow, Kind)>> {
        self.reader.read_statement(|tx| {
            let read_row = |row: &Row<'_>| {
                let (item, collection) = (row.get(0)?, row.get(1)?);
                Ok(Kind::from_number(row.get(2)?).map(|kind| (item, collection, kind)))
            };
            // Unknown kinds are skipped before the limit.
            let is_known = kind_condition(|_| true);
            let is_listed = kind_condition(|kind| kind.collection_type().is_listed());
            let rows: rusqlite::Result<_> = match collection {
                Some(collection) => tx
                    .prepare_cached(&format!(
                        "SELECT id, collection, kind FROM item i INDEXED BY item_collection
                         WHERE collection = ?1 AND id > coalesce(?2, 0) AND {is_known}
                         ORDER BY id LIMIT ?3"
                    ))?
                    .query_map((collection, after, limit as i64), read_row)?
                    .filter_map(rusqlite::Result::transpose)
                    .collect(),
                None => tx
                    .prepare_cached(&format!(
                        "SELECT id, collection, kind FROM item i
                         WHERE id > coalesce(?1, 0) AND {is_listed} ORDER BY id LIMIT ?2"
                    ))?
                    .query_map((after, limit as i64), read_row)?
                    .filter_map(rusqlite::Result::transpose)
                    .collect(),
            };
            Ok(rows?)
        })
    }

    /// Passes the items in these rows with their bytes to `visit`, in the order of `rows` and
    /// without items that do not exist any more, until it returns false. All within one read
    /// transaction: `visit` must not block.
    pub fn for_each(
        self,
        rows: &[ItemRow],
        visit: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
    ) -> Result<()> {
        self.reader.map_file_for_items(rows.len());
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            for_each_in_rows(tx, &cache, rows, visit)
        })
    }

    /// Passes the UIDs of the items of these collections to `visit`, in a walk over `limit` items
    /// of all collections from the one after row `after` on. Returns the row of the last of them;
    /// `None`: the store has no more. A walk takes less time than [`ItemReader::list_rows`] with
    /// [`ItemReader::for_each_uid`] if the collections have most of the items. All within one read
    /// transaction: `visit` must not block.
    pub fn walk_uids(
        self,
        collections: &[CollectionRow],
        after: Option<ItemRow>,
        limit: usize,
        visit: &mut dyn FnMut(&str),
    ) -> Result<Option<ItemRow>> {
        self.reader.map_file_for_items(limit);
        self.reader.read_statement(|tx| {
            let sql = "SELECT id, collection, uid FROM item
                       WHERE id > coalesce(?1, 0) ORDER BY id LIMIT ?2";
            let mut select = tx.prepare_cached(sql)?;
            let mut items = select.query((after, limit as i64))?;
            let (mut count, mut last) = (0, None);
            while let Some(item) = items.next()? {
                count += 1;
                if collections.contains(&item.get(1)?) {
                    visit(item.get_ref(2)?.as_str()?);
                }
                if count == limit {
                    last = Some(item.get(0)?);
                }
            }
            Ok(last)
        })
    }

    /// Passes the UIDs of the items in these rows to `visit`, with the index of each in `rows`,
    /// which are ascending; without items that do not exist any more, until it returns false. All
    /// within one read transaction: `visit` must not block.
    pub fn for_each_uid(
        self,
        rows: &[ItemRow],
        visit: &mut dyn FnMut(usize, &str) -> bool,
    ) -> Result<()> {
        self.reader.map_file_for_items(rows.len());
        self.reader.read(|tx| {
            let sql = "SELECT id, uid FROM item WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
            let mut select = tx.prepare_cached(sql)?;
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
                    if rows.get(index) == Some(&row) && !visit(index, item.get_ref(1)?.as_str()?) {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    /// Passes the rows and bytes of the items to `visit`, like [`ItemReader::for_each`], without
    /// reading their metadata.
    pub fn for_each_source_bytes(
        self,
        rows: &[ItemRow],
        visit: &mut dyn FnMut(ItemRow, &[u8]) -> bool,
    ) -> Result<()> {
        self.reader.map_file_for_items(rows.len());
        self.reader.read(|tx| {
            // Most runs have one row: the statement for it does not step again.
            let mut select_one =
                tx.prepare_cached("SELECT bytes, checksum FROM source_bytes WHERE item = ?1")?;
            let sql = "SELECT bytes, checksum, item FROM source_bytes
                       WHERE item BETWEEN ?1 AND ?2 ORDER BY item";
            let mut select_run = tx.prepare_cached(sql)?;
            let mut pass = |item: ItemRow, row: &Row<'_>| -> DatabaseResult<bool> {
                Ok(match row.get_ref(0)?.as_blob_or_null()? {
                    Some(bytes) => {
                        verify_item(tx, item, bytes, row.get(1)?)?;
                        visit(item, bytes)
                    }
                    None => visit(item, &blob::require_source_bytes(tx, item)?),
                })
            };
            for (first, last) in contiguous_runs(rows) {
                if first == last {
                    let mut sources = select_one.query([first])?;
                    if let Some(row) = sources.next()?
                        && !pass(first, row)?
                    {
                        return Ok(());
                    }
                    continue;
                }
                let mut sources = select_run.query((first, last))?;
                while let Some(row) = sources.next()? {
                    if !pass(row.get(2)?, row)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    /// Passes the items in these rows with their stored fields to `visit`, in the order of `rows`
    /// and without items that do not exist any more, until it returns false. Items without valid
    /// stored fields come without them. All within one read transaction: `visit` must not block.
    pub fn for_each_with_stored_fields(
        self,
        rows: &[ItemRow],
        visit: &mut dyn FnMut(ItemMeta, Option<StoredFields<'_>>) -> bool,
    ) -> Result<()> {
        self.reader.map_file_for_items(rows.len());
        self.reader.read(|tx| {
            let cache = self.reader.cache(tx)?;
            let has_fields = cache.text_segments(tx, self.reader.extractor())?.is_some();
            let mut select = tx.prepare_cached(concat!(
                "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, i.stored_fields ",
                "FROM item i WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
            ))?;
            for run in contiguous_runs(rows) {
                let mut rows = select.query(run)?;
                while let Some(row) = rows.next()? {
                    let columns = ItemColumns::read(row)?;
                    let fields = if has_fields { columns.stored_fields() } else { None };
                    let Some(meta) = columns.known_meta(tx, &cache.collections)? else { continue };
                    if !visit(meta, fields) {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    /// Passes the schedules of the items in these rows to `visit`, in the order of `rows` and
    /// without items that have none, until it returns false. All within one read transaction.
    pub fn for_each_schedule(
        self,
        rows: &[ItemRow],
        visit: &mut dyn FnMut(ItemRow, &Schedule) -> bool,
    ) -> Result<()> {
        let extractor = self.reader.extractor();
        self.reader.read(|tx| {
            let is_indexed = self.reader.cache(tx)?.is_interval_index_current(extractor);
            let mut extractors = ExtractorCache::new(extractor);
            let mut select = tx.prepare_cached("SELECT data FROM idx_schedule WHERE item = ?1")?;
            for &item in rows {
                let schedule = match is_indexed {
                    true => select
                        .query_row([item], |row| {
                            let packed = row.get_ref(0)?.as_blob()?;
                            Ok(unpack_schedule(tx, extractor.zone_resolver(), packed))
                        })
                        .optional()?
                        .transpose()?
                        .flatten(),
                    false => series::compute_schedule(tx, &mut extractors, item)?,
                };
                if schedule.is_some_and(|schedule| !visit(item, &schedule)) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Computes the schedule of the item in this row from its bytes and from the bytes of the other
    /// items of its UID, without the index.
    pub fn recompute_schedule(self, row: ItemRow) -> Result<Option<Schedule>> {
        self.reader.read(|tx| {
            let mut extractors = ExtractorCache::new(self.reader.extractor());
            Ok(series::compute_schedule(tx, &mut extractors, row)?)
        })
    }

    /// Returns the source bytes of the item in this row; `None`: there is no such item.
    pub fn source_bytes(self, row: ItemRow) -> Result<Option<Vec<u8>>> {
        self.reader.read_statement(|tx| match blob::read_source_bytes(tx, row)? {
            None if self.read_meta(tx, row)?.is_some() => {
                Err(DatabaseError::missing_source_bytes(row))
            }
            bytes => Ok(bytes),
        })
    }

    /// Returns the calendar context in this row; `None`: no item has it any more.
    pub fn calendar_context(self, row: CalendarContextRow) -> Result<Option<Arc<CalendarContext>>> {
        self.reader.read(|tx| {
            let context = calendar_context_table::read_context(tx, row)?;
            match context.is_none() && calendar_context_table::is_context_used(tx, row)? {
                true => Err(DatabaseError::missing_context(row)),
                false => Ok(context),
            }
        })
    }

    /// Returns the calendar contexts of a collection's items, each once; `None`: some have none.
    pub fn list_calendar_contexts(
        self,
        collection: &Collection,
    ) -> Result<Vec<Option<CalendarContextRow>>> {
        self.reader.read_statement(|tx| {
            let sql = "SELECT DISTINCT calendar_context FROM item WHERE collection = ?1
                       ORDER BY calendar_context";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map([collection.row], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Parses a calendar item in its version of the format.
    #[must_use]
    pub fn parse_component<'b>(self, item: &ItemMeta, bytes: &'b [u8]) -> Component<'b> {
        Component::parse_with_version(bytes, self.calendar_version(item))
    }

    /// Parses an item of any kind.
    #[must_use]
    pub fn parse_source<'b>(self, item: &ItemMeta, bytes: &'b [u8]) -> ParsedSource<'b> {
        ParsedSource::parse(item.kind, self.calendar_version(item), bytes)
    }

    /// Returns the version of the calendar around an item.
    fn calendar_version(self, item: &ItemMeta) -> CalendarVersion {
        let tx = self.reader.autocommit_read();
        let is_vcalendar_1 =
            |row| calendar_context_table::is_vcalendar_1(&tx, row).unwrap_or_default();
        if item.calendar_context.is_some_and(is_vcalendar_1) {
            CalendarVersion::V1_0
        } else {
            CalendarVersion::V2_0
        }
    }

    /// Returns the length of the shortest unique prefix of a handle that is shown, at least
    /// eight.
    pub fn unique_prefix_len(self, handle: Handle) -> Result<usize> {
        let sql = "SELECT 1 FROM item WHERE handle BETWEEN ?1 AND ?2 AND handle <> ?3 LIMIT 1";
        for letters in MIN_SHOWN_LETTERS..HANDLE_LETTERS {
            let prefix = HandlePrefix::from_handle(handle, letters);
            let [first, last, own] =
                [prefix.first, prefix.last, handle].map(|handle| handle.to_bytes());
            let is_unique = self.reader.read_statement(|tx| {
                let mut select = tx.prepare_cached(sql)?;
                let mut rows = select.query((first, last, own))?;
                Ok(rows.next()?.is_none())
            })?;
            if is_unique {
                return Ok(letters);
            }
        }
        Ok(HANDLE_LETTERS)
    }
}

fn for_each_in_rows(
    tx: &ReadTransaction<'_>,
    cache: &ReaderCache,
    rows: &[ItemRow],
    visit: &mut dyn FnMut(ItemMeta, &[u8]) -> bool,
) -> DatabaseResult<()> {
    let mut pass_all = |mut items: Rows<'_>| -> DatabaseResult<bool> {
        while let Some(item) = items.next()? {
            let columns = ItemColumns::read(item)?;
            let Some(meta) = columns.known_meta(tx, &cache.collections)? else { continue };
            let bytes = columns.verified_bytes(tx, meta.row)?;
            if !visit(meta, &bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    if contiguous_runs(rows).count() * MIN_RUN_ROWS > rows.len() {
        let mut select = tx.prepare_cached(concat!(
            "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, NULL, s.bytes, s.checksum, i.ordinal, i.row_checksum ",
            "FROM rarray(?1) wanted CROSS JOIN item i ON i.id = wanted.value CROSS JOIN source_bytes s ON s.item = i.id"
        ))?;
        let rows = rows.iter().map(|row| Value::Integer(row.to_number())).collect();
        return pass_all(select.query([Rc::<Vec<Value>>::new(rows)])?).map(drop);
    }
    let mut select = tx.prepare_cached(concat!(
        "SELECT i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context, NULL, s.bytes, s.checksum, i.ordinal, i.row_checksum ",
        "FROM item i CROSS JOIN source_bytes s ON s.item = i.id ",
        "WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
    ))?;
    for run in contiguous_runs(rows) {
        if !pass_all(select.query(run)?)? {
            break;
        }
    }
    Ok(())
}
