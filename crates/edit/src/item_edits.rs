//! Adding, replacing and removing items, and removing a collection.
//!
//! Each change is one operation in several short batches, so that other writers get in between. It
//! expects the items as they were read: an item that was changed since is left alone and reported.

use larder_format::edit::insert_uid;
use larder_store::{
    AppliedBatch, BatchChange, ChangeOutcome, Collection, Error, Extractor, Handle, ItemMeta,
    ItemPut, Operation, OperationId, ParsedItem, Precondition, Reader, RejectedItem, Seq, Store,
};
use std::sync::Arc;

/// The number of removals in a batch, which keeps the lock short.
const MAX_REMOVALS_PER_BATCH: usize = 500;
/// The number of items in a batch of additions, which keeps the lock short.
const MAX_ITEMS_PER_ADD_BATCH: usize = 200;
/// The size of a batch of additions.
const MAX_ADD_BATCH_BYTES: usize = 4 << 20;
/// The number of items that are listed in one read transaction.
const ITEMS_PER_READ: usize = 500;

/// An item that was to be added, and the result.
#[derive(Debug)]
pub struct AddedItem {
    /// The bytes of the item.
    pub bytes: Vec<u8>,
    /// Its UID.
    pub uid: String,
    /// Its handle. `None`: it was skipped because another item has the UID.
    pub handle: Option<Handle>,
}

/// Adds items to a collection, which is created if there is none of this name, and calls `visit`
/// with every result. Returns the number of skipped items.
///
/// # Errors
/// Errors of the store and of `visit`. The batches before the error are kept.
pub fn add_items<E: From<Error>>(
    store: &mut Store,
    operation: &mut Operation,
    collection: &str,
    items: Vec<ParsedItem>,
    visit: &mut dyn FnMut(&Store, AddedItem) -> Result<(), E>,
) -> Result<u64, E> {
    let collection: Arc<str> = Arc::from(collection);
    let mut skipped = 0;
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let mut batch = Vec::new();
        let mut bytes = 0;
        // At least one item, however large.
        while let Some(item) = items.next_if(|item| {
            bytes += item.bytes().len();
            batch.is_empty()
                || (batch.len() < MAX_ITEMS_PER_ADD_BATCH && bytes <= MAX_ADD_BATCH_BYTES)
        }) {
            batch.push(item);
        }
        let results: Vec<_> = batch
            .iter()
            .map(|item| (item.bytes().to_vec(), item.uid().unwrap_or_default().to_string()))
            .collect();
        let put = |parsed: ParsedItem| {
            BatchChange::Put(ItemPut {
                collection: Arc::clone(&collection),
                uid: parsed.uid().unwrap_or_default().to_string(),
                derived_uid: false,
                parsed,
                precondition: Precondition::Absent,
            })
        };
        let applied = store.apply(operation, batch.into_iter().map(put).collect())?;
        for (outcome, (bytes, uid)) in applied.outcomes.into_iter().zip(results) {
            let handle = match outcome {
                ChangeOutcome::Added(handle) => Some(handle),
                _ => None,
            };
            skipped += u64::from(handle.is_none());
            visit(store, AddedItem { bytes, uid, handle })?;
        }
    }
    Ok(skipped)
}

/// Returns a changed item with the UID that it is stored under, if its bytes have none: that UID
/// was derived from the former bytes, so an import would not find the item by the new ones.
///
/// # Errors
/// Fails if the bytes with the UID are not such an item.
#[allow(clippy::result_large_err, reason = "the error gives the bytes back, unmoved")]
pub fn add_missing_uid(
    extractor: &Extractor,
    changed: ParsedItem,
    uid: &str,
) -> Result<ParsedItem, RejectedItem> {
    if changed.uid().is_some() {
        return Ok(changed);
    }
    let context = changed.calendar_context().cloned().unwrap_or_default();
    extractor.parse_item(changed.kind(), insert_uid(changed.bytes(), uid), &context)
}

/// Replaces the bytes of an item as it was read. It keeps its handle and UID.
///
/// # Errors
/// Errors of the store. A conflict is not an error but an outcome.
pub fn replace_item(
    store: &mut Store,
    operation: &mut Operation,
    item: &ItemMeta,
    parsed: ParsedItem,
) -> Result<AppliedBatch, Error> {
    let put = ItemPut {
        collection: Arc::clone(&item.collection),
        uid: item.uid.clone(),
        // An item whose UID was taken is stored under a derived UID, and its bytes keep their own.
        derived_uid: parsed.uid() != Some(item.uid.as_str()),
        parsed,
        precondition: Precondition::UnchangedSince(item.seq),
    };
    store.apply(operation, vec![BatchChange::Put(put)])
}

/// The result of a removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalOutcome {
    /// The number of removed items.
    pub items: u64,
    /// Items that were changed since they were listed, and are kept.
    pub changed: Vec<Handle>,
    /// The number of items that were removed by another writer.
    pub already_removed: u64,
    /// The operation, for undo. `None` if nothing was removed.
    pub operation: Option<OperationId>,
}

/// Removes items, each unless it was changed after the batch of its sequence number.
///
/// # Errors
/// Errors of the store. The batches before the error are kept.
pub fn remove_items(
    store: &mut Store,
    operation: &mut Operation,
    items: &[(Handle, Seq)],
) -> Result<RemovalOutcome, Error> {
    let mut removed = RemovalOutcome::default();
    for batch in items.chunks(MAX_REMOVALS_PER_BATCH) {
        let change = |&(handle, seq): &(Handle, Seq)| {
            BatchChange::Remove(handle, Precondition::UnchangedSince(seq))
        };
        let applied = store.apply(operation, batch.iter().map(change).collect())?;
        for outcome in applied.outcomes {
            match outcome {
                ChangeOutcome::Removed(_) => removed.items += 1,
                ChangeOutcome::Conflict(Some(handle), _) => removed.changed.push(handle),
                _ => removed.already_removed += 1,
            }
        }
    }
    removed.operation = operation.id().filter(|_| removed.items > 0);
    store.merge_after_change(removed.items);
    Ok(removed)
}

/// The items of a collection at one time, for its removal.
#[derive(Debug, Clone)]
pub struct CollectionListing {
    collection: Collection,
    items: Vec<(Handle, Seq)>,
}

/// Lists a collection.
///
/// # Errors
/// [`Error::NoCollection`], and errors of the store.
pub fn list_collection(reader: &Reader, name: &str) -> Result<CollectionListing, Error> {
    let collections = reader.collections().list()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    let collection = found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?;
    let items = list_items(reader, &collection)?.into_iter().map(|item| (item.handle, item.seq));
    let items = items.collect();
    Ok(CollectionListing { collection, items })
}

/// The result of the removal of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionRemovalOutcome {
    /// The number of removed items.
    pub items: u64,
    /// Whether the collection itself was removed.
    pub collection_removed: bool,
    /// The items that were changed or added after the listing, and keep the collection.
    pub remaining: Vec<ItemMeta>,
    /// The operation, for undo. `None` if nothing was removed.
    pub operation: Option<OperationId>,
}

/// Removes the items of a listing, and the collection if it is empty then.
///
/// # Errors
/// Errors of the store. The batches before the error are kept.
pub fn remove_collection(
    store: &mut Store,
    operation: &mut Operation,
    listing: &CollectionListing,
) -> Result<CollectionRemovalOutcome, Error> {
    let RemovalOutcome { items, .. } = remove_items(store, operation, &listing.items)?;
    let mut remaining = list_items(&store.open_reader()?, &listing.collection)?;
    let mut collection_removed = false;
    if remaining.is_empty() {
        let last = BatchChange::RemoveCollection(listing.collection.name.clone());
        collection_removed = store.apply(operation, vec![last])?.outcomes == [ChangeOutcome::Done];
        if !collection_removed {
            // Another writer added an item in between.
            remaining = list_items(&store.open_reader()?, &listing.collection)?;
        }
    }
    Ok(CollectionRemovalOutcome { items, collection_removed, remaining, operation: operation.id() })
}

/// Lists all items of a collection.
fn list_items(reader: &Reader, collection: &Collection) -> Result<Vec<ItemMeta>, Error> {
    let mut items = Vec::new();
    loop {
        let after = items.last().map(|item: &ItemMeta| item.row);
        let page = reader.items().list_after(collection, after, ITEMS_PER_READ)?;
        if page.is_empty() {
            return Ok(items);
        }
        items.extend(page);
    }
}
