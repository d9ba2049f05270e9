//! The terms that items are found by: a class, mostly a field, and text, as bytes whose order is
//! the index's order.
//!
//! Who derives terms from an item and who looks for them must make them alike, so both make them
//! here. Nothing is read or written.

/// Values are kept to this many bytes, whole characters. What is as long may go on.
pub const MAX_VALUE_BYTES: usize = 240;
/// So many of a phone number's last digits are kept.
const MAX_PHONE_DIGITS: usize = 7;

const VALUE_CLASS: u8 = 1;
const SUFFIX_CLASS: u8 = 2;
const PHONE_CLASS: u8 = 3;
const OVERSIZED_CLASS: u8 = 4;
/// The last classes of their set: what is packed in a number is written behind all other terms.
const PRESENCE_CLASS: u8 = 5;
const WORD_CLASS: u8 = 6;
const TRIGRAM_CLASS: u8 = 7;
const SORT_CLASS: u8 = 8;
/// The items that a segment knows, and those that were removed while it was current.
const CHANGED_ITEMS_CLASS: u8 = 0xff;

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

/// What is kept of a folded value: its beginning, at most [`MAX_VALUE_BYTES`] bytes, whole
/// characters.
#[must_use]
pub fn truncate_value(folded: &str) -> &str {
    &folded[..folded.floor_char_boundary(MAX_VALUE_BYTES)]
}

/// Is the text shorter than whatever is left of a value that was cut?
#[must_use]
pub fn is_untruncated(folded: &str) -> bool {
    folded.len() + char::MAX.len_utf8() <= MAX_VALUE_BYTES
}

/// A folded value of a field, as far as it is [kept].
#[must_use]
pub fn value(field: u16, folded: &str) -> Vec<u8> {
    field_term(VALUE_CLASS, field, truncate_value(folded))
}

/// The field is there, whatever its value.
#[must_use]
pub fn presence(field: u16) -> Vec<u8> {
    field_term(PRESENCE_CLASS, field, "")
}

/// A folded value of a field from its end to its beginning, as far as it is [kept].
#[must_use]
pub fn suffix(field: u16, folded: &str) -> Vec<u8> {
    let reversed: String = folded.chars().rev().collect();
    field_term(SUFFIX_CLASS, field, truncate_value(&reversed))
}

/// The beginning of a word.
#[must_use]
pub fn word(beginning: &str) -> Vec<u8> {
    text_term(WORD_CLASS, beginning)
}

/// The last digits of a phone number of a field, the last one first: so many as are kept, at most
/// seven. Who has fewer looks for a term that begins so.
#[must_use]
pub fn phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &ending)
}

/// The last digits, as [`phone`] has them, of a number that is perhaps a short one.
#[must_use]
pub fn short_phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(MAX_PHONE_DIGITS).collect();
    field_term(PHONE_CLASS, field, &format!("!{ending}"))
}

/// A phone number of a field with more to it than digits: an extension, or letters.
#[must_use]
pub fn odd_phone(field: u16) -> Vec<u8> {
    field_term(PHONE_CLASS, field, "?")
}

/// Items of which too much text would have to be indexed: always candidates.
#[must_use]
pub(crate) fn oversized_items() -> Vec<u8> {
    vec![OVERSIZED_CLASS]
}

/// Three characters that follow each other somewhere in an item's indexed text, none of them white
/// space.
#[must_use]
pub fn trigram(three: &str) -> Vec<u8> {
    text_term(TRIGRAM_CLASS, three)
}

/// The trigrams of a text, in order, as often as they are in it. Those with white space in them
/// would be nearly half of all, and hardly narrow what the others leave.
pub fn trigrams(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let gap = char::is_whitespace;
    text.split(gap).flat_map(|run| {
        let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
        let last = starts.len().saturating_sub(3);
        (0..last).map(move |first| &run[starts[first]..starts[first + 3]])
    })
}

/// Does a sort term put items into an order, or take out those that were in it before?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortOp {
    Insert = 1,
    Remove = 2,
}

/// Before the key of a sort term: its class, its field and its collection.
const SORT_PREFIX_BYTES: usize = 1 + 2 + 4;
/// Behind it: an end that keeps longer keys behind shorter ones, and the sign.
const SORT_SUFFIX_BYTES: usize = 2;

/// The order of a collection's items by a field: what all its sort terms begin with.
pub(crate) fn sort_prefix(field: u16, collection: i64) -> Vec<u8> {
    let mut term = vec![SORT_CLASS];
    term.extend(field.to_be_bytes());
    // Collections are numbered from 1.
    term.extend(u32::try_from(collection).unwrap_or(u32::MAX).to_be_bytes());
    term
}

/// The place of an item in an order.
pub(crate) fn sort_term(field: u16, collection: i64, key: &[u8], sign: SortOp) -> Vec<u8> {
    let mut term = sort_prefix(field, collection);
    // Keys hold no zeros; where one did, items would only lie beside where they belong.
    term.extend(key.iter().map(|&byte| byte.max(1)));
    term.extend([0, sign as u8]);
    term
}

/// The key of a sort term; `None`: it is of another class.
pub(super) fn sort_key(term: &[u8]) -> Option<&[u8]> {
    let end = term.len().checked_sub(SORT_SUFFIX_BYTES)?;
    (term.first() == Some(&SORT_CLASS)).then(|| term.get(SORT_PREFIX_BYTES..end)).flatten()
}

/// 1 where a sort term puts items into an order, -1 where it takes them out; 0 for all other terms.
pub(super) fn sort_sign(term: &[u8]) -> i64 {
    match (term.first(), term.last()) {
        (Some(&SORT_CLASS), Some(&last)) if last == SortOp::Insert as u8 => 1,
        (Some(&SORT_CLASS), _) => -1,
        _ => 0,
    }
}

/// The first eight bytes of a term as a number that is in the terms' order, as far as it tells.
pub(super) fn prefix_number(term: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = term.len().min(8);
    first[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(first)
}

pub(super) fn changed_items() -> Vec<u8> {
    vec![CHANGED_ITEMS_CLASS]
}

/// So many characters of a word's beginning are kept: longer ones are found by their trigrams.
pub const WORD_PREFIX_CHARS: usize = 2;
/// What a character takes in a number.
const BITS_PER_CHAR: u32 = 21;
/// The number is that of a trigram, not of a word.
const TRIGRAM_FLAG: u64 = 1 << (3 * BITS_PER_CHAR);

/// The presence of a field in one number. Numbers are in the order of their terms.
pub(crate) fn packed_presence(field: u16) -> u64 {
    field.into()
}

/// Is it the presence of a field, and not a word or a trigram?
pub(crate) fn is_presence(packed: u64) -> bool {
    packed < 1 << BITS_PER_CHAR
}

/// The term of a word's beginning in one number.
pub(crate) fn packed_word(word: &str) -> u64 {
    let mut letters = word.chars().map(|c| u64::from(u32::from(c)));
    let (first, second) = (letters.next().unwrap_or(0), letters.next().unwrap_or(0));
    first << BITS_PER_CHAR | second
}

/// Gives the term of each trigram of a text to `each`, in one number. They are those of
/// [`trigrams`].
pub(crate) fn for_each_packed_trigram(text: &str, each: &mut impl FnMut(u64)) {
    let (mut packed, mut length) = (0, 0);
    for c in text.chars() {
        if c.is_whitespace() {
            length = 0;
            continue;
        }
        packed = (packed << BITS_PER_CHAR | u64::from(u32::from(c))) & (TRIGRAM_FLAG - 1);
        length += 1;
        if length >= 3 {
            each(TRIGRAM_FLAG | packed);
        }
    }
}

/// The term of a number. No text that is indexed holds a NUL, which stands for no character.
pub(super) fn unpack_term(packed: u64, term: &mut Vec<u8>) {
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
        fn a_number_is_its_term(text in "[a-zé王 \\n-]{0,12}") {
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
