//! The events of an import while it runs ([`ImportEvent`]), and its result ([`ImportReport`]).
//!
//! Separate from the import because a caller that shows a report needs nothing else.

use larder_store::{ChangeOutcome, Kind, OperationId};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// An event of a running import. Events come from the calling thread, in the order of the input,
/// except those about second items with one UID, which are known only after their batch is written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportEvent<'a> {
    /// Input was rejected.
    Rejected(&'a ImportDiagnostic),
    /// An item was imported with a problem.
    Warning(&'a ImportDiagnostic),
    /// A file or folder could not be read to its end.
    Unreadable(&'a ImportDiagnostic),
    /// The progress.
    Progress {
        /// The number of bytes read; all but the last 12 MB or so are processed.
        bytes_done: u64,
        /// The number of bytes to read. `None`: unknown.
        bytes_total: Option<u64>,
        /// The number of items that are in the store: added, updated, added under a derived UID, or
        /// unchanged.
        items: u64,
    },
}

/// A diagnostic for a place in the input. Its text is `FILE:LINE: REASON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDiagnostic {
    /// The file's name as it was given, or "standard input".
    pub file: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u64,
    /// The reason: short, without a final period.
    pub reason: String,
}

impl ImportDiagnostic {
    pub(super) fn for_file(file: String, reason: String) -> ImportDiagnostic {
        ImportDiagnostic { file, line: 0, reason }
    }
}

impl fmt::Display for ImportDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.reason),
            line => write!(f, "{}:{line}: {}", self.file, self.reason),
        }
    }
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The number of files read to their end.
    pub files: u64,
    /// The number of new items, including items added under a derived UID.
    pub added: u64,
    /// The number of items with new bytes.
    pub updated: u64,
    /// The number of cancellations that marked an item.
    pub cancelled: u64,
    /// The number of items that had the same bytes, or were cancelled already.
    pub unchanged: u64,
    /// The number of the new items whose UID another item of this import has, and that are kept
    /// under a UID derived from their bytes.
    pub uid_conflicts: u64,
    /// The number of rejected stretches of the input.
    pub rejected: u64,
    /// The number of these that are items of a kind that their collection does not hold.
    pub misplaced: u64,
    /// The number of warnings about imported items, and about empty files and folders.
    pub warnings: u64,
    /// The number of time-zone definitions in the input.
    pub zones_defined: u64,
    /// The number of different definitions that items use, and that are kept.
    pub zones_kept: u64,
    /// The imported items by collection and kind, in the order of the input.
    pub counts: Vec<CollectionCounts>,
    /// The collections of all imported items, in the order of the input.
    pub collections: Vec<String>,
    /// The number of bytes read.
    pub bytes: u64,
    /// The operation, for undo. `None` if nothing changed.
    pub operation: Option<OperationId>,
    /// Files and folders that could not be read to their end.
    pub unreadable: Vec<ImportDiagnostic>,
    /// The file of rejected input, if one was written.
    pub rejects_file: Option<PathBuf>,
    /// Whether the import was stopped early.
    pub interrupted: bool,
}

/// The imported items of one kind in one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionCounts {
    /// The collection.
    pub collection: Arc<str>,
    /// The kind.
    pub kind: Kind,
    /// The number of new items, including items added under a derived UID.
    pub added: u64,
    /// The number of items with new bytes.
    pub updated: u64,
    /// The number of cancellations that marked an item.
    pub cancelled: u64,
    /// The number of items that had the same bytes, or were cancelled already.
    pub unchanged: u64,
}

impl ImportReport {
    /// Counts an item of a kind in a collection.
    pub(super) fn count_outcome(
        &mut self,
        collection: &Arc<str>,
        kind: Kind,
        outcome: &ChangeOutcome,
    ) {
        self.count(collection, kind, |taken| match outcome {
            ChangeOutcome::Added(_) | ChangeOutcome::AddedWithDerivedUid(_) => taken.added += 1,
            ChangeOutcome::Updated(_) => taken.updated += 1,
            ChangeOutcome::Conflict(..) => {}
            _ => taken.unchanged += 1,
        });
    }

    /// Counts a cancellation.
    pub(super) fn count_cancellation(&mut self, collection: &Arc<str>, kind: Kind, changed: bool) {
        let (cancelled, unchanged) = (u64::from(changed), u64::from(!changed));
        self.cancelled += cancelled;
        self.unchanged += unchanged;
        self.count(collection, kind, |taken| {
            taken.cancelled += cancelled;
            taken.unchanged += unchanged;
        });
    }

    fn count(
        &mut self,
        collection: &Arc<str>,
        kind: Kind,
        count: impl FnOnce(&mut CollectionCounts),
    ) {
        let same =
            |taken: &&mut CollectionCounts| taken.kind == kind && taken.collection == *collection;
        if let Some(taken) = self.counts.iter_mut().find(same) {
            return count(taken);
        }
        let collection = Arc::clone(collection);
        let (added, updated, cancelled, unchanged) = (0, 0, 0, 0);
        let mut taken = CollectionCounts { collection, kind, added, updated, cancelled, unchanged };
        count(&mut taken);
        self.counts.push(taken);
    }

    /// Returns the number of items of the input that are in the store.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.added + self.updated + self.cancelled + self.unchanged
    }

    /// Returns whether the store changed.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.added + self.updated + self.cancelled > 0
    }
}
