//! Reading segments in place, and writing them.
//!
//! A lookup takes one step into the fences, and then reads block by block; no segment is ever
//! loaded whole.

use crate::block::{BlockBuilder, BlockEntries, CorruptBlock, PackedPostings, Postings};
use crate::segment_storage::{Fence, ReadSegments, Segment, SegmentId, WriteSegments};
use crate::word_block::FullBlocks;

/// Returns the error of the storage for a malformed block.
#[inline]
pub(crate) fn corruption<P: ReadSegments>() -> P::Error {
    P::corruption(CorruptBlock)
}

/// A function that is called with the term and the postings of each entry, until it returns false.
type EntryVisitor<'a, E> = dyn FnMut(&[u8], Postings<'_>) -> Result<bool, E> + 'a;

/// Reads one segment.
pub(crate) struct SegmentReader<'a, P> {
    pages: &'a P,
    segment: &'a Segment,
}

impl<'a, P: ReadSegments> SegmentReader<'a, P> {
    pub(crate) fn new(pages: &'a P, segment: &'a Segment) -> SegmentReader<'a, P> {
        SegmentReader { pages, segment }
    }

    /// Passes each entry from the term `from` on to `visit`, until that returns false. A frequent
    /// term has several entries, one after the other.
    pub(crate) fn for_each_entry(
        &self,
        from: &[u8],
        visit: &mut EntryVisitor<'_, P::Error>,
    ) -> Result<(), P::Error> {
        let from = from.max(&self.segment.from_term);
        let mut term = Vec::new();
        for block in self.find_block_before(from)?..self.segment.blocks.end {
            let is_continued = self.read_block(block, |bytes| {
                let mut entries = BlockEntries::new(bytes);
                if term.is_empty() {
                    let Some(entry) = entries.seek(from).map_err(P::corruption)? else {
                        return Ok(true);
                    };
                    term.extend_from_slice(from.get(..entry.shared).ok_or_else(corruption::<P>)?);
                    term.extend_from_slice(entry.suffix);
                    if !visit(&term, entry.postings)? {
                        return Ok(false);
                    }
                }
                while let Some(entry) = entries.next().map_err(P::corruption)? {
                    if entry.shared > term.len() {
                        return Err(corruption::<P>());
                    }
                    term.truncate(entry.shared);
                    term.extend_from_slice(entry.suffix);
                    if !visit(&term, entry.postings)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
            if !is_continued {
                break;
            }
        }
        Ok(())
    }

    /// Appends the items of a term to `items`, ascending.
    pub(crate) fn read_postings(&self, term: &[u8], items: &mut Vec<i64>) -> Result<(), P::Error> {
        self.for_each_entry(term, &mut |found, postings| {
            if found != term {
                return Ok(false);
            }
            postings.unpack(items).ok_or_else(corruption::<P>)?;
            Ok(true)
        })
    }

    /// Returns the number of postings of a term. Stops counting at `limit`.
    pub(crate) fn count_postings(&self, term: &[u8], limit: u64) -> Result<u64, P::Error> {
        let mut count: u64 = 0;
        self.for_each_entry(term, &mut |found, postings| {
            let is_same = found == term;
            count = count.saturating_add(if is_same { postings.count } else { 0 });
            Ok(is_same && count < limit)
        })?;
        Ok(count)
    }

    /// Returns the last block whose first term is less than `term`, else the first block. The
    /// postings of `term`, if it has any, begin in this block or in the next one.
    pub(crate) fn find_block_before(&self, term: &[u8]) -> Result<i64, P::Error> {
        let blocks = &self.segment.blocks;
        if blocks.end - blocks.start <= 1 {
            return Ok(blocks.start);
        }
        let position = self.pages.last_fence_before(self.segment.id, term)?;
        Ok(position.unwrap_or(blocks.start))
    }

    /// Passes a block to `read`. An empty block is corrupt: every block has an entry.
    pub(crate) fn read_block<T>(
        &self,
        block: i64,
        read: impl FnOnce(&[u8]) -> Result<T, P::Error>,
    ) -> Result<T, P::Error> {
        self.pages.read_block(self.segment.id, block, |bytes| match bytes {
            [] => Err(corruption::<P>()),
            bytes => read(bytes),
        })
    }
}

/// Appends blocks to a segment.
pub(crate) struct SegmentWriter<'a, P> {
    builder: BlockBuilder,
    appender: BlockAppender<'a, P>,
}

/// The end of a segment that is being written.
pub(crate) struct BlockAppender<'a, P> {
    pages: &'a P,
    segment: SegmentId,
    next_block: i64,
    added_bytes: i64,
}

impl<'a, P: WriteSegments> SegmentWriter<'a, P> {
    /// Begins to write an empty segment.
    pub(crate) fn begin(pages: &'a P, segment: SegmentId) -> SegmentWriter<'a, P> {
        SegmentWriter::continue_from(pages, segment, 0)
    }

    /// Continues a segment after its last block.
    pub(crate) fn open(pages: &'a P, segment: SegmentId) -> Result<SegmentWriter<'a, P>, P::Error> {
        Ok(SegmentWriter::continue_from(pages, segment, pages.end(segment)?))
    }

    fn continue_from(pages: &'a P, segment: SegmentId, next_block: i64) -> SegmentWriter<'a, P> {
        SegmentWriter {
            builder: BlockBuilder::default(),
            appender: BlockAppender::new(pages, segment, next_block),
        }
    }

    /// Adds a term and its items. Terms are added in ascending order, and so are the items of each.
    pub(crate) fn add(&mut self, term: &[u8], items: &[i64]) -> Result<(), P::Error> {
        let appender = &mut self.appender;
        self.builder.add(term, items, &mut |first, block| appender.append(first, block))
    }

    /// Adds a term whose whole posting list is packed already.
    pub(crate) fn add_packed(
        &mut self,
        term: &[u8],
        items: &PackedPostings,
    ) -> Result<(), P::Error> {
        let appender = &mut self.appender;
        self.builder.add_packed(term, items, &mut |first, block| appender.append(first, block))
    }

    /// Writes the last block and the end of the segment. Returns the number of bytes that were
    /// added.
    pub(crate) fn finish(mut self) -> Result<i64, P::Error> {
        let appender = &mut self.appender;
        self.builder.finish(&mut |first, block| appender.append(first, block))?;
        self.appender.finish()
    }
}

impl<'a, P: WriteSegments> BlockAppender<'a, P> {
    /// Begins before the block `next_block`, which is not written yet.
    pub(crate) fn new(pages: &'a P, segment: SegmentId, next_block: i64) -> BlockAppender<'a, P> {
        BlockAppender { pages, segment, next_block, added_bytes: 0 }
    }

    /// Writes the end of the segment. Returns the number of bytes that were added.
    pub(crate) fn finish(self) -> Result<i64, P::Error> {
        self.pages.set_end(self.segment, self.next_block, self.added_bytes)?;
        Ok(self.added_bytes)
    }

    /// Appends a block with this first term.
    pub(crate) fn append(&mut self, first_term: &[u8], bytes: &[u8]) -> Result<(), P::Error> {
        let (segment, block) = (self.segment, self.next_block);
        self.pages.insert_block(segment, block, bytes)?;
        // Terms before the first fence are in the first block.
        if block > 0 {
            self.pages.insert_fence(Fence { segment, first_term, block })?;
        }
        self.next_block += 1;
        self.added_bytes += bytes.len() as i64;
        Ok(())
    }

    /// Appends all blocks, and leaves none.
    pub(crate) fn append_all(&mut self, full: &mut FullBlocks) -> Result<(), P::Error> {
        if !full.is_empty() {
            full.iter().try_for_each(|(first_term, block)| self.append(first_term, block))?;
            full.clear();
        }
        Ok(())
    }
}
