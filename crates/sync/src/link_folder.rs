//! A maildir of symbolic links to the files of messages, for mail programs that open maildirs.
//!
//! The folder belongs to the links: it is new or empty at first, has a marker from then on, and is
//! apart from the maildirs of the sources. Only links that were made here are ever removed from it.
//! The marker is a file `.noindex`, so that the messages are not indexed twice.

use crate::error::Error;
use crate::mbox_file::is_mbox_message;
use rustc_hash::FxHasher;
use std::ffi::OsString;
use std::fs;
use std::hash::Hasher as _;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The counts of the links in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkReport {
    /// Links that were made.
    pub added: usize,
    /// Links that were there.
    pub kept: usize,
    /// Links that were removed before.
    pub removed: usize,
    /// Messages in mbox files, which have no file to link to.
    pub left_out: usize,
}

/// The digits at the start of the name of a link.
const HASH_DIGITS: usize = 16;
/// The text after them, in front of the flags.
const LINK_SUFFIX: &str = ".larder";
/// The name of the marker, which keeps mu and Larder from indexing the folder.
const MARKER_NAME: &str = ".noindex";
/// The content of the marker. A file `.noindex` of the user is another one.
const MARKER_TEXT: &str = "Larder makes and removes symbolic links to messages in this folder.\n";

/// Makes links to files in a folder, which is created if it is missing. `is_cleared` removes the
/// links of earlier calls from it first. `roots` are the maildirs of the sources.
///
/// # Errors
/// The folder is in a root, is one or has one in it; it has files of others; or it cannot be
/// written.
pub fn link_messages(
    folder: &Path,
    roots: &[&Path],
    files: &[PathBuf],
    is_cleared: bool,
) -> Result<LinkReport, Error> {
    let error = |path: &Path| {
        let path = path.to_path_buf();
        move |source: io::Error| Error::LinkFolder { path, source }
    };
    check_is_apart(folder, roots)?;
    let marker = folder.join(MARKER_NAME);
    if !has_marker(folder)? {
        check_is_empty(folder)?;
        fs::create_dir_all(folder).map_err(error(folder))?;
        fs::write(&marker, MARKER_TEXT).map_err(error(&marker))?;
    }
    let mut report = LinkReport::default();
    for name in ["cur", "new", "tmp"] {
        let directory = folder.join(name);
        fs::create_dir_all(&directory).map_err(error(&directory))?;
        if is_cleared && name != "tmp" {
            for link in list_links(&directory).map_err(error(&directory))? {
                fs::remove_file(&link).map_err(error(&link))?;
                report.removed += 1;
            }
        }
    }
    for file in files {
        if is_mbox_message(file) {
            report.left_out += 1;
            continue;
        }
        let link = folder.join(link_name(file));
        match std::os::unix::fs::symlink(file, &link) {
            Ok(()) => report.added += 1,
            Err(found) if found.kind() == io::ErrorKind::AlreadyExists => report.kept += 1,
            Err(source) => return Err(error(&link)(source)),
        }
    }
    Ok(report)
}

/// Refuses a folder that is a root, is in one, or has one in it.
fn check_is_apart(folder: &Path, roots: &[&Path]) -> Result<(), Error> {
    let place = resolve_path(folder)
        .map_err(|source| Error::LinkFolder { path: folder.to_path_buf(), source })?;
    for root in roots {
        // A root that cannot be resolved now, as that of a disk that is away, is compared as it is.
        let resolved = resolve_path(root).unwrap_or_else(|_| root.to_path_buf());
        if place.starts_with(&resolved) || resolved.starts_with(&place) {
            let (path, root) = (folder.to_path_buf(), root.to_path_buf());
            return Err(Error::LinksInSource { path, root });
        }
    }
    Ok(())
}

/// Returns an absolute path without symbolic links, whose last parts may not exist yet.
fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for base in path.ancestors() {
        match base.canonicalize() {
            Ok(resolved) => {
                let rest = path.strip_prefix(base).unwrap_or(Path::new(""));
                return Ok(resolved.join(rest));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Returns whether the folder has the marker.
fn has_marker(folder: &Path) -> Result<bool, Error> {
    let marker = folder.join(MARKER_NAME);
    match fs::metadata(&marker) {
        Ok(found) if found.is_file() && found.len() == MARKER_TEXT.len() as u64 => {
            let text = fs::read(&marker);
            let text = text.map_err(|source| Error::LinkFolder { path: marker, source })?;
            Ok(text == MARKER_TEXT.as_bytes())
        }
        _ => Ok(false),
    }
}

/// Refuses a folder that exists and has files. A marker of a call that was killed is no file.
fn check_is_empty(folder: &Path) -> Result<(), Error> {
    let error = |source| Error::LinkFolder { path: folder.to_path_buf(), source };
    let entries = match fs::read_dir(folder) {
        Err(found) if found.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(error)?,
    };
    for entry in entries {
        let entry = entry.map_err(error)?;
        let is_unfinished = entry.file_name() == MARKER_NAME
            && entry.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
        if !is_unfinished {
            return Err(Error::NotALinkFolder { path: folder.to_path_buf() });
        }
    }
    Ok(())
}

/// Returns the links in a directory that were made here.
fn list_links(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() && is_link_name(entry.file_name().as_bytes()) {
            links.push(entry.path());
        }
    }
    Ok(links)
}

/// Returns whether [`link_name`] gave a file its name. A mail program may have changed the flags.
fn is_link_name(name: &[u8]) -> bool {
    let hash = name.get(..HASH_DIGITS).unwrap_or_default();
    let is_hash = hash.len() == HASH_DIGITS && hash.iter().all(u8::is_ascii_hexdigit);
    is_hash && name.get(HASH_DIGITS..).is_some_and(|rest| rest.starts_with(LINK_SUFFIX.as_bytes()))
}

/// Returns the path of the link to a file below the folder: a name made from the path, and the
/// flags of the file.
fn link_name(file: &Path) -> PathBuf {
    let mut hash = FxHasher::default();
    hash.write(file.as_os_str().as_bytes());
    let is_new = file.parent().is_some_and(|directory| directory.ends_with("new"));
    let name = file.file_name().map(|name| name.as_bytes()).unwrap_or_default();
    let flags = name.windows(3).rposition(|part| matches!(part, [b':' | b';' | b'!', b'2', b',']));
    let mut link = format!("{:0HASH_DIGITS$x}{LINK_SUFFIX}", hash.finish()).into_bytes();
    link.extend(flags.and_then(|at| name.get(at..)).unwrap_or_default());
    Path::new(if is_new { "new" } else { "cur" }).join(OsString::from_vec(link))
}
