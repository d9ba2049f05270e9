//! The interface of a repository that changes are taken from, wherever it is.

use crate::bundle::{BundleContent, StorePart};
use crate::object_id::Node;
use crate::received_bytes::ReceivedBytes;
use crate::revision::{ChangeError, ChangeSource};
use std::path::Path;

/// The branches, heads and bookmarks of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRefs {
    /// The named branches in the order of the server, percent-encoded as in the protocol (`~` and
    /// `/` are not), each with its heads in the order of their revision numbers.
    pub branches: Vec<BranchHeads>,
    /// The heads of the whole history, the newest one first; empty for a repository without
    /// changesets.
    pub heads: Vec<Node>,
    /// The bookmarks, by names as they are.
    pub bookmarks: Vec<(Vec<u8>, Node)>,
}

/// A named branch, percent-encoded, and its heads.
pub type BranchHeads = (Vec<u8>, Vec<Node>);

/// Returns the text of a changeset that this side has, `None` for others.
pub type BaseTexts = dyn FnMut(Node) -> Option<Vec<u8>> + Send;

/// A repository that changes are taken from: a server, a directory or a bundle.
pub trait Peer {
    /// Reads branches, heads and bookmarks, in one round trip where that is possible.
    fn refs(&mut self) -> Result<PeerRefs, ChangeError>;

    /// Returns the heads that [`Peer::refs`] has read; none where a question about changesets costs
    /// nothing.
    fn listed_heads(&self) -> &[Node] {
        &[]
    }

    /// Returns for each node whether the repository has it.
    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError>;

    /// Returns the node of a revision named by a user: a name, or the beginning of a node.
    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError>;

    /// Returns the changes that lead to `heads`, or to all heads if none are named, without the
    /// ancestors of `common`, which are nodes that the repository has. Where not all of them can be
    /// told, it is the first ones. The peer is not used until the changes were read to the end.
    fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError>;

    /// Returns the lines in which the repository names places that have its metadata; `None` if
    /// there are none ([`crate::CloneSource`]).
    fn shared_metadata(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        Ok(None)
    }

    /// Returns the URLs of the bundles that the repository recommends for a first clone and that
    /// can be read here, the best one first. Changes that are newer than a bundle are missing
    /// from it.
    fn clone_bundles(&mut self) -> Result<Vec<String>, ChangeError> {
        Ok(Vec::new())
    }

    /// Opens such a bundle. `None`: the connection to the repository does not lead there, and
    /// another one is needed.
    fn open_clone_bundle(&mut self, url: &str) -> Result<Option<BundleContent<'_>>, ChangeError> {
        let _ = url;
        Ok(None)
    }

    /// Returns the files of the store for a first clone, if the server offers them and they are
    /// wanted. They hold all changesets of the server, also such that it does not show.
    fn store_files(&mut self) -> Result<Option<StorePart<'_>>, ChangeError> {
        Ok(None)
    }

    /// Returns whether its changes build on others, which it does not have.
    fn is_partial(&mut self) -> Result<bool, ChangeError> {
        Ok(false)
    }

    /// Returns whether its refs are all that the repository has. Those of a bundle are of the
    /// changesets in it, whatever else the repository had.
    fn has_all_refs(&self) -> bool {
        true
    }

    /// Returns how many changesets it has and does not show, as far as that is known.
    fn hidden_changesets(&self) -> u64 {
        0
    }

    /// Returns the counter of the bytes that arrive; it stays at 0 for a repository on this
    /// machine.
    fn received_bytes(&self) -> ReceivedBytes {
        ReceivedBytes::default()
    }

    /// Sets the source of the texts of changesets that this side has. Without one, the names cannot
    /// be read of a bundle whose changesets are deltas of others.
    fn set_base_texts(&mut self, texts: Box<BaseTexts>) {
        drop(texts);
    }

    /// Sets the folder for large temporary files. Without one, a bundle with the files of a store
    /// cannot be read.
    fn set_scratch_folder(&mut self, folder: &Path) {
        let _ = folder;
    }
}
