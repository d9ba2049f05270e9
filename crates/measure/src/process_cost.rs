//! The cost of a command: wall time, processor time, memory, bytes written.
//!
//! Starts another program and observes it in `/proc`, so that evolution-data-server, the floor and
//! Larder are measured in the same way. Separate from the scripts in `bench/` because a shell
//! cannot sample the peak of anonymous memory: the maximum that `time` prints includes pages of
//! mapped files.
//!
//! # How
//! While the command runs, `/proc/PID/status` is read at intervals of a thousandth of the elapsed
//! time, at least 0.2 ms and at most 5 ms. After it has ended, its final counters are read before
//! it is reaped, so processor time and bytes are complete. The kernel counts processor time in
//! hundredths of a second, so short commands need many runs.
//!
//! Linux only; elsewhere the functions fail with [`io::ErrorKind::Unsupported`].

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The unit of times in `/proc` (`USER_HZ`), which is the same on every Linux.
const CPU_TICKS_PER_SECOND: u64 = 100;
/// The minimum and the maximum interval between two samples.
const SAMPLE_INTERVAL_LIMITS: (Duration, Duration) =
    (Duration::from_micros(200), Duration::from_millis(5));

/// The cost of one run of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCost {
    /// Wall time from start to end.
    pub wall: Duration,
    /// Processor time in user mode, of all threads and of children that were waited for.
    pub user: Duration,
    /// Processor time in the kernel, of the same threads and children.
    pub system: Duration,
    /// The peak of anonymous memory (heap, stacks; no mapped files) among the samples, in bytes,
    /// without children.
    pub peak_anonymous_bytes: u64,
    /// Bytes that the command caused to be written to a disk, if the kernel counts them, without
    /// children.
    pub written_bytes: Option<u64>,
    /// The exit status.
    pub status: ExitStatus,
}

/// Runs a command to its end and measures it.
///
/// # Errors
/// The command cannot be started, or `/proc` is not mounted.
pub fn run_command(command: &mut Command) -> io::Result<ProcessCost> {
    let begin = Instant::now();
    let mut child = command.spawn()?;
    let watched = sample_until_exit(&child, begin);
    // The child is reaped on every path.
    let status = child.wait()?;
    let (wall, anonymous, last) = watched?;
    Ok(ProcessCost {
        wall,
        user: last.user,
        system: last.system,
        peak_anonymous_bytes: anonymous,
        written_bytes: last.written_bytes,
        status,
    })
}

/// The counters of a process that has ended.
struct ExitCounters {
    user: Duration,
    system: Duration,
    written_bytes: Option<u64>,
}

/// Samples a process until it has ended; returns its wall time, its peak of anonymous memory and
/// its final counters.
fn sample_until_exit(child: &Child, begin: Instant) -> io::Result<(Duration, u64, ExitCounters)> {
    let file = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id()));
    let mut peak = 0;
    loop {
        let status = file("status").map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "measuring needs Linux with /proc mounted")
        })?;
        peak = peak.max(proc_number(&status, "RssAnon:").unwrap_or(0) * 1024);
        if has_ended(&status) {
            let wall = begin.elapsed();
            let (user, system) = cpu_times(&file("stat")?).ok_or(io::ErrorKind::InvalidData)?;
            let written = file("io").ok().and_then(|io| {
                Some(
                    proc_number(&io, "\nwrite_bytes:")?
                        .saturating_sub(proc_number(&io, "cancelled_write_bytes:")?),
                )
            });
            return Ok((wall, peak, ExitCounters { user, system, written_bytes: written }));
        }
        std::thread::sleep(
            (begin.elapsed() / 1000).clamp(SAMPLE_INTERVAL_LIMITS.0, SAMPLE_INTERVAL_LIMITS.1),
        );
    }
}

/// Returns whether a process has ended and waits to be reaped: its first thread is a zombie and its
/// only one.
fn has_ended(status: &str) -> bool {
    status.contains("\nState:\tZ")
        && proc_number(status, "\nThreads:").is_none_or(|threads| threads <= 1)
}

/// Returns the number after a name in a file of `/proc`.
pub(crate) fn proc_number(text: &str, name: &str) -> Option<u64> {
    let (_, behind) = text.split_once(name)?;
    behind.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns user and system time in `/proc/PID/stat`, including children that were waited for. The
/// name of the program, in parentheses, may contain any character.
fn cpu_times(stat: &str) -> Option<(Duration, Duration)> {
    let (_, behind) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> = behind
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .map_while(|text| text.parse().ok())
        .collect();
    let [user, system, users, systems] = ticks[..] else { return None };
    let time = |ticks: u64| Duration::from_millis(ticks * (1000 / CPU_TICKS_PER_SECOND));
    Some((time(user + users), time(system + systems)))
}

/// Returns the minimum, the median (of an even number of values the lower one) and the maximum;
/// `None` without values.
#[must_use]
pub fn min_median_max<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<[T; 3]> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    let median = *values.get(values.len().checked_sub(1)? / 2)?;
    Some([*values.first()?, median, *values.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_hold_parentheses() {
        let stat = "7 (a) b (c) Z 1 7 7 0 -1 4 338 0 0 0 12 10 3 1 20 0 1 0 31";
        let expect = (Duration::from_millis(150), Duration::from_millis(110));
        assert_eq!(cpu_times(stat), Some(expect));
        assert_eq!(cpu_times("7 (a) Z 1"), None);
    }

    #[test]
    fn a_zombie_with_living_threads_has_not_ended() {
        assert!(has_ended("Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n"));
        assert!(!has_ended("Name:\tx\nState:\tZ (zombie)\nThreads:\t2\n"));
        assert!(!has_ended("Name:\tZ\nState:\tS (sleeping)\nThreads:\t1\n"));
    }

    #[test]
    fn least_median_most() {
        assert_eq!(min_median_max::<u64>([]), None);
        assert_eq!(min_median_max([3]), Some([3, 3, 3]));
        assert_eq!(min_median_max([4, 1, 9, 2]), Some([1, 2, 9]));
        assert_eq!(min_median_max([4, 1, 9]), Some([1, 4, 9]));
    }
}
