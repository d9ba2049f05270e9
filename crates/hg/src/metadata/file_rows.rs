//! The file revisions of a segment: their blobs and their parents.
//!
//! The rows of the table `files` are sorted by node, [`FILE_ROWS`] in each piece. Each piece has
//! one in `parents` with the same name and an entry for each row: a number, and nodes.
//!
//! | number | parents |
//! |---|---|
//! | 0 | not known: git-cinnabar does not keep them |
//! | 1 + 2 x *p1* | only the first parent, *p1* |
//! | 2 + 2 x *p1* | the first parent, *p1*; the number of the second one follows |
//!
//! A parent has the number 0 if it is none, 1 if its node follows, and else two more than its row.

use super::own_objects::{append, write_tree};
use super::record::{FILE_ROWS, LEVEL, PAIR_BYTES, RowParent, pair};
use super::table::hex;
use crate::git::object::ObjectKind;
use crate::git::pack_writer::PackWriter;
use crate::object_id::{GitId, Node};
use crate::varint::write_number;
use std::io;

/// No parent, in place of the number of a row.
pub(crate) const NO_ROW: u32 = u32::MAX;
/// Parents that are not known.
pub(crate) const UNKNOWN_PARENTS: [u32; 2] = [u32::MAX - 1; 2];

/// The trees of the tables `files` and `parents`.
#[derive(Clone, Copy, Default)]
pub(crate) struct FileTables {
    pub(super) files: Option<GitId>,
    pub(super) parents: Option<GitId>,
}

/// Writes rows in the order of their nodes.
#[derive(Default)]
pub(super) struct FileRowWriter {
    files: Vec<(Vec<u8>, GitId)>,
    parents: Vec<(Vec<u8>, GitId)>,
    rows: Vec<u8>,
    entries: Vec<u8>,
}

impl FileRowWriter {
    /// Adds the next row. `parents`: `None` if they are not known.
    pub(super) fn add(
        &mut self,
        pack: &mut PackWriter,
        (node, blob): (&Node, &GitId),
        parents: Option<[RowParent; 2]>,
    ) -> io::Result<()> {
        self.rows.extend_from_slice(&pair(node, blob));
        match parents {
            None => write_number(&mut self.entries, 0),
            Some([first, second]) => {
                let has_second = second != RowParent::None;
                let number = 1 + 2 * parent_number(first) + usize::from(has_second);
                write_number(&mut self.entries, number);
                self.write_node(first);
                if has_second {
                    write_number(&mut self.entries, parent_number(second));
                    self.write_node(second);
                }
            }
        }
        if self.rows.len() == FILE_ROWS * PAIR_BYTES { self.end_piece(pack) } else { Ok(()) }
    }

    fn write_node(&mut self, parent: RowParent) {
        if let RowParent::Node(node) = parent {
            self.entries.extend_from_slice(&node.0);
        }
    }

    fn end_piece(&mut self, pack: &mut PackWriter) -> io::Result<()> {
        let Some(first) = self.rows.get(..20) else { return Ok(()) };
        let name = hex(first);
        self.files.push((name.clone(), append(pack, ObjectKind::Blob, &self.rows)?));
        let entries = zstd::bulk::compress(&self.entries, LEVEL)?;
        self.parents.push((name, append(pack, ObjectKind::Blob, &entries)?));
        self.rows.clear();
        self.entries.clear();
        Ok(())
    }

    /// Completes the tables.
    pub(super) fn finish(mut self, pack: &mut PackWriter) -> io::Result<FileTables> {
        self.end_piece(pack)?;
        if self.files.is_empty() {
            return Ok(FileTables::default());
        }
        let files = Some(write_tree(pack, ObjectKind::Blob, self.files)?);
        Ok(FileTables { files, parents: Some(write_tree(pack, ObjectKind::Blob, self.parents)?) })
    }
}

fn parent_number(parent: RowParent) -> usize {
    match parent {
        RowParent::None => 0,
        RowParent::Node(_) => 1,
        RowParent::Row(row) => row as usize + 2,
    }
}

/// The file revisions of a conversion, by number: first those that manifests name, then others. One
/// without a blob is none of this conversion, but may be a parent.
pub(crate) struct FileRows<'n> {
    named: &'n [Node],
    others: Vec<Node>,
    blobs: Vec<GitId>,
    /// Numbers, or [`NO_ROW`]; [`UNKNOWN_PARENTS`].
    parents: Vec<[u32; 2]>,
}

impl<'n> FileRows<'n> {
    /// Begins with revisions that have no blobs yet.
    pub(crate) fn new(named: &'n [Node]) -> FileRows<'n> {
        let blobs = vec![GitId::NULL; named.len()];
        let parents = vec![[NO_ROW; 2]; named.len()];
        FileRows { named, others: Vec::new(), blobs, parents }
    }

    /// Sets the blob and the parents of a revision.
    pub(crate) fn set(&mut self, number: u32, blob: GitId, parents: [u32; 2]) {
        let number = number as usize;
        if let (Some(own_blob), Some(own_parents)) =
            (self.blobs.get_mut(number), self.parents.get_mut(number))
        {
            (*own_blob, *own_parents) = (blob, parents);
        }
    }

    /// Adds a revision, and returns its number.
    pub(crate) fn push(&mut self, node: Node, blob: GitId, parents: [u32; 2]) -> u32 {
        self.others.push(node);
        self.blobs.push(blob);
        self.parents.push(parents);
        self.blobs.len() as u32 - 1
    }

    /// Returns the blob of a revision, if it has one.
    pub(crate) fn blob(&self, number: u32) -> Option<GitId> {
        self.blobs.get(number as usize).copied().filter(|blob| !blob.is_null())
    }

    fn node(&self, number: u32) -> Node {
        let number = number as usize;
        let other = || self.others.get(number - self.named.len());
        self.named.get(number).or_else(other).copied().unwrap_or(Node::NULL)
    }

    /// Writes the tables.
    pub(crate) fn write(&self, pack: &mut PackWriter) -> io::Result<FileTables> {
        let mut order: Vec<u32> = (0..self.blobs.len() as u32).collect();
        order.retain(|number| self.blob(*number).is_some());
        order.sort_unstable_by_key(|number| self.node(*number));
        order.dedup_by_key(|number| self.node(*number));
        let mut rows = vec![NO_ROW; self.blobs.len()];
        for (row, number) in (0..).zip(&order) {
            if let Some(place) = rows.get_mut(*number as usize) {
                *place = row;
            }
        }
        let row_parent = |number: u32| {
            if number == NO_ROW {
                return RowParent::None;
            }
            match rows.get(number as usize) {
                Some(row) if *row != NO_ROW => RowParent::Row(*row),
                _ => {
                    let node = self.node(number);
                    let found = order.binary_search_by_key(&node, |number| self.node(*number));
                    found.map_or(RowParent::Node(node), |row| RowParent::Row(row as u32))
                }
            }
        };
        let mut writer = FileRowWriter::default();
        for number in &order {
            let parents = self.parents.get(*number as usize).copied().unwrap_or(UNKNOWN_PARENTS);
            let parents = (parents != UNKNOWN_PARENTS).then(|| parents.map(row_parent));
            let blob = self.blob(*number).unwrap_or(GitId::NULL);
            writer.add(pack, (&self.node(*number), &blob), parents)?;
        }
        writer.finish(pack)
    }
}
