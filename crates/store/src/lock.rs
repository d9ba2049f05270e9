//! The write lock, which is fair and blocks, the lock of long work, and the notify file, which is
//! written after a commit.
//!
//! SQLite's own lock is neither fair nor blocking: a writer that loops acquires it again at once.
//! Here a writer first takes `data.lock-queue`, then `data.lock`, then releases the queue: a
//! waiting writer holds the queue, so the writer that has just released `data.lock` comes after it.
//! The system releases both locks when a process dies; a lock file that still holds
//! [`WRITING_MARK`] tells the next writer that its owner died in the middle of a write.
//!
//! Work of many transactions (a purge, a rebuild) holds `data.lock-work` from its beginning to its
//! end, and takes the write lock for each transaction. Its record in `meta` without this lock is
//! work that was interrupted.

use crate::commit_record::{self, CommittedState};
use crate::data_directory::DataDirectory;
use crate::error::{Result, file_error_at};
use crate::lock_holder::{HOLDER_BYTES, LockHolder, LockRequester};
use std::cell::Cell;
use std::fs::{File, OpenOptions, TryLockError};
use std::mem;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The beginning of the lock file during a write, and afterwards. The text of the holder follows.
/// The file always has the same length, as each change of a file's length is an entry in the file
/// system's journal.
const WRITING_MARK: &[u8; 8] = b"writing\n";
const IDLE_MARK: &[u8; 8] = b"idle   \n";
/// The length of the lock file.
const LOCK_FILE_BYTES: usize = WRITING_MARK.len() + HOLDER_BYTES;
/// The time after which a process that waits for a lock is told who holds it.
const WAIT_NOTICE_DELAY: Duration = Duration::from_secs(2);

/// The files of the lock, kept open.
#[derive(Debug)]
pub(crate) struct LockFiles {
    directory: DataDirectory,
    requester: LockRequester,
    lock_file: File,
    queue_file: File,
    notify_file: File,
    /// Whether the lock of long work is held by these files.
    holds_work: Arc<AtomicBool>,
    /// The write lock that is kept for the next write: whether it is unclean, and marked clean.
    kept: Cell<Option<(bool, bool)>>,
}

/// The lock of long work, held until dropped.
#[derive(Debug)]
pub(crate) struct WorkLock {
    _file: File,
    is_held: Arc<AtomicBool>,
}

impl Drop for WorkLock {
    fn drop(&mut self) {
        self.is_held.store(false, Ordering::Relaxed);
    }
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
    /// Keeps the lock for the next write through the same files: who has waited for it does not
    /// wait twice.
    pub(crate) fn keep(self) {
        self.locks.kept.set(Some((self.unclean, self.marked_clean.get())));
        mem::forget(self);
    }

    /// Removes the mark of the previous owner: the store was verified, and nothing is wrong.
    pub(crate) fn mark_clean(&self) {
        self.marked_clean.set(true);
    }

    fn mark_idle(&self) -> std::io::Result<()> {
        let lock = &self.locks.lock_file;
        lock.write_all_at(IDLE_MARK, 0)?;
        // A mark that was not ours may have been longer.
        if self.unclean { lock.set_len(LOCK_FILE_BYTES as u64) } else { Ok(()) }
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

/// Takes a lock without waiting. Returns false if another process or another open file holds it.
fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(file_error_at(path)(error)),
    }
}

/// Waits, and tells the requester after [`WAIT_NOTICE_DELAY`] who holds the lock. The notice may
/// block, as when nobody reads standard error, so its thread is not waited for: the lock, once
/// taken, would not be released.
fn wait_with_notice<T>(
    requester: &LockRequester,
    holder: impl FnOnce() -> Option<LockHolder> + Send + 'static,
    wait: impl FnOnce() -> T,
) -> T {
    let Some(on_wait) = requester.on_wait.clone() else { return wait() };
    let (waiting, ended) = mpsc::channel::<()>();
    let watch = move || {
        if ended.recv_timeout(WAIT_NOTICE_DELAY) == Err(RecvTimeoutError::Timeout) {
            on_wait(holder().as_ref());
        }
    };
    // Without a thread there is no notice; the lock is taken all the same.
    let _unwatched = thread::Builder::new().name("wait notice".into()).spawn(watch);
    let result = wait();
    drop(waiting);
    result
}

/// Reads the text after `mark` in the lock file at `path`: the process that holds the lock; `None`:
/// another program, which leaves no record. The file is opened for it, as a handle that outlives
/// the wait could hold the lock.
fn read_holder(path: &Path, mark: &[u8]) -> Option<LockHolder> {
    let mut record = vec![0; mark.len() + HOLDER_BYTES];
    File::open(path).ok()?.read_exact_at(&mut record, 0).ok()?;
    LockHolder::from_record(record.strip_prefix(mark)?)
}

impl LockFiles {
    pub(crate) fn open(directory: &DataDirectory, requester: LockRequester) -> Result<LockFiles> {
        Ok(LockFiles {
            lock_file: open_file(&directory.lock_path())?,
            queue_file: open_file(&directory.lock_queue_path())?,
            notify_file: open_file(&directory.notify_path())?,
            directory: directory.clone(),
            requester,
            holds_work: Arc::default(),
            kept: Cell::default(),
        })
    }

    /// Opens the files where nothing can be written. The directory stands in for a missing file.
    pub(crate) fn open_read_only(
        directory: &DataDirectory,
        requester: LockRequester,
    ) -> Result<LockFiles> {
        let open = |path: &Path| {
            let file = File::open(path).or_else(|_| File::open(directory.path()));
            file.map_err(file_error_at(path))
        };
        Ok(LockFiles {
            lock_file: open(&directory.lock_path())?,
            queue_file: open(&directory.lock_queue_path())?,
            notify_file: open(&directory.notify_path())?,
            requester,
            directory: directory.clone(),
            holds_work: Arc::default(),
            kept: Cell::default(),
        })
    }

    /// Waits for the write lock, unless it was kept.
    pub(crate) fn acquire(&self) -> Result<WriteLock<'_>> {
        if let Some(lock) = self.take_kept() {
            return Ok(lock);
        }
        self.wait_in_queue()?;
        Ok(self.mark_taken())
    }

    /// Takes the write lock without waiting; `None`: another process has it, or waits for it.
    pub(crate) fn try_acquire(&self) -> Result<Option<WriteLock<'_>>> {
        if let Some(lock) = self.take_kept() {
            return Ok(Some(lock));
        }
        let queue = self.directory.lock_queue_path();
        if !try_lock(&self.queue_file, &queue)? {
            return Ok(None);
        }
        let is_locked = try_lock(&self.lock_file, &self.directory.lock_path());
        self.queue_file.unlock().map_err(file_error_at(&queue))?;
        Ok(is_locked?.then(|| self.mark_taken()))
    }

    fn take_kept(&self) -> Option<WriteLock<'_>> {
        let (unclean, marked_clean) = self.kept.take()?;
        Some(WriteLock { locks: self, unclean, marked_clean: Cell::new(marked_clean) })
    }

    /// Reads the mark of the previous owner of the write lock, which was taken, and writes that of
    /// this one.
    fn mark_taken(&self) -> WriteLock<'_> {
        let mut found = [0; LOCK_FILE_BYTES + 1];
        // Any other content was written by another program, or incompletely; it also counts as
        // unclean, and so does a mark that cannot be read: the store is verified, and the disk may
        // be able to read that.
        let unclean = match self.lock_file.read_at(&mut found, 0) {
            Ok(length) => {
                length > 0 && !(length == LOCK_FILE_BYTES && found.starts_with(IDLE_MARK))
            }
            Err(_unreadable) => true,
        };
        let mut record = [b' '; LOCK_FILE_BYTES];
        let (mark, holder) = record.split_at_mut(WRITING_MARK.len());
        mark.copy_from_slice(WRITING_MARK);
        holder.copy_from_slice(&self.requester.to_record());
        // On a full disk, writing the mark may fail; the transaction then fails as well and is
        // rolled back.
        let _unmarked = self.lock_file.write_all_at(&record, 0);
        WriteLock { locks: self, unclean, marked_clean: Cell::new(false) }
    }

    fn wait_in_queue(&self) -> Result<()> {
        let (lock, queue) = (self.directory.lock_path(), self.directory.lock_queue_path());
        let is_first = try_lock(&self.queue_file, &queue)?;
        if is_first && try_lock(&self.lock_file, &lock)? {
            return self.queue_file.unlock().map_err(file_error_at(&queue));
        }
        let wait = || {
            if !is_first {
                self.queue_file.lock().map_err(file_error_at(&queue))?;
            }
            let locked = self.lock_file.lock();
            self.queue_file.unlock().map_err(file_error_at(&queue))?;
            locked.map_err(file_error_at(&lock))
        };
        let path = lock.clone();
        wait_with_notice(&self.requester, move || read_holder(&path, WRITING_MARK), wait)
    }

    /// Waits for the lock of long work.
    pub(crate) fn acquire_work_lock(&self) -> Result<WorkLock> {
        let path = self.directory.work_lock_path();
        let file = open_file(&path)?;
        if !try_lock(&file, &path)? {
            let record = path.clone();
            wait_with_notice(&self.requester, move || read_holder(&record, b""), || file.lock())
                .map_err(file_error_at(&path))?;
        }
        Ok(self.hold_work_lock(file))
    }

    /// Takes the lock of long work; `None`: another process is at such work.
    pub(crate) fn try_work_lock(&self) -> Result<Option<WorkLock>> {
        let path = self.directory.work_lock_path();
        let file = open_file(&path)?;
        Ok(try_lock(&file, &path)?.then(|| self.hold_work_lock(file)))
    }

    fn hold_work_lock(&self, file: File) -> WorkLock {
        // Those who wait are told who holds the lock; without the record, that somebody does.
        let _unnamed = file.write_all_at(&self.requester.to_record(), 0);
        self.holds_work.store(true, Ordering::Relaxed);
        WorkLock { _file: file, is_held: Arc::clone(&self.holds_work) }
    }

    /// Returns whether others hold the lock of long work.
    pub(crate) fn is_work_of_others(&self) -> bool {
        !self.holds_work.load(Ordering::Relaxed) && is_work_running(&self.directory)
    }

    /// Writes the state after the last commit to the notify file. A failure is no error: watchers
    /// also look at the store once a second.
    pub(crate) fn notify_commit(&self, state: &CommittedState) {
        let _unnoticed = self.write_record(&[state]);
    }

    /// Writes the states that the store may have from now on to the notify file, and syncs it: the
    /// store gets another epoch, and after a power cut the record must not name a former one.
    pub(crate) fn announce_restore(&self, states: &[&CommittedState]) -> std::io::Result<()> {
        self.write_record(states)?;
        self.notify_file.sync_all()
    }

    fn write_record(&self, states: &[&CommittedState]) -> std::io::Result<()> {
        let record = commit_record::format_record(states);
        let length = record.len() as u64;
        self.notify_file.write_all_at(record.as_bytes(), 0)?;
        // Only a restore makes the record shorter.
        if self.notify_file.metadata()?.len() > length {
            self.notify_file.set_len(length)?;
        }
        Ok(())
    }
}

impl Drop for LockFiles {
    /// Releases a lock that was kept and not needed.
    fn drop(&mut self) {
        drop(self.take_kept());
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

impl DataDirectory {
    /// Returns whether a process is at work of many transactions on the store, such as a
    /// synchronisation.
    #[must_use]
    pub fn has_running_work(&self) -> bool {
        is_work_running(self)
    }
}

/// Returns whether a process holds the lock of long work.
pub(crate) fn is_work_running(directory: &DataDirectory) -> bool {
    // The file is made by the first work of the store.
    let Ok(file) = File::open(directory.work_lock_path()) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
