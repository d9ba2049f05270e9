//! The data directory, which holds the data of one person, and the names of its files.
//!
//! | file | content |
//! |---|---|
//! | `data.db` (and `-wal`, `-shm`) | the store; nothing in it exists elsewhere |
//! | `data.lock`, `data.lock-queue` | the write lock, see `lock` |
//! | `data.lock-work` | the lock of work of many transactions, see `lock` |
//! | `data.notify` | the record of the last commit, see `commit_record`; other processes watch it |
//! | `data.db.before-*` | copies made before a migration or a restore |
//! | `*.partial` | files that are being written, or that a killed process left |

use crate::error::{Error, Result, file_error_at};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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

/// A data directory and the names of its files.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    dir: PathBuf,
}

impl DataDirectory {
    /// Names the directory `dir`, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> DataDirectory {
        DataDirectory { dir: dir.into() }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the database.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.dir.join("data.db")
    }

    /// Returns the path of the write-ahead log.
    #[must_use]
    pub fn wal_path(&self) -> PathBuf {
        self.dir.join("data.db-wal")
    }

    /// Returns the path of the shared memory.
    pub(crate) fn shared_memory_path(&self) -> PathBuf {
        self.dir.join("data.db-shm")
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

    /// Fails if batches were written and the database file is empty: another program emptied it.
    pub(crate) fn check_not_truncated(&self) -> Result<()> {
        let has_batches = fs::metadata(self.notify_path()).is_ok_and(|file| file.len() > 0);
        if has_batches {
            let what = "the file is empty although it contained items".to_string();
            return Err(Error::Damaged { path: self.database_path(), what });
        }
        Ok(())
    }

    /// Returns the path of the notify file, which has the record of the last commit.
    #[must_use]
    pub fn notify_path(&self) -> PathBuf {
        self.dir.join("data.notify")
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.dir.join("data.lock")
    }

    pub(crate) fn lock_queue_path(&self) -> PathBuf {
        self.dir.join("data.lock-queue")
    }

    pub(crate) fn work_lock_path(&self) -> PathBuf {
        self.dir.join("data.lock-work")
    }

    /// Returns an unused name for a copy of the database.
    pub(crate) fn unused_copy_path(&self, what: &str) -> PathBuf {
        let free = |n: &u32| {
            let suffix = if *n == 0 { String::new() } else { format!("-{n}") };
            let path = self.dir.join(format!("data.db.before-{what}{suffix}"));
            (!path.exists()).then_some(path)
        };
        (0..).find_map(|n| free(&n)).unwrap_or_else(|| self.dir.join("data.db.before"))
    }

    /// Returns the copies of the database that migrations and restores made.
    pub(crate) fn list_copies(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(file_error_at(&self.dir))? {
            let entry = entry.map_err(file_error_at(&self.dir))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("data.db.before-")
                && !["-wal", "-shm", "-journal", ".partial"].iter().any(|end| name.ends_with(end))
            {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns whether the directory has a store that the caller has permission to see.
    #[must_use]
    pub fn has_store(&self) -> bool {
        self.database_path().exists()
    }

    /// Fails if the directory has no store. A directory that the caller may not read is a different
    /// error.
    pub(crate) fn ensure_store_exists(&self) -> Result<()> {
        let path = self.database_path();
        match path.try_exists() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::NoStore { dir: self.dir.clone() }),
            Err(error) => Err(file_error_at(&self.dir)(error)),
        }
    }

    /// Deletes the partial files that a killed backup, restore or migration left.
    pub(crate) fn delete_partial_files(&self) -> Result<()> {
        for entry in fs::read_dir(&self.dir).map_err(file_error_at(&self.dir))? {
            let path = entry.map_err(file_error_at(&self.dir))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            if name.starts_with("data.db.") && name.contains(".partial") {
                fs::remove_file(&path).map_err(file_error_at(&path))?;
            }
        }
        Ok(())
    }

    /// Creates the directory if it is missing (mode 0700), and refuses network file systems by
    /// name.
    pub(crate) fn ensure_directory(&self) -> Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(file_error_at(&self.dir))?;
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

    /// Creates an empty database file that only its owner can read, before SQLite would create one.
    pub(crate) fn create_database_file(&self) -> Result<()> {
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
}
