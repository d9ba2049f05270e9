//! The memory and the processor time of a tree of processes over time.
//!
//! The cheap counters of each process (`status` and `stat`, some microseconds) are read every
//! 50 ms, and at first more often: at a tenth of the time since the start, from 1 ms on.
//! Proportional and private memory take a walk through the page tables: they are read at most so
//! often that they take a hundredth of the time. The full map is read when the memory has grown by
//! a twentieth since the last one, as long as maps take no more than a tenth of the time.
//!
//! A child after vfork (as of `posix_spawn`) is in the memory of its parent until it begins its
//! program, and the thread that began it waits: it is left out, so the memory counts once.
//!
//! A sample has the sum over the tree at its time, so a sum that lasts for less than an interval
//! can be missed. The peak of each process is exact: the kernel counts it (`VmHWM`), though what
//! a process takes between its last sample and its end is not seen there. The kernel also tells the
//! peak of the largest process of a command that has ended, which misses nothing.

mod report;
#[cfg(test)]
mod tests;

pub use self::report::memory_report;
pub(crate) use crate::process_cost::process_tree;

use crate::command_signals::CommandSignals;
use crate::memory_map::{MemoryBytes, MemoryMap, read_memory_sums};
use crate::message_phases::{LAST_MESSAGES_LIMIT, MessagePhases};
use crate::process_cost::{
    TreeProcess, exit_code, proc_number, read_proc_file, read_thread_file, tree_processes,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use regex::bytes::Regex;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

/// The shortest and the longest interval of samples.
const SAMPLE_INTERVALS: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_millis(50));
/// The interval of samples is this part of the time since the start, as a divisor.
const INTERVAL_DIVISOR: u32 = 10;
/// Samples may take this part of the time, as a divisor, until the interval is the longest.
const SAMPLE_DIVISOR: u32 = 8;
/// The least time over which the use of processors is measured.
const MIN_SHARE_INTERVAL: Duration = Duration::from_millis(25);
/// Proportional and private memory may take this part of the time, as a divisor.
const COSTLY_DIVISOR: u32 = 100;
/// A new map is read when resident memory has grown by this factor.
const MAP_GROWTH: f64 = 1.05;
/// Maps may take this part of the time, as a divisor, and this time more.
const MAP_DIVISOR: u32 = 10;
const MAP_ALLOWANCE: Duration = Duration::from_millis(2);
/// The kernel sums up its counters of memory lazily: a peak has to exceed that of this program by
/// this part of it, as a divisor, to be that of the command.
const FLOOR_MARGIN_DIVISOR: u64 = 8;
/// The unit of processor time in `/proc`, on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// Samples that are kept; with more, every second one is dropped.
const MAX_SAMPLES: usize = 20_000;

/// A process with less has begun a program that is not mapped yet, and has the name of the one
/// before.
const MIN_PROGRAM_BYTES: u64 = 64 << 10;
/// The time within which a command has begun its program.
const EXEC_TIME: Duration = Duration::from_millis(10);

/// The memory that may be touched between two reads of the same memory.
const MAX_BORROWED_DIFFERENCE_BYTES: u64 = 64 << 10;

/// Phases for which a map is read.
const MAX_PHASE_MAPS: usize = 32;
/// The phase before the first message, as in an allocation log.
const FIRST_PHASE: &str = "start";

/// Lines on standard error that begin a phase, and where standard error is passed on to.
pub type PhaseMessages = (Regex, Box<dyn Write + Send>);

/// The memory of all processes of a tree at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TreeSample {
    /// Microseconds since the start.
    pub time_us: u64,
    /// The number of processes.
    pub processes: usize,
    /// The sum of resident memory (RSS); shared pages count in each process.
    pub resident_bytes: u64,
    /// The sum of resident memory that is no file and not shared.
    pub anonymous_bytes: u64,
    /// The sum of mapped addresses (VMS).
    pub mapped_bytes: u64,
    /// The sum of proportional memory (PSS), in those samples for which it was read.
    pub proportional_bytes: Option<u64>,
    /// The sum of private memory (USS), in the same samples.
    pub private_bytes: Option<u64>,
    /// The part of one processor that the tree used since the sample before.
    pub processor_share: f64,
}

/// The memory of a tree of processes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryTimeline {
    /// The time from the start of the command, or of the samples, to the end, in microseconds.
    pub duration_us: u64,
    /// The exit code of the command, or 128 plus the signal that ended it; `None` for a process
    /// that was not started here.
    pub code: Option<u8>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Samples, in order of time.
    pub samples: Vec<TreeSample>,
    /// The number of samples that were taken: of very many, not all are kept.
    pub sample_count: usize,
    /// The sample with the most resident memory.
    pub peak: Option<TreeSample>,
    /// The peak of resident memory of the largest process of a command, as the kernel tells it
    /// after the end: exact. None if it is not clearly above what this program itself takes, from
    /// which the command was started; nor for a process that was not started here.
    pub largest_process_bytes: Option<u64>,
    /// The time at which the map was read, in microseconds since the start.
    pub map_time_us: u64,
    /// Resident memory in that sample.
    pub map_resident_bytes: u64,
    /// Whether the kernel has refused to tell the mappings of a process.
    pub is_map_denied: bool,
    /// The processes whose mappings it has refused to tell: they are in no map, and a sample with
    /// one of them has no proportional and private memory.
    pub denied_processes: BTreeSet<u32>,
    /// The map at the highest memory for which one was read.
    pub map: MemoryMap,
    /// Processes that were seen: process id, program, and the peak of resident memory as the kernel
    /// had counted it at the last sample.
    pub processes: Vec<(u32, String, u64)>,
    /// The phases, in order of time; the first is before any message.
    pub phases: Vec<MemoryPhase>,
}

/// A phase, and the memory where it begins.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryPhase {
    /// Its name.
    pub name: String,
    /// The time at which it begins, in microseconds since the start.
    pub time_us: u64,
    /// The map then; empty if there are many phases, or if the processes have ended.
    pub map: MemoryMap,
}

/// Samples a tree.
struct TreeSampler {
    root: u32,
    start: Instant,
    /// Until then a root with less than [`MIN_PROGRAM_BYTES`] has not begun its program.
    exec_limit: Instant,
    timeline: MemoryTimeline,
    next_costly: Instant,
    /// The time that all maps took, and the last one.
    map_times: (Duration, Duration),
    /// The processor time that the tree had used at `last_sample`; `None` before the first one.
    processor_time: Option<Duration>,
    processor_share: f64,
    last_sample: Instant,
    /// The time that the last sample took, without costly counters.
    sample_time: Duration,
    /// Every so many samples are kept.
    stride: usize,
}

/// Costly counters of the processes of a sample.
#[derive(Default)]
struct CostlyMemory {
    sums: MemoryBytes,
    map: MemoryMap,
    /// Whether a process refuses to tell them.
    is_partial: bool,
}

/// The part of a sample that costs more than the counters of the processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CostlyRead {
    Nothing,
    Sums,
    Map,
}

/// Runs a command, and samples it and its children until it ends. Requests to end are sent on to
/// it.
///
/// # Errors
/// The command cannot be started, or `/proc` is not mounted.
pub fn watch_command(
    command: &mut Command,
    phases: Option<PhaseMessages>,
    signals: &CommandSignals,
) -> io::Result<(MemoryTimeline, ExitStatus)> {
    if phases.is_some() {
        command.stderr(Stdio::piped());
    }
    let children_before = peak_of(UsageWho::RUSAGE_CHILDREN);
    let start = Instant::now();
    let mut child = command.spawn()?;
    // The kernel counts the memory of the process that starts a command to that of the command, as
    // it is at the moment of exec: `spawn` returns after it.
    let floor = peak_of(UsageWho::RUSAGE_SELF).max(children_before);
    let messages = phases.zip(child.stderr.take()).map(|((pattern, output), messages)| {
        MessagePhases::start(messages, pattern, output, || {})
    });
    let mut sampler = TreeSampler::new(child.id(), start);
    sampler.processor_time = Some(Duration::ZERO);
    sampler.exec_limit = start + EXEC_TIME;
    // Another thread waits, so that the end has its time. The child is not reaped there: signals
    // may still be sent to it.
    let (sender, ends) = channel();
    let pid = Pid::from_child(&child);
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let waited = loop {
            match waitid(WaitId::Pid(pid), options) {
                Err(Errno::INTR) => {}
                waited => break waited,
            }
        };
        // Without a receiver, nobody waits for the end.
        let _ = sender.send((waited, Instant::now()));
    });
    if messages.is_some() {
        sampler.begin_phase(FIRST_PHASE.as_bytes());
    }
    let end = loop {
        signals.send_on(&child);
        sampler.sample();
        let interval = sampler.interval();
        let end = match &messages {
            Some(messages) => {
                if let Some(phase) = messages.wait_for_phase(interval) {
                    sampler.begin_phase(&phase.name);
                }
                ends.try_recv().map_err(|error| error == TryRecvError::Disconnected)
            }
            None => {
                ends.recv_timeout(interval).map_err(|error| error == RecvTimeoutError::Disconnected)
            }
        };
        match end {
            Ok((waited, end)) => {
                waited?;
                break end;
            }
            Err(true) => return Err(io::Error::other("the command cannot be waited for")),
            Err(false) => {}
        }
    };
    let status = child.wait()?;
    let most = peak_of(UsageWho::RUSAGE_CHILDREN);
    if let Some(messages) = &messages {
        let names = messages.finish_within(LAST_MESSAGES_LIMIT, &|| signals.is_any());
        names.iter().for_each(|name| sampler.begin_phase(name));
    }
    let mut timeline = sampler.timeline;
    timeline.duration_us = micros(end.saturating_duration_since(start));
    (timeline.code, timeline.signal) = (Some(exit_code(status)), status.signal());
    timeline.largest_process_bytes = (most > floor + floor / FLOOR_MARGIN_DIVISOR).then_some(most);
    Ok((timeline, status))
}

/// Samples a process and its children until it ends, or `is_stopped` says so.
///
/// # Errors
/// There is no such process.
pub fn watch_process(pid: u32, is_stopped: &dyn Fn() -> bool) -> io::Result<MemoryTimeline> {
    let mut sampler = TreeSampler::new(pid, Instant::now());
    if !sampler.sample() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such process"));
    }
    while !is_stopped() && sampler.sample() {
        std::thread::sleep(sampler.interval());
    }
    sampler.timeline.duration_us = micros(sampler.start.elapsed());
    Ok(sampler.timeline)
}

/// Returns the peak of resident memory of this process, or of the largest one that was waited for,
/// in bytes.
fn peak_of(who: UsageWho) -> u64 {
    getrusage(who).ok().and_then(|usage| u64::try_from(usage.max_rss()).ok()).unwrap_or(0) * 1024
}

/// Returns the processor time of this thread: a read takes no more of it where other programs hold
/// it up.
fn processor_time_here() -> Duration {
    let time = |time: TimeVal| {
        let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    getrusage(UsageWho::RUSAGE_THREAD)
        .map(|usage| time(usage.user_time()) + time(usage.system_time()))
        .unwrap_or_default()
}

impl TreeSampler {
    fn new(root: u32, start: Instant) -> TreeSampler {
        TreeSampler {
            root,
            start,
            exec_limit: start,
            timeline: MemoryTimeline::default(),
            next_costly: start,
            map_times: Default::default(),
            processor_time: None,
            processor_share: 0.0,
            last_sample: start,
            sample_time: Duration::ZERO,
            stride: 1,
        }
    }

    /// Returns the time until the next sample.
    fn interval(&self) -> Duration {
        (self.start.elapsed() / INTERVAL_DIVISOR)
            .max(self.sample_time * SAMPLE_DIVISOR)
            .clamp(SAMPLE_INTERVALS.0, SAMPLE_INTERVALS.1)
    }

    /// Takes a sample; returns whether the root is still there.
    fn sample(&mut self) -> bool {
        self.sample_with(false).is_some()
    }

    /// Takes a sample, with a map if one is needed; returns the map, which is empty if none was
    /// read, or `None` if the processes have ended.
    fn sample_with(&mut self, needs_map: bool) -> Option<MemoryMap> {
        let begin = processor_time_here();
        let tree = tree_processes([self.root]);
        let mut sample = TreeSample { time_us: micros(self.start.elapsed()), ..Default::default() };
        let mut processor_time = Duration::ZERO;
        let mut processes = Vec::new();
        for TreeProcess { pid, creator } in tree {
            let Some(mut counters) = CheapCounters::read(pid) else { continue };
            processor_time += counters.processor_time;
            if counters.may_be_borrowed(creator, &processes) {
                if creator.is_some_and(is_waiting) {
                    continue;
                }
                // It may have begun its program since.
                match CheapCounters::read(pid) {
                    Some(now) => counters = now,
                    None => continue,
                }
            }
            // Those that have ended, and are not yet reaped, have no memory.
            if counters.resident > 0 && !self.is_before_program(pid, &counters) {
                self.note_process(pid, &counters);
                sample.resident_bytes += counters.resident;
                processes.push((pid, counters));
            }
        }
        self.sample_time = processor_time_here().saturating_sub(begin);
        let read = match needs_map {
            true => CostlyRead::Map,
            false => self.due_read(sample.resident_bytes),
        };
        let costly = self.read_costly(&mut processes, read);
        for (_, counters) in &processes {
            sample.processes += 1;
            sample.anonymous_bytes += counters.anonymous.min(counters.resident);
            sample.mapped_bytes += counters.mapped;
        }
        sample.resident_bytes = processes.iter().map(|(_, counters)| counters.resident).sum();
        if sample.resident_bytes == 0 {
            return None;
        }
        if read != CostlyRead::Nothing && !costly.is_partial {
            sample.proportional_bytes = Some(costly.sums.proportional);
            sample.private_bytes = Some(costly.sums.private);
        }
        if sample.resident_bytes > self.timeline.map_resident_bytes
            && costly.map.total().resident() > 0
        {
            self.timeline.map = costly.map.clone();
            self.timeline.map_time_us = sample.time_us;
            self.timeline.map_resident_bytes = sample.resident_bytes;
        }
        self.note_processor_time(processor_time);
        sample.processor_share = self.processor_share;
        self.keep(sample);
        Some(costly.map)
    }

    /// Takes the share of the processors from the time that the tree has used up to now. What a
    /// process had used before its first sample is not in it.
    fn note_processor_time(&mut self, used: Duration) {
        let now = Instant::now();
        let interval = now.duration_since(self.last_sample);
        let Some(before) = self.processor_time else {
            (self.processor_time, self.last_sample) = (Some(used), now);
            return;
        };
        // Over less time, the ticks of the clock would be more than the use.
        if interval >= MIN_SHARE_INTERVAL {
            self.processor_share =
                used.saturating_sub(before).as_secs_f64() / interval.as_secs_f64();
            (self.processor_time, self.last_sample) = (Some(used), now);
        }
    }

    /// Keeps a sample, or one of several if there are many.
    fn keep(&mut self, sample: TreeSample) {
        let timeline = &mut self.timeline;
        if timeline.peak.is_none_or(|peak| sample.resident_bytes > peak.resident_bytes) {
            timeline.peak = Some(sample);
        }
        if timeline.sample_count.is_multiple_of(self.stride) {
            timeline.samples.push(sample);
        }
        timeline.sample_count += 1;
        if timeline.samples.len() >= MAX_SAMPLES {
            let mut number = 0;
            timeline.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns what a sample with this resident memory shall read.
    fn due_read(&self, resident: u64) -> CostlyRead {
        let (all, last) = self.map_times;
        let is_affordable = all + last <= self.start.elapsed() / MAP_DIVISOR + MAP_ALLOWANCE;
        if is_affordable && resident as f64 > self.timeline.map_resident_bytes as f64 * MAP_GROWTH {
            CostlyRead::Map
        } else if Instant::now() >= self.next_costly {
            CostlyRead::Sums
        } else {
            CostlyRead::Nothing
        }
    }

    /// Reads proportional and private memory, or the map, which has both. Resident memory is then
    /// that of the same moment; processes that have ended since are left out.
    fn read_costly(
        &mut self,
        processes: &mut Vec<(u32, CheapCounters)>,
        read: CostlyRead,
    ) -> CostlyMemory {
        let mut costly = CostlyMemory::default();
        if read == CostlyRead::Nothing {
            return costly;
        }
        let begin = processor_time_here();
        processes.retain_mut(|(pid, counters)| {
            let (bytes, map) = match read {
                CostlyRead::Map => match MemoryMap::read(*pid) {
                    Ok(map) => (Ok(map.total()), map),
                    Err(error) => (Err(error), MemoryMap::default()),
                },
                _ => (read_memory_sums(*pid), MemoryMap::default()),
            };
            match bytes {
                Ok(bytes) => {
                    costly.sums.add(&bytes);
                    costly.map.add(map);
                    counters.resident = bytes.resident();
                    // It has begun another program since the first reading.
                    if counters.resident > counters.mapped
                        && let Some(now) = CheapCounters::read(*pid)
                    {
                        (counters.mapped, counters.anonymous) = (now.mapped, now.anonymous);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    costly.is_partial = true;
                    self.timeline.denied_processes.insert(*pid);
                }
                Err(_) => counters.resident = 0,
            }
            counters.resident > 0
        });
        self.timeline.is_map_denied |= costly.is_partial;
        let time = processor_time_here().saturating_sub(begin);
        match read {
            CostlyRead::Map => self.map_times = (self.map_times.0 + time, time),
            _ => self.next_costly = Instant::now() + time * COSTLY_DIVISOR,
        }
        costly
    }

    /// Notes that a phase begins now.
    fn begin_phase(&mut self, name: &[u8]) {
        let time_us = match self.timeline.phases.is_empty() {
            true => 0,
            false => micros(self.start.elapsed()),
        };
        let needs_map = self.timeline.phases.len() < MAX_PHASE_MAPS;
        let map = if needs_map { self.sample_with(true) } else { None };
        let name = String::from_utf8_lossy(name).into_owned();
        self.timeline.phases.push(MemoryPhase { name, time_us, map: map.unwrap_or_default() });
    }

    /// Returns whether the root has not begun its program: its memory is none of the command's.
    fn is_before_program(&self, pid: u32, counters: &CheapCounters) -> bool {
        pid == self.root
            && counters.resident < MIN_PROGRAM_BYTES
            && Instant::now() < self.exec_limit
    }

    fn note_process(&mut self, pid: u32, counters: &CheapCounters) {
        // A process that has begun another program has a row for each.
        let known = self.timeline.processes.iter_mut().rev().find(|process| process.0 == pid);
        match known {
            Some(process) if process.1 == counters.name || counters.name.is_empty() => {
                process.2 = process.2.max(counters.peak);
            }
            Some(process) if process.2 < MIN_PROGRAM_BYTES => {
                *process = (pid, counters.name.clone(), counters.peak);
            }
            _ => self.timeline.processes.push((pid, counters.name.clone(), counters.peak)),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The counters of a process that cost little.
struct CheapCounters {
    /// The program.
    name: String,
    mapped: u64,
    resident: u64,
    anonymous: u64,
    /// The peak of resident memory since the program began, as the kernel counts it.
    peak: u64,
    processor_time: Duration,
}

impl CheapCounters {
    fn read(pid: u32) -> Option<CheapCounters> {
        let status = read_proc_file(pid, "status").ok()?;
        let stat = read_proc_file(pid, "stat").ok()?;
        let counters = CheapCounters::parse(&status, &stat)?;
        if counters.resident > 0 {
            return Some(counters);
        }
        let living = read_thread_file(pid, "status", |status| {
            CheapCounters::parse(status, &stat).filter(|counters| counters.resident > 0)
        });
        Some(match living {
            Some(living) => CheapCounters { name: counters.name, ..living },
            None => counters,
        })
    }

    /// Returns whether the memory may be that of the process which began this one, as it is from
    /// vfork until the new program begins: with the same mapped addresses, and resident pages that
    /// differ only by those that were touched between two reads. A copy, as of fork, has hardly
    /// any pages of files at first.
    fn may_be_borrowed(
        &self,
        creator: Option<(u32, u32)>,
        processes: &[(u32, CheapCounters)],
    ) -> bool {
        let parent = processes.iter().find(|(pid, _)| creator.is_some_and(|it| it.0 == *pid));
        parent.is_some_and(|(_, parent)| {
            self.mapped == parent.mapped
                && self.resident.abs_diff(parent.resident) <= MAX_BORROWED_DIFFERENCE_BYTES
                && self.anonymous.abs_diff(parent.anonymous) <= MAX_BORROWED_DIFFERENCE_BYTES
        })
    }

    /// Parses `status` and `stat`. A process that has ended has no memory.
    fn parse(status: &str, stat: &str) -> Option<CheapCounters> {
        let bytes = |name: &str| proc_number(status, name).unwrap_or(0).saturating_mul(1024);
        let name = status.strip_prefix("Name:\t").and_then(|rest| rest.lines().next());
        let resident = bytes("\nVmRSS:");
        Some(CheapCounters {
            name: name.unwrap_or_default().to_string(),
            mapped: bytes("\nVmSize:"),
            resident,
            anonymous: bytes("\nRssAnon:"),
            peak: bytes("\nVmHWM:").max(resident),
            processor_time: processor_time(stat)?,
        })
    }
}

/// Returns whether a thread of a process waits for the kernel without taking signals, as one does
/// after vfork.
fn is_waiting((process, thread): (u32, u32)) -> bool {
    let stat = read_proc_file(process, &format!("task/{thread}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('D'))
}

/// Returns the processor time in `/proc/PID/stat`, including children that were waited for. The
/// name of the program, in parentheses, may contain any character.
fn processor_time(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(4).map(str::parse::<u32>);
    let ticks = ticks.sum::<Result<u32, _>>().ok()?;
    Some(TICK * ticks)
}
