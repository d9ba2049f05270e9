//! The interface between the sort index and its storage: blocks by fence, and level-0 runs.
//!
//! Separate from `segment_storage`, the interface of the inverted index, because blocks are found by position
//! here, and rewritten in place.

use crate::block::CorruptBlock;

/// A position in an order: the sort key, and the item among those with the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortPosition {
    /// The sort key: collation bytes.
    pub key: Vec<u8>,
    /// The item.
    pub row: i64,
}

impl SortPosition {
    /// Returns the key and the item, which compare as the position does.
    #[inline]
    pub(crate) fn as_pair(&self) -> (&[u8], i64) {
        (&self.key, self.row)
    }
}

/// The order of the items of one partition by one kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionOrder {
    /// The number of the kind of key.
    pub order: u16,
    /// The number of the partition.
    pub partition: i64,
}

/// An item that a batch inserts into an order, or removes from it. Ordered as the sort index is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositionChange {
    /// The order.
    pub order: PartitionOrder,
    /// The position that the item gets, or had until now.
    pub position: SortPosition,
    /// Whether the item is inserted.
    pub is_insert: bool,
}

/// A block of level 1 by its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortFence {
    /// The first position in the block.
    pub first: SortPosition,
    /// The number of positions in the block.
    pub count: u64,
    /// The number of the block.
    pub block: i64,
}

/// The block of an order that a read wants, by its fence.
#[derive(Debug, Clone, Copy)]
pub enum BlockSeek<'a> {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The first one whose fence is greater.
    After(&'a SortPosition),
    /// The last one whose fence is not greater.
    AtOrBefore(&'a SortPosition),
    /// The last one whose fence is less.
    Before(&'a SortPosition),
}

/// A function that is called with the bytes of a level-0 run.
pub type RunVisitor<'a, E> = dyn FnMut(&[u8]) -> Result<(), E> + 'a;

/// Reads a sort index within one consistent view of the storage.
pub trait ReadSortPages {
    /// The error of the storage.
    type Error;

    /// Converts a malformed or missing block into an error of the storage.
    fn sort_corruption(malformed: CorruptBlock) -> Self::Error;

    /// Passes a block to `read`, with its fence; `None` if there is no such block.
    fn read_sort_block<T>(
        &self,
        order: PartitionOrder,
        seek: BlockSeek<'_>,
        read: impl FnOnce(SortFence, &[u8]) -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error>;

    /// Returns the first position of the next block: the least fence that is greater than this
    /// position.
    fn next_fence(
        &self,
        order: PartitionOrder,
        position: &SortPosition,
    ) -> Result<Option<SortPosition>, Self::Error>;

    /// Passes the fences of an order to `visit`, ascending.
    fn for_each_fence(
        &self,
        order: PartitionOrder,
        visit: &mut dyn FnMut(SortFence),
    ) -> Result<(), Self::Error>;

    /// Passes each level-0 run to `visit`, the oldest first.
    fn for_each_run(&self, visit: &mut RunVisitor<'_, Self::Error>) -> Result<(), Self::Error>;

    /// Returns all orders that have a block.
    fn sort_orders(&self) -> Result<Vec<PartitionOrder>, Self::Error>;

    /// Returns the number of blocks, with or without a fence.
    fn sort_block_count(&self) -> Result<u64, Self::Error>;
}

/// The error of the storage that a sort index is written to.
pub type SortPagesError<P> = <<P as WriteSortPages>::Reader as ReadSortPages>::Error;

/// Writes a sort index within one transaction.
pub trait WriteSortPages {
    /// Reads what has been written.
    type Reader: ReadSortPages;

    /// Returns the reader of the same transaction.
    fn reader(&self) -> &Self::Reader;

    /// Returns the number of changes in all level-0 runs.
    fn level_zero_count(&self) -> Result<u64, SortPagesError<Self>>;

    /// Returns the number of positions in all blocks.
    fn level_one_count(&self) -> Result<u64, SortPagesError<Self>>;

    /// Appends a level-0 run of this many changes.
    fn append_run(&self, count: u64, bytes: &[u8]) -> Result<(), SortPagesError<Self>>;

    /// Deletes all level-0 runs.
    fn delete_runs(&self) -> Result<(), SortPagesError<Self>>;

    /// Inserts a block and returns its number.
    fn insert_sort_block(&self, bytes: &[u8]) -> Result<i64, SortPagesError<Self>>;

    /// Replaces the bytes of a block.
    fn replace_sort_block(&self, block: i64, bytes: &[u8]) -> Result<(), SortPagesError<Self>>;

    /// Deletes a block, without its fence.
    fn delete_sort_block(&self, block: i64) -> Result<(), SortPagesError<Self>>;

    /// Inserts a fence, or replaces the one at the same position.
    fn put_sort_fence(
        &self,
        order: PartitionOrder,
        fence: &SortFence,
    ) -> Result<(), SortPagesError<Self>>;

    /// Deletes the fence at a position.
    fn delete_sort_fence(
        &self,
        order: PartitionOrder,
        first: &SortPosition,
    ) -> Result<(), SortPagesError<Self>>;
}
