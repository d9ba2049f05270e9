//! What a person does to items: cards added or edited, items removed, a collection emptied and removed.
//!
//! Each is one operation and works in batches, so that others get in between, and expects what it was told about: an item that
//! somebody changed meanwhile is left as it is and named in the result.

use larder_store::{
    Applied, Change, Collection, Error, Expect, Handle, ItemHead, Operation, OperationId, Outcome,
    Prepared, Put, Reader, Seq, Store,
};
use std::sync::Arc;

/// Removals in one batch: short enough to let others in between.
const REMOVALS: usize = 500;
/// Cards, and bytes of them, that are added in one batch.
const CARDS: usize = 200;
const CARD_BYTES: usize = 4 << 20;
/// Items that are listed in one read transaction.
const PAGE: usize = 500;

/// A card, and what became of it.
#[derive(Debug)]
pub struct Added {
    /// The card's bytes.
    pub bytes: Vec<u8>,
    /// The UID it has.
    pub uid: String,
    /// The item it is; `None` where another item has its UID already, and it was left out.
    pub handle: Option<Handle>,
}

/// Adds cards to a collection, which is made if there is none of that name, and tells of each batch what
/// became of its cards. Gives the number of cards left out.
///
/// # Errors
/// What the store says; the batches before it are kept. An error of `each` ends it in the same way.
pub fn add<E: From<Error>>(
    store: &mut Store,
    operation: &mut Operation,
    into: &str,
    cards: Vec<Prepared>,
    each: &mut dyn FnMut(&Store, Added) -> Result<(), E>,
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
            batch.is_empty() || (batch.len() < CARDS && bytes <= CARD_BYTES)
        }) {
            batch.push(card);
        }
        let told: Vec<_> = batch
            .iter()
            .map(|card| (card.bytes().to_vec(), card.uid().unwrap_or_default().to_string()))
            .collect();
        let put = |prepared: Prepared| {
            let uid = prepared.uid().unwrap_or_default().to_string();
            let (collection, expect) = (Arc::clone(&into), Expect::Nothing);
            Change::Put(Put { collection, uid, derived_uid: false, prepared, expect })
        };
        let applied = store.apply(operation, batch.into_iter().map(put).collect())?;
        for (outcome, (bytes, uid)) in applied.outcomes.into_iter().zip(told) {
            let handle = match outcome {
                Outcome::Added(handle) => Some(handle),
                _ => None,
            };
            left_out += u64::from(handle.is_none());
            each(store, Added { bytes, uid, handle })?;
        }
    }
    Ok(left_out)
}

/// Puts a card in the place of what an item was when it was looked up; it stays the item it is.
///
/// # Errors
/// What the store says. An item that somebody changed since is none: the outcome says so.
pub fn replace(
    store: &mut Store,
    operation: &mut Operation,
    head: &ItemHead,
    card: Prepared,
) -> Result<Applied, Error> {
    let put = Put {
        collection: Arc::clone(&head.collection),
        uid: head.uid.clone(),
        // An item kept beside another of its UID is known by a derived one, whatever its bytes say.
        derived_uid: card.uid() != Some(head.uid.as_str()),
        prepared: card,
        expect: Expect::At(head.seq),
    };
    store.apply(operation, vec![Change::Put(put)])
}

/// What a removal came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Items taken away.
    pub items: u64,
    /// Items that somebody changed since they were listed: they are kept.
    pub changed: Vec<Handle>,
    /// Items that somebody took away first.
    pub gone: u64,
    /// What to undo it by; `None` where nothing was removed.
    pub operation: Option<OperationId>,
}

/// Takes items away, each as the batch left it that is named with it.
///
/// # Errors
/// What the store says; the batches before it are kept.
pub fn remove(
    store: &mut Store,
    operation: &mut Operation,
    items: &[(Handle, Seq)],
) -> Result<Removed, Error> {
    let mut removed = Removed::default();
    for batch in items.chunks(REMOVALS) {
        let change = |&(handle, seq): &(Handle, Seq)| Change::Remove(handle, Expect::At(seq));
        let applied = store.apply(operation, batch.iter().map(change).collect())?;
        for outcome in applied.outcomes {
            match outcome {
                Outcome::Removed(_) => removed.items += 1,
                Outcome::Conflict(Some(handle), _) => removed.changed.push(handle),
                _ => removed.gone += 1,
            }
        }
    }
    removed.operation = operation.id().filter(|_| removed.items > 0);
    Ok(removed)
}

/// The items of a collection as they were at one time: what its removal was asked for.
#[derive(Debug, Clone)]
pub struct Listed {
    collection: Collection,
    items: Vec<(Handle, Seq)>,
}

/// Lists a collection.
///
/// # Errors
/// [`Error::NoCollection`], and what the store says.
pub fn list(reader: &Reader, name: &str) -> Result<Listed, Error> {
    let collections = reader.collections()?;
    let found = collections.into_iter().find(|collection| collection.name == name);
    let collection = found.ok_or_else(|| Error::NoCollection { name: name.to_string() })?;
    let items = pages(reader, &collection)?.into_iter().map(|head| (head.handle, head.seq));
    let items = items.collect();
    Ok(Listed { collection, items })
}

/// What the removal of a collection came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionRemoved {
    /// Items taken away.
    pub items: u64,
    /// Is the collection itself gone, too?
    pub whole: bool,
    /// If not: the items that keep it, since somebody changed or added them after they were listed.
    pub kept: Vec<ItemHead>,
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
    listed: &Listed,
) -> Result<CollectionRemoved, Error> {
    let Removed { items, .. } = remove(store, operation, &listed.items)?;
    let mut kept = pages(&store.reader()?, &listed.collection)?;
    let mut whole = false;
    if kept.is_empty() {
        let last = Change::RemoveCollection(listed.collection.name.clone());
        whole = store.apply(operation, vec![last])?.outcomes == [Outcome::Done];
        if !whole {
            // Somebody added one between those two steps.
            kept = pages(&store.reader()?, &listed.collection)?;
        }
    }
    Ok(CollectionRemoved { items, whole, kept, operation: operation.id() })
}

/// All items of a collection.
fn pages(reader: &Reader, collection: &Collection) -> Result<Vec<ItemHead>, Error> {
    let mut heads = Vec::new();
    loop {
        let after = heads.last().map_or(i64::MIN, |head: &ItemHead| head.row);
        let page = reader.page(collection, after, PAGE)?;
        if page.is_empty() {
            return Ok(heads);
        }
        heads.extend(page);
    }
}
