//! The metadata: the results of conversions that later ones look up.
//!
//! A later fetch needs the commit of each changeset, the text of each manifest, and the blob and
//! the metadata of each file revision; a push needs the texts of changesets, too. All of it is in
//! git objects under the ref [`METADATA_REF`], so that `git gc` keeps it and `git fetch` can share
//! it. The ref names a commit with two parents. The first one is the *history commit*, which keeps
//! the commits of changesets when no branch leads to them any more, so that `git gc` does not
//! delete what the metadata names: its parents are the commits without children, and the history
//! commit before. The second one is the metadata before, to which a rollback goes back.
//!
//! The tree of the commit has
//!
//! * `format`: [`FORMAT`];
//! * `heads`: a line for each changeset without children: node, `o` or `c` (its branch is open or
//!   closed), name of the branch;
//! * `segments/NNNNNNNN`: what one conversion added, or several after a merge ([`segment`]).

mod segment;
mod segment_merge;
mod segment_writer;
mod table;

pub use segment::MetadataError;
pub(crate) use segment_writer::{ManifestRecord, MetadataWriter, encode_snapshot};

use crate::git::object::ObjectKind;
use crate::git::pack_writer::{EncodedObject, PackWriter};
use crate::git::repository::{GitDirectory, GitDirectoryError, RefChange};
use crate::git::{deflate::Deflater, object::object_id};
use crate::manifest::{FileFlag, ManifestLine, ManifestText};
use crate::object_id::{GitId, Node};
use segment::{MetadataSegment, StoredBase};
use segment_merge::{choose_merge, merge_segments};
use std::collections::BTreeMap;

/// The ref of the metadata.
pub const METADATA_REF: &str = "refs/larder/hg/metadata";
/// The name of the format, which is read back literally.
const FORMAT: &[u8] = b"larder-hg 1\n";
/// The most steps from a manifest to one whose lines are all there.
const MAX_CHAIN_STEPS: usize = 1 << 20;

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

/// A file revision of an earlier conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) blob: GitId,
    pub(crate) metadata: Vec<u8>,
}

impl Metadata {
    /// Reads the metadata of a repository; a repository without any has empty ones.
    pub fn open(repository: &mut GitDirectory) -> Result<Metadata, MetadataError> {
        let mut metadata =
            Metadata { commit: None, heads: Vec::new(), segments: Vec::new(), merged: None };
        let Some(commit) = repository.resolve(METADATA_REF)? else { return Ok(metadata) };
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
        repository: &GitDirectory,
    ) -> Result<Option<GitId>, MetadataError> {
        match self.commit {
            Some(commit) => Ok(repository.resolve(&format!("{commit}^1"))?),
            None => Ok(None),
        }
    }

    /// The changesets without children.
    pub fn heads(&self) -> &[HeadChangeset] {
        &self.heads
    }

    /// Returns whether nothing was converted yet.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the commit of a changeset.
    pub fn commit_of(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<GitId>, MetadataError> {
        for segment in self.segments.iter_mut().rev() {
            if let Some((_, commit)) = segment.find_changeset(repository, node)? {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// Returns the changesets whose nodes begin with these hexadecimal digits, at least 8.
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
    ) -> Result<Option<segment::StoredManifest>, MetadataError> {
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
        let mut changes = Vec::new();
        let mut lines: BTreeMap<Vec<u8>, (Node, FileFlag)> = BTreeMap::new();
        let mut next = *node;
        for _ in 0..MAX_CHAIN_STEPS {
            if let Some(snapshot) = self.find_snapshot(repository, &next)? {
                lines =
                    snapshot.into_iter().filter_map(|(path, file)| Some((path, file?))).collect();
                break;
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
                StoredBase::Empty => break,
                StoredBase::Node(base) => next = base,
            }
        }
        for (path, file) in changes.into_iter().rev().flatten() {
            match file {
                Some(file) => drop(lines.insert(path, file)),
                None => drop(lines.remove(&path)),
            }
        }
        let mut text = Vec::new();
        for (path, (file, flag)) in &lines {
            ManifestLine { path, file: *file, flag: *flag }.write(&mut text);
        }
        Ok(Some(ManifestText::new(&text)))
    }

    fn find_snapshot(
        &mut self,
        repository: &mut GitDirectory,
        node: &Node,
    ) -> Result<Option<Vec<segment::StoredChange>>, MetadataError> {
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

    /// Merges the newest segments if they are many.
    pub(crate) fn merge_segments(
        &mut self,
        repository: &mut GitDirectory,
        pack: &mut PackWriter,
    ) -> Result<(), MetadataError> {
        let sizes: Result<Vec<usize>, MetadataError> =
            self.segments.iter_mut().map(|one| one.count_changesets(repository)).collect();
        let Some(first) = choose_merge(&sizes?) else { return Ok(()) };
        let merged = self.segments.get_mut(first..).unwrap_or_default();
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
        let segments = write_tree(pack, true, named)?;
        let tree = tree_content([
            (b"format".to_vec(), false, format),
            (b"heads".to_vec(), false, heads),
            (b"segments".to_vec(), true, segments),
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

/// Writes the commit that keeps the history reachable.
fn write_history_commit(pack: &mut PackWriter, heads: &NewHeads<'_>) -> std::io::Result<GitId> {
    let tree = append(pack, ObjectKind::Tree, b"")?;
    let parents = heads.history.into_iter().chain(heads.commits.iter().copied());
    write_own_commit(pack, tree, parents, "Mercurial history")
}

/// Writes a commit of the metadata: the same bytes for the same content, at any time.
fn write_own_commit(
    pack: &mut PackWriter,
    tree: GitId,
    parents: impl Iterator<Item = GitId>,
    message: &str,
) -> std::io::Result<GitId> {
    let mut commit = format!("tree {tree}\n");
    for parent in parents {
        commit.push_str(&format!("parent {parent}\n"));
    }
    commit.push_str("author larder <larder-hg> 0 +0000\n");
    commit.push_str(&format!("committer larder <larder-hg> 0 +0000\n\n{message}\n"));
    append(pack, ObjectKind::Commit, commit.as_bytes())
}

/// Goes back to the state before the last conversion. Returns false if there is none. Commits and
/// refs stay: those of changesets that are unknown now are converted again by the next fetch, to
/// the same ids.
pub fn rollback(repository: &mut GitDirectory) -> Result<bool, MetadataError> {
    let Some(commit) = repository.resolve(METADATA_REF)? else { return Ok(false) };
    let parent = repository.resolve(&format!("{commit}^2"))?;
    let name = METADATA_REF.as_bytes().to_vec();
    repository.change_refs(&[RefChange { name, new: parent, old: Some(commit) }])?;
    Ok(true)
}

/// Appends an object as it is.
fn append(pack: &mut PackWriter, kind: ObjectKind, content: &[u8]) -> std::io::Result<GitId> {
    let id = object_id(kind, content);
    pack.append(&EncodedObject::encode_stored(id, kind, content))?;
    Ok(id)
}

/// Returns the content of a tree; the entries are sorted as git sorts them.
fn tree_content(entries: impl IntoIterator<Item = (Vec<u8>, bool, GitId)>) -> Vec<u8> {
    let mut content = Vec::new();
    for (name, is_tree, id) in entries {
        content.extend_from_slice(if is_tree { b"40000 " } else { b"100644 " });
        content.extend_from_slice(&name);
        content.push(0);
        content.extend_from_slice(&id.0);
    }
    content
}

/// Writes a tree whose entries are all trees, or all blobs, and sorted.
fn write_tree(
    pack: &mut PackWriter,
    are_trees: bool,
    entries: impl IntoIterator<Item = (Vec<u8>, GitId)>,
) -> std::io::Result<GitId> {
    let content = tree_content(entries.into_iter().map(|(name, id)| (name, are_trees, id)));
    append(pack, ObjectKind::Tree, &content)
}

fn tree_of_commit(content: &[u8]) -> Option<GitId> {
    let line = content.strip_prefix(b"tree ")?;
    GitId::from_hex(line.get(..40)?)
}

/// Reads the names and ids of a tree.
fn read_tree(
    repository: &mut GitDirectory,
    id: GitId,
) -> Result<Vec<(Vec<u8>, GitId)>, GitDirectoryError> {
    let content = repository.read_content(&id)?;
    let mut entries = Vec::new();
    let mut rest = content.as_slice();
    while let Some(space) = memchr::memchr(b' ', rest)
        && let Some(nul) = memchr::memchr(0, rest)
        && let Some(name) = rest.get(space + 1..nul)
        && let Some(id) = rest.get(nul + 1..nul + 21).and_then(|id| id.try_into().ok())
    {
        entries.push((name.to_vec(), GitId(id)));
        rest = rest.get(nul + 21..).unwrap_or_default();
    }
    Ok(entries)
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
