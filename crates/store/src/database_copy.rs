//! Copies of a database file: each is verified and synced before it gets its name.
//!
//! Separate from `backup`, which restores from them, because a migration copies the store first.

use crate::connection::{ReadConnection, WriteConnection, integrity_check};
use crate::damage_scan;
use crate::data_directory::DataDirectory;
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A temporary copy in the data directory, which is deleted when dropped.
pub(crate) struct TempCopy {
    pub(crate) conn: WriteConnection,
    pub(crate) path: PathBuf,
}

impl TempCopy {
    /// Copies a store as it is, even if it is damaged.
    pub(crate) fn from_connection(
        conn: &ReadConnection,
        directory: &DataDirectory,
    ) -> Result<TempCopy> {
        let name = format!("check-{}.partial", std::process::id());
        let path = with_suffix(&directory.database_path(), &format!(".{name}"));
        let _none = fs::remove_file(&path);
        let conn = copy_raw(conn, &directory.database_path(), &path)?;
        Ok(TempCopy { conn, path })
    }
}

impl Drop for TempCopy {
    fn drop(&mut self) {
        let _left = fs::remove_file(&self.path);
    }
}

/// Returns the path with a suffix appended.
pub(crate) fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
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

/// Copies a database into one file under a temporary name, verifies and syncs it, then renames it.
pub(crate) fn copy_atomically(conn: &ReadConnection, from: &Path, to: &Path) -> Result<()> {
    let partial = with_suffix(to, ".partial");
    let _none = fs::remove_file(&partial);
    let result = copy_and_verify(conn, from, &partial).and_then(|()| sync_and_rename(&partial, to));
    if result.is_err() {
        let _left = fs::remove_file(&partial);
    }
    result
}

/// Gives a complete file its name, both durably.
pub(crate) fn sync_and_rename(partial: &Path, to: &Path) -> Result<()> {
    File::open(partial).and_then(|copy| copy.sync_all()).map_err(file_error_at(partial))?;
    fs::rename(partial, to).map_err(file_error_at(to))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(file_error_at(folder))
}

fn copy_and_verify(conn: &ReadConnection, from: &Path, partial: &Path) -> Result<()> {
    let copy = copy_raw(conn, from, partial)?;
    // The copy has every page of the source, so damage in it is damage of the source.
    verify_content(&copy, from)
}

/// Creates an empty file that only its owner may read, from the moment it is created.
pub(crate) fn create_private_file(path: &Path) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(file_error_at(path))
}

/// Copies a database as it is into a new file, without verifying the copy.
pub(crate) fn copy_raw(
    conn: &ReadConnection,
    from: &Path,
    partial: &Path,
) -> Result<WriteConnection> {
    create_private_file(partial)?;
    let mut target = WriteConnection::open(partial).map_err(sqlite_error_at(partial))?;
    {
        let backup = target.begin_copy(conn).map_err(sqlite_error_at(from))?;
        // Copies in one step, because a copy in several steps starts again after every write.
        backup
            .run_to_completion(i32::MAX, Duration::ZERO, None)
            .map_err(sqlite_error_at(partial))?;
    }
    // A single file, without a write-ahead log.
    target.set_single_file().map_err(sqlite_error_at(partial))?;
    Ok(target)
}
