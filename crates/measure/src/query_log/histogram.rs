//! How values are spread, in little room: mean and greatest exactly, quantiles to a thirty-second.
//!
//! Not a list of values: a log may have many millions. A value is counted in the step that it
//! belongs to; there are 32 steps from each power of two to the next.

use std::collections::BTreeMap;

/// Steps from a power of two to the next, as a power of two.
const SUB_BUCKET_BITS: u32 = 5;

/// Some values, such as times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// How many there are.
    pub count: u64,
    /// All together.
    pub sum: u64,
    /// The greatest.
    pub max: u64,
    buckets: BTreeMap<u64, u64>,
}

impl Histogram {
    /// Takes one more value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
        *self.buckets.entry(bucket_start(value)).or_default() += 1;
    }

    /// The mean; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The value below or at which this share (0 to 1) of all lies, or one that is a thirty-second
    /// greater at most.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut below = 0;
        for (step, number) in &self.buckets {
            below += number;
            if below >= wanted {
                return bucket_end(*step).min(self.max);
            }
        }
        self.max
    }

    /// The greatest value of each step that has some, with the share of all values that are no
    /// greater.
    #[must_use]
    pub fn cumulative_shares(&self) -> Vec<(f64, f64)> {
        let mut below = 0;
        let mut point = |(step, number): (&u64, &u64)| {
            below += number;
            (bucket_end(*step).min(self.max) as f64, below as f64 / self.count.max(1) as f64)
        };
        self.buckets.iter().map(&mut point).collect()
    }
}

/// The smallest value that is counted with this one.
fn bucket_start(value: u64) -> u64 {
    let lost = dropped_bits(value);
    (value >> lost) << lost
}

/// The greatest value of a step.
fn bucket_end(step: u64) -> u64 {
    step | ((1 << dropped_bits(step)) - 1)
}

/// How many bits of a value do not count.
fn dropped_bits(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BUCKET_BITS + 1)
}
