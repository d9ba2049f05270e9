//! Bringing the index of a maildir up to date.
//!
//! 1. The maildir is scanned (`maildir`), and the directories whose state changed are listed.
//! 2. Their files are compared with those that the store knows (`file_changes`): a file with a
//!    known base name and inode was renamed or moved, and is not read.
//! 3. Renames are written first, then new files, the newest mail first: threads read and parse them
//!    (`message_pipeline`) while this one writes (`message_writer`). Files that went away are
//!    removed at the end, so that a message which a mail program copied and deleted keeps its row.
//! 4. The new state of a directory is written. After an interruption it is listed again. It has an
//!    empty state until the first time that its files were read to the end.
//! 5. Files that the store marks are read again: those that were edited in place, those whose
//!    message lost the file that it had its values from, and after a change of the rules by which
//!    messages are read, all. The marks are in the store, so an interruption loses none.
//!
//! Nothing in the maildir is changed. Separate from `import`, which copies items into the store.

mod absent_mail;
mod directory_listing;
mod directory_pairs;
mod file_changes;
mod file_list;
mod mbox_listing;
mod message_pipeline;
mod message_writer;
mod name_packer;
mod verification;

pub use self::absent_mail::find_absent_mail;
pub(crate) use self::message_writer::{MERGED_BYTES, merge_written_words};
pub use self::verification::{MailDisagreement, MailFinding, MailVerificationReport, verify_mail};

use crate::attachment_conversion::{ConversionFailure, ConversionRun, ConverterSettings};
use crate::error::Error;
use crate::maildir::{
    DirectoryContents, MailSourceFormat, MaildirDirectory, MaildirProblem, is_empty_file, scan_mail,
};
use absent_mail::describe_empty_source;
use directory_pairs::pair_directories;
use file_changes::{
    DirectoryListing, GoneDirectory, KnownDirectory, ResolvedChanges, UNSETTLED_STATE, file_path,
};
use file_list::FileList;
use larder_edit::LabelFollower;
use larder_store::{
    BatchChange, MailBatch, MailBatchBuilder, MailChange, MailDirectoryRecord, MailFile,
    MailSyncLock, Operation, Reader, ReadingRules, StepSize, Store,
};
use message_pipeline::MessagePipeline;
use message_writer::{MessageWriter, merge_segments};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasher as _;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most messages of a transaction. One has fewer if they would hold the lock for longer than
/// [`StepSize`] allows.
pub const DEFAULT_MAIL_BATCH: usize = 2048;
/// The number of renames and removals of a batch.
const CHANGES_PER_BATCH: StepSize = StepSize::in_index(1000, 50..=4000);

/// The largest message that is read.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;
/// The number of reader threads that is worth its memory.
const MAX_READERS: usize = 8;

/// The settings of a synchronisation.
#[derive(Debug, Clone)]
pub struct MailSyncOptions {
    /// List all directories, also those whose state did not change, and look at each file.
    pub is_full: bool,
    /// Files that are looked at, as all are in a full synchronisation: they were edited, or made
    /// again under their names.
    pub edited_files: BTreeSet<PathBuf>,
    /// Directories whose files are looked at: some of them may have been edited.
    pub edited_directories: BTreeSet<PathBuf>,
    /// Files whose attachments are not tried again, see [`MailSyncReport::postponed_files`].
    pub skipped_files: BTreeSet<PathBuf>,
    /// The most messages that are written in one transaction.
    pub batch_messages: usize,
    /// The number of threads that read and parse.
    pub readers: usize,
    /// Read the files of a batch in the order of their inodes.
    pub sort_inodes: bool,
    /// The largest message that is read. Larger ones are no mail: no server accepts them.
    pub max_message_bytes: u64,
    /// The addresses of the user.
    pub personal_addresses: Vec<String>,
    /// The converters of attachments.
    pub converters: ConverterSettings,
}

impl Default for MailSyncOptions {
    fn default() -> MailSyncOptions {
        MailSyncOptions {
            is_full: false,
            edited_files: BTreeSet::new(),
            edited_directories: BTreeSet::new(),
            skipped_files: BTreeSet::new(),
            batch_messages: DEFAULT_MAIL_BATCH,
            readers: std::thread::available_parallelism().map_or(1, usize::from).min(MAX_READERS),
            sort_inodes: true,
            max_message_bytes: MAX_MESSAGE_BYTES,
            personal_addresses: Vec::new(),
            converters: ConverterSettings::default(),
        }
    }
}

/// The result of a synchronisation.
#[derive(Debug, Default)]
pub struct MailSyncReport {
    /// The number of new files.
    pub added_files: usize,
    /// The number of known files that were read again.
    pub reread_files: usize,
    /// The number of files that were renamed or moved.
    pub renamed_files: usize,
    /// The number of files that went away.
    pub removed_files: usize,
    /// The number of directories.
    pub directories: usize,
    /// The number of directories that were listed.
    pub listed_directories: usize,
    /// The paths of all folders and directories that the scan found.
    pub scanned_folders: Vec<PathBuf>,
    /// The mbox files to which links lead, and missing and empty files that may become some.
    pub link_targets: Vec<PathBuf>,
    /// Folders and files that could not be read, and damaged messages. One that is read again is
    /// named again only if its file changed.
    pub problems: Vec<SyncProblem>,
    /// Files with attachments that had no time because of the others of their message: the next
    /// synchronisation reads them again. None if the converters had used up the time of the run,
    /// because most files were not tried then.
    pub postponed_files: Vec<PathBuf>,
    /// Whether an mbox file was emptied or written anew a moment ago: its messages stay as they are
    /// known until a later synchronisation.
    pub has_unsettled_files: bool,
    /// Attachments that could not be converted.
    pub conversion_failures: Vec<ConversionFailure>,
    /// Whether the user interrupted it. What was committed stays.
    pub is_interrupted: bool,
}

/// A folder or a file that could not be read, or a message that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncProblem {
    /// The path.
    pub path: PathBuf,
    /// The reason, for a person.
    pub reason: String,
    /// Whether nothing of the file is in the index.
    pub is_left_out: bool,
}

/// The progress of a synchronisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncProgress {
    /// The number of new files that are in the index.
    pub done: usize,
    /// The number of new files.
    pub total: usize,
}

/// A synchronisation of one maildir.
struct MailSync<'s> {
    store: &'s mut Store,
    root: &'s Path,
    format: MailSourceFormat,
    collection: &'s str,
    options: &'s MailSyncOptions,
    operation: Operation,
    report: MailSyncReport,
    conversions: Arc<ConversionRun>,
    /// The paths of known files whose contents changed. The damage of others was named when they
    /// were read first.
    altered: FxHashSet<PathBuf>,
    /// All files that are read again are such: an interrupted synchronisation marked them.
    is_any_altered: bool,
    /// The files, as directory and name, that the next synchronisation reads again.
    postponed: HashSet<(Vec<u8>, Vec<u8>)>,
    /// `None`: no labels are followed.
    labels: Option<&'s mut LabelFollower>,
    is_cancelled: &'s dyn Fn() -> bool,
}

/// The files that were read and written.
#[derive(Debug, Default)]
struct ReadFiles {
    count: usize,
    /// The directories with files that could not be read.
    unread_directories: FxHashSet<Vec<u8>>,
    /// Those with files that changed less than two seconds before they were read.
    recent_directories: FxHashSet<Vec<u8>>,
}

/// A source of mail, with the collection that its messages are in.
#[derive(Debug, Clone, Copy)]
pub struct MailSource<'s> {
    /// The maildir, the mbox file, or the folder of files.
    pub root: &'s Path,
    /// Its files.
    pub format: MailSourceFormat,
    /// The name of the collection.
    pub collection: &'s str,
}

/// Brings the index of the maildir at `root` up to date. `report_progress` is called after each
/// batch; the work ends early when `is_cancelled` returns true.
///
/// # Errors
/// The root cannot be listed, or has no directories `cur` or `new`, or files of mail, although
/// messages of it are known: it may be on a disk that is not mounted. The store cannot be written.
pub fn sync_maildir(
    store: &mut Store,
    root: &Path,
    collection: &str,
    options: &MailSyncOptions,
    report_progress: &mut dyn FnMut(SyncProgress),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<MailSyncReport, Error> {
    let lock = store.lock_mail_sync()?;
    let source = MailSource { root, format: MailSourceFormat::Maildir, collection };
    sync_locked_mail(store, &lock, source, options, None, report_progress, is_cancelled)
}

/// Brings the index of a source of mail up to date, as [`sync_maildir`], while the caller holds the
/// lock. `labels` are followed between the transactions; if that fails, no more, because those who
/// follow them afterwards name the failure.
///
/// # Errors
/// As [`sync_maildir`].
pub fn sync_locked_mail(
    store: &mut Store,
    lock: &MailSyncLock,
    source: MailSource<'_>,
    options: &MailSyncOptions,
    labels: Option<&mut LabelFollower>,
    report_progress: &mut dyn FnMut(SyncProgress),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<MailSyncReport, Error> {
    let MailSource { root, format, collection } = source;
    let first_row = store.next_mail_row(lock)?;
    let mut sync = MailSync {
        store,
        root,
        format,
        collection,
        options,
        operation: Operation::new("sync", collection, now_milliseconds()),
        report: MailSyncReport::default(),
        conversions: Arc::new(ConversionRun::new(&options.converters, options.is_full)),
        altered: FxHashSet::default(),
        is_any_altered: false,
        postponed: HashSet::new(),
        labels,
        is_cancelled,
    };
    sync.run(first_row, report_progress)?;
    sync.report.conversion_failures = sync.conversions.failures();
    if !sync.conversions.is_out_of_time() {
        let postponed = sync.postponed.iter();
        sync.report.postponed_files =
            postponed.map(|(directory, name)| file_path(root, directory, name)).collect();
    }
    Ok(sync.report)
}

/// Returns whether messages of the index were read with other rules than those of this program and
/// these addresses and converters of the user. The next synchronisation reads them again.
///
/// # Errors
/// The store cannot be read.
pub fn is_mail_outdated(
    reader: &Reader,
    personal_addresses: &[String],
    converters: &ConverterSettings,
) -> Result<bool, Error> {
    let rules = reader.mail()?.reading_rules()?;
    let fingerprint = reading_fingerprint(personal_addresses, converters);
    Ok(rules.has_outdated_messages || rules.fingerprint.is_some_and(|known| known != fingerprint))
}

/// Returns the text that identifies the rules by which messages are read.
fn reading_fingerprint(personal_addresses: &[String], converters: &ConverterSettings) -> String {
    MailBatchBuilder::new(personal_addresses).fingerprint_text() + &converters.fingerprint_text()
}

pub(crate) fn now_milliseconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl MailSync<'_> {
    fn run(
        &mut self,
        first_row: u32,
        report_progress: &mut dyn FnMut(SyncProgress),
    ) -> Result<(), Error> {
        let scanned_at = now_milliseconds() / 1000;
        let unreadable = |source| Error::Maildir { path: self.root.to_path_buf(), source };
        let scan = scan_mail(self.root, self.format).map_err(unreadable)?;
        let known = self.read_known_directories()?;
        if scan.directories.is_empty() && !known.is_empty() && !is_empty_file(self.root) {
            let known: Vec<&[u8]> = known.iter().map(|one| one.path.as_slice()).collect();
            let problem = scan.problems.first().map(problem_of);
            let reason =
                describe_empty_source(self.root, self.format, self.collection, &known, problem);
            return Err(Error::EmptyMaildir { path: self.root.to_path_buf(), reason });
        }
        self.report.directories = scan.directories.len();
        self.report.scanned_folders.clone_from(&scan.folders);
        self.report.link_targets.clone_from(&scan.link_targets);
        let folders =
            scan.directories.iter().filter(|one| one.contents == DirectoryContents::Maildir);
        self.report.scanned_folders.extend(folders.map(|directory| directory.path.clone()));
        self.report.problems.extend(scan.problems.iter().map(problem_of));
        let paths: Vec<Vec<u8>> =
            scan.directories.iter().map(|directory| self.relative_path(directory)).collect();
        let (known, unscanned) = pair_directories(&paths, &known, |record| &record.path);
        let gone = self.find_gone_directories(&scan, &unscanned, scanned_at);
        let (listings, files) = self.list_directories(&scan, &known, &gone, scanned_at)?;
        self.report.listed_directories = listings.len();
        let known_rules = self.store.open_reader()?.mail()?.reading_rules()?;
        self.write_changes(
            &scan.directories,
            &listings,
            &gone,
            (files, known_rules),
            first_row,
            report_progress,
        )
    }

    /// Reads the directories that the store knows.
    fn read_known_directories(&self) -> Result<Vec<KnownDirectory>, Error> {
        let reader = self.store.open_reader()?;
        let mail = reader.mail()?;
        let mut known = Vec::new();
        for record in mail.directories(self.collection)? {
            known.push(KnownDirectory { id: record.id, path: record.path, state: record.state });
        }
        Ok(known)
    }

    fn write_changes(
        &mut self,
        scanned: &[MaildirDirectory],
        listings: &[DirectoryListing],
        gone: &[GoneDirectory],
        (mut files, known_rules): (ResolvedChanges, ReadingRules),
        first_row: u32,
        report_progress: &mut dyn FnMut(SyncProgress),
    ) -> Result<(), Error> {
        let put = |listing: &DirectoryListing, state: &[u8]| MailChange::PutDirectory {
            path: listing.path.clone(),
            folder: listing.folder.clone(),
            is_new: listing.is_new,
            state: state.to_vec(),
        };
        let rules = reading_fingerprint(&self.options.personal_addresses, &self.options.converters);
        let has_other_rules = known_rules.fingerprint.as_ref() != Some(&rules);
        // Conversions that failed are tried again.
        let unconverted = match self.options.is_full {
            true => self.store.open_reader()?.mail()?.unconverted_files(self.collection)?,
            false => Vec::new(),
        };
        self.altered = mem::take(&mut files.altered);
        if !known_rules.has_outdated_messages {
            // Looking for them takes half of the time of a run without a change, which marks none.
            self.is_any_altered = files.is_unchanged && unconverted.is_empty() && !has_other_rules;
            if !self.is_any_altered {
                self.add_files_left_expired()?;
            }
        }
        if has_other_rules {
            self.apply(vec![MailChange::SetReadingRules(rules)], None, 0)?;
        }
        // While files are missing in the index, the directory counts as not listed.
        let opened = listings.iter().filter(|listing| listing.known.is_none() || !files.is_empty());
        let open_state = |listing: &DirectoryListing| match &listing.known {
            Some(known) if !known.state.is_empty() => UNSETTLED_STATE,
            _ => &[],
        };
        let mut first: Vec<MailChange> =
            opened.map(|listing| put(listing, open_state(listing))).collect();
        self.report.renamed_files = files.renamed.len();
        self.report.removed_files = files.removed.len();
        let expire = |(directory, name)| MailChange::ExpireFile { directory, name };
        first.extend(unconverted.into_iter().map(expire));
        first.extend(files.file_states);
        first.extend(files.renamed);
        first.extend(files.edited);
        self.apply_all(first)?;
        let count = u32::try_from(files.added.len()).unwrap_or(u32::MAX);
        let read = self.add_messages(files.added, first_row, report_progress)?;
        self.report.added_files = read.count;
        if self.report.is_interrupted {
            return Ok(());
        }
        // A file that was moved after its new directory was listed is in neither list, and must
        // not be removed: the next synchronisation finds it.
        let has_moving_files =
            !files.removed.is_empty() && scanned.iter().any(MaildirDirectory::has_changed);
        let mut last = Vec::new();
        if has_moving_files {
            self.report.removed_files = 0;
        } else {
            last = files.removed;
            let problems = self.report.problems.iter().map(|problem| problem.path.clone());
            let mut named: FxHashSet<PathBuf> = problems.collect();
            for GoneDirectory { directory, absence } in gone {
                if !files.kept_directories.contains(&directory.path) {
                    last.push(MailChange::RemoveDirectory(directory.path.clone()));
                } else if let Some(problem) = absence
                    && named.insert(problem.path.clone())
                {
                    self.report.has_unsettled_files |= problem.reason.is_temporary();
                    self.report.problems.push(problem_of(problem));
                }
            }
        }
        for listing in listings {
            let is_settled = listing.is_listed
                && !listing.state.is_empty()
                && !read.unread_directories.contains(&listing.path)
                && !read.recent_directories.contains(&listing.path)
                && !files.recent_directories.contains(&listing.path)
                && !has_moving_files;
            let state = if is_settled { listing.state.as_slice() } else { UNSETTLED_STATE };
            let known_state = listing.known.as_ref().map(|known| known.state.as_slice());
            if known_state != Some(state) || !files.is_unchanged {
                last.push(put(listing, state));
            }
        }
        self.apply_all(last)?;
        self.reread_messages(first_row.saturating_add(count), report_progress)
    }

    /// Counts the files as changed that are marked in the store: an interrupted synchronisation may
    /// have found that they changed, and has not named their damage.
    fn add_files_left_expired(&mut self) -> Result<(), Error> {
        let reader = self.store.open_reader()?;
        let altered = &mut self.altered;
        reader.mail()?.for_each_expired_file(self.collection, &mut |file, _| {
            altered.insert(file_path(self.root, &file.directory, &file.name));
        })?;
        Ok(())
    }

    /// Reads the files that are marked in the store. Each is tried once.
    fn reread_messages(
        &mut self,
        mut first_row: u32,
        report_progress: &mut dyn FnMut(SyncProgress),
    ) -> Result<(), Error> {
        let mut tried = FxHashSet::default();
        loop {
            let (files, rules) = self.list_expired_files(&mut tried)?;
            if files.is_empty() {
                if rules.has_outdated_messages {
                    self.apply_all(vec![MailChange::FinishReadingRules])?;
                }
                if self.report.added_files + self.report.reread_files == 0 {
                    // A synchronisation that was interrupted may have left many segments.
                    merge_segments(self, true)?;
                }
                return Ok(());
            }
            let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
            let known_problems = self.report.problems.len();
            let read = self.add_messages(files, first_row, report_progress)?;
            self.unsettle_directories(&read.recent_directories)?;
            let found = self.report.problems.split_off(known_problems).into_iter();
            let is_named = |one: &SyncProblem| {
                one.is_left_out || self.is_any_altered || self.altered.contains(&one.path)
            };
            self.report.problems.extend(found.filter(is_named));
            first_row = first_row.saturating_add(count);
            self.report.reread_files += read.count;
            if self.report.is_interrupted {
                return Ok(());
            }
        }
    }

    /// Lets the next synchronisation list directories that were listed to the end before.
    fn unsettle_directories(&mut self, paths: &FxHashSet<Vec<u8>>) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let known = self.store.open_reader()?.mail()?.directories(self.collection)?;
        let settled = known.into_iter().filter(|one| !one.state.is_empty());
        let put = |MailDirectoryRecord { path, folder, .. }| MailChange::PutDirectory {
            path,
            folder,
            is_new: false,
            state: UNSETTLED_STATE.to_vec(),
        };
        self.apply_all(settled.filter(|one| paths.contains(&one.path)).map(put).collect())
    }

    /// Lists the files that are marked in the store and were not tried, and reads the rules that
    /// the store has.
    fn list_expired_files(
        &self,
        tried: &mut FxHashSet<(u64, u64)>,
    ) -> Result<(FileList, ReadingRules), Error> {
        let mut files = FileList::default();
        let mut numbers = FxHashMap::default();
        let reader = self.store.open_reader()?;
        let mail = reader.mail()?;
        mail.for_each_expired_file(self.collection, &mut |file, is_new| {
            let MailFile { directory, name, inode, .. } = file;
            let is_skipped = !self.options.skipped_files.is_empty()
                && self.options.skipped_files.contains(&file_path(self.root, &directory, &name));
            // The names of all messages would take much memory.
            let key = (inode, FxBuildHasher.hash_one((&directory, &name)));
            let file = (directory, name);
            if is_skipped || self.postponed.contains(&file) || !tried.insert(key) {
                return;
            }
            let (directory, name) = file;
            let number = match numbers.get(&directory) {
                Some(number) => *number,
                None => {
                    let number = files.add_directory(&directory, is_new);
                    numbers.insert(directory, number);
                    number
                }
            };
            files.push(number, name, inode);
        })?;
        Ok((files, mail.reading_rules()?))
    }

    /// Reads, parses and writes files.
    fn add_messages(
        &mut self,
        files: FileList,
        first_row: u32,
        report_progress: &mut dyn FnMut(SyncProgress),
    ) -> Result<ReadFiles, Error> {
        let (total, mut read) = (files.len(), ReadFiles::default());
        if total == 0 {
            return Ok(read);
        }
        let mut writer = MessageWriter::new(total, self.options.batch_messages);
        let mut pipeline = self.start_pipeline(files, first_row)?;
        while let Some(mut batch) = pipeline.next_batch(self.is_cancelled) {
            if (self.is_cancelled)() {
                self.report.is_interrupted = true;
                break;
            }
            read.count += batch.changes.len() - batch.postponed.len();
            self.postponed.extend(mem::take(&mut batch.postponed));
            self.report.problems.append(&mut batch.problems);
            read.unread_directories.extend(mem::take(&mut batch.unread_directories));
            read.recent_directories.extend(mem::take(&mut batch.recent_directories));
            let done = writer.done;
            writer.add(self, batch)?;
            if writer.done > done {
                report_progress(SyncProgress { done: writer.done, total });
            }
        }
        drop(pipeline);
        writer.finish(self)?;
        report_progress(SyncProgress { done: writer.done, total });
        if !self.report.is_interrupted && writer.done != total {
            if !(self.is_cancelled)() {
                return Err(Error::ThreadDied);
            }
            self.report.is_interrupted = true;
        }
        merge_segments(self, writer.is_small())?;
        Ok(read)
    }

    fn start_pipeline(&self, files: FileList, first_row: u32) -> Result<MessagePipeline, Error> {
        let mut indexes = Vec::new();
        if self.conversions.has_converters() {
            for _ in 0..self.options.readers.max(1) {
                indexes.push(self.store.open_reader()?);
            }
        }
        let (options, conversions) = (self.options, &self.conversions);
        MessagePipeline::start(self.root, files, first_row, options, conversions, indexes)
    }

    /// Writes changes without new messages, in batches.
    fn apply_all(&mut self, changes: Vec<MailChange>) -> Result<(), Error> {
        let mut size = CHANGES_PER_BATCH;
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let batch: Vec<MailChange> = changes.by_ref().take(size.current()).collect();
            let written = batch.len();
            size.adapt_to(written, self.apply(batch, None, 0)?);
        }
        Ok(())
    }

    /// Writes a batch. Returns the time for which it held the lock.
    fn apply(
        &mut self,
        changes: Vec<MailChange>,
        words: Option<larder_store::EncodedSegment>,
        end_row: u32,
    ) -> Result<Duration, Error> {
        let collection = self.collection.to_string();
        let batch = MailBatch { collection, changes, words, end_row };
        let batch = vec![BatchChange::Mail(Box::new(batch))];
        let held = self.store.apply(&mut self.operation, batch)?.lock_held;
        follow_labels(&mut self.labels, self.store);
        Ok(held)
    }
}

/// Follows the labels that others changed, who leave the copy in the index to a synchronisation.
/// After a failure they are followed no more.
fn follow_labels(labels: &mut Option<&mut LabelFollower>, store: &mut Store) {
    if labels.as_mut().is_some_and(|one| one.follow(store, now_milliseconds()).is_err()) {
        *labels = None;
    }
}

fn problem_of(problem: &MaildirProblem) -> SyncProblem {
    SyncProblem {
        path: problem.path.clone(),
        reason: problem.reason.to_string(),
        is_left_out: true,
    }
}
