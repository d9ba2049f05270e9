//! What is derived from a contact's bytes: the terms that it is found and sorted by, and values to show.
//!
//! Deriving needs no store and no lock, so importers do it in parallel before they write. The rules
//! here are part of the fingerprint: change them and the stored fingerprints must change, too.

use crate::index::{Terms, term};
use crate::kept::{self, can_keep};
use crate::summary::{IndexKind, Summary};
use larder_format::collate::Collator;
use larder_format::contact::{Contact, Problem};
use larder_format::field::{FIELDS, Field, Kind as FieldKind};
use larder_format::fold::{FOLD_VERSION, digits, fold, words};
use larder_format::phone::{certain_digits, number_part};
use rusqlite::{Connection, OptionalExtension as _};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Entries;
use std::mem;
use std::sync::{Arc, LazyLock};

/// How many characters of a word's beginning are kept: longer ones are found by their trigrams.
pub const WORD_LETTERS: usize = 2;
/// Numbers that are certain to have fewer digits than this within their country have another index besides.
pub const LONG_NUMBER: usize = 5;
/// Items with more folded text than this are always candidates instead of being indexed as text.
const TEXT_LIMIT: usize = 64 << 10;
/// And so are items with more terms than this, trigrams aside.
const TERMS_LIMIT: usize = 4096;
/// Sort keys are made of this many characters: what differs only behind them is in no order.
const SORT_LETTERS: usize = 512;
/// ...and cut to this many bytes, so that a place in an order fits into a chunk of the index.
const SORT_BYTES: usize = 1000;
/// The version of the rules in this module, and of the default summary.
const RULES: u32 = 5;
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

/// Derives index rows as a summary wants them; cheap to clone, shared by threads.
#[derive(Debug, Clone)]
pub struct Deriver {
    collator: Arc<Collator>,
    summary: Arc<Summary>,
}

/// The derivers of a store's collections, each with its summary, which is read when it is first asked for.
pub(crate) struct Derivers<'a> {
    base: &'a Deriver,
    of: HashMap<i64, Deriver>,
}

/// An item's bytes with what was derived from them.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: Entry,
    /// By which summary the entry was derived.
    summary: Arc<Summary>,
    uid: Option<String>,
}

/// What the indexes say of one item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) terms: Terms,
    /// The card names a UID.
    pub(crate) names_uid: bool,
    /// Values to be kept beside the item's row.
    pub(crate) kept: Option<Vec<u8>>,
    pub(crate) sort: SortKeys,
}

/// What an item is sorted by: field numbers and keys.
pub(crate) type SortKeys = Vec<(u16, Vec<u8>)>;

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
    /// A deriver whose sort keys follow the order of `locale` (`sv`, `de_DE.UTF-8`, ...), with the default summary.
    #[must_use]
    pub fn new(locale: &str) -> Deriver {
        let (collator, summary) = (Arc::new(Collator::new(locale)), Summary::shared_default());
        Deriver { collator, summary }
    }

    /// The same deriver for items that have this summary.
    #[must_use]
    pub fn with(&self, summary: Arc<Summary>) -> Deriver {
        Deriver { collator: Arc::clone(&self.collator), summary }
    }

    /// By which summary it derives.
    #[must_use]
    pub fn summary(&self) -> &Arc<Summary> {
        &self.summary
    }

    /// Does it derive by this summary?
    pub(crate) fn is_of(&self, summary: &Arc<Summary>) -> bool {
        Arc::ptr_eq(&self.summary, summary) || self.summary == *summary
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
        let summary = Arc::clone(&self.summary);
        Ok((Prepared { bytes, entry, summary, uid }, problems))
    }

    /// What was derived, if it was by this deriver's summary; else it is derived again.
    pub(crate) fn entry_for(&self, prepared: &mut Prepared) -> Entry {
        if self.is_of(&prepared.summary) {
            mem::take(&mut prepared.entry)
        } else {
            self.entry_of(&prepared.bytes)
        }
    }

    /// The entry for these bytes, whatever they are: what is already stored is indexed as it is.
    pub(crate) fn entry_of(&self, bytes: &[u8]) -> Entry {
        self.entry(&Contact::parse(bytes))
    }

    /// The sort keys for these bytes.
    pub(crate) fn sort_of(&self, bytes: &[u8]) -> SortKeys {
        self.sort(&Contact::parse(bytes))
    }

    /// Bytes that are stored already, on their way back (undo).
    #[must_use]
    pub fn stored(&self, bytes: Vec<u8>) -> Prepared {
        let entry = self.entry_of(&bytes);
        Prepared { bytes, entry, summary: Arc::clone(&self.summary), uid: None }
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
        let mut key = self.collator.sort_key(beginning(text, SORT_LETTERS));
        key.truncate(SORT_BYTES);
        key
    }

    fn entry(&self, card: &Contact<'_>) -> Entry {
        let mut found = Found::default();
        let mut to_keep = Vec::new();
        for field in FIELDS.iter().filter(|field| field.indexed) {
            let of_field = card.values(field);
            found.add(field, &self.summary, &of_field);
            if can_keep(field) && (self.summary.finds(field) || field.name == "rev") {
                to_keep.push((field, of_field));
            }
        }
        let (names_uid, kept) = (card.uid().is_some(), kept::pack(to_keep));
        Entry { terms: found.terms(), names_uid, kept, sort: self.sort(card) }
    }

    fn sort(&self, card: &Contact<'_>) -> SortKeys {
        let key = |field: &'static Field| {
            (field.id, self.sort_key(&card.first(field).unwrap_or_default()))
        };
        self.summary.fields(IndexKind::Sort).map(key).collect()
    }
}

impl<'a> Derivers<'a> {
    pub(crate) fn new(base: &'a Deriver) -> Derivers<'a> {
        Derivers { base, of: HashMap::new() }
    }

    /// That of the collection in this row.
    pub(crate) fn of(&mut self, conn: &Connection, collection: i64) -> rusqlite::Result<&Deriver> {
        match self.of.entry(collection) {
            Entries::Occupied(known) => Ok(known.into_mut()),
            Entries::Vacant(new) => {
                let summary: Option<String> = conn
                    .prepare_cached("SELECT summary FROM collection WHERE id = ?1")?
                    .query_row([collection], |row| row.get(0))
                    .optional()?;
                let summary = Summary::of_stored(&summary.unwrap_or_default());
                Ok(new.insert(self.base.with(summary)))
            }
        }
    }

    /// Summaries have changed.
    pub(crate) fn forget(&mut self) {
        self.of.clear();
    }
}

/// What of a card's values goes into the index. Terms and texts are let go as soon as there are too many: a card
/// may be one word, millions of times.
#[derive(Default)]
struct Found {
    terms: Vec<Vec<u8>>,
    trigrams: Vec<u64>,
    /// Bytes of all texts, also of those that were let go.
    size: usize,
    large: bool,
    /// Of a value that is looked for as a whole only the beginning is in the terms.
    cut: bool,
}

impl Found {
    fn add(&mut self, field: &Field, summary: &Summary, values: &[String]) {
        if !values.is_empty() {
            self.terms.push(term::value(field.id, ""));
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
            let beginnings = words(folded).map(|word| beginning(word, WORD_LETTERS));
            self.terms.extend(beginnings.map(term::word));
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
        let (mut a, mut b) = ('\0', '\0');
        for (at, c) in text.chars().enumerate() {
            if at >= 2 {
                self.trigrams.push(term::pack([a, b, c]));
            }
            (a, b) = (b, c);
        }
    }

    /// Of a card with too much, only which fields it has.
    fn terms(mut self) -> Terms {
        self.terms.sort_unstable();
        self.terms.dedup();
        self.large |= self.terms.len() > TERMS_LIMIT;
        if self.large {
            self.terms.retain(|term| term::is_presence(term));
            self.trigrams = Vec::new();
        }
        Terms::new(self.terms, self.trigrams, self.large || self.cut)
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
