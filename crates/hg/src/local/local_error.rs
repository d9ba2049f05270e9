//! Errors of repositories on disk.

use crate::revision::ChangeError;
use crate::revlog::RevlogError;
use std::io;
use std::path::PathBuf;

/// Why a repository on disk cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The folder contains no repository.
    #[error("{} is not a Mercurial repository: it has no .hg", path.display())]
    NotRepository {
        /// The folder.
        path: PathBuf,
    },
    /// The repository needs features that are not supported.
    #[error("{} needs features of Mercurial that are not supported: {names}", path.display())]
    Requirements {
        /// The folder.
        path: PathBuf,
        /// The names of the features in the file `requires`, with commas between them.
        names: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file contradicts its format.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
    },
    /// A revlog cannot be read.
    #[error(transparent)]
    Revlog(#[from] RevlogError),
}

impl From<LocalError> for ChangeError {
    fn from(error: LocalError) -> ChangeError {
        match error {
            LocalError::Read { path, source } => {
                let what = format!("{}: {source}", path.display());
                ChangeError::Read(io::Error::new(source.kind(), what))
            }
            LocalError::Revlog(error) => error.into(),
            LocalError::Requirements { .. } => ChangeError::Unsupported { what: error.to_string() },
            LocalError::NotRepository { .. } => ChangeError::new_not_mercurial(error.to_string()),
            LocalError::Damaged { .. } => ChangeError::new_damaged(error.to_string()),
        }
    }
}
