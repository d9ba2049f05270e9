//! Changed items with their before-images and after-images.
//!
//! `change_feed` lists the changed items, which suffices for subscribers that keep a copy.
//! Subscribers without one need the before-image to decide whether a change matters. Apart from
//! `change_feed` because this reads `item_history`, and so works only within its retention.

use crate::error::{Result, RowError, RowResult, sqlite_error_at};
use crate::handle::Handle;
use crate::item_meta::{ITEM_META_COLUMNS, ItemMeta, item_meta_with_names, kind_condition};
use crate::reader::Reader;
use crate::row_ids::{CollectionRow, ItemHistoryRow, ItemRow};
use crate::zone_loader::unpack_schedule;
use crate::{Kind, Seq, blob, history};
use larder_extract::Schedule;
use rusqlite::{OptionalExtension as _, Row};
use std::collections::HashMap;
use std::sync::Arc;

/// A changed item.
#[derive(Debug, Clone)]
pub struct ItemChange {
    /// The handle of the item.
    pub handle: Handle,
    /// The before-image; `None`: the item did not exist.
    pub before: Option<ItemVersion>,
    /// The after-image; `None`: the item does not exist any more.
    pub after: Option<ItemVersion>,
}

/// An item before or after a change.
#[derive(Debug, Clone)]
pub struct ItemVersion {
    /// The metadata. The row of a removed item is its last one.
    pub meta: ItemMeta,
    /// The source bytes.
    pub bytes: Arc<[u8]>,
    /// The schedule; `None`: the item has none.
    pub schedule: Option<Schedule>,
}

/// Version stamps of a store; equal stamps mean that nothing changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStamp {
    /// The last batch.
    pub seq: Seq,
    /// The last batch that added, removed or renamed a collection.
    pub collection_seq: Seq,
    /// The epoch of the store, and the zone data of its schedules.
    pub epoch_and_zones: String,
}

/// The completeness of the changes that were passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedResult {
    /// All changes were passed.
    Complete,
    /// There are more changed items than the limit; none was passed.
    TooMany,
    /// Before-images were pruned; no change was passed.
    Expired,
}

/// The place of a before-image.
struct BeforeImageRef {
    handle: Handle,
    /// The first replaced version: the batch that replaced it, and its row of `item_history`; no
    /// row if the item did not exist.
    previous_version: Option<(Seq, Option<ItemHistoryRow>)>,
    /// The first batch that changed the schedule without changing the item.
    schedule_changed_at: Option<Seq>,
    /// The row of the item, if a batch changed it and did not remove it.
    row: Option<ItemRow>,
}

/// The items found so far, each once.
struct ChangedItems {
    positions: HashMap<Handle, usize>,
    items: Vec<BeforeImageRef>,
}

impl ChangedItems {
    /// Returns the entry of the item whose handle is in the first column, and adds it if there is
    /// none.
    fn entry(&mut self, row: &Row<'_>) -> RowResult<&mut BeforeImageRef> {
        let handle = Handle::from_bytes(row.get_ref(0)?.as_blob()?);
        let next = self.items.len();
        let position = *self.positions.entry(handle).or_insert(next);
        if position == next {
            self.items.push(BeforeImageRef {
                handle,
                previous_version: None,
                schedule_changed_at: None,
                row: None,
            });
        }
        // Each position is that of an item: a missing one was just added.
        Ok(&mut self.items[position])
    }
}

/// The rows and names of collections, by row.
type CollectionNames<'a> = &'a [(CollectionRow, Arc<str>)];

/// The columns of a replaced version, in the order of [`ITEM_META_COLUMNS`].
const ITEM_HISTORY_COLUMNS: &str = "f.item, f.handle, f.kind, f.collection, f.uid, f.uid_origin, f.since, f.recurrence_id, f.calendar_context";
const BYTES_COLUMN: usize = 9;
const SCHEDULE_COLUMN: usize = 10;

impl Reader {
    /// Returns the number of the last batch, in the current read transaction.
    pub fn last_seq(&self) -> Result<Seq> {
        crate::meta::read_meta_number(&self.conn, "last_seq").map_err(sqlite_error_at(&self.path))
    }

    /// Returns the version stamps of the store, in the current read transaction. One statement
    /// reads them all, as they are read after each batch.
    pub fn stamp(&self) -> Result<StoreStamp> {
        let sql = "SELECT (SELECT value FROM meta WHERE key = 'last_seq'),
                          (SELECT max(seq) FROM collection),
                          (SELECT value FROM meta WHERE key = 'epoch') || ';' ||
                          (SELECT value FROM meta WHERE key = 'fingerprint:schedule') || ';' ||
                          (SELECT value FROM meta WHERE key = 'zone_data_version')";
        let run = || {
            self.conn.prepare_cached(sql)?.query_row([], |row| {
                let (collections, rest): (Option<Seq>, Option<String>) = (row.get(1)?, row.get(2)?);
                let (collections, rest) = (collections.unwrap_or(0), rest.unwrap_or_default());
                Ok(StoreStamp {
                    seq: row.get(0)?,
                    collection_seq: collections,
                    epoch_and_zones: rest,
                })
            })
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Passes each item that a batch after `after` changed to `each`, with its before-image and
    /// after-image, in the order of the first changes. Passes none if there are more than `most`.
    /// All within one read transaction, which lasts as long as reading that many items. `names`:
    /// the names of the collections, from [`Reader::collection_names`].
    pub fn for_each_change(
        &self,
        after: Seq,
        most: usize,
        names: CollectionNames<'_>,
        each: &mut dyn FnMut(ItemChange),
    ) -> Result<FeedResult> {
        let _snapshot = self.begin_read()?;
        let mut run = || -> RowResult<FeedResult> {
            let sql = "SELECT max(value) FROM meta WHERE key IN ('history_from', ?1)";
            let known_from: Seq = self
                .conn
                .prepare_cached(sql)?
                .query_row([history::SCHEDULE_HISTORY_FROM_KEY], |row| row.get(0))?;
            if after + 1 < known_from {
                return Ok(FeedResult::Expired);
            }
            let Some(changed) = self.find_changed_items(after, most)? else {
                return Ok(FeedResult::TooMany);
            };
            if changed.is_empty() {
                return Ok(FeedResult::Complete);
            }
            for was in changed {
                let is = self.read_after_image(&was, names)?;
                let was_then = self.read_before_image(&was, is.as_ref(), names)?;
                each(ItemChange { handle: was.handle, before: was_then, after: is });
            }
            Ok(FeedResult::Complete)
        };
        run().map_err(sqlite_error_at(&self.path))
    }

    /// Returns the changed items, with the places of their before-images.
    fn find_changed_items(
        &self,
        after: Seq,
        most: usize,
    ) -> RowResult<Option<Vec<BeforeImageRef>>> {
        let mut found = ChangedItems { positions: HashMap::new(), items: Vec::new() };
        // The first replaced version of an item is its before-image, if it existed at all.
        let sql =
            "SELECT handle, seq, id, since FROM item_history WHERE seq > ?1 ORDER BY seq, ordinal";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            let former = if row.get::<_, Seq>(3)? > after { None } else { Some(row.get(2)?) };
            let (seq, was) = (row.get(1)?, found.entry(row)?);
            was.previous_version.get_or_insert((seq, former));
            if found.items.len() > most {
                return Ok(None);
            }
        }
        let sql = "SELECT handle, seq FROM schedule_history WHERE seq > ?1 ORDER BY seq";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            let (seq, was) = (row.get(1)?, found.entry(row)?);
            was.schedule_changed_at.get_or_insert(seq);
            if found.items.len() > most {
                return Ok(None);
            }
        }
        let sql = "SELECT handle, seq, id FROM item WHERE seq > ?1 ORDER BY seq, ordinal";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            // An item without a replaced version is new.
            let (seq, is, was) = (row.get(1)?, row.get(2)?, found.entry(row)?);
            was.previous_version.get_or_insert((seq, None));
            was.row = Some(is);
            if found.items.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found.items))
    }

    fn read_before_image(
        &self,
        was: &BeforeImageRef,
        is: Option<&ItemVersion>,
        names: CollectionNames<'_>,
    ) -> RowResult<Option<ItemVersion>> {
        let (replaced, then) = match was.previous_version {
            Some((_, None)) => return Ok(None),
            Some((seq, Some(row))) => match self.read_previous_version(row, names)? {
                Some(version) => (seq, version),
                None => return Ok(None),
            },
            None => match is {
                Some(is) => (Seq::MAX, is.clone()),
                None => return Ok(None),
            },
        };
        match was.schedule_changed_at {
            Some(seq) if seq < replaced => Ok(Some(ItemVersion {
                schedule: self.read_previous_schedule(seq, was.handle)?,
                ..then
            })),
            _ => Ok(Some(then)),
        }
    }

    /// Reads the after-image of an item.
    fn read_after_image(
        &self,
        was: &BeforeImageRef,
        names: CollectionNames<'_>,
    ) -> RowResult<Option<ItemVersion>> {
        let row = match (was.row, was.previous_version) {
            (Some(row), _) => row,
            // A batch removed the item, and none added it again.
            (None, Some(_)) => return Ok(None),
            // Only the schedule changed.
            (None, None) => {
                let sql = "SELECT id FROM item WHERE handle = ?1";
                let mut select = self.conn.prepare_cached(sql)?;
                let row = select.query_row([was.handle.to_bytes()], |row| row.get(0)).optional()?;
                let Some(row) = row else { return Ok(None) };
                row
            }
        };
        let sql = format!(
            "SELECT {ITEM_META_COLUMNS}, s.bytes, t.data FROM item i JOIN source_bytes s ON s.item = i.id
             LEFT JOIN idx_schedule t ON t.item = CASE WHEN {} THEN i.id END
             WHERE i.id = ?1",
            // For kinds without a schedule, three pages fewer are read.
            kind_condition(Kind::has_schedule)
        );
        let mut select = self.conn.prepare_cached(&sql)?;
        let then =
            select.query_row([row], |row| self.item_version_from_row(row, names)).optional()?;
        let then = then.ok_or_else(|| RowError::missing_source_bytes(row))?;
        let Some(mut then) = then else { return Ok(None) };
        if then.bytes.is_empty() {
            then.bytes = blob::require_source_bytes(&self.conn, then.meta.row)?.into();
        }
        Ok(Some(then))
    }

    fn read_previous_version(
        &self,
        row: ItemHistoryRow,
        names: CollectionNames<'_>,
    ) -> rusqlite::Result<Option<ItemVersion>> {
        let sql = format!(
            "SELECT {ITEM_HISTORY_COLUMNS}, coalesce(f.bytes, b.bytes), f.schedule
             FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash WHERE f.id = ?1"
        );
        self.conn
            .prepare_cached(&sql)?
            .query_row([row], |row| self.item_version_from_row(row, names))
    }

    /// Reads a version of an item; `None` if its kind is unknown.
    fn item_version_from_row(
        &self,
        row: &Row<'_>,
        names: CollectionNames<'_>,
    ) -> rusqlite::Result<Option<ItemVersion>> {
        let Some(meta) = item_meta_with_names(row, names)? else { return Ok(None) };
        let time = row.get_ref(SCHEDULE_COLUMN)?.as_blob_or_null()?;
        let times =
            time.and_then(|data| unpack_schedule(&self.conn, self.extractor.zone_resolver(), data));
        let bytes = row.get_ref(BYTES_COLUMN)?.as_blob_or_null()?.unwrap_or_default().into();
        Ok(Some(ItemVersion { meta, bytes, schedule: times }))
    }

    fn read_previous_schedule(&self, seq: Seq, handle: Handle) -> RowResult<Option<Schedule>> {
        let sql = "SELECT schedule FROM schedule_history WHERE seq = ?1 AND handle = ?2";
        let time: Option<Vec<u8>> = self
            .conn
            .prepare_cached(sql)?
            .query_row((seq, handle.to_bytes()), |row| row.get(0))
            .optional()?
            .flatten();
        Ok(time.and_then(|data| unpack_schedule(&self.conn, self.extractor.zone_resolver(), &data)))
    }
}
