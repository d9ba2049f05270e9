//! Level 0 of the sort index in memory: the net effect of the runs that wait for compaction.

use crate::block::CorruptBlock;
use crate::sort_block::unpack_run;
use crate::sort_pages::{PartitionOrder, PositionChange, ReadSortPages, SortPosition};

/// The changes that level 0 makes to level 1. It is empty except during and soon after a large job,
/// and may be kept as long as nothing is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelZero {
    /// Sorted; an item that is inserted at a position is not at that position in level 1, and one
    /// that is removed from it is.
    changes: Vec<PositionChange>,
}

impl LevelZero {
    /// Reads all runs.
    pub fn read<P: ReadSortPages>(pages: &P) -> Result<LevelZero, P::Error> {
        let mut changes = Vec::new();
        pages.for_each_run(&mut |run| unpack_run(run, &mut changes).map_err(P::sort_corruption))?;
        net_changes(&mut changes);
        Ok(LevelZero { changes })
    }

    /// Returns the number of changes in a run.
    ///
    /// # Errors
    /// [`CorruptBlock`] if the run is malformed.
    pub fn count_run_changes(run: &[u8]) -> Result<u64, CorruptBlock> {
        let mut changes = Vec::new();
        unpack_run(run, &mut changes)?;
        Ok(changes.len() as u64)
    }

    /// Returns the changes of one order.
    pub(crate) fn of_order(&self, order: PartitionOrder) -> &[PositionChange] {
        let start = self.changes.partition_point(|change| change.order < order);
        let end = self.changes.partition_point(|change| change.order <= order);
        self.changes.get(start..end).unwrap_or_default()
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = PartitionOrder> {
        self.changes
            .chunk_by(|a, b| a.order == b.order)
            .filter_map(|of_order| of_order.first().map(|change| change.order))
    }

    pub(crate) fn into_changes(self) -> Vec<PositionChange> {
        self.changes
    }

    /// Returns how many items more the changes of an order insert than remove, before a position
    /// and in all.
    pub(crate) fn count_net(&self, order: PartitionOrder, position: &SortPosition) -> (i64, i64) {
        let changes = self.of_order(order);
        let before = changes.partition_point(|change| change.position < *position);
        let net = |changes: &[PositionChange]| -> i64 {
            changes.iter().map(|change| if change.is_insert { 1 } else { -1 }).sum()
        };
        let (before, tail) = changes.split_at(before);
        let before = net(before);
        (before, before + net(tail))
    }
}

/// Sorts changes, which come in the order of their batches, and leaves out those that cancel each
/// other: an item comes to a position and leaves it in turn.
pub(crate) fn net_changes(changes: &mut Vec<PositionChange>) {
    // The runs of the batches are sorted, which a stable sort makes use of.
    changes.sort_by(|a, b| (a.order, &a.position).cmp(&(b.order, &b.position)));
    let is_same =
        |a: &PositionChange, b: &PositionChange| (a.order, &a.position) == (b.order, &b.position);
    if changes.is_sorted_by(|a, b| !is_same(a, b)) {
        return;
    }
    let mut net = Vec::with_capacity(changes.len());
    for same in changes.chunk_by(is_same) {
        if let (Some(first), Some(last)) = (same.first(), same.last())
            && first.is_insert == last.is_insert
        {
            net.push(last.clone());
        }
    }
    *changes = net;
}
