//! The undo of one item, planned from three states of it: before the operation, after it, and now.
//!
//! This module writes nothing. Separate from `collection_undo` because an item has versions with
//! bytes and a collection has none.

use crate::batch::{BatchChange, ItemPut, Precondition};
use crate::checksum::{Checksum, damaged_item_error, verify_item};
use crate::damaged_object::DamagedObject;
use crate::error::{DatabaseError, DatabaseResult};
use crate::extractor_cache::read_item_context;
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::verify_item_row;
use crate::row_ids::{CollectionRow, ItemRow, OperationId};
use crate::stored_version::StoredVersion;
use crate::{CollectionType, Seq};
use larder_extract::{CalendarContext, Extractor, IndexConfig, ItemContext};
use rusqlite::{OptionalExtension as _, Row};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An item that changed after the operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoConflict {
    /// The item.
    pub handle: Handle,
    /// The bytes that the operation left; `None`: it removed the item, or they were purged since.
    pub after_image: Option<Vec<u8>>,
    /// The current bytes; `None`: the item does not exist.
    pub current: Option<Vec<u8>>,
}

/// An item that an undo left as it is, because data of it is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableVersion {
    /// The item.
    pub handle: Handle,
    /// The damaged data: the version to restore, the current version, or what they refer to.
    pub object: DamagedObject,
}

/// The undo of one item.
pub(super) enum UndoStep {
    Skip,
    /// The version to restore was erased, by a purge or by a salvage that found it damaged.
    Erased,
    Unreadable(UnreadableVersion),
    Change(Box<ItemUndo>),
    Conflict(UndoConflict),
}

/// A change that undoes the operation on one item.
pub(super) struct ItemUndo {
    pub(super) change: BatchChange,
    /// The number of bytes that it reads and writes.
    pub(super) bytes: usize,
    /// The collection that holds the item afterwards; `None`: the item is removed.
    collection: Option<CollectionRow>,
}

/// The states of the items that an operation touched, as seen before anything is undone.
#[derive(Default)]
pub(super) struct ConflictCheck {
    pub(super) conflicts: Vec<UndoConflict>,
    /// The collections that removed items return to.
    pub(super) collections: BTreeSet<CollectionRow>,
}

/// A version of an item: a replaced version, a removed version, or the current version.
#[derive(Debug, Clone)]
struct ItemState {
    collection: CollectionRow,
    uid: String,
    derived_uid: bool,
    context: ItemContext,
    bytes: Vec<u8>,
}

impl ItemState {
    /// Returns whether both are the same version of an item, or both do not exist. The same bytes
    /// in another calendar context are another version.
    fn is_same(a: Option<&ItemState>, b: Option<&ItemState>) -> bool {
        a.map(ItemState::content) == b.map(ItemState::content)
    }

    fn content(&self) -> (&[u8], Option<&CalendarContext>) {
        (&self.bytes, self.context.calendar_context.as_deref())
    }
}

/// A version that a batch replaced or removed.
struct PreviousVersion {
    /// The batch that made the version; `until` is the batch that ended it.
    since: Seq,
    until: Seq,
    /// `None`: the version was erased. An error: it is damaged.
    state: DatabaseResult<Option<ItemState>>,
}

/// The row of an item, and the batch that last changed it.
#[derive(Clone, Copy)]
struct CurrentItem {
    row: ItemRow,
    seq: Seq,
}

/// Plans the undo of the items of an operation. Other writers may write between its statements.
pub(super) struct ItemUndoPlanner<'a> {
    pub(super) tx: ReadTransaction<'a>,
    pub(super) extractor: &'a Extractor,
    pub(super) operation: OperationId,
}

impl ItemUndoPlanner<'_> {
    /// Returns the items that the operation added, changed or removed.
    pub(super) fn find_touched_items(&self) -> rusqlite::Result<Vec<Handle>> {
        let sql = "SELECT i.handle FROM batch b CROSS JOIN item i ON i.seq = b.seq WHERE b.operation = ?1
                   UNION
                   SELECT f.handle FROM batch b CROSS JOIN item_history f ON f.seq = b.seq WHERE b.operation = ?1
                   UNION
                   SELECT f.handle FROM item_history f JOIN batch b ON b.seq = f.since
                   WHERE b.operation = ?1";
        self.tx
            .prepare_cached(sql)?
            .query_map([self.operation], |row| Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?)))?
            .collect()
    }

    /// Finds the conflicts, and the collections that get items back.
    pub(super) fn check_for_conflicts(
        &self,
        handles: &[Handle],
        survey: &mut ConflictCheck,
    ) -> DatabaseResult<()> {
        for &handle in handles {
            // An item that this operation changed last has no conflict, and its collection exists.
            if let Some(item) = self.find_current_item(handle)?
                && self.has_batch(item.seq)?
            {
                continue;
            }
            match self.plan_step(handle)? {
                // Damage does not keep the other items from being restored.
                UndoStep::Skip | UndoStep::Erased | UndoStep::Unreadable(_) => {}
                UndoStep::Change(item) => survey.collections.extend(item.collection),
                UndoStep::Conflict(conflict) => survey.conflicts.push(conflict),
            }
        }
        Ok(())
    }

    /// Returns the conflict of an item that could not be restored, with its current bytes. Even if
    /// these are again the after-image, the undo has to be run once more.
    pub(super) fn find_refused_conflict(&self, handle: Handle) -> DatabaseResult<UndoConflict> {
        if let UndoStep::Conflict(conflict) = self.plan_step(handle)? {
            return Ok(conflict);
        }
        let current = match self.find_current_item(handle)? {
            Some(item) => self.read_item_state(item.row)?.map(|state| state.bytes),
            None => None,
        };
        Ok(UndoConflict { handle, after_image: current.clone(), current })
    }

    /// Plans the undo of an item.
    pub(super) fn plan_step(&self, handle: Handle) -> DatabaseResult<UndoStep> {
        match self.plan_readable(handle) {
            Err(DatabaseError::DamagedObject(object)) => {
                Ok(UndoStep::Unreadable(UnreadableVersion { handle, object }))
            }
            step => step,
        }
    }

    /// Plans the undo of an item; fails if a version that this needs is damaged.
    fn plan_readable(&self, handle: Handle) -> DatabaseResult<UndoStep> {
        let item = self.find_current_item(handle)?;
        let current = match item {
            Some(item) => self.read_item_state(item.row)?,
            None => None,
        };
        let (mut before, mut after) = (Ok(None), Ok(None));
        let (mut is_touched, mut has_erased, mut is_before_erased) = (false, false, false);
        for version in self.read_previous_versions(handle)? {
            let is_ended = self.has_batch(version.until)?;
            let is_made = self.has_batch(version.since)?;
            if !is_ended && !is_made {
                continue;
            }
            let is_erased = matches!(version.state, Ok(None));
            has_erased |= is_erased;
            // If the operation itself made the version, the item did not exist before it.
            let is_before = !is_touched && !is_made;
            is_touched = true;
            // A version that the operation replaced is followed by the version that the operation
            // made.
            if is_before {
                is_before_erased = is_erased;
                (before, after) = (version.state, Ok(None));
            } else {
                after = if is_ended { Ok(None) } else { version.state };
            }
        }
        let (before, mut after) = (before?, after?);
        if let Some(item) = item
            && self.has_batch(item.seq)?
        {
            after = current.clone();
        }
        // The operation left the item unchanged. This cannot be known of an erased version.
        let is_unchanged = ItemState::is_same(before.as_ref(), after.as_ref()) && !has_erased;
        if is_unchanged || ItemState::is_same(before.as_ref(), current.as_ref()) {
            return Ok(if is_before_erased { UndoStep::Erased } else { UndoStep::Skip });
        }
        if !ItemState::is_same(after.as_ref(), current.as_ref()) {
            return Ok(UndoStep::Conflict(UndoConflict {
                handle,
                after_image: after.map(|state| state.bytes),
                current: current.map(|state| state.bytes),
            }));
        }
        if is_before_erased {
            return Ok(UndoStep::Erased);
        }
        let byte_len = |state: &ItemState| state.bytes.len();
        let bytes = before.as_ref().map_or(0, byte_len) + current.as_ref().map_or(0, byte_len);
        let collection = before.as_ref().map(|state| state.collection);
        let precondition = match item {
            Some(item) if current.is_some() => Precondition::UnchangedSince(item.seq),
            _ => Precondition::Absent,
        };
        let change = match before {
            None => BatchChange::Remove(handle, precondition),
            Some(state) => self.build_put(state, precondition)?,
        };
        Ok(UndoStep::Change(Box::new(ItemUndo { change, bytes, collection })))
    }

    fn build_put(
        &self,
        state: ItemState,
        precondition: Precondition,
    ) -> DatabaseResult<BatchChange> {
        let sql = "SELECT name, index_config, type FROM collection WHERE id = ?1";
        let (name, config, number): (String, String, i64) = self
            .tx
            .prepare_cached(sql)?
            .query_row([state.collection], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let collection_type = CollectionType::from_number(number)
            .ok_or_else(|| DatabaseError::unknown_collection_type(state.collection, number))?;
        let config = IndexConfig::from_stored(&config, collection_type);
        let extractor = self.extractor.with_index_config(config);
        Ok(BatchChange::Put(ItemPut {
            collection: Arc::from(name),
            uid: state.uid,
            derived_uid: state.derived_uid,
            parsed: extractor.parse_stored(state.bytes, state.context),
            precondition,
        }))
    }

    fn find_current_item(&self, handle: Handle) -> rusqlite::Result<Option<CurrentItem>> {
        let sql = "SELECT id, seq FROM item WHERE handle = ?1";
        let read_row = |row: &Row<'_>| Ok(CurrentItem { row: row.get(0)?, seq: row.get(1)? });
        self.tx.prepare_cached(sql)?.query_row([handle.to_bytes()], read_row).optional()
    }

    /// Returns whether a batch belongs to the operation.
    fn has_batch(&self, seq: Seq) -> rusqlite::Result<bool> {
        let sql = "SELECT operation FROM batch WHERE seq = ?1";
        let operation: Option<OperationId> =
            self.tx.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional()?;
        Ok(operation == Some(self.operation))
    }

    fn read_item_state(&self, item: ItemRow) -> DatabaseResult<Option<ItemState>> {
        // A single statement, because another writer may remove the item in the meantime, which is
        // no damage.
        let sql = "SELECT i.collection, i.uid, i.uid_origin, coalesce(s.bytes, b.bytes), i.kind, i.recurrence_id, i.calendar_context, s.checksum
                   FROM item i LEFT JOIN source_bytes s ON s.item = i.id LEFT JOIN blob b ON b.hash = s.blob_hash
                   WHERE i.id = ?1";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([item])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let context = read_item_context(&self.tx, row.get(4)?, row.get(5)?, row.get(6)?)?;
        let Some(context) = context else { return Ok(None) };
        let (bytes, checksum): (Option<Vec<u8>>, Option<Checksum>) = (row.get(3)?, row.get(7)?);
        let (Some(bytes), Some(checksum)) = (bytes, checksum) else {
            return Err(damaged_item_error(&self.tx, item));
        };
        verify_item_row(&self.tx, item)?;
        verify_item(&self.tx, item, &bytes, checksum)?;
        Ok(Some(ItemState {
            collection: row.get(0)?,
            uid: row.get(1)?,
            derived_uid: row.get(2)?,
            bytes,
            context,
        }))
    }

    fn read_previous_versions(&self, handle: Handle) -> DatabaseResult<Vec<PreviousVersion>> {
        let sql = "SELECT f.seq, f.since, f.collection, f.uid, f.uid_origin,
                          coalesce(f.bytes, b.bytes), f.kind, coalesce(f.recurrence_id, ''), f.calendar_context,
                          f.id, f.item, f.checksum
                   FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash
                   WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal";
        let read_row = |row: &Row<'_>| -> DatabaseResult<PreviousVersion> {
            let uid: Option<String> = row.get(3)?;
            let bytes: Option<Vec<u8>> = row.get(5)?;
            let stored = StoredVersion {
                row: row.get(9)?,
                item: row.get(10)?,
                bytes: bytes.as_deref(),
                checksum: row.get(11)?,
            };
            // Which batches made and ended a version is known only if its row is sound.
            stored.verify_row(&self.tx)?;
            let state = match stored.verify(&self.tx) {
                Ok(()) => {
                    let (collection, derived_uid) = (row.get(2)?, row.get(4)?);
                    let context =
                        read_item_context(&self.tx, row.get(6)?, row.get(7)?, row.get(8)?);
                    context.map(|context| {
                        let values = uid.zip(bytes).zip(context);
                        values.map(|((uid, bytes), context)| ItemState {
                            collection,
                            uid,
                            derived_uid,
                            context,
                            bytes,
                        })
                    })
                }
                Err(error) => Err(error),
            };
            Ok(PreviousVersion { until: row.get(0)?, since: row.get(1)?, state })
        };
        let mut select = self.tx.prepare_cached(sql)?;
        let (mut rows, mut versions) = (select.query([handle.to_bytes()])?, Vec::new());
        while let Some(row) = rows.next()? {
            versions.push(read_row(row)?);
        }
        Ok(versions)
    }
}
