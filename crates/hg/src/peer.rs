//! The interface of a repository that changes are taken from, wherever it is.

use crate::object_id::Node;
use crate::revision::{ChangeError, ChangeSource};

/// The branches, heads and bookmarks of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRefs {
    /// The named branches in the order of the server, percent-encoded as in the protocol (`~` and
    /// `/` are not), each with its heads in the order of their revision numbers.
    pub branches: Vec<BranchHeads>,
    /// The heads of the whole history; empty for a repository without changesets.
    pub heads: Vec<Node>,
    /// The bookmarks, by names as they are.
    pub bookmarks: Vec<(Vec<u8>, Node)>,
}

/// A named branch, percent-encoded, and its heads.
pub type BranchHeads = (Vec<u8>, Vec<Node>);

/// A bundle that a repository recommends for a first clone.
pub struct RecommendedBundle<'a> {
    /// Where the bundle is.
    pub url: String,
    /// The changes of the bundle.
    pub source: Box<dyn ChangeSource + 'a>,
}

/// A repository that changes are taken from: a server, a directory or a bundle.
pub trait Peer {
    /// Reads branches, heads and bookmarks, in one round trip where that is possible.
    fn refs(&mut self) -> Result<PeerRefs, ChangeError>;

    /// Returns for each node whether the repository has it.
    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError>;

    /// Returns the node of a revision named by a user: a name, or the beginning of a node.
    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError>;

    /// Returns the changes that lead to `heads`, without the ancestors of `common`, which are
    /// nodes that the repository has. The peer is not used until the changes were read to the end.
    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError>;

    /// Returns the bundle that the repository recommends for a first clone; `None` if there is none
    /// that can be read. Changes that are newer than the bundle are missing from it.
    fn clone_bundle(&mut self) -> Result<Option<RecommendedBundle<'_>>, ChangeError> {
        Ok(None)
    }
}
