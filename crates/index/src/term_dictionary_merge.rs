//! Merging the segments of a term dictionary, a range of words at a time.
//!
//! As in `word_merge`, each step moves a bounded number of bytes in ascending order into a new
//! segment, deletes the blocks that have become empty, and notes in each input the first word that
//! remains. A word that several inputs have is written once.
//!
//! Separate from `word_merge`, whose entries have rows and positions.

use crate::block::BLOCK_BYTES;
use crate::merge::merge_up_to;
use crate::merge_order::MergeOrder;
use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, Segment, SegmentId, WriteSegments};
use crate::term_dictionary::{DictionaryBuilder, DictionaryInput};
use crate::trigram_index::delete_with_trigrams;
use crate::word_index::WordIndex;
use crate::word_merge_policy::choose_word_segments;
use std::collections::BTreeSet;

/// Blocks that have been read are deleted in groups of this many.
const MIN_FREED_BLOCKS: i64 = 16;

/// Moves about `budget_bytes` of a dictionary towards at most `max_segments`. Returns whether more
/// is left to merge.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn merge_dictionary_step<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    max_segments: usize,
    budget_bytes: i64,
) -> Result<bool, P::Error> {
    let choose = |free: &[Segment]| choose_word_segments(free, max_segments);
    if !merge_up_to(pages, index, budget_bytes, choose, step)? {
        return Ok(false);
    }
    let segments = pages.segments(index)?;
    let has_merges = segments.iter().any(|segment| segment.merged_into.is_some());
    Ok(has_merges || choose(&segments).is_some())
}

/// The replacement of a dictionary by one of the terms of a word index that begin with a byte,
/// without it. Nothing else writes the two indexes between its steps. If it is interrupted, words
/// are in two segments, as they may be anyway.
#[derive(Debug)]
pub struct DictionaryRebuild {
    first_byte: u8,
    /// The segments that are replaced; `None`: no step was made.
    former: Option<Vec<Segment>>,
    target: Option<SegmentId>,
    /// The last word that was written.
    last_word: Vec<u8>,
    is_written: bool,
}

impl DictionaryRebuild {
    /// Begins a dictionary of the terms with this first byte.
    #[must_use]
    pub fn new(first_byte: u8) -> DictionaryRebuild {
        DictionaryRebuild {
            first_byte,
            former: None,
            target: None,
            last_word: Vec::new(),
            is_written: false,
        }
    }

    /// Writes about `budget_bytes` of the words, or deletes as many of a former segment. Returns
    /// whether there is more to do.
    ///
    /// # Errors
    /// Errors of the storage, and malformed blocks.
    pub fn step<P: WriteSegments>(
        &mut self,
        pages: &P,
        words: IndexId,
        index: IndexId,
        budget_bytes: usize,
    ) -> Result<bool, P::Error> {
        if self.former.is_none() {
            self.former = Some(pages.segments(index)?);
        }
        if !self.is_written {
            let next = self.read_words(pages, words, budget_bytes)?;
            if !next.is_empty() {
                self.write_words(pages, words, index, &next)?;
            }
            return Ok(true);
        }
        let Some(rest) = &mut self.former else { return Ok(false) };
        let max_blocks = i64::try_from(budget_bytes / BLOCK_BYTES).unwrap_or(i64::MAX);
        if let Some(segment) = rest.last_mut()
            && delete_with_trigrams(pages, segment, max_blocks.max(MIN_FREED_BLOCKS))?.1
        {
            rest.pop();
        }
        Ok(!rest.is_empty())
    }

    /// Reads the next words of all segments of the word index.
    fn read_words<P: WriteSegments>(
        &mut self,
        pages: &P,
        words: IndexId,
        budget_bytes: usize,
    ) -> Result<BTreeSet<Vec<u8>>, P::Error> {
        let from = [&[self.first_byte], self.last_word.as_slice()].concat();
        let mut found = BTreeSet::new();
        // The words of one segment, and the last word up to which those of all were read.
        let (mut read, mut previous, mut end) = (0, Vec::new(), None::<Vec<u8>>);
        WordIndex::open(pages, words)?.for_each_term(&from, &mut |term, _| {
            let Some(word) = term.strip_prefix(&[self.first_byte]) else { return false };
            if word < previous.as_slice() {
                read = 0;
            }
            previous.clear();
            previous.extend_from_slice(word);
            if word > self.last_word.as_slice() {
                read += word.len() + 1;
                found.insert(word.to_vec());
            }
            if read < budget_bytes {
                return true;
            }
            let is_less = end.as_ref().is_none_or(|end| word < end.as_slice());
            if is_less {
                end = Some(word.to_vec());
            }
            false
        })?;
        match end {
            Some(end) => found.retain(|word| *word <= end),
            None => self.is_written = true,
        }
        Ok(found)
    }

    fn write_words<P: WriteSegments>(
        &mut self,
        pages: &P,
        words: IndexId,
        index: IndexId,
        next: &BTreeSet<Vec<u8>>,
    ) -> Result<(), P::Error> {
        let target = match self.target {
            Some(target) => target,
            None => {
                let max_seq = pages.segments(words)?.last().map_or(0, |last| last.max_seq);
                *self.target.insert(pages.create_segment(index, max_seq, false)?)
            }
        };
        let mut appender = BlockAppender::new(pages, target, pages.end(target)?);
        let mut builder = DictionaryBuilder::default();
        for word in next {
            builder.add(word);
            appender.append_all(builder.full_blocks())?;
        }
        builder.finish_block();
        appender.append_all(builder.full_blocks())?;
        appender.finish()?;
        if let Some(last) = next.last() {
            self.last_word.clone_from(last);
        }
        Ok(())
    }
}

/// Moves words of one merge, or deletes what is left of its inputs, about `budget_bytes`. Returns
/// the number of bytes that were read or deleted.
fn step<P: WriteSegments>(
    pages: &P,
    target: SegmentId,
    segments: Vec<Segment>,
    budget_bytes: i64,
) -> Result<i64, P::Error> {
    let open = |segment| DictionaryInput::open(pages, segment);
    let mut inputs = segments.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut appender = BlockAppender::new(pages, target, pages.end(target)?);
    let mut builder = DictionaryBuilder::default();
    let mut order = MergeOrder::new(&inputs);
    let mut read = 0;
    while let Some(least) = order.least_input().and_then(|least| inputs.get_mut(least)) {
        // A word that was written is passed in all inputs.
        if read >= budget_bytes && builder.last_word() != Some(least.word()) {
            break;
        }
        builder.add(least.word());
        read += least.advance(pages)?;
        delete_read_blocks(pages, least, MIN_FREED_BLOCKS)?;
        appender.append_all(builder.full_blocks())?;
        order.update_least(&inputs);
    }
    builder.finish_block();
    appender.append_all(builder.full_blocks())?;
    appender.finish()?;
    for mut input in inputs {
        if input.is_ended {
            // A large input stays without words until its trigrams are deleted.
            let max_blocks = ((budget_bytes - read) / BLOCK_BYTES as i64).max(MIN_FREED_BLOCKS);
            let (deleted, _) = delete_with_trigrams(pages, &mut input.segment, max_blocks)?;
            read += deleted * BLOCK_BYTES as i64;
        } else {
            delete_read_blocks(pages, &mut input, 1)?;
            pages.set_start(input.segment.id, input.block_number, input.word())?;
        }
    }
    Ok(read)
}

/// Deletes the blocks of an input that have been read if they are at least `min_count`.
fn delete_read_blocks<P: WriteSegments>(
    pages: &P,
    input: &mut DictionaryInput,
    min_count: i64,
) -> Result<(), P::Error> {
    let (start, end) = (input.segment.blocks.start, input.block_number);
    if end - start >= min_count {
        pages.delete_blocks(input.segment.id, start..end)?;
        input.segment.blocks.start = end;
    }
    Ok(())
}
