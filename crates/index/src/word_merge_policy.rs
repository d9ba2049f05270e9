//! The merge policy of the word index: which neighbouring segments are merged, and when.
//!
//! A query reads each segment. If they are more than the caller allows, the neighbours that are
//! cheapest to merge are merged. While a first index is written, many are allowed, so that little
//! is written twice; an index at rest has [`MAX_RESTING_SEGMENTS`].
//!
//! Nothing is merged before that: of merges of ten small segments each, which an earlier policy
//! made, the words of 10,000 single messages were rewritten a fifth more often.
//!
//! Separate from `merge_policy`, which lets an import write 64 segments before it merges any: there
//! a lookup is one step into each segment; here a query steps through all of them again and again.

use crate::segment_storage::Segment;
use std::ops::Range;

/// The most segments of an index at rest. With 8, two of which a first index leaves, the words of
/// messages that come one by one are rewritten ten times; with 14, five times.
pub const MAX_RESTING_SEGMENTS: usize = 14;

/// Chooses the neighbours that are cheapest to merge among segments that take part in no merge yet,
/// of which at most `max_segments` are to be left.
pub(crate) fn choose_word_segments(free: &[Segment], max_segments: usize) -> Option<Range<usize>> {
    let least = (free.len() + 1).checked_sub(max_segments.max(1)).filter(|least| *least > 1)?;
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
