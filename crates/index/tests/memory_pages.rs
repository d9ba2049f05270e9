//! Pages in memory: the interface of the index over ordered maps, which checks its rules on the
//! way.

use larder_index::{Fence, IndexId, MalformedChunk, ReadPages, Segment, SegmentId, WritePages};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The largest chunk that fits into a page of 4,096 bytes.
const MAX_CHUNK_BYTES: usize = 4040;

/// The segment, the first term and the chunk of a fence.
type FenceKey = (SegmentId, Vec<u8>, i64);

/// The pages of any number of indexes.
#[derive(Default)]
pub(crate) struct MemoryPages {
    segments: RefCell<BTreeMap<SegmentId, StoredSegment>>,
    chunks: RefCell<BTreeMap<(SegmentId, i64), Vec<u8>>>,
    fences: RefCell<BTreeSet<FenceKey>>,
    last_id: Cell<i64>,
    chunks_read: Cell<usize>,
}

struct StoredSegment {
    index: IndexId,
    segment: Segment,
}

impl MemoryPages {
    /// Returns the number of chunks that were read.
    pub(crate) fn chunks_read(&self) -> usize {
        self.chunks_read.get()
    }

    /// Returns the number of chunks.
    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.borrow().len()
    }

    /// Panics if a chunk or a fence belongs to no segment, or a chunk has no fence.
    pub(crate) fn check(&self) {
        let segments = self.segments.borrow();
        for (segment, chunk) in self.chunks.borrow().keys() {
            let chunks = &segments[segment].segment.chunks;
            assert!(chunks.contains(chunk), "chunk {chunk} is not in {chunks:?}");
        }
        for (segment, _, chunk) in &*self.fences.borrow() {
            let chunks = &segments[segment].segment.chunks;
            assert!(chunks.contains(chunk), "the fence of chunk {chunk} is not in {chunks:?}");
        }
        for (id, StoredSegment { segment, .. }) in &*segments {
            for chunk in segment.chunks.clone() {
                assert!(self.chunks.borrow().contains_key(&(*id, chunk)), "chunk {chunk}");
            }
            let fences = self.fences.borrow();
            let fenced = fences.iter().filter(|(fenced, ..)| fenced == id).count() as i64;
            let unfenced = i64::from(segment.chunks.contains(&0));
            assert_eq!(fenced + unfenced, segment.chunks.end - segment.chunks.start);
            let target = segment.merged_into;
            assert!(target.is_none_or(|target| segments.contains_key(&target)), "{target:?}");
        }
    }

    /// Replaces the bytes of all chunks.
    pub(crate) fn damage(&self, change: impl Fn(&mut Vec<u8>)) {
        self.chunks.borrow_mut().values_mut().for_each(change);
    }

    fn update(&self, id: SegmentId, change: impl FnOnce(&mut StoredSegment)) {
        change(self.segments.borrow_mut().get_mut(&id).expect("a segment"));
    }
}

impl ReadPages for MemoryPages {
    type Error = MalformedChunk;

    fn corruption(malformed: MalformedChunk) -> MalformedChunk {
        malformed
    }

    fn segments(&self, index: IndexId) -> Result<Vec<Segment>, MalformedChunk> {
        let segments = self.segments.borrow();
        let mut found: Vec<Segment> = segments
            .values()
            .filter(|stored| stored.index == index)
            .map(|stored| stored.segment.clone())
            .collect();
        found.sort_by_key(|segment| (segment.max_seq, segment.id));
        Ok(found)
    }

    fn read_chunk<T>(
        &self,
        segment: SegmentId,
        chunk: i64,
        read: impl FnOnce(&[u8]) -> Result<T, MalformedChunk>,
    ) -> Result<T, MalformedChunk> {
        self.chunks_read.set(self.chunks_read.get() + 1);
        let chunks = self.chunks.borrow();
        read(chunks.get(&(segment, chunk)).ok_or(MalformedChunk)?)
    }

    fn last_fence_before(
        &self,
        segment: SegmentId,
        term: &[u8],
    ) -> Result<Option<i64>, MalformedChunk> {
        let (from, to) = ((segment, Vec::new(), 0), (segment, term.to_vec(), 0));
        let fences = self.fences.borrow();
        let last = fences.range(from..to).next_back();
        Ok(last.map(|(.., chunk)| *chunk))
    }
}

impl WritePages for MemoryPages {
    fn create_segment(
        &self,
        index: IndexId,
        max_seq: i64,
        has_oversized: bool,
    ) -> Result<SegmentId, MalformedChunk> {
        self.last_id.set(self.last_id.get() + 1);
        let id = SegmentId(self.last_id.get());
        let segment = Segment {
            id,
            max_seq,
            chunks: 0..0,
            from_term: Vec::new(),
            bytes: 0,
            has_oversized,
            merged_into: None,
        };
        self.segments.borrow_mut().insert(id, StoredSegment { index, segment });
        Ok(id)
    }

    fn end(&self, segment: SegmentId) -> Result<i64, MalformedChunk> {
        Ok(self.segments.borrow()[&segment].segment.chunks.end)
    }

    fn set_end(
        &self,
        segment: SegmentId,
        next_chunk: i64,
        added_bytes: i64,
    ) -> Result<(), MalformedChunk> {
        self.update(segment, |stored| {
            stored.segment.chunks.end = next_chunk;
            stored.segment.bytes += added_bytes;
        });
        Ok(())
    }

    fn insert_chunk(
        &self,
        segment: SegmentId,
        chunk: i64,
        bytes: &[u8],
    ) -> Result<(), MalformedChunk> {
        assert!(bytes.len() <= MAX_CHUNK_BYTES, "{} bytes", bytes.len());
        let before = self.chunks.borrow_mut().insert((segment, chunk), bytes.to_vec());
        assert!(before.is_none(), "chunk {chunk} is written twice");
        Ok(())
    }

    fn insert_fence(&self, fence: Fence<'_>) -> Result<(), MalformedChunk> {
        let key = (fence.segment, fence.first_term.to_vec(), fence.chunk);
        let is_new = self.fences.borrow_mut().insert(key);
        assert!(is_new, "the fence of chunk {} is written twice", fence.chunk);
        Ok(())
    }

    fn set_merge_target(
        &self,
        segment: SegmentId,
        target: SegmentId,
    ) -> Result<(), MalformedChunk> {
        self.update(segment, |stored| stored.segment.merged_into = Some(target));
        Ok(())
    }

    fn delete_chunks(&self, segment: SegmentId, chunks: Range<i64>) -> Result<(), MalformedChunk> {
        let is_deleted = |key: &(SegmentId, i64)| key.0 == segment && chunks.contains(&key.1);
        self.chunks.borrow_mut().retain(|key, _| !is_deleted(key));
        Ok(())
    }

    fn set_start(
        &self,
        segment: SegmentId,
        first_chunk: i64,
        from_term: &[u8],
    ) -> Result<(), MalformedChunk> {
        self.fences.borrow_mut().retain(|(found, first_term, chunk)| {
            let is_deleted = *found == segment && *chunk < first_chunk;
            assert!(!is_deleted || first_term.as_slice() <= from_term);
            !is_deleted
        });
        self.update(segment, |stored| {
            stored.segment.chunks.start = first_chunk;
            stored.segment.from_term = from_term.to_vec();
        });
        Ok(())
    }

    fn delete_segment(&self, segment: &Segment) -> Result<(), MalformedChunk> {
        self.delete_chunks(segment.id, segment.chunks.clone())?;
        self.fences.borrow_mut().retain(|(found, ..)| *found != segment.id);
        self.segments.borrow_mut().remove(&segment.id);
        Ok(())
    }
}
