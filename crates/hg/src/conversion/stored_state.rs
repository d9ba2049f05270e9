//! The results of earlier conversions, for several threads.

use crate::file_conversion::{FileError, StoredText, StoredTexts, lock};
use crate::git::repository::GitDirectory;
use crate::metadata::{Metadata, MetadataError};
use crate::object_id::Node;
use std::sync::Mutex;

/// The repository and what earlier conversions left in it, for several threads.
pub(super) struct StoredState(pub(super) Mutex<(GitDirectory, Metadata)>);

impl StoredState {
    pub(super) fn look_up<T>(
        &self,
        look: impl FnOnce(&mut Metadata, &mut GitDirectory) -> Result<T, MetadataError>,
    ) -> Result<T, MetadataError> {
        let mut state = lock(&self.0);
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
