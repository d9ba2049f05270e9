//! The call stacks of a recorded process, from the words of its stack to numbers of frames.
//!
//! The process only copies its stack; it is unwound here, by the tables of the program's files,
//! while these are known to be mapped. Stacks that begin alike share their frames: a frame is
//! numbered by its caller and its address, so a stack is one number.

use super::function_names::{FunctionNames, SymbolCache};
use super::log_block::{StackBlock, StackFrame, StackModule};
use super::process_maps::{FileKey, MappingLine, ProcessMaps, parse_code_mapping};
use super::program_code::ProgramCode;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::hash::BuildHasher as _;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most frames of a stack; a deeper one is cut at its outer end.
const MAX_STACK_FRAMES: usize = 512;
/// The most different frames of a process; further stacks end at the last known one.
const MAX_FRAMES: usize = 1 << 20;
/// Addresses outside of the known mappings for which these are read again.
const MAX_UNKNOWN_PAGES: usize = 1000;
/// Mappings are read again after this time: where a library was, another one may be.
const MAPPINGS_INTERVAL: Duration = Duration::from_secs(1);
/// Files of programs that are kept open.
const MAX_OPEN_FILES: usize = 256;
/// The number of the module that stands for no file.
const NO_MODULE: u32 = 0;

/// The code of files that several processes use, by path, device and inode: a program that is built
/// anew has the path of the former one.
pub(super) type SharedCode = Rc<RefCell<FxHashMap<FileKey, Rc<ProgramCode>>>>;

/// A mapping of the code of a file.
struct MappedCode {
    addresses: Range<u64>,
    /// The difference between addresses in memory and in the file.
    bias: u64,
    module: u32,
}

/// Unwinds the stacks of one process.
pub(super) struct StackUnwinder {
    pid: u32,
    /// The inode of the ring, by which the program image is known.
    ring: u64,
    /// The recorder, whose frames are left out.
    recorder: PathBuf,
    code: SharedCode,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    cache: CacheX86_64,
    mappings: Vec<MappedCode>,
    /// A hash of the mappings as they were read, and the time of that.
    mappings_hash: u64,
    mappings_read: Instant,
    modules: Vec<StackModule>,
    /// The code of each module.
    module_code: Vec<Rc<ProgramCode>>,
    /// The numbers of the modules, from 1 on.
    module_numbers: FxHashMap<FileKey, u32>,
    recorder_module: Option<u32>,
    unknown_pages: FxHashSet<u64>,
    frames: FxHashMap<StackFrame, u32>,
    /// Modules and frames that are not yet in the log.
    unwritten: StackBlock,
    /// The addresses of a stack, the innermost first.
    addresses: Vec<u64>,
}

impl StackUnwinder {
    /// Creates the unwinder of a process with this inode of its ring, and reads its mappings.
    pub(super) fn new(pid: u32, ring: u64, recorder: PathBuf, code: SharedCode) -> StackUnwinder {
        let mut unwinder = StackUnwinder {
            pid,
            ring,
            recorder,
            code,
            unwinder: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            mappings: Vec::new(),
            mappings_hash: 0,
            mappings_read: Instant::now(),
            modules: Vec::new(),
            module_code: Vec::new(),
            module_numbers: FxHashMap::default(),
            recorder_module: None,
            unknown_pages: FxHashSet::default(),
            frames: FxHashMap::default(),
            unwritten: StackBlock::default(),
            addresses: Vec::new(),
        };
        unwinder.read_mappings();
        unwinder
    }

    /// Returns what is not yet in the log, if there is anything.
    pub(super) fn take_unwritten(&mut self) -> Option<StackBlock> {
        let is_empty = self.unwritten.modules.is_empty() && self.unwritten.frames.is_empty();
        (!is_empty).then(|| std::mem::take(&mut self.unwritten))
    }

    /// Returns the functions of all frames.
    pub(super) fn into_functions(self, symbols: &mut SymbolCache) -> FunctionNames {
        let mut frames: Vec<(u32, StackFrame)> =
            self.frames.into_iter().map(|(frame, number)| (number, frame)).collect();
        frames.sort_unstable_by_key(|(number, _)| *number);
        let frames: Vec<StackFrame> = frames.into_iter().map(|(_, frame)| frame).collect();
        FunctionNames::read(&self.modules, &self.module_code, &frames, symbols)
    }

    /// Returns the number of the innermost frame of a stack: the instruction pointer, the stack
    /// pointer, the frame pointer, and the words of the stack. 0: nothing could be unwound.
    pub(super) fn unwind(&mut self, operands: &[u64]) -> u32 {
        let [instruction, stack, frame, words @ ..] = operands else { return 0 };
        if self.mappings_read.elapsed() >= MAPPINGS_INTERVAL {
            self.read_mappings();
        }
        let mut is_cut = self.read_frames(*instruction, *stack, *frame, words);
        if self.has_new_unknown_page() {
            self.read_mappings();
            is_cut = self.read_frames(*instruction, *stack, *frame, words);
        }
        if self.mappings.is_empty() {
            return 0;
        }
        let is_own = |address: &u64| {
            self.mapping(*address).is_some_and(|code| Some(code.module) == self.recorder_module)
        };
        let own = self.addresses.iter().take_while(|address| is_own(address)).count();
        let mut number = 0;
        if is_cut {
            number = self.frame_number(StackFrame { caller: 0, module: NO_MODULE, address: 0 });
        }
        for index in (own..self.addresses.len()).rev() {
            let address = self.addresses[index];
            let frame = match self.mapping(address) {
                Some(code) => StackFrame {
                    caller: number,
                    module: code.module,
                    address: address.wrapping_sub(code.bias),
                },
                // Generated code has no name; all of it is one frame.
                None => StackFrame { caller: number, module: NO_MODULE, address: 1 },
            };
            number = self.frame_number(frame);
        }
        number
    }

    /// Notes that the library whose addresses differ by this from those in its file may be gone,
    /// and that another one may come to its place.
    pub(super) fn forget_library(&mut self, bias: u64) {
        for code in self.mappings.iter().filter(|code| code.bias == bias) {
            self.unwinder.remove_module(code.addresses.start);
        }
        self.mappings.retain(|code| code.bias != bias);
        self.cache = CacheX86_64::new();
        // The mappings are read again when a stack has an address there, even if they are the same.
        self.mappings_hash = 0;
        self.unknown_pages.clear();
    }

    /// Unwinds a stack into `addresses`; returns whether it goes on beyond the words.
    fn read_frames(&mut self, instruction: u64, stack: u64, frame: u64, words: &[u64]) -> bool {
        let mut is_cut = false;
        let mut read_word = |address: u64| {
            let offset = address.checked_sub(stack).filter(|offset| offset % 8 == 0).ok_or(())?;
            let word = words.get(usize::try_from(offset / 8).map_err(|_| ())?).copied();
            is_cut |= word.is_none();
            word.ok_or(())
        };
        let registers = UnwindRegsX86_64::new(instruction, stack, frame);
        let mut frames =
            self.unwinder.iter_frames(instruction, registers, &mut self.cache, &mut read_word);
        self.addresses.clear();
        while self.addresses.len() < MAX_STACK_FRAMES {
            match frames.next() {
                Ok(Some(frame)) => self.addresses.push(frame.address_for_lookup()),
                // The first function of a program has no caller, whether its tables say so or not.
                Ok(None) | Err(_) => return is_cut,
            }
        }
        true
    }

    /// Returns whether a frame is outside of the known mappings, in a page that was not met before:
    /// the program may have loaded a library.
    fn has_new_unknown_page(&mut self) -> bool {
        let mut is_any = false;
        for address in &self.addresses {
            if self.unknown_pages.len() < MAX_UNKNOWN_PAGES && self.mapping(*address).is_none() {
                is_any |= self.unknown_pages.insert(address >> 12);
            }
        }
        is_any
    }

    fn mapping(&self, address: u64) -> Option<&MappedCode> {
        let index = self.mappings.partition_point(|code| code.addresses.end <= address);
        self.mappings.get(index).filter(|code| code.addresses.start <= address)
    }

    fn frame_number(&mut self, frame: StackFrame) -> u32 {
        if let Some(number) = self.frames.get(&frame) {
            return *number;
        }
        if self.frames.len() >= MAX_FRAMES {
            return frame.caller;
        }
        let number = self.frames.len() as u32 + 1;
        self.frames.insert(frame, number);
        self.unwritten.frames.push(frame);
        number
    }

    /// Reads the mappings of the process. Those of one that has ended, or has begun another
    /// program, stay as they were.
    fn read_mappings(&mut self) {
        self.mappings_read = Instant::now();
        let Some(mut maps) = ProcessMaps::read(self.pid, self.ring) else { return };
        let text = std::mem::take(&mut maps.text);
        let lines: Vec<_> = text.lines().filter_map(parse_code_mapping).collect();
        let hash = FxBuildHasher.hash_one(&lines);
        if lines.is_empty() || hash == self.mappings_hash {
            return;
        }
        self.mappings_hash = hash;
        self.unwinder = UnwinderX86_64::new();
        self.mappings.clear();
        for line in lines {
            self.add_mapping(&line, &mut maps);
        }
        self.mappings.sort_by_key(|code| code.addresses.start);
    }

    /// Returns the code of a mapped file, which is read when it is met for the first time.
    fn file_code(&self, line: &MappingLine<'_>, maps: &mut ProcessMaps) -> Rc<ProgramCode> {
        let mut known = self.code.borrow_mut();
        // A file may have been written anew where it was.
        let is_same = |code: &&Rc<ProgramCode>| line.is_deleted || code.is_unchanged(line.path);
        let key = line.file_key();
        if let Some(code) = known.get(&key).filter(is_same) {
            return Rc::clone(code);
        }
        let running = PathBuf::from(format!("/proc/{}/exe", self.pid));
        // Of deleted files, only the running program can still be read.
        let mut code = match std::fs::read_link(&running) {
            Ok(target) if line.is_deleted && target.as_os_str() == line.text => {
                ProgramCode::read(&running)
            }
            _ if line.is_deleted => ProgramCode::default(),
            _ => ProgramCode::read(line.path),
        };
        // Another file may have come to this place. Some file systems show other inodes in mappings
        // than in files: there the mapping decides, which says when its file was deleted.
        if !line.has_inode(code.version.0) && !maps.still_has(line) {
            code = ProgramCode::default();
        }
        code.file = code.file.filter(|_| known.len() < MAX_OPEN_FILES);
        let code = Rc::new(code);
        known.insert(key, Rc::clone(&code));
        code
    }

    fn add_mapping(&mut self, line: &MappingLine<'_>, maps: &mut ProcessMaps) {
        let code = self.file_code(line, maps);
        let addresses = line.addresses.clone();
        // The addresses of a file that cannot be read are offsets.
        let unread_bias = addresses.start.wrapping_sub(line.offset);
        let bias = code.load_bias(addresses.start, line.offset).unwrap_or(unread_bias);
        let module = self.module_number(line, &code);
        let mut sections = ExplicitModuleSectionInfo {
            text_svma: code.text.clone(),
            got_svma: code.got.clone(),
            ..ExplicitModuleSectionInfo::default()
        };
        if let Some(section) = &code.eh_frame {
            sections.eh_frame_svma = Some(section.addresses.clone());
            sections.eh_frame = Some(Arc::clone(&section.bytes));
        }
        if let Some(section) = &code.eh_frame_hdr {
            sections.eh_frame_hdr_svma = Some(section.addresses.clone());
            sections.eh_frame_hdr = Some(Arc::clone(&section.bytes));
        }
        self.unwinder.add_module(Module::new(String::new(), addresses.clone(), bias, sections));
        self.mappings.push(MappedCode { addresses, bias, module });
    }

    fn module_number(&mut self, line: &MappingLine<'_>, code: &Rc<ProgramCode>) -> u32 {
        let key = line.file_key();
        if let Some(number) = self.module_numbers.get(&key) {
            return *number;
        }
        let number = self.modules.len() as u32 + 1;
        self.module_numbers.insert(key, number);
        if line.path == self.recorder {
            self.recorder_module = Some(number);
        }
        let module = StackModule {
            path: line.path.to_string_lossy().into_owned(),
            build_id: code.build_id.clone(),
            version: code.version,
        };
        self.modules.push(module.clone());
        self.module_code.push(Rc::clone(code));
        self.unwritten.modules.push(module);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring_layout::{HEADER_BYTES, RING_MAGIC, RING_VERSION, offset};
    use super::super::ring_reader::RingReader;
    use super::*;
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    /// Maps a ring into this process, as the recorder does.
    fn own_ring() -> RingReader {
        let file = memfd_create("ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let mut header = vec![0; HEADER_BYTES + (8 << 10)];
        header[offset::MAGIC..][..8].copy_from_slice(&RING_MAGIC.to_le_bytes());
        header[offset::VERSION..][..4].copy_from_slice(&RING_VERSION.to_le_bytes());
        rustix::io::write(&file, &header).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        RingReader::open(&file).unwrap()
    }

    fn own_unwinder(ring: &RingReader) -> StackUnwinder {
        let code = SharedCode::default();
        StackUnwinder::new(std::process::id(), ring.inode(), PathBuf::from("/none"), code)
    }

    /// When a process has begun another program, its stacks are not looked up in the files of that.
    #[test]
    fn mappings_of_another_image_are_not_read() {
        let (ring, former) = (own_ring(), own_ring());
        let mut unwinder = own_unwinder(&ring);
        let address = mappings_of_another_image_are_not_read as fn() as usize as u64;
        assert!(unwinder.mapping(address).is_some());
        // As after an exec, when the former ring is not yet read to its end.
        unwinder.ring = former.inode();
        drop(former);
        unwinder.read_mappings();
        assert!(unwinder.mapping(address).is_some(), "known mappings are lost");
        unwinder.mappings_hash = 0;
        unwinder.mappings.clear();
        unwinder.read_mappings();
        assert!(unwinder.mappings.is_empty());
    }

    #[test]
    fn stacks_that_begin_alike_share_their_frames() {
        let mut unwinder = own_unwinder(&own_ring());
        let frame = |caller, address| StackFrame { caller, module: 1, address };
        let outer = unwinder.frame_number(frame(0, 16));
        let first = unwinder.frame_number(frame(outer, 32));
        assert_eq!(unwinder.frame_number(frame(0, 16)), outer);
        assert_eq!(unwinder.frame_number(frame(outer, 32)), first);
        assert_ne!(unwinder.frame_number(frame(outer, 48)), first);
        assert_eq!(unwinder.take_unwritten().map(|block| block.frames.len()), Some(3));
        assert_eq!(unwinder.take_unwritten(), None);
    }

    proptest! {
        // The words are those of another program, and may be anything.
        #[test]
        fn any_words_are_unwound(
            place in any::<prop::sample::Index>(),
            offset in 0_u64..1 << 16,
            stack in prop_oneof![any::<u64>(), 0..(1_u64 << 47)],
            frame in any::<u64>(),
            words in prop::collection::vec(any::<(prop::sample::Index, u64, u8)>(), 0..200),
        ) {
            let ring = own_ring();
            let mut unwinder = own_unwinder(&ring);
            let starts: Vec<u64> =
                unwinder.mappings.iter().map(|code| code.addresses.start).collect();
            let mut operands = vec![starts[place.index(starts.len())].wrapping_add(offset), stack, frame];
            operands.extend(words.iter().map(|(place, number, kind)| match kind % 3 {
                0 => *number,
                1 => stack.wrapping_add(number % 2000),
                _ => starts[place.index(starts.len())] + number % (1 << 20),
            }));
            let _ = unwinder.unwind(&operands);
        }
    }
}
