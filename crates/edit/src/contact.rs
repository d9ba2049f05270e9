//! Contacts: merges several contacts of one person into the first of them, as one batch, one
//! operation, one undo.
//!
//! [`merge_cards`] decides which values of each card are kept. Separate from
//! [`item_edits`](mod@crate::item_edits) because a merge happens as a whole or not at all: an item
//! that was changed after it was read prevents it.

use crate::item_edits::add_missing_uid;
use larder_format::contact::{Problem, merge_cards};
use larder_store::{
    BatchChange, ChangeOutcome, Error as StoreError, Handle, ItemMeta, ItemPut, Kind, Operation,
    OperationId, ParsedItem, Precondition, Reader, Seq, Store,
};
use std::sync::Arc;

/// The reason why contacts cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Fewer than two items.
    #[error("merging needs at least two contacts")]
    TooFew,
    /// An item is named twice.
    #[error("the ID {handle:.8} is given twice")]
    DuplicateItem {
        /// The item.
        handle: Handle,
    },
    /// An item is not a contact.
    #[error("only contacts can be merged; {handle:.8} is of kind {}", .kind.name())]
    NotAContact {
        /// The item.
        handle: Handle,
        /// Its kind.
        kind: Kind,
    },
    /// Nothing can be added to the card of the first item.
    #[error("cannot merge into {handle:.8}: its card is damaged or has no END:VCARD line")]
    IncompleteCard {
        /// The item.
        handle: Handle,
    },
    /// The merged card would be invalid.
    #[error("the merged card would be invalid: {problem}")]
    InvalidCard {
        /// The problem.
        problem: Problem,
    },
    /// Items were changed or removed after they were read. Nothing was written.
    #[error("another program changed or removed items")]
    Conflict {
        /// The items.
        handles: Vec<Handle>,
    },
}

/// A merge that is not written yet.
#[derive(Debug, Clone)]
pub struct ContactMerge {
    base: ItemMeta,
    others: Vec<ItemMeta>,
    card: ParsedItem,
    /// The epoch of the store in which the items were read.
    epoch: Arc<str>,
}

/// The result of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOutcome {
    /// The operation, for undo.
    pub operation: OperationId,
    /// The sequence number of the batch.
    pub seq: Seq,
}

impl ContactMerge {
    /// Merges items as they were when they were read. The first one keeps its UID and its
    /// collection.
    ///
    /// # Errors
    /// [`MergeError`]
    pub fn from_items(reader: &Reader, items: &[ItemMeta]) -> Result<ContactMerge, MergeError> {
        let [base, others @ ..] = items else { return Err(MergeError::TooFew) };
        if others.is_empty() {
            return Err(MergeError::TooFew);
        }
        let _transaction = reader.begin_read()?;
        let epoch = reader.epoch()?;
        for (at, item) in items.iter().enumerate() {
            if items.iter().take(at).any(|before| before.handle == item.handle) {
                return Err(MergeError::DuplicateItem { handle: item.handle });
            }
            if item.kind != Kind::Contact {
                return Err(MergeError::NotAContact { handle: item.handle, kind: item.kind });
            }
        }
        let bytes = |item: &ItemMeta| {
            let gone = || MergeError::Conflict { handles: vec![item.handle] };
            if reader.items().find_by_row(item.row)?.as_ref() != Some(item) {
                return Err(gone());
            }
            reader.items().source_bytes(item.row)?.ok_or_else(gone)
        };
        let mut card = bytes(base)?;
        for other in others {
            card = merge_cards(&card, &bytes(other)?)
                .ok_or(MergeError::IncompleteCard { handle: base.handle })?;
        }
        let extractor = reader.extractor();
        let card = extractor
            .parse_contact(card)
            .and_then(|card| add_missing_uid(extractor, card, &base.uid))
            .map_err(|rejected| MergeError::InvalidCard { problem: rejected.problem })?;
        Ok(ContactMerge { base: base.clone(), others: others.to_vec(), card, epoch })
    }

    /// The item that the others are merged into.
    #[must_use]
    pub fn base(&self) -> &ItemMeta {
        &self.base
    }

    /// The merged card.
    #[must_use]
    pub fn card(&self) -> &[u8] {
        self.card.bytes()
    }
}

/// Writes a merge: replaces the card of the first item, and removes the others.
///
/// # Errors
/// [`MergeError::Conflict`] and errors of the store. Nothing was written.
pub fn write_merge(
    store: &mut Store,
    operation: Operation,
    merge: ContactMerge,
) -> Result<MergeOutcome, MergeError> {
    let ContactMerge { base, others, card, epoch } = merge;
    let mut operation = operation.all_or_nothing().expect_epoch(epoch);
    let put = BatchChange::Put(ItemPut {
        collection: Arc::clone(&base.collection),
        uid: base.uid.clone(),
        derived_uid: card.uid() != Some(base.uid.as_str()),
        parsed: card,
        precondition: Precondition::UnchangedSince(base.seq),
    });
    let removals = others
        .iter()
        .map(|item| BatchChange::Remove(item.handle, Precondition::UnchangedSince(item.seq)));
    let changes = std::iter::once(put).chain(removals).collect();
    let applied = store.apply(&mut operation, changes)?;
    let changed: Vec<Handle> = (std::iter::once(&base).chain(&others).zip(&applied.outcomes))
        .filter(|(_, outcome)| matches!(outcome, ChangeOutcome::Conflict(..)))
        .map(|(item, _)| item.handle)
        .collect();
    match operation.id() {
        Some(operation) if changed.is_empty() => Ok(MergeOutcome { operation, seq: applied.seq }),
        _ => Err(MergeError::Conflict { handles: changed }),
    }
}
