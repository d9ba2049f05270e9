//! Whether a file system can be written, and has room.
//!
//! Asked before SQLite opens a store, because SQLite finds out too late: it maps a file whose
//! blocks the disk may not have, and a write to such a block ends the process with SIGBUS. Separate
//! from `data_directory`, which knows names and no file systems.

use rustix::fs::{FallocateFlags, Mode, OFlags, StatVfsMountFlags, fallocate, open, statvfs};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// With less room than this, a disk counts as full. SQLite needs 32 KB to open a store for shared
/// use, and a small change as much again.
const MIN_FREE_BYTES: u64 = 128 << 10;
/// The size of SQLite's index of a write-ahead log of 32 MB.
const SHARED_MEMORY_BYTES: u64 = 64 << 10;
/// The unit of `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// The state of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskState {
    /// It has room.
    Writable,
    /// It has no room.
    Full,
    /// It has room, but not for this user.
    OverQuota,
    /// Writing fails with an error of the disk.
    Failing,
    /// It is mounted read-only.
    ReadOnly,
}

/// Returns the state of the file system of a directory. If it is unknown, the next access finds it
/// out.
pub(crate) fn disk_state(dir: &Path) -> DiskState {
    match statvfs(dir) {
        Ok(found) if found.f_flag.contains(StatVfsMountFlags::RDONLY) => DiskState::ReadOnly,
        Ok(found) if found.f_bavail.saturating_mul(found.f_frsize) < MIN_FREE_BYTES => {
            DiskState::Full
        }
        _ => DiskState::Writable,
    }
}

/// Returns the state of the file system of a directory in which SQLite failed to write. Also finds
/// an exhausted quota, which only a write meets.
pub(crate) fn disk_state_after_failure(dir: &Path) -> DiskState {
    match disk_state(dir) {
        DiskState::Writable => match write_unnamed_file(dir) {
            Err(error) if error.kind() == ErrorKind::StorageFull => DiskState::Full,
            Err(error) if error.kind() == ErrorKind::QuotaExceeded => DiskState::OverQuota,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => DiskState::Failing,
            _ => DiskState::Writable,
        },
        state => state,
    }
}

/// Fills a file without a name, which disappears again.
fn write_unnamed_file(dir: &Path) -> io::Result<()> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(dir, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(&[1; MIN_FREE_BYTES as usize])
}

/// Allocates the blocks of SQLite's shared memory, where SQLite left holes: it writes one byte for
/// each 4 KB, and the blocks of the file system may be smaller. Without room the holes remain.
pub(crate) fn fill_shared_memory(path: &Path) {
    /// The files whose holes were filled. To close one of them would release SQLite's locks on it.
    static FILLED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let Ok(found) = fs::metadata(path) else { return };
    if found.blocks().saturating_mul(STAT_BLOCK_BYTES) >= found.len() {
        return;
    }
    let mut filled = FILLED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_this = |file: &File| {
        file.metadata().is_ok_and(|known| (known.dev(), known.ino()) == (found.dev(), found.ino()))
    };
    if !filled.iter().any(is_this) {
        let Ok(file) = File::options().read(true).write(true).open(path) else { return };
        filled.push(file);
    }
    if let Some(file) = filled.iter().find(|file| is_this(file)) {
        let _holes_remain = fallocate(file, FallocateFlags::empty(), 0, SHARED_MEMORY_BYTES);
    }
}
