//! Varints: numbers of seven bits a byte, the lowest bits first (LEB128), and their zigzag form for
//! numbers of either sign. Packed blocks and packed columns are made of them.
//!
//! `larder-time` has its own, because neither crate may depend on the other. These functions read
//! from a slice that they advance, which suits the innermost loop over postings.

/// Appends a number.
#[inline]
pub fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number and advances past it; `None` at the end of the bytes or if they are malformed.
#[must_use]
#[inline]
pub fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    let (mut number, mut rest) = (u64::from(first & 0x7f), rest);
    for shift in (7..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        rest = tail;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            *bytes = rest;
            return Some(number);
        }
    }
    None
}

/// Appends a number of either sign; numbers near zero take few bytes.
pub fn write_signed_varint(bytes: &mut Vec<u8>, number: i64) {
    write_varint(bytes, (number << 1 ^ number >> 63) as u64);
}

/// Reads a number that [`write_signed_varint`] wrote; `None` as with [`read_varint`].
#[must_use]
pub fn read_signed_varint(bytes: &mut &[u8]) -> Option<i64> {
    let number = read_varint(bytes)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}
