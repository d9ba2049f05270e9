//! The inputs of a merge: segments read term by term, in step.
//!
//! An input reads each of its chunks once, from the first to the last, and holds one chunk and the
//! packed postings of its current term.

use crate::chunk::{ChunkEntries, PackedPostings, Postings};
use crate::pages::{ReadPages, Segment, WritePages};
use crate::segment::{SegmentReader, corruption};
use crate::term::{CHANGED_ITEMS_TERM, prefix_number};
use std::cmp::Ordering;
use std::mem;

/// Up to this many changed items of the inputs are held in memory; the changed items of further
/// inputs are read again when they are needed.
const MAX_PRELOADED_ITEMS: usize = 4096;

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
    /// The items that a newer input of the merge lists as changed, ascending: their postings in
    /// this input are stale.
    superseded_items: Vec<i64>,
    /// The chunk that is being read: its number, its bytes, and the offset of the next entry.
    chunk_number: i64,
    chunk: Vec<u8>,
    offset: usize,
    /// The chunk in which the current term begins.
    term_chunk: i64,
    term: Vec<u8>,
    /// See [`prefix_number`].
    term_prefix: u64,
    /// The postings of the current term in the first `entry_count` of these buffers, packed:
    /// unpacked, the postings of a frequent term take eight times the memory.
    packed: Vec<PackedPostings>,
    entry_count: usize,
    is_ended: bool,
}

impl MergeInput {
    /// Opens the inputs of a merge, the oldest first, each at its first term.
    pub(crate) fn open<P: ReadPages>(
        pages: &P,
        segments: Vec<Segment>,
    ) -> Result<Vec<MergeInput>, P::Error> {
        let changed_items = |segment: &Segment| -> Result<Vec<i64>, P::Error> {
            let mut items = Vec::new();
            SegmentReader::new(pages, segment).read_postings(CHANGED_ITEMS_TERM, &mut items)?;
            Ok(items)
        };
        // Most segments have new items only, which no other segment lists as changed: they need no
        // list.
        let (mut ranges, mut lists, mut listed) = (Vec::new(), Vec::new(), 0);
        for segment in &segments {
            let items = changed_items(segment)?;
            ranges.push(items.first().copied().zip(items.last().copied()));
            listed += items.len();
            lists.push((listed <= MAX_PRELOADED_ITEMS).then_some(items));
        }
        let is_overlap = |a: usize, b: usize| match (ranges.get(a), ranges.get(b)) {
            (Some(Some(a)), Some(Some(b))) => a.0 <= b.1 && b.0 <= a.1,
            _ => false,
        };
        let count = segments.len();
        let (mut inputs, mut newer) = (Vec::new(), Vec::new());
        for (place, segment) in segments.into_iter().enumerate().rev() {
            let mut superseded: Vec<i64> = Vec::new();
            if (0..count).any(|other| other != place && is_overlap(place, other)) {
                let items = match lists.get_mut(place).and_then(Option::take) {
                    Some(items) => items,
                    None => changed_items(&segment)?,
                };
                let is_superseded = |item: &i64| newer.binary_search(item).is_ok();
                superseded = items.iter().copied().filter(is_superseded).collect();
                newer.extend(items);
                newer.sort_unstable();
                newer.dedup();
            }
            let first_chunk = segment.chunks.start;
            let mut input = MergeInput {
                segment,
                superseded_items: superseded,
                chunk_number: first_chunk,
                chunk: Vec::new(),
                offset: 0,
                term_chunk: first_chunk,
                term: Vec::new(),
                term_prefix: 0,
                packed: Vec::new(),
                entry_count: 0,
                is_ended: false,
            };
            input.load_chunk(pages)?;
            input.advance(pages)?;
            while !input.is_ended && input.term < input.segment.from_term {
                input.advance(pages)?;
            }
            inputs.push(input);
        }
        inputs.reverse();
        Ok(inputs)
    }

    /// Returns whether the current term is this one.
    pub(crate) fn is_at_term(&self, term: &[u8]) -> bool {
        !self.is_ended && self.term == term
    }

    fn load_chunk<P: ReadPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        self.chunk.clear();
        self.offset = 0;
        if self.chunk_number < self.segment.chunks.end {
            let (number, chunk) = (self.chunk_number, &mut self.chunk);
            pages.read_chunk(self.segment.id, number, |bytes| {
                chunk.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the items that a newer input lists as changed, ascending.
    pub(crate) fn superseded_items(&self) -> &[i64] {
        &self.superseded_items
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
    pub(crate) fn advance<P: ReadPages>(&mut self, pages: &P) -> Result<i64, P::Error> {
        self.entry_count = 0;
        self.load_next_if_read(pages)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = ChunkEntries::new(&chunk[self.offset..]);
        let first = entries.next().map_err(P::corruption)?;
        let left = entries.remaining_bytes();
        if let Some(entry) = first {
            if entry.shared > self.term.len() {
                return Err(corruption::<P>());
            }
            self.term.truncate(entry.shared);
            self.term.extend_from_slice(entry.suffix);
            self.term_prefix = prefix_number(&self.term);
            self.push_entry(&entry.postings);
        }
        self.is_ended = first.is_none();
        self.chunk = chunk;
        self.term_chunk = self.chunk_number;
        let mut read = self.advance_offset(left);
        // A frequent term has several entries.
        while !self.is_ended && self.read_same_term(pages, &mut read)? {}
        Ok(read)
    }

    /// Adds the next entry if it continues the current term; else returns false.
    fn read_same_term<P: ReadPages>(
        &mut self,
        pages: &P,
        read: &mut i64,
    ) -> Result<bool, P::Error> {
        self.load_next_if_read(pages)?;
        let chunk = mem::take(&mut self.chunk);
        let mut entries = ChunkEntries::new(&chunk[self.offset..]);
        let next = match entries.has_more_of_term(&self.term) {
            true => entries.next().map_err(P::corruption)?,
            false => None,
        };
        let left = entries.remaining_bytes();
        if let Some(entry) = next {
            self.push_entry(&entry.postings);
        }
        let more = next.is_some();
        self.chunk = chunk;
        *read += self.advance_offset(left);
        Ok(more)
    }

    /// Loads the next chunk if the current one has been read.
    fn load_next_if_read<P: ReadPages>(&mut self, pages: &P) -> Result<(), P::Error> {
        if self.offset == self.chunk.len() && self.chunk_number < self.segment.chunks.end {
            self.chunk_number += 1;
            self.load_chunk(pages)?;
            if self.chunk.is_empty() && self.chunk_number < self.segment.chunks.end {
                return Err(corruption::<P>());
            }
        }
        Ok(())
    }

    /// Moves the offset to where `left` bytes of the chunk remain. Returns the number of bytes
    /// read.
    fn advance_offset(&mut self, left: usize) -> i64 {
        let end = self.chunk.len() - left;
        let read = (end - self.offset) as i64;
        self.offset = end;
        read
    }

    /// Returns the first chunk that is still needed: the chunk in which the current term begins.
    fn first_needed_chunk(&self) -> i64 {
        if self.is_ended { self.segment.chunks.end } else { self.term_chunk }
    }

    /// Deletes the chunks that have been read if they are at least `min_count`.
    /// [`MergeInput::finish_step`] has to follow in the same transaction.
    pub(crate) fn delete_read_chunks<P: WritePages>(
        &mut self,
        pages: &P,
        min_count: i64,
    ) -> Result<(), P::Error> {
        let end = self.first_needed_chunk();
        if end - self.segment.chunks.start < min_count {
            return Ok(());
        }
        pages.delete_chunks(self.segment.id, self.segment.chunks.start..end)?;
        self.segment.chunks.start = end;
        Ok(())
    }

    /// Deletes all that the merge has moved: the terms before `next_term`, or the whole segment if
    /// no term of any input remains.
    pub(crate) fn finish_step<P: WritePages>(
        &self,
        pages: &P,
        next_term: Option<&[u8]>,
    ) -> Result<(), P::Error> {
        let Some(next_term) = next_term else { return pages.delete_segment(&self.segment) };
        let first_chunk = self.first_needed_chunk();
        pages.delete_chunks(self.segment.id, self.segment.chunks.start..first_chunk)?;
        pages.set_start(self.segment.id, first_chunk, next_term)
    }
}
