//! Merging the segments of a word index into larger ones, a range of entries at a time.
//!
//! As in `merge`, each step moves a bounded number of bytes in ascending order of the posting keys
//! from the inputs into a new segment, deletes the blocks that have become empty, and notes in each
//! input the key of the first entry that remains. A reader between two steps ignores the entries
//! before that key, which are in the target.
//!
//! Separate from `merge`, which merges all postings of a term at once and drops the stale ones.
//! Here entries are the unit, since those of a frequent word take megabytes: large entries are
//! copied unread, and small neighbours of a term are joined. Rows of the inputs may interleave;
//! only then is an entry divided. A row is in one segment only, so that none is stale.

use crate::block::CorruptBlock;
use crate::merge::merge_up_to;
use crate::merge_order::MergeOrder;
use crate::row_lists::RowLists;
use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, Segment, SegmentId, WriteSegments};
use crate::word_block::{MAX_ENTRY_BYTES, WordBlockBuilder, WordEntry};
use crate::word_merge_input::{LeastEntry, RowFilter, WordMergeInput, find_least};
use crate::word_merge_policy::choose_word_segments;
use std::mem;

/// Entries of at least this many bytes are copied as they are.
const MIN_COPIED_BYTES: usize = 1024;
/// Blocks that have been read are deleted in groups of this many.
const MIN_FREED_BLOCKS: i64 = 16;
/// The mean size of an encoded row, for the size of entries to be joined.
const ROW_BYTES: usize = 2;

/// Moves about `budget_bytes` of a word index towards at most `max_segments`, without the rows for
/// which `drop_row` is true. Returns whether more is left to merge.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn merge_words_step<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    max_segments: usize,
    budget_bytes: i64,
    drop_row: &mut dyn FnMut(u32) -> bool,
) -> Result<bool, P::Error> {
    let choose = |free: &[Segment]| choose_word_segments(free, max_segments);
    let step = |pages: &P, target, inputs, budget_bytes| {
        WordMerge::open(pages, target, inputs, drop_row)?.step(budget_bytes)
    };
    if !merge_up_to(pages, index, budget_bytes, choose, step)? {
        return Ok(false);
    }
    let segments = pages.segments(index)?;
    let has_merges = segments.iter().any(|segment| segment.merged_into.is_some());
    Ok(has_merges || choose(&segments).is_some())
}

/// A merge of all segments that are there when it begins into one, which has no row that is
/// dropped. Other batches may be written between its steps.
#[derive(Debug, Default)]
pub struct FullWordMerge {
    /// The segment that all others are merged into; `None`: merges that began earlier are completed
    /// first.
    target: Option<SegmentId>,
}

impl FullWordMerge {
    /// Moves about `budget_bytes`, without the rows for which `drop_row` is true: it is asked for
    /// each posting, and has to give the same answer for the same row. Returns whether there is
    /// more to do.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn step<P: WriteSegments>(
        &mut self,
        pages: &P,
        index: IndexId,
        budget_bytes: i64,
        drop_row: &mut dyn FnMut(u32) -> bool,
    ) -> Result<bool, P::Error> {
        let segments = pages.segments(index)?;
        if self.target.is_none() && segments.iter().all(|segment| segment.merged_into.is_none()) {
            let Some(last) = segments.last() else { return Ok(false) };
            let target = pages.create_segment(index, last.max_seq, false)?;
            segments.iter().try_for_each(|input| pages.set_merge_target(input.id, target))?;
            self.target = Some(target);
        }
        let step = |pages: &P, target, inputs, budget_bytes| {
            WordMerge::open(pages, target, inputs, drop_row)?.step(budget_bytes)
        };
        merge_up_to(pages, index, budget_bytes, |_| None, step)?;
        let segments = pages.segments(index)?;
        let is_input = |segment: &Segment| segment.merged_into == self.target;
        if self.target.is_none() || segments.iter().any(is_input) {
            return Ok(true);
        }
        // Nothing was left to be written into it.
        let is_empty = |one: &&Segment| Some(one.id) == self.target && one.blocks.is_empty();
        segments.iter().find(is_empty).map_or(Ok(()), |empty| pages.delete_segment(empty))?;
        Ok(false)
    }
}

/// One merge, within one step.
struct WordMerge<'a, 'f, P> {
    pages: &'a P,
    inputs: Vec<WordMergeInput>,
    builder: WordBlockBuilder,
    appender: BlockAppender<'a, P>,
    pending: JoinedEntry,
    filter: &'a mut RowFilter<'f>,
}

impl<'a, 'f, P: WriteSegments> WordMerge<'a, 'f, P> {
    fn open(
        pages: &'a P,
        target: SegmentId,
        segments: Vec<Segment>,
        filter: &'a mut RowFilter<'f>,
    ) -> Result<WordMerge<'a, 'f, P>, P::Error> {
        let open = |segment| WordMergeInput::open(pages, segment, filter);
        let inputs = segments.into_iter().map(open).collect::<Result<_, _>>()?;
        let appender = BlockAppender::new(pages, target, pages.end(target)?);
        let (builder, pending) = (WordBlockBuilder::default(), JoinedEntry::default());
        Ok(WordMerge { pages, inputs, builder, appender, pending, filter })
    }

    /// Moves entries, about `budget_bytes`. Returns the number of bytes that were read.
    fn step(mut self, budget_bytes: i64) -> Result<i64, P::Error> {
        let mut read = 0;
        let mut order = MergeOrder::new(&self.inputs);
        while let Some(least) = find_least(&order, &self.inputs) {
            if read >= budget_bytes && self.inputs.iter().all(WordMergeInput::is_at_boundary) {
                break;
            }
            read += self.move_entry(least)?;
            order.update_least(&self.inputs);
            // Deletes the blocks that were read before it writes new ones.
            if let Some(input) = self.inputs.get_mut(least.input) {
                input.delete_read_blocks(self.pages, MIN_FREED_BLOCKS)?;
            }
            self.appender.append_all(self.builder.full_blocks())?;
        }
        self.pending.flush(&mut self.builder);
        self.builder.finish_block();
        self.appender.append_all(self.builder.full_blocks())?;
        self.appender.finish()?;
        self.inputs.iter_mut().try_for_each(|input| input.finish_step(self.pages))?;
        Ok(read)
    }

    /// Moves the least entry, or its rows before those of other inputs. Returns the number of bytes
    /// that were read.
    fn move_entry(&mut self, least: LeastEntry) -> Result<i64, P::Error> {
        let Some(input) = self.inputs.get_mut(least.input) else { return Ok(0) };
        let (pending, builder) = (&mut self.pending, &mut self.builder);
        let is_left = move_rows(input, least.next_row, pending, builder).map_err(P::corruption)?;
        if is_left { Ok(0) } else { input.advance(self.pages, self.filter) }
    }
}

/// Moves the current entry of an input, or its rows before `next_row`. Returns whether it has rows
/// left.
fn move_rows(
    input: &mut WordMergeInput,
    next_row: Option<u32>,
    pending: &mut JoinedEntry,
    builder: &mut WordBlockBuilder,
) -> Result<bool, CorruptBlock> {
    let is_joined = !pending.is_empty() && pending.term == input.term();
    if next_row.is_none() && !is_joined && !input.is_divided() && !input.may_continue() {
        // Most terms are in one entry of one input.
        pending.flush(builder);
        builder.copy_entry(input.term(), input.entry()?, input.entry_tail()?);
        return Ok(false);
    }
    let entry = input.entry()?;
    let (count, bytes) = (entry.count, entry.bytes());
    let is_whole = !input.is_divided()
        && (count == 0
            || match next_row {
                // Most entries of small segments have one row.
                Some(next_row) if count == 1 && entry.first_row < next_row => true,
                Some(next_row) => input.decode_before(next_row)?,
                None => true,
            });
    if !is_whole {
        pending.begin_rows(input.term(), input.has_positions(), builder)?;
        return input.move_rows_before(next_row, &mut pending.rows);
    }
    let entry = input.entry()?;
    if count == 0 || bytes >= MIN_COPIED_BYTES {
        pending.flush(builder);
        builder.add_entry(input.term(), entry);
    } else {
        pending.add_entry(input.term(), &entry, builder)?;
    }
    Ok(false)
}

/// The next entry of the target, which joins small neighbours of one term.
#[derive(Default)]
struct JoinedEntry {
    term: Vec<u8>,
    /// A single entry is kept as it is: most terms are in one input only.
    is_encoded: bool,
    count: usize,
    first_row: u32,
    encoded_rows: Vec<u8>,
    /// The rows, unless they are encoded, and the lists of positions.
    rows: RowLists,
}

impl JoinedEntry {
    fn is_empty(&self) -> bool {
        !self.is_encoded && self.rows.rows.is_empty()
    }

    /// Adds an entry, after the others have been added to the target if it cannot be joined to
    /// them.
    fn add_entry(
        &mut self,
        term: &[u8],
        entry: &WordEntry<'_>,
        builder: &mut WordBlockBuilder,
    ) -> Result<(), CorruptBlock> {
        if !self.can_join(term, entry) {
            self.flush(builder);
        }
        if self.is_empty() {
            self.term.clear();
            self.term.extend_from_slice(term);
            self.is_encoded = true;
            (self.count, self.first_row) = (entry.count, entry.first_row);
            self.encoded_rows.extend_from_slice(entry.rows);
            self.rows.lists.extend_from_slice(entry.positions);
            return Ok(());
        }
        self.decode()?;
        self.rows.add_entry(entry)
    }

    fn can_join(&self, term: &[u8], entry: &WordEntry<'_>) -> bool {
        let joined = self.bytes() + entry.bytes();
        let has_positions = !entry.positions.is_empty();
        term == self.term
            && joined <= MAX_ENTRY_BYTES
            && has_positions != self.rows.lists.is_empty()
            && self.rows.rows.last().unwrap_or(&self.first_row) < &entry.first_row
    }

    fn bytes(&self) -> usize {
        self.encoded_rows.len() + self.rows.rows.len() * ROW_BYTES + self.rows.lists.len()
    }

    /// Prepares `rows` for rows of a term that are added to it.
    fn begin_rows(
        &mut self,
        term: &[u8],
        has_positions: bool,
        builder: &mut WordBlockBuilder,
    ) -> Result<(), CorruptBlock> {
        let is_same_kind = self.term == term && has_positions != self.rows.lists.is_empty();
        if !is_same_kind || self.bytes() > MAX_ENTRY_BYTES {
            self.flush(builder);
        }
        self.term.clear();
        self.term.extend_from_slice(term);
        self.decode()
    }

    /// Decodes the rows if they are encoded.
    fn decode(&mut self) -> Result<(), CorruptBlock> {
        if self.is_encoded {
            let positions = mem::take(&mut self.rows.lists);
            let (count, first_row, rows) = (self.count, self.first_row, &self.encoded_rows);
            let entry = WordEntry { count, first_row, rows, positions: &positions };
            self.rows.add_entry(&entry)?;
            self.is_encoded = false;
            self.encoded_rows.clear();
        }
        Ok(())
    }

    /// Adds the entry to the target, if it has rows.
    fn flush(&mut self, builder: &mut WordBlockBuilder) {
        if self.is_empty() {
            return;
        }
        if self.is_encoded {
            let (count, first_row, rows) = (self.count, self.first_row, &self.encoded_rows);
            let positions = &self.rows.lists;
            builder.add_entry(&self.term, WordEntry { count, first_row, rows, positions });
        } else {
            builder.add(&self.term, &self.rows.rows, &self.rows.lists);
        }
        self.is_encoded = false;
        self.encoded_rows.clear();
        self.rows.clear();
    }
}
