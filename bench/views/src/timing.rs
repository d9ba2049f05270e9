//! Timings and memory figures.
//!
//! Separate from the measurements so that all of them print the same columns.

use crate::Result;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// The number of empty repetitions that the overhead is measured with.
const IDLE_REPETITIONS: u32 = 200;

/// The timings of repetitions: the wall-clock time of each, the CPU time of all.
#[derive(Default)]
pub(crate) struct ViewTimings {
    times: Vec<Duration>,
    cpu_time: Duration,
    hits: usize,
}

impl ViewTimings {
    /// Times one repetition, which returns its number of hits.
    pub(crate) fn measure(&mut self, work: impl FnOnce() -> Result<usize>) -> Result<usize> {
        let before = cpu_time()?;
        let clock = Instant::now();
        let hits = work()?;
        self.times.push(clock.elapsed());
        self.cpu_time += cpu_time()?.saturating_sub(before);
        self.hits += hits;
        Ok(hits)
    }

    /// Adds a wall-clock time that was measured elsewhere.
    pub(crate) fn add_time(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// Prints a line of figures. `overhead` is the CPU time of measuring.
    pub(crate) fn print(&mut self, row: &str, overhead: Duration) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let at = |rank: usize| self.times.get(rank.min(reps - 1)).copied().unwrap_or_default();
        let cpu = to_micros(self.cpu_time) / reps as f64 - to_micros(overhead);
        let (median, least, p99) =
            (to_micros(at(reps / 2)), to_micros(at(0)), to_micros(at(reps * 99 / 100)));
        let hits = self.hits as f64 / reps as f64;
        let cpu = cpu.max(0.0);
        println!("{row}\t{median:.1}\t{least:.1}\t{cpu:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

pub(crate) fn to_micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Measures the CPU time of measuring, which is part of each repetition.
pub(crate) fn measure_overhead() -> Result<Duration> {
    let mut spent = ViewTimings::default();
    for _ in 0..IDLE_REPETITIONS {
        spent.measure(|| Ok(black_box(0)))?;
    }
    Ok(spent.cpu_time / IDLE_REPETITIONS)
}

/// The CPU time of this thread. The kernel updates its count when the thread yields.
pub(crate) fn cpu_time() -> Result<Duration> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// The anonymous memory of this process, in kB.
pub(crate) fn anonymous_memory_kib() -> Result<i64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
