//! Terms of an item: what the inverted index is told of the values of its fields, whatever kind it
//! is.
//!
//! Which fields an item has is for `contact` and `event` to say, and what becomes of terms for
//! `index`. It is pure, and apart because all kinds are found by the same means.

use crate::index_config::{FieldIndex, IndexConfig};
use crate::term_encoding as term;
use larder_format::field::{Field, FieldType as FieldKind};
use larder_format::fold::{collect_digits, fold, split_words};
use larder_format::phone::{count_certain_digits, find_number_part};
use larder_index::TermSet;

/// Numbers that are certain to have fewer digits than this within their country have another index
/// besides.
pub const MIN_LONG_NUMBER_DIGITS: usize = 5;
/// Items with more folded text than this are always candidates instead of being indexed as text.
const MAX_TEXT_BYTES_PER_ITEM: usize = 64 << 10;
/// And so are items with more terms than this, words and trigrams aside.
const MAX_TERMS_PER_ITEM: usize = 4096;

/// What of a card's values goes into the index. Terms and texts are let go as soon as there are too
/// many: a card may be one word, millions of times.
#[derive(Default)]
pub(crate) struct TermCollector {
    terms: Vec<Vec<u8>>,
    /// Which fields there are, beginnings of words, and trigrams, as numbers.
    packed: Vec<u64>,
    /// Bytes of all texts, also of those that were let go.
    text_bytes: usize,
    is_oversized: bool,
    /// Of a value that is looked for as a whole only the beginning is in the terms.
    is_truncated: bool,
}

impl TermCollector {
    pub(crate) fn add(&mut self, field: &Field, summary: &IndexConfig, values: &[String]) {
        if !values.is_empty() {
            self.packed.push(term::packed_presence(field.id));
        }
        if !summary.has_text_index(field) {
            return;
        }
        for value in values {
            if self.is_oversized || self.text_bytes + value.len() > MAX_TEXT_BYTES_PER_ITEM {
                self.is_oversized = true;
                return;
            }
            let folded = fold(value);
            if summary.has_index(field, FieldIndex::Value) && !folded.is_empty() {
                self.terms.push(term::value(field.id, &folded));
                self.is_truncated |= folded.len() > term::MAX_VALUE_BYTES;
            }
            if summary.has_index(field, FieldIndex::Suffix) && !folded.is_empty() {
                self.terms.push(term::suffix(field.id, &folded));
            }
            if summary.has_index(field, FieldIndex::Phone) {
                self.add_phone(field, value);
            }
            self.add_text_bytes(&folded);
            if summary.has_index(field, FieldIndex::Substring) {
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

    /// The parts of a folded value: the beginnings of its words, and trigrams.
    fn add_text(&mut self, field: &Field, folded: &str) {
        if field.is_default_search {
            self.packed.extend(split_words(folded).map(term::packed_word));
        }
        if field.field_type == FieldKind::Phone {
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
        term::for_each_packed_trigram(text, &mut |trigram| self.packed.push(trigram));
    }

    /// Of a card with too much, only which fields it has.
    pub(crate) fn into_terms(mut self) -> TermSet {
        self.terms.sort_unstable();
        self.terms.dedup();
        self.is_oversized |= self.terms.len() > MAX_TERMS_PER_ITEM;
        if self.is_oversized {
            self.terms = Vec::new();
            self.packed.retain(|number| term::is_presence(*number));
        }
        TermSet::new(self.terms, self.packed, self.is_oversized || self.is_truncated)
    }
}

/// The first characters of a text.
pub(crate) fn prefix_chars(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}
