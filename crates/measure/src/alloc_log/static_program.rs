//! Programs into which nothing can be loaded: those that need no dynamic loader.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The segment of an ELF file that names its loader.
const SEGMENT_INTERPRETER: u32 = 3;
/// The segment of an ELF file with the dynamic section.
const SEGMENT_DYNAMIC: u32 = 2;
/// The entry of that section with the name of a shared object.
const ENTRY_NAME: u64 = 14;
/// Bytes of that section that are looked at.
const MAX_DYNAMIC_BYTES: u64 = 1 << 16;
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

/// Returns whether an ELF file of 64 bits names a loader; `None` if it is none, or a shared object
/// such as the loader itself, which may be run with the path of a program.
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
    let mut is_shared_object = false;
    for number in 0..u64::from(count) {
        let mut head = [0; SEGMENT_BYTES as usize];
        file.read_exact_at(&mut head, offset.checked_add(number * u64::from(size))?).ok()?;
        let word =
            |index: usize| head.get(index..index + 8)?.try_into().ok().map(u64::from_le_bytes);
        // The kind is the lower half of the first word; then follow place, and the length at 32.
        match word(0)? as u32 {
            SEGMENT_INTERPRETER => return Some(true),
            SEGMENT_DYNAMIC => is_shared_object = has_name(&file, word(8)?, word(32)?)?,
            _ => {}
        }
    }
    (!is_shared_object).then_some(false)
}

/// Returns whether a dynamic section has the name of a shared object.
fn has_name(file: &File, offset: u64, bytes: u64) -> Option<bool> {
    let mut section = vec![0; usize::try_from(bytes.min(MAX_DYNAMIC_BYTES)).ok()?];
    file.read_exact_at(&mut section, offset).ok()?;
    let mut entries = section.chunks_exact(16);
    Some(entries.any(|entry| entry.starts_with(&ENTRY_NAME.to_le_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_a_script_and_a_missing_file() {
        let folders = OsStr::new("/usr/bin:/bin");
        assert!(!is_static_program(OsStr::new("sh"), folders));
        assert!(!is_static_program(OsStr::new("/no/such/program"), folders));
        let program = std::env::current_exe().unwrap();
        assert_eq!(has_loader(&program), Some(true));
        // The loader of this program is a shared object, into which libraries can be loaded.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let mut loaders = paths.filter(|path| path.rsplit('/').next().unwrap().starts_with("ld-"));
        assert_eq!(has_loader(Path::new(loaders.next().unwrap())), None);
    }
}
