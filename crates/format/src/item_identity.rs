//! The identity of an item: its UID, a UID derived from its bytes if it has none, and equality of
//! items.
//!
//! It is the same for cards and for calendar components.

use crate::utf16::{self, Endian};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Returns a UID for an item without one, derived from its bytes without trailing line ends. UTF-16
/// is decoded first, because such an item is exported as UTF-8 and is the same when it comes back.
#[must_use]
pub fn derive_uid(bytes: &[u8]) -> String {
    let mut uid = String::from("larder-");
    let digest = match Endian::detect(bytes) {
        Some(order) => Sha256::digest(trim_line_ends(utf16::decode(bytes, order).as_bytes())),
        None => Sha256::digest(trim_line_ends(bytes)),
    };
    for byte in &digest[..16] {
        let _infallible = write!(uid, "{byte:02x}");
    }
    uid
}

/// Returns whether two items have the same bytes, except for trailing line ends.
#[must_use]
pub fn is_same_item(a: &[u8], b: &[u8]) -> bool {
    trim_line_ends(a) == trim_line_ends(b)
}

/// Returns the item without trailing line ends.
fn trim_line_ends(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    match Endian::detect(bytes) {
        None => {
            while let [before @ .., b'\r' | b'\n'] = rest {
                rest = before;
            }
        }
        Some(order) => {
            while let Some((before, unit)) = rest.split_last_chunk::<2>() {
                if !rest.len().is_multiple_of(2) || !matches!(order.decode_unit(*unit), 0x0a | 0x0d)
                {
                    break;
                }
                rest = before;
            }
        }
    }
    rest
}
