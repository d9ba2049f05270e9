//! Features of a program, by its file, for which a recording needs a hint.

use super::program_code::{ProgramElf, open_program};
use super::static_program::find_program;
use object::{Object as _, ObjectSymbol as _, ReadCache};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A function of AddressSanitizer that every program with it calls, in a library or of its own.
const SANITIZER_FUNCTION: &[u8] = b"__asan_init";
/// A function of the recorder.
const RECORDER_FUNCTION: &[u8] = b"larder_mark";
/// Bytes of the first line of a script, as the kernel reads it.
const MAX_SCRIPT_LINE_BYTES: u64 = 256;

/// Returns whether a command, found in the folders of `PATH`, is built with AddressSanitizer, which
/// has an allocator of its own. `false` if it is not known.
#[must_use]
pub fn has_address_sanitizer(program: &OsStr, folders: &OsStr) -> bool {
    find_program(program, folders).is_some_and(|path| names_sanitizer(&path) == Some(true))
}

fn names_sanitizer(path: &Path) -> Option<bool> {
    names_function(path, SANITIZER_FUNCTION, false)
}

/// Returns whether a file is the recorder, of any version.
#[must_use]
pub fn is_recorder(path: &Path) -> bool {
    // A program that sets marks calls it.
    names_function(path, RECORDER_FUNCTION, true) == Some(true)
}

/// Returns whether a program or library has a function, or calls it unless it `must_have` it;
/// `None` if it is neither.
fn names_function(path: &Path, function: &[u8], must_have: bool) -> Option<bool> {
    let cache = ReadCache::new(open_program(path)?);
    let file = ProgramElf::parse(&cache).ok()?;
    let mut symbols = file.dynamic_symbols().filter(|symbol| !must_have || symbol.is_definition());
    Some(symbols.any(|symbol| symbol.name_bytes() == Ok(function)))
}

/// Returns whether a command, found in the folders of `PATH`, is Python, or a script for it.
/// `false` if it is not known.
#[must_use]
pub fn is_python_program(program: &OsStr, folders: &OsStr) -> bool {
    let Some(path) = find_program(program, folders) else { return false };
    is_python_name(path.as_os_str().as_bytes()) || is_python_script(&path) == Some(true)
}

/// Returns whether the first line of a script names Python, by its path or to `env`.
fn is_python_script(path: &Path) -> Option<bool> {
    let mut line = Vec::new();
    open_program(path)?.take(MAX_SCRIPT_LINE_BYTES).read_to_end(&mut line).ok()?;
    let line = line.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    Some(line.split(u8::is_ascii_whitespace).any(is_python_name))
}

fn is_python_name(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_known_by_its_name_and_by_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let is_python = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            is_python_program(path.as_os_str(), OsStr::new(""))
        };
        assert!(is_python("python3.13", "\x7FELF"));
        assert!(is_python("a", "#!/usr/bin/python3 -E\nimport os\n"));
        assert!(is_python("b", "#! /usr/bin/env -S python3 -E\n"));
        assert!(!is_python("c", "#!/bin/sh\nexec /usr/bin/python3\n"));
        assert!(!is_python("d", "# /usr/bin/python3\n"));
        assert!(!is_python("e", ""));
        let folders = folder.path().as_os_str();
        assert!(is_python_program(OsStr::new("python3.13"), folders));
        assert!(!is_python_program(OsStr::new("python3.14"), folders));
    }

    #[test]
    fn a_program_without_a_sanitizer_has_none() {
        let program = std::env::current_exe().unwrap();
        assert_eq!(names_sanitizer(&program), Some(false));
        assert!(!has_address_sanitizer(OsStr::new("no-such-program"), OsStr::new("/bin")));
        let text = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(names_sanitizer(text.path()), None);
        assert!(!is_recorder(text.path()) && !is_recorder(&program));
    }
}
