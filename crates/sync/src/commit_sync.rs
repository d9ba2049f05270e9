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

use crate::error::Error;
use crate::git_repository::{GitError, GitRepository, LogReader, LoggedCommit, RepositoryRefs};
use crate::mail_sync::{MailSyncProblem, MailSyncProgress, now_milliseconds};
use larder_format::commit::Commit;
use larder_format::maildir_name::MaildirFlags;
use larder_store::{
    BatchChange, MAX_RESTING_SEGMENTS, MailBatch, MailBatchBuilder, MailChange, MailFile,
    MailFileState, MailSyncLock, Operation, Store,
};
use std::collections::HashSet;
use std::mem;

/// The number of commits of a batch.
const BATCH_COMMITS: usize = 2048;
/// The first batch is small, so that the newest commits are found at once; the size doubles.
const FIRST_BATCH_COMMITS: usize = 128;
/// The bytes of the texts of a batch, after which it ends early.
const MAX_BATCH_BYTES: usize = 16 << 20;
/// The number of removals of a batch.
const REMOVALS_PER_BATCH: usize = 2000;
/// The bytes of words that are merged in one transaction.
const MERGED_BYTES_PER_STEP: i64 = 4 << 20;
/// The most objects of a run that cannot be read: then the repository is damaged as a whole.
const MAX_BROKEN_OBJECTS: usize = 100;
/// The number of commits that git is asked for by their hashes at once.
const HASHES_PER_LOG: usize = 10_000;
/// The nanoseconds of a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// The settings of a synchronisation.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommitSyncOptions {
    /// Compare all commits, also if the refs did not change.
    pub is_full: bool,
    /// The number of commits of a batch; 0: as many as is best.
    pub batch_commits: usize,
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
    pub problems: Vec<MailSyncProblem>,
    /// Whether the user interrupted it. What was committed stays.
    pub is_interrupted: bool,
}

/// The tips that the store knows, as the state of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct KnownTips {
    /// The store has all commits that can be reached from these.
    complete: Vec<String>,
    /// The store may have commits that can be reached from these.
    partial: Vec<String>,
    /// The commits at which the shallow clone ended.
    shallow: Vec<String>,
}

impl KnownTips {
    fn from_bytes(bytes: &[u8]) -> KnownTips {
        let mut tips = KnownTips::default();
        for line in String::from_utf8_lossy(bytes).lines() {
            let Some((name, hash)) = line.split_once(' ') else { continue };
            let list = match name {
                "complete" => &mut tips.complete,
                "partial" => &mut tips.partial,
                "shallow" => &mut tips.shallow,
                _ => continue,
            };
            list.push(hash.to_string());
        }
        tips
    }

    fn to_bytes(&self) -> Vec<u8> {
        let lists =
            [("complete", &self.complete), ("partial", &self.partial), ("shallow", &self.shallow)];
        let lines = lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |hash| format!("{name} {hash}\n")));
        lines.collect::<String>().into_bytes()
    }

    /// Returns all tips whose commits may be in the store.
    fn all(&self) -> Vec<String> {
        let mut all = [self.complete.as_slice(), self.partial.as_slice()].concat();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A hash of an object, with zeros at its end if it is of SHA-1.
type ObjectHash = [u8; 32];

fn parse_hash(text: &[u8]) -> Option<ObjectHash> {
    let (pairs, rest) = text.as_chunks::<2>();
    let mut hash = [0; 32];
    if !rest.is_empty() || pairs.len() > hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

fn format_hash(hash: &ObjectHash, digits: usize) -> String {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.get(..digits).unwrap_or(&hex).to_string()
}

/// A synchronisation of one repository.
struct CommitSync<'s> {
    store: &'s mut Store,
    repository: &'s GitRepository<'s>,
    collection: &'s str,
    operation: Operation,
    builder: MailBatchBuilder,
    report: CommitSyncReport,
    report_progress: &'s mut dyn FnMut(MailSyncProgress),
    is_cancelled: &'s dyn Fn() -> bool,
    /// The row of the next commit.
    row: u32,
    /// The changes of the next batch, the commits that it adds, and the bytes of these.
    changes: Vec<MailChange>,
    commits: Vec<Commit>,
    bytes: usize,
    batch_commits: usize,
    max_batch_commits: usize,
    /// Commits of the store that need not be read; empty if git names new ones only.
    known: HashSet<ObjectHash>,
    /// Those of them that must be read again: with other rules, because their paths could not be
    /// read, or because a shallow clone changed, whose first commits have other paths.
    expired: HashSet<ObjectHash>,
    /// New commits whose paths could not be read.
    without_paths: Vec<String>,
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
    report_progress: &mut dyn FnMut(MailSyncProgress),
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
        batch_commits: FIRST_BATCH_COMMITS.min(max_batch_commits),
        max_batch_commits,
        known: HashSet::new(),
        expired: HashSet::new(),
        without_paths: Vec::new(),
    };
    sync.run(options.is_full)?;
    Ok(sync.report)
}

impl CommitSync<'_> {
    fn run(&mut self, is_full: bool) -> Result<(), Error> {
        let refs = self.repository.read_refs()?;
        self.report.refs = refs.count;
        let state = self.read_state()?;
        let tips = state.as_deref().map(KnownTips::from_bytes).unwrap_or_default();
        let is_outdated = self.set_reading_rules()?;
        let is_shallow_changed = tips.shallow != refs.shallow;
        let is_same = tips.complete == refs.tips && tips.partial.is_empty() && !is_shallow_changed;
        self.report.is_unchanged = is_same && !is_outdated;
        let is_known = state.as_deref().is_some_and(|state| !state.is_empty());
        if self.report.is_unchanged && !is_full && is_known {
            return Ok(());
        }
        let mut removed = Vec::new();
        let needs_comparison = is_full || is_outdated || is_shallow_changed || !is_known;
        // Fails if git has no longer the old tips.
        let is_listed = !needs_comparison && self.list_removed(&tips, &refs, &mut removed).is_ok();
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
        self.put_state(&next);
        let mut unseen = if is_listed { HashSet::new() } else { self.known.clone() };
        let is_complete = self.read_new(&refs, &old_tips, &mut unseen)?;
        self.flush()?;
        if self.report.is_interrupted || !is_complete {
            return Ok(());
        }
        let digits = refs.tips.first().map_or(40, String::len);
        removed.extend(unseen.iter().map(|hash| format_hash(hash, digits)));
        self.remove(removed)?;
        let shallow = refs.shallow.clone();
        self.put_state(&KnownTips { complete: refs.tips, partial: Vec::new(), shallow });
        self.changes.push(MailChange::FinishReadingRules);
        self.flush()?;
        while !(self.is_cancelled)()
            && self.store.merge_words(MAX_RESTING_SEGMENTS, MERGED_BYTES_PER_STEP)?
        {}
        Ok(())
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

    /// Lists the commits that only the old tips have.
    fn list_removed(
        &self,
        tips: &KnownTips,
        refs: &RepositoryRefs,
        removed: &mut Vec<String>,
    ) -> Result<(), GitError> {
        self.repository.list_hashes(&tips.all(), &refs.tips, false, &mut |hash| {
            removed.push(hash.to_string());
        })
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
        let expired = mail.expired_files(self.collection)?;
        self.expired.extend(expired.iter().filter_map(|file| parse_hash(&file.name)));
        if old_shallow != shallow {
            let ends = old_shallow.iter().chain(shallow);
            self.expired.extend(ends.filter_map(|hash| parse_hash(hash.as_bytes())));
        }
        Ok(())
    }

    /// Reads the commits of the refs. Returns whether all could be read. Those of `unseen` that git
    /// names are removed from it.
    fn read_new(
        &mut self,
        refs: &RepositoryRefs,
        old_tips: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<bool, Error> {
        if refs.tips.is_empty() {
            return Ok(true);
        }
        let mut log = self.repository.read_log(&refs.tips, old_tips)?;
        let failure = match self.add_all(&mut log, unseen, &mut 0) {
            Ok(()) => return Ok(true),
            Err(Error::Git(GitError::Failed { reason, .. })) => reason,
            Err(error) => return Err(error),
        };
        drop(log);
        self.report.problems.push(self.problem(&failure));
        self.read_around_damage(refs, old_tips, unseen)?;
        Ok(false)
    }

    /// Reads the commits of a repository with broken objects: each ref by itself, and from its
    /// commits those that can be read.
    fn read_around_damage(
        &mut self,
        refs: &RepositoryRefs,
        old_tips: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<(), Error> {
        // What was read before the failure is known, too.
        self.flush()?;
        self.read_known(&[], &[])?;
        let (mut hashes, mut listed) = (Vec::new(), HashSet::new());
        for tip in &refs.tips {
            let mut visit = |hash: &str| {
                let parsed = parse_hash(hash.as_bytes());
                let is_new = |parsed| listed.insert(parsed) && !self.has_current(&parsed);
                if parsed.is_some_and(is_new) {
                    hashes.push(hash.to_string());
                }
            };
            let tip = std::slice::from_ref(tip);
            if let Err(error) = self.repository.list_hashes(tip, old_tips, true, &mut visit) {
                self.note_broken_object(error)?;
            }
        }
        let mut rest = hashes.as_slice();
        while !rest.is_empty() && !self.report.is_interrupted {
            let (part, _) = rest.split_at(rest.len().min(HASHES_PER_LOG));
            let mut log = self.repository.read_commits(part, true)?;
            let mut read = 0;
            match self.add_all(&mut log, unseen, &mut read) {
                Ok(()) => rest = rest.get(part.len()..).unwrap_or_default(),
                Err(Error::Git(GitError::Failed { .. })) => {
                    if let Some(suspect) = part.get(read..=read) {
                        self.read_suspect(suspect, unseen)?;
                    }
                    rest = rest.get(read + 1..).unwrap_or_default();
                }
                Err(error) => return Err(error),
            }
            if self.report.problems.len() > MAX_BROKEN_OBJECTS {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads a commit that may be broken; if its trees are, without its paths.
    fn read_suspect(
        &mut self,
        suspect: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<(), Error> {
        let mut log = self.repository.read_commits(suspect, true)?;
        match self.add_all(&mut log, unseen, &mut 0) {
            Err(Error::Git(error)) => self.note_broken_object(error)?,
            done => return done,
        }
        let mut log = self.repository.read_commits(suspect, false)?;
        match self.add_all(&mut log, unseen, &mut 0) {
            Err(Error::Git(error)) => self.note_broken_object(error),
            Ok(()) => {
                self.without_paths.extend_from_slice(suspect);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn note_broken_object(&mut self, error: GitError) -> Result<(), Error> {
        let GitError::Failed { reason, .. } = error else { return Err(error.into()) };
        let problem = self.problem(&reason);
        if !self.report.problems.contains(&problem) {
            self.report.problems.push(problem);
        }
        Ok(())
    }

    fn problem(&self, reason: &str) -> MailSyncProblem {
        MailSyncProblem {
            path: self.repository.path().to_path_buf(),
            reason: reason.to_string(),
            is_left_out: true,
        }
    }

    /// Adds the commits of a log. Counts those that were read.
    fn add_all(
        &mut self,
        log: &mut LogReader,
        unseen: &mut HashSet<ObjectHash>,
        read: &mut usize,
    ) -> Result<(), Error> {
        while let Some(LoggedCommit { commit, skipped_paths }) = log.read_commit()? {
            *read += 1;
            if skipped_paths > 0 {
                let problem = MailSyncProblem {
                    is_left_out: false,
                    ..self.problem(&format!(
                        "the commit {} changes {skipped_paths} paths more than can be searched",
                        commit.hash
                    ))
                };
                self.report.problems.push(problem);
            }
            self.add(commit, unseen);
            if self.commits.len() >= self.batch_commits || self.bytes >= MAX_BATCH_BYTES {
                self.flush()?;
                if (self.is_cancelled)() {
                    self.report.is_interrupted = true;
                    return Ok(());
                }
            }
        }
        Ok(())
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
                state: MailFileState { changed: seconds * NANOSECONDS, ..MailFileState::default() },
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
        for hash in removed {
            let (directory, name) = (Vec::new(), hash.into_bytes());
            self.changes.push(MailChange::RemoveFile { directory, name });
            if self.changes.len() >= REMOVALS_PER_BATCH {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn put_state(&mut self, tips: &KnownTips) {
        let (path, folder, state) = (Vec::new(), Vec::new(), tips.to_bytes());
        self.changes.push(MailChange::PutDirectory { path, folder, is_new: false, state });
    }

    /// Writes the batch.
    fn flush(&mut self) -> Result<(), Error> {
        let has_commits = !self.commits.is_empty();
        self.prepare_commits();
        let changes = mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        let batch = MailBatch {
            collection: self.collection.to_string(),
            changes,
            words: Some(self.builder.encode_words()),
            end_row: self.row,
        };
        self.store.apply(&mut self.operation, vec![BatchChange::Mail(Box::new(batch))])?;
        self.batch_commits = (self.batch_commits * 2).min(self.max_batch_commits);
        if has_commits {
            self.store.merge_words(MAX_RESTING_SEGMENTS, MERGED_BYTES_PER_STEP)?;
        }
        self.bytes = 0;
        let done = self.report.added + self.report.reread;
        (self.report_progress)(MailSyncProgress { done, total: done });
        Ok(())
    }
}
