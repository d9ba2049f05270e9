//! The replay of recorded calls on another allocator.
//!
//! The library is loaded into a fresh process before the allocator that is measured, and takes the
//! process over before its program begins: it makes the calls that arrive on standard input, and
//! writes the resident memory at the samples to standard output. Its own memory is two mappings
//! that are resident from the start, so every later page is the allocator's.

use crate::real_functions::{functions, resolve_functions};
use crate::replay_step::{
    EXIT_OTHER_ALLOCATOR, REPLAY_VARIABLE, ReplayCode, STEP_BYTES, decode_step,
};
use crate::syscall::{syscall3, syscall6};
use core::ffi::{c_char, c_void};
use core::ptr::null_mut;

const PAGE_BYTES: usize = 4096;
/// Steps that are read at once.
const BUFFER_STEPS: usize = 4096;
/// The exit code if the input is not as it should be, or memory is missing.
const EXIT_FAILURE: usize = 1;

/// Replays, and ends the process, if the environment asks for it.
pub(crate) fn run_if_asked() {
    // SAFETY: the name ends with a zero byte; the environment is not changed at the start.
    let library = unsafe { libc::getenv(REPLAY_VARIABLE.as_ptr().cast::<c_char>()) };
    if !library.is_null() && resolve_functions() {
        // SAFETY: no other code of this process runs any more; the name ends with a zero byte.
        unsafe {
            let code = match is_allocator_of(library) {
                false => usize::from(EXIT_OTHER_ALLOCATOR),
                true if replay().is_some() => 0,
                true => EXIT_FAILURE,
            };
            syscall3(libc::SYS_exit_group, code, 0, 0);
        }
    }
}

/// Returns whether the real `malloc` is in the file of this name; an empty name stands for any. The
/// loader only prints a message about a library that it cannot load, and goes on with libc's.
unsafe fn is_allocator_of(library: *const c_char) -> bool {
    // SAFETY: both names end with a zero byte, and the structures are as long as those that libc
    // fills.
    unsafe {
        if *library == 0 {
            return true;
        }
        let Some(malloc) = functions().malloc else { return false };
        let mut found: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(malloc as *const c_void, &raw mut found) == 0 || found.dli_fname.is_null() {
            return false;
        }
        let mut files: [libc::stat; 2] = core::mem::zeroed();
        let [expected, actual] = &mut files;
        libc::stat(library, expected) == 0
            && libc::stat(found.dli_fname, actual) == 0
            && (expected.st_dev, expected.st_ino) == (actual.st_dev, actual.st_ino)
    }
}

/// An array of words in a mapping of its own, resident from the start.
#[derive(Clone, Copy)]
struct WordArray {
    start: *mut u64,
    words: usize,
}

impl WordArray {
    unsafe fn map(words: usize) -> Option<WordArray> {
        let bytes = words.checked_mul(8)?.checked_next_multiple_of(PAGE_BYTES)?.max(PAGE_BYTES);
        // SAFETY: a new mapping.
        let start = unsafe {
            let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
            let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE) as usize;
            syscall6(libc::SYS_mmap, [0, bytes, access, kind, usize::MAX, 0])
        };
        if (-4095..0).contains(&start) {
            return None;
        }
        Some(WordArray { start: start as *mut u64, words })
    }

    unsafe fn get(self, index: usize) -> Option<u64> {
        // SAFETY: the index is within the mapping.
        (index < self.words).then(|| unsafe { *self.start.add(index) })
    }

    unsafe fn set(self, index: usize, value: u64) -> Option<()> {
        // SAFETY: the index is within the mapping.
        (index < self.words).then(|| unsafe { *self.start.add(index) = value })
    }
}

/// Makes the calls until the end of the input; writes the samples.
unsafe fn replay() -> Option<()> {
    // SAFETY: all memory that is touched is of the mappings, or was given by the allocator.
    unsafe {
        let buffer = WordArray::map(BUFFER_STEPS * STEP_BYTES / 8)?;
        let mut first = [0_u64; STEP_BYTES / 8];
        read_all(first.as_mut_ptr(), STEP_BYTES)?;
        let [slots, max_samples] = first;
        let objects = WordArray::map(slots as usize)?;
        let samples = WordArray::map(max_samples as usize)?;
        let mut taken = 0;
        let base = resident_pages()?;
        loop {
            let bytes = read_some(buffer.start, BUFFER_STEPS * STEP_BYTES)?;
            if bytes == 0 {
                break;
            }
            for step in 0..bytes / STEP_BYTES {
                let words = [buffer.get(step * 2)?, buffer.get(step * 2 + 1)?];
                let (code, slot, alignment_log2, size) = decode_step(words);
                let size = size as usize;
                let slot = slot as usize;
                match code {
                    ReplayCode::SAMPLE => {
                        samples.set(taken, resident_pages()?.saturating_sub(base))?;
                        taken += 1;
                    }
                    ReplayCode::FREE => functions().free?(objects.get(slot)? as *mut c_void),
                    _ => {
                        let old = objects.get(slot)?;
                        let address = allocate(code, old, alignment_log2, size)?;
                        objects.set(slot, address as u64)?;
                    }
                }
            }
        }
        write_all(samples.start.cast(), taken * 8)
    }
}

/// Makes a call that takes memory, and touches it as a program would.
unsafe fn allocate(
    code: ReplayCode,
    old: u64,
    alignment_log2: u32,
    size: usize,
) -> Option<*mut c_void> {
    let functions = functions();
    // SAFETY: the old address was given by this allocator.
    let address = unsafe {
        match code {
            ReplayCode::MALLOC => functions.malloc?(size),
            ReplayCode::CALLOC => functions.calloc?(1, size),
            ReplayCode::REALLOC => functions.realloc?(old as *mut c_void, size),
            ReplayCode::ALIGNED => functions.memalign?(1_usize << (alignment_log2 & 31), size),
            _ => null_mut(),
        }
    };
    if address.is_null() {
        return None;
    }
    if code != ReplayCode::CALLOC {
        let mut place = 0;
        while place < size {
            // SAFETY: within the memory that was given.
            unsafe { address.cast::<u8>().add(place).write_volatile(1) };
            place += PAGE_BYTES;
        }
    }
    Some(address)
}

/// Returns the resident pages of this process.
unsafe fn resident_pages() -> Option<u64> {
    let mut text = [0_u8; 128];
    // SAFETY: the path ends with a zero byte, the buffer is as long as the kernel is told.
    let count = unsafe {
        let path = c"/proc/self/statm".as_ptr() as usize;
        let flags = libc::O_RDONLY as usize;
        let file = syscall6(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]);
        if file < 0 {
            return None;
        }
        let count = syscall3(libc::SYS_read, file as usize, text.as_mut_ptr() as usize, text.len());
        crate::syscall::close(file as usize);
        count
    };
    let mut digits = text
        .iter()
        .take(count.max(0) as usize)
        .skip_while(|byte| **byte != b' ')
        .skip(1)
        .take_while(|byte| byte.is_ascii_digit());
    digits.try_fold(0_u64, |pages, digit| Some(pages * 10 + u64::from(digit - b'0')))
}

/// Reads whole steps; 0 at the end of the input.
unsafe fn read_some(buffer: *mut u64, room: usize) -> Option<usize> {
    let mut done = 0;
    while done == 0 || done % STEP_BYTES != 0 {
        // SAFETY: the rest of the buffer.
        let count = unsafe {
            let place = buffer.cast::<u8>().add(done) as usize;
            syscall3(libc::SYS_read, 0, place, room - done)
        };
        match count {
            0 if done == 0 => return Some(0),
            count if count <= 0 => return None,
            count => done += count as usize,
        }
    }
    Some(done)
}

unsafe fn read_all(buffer: *mut u64, bytes: usize) -> Option<()> {
    // SAFETY: the buffer has room for so many bytes.
    (unsafe { read_some(buffer, bytes) } == Some(bytes)).then_some(())
}

unsafe fn write_all(start: *const u8, bytes: usize) -> Option<()> {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the rest of the samples.
        let count = unsafe { syscall3(libc::SYS_write, 1, start.add(done) as usize, bytes - done) };
        if count <= 0 {
            return None;
        }
        done += count as usize;
    }
    Some(())
}
