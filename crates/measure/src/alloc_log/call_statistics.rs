//! Counts, sizes and lifetimes of calls: of a process, or of one phase of it.

use super::ring_layout::{OPERATIONS, RingOperation};
use rustc_hash::FxHashMap;

/// Sizes below this are counted one by one; also the width of the wide buckets.
pub(super) const WIDE_BUCKET_BYTES: u64 = 32 * 1024;
/// The width of the narrow buckets.
pub(super) const NARROW_BUCKET_BYTES: u64 = 16;
/// Requests below this are small.
pub(super) const SMALL_BYTES: u64 = 512;
/// Different sizes of large objects that are counted one by one.
const MAX_LARGE_SIZES: usize = 32_768;
/// Wide buckets that are counted one by one. Programs have some hundred; a log that somebody made
/// up may have any number.
const MAX_WIDE_BUCKETS: usize = 16_384;

/// Counts, sizes and lifetimes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStatistics {
    /// The number of calls of each function that succeeded.
    calls: [u64; OPERATIONS],
    /// The number of calls of each function that failed.
    failures: [u64; OPERATIONS],
    /// Releases of memory whose allocation was not seen.
    pub unknown_frees: u64,
    /// Cumulated bytes, as if every change of a size took new memory.
    pub upper_bytes: u64,
    /// Cumulated bytes, as if every change of a size happened in place.
    pub lower_bytes: u64,
    /// The number of requests of each size below [`WIDE_BUCKET_BYTES`].
    small_sizes: Vec<u64>,
    /// The number of requests of larger sizes; of the first [`MAX_LARGE_SIZES`] ones.
    large_sizes: FxHashMap<u64, u64>,
    /// The number of requests by wide bucket; of more than [`MAX_WIDE_BUCKETS`], the others count
    /// to the power of two below them.
    wide_buckets: FxHashMap<u64, u64>,
    /// Lifetimes of the objects that were released, in calls.
    pub lifetimes: LifetimeHistogram,
    /// Their lifetimes in microseconds; 0: within the few milliseconds between two notes of the
    /// time.
    pub lifetimes_us: LifetimeHistogram,
    /// Shares of these.
    pub lifetime_shares: LifetimeShares,
}

/// How many of the released objects lived how long. Limits are parts of the calls of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LifetimeShares {
    /// Released objects.
    pub released: u64,
    /// Released by the next call.
    pub at_zero: u64,
    /// Lived for at most 0.01 % of the calls.
    pub at_most_ten_thousandth: u64,
    /// Lived for at most 10 % of the calls.
    pub at_most_tenth: u64,
}

impl Default for CallStatistics {
    fn default() -> CallStatistics {
        CallStatistics {
            calls: [0; OPERATIONS],
            failures: [0; OPERATIONS],
            unknown_frees: 0,
            upper_bytes: 0,
            lower_bytes: 0,
            small_sizes: vec![0; WIDE_BUCKET_BYTES as usize],
            large_sizes: FxHashMap::default(),
            wide_buckets: FxHashMap::default(),
            lifetimes: LifetimeHistogram::default(),
            lifetimes_us: LifetimeHistogram::default(),
            lifetime_shares: LifetimeShares::default(),
        }
    }
}

impl CallStatistics {
    #[inline(always)]
    pub(super) fn count_call(&mut self, function: RingOperation) {
        self.calls[function as usize] += 1;
    }

    pub(super) fn count_failure(&mut self, function: RingOperation) {
        self.failures[function as usize] += 1;
    }

    /// Counts a request; `growth` is the part of its size that is new.
    #[inline(always)]
    pub(super) fn count_request(&mut self, size: u64, growth: u64) {
        // The sums of a log that somebody made up may exceed 64 bits.
        self.upper_bytes = self.upper_bytes.wrapping_add(size);
        self.lower_bytes = self.lower_bytes.wrapping_add(growth);
        match self.small_sizes.get_mut(size as usize) {
            Some(count) if size < WIDE_BUCKET_BYTES => *count += 1,
            _ => self.count_large(size),
        }
    }

    /// Counts an object that was released, with its lifetime in calls and in microseconds. Limits
    /// are those of the shares.
    #[inline(always)]
    pub(super) fn count_lifetime(&mut self, lifetime: u64, age_us: u64, limits: (u64, u64)) {
        self.lifetimes.count(lifetime);
        self.lifetimes_us.count(age_us);
        let shares = &mut self.lifetime_shares;
        shares.released += 1;
        shares.at_zero += u64::from(lifetime == 0);
        shares.at_most_ten_thousandth += u64::from(lifetime <= limits.0);
        shares.at_most_tenth += u64::from(lifetime <= limits.1);
    }

    #[cold]
    fn count_large(&mut self, size: u64) {
        self.add_wide(size / WIDE_BUCKET_BYTES, 1);
        self.add_large(size, 1);
    }

    fn add_wide(&mut self, bucket: u64, count: u64) {
        let is_kept =
            self.wide_buckets.len() < MAX_WIDE_BUCKETS || self.wide_buckets.contains_key(&bucket);
        let bucket = if is_kept { bucket } else { 1 << bucket.max(1).ilog2() };
        *self.wide_buckets.entry(bucket).or_default() += count;
    }

    fn add_large(&mut self, size: u64, count: u64) {
        if self.large_sizes.len() < MAX_LARGE_SIZES || self.large_sizes.contains_key(&size) {
            *self.large_sizes.entry(size).or_default() += count;
        }
    }

    /// Returns the number of calls of a function that succeeded.
    #[must_use]
    pub fn calls_of(&self, function: RingOperation) -> u64 {
        self.calls[function as usize]
    }

    /// Returns the number of calls of a function that failed.
    #[must_use]
    pub fn failures_of(&self, function: RingOperation) -> u64 {
        self.failures[function as usize]
    }

    /// Returns the number of all calls.
    #[must_use]
    pub fn total_calls(&self) -> u64 {
        self.calls.iter().chain(&self.failures).sum()
    }

    /// Returns the number of requests, that is of allocations and changes of sizes.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.small_sizes.iter().chain(self.wide_buckets.values()).sum()
    }

    /// Returns the number of requests below 512 bytes.
    #[must_use]
    pub fn small_requests(&self) -> u64 {
        self.small_sizes.iter().take(SMALL_BYTES as usize).sum()
    }

    /// Returns the number of requests in each bucket of 16 bytes, below 32 KiB.
    #[must_use]
    pub fn narrow_buckets(&self) -> Vec<u64> {
        let buckets = self.small_sizes.chunks(NARROW_BUCKET_BYTES as usize);
        buckets.map(|sizes| sizes.iter().sum()).collect()
    }

    /// Returns the buckets of 32 KiB that are not empty: number and requests, in order.
    #[must_use]
    pub fn wide_buckets(&self) -> Vec<(u64, u64)> {
        let first = self.small_sizes.iter().sum();
        let mut buckets: Vec<(u64, u64)> =
            self.wide_buckets.iter().map(|(bucket, count)| (*bucket, *count)).collect();
        if first > 0 {
            buckets.push((0, first));
        }
        buckets.sort_unstable();
        buckets
    }

    /// Returns the distribution of sizes: sizes, in steps of the buckets, and how many requests are
    /// for so many bytes or fewer.
    #[must_use]
    pub fn cumulative_sizes(&self) -> Vec<(u64, u64)> {
        let narrow = (1..).map(|number| number * NARROW_BUCKET_BYTES - 1);
        let narrow = narrow.zip(self.narrow_buckets());
        let wide = self.wide_buckets().into_iter().filter(|(number, _)| *number > 0);
        let wide = wide.map(|(number, count)| {
            (number.saturating_add(1).saturating_mul(WIDE_BUCKET_BYTES) - 1, count)
        });
        let mut sum = 0;
        let steps = narrow.chain(wide).filter(|(_, count)| *count > 0);
        steps
            .map(|(size, count)| {
                sum += count;
                (size, sum)
            })
            .collect()
    }

    /// Returns the sizes with the most requests: size and number, most first.
    #[must_use]
    pub fn frequent_sizes(&self, limit: usize) -> Vec<(u64, u64)> {
        self.first_sizes(limit, |_, count| count)
    }

    /// Returns the bytes of the requests for less than 32 KiB.
    #[must_use]
    pub fn bytes_below_32_kib(&self) -> u64 {
        let sizes = self.small_sizes.iter().enumerate();
        sizes.fold(0, |sum: u64, (size, count)| {
            sum.saturating_add((size as u64).saturating_mul(*count))
        })
    }

    /// Returns the sizes with the most requested bytes: size and number of requests, most first.
    #[must_use]
    pub fn heavy_sizes(&self, limit: usize) -> Vec<(u64, u64)> {
        self.first_sizes(limit, u64::saturating_mul)
    }

    fn first_sizes(&self, limit: usize, weight: impl Fn(u64, u64) -> u64) -> Vec<(u64, u64)> {
        let small = self.small_sizes.iter().enumerate().map(|(size, count)| (size as u64, *count));
        let large = self.large_sizes.iter().map(|(size, count)| (*size, *count));
        let mut sizes: Vec<(u64, u64)> =
            small.chain(large).filter(|(_, count)| *count > 0).collect();
        sizes.sort_unstable_by_key(|(size, count)| {
            (std::cmp::Reverse(weight(*size, *count)), *size)
        });
        sizes.truncate(limit);
        sizes
    }

    /// Adds the counts of another.
    pub(super) fn add(&mut self, other: &CallStatistics) {
        let pairs = [(&mut self.calls, &other.calls), (&mut self.failures, &other.failures)];
        for (sums, counts) in pairs {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        self.unknown_frees += other.unknown_frees;
        self.upper_bytes = self.upper_bytes.wrapping_add(other.upper_bytes);
        self.lower_bytes = self.lower_bytes.wrapping_add(other.lower_bytes);
        self.small_sizes.iter_mut().zip(&other.small_sizes).for_each(|(sum, count)| *sum += count);
        for (size, count) in &other.large_sizes {
            self.add_large(*size, *count);
        }
        for (bucket, count) in &other.wide_buckets {
            self.add_wide(*bucket, *count);
        }
        self.lifetimes.add(&other.lifetimes);
        self.lifetimes_us.add(&other.lifetimes_us);
        let (shares, others) = (&mut self.lifetime_shares, &other.lifetime_shares);
        shares.released += others.released;
        shares.at_zero += others.at_zero;
        shares.at_most_ten_thousandth += others.at_most_ten_thousandth;
        shares.at_most_tenth += others.at_most_tenth;
    }
}

/// Steps of the histogram in each power of two: a lifetime is known to 1.6 %.
const STEPS_LOG2: u32 = 6;
const STEPS: usize = 1 << STEPS_LOG2;

/// Lifetimes, in calls or microseconds: exact below 64, else in 64 steps to each power of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifetimeHistogram {
    buckets: Vec<u64>,
    total: u64,
}

impl Default for LifetimeHistogram {
    fn default() -> LifetimeHistogram {
        LifetimeHistogram { buckets: vec![0; (65 - STEPS_LOG2 as usize) * STEPS], total: 0 }
    }
}

impl LifetimeHistogram {
    #[inline(always)]
    pub(super) fn count(&mut self, lifetime: u64) {
        self.buckets[Self::bucket(lifetime)] += 1;
        self.total += 1;
    }

    #[inline(always)]
    fn bucket(lifetime: u64) -> usize {
        if lifetime < STEPS as u64 {
            return lifetime as usize;
        }
        let shift = lifetime.ilog2() - STEPS_LOG2;
        (shift as usize + 1) * STEPS + ((lifetime >> shift) as usize & (STEPS - 1))
    }

    /// Returns the smallest lifetime of a bucket.
    fn bucket_start(bucket: usize) -> u64 {
        match (bucket / STEPS).checked_sub(1) {
            None => bucket as u64,
            Some(shift) => ((STEPS + bucket % STEPS) as u64) << shift,
        }
    }

    /// Returns the number of lifetimes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the lifetime below or at which this part of them is, rounded down to its step.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((self.total as f64 * part).ceil() as u64).clamp(1, self.total);
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|count| {
            sum += count;
            sum >= rank
        })?;
        Some(Self::bucket_start(bucket))
    }

    /// Returns the distribution: lifetimes, and how many objects lived that long or shorter.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut sum = 0;
        let steps = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        steps
            .map(|(bucket, count)| {
                sum += count;
                (Self::bucket_start(bucket), sum)
            })
            .collect()
    }

    fn add(&mut self, other: &LifetimeHistogram) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, count)| *sum += count);
        self.total += other.total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that somebody made up has any number of sizes: their counts take bounded memory.
    #[test]
    fn many_large_sizes_take_bounded_memory() {
        let requests = 200_000;
        let mut phase = CallStatistics::default();
        for number in 1..=requests {
            phase.count_request(number * WIDE_BUCKET_BYTES, 0);
        }
        let mut total = CallStatistics::default();
        total.add(&phase);
        total.add(&phase);
        for (statistics, times) in [(phase, 1), (total, 2)] {
            assert_eq!(statistics.requests(), requests * times);
            assert!(statistics.wide_buckets.len() <= MAX_WIDE_BUCKETS + 64);
            assert!(statistics.large_sizes.len() <= MAX_LARGE_SIZES);
        }
    }
}
