//! The errors of a conversion.

use crate::file_conversion::FileError;
use crate::git::repository::GitDirectoryError;
use crate::manifest::ManifestError;
use crate::metadata::MetadataError;
use crate::object_id::Node;
use crate::revision::ChangeError;
use crate::tree::TreeError;
use std::io;

/// Why a conversion ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// The source failed.
    #[error(transparent)]
    Source(#[from] ChangeError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// The metadata of earlier conversions cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The pack cannot be written.
    #[error("writing a pack: {0}")]
    Pack(#[from] io::Error),
    /// Another process converted changes, or forgot some, after this conversion began.
    #[error("another process changed the Mercurial metadata meanwhile; run the command again")]
    Outdated,
    /// Two changesets have one id.
    #[error("two texts of changesets have the id {0} (a collision of SHA-1)")]
    Collision(Node),
    /// A changeset, manifest or file is not what Mercurial writes.
    #[error("{0}")]
    Damaged(String),
}

impl From<ManifestError> for ConversionError {
    fn from(error: ManifestError) -> ConversionError {
        ConversionError::Damaged(error.to_string())
    }
}

impl From<FileError> for ConversionError {
    fn from(error: FileError) -> ConversionError {
        match error {
            FileError::Pack(error) => ConversionError::Pack(error),
            error => ConversionError::Damaged(error.to_string()),
        }
    }
}

impl From<TreeError> for ConversionError {
    fn from(error: TreeError) -> ConversionError {
        match error {
            TreeError::Pack(error) => ConversionError::Pack(error),
            TreeError::Git(error) => ConversionError::Git(error),
            error @ TreeError::Damaged(_) => ConversionError::Damaged(error.to_string()),
        }
    }
}
