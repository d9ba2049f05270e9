//! The bytes of each call stack of a process, estimated from the samples in its log.
//!
//! A sample is met once in so many bytes that are asked for, so an object of `size` bytes is one
//! with probability `1 - exp(-size / interval)`. Each stands for its size divided by that
//! probability; so the sums are right on average, for small and for large objects. A new size is a
//! new request with its own stack. It continues the object, so the bytes of the former size are no
//! longer live, but they are not short-lived; those of the last size are if the object is.
//!
//! An estimate `bytes` by a sample of probability `p` has the variance `bytes * bytes * (1 - p)`.
//! That is never more than `bytes * interval`, so variances are kept in units of the interval.

use super::live_table::LiveObject;
use rustc_hash::FxHashMap;

/// The bytes of a call stack, estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackBytes {
    /// Samples.
    pub samples: u64,
    /// Requests, in parts of one of which there are [`REQUEST_PARTS`].
    pub(super) request_parts: u64,
    /// Bytes asked for, as if every change of a size took new memory.
    pub requested: u64,
    /// Of these, bytes that were live at the peak of the process.
    pub at_peak: u64,
    /// Bytes that were live at the end.
    pub at_end: u64,
    /// Bytes of objects, in their last size, that were released within 0.01 % of the calls of the
    /// process after their allocation.
    pub short_lived: u64,
    /// The variance of `at_peak`, divided by the interval of samples.
    pub(super) peak_variance: u64,
    /// The variance of `at_end`, divided by the interval of samples.
    pub(super) end_variance: u64,
}

/// The parts of a request in which requests are estimated: a sample rarely stands for a whole
/// number of them.
const REQUEST_PARTS: u64 = 1024;

impl StackBytes {
    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.request_parts.saturating_add(REQUEST_PARTS / 2) / REQUEST_PARTS
    }
}

impl std::ops::AddAssign for StackBytes {
    fn add_assign(&mut self, other: StackBytes) {
        self.samples += other.samples;
        self.request_parts = self.request_parts.saturating_add(other.request_parts);
        self.requested = self.requested.saturating_add(other.requested);
        self.at_peak = self.at_peak.saturating_add(other.at_peak);
        self.at_end = self.at_end.saturating_add(other.at_end);
        self.short_lived = self.short_lived.saturating_add(other.short_lived);
        self.peak_variance = self.peak_variance.saturating_add(other.peak_variance);
        self.end_variance = self.end_variance.saturating_add(other.end_variance);
    }
}

/// The call stacks of a process.
#[derive(Debug, Clone, Default)]
pub struct CallStacks {
    /// The mean distance of samples in bytes.
    pub interval: u64,
    /// The bytes of the stack that ends with each frame, without those that go on from there.
    /// Index 0 is of stacks that could not be unwound.
    pub by_frame: Vec<StackBytes>,
}

/// A sampled object that is live.
#[derive(Debug, Clone, Copy)]
struct LiveSample {
    frame: u32,
    bytes: u64,
    variance: u64,
}

/// Collects the bytes of each call stack.
#[derive(Debug, Default)]
pub(super) struct StackCounter {
    stacks: CallStacks,
    live: FxHashMap<u64, LiveSample>,
    /// Frames whose live bytes have changed since the peak, each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    /// Nothing was released since the peak.
    is_at_peak: bool,
}

impl StackCounter {
    /// Begins with the number of frames in the log.
    pub(super) fn new(interval: u64, frames: usize) -> StackCounter {
        let by_frame = match interval {
            0 => Vec::new(),
            _ => vec![StackBytes::default(); frames + 1],
        };
        let is_changed = vec![false; by_frame.len()];
        let stacks = CallStacks { interval, by_frame };
        StackCounter { stacks, is_changed, ..StackCounter::default() }
    }

    /// Counts a sample.
    pub(super) fn add(&mut self, object: &LiveObject, frame: u64) {
        let Some(index) = usize::try_from(frame).ok() else { return };
        let Some(entry) = self.stacks.by_frame.get_mut(index) else { return };
        let SampleWeight { bytes, request_parts, variance } =
            SampleWeight::new(object.size, self.stacks.interval);
        entry.samples += 1;
        entry.request_parts = entry.request_parts.saturating_add(request_parts);
        entry.end_variance = entry.end_variance.wrapping_add(variance);
        entry.requested = entry.requested.saturating_add(bytes);
        entry.at_end = entry.at_end.wrapping_add(bytes);
        let frame = index as u32;
        self.note_change(frame);
        self.live.insert(object.ordinal, LiveSample { frame, bytes, variance });
    }

    /// Notes that an object gets a new size, or that it is released and whether it was short-lived.
    #[inline(always)]
    pub(super) fn release(&mut self, ordinal: u64, is_short_lived: bool) {
        self.end_peak();
        if !self.live.is_empty() {
            self.release_sample(ordinal, is_short_lived);
        }
    }

    fn release_sample(&mut self, ordinal: u64, is_short_lived: bool) {
        let Some(sample) = self.live.remove(&ordinal) else { return };
        let entry = &mut self.stacks.by_frame[sample.frame as usize];
        entry.at_end = entry.at_end.wrapping_sub(sample.bytes);
        entry.end_variance = entry.end_variance.wrapping_sub(sample.variance);
        if is_short_lived {
            entry.short_lived = entry.short_lived.saturating_add(sample.bytes);
        }
        self.note_change(sample.frame);
    }

    fn note_change(&mut self, frame: u32) {
        if let Some(is_changed) = self.is_changed.get_mut(frame as usize)
            && !std::mem::replace(is_changed, true)
        {
            self.changed.push(frame);
        }
    }

    /// Notes that live memory is at a new peak. The stack of its last allocation follows, so the
    /// live bytes are copied when the peak ends.
    #[inline(always)]
    pub(super) fn begin_peak(&mut self) {
        self.is_at_peak = true;
    }

    /// Notes that live memory gets less.
    #[inline(always)]
    pub(super) fn end_peak(&mut self) {
        if self.is_at_peak {
            self.is_at_peak = false;
            self.copy_live_bytes();
        }
    }

    /// Copies what is live of the stacks that have changed, so each change is copied once.
    fn copy_live_bytes(&mut self) {
        for frame in self.changed.drain(..) {
            let entry = &mut self.stacks.by_frame[frame as usize];
            (entry.at_peak, entry.peak_variance) = (entry.at_end, entry.end_variance);
            self.is_changed[frame as usize] = false;
        }
    }

    /// Returns the bytes; `None` if no stacks were recorded.
    pub(super) fn finish(mut self) -> Option<CallStacks> {
        self.end_peak();
        (self.stacks.interval != 0).then_some(self.stacks)
    }
}

/// The bytes and requests that a sample stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SampleWeight {
    bytes: u64,
    /// As in [`StackBytes`].
    request_parts: u64,
    /// The variance of the bytes, divided by the interval.
    variance: u64,
}

impl SampleWeight {
    fn new(size: u64, interval: u64) -> SampleWeight {
        let size = size as f64;
        let probability = -(-size / interval as f64).exp_m1();
        if probability <= 0.0 {
            return SampleWeight { bytes: 0, request_parts: 0, variance: 0 };
        }
        let bytes = size / probability;
        SampleWeight {
            bytes: bytes as u64,
            request_parts: (REQUEST_PARTS as f64 / probability).round() as u64,
            variance: (bytes * bytes * (1.0 - probability) / interval as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring_layout::RingOperation;
    use super::*;

    fn object(ordinal: u64, size: u64) -> LiveObject {
        LiveObject { ordinal, birth: 0, size, allocated_by: RingOperation::Malloc, phase: 0 }
    }

    #[test]
    fn samples_stand_for_all_bytes() {
        // Small objects stand for about an interval, large ones for themselves.
        let small = SampleWeight::new(1, 1_000_000);
        let requests = small.request_parts / REQUEST_PARTS;
        assert_eq!((small.bytes / 1000, requests), (1000, 1_000_000));
        assert!((999_000..=1_000_000).contains(&small.variance), "{small:?}");
        let large = SampleWeight { bytes: 100_000_000, request_parts: REQUEST_PARTS, variance: 0 };
        assert_eq!(SampleWeight::new(100_000_000, 1000), large);
        assert_eq!(SampleWeight::new(0, 1000).bytes, 0);
        // On average the sum is right: size * probability / probability.
        let size = 700.0_f64;
        let probability = 1.0 - (-size / 1000.0).exp();
        assert!((SampleWeight::new(700, 1000).bytes as f64 * probability - size).abs() < 1.0);
    }

    /// A weight of one and a half, of which half would be lost if each were a whole number.
    #[test]
    fn requests_are_right_on_average() {
        let (size, interval) = (9_000, 8_192);
        let probability = 1.0 - (-(size as f64) / interval as f64).exp();
        let samples = (100_000.0 * probability) as u64;
        let mut counter = StackCounter::new(interval, 1);
        (1..=samples).for_each(|ordinal| counter.add(&object(ordinal, size), 1));
        let requests = counter.finish().unwrap().by_frame[1].requests();
        assert!(requests.abs_diff(100_000) < 100, "{requests}");
    }

    #[test]
    fn live_bytes_are_those_at_the_peak() {
        let mut counter = StackCounter::new(1, 2);
        counter.begin_peak();
        counter.add(&object(1, 1000), 1);
        counter.begin_peak();
        counter.add(&object(2, 500), 2);
        counter.release(2, true);
        counter.release(1, false);
        counter.add(&object(3, 70), 1);
        counter.release(7, true);
        let stacks = counter.finish().unwrap();
        let one = StackBytes {
            samples: 2,
            request_parts: 2 * REQUEST_PARTS,
            requested: 1070,
            at_peak: 1000,
            at_end: 70,
            ..StackBytes::default()
        };
        let two = StackBytes {
            samples: 1,
            request_parts: REQUEST_PARTS,
            requested: 500,
            at_peak: 500,
            short_lived: 500,
            ..StackBytes::default()
        };
        assert_eq!(stacks.by_frame, [StackBytes::default(), one, two]);
    }

    #[test]
    fn frames_that_are_not_in_the_log_are_ignored() {
        let mut counter = StackCounter::new(1, 0);
        counter.add(&object(1, 1000), 9);
        assert_eq!(counter.finish().unwrap().by_frame, [StackBytes::default()]);
        assert!(StackCounter::new(0, 5).finish().is_none());
    }
}
