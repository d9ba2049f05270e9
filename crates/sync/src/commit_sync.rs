//! Bringing the index of a repository's commits up to date.
//!
//! The store keeps the tips of the refs of the last synchronisation. The next one asks git for the
//! commits that the new tips have and the old ones have not, writes them, the newest first, and
//! removes those that only the old tips had. The tips are written in the same transactions: those
//! that are complete, and those of a run that was interrupted, whose commits may be there. If git
//! no longer knows the old tips, or a shallow clone was extended, all commits are compared.
//!
//! A commit is a file of a directory without a name, in the terms of `mail_sync`: so the engine of
//! mail serves both. Separate from it, because there is nothing to list, rename or edit: a commit
//! never changes.

mod damaged_history;

use crate::error::Error;
use crate::file_time::to_nanoseconds;
use crate::git_repository::{
    GitError, GitRepository, GitTimeLimits, LogReader, LoggedCommit, RepositoryRefs,
};
use crate::known_tips::{KnownTips, ObjectHash, format_hash, parse_hash};
use crate::mail_sync::{
    MERGED_BYTES, SyncProblem, SyncProgress, merge_written_words, now_milliseconds,
};
use damaged_history::{CommitPaths, HistoryDamage};
use larder_format::commit::Commit;
use larder_format::maildir_name::MaildirFlags;
use larder_store::{
    BatchChange, MAX_RESTING_SEGMENTS, MailBatch, MailBatchBuilder, MailChange, MailFile,
    MailFileState, MailSyncLock, Operation, StepSize, Store,
};
use std::collections::HashSet;
use std::mem;
use std::time::Duration;

/// The most commits of a batch. One has fewer if they would hold the lock for longer than
/// [`StepSize`] allows.
const BATCH_COMMITS: usize = 2048;
/// The first batch is small, so that the newest commits are found at once.
const FIRST_BATCH_COMMITS: usize = 128;
/// The least number to which the commits of a batch are reduced.
const MIN_BATCH_COMMITS: usize = 64;
/// The bytes of the texts of a batch, after which it ends early.
const MAX_BATCH_BYTES: usize = 16 << 20;
/// The number of removals of a batch.
const REMOVALS_PER_BATCH: StepSize = StepSize::in_index(1000, 50..=4000);

/// The settings of a synchronisation.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommitSyncOptions {
    /// Compare all commits, also if the refs did not change.
    pub is_full: bool,
    /// The number of commits of a batch; 0: as many as is best.
    pub batch_commits: usize,
    /// The time that git is waited for.
    pub time_limits: GitTimeLimits,
}

/// The result of a synchronisation.
#[derive(Debug, Default)]
pub struct CommitSyncReport {
    /// The number of new commits.
    pub added: usize,
    /// The number of known commits that were read again.
    pub reread: usize,
    /// The number of commits that no ref has any more.
    pub removed: usize,
    /// The number of refs.
    pub refs: usize,
    /// Whether the refs are those of the last synchronisation.
    pub is_unchanged: bool,
    /// Objects that could not be read.
    pub problems: Vec<SyncProblem>,
    /// Whether the user interrupted it. What was committed stays.
    pub is_interrupted: bool,
}

/// A synchronisation of one repository.
struct CommitSync<'s> {
    store: &'s mut Store,
    repository: &'s GitRepository<'s>,
    collection: &'s str,
    operation: Operation,
    builder: MailBatchBuilder,
    report: CommitSyncReport,
    report_progress: &'s mut dyn FnMut(SyncProgress),
    is_cancelled: &'s dyn Fn() -> bool,
    /// The row of the next commit.
    row: u32,
    /// The changes of the next batch, the commits that it adds, and the bytes of these.
    changes: Vec<MailChange>,
    commits: Vec<Commit>,
    bytes: usize,
    batch_commits: StepSize,
    max_batch_commits: usize,
    /// The bytes of words that are merged in one transaction.
    merged_bytes: StepSize,
    /// Commits of the store that need not be read; empty if git names new ones only.
    known: HashSet<ObjectHash>,
    /// Those of them that must be read again: with other rules, because their paths could not be
    /// read, or because a shallow clone changed, whose first commits have other paths.
    expired: HashSet<ObjectHash>,
    /// Whether commits whose paths were left out, or could not be read, stay without them.
    skips_expired: bool,
    /// New commits whose paths could not be read, or were left out.
    without_paths: Vec<String>,
    /// The paths that the log has.
    paths: CommitPaths,
    damage: HistoryDamage,
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogEnd {
    /// It was read to its end, or the run was interrupted.
    Complete,
    /// A commit has too many paths, and commits follow.
    Cut,
}

/// Brings the index of a repository's commits up to date. `report_progress` is called after each
/// batch; the work ends early when `is_cancelled` returns true.
///
/// # Errors
/// git cannot read the refs, or the store cannot be written. Single commits that cannot be read are
/// problems of the report.
pub fn sync_locked_commits(
    store: &mut Store,
    lock: &MailSyncLock,
    repository: &GitRepository<'_>,
    collection: &str,
    options: CommitSyncOptions,
    report_progress: &mut dyn FnMut(SyncProgress),
    is_cancelled: &dyn Fn() -> bool,
) -> Result<CommitSyncReport, Error> {
    let row = store.next_mail_row(lock)?;
    let max_batch_commits = match options.batch_commits {
        0 => BATCH_COMMITS,
        commits => commits,
    };
    let mut sync = CommitSync {
        store,
        repository,
        collection,
        operation: Operation::new("sync", collection, now_milliseconds()),
        builder: MailBatchBuilder::new(&[]),
        report: CommitSyncReport::default(),
        report_progress,
        is_cancelled,
        row,
        changes: Vec::new(),
        commits: Vec::new(),
        bytes: 0,
        batch_commits: StepSize::in_index(
            FIRST_BATCH_COMMITS.min(max_batch_commits),
            MIN_BATCH_COMMITS.min(max_batch_commits)..=max_batch_commits,
        ),
        merged_bytes: MERGED_BYTES,
        max_batch_commits,
        known: HashSet::new(),
        expired: HashSet::new(),
        skips_expired: false,
        without_paths: Vec::new(),
        paths: CommitPaths::Listed,
        damage: HistoryDamage::default(),
    };
    sync.run(options.is_full)?;
    Ok(sync.report)
}

impl CommitSync<'_> {
    fn run(&mut self, is_full: bool) -> Result<(), Error> {
        let refs = self.repository.read_refs()?;
        self.report.refs = refs.count;
        refs.faults.iter().for_each(|fault| self.note_damage(fault));
        let state = self.read_state()?;
        let tips = state.as_deref().map(KnownTips::from_bytes).unwrap_or_default();
        let is_outdated = self.set_reading_rules()?;
        let is_shallow_changed = tips.shallow != refs.shallow;
        let is_same = tips.complete == refs.tips && tips.partial.is_empty() && !is_shallow_changed;
        let retries_paths = self.retries_paths(&tips, is_full || is_outdated)?;
        self.report.is_unchanged = is_same && !is_outdated && !retries_paths;
        let is_known = state.as_deref().is_some_and(|state| !state.is_empty());
        if self.report.is_unchanged && !is_full && is_known {
            self.warn_of_missing_paths();
            return Ok(());
        }
        let mut removed = Vec::new();
        let needs_comparison =
            is_full || is_outdated || is_shallow_changed || !is_known || retries_paths;
        let is_retry = is_full || is_outdated || is_shallow_changed || retries_paths;
        self.skips_expired =
            !self.damage.pathless.is_empty() || !tips.expensive.is_empty() && !is_retry;
        let is_listed = !needs_comparison && self.list_removed(&tips, &refs, &mut removed)?;
        let (old_tips, mut next) = match is_listed {
            true => (tips.complete.clone(), tips.clone()),
            false => {
                removed.clear();
                (Vec::new(), KnownTips { partial: tips.all(), ..KnownTips::default() })
            }
        };
        if !is_listed || !tips.partial.is_empty() {
            self.read_known(&tips.shallow, &refs.shallow)?;
        }
        next.partial.extend(refs.tips.iter().cloned());
        next.partial.sort_unstable();
        next.partial.dedup();
        next.shallow.clone_from(&tips.shallow);
        next.pathless.clone_from(&tips.pathless);
        next.expensive.clone_from(&tips.expensive);
        self.put_state(&next);
        let mut unseen = if is_listed { HashSet::new() } else { self.known.clone() };
        // The commits of a ref that cannot be read are not known, and none may be removed.
        let is_complete = self.read_new(&refs, &old_tips, &mut unseen)? && refs.faults.is_empty();
        self.flush()?;
        let mut expensive = mem::take(&mut self.damage.left_out);
        if expensive.is_empty() && (self.skips_expired || !is_complete) {
            expensive.clone_from(&tips.expensive);
        }
        if self.report.is_interrupted || !is_complete {
            if expensive != next.expensive {
                self.put_state(&KnownTips { expensive, ..next });
                self.flush()?;
            }
            return Ok(());
        }
        let digits = refs.tips.first().map_or(40, String::len);
        removed.extend(unseen.iter().map(|hash| format_hash(hash, digits)));
        self.remove(removed)?;
        let RepositoryRefs { tips: complete, shallow, .. } = refs;
        let pathless = mem::take(&mut self.damage.pathless);
        self.put_state(&KnownTips { complete, partial: Vec::new(), shallow, pathless, expensive });
        self.changes.push(MailChange::FinishReadingRules);
        self.flush()?;
        let is_small = self.report.added + self.report.reread <= self.max_batch_commits;
        merge_written_words(self.store, is_small, self.is_cancelled, &mut |_| {})
    }

    /// Reads the state of the last synchronisation; `None`: there was none.
    fn read_state(&self) -> Result<Option<Vec<u8>>, Error> {
        let reader = self.store.open_reader()?;
        let directories = reader.mail()?.directories(self.collection)?;
        Ok(directories.into_iter().next().map(|directory| directory.state))
    }

    /// Notes the rules by which commits are read. Returns whether commits of the store were read
    /// with others.
    fn set_reading_rules(&mut self) -> Result<bool, Error> {
        let rules = self.builder.commit_fingerprint_text();
        let known = self.store.open_reader()?.mail()?.reading_rules()?;
        if known.fingerprint.as_ref() == Some(&rules) {
            return Ok(known.has_outdated_messages);
        }
        self.changes.push(MailChange::SetReadingRules(rules));
        self.flush()?;
        Ok(known.fingerprint.is_some())
    }

    /// Lists the commits that only the old tips have. Returns false if git has no longer the old
    /// tips.
    fn list_removed(
        &self,
        tips: &KnownTips,
        refs: &RepositoryRefs,
        removed: &mut Vec<String>,
    ) -> Result<bool, Error> {
        let mut visit = |hash: &str| removed.push(hash.to_string());
        match self.repository.list_hashes(&tips.all(), &refs.tips, false, &mut visit) {
            Ok(()) => Ok(true),
            Err(error) if error.is_of_objects() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads which commits the store has, and which of these must be read again.
    fn read_known(&mut self, old_shallow: &[String], shallow: &[String]) -> Result<(), Error> {
        let reader = self.store.open_reader()?;
        let mail = reader.mail()?;
        for directory in mail.directories(self.collection)? {
            mail.for_each_file_name(directory.id, &mut |name| {
                self.known.extend(parse_hash(name));
            })?;
        }
        if !self.skips_expired {
            mail.for_each_expired_file(self.collection, &mut |file, _| {
                self.expired.extend(parse_hash(&file.name));
            })?;
        }
        if old_shallow != shallow {
            let ends = old_shallow.iter().chain(shallow);
            self.expired.extend(ends.filter_map(|hash| parse_hash(hash.as_bytes())));
        }
        Ok(())
    }

    /// Adds the commits of a log. Counts those that were read.
    fn add_all(
        &mut self,
        log: &mut LogReader<'_>,
        unseen: &mut HashSet<ObjectHash>,
        read: &mut usize,
    ) -> Result<LogEnd, Error> {
        loop {
            let logged = match log.read_commit() {
                Ok(Some(logged)) => logged,
                Ok(None) => return Ok(LogEnd::Complete),
                Err(GitError::Cancelled) => {
                    self.flush()?;
                    self.report.is_interrupted = true;
                    return Ok(LogEnd::Complete);
                }
                Err(error) => return Err(error.into()),
            };
            *read += 1;
            self.warn_of_skipped_paths(&logged);
            let LoggedCommit { commit, is_cut, .. } = logged;
            self.add(commit, unseen);
            if self.commits.len() >= self.batch_commits.current() || self.bytes >= MAX_BATCH_BYTES {
                self.flush()?;
                if (self.is_cancelled)() {
                    self.report.is_interrupted = true;
                    return Ok(LogEnd::Complete);
                }
            }
            if is_cut {
                return Ok(LogEnd::Cut);
            }
        }
    }

    /// Adds a commit to the batch, unless the store has it.
    fn add(&mut self, commit: Commit, unseen: &mut HashSet<ObjectHash>) {
        let Some(hash) = parse_hash(commit.hash.as_bytes()) else { return };
        unseen.remove(&hash);
        if self.has_current(&hash) {
            return;
        }
        if self.known.contains(&hash) {
            self.expired.remove(&hash);
            let (directory, name) = (Vec::new(), commit.hash.clone().into_bytes());
            self.changes.push(MailChange::RemoveFile { directory, name });
            self.report.reread += 1;
        } else {
            self.report.added += 1;
        }
        // A merge has no paths.
        if self.paths != CommitPaths::Listed && commit.parents.len() < 2 {
            self.without_paths.push(commit.hash.clone());
            if self.paths == CommitPaths::LeftOut && self.damage.left_out.is_empty() {
                self.damage.left_out.push(commit.hash.clone());
            }
        }
        self.bytes += commit.message.len() + commit.paths.iter().map(String::len).sum::<usize>();
        self.commits.push(commit);
    }

    /// Returns whether the store has a commit that need not be read again.
    fn has_current(&self, hash: &ObjectHash) -> bool {
        self.known.contains(hash) && !self.expired.contains(hash)
    }

    /// Prepares the commits of a batch. The newest one gets the last row, so that it is the first
    /// one in lists if others have the same time.
    fn prepare_commits(&mut self) {
        for commit in mem::take(&mut self.commits).into_iter().rev() {
            let seconds = commit.committer.date.seconds.clamp(0, i64::from(u32::MAX));
            let file = MailFile {
                directory: Vec::new(),
                name: commit.hash.clone().into_bytes(),
                inode: 0,
                flags: MaildirFlags::default(),
                state: MailFileState {
                    changed: to_nanoseconds(seconds, 0),
                    ..MailFileState::default()
                },
            };
            let message = Box::new(self.builder.prepare_commit(self.row, &commit));
            self.row = self.row.saturating_add(1);
            self.changes.push(MailChange::AddFile { file, message });
        }
        for hash in mem::take(&mut self.without_paths) {
            let (directory, name) = (Vec::new(), hash.into_bytes());
            self.changes.push(MailChange::ExpireFile { directory, name });
        }
    }

    fn remove(&mut self, removed: Vec<String>) -> Result<(), Error> {
        self.report.removed = removed.len();
        let mut size = REMOVALS_PER_BATCH;
        for hash in removed {
            let (directory, name) = (Vec::new(), hash.into_bytes());
            self.changes.push(MailChange::RemoveFile { directory, name });
            let written = self.changes.len();
            if written >= size.current() {
                size.adapt_to(written, self.flush()?);
            }
        }
        Ok(())
    }

    fn put_state(&mut self, tips: &KnownTips) {
        let (path, folder, state) = (Vec::new(), Vec::new(), tips.to_bytes());
        self.changes.push(MailChange::PutDirectory { path, folder, is_new: false, state });
    }

    /// Writes the batch. Returns the time for which it held the lock.
    fn flush(&mut self) -> Result<Duration, Error> {
        let commits = self.commits.len();
        self.prepare_commits();
        let changes = mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(Duration::ZERO);
        }
        let batch = MailBatch {
            collection: self.collection.to_string(),
            changes,
            words: Some(self.builder.encode_words()),
            end_row: self.row,
        };
        let batch = vec![BatchChange::Mail(Box::new(batch))];
        let held = self.store.apply(&mut self.operation, batch)?.lock_held;
        if commits > 0 {
            self.batch_commits.adapt_to(commits, held);
            self.store.merge_words(MAX_RESTING_SEGMENTS, &mut self.merged_bytes)?;
        }
        self.bytes = 0;
        let done = self.report.added + self.report.reread;
        (self.report_progress)(SyncProgress { done, total: done });
        Ok(held)
    }
}
