//! The write lock, fair and blocking, and the bell that rings after a commit.
//!
//! SQLite's own lock is neither: a writer that loops re-takes it at once. Here a writer first takes
//! `lock.queue`, then `lock`, then lets the queue go: whoever waits holds the queue, so the one who
//! just let go of `lock` has to queue behind. The system releases both when a process dies; a lock
//! file that still has a mark in it tells the next writer that its owner died in mid-write.

use crate::directory::Directory;
use crate::error::{Result, file};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

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

fn replace(mut at: &File, text: &str) -> std::io::Result<()> {
    at.seek(SeekFrom::Start(0))?;
    at.write_all(text.as_bytes())?;
    // To cut a file costs the file system a step in its log, even where there is nothing to be cut.
    let length = text.len() as u64;
    if at.metadata()?.len() > length { at.set_len(length) } else { Ok(()) }
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
        let mut mark = String::new();
        let mut at = &self.lock;
        at.seek(SeekFrom::Start(0)).map_err(file(&lock))?;
        // A mark that is no text was not written by us: treat it as unclean, too.
        let unclean = at.read_to_string(&mut mark).is_err() || !mark.is_empty();
        // On a full disk the mark may fail; the work then fails by itself, cleanly.
        let _unmarked = replace(&self.lock, "writing\n");
        Ok(WriteLock { locks: self, unclean, verified: Cell::new(false) })
    }

    /// Writes the number of the last batch where other processes watch. A bell that cannot be rung is
    /// no error: watchers look at the store themselves once a second.
    pub(crate) fn ring(&self, seq: crate::Seq) {
        let _unheard = replace(&self.bell, &format!("{seq}\n"));
    }
}

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        if !self.unclean || self.verified.get() {
            let _left = replace(&self.locks.lock, "");
        }
        let _held = self.locks.lock.unlock();
    }
}
