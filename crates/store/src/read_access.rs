//! How a reader gets at the database file: also on a full disk, and on a medium that cannot be
//! written.
//!
//! Readers and writers share an index of the write-ahead log in a file of 32 KB, which SQLite makes
//! when the first of them opens the store. On a full disk or a read-only medium it cannot be made.
//! Then a reader has an index of its own in memory, for which the files must be there, or reads the
//! database file alone. Separate from `connection`, which opens a file in one way.

use crate::connection::{ReadConnection, SharedMemory};
use crate::data_directory::DataDirectory;
use crate::disk_state::{DiskState, disk_state, fill_shared_memory};
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use crate::unsynced_mark::check_mark;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

/// The number of times that a reader tries to open the shared memory on a disk that has room.
const SHARED_MEMORY_ATTEMPTS: usize = 2;

/// A connection that reads, and the locks that it needs.
#[derive(Debug)]
pub(crate) struct ReadAccess {
    pub(crate) conn: ReadConnection,
    /// Keeps writers away from a file that is read as if it never changed.
    pub(crate) write_lock: Option<File>,
}

/// Opens the database of a store for reading. `begin` makes the first read, in which SQLite opens
/// the shared memory.
pub(crate) fn open_for_reading<T>(
    directory: &DataDirectory,
    begin: impl Fn(&ReadConnection) -> Result<T>,
) -> Result<(ReadAccess, T)> {
    let open = |shared_memory| -> Result<(ReadAccess, T)> {
        let conn = open_connection(directory, shared_memory)?;
        let begun = begin(&conn)?;
        Ok((ReadAccess { conn, write_lock: None }, begun))
    };
    directory.check_is_file()?;
    directory.check_not_emptied()?;
    if directory.has_store() {
        check_mark(directory)?;
    }
    let state = disk_state(directory.path());
    if state != DiskState::ReadOnly {
        // They need no room while they are empty. Without them, the reader finds another way.
        let _missing = directory.create_log_files();
    }
    if state == DiskState::Writable {
        // A failure that passes must not send the reader another way: writers of this process would
        // have to follow it, and cannot write there.
        for _ in 0..SHARED_MEMORY_ATTEMPTS {
            match open(SharedMemory::File) {
                Err(error) if is_lack_of_shared_memory(&error) => {}
                opened => {
                    fill_shared_memory(&directory.shared_memory_path());
                    return opened;
                }
            }
        }
    }
    directory.ensure_store_exists()?;
    let has_both = directory.shared_memory_path().exists() && directory.wal_path().exists();
    let private = has_both.then(|| open(SharedMemory::Heap));
    match private {
        Some(Err(error)) if is_lack_of_shared_memory(&error) => {}
        Some(opened) => return opened,
        None => {}
    }
    if fs::metadata(directory.wal_path()).is_ok_and(|wal| wal.len() > 0) {
        return open(SharedMemory::File);
    }
    let write_lock = lock_out_writers(directory)?;
    let (access, begun) = open(SharedMemory::None)?;
    Ok((ReadAccess { write_lock: Some(write_lock), ..access }, begun))
}

fn open_connection(
    directory: &DataDirectory,
    shared_memory: SharedMemory,
) -> Result<ReadConnection> {
    let path = directory.database_path();
    let conn = match ReadConnection::open_with_shared_memory(&path, shared_memory) {
        Ok(conn) => conn,
        Err(error) => {
            directory.ensure_store_exists()?;
            // SQLite reports only that it could not open the file; the system reports the reason.
            File::open(&path).map_err(file_error_at(&path))?;
            return Err(sqlite_error_at(&path)(error));
        }
    };
    conn.disable_checkpoint_on_close().map_err(sqlite_error_at(&path))?;
    Ok(conn)
}

/// Takes the write lock together with other readers.
pub(crate) fn lock_out_writers(directory: &DataDirectory) -> Result<File> {
    let path = directory.lock_path();
    let file = match File::open(&path) {
        // On a read-only medium without a lock file there is no writer.
        Err(error) if error.kind() == ErrorKind::NotFound => File::open(directory.path()),
        file => file,
    };
    let file = file.map_err(file_error_at(&path))?;
    file.lock_shared().map_err(file_error_at(&path))?;
    Ok(file)
}

/// Returns whether a store could not be opened because its shared memory could not be made.
fn is_lack_of_shared_memory(error: &Error) -> bool {
    use rusqlite::ffi;
    match error {
        Error::DiskFull { .. } | Error::QuotaExceeded { .. } | Error::ReadOnlyDisk { .. } => true,
        Error::Sqlite { source, .. } | Error::DiskFailed { source, .. } => {
            source.sqlite_error().is_some_and(|error| {
                matches!(
                    error.extended_code & 0xff,
                    ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY | ffi::SQLITE_FULL
                ) || matches!(
                    error.extended_code,
                    ffi::SQLITE_IOERR_SHMOPEN
                        | ffi::SQLITE_IOERR_SHMSIZE
                        | ffi::SQLITE_IOERR_SHMMAP
                        | ffi::SQLITE_IOERR_WRITE
                )
            })
        }
        _ => false,
    }
}

/// Fails if nothing can be written to a directory.
pub(crate) fn ensure_writable_disk(dir: &Path) -> Result<()> {
    match disk_state(dir) {
        DiskState::Writable | DiskState::Failing => Ok(()),
        DiskState::Full => Err(Error::DiskFull { dir: dir.to_path_buf() }),
        DiskState::OverQuota => Err(Error::QuotaExceeded { dir: dir.to_path_buf() }),
        DiskState::ReadOnly => Err(Error::ReadOnlyDisk { dir: dir.to_path_buf() }),
    }
}

/// Returns whether the user has no permission for a file or its directory.
pub(crate) fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::File { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

/// Returns whether a file can be neither created nor written there.
pub(crate) fn is_unwritable(dir: &Path, error: &Error) -> bool {
    match error {
        Error::DiskFull { .. } | Error::QuotaExceeded { .. } | Error::ReadOnlyDisk { .. } => true,
        Error::File { source, .. } => {
            source.kind() == ErrorKind::ReadOnlyFilesystem || disk_state(dir) == DiskState::ReadOnly
        }
        _ => false,
    }
}
