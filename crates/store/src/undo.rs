//! Undo: restores what an operation changed; items that changed since are conflicts.
//!
//! It writes nothing itself: each step becomes changes for `apply`. Apart from `history`, which
//! stores the versions, because it compares three states of an item: before the operation, after
//! it, and now.

use crate::batch::{BatchChange, ChangeOutcome, InternalChange, ItemPut, Operation, Precondition};
use crate::error::{Error, Result, RowError, RowResult, sqlite_error_at};
use crate::extractor_cache::read_item_context;
use crate::handle::Handle;
use crate::history::{self, OPERATION_COLUMNS, OperationRecord, PURGE_VERB, operation_from_row};
use crate::meta::read_meta_number;
use crate::row_ids::{CollectionRow, ItemRow, OperationId};
use crate::store::Store;
use crate::{CollectionType, Seq};
use larder_extract::{IndexConfig, ItemContext};
use rusqlite::OptionalExtension as _;
use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

/// The changes of one batch of an undo...
const UNDO_BATCH_CHANGES: usize = 500;
/// ... or the bytes of one, which are read into memory and written at once.
const UNDO_BATCH_BYTES: usize = 4 << 20;

/// The result of an undo.
#[derive(Debug, Clone, Default)]
pub struct UndoReport {
    /// The undoing operation; `None`: nothing was written.
    pub operation: Option<OperationId>,
    /// The number of items restored or removed again.
    pub items: u64,
    /// The items that changed since. If there are any, the operation is not undone: no item was
    /// restored, or, if they changed during the undo, only a part.
    pub conflicts: Vec<UndoConflict>,
}

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

/// A version of an item in the middle of its history.
#[derive(Debug, Clone)]
struct ItemState {
    collection: CollectionRow,
    uid: String,
    derived_uid: bool,
    context: ItemContext,
    bytes: Vec<u8>,
}

/// The undo of one item.
enum UndoStep {
    Skip,
    Change(Box<ItemUndo>),
    Conflict(UndoConflict),
}

/// A change that undoes the operation on one item.
struct ItemUndo {
    change: BatchChange,
    /// The number of bytes that it reads and writes.
    bytes: usize,
    /// The collection that holds the item afterwards; `None`: the item is removed.
    collection: Option<CollectionRow>,
}

/// The state of the items that an operation touched, as seen before anything is undone.
#[derive(Default)]
struct UndoSurvey {
    conflicts: Vec<UndoConflict>,
    /// The collections that removed items return to.
    collections: BTreeSet<CollectionRow>,
}

/// The changes of the next batch of an undo.
#[derive(Default)]
struct PendingUndoBatch {
    changes: Vec<BatchChange>,
    /// The items of the first changes.
    handles: Vec<Handle>,
    bytes: usize,
}

impl Store {
    /// Restores everything that the operation `id` changed, as a new operation that begins at `at`.
    /// Refuses, and changes nothing, if something changed since; a change that was reverted in the
    /// meantime is no conflict. If an item changes while this runs, it is left as it is: then only
    /// a part is restored, the conflicts are returned, and the operation stays open. The next undo
    /// completes one that was interrupted or incomplete.
    ///
    /// # Errors
    /// [`Error::HistoryPruned`] if replaced versions were pruned, [`Error::PurgeNotUndoable`],
    /// [`Error::AlreadyUndone`], [`Error::NoOperation`]; [`Error::CollectionChanged`] if a
    /// collection was renamed, indexed differently or removed since, [`Error::CollectionExists`] if
    /// another has the name of one that has to be restored.
    pub fn undo(&mut self, id: OperationId, at: i64) -> Result<UndoReport> {
        self.ensure_writable()?;
        // Before anything else is read: a write based on a later epoch is refused.
        let epoch =
            history::read_epoch(&self.conn).map_err(crate::error::sqlite_error_at(&self.path))?;
        let of = self.find_undoable_operation(id)?;
        let handles = self.find_touched_items(id).map_err(sqlite_error_at(&self.path))?;
        let survey = self.survey_items(id, &handles).map_err(sqlite_error_at(&self.path))?;
        if !survey.conflicts.is_empty() {
            return Ok(UndoReport { conflicts: survey.conflicts, ..UndoReport::default() });
        }
        let mut operation = Operation::new("undo", format!("operation {id}, {}", of.verb), at);
        operation.undoes = Some((epoch, id));
        let mut undo = UndoReport::default();
        let changes = self.plan_collections_before_items(id, &survey.collections)?;
        let mut pending = PendingUndoBatch { changes, ..PendingUndoBatch::default() };
        if !pending.changes.is_empty() {
            self.write_undo_batch(&mut operation, mem::take(&mut pending), &mut undo)?;
        }
        for handle in handles {
            let step = self.plan_undo_step(id, handle).map_err(sqlite_error_at(&self.path))?;
            // Other writers may write meanwhile, and each of their batches prunes.
            self.ensure_history_kept(id)?;
            match step {
                UndoStep::Skip => {}
                UndoStep::Change(item) => {
                    pending.changes.push(item.change);
                    pending.handles.push(handle);
                    pending.bytes += item.bytes;
                }
                UndoStep::Conflict(conflict) => undo.conflicts.push(conflict),
            }
            if pending.changes.len() >= UNDO_BATCH_CHANGES || pending.bytes >= UNDO_BATCH_BYTES {
                self.write_undo_batch(&mut operation, mem::take(&mut pending), &mut undo)?;
            }
        }
        pending
            .changes
            .extend(self.plan_collection_removals(id).map_err(sqlite_error_at(&self.path))?);
        if undo.conflicts.is_empty() {
            // `apply` leaves them out if an item of this last batch has a conflict.
            pending.changes.push(BatchChange::Internal(InternalChange::MarkUndone(id)));
            pending
                .changes
                .extend(of.undoes.map(|id| BatchChange::Internal(InternalChange::MarkRedone(id))));
        }
        self.write_undo_batch(&mut operation, pending, &mut undo)?;
        undo.operation = operation.id();
        Ok(undo)
    }

    /// Writes a batch of an undo, counts the restored items, and records the conflicts with changes
    /// made since the items were read.
    fn write_undo_batch(
        &mut self,
        operation: &mut Operation,
        pending: PendingUndoBatch,
        undo: &mut UndoReport,
    ) -> Result<()> {
        let applied = self.apply(operation, pending.changes)?;
        let done = |outcome: &&ChangeOutcome| {
            matches!(
                outcome,
                ChangeOutcome::Added(_) | ChangeOutcome::Updated(_) | ChangeOutcome::Removed(_)
            )
        };
        undo.items += applied.outcomes.iter().filter(done).count() as u64;
        let Some((_, id)) = operation.undoes else { return Ok(()) };
        for (outcome, handle) in applied.outcomes.iter().zip(pending.handles) {
            if matches!(outcome, ChangeOutcome::Conflict(..)) {
                undo.conflicts.push(
                    self.find_refused_conflict(id, handle).map_err(sqlite_error_at(&self.path))?,
                );
            }
        }
        Ok(())
    }

    /// Returns the conflict of an item that could not be restored, with its current bytes. Even if
    /// these are again the after-image, the undo has to be run once more.
    fn find_refused_conflict(&self, id: OperationId, handle: Handle) -> RowResult<UndoConflict> {
        if let UndoStep::Conflict(conflict) = self.plan_undo_step(id, handle)? {
            return Ok(conflict);
        }
        let now = match self.find_current_item(handle)?.0 {
            Some(item) => self.read_item_state(item)?.map(|state| state.bytes),
            None => None,
        };
        Ok(UndoConflict { handle, after_image: now.clone(), current: now })
    }

    fn find_undoable_operation(&self, id: OperationId) -> Result<OperationRecord> {
        let path = &self.path;
        let row = self
            .conn
            .query_row(
                &format!("SELECT {OPERATION_COLUMNS} FROM operation o WHERE id = ?1"),
                [id],
                operation_from_row,
            )
            .optional()
            .map_err(sqlite_error_at(path))?
            .ok_or(Error::NoOperation { id })?;
        if let Some(by) = row.undone_by {
            return Err(Error::AlreadyUndone { id, by });
        }
        if row.verb == PURGE_VERB {
            return Err(Error::PurgeNotUndoable { id });
        }
        self.ensure_history_kept(id)?;
        Ok(row)
    }

    /// Fails if versions that the operation replaced were pruned.
    fn ensure_history_kept(&self, id: OperationId) -> Result<()> {
        let path = &self.path;
        let first: Option<Seq> = self
            .conn
            .prepare_cached("SELECT min(seq) FROM batch WHERE operation = ?1")
            .and_then(|mut select| select.query_row([id], |row| row.get(0)))
            .map_err(sqlite_error_at(path))?;
        let oldest = read_meta_number(&self.conn, "history_from").map_err(sqlite_error_at(path))?;
        if first.is_some_and(|first| first < oldest) {
            return Err(Error::HistoryPruned { id });
        }
        Ok(())
    }

    /// Returns the items that an operation added, changed or removed.
    fn find_touched_items(&self, id: OperationId) -> rusqlite::Result<Vec<Handle>> {
        self.conn
            .prepare_cached(
                "SELECT i.handle FROM batch b CROSS JOIN item i ON i.seq = b.seq WHERE b.operation = ?1
                 UNION
                 SELECT f.handle FROM batch b CROSS JOIN item_history f ON f.seq = b.seq WHERE b.operation = ?1
                 UNION
                 SELECT f.handle FROM item_history f JOIN batch b ON b.seq = f.since
                 WHERE b.operation = ?1",
            )?
            .query_map([id], |row| Ok(Handle::from_bytes(&row.get::<_, Vec<u8>>(0)?)))?
            .collect()
    }

    /// Finds the conflicts, and the collections that get items back.
    fn survey_items(&self, id: OperationId, handles: &[Handle]) -> RowResult<UndoSurvey> {
        let mut survey = UndoSurvey::default();
        for &handle in handles {
            // An item that this operation changed last has no conflict, and its collection exists.
            let (item, seq) = self.find_current_item(handle)?;
            if item.is_some() && self.is_batch_of_operation(id, seq)? {
                continue;
            }
            match self.plan_undo_step(id, handle)? {
                UndoStep::Skip => {}
                UndoStep::Change(item) => survey.collections.extend(item.collection),
                UndoStep::Conflict(conflict) => survey.conflicts.push(conflict),
            }
        }
        Ok(survey)
    }

    fn find_current_item(&self, handle: Handle) -> rusqlite::Result<(Option<ItemRow>, Seq)> {
        let found = self
            .conn
            .prepare_cached("SELECT id, seq FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(found.map_or((None, 0), |(id, seq)| (Some(id), seq)))
    }

    /// Returns whether a batch belongs to an operation.
    fn is_batch_of_operation(&self, id: OperationId, seq: Seq) -> rusqlite::Result<bool> {
        let found: Option<OperationId> = self
            .conn
            .prepare_cached("SELECT operation FROM batch WHERE seq = ?1")?
            .query_row([seq], |row| row.get(0))
            .optional()?;
        Ok(found == Some(id))
    }

    /// Compares three states of an item: before the operation, after it, and now.
    fn plan_undo_step(&self, id: OperationId, handle: Handle) -> RowResult<UndoStep> {
        let (item, seq) = self.find_current_item(handle)?;
        let now = match item {
            Some(item) => self.read_item_state(item)?,
            None => None,
        };
        let mut before: Option<Option<ItemState>> = None;
        let mut left: Option<Option<ItemState>> = None;
        let mut erased = false;
        for former in self.read_previous_versions(handle)? {
            let ended = self.is_batch_of_operation(id, former.until)?;
            let began = self.is_batch_of_operation(id, former.since)?;
            erased |= (ended || began) && former.state.is_none();
            if ended && before.is_none() {
                // If the operation itself made the version, the item did not exist before it.
                before = Some(if began { None } else { former.state.clone() });
            }
            if ended {
                left = former.removed.then_some(None);
            } else if began {
                left = Some(former.state);
                before = before.or(Some(None));
            }
        }
        if item.is_some() && self.is_batch_of_operation(id, seq)? {
            left = Some(now.clone());
        }
        let before = before.flatten();
        let left = left.flatten();
        let bytes = |state: &Option<ItemState>| state.as_ref().map(|state| state.bytes.clone());
        // The same bytes in another calendar context are another state.
        let is = |state: &Option<ItemState>| {
            state
                .as_ref()
                .map(|state| (state.bytes.clone(), state.context.calendar_context.clone()))
        };
        // The operation left the item unchanged. This cannot be known of a purged item.
        let untouched = is(&before) == is(&left) && !erased;
        if untouched || is(&before) == is(&now) {
            return Ok(UndoStep::Skip);
        }
        if is(&left) != is(&now) {
            return Ok(UndoStep::Conflict(UndoConflict {
                handle,
                after_image: bytes(&left),
                current: bytes(&now),
            }));
        }
        let length =
            |state: &Option<ItemState>| state.as_ref().map_or(0, |state| state.bytes.len());
        let bytes = length(&before) + length(&now);
        let collection = before.as_ref().map(|state| state.collection);
        let expect =
            if now.is_some() { Precondition::UnchangedSince(seq) } else { Precondition::Absent };
        let change = match before {
            None => BatchChange::Remove(handle, expect),
            Some(state) => self.build_put(state, expect)?,
        };
        Ok(UndoStep::Change(Box::new(ItemUndo { change, bytes, collection })))
    }

    fn build_put(&self, state: ItemState, expect: Precondition) -> RowResult<BatchChange> {
        let (name, summary, family): (String, String, i64) = self
            .conn
            .prepare_cached("SELECT name, index_config, type FROM collection WHERE id = ?1")?
            .query_row([state.collection], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let family = CollectionType::from_number(family)
            .ok_or(rusqlite::Error::IntegralValueOutOfRange(2, family))?;
        let summary = IndexConfig::from_stored(&summary, family);
        let extractor = self.extractor.with_index_config(summary);
        Ok(BatchChange::Put(ItemPut {
            collection: Arc::from(name),
            uid: state.uid,
            derived_uid: state.derived_uid,
            parsed: extractor.parse_stored(state.bytes, state.context),
            precondition: expect,
        }))
    }

    fn read_item_state(&self, item: ItemRow) -> RowResult<Option<ItemState>> {
        // In one statement: another writer may remove the item meanwhile, which is no damage.
        let found: Option<(ItemState, bool)> = self
            .conn
            .prepare_cached(
                "SELECT i.collection, i.uid, i.uid_origin, coalesce(s.bytes, b.bytes), i.kind, i.recurrence_id, i.calendar_context
                 FROM item i LEFT JOIN source_bytes s ON s.item = i.id LEFT JOIN blob b ON b.hash = s.blob_hash
                 WHERE i.id = ?1",
            )?
            .query_row([item], |row| {
                let context = read_item_context(&self.conn, row.get(4)?, row.get(5)?, row.get(6)?)?;
                let Some(context) = context else { return Ok(None) };
                let bytes: Option<Vec<u8>> = row.get(3)?;
                let has_bytes = bytes.is_some();
                let state = ItemState {
                    collection: row.get(0)?,
                    uid: row.get(1)?,
                    derived_uid: row.get(2)?,
                    bytes: bytes.unwrap_or_default(),
                    context,
                };
                Ok(Some((state, has_bytes)))
            })
            .optional()?
            .flatten();
        match found {
            Some((_, false)) => Err(RowError::missing_source_bytes(item)),
            found => Ok(found.map(|(state, _)| state)),
        }
    }

    fn read_previous_versions(&self, handle: Handle) -> rusqlite::Result<Vec<PreviousVersion>> {
        self.conn
            .prepare_cached(
                "SELECT f.seq, f.since, f.removed, f.collection, f.uid, f.uid_origin,
                        coalesce(f.bytes, b.bytes), f.kind, coalesce(f.recurrence_id, ''), f.calendar_context
                 FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash
                 WHERE f.handle = ?1 ORDER BY f.seq, f.ordinal",
            )?
            .query_map([handle.to_bytes()], |row| {
                let uid: Option<String> = row.get(4)?;
                let bytes: Option<Vec<u8>> = row.get(6)?;
                let (collection, derived_uid) = (row.get(3)?, row.get(5)?);
                let context = read_item_context(&self.conn, row.get(7)?, row.get(8)?, row.get(9)?)?;
                let state = uid.zip(bytes).zip(context).map(|((uid, bytes), context)| ItemState {
                    collection,
                    uid,
                    derived_uid,
                    context,
                    bytes,
                });
                Ok(PreviousVersion {
                    until: row.get(0)?,
                    since: row.get(1)?,
                    removed: row.get(2)?,
                    state,
                })
            })?
            .collect()
    }

    /// Returns the changes of collections before the items are restored: the collections that the
    /// items were in, and those that the operation renamed, indexed differently or removed, the
    /// newest change first. Fails if one of these properties changed since.
    fn plan_collections_before_items(
        &self,
        id: OperationId,
        item_collections: &BTreeSet<CollectionRow>,
    ) -> Result<Vec<BatchChange>> {
        let mut changes =
            self.plan_collection_restores(item_collections).map_err(sqlite_error_at(&self.path))?;
        for changed in self.find_collection_changes(id).map_err(sqlite_error_at(&self.path))? {
            let left = self
                .find_collection_state_after(id, &changed)
                .map_err(sqlite_error_at(&self.path))?;
            let CollectionChange { collection, before: was, current: is } = changed;
            let Some(was) = was else {
                // An empty collection may have the name that another one gets back; one with items
                // waits until they are removed.
                if !is.removed {
                    changes.push(BatchChange::RemoveCollection(is.name));
                }
                continue;
            };
            let moved =
                (was.name != left.name || left.removed) && (was.name != is.name || is.removed);
            let indexed =
                was.index_config != left.index_config && was.index_config != is.index_config;
            if (moved && (&left.name, left.removed) != (&is.name, is.removed))
                || (indexed && (left.index_config != is.index_config || left.removed != is.removed))
            {
                return Err(Error::CollectionChanged { id, name: left.name });
            }
            let name = if moved { was.name } else { is.name.clone() };
            if moved && is.removed {
                changes.push(BatchChange::Internal(InternalChange::RestoreCollection(collection)));
            }
            if name != is.name {
                changes.push(BatchChange::RenameCollection(is.name, name.clone()));
            }
            if was.properties != left.properties && left.properties == is.properties {
                changes.push(BatchChange::SetCollectionProperties(name.clone(), was.properties));
            }
            if indexed {
                let summary = IndexConfig::from_stored(&was.index_config, was.collection_type);
                changes.push(BatchChange::SetIndexConfig(name, summary.as_ref().clone()));
            }
        }
        Ok(changes)
    }

    /// Returns the changes that restore the removed ones of these collections.
    fn plan_collection_restores(
        &self,
        collections: &BTreeSet<CollectionRow>,
    ) -> rusqlite::Result<Vec<BatchChange>> {
        let mut changes = Vec::new();
        for &collection in collections {
            let removed: bool = self
                .conn
                .prepare_cached("SELECT removed FROM collection WHERE id = ?1")?
                .query_row([collection], |row| row.get(0))?;
            if removed {
                let restore = InternalChange::RestoreCollection(collection);
                changes.push(BatchChange::Internal(restore));
            }
        }
        Ok(changes)
    }

    /// Returns the state of a collection after the operation: the one that the next operation
    /// replaced, else the current one.
    fn find_collection_state_after(
        &self,
        id: OperationId,
        changed: &CollectionChange,
    ) -> rusqlite::Result<CollectionState> {
        let next = self
            .conn
            .prepare_cached(
                "SELECT f.name, f.removed, f.index_config, f.properties FROM collection_history f
                 WHERE f.collection = ?2 AND f.seq >
                   (SELECT max(mine.seq) FROM collection_history mine JOIN batch b ON b.seq = mine.seq
                    WHERE mine.collection = ?2 AND b.operation = ?1)
                 ORDER BY f.seq, f.ordinal LIMIT 1",
            )?
            .query_row((id, changed.collection), |row| {
                let (summary, head) = (row.get(2)?, row.get(3)?);
                let family = changed.current.collection_type;
                Ok(CollectionState { name: row.get(0)?, removed: row.get(1)?, index_config: summary, collection_type: family, properties: head })
            })
            .optional()?;
        Ok(next.unwrap_or_else(|| changed.current.clone()))
    }

    /// Returns the collections that did not exist before the operation, to be removed after their
    /// items.
    fn plan_collection_removals(&self, id: OperationId) -> rusqlite::Result<Vec<BatchChange>> {
        let changed = self.find_collection_changes(id)?.into_iter();
        let made = changed.filter(|changed| changed.before.is_none() && !changed.current.removed);
        Ok(made.map(|made| BatchChange::RemoveCollection(made.current.name)).collect())
    }

    fn find_collection_changes(&self, id: OperationId) -> rusqlite::Result<Vec<CollectionChange>> {
        let mut select = self.conn.prepare_cached(
            "SELECT f.collection, iif(f.removed, NULL, f.name), f.index_config, c.name, c.removed, c.index_config, f.properties, c.properties,
                    c.type
             FROM batch b JOIN collection_history f ON f.seq = b.seq
             JOIN collection c ON c.id = f.collection
             WHERE b.operation = ?1 ORDER BY f.seq, f.ordinal",
        )?;
        let rows = select.query_map([id], |row| {
            let (name, summary): (Option<String>, String) = (row.get(1)?, row.get(2)?);
            let head = row.get(6)?;
            let Some(family) = CollectionType::from_number(row.get(8)?) else { return Ok(None) };
            let was = name.map(|name| CollectionState {
                name,
                removed: false,
                index_config: summary,
                collection_type: family,
                properties: head,
            });
            let (summary, head) = (row.get(5)?, row.get(7)?);
            let is = CollectionState {
                name: row.get(3)?,
                removed: row.get(4)?,
                index_config: summary,
                collection_type: family,
                properties: head,
            };
            Ok(Some(CollectionChange { collection: row.get(0)?, before: was, current: is }))
        })?;
        // The oldest row of a collection has its state before the operation.
        let mut changed: Vec<CollectionChange> = Vec::new();
        for row in rows {
            let Some(row) = row? else { continue };
            if changed.iter().all(|known| known.collection != row.collection) {
                changed.push(row);
            }
        }
        changed.reverse();
        Ok(changed)
    }
}

/// A collection that an operation created, renamed, indexed differently, removed or restored.
struct CollectionChange {
    collection: CollectionRow,
    /// The state before the operation; `None`: the collection did not exist.
    before: Option<CollectionState>,
    current: CollectionState,
}

/// The properties of a collection that can change.
#[derive(Debug, Clone)]
struct CollectionState {
    name: String,
    removed: bool,
    index_config: String,
    collection_type: CollectionType,
    properties: Option<Vec<u8>>,
}

struct PreviousVersion {
    until: Seq,
    since: Seq,
    removed: bool,
    state: Option<ItemState>,
}
