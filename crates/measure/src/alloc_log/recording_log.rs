//! The log while it is written: after the first failure nothing more is, and the recording goes on.

use super::log_block::{BlockKind, CallBlock, LogWriter};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter};

/// The log of a recording.
pub(super) struct RecordingLog {
    /// `None`: it could not be begun.
    writer: Option<LogWriter<BufWriter<File>>>,
    /// The first failure.
    failure: Option<String>,
    /// Calls that were written, and those that were not because of the failure.
    calls: u64,
    lost_calls: u64,
}

impl RecordingLog {
    /// Begins a log, in place of what the output has, or after it.
    pub(super) fn new(output: File, is_replaced: bool) -> RecordingLog {
        let emptied = if is_replaced { empty(&output) } else { Ok(()) };
        let writer = emptied.and_then(|()| LogWriter::new(BufWriter::new(output)));
        let (writer, failure) = match writer {
            Ok(writer) => (Some(writer), None),
            Err(error) => (None, Some(error.to_string())),
        };
        RecordingLog { writer, failure, calls: 0, lost_calls: 0 }
    }

    /// Writes a block of JSON.
    pub(super) fn write_json(&mut self, kind: BlockKind, process: u32, content: &impl Serialize) {
        self.write(|writer| writer.write_json(kind, process, content));
    }

    /// Writes a block of calls.
    pub(super) fn write_calls(&mut self, process: u32, block: &CallBlock) {
        self.write(|writer| writer.write_calls(process, block));
        let count = if self.failure.is_none() { &mut self.calls } else { &mut self.lost_calls };
        *count = count.saturating_add(block.calls);
    }

    fn write(&mut self, write: impl FnOnce(&mut LogWriter<BufWriter<File>>) -> io::Result<()>) {
        if self.failure.is_none()
            && let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.failure = Some(error.to_string());
        }
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, LogWriter::bytes)
    }

    /// Returns the numbers of calls that were written, and of those that were lost by a failure.
    pub(super) fn calls(&self) -> (u64, u64) {
        (self.calls, self.lost_calls)
    }

    /// Returns the first failure.
    pub(super) fn into_failure(self) -> Option<String> {
        self.failure
    }
}

/// Empties an output, if it is a file: a device or a pipe has nothing to replace.
fn empty(output: &File) -> io::Result<()> {
    if output.metadata()?.is_file() { output.set_len(0) } else { Ok(()) }
}
