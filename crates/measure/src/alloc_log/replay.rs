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
use super::preload_list::preload_list;
use super::replay_step::{EXIT_OTHER_ALLOCATOR, REPLAY_VARIABLE, ReplayCode, encode_step};
use super::ring_layout::RingOperation;
use crate::process_cost::proc_number;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Samples of a replay.
const SAMPLES: u64 = 1000;
/// The highest ratio is looked for where this part of the peak is live, as a divisor.
const RATIO_DIVISOR: u64 = 10;

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

impl ReplaySample {
    /// Returns resident memory divided by live memory; `None` if nothing is live.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.resident_bytes as f64 / self.live_bytes as f64)
    }
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
        self.resident_peak().map_or(0, |sample| sample.resident_bytes)
    }

    /// Returns the first sample with the most resident memory.
    #[must_use]
    pub fn resident_peak(&self) -> Option<ReplaySample> {
        self.samples.iter().rev().copied().max_by_key(|sample| sample.resident_bytes)
    }

    /// Returns the first sample with the most live memory.
    #[must_use]
    pub fn live_peak(&self) -> Option<ReplaySample> {
        self.samples.iter().rev().copied().max_by_key(|sample| sample.live_bytes)
    }

    /// Returns the sample after the last call.
    #[must_use]
    pub fn end(&self) -> Option<ReplaySample> {
        self.samples.last().copied()
    }

    /// Returns the first sample with the highest ratio of resident to live memory, among those with
    /// at least a tenth of the peak of live memory: of a program that begins, or that has released
    /// nearly all, the ratio says nothing.
    #[must_use]
    pub fn highest_ratio(&self) -> Option<ReplaySample> {
        let least = self.live_peak()?.live_bytes.div_ceil(RATIO_DIVISOR);
        let ratios = self.samples.iter().rev().filter(|sample| sample.live_bytes >= least);
        let ratios = ratios.filter_map(|sample| Some((sample.ratio()?, *sample)));
        ratios.max_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, sample)| sample)
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
}

/// The live memory of a replay: that of the process, without what it inherited by a fork.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ReplayedMemory {
    bytes: u64,
    objects: u64,
    peak_bytes: u64,
    peak_objects: u64,
}

impl ReplayedMemory {
    fn take(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.objects += 1;
        self.note_peak();
    }

    fn resize(&mut self, before: u64, after: u64) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        self.note_peak();
    }

    fn release(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.objects = self.objects.saturating_sub(1);
    }

    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        self.peak_objects = self.peak_objects.max(self.objects);
    }
}

impl CallVisitor for ReplayedMemory {
    fn alloc(&mut self, _at: CallPlace, object: &LiveObject, _alignment_log2: u64) {
        self.take(object.size);
    }

    fn free(&mut self, _at: CallPlace, object: &LiveObject) {
        self.release(object.size);
    }

    fn realloc(&mut self, _at: CallPlace, object: &LiveObject, new_size: u64) {
        self.resize(object.size, new_size);
    }

    fn inherited_realloc(&mut self, _at: CallPlace, _old_size: u64, object: &LiveObject) {
        self.take(object.size);
    }
}

/// Replays the calls of a process.
///
/// # Errors
/// The log cannot be read, the process allocated nothing, the calls need more memory than there is,
/// the process cannot be started, or it failed.
pub fn replay_process(
    log: &AllocLog,
    process: usize,
    options: &ReplayOptions<'_>,
) -> Result<ReplayResult, AllocLogError> {
    let mut expected = ReplayedMemory::default();
    decode_process(log, process, LifetimeClock::AllCalls, &mut expected)?;
    if expected.peak_objects == 0 {
        return Err(AllocLogError::NoAllocation(process));
    }
    if let Some(available) = available_memory_bytes().filter(|free| expected.peak_bytes > *free) {
        return Err(AllocLogError::TooLarge { needed: expected.peak_bytes, available });
    }
    let start = Instant::now();
    let folder = tempfile::Builder::new().prefix("larder-replay.").tempdir();
    let folder = folder.map_err(AllocLogError::Replay)?;
    let command = replay_command(options, folder.path());
    let mut child = command?.spawn().map_err(AllocLogError::Replay)?;
    let missing = || AllocLogError::Replay(io::ErrorKind::BrokenPipe.into());
    let input = child.stdin.take().ok_or_else(missing)?;
    let output = BufWriter::with_capacity(1 << 16, input);
    let mut sender = StepSender::new(output, log.processes[process].calls, expected.peak_bytes);
    sender.send_words([expected.peak_objects + 1, SAMPLES + 3]);
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

/// Returns the memory that a new process can take without swapping, as the kernel estimates it.
fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(proc_number(&text, "MemAvailable:")?.saturating_mul(1024))
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

fn replay_command(options: &ReplayOptions<'_>, folder: &Path) -> Result<Command, AllocLogError> {
    let libraries: Vec<&Path> = [options.recorder].into_iter().chain(options.allocator).collect();
    let preload = preload_list(&libraries, folder)?;
    let name = REPLAY_VARIABLE.strip_suffix(b"\0").unwrap_or(REPLAY_VARIABLE);
    let mut command = Command::new(options.host);
    command
        .env("LD_PRELOAD", preload)
        .env(OsStr::from_bytes(name), options.allocator.unwrap_or(Path::new("")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Ok(command)
}

/// Sends the steps of a replay.
struct StepSender<W> {
    output: W,
    failure: Option<io::Error>,
    slots: FxHashMap<u64, u64>,
    free_slots: Vec<u64>,
    /// Memory from before a fork is not replayed.
    next_slot: u64,
    memory: ReplayedMemory,
    /// The peak of live memory of all calls.
    peak_bytes: u64,
    has_peak: bool,
    calls: u64,
    interval: u64,
    /// Calls and live bytes at each sample.
    marks: Vec<(u64, u64)>,
}

impl<W: Write> StepSender<W> {
    /// Begins the replay of so many calls, with this peak of live memory.
    fn new(output: W, calls: u64, peak_bytes: u64) -> StepSender<W> {
        StepSender {
            output,
            failure: None,
            slots: FxHashMap::default(),
            free_slots: Vec::new(),
            next_slot: 0,
            memory: ReplayedMemory::default(),
            peak_bytes,
            has_peak: false,
            calls: 0,
            interval: calls.div_ceil(SAMPLES).max(1),
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
        let is_peak = !self.has_peak && self.memory.bytes >= self.peak_bytes && self.peak_bytes > 0;
        self.has_peak |= is_peak;
        if is_peak || self.calls.is_multiple_of(self.interval) {
            self.sample();
        }
    }

    fn sample(&mut self) {
        self.marks.push((self.calls, self.memory.bytes));
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
        self.memory.take(object.size);
        let code = match at.function {
            RingOperation::Calloc => ReplayCode::CALLOC,
            _ if alignment_log2 > 0 => ReplayCode::ALIGNED,
            _ => ReplayCode::MALLOC,
        };
        self.send(code, slot, alignment_log2.min(31) as u32, object.size);
    }

    fn free(&mut self, _at: CallPlace, object: &LiveObject) {
        self.memory.release(object.size);
        if let Some(slot) = self.slots.remove(&object.ordinal) {
            self.free_slots.push(slot);
            self.send(ReplayCode::FREE, slot, 0, 0);
        }
    }

    fn realloc(&mut self, _at: CallPlace, object: &LiveObject, new_size: u64) {
        self.memory.resize(object.size, new_size);
        if let Some(slot) = self.slots.get(&object.ordinal).copied() {
            self.send(ReplayCode::REALLOC, slot, 0, new_size.max(1));
        }
    }

    fn inherited_realloc(&mut self, _at: CallPlace, _old_size: u64, object: &LiveObject) {
        let slot = self.take_slot(object.ordinal);
        self.memory.take(object.size);
        self.send(ReplayCode::MALLOC, slot, 0, object.size);
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_block::{BlockKind, CallBlock, LogWriter, ProcessStart};
    use super::*;
    use std::fs::File;

    /// Writes a log of one forked process with these tokens, which inherits a megabyte.
    fn forked_log(tokens: Vec<u8>, calls: u64, peak_bytes: u64) -> AllocLog {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = LogWriter::new(File::create(file.path()).unwrap()).unwrap();
        let start = ProcessStart {
            is_forked: true,
            inherited_bytes: 1_000_000,
            inherited_objects: 1,
            ..ProcessStart::default()
        };
        log.write_json(BlockKind::PROCESS, 0, &start).unwrap();
        let block = CallBlock { calls, peak_bytes, tokens, ..CallBlock::default() };
        log.write_calls(0, &block).unwrap();
        drop(log);
        AllocLog::open(file.path()).unwrap()
    }

    /// The peak of a forked process is that of the memory which is replayed.
    #[test]
    fn a_replay_has_a_sample_at_its_own_peak() {
        // malloc(10), malloc(20), free of the last, malloc(5).
        let log = forked_log(vec![10 << 2, 20 << 2, 1, 5 << 2], 4, 1_000_030);
        let mut expected = ReplayedMemory::default();
        decode_process(&log, 0, LifetimeClock::AllCalls, &mut expected).unwrap();
        assert_eq!((expected.peak_bytes, expected.peak_objects, expected.bytes), (30, 2, 15));
        let mut sender = StepSender::new(Vec::new(), 4_000_000, expected.peak_bytes);
        decode_process(&log, 0, LifetimeClock::AllCalls, &mut sender).unwrap();
        assert_eq!(sender.marks, [(2, 30)]);
    }

    /// The memory of an allocator without calls says nothing of it.
    #[test]
    fn a_process_that_allocated_nothing_is_refused() {
        let path = Path::new("/bin/true");
        let options = ReplayOptions { recorder: path, host: path, allocator: None };
        // No call, and a release of memory from before the fork: function 1, 100 bytes.
        for (tokens, calls) in [(vec![], 0), (vec![1 << 6 | 10 << 2 | 3, 100], 1)] {
            let log = forked_log(tokens, calls, 1_000_000);
            let failure = replay_process(&log, 0, &options).unwrap_err();
            assert!(matches!(failure, AllocLogError::NoAllocation(0)), "{failure}");
        }
    }

    /// A log that somebody made up, or of a larger machine, does not exhaust the memory.
    #[test]
    fn a_replay_that_needs_too_much_memory_is_refused() {
        // A varint of 2^50 bytes, times 4.
        let log = forked_log(vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x08], 1, 1 << 50);
        let path = Path::new("/bin/true");
        let options = ReplayOptions { recorder: path, host: path, allocator: None };
        let failure = replay_process(&log, 0, &options).unwrap_err();
        assert!(matches!(failure, AllocLogError::TooLarge { needed, .. } if needed == 1 << 50));
        assert!(failure.to_string().contains("1.1 PB"), "{failure}");
    }
}
