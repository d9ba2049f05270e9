//! Programs into which nothing can be loaded: those that need no dynamic loader.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The segment of an ELF file that names its loader.
const SEGMENT_INTERPRETER: u32 = 3;
/// Bytes of the header of a segment in a file of 64 bits.
const SEGMENT_BYTES: u16 = 56;
/// Segments that are looked at.
const MAX_SEGMENTS: u16 = 256;

/// Returns whether a command, found in the folders of `PATH`, is a static program. `false` if it is
/// not known, and for scripts, whose interpreter decides.
#[must_use]
pub fn is_static_program(program: &OsStr, folders: &OsStr) -> bool {
    find_program(program, folders).is_some_and(|path| has_loader(&path) == Some(false))
}

/// Finds a program as the shell does, in the folders of `PATH`. A path is found whether or not
/// there is a file.
#[must_use]
pub fn find_program(program: &OsStr, folders: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_path_buf());
    }
    let folders = folders.as_bytes().split(|byte| *byte == b':').map(OsStr::from_bytes);
    folders.map(|folder| Path::new(folder).join(path)).find(|path| path.is_file())
}

/// Returns whether an ELF file of 64 bits names a loader; `None` if it is none.
pub(super) fn has_loader(path: &Path) -> Option<bool> {
    let file = File::open(path).ok()?;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    // Class 2: 64 bits; data 1: the least significant byte first.
    if head[..6] != *b"\x7FELF\x02\x01" {
        return None;
    }
    let offset = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let size = u16::from_le_bytes([head[54], head[55]]);
    let count = u16::from_le_bytes([head[56], head[57]]);
    if size != SEGMENT_BYTES || count > MAX_SEGMENTS {
        return None;
    }
    for number in 0..u64::from(count) {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, offset.checked_add(number * u64::from(size))?).ok()?;
        if u32::from_le_bytes(kind) == SEGMENT_INTERPRETER {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_a_script_and_a_missing_file() {
        let folders = OsStr::new("/usr/bin:/bin");
        assert!(!is_static_program(OsStr::new("sh"), folders));
        assert!(!is_static_program(OsStr::new("/no/such/program"), folders));
        assert_eq!(has_loader(&std::env::current_exe().unwrap()), Some(true));
    }
}
