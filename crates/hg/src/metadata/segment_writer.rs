//! Writing a segment of the metadata. Its format is in [`super::segment`].

use super::file_rows::FileTables;
use super::own_objects::{append, tree_content, write_tree};
use super::record::{
    BASE_PARENT, INDEX_ROW_BYTES, LEVEL, NO_PARENT, OTHER_PARENT, PAIR_BYTES, RECORD_PIECE_BYTES,
    ROW_PIECE_BYTES, RecordReader, pair, write_bytes,
};
use super::segment::number_name;
use super::table::{MAX_PIECE_BYTES, hex};
use crate::git::object::ObjectKind;
use crate::git::pack_writer::PackWriter;
use crate::manifest::{FileFlag, ManifestLine, ManifestText};
use crate::object_id::{GitId, Node};
use crate::varint::write_number;
use std::io;

/// A manifest gets all its lines written when the changes before it are more than so many times
/// its lines.
const MAX_CHAIN_RATIO: usize = 4;
/// The bytes of a line of a manifest, about.
const LINE_BYTES: usize = 80;

/// The path of a changed line, and its file revision; `None`: it is removed.
pub(crate) type ChangedLine<'l> = (&'l [u8], Option<(Node, FileFlag)>);

/// A manifest to be written.
pub(crate) struct ManifestRecord<'m> {
    pub(crate) node: Node,
    pub(crate) tree: GitId,
    /// The manifest that the changes apply to; `None`: they are all lines.
    pub(crate) base: Option<Node>,
    /// Null: none.
    pub(crate) parents: [Node; 2],
    /// The number of changes from the nearest manifest with all lines up to this one.
    pub(crate) chain: u32,
    /// The changed lines, sorted by path.
    pub(crate) changes: &'m [ChangedLine<'m>],
}

/// Records that are written in pieces when they have enough bytes.
struct RecordPieces {
    pending: Vec<u8>,
    /// The name of the piece that is pending.
    name: Option<Vec<u8>>,
    pieces: Vec<(Vec<u8>, GitId)>,
}

impl RecordPieces {
    fn new() -> RecordPieces {
        RecordPieces { pending: Vec::new(), name: None, pieces: Vec::new() }
    }

    /// Adds a record. `name` is that of a piece that begins with it.
    fn add(
        &mut self,
        pack: &mut PackWriter,
        name: impl FnOnce() -> Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        self.name.get_or_insert_with(name);
        write(&mut self.pending);
        if self.pending.len() >= RECORD_PIECE_BYTES { self.end_piece(pack) } else { Ok(()) }
    }

    fn end_piece(&mut self, pack: &mut PackWriter) -> io::Result<()> {
        if let Some(name) = self.name.take() {
            let piece = zstd::bulk::compress(&self.pending, LEVEL)?;
            self.pieces.push((name, append(pack, ObjectKind::Blob, &piece)?));
            self.pending.clear();
        }
        Ok(())
    }

    fn finish(mut self, pack: &mut PackWriter) -> io::Result<Option<GitId>> {
        self.end_piece(pack)?;
        if self.pieces.is_empty() {
            return Ok(None);
        }
        write_tree(pack, ObjectKind::Blob, self.pieces).map(Some)
    }
}

/// A segment being written.
pub(crate) struct MetadataWriter {
    texts: RecordPieces,
    text_count: usize,
    lines: RecordPieces,
    manifests: Vec<Node>,
    snapshots: Vec<(Vec<u8>, GitId)>,
}

impl MetadataWriter {
    /// Begins a segment.
    pub(crate) fn new() -> MetadataWriter {
        MetadataWriter {
            texts: RecordPieces::new(),
            text_count: 0,
            lines: RecordPieces::new(),
            manifests: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// Adds the text of the next changeset.
    pub(crate) fn add_text(&mut self, pack: &mut PackWriter, text: &[u8]) -> io::Result<()> {
        let number = self.text_count;
        self.text_count += 1;
        self.texts.add(pack, || number_name(number), |piece| write_bytes(piece, text))
    }

    /// Returns the text that was added with this number.
    pub(crate) fn text(
        &mut self,
        pack: &mut PackWriter,
        number: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let name = number_name(number);
        let after = self.texts.pieces.partition_point(|(first, _)| *first <= name);
        let is_pending = self.texts.name.as_ref().is_some_and(|first| *first <= name);
        let (first, piece) = match after.checked_sub(1).and_then(|at| self.texts.pieces.get(at)) {
            Some((first, id)) if !is_pending => (Some(first), decompress_piece(pack, id)?),
            _ => (self.texts.name.as_ref(), self.texts.pending.clone()),
        };
        let first = first.and_then(|name| std::str::from_utf8(name).ok());
        let first = first.and_then(|name| usize::from_str_radix(name, 16).ok());
        let mut reader = RecordReader { rest: &piece };
        for _ in first.unwrap_or(0)..number {
            reader.bytes();
        }
        Ok(reader.bytes().map(<[u8]>::to_vec))
    }

    /// Returns the texts that were added, from the first one on.
    pub(crate) fn texts(&mut self) -> ChangesetTextReader {
        let pieces = self.texts.pieces.iter().map(|(_, id)| *id).collect();
        ChangesetTextReader {
            pieces,
            next: 0,
            piece: Vec::new(),
            position: 0,
            last: self.texts.pending.clone(),
        }
    }

    /// Adds all lines of a manifest ([`encode_snapshot`]).
    pub(crate) fn add_snapshot(
        &mut self,
        pack: &mut PackWriter,
        node: Node,
        snapshot: &[u8],
    ) -> io::Result<()> {
        let piece = zstd::bulk::compress(snapshot, LEVEL)?;
        self.snapshots.push((hex(&node.0), append(pack, ObjectKind::Blob, &piece)?));
        Ok(())
    }

    /// Adds a snapshot that is in the repository, by its name and object.
    pub(super) fn keep_snapshot(&mut self, name: Vec<u8>, piece: GitId) {
        self.snapshots.push((name, piece));
    }

    /// Adds the next manifest.
    pub(crate) fn add_manifest(
        &mut self,
        pack: &mut PackWriter,
        manifest: &ManifestRecord<'_>,
    ) -> io::Result<()> {
        let number = self.manifests.len();
        self.manifests.push(manifest.node);
        let mut record = Vec::new();
        record.extend_from_slice(&manifest.node.0);
        record.extend_from_slice(&manifest.tree.0);
        write_relatives(&mut record, manifest.base, manifest.parents);
        write_number(&mut record, manifest.chain as usize);
        write_changes(&mut record, manifest.changes.iter().copied());
        self.lines.add(pack, || number_name(number), |piece| write_bytes(piece, &record))
    }

    /// Completes the segment. Changesets are in the order of their texts, copies in any.
    pub(crate) fn finish(
        mut self,
        pack: &mut PackWriter,
        changesets: &[(Node, GitId)],
        files: FileTables,
        copies: &mut [(Node, Vec<u8>)],
    ) -> io::Result<GitId> {
        let mut tables: Vec<(&[u8], Option<GitId>)> = Vec::new();
        tables.push((b"changesets", write_changesets(pack, changesets)?));
        let commits = changesets.iter().map(|(_, commit)| &commit.0);
        tables.push((b"commits", write_index(pack, commits)?));
        copies.sort_unstable_by_key(|(node, _)| *node);
        let mut pieces = RecordPieces::new();
        for (node, metadata) in copies.iter() {
            pieces.add(
                pack,
                || hex(&node.0),
                |piece| {
                    piece.extend_from_slice(&node.0);
                    write_bytes(piece, metadata);
                },
            )?;
        }
        tables.push((b"copies", pieces.finish(pack)?));
        tables.push((b"files", files.files));
        tables.push((b"lines", self.lines.finish(pack)?));
        let manifests = self.manifests.iter().map(|node| &node.0);
        tables.push((b"manifests", write_index(pack, manifests)?));
        let nodes = changesets.iter().map(|(node, _)| &node.0);
        tables.push((b"nodes", write_index(pack, nodes)?));
        tables.push((b"parents", files.parents));
        self.snapshots.sort_unstable();
        self.snapshots.dedup();
        let snapshots = self.snapshots;
        let tree = if snapshots.is_empty() {
            None
        } else {
            Some(write_tree(pack, ObjectKind::Blob, snapshots)?)
        };
        tables.push((b"snapshots", tree));
        tables.push((b"texts", self.texts.finish(pack)?));
        let entries = tables
            .into_iter()
            .filter_map(|(name, id)| Some((name.to_vec(), ObjectKind::Tree, id?)));
        append(pack, ObjectKind::Tree, &tree_content(entries))
    }
}

/// Reads the texts of a segment that is being written, one after the other.
pub(crate) struct ChangesetTextReader {
    pieces: Vec<GitId>,
    next: usize,
    piece: Vec<u8>,
    position: usize,
    /// The piece that is not in the pack yet.
    last: Vec<u8>,
}

impl ChangesetTextReader {
    /// Returns the next text; `None` at the end.
    pub(crate) fn next(&mut self, pack: &mut PackWriter) -> io::Result<Option<&[u8]>> {
        if self.position == self.piece.len() {
            self.position = 0;
            self.piece = match self.pieces.get(self.next) {
                Some(id) => decompress_piece(pack, id)?,
                None => std::mem::take(&mut self.last),
            };
            self.next += 1;
        }
        let rest = self.piece.get(self.position..).unwrap_or_default();
        let mut reader = RecordReader { rest };
        let before = reader.rest.len();
        let Some(text) = reader.bytes() else { return Ok(None) };
        self.position += before - reader.rest.len();
        Ok(Some(text))
    }
}

fn decompress_piece(pack: &mut PackWriter, id: &GitId) -> io::Result<Vec<u8>> {
    let piece = pack.read(id)?.unwrap_or_default();
    zstd::bulk::decompress(&piece, MAX_PIECE_BYTES)
}

/// Writes changed lines, sorted by path.
fn write_changes<'c>(out: &mut Vec<u8>, changes: impl ExactSizeIterator<Item = ChangedLine<'c>>) {
    write_number(out, changes.len());
    let mut previous: &[u8] = &[];
    for (path, file) in changes {
        let shared = previous.iter().zip(path).take_while(|(a, b)| a == b).count();
        write_number(out, shared);
        write_bytes(out, path.get(shared..).unwrap_or_default());
        match file {
            None => out.push(0),
            Some((node, flag)) => {
                out.push(flag as u8 + 1);
                out.extend_from_slice(&node.0);
            }
        }
        previous = path;
    }
}

/// Returns whether all lines of a manifest should be written: so many changes lead to it from one
/// with all lines, and so many bytes its text has.
pub(crate) fn is_snapshot_due(chain: u32, text_bytes: usize) -> bool {
    chain as usize > MAX_CHAIN_RATIO * (text_bytes / LINE_BYTES + 100)
}

/// Writes all lines of a manifest; `None` if one of them is not of a file.
pub(crate) fn encode_snapshot(text: &ManifestText) -> Option<Vec<u8>> {
    let lines: Option<Vec<ManifestLine<'_>>> = text.lines().map(ManifestLine::parse).collect();
    let mut snapshot = Vec::new();
    let lines = lines?;
    let lines = lines.iter().map(|line| (line.path, Some((line.file, line.flag))));
    write_changes(&mut snapshot, lines);
    Some(snapshot)
}

/// Writes the manifest that changes apply to, and the parents.
fn write_relatives(out: &mut Vec<u8>, base: Option<Node>, parents: [Node; 2]) {
    let kind = |parent: &Node| match parent {
        parent if parent.is_null() => NO_PARENT,
        parent if Some(*parent) == base => BASE_PARENT,
        _ => OTHER_PARENT,
    };
    let [first, second] = parents.each_ref().map(kind);
    out.push(u8::from(base.is_some()) | first << 2 | second << 4);
    out.extend(base.iter().flat_map(|base| base.0));
    let others = parents.iter().filter(|parent| kind(parent) == OTHER_PARENT);
    out.extend(others.flat_map(|parent| parent.0));
}

/// Writes changesets and their commits. Pieces are named by the number of their first row.
fn write_changesets(
    pack: &mut PackWriter,
    changesets: &[(Node, GitId)],
) -> io::Result<Option<GitId>> {
    const ROWS: usize = ROW_PIECE_BYTES / PAIR_BYTES;
    let mut pieces = Vec::new();
    for (number, rows) in changesets.chunks(ROWS).enumerate() {
        let piece: Vec<u8> = rows.iter().flat_map(|(node, commit)| pair(node, commit)).collect();
        pieces.push((number_name(number * ROWS), append(pack, ObjectKind::Blob, &piece)?));
    }
    if pieces.is_empty() { Ok(None) } else { write_tree(pack, ObjectKind::Blob, pieces).map(Some) }
}

/// Writes the index of ids: the first bytes of each, and its number. Rows with the same first bytes
/// are in one piece.
fn write_index<'i>(
    pack: &mut PackWriter,
    ids: impl Iterator<Item = &'i [u8; 20]>,
) -> io::Result<Option<GitId>> {
    let mut rows: Vec<[u8; INDEX_ROW_BYTES]> = ids
        .enumerate()
        .map(|(number, id)| {
            let number = (number as u32).to_be_bytes();
            [id[0], id[1], id[2], id[3], number[0], number[1], number[2], number[3]]
        })
        .collect();
    rows.sort_unstable();
    let mut pieces: Vec<(Vec<u8>, GitId)> = Vec::new();
    let mut rest = rows.as_slice();
    while let Some(first) = rest.first() {
        let mut count = (ROW_PIECE_BYTES / INDEX_ROW_BYTES).min(rest.len());
        let prefix = rest.get(count - 1).map(|row| &row[..4]);
        count += rest.iter().skip(count).take_while(|row| Some(&row[..4]) == prefix).count();
        let (piece, after) = rest.split_at(count);
        pieces.push((hex(first), append(pack, ObjectKind::Blob, piece.as_flattened())?));
        rest = after;
    }
    if pieces.is_empty() { Ok(None) } else { write_tree(pack, ObjectKind::Blob, pieces).map(Some) }
}
