//! Programs that have not sent a ring when all recorded processes have ended.
//!
//! The child of a fork is announced by its parent (`awaited_forks`). A child after vfork, as of
//! `posix_spawn`, is not: its parent goes on, and may end, when the child has begun its program,
//! which has yet to load the recorder. It is known by the socket in its environment.

use super::recorded_process::{is_running, start_ticks};
use crate::process_cost::process_ids;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a program is waited for: a static one sends no ring.
const AWAITED_LIMIT: Duration = Duration::from_millis(200);

/// Programs that may be about to send their first rings.
pub(super) struct AwaitedPrograms {
    socket: PathBuf,
    /// When the command began: what is older is none of its programs.
    start: Option<u64>,
    /// Since when programs have been waited for.
    begin: Option<Instant>,
}

impl AwaitedPrograms {
    /// Returns those of a command that has just been started.
    pub(super) fn new(command: u32, socket: &Path) -> AwaitedPrograms {
        let (socket, start) = (socket.to_path_buf(), start_ticks(command));
        AwaitedPrograms { socket, start, begin: None }
    }

    /// Notes that there are recorded processes: the next wait has its own limit.
    pub(super) fn end_wait(&mut self) {
        self.begin = None;
    }

    /// Returns whether there is one, but not for longer than the limit. Processes that are known
    /// have sent a ring, or have failed to.
    pub(super) fn is_any(&mut self, is_known: impl Fn(u32) -> bool) -> bool {
        let begin = *self.begin.get_or_insert_with(Instant::now);
        begin.elapsed() < AWAITED_LIMIT
            && process_ids().into_iter().any(|pid| self.is_awaited(pid) && !is_known(pid))
    }

    fn is_awaited(&self, pid: u32) -> bool {
        self.start.zip(start_ticks(pid)).is_some_and(|(start, begin)| begin >= start)
            && is_running(pid)
            && self.has_socket(pid)
    }

    /// Returns whether the environment of a process names the socket. In the middle of exec a
    /// program has none.
    fn has_socket(&self, pid: u32) -> bool {
        let path = self.socket.as_os_str().as_bytes();
        match std::fs::read(format!("/proc/{pid}/environ")) {
            Ok(text) if text.is_empty() => std::fs::read_link(format!("/proc/{pid}/exe")).is_ok(),
            Ok(text) => text.windows(path.len()).any(|part| part == path),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_with_the_socket_is_awaited_for_a_while() {
        let socket = Path::new("/no/such/folder/of-this-test");
        let mut command = Command::new("cat");
        command.env("SOCKET", format!("1:{}", socket.display())).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        let is_any = |path: &Path, is_known: bool| {
            let mut awaited = AwaitedPrograms::new(pid, path);
            awaited.is_any(|it| it != pid || is_known)
        };
        assert!(is_any(socket, false));
        assert!(!is_any(socket, true) && !is_any(Path::new("/no/such/folder/other"), false));
        let mut awaited = AwaitedPrograms::new(pid, socket);
        awaited.begin = Instant::now().checked_sub(AWAITED_LIMIT);
        assert!(!awaited.is_any(|it| it != pid));
        awaited.end_wait();
        assert!(awaited.is_any(|it| it != pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
