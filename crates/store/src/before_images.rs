//! Changed items with their before-images and after-images.
//!
//! `change_feed` lists the changed items, which suffices for subscribers that keep a copy.
//! Subscribers without one need the before-image to decide whether a change matters. Separate from
//! `change_feed` because this module reads `item_history`, and so works only within its retention.
//! `change_reader` has the methods that call both.

use crate::checksum::{damaged_item_error, verify_item};
use crate::error::{DatabaseError, DatabaseResult};
use crate::handle::Handle;
use crate::item_meta::{ITEM_META_COLUMNS, ItemMeta, item_meta_with_names, kind_condition};
use crate::mail_state_changes::{has_state_changes, read_state_changes};
use crate::meta::{find_meta_number, read_meta_number};
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::is_item_row_sound;
use crate::row_ids::{CollectionRow, ItemHistoryRow, ItemRow};
use crate::stored_version::StoredVersion;
use crate::zone_loader::unpack_schedule;
use crate::{Kind, Seq, blob, history};
use larder_extract::{Schedule, ZoneResolver};
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
    /// The after-image; `None`: the item no longer exists.
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
pub struct StoreState {
    /// The last batch.
    pub seq: Seq,
    /// The last batch that added, removed or renamed a collection.
    pub collection_seq: Seq,
    /// The epoch of the store, and the zone data of its schedules.
    pub epoch_and_zones: String,
    /// The number of times that all indexes were made anew on request: answers from the former ones
    /// may have been wrong.
    pub rebuilds: i64,
}

/// The completeness of the changes that were passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedResult {
    /// All changes were passed.
    Complete,
    /// All changes were passed, but the schedules of before-images are not known: for a while, the
    /// interval index was incomplete, or had other zone data.
    WithoutSchedules,
    /// There are more changed items than the limit; none was passed.
    TooMany,
    /// Before-images were pruned or purged; no change was passed.
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
    fn entry(&mut self, row: &Row<'_>) -> DatabaseResult<&mut BeforeImageRef> {
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
        // Each position belongs to an item: if its item is missing, it was just added.
        Ok(&mut self.items[position])
    }
}

/// The rows and names of collections, by row.
pub(crate) type CollectionNames<'a> = &'a [(CollectionRow, Arc<str>)];

/// The columns of a replaced version, in the order of [`ITEM_META_COLUMNS`].
const ITEM_HISTORY_COLUMNS: &str = "f.item, f.handle, f.kind, f.collection, f.uid, f.uid_origin, f.since, f.recurrence_id, f.calendar_context";
const BYTES_COLUMN: usize = 9;
const SCHEDULE_COLUMN: usize = 10;
const CHECKSUM_COLUMN: usize = 11;
const VERSION_ROW_COLUMN: usize = 12;
/// Of the current version.
const ORDINAL_COLUMN: usize = 12;
const ROW_CHECKSUM_COLUMN: usize = 13;

/// Reads the version stamps of the store. One statement reads them all, because they are read after
/// each batch.
pub(crate) fn read_stamp(tx: &ReadTransaction<'_>) -> rusqlite::Result<StoreState> {
    let sql = "SELECT (SELECT value FROM meta WHERE key = 'last_seq'),
                      (SELECT max(seq) FROM collection),
                      (SELECT value FROM meta WHERE key = 'epoch') || ';' ||
                      (SELECT value FROM meta WHERE key = 'fingerprint:schedule') || ';' ||
                      (SELECT value FROM meta WHERE key = 'zone_data_version'),
                      (SELECT value FROM meta WHERE key = 'index_rebuilds')";
    tx.query_row(sql, [], |row| {
        let (collection_seq, texts): (Option<Seq>, Option<String>) = (row.get(1)?, row.get(2)?);
        Ok(StoreState {
            seq: row.get(0)?,
            collection_seq: collection_seq.unwrap_or(0),
            epoch_and_zones: texts.unwrap_or_default(),
            rebuilds: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
        })
    })
}

/// Returns whether all versions that batches after `after` replaced are in the history.
fn has_versions(tx: &ReadTransaction<'_>, after: Seq) -> DatabaseResult<bool> {
    Ok(after + 1 >= read_meta_number(tx, "history_from")?)
}

/// Returns whether all schedules that batches after `after` replaced are in the history.
fn has_schedules(tx: &ReadTransaction<'_>, after: Seq) -> DatabaseResult<bool> {
    let schedules_from = find_meta_number(tx, history::SCHEDULE_HISTORY_FROM_KEY)?;
    Ok(after + 1 >= schedules_from.unwrap_or_default())
}

/// Reads the rows of the items that a batch after `after`, up to `last`, put or removed, or whose
/// schedule or state it changed. `None`: rows of removed items are not known.
pub(crate) fn read_changed_rows(
    tx: &ReadTransaction<'_>,
    after: Seq,
    last: Seq,
) -> DatabaseResult<Option<Vec<ItemRow>>> {
    if !has_versions(tx, after)? {
        return Ok(None);
    }
    let sql = "SELECT id FROM item WHERE seq > ?1 AND seq <= ?2
         UNION ALL SELECT item FROM item_history WHERE seq > ?1 AND seq <= ?2
         UNION ALL SELECT i.id FROM schedule_history h JOIN item i ON i.handle = h.handle
                   WHERE h.seq > ?1 AND h.seq <= ?2";
    let mut select = tx.prepare_cached(sql)?;
    let rows = select.query_map((after, last), |row| row.get::<_, Option<ItemRow>>(0))?;
    // The tombstone of a purged item has no row.
    let rows: Option<Vec<ItemRow>> = rows.collect::<rusqlite::Result<_>>()?;
    let Some(mut rows) = rows else { return Ok(None) };
    if has_state_changes(tx)? {
        rows.extend(read_state_changes(tx, after, last)?);
    }
    rows.sort_unstable();
    rows.dedup();
    Ok(Some(rows))
}

/// Reads before-images and after-images, in one transaction.
pub(crate) struct ImageReader<'a> {
    pub(crate) tx: &'a ReadTransaction<'a>,
    pub(crate) zones: &'a ZoneResolver,
    pub(crate) names: CollectionNames<'a>,
}

impl ImageReader<'_> {
    /// Passes each item that a batch after `after` changed to `visit`, in the order of the first
    /// changes, without those of collections that lists do not show. Passes none if there are more
    /// than `limit`.
    pub(crate) fn for_each_change(
        &self,
        after: Seq,
        limit: usize,
        visit: &mut dyn FnMut(ItemChange),
    ) -> DatabaseResult<FeedResult> {
        if !has_versions(self.tx, after)? {
            return Ok(FeedResult::Expired);
        }
        let changed = match self.find_changed_items(after, limit)? {
            Ok(changed) => changed,
            Err(result) => return Ok(result),
        };
        for image in changed {
            let after_image = self.read_after_image(&image)?;
            let before_image = self.read_before_image(&image, after_image.as_ref())?;
            visit(ItemChange { handle: image.handle, before: before_image, after: after_image });
        }
        Ok(match has_schedules(self.tx, after)? {
            true => FeedResult::Complete,
            false => FeedResult::WithoutSchedules,
        })
    }

    /// Returns the changed items, with the places of their before-images, or the reason why they
    /// are not known: there are more than `limit`, or one was purged.
    fn find_changed_items(
        &self,
        after: Seq,
        limit: usize,
    ) -> DatabaseResult<Result<Vec<BeforeImageRef>, FeedResult>> {
        let mut found = ChangedItems { positions: HashMap::new(), items: Vec::new() };
        // The first replaced version of an item is its before-image, if it existed at all.
        let sql = format!(
            "SELECT handle, seq, id, since, uid IS NULL FROM item_history i
             WHERE seq > ?1 AND NOT {} ORDER BY seq, ordinal",
            kind_condition(|kind| !kind.collection_type().is_listed())
        );
        let mut select = self.tx.prepare_cached(&sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            // A purged version has neither bytes nor a UID.
            if row.get(4)? {
                return Ok(Err(FeedResult::Expired));
            }
            let replaced = if row.get::<_, Seq>(3)? > after { None } else { Some(row.get(2)?) };
            let (seq, image) = (row.get(1)?, found.entry(row)?);
            image.previous_version.get_or_insert((seq, replaced));
            if found.items.len() > limit {
                return Ok(Err(FeedResult::TooMany));
            }
        }
        let sql = "SELECT handle, seq FROM schedule_history WHERE seq > ?1 ORDER BY seq";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            let (seq, image) = (row.get(1)?, found.entry(row)?);
            image.schedule_changed_at.get_or_insert(seq);
            if found.items.len() > limit {
                return Ok(Err(FeedResult::TooMany));
            }
        }
        let sql = format!(
            "SELECT handle, seq, id FROM item i WHERE seq > ?1 AND NOT {} ORDER BY seq, ordinal",
            kind_condition(|kind| !kind.collection_type().is_listed())
        );
        let mut select = self.tx.prepare_cached(&sql)?;
        let mut rows = select.query([after])?;
        while let Some(row) = rows.next()? {
            // An item without a replaced version is new.
            let (seq, item, image) = (row.get(1)?, row.get(2)?, found.entry(row)?);
            image.previous_version.get_or_insert((seq, None));
            image.row = Some(item);
            if found.items.len() > limit {
                return Ok(Err(FeedResult::TooMany));
            }
        }
        Ok(Ok(found.items))
    }

    fn read_before_image(
        &self,
        image: &BeforeImageRef,
        after_image: Option<&ItemVersion>,
    ) -> DatabaseResult<Option<ItemVersion>> {
        let (replaced_at, version) = match image.previous_version {
            Some((_, None)) => return Ok(None),
            Some((seq, Some(row))) => match self.read_previous_version(row)? {
                Some(version) => (seq, version),
                None => return Ok(None),
            },
            None => match after_image {
                Some(version) => (Seq::MAX, version.clone()),
                None => return Ok(None),
            },
        };
        match image.schedule_changed_at {
            Some(seq) if seq < replaced_at => Ok(Some(ItemVersion {
                schedule: self.read_previous_schedule(seq, image.handle)?,
                ..version
            })),
            _ => Ok(Some(version)),
        }
    }

    /// Reads the after-image of an item.
    fn read_after_image(&self, image: &BeforeImageRef) -> DatabaseResult<Option<ItemVersion>> {
        let row = match (image.row, image.previous_version) {
            (Some(row), _) => row,
            // A batch removed the item, and no batch added it again.
            (None, Some(_)) => return Ok(None),
            // Only the schedule changed.
            (None, None) => {
                let sql = "SELECT id FROM item WHERE handle = ?1";
                let handle = image.handle.to_bytes();
                let row = self.tx.query_row(sql, [handle], |row| row.get(0)).optional()?;
                let Some(row) = row else { return Ok(None) };
                row
            }
        };
        let sql = format!(
            "SELECT {ITEM_META_COLUMNS}, s.bytes, t.data, s.checksum, i.ordinal, i.row_checksum FROM item i JOIN source_bytes s ON s.item = i.id
             LEFT JOIN idx_schedule t ON t.item = CASE WHEN {} THEN i.id END
             WHERE i.id = ?1",
            // For kinds without a schedule, this reads three pages fewer.
            kind_condition(Kind::has_schedule)
        );
        let mut select = self.tx.prepare_cached(&sql)?;
        let mut rows = select.query([row])?;
        let found = rows.next()?.ok_or_else(|| DatabaseError::missing_source_bytes(row))?;
        if !is_item_row_sound(found, ORDINAL_COLUMN, ROW_CHECKSUM_COLUMN)? {
            return Err(damaged_item_error(self.tx, row));
        }
        let bytes = match found.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
            Some(bytes) => {
                verify_item(self.tx, row, bytes, found.get(CHECKSUM_COLUMN)?)?;
                bytes.into()
            }
            None => blob::require_source_bytes(self.tx, row)?.into(),
        };
        self.version_from_row(found, bytes)
    }

    fn read_previous_version(&self, row: ItemHistoryRow) -> DatabaseResult<Option<ItemVersion>> {
        let sql = format!(
            "SELECT {ITEM_HISTORY_COLUMNS}, coalesce(f.bytes, b.bytes), f.schedule, f.checksum, f.id
             FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash WHERE f.id = ?1"
        );
        let mut select = self.tx.prepare_cached(&sql)?;
        let mut rows = select.query([row])?;
        let found = rows.next()?.ok_or_else(|| DatabaseError::missing_version(row))?;
        let bytes = found.get_ref(BYTES_COLUMN)?.as_blob_or_null()?;
        let version = StoredVersion {
            row: found.get(VERSION_ROW_COLUMN)?,
            item: found.get(0)?,
            bytes,
            checksum: found.get(CHECKSUM_COLUMN)?,
        };
        version.verify(self.tx)?;
        self.version_from_row(found, bytes.unwrap_or_default().into())
    }

    /// Reads a version of an item with these bytes; `None` if its kind is unknown.
    fn version_from_row(
        &self,
        row: &Row<'_>,
        bytes: Arc<[u8]>,
    ) -> DatabaseResult<Option<ItemVersion>> {
        let Some(meta) = item_meta_with_names(row, self.names)? else { return Ok(None) };
        let packed = row.get_ref(SCHEDULE_COLUMN)?.as_blob_or_null()?;
        let schedule = match packed {
            Some(packed) => unpack_schedule(self.tx, self.zones, packed)?,
            None => None,
        };
        Ok(Some(ItemVersion { meta, bytes, schedule }))
    }

    fn read_previous_schedule(&self, seq: Seq, handle: Handle) -> DatabaseResult<Option<Schedule>> {
        let sql = "SELECT schedule FROM schedule_history WHERE seq = ?1 AND handle = ?2";
        let packed: Option<Vec<u8>> = self
            .tx
            .query_row(sql, (seq, handle.to_bytes()), |row| row.get(0))
            .optional()?
            .flatten();
        match packed {
            Some(packed) => unpack_schedule(self.tx, self.zones, &packed),
            None => Ok(None),
        }
    }
}
