//! Ranks by fence: how many positions lie before each block of an order.
//!
//! The counts of the fences are summed once, and not for each rank, as the rank directory of a
//! succinct bit vector has them (Jacobson, 1989).

use crate::sort_pages::{PartitionOrder, ReadSortPages, SortPosition};

/// The fences of one order in level 1, each with its rank. May be kept as long as nothing is
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankDirectory {
    /// The first position of each block, and the number of positions before it.
    fences: Vec<(SortPosition, u64)>,
    total: u64,
}

impl RankDirectory {
    /// Reads the fences of an order.
    pub fn read<P: ReadSortPages>(
        pages: &P,
        order: PartitionOrder,
    ) -> Result<RankDirectory, P::Error> {
        let mut directory = RankDirectory::default();
        pages.for_each_fence(order, &mut |fence| {
            directory.fences.push((fence.first, directory.total));
            directory.total = directory.total.saturating_add(fence.count);
        })?;
        Ok(directory)
    }

    /// Returns the number of positions before the block that has a position, or would have it;
    /// `None` if the position lies before all blocks.
    pub(crate) fn rank_of_block(&self, position: &SortPosition) -> Option<u64> {
        let tail = self.fences.partition_point(|(first, _)| first <= position);
        self.fences.get(tail.checked_sub(1)?).map(|(_, before)| *before)
    }

    /// Returns the number of all positions.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}
