//! Variable-length numbers (LEB128): the encoding of compiled series, and of the other packed
//! values that are stored with an item.
//!
//! The reader refuses numbers of more than 64 bits, which no writer wrote. Public because the
//! packed values of an item are written by `larder-extract`, and hold a series packed here.
//! `larder-index` has its own, because neither crate may depend on the other.

/// Writes a number, seven bits a byte, the lowest first; the last byte is without the high bit.
pub fn put_unsigned_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Writes a number of either sign; numbers near zero are short.
pub fn put_signed_number(bytes: &mut Vec<u8>, number: i64) {
    put_unsigned_number(bytes, (number << 1 ^ number >> 63) as u64);
}

/// Reads numbers. `None` at the end of the bytes, or if a number has more than 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct VarintReader<'b> {
    remaining: &'b [u8],
}

impl<'b> VarintReader<'b> {
    /// Returns a reader of these bytes.
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> VarintReader<'b> {
        VarintReader { remaining: bytes }
    }

    /// Returns whether all bytes are read.
    #[must_use]
    pub fn is_at_end(self) -> bool {
        self.remaining.is_empty()
    }

    /// Returns the bytes that are not read yet.
    #[must_use]
    pub fn remaining_bytes(self) -> &'b [u8] {
        self.remaining
    }

    /// Reads a number.
    #[inline]
    pub fn read_unsigned(&mut self) -> Option<u64> {
        let (&first, rest) = self.remaining.split_first()?;
        if first < 128 {
            self.remaining = rest;
            return Some(u64::from(first));
        }
        self.read_long_number()
    }

    fn read_long_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.remaining.split_first()?;
            self.remaining = rest;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 128 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of either sign.
    pub fn read_signed(&mut self) -> Option<i64> {
        let number = self.read_unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads the number of members that follow, each of one byte at least.
    pub fn read_count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.read_unsigned()?).ok()?;
        (count <= self.remaining.len()).then_some(count)
    }

    /// Reads a number of bytes.
    pub fn read_bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.remaining.split_at_checked(length)?;
        self.remaining = rest;
        Some(bytes)
    }
}
