//! The folders and files of a maildir (maildir(5)), at any depth, without reading a message; and
//! mbox files and folders of .eml files.
//!
//! A scan finds the directories `cur` and `new` below a root. Their modification times tell which
//! of them changed since an earlier scan; only those need to be listed, and a list has the name and
//! the inode of each file, by which a renamed file is recognised without a look at it. Nothing is
//! ever written.
//!
//! * Maildir++ folders (`.Sent.2024`) are folders like any other, and so is a folder named `cur` or
//!   `new` that has such a directory; the files in it count as messages, too.
//! * A folder with a file `.noindex` is left out with all folders below it, and one with
//!   `.noupdate` says so, as in mu. `tmp` has messages that are being delivered, and is left out.
//! * Symbolic links are followed; a folder that is reached twice, such as by a link to one above,
//!   is listed once: under its own path, else under that of the first link by name.
//! * What cannot be listed is reported, and the rest is listed.
//!
//! A tree of mbox and .eml files is scanned in the same way: an mbox file is a directory of
//! messages (`mbox_file`), and so is a folder with files `*.eml`. Any file that begins with `From `
//! is an mbox file, as those of Thunderbird have no ending; a folder `Inbox.sbd` has the folders
//! below `Inbox`.
//!
//! Separate from `import`, which reads files into the store: here the files stay where they are.

mod source_format;

pub use self::source_format::{DetectedMail, detect_mail_source};

use crate::file_time::has_min_age;
use crate::mbox_file::{MboxFile, is_unsettled};
use larder_format::mbox::SEPARATOR;
use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The deepest folder that is listed, below the root. Deeper ones are reported.
pub const MAX_MAILDIR_DEPTH: usize = 64;

/// The result of a scan.
#[derive(Debug, Default)]
pub struct MaildirScan {
    /// The directories with messages, by path.
    pub directories: Vec<MaildirDirectory>,
    /// The folders that were looked at for directories and other folders. A change of the mail
    /// below the root is a change in one of these, or in one of the directories.
    pub folders: Vec<PathBuf>,
    /// The mbox files to which links lead, and missing and empty files that may become some, under
    /// their own paths: a change of one is none in the folder of its link.
    pub link_targets: Vec<PathBuf>,
    /// Folders that could not be listed, by path.
    pub problems: Vec<MaildirProblem>,
}

/// The files of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MailSourceFormat {
    /// Maildirs.
    #[default]
    Maildir,
    /// Mbox files, and folders of .eml files.
    Files,
}

/// The messages of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryContents {
    /// It is `cur` or `new`: all files.
    Maildir,
    /// It is a folder: the files `*.eml`.
    EmlFiles,
    /// It is an mbox file.
    Mbox,
}

/// A directory `cur` or `new`, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaildirDirectory {
    /// The path.
    pub path: PathBuf,
    /// The folder that it is in, relative to the root: empty for the root, `INBOX`, `.Sent`.
    pub folder: PathBuf,
    /// It is `new`: a mail reader has not seen its messages.
    pub is_new: bool,
    /// Its messages.
    pub contents: DirectoryContents,
    /// The folder has a file `.noupdate`: mu lists it only if all folders are read again.
    pub has_noupdate: bool,
    /// Its state before it was listed.
    pub state: DirectoryState,
}

/// The state of a directory. If it is the same as at an earlier scan, no file was added, renamed or
/// removed in between, unless the clock of the file system stood still: a directory that was
/// changed less than two seconds before a scan must be listed by the next one, too.
///
/// Programs that copy folders (rsync, cp -a, tar) set the time of the last change back to that of
/// the original. They cannot set the time of the last change of the inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryState {
    /// The number of the file system.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The time of the last change, in seconds since 1970.
    pub modified_seconds: i64,
    /// The nanoseconds of that time.
    pub modified_nanoseconds: i64,
    /// The time of the last change of the inode, in seconds since 1970.
    pub inode_changed_seconds: i64,
    /// The nanoseconds of that time.
    pub inode_changed_nanoseconds: i64,
}

impl DirectoryState {
    pub(crate) fn from_metadata(metadata: &Metadata) -> DirectoryState {
        DirectoryState {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_seconds: metadata.mtime(),
            modified_nanoseconds: metadata.mtime_nsec(),
            inode_changed_seconds: metadata.ctime(),
            inode_changed_nanoseconds: metadata.ctime_nsec(),
        }
    }

    /// Returns whether a later change gives another state, if the state was read at this time, in
    /// seconds since 1970.
    #[must_use]
    pub fn is_settled(&self, read_at_seconds: i64) -> bool {
        has_min_age(self.modified_seconds, read_at_seconds)
    }
}

/// A file of a directory `cur` or `new`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaildirFile {
    /// The name, with the flags.
    pub name: OsString,
    /// The inode, which stays when the file is renamed. For a symbolic link that of the link.
    pub inode: u64,
}

/// A folder or a file that was left out.
#[derive(Debug)]
pub struct MaildirProblem {
    /// The path.
    pub path: PathBuf,
    /// The reason.
    pub reason: MaildirProblemReason,
}

/// The reason that a folder or a file was left out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaildirProblemReason {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// It is deeper than [`MAX_MAILDIR_DEPTH`].
    #[error("more than {MAX_MAILDIR_DEPTH} folders deep")]
    TooDeep,
    /// It is a pipe, a socket or a device.
    #[error("not a file")]
    NotAFile,
    /// It is empty or leads nowhere, and had messages before.
    #[error(
        "its messages are gone, and stay in the index: its disk may not be mounted; if it is not \
         needed any more, remove it"
    )]
    Absent,
    /// It is an mbox file, and is empty since a short time.
    #[error(
        "is empty, as while a mail program writes it anew; its messages stay in the index until a \
         synchronisation finds it empty for more than a minute"
    )]
    Emptied,
}

impl MaildirProblemReason {
    /// Returns whether the problem ends by itself, after a time without a change.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self, MaildirProblemReason::Emptied)
    }
}

/// Finds the directories with messages below a root.
///
/// # Errors
/// The root cannot be listed.
pub fn scan_maildir(root: &Path) -> io::Result<MaildirScan> {
    scan_mail(root, MailSourceFormat::Maildir)
}

/// Finds the directories with messages below a root of a format.
///
/// # Errors
/// The root cannot be listed, or is an mbox file that cannot be read.
pub fn scan_mail(root: &Path, format: MailSourceFormat) -> io::Result<MaildirScan> {
    scan_with(Scanner::new(format), root)
}

fn scan_with(mut scanner: Scanner, root: &Path) -> io::Result<MaildirScan> {
    let format = scanner.format;
    let metadata = fs::metadata(root)?;
    if format == MailSourceFormat::Files && metadata.is_file() {
        scanner.scan.folders.extend(root.parent().map(Path::to_path_buf));
        scanner.scan.link_targets.extend(find_link_target(root));
        if MboxFile::has_form(root)? {
            scanner.add_directory(root, Path::new(""), &metadata, DirectoryContents::Mbox);
        }
        return Ok(scanner.scan);
    }
    // A root that is missing is an error; below it, a folder may vanish during the scan.
    drop(fs::read_dir(root)?);
    scanner.scan_folder(root, Path::new(""), &metadata, 0);
    while let Some(link) = scanner.links.pop_front() {
        scanner.scan_subfolder(&link);
    }
    scanner.scan.directories.sort_by(|a, b| a.path.cmp(&b.path));
    scanner.scan.problems.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scanner.scan)
}

/// Returns the folder at or above a directory, below the root, in which a disk may have been
/// mounted: a link that leads nowhere, or an empty folder. `None`: the directory was removed, or is
/// there.
#[must_use]
pub fn find_absent_folder(root: &Path, directory: &Path) -> Option<PathBuf> {
    let is_empty = |path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let mut path = directory;
    while path != root && path.starts_with(root) {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            path = path.parent()?;
            continue;
        };
        let is_absent = match fs::metadata(path) {
            Ok(target) if metadata.is_symlink() || path != directory => {
                target.is_dir() && is_empty(path)
            }
            Ok(_) => false,
            Err(_) => metadata.is_symlink(),
        };
        return is_absent.then(|| path.to_path_buf());
    }
    None
}

/// Returns whether there is an empty file at a path.
pub(crate) fn is_empty_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// Returns the reason that the messages of a directory, which a scan did not find, may be there
/// again soon; `None`: it was removed. The time of the scan is in seconds since 1970.
pub(crate) fn find_absence(
    root: &Path,
    format: MailSourceFormat,
    directory: &Path,
    scanned_at: i64,
) -> Option<MaildirProblem> {
    let folder = match format {
        MailSourceFormat::Maildir => directory.to_path_buf(),
        // A folder that has no messages any more may be one in which a disk was mounted.
        MailSourceFormat::Files => directory.join("cur"),
    };
    if format == MailSourceFormat::Files
        && is_empty_file(directory)
        && fs::metadata(directory).is_ok_and(|metadata| is_unsettled(&metadata, scanned_at))
    {
        let path = directory.to_path_buf();
        return Some(MaildirProblem { path, reason: MaildirProblemReason::Emptied });
    }
    let path = find_absent_folder(root, &folder)?;
    Some(MaildirProblem { path, reason: MaildirProblemReason::Absent })
}

/// Returns whether a file is too short to be an mbox file: one may be being written.
fn is_unfilled(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.len() < SEPARATOR.len() as u64
}

/// Returns the path of the file to which a link leads, also if there is none: mail programs remove
/// an empty mbox file, and make it again. `None`: it is no link.
fn find_link_target(link: &Path) -> Option<PathBuf> {
    let target = fs::read_link(link).ok()?;
    fs::canonicalize(link).ok().or_else(|| {
        let target = link.parent()?.join(target);
        Some(fs::canonicalize(target.parent()?).ok()?.join(target.file_name()?))
    })
}

struct Scanner {
    format: MailSourceFormat,
    /// Folders that maildirs have for their messages are left out.
    skips_maildirs: bool,
    scan: MaildirScan,
    /// The devices and inodes of the folders that were listed.
    visited: HashSet<(u64, u64)>,
    /// Links that were found, which are followed after all else: a folder keeps its own path.
    links: VecDeque<Subfolder>,
}

/// An entry of a folder that may be a directory.
struct Subfolder {
    path: PathBuf,
    name: OsString,
    /// The folder that it is in, relative to the root.
    parent: PathBuf,
    /// The depth of that folder.
    parent_depth: usize,
    /// That folder has a file `.noupdate`.
    has_noupdate: bool,
    /// The device of that folder, if the number of links of a folder on it counts the folders in
    /// it: btrfs and some file systems of other machines do not count them.
    counting_device: Option<u64>,
}

impl Scanner {
    fn new(format: MailSourceFormat) -> Scanner {
        Scanner {
            format,
            skips_maildirs: false,
            scan: MaildirScan::default(),
            visited: HashSet::new(),
            links: VecDeque::new(),
        }
    }

    fn scan_folder(&mut self, path: &Path, folder: &Path, metadata: &Metadata, depth: usize) {
        if !self.visited.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        if depth > MAX_MAILDIR_DEPTH {
            return self.report(path, MaildirProblemReason::TooDeep);
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.report_error(path, error),
        };
        self.scan.folders.push(path.to_path_buf());
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        if has(".noindex") {
            return;
        }
        let has_noupdate = has(".noupdate");
        let counting_device = (metadata.nlink() > 2).then(|| metadata.dev());
        let mut subfolders = Vec::new();
        let is_maildir = self.format == MailSourceFormat::Maildir;
        if !is_maildir {
            self.scan_files(path, folder, metadata, &entries, has_noupdate);
        }
        for entry in &entries {
            let name = entry.file_name();
            let Ok(file_type) = entry.file_type() else { continue };
            let is_left_out = match is_maildir {
                true => name == "tmp",
                false => is_hidden(&name) || self.skips_maildirs && is_maildir_part(&name),
            };
            // The type is known without a call for each file.
            if !is_left_out && (file_type.is_dir() || file_type.is_symlink()) {
                let (path, parent) = (entry.path(), folder.to_path_buf());
                let subfolder = Subfolder {
                    path,
                    name,
                    parent,
                    parent_depth: depth,
                    has_noupdate,
                    counting_device,
                };
                subfolders.push((file_type.is_symlink(), subfolder));
            }
        }
        subfolders.sort_unstable_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        for (is_link, subfolder) in subfolders {
            match is_link {
                true => self.links.push_back(subfolder),
                false => self.scan_subfolder(&subfolder),
            }
        }
    }

    /// Finds the messages of a folder that is no maildir.
    fn scan_files(
        &mut self,
        path: &Path,
        folder: &Path,
        metadata: &Metadata,
        entries: &[DirEntry],
        has_noupdate: bool,
    ) {
        let (mut has_eml, mut found) = (false, self.scan.directories.len());
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            if is_hidden(&name) {
                continue;
            }
            if is_eml(&name) {
                has_eml = true;
                continue;
            }
            let Ok(file_type) = entry.file_type() else { continue };
            if !file_type.is_file() && !file_type.is_symlink() {
                continue;
            }
            let form = fs::metadata(&path).and_then(|metadata| {
                let is_mbox = metadata.is_file() && MboxFile::has_form(&path)?;
                Ok((metadata, is_mbox))
            });
            // A log or a device to which a link leads may change all the time.
            let may_be_mbox = match &form {
                Ok((metadata, is_mbox)) => *is_mbox || is_unfilled(metadata),
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            if file_type.is_symlink() && may_be_mbox {
                self.scan.link_targets.extend(find_link_target(&path));
            }
            match form {
                Ok((metadata, true)) => {
                    let folder = folder.join(trim_ending(&name, ".mbox"));
                    self.add_directory(&path, &folder, &metadata, DirectoryContents::Mbox);
                }
                Ok(_) => {}
                Err(error) => self.report_error(&path, error),
            }
        }
        if has_eml {
            self.add_directory(path, folder, metadata, DirectoryContents::EmlFiles);
        }
        while let Some(directory) = self.scan.directories.get_mut(found) {
            directory.has_noupdate = has_noupdate;
            found += 1;
        }
    }

    fn add_directory(
        &mut self,
        path: &Path,
        folder: &Path,
        metadata: &Metadata,
        contents: DirectoryContents,
    ) {
        // A folder was visited before; a file may have several names.
        let identity = (metadata.dev(), metadata.ino());
        if contents == DirectoryContents::EmlFiles || self.visited.insert(identity) {
            self.scan.directories.push(MaildirDirectory {
                path: path.to_path_buf(),
                folder: folder.to_path_buf(),
                is_new: false,
                contents,
                has_noupdate: false,
                state: DirectoryState::from_metadata(metadata),
            });
        }
    }

    fn scan_subfolder(&mut self, subfolder: &Subfolder) {
        let Subfolder { path, name, parent, .. } = subfolder;
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => metadata,
            Ok(_) => return,
            // A link to nowhere leads to no folder.
            Err(error) => return self.report_error(path, error),
        };
        let is_files = self.format == MailSourceFormat::Files;
        let is_message_directory = !is_files && (name == "cur" || name == "new");
        let identity = (metadata.dev(), metadata.ino());
        if is_message_directory && !self.visited.contains(&identity) {
            self.scan.directories.push(MaildirDirectory {
                path: path.clone(),
                folder: parent.clone(),
                is_new: name == "new",
                contents: DirectoryContents::Maildir,
                has_noupdate: subfolder.has_noupdate,
                state: DirectoryState::from_metadata(&metadata),
            });
        }
        // Servers allow folders of any name, so a folder `new` may be a maildir itself. Others that
        // mail programs keep among the messages are not looked into.
        let has_no_subfolders =
            metadata.nlink() == 2 && subfolder.counting_device == Some(metadata.dev());
        let has_parts = || ["cur", "new"].iter().any(|name| path.join(name).is_dir());
        if is_message_directory && (has_no_subfolders || !has_parts()) {
            self.visited.insert(identity);
            return;
        }
        let name = if is_files { trim_ending(name, ".sbd") } else { name };
        let (folder, depth) = (parent.join(name), subfolder.parent_depth + 1);
        self.scan_folder(path, &folder, &metadata, depth);
    }

    /// Reports an error. A folder that was removed during the scan is none.
    fn report_error(&mut self, path: &Path, error: io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.report(path, MaildirProblemReason::Unreadable(error));
        }
    }

    fn report(&mut self, path: &Path, reason: MaildirProblemReason) {
        self.scan.problems.push(MaildirProblem { path: path.to_path_buf(), reason });
    }
}

impl MaildirDirectory {
    /// Returns whether files were added or removed since the directory was found, or it is gone.
    /// The time of the inode does not count: some network file systems make it up each time.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let now = fs::metadata(&self.path).map(|found| DirectoryState::from_metadata(&found));
        !now.is_ok_and(|now| {
            let DirectoryState { inode_changed_seconds, inode_changed_nanoseconds, .. } =
                self.state;
            DirectoryState { inode_changed_seconds, inode_changed_nanoseconds, ..now } == self.state
        })
    }

    /// Passes the messages to `visit`, in no order: a directory may have more than fit in memory.
    /// Hidden files are left out; pipes, sockets and devices are reported.
    ///
    /// # Errors
    /// The directory cannot be listed, or was removed.
    pub fn list_files(
        &self,
        visit: &mut dyn FnMut(MaildirFile),
    ) -> io::Result<Vec<MaildirProblem>> {
        let mut problems = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_eml_folder = self.contents == DirectoryContents::EmlFiles;
            if is_hidden(&name) || is_eml_folder && !is_eml(&name) {
                continue;
            }
            match self.file_type(&entry) {
                Ok(file_type) if file_type.is_file() => {
                    visit(MaildirFile { name, inode: entry.ino() });
                }
                Ok(file_type) if is_special(file_type) => {
                    let reason = MaildirProblemReason::NotAFile;
                    problems.push(MaildirProblem { path: entry.path(), reason });
                }
                // A folder, or a file that was renamed in the meantime.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let reason = MaildirProblemReason::Unreadable(error);
                    problems.push(MaildirProblem { path: entry.path(), reason });
                }
            }
        }
        Ok(problems)
    }

    /// Returns the type of an entry, of a link that of its target.
    fn file_type(&self, entry: &DirEntry) -> io::Result<FileType> {
        let file_type = entry.file_type()?;
        if !file_type.is_symlink() {
            return Ok(file_type);
        }
        Ok(fs::metadata(self.path.join(entry.file_name()))?.file_type())
    }
}

/// Returns whether a name is that of a folder of a maildir.
pub(crate) fn is_maildir_part(name: &OsStr) -> bool {
    name == "cur" || name == "new" || name == "tmp"
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_eml(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("eml"))
}

/// Returns a name without an ending.
fn trim_ending<'n>(name: &'n OsStr, ending: &str) -> &'n OsStr {
    let trimmed = name.as_bytes().strip_suffix(ending.as_bytes());
    trimmed.filter(|trimmed| !trimmed.is_empty()).map_or(name, OsStr::from_bytes)
}

fn is_special(file_type: FileType) -> bool {
    file_type.is_fifo()
        || file_type.is_socket()
        || file_type.is_block_device()
        || file_type.is_char_device()
}
