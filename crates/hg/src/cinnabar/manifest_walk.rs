//! The manifests of git-cinnabar: what changed between their trees.
//!
//! Each manifest is a commit whose parents are its parents. The names in its trees begin with `_`,
//! so that git takes all of them, and the ids of files are nodes of Mercurial. Many manifests are
//! compared at once, folder by folder: so all trees that are needed next are asked of git together.

use super::{CinnabarError, ancestors, damage, ids_of, split_commit};
use crate::conversion::{Phase, Progress};
use crate::git::object_stream::StreamContent;
use crate::git::pack_writer::PackWriter;
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::{ChangedFile, FileFlag, ManifestLine, ManifestText};
use crate::metadata::{ManifestRecord, MetadataWriter, encode_snapshot, is_snapshot_due};
use crate::object_id::{GitId, IdMap, Node};
use crate::tree::{compare_names, entry_at};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

/// The number of manifests that are compared at once.
const WINDOW: usize = 64;
/// The bytes of trees that are kept.
const MAX_TREE_BYTES: usize = 32 << 20;
/// No number.
const NONE: u32 = u32::MAX;

/// A manifest as git-cinnabar has it.
struct ManifestCommit {
    node: Node,
    /// Its tree with file nodes.
    listing: GitId,
    /// The tree with the files; `None`: no changeset has the manifest.
    tree: Option<GitId>,
    /// The number of the manifest that it is compared with, or [`NONE`].
    base: u32,
    /// The numbers of its parents, or [`NONE`].
    parents: [u32; 2],
}

/// All manifests, parents first.
pub(super) struct ManifestWalk<'r> {
    repository: &'r GitDirectory,
    manifests: Vec<ManifestCommit>,
    nodes: IdMap<Node, ()>,
}

impl<'r> ManifestWalk<'r> {
    /// Reads the commits of all manifests. `trees`: the trees with the files.
    pub(super) fn read(
        repository: &'r GitDirectory,
        heads: GitId,
        trees: &IdMap<Node, GitId>,
    ) -> Result<ManifestWalk<'r>, CinnabarError> {
        let mut commits = ancestors(repository, [heads].into_iter())?;
        // The last one only has the heads as its parents.
        commits.pop();
        let mut walk = ManifestWalk { repository, manifests: Vec::new(), nodes: IdMap::default() };
        let mut numbers: IdMap<GitId, u32> = IdMap::default();
        let ids = commits.iter().copied();
        repository.stream_objects::<CinnabarError>(ids, StreamContent::Contents, |object| {
            let damaged = || damage(format!("manifest {}", object.id));
            let (lines, message) = split_commit(object.content).ok_or_else(damaged)?;
            let node = Node::from_hex(message).ok_or_else(damaged)?;
            let listing = ids_of(&lines, b"tree ").first().copied().ok_or_else(damaged)?;
            let tree = trees.get(&node).copied();
            let parents = ids_of(&lines, b"parent ");
            let number = |place: usize| parents.get(place).and_then(|parent| numbers.get(parent));
            let parents = [0, 1].map(|place| number(place).copied().unwrap_or(NONE));
            let mut base = parents[0];
            // Manifests that no changeset has are not written.
            while let Some(other) = walk.manifests.get(base as usize)
                && other.tree.is_none()
            {
                base = other.base;
            }
            numbers.insert(object.id, walk.manifests.len() as u32);
            walk.nodes.insert(node, ());
            walk.manifests.push(ManifestCommit { node, listing, tree, base, parents });
            Ok(())
        })?;
        for node in trees.keys() {
            if !walk.has(node) {
                return Err(damage(format!("manifest {node} is missing")));
            }
        }
        Ok(walk)
    }

    /// Returns whether a node is that of a manifest.
    pub(super) fn has(&self, node: &Node) -> bool {
        self.nodes.contains_key(node)
    }

    /// Writes the changes of all manifests that changesets have, and returns their number.
    pub(super) fn write(
        &self,
        segment: &mut MetadataWriter,
        pack: &mut PackWriter,
        progress: &mut dyn Progress,
    ) -> Result<usize, CinnabarError> {
        let mut comparison = TreeComparison::new(GitDirectory::new(self.repository.directory()));
        let mut sizes: Vec<ManifestSize> = vec![ManifestSize::default(); self.manifests.len()];
        let mut written = 0;
        let kept = (0..).zip(&self.manifests).filter(|(_, manifest)| manifest.tree.is_some());
        let kept: Vec<(usize, &ManifestCommit)> = kept.collect();
        for window in kept.chunks(WINDOW) {
            let pairs = window.iter().map(|(_, manifest)| {
                let base = self.manifests.get(manifest.base as usize);
                (base.map(|base| base.listing), Some(manifest.listing))
            });
            let all_changes = comparison.compare(pairs)?;
            for ((number, manifest), changes) in window.iter().zip(all_changes) {
                let base = self.manifests.get(manifest.base as usize);
                let mut size = match sizes.get(manifest.base as usize) {
                    Some(base) => base.apply(&changes, true),
                    None => ManifestSize::default().apply(&changes, false),
                };
                if is_snapshot_due(size.chain, size.bytes) {
                    let text = comparison.read_text(manifest.listing)?;
                    if let Some(snapshot) = encode_snapshot(&text) {
                        segment.add_snapshot(pack, manifest.node, &snapshot)?;
                        size.chain = 0;
                    }
                }
                if let Some(place) = sizes.get_mut(*number) {
                    *place = size;
                }
                let lines: Vec<(&[u8], _)> =
                    changes.files.iter().map(|(path, file)| (path.as_slice(), *file)).collect();
                segment.add_manifest(
                    pack,
                    &ManifestRecord {
                        node: manifest.node,
                        tree: manifest.tree.unwrap_or(GitId::NULL),
                        base: base.map(|base| base.node),
                        parents: manifest.parents.map(|parent| {
                            let parent = self.manifests.get(parent as usize);
                            parent.map_or(Node::NULL, |parent| parent.node)
                        }),
                        chain: size.chain,
                        changes: &lines,
                    },
                )?;
                written += 1;
                progress.advance(Phase::Manifests, written as u64, Some(kept.len() as u64));
            }
        }
        Ok(written)
    }
}

/// How large a manifest is, and how far it is from one with all lines.
#[derive(Clone, Copy, Default)]
struct ManifestSize {
    bytes: usize,
    chain: u32,
}

impl ManifestSize {
    /// Returns the size after changes. `has_base`: there is a manifest that they apply to.
    fn apply(self, changes: &TreeChanges, has_base: bool) -> ManifestSize {
        let count = if has_base { changes.files.len() as u32 } else { 0 };
        ManifestSize {
            bytes: (self.bytes + changes.added_bytes).saturating_sub(changes.removed_bytes),
            chain: self.chain.saturating_add(count),
        }
    }
}

/// The lines that are different in a manifest.
#[derive(Default)]
struct TreeChanges {
    files: Vec<ChangedFile>,
    added_bytes: usize,
    removed_bytes: usize,
}

/// Two folders to be compared, of which one may not be there.
struct FolderPair {
    /// The number of the manifest in the window.
    number: usize,
    /// The path with a slash at its end; empty: the whole tree.
    path: Vec<u8>,
    old: Option<GitId>,
    new: Option<GitId>,
}

/// Compares trees, and keeps some of them.
struct TreeComparison {
    repository: GitDirectory,
    trees: IdMap<GitId, Rc<[u8]>>,
    order: VecDeque<GitId>,
    bytes: usize,
}

impl TreeComparison {
    fn new(repository: GitDirectory) -> TreeComparison {
        let (trees, order) = (IdMap::default(), VecDeque::new());
        TreeComparison { repository, trees, order, bytes: 0 }
    }

    /// Returns the lines that are different in each pair of trees, sorted by path.
    fn compare(
        &mut self,
        pairs: impl Iterator<Item = (Option<GitId>, Option<GitId>)>,
    ) -> Result<Vec<TreeChanges>, CinnabarError> {
        let mut folders: Vec<FolderPair> = (0..)
            .zip(pairs)
            .map(|(number, (old, new))| FolderPair { number, path: Vec::new(), old, new })
            .collect();
        let mut changes: Vec<TreeChanges> =
            folders.iter().map(|_| TreeChanges::default()).collect();
        while !folders.is_empty() {
            self.load(&folders)?;
            for folder in mem::take(&mut folders) {
                let Some(changes) = changes.get_mut(folder.number) else { continue };
                self.compare_folders(&folder, changes, &mut folders)?;
            }
        }
        for changes in &mut changes {
            changes.files.sort_unstable();
        }
        Ok(changes)
    }

    /// Returns the text of the manifest with a tree.
    fn read_text(&mut self, listing: GitId) -> Result<ManifestText, CinnabarError> {
        let changes = self.compare([(None, Some(listing))].into_iter())?;
        let mut text = Vec::new();
        for (path, file) in changes.iter().flat_map(|changes| &changes.files) {
            if let Some((file, flag)) = *file {
                ManifestLine { path, file, flag }.write(&mut text);
            }
        }
        Ok(ManifestText::new(&text))
    }

    /// Reads the trees of folders that are not kept.
    fn load(&mut self, folders: &[FolderPair]) -> Result<(), CinnabarError> {
        // Trees of this round stay, even if they are more than the limit.
        while self.bytes > MAX_TREE_BYTES
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.trees.remove(&oldest).map_or(0, |tree| tree.len());
        }
        let ids = folders.iter().flat_map(|folder| [folder.old, folder.new]).flatten();
        let mut missing: Vec<GitId> = ids.filter(|id| !self.trees.contains_key(id)).collect();
        missing.sort_unstable();
        missing.dedup();
        let (trees, order, bytes) = (&mut self.trees, &mut self.order, &mut self.bytes);
        self.repository.read_contents(&missing, |id, content| {
            *bytes += content.len();
            order.push_back(id);
            trees.insert(id, content.into());
        })?;
        Ok(())
    }

    fn compare_folders(
        &self,
        folder: &FolderPair,
        changes: &mut TreeChanges,
        below: &mut Vec<FolderPair>,
    ) -> Result<(), CinnabarError> {
        let tree = |id: Option<GitId>| match id {
            Some(id) => self.trees.get(&id).cloned().ok_or(GitDirectoryError::Missing { id }),
            None => Ok(Rc::from([])),
        };
        let (old_tree, new_tree) = (tree(folder.old)?, tree(folder.new)?);
        let (mut old_at, mut new_at) = (0, 0);
        loop {
            let (old, new) = (entry_at(&old_tree, old_at), entry_at(&new_tree, new_at));
            let order = match (&old, &new) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => {
                    compare_names((old.name, old.is_folder), (new.name, new.is_folder))
                }
            };
            let old = old.filter(|_| order != Ordering::Greater);
            let new = new.filter(|_| order != Ordering::Less);
            old_at = old.as_ref().map_or(old_at, |old| old.end);
            new_at = new.as_ref().map_or(new_at, |new| new.end);
            let Some(entry) = new.as_ref().or(old.as_ref()) else { break };
            let damaged = || damage(format!("a name in the tree of {:?}", folder.new));
            let name = entry.name.strip_prefix(b"_").ok_or_else(damaged)?;
            let path = [folder.path.as_slice(), name].concat();
            let (old_id, new_id) = (old.as_ref().map(|old| old.id), new.as_ref().map(|new| new.id));
            if entry.is_folder {
                if old_id != new_id {
                    let path = [path.as_slice(), b"/"].concat();
                    below.push(FolderPair {
                        number: folder.number,
                        path,
                        old: old_id,
                        new: new_id,
                    });
                }
                continue;
            }
            let file = |id: GitId, mode: &[u8]| {
                let flag = file_flag(mode).ok_or_else(damaged)?;
                Ok::<_, CinnabarError>((Node(id.0), flag))
            };
            let old = old.map(|old| file(old.id, old.mode)).transpose()?;
            let new = new.map(|new| file(new.id, new.mode)).transpose()?;
            if old != new {
                changes.removed_bytes += old.map_or(0, |(_, flag)| line_bytes(&path, flag));
                changes.added_bytes += new.map_or(0, |(_, flag)| line_bytes(&path, flag));
                changes.files.push((path, new));
            }
        }
        let is_whole = |tree: &[u8], end: usize| end == tree.len();
        if !is_whole(&old_tree, old_at) || !is_whole(&new_tree, new_at) {
            return Err(damage(format!("tree {:?}", folder.new)));
        }
        Ok(())
    }
}

/// Returns the flag of a file with a mode, which git shows as the mode of a submodule.
fn file_flag(mode: &[u8]) -> Option<FileFlag> {
    match mode {
        b"160644" => Some(FileFlag::Plain),
        b"160755" => Some(FileFlag::Executable),
        b"160000" => Some(FileFlag::Link),
        _ => None,
    }
}

/// Returns the length of a line of a manifest: the path, NUL, the node, the flag, a newline.
fn line_bytes(path: &[u8], flag: FileFlag) -> usize {
    path.len() + 1 + 40 + flag.letter().len() + 1
}
