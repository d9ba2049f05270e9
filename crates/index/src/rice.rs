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

    /// Appends items that follow `last`, at most `count`, and returns how many they are.
    ///
    /// Reads codes without low bits 32 bits at a time: such a code is a zero after as many ones as
    /// items are left out, so that the codes are a bitmap of the items. Stops before an escaped
    /// code and near the end; [`RiceReader::read`] reads the rest. Has to be called first.
    pub(crate) fn read_bitmap(&mut self, last: u32, count: usize, items: &mut Vec<u32>) -> usize {
        if self.parameter != 0 {
            return 0;
        }
        let codes = self.rest;
        // The number of items, and of the bits up to the last of them.
        let (mut found, mut used_bits) = (0, 0);
        let (mut before, mut first) = (0, last.checked_add(1));
        let mut word_items = [0; WORD_BITS as usize];
        for (number, word) in codes.as_chunks().0.iter().enumerate() {
            let word = u32::from_le_bytes(*word);
            let Some(item) = first.filter(|_| !has_escape(u64::from(word) << 32 | before)) else {
                break;
            };
            let mut open = !word;
            let word_count = open.count_ones() as usize;
            first = item.checked_add(WORD_BITS);
            if word_count > count - found || first.is_none() {
                break;
            }
            if open != 0 {
                used_bits = number * WORD_BITS as usize + 32 - open.leading_zeros() as usize;
            }
            for place in word_items.iter_mut().take(word_count) {
                *place = item + open.trailing_zeros();
                open &= open.wrapping_sub(1);
            }
            items.extend_from_slice(word_items.get(..word_count).unwrap_or_default());
            (found, before) = (found + word_count, u64::from(word));
        }
        self.rest = codes.get(used_bits / 8..).unwrap_or_default();
        // The byte has these bits.
        let _passed = self.read_bits(used_bits as u32 % 8);
        found
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

/// Returns whether so many ones follow each other that they may announce an escaped code.
fn has_escape(bits: u64) -> bool {
    let two = bits & bits >> 1;
    let four = two & two >> 2;
    let eight = four & four >> 4;
    // Of 24 ones, the first eight, the next and the last.
    const { assert!(ESCAPE_ONES == 24) };
    eight & eight >> 8 & eight >> 16 != 0
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

        /// Items that are read as a bitmap, and the rest, are those that are read one by one.
        #[test]
        fn bitmaps_have_the_items_of_their_codes(
            gaps in proptest::collection::vec(
                prop_oneof![40 => Just(1_u64), 20 => 1..4_u64, 2 => 1..60_u64, 1 => 1..1_u64 << 28],
                1..400,
            ),
            count in 0..400_usize,
        ) {
            let mut bytes = Vec::new();
            let mut writer = RiceWriter::new(&mut bytes, 0);
            gaps.iter().for_each(|gap| writer.put(*gap));
            writer.finish();
            let mut item = 7;
            let expected: Vec<u32> = gaps
                .iter()
                .take(count)
                .map_while(|gap| {
                    item = u32::try_from(u64::from(item) + gap).ok()?;
                    Some(item)
                })
                .collect();
            let mut reader = RiceReader::new(&bytes).expect("bytes");
            let mut items = Vec::new();
            let found = reader.read_bitmap(7, expected.len(), &mut items);
            prop_assert_eq!(found, items.len());
            while items.len() < expected.len() {
                let last = items.last().copied().unwrap_or(7);
                items.push(last + reader.read().expect("a gap") as u32);
            }
            prop_assert_eq!(items, expected);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(0_u8.., 0..60)) {
            if let Some(mut reader) = RiceReader::new(&bytes) {
                reader.read_bitmap(u32::MAX - 200, 300, &mut Vec::new());
                for _ in 0..600 {
                    let Some(_) = reader.read() else { break };
                }
            }
        }
    }
}
