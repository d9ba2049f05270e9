//! Writing the sort index: batches to level 0 or level 1, and the compaction of one into the other.
//!
//! The index is an LSM tree of two components (O'Neil et al., 1996). Level 1 is the leaf level of a
//! B+-tree: each order is one sequence of positions in blocks, and the fences above them, which
//! the storage keeps in order, are its inner level. A block that overflows is divided; one that
//! becomes empty is deleted, and only then (free-at-empty; Johnson and Shasha, 1993).
//!
//! A small batch changes the blocks that it concerns. A batch of an import would change nearly all
//! of them, as keys come in no order; it appends one sorted run to level 0 instead, until so much
//! is there that one pass over level 1 is worth it. A removal of a position is a tombstone there.

use crate::block::CorruptBlock;
use crate::level_zero::{LevelZero, net_changes};
use crate::sort_block::{PositionBuffer, pack_run};
use crate::sort_pages::{
    BlockSeek, PartitionOrder, PositionChange, ReadSortPages as _, SortFence, SortPagesError,
    SortPosition, WriteSortPages,
};
use std::cmp::Ordering;

/// A batch of at least this many changes goes to level 0.
const MIN_RUN_CHANGES: usize = 256;
/// Level 0 is compacted when it has more changes than this...
const MAX_LEVEL_ZERO_CHANGES: u64 = 32_768;
/// ...or more than this share of the positions of level 1: readers sort level 0 in memory, and the
/// pages that it leaves free make the file larger.
const MAX_LEVEL_ZERO_SHARE: u64 = 8;
/// A small batch compacts a level 0 of at most this many changes at once: such a batch usually
/// means that the large job is over, and each further run makes reading slower.
const MAX_SMALL_COMPACTION: u64 = 2_048;
/// Neighbouring blocks that change are packed anew together, so that they are full afterwards, up
/// to this many at once.
const MAX_GROUP_BLOCKS: usize = 32;

/// Writes the changes of a batch. For each item, a removal from a position comes before an
/// insertion at the same one.
pub fn write_position_changes<P: WriteSortPages>(
    pages: &P,
    mut changes: Vec<PositionChange>,
) -> Result<(), SortPagesError<P>> {
    net_changes(&mut changes);
    if changes.is_empty() {
        return Ok(());
    }
    let waiting = pages.level_zero_count()?;
    if waiting == 0 && changes.len() < MIN_RUN_CHANGES {
        return merge_into_blocks(pages, &changes);
    }
    let share = pages.level_one_count()? / MAX_LEVEL_ZERO_SHARE;
    let count = changes.len() as u64;
    let is_small = changes.len() < MIN_RUN_CHANGES && waiting <= MAX_SMALL_COMPACTION;
    if !is_small && waiting + count <= share.min(MAX_LEVEL_ZERO_CHANGES) {
        return pages.append_run(count, &pack_run(&changes));
    }
    let mut all = LevelZero::read(pages.reader())?.into_changes();
    all.append(&mut changes);
    net_changes(&mut all);
    merge_into_blocks(pages, &all)?;
    pages.delete_runs()
}

/// Moves level 0 into level 1. Returns whether there was anything to move.
pub fn compact_level_zero<P: WriteSortPages>(pages: &P) -> Result<bool, SortPagesError<P>> {
    if pages.level_zero_count()? == 0 {
        return Ok(false);
    }
    merge_into_blocks(pages, &LevelZero::read(pages.reader())?.into_changes())?;
    pages.delete_runs()?;
    Ok(true)
}

/// Makes these changes, which are sorted, in the blocks.
fn merge_into_blocks<P: WriteSortPages>(
    pages: &P,
    changes: &[PositionChange],
) -> Result<(), SortPagesError<P>> {
    for of_order in changes.chunk_by(|a, b| a.order == b.order) {
        let Some(PositionChange { order, .. }) = of_order.first() else { continue };
        let (mut group, mut rest) = (BlockGroup::new(pages, *order), of_order);
        while !rest.is_empty() {
            rest = group.merge_next(rest)?;
        }
        group.write()?;
    }
    Ok(())
}

/// Neighbouring blocks of an order that are being changed.
struct BlockGroup<'a, P> {
    pages: &'a P,
    order: PartitionOrder,
    /// Their fences, as they are stored.
    fences: Vec<SortFence>,
    /// The positions that they will have.
    positions: PositionBuffer,
    /// The fence behind them.
    end: Option<SortPosition>,
    /// The stored positions of the block that is being merged.
    stored: PositionBuffer,
}

impl<'a, P: WriteSortPages> BlockGroup<'a, P> {
    fn new(pages: &'a P, order: PartitionOrder) -> BlockGroup<'a, P> {
        BlockGroup {
            pages,
            order,
            fences: Vec::new(),
            positions: PositionBuffer::default(),
            end: None,
            stored: PositionBuffer::default(),
        }
    }

    /// Merges the changes that fall into the block of the first one. Returns the others.
    fn merge_next<'c>(
        &mut self,
        changes: &'c [PositionChange],
    ) -> Result<&'c [PositionChange], SortPagesError<P>> {
        let Some(first) = changes.first() else { return Ok(changes) };
        let is_behind = |end: &SortPosition| first.position >= *end;
        let mut has_block = false;
        if let Some(end) = self.end.take().filter(is_behind) {
            // Mostly it is the next block.
            let next = self.pages.reader().next_fence(self.order, &end)?;
            if next.as_ref().is_none_or(|next| first.position < *next)
                && self.fences.len() < MAX_GROUP_BLOCKS
            {
                has_block = self.load(BlockSeek::AtOrBefore(&end))?;
            }
            self.end = next;
        }
        if !has_block {
            self.write()?;
            if !self.load(BlockSeek::AtOrBefore(&first.position))? {
                self.load(BlockSeek::First)?;
            }
            self.end = match self.fences.last() {
                Some(fence) => self.pages.reader().next_fence(self.order, &fence.first)?,
                None => None,
            };
        }
        let end = self.end.as_ref();
        let in_block =
            changes.partition_point(|change| end.is_none_or(|end| change.position < *end));
        let (in_block, rest) = changes.split_at(in_block);
        self.merge_stored(in_block);
        Ok(rest)
    }

    fn load(&mut self, seek: BlockSeek<'_>) -> Result<bool, SortPagesError<P>> {
        let stored = &mut self.stored;
        stored.clear();
        let fence = self.pages.reader().read_sort_block(self.order, seek, |fence, bytes| {
            stored.unpack(bytes).map_err(P::Reader::sort_corruption)?;
            Ok(fence)
        })?;
        let is_found = fence.is_some();
        self.fences.extend(fence);
        Ok(is_found)
    }

    /// Appends the stored positions with these changes to the positions of the group.
    fn merge_stored(&mut self, mut changes: &[PositionChange]) {
        let (stored, positions) = (&self.stored, &mut self.positions);
        let mut index = 0;
        while let Some((change, rest)) = changes.split_first() {
            let changed = change.position.as_pair();
            let order = stored.get(index).map_or(Ordering::Greater, |at| at.cmp(&changed));
            if let (Ordering::Less, Some((key, row))) = (order, stored.get(index)) {
                positions.push(key, row);
                index += 1;
                continue;
            }
            if change.is_insert {
                positions.push(changed.0, changed.1);
            }
            index += usize::from(order == Ordering::Equal);
            changes = rest;
        }
        while let Some((key, row)) = stored.get(index) {
            positions.push(key, row);
            index += 1;
        }
    }

    /// Writes the blocks of the group with their fences, and begins another group.
    fn write(&mut self) -> Result<(), SortPagesError<P>> {
        let (pages, order) = (self.pages, self.order);
        let mut packed: Vec<(SortPosition, u64, Vec<u8>)> = Vec::new();
        let positions = &self.positions;
        positions.pack(&mut |range, bytes| {
            let first = positions
                .position(range.start)
                .ok_or_else(|| P::Reader::sort_corruption(CorruptBlock))?;
            packed.push((first, range.len() as u64, bytes.to_vec()));
            Ok(())
        })?;
        for (index, fence) in self.fences.iter().enumerate() {
            let replacement = packed.get(index);
            if replacement.is_none_or(|(first, ..)| *first != fence.first) {
                pages.delete_sort_fence(order, &fence.first)?;
            }
            if replacement.is_none() {
                pages.delete_sort_block(fence.block)?;
            }
        }
        for (index, (first, count, bytes)) in packed.into_iter().enumerate() {
            let before = self.fences.get(index);
            let block = match before {
                Some(fence) => {
                    pages.replace_sort_block(fence.block, &bytes)?;
                    fence.block
                }
                None => pages.insert_sort_block(&bytes)?,
            };
            let fence = SortFence { first, count, block };
            if before != Some(&fence) {
                pages.put_sort_fence(order, &fence)?;
            }
        }
        self.fences.clear();
        self.positions.clear();
        Ok(())
    }
}
