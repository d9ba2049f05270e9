//! Merging the tables `files` and `parents` of several segments.
//!
//! The rows of all segments are read twice in the order of their nodes: once to number them, and
//! once to write them with their parents, which are named by these numbers.

use super::file_rows::{FileRowWriter, FileTables};
use super::record::RowParent;
use super::segment::MetadataError;
use super::segment_scan::{
    PieceName, SegmentScan, SegmentTable, pair_rows, parent_entries, read_piece,
};
use crate::git::pack_writer::PackWriter;
use crate::git::repository::GitDirectory;
use crate::object_id::{GitId, Node};

/// Writes the tables with the rows of all segments; one that several have is written once.
pub(super) fn merge_files(
    repository: &mut GitDirectory,
    pack: &mut PackWriter,
    segments: &[SegmentScan],
) -> Result<FileTables, MetadataError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); segments.len()];
    each_revision(repository, segments, |rows| {
        for row in rows {
            if let Some(numbers) = numbers.get_mut(row.segment) {
                numbers.push(nodes.len() as u32);
            }
        }
        nodes.extend(rows.first().map(|row| row.node));
        Ok(())
    })?;
    let renumber = |segment: usize, parent: RowParent| match parent {
        RowParent::None => Some(RowParent::None),
        RowParent::Row(row) => {
            let number = numbers.get(segment).and_then(|numbers| numbers.get(row as usize));
            number.map(|number| RowParent::Row(*number))
        }
        RowParent::Node(node) => Some(match nodes.binary_search(&node) {
            Ok(number) => RowParent::Row(number as u32),
            Err(_) => RowParent::Node(node),
        }),
    };
    let mut writer = FileRowWriter::default();
    each_revision(repository, segments, |rows| {
        let Some(first) = rows.first() else { return Ok(()) };
        let known = rows.iter().find_map(|row| Some((row, row.parents?)));
        let parents = match known {
            None => None,
            Some((row, [p1, p2])) => {
                let id = segments.get(row.segment).map_or(GitId::NULL, |segment| segment.id);
                let damaged = || MetadataError::Damaged(id);
                let p1 = renumber(row.segment, p1).ok_or_else(damaged)?;
                Some([p1, renumber(row.segment, p2).ok_or_else(damaged)?])
            }
        };
        Ok(writer.add(pack, (&first.node, &first.blob), parents)?)
    })?;
    Ok(writer.finish(pack)?)
}

/// A row of `files` with its entry of `parents`.
struct FileRow {
    segment: usize,
    node: Node,
    blob: GitId,
    parents: Option<[RowParent; 2]>,
}

/// Passes on the rows of all segments in the order of their nodes: those with the same node at
/// once.
fn each_revision(
    repository: &mut GitDirectory,
    segments: &[SegmentScan],
    mut each: impl FnMut(&[FileRow]) -> Result<(), MetadataError>,
) -> Result<(), MetadataError> {
    let mut cursors = Vec::with_capacity(segments.len());
    for segment in segments {
        cursors.push(FileCursor::open(repository, segment)?);
    }
    let mut rows: Vec<FileRow> = Vec::new();
    while let Some(node) = cursors.iter().filter_map(FileCursor::node).min() {
        rows.clear();
        for (segment, cursor) in cursors.iter_mut().enumerate() {
            while cursor.node() == Some(node) {
                let Some((node, blob, parents)) = cursor.next(repository)? else { break };
                rows.push(FileRow { segment, node, blob, parents });
            }
        }
        each(&rows)?;
    }
    Ok(())
}

/// A row as a segment has it.
type CursorRow = (Node, GitId, Option<[RowParent; 2]>);

/// The rows of one segment, of which one piece is in memory.
struct FileCursor {
    files: std::vec::IntoIter<PieceName>,
    parents: std::vec::IntoIter<PieceName>,
    rows: std::vec::IntoIter<CursorRow>,
}

impl FileCursor {
    fn open(
        repository: &mut GitDirectory,
        segment: &SegmentScan,
    ) -> Result<FileCursor, MetadataError> {
        let files = segment.pieces(repository, SegmentTable::Files)?.into_iter();
        let parents = segment.pieces(repository, SegmentTable::Parents)?.into_iter();
        let rows = Vec::new().into_iter();
        let mut cursor = FileCursor { files, parents, rows };
        cursor.read_piece(repository)?;
        Ok(cursor)
    }

    fn node(&self) -> Option<Node> {
        self.rows.as_slice().first().map(|(node, ..)| *node)
    }

    /// Returns the next row, and reads the next piece if it was the last one.
    fn next(&mut self, repository: &mut GitDirectory) -> Result<Option<CursorRow>, MetadataError> {
        let row = self.rows.next();
        if self.rows.as_slice().is_empty() {
            self.read_piece(repository)?;
        }
        Ok(row)
    }

    fn read_piece(&mut self, repository: &mut GitDirectory) -> Result<(), MetadataError> {
        let Some(name) = self.files.next() else { return Ok(()) };
        let damaged = || MetadataError::Damaged(name.id);
        let entries = self.parents.next().filter(|parents| parents.name == name.name);
        let rows = pair_rows(&read_piece(repository, SegmentTable::Files, name.id)?);
        let entries =
            read_piece(repository, SegmentTable::Parents, entries.ok_or_else(damaged)?.id)?;
        let entries = parent_entries(&entries).ok_or_else(damaged)?;
        let rows = rows.filter(|rows| rows.len() == entries.len()).ok_or_else(damaged)?;
        let rows = rows.into_iter().zip(entries);
        let rows: Vec<CursorRow> =
            rows.map(|((node, blob), parents)| (node, blob, parents)).collect();
        self.rows = rows.into_iter();
        Ok(())
    }
}
