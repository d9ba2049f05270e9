//! What is derived from a contact's bytes: the rows of the index tables.
//!
//! Deriving needs no store and no lock, so importers do it in parallel before they write. The rules
//! here are part of the fingerprint: change them and the stored fingerprints must change, too.

use larder_format::collate::Collator;
use larder_format::contact::{Contact, Problem};
use larder_format::field::{FIELDS, Field, Kind as FieldKind, field};
use larder_format::fold::{FOLD_VERSION, digits, fold, words};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

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
/// Sort keys are made of this many characters: what differs only behind them is in no order.
const SORT_LETTERS: usize = 512;
/// The version of the rules in this module.
const RULES: u32 = 2;
/// Texts whose folds tell one version of folding, and of the Unicode tables behind it, from another: marks,
/// case, scripts, and letters that came late.
const PROBES: &[&str] = &[
    "Straße ẞ Müller Łódź Nguyễn ﬁ",
    "İstanbul ı I Ǆ",
    "Ελλάς ᾼ",
    "Ёлка Ӣ",
    "שָׁלוֹם",
    "مُحَمَّد محـــمد ٠١٢",
    "が か\u{3099} 한국 王〇",
    "हिन्दी สมชาย می\u{200c}خواهم",
    "Ა Ꭰ \u{a7dc} \u{1c89} \u{10d50} \u{16ea0}",
    "a\0b \u{fffe}\u{ffff}",
];

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
        format!("rules {RULES}, folding {FOLD_VERSION}, tables {}", *TABLES)
    }

    /// With what the sort set is filled.
    pub(crate) fn sort_fingerprint(&self) -> String {
        format!("rules {RULES}, folding {FOLD_VERSION}, {}", self.collator.fingerprint())
    }

    /// The sort key of a text in the store's order: of its first 512 characters.
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        self.collator.sort_key(beginning(text, SORT_LETTERS))
    }

    fn entry(&self, card: &Contact<'_>) -> Entry {
        let mut found = Found::default();
        for field in FIELDS.iter().filter(|field| field.indexed) {
            found.add(field, card.values(field));
        }
        let mut entry = found.entry();
        for field in SORT_FIELDS.iter().filter_map(|name| field(name)) {
            let value = card.first(field).unwrap_or_default();
            entry.sort.push((field.id, self.sort_key(&value)));
        }
        entry
    }
}

impl Entry {
    /// What `idx_value` keeps of a folded value: its beginning, at most [`VALUE_LIMIT`] bytes, whole
    /// characters. Who looks for a value there looks for this.
    #[must_use]
    pub fn kept(folded: &str) -> &str {
        &folded[..folded.floor_char_boundary(VALUE_LIMIT)]
    }
}

/// What of a card's values goes into an [`Entry`]. Rows are a set from the beginning, and texts are let go as
/// soon as there are too many: a card may be one word, millions of times.
#[derive(Default)]
struct Found {
    values: BTreeSet<(u16, String)>,
    texts: Vec<String>,
    /// Bytes in all texts, also in those that were let go.
    size: usize,
}

impl Found {
    fn add(&mut self, field: &Field, values: Vec<String>) {
        let whole = VALUE_FIELDS.contains(&field.name);
        for value in values {
            self.values.insert((field.id, String::new()));
            if self.is_large() && !whole && !field.words {
                return;
            }
            let folded = fold(&value).into_owned();
            if whole && !folded.is_empty() {
                self.values.insert((field.id, Entry::kept(&folded).to_string()));
            }
            if field.words {
                let beginnings = words(&folded).map(|word| beginning(word, WORD_LETTERS));
                self.values.extend(beginnings.map(|letters| (WORD_FIELD, letters.to_string())));
            }
            if field.kind == FieldKind::Phone {
                self.add_text(digits(&folded));
            }
            self.add_text(folded);
        }
    }

    fn add_text(&mut self, text: String) {
        self.size += text.len();
        match self.is_large() {
            true => self.texts.clear(),
            false => self.texts.push(text),
        }
    }

    fn is_large(&self) -> bool {
        self.size > TEXT_LIMIT
    }

    /// Joins the values' texts, without those that lie within another one: a family name has no trigram that
    /// the full name has not, and each costs a look-up when it is written.
    fn entry(mut self) -> Entry {
        let (large, mut joined) = (self.is_large(), String::new());
        self.texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        for text in &self.texts {
            if !joined.contains(text.as_str()) {
                joined.push_str(text);
                joined.push('\n');
            }
        }
        let values = self.values.into_iter().collect();
        Entry { values, text: joined, large, sort: Vec::new() }
    }
}

/// A digest of the tables that rows are made by: those of folding, by what they do to [`PROBES`], and that
/// of the fields.
static TABLES: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for folded in PROBES.iter().map(|probe| fold(probe)) {
        let words: Vec<&str> = words(&folded).collect();
        hasher.update(format!("{folded:?} {words:?} {}\n", digits(&folded)));
    }
    for field in FIELDS {
        hasher.update(format!("{}\n", field.rule()));
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
});

/// The first characters of a text.
fn beginning(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}
