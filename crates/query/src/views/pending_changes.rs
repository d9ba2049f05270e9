//! Changes on their way to a view.
//!
//! They are items as they were at a batch, or rows whose items are read when they are delivered:
//! for a first answer, for changes by the clock, and when the items would take too much memory.
//! Separate from the queues, which hold them, and from the fan-out, which finds them.

use super::subscription_index::QueryId;
use super::view_event::RemovedItem;
use larder_store::{ItemChange, ItemRow, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// The effect of a change on an answer, in the order of delivery: removals come first, so that an
/// item that was removed and added again ends up in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewEffect {
    Removed,
    Added,
    Modified,
}

/// Changes of an answer that were not delivered yet.
#[derive(Debug, Clone)]
pub(super) enum PendingChanges {
    /// Items with the bytes that they had at this batch.
    Items(Seq, Vec<(ViewEffect, Arc<ItemChange>)>),
    /// Rows whose items are read when they are delivered.
    Rows(Arc<PendingRows>),
}

/// The rows of added and modified items, and the removed items.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingRows {
    pub(super) seq: Seq,
    /// Whether the clock caused the changes: the change feed does not have them.
    pub(super) by_clock: bool,
    pub(super) added: Arc<[ItemRow]>,
    pub(super) modified: Vec<ItemRow>,
    pub(super) removed: Vec<RemovedItem>,
}

impl PendingRows {
    /// A complete answer, as of a batch.
    pub(super) fn from_answer(seq: Seq, rows: Arc<[ItemRow]>) -> PendingRows {
        PendingRows { seq, added: rows, ..PendingRows::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

impl PendingChanges {
    /// Returns whether the clock caused the changes.
    pub(super) fn is_by_clock(&self) -> bool {
        matches!(self, PendingChanges::Rows(rows) if rows.by_clock)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            PendingChanges::Items(_, items) => items.len(),
            PendingChanges::Rows(rows) => {
                rows.added.len() + rows.modified.len() + rows.removed.len()
            }
        }
    }

    /// The memory that the changes hold.
    pub(super) fn bytes(&self) -> usize {
        match self {
            PendingChanges::Items(_, items) => {
                items.iter().map(|(_, change)| change_bytes(change)).sum()
            }
            PendingChanges::Rows(rows) => {
                let removed_bytes = |item: &RemovedItem| {
                    size_of::<RemovedItem>() + item.uid.len() + item.recurrence_id.len()
                };
                (rows.added.len() + rows.modified.len()) * size_of::<ItemRow>()
                    + rows.removed.iter().map(removed_bytes).sum::<usize>()
            }
        }
    }

    pub(super) fn seq(&self) -> Seq {
        match self {
            PendingChanges::Items(seq, _) => *seq,
            PendingChanges::Rows(rows) => rows.seq,
        }
    }

    /// Returns the numbers of added, modified and removed items.
    pub(super) fn counts(&self) -> [usize; 3] {
        match self {
            PendingChanges::Items(_, items) => {
                let count = |kind| items.iter().filter(|(other, _)| *other == kind).count();
                [count(ViewEffect::Added), count(ViewEffect::Modified), count(ViewEffect::Removed)]
            }
            PendingChanges::Rows(rows) => {
                [rows.added.len(), rows.modified.len(), rows.removed.len()]
            }
        }
    }
}

/// The memory that a changed item holds.
fn change_bytes(change: &ItemChange) -> usize {
    let versions = change.before.iter().chain(&change.after);
    size_of::<ItemChange>() + versions.map(|version| version.bytes.len()).sum::<usize>()
}

/// Collects the changes that one poll finds for each query: items up to a number of bytes, rows
/// beyond it.
pub(super) struct ChangeCollector {
    max_bytes: usize,
    bytes: usize,
    items: HashMap<QueryId, Vec<(ViewEffect, Arc<ItemChange>)>>,
    rows: HashMap<QueryId, RowCollector>,
}

/// Collects the rows of changed items.
#[derive(Default)]
pub(super) struct RowCollector {
    added: Vec<ItemRow>,
    modified: Vec<ItemRow>,
    removed: Vec<RemovedItem>,
}

impl ChangeCollector {
    pub(super) fn new(max_bytes: usize) -> ChangeCollector {
        ChangeCollector { max_bytes, bytes: 0, items: HashMap::new(), rows: HashMap::new() }
    }

    /// Adds the effects of a change on a query. The bytes of an item count once: all queries share
    /// them.
    pub(super) fn add(
        &mut self,
        query: QueryId,
        effects: &'static [ViewEffect],
        change: &Arc<ItemChange>,
    ) {
        if self.bytes > self.max_bytes {
            self.rows.entry(query).or_default().add(effects, change);
            return;
        }
        if Arc::strong_count(change) == 1 {
            self.bytes += change_bytes(change);
        }
        self.bytes += size_of_val(effects) + size_of::<Arc<ItemChange>>();
        let items = self.items.entry(query).or_default();
        items.extend(effects.iter().map(|effect| (*effect, Arc::clone(change))));
        if self.bytes > self.max_bytes {
            for (query, items) in self.items.drain() {
                let rows = self.rows.entry(query).or_default();
                items.iter().for_each(|(effect, change)| rows.add(&[*effect], change));
            }
        }
    }

    /// Discards everything.
    pub(super) fn clear(&mut self) {
        (self.items, self.rows) = (HashMap::new(), HashMap::new());
    }

    /// Returns the changes of each query, as of a batch.
    pub(super) fn into_pending(self, seq: Seq) -> impl Iterator<Item = (QueryId, PendingChanges)> {
        let items = self.items.into_iter().map(move |(query, mut items)| {
            // By effect; within one, in the order of the batches.
            items.sort_by_key(|(effect, _)| *effect as u8);
            (query, PendingChanges::Items(seq, items))
        });
        let rows = self.rows.into_iter();
        items.chain(
            rows.map(move |(query, rows)| {
                (query, PendingChanges::Rows(Arc::new(rows.into_rows(seq))))
            }),
        )
    }
}

impl RowCollector {
    /// Adds the effects of a change.
    pub(super) fn add(&mut self, effects: &[ViewEffect], change: &ItemChange) {
        for effect in effects {
            match (effect, &change.before, &change.after) {
                (ViewEffect::Removed, Some(before), _) => {
                    self.removed.push(RemovedItem::from_meta(&before.meta));
                }
                (ViewEffect::Added, _, Some(after)) => self.added.push(after.meta.row),
                (ViewEffect::Modified, _, Some(after)) => self.modified.push(after.meta.row),
                _ => {}
            }
        }
    }

    /// Returns the rows, as of a batch.
    pub(super) fn into_rows(self, seq: Seq) -> PendingRows {
        PendingRows {
            seq,
            by_clock: false,
            added: self.added.into(),
            modified: self.modified,
            removed: self.removed,
        }
    }
}
