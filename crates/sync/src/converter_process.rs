//! Running a converter: a program that reads an attachment and prints its text.
//!
//! A converter gets bytes that anyone may have sent, so its time, its memory and its output are
//! limited. It is started without a shell, as the leader of a process group, which is killed at its
//! end, so that no process of the group is left. One that is killed is looked for in all sessions,
//! by a variable that it passes on to the processes that it starts. The limits of memory are set
//! right after the start, because setting them before the program runs is not possible in safe
//! code; it gets no byte of the attachment before. Input and output are pipes that one thread
//! serves with `poll`.
//!
//! A limit of processor time ends a converter whose parent was killed. It is not a sandbox: a
//! converter has all rights of the user.
//!
//! Separate from `attachment_conversion`, which chooses converters and keeps their texts.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process,
    kill_process_group, prlimit, waitid,
};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest wait between two looks at the time and at cancellation.
const TICK: Duration = Duration::from_millis(50);
/// The bytes that are read at once.
const PIPE_BYTES: usize = 64 << 10;
/// The variable that the processes of a converter have, with the name of the run.
const RUN_VARIABLE: &str = "LARDER_CONVERTER_RUN";
/// The most looks for processes of a converter that was killed: they may start others.
const MAX_KILL_ROUNDS: usize = 16;
/// The processors whose time a converter may use during its time.
const MAX_PROCESSORS: u64 = 8;

/// The limits of a converter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConverterLimits {
    /// The time for all attachments of a message.
    pub time: Duration,
    /// The time of all converters of a synchronisation together.
    pub run_time: Duration,
    /// The address space of a process.
    pub memory_bytes: u64,
    /// The text of an attachment.
    pub output_bytes: usize,
}

impl Default for ConverterLimits {
    fn default() -> ConverterLimits {
        ConverterLimits {
            time: Duration::from_secs(20),
            run_time: Duration::from_secs(600),
            memory_bytes: 1 << 30,
            output_bytes: 4 << 20,
        }
    }
}

/// The reason that a converter made no complete text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConverterError {
    /// The program does not exist.
    #[error("the program was not found")]
    Missing,
    /// It could not be started or read.
    #[error("the program cannot be run: {0}")]
    Unusable(#[from] io::Error),
    /// It ended with a status.
    #[error("the program ended with status {0}")]
    Status(i32),
    /// A signal ended it.
    #[error("the program was ended by signal {0}")]
    Signal(i32),
    /// It took too long.
    #[error("the program took longer than mail.converter-limits.time")]
    OutOfTime,
    /// Its output is too long. The beginning is kept.
    #[error("the text is longer than mail.converter-limits.output, and was cut off")]
    TooLong(Vec<u8>),
    /// The caller does not need the text any more.
    #[error("the synchronisation was interrupted")]
    Cancelled,
}

/// Runs a converter on a content, for at most `time`. Returns its output.
pub(crate) fn run_converter(
    command: &[String],
    content: &[u8],
    limits: &ConverterLimits,
    time: Duration,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, ConverterError> {
    let deadline = Instant::now() + time;
    let (program, arguments) = command.split_first().ok_or(ConverterError::Missing)?;
    let mut running = RunningConverter::start(program, arguments)?;
    running.set_limits(limits)?;
    let wait = Wait { deadline, is_cancelled };
    let output = running.exchange(content, limits.output_bytes, &wait)?;
    let status = running.wait(&wait)?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(output),
        (Some(code), _) => Err(ConverterError::Status(code)),
        (None, signal) => Err(ConverterError::Signal(signal.unwrap_or_default())),
    }
}

/// The conditions that end a wait.
struct Wait<'w> {
    deadline: Instant,
    is_cancelled: &'w dyn Fn() -> bool,
}

impl Wait<'_> {
    /// Returns the time until the next look, at most `longest`.
    fn next_tick(&self, longest: Duration) -> Result<Duration, ConverterError> {
        if (self.is_cancelled)() {
            return Err(ConverterError::Cancelled);
        }
        let rest = self.deadline.saturating_duration_since(Instant::now());
        if rest.is_zero() { Err(ConverterError::OutOfTime) } else { Ok(rest.min(longest)) }
    }
}

/// A converter that was started. Its process group is killed at the end.
struct RunningConverter {
    child: Child,
    /// The variable, with its value.
    run: String,
    /// Its status was read, so its number may be that of another process.
    is_reaped: bool,
}

impl RunningConverter {
    fn start(program: &str, arguments: &[String]) -> Result<RunningConverter, ConverterError> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = format!("{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
        let started = Command::new(program)
            .args(arguments)
            .env(RUN_VARIABLE, &run)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match started {
            Ok(child) => {
                let run = format!("{RUN_VARIABLE}={run}");
                Ok(RunningConverter { child, run, is_reaped: false })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ConverterError::Missing),
            Err(error) => Err(error.into()),
        }
    }

    fn set_limits(&self, limits: &ConverterLimits) -> Result<(), ConverterError> {
        let processor_seconds = (limits.time.as_secs() + 1).saturating_mul(MAX_PROCESSORS);
        for (resource, most) in [
            (Resource::As, limits.memory_bytes),
            (Resource::Cpu, processor_seconds),
            // A dump of its memory has the attachment.
            (Resource::Core, 0),
        ] {
            // A lower limit of the user cannot be raised.
            let present = getrlimit(resource).maximum;
            let most = present.map_or(most, |present| present.min(most));
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            match prlimit(Some(Pid::from_child(&self.child)), resource, limit) {
                // It has ended already.
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok(())
    }

    /// Passes the content, and reads the output until its end.
    fn exchange(
        &mut self,
        mut content: &[u8],
        limit: usize,
        wait: &Wait<'_>,
    ) -> Result<Vec<u8>, ConverterError> {
        let Some(mut source) = self.child.stdout.take() else { return Ok(Vec::new()) };
        let mut sink = self.child.stdin.take();
        if let Some(sink) = &sink {
            ioctl_fionbio(sink, true).map_err(io::Error::from)?;
        }
        let (mut output, mut buffer) = (Vec::new(), vec![0; PIPE_BYTES]);
        loop {
            let (is_readable, is_writable) = poll_pipes(&source, sink.as_ref(), wait)?;
            if is_writable && let Some(pipe) = &mut sink {
                match pipe.write(content) {
                    Ok(count) => content = content.get(count..).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // It does not read to the end.
                    Err(_) => content = &[],
                }
            }
            if content.is_empty() {
                sink = None;
            }
            if !is_readable {
                continue;
            }
            let count = source.read(&mut buffer)?;
            if count == 0 {
                return Ok(output);
            }
            output.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if output.len() > limit {
                output.truncate(limit);
                return Err(ConverterError::TooLong(output));
            }
        }
    }

    /// Waits for the end of the program.
    fn wait(&mut self, wait: &Wait<'_>) -> Result<ExitStatus, ConverterError> {
        // The process stays until it is waited for, so that its number is not that of another one
        // when its group is killed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let pid = Pid::from_child(&self.child);
        let mut pause = Duration::from_millis(1);
        while waitid(WaitId::Pid(pid), options).map_err(io::Error::from)?.is_none() {
            std::thread::sleep(wait.next_tick(pause)?);
            pause = (pause * 2).min(TICK);
        }
        self.kill_group();
        self.is_reaped = true;
        Ok(self.child.wait()?)
    }

    fn kill_group(&self) {
        // It may have ended.
        let _ended = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Kills the processes that left the group for a session of their own.
    fn kill_other_sessions(&self) {
        for _ in 0..MAX_KILL_ROUNDS {
            let others = find_processes(self.run.as_bytes());
            if others.is_empty() {
                return;
            }
            for pid in others {
                // It may have ended.
                let _ended = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Finds the processes with a variable in their environment, as `NAME=value`, that have not ended.
/// Those of other users cannot be read, and are none of this one's.
fn find_processes(variable: &[u8]) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let has_variable = |name: &str| {
        // That of a process that has ended is empty.
        let variables = fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == variable)
    };
    let numbers = names.filter_map(|name| Some((name.parse().ok()?, name)));
    let found = numbers.filter(|(_, name)| has_variable(name));
    found.filter_map(|(number, _)| Pid::from_raw(number)).collect()
}

/// Waits until a pipe is ready, for a short time. Returns whether the output can be read, and
/// whether the input can be written.
fn poll_pipes(
    source: &ChildStdout,
    sink: Option<&ChildStdin>,
    wait: &Wait<'_>,
) -> Result<(bool, bool), ConverterError> {
    let tick = wait.next_tick(TICK)?;
    let timeout = Timespec {
        tv_sec: i64::try_from(tick.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: tick.subsec_nanos().into(),
    };
    let mut pipes = vec![PollFd::new(source, PollFlags::IN)];
    pipes.extend(sink.map(|sink| PollFd::new(sink, PollFlags::OUT)));
    match poll(&mut pipes, Some(&timeout)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok((false, false)),
        Err(error) => return Err(io::Error::from(error).into()),
    }
    let mut is_ready = pipes.iter().map(|pipe| !pipe.revents().is_empty());
    Ok((is_ready.next() == Some(true), is_ready.next() == Some(true)))
}

impl Drop for RunningConverter {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill_group();
            let _status = self.child.wait();
            self.kill_other_sessions();
        }
    }
}
