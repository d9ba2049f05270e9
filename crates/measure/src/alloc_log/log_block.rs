//! The blocks of a log: the frame of each, and its content.
//!
//! A log begins with [`LOG_MAGIC`] and the version. Each block has a head of 24 bytes with its
//! kind, its process, its lengths and checksums of head and content, so a log that was cut or
//! damaged is read up to the first block that does not fit, and a reader finds its way from head to
//! head without reading the contents.

use super::AllocLogError;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The first 8 bytes of a log.
pub(super) const LOG_MAGIC: [u8; 8] = *b"LARDALOG";
/// The version of the format. A reader refuses a log of another version.
pub(super) const LOG_VERSION: u32 = 1;
/// Bytes of a block's head.
pub(super) const BLOCK_HEAD_BYTES: usize = 24;
/// Bytes before the compressed tokens of calls.
pub(super) const CALL_HEAD_BYTES: usize = 64;
/// The largest content that a reader accepts, so that a damaged head takes no memory.
const MAX_CONTENT_BYTES: u32 = 64 << 20;
/// The level of compression. Higher levels save a seventh, for four times the CPU time.
const ZSTD_LEVEL: i32 = 3;

/// The kind of a block. Readers skip the kinds that they do not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockKind(pub(super) u8);

impl BlockKind {
    /// A process begins: JSON, [`ProcessStart`].
    pub(super) const PROCESS: BlockKind = BlockKind(1);
    /// Calls of a process: a [`CallBlock`].
    pub(super) const CALLS: BlockKind = BlockKind(2);
    /// A process has ended: JSON, [`ProcessEnd`].
    pub(super) const PROCESS_END: BlockKind = BlockKind(3);
    /// Samples of the memory of processes: JSON, an array of [`RssSample`].
    pub(super) const SAMPLES: BlockKind = BlockKind(4);
    /// The recording has ended: JSON, [`RecordingEnd`].
    pub(super) const RECORDING_END: BlockKind = BlockKind(5);
    /// Frames of call stacks of a process: JSON, [`StackBlock`].
    pub(super) const STACKS: BlockKind = BlockKind(6);
    /// The functions of all frames of a process: JSON, [`FunctionNames`](super::FunctionNames).
    pub(super) const FUNCTIONS: BlockKind = BlockKind(7);
}

/// The head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub(super) kind: BlockKind,
    /// The process, by the order of appearance in the log.
    pub(super) process: u32,
    /// Bytes of the content.
    pub(super) bytes: u32,
    /// The CRC-32 of the content.
    pub(super) checksum: u32,
}

impl BlockHead {
    fn to_bytes(self) -> [u8; BLOCK_HEAD_BYTES] {
        let mut head = [0; BLOCK_HEAD_BYTES];
        head[0] = self.kind.0;
        head[4..8].copy_from_slice(&self.process.to_le_bytes());
        head[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        head[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = crc32fast::hash(&head[..20]);
        head[20..].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// Reads a head; `None` if its checksum is wrong.
    pub(super) fn from_bytes(head: &[u8; BLOCK_HEAD_BYTES]) -> Option<BlockHead> {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let is_valid = number(20) == crc32fast::hash(&head[..20]) && number(8) <= MAX_CONTENT_BYTES;
        is_valid.then(|| BlockHead {
            kind: BlockKind(head[0]),
            process: number(4),
            bytes: number(8),
            checksum: number(12),
        })
    }
}

/// Calls of a process, one after another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallBlock {
    /// The number of the first call, from 0 on.
    pub(super) first_call: u64,
    /// The number of calls.
    pub(super) calls: u64,
    /// The time at which the first call was seen, in microseconds since the recording began.
    pub(super) start_us: u64,
    /// The time at which the last call was seen.
    pub(super) end_us: u64,
    /// Bytes in live objects after the last call.
    pub(super) live_bytes: u64,
    /// Live objects after the last call.
    pub(super) live_objects: u64,
    /// The peak of live bytes within the block.
    pub(super) peak_bytes: u64,
    /// The calls, as tokens.
    pub(super) tokens: Vec<u8>,
}

impl CallBlock {
    /// Returns the content of the block.
    fn to_content(&self, compressor: &mut zstd::bulk::Compressor<'_>) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(CALL_HEAD_BYTES + self.tokens.len() / 2);
        for number in [
            self.first_call,
            self.calls,
            self.start_us,
            self.end_us,
            self.live_bytes,
            self.live_objects,
            self.peak_bytes,
            self.tokens.len() as u64,
        ] {
            content.extend_from_slice(&number.to_le_bytes());
        }
        content.extend_from_slice(&compressor.compress(&self.tokens)?);
        Ok(content)
    }

    /// Reads the head of a content, and the tokens if a decompressor is given. `None`: damaged.
    pub(super) fn from_content(
        content: &[u8],
        decompressor: Option<&mut zstd::bulk::Decompressor<'_>>,
    ) -> Option<CallBlock> {
        let (head, compressed) = content.split_at_checked(CALL_HEAD_BYTES)?;
        let mut numbers = [0; CALL_HEAD_BYTES / 8];
        for (number, bytes) in numbers.iter_mut().zip(head.chunks_exact(8)) {
            *number = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [first_call, calls, start_us, end_us, live_bytes, live_objects, peak_bytes, length] =
            numbers;
        let tokens = match decompressor {
            Some(decompressor) => {
                let length = usize::try_from(length).ok()?;
                if length > MAX_CONTENT_BYTES as usize {
                    return None;
                }
                let tokens = decompressor.decompress(compressed, length).ok()?;
                if tokens.len() != length {
                    return None;
                }
                tokens
            }
            None => Vec::new(),
        };
        Some(CallBlock {
            first_call,
            calls,
            start_us,
            end_us,
            live_bytes,
            live_objects,
            peak_bytes,
            tokens,
        })
    }
}

/// The start of a process image: a program that began with exec, or a forked process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStart {
    /// The process id.
    pub pid: u32,
    /// The parent, as a number of a process in this log, if it is recorded.
    pub parent: Option<u32>,
    /// Whether it was forked from the parent without exec.
    pub is_forked: bool,
    /// The path of the program.
    pub executable: String,
    /// The command line.
    pub arguments: Vec<String>,
    /// Microseconds since the recording began.
    pub start_us: u64,
    /// Bytes in objects that were live when it was forked.
    pub inherited_bytes: u64,
    /// The number of these objects.
    pub inherited_objects: u64,
    /// The number of the last allocation before the fork.
    pub first_ordinal: u64,
    /// The mean distance of samples of call stacks, in bytes asked for; 0: none were taken.
    #[serde(default)]
    pub stack_interval: u64,
}

/// Files and frames that appear in the call stacks of a process for the first time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StackBlock {
    /// Files, numbered from 1 on by their order in the log.
    pub(super) modules: Vec<StackModule>,
    /// Frames, numbered from 1 on by their order in the log.
    pub(super) frames: Vec<StackFrame>,
}

/// A program or library that has code in a call stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackModule {
    /// Its path.
    pub path: String,
    /// Its build id in hexadecimal, if it has one.
    pub build_id: String,
    /// Its inode, and the time of its last change in nanoseconds since 1970.
    pub version: (u64, i64),
}

impl StackModule {
    /// Returns the name of the file, without its folder.
    pub(super) fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A frame of a call stack, with all that called it. In JSON an array of the three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u64)", into = "(u32, u32, u64)")]
pub struct StackFrame {
    /// The frame that called it; 0: it is the outermost one.
    pub caller: u32,
    /// The file of the code; 0: no file, then the address is 0 where the stack was cut off, and 1
    /// for generated code.
    pub module: u32,
    /// The address of the call, as the file numbers it.
    pub address: u64,
}

impl From<(u32, u32, u64)> for StackFrame {
    fn from((caller, module, address): (u32, u32, u64)) -> StackFrame {
        StackFrame { caller, module, address }
    }
}

impl From<StackFrame> for (u32, u32, u64) {
    fn from(frame: StackFrame) -> (u32, u32, u64) {
        (frame.caller, frame.module, frame.address)
    }
}

/// The end of a process image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// Microseconds since the recording began.
    pub end_us: u64,
    /// Whether it ended by `exit` or `_exit`, and not by a signal or exec.
    pub is_exit: bool,
    /// Whether it went on without being recorded.
    pub is_abandoned: bool,
    /// The number of calls.
    pub calls: u64,
    /// Calls of `free` and `delete` with a null pointer, which are not among the calls.
    pub null_frees: u64,
    /// How often a thread waited for the collector.
    pub stalls: u32,
    /// Calls that do not fit to the others: releases of memory whose allocation was not seen.
    pub anomalies: u64,
    /// The number of its marks, each of which begins a phase; older logs lack it.
    #[serde(default)]
    pub marks: Option<u64>,
    /// The number of values of its numbers; older logs lack it.
    #[serde(default)]
    pub number_values: Option<u64>,
}

/// The memory of a process at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssSample {
    /// The process, as a number in this log.
    pub process: u32,
    /// Microseconds since the recording began.
    pub time_us: u64,
    /// The number of calls of the process so far.
    pub calls: u64,
    /// Resident bytes.
    pub resident_bytes: u64,
    /// Resident bytes that are no file and not shared.
    pub anonymous_bytes: u64,
}

/// The end of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingEnd {
    /// Microseconds since the recording began.
    pub end_us: u64,
    /// The exit code of the command, or 128 and its signal.
    pub exit_code: u8,
    /// The signal that ended the command.
    #[serde(default)]
    pub signal: Option<i32>,
    /// The process id of the command; older logs lack it.
    #[serde(default)]
    pub pid: Option<u32>,
    /// Processes below the command that were not recorded: process id and program.
    pub unrecorded: Vec<(u32, String)>,
}

/// Writes a log.
pub(super) struct LogWriter<W> {
    output: W,
    compressor: zstd::bulk::Compressor<'static>,
    bytes: u64,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log.
    pub(super) fn new(mut output: W) -> io::Result<LogWriter<W>> {
        output.write_all(&LOG_MAGIC)?;
        output.write_all(&LOG_VERSION.to_le_bytes())?;
        output.write_all(&[0; 4])?;
        output.flush()?;
        let compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
        Ok(LogWriter { output, compressor, bytes: 16 })
    }

    /// Writes calls.
    pub(super) fn write_calls(&mut self, process: u32, block: &CallBlock) -> io::Result<()> {
        let content = block.to_content(&mut self.compressor)?;
        self.write_block(BlockKind::CALLS, process, &content)
    }

    /// Writes a block of JSON.
    pub(super) fn write_json(
        &mut self,
        kind: BlockKind,
        process: u32,
        value: &impl Serialize,
    ) -> io::Result<()> {
        let content = serde_json::to_vec(value)?;
        self.write_block(kind, process, &content)
    }

    fn write_block(&mut self, kind: BlockKind, process: u32, content: &[u8]) -> io::Result<()> {
        let bytes = u32::try_from(content.len()).map_err(io::Error::other)?;
        let checksum = crc32fast::hash(content);
        // One write, so that a killed collector leaves at most one block that is not whole.
        let mut block = BlockHead { kind, process, bytes, checksum }.to_bytes().to_vec();
        block.extend_from_slice(content);
        self.output.write_all(&block)?;
        self.output.flush()?;
        self.bytes += block.len() as u64;
        Ok(())
    }

    /// Returns the bytes written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads the JSON of a block.
pub(super) fn read_json<T: for<'a> Deserialize<'a>>(content: &[u8]) -> Result<T, AllocLogError> {
    serde_json::from_slice(content).map_err(|error| AllocLogError::Content(error.to_string()))
}
