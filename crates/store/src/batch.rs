//! What can be written: changes, the operation they belong to, and what became of each.

use crate::handle::Handle;
use crate::history::OperationId;
use crate::{Kind, Seq};
use larder_extract::IndexConfig;
use larder_extract::ParsedItem;
use std::sync::Arc;
use std::time::Duration;

/// One thing that a person did: all batches of one import are one operation, and one undo.
///
/// Nothing is written of it before its first batch is.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its number, and the store's epoch when it got that: after a restore another operation may
    /// have it.
    pub(crate) id_in_epoch: Option<(String, OperationId)>,
    /// Its first batch.
    pub(crate) first_seq: Option<Seq>,
    /// Does it put each item once, so that a second one of a UID is another item?
    pub(crate) puts_each_once: bool,
    pub(crate) verb: String,
    pub(crate) detail: String,
    pub(crate) started_at_ms: i64,
    /// The operation that this one undoes, and the epoch in which that number holds.
    pub(crate) undoes: Option<(String, OperationId)>,
    /// Is a batch with a conflict left out as a whole?
    pub(crate) all_or_nothing: bool,
    /// The epoch in which what it expects was seen.
    pub(crate) expected_epoch: Option<Arc<str>>,
}

impl Operation {
    /// An operation that begins `at` milliseconds after 1970 (for display; order is by batch).
    /// `detail` is shown in the log: names of files and collections, never contents.
    pub fn new(
        verb: impl Into<String>,
        detail: impl Into<String>,
        started_at_ms: i64,
    ) -> Operation {
        let (verb, detail) = (verb.into(), detail.into());
        Operation {
            id_in_epoch: None,
            first_seq: None,
            puts_each_once: false,
            verb,
            detail,
            started_at_ms,
            undoes: None,
            all_or_nothing: false,
            expected_epoch: None,
        }
    }

    /// It puts each item once: other bytes under a UID that it has put already are another item,
    /// which is kept beside the first as with [`Precondition::DuplicateInImport`], unless that one
    /// is expected by [`Precondition::UnchangedSince`]. That an item was left as it was is known
    /// within a batch only.
    #[must_use]
    pub fn treat_repeats_as_duplicates(self) -> Operation {
        Operation { puts_each_once: true, ..self }
    }

    /// Each of its batches is written whole or not at all: where one change meets a conflict, none
    /// is made, and what the other outcomes say did not happen.
    #[must_use]
    pub fn all_or_nothing(self) -> Operation {
        Operation { all_or_nothing: true, ..self }
    }

    /// What it expects was seen in this [epoch](crate::Reader::epoch): if a restore replaced the
    /// store since, nothing is written, as the same numbers may be of other items.
    #[must_use]
    pub fn expect_epoch(self, epoch: Arc<str>) -> Operation {
        Operation { expected_epoch: Some(epoch), ..self }
    }

    /// Its number, once a batch of it was written.
    #[must_use]
    pub fn id(&self) -> Option<OperationId> {
        self.id_in_epoch.as_ref().map(|(_, id)| *id)
    }
}

/// One change of a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum BatchChange {
    /// An item's bytes, new or in place of former ones.
    Put(ItemPut),
    /// Takes an item away; its bytes are kept as a former version. With `Expect::At` only if
    /// unchanged since.
    Remove(Handle, Precondition),
    /// Makes a collection for items of a kind. A `Put` makes the one it names, too. One of that
    /// name that was removed comes back, with the summary it had.
    CreateCollection(String, Kind),
    /// Has a collection indexed in this way. Where it holds items, [`crate::Store::refresh`] then
    /// derives all items anew, in steps; until that has ended, by whomever, queries scan.
    SetIndexConfig(String, IndexConfig),
    /// Has a collection say this of itself: lines like PRODID and X-WR-CALNAME of a calendar, as
    /// they came; what a client says of an address book.
    SetCollectionProperties(String, Option<Vec<u8>>),
    /// Gives a collection another name; its items keep their handles.
    RenameCollection(String, String),
    /// Takes an empty collection away.
    RemoveCollection(String),
    /// What only the store itself asks for; its payload cannot be made elsewhere.
    #[doc(hidden)]
    Internal(InternalChange),
}

/// Changes that only the store makes, for purge and undo: the type has no name outside.
#[derive(Debug, Clone)]
pub enum InternalChange {
    /// Takes an item and all its former versions away; [`crate::Store::purge`] then erases the
    /// bytes.
    Purge(Handle),
    /// Brings back a removed collection, for undo.
    RestoreCollection(i64),
    /// Marks an operation as undone by this one, for undo; not where an item of the same batch was
    /// in conflict.
    MarkUndone(OperationId),
    /// Marks an operation as no longer undone, when its undo is undone; with the same proviso.
    MarkRedone(OperationId),
}

/// An item on its way into a collection.
#[derive(Debug, Clone)]
pub struct ItemPut {
    /// The collection's name.
    pub collection: Arc<str>,
    /// The UID it is kept under; unique in the collection.
    pub uid: String,
    /// True where the bytes do not name this UID themselves.
    pub derived_uid: bool,
    /// The bytes, and what was derived from them.
    pub parsed: ParsedItem,
    /// What must be there before.
    pub precondition: Precondition,
}

/// What a change expects to find; where it finds something else, nothing happens to that item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Anything: a known UID is an update.
    Any,
    /// Anything, but this UID was met before in the same import: other bytes are another item,
    /// which is kept under a derived UID.
    DuplicateInImport,
    /// No item of this UID, unless it has the same bytes.
    Absent,
    /// No item of this UID that is newer: a component of a higher SEQUENCE, or of the same and a
    /// later DTSTAMP (RFC 5546, 2.1.4).
    NotNewer,
    /// The item, last changed by this batch.
    UnchangedSince(Seq),
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeOutcome {
    /// A new item.
    Added(Handle),
    /// New bytes in place of former ones.
    Updated(Handle),
    /// The same bytes again: nothing was written.
    Unchanged(Handle),
    /// A second item with a UID that another had first, kept under a derived one.
    AddedAsDuplicate(Handle),
    /// That second item, met again: nothing was written.
    UnchangedDuplicate(Handle),
    /// Taken away.
    Removed(Handle),
    /// Not what was expected; nothing was written. The item's last change, if it exists.
    Conflict(Option<Handle>, Option<Seq>),
    /// Done, for changes that concern no item.
    Done,
}

/// What a batch did.
#[derive(Debug, Clone)]
pub struct AppliedBatch {
    /// The batch's number; without any change the number of the last batch before it.
    pub seq: Seq,
    /// What became of each change, in their order.
    pub outcomes: Vec<ChangeOutcome>,
    /// For how long it kept other writers out. A large job cuts its batches to this.
    pub lock_held: Duration,
}
