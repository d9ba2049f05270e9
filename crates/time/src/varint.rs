//! The varints of serialised rules and series, and a reader that rejects malformed bytes.

/// Appends an unsigned number, seven bits a byte; all bytes but the last have the high bit set.
pub(crate) fn put_unsigned_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a signed number in zigzag encoding.
pub(crate) fn put_signed_number(bytes: &mut Vec<u8>, number: i64) {
    put_unsigned_number(bytes, (number << 1 ^ number >> 63) as u64);
}

/// Reads varints. `None` at the end of the bytes, or for a number of more than 64 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VarintReader<'b> {
    remaining: &'b [u8],
}

impl<'b> VarintReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> VarintReader<'b> {
        VarintReader { remaining: bytes }
    }

    pub(crate) fn is_at_end(self) -> bool {
        self.remaining.is_empty()
    }

    pub(crate) fn read_unsigned(&mut self) -> Option<u64> {
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

    pub(crate) fn read_signed(&mut self) -> Option<i64> {
        let number = self.read_unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a count of members of at least one byte each.
    pub(crate) fn read_count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.read_unsigned()?).ok()?;
        (count <= self.remaining.len()).then_some(count)
    }
}
