//! The samples of a process's memory that are written to the log: those that change something, and
//! of long runs the highest of each interval, so that neither idle nor long recordings fill a disk.

use super::log_block::RssSample;

/// The interval of samples of a process that does something.
pub(super) const SAMPLE_INTERVAL_US: u64 = 50_000;
/// The longest interval of samples of one that does nothing.
const MAX_IDLE_INTERVAL_US: u64 = 1_000_000;
/// Written samples are this share of the run apart, as a divisor.
const RUN_DIVISOR: u64 = 4_000;

/// The samples of a process.
#[derive(Default)]
pub(super) struct MemorySamples {
    /// When the next one is due, and how long after the last one that is.
    due_us: u64,
    interval_us: u64,
    start_us: u64,
    /// The resident and the anonymous bytes of the last sample.
    last: Option<(u64, u64)>,
    /// The calls before the last sample.
    calls: u64,
    /// The resident and the anonymous bytes of the sample that was written last.
    written: Option<(u64, u64)>,
    /// Samples before this time are not written at once.
    next_us: u64,
    /// The last one that was as the one written last.
    same: Option<RssSample>,
    /// The highest one that is not written.
    highest: Option<RssSample>,
}

impl MemorySamples {
    /// Returns whether a sample is due, after so many calls: the first ones end an idle interval,
    /// so that no burst falls into it.
    pub(super) fn is_due(&self, time_us: u64, calls: u64) -> bool {
        time_us >= self.due_us || calls != self.calls
    }

    /// Takes a sample; returns those to be written.
    pub(super) fn take(&mut self, sample: RssSample) -> Vec<RssSample> {
        let memory = (sample.resident_bytes, sample.anonymous_bytes);
        if self.written.is_none() {
            self.start_us = sample.time_us;
        }
        let is_same = self.written == Some(memory);
        let is_idle = self.last.replace(memory) == Some(memory) && sample.calls == self.calls;
        let longer = (self.interval_us * 2).min(MAX_IDLE_INTERVAL_US);
        self.interval_us = if is_idle { longer } else { SAMPLE_INTERVAL_US };
        self.due_us = sample.time_us + self.interval_us;
        self.calls = sample.calls;
        if is_same && self.highest.is_none() {
            self.same = Some(sample);
            return Vec::new();
        }
        let time_us = sample.time_us;
        let is_highest = |highest: &RssSample| highest.resident_bytes <= sample.resident_bytes;
        if self.highest.as_ref().is_none_or(is_highest) {
            self.highest = Some(sample);
        }
        if time_us < self.next_us {
            return Vec::new();
        }
        self.next_us = time_us + ((time_us - self.start_us) / RUN_DIVISOR).max(SAMPLE_INTERVAL_US);
        self.take_rest()
    }

    /// Returns the samples that are left to be written.
    pub(super) fn take_rest(&mut self) -> Vec<RssSample> {
        let highest = self.highest.take();
        if let Some(highest) = &highest {
            self.written = Some((highest.resident_bytes, highest.anonymous_bytes));
        }
        self.same.take().into_iter().chain(highest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes samples as [`written_with_calls`] does, of a process that makes no calls.
    fn written(count: u64, memory: impl Fn(u64) -> u64) -> (usize, Vec<(u64, u64)>) {
        written_with_calls(count, |number| (0, memory(number)))
    }

    /// Takes a sample each 50 ms, where one is due, of a process with these calls and this memory;
    /// returns their number, and those that were written, as times in ms and memory.
    fn written_with_calls(
        count: u64,
        state: impl Fn(u64) -> (u64, u64),
    ) -> (usize, Vec<(u64, u64)>) {
        let (mut samples, mut written, mut taken) = (MemorySamples::default(), Vec::new(), 0);
        for number in 0..count {
            let time_us = number * SAMPLE_INTERVAL_US;
            let (calls, resident_bytes) = state(number);
            if samples.is_due(time_us, calls) {
                taken += 1;
                let sample = RssSample {
                    process: 0,
                    time_us,
                    calls,
                    resident_bytes,
                    anonymous_bytes: resident_bytes,
                };
                written.extend(samples.take(sample));
            }
        }
        written.extend(samples.take_rest());
        let pairs = written.iter().map(|sample| (sample.time_us / 1000, sample.resident_bytes));
        (taken, pairs.collect())
    }

    #[test]
    fn an_idle_process_has_few_samples() {
        let (taken, samples) = written(20 * 3600, |_| 7);
        assert_eq!((samples.len(), samples[0]), (2, (0, 7)));
        assert!((3600..3620).contains(&taken), "{taken}");
    }

    #[test]
    fn a_change_is_between_two_samples() {
        let (_, samples) = written(8, |number| if number < 5 { 1 } else { 2 });
        // The interval has grown to 100 ms: no sample was taken at 200 ms.
        assert_eq!(samples, [(0, 1), (150, 1), (350, 2)]);
    }

    /// The idle interval has grown to a second when 0.7 seconds of calls and memory begin.
    #[test]
    fn calls_end_an_idle_interval() {
        let (_, samples) = written_with_calls(140, |number| match number {
            0..=120 => (1, 2),
            121..=134 => (number, (number - 120) * 1_000),
            _ => (134, 2),
        });
        assert!(samples.contains(&(6_700, 14_000)), "{samples:?}");
    }

    #[test]
    fn a_long_run_keeps_its_peak() {
        let count = 20 * 86_400;
        let (taken, samples) = written(count, |number| match number {
            1_000_001 => 1_000,
            _ => number % 100,
        });
        assert_eq!(taken as u64, count);
        assert!((10_000..40_000).contains(&samples.len()), "{}", samples.len());
        assert!(samples.contains(&(50_000_050, 1_000)));
        assert!(samples.is_sorted());
    }
}
