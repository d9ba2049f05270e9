//! The conversion of changes to commits.
//!
//! Changes arrive as changesets, manifests and file revisions, while git's objects depend on each
//! other the other way round. Hence the phases: changesets are kept as texts, manifests as changed
//! lines, and files become blobs as they arrive, by several threads. At the end of the stream,
//! trees are made of lines and blobs, then commits of texts and trees, then the metadata. All
//! objects are in one pack, which appears with the ref of the metadata: an interrupted conversion
//! leaves nothing.

mod conversion_error;
mod file_phase;
mod head_changesets;
mod progress;
mod stored_state;

pub use conversion_error::ConversionError;
pub use progress::{Phase, Progress};

use crate::changeset::Changeset;
use crate::commit::commit_content;
use crate::file_conversion::{blob_of_empty_file, lock};
use crate::git::deflate::Deflater;
use crate::git::object::{EMPTY_TREE, ObjectKind, object_id};
use crate::git::pack_writer::{EncodedObject, FinishedPack, PackWriter};
use crate::git::repository::{GitDirectory, RefChange};
use crate::manifest::{FileTable, ManifestBase, ManifestText, Manifests};
use crate::metadata::{
    HeadChangeset, METADATA_REF, ManifestRecord, Metadata, MetadataWriter, NewHeads,
    encode_snapshot,
};
use crate::object_id::{GitId, IdMap, Node};
use crate::revision::{ChangeSource, Revision};
use crate::tree::{PathChange, Tree, TreeWriter};
use file_phase::FileResults;
use head_changesets::{Heads, NewChangeset};
use sha1::{Digest as _, Sha1};
use std::collections::VecDeque;
use std::mem;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Mutex;
use stored_state::StoredState;

/// The texts of changesets that are kept for the deltas of later ones.
const KEPT_CHANGESETS: usize = 1024;
/// A manifest gets all its lines written when the changes before it are more than so many times
/// its lines.
const MAX_CHAIN_RATIO: usize = 4;
/// The bytes of a line of a manifest, about.
const LINE_BYTES: usize = 80;

/// The results of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversionSummary {
    /// The changesets that were new.
    pub changesets: usize,
    /// The objects of the pack, with those of the metadata.
    pub objects: usize,
    /// The bytes of the pack and its index.
    pub bytes: u64,
}

/// The commits of a conversion in the order of the changesets, and the changesets that are without
/// children now.
struct WrittenCommits {
    commits: Vec<(Node, GitId)>,
    heads: Vec<HeadChangeset>,
    /// The commits of the new ones among them.
    head_commits: Vec<GitId>,
}

/// Converts changes into the objects of a git repository, and adds them to its metadata.
pub fn convert(
    directory: &std::path::Path,
    source: &mut dyn ChangeSource,
    threads: NonZeroUsize,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, ConversionError> {
    let mut repository = GitDirectory::new(directory);
    let metadata = Metadata::open(&mut repository)?;
    let pack = Mutex::new(PackWriter::create(&repository.pack_folder()?)?);
    let conversion = Conversion {
        directory,
        has_stored: !metadata.is_empty(),
        stored: StoredState(Mutex::new((repository, metadata))),
        pack: &pack,
        segment: MetadataWriter::new(),
        progress,
    };
    let Some((changesets, metadata)) = conversion.run(source, threads)? else {
        return Ok(ConversionSummary::default());
    };
    let pack = pack.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let FinishedPack { objects, bytes } = pack.finish()?;
    let change = RefChange {
        name: METADATA_REF.as_bytes().to_vec(),
        new: Some(metadata.new),
        old: Some(metadata.old.unwrap_or(GitId::NULL)),
    };
    GitDirectory::new(directory).change_refs(&[change])?;
    Ok(ConversionSummary { changesets, objects, bytes })
}

/// The commits of the metadata before and after a conversion.
struct MetadataChange {
    old: Option<GitId>,
    new: GitId,
}

struct Conversion<'c> {
    directory: &'c std::path::Path,
    /// Whether an earlier conversion left anything.
    has_stored: bool,
    stored: StoredState,
    pack: &'c Mutex<PackWriter>,
    segment: MetadataWriter,
    progress: &'c mut dyn Progress,
}

impl Conversion<'_> {
    /// Converts all; `None` if nothing is new.
    fn run(
        mut self,
        source: &mut dyn ChangeSource,
        threads: NonZeroUsize,
    ) -> Result<Option<(usize, MetadataChange)>, ConversionError> {
        let changesets = self.read_changesets(source)?;
        let (mut manifests, chains) = self.read_manifests(source)?;
        manifests.end_reading();
        let files = self.convert_files(source, &manifests.files, threads)?;
        if changesets.is_empty() {
            return Ok(None);
        }
        let trees = self.write_trees(&manifests, &files)?;
        self.add_manifests(&manifests, &chains, &trees)?;
        let written = self.write_commits(&changesets, &manifests, &trees)?;
        let change = self.write_metadata(&manifests.files, files, &written)?;
        Ok(Some((changesets.len(), change)))
    }

    /// Reads the changesets, of which the new ones are kept.
    fn read_changesets(
        &mut self,
        source: &mut dyn ChangeSource,
    ) -> Result<Vec<NewChangeset>, ConversionError> {
        let mut revision = Revision::empty();
        let mut changesets = Vec::new();
        let mut texts: IdMap<Node, Vec<u8>> = IdMap::default();
        let mut order: VecDeque<Node> = VecDeque::new();
        let mut numbers: IdMap<Node, usize> = IdMap::default();
        while source.next_revision(&mut revision)? {
            let Revision { node, p1, p2, base, flags, .. } = revision;
            let damaged =
                |what: &str| ConversionError::Damaged(format!("changeset {node}: {what}"));
            if flags & Revision::ELLIPSIS != 0 {
                return Err(damaged("not supported: a shallow repository"));
            }
            if !base.is_null() && !texts.contains_key(&base) {
                let text = self.older_text(&base, &numbers)?;
                let text = text.ok_or_else(|| damaged("the base of its delta is missing"))?;
                texts.insert(base, text);
                order.push_back(base);
            }
            let base_text = texts.get(&base).map_or(&[][..], Vec::as_slice);
            let mut text = Vec::new();
            crate::delta::apply_delta(base_text, &revision.delta, &mut text)
                .map_err(|_| damaged("its delta does not fit its base"))?;
            if flags == 0 && hash_revision(&p1, &p2, &text) != node {
                return Err(damaged("its text does not have its hash"));
            }
            if !self.is_stored(&node)? {
                self.segment.add_text(&mut lock(self.pack), &text)?;
                numbers.insert(node, changesets.len());
                changesets.push(NewChangeset { node, p1, p2 });
                self.report(Phase::Changesets, changesets.len(), None);
            }
            texts.insert(node, text);
            order.push_back(node);
            while order.len() > KEPT_CHANGESETS {
                order.pop_front().map(|oldest| texts.remove(&oldest));
            }
        }
        Ok(changesets)
    }

    /// Returns the text of a changeset that is not among the recent ones.
    fn older_text(
        &mut self,
        node: &Node,
        numbers: &IdMap<Node, usize>,
    ) -> Result<Option<Vec<u8>>, ConversionError> {
        if let Some(number) = numbers.get(node) {
            return Ok(self.segment.text(&mut lock(self.pack), *number)?);
        }
        Ok(self.stored.look_up(|metadata, repository| metadata.changeset_text(repository, node))?)
    }

    fn is_stored(&self, node: &Node) -> Result<bool, ConversionError> {
        Ok(self.stored_commit(node)?.is_some())
    }

    fn stored_commit(&self, node: &Node) -> Result<Option<GitId>, ConversionError> {
        if !self.has_stored {
            return Ok(None);
        }
        Ok(self.stored.look_up(|metadata, repository| metadata.commit_of(repository, node))?)
    }

    fn report(&mut self, phase: Phase, done: usize, total: Option<usize>) {
        self.progress.advance(phase, done as u64, total.map(|total| total as u64));
    }

    /// Reads the manifests. For each one, the number of changes is returned from the nearest
    /// manifest whose lines are all written.
    fn read_manifests(
        &mut self,
        source: &mut dyn ChangeSource,
    ) -> Result<(Manifests, Vec<u32>), ConversionError> {
        let mut manifests = Manifests::default();
        let mut chains: Vec<u32> = Vec::new();
        let mut stored_chains: IdMap<Node, u32> = IdMap::default();
        let mut revision = Revision::empty();
        while source.next_revision(&mut revision)? {
            let Revision { node, base, .. } = revision;
            let stored = &self.stored;
            manifests.add::<ConversionError>(node, base, &revision.delta, |base| {
                Ok(stored.look_up(|metadata, repository| {
                    let chain = metadata.chain_of_manifest(repository, base)?;
                    stored_chains.insert(*base, chain);
                    metadata.manifest_text(repository, base)
                })?)
            })?;
            let number = manifests.len() as u32 - 1;
            let Some((manifest, changes)) = manifests.get(number) else { continue };
            let before = match manifest.base {
                ManifestBase::Empty => None,
                ManifestBase::New(base) => chains.get(base as usize).copied(),
                ManifestBase::Stored(base) => stored_chains.get(&base).copied(),
            };
            let chain = before.map_or(0, |before| before.saturating_add(changes.len() as u32));
            let text = manifests.newest_text();
            let lines = text.map_or(0, ManifestText::len) / LINE_BYTES + 100;
            if chain as usize > MAX_CHAIN_RATIO * lines
                && let Some(snapshot) = text.and_then(encode_snapshot)
            {
                self.segment.add_snapshot(&mut lock(self.pack), node, &snapshot)?;
                chains.push(0);
            } else {
                chains.push(chain);
            }
            self.report(Phase::Manifests, manifests.len(), None);
        }
        Ok((manifests, chains))
    }

    /// Reads the files and converts them by several threads.
    fn convert_files(
        &mut self,
        source: &mut dyn ChangeSource,
        files: &FileTable,
        threads: NonZeroUsize,
    ) -> Result<FileResults, ConversionError> {
        file_phase::convert_files(source, files, threads, self.pack, &self.stored, self.progress)
    }

    /// Writes the trees of all manifests, and returns their ids.
    fn write_trees(
        &mut self,
        manifests: &Manifests,
        files: &FileResults,
    ) -> Result<Vec<GitId>, ConversionError> {
        let mut repository = GitDirectory::new(self.directory);
        let mut writer = TreeWriter::new(self.pack, &mut repository);
        let mut expiring: Vec<(u32, u32)> = (0..manifests.len() as u32)
            .filter_map(|number| Some((manifests.get(number)?.0.last_use, number)))
            .collect();
        expiring.sort_unstable();
        let mut expiring = expiring.into_iter().peekable();
        let mut trees: Vec<Option<Rc<Tree>>> = Vec::with_capacity(manifests.len());
        let mut stored_trees: IdMap<Node, Rc<Tree>> = IdMap::default();
        let mut ids = Vec::with_capacity(manifests.len());
        for number in 0..manifests.len() as u32 {
            let Some((manifest, changes)) = manifests.get(number) else { continue };
            let base = match manifest.base {
                ManifestBase::Empty => Tree::empty(),
                ManifestBase::New(base) => {
                    trees.get(base as usize).cloned().flatten().unwrap_or_else(Tree::empty)
                }
                ManifestBase::Stored(base) => match stored_trees.get(&base) {
                    Some(tree) => tree.clone(),
                    None => {
                        let tree = self.stored_tree(&mut writer, &base)?;
                        stored_trees.insert(base, tree.clone());
                        tree
                    }
                },
            };
            let mut path_changes: Vec<PathChange<'_>> = Vec::with_capacity(changes.len());
            for change in changes {
                let path = manifests.paths.path(change.path);
                let file = match change.file() {
                    Some((file, flag)) => Some((self.blob(manifests, files, file, path)?, flag)),
                    None => None,
                };
                path_changes.push((path, file));
            }
            path_changes.sort_unstable_by_key(|(path, _)| *path);
            let tree = writer.update(&base, &path_changes)?;
            ids.push(tree.id);
            trees.push(Some(tree));
            while let Some((_, expired)) = expiring.next_if(|(last_use, _)| *last_use <= number) {
                if let Some(tree) = trees.get_mut(expired as usize) {
                    *tree = None;
                }
            }
            self.progress.advance(Phase::Trees, ids.len() as u64, Some(manifests.len() as u64));
        }
        if ids.contains(&EMPTY_TREE) {
            lock(self.pack).append_whole(ObjectKind::Tree, b"", &mut writer.deflater)?;
        }
        Ok(ids)
    }

    /// Returns the tree of a manifest of an earlier conversion. With paths that git does not have
    /// as they are, it is made from all lines.
    fn stored_tree(
        &self,
        writer: &mut TreeWriter<'_>,
        manifest: &Node,
    ) -> Result<Rc<Tree>, ConversionError> {
        let (id, text) = self.stored.look_up(|metadata, repository| {
            let id = metadata.tree_of_manifest(repository, manifest)?;
            Ok((id, metadata.manifest_text(repository, manifest)?))
        })?;
        let missing = || ConversionError::Damaged(format!("manifest {manifest} is missing"));
        let text = text.ok_or_else(missing)?;
        let has_empty_names = |line: &[u8]| {
            let path = line.split(|byte| *byte == 0).next().unwrap_or_default();
            path.starts_with(b"/") || memchr::memmem::find(path, b"//").is_some()
        };
        if !text.lines().any(has_empty_names) {
            return Ok(writer.read(id.ok_or_else(missing)?)?);
        }
        let mut changes = Vec::new();
        for line in text.lines() {
            let Some(line) = crate::manifest::ManifestLine::parse(line) else { continue };
            let blob = self.stored_blob(&line.file, line.path)?;
            changes.push((line.path, Some((blob, line.flag))));
        }
        Ok(writer.update(&Tree::empty(), &changes)?)
    }

    /// Returns the blob of a file revision with a number.
    fn blob(
        &self,
        manifests: &Manifests,
        files: &FileResults,
        number: u32,
        path: &[u8],
    ) -> Result<GitId, ConversionError> {
        match files.blobs.get(number as usize) {
            Some(blob) if !blob.is_null() => Ok(*blob),
            _ => self.stored_blob(&manifests.files.node(number), path),
        }
    }

    fn stored_blob(&self, node: &Node, path: &[u8]) -> Result<GitId, ConversionError> {
        if let Some(blob) = blob_of_empty_file(node) {
            return Ok(blob);
        }
        let file =
            self.stored.look_up(|metadata, repository| metadata.find_file(repository, node))?;
        let missing = || {
            let path = String::from_utf8_lossy(path);
            ConversionError::Damaged(format!("file {path}, revision {node} is missing"))
        };
        file.map(|file| file.blob).ok_or_else(missing)
    }

    /// Adds the manifests to the metadata.
    fn add_manifests(
        &mut self,
        manifests: &Manifests,
        chains: &[u32],
        trees: &[GitId],
    ) -> Result<(), ConversionError> {
        let mut pack = lock(self.pack);
        for (number, (tree, chain)) in trees.iter().zip(chains).enumerate() {
            let Some((manifest, changes)) = manifests.get(number as u32) else { continue };
            let base = match manifest.base {
                ManifestBase::Empty => None,
                ManifestBase::New(base) => manifests.get(base).map(|(base, _)| base.node),
                ManifestBase::Stored(base) => Some(base),
            };
            let mut lines: Vec<(&[u8], _)> = changes
                .iter()
                .map(|change| {
                    let file = change.file().map(|(file, flag)| (manifests.files.node(file), flag));
                    (manifests.paths.path(change.path), file)
                })
                .collect();
            lines.sort_unstable_by_key(|(path, _)| *path);
            let (node, tree, chain) = (manifest.node, *tree, *chain);
            let record = ManifestRecord { node, tree, base, chain, changes: &lines };
            self.segment.add_manifest(&mut pack, &record)?;
        }
        Ok(())
    }

    /// Writes the commits.
    fn write_commits(
        &mut self,
        changesets: &[NewChangeset],
        manifests: &Manifests,
        trees: &[GitId],
    ) -> Result<WrittenCommits, ConversionError> {
        let mut commits: Vec<(Node, GitId)> = Vec::with_capacity(changesets.len());
        let mut by_node: IdMap<Node, GitId> = IdMap::default();
        let mut used: IdMap<GitId, ()> = IdMap::default();
        let mut heads = Heads::new(lock(&self.stored.0).1.heads());
        let mut texts = self.segment.texts();
        let mut deflater = Deflater::new();
        for changeset in changesets {
            let NewChangeset { node, p1, p2 } = *changeset;
            let damaged =
                |what: &str| ConversionError::Damaged(format!("changeset {node}: {what}"));
            let text = texts.next(&mut lock(self.pack))?.unwrap_or_default();
            let parsed = Changeset::parse(text).ok_or_else(|| damaged("its text is damaged"))?;
            let tree = self.tree(&parsed.manifest, manifests, trees)?;
            let tree = tree.ok_or_else(|| damaged("its manifest is missing"))?;
            let mut parents = Vec::with_capacity(2);
            for parent in [p1, p2].into_iter().filter(|parent| !parent.is_null()) {
                let commit = match by_node.get(&parent) {
                    Some(commit) => Some(*commit),
                    None => self.stored_commit(&parent)?,
                };
                parents.push(commit.ok_or_else(|| damaged("a parent is missing"))?);
            }
            let mut content = commit_content(&parsed, tree, &parents);
            let mut id = object_id(ObjectKind::Commit, &content);
            // Changesets that differ only in what git does not keep would be one commit.
            while used.contains_key(&id) || self.is_stored_commit(&id)? {
                content.push(b'\n');
                id = object_id(ObjectKind::Commit, &content);
            }
            let object =
                EncodedObject::encode_whole(id, ObjectKind::Commit, &content, &mut deflater);
            lock(self.pack).append(&object)?;
            heads.add(changeset, &parsed);
            used.insert(id, ());
            by_node.insert(node, id);
            commits.push((node, id));
            self.progress.advance(
                Phase::Commits,
                commits.len() as u64,
                Some(changesets.len() as u64),
            );
        }
        let heads = heads.finish();
        let new = heads.iter().filter_map(|head| by_node.get(&head.node).copied());
        let head_commits = new.collect();
        Ok(WrittenCommits { commits, heads, head_commits })
    }

    /// Returns the tree of a manifest.
    fn tree(
        &self,
        node: &Node,
        manifests: &Manifests,
        trees: &[GitId],
    ) -> Result<Option<GitId>, ConversionError> {
        if node.is_null() {
            let mut pack = lock(self.pack);
            pack.append(&EncodedObject::encode_stored(EMPTY_TREE, ObjectKind::Tree, b""))?;
            return Ok(Some(EMPTY_TREE));
        }
        if let Some(number) = manifests.find(node) {
            return Ok(trees.get(number as usize).copied());
        }
        Ok(self
            .stored
            .look_up(|metadata, repository| metadata.tree_of_manifest(repository, node))?)
    }

    fn is_stored_commit(&self, commit: &GitId) -> Result<bool, ConversionError> {
        if !self.has_stored {
            return Ok(false);
        }
        let node =
            self.stored.look_up(|metadata, repository| metadata.changeset_of(repository, commit));
        Ok(node?.is_some())
    }

    /// Writes the metadata, and returns its commits before and after.
    fn write_metadata(
        self,
        files: &FileTable,
        mut results: FileResults,
        written: &WrittenCommits,
    ) -> Result<MetadataChange, ConversionError> {
        let mut rows = mem::take(&mut results.others);
        let converted = files.nodes().iter().zip(&results.blobs);
        rows.extend(
            converted.filter(|(_, blob)| !blob.is_null()).map(|(node, blob)| (*node, *blob)),
        );
        let mut pack = lock(self.pack);
        let segment =
            self.segment.finish(&mut pack, &written.commits, &mut rows, &mut results.copies)?;
        let mut state = lock(&self.stored.0);
        let (repository, metadata) = &mut *state;
        metadata.merge_segments(repository, &mut pack)?;
        let heads = NewHeads {
            heads: &written.heads,
            commits: &written.head_commits,
            history: metadata.history_commit(repository)?,
        };
        let new = metadata.write_commit(&mut pack, &mut Deflater::new(), &heads, segment)?;
        Ok(MetadataChange { old: metadata.commit(), new })
    }
}

/// Returns the hash of a revision: of its parents, the smaller one first, and its text.
fn hash_revision(p1: &Node, p2: &Node, text: &[u8]) -> Node {
    let mut hasher = Sha1::new();
    hasher.update(p1.min(p2).0);
    hasher.update(p1.max(p2).0);
    hasher.update(text);
    Node(hasher.finalize().into())
}
