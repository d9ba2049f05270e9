//! Merging the segments of a term dictionary, a range of words at a time.
//!
//! As in `word_merge`, each step moves a bounded number of bytes in ascending order into a new
//! segment, deletes the blocks that have become empty, and notes in each input the first word that
//! remains. A word that several inputs have is written once.
//!
//! Separate from `word_merge`, whose entries have rows and positions.

use crate::merge::merge_up_to;
use crate::segment::BlockAppender;
use crate::segment_storage::{IndexId, Segment, SegmentId, WriteSegments};
use crate::term_dictionary::{DictionaryBuilder, DictionaryInput};
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

/// Replaces a dictionary by one of the terms of a word index that begin with a byte, without it.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn rebuild_dictionary<P: WriteSegments>(
    pages: &P,
    words: IndexId,
    index: IndexId,
    first_byte: u8,
) -> Result<(), P::Error> {
    pages.segments(index)?.iter().try_for_each(|segment| pages.delete_segment(segment))?;
    let mut terms: BTreeSet<Vec<u8>> = BTreeSet::new();
    WordIndex::open(pages, words)?.for_each_term(&[first_byte], &mut |term, _| {
        let word = term.strip_prefix(&[first_byte]);
        terms.extend(word.filter(|word| !terms.contains(*word)).map(<[u8]>::to_vec));
        word.is_some()
    })?;
    if terms.is_empty() {
        return Ok(());
    }
    let max_seq = pages.segments(words)?.last().map_or(0, |last| last.max_seq);
    let mut appender = BlockAppender::new(pages, pages.create_segment(index, max_seq, false)?, 0);
    let mut builder = DictionaryBuilder::default();
    for term in &terms {
        builder.add(term);
        write_full_blocks(&mut builder, &mut appender)?;
    }
    builder.finish_block();
    write_full_blocks(&mut builder, &mut appender)?;
    appender.finish().map(drop)
}

/// Moves words of one merge, about `budget_bytes`. Returns the number of bytes that were read.
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
    let mut read = 0;
    while let Some(least) = least_input(&mut inputs) {
        // A word that was written is passed in all inputs.
        if read >= budget_bytes && builder.last_word() != Some(least.word()) {
            break;
        }
        builder.add(least.word());
        read += least.advance(pages)?;
        delete_read_blocks(pages, least, MIN_FREED_BLOCKS)?;
        write_full_blocks(&mut builder, &mut appender)?;
    }
    builder.finish_block();
    write_full_blocks(&mut builder, &mut appender)?;
    appender.finish()?;
    for mut input in inputs {
        if input.is_ended {
            pages.delete_segment(&input.segment)?;
        } else {
            delete_read_blocks(pages, &mut input, 1)?;
            pages.set_start(input.segment.id, input.block_number, input.word())?;
        }
    }
    Ok(read)
}

/// Returns the input with the least word; `None` if all have ended.
fn least_input(inputs: &mut [DictionaryInput]) -> Option<&mut DictionaryInput> {
    let open = inputs.iter_mut().filter(|input| !input.is_ended);
    open.min_by(|a, b| a.word().cmp(b.word()))
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

fn write_full_blocks<P: WriteSegments>(
    builder: &mut DictionaryBuilder,
    appender: &mut BlockAppender<'_, P>,
) -> Result<(), P::Error> {
    let full = builder.full_blocks();
    if !full.is_empty() {
        full.iter().try_for_each(|(first, block)| appender.append(first, block))?;
        full.clear();
    }
    Ok(())
}
