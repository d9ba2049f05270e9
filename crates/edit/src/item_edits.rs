//! What a person does to items: cards added or edited, items removed, a collection emptied and
//! removed.
//!
//! Each is one operation and works in batches, so that others get in between, and expects what it
//! was told about: an item that somebody changed meanwhile is left as it is and named in the
//! result.

use larder_store::{
    AppliedBatch, BatchChange, ChangeOutcome, Collection, Error, Handle, ItemMeta, ItemPut,
    Operation, OperationId, ParsedItem, Precondition, Reader, Seq, Store,
};
use std::sync::Arc;

/// Removals in one batch: short enough to let others in between.
const MAX_REMOVALS_PER_BATCH: usize = 500;
/// Cards, and bytes of them, that are added in one batch.
const MAX_ITEMS_PER_ADD_BATCH: usize = 200;
const MAX_ADD_BATCH_BYTES: usize = 4 << 20;
/// Items that are listed in one read transaction.
const ITEMS_PER_READ: usize = 500;

/// A card, and what became of it.
#[derive(Debug)]
pub struct AddedItem {
    /// The card's bytes.
    pub bytes: Vec<u8>,
    /// The UID it has.
    pub uid: String,
    /// The item it is; `None` where another item has its UID already, and it was left out.
    pub handle: Option<Handle>,
}

/// Adds cards to a collection, which is made if there is none of that name, and tells of each batch
/// what became of its cards. Gives the number of cards left out.
///
/// # Errors
/// What the store says; the batches before it are kept. An error of `each` ends it in the same way.
pub fn add_items<E: From<Error>>(
    store: &mut Store,
    operation: &mut Operation,
    into: &str,
    cards: Vec<ParsedItem>,
    each: &mut dyn FnMut(&Store, AddedItem) -> Result<(), E>,
) -> Result<u64, E> {
    let into: Arc<str> = Arc::from(into);
    let mut left_out = 0;
    let mut cards = cards.into_iter().peekable();
    while cards.peek().is_some() {
        let mut batch = Vec::new();
        let mut bytes = 0;
        // One card at least, however large.
        while let Some(card) = cards.next_if(|card| {
            bytes += card.bytes().len();
            batch.is_empty()
                || (batch.len() < MAX_ITEMS_PER_ADD_BATCH && bytes <= MAX_ADD_BATCH_BYTES)
        }) {
            batch.push(card);
        }
        let told: Vec<_> = batch
            .iter()
            .map(|card| (card.bytes().to_vec(), card.uid().unwrap_or_default().to_string()))
            .collect();
        let put = |prepared: ParsedItem| {
            let uid = prepared.uid().unwrap_or_default().to_string();
            let (collection, expect) = (Arc::clone(&into), Precondition::Absent);
            BatchChange::Put(ItemPut {
                collection,
                uid,
                derived_uid: false,
                parsed: prepared,
                precondition: expect,
            })
        };
        let applied = store.apply(operation, batch.into_iter().map(put).collect())?;
        for (outcome, (bytes, uid)) in applied.outcomes.into_iter().zip(told) {
            let handle = match outcome {
                ChangeOutcome::Added(handle) => Some(handle),
                _ => None,
            };
            left_out += u64::from(handle.is_none());
            each(store, AddedItem { bytes, uid, handle })?;
        }
    }
    Ok(left_out)
}

/// Puts a card in the place of what an item was when it was looked up; it stays the item it is.
///
/// # Errors
/// What the store says. An item that somebody changed since is none: the outcome says so.
pub fn replace_item(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemMeta,
    card: ParsedItem,
) -> Result<AppliedBatch, Error> {
    let put = ItemPut {
        collection: Arc::clone(&head.collection),
        uid: head.uid.clone(),
        // An item kept beside another of its UID is known by a derived one, whatever its bytes say.
        derived_uid: card.uid() != Some(head.uid.as_str()),
        parsed: card,
        precondition: Precondition::UnchangedSince(head.seq),
    };
    store.apply(operation, vec![BatchChange::Put(put)])
}

/// What a removal came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalOutcome {
    /// Items taken away.
    pub items: u64,
    /// Items that somebody changed since they were listed: they are kept.
    pub changed: Vec<Handle>,
    /// Items that somebody took away first.
    pub already_removed: u64,
    /// What to undo it by; `None` where nothing was removed.
    pub operation: Option<OperationId>,
}

/// Takes items away, each as the batch left it that is named with it.
///
/// # Errors
/// What the store says; the batches before it are kept.
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
    Ok(removed)
}

/// The items of a collection as they were at one time: what its removal was asked for.
#[derive(Debug, Clone)]
pub struct CollectionListing {
    collection: Collection,
    items: Vec<(Handle, Seq)>,
}

/// Lists a collection.
///
/// # Errors
/// [`Error::NoCollection`], and what the store says.
pub fn list_collection(reader: &Reader, name: &str) -> Result<CollectionListing, Error> {
    let collections = reader.collections()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    let collection = found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?;
    let items = list_items(reader, &collection)?.into_iter().map(|head| (head.handle, head.seq));
    let items = items.collect();
    Ok(CollectionListing { collection, items })
}

/// What the removal of a collection came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionRemovalOutcome {
    /// Items taken away.
    pub items: u64,
    /// Is the collection itself gone, too?
    pub collection_removed: bool,
    /// If not: the items that keep it, since somebody changed or added them after they were listed.
    pub remaining: Vec<ItemMeta>,
    /// What to undo it by; `None` where nothing was removed.
    pub operation: Option<OperationId>,
}

/// Takes a collection away with the items that were listed, as they were listed.
///
/// # Errors
/// What the store says; the batches before it are kept.
pub fn remove_collection(
    store: &mut Store,
    operation: &mut Operation,
    listed: &CollectionListing,
) -> Result<CollectionRemovalOutcome, Error> {
    let RemovalOutcome { items, .. } = remove_items(store, operation, &listed.items)?;
    let mut kept = list_items(&store.open_reader()?, &listed.collection)?;
    let mut whole = false;
    if kept.is_empty() {
        let last = BatchChange::RemoveCollection(listed.collection.name.clone());
        whole = store.apply(operation, vec![last])?.outcomes == [ChangeOutcome::Done];
        if !whole {
            // Somebody added one between those two steps.
            kept = list_items(&store.open_reader()?, &listed.collection)?;
        }
    }
    Ok(CollectionRemovalOutcome {
        items,
        collection_removed: whole,
        remaining: kept,
        operation: operation.id(),
    })
}

/// All items of a collection.
fn list_items(reader: &Reader, collection: &Collection) -> Result<Vec<ItemMeta>, Error> {
    let mut heads = Vec::new();
    loop {
        let after = heads.last().map_or(i64::MIN, |head: &ItemMeta| head.row);
        let page = reader.items_after_row(collection, after, ITEMS_PER_READ)?;
        if page.is_empty() {
            return Ok(heads);
        }
        heads.extend(page);
    }
}
