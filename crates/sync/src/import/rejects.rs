//! The file of rejected input, for a person to correct and import again.
//!
//! The file contains the rejected bytes unchanged; a line feed is added only after a range that
//! does not end with one. An import without rejects keeps the file of an earlier import. Separate
//! from the store's output files, which know nothing of ranges.

use crate::error::Error;
use larder_store::{DataDirectory, FilePrivacy, OutputFile, OutputTarget};
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;

/// A file of rejected bytes while it is written.
pub(super) struct RejectsFile {
    out: BufWriter<OutputFile>,
    has_content: bool,
    /// Whether the last range ended with a line ending.
    is_line_ended: bool,
}

impl RejectsFile {
    /// Opens the file, so that a folder without write permission is reported before the import.
    /// Rejected input is as private as imported input.
    pub(super) fn create(
        directory: &DataDirectory,
        target: &OutputTarget,
    ) -> Result<RejectsFile, Error> {
        let file = OutputFile::create(directory, target, FilePrivacy::Private);
        let out = BufWriter::with_capacity(64 << 10, file.map_err(Error::RejectsFile)?);
        Ok(RejectsFile { out, has_content: false, is_line_ended: true })
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

    /// Gives the file its name, which is returned, or removes the file if it is empty.
    pub(super) fn finish(mut self) -> Result<Option<PathBuf>, Error> {
        if !self.has_content {
            return Ok(None);
        }
        self.out.flush().map_err(|source| self.to_error(source))?;
        let path = self.out.get_ref().path().to_path_buf();
        match self.out.into_inner() {
            Ok(file) => file.commit().map_err(Error::RejectsFile)?,
            Err(error) => {
                let (source, out) = error.into_parts();
                return Err(Error::RejectsFile(out.get_ref().to_error(source)));
            }
        };
        Ok(Some(path))
    }

    fn to_error(&self, source: io::Error) -> Error {
        Error::RejectsFile(self.out.get_ref().to_error(source))
    }
}
