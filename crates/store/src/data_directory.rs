//! The data directory, which holds the data of one person, and the names of its files.
//!
//! A directory may have two stores, of the same schema and code ([`StoreFile`]): `data.db` has what
//! exists nowhere else, `index.db` what can be made again from its sources. Each has its own lock,
//! notify file, copies and epoch. The table has the names of the first; those of the second begin
//! with `index`.
//!
//! | file | content |
//! |---|---|
//! | `data.db` (and `-wal`, `-shm`) | the store; nothing in it exists elsewhere |
//! | `data.lock`, `data.lock-queue` | the write lock, see `lock` |
//! | `data.lock-work` | the lock of work of many transactions, see `lock` |
//! | `index.unsynced` | the mark of a store whose writes are not synced, see `unsynced_mark` |
//! | `data.notify` | the record of the last commit, see `commit_record`; other processes watch it |
//! | `data.db.before-*` | copies made before a migration or a restore |
//! | `data.db.restoring` | a backup that is about to replace a damaged store, see `interrupted_restore` |
//! | `data.db.damaged-name` | the name that the damaged store gets meanwhile |
//! | `new-index.db` | a folder in which `index.db` is made anew, see `derived_store` |
//! | `data.db.*.partial` | files that are being written, or that a killed process left, see `staging_file` |

use crate::error::{Error, Result, file_error_at};
use crate::staging_file::{
    COMPANION_SUFFIXES, LOG_SUFFIXES, STAGING_SUFFIX, find_log_beside, folder_of,
    for_each_leftover, link_target, sync_folder_of, with_suffix,
};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// File systems, as the mount table names them, on which WAL's shared memory or locks do not hold.
const NETWORK_FILE_SYSTEMS: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "fuse.ceph",
    "glusterfs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "davfs",
    "fuse.davfs",
    "fuse.rclone",
    "fuse.s3fs",
    "lustre",
];

/// A store of a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StoreFile {
    /// `data.db`: contacts, calendars and whatever else exists nowhere else.
    #[default]
    Data,
    /// `index.db`: mail, whose source bytes are elsewhere. It may be deleted at any time.
    Index,
    /// `commits.db`: commits, whose source bytes are in repositories. It has the tables of
    /// `index.db`, and is apart from it so that no search for messages reads what is about commits.
    Commits,
}

impl StoreFile {
    /// The beginning of the names of its files.
    fn stem(self) -> &'static str {
        match self {
            StoreFile::Data => "data",
            StoreFile::Index => "index",
            StoreFile::Commits => "commits",
        }
    }

    /// Returns the name of its database.
    pub(crate) fn database_name(self) -> String {
        format!("{}.db", self.stem())
    }

    /// Returns whether the store can be made again from its sources.
    pub(crate) fn is_disposable(self) -> bool {
        self != StoreFile::Data
    }
}

/// A data directory, one of its stores, and the names of the files of that store.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    dir: PathBuf,
    store_file: StoreFile,
}

impl From<&Path> for DataDirectory {
    fn from(dir: &Path) -> DataDirectory {
        DataDirectory::new(dir)
    }
}

impl From<&PathBuf> for DataDirectory {
    fn from(dir: &PathBuf) -> DataDirectory {
        DataDirectory::new(dir)
    }
}

impl From<&DataDirectory> for DataDirectory {
    fn from(directory: &DataDirectory) -> DataDirectory {
        directory.clone()
    }
}

impl DataDirectory {
    /// Names the directory `dir`, which need not exist yet, and its store `data.db`.
    pub fn new(dir: impl Into<PathBuf>) -> DataDirectory {
        DataDirectory { dir: dir.into(), store_file: StoreFile::Data }
    }

    /// Names another store of the same directory.
    #[must_use]
    pub fn with_store_file(mut self, store_file: StoreFile) -> DataDirectory {
        self.store_file = store_file;
        self
    }

    /// Returns which store of the directory this names.
    #[must_use]
    pub fn store_file(&self) -> StoreFile {
        self.store_file
    }

    /// Returns the name of a file of the store: `data` and this.
    fn file_name(&self, end: &str) -> String {
        format!("{}{end}", self.store_file.stem())
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the database.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".db"))
    }

    /// Returns the path of the write-ahead log.
    #[must_use]
    pub fn wal_path(&self) -> PathBuf {
        with_suffix(&self.linked_database_path(), "-wal")
    }

    /// Returns the path of the shared memory.
    pub(crate) fn shared_memory_path(&self) -> PathBuf {
        with_suffix(&self.linked_database_path(), "-shm")
    }

    /// Returns the path of the database, or where it leads if it is a symbolic link: there SQLite
    /// keeps the files beside it.
    pub(crate) fn linked_database_path(&self) -> PathBuf {
        let path = self.database_path();
        link_target(&path).unwrap_or(path)
    }

    /// Fails if the database is no regular file: to open a pipe waits until another program opens
    /// it.
    pub(crate) fn check_is_file(&self) -> Result<()> {
        let path = self.database_path();
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() => {
                Err(file_error_at(&path)(std::io::Error::other("is not a regular file")))
            }
            _ => Ok(()),
        }
    }

    /// Fails if batches were written although the database has no tables: another program emptied
    /// it. A store that can be made again may be deleted.
    pub(crate) fn check_not_truncated(&self) -> Result<()> {
        self.refuse_content_in(&[self.notify_path()])
    }

    /// Fails if another program emptied the database file. For callers that have not opened it yet:
    /// SQLite deletes the log of an empty file, which may have everything that can be saved.
    pub(crate) fn check_not_emptied(&self) -> Result<()> {
        match fs::metadata(self.database_path()) {
            Ok(file) if file.len() == 0 => {
                self.refuse_content_in(&[self.notify_path(), self.wal_path()])
            }
            _ => Ok(()),
        }
    }

    /// Fails if one of the files beside an empty database has content.
    fn refuse_content_in(&self, files: &[PathBuf]) -> Result<()> {
        let has_content = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let has_batches = files.iter().any(has_content);
        if has_batches && self.store_file == StoreFile::Data {
            let what = "the file is empty although it contained items".to_string();
            return Err(Error::Damaged { path: self.database_path(), what });
        }
        Ok(())
    }

    /// Deletes the write-ahead log that a deleted database left, which SQLite would copy into the
    /// new one, and its mark.
    pub(crate) fn delete_log_of_deleted_store(&self) -> Result<()> {
        if self.store_file == StoreFile::Data {
            return Ok(());
        }
        for path in [self.wal_path(), self.shared_memory_path(), self.unsynced_mark_path()] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error_at(&path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates the files of the write-ahead log if they are missing. SQLite would create them, too,
    /// but if that fails it opens them read-only, and the reason is lost.
    pub(crate) fn create_log_files(&self) -> Result<()> {
        let path = self.database_path();
        // An empty database has no log.
        let has_log = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() > 0);
        for path in [self.wal_path(), self.shared_memory_path()].iter().filter(|_| has_log) {
            let mut options = fs::OpenOptions::new();
            // An existing file is in use, perhaps by this process: to open and close it would
            // release SQLite's locks.
            match options.write(true).create_new(true).mode(0o600).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => drop(created.map_err(file_error_at(path))?),
            }
        }
        Ok(())
    }

    /// Returns the path of the notify file, which has the record of the last commit.
    #[must_use]
    pub fn notify_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".notify"))
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".lock"))
    }

    pub(crate) fn lock_queue_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".lock-queue"))
    }

    pub(crate) fn work_lock_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".lock-work"))
    }

    /// Returns the path of the mark of a store whose writes are not synced.
    pub(crate) fn unsynced_mark_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".unsynced"))
    }

    /// Returns an unused name for a copy of the database, without a log that SQLite would apply to
    /// the copy.
    pub(crate) fn unused_copy_path(&self, what: &str) -> PathBuf {
        self.find_copy_path(what, |path| !path.exists() && find_log_beside(path).is_none())
    }

    /// Returns an unused name for a damaged database that is set aside with its log and journal.
    pub(crate) fn unused_damaged_path(&self) -> PathBuf {
        self.find_copy_path("damaged", |path| {
            !path.exists() && !LOG_SUFFIXES.iter().any(|end| with_suffix(path, end).exists())
        })
    }

    fn find_copy_path(&self, what: &str, is_accepted: impl Fn(&PathBuf) -> bool) -> PathBuf {
        let accepted = self.copy_paths(what).find(is_accepted);
        accepted.unwrap_or_else(|| self.dir.join(self.file_name(".db.before")))
    }

    /// Returns the names of copies of the database with this purpose, in the order of their use.
    fn copy_paths(&self, what: &str) -> impl Iterator<Item = PathBuf> {
        let first = self.dir.join(self.file_name(&format!(".db.before-{what}")));
        let others = (1_u32..).map({
            let first = first.clone();
            move |n| with_suffix(&first, &format!("-{n}"))
        });
        std::iter::once(first).chain(others)
    }

    /// Returns the copies of the database that migrations and restores made.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn list_copies(&self) -> Result<Vec<PathBuf>> {
        self.list_copy_files(&|name| {
            copy_of_companion(name).is_none() && !name.ends_with(STAGING_SUFFIX)
        })
    }

    /// Returns the files that SQLite kept beside copies of the database that are missing.
    pub(crate) fn list_orphaned_companions(&self) -> Result<Vec<PathBuf>> {
        self.list_copy_files(&|name| {
            copy_of_companion(name).is_some_and(|copy| !self.dir.join(copy).exists())
        })
    }

    /// Returns the files whose names begin like those of copies and are accepted by `is_listed`.
    fn list_copy_files(&self, is_listed: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
        let (mut found, prefix) = (Vec::new(), self.file_name(".db.before-"));
        for entry in fs::read_dir(&self.dir).map_err(file_error_at(&self.dir))? {
            let entry = entry.map_err(file_error_at(&self.dir))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&prefix) && is_listed(&name) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the copies of the database that can be restored: without the damaged ones that were
    /// set aside. None if the directory cannot be read.
    #[must_use]
    pub fn restorable_copies(&self) -> Vec<PathBuf> {
        let mut copies = self.list_copies().unwrap_or_default();
        copies.retain(|path| !self.is_damaged_copy(path));
        copies
    }

    /// Returns whether a copy has the name of a database that was set aside.
    pub(crate) fn is_damaged_copy(&self, copy: &Path) -> bool {
        let prefix = self.file_name(".db.before-damaged");
        copy.file_name().unwrap_or_default().to_string_lossy().starts_with(&prefix)
    }

    /// Returns whether the directory has a store. Where that cannot be seen, as without permission,
    /// it counts as there: to open it is an error, and to take it for missing would be wrong.
    #[must_use]
    pub fn has_store(&self) -> bool {
        self.database_path().try_exists().unwrap_or(true)
    }

    /// Fails if the directory has no store. A directory that the caller may not read is a different
    /// error.
    pub(crate) fn ensure_store_exists(&self) -> Result<()> {
        let path = self.database_path();
        match path.try_exists() {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.refuse_lost_store()?;
                Err(Error::NoStore { dir: self.dir.clone() })
            }
            Err(error) => Err(file_error_at(&self.dir)(error)),
        }
    }

    /// Fails if the directory had a store that is missing now: a new one in its place would take
    /// the labels and the sources from the indexes.
    ///
    /// # Errors
    /// [`Error::StoreMissing`]
    pub fn refuse_lost_store(&self) -> Result<()> {
        match self.is_database_lost() {
            true => Err(Error::StoreMissing { path: self.database_path() }),
            false => Ok(()),
        }
    }

    /// Returns whether a database that is missing was there: other files of the directory are
    /// written after it only. One that is being created or replaced is not lost, so the files that
    /// say so are looked for last.
    fn is_database_lost(&self) -> bool {
        let has_content = |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
        let has_index = || {
            [StoreFile::Index, StoreFile::Commits].into_iter().any(|store_file| {
                has_content(self.clone().with_store_file(store_file).database_path())
            })
        };
        self.store_file == StoreFile::Data
            && (has_content(self.notify_path()) || has_content(self.wal_path()) || has_index())
            && !self.pending_restore_path().exists()
            && !self.has_store()
    }

    /// Returns the path of a backup that is about to replace a damaged store.
    pub(crate) fn pending_restore_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".db.restoring"))
    }

    /// Returns the path of the file with the name under which a pending restore sets the damaged
    /// store aside.
    pub(crate) fn damaged_name_path(&self) -> PathBuf {
        self.dir.join(self.file_name(".db.damaged-name"))
    }

    /// Returns the beginning of the names of staging files in the directory, with their purpose.
    pub(crate) fn staging_prefix(&self, purpose: &str) -> String {
        self.file_name(&format!(".db.{purpose}-"))
    }

    /// Calls `visit` with each staging file that a killed process left. For writers that hold the
    /// lock.
    pub(crate) fn for_each_leftover(
        &self,
        visit: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<()> {
        for_each_leftover(&self.dir, &self.file_name(".db."), visit)
            .map_err(file_error_at(&self.dir))
    }

    /// Fails if the database has several names: each name would have its own write-ahead log.
    pub(crate) fn check_single_name(&self) -> Result<()> {
        let path = self.database_path();
        let found = fs::metadata(&path).map_err(file_error_at(&path))?;
        let names = found.nlink();
        // The links of a directory are its subdirectories.
        if found.is_file() && names > 1 { Err(Error::SeveralNames { path, names }) } else { Ok(()) }
    }

    /// Returns the permissions of the directory if other users have any; `None`: they have none, or
    /// there is no directory.
    #[must_use]
    pub fn permissions_of_others(&self) -> Option<u32> {
        let found = fs::metadata(&self.dir).ok().filter(fs::Metadata::is_dir)?;
        let mode = found.mode() & 0o7777;
        (mode & 0o077 != 0).then_some(mode)
    }

    /// Creates the directory if it is missing (mode 0700), so that it survives a power cut, and
    /// refuses network file systems by name.
    pub(crate) fn ensure_directory(&self) -> Result<()> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<&Path> = self.dir.ancestors().take_while(is_missing).collect();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(file_error_at(&self.dir))?;
        for created in missing {
            sync_folder_of(created).map_err(file_error_at(folder_of(created)))?;
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let dir = self.dir.canonicalize().map_err(file_error_at(&self.dir))?;
        match file_system_type(&mounts, &dir) {
            Some(name) if NETWORK_FILE_SYSTEMS.contains(&name) => Err(Error::NetworkFileSystem {
                dir: self.dir.clone(),
                file_system: name.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Creates an empty file where a symbolic link in the place of the database leads.
    pub(crate) fn create_link_target(&self) -> Result<()> {
        let path = self.database_path();
        if path.exists() {
            return Ok(());
        }
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .and_then(|_| fs::File::open(&self.dir)?.sync_all())
            .map_err(file_error_at(&path))
    }
}

/// Returns the name of the database beside which SQLite keeps the file of this name; `None` if it
/// is no such file.
fn copy_of_companion(name: &str) -> Option<&str> {
    COMPANION_SUFFIXES.iter().find_map(|end| name.strip_suffix(end))
}

/// Returns the type of the file system of `dir` from the text of the mount table (proc(5),
/// mountinfo): the type of the last mount among those with the longest mount point that is a prefix
/// of `dir`.
fn file_system_type<'a>(mounts: &'a str, dir: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut halves = line.splitn(2, " - ");
        let (Some(left), Some(right)) = (halves.next(), halves.next()) else { continue };
        let (Some(point), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else {
            continue;
        };
        let point = point.replace("\\040", " ");
        if dir.starts_with(&point) && best.is_none_or(|(length, _)| point.len() >= length) {
            best = Some((point.len(), kind));
        }
    }
    best.map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_names_the_file_system() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 22 0:40 / /home/a\\040b rw shared:1 - nfs4 server:/x rw\n\
                      31 22 0:41 / /mnt rw - fuse.sshfs me@there rw\nnonsense\n";
        let check = |dir: &str, expect| {
            assert_eq!(file_system_type(mounts, Path::new(dir)), expect, "{dir}");
        };
        check("/var/lib", Some("ext4"));
        check("/home/a b/larder", Some("nfs4"));
        check("/mnt/x", Some("fuse.sshfs"));
        check("/mntx", Some("ext4"));
        assert_eq!(file_system_type("", Path::new("/")), None);
    }

    #[test]
    fn a_file_where_the_directory_should_be() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let path = scratch.path().join("file");
        fs::write(&path, "x").expect("a file");
        assert!(matches!(DataDirectory::new(path).ensure_directory(), Err(Error::File { .. })));
    }
    #[test]
    fn the_log_of_a_linked_database_is_beside_its_file() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let (real, data) = (scratch.path().join("real.db"), scratch.path().join("data.db"));
        std::os::unix::fs::symlink(&real, data).expect("a link");
        let directory = DataDirectory::new(scratch.path());
        for (content, has_log) in [("", false), ("content", true)] {
            fs::write(&real, content).expect("a file");
            directory.create_log_files().expect("files of a log");
            assert_eq!(scratch.path().join("real.db-wal").exists(), has_log);
        }
        assert!(!scratch.path().join("data.db-wal").exists());
    }
}
