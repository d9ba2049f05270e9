//! The terms of an item, from the values of its fields.
//!
//! The module of a kind determines the fields of its items; `larder-index` stores the terms.
//! Separate from both because items of all kinds are found by the same means.

use crate::index_config::{FieldIndex, IndexConfig};
use crate::term;
use larder_format::field::{Field, FieldType};
use larder_format::fold::{collect_digits, fold, split_words};
use larder_format::phone::{count_certain_digits, find_number_part};

/// Numbers that certainly have fewer digits than this within their country have a second term.
pub const MIN_LONG_NUMBER_DIGITS: usize = 5;
/// Items with more folded text than this are always candidates; their text is not indexed.
const MAX_TEXT_BYTES_PER_ITEM: usize = 64 << 10;
/// Items with more terms than this, not counting words and trigrams, are also always candidates.
const MAX_TERMS_PER_ITEM: usize = 4096;

/// The terms of one item, in the form that the index takes without copying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedTerms {
    /// The terms in order, each once: its length in two bytes (little-endian), and its bytes.
    pub encoded_terms: Vec<u8>,
    /// Presences, words and trigrams as numbers ([`term::packed_word`], ...): in the order of the
    /// text, including repetitions.
    pub packed_terms: Vec<u64>,
    /// Whether the item is always a candidate, as not all of its text is in the terms.
    pub is_oversized: bool,
}

impl ExtractedTerms {
    /// Encodes terms that are in order, each once, and none longer than 64 KB.
    fn encode(terms: &[Vec<u8>], mut packed_terms: Vec<u64>, is_oversized: bool) -> ExtractedTerms {
        let length = terms.iter().map(|term| term.len() + 2).sum();
        let mut encoded_terms = Vec::with_capacity(length);
        for term in terms {
            encoded_terms.extend((term.len() as u16).to_le_bytes());
            encoded_terms.extend(term);
        }
        packed_terms.shrink_to_fit();
        ExtractedTerms { encoded_terms, packed_terms, is_oversized }
    }

    /// Returns the terms that are not packed into numbers, in order.
    pub fn plain_terms(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.encoded_terms.as_slice();
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first_chunk::<2>()?;
            let (term, tail) = tail.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = tail;
            Some(term)
        })
    }
}

/// Collects the terms of an item. Terms and texts are dropped as soon as there are too many: a card
/// may be one word, millions of times.
#[derive(Default)]
pub(crate) struct TermCollector {
    terms: Vec<Vec<u8>>,
    /// Presences of fields, beginnings of words, and trigrams, as numbers.
    packed_terms: Vec<u64>,
    /// The bytes of all texts, those that were dropped included.
    text_bytes: usize,
    is_oversized: bool,
    /// Whether a value that queries look up as a whole was truncated in the terms.
    is_truncated: bool,
}

impl TermCollector {
    /// Adds the values of a field.
    pub(crate) fn add(&mut self, field: &Field, index_config: &IndexConfig, values: &[String]) {
        if !values.is_empty() {
            self.packed_terms.push(term::packed_presence(field.id));
        }
        if !index_config.has_text_index(field) {
            return;
        }
        for value in values {
            if self.is_oversized || self.text_bytes + value.len() > MAX_TEXT_BYTES_PER_ITEM {
                self.is_oversized = true;
                return;
            }
            let folded = fold(value);
            if index_config.has_index(field, FieldIndex::Value) && !folded.is_empty() {
                self.terms.push(term::value(field.id, &folded));
                self.is_truncated |= folded.len() > term::MAX_VALUE_BYTES;
            }
            if index_config.has_index(field, FieldIndex::Suffix) && !folded.is_empty() {
                self.terms.push(term::suffix(field.id, &folded));
            }
            if index_config.has_index(field, FieldIndex::Phone) {
                self.add_phone(field, value);
            }
            self.add_text_bytes(&folded);
            if index_config.has_index(field, FieldIndex::Substring) {
                self.add_text(field, &folded);
            }
            self.is_oversized |= self.terms.len() > 2 * MAX_TERMS_PER_ITEM;
        }
    }

    fn add_phone(&mut self, field: &Field, value: &str) {
        let Some(number) = find_number_part(value) else {
            self.terms.push(term::odd_phone(field.id));
            return;
        };
        let digits = collect_digits(number);
        self.terms.push(term::phone(field.id, &digits));
        if count_certain_digits(number) < MIN_LONG_NUMBER_DIGITS {
            self.terms.push(term::short_phone(field.id, &digits));
        }
    }

    /// Adds the parts of a folded value: the beginnings of its words, and its trigrams.
    fn add_text(&mut self, field: &Field, folded: &str) {
        if field.is_default_search {
            self.packed_terms.extend(split_words(folded).map(term::packed_word));
        }
        if field.field_type == FieldType::Phone {
            let digits = collect_digits(folded);
            self.add_text_bytes(&digits);
            self.add_trigrams(&digits);
        }
        self.add_trigrams(folded);
    }

    fn add_text_bytes(&mut self, text: &str) {
        self.text_bytes += text.len();
        self.is_oversized |= self.text_bytes > MAX_TEXT_BYTES_PER_ITEM;
    }

    fn add_trigrams(&mut self, text: &str) {
        if self.is_oversized {
            return;
        }
        term::for_each_packed_trigram(text, &mut |trigram| self.packed_terms.push(trigram));
    }

    /// Returns the terms; of an oversized item only the presences of its fields.
    pub(crate) fn into_terms(mut self) -> ExtractedTerms {
        self.terms.sort_unstable();
        self.terms.dedup();
        self.is_oversized |= self.terms.len() > MAX_TERMS_PER_ITEM;
        if self.is_oversized {
            self.terms = Vec::new();
            self.packed_terms.retain(|number| term::is_presence(*number));
        }
        let is_always_candidate = self.is_oversized || self.is_truncated;
        ExtractedTerms::encode(&self.terms, self.packed_terms, is_always_candidate)
    }
}

/// Returns the first characters of a text.
pub(crate) fn prefix_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}
