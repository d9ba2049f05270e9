//! The merge policy of the word index: which neighbouring segments are merged, and when.
//!
//! A query reads each segment. If they are more than the caller allows, the newest ones are merged
//! if they are small, else the neighbours that are cheapest to merge. While a first index is
//! written, many are allowed, so that little is written twice; an index at rest has
//! [`MAX_RESTING_SEGMENTS`].
//!
//! Small segments are merged before they are too many, because that is cheap. They fall into
//! *tiers* by their bytes: tier 0 has up to [`SMALLEST_TIER_BYTES`], and each next tier is
//! [`MERGE_FACTOR`] times as large. The newest segments of one tier or below are merged when there
//! are [`MERGE_FACTOR`] of them.
//!
//! Separate from `merge_policy`, which lets an import write 64 segments before it merges any: there
//! a lookup is one step into each segment; here a query steps through all of them again and again.

use crate::segment_storage::Segment;
use std::ops::Range;

/// The number of neighbouring segments of a tier that are merged into one.
const MERGE_FACTOR: usize = 10;
/// The most segments of an index at rest. With 8, two of which a first index leaves, the words of
/// messages that come one by one are rewritten ten times; with 14, five times.
pub const MAX_RESTING_SEGMENTS: usize = 14;
/// Neighbours of a tier with more bytes are merged only when there are too many segments.
const MAX_TIER_MERGE_BYTES: i64 = 1 << 20;
/// The newest segments with at most so many bytes are merged before others.
const MAX_SMALL_MERGE_BYTES: i64 = 16 << 20;
/// A segment this many times larger than all newer ones together is left out of the merge of a
/// tier. With 2, a segment of 100 equal batches has been rewritten 2.8 times; with 4, 4.1 times.
const SIZE_RATIO: i64 = 2;
/// Upper bound of the segments of tier 0.
const SMALLEST_TIER_BYTES: i64 = 32 << 10;

/// Chooses neighbours to merge among segments that take part in no merge yet, of which at most
/// `max_segments` are to be left.
pub(crate) fn choose_word_segments(free: &[Segment], max_segments: usize) -> Option<Range<usize>> {
    choose_tier(free).or_else(|| {
        let least = (free.len() + 1).checked_sub(max_segments.max(1)).filter(|least| *least > 1)?;
        choose_newest(free, least).or_else(|| choose_cheapest(free, least))
    })
}

fn tier(segment: &Segment) -> u32 {
    let ratio = (segment.bytes.max(1) - 1) / SMALLEST_TIER_BYTES;
    ratio.checked_ilog(MERGE_FACTOR as i64).map_or(0, |log| log + 1)
}

/// Returns how many of the newest segments are merged, without a segment that is much larger than
/// all newer ones together, and their bytes.
fn count_newest<'s>(newest: impl Iterator<Item = &'s Segment>) -> (usize, i64) {
    let (mut count, mut sum) = (0, 0_i64);
    for segment in newest {
        if count > 0 && segment.bytes / SIZE_RATIO > sum {
            break;
        }
        (count, sum) = (count + 1, sum.saturating_add(segment.bytes));
    }
    (count, sum)
}

/// Chooses the newest segments of one tier or below, if they are enough.
fn choose_tier(free: &[Segment]) -> Option<Range<usize>> {
    let largest = free.iter().map(tier).max()?;
    (0..=largest).find_map(|limit| {
        let newest = free.iter().rev().take_while(|segment| tier(segment) <= limit);
        let (count, sum) = count_newest(newest);
        let is_enough = count >= MERGE_FACTOR && sum <= MAX_TIER_MERGE_BYTES;
        is_enough.then_some(free.len() - count..free.len())
    })
}

/// Chooses the newest segments if they are small, and at least so many.
fn choose_newest(free: &[Segment], least: usize) -> Option<Range<usize>> {
    let (count, sum) = count_newest(free.iter().rev());
    let is_chosen = count >= least && sum <= MAX_SMALL_MERGE_BYTES;
    is_chosen.then_some(free.len() - count..free.len())
}

/// Chooses at least so many neighbours whose merge has the least cost.
fn choose_cheapest(free: &[Segment], least: usize) -> Option<Range<usize>> {
    let mut sums = vec![0_i64];
    for segment in free {
        sums.push(sums.last().map_or(0, |sum| sum.saturating_add(segment.bytes)));
    }
    let runs = (least..=free.len())
        .flat_map(|length| (0..=free.len() - length).map(move |at| at..at + length));
    let cost = |run: &Range<usize>| {
        let sum = |end| sums.get(end).copied().unwrap_or(i64::MAX);
        // The cube favours long runs, which keep the number of segments low for longer: of 2,000
        // equal small segments after a large one, each is rewritten 5 times instead of 20.
        (sum(run.end) - sum(run.start)) as f64 / (run.len() as f64 - 1.0).powi(3)
    };
    runs.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment_storage::SegmentId;

    fn segment(bytes: i64) -> Segment {
        Segment {
            id: SegmentId(0),
            max_seq: 0,
            blocks: 0..1,
            from_term: Vec::new(),
            bytes,
            has_oversized: false,
            merged_into: None,
        }
    }

    /// Merges after each of these segments. Returns the bytes that were written by merges.
    fn write_and_merge(sizes: impl Iterator<Item = i64>) -> i64 {
        let (mut segments, mut written) = (Vec::new(), 0);
        for bytes in sizes {
            segments.push(segment(bytes));
            while let Some(run) = choose_word_segments(&segments, MAX_RESTING_SEGMENTS) {
                assert!(run.len() > 1);
                let sum = segments[run.clone()].iter().map(|segment| segment.bytes).sum();
                written += sum;
                segments.splice(run, [segment(sum)]);
            }
            assert!(segments.len() <= MAX_RESTING_SEGMENTS);
        }
        written
    }

    #[test]
    fn equal_segments_are_rewritten_less_than_three_times() {
        for bytes in [3000, 32 << 10, 1 << 20] {
            assert!(write_and_merge((0..100).map(|_| bytes)) < 3 * 100 * bytes);
        }
    }

    #[test]
    fn large_segments_are_not_rewritten_for_small_ones() {
        let sizes = [1 << 30, 1 << 28].into_iter().chain((0..500).map(|_| 4000));
        assert!(write_and_merge(sizes) < 5 * 500 * 4000);
    }

    proptest::proptest! {
        #[test]
        fn few_segments_are_left(sizes in proptest::collection::vec(1..1_i64 << 40, 0..60)) {
            write_and_merge(sizes.into_iter());
        }
    }
}
