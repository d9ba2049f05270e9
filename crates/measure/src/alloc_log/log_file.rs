//! A log on the disk, opened for analysis.
//!
//! Opening reads the file once and checks every block, so that later passes know how many calls
//! there are and meet no surprise. Of a damaged log all whole blocks are used that do not depend on
//! a lost one: a process whose calls are lost is used up to there, the others go on. Where the head
//! of a block is damaged, the next valid head is looked for. The bytes that are left out are
//! counted.

use super::AllocLogError;
use super::function_names::FunctionNames;
use super::log_block::{
    BLOCK_HEAD_BYTES, BlockHead, BlockKind, CallBlock, LOG_MAGIC, LOG_VERSION, ProcessEnd,
    ProcessStart, RecordingEnd, RssSample, StackBlock, StackFrame, StackModule, read_json,
};
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

/// Bytes before the first block.
const FILE_HEAD_BYTES: u64 = 16;
const HEAD_BYTES: u64 = BLOCK_HEAD_BYTES as u64;
/// Processes one after another whose starts may be lost.
const MAX_LOST_PROCESSES: u64 = 10_000;
/// The program of a process whose start is lost.
const LOST_PROGRAM: &str = "[lost]";
/// Bytes that are read at once where a head is looked for.
const SEARCH_BYTES: u64 = 1 << 20;

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
    /// The time at which its last call was seen, in microseconds since the recording began.
    pub last_call_us: u64,
    /// The places of its blocks of calls in the file.
    pub(super) blocks: Vec<BlockPlace>,
    /// Its start is lost, and so are its calls.
    pub(super) is_lost: bool,
    /// Frames are lost: the numbers of later ones are not known.
    pub(super) lacks_frames: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPlace {
    offset: u64,
    bytes: u32,
}

/// The parts of a log that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDamage {
    /// The offset of the first byte that is not used.
    pub offset: u64,
    /// The number of bytes that are not used.
    pub bytes: u64,
    /// The reason at that offset.
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
    /// The parts that cannot be used.
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
        let found = file.metadata().map_err(AllocLogError::Read)?;
        if !found.is_file() && !found.is_dir() {
            return Err(AllocLogError::NoFile);
        }
        let bytes = found.len();
        let mut log = AllocLog { file, processes: Vec::new(), end: None, damage: None, bytes };
        log.read_blocks()?;
        Ok(log)
    }

    /// Returns the process that had the most live memory of its own at its peak: what a fork
    /// inherits is that of its parent, whose log tells where it is from.
    #[must_use]
    pub fn largest_process(&self) -> Option<usize> {
        let peak = |number: &usize| {
            let process = &self.processes[*number];
            process.peak_bytes.saturating_sub(process.start.inherited_bytes)
        };
        // The first of equals.
        (0..self.processes.len()).rev().max_by_key(peak)
    }

    /// Reads all blocks.
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
        while offset < self.bytes {
            offset = match read_block(&mut input, self.bytes - offset, &mut content) {
                Ok(block) => {
                    let place = offset + HEAD_BYTES;
                    let end = place + u64::from(block.bytes);
                    if let Err(error) = self.take_block(block, &content, place) {
                        self.lose_block(block);
                        self.note_damage(offset, end, error.to_string());
                    }
                    end
                }
                Err(fault @ (BlockFault::Head | BlockFault::Content(_) | BlockFault::Short)) => {
                    // Bytes may be missing in a content, so its length says nothing.
                    let (from, reason) = match fault {
                        BlockFault::Content(_) => {
                            (offset + HEAD_BYTES, "the checksum of a block is wrong")
                        }
                        BlockFault::Head => (offset + 1, "the checksum of a block's head is wrong"),
                        _ => (offset + HEAD_BYTES, "the last block is not whole"),
                    };
                    let next =
                        find_head(&mut input, from, self.bytes).map_err(AllocLogError::Read)?;
                    match fault {
                        BlockFault::Content(block) => self.lose_block(block),
                        // Frames may be lost, of whichever process.
                        _ => self.processes.iter_mut().for_each(|it| it.lacks_frames = true),
                    }
                    self.note_damage(offset, next, reason.into());
                    next
                }
                Err(BlockFault::Read(error)) => return Err(AllocLogError::Read(error)),
            };
        }
        Ok(())
    }

    /// Notes that bytes of the file are left out.
    fn note_damage(&mut self, offset: u64, end: u64, reason: String) {
        let damage = self.damage.get_or_insert(LogDamage { offset, bytes: 0, reason });
        damage.bytes += end - offset;
    }

    /// Notes that a block is lost whose head is known. Lost calls are noticed by the number of the
    /// first call of the next block, and by the number of calls at the end.
    fn lose_block(&mut self, block: BlockHead) {
        if let BlockKind::STACKS = block.kind
            && let Some(process) = self.processes.get_mut(block.process as usize)
        {
            process.lacks_frames = true;
        }
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

/// A reason why a block cannot be used.
#[derive(Debug)]
enum BlockFault {
    /// The file ends before the block does.
    Short,
    /// Its head is damaged, so its length is not known.
    Head,
    /// Its content is damaged.
    Content(BlockHead),
    /// The file cannot be read.
    Read(std::io::Error),
}

/// Reads a block.
fn read_block(
    input: &mut impl Read,
    available: u64,
    content: &mut Vec<u8>,
) -> Result<BlockHead, BlockFault> {
    let mut head = [0; BLOCK_HEAD_BYTES];
    if available < HEAD_BYTES {
        return Err(BlockFault::Short);
    }
    input.read_exact(&mut head).map_err(BlockFault::Read)?;
    let block = BlockHead::from_bytes(&head).ok_or(BlockFault::Head)?;
    if available - HEAD_BYTES < u64::from(block.bytes) {
        return Err(BlockFault::Short);
    }
    content.resize(block.bytes as usize, 0);
    input.read_exact(content).map_err(BlockFault::Read)?;
    match crc32fast::hash(content) == block.checksum {
        true => Ok(block),
        false => Err(BlockFault::Content(block)),
    }
}

/// Finds the next valid head from an offset on, and sets the input there. Returns its offset, or
/// the end of the file.
fn find_head(input: &mut BufReader<File>, from: u64, end: u64) -> std::io::Result<u64> {
    let mut offset = from;
    let mut bytes = Vec::new();
    while end.saturating_sub(offset) >= HEAD_BYTES {
        input.seek(SeekFrom::Start(offset))?;
        bytes.clear();
        input.by_ref().take(SEARCH_BYTES.min(end - offset)).read_to_end(&mut bytes)?;
        let place = bytes.windows(BLOCK_HEAD_BYTES).position(|bytes| {
            // Most bytes are no head by their kind and by the zeros after it.
            let can_be_head = bytes.iter().take(4).all(|byte| *byte < 16);
            can_be_head && bytes.try_into().ok().and_then(BlockHead::from_bytes).is_some()
        });
        if let Some(place) = place {
            let found = offset + place as u64;
            input.seek(SeekFrom::Start(found))?;
            return Ok(found);
        }
        if (bytes.len() as u64) < SEARCH_BYTES {
            break;
        }
        offset += SEARCH_BYTES - (HEAD_BYTES - 1);
    }
    Ok(end)
}

impl AllocLog {
    /// Takes a block into the list of processes; `offset` is the place of its content.
    fn take_block(
        &mut self,
        block: BlockHead,
        content: &[u8],
        offset: u64,
    ) -> Result<(), AllocLogError> {
        // No more processes can be lost than heads fit into the lost bytes.
        let lost_bytes = self.damage.as_ref().map_or(0, |damage| damage.bytes);
        let max_lost = (lost_bytes / HEAD_BYTES).min(MAX_LOST_PROCESSES) as usize;
        let processes = &mut self.processes;
        let unknown = || AllocLogError::Content("a block of an unknown process".into());
        match block.kind {
            BlockKind::PROCESS => {
                let start: ProcessStart = read_json(content)?;
                // A process whose start is lost keeps its number, without calls.
                let number = block.process as usize;
                let lost = number.checked_sub(processes.len()).filter(|lost| *lost <= max_lost);
                if lost.is_none() {
                    return Err(AllocLogError::Content("a process is missing".into()));
                }
                processes.resize_with(number, LoggedProcess::with_lost_start);
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
                if calls.first_call != process.calls || process.is_lost {
                    return Err(AllocLogError::Content("calls are missing".into()));
                }
                process.calls = process.calls.saturating_add(calls.calls);
                process.peak_bytes = process.peak_bytes.max(calls.peak_bytes);
                process.live_bytes = calls.live_bytes;
                process.last_call_us = process.last_call_us.max(calls.end_us);
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
    /// Returns a process whose start is lost.
    fn with_lost_start() -> LoggedProcess {
        let start = ProcessStart { executable: LOST_PROGRAM.into(), ..ProcessStart::default() };
        LoggedProcess { start, is_lost: true, lacks_frames: true, ..LoggedProcess::default() }
    }

    fn add_frames(&mut self, block: StackBlock) -> Result<(), AllocLogError> {
        if self.lacks_frames {
            return Err(AllocLogError::Content("frames are missing".into()));
        }
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
