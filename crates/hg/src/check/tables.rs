//! The tables of all segments, loaded and compared with each other.

use super::ConversionCheck;
use crate::file_conversion::{EMPTY_FILE, blob_of_empty_file};
use crate::git::repository::GitDirectory;
use crate::metadata::segment_scan::{
    PieceName, SegmentScan, SegmentTable, index_rows, pair_rows, parent_entries, read_piece,
};
use crate::metadata::{
    Metadata, MetadataError, RecordReader, RowParent, StoredBase, StoredManifest,
};
use crate::object_id::{GitId, IdMap, Node};
use crate::path_text::path_text;

/// No number.
pub(super) const NONE: u32 = u32::MAX;
/// The parents of a file revision that are not known.
pub(super) const UNKNOWN: [u32; 2] = [u32::MAX - 1; 2];

/// A manifest without its lines.
pub(super) struct LoadedManifest {
    pub(super) node: Node,
    pub(super) tree: GitId,
    /// The number of the manifest that its changes apply to, or [`NONE`].
    pub(super) base: u32,
    /// The numbers of its parents, or [`NONE`]: also of those that are not there, because no
    /// changeset has them.
    pub(super) parents: [u32; 2],
}

/// The tables of all segments, oldest first.
#[derive(Default)]
pub(super) struct LoadedTables {
    pub(super) segments: Vec<SegmentScan>,
    /// The number of the first changeset of each segment.
    pub(super) starts: Vec<usize>,
    pub(super) changesets: Vec<(Node, GitId)>,
    pub(super) changeset_numbers: IdMap<Node, u32>,
    pub(super) commit_numbers: IdMap<GitId, u32>,
    pub(super) manifests: Vec<LoadedManifest>,
    /// The numbers of manifests, where they are for the first time.
    pub(super) manifest_numbers: IdMap<Node, u32>,
    /// The numbers of manifests, where they are for the last time so far. A later fetch may bring a
    /// manifest again; the manifests after it are changes of the newer copy.
    newest_numbers: IdMap<Node, u32>,
    /// Sorted by node.
    pub(super) files: Vec<(Node, GitId)>,
    /// The numbers of the parents of file revisions, or [`NONE`]; [`UNKNOWN`].
    pub(super) parents: Vec<[u32; 2]>,
    pub(super) copies: IdMap<Node, Vec<u8>>,
    pub(super) snapshots: IdMap<Node, GitId>,
}

/// The state of a manifest in the search for those that are made from themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseState {
    Unknown,
    OnPath,
    Checked,
}

impl LoadedTables {
    /// Reads all tables but the texts.
    pub(super) fn read(
        repository: &mut GitDirectory,
        metadata: &Metadata,
        report: &mut ConversionCheck,
    ) -> Result<LoadedTables, MetadataError> {
        let mut tables = LoadedTables::default();
        tables.files.extend(blob_of_empty_file(&EMPTY_FILE).map(|blob| (EMPTY_FILE, blob)));
        for id in metadata.segment_ids() {
            let opened = SegmentScan::open(repository, id);
            let Some(segment) = report.absorb(opened)? else { continue };
            tables.starts.push(tables.changesets.len());
            tables.segments.push(segment);
        }
        for number in 0..tables.segments.len() {
            tables.read_files(repository, number, report)?;
        }
        tables.files.sort_unstable();
        tables.files.dedup();
        tables.parents = vec![UNKNOWN; tables.files.len()];
        if let Some(empty) = tables.file_number(&EMPTY_FILE)
            && let Some(parents) = tables.parents.get_mut(empty as usize)
        {
            *parents = [NONE; 2];
        }
        for number in 0..tables.segments.len() {
            tables.read_parents(repository, number, report)?;
        }
        for pair in tables.files.windows(2) {
            if let [(node, _), (other, _)] = pair
                && node == other
            {
                report.add(format_args!("file revision {node}"), "it has two blobs");
            }
        }
        for number in 0..tables.segments.len() {
            if let Some(start) = tables.starts.get_mut(number) {
                *start = tables.changesets.len();
            }
            tables.read_changesets(repository, number, report)?;
            tables.read_manifests(repository, number, report)?;
            tables.read_snapshots(repository, number, report)?;
        }
        tables.check_manifest_bases(report);
        Ok(tables)
    }

    /// Reports manifests that are made from themselves. Of manifests with several records, readers
    /// take the newest one.
    fn check_manifest_bases(&self, report: &mut ConversionCheck) {
        let mut states = vec![BaseState::Unknown; self.manifests.len()];
        for start in self.newest_numbers.values().map(|number| *number as usize) {
            let (mut next, mut path) = (Some(start), Vec::new());
            while let Some(number) = next
                && let Some(manifest) = self.manifests.get(number)
                && let Some(state) = states.get_mut(number)
            {
                if *state == BaseState::OnPath {
                    report
                        .add(format_args!("manifest {}", manifest.node), "it is made from itself");
                }
                if *state != BaseState::Unknown {
                    break;
                }
                *state = BaseState::OnPath;
                path.push(number);
                let is_complete = self.snapshots.contains_key(&manifest.node);
                let base = self.manifests.get(manifest.base as usize).filter(|_| !is_complete);
                next = base
                    .and_then(|base| self.newest_numbers.get(&base.node))
                    .map(|number| *number as usize);
            }
            for number in path {
                if let Some(state) = states.get_mut(number) {
                    *state = BaseState::Checked;
                }
            }
        }
    }

    /// Returns the parents of a file revision; `None` if they are not known.
    pub(super) fn known_parents(&self, file: u32) -> Option<[u32; 2]> {
        self.parents.get(file as usize).copied().filter(|parents| *parents != UNKNOWN)
    }

    /// Returns the number of file revisions whose parents are not known.
    pub(super) fn count_without_parents(&self) -> usize {
        self.parents.iter().filter(|parents| **parents == UNKNOWN).count()
    }

    /// Returns the number of the blob of a file revision in `files`.
    pub(super) fn file_number(&self, node: &Node) -> Option<u32> {
        let found = self.files.binary_search_by_key(node, |(node, _)| *node);
        found.ok().map(|number| number as u32)
    }

    pub(super) fn blob(&self, node: &Node) -> Option<GitId> {
        let number = self.file_number(node)?;
        self.files.get(number as usize).map(|(_, blob)| *blob)
    }

    /// Reads the pieces of a table. A piece that cannot be read is a fault, and ends the table.
    fn read_table(
        &self,
        repository: &mut GitDirectory,
        segment: usize,
        table: SegmentTable,
        report: &mut ConversionCheck,
    ) -> Result<Vec<(PieceName, Vec<u8>)>, MetadataError> {
        let Some(scan) = self.segments.get(segment) else { return Ok(Vec::new()) };
        let listed = scan.pieces(repository, table);
        let mut pieces = Vec::new();
        for name in report.absorb(listed)?.unwrap_or_default() {
            let read = read_piece(repository, table, name.id);
            let Some(piece) = report.absorb(read)? else { break };
            pieces.push((name, piece));
        }
        Ok(pieces)
    }

    fn read_changesets(
        &mut self,
        repository: &mut GitDirectory,
        segment: usize,
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let start = self.changesets.len();
        for (name, piece) in
            self.read_table(repository, segment, SegmentTable::Changesets, report)?
        {
            let is_named = name.is_of(&((self.changesets.len() - start) as u32).to_be_bytes());
            let rows = pair_rows(&piece).filter(|_| is_named);
            let Some(rows) = rows else {
                report_piece(report, name.id);
                break;
            };
            for (node, commit) in rows {
                let number = self.changesets.len() as u32;
                let subject = format_args!("changeset {node}");
                if self.changeset_numbers.insert(node, number).is_some() {
                    report.add(subject, "it is listed twice");
                }
                if self.commit_numbers.insert(commit, number).is_some() {
                    report.add(subject, format_args!("its commit {commit} is that of another one"));
                }
                self.changesets.push((node, commit));
            }
        }
        let rows = self.changesets.get(start..).unwrap_or_default();
        let nodes: Vec<[u8; 20]> = rows.iter().map(|(node, _)| node.0).collect();
        let commits: Vec<[u8; 20]> = rows.iter().map(|(_, commit)| commit.0).collect();
        self.check_index(repository, segment, SegmentTable::Nodes, &nodes, report)?;
        self.check_index(repository, segment, SegmentTable::Commits, &commits, report)
    }

    /// Compares an index with the ids in the order of their numbers.
    fn check_index(
        &self,
        repository: &mut GitDirectory,
        segment: usize,
        table: SegmentTable,
        ids: &[[u8; 20]],
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let mut last = None;
        let mut count = 0;
        for (name, piece) in self.read_table(repository, segment, table, report)? {
            let is_named = piece.first_chunk::<8>().is_some_and(|row| name.is_of(row));
            let rows = index_rows(&piece).filter(|_| is_named);
            let rows = rows.unwrap_or_default();
            // Rows with the same prefix are in one piece.
            let is_apart = match (rows.first(), last) {
                (Some((first, _)), Some((before, _))) => *first > before,
                (first, _) => first.is_some(),
            };
            let are_right = is_apart
                && rows.iter().all(|row| {
                    let (prefix, number) = *row;
                    let is_next = last.is_none_or(|last| last < *row);
                    last = Some(*row);
                    let id = ids.get(number as usize);
                    is_next && id.is_some_and(|id| id.starts_with(&prefix))
                });
            if !are_right {
                report_piece(report, name.id);
            }
            count += rows.len();
        }
        if count != ids.len() {
            let what = format_args!(
                "the table {} has {count} rows instead of {}",
                table.name(),
                ids.len()
            );
            report_segment(report, self.segments.get(segment), what);
        }
        Ok(())
    }

    fn read_manifests(
        &mut self,
        repository: &mut GitDirectory,
        segment: usize,
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let start = self.manifests.len();
        let scan = self.segments.get(segment);
        let pieces = match scan.map(|scan| scan.pieces(repository, SegmentTable::Lines)) {
            Some(listed) => report.absorb(listed)?.unwrap_or_default(),
            None => Vec::new(),
        };
        for name in pieces {
            let first = self.manifests.len() - start;
            let records = read_manifest_piece(repository, &name, first);
            let Some(records) = report.absorb(records)? else { break };
            for manifest in records {
                self.add_manifest(&manifest, report);
            }
        }
        let manifests = self.manifests.get(start..).unwrap_or_default();
        let nodes: Vec<[u8; 20]> = manifests.iter().map(|manifest| manifest.node.0).collect();
        self.check_index(repository, segment, SegmentTable::Manifests, &nodes, report)
    }

    fn add_manifest(&mut self, manifest: &StoredManifest, report: &mut ConversionCheck) {
        let StoredManifest { node, tree, base, parents, changes, .. } = manifest;
        let subject = format_args!("manifest {node}");
        let base = match base {
            StoredBase::Empty => NONE,
            StoredBase::Node(base) => match self.newest_numbers.get(base) {
                Some(number) => *number,
                None => {
                    report.add(subject, format_args!("its base {base} is missing"));
                    NONE
                }
            },
        };
        for (path, file) in changes {
            if let Some((file, _)) = file
                && self.file_number(file).is_none()
            {
                let path = path_text(path);
                report.add(subject, format_args!("{path}, revision {file}, has no blob"));
            }
        }
        let parents =
            parents.map(|parent| self.newest_numbers.get(&parent).copied().unwrap_or(NONE));
        let number = self.manifests.len() as u32;
        self.manifest_numbers.entry(*node).or_insert(number);
        self.newest_numbers.insert(*node, number);
        self.manifests.push(LoadedManifest { node: *node, tree: *tree, base, parents });
    }

    fn read_snapshots(
        &mut self,
        repository: &mut GitDirectory,
        segment: usize,
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let scan = self.segments.get(segment);
        let pieces = match scan.map(|scan| scan.pieces(repository, SegmentTable::Snapshots)) {
            Some(listed) => report.absorb(listed)?.unwrap_or_default(),
            None => Vec::new(),
        };
        for PieceName { name, id } in pieces {
            let node = Node::from_hex(&name);
            match node.filter(|node| self.manifest_numbers.contains_key(node)) {
                Some(node) => drop(self.snapshots.insert(node, id)),
                None => report_piece(report, id),
            }
        }
        Ok(())
    }

    fn read_files(
        &mut self,
        repository: &mut GitDirectory,
        segment: usize,
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let mut last = Node::NULL;
        for (name, piece) in self.read_table(repository, segment, SegmentTable::Files, report)? {
            let rows = pair_rows(&piece).unwrap_or_default();
            let is_named = rows.first().is_some_and(|(node, _)| name.is_of(&node.0));
            let is_sorted = rows.is_sorted_by_key(|(node, _)| *node)
                && rows.first().is_some_and(|(node, _)| *node >= last);
            if !is_named || !is_sorted {
                report_piece(report, name.id);
            }
            last = rows.last().map_or(last, |(node, _)| *node);
            self.files.extend(rows);
        }
        let mut last = Node::NULL;
        for (name, piece) in self.read_table(repository, segment, SegmentTable::Copies, report)? {
            let mut reader = RecordReader { rest: &piece };
            let mut is_first = true;
            while !reader.rest.is_empty() {
                let record = reader.id().and_then(|node| Some((Node(node), reader.bytes()?)));
                let Some((node, metadata)) = record.filter(|(node, _)| *node >= last) else {
                    report_piece(report, name.id);
                    break;
                };
                if is_first && !name.is_of(&node.0) {
                    report_piece(report, name.id);
                }
                (is_first, last) = (false, node);
                let before = self.copies.insert(node, metadata.to_vec());
                if before.is_some_and(|before| before != metadata) {
                    report.add(format_args!("file revision {node}"), "it has two metadata");
                }
            }
        }
        Ok(())
    }

    /// Reads the parents of the file revisions of a segment.
    fn read_parents(
        &mut self,
        repository: &mut GitDirectory,
        segment: usize,
        report: &mut ConversionCheck,
    ) -> Result<(), MetadataError> {
        let files = self.read_table(repository, segment, SegmentTable::Files, report)?;
        let parents = self.read_table(repository, segment, SegmentTable::Parents, report)?;
        let names = |pieces: &[(PieceName, Vec<u8>)]| -> Vec<Vec<u8>> {
            pieces.iter().map(|(piece, _)| piece.name.clone()).collect()
        };
        if names(&files) != names(&parents) {
            let what = "the tables files and parents do not have the same pieces";
            report_segment(report, self.segments.get(segment), what);
            return Ok(());
        }
        let rows = files.iter().filter_map(|(_, piece)| pair_rows(piece)).flatten();
        let rows: Vec<Node> = rows.map(|(node, _)| node).collect();
        let mut nodes = rows.iter();
        for ((_, files), (name, piece)) in files.iter().zip(&parents) {
            let count = pair_rows(files).map_or(0, |rows| rows.len());
            let entries = parent_entries(piece).filter(|entries| entries.len() == count);
            let Some(entries) = entries else {
                report_piece(report, name.id);
                return Ok(());
            };
            for (entry, node) in entries.into_iter().zip(nodes.by_ref()) {
                if let Some(entry) = entry {
                    self.set_parents(node, entry, &rows, report);
                }
            }
        }
        Ok(())
    }

    fn set_parents(
        &mut self,
        node: &Node,
        entry: [RowParent; 2],
        rows: &[Node],
        report: &mut ConversionCheck,
    ) {
        let parents = entry.map(|parent| {
            let parent = match parent {
                RowParent::None => return NONE,
                RowParent::Node(parent) => Some(parent),
                RowParent::Row(row) => rows.get(row as usize).copied(),
            };
            parent.and_then(|parent| self.file_number(&parent)).unwrap_or_else(|| {
                let what = match parent {
                    Some(parent) => format!("its parent {parent} is missing"),
                    None => "its parent is none of the segment's rows".to_string(),
                };
                report.add(format_args!("file revision {node}"), what);
                NONE
            })
        });
        let place = self.file_number(node);
        if let Some(place) = place.and_then(|number| self.parents.get_mut(number as usize)) {
            *place = parents;
        }
    }

    /// Passes on all manifests, in the order of their numbers.
    pub(super) fn each_manifest(
        &self,
        repository: &mut GitDirectory,
        mut each: impl FnMut(u32, StoredManifest) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        let mut number = 0;
        for segment in &self.segments {
            let start = number;
            for name in segment.pieces(repository, SegmentTable::Lines)? {
                let first = (number - start) as usize;
                for manifest in read_manifest_piece(repository, &name, first)? {
                    each(number, manifest)?;
                    number += 1;
                }
            }
        }
        Ok(())
    }
}

/// Reads a piece of manifests, the first one of which has a number.
fn read_manifest_piece(
    repository: &mut GitDirectory,
    name: &PieceName,
    first: usize,
) -> Result<Vec<StoredManifest>, MetadataError> {
    let piece = read_piece(repository, SegmentTable::Lines, name.id)?;
    let mut reader = RecordReader { rest: &piece };
    let mut manifests = Vec::new();
    let damaged = || MetadataError::Damaged(name.id);
    if !name.is_of(&(first as u32).to_be_bytes()) {
        return Err(damaged());
    }
    while !reader.rest.is_empty() {
        let mut record = RecordReader { rest: reader.bytes().ok_or_else(damaged)? };
        let manifest = record.manifest().filter(|manifest| {
            let is_sorted = manifest.changes.is_sorted_by(|(path, _), (next, _)| path < next);
            is_sorted && record.rest.is_empty()
        });
        manifests.push(manifest.ok_or_else(damaged)?);
    }
    Ok(manifests)
}

fn report_piece(report: &mut ConversionCheck, id: GitId) {
    report.add("metadata", MetadataError::Damaged(id));
}

pub(super) fn report_segment(
    report: &mut ConversionCheck,
    segment: Option<&SegmentScan>,
    what: impl std::fmt::Display,
) {
    let id = segment.map_or(GitId::NULL, |segment| segment.id);
    report.add(format_args!("segment {id}"), what);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fetch may have stored a manifest again, made from one that is made from it.
    #[test]
    fn a_manifest_that_is_made_from_itself_is_a_fault() {
        let node = |digit: u8| Node([digit; 20]);
        let mut tables = LoadedTables::default();
        let add = |tables: &mut LoadedTables, digit: u8, base: Option<u8>| {
            let base = base.map_or(NONE, |base| tables.newest_numbers[&node(base)]);
            let number = tables.manifests.len() as u32;
            tables.newest_numbers.insert(node(digit), number);
            let (node, tree, parents) = (node(digit), GitId::NULL, [NONE; 2]);
            tables.manifests.push(LoadedManifest { node, tree, base, parents });
        };
        for (digit, base) in [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(3))] {
            add(&mut tables, digit, base);
        }
        let faults = |tables: &LoadedTables| {
            let mut report = ConversionCheck::default();
            tables.check_manifest_bases(&mut report);
            report.fault_count
        };
        assert_eq!(faults(&tables), 0);
        add(&mut tables, 2, Some(4));
        assert_eq!(faults(&tables), 1);
        tables.snapshots.insert(node(3), GitId::NULL);
        assert_eq!(faults(&tables), 0, "the text of a manifest in the cycle is stored");
    }
}
