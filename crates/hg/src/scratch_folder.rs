//! Temporary folders for what is too large for memory.
//!
//! A folder is locked as long as its process uses it, and removed at the end. A process that was
//! killed leaves its folder, which the next one finds without a lock and removes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The start of the names of the folders; the number of the process and a counter follow.
const NAME_PREFIX: &str = "larder-hg-scratch-";

/// How many names are tried.
const ATTEMPTS: u32 = 1000;

/// A folder that is removed with this value.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl ScratchFolder {
    /// Creates a folder in another one, and removes those of processes that were killed.
    pub(crate) fn create(parent: &Path) -> io::Result<ScratchFolder> {
        remove_leftovers(parent)?;
        for number in 0..ATTEMPTS {
            let path = parent.join(format!("{NAME_PREFIX}{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(name_path(&error, &path)),
            }
            match File::open(&path) {
                Ok(lock) => {
                    // File systems without locks have no leftovers removed, either.
                    let _locked = lock.lock();
                    // Another process may have taken the folder for a leftover before.
                    if path.exists() {
                        return Ok(ScratchFolder { path, _lock: lock });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(name_path(&error, &path)),
            }
        }
        Err(name_path(&io::ErrorKind::AlreadyExists.into(), &parent.join(NAME_PREFIX)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // The next process removes it if this fails.
        let _removed = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders that nobody has locked.
fn remove_leftovers(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent).map_err(|error| name_path(&error, parent))? {
        let entry = entry?;
        // Opening a named pipe, which anybody can make in a folder for all, would block.
        let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
        if !is_folder || !entry.file_name().to_string_lossy().starts_with(NAME_PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path()) else { continue };
        match lock.try_lock() {
            // One that cannot be removed is tried again by the next process.
            Ok(()) => drop(fs::remove_dir_all(entry.path())),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
    Ok(())
}

fn name_path(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn folders_are_removed_and_so_are_leftovers() {
        let parent = tempfile::tempdir().unwrap();
        let leftover = parent.path().join(format!("{NAME_PREFIX}1-0"));
        fs::create_dir_all(leftover.join("data")).unwrap();
        fs::create_dir(parent.path().join("other")).unwrap();
        let pipe = parent.path().join(format!("{NAME_PREFIX}1-1"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let first = ScratchFolder::create(parent.path()).unwrap();
        assert!(!leftover.exists());
        fs::write(first.path().join("file"), "text").unwrap();
        let second = ScratchFolder::create(parent.path()).unwrap();
        assert!(first.path().join("file").exists() && first.path() != second.path());
        drop((first, second));
        let names: Vec<_> = fs::read_dir(parent.path()).unwrap().map(Result::unwrap).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let missing = ScratchFolder::create(&parent.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing: "), "{missing}");
    }
}
