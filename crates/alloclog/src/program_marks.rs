//! Marks and numbers that the recorded program emits: phases of its work, and quantities beside
//! which its memory is drawn.
//!
//! A program in C calls the exported functions; any other checks the access to a file that need not
//! exist, which every language can: `access("/larder/mark/NAME")`, or
//! `access("/larder/number/NAME/VALUE")`. The check then succeeds.

use crate::real_functions::{functions, resolve_functions};
use crate::ring_layout::{MAX_NAME_BYTES, NAME_BYTES_IN_WORD, RingOperation};
use crate::ring_writer::writer;
use core::ffi::{c_char, c_int};

const MARK_PREFIX: &[u8] = b"/larder/mark/";
const NUMBER_PREFIX: &[u8] = b"/larder/number/";
/// The largest number: a bit of each word of the ring says that the word is written.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// A name in the memory of the program.
#[derive(Clone, Copy)]
struct ProgramName {
    start: *const u8,
    bytes: usize,
}

impl ProgramName {
    /// Reads a text of C up to its end, a byte, or the longest name.
    unsafe fn read(start: *const c_char, end: u8) -> ProgramName {
        let start = start.cast::<u8>();
        let mut bytes = 0;
        // SAFETY: the text ends with a zero byte.
        while bytes < MAX_NAME_BYTES {
            let byte = unsafe { *start.add(bytes) };
            if byte == 0 || byte == end {
                break;
            }
            bytes += 1;
        }
        ProgramName { start, bytes }
    }

    /// Returns the bytes of a word of the name.
    fn word(self, number: u64) -> u64 {
        let first = number as usize * NAME_BYTES_IN_WORD;
        let mut word = 0;
        for index in 0..NAME_BYTES_IN_WORD.min(self.bytes.wrapping_sub(first)) {
            // SAFETY: the index is within the name.
            word |= u64::from(unsafe { *self.start.add(first + index) }) << (8 * index);
        }
        word
    }

    fn words(self) -> u64 {
        self.bytes.div_ceil(NAME_BYTES_IN_WORD) as u64
    }
}

/// Emits a mark: from here on the program is in the phase of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn larder_mark(name: *const c_char) {
    // SAFETY: the caller passes a text of C.
    let name = unsafe { ProgramName::read(name, 0) };
    // A phase without a name could not be told of.
    if name.bytes > 0
        && let Some(writer) = writer()
    {
        let size = name.bytes as u64;
        writer
            .write_operands(RingOperation::Mark, 0, size, name.words(), |number| name.word(number));
    }
}

/// Emits the current value of a quantity.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn larder_number(name: *const c_char, value: u64) {
    // SAFETY: the caller passes a text of C.
    emit_number(unsafe { ProgramName::read(name, 0) }, value);
}

fn emit_number(name: ProgramName, value: u64) {
    if value <= MAX_NUMBER
        && name.bytes > 0
        && let Some(writer) = writer()
    {
        let (size, words) = (name.bytes as u64, 1 + name.words());
        writer.write_operands(RingOperation::Number, 0, size, words, |number| match number {
            0 => value,
            _ => name.word(number - 1),
        });
    }
}

/// Emits what a path says; returns whether it is one of a mark or number.
unsafe fn take_path(path: *const c_char) -> bool {
    // SAFETY: a path ends with a zero byte.
    unsafe {
        if let Some(name) = text_after(path, MARK_PREFIX) {
            if *name == 0 {
                return false;
            }
            larder_mark(name);
            return true;
        }
        let Some(text) = text_after(path, NUMBER_PREFIX) else { return false };
        let name = ProgramName::read(text, b'/');
        let digits = text.add(name.bytes).cast::<u8>();
        if name.bytes == 0 || *digits != b'/' {
            return false;
        }
        let Some(value) = read_number(digits.add(1)) else { return false };
        emit_number(name, value);
        true
    }
}

/// Reads a number of decimal digits up to the end of the text; `None`: it is none, or more than
/// [`MAX_NUMBER`].
unsafe fn read_number(mut digits: *const u8) -> Option<u64> {
    let mut value = None;
    loop {
        // SAFETY: the text ends with a zero byte.
        match unsafe { *digits } {
            digit @ b'0'..=b'9' => {
                let tens = value.unwrap_or(0_u64).checked_mul(10)?;
                value = Some(tens.checked_add(u64::from(digit - b'0'))?);
            }
            0 => return value.filter(|value| *value <= MAX_NUMBER),
            _ => return None,
        }
        // SAFETY: this was not the end.
        digits = unsafe { digits.add(1) };
    }
}

/// Returns the text after a prefix.
unsafe fn text_after(text: *const c_char, prefix: &[u8]) -> Option<*const c_char> {
    for (index, byte) in prefix.iter().enumerate() {
        // SAFETY: no byte after the first that differs is read, and the final zero differs.
        if unsafe { *text.add(index) } as u8 != *byte {
            return None;
        }
    }
    // SAFETY: the whole prefix is there.
    Some(unsafe { text.add(prefix.len()) })
}

/// Makes a real check. If there is no such file, the kernel has read the path, so it can be read
/// here; a program may pass any other pointer, to see whether it leads to memory.
unsafe fn check(path: *const c_char, real: impl Fn() -> c_int) -> c_int {
    // SAFETY: errno belongs to this thread, and the path is a text of C.
    unsafe {
        let errno = libc::__errno_location();
        let errno_before = *errno;
        let result = real();
        let is_missing = result != 0 && matches!(*errno, libc::ENOENT | libc::ENOTDIR);
        if is_missing && take_path(path) {
            *errno = errno_before;
            return 0;
        }
        result
    }
}

/// `access` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    resolve_functions();
    // SAFETY: the duty of the caller.
    unsafe { check(path, || functions().access.map_or(-1, |access| access(path, mode))) }
}

/// `faccessat` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    resolve_functions();
    // SAFETY: the duty of the caller.
    unsafe {
        check(path, || {
            functions().faccessat.map_or(-1, |faccessat| faccessat(folder, path, mode, flags))
        })
    }
}
