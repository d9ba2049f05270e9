//! The events of a view, and the items in them.
//!
//! Separate from [`View`](super::View) because the parts that collect changes make some of them
//! before any view delivers them.

use larder_store::{Handle, ItemMeta, ItemOccurrence, ItemRow, Seq};
use std::sync::Arc;

/// An event of a view. Events come in order.
#[derive(Debug, Clone)]
pub enum ViewEvent {
    /// Everything delivered so far is void: the full answer follows.
    Reset,
    /// Items that entered the answer.
    Added(Vec<ViewItem>),
    /// Items that are still in the answer and have changed.
    Modified(Vec<ViewItem>),
    /// Items that left the answer.
    Removed(Vec<RemovedItem>),
    /// The answer, or the changes up to this batch, have been delivered.
    Complete(Seq),
}

/// An item as a view delivers it.
#[derive(Debug, Clone)]
pub struct ViewItem {
    /// The row, which identifies the item for the lifetime of the store.
    pub row: ItemRow,
    /// The metadata, if the view delivers it.
    pub meta: Option<ItemMeta>,
    /// The values of the fields of interest, in their order.
    pub values: Vec<Vec<String>>,
    /// The source bytes, if the view delivers them.
    pub bytes: Option<Arc<[u8]>>,
    /// The occurrences in the time range of the query, in order, if the query requests them.
    pub occurrences: Vec<ItemOccurrence>,
}

impl ViewItem {
    /// An item of which only the row is delivered.
    pub(super) fn from_row(row: ItemRow) -> ViewItem {
        ViewItem { row, meta: None, values: Vec::new(), bytes: None, occurrences: Vec::new() }
    }
}

/// An item that left an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedItem {
    /// The row that the item had.
    pub row: ItemRow,
    /// The handle.
    pub handle: Handle,
    /// The UID.
    pub uid: String,
    /// The recurrence-id; empty if the item was no override.
    pub recurrence_id: String,
}

impl RemovedItem {
    pub(super) fn from_meta(meta: &ItemMeta) -> RemovedItem {
        RemovedItem {
            row: meta.row,
            handle: meta.handle,
            uid: meta.uid.clone(),
            recurrence_id: meta.recurrence_id.clone(),
        }
    }
}
