//! The results of earlier conversions, for several threads.

use crate::file_conversion::{FileError, StoredText, StoredTexts};
use crate::git::repository::GitDirectory;
use crate::metadata::{Metadata, MetadataError};
use crate::mutex::lock;
use crate::object_id::{GitId, Node};
use std::sync::{Mutex, MutexGuard};

/// The repository and what earlier conversions left in it, for several threads.
pub(super) struct StoredState {
    state: Mutex<(GitDirectory, Metadata)>,
    is_empty: bool,
}

impl StoredState {
    pub(super) fn new(repository: GitDirectory, metadata: Metadata) -> StoredState {
        let is_empty = metadata.is_empty();
        StoredState { state: Mutex::new((repository, metadata)), is_empty }
    }

    /// Returns the repository and the metadata, for one thread.
    pub(super) fn lock(&self) -> MutexGuard<'_, (GitDirectory, Metadata)> {
        lock(&self.state)
    }

    /// Returns the commit of a changeset.
    pub(super) fn commit_of(&self, changeset: &Node) -> Result<Option<GitId>, MetadataError> {
        if self.is_empty {
            return Ok(None);
        }
        self.look_up(|metadata, repository| metadata.commit_of(repository, changeset))
    }

    /// Returns whether a commit is that of a changeset.
    pub(super) fn has_commit(&self, commit: &GitId) -> Result<bool, MetadataError> {
        if self.is_empty {
            return Ok(false);
        }
        let node = self.look_up(|metadata, repository| metadata.changeset_of(repository, commit));
        Ok(node?.is_some())
    }

    /// Returns whether a manifest was converted before.
    pub(super) fn has_manifest(&self, manifest: &Node) -> Result<bool, MetadataError> {
        let tree =
            self.look_up(|metadata, repository| metadata.tree_of_manifest(repository, manifest))?;
        Ok(tree.is_some())
    }

    pub(super) fn look_up<T>(
        &self,
        look: impl FnOnce(&mut Metadata, &mut GitDirectory) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let mut state = self.lock();
        let (repository, metadata) = &mut *state;
        look(metadata, repository)
    }
}

impl StoredTexts for StoredState {
    fn read(&self, node: &Node) -> Result<Option<StoredText>, FileError> {
        let read = self.look_up(|metadata, repository| {
            let Some(file) = metadata.find_file(repository, node)? else { return Ok(None) };
            let content = repository.read_content(&file.blob)?;
            Ok(Some(StoredText { metadata: file.metadata, content }))
        });
        read.map_err(|error| FileError::Stored(Box::new(error)))
    }
}
