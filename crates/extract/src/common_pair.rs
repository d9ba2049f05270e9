//! Common pairs: two of the most common words, one after the other, as a term.
//!
//! Nearly every message has `of` and `the`, so a search for the phrase `"of the"` would read and
//! compare the positions of both in nearly every message. The term of the pair has the messages at
//! once. The words are few, so that their pairs add little to the index: other pairs are rarer, and
//! their positions are compared.
//!
//! Separate from `message` and `commit`, which pass the words, and from `tokenizer`, which makes
//! them. What the index has of a pair follows from the words, so `"of the"` finds the same messages
//! either way.

/// The most common words of English, German, French and Spanish, folded, of up to four bytes.
const WORDS: [&str; 32] = [
    "a", "and", "as", "at", "be", "by", "das", "de", "den", "der", "die", "el", "en", "et", "for",
    "in", "is", "it", "la", "le", "les", "los", "of", "on", "que", "that", "the", "to", "und",
    "von", "with", "zu",
];
/// The number of slots for them, a power of two.
const SLOTS: usize = 64;
/// With this factor, no two words have the same slot.
const FACTOR: u32 = 0xbea2_9cb9;

/// The key of the word in each slot; 0: none.
const KEYS: [u32; SLOTS] = {
    let mut keys = [0; SLOTS];
    let mut number = 0;
    while number < WORDS.len() {
        let key = word_key(WORDS[number].as_bytes());
        assert!(key != 0 && keys[slot(key)] == 0);
        keys[slot(key)] = key;
        number += 1;
    }
    keys
};

/// Returns the bytes of a word as a number; 0 if it is too long to be a common one.
#[inline]
const fn word_key(word: &[u8]) -> u32 {
    match *word {
        [a] => u32::from_le_bytes([a, 0, 0, 0]),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

#[inline]
const fn slot(key: u32) -> usize {
    (key.wrapping_mul(FACTOR) >> (u32::BITS - SLOTS.ilog2())) as usize
}

/// Returns the word of the term of two words, the first in front; `None`: they are no common pair.
#[must_use]
pub fn common_pair(first: &str, second: &str) -> Option<String> {
    let is_common = |word: &str| {
        let key = word_key(word.as_bytes());
        key != 0 && KEYS[slot(key)] == key
    };
    (is_common(first) && is_common(second)).then(|| format!("{first} {second}"))
}

/// The common pairs in the text of one message.
#[derive(Debug)]
pub(crate) struct CommonPairs {
    /// For each slot, the slots of the words that follow it, as bits.
    followers: [u64; SLOTS],
    /// The slot of the last common word.
    previous: usize,
    /// The position after it.
    next_position: u32,
}

impl Default for CommonPairs {
    fn default() -> CommonPairs {
        // No word is at the last position.
        CommonPairs { followers: [0; SLOTS], previous: 0, next_position: u32::MAX }
    }
}

impl CommonPairs {
    /// Adds a word of the text with its position. The positions ascend, and no two common words
    /// are at one.
    ///
    /// A quarter of all words are common, in no order that a processor could predict, so nothing
    /// here is a branch.
    #[inline]
    pub(crate) fn add(&mut self, word: &[u8], position: u32) {
        let key = word_key(word);
        let slot = slot(key);
        let is_common = (key != 0) & (KEYS[slot] == key);
        let is_pair = is_common & (position == self.next_position);
        self.followers[self.previous] |= u64::from(is_pair) << slot;
        self.previous = if is_common { slot } else { self.previous };
        self.next_position = if is_common { position + 1 } else { self.next_position };
    }

    /// Passes the word of the term of each pair to `visit`.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&str)) {
        let mut pair = String::new();
        for (first, mut followers) in KEYS.iter().zip(self.followers) {
            // A message has few of the pairs: only the bits that are set are looked at.
            while let Some(second) = KEYS.get(followers.trailing_zeros() as usize) {
                followers &= followers - 1;
                pair.clear();
                push_word(&mut pair, *first);
                pair.push(' ');
                push_word(&mut pair, *second);
                visit(&pair);
            }
        }
    }
}

fn push_word(text: &mut String, key: u32) {
    text.extend(key.to_le_bytes().into_iter().filter(|byte| *byte != 0).map(char::from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::Tokenizer;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Returns the pairs that are added for a text.
    fn added_pairs(text: &str) -> BTreeSet<String> {
        let mut pairs = CommonPairs::default();
        Tokenizer::default().for_each_word(text, 0, |word, at| pairs.add(word.as_bytes(), at));
        let mut found = BTreeSet::new();
        pairs.for_each(|pair| assert!(found.insert(pair.to_string()), "{pair} came twice"));
        found
    }

    #[test]
    fn each_pair_is_a_term_once() {
        let text = "The rest of the year, of\nTHE year: to be, as-is (that is)";
        let pairs = ["as is", "be as", "is that", "of the", "that is", "to be"];
        assert!(added_pairs(text).iter().eq(pairs), "{:?}", added_pairs(text));
        assert_eq!(common_pair("of", "the").as_deref(), Some("of the"));
        assert_eq!(common_pair("of", "report"), None);
        assert_eq!(common_pair("", "the"), None);
    }

    proptest! {
        /// The pairs are those that a comparison of positions finds.
        #[test]
        fn pairs_are_the_phrases_of_common_words(
            text in "((of|the|The|de|la|l\u{e9}s|it's|report|\u{96fb}\u{8a71}|x)[ .,_@':-]{1,2}){0,30}",
        ) {
            let mut places = BTreeSet::new();
            Tokenizer::default().for_each_word(&text, 0, |word, at| {
                places.insert((at, word.to_string()));
            });
            let expected = places.iter().flat_map(|(at, first)| {
                let next = places.iter().filter(move |(other, _)| *other == at + 1);
                next.filter_map(move |(_, second)| common_pair(first, second))
            });
            prop_assert_eq!(added_pairs(&text), expected.collect::<BTreeSet<String>>());
        }
    }
}
