//! News of a view before they are told: what became of which items.
//!
//! They are items as they were at a batch, or, where these would be too much to be held, or are
//! read from an answer, rows of items that are read when they are told. Where they wait is in
//! `slot`, who finds them, `hub` and `clock`.

use super::view::RemovedItem;
use larder_store::{ItemChange, Seq};
use std::collections::HashMap;
use std::sync::Arc;

/// What became of an item for a view, in the order in which it is told: what went and came back is
/// there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewChangeKind {
    Removed,
    Added,
    Modified,
}

/// News of a view, before it is told.
#[derive(Debug, Clone)]
pub(super) enum PendingChanges {
    /// What batches changed, as it was then.
    Items(Seq, Vec<(ViewChangeKind, Arc<ItemChange>)>),
    /// Items that are read when they are told.
    Rows(Arc<PendingRows>),
}

/// Rows of items that are added, and modified, and what is removed.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingRows {
    pub(super) seq: Seq,
    /// It is the clock that brought them: the log of the store knows nothing of it.
    pub(super) by_clock: bool,
    pub(super) added: Arc<[i64]>,
    pub(super) modified: Vec<i64>,
    pub(super) removed: Vec<RemovedItem>,
}

impl PendingChanges {
    pub(super) fn len(&self) -> usize {
        match self {
            PendingChanges::Items(_, items) => items.len(),
            PendingChanges::Rows(rows) => {
                rows.added.len() + rows.modified.len() + rows.removed.len()
            }
        }
    }

    /// What they hold, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            PendingChanges::Items(_, items) => {
                items.iter().map(|(_, changed)| held_bytes(changed)).sum()
            }
            PendingChanges::Rows(rows) => {
                let gone = |gone: &RemovedItem| {
                    size_of::<RemovedItem>() + gone.uid.len() + gone.recurrence.len()
                };
                (rows.added.len() + rows.modified.len()) * size_of::<i64>()
                    + rows.removed.iter().map(gone).sum::<usize>()
            }
        }
    }

    pub(super) fn seq(&self) -> Seq {
        match self {
            PendingChanges::Items(seq, _) => *seq,
            PendingChanges::Rows(rows) => rows.seq,
        }
    }

    /// How many are added, modified and removed.
    pub(super) fn counts(&self) -> [usize; 3] {
        match self {
            PendingChanges::Items(_, items) => {
                let count = |what| items.iter().filter(|(of, _)| *of == what).count();
                [
                    count(ViewChangeKind::Added),
                    count(ViewChangeKind::Modified),
                    count(ViewChangeKind::Removed),
                ]
            }
            PendingChanges::Rows(rows) => {
                [rows.added.len(), rows.modified.len(), rows.removed.len()]
            }
        }
    }
}

/// What of an item is held until it is told, in bytes.
fn held_bytes(changed: &ItemChange) -> usize {
    let versions = changed.before.iter().chain(&changed.after);
    size_of::<ItemChange>() + versions.map(|then| then.bytes.len()).sum::<usize>()
}

/// What one look at the store finds for each question, while it is found: items, up to so many
/// bytes of them, and then rows.
pub(super) struct ChangeCollector {
    max_bytes: usize,
    bytes: usize,
    items: HashMap<u32, Vec<(ViewChangeKind, Arc<ItemChange>)>>,
    rows: HashMap<u32, RowCollector>,
}

/// Rows while they are gathered.
#[derive(Default)]
pub(super) struct RowCollector {
    added: Vec<i64>,
    modified: Vec<i64>,
    removed: Vec<RemovedItem>,
}

impl ChangeCollector {
    pub(super) fn new(max_bytes: usize) -> ChangeCollector {
        ChangeCollector { max_bytes, bytes: 0, items: HashMap::new(), rows: HashMap::new() }
    }

    /// This became of an item for the question of this number. What an item holds counts once: all
    /// who are told share it.
    pub(super) fn add(
        &mut self,
        number: u32,
        became: &'static [ViewChangeKind],
        changed: &Arc<ItemChange>,
    ) {
        if self.bytes > self.max_bytes {
            self.rows.entry(number).or_default().add(became, changed);
            return;
        }
        if Arc::strong_count(changed) == 1 {
            self.bytes += held_bytes(changed);
        }
        self.bytes += size_of_val(became) + size_of::<Arc<ItemChange>>();
        let items = self.items.entry(number).or_default();
        items.extend(became.iter().map(|what| (*what, Arc::clone(changed))));
        if self.bytes > self.max_bytes {
            for (number, items) in self.items.drain() {
                let rows = self.rows.entry(number).or_default();
                items.iter().for_each(|(what, changed)| rows.add(&[*what], changed));
            }
        }
    }

    /// Nothing of it is told.
    pub(super) fn clear(&mut self) {
        (self.items, self.rows) = (HashMap::new(), HashMap::new());
    }

    /// The news of each question, as of this batch.
    pub(super) fn into_pending(self, seq: Seq) -> impl Iterator<Item = (u32, PendingChanges)> {
        let items = self.items.into_iter().map(move |(number, mut items)| {
            // Kinds of news are not mixed; of the same kind they stay in order.
            items.sort_by_key(|(what, _)| *what as u8);
            (number, PendingChanges::Items(seq, items))
        });
        let rows = self.rows.into_iter();
        items.chain(rows.map(move |(number, rows)| {
            (number, PendingChanges::Rows(Arc::new(rows.into_rows(seq))))
        }))
    }
}

impl RowCollector {
    pub(super) fn add(&mut self, became: &[ViewChangeKind], changed: &ItemChange) {
        for what in became {
            match (what, &changed.before, &changed.after) {
                (ViewChangeKind::Removed, Some(was), _) => {
                    self.removed.push(RemovedItem::from_head(&was.meta));
                }
                (ViewChangeKind::Added, _, Some(is)) => self.added.push(is.meta.row),
                (ViewChangeKind::Modified, _, Some(is)) => self.modified.push(is.meta.row),
                _ => {}
            }
        }
    }

    pub(super) fn into_rows(self, seq: Seq) -> PendingRows {
        let (added, modified, removed) = (self.added.into(), self.modified, self.removed);
        PendingRows { seq, by_clock: false, added, modified, removed }
    }
}
