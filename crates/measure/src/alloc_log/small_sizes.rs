//! Counts of the requests by size, below the width of a wide bucket.
//!
//! Each phase has such counts, so a count takes 2 bytes: when they are full, they are carried into
//! a table, which has an entry for each 65,536 requests at most.

use rustc_hash::FxHashMap;

/// Sizes below this are counted one by one; also the width of the wide buckets.
pub(super) const WIDE_BUCKET_BYTES: u64 = 32 * 1024;

/// Counts of requests by size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SmallSizes {
    low: Vec<u16>,
    /// The rest of the count of a size, in 65,536 requests.
    carried: FxHashMap<usize, u64>,
}

impl Default for SmallSizes {
    fn default() -> SmallSizes {
        SmallSizes { low: vec![0; WIDE_BUCKET_BYTES as usize], carried: FxHashMap::default() }
    }
}

impl SmallSizes {
    /// Counts a request; returns whether it is small.
    #[inline(always)]
    pub(super) fn count(&mut self, size: u64) -> bool {
        match self.low.get_mut(size as usize) {
            Some(count) if size < WIDE_BUCKET_BYTES => {
                *count = count.wrapping_add(1);
                if *count == 0 {
                    self.carry(size as usize, 1);
                }
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn carry(&mut self, size: usize, times: u64) {
        *self.carried.entry(size).or_default() += times;
    }

    /// Returns the number of requests of each size, from 0 on.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.low.iter().enumerate().map(|(size, low)| {
            let carried = self.carried.get(&size).copied().unwrap_or(0);
            (carried << u16::BITS) + u64::from(*low)
        })
    }

    /// Adds the counts of another.
    pub(super) fn add(&mut self, other: &SmallSizes) {
        for (size, (count, added)) in self.low.iter_mut().zip(&other.low).enumerate() {
            let (sum, is_full) = count.overflowing_add(*added);
            *count = sum;
            if is_full {
                *self.carried.entry(size).or_default() += 1;
            }
        }
        other.carried.iter().for_each(|(size, times)| self.carry(*size, *times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_beyond_two_bytes() {
        let mut sizes = SmallSizes::default();
        for number in 0..200_000_u64 {
            assert!(sizes.count(7));
            assert!(sizes.count(number % 5));
        }
        assert!(!sizes.count(WIDE_BUCKET_BYTES) && !sizes.count(u64::MAX));
        let mut sum = sizes.clone();
        sum.add(&sizes);
        sum.add(&SmallSizes::default());
        for (sizes, times) in [(sizes, 1), (sum, 2)] {
            let counts: Vec<u64> = sizes.counts().collect();
            assert_eq!(counts.len() as u64, WIDE_BUCKET_BYTES);
            let expected = [40_000, 40_000, 40_000, 40_000, 40_000, 0, 0, 200_000, 0];
            assert_eq!(counts[..9], expected.map(|count| count * times));
        }
    }
}
