//! The replay of a log on another allocator, in a fresh process.
//!
//! The log has no addresses, only which object each call concerns; the replay gives each object a
//! slot and sends the calls to a process in which the allocator is. All calls are made by one
//! thread, so caches and arenas of threads are not reproduced. A program that leaves pages
//! untouched takes less memory than its replay.

use super::AllocLogError;
use super::call_decoder::{CallPlace, CallVisitor, LifetimeClock, decode_process};
use super::live_table::LiveObject;
use super::log_file::AllocLog;
use super::replay_step::{EXIT_OTHER_ALLOCATOR, REPLAY_VARIABLE, ReplayCode, encode_step};
use super::ring_layout::RingOperation;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Samples of a replay.
const SAMPLES: u64 = 1000;

/// Memory at a step of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplaySample {
    /// The number of calls so far.
    pub calls: u64,
    /// Bytes in live objects.
    pub live_bytes: u64,
    /// Resident bytes of the allocator.
    pub resident_bytes: u64,
}

/// The replay on one allocator.
#[derive(Debug, Clone)]
pub struct ReplayResult {
    /// Samples, in order.
    pub samples: Vec<ReplaySample>,
    /// Wall time of the replay.
    pub wall: Duration,
}

impl ReplayResult {
    /// Returns the peak of resident memory.
    #[must_use]
    pub fn peak_resident_bytes(&self) -> u64 {
        self.samples.iter().map(|sample| sample.resident_bytes).max().unwrap_or(0)
    }

    /// Returns the sample with the most live memory.
    #[must_use]
    pub fn live_peak(&self) -> Option<ReplaySample> {
        self.samples.iter().copied().max_by_key(|sample| sample.live_bytes)
    }
}

/// How a log is replayed.
#[derive(Debug, Clone, Copy)]
pub struct ReplayOptions<'a> {
    /// The recorder's library, which makes the calls.
    pub recorder: &'a Path,
    /// A dynamic program to load it into; the program itself does not run.
    pub host: &'a Path,
    /// The library of the allocator; `None`: that of libc.
    pub allocator: Option<&'a Path>,
    /// The number of slots: the peak of live objects.
    pub slots: u64,
}

/// Replays the calls of a process.
///
/// # Errors
/// The log cannot be read, the process cannot be started, or it failed.
pub fn replay_process(
    log: &AllocLog,
    process: usize,
    options: &ReplayOptions<'_>,
) -> Result<ReplayResult, AllocLogError> {
    let start = Instant::now();
    let mut child = replay_command(options).spawn().map_err(AllocLogError::Replay)?;
    let missing = || AllocLogError::Replay(io::ErrorKind::BrokenPipe.into());
    let input = child.stdin.take().ok_or_else(missing)?;
    let mut sender = StepSender::new(BufWriter::with_capacity(1 << 16, input), log, process);
    sender.send_words([options.slots + 1, SAMPLES + 3]);
    let decoded = decode_process(log, process, LifetimeClock::AllCalls, &mut sender);
    sender.sample();
    let (marks, failure) = sender.finish();
    let mut resident = Vec::new();
    let mut output = child.stdout.take().ok_or_else(missing)?;
    let read = output.read_to_end(&mut resident);
    let status = child.wait().map_err(AllocLogError::Replay)?;
    if status.code() == Some(i32::from(EXIT_OTHER_ALLOCATOR)) {
        return Err(AllocLogError::Allocator);
    }
    decoded?;
    read.map_err(AllocLogError::Replay)?;
    if !status.success() || failure.is_some() || resident.len() != marks.len() * 8 {
        let error = failure.unwrap_or_else(|| io::Error::other("the allocator failed"));
        return Err(AllocLogError::Replay(error));
    }
    let page = rustix::param::page_size() as u64;
    let samples = marks.iter().zip(resident.chunks_exact(8)).map(|(mark, bytes)| {
        let pages = bytes.try_into().map_or(0, u64::from_le_bytes);
        ReplaySample { calls: mark.0, live_bytes: mark.1, resident_bytes: pages * page }
    });
    Ok(ReplayResult { samples: samples.collect(), wall: start.elapsed() })
}

/// The folders in which the libraries of allocators are.
const LIBRARY_FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib/x86_64-linux-gnu",
];
/// The files of allocators, the newest first.
const LIBRARY_FILES: [(&str, &[&str]); 3] = [
    ("jemalloc", &["libjemalloc.so.2", "libjemalloc.so"]),
    ("mimalloc", &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"]),
    ("tcmalloc", &["libtcmalloc_minimal.so.4", "libtcmalloc_minimal.so"]),
];

/// Finds the library of an allocator by its name; `None`: it is not installed, or not known.
#[must_use]
pub fn find_allocator(name: &str) -> Option<PathBuf> {
    let (_, files) = LIBRARY_FILES.iter().find(|(known, _)| *known == name)?;
    let in_folder = |folder: &&str| {
        files.iter().map(|file| Path::new(folder).join(file)).find(|path| path.exists())
    };
    LIBRARY_FOLDERS.iter().find_map(in_folder)
}

fn replay_command(options: &ReplayOptions<'_>) -> Command {
    let mut preload = options.recorder.as_os_str().to_os_string();
    if let Some(allocator) = options.allocator {
        preload.push(":");
        preload.push(allocator);
    }
    let name = REPLAY_VARIABLE.strip_suffix(b"\0").unwrap_or(REPLAY_VARIABLE);
    let mut command = Command::new(options.host);
    command
        .env("LD_PRELOAD", preload)
        .env(OsStr::from_bytes(name), options.allocator.unwrap_or(Path::new("")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Sends the steps of a replay.
struct StepSender<W> {
    output: W,
    failure: Option<io::Error>,
    slots: FxHashMap<u64, u64>,
    free_slots: Vec<u64>,
    /// Memory from before a fork is not replayed.
    next_slot: u64,
    live_bytes: u64,
    peak_bytes: u64,
    has_peak: bool,
    calls: u64,
    interval: u64,
    /// Calls and live bytes at each sample.
    marks: Vec<(u64, u64)>,
}

impl<W: Write> StepSender<W> {
    fn new(output: W, log: &AllocLog, process: usize) -> StepSender<W> {
        let process = &log.processes[process];
        StepSender {
            output,
            failure: None,
            slots: FxHashMap::default(),
            free_slots: Vec::new(),
            next_slot: 0,
            live_bytes: 0,
            peak_bytes: process.peak_bytes,
            has_peak: false,
            calls: 0,
            interval: process.calls.div_ceil(SAMPLES).max(1),
            marks: Vec::new(),
        }
    }

    fn send_words(&mut self, words: [u64; 2]) {
        if self.failure.is_none() {
            let bytes = words.map(u64::to_le_bytes).concat();
            self.failure = self.output.write_all(&bytes).err();
        }
    }

    fn send(&mut self, code: ReplayCode, slot: u64, alignment_log2: u32, size: u64) {
        self.send_words(encode_step(code, slot, alignment_log2, size));
        self.calls += 1;
        // One sample is where live memory has its peak.
        let is_peak = !self.has_peak && self.live_bytes >= self.peak_bytes && self.peak_bytes > 0;
        self.has_peak |= is_peak;
        if is_peak || self.calls.is_multiple_of(self.interval) {
            self.sample();
        }
    }

    fn sample(&mut self) {
        self.marks.push((self.calls, self.live_bytes));
        self.send_words(encode_step(ReplayCode::SAMPLE, 0, 0, 0));
    }

    fn take_slot(&mut self, ordinal: u64) -> u64 {
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.next_slot += 1;
            self.next_slot - 1
        });
        self.slots.insert(ordinal, slot);
        slot
    }

    /// Ends the input; returns the samples, and the first failure.
    fn finish(mut self) -> (Vec<(u64, u64)>, Option<io::Error>) {
        let failure = self.failure.take().or_else(|| self.output.flush().err());
        (self.marks, failure)
    }
}

impl<W: Write> CallVisitor for StepSender<W> {
    fn alloc(&mut self, at: CallPlace, object: &LiveObject, alignment_log2: u64) {
        let slot = self.take_slot(object.ordinal);
        self.live_bytes += object.size;
        let code = match at.function {
            RingOperation::Calloc => ReplayCode::CALLOC,
            _ if alignment_log2 > 0 => ReplayCode::ALIGNED,
            _ => ReplayCode::MALLOC,
        };
        self.send(code, slot, alignment_log2.min(31) as u32, object.size);
    }

    fn free(&mut self, _at: CallPlace, object: &LiveObject) {
        self.live_bytes -= object.size;
        if let Some(slot) = self.slots.remove(&object.ordinal) {
            self.free_slots.push(slot);
            self.send(ReplayCode::FREE, slot, 0, 0);
        }
    }

    fn realloc(&mut self, _at: CallPlace, object: &LiveObject, new_size: u64) {
        self.live_bytes = self.live_bytes - object.size + new_size;
        if let Some(slot) = self.slots.get(&object.ordinal).copied() {
            self.send(ReplayCode::REALLOC, slot, 0, new_size.max(1));
        }
    }

    fn inherited_realloc(&mut self, _at: CallPlace, _old_size: u64, object: &LiveObject) {
        let slot = self.take_slot(object.ordinal);
        self.live_bytes += object.size;
        self.send(ReplayCode::MALLOC, slot, 0, object.size);
    }
}
