//! Undo: restores what an operation changed; items that have changed since then are conflicts.
//!
//! It writes nothing itself: each step becomes changes for `apply`. `item_undo` plans the undo of
//! items, and `collection_undo` plans the undo of collections. Undo is separate from `history`,
//! which stores the versions, because undo compares three states of an item: before the operation,
//! after it, and now.

mod collection_undo;
mod item_undo;

use crate::Seq;
use crate::batch::{AppliedBatch, BatchChange, ChangeOutcome, InternalChange, Operation};
use crate::error::{DatabaseResult, Error, Result, sqlite_error_at};
use crate::handle::Handle;
use crate::history::{self, OperationRecord, PURGE_COMMAND};
use crate::meta::read_meta_number;
use crate::operation_log;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::OperationId;
use crate::step_size::StepSize;
use crate::store::Store;
use collection_undo::{CollectionPlan, CollectionUndoPlanner};
use item_undo::{ConflictCheck, ItemUndoPlanner, UndoStep};
pub use item_undo::{UndoConflict, UnreadableVersion};
use std::mem;
use std::path::Path;

/// The number of changes in one batch of an undo.
const UNDO_BATCH_CHANGES: StepSize = StepSize::new(1000, 50..=2000);
/// The number of items whose conflicts are looked for in one read transaction.
const ITEMS_PER_READ: usize = 2000;
/// The largest number of bytes in one batch of an undo: a batch is read into memory and written at
/// once.
const UNDO_BATCH_BYTES: usize = 4 << 20;

/// The result of an undo.
#[derive(Debug, Clone, Default)]
pub struct UndoReport {
    /// The undoing operation; `None`: nothing was written.
    pub operation: Option<OperationId>,
    /// The number of items restored or removed again.
    pub items: u64,
    /// The items that changed since. If there are any, the operation is not undone: no item was
    /// restored, or only some items if the conflicts arose during the undo.
    pub conflicts: Vec<UndoConflict>,
    /// The items that were left as they are because data of them is damaged. The others were
    /// restored. If there are any, the operation is not undone.
    pub unreadable: Vec<UnreadableVersion>,
    /// The items whose versions to restore were erased: by a purge, or by a salvage that found them
    /// damaged. They were left as they are.
    pub erased: Vec<Handle>,
}

/// The changes of the next batch of an undo.
struct PendingUndoBatch {
    /// The number of changes that make a batch.
    max_changes: usize,
    changes: Vec<BatchChange>,
    /// The items of the first changes.
    handles: Vec<Handle>,
    bytes: usize,
}

/// The result of the undo of the batches that an operation had.
struct UndoRound {
    item_count: u64,
    /// Whether another process wrote more of the operation meanwhile.
    is_outrun: bool,
}

impl PendingUndoBatch {
    fn new(max_changes: usize) -> PendingUndoBatch {
        PendingUndoBatch { max_changes, changes: Vec::new(), handles: Vec::new(), bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= self.max_changes || self.bytes >= UNDO_BATCH_BYTES
    }
}

impl Store {
    /// Restores everything that the operation `id` changed, as a new operation that begins at
    /// `started_at_ms`, in milliseconds since 1970. Refuses, and changes nothing, if something
    /// changed since; a change that was reverted in the meantime is no conflict. Properties of a
    /// collection are an exception: if they changed since, they stay as they are. An item that
    /// changes during the undo, or whose version is damaged, is not restored: the report then lists
    /// it, and the operation does not count as undone. Another call completes an interrupted or
    /// incomplete undo. An operation that another process still writes is stopped.
    ///
    /// # Errors
    /// [`Error::HistoryPruned`] if replaced versions are not kept, [`Error::PurgeNotUndoable`],
    /// [`Error::AlreadyUndone`], [`Error::NoOperation`]; [`Error::CollectionChanged`] if a
    /// collection was renamed, indexed differently or removed since, [`Error::CollectionExists`] if
    /// another collection has the name of a collection to restore.
    pub fn undo(&mut self, id: OperationId, started_at_ms: i64) -> Result<UndoReport> {
        self.ensure_writable()?;
        // The epoch is read first, so that a write is refused if a restore happens afterwards.
        let epoch = history::read_epoch(&self.autocommit_read());
        let epoch = epoch.map_err(sqlite_error_at(&self.path))?;
        let undone = self.find_undoable_operation(id)?;
        let detail = format!("operation {id}, {}", undone.verb);
        let mut operation = Operation::new("undo", detail, started_at_ms);
        operation.undoes = Some((epoch, id));
        let (mut report, mut is_stopped) = (UndoReport::default(), false);
        let undone = self.undo_all_batches(&undone, &mut operation, &mut report, &mut is_stopped);
        let is_complete =
            undone.is_ok() && report.conflicts.is_empty() && report.unreadable.is_empty();
        let cleaned = match is_stopped && !is_complete {
            true => self.write_step(|tx| Ok(history::delete_stop_mark(tx, id)?)),
            false => Ok(()),
        };
        let item_count = undone?;
        cleaned?;
        report.operation = operation.id();
        self.merge_after_change(item_count);
        Ok(report)
    }

    /// Undoes the batches of an operation until it has no later ones. If another process writes
    /// these, the operation is stopped. Returns the number of its items.
    fn undo_all_batches(
        &mut self,
        undone: &OperationRecord,
        operation: &mut Operation,
        report: &mut UndoReport,
        is_stopped: &mut bool,
    ) -> Result<u64> {
        let mut item_count = 0;
        loop {
            let round = self.undo_known_batches(undone, operation, report)?;
            item_count += round.item_count;
            if !round.is_outrun {
                return Ok(item_count);
            }
            self.stop_operation(undone.id, operation)?;
            *is_stopped = true;
        }
    }

    /// Lets another process write no more of an operation that is being undone.
    fn stop_operation(&mut self, id: OperationId, undo: &Operation) -> Result<()> {
        let begun_in = undo.undoes.as_ref().map(|(epoch, _)| epoch.as_str());
        let is_written = self.write_step(|tx| {
            let is_same_store = begun_in == Some(history::read_epoch(tx)?.as_str());
            if is_same_store {
                history::write_stop_mark(tx, id)?;
            }
            Ok(is_same_store)
        })?;
        if is_written { Ok(()) } else { Err(Error::RestoredDuringUndo { id }) }
    }

    /// Undoes the batches that an operation has now, and marks it as undone unless it has later
    /// ones at the end.
    fn undo_known_batches(
        &mut self,
        undone: &OperationRecord,
        operation: &mut Operation,
        report: &mut UndoReport,
    ) -> Result<UndoRound> {
        let id = undone.id;
        let last_seq = read_meta_number(&self.autocommit_read(), "last_seq");
        let last_seq = last_seq.map_err(sqlite_error_at(&self.path))?;
        let handles = self.item_undo_planner(id).find_touched_items();
        let handles = handles.map_err(sqlite_error_at(&self.path))?;
        let mut round = UndoRound { item_count: handles.len() as u64, is_outrun: false };
        let survey = self.check_for_undo_conflicts(id, &handles)?;
        if !survey.conflicts.is_empty() {
            report.conflicts = survey.conflicts;
            return Ok(round);
        }
        let plan = self.collection_undo_planner(id).plan_before_items(&survey.collections);
        let changes = match plan.map_err(sqlite_error_at(&self.path))? {
            CollectionPlan::Changes(changes) => changes,
            CollectionPlan::Conflict(name) => return Err(Error::CollectionChanged { id, name }),
        };
        report.erased.clear();
        let mut size = UNDO_BATCH_CHANGES;
        let mut pending = PendingUndoBatch { changes, ..PendingUndoBatch::new(size.current()) };
        if !pending.changes.is_empty() {
            let batch = mem::replace(&mut pending, PendingUndoBatch::new(size.current()));
            self.write_undo_batch(operation, batch, report)?;
        }
        let mut handles = handles.into_iter();
        loop {
            self.plan_undo_batch(id, &mut handles, &mut pending, report)?;
            if !pending.is_full() {
                break;
            }
            let written = self.write_undo_batch(operation, pending, report)?;
            size.adapt(written.lock_held);
            pending = PendingUndoBatch::new(size.current());
        }
        if report.unreadable.is_empty() {
            let removals = self.collection_undo_planner(id).plan_removals();
            pending.changes.extend(removals.map_err(sqlite_error_at(&self.path))?);
        }
        let mut mark = None;
        if report.conflicts.is_empty() && report.unreadable.is_empty() {
            mark = Some(pending.changes.len());
            // `apply` skips these changes if an item of this last batch has a conflict.
            let change = InternalChange::MarkUndone { id, last_seq };
            pending.changes.push(BatchChange::Internal(change));
            let redone = undone.undoes.map(InternalChange::MarkRedone);
            pending.changes.extend(redone.map(BatchChange::Internal));
        }
        if !pending.changes.is_empty() {
            let written = self.write_undo_batch(operation, pending, report)?;
            let is_marked = mark.is_some_and(|at| {
                written.outcomes.get(at).is_some_and(|outcome| *outcome == ChangeOutcome::Done)
            });
            round.is_outrun = mark.is_some() && !is_marked && report.conflicts.is_empty();
        }
        Ok(round)
    }

    /// Finds the conflicts of an undo, in few read transactions: one for each item takes longer
    /// than to look at it. Items that change meanwhile are found when they are written.
    fn check_for_undo_conflicts(
        &self,
        operation: OperationId,
        handles: &[Handle],
    ) -> Result<ConflictCheck> {
        let mut survey = ConflictCheck::default();
        for handles in handles.chunks(ITEMS_PER_READ) {
            let tx = self.conn.begin_read().map_err(sqlite_error_at(&self.path))?;
            let planner = ItemUndoPlanner { tx, extractor: &self.extractor, operation };
            planner
                .check_for_conflicts(handles, &mut survey)
                .map_err(sqlite_error_at(&self.path))?;
        }
        Ok(survey)
    }

    /// Plans the undo of items until a batch is full, in one read transaction.
    fn plan_undo_batch(
        &self,
        operation: OperationId,
        handles: &mut std::vec::IntoIter<Handle>,
        pending: &mut PendingUndoBatch,
        report: &mut UndoReport,
    ) -> Result<()> {
        let tx = self.conn.begin_read().map_err(sqlite_error_at(&self.path))?;
        // Other writers may have written in the meantime, and each of their batches prunes.
        ensure_history_kept(&tx, operation, &self.path)?;
        let planner = ItemUndoPlanner { tx, extractor: &self.extractor, operation };
        while !pending.is_full()
            && let Some(handle) = handles.next()
        {
            match planner.plan_step(handle).map_err(sqlite_error_at(&self.path))? {
                UndoStep::Skip => {}
                UndoStep::Erased => report.erased.push(handle),
                UndoStep::Unreadable(version) => report.unreadable.push(version),
                UndoStep::Change(item) => {
                    pending.changes.push(item.change);
                    pending.handles.push(handle);
                    pending.bytes += item.bytes;
                }
                UndoStep::Conflict(conflict) => report.conflicts.push(conflict),
            }
        }
        Ok(())
    }

    fn item_undo_planner(&self, operation: OperationId) -> ItemUndoPlanner<'_> {
        let tx = self.autocommit_read();
        ItemUndoPlanner { tx, extractor: &self.extractor, operation }
    }

    fn collection_undo_planner(&self, operation: OperationId) -> CollectionUndoPlanner<'_> {
        CollectionUndoPlanner { tx: self.autocommit_read(), operation }
    }

    /// Writes a batch of an undo, counts the restored items, and records the conflicts with changes
    /// made since the items were read.
    fn write_undo_batch(
        &mut self,
        operation: &mut Operation,
        pending: PendingUndoBatch,
        report: &mut UndoReport,
    ) -> Result<AppliedBatch> {
        let applied = self.apply(operation, pending.changes)?;
        let is_item_change = |outcome: &&ChangeOutcome| {
            matches!(
                outcome,
                ChangeOutcome::Added(_) | ChangeOutcome::Updated(_) | ChangeOutcome::Removed(_)
            )
        };
        report.items += applied.outcomes.iter().filter(is_item_change).count() as u64;
        let Some((_, id)) = operation.undoes else { return Ok(applied) };
        for (outcome, handle) in applied.outcomes.iter().zip(pending.handles) {
            if matches!(outcome, ChangeOutcome::Conflict(..)) {
                let conflict = self.item_undo_planner(id).find_refused_conflict(handle);
                report.conflicts.push(conflict.map_err(sqlite_error_at(&self.path))?);
            }
        }
        Ok(applied)
    }

    fn find_operation(&self, id: OperationId) -> Result<OperationRecord> {
        operation_log::find_operation(&self.autocommit_read(), id)
            .map_err(sqlite_error_at(&self.path))?
            .ok_or(Error::NoOperation { id })
    }

    fn find_undoable_operation(&self, id: OperationId) -> Result<OperationRecord> {
        let operation = self.find_operation(id)?;
        if let Some(by) = operation.undone_by {
            return Err(Error::AlreadyUndone { id, by });
        }
        if operation.verb == PURGE_COMMAND {
            return Err(Error::PurgeNotUndoable { id });
        }
        ensure_history_kept(&self.autocommit_read(), id, &self.path)?;
        Ok(operation)
    }
}

/// Fails if versions that the operation replaced are not in the history: they were pruned, or a
/// salvage did not find them.
fn ensure_history_kept(tx: &ReadTransaction<'_>, id: OperationId, path: &Path) -> Result<()> {
    let is_pruned = || -> DatabaseResult<bool> {
        let sql = "SELECT min(seq) FROM batch WHERE operation = ?1";
        let first: Option<Seq> = tx.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
        let oldest = read_meta_number(tx, "history_from")?;
        Ok(first.is_some_and(|first| first < oldest))
    };
    match is_pruned().map_err(sqlite_error_at(path))? {
        true => Err(Error::HistoryPruned { id }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ItemPut, Precondition};
    use crate::store::StoreOptions;

    /// The undo of a removal has read the item when a purge erases it.
    #[test]
    fn a_purged_item_does_not_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let mut store = Store::open(dir.path(), &options).unwrap();
        let card = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:a\r\nFN:Anna\r\nEND:VCARD\r\n";
        let put = BatchChange::Put(ItemPut {
            collection: "contacts".into(),
            uid: "a".into(),
            derived_uid: false,
            parsed: store.extractor().parse_contact(card.into()).unwrap(),
            precondition: Precondition::Any,
        });
        let added = store.apply(&mut Operation::new("add", "", 0), vec![put]).unwrap();
        let [ChangeOutcome::Added(handle)] = added.outcomes[..] else { panic!("{added:?}") };
        let mut removal = Operation::new("remove", "", 0);
        store.apply(&mut removal, vec![BatchChange::Remove(handle, Precondition::Any)]).unwrap();
        let id = removal.id().unwrap();

        let (mut pending, mut report) = (PendingUndoBatch::new(9), UndoReport::default());
        let mut handles = vec![handle].into_iter();
        store.plan_undo_batch(id, &mut handles, &mut pending, &mut report).unwrap();
        assert_eq!(pending.handles, [handle]);
        store.purge(&mut Operation::new(PURGE_COMMAND, "", 0), &[handle]).unwrap();
        let mut operation = Operation::new("undo", "", 0);
        let epoch = history::read_epoch(&store.autocommit_read()).unwrap();
        operation.undoes = Some((epoch, id));
        store.write_undo_batch(&mut operation, pending, &mut report).unwrap();
        assert_eq!((report.items, report.conflicts.len()), (0, 1));
        assert_eq!(store.undo(id, 0).unwrap().erased, [handle]);
    }
}
