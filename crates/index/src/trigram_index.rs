//! The trigrams of a term dictionary: which blocks of a large segment have three bytes in a row.
//!
//! The trigrams of a segment are a word index of its own: a term is a trigram, and a row is the
//! number of a block of the dictionary that has a word with it. A search for a part of a word reads
//! only the blocks that have all of its trigrams. Bytes are the unit, so that the rules of words do
//! not matter.
//!
//! A segment gets its trigrams in steps, some blocks at a time, when nothing is left to merge; the
//! segments of its word index have the number of the block after their last one as `max_seq`.
//! Blocks without trigrams, and those of small segments, are read by each search. So a search
//! between two steps is right, and an interrupted step leaves nothing to be repaired. The trigrams
//! go with their segment, in steps as well: a merge goes on until they are deleted.
//!
//! Separate from `term_dictionary`, which searches the blocks.

use crate::segment::{BlockAppender, corruption};
use crate::segment_storage::{IndexId, ReadSegments, Segment, SegmentId, WriteSegments};
use crate::word_block::WordBlockBuilder;
use crate::word_index::WordIndex;
use crate::word_merge::merge_words_step;
use crate::word_verification::verify_words;
use std::ops::Range;

/// A term after all words and trigrams: no word has such bytes.
pub(crate) const AFTER_WORDS: &[u8] = &[0xff; 8];
/// The bytes of a trigram.
const TRIGRAM_BYTES: usize = 3;
/// The byte behind each word of the dictionary.
pub(crate) const END_OF_WORD: u8 = 0;
/// The blocks of a smaller segment are read sooner than lists of them.
const MIN_INDEXED_BLOCKS: i64 = 32;
/// The blocks of one step: their trigrams are sorted in memory, which takes 30 KB for each.
const STEP_BLOCKS: Range<i64> = 16..512;
/// The bytes of a block of words that a merge moves in the time in which the trigrams of a block of
/// the dictionary are collected.
const BUDGET_BYTES_PER_BLOCK: i64 = 2048;
/// The most segments of the trigrams of a segment, each of which a search looks into.
const MAX_TRIGRAM_SEGMENTS: usize = 8;
/// The bits of a digit by which trigrams are sorted, and the place of a trigram in a sorted number.
const DIGIT_BITS: u32 = 12;
const TRIGRAM_SHIFT: u32 = 32;

/// Returns whether a segment of a dictionary gets trigrams.
fn is_large(segment: &Segment) -> bool {
    segment.blocks.end >= MIN_INDEXED_BLOCKS
}

/// Returns the word index of the trigrams of a segment. Its number is the negative one of the
/// segment; other indexes have positive numbers.
fn index_of_trigrams<P: ReadSegments>(segment: SegmentId) -> Result<IndexId, P::Error> {
    match segment.0 {
        1.. => Ok(IndexId(-segment.0)),
        _ => Err(corruption::<P>()),
    }
}

/// Returns the number of the block after the last one that has its trigrams in these segments.
fn indexed_end(trigrams: &[Segment]) -> i64 {
    trigrams.iter().map(|one| one.max_seq).max().unwrap_or_default()
}

/// Returns the blocks of a segment that may have words with any of some parts, ascending.
pub(crate) fn find_blocks_with_parts<P: ReadSegments>(
    pages: &P,
    segment: &Segment,
    parts: &[&[u8]],
) -> Result<Vec<Range<i64>>, P::Error> {
    let all = segment.blocks.clone();
    // The blocks of one part without trigrams are all blocks, whatever the others are.
    if !is_large(segment) || parts.iter().any(|part| part.len() < TRIGRAM_BYTES) {
        return Ok(vec![all]);
    }
    let trigrams = pages.segments(index_of_trigrams::<P>(segment.id)?)?;
    let end = indexed_end(&trigrams).min(all.end);
    if end <= all.start {
        return Ok(vec![all]);
    }
    let index = WordIndex::with_segments(pages, &trigrams);
    let mut found: Vec<u64> = Vec::new();
    for part in parts {
        let bits = find_indexed_blocks(&index, part, trigrams.len())?;
        found.resize(found.len().max(bits.len()), 0);
        found.iter_mut().zip(bits).for_each(|(found, bits)| *found |= bits);
    }
    // A list that has other blocks than those of the segment is damaged.
    let mut ranges = to_ranges(&found, all.start..end);
    push_range(&mut ranges, end..all.end);
    Ok(ranges)
}

/// Returns the blocks that have all trigrams of a part, or few more, as bits. The lists are in so
/// many segments.
fn find_indexed_blocks<P: ReadSegments>(
    index: &WordIndex<'_, P>,
    part: &[u8],
    segment_count: usize,
) -> Result<Vec<u64>, P::Error> {
    let mut found: Option<Vec<u64>> = None;
    for trigram in part.windows(TRIGRAM_BYTES) {
        // A look into the lists takes as long as to read a few blocks.
        let is_worth = |bits: &Vec<u64>| count_bits(bits) > segment_count;
        if !found.as_ref().is_none_or(is_worth) {
            break;
        }
        let mut bits = Vec::new();
        index.rows_with_term(trigram, &mut bits)?;
        if let Some(found) = &found {
            bits.truncate(found.len());
            bits.iter_mut().zip(found).for_each(|(bits, found)| *bits &= found);
        }
        found = Some(bits);
    }
    Ok(found.unwrap_or_default())
}

fn count_bits(bits: &[u64]) -> usize {
    bits.iter().map(|word| word.count_ones() as usize).sum()
}

/// Returns the ranges of the bits that are set in a range.
fn to_ranges(bits: &[u64], within: Range<i64>) -> Vec<Range<i64>> {
    let mut ranges: Vec<Range<i64>> = Vec::new();
    for (at, word) in (0_i64..).zip(bits) {
        let mut rest = *word;
        while rest != 0 {
            let block = at * 64 + i64::from(rest.trailing_zeros());
            rest &= rest - 1;
            if within.contains(&block) {
                push_range(&mut ranges, block..block + 1);
            }
        }
    }
    ranges
}

/// Adds a range after others, or to the last one.
fn push_range(ranges: &mut Vec<Range<i64>>, range: Range<i64>) {
    match ranges.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Adds trigrams of some blocks of a dictionary that has no merge under way, or merges their lists.
/// A larger budget is more blocks. Returns whether there was anything to do.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn index_trigrams_step<P: WriteSegments>(
    pages: &P,
    dictionary: IndexId,
    budget_bytes: i64,
) -> Result<bool, P::Error> {
    let segments = pages.segments(dictionary)?;
    let is_target = |id| segments.iter().any(|segment| segment.merged_into == Some(id));
    let is_free = |one: &&Segment| one.merged_into.is_none() && !is_target(one.id) && is_large(one);
    for segment in segments.iter().filter(is_free) {
        let index = index_of_trigrams::<P>(segment.id)?;
        let blocks = segment.blocks.clone();
        let first = indexed_end(&pages.segments(index)?).max(blocks.start);
        if first < blocks.end {
            let count = budget_bytes / BUDGET_BYTES_PER_BLOCK;
            let end = first.saturating_add(count.clamp(STEP_BLOCKS.start, STEP_BLOCKS.end));
            write_trigrams(pages, index, segment.id, first..end.min(blocks.end))?;
            return Ok(true);
        }
        if merge_words_step(pages, index, MAX_TRIGRAM_SEGMENTS, budget_bytes, &mut |_| false)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the trigrams of blocks of a segment.
fn write_trigrams<P: WriteSegments>(
    pages: &P,
    index: IndexId,
    segment: SegmentId,
    blocks: Range<i64>,
) -> Result<(), P::Error> {
    let mut pairs: Vec<u64> = Vec::new();
    let mut block = blocks.start;
    pages.read_blocks(segment, blocks.clone(), &mut |bytes| {
        let row = u32::try_from(block).map_err(|_| corruption::<P>())?;
        for_each_trigram(bytes, &mut |trigram| {
            pairs.push(u64::from(trigram) << TRIGRAM_SHIFT | u64::from(row));
        });
        block += 1;
        Ok(true)
    })?;
    sort_by_trigram(&mut pairs);
    pairs.dedup();
    let target = pages.create_segment(index, blocks.end, false)?;
    let mut appender = BlockAppender::new(pages, target, 0);
    let mut builder = WordBlockBuilder::default();
    let mut rows = Vec::new();
    for list in pairs.chunk_by(|a, b| a >> TRIGRAM_SHIFT == b >> TRIGRAM_SHIFT) {
        let Some(first) = list.first() else { continue };
        rows.clear();
        rows.extend(list.iter().map(|pair| *pair as u32));
        let [_, trigram @ ..] = ((first >> TRIGRAM_SHIFT) as u32).to_be_bytes();
        builder.add(&trigram, &rows, &[]);
        appender.append_all(builder.full_blocks())?;
    }
    builder.finish_block();
    appender.append_all(builder.full_blocks())?;
    appender.finish().map(drop)
}

/// Passes the trigrams of the words of a block to `visit`. A trigram may come again, but not
/// because words begin in the same way, as neighbours mostly do.
fn for_each_trigram(block: &[u8], visit: &mut impl FnMut(u32)) {
    let mut previous: &[u8] = &[];
    for word in block.split(|byte| *byte == END_OF_WORD) {
        let shared = word.iter().zip(previous).take_while(|(a, b)| a == b).count();
        let from = shared.saturating_sub(TRIGRAM_BYTES - 1);
        for trigram in word.get(from..).unwrap_or_default().windows(TRIGRAM_BYTES) {
            visit(trigram.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)));
        }
        previous = word;
    }
}

/// Sorts pairs of a trigram and a row by the trigram, by its digits from the last to the first. The
/// pairs of a trigram stay in their order.
fn sort_by_trigram(pairs: &mut Vec<u64>) {
    let mut sorted = vec![0; pairs.len()];
    for shift in [TRIGRAM_SHIFT, TRIGRAM_SHIFT + DIGIT_BITS] {
        let digit = |pair: u64| (pair >> shift) as usize & ((1 << DIGIT_BITS) - 1);
        let mut ends = vec![0_usize; 1 << DIGIT_BITS];
        for pair in pairs.iter() {
            ends[digit(*pair)] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        for pair in pairs.iter() {
            let place = &mut ends[digit(*pair)];
            sorted[*place] = *pair;
            *place += 1;
        }
        std::mem::swap(pairs, &mut sorted);
    }
}

/// Deletes at most `max_blocks` blocks of a segment of a dictionary whose words are all in another
/// segment, and of its trigrams, and the segment with the last of them. Returns the number of
/// blocks, and whether the segment is gone.
///
/// The trigrams go when the segment has no blocks: then no search reads them.
pub(crate) fn delete_with_trigrams<P: WriteSegments>(
    pages: &P,
    segment: &mut Segment,
    max_blocks: i64,
) -> Result<(i64, bool), P::Error> {
    let mut left = max_blocks;
    let end = segment.blocks.end.min(segment.blocks.start.saturating_add(left));
    left -= end - segment.blocks.start;
    let mut trigrams = match is_large(segment) {
        true => pages.segments(index_of_trigrams::<P>(segment.id)?)?,
        false => Vec::new(),
    };
    if end == segment.blocks.end {
        while let Some(lists) = trigrams.last()
            && lists.blocks.end - lists.blocks.start <= left
        {
            left -= lists.blocks.end - lists.blocks.start;
            pages.delete_segment(lists)?;
            trigrams.pop();
        }
        if let Some(lists) = trigrams.last().filter(|_| left > 0) {
            let first = lists.blocks.start + left;
            pages.delete_blocks(lists.id, lists.blocks.start..first)?;
            pages.set_start(lists.id, first, AFTER_WORDS)?;
            left = 0;
        }
        if trigrams.is_empty() {
            pages.delete_segment(segment)?;
            return Ok((max_blocks - left, true));
        }
    }
    pages.delete_blocks(segment.id, segment.blocks.start..end)?;
    pages.set_start(segment.id, end, AFTER_WORDS)?;
    segment.blocks.start = end;
    Ok((max_blocks - left, false))
}

/// Compares the trigrams of a dictionary with its words. Returns the number of blocks with other
/// trigrams than those of their words, and of lists that are not where a search looks for them.
///
/// # Errors
/// Errors of the storage, and malformed blocks.
pub fn verify_trigrams<P: ReadSegments>(pages: &P, dictionary: IndexId) -> Result<u64, P::Error> {
    let segments = pages.segments(dictionary)?;
    segments
        .iter()
        .filter(|segment| is_large(segment))
        .try_fold(0, |wrong, segment| Ok(wrong + verify_segment_trigrams(pages, segment)?))
}

fn verify_segment_trigrams<P: ReadSegments>(pages: &P, segment: &Segment) -> Result<u64, P::Error> {
    if segment.blocks.is_empty() {
        // Its words are elsewhere, and its trigrams are being deleted.
        return Ok(0);
    }
    let index = index_of_trigrams::<P>(segment.id)?;
    let end = indexed_end(&pages.segments(index)?);
    let indexed = segment.blocks.start..end.min(segment.blocks.end);
    // The sum of the digests of the trigrams of each block, without those of the lists.
    let mut differences: Vec<u64> = Vec::new();
    let mut trigrams = Vec::new();
    if !indexed.is_empty() {
        pages.read_blocks(segment.id, indexed.clone(), &mut |block| {
            trigrams.clear();
            for_each_trigram(block, &mut |trigram| trigrams.push(trigram));
            trigrams.sort_unstable();
            trigrams.dedup();
            let digests = trigrams.iter().map(|trigram| digest_trigram(*trigram));
            differences.push(digests.fold(0, u64::wrapping_add));
            Ok(true)
        })?;
    }
    let mut wrong = u64::from(end > segment.blocks.end);
    let faults = verify_words(pages, index, &mut |posting| {
        let row = i64::from(posting.row);
        // The words of the blocks before are in another segment.
        if row < indexed.start {
            return;
        }
        let place = usize::try_from(row - indexed.start).unwrap_or(usize::MAX);
        match (differences.get_mut(place), posting.term) {
            (Some(sum), [a, b, c]) => {
                let digest = digest_trigram(u32::from_be_bytes([0, *a, *b, *c]));
                *sum = sum.wrapping_sub(digest);
            }
            _ => wrong += 1,
        }
    })?;
    wrong += differences.iter().filter(|difference| **difference != 0).count() as u64;
    Ok(wrong + faults.disordered_entries + faults.wrong_fences)
}

/// Returns a number of 64 bits for a trigram, so that sums of different sets differ.
fn digest_trigram(trigram: u32) -> u64 {
    let mut digest = u64::from(trigram).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        digest = (digest ^ digest >> 29).wrapping_mul(factor);
    }
    digest ^ digest >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_with_a_common_beginning_give_each_trigram() {
        let block = b"ab\0abc\0abcd\0abxyz\0bcd\0";
        let mut found = BTreeSet::new();
        for_each_trigram(block, &mut |trigram| {
            found.insert(trigram.to_be_bytes());
        });
        let expected: BTreeSet<[u8; 4]> =
            [b"\0abc", b"\0bcd", b"\0abx", b"\0bxy", b"\0xyz"].map(|bytes| *bytes).into();
        assert_eq!(found, expected);
    }

    proptest::proptest! {
        #[test]
        fn pairs_are_sorted_by_trigrams(
            pairs in proptest::collection::vec((0_u64..1 << 24, 0_u64..4), 0..200),
        ) {
            let mut pairs: Vec<u64> =
                pairs.iter().map(|(trigram, row)| trigram << TRIGRAM_SHIFT | row).collect();
            let mut expected = pairs.clone();
            expected.sort_by_key(|pair| pair >> TRIGRAM_SHIFT);
            sort_by_trigram(&mut pairs);
            assert_eq!(pairs, expected);
        }
    }

    #[test]
    fn ranges_join_neighbours() {
        assert_eq!(to_ranges(&[0b1101, 1], 0..100), [0..1, 2..4, 64..65]);
        assert_eq!(to_ranges(&[u64::MAX, 0], 3..70), vec![3..64; 1]);
    }
}
