//! The hashes of manifests, by a thread of its own, so that manifests are read meanwhile.

use super::{ManifestError, ManifestText};
use crate::object_id::Node;
use crate::revision::{RevisionHeader, hashed_parents};
use crate::sha1_pair::hash_pair;
use std::iter::once;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The texts that wait for the thread. They share most of their pieces with those that are kept.
const MAX_WAITING: usize = 8;

type HashedText = (RevisionHeader, ManifestText);

/// Compares texts with the hashes that they should have.
#[derive(Default)]
pub(super) struct ManifestHasher {
    /// The thread, from the first text on. It ends at a text that does not have its hash, which it
    /// returns.
    thread: Option<(SyncSender<HashedText>, JoinHandle<Option<Node>>)>,
}

impl ManifestHasher {
    /// Adds a text. The error is that of a text before.
    pub(super) fn add(
        &mut self,
        header: RevisionHeader,
        text: ManifestText,
    ) -> Result<(), ManifestError> {
        let (queue, _) = self.thread.get_or_insert_with(|| {
            let (sender, receiver) = sync_channel(MAX_WAITING);
            (sender, std::thread::spawn(move || find_damage(&receiver)))
        });
        match queue.send((header, text)) {
            Ok(()) => Ok(()),
            Err(_) => self.finish(),
        }
    }

    /// Waits for the hashes of all texts. The error is that of the first text without its hash.
    pub(super) fn finish(&mut self) -> Result<(), ManifestError> {
        let Some((queue, thread)) = self.thread.take() else { return Ok(()) };
        drop(queue);
        let what = "its text does not have its hash";
        match thread.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            Some(node) => Err(ManifestError::Damaged { node, what }),
            None => Ok(()),
        }
    }
}

/// Returns the first manifest whose text does not have its hash.
fn find_damage(queue: &Receiver<HashedText>) -> Option<Node> {
    let has_hash = |(header, text): &HashedText| header.is_hash_of(text.pieces());
    while let Ok(first) = queue.recv() {
        let Ok(second) = queue.recv() else {
            return (!has_hash(&first)).then_some(first.0.node);
        };
        let texts = [&first, &second];
        let parents = texts.map(|(header, _)| hashed_parents(&header.p1, &header.p2));
        let [one, other] = &parents;
        let hashes = hash_pair([
            once(one.as_slice()).chain(first.1.pieces()),
            once(other.as_slice()).chain(second.1.pieces()),
        ]);
        let nodes = texts.map(|(header, _)| header.node);
        let damaged = nodes.into_iter().zip(hashes).find(|(node, hash)| node.0 != *hash);
        if let Some((node, _)) = damaged {
            return Some(node);
        }
    }
    None
}
