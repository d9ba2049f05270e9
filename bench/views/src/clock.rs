//! What something took: time, processor time, memory.

use crate::Outcome;
use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// Repetitions whose processor time is that of doing nothing.
const IDLE: u32 = 200;

/// What repetitions took: the time of each, the processor time of all.
#[derive(Default)]
pub(crate) struct Spent {
    times: Vec<Duration>,
    processor: Duration,
    hits: usize,
}

impl Spent {
    /// Does something once more; what it gives is the number of hits.
    pub(crate) fn on(&mut self, work: impl FnOnce() -> Outcome<usize>) -> Outcome<usize> {
        let before = processor_time()?;
        let clock = Instant::now();
        let hits = work()?;
        self.times.push(clock.elapsed());
        self.processor += processor_time()?.saturating_sub(before);
        self.hits += hits;
        Ok(hits)
    }

    /// Notes a time that was measured elsewhere.
    pub(crate) fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// A line of figures; of the processor time without what it takes to ask for it.
    pub(crate) fn print(&mut self, row: &str, idle: Duration) {
        self.times.sort_unstable();
        let reps = self.times.len().max(1);
        let at = |place: usize| self.times.get(place.min(reps - 1)).copied().unwrap_or_default();
        let processor = us(self.processor) / reps as f64 - us(idle);
        let (median, least, p99) = (us(at(reps / 2)), us(at(0)), us(at(reps * 99 / 100)));
        let hits = self.hits as f64 / reps as f64;
        let processor = processor.max(0.0);
        println!("{row}\t{median:.1}\t{least:.1}\t{processor:.1}\t{hits:.1}\t{reps}\t{p99:.1}");
    }
}

pub(crate) fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// What it takes to ask for the processor time, which is part of what is told.
pub(crate) fn idle() -> Outcome<Duration> {
    let mut spent = Spent::default();
    for _ in 0..IDLE {
        spent.on(|| Ok(black_box(0)))?;
    }
    Ok(spent.processor / IDLE)
}

/// Of this one thread. The kernel brings its account up to date when the thread gives way.
pub(crate) fn processor_time() -> Outcome<Duration> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Anonymous memory of this process, in kB.
pub(crate) fn anonymous() -> Outcome<i64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
