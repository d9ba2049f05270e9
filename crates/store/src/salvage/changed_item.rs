//! A row of an item that does not match its checksum.
//!
//! Separate from `changed_rows`, which finds such rows: the repair makes them again.

use crate::handle::Handle;
use crate::row_ids::CollectionRow;

/// The columns of a changed row of an item by which the item is named, and made again.
pub(super) struct ChangedItem {
    pub(super) handle: Handle,
    pub(super) collection: CollectionRow,
    pub(super) collection_name: String,
    pub(super) uid: String,
    pub(super) recurrence_id: String,
    /// The batch that last changed the item, and its place in that batch.
    pub(super) place: (i64, i64),
    /// Whether the handle is that of the collection and the UID.
    pub(super) has_identity: bool,
}
