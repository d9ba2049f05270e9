//! The metadata: the results of conversions that later ones look up.
//!
//! A later fetch needs the commit of each changeset, the text of each manifest, and the blob and
//! the metadata of each file revision; a push needs the texts of changesets and the parents of
//! manifests and file revisions, too. Those of a changeset are the changesets of its commit's
//! parents.
//!
//! All of it is in git objects under the ref [`METADATA_REF`], so that `git gc` keeps it and `git
//! fetch` can share it. The ref names a commit with two parents. The first one is the *history
//! commit*, which keeps the commits of changesets when no branch leads to them any more, so that
//! `git gc` does not delete what the metadata names: its parents are the commits without children,
//! and the history commit before. The second one is the metadata before, to which a rollback goes
//! back.
//!
//! The tree of the commit has
//!
//! * `format`: [`FORMAT`];
//! * `heads`: a line for each changeset without children: node, `o` or `c` (its branch is open or
//!   closed), name of the branch;
//! * `segments/NNNNNNNN`: what one conversion added, or several after a merge ([`segment`]).

mod file_merge;
mod file_rows;
mod own_objects;
mod record;
mod segment;
mod segment_merge;
pub(crate) mod segment_scan;
mod segment_writer;
mod state;
mod table;

pub(crate) use file_rows::{FileRows, NO_ROW, UNKNOWN_PARENTS};
pub(crate) use record::{RecordReader, RowParent, StoredBase, StoredManifest};
pub use segment::MetadataError;
pub(crate) use segment_writer::{
    ChangesetTextReader, ManifestRecord, MetadataWriter, encode_snapshot, is_snapshot_due,
};
pub use state::{
    BROKEN_REF, CHECKED_REF, StateChoice, mark_state, metadata_states, rollback, set_metadata_state,
};
pub(crate) use state::{WRITTEN_BRANCHES_FOLDER, WRITTEN_TAGS_FOLDER, current_state};

use crate::git::deflate::Deflater;
use crate::git::object::ObjectKind;
use crate::git::pack_writer::PackWriter;
use crate::git::repository::GitDirectory;
use crate::manifest::{ChangedFile, FileFlag, ManifestText};
use crate::object_id::{GitId, IdMap, Node};
use own_objects::{
    append, parent_of_commit, read_tree, tree_content, tree_of_commit, write_history_commit,
    write_own_commit, write_tree,
};
use segment::MetadataSegment;
use segment_merge::{choose_merge, merge_segments};
use segment_scan::{SegmentScan, SegmentTable, pair_rows, read_piece};
use std::collections::BTreeMap;

/// The ref of the metadata.
pub const METADATA_REF: &str = "refs/larder/hg/metadata";
/// The name of the format, which is read back literally.
const FORMAT: &[u8] = b"larder-hg 1\n";

/// How many ids git is asked about at once.
const IDS_AT_ONCE: usize = 1 << 14;

/// A changeset without children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadChangeset {
    /// The changeset.
    pub node: Node,
    /// Whether it closes its branch.
    pub is_closed: bool,
    /// The name of its branch.
    pub branch: Vec<u8>,
}

/// The metadata of a repository.
pub struct Metadata {
    commit: Option<GitId>,
    heads: Vec<HeadChangeset>,
    segments: Vec<MetadataSegment>,
    /// The segment that took the place of the newest ones, in a pack that is being written.
    merged: Option<GitId>,
}

/// The place of a changeset in the order of conversion: its segment, and its number there.
pub(crate) type ChangesetPlace = (usize, u32);

/// A file revision of an earlier conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) blob: GitId,
    pub(crate) metadata: Vec<u8>,
}

/// A revision of a manifest or a file as Mercurial has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeRevision {
    /// The parents in Mercurial's order, null for none; `None`: they are not known, because the
    /// metadata came from git-cinnabar.
    pub parents: Option<[Node; 2]>,
    /// The text, with the metadata of a file.
    pub text: Vec<u8>,
}

impl Metadata {
    /// Reads the metadata of a repository; a repository without any has empty ones.
    pub fn open(repository: &mut GitDirectory) -> Result<Metadata, MetadataError> {
        let commit = current_state(repository)?;
        Metadata::open_state(repository, commit)
    }

    /// Reads the metadata that a commit has.
    pub(crate) fn open_state(
        repository: &mut GitDirectory,
        commit: Option<GitId>,
    ) -> Result<Metadata, MetadataError> {
        let mut metadata =
            Metadata { commit: None, heads: Vec::new(), segments: Vec::new(), merged: None };
        let Some(commit) = commit else { return Ok(metadata) };
        metadata.commit = Some(commit);
        let content = repository.read_content(&commit)?;
        let tree = tree_of_commit(&content).ok_or(MetadataError::Damaged(commit))?;
        let entries = read_tree(repository, tree)?;
        let find = |name: &str| entries.iter().find(|(other, _)| other == name.as_bytes());
        let format = find("format").ok_or(MetadataError::Damaged(tree))?;
        if repository.read_content(&format.1)? != FORMAT {
            return Err(MetadataError::OtherFormat);
        }
        if let Some((_, id)) = find("heads") {
            let lines = repository.read_content(id)?;
            metadata.heads = parse_heads(&lines).ok_or(MetadataError::Damaged(*id))?;
        }
        if let Some((_, id)) = find("segments") {
            for (_, segment) in read_tree(repository, *id)? {
                metadata.segments.push(MetadataSegment::open(repository, segment)?);
            }
        }
        Ok(metadata)
    }

    /// The commit that the ref names.
    pub fn commit(&self) -> Option<GitId> {
        self.commit
    }

    /// The history commit of this state.
    pub(crate) fn history_commit(
        &self,
        repository: &mut GitDirectory,
    ) -> Result<Option<GitId>, MetadataError> {
        match self.commit {
            Some(commit) => Ok(parent_of_commit(repository, &commit, 0)?),
            None => Ok(None),
        }
    }

    /// The trees of the segments, oldest first.
    pub(crate) fn segment_ids(&self) -> Vec<GitId> {
        self.segments.iter().map(MetadataSegment::id).collect()
    }

    /// The changesets without children.
    pub fn heads(&self) -> &[HeadChangeset] {
        &self.heads
    }

    /// Returns whether nothing was converted yet.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the number of changesets.
    pub fn count_changesets(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<usize, MetadataError> {
        let mut count = 0;
        for segment in &mut self.segments {
            count += segment.count_changesets(repository)?;
        }
        Ok(count)
    }

    /// Returns the commit of a changeset.
    pub fn commit_of(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<GitId>, MetadataError> {
        Ok(self.place_of(repository, node)?.map(|(_, commit)| commit))
    }

    /// Returns the place of a changeset in the order of conversion, and its commit.
    pub(crate) fn place_of(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<(ChangesetPlace, GitId)>, MetadataError> {
        for (at, segment) in self.segments.iter_mut().enumerate().rev() {
            if let Some((number, commit)) = segment.find_changeset(repository, node)? {
                return Ok(Some(((at, number), commit)));
            }
        }
        Ok(None)
    }

    /// Returns the changesets whose nodes begin with these hexadecimal digits, at least one.
    pub fn find_by_prefix(
        &mut self,
        repository: &mut GitDirectory,
        digits: &str,
    ) -> Result<Vec<Node>, MetadataError> {
        let digits = digits.to_ascii_lowercase();
        let mut nodes = Vec::new();
        for segment in &mut self.segments {
            nodes.extend(segment.find_by_prefix(repository, &digits)?);
        }
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    /// Returns the changeset of a commit.
    pub fn changeset_of(
        &mut self,
        repository: &mut GitDirectory,
        commit: &GitId,
    ) -> Result<Option<Node>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some(node) = segment.find_commit(repository, commit)? {
                return Ok(Some(node));
            }
        }
        Ok(None)
    }

    /// Returns the text of a changeset.
    pub fn changeset_text(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<Vec<u8>>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some((ordinal, _)) = segment.find_changeset(repository, node)? {
                return segment.changeset_text(repository, ordinal).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the tree of a manifest.
    pub(crate) fn tree_of_manifest(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<GitId>, MetadataError> {
        Ok(self.find_manifest(repository, node)?.map(|record| record.tree))
    }

    /// Returns the number of changes between a manifest and the one whose lines are all there.
    pub(crate) fn chain_of_manifest(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<u32, MetadataError> {
        Ok(self.find_manifest(repository, node)?.map_or(0, |record| record.chain))
    }

    fn find_manifest(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<StoredManifest>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some(record) = segment.find_manifest(repository, node)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Makes the text of a manifest from its changes and those of the manifests it was made from.
    pub(crate) fn manifest_text(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<ManifestText>, MetadataError> {
        self.manifest_text_with(repository, node, &IdMap::default())
    }

    /// Makes the text of a manifest as [`Metadata::manifest_text`] does, but from the nearest of
    /// some known texts.
    pub(crate) fn manifest_text_with(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
        known: &IdMap<Node, ManifestText>,
    ) -> Result<Option<ManifestText>, MetadataError> {
        let mut changes = Vec::new();
        let mut seen: IdMap<Node, ()> = IdMap::default();
        let mut next = *node;
        let base_text = loop {
            if let Some(text) = known.get(&next) {
                break text.clone();
            }
            if seen.insert(next, ()).is_some() {
                return Err(MetadataError::CyclicManifest(next));
            }
            if let Some(snapshot) = self.find_snapshot(repository, &next)? {
                break ManifestText::default().with_changes(&snapshot);
            }
            let Some(record) = self.find_manifest(repository, &next)? else {
                return if next == *node {
                    Ok(None)
                } else {
                    Err(MetadataError::MissingManifest(next))
                };
            };
            changes.push(record.changes);
            match record.base {
                StoredBase::Empty => break ManifestText::default(),
                StoredBase::Node(base) => next = base,
            }
        };
        // The last change of each path counts.
        let last: BTreeMap<Vec<u8>, Option<(Node, FileFlag)>> =
            changes.into_iter().rev().flatten().collect();
        let last: Vec<ChangedFile> = last.into_iter().collect();
        Ok(Some(base_text.with_changes(&last)))
    }

    /// Returns the changes that lead from no lines to a manifest, those of each manifest apart.
    pub(crate) fn changes_since_empty(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Vec<Vec<ChangedFile>>, MetadataError> {
        let mut changes = Vec::new();
        let mut seen: IdMap<Node, ()> = IdMap::default();
        let mut next = StoredBase::Node(*node);
        while let StoredBase::Node(node) = next {
            if seen.insert(node, ()).is_some() {
                return Err(MetadataError::CyclicManifest(node));
            }
            let record = self.find_manifest(repository, &node)?;
            let record = record.ok_or(MetadataError::MissingManifest(node))?;
            changes.push(record.changes);
            next = record.base;
        }
        changes.reverse();
        Ok(changes)
    }

    fn find_snapshot(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<Vec<ChangedFile>>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some(lines) = segment.find_snapshot(repository, node)? {
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    /// Returns the blob and the metadata of a file revision.
    pub(crate) fn find_file(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<StoredFile>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some(file) = segment.find_file(repository, node)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Returns a manifest with its parents.
    pub fn manifest_revision(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<WholeRevision>, MetadataError> {
        let Some(record) = self.find_manifest(repository, node)? else { return Ok(None) };
        let text = self.manifest_text(repository, node)?;
        let text = text.ok_or(MetadataError::MissingManifest(*node))?.to_bytes();
        Ok(Some(WholeRevision { parents: Some(record.parents), text }))
    }

    /// Returns a file revision with its parents. That of the empty file without parents is in no
    /// metadata.
    pub fn file_revision(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<WholeRevision>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some(StoredFile { blob, metadata }) = segment.find_file(repository, node)? {
                let parents = segment.find_file_parents(repository, node)?;
                let text = [metadata, repository.read_content(&blob)?].concat();
                return Ok(Some(WholeRevision { parents, text }));
            }
        }
        Ok(None)
    }

    /// Returns all file revisions, sorted.
    pub(crate) fn file_nodes(
        &self,
        repository: &mut GitDirectory,
    ) -> Result<Vec<Node>, MetadataError> {
        let mut nodes = Vec::new();
        for segment in self.segment_ids() {
            let scan = SegmentScan::open(repository, segment)?;
            for name in scan.pieces(repository, SegmentTable::Files)? {
                let piece = read_piece(repository, SegmentTable::Files, name.id)?;
                let rows = pair_rows(&piece).ok_or(MetadataError::Damaged(name.id))?;
                nodes.extend(rows.into_iter().map(|(node, _)| node));
            }
        }
        nodes.sort_unstable();
        Ok(nodes)
    }

    /// Returns an object that the metadata names, and that is missing.
    pub(crate) fn find_missing_object(
        &mut self,
        repository: &mut GitDirectory,
    ) -> Result<Option<GitId>, MetadataError> {
        let mut ids: Vec<GitId> = Vec::new();
        for segment in self.segment_ids() {
            let scan = SegmentScan::open(repository, segment)?;
            for table in [SegmentTable::Changesets, SegmentTable::Files] {
                for name in scan.pieces(repository, table)? {
                    let piece = read_piece(repository, table, name.id)?;
                    let rows = pair_rows(&piece).ok_or(MetadataError::Damaged(name.id))?;
                    ids.extend(rows.iter().map(|(_, id)| *id));
                    if ids.len() >= IDS_AT_ONCE {
                        if let Some(missing) = repository.find_missing(&ids)? {
                            return Ok(Some(missing));
                        }
                        ids.clear();
                    }
                }
            }
        }
        Ok(repository.find_missing(&ids)?)
    }

    /// Merges the newest segments if they are many.
    pub(crate) fn merge_segments(
        &mut self,
        repository: &mut GitDirectory,
        pack: &mut PackWriter,
    ) -> Result<(), MetadataError> {
        let sizes: Result<Vec<usize>, MetadataError> =
            self.segments.iter_mut().map(|one| one.count_changesets(repository)).collect();
        let Some(first) = choose_merge(&sizes?) else { return Ok(()) };
        let merged = self.segment_ids();
        let merged = merged.get(first..).unwrap_or_default();
        let tree = merge_segments(repository, pack, merged)?;
        self.segments.truncate(first);
        self.merged = Some(tree);
        Ok(())
    }

    /// Writes the next state: the segments so far and a new one. Returns the commit.
    pub(crate) fn write_commit(
        &self,
        pack: &mut PackWriter,
        deflater: &mut Deflater,
        heads: &NewHeads<'_>,
        new_segment: GitId,
    ) -> std::io::Result<GitId> {
        let history = write_history_commit(pack, heads)?;
        let mut blob = |content: &[u8]| pack.append_whole(ObjectKind::Blob, content, deflater);
        let format = blob(FORMAT)?;
        let heads = blob(&format_heads(heads.heads))?;
        let mut segments: Vec<GitId> = self.segments.iter().map(MetadataSegment::id).collect();
        segments.extend(self.merged);
        segments.push(new_segment);
        let named = segments.iter().enumerate();
        let named = named.map(|(number, id)| (format!("{number:08}").into_bytes(), *id));
        let segments = write_tree(pack, ObjectKind::Tree, named)?;
        let tree = tree_content([
            (b"format".to_vec(), ObjectKind::Blob, format),
            (b"heads".to_vec(), ObjectKind::Blob, heads),
            (b"segments".to_vec(), ObjectKind::Tree, segments),
        ]);
        let tree = append(pack, ObjectKind::Tree, &tree)?;
        let parents = [Some(history), self.commit].into_iter().flatten();
        write_own_commit(pack, tree, parents, "Mercurial metadata")
    }
}

/// The changesets that are without children after a conversion.
pub(crate) struct NewHeads<'h> {
    pub(crate) heads: &'h [HeadChangeset],
    /// The commits of those that are new.
    pub(crate) commits: &'h [GitId],
    /// The history commit before.
    pub(crate) history: Option<GitId>,
}

fn format_heads(heads: &[HeadChangeset]) -> Vec<u8> {
    let mut lines = Vec::new();
    for head in heads {
        lines.extend_from_slice(&head.node.to_hex());
        lines.extend_from_slice(if head.is_closed { b" c " } else { b" o " });
        lines.extend_from_slice(&head.branch);
        lines.push(b'\n');
    }
    lines
}

fn parse_heads(lines: &[u8]) -> Option<Vec<HeadChangeset>> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (node, rest) = line.split_at_checked(40)?;
            let is_closed = match rest.get(..3)? {
                b" c " => true,
                b" o " => false,
                _ => return None,
            };
            let branch = rest.get(3..)?.to_vec();
            Some(HeadChangeset { node: Node::from_hex(node)?, is_closed, branch })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::EMPTY_TREE;
    use file_rows::FileTables;

    /// Writes metadata with manifests that have no lines, each with its base.
    fn metadata_of_manifests(
        repository: &mut GitDirectory,
        manifests: &[(Node, Node)],
    ) -> Metadata {
        let mut pack = PackWriter::create(&repository.pack_folder().unwrap()).unwrap();
        let mut segment = MetadataWriter::new();
        for (node, base) in manifests {
            let (tree, base) = (EMPTY_TREE, Some(*base));
            let (node, parents) = (*node, [Node::NULL; 2]);
            let record = ManifestRecord { node, tree, base, parents, chain: 1, changes: &[] };
            segment.add_manifest(&mut pack, &record).unwrap();
        }
        let segment = segment.finish(&mut pack, &[], FileTables::default(), &mut []).unwrap();
        let metadata = Metadata::open(repository).unwrap();
        let heads = NewHeads { heads: &[], commits: &[], history: None };
        let commit = metadata.write_commit(&mut pack, &mut Deflater::new(), &heads, segment);
        pack.finish().unwrap();
        Metadata::open_state(repository, Some(commit.unwrap())).unwrap()
    }

    #[test]
    fn manifests_that_are_made_from_each_other_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let mut repository = GitDirectory::new(folder.path());
        let [first, second] = [Node([1; 20]), Node([2; 20])];
        let cycle = [(first, second), (second, first)];
        let mut metadata = metadata_of_manifests(&mut repository, &cycle);
        let error = metadata.manifest_text(&mut repository, &first).map(|_| ()).unwrap_err();
        let expected =
            format!("the Mercurial metadata is damaged: manifest {first} is made from itself");
        assert_eq!(error.to_string(), expected);
        let error = metadata.changes_since_empty(&mut repository, &first).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
