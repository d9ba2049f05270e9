//! The merge policy of the word index: which neighbouring segments are merged, and when.
//!
//! Segments fall into *tiers* by their bytes: tier 0 has up to [`SMALLEST_TIER_BYTES`], and each
//! next tier is [`MERGE_FACTOR`] times as large. The newest segments of one tier or below are
//! merged when there are [`MERGE_FACTOR`] of them. Segments of many tiers can still be too many for
//! a query, which reads each of them: then the neighbours that are cheapest to merge are merged.
//!
//! Separate from `merge_policy`, which lets an import write 64 segments before it merges any: there
//! a lookup is one step into each segment; here a query steps through all of them again and again.

use crate::segment_storage::Segment;
use std::ops::Range;

/// The number of neighbouring segments of a tier that are merged into one.
const MERGE_FACTOR: usize = 8;
/// The most segments that are left when all is merged.
const MAX_SEGMENTS: usize = 8;
/// A segment this many times larger than all newer ones together is left out of the merge of a
/// tier. With 2, a segment of 100 equal batches has been rewritten 2.8 times; with 4, 4.1 times.
const SIZE_RATIO: i64 = 2;
/// Upper bound of the segments of tier 0.
const SMALLEST_TIER_BYTES: i64 = 32 << 10;

/// Chooses neighbours to merge among segments that take part in no merge yet.
pub(crate) fn choose_word_segments(free: &[Segment]) -> Option<Range<usize>> {
    choose_newest(free).or_else(|| choose_cheapest(free))
}

fn tier(segment: &Segment) -> u32 {
    let ratio = (segment.bytes.max(1) - 1) / SMALLEST_TIER_BYTES;
    ratio.checked_ilog(MERGE_FACTOR as i64).map_or(0, |log| log + 1)
}

/// Chooses the newest segments of one tier or below, if they are enough, without a segment that is
/// much larger than all newer ones together.
fn choose_newest(free: &[Segment]) -> Option<Range<usize>> {
    let largest = free.iter().map(tier).max()?;
    (0..=largest).find_map(|limit| {
        let (mut count, mut sum) = (0, 0_i64);
        for segment in free.iter().rev().take_while(|segment| tier(segment) <= limit) {
            if count > 0 && segment.bytes / SIZE_RATIO > sum {
                break;
            }
            (count, sum) = (count + 1, sum.saturating_add(segment.bytes));
        }
        (count >= MERGE_FACTOR).then_some(free.len() - count..free.len())
    })
}

/// Chooses the neighbours whose merge leaves few enough segments and has the least cost; `None` if
/// there are few enough already.
fn choose_cheapest(free: &[Segment]) -> Option<Range<usize>> {
    if free.len() <= MAX_SEGMENTS {
        return None;
    }
    let mut sums = vec![0_i64];
    for segment in free {
        sums.push(sums.last().map_or(0, |sum| sum.saturating_add(segment.bytes)));
    }
    let lengths = free.len() - MAX_SEGMENTS + 1..=free.len();
    let runs = lengths.flat_map(|length| (0..=free.len() - length).map(move |at| at..at + length));
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
            while let Some(run) = choose_word_segments(&segments) {
                assert!(run.len() > 1);
                let sum = segments[run.clone()].iter().map(|segment| segment.bytes).sum();
                written += sum;
                segments.splice(run, [segment(sum)]);
            }
            assert!(segments.len() <= MAX_SEGMENTS);
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
