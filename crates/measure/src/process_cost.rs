//! The cost of a command: wall time, processor time, memory, bytes written.
//!
//! Starts another program and observes it in `/proc`, so that evolution-data-server, the floor and
//! Larder are measured in the same way. Separate from the scripts in `bench/` because a shell
//! cannot sample the peak of anonymous memory: the maximum that `time` prints includes pages of
//! mapped files.
//!
//! # How
//! While the command runs, `/proc/PID/status` of it and of all below it is read at intervals of a
//! thousandth of the elapsed time, at least 0.2 ms and at most 5 ms. The memory is the one of the
//! largest process, not a sum: a process that was just forked, and has not yet begun its program,
//! has the pages of its parent, which a sum would count twice. Many processes below a command are
//! read less often, so that they take a twentieth of the time. After it has ended, the bytes that
//! it wrote are read before it is reaped, so that they are complete. Processor time comes from
//! getrusage, in microseconds: the difference of what all reaped children had used, so commands are
//! measured one after another.
//!
//! Linux only; elsewhere the functions fail with [`io::ErrorKind::Unsupported`].

use crate::command_signals::CommandSignals;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// The minimum and the maximum interval between two samples.
const SAMPLE_INTERVAL_LIMITS: (Duration, Duration) =
    (Duration::from_micros(200), Duration::from_millis(5));

/// The processes below a command may take this part of the time, as a divisor.
const TREE_DIVISOR: u32 = 20;

/// The cost of one run of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCost {
    /// Wall time from start to end.
    pub wall: Duration,
    /// Processor time in user mode, of all threads and of children that were waited for.
    pub user: Duration,
    /// Processor time in the kernel, of the same threads and children.
    pub system: Duration,
    /// The peak of anonymous memory (heap, stacks; no mapped files) among the samples, in bytes: of
    /// the largest process, the command or one below it.
    pub peak_anonymous_bytes: u64,
    /// The peak of anonymous memory of the command's own process, in bytes: of a recorder, without
    /// the program that it records.
    pub first_anonymous_bytes: u64,
    /// Bytes that the command, and children that were waited for, caused to be written to a disk,
    /// if the kernel counts them.
    pub written_bytes: Option<u64>,
    /// The exit status.
    pub status: ExitStatus,
    /// Whether a request to end was sent on to the command.
    pub is_terminated: bool,
}

/// Runs a command to its end and measures it. Requests to end are sent on to it.
///
/// # Errors
/// The command cannot be started, or `/proc` is not mounted.
pub fn run_command(command: &mut Command, signals: &CommandSignals) -> io::Result<ProcessCost> {
    let (user_before, system_before) = waited_cpu_times()?;
    let begin = Instant::now();
    let mut child = command.spawn()?;
    let watched = sample_until_exit(&child, begin, signals);
    // The child is reaped on every path.
    let status = child.wait()?;
    let WatchedRun { wall, peak, first_peak, written_bytes, is_terminated } = watched?;
    let (user, system) = waited_cpu_times()?;
    Ok(ProcessCost {
        wall,
        user: user.saturating_sub(user_before),
        system: system.saturating_sub(system_before),
        peak_anonymous_bytes: peak,
        first_anonymous_bytes: first_peak,
        written_bytes,
        status,
        is_terminated,
    })
}

/// A run as it was sampled.
struct WatchedRun {
    wall: Duration,
    /// Peaks of anonymous memory: of all processes, and of the first one.
    peak: u64,
    first_peak: u64,
    written_bytes: Option<u64>,
    is_terminated: bool,
}

/// Samples a process until it has ended.
fn sample_until_exit(
    child: &Child,
    begin: Instant,
    signals: &CommandSignals,
) -> io::Result<WatchedRun> {
    let file = |name: &str| read_proc_file(child.id(), name);
    let (mut first_peak, mut below_peak) = (0, 0);
    let mut next_tree = begin;
    let mut is_terminated = false;
    loop {
        is_terminated |= signals.send_on(child);
        let status = file("status").map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "measuring needs Linux with /proc mounted")
        })?;
        first_peak = first_peak.max(anonymous_bytes(child.id(), &status));
        if has_ended(&status) {
            let wall = begin.elapsed();
            let written_bytes = file("io").ok().and_then(|io| {
                Some(
                    proc_number(&io, "\nwrite_bytes:")?
                        .saturating_sub(proc_number(&io, "cancelled_write_bytes:")?),
                )
            });
            let peak = first_peak.max(below_peak);
            return Ok(WatchedRun { wall, peak, first_peak, written_bytes, is_terminated });
        }
        let tree_begin = Instant::now();
        if tree_begin >= next_tree {
            for pid in process_tree([child.id()]).into_iter().skip(1) {
                let status = read_proc_file(pid, "status");
                below_peak = below_peak.max(anonymous_bytes(pid, &status.unwrap_or_default()));
            }
            next_tree = Instant::now() + tree_begin.elapsed() * TREE_DIVISOR;
        }
        std::thread::sleep(
            (begin.elapsed() / 1000).clamp(SAMPLE_INTERVAL_LIMITS.0, SAMPLE_INTERVAL_LIMITS.1),
        );
    }
}

/// Returns the anonymous memory of a process with this text of `status`; 0 of one that has ended.
fn anonymous_bytes(pid: u32, status: &str) -> u64 {
    let kilobytes = |status: &str| proc_number(status, "\nRssAnon:");
    let known = kilobytes(status).or_else(|| read_thread_file(pid, "status", kilobytes));
    known.unwrap_or(0).saturating_mul(1024)
}

/// Returns the text of a file of `/proc` about a process. The kernel cuts the name in it, perhaps
/// in the middle of a character.
pub(crate) fn read_proc_file(pid: u32, name: &str) -> io::Result<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/{name}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads something from a file of `/proc` about the memory of a process.
///
/// # Errors
/// The process has ended, or belongs to somebody else.
pub(crate) fn read_memory_file<T>(
    pid: u32,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> io::Result<T> {
    let first = read_proc_file(pid, name)
        .and_then(|text| parse(&text).ok_or(io::ErrorKind::NotFound.into()));
    match first {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
            read_thread_file(pid, name, parse).ok_or(error)
        }
        first => first,
    }
}

/// Reads something about the memory of a process from the file of one of its other threads. The
/// file of the process says nothing when its first thread has ended (`pthread_exit` in `main`).
pub(crate) fn read_thread_file<T>(
    pid: u32,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let threads = threads_of(pid).into_iter().filter(|thread| *thread != pid);
    threads
        .filter_map(|thread| read_proc_file(pid, &format!("task/{thread}/{name}")).ok())
        .find_map(|text| parse(&text))
}

/// Returns the ids of the threads of a process.
pub(crate) fn threads_of(pid: u32) -> Vec<u32> {
    ids_in(&format!("/proc/{pid}/task"))
}

/// Returns the ids of all processes.
pub(crate) fn process_ids() -> Vec<u32> {
    ids_in("/proc")
}

/// Returns the numbers that are names of files in a folder.
fn ids_in(folder: &str) -> Vec<u32> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
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

/// A process of a tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeProcess {
    pub(crate) pid: u32,
    /// The thread that began it, with its process; none for a root of the tree.
    pub(crate) creator: Option<(u32, u32)>,
}

/// Returns the ids of processes and of all below them, each once.
pub(crate) fn process_tree(roots: impl IntoIterator<Item = u32>) -> Vec<u32> {
    tree_processes(roots).into_iter().map(|process| process.pid).collect()
}

/// Returns processes and all below them, each once.
pub(crate) fn tree_processes(roots: impl IntoIterator<Item = u32>) -> Vec<TreeProcess> {
    let roots = roots.into_iter().map(|pid| TreeProcess { pid, creator: None });
    let mut known = BTreeSet::new();
    let mut tree: Vec<TreeProcess> = roots.filter(|root| known.insert(root.pid)).collect();
    let mut next = 0;
    while let Some(process) = tree.get(next) {
        let children = children_of(process.pid);
        tree.extend(children.into_iter().filter(|child| known.insert(child.pid)));
        next += 1;
    }
    tree
}

/// Returns the children of a process, of all its threads.
fn children_of(pid: u32) -> Vec<TreeProcess> {
    let mut children = Vec::new();
    for thread in threads_of(pid) {
        let text = read_proc_file(pid, &format!("task/{thread}/children"));
        let text = text.unwrap_or_default();
        let pids = text.split_ascii_whitespace().filter_map(|number| number.parse().ok());
        children.extend(pids.map(|child| TreeProcess { pid: child, creator: Some((pid, thread)) }));
    }
    children
}

/// Returns user and system time of all children that were waited for, and of theirs.
fn waited_cpu_times() -> io::Result<(Duration, Duration)> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let duration = |time: TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok((duration(usage.user_time()), duration(usage.system_time())))
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

/// Returns the exit code, or 128 plus the signal that ended the process, as shells do.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
}

/// Says how a command ended that failed.
#[must_use]
pub fn describe_failure(status: ExitStatus) -> Option<String> {
    match status.signal() {
        _ if status.success() => None,
        Some(signal) => Some(format!("ended by {}", signal_text(signal))),
        None => Some(format!("ended with exit code {}", exit_code(status))),
    }
}

/// Returns the name of a signal, or its number.
pub(crate) fn signal_text(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), String::from)
}

/// Returns the name of a signal that ends programs.
fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
