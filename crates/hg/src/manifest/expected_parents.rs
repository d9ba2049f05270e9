//! The parents that manifests have to have: the manifests of the parents of their changesets.
//!
//! The hash of a manifest is over its parents, too. One that is not hashed has nothing but its
//! changeset to compare them with. Apart from the manifests, because the changesets come first.

use crate::object_id::Node;
use crate::revision::RevisionHeader;
use std::hash::{BuildHasher as _, BuildHasherDefault};

/// The manifests of changesets with their parents, as hashes of eight bytes.
#[derive(Default)]
pub(crate) struct ExpectedParents {
    hashes: Vec<u64>,
}

impl ExpectedParents {
    /// Adds the manifest of a changeset, and those of the changeset's parents; null: none.
    pub(crate) fn add(&mut self, manifest: Node, parents: [Node; 2]) {
        self.hashes.push(hash(manifest, parents));
    }

    /// Ends the additions.
    pub(super) fn sort(&mut self) {
        self.hashes.sort_unstable();
    }

    /// Returns whether a manifest has the parents that a changeset gives it.
    pub(super) fn has(&self, header: &RevisionHeader) -> bool {
        self.hashes.binary_search(&hash(header.node, [header.p1, header.p2])).is_ok()
    }
}

/// Hashes a manifest and its parents, which have no order.
fn hash(manifest: Node, [p1, p2]: [Node; 2]) -> u64 {
    let nodes = [manifest.0, p1.min(p2).0, p1.max(p2).0];
    BuildHasherDefault::<rustc_hash::FxHasher>::default().hash_one(nodes)
}
