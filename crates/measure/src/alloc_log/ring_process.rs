//! A process image whose ring is read: from events to blocks of its calls.

use super::awaited_forks::AwaitedForks;
use super::call_times::NOTE_INTERVAL_US;
use super::function_names::SymbolCache;
use super::log_block::{BlockKind, ProcessEnd};
use super::memory_samples::MemorySamples;
use super::message_writer::WrittenBytes;
use super::process_encoder::ProcessEncoder;
use super::recorded_process;
use super::recording_log::RecordingLog;
use super::ring_layout::{RingOperation, ring_state};
use super::ring_reader::{ReadProgress, RingEvent, RingReader};
use super::stack_unwinder::StackUnwinder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A block is written after this time even if it is small, so that a killed collector loses little.
const BLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// How the end of a process is seen.
pub(super) enum ProcessExit {
    /// This file is readable when it has ended.
    File(OwnedFd),
    /// It had ended when its ring arrived.
    Before,
    /// There is no such file, as when too many are open: the process is looked up.
    Unknown,
}

/// A process image whose ring is read.
pub(super) struct RingProcess {
    /// Its number in the log.
    pub(super) number: u32,
    pub(super) pid: u32,
    /// The path of its program.
    pub(super) program: String,
    pub(super) reader: RingReader,
    pub(super) encoder: ProcessEncoder,
    /// Unwinds its call stacks, if there are samples of them.
    stacks: Option<StackUnwinder>,
    pub(super) exit: ProcessExit,
    /// The process has ended, or begun another program.
    pub(super) is_over: bool,
    pub(super) forks: AwaitedForks,
    /// The phase of its calls up to where the ring was read: a message has begun it, here or in the
    /// process that began this one.
    pub(super) begun_phase: Option<Vec<u8>>,
    pub(super) memory: MemorySamples,
    /// Phases that begin at a later position of the ring, where its end was at their messages.
    later_phases: VecDeque<(u64, Vec<u8>)>,
    pub(super) written: WrittenBytes,
    last_block: Instant,
    /// When the ring was read last, and the last note of the time in the log.
    last_read_us: u64,
    last_note_us: u64,
    /// The ring is not read to its end.
    is_given_up: bool,
    /// The user has closed the log before the process has ended.
    pub(super) is_left: bool,
}

impl RingProcess {
    /// Creates the process of a ring, with its encoder, and an unwinder if stacks are taken.
    pub(super) fn new(
        number: u32,
        pid: u32,
        program: String,
        (reader, encoder, stacks): (RingReader, ProcessEncoder, Option<StackUnwinder>),
    ) -> RingProcess {
        let exit = match Pid::from_raw(pid.cast_signed())
            .map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        {
            Some(Ok(file)) => ProcessExit::File(file),
            None | Some(Err(Errno::SRCH)) => ProcessExit::Before,
            Some(Err(_)) => ProcessExit::Unknown,
        };
        RingProcess {
            number,
            pid,
            program,
            reader,
            encoder,
            stacks,
            exit,
            is_over: false,
            forks: AwaitedForks::default(),
            begun_phase: None,
            memory: MemorySamples::default(),
            later_phases: VecDeque::new(),
            written: WrittenBytes::default(),
            last_block: Instant::now(),
            last_read_us: 0,
            last_note_us: 0,
            is_given_up: false,
            is_left: false,
        }
    }

    /// Notes the time at which all calls so far had been made.
    pub(super) fn note_time(&mut self, time_us: u64) {
        self.encoder.note_time(time_us);
        self.last_note_us = time_us;
    }

    /// Begins the phase of a message.
    pub(super) fn begin_phase(&mut self, time_us: u64, name: &[u8]) {
        self.note_time(time_us);
        self.encoder.mark(name);
        self.begun_phase = Some(name.to_vec());
    }

    /// Begins the phase of a message that has just been read, after the calls in the ring.
    pub(super) fn await_phase(&mut self, time_us: u64, name: &[u8]) {
        let end = self.reader.end_position();
        self.later_phases.push_back((end, name.to_vec()));
        self.begin_due_phases(time_us, self.reader.position());
    }

    /// Returns the phase of the last message.
    pub(super) fn last_phase(&self) -> Option<&Vec<u8>> {
        self.later_phases.back().map(|(_, name)| name).or(self.begun_phase.as_ref())
    }

    /// Begins the phases up to a position.
    fn begin_due_phases(&mut self, time_us: u64, position: u64) {
        let is_due = |phases: &VecDeque<(u64, Vec<u8>)>| {
            phases.front().is_some_and(|(start, _)| *start <= position)
        };
        while is_due(&self.later_phases)
            && let Some((_, name)) = self.later_phases.pop_front()
        {
            self.begin_phase(time_us, &name);
        }
    }

    fn note_time_if_due(&mut self, time_us: u64) {
        if time_us.saturating_sub(self.last_note_us) >= NOTE_INTERVAL_US {
            self.note_time(time_us);
        }
    }

    /// Reads events up to a fork, at most about a quarter of the ring; returns the number of words.
    pub(super) fn read_events(&mut self, time_us: u64) -> u64 {
        if self.is_given_up || self.awaits_child() {
            return 0;
        }
        let last_read_us = std::mem::replace(&mut self.last_read_us, time_us);
        if !self.reader.has_event() {
            return 0;
        }
        // These calls were made since the ring was read last, however long before the others were.
        self.note_time_if_due(last_read_us);
        let next_phase = self.later_phases.front().map_or(u64::MAX, |(start, _)| *start);
        let words = self.take_events(next_phase.min(self.forks.next_position()));
        self.note_time_if_due(time_us);
        self.begin_due_phases(time_us, self.reader.position());
        words
    }

    fn take_events(&mut self, limit: u64) -> u64 {
        let mut fork = None;
        let (encoder, stacks) = (&mut self.encoder, &mut self.stacks);
        let forks = &mut self.forks;
        let receive = |event: &RingEvent<'_>, later_address| match event.operation {
            RingOperation::Fork => {
                fork = Some(event.size as u32);
                false
            }
            RingOperation::ForkFailure => {
                forks.take_back(event.size as u32);
                true
            }
            RingOperation::Stack => {
                if let Some(stacks) = stacks {
                    encoder.note_stack(event.address, stacks.unwind(event.operands));
                }
                true
            }
            RingOperation::Unload => {
                if let Some(stacks) = stacks {
                    stacks.forget_library(event.address);
                }
                true
            }
            _ => {
                encoder.prefetch(later_address);
                encoder.encode(event);
                true
            }
        };
        let progress = self.reader.read_events(limit, receive);
        if let Some(number) = fork {
            self.forks.begin(number);
        }
        match progress {
            ReadProgress::Words(words) | ReadProgress::Stopped(words) => words,
            ReadProgress::Damaged => {
                self.give_up();
                0
            }
        }
    }

    /// Returns whether it is time to write the block of calls.
    pub(super) fn is_block_due(&mut self) -> bool {
        let is_due = self.encoder.is_block_full() || self.last_block.elapsed() >= BLOCK_INTERVAL;
        if is_due {
            self.last_block = Instant::now();
        }
        is_due
    }

    /// Writes the block of calls, and before it the frames of their stacks.
    pub(super) fn write_calls(&mut self, log: &mut RecordingLog, time_us: u64) {
        if let Some(frames) = self.stacks.as_mut().and_then(StackUnwinder::take_unwritten) {
            log.write_json(BlockKind::STACKS, self.number, &frames);
        }
        if let Some(block) = self.encoder.take_block(time_us) {
            self.last_note_us = time_us;
            log.write_calls(self.number, &block);
        }
    }

    /// Writes what is left, and that the process has ended.
    pub(super) fn end(mut self, log: &mut RecordingLog, time_us: u64, symbols: &mut SymbolCache) {
        // Events before the message may have been lost.
        self.begin_due_phases(time_us, u64::MAX);
        self.write_calls(log, time_us);
        let (marks, number_values) = self.encoder.marks_and_values();
        let end = ProcessEnd {
            end_us: time_us,
            is_exit: self.reader.state() == ring_state::EXITED,
            is_abandoned: self.is_abandoned(),
            calls: self.encoder.calls(),
            null_frees: self.reader.null_frees(),
            stalls: self.reader.stalls(),
            anomalies: self.encoder.anomalies(),
            marks: Some(marks),
            number_values: Some(number_values),
        };
        log.write_json(BlockKind::PROCESS_END, self.number, &end);
        if let Some(stacks) = self.stacks {
            // At once: a program that was built for a test is soon deleted.
            log.write_json(BlockKind::FUNCTIONS, self.number, &stacks.into_functions(symbols));
        }
    }

    /// Returns whether the events after a fork still wait for the child: not when the fork has
    /// failed, nor when the ring is half full, because the program waits when it is full.
    fn awaits_child(&mut self) -> bool {
        if let Some(number) = self.forks.last_number() {
            let is_failure = |event: &RingEvent<'_>| {
                event.operation == RingOperation::ForkFailure && event.size == u64::from(number)
            };
            if self.reader.has_event_ahead(is_failure) {
                self.forks.take_back(number);
            }
        }
        if self.reader.is_half_full() {
            self.forks.keep_snapshot(&mut self.encoder);
        }
        self.forks.awaits_child(&mut self.encoder)
    }

    /// Returns whether the ring does not have all calls of the process.
    pub(super) fn is_abandoned(&self) -> bool {
        self.reader.state() == ring_state::ABANDONED || self.is_given_up
    }

    /// Reads the ring no further, and lets the process go on.
    pub(super) fn give_up(&mut self) {
        self.is_given_up = true;
        self.reader.release_writers();
    }

    /// Returns whether the process has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        if !self.is_over {
            self.is_over = match &self.exit {
                ProcessExit::File(exit) => {
                    let mut events = [PollFd::new(exit, PollFlags::IN)];
                    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                    matches!(poll(&mut events, Some(&now)), Ok(count) if count > 0)
                }
                ProcessExit::Before => true,
                ProcessExit::Unknown => !recorded_process::is_running(self.pid),
            };
        }
        self.is_over
    }
}
