//! Values over time, in a bounded number of buckets.
//!
//! The length of a log is unknown before its end. Buckets are a millisecond wide at first and
//! become wider when there are too many: seconds, minutes, hours, days. Lines that are out of
//! order, or from another century, are handled as well.

use serde::Serialize;
use std::collections::BTreeMap;

/// The bucket widths in microseconds, each a multiple of the one before. Wider buckets double.
const BUCKET_WIDTHS_MICROS: [i64; 16] = [
    1_000,
    10_000,
    100_000,
    SECOND_MICROS,
    5 * SECOND_MICROS,
    15 * SECOND_MICROS,
    60 * SECOND_MICROS,
    5 * 60 * SECOND_MICROS,
    15 * 60 * SECOND_MICROS,
    30 * 60 * SECOND_MICROS,
    HOUR_MICROS,
    2 * HOUR_MICROS,
    6 * HOUR_MICROS,
    12 * HOUR_MICROS,
    24 * HOUR_MICROS,
    7 * 24 * HOUR_MICROS,
];
const SECOND_MICROS: i64 = 1_000_000;
const HOUR_MICROS: i64 = 3600 * SECOND_MICROS;

/// A sequence of buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline<T> {
    /// The width of a bucket in microseconds.
    pub bucket_width_micros: i64,
    max_buckets: usize,
    buckets: BTreeMap<i64, T>,
}

/// A bucket with its start, for JSON.
#[derive(Debug, Serialize)]
pub struct TimelineEntry<'a, T> {
    at_us: i64,
    #[serde(flatten)]
    value: &'a T,
}

/// A value that can be merged with the value of the next bucket.
pub trait TimelineBucket: Default {
    /// Merges the value of the next bucket into this one.
    fn merge(&mut self, later: Self);
}

impl<T: TimelineBucket> Timeline<T> {
    /// Returns the buckets in use, for JSON.
    #[must_use]
    pub fn entries(&self) -> Vec<TimelineEntry<'_, T>> {
        self.buckets().map(|(at_us, value)| TimelineEntry { at_us, value }).collect()
    }

    /// Returns an empty timeline with a maximum number of buckets.
    #[must_use]
    pub fn new(most: usize) -> Timeline<T> {
        Timeline {
            bucket_width_micros: BUCKET_WIDTHS_MICROS[0],
            max_buckets: most.max(2),
            buckets: BTreeMap::new(),
        }
    }

    /// Returns the bucket of a time.
    pub fn bucket_at(&mut self, at: i64) -> &mut T {
        while self.buckets.len() > self.max_buckets
            || self.bucket_count(at) > self.max_buckets as u64
        {
            self.widen_buckets();
        }
        self.buckets.entry(at.div_euclid(self.bucket_width_micros)).or_default()
    }

    /// Returns the buckets in use with their start times, in order.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, &T)> {
        self.buckets
            .iter()
            .map(|(number, it)| (number.saturating_mul(self.bucket_width_micros), it))
    }

    /// Returns the number of buckets from the first to the last if one of them has this time.
    fn bucket_count(&self, at: i64) -> u64 {
        let at = at.div_euclid(self.bucket_width_micros);
        let first = self.buckets.keys().next().map_or(at, |first| at.min(*first));
        let last = self.buckets.keys().next_back().map_or(at, |last| at.max(*last));
        last.abs_diff(first).saturating_add(1)
    }

    fn widen_buckets(&mut self) {
        let wider = BUCKET_WIDTHS_MICROS.iter().find(|width| **width > self.bucket_width_micros);
        let wider = wider.copied().unwrap_or(self.bucket_width_micros.saturating_mul(2));
        let times = (wider / self.bucket_width_micros).max(2);
        self.bucket_width_micros = self.bucket_width_micros.saturating_mul(times);
        for (number, it) in std::mem::take(&mut self.buckets) {
            self.buckets.entry(number.div_euclid(times)).or_default().merge(it);
        }
    }
}
