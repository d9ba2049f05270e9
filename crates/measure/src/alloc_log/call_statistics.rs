//! Counts, sizes and lifetimes of calls: of a process, or of one phase of it.

use super::large_sizes::LargeSizes;
use super::ring_layout::{OPERATIONS, RingOperation};
use super::small_sizes::{SmallSizes, WIDE_BUCKET_BYTES};

/// The width of the narrow buckets.
pub(super) const NARROW_BUCKET_BYTES: u64 = 16;
/// Requests below this are small.
pub(super) const SMALL_BYTES: u64 = 512;

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
    small_sizes: SmallSizes,
    /// The numbers of requests of larger sizes.
    large_sizes: LargeSizes,
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

impl CallStatistics {
    /// Begins the statistics of a phase.
    pub(super) fn of_phase() -> CallStatistics {
        CallStatistics::with_sizes(LargeSizes::of_phase())
    }

    /// Sums up the statistics of phases, whose large sizes were counted together.
    pub(super) fn sum<'a>(
        phases: impl Iterator<Item = &'a CallStatistics>,
        large_sizes: LargeSizes,
    ) -> CallStatistics {
        let mut total = CallStatistics::with_sizes(large_sizes);
        phases.for_each(|phase| total.add(phase));
        total
    }

    fn with_sizes(large_sizes: LargeSizes) -> CallStatistics {
        CallStatistics {
            calls: [0; OPERATIONS],
            failures: [0; OPERATIONS],
            unknown_frees: 0,
            upper_bytes: 0,
            lower_bytes: 0,
            small_sizes: SmallSizes::default(),
            large_sizes,
            lifetimes: LifetimeHistogram::default(),
            lifetimes_us: LifetimeHistogram::default(),
            lifetime_shares: LifetimeShares::default(),
        }
    }

    #[inline(always)]
    pub(super) fn count_call(&mut self, function: RingOperation) {
        self.calls[function as usize] += 1;
    }

    pub(super) fn count_failure(&mut self, function: RingOperation) {
        self.failures[function as usize] += 1;
    }

    /// Counts a request, a large one in `all_large` as well; `growth` is the part of its size that
    /// is new.
    #[inline(always)]
    pub(super) fn count_request(&mut self, size: u64, growth: u64, all_large: &mut LargeSizes) {
        // The sums of a log that somebody made up may exceed 64 bits.
        self.upper_bytes = self.upper_bytes.wrapping_add(size);
        self.lower_bytes = self.lower_bytes.wrapping_add(growth);
        if !self.small_sizes.count(size) {
            self.count_large(size, all_large);
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
    fn count_large(&mut self, size: u64, all_large: &mut LargeSizes) {
        self.large_sizes.count(size);
        all_large.count(size);
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
        let large = self.large_sizes.buckets().map(|(_, requests)| requests);
        self.small_sizes.counts().chain(large).sum()
    }

    /// Returns the number of requests below 512 bytes.
    #[must_use]
    pub fn small_requests(&self) -> u64 {
        self.small_sizes.counts().take(SMALL_BYTES as usize).sum()
    }

    /// Returns the number of requests in each bucket of 16 bytes, below 32 KiB.
    #[must_use]
    pub fn narrow_buckets(&self) -> Vec<u64> {
        let mut buckets = vec![0; (WIDE_BUCKET_BYTES / NARROW_BUCKET_BYTES) as usize];
        for (size, count) in self.small_sizes.counts().enumerate() {
            buckets[size / NARROW_BUCKET_BYTES as usize] += count;
        }
        buckets
    }

    /// Returns the buckets of 32 KiB that are not empty: number and requests, in order.
    #[must_use]
    pub fn wide_buckets(&self) -> Vec<(u64, u64)> {
        let first = self.small_sizes.counts().sum();
        let mut buckets: Vec<(u64, u64)> = self.large_sizes.buckets().collect();
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

    /// Returns the sizes with the most requests: size and number, most first. Of one from 32 KiB
    /// on, as many as [`CallStatistics::missing_requests`] may not be counted.
    #[must_use]
    pub fn frequent_sizes(&self, limit: usize) -> Vec<(u64, u64)> {
        self.first_sizes(limit, self.large_sizes.frequent(), |_, count| count)
    }

    /// Returns how many requests may be missing in the number of each frequent size from 32 KiB on.
    #[must_use]
    pub fn missing_requests(&self) -> u64 {
        self.large_sizes.missing_requests()
    }

    /// Returns the bytes of the requests for less than 32 KiB.
    #[must_use]
    pub fn bytes_below_32_kib(&self) -> u64 {
        let sizes = (0..).zip(self.small_sizes.counts());
        sizes.fold(0, |sum: u64, (size, count): (u64, u64)| {
            sum.saturating_add(size.saturating_mul(count))
        })
    }

    /// Returns the sizes with the most requested bytes: size and number of requests, most first. Of
    /// one from 32 KiB on, requests for [`CallStatistics::missing_bytes`] may not be counted.
    #[must_use]
    pub fn heavy_sizes(&self, limit: usize) -> Vec<(u64, u64)> {
        self.first_sizes(limit, self.large_sizes.heavy(), u64::saturating_mul)
    }

    /// Returns how many bytes may be missing in the requests of each heavy size from 32 KiB on.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.large_sizes.missing_bytes()
    }

    fn first_sizes(
        &self,
        limit: usize,
        large: impl Iterator<Item = (u64, u64)>,
        weight: impl Fn(u64, u64) -> u64,
    ) -> Vec<(u64, u64)> {
        let small = (0..).zip(self.small_sizes.counts());
        let mut sizes: Vec<(u64, u64)> =
            small.chain(large).filter(|(_, count)| *count > 0).collect();
        sizes.sort_unstable_by_key(|(size, count)| {
            (std::cmp::Reverse(weight(*size, *count)), *size)
        });
        sizes.truncate(limit);
        sizes
    }

    /// Adds the counts of another, but those of large sizes.
    fn add(&mut self, other: &CallStatistics) {
        let pairs = [(&mut self.calls, &other.calls), (&mut self.failures, &other.failures)];
        for (sums, counts) in pairs {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        self.unknown_frees += other.unknown_frees;
        self.upper_bytes = self.upper_bytes.wrapping_add(other.upper_bytes);
        self.lower_bytes = self.lower_bytes.wrapping_add(other.lower_bytes);
        self.small_sizes.add(&other.small_sizes);
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
