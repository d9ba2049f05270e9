//! Counts of the requests by large size, of any number of sizes, in bounded memory.
//!
//! Sizes that weigh much are counted one by one. When there are too many, the weight of half of
//! them or more is dropped, as Misra and Gries do, in steps that cost little for each request. So
//! a size is in the table for sure if it weighs more than a known error, and its count is too low
//! by no more than this.

use super::small_sizes::WIDE_BUCKET_BYTES;
use rustc_hash::FxHashMap;

/// Different sizes of all requests that are counted one by one. A hash table of 32,768 places has
/// place for so many.
const MAX_SIZES: usize = 28_672;
/// Those of a phase: there may be 64 phases.
const MAX_PHASE_SIZES: usize = 448;
/// Wide buckets of all requests that are counted one by one. Programs have some hundred.
const MAX_BUCKETS: usize = 16_384;
/// Those of a phase.
const MAX_PHASE_BUCKETS: usize = 896;

/// Counts of large requests, by size and by wide bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LargeSizes {
    frequent: SizeTable,
    heavy: SizeTable,
    /// The number of requests by wide bucket; of more than `max_buckets`, the others count to the
    /// power of two below them.
    buckets: FxHashMap<u64, u64>,
    max_buckets: usize,
}

/// The sizes with the most weight.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SizeTable {
    sizes: FxHashMap<u64, SizeCount>,
    max_sizes: usize,
    /// The weight by which each count may be too low.
    error: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SizeCount {
    requests: u64,
    /// The weight of the requests, less what was dropped of it.
    weight: u64,
}

impl LargeSizes {
    /// Begins the counts of all requests.
    pub(super) fn new() -> LargeSizes {
        LargeSizes::with_limits(MAX_SIZES, MAX_BUCKETS)
    }

    /// Begins the counts of a phase.
    pub(super) fn of_phase() -> LargeSizes {
        LargeSizes::with_limits(MAX_PHASE_SIZES, MAX_PHASE_BUCKETS)
    }

    fn with_limits(max_sizes: usize, max_buckets: usize) -> LargeSizes {
        let table = || SizeTable { sizes: FxHashMap::default(), max_sizes, error: 0 };
        LargeSizes { frequent: table(), heavy: table(), buckets: FxHashMap::default(), max_buckets }
    }

    /// Counts a request.
    pub(super) fn count(&mut self, size: u64) {
        self.frequent.count(size, 1);
        self.heavy.count(size, size);
        let bucket = size / WIDE_BUCKET_BYTES;
        let is_kept = self.buckets.len() < self.max_buckets || self.buckets.contains_key(&bucket);
        let bucket = if is_kept { bucket } else { 1 << bucket.max(1).ilog2() };
        *self.buckets.entry(bucket).or_default() += 1;
    }

    /// Returns the wide buckets that are not empty, in no order: number and requests.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().map(|(bucket, requests)| (*bucket, *requests))
    }

    /// Returns the sizes with the most requests, in no order: size and requests.
    pub(super) fn frequent(&self) -> impl Iterator<Item = (u64, u64)> {
        self.frequent.sizes()
    }

    /// Returns the sizes with the most bytes, in no order: size and requests.
    pub(super) fn heavy(&self) -> impl Iterator<Item = (u64, u64)> {
        self.heavy.sizes()
    }

    /// Returns how many requests may be missing in the count of each frequent size.
    pub(super) fn missing_requests(&self) -> u64 {
        self.frequent.error
    }

    /// Returns how many bytes may be missing in the requests of each heavy size.
    pub(super) fn missing_bytes(&self) -> u64 {
        self.heavy.error
    }
}

impl SizeTable {
    fn count(&mut self, size: u64, weight: u64) {
        if self.sizes.len() >= self.max_sizes && !self.sizes.contains_key(&size) {
            self.drop_light();
        }
        let count = self.sizes.entry(size).or_default();
        count.requests += 1;
        // A log that somebody made up has any sizes.
        count.weight = count.weight.saturating_add(weight);
    }

    /// Drops the middle weight from all sizes, and the sizes that have none left. At least half of
    /// them had so much: all these drops together are at most the weight of all requests, divided
    /// by half of the sizes.
    #[cold]
    fn drop_light(&mut self) {
        let mut weights: Vec<u64> = self.sizes.values().map(|count| count.weight).collect();
        let middle = weights.len() / 2;
        let (_, middle, _) = weights.select_nth_unstable(middle);
        self.error = self.error.saturating_add(*middle);
        self.sizes.retain(|_, count| {
            count.weight = count.weight.saturating_sub(*middle);
            count.weight > 0
        });
    }

    fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sizes.iter().map(|(size, count)| (*size, count.requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests of a log with one size that has most of the memory, one that is frequent, and
    /// very many others.
    fn requests() -> impl Iterator<Item = u64> {
        (0..300_000).map(|number: u64| match number % 10 {
            3 if number > 150_000 => 1 << 33,
            7 if number > 150_000 => 40_000,
            _ => 32_768 + number,
        })
    }

    #[test]
    fn a_size_that_begins_late_is_found_among_very_many() {
        let (mut sizes, mut exact) = (LargeSizes::new(), FxHashMap::default());
        for size in requests() {
            sizes.count(size);
            *exact.entry(size).or_insert(0) += 1;
        }
        let (heaviest, times) = sizes.heavy().max_by_key(|(size, times)| size * times).unwrap();
        assert_eq!((heaviest, times), (1 << 33, exact[&(1 << 33)]));
        let (most, times) = sizes.frequent().max_by_key(|(_, times)| *times).unwrap();
        assert_eq!(most, 40_000);
        assert!(exact[&40_000] - times <= sizes.missing_requests());
        let bytes = requests().sum::<u64>();
        assert!((1..=bytes / (MAX_SIZES as u64 / 2)).contains(&sizes.missing_bytes()));
        for (size, times) in exact {
            let counted = sizes.heavy().find(|(it, _)| *it == size).map_or(0, |(_, times)| times);
            assert!((times - counted) * size <= sizes.missing_bytes(), "{size}");
            if size > 60_000 && size < 1 << 33 {
                break;
            }
        }
    }

    #[test]
    fn sizes_that_fit_are_all_counted() {
        let mut sizes = LargeSizes::new();
        let count = MAX_SIZES as u64;
        (0..count * 2).for_each(|number| sizes.count(40_000 + number % count));
        assert_eq!((sizes.missing_requests(), sizes.missing_bytes()), (0, 0));
        assert_eq!(sizes.heavy().filter(|(_, times)| *times == 2).count() as u64, count);
        assert_eq!(sizes.frequent().count() as u64, count);
    }

    /// A log that somebody made up has any number of sizes: their counts take bounded memory.
    #[test]
    fn many_large_sizes_take_bounded_memory() {
        for (mut sizes, max_sizes, max_buckets) in [
            (LargeSizes::new(), MAX_SIZES, MAX_BUCKETS),
            (LargeSizes::of_phase(), MAX_PHASE_SIZES, MAX_PHASE_BUCKETS),
        ] {
            let requests = 200_000;
            (1..=requests).for_each(|number| sizes.count(number * WIDE_BUCKET_BYTES));
            assert_eq!(sizes.buckets().map(|(_, requests)| requests).sum::<u64>(), requests);
            assert!(sizes.buckets.len() <= max_buckets + 64);
            assert!(sizes.heavy.sizes.len() <= max_sizes);
            assert!(sizes.frequent.sizes.len() <= max_sizes);
        }
    }
}
