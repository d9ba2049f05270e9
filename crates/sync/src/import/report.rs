//! What an import says: while it runs ([`ImportEvent`]), and in the end ([`ImportReport`]).
//!
//! It is apart as who shows an import reads nothing else of it.

use larder_store::{ChangeOutcome, Kind, OperationId};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What there is to say while an import runs. Events come from the calling thread, in the order of
/// the input, but for second cards with one UID, which are known only after their batch is written.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportEvent<'a> {
    /// Something was not taken.
    Rejected(&'a ImportDiagnostic),
    /// Something was taken, but a person should know this about it.
    Warning(&'a ImportDiagnostic),
    /// A file or folder could not be read, or not to its end.
    Unreadable(&'a ImportDiagnostic),
    /// How far it is.
    Progress {
        /// Bytes read, of which all but some 12 MB are dealt with.
        bytes_done: u64,
        /// Bytes to read; `None` where that is not known.
        bytes_total: Option<u64>,
        /// Items that are in the store now: added, updated, kept beside others, or there before.
        items: u64,
    },
}

/// Something about a place in the input. Shown as `FILE:LINE: REASON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDiagnostic {
    /// The file's name as it was given, or "standard input".
    pub file: String,
    /// The line, from 1; 0 where it is about the whole file.
    pub line: u64,
    /// What there is to say: short, without a final period.
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

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Files read to their end.
    pub files: u64,
    /// New items.
    pub added: u64,
    /// Items that got new bytes.
    pub updated: u64,
    /// Messages that something is called off: what they are about was marked.
    pub cancelled: u64,
    /// Items that were there already with the same bytes, or were marked already.
    pub unchanged: u64,
    /// New items that had the UID of another in this import, and are kept beside it under one of
    /// their own.
    pub duplicate_uids: u64,
    /// Stretches of the input that were not taken.
    pub rejected: u64,
    /// Warnings about what was taken, and about folders and files with nothing in them.
    pub warnings: u64,
    /// Time zones that were defined, and how many different definitions of those are used and kept.
    pub zones: (u64, u64),
    /// What was taken, by collection and kind, in the order in which they came.
    pub counts: Vec<CollectionCounts>,
    /// The collections that it all went to, in the order in which they came.
    pub collections: Vec<String>,
    /// Bytes read.
    pub bytes: u64,
    /// What to undo it by; `None` where nothing changed.
    pub operation: Option<OperationId>,
    /// Files and folders that could not be read, or not to their end.
    pub unreadable: Vec<ImportDiagnostic>,
    /// The file that keeps what was rejected, if one was written.
    pub rejects_file: Option<PathBuf>,
    /// It was told to stop before the end.
    pub interrupted: bool,
}

/// What of one kind went to one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionCounts {
    /// The collection.
    pub collection: Arc<str>,
    /// The kind.
    pub kind: Kind,
    /// New items, those beside others with their UID too.
    pub added: u64,
    /// Items that got new bytes.
    pub updated: u64,
    /// Messages that something is called off: what they are about was marked.
    pub cancelled: u64,
    /// Items that were there already with the same bytes, or were marked already.
    pub unchanged: u64,
}

impl ImportReport {
    /// Counts an item of a kind that went to a collection.
    pub(super) fn count_outcome(
        &mut self,
        collection: &Arc<str>,
        kind: Kind,
        outcome: &ChangeOutcome,
    ) {
        self.count(collection, kind, |taken| match outcome {
            ChangeOutcome::Added(_) | ChangeOutcome::AddedAsDuplicate(_) => taken.added += 1,
            ChangeOutcome::Updated(_) => taken.updated += 1,
            ChangeOutcome::Conflict(..) => {}
            _ => taken.unchanged += 1,
        });
    }

    /// Counts a message that something is called off.
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

    /// Items of the input that are in the store now.
    #[must_use]
    pub fn item_count(&self) -> u64 {
        self.added + self.updated + self.cancelled + self.unchanged + self.duplicate_uids
    }

    /// Did the store change?
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.added + self.updated + self.cancelled + self.duplicate_uids > 0
    }
}
