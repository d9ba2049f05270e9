//! The checks of manifests and their trees.

use super::ConversionCheck;
use super::files::FileMentions;
use super::tables::{LoadedTables, NONE, UNKNOWN};
use crate::conversion::{Phase, Progress};
use crate::git::object::{EMPTY_BLOB, EMPTY_TREE};
use crate::git::object_stream::{StreamContent, StreamedObject};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::manifest::{ChangedFile, ManifestText};
use crate::metadata::segment_scan::{SegmentTable, read_piece};
use crate::metadata::{Metadata, MetadataError, StoredManifest, encode_snapshot};
use crate::object_id::{GitId, Node};
use crate::revision::hash_revision;
use crate::tree::{Tree, TreeWriter};
use std::collections::HashMap;
use std::rc::Rc;

/// The number of manifests that are kept; when twice as many are there, those used last stay.
const KEPT_MANIFESTS: usize = 256;

/// Checks that git has the trees and blobs, and that they are such.
pub(super) fn check_objects(
    repository: &GitDirectory,
    tables: &LoadedTables,
    report: &mut ConversionCheck,
) -> Result<(), MetadataError> {
    let trees = tables.manifests.iter().map(|manifest| manifest.tree);
    let blobs = tables.files.iter().map(|(_, blob)| *blob);
    let mut seen = 0;
    let objects = trees.chain(blobs);
    repository.stream_objects::<GitDirectoryError>(objects, StreamContent::Kinds, |object| {
        let manifest = tables.manifests.get(seen);
        let expected = if manifest.is_some() { "tree" } else { "blob" };
        let StreamedObject { id, kind, .. } = object;
        // git has those two without keeping them.
        if kind != expected && id != EMPTY_TREE && id != EMPTY_BLOB {
            let what = format_args!("git has no {expected} {id}");
            if let Some(manifest) = manifest {
                report.add(format_args!("manifest {}", manifest.node), what);
            } else if let Some((node, _)) = tables.files.get(seen - tables.manifests.len()) {
                report.add(format_args!("file revision {node}"), what);
            }
        }
        seen += 1;
        Ok(())
    })?;
    Ok(())
}

/// A manifest whose text and tree are known.
#[derive(Clone)]
struct KnownManifest {
    text: ManifestText,
    tree: Rc<Tree>,
    /// The manifest that used it last.
    user: u32,
}

/// Makes the texts and trees of all manifests again, and compares them with their hashes and ids.
/// Returns where file revisions are mentioned first.
pub(super) fn check_texts(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    tables: &LoadedTables,
    report: &mut ConversionCheck,
    progress: &mut dyn Progress,
) -> Result<FileMentions, MetadataError> {
    let needs_parents = report.without_parents > 0;
    let mut tree_repository = GitDirectory::new(repository.directory());
    let mut check = ManifestCheck {
        tables,
        metadata,
        lookups: GitDirectory::new(repository.directory()),
        trees: TreeWriter::without_pack(&mut tree_repository),
        last_uses: last_uses(tables, needs_parents),
        needs_parents,
        known: HashMap::default(),
        chains: Vec::with_capacity(tables.manifests.len()),
        mentions: FileMentions::new(tables.files.len()),
        report,
    };
    let total = tables.manifests.len() as u64;
    tables.each_manifest(repository, |number, manifest| {
        let checked = check.check(number, &manifest);
        check.report.absorb(checked)?;
        check.drop_old(number);
        progress.advance(Phase::CheckedManifests, u64::from(number) + 1, Some(total));
        Ok(())
    })?;
    Ok(check.mentions)
}

/// Returns the last manifest that needs each one, as its base or, if these are needed, its parent.
fn last_uses(tables: &LoadedTables, needs_parents: bool) -> Vec<u32> {
    let mut last_uses: Vec<u32> = (0..tables.manifests.len() as u32).collect();
    for (number, manifest) in (0..).zip(&tables.manifests) {
        let parents = if needs_parents { manifest.parents } else { [NONE; 2] };
        for used in [manifest.base, parents[0], parents[1]] {
            if let Some(place) = last_uses.get_mut(used as usize) {
                *place = (*place).max(number);
            }
        }
    }
    last_uses
}

struct ManifestCheck<'c, 't> {
    tables: &'c LoadedTables,
    metadata: &'c mut Metadata,
    lookups: GitDirectory,
    trees: TreeWriter<'t>,
    last_uses: Vec<u32>,
    /// Whether there are file revisions whose parents are found in those of manifests.
    needs_parents: bool,
    known: HashMap<u32, KnownManifest, rustc_hash::FxBuildHasher>,
    /// For each manifest the number of changes since one with all lines.
    chains: Vec<u32>,
    mentions: FileMentions,
    report: &'c mut ConversionCheck,
}

impl ManifestCheck<'_, '_> {
    fn check(&mut self, number: u32, manifest: &StoredManifest) -> Result<(), MetadataError> {
        let node = manifest.node;
        let base = self.tables.manifests.get(number as usize).map_or(NONE, |row| row.base);
        let known = self.recall(base, number)?;
        let text = known.text.with_changes(&manifest.changes);
        let [p1, p2] = &manifest.parents;
        if hash_revision(p1, p2, text.pieces()) != node {
            let what = "its text does not have its hash with its parents";
            self.report.add(format_args!("manifest {node}"), what);
        }
        let tree = self.trees.update_files(&known.tree, &manifest.changes, blob_of(self.tables))?;
        if tree.id != manifest.tree {
            let what = format_args!("its tree is {}, not {}", tree.id, manifest.tree);
            self.report.add(format_args!("manifest {node}"), what);
        }
        self.check_chain(base, manifest, &text)?;
        self.mention_files(number, &manifest.changes)?;
        self.known.insert(number, KnownManifest { text, tree, user: number });
        Ok(())
    }

    /// Returns a manifest that was checked before.
    fn recall(&mut self, number: u32, user: u32) -> Result<KnownManifest, MetadataError> {
        if let Some(known) = self.known.get_mut(&number) {
            known.user = user;
            return Ok(known.clone());
        }
        let Some(manifest) = self.tables.manifests.get(number as usize) else {
            return Ok(KnownManifest { text: ManifestText::default(), tree: Tree::empty(), user });
        };
        let text = self.metadata.manifest_text(&mut self.lookups, &manifest.node)?;
        let text = text.ok_or(MetadataError::MissingManifest(manifest.node))?;
        let tree = if text.has_empty_names() {
            let (node, lookups) = (&manifest.node, &mut self.lookups);
            let all_changes = || self.metadata.changes_since_empty(lookups, node);
            self.trees.make_again(manifest.tree, &text, blob_of(self.tables), all_changes)?
        } else {
            self.trees.read(manifest.tree)?
        };
        let known = KnownManifest { text, tree, user };
        self.known.insert(number, known.clone());
        Ok(known)
    }

    /// Checks what makes reading of texts fast: the lengths of chains, and the manifests with all
    /// lines.
    fn check_chain(
        &mut self,
        base: u32,
        manifest: &StoredManifest,
        text: &ManifestText,
    ) -> Result<(), MetadataError> {
        let node = manifest.node;
        let before = self.chains.get(base as usize).copied();
        let chain = before.map_or(0, |before| before.saturating_add(manifest.changes.len() as u32));
        let mut is_right = manifest.chain == chain;
        if let Some(snapshot) = self.tables.snapshots.get(&node) {
            let lines = read_piece(&mut self.lookups, SegmentTable::Snapshots, *snapshot)?;
            if encode_snapshot(text).as_deref() != Some(&lines) {
                self.report.add(format_args!("manifest {node}"), "its snapshot has other lines");
            }
            // One that came again has the snapshot only in the first place.
            is_right |= manifest.chain == 0;
        }
        self.chains.push(manifest.chain);
        if !is_right {
            let what = format_args!("its chain has {chain} changes, not {}", manifest.chain);
            self.report.add(format_args!("manifest {node}"), what);
        }
        Ok(())
    }

    /// Notes the file revisions that are new in a manifest; if their parents are not known, with
    /// the revisions of the same paths in its parents.
    fn mention_files(&mut self, number: u32, changes: &[ChangedFile]) -> Result<(), MetadataError> {
        let parents = self.parents_of(number);
        let mut texts: Option<[ManifestText; 2]> = None;
        for (path, file) in changes {
            let Some((file, _)) = file else { continue };
            let Some(file) = self.tables.file_number(file) else { continue };
            if self.mentions.has(file) {
                continue;
            }
            if self.tables.parents.get(file as usize) != Some(&UNKNOWN) {
                self.mentions.add(file, path, [NONE; 2]);
                continue;
            }
            if texts.is_none() {
                let first = self.recall(parents[0], number)?.text;
                texts = Some([first, self.recall(parents[1], number)?.text]);
            }
            let before = texts.as_ref().map(|texts| {
                texts.each_ref().map(|text| {
                    let found = text.find(path);
                    found.and_then(|file| self.tables.file_number(&file)).unwrap_or(NONE)
                })
            });
            self.mentions.add(file, path, before.unwrap_or([NONE; 2]));
        }
        Ok(())
    }

    /// Returns the parents of a manifest if they are needed.
    fn parents_of(&self, number: u32) -> [u32; 2] {
        let manifest = self.tables.manifests.get(number as usize);
        manifest.filter(|_| self.needs_parents).map_or([NONE; 2], |manifest| manifest.parents)
    }

    /// Forgets manifests that are not needed any more, and the oldest of too many.
    fn drop_old(&mut self, number: u32) {
        let parents = self.parents_of(number);
        let base = self.tables.manifests.get(number as usize).map_or(NONE, |row| row.base);
        for used in [number, base, parents[0], parents[1]] {
            if self.last_uses.get(used as usize).is_some_and(|last| *last <= number) {
                self.known.remove(&used);
            }
        }
        if self.known.len() > 2 * KEPT_MANIFESTS {
            let mut users: Vec<u32> = self.known.values().map(|known| known.user).collect();
            let (_, limit, _) = users.select_nth_unstable(KEPT_MANIFESTS);
            let limit = *limit;
            self.known.retain(|_, known| known.user > limit);
        }
    }
}

/// Finds blobs. That each file revision has one was checked before.
fn blob_of(tables: &LoadedTables) -> impl Fn(&Node, &[u8]) -> Result<GitId, MetadataError> {
    |file, _| Ok(tables.blob(file).unwrap_or(GitId::NULL))
}
