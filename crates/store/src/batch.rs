//! What can be written: changes, the operation they belong to, and what became of each.

use crate::deriver::Prepared;
use crate::handle::Handle;
use crate::history::OperationId;
use crate::summary::Summary;
use crate::{Kind, Seq};
use std::sync::Arc;
use std::time::Duration;

/// One thing that a person did: all batches of one import are one operation, and one undo.
///
/// Nothing is written of it before its first batch is.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its number, and the store's epoch when it got that: after a restore another operation may have it.
    pub(crate) written: Option<(String, OperationId)>,
    /// Its first batch.
    pub(crate) began: Option<Seq>,
    /// Does it put each item once, so that a second one of a UID is another item?
    pub(crate) once: bool,
    pub(crate) verb: String,
    pub(crate) detail: String,
    pub(crate) at: i64,
    /// The operation that this one undoes, and the epoch in which that number holds.
    pub(crate) undoes: Option<(String, OperationId)>,
    /// Is a batch with a conflict left out as a whole?
    pub(crate) whole: bool,
    /// The epoch in which what it expects was seen.
    pub(crate) seen: Option<Arc<str>>,
}

impl Operation {
    /// An operation that begins `at` milliseconds after 1970 (for display; order is by batch). `detail` is
    /// shown in the log: names of files and collections, never contents.
    pub fn new(verb: impl Into<String>, detail: impl Into<String>, at: i64) -> Operation {
        let (verb, detail) = (verb.into(), detail.into());
        Operation {
            written: None,
            began: None,
            once: false,
            verb,
            detail,
            at,
            undoes: None,
            whole: false,
            seen: None,
        }
    }

    /// It puts each item once: other bytes under a UID that it has put already are another item, which is kept beside the
    /// first as with [`Expect::SecondOfImport`], unless that one is expected by [`Expect::At`]. That an item was left as it was
    /// is known within a batch only.
    #[must_use]
    pub fn each_once(self) -> Operation {
        Operation { once: true, ..self }
    }

    /// Each of its batches is written whole or not at all: where one change meets a conflict, none is made, and
    /// what the other outcomes say did not happen.
    #[must_use]
    pub fn all_or_nothing(self) -> Operation {
        Operation { whole: true, ..self }
    }

    /// What it expects was seen in this [epoch](crate::Reader::epoch): if a restore replaced the store since, nothing is
    /// written, as the same numbers may be of other items.
    #[must_use]
    pub fn seen_in(self, epoch: Arc<str>) -> Operation {
        Operation { seen: Some(epoch), ..self }
    }

    /// Its number, once a batch of it was written.
    #[must_use]
    pub fn id(&self) -> Option<OperationId> {
        self.written.as_ref().map(|(_, id)| *id)
    }
}

/// One change of a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// An item's bytes, new or in place of former ones.
    Put(Put),
    /// Takes an item away; its bytes are kept as a former version. With `Expect::At` only if unchanged since.
    Remove(Handle, Expect),
    /// Makes a collection for items of a kind. A `Put` makes the one it names, too. One of that name that was removed
    /// comes back, with the summary it had.
    CreateCollection(String, Kind),
    /// Has a collection indexed in this way. Where it holds items, [`crate::Store::refresh`] then derives all items
    /// anew, in steps; until that has ended, by whomever, queries scan.
    SetSummary(String, Summary),
    /// Has a collection say this of itself: lines like PRODID and X-WR-CALNAME of a calendar, as they came; what a client says of an
    /// address book.
    SetHead(String, Option<Vec<u8>>),
    /// Gives a collection another name; its items keep their handles.
    RenameCollection(String, String),
    /// Takes an empty collection away.
    RemoveCollection(String),
    /// What only the store itself asks for; its payload cannot be made elsewhere.
    #[doc(hidden)]
    Own(Own),
}

/// Changes that only the store makes, for purge and undo: the type has no name outside.
#[derive(Debug, Clone)]
pub enum Own {
    /// Takes an item and all its former versions away; [`crate::Store::purge`] then erases the bytes.
    Purge(Handle),
    /// Brings back a removed collection, for undo.
    RestoreCollection(i64),
    /// Marks an operation as undone by this one, for undo; not where an item of the same batch was in conflict.
    Undone(OperationId),
    /// Marks an operation as no longer undone, when its undo is undone; with the same proviso.
    Redone(OperationId),
}

/// An item on its way into a collection.
#[derive(Debug, Clone)]
pub struct Put {
    /// The collection's name.
    pub collection: Arc<str>,
    /// The UID it is kept under; unique in the collection.
    pub uid: String,
    /// True where the bytes do not name this UID themselves.
    pub derived_uid: bool,
    /// The bytes, and what was derived from them.
    pub prepared: Prepared,
    /// What must be there before.
    pub expect: Expect,
}

/// What a change expects to find; where it finds something else, nothing happens to that item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Anything: a known UID is an update.
    Anything,
    /// Anything, but this UID was met before in the same import: other bytes are another item, which is kept
    /// under a derived UID.
    SecondOfImport,
    /// No item of this UID, unless it has the same bytes.
    Nothing,
    /// No item of this UID that is newer: a component of a higher SEQUENCE, or of the same and a later DTSTAMP (RFC 5546, 2.1.4).
    Older,
    /// The item, last changed by this batch.
    At(Seq),
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A new item.
    Added(Handle),
    /// New bytes in place of former ones.
    Updated(Handle),
    /// The same bytes again: nothing was written.
    Unchanged(Handle),
    /// A second item with a UID that another had first, kept under a derived one.
    AddedBeside(Handle),
    /// That second item, met again: nothing was written.
    UnchangedBeside(Handle),
    /// Taken away.
    Removed(Handle),
    /// Not what was expected; nothing was written. The item's last change, if it exists.
    Conflict(Option<Handle>, Option<Seq>),
    /// Done, for changes that concern no item.
    Done,
}

/// What a batch did.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The batch's number; without any change the number of the last batch before it.
    pub seq: Seq,
    /// What became of each change, in their order.
    pub outcomes: Vec<Outcome>,
    /// For how long it kept other writers out. A large job cuts its batches to this.
    pub held: Duration,
}
