//! Revisions of one item in one file: the first pass finds the newest, the second rejects the
//! others.
//!
//! Some programs export an event as often as it was changed. RFC 5545, 3.8.7.4, and RFC 5546,
//! 2.1.5, order the revisions by SEQUENCE. Items with the same UID and SEQUENCE are often different
//! events, so all of them are kept. Separate from `prescan`, which reads the file; a stream is read
//! once, and all its items are kept.

use super::calendar::{EnclosingCalendar, ItipMethod};
use larder_format::item_revision::ItemRevision;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};

/// The reason for rejecting an older revision.
pub(super) const OLDER_REVISION_REASON: &str =
    "the file has a newer revision of this item, by SEQUENCE";
/// The items of a file that are compared with each other; for further ones nothing is known.
const MAX_COMPARED_ITEMS: usize = 1 << 17;

/// The revisions in a file, while it is read for the first time.
#[derive(Default)]
pub(super) struct RevisionScan {
    /// SEQUENCE of the first revision, by the hash of its item. No file can choose these hashes.
    first: FxHashMap<u64, u64>,
    newest: NewestRevisions,
}

/// The newest revisions of the items that have several in a file.
#[derive(Default)]
pub(super) struct NewestRevisions {
    /// The highest SEQUENCE, by the hash of the item.
    sequences: FxHashMap<u64, u64>,
    state: RandomState,
}

impl RevisionScan {
    /// Adds a component of this calendar.
    pub(super) fn add(&mut self, calendar: &EnclosingCalendar, bytes: &[u8]) {
        let Some((key, sequence)) = self.newest.read_revision(calendar, bytes) else { return };
        let is_full = self.first.len() >= MAX_COMPARED_ITEMS;
        match self.first.entry(key) {
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(new) => drop(new.insert(sequence)),
            Entry::Occupied(known) if *known.get() == sequence => {}
            Entry::Occupied(known) => {
                let highest = self.newest.sequences.entry(key).or_insert(*known.get());
                *highest = sequence.max(*highest);
            }
        }
    }

    /// Returns the newest revisions of the whole file.
    pub(super) fn finish(&mut self) -> NewestRevisions {
        std::mem::take(self).newest
    }
}

impl NewestRevisions {
    /// Returns whether the file has a newer revision of a component of this calendar.
    pub(super) fn has_newer(&self, calendar: &EnclosingCalendar, bytes: &[u8]) -> bool {
        if self.sequences.is_empty() {
            return false;
        }
        let Some((key, sequence)) = self.read_revision(calendar, bytes) else { return false };
        self.sequences.get(&key).is_some_and(|newest| sequence < *newest)
    }

    /// Returns the hash of the item and its SEQUENCE. Messages that do not replace an item as a
    /// whole are no revisions of it.
    fn read_revision(&self, calendar: &EnclosingCalendar, bytes: &[u8]) -> Option<(u64, u64)> {
        let is_whole = matches!(calendar.method, ItipMethod::None | ItipMethod::Publish);
        let revision = ItemRevision::read(bytes).filter(|_| is_whole)?;
        let key = (&*calendar.name, revision.uid, revision.recurrence_id);
        Some((self.state.hash_one(key), revision.sequence))
    }
}
