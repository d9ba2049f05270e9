//! The merge policy: which neighbouring segments are merged, and when.
//!
//! Segments fall into *tiers* by their bytes: tier 0 has up to [`SMALLEST_TIER_BYTES`], and each
//! next tier is [`MERGE_FACTOR`] times as large. The policy is size-tiered: [`MERGE_FACTOR`]
//! neighbours of a tier become one segment of the next tier. Only neighbours in the order of
//! batches are merged, since a segment between two inputs may list the same items as changed.

use crate::segment_storage::Segment;
use std::ops::Range;

/// The number of neighbouring segments of a tier that are merged into one.
const MERGE_FACTOR: usize = 4;
/// The same for segments of at least [`LARGE_SEGMENT_BYTES`]: a large import writes these and
/// merges them at its end.
const LARGE_MERGE_FACTOR: usize = 64;
const LARGE_SEGMENT_BYTES: i64 = 32 << 10;
/// A segment this many times larger than all newer ones together is left out of a merge. With 2,
/// the write amplification is 5, with 7 segments; with 4 it would be 8, with 5 segments (calculated
/// for single items of 450 bytes after 1.3 MB).
const SIZE_RATIO: i64 = 2;
/// Upper bound of the segments of tier 0.
const SMALLEST_TIER_BYTES: i64 = 4096;
/// A forced merge leaves out a first segment that is this many times larger than all others
/// together.
const FORCE_MERGE_RATIO: i64 = 8;

fn tier(segment: &Segment) -> u32 {
    let ratio = (segment.bytes.max(1) - 1) / SMALLEST_TIER_BYTES;
    ratio.checked_ilog(MERGE_FACTOR as i64).map_or(0, |log| log + 1)
}

/// Chooses the newest segments of one tier or below, if they are enough, without a segment that is
/// much larger than all newer ones together: it would be rewritten for a few items.
pub(crate) fn choose_tier(free: &[Segment]) -> Option<Range<usize>> {
    let largest = free.iter().map(tier).max()?;
    (0..=largest).find_map(|limit| {
        let (mut count, mut least, mut sum) = (0, i64::MAX, 0_i64);
        for segment in free.iter().rev().take_while(|segment| tier(segment) <= limit) {
            if count > 0 && segment.bytes / SIZE_RATIO > sum {
                break;
            }
            (count, least) = (count + 1, least.min(segment.bytes));
            sum = sum.saturating_add(segment.bytes);
        }
        let enough = if least < LARGE_SEGMENT_BYTES { MERGE_FACTOR } else { LARGE_MERGE_FACTOR };
        (count >= enough).then_some(free.len() - count..free.len())
    })
}

/// Chooses all segments, or all but a first one that is much larger than the others together.
pub(crate) fn choose_force_merge(free: &[Segment]) -> Option<Range<usize>> {
    let (first, rest) = free.split_first()?;
    let rest_bytes: i64 = rest.iter().map(|segment| segment.bytes).sum();
    let start = usize::from(first.bytes > rest_bytes * FORCE_MERGE_RATIO);
    (free.len() - start > 1).then_some(start..free.len())
}

/// Chooses all segments.
pub(crate) fn choose_all(free: &[Segment]) -> Option<Range<usize>> {
    (free.len() > 1).then_some(0..free.len())
}
