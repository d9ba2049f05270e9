//! A log on the disk, opened for analysis.
//!
//! Opening reads the file once and checks every block, so that later passes know how many calls
//! there are and meet no surprise. A log that was cut off, or damaged, is used up to the first
//! block that is not whole; the rest is named.

use super::AllocLogError;
use super::function_names::FunctionNames;
use super::log_block::{
    BLOCK_HEAD_BYTES, BlockHead, BlockKind, CallBlock, LOG_MAGIC, LOG_VERSION, ProcessEnd,
    ProcessStart, RecordingEnd, RssSample, StackBlock, StackFrame, StackModule, read_json,
};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Bytes before the first block.
const FILE_HEAD_BYTES: u64 = 16;

/// A process image in a log.
#[derive(Debug, Clone, Default)]
pub struct LoggedProcess {
    /// Its start.
    pub start: ProcessStart,
    /// Its end; `None` if the log ends before.
    pub end: Option<ProcessEnd>,
    /// The number of calls in the log.
    pub calls: u64,
    /// The peak of bytes in live objects.
    pub peak_bytes: u64,
    /// Bytes in live objects at the end.
    pub live_bytes: u64,
    /// Its memory over time.
    pub samples: Vec<RssSample>,
    /// The files of its call stacks, numbered from 1 on.
    pub modules: Vec<StackModule>,
    /// The frames of its call stacks, numbered from 1 on. A frame comes after its caller.
    pub frames: Vec<StackFrame>,
    /// The functions of the frames, if the recording came to its end.
    pub functions: Option<FunctionNames>,
    /// The places of its blocks of calls in the file.
    pub(super) blocks: Vec<BlockPlace>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPlace {
    offset: u64,
    bytes: u32,
}

/// The part of a log that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDamage {
    /// The offset of the first byte that is not used.
    pub offset: u64,
    /// The number of bytes from there on.
    pub bytes: u64,
    /// The reason.
    pub reason: String,
}

/// A log.
#[derive(Debug)]
pub struct AllocLog {
    file: File,
    /// The processes, in the order in which they began.
    pub processes: Vec<LoggedProcess>,
    /// The end of the recording; `None` if it was interrupted.
    pub end: Option<RecordingEnd>,
    /// The part that cannot be used.
    pub damage: Option<LogDamage>,
    /// Bytes of the file.
    pub bytes: u64,
}

impl AllocLog {
    /// Opens a log.
    ///
    /// # Errors
    /// The file cannot be read, or is not a log of this version.
    pub fn open(path: &Path) -> Result<AllocLog, AllocLogError> {
        let file = File::open(path).map_err(AllocLogError::Read)?;
        let bytes = file.metadata().map_err(AllocLogError::Read)?.len();
        let mut log = AllocLog { file, processes: Vec::new(), end: None, damage: None, bytes };
        log.read_blocks()?;
        Ok(log)
    }

    /// Returns the process with the highest peak of live memory; what a fork inherits is that of
    /// its parent.
    #[must_use]
    pub fn largest_process(&self) -> Option<usize> {
        let peak = |number: &usize| {
            let process = &self.processes[*number];
            process.peak_bytes.saturating_sub(process.start.inherited_bytes)
        };
        // The first of equals.
        (0..self.processes.len()).rev().max_by_key(peak)
    }

    /// Reads all blocks, up to the first that is not whole.
    fn read_blocks(&mut self) -> Result<(), AllocLogError> {
        let file = self.file.try_clone().map_err(AllocLogError::Read)?;
        let mut input = BufReader::with_capacity(1 << 20, file);
        let mut head = [0; FILE_HEAD_BYTES as usize];
        if let Err(error) = input.read_exact(&mut head) {
            let is_short = error.kind() == std::io::ErrorKind::UnexpectedEof;
            return Err(if is_short { AllocLogError::NoLog } else { AllocLogError::Read(error) });
        }
        if head[..8] != LOG_MAGIC {
            return Err(AllocLogError::NoLog);
        }
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if version != LOG_VERSION {
            return Err(AllocLogError::Version(version));
        }
        let mut offset = FILE_HEAD_BYTES;
        let mut content = Vec::new();
        let mut damage = None;
        while offset < self.bytes {
            let reason = match read_block(&mut input, self.bytes - offset, &mut content) {
                Ok(block) => {
                    let place = offset + BLOCK_HEAD_BYTES as u64;
                    match self.take_block(block, &content, place) {
                        Ok(()) => {
                            offset = place + u64::from(block.bytes);
                            continue;
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Err(reason) => reason,
            };
            damage = Some(LogDamage { offset, bytes: self.bytes - offset, reason });
            break;
        }
        self.damage = damage;
        Ok(())
    }

    /// Passes the blocks of calls of a process on, in order.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since it was opened.
    pub(super) fn for_each_block(
        &self,
        process: usize,
        mut receive: impl FnMut(&CallBlock) -> Result<(), AllocLogError>,
    ) -> Result<(), AllocLogError> {
        let mut decompressor = zstd::bulk::Decompressor::new().map_err(AllocLogError::Read)?;
        let mut input = &self.file;
        let mut content = Vec::new();
        for place in &self.processes[process].blocks {
            content.resize(place.bytes as usize, 0);
            input.seek(SeekFrom::Start(place.offset)).map_err(AllocLogError::Read)?;
            input.read_exact(&mut content).map_err(AllocLogError::Read)?;
            let block = CallBlock::from_content(&content, Some(&mut decompressor))
                .ok_or_else(|| AllocLogError::Content("a block cannot be unpacked".into()))?;
            receive(&block)?;
        }
        Ok(())
    }
}

/// Reads a block; the failure is a reason for people.
fn read_block(
    input: &mut impl std::io::Read,
    available: u64,
    content: &mut Vec<u8>,
) -> Result<BlockHead, String> {
    let mut head = [0; BLOCK_HEAD_BYTES];
    if available < BLOCK_HEAD_BYTES as u64 {
        return Err("the last block is not whole".into());
    }
    input.read_exact(&mut head).map_err(|error| error.to_string())?;
    let block = BlockHead::from_bytes(&head).ok_or("the checksum of a block's head is wrong")?;
    if available - (BLOCK_HEAD_BYTES as u64) < u64::from(block.bytes) {
        return Err("the last block is not whole".into());
    }
    content.resize(block.bytes as usize, 0);
    input.read_exact(content).map_err(|error| error.to_string())?;
    if crc32fast::hash(content) != block.checksum {
        return Err("the checksum of a block is wrong".into());
    }
    Ok(block)
}

impl AllocLog {
    /// Takes a block into the list of processes; `offset` is the place of its content.
    fn take_block(
        &mut self,
        block: BlockHead,
        content: &[u8],
        offset: u64,
    ) -> Result<(), AllocLogError> {
        let processes = &mut self.processes;
        let unknown = || AllocLogError::Content("a block of an unknown process".into());
        match block.kind {
            BlockKind::PROCESS => {
                if block.process as usize != processes.len() {
                    return Err(AllocLogError::Content("a process is missing".into()));
                }
                let start: ProcessStart = read_json(content)?;
                let live_bytes = start.inherited_bytes;
                processes.push(LoggedProcess {
                    start,
                    live_bytes,
                    peak_bytes: live_bytes,
                    ..LoggedProcess::default()
                });
            }
            BlockKind::CALLS => {
                let process = processes.get_mut(block.process as usize).ok_or_else(unknown)?;
                let calls = CallBlock::from_content(content, None)
                    .ok_or_else(|| AllocLogError::Content("a block of calls is short".into()))?;
                if calls.first_call != process.calls {
                    return Err(AllocLogError::Content("calls are missing".into()));
                }
                process.calls += calls.calls;
                process.peak_bytes = process.peak_bytes.max(calls.peak_bytes);
                process.live_bytes = calls.live_bytes;
                process.blocks.push(BlockPlace { offset, bytes: block.bytes });
            }
            BlockKind::PROCESS_END => {
                let process = processes.get_mut(block.process as usize).ok_or_else(unknown)?;
                process.end = Some(read_json(content)?);
            }
            BlockKind::SAMPLES => {
                let samples: Vec<RssSample> = read_json(content)?;
                for sample in samples {
                    let process = processes.get_mut(sample.process as usize).ok_or_else(unknown)?;
                    process.samples.push(sample);
                }
            }
            BlockKind::STACKS => {
                let process = processes.get_mut(block.process as usize).ok_or_else(unknown)?;
                process.add_frames(read_json(content)?)?;
            }
            BlockKind::FUNCTIONS => {
                let process = processes.get_mut(block.process as usize).ok_or_else(unknown)?;
                let functions: FunctionNames = read_json(content)?;
                if !functions.fits(process.modules.len(), process.frames.len()) {
                    return Err(AllocLogError::Content("functions of unknown frames".into()));
                }
                process.functions = Some(functions);
            }
            BlockKind::RECORDING_END => self.end = Some(read_json(content)?),
            _ => {}
        }
        Ok(())
    }
}

impl LoggedProcess {
    fn add_frames(&mut self, block: StackBlock) -> Result<(), AllocLogError> {
        self.modules.extend(block.modules);
        if self.functions.is_some() {
            return Err(AllocLogError::Content("frames after their functions".into()));
        }
        for frame in block.frames {
            let is_known = frame.caller as usize <= self.frames.len()
                && frame.module as usize <= self.modules.len();
            if !is_known {
                return Err(AllocLogError::Content("a frame of an unknown caller".into()));
            }
            self.frames.push(frame);
        }
        Ok(())
    }
}
