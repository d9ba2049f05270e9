//! Starting git, through which repositories are read.
//!
//! Separate from `program_output`, whose programs end before their output is used: the log of a
//! repository is read while git writes it.

use larder_sync::git_repository::{
    GIT_VARIABLES, GitCommand, GitOutput, MAX_GIT_ERROR_BYTES, MAX_GIT_MEMORY_BYTES,
    REMOVED_GIT_VARIABLES, limit_git_memory,
};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// A process of git. It is killed when it is dropped.
struct GitChild {
    child: Child,
    output: Option<ChildStdout>,
    errors: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

/// Starts git with a command.
pub(crate) fn start_git(command: &GitCommand) -> io::Result<Box<dyn GitOutput>> {
    let mut git = Command::new("git");
    for name in REMOVED_GIT_VARIABLES {
        git.env_remove(name);
    }
    git.envs(GIT_VARIABLES.iter().copied()).env("GIT_CEILING_DIRECTORIES", &command.ceiling);
    let input = if command.input.is_empty() { Stdio::null() } else { Stdio::piped() };
    git.args(&command.arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = git.spawn()?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let errors = errors.map(|mut pipe| {
        std::thread::spawn(move || -> io::Result<Vec<u8>> {
            let mut start = Vec::new();
            pipe.by_ref().take(MAX_GIT_ERROR_BYTES).read_to_end(&mut start)?;
            io::copy(&mut pipe, &mut io::sink())?;
            Ok(start)
        })
    });
    let mut git = GitChild { child, output, errors };
    limit_git_memory(&git.child, MAX_GIT_MEMORY_BYTES)?;
    if let Some(mut pipe) = git.child.stdin.take() {
        // git reads all of it before it writes. One that ended early says why at its end.
        match pipe.write_all(&command.input) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    git.errors.is_some().then_some(()).ok_or_else(|| io::Error::other("no pipe"))?;
    Ok(Box::new(git))
}

impl Read for GitChild {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.as_mut().map_or(Ok(0), |output| output.read(buffer))
    }
}

impl GitOutput for GitChild {
    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.output.as_ref().map(|output| output.as_fd())
    }

    fn finish(mut self: Box<Self>) -> Result<String, String> {
        // A process that still writes ends then.
        self.output = None;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        let errors = self.errors.take().map(JoinHandle::join);
        let errors = errors.and_then(Result::ok).and_then(Result::ok).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors).trim().to_string();
        if status.success() {
            return Ok(errors);
        }
        Err(if errors.is_empty() { status.to_string() } else { errors })
    }
}

impl Drop for GitChild {
    fn drop(&mut self) {
        // It has ended already, unless its output was not read to the end.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
