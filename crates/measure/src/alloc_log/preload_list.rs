//! The libraries that a program loads before its own. In `LD_PRELOAD` blanks and colons stand
//! between them, so a path that has one is replaced by a link in a temporary folder.

use super::AllocLogError;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Returns the value of `LD_PRELOAD` for these libraries; links are made in the folder.
pub(super) fn preload_list(libraries: &[&Path], folder: &Path) -> Result<OsString, AllocLogError> {
    let mut list = OsString::new();
    for (number, library) in libraries.iter().enumerate() {
        if number > 0 {
            list.push(":");
        }
        list.push(loadable_path(library, number, folder)?);
    }
    Ok(list)
}

fn loadable_path(library: &Path, number: usize, folder: &Path) -> Result<PathBuf, AllocLogError> {
    if !has_separator(library) {
        return Ok(library.to_path_buf());
    }
    let failure = |error| AllocLogError::Preload(library.display().to_string(), error);
    if has_separator(folder) {
        let message = "its path and that of the temporary folder have a blank or a colon";
        return Err(failure(std::io::Error::other(message)));
    }
    let target = library.canonicalize().map_err(failure)?;
    let link = folder.join(format!("library{number}.so"));
    symlink(target, &link).map_err(failure)?;
    Ok(link)
}

fn has_separator(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_separator_is_linked() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a b", "a:b"] {
            let folder = home.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let library = folder.join("library.so");
            std::fs::write(&library, name).unwrap();
            let links = tempfile::tempdir().unwrap();
            let list = preload_list(&[Path::new("/lib/x.so"), &library], links.path()).unwrap();
            let list = list.into_string().unwrap();
            let (first, second) = list.split_once(':').unwrap();
            assert_eq!((first, second.contains([' ', ':'])), ("/lib/x.so", false));
            assert_eq!(std::fs::read_to_string(second).unwrap(), name);
            let error = preload_list(&[&library], &folder).unwrap_err().to_string();
            assert!(error.contains("library.so") && error.contains("a blank or a colon"));
        }
    }
}
