//! What is derived from a contact's bytes: the rows of the index tables.
//!
//! Deriving needs no store and no lock, so importers do it in parallel before they write. The rules
//! here are part of the fingerprint: change them and the stored fingerprints must change, too.

use larder_format::collate::Collator;
use larder_format::contact::{Contact, Problem};
use larder_format::field::{FIELDS, Field, Kind as FieldKind, field};
use larder_format::fold::{FOLD_VERSION, digits, fold, words};
use std::sync::Arc;

/// The field number under which the beginnings of words are kept, of the fields that free words cover.
pub const WORD_FIELD: u16 = 0;
/// How many characters of a word's beginning are kept: longer ones are found by their trigrams.
pub const WORD_LETTERS: usize = 2;
/// Fields whose values are kept whole, for equality and short beginnings. Of the others only the presence is
/// noted; their text is in the trigram index. A row a value would double what an import writes: rows in
/// random order touch a page each.
pub const VALUE_FIELDS: &[&str] =
    &["full_name", "given_name", "family_name", "nickname", "email", "org", "categories"];
/// Values are cut to this many bytes (at a character) in `idx_value`.
pub const VALUE_LIMIT: usize = 120;
/// Fields whose sort keys are stored.
pub const SORT_FIELDS: &[&str] = &["file_as", "full_name"];
/// Items with more folded text than this are always candidates instead of being indexed as text.
const TEXT_LIMIT: usize = 64 << 10;
/// The version of the rules in this module.
const RULES: u32 = 1;

/// Derives index rows; cheap to clone, shared by threads.
#[derive(Debug, Clone)]
pub struct Deriver {
    collator: Arc<Collator>,
}

/// An item's bytes with what was derived from them.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: Entry,
    uid: Option<String>,
}

/// The index rows of one item, as sets: sorted, each row once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Rows of `idx_value`: field number and folded value, cut to [`VALUE_LIMIT`].
    pub values: Vec<(u16, String)>,
    /// The folded text for `idx_text`; values are separated by line feeds. Empty where `large` is set.
    pub text: String,
    /// There is more text than `idx_text` takes.
    pub large: bool,
    /// Rows of `idx_sort`: field number and key.
    pub sort: Vec<(u16, Vec<u8>)>,
}

impl Prepared {
    /// The UID that the bytes name, if they do.
    #[must_use]
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// The item's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Deriver {
    /// A deriver whose sort keys follow the order of `locale` (`sv`, `de_DE.UTF-8`, ...).
    #[must_use]
    pub fn new(locale: &str) -> Deriver {
        Deriver { collator: Arc::new(Collator::new(locale)) }
    }

    /// Reads a card and derives its rows. The problems are warnings; bytes that are no contact are given
    /// back with the problem that makes them none.
    #[allow(clippy::result_large_err, reason = "the refusal gives the bytes back, unmoved")]
    pub fn contact(&self, bytes: Vec<u8>) -> Result<(Prepared, Vec<Problem>), (Vec<u8>, Problem)> {
        let card = Contact::parse(&bytes);
        if let Some(refusal) = card.refusal() {
            let refusal = *refusal;
            drop(card);
            return Err((bytes, refusal));
        }
        let (entry, uid, problems) = (self.entry(&card), card.uid(), card.problems().to_vec());
        drop(card);
        Ok((Prepared { bytes, entry, uid }, problems))
    }

    /// The rows for these bytes, whatever they are: what is already stored is indexed as it is.
    #[must_use]
    pub fn entry_of(&self, bytes: &[u8]) -> Entry {
        self.entry(&Contact::parse(bytes))
    }

    /// Bytes that are stored already, on their way back (undo).
    #[must_use]
    pub fn stored(&self, bytes: Vec<u8>) -> Prepared {
        let entry = self.entry_of(&bytes);
        Prepared { bytes, entry, uid: None }
    }

    /// With what the text set is filled.
    pub(crate) fn text_fingerprint(&self) -> String {
        format!("rules {RULES}, folding {FOLD_VERSION}, fields {}", FIELDS.len())
    }

    /// With what the sort set is filled.
    pub(crate) fn sort_fingerprint(&self) -> String {
        format!("rules {RULES}, folding {FOLD_VERSION}, {}", self.collator.fingerprint())
    }

    /// The sort key of a text in the store's order.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        self.collator.sort_key(text)
    }

    fn entry(&self, card: &Contact<'_>) -> Entry {
        let mut entry = Entry::default();
        let mut texts = Vec::new();
        for field in FIELDS.iter().filter(|field| field.indexed) {
            for value in card.values(field) {
                entry.add(field, fold(&value).into_owned(), &mut texts);
            }
        }
        entry.set_text(texts);
        for field in SORT_FIELDS.iter().filter_map(|name| field(name)) {
            let value = card.first(field).unwrap_or_default();
            entry.sort.push((field.id, self.sort_key(&value)));
        }
        entry.values.sort_unstable();
        entry.values.dedup();
        entry
    }
}

impl Entry {
    fn add(&mut self, field: &Field, folded: String, texts: &mut Vec<String>) {
        self.values.push((field.id, String::new()));
        if VALUE_FIELDS.contains(&field.name) && !folded.is_empty() {
            self.values.push((field.id, cut(&folded).to_string()));
        }
        if field.words {
            let found = words(&folded).map(|word| (WORD_FIELD, first_letters(word).to_string()));
            self.values.extend(found);
        }
        if field.kind == FieldKind::Phone {
            texts.push(digits(&folded));
        }
        texts.push(folded);
    }

    /// Joins the values' texts, without those that lie within another one: a family name has no trigram that
    /// the full name has not, and each costs a look-up when it is written.
    fn set_text(&mut self, mut texts: Vec<String>) {
        self.large = texts.iter().map(String::len).sum::<usize>() > TEXT_LIMIT;
        if self.large {
            return;
        }
        texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        for text in texts {
            if !self.text.contains(&text) {
                self.text.push_str(&text);
                self.text.push('\n');
            }
        }
    }
}

/// The beginning of a word that is kept.
fn first_letters(word: &str) -> &str {
    word.char_indices().nth(WORD_LETTERS).map_or(word, |(end, _)| &word[..end])
}

/// The beginning of a value that is kept: at most [`VALUE_LIMIT`] bytes, whole characters.
fn cut(value: &str) -> &str {
    &value[..value.floor_char_boundary(VALUE_LIMIT)]
}
