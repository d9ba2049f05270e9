//! A cursor over the rows of one term, which reads them by ranges.
//!
//! A query over several words asks each of them for one range of rows after the other, and most
//! words have no rows in most ranges. So the cursor keeps, for each segment, a *window*: the rows
//! in neighbouring blocks, and the range of row numbers in which they are all. A range within it is
//! answered without reading, and its neighbours by the blocks before or after, without a step into
//! the fences.
//!
//! Separate from `word_index`, which reads whole terms and keeps nothing, and from `phrase_cursor`,
//! which compares the positions of several words.

use crate::block::CorruptBlock;
use crate::position_list::PositionLists;
use crate::segment::corruption;
use crate::segment_storage::ReadSegments;
use crate::word_block::{MIN_CONTINUED_BYTES, PostingKey, WordEntry};
use crate::word_index::{WordIndex, WordSegmentReader};
use std::ops::Range;

/// The number after the greatest row.
pub(crate) const END_OF_ROWS: u64 = 1 << 32;

/// A window with more rows, or with more bytes of positions, is not extended but begun anew.
const MAX_WINDOW_ROWS: usize = 1 << 14;
const MAX_WINDOW_BYTES: usize = 1 << 16;

/// Reads the postings of one term by ranges of rows, in any order of the ranges, cheapest if they
/// are neighbours in either direction.
#[derive(Debug)]
pub struct WordCursor {
    term: Vec<u8>,
    pub(crate) segments: Vec<SegmentCursor>,
}

impl<P: ReadSegments> WordIndex<'_, P> {
    /// Returns a cursor over the rows of a term, for this index only. Nothing is read yet.
    #[must_use]
    pub fn cursor(&self, term: &[u8]) -> WordCursor {
        let segments = std::iter::repeat_with(SegmentCursor::default);
        WordCursor { term: term.to_vec(), segments: segments.take(self.segment_count()).collect() }
    }
}

impl WordCursor {
    /// Returns the term.
    #[must_use]
    pub fn term(&self) -> &[u8] {
        &self.term
    }

    /// Sets the bits of the rows that have the term, from `first_row` on: row `first_row + n` is
    /// the bit `n % 64` of the word `n / 64`. Bits that are set already stay. `index` is the one
    /// that the cursor is of.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn rows_in_range<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        first_row: u32,
        bits: &mut [u64],
    ) -> Result<(), P::Error> {
        let first_row = u64::from(first_row);
        let wanted = first_row..(first_row + bits.len() as u64 * 64).min(END_OF_ROWS);
        self.read_range(index, &wanted)?;
        for segment in &self.segments {
            for row in segment.rows_within(&wanted) {
                let place = u64::from(*row) - first_row;
                if let Some(word) = bits.get_mut((place / 64) as usize) {
                    *word |= 1 << (place % 64);
                }
            }
        }
        Ok(())
    }

    /// Reads the rows in a range into the windows.
    pub(crate) fn read_range<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        wanted: &Range<u64>,
    ) -> Result<(), P::Error> {
        for (reader, segment) in index.readers().zip(&mut self.segments) {
            segment.read_range(&reader, &self.term, wanted)?;
        }
        Ok(())
    }

    /// Replaces `positions` by those of the term in a row, in ascending order. Returns false if the
    /// row has none. `index` is the one that the cursor is of.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn positions<P: ReadSegments>(
        &mut self,
        index: &WordIndex<'_, P>,
        row: u32,
        positions: &mut Vec<u32>,
    ) -> Result<bool, P::Error> {
        positions.clear();
        let wanted = u64::from(row)..u64::from(row) + 1;
        for (reader, segment) in index.readers().zip(&mut self.segments) {
            segment.read_range(&reader, &self.term, &wanted)?;
            let Ok(number) = segment.rows.binary_search(&row) else { continue };
            segment.find_lists(number + 1).map_err(P::corruption)?;
            let Some(list) = segment.list_place(number) else { break };
            let list = segment.lists.get(list).unwrap_or_default();
            PositionLists::new(list).read(positions).map_err(P::corruption)?;
            if list.len() >= MIN_CONTINUED_BYTES {
                read_continued_positions(&reader, &self.term, row, positions)?;
            }
            break;
        }
        Ok(!positions.is_empty())
    }
}

/// Appends the positions of a row that continue those of its entry, in entries of their own.
fn read_continued_positions<P: ReadSegments>(
    reader: &WordSegmentReader<'_, P>,
    term: &[u8],
    row: u32,
    positions: &mut Vec<u32>,
) -> Result<(), P::Error> {
    let mut part = Vec::new();
    reader.for_each_entry(term, row, &mut |found, entry| {
        if found != term || entry.first_row != row {
            return Ok(false);
        }
        if entry.count == 0 {
            PositionLists::new(entry.positions).read(&mut part).map_err(P::corruption)?;
            positions.extend_from_slice(&part);
        }
        Ok(true)
    })
}

/// The rows of the term in neighbouring blocks of a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentCursor {
    /// The first and the last block that `rows` are in.
    first_block: i64,
    last_block: i64,
    /// The rows of the term in this range are those in `rows`, and no others. It is empty before
    /// anything is read, or if no row is known yet.
    known: Range<u64>,
    /// Whether the blocks, `known` and `rows` are valid.
    has_block: bool,
    /// Whether rows of the last block are forgotten.
    is_cut: bool,
    pub(crate) rows: Vec<u32>,
    /// The lists of positions of the rows; empty if the term has none.
    lists: Vec<u8>,
    /// The end of each list that has been passed.
    list_ends: Vec<usize>,
}

/// The rows of the term that a block makes known.
struct BlockEdges {
    has_term: bool,
    /// The range in which the block has all rows.
    known: Range<u64>,
}

impl SegmentCursor {
    /// Reads the rows in `wanted` into the window.
    fn read_range<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        wanted: &Range<u64>,
    ) -> Result<(), P::Error> {
        if reader.segment.blocks.is_empty() || wanted.is_empty() {
            return Ok(());
        }
        if self.has_block && self.known.start <= wanted.start && wanted.end <= self.known.end {
            return Ok(());
        }
        let is_connected = wanted.start <= self.known.end && self.known.start <= wanted.end;
        let is_small = self.rows.len() <= MAX_WINDOW_ROWS && self.lists.len() <= MAX_WINDOW_BYTES;
        let read = if self.has_block && is_connected && is_small {
            self.extend_range(reader, term, wanted)
        } else {
            self.seek(reader, term, wanted)
        };
        self.has_block = read.is_ok();
        read
    }

    /// Extends the window in both directions.
    fn extend_range<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        wanted: &Range<u64>,
    ) -> Result<(), P::Error> {
        if self.is_cut && self.known.end < wanted.end {
            return self.seek(reader, term, wanted);
        }
        if wanted.start < self.known.start && wanted.end < self.known.end {
            self.forget_from(wanted.end).map_err(P::corruption)?;
        }
        while wanted.start < self.known.start {
            self.step_back(reader, term)?;
        }
        match self.known.end < wanted.end {
            true => self.read_forward(reader, term, self.last_block + 1, wanted.end),
            false => Ok(()),
        }
    }

    /// Begins the window with the block in which the first row would be, or the one before it.
    fn seek<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        wanted: &Range<u64>,
    ) -> Result<(), P::Error> {
        let first_row = u32::try_from(wanted.start).unwrap_or(u32::MAX);
        let block = reader.find_block_before(PostingKey { term, first_row })?;
        self.clear();
        self.has_block = false;
        self.first_block = block;
        self.read_forward(reader, term, block, wanted.end)
    }

    /// Reads blocks until all rows before `end` are known, at least one.
    fn read_forward<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        first_block: i64,
        end: u64,
    ) -> Result<(), P::Error> {
        let start = reader.start().map_err(P::corruption)?;
        let blocks = &reader.segment.blocks;
        let mut block = first_block;
        reader.read_blocks(first_block, &mut |bytes| {
            let (is_first, is_last) = (block == blocks.start, block + 1 >= blocks.end);
            let edges =
                self.add_block(bytes, term, start, is_first, is_last).map_err(P::corruption)?;
            self.known.end = match (self.has_block, edges.has_term) {
                (true, true) => edges.known.end.max(self.known.end),
                (true, false) => END_OF_ROWS,
                (false, _) => {
                    self.known.start = edges.known.start;
                    edges.known.end
                }
            };
            (self.has_block, self.last_block) = (true, block);
            block += 1;
            Ok(self.known.end < end)
        })?;
        if self.has_block && self.known.end >= end { Ok(()) } else { Err(corruption::<P>()) }
    }

    /// Reads the block before the window.
    fn step_back<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
    ) -> Result<(), P::Error> {
        let start = reader.start().map_err(P::corruption)?;
        let block = self.first_block - 1;
        let is_first = block == reader.segment.blocks.start;
        let rows = std::mem::take(&mut self.rows);
        let lists = std::mem::take(&mut self.lists);
        self.list_ends.clear();
        let edges = reader.read_block(block, |bytes| {
            self.add_block(bytes, term, start, is_first, false).map_err(P::corruption)
        })?;
        self.rows.extend_from_slice(&rows);
        self.lists.extend_from_slice(&lists);
        match edges.has_term {
            true => self.known.start = edges.known.start.min(self.known.start),
            false => self.known.start = 0,
        }
        self.first_block = block;
        Ok(())
    }

    /// Forgets the rows from `end` on, so that steps back do not move them.
    fn forget_from(&mut self, end: u64) -> Result<(), CorruptBlock> {
        let count = self.rows.partition_point(|row| u64::from(*row) < end);
        self.find_lists(count)?;
        let bytes = count.checked_sub(1).and_then(|last| self.list_ends.get(last));
        self.lists.truncate(bytes.copied().unwrap_or_default());
        self.list_ends.truncate(count);
        self.rows.truncate(count);
        (self.known.end, self.is_cut) = (end, true);
        Ok(())
    }

    fn clear(&mut self) {
        self.is_cut = false;
        self.rows.clear();
        self.lists.clear();
        self.list_ends.clear();
        self.known = 0..0;
    }

    /// Returns the rows within a range.
    pub(crate) fn rows_within(&self, range: &Range<u64>) -> &[u32] {
        self.rows.get(self.places_within(range)).unwrap_or_default()
    }

    /// Returns the places of the rows within a range.
    pub(crate) fn places_within(&self, range: &Range<u64>) -> Range<usize> {
        let start = self.rows.partition_point(|row| u64::from(*row) < range.start);
        let rows = self.rows.get(start..).unwrap_or_default();
        start..start + rows.partition_point(|row| u64::from(*row) < range.end)
    }

    /// Appends the rows of a block.
    fn add_block(
        &mut self,
        mut rest: &[u8],
        term: &[u8],
        start: PostingKey<'_>,
        is_first: bool,
        is_last: bool,
    ) -> Result<BlockEdges, CorruptBlock> {
        let mut found = Vec::new();
        let mut edges = BlockEdges { has_term: false, known: 0..0 };
        let (mut is_after_other, mut is_ended) = (is_first, is_last);
        while let Some(entry) = WordEntry::read(&mut rest, &mut found)? {
            let key = PostingKey { term: &found, first_row: entry.first_row };
            if found.as_slice() < term || key < start {
                is_after_other = true;
                continue;
            }
            if found.as_slice() > term {
                is_ended = true;
                break;
            }
            if !edges.has_term {
                edges.has_term = true;
                if !is_after_other {
                    // The row of a continuing entry is in an earlier block.
                    edges.known.start = u64::from(entry.first_row) + u64::from(entry.count == 0);
                }
            }
            self.add_entry(&entry)?;
            let last = self.rows.last().map_or(entry.first_row, |last| entry.first_row.max(*last));
            edges.known.end = u64::from(last) + 1;
        }
        if is_ended {
            edges.known.end = END_OF_ROWS;
        }
        Ok(edges)
    }

    /// Appends the rows of an entry and their lists of positions.
    fn add_entry(&mut self, entry: &WordEntry<'_>) -> Result<(), CorruptBlock> {
        if self.rows.last().is_some_and(|last| entry.count > 0 && *last >= entry.first_row) {
            return Err(CorruptBlock);
        }
        entry.decode_rows(&mut self.rows)?;
        if entry.count > 0 {
            self.lists.extend_from_slice(entry.positions);
        }
        Ok(())
    }

    /// Finds the lists of the first `count` rows.
    pub(crate) fn find_lists(&mut self, count: usize) -> Result<(), CorruptBlock> {
        if self.lists.is_empty() || self.list_ends.len() >= count {
            return Ok(());
        }
        let mut end = self.list_ends.last().copied().unwrap_or(0);
        self.list_ends.reserve(count - self.list_ends.len());
        for _ in self.list_ends.len()..count {
            match self.lists.get(end) {
                // A list of one position has no further bytes.
                Some(&head @ 0..0x80) => {
                    let length = (head >> 1) & (head & 1).wrapping_sub(1);
                    end += 1 + usize::from(length);
                }
                _ => {
                    let mut lists = PositionLists::new(self.lists.get(end..).ok_or(CorruptBlock)?);
                    end += lists.skip(1)?.len();
                }
            }
            self.list_ends.push(end);
        }
        if end > self.lists.len() { Err(CorruptBlock) } else { Ok(()) }
    }

    /// Returns the lists of positions of all rows, one after the other.
    pub(crate) fn lists(&self) -> &[u8] {
        &self.lists
    }

    /// Returns the place of the list of the row with this number, which
    /// [`SegmentCursor::find_lists`] has found; `None`: the term has no positions.
    #[inline]
    pub(crate) fn list_place(&self, number: usize) -> Option<Range<usize>> {
        let start = match number.checked_sub(1) {
            Some(before) => *self.list_ends.get(before)?,
            None => 0,
        };
        Some(start..*self.list_ends.get(number)?)
    }
}
