//! Opening files that must be regular ones.
//!
//! A scan leaves pipes and devices out, but one may take the place of a file afterwards, and
//! opening a pipe waits until something is written to it.

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file for reading. Another thing than a regular file is an error, and is not waited for.
pub(crate) fn open_regular_file(path: &Path) -> io::Result<(File, Metadata)> {
    // Reading a regular file is the same with this flag.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(io::Error::other("not a file")),
    }
}
