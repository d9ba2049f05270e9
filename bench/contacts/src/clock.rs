//! Doing something again and again, and what it took.

use crate::Outcome;
use std::time::{Duration, Instant};

/// Most repetitions of a row.
const MOST: usize = 20_000;
/// Fewest, however long they take.
const FEWEST: usize = 5;

/// Times `work` over the needles in turn, for so many seconds; prints a line of figures. It gives the number of
/// hits: none is an error.
pub(crate) fn row<T>(
    who: &str,
    n: &str,
    row: &str,
    seconds: f64,
    needles: &[T],
    work: &mut dyn FnMut(&T) -> Outcome<usize>,
) -> Outcome<()> {
    let Some(first) = needles.first() else { return Ok(()) };
    work(first)?;
    let (mut times, mut hits) = (Vec::with_capacity(MOST), 0);
    let (begin, before) = (Instant::now(), processor_time()?);
    for needle in needles.iter().cycle() {
        let clock = Instant::now();
        let found = work(needle)?;
        times.push(clock.elapsed());
        if found == 0 {
            return Err(format!("{who}, {n} contacts, {row}: a needle was not found").into());
        }
        hits += found;
        let enough = begin.elapsed().as_secs_f64() >= seconds || times.len() >= MOST;
        if enough && times.len() >= FEWEST {
            break;
        }
    }
    let spent = processor_time()?.saturating_sub(before).as_nanos() / times.len() as u128;
    print(who, n, row, &mut times, spent, hits as f64);
    Ok(())
}

/// Prints the figures of some times; the processor time is that of one, the hits are those of all.
pub(crate) fn print(who: &str, n: &str, row: &str, times: &mut [Duration], cpu: u128, hits: f64) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(0, Duration::as_nanos)
    };
    let (reps, hits) = (times.len(), hits / times.len().max(1) as f64);
    println!("{who} {n} {row} {reps} {} {} {cpu} {hits:.1}", at(0.5), at(0.99));
}

/// Of this one thread. The kernel brings its account up to date when the thread gives way.
pub(crate) fn processor_time() -> Outcome<Duration> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// The number behind a name in a file of `/proc/self`.
pub(crate) fn counter(file: &str, name: &str) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    Ok(line.split_ascii_whitespace().next().unwrap_or("0").parse()?)
}
