//! Reading changes: the feed after a cursor, changed items with both images, the log of operations
//! and the versions of items.
//!
//! Separate from the modules that run the statements, which take a transaction and do not depend on
//! readers.

use crate::Seq;
use crate::before_images::{
    self, CollectionNames, FeedResult, ImageReader, ItemChange, StoreState,
};
use crate::change_feed::{self, ChangeCursor, ChangeRecord};
use crate::error::{Error, Result};
use crate::handle::{Handle, HandlePrefix};
use crate::history::{OperationRecord, Version};
use crate::meta::read_meta_number;
use crate::operation_log::{self, HistoryItems};
use crate::reader::Reader;
use crate::row_ids::{CollectionRow, ItemRow, OperationId};

/// Reads the changes of batches and operations. Each call is one short read transaction, or part of
/// the open one.
#[derive(Debug, Clone, Copy)]
pub struct ChangeReader<'a> {
    reader: &'a Reader,
}

impl Reader {
    /// Returns the changes of the store.
    #[must_use]
    pub fn changes(&self) -> ChangeReader<'_> {
        ChangeReader { reader: self }
    }
}

impl ChangeReader<'_> {
    /// Returns the number of the last batch.
    pub fn last_seq(self) -> Result<Seq> {
        self.reader.read_statement(|tx| read_meta_number(tx, "last_seq"))
    }

    /// Returns the version stamps of the store.
    pub fn stamp(self) -> Result<StoreState> {
        self.reader.read_statement(|tx| Ok(before_images::read_stamp(tx)?))
    }

    /// Returns the cursor after all changes so far.
    pub fn current_cursor(self) -> Result<ChangeCursor> {
        self.reader.read(ChangeCursor::read_current)
    }

    /// Returns the cursor before all changes.
    pub fn start_cursor(self) -> Result<ChangeCursor> {
        Ok(self.current_cursor()?.to_start())
    }

    /// Returns the net effect of all batches after `cursor`, in the order of the last changes, at
    /// most `limit` items, and the cursor to continue from. Fewer than `limit` items: there are no
    /// more.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] if removals since the cursor were pruned, or the store was
    /// replaced.
    pub fn list_after(
        self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<(Vec<ChangeRecord>, ChangeCursor)> {
        // One transaction: the oldest kept batch and the changes must come from the same state.
        let changes = self.reader.read(|tx| change_feed::read_changes(tx, cursor, limit))?;
        changes.ok_or(Error::CursorExpired)
    }

    /// Passes each item that a batch after `after` changed to `visit`, with its before-image and
    /// after-image, in the order of the first changes. Items of collections that lists do not show
    /// are left out. Passes none if there are more than `limit`.
    /// Everything happens in one read transaction; its duration depends on the number of items.
    /// `names`: the names of the collections, from
    /// [`CollectionReader::list_names`](crate::CollectionReader::list_names).
    pub fn for_each(
        self,
        after: Seq,
        limit: usize,
        names: CollectionNames<'_>,
        visit: &mut dyn FnMut(ItemChange),
    ) -> Result<FeedResult> {
        let zones = self.reader.extractor().zone_resolver();
        self.reader.read(|tx| ImageReader { tx, zones, names }.for_each_change(after, limit, visit))
    }

    /// Lists the rows of the items that a batch after `after`, up to `last`, put or removed, or
    /// whose schedule or state it changed, in ascending order. `None`: the rows of removed items
    /// were pruned or purged. An item that a later batch changed, too, may be missing.
    pub fn list_changed_rows(self, after: Seq, last: Seq) -> Result<Option<Vec<ItemRow>>> {
        self.reader.read(|tx| before_images::read_changed_rows(tx, after, last))
    }

    /// Returns the last batch after `after` that changed anything in a collection, also the state
    /// of a message; `None`: none did. If removals after `after` were pruned, the last pruned batch
    /// counts as a change, so that the result never decreases.
    pub fn last_collection_change(
        self,
        collection: CollectionRow,
        after: Seq,
    ) -> Result<Option<Seq>> {
        self.reader.read(|tx| change_feed::read_last_collection_change(tx, collection, after))
    }

    /// Returns the time at which the operation of a batch began, in milliseconds since 1970;
    /// `None`: there is no such batch.
    pub fn batch_time(self, seq: Seq) -> Result<Option<i64>> {
        self.reader.read_statement(|tx| Ok(operation_log::batch_time(tx, seq)?))
    }

    /// Returns operations, newest first, at most `limit`, only those before `before` if it is
    /// given.
    pub fn list_operations(
        self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<OperationRecord>> {
        self.reader.read_statement(|tx| Ok(operation_log::list_operations(tx, before, limit)?))
    }

    /// Returns the operation with this number; `None`: there is none.
    pub fn find_operation(self, id: OperationId) -> Result<Option<OperationRecord>> {
        self.reader.read_statement(|tx| Ok(operation_log::find_operation(tx, id)?))
    }

    /// Returns the newest operation that is neither undone, nor an undo, nor a purge.
    pub fn last_undoable_operation(self) -> Result<Option<OperationRecord>> {
        self.reader.read_statement(|tx| Ok(operation_log::last_undoable_operation(tx)?))
    }

    /// Returns the versions of an item, oldest first, as far as they are not pruned. The last one
    /// may be the current version.
    pub fn list_versions(self, handle: Handle) -> Result<Vec<Version>> {
        self.reader.read(|tx| operation_log::list_versions(tx, handle))
    }

    /// Returns the handles of removed items that begin with this prefix and have a version in the
    /// history, of collections that lists show.
    pub fn find_removed_handles(self, prefix: HandlePrefix, limit: usize) -> Result<Vec<Handle>> {
        self.find_history_handles(HistoryItems::Kept, prefix, limit)
    }

    /// Returns the handles of purged items that begin with this prefix, as far as tombstones
    /// remain, of collections that lists show.
    pub fn find_purged_handles(self, prefix: HandlePrefix, limit: usize) -> Result<Vec<Handle>> {
        self.find_history_handles(HistoryItems::Purged, prefix, limit)
    }

    fn find_history_handles(
        self,
        items: HistoryItems,
        prefix: HandlePrefix,
        limit: usize,
    ) -> Result<Vec<Handle>> {
        let find = operation_log::find_history_handles;
        self.reader.read_statement(|tx| Ok(find(tx, items, prefix, limit)?))
    }
}
