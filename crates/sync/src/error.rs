//! What ends an import or an export. Bad input does not: that is named in events, and the rest is
//! taken.

use std::io;
use std::path::PathBuf;

/// What ends an import or an export. All that was committed before it is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] larder_store::Error),
    /// The file for what is not taken could not be made or written.
    #[error("{path}: {source}")]
    RejectsFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file for what is not taken is one of those that are to be read.
    #[error("{path} is one of the files to import, so what is not taken cannot be written to it")]
    RejectsFileIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The output of an export could not be written.
    #[error("could not write the cards: {0}")]
    Write(#[source] io::Error),
    /// The system gave no thread to read with.
    #[error("could not start a thread: {0}")]
    SpawnThread(#[source] io::Error),
    /// A thread that reads or parses ended in mid-work, which is a fault of this program.
    #[error("a thread that reads the input ended too early; this is a fault in larder")]
    ThreadDied,
}
