//! Terms: byte strings that the caller encodes, and the few that the index reserves for itself.
//!
//! The order of terms is the order of their bytes. The index interprets nothing in them but the
//! first byte of these reserved ones:
//!
//! | first byte | term | use |
//! |---|---|---|
//! | `0x04` | [`OVERSIZED_ITEMS_TERM`] | items that every lookup returns as unverified candidates |
//! | `0xff` | [`CHANGED_ITEMS_TERM`] | items that the segment's batches changed |

/// The term of items with more text than is indexed: they are candidates for every lookup.
pub const OVERSIZED_ITEMS_TERM: &[u8] = &[0x04];
/// The term of all items that a segment's batches added, changed or removed. It is the last term of
/// a segment.
pub(crate) const CHANGED_ITEMS_TERM: &[u8] = &[0xff];

/// Returns the first eight bytes of a term as a number. Numbers compare as the terms do, unless the
/// terms have the same first eight bytes.
#[inline]
pub(crate) fn prefix_key(term: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    let length = term.len().min(8);
    prefix[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(prefix)
}
