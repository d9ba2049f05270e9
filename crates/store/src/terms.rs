//! Terms of an item: what the inverted index is told of the values of its fields, whatever kind it is.
//!
//! Which fields an item has is for `contact` and `event` to say, and what becomes of terms for `index`. It is pure, and
//! apart because all kinds are found by the same means.

use crate::index::{Terms, term};
use crate::summary::{IndexKind, Summary};
use larder_format::field::{Field, Kind as FieldKind};
use larder_format::fold::{digits, fold, words};
use larder_format::phone::{certain_digits, number_part};

/// Numbers that are certain to have fewer digits than this within their country have another index besides.
pub const LONG_NUMBER: usize = 5;
/// Items with more folded text than this are always candidates instead of being indexed as text.
const TEXT_LIMIT: usize = 64 << 10;
/// And so are items with more terms than this, words and trigrams aside.
const TERMS_LIMIT: usize = 4096;

/// What of a card's values goes into the index. Terms and texts are let go as soon as there are too many: a card
/// may be one word, millions of times.
#[derive(Default)]
pub(crate) struct Found {
    terms: Vec<Vec<u8>>,
    /// Which fields there are, beginnings of words, and trigrams, as numbers.
    packed: Vec<u64>,
    /// Bytes of all texts, also of those that were let go.
    size: usize,
    large: bool,
    /// Of a value that is looked for as a whole only the beginning is in the terms.
    cut: bool,
}

impl Found {
    pub(crate) fn add(&mut self, field: &Field, summary: &Summary, values: &[String]) {
        if !values.is_empty() {
            self.packed.push(term::packed_presence(field.id));
        }
        if !summary.finds(field) {
            return;
        }
        for value in values {
            if self.large || self.size + value.len() > TEXT_LIMIT {
                self.large = true;
                return;
            }
            let folded = fold(value);
            if summary.has(field, IndexKind::Value) && !folded.is_empty() {
                self.terms.push(term::value(field.id, &folded));
                self.cut |= folded.len() > term::VALUE_LIMIT;
            }
            if summary.has(field, IndexKind::Suffix) && !folded.is_empty() {
                self.terms.push(term::suffix(field.id, &folded));
            }
            if summary.has(field, IndexKind::Phone) {
                self.add_phone(field, value);
            }
            self.count(&folded);
            if summary.has(field, IndexKind::Substring) {
                self.add_text(field, &folded);
            }
            self.large |= self.terms.len() > 2 * TERMS_LIMIT;
        }
    }

    fn add_phone(&mut self, field: &Field, value: &str) {
        let Some(number) = number_part(value) else {
            self.terms.push(term::odd_phone(field.id));
            return;
        };
        let digits = digits(number);
        self.terms.push(term::phone(field.id, &digits));
        if certain_digits(number) < LONG_NUMBER {
            self.terms.push(term::short_phone(field.id, &digits));
        }
    }

    /// The parts of a folded value: the beginnings of its words, and trigrams.
    fn add_text(&mut self, field: &Field, folded: &str) {
        if field.words {
            self.packed.extend(words(folded).map(term::packed_word));
        }
        if field.kind == FieldKind::Phone {
            let digits = digits(folded);
            self.count(&digits);
            self.add_trigrams(&digits);
        }
        self.add_trigrams(folded);
    }

    fn count(&mut self, text: &str) {
        self.size += text.len();
        self.large |= self.size > TEXT_LIMIT;
    }

    fn add_trigrams(&mut self, text: &str) {
        if self.large {
            return;
        }
        term::packed_trigrams(text, &mut |trigram| self.packed.push(trigram));
    }

    /// Of a card with too much, only which fields it has.
    pub(crate) fn terms(mut self) -> Terms {
        self.terms.sort_unstable();
        self.terms.dedup();
        self.large |= self.terms.len() > TERMS_LIMIT;
        if self.large {
            self.terms = Vec::new();
            self.packed.retain(|number| term::is_presence(*number));
        }
        Terms::new(self.terms, self.packed, self.large || self.cut)
    }
}

/// The first characters of a text.
pub(crate) fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}
