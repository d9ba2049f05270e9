//! Histograms of bounded size: exact mean and maximum, quantiles with an error of at most 1/32.
//!
//! A list of values would not be bounded, because a log may have many millions. Each power of two
//! is divided into 32 buckets.

use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use std::collections::BTreeMap;

/// The number of buckets in a power of two, as a power of two.
const SUB_BUCKET_BITS: u32 = 5;

/// A distribution of values, such as times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The maximum.
    pub max: u64,
    buckets: BTreeMap<u64, u64>,
}

/// A histogram is serialised as its figures; without values only as their number.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut figures = serializer.serialize_struct("Histogram", 5)?;
        figures.serialize_field("number", &self.count)?;
        if self.count > 0 {
            figures.serialize_field("mean", &self.mean())?;
            figures.serialize_field("median", &self.quantile(0.5))?;
            figures.serialize_field("p95", &self.quantile(0.95))?;
            figures.serialize_field("max", &self.max)?;
        }
        figures.end()
    }
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
        *self.buckets.entry(bucket_start(value)).or_default() += 1;
    }

    /// Returns the mean, or 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Returns the quantile of a share from 0 to 1, or a value at most 1/32 greater.
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

    /// Returns the upper bound of each bucket in use, with the share of all values up to it.
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

/// Returns the lower bound of the bucket of a value.
fn bucket_start(value: u64) -> u64 {
    let lost = dropped_bits(value);
    (value >> lost) << lost
}

/// Returns the upper bound of the bucket that begins at `step`.
fn bucket_end(step: u64) -> u64 {
    step | ((1 << dropped_bits(step)) - 1)
}

/// Returns the number of low bits of a value that its bucket ignores.
fn dropped_bits(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BUCKET_BITS + 1)
}
