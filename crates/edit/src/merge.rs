//! Several items that are one person, joined into the first of them: one batch, one operation, one
//! undo.
//!
//! What of each card is taken over is for `larder_format` to say
//! ([`joined`](larder_format::contact::joined())). It is apart from `change` because all of it
//! happens or nothing: an item that somebody changed after it was looked up ends the merge before
//! it began.

use larder_format::contact::{Problem, merge_cards};
use larder_store::{
    BatchChange, ChangeOutcome, Error as StoreError, Handle, ItemMeta, ItemPut, Kind, Operation,
    OperationId, ParsedItem, Precondition, Reader, Seq, Store,
};
use std::sync::Arc;

/// Why items are not joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Fewer than two items.
    #[error("two items at least are needed to join them")]
    TooFew,
    /// The same item twice.
    #[error("{handle} is named twice")]
    DuplicateItem {
        /// The item.
        handle: Handle,
    },
    /// Of an event, a task or a memo there is nothing to join.
    #[error("only contacts can be joined, and {handle} is none")]
    NotAContact {
        /// The item.
        handle: Handle,
    },
    /// The first item's card cannot be added to, since it is half a card, or too damaged.
    #[error("nothing can be added to the card of {handle}: its end is missing, or it is damaged")]
    IncompleteCard {
        /// The item.
        handle: Handle,
    },
    /// The card would be none that the store takes.
    #[error("the card would be refused: {problem}")]
    InvalidCard {
        /// Why.
        problem: Problem,
    },
    /// Items that somebody changed or removed after they were looked up. Nothing was done.
    #[error("changed or removed by somebody else in the meantime")]
    Conflict {
        /// Which.
        handles: Vec<Handle>,
    },
}

/// Items joined, and nothing of it written yet.
#[derive(Debug, Clone)]
pub struct ContactMerge {
    base: ItemMeta,
    others: Vec<ItemMeta>,
    card: ParsedItem,
    /// In which epoch of the store they were looked at.
    epoch: Arc<str>,
}

/// What a merge came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeOutcome {
    /// What to undo it by.
    pub operation: OperationId,
    /// The batch that it is.
    pub seq: Seq,
}

impl ContactMerge {
    /// Joins items as they were when they were looked up. The first one stays the item it is, with
    /// its UID and in its collection.
    ///
    /// # Errors
    /// Fewer than two items, one of them twice, one that is gone; a first card that cannot be added
    /// to.
    pub fn from_items(reader: &Reader, items: &[ItemMeta]) -> Result<ContactMerge, MergeError> {
        let [base, others @ ..] = items else { return Err(MergeError::TooFew) };
        if others.is_empty() {
            return Err(MergeError::TooFew);
        }
        // Whatever these items are, they are it in this epoch.
        let _snapshot = reader.begin_read()?;
        let epoch = reader.epoch()?;
        for (at, item) in items.iter().enumerate() {
            if items.iter().take(at).any(|before| before.handle == item.handle) {
                return Err(MergeError::DuplicateItem { handle: item.handle });
            }
            if item.kind != Kind::Contact {
                return Err(MergeError::NotAContact { handle: item.handle });
            }
        }
        let bytes = |item: &ItemMeta| {
            let gone = || MergeError::Conflict { handles: vec![item.handle] };
            if reader.find_by_row(item.row)?.as_ref() != Some(item) {
                return Err(gone());
            }
            reader.source_bytes(item.row)?.ok_or_else(gone)
        };
        let mut card = bytes(base)?;
        for other in others {
            card = merge_cards(&card, &bytes(other)?)
                .ok_or(MergeError::IncompleteCard { handle: base.handle })?;
        }
        let prepared = reader.extractor().parse_contact(card);
        let (card, _) = prepared.map_err(|(_, problem)| MergeError::InvalidCard { problem })?;
        Ok(ContactMerge { base: base.clone(), others: others.to_vec(), card, epoch })
    }

    /// The item that stays.
    #[must_use]
    pub fn base(&self) -> &ItemMeta {
        &self.base
    }

    /// The card that it will have.
    #[must_use]
    pub fn card(&self) -> &[u8] {
        self.card.bytes()
    }
}

/// Writes a merge: the first item's new card, and the others' removal.
///
/// # Errors
/// What the store says, and [`MergeError::Changed`]. Nothing was done then.
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
