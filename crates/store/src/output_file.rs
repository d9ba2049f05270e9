//! Files that a user names as outputs: exports, backups, rejected input, reports, logs.
//!
//! An output is never a file of the store, by whatever name. Symbolic links are followed by the
//! system, which refuses links that others planted in a folder for everybody. A regular file is
//! written beside its target and renamed when it is complete; a pipe, a device or a stream is
//! written directly. Separate from `staging_file`, whose files the store names itself.

use crate::data_directory::DataDirectory;
use crate::error::OutputError;
use crate::staging_file::{
    COMPANION_SUFFIXES, StagingFile, find_log_beside, folder_of, for_each_leftover,
    remove_with_companions, with_suffix,
};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The beginning of the names of staging files beside outputs.
const STAGING_PREFIX: &str = ".larder-";
/// Symbolic links to follow before a chain is taken for a cycle, as the system does.
const MAX_SYMLINKS: usize = 40;

/// The target that a user names for an output.
#[derive(Debug, Clone)]
pub enum OutputTarget {
    /// A file, a pipe or a device.
    Path(PathBuf),
    /// An open stream, such as standard output.
    Stream {
        /// Its name in messages.
        name: PathBuf,
        /// The stream.
        file: Arc<File>,
        /// The folder of a temporary copy where nothing can be written beside the store.
        temporary_folder: PathBuf,
    },
}

impl OutputTarget {
    /// Returns the folder of a temporary copy, if the output needs one.
    pub(crate) fn temporary_folder(&self) -> Option<&Path> {
        match self {
            OutputTarget::Path(_) => None,
            OutputTarget::Stream { temporary_folder, .. } => Some(temporary_folder),
        }
    }
}

impl From<PathBuf> for OutputTarget {
    fn from(path: PathBuf) -> OutputTarget {
        OutputTarget::Path(path)
    }
}

impl From<&PathBuf> for OutputTarget {
    fn from(path: &PathBuf) -> OutputTarget {
        OutputTarget::Path(path.clone())
    }
}

impl From<&Path> for OutputTarget {
    fn from(path: &Path) -> OutputTarget {
        OutputTarget::Path(path.to_path_buf())
    }
}

/// Who may read a new file. An existing file keeps its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePrivacy {
    /// The owner: the file has personal data.
    Private,
    /// Whom the umask admits.
    Public,
}

impl FilePrivacy {
    fn mode(self) -> u32 {
        match self {
            FilePrivacy::Private => 0o600,
            FilePrivacy::Public => 0o666,
        }
    }
}

/// An output while it is written. Without [`OutputFile::commit`], a file of the same name stays as
/// it was.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Staged {
        staging: StagingFile,
        target: PathBuf,
        /// The file that is replaced.
        previous: Option<Box<Metadata>>,
    },
    Direct(Arc<File>),
}

impl OutputFile {
    /// Opens an output of a command that works on the store in `directory`.
    pub fn create(
        directory: &DataDirectory,
        target: &OutputTarget,
        privacy: FilePrivacy,
    ) -> Result<OutputFile, OutputError> {
        let path = match target {
            OutputTarget::Path(path) => path,
            OutputTarget::Stream { name, file, .. } => {
                let sink = Sink::Direct(Arc::clone(file));
                return Ok(OutputFile { path: name.clone(), sink });
            }
        };
        let at = |source| OutputError::File { path: path.clone(), source };
        let found = find_target(path).map_err(at)?;
        refuse_own_file(directory, path, &found)?;
        let sink = match found {
            Target::Special(_) => {
                // Opened only now, as opening a pipe waits for its reader.
                let file = OpenOptions::new().write(true).open(path).map_err(at)?;
                Sink::Direct(Arc::new(file))
            }
            Target::File { path: target, previous } => {
                let staging = create_staging(folder_of(&target), privacy).map_err(at)?;
                Sink::Staged { staging, target, previous }
            }
        };
        Ok(OutputFile { path: path.clone(), sink })
    }

    /// Opens a file that lines are appended to, and creates it if it is missing.
    pub fn append(
        directory: &DataDirectory,
        path: &Path,
        privacy: FilePrivacy,
    ) -> Result<File, OutputError> {
        let at = |source| OutputError::File { path: path.to_path_buf(), source };
        let found = find_target(path).map_err(at)?;
        refuse_own_file(directory, path, &found)?;
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(privacy.mode()).open(path).map_err(at)
    }

    /// Fails if the path is that of a file of the store. A path that cannot be opened is accepted.
    pub fn check_path(directory: &DataDirectory, path: &Path) -> Result<(), OutputError> {
        match find_target(path) {
            Ok(found) => refuse_own_file(directory, path, &found),
            Err(_) => Ok(()),
        }
    }

    /// Fails if files cannot be written into this folder because it is the data directory.
    pub fn check_folder(directory: &DataDirectory, folder: &Path) -> Result<(), OutputError> {
        match is_data_directory(directory, folder) {
            true => Err(own_file_error(directory, folder)),
            false => Ok(()),
        }
    }

    /// Returns the path as the user wrote it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the output is a pipe, a device or a stream, perhaps standard output itself.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        matches!(self.sink, Sink::Direct(_))
    }

    /// Returns whether a file with content is replaced.
    pub(crate) fn replaces_content(&self) -> bool {
        matches!(&self.sink, Sink::Staged { previous: Some(previous), .. } if previous.len() > 0)
    }

    /// Fails if SQLite would apply the log of another database to a database that is written here.
    pub(crate) fn refuse_foreign_log(&self) -> Result<(), OutputError> {
        let Sink::Staged { target, .. } = &self.sink else { return Ok(()) };
        match find_log_beside(target) {
            Some(path) => {
                let source =
                    io::Error::other("SQLite would apply it to the new file; move it away");
                Err(OutputError::File { path, source })
            }
            None => Ok(()),
        }
    }

    /// Returns the path of the staging file; `None`: the output is written directly.
    pub(crate) fn staged_path(&self) -> Option<&Path> {
        match &self.sink {
            Sink::Staged { staging, .. } => Some(staging.path()),
            Sink::Direct(_) => None,
        }
    }

    /// Adds the path to an error of writing.
    pub fn to_error(&self, source: io::Error) -> OutputError {
        OutputError::File { path: self.path.clone(), source }
    }

    /// Gives the file its name: it is complete. A file that it replaces hands down its mode and its
    /// owner. Returns the number of bytes, or 0 if the output was written directly.
    pub fn commit(self) -> Result<u64, OutputError> {
        self.commit_with_suffix("").map(|(_, bytes)| bytes)
    }

    /// Gives the file its name with a suffix, for an output that is incomplete: an earlier file of
    /// that name without suffix stays. Returns the path and the number of bytes.
    pub fn commit_with_suffix(self, suffix: &str) -> Result<(PathBuf, u64), OutputError> {
        let OutputFile { path, sink } = self;
        let put = |sink: Sink| -> io::Result<(PathBuf, u64)> {
            let Sink::Staged { staging, target, previous } = sink else {
                return Ok((path.clone(), 0));
            };
            if let Some(previous) = previous {
                keep_attributes(staging.file(), &previous)?;
            }
            let bytes = staging.file().metadata()?.len();
            let target = with_suffix(&target, suffix);
            staging.persist(&target)?;
            Ok((target, bytes))
        };
        put(sink).map_err(|source| OutputError::File { path, source })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.sink {
            Sink::Staged { staging, .. } => staging.file().write(bytes),
            Sink::Direct(file) => (&**file).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The end of all links of a path.
enum Target {
    /// A regular file, or a name that is free.
    File { path: PathBuf, previous: Option<Box<Metadata>> },
    /// A pipe or a device.
    Special(Box<Metadata>),
}

/// Resolves a path as the system does when it opens the path for writing: a link that it refuses to
/// follow and a file that it refuses to write are errors.
fn find_target(path: &Path) -> io::Result<Target> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Ok(Target::Special(Box::new(found))),
        _ => {}
    }
    let opened = OpenOptions::new().write(true).open(path);
    let target = resolve_symlinks(path)?;
    match opened {
        Ok(file) => Ok(Target::File { path: target, previous: Some(Box::new(file.metadata()?)) }),
        // Nothing has this name, or the system followed links that lead nowhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Target::File { path: target, previous: None })
        }
        Err(error) => Err(error),
    }
}

/// Returns the end of a chain of symbolic links, which need not exist.
fn resolve_symlinks(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_SYMLINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        let target = fs::read_link(&path)?;
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Fails if the output is a file of the store, or would become one.
fn refuse_own_file(
    directory: &DataDirectory,
    path: &Path,
    found: &Target,
) -> Result<(), OutputError> {
    let (target, existing) = match found {
        Target::File { path, previous } => (path.as_path(), previous.as_deref()),
        Target::Special(found) => (path, Some(&**found)),
    };
    let is_own = is_data_directory(directory, folder_of(target))
        || existing.is_some_and(|found| is_file_of_store(directory, found))
        || is_beside_linked_database(directory, target);
    if is_own { Err(own_file_error(directory, path)) } else { Ok(()) }
}

fn own_file_error(directory: &DataDirectory, path: &Path) -> OutputError {
    OutputError::FileOfStore { path: path.to_path_buf(), dir: directory.path().to_path_buf() }
}

type FileId = (u64, u64);

fn file_id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

fn is_data_directory(directory: &DataDirectory, folder: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|found| file_id(&found));
    id(directory.path()).is_some_and(|own| id(folder) == Some(own))
}

/// Returns whether a file is one of those in the data directory, by its device and inode: it may
/// have several names.
fn is_file_of_store(directory: &DataDirectory, found: &Metadata) -> bool {
    let id = file_id(found);
    let entries = fs::read_dir(directory.path()).into_iter().flatten().flatten();
    // A link in the directory counts as its target.
    let mut ids = entries.filter_map(|entry| fs::metadata(entry.path()).ok());
    ids.any(|own| !own.is_dir() && file_id(&own) == id)
}

/// Returns whether a path is that of the database, or of a file that SQLite keeps beside it, if the
/// database in the data directory is a symbolic link.
fn is_beside_linked_database(directory: &DataDirectory, target: &Path) -> bool {
    let Ok(database) = fs::canonicalize(directory.database_path()) else { return false };
    let Ok(folder) = fs::canonicalize(folder_of(target)) else { return false };
    let Some(name) = target.file_name() else { return false };
    let target = folder.join(name);
    [""].iter().chain(&COMPANION_SUFFIXES).any(|end| with_suffix(&database, end) == target)
}

/// Creates a staging file, and deletes those that killed commands left in the folder. In a folder
/// that everybody may write to, such names could be planted, so nothing is deleted there.
fn create_staging(folder: &Path, privacy: FilePrivacy) -> io::Result<StagingFile> {
    let is_for_everybody =
        fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0);
    if !is_for_everybody {
        // What cannot be deleted stays.
        let _left = for_each_leftover(folder, STAGING_PREFIX, &mut remove_with_companions);
    }
    StagingFile::create(folder, STAGING_PREFIX, privacy.mode())
}

/// Gives a file the owner, the group and the mode of the file that it replaces. Only root may give
/// files away, so another owner may not be kept.
fn keep_attributes(file: &File, previous: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (previous.uid(), previous.gid()) {
        let _not_permitted = fchown(file, Some(previous.uid()), Some(previous.gid()));
    }
    file.set_permissions(Permissions::from_mode(previous.mode() & 0o7777))
}
