//! The mark of a store that is written without waiting for the disk.
//!
//! SQLite then syncs nothing, so a power cut may leave any mixture of old and new pages, which no
//! check is sure to notice. The mark is a file with the id of this start of the system, and is on
//! the disk before the first such write. It is deleted once everything is on the disk. A mark of
//! another start says that the system stopped in between: the store is not read, and has to be made
//! again. One of this start is left by a killed process, whose writes the system still has; the
//! next synchronisation syncs them.
//!
//! Separate from `data_directory`, which knows names and no states, and from `connection`, which
//! opens files that have been checked.

use crate::data_directory::{DataDirectory, StoreFile};
use crate::error::{Error, Result, file_error_at};
use crate::staging_file::{ignore_missing, sync_folder_of};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

/// The id that Linux makes at each start.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";
/// More than an id has.
const MAX_MARK_BYTES: u64 = 64;

/// Returns the id of this start of the system; empty: it is unknown, so each mark is of another.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID_PATH).unwrap_or_default()
}

/// Writes the mark.
pub(crate) fn write_mark(directory: &DataDirectory) -> Result<()> {
    let path = directory.unsynced_mark_path();
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(boot_id().as_bytes())?;
        file.sync_all()?;
        sync_folder_of(&path)
    };
    write().map_err(file_error_at(&path))
}

/// Returns whether there is a mark.
pub(crate) fn has_mark(directory: &DataDirectory) -> bool {
    directory.store_file() != StoreFile::Data && directory.unsynced_mark_path().exists()
}

/// Deletes the mark, after everything was synced or the store was deleted.
pub(crate) fn delete_mark(directory: &DataDirectory) -> Result<()> {
    let path = directory.unsynced_mark_path();
    ignore_missing(fs::remove_file(&path))
        .and_then(|()| sync_folder_of(&path))
        .map_err(file_error_at(&path))
}

/// Fails if the store has a mark of another start of the system.
pub(crate) fn check_mark(directory: &DataDirectory) -> Result<()> {
    if !has_mark(directory) {
        return Ok(());
    }
    let path = directory.unsynced_mark_path();
    let mut found = String::new();
    match File::open(&path).and_then(|file| file.take(MAX_MARK_BYTES).read_to_string(&mut found)) {
        // It was deleted since.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A mark with other bytes is one of another start.
        Err(error) if error.kind() != io::ErrorKind::InvalidData => {
            return Err(file_error_at(&path)(error));
        }
        _ => {}
    }
    if !found.is_empty() && found == boot_id() {
        return Ok(());
    }
    let what = "the system stopped while it was written without waiting for the disk".to_string();
    Err(Error::Damaged { path: directory.database_path(), what })
}
