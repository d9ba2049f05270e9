//! Names of files in few bytes: names that differ only in numbers are packed as their numbers.
//!
//! The names of a maildir are times, process numbers and sizes between a few words, such as
//! `1420054174.M52468P1020.host,S=3531:2,S`. The text between the numbers is kept once, as a
//! pattern. A name of many patterns, such as a random one, is packed as it is.

use larder_time::varint::{VarintReader, put_unsigned_number};
use rustc_hash::FxHashMap;

/// The byte that stands for a number in a pattern. No name of a file has it.
const NUMBER: u8 = 0;
/// The most digits of a number; longer ones are several numbers.
const MAX_DIGITS: usize = 18;
/// The most patterns, and the longest one.
const MAX_PATTERNS: usize = 1024;
const MAX_PATTERN_BYTES: usize = 255;

/// Packs and unpacks names.
#[derive(Debug, Default)]
pub(super) struct NamePacker {
    patterns: Vec<Vec<u8>>,
    numbers: FxHashMap<Vec<u8>, u64>,
    /// The pattern and the numbers of the name that is packed.
    pattern: Vec<u8>,
    values: Vec<u64>,
}

impl NamePacker {
    /// Appends a name to bytes.
    pub(super) fn pack(&mut self, name: &[u8], bytes: &mut Vec<u8>) {
        self.split(name);
        match self.find_pattern(name) {
            Some(number) => {
                put_unsigned_number(bytes, number);
                self.values.iter().for_each(|value| put_unsigned_number(bytes, *value));
            }
            None => {
                put_unsigned_number(bytes, 0);
                put_unsigned_number(bytes, name.len() as u64);
                bytes.extend_from_slice(name);
            }
        }
    }

    /// Reads a name that was packed; `None`: the bytes are no name.
    pub(super) fn unpack(&self, reader: &mut VarintReader<'_>) -> Option<Vec<u8>> {
        let number = usize::try_from(reader.read_unsigned()?).ok()?;
        let Some(number) = number.checked_sub(1) else {
            let length = reader.read_count()?;
            return reader.read_bytes(length).map(<[u8]>::to_vec);
        };
        let pattern = self.patterns.get(number)?;
        let mut name = Vec::with_capacity(pattern.len() * 4);
        for byte in pattern {
            match *byte {
                NUMBER => push_digits(&mut name, reader.read_unsigned()?),
                byte => name.push(byte),
            }
        }
        Some(name)
    }

    /// Splits a name into its pattern and its numbers.
    fn split(&mut self, name: &[u8]) {
        self.pattern.clear();
        self.values.clear();
        let mut rest = name;
        while let Some((first, after)) = rest.split_first() {
            if !first.is_ascii_digit() {
                self.pattern.push(*first);
                rest = after;
                continue;
            }
            let is_digit = |byte: &&u8| byte.is_ascii_digit();
            let count = rest.iter().take(MAX_DIGITS).take_while(is_digit).count();
            let (digits, after) = rest.split_at(count);
            self.pattern.push(NUMBER);
            self.values.push(number_of(digits));
            rest = after;
        }
    }

    /// Returns the number of the pattern of a name, counted from one; `None`: it gets none.
    fn find_pattern(&mut self, name: &[u8]) -> Option<u64> {
        if name.contains(&NUMBER) {
            return None;
        }
        if let Some(number) = self.numbers.get(&self.pattern) {
            return Some(*number);
        }
        if self.patterns.len() >= MAX_PATTERNS || self.pattern.len() > MAX_PATTERN_BYTES {
            return None;
        }
        self.patterns.push(self.pattern.clone());
        let number = self.patterns.len() as u64;
        self.numbers.insert(self.pattern.clone(), number);
        Some(number)
    }
}

/// Returns the number that stands for digits, at most [`MAX_DIGITS`]. The zeros in front of it are
/// counted in its lowest bits if there are any.
fn number_of(digits: &[u8]) -> u64 {
    let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    match digits {
        [b'0', _, ..] => value << 6 | (digits.len() as u64) << 1 | 1,
        _ => value << 1,
    }
}

/// Appends the digits that a number stands for.
fn push_digits(name: &mut Vec<u8>, number: u64) {
    let (value, width) = match number & 1 {
        0 => (number >> 1, 1),
        _ => (number >> 6, (number >> 1 & 31) as usize),
    };
    name.extend_from_slice(format!("{value:0width$}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack_all(names: &[Vec<u8>]) -> (NamePacker, Vec<u8>) {
        let (mut packer, mut bytes) = (NamePacker::default(), Vec::new());
        names.iter().for_each(|name| packer.pack(name, &mut bytes));
        (packer, bytes)
    }

    fn check(names: &[Vec<u8>]) -> usize {
        let (packer, bytes) = pack_all(names);
        let mut reader = VarintReader::new(&bytes);
        for name in names {
            assert_eq!(packer.unpack(&mut reader).as_ref(), Some(name));
        }
        assert!(reader.is_at_end());
        bytes.len()
    }

    #[test]
    fn names_of_a_maildir_take_few_bytes() {
        let name = |number: u64| {
            let (seconds, part) = (1_420_054_174 + 7 * number, number * 7_919 % 1_000_000);
            format!("{seconds}.M{part:06}P1020_20.host7,S={}:2,FS", 3000 + number).into_bytes()
        };
        let names: Vec<Vec<u8>> = (0..1000).map(name).collect();
        let length: usize = names.iter().map(Vec::len).sum();
        let packed = check(&names);
        assert!(packed * 5 < length * 2, "{packed} of {length} bytes");
    }

    #[test]
    fn any_name_is_unpacked() {
        let names = ["", "0", "00", "007", "1", "a", "é0é", "0000000000000000000000000000000001"];
        let long = "9".repeat(300) + &"-0".repeat(200);
        let other = ["999999999999999999", "000000000000000009", "1234567890123456789"];
        let names = names.iter().chain(&other).map(|name| name.as_bytes().to_vec());
        let more = [long.as_bytes(), b"a\0b1", b"1\0", &[0xff, b'0', 0xfe]].map(<[u8]>::to_vec);
        check(&names.chain(more).collect::<Vec<_>>());
    }

    #[test]
    fn patterns_are_bounded() {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let letters = |number: usize, shift: usize| b'a' + (number >> shift & 15) as u8;
        for number in 0..3000 {
            names.push(vec![letters(number, 8), b'7', letters(number, 4), letters(number, 0)]);
        }
        check(&names);
        assert_eq!(pack_all(&names).0.patterns.len(), MAX_PATTERNS);
    }

    proptest! {
        #[test]
        fn names_come_back(names in prop::collection::vec("[01a.\\x00]{0,24}|[0-9]{0,40}", 0..40)) {
            check(&names.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        }
    }
}
