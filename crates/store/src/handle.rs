//! The handle of an item: 64 bits made from its collection, UID and recurrence-id, written as
//! thirteen letters and digits; any unique prefix identifies the item.
//!
//! A handle is never made from a row number, so it outlives a rebuilt file. Separate from `reader`
//! because it is pure.

use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};

/// Crockford's base 32: no i, l, o or u, so nothing is misread or accidentally rude.
const BASE32_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Letters in a full handle: 13 x 5 = 65 bits.
pub(crate) const HANDLE_LETTERS: usize = 13;

/// The stable public id of an item, the same in every copy of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u64);

impl Handle {
    /// Makes the handle of an item with this UID and recurrence-id (empty: a master) in the
    /// collection with this key. `attempt` is 0 unless another item has that handle.
    pub(crate) fn from_uid(key: &[u8], uid: &str, recurrence: &str, attempt: u32) -> Handle {
        let mut hash = Sha256::new();
        for part in [key, uid.as_bytes(), recurrence.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        if attempt > 0 {
            hash.update(attempt.to_le_bytes());
        }
        let digest = hash.finalize();
        Handle(digest.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }

    /// Returns the stored form: eight bytes in the order of the handles.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Handle {
        Handle(bytes.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
    }
}

impl fmt::Display for Handle {
    /// Writes all thirteen letters, or the first N for `{:.N}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from(self.0) << 1;
        for place in 0..f.precision().unwrap_or(HANDLE_LETTERS).min(HANDLE_LETTERS) {
            let letter = (bits >> (5 * (HANDLE_LETTERS - 1 - place))) & 31;
            f.write_char(char::from(BASE32_ALPHABET[letter as usize]))?;
        }
        Ok(())
    }
}

/// Returns the key of a collection with this first name. `attempt` is 0 unless another collection
/// has that key.
pub(crate) fn derive_collection_key(name: &str, attempt: u64) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    if attempt > 0 {
        hash.update(attempt.to_le_bytes());
    }
    hash.finalize().iter().take(8).copied().collect()
}

/// The prefix of a handle, as typed: a range of handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandlePrefix {
    pub(crate) first: Handle,
    pub(crate) last: Handle,
}

impl HandlePrefix {
    /// Returns the first letters of a handle, one to thirteen.
    pub(crate) fn from_handle(handle: Handle, letters: usize) -> HandlePrefix {
        // The last letter has the last four bits.
        let open = (5 * (HANDLE_LETTERS - letters.clamp(1, HANDLE_LETTERS))).saturating_sub(1);
        let rest = (1 << open) - 1;
        HandlePrefix { first: Handle(handle.0 & !rest), last: Handle(handle.0 | rest) }
    }

    /// Parses one to thirteen letters, in either case; `None` if no handle begins with the text.
    #[must_use]
    pub fn parse(text: &str) -> Option<HandlePrefix> {
        if text.is_empty() || text.len() > HANDLE_LETTERS {
            return None;
        }
        let mut bits: u128 = 0;
        for byte in text.bytes() {
            let letter = BASE32_ALPHABET.iter().position(|&a| a == byte.to_ascii_lowercase())?;
            bits = bits << 5 | letter as u128;
        }
        let open = 5 * (HANDLE_LETTERS - text.len());
        let first = bits << open;
        let last = first | ((1 << open) - 1);
        // The 65th bit is always 0.
        Some(HandlePrefix { first: Handle((first >> 1) as u64), last: Handle((last >> 1) as u64) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_its_handle_and_not_its_neighbour() {
        let handle = Handle::from_uid(b"contacts", "anna", "", 0);
        let text = handle.to_string();
        assert_eq!(text.len(), HANDLE_LETTERS);
        for length in 1..=HANDLE_LETTERS {
            let prefix = HandlePrefix::parse(&text[..length]).expect("letters of a handle");
            assert!(prefix.first <= handle && handle <= prefix.last, "{length} letters");
            assert_eq!(prefix, HandlePrefix::from_handle(handle, length));
        }
        let whole = HandlePrefix::parse(&text).expect("a handle");
        assert_eq!((whole.first, whole.last), (handle, handle));
        assert_eq!(format!("{handle:.4}"), text[..4]);
    }

    #[test]
    fn what_cannot_begin_a_handle() {
        for text in ["", "u", "anna!", "00000000000000", "ä"] {
            assert_eq!(HandlePrefix::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(Handle::from_uid(b"a", "bc", "", 0), Handle::from_uid(b"ab", "c", "", 0));
        assert_ne!(Handle::from_uid(b"a", "b", "c", 0), Handle::from_uid(b"a", "bc", "", 0));
        assert_ne!(Handle::from_uid(b"a", "b", "", 0), Handle::from_uid(b"a", "b", "", 1));
    }
}
