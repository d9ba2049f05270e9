//! Repeats an operation and prints its timings.

use crate::Result;
use std::time::{Duration, Instant};

/// The maximum number of repetitions of a row.
const MAX_REPETITIONS: usize = 20_000;
/// The minimum number of repetitions of a row.
const MIN_REPETITIONS: usize = 5;

/// Times `work` on the search terms in turn until `seconds` have passed, and prints a line of
/// figures. `work` returns the number of hits; no hits are an error.
pub(crate) fn time_row<T>(
    who: &str,
    n: &str,
    row: &str,
    seconds: f64,
    search_terms: &[T],
    work: &mut dyn FnMut(&T) -> Result<usize>,
) -> Result<()> {
    let Some(first) = search_terms.first() else { return Ok(()) };
    work(first)?;
    let (mut times, mut hits) = (Vec::with_capacity(MAX_REPETITIONS), 0);
    let (begin, before) = (Instant::now(), cpu_time()?);
    for search_term in search_terms.iter().cycle() {
        let clock = Instant::now();
        let found = work(search_term)?;
        times.push(clock.elapsed());
        if found == 0 {
            return Err(format!("{who}, {n} contacts, {row}: a search term was not found").into());
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

/// Prints a line of figures. `cpu` is the mean CPU time in nanoseconds, `hits` the sum of hits.
pub(crate) fn print_figures(
    who: &str,
    n: &str,
    row: &str,
    times: &mut [Duration],
    cpu: u128,
    hits: f64,
) {
    times.sort_unstable();
    let quantile = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        times.get(index.min(times.len().saturating_sub(1))).map_or(0, Duration::as_nanos)
    };
    let (reps, hits) = (times.len(), hits / times.len().max(1) as f64);
    println!("{who} {n} {row} {reps} {} {} {cpu} {hits:.1}", quantile(0.5), quantile(0.99));
}

/// Returns the CPU time of this thread. The kernel updates its count when the thread yields.
pub(crate) fn cpu_time() -> Result<Duration> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split_ascii_whitespace().next().unwrap_or("0");
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Returns the number after a name in a file of `/proc/self`.
pub(crate) fn proc_counter(file: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    Ok(line.split_ascii_whitespace().next().unwrap_or("0").parse()?)
}
