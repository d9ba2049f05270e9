//! The encoding of terms: a class, for most classes a field, and text, as bytes.
//!
//! Extraction and the query planner must encode a term alike, so both do it here. The encoding is
//! pure. `larder-index` sees terms as opaque bytes and reserves the first bytes 0x04 and 0xff.
//!
//! | first byte | term |
//! |---|---|
//! | 1 | field, beginning of a folded value |
//! | 2 | field, beginning of a reversed folded value |
//! | 3 | field, last digits of a phone number, reversed |
//! | 5 | field: the item has a value of it |
//! | 6 | beginning of a word |
//! | 7 | trigram |
//!
//! Classes 5 to 7 are short and many, and have a packed form: a number that compares as the term
//! does.

/// A value is truncated to this many bytes, at a character. A term of full length may be truncated.
pub const MAX_VALUE_BYTES: usize = 240;
/// The number of trailing digits of a phone number in a term.
const MAX_PHONE_DIGITS: usize = 7;

const VALUE_CLASS: u8 = 1;
const SUFFIX_CLASS: u8 = 2;
const PHONE_CLASS: u8 = 3;
/// The packed classes are greater than all others: packed terms are written after plain ones.
const PRESENCE_CLASS: u8 = 5;
const WORD_CLASS: u8 = 6;
const TRIGRAM_CLASS: u8 = 7;

fn field_term(class: u8, field: u16, text: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(3 + text.len());
    term.push(class);
    term.extend(field.to_be_bytes());
    term.extend(text.as_bytes());
    term
}

fn text_term(class: u8, text: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(1 + text.len());
    term.push(class);
    term.extend(text.as_bytes());
    term
}

/// Returns the part of a folded value that a term holds: its beginning, at most [`MAX_VALUE_BYTES`]
/// bytes, whole characters.
#[must_use]
pub fn truncate_value(folded: &str) -> &str {
    &folded[..folded.floor_char_boundary(MAX_VALUE_BYTES)]
}

/// Returns whether the text is shorter than any truncated value.
#[must_use]
pub fn is_untruncated(folded: &str) -> bool {
    folded.len() + char::MAX.len_utf8() <= MAX_VALUE_BYTES
}

/// Returns the term of a folded value of a field (see [`truncate_value`]).
#[must_use]
pub fn value(field: u16, folded: &str) -> Vec<u8> {
    field_term(VALUE_CLASS, field, truncate_value(folded))
}

/// Returns the term of the presence of a field.
#[must_use]
pub fn presence(field: u16) -> Vec<u8> {
    field_term(PRESENCE_CLASS, field, "")
}

/// Returns the term of a reversed folded value of a field (see [`truncate_value`]).
#[must_use]
pub fn suffix(field: u16, folded: &str) -> Vec<u8> {
    let reversed: String = folded.chars().rev().collect();
    field_term(SUFFIX_CLASS, field, truncate_value(&reversed))
}

/// Returns the term of the beginning of a word.
#[must_use]
pub fn word(beginning: &str) -> Vec<u8> {
    text_term(WORD_CLASS, beginning)
}

/// Returns the term of the last seven digits of a phone number of a field, in reverse. A number
/// with fewer digits is a prefix of the terms of the numbers that end with it.
#[must_use]
pub fn phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &ending)
}

/// Returns the term of a number that is perhaps a short one, with the digits of [`phone`].
#[must_use]
pub fn short_phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &format!("!{ending}"))
}

/// Returns the term of the phone numbers of a field that have an extension or letters.
#[must_use]
pub fn odd_phone(field: u16) -> Vec<u8> {
    field_term(PHONE_CLASS, field, "?")
}

/// Returns the term of three consecutive characters, none of them white space.
#[must_use]
pub fn trigram(three: &str) -> Vec<u8> {
    text_term(TRIGRAM_CLASS, three)
}

/// Returns the trigrams of a text in order, with repetitions. Trigrams with white space are
/// omitted: they would be nearly half of all trigrams and hardly exclude further items.
pub fn trigrams(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(char::is_whitespace).flat_map(|run| {
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let last = starts.len().saturating_sub(3);
        (0..last).map(move |first| &run[starts[first]..starts[first + 3]])
    })
}

/// The number of characters of a word in a term: longer beginnings are found by their trigrams.
pub const WORD_PREFIX_CHARS: usize = 2;
/// The bits of a character in a packed term.
const BITS_PER_CHAR: u32 = 21;
/// Marks a trigram; a word has no such bit.
const TRIGRAM_FLAG: u64 = 1 << (3 * BITS_PER_CHAR);

/// Returns the packed form of [`presence`].
#[must_use]
pub fn packed_presence(field: u16) -> u64 {
    field.into()
}

/// Returns whether the packed term is the presence of a field.
#[must_use]
pub fn is_presence(packed: u64) -> bool {
    packed < 1 << BITS_PER_CHAR
}

/// Returns the packed form of [`word`].
#[must_use]
pub fn packed_word(word: &str) -> u64 {
    let mut letters = word.chars().map(|c| u64::from(u32::from(c)));
    let (first, second) = (letters.next().unwrap_or(0), letters.next().unwrap_or(0));
    first << BITS_PER_CHAR | second
}

/// Passes the packed form of each of the [`trigrams`] of a text to `visit`.
pub fn for_each_packed_trigram(text: &str, visit: &mut impl FnMut(u64)) {
    let (mut packed, mut length) = (0, 0);
    for c in text.chars() {
        if c.is_whitespace() {
            length = 0;
            continue;
        }
        packed = (packed << BITS_PER_CHAR | u64::from(u32::from(c))) & (TRIGRAM_FLAG - 1);
        length += 1;
        if length >= 3 {
            visit(TRIGRAM_FLAG | packed);
        }
    }
}

/// Writes the term of a packed form. Indexed text holds no NUL, which stands for no character.
pub fn unpack_term(packed: u64, term: &mut Vec<u8>) {
    term.clear();
    if is_presence(packed) {
        term.push(PRESENCE_CLASS);
        term.extend((packed as u16).to_be_bytes());
        return;
    }
    term.push(if packed & TRIGRAM_FLAG == 0 { WORD_CLASS } else { TRIGRAM_CLASS });
    for shift in [2 * BITS_PER_CHAR, BITS_PER_CHAR, 0] {
        let code = (packed >> shift) as u32 & ((1 << BITS_PER_CHAR) - 1);
        if code != 0 {
            let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            term.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn packed_terms_equal_plain_terms_and_keep_their_order(text in "[a-zé王 \\n-]{0,12}") {
            let mut numbers = Vec::new();
            for_each_packed_trigram(&text, &mut |number| numbers.push(number));
            let mut term = Vec::new();
            let mut unpacked: Vec<Vec<u8>> = numbers.iter().map(|&number| {
                unpack_term(number, &mut term);
                term.clone()
            }).collect();
            let expected: Vec<Vec<u8>> = trigrams(&text).map(trigram).collect();
            assert_eq!(unpacked, expected);
            numbers.extend([packed_presence(1), packed_presence(u16::MAX)]);
            numbers.extend(text.split(' ').filter(|word| !word.is_empty()).map(packed_word));
            numbers.sort_unstable();
            unpacked = numbers.iter().map(|&number| {
                unpack_term(number, &mut term);
                term.clone()
            }).collect();
            assert!(unpacked.is_sorted());
            assert_eq!(unpacked[..2], [presence(1), presence(u16::MAX)]);
            assert!(unpacked.iter().all(|term| term[0] != WORD_CLASS || term.len() > 1));
        }
    }
}
