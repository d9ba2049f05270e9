//! A revision as it comes from a source, and the interface of sources.

use crate::object_id::Node;
use sha1::{Digest as _, Sha1};
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
    /// Mercurial's hunks, which [`crate::apply_delta`] applies.
    pub delta: Vec<u8>,
}

impl Revision {
    /// The flag of a revision whose text was removed on the server.
    pub const CENSORED: u16 = 1 << 15;
    /// The flag of a revision whose parents were removed (a shallow repository of Mercurial).
    pub const ELLIPSIS: u16 = 1 << 14;
    /// The flag of a text that is kept elsewhere (the extension LFS); the text here is a pointer.
    pub const EXTERNAL: u16 = 1 << 13;
    /// The flag of a changeset whose copies of files are also stored beside it. Its text is as that
    /// of others.
    pub const COPIES_INFO: u16 = 1 << 12;

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

/// The fields of a revision that are needed to make its text and to check it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisionHeader {
    pub(crate) node: Node,
    pub(crate) p1: Node,
    pub(crate) p2: Node,
    pub(crate) base: Node,
    pub(crate) flags: u16,
}

impl RevisionHeader {
    pub(crate) fn new(revision: &Revision) -> RevisionHeader {
        let Revision { node, p1, p2, base, flags, .. } = *revision;
        RevisionHeader { node, p1, p2, base, flags }
    }

    /// Returns whether a text, in pieces, is that of the revision.
    pub(crate) fn is_hash_of<'t>(&self, pieces: impl IntoIterator<Item = &'t [u8]>) -> bool {
        hash_revision(&self.p1, &self.p2, pieces) == self.node
    }

    /// Returns whether the revision has a text in place of that which its hash is of. Only files
    /// may have such texts.
    pub(crate) fn has_replaced_text(&self) -> bool {
        self.flags & REPLACED_TEXT != 0
    }

    /// Returns the name of a flag that a file cannot have.
    pub(crate) fn refused_file_flag(&self) -> Option<&'static str> {
        flag_name(self.flags & !(REPLACED_TEXT | Revision::COPIES_INFO))
    }

    /// Returns the name of a flag that a changeset or manifest cannot have: their hashes are always
    /// checked.
    pub(crate) fn refused_history_flag(&self) -> Option<&'static str> {
        flag_name(self.flags & !Revision::COPIES_INFO)
    }
}

/// The flags of texts that stand in place of others.
const REPLACED_TEXT: u16 = Revision::CENSORED | Revision::EXTERNAL;

/// Returns the name of the highest of some flags.
fn flag_name(flags: u16) -> Option<&'static str> {
    match flags {
        0 => None,
        Revision::CENSORED.. => Some("a censored text"),
        Revision::ELLIPSIS.. => Some("a shallow repository"),
        Revision::EXTERNAL.. => Some("a text in external storage"),
        _ => Some("an unknown flag"),
    }
}

/// Returns the bytes that are hashed before the text of a revision.
pub(crate) fn hashed_parents(p1: &Node, p2: &Node) -> [u8; 40] {
    let mut bytes = [0; 40];
    let (smaller, larger) = bytes.split_at_mut(20);
    smaller.copy_from_slice(&p1.min(p2).0);
    larger.copy_from_slice(&p1.max(p2).0);
    bytes
}

/// Returns the hash of a revision: of its parents, the smaller one first, and its text, in pieces.
pub(crate) fn hash_revision<'t>(
    p1: &Node,
    p2: &Node,
    pieces: impl IntoIterator<Item = &'t [u8]>,
) -> Node {
    let mut hasher = Sha1::new();
    hasher.update(hashed_parents(p1, p2));
    pieces.into_iter().for_each(|piece| hasher.update(piece));
    Node(hasher.finalize().into())
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
    /// A temporary file could not be written, which is no fault of the changes.
    #[error("writing temporary files: {0}")]
    Scratch(#[source] io::Error),
    /// The server ended the stream with a message.
    #[error("the server says: {message}")]
    Aborted {
        /// The server's own words.
        message: String,
    },
    /// The server does not answer without a login that it accepts.
    #[error("{}", describe_login(url, user.as_deref()))]
    Login {
        /// The repository.
        url: String,
        /// The user whose login the server refused; `None`: there was no login.
        user: Option<String>,
    },
    /// The bytes are not what the format allows.
    #[error("damaged changes: {what}")]
    Damaged {
        /// The expected and the actual content.
        what: String,
    },
    /// There is no repository or bundle of Mercurial, or the program there does not speak its
    /// protocol.
    #[error("{what}")]
    NotMercurial {
        /// The place, and its content.
        what: String,
    },
    /// The settings of this side cannot be read.
    #[error("{what}")]
    Settings {
        /// Which ones, and why.
        what: String,
    },
    /// The source has a feature that is not supported.
    #[error("not supported: {what}")]
    Unsupported {
        /// The feature, by the name that Mercurial gives it.
        what: String,
    },
}

fn describe_login(url: &str, user: Option<&str>) -> String {
    match user {
        Some(user) => format!("{url} refuses the name and the password of the user {user}"),
        None => format!("{url} asks for a name and a password, and there are none"),
    }
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

    /// Creates the error of a place that has nothing of Mercurial.
    pub(crate) fn new_not_mercurial(what: impl Into<String>) -> ChangeError {
        ChangeError::NotMercurial { what: what.into() }
    }

    /// Creates the error of a feature that is not supported.
    pub(crate) fn new_unsupported(what: impl Into<String>) -> ChangeError {
        ChangeError::Unsupported { what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each flag alone: those taken of files, and of changesets and manifests.
    #[test]
    fn flags_are_taken_or_refused_by_name() {
        let mut file_flags = Vec::new();
        let mut history_flags = Vec::new();
        for flags in (0..16).map(|bit| 1_u16 << bit) {
            let header = RevisionHeader {
                node: Node::NULL,
                p1: Node::NULL,
                p2: Node::NULL,
                base: Node::NULL,
                flags,
            };
            assert!(!header.is_hash_of([b"text".as_slice()]), "{flags}");
            file_flags.extend(header.refused_file_flag().is_none().then_some(flags));
            history_flags.extend(header.refused_history_flag().is_none().then_some(flags));
            let replaced = [Revision::CENSORED, Revision::EXTERNAL].contains(&flags);
            assert_eq!(header.has_replaced_text(), replaced, "{flags}");
        }
        assert_eq!(file_flags, [1 << 12, 1 << 13, 1 << 15]);
        assert_eq!(history_flags, [1 << 12]);
        assert_eq!(flag_name(1 << 14 | 1), Some("a shallow repository"));
        assert_eq!(flag_name(1 << 11), Some("an unknown flag"));
    }
}
