//! Reading a history of which objects are missing or broken, or that was made to be expensive.
//!
//! * A commit that cannot be read is named, and tried again by the next synchronisation.
//! * One whose trees are missing has no paths, is named, and is tried again. If there are many, or
//!   the repository is a clone without trees, all are read without paths, one warning says so, and
//!   they are tried again when one of them can be read.
//! * One with more paths than are read, or for which git takes too much memory or time, has the
//!   first of its paths, or none. A warning names it, and only a comparison of all commits tries it
//!   again. After too many of them, or too much time, the others are read without paths.
//!
//! Separate from its parent, because of a sound history one command of git has everything.

use super::{CommitSync, LogEnd};
use crate::error::Error;
use crate::git_repository::{GitError, LogReader, LoggedCommit, RepositoryRefs};
use crate::known_tips::{KnownTips, ObjectHash, parse_hash};
use crate::mail_sync::SyncProblem;
use std::collections::HashSet;

/// The most commits of a run that cannot be read, or whose trees are missing, that are tried one by
/// one: then the repository is damaged as a whole.
const MAX_BROKEN_OBJECTS: usize = 100;
/// The most commits of a run that take too much memory or time, or have too many paths, before all
/// others are read without paths.
const MAX_EXPENSIVE_COMMITS: usize = 10;
/// The number of commits that git is asked for by their hashes at once.
const HASHES_PER_LOG: usize = 10_000;

/// The command that reads commits again.
const RETRY: &str = "to try again: larder sync --full";

/// The paths of the commits of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitPaths {
    /// The log has them.
    Listed,
    /// They cannot be read now.
    Missing,
    /// They are not read.
    LeftOut,
}

/// The damage that a run found.
#[derive(Debug, Default)]
pub(super) struct HistoryDamage {
    /// The number of commits that could not be read.
    broken: usize,
    /// The commits whose trees are missing, with the reason of git.
    without_trees: Vec<(String, String)>,
    /// The number of commits that took too much, or have too many paths.
    expensive: usize,
    /// Whether git was silent for so long that no paths are read any more.
    is_out_of_time: bool,
    /// See [`KnownTips::pathless`].
    pub(super) pathless: Vec<String>,
    /// See [`KnownTips::expensive`].
    pub(super) left_out: Vec<String>,
}

impl HistoryDamage {
    /// Returns how the paths of further commits are read.
    fn next_paths(&self) -> CommitPaths {
        if self.without_trees.len() > MAX_BROKEN_OBJECTS {
            CommitPaths::Missing
        } else if self.is_out_of_time || self.expensive > MAX_EXPENSIVE_COMMITS {
            CommitPaths::LeftOut
        } else {
            CommitPaths::Listed
        }
    }
}

impl CommitSync<'_> {
    /// Returns whether commits without paths are read again, of which there are too many to try
    /// each: all are, or one of them can be read now.
    pub(super) fn retries_paths(
        &mut self,
        tips: &KnownTips,
        reads_all: bool,
    ) -> Result<bool, Error> {
        let Some(commit) = tips.pathless.first() else { return Ok(false) };
        let commit = std::slice::from_ref(commit);
        // A commit that is gone tells nothing.
        let is_readable =
            reads_all || self.can_read(commit, true)? || !self.can_read(commit, false)?;
        if !is_readable {
            self.damage.pathless.clone_from(&tips.pathless);
        }
        Ok(is_readable)
    }

    fn can_read(&self, commit: &[String], has_paths: bool) -> Result<bool, Error> {
        let mut log = self.repository.read_commits(commit, has_paths)?;
        match log.read_commit() {
            Ok(logged) => Ok(logged.is_some()),
            Err(error) if error.is_of_objects() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the commits of the refs. Returns whether all could be read. Those of `unseen` that git
    /// names are removed from it.
    pub(super) fn read_new(
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
            Ok(LogEnd::Complete) => {
                self.warn_of_missing_paths();
                return Ok(true);
            }
            Ok(LogEnd::Cut) => None,
            Err(Error::Git(error)) if error.is_of_objects() => Some(error),
            Err(error) => return Err(error),
        };
        drop(log);
        self.read_around_damage(refs, old_tips, unseen)?;
        if let Some(error) = failure.filter(|_| self.damage.is_unknown()) {
            self.note_damage(&failure_reason(&error));
        }
        self.report_missing_paths();
        Ok(!self.report.problems.iter().any(|problem| problem.is_left_out))
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
        let hashes = self.list_unread(refs, old_tips, unseen)?;
        let mut rest = hashes.as_slice();
        while !rest.is_empty() && !self.report.is_interrupted {
            if self.damage.broken > MAX_BROKEN_OBJECTS {
                let reason = format!(
                    "more than {MAX_BROKEN_OBJECTS} commits cannot be read, and the rest was not \
                     tried; to see the damage: git -C {} fsck",
                    self.repository.path().display()
                );
                self.report.problems.push(self.problem(&reason));
                break;
            }
            self.paths = self.next_paths();
            let (part, _) = rest.split_at(rest.len().min(HASHES_PER_LOG));
            let mut log = self.repository.read_commits(part, self.paths == CommitPaths::Listed)?;
            let mut read = 0;
            let next = match self.add_all(&mut log, unseen, &mut read) {
                Ok(LogEnd::Complete) => part.len(),
                Ok(LogEnd::Cut) => read,
                Err(Error::Git(error)) if error.is_of_objects() => {
                    drop(log);
                    if let Some(suspect) = part.get(read..=read) {
                        self.read_suspect(suspect, unseen)?;
                    }
                    read + 1
                }
                Err(error) => return Err(error),
            };
            rest = rest.get(next..).unwrap_or_default();
        }
        self.paths = CommitPaths::Listed;
        Ok(())
    }

    /// Returns how the paths of further commits are read. Says if there is no time left for them.
    fn next_paths(&mut self) -> CommitPaths {
        if self.repository.is_out_of_time() && !self.damage.is_out_of_time {
            self.damage.is_out_of_time = true;
            self.warn(&format!(
                "git took too long: the other new commits are found by no path; \
                 {RETRY}"
            ));
        }
        self.damage.next_paths()
    }

    /// Lists the commits of the refs that the store does not have. All of the refs are removed from
    /// `unseen`: the log ended before it named those that the store has.
    fn list_unread(
        &mut self,
        refs: &RepositoryRefs,
        old_tips: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<Vec<String>, Error> {
        let (mut hashes, mut listed) = (Vec::new(), HashSet::new());
        let (mut reasons, mut missing) = (Vec::new(), Vec::new());
        let mut list = |tips: &[String]| {
            let mut visit = |hash: &str| {
                if let Some(hash) = hash.strip_prefix('?') {
                    missing.push(format!("the commit {hash} is missing"));
                    return;
                }
                let Some(parsed) = parse_hash(hash.as_bytes()) else { return };
                unseen.remove(&parsed);
                if listed.insert(parsed) && !self.has_current(&parsed) {
                    hashes.push(hash.to_string());
                }
            };
            match self.repository.list_hashes(tips, old_tips, true, &mut visit) {
                Ok(()) => Ok(true),
                Err(error) if error.is_of_objects() => {
                    reasons.push(failure_reason(&error));
                    Ok(false)
                }
                Err(error) => Err(Error::from(error)),
            }
        };
        if !list(&refs.tips)? {
            for tip in &refs.tips {
                list(std::slice::from_ref(tip))?;
            }
        }
        self.damage.broken += reasons.len() + missing.len();
        reasons.iter().chain(&missing).for_each(|reason| self.note_damage(reason));
        Ok(hashes)
    }

    /// Reads a commit that may be broken, or expensive; if its trees are, without its paths.
    fn read_suspect(
        &mut self,
        suspect: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<(), Error> {
        let (mut failure, mut is_expensive) = (None, false);
        self.paths = self.next_paths();
        if self.paths == CommitPaths::Listed {
            match self.read_alone(suspect, unseen)? {
                None => return Ok(()),
                Some(error) if error.is_of_limits() => {
                    self.paths = CommitPaths::LeftOut;
                    is_expensive = true;
                }
                Some(error) => {
                    self.paths = CommitPaths::Missing;
                    failure = Some(error);
                }
            }
        }
        if let Some(error) = self.read_alone(suspect, unseen)? {
            let reasons = failure.iter().chain([&error]).map(failure_reason);
            reasons.for_each(|reason| self.note_damage(&reason));
            self.damage.broken += 1;
            return Ok(());
        }
        let hash = suspect.first().cloned().unwrap_or_default();
        match failure {
            Some(error) => self.damage.without_trees.push((hash, failure_reason(&error))),
            None if is_expensive => {
                self.warn(&format!(
                    "the commit {hash} changes more paths than git can compare, and is found by \
                     none of them; {RETRY}"
                ));
                self.note_expensive_commit();
            }
            None => {}
        }
        Ok(())
    }

    /// Reads one commit. Returns the reason that it cannot be read.
    fn read_alone(
        &mut self,
        commit: &[String],
        unseen: &mut HashSet<ObjectHash>,
    ) -> Result<Option<GitError>, Error> {
        let has_paths = self.paths == CommitPaths::Listed;
        let mut log: LogReader<'_> = self.repository.read_commits(commit, has_paths)?;
        match self.add_all(&mut log, unseen, &mut 0) {
            Ok(_) => Ok(None),
            Err(Error::Git(error)) if error.is_of_objects() => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    /// Names what cannot be read, once.
    pub(super) fn note_damage(&mut self, reason: &str) {
        let problem = self.problem(reason);
        if !self.report.problems.contains(&problem) {
            self.report.problems.push(problem);
        }
    }

    /// Counts a commit that takes too much. With too many of them, no paths are read any more.
    fn note_expensive_commit(&mut self) {
        self.damage.expensive += 1;
        if self.damage.expensive == MAX_EXPENSIVE_COMMITS + 1 {
            self.warn(&format!(
                "more than {MAX_EXPENSIVE_COMMITS} commits change too many paths: the other new \
                 commits are found by no path; {RETRY}"
            ));
        }
    }

    /// Names a commit whose paths are not all read.
    pub(super) fn warn_of_skipped_paths(&mut self, logged: &LoggedCommit) {
        let LoggedCommit { commit, skipped_paths, is_cut } = logged;
        if *skipped_paths > 0 {
            let at_least = if *is_cut { "at least " } else { "" };
            self.warn(&format!(
                "the commit {} changes {at_least}{skipped_paths} paths more than can be searched",
                commit.hash
            ));
        }
        if *is_cut {
            self.note_expensive_commit();
        }
    }

    /// Names the commits whose trees are missing, or says that there are many, or that they were
    /// left out.
    fn report_missing_paths(&mut self) {
        if self.damage.pathless.is_empty()
            && let Some((hash, _)) = self.damage.without_trees.first()
            && (self.damage.next_paths() == CommitPaths::Missing
                || self.repository.is_clone_without_trees())
        {
            self.damage.pathless = vec![hash.clone()];
        }
        if !self.damage.pathless.is_empty() {
            return self.warn_of_missing_paths();
        }
        for (_, reason) in std::mem::take(&mut self.damage.without_trees) {
            self.note_damage(&reason);
        }
    }

    /// Says that there are commits without paths, of which each is not named.
    pub(super) fn warn_of_missing_paths(&mut self) {
        if self.damage.pathless.is_empty() {
            return;
        }
        let path = self.repository.path().display();
        let repair = match self.repository.is_partial_clone() {
            true => format!(
                "it is a partial clone without trees; to fetch them: git -C {path} fetch --refetch \
                 --filter=blob:none"
            ),
            false => format!("trees are missing; to see which: git -C {path} fsck"),
        };
        self.warn(&format!("commits are found by none of their paths: {repair}"));
    }

    fn warn(&mut self, reason: &str) {
        let problem = SyncProblem { is_left_out: false, ..self.problem(reason) };
        self.report.problems.push(problem);
    }

    fn problem(&self, reason: &str) -> SyncProblem {
        SyncProblem {
            path: self.repository.path().to_path_buf(),
            reason: reason.to_string(),
            is_left_out: true,
        }
    }
}

impl HistoryDamage {
    /// Returns whether no commit was found that has a part in it.
    fn is_unknown(&self) -> bool {
        self.broken == 0
            && self.expensive == 0
            && self.next_paths() == CommitPaths::Listed
            && self.without_trees.is_empty()
    }
}

/// Returns the words of git.
fn failure_reason(error: &GitError) -> String {
    match error {
        GitError::Failed { reason, .. } => reason.clone(),
        error => error.to_string(),
    }
}
