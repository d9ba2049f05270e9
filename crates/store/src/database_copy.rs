//! Copies of a database: each is a staging file that is verified and synced before it gets its
//! name.
//!
//! Separate from `backup`, which restores from them, because a migration copies the store first.

use crate::connection::{ReadConnection, WriteConnection, integrity_check};
use crate::damage_scan;
use crate::data_directory::DataDirectory;
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use crate::output_file::OutputTarget;
use crate::read_access::{is_forbidden, is_unwritable};
use crate::staging_file::{StagingFile, folder_of};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mode of copies: only the owner may read them.
const COPY_MODE: u32 = 0o600;

/// A copy of a database under a temporary name in the data directory, which is deleted when
/// dropped.
pub(crate) struct TempCopy {
    /// Declared first, so that it is closed before the file is deleted.
    pub(crate) conn: ReadConnection,
    staging: StagingFile,
}

impl TempCopy {
    /// Copies a database as it is, even if it is damaged, and applies `edit` to the copy. `purpose`
    /// is in the name of the copy.
    pub(crate) fn create(
        source: &ReadConnection,
        from: &Path,
        directory: &DataDirectory,
        purpose: &str,
        edit: impl FnOnce(&WriteConnection) -> Result<()>,
    ) -> Result<TempCopy> {
        TempCopy::create_in(
            directory.path(),
            source,
            from,
            &directory.staging_prefix(purpose),
            edit,
        )
    }

    fn create_in(
        folder: &Path,
        source: &ReadConnection,
        from: &Path,
        prefix: &str,
        edit: impl FnOnce(&WriteConnection) -> Result<()>,
    ) -> Result<TempCopy> {
        let staging = create_staging(folder, prefix)?;
        edit(&copy_into(source, from, staging.path())?)?;
        let path = staging.path();
        let conn = ReadConnection::open(path).map_err(sqlite_error_at(path))?;
        Ok(TempCopy { conn, staging })
    }

    /// Copies a store as it is. The copy has no name, so it is gone with its owner, even if that is
    /// killed.
    pub(crate) fn create_unnamed(
        source: &ReadConnection,
        directory: &DataDirectory,
        folder: &Path,
        purpose: &str,
    ) -> Result<TempCopy> {
        let from = directory.database_path();
        let copy =
            TempCopy::create_in(folder, source, &from, &directory.staging_prefix(purpose), |_| {
                Ok(())
            })?;
        // The file is open. If its name cannot be deleted, the destructor tries again.
        let _named = fs::remove_file(copy.staging.path());
        Ok(copy)
    }

    /// Fails with the first finding of a full check. Reads what was written, after the last write.
    pub(crate) fn verify(&self, blamed: &Path) -> Result<()> {
        verify_content(&self.conn, blamed)
    }

    /// Returns the file of the copy, which is read from its beginning.
    pub(crate) fn file(&self) -> &File {
        self.staging.file()
    }

    /// Returns the path of the copy.
    pub(crate) fn path(&self) -> &Path {
        self.staging.path()
    }

    /// Closes the copy, and returns its file.
    pub(crate) fn into_staging(self) -> StagingFile {
        self.staging
    }

    /// Syncs the copy, and leaves it under its temporary name, which is returned.
    pub(crate) fn keep(self) -> Result<PathBuf> {
        drop(self.conn);
        let path = self.staging.path().to_path_buf();
        self.staging.keep().map_err(file_error_at(&path))
    }
}

/// Fails with the first finding of a full integrity check, and with the first object that does not
/// match its checksum.
pub(crate) fn verify_content(conn: &ReadConnection, path: &Path) -> Result<()> {
    let tx = conn.begin_read().map_err(sqlite_error_at(path))?;
    let findings = integrity_check(&tx).map_err(sqlite_error_at(path))?;
    if let Some(what) = findings.into_iter().next() {
        return Err(Error::Damaged { path: path.to_path_buf(), what });
    }
    let damage = damage_scan::find_damage(&tx).map_err(sqlite_error_at(path))?;
    match damage.objects.into_iter().next() {
        None => Ok(()),
        Some(object) => Err(Error::DamagedObject { path: path.to_path_buf(), object }),
    }
}

/// Copies a database into a staging file beside `to`, verifies and syncs it, then renames it.
pub(crate) fn copy_atomically(source: &ReadConnection, from: &Path, to: &Path) -> Result<()> {
    let prefix = to.file_name().unwrap_or_default().to_string_lossy();
    let staging = create_staging(folder_of(to), &format!("{prefix}."))?;
    copy_and_verify(source, from, staging.path())?;
    staging.persist(to).map_err(file_error_at(to))
}

/// Copies a database into an empty staging file, and verifies the copy.
pub(crate) fn copy_and_verify(source: &ReadConnection, from: &Path, staged: &Path) -> Result<()> {
    drop(copy_into(source, from, staged)?);
    let copy = ReadConnection::open(staged).map_err(sqlite_error_at(staged))?;
    // The copy has every page of the source, so damage in it is damage of the source.
    verify_content(&copy, from)
}

/// Makes the temporary copy of a stream in the data directory, or where that cannot be written, in
/// the stream's own temporary folder: a full disk can then still be backed up.
pub(crate) fn create_for_stream<T>(
    directory: &DataDirectory,
    to: &OutputTarget,
    create: impl Fn(&Path) -> Result<T>,
) -> Result<T> {
    match (create(directory.path()), to.temporary_folder()) {
        (Err(error), Some(folder))
            if is_unwritable(directory.path(), &error) || is_forbidden(&error) =>
        {
            create(folder)
        }
        (copy, _) => copy,
    }
}

/// Creates an empty staging file that only its owner may read.
pub(crate) fn create_staging(folder: &Path, prefix: &str) -> Result<StagingFile> {
    StagingFile::create(folder, prefix, COPY_MODE).map_err(file_error_at(&folder.join(prefix)))
}

/// Copies a database into an empty staging file, without verifying the copy. Returns a connection
/// to the copy.
pub(crate) fn copy_into(
    source: &ReadConnection,
    from: &Path,
    staged: &Path,
) -> Result<WriteConnection> {
    let mut target = WriteConnection::open_staging(staged).map_err(sqlite_error_at(staged))?;
    {
        let backup = target.begin_copy(source).map_err(sqlite_error_at(from))?;
        // Copies in one step, because a copy in several steps starts again after every write.
        backup
            .run_to_completion(i32::MAX, Duration::ZERO, None)
            .map_err(sqlite_error_at(staged))?;
    }
    // A single file, without a write-ahead log.
    target.set_single_file().map_err(sqlite_error_at(staged))?;
    Ok(target)
}
