//! Which manifests have the hash that they are named by, without hashing all of them.
//!
//! The text of a manifest is made from that of its base, so a mistake in it is in those made from
//! it, too, until a line with the mistake changes again. Hence the rule: between two manifests of a
//! chain that were hashed, no path appears, disappears or changes its flag twice. Before a path
//! would, the base of the second change is hashed. And the end of each chain is hashed.
//!
//! A damaged delta cannot pass. A damaged node names no file revision, which the conversion finds:
//! those have their hashes. What else damage does, adds or removes lines or changes a flag, and a
//! later delta would have to undo that. Not seen are deltas that somebody made to fit each other,
//! with a revision that a file has in a later or earlier manifest; `larder hg fsck --full` hashes
//! all texts.

use super::hasher::ManifestHasher;
use super::{ManifestBase, ManifestError, ManifestText};
use crate::revision::RevisionHeader;
use std::collections::HashMap;

/// The bytes of texts that are hashed for each byte of a delta, beside those that the rule asks
/// for. Without a limit, the bytes to hash would grow with the number of files times that of
/// manifests, those of the deltas only with the changes.
const CHECK_RATIO: u64 = 16;
/// The bytes added to the delta of each revision in that ratio, so that all manifests of a small
/// repository are checked.
const REVISION_BYTES: u64 = 100;

/// The manifests that are not known to have their hashes, and the paths that they change.
#[derive(Default)]
pub(super) struct HashChecks {
    /// The bytes of texts that may be hashed now.
    credit: u64,
    unchecked: HashMap<u32, UncheckedManifest, rustc_hash::FxBuildHasher>,
    /// By the number of a path: how often these manifests add, remove or flag it.
    changed: Vec<u32>,
    unhashed: u64,
    hasher: ManifestHasher,
}

struct UncheckedManifest {
    header: RevisionHeader,
    base: ManifestBase,
    /// The paths that it adds, removes or flags.
    paths: Vec<u32>,
}

impl HashChecks {
    /// Takes the bytes of a delta, and returns whether they pay for hashing a text.
    pub(super) fn pay(&mut self, delta_len: usize, text_len: usize) -> bool {
        self.credit += CHECK_RATIO * (delta_len as u64 + REVISION_BYTES);
        let left = self.credit.checked_sub(text_len as u64);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }

    /// Adds a manifest that is not checked yet, with the paths that it adds, removes or flags.
    pub(super) fn add(
        &mut self,
        number: u32,
        header: RevisionHeader,
        base: ManifestBase,
        paths: Vec<u32>,
    ) {
        for path in &paths {
            let path = *path as usize;
            if path >= self.changed.len() {
                self.changed.resize(path + 1, 0);
            }
            if let Some(count) = self.changed.get_mut(path) {
                *count += 1;
            }
        }
        self.unchecked.insert(number, UncheckedManifest { header, base, paths });
    }

    /// Returns whether a manifest must be checked before these paths of it are added, removed or
    /// flagged.
    pub(super) fn is_check_due(&self, number: u32, paths: &[u32]) -> bool {
        let is_changed =
            |path: &u32| self.changed.get(*path as usize).is_some_and(|count| *count > 0);
        self.is_unchecked(number) && paths.iter().any(is_changed)
    }

    #[cfg(test)]
    pub(super) fn spend_credit(&mut self) {
        self.credit = 0;
    }

    /// Returns how many manifests were checked with others that were made from them.
    pub(super) fn count_unhashed(&self) -> u64 {
        self.unhashed
    }

    pub(super) fn is_unchecked(&self, number: u32) -> bool {
        self.unchecked.contains_key(&number)
    }

    /// Gives the text of a manifest to be hashed, and with it those that it was made from are
    /// checked. The error is that of an earlier one.
    pub(super) fn check(
        &mut self,
        mut number: u32,
        text: &ManifestText,
    ) -> Result<(), ManifestError> {
        if let Some(UncheckedManifest { header, .. }) = self.unchecked.get(&number) {
            self.hasher.add(*header, text.clone())?;
        }
        let mut is_hashed = true;
        while let Some(UncheckedManifest { base, paths, .. }) = self.unchecked.remove(&number) {
            self.unhashed += u64::from(!is_hashed);
            is_hashed = false;
            for path in paths {
                if let Some(count) = self.changed.get_mut(path as usize) {
                    *count = count.saturating_sub(1);
                }
            }
            let ManifestBase::New(base) = base else { break };
            number = base;
        }
        Ok(())
    }

    /// Waits for the hashes. The error is that of the first text given that does not have its hash.
    pub(super) fn finish(&mut self) -> Result<(), ManifestError> {
        self.hasher.finish()
    }
}
