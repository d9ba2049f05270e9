//! The interface between the index and its storage: segments, blocks and fences by number.
//!
//! The index reads and writes whole blocks, each of which fits into a page, and never more than a
//! few at a time. It does not depend on files or transactions: the caller implements
//! [`ReadSegments`] and [`WriteSegments`] over its storage, opens a transaction where one is
//! needed, and gets its own error type back. Calls are dispatched statically, and a block is lent
//! to a closure, so that an implementation over a database copies nothing.

use crate::block::CorruptBlock;
use std::ops::Range;

/// The number of one inverted index; several share a storage without knowing each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub i64);

/// The number of a segment. A number may be given again after the segment has been deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub i64);

/// The description of a segment: an immutable run of terms in blocks that are numbered in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its number.
    pub id: SegmentId,
    /// The newest batch whose postings it holds. Its postings of an item that a later batch changed
    /// are stale.
    pub max_seq: i64,
    /// The numbers of its blocks.
    pub blocks: Range<i64>,
    /// Terms before this one have been moved into the segment that it is merged into.
    pub from_term: Vec<u8>,
    /// The bytes of its blocks when it was written.
    pub bytes: i64,
    /// It has items that are always candidates (see [`crate::OVERSIZED_ITEMS_TERM`]).
    pub has_oversized: bool,
    /// The target of the merge that it is an input of.
    pub merged_into: Option<SegmentId>,
}

/// The fence of a block: the first term of it. The first block of a segment needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'a> {
    /// The segment.
    pub segment: SegmentId,
    /// The first term of the block. Blocks of one frequent term have the same fence.
    pub first_term: &'a [u8],
    /// The number of the block.
    pub block: i64,
}

/// A function that is called with the bytes of each block, until it returns false.
pub type BlockReader<'a, E> = dyn FnMut(&[u8]) -> Result<bool, E> + 'a;

/// Reads segments within one consistent view of the storage.
pub trait ReadSegments {
    /// The error of the storage.
    type Error;

    /// Converts a malformed or missing block into an error of the storage.
    fn corruption(malformed: CorruptBlock) -> Self::Error;

    /// Returns all segments of an index, ordered by `(max_seq, id)`: the oldest first.
    fn segments(&self, index: IndexId) -> Result<Vec<Segment>, Self::Error>;

    /// Passes the bytes of a block to `read`. A block that is missing is
    /// [corruption](Self::corruption).
    fn read_block<T>(
        &self,
        segment: SegmentId,
        block: i64,
        read: impl FnOnce(&[u8]) -> Result<T, Self::Error>,
    ) -> Result<T, Self::Error>;

    /// Passes the bytes of each of these blocks to `read`, in order, until it returns false. A
    /// block that is missing is [corruption](Self::corruption).
    fn read_blocks(
        &self,
        segment: SegmentId,
        blocks: Range<i64>,
        read: &mut BlockReader<'_, Self::Error>,
    ) -> Result<(), Self::Error> {
        for block in blocks {
            if !self.read_block(segment, block, &mut *read)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the last block whose fence is less than `term`; `None` if there is none.
    fn last_fence_before(
        &self,
        segment: SegmentId,
        term: &[u8],
    ) -> Result<Option<i64>, Self::Error>;
}

/// Writes segments within one transaction: all of its effects become visible together or not at
/// all.
pub trait WriteSegments: ReadSegments {
    /// Creates a segment without blocks.
    fn create_segment(
        &self,
        index: IndexId,
        max_seq: i64,
        has_oversized: bool,
    ) -> Result<SegmentId, Self::Error>;

    /// Returns the number of the next block of a segment, as [`WriteSegments::set_end`] left it.
    fn end(&self, segment: SegmentId) -> Result<i64, Self::Error>;

    /// Sets the number of the next block of a segment, and adds to its bytes.
    fn set_end(
        &self,
        segment: SegmentId,
        next_block: i64,
        added_bytes: i64,
    ) -> Result<(), Self::Error>;

    /// Inserts a block.
    fn insert_block(&self, segment: SegmentId, block: i64, bytes: &[u8])
    -> Result<(), Self::Error>;

    /// Inserts a fence.
    fn insert_fence(&self, fence: Fence<'_>) -> Result<(), Self::Error>;

    /// Marks a segment as an input of the merge into `target`.
    fn set_merge_target(&self, segment: SegmentId, target: SegmentId) -> Result<(), Self::Error>;

    /// Deletes these blocks, without their fences.
    fn delete_blocks(&self, segment: SegmentId, blocks: Range<i64>) -> Result<(), Self::Error>;

    /// Sets the first term of a segment to `from_term`, which is in the block `first_block`, and
    /// deletes the fences of the blocks before that block. The blocks themselves are deleted with
    /// [`WriteSegments::delete_blocks`].
    fn set_start(
        &self,
        segment: SegmentId,
        first_block: i64,
        from_term: &[u8],
    ) -> Result<(), Self::Error>;

    /// Deletes a segment with its fences and its remaining blocks.
    fn delete_segment(&self, segment: &Segment) -> Result<(), Self::Error>;
}
