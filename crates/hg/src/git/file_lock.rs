//! The locks by which files of living processes are told from those of killed ones.
//!
//! A process locks the files that it needs for a while, such as an unfinished pack; the system
//! ends the lock with the process.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns whether no process holds the lock of a file.
pub(super) fn is_abandoned(path: &Path) -> bool {
    lock_abandoned(path).is_some()
}

/// Locks a file; `None` if another process holds the lock.
pub(super) fn lock_abandoned(path: &Path) -> Option<File> {
    // A named pipe would block.
    let is_file = fs::symlink_metadata(path).is_ok_and(|status| status.is_file());
    let file = is_file.then(|| File::open(path).ok())??;
    file.try_lock().is_ok().then_some(file)
}

/// Returns whether an open file still has its name.
pub(super) fn is_named(path: &Path, file: &File) -> bool {
    let (Ok(named), Ok(open)) = (fs::metadata(path), file.metadata()) else { return false };
    (named.dev(), named.ino()) == (open.dev(), open.ino())
}
