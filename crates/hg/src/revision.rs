//! A revision as it comes from a source, and the interface of sources.

use crate::object_id::Node;
use std::io;

/// One revision of the changelog, the manifest or a file, as a changegroup and a revlog have it: a
/// delta against an earlier revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The SHA-1 of the parents, the smaller one first, and the text.
    pub node: Node,
    /// The first parent; null if there is none.
    pub p1: Node,
    /// The second parent; null if there is none.
    pub p2: Node,
    /// The revision that the delta applies to; null: the delta applies to the empty text.
    pub base: Node,
    /// The changeset that introduced the revision.
    pub link: Node,
    /// [`Revision::CENSORED`] and its neighbours; 0 in changegroups before version 03.
    pub flags: u16,
    /// The hunks ([`crate::hunks`]).
    pub delta: Vec<u8>,
}

impl Revision {
    /// The flag of a revision whose text was removed on the server.
    pub const CENSORED: u16 = 1 << 15;
    /// The flag of a revision whose parents were removed (a shallow repository of Mercurial).
    pub const ELLIPSIS: u16 = 1 << 14;
    /// The flag of a text that is kept elsewhere (the extension LFS); the text here is a pointer.
    pub const EXTERNAL: u16 = 1 << 13;

    /// Creates a revision to be filled by [`ChangeSource::next_revision`].
    pub fn empty() -> Revision {
        Revision {
            node: Node::NULL,
            p1: Node::NULL,
            p2: Node::NULL,
            base: Node::NULL,
            link: Node::NULL,
            flags: 0,
            delta: Vec::new(),
        }
    }
}

/// A stream of changes in the order of a changegroup: the revisions of the changelog, those of the
/// manifest, then those of one file after the other. A base and the parents that are new come
/// before the revisions that refer to them.
pub trait ChangeSource: Send {
    /// Reads the next revision of the current group over the given one, whose buffer is reused.
    /// Returns false at the end of the group; after the changelog, the group of the manifest is
    /// the current one.
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError>;

    /// Begins the group of the next file, and returns its path; `None` at the end of the changes.
    /// The caller has read the group before to its end: that of the manifest, or of a file.
    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError>;
}

/// Why a source of changes ended early.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The stream could not be read, or ended early.
    #[error("reading changes: {0}")]
    Read(#[source] io::Error),
    /// The server ended the stream with a message.
    #[error("the server says: {message}")]
    Aborted {
        /// The server's own words.
        message: String,
    },
    /// The bytes are not what the format allows.
    #[error("damaged changes: {what}")]
    Damaged {
        /// The expected and the actual content.
        what: String,
    },
    /// The source has a feature that is not supported.
    #[error("not supported: {what}")]
    Unsupported {
        /// The feature, by the name that Mercurial gives it.
        what: String,
    },
}

// A decoder passes on the errors of the stream below it, which may carry the words of a server.
impl From<io::Error> for ChangeError {
    fn from(error: io::Error) -> ChangeError {
        error.downcast::<ChangeError>().unwrap_or_else(ChangeError::Read)
    }
}

impl From<ChangeError> for io::Error {
    fn from(error: ChangeError) -> io::Error {
        match error {
            ChangeError::Read(error) => error,
            other => io::Error::other(other),
        }
    }
}

impl ChangeError {
    /// Creates the error of bytes that the format does not allow.
    pub(crate) fn new_damaged(what: impl Into<String>) -> ChangeError {
        ChangeError::Damaged { what: what.into() }
    }

    /// Creates the error of a feature that is not supported.
    pub(crate) fn new_unsupported(what: impl Into<String>) -> ChangeError {
        ChangeError::Unsupported { what: what.into() }
    }
}
