//! What an interrupted restore left: it is finished or dropped when the store is opened for
//! writing.
//!
//! The restore of a readable store is one transaction, so it happened or it did not. Only the copy
//! of the previous state remains to be named or deleted. A damaged store is replaced by renaming
//! several files; once the backup is in the directory as `data.db.restoring`, verified and synced,
//! the rest can be done by any process. Separate from `backup`, which begins restores, because
//! opening a store runs this first.

use crate::commit_record::CommittedState;
use crate::connection::ReadConnection;
use crate::data_directory::DataDirectory;
use crate::database_copy::verify_content;
use crate::error::{Result, file_error_at, sqlite_error_at};
use crate::history;
use crate::lock::LockFiles;
use crate::staging_file::{
    LOG_SUFFIXES, find_log_beside, ignore_missing, remove_with_companions, rename_durably,
    sync_folder_of, with_suffix,
};
use crate::unsynced_mark::{has_mark, remove_mark};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The purpose of a copy of the state before a restore, in the name of its staging file.
pub(crate) const PREVIOUS_COPY: &str = "before-restore";

/// The place of the files of a damaged store that is replaced.
struct DamagedPlace {
    /// The name that its database gets, or has already.
    path: PathBuf,
    /// There is a database, and not only a log of one that is gone.
    has_database: bool,
}

impl DamagedPlace {
    /// Returns the place of a replacement that begins: no file has its names.
    fn new(directory: &DataDirectory) -> DamagedPlace {
        let has_database = directory.database_path().exists();
        DamagedPlace { path: directory.unused_damaged_path(), has_database }
    }

    /// Returns the place of a replacement that another process began. It moved the log first, so
    /// beside a log that is still there, the database was missing from the beginning.
    fn resume(directory: &DataDirectory) -> DamagedPlace {
        let data = directory.database_path();
        if data.exists() {
            return DamagedPlace { path: directory.resumed_damaged_path(), has_database: true };
        }
        let newest = directory.newest_damaged_path().filter(|_| find_log_beside(&data).is_none());
        let has_database = newest.as_ref().is_some_and(|path| path.exists());
        let path = newest.unwrap_or_else(|| directory.unused_damaged_path());
        DamagedPlace { path, has_database }
    }
}

/// Finishes a restore that is pending. Returns the path of the damaged file; `None`: none is
/// pending, or there was no file. For writers that hold the lock.
pub(crate) fn finish_pending(
    directory: &DataDirectory,
    locks: &LockFiles,
) -> Result<Option<PathBuf>> {
    match directory.pending_restore_path().exists() {
        true => replace_by_pending(directory, locks, DamagedPlace::resume(directory)),
        false => Ok(None),
    }
}

/// Puts a backup that was made pending just now in the place of the files of a store, as
/// [`finish_pending`] does.
pub(crate) fn begin_replacement(
    directory: &DataDirectory,
    locks: &LockFiles,
) -> Result<Option<PathBuf>> {
    replace_by_pending(directory, locks, DamagedPlace::new(directory))
}

/// Renames the files of a damaged store, and puts the pending backup in their place. Each step can
/// be repeated. Returns the path of the damaged file; `None`: there was none.
fn replace_by_pending(
    directory: &DataDirectory,
    locks: &LockFiles,
    damaged: DamagedPlace,
) -> Result<Option<PathBuf>> {
    let (pending, data) = (directory.pending_restore_path(), directory.database_path());
    let state = {
        let conn = ReadConnection::open(&pending).map_err(sqlite_error_at(&pending))?;
        CommittedState::read(&conn.autocommit_read()).map_err(sqlite_error_at(&pending))?
    };
    let DamagedPlace { path: before, has_database } = damaged;
    let run = || -> io::Result<()> {
        // First what SQLite keeps beside the file: it may have data to be rescued, and must not be
        // read into the backup.
        for end in LOG_SUFFIXES {
            set_log_aside(&with_suffix(&data, end), &with_suffix(&before, end))?;
        }
        ignore_missing(fs::remove_file(with_suffix(&data, "-shm")))?;
        rename_if_there(&data, &before)?;
        // The names of the damaged files are on the disk before the backup takes their place.
        sync_folder_of(&data)?;
        // Before the rename: a replacement that was interrupted is repeated in any case.
        locks.announce_restore(&[&state])?;
        // It is about the file that went, and would make the next one look damaged.
        if has_mark(directory)? {
            remove_mark(directory)?;
        }
        rename_durably(&pending, &data)?;
        // Nothing is lost with a store that can be made again.
        match directory.store_file().is_disposable() {
            true => remove_with_companions(&before),
            false => Ok(()),
        }
    };
    run().map_err(file_error_at(&data))?;
    Ok(has_database.then_some(before))
}

/// Deletes the staging files that killed processes left, except a copy of the state before a
/// restore that happened: it gets its final name. Returns the last such name. For writers that hold
/// the lock.
pub(crate) fn sweep(directory: &DataDirectory, store: &ReadConnection) -> Result<Option<PathBuf>> {
    let mut leftovers = Vec::new();
    directory.for_each_leftover(&mut |path| {
        leftovers.push(path.to_path_buf());
        Ok(())
    })?;
    let mut previous = None;
    for leftover in leftovers {
        if is_previous_copy(directory, store, &leftover)? {
            previous = Some(name_previous_copy(directory, &leftover)?);
        } else {
            remove_with_companions(&leftover).map_err(file_error_at(&leftover))?;
        }
    }
    Ok(previous)
}

/// Gives a copy of the state before a restore its final name, which is returned.
pub(crate) fn name_previous_copy(directory: &DataDirectory, copy: &Path) -> Result<PathBuf> {
    let to = directory.unused_copy_path("restore");
    rename_durably(copy, &to).map_err(file_error_at(copy))?;
    Ok(to)
}

/// Returns whether a staging file is the copy of the state before a restore that happened. The copy
/// is complete before the restore commits, and every restore gives the store a new epoch. Thus a
/// copy with the epoch of the store belongs to a restore that did not happen.
fn is_previous_copy(
    directory: &DataDirectory,
    store: &ReadConnection,
    staged: &Path,
) -> Result<bool> {
    let name = staged.file_name().unwrap_or_default().to_string_lossy();
    if !name.starts_with(&directory.staging_prefix(PREVIOUS_COPY)) {
        return Ok(false);
    }
    let read_epoch = |conn: &ReadConnection| history::read_epoch(&conn.autocommit_read());
    let path = directory.database_path();
    let current = read_epoch(store).map_err(sqlite_error_at(&path))?;
    let Ok(copy) = ReadConnection::open(staged) else { return Ok(false) };
    Ok(read_epoch(&copy).is_ok_and(|epoch| epoch != current)
        && verify_content(&copy, staged).is_ok())
}

/// Renames a log or a journal. An empty one has nothing to be rescued, and is deleted: without a
/// database, it would take the name of a later one.
fn set_log_aside(from: &Path, to: &Path) -> io::Result<()> {
    match fs::metadata(from) {
        Ok(found) if found.is_file() && found.len() == 0 => ignore_missing(fs::remove_file(from)),
        _ => rename_if_there(from, to),
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    ignore_missing(fs::rename(from, to))
}
