//! The mark of a store whose writes are not synced.
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
use crate::staging_file::{StagingFile, folder_of, ignore_missing, sync_folder_of};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};

/// The id that Linux makes at each start.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";
/// More than an id has.
const MAX_MARK_BYTES: u64 = 64;

/// Returns the id of this start of the system; empty: it is unknown, so each mark is of another.
fn boot_id() -> String {
    fs::read_to_string(BOOT_ID_PATH).unwrap_or_default()
}

/// Writes the mark. It is whole at any time: one without an id would be of another start.
pub(crate) fn write_mark(directory: &DataDirectory) -> Result<()> {
    let path = directory.unsynced_mark_path();
    let write = || -> io::Result<()> {
        let prefix = directory.staging_prefix("unsynced");
        let staged = StagingFile::create(folder_of(&path), &prefix, 0o600)?;
        staged.file().write_all(boot_id().as_bytes())?;
        staged.persist(&path)
    };
    write().map_err(file_error_at(&path))
}

/// Returns whether there is a mark. One that cannot be seen is an error: the store may be damaged.
pub(crate) fn has_mark(directory: &DataDirectory) -> io::Result<bool> {
    match directory.store_file() {
        StoreFile::Data => Ok(false),
        _ => directory.unsynced_mark_path().try_exists(),
    }
}

/// Deletes the mark, after everything was synced or the store was deleted.
pub(crate) fn delete_mark(directory: &DataDirectory) -> Result<()> {
    remove_mark(directory).map_err(file_error_at(&directory.unsynced_mark_path()))
}

/// Deletes the mark, as [`delete_mark`]. One that is missing is no error.
pub(crate) fn remove_mark(directory: &DataDirectory) -> io::Result<()> {
    let path = directory.unsynced_mark_path();
    ignore_missing(fs::remove_file(&path)).and_then(|()| sync_folder_of(&path))
}

/// Fails if the store has a mark of another start of the system.
pub(crate) fn check_mark(directory: &DataDirectory) -> Result<()> {
    let path = directory.unsynced_mark_path();
    if !has_mark(directory).map_err(file_error_at(&path))? {
        return Ok(());
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_cannot_be_seen_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::new(folder.path()).with_store_file(StoreFile::Index);
        let path = directory.unsynced_mark_path();
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(has_mark(&directory).is_err() && check_mark(&directory).is_err());
    }

    /// A process that opened the former mark still reads all of it.
    #[test]
    fn a_mark_takes_the_place_of_another_one_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let directory = DataDirectory::new(folder.path()).with_store_file(StoreFile::Index);
        let path = directory.unsynced_mark_path();
        fs::write(&path, "former").unwrap();
        let mut opened = File::open(&path).unwrap();
        write_mark(&directory).unwrap();
        let mut former = String::new();
        opened.read_to_string(&mut former).unwrap();
        assert_eq!(former, "former");
        assert_eq!(fs::read_to_string(&path).unwrap(), boot_id());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        check_mark(&directory).unwrap();
        delete_mark(&directory).unwrap();
        assert!(!has_mark(&directory).unwrap());
    }
}
