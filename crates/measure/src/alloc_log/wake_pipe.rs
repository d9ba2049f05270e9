//! A pipe that ends the sleep of the collector.
//!
//! Apart from `recording`, because both of its ends have to stay open: a pipe whose writers are
//! gone is readable for ever, and the collector would never sleep.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

/// A pipe with both of its ends.
pub(super) struct WakePipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl WakePipe {
    /// Opens a pipe.
    pub(super) fn new() -> io::Result<WakePipe> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        Ok(WakePipe { reader, writer })
    }

    /// Returns a function that makes the pipe readable.
    pub(super) fn waker(&self) -> io::Result<impl Fn() + Send + 'static> {
        let writer = self.writer.try_clone()?;
        // A full pipe wakes as well.
        Ok(move || drop((&writer).write(&[0])))
    }

    /// Returns the end that is readable after a waker was called.
    pub(super) fn reader(&self) -> &PipeReader {
        &self.reader
    }

    /// Forgets all calls of wakers.
    pub(super) fn clear(&self) {
        while matches!((&self.reader).read(&mut [0; 64]), Ok(64)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_pipe_is_readable_after_a_call_only() {
        let pipe = WakePipe::new().expect("a pipe");
        let is_readable = || {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(pipe.reader(), PollFlags::IN)], Some(&now)) == Ok(1)
        };
        let waker = pipe.waker().expect("a waker");
        assert!(!is_readable());
        waker();
        assert!(is_readable());
        pipe.clear();
        assert!(!is_readable());
        drop(waker);
        assert!(!is_readable(), "a collector without wakers never sleeps");
    }
}
