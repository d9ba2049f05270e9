//! A file that salvage reads past failures of the disk, and the failures.
//!
//! Separate from `page_file`, which knows the format of the file, and from `loss`, which names
//! data: a part that cannot be read may have had no data of the store.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The parts of a file that the disk failed to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: the disk failed to read {parts} part{}: {cause}", path.display(), if *parts == 1 { "" } else { "s" })]
pub struct UnreadableParts {
    /// The file.
    pub path: PathBuf,
    /// The number of parts: pages, or a header.
    pub parts: u64,
    /// The error of the system that the first read ended with.
    pub cause: String,
}

/// A file, and the reads of it that failed.
pub(super) struct ReadableFile {
    path: PathBuf,
    file: File,
    failures: RefCell<ReadFailures>,
}

#[derive(Default)]
struct ReadFailures {
    /// A part may be read more than once.
    offsets: BTreeSet<u64>,
    first_cause: Option<String>,
}

impl ReadableFile {
    pub(super) fn open(path: &Path) -> io::Result<ReadableFile> {
        let file = File::open(path)?;
        Ok(ReadableFile { path: path.to_path_buf(), file, failures: RefCell::default() })
    }

    /// Returns the number of bytes of the file.
    pub(super) fn byte_count(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Fills a buffer from an offset. A failure other than the end of the file is kept.
    pub(super) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.file.read_exact_at(bytes, offset);
        if let Err(error) = &read
            && error.kind() != io::ErrorKind::UnexpectedEof
        {
            let mut failures = self.failures.borrow_mut();
            failures.offsets.insert(offset);
            failures.first_cause.get_or_insert_with(|| error.to_string());
        }
        read
    }

    /// Returns the parts that could not be read; `None`: there is no such part.
    pub(super) fn unreadable_parts(&self) -> Option<UnreadableParts> {
        let failures = self.failures.borrow();
        let cause = failures.first_cause.clone()?;
        Some(UnreadableParts {
            path: self.path.clone(),
            parts: failures.offsets.len() as u64,
            cause,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_twice_is_one_part() {
        // The first page of a process is never mapped: a read of it ends with EIO.
        let file = ReadableFile::open(Path::new("/proc/self/mem")).expect("own memory");
        let mut bytes = [0; 8];
        for offset in [0, 0, 8] {
            let read = file.read_exact_at(&mut bytes, offset);
            assert!(read.is_err(), "{offset}");
        }
        let parts = file.unreadable_parts().map(|parts| parts.to_string());
        let expect = "/proc/self/mem: the disk failed to read 2 parts: \
                      Input/output error (os error 5)";
        assert_eq!(parts.as_deref(), Some(expect));
    }

    #[test]
    fn the_end_of_a_file_is_no_failure() {
        let file = ReadableFile::open(Path::new("/dev/null")).expect("a device");
        let read = file.read_exact_at(&mut [0; 8], 0);
        assert_eq!(read.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(file.unreadable_parts(), None);
    }
}
