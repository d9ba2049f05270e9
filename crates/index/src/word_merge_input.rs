//! The inputs of a merge of the word index: segments read entry by entry, in step.
//!
//! An input reads each of its blocks once, from the first to the last, and holds one block. An
//! entry is moved as it is, or divided, if rows of another input are between its own or some of
//! its rows are dropped.

use crate::block::CorruptBlock;
use crate::merge_order::{MergeOrder, OrderedInput};
use crate::row_lists::RowLists;
use crate::segment::corruption;
use crate::segment_storage::{ReadSegments, Segment, WriteSegments};
use crate::term::prefix_key;
use crate::word_block::{PostingKey, WordEntry};
use std::cmp::Ordering;
use std::mem;
use std::ops::Range;

/// The entry with the least posting key among the current entries of all inputs.
#[derive(Clone, Copy)]
pub(crate) struct LeastEntry {
    /// The input.
    pub(crate) input: usize,
    /// The least first row of the same term in another input.
    pub(crate) next_row: Option<u32>,
}

/// Returns the least entry; `None` if all inputs have ended.
pub(crate) fn find_least(order: &MergeOrder, inputs: &[WordMergeInput]) -> Option<LeastEntry> {
    let input = order.least_input()?;
    let first = inputs.get(input)?;
    let next = order.next_input().and_then(|next| inputs.get(next));
    let next = next.filter(|next| next.term_prefix == first.term_prefix && next.term == first.term);
    Some(LeastEntry { input, next_row: next.map(|next| next.first_row) })
}

impl OrderedInput for WordMergeInput {
    fn term_prefix(&self) -> u64 {
        self.term_prefix
    }

    fn compare_rest(&self, other: &WordMergeInput) -> Ordering {
        self.term.cmp(&other.term).then(self.first_row.cmp(&other.first_row))
    }

    fn is_ended(&self) -> bool {
        self.is_ended
    }
}

/// A function that returns whether a row is dropped.
pub(crate) type RowFilter<'f> = dyn FnMut(u32) -> bool + 'f;

/// A segment that is being merged into another one.
pub(crate) struct WordMergeInput {
    segment: Segment,
    /// The block that is being read: its number, its bytes, and the offset of the next entry.
    block_number: i64,
    block: Vec<u8>,
    offset: usize,
    /// The current entry.
    term: Vec<u8>,
    /// See [`prefix_key`].
    term_prefix: u64,
    first_row: u32,
    /// The first row of the current entry as it is in its block.
    entry_row: u32,
    count: usize,
    /// The place of the entry behind its term.
    tail_start: usize,
    row_bytes: Range<usize>,
    position_bytes: Range<usize>,
    /// The rows of the current entry that are left, if it is divided.
    rest: RowLists,
    is_divided: bool,
    /// Whether rows of the current entry have been moved.
    is_begun: bool,
    /// The rows of an entry, to see whether any is dropped.
    rows: Vec<u32>,
    is_ended: bool,
    /// Whether an entry has been passed since the input was opened, by moving or dropping it.
    has_advanced: bool,
}

impl WordMergeInput {
    /// Opens a segment at its first entry that has not been moved and is not dropped.
    pub(crate) fn open<P: ReadSegments>(
        pages: &P,
        segment: Segment,
        filter: &mut RowFilter<'_>,
    ) -> Result<WordMergeInput, P::Error> {
        let mut input = WordMergeInput {
            block_number: segment.blocks.start,
            segment,
            block: Vec::new(),
            offset: 0,
            term: Vec::new(),
            term_prefix: 0,
            first_row: 0,
            entry_row: 0,
            count: 0,
            tail_start: 0,
            row_bytes: 0..0,
            position_bytes: 0..0,
            rest: RowLists::default(),
            is_divided: false,
            is_begun: false,
            rows: Vec::new(),
            is_ended: false,
            has_advanced: false,
        };
        input.load_block(pages)?;
        input.read_entry(pages)?;
        while !input.is_ended && input.is_moved().map_err(P::corruption)? {
            input.read_entry(pages)?;
        }
        input.drop_rows(pages, filter)?;
        Ok(input)
    }

    /// Returns whether the current entry is in the target already.
    fn is_moved(&self) -> Result<bool, CorruptBlock> {
        let key = PostingKey { term: &self.term, first_row: self.first_row };
        match self.segment.from_term.as_slice() {
            [] => Ok(false),
            start => Ok(key < PostingKey::read(start)?),
        }
    }

    /// Returns the term of the current entry.
    pub(crate) fn term(&self) -> &[u8] {
        &self.term
    }

    /// Returns whether some rows of the current entry have been moved or dropped.
    pub(crate) fn is_divided(&self) -> bool {
        self.is_divided
    }

    /// Returns whether the current entry has positions.
    pub(crate) fn has_positions(&self) -> bool {
        !self.position_bytes.is_empty()
    }

    /// Returns the current entry, as it is in its block.
    pub(crate) fn entry(&self) -> Result<WordEntry<'_>, CorruptBlock> {
        let rows = self.block.get(self.row_bytes.clone()).ok_or(CorruptBlock)?;
        let positions = self.block.get(self.position_bytes.clone()).ok_or(CorruptBlock)?;
        Ok(WordEntry { count: self.count, first_row: self.first_row, rows, positions })
    }

    /// Returns whether the next entry may have the same term.
    pub(crate) fn may_continue(&self) -> bool {
        match self.block.get(self.offset..) {
            // The next entry shares all bytes of this term, and has no others.
            Some([shared @ ..0x80, suffix, ..]) => {
                usize::from(*shared) == self.term.len() && *suffix == 0
            }
            Some([_, ..]) => true,
            _ => self.block_number + 1 < self.segment.blocks.end,
        }
    }

    /// Returns the count, the lengths, the rows and the positions of the current entry, as they are
    /// in its block.
    pub(crate) fn entry_tail(&self) -> Result<&[u8], CorruptBlock> {
        self.block.get(self.tail_start..self.position_bytes.end).ok_or(CorruptBlock)
    }

    /// Returns whether a step may end here: no entry has been moved in part, nor the beginning of
    /// the positions of a row.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.is_ended || !self.is_begun && self.count > 0
    }

    /// Decodes the current entry, unless it is divided. Returns whether all of it is before a row.
    pub(crate) fn decode_before(&mut self, next_row: u32) -> Result<bool, CorruptBlock> {
        if !self.is_divided {
            let mut rest = mem::take(&mut self.rest);
            rest.clear();
            rest.add_entry(&self.entry()?)?;
            self.rest = rest;
        }
        Ok(self.rest.rows.last().is_none_or(|last| *last < next_row))
    }

    /// Moves the decoded rows before `next_row` to `target`; all of them if it is `None`. Returns
    /// whether any are left, which divides the entry.
    pub(crate) fn move_rows_before(
        &mut self,
        next_row: Option<u32>,
        target: &mut RowLists,
    ) -> Result<bool, CorruptBlock> {
        let is_before = |row: &u32| next_row.is_none_or(|next_row| *row < next_row);
        match self.rest.rows.partition_point(is_before) {
            // Another input has the first row, too, and it is taken from that one.
            0 => self.rest.move_first(1, &mut RowLists::default())?,
            count => self.rest.move_first(count, target)?,
        }
        if let Some(first_row) = self.rest.rows.first() {
            (self.first_row, self.is_divided, self.is_begun) = (*first_row, true, true);
            return Ok(true);
        }
        Ok(false)
    }

    /// Advances to the next entry that is not dropped. Returns the number of bytes that were read.
    pub(crate) fn advance<P: ReadSegments>(
        &mut self,
        pages: &P,
        filter: &mut RowFilter<'_>,
    ) -> Result<i64, P::Error> {
        self.has_advanced = true;
        let read = self.read_entry(pages)?;
        Ok(read + self.drop_rows(pages, filter)?)
    }

    /// Drops rows of the current entry; if all of them, advances to the next one. Returns the
    /// number of bytes that were read.
    fn drop_rows<P: ReadSegments>(
        &mut self,
        pages: &P,
        filter: &mut RowFilter<'_>,
    ) -> Result<i64, P::Error> {
        let mut read = 0;
        while !self.is_ended {
            if self.count > 0 {
                if !self.has_dropped_row(filter).map_err(P::corruption)? {
                    break;
                }
                self.decode_before(0).map_err(P::corruption)?;
                self.is_divided = self.rest.remove(filter).map_err(P::corruption)?;
                if let Some(first_row) = self.rest.rows.first() {
                    self.first_row = *first_row;
                    break;
                }
            } else if !filter(self.first_row) {
                break;
            }
            self.has_advanced = true;
            read += self.read_entry(pages)?;
        }
        Ok(read)
    }

    /// Returns whether any row of the current entry is dropped.
    fn has_dropped_row(&mut self, filter: &mut RowFilter<'_>) -> Result<bool, CorruptBlock> {
        if self.count == 1 {
            return Ok(filter(self.first_row));
        }
        let mut rows = mem::take(&mut self.rows);
        rows.clear();
        self.entry()?.decode_rows(&mut rows)?;
        let has_dropped = rows.iter().any(|row| filter(*row));
        self.rows = rows;
        Ok(has_dropped)
    }

    /// Reads the next entry. Returns the number of bytes that were read.
    fn read_entry<P: ReadSegments>(&mut self, pages: &P) -> Result<i64, P::Error> {
        (self.is_divided, self.is_begun) = (false, false);
        if self.offset >= self.block.len() && self.block_number < self.segment.blocks.end {
            self.block_number += 1;
            self.load_block(pages)?;
        }
        let mut rest = self.block.get(self.offset..).unwrap_or_default();
        if rest.is_empty() {
            self.is_ended = true;
            return Ok(0);
        }
        let (entry, tail_bytes) =
            WordEntry::read_with_tail(&mut rest, &mut self.term).map_err(P::corruption)?;
        let (end, start) = (self.block.len() - rest.len(), self.offset);
        let positions = end - entry.positions.len();
        (self.count, self.first_row, self.entry_row) =
            (entry.count, entry.first_row, entry.first_row);
        self.tail_start = end - tail_bytes;
        self.row_bytes = positions - entry.rows.len()..positions;
        self.position_bytes = positions..end;
        self.term_prefix = prefix_key(&self.term);
        self.offset = end;
        Ok((end - start) as i64)
    }

    fn load_block<P: ReadSegments>(&mut self, pages: &P) -> Result<(), P::Error> {
        self.block.clear();
        self.term.clear();
        self.offset = 0;
        if self.block_number >= self.segment.blocks.end {
            return Ok(());
        }
        let block = &mut self.block;
        pages.read_block(self.segment.id, self.block_number, |bytes| {
            block.extend_from_slice(bytes);
            if bytes.is_empty() { Err(corruption::<P>()) } else { Ok(()) }
        })
    }

    /// Deletes the blocks that have been read if they are at least `min_count`.
    /// [`WordMergeInput::finish_step`] has to follow in the same transaction.
    pub(crate) fn delete_read_blocks<P: WriteSegments>(
        &mut self,
        pages: &P,
        min_count: i64,
    ) -> Result<(), P::Error> {
        // An input that has ended is after its last block.
        let (start, end) = (self.segment.blocks.start, self.block_number);
        if end - start >= min_count {
            pages.delete_blocks(self.segment.id, start..end)?;
            self.segment.blocks.start = end;
        }
        Ok(())
    }

    /// Deletes all entries that have been moved.
    pub(crate) fn finish_step<P: WriteSegments>(&mut self, pages: &P) -> Result<(), P::Error> {
        if self.is_ended {
            return pages.delete_segment(&self.segment);
        }
        if !self.has_advanced {
            return Ok(());
        }
        self.delete_read_blocks(pages, 1)?;
        let mut key = Vec::new();
        // An entry of which rows were dropped is read again.
        PostingKey { term: &self.term, first_row: self.entry_row }.write(&mut key);
        pages.set_start(self.segment.id, self.block_number, &key)
    }
}
