//! What something took: time, processor time, memory.

use crate::Result;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Repetitions whose processor time is that of doing nothing.
const IDLE_REPETITIONS: u32 = 200;

/// What repetitions took: the time of each, the processor time of all.
#[derive(Default)]
pub(crate) struct ViewTimings {
    times: Vec<Duration>,
    cpu_time: Duration,
    hits: usize,
}

impl ViewTimings {
    /// Does something once more; what it gives is the number of hits.
    pub(crate) fn measure(&mut self, work: impl FnOnce() -> Result<usize>) -> Result<usize> {
        let before = cpu_time()?;
        let clock = Instant::now();
        let hits = work()?;
        self.times.push(clock.elapsed());
        self.cpu_time += cpu_time()?.saturating_sub(before);
        self.hits += hits;
        Ok(hits)
    }

    /// Notes a time that was measured elsewhere.
    pub(crate) fn add_time(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// A line of figures; of the processor time without what it takes to ask for it.
    pub(crate) fn print(&mut self, row: &str, idle: Duration) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let at = |place: usize| self.times.get(place.min(reps - 1)).copied().unwrap_or_default();
        let processor = to_micros(self.cpu_time) / reps as f64 - to_micros(idle);
        let (median, least, p99) =
            (to_micros(at(reps / 2)), to_micros(at(0)), to_micros(at(reps * 99 / 100)));
        let hits = self.hits as f64 / reps as f64;
        let processor = processor.max(0.0);
        println!("{row}\t{median:.1}\t{least:.1}\t{processor:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

pub(crate) fn to_micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// What it takes to ask for the processor time, which is part of what is told.
pub(crate) fn measure_overhead() -> Result<Duration> {
    let mut spent = ViewTimings::default();
    for _ in 0..IDLE_REPETITIONS {
        spent.measure(|| Ok(black_box(0)))?;
    }
    Ok(spent.cpu_time / IDLE_REPETITIONS)
}

/// Of this one thread. The kernel brings its account up to date when the thread gives way.
pub(crate) fn cpu_time() -> Result<Duration> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Anonymous memory of this process, in kB.
pub(crate) fn anonymous_memory_kib() -> Result<i64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
