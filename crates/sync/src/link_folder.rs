//! A maildir of symbolic links to the files of messages, for mail programs that open maildirs.
//!
//! The folder belongs to the links: it is refused if it has messages of its own, and only links are
//! ever removed from it. It has a file `.noindex`, so that its messages are not indexed twice.

use crate::error::Error;
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
}

/// Makes links to files in a folder, which is created if it is missing. `is_cleared` removes all
/// other links from it first.
///
/// # Errors
/// The folder has a file that is no link, or cannot be written.
pub fn link_messages(
    folder: &Path,
    files: &[PathBuf],
    is_cleared: bool,
) -> Result<LinkReport, Error> {
    let error = |path: &Path| {
        let path = path.to_path_buf();
        move |source: io::Error| Error::LinkFolder { path, source }
    };
    let mut old_links = Vec::new();
    for name in ["cur", "new"] {
        let directory = folder.join(name);
        old_links.extend(list_links(&directory)?);
    }
    for name in ["cur", "new", "tmp"] {
        let directory = folder.join(name);
        fs::create_dir_all(&directory).map_err(error(&directory))?;
    }
    let marker = folder.join(".noindex");
    if !marker.exists() {
        fs::write(&marker, b"").map_err(error(&marker))?;
    }
    let mut report = LinkReport::default();
    if is_cleared {
        for link in old_links {
            fs::remove_file(&link).map_err(error(&link))?;
            report.removed += 1;
        }
    }
    for file in files {
        let link = folder.join(link_name(file));
        match std::os::unix::fs::symlink(file, &link) {
            Ok(()) => report.added += 1,
            Err(found) if found.kind() == io::ErrorKind::AlreadyExists => report.kept += 1,
            Err(source) => return Err(error(&link)(source)),
        }
    }
    Ok(report)
}

/// Returns the links in a directory, which may be missing. A file that is no link is an error.
fn list_links(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let error = |source| Error::LinkFolder { path: directory.to_path_buf(), source };
    let entries = match fs::read_dir(directory) {
        Err(found) if found.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(error)?,
    };
    let mut links = Vec::new();
    for entry in entries {
        let entry = entry.map_err(error)?;
        if !entry.file_type().map_err(error)?.is_symlink() {
            return Err(Error::NotALink { path: entry.path() });
        }
        links.push(entry.path());
    }
    Ok(links)
}

/// Returns the path of the link to a file below the folder: a name made from the path, and the
/// flags of the file.
fn link_name(file: &Path) -> PathBuf {
    let mut hash = FxHasher::default();
    hash.write(file.as_os_str().as_bytes());
    let is_new = file.parent().is_some_and(|directory| directory.ends_with("new"));
    let name = file.file_name().map(|name| name.as_bytes()).unwrap_or_default();
    let flags = name.windows(3).rposition(|part| matches!(part, [b':' | b';' | b'!', b'2', b',']));
    let mut link = format!("{:016x}.larder", hash.finish()).into_bytes();
    link.extend(flags.and_then(|at| name.get(at..)).unwrap_or_default());
    Path::new(if is_new { "new" } else { "cur" }).join(OsString::from_vec(link))
}
