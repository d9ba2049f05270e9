//! Equivalence of two zones: equal offsets at every instant of a range.

use super::Zone;
use crate::civil::Instant;

/// A range in which the offsets of two zones differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetDifference {
    /// The start.
    pub from: Instant,
    /// The end, exclusive.
    pub to: Instant,
    /// The offset of the first zone in seconds.
    pub first_offset: i32,
    /// The offset of the second zone in seconds.
    pub second_offset: i32,
}

/// Returns whether two zones have equal offsets at every instant of `[from, to)`.
#[must_use]
pub fn has_same_offsets(a: &Zone, b: &Zone, from: Instant, to: Instant) -> bool {
    // Most pairs differ at the first instant and need no list.
    a.offset(from) == b.offset(from) && offset_differences(a, b, from, to).is_empty()
}

/// Returns the ranges in `[from, to)` in which two zones differ, in order.
#[must_use]
pub fn offset_differences(a: &Zone, b: &Zone, from: Instant, to: Instant) -> Vec<OffsetDifference> {
    let mut moments = vec![from];
    for zone in [a, b] {
        moments.extend(zone.transitions(from, to).iter().map(|(at, _)| *at));
    }
    moments.sort_unstable();
    moments.dedup();
    let ends = moments.iter().skip(1).copied().chain([to]);
    let mut found: Vec<OffsetDifference> = Vec::new();
    for (start, end) in moments.iter().copied().zip(ends).filter(|(start, end)| start < end) {
        let next = OffsetDifference {
            from: start,
            to: end,
            first_offset: a.offset(start),
            second_offset: b.offset(start),
        };
        match found.last_mut() {
            _ if next.first_offset == next.second_offset => {}
            Some(last)
                if (last.to, last.first_offset, last.second_offset)
                    == (start, next.first_offset, next.second_offset) =>
            {
                last.to = end;
            }
            _ => found.push(next),
        }
    }
    found
}
