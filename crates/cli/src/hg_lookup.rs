//! From changesets to commits, and back, for commands that take their names.

use larder_hg::{GitDirectory, GitDirectoryError, GitId, Metadata, MetadataError, Node};
use std::error::Error;

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("{id} is the beginning of {count} changesets")]
    Ambiguous { id: String, count: usize },
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    #[error(transparent)]
    Git(#[from] GitDirectoryError),
}

/// Returns what a person can do after an error of the metadata.
pub(crate) fn metadata_advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let own = error.downcast_ref::<MetadataError>();
    let of_lookup = error.downcast_ref().and_then(|error| match error {
        LookupError::Metadata(error) => Some(error),
        _ => None,
    });
    own.or(of_lookup)?.advice()
}

/// The metadata of a repository, open for lookups.
pub(crate) struct HgLookup {
    pub(crate) repository: GitDirectory,
    pub(crate) metadata: Metadata,
}

impl HgLookup {
    pub(crate) fn open(mut repository: GitDirectory) -> Result<HgLookup, MetadataError> {
        let metadata = Metadata::open(&mut repository)?;
        Ok(HgLookup { repository, metadata })
    }

    /// Returns the changeset that an id, or the beginning of one, names.
    pub(crate) fn find_node(&mut self, id: &str) -> Result<Option<Node>, LookupError> {
        if let Some(node) = Node::from_hex(id.as_bytes()) {
            return Ok(Some(node));
        }
        let nodes = self.metadata.find_by_prefix(&mut self.repository, id)?;
        match nodes.as_slice() {
            [] => Ok(None),
            [node] => Ok(Some(*node)),
            _ => Err(LookupError::Ambiguous { id: id.to_owned(), count: nodes.len() }),
        }
    }

    /// Returns the commit of a changeset.
    pub(crate) fn find_commit(&mut self, id: &str) -> Result<Option<GitId>, LookupError> {
        let Some(node) = self.find_node(id)? else { return Ok(None) };
        Ok(self.metadata.commit_of(&mut self.repository, &node)?)
    }

    /// Returns the changeset of a commit, by any name that git takes. `report` is told why a name
    /// cannot have one; a commit of git alone has none for no such reason, and neither does the id
    /// that git has in place of none.
    pub(crate) fn find_changeset(
        &mut self,
        name: &str,
        report: impl FnOnce(&str),
    ) -> Result<Option<Node>, LookupError> {
        let commit = self.repository.resolve(&format!("{name}^{{commit}}"))?;
        let Some(commit) = commit else {
            let is_none = GitId::from_hex(name.as_bytes()).is_some_and(|id| id.is_null());
            if !is_none {
                report(&format!("git has no commit with the name {name:?}"));
            }
            return Ok(None);
        };
        Ok(self.metadata.changeset_of(&mut self.repository, &commit)?)
    }
}
