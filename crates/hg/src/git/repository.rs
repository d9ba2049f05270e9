//! A git repository, through git itself: objects by `git cat-file --batch`, refs by
//! `git update-ref --stdin` (but for many new ones), settings by `git config`.

use super::environment::git_command;
use super::pack_keep::{KEEP_TEXT, PackKeep};
use super::pack_leftovers::sweep_leftovers;
use super::packed_refs::{PackedRefsLock, are_free};
use crate::mutex::lock;
use crate::object_id::GitId;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The number of new refs from which on they are packed into one file.
const MANY_REFS: usize = 100;

/// Why git could not be used.
#[derive(Debug, thiserror::Error)]
pub enum GitDirectoryError {
    /// git could not be started, or its pipe broke.
    #[error("git {command}: {source}")]
    Pipe {
        /// The command of git.
        command: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// git ended with an error.
    #[error("git {command}: {message}")]
    Failed {
        /// The command of git.
        command: &'static str,
        /// git's own words.
        message: String,
    },
    /// An object is missing.
    #[error("git has no object {id}")]
    Missing {
        /// The object.
        id: GitId,
    },
    /// The ids of the repository are not of SHA-1.
    #[error("not supported: a git repository with the object format {format}")]
    ObjectFormat {
        /// git's name for the format.
        format: String,
    },
    /// The output of git has another form.
    #[error("git {command}: unexpected output")]
    Output {
        /// The command of git.
        command: &'static str,
    },
}

impl GitDirectoryError {
    /// Returns whether git ended before it had answered, as at an object that it cannot read.
    pub(crate) fn is_early_end(&self) -> bool {
        match self {
            GitDirectoryError::Pipe { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            GitDirectoryError::Failed { .. } => true,
            _ => false,
        }
    }
}

/// A git repository.
pub struct GitDirectory {
    directory: PathBuf,
    objects: Option<ObjectProcess>,
    /// The process of a handle that is gone, for the next one that reads objects: git takes
    /// milliseconds to start, most of the time of a fetch of few changesets.
    idle: Arc<Mutex<Option<ObjectProcess>>>,
}

/// The command of git that reads objects.
const OBJECT_READER: &str = "cat-file";
/// git keeps 96 MB of the texts that others are made from, the whole chain of each large file, but
/// objects that are read here one after the other hardly share them. A fetch and a check take as
/// long with less.
const DELTA_BASE_CACHE: &str = "core.deltaBaseCacheLimit=8m";

/// `git cat-file --batch`, which answers one request after the other.
struct ObjectProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Option<BufReader<ChildStdout>>,
}

impl Drop for ObjectProcess {
    fn drop(&mut self) {
        // The end of its input ends it; and a closed pipe does, if it is in the middle of an answer
        // that nobody reads.
        drop((self.requests.take(), self.answers.take()));
        let _status = self.child.wait();
    }
}

/// An object as git reads it.
pub(crate) struct GitObject {
    pub(crate) id: GitId,
    pub(crate) content: Vec<u8>,
}

/// A change of a ref: to an id, or its deletion.
pub(crate) struct RefChange {
    pub(crate) name: Vec<u8>,
    pub(crate) new: Option<GitId>,
    /// The id that the ref must have; null: it must not exist. `None`: any.
    pub(crate) old: Option<GitId>,
}

impl GitDirectory {
    /// Takes the repository with this git directory (the folder with `objects`).
    pub fn new(directory: &Path) -> GitDirectory {
        GitDirectory { directory: directory.to_path_buf(), objects: None, idle: Arc::default() }
    }

    /// Returns another handle of the same repository, for one more reader of objects. It continues
    /// with the process of a handle that is gone.
    pub(crate) fn share(&self) -> GitDirectory {
        let idle = Arc::clone(&self.idle);
        GitDirectory { directory: self.directory.clone(), objects: None, idle }
    }

    /// The git directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn command(&self, name: &'static str) -> Command {
        let mut command = git_command();
        // Replacements would give other objects than those asked for.
        command.arg("--no-replace-objects").arg("--git-dir").arg(&self.directory);
        if name == OBJECT_READER {
            command.args(["-c", DELTA_BASE_CACHE]);
        }
        command.arg(name);
        command
    }

    /// Runs git with an input, and returns its output.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        name: &'static str,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Result<Vec<u8>, GitDirectoryError> {
        let pipe_error = |source| GitDirectoryError::Pipe { command: name, source };
        let mut child = self
            .command(name)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(pipe_error)?;
        let mut stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                // A command that ends without reading all of it reports its own error.
                let _written = stdin.take().map(|mut stdin| stdin.write_all(input));
            });
            child.wait_with_output()
        });
        let output = output.map_err(pipe_error)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
        Err(GitDirectoryError::Failed { command: name, message })
    }

    /// Returns the URL of a remote, or the URL itself, as the settings of git replace it.
    pub fn remote_url(&self, remote: &str) -> Result<String, GitDirectoryError> {
        let output = self.run("ls-remote", ["--get-url", "--", remote], b"")?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_string())
    }

    /// Replaces the only URL of a remote in the settings of the repository. Nothing is changed if
    /// it is another one than `old`, or does not stand there.
    pub fn replace_remote_url(
        &self,
        remote: &OsStr,
        old: &OsStr,
        new: &OsStr,
    ) -> Result<(), GitDirectoryError> {
        let name = [OsStr::new("remote."), remote, OsStr::new(".url")];
        let name = name.into_iter().collect::<OsString>();
        let local = OsStr::new("--local");
        match self.run("config", [local, OsStr::new("--get-all"), &name], b"") {
            Ok(urls) if urls.strip_suffix(b"\n") == Some(old.as_encoded_bytes()) => {
                self.run("config", [local, &name, new], b"").map(drop)
            }
            Ok(_) | Err(GitDirectoryError::Failed { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the folder of packs. A repository whose ids are not of SHA-1 is refused.
    pub(crate) fn pack_folder(&self) -> Result<PathBuf, GitDirectoryError> {
        let args = ["--show-object-format", "--git-path", "objects/pack"];
        let output = self.run("rev-parse", args, b"")?;
        let output = output.strip_suffix(b"\n").unwrap_or(&output);
        let (format, path) = match memchr::memchr(b'\n', output) {
            Some(end) => output.split_at(end),
            None => return Err(GitDirectoryError::Output { command: "rev-parse" }),
        };
        if format != b"sha1" {
            let format = String::from_utf8_lossy(format).into_owned();
            return Err(GitDirectoryError::ObjectFormat { format });
        }
        let path = path.strip_prefix(b"\n").unwrap_or(path);
        Ok(PathBuf::from(std::os::unix::ffi::OsStrExt::from_bytes(path) as &OsStr))
    }

    /// Deletes what killed processes left in the folder of packs below the git directory. A
    /// conversion does so in any other folder, too; this costs no process of git.
    pub(crate) fn sweep_packs(&self) {
        sweep_leftovers(&self.directory.join("objects/pack"));
    }

    /// Finds the repository of a folder, as git does.
    pub fn discover(folder: &Path) -> Result<GitDirectory, GitDirectoryError> {
        let command = "rev-parse";
        let output = git_command()
            .arg("-C")
            .arg(folder)
            .args([command, "--absolute-git-dir"])
            .output()
            .map_err(|source| GitDirectoryError::Pipe { command, source })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(GitDirectoryError::Failed { command, message });
        }
        let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
        Ok(GitDirectory::new(Path::new(std::os::unix::ffi::OsStrExt::from_bytes(path) as &OsStr)))
    }

    /// Creates a repository without a working tree.
    pub fn create(folder: &Path) -> Result<GitDirectory, GitDirectoryError> {
        let command = "init";
        let output = git_command()
            .args([command, "--quiet", "--bare", "--object-format=sha1", "--"])
            .arg(folder)
            .output()
            .map_err(|source| GitDirectoryError::Pipe { command, source })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(GitDirectoryError::Failed { command, message });
        }
        Ok(GitDirectory::new(folder))
    }

    /// Returns the refs below a prefix: an id, a space and a name in each line.
    pub(crate) fn list_refs(&self, prefix: &[u8]) -> Result<Vec<u8>, GitDirectoryError> {
        let prefix: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(prefix);
        let format = OsStr::new("--format=%(objectname) %(refname)");
        self.run("for-each-ref", [format, prefix], b"")
    }

    /// Returns whether the repository has a branch.
    pub fn has_branches(&self) -> Result<bool, GitDirectoryError> {
        let branches = self.run("for-each-ref", ["--count=1", "refs/heads/"], b"")?;
        Ok(!branches.is_empty())
    }

    /// Returns the id that a revision of git names, such as a ref; `None` if there is none.
    pub fn resolve(&mut self, name: &str) -> Result<Option<GitId>, GitDirectoryError> {
        let is_id = name.get(..40).is_some_and(|id| GitId::from_hex(id.as_bytes()).is_some());
        if is_id || name.starts_with("refs/") && !name.contains('@') {
            // The process that reads objects is there anyway.
            return Ok(self.read_object(name)?.map(|object| object.id));
        }
        // Some names, such as `HEAD@{1000}`, would end that process.
        self.read_ref(name)
    }

    /// Returns the id that a ref has, whether or not the object is there; `None` without the ref.
    pub(crate) fn read_ref(&self, name: &str) -> Result<Option<GitId>, GitDirectoryError> {
        match self.run("rev-parse", ["--verify", "--quiet", name], b"") {
            Ok(output) => Ok(GitId::from_hex(output.trim_ascii())),
            Err(GitDirectoryError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the refs of a folder, with its `/` at the end.
    pub(crate) fn refs(&self, folder: &str) -> Result<Vec<(Vec<u8>, GitId)>, GitDirectoryError> {
        let output =
            self.run("for-each-ref", ["--format=%(objectname) %(refname)", folder], b"")?;
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let (digits, name) = line.split_at_checked(40)?;
                Some((name.strip_prefix(b" ")?.to_vec(), GitId::from_hex(digits)?))
            })
            .collect::<Option<_>>()
            .ok_or(GitDirectoryError::Output { command: "for-each-ref" })
    }

    /// Reads the object that a name of git names, such as an id or `COMMIT:PATH`; `None` if it is
    /// missing, or the name is ambiguous.
    pub(crate) fn read_object(
        &mut self,
        name: &str,
    ) -> Result<Option<GitObject>, GitDirectoryError> {
        // A request is a line.
        if name.contains('\n') {
            return Ok(None);
        }
        self.with_object_process(|process| process.read(name))
    }

    /// Talks to the process that reads objects. After an error its answers are those to other
    /// questions, so that it is ended.
    fn with_object_process<T>(
        &mut self,
        talk: impl FnOnce(&mut ObjectProcess) -> io::Result<T>,
    ) -> Result<T, GitDirectoryError> {
        let idle = || lock(&self.idle).take();
        let mut process = match self.objects.take().or_else(idle) {
            Some(process) => process,
            None => self.start_object_process()?,
        };
        let answer = talk(&mut process)
            .map_err(|source| GitDirectoryError::Pipe { command: "cat-file", source })?;
        self.objects = Some(process);
        Ok(answer)
    }

    /// Reads an object that must be there.
    pub(crate) fn read_content(&mut self, id: &GitId) -> Result<Vec<u8>, GitDirectoryError> {
        let object = self.read_object(&id.to_string())?;
        object.map(|object| object.content).ok_or(GitDirectoryError::Missing { id: *id })
    }

    /// Reads objects that must be there, in the order of the ids. They are asked for together, so
    /// that git does not wait for the next question.
    pub(crate) fn read_contents(
        &mut self,
        ids: &[GitId],
        mut each: impl FnMut(GitId, Vec<u8>),
    ) -> Result<(), GitDirectoryError> {
        // So many questions fit into a pipe that nobody reads yet.
        const QUESTIONS: usize = 256;
        for ids in ids.chunks(QUESTIONS) {
            let answers = self.with_object_process(|process| process.read_all(ids))?;
            for (id, answer) in ids.iter().zip(answers) {
                each(*id, answer.ok_or(GitDirectoryError::Missing { id: *id })?.content);
            }
        }
        Ok(())
    }

    fn start_object_process(&self) -> Result<ObjectProcess, GitDirectoryError> {
        let command = "cat-file";
        let mut child = self
            .command(command)
            .arg("--batch")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| GitDirectoryError::Pipe { command, source })?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        match stdout {
            Some(stdout) => {
                let answers = Some(BufReader::new(stdout));
                Ok(ObjectProcess { child, requests: stdin, answers })
            }
            None => Err(GitDirectoryError::Output { command }),
        }
    }

    /// Adds the objects of a pack, all of whose links lead to objects that are there. git does not
    /// delete the pack before the mark is dropped.
    pub(crate) fn index_pack(
        &self,
        pack: &mut dyn io::Read,
    ) -> Result<Option<PackKeep>, GitDirectoryError> {
        let command = "index-pack";
        let pipe_error = |source| GitDirectoryError::Pipe { command, source };
        let mut child = self
            .command(command)
            .args(["--stdin", "--fix-thin", "--check-self-contained-and-connected"])
            .arg(format!("--keep={KEEP_TEXT}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(pipe_error)?;
        if let Some(mut stdin) = child.stdin.take() {
            // git notices a pack that ends early, and says why it stops reading.
            let _copied = io::copy(pack, &mut stdin);
        }
        let output = child.wait_with_output().map_err(pipe_error)?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(GitDirectoryError::Failed { command, message });
        }
        let digits = output.stdout.strip_prefix(b"keep\t").map(<[u8]>::trim_ascii);
        let Some(checksum) = digits.and_then(GitId::from_hex) else { return Ok(None) };
        let pack = self.pack_folder()?.join(format!("pack-{checksum}.pack"));
        Ok(PackKeep::adopt(&pack))
    }

    /// Returns the first of some objects that is missing.
    pub(crate) fn find_missing(&self, ids: &[GitId]) -> Result<Option<GitId>, GitDirectoryError> {
        let command = "cat-file";
        let mut input = Vec::with_capacity(ids.len() * 41);
        for id in ids {
            input.extend_from_slice(&id.to_hex());
            input.push(b'\n');
        }
        let output = self.run(command, ["--batch-check=%(objecttype)"], &input)?;
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let missing = lines.zip(ids).find(|(line, _)| line.ends_with(b" missing"));
        Ok(missing.map(|(_, id)| *id))
    }

    /// Changes refs, all or none.
    pub(crate) fn change_refs(&self, changes: &[RefChange]) -> Result<(), GitDirectoryError> {
        if changes.is_empty() || changes.len() >= MANY_REFS && self.add_packed(changes)? {
            return Ok(());
        }
        let mut input = Vec::new();
        for change in changes {
            let fields: &[Option<GitId>] = match change.new {
                Some(_) => &[change.new, change.old],
                None => &[change.old],
            };
            input.extend_from_slice(if change.new.is_some() { b"update " } else { b"delete " });
            input.extend_from_slice(&change.name);
            input.push(0);
            for id in fields {
                id.iter().for_each(|id| input.extend_from_slice(&id.to_hex()));
                input.push(0);
            }
        }
        self.run("update-ref", ["--no-deref", "-z", "--stdin"], &input)?;
        if changes.len() >= MANY_REFS {
            // git reads a file for each ref that is not packed, several times in a fetch. Another
            // process may hold the lock; then a later `git gc` does it.
            let _packed = self.run("pack-refs", ["--all"], b"");
        }
        Ok(())
    }

    /// Adds new refs to those that are packed. Returns false if git has to do that, or there are
    /// other changes.
    fn add_packed(&self, changes: &[RefChange]) -> Result<bool, GitDirectoryError> {
        let new_id = |change: &RefChange| {
            change.new.filter(|id| *id != GitId::NULL && change.old.is_none_or(|old| old.is_null()))
        };
        let new: Option<Vec<(&[u8], GitId)>> =
            changes.iter().map(|change| Some((change.name.as_slice(), new_id(change)?))).collect();
        let Some(new) = new else { return Ok(false) };
        let args = ["--git-path", "packed-refs", "--git-path", "hooks/reference-transaction"];
        let output = self.run("rev-parse", args, b"")?;
        let mut paths = output.split(|byte| *byte == b'\n').map(|path| {
            let path: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path);
            Path::new(path)
        });
        let (path, hook) = (paths.next().unwrap_or("".as_ref()), paths.next());
        if hook.is_some_and(Path::exists) {
            return Ok(false);
        }
        let Some(lock) = PackedRefsLock::take(path) else { return Ok(false) };
        if !are_free(&new, &self.refs("refs/")?) {
            return Ok(false);
        }
        // After an error, git may be able to write them, or say why not.
        Ok(lock.add(&new).unwrap_or(false))
    }
}

impl Drop for GitDirectory {
    fn drop(&mut self) {
        if let Some(process) = self.objects.take() {
            // One that is idle already ends.
            let _ended = lock(&self.idle).replace(process);
        }
    }
}

impl ObjectProcess {
    fn read(&mut self, name: &str) -> io::Result<Option<GitObject>> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        requests.write_all(format!("{name}\n").as_bytes())?;
        requests.flush()?;
        self.read_answer()
    }

    fn read_all(&mut self, ids: &[GitId]) -> io::Result<Vec<Option<GitObject>>> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let lines: Vec<u8> = ids.iter().flat_map(|id| format!("{id}\n").into_bytes()).collect();
        requests.write_all(&lines)?;
        requests.flush()?;
        ids.iter().map(|_| self.read_answer()).collect()
    }

    fn read_answer(&mut self) -> io::Result<Option<GitObject>> {
        let answers = self.answers.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut header = Vec::new();
        answers.read_until(b'\n', &mut header)?;
        let header = String::from_utf8_lossy(&header).into_owned();
        // The name may have spaces in it.
        if header.ends_with(" missing\n") || header.ends_with(" ambiguous\n") {
            return Ok(None);
        }
        let mut words = header.split_ascii_whitespace();
        let (id, _kind, len) = (words.next(), words.next(), words.next());
        let id = id.and_then(|id| GitId::from_hex(id.as_bytes()));
        let (Some(id), Some(len)) = (id, len.and_then(|len| len.parse::<u64>().ok())) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "unexpected output"));
        };
        let mut content = Vec::new();
        answers.take(len + 1).read_to_end(&mut content)?;
        if content.pop() != Some(b'\n') || content.len() as u64 != len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(GitObject { id, content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// git then waits for a reader of the pipe.
    #[test]
    fn a_process_ends_in_the_middle_of_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let repository = GitDirectory::create(&folder.path().join("git")).unwrap();
        // More than fits into a pipe.
        let content = vec![b'x'; 4 << 20];
        let id = repository.run("hash-object", ["-w", "--stdin"], &content).unwrap();
        let mut process = repository.start_object_process().unwrap();
        process.requests.as_mut().unwrap().write_all(&id).unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            drop(process);
            let _sent = sender.send(());
        });
        receiver.recv_timeout(Duration::from_secs(60)).expect("the process ends");
    }

    /// By default it would keep all texts of the file.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_keeps_few_texts_of_a_large_file() {
        const VERSIONS: usize = 32;
        let folder = tempfile::tempdir().unwrap();
        let mut repository = GitDirectory::create(&folder.path().join("git")).unwrap();
        let mut state = 1_u64;
        let mut text: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(1 << 20)
        .collect();
        let mut ids = Vec::new();
        for version in 0..VERSIONS {
            text[version * 1000] ^= 1;
            ids.extend(repository.run("hash-object", ["-w", "--stdin"], &text).unwrap());
        }
        let pack = repository.pack_folder().unwrap().join("pack");
        let args = ["-q", "--window=2", "--depth=50", pack.to_str().unwrap()];
        repository.run("pack-objects", args, &ids).unwrap();
        repository.run("prune-packed", ["-q"], b"").unwrap();
        let lines = ids.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let ids: Vec<GitId> = lines.map(|line| GitId::from_hex(line).unwrap()).collect();
        assert_eq!(ids.len(), VERSIONS);
        repository.read_contents(&ids, |_, content| assert_eq!(content.len(), 1 << 20)).unwrap();
        let process = repository.objects.as_ref().unwrap();
        let path = format!("/proc/{}/status", process.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kilobytes < 20 << 10, "{line}");
    }
}
