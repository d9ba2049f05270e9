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
    if let Some(first) = term.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let length = term.len() as u32;
    if let (Some(first), Some(last)) = (term.first_chunk(), term.last_chunk()) {
        // Both have four bytes, some of which are the same.
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        return u64::from(first) << 32 | u64::from(last) << (64 - length * 8);
    }
    let byte = |at: usize| term.get(at).map_or(0, |byte| u64::from(*byte) << (56 - at * 8));
    byte(0) | byte(1) | byte(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn prefix_keys_are_the_first_bytes(term in proptest::collection::vec(0_u8.., 0..12)) {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(&term).for_each(|(byte, first)| *byte = *first);
            prop_assert_eq!(prefix_key(&term), u64::from_be_bytes(bytes));
        }
    }
}
