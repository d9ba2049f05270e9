//! The inputs of a merge: segments read term by term, in step.
//!
//! An input reads each of its blocks once, from the first to the last, and holds one block and the
//! packed postings of its current term.

use crate::block::{BlockEntries, PackedPostings, Postings};
use crate::segment::corruption;
use crate::segment_storage::{ReadSegments, Segment, WriteSegments};
use crate::term::prefix_key;
use std::cmp::Ordering;
use std::mem;

/// The least of the current terms of all inputs.
#[derive(Clone, Copy)]
pub(crate) struct MinTerm {
    /// The first input with this current term.
    pub(crate) input: usize,
    /// Whether no other input has this current term.
    pub(crate) is_unique: bool,
}

impl MinTerm {
    /// Finds the least term; `None` if all inputs have ended.
    pub(crate) fn find(inputs: &[MergeInput]) -> Option<MinTerm> {
        let mut open = inputs.iter().enumerate().filter(|(_, input)| !input.is_ended);
        let (number, mut first) = open.next()?;
        let mut least = MinTerm { input: number, is_unique: true };
        for (number, input) in open {
            let order = input.term_prefix.cmp(&first.term_prefix);
            match order.then_with(|| input.term.cmp(&first.term)) {
                Ordering::Less => {
                    (least, first) = (MinTerm { input: number, is_unique: true }, input);
                }
                Ordering::Equal => least.is_unique = false,
                Ordering::Greater => {}
            }
        }
        Some(least)
    }

    pub(crate) fn term(self, inputs: &[MergeInput]) -> &[u8] {
        inputs.get(self.input).map_or(&[], |input| &input.term)
    }
}

/// A segment that is being merged into another one.
pub(crate) struct MergeInput {
    segment: Segment,
    /// The block that is being read: its number, its bytes, and the offset of the next entry.
    block_number: i64,
    block: Vec<u8>,
    offset: usize,
    /// The block in which the current term begins.
    term_block: i64,
    term: Vec<u8>,
    /// See [`prefix_key`].
    term_prefix: u64,
    /// The postings of the current term in the first `entry_count` of these buffers, packed:
    /// unpacked, the postings of a frequent term take eight times the memory.
    packed: Vec<PackedPostings>,
    entry_count: usize,
    is_ended: bool,
}

impl MergeInput {
    /// Opens the inputs of a merge, the oldest first, each at its first term.
    pub(crate) fn open<P: ReadSegments>(
        pages: &P,
        segments: Vec<Segment>,
    ) -> Result<Vec<MergeInput>, P::Error> {
        let mut inputs = Vec::with_capacity(segments.len());
        for segment in segments {
            let first_block = segment.blocks.start;
            let mut input = MergeInput {
                segment,
                block_number: first_block,
                block: Vec::new(),
                offset: 0,
                term_block: first_block,
                term: Vec::new(),
                term_prefix: 0,
                packed: Vec::new(),
                entry_count: 0,
                is_ended: false,
            };
            input.load_block(pages)?;
            input.advance(pages)?;
            while !input.is_ended && input.term < input.segment.from_term {
                input.advance(pages)?;
            }
            inputs.push(input);
        }
        Ok(inputs)
    }

    /// Returns whether the current term is this one.
    pub(crate) fn is_at_term(&self, term: &[u8]) -> bool {
        !self.is_ended && self.term == term
    }

    fn load_block<P: ReadSegments>(&mut self, pages: &P) -> Result<(), P::Error> {
        self.block.clear();
        self.offset = 0;
        if self.block_number < self.segment.blocks.end {
            let (number, block) = (self.block_number, &mut self.block);
            pages.read_block(self.segment.id, number, |bytes| {
                block.extend_from_slice(bytes);
                Ok(())
            })?;
            if self.block.is_empty() {
                return Err(corruption::<P>());
            }
        }
        Ok(())
    }

    /// Returns the postings of the current term.
    pub(crate) fn packed_postings(&self) -> &[PackedPostings] {
        self.packed.get(..self.entry_count).unwrap_or_default()
    }

    /// Returns the postings of the current term if they are few and in one entry.
    pub(crate) fn single_small_entry(&mut self) -> Option<&mut PackedPostings> {
        match self.entry_count {
            1 => self.packed.first_mut().filter(|packed| packed.is_small()),
            _ => None,
        }
    }

    /// Adds an entry of the current term.
    fn push_entry(&mut self, postings: &Postings<'_>) {
        if self.entry_count == self.packed.len() {
            self.packed.push(PackedPostings::default());
        }
        if let Some(packed) = self.packed.get_mut(self.entry_count) {
            packed.set(postings);
            self.entry_count += 1;
        }
    }

    /// Advances to the next term. Returns the number of bytes that were read.
    pub(crate) fn advance<P: ReadSegments>(&mut self, pages: &P) -> Result<i64, P::Error> {
        self.entry_count = 0;
        self.load_next_block_at_end(pages)?;
        let block = mem::take(&mut self.block);
        let mut entries = BlockEntries::new(&block[self.offset..]);
        let first = entries.next().map_err(P::corruption)?;
        let left = entries.remaining_bytes();
        if let Some(entry) = first {
            if entry.shared > self.term.len() {
                return Err(corruption::<P>());
            }
            self.term.truncate(entry.shared);
            self.term.extend_from_slice(entry.suffix);
            self.term_prefix = prefix_key(&self.term);
            self.push_entry(&entry.postings);
        }
        self.is_ended = first.is_none();
        self.block = block;
        self.term_block = self.block_number;
        let mut read = self.advance_offset(left);
        // A frequent term has several entries.
        while !self.is_ended && self.extend_current_term(pages, &mut read)? {}
        Ok(read)
    }

    /// Adds the next entry if it continues the current term; else returns false.
    fn extend_current_term<P: ReadSegments>(
        &mut self,
        pages: &P,
        read: &mut i64,
    ) -> Result<bool, P::Error> {
        self.load_next_block_at_end(pages)?;
        let block = mem::take(&mut self.block);
        let mut entries = BlockEntries::new(&block[self.offset..]);
        let next = match entries.has_more_of_term(&self.term) {
            true => entries.next().map_err(P::corruption)?,
            false => None,
        };
        let left = entries.remaining_bytes();
        if let Some(entry) = next {
            self.push_entry(&entry.postings);
        }
        let more = next.is_some();
        self.block = block;
        *read += self.advance_offset(left);
        Ok(more)
    }

    /// Loads the next block if the current one has been read.
    fn load_next_block_at_end<P: ReadSegments>(&mut self, pages: &P) -> Result<(), P::Error> {
        if self.offset == self.block.len() && self.block_number < self.segment.blocks.end {
            self.block_number += 1;
            self.load_block(pages)?;
        }
        Ok(())
    }

    /// Moves the offset to where `left` bytes of the block remain. Returns the number of bytes
    /// read.
    fn advance_offset(&mut self, left: usize) -> i64 {
        let end = self.block.len() - left;
        let read = (end - self.offset) as i64;
        self.offset = end;
        read
    }

    /// Returns the first block that is still needed: the block in which the current term begins.
    fn first_needed_block(&self) -> i64 {
        if self.is_ended { self.segment.blocks.end } else { self.term_block }
    }

    /// Deletes the blocks that have been read if they are at least `min_count`.
    /// [`MergeInput::finish_step`] has to follow in the same transaction.
    pub(crate) fn delete_read_blocks<P: WriteSegments>(
        &mut self,
        pages: &P,
        min_count: i64,
    ) -> Result<(), P::Error> {
        let end = self.first_needed_block();
        if end - self.segment.blocks.start < min_count {
            return Ok(());
        }
        pages.delete_blocks(self.segment.id, self.segment.blocks.start..end)?;
        self.segment.blocks.start = end;
        Ok(())
    }

    /// Deletes all that the merge has moved: the terms before `next_term`, or the whole segment if
    /// no term of any input remains.
    pub(crate) fn finish_step<P: WriteSegments>(
        &self,
        pages: &P,
        next_term: Option<&[u8]>,
    ) -> Result<(), P::Error> {
        let Some(next_term) = next_term else { return pages.delete_segment(&self.segment) };
        let first_block = self.first_needed_block();
        pages.delete_blocks(self.segment.id, self.segment.blocks.start..first_block)?;
        pages.set_start(self.segment.id, first_block, next_term)
    }
}
