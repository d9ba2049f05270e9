//! Tables of a segment: pieces in a tree of git, named by the first key of each.
//!
//! A lookup reads the tree, then one piece. The last pieces are kept, because neighbours are often
//! looked up together.

use super::own_objects::read_tree;
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::object_id::{GitId, hex_digits};
use std::ops::Range;
use std::sync::Arc;

/// The number of pieces of a table that are kept.
pub(super) const KEPT_PIECES: usize = 8;
/// The number of pieces that are kept of a table of changesets: a list of refs looks up thousands
/// of them in no order of theirs. A piece has 40 KB.
pub(super) const KEPT_CHANGESET_PIECES: usize = 96;
/// The most bytes of a piece after decompression.
pub(super) const MAX_PIECE_BYTES: usize = 256 << 20;

/// The name of a piece, and its content.
pub(super) type NamedPiece = (Vec<u8>, Arc<Vec<u8>>);

/// A table. Its names are keys of one length in hexadecimal digits, so that their order is that of
/// the keys.
pub(super) struct Table {
    tree: GitId,
    is_compressed: bool,
    kept: usize,
    pieces: Option<Vec<(Vec<u8>, GitId)>>,
    recent: Vec<(GitId, Arc<Vec<u8>>)>,
}

impl Table {
    /// Takes the table in a tree. `is_compressed`: each piece is a frame of zstd. `kept`: so many
    /// pieces are kept.
    pub(super) fn new(tree: GitId, is_compressed: bool, kept: usize) -> Table {
        Table { tree, is_compressed, kept, pieces: None, recent: Vec::new() }
    }

    fn pieces(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<&[(Vec<u8>, GitId)], GitDirectoryError> {
        let pieces = match self.pieces.take() {
            Some(pieces) => pieces,
            None => read_tree(repository, self.tree)?,
        };
        Ok(self.pieces.insert(pieces))
    }

    /// Returns the name of the piece that has a key if the table has it, and the piece.
    pub(super) fn find_piece(
        &mut self,
        repository: &mut GitDirectory,
        key: &[u8],
    ) -> Result<Option<NamedPiece>, GitDirectoryError> {
        let name = hex(key);
        let pieces = self.pieces(repository)?;
        let after = pieces.partition_point(|(first, _)| *first <= name);
        let Some((first, id)) = after.checked_sub(1).and_then(|at| pieces.get(at)).cloned() else {
            return Ok(None);
        };
        Ok(Some((first, self.piece(repository, id)?)))
    }

    /// Returns the numbers of the pieces that have the keys from one to another, both included, if
    /// the table has them.
    pub(super) fn find_range(
        &mut self,
        repository: &mut GitDirectory,
        first: &[u8],
        last: &[u8],
    ) -> Result<Range<usize>, GitDirectoryError> {
        let (first, last) = (hex(first), hex(last));
        let pieces = self.pieces(repository)?;
        let start = pieces.partition_point(|(name, _)| *name <= first).saturating_sub(1);
        Ok(start..pieces.partition_point(|(name, _)| *name <= last))
    }

    /// Returns the piece whose name is exactly the key.
    pub(super) fn find_named(
        &mut self,
        repository: &mut GitDirectory,
        key: &[u8],
    ) -> Result<Option<Arc<Vec<u8>>>, GitDirectoryError> {
        let name = hex(key);
        let pieces = self.pieces(repository)?;
        let Ok(at) = pieces.binary_search_by(|(first, _)| first.cmp(&name)) else {
            return Ok(None);
        };
        self.piece_at(repository, at)
    }

    /// Returns the piece with a number, from 0 on.
    pub(super) fn piece_at(
        &mut self,
        repository: &mut GitDirectory,
        number: usize,
    ) -> Result<Option<Arc<Vec<u8>>>, GitDirectoryError> {
        match self.pieces(repository)?.get(number).map(|(_, id)| *id) {
            Some(id) => self.piece(repository, id).map(Some),
            None => Ok(None),
        }
    }

    fn piece(
        &mut self,
        repository: &mut GitDirectory,
        id: GitId,
    ) -> Result<Arc<Vec<u8>>, GitDirectoryError> {
        if let Some(at) = self.recent.iter().position(|(other, _)| *other == id) {
            let found = self.recent.remove(at);
            let piece = found.1.clone();
            self.recent.push(found);
            return Ok(piece);
        }
        let content = repository.read_content(&id)?;
        let piece = if self.is_compressed {
            let piece = zstd::bulk::decompress(&content, MAX_PIECE_BYTES);
            piece.map_err(|_| GitDirectoryError::Missing { id })?
        } else {
            content
        };
        let piece = Arc::new(piece);
        if self.recent.len() >= self.kept {
            self.recent.remove(0);
        }
        self.recent.push((id, piece.clone()));
        Ok(piece)
    }
}

/// Writes a key as the name of a piece.
pub(super) fn hex(key: &[u8]) -> Vec<u8> {
    key.iter().copied().flat_map(hex_digits).collect()
}
