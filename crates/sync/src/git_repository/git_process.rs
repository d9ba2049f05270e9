//! A running process of git, whose output is waited for with a look at cancellation.
//!
//! Separate from its parent, which knows the commands: git may print nothing for a long time, in a
//! large repository or in one that was made to be slow.

use super::GitError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The bytes of the output of git that are read at once.
const OUTPUT_BUFFER_BYTES: usize = 256 << 10;
/// The time between two looks at cancellation, in nanoseconds.
const TICK_NANOSECONDS: i64 = 100_000_000;
/// The memory that git may write to: what the history of a large repository needs, and not what
/// trees need that were made to have billions of paths. Files that it maps do not count.
pub const MAX_GIT_MEMORY_BYTES: u64 = 4 << 30;

/// A running process of git. It ends when this is dropped.
pub trait GitOutput: Read {
    /// Returns the pipe that [`Read`] reads; `None`: reading never waits for long.
    fn pipe(&self) -> Option<BorrowedFd<'_>>;

    /// Waits for the end of the process. Returns its warnings; an error is what it reported.
    ///
    /// # Errors
    /// The process failed.
    fn finish(self: Box<Self>) -> Result<String, String>;
}

/// Limits the memory of a process of git that was just started, to [`MAX_GIT_MEMORY_BYTES`] or
/// less.
///
/// # Errors
/// The system refuses it.
pub fn limit_git_memory(child: &Child, bytes: u64) -> io::Result<()> {
    // A lower limit of the user cannot be raised.
    let most = getrlimit(Resource::Data).maximum.map_or(bytes, |present| present.min(bytes));
    let limit = Rlimit { current: Some(most), maximum: Some(most) };
    match prlimit(Some(Pid::from_child(child)), Resource::Data, limit) {
        // It has ended already.
        Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The time that git is waited for while it compares the trees of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitTimeLimits {
    /// At once.
    pub longest: Duration,
    /// At once, after git was silent for too long: the repository is slow, or was made to be.
    pub next_longest: Duration,
    /// In all, without pauses that are shorter than a tenth of a second.
    pub total: Duration,
    /// In all, with every pause: git may always print something, and never much.
    pub waiting: Duration,
}

impl Default for GitTimeLimits {
    fn default() -> GitTimeLimits {
        GitTimeLimits {
            longest: Duration::from_secs(300),
            next_longest: Duration::from_secs(10),
            total: Duration::from_secs(600),
            waiting: Duration::from_secs(3600),
        }
    }
}

/// The time that is left for the commands of one run.
#[derive(Debug, Default)]
pub(super) struct GitTimeBudget {
    limits: GitTimeLimits,
    spent: Cell<Duration>,
    waited: Cell<Duration>,
    has_failed: Cell<bool>,
}

impl GitTimeBudget {
    pub(super) fn new(limits: GitTimeLimits) -> GitTimeBudget {
        GitTimeBudget { limits, ..GitTimeBudget::default() }
    }

    /// Returns whether no time is left.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.get() >= self.limits.total || !self.has_wait()
    }

    /// Returns whether git may be waited for at all.
    fn has_wait(&self) -> bool {
        self.waited.get() < self.limits.waiting
    }

    fn wait(&self, time: Duration) {
        self.waited.set(self.waited.get().saturating_add(time));
    }

    /// Returns the time that git may print nothing now.
    fn limit(&self) -> Duration {
        let longest =
            if self.has_failed.get() { self.limits.next_longest } else { self.limits.longest };
        longest.min(self.limits.total.saturating_sub(self.spent.get()))
    }

    fn spend(&self, time: Duration, is_too_long: bool) {
        self.spent.set(self.spent.get().saturating_add(time));
        self.has_failed.set(self.has_failed.get() || is_too_long);
    }
}

/// A running command.
pub(super) struct GitProcess<'g> {
    pub(super) reader: BufReader<WatchedOutput<'g>>,
    path: PathBuf,
}

impl<'g> GitProcess<'g> {
    /// Takes over a process that reads the repository at a path. It is waited for within `budget`,
    /// if that is set.
    pub(super) fn new(
        output: Box<dyn GitOutput>,
        path: PathBuf,
        is_cancelled: &'g dyn Fn() -> bool,
        budget: Option<Rc<GitTimeBudget>>,
    ) -> GitProcess<'g> {
        let output = WatchedOutput { output, is_cancelled, budget };
        GitProcess { reader: BufReader::with_capacity(OUTPUT_BUFFER_BYTES, output), path }
    }

    /// Waits for the end. Returns the warnings.
    pub(super) fn finish(self) -> Result<String, GitError> {
        let path = self.path;
        let WatchedOutput { output, is_cancelled, .. } = self.reader.into_inner();
        output.finish().map_err(|reason| {
            // The terminal ends git, too.
            if is_cancelled() {
                return GitError::Cancelled;
            }
            if reason.contains("dubious ownership") {
                return GitError::OtherOwner { path };
            }
            if reason.contains("not a git repository") {
                return GitError::NotARepository { path };
            }
            GitError::Failed { path, reason: summarize_error(&reason) }
        })
    }

    /// Returns the error of a read.
    pub(super) fn read_error(&self, error: io::Error) -> GitError {
        match error.kind() {
            io::ErrorKind::ConnectionAborted => GitError::Cancelled,
            io::ErrorKind::TimedOut => GitError::TimedOut { path: self.path.clone() },
            _ => GitError::Process(error),
        }
    }
}

/// The output of a process. Reading ends with an error when it is cancelled, or when nothing comes.
pub(super) struct WatchedOutput<'g> {
    output: Box<dyn GitOutput>,
    is_cancelled: &'g dyn Fn() -> bool,
    budget: Option<Rc<GitTimeBudget>>,
}

impl Read for WatchedOutput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (began, mut has_waited) = (Instant::now(), false);
        let limit = self.budget.as_ref().map(|budget| budget.limit());
        if self.budget.as_ref().is_some_and(|budget| !budget.has_wait()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let spend = |is_too_long: bool| {
            if let Some(budget) = &self.budget {
                budget.spend(began.elapsed(), is_too_long);
            }
        };
        loop {
            // An interrupted read would be repeated.
            if (self.is_cancelled)() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if self.output.pipe().map_or(Ok(true), is_readable)? {
                if has_waited {
                    spend(false);
                }
                if let Some(budget) = &self.budget {
                    budget.wait(began.elapsed());
                }
                return self.output.read(buffer);
            }
            has_waited = true;
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                spend(true);
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// Waits for a short time until a pipe can be read, or has ended.
fn is_readable(pipe: BorrowedFd<'_>) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: TICK_NANOSECONDS };
    match poll(&mut [PollFd::from_borrowed_fd(pipe, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the lines of an error that say what is wrong.
fn summarize_error(reason: &str) -> String {
    let strip = |line: &'_ str| -> Option<String> {
        let text = line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: "))?;
        Some(text.trim().to_string())
    };
    let mut lines: Vec<String> = reason.lines().filter_map(strip).collect();
    lines.dedup();
    match lines.as_slice() {
        [] if reason.starts_with("signal: ") => format!("git was ended by {reason}"),
        [] => reason.lines().next().unwrap_or("it ended early").trim().to_string(),
        lines => lines.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::PipeReader;
    use std::os::fd::AsFd as _;

    /// A process that prints nothing.
    struct SilentOutput(PipeReader);

    impl Read for SilentOutput {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    impl GitOutput for SilentOutput {
        fn pipe(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn finish(self: Box<Self>) -> Result<String, String> {
            Ok(String::new())
        }
    }

    #[test]
    fn a_wait_for_git_ends() {
        let (reader, _writer) = io::pipe().unwrap();
        let output = Box::new(SilentOutput(reader.try_clone().unwrap()));
        let (longest, total) = (Duration::from_millis(1), Duration::from_secs(60));
        let limits = GitTimeLimits {
            longest,
            next_longest: Duration::ZERO,
            total,
            ..GitTimeLimits::default()
        };
        let budget = Rc::new(GitTimeBudget::new(limits));
        let mut process =
            GitProcess::new(output, PathBuf::new(), &|| false, Some(Rc::clone(&budget)));
        let error = process.reader.read(&mut [0]).unwrap_err();
        assert!(process.read_error(error).is_of_limits());
        // The next wait is shorter, and the total has a limit.
        assert_eq!((budget.limit(), budget.is_spent()), (Duration::ZERO, false));
        budget.spend(total, false);
        assert!(budget.is_spent());
        let asked = Cell::new(0);
        let is_cancelled = || asked.replace(asked.get() + 1) > 0;
        let output = Box::new(SilentOutput(reader));
        let mut process = GitProcess::new(output, PathBuf::new(), &is_cancelled, None);
        let error = process.reader.read(&mut [0]).unwrap_err();
        assert!(matches!(process.read_error(error), GitError::Cancelled));
    }
}
