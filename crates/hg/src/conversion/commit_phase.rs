//! The phase of commits, which runs beside that of trees.

use super::conversion_error::ConversionError;
use super::head_changesets::{Heads, NewChangeset};
use super::stored_state::StoredState;
use crate::changeset::Changeset;
use crate::commit::commit_content;
use crate::git::deflate::Deflater;
use crate::git::object::{EMPTY_TREE, ObjectKind, object_id};
use crate::git::pack_writer::{EncodedObject, PackWriter};
use crate::metadata::{ChangesetTextReader, HeadChangeset};
use crate::mutex::lock;
use crate::object_id::{GitId, IdMap, Node};
use crate::oddity::{Oddity, OddityReport};
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

/// The commits of a conversion in the order of the changesets, and the changesets that are without
/// children now.
pub(super) struct WrittenCommits {
    pub(super) commits: Vec<(Node, GitId)>,
    pub(super) heads: Vec<HeadChangeset>,
    /// The commits of the new ones among them.
    pub(super) head_commits: Vec<GitId>,
    pub(super) oddities: OddityReport,
}

/// The trees of the manifests of this conversion, as they are written.
pub(super) struct ManifestTrees<'m> {
    numbers: &'m IdMap<Node, u32>,
    trees: Vec<GitId>,
    receiver: Receiver<GitId>,
}

impl<'m> ManifestTrees<'m> {
    /// `numbers`: the numbers of the manifests, in whose order the trees arrive.
    pub(super) fn new(
        numbers: &'m IdMap<Node, u32>,
        receiver: Receiver<GitId>,
    ) -> ManifestTrees<'m> {
        ManifestTrees { numbers, trees: Vec::new(), receiver }
    }

    /// Returns the tree of a manifest of this conversion, once it is written.
    fn get(&mut self, manifest: &Node) -> Option<GitId> {
        let number = *self.numbers.get(manifest)? as usize;
        while self.trees.len() <= number {
            self.trees.push(self.receiver.recv().ok()?);
        }
        self.trees.get(number).copied()
    }
}

/// Writes commits.
pub(super) struct CommitWriter<'c> {
    pub(super) pack: &'c Mutex<PackWriter>,
    pub(super) stored: &'c StoredState,
    pub(super) heads: Heads,
    /// The byte that tells a commit from an equal one.
    pub(super) padding: u8,
    pub(super) trees: ManifestTrees<'c>,
}

impl CommitWriter<'_> {
    /// Writes the commits of changesets, whose texts are read in the same order.
    pub(super) fn write(
        mut self,
        changesets: &[NewChangeset],
        mut texts: ChangesetTextReader,
    ) -> Result<WrittenCommits, ConversionError> {
        let mut commits: Vec<(Node, GitId)> = Vec::with_capacity(changesets.len());
        let mut by_node: IdMap<Node, GitId> = IdMap::default();
        let mut used: IdMap<GitId, ()> = IdMap::default();
        let mut oddities = OddityReport::default();
        let mut deflater = Deflater::new();
        for changeset in changesets {
            let NewChangeset { node, p1, p2 } = *changeset;
            let damaged =
                |what: &str| ConversionError::Damaged(format!("changeset {node}: {what}"));
            let text = texts.next(&mut lock(self.pack))?.unwrap_or_default();
            let parsed = Changeset::parse(text).ok_or_else(|| damaged("its text is damaged"))?;
            let tree = self.tree(&parsed.manifest)?;
            let tree = tree.ok_or_else(|| damaged("its manifest is missing"))?;
            let mut parents = Vec::with_capacity(2);
            for parent in [p1, p2].into_iter().filter(|parent| !parent.is_null()) {
                let commit = match by_node.get(&parent) {
                    Some(commit) => Some(*commit),
                    None => self.stored.commit_of(&parent)?,
                };
                parents.push(commit.ok_or_else(|| damaged("a parent is missing"))?);
            }
            let mut content = commit_content(&parsed, tree, &parents);
            let mut id = object_id(ObjectKind::Commit, &content);
            oddities.add_changeset(node, &parsed);
            let mut is_padded = false;
            // Changesets that differ only in what git does not keep would be one commit.
            while used.contains_key(&id) || self.stored.has_commit(&id)? {
                content.push(self.padding);
                id = object_id(ObjectKind::Commit, &content);
                is_padded = true;
            }
            if is_padded {
                oddities.add(Oddity::PaddedTwin, || node.to_string());
            }
            let object =
                EncodedObject::encode_whole(id, ObjectKind::Commit, &content, &mut deflater);
            lock(self.pack).append_content(&object, &content)?;
            self.heads.add(changeset, &parsed);
            used.insert(id, ());
            by_node.insert(node, id);
            commits.push((node, id));
        }
        let heads = self.heads.finish();
        let new = heads.iter().filter_map(|head| by_node.get(&head.node).copied());
        let head_commits = new.collect();
        Ok(WrittenCommits { commits, heads, head_commits, oddities })
    }

    /// Returns the tree of a manifest.
    fn tree(&mut self, manifest: &Node) -> Result<Option<GitId>, ConversionError> {
        if manifest.is_null() {
            let object = EncodedObject::encode_stored(EMPTY_TREE, ObjectKind::Tree, b"");
            lock(self.pack).append_content(&object, b"")?;
            return Ok(Some(EMPTY_TREE));
        }
        if let Some(tree) = self.trees.get(manifest) {
            return Ok(Some(tree));
        }
        let stored = self
            .stored
            .look_up(|metadata, repository| metadata.tree_of_manifest(repository, manifest));
        Ok(stored?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repository::GitDirectory;
    use crate::metadata::{Metadata, MetadataWriter};
    use std::sync::mpsc::channel;

    const TEXT: &[u8] = b"0000000000000000000000000000000000000000\nwalrus\n0 0\n\nseal";

    /// Writes the commit of a changeset into a pack that has an object with an id of another
    /// content already, which stands for a collision of SHA-1.
    fn write_with_forged(id: GitId, kind: ObjectKind) -> Result<Vec<GitId>, String> {
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let mut repository = GitDirectory::new(folder.path());
        let metadata = Metadata::open(&mut repository).unwrap();
        let stored = StoredState::new(repository, metadata);
        let mut pack = PackWriter::create(folder.path()).unwrap();
        pack.append_forged(id, kind);
        let mut segment = MetadataWriter::new();
        segment.add_text(&mut pack, TEXT).unwrap();
        let pack = Mutex::new(pack);
        let (_, receiver) = channel();
        let numbers = IdMap::default();
        let writer = CommitWriter {
            pack: &pack,
            stored: &stored,
            heads: Heads::new(&[]),
            padding: 0,
            trees: ManifestTrees::new(&numbers, receiver),
        };
        let changeset = NewChangeset { node: Node([1; 20]), p1: Node::NULL, p2: Node::NULL };
        let written = writer.write(&[changeset], segment.texts());
        written.map(|written| written.head_commits).map_err(|error| error.to_string())
    }

    #[test]
    fn another_content_of_a_commit_or_its_tree_is_refused() {
        let content = commit_content(&Changeset::parse(TEXT).unwrap(), EMPTY_TREE, &[]);
        let commit = object_id(ObjectKind::Commit, &content);
        let other = GitId([2; 20]);
        assert_eq!(write_with_forged(other, ObjectKind::Commit), Ok(vec![commit]));
        for (id, kind) in [(commit, ObjectKind::Commit), (EMPTY_TREE, ObjectKind::Tree)] {
            let error = write_with_forged(id, kind).unwrap_err();
            let expected = format!("another content has the id {id} (a collision of SHA-1)");
            assert!(error.ends_with(&expected), "{error}");
        }
    }
}
