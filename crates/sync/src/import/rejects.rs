//! The file of rejected input, for a person to correct and import again.
//!
//! The file contains the rejected bytes unchanged; a line feed is added only after a range that
//! does not end with one. It is written under a hidden name in the folder of its target and renamed
//! at the end, unless it is empty, so that an import without rejects keeps the file of an earlier
//! import.

use crate::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The number of hidden names to try.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// A file of rejected bytes while it is written.
pub(super) struct RejectsFile {
    target: PathBuf,
    /// The hidden file. `None`: the target is a device or a pipe and is written directly.
    hidden: Option<PathBuf>,
    out: BufWriter<File>,
    has_content: bool,
    /// Whether the last range ended with a line ending.
    is_line_ended: bool,
}

impl RejectsFile {
    /// Creates the hidden file, so that a folder without write permission is reported before the
    /// import.
    pub(super) fn create(path: &Path) -> Result<RejectsFile, Error> {
        // Replaces the target of a symbolic link, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let open = || match fs::metadata(&target) {
            Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(meta) if !meta.is_file() => {
                Ok((OpenOptions::new().write(true).open(&target)?, None))
            }
            _ => create_hidden_file(&target).map(|(file, hidden)| (file, Some(hidden))),
        };
        match open() {
            Ok((file, hidden)) => {
                let out = BufWriter::with_capacity(64 << 10, file);
                Ok(RejectsFile { target, hidden, out, has_content: false, is_line_ended: true })
            }
            Err(source) => Err(Error::RejectsFile { path: path.to_path_buf(), source }),
        }
    }

    /// Adds bytes of a new range, or further bytes of the last range.
    pub(super) fn add(&mut self, bytes: &[u8], first: bool) -> Result<(), Error> {
        if first && !self.is_line_ended {
            self.out.write_all(b"\n").map_err(|source| self.to_error(source))?;
        }
        self.out.write_all(bytes).map_err(|source| self.to_error(source))?;
        self.has_content |= !bytes.is_empty();
        self.is_line_ended = match bytes {
            [] => self.is_line_ended,
            [.., b'\n' | b'\r'] | [.., b'\n' | b'\r', 0] => true,
            _ => false,
        };
        Ok(())
    }

    /// Renames the file to its target and returns the target, or removes the file if it is empty.
    pub(super) fn finish(mut self) -> Result<Option<PathBuf>, Error> {
        if !self.has_content {
            return Ok(None);
        }
        self.out.flush().map_err(|source| self.to_error(source))?;
        if let Some(hidden) = &self.hidden {
            let place =
                self.out.get_ref().sync_all().and_then(|()| fs::rename(hidden, &self.target));
            place.map_err(|source| self.to_error(source))?;
            self.hidden = None;
        }
        Ok(Some(self.target.clone()))
    }

    fn to_error(&self, source: io::Error) -> Error {
        Error::RejectsFile { path: self.target.clone(), source }
    }
}

impl Drop for RejectsFile {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // A hidden file that cannot be removed is harmless.
            drop(fs::remove_file(hidden));
        }
    }
}

/// Creates a file in the folder of `target`, readable only by its owner: rejected input is as
/// private as imported input.
fn create_hidden_file(target: &Path) -> io::Result<(File, PathBuf)> {
    let Some(name) = target.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for attempt in 0..MAX_NAME_ATTEMPTS {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".larder-{}-{attempt}", std::process::id()));
        let hidden = target.with_file_name(hidden);
        match options.open(&hidden) {
            Ok(file) => return Ok((file, hidden)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
