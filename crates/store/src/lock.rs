//! The write lock, which is fair and blocks, and the notify file, which is written after a commit.
//!
//! SQLite's own lock is neither fair nor blocking: a writer that loops acquires it again at once.
//! Here a writer first takes `data.lock-queue`, then `data.lock`, then releases the queue: a
//! waiting writer holds the queue, so the writer that has just released `data.lock` comes after it.
//! The system releases both locks when a process dies; a lock file that still holds
//! [`WRITING_MARK`] tells the next writer that its owner died in the middle of a write.

use crate::data_directory::DataDirectory;
use crate::error::{Result, file_error_at};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The content of the lock file during a write, and afterwards. Both have one length, as each
/// change of a file's length is an entry in the file system's journal.
const WRITING_MARK: &[u8; 8] = b"writing\n";
const IDLE_MARK: &[u8; 8] = b"idle   \n";

/// The files of the lock, kept open.
#[derive(Debug)]
pub(crate) struct LockFiles {
    directory: DataDirectory,
    lock_file: File,
    queue_file: File,
    notify_file: File,
}

/// The write lock, held until dropped.
#[derive(Debug)]
pub(crate) struct WriteLock<'a> {
    locks: &'a LockFiles,
    /// The previous owner died while it held the lock.
    pub(crate) unclean: bool,
    /// The store was verified since.
    marked_clean: Cell<bool>,
}

impl WriteLock<'_> {
    /// Removes the mark of the previous owner: the store was verified, and nothing is wrong.
    pub(crate) fn mark_clean(&self) {
        self.marked_clean.set(true);
    }

    fn mark_idle(&self) -> std::io::Result<()> {
        let lock = &self.locks.lock_file;
        lock.write_all_at(IDLE_MARK, 0)?;
        // A mark that was not ours may have been longer.
        if self.unclean { lock.set_len(IDLE_MARK.len() as u64) } else { Ok(()) }
    }
}

fn open_file(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(file_error_at(path))
}

impl LockFiles {
    pub(crate) fn open(directory: &DataDirectory) -> Result<LockFiles> {
        Ok(LockFiles {
            lock_file: open_file(&directory.lock_path())?,
            queue_file: open_file(&directory.lock_queue_path())?,
            notify_file: open_file(&directory.notify_path())?,
            directory: directory.clone(),
        })
    }

    /// Opens the files where nothing can be written. The directory stands in for a missing file.
    pub(crate) fn open_read_only(directory: &DataDirectory) -> Result<LockFiles> {
        let open = |path: &Path| {
            let file = File::open(path).or_else(|_| File::open(directory.path()));
            file.map_err(file_error_at(path))
        };
        Ok(LockFiles {
            lock_file: open(&directory.lock_path())?,
            queue_file: open(&directory.lock_queue_path())?,
            notify_file: open(&directory.notify_path())?,
            directory: directory.clone(),
        })
    }

    /// Waits for the write lock.
    pub(crate) fn acquire(&self) -> Result<WriteLock<'_>> {
        let (lock, queue) = (self.directory.lock_path(), self.directory.lock_queue_path());
        self.queue_file.lock().map_err(file_error_at(&queue))?;
        let locked = self.lock_file.lock();
        self.queue_file.unlock().map_err(file_error_at(&queue))?;
        locked.map_err(file_error_at(&lock))?;
        let mut found = [0; 2 * IDLE_MARK.len()];
        let length = self.lock_file.read_at(&mut found, 0).map_err(file_error_at(&lock))?;
        // Any other content was written by another program, or incompletely; it also counts as
        // unclean.
        let unclean = length > 0 && found.get(..length) != Some(IDLE_MARK);
        // On a full disk, writing the mark may fail; the transaction then fails as well and is
        // rolled back.
        let _unmarked = self.lock_file.write_all_at(WRITING_MARK, 0);
        Ok(WriteLock { locks: self, unclean, marked_clean: Cell::new(false) })
    }

    /// Writes the number of the last batch to the notify file. A failure is no error: watchers also
    /// look at the store once a second.
    pub(crate) fn notify_commit(&self, seq: crate::Seq) {
        let number = format!("{seq}\n");
        let length = number.len() as u64;
        let write = || -> std::io::Result<()> {
            self.notify_file.write_all_at(number.as_bytes(), 0)?;
            // Only a store that was restored counts from a smaller number.
            if self.notify_file.metadata()?.len() > length {
                self.notify_file.set_len(length)
            } else {
                Ok(())
            }
        };
        let _unnoticed = write();
    }
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        if !self.unclean || self.marked_clean.get() {
            let _left = self.mark_idle();
        }
        let _held = self.locks.lock_file.unlock();
    }
}
