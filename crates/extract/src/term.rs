//! The encoding of terms: a class, mostly a field, and text, as bytes whose order is the order of
//! the index.
//!
//! Extraction makes the terms of items here, and queries the terms that they look up: both must
//! make them alike. Presences of fields, beginnings of words and trigrams are so many that they are
//! numbers until the index writes them; `packed_*` makes the numbers, whose order is that of the
//! terms.

/// Values are cut to this many bytes, at a character boundary. A value of this length may go on.
pub const MAX_VALUE_BYTES: usize = 240;
/// Phone numbers are cut to this many digits, from their end.
const MAX_PHONE_DIGITS: usize = 7;

const VALUE_CLASS: u8 = 1;
const SUFFIX_CLASS: u8 = 2;
const PHONE_CLASS: u8 = 3;
const OVERSIZED_CLASS: u8 = 4;
/// The last classes: terms that are packed into numbers come after all others.
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

/// Returns the part of a folded value that is in its term: the first [`MAX_VALUE_BYTES`] bytes.
#[must_use]
pub fn truncate_value(folded: &str) -> &str {
    &folded[..folded.floor_char_boundary(MAX_VALUE_BYTES)]
}

/// Returns whether a text is shorter than what is left of any value that was cut.
#[must_use]
pub fn is_untruncated(folded: &str) -> bool {
    folded.len() + char::MAX.len_utf8() <= MAX_VALUE_BYTES
}

/// Returns the term of a folded value of a field.
#[must_use]
pub fn value(field: u16, folded: &str) -> Vec<u8> {
    field_term(VALUE_CLASS, field, truncate_value(folded))
}

/// Returns the term of a folded value of a field, from its end to its beginning.
#[must_use]
pub fn suffix(field: u16, folded: &str) -> Vec<u8> {
    let reversed: String = folded.chars().rev().collect();
    field_term(SUFFIX_CLASS, field, truncate_value(&reversed))
}

/// Returns the term of the presence of a field, whatever its value.
#[must_use]
pub fn presence(field: u16) -> Vec<u8> {
    field_term(PRESENCE_CLASS, field, "")
}

/// Returns the term of the beginning of a word.
#[must_use]
pub fn word(prefix: &str) -> Vec<u8> {
    text_term(WORD_CLASS, prefix)
}

/// Returns the term of three characters in a row in an item's indexed text, none of them white
/// space.
#[must_use]
pub fn trigram(three: &str) -> Vec<u8> {
    text_term(TRIGRAM_CLASS, three)
}

/// Returns the trigrams of a text, in order, as often as they occur. Trigrams with white space would
/// be nearly half of all, and narrow a query hardly more.
pub fn trigrams(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(char::is_whitespace).flat_map(|run| {
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let last = starts.len().saturating_sub(3);
        (0..last).map(move |first| &run[starts[first]..starts[first + 3]])
    })
}

/// Returns the term of the last digits of a phone number, the last one first: at most seven. A
/// query with fewer digits looks up the terms with this prefix.
#[must_use]
pub fn phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &ending)
}

/// Returns the term of a number that is perhaps a short one: its last digits, as in [`phone`].
#[must_use]
pub fn short_phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &format!("!{ending}"))
}

/// Returns the term of phone numbers with more than digits: an extension, or letters.
#[must_use]
pub fn odd_phone(field: u16) -> Vec<u8> {
    field_term(PHONE_CLASS, field, "?")
}

/// Returns the term of items with too much text to index, which are always candidates.
#[must_use]
pub fn oversized_items() -> Vec<u8> {
    vec![OVERSIZED_CLASS]
}

/// Words have a term of their first characters, so many of them; longer beginnings are found by
/// trigrams.
pub const WORD_PREFIX_CHARS: usize = 2;
/// The bits of a character in a number.
const BITS_PER_CHAR: u32 = 21;
/// Marks the number of a trigram, not of a word.
const TRIGRAM_FLAG: u64 = 1 << (3 * BITS_PER_CHAR);

/// Returns the number of the presence of a field.
#[must_use]
pub fn packed_presence(field: u16) -> u64 {
    field.into()
}

/// Returns whether a number stands for the presence of a field, not for a word or a trigram.
#[must_use]
pub fn is_presence(packed: u64) -> bool {
    packed < 1 << BITS_PER_CHAR
}

/// Returns the number of the beginning of a word.
#[must_use]
pub fn packed_word(word: &str) -> u64 {
    let mut letters = word.chars().map(|c| u64::from(u32::from(c)));
    let (first, second) = (letters.next().unwrap_or(0), letters.next().unwrap_or(0));
    first << BITS_PER_CHAR | second
}

/// Calls `visit` with the number of each of the [`trigrams`] of a text.
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

/// Writes the term of a number into `term`, which is cleared first. No indexed text holds a NUL,
/// which stands for no character.
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
        fn a_number_is_unpacked_into_its_term(text in "[a-zé王 \\n-]{0,12}") {
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
