//! A git repository, read through git itself.
//!
//! Every question is a command of git that changes nothing: no hook, pager, filter or program of
//! the configuration runs, no lock is taken, nothing is fetched, and variables of a surrounding git
//! do not count. The caller starts the processes ([`StartGit`]), because a library knows no
//! environment. Separate from `commit_sync`, which compares the commits with those that the store
//! knows.

use larder_format::commit::{Commit, CommitSignature};
use larder_format::decoding::decode_charset;
use larder_store::MAX_COMMIT_PATHS;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest field of a commit that is read; the rest is left out.
const MAX_FIELD_BYTES: u64 = 4 << 20;
/// The bytes of an error of git that are read.
pub const MAX_GIT_ERROR_BYTES: u64 = 4 << 10;
/// The bytes of the output of git that are read at once.
const OUTPUT_BUFFER_BYTES: usize = 256 << 10;
/// The most bytes of a commit object that are shown.
const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Settings of every command: nothing that a repository or a user configures changes the output.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
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

/// The format of a commit in the log: an empty field, so that the end of the paths before it is
/// known, and the fields of [`LogReader::read_commit`], each with a zero byte behind it.
const LOG_FORMAT: &str =
    "--format=tformat:%x00%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";

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

/// A running process of git. It ends when this is dropped.
pub trait GitOutput: Read {
    /// Waits for the end of the process. An error is what it reported.
    ///
    /// # Errors
    /// The process failed.
    fn finish(self: Box<Self>) -> Result<(), String>;
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
}

/// A repository: a work tree, a bare repository, or a folder `.git`.
pub struct GitRepository<'g> {
    path: PathBuf,
    start: StartGit<'g>,
    common_directory: PathBuf,
}

/// The refs of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepositoryRefs {
    /// The hashes of the objects that refs name, sorted, each once.
    pub tips: Vec<String>,
    /// The number of refs.
    pub count: usize,
    /// The commits at which a shallow clone ends, sorted.
    pub shallow: Vec<String>,
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
        let path_buf = path.to_path_buf();
        if !is_repository_folder(path) {
            return Err(GitError::NotARepository { path: path_buf });
        }
        let mut repository = GitRepository { path: path_buf, start, common_directory: path.into() };
        let output = repository.run(&["rev-parse", "--git-common-dir"], Vec::new())?;
        let line = output.strip_suffix(b"\n").unwrap_or(&output);
        let directory = path.join(bytes_to_path(line));
        repository.common_directory = fs::canonicalize(&directory).unwrap_or(directory);
        Ok(repository)
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

    /// Starts a command.
    fn start(&self, arguments: &[&str], input: Vec<u8>) -> Result<GitProcess, GitError> {
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
            Ok(output) => {
                let reader = BufReader::with_capacity(OUTPUT_BUFFER_BYTES, output);
                Ok(GitProcess { reader, path: self.path.clone() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(GitError::NotInstalled),
            Err(error) => Err(GitError::Process(error)),
        }
    }

    /// Runs a command whose output is small.
    fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Vec<u8>, GitError> {
        let mut process = self.start(arguments, input)?;
        let mut output = Vec::new();
        let reader = &mut process.reader;
        reader.take(MAX_OBJECT_BYTES).read_to_end(&mut output).map_err(GitError::Process)?;
        process.finish()?;
        Ok(output)
    }

    /// Reads the refs. Notes, and replacements of objects, are no history.
    ///
    /// # Errors
    /// git cannot read the repository.
    pub fn read_refs(&self) -> Result<RepositoryRefs, GitError> {
        let output =
            self.run(&["for-each-ref", "--format=%(objectname) %(refname)"], Vec::new())?;
        let mut refs = RepositoryRefs::default();
        for line in String::from_utf8_lossy(&output).lines() {
            let Some((hash, name)) = line.split_once(' ') else { continue };
            if !name.starts_with("refs/notes/") && !name.starts_with("refs/replace/") {
                refs.tips.push(hash.to_string());
                refs.count += 1;
            }
        }
        // It may be detached; a new repository has none.
        let head = self.run(&["rev-parse", "--verify", "--quiet", "HEAD"], Vec::new());
        refs.tips.extend(head.ok().map(|hash| String::from_utf8_lossy(&hash).trim().to_string()));
        refs.tips.retain(|hash| is_hash(hash));
        refs.tips.sort_unstable();
        refs.tips.dedup();
        let shallow = fs::read_to_string(self.common_directory.join("shallow"));
        refs.shallow = shallow.unwrap_or_default().lines().map(ToString::to_string).collect();
        refs.shallow.retain(|hash| is_hash(hash));
        refs.shallow.sort_unstable();
        Ok(refs)
    }

    /// Lists the commits that can be reached from `tips` and not from `excluded`, the newest first.
    /// If `skips_missing`, commits that are missing are no error (since git 2.44).
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
            arguments.push("--missing=allow-any");
        }
        let mut process = self.start(&arguments, revision_input(tips, excluded))?;
        let mut line = String::new();
        loop {
            line.clear();
            let length = process.reader.read_line(&mut line).map_err(GitError::Process)?;
            if length == 0 {
                return process.finish();
            }
            visit(line.trim_end());
        }
    }

    /// Reads the commits that can be reached from `tips` and not from `excluded`, the newest first.
    ///
    /// # Errors
    /// git cannot be started.
    pub fn read_log(&self, tips: &[String], excluded: &[String]) -> Result<LogReader, GitError> {
        self.start_log(&["--name-only"], revision_input(tips, excluded))
    }

    /// Reads these commits in this order; their paths only if `has_paths`.
    ///
    /// # Errors
    /// git cannot be started.
    pub fn read_commits(&self, hashes: &[String], has_paths: bool) -> Result<LogReader, GitError> {
        let mut options = vec!["--no-walk=unsorted"];
        if has_paths {
            options.push("--name-only");
        }
        self.start_log(&options, revision_input(hashes, &[]))
    }

    fn start_log(&self, options: &[&str], input: Vec<u8>) -> Result<LogReader, GitError> {
        let mut arguments = vec!["log", "--stdin", "-z", LOG_FORMAT, "--encoding=UTF-8"];
        arguments.extend(["--no-renames", "--no-ext-diff", "--no-textconv", "--no-show-signature"]);
        arguments.extend(["--ignore-submodules=none", "--no-color"]);
        arguments.extend(options);
        let process = self.start(&arguments, input)?;
        Ok(LogReader { process: Some(process), field: Vec::new(), is_started: false })
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

/// A running command.
struct GitProcess {
    reader: BufReader<Box<dyn GitOutput>>,
    path: PathBuf,
}

impl GitProcess {
    /// Waits for the end.
    fn finish(self) -> Result<(), GitError> {
        let path = self.path;
        self.reader.into_inner().finish().map_err(|reason| {
            if reason.contains("dubious ownership") {
                return GitError::OtherOwner { path };
            }
            if reason.contains("not a git repository") {
                return GitError::NotARepository { path };
            }
            GitError::Failed { path, reason: summarize_error(&reason) }
        })
    }
}

/// Returns the lines of an error that say what is wrong.
fn summarize_error(reason: &str) -> String {
    let strip = |line: &'_ str| -> Option<String> {
        let text = line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: "))?;
        Some(text.trim().to_string())
    };
    let mut lines: Vec<String> = reason.lines().filter_map(strip).collect();
    lines.dedup();
    match lines.as_slice() {
        [] => reason.lines().next().unwrap_or("it ended early").trim().to_string(),
        lines => lines.join("; "),
    }
}

/// The commits of a log, one after the other.
pub struct LogReader {
    process: Option<GitProcess>,
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
}

impl LogReader {
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
        let mut commit = Commit { hash, parents, author, committer, message, paths: Vec::new() };
        let mut skipped_paths = 0;
        let mut is_first = true;
        loop {
            if !self.read_field()? {
                // Without an end, the paths are complete only if git says so.
                self.finish()?;
                break;
            }
            if self.field.is_empty() {
                break;
            }
            // The first path is on a line of its own.
            let line_start = usize::from(std::mem::take(&mut is_first));
            let path = decode_charset(self.field.get(line_start..).unwrap_or_default(), None);
            match commit.paths.len() < MAX_COMMIT_PATHS {
                true => commit.paths.push(path.into_owned()),
                false => skipped_paths += 1,
            }
        }
        Ok(Some(LoggedCommit { commit, skipped_paths }))
    }

    fn finish(&mut self) -> Result<Option<LoggedCommit>, GitError> {
        self.process.take().map_or(Ok(None), |process| process.finish().map(|()| None))
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
        let reader = &mut process.reader;
        let mut part = reader.take(MAX_FIELD_BYTES);
        part.read_until(0, &mut self.field).map_err(GitError::Process)?;
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
            if part.read_until(0, &mut rest).map_err(GitError::Process)? == 0 {
                break;
            }
        }
        Ok(true)
    }
}
