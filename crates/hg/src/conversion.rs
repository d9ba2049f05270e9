//! The conversion of changes to commits.
//!
//! Changes arrive as changesets, manifests and file revisions, while git's objects depend on each
//! other the other way round. Hence the phases: changesets are kept as texts, manifests as changed
//! lines, and files become blobs as they arrive, by several threads. At the end of the stream,
//! trees are made of lines and blobs, then commits of texts and trees, then the metadata. All
//! objects are in one pack, which appears with the ref of the metadata: an interrupted conversion
//! leaves nothing.

mod byte_budget;
mod changeset_phase;
mod commit_phase;
mod conversion_error;
mod conversion_options;
mod file_phase;
mod head_changesets;
mod progress;
mod recent_texts;
mod stored_state;

pub use conversion_error::ConversionError;
pub use conversion_options::ConversionOptions;
pub use progress::{FetchNotice, Phase, Progress};

use crate::file_conversion::blob_of_empty_file;
use crate::git::deflate::Deflater;
use crate::git::object::{EMPTY_TREE, ObjectKind};
use crate::git::pack_writer::{FinishedPack, PackWriter};
use crate::git::repository::{GitDirectory, RefChange};
use crate::manifest::{
    ExpectedParents, FileTable, Manifest, ManifestBase, ManifestText, Manifests,
};
use crate::metadata::{
    METADATA_REF, ManifestRecord, Metadata, MetadataWriter, NewHeads, encode_snapshot,
    is_snapshot_due,
};
use crate::mutex::lock;
use crate::object_id::{GitId, IdMap, Node};
use crate::oddity::{Oddity, OddityReport};
use crate::path_text::path_text;
use crate::revision::{ChangeSource, Revision, RevisionHeader};
use crate::tree::{PathChange, Tree, TreeWriter};
use commit_phase::{CommitWriter, ManifestTrees, WrittenCommits};
use file_phase::{FilePhase, FileResults};
use head_changesets::{Heads, NewChangeset};
use std::cell::RefCell;
use std::mem;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use stored_state::StoredState;

/// The results of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionSummary {
    /// The changesets that were new.
    pub changesets: usize,
    /// The objects of the pack, with those of the metadata.
    pub objects: usize,
    /// The bytes of the pack and its index.
    pub bytes: u64,
    /// The manifests that were checked only with others that were made from them: their texts were
    /// not hashed.
    pub unhashed_manifests: u64,
    /// The report of what was unusual in the changes that were new.
    pub oddities: OddityReport,
}

impl ConversionSummary {
    /// Adds the results of a later conversion.
    pub(crate) fn merge(&mut self, later: ConversionSummary) {
        self.changesets += later.changesets;
        self.objects += later.objects;
        self.bytes += later.bytes;
        self.unhashed_manifests += later.unhashed_manifests;
        self.oddities.merge(later.oddities);
    }
}

/// Converts changes into the objects of a git repository, and adds them to its metadata.
pub fn convert(
    repository: &GitDirectory,
    source: &mut dyn ChangeSource,
    options: ConversionOptions,
    progress: &mut dyn Progress,
) -> Result<ConversionSummary, ConversionError> {
    let mut reader = repository.share();
    let metadata = Metadata::open(&mut reader)?;
    let has_stored_manifests = !metadata.is_empty();
    let pack = Mutex::new(PackWriter::create(&repository.pack_folder()?)?);
    let stored = StoredState::new(reader, metadata);
    let conversion = Conversion {
        repository,
        stored: &stored,
        pack: &pack,
        segment: MetadataWriter::new(),
        has_stored_manifests,
        has_known_changesets: false,
        stored_bases: IdMap::default(),
        oddities: OddityReport::default(),
        padding: if options.pads_with_nul { 0 } else { b'\n' },
        progress,
    };
    let Some((summary, metadata)) = conversion.run(source, options.threads)? else {
        return Ok(ConversionSummary::default());
    };
    let pack = pack.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let finished = pack.finish()?;
    let FinishedPack { objects, bytes, .. } = finished;
    change_metadata(&mut stored.lock().0, &metadata)?;
    drop(finished);
    Ok(ConversionSummary { objects, bytes, ..summary })
}

/// Points the ref of the metadata at the new commit, if it still has the one from before.
fn change_metadata(
    repository: &mut GitDirectory,
    metadata: &MetadataChange,
) -> Result<(), ConversionError> {
    let change = RefChange {
        name: METADATA_REF.as_bytes().to_vec(),
        new: Some(metadata.new),
        old: Some(metadata.old.unwrap_or(GitId::NULL)),
    };
    let Err(error) = repository.change_refs(&[change]) else { return Ok(()) };
    if repository.resolve(METADATA_REF)? == metadata.old {
        return Err(error.into());
    }
    Err(ConversionError::Outdated)
}

/// The commits of the metadata before and after a conversion.
struct MetadataChange {
    old: Option<GitId>,
    new: GitId,
}

/// A manifest of an earlier conversion.
#[derive(Clone, Copy)]
struct StoredBaseManifest {
    /// The number of changes from the nearest manifest whose lines are all written.
    chain: u32,
    /// Whether git does not have all of its paths as they are.
    has_empty_names: bool,
}

struct Conversion<'c> {
    repository: &'c GitDirectory,
    stored: &'c StoredState,
    pack: &'c Mutex<PackWriter>,
    segment: MetadataWriter,
    has_stored_manifests: bool,
    /// Whether some of the changesets that come were converted before.
    has_known_changesets: bool,
    /// The manifests of earlier conversions that new ones are made from.
    stored_bases: IdMap<Node, StoredBaseManifest>,
    oddities: OddityReport,
    /// The byte that tells a commit from an equal one.
    padding: u8,
    progress: &'c mut dyn Progress,
}

impl Conversion<'_> {
    /// Converts all; `None` if nothing is new. The size of the pack is not known yet.
    fn run(
        mut self,
        source: &mut dyn ChangeSource,
        threads: NonZeroUsize,
    ) -> Result<Option<(ConversionSummary, MetadataChange)>, ConversionError> {
        let (changesets, parents) = self.read_changesets(source)?;
        if changesets.is_empty() {
            skip_rest(source)?;
            return Ok(None);
        }
        let (mut manifests, chains) = self.read_manifests(source, parents)?;
        let unhashed_manifests = manifests.count_unhashed();
        manifests.end_reading();
        let mut files = self.convert_files(source, &manifests.files, threads)?;
        self.oddities.merge(mem::take(&mut files.oddities));
        self.oddities.add_paths(manifests.paths.iter());
        let (trees, written) = self.write_trees_and_commits(&changesets, &manifests, &files)?;
        self.add_manifests(&manifests, &chains, &trees)?;
        let oddities = mem::take(&mut self.oddities);
        let change = self.write_metadata(files, &written)?;
        let changesets = changesets.len();
        let sizes = ConversionSummary::default();
        Ok(Some((ConversionSummary { changesets, unhashed_manifests, oddities, ..sizes }, change)))
    }

    fn report(&mut self, phase: Phase, done: usize, total: Option<usize>) {
        self.progress.advance(phase, done as u64, total.map(|total| total as u64));
    }

    /// Reads the manifests, which should have these parents. For each one, the number of changes is
    /// returned from the nearest manifest whose lines are all written.
    fn read_manifests(
        &mut self,
        source: &mut dyn ChangeSource,
        parents: ExpectedParents,
    ) -> Result<(Manifests, Vec<u32>), ConversionError> {
        let mut manifests = Manifests::new(parents);
        let added = self.collect_manifests(source, &mut manifests);
        // A text without its hash is the cause of what is wrong with those made from it.
        manifests.finish_checks()?;
        Ok((manifests, added?))
    }

    fn collect_manifests(
        &mut self,
        source: &mut dyn ChangeSource,
        manifests: &mut Manifests,
    ) -> Result<Vec<u32>, ConversionError> {
        let mut chains: Vec<u32> = Vec::new();
        let mut revision = Revision::empty();
        let stored = self.stored;
        let bases = RefCell::new(IdMap::default());
        let mut read = |base: &Node, known: &IdMap<Node, ManifestText>| {
            let (chain, text) = stored.look_up(|metadata, repository| {
                let chain = metadata.chain_of_manifest(repository, base)?;
                Ok((chain, metadata.manifest_text_with(repository, base, known)?))
            })?;
            if let Some(text) = &text {
                let has_empty_names = text.has_empty_names();
                bases.borrow_mut().insert(*base, StoredBaseManifest { chain, has_empty_names });
            }
            Ok::<_, ConversionError>(text)
        };
        while source.next_revision(&mut revision)? {
            let header = RevisionHeader::new(&revision);
            let node = header.node;
            // Mercurial sends the manifest of a parent again for a changeset that changes no file.
            // Made from another manifest, it could be the base of its own base.
            if self.has_stored_manifests && stored.has_manifest(&node)? {
                continue;
            }
            manifests.add(&header, &revision.delta, &mut read)?;
            let number = manifests.len() as u32 - 1;
            let Some((manifest, changes)) = manifests.get(number) else { continue };
            let before = match manifest.base {
                ManifestBase::Empty => None,
                ManifestBase::New(base) => chains.get(base as usize).copied(),
                ManifestBase::Stored(base) => bases.borrow().get(&base).map(|base| base.chain),
            };
            let chain = before.map_or(0, |before| before.saturating_add(changes.len() as u32));
            let text = manifests.newest_text();
            if is_snapshot_due(chain, text.map_or(0, ManifestText::len))
                && let Some(snapshot) = text.and_then(encode_snapshot)
            {
                self.segment.add_snapshot(&mut lock(self.pack), node, &snapshot)?;
                chains.push(0);
            } else {
                chains.push(chain);
            }
            self.report(Phase::Manifests, manifests.len(), None);
        }
        manifests.check_rest(&mut read)?;
        self.stored_bases = bases.into_inner();
        Ok(chains)
    }

    /// Reads the files and converts them by several threads.
    fn convert_files<'f>(
        &mut self,
        source: &mut dyn ChangeSource,
        files: &'f FileTable,
        threads: NonZeroUsize,
    ) -> Result<FileResults<'f>, ConversionError> {
        let known = if self.has_known_changesets {
            self.stored.look_up(|metadata, repository| metadata.file_nodes(repository))?
        } else {
            Vec::new()
        };
        let phase = FilePhase { files, known: &known, pack: self.pack, stored: self.stored };
        phase.convert(source, threads, self.progress)
    }

    /// Writes the trees of all manifests, and meanwhile the commits of the changesets whose trees
    /// are there.
    fn write_trees_and_commits(
        &mut self,
        changesets: &[NewChangeset],
        manifests: &Manifests,
        files: &FileResults<'_>,
    ) -> Result<(Vec<GitId>, WrittenCommits), ConversionError> {
        let (sender, receiver) = channel();
        let writer = CommitWriter {
            padding: self.padding,
            pack: self.pack,
            stored: self.stored,
            heads: self.stored.look_up(|metadata, _| Ok(Heads::new(metadata.heads())))?,
            trees: ManifestTrees::new(manifests.numbers(), receiver),
        };
        let texts = self.segment.texts();
        std::thread::scope(|scope| {
            let commits = scope.spawn(|| writer.write(changesets, texts));
            // Without trees, the commits end; the error to report is that of the trees.
            let trees = self.write_trees(manifests, files, &sender);
            drop(sender);
            let commits = commits.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let (trees, mut commits) = (trees?, commits?);
            self.oddities.merge(mem::take(&mut commits.oddities));
            self.report(Phase::Commits, changesets.len(), Some(changesets.len()));
            Ok((trees, commits))
        })
    }

    /// Writes the trees of all manifests, and returns their ids, which are sent on as they come.
    fn write_trees(
        &mut self,
        manifests: &Manifests,
        files: &FileResults<'_>,
        written: &Sender<GitId>,
    ) -> Result<Vec<GitId>, ConversionError> {
        let mut repository = self.repository.share();
        let mut writer = TreeWriter::new(self.pack, &mut repository);
        let mut expiring: Vec<(u32, u32)> = (0..manifests.len() as u32)
            .filter_map(|number| Some((manifests.get(number)?.0.last_use, number)))
            .collect();
        expiring.sort_unstable();
        let mut expiring = expiring.into_iter().peekable();
        let mut trees: Vec<Option<Rc<Tree>>> = Vec::with_capacity(manifests.len());
        let mut stored_trees: IdMap<Node, Rc<Tree>> = IdMap::default();
        let last_uses = last_uses_of_stored(manifests);
        let mut ids = Vec::with_capacity(manifests.len());
        for number in 0..manifests.len() as u32 {
            let Some((manifest, changes)) = manifests.get(number) else { continue };
            let base = match manifest.base {
                ManifestBase::Empty => Tree::empty(),
                ManifestBase::New(base) => {
                    let tree = trees.get(base as usize).cloned().flatten();
                    tree.ok_or_else(|| missing_tree(manifest))?
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
            if let ManifestBase::Stored(base) = &manifest.base
                && last_uses.get(base) == Some(&number)
            {
                stored_trees.remove(base);
            }
            ids.push(tree.id);
            // The writer of commits is gone only after an error, which it returns.
            let _sent = written.send(tree.id);
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
        for path in &writer.lost_paths {
            self.oddities.add(Oddity::LostPath, || path_text(path));
        }
        Ok(ids)
    }

    /// Returns the tree of a manifest of an earlier conversion.
    fn stored_tree(
        &self,
        writer: &mut TreeWriter<'_>,
        manifest: &Node,
    ) -> Result<Rc<Tree>, ConversionError> {
        let missing = || ConversionError::Damaged(format!("manifest {manifest} is missing"));
        let id = self
            .stored
            .look_up(|metadata, repository| metadata.tree_of_manifest(repository, manifest))?;
        let id = id.ok_or_else(missing)?;
        if self.stored_bases.get(manifest).is_some_and(|base| !base.has_empty_names) {
            return Ok(writer.read(id)?);
        }
        let text = self
            .stored
            .look_up(|metadata, repository| metadata.manifest_text(repository, manifest))?;
        let text = text.ok_or_else(missing)?;
        let blob_of = |file: &Node, path: &[u8]| self.stored_blob(file, path);
        writer.make_again(id, &text, blob_of, || {
            Ok(self.stored.look_up(|metadata, repository| {
                metadata.changes_since_empty(repository, manifest)
            })?)
        })
    }

    /// Returns the blob of a file revision with a number.
    fn blob(
        &self,
        manifests: &Manifests,
        files: &FileResults<'_>,
        number: u32,
        path: &[u8],
    ) -> Result<GitId, ConversionError> {
        match files.rows.blob(number) {
            Some(blob) => Ok(blob),
            None => self.stored_blob(&manifests.files.node(number), path),
        }
    }

    fn stored_blob(&self, node: &Node, path: &[u8]) -> Result<GitId, ConversionError> {
        if let Some(blob) = blob_of_empty_file(node) {
            return Ok(blob);
        }
        let file =
            self.stored.look_up(|metadata, repository| metadata.find_file(repository, node))?;
        let missing = || {
            let path = path_text(path);
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
            let parents = manifests.parents(manifest);
            let record = ManifestRecord { node, tree, base, parents, chain, changes: &lines };
            self.segment.add_manifest(&mut pack, &record)?;
        }
        Ok(())
    }

    /// Writes the metadata, and returns its commits before and after.
    fn write_metadata(
        self,
        mut results: FileResults<'_>,
        written: &WrittenCommits,
    ) -> Result<MetadataChange, ConversionError> {
        let mut pack = lock(self.pack);
        let files = results.rows.write(&mut pack)?;
        let segment =
            self.segment.finish(&mut pack, &written.commits, files, &mut results.copies)?;
        let mut state = self.stored.lock();
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

/// Returns the error of a manifest whose base has no tree any more: without it, all files but the
/// changed ones would be missing.
fn missing_tree(manifest: &Manifest) -> ConversionError {
    ConversionError::Damaged(format!("manifest {}: the tree of its base is missing", manifest.node))
}

/// Returns the last manifest that is made from each one of an earlier conversion.
fn last_uses_of_stored(manifests: &Manifests) -> IdMap<Node, u32> {
    let mut last_uses = IdMap::default();
    for number in 0..manifests.len() as u32 {
        if let Some((Manifest { base: ManifestBase::Stored(base), .. }, _)) = manifests.get(number)
        {
            last_uses.insert(*base, number);
        }
    }
    last_uses
}

/// Reads what is left of changes that are all known, so that the source is at its end.
fn skip_rest(source: &mut dyn ChangeSource) -> Result<(), ConversionError> {
    let mut revision = Revision::empty();
    while source.next_revision(&mut revision)? {}
    while source.next_file()?.is_some() {
        while source.next_revision(&mut revision)? {}
    }
    Ok(())
}
