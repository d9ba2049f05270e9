//! Staging files: a file is written under a name of its own, verified and synced, and only then
//! gets the name that others read.
//!
//! Backups, restores, migrations, checks and exports write through this module. Each staging file
//! has a fresh name: SQLite applies a rollback journal or a write-ahead log that it finds beside a
//! database, so a name that an earlier process used could bring that process's pages. Its owner
//! locks it until it has its final name, which tells it from a file that a killed process left; a
//! sweep deletes the latter with everything that SQLite keeps beside it. Separate from
//! `database_copy`, which fills such files, because exports are no databases.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The end of the name of every staging file.
pub(crate) const STAGING_SUFFIX: &str = ".partial";
/// The ends of the names of the files that SQLite keeps beside a database.
pub(crate) const COMPANION_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];
/// Those with changes. The shared memory of the log has nothing of its own.
pub(crate) const LOG_SUFFIXES: [&str; 2] = ["-journal", "-wal"];
/// The number of names to try.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// A file under a temporary name, which is deleted when dropped.
#[derive(Debug)]
pub(crate) struct StagingFile {
    path: PathBuf,
    /// Holds the lock that tells the file from one of a killed process.
    file: File,
    is_kept: bool,
}

impl StagingFile {
    /// Creates an empty file in a folder. `prefix` begins its name, and `mode` is reduced by the
    /// umask.
    pub(crate) fn create(folder: &Path, prefix: &str, mode: u32) -> io::Result<StagingFile> {
        for _ in 0..MAX_NAME_ATTEMPTS {
            let path = folder.join(format!("{prefix}{:016x}{STAGING_SUFFIX}", random_number()));
            if COMPANION_SUFFIXES.iter().any(|end| with_suffix(&path, end).exists()) {
                continue;
            }
            let mut options = OpenOptions::new();
            let file = match options.read(true).write(true).create_new(true).mode(mode).open(&path)
            {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Without locks, as on some network file systems, the file is never swept.
            let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_swept && is_named(&path, &file) {
                return Ok(StagingFile { path, file, is_kept: false });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the file, and leaves it under its temporary name, which is returned: a later sweep
    /// finds it.
    pub(crate) fn keep(mut self) -> io::Result<PathBuf> {
        self.file.sync_all()?;
        sync_folder_of(&self.path)?;
        self.is_kept = true;
        Ok(self.path.clone())
    }

    /// Syncs the file, and gives it its final name. A file of that name is replaced.
    pub(crate) fn persist(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, to)?;
        self.is_kept = true;
        sync_folder_of(to)
    }
}

impl Drop for StagingFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // A file that remains is swept later.
            let _left = remove_with_companions(&self.path);
        }
    }
}

/// Deletes a file and those that SQLite keeps beside it. Files that are missing are no error.
pub(crate) fn remove_with_companions(path: &Path) -> io::Result<()> {
    // The file itself goes first: without it, what is beside it belongs to nothing.
    ignore_missing(fs::remove_file(path))?;
    remove_companions(path)
}

/// Deletes the files that SQLite keeps beside a database. Files that are missing are no error.
pub(crate) fn remove_companions(database: &Path) -> io::Result<()> {
    COMPANION_SUFFIXES
        .iter()
        .try_for_each(|end| ignore_missing(fs::remove_file(with_suffix(database, end))))
}

/// Returns the log or the journal beside the name of a database that SQLite would apply to a file
/// of this name. An empty one has nothing to apply, and neither has the shared memory.
pub(crate) fn find_log_beside(database: &Path) -> Option<PathBuf> {
    let mut logs = LOG_SUFFIXES.iter().map(|end| with_suffix(database, end));
    logs.find(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0))
}

/// Returns where a symbolic link leads; `None`: it is none, or leads nowhere.
pub(crate) fn link_target(path: &Path) -> Option<PathBuf> {
    if path.is_symlink() { fs::canonicalize(path).ok() } else { None }
}

/// Finds the staging files in a folder that no process owns any longer, by the beginning of their
/// names, and calls `visit` with each. The files that SQLite left beside missing ones are deleted.
pub(crate) fn for_each_leftover(
    folder: &Path,
    prefix: &str,
    visit: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(prefix)) else { continue };
        let path = entry.path();
        if let Some(owner) = COMPANION_SUFFIXES.iter().find_map(|end| name.strip_suffix(end)) {
            if owner.ends_with(STAGING_SUFFIX) && !folder.join(owner).exists() {
                ignore_missing(fs::remove_file(&path))?;
            }
        } else if name.ends_with(STAGING_SUFFIX) && is_abandoned(&path)? {
            visit(&path)?;
        }
    }
    Ok(())
}

/// Returns whether no process holds the lock of a staging file. Only regular files are opened: a
/// named pipe would block.
fn is_abandoned(path: &Path) -> io::Result<bool> {
    let open = || -> io::Result<bool> {
        if !fs::symlink_metadata(path)?.is_file() {
            return Ok(false);
        }
        Ok(File::open(path)?.try_lock().is_ok())
    };
    match open() {
        // Its owner has just renamed or deleted it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        result => result,
    }
}

/// Renames a file, and syncs the folder.
pub(crate) fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

/// Syncs everything on the file system of a file.
pub(crate) fn sync_file_system_of(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder_of(path))?)?)
}

/// Syncs the folder of a file, so that its name survives a power cut. Some file systems cannot sync
/// a folder, and some folders may be written but not read: neither is a failure to write.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let synced = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    match synced {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput
                    | io::ErrorKind::Unsupported
                    | io::ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Returns the folder of a path; `.` if it names none.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Returns the path with a suffix appended.
pub(crate) fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Returns whether the path still names the open file.
fn is_named(path: &Path, file: &File) -> bool {
    let id = |file: io::Result<fs::Metadata>| file.ok().map(|file| (file.dev(), file.ino()));
    id(fs::symlink_metadata(path)) == id(file.metadata())
}

/// Turns the error of a missing file into success.
pub(crate) fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns a random number. The standard library seeds its hashes from the system.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = names
            .map(|entry| entry.expect("a name").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    fn sweep(folder: &Path) {
        for_each_leftover(folder, "data.db.", &mut remove_with_companions).expect("a sweep");
    }

    #[test]
    fn a_dropped_file_takes_everything_beside_it_along() {
        let scratch = tempfile::tempdir().expect("a folder");
        let staged = StagingFile::create(scratch.path(), "data.db.check-", 0o600).expect("a file");
        for end in COMPANION_SUFFIXES {
            fs::write(with_suffix(staged.path(), end), "x").expect("a file beside it");
        }
        assert_eq!(names(scratch.path()).len(), 4);
        drop(staged);
        assert_eq!(names(scratch.path()), [""; 0]);
    }

    #[test]
    fn names_are_never_used_twice() {
        let scratch = tempfile::tempdir().expect("a folder");
        let name = || {
            let file = StagingFile::create(scratch.path(), "data.db.", 0o600).expect("a file");
            file.path().to_path_buf()
        };
        let mut used: Vec<PathBuf> = (0..100).map(|_| name()).collect();
        used.sort();
        used.dedup();
        assert_eq!(used.len(), 100);
    }

    #[test]
    fn a_sweep_deletes_what_killed_processes_left_and_nothing_else() {
        let scratch = tempfile::tempdir().expect("a folder");
        let folder = scratch.path();
        for name in [
            "data.db.check-1.partial",
            "data.db.check-1.partial-journal",
            "data.db.restore-2.partial-journal",
            "data.db.before-restore",
            "data.db.before-restore-wal",
            "data.db",
            "data.db-wal",
            "book.vcf.partial",
        ] {
            fs::write(folder.join(name), "x").expect("a file");
        }
        let live = StagingFile::create(folder, "data.db.before-", 0o600).expect("a file");
        fs::write(with_suffix(live.path(), "-wal"), "x").expect("a file beside it");
        sweep(folder);
        assert!(live.path().exists() && with_suffix(live.path(), "-wal").exists());
        drop(live);
        assert_eq!(
            names(folder),
            [
                "book.vcf.partial",
                "data.db",
                "data.db-wal",
                "data.db.before-restore",
                "data.db.before-restore-wal"
            ]
        );
    }

    #[test]
    fn a_persisted_file_has_its_final_name_only() {
        let scratch = tempfile::tempdir().expect("a folder");
        let target = scratch.path().join("book.vcf");
        fs::write(&target, "old").expect("a file");
        let staged = StagingFile::create(scratch.path(), ".larder-", 0o600).expect("a file");
        io::Write::write_all(&mut staged.file(), b"new").expect("written");
        staged.persist(&target).expect("renamed");
        assert_eq!(fs::read(&target).expect("a file"), b"new");
        assert_eq!(names(scratch.path()), ["book.vcf"]);
    }
}
