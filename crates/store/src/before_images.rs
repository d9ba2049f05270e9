//! What batches made of items: what each was, and what it is.
//!
//! `changes` says which items changed, for who keeps a copy of them. Who keeps none has to know of
//! each what it was, to tell whether that mattered; this is apart as it reads former versions, and
//! for no longer than these are kept.

use crate::error::{Result, RowError, RowResult, sqlite_error_at};
use crate::handle::Handle;
use crate::items::{ITEM_META_COLUMNS, ItemMeta, item_meta_with_names};
use crate::reader::Reader;
use crate::zone_loader::unpack_schedule;
use crate::{Kind, Seq, blob, history};
use larder_extract::Schedule;
use rusqlite::{OptionalExtension as _, Row};
use std::collections::HashMap;
use std::sync::Arc;

/// An item that is not what it was.
#[derive(Debug, Clone)]
pub struct ItemChange {
    /// Its short name.
    pub handle: Handle,
    /// What it was; `None`: it was not there.
    pub before: Option<ItemVersion>,
    /// What it is; `None`: it is not there.
    pub after: Option<ItemVersion>,
}

/// An item as it was, or is.
#[derive(Debug, Clone)]
pub struct ItemVersion {
    /// What is known of it. Of an item that is not there any more, the row is the one that it was
    /// in.
    pub meta: ItemMeta,
    /// The row of its collection.
    pub collection: i64,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// When it happens.
    pub schedule: Option<Schedule>,
}

/// Where a store stands. What is equal in two of them has not changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStamp {
    /// The last batch.
    pub seq: Seq,
    /// The last batch that changed a collection: one is new, gone, or called otherwise.
    pub collection_seq: Seq,
    /// Which store it is, and by which zones it knows what items are in time.
    pub epoch_and_zones: String,
}

/// How far what changed can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedResult {
    /// All was given.
    Complete,
    /// More items than were asked for; none was given.
    TooMany,
    /// What items were is not kept any more; none was given.
    Expired,
}

/// Where what an item was is found.
struct BeforeImageRef {
    handle: Handle,
    /// Its first former version: the batch that replaced it, and its row of `former`; none for what
    /// was not there.
    previous_version: Option<(Seq, Option<i64>)>,
    /// The batch that first changed what it is in time, and not the item.
    schedule_changed_at: Option<Seq>,
    /// The row in which it is, where a batch changed it and did not take it away.
    row: Option<i64>,
}

/// What was found so far, each item once.
struct ChangedItems {
    positions: HashMap<Handle, usize>,
    items: Vec<BeforeImageRef>,
}

impl ChangedItems {
    /// Returns the entry of the item whose handle is in the first column, made where there is none.
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
        // Each position is that of an item: one that is not in the list was just added.
        Ok(&mut self.items[position])
    }
}

/// The rows and names of collections, by row.
type CollectionNames<'a> = &'a [(i64, Arc<str>)];

/// Where the columns of a former version are, behind those of [`ITEM_META_COLUMNS`].
const ITEM_HISTORY_COLUMNS: &str = "f.item, f.handle, f.kind, f.collection, f.uid, f.uid_origin, f.since, f.recurrence_id, f.calendar_context";
const BYTES_COLUMN: usize = 9;
const SCHEDULE_COLUMN: usize = 10;

impl Reader {
    /// The last batch, as of the snapshot in which this is called.
    pub fn last_seq(&self) -> Result<Seq> {
        crate::meta::read_meta_number(&self.conn, "last_seq").map_err(sqlite_error_at(&self.path))
    }

    /// Where the store stands, as of the snapshot in which this is called: all at once, as it is
    /// asked after each batch.
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

    /// Gives each item that a batch behind `after` changed to `each`, with what it was then and
    /// what it is, in the order of their first changes; where these are more than `most`, none. In
    /// one snapshot, which may last as long as it takes to read so many. `names`: of the
    /// collections, as [`Reader::collection_names`] gives them.
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

    /// Which items changed, and where what they were is found.
    fn find_changed_items(
        &self,
        after: Seq,
        most: usize,
    ) -> RowResult<Option<Vec<BeforeImageRef>>> {
        let mut found = ChangedItems { positions: HashMap::new(), items: Vec::new() };
        // The first of an item's former versions is what it was, if it was there at all.
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
            // What has no former version is new.
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

    /// What an item is now.
    fn read_after_image(
        &self,
        was: &BeforeImageRef,
        names: CollectionNames<'_>,
    ) -> RowResult<Option<ItemVersion>> {
        let row = match (was.row, was.previous_version) {
            (Some(row), _) => row,
            // A batch replaced it, and none put it there since.
            (None, Some(_)) => return Ok(None),
            // Only when it happens has changed.
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
             LEFT JOIN idx_schedule t ON t.item = CASE WHEN i.kind IN ({}) THEN i.id END
             WHERE i.id = ?1",
            // Three pages less are read of an item without a schedule.
            Kind::numbers_where(Kind::has_schedule)
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
        row: i64,
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
        Ok(Some(ItemVersion { meta, collection: row.get(3)?, bytes, schedule: times }))
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
