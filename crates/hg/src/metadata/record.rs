//! The records and rows of tables, read and written: their formats are in [`super::segment`] and
//! [`super::file_rows`].

use crate::manifest::{ChangedFile, FileFlag, is_too_deep};
use crate::object_id::{GitId, Node};
use crate::varint::{read_number, write_number};

/// The bytes of a row of `changesets` and of `files`.
pub(super) const PAIR_BYTES: usize = 40;
/// The bytes of a row of `nodes`, `commits` and `manifests`.
pub(super) const INDEX_ROW_BYTES: usize = 8;

/// The bytes of a piece, about: of rows as they are, and of records before compression.
pub(super) const ROW_PIECE_BYTES: usize = 40 << 10;
pub(super) const RECORD_PIECE_BYTES: usize = 128 << 10;
/// The rows of a piece of `files`.
pub(super) const FILE_ROWS: usize = ROW_PIECE_BYTES / PAIR_BYTES;

/// The level of zstd.
pub(super) const LEVEL: i32 = 6;

/// The kinds of parents in the record of a manifest: none, the manifest that its changes apply to,
/// one whose node follows.
pub(super) const NO_PARENT: u8 = 0;
pub(super) const BASE_PARENT: u8 = 1;
pub(super) const OTHER_PARENT: u8 = 2;

/// The manifest that changes apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredBase {
    Empty,
    Node(Node),
}

/// A manifest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredManifest {
    pub(crate) node: Node,
    pub(crate) tree: GitId,
    pub(crate) base: StoredBase,
    /// Null: none.
    pub(crate) parents: [Node; 2],
    /// The number of changes from the nearest manifest with all lines up to this one.
    pub(crate) chain: u32,
    pub(crate) changes: Vec<ChangedFile>,
}

/// A parent as an entry of `parents` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowParent {
    None,
    /// A row of the same segment.
    Row(u32),
    /// A file revision of another segment.
    Node(Node),
}

/// A row of a table of pairs.
type IdPair = ([u8; 20], [u8; 20]);

pub(super) fn split_pair(row: &[u8]) -> Option<IdPair> {
    let (first, second) = row.split_at_checked(20)?;
    Some((first.try_into().ok()?, second.try_into().ok()?))
}

pub(super) fn pair(node: &Node, id: &GitId) -> [u8; PAIR_BYTES] {
    let mut row = [0; PAIR_BYTES];
    let (first, second) = row.split_at_mut(20);
    first.copy_from_slice(&node.0);
    second.copy_from_slice(&id.0);
    row
}

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Reads records; `None` where the bytes are not such a record.
pub(crate) struct RecordReader<'p> {
    pub(crate) rest: &'p [u8],
}

impl<'p> RecordReader<'p> {
    pub(super) fn number(&mut self) -> Option<usize> {
        let (number, rest) = read_number(self.rest)?;
        self.rest = rest;
        Some(number)
    }

    /// Reads a length and so many bytes.
    pub(crate) fn bytes(&mut self) -> Option<&'p [u8]> {
        let len = self.number()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(crate) fn id(&mut self) -> Option<[u8; 20]> {
        let (id, rest) = self.rest.split_first_chunk::<20>()?;
        self.rest = rest;
        Some(*id)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// Reads a record of a manifest.
    pub(crate) fn manifest(&mut self) -> Option<StoredManifest> {
        let node = Node(self.id()?);
        let tree = GitId(self.id()?);
        let kinds = self.byte()?;
        let base = match kinds & 3 {
            0 => StoredBase::Empty,
            1 => StoredBase::Node(Node(self.id()?)),
            _ => return None,
        };
        let parents =
            [self.manifest_parent(kinds >> 2, base)?, self.manifest_parent(kinds >> 4, base)?];
        let chain = u32::try_from(self.number()?).ok()?;
        Some(StoredManifest { node, tree, base, parents, chain, changes: self.changes()? })
    }

    fn manifest_parent(&mut self, kind: u8, base: StoredBase) -> Option<Node> {
        match (kind & 3, base) {
            (NO_PARENT, _) => Some(Node::NULL),
            (BASE_PARENT, StoredBase::Node(base)) => Some(base),
            (OTHER_PARENT, _) => self.id().map(Node),
            _ => None,
        }
    }

    /// Reads changed lines. A path has the number of bytes that it shares with the one before.
    pub(crate) fn changes(&mut self) -> Option<Vec<ChangedFile>> {
        let count = self.number()?;
        let mut changes: Vec<ChangedFile> = Vec::with_capacity(count.min(self.rest.len()));
        for _ in 0..count {
            let shared = self.number()?;
            let previous = changes.last().map_or(&[][..], |(path, _)| path);
            let mut path = previous.get(..shared)?.to_vec();
            path.extend_from_slice(self.bytes()?);
            // A fetched one may have what no conversion takes.
            if is_too_deep(&path) {
                return None;
            }
            let file = match self.byte()? {
                0 => None,
                1 => Some(FileFlag::Plain),
                2 => Some(FileFlag::Executable),
                3 => Some(FileFlag::Link),
                _ => return None,
            };
            let file = match file {
                Some(flag) => Some((Node(self.id()?), flag)),
                None => None,
            };
            changes.push((path, file));
        }
        Some(changes)
    }

    /// Reads the parents of a row; `Some(None)`: they are not known.
    pub(crate) fn file_parents(&mut self) -> Option<Option<[RowParent; 2]>> {
        let Some(number) = self.number()?.checked_sub(1) else { return Some(None) };
        let first = self.row_parent(number / 2)?;
        let second = match number % 2 {
            0 => RowParent::None,
            _ => {
                let number = self.number()?;
                self.row_parent(number)?
            }
        };
        Some(Some([first, second]))
    }

    fn row_parent(&mut self, number: usize) -> Option<RowParent> {
        Some(match number {
            0 => RowParent::None,
            1 => RowParent::Node(Node(self.id()?)),
            row => RowParent::Row(u32::try_from(row - 2).ok()?),
        })
    }
}
