//! A git repository, through git itself: objects by `git cat-file --batch`, refs by
//! `git update-ref --stdin`, settings by `git config`.

use crate::object_id::GitId;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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
    /// The output of git has another form.
    #[error("git {command}: unexpected output")]
    Output {
        /// The command of git.
        command: &'static str,
    },
}

/// A git repository.
pub struct GitDirectory {
    directory: PathBuf,
    objects: Option<ObjectProcess>,
}

/// `git cat-file --batch`, which answers one request after the other.
struct ObjectProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Drop for ObjectProcess {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.requests.take());
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
        GitDirectory { directory: directory.to_path_buf(), objects: None }
    }

    /// The git directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn command(&self, name: &'static str) -> Command {
        let mut command = Command::new("git");
        // Replacements would give other objects than those asked for.
        command.arg("--no-replace-objects").arg("--git-dir").arg(&self.directory).arg(name);
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

    /// Returns a setting for a URL, as git's own for servers (`http.<URL>.NAME` or `http.NAME`);
    /// `None` if it is not set. Without a directory it is the user's.
    pub fn config_for_url(
        directory: Option<&Path>,
        name: &str,
        url: &str,
    ) -> Result<Option<String>, GitDirectoryError> {
        let command = "config";
        let mut git = Command::new("git");
        if let Some(directory) = directory {
            git.arg("--git-dir").arg(directory);
        }
        let output = git
            .args([command, "--get-urlmatch", name, url])
            .output()
            .map_err(|source| GitDirectoryError::Pipe { command, source })?;
        let value = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
        Ok(output.status.success().then_some(value))
    }

    /// Returns the value of a setting; `None` if it is not set.
    pub fn config(&self, name: &str) -> Result<Option<String>, GitDirectoryError> {
        match self.run("config", ["--get", name], b"") {
            Ok(value) => Ok(Some(String::from_utf8_lossy(&value).trim_end().to_string())),
            Err(GitDirectoryError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the folder of packs.
    pub(crate) fn pack_folder(&self) -> Result<PathBuf, GitDirectoryError> {
        let output = self.run("rev-parse", ["--git-path", "objects/pack"], b"")?;
        let path = output.strip_suffix(b"\n").unwrap_or(&output);
        Ok(PathBuf::from(std::os::unix::ffi::OsStrExt::from_bytes(path) as &OsStr))
    }

    /// Finds the repository of a folder, as git does.
    pub fn discover(folder: &Path) -> Result<GitDirectory, GitDirectoryError> {
        let command = "rev-parse";
        let output = Command::new("git")
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
        let output = Command::new("git")
            .args([command, "--quiet", "--bare", "--"])
            .arg(folder)
            .output()
            .map_err(|source| GitDirectoryError::Pipe { command, source })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(GitDirectoryError::Failed { command, message });
        }
        Ok(GitDirectory::new(folder))
    }

    /// Returns the id that a revision of git names, such as a ref; `None` if there is none.
    pub fn resolve(&self, name: &str) -> Result<Option<GitId>, GitDirectoryError> {
        match self.run("rev-parse", ["--verify", "--quiet", name], b"") {
            Ok(output) => Ok(GitId::from_hex(output.trim_ascii())),
            Err(GitDirectoryError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the object that a name of git names, such as an id or `COMMIT:PATH`; `None` if it is
    /// missing.
    pub(crate) fn read_object(
        &mut self,
        name: &str,
    ) -> Result<Option<GitObject>, GitDirectoryError> {
        if self.objects.is_none() {
            self.objects = Some(self.start_object_process()?);
        }
        let Some(process) = &mut self.objects else { return Ok(None) };
        let answer = process.read(name);
        if answer.is_err() {
            self.objects = None;
        }
        answer.map_err(|source| GitDirectoryError::Pipe { command: "cat-file", source })
    }

    /// Reads an object that must be there.
    pub(crate) fn read_content(&mut self, id: &GitId) -> Result<Vec<u8>, GitDirectoryError> {
        let object = self.read_object(&id.to_string())?;
        object.map(|object| object.content).ok_or(GitDirectoryError::Missing { id: *id })
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
                Ok(ObjectProcess { child, requests: stdin, answers: BufReader::new(stdout) })
            }
            None => Err(GitDirectoryError::Output { command }),
        }
    }

    /// Changes refs, all or none.
    pub(crate) fn change_refs(&self, changes: &[RefChange]) -> Result<(), GitDirectoryError> {
        if changes.is_empty() {
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
        self.run("update-ref", ["--no-deref", "-z", "--stdin"], &input).map(drop)
    }
}

impl ObjectProcess {
    fn read(&mut self, name: &str) -> io::Result<Option<GitObject>> {
        let requests = self.requests.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        requests.write_all(format!("{name}\n").as_bytes())?;
        requests.flush()?;
        let mut header = Vec::new();
        self.answers.read_until(b'\n', &mut header)?;
        let header = String::from_utf8_lossy(&header).into_owned();
        let mut words = header.split_ascii_whitespace();
        let (id, kind, len) = (words.next(), words.next(), words.next());
        if kind == Some("missing") {
            return Ok(None);
        }
        let id = id.and_then(|id| GitId::from_hex(id.as_bytes()));
        let (Some(id), Some(len)) = (id, len.and_then(|len| len.parse::<u64>().ok())) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "unexpected output"));
        };
        let mut content = Vec::new();
        (&mut self.answers).take(len + 1).read_to_end(&mut content)?;
        if content.pop() != Some(b'\n') || content.len() as u64 != len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(GitObject { id, content }))
    }
}
