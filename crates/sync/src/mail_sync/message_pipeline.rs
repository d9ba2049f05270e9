//! Reading and parsing new files in several threads.
//!
//! Some files are one job: a thread reads them in the order of their inodes, parses them, and
//! passes them on in batches with their words. Batches are small: the words of a large one do not
//! stay in the processor's cache. The caller gets them in the order of the jobs, so that the index
//! does not depend on the speed of the threads. A job is given out only when an earlier one is
//! done, and has a channel of its own that holds a few batches, which bounds memory.
//! Separate from `mail_sync` so that all code about threads is in one place.

use super::file_changes::{file_path, file_state, read_order};
use super::file_list::{FIRST_DELIVERY, FileList, FileQueue, delivery_time};
use super::{MailSyncOptions, SyncProblem};
use crate::attachment_conversion::ConversionRun;
use crate::error::Error;
use crate::mbox_file::read_indexed_section;
use crate::regular_file::open_regular_file;
use larder_format::maildir_name::MaildirName;
use larder_format::mbox::MboxSection;
use larder_store::{MailBatchBuilder, MailChange, MailFile, MailFileState, Reader, WordBatch};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The first job is small, so that the newest messages are found at once; the size doubles.
const FIRST_JOB_MESSAGES: usize = 128;
/// The number of files of a job, which are read in the order of their inodes.
const JOB_MESSAGES: usize = 512;
/// The most messages of a batch.
const BATCH_MESSAGES: usize = 256;
/// The number of words after which a batch ends: so many that, with those of its last message, they
/// seldom need the next power of two.
const MAX_BATCH_WORDS: usize = 120 << 10;
/// The bytes of converted texts after which a batch ends.
const MAX_CONVERTED_BYTES: usize = 4 << 20;
/// The batches that a thread can be ahead of the writer.
const MAX_WAITING_BATCHES: usize = 4;
/// The time that the converters of a batch take, after which it ends early.
const MAX_BATCH_CONVERSION_TIME: Duration = Duration::from_secs(2);
/// The time between two looks whether a synchronisation is cancelled that waits for converters.
const CANCELLATION_TICK: Duration = Duration::from_millis(100);
/// The bytes of the buffer of files that are kept for the next one.
const MAX_KEPT_BUFFER_BYTES: usize = 4 << 20;

/// The most lists of each pair of directories that a batch makes, to find files that were renamed.
const MAX_RENAME_LISTINGS: usize = 4;

/// A batch that is ready to be written.
pub(super) struct PreparedBatch {
    pub(super) changes: Vec<MailChange>,
    pub(super) words: WordBatch,
    /// The row after the last one of the batch.
    pub(super) end_row: u32,
    pub(super) problems: Vec<SyncProblem>,
    /// The directories with files that could not be read.
    pub(super) unread_directories: Vec<Vec<u8>>,
    /// Those with files that changed less than two seconds before they were read.
    pub(super) recent_directories: Vec<Vec<u8>>,
    /// The files, as directory and name, that the next synchronisation reads again.
    pub(super) postponed: Vec<(Vec<u8>, Vec<u8>)>,
    /// The number of files of the batch.
    pub(super) count: usize,
    /// The bytes of the texts that converters made.
    pub(super) converted_bytes: usize,
}

/// Files to read, with the row of the first one.
struct ReadJob {
    files: Vec<MailFile>,
    first_row: u32,
}

/// A job with the channel for its batches.
type SentJob = (ReadJob, SyncSender<PreparedBatch>);

/// The batches, in the order of their files.
pub(super) struct MessagePipeline {
    /// The files that no thread has.
    queue: FileQueue,
    /// The number of files of the next job, and its first row.
    job_messages: usize,
    job_row: u32,
    /// `None` at the end.
    sender: Option<Sender<SentJob>>,
    /// The channels of the jobs that were given out, in their order.
    pending: VecDeque<Receiver<PreparedBatch>>,
    has_converters: bool,
    /// Ends the converters that are running.
    is_cancelled: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl MessagePipeline {
    /// Starts the threads. With converters, `indexes` has a reader for each.
    pub(super) fn start(
        root: &Path,
        files: FileList,
        first_row: u32,
        options: &MailSyncOptions,
        conversions: &Arc<ConversionRun>,
        indexes: Vec<Reader>,
    ) -> Result<MessagePipeline, Error> {
        let readers = options.readers.max(1);
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let mut indexes = indexes.into_iter();
        let mut threads = Vec::with_capacity(readers);
        let is_cancelled = Arc::<AtomicBool>::default();
        for number in 0..readers {
            let worker = ReadWorker {
                root: root.to_path_buf(),
                jobs: Arc::clone(&receiver),
                builder: MailBatchBuilder::new(&options.personal_addresses),
                sort_inodes: options.sort_inodes,
                batch_messages: options.batch_messages.clamp(1, BATCH_MESSAGES),
                max_message_bytes: options.max_message_bytes,
                bytes: Vec::new(),
                conversions: Arc::clone(conversions),
                index: indexes.next(),
                is_cancelled: Arc::clone(&is_cancelled),
            };
            let thread = Builder::new()
                .name(format!("mail-reader-{number}"))
                .spawn(move || worker.run())
                .map_err(Error::SpawnThread)?;
            threads.push(thread);
        }
        let mut pipeline = MessagePipeline {
            queue: files.into_queue(),
            job_messages: FIRST_JOB_MESSAGES.min(options.batch_messages.max(1)),
            job_row: first_row,
            sender: Some(sender),
            pending: VecDeque::new(),
            has_converters: conversions.has_converters(),
            is_cancelled,
            threads,
        };
        // One more, so that no thread waits for the writer.
        for _ in 0..=readers {
            pipeline.send_job();
        }
        Ok(pipeline)
    }

    /// Gives out the next job, if there is one.
    fn send_job(&mut self) {
        let files = self.queue.take(self.job_messages);
        if files.is_empty() {
            return;
        }
        let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let job = ReadJob { files, first_row: self.job_row };
        self.job_row = self.job_row.saturating_add(count);
        self.job_messages = (self.job_messages * 2).min(JOB_MESSAGES);
        let (sender, batches) = sync_channel(MAX_WAITING_BATCHES);
        // Without threads the channel of the job is closed.
        if self.sender.as_ref().is_some_and(|jobs| jobs.send((job, sender)).is_ok()) {
            self.pending.push_back(batches);
        }
    }

    /// Returns the next batch; `None`: there is none, or `is_cancelled` is true while a converter
    /// is waited for.
    pub(super) fn next_batch(&mut self, is_cancelled: &dyn Fn() -> bool) -> Option<PreparedBatch> {
        loop {
            let batches = self.pending.front()?;
            let received = match self.has_converters {
                true => batches.recv_timeout(CANCELLATION_TICK),
                false => batches.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Timeout) if is_cancelled() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                // All batches of the job came.
                Err(RecvTimeoutError::Disconnected) => {
                    self.pending.pop_front();
                    self.send_job();
                }
            }
        }
    }
}

impl Drop for MessagePipeline {
    /// Ends the threads, and the converters that they run.
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
        self.pending.clear();
        self.sender = None;
        for thread in self.threads.drain(..) {
            // That a thread died was noticed by its missing batches.
            let _died = thread.join();
        }
    }
}

struct ReadWorker {
    root: PathBuf,
    jobs: Arc<Mutex<Receiver<SentJob>>>,
    builder: MailBatchBuilder,
    sort_inodes: bool,
    batch_messages: usize,
    max_message_bytes: u64,
    bytes: Vec<u8>,
    conversions: Arc<ConversionRun>,
    /// The index, which has the texts of attachments that were converted before.
    index: Option<Reader>,
    is_cancelled: Arc<AtomicBool>,
}

impl ReadWorker {
    /// Works until there are no jobs, or nobody wants the results.
    fn run(mut self) {
        loop {
            let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((mut job, sender)) = job else { return };
            if self.sort_inodes {
                job.files.sort_by_key(read_order);
            }
            let mut files = job.files.into_iter();
            let mut row = job.first_row;
            while !files.as_slice().is_empty() {
                let batch = self.prepare_batch(&mut files, &mut row);
                if sender.send(batch).is_err() {
                    return;
                }
            }
        }
    }

    /// Prepares files until a batch has enough messages or words.
    fn prepare_batch(
        &mut self,
        files: &mut std::vec::IntoIter<MailFile>,
        row: &mut u32,
    ) -> PreparedBatch {
        let (mut converted_bytes, mut count, mut conversion_time) = (0, 0, Duration::ZERO);
        let (mut renamed, mut postponed) = (RenamedFiles::default(), Vec::new());
        let (mut changes, mut problems) = (Vec::new(), Vec::new());
        let (mut unread_directories, mut recent_directories) = (Vec::new(), Vec::new());
        while count < self.batch_messages
            && self.builder.word_count() < MAX_BATCH_WORDS
            && converted_bytes < MAX_CONVERTED_BYTES
            && conversion_time < MAX_BATCH_CONVERSION_TIME
            && let Some(mut file) = files.next()
        {
            count += 1;
            let path = file_path(&self.root, &file.directory, &file.name);
            let (state, modified) = match self.read(&path) {
                Ok(read) => read,
                // The next synchronisation sees where the file went.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match self.read_renamed(&file, files.as_slice(), &mut renamed) {
                        Some(read) => read,
                        None => {
                            unread_directories.push(file.directory);
                            continue;
                        }
                    }
                }
                Err(error) => {
                    let reason = error.to_string();
                    problems.push(SyncProblem { path, reason, is_left_out: true });
                    unread_directories.push(file.directory);
                    continue;
                }
            };
            file.state = state;
            let is_new = state.modified == 0 && MboxSection::parse_name(&file.name).is_none();
            if is_new && recent_directories.last() != Some(&file.directory) {
                recent_directories.push(file.directory.clone());
            }
            let fallback_date = match delivery_time(&file.name) {
                delivered if delivered >= FIRST_DELIVERY => delivered,
                _ => modified,
            };
            let mut conversions =
                self.conversions.begin_message(self.index.as_ref(), &path, &self.is_cancelled);
            let (message, document) =
                self.builder.prepare_converted(*row, &self.bytes, fallback_date, &mut |part| {
                    let conversion = conversions.convert(part)?;
                    converted_bytes += conversion.converted.text.len();
                    Some(conversion)
                });
            conversion_time += conversions.spent;
            let is_postponed = conversions.is_postponed;
            *row = row.saturating_add(1);
            for problem in document.problems().iter().filter(|problem| !problem.is_guess()) {
                let reason = problem.to_string();
                problems.push(SyncProblem { path: path.clone(), reason, is_left_out: false });
            }
            let (directory, name) = (file.directory.clone(), file.name.clone());
            changes.push(MailChange::AddFile { file, message: Box::new(message) });
            if is_postponed {
                postponed.push((directory.clone(), name.clone()));
                changes.push(MailChange::ExpireFile { directory, name });
            }
        }
        PreparedBatch {
            changes,
            words: self.builder.take_words(),
            end_row: *row,
            problems,
            unread_directories,
            recent_directories,
            postponed,
            count,
            converted_bytes,
        }
    }

    /// Reads a file into the buffer, see [`read_message`].
    fn read(&mut self, path: &Path) -> io::Result<(MailFileState, i64)> {
        read_message(path, self.max_message_bytes, &mut self.bytes)
    }

    /// Reads a file that was renamed since its directory was listed: a mail reader changed its
    /// flags, or moved it from `new` to `cur`. `others` are those that follow in the batch.
    fn read_renamed(
        &mut self,
        file: &MailFile,
        others: &[MailFile],
        renamed: &mut RenamedFiles,
    ) -> Option<(MailFileState, i64)> {
        let folder = file_path(&self.root, &file.directory, b"").parent()?.to_path_buf();
        let base = MaildirName::parse(&file.name).base;
        // A list of an earlier file may be older than the name.
        let mut is_listed = false;
        loop {
            let path = renamed.find(&folder, base);
            if let Some(read) = path.and_then(|path| self.read(&path).ok()) {
                return Some(read);
            }
            if is_listed || !renamed.list(&self.root, &folder, file, others) {
                return None;
            }
            is_listed = true;
        }
    }
}

/// Reads a file for the index into a buffer. Returns its state, and the time of its last change in
/// seconds since 1970. A file that changed meanwhile has the state of a new one. A file of more
/// than `limit` bytes is no mail.
pub(super) fn read_message(
    path: &Path,
    limit: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<(MailFileState, i64)> {
    bytes.clear();
    bytes.shrink_to(MAX_KEPT_BUFFER_BYTES);
    let (file, metadata) = match open_regular_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let section = read_indexed_section(path, limit);
            let (read, metadata) = section.unwrap_or(Err(error))?;
            *bytes = read;
            let changed = file_state(&metadata).changed;
            let state = MailFileState { size: bytes.len() as u64, modified: 0, changed };
            return Ok((state, metadata.mtime().max(0)));
        }
        opened => opened?,
    };
    if metadata.len() > limit {
        return Err(io::Error::other(format!("larger than {} MiB", limit >> 20)));
    }
    let mut state = file_state(&metadata);
    (&file).take(limit).read_to_end(bytes)?;
    let after = file_state(&file.metadata()?);
    if (after.size, after.changed) != (state.size, state.changed) {
        state.modified = 0;
    }
    Ok((state, metadata.mtime().max(0)))
}

/// The names that files of a batch have now. Mail readers rename many files at once, and a
/// directory is not listed for each.
#[derive(Default)]
struct RenamedFiles {
    folders: HashMap<PathBuf, RenamedFolder>,
}

/// The files of a folder, with the number of times that it was listed.
#[derive(Default)]
struct RenamedFolder {
    listings: usize,
    /// The paths, by the part of the name that stays.
    paths: HashMap<Vec<u8>, PathBuf>,
}

impl RenamedFiles {
    fn find(&self, folder: &Path, base: &[u8]) -> Option<PathBuf> {
        self.folders.get(folder)?.paths.get(base).cloned()
    }

    /// Lists `cur` and `new` of a folder for a file and the others that it may have. Returns
    /// whether it was not listed too often.
    fn list(&mut self, root: &Path, folder: &Path, file: &MailFile, others: &[MailFile]) -> bool {
        let found = self.folders.entry(folder.to_path_buf()).or_default();
        found.listings += 1;
        if found.listings > MAX_RENAME_LISTINGS {
            return false;
        }
        let is_in_folder =
            |other: &&MailFile| file_path(root, &other.directory, b"").parent() == Some(folder);
        let wanted = others.iter().filter(is_in_folder).chain([file]);
        let wanted: HashSet<&[u8]> = wanted.map(|one| MaildirName::parse(&one.name).base).collect();
        found.paths.clear();
        for name in ["new", "cur"] {
            let Ok(entries) = fs::read_dir(folder.join(name)) else { continue };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                let base = MaildirName::parse(name.as_bytes()).base;
                let is_file = || entry.file_type().is_ok_and(|file_type| file_type.is_file());
                if wanted.contains(base) && is_file() {
                    found.paths.insert(base.to_vec(), entry.path());
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail reader opens a folder while it is indexed for the first time.
    #[test]
    fn renamed_files_are_found_with_few_listings() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for name in ["cur", "new"] {
            fs::create_dir_all(root.join("a").join(name)).unwrap();
        }
        let files: Vec<MailFile> = (0..50)
            .map(|number| MailFile {
                directory: b"a/new".to_vec(),
                name: format!("{number}.host").into_bytes(),
                inode: 0,
                flags: Default::default(),
                state: MailFileState::default(),
            })
            .collect();
        for number in 0..40 {
            fs::write(root.join(format!("a/cur/{number}.host:2,S")), "x").unwrap();
        }
        fs::write(root.join("a/cur/other:2,"), "x").unwrap();
        let folder = root.join("a");
        let mut renamed = RenamedFiles::default();
        assert_eq!(renamed.find(&folder, b"0.host"), None);
        assert!(renamed.list(root, &folder, &files[0], &files[1..]));
        for number in 0..50 {
            let path = renamed.find(&folder, format!("{number}.host").as_bytes());
            let expected = root.join(format!("a/cur/{number}.host:2,S"));
            assert_eq!(path, (number < 40).then_some(expected));
        }
        assert_eq!(renamed.find(&folder, b"other"), None);
        // A file that is renamed again is found by another list, but not by any number of lists.
        fs::rename(root.join("a/cur/7.host:2,S"), root.join("a/cur/7.host:2,FS")).unwrap();
        let mut lists = 1;
        while renamed.list(root, &folder, &files[7], &[]) {
            lists += 1;
            let found = renamed.find(&folder, b"7.host");
            assert_eq!(found, Some(root.join("a/cur/7.host:2,FS")));
        }
        assert_eq!(lists, MAX_RENAME_LISTINGS);
    }
}
