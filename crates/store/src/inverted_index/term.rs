//! The terms of the index: those of fields and text, which `larder-extract` encodes, and those of
//! sort keys and of the index itself.

pub use larder_extract::term::*;

const SORT_CLASS: u8 = 8;
/// The items that a segment knows, and those that were removed while it was current.
const CHANGED_ITEMS_CLASS: u8 = 0xff;

/// Does a sort term put items into an order, or take out those that were in it before?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortOp {
    Insert = 1,
    Remove = 2,
}

/// Before the key of a sort term: its class, its field and its collection.
const SORT_PREFIX_BYTES: usize = 1 + 2 + 4;
/// Behind it: an end that keeps longer keys behind shorter ones, and the sign.
const SORT_SUFFIX_BYTES: usize = 2;

/// The order of a collection's items by a field: what all its sort terms begin with.
pub(crate) fn sort_prefix(field: u16, collection: i64) -> Vec<u8> {
    let mut term = vec![SORT_CLASS];
    term.extend(field.to_be_bytes());
    // Collections are numbered from 1.
    term.extend(u32::try_from(collection).unwrap_or(u32::MAX).to_be_bytes());
    term
}

/// The place of an item in an order.
pub(crate) fn sort_term(field: u16, collection: i64, key: &[u8], sign: SortOp) -> Vec<u8> {
    let mut term = sort_prefix(field, collection);
    // Keys hold no zeros; where one did, items would only lie beside where they belong.
    term.extend(key.iter().map(|&byte| byte.max(1)));
    term.extend([0, sign as u8]);
    term
}

/// The key of a sort term; `None`: it is of another class.
pub(super) fn sort_key(term: &[u8]) -> Option<&[u8]> {
    let end = term.len().checked_sub(SORT_SUFFIX_BYTES)?;
    (term.first() == Some(&SORT_CLASS)).then(|| term.get(SORT_PREFIX_BYTES..end)).flatten()
}

/// 1 where a sort term puts items into an order, -1 where it takes them out; 0 for all other terms.
pub(super) fn sort_sign(term: &[u8]) -> i64 {
    match (term.first(), term.last()) {
        (Some(&SORT_CLASS), Some(&last)) if last == SortOp::Insert as u8 => 1,
        (Some(&SORT_CLASS), _) => -1,
        _ => 0,
    }
}

/// The first eight bytes of a term as a number that is in the terms' order, as far as it tells.
pub(super) fn prefix_number(term: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = term.len().min(8);
    first[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(first)
}

pub(super) fn changed_items() -> Vec<u8> {
    vec![CHANGED_ITEMS_CLASS]
}
