//! Reading segments from the beginning to the end, piece by piece, for checks and merges.
//!
//! Nothing is looked up and nothing is kept: a piece is read when its turn comes.

use super::own_objects::read_tree;
use super::record::{INDEX_ROW_BYTES, PAIR_BYTES, RecordReader, RowParent, split_pair};
use super::segment::MetadataError;
use super::table::{MAX_PIECE_BYTES, hex};
use crate::git::repository::GitDirectory;
use crate::object_id::{GitId, Node};

/// The tables of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentTable {
    Changesets,
    Nodes,
    Commits,
    Texts,
    Lines,
    Manifests,
    Snapshots,
    Files,
    Parents,
    Copies,
}

impl SegmentTable {
    /// The name in the tree of the segment.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SegmentTable::Changesets => "changesets",
            SegmentTable::Nodes => "nodes",
            SegmentTable::Commits => "commits",
            SegmentTable::Texts => "texts",
            SegmentTable::Lines => "lines",
            SegmentTable::Manifests => "manifests",
            SegmentTable::Snapshots => "snapshots",
            SegmentTable::Files => "files",
            SegmentTable::Parents => "parents",
            SegmentTable::Copies => "copies",
        }
    }

    fn is_compressed(self) -> bool {
        use SegmentTable::{Copies, Lines, Parents, Snapshots, Texts};
        matches!(self, Texts | Lines | Snapshots | Parents | Copies)
    }
}

/// A piece of a table: its name, which is its first key in hexadecimal digits, and its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PieceName {
    pub(crate) name: Vec<u8>,
    pub(crate) id: GitId,
}

impl PieceName {
    /// Returns whether the piece begins with a key.
    pub(crate) fn is_of(&self, key: &[u8]) -> bool {
        self.name == hex(key)
    }
}

/// A segment, of which all tables are read.
pub(crate) struct SegmentScan {
    /// The tree of the segment.
    pub(crate) id: GitId,
    tables: Vec<(Vec<u8>, GitId)>,
}

impl SegmentScan {
    /// Opens the segment with a tree.
    pub(crate) fn open(
        repository: &mut GitDirectory,
        id: GitId,
    ) -> Result<SegmentScan, MetadataError> {
        let tables = read_tree(repository, id)?;
        Ok(SegmentScan { id, tables })
    }

    /// Returns the pieces of a table, in their order.
    pub(crate) fn pieces(
        &self,
        repository: &mut GitDirectory,
        table: SegmentTable,
    ) -> Result<Vec<PieceName>, MetadataError> {
        let found = self.tables.iter().find(|(name, _)| name == table.name().as_bytes());
        let Some((_, tree)) = found else { return Ok(Vec::new()) };
        let pieces = read_tree(repository, *tree)?;
        Ok(pieces.into_iter().map(|(name, id)| PieceName { name, id }).collect())
    }
}

/// Reads a piece of a table, decompressed.
pub(crate) fn read_piece(
    repository: &mut GitDirectory,
    table: SegmentTable,
    id: GitId,
) -> Result<Vec<u8>, MetadataError> {
    let content = repository.read_content(&id)?;
    if !table.is_compressed() {
        return Ok(content);
    }
    zstd::bulk::decompress(&content, MAX_PIECE_BYTES).map_err(|_| MetadataError::Damaged(id))
}

/// Returns the rows of a piece of `changesets` or `files`; `None` if the last one is cut off.
pub(crate) fn pair_rows(piece: &[u8]) -> Option<Vec<(Node, GitId)>> {
    let (rows, rest) = piece.as_chunks::<PAIR_BYTES>();
    let rows = rows.iter().filter_map(|row| split_pair(row));
    rest.is_empty().then(|| rows.map(|(node, id)| (Node(node), GitId(id))).collect())
}

/// Returns the entries of a piece of `parents`; `None` if one is damaged.
pub(crate) fn parent_entries(piece: &[u8]) -> Option<Vec<Option<[RowParent; 2]>>> {
    let mut reader = RecordReader { rest: piece };
    let mut entries = Vec::new();
    while !reader.rest.is_empty() {
        entries.push(reader.file_parents()?);
    }
    Some(entries)
}

/// Returns the rows of a piece of an index: the first bytes of an id and a number. `None` if the
/// last one is cut off.
pub(crate) fn index_rows(piece: &[u8]) -> Option<Vec<([u8; 4], u32)>> {
    let (rows, rest) = piece.as_chunks::<INDEX_ROW_BYTES>();
    let row =
        |&[a, b, c, d, e, f, g, h]: &[u8; 8]| ([a, b, c, d], u32::from_be_bytes([e, f, g, h]));
    rest.is_empty().then(|| rows.iter().map(row).collect())
}
