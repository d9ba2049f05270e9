//! The recording of a command: the collector's side.
//!
//! One thread accepts the rings that processes send, reads them in turn, encodes the events and
//! writes blocks. It never blocks on a process. Between two rounds it sleeps for a time that
//! follows the rate of events, so an idle program costs little, and a busy one finds space in its
//! ring. If the log can no longer be written, events are read and dropped: the program goes on
//! unharmed.

use super::AllocLogError;
use super::awaited_forks::AwaitedForks;
use super::awaited_programs::AwaitedPrograms;
use super::function_names::SymbolCache;
use super::log_block::{BlockKind, ProcessStart, RecordingEnd, RssSample};
use super::memory_samples::SAMPLE_INTERVAL_US;
use super::process_encoder::ProcessEncoder;
use super::recorded_command::{BackgroundNotice, CAPACITY_LOG2, RecordingOptions, start_command};
use super::recorded_process;
use super::recording_log::RecordingLog;
use super::ring_process::{ProcessExit, RingProcess};
use super::ring_reader::{RingError, RingReader};
use super::ring_socket::{LostRing, RingFailure, RingMessage, RingSocket, SentRing, socket_folder};
use super::stack_unwinder::{SharedCode, StackUnwinder};
use super::unrecorded_processes::{UnrecordedFinder, UnrecordedProcess};
use super::wake_pipe::WakePipe;
use crate::command_signals::CommandSignals;
use crate::message_phases::{LAST_MESSAGES_LIMIT, MessagePhases};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The limits of the sleep between two rounds.
const SLEEP_LIMITS: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(10));
/// The part of a ring that may fill during a sleep, as a divisor.
const FILL_DIVISOR: u64 = 8;
/// How long the child of a fork waits until the ring of its parent was read up to the fork: a
/// thread of the parent may be interrupted as it writes an event.
const INHERITANCE_LIMIT: Duration = Duration::from_secs(2);
/// How long processes may go on after the command before that is told.
const BACKGROUND_DELAY: Duration = Duration::from_secs(1);
/// The interval of time notes and memory samples.
const SAMPLE_INTERVAL: Duration = Duration::from_micros(SAMPLE_INTERVAL_US);

/// The result of a recording.
#[derive(Debug, Clone)]
pub struct RecordingSummary {
    /// The exit status of the command.
    pub status: ExitStatus,
    /// The number of recorded process images.
    pub processes: usize,
    /// The number of calls in the log.
    pub calls: u64,
    /// The number of calls that were lost, because the log could not be written.
    pub lost_calls: u64,
    /// Bytes of the log.
    pub bytes: u64,
    /// Processes that were not recorded.
    pub unrecorded: Vec<UnrecordedProcess>,
    /// Processes that are recorded up to a moment before their end.
    pub abandoned: Vec<AbandonedProcess>,
    /// The first failure to accept a connection: its process is perhaps not recorded.
    pub connection_failure: Option<String>,
    /// The first failure to write the log; what came before it is in the log.
    pub write_failure: Option<String>,
}

/// A ring that has arrived, whose process is not added.
struct ArrivedRing {
    reader: RingReader,
    sent: SentRing,
    /// Until when the ring of its parent may take to be read up to the fork.
    limit: Instant,
}

impl ArrivedRing {
    /// Returns whether this is the parent of another one, or an earlier program of its process.
    fn comes_before(&self, other: &ArrivedRing) -> bool {
        let is_parent = match other.reader.parent_ring() {
            0 => self.reader.process() == other.reader.origin().0,
            ring => self.reader.inode() == ring,
        };
        is_parent || self.sent.pid == other.sent.pid
    }
}

/// The objects that a process inherits.
enum Inheritance {
    /// It is no child of a fork, or of one that is not known.
    None,
    /// The objects that are live in this process at the fork.
    Fork(Box<ProcessEncoder>, u32),
    /// The objects of this process at the fork are not known any more.
    Lost(u32),
    /// The ring of its parent is not read up to the fork.
    Awaited,
}

/// A process that is recorded in part: larder did not read its ring for 10 seconds, or could not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbandonedProcess {
    /// The process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The number of its calls in the log.
    pub calls: u64,
}

/// The state of a recording.
struct RecordingState {
    socket: RingSocket,
    arrived: Vec<ArrivedRing>,
    start: Instant,
    log: RecordingLog,
    processes: Vec<RingProcess>,
    next_number: u32,
    samples: Vec<RssSample>,
    last_sample: Instant,
    /// The messages, and the inode of their pipe.
    messages: Option<(MessagePhases, u64)>,
    /// Ends a sleep when a message has begun a phase.
    wake_pipe: WakePipe,
    /// The mean distance of samples of call stacks; 0: none are taken.
    stack_interval: u64,
    recorder: PathBuf,
    /// The phase of a message whose writer is not known, for processes that appear in it.
    phase: Option<Vec<u8>>,
    /// The code of the programs whose stacks are unwound.
    code: SharedCode,
    /// The symbols of these programs.
    symbols: SymbolCache,
    unrecorded: UnrecordedFinder,
    awaited: AwaitedPrograms,
    abandoned: Vec<AbandonedProcess>,
    background_notice: Option<BackgroundNotice>,
}

/// Runs a command and records its allocator calls, and those of the processes that it starts.
///
/// # Errors
/// The command cannot be started, the log cannot be created, or there is no socket for the rings.
pub fn record_command(
    command: &[OsString],
    output: File,
    options: RecordingOptions,
) -> Result<RecordingSummary, AllocLogError> {
    let folder = socket_folder().map_err(AllocLogError::Socket)?;
    let (socket, socket_path) = RingSocket::listen(folder.path()).map_err(AllocLogError::Socket)?;
    let mut child = start_command(command, &socket_path, &options)?;
    let log = RecordingLog::new(output, !options.is_standard_output);
    // After the start of the command, which keeps its own limit.
    raise_file_limit();
    let now = Instant::now();
    let wake_pipe = WakePipe::new().map_err(AllocLogError::Socket)?;
    let waker = wake_pipe.waker().map_err(AllocLogError::Socket)?;
    let messages = options.phases.zip(child.stderr.take()).map(|((pattern, output), messages)| {
        let pipe = rustix::fs::fstat(&messages).map_or(0, |found| found.st_ino);
        (MessagePhases::start(messages, pattern, output, waker), pipe)
    });
    let unrecorded = UnrecordedFinder::new(&[&socket_path, &options.recorder]);
    let mut recording = RecordingState {
        socket,
        arrived: Vec::new(),
        start: now,
        log,
        processes: Vec::new(),
        next_number: 0,
        samples: Vec::new(),
        last_sample: now,
        messages,
        wake_pipe,
        stack_interval: options.stack_interval,
        recorder: options.recorder,
        phase: None,
        code: SharedCode::default(),
        symbols: SymbolCache::default(),
        unrecorded,
        awaited: AwaitedPrograms::new(child.id(), &socket_path),
        abandoned: Vec::new(),
        background_notice: options.background_notice,
    };
    let status = recording.run(&mut child, &options.signals)?;
    Ok(recording.finish(child.id(), status, &options.signals))
}

impl RecordingState {
    /// Reads rings until the command and all recorded processes have ended, or until an interrupt
    /// after the end of the command.
    fn run(
        &mut self,
        child: &mut Child,
        signals: &CommandSignals,
    ) -> Result<ExitStatus, AllocLogError> {
        let mut sleep = SLEEP_LIMITS.0;
        let mut status = None;
        let mut ended = None;
        let mut is_terminated = false;
        loop {
            self.accept_rings();
            self.mark_phases();
            let words = self.read_rings();
            self.sample_memory(status.is_none().then(|| child.id()));
            self.end_processes();
            if let Some(status) = status
                && (is_terminated || signals.interrupt.load(Ordering::Relaxed))
            {
                self.leave_processes();
                return Ok(status);
            }
            if status.is_none() {
                is_terminated |= signals.send_on(child);
                status = child.try_wait().map_err(AllocLogError::Wait)?;
                ended = status.map(|_| Instant::now());
            }
            if ended.is_some_and(|ended| ended.elapsed() > BACKGROUND_DELAY) {
                self.tell_of_background();
            }
            if let Some(status) = status
                && self.is_complete()
            {
                return Ok(status);
            }
            sleep = next_sleep(sleep, words);
            if words < (1 << CAPACITY_LOG2) / FILL_DIVISOR {
                self.wait(sleep);
            }
        }
    }

    /// Returns whether all processes have ended, and none is about to appear.
    fn is_complete(&mut self) -> bool {
        if !self.processes.is_empty() {
            self.awaited.end_wait();
            return false;
        }
        // In this order: one that is not awaited has sent its ring, or has ended.
        let is_any = self.awaited.is_any(|pid| self.unrecorded.has_answered(pid));
        !self.accept_rings() && !is_any
    }

    /// Tells, once, of processes that go on after the command.
    fn tell_of_background(&mut self) {
        // It costs a look at each process.
        if self.background_notice.is_none() {
            return;
        }
        let mut running: Vec<&RingProcess> = Vec::new();
        for process in &mut self.processes {
            if !process.has_ended() {
                running.push(process);
            }
        }
        if let Some(process) = running.first()
            && let Some(notice) = self.background_notice.take()
        {
            notice(&process.program, process.pid, running.len());
        }
    }

    /// Sleeps, less if a ring arrives or a process ends.
    fn wait(&self, time: Duration) {
        let mut events = vec![PollFd::new(self.wake_pipe.reader(), PollFlags::IN)];
        events.extend(self.socket.connection_event());
        for process in &self.processes {
            if let ProcessExit::File(exit) = &process.exit
                && !process.is_over
            {
                events.push(PollFd::new(exit, PollFlags::IN));
            }
        }
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        // An interrupted sleep is a short one.
        let _ = poll(&mut events, Some(&limit));
    }

    fn time_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Takes the rings that have arrived; returns whether there were any, or are about to be.
    fn accept_rings(&mut self) -> bool {
        let mut is_any = false;
        for message in self.socket.receive() {
            match message {
                RingMessage::Ring(sent) => is_any |= self.take_ring(sent),
                RingMessage::Failure(failure) => self.note_failure(failure),
                RingMessage::LostRing(LostRing { pid, executable }) => {
                    self.unrecorded.note_lost_ring(pid, executable);
                }
            }
        }
        self.add_arrived(false);
        is_any || self.socket.is_message_due() || !self.arrived.is_empty()
    }

    /// Takes a ring that has arrived; returns whether it can be read.
    fn take_ring(&mut self, sent: SentRing) -> bool {
        match RingReader::open(&sent.ring) {
            Ok(reader) => {
                let limit = Instant::now() + INHERITANCE_LIMIT;
                self.arrived.push(ArrivedRing { reader, sent, limit });
                true
            }
            Err(RingError::OtherVersion) => {
                self.unrecorded.note_other_version(sent.pid, sent.executable);
                false
            }
            // Not from the recorder: its sender is named with the processes without a ring.
            Err(RingError::NoRing | RingError::Map(_)) => false,
        }
    }

    /// Notes that a process could not make a ring: its parent does not wait for it.
    fn note_failure(&mut self, failure: RingFailure) {
        let is_parent = |it: &&mut RingProcess| it.reader.inode() == failure.parent_ring;
        if let Some(parent) = self.processes.iter_mut().find(is_parent) {
            parent.forks.note_failure(failure.fork_number);
        }
        self.unrecorded.note_failure(failure.pid, failure.executable);
    }

    /// Adds the processes whose rings have arrived. The child of a fork is one when the ring of its
    /// parent was read up to the fork, or when that takes too long, `is_last`: at once.
    fn add_arrived(&mut self, is_last: bool) {
        let mut waiting: Vec<ArrivedRing> = Vec::new();
        for arrived in std::mem::take(&mut self.arrived) {
            // A parent that waits itself, or an earlier program of the same process, comes first.
            if waiting.iter().any(|before| before.comes_before(&arrived)) {
                waiting.push(arrived);
                continue;
            }
            let is_last = is_last || Instant::now() >= arrived.limit;
            match self.inherit(&arrived.reader, is_last) {
                Inheritance::Awaited => waiting.push(arrived),
                inheritance => self.add_process(arrived, inheritance),
            }
        }
        self.arrived = waiting;
    }

    /// Returns what a process inherits: if it is the child of a fork, what is live in its parent at
    /// the position of that fork. Reads the parent's ring up to it.
    fn inherit(&mut self, child: &RingReader, is_last: bool) -> Inheritance {
        let (ring, (_, number)) = (child.parent_ring(), child.origin());
        let is_parent = |process: &RingProcess| number != 0 && process.reader.inode() == ring;
        let Some(index) = self.processes.iter().rposition(is_parent) else {
            return Inheritance::None;
        };
        loop {
            let words = self.read_ring(index);
            let Some(process) = self.processes.get_mut(index) else { return Inheritance::None };
            process.forks.note_child(number, child.fork_position());
            let progress = (process.reader.position(), is_last && words == 0);
            if let Some(encoder) = process.forks.take(number, progress, &mut process.encoder) {
                return Inheritance::Fork(Box::new(encoder), process.number);
            }
            if words == 0 {
                return if is_last {
                    Inheritance::Lost(process.number)
                } else {
                    Inheritance::Awaited
                };
            }
        }
    }

    /// Adds a process image.
    fn add_process(&mut self, arrived: ArrivedRing, inheritance: Inheritance) {
        // The phase of its parent may just have begun. A message beside the first process is its
        // own.
        if !self.processes.is_empty() {
            self.mark_phases();
        }
        let ArrivedRing { reader, sent: SentRing { pid, executable, arguments, .. }, .. } = arrived;
        // A process with a new ring has begun another program.
        for process in self.processes.iter_mut().filter(|process| process.pid == pid) {
            process.is_over = true;
        }
        let (_, fork_number) = reader.origin();
        let (encoder, forked_from) = match inheritance {
            Inheritance::Fork(encoder, parent) => (Some(*encoder), Some(parent)),
            Inheritance::Lost(parent) => (None, Some(parent)),
            Inheritance::None | Inheritance::Awaited => (None, None),
        };
        let is_inheriting = encoder.is_some();
        let mut encoder = encoder.unwrap_or_else(ProcessEncoder::new);
        let start_us = self.time_us();
        encoder.note_time(start_us);
        self.unrecorded.note_recorded(pid, reader.inode());
        let number = self.next_number;
        self.next_number += 1;
        let (inherited_bytes, inherited_objects, first_ordinal) = encoder.inheritance();
        let parent = forked_from.or_else(|| self.recorded_parent(pid, &reader));
        let start = ProcessStart {
            pid,
            parent,
            is_forked: fork_number != 0,
            executable,
            arguments,
            start_us,
            inherited_bytes,
            inherited_objects,
            first_ordinal,
            stack_interval: self.stack_interval,
        };
        self.log.write_json(BlockKind::PROCESS, number, &start);
        let stacks = (self.stack_interval != 0).then(|| {
            let (recorder, code) = (self.recorder.clone(), SharedCode::clone(&self.code));
            StackUnwinder::new(pid, reader.inode(), recorder, code)
        });
        let program = start.executable;
        let begun_by = self.processes.iter().find(|process| Some(process.number) == parent);
        let phase_of = |process: &'_ RingProcess| match is_inheriting {
            true => process.begun_phase.clone(),
            false => process.last_phase().cloned(),
        };
        let phase = begun_by.map_or(self.phase.clone(), phase_of);
        let mut process = RingProcess::new(number, pid, program, (reader, encoder, stacks));
        if let Some(phase) = phase {
            process.begin_phase(start_us, &phase);
        }
        self.processes.push(process);
    }

    /// Returns the recorded process that this one was before it began its program, or that is its
    /// parent.
    fn recorded_parent(&self, pid: u32, ring: &RingReader) -> Option<u32> {
        let image = |pid: u32| self.processes.iter().rev().find(|process| process.pid == pid);
        let forked_from = |process: &&RingProcess| process.reader.inode() == ring.parent_ring();
        // The id of its parent is of use if the process is in the namespace of this one.
        let parent = match ring.process() == pid {
            true => Some(ring.origin().0),
            false => recorded_process::parent(pid),
        };
        let found = self.processes.iter().rev().find(forked_from).or_else(|| image(pid));
        found.or_else(|| parent.and_then(image)).map(|process| process.number)
    }

    /// Marks the phases that messages have begun, in the processes that may have written them.
    fn mark_phases(&mut self) {
        let time_us = self.time_us();
        let Some((messages, pipe)) = &self.messages else { return };
        // Before the names are taken: a later one wakes again.
        self.wake_pipe.clear();
        for phase in messages.next_phases() {
            // One that has ended makes no calls in the phase, as the echo of a script.
            let may_be_writer = |process: &mut RingProcess| {
                !process.has_ended() && process.written.may_have_written(process.pid, *pipe)
            };
            let writers: Vec<bool> = self.processes.iter_mut().map(may_be_writer).collect();
            // Where the writer has ended, or is not recorded, the phase is that of the command.
            let is_known = writers.contains(&true);
            for (process, is_writer) in self.processes.iter_mut().zip(writers) {
                if is_writer || !is_known {
                    process.await_phase(time_us, &phase.name);
                }
            }
            if !is_known {
                self.phase = Some(phase.name);
            }
        }
        for process in self.processes.iter_mut().filter(|process| !process.is_over) {
            process.written.update(process.pid, time_us);
        }
    }

    /// Reads what is in the rings; returns the largest number of words read of one of them.
    fn read_rings(&mut self) -> u64 {
        let mut most = 0;
        for index in 0..self.processes.len() {
            most = most.max(self.read_ring(index));
        }
        most
    }

    /// Reads the ring of a process; returns the number of words.
    fn read_ring(&mut self, index: usize) -> u64 {
        let time_us = self.time_us();
        let Some(process) = self.processes.get_mut(index) else { return 0 };
        let words = process.read_events(time_us);
        if process.is_block_due() {
            process.write_calls(&mut self.log, time_us);
        }
        words
    }

    /// Ends the processes that are over, whose rings are empty, and of which no forked child is
    /// awaited.
    fn end_processes(&mut self) {
        let mut index = 0;
        while index < self.processes.len() {
            if self.processes[index].has_ended()
                && !self.processes[index].forks.is_child_due()
                && self.read_ring(index) == 0
            {
                self.mark_phases();
                self.end_process(index);
            } else {
                index += 1;
            }
        }
    }

    /// Reads what is in the rings, and lets the processes go on unrecorded.
    fn leave_processes(&mut self) {
        self.add_arrived(true);
        while let Some(process) = self.processes.first_mut() {
            process.forks = AwaitedForks::default();
            // At most the words of one ring: the process may go on writing.
            let mut words_left = process.reader.capacity();
            while words_left > 0 {
                let words = self.read_ring(0);
                words_left = if words == 0 { 0 } else { words_left.saturating_sub(words) };
            }
            if let Some(process) = self.processes.first_mut()
                && !process.has_ended()
            {
                process.is_left = true;
                process.give_up();
            }
            self.end_process(0);
        }
    }

    fn end_process(&mut self, index: usize) {
        let time_us = self.time_us();
        let mut process = self.processes.remove(index);
        self.samples.extend(process.memory.take_rest());
        self.unrecorded.note_end(&process);
        if process.is_abandoned() && !process.is_left {
            let (pid, calls) = (process.pid, process.encoder.calls());
            let program = process.program.clone();
            self.abandoned.push(AbandonedProcess { pid, program, calls });
        }
        process.end(&mut self.log, time_us, &mut self.symbols);
    }

    /// Notes the time and the memory of the processes, if it is due, and looks for others that are
    /// not recorded. The command is none when it has ended: its id may be another's.
    fn sample_memory(&mut self, command: Option<u32>) {
        if self.last_sample.elapsed() < SAMPLE_INTERVAL {
            return;
        }
        self.last_sample = Instant::now();
        let time_us = self.time_us();
        let running = self.processes.iter().filter(|process| !process.is_over);
        self.unrecorded.find(command.into_iter().chain(running.map(|process| process.pid)));
        for process in self.processes.iter_mut().filter(|process| !process.is_over) {
            process.note_time(time_us);
            if !process.memory.is_due(time_us, process.encoder.calls()) {
                continue;
            }
            let Some((resident_bytes, anonymous_bytes)) = recorded_process::memory(process.pid)
            else {
                continue;
            };
            let (number, calls) = (process.number, process.encoder.calls());
            let sample =
                RssSample { process: number, time_us, calls, resident_bytes, anonymous_bytes };
            self.samples.extend(process.memory.take(sample));
        }
        if self.samples.len() >= 256 {
            self.write_samples();
        }
    }

    fn write_samples(&mut self) {
        let samples = std::mem::take(&mut self.samples);
        if !samples.is_empty() {
            self.log.write_json(BlockKind::SAMPLES, 0, &samples);
        }
    }

    fn finish(
        mut self,
        command: u32,
        status: ExitStatus,
        signals: &CommandSignals,
    ) -> RecordingSummary {
        let end_us = self.time_us();
        self.write_samples();
        let unrecorded = self.unrecorded.finish();
        let named = |it: &UnrecordedProcess| (it.pid, it.program.clone());
        let end = RecordingEnd {
            end_us,
            exit_code: crate::process_cost::exit_code(status),
            signal: status.signal(),
            pid: Some(command),
            unrecorded: unrecorded.iter().map(named).collect(),
        };
        self.log.write_json(BlockKind::RECORDING_END, 0, &end);
        // Only now, as a further signal ends the wait and this program.
        if let Some((messages, _)) = &self.messages {
            // Nothing calls the allocator any more: these phases have no calls.
            drop(messages.finish_within(LAST_MESSAGES_LIMIT, &|| signals.is_any()));
        }
        let (calls, lost_calls) = self.log.calls();
        RecordingSummary {
            status,
            processes: self.next_number as usize,
            calls,
            lost_calls,
            bytes: self.log.bytes(),
            unrecorded,
            abandoned: self.abandoned,
            connection_failure: self.socket.into_failure(),
            write_failure: self.log.into_failure(),
        }
    }
}

/// Raises the number of files that this process may have open: each recorded process takes one.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where that fails, the lower limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Returns the next sleep after one in which so many words were written.
fn next_sleep(sleep: Duration, words: u64) -> Duration {
    let target = (1 << CAPACITY_LOG2) / FILL_DIVISOR;
    let factor = (target as f64 / words.max(1) as f64).clamp(0.5, 1.5);
    sleep.mul_f64(factor).clamp(SLEEP_LIMITS.0, SLEEP_LIMITS.1)
}
