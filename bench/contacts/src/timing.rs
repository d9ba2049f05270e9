//! Doing something again and again, and what it took.

use crate::Result;
use std::time::{Duration, Instant};

/// Most repetitions of a row.
const MAX_REPETITIONS: usize = 20_000;
/// Fewest, however long they take.
const MIN_REPETITIONS: usize = 5;

/// Times `work` over the needles in turn, for so many seconds; prints a line of figures. It gives
/// the number of hits: none is an error.
pub(crate) fn time_row<T>(
    who: &str,
    n: &str,
    row: &str,
    seconds: f64,
    needles: &[T],
    work: &mut dyn FnMut(&T) -> Result<usize>,
) -> Result<()> {
    let Some(first) = needles.first() else { return Ok(()) };
    work(first)?;
    let (mut times, mut hits) = (Vec::with_capacity(MAX_REPETITIONS), 0);
    let (begin, before) = (Instant::now(), cpu_time()?);
    for needle in needles.iter().cycle() {
        let clock = Instant::now();
        let found = work(needle)?;
        times.push(clock.elapsed());
        if found == 0 {
            return Err(format!("{who}, {n} contacts, {row}: a needle was not found").into());
        }
        hits += found;
        let enough = begin.elapsed().as_secs_f64() >= seconds || times.len() >= MAX_REPETITIONS;
        if enough && times.len() >= MIN_REPETITIONS {
            break;
        }
    }
    let spent = cpu_time()?.saturating_sub(before).as_nanos() / times.len() as u128;
    print_figures(who, n, row, &mut times, spent, hits as f64);
    Ok(())
}

/// Prints the figures of some times; the processor time is that of one, the hits are those of all.
pub(crate) fn print_figures(
    who: &str,
    n: &str,
    row: &str,
    times: &mut [Duration],
    cpu: u128,
    hits: f64,
) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(0, Duration::as_nanos)
    };
    let (reps, hits) = (times.len(), hits / times.len().max(1) as f64);
    println!("{who} {n} {row} {reps} {} {} {cpu} {hits:.1}", at(0.5), at(0.99));
}

/// Of this one thread. The kernel brings its account up to date when the thread gives way.
pub(crate) fn cpu_time() -> Result<Duration> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// The number behind a name in a file of `/proc/self`.
pub(crate) fn proc_counter(file: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    Ok(line.split_ascii_whitespace().next().unwrap_or("0").parse()?)
}
