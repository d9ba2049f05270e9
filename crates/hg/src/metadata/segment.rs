//! A segment of the metadata: what one conversion added.
//!
//! Its tree has tables ([`super::table`]):
//!
//! | table | names of pieces | rows of a piece |
//! |---|---|---|
//! | `changesets` | number of the first | node, commit; in the order of the conversion |
//! | `nodes` | the first row | the first 4 bytes of a changeset's node, its number; sorted |
//! | `commits` | the first row | the same of commits |
//! | `texts` | number of the first | compressed: length and text of each changeset |
//! | `lines` | number of the first | compressed: manifests with their parents, as changes of others |
//! | `manifests` | the first row | the first 4 bytes of a manifest's node, its number; sorted |
//! | `snapshots` | the node | compressed: all lines of a manifest |
//! | `files` | the first node | node of a file revision, blob; sorted |
//! | `parents` | the first node | compressed: the parents of the rows of the same piece of `files` |
//! | `copies` | the first node | compressed: node, length and metadata of a file revision; sorted |
//!
//! Numbers are of 32 bits, big-endian. Nodes and blobs are digests, which compression would not
//! make smaller.
//!
//! The parents of a manifest mostly are the manifest that its changes apply to, and none; so its
//! record says which ones are. The parents of a file revision are numbers of rows of `files`
//! ([`super::file_rows`]), or nodes where an earlier segment has them.

use super::StoredFile;
use super::own_objects::read_tree;
use super::record::{
    FILE_ROWS, INDEX_ROW_BYTES, PAIR_BYTES, RecordReader, RowParent, StoredManifest, split_pair,
};
use super::table::{KEPT_CHANGESET_PIECES, KEPT_PIECES, Table, hex};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::ChangedFile;
use crate::object_id::{GitId, Node};
use crate::tree::TreeError;
use std::sync::Arc;

/// Why metadata cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
    /// An object is not one of metadata.
    #[error("the Mercurial metadata is damaged: object {0}")]
    Damaged(GitId),
    /// A manifest that another one was made from is missing.
    #[error("the Mercurial metadata is damaged: manifest {0} is missing")]
    MissingManifest(Node),
    /// The manifests that a manifest was made from lead back to it.
    #[error("the Mercurial metadata is damaged: manifest {0} is made from itself")]
    CyclicManifest(Node),
    /// The pack cannot be written.
    #[error("writing a pack: {0}")]
    Pack(#[from] std::io::Error),
    /// A state to go back to is none of those before the current one.
    #[error("{0} is no earlier state of the Mercurial metadata")]
    OtherState(GitId),
    /// A state to go back to is no metadata.
    #[error("{0} is no state of the Mercurial metadata")]
    InvalidState(GitId),
    /// A newer program wrote the metadata.
    #[error("the Mercurial metadata has a format that this version does not know")]
    OtherFormat,
}

impl From<TreeError> for MetadataError {
    fn from(error: TreeError) -> MetadataError {
        match error {
            TreeError::Pack(error) => MetadataError::Pack(error),
            TreeError::Git(error) => MetadataError::Git(error),
            TreeError::Damaged(id) => MetadataError::Damaged(id),
        }
    }
}

impl MetadataError {
    /// Returns what a person can do after this error, if the error does not say so itself.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            MetadataError::Damaged(_)
            | MetadataError::MissingManifest(_)
            | MetadataError::CyclicManifest(_) => Some(
                "larder hg clear forgets the metadata, and git fetch then converts all again, to \
                 the same ids; commits and branches stay meanwhile",
            ),
            _ => None,
        }
    }
}

/// A segment that is open for lookups.
pub(super) struct MetadataSegment {
    id: GitId,
    changesets: Option<Table>,
    nodes: Option<Table>,
    commits: Option<Table>,
    texts: Option<Table>,
    lines: Option<Table>,
    manifests: Option<Table>,
    snapshots: Option<Table>,
    files: Option<Table>,
    parents: Option<Table>,
    copies: Option<Table>,
}

impl MetadataSegment {
    /// Opens the segment with a tree.
    pub(super) fn open(
        repository: &mut GitDirectory,
        id: GitId,
    ) -> Result<MetadataSegment, MetadataError> {
        let entries = read_tree(repository, id)?;
        let table = |name: &[u8], is_compressed| {
            let found = entries.iter().find(|(other, _)| other == name);
            let kept = match name {
                b"changesets" | b"nodes" => KEPT_CHANGESET_PIECES,
                _ => KEPT_PIECES,
            };
            found.map(|(_, tree)| Table::new(*tree, is_compressed, kept))
        };
        Ok(MetadataSegment {
            id,
            changesets: table(b"changesets", false),
            nodes: table(b"nodes", false),
            commits: table(b"commits", false),
            texts: table(b"texts", true),
            lines: table(b"lines", true),
            manifests: table(b"manifests", false),
            snapshots: table(b"snapshots", true),
            files: table(b"files", false),
            parents: table(b"parents", true),
            copies: table(b"copies", true),
        })
    }

    /// Returns the number of changesets.
    pub(super) fn count_changesets(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<usize, MetadataError> {
        let Some(table) = &mut self.changesets else { return Ok(0) };
        let found = numbered_piece(table, repository, u32::MAX)?;
        let Some((offset, piece)) = found else { return Ok(0) };
        Ok(u32::MAX as usize - offset + piece.len() / PAIR_BYTES)
    }

    /// The tree of the segment.
    pub(super) fn id(&self) -> GitId {
        self.id
    }

    /// Returns the number and the commit of a changeset.
    pub(super) fn find_changeset(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<(u32, GitId)>, MetadataError> {
        for number in find_numbers(self.nodes.as_mut(), repository, &node.0)? {
            let (found, commit) = self.changeset(repository, number)?;
            if found == *node {
                return Ok(Some((number, commit)));
            }
        }
        Ok(None)
    }

    /// Returns the changesets whose nodes begin with hexadecimal digits; without digits, none.
    pub(super) fn find_by_prefix(
        &mut self,
        repository: &mut GitDirectory,
        digits: &str,
    ) -> Result<Vec<Node>, MetadataError> {
        let pad = |digit: &str| {
            let rest = digit.repeat(40_usize.saturating_sub(digits.len()));
            Node::from_hex(format!("{digits}{rest}").as_bytes()).filter(|_| !digits.is_empty())
        };
        let (Some(first), Some(last)) = (pad("0"), pad("f")) else { return Ok(Vec::new()) };
        let mut nodes = Vec::new();
        for number in find_numbers_between(self.nodes.as_mut(), repository, &first, &last)? {
            let (node, _) = self.changeset(repository, number)?;
            if node.to_string().starts_with(digits) {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// Returns the changeset of a commit.
    pub(super) fn find_commit(
        &mut self,
        repository: &mut GitDirectory,
        commit: &GitId,
    ) -> Result<Option<Node>, MetadataError> {
        for number in find_numbers(self.commits.as_mut(), repository, &commit.0)? {
            let (node, found) = self.changeset(repository, number)?;
            if found == *commit {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    fn changeset(
        &mut self,
        repository: &mut GitDirectory,
        number: u32,
    ) -> Result<(Node, GitId), MetadataError> {
        let damaged = MetadataError::Damaged(self.id);
        let Some(table) = &mut self.changesets else { return Err(damaged) };
        let Some((offset, piece)) = numbered_piece(table, repository, number)? else {
            return Err(damaged);
        };
        let start = offset * PAIR_BYTES;
        let row = piece.get(start..start + PAIR_BYTES).and_then(split_pair).ok_or(damaged)?;
        Ok((Node(row.0), GitId(row.1)))
    }

    /// Returns the text of the changeset with a number.
    pub(super) fn changeset_text(
        &mut self,
        repository: &mut GitDirectory,
        number: u32,
    ) -> Result<Vec<u8>, MetadataError> {
        let damaged = || MetadataError::Damaged(self.id);
        let table = self.texts.as_mut().ok_or(MetadataError::Damaged(self.id))?;
        let found = numbered_piece(table, repository, number)?;
        let (offset, piece) = found.ok_or_else(damaged)?;
        let mut reader = RecordReader { rest: &piece };
        for _ in 0..offset {
            reader.bytes().ok_or_else(damaged)?;
        }
        reader.bytes().map(<[u8]>::to_vec).ok_or_else(damaged)
    }

    /// Returns a manifest.
    pub(super) fn find_manifest(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<StoredManifest>, MetadataError> {
        for number in find_numbers(self.manifests.as_mut(), repository, &node.0)? {
            let damaged = || MetadataError::Damaged(self.id);
            let table = self.lines.as_mut().ok_or(MetadataError::Damaged(self.id))?;
            let found = numbered_piece(table, repository, number)?;
            let (offset, piece) = found.ok_or_else(damaged)?;
            let mut reader = RecordReader { rest: &piece };
            for _ in 0..offset {
                reader.bytes().ok_or_else(damaged)?;
            }
            let record = reader.bytes().ok_or_else(damaged)?;
            if record.starts_with(&node.0) {
                return RecordReader { rest: record }.manifest().map(Some).ok_or_else(damaged);
            }
        }
        Ok(None)
    }

    /// Returns all lines of a manifest that has a snapshot.
    pub(super) fn find_snapshot(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<Vec<ChangedFile>>, MetadataError> {
        let Some(table) = &mut self.snapshots else { return Ok(None) };
        let Some(piece) = table.find_named(repository, &node.0)? else { return Ok(None) };
        let lines = RecordReader { rest: &piece }.changes();
        lines.map(Some).ok_or(MetadataError::Damaged(self.id))
    }

    /// Returns a file revision.
    pub(super) fn find_file(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<StoredFile>, MetadataError> {
        let Some((_, blob)) = self.file_row(repository, node)? else { return Ok(None) };
        let metadata = self.copy_metadata(repository, node)?;
        Ok(Some(StoredFile { blob, metadata }))
    }

    /// Returns the place of a file revision in its piece, and its blob.
    fn file_row(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<(usize, GitId)>, MetadataError> {
        let Some(table) = &mut self.files else { return Ok(None) };
        let Some((_, piece)) = table.find_piece(repository, &node.0)? else { return Ok(None) };
        let (rows, _) = piece.as_chunks::<PAIR_BYTES>();
        let Ok(at) = rows.binary_search_by(|row| row[..20].cmp(&node.0[..])) else {
            return Ok(None);
        };
        let blob = rows.get(at).and_then(|row| split_pair(row)).map(|(_, blob)| GitId(blob));
        Ok(blob.map(|blob| (at, blob)))
    }

    /// Returns the parents of a file revision of this segment; `None`: they are not known.
    pub(super) fn find_file_parents(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<[Node; 2]>, MetadataError> {
        let damaged = MetadataError::Damaged(self.id);
        let Some((at, _)) = self.file_row(repository, node)? else { return Ok(None) };
        let Some(table) = &mut self.parents else { return Err(damaged) };
        let Some((_, piece)) = table.find_piece(repository, &node.0)? else { return Err(damaged) };
        let mut reader = RecordReader { rest: &piece };
        let mut parents = reader.file_parents();
        for _ in 0..at {
            parents = parents.and_then(|_| reader.file_parents());
        }
        let Some([p1, p2]) = parents.ok_or(damaged)? else { return Ok(None) };
        Ok(Some([self.parent_node(repository, p1)?, self.parent_node(repository, p2)?]))
    }

    fn parent_node(
        &mut self,
        repository: &mut GitDirectory,
        parent: RowParent,
    ) -> Result<Node, MetadataError> {
        let row = match parent {
            RowParent::None => return Ok(Node::NULL),
            RowParent::Node(node) => return Ok(node),
            RowParent::Row(row) => row as usize,
        };
        let damaged = MetadataError::Damaged(self.id);
        let Some(table) = &mut self.files else { return Err(damaged) };
        let piece = table.piece_at(repository, row / FILE_ROWS)?;
        let start = row % FILE_ROWS * PAIR_BYTES;
        let node = piece.as_ref().and_then(|piece| piece.get(start..start + PAIR_BYTES));
        let (node, _) = node.and_then(split_pair).ok_or(damaged)?;
        Ok(Node(node))
    }

    fn copy_metadata(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Vec<u8>, MetadataError> {
        let Some(table) = &mut self.copies else { return Ok(Vec::new()) };
        let Some((_, piece)) = table.find_piece(repository, &node.0)? else {
            return Ok(Vec::new());
        };
        let mut reader = RecordReader { rest: &piece };
        while let Some(found) = reader.id() {
            let metadata = reader.bytes().ok_or(MetadataError::Damaged(self.id))?;
            if found == node.0 {
                return Ok(metadata.to_vec());
            }
        }
        Ok(Vec::new())
    }
}

/// Returns the numbers whose keys begin with the first bytes of an id.
fn find_numbers(
    table: Option<&mut Table>,
    repository: &mut GitDirectory,
    id: &[u8; 20],
) -> Result<Vec<u32>, MetadataError> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let prefix = &id[..4];
    // Rows with the same prefix are in one piece.
    let mut key = [0xff; INDEX_ROW_BYTES];
    key[..4].copy_from_slice(prefix);
    let Some((_, piece)) = table.find_piece(repository, &key)? else { return Ok(Vec::new()) };
    let (rows, _) = piece.as_chunks::<INDEX_ROW_BYTES>();
    let start = rows.partition_point(|row| &row[..4] < prefix);
    let rows = rows.iter().skip(start).take_while(|row| &row[..4] == prefix);
    Ok(rows.map(|row| u32::from_be_bytes([row[4], row[5], row[6], row[7]])).collect())
}

/// Returns the numbers whose keys begin with the first bytes of an id between two others, in
/// ascending order.
fn find_numbers_between(
    table: Option<&mut Table>,
    repository: &mut GitDirectory,
    first: &Node,
    last: &Node,
) -> Result<Vec<u32>, MetadataError> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let (first, last) = (&first.0[..4], &last.0[..4]);
    let key = |prefix: &[u8], number: u32| [prefix, &number.to_be_bytes()].concat();
    let mut numbers = Vec::new();
    for at in table.find_range(repository, &key(first, 0), &key(last, u32::MAX))? {
        let Some(piece) = table.piece_at(repository, at)? else { break };
        let (rows, _) = piece.as_chunks::<INDEX_ROW_BYTES>();
        let rows = rows.iter().filter(|row| (first..=last).contains(&&row[..4]));
        numbers.extend(rows.map(|row| u32::from_be_bytes([row[4], row[5], row[6], row[7]])));
    }
    // Neighbours are in one piece of the changesets.
    numbers.sort_unstable();
    Ok(numbers)
}

/// The place of a number in a piece, and the piece.
type PlaceInPiece = (usize, Arc<Vec<u8>>);

/// Returns the piece of a table by numbers that has a number.
fn numbered_piece(
    table: &mut Table,
    repository: &mut GitDirectory,
    number: u32,
) -> Result<Option<PlaceInPiece>, MetadataError> {
    let Some((name, piece)) = table.find_piece(repository, &number.to_be_bytes())? else {
        return Ok(None);
    };
    let first = std::str::from_utf8(&name).ok();
    let first = first.and_then(|name| u32::from_str_radix(name, 16).ok());
    Ok(first.and_then(|first| Some((number.checked_sub(first)? as usize, piece))))
}

/// The name of a piece of a table by numbers.
pub(super) fn number_name(number: usize) -> Vec<u8> {
    hex(&(number as u32).to_be_bytes())
}
