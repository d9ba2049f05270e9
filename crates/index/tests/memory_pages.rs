//! Pages in memory: the interface of the index over ordered maps, which checks its rules on the
//! way.

use larder_index::{CorruptBlock, Fence, IndexId, ReadSegments, Segment, SegmentId, WriteSegments};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The largest block that fits into a page of 4,096 bytes.
const MAX_BLOCK_BYTES: usize = 4040;

/// The segment, the first term and the block of a fence.
type FenceKey = (SegmentId, Vec<u8>, i64);

/// The pages of any number of indexes.
#[derive(Default)]
pub(crate) struct MemoryPages {
    segments: RefCell<BTreeMap<SegmentId, StoredSegment>>,
    blocks: RefCell<BTreeMap<(SegmentId, i64), Vec<u8>>>,
    fences: RefCell<BTreeSet<FenceKey>>,
    last_id: Cell<i64>,
    blocks_read: Cell<usize>,
}

struct StoredSegment {
    index: IndexId,
    segment: Segment,
}

impl MemoryPages {
    /// Returns the number of blocks that were read.
    pub(crate) fn blocks_read(&self) -> usize {
        self.blocks_read.get()
    }

    /// Returns the number of blocks.
    pub(crate) fn block_count(&self) -> usize {
        self.blocks.borrow().len()
    }

    /// Panics if a block or a fence belongs to no segment, or a block has no fence.
    pub(crate) fn check(&self) {
        let segments = self.segments.borrow();
        for (segment, block) in self.blocks.borrow().keys() {
            let blocks = &segments[segment].segment.blocks;
            assert!(blocks.contains(block), "block {block} is not in {blocks:?}");
        }
        for (segment, _, block) in &*self.fences.borrow() {
            let blocks = &segments[segment].segment.blocks;
            assert!(blocks.contains(block), "the fence of block {block} is not in {blocks:?}");
        }
        for (id, StoredSegment { segment, .. }) in &*segments {
            for block in segment.blocks.clone() {
                assert!(self.blocks.borrow().contains_key(&(*id, block)), "block {block}");
            }
            let fences = self.fences.borrow();
            let fenced = fences.iter().filter(|(fenced, ..)| fenced == id).count() as i64;
            let unfenced = i64::from(segment.blocks.contains(&0));
            assert_eq!(fenced + unfenced, segment.blocks.end - segment.blocks.start);
            let target = segment.merged_into;
            assert!(target.is_none_or(|target| segments.contains_key(&target)), "{target:?}");
        }
    }

    /// Changes the bytes of the blocks of an index.
    pub(crate) fn damage_index(&self, index: IndexId, change: impl Fn(&mut Vec<u8>)) {
        let segments = self.segments.borrow();
        for ((segment, _), block) in &mut *self.blocks.borrow_mut() {
            if segments[segment].index == index {
                change(block);
            }
        }
    }

    /// Returns the indexes that have segments.
    pub(crate) fn indexes(&self) -> BTreeSet<IndexId> {
        self.segments.borrow().values().map(|stored| stored.index).collect()
    }

    /// Removes all blocks, but not the segments that have them.
    pub(crate) fn remove_blocks(&self) {
        self.blocks.borrow_mut().clear();
    }

    /// Replaces the bytes of all blocks.
    pub(crate) fn damage(&self, change: impl Fn(&mut Vec<u8>)) {
        self.blocks.borrow_mut().values_mut().for_each(change);
    }

    fn update(&self, id: SegmentId, change: impl FnOnce(&mut StoredSegment)) {
        change(self.segments.borrow_mut().get_mut(&id).expect("a segment"));
    }
}

impl ReadSegments for MemoryPages {
    type Error = CorruptBlock;

    fn corruption(malformed: CorruptBlock) -> CorruptBlock {
        malformed
    }

    fn segments(&self, index: IndexId) -> Result<Vec<Segment>, CorruptBlock> {
        let segments = self.segments.borrow();
        let mut found: Vec<Segment> = segments
            .values()
            .filter(|stored| stored.index == index)
            .map(|stored| stored.segment.clone())
            .collect();
        found.sort_by_key(|segment| (segment.max_seq, segment.id));
        Ok(found)
    }

    fn read_block<T>(
        &self,
        segment: SegmentId,
        block: i64,
        read: impl FnOnce(&[u8]) -> Result<T, CorruptBlock>,
    ) -> Result<T, CorruptBlock> {
        self.blocks_read.set(self.blocks_read.get() + 1);
        let blocks = self.blocks.borrow();
        read(blocks.get(&(segment, block)).ok_or(CorruptBlock)?)
    }

    fn last_fence_before(
        &self,
        segment: SegmentId,
        term: &[u8],
    ) -> Result<Option<i64>, CorruptBlock> {
        let (from, to) = ((segment, Vec::new(), 0), (segment, term.to_vec(), 0));
        let fences = self.fences.borrow();
        let last = fences.range(from..to).next_back();
        Ok(last.map(|(.., block)| *block))
    }
}

impl WriteSegments for MemoryPages {
    fn create_segment(
        &self,
        index: IndexId,
        max_seq: i64,
        has_oversized: bool,
    ) -> Result<SegmentId, CorruptBlock> {
        self.last_id.set(self.last_id.get() + 1);
        let id = SegmentId(self.last_id.get());
        let segment = Segment {
            id,
            max_seq,
            blocks: 0..0,
            from_term: Vec::new(),
            bytes: 0,
            has_oversized,
            merged_into: None,
        };
        self.segments.borrow_mut().insert(id, StoredSegment { index, segment });
        Ok(id)
    }

    fn end(&self, segment: SegmentId) -> Result<i64, CorruptBlock> {
        Ok(self.segments.borrow()[&segment].segment.blocks.end)
    }

    fn set_end(
        &self,
        segment: SegmentId,
        next_block: i64,
        added_bytes: i64,
    ) -> Result<(), CorruptBlock> {
        self.update(segment, |stored| {
            stored.segment.blocks.end = next_block;
            stored.segment.bytes += added_bytes;
        });
        Ok(())
    }

    fn insert_block(
        &self,
        segment: SegmentId,
        block: i64,
        bytes: &[u8],
    ) -> Result<(), CorruptBlock> {
        assert!(bytes.len() <= MAX_BLOCK_BYTES, "{} bytes", bytes.len());
        let before = self.blocks.borrow_mut().insert((segment, block), bytes.to_vec());
        assert!(before.is_none(), "block {block} is written twice");
        Ok(())
    }

    fn insert_fence(&self, fence: Fence<'_>) -> Result<(), CorruptBlock> {
        let key = (fence.segment, fence.first_term.to_vec(), fence.block);
        let is_new = self.fences.borrow_mut().insert(key);
        assert!(is_new, "the fence of block {} is written twice", fence.block);
        Ok(())
    }

    fn set_merge_target(&self, segment: SegmentId, target: SegmentId) -> Result<(), CorruptBlock> {
        self.update(segment, |stored| stored.segment.merged_into = Some(target));
        Ok(())
    }

    fn delete_blocks(&self, segment: SegmentId, blocks: Range<i64>) -> Result<(), CorruptBlock> {
        let is_deleted = |key: &(SegmentId, i64)| key.0 == segment && blocks.contains(&key.1);
        self.blocks.borrow_mut().retain(|key, _| !is_deleted(key));
        Ok(())
    }

    fn set_start(
        &self,
        segment: SegmentId,
        first_block: i64,
        from_term: &[u8],
    ) -> Result<(), CorruptBlock> {
        self.fences.borrow_mut().retain(|(found, first_term, block)| {
            let is_deleted = *found == segment && *block < first_block;
            assert!(!is_deleted || first_term.as_slice() <= from_term);
            !is_deleted
        });
        self.update(segment, |stored| {
            stored.segment.blocks.start = first_block;
            stored.segment.from_term = from_term.to_vec();
        });
        Ok(())
    }

    fn delete_segment(&self, segment: &Segment) -> Result<(), CorruptBlock> {
        self.delete_blocks(segment.id, segment.blocks.clone())?;
        self.fences.borrow_mut().retain(|(found, ..)| *found != segment.id);
        self.segments.borrow_mut().remove(&segment.id);
        Ok(())
    }
}
