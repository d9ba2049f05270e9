//! The files of a store as a repository.

use crate::bundle::StorePart;
use crate::local::LocalPeer;
use crate::object_id::Node;
use crate::peer::Peer as _;
use crate::revision::{ChangeError, ChangeSource};
use crate::scratch_folder::ScratchFolder;
use crate::store_stream::unpack_with_progress;
use std::path::Path;

/// A store in a temporary folder, which is removed with this value.
pub(crate) struct UnpackedStore {
    peer: LocalPeer,
    _folder: ScratchFolder,
}

impl UnpackedStore {
    /// Writes the files of a part to a new folder in `scratch`, and opens them. `report` is called
    /// with the number of files so far and of all.
    pub(crate) fn unpack(
        part: &mut StorePart<'_>,
        scratch: &Path,
        report: &mut dyn FnMut(u64, u64),
    ) -> Result<UnpackedStore, ChangeError> {
        let folder = ScratchFolder::create(scratch).map_err(ChangeError::Scratch)?;
        unpack_with_progress(part, folder.path(), report)?;
        let peer = LocalPeer::open_store(folder.path())?;
        Ok(UnpackedStore { peer, _folder: folder })
    }

    /// The repository.
    pub(crate) fn peer(&mut self) -> &mut LocalPeer {
        &mut self.peer
    }

    /// Returns the changes that lead to `heads`, or to all heads if none are named, without the
    /// ancestors of `common`. Nodes that are not in the store are left out.
    pub(crate) fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        let mut known = self.peer.find_known(heads)?.into_iter();
        let mut known_heads = heads.to_vec();
        known_heads.retain(|_| known.next().unwrap_or_default());
        if known_heads.is_empty() && !heads.is_empty() {
            // Without heads, all changes would come.
            known_heads.push(Node::NULL);
        }
        self.peer.changes(&known_heads, common)
    }
}
