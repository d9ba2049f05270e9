//! A git repository with an index of its commits, for the tests of commits.

use larder_query::{Kind, MailQuery, MailQueryContext, MailSearch, UserLocale};
use larder_store::{DataDirectory, MailColumn, Reader, Store, StoreFile, StoreOptions, block_of};
use larder_sync::git_repository::{
    GIT_VARIABLES, GitCommand, GitOutput, MAX_GIT_MEMORY_BYTES, REMOVED_GIT_VARIABLES,
    limit_git_memory,
};
use larder_sync::{
    CommitRoundEvent, CommitSyncOptions, CommitSyncReport, SourceSelection, SourceStores,
    SourceType, add_source, find_unindexed_sources, list_sources, sync_repositories,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A repository, and the stores of its registration and of its commits.
pub(crate) struct GitHome {
    folder: TempDir,
    stores: SourceStores,
    /// The memory that git may use.
    pub(crate) git_memory: u64,
    /// The commit whose trees git does not compare.
    pub(crate) git_fault: Option<GitFault>,
}

/// A commit in front of which each log with paths ends.
#[derive(Debug, Clone)]
pub(crate) enum GitFault {
    /// By a signal.
    Killed(String),
    /// By silence.
    Silent(String),
}

/// The output of a log that a fault cut.
struct CutLog {
    output: PipeReader,
    _writer: Option<PipeWriter>,
}

impl Read for CutLog {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.read(buffer)
    }
}

impl GitOutput for CutLog {
    fn finish(self: Box<Self>) -> Result<String, String> {
        Err("signal: 9 (SIGKILL)".to_string())
    }

    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        Some(self.output.as_fd())
    }
}

/// Returns the output of a log up to the commit of a fault; `None`: the log has no such commit.
fn cut_log(
    fault: &GitFault,
    mut log: Box<dyn GitOutput>,
) -> io::Result<Option<Box<dyn GitOutput>>> {
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let (GitFault::Killed(hash) | GitFault::Silent(hash)) = fault;
    // The hash of a parent has no empty field in front of it.
    let start = format!("\0\0{hash}\0");
    let padded = [b"\0", bytes.as_slice()].concat();
    let Some(at) = padded.windows(start.len()).position(|part| part == start.as_bytes()) else {
        return Ok(None);
    };
    let (output, mut writer) = io::pipe()?;
    writer.write_all(&bytes[..=at])?;
    let is_silent = matches!(fault, GitFault::Silent(_));
    Ok(Some(Box::new(CutLog { output, _writer: is_silent.then_some(writer) })))
}

/// A process of git.
struct TestGit(Child);

impl Read for TestGit {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.stdout.as_mut().unwrap().read(buffer)
    }
}

impl GitOutput for TestGit {
    fn finish(mut self: Box<Self>) -> Result<String, String> {
        self.0.stdout = None;
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        if self.0.wait().unwrap().success() { Ok(text) } else { Err(text) }
    }

    fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.0.stdout.as_ref().map(|output| output.as_fd())
    }
}

impl Drop for TestGit {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

fn start_git(command: &GitCommand, memory: u64) -> io::Result<Box<dyn GitOutput>> {
    let mut git = Command::new("git");
    for name in REMOVED_GIT_VARIABLES {
        git.env_remove(name);
    }
    git.envs(GIT_VARIABLES.iter().copied()).env("GIT_CEILING_DIRECTORIES", &command.ceiling);
    git.args(&command.arguments).stdin(Stdio::piped());
    let mut child = git.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    limit_git_memory(&child, memory)?;
    child.stdin.take().unwrap().write_all(&command.input)?;
    Ok(Box::new(TestGit(child)))
}

/// Returns whether a command is a log with paths.
fn has_paths(command: &GitCommand) -> bool {
    command.arguments.iter().any(|argument| argument == "--name-only")
}

/// A commit as the index knows it: subject, author, committer, parents and dates.
pub(crate) type IndexedCommit = (String, Vec<String>, Vec<String>, [u32; 2]);

impl GitHome {
    /// Creates an empty repository.
    pub(crate) fn new(options: &[&str]) -> GitHome {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDirectory::new(folder.path().join("data"));
        let options_of_store = StoreOptions { create: true, ..StoreOptions::default() };
        let mut store = Store::open(data.clone(), &options_of_store).unwrap();
        let root = folder.path().join("repository");
        add_source(&mut store, SourceType::Repository, "code", &root, 0).unwrap();
        let index = data.clone().with_store_file(StoreFile::Commits);
        fs::create_dir(&root).unwrap();
        let stores = SourceStores { data, index, options: options_of_store };
        let home = GitHome { folder, stores, git_memory: MAX_GIT_MEMORY_BYTES, git_fault: None };
        home.git(&[&["init", "-q", "-b", "main"], options].concat());
        home
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs git in the repository. Returns its output; an error is its text.
    pub(crate) fn try_git(&self, arguments: &[&str]) -> Result<String, String> {
        let mut git = Command::new("git");
        git.current_dir(self.root()).args(arguments).env("HOME", self.folder.path());
        for name in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{name}_NAME"), "Anna Berg");
            git.env(format!("GIT_{name}_EMAIL"), "anna@example.org");
        }
        let output = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    }

    /// Runs git with an input. Returns its output.
    pub(crate) fn git_with_input(&self, arguments: &[&str], input: &str) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.root()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = git.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    /// Writes a blob. Returns its hash.
    pub(crate) fn hash_object(&self, text: &str) -> String {
        self.git_with_input(&["hash-object", "-w", "--stdin"], text)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.try_git(arguments).unwrap_or_else(|error| panic!("git {arguments:?}: {error}"))
    }

    /// Writes a file and commits it, at this second of 2020. Returns the hash.
    pub(crate) fn commit(&self, path: &str, subject: &str, second: u32) -> String {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("{subject} {second}")).unwrap();
        self.git(&["add", "-A"]);
        let date = format!("{} +0000", 1_577_836_800 + second);
        let environment = format!("--date={date}");
        self.git(&["commit", "-q", "--allow-empty", &environment, "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Synchronises; the result of the repository.
    pub(crate) fn sync(&self) -> CommitSyncReport {
        self.try_sync(CommitSyncOptions::default(), &|| false).unwrap()
    }

    /// Synchronises, and compares all commits.
    pub(crate) fn sync_fully(&self) -> CommitSyncReport {
        let options = CommitSyncOptions { is_full: true, ..CommitSyncOptions::default() };
        self.try_sync(options, &|| false).unwrap()
    }

    pub(crate) fn try_sync(
        &self,
        options: CommitSyncOptions,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<CommitSyncReport, String> {
        let mut result = Err("no source".to_string());
        let mut note = |event: CommitRoundEvent<'_>| {
            if let CommitRoundEvent::Finished(_, report) = event {
                result = match report {
                    Ok(report) => {
                        Ok(CommitSyncReport { problems: report.problems.clone(), ..*report })
                    }
                    Err(error) => Err(error.to_string()),
                };
            }
        };
        let all = SourceSelection::default();
        let stores = &self.stores;
        let start = |git: &GitCommand| {
            let run = || start_git(git, self.git_memory);
            match self.git_fault.as_ref().filter(|_| has_paths(git)) {
                Some(fault) => cut_log(fault, run()?)?.map_or_else(run, Ok),
                None => run(),
            }
        };
        sync_repositories(stores, &all, options, 0, &start, &mut note, is_cancelled).unwrap();
        result
    }

    /// Deletes the index, and makes it anew.
    pub(crate) fn delete_index(&self) {
        fs::remove_file(self.path("data/commits.db")).unwrap();
    }

    pub(crate) fn index(&self) -> DataDirectory {
        self.stores.index.clone()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(self.stores.index.clone()).unwrap()
    }

    /// Returns the number of sources that are not completely indexed.
    pub(crate) fn count_unindexed(&self) -> usize {
        let data = Reader::open(self.stores.data.clone()).unwrap();
        let sources = list_sources(&data, SourceType::Repository).unwrap();
        let index = self.reader();
        find_unindexed_sources(&index, SourceType::Repository, &sources).unwrap().len()
    }

    /// Returns the hashes of the commits that match, the newest first.
    pub(crate) fn find(&self, line: &str) -> Vec<String> {
        let reader = self.reader();
        let context = MailQueryContext::from(&UserLocale::default()).with_kind(Kind::Commit);
        let query = MailQuery::parse(line, &context).unwrap();
        let mail = reader.mail().unwrap();
        let words = mail.words();
        let search = MailSearch::open(&mail, &words).unwrap();
        let hits = search.find_newest(&query, usize::MAX).unwrap();
        assert_eq!(search.count(&query).unwrap(), hits.len() as u64, "{line}");
        hits.iter().map(|hit| mail.message(hit.row).unwrap().unwrap().uid).collect()
    }

    /// Returns all commits of the index by hash.
    pub(crate) fn read_commits(&self) -> BTreeMap<String, IndexedCommit> {
        let reader = self.reader();
        let mail = reader.mail().unwrap();
        let mut commits = BTreeMap::new();
        let mut rows = Vec::new();
        mail.for_each_uid(&mut |row, _| rows.push(row)).unwrap();
        for row in rows {
            let message = mail.message(row).unwrap().unwrap();
            let summary = message.summary.to_summary();
            let people = [summary.from, summary.cc].concat();
            let people = people.iter().map(ToString::to_string).collect();
            let (block, place) = block_of(row);
            let value = |column| mail.values(column, block).unwrap()[place];
            let dates = [value(MailColumn::Date), value(MailColumn::Changed)];
            commits.insert(message.uid, (summary.subject, people, summary.references, dates));
        }
        commits
    }

    /// Checks the store.
    pub(crate) fn check(&self) {
        let store = Store::open(self.stores.index.clone(), &self.stores.options).unwrap();
        assert_eq!(store.check().unwrap().faults, []);
    }
}

/// Returns whether a path of a repository is loose: an object that a test damages.
pub(crate) fn object_path(root: &Path, hash: &str) -> PathBuf {
    root.join(".git/objects").join(&hash[..2]).join(&hash[2..])
}
