//! The write lock, fair and blocking, and the bell that rings after a commit.
//!
//! SQLite's own lock is neither: a writer that loops re-takes it at once. Here a writer first takes
//! `lock.queue`, then `lock`, then lets the queue go: whoever waits holds the queue, so the one who
//! just let go of `lock` has to queue behind. The system releases both when a process dies; a lock
//! file that still says [`WRITING`] tells the next writer that its owner died in mid-write.

use crate::directory::Directory;
use crate::error::{Result, file};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// What is in the lock file while somebody writes, and afterwards. Both are of one length: to cut a file, and to let it grow
/// again, costs the file system a step in its log each time.
const WRITING: &[u8; 8] = b"writing\n";
const AT_REST: &[u8; 8] = b"at rest\n";

/// The files of the lock, kept open.
#[derive(Debug)]
pub(crate) struct Locks {
    directory: Directory,
    lock: File,
    queue: File,
    bell: File,
}

/// The right to write, until dropped.
#[derive(Debug)]
pub(crate) struct WriteLock<'a> {
    locks: &'a Locks,
    /// The former owner died while it held the lock.
    pub(crate) unclean: bool,
    /// Somebody made sure since that nothing is wrong.
    verified: Cell<bool>,
}

impl WriteLock<'_> {
    /// Takes the former owner's mark away: what it left was looked at, and nothing is wrong with it.
    pub(crate) fn verified(&self) {
        self.verified.set(true);
    }

    fn mark_at_rest(&self) -> std::io::Result<()> {
        let lock = &self.locks.lock;
        lock.write_all_at(AT_REST, 0)?;
        // A mark that was not ours may have been longer.
        if self.unclean { lock.set_len(AT_REST.len() as u64) } else { Ok(()) }
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(file(path))
}

impl Locks {
    pub(crate) fn open(directory: &Directory) -> Result<Locks> {
        Ok(Locks {
            lock: open(&directory.lock())?,
            queue: open(&directory.queue())?,
            bell: open(&directory.bell())?,
            directory: directory.clone(),
        })
    }

    /// Waits for the right to write.
    pub(crate) fn acquire(&self) -> Result<WriteLock<'_>> {
        let (lock, queue) = (self.directory.lock(), self.directory.queue());
        self.queue.lock().map_err(file(&queue))?;
        let locked = self.lock.lock();
        self.queue.unlock().map_err(file(&queue))?;
        locked.map_err(file(&lock))?;
        let mut found = [0; 2 * AT_REST.len()];
        let length = self.lock.read_at(&mut found, 0).map_err(file(&lock))?;
        // Whatever else is in it was not written by us, or not to its end: it is unclean, too.
        let unclean = length > 0 && found.get(..length) != Some(AT_REST);
        // On a full disk the mark may fail; the work then fails by itself, cleanly.
        let _unmarked = self.lock.write_all_at(WRITING, 0);
        Ok(WriteLock { locks: self, unclean, verified: Cell::new(false) })
    }

    /// Writes the number of the last batch where other processes watch. A bell that cannot be rung is
    /// no error: watchers look at the store themselves once a second.
    pub(crate) fn ring(&self, seq: crate::Seq) {
        let number = format!("{seq}\n");
        let length = number.len() as u64;
        let ring = || -> std::io::Result<()> {
            self.bell.write_all_at(number.as_bytes(), 0)?;
            // Only a store that was restored counts from a smaller number.
            if self.bell.metadata()?.len() > length { self.bell.set_len(length) } else { Ok(()) }
        };
        let _unheard = ring();
    }
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        if !self.unclean || self.verified.get() {
            let _left = self.mark_at_rest();
        }
        let _held = self.locks.lock.unlock();
    }
}
