//! The ids of Mercurial's revisions and of git's objects: SHA-1 digests that no function may mix
//! up.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Defines a type of 20 bytes that is written as 40 hexadecimal digits.
macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub [u8; 20]);

        impl $name {
            /// The id with all bits zero: no revision, no object.
            pub const NULL: $name = $name([0; 20]);

            /// Returns whether this is [`Self::NULL`].
            pub fn is_null(&self) -> bool {
                *self == Self::NULL
            }

            /// Reads an id from 40 hexadecimal digits of either case; `None` for anything else.
            pub fn from_hex(digits: &[u8]) -> Option<$name> {
                parse_hex(digits).map($name)
            }

            /// Returns the 40 digits, in lower case.
            pub fn to_hex(self) -> [u8; 40] {
                format_hex(&self.0)
            }
        }

        // The bytes are a digest, so any eight of them are a hash.
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                let (first, _) = self.0.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
                state.write_u64(u64::from_le_bytes(*first));
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_hex().iter().try_for_each(|digit| f.write_char(char::from(*digit)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

define_id! {
    /// The id of a revision of Mercurial: a changeset, a manifest or a file.
    Node
}

define_id! {
    /// The id of an object of git.
    GitId
}

fn parse_hex(digits: &[u8]) -> Option<[u8; 20]> {
    let digits: &[u8; 40] = digits.try_into().ok()?;
    let mut id = [0; 20];
    for (byte, pair) in id.iter_mut().zip(digits.as_chunks::<2>().0) {
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(id)
}

fn format_hex(id: &[u8; 20]) -> [u8; 40] {
    let mut digits = [0; 40];
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(id) {
        *pair = hex_digits(*byte);
    }
    digits
}

/// Returns the two digits of a byte, in lower case.
pub(crate) fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// A map keyed by ids, without a hash function of its own.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// The hasher of [`IdMap`].
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_either_case_are_read() {
        let digits = b"00112233445566778899AABBCCDDEEFFaabbccdd";
        let node = Node::from_hex(digits).expect("an id");
        assert_eq!(node.to_string(), "00112233445566778899aabbccddeeffaabbccdd");
        assert_eq!(Node::from_hex(&node.to_hex()), Some(node));
    }

    #[test]
    fn other_texts_are_no_ids() {
        assert_eq!(GitId::from_hex(b"0123"), None);
        assert_eq!(GitId::from_hex(&[b'g'; 40]), None);
        assert_eq!(GitId::from_hex(&[0xe9; 40]), None);
    }
}
