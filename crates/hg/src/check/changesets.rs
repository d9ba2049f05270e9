//! The checks of changesets, their commits, and their heads.

use super::ConversionCheck;
use super::tables::{LoadedTables, NONE, report_segment};
use crate::changeset::Changeset;
use crate::commit::commit_content;
use crate::conversion::{Phase, Progress};
use crate::git::object::{EMPTY_TREE, ObjectKind, commit_parents, object_id};
use crate::git::object_stream::{StreamContent, StreamedObject};
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::metadata::segment_scan::{PieceName, SegmentScan, SegmentTable, read_piece};
use crate::metadata::{HeadChangeset, Metadata, MetadataError, RecordReader};
use crate::object_id::{GitId, Node};
use crate::revision::hash_revision;
use std::collections::{BTreeMap, HashSet};

/// The relations of changesets, by their numbers.
pub(super) struct ChangesetLinks {
    /// The numbers of the parents, or [`NONE`].
    pub(super) parents: Vec<[u32; 2]>,
    /// The number of the manifest, or [`NONE`].
    pub(super) manifests: Vec<u32>,
}

/// Checks the texts and commits of all changesets.
pub(super) fn check(
    repository: &mut GitDirectory,
    tables: &LoadedTables,
    report: &mut ConversionCheck,
    progress: &mut dyn Progress,
) -> Result<ChangesetLinks, MetadataError> {
    let count = tables.changesets.len();
    let links = ChangesetLinks { parents: vec![[NONE; 2]; count], manifests: vec![NONE; count] };
    let mut check = CommitCheck { tables, report, links };
    let objects = GitDirectory::new(repository.directory());
    for (number, segment) in tables.segments.iter().enumerate() {
        let mut texts = SegmentTexts::open(repository, segment)?;
        let start = tables.starts.get(number).copied().unwrap_or(0);
        let end = tables.starts.get(number + 1).copied().unwrap_or(count);
        let rows = tables.changesets.get(start..end).unwrap_or_default();
        let commits = rows.iter().map(|(_, commit)| *commit);
        let mut next = start;
        objects.stream_objects::<MetadataError>(commits, StreamContent::Contents, |commit| {
            let text = texts.next(repository);
            let text = check.report.absorb(text)?.flatten();
            check.check(next, commit, text.as_deref());
            next += 1;
            progress.advance(Phase::CheckedChangesets, next as u64, Some(count as u64));
            Ok(())
        })?;
        let left = texts.next(repository);
        if check.report.absorb(left)?.flatten().is_some() {
            report_segment(check.report, Some(segment), "it has texts without changesets");
        }
    }
    Ok(check.links)
}

/// The texts of a segment, one after the other.
struct SegmentTexts {
    pieces: std::vec::IntoIter<PieceName>,
    piece: Vec<u8>,
    position: usize,
    number: usize,
    is_ended: bool,
}

impl SegmentTexts {
    fn open(
        repository: &mut GitDirectory,
        segment: &SegmentScan,
    ) -> Result<SegmentTexts, MetadataError> {
        let pieces = segment.pieces(repository, SegmentTable::Texts)?.into_iter();
        Ok(SegmentTexts { pieces, piece: Vec::new(), position: 0, number: 0, is_ended: false })
    }

    /// Returns the next text; `None` at the end, or after an error.
    fn next(&mut self, repository: &mut GitDirectory) -> Result<Option<Vec<u8>>, MetadataError> {
        if self.is_ended {
            return Ok(None);
        }
        let text = self.read(repository);
        self.is_ended = !matches!(text, Ok(Some(_)));
        text
    }

    fn read(&mut self, repository: &mut GitDirectory) -> Result<Option<Vec<u8>>, MetadataError> {
        let mut id = GitId::NULL;
        if self.position == self.piece.len() {
            let Some(next) = self.pieces.next() else { return Ok(None) };
            id = next.id;
            self.piece = read_piece(repository, SegmentTable::Texts, id)?;
            self.position = 0;
            if !next.is_of(&(self.number as u32).to_be_bytes()) {
                return Err(MetadataError::Damaged(id));
            }
        }
        let rest = self.piece.get(self.position..).unwrap_or_default();
        let mut reader = RecordReader { rest };
        let text = reader.bytes().ok_or(MetadataError::Damaged(id))?.to_vec();
        self.position = self.piece.len() - reader.rest.len();
        self.number += 1;
        Ok(Some(text))
    }
}

struct CommitCheck<'c> {
    tables: &'c LoadedTables,
    report: &'c mut ConversionCheck,
    links: ChangesetLinks,
}

impl CommitCheck<'_> {
    fn check(&mut self, number: usize, commit: StreamedObject<'_>, text: Option<&[u8]>) {
        let Some((node, id)) = self.tables.changesets.get(number).copied() else { return };
        if let Err(what) = self.compare(number, node, commit, text) {
            self.report.add(format_args!("changeset {node}"), format!("{what} (commit {id})"));
        }
    }

    fn compare(
        &mut self,
        number: usize,
        node: Node,
        commit: StreamedObject<'_>,
        text: Option<&[u8]>,
    ) -> Result<(), &'static str> {
        if commit.kind != "commit" {
            return Err("git has no such commit");
        }
        let text = text.ok_or("its text is missing")?;
        let changeset = Changeset::parse(text).ok_or("its text is damaged")?;
        let commits: Vec<GitId> = commit_parents(commit.content).collect();
        let numbers: Option<Vec<u32>> =
            commits.iter().map(|parent| self.tables.commit_numbers.get(parent).copied()).collect();
        let numbers = numbers.ok_or("a parent of its commit is not the commit of a changeset")?;
        let parent = |place: usize| numbers.get(place).copied().unwrap_or(NONE);
        let node_of = |number: u32| {
            let row = self.tables.changesets.get(number as usize);
            row.map_or(Node::NULL, |(node, _)| *node)
        };
        let (p1, p2) = (parent(0), parent(1));
        if let Some(place) = self.links.parents.get_mut(number) {
            *place = [p1, p2];
        }
        let mut tree = EMPTY_TREE;
        if !changeset.manifest.is_null() {
            let manifest = self.tables.manifest_numbers.get(&changeset.manifest).copied();
            let manifest = manifest.ok_or("its manifest is missing")?;
            let row = self.tables.manifests.get(manifest as usize);
            tree = row.map_or(EMPTY_TREE, |row| row.tree);
            if let Some(place) = self.links.manifests.get_mut(number) {
                *place = manifest;
            }
        }
        if numbers.len() > 2 || hash_revision(&node_of(p1), &node_of(p2), [text]) != node {
            return Err("its text does not have its hash with the parents of its commit");
        }
        let expected = commit_content(&changeset, tree, &commits);
        let padding = commit.content.strip_prefix(expected.as_slice());
        let padding = padding.ok_or("its commit is not the one that its text gives")?;
        if !self.is_needed(expected, padding, commit.id) {
            return Err("its commit ends with bytes that its text does not give");
        }
        Ok(())
    }

    /// Returns whether a commit needs its padding, because those with less are of other
    /// changesets. git-cinnabar padded with NUL before version 0.7.
    fn is_needed(&self, mut content: Vec<u8>, padding: &[u8], id: GitId) -> bool {
        padding.iter().all(|byte| {
            let shorter = object_id(ObjectKind::Commit, &content);
            content.push(*byte);
            matches!(*byte, b'\n' | 0)
                && shorter != id
                && self.tables.commit_numbers.contains_key(&shorter)
        })
    }
}

/// Compares the heads with the changesets that have no children.
pub(super) fn check_heads(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    tables: &LoadedTables,
    links: &ChangesetLinks,
    report: &mut ConversionCheck,
) -> Result<(), MetadataError> {
    let mut has_child = vec![false; tables.changesets.len()];
    for parent in links.parents.as_flattened() {
        if let Some(place) = has_child.get_mut(*parent as usize) {
            *place = true;
        }
    }
    let mut listed: BTreeMap<Node, HeadChangeset> =
        metadata.heads().iter().map(|head| (head.node, head.clone())).collect();
    if listed.len() != metadata.heads().len() {
        report.add("heads", "one is listed twice");
    }
    let childless = tables.changesets.iter().zip(has_child).filter(|(_, has_child)| !has_child);
    for ((node, _), _) in childless {
        let text = metadata.changeset_text(repository, node);
        let text = report.absorb(text)?.flatten();
        let Some(changeset) = text.as_deref().and_then(Changeset::parse) else { continue };
        let (branch, is_closed) = (changeset.branch().to_vec(), changeset.closes_branch());
        let head = HeadChangeset { node: *node, is_closed, branch };
        match listed.remove(node) {
            None => report.add(format_args!("changeset {node}"), "it is a head, but not listed"),
            Some(other) if other != head => {
                report.add(format_args!("changeset {node}"), "it is listed as another head");
            }
            Some(_) => {}
        }
    }
    for node in listed.into_keys() {
        report.add(format_args!("changeset {node}"), "it is listed as a head, and is none");
    }
    Ok(())
}

/// Checks that the history commit reaches all commits, so that git keeps them.
pub(super) fn check_history(
    repository: &mut GitDirectory,
    metadata: &Metadata,
    tables: &LoadedTables,
    report: &mut ConversionCheck,
) -> Result<(), MetadataError> {
    let Some(history) = metadata.history_commit(repository)? else {
        report.add("history", "the commit that keeps it is missing");
        return Ok(());
    };
    // All that it reaches, because git leaves out too little when asked for what it does not reach:
    // it goes by the dates of commits, and those of history commits are 0.
    let args = ["--end-of-options".to_string(), history.to_string()];
    match repository.run("rev-list", args, b"") {
        Ok(output) => {
            let kept: HashSet<GitId> =
                output.split(|byte| *byte == b'\n').filter_map(GitId::from_hex).collect();
            for (_, commit) in tables.changesets.iter().filter(|(_, id)| !kept.contains(id)) {
                report.add(format_args!("commit {commit}"), "the history commit does not keep it");
            }
        }
        Err(GitDirectoryError::Failed { message, .. }) => {
            report.add("history", format_args!("git cannot walk it: {message}"));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
