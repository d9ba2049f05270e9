//! A git repository, read through git itself.
//!
//! Each answer is from a command of git that changes nothing: no hook, pager, filter or program of
//! the configuration runs, no lock is taken, nothing is fetched, and variables of a surrounding git
//! do not count. The caller starts the processes ([`StartGit`]), because a library knows no
//! environment. Separate from `commit_sync`, which compares the commits with those that the store
//! knows.

mod commit_log;
mod git_process;

pub use commit_log::{LogReader, LoggedCommit};
pub use git_process::{GitOutput, GitTimeLimits, MAX_GIT_MEMORY_BYTES, limit_git_memory};

use commit_log::LOG_FORMAT;
use git_process::{GitProcess, GitTimeBudget};
use larder_format::decoding::decode_charset;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest field of a commit that is read; the rest is left out.
const MAX_FIELD_BYTES: u64 = 4 << 20;
/// The ref of the last stash, whose log has the others.
const STASH_REF: &str = "refs/stash";
/// The bytes of an error of git that are read.
pub const MAX_GIT_ERROR_BYTES: u64 = 4 << 10;
/// The most bytes of a commit object that are shown.
const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Settings of every command: nothing that a repository or a user configures changes the output.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    // An empty name would be that of a file, too.
    "diff.orderFile=/dev/null",
    "diff.relative=false",
    "diff.renames=false",
    "log.follow=false",
    "log.mailmap=false",
    "log.showRoot=true",
    "log.showSignature=false",
    "protocol.allow=never",
];

/// The variables that git must not see: they name another repository, or change what it does.
pub const REMOVED_GIT_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

/// The variables of every command, beside `GIT_CEILING_DIRECTORIES`.
pub const GIT_VARIABLES: &[(&str, &str)] = &[
    // No protocol is allowed, whatever the configuration of the repository says.
    ("GIT_ALLOW_PROTOCOL", ""),
    // The file of the repository would be read.
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// A command of git to be started.
#[derive(Debug, Clone)]
pub struct GitCommand {
    /// All arguments.
    pub arguments: Vec<OsString>,
    /// The value of `GIT_CEILING_DIRECTORIES`: git looks for no repository above this folder.
    pub ceiling: PathBuf,
    /// The text that it reads.
    pub input: Vec<u8>,
}

/// Starts git with a command, without [`REMOVED_GIT_VARIABLES`] and with [`GIT_VARIABLES`].
pub type StartGit<'g> = &'g dyn Fn(&GitCommand) -> io::Result<Box<dyn GitOutput>>;

/// A failure of git.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// There is no program `git`.
    #[error(
        "git is not installed, or not in PATH, and repositories are read through it: install git, \
         and run larder sync again"
    )]
    NotInstalled,
    /// The process could not be started, or its output not be read.
    #[error("cannot run git: {0}")]
    Process(#[source] io::Error),
    /// The path has no repository.
    #[error("{path} is no git repository")]
    NotARepository {
        /// The path.
        path: PathBuf,
    },
    /// The repository belongs to another user, whose configuration git does not trust.
    #[error(
        "{path} belongs to another user, so git does not read it; to allow it: git config --global \
         --add safe.directory {path}"
    )]
    OtherOwner {
        /// The path.
        path: PathBuf,
    },
    /// A command failed.
    #[error("git cannot read {path}: {reason}")]
    Failed {
        /// The path.
        path: PathBuf,
        /// The words of git.
        reason: String,
    },
    /// It printed nothing for a long time, or was waited for too long in all.
    #[error("git takes too long to read {path}")]
    TimedOut {
        /// The path.
        path: PathBuf,
    },
    /// The caller does not need the output any more.
    #[error("the reading of a repository was interrupted")]
    Cancelled,
}

impl GitError {
    /// Returns whether git could not read objects, or took more than it may for them.
    #[must_use]
    pub fn is_of_objects(&self) -> bool {
        matches!(self, GitError::Failed { .. } | GitError::TimedOut { .. })
    }

    /// Returns whether git took more memory or time than it may.
    #[must_use]
    pub fn is_of_limits(&self) -> bool {
        match self {
            GitError::Failed { reason, .. } => {
                // A signal is none: the system ends processes, too.
                let words = ["ut of memory", "annot allocate memory"];
                words.iter().any(|words| reason.contains(words))
            }
            error => matches!(error, GitError::TimedOut { .. }),
        }
    }
}

/// A repository: a work tree, a bare repository, or a folder `.git`.
pub struct GitRepository<'g> {
    path: PathBuf,
    start: StartGit<'g>,
    is_cancelled: &'g dyn Fn() -> bool,
    common_directory: PathBuf,
    budget: Rc<GitTimeBudget>,
}

/// The refs of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryRefs {
    /// The hashes of the objects that refs, stashes and work trees name, sorted, each once.
    pub tips: Vec<String>,
    /// The number of refs.
    pub count: usize,
    /// The commits at which a shallow clone ends, sorted.
    pub shallow: Vec<String>,
    /// The refs that git cannot read, each in words.
    pub faults: Vec<String>,
}

/// Returns whether a folder may be a git repository: it has `.git`, or what a bare one has.
#[must_use]
pub fn is_repository_folder(path: &Path) -> bool {
    path.join(".git").exists()
        || path.join("HEAD").exists() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

impl<'g> GitRepository<'g> {
    /// Opens the repository at a path. Folders inside a work tree are not taken for it.
    ///
    /// # Errors
    /// There is no repository, git cannot be run, or refuses to read it.
    pub fn open(path: &Path, start: StartGit<'g>) -> Result<GitRepository<'g>, GitError> {
        GitRepository::open_until(path, start, &|| false)
    }

    /// Opens the repository at a path, as [`GitRepository::open`]. What is read from it ends with
    /// [`GitError::Cancelled`] when `is_cancelled` returns true.
    ///
    /// # Errors
    /// As [`GitRepository::open`].
    pub fn open_until(
        path: &Path,
        start: StartGit<'g>,
        is_cancelled: &'g dyn Fn() -> bool,
    ) -> Result<GitRepository<'g>, GitError> {
        let path_buf = path.to_path_buf();
        if !is_repository_folder(path) {
            return Err(GitError::NotARepository { path: path_buf });
        }
        let common_directory = path.to_path_buf();
        let budget = Rc::default();
        let mut repository =
            GitRepository { path: path_buf, start, is_cancelled, common_directory, budget };
        let output = repository.run(&["rev-parse", "--git-common-dir"], Vec::new())?;
        let line = output.strip_suffix(b"\n").unwrap_or(&output);
        let directory = path.join(bytes_to_path(line));
        repository.common_directory = fs::canonicalize(&directory).unwrap_or(directory);
        Ok(repository)
    }

    /// Sets the time that git is waited for while it compares trees.
    #[must_use]
    pub fn with_time_limits(mut self, limits: GitTimeLimits) -> GitRepository<'g> {
        self.budget = Rc::new(GitTimeBudget::new(limits));
        self
    }

    /// Returns whether git has been waited for so long that no more trees are compared.
    #[must_use]
    pub fn is_out_of_time(&self) -> bool {
        self.budget.is_spent()
    }

    /// Returns the path that it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder that all work trees of the repository share.
    #[must_use]
    pub fn common_directory(&self) -> &Path {
        &self.common_directory
    }

    /// Returns whether objects were left out when it was cloned.
    #[must_use]
    pub fn is_partial_clone(&self) -> bool {
        let names = r"^(extensions\.partialclone|remote\..*\.promisor)$";
        self.run(&["config", "--get-regexp", names], Vec::new()).is_ok()
    }

    /// Returns whether trees were left out when it was cloned.
    #[must_use]
    pub fn is_clone_without_trees(&self) -> bool {
        let (name, filter) = (r"\.partialclonefilter$", "(^|[:+])tree:");
        self.run(&["config", "--get-regexp", name, filter], Vec::new()).is_ok()
    }

    /// Starts a command, which is waited for within `budget`, if that is set.
    fn start(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        budget: Option<Rc<GitTimeBudget>>,
    ) -> Result<GitProcess<'g>, GitError> {
        let mut all: Vec<OsString> = vec!["-C".into(), self.path.clone().into()];
        all.push("--no-pager".into());
        for setting in SETTINGS {
            all.extend(["-c".into(), (*setting).into()]);
        }
        all.extend(arguments.iter().map(OsString::from));
        let real_path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let ceiling = real_path.parent().unwrap_or(Path::new("")).to_path_buf();
        let command = GitCommand { arguments: all, ceiling, input };
        match (self.start)(&command) {
            Ok(output) => Ok(GitProcess::new(output, self.path.clone(), self.is_cancelled, budget)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(GitError::NotInstalled),
            Err(error) => Err(GitError::Process(error)),
        }
    }

    /// Runs a command whose output is small.
    fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Vec<u8>, GitError> {
        self.run_with_warnings(arguments, input).map(|(output, _)| output)
    }

    /// Runs a command whose output is small. Returns the output, and the warnings.
    fn run_with_warnings(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
    ) -> Result<(Vec<u8>, String), GitError> {
        let mut process = self.start(arguments, input, None)?;
        let mut output = Vec::new();
        let read = process.reader.by_ref().take(MAX_OBJECT_BYTES).read_to_end(&mut output);
        read.map_err(|error| process.read_error(error))?;
        Ok((output, process.finish()?))
    }

    /// Reads the refs. Notes, and replacements of objects, are no history.
    ///
    /// # Errors
    /// git cannot read the repository. Single refs that it cannot read are faults of the refs.
    pub fn read_refs(&self) -> Result<RepositoryRefs, GitError> {
        let arguments = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let (output, warnings) = self.run_with_warnings(&arguments, Vec::new())?;
        let (mut refs, mut has_stash) = (RepositoryRefs::default(), false);
        for line in String::from_utf8_lossy(&output).lines() {
            let Some((hash, name)) = line.split_once(' ') else { continue };
            if is_history(name) {
                refs.tips.push(hash.to_string());
                refs.count += 1;
                has_stash |= name == STASH_REF;
            }
        }
        for warning in warnings.lines() {
            if let Some((_, name)) = warning.split_once("ignoring broken ref ")
                && is_history(name)
                && !self.is_symbolic(name)
            {
                refs.faults.push(format!("the ref {name} is broken, and its commits are not read"));
            }
        }
        self.read_head(&mut refs)?;
        self.read_work_trees(&mut refs)?;
        if has_stash {
            self.read_stashes(&mut refs)?;
        }
        refs.tips.retain(|hash| is_hash(hash));
        refs.tips.sort_unstable();
        refs.tips.dedup();
        refs.shallow = self.read_shallow()?.lines().map(ToString::to_string).collect();
        refs.shallow.retain(|hash| is_hash(hash));
        refs.shallow.sort_unstable();
        Ok(refs)
    }

    /// Returns whether a ref is the name of another one, which may be absent: git before 2.34 calls
    /// it broken then, as `origin/HEAD` after the other side renamed its branch.
    fn is_symbolic(&self, name: &str) -> bool {
        self.run(&["symbolic-ref", "--quiet", name], Vec::new()).is_ok()
    }

    /// Adds the commit of the work tree, which may be of no branch. A new repository has none.
    fn read_head(&self, refs: &mut RepositoryRefs) -> Result<(), GitError> {
        let mut head = self.run(&["rev-parse", "--verify", "--quiet", "HEAD"], Vec::new());
        if matches!(head, Err(GitError::Failed { .. })) {
            // Only the log tells a branch without commits from one that is broken.
            head = self.run(&["log", "-1", "--format=%H"], Vec::new());
        }
        match head {
            Ok(hash) => refs.tips.push(String::from_utf8_lossy(&hash).trim().to_string()),
            Err(GitError::Failed { reason, .. }) => {
                // A broken ref that was named is the reason.
                if !reason.ends_with("does not have any commits yet") && refs.faults.is_empty() {
                    refs.faults.push(format!("HEAD cannot be read: {reason}"));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds the commits of all work trees, which may be of no branch.
    fn read_work_trees(&self, refs: &mut RepositoryRefs) -> Result<(), GitError> {
        let output = self.run(&["worktree", "list", "--porcelain"], Vec::new())?;
        for work_tree in String::from_utf8_lossy(&output).split("\n\n") {
            let value = |name| work_tree.lines().find_map(|line| line.strip_prefix(name));
            let Some(hash) = value("HEAD ") else { continue };
            if hash.bytes().any(|digit| digit != b'0') {
                refs.tips.push(hash.to_string());
            } else if value("branch ").is_none() && refs.faults.is_empty() {
                let path = value("worktree ").unwrap_or_default();
                refs.faults.push(format!("HEAD of the work tree {path} cannot be read"));
            }
        }
        Ok(())
    }

    /// Adds the commits of all stashes: the ref names only the last one.
    fn read_stashes(&self, refs: &mut RepositoryRefs) -> Result<(), GitError> {
        match self.run(&["rev-list", "--walk-reflogs", STASH_REF], Vec::new()) {
            Ok(hashes) => {
                refs.tips.extend(String::from_utf8_lossy(&hashes).lines().map(ToString::to_string));
            }
            Err(GitError::Failed { reason, .. }) => {
                refs.faults.push(format!("the stashes cannot be read: {reason}"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the file with the commits at which a shallow clone ends; empty: it is none.
    fn read_shallow(&self) -> Result<String, GitError> {
        let path = self.common_directory.join("shallow");
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| GitError::Failed { path, reason: error.to_string() }),
        }
    }

    /// Lists the commits that can be reached from `tips` and not from `excluded`, the newest first.
    /// If `skips_missing`, commits that are missing are no error (since git 2.44), and are passed
    /// with a question mark in front of them.
    ///
    /// # Errors
    /// A tip or another commit cannot be read. The commits in front of it were passed to `visit`.
    pub fn list_hashes(
        &self,
        tips: &[String],
        excluded: &[String],
        skips_missing: bool,
        visit: &mut dyn FnMut(&str),
    ) -> Result<(), GitError> {
        if tips.is_empty() {
            return Ok(());
        }
        let mut arguments = vec!["rev-list", "--stdin"];
        if skips_missing {
            arguments.push("--missing=print");
        }
        let mut process = self.start(&arguments, revision_input(tips, excluded), None)?;
        let mut line = String::new();
        loop {
            line.clear();
            let read = process.reader.read_line(&mut line);
            if read.map_err(|error| process.read_error(error))? == 0 {
                return process.finish().map(drop);
            }
            visit(line.trim_end());
        }
    }

    /// Reads the commits that can be reached from `tips` and not from `excluded`, the newest first.
    ///
    /// # Errors
    /// git cannot be started.
    pub fn read_log(
        &self,
        tips: &[String],
        excluded: &[String],
    ) -> Result<LogReader<'g>, GitError> {
        let budget = Rc::clone(&self.budget);
        self.start_log(&["--name-only"], revision_input(tips, excluded), budget)
    }

    /// Reads these commits in this order; their paths only if `has_paths`.
    ///
    /// # Errors
    /// git cannot be started.
    pub fn read_commits(
        &self,
        hashes: &[String],
        has_paths: bool,
    ) -> Result<LogReader<'g>, GitError> {
        let mut options = vec!["--no-walk=unsorted"];
        // Without trees, no commit is expensive.
        let mut budget = Rc::default();
        if has_paths {
            options.push("--name-only");
            budget = Rc::clone(&self.budget);
        }
        self.start_log(&options, revision_input(hashes, &[]), budget)
    }

    fn start_log(
        &self,
        options: &[&str],
        input: Vec<u8>,
        budget: Rc<GitTimeBudget>,
    ) -> Result<LogReader<'g>, GitError> {
        let mut arguments = vec!["log", "--stdin", "-z", LOG_FORMAT, "--encoding=UTF-8"];
        arguments.extend(["--no-renames", "--no-ext-diff", "--no-textconv", "--no-show-signature"]);
        arguments.extend(["--ignore-submodules=none", "--no-color"]);
        arguments.extend(options);
        Ok(LogReader::new(self.start(&arguments, input, Some(budget))?))
    }

    /// Returns the bytes of a commit object.
    ///
    /// # Errors
    /// git has no such commit, or cannot read it.
    pub fn read_object(&self, hash: &str) -> Result<Vec<u8>, GitError> {
        self.run(&["cat-file", "commit", hash], Vec::new())
    }

    /// Returns the paths that a commit changed, each with a letter as `git log --name-status` has:
    /// added, modified, deleted, or another type. A merge has none.
    ///
    /// # Errors
    /// git cannot read the commit.
    pub fn read_changed_paths(&self, hash: &str) -> Result<Vec<(char, String)>, GitError> {
        let arguments =
            ["diff-tree", "--root", "-r", "-z", "--no-renames", "--name-status", "--no-commit-id"];
        let options = ["--ignore-submodules=none", "--no-ext-diff", hash];
        let output = self.run(&[&arguments[..], &options[..]].concat(), Vec::new())?;
        let mut fields = output.split(|byte| *byte == 0);
        let mut paths = Vec::new();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let letter = status.first().map_or('?', |byte| char::from(*byte));
            paths.push((letter, decode_charset(path, None).into_owned()));
        }
        Ok(paths)
    }
}

/// Returns whether a text is the hash of an object, of SHA-1 or SHA-256.
fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the revisions as git reads them.
fn revision_input(tips: &[String], excluded: &[String]) -> Vec<u8> {
    let mut input = String::with_capacity((tips.len() + excluded.len()) * 42);
    for (prefix, hashes) in [("", tips), ("^", excluded)] {
        for hash in hashes {
            input.push_str(prefix);
            input.push_str(hash);
            input.push('\n');
        }
    }
    input.into_bytes()
}

fn bytes_to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}
/// Returns whether commits of a ref are history. Notes, and replacements of objects, are not.
fn is_history(name: &str) -> bool {
    !name.starts_with("refs/notes/") && !name.starts_with("refs/replace/")
}
