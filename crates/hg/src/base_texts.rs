//! The texts of converted changesets, for bundles that build on them.

use crate::git::repository::GitDirectory;
use crate::metadata::Metadata;
use crate::object_id::Node;
use crate::peer::BaseTexts;
use std::path::Path;

/// Returns a function that finds the texts of the changesets that a git directory has. The
/// metadata is opened when the first one is needed.
pub fn stored_texts(directory: &Path) -> Box<BaseTexts> {
    let mut unopened = Some(directory.to_owned());
    let mut opened: Option<(GitDirectory, Metadata)> = None;
    Box::new(move |node: Node| {
        if let Some(directory) = unopened.take() {
            let mut repository = GitDirectory::new(&directory);
            let metadata = Metadata::open(&mut repository).ok()?;
            opened = Some((repository, metadata));
        }
        let (repository, metadata) = opened.as_mut()?;
        metadata.changeset_text(repository, &node).ok().flatten()
    })
}
