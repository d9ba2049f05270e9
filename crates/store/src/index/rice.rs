//! Rice codes: distances between the items of a term, in about as many bits as they are worth.
//!
//! A distance, less one, is cut into its lowest bits, as many as the mean has, and the rest, which is mostly 0 or 1: so many
//! ones and a zero. A rest of [`ESCAPE`] ones has all 64 bits of the number behind it. Bits go into bytes from the lowest
//! on. Beside varints of whole bytes they take a third less, since most terms are frequent and most distances small. (R. F.
//! Rice, Some practical universal noiseless coding techniques, 1979.)

/// So many ones say that the number follows as it is.
const ESCAPE: u32 = 24;

/// Bits are written in words of so many.
const WORD: u32 = 32;

/// How many bits of the distances of these items, two at least, are best left as they are.
pub(super) fn bits(items: &[i64]) -> u8 {
    let (first, last) = (items.first().copied().unwrap_or(0), items.last().copied().unwrap_or(0));
    let distances = (items.len() as u64).saturating_sub(1).max(1);
    let mean = last.abs_diff(first) / distances;
    // The logarithm of ln 2 times the mean.
    (mean * 7 / 10).checked_ilog2().map_or(0, |bits| bits.min(56) as u8)
}

/// Writes codes behind what is there.
pub(super) struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    bits: u8,
    /// Bits that are no whole word yet.
    open: u64,
    filled: u32,
}

impl<'a> Writer<'a> {
    /// Writes how many bits are as they are.
    pub(super) fn new(bytes: &'a mut Vec<u8>, bits: u8) -> Writer<'a> {
        bytes.push(bits);
        Writer { bytes, bits, open: 0, filled: 0 }
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.filled.div_ceil(8) as usize
    }

    /// Writes a distance, which is 1 at least.
    pub(super) fn put(&mut self, distance: u64) {
        let number = distance.saturating_sub(1);
        let (rest, bits) = (number >> self.bits, u32::from(self.bits));
        if rest < u64::from(ESCAPE) {
            let (ones, low) = ((1 << rest) - 1, number & ((1 << bits) - 1));
            let length = rest as u32 + 1;
            if length + bits <= WORD {
                self.add(ones | low << length, length + bits);
            } else {
                self.add(ones, length);
                self.add(low & 0xffff_ffff, bits.min(WORD));
                self.add(low >> WORD, bits.saturating_sub(WORD));
            }
        } else {
            self.add((1 << ESCAPE) - 1, ESCAPE);
            self.add(number & 0xffff_ffff, WORD);
            self.add(number >> WORD, WORD);
        }
    }

    /// Adds so many bits, a word at most.
    fn add(&mut self, bits: u64, count: u32) {
        self.open |= bits << self.filled;
        self.filled += count;
        if self.filled >= WORD {
            self.bytes.extend_from_slice(&(self.open as u32).to_le_bytes());
            self.open >>= WORD;
            self.filled -= WORD;
        }
    }

    /// Writes the last bits.
    pub(super) fn finish(self) {
        let left = self.filled.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.open.to_le_bytes()[..left]);
    }
}

/// Reads codes.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    bits: u8,
    open: u64,
    filled: u32,
}

impl<'a> Reader<'a> {
    /// `None`: the bytes are malformed.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Reader<'a>> {
        let (&bits, rest) = bytes.split_first()?;
        (bits <= 56).then_some(Reader { rest, bits, open: 0, filled: 0 })
    }

    fn fill(&mut self) {
        if let Some(word) = self.rest.first_chunk() {
            // As many whole bytes as there is room for; what is above them comes again.
            self.open |= u64::from_le_bytes(*word) << self.filled;
            let bytes = (63 - self.filled) / 8;
            self.filled += bytes * 8;
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.filled <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.open |= u64::from(byte) << self.filled;
            self.filled += 8;
            self.rest = rest;
        }
    }

    fn take_bits(&mut self, count: u32) -> Option<u64> {
        if self.filled < count {
            self.fill();
        }
        self.filled = self.filled.checked_sub(count)?;
        let bits = self.open & ((1 << count) - 1);
        self.open >>= count;
        Some(bits)
    }

    /// The next distance; `None` at the end, or where there is none.
    pub(super) fn take(&mut self) -> Option<u64> {
        if self.filled <= ESCAPE {
            self.fill();
        }
        let rest = self.open.trailing_ones().min(ESCAPE);
        if rest < ESCAPE {
            self.take_bits(rest + 1)?;
            let low = self.take_bits(self.bits.into())?;
            return (u64::from(rest) << self.bits | low).checked_add(1);
        }
        self.take_bits(ESCAPE)?;
        let low = self.take_bits(32)?;
        (self.take_bits(32)? << 32 | low).checked_add(1)
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
            let mut writer = Writer::new(&mut bytes, bits);
            distances.iter().for_each(|distance| writer.put(*distance));
            let length = writer.len();
            writer.finish();
            prop_assert!(bytes.len() <= length);
            let mut reader = Reader::new(&bytes).expect("bytes");
            for distance in &distances {
                prop_assert_eq!(reader.take(), Some(*distance));
            }
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(0_u8.., 0..60)) {
            if let Some(mut reader) = Reader::new(&bytes) {
                for _ in 0..600 {
                    let Some(_) = reader.take() else { break };
                }
            }
        }
    }
}
