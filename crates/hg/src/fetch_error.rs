//! The error of fetches.

use crate::conversion::ConversionError;
use crate::git::repository::GitDirectoryError;
use crate::metadata::MetadataError;
use crate::revision::ChangeError;
use crate::shared_metadata::SharedMetadataError;
use crate::url_authority::strip_login;
use std::io;

/// Why changes could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The repository of Mercurial failed.
    #[error(transparent)]
    Peer(#[from] ChangeError),
    /// The conversion failed.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// The metadata cannot be read.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The metadata of another conversion could not be taken.
    #[error(transparent)]
    SharedMetadata(#[from] SharedMetadataError),
    /// A bundle for a first fetch could not be taken.
    #[error("{}", name_url(url, error))]
    CloneBundle {
        /// The URL or the path of the bundle.
        url: String,
        /// The reason.
        error: Box<FetchError>,
    },
    /// git-cinnabar converted the repository, and its metadata was not taken over.
    #[error(
        "git-cinnabar converted this repository: to go on from there: larder hg import-cinnabar; \
         to convert all again, delete its metadata: git update-ref -d refs/cinnabar/metadata"
    )]
    CinnabarRepository,
    /// A repository has another history than what was converted before.
    #[error(
        "no changeset of it is in the folder, which has another repository: convert it to a \
         folder of its own"
    )]
    Unrelated,
    /// A repository has no changesets, and others were converted before.
    #[error(
        "it has no changesets, and the folder has some of an earlier conversion, whose branches \
         it would delete: nothing is changed"
    )]
    EmptySource,
    /// A ref is not one of the remote repository.
    #[error("the remote repository has no ref {0}")]
    UnknownRef(String),
}

/// Returns a message that names the place of a bundle.
fn name_url(url: &str, error: &FetchError) -> String {
    let (url, message) = (strip_login(url), error.to_string());
    if message.contains(&url) { message } else { format!("{url}: {message}") }
}

impl FetchError {
    /// Returns whether another process changed the metadata during the conversion.
    pub(crate) fn is_outdated(&self) -> bool {
        match self {
            FetchError::CloneBundle { error, .. } => error.is_outdated(),
            FetchError::Conversion(error) => matches!(error, ConversionError::Outdated),
            _ => false,
        }
    }

    /// Returns whether git refused to change a ref, as it does if the ref is not what it was when
    /// it was read.
    pub(crate) fn is_refused_ref(&self) -> bool {
        matches!(self, FetchError::Git(GitDirectoryError::Failed { command: "update-ref", .. }))
    }

    /// Returns whether the repository or the bundle is the cause, so that a fetch can go on without
    /// that bundle: a failed conversion leaves nothing.
    pub fn is_of_source(&self) -> bool {
        match self {
            FetchError::CloneBundle { error, .. } => error.is_of_source(),
            FetchError::Peer(ChangeError::Scratch(_))
            | FetchError::Conversion(ConversionError::Source(ChangeError::Scratch(_))) => false,
            FetchError::Conversion(error) => {
                matches!(error, ConversionError::Source(_) | ConversionError::Damaged(_))
            }
            FetchError::Peer(_) => true,
            _ => false,
        }
    }

    /// Returns what a person can do after this error, if the error does not say so itself.
    pub fn advice(&self) -> Option<&'static str> {
        if let FetchError::CloneBundle { error, .. } = self {
            return error.advice();
        }
        if let FetchError::Metadata(error)
        | FetchError::Conversion(ConversionError::Metadata(error)) = self
        {
            return error.advice();
        }
        if let FetchError::EmptySource = self {
            return Some("is it the right one? to begin anew, convert it to a folder of its own");
        }
        let (FetchError::Peer(error) | FetchError::Conversion(ConversionError::Source(error))) =
            self
        else {
            return None;
        };
        match error {
            ChangeError::Read(error) => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::TimedOut => Some(
                    "the changes are incomplete, and none of them is kept: try again, or get \
                         the bundle again",
                ),
                _ => None,
            },
            ChangeError::Login { user: Some(_), .. } => Some(
                "git's credential helpers were told to forget them, so that the next attempt asks \
                 again; git config --get-all credential.helper names the helpers; a password in \
                 the URL has to be replaced there",
            ),
            ChangeError::Login { user: None, .. } => Some(
                "git's credential helpers, a terminal, or a URL such as https://NAME@HOST/ give \
                 them",
            ),
            _ => None,
        }
    }
}
