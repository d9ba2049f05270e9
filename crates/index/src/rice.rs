//! Rice codes for the gaps between the items of a posting list.
//!
//! A gap, less one, is divided into its lowest bits, as many as the *parameter*, and a quotient,
//! which is mostly 0 or 1. The quotient is written in unary, as ones and a zero, and the low bits
//! follow. A quotient of [`ESCAPE_ONES`] or more is written as that many ones and the number in 64
//! bits. Bits fill bytes from the lowest on. Rice codes take a third less than varints here, since
//! most postings belong to frequent terms, whose gaps are small. (R. F. Rice, Some practical
//! universal noiseless coding techniques, 1979.)

/// This many ones announce a number in 64 bits.
const ESCAPE_ONES: u32 = 24;

/// Bits are flushed to the output in words of this size.
const WORD_BITS: u32 = 32;

/// Returns the parameter for these items, which are ascending: the number of low bits of a gap that
/// are written verbatim.
pub(crate) fn choose_parameter(items: &[i64]) -> u8 {
    let (first, last) = (items.first().copied().unwrap_or(0), items.last().copied().unwrap_or(0));
    parameter_of_span(last.abs_diff(first), items.len().saturating_sub(1))
}

/// Returns the parameter for this many gaps, whose sum is `span`.
pub(crate) fn parameter_of_span(span: u64, gap_count: usize) -> u8 {
    let mean = span / (gap_count as u64).max(1);
    // The optimal parameter is the binary logarithm of ln 2 times the mean.
    (mean * 7 / 10).checked_ilog2().map_or(0, |bits| bits.min(56) as u8)
}

/// Returns the number of bits of the code of a gap.
pub(crate) fn code_bits(gap: u64, parameter: u8) -> usize {
    let (quotient, bits) = (gap.saturating_sub(1) >> parameter, usize::from(parameter));
    if quotient < u64::from(ESCAPE_ONES) {
        quotient as usize + 1 + bits
    } else {
        (ESCAPE_ONES + 2 * WORD_BITS) as usize
    }
}

/// Appends codes to a buffer.
pub(crate) struct RiceWriter<'a> {
    bytes: &'a mut Vec<u8>,
    parameter: u8,
    /// Bits that do not fill a word yet.
    bit_buffer: u64,
    buffered_bits: u32,
}

impl<'a> RiceWriter<'a> {
    /// Begins a sequence of codes, with the parameter in a byte before them.
    pub(crate) fn new(bytes: &'a mut Vec<u8>, parameter: u8) -> RiceWriter<'a> {
        bytes.push(parameter);
        RiceWriter { bytes, parameter, bit_buffer: 0, buffered_bits: 0 }
    }

    /// Returns the length of the buffer in bytes, pending bits included.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.buffered_bits.div_ceil(8) as usize
    }

    /// Writes a gap, which is at least 1.
    #[inline]
    pub(crate) fn put(&mut self, gap: u64) {
        let number = gap.saturating_sub(1);
        let (quotient, bits) = (number >> self.parameter, u32::from(self.parameter));
        // Almost every code fits into a word.
        if quotient < u64::from(WORD_BITS - bits.min(WORD_BITS)).min(u64::from(ESCAPE_ONES)) {
            let (ones, low) = ((1 << quotient) - 1, number & ((1 << bits) - 1));
            let length = quotient as u32 + 1;
            self.write_bits(ones | low << length, length + bits);
        } else {
            self.put_long(number);
        }
    }

    /// Writes a code that is longer than a word.
    #[cold]
    fn put_long(&mut self, number: u64) {
        let (quotient, bits) = (number >> self.parameter, u32::from(self.parameter));
        if quotient < u64::from(ESCAPE_ONES) {
            let low = number & ((1 << bits) - 1);
            self.write_bits((1 << quotient) - 1, quotient as u32 + 1);
            self.write_bits(low & 0xffff_ffff, bits.min(WORD_BITS));
            self.write_bits(low >> WORD_BITS, bits.saturating_sub(WORD_BITS));
        } else {
            self.write_bits((1 << ESCAPE_ONES) - 1, ESCAPE_ONES);
            self.write_bits(number & 0xffff_ffff, WORD_BITS);
            self.write_bits(number >> WORD_BITS, WORD_BITS);
        }
    }

    /// Appends `count` bits, at most a word.
    #[inline]
    fn write_bits(&mut self, bits: u64, count: u32) {
        self.bit_buffer |= bits << self.buffered_bits;
        self.buffered_bits += count;
        if self.buffered_bits >= WORD_BITS {
            self.bytes.extend_from_slice(&(self.bit_buffer as u32).to_le_bytes());
            self.bit_buffer >>= WORD_BITS;
            self.buffered_bits -= WORD_BITS;
        }
    }

    /// Writes the pending bits.
    pub(crate) fn finish(self) {
        let left = self.buffered_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.bit_buffer.to_le_bytes()[..left]);
    }
}

/// Reads the codes that a [`RiceWriter`] wrote.
pub(crate) struct RiceReader<'a> {
    rest: &'a [u8],
    parameter: u8,
    bit_buffer: u64,
    buffered_bits: u32,
}

impl<'a> RiceReader<'a> {
    /// Reads the parameter; `None` if the bytes are malformed.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<RiceReader<'a>> {
        let (&parameter, rest) = bytes.split_first()?;
        (parameter <= 56).then_some(RiceReader { rest, parameter, bit_buffer: 0, buffered_bits: 0 })
    }

    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk() {
            // Counts only the whole bytes that fit; the bits above them are read again.
            self.bit_buffer |= u64::from_le_bytes(*word) << self.buffered_bits;
            let bytes = (63 - self.buffered_bits) / 8;
            self.buffered_bits += bytes * 8;
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.buffered_bits <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.bit_buffer |= u64::from(byte) << self.buffered_bits;
            self.buffered_bits += 8;
            self.rest = rest;
        }
    }

    #[inline]
    fn read_bits(&mut self, count: u32) -> Option<u64> {
        if self.buffered_bits < count {
            self.refill();
        }
        self.buffered_bits = self.buffered_bits.checked_sub(count)?;
        let bits = self.bit_buffer & ((1 << count) - 1);
        self.bit_buffer >>= count;
        Some(bits)
    }

    /// Returns the next gap; `None` at the end of the bytes or if they are malformed.
    #[inline]
    pub(crate) fn read(&mut self) -> Option<u64> {
        if self.buffered_bits <= ESCAPE_ONES {
            self.refill();
        }
        let quotient = self.bit_buffer.trailing_ones().min(ESCAPE_ONES);
        if quotient < ESCAPE_ONES {
            self.read_bits(quotient + 1)?;
            let low = self.read_bits(self.parameter.into())?;
            return (u64::from(quotient) << self.parameter | low).checked_add(1);
        }
        self.read_bits(ESCAPE_ONES)?;
        let low = self.read_bits(32)?;
        (self.read_bits(32)? << 32 | low).checked_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_gaps_are_read_back(
            gaps in proptest::collection::vec(prop_oneof![1..9_u64, 1..5000_u64, 1..=i64::MAX as u64], 1..200),
            parameter in 0..=56_u8,
        ) {
            let mut bytes = Vec::new();
            let mut writer = RiceWriter::new(&mut bytes, parameter);
            gaps.iter().for_each(|gap| writer.put(*gap));
            let length = writer.len();
            writer.finish();
            prop_assert!(bytes.len() <= length);
            let mut reader = RiceReader::new(&bytes).expect("bytes");
            for gap in &gaps {
                prop_assert_eq!(reader.read(), Some(*gap));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..60)) {
            if let Some(mut reader) = RiceReader::new(&bytes) {
                for _ in 0..600 {
                    let Some(_) = reader.read() else { break };
                }
            }
        }
    }
}
