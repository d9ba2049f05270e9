//! The changes between two states of a repository on disk, as a server would send them
//! (mercurial/changegroup.py).

use crate::changeset::Changeset;
use crate::line_delta::{write_manifest_delta, write_range_delta};
use crate::local::change_scope::ChangeScope;
use crate::local::foreign_links::ForeignLinks;
use crate::local::layout::read_optional;
use crate::local::local_error::LocalError;
use crate::local::revlog_group::RevlogGroup;
use crate::local::snapshot::Snapshot;
use crate::local::store_path::decode_folders;
use crate::object_id::Node;
use crate::path_text::path_text;
use crate::revision::{ChangeError, ChangeSource, Revision};
use crate::revision_set::RevisionSet;
use crate::revlog::{ChunkDecoder, Revlog};
use std::collections::HashSet;

/// The group that is being read.
enum ChangeStage {
    Changelog(RevlogGroup),
    Manifest(Box<(Revlog, RevlogGroup)>),
    /// The files that remain, sorted, and the one being read.
    Files(std::vec::IntoIter<Vec<u8>>, Option<Box<OpenFile>>),
}

/// The file whose group is being read.
struct OpenFile {
    path: Vec<u8>,
    filelog: Revlog,
    group: RevlogGroup,
}

/// A source of changes that reads them from the store.
pub(crate) struct LocalChanges<'a> {
    snapshot: &'a mut Snapshot,
    decoder: &'a mut ChunkDecoder,
    scope: ChangeScope,
    stage: ChangeStage,
    /// The manifest of each changeset sent, with its revision number; sorted after the changelog.
    manifests: Vec<(Node, u32)>,
    paths: HashSet<Vec<u8>>,
    foreign: ForeignLinks,
}

impl<'a> LocalChanges<'a> {
    /// Prepares the changes that lead to `heads`, without the ancestors of `common`.
    pub(crate) fn new(
        snapshot: &'a mut Snapshot,
        decoder: &'a mut ChunkDecoder,
        heads: &[Node],
        common: &[Node],
    ) -> Result<LocalChanges<'a>, ChangeError> {
        let scope = ChangeScope::new(snapshot, heads, common)?;
        let group = RevlogGroup::new(scope.missing.clone(), write_range_delta);
        Ok(LocalChanges {
            snapshot,
            decoder,
            scope,
            stage: ChangeStage::Changelog(group),
            manifests: Vec::new(),
            paths: HashSet::new(),
            foreign: ForeignLinks::default(),
        })
    }

    fn read_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        match &mut self.stage {
            ChangeStage::Changelog(group) => {
                let Some(number) = group.next_selected() else {
                    self.begin_manifests()?;
                    return Ok(false);
                };
                let changelog = &mut self.snapshot.changelog;
                let text = changelog.read_text(number, self.decoder)?;
                let changeset = Changeset::parse(text).ok_or_else(|| damaged_text(number))?;
                let manifest = changeset.manifest;
                for path in changeset.files() {
                    if !self.paths.contains(path) {
                        self.paths.insert(path.to_vec());
                    }
                }
                if !manifest.is_null() {
                    self.manifests.push((manifest, number));
                }
                group.write(changelog, number, &self.scope, self.decoder, revision)?;
                revision.link = revision.node;
            }
            ChangeStage::Manifest(open) => {
                let (manifest, group) = open.as_mut();
                let Some(number) = group.next_selected() else {
                    self.begin_files();
                    return Ok(false);
                };
                group.write(manifest, number, &self.scope, self.decoder, revision)?;
                let link = find_manifest(&self.manifests, revision.node);
                let Some(link) = link else { return Ok(true) };
                self.foreign.scan(manifest, number, revision, link, self.decoder)?;
                revision.link = self.snapshot.changelog.node(Some(link));
            }
            ChangeStage::Files(_, None) => return Ok(false),
            ChangeStage::Files(_, Some(open)) => {
                let OpenFile { path, filelog, group } = open.as_mut();
                let Some(number) = group.next_selected() else {
                    self.end_file();
                    return Ok(false);
                };
                group.write(filelog, number, &self.scope, self.decoder, revision)?;
                let link = filelog.entry(number).and_then(|entry| entry.link());
                let link = link
                    .filter(|link| self.scope.missing.contains(*link))
                    .or_else(|| self.foreign.link(path, revision.node));
                revision.link = self.snapshot.changelog.node(link);
            }
        }
        Ok(true)
    }

    /// Opens the manifest, and selects its revisions that the changesets name. A changeset without
    /// changes has the manifest of its parent, which is sent again, as a server does.
    fn begin_manifests(&mut self) -> Result<(), ChangeError> {
        // Of the changesets that share a manifest, the first one stays.
        self.manifests.sort_unstable();
        self.manifests.dedup_by_key(|(node, _)| *node);
        let layout = &self.snapshot.layout;
        let index = layout.store.join("00manifest.i");
        let opened = Revlog::open(index.clone(), layout.store.join("00manifest.d"))?;
        let manifest = opened.unwrap_or_else(|| Revlog::without_revisions(index));
        let mut selected = RevisionSet::new(manifest.len());
        let mut found = 0;
        for (number, entry) in (0..).zip(manifest.entries()) {
            if find_manifest(&self.manifests, entry.node).is_some() {
                selected.insert(number);
                found += 1;
            }
        }
        if found < self.manifests.len() {
            return Err(self.name_missing_manifest(&manifest));
        }
        if self.scope.common.is_empty() {
            self.add_listed_files()?;
        }
        if self.scope.has_others {
            self.foreign =
                ForeignLinks::collect(&self.snapshot.layout, self.paths.iter(), &self.scope)?;
        }
        let group = RevlogGroup::new(selected, write_manifest_delta);
        self.stage = ChangeStage::Manifest(Box::new((manifest, group)));
        Ok(())
    }

    fn name_missing_manifest(&self, manifest: &Revlog) -> ChangeError {
        let present: HashSet<Node> = manifest.entries().iter().map(|entry| entry.node).collect();
        let missing = self.manifests.iter().find(|(node, _)| !present.contains(node));
        let what = missing.map_or_else(String::new, |(node, changeset)| {
            let changeset = self.snapshot.changelog.node(Some(*changeset));
            format!("manifest {node} of changeset {changeset} is missing")
        });
        ChangeError::Damaged { what }
    }

    /// Adds the files that the store lists. A server looks at the lists of the changesets only,
    /// which some old converters left incomplete.
    fn add_listed_files(&mut self) -> Result<(), LocalError> {
        let layout = &self.snapshot.layout;
        if !layout.has_file_list {
            return Ok(());
        }
        let list = read_optional(&layout.store.join("fncache"))?.unwrap_or_default();
        // The list has file names: paths without empty components.
        let is_odd = |path: &&Vec<u8>| path.split(|byte| *byte == b'/').any(<[u8]>::is_empty);
        let odd: HashSet<Vec<u8>> =
            self.paths.iter().filter(is_odd).map(|path| without_empty_components(path)).collect();
        for line in list.split(|byte| *byte == b'\n') {
            let path = line.strip_prefix(b"data/").and_then(|line| line.strip_suffix(b".i"));
            let Some(path) = path.map(decode_folders) else { continue };
            if !odd.contains(&path) {
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    fn begin_files(&mut self) {
        self.manifests = Vec::new();
        let mut paths: Vec<Vec<u8>> = self.paths.drain().collect();
        paths.sort_unstable();
        self.stage = ChangeStage::Files(paths.into_iter(), None);
    }

    fn end_file(&mut self) {
        if let ChangeStage::Files(_, open) = &mut self.stage {
            *open = None;
        }
    }

    /// Opens the next file that has revisions to be sent.
    fn open_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        let mut unread = Revision::empty();
        while !matches!(self.stage, ChangeStage::Files(..)) {
            self.read_revision(&mut unread)?;
        }
        let ChangeStage::Files(paths, open) = &mut self.stage else { return Ok(None) };
        *open = None;
        for path in paths {
            let Some((index, data)) = self.snapshot.layout.filelog(&path) else {
                let path = path_text(&path);
                return Err(ChangeError::Damaged {
                    what: format!("the path {path} leaves the store"),
                });
            };
            let Some(filelog) = Revlog::open(index, data)? else { continue };
            let mut selected = RevisionSet::new(filelog.len());
            for (number, entry) in (0..).zip(filelog.entries()) {
                let is_missing = self.scope.is_missing(entry.link());
                if is_missing || self.foreign.link(&path, entry.node).is_some() {
                    selected.insert(number);
                }
            }
            if !selected.is_empty() {
                let group = RevlogGroup::new(selected, write_range_delta);
                *open = Some(Box::new(OpenFile { path: path.clone(), filelog, group }));
                return Ok(Some(path));
            }
        }
        self.snapshot.check_unchanged()?;
        Ok(None)
    }

    /// Tells a removal of changesets, which leads to all kinds of errors, from damage.
    fn explain(&self, error: ChangeError) -> ChangeError {
        match self.snapshot.check_unchanged() {
            Ok(()) => error,
            Err(removal) => removal.into(),
        }
    }
}

impl ChangeSource for LocalChanges<'_> {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        self.read_revision(revision).map_err(|error| self.explain(error))
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        self.open_file().map_err(|error| self.explain(error))
    }
}

/// Returns the first changeset with this manifest.
fn find_manifest(manifests: &[(Node, u32)], node: Node) -> Option<u32> {
    let position = manifests.binary_search_by_key(&node, |(node, _)| *node).ok()?;
    manifests.get(position).map(|(_, changeset)| *changeset)
}

fn without_empty_components(path: &[u8]) -> Vec<u8> {
    let components = path.split(|byte| *byte == b'/').filter(|component| !component.is_empty());
    components.collect::<Vec<_>>().join(&b'/')
}

fn damaged_text(changeset: u32) -> ChangeError {
    ChangeError::Damaged { what: format!("revision {changeset} of the changelog is no changeset") }
}
