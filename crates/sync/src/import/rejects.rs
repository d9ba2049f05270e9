//! The file that keeps what an import did not take, so that a person can mend it and import it
//! again.
//!
//! It holds the bytes as they came, stretch after stretch, with a line feed only where a stretch
//! does not end its last line. It is written beside its target under a hidden name and takes the
//! target's place at the end, if there is anything in it: a file of an earlier import is left alone
//! by one that rejects nothing, and is replaced by one that does.

use crate::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Hidden names that are tried before giving up.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// A file for rejected bytes, being written.
pub(super) struct RejectsFile {
    target: PathBuf,
    /// The hidden file; `None` where the target is a device or a pipe and is written to as it is.
    hidden: Option<PathBuf>,
    out: BufWriter<File>,
    has_content: bool,
    /// The last stretch ended its last line.
    is_line_ended: bool,
}

impl RejectsFile {
    /// Makes the hidden file, so that a folder that cannot be written to is known before anything
    /// is imported.
    pub(super) fn create(path: &Path) -> Result<RejectsFile, Error> {
        // A symbolic link stays one: what it points to is replaced.
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

    /// Adds bytes; `first` where they begin a stretch.
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

    /// Puts the file in its place and returns that, or takes it away where nothing was rejected.
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
            // Nothing can be done about a file that will not go away; it is hidden and named after
            // us.
            drop(fs::remove_file(hidden));
        }
    }
}

/// A new file beside `target`, for its owner only: what is rejected is as private as what is taken.
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
