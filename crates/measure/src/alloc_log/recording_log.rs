//! The log while it is written: after the first failure nothing more is, and the recording goes on.

use super::log_block::{BlockKind, CallBlock, LogWriter};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter};

/// The log of a recording.
pub(super) struct RecordingLog {
    writer: LogWriter<BufWriter<File>>,
    /// The first failure.
    failure: Option<String>,
}

impl RecordingLog {
    /// Begins a log.
    pub(super) fn new(output: File) -> io::Result<RecordingLog> {
        Ok(RecordingLog { writer: LogWriter::new(BufWriter::new(output))?, failure: None })
    }

    /// Writes a block of JSON.
    pub(super) fn write_json(&mut self, kind: BlockKind, process: u32, content: &impl Serialize) {
        self.write(|writer| writer.write_json(kind, process, content));
    }

    /// Writes a block of calls.
    pub(super) fn write_calls(&mut self, process: u32, block: &CallBlock) {
        self.write(|writer| writer.write_calls(process, block));
    }

    fn write(&mut self, write: impl FnOnce(&mut LogWriter<BufWriter<File>>) -> io::Result<()>) {
        if self.failure.is_none()
            && let Err(error) = write(&mut self.writer)
        {
            self.failure = Some(error.to_string());
        }
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Returns the first failure.
    pub(super) fn into_failure(self) -> Option<String> {
        self.failure
    }
}
