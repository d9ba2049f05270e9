//! The changes of a batch, their operation, and their outcomes.

use crate::handle::Handle;
use crate::mail::batch::MailBatch;
use crate::mail::labels::LabelBatch;
use crate::row_ids::{CollectionRow, OperationId};
use crate::{Kind, Seq};
use larder_extract::IndexConfig;
use larder_extract::ParsedItem;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// An action of a person: all batches of one import are one operation, and one undo.
///
/// Nothing of it is written before its first batch.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The number, and the epoch of the store in which it was assigned: after a restore another
    /// operation may have the number.
    pub(crate) id_in_epoch: Option<(String, OperationId)>,
    /// The first batch.
    pub(crate) first_seq: Option<Seq>,
    /// Whether it puts each item once, so that a second item with a UID is another item.
    pub(crate) puts_each_once: bool,
    pub(crate) verb: String,
    pub(crate) detail: String,
    pub(crate) started_at_ms: i64,
    /// The operation that this one undoes, and the epoch in which that number is valid.
    pub(crate) undoes: Option<(String, OperationId)>,
    /// Whether nothing of a batch with a conflict is written.
    pub(crate) all_or_nothing: bool,
    /// The epoch to which the preconditions of the changes belong.
    pub(crate) expected_epoch: Option<Arc<str>>,
}

impl Operation {
    /// Creates an operation that begins at `started_at_ms`, in milliseconds since 1970 (for display
    /// only; batches determine the order). The log shows `detail`: names of files and collections,
    /// never contents.
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

    /// Stores each UID once: if a later item of the operation has the same UID and other bytes, it
    /// is added as a duplicate, see [`Precondition::DeriveUidOnConflict`], unless
    /// [`Precondition::UnchangedSince`] names the first. Items that a put left unchanged are known
    /// only within their batch.
    #[must_use]
    pub fn derive_uid_on_conflict(self) -> Operation {
        Operation { puts_each_once: true, ..self }
    }

    /// Writes each batch completely or not at all: if one change has a conflict, none is made,
    /// regardless of the other outcomes.
    #[must_use]
    pub fn all_or_nothing(self) -> Operation {
        Operation { all_or_nothing: true, ..self }
    }

    /// Sets whether the next batches are written completely or not at all, as
    /// [`Operation::all_or_nothing`].
    pub fn set_all_or_nothing(&mut self, all_or_nothing: bool) {
        self.all_or_nothing = all_or_nothing;
    }

    /// Sets the [epoch](crate::Reader::epoch) to which the preconditions belong: if a restore has
    /// replaced the store in the meantime, nothing is written, because the same numbers may name
    /// other items.
    #[must_use]
    pub fn expect_epoch(self, epoch: Arc<str>) -> Operation {
        Operation { expected_epoch: Some(epoch), ..self }
    }

    /// Returns the number, once a batch of the operation was written.
    #[must_use]
    pub fn id(&self) -> Option<OperationId> {
        self.id_in_epoch.as_ref().map(|(_, id)| *id)
    }
}

/// The number of the last operation that a program committed. A program whose output fails must
/// not look as if its change had failed.
#[derive(Debug, Clone, Default)]
pub struct LastCommit(Arc<AtomicI64>);

impl LastCommit {
    /// Returns the number of the operation; `None`: nothing was committed.
    #[must_use]
    pub fn operation(&self) -> Option<OperationId> {
        let number = self.0.load(Ordering::Relaxed);
        (number != 0).then(|| OperationId::from_number(number))
    }

    pub(crate) fn set(&self, operation: OperationId) {
        self.0.store(operation.to_number(), Ordering::Relaxed);
    }
}

/// A change in a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum BatchChange {
    /// Adds an item or replaces its bytes.
    Put(ItemPut),
    /// Removes an item; its bytes are recorded as a version. [`Precondition::UnchangedSince`]: only
    /// if the item is unchanged.
    Remove(Handle, Precondition),
    /// Changes the mail of a collection, in a store that has the tables of mail.
    Mail(Box<MailBatch>),
    /// Changes the labels of messages, in a store that has the tables of mail.
    Labels(Box<LabelBatch>),
    /// Creates a collection for items of a kind. A `Put` also creates the collection that it names.
    /// A removed collection with the name is restored, with its index configuration.
    CreateCollection(String, Kind),
    /// Creates a collection with the key of a collection of another store, so that their items have
    /// the same handles, or renames the one that has the key.
    AdoptCollection {
        /// The name.
        name: String,
        /// The kind of its items.
        kind: Kind,
        /// The key, see [`crate::CollectionProperties::handle_key`].
        handle_key: Vec<u8>,
    },
    /// Sets the index configuration of a collection. If it has items, [`crate::Store::refresh`]
    /// then refills the indexes in steps; until that is complete, queries scan.
    SetIndexConfig(String, IndexConfig),
    /// Sets the properties of a collection itself: lines like PRODID and X-WR-CALNAME of a
    /// calendar, as they came; a client's own properties of an address book.
    SetCollectionProperties(String, Option<Vec<u8>>),
    /// Renames a collection; its items keep their handles.
    RenameCollection(String, String),
    /// Removes an empty collection.
    RemoveCollection(String),
    /// A change that only the store requests; other crates cannot create its payload.
    #[doc(hidden)]
    Internal(InternalChange),
}

/// Changes that only the store makes, for purge and undo: the crate does not export the type.
#[derive(Debug, Clone)]
pub enum InternalChange {
    /// Removes an item and all its versions; [`crate::Store::purge`] then erases the bytes.
    Purge(Handle),
    /// Restores a removed collection, for undo.
    RestoreCollection(CollectionRow),
    /// Marks an operation as undone by this one, unless an item of the same batch has a conflict,
    /// or the operation wrote a batch after `last_seq`, the last batch that the undo knows.
    MarkUndone {
        /// The operation.
        id: OperationId,
        /// The last batch of the store that the undo knows.
        last_seq: Seq,
    },
    /// Marks an operation as no longer undone, because its undo is undone, unless an item of the
    /// same batch has a conflict.
    MarkRedone(OperationId),
}

/// An item to be put into a collection.
#[derive(Debug, Clone)]
pub struct ItemPut {
    /// The name of the collection.
    pub collection: Arc<str>,
    /// The UID under which the item is stored, unique in the collection.
    pub uid: String,
    /// Whether the UID is derived, because the bytes do not name it.
    pub derived_uid: bool,
    /// The bytes, and the entry that was extracted from them.
    pub parsed: ParsedItem,
    /// The precondition of the put.
    pub precondition: Precondition,
}

/// The precondition of a change; if it fails, the item is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// None: a put with a known UID is an update.
    Any,
    /// None, but an earlier item of the same import has this UID: other bytes are added under a
    /// derived UID.
    DeriveUidOnConflict,
    /// No item has this UID, or it has the same bytes.
    Absent,
    /// No item with this UID is newer: a component with a higher SEQUENCE, or with the same
    /// SEQUENCE and a later DTSTAMP (RFC 5546, 2.1.4).
    NotNewer,
    /// An item has this UID: nothing is added.
    Present,
    /// This batch was the last to change the item.
    UnchangedSince(Seq),
}

impl Precondition {
    /// Returns whether nothing is added.
    pub(crate) fn is_item_required(self) -> bool {
        matches!(self, Precondition::Present | Precondition::UnchangedSince(_))
    }
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeOutcome {
    /// An item was added.
    Added(Handle),
    /// The bytes of an item were replaced.
    Updated(Handle),
    /// The bytes were the same: nothing was written.
    Unchanged(Handle),
    /// An item with the UID of another item was added under a derived UID.
    AddedWithDerivedUid(Handle),
    /// That duplicate exists already: nothing was written.
    UnchangedWithDerivedUid(Handle),
    /// The item was removed.
    Removed(Handle),
    /// The precondition failed: nothing was written. The item, and its last change, if it exists.
    Conflict(Option<Handle>, Option<Seq>),
    /// The change was made; it concerns no item.
    Done,
}

/// A batch that was written.
#[derive(Debug, Clone)]
pub struct AppliedBatch {
    /// The number of the batch; if nothing changed, the number of the last batch before it.
    pub seq: Seq,
    /// The outcome of each change, in their order.
    pub outcomes: Vec<ChangeOutcome>,
    /// The time for which the batch held the lock. A large import adapts the size of its batches to
    /// this time.
    pub lock_held: Duration,
}
