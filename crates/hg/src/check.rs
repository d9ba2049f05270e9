//! Checking what conversions left: the metadata by its hashes, and the objects of git by it.
//!
//! The ids of Mercurial are hashes of a text and the ids of its parents, so that the metadata can
//! be checked without the repository it came from. The parents of a changeset are the changesets of
//! its commit's parents; the metadata has those of manifests and of file revisions.
//!
//! git-cinnabar does not keep the parents of file revisions. Where they are not known, the check
//! tries the revisions of the path in the parents of a manifest that has the revision, then any
//! revisions of that path: two, one, or none. A revision is whole if it has its hash with one of
//! these.
//!
//! The fast check has all of changesets and commits, the tables, and the existence and the kinds
//! of trees and blobs. The full check makes the texts of all manifests and their trees again, and
//! reads all blobs.

mod changesets;
mod files;
mod manifests;
mod tables;

use crate::conversion::Progress;
use crate::file_conversion::EMPTY_FILE;
use crate::git::repository::{GitDirectory, GitDirectoryError};
use crate::metadata::{Metadata, MetadataError, current_state};
use crate::object_id::GitId;
use std::fmt::Display;
use std::path::Path;
use tables::LoadedTables;

/// The most faults that are kept with their texts.
const MAX_LISTED: usize = 100;

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Changesets, commits and tables, and which objects are there.
    Fast,
    /// Also the texts of manifests and files.
    Full,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionCheck {
    /// The commit of the metadata that was checked; `None` without any.
    pub state: Option<GitId>,
    /// The changesets.
    pub changesets: usize,
    /// The manifests.
    pub manifests: usize,
    /// The file revisions, without the one that is empty in all repositories.
    pub file_revisions: usize,
    /// The file revisions whose hash is that of another text: censored ones, and pointers of LFS.
    /// Counted by full checks.
    pub without_hash: usize,
    /// The file revisions whose parents are not known, because git-cinnabar does not keep them.
    pub without_parents: usize,
    /// Those of them that no manifest has, whose texts are not checked. Counted by full checks.
    pub without_manifest: usize,
    /// The first faults, one line each.
    pub faults: Vec<String>,
    /// The number of all faults.
    pub fault_count: usize,
}

impl ConversionCheck {
    fn add(&mut self, subject: impl Display, what: impl Display) {
        self.fault_count += 1;
        if self.faults.len() < MAX_LISTED {
            self.faults.push(format!("{subject}: {what}"));
        }
    }

    /// Turns an error about the content of the metadata into a fault, and returns `None`; others
    /// end the check.
    fn absorb<T>(&mut self, result: Result<T, MetadataError>) -> Result<Option<T>, MetadataError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(
                error @ (MetadataError::Damaged(_)
                | MetadataError::MissingManifest(_)
                | MetadataError::CyclicManifest(_)
                | MetadataError::Git(GitDirectoryError::Missing { .. })),
            ) => {
                self.add("metadata", error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks the metadata of a repository and the objects that it names; a repository without any has
/// no faults.
pub fn check_conversion(
    directory: &Path,
    depth: CheckDepth,
    progress: &mut dyn Progress,
) -> Result<ConversionCheck, MetadataError> {
    let mut repository = GitDirectory::new(directory);
    // A fetch may move the ref meanwhile: the result is about this state.
    let state = current_state(&mut repository)?;
    let mut report = ConversionCheck { state, ..ConversionCheck::default() };
    let opened = Metadata::open_state(&mut repository, state);
    let Some(mut metadata) = report.absorb(opened)? else { return Ok(report) };
    check_metadata(&mut repository, &mut metadata, depth, report, progress)
}

/// Checks a state of the metadata, which need not be that of the ref.
pub(crate) fn check_metadata(
    repository: &mut GitDirectory,
    metadata: &mut Metadata,
    depth: CheckDepth,
    mut report: ConversionCheck,
    progress: &mut dyn Progress,
) -> Result<ConversionCheck, MetadataError> {
    if metadata.commit().is_none() {
        return Ok(report);
    }
    let tables = LoadedTables::read(repository, metadata, &mut report)?;
    report.changesets = tables.changesets.len();
    report.manifests = tables.manifest_numbers.len();
    report.file_revisions = tables.files.iter().filter(|(node, _)| *node != EMPTY_FILE).count();
    report.without_parents = tables.count_without_parents();
    // Texts cannot be made of tables with gaps, and each of them would be a fault.
    let has_gaps = report.fault_count > 0;
    let links = changesets::check(repository, &tables, &mut report, progress);
    let Some(links) = report.absorb(links)? else { return Ok(report) };
    changesets::check_heads(repository, metadata, &tables, &links, &mut report)?;
    changesets::check_history(repository, metadata, &tables, &mut report)?;
    manifests::check_objects(repository, &tables, &mut report)?;
    if depth == CheckDepth::Full && !has_gaps {
        let mentions = manifests::check_texts(repository, metadata, &tables, &mut report, progress);
        if let Some(mentions) = report.absorb(mentions)? {
            let texts = files::check_texts(repository, &tables, &mentions, &mut report, progress);
            report.absorb(texts)?;
        }
    }
    Ok(report)
}
