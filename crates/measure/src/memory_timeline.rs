//! The memory and the processor time of a tree of processes over time.
//!
//! Every 50 ms the cheap counters of each process are read (`statm` and `stat`, some microseconds).
//! Proportional and private memory take a walk through the page tables: they are read at most so
//! often that they take a hundredth of the time, and so is the full map, when the memory has grown
//! since the last one. So a measured program is held up by about a hundredth.

mod report;

pub use self::report::memory_report;

use crate::memory_map::{MemoryBytes, MemoryMap, read_memory_sums};
use crate::message_phases::{LAST_MESSAGES_LIMIT, MessagePhases};
use regex::bytes::Regex;
use serde::Serialize;
use std::io::{self, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The interval of samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The least time over which the use of processors is measured.
const MIN_SHARE_INTERVAL: Duration = Duration::from_millis(25);
/// The costly counters may take this part of the time, as a divisor.
const COSTLY_DIVISOR: u32 = 100;
/// A new map is read when resident memory has grown by this factor.
const MAP_GROWTH: f64 = 1.02;
/// The unit of processor time in `/proc`, on every Linux.
const TICK: Duration = Duration::from_millis(10);
/// Samples that are kept; with more, every second one is dropped.
const MAX_SAMPLES: usize = 20_000;

/// Phases for which a map is read.
const MAX_PHASE_MAPS: usize = 32;

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
    /// Proportional memory (PSS), as it was read last.
    pub proportional_bytes: u64,
    /// Private memory (USS), as it was read last.
    pub private_bytes: u64,
    /// The part of one processor that the tree used since the sample before.
    pub processor_share: f64,
}

/// The memory of a tree of processes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryTimeline {
    /// Samples, in order of time.
    pub samples: Vec<TreeSample>,
    /// The time at which the map was read, in microseconds since the start.
    pub map_time_us: u64,
    /// The map at the highest memory for which one was read.
    pub map: MemoryMap,
    /// Processes that were seen: process id, program, peak of resident memory.
    pub processes: Vec<(u32, String, u64)>,
    /// The phases, in order of time.
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
    timeline: MemoryTimeline,
    next_costly: Instant,
    sums: MemoryBytes,
    /// Resident memory at the last map.
    map_bytes: u64,
    processor_time: Duration,
    processor_share: f64,
    last_sample: Instant,
    /// Every so many samples are kept.
    stride: usize,
    count: usize,
}

/// Runs a command, and samples it and its children until it ends.
///
/// # Errors
/// The command cannot be started, or `/proc` is not mounted.
pub fn watch_command(
    command: &mut Command,
    phases: Option<PhaseMessages>,
) -> io::Result<(MemoryTimeline, ExitStatus)> {
    if phases.is_some() {
        command.stderr(Stdio::piped());
    }
    let mut child = command.spawn()?;
    let messages = phases
        .zip(child.stderr.take())
        .map(|((pattern, output), messages)| MessagePhases::start(messages, pattern, output));
    let mut sampler = TreeSampler::new(child.id());
    loop {
        if let Some(status) = child.try_wait()? {
            if let Some(messages) = &messages {
                messages.finish_within(LAST_MESSAGES_LIMIT);
                messages.next_names().for_each(|name| sampler.begin_phase(&name));
            }
            return Ok((sampler.timeline, status));
        }
        sampler.sample();
        match &messages {
            Some(messages) => {
                if let Some(name) = messages.wait_for_name(SAMPLE_INTERVAL) {
                    sampler.begin_phase(&name);
                }
            }
            None => std::thread::sleep(SAMPLE_INTERVAL),
        }
    }
}

/// Samples a process and its children until it ends, or `is_stopped` says so.
///
/// # Errors
/// There is no such process.
pub fn watch_process(pid: u32, is_stopped: &dyn Fn() -> bool) -> io::Result<MemoryTimeline> {
    let mut sampler = TreeSampler::new(pid);
    if !sampler.sample() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such process"));
    }
    while !is_stopped() && sampler.sample() {
        std::thread::sleep(SAMPLE_INTERVAL);
    }
    Ok(sampler.timeline)
}

impl TreeSampler {
    fn new(root: u32) -> TreeSampler {
        let now = Instant::now();
        TreeSampler {
            root,
            start: now,
            timeline: MemoryTimeline::default(),
            next_costly: now,
            sums: MemoryBytes::default(),
            map_bytes: 0,
            processor_time: Duration::ZERO,
            processor_share: 0.0,
            last_sample: now,
            stride: 1,
            count: 0,
        }
    }

    /// Takes a sample; returns whether the root is still there.
    fn sample(&mut self) -> bool {
        let tree = process_tree(self.root);
        let mut sample = TreeSample { time_us: micros(self.start.elapsed()), ..Default::default() };
        let mut processor_time = Duration::ZERO;
        for pid in &tree {
            let Some(counters) = CheapCounters::read(*pid) else { continue };
            sample.processes += 1;
            sample.resident_bytes += counters.resident;
            sample.anonymous_bytes += counters.anonymous;
            sample.mapped_bytes += counters.mapped;
            processor_time += counters.processor_time;
            self.note_process(*pid, counters.resident);
        }
        // Those that have ended, and are not yet reaped, have no memory.
        if sample.resident_bytes == 0 {
            return false;
        }
        if Instant::now() >= self.next_costly {
            self.read_costly(&tree, &sample);
        }
        sample.proportional_bytes = self.sums.proportional;
        sample.private_bytes = self.sums.private;
        // Over less time, the ticks of the clock would be more than the use.
        if self.last_sample.elapsed() >= MIN_SHARE_INTERVAL || self.count == 0 {
            let used = processor_time.saturating_sub(self.processor_time).as_secs_f64();
            self.processor_share = used / self.last_sample.elapsed().as_secs_f64().max(1e-3);
            self.processor_time = processor_time;
            self.last_sample = Instant::now();
        }
        sample.processor_share = self.processor_share;
        self.keep(sample);
        true
    }

    /// Keeps a sample, or one of several if there are many.
    fn keep(&mut self, sample: TreeSample) {
        if self.count.is_multiple_of(self.stride) {
            self.timeline.samples.push(sample);
        }
        self.count += 1;
        if self.timeline.samples.len() >= MAX_SAMPLES {
            let mut number = 0;
            self.timeline.samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Reads proportional and private memory, and the map if the memory has grown.
    fn read_costly(&mut self, tree: &[u32], sample: &TreeSample) {
        let begin = Instant::now();
        let mut sums = MemoryBytes::default();
        for bytes in tree.iter().filter_map(|pid| read_memory_sums(*pid).ok()) {
            sums.add(&bytes);
        }
        self.sums = sums;
        if sample.resident_bytes as f64 > self.map_bytes as f64 * MAP_GROWTH {
            let map = read_tree_map(tree);
            if map.total().resident() > 0 {
                self.timeline.map = map;
                self.timeline.map_time_us = sample.time_us;
                self.map_bytes = sample.resident_bytes;
            }
        }
        self.next_costly = Instant::now() + begin.elapsed() * COSTLY_DIVISOR;
    }

    /// Notes that a phase begins now.
    fn begin_phase(&mut self, name: &[u8]) {
        let map = match self.timeline.phases.len() < MAX_PHASE_MAPS {
            true => read_tree_map(&process_tree(self.root)),
            false => MemoryMap::default(),
        };
        if map.total().resident() > 0 {
            self.sums = map.total();
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let time_us = micros(self.start.elapsed());
        self.timeline.phases.push(MemoryPhase { name, time_us, map });
    }

    fn note_process(&mut self, pid: u32, resident: u64) {
        // A process that has begun another program has a row for each.
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = name.trim_end();
        let known = self.timeline.processes.iter_mut().rev().find(|process| process.0 == pid);
        match known {
            Some(process) if process.1 == name || name.is_empty() => {
                process.2 = process.2.max(resident);
            }
            _ => self.timeline.processes.push((pid, name.into(), resident)),
        }
    }
}

/// Reads the memory of processes by mapping. Those that have ended have none.
fn read_tree_map(tree: &[u32]) -> MemoryMap {
    let mut map = MemoryMap::default();
    tree.iter().filter_map(|pid| MemoryMap::read(*pid).ok()).for_each(|one| map.add(one));
    map
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The counters of a process that cost little.
struct CheapCounters {
    mapped: u64,
    resident: u64,
    anonymous: u64,
    processor_time: Duration,
}

impl CheapCounters {
    fn read(pid: u32) -> Option<CheapCounters> {
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut pages = statm.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (mapped, resident, shared) = (pages.next()?, pages.next()?, pages.next()?);
        let page = rustix::param::page_size() as u64;
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some(CheapCounters {
            mapped: mapped * page,
            resident: resident * page,
            anonymous: resident.saturating_sub(shared) * page,
            processor_time: processor_time(&String::from_utf8_lossy(&stat))?,
        })
    }
}

/// Returns the processor time in `/proc/PID/stat`, including children that were waited for. The
/// name of the program, in parentheses, may contain any character.
fn processor_time(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(4).map(str::parse::<u32>);
    let ticks = ticks.sum::<Result<u32, _>>().ok()?;
    Some(TICK * ticks)
}

/// Returns a process and all below it.
pub(crate) fn process_tree(root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(pid) = tree.get(next) {
        let children = children_of(*pid);
        tree.extend(children);
        next += 1;
    }
    tree
}

/// Returns the children of a process, of all its threads.
fn children_of(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let texts = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers = |text: String| -> Vec<u32> {
        text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    texts.flat_map(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_hold_parentheses() {
        let stat = "7 (a) b (c) Z 1 7 7 0 -1 4 338 0 0 0 12 10 3 1 20 0 1 0 31";
        assert_eq!(processor_time(stat), Some(Duration::from_millis(260)));
        assert_eq!(processor_time("7 (a) Z 1"), Some(Duration::ZERO));
    }

    #[test]
    fn a_tree_of_processes_is_sampled() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done | cat"]);
        let (timeline, status) = watch_command(&mut command, None).unwrap();
        assert!(status.success());
        let most = timeline.samples.iter().map(|sample| sample.processes).max();
        assert!(most >= Some(2), "{most:?}");
        assert!(timeline.samples.iter().any(|sample| sample.proportional_bytes > 0));
        assert!(timeline.map.mappings.keys().any(|name| name.contains("/libc")));
    }
}
