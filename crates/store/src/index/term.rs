//! The terms that items are found by: a class, mostly a field, and text, as bytes whose order is the
//! index's order.
//!
//! Who derives terms from an item and who looks for them must make them alike, so both make them here.
//! Nothing is read or written.

/// Values are kept to this many bytes, whole characters. What is as long may go on.
pub const VALUE_LIMIT: usize = 240;
/// So many of a phone number's last digits are kept.
const PHONE_DIGITS: usize = 7;

const VALUE: u8 = 1;
const SUFFIX: u8 = 2;
const PHONE: u8 = 3;
const LARGE: u8 = 4;
/// The last classes of their set: what is packed in a number is written behind all other terms.
const PRESENCE: u8 = 5;
const WORD: u8 = 6;
const TRIGRAM: u8 = 7;
const SORT: u8 = 8;
/// The items that a segment knows, and those that were removed while it was current.
const TOUCHED: u8 = 0xff;

fn of_field(class: u8, field: u16, text: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(3 + text.len());
    term.push(class);
    term.extend(field.to_be_bytes());
    term.extend(text.as_bytes());
    term
}

fn of(class: u8, text: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(1 + text.len());
    term.push(class);
    term.extend(text.as_bytes());
    term
}

/// What is kept of a folded value: its beginning, at most [`VALUE_LIMIT`] bytes, whole characters.
#[must_use]
pub fn kept(folded: &str) -> &str {
    &folded[..folded.floor_char_boundary(VALUE_LIMIT)]
}

/// Is the text shorter than whatever is left of a value that was cut?
#[must_use]
pub fn is_whole(folded: &str) -> bool {
    folded.len() + char::MAX.len_utf8() <= VALUE_LIMIT
}

/// A folded value of a field, as far as it is [kept].
#[must_use]
pub fn value(field: u16, folded: &str) -> Vec<u8> {
    of_field(VALUE, field, kept(folded))
}

/// The field is there, whatever its value.
#[must_use]
pub fn presence(field: u16) -> Vec<u8> {
    of_field(PRESENCE, field, "")
}

/// A folded value of a field from its end to its beginning, as far as it is [kept].
#[must_use]
pub fn suffix(field: u16, folded: &str) -> Vec<u8> {
    let reversed: String = folded.chars().rev().collect();
    of_field(SUFFIX, field, kept(&reversed))
}

/// The beginning of a word.
#[must_use]
pub fn word(beginning: &str) -> Vec<u8> {
    of(WORD, beginning)
}

/// The last digits of a phone number of a field, the last one first: so many as are kept, at most seven. Who has
/// fewer looks for a term that begins so.
#[must_use]
pub fn phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(PHONE_DIGITS).collect();
    of_field(PHONE, field, &ending)
}

/// The last digits, as [`phone`] has them, of a number that is perhaps a short one.
#[must_use]
pub fn short_phone(field: u16, digits: &str) -> Vec<u8> {
    let ending: String = digits.chars().rev().take(PHONE_DIGITS).collect();
    of_field(PHONE, field, &format!("!{ending}"))
}

/// A phone number of a field with more to it than digits: an extension, or letters.
#[must_use]
pub fn odd_phone(field: u16) -> Vec<u8> {
    of_field(PHONE, field, "?")
}

/// Items of which too much text would have to be indexed: always candidates.
#[must_use]
pub(crate) fn large() -> Vec<u8> {
    vec![LARGE]
}

/// Three characters that follow each other somewhere in an item's indexed text, none of them white space.
#[must_use]
pub fn trigram(three: &str) -> Vec<u8> {
    of(TRIGRAM, three)
}

/// The trigrams of a text, in order, as often as they are in it. Those with white space in them would be nearly half of
/// all, and hardly narrow what the others leave.
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
pub(crate) enum Sign {
    In = 1,
    Out = 2,
}

/// Before the key of a sort term: its class, its field and its collection.
const ORDER: usize = 1 + 2 + 4;
/// Behind it: an end that keeps longer keys behind shorter ones, and the sign.
const ENDING: usize = 2;

/// The order of a collection's items by a field: what all its sort terms begin with.
pub(crate) fn order(field: u16, collection: i64) -> Vec<u8> {
    let mut term = vec![SORT];
    term.extend(field.to_be_bytes());
    // Collections are numbered from 1.
    term.extend(u32::try_from(collection).unwrap_or(u32::MAX).to_be_bytes());
    term
}

/// The place of an item in an order.
pub(crate) fn sort(field: u16, collection: i64, key: &[u8], sign: Sign) -> Vec<u8> {
    let mut term = order(field, collection);
    // Keys hold no zeros; where one did, items would only lie beside where they belong.
    term.extend(key.iter().map(|&byte| byte.max(1)));
    term.extend([0, sign as u8]);
    term
}

/// The key of a sort term; `None`: it is of another class.
pub(super) fn key(term: &[u8]) -> Option<&[u8]> {
    let end = term.len().checked_sub(ENDING)?;
    (term.first() == Some(&SORT)).then(|| term.get(ORDER..end)).flatten()
}

/// 1 where a sort term puts items into an order, -1 where it takes them out; 0 for all other terms.
pub(super) fn sign(term: &[u8]) -> i64 {
    match (term.first(), term.last()) {
        (Some(&SORT), Some(&last)) if last == Sign::In as u8 => 1,
        (Some(&SORT), _) => -1,
        _ => 0,
    }
}

/// The first eight bytes of a term as a number that is in the terms' order, as far as it tells.
pub(super) fn beginning(term: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = term.len().min(8);
    first[..length].copy_from_slice(&term[..length]);
    u64::from_be_bytes(first)
}

pub(super) fn touched() -> Vec<u8> {
    vec![TOUCHED]
}

/// So many characters of a word's beginning are kept: longer ones are found by their trigrams.
pub const WORD_LETTERS: usize = 2;
/// What a character takes in a number.
const BITS: u32 = 21;
/// The number is that of a trigram, not of a word.
const IS_TRIGRAM: u64 = 1 << (3 * BITS);

/// The presence of a field in one number. Numbers are in the order of their terms.
pub(crate) fn packed_presence(field: u16) -> u64 {
    field.into()
}

/// Is it the presence of a field, and not a word or a trigram?
pub(crate) fn is_presence(packed: u64) -> bool {
    packed < 1 << BITS
}

/// The term of a word's beginning in one number.
pub(crate) fn packed_word(word: &str) -> u64 {
    let mut letters = word.chars().map(|c| u64::from(u32::from(c)));
    let (first, second) = (letters.next().unwrap_or(0), letters.next().unwrap_or(0));
    first << BITS | second
}

/// Gives the term of each trigram of a text to `each`, in one number. They are those of [`trigrams`].
pub(crate) fn packed_trigrams(text: &str, each: &mut impl FnMut(u64)) {
    let (mut packed, mut length) = (0, 0);
    for c in text.chars() {
        if c.is_whitespace() {
            length = 0;
            continue;
        }
        packed = (packed << BITS | u64::from(u32::from(c))) & (IS_TRIGRAM - 1);
        length += 1;
        if length >= 3 {
            each(IS_TRIGRAM | packed);
        }
    }
}

/// The term of a number. No text that is indexed holds a NUL, which stands for no character.
pub(super) fn unpack(packed: u64, term: &mut Vec<u8>) {
    term.clear();
    if is_presence(packed) {
        term.push(PRESENCE);
        term.extend((packed as u16).to_be_bytes());
        return;
    }
    term.push(if packed & IS_TRIGRAM == 0 { WORD } else { TRIGRAM });
    for shift in [2 * BITS, BITS, 0] {
        let code = (packed >> shift) as u32 & ((1 << BITS) - 1);
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
            packed_trigrams(&text, &mut |number| numbers.push(number));
            let mut term = Vec::new();
            let mut unpacked: Vec<Vec<u8>> = numbers.iter().map(|&number| {
                unpack(number, &mut term);
                term.clone()
            }).collect();
            let expected: Vec<Vec<u8>> = trigrams(&text).map(trigram).collect();
            assert_eq!(unpacked, expected);
            numbers.extend([packed_presence(1), packed_presence(u16::MAX)]);
            numbers.extend(text.split(' ').filter(|word| !word.is_empty()).map(packed_word));
            numbers.sort_unstable();
            unpacked = numbers.iter().map(|&number| {
                unpack(number, &mut term);
                term.clone()
            }).collect();
            assert!(unpacked.is_sorted());
            assert_eq!(unpacked[..2], [presence(1), presence(u16::MAX)]);
            assert!(unpacked.iter().all(|term| term[0] != WORD || term.len() > 1));
        }
    }
}
