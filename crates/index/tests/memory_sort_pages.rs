//! The pages of a sort index in memory, which check the rules of the interface on the way.

use larder_index::{
    BlockSeek, CorruptBlock, PartitionOrder, ReadSortPages, RunVisitor, SortFence, SortPosition,
    WriteSortPages,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The largest block that fits into a page of 4,096 bytes.
const MAX_BLOCK_BYTES: usize = 4040;

/// The order and the first position of a block.
type FenceKey = (PartitionOrder, SortPosition);

/// The pages of a sort index.
#[derive(Default)]
pub(crate) struct MemorySortPages {
    /// The number of positions, and the number of the block.
    fences: RefCell<BTreeMap<FenceKey, (u64, i64)>>,
    blocks: RefCell<BTreeMap<i64, Vec<u8>>>,
    runs: RefCell<Vec<(u64, Vec<u8>)>>,
    last_block: Cell<i64>,
    blocks_read: Cell<usize>,
    blocks_written: Cell<usize>,
}

impl MemorySortPages {
    /// Returns the number of blocks that were read.
    pub(crate) fn blocks_read(&self) -> usize {
        self.blocks_read.get()
    }

    /// Returns the number of blocks that were written.
    pub(crate) fn blocks_written(&self) -> usize {
        self.blocks_written.get()
    }

    /// Returns the number of level-0 runs.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.borrow().len()
    }

    /// Returns the bytes of all blocks.
    pub(crate) fn block_bytes(&self) -> usize {
        self.blocks.borrow().values().map(Vec::len).sum()
    }

    /// Returns whether a block, a fence or a run has these bytes.
    pub(crate) fn has_bytes(&self, bytes: &[u8]) -> bool {
        let has = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        self.blocks.borrow().values().any(|block| has(block))
            || self.fences.borrow().keys().any(|(_, first)| has(&first.key))
            || self.runs.borrow().iter().any(|(_, run)| has(run))
    }

    /// Replaces the bytes of all blocks and runs.
    pub(crate) fn damage(&self, change: impl Fn(&mut Vec<u8>)) {
        self.blocks.borrow_mut().values_mut().for_each(&change);
        self.runs.borrow_mut().iter_mut().for_each(|(_, run)| change(run));
    }

    fn find_fence(&self, order: PartitionOrder, seek: BlockSeek<'_>) -> Option<SortFence> {
        let fences = self.fences.borrow();
        let of_order = fences.iter().filter(|((found, _), _)| *found == order);
        let mut wanted = of_order.map(|((_, first), (count, block))| SortFence {
            first: first.clone(),
            count: *count,
            block: *block,
        });
        match seek {
            BlockSeek::First => wanted.next(),
            BlockSeek::Last => wanted.next_back(),
            BlockSeek::After(position) => wanted.find(|fence| fence.first > *position),
            BlockSeek::AtOrBefore(position) => {
                wanted.take_while(|fence| fence.first <= *position).last()
            }
            BlockSeek::Before(position) => {
                wanted.take_while(|fence| fence.first < *position).last()
            }
        }
    }
}

impl ReadSortPages for MemorySortPages {
    type Error = CorruptBlock;

    fn sort_corruption(malformed: CorruptBlock) -> CorruptBlock {
        malformed
    }

    fn read_sort_block<T>(
        &self,
        order: PartitionOrder,
        seek: BlockSeek<'_>,
        read: impl FnOnce(SortFence, &[u8]) -> Result<T, CorruptBlock>,
    ) -> Result<Option<T>, CorruptBlock> {
        let Some(fence) = self.find_fence(order, seek) else { return Ok(None) };
        self.blocks_read.set(self.blocks_read.get() + 1);
        let blocks = self.blocks.borrow();
        let bytes = blocks.get(&fence.block).ok_or(CorruptBlock)?;
        read(fence, bytes).map(Some)
    }

    fn next_fence(
        &self,
        order: PartitionOrder,
        position: &SortPosition,
    ) -> Result<Option<SortPosition>, CorruptBlock> {
        Ok(self.find_fence(order, BlockSeek::After(position)).map(|fence| fence.first))
    }

    fn for_each_fence(
        &self,
        order: PartitionOrder,
        visit: &mut dyn FnMut(SortFence),
    ) -> Result<(), CorruptBlock> {
        for ((found, first), (count, block)) in &*self.fences.borrow() {
            if *found == order {
                visit(SortFence { first: first.clone(), count: *count, block: *block });
            }
        }
        Ok(())
    }

    fn for_each_run(&self, visit: &mut RunVisitor<'_, CorruptBlock>) -> Result<(), CorruptBlock> {
        self.runs.borrow().iter().try_for_each(|(_, run)| visit(run))
    }

    fn sort_orders(&self) -> Result<Vec<PartitionOrder>, CorruptBlock> {
        let mut orders: Vec<PartitionOrder> =
            self.fences.borrow().keys().map(|(order, _)| *order).collect();
        orders.dedup();
        Ok(orders)
    }

    fn sort_block_count(&self) -> Result<u64, CorruptBlock> {
        Ok(self.blocks.borrow().len() as u64)
    }
}

impl WriteSortPages for MemorySortPages {
    type Reader = MemorySortPages;

    fn reader(&self) -> &MemorySortPages {
        self
    }

    fn level_zero_count(&self) -> Result<u64, CorruptBlock> {
        Ok(self.runs.borrow().iter().map(|(count, _)| count).sum())
    }

    fn level_one_count(&self) -> Result<u64, CorruptBlock> {
        Ok(self.fences.borrow().values().map(|(count, _)| count).sum())
    }

    fn append_run(&self, count: u64, bytes: &[u8]) -> Result<(), CorruptBlock> {
        self.runs.borrow_mut().push((count, bytes.to_vec()));
        Ok(())
    }

    fn delete_runs(&self) -> Result<(), CorruptBlock> {
        self.runs.borrow_mut().clear();
        Ok(())
    }

    fn insert_sort_block(&self, bytes: &[u8]) -> Result<i64, CorruptBlock> {
        self.last_block.set(self.last_block.get() + 1);
        self.blocks.borrow_mut().insert(self.last_block.get(), Vec::new());
        self.replace_sort_block(self.last_block.get(), bytes)?;
        Ok(self.last_block.get())
    }

    fn replace_sort_block(&self, block: i64, bytes: &[u8]) -> Result<(), CorruptBlock> {
        assert!(bytes.len() <= MAX_BLOCK_BYTES, "{} bytes", bytes.len());
        self.blocks_written.set(self.blocks_written.get() + 1);
        let before = self.blocks.borrow_mut().insert(block, bytes.to_vec());
        assert!(before.is_some(), "there is no block {block} to replace");
        Ok(())
    }

    fn delete_sort_block(&self, block: i64) -> Result<(), CorruptBlock> {
        let before = self.blocks.borrow_mut().remove(&block);
        assert!(before.is_some(), "there is no block {block} to delete");
        Ok(())
    }

    fn put_sort_fence(&self, order: PartitionOrder, fence: &SortFence) -> Result<(), CorruptBlock> {
        let key = (order, fence.first.clone());
        let mut fences = self.fences.borrow_mut();
        let replaced = fences.insert(key, (fence.count, fence.block));
        assert!(replaced.is_none_or(|(_, block)| block == fence.block), "{fence:?}");
        Ok(())
    }

    fn delete_sort_fence(
        &self,
        order: PartitionOrder,
        first: &SortPosition,
    ) -> Result<(), CorruptBlock> {
        let before = self.fences.borrow_mut().remove(&(order, first.clone()));
        assert!(before.is_some(), "there is no fence {first:?} to delete");
        Ok(())
    }
}
