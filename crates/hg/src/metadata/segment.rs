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
//! | `lines` | number of the first | compressed: manifests as changes of other ones |
//! | `manifests` | the first row | the first 4 bytes of a manifest's node, its number; sorted |
//! | `snapshots` | the node | compressed: all lines of a manifest |
//! | `files` | the first node | node of a file revision, blob; sorted |
//! | `copies` | the first node | compressed: node, length and metadata of a file revision; sorted |
//!
//! Numbers are of 32 bits, big-endian. Nodes and blobs are digests, which compression would not
//! make smaller.

use super::StoredFile;
use super::table::{Table, hex};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::FileFlag;
use crate::object_id::{GitId, Node};
use crate::varint::read_number;
use std::sync::Arc;

/// The bytes of a row of `changesets` and of `files`.
pub(super) const PAIR_BYTES: usize = 40;
/// The bytes of a row of `nodes`, `commits` and `manifests`.
pub(super) const INDEX_ROW_BYTES: usize = 8;

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
    /// The pack cannot be written.
    #[error("writing a pack: {0}")]
    Pack(#[from] std::io::Error),
    /// A newer program wrote the metadata.
    #[error("the Mercurial metadata has a format that this version does not know")]
    OtherFormat,
}

/// A changed line: the path, and the file revision it has now; `None`: it is removed.
pub(super) type StoredChange = (Vec<u8>, Option<(Node, FileFlag)>);

/// The manifest that changes apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredBase {
    Empty,
    Node(Node),
}

/// A manifest as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredManifest {
    pub(super) node: Node,
    pub(super) tree: GitId,
    pub(super) base: StoredBase,
    /// The number of changes from the nearest manifest with all lines up to this one.
    pub(super) chain: u32,
    pub(super) changes: Vec<StoredChange>,
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
    copies: Option<Table>,
}

impl MetadataSegment {
    /// Opens the segment with a tree.
    pub(super) fn open(
        repository: &mut GitDirectory,
        id: GitId,
    ) -> Result<MetadataSegment, MetadataError> {
        let entries = super::read_tree(repository, id)?;
        let table = |name: &[u8], is_compressed| {
            let found = entries.iter().find(|(other, _)| other == name);
            found.map(|(_, tree)| Table::new(*tree, is_compressed))
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

    /// Returns all changesets with their commits, in the order of the conversion.
    pub(super) fn read_changesets(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<(Node, GitId)>, MetadataError> {
        let rows = read_rows(self.changesets.as_mut(), repository)?;
        Ok(rows.into_iter().map(|(node, commit)| (Node(node), GitId(commit))).collect())
    }

    /// Returns all file revisions with their blobs.
    pub(super) fn read_files(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<(Node, GitId)>, MetadataError> {
        let rows = read_rows(self.files.as_mut(), repository)?;
        Ok(rows.into_iter().map(|(node, blob)| (Node(node), GitId(blob))).collect())
    }

    /// Returns the metadata of all file revisions that have any.
    pub(super) fn read_copies(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<(Node, Vec<u8>)>, MetadataError> {
        let Some(table) = &mut self.copies else { return Ok(Vec::new()) };
        let content = table.read_all(repository)?;
        let mut reader = RecordReader { rest: &content };
        let mut copies = Vec::new();
        while let Some(node) = reader.id() {
            let metadata = reader.bytes().ok_or(MetadataError::Damaged(self.id))?;
            copies.push((Node(node), metadata.to_vec()));
        }
        Ok(copies)
    }

    /// Returns the texts of all changesets, in the order of the conversion.
    pub(super) fn read_texts(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<Vec<u8>>, MetadataError> {
        let records = read_records(self.texts.as_mut(), repository)?;
        records.ok_or(MetadataError::Damaged(self.id))
    }

    /// Returns all manifests, in the order of the conversion.
    pub(super) fn read_manifests(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<StoredManifest>, MetadataError> {
        let records = read_records(self.lines.as_mut(), repository)?.unwrap_or_default();
        let manifests: Option<Vec<StoredManifest>> =
            records.iter().map(|record| RecordReader { rest: record }.manifest()).collect();
        manifests.ok_or(MetadataError::Damaged(self.id))
    }

    /// Returns the names and objects of all snapshots.
    pub(super) fn read_snapshots(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<(Vec<u8>, GitId)>, MetadataError> {
        match &mut self.snapshots {
            Some(table) => Ok(table.names(repository)?),
            None => Ok(Vec::new()),
        }
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

    /// Returns the changesets whose nodes begin with hexadecimal digits; fewer than 8 find none.
    pub(super) fn find_by_prefix(
        &mut self,
        repository: &mut GitDirectory,
        digits: &str,
    ) -> Result<Vec<Node>, MetadataError> {
        let padded = format!("{digits:0<40}");
        let Some(first) = Node::from_hex(padded.as_bytes()).filter(|_| digits.len() >= 8) else {
            return Ok(Vec::new());
        };
        let mut nodes = Vec::new();
        for number in find_numbers(self.nodes.as_mut(), repository, &first.0)? {
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
    ) -> Result<Option<Vec<StoredChange>>, MetadataError> {
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
        let Some(table) = &mut self.files else { return Ok(None) };
        let Some((_, piece)) = table.find_piece(repository, &node.0)? else { return Ok(None) };
        let (rows, _) = piece.as_chunks::<PAIR_BYTES>();
        let Ok(at) = rows.binary_search_by(|row| row[..20].cmp(&node.0[..])) else {
            return Ok(None);
        };
        let Some((_, blob)) = rows.get(at).and_then(|row| split_pair(row)) else {
            return Ok(None);
        };
        let metadata = self.copy_metadata(repository, node)?;
        Ok(Some(StoredFile { blob: GitId(blob), metadata }))
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

/// A row of a table of pairs.
type IdPair = ([u8; 20], [u8; 20]);

/// Returns all rows of a table of pairs.
fn read_rows(
    table: Option<&mut Table>,
    repository: &mut GitDirectory,
) -> Result<Vec<IdPair>, MetadataError> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let content = table.read_all(repository)?;
    let (rows, _) = content.as_chunks::<PAIR_BYTES>();
    Ok(rows.iter().filter_map(|row| split_pair(row)).collect())
}

/// Returns all records of a table; `None` if one is cut off.
fn read_records(
    table: Option<&mut Table>,
    repository: &mut GitDirectory,
) -> Result<Option<Vec<Vec<u8>>>, MetadataError> {
    let Some(table) = table else { return Ok(Some(Vec::new())) };
    let content = table.read_all(repository)?;
    let mut reader = RecordReader { rest: &content };
    let mut records = Vec::new();
    while !reader.rest.is_empty() {
        match reader.bytes() {
            Some(record) => records.push(record.to_vec()),
            None => return Ok(None),
        }
    }
    Ok(Some(records))
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

fn split_pair(row: &[u8]) -> Option<IdPair> {
    let (first, second) = row.split_at_checked(20)?;
    Some((first.try_into().ok()?, second.try_into().ok()?))
}

/// The name of a piece of a table by numbers.
pub(super) fn number_name(number: usize) -> Vec<u8> {
    hex(&(number as u32).to_be_bytes())
}

/// Reads records; `None` where the bytes are not such a record.
pub(super) struct RecordReader<'p> {
    pub(super) rest: &'p [u8],
}

impl<'p> RecordReader<'p> {
    fn number(&mut self) -> Option<usize> {
        let (number, rest) = read_number(self.rest)?;
        self.rest = rest;
        Some(number)
    }

    /// Reads a length and so many bytes.
    pub(super) fn bytes(&mut self) -> Option<&'p [u8]> {
        let len = self.number()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    fn id(&mut self) -> Option<[u8; 20]> {
        let (id, rest) = self.rest.split_first_chunk::<20>()?;
        self.rest = rest;
        Some(*id)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn manifest(&mut self) -> Option<StoredManifest> {
        let node = Node(self.id()?);
        let tree = GitId(self.id()?);
        let base = match self.byte()? {
            0 => StoredBase::Empty,
            1 => StoredBase::Node(Node(self.id()?)),
            _ => return None,
        };
        let chain = u32::try_from(self.number()?).ok()?;
        Some(StoredManifest { node, tree, base, chain, changes: self.changes()? })
    }

    /// Reads changed lines. A path has the number of bytes that it shares with the one before.
    pub(super) fn changes(&mut self) -> Option<Vec<StoredChange>> {
        let count = self.number()?;
        let mut changes: Vec<StoredChange> = Vec::with_capacity(count.min(self.rest.len()));
        for _ in 0..count {
            let shared = self.number()?;
            let previous = changes.last().map_or(&[][..], |(path, _)| path);
            let mut path = previous.get(..shared)?.to_vec();
            path.extend_from_slice(self.bytes()?);
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
}
