//! The files of a store as a repository.

use crate::bundle::StorePart;
use crate::local::LocalPeer;
use crate::object_id::Node;
use crate::peer::Peer as _;
use crate::revision::{ChangeError, ChangeSource, Revision};
use crate::scratch_folder::ScratchFolder;
use crate::store_stream::unpack_with_progress;
use std::io;
use std::path::Path;

/// A store in a temporary folder, which is removed with this value.
pub(crate) struct UnpackedStore {
    peer: LocalPeer,
    folder: ScratchFolder,
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
        let opened = unpack_with_progress(part, folder.path(), report)
            .and_then(|()| Ok(LocalPeer::open_store(folder.path())?));
        let peer = opened.map_err(|error| name_in_store(error, folder.path()))?;
        Ok(UnpackedStore { peer, folder })
    }

    /// Asks the repository.
    pub(crate) fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut LocalPeer) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        question(&mut self.peer).map_err(|error| name_in_store(error, self.folder.path()))
    }

    /// Returns the changes that lead to `heads`, or to all heads if none are named, without the
    /// ancestors of `common`. Nodes that are not in the store are left out.
    pub(crate) fn changes(
        &mut self,
        heads: &[Node],
        common: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        let mut known = self.ask(|peer| peer.find_known(heads))?.into_iter();
        let mut known_heads = heads.to_vec();
        known_heads.retain(|_| known.next().unwrap_or_default());
        if known_heads.is_empty() && !heads.is_empty() {
            // Without heads, all changes would come.
            known_heads.push(Node::NULL);
        }
        let folder = self.folder.path();
        match self.peer.changes(&known_heads, common) {
            Ok(changes) => Ok(Box::new(StoreChanges { changes, folder })),
            Err(error) => Err(name_in_store(error, folder)),
        }
    }
}

/// Changes whose errors name files by their places in the store.
struct StoreChanges<'a> {
    changes: Box<dyn ChangeSource + 'a>,
    folder: &'a Path,
}

impl ChangeSource for StoreChanges<'_> {
    fn next_revision(&mut self, revision: &mut Revision) -> Result<bool, ChangeError> {
        let read = self.changes.next_revision(revision);
        read.map_err(|error| name_in_store(error, self.folder))
    }

    fn next_file(&mut self) -> Result<Option<Vec<u8>>, ChangeError> {
        self.changes.next_file().map_err(|error| name_in_store(error, self.folder))
    }
}

/// Takes the temporary folder out of an error: it is gone when a person reads that.
fn name_in_store(error: ChangeError, folder: &Path) -> ChangeError {
    let prefix = format!("{}/", folder.display());
    let shorten = |text: &str| text.replace(&prefix, "");
    match error {
        ChangeError::Damaged { what } => ChangeError::Damaged { what: shorten(&what) },
        ChangeError::Unsupported { what } => ChangeError::Unsupported { what: shorten(&what) },
        ChangeError::Read(error) if error.to_string().contains(&prefix) => {
            ChangeError::Read(io::Error::new(error.kind(), shorten(&error.to_string())))
        }
        error => error,
    }
}
