//! The pages of a sort index in memory, which check the rules of the interface on the way.

use larder_index::{
    ChunkSeek, MalformedChunk, PartitionOrder, ReadSortPages, RunVisitor, SortFence, SortPosition,
    WriteSortPages,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The largest chunk that fits into a page of 4,096 bytes.
const MAX_CHUNK_BYTES: usize = 4040;

/// The order and the first position of a chunk.
type FenceKey = (PartitionOrder, SortPosition);

/// The pages of a sort index.
#[derive(Default)]
pub(crate) struct MemorySortPages {
    /// The number of positions, and the number of the chunk.
    fences: RefCell<BTreeMap<FenceKey, (u64, i64)>>,
    chunks: RefCell<BTreeMap<i64, Vec<u8>>>,
    runs: RefCell<Vec<(u64, Vec<u8>)>>,
    last_chunk: Cell<i64>,
    chunks_read: Cell<usize>,
    chunks_written: Cell<usize>,
}

impl MemorySortPages {
    /// Returns the number of chunks that were read.
    pub(crate) fn chunks_read(&self) -> usize {
        self.chunks_read.get()
    }

    /// Returns the number of chunks that were written.
    pub(crate) fn chunks_written(&self) -> usize {
        self.chunks_written.get()
    }

    /// Returns the number of level-0 runs.
    pub(crate) fn run_count(&self) -> usize {
        self.runs.borrow().len()
    }

    /// Returns the bytes of all chunks.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunks.borrow().values().map(Vec::len).sum()
    }

    /// Returns whether a chunk, a fence or a run has these bytes.
    pub(crate) fn has_bytes(&self, bytes: &[u8]) -> bool {
        let has = |text: &[u8]| text.windows(bytes.len()).any(|window| window == bytes);
        self.chunks.borrow().values().any(|chunk| has(chunk))
            || self.fences.borrow().keys().any(|(_, first)| has(&first.key))
            || self.runs.borrow().iter().any(|(_, run)| has(run))
    }

    /// Replaces the bytes of all chunks and runs.
    pub(crate) fn damage(&self, change: impl Fn(&mut Vec<u8>)) {
        self.chunks.borrow_mut().values_mut().for_each(&change);
        self.runs.borrow_mut().iter_mut().for_each(|(_, run)| change(run));
    }

    fn find_fence(&self, order: PartitionOrder, seek: ChunkSeek<'_>) -> Option<SortFence> {
        let fences = self.fences.borrow();
        let of_order = fences.iter().filter(|((found, _), _)| *found == order);
        let mut wanted = of_order.map(|((_, first), (count, chunk))| SortFence {
            first: first.clone(),
            count: *count,
            chunk: *chunk,
        });
        match seek {
            ChunkSeek::First => wanted.next(),
            ChunkSeek::Last => wanted.next_back(),
            ChunkSeek::After(position) => wanted.find(|fence| fence.first > *position),
            ChunkSeek::AtOrBefore(position) => {
                wanted.take_while(|fence| fence.first <= *position).last()
            }
            ChunkSeek::Before(position) => {
                wanted.take_while(|fence| fence.first < *position).last()
            }
        }
    }
}

impl ReadSortPages for MemorySortPages {
    type Error = MalformedChunk;

    fn sort_corruption(malformed: MalformedChunk) -> MalformedChunk {
        malformed
    }

    fn read_sort_chunk<T>(
        &self,
        order: PartitionOrder,
        seek: ChunkSeek<'_>,
        read: impl FnOnce(SortFence, &[u8]) -> Result<T, MalformedChunk>,
    ) -> Result<Option<T>, MalformedChunk> {
        let Some(fence) = self.find_fence(order, seek) else { return Ok(None) };
        self.chunks_read.set(self.chunks_read.get() + 1);
        let chunks = self.chunks.borrow();
        let bytes = chunks.get(&fence.chunk).ok_or(MalformedChunk)?;
        read(fence, bytes).map(Some)
    }

    fn next_fence(
        &self,
        order: PartitionOrder,
        position: &SortPosition,
    ) -> Result<Option<SortPosition>, MalformedChunk> {
        Ok(self.find_fence(order, ChunkSeek::After(position)).map(|fence| fence.first))
    }

    fn for_each_fence(
        &self,
        order: PartitionOrder,
        each: &mut dyn FnMut(SortFence),
    ) -> Result<(), MalformedChunk> {
        for ((found, first), (count, chunk)) in &*self.fences.borrow() {
            if *found == order {
                each(SortFence { first: first.clone(), count: *count, chunk: *chunk });
            }
        }
        Ok(())
    }

    fn for_each_run(
        &self,
        each: &mut RunVisitor<'_, MalformedChunk>,
    ) -> Result<(), MalformedChunk> {
        self.runs.borrow().iter().try_for_each(|(_, run)| each(run))
    }

    fn sort_orders(&self) -> Result<Vec<PartitionOrder>, MalformedChunk> {
        let mut orders: Vec<PartitionOrder> =
            self.fences.borrow().keys().map(|(order, _)| *order).collect();
        orders.dedup();
        Ok(orders)
    }

    fn sort_chunk_count(&self) -> Result<u64, MalformedChunk> {
        Ok(self.chunks.borrow().len() as u64)
    }
}

impl WriteSortPages for MemorySortPages {
    type Reader = MemorySortPages;

    fn reader(&self) -> &MemorySortPages {
        self
    }

    fn level_zero_count(&self) -> Result<u64, MalformedChunk> {
        Ok(self.runs.borrow().iter().map(|(count, _)| count).sum())
    }

    fn level_one_count(&self) -> Result<u64, MalformedChunk> {
        Ok(self.fences.borrow().values().map(|(count, _)| count).sum())
    }

    fn append_run(&self, count: u64, bytes: &[u8]) -> Result<(), MalformedChunk> {
        self.runs.borrow_mut().push((count, bytes.to_vec()));
        Ok(())
    }

    fn delete_runs(&self) -> Result<(), MalformedChunk> {
        self.runs.borrow_mut().clear();
        Ok(())
    }

    fn insert_sort_chunk(&self, bytes: &[u8]) -> Result<i64, MalformedChunk> {
        self.last_chunk.set(self.last_chunk.get() + 1);
        self.chunks.borrow_mut().insert(self.last_chunk.get(), Vec::new());
        self.replace_sort_chunk(self.last_chunk.get(), bytes)?;
        Ok(self.last_chunk.get())
    }

    fn replace_sort_chunk(&self, chunk: i64, bytes: &[u8]) -> Result<(), MalformedChunk> {
        assert!(bytes.len() <= MAX_CHUNK_BYTES, "{} bytes", bytes.len());
        self.chunks_written.set(self.chunks_written.get() + 1);
        let before = self.chunks.borrow_mut().insert(chunk, bytes.to_vec());
        assert!(before.is_some(), "there is no chunk {chunk} to replace");
        Ok(())
    }

    fn delete_sort_chunk(&self, chunk: i64) -> Result<(), MalformedChunk> {
        let before = self.chunks.borrow_mut().remove(&chunk);
        assert!(before.is_some(), "there is no chunk {chunk} to delete");
        Ok(())
    }

    fn put_sort_fence(
        &self,
        order: PartitionOrder,
        fence: &SortFence,
    ) -> Result<(), MalformedChunk> {
        let key = (order, fence.first.clone());
        let mut fences = self.fences.borrow_mut();
        let replaced = fences.insert(key, (fence.count, fence.chunk));
        assert!(replaced.is_none_or(|(_, chunk)| chunk == fence.chunk), "{fence:?}");
        Ok(())
    }

    fn delete_sort_fence(
        &self,
        order: PartitionOrder,
        first: &SortPosition,
    ) -> Result<(), MalformedChunk> {
        let before = self.fences.borrow_mut().remove(&(order, first.clone()));
        assert!(before.is_some(), "there is no fence {first:?} to delete");
        Ok(())
    }
}
