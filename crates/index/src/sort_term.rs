//! Sort terms: the position of an item in an order, as a term of a segment.
//!
//! A sort term is `0x08`, the number of the order (2 bytes), the partition (4 bytes), the sort key,
//! `0x00`, and the operation. An item that is added inserts itself at its position; an item that is
//! changed or removed later adds a removal at the previous position. The sum of insertions minus
//! removals up to a position is therefore the rank of that position, over any number of segments.
//!
//! It is separate from `term` so that orders can be dropped without a change to the postings.

/// The first byte of all sort terms.
const SORT_CLASS: u8 = 0x08;
/// The bytes before the key: the class, the order and the partition.
const SORT_PREFIX_BYTES: usize = 1 + 2 + 4;
/// The bytes after the key: a terminator, which orders a key before its extensions, and the
/// operation.
const SORT_SUFFIX_BYTES: usize = 2;

/// The effect of a sort term on the position that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOp {
    /// The items are at the position.
    Insert = 1,
    /// The items were at the position before the batch.
    Remove = 2,
}

/// Returns the common prefix of all sort terms of one partition of an order.
pub(crate) fn sort_prefix(order: u16, partition: i64) -> Vec<u8> {
    let mut term = vec![SORT_CLASS];
    term.extend(order.to_be_bytes());
    // Partitions are numbered from 1.
    term.extend(u32::try_from(partition).unwrap_or(u32::MAX).to_be_bytes());
    term
}

/// Returns the sort term of a position: the order, the partition, the sort key.
#[must_use]
pub fn sort_term(order: u16, partition: i64, key: &[u8], op: SortOp) -> Vec<u8> {
    let mut term = sort_prefix(order, partition);
    // Collation keys hold no zeros. If one does, its items are only sorted slightly wrong.
    term.extend(key.iter().map(|&byte| byte.max(1)));
    term.extend([0, op as u8]);
    term
}

/// Returns the key of a sort term; `None` for any other term.
pub(crate) fn sort_key(term: &[u8]) -> Option<&[u8]> {
    let end = term.len().checked_sub(SORT_SUFFIX_BYTES)?;
    (term.first() == Some(&SORT_CLASS)).then(|| term.get(SORT_PREFIX_BYTES..end)).flatten()
}

/// Returns 1 for an insertion, -1 for a removal, and 0 for a term that is no sort term.
#[inline]
pub(crate) fn sort_sign(term: &[u8]) -> i64 {
    match (term.first(), term.last()) {
        (Some(&SORT_CLASS), Some(&last)) if last == SortOp::Insert as u8 => 1,
        (Some(&SORT_CLASS), _) => -1,
        _ => 0,
    }
}

/// Returns whether `removal` removes items from the position of `term`, the term before it.
pub(crate) fn is_removal_at(term: &[u8], removal: &[u8]) -> bool {
    sort_sign(removal) < 0
        && sort_key(removal).is_some()
        && removal.split_last().map(|(_, position)| position)
            == term.split_last().map(|(_, position)| position)
}

/// The items whose insertion at one position a merge dropped because a newer segment lists them as
/// changed.
///
/// Insertions and removals of an item at a position alternate. For each insertion that is dropped,
/// one removal is cancelled; a removal that remains refers to an insertion in a segment that is
/// older than the inputs of the merge.
#[derive(Default)]
pub(crate) struct DroppedInserts(Vec<i64>);

impl DroppedInserts {
    /// Forgets the items unless the term that comes next removes items from the same position.
    pub(crate) fn begin_term(&mut self, before: &[u8], term: &[u8]) {
        if !is_removal_at(before, term) {
            self.0.clear();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, item: i64) {
        self.0.push(item);
    }

    /// Takes one removal from `removed`, which is sorted, for each dropped insertion of an item,
    /// and leaves one of those that remain of each item.
    pub(crate) fn cancel(&mut self, removed: &mut Vec<i64>) {
        self.0.sort_unstable();
        let mut dropped = self.0.iter().peekable();
        removed.retain(|item| {
            while dropped.next_if(|other| *other < item).is_some() {}
            dropped.next_if(|other| *other == item).is_none()
        });
        removed.dedup();
    }
}
