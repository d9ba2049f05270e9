//! The hashes of manifests: a thread makes them, while the next manifests are read.

use super::{ManifestError, ManifestText};
use crate::object_id::Node;
use crate::revision::{RevisionHeader, hashed_parents};
use crate::sha1_pair::hash_pair;
use std::iter::once;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The texts that wait for the thread. They share most of their pieces with those that are kept.
const MAX_WAITING_TEXTS: usize = 8;

/// How long a text waits for another one to be hashed with.
const PAIR_TIMEOUT: Duration = Duration::from_millis(100);

type WaitingText = (RevisionHeader, ManifestText);

/// Compares texts with the hashes that they should have.
#[derive(Default)]
pub(super) struct ManifestHasher {
    /// The thread, from the first text on. It ends at a text that does not have its hash, which it
    /// returns.
    thread: Option<(SyncSender<WaitingText>, JoinHandle<Option<Node>>)>,
}

impl ManifestHasher {
    /// Adds a text. The error is that of a text before.
    pub(super) fn add(
        &mut self,
        header: RevisionHeader,
        text: ManifestText,
    ) -> Result<(), ManifestError> {
        if self.thread.is_none() {
            let (sender, receiver) = sync_channel(MAX_WAITING_TEXTS);
            let thread = Builder::new().name("manifest hashes".into());
            let started = thread.spawn(move || find_damage(&receiver));
            self.thread = started.ok().map(|thread| (sender, thread));
        }
        let Some((queue, _)) = &self.thread else {
            // The system gives no more threads.
            let has_hash = header.is_hash_of(text.pieces());
            return if has_hash { Ok(()) } else { Err(damage_error(header.node)) };
        };
        match queue.send((header, text)) {
            Ok(()) => Ok(()),
            Err(_) => self.finish(),
        }
    }

    /// Waits for the hashes of all texts. The error is that of the first one given without its
    /// hash.
    pub(super) fn finish(&mut self) -> Result<(), ManifestError> {
        let Some((queue, thread)) = self.thread.take() else { return Ok(()) };
        drop(queue);
        match thread.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            Some(node) => Err(damage_error(node)),
            None => Ok(()),
        }
    }
}

fn damage_error(node: Node) -> ManifestError {
    ManifestError::Damaged { node, what: "its text does not have its hash" }
}

/// Returns the first manifest whose text does not have its hash.
fn find_damage(queue: &Receiver<WaitingText>) -> Option<Node> {
    let has_hash = |(header, text): &WaitingText| header.is_hash_of(text.pieces());
    while let Ok(first) = queue.recv() {
        // A server may be silent for minutes; the text before is not kept waiting for that.
        let Ok(second) = queue.recv_timeout(PAIR_TIMEOUT) else {
            if has_hash(&first) {
                continue;
            }
            return Some(first.0.node);
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
