//! The commits that `git log` prints.
//!
//! Separate from its parent, because it is about the bytes of one command: fields with zero bytes
//! behind them, of which a repository may have any number and any length.

use super::git_process::GitProcess;
use super::{GitError, MAX_FIELD_BYTES};
use larder_format::commit::{Commit, CommitSignature};
use larder_format::decoding::decode_charset;
use larder_store::MAX_COMMIT_PATHS;
use std::io::{BufRead as _, Read as _};

/// The format of a commit in the log: an empty field, so that the end of the paths before it is
/// known, and the fields of [`LogReader::read_commit`], each with a zero byte behind it.
pub(super) const LOG_FORMAT: &str =
    "--format=tformat:%x00%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";

/// The bytes of the paths of a commit that are kept.
const MAX_KEPT_PATH_BYTES: usize = 16 << 20;
/// The bytes of the paths of a commit that are read. A tree of a few objects can have billions of
/// paths.
const MAX_READ_PATH_BYTES: usize = 32 << 20;

/// The commits of a log, one after the other.
pub struct LogReader<'g> {
    process: Option<GitProcess<'g>>,
    field: Vec<u8>,
    is_started: bool,
}

/// A commit of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCommit {
    /// The commit.
    pub commit: Commit,
    /// The number of paths that are left out, because there are too many.
    pub skipped_paths: usize,
    /// Reading ended in its paths, of which there are more, and the log with it.
    pub is_cut: bool,
}

impl<'g> LogReader<'g> {
    pub(super) fn new(process: GitProcess<'g>) -> LogReader<'g> {
        LogReader { process: Some(process), field: Vec::new(), is_started: false }
    }

    /// Reads the next commit; `None`: there is no other.
    ///
    /// # Errors
    /// git could not read a commit, or another object that it needs. It may have been the commit
    /// after the last one that was returned, or the next one.
    pub fn read_commit(&mut self) -> Result<Option<LoggedCommit>, GitError> {
        // The first field of the log is empty; the others were read at the end of the paths.
        if !std::mem::replace(&mut self.is_started, true) && !self.read_field()? {
            return self.finish();
        }
        if !self.read_field()? || self.field.is_empty() {
            return self.finish();
        }
        let hash = self.text();
        let parents = self.next_text()?.split_whitespace().map(ToString::to_string).collect();
        let author = self.read_signature()?;
        let committer = self.read_signature()?;
        let message = self.next_text()?;
        let commit = Commit { hash, parents, author, committer, message, paths: Vec::new() };
        let mut logged = LoggedCommit { commit, skipped_paths: 0, is_cut: false };
        self.read_paths(&mut logged)?;
        Ok(Some(logged))
    }

    fn read_paths(&mut self, logged: &mut LoggedCommit) -> Result<(), GitError> {
        let LoggedCommit { commit, skipped_paths, is_cut } = logged;
        let (mut is_first, mut bytes) = (true, 0);
        loop {
            if !self.read_field()? {
                // Without an end, the paths are complete only if git says so.
                return self.finish().map(drop);
            }
            if self.field.is_empty() {
                return Ok(());
            }
            bytes += self.field.len();
            // The first path is on a line of its own.
            let line_start = usize::from(std::mem::take(&mut is_first));
            if commit.paths.len() < MAX_COMMIT_PATHS && bytes <= MAX_KEPT_PATH_BYTES {
                let path = decode_charset(self.field.get(line_start..).unwrap_or_default(), None);
                commit.paths.push(path.into_owned());
            } else {
                *skipped_paths += 1;
            }
            if bytes > MAX_READ_PATH_BYTES {
                *is_cut = true;
                self.process = None;
                return Ok(());
            }
        }
    }

    fn finish(&mut self) -> Result<Option<LoggedCommit>, GitError> {
        self.process.take().map_or(Ok(None), |process| process.finish().map(|_| None))
    }

    fn read_signature(&mut self) -> Result<CommitSignature, GitError> {
        let (name, address, time) = (self.next_text()?, self.next_text()?, self.next_text()?);
        Ok(CommitSignature::new(&name, &address, time.parse().unwrap_or_default(), 0))
    }

    fn next_text(&mut self) -> Result<String, GitError> {
        self.read_field()?;
        Ok(self.text())
    }

    fn text(&self) -> String {
        decode_charset(&self.field, None).into_owned()
    }

    /// Reads a field up to its zero byte. Returns false at the end of the log.
    fn read_field(&mut self) -> Result<bool, GitError> {
        self.field.clear();
        let Some(process) = &mut self.process else { return Ok(false) };
        let mut part = process.reader.by_ref().take(MAX_FIELD_BYTES);
        let read = part.read_until(0, &mut self.field);
        read.map_err(|error| process.read_error(error))?;
        if self.field.pop_if(|byte| *byte == 0).is_some() {
            return Ok(true);
        }
        if self.field.is_empty() {
            return Ok(false);
        }
        // The rest of a field that is too long.
        let mut rest = Vec::new();
        while !rest.ends_with(b"\0") {
            rest.clear();
            let mut part = process.reader.by_ref().take(MAX_FIELD_BYTES);
            let read = part.read_until(0, &mut rest);
            if read.map_err(|error| process.read_error(error))? == 0 {
                break;
            }
        }
        Ok(true)
    }
}
