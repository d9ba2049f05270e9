//! A process as the possible writer of a message that begins a phase.
//!
//! The processes of a command share its standard error, and a message does not tell who wrote it.
//! But a process that has the pipe of the messages closed did not, nor one that has written nothing
//! since before the message, by the kernel's count.

use std::io::ErrorKind;

/// How old a count has to be to be from before a message: messages take less from their writer
/// to the collector.
const MIN_AGE_US: u64 = 100_000;

/// The bytes that a process has written, to whatever file, by the kernel's count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenBytes {
    /// At least [`MIN_AGE_US`] ago.
    before: u64,
    last: u64,
    last_us: u64,
}

impl WrittenBytes {
    /// Reads the count of a process anew if it is time.
    pub(super) fn update(&mut self, pid: u32, time_us: u64) {
        if time_us.saturating_sub(self.last_us) >= MIN_AGE_US
            && let Some(bytes) = written_bytes(pid)
        {
            (self.before, self.last, self.last_us) = (self.last, bytes, time_us);
        }
    }

    /// Returns whether a process may have written a message that has just arrived, through the pipe
    /// with this inode.
    pub(super) fn may_have_written(&self, pid: u32, pipe: u64) -> bool {
        written_bytes(pid).is_none_or(|bytes| bytes > self.before) && may_have_open(pid, pipe)
    }
}

/// Returns the number of bytes that a process has written; `None` if the system does not tell.
fn written_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:"))?;
    line.trim().parse().ok()
}

/// Returns whether a process has a pipe open, as far as the system tells.
fn may_have_open(pid: u32, pipe: u64) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let expected = format!("pipe:[{pipe}]");
    let mut is_any = false;
    for file in files {
        match file.and_then(|file| std::fs::read_link(file.path())) {
            Ok(target) if target.as_os_str() == expected.as_str() => return true,
            // Closed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => return true,
            Ok(_) => is_any = true,
        }
    }
    // A process that has ended has no files.
    !is_any
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};

    fn inode(file: &impl std::os::fd::AsFd) -> u64 {
        rustix::fs::fstat(file.as_fd()).unwrap().st_ino
    }

    #[test]
    fn a_writer_has_written_and_has_the_pipe() {
        let (reader, writer) = std::io::pipe().unwrap();
        let (other_reader, other_writer) = std::io::pipe().unwrap();
        let script = "read line; echo message >&2; read line";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stderr(OwnedFd::from(writer))
            .spawn()
            .unwrap();
        let (pid, pipe) = (child.id(), inode(&reader));
        let mut written = WrittenBytes::default();
        written.update(pid, 1_000_000);
        written.update(pid, 2_000_000);
        assert!(!written.may_have_written(pid, pipe));
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        (&reader).read_exact(&mut [0; 8]).unwrap();
        // The kernel counts after the bytes can be read.
        while !written.may_have_written(pid, pipe) {
            std::thread::yield_now();
        }
        assert!(!written.may_have_written(pid, inode(&other_reader)));
        drop((child.stdin.take(), other_writer));
        child.wait().unwrap();
        assert!(written.may_have_written(pid, pipe));
    }
}
