//! A cursor over the rows of one term, which reads them by ranges.
//!
//! A query over several words asks each of them for one range of rows after the other, and most
//! words have no rows in most ranges. So the cursor keeps, for each segment, the rows in one block
//! and the range of row numbers in which they are all: a range within it is answered without
//! reading, and its neighbours by the block before or after, without a step into the fences.
//!
//! Separate from `word_index`, which reads whole terms and keeps nothing.

use crate::block::CorruptBlock;
use crate::position_list::PositionLists;
use crate::segment_storage::ReadSegments;
use crate::word_block::{MIN_CONTINUED_BYTES, PostingKey, WordEntry};
use crate::word_index::{WordIndex, WordSegmentReader};
use std::ops::Range;

/// The number after the greatest row.
const END_OF_ROWS: u64 = 1 << 32;

/// Reads the postings of one term by ranges of rows, in any order of the ranges, cheapest if they
/// are neighbours in either direction.
#[derive(Debug)]
pub struct WordCursor {
    term: Vec<u8>,
    segments: Vec<SegmentCursor>,
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
        for (reader, segment) in index.readers().zip(&mut self.segments) {
            segment.read_range(&reader, &self.term, &wanted, &mut |rows| {
                for row in rows {
                    let place = u64::from(*row) - first_row;
                    if let Some(word) = bits.get_mut((place / 64) as usize) {
                        *word |= 1 << (place % 64);
                    }
                }
            })?;
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
            segment.read_range(&reader, &self.term, &wanted, &mut |_| {})?;
            let Ok(number) = segment.rows.binary_search(&row) else { continue };
            let bytes = segment.read_positions(number, positions).map_err(P::corruption)?;
            if bytes >= MIN_CONTINUED_BYTES {
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

/// The rows of the term in one block of a segment.
#[derive(Debug, Default)]
struct SegmentCursor {
    /// The block that `rows` are in.
    block: i64,
    /// The rows of the term in this range are those in `rows`, and no others. It is empty before
    /// anything is read, or if no row is known yet.
    known: Range<u64>,
    /// Whether `block`, `known` and `rows` are valid.
    has_block: bool,
    rows: Vec<u32>,
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
    /// Passes the rows in `wanted` to `visit`, in ascending slices in any order.
    fn read_range<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        wanted: &Range<u64>,
        visit: &mut dyn FnMut(&[u32]),
    ) -> Result<(), P::Error> {
        if reader.segment.blocks.is_empty() || wanted.is_empty() {
            return Ok(());
        }
        let is_connected = wanted.start <= self.known.end && self.known.start <= wanted.end;
        if !self.has_block || !is_connected {
            self.seek(reader, term, wanted.start)?;
        }
        visit(self.rows_within(wanted));
        let middle = self.known.start;
        let has_part_before = wanted.start < middle;
        if has_part_before && self.known.end >= wanted.end {
            while wanted.start < self.known.start {
                self.step_back(reader, term)?;
                visit(self.rows_within(wanted));
            }
            return Ok(());
        }
        self.read_forward(reader, term, wanted, visit)?;
        if has_part_before {
            let before = wanted.start..middle;
            self.seek(reader, term, before.start)?;
            visit(self.rows_within(&before));
            self.read_forward(reader, term, &before, visit)?;
        }
        Ok(())
    }

    /// Steps forward to the end of `wanted`.
    fn read_forward<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        wanted: &Range<u64>,
        visit: &mut dyn FnMut(&[u32]),
    ) -> Result<(), P::Error> {
        while self.known.end < wanted.end {
            self.step_forward(reader, term)?;
            visit(self.rows_within(wanted));
        }
        Ok(())
    }

    /// Returns the rows within a range.
    fn rows_within(&self, range: &Range<u64>) -> &[u32] {
        let start = self.rows.partition_point(|row| u64::from(*row) < range.start);
        let rows = self.rows.get(start..).unwrap_or_default();
        let count = rows.partition_point(|row| u64::from(*row) < range.end);
        rows.get(..count).unwrap_or_default()
    }

    /// Reads the block in which a row of the term would be, or the one before it.
    fn seek<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        row: u64,
    ) -> Result<(), P::Error> {
        let first_row = u32::try_from(row).unwrap_or(u32::MAX);
        let block = reader.find_block_before(PostingKey { term, first_row })?;
        self.clear();
        let edges = self.read_block(reader, term, block)?;
        (self.block, self.known, self.has_block) = (block, edges.known, true);
        Ok(())
    }

    /// Reads the next block.
    fn step_forward<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
    ) -> Result<(), P::Error> {
        let block = self.block + 1;
        let edges = self.read_block(reader, term, block)?;
        if edges.has_term {
            let start = self.known.end;
            (self.block, self.known) = (block, start..edges.known.end.max(start));
        } else {
            self.known.end = END_OF_ROWS;
        }
        Ok(())
    }

    /// Reads the block before.
    fn step_back<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
    ) -> Result<(), P::Error> {
        let block = self.block - 1;
        let edges = self.read_block(reader, term, block)?;
        if edges.has_term {
            let end = self.known.start;
            (self.block, self.known) = (block, edges.known.start.min(end)..end);
        } else {
            self.known.start = 0;
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.lists.clear();
        self.list_ends.clear();
    }

    /// Replaces the rows by those of a block, unless it has none of the term.
    fn read_block<P: ReadSegments>(
        &mut self,
        reader: &WordSegmentReader<'_, P>,
        term: &[u8],
        block: i64,
    ) -> Result<BlockEdges, P::Error> {
        let start = reader.start().map_err(P::corruption)?;
        let is_first = block == reader.segment.blocks.start;
        let is_last = block + 1 >= reader.segment.blocks.end;
        let read = reader.read_block(block, |bytes| {
            self.read_entries(bytes, term, start, is_first, is_last).map_err(P::corruption)
        });
        if read.is_err() {
            self.has_block = false;
        }
        read
    }

    fn read_entries(
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
                self.clear();
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

    /// Replaces `positions` by those of the row with this number; by none if the term has none.
    /// Returns the number of bytes of its list.
    fn read_positions(
        &mut self,
        number: usize,
        positions: &mut Vec<u32>,
    ) -> Result<usize, CorruptBlock> {
        if self.lists.is_empty() {
            return Ok(0);
        }
        while self.list_ends.len() < number {
            let start = self.list_ends.last().copied().unwrap_or(0);
            let mut lists = PositionLists::new(self.lists.get(start..).ok_or(CorruptBlock)?);
            self.list_ends.push(start + lists.skip(1)?.len());
        }
        let start = number.checked_sub(1).and_then(|before| self.list_ends.get(before)).copied();
        let bytes = self.lists.get(start.unwrap_or(0)..).ok_or(CorruptBlock)?;
        let mut lists = PositionLists::new(bytes);
        lists.read(positions)?;
        Ok(bytes.len() - lists.remaining_bytes().len())
    }
}
