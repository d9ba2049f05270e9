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
use crate::database_copy::{create_staging, verify_content};
use crate::error::{Result, file_error_at, sqlite_error_at};
use crate::history;
use crate::lock::LockFiles;
use crate::staging_file::{
    LOG_SUFFIXES, StagingFile, ignore_missing, remove_with_companions, rename_durably,
    sync_folder_of, with_suffix,
};
use crate::unsynced_mark::{has_mark, remove_mark};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The purpose of a copy of the state before a restore, in the name of its staging file.
pub(crate) const PREVIOUS_COPY: &str = "before-restore";

/// Finishes a restore that is pending. Returns the path of the damaged file; `None`: none is
/// pending, or there was no file. For writers that hold the lock.
pub(crate) fn finish_pending(
    directory: &DataDirectory,
    locks: &LockFiles,
) -> Result<Option<PathBuf>> {
    if directory.pending_restore_path().exists() {
        return replace_by_pending(directory, locks);
    }
    // A process that was killed just before the first step, or just after the last one, left it.
    let _left = fs::remove_file(directory.damaged_name_path());
    Ok(None)
}

/// Puts a verified file in the place of the files of a store. Returns the path of the damaged file;
/// `None`: there was none. For writers that hold the lock.
pub(crate) fn replace_database(
    directory: &DataDirectory,
    locks: &LockFiles,
    new: StagingFile,
) -> Result<Option<PathBuf>> {
    let pending = directory.pending_restore_path();
    // A replacement that was begun may have moved some files to the place that it chose.
    if !pending.exists() {
        record_damaged_name(directory)?;
    }
    // From here on, whoever opens the store finishes the replacement.
    new.persist(&pending).map_err(file_error_at(&pending))?;
    replace_by_pending(directory, locks)
}

/// Chooses the name of a damaged store, and writes it to the disk: whoever finishes the replacement
/// could not tell the files that were moved already from those of earlier ones.
fn record_damaged_name(directory: &DataDirectory) -> Result<PathBuf> {
    let (chosen, record) = (directory.unused_damaged_path(), directory.damaged_name_path());
    let name = chosen.file_name().unwrap_or_default().as_encoded_bytes();
    let staged = create_staging(directory.path(), &directory.staging_prefix("damaged"))?;
    staged
        .file()
        .write_all_at(name, 0)
        .and_then(|()| staged.persist(&record))
        .map_err(file_error_at(&record))?;
    Ok(chosen)
}

/// Returns the name that a damaged store gets, or has in part already. One is chosen if there is
/// none.
fn find_damaged_name(directory: &DataDirectory) -> Result<PathBuf> {
    let (data, record) = (directory.database_path(), directory.damaged_name_path());
    let bytes = match fs::read(&record) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(file_error_at(&record)(error));
        }
        bytes => bytes.unwrap_or_default(),
    };
    let name = String::from_utf8_lossy(&bytes);
    let recorded = directory.path().join(&*name);
    // Another program may have put a file in the place of one that was moved. An empty log is not
    // moved.
    let is_log_taken = |end: &&str| {
        fs::metadata(with_suffix(&data, end)).is_ok_and(|log| log.len() > 0)
            && with_suffix(&recorded, end).exists()
    };
    let is_taken = data.exists() && recorded.exists() || LOG_SUFFIXES.iter().any(is_log_taken);
    let is_name = recorded.file_name().is_some_and(|last| *last == *name);
    match is_name && directory.is_damaged_copy(&recorded) && !is_taken {
        true => Ok(recorded),
        false => record_damaged_name(directory),
    }
}

/// Renames the files of a damaged store, and puts the pending backup in their place. Each step can
/// be repeated. Returns the path of the damaged file; `None`: there was none.
fn replace_by_pending(directory: &DataDirectory, locks: &LockFiles) -> Result<Option<PathBuf>> {
    let (pending, data) = (directory.pending_restore_path(), directory.database_path());
    let state = {
        let conn = ReadConnection::open(&pending).map_err(sqlite_error_at(&pending))?;
        CommittedState::read(&conn.autocommit_read()).map_err(sqlite_error_at(&pending))?
    };
    let before = find_damaged_name(directory)?;
    // Without a database, there may be a log of one that is gone.
    let has_database = data.exists() || before.exists();
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
        ignore_missing(fs::remove_file(directory.damaged_name_path()))?;
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
