//! Rice codes: distances between the items of a term, in about as many bits as they are worth.
//!
//! A distance, less one, is cut into its lowest bits, as many as the mean has, and the rest, which
//! is mostly 0 or 1: so many ones and a zero. A rest of [`ESCAPE_ONES`] ones has all 64 bits of the
//! number behind it. Bits go into bytes from the lowest on. Beside varints of whole bytes they take
//! a third less, since most terms are frequent and most distances small. (R. F. Rice, Some
//! practical universal noiseless coding techniques, 1979.)

/// So many ones say that the number follows as it is.
const ESCAPE_ONES: u32 = 24;

/// Bits are written in words of so many.
const WORD_BITS: u32 = 32;

/// How many bits of the distances of these items, two at least, are best left as they are.
pub(super) fn choose_parameter(items: &[i64]) -> u8 {
    let (first, last) = (items.first().copied().unwrap_or(0), items.last().copied().unwrap_or(0));
    let distances = (items.len() as u64).saturating_sub(1).max(1);
    let mean = last.abs_diff(first) / distances;
    // The logarithm of ln 2 times the mean.
    (mean * 7 / 10).checked_ilog2().map_or(0, |bits| bits.min(56) as u8)
}

/// Writes codes behind what is there.
pub(super) struct RiceWriter<'a> {
    bytes: &'a mut Vec<u8>,
    parameter: u8,
    /// Bits that are no whole word yet.
    bit_buffer: u64,
    buffered_bits: u32,
}

impl<'a> RiceWriter<'a> {
    /// Writes how many bits are as they are.
    pub(super) fn new(bytes: &'a mut Vec<u8>, parameter: u8) -> RiceWriter<'a> {
        bytes.push(parameter);
        RiceWriter { bytes, parameter, bit_buffer: 0, buffered_bits: 0 }
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.buffered_bits.div_ceil(8) as usize
    }

    /// Writes a distance, which is 1 at least.
    pub(super) fn put(&mut self, distance: u64) {
        let number = distance.saturating_sub(1);
        let (rest, bits) = (number >> self.parameter, u32::from(self.parameter));
        if rest < u64::from(ESCAPE_ONES) {
            let (ones, low) = ((1 << rest) - 1, number & ((1 << bits) - 1));
            let length = rest as u32 + 1;
            if length + bits <= WORD_BITS {
                self.write_bits(ones | low << length, length + bits);
            } else {
                self.write_bits(ones, length);
                self.write_bits(low & 0xffff_ffff, bits.min(WORD_BITS));
                self.write_bits(low >> WORD_BITS, bits.saturating_sub(WORD_BITS));
            }
        } else {
            self.write_bits((1 << ESCAPE_ONES) - 1, ESCAPE_ONES);
            self.write_bits(number & 0xffff_ffff, WORD_BITS);
            self.write_bits(number >> WORD_BITS, WORD_BITS);
        }
    }

    /// Adds so many bits, a word at most.
    fn write_bits(&mut self, bits: u64, count: u32) {
        self.bit_buffer |= bits << self.buffered_bits;
        self.buffered_bits += count;
        if self.buffered_bits >= WORD_BITS {
            self.bytes.extend_from_slice(&(self.bit_buffer as u32).to_le_bytes());
            self.bit_buffer >>= WORD_BITS;
            self.buffered_bits -= WORD_BITS;
        }
    }

    /// Writes the last bits.
    pub(super) fn finish(self) {
        let left = self.buffered_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.bit_buffer.to_le_bytes()[..left]);
    }
}

/// Reads codes.
pub(super) struct RiceReader<'a> {
    rest: &'a [u8],
    parameter: u8,
    bit_buffer: u64,
    buffered_bits: u32,
}

impl<'a> RiceReader<'a> {
    /// `None`: the bytes are malformed.
    pub(super) fn new(bytes: &'a [u8]) -> Option<RiceReader<'a>> {
        let (&bits, rest) = bytes.split_first()?;
        (bits <= 56).then_some(RiceReader {
            rest,
            parameter: bits,
            bit_buffer: 0,
            buffered_bits: 0,
        })
    }

    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk() {
            // As many whole bytes as there is room for; what is above them comes again.
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

    fn read_bits(&mut self, count: u32) -> Option<u64> {
        if self.buffered_bits < count {
            self.refill();
        }
        self.buffered_bits = self.buffered_bits.checked_sub(count)?;
        let bits = self.bit_buffer & ((1 << count) - 1);
        self.bit_buffer >>= count;
        Some(bits)
    }

    /// The next distance; `None` at the end, or where there is none.
    pub(super) fn read(&mut self) -> Option<u64> {
        if self.buffered_bits <= ESCAPE_ONES {
            self.refill();
        }
        let rest = self.bit_buffer.trailing_ones().min(ESCAPE_ONES);
        if rest < ESCAPE_ONES {
            self.read_bits(rest + 1)?;
            let low = self.read_bits(self.parameter.into())?;
            return (u64::from(rest) << self.parameter | low).checked_add(1);
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
        fn what_is_written_is_read(
            distances in proptest::collection::vec(prop_oneof![1..9_u64, 1..5000_u64, 1..=i64::MAX as u64], 1..200),
            bits in 0..=56_u8,
        ) {
            let mut bytes = Vec::new();
            let mut writer = RiceWriter::new(&mut bytes, bits);
            distances.iter().for_each(|distance| writer.put(*distance));
            let length = writer.len();
            writer.finish();
            prop_assert!(bytes.len() <= length);
            let mut reader = RiceReader::new(&bytes).expect("bytes");
            for distance in &distances {
                prop_assert_eq!(reader.read(), Some(*distance));
            }
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(0_u8.., 0..60)) {
            if let Some(mut reader) = RiceReader::new(&bytes) {
                for _ in 0..600 {
                    let Some(_) = reader.read() else { break };
                }
            }
        }
    }
}
