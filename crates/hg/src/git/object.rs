//! Kinds of objects, and their ids.

use crate::object_id::GitId;
use sha1::{Digest as _, Sha1};

/// The kind of an object, with its number in packs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl ObjectKind {
    /// The name in the header that is hashed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
        }
    }
}

/// Returns the parents of a commit.
pub(crate) fn commit_parents(content: &[u8]) -> impl Iterator<Item = GitId> {
    let lines = content.split(|byte| *byte == b'\n').skip(1);
    lines.map_while(|line| GitId::from_hex(line.strip_prefix(b"parent ")?))
}

/// The number in packs of a delta whose base is named by its offset.
pub(super) const OFFSET_DELTA: u8 = 6;

/// The tree without entries.
pub(crate) const EMPTY_TREE: GitId = GitId([
    0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88,
    0xfb, 0xee, 0x49, 0x04,
]);

/// The blob without bytes.
pub(crate) const EMPTY_BLOB: GitId = GitId([
    0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2,
    0xe4, 0x8c, 0x53, 0x91,
]);

/// The bytes that are hashed before the content of an object.
pub(crate) struct ObjectHeader {
    /// At most 6 letters, a space, 20 digits and a NUL.
    bytes: [u8; 32],
    len: usize,
}

impl ObjectHeader {
    /// Creates the header of a content with so many bytes, without allocating.
    pub(crate) fn new(kind: ObjectKind, content_len: usize) -> ObjectHeader {
        use std::io::Write as _;
        let mut bytes = [0_u8; 32];
        let mut rest = bytes.as_mut_slice();
        // The buffer holds the longest header, so nothing fails.
        let _fits = write!(rest, "{} {}\0", kind.name(), content_len);
        let left = rest.len();
        ObjectHeader { bytes, len: bytes.len() - left }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Returns the id of an object with this content.
pub(crate) fn object_id(kind: ObjectKind, content: &[u8]) -> GitId {
    let mut hasher = Sha1::new();
    hasher.update(ObjectHeader::new(kind, content.len()).bytes());
    hasher.update(content);
    GitId(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(object_id(ObjectKind::Tree, b""), EMPTY_TREE);
        assert_eq!(object_id(ObjectKind::Blob, b""), EMPTY_BLOB);
        let hello = object_id(ObjectKind::Blob, b"hello world\n");
        assert_eq!(hello.to_string(), "3b18e512dba79e4c8300dd08aeb37f8e728b8dad");
    }
}
