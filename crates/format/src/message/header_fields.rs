//! All header fields of a message as texts, whatever their names.
//!
//! Separate from `headers`, which reads the few fields that lists and threads need, each by its own
//! syntax.

use crate::message::encoded_words::{decode_words, has_encoded_words};

/// The most fields that are read of a message.
const MAX_FIELDS: usize = 500;
/// The longest name that is read. No known name has half of it.
const MAX_NAME_BYTES: usize = 76;
/// Of longer values the beginning is read.
const MAX_VALUE_BYTES: usize = 400;

/// The header fields of a message: names in lower case and the beginnings of decoded values, each
/// on one line, in the order of the message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderFields {
    /// Names and values, one after the other.
    text: String,
    /// The end of each name, and of its value.
    ends: Vec<(u32, u32)>,
}

impl HeaderFields {
    /// Reads the fields of a parsed message. Names that no header can have are left out.
    pub(super) fn from_parsed(parsed: &mail_parser::Message<'_>) -> HeaderFields {
        let mut fields = HeaderFields::default();
        let root = parsed.parts.first().map(|root| root.headers.as_slice()).unwrap_or_default();
        for header in root.iter().take(MAX_FIELDS) {
            let name = header.name.as_str();
            if name.len() > MAX_NAME_BYTES || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                continue;
            }
            let range = header.offset_start as usize..header.offset_end as usize;
            fields.add(name, parsed.raw_message.get(range).unwrap_or_default());
        }
        fields
    }

    /// Returns the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |(name_end, end)| {
            let (name_end, end) = (*name_end as usize, *end as usize);
            let name = self.text.get(start..name_end).unwrap_or_default();
            start = end;
            (name, self.text.get(name_end..end).unwrap_or_default())
        })
    }

    fn add(&mut self, name: &str, source: &[u8]) {
        self.text.extend(name.chars().map(|c| c.to_ascii_lowercase()));
        let name_end = self.text.len();
        match has_encoded_words(source) {
            true => self.push_value(decode_words(source).as_bytes()),
            false => self.push_value(source),
        }
        self.ends.push((end_number(name_end), end_number(self.text.len())));
    }

    /// Adds the beginning of a value, with one space for each white space in it.
    fn push_value(&mut self, source: &[u8]) {
        let start = self.text.len();
        let line = source.trim_ascii();
        if line.len() < MAX_VALUE_BYTES
            && is_plain_line(line)
            && let Ok(line) = str::from_utf8(line)
        {
            self.text.push_str(line);
            return;
        }
        let words = source.split(|byte| byte.is_ascii_whitespace() || *byte == 0);
        for word in words.filter(|word| !word.is_empty()) {
            let room = (start + MAX_VALUE_BYTES).saturating_sub(self.text.len() + 1);
            if room == 0 {
                return;
            }
            if self.text.len() > start {
                self.text.push(' ');
            }
            let word = word.get(..room).unwrap_or(word);
            match str::from_utf8(word) {
                Ok(word) => self.text.push_str(word),
                // The end of a value that is cut off, or bytes that are no text.
                Err(_) => self.text.push_str(&String::from_utf8_lossy(word)),
            }
        }
    }
}

/// Returns whether a line is ASCII with single spaces, as most values are. Reads all bytes: a loop
/// that ends early is not vectorised.
fn is_plain_line(line: &[u8]) -> bool {
    let pairs = line.iter().zip(line.get(1..).unwrap_or_default());
    line.iter().fold(true, |is_plain, byte| is_plain & (b' '..=b'~').contains(byte))
        & pairs.fold(true, |is_single, (a, b)| is_single & !((*a == b' ') & (*b == b' ')))
}

/// Returns a place in the text: it has less than a megabyte.
fn end_number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the text of a value behind a name.
    fn value_text(value: &[u8]) -> String {
        let mut fields = HeaderFields { text: "subject".into(), ..Default::default() };
        fields.push_value(value);
        fields.text.split_off("subject".len())
    }

    proptest! {
        /// Plain lines, which are copied, have the text that other values have word by word.
        #[test]
        fn values_are_words_with_single_spaces(
            value in "([a-c~]{1,3} {1,2}){0,5}(\\t|\\r\\n|\\x00|\\x7f|\u{e4})?[a-c]{0,3} {0,2}",
        ) {
            let words = value.split(|c: char| c.is_ascii_whitespace() || c == '\0');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(value_text(value.as_bytes()), words.join(" "));
        }
    }

    #[test]
    fn of_long_values_the_beginning_is_kept() {
        let long = "word ".repeat(100);
        let letters = "x".repeat(500);
        for (value, length) in [
            (&long[..396], 396),
            (&long[..], 399),
            (&letters[..398], 398),
            (&letters[..399], 399),
            (&letters[..400], 399),
            (&letters[..], 399),
        ] {
            assert_eq!(value_text(value.as_bytes()), &value[..length]);
        }
        assert_eq!(value_text(b" a  b "), "a b");
    }
}
