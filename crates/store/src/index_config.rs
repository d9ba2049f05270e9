//! Summaries: which fields of a collection are indexed, and how.
//!
//! Each collection has one. What it leaves out is found all the same, by a scan: a summary decides
//! what a question costs and what an item costs, never what the answer is. It is only a table here;
//! `contact` derives by it, and the planner asks it. That a field is there at all is indexed for
//! every field that can be, whatever the summary.

use crate::CollectionType;
use larder_format::field::{
    CALENDAR_FIELDS, CONTACT_FIELDS, Field, FieldType, find_calendar_field, find_contact_field,
    suggest_contact_field, suggest_field,
};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// How a field's values are indexed. The numbers are bits, and not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldIndex {
    /// Whole values, for equality and for beginnings: one index with two names, `exact` and
    /// `prefix`.
    Value = 1,
    /// Values from their end.
    Suffix = 2,
    /// The last digits of phone numbers; of fields that hold such.
    Phone = 4,
    /// Three characters in a row wherever they are, and the beginnings of words where free words
    /// look.
    Substring = 8,
    /// The place of the first value in the alphabet.
    Sort = 16,
}

/// The names of the kinds, in the order in which they are written.
const FIELD_INDEX_NAMES: &[(&str, FieldIndex)] = &[
    ("exact", FieldIndex::Value),
    ("prefix", FieldIndex::Value),
    ("suffix", FieldIndex::Suffix),
    ("phone", FieldIndex::Phone),
    ("substring", FieldIndex::Substring),
    ("sort", FieldIndex::Sort),
];

/// The default: what has an index of values, of their ends, and of their order.
const CONTACT_VALUE_FIELDS: &[&str] = &[
    "file_as",
    "full_name",
    "given_name",
    "family_name",
    "nickname",
    "email",
    "phone",
    "org",
    "categories",
];
const CONTACT_SUFFIX_FIELDS: &[&str] =
    &["full_name", "given_name", "family_name", "nickname", "email", "phone"];
const CONTACT_SORT_FIELDS: &[&str] = &["file_as", "full_name"];
/// What has no index of its text. By a UID an item is found without, and nobody looks for parts of
/// one, or of a time of revision.
const CONTACT_FIELDS_WITHOUT_TEXT: &[&str] = &["uid", "rev"];

/// The same of a calendar.
const CALENDAR_VALUE_FIELDS: &[&str] = &["category", "status", "class", "priority"];
/// What of a calendar has an index of its text: where free words look.
const CALENDAR_TEXT_FIELDS: &[&str] =
    &["summary", "description", "location", "comment", "category", "organizer", "attendee"];

/// One more than the largest number of a field.
const FIELD_NUMBER_LIMIT: usize = {
    let (contacts, calendar) =
        (field_number_limit(CONTACT_FIELDS), field_number_limit(CALENDAR_FIELDS));
    if contacts > calendar { contacts } else { calendar }
};

const fn field_number_limit(fields: &[Field]) -> usize {
    let (mut at, mut size) = (0, 0);
    while at < fields.len() {
        if fields[at].id as usize >= size {
            size = fields[at].id as usize + 1;
        }
        at += 1;
    }
    size
}

/// Which fields are indexed, and how. As text: `full_name:exact,prefix,sort phone:phone`, or
/// `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    collection_type: CollectionType,
    /// The bits of the kinds, by the field's number.
    index_bits: [u8; FIELD_NUMBER_LIMIT],
}

/// What is wrong with the text of a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexConfigError {
    /// No field has this name.
    #[error("there is no field {name:?} to index")]
    UnknownField {
        /// The name.
        name: String,
        /// The field that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// The field has no index of its own.
    #[error("the field {name} cannot be indexed")]
    NotIndexable {
        /// The field.
        name: &'static str,
        /// The field among whose values its own are.
        subset_of: Option<&'static str>,
    },
    /// It does not say how.
    #[error("{name:?} does not say how to index it")]
    NoFieldIndex {
        /// What was said.
        name: String,
    },
    /// No index is called so.
    #[error("{name:?} is no way to index {field}")]
    UnknownFieldIndex {
        /// The name.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// Only phone numbers are indexed as such.
    #[error("{field} holds no phone numbers")]
    NotPhoneField {
        /// The field.
        field: &'static str,
    },
}

impl IndexConfigError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            IndexConfigError::UnknownField { nearest: Some(near), .. } => {
                format!("did you mean {near}?")
            }
            IndexConfigError::UnknownField { .. } => "larder fields lists them".into(),
            IndexConfigError::NotIndexable { subset_of: Some(within), .. } => {
                format!("it is found by the index of {within}")
            }
            IndexConfigError::NotIndexable { .. } => "larder fields tells which can be".into(),
            IndexConfigError::NoFieldIndex { .. } | IndexConfigError::UnknownFieldIndex { .. } => {
                let names: Vec<&str> = FIELD_INDEX_NAMES.iter().map(|(name, _)| *name).collect();
                format!("write FIELD:KIND,KIND with kinds of {}", names.join(", "))
            }
            IndexConfigError::NotPhoneField { .. } => "phone:phone is the index of numbers".into(),
        }
    }
}

static DEFAULT_CONTACT_CONFIG: LazyLock<Arc<IndexConfig>> = LazyLock::new(|| {
    let mut summary = IndexConfig::empty_for(CollectionType::AddressBook);
    for field in CONTACT_FIELDS.iter().filter(|field| field.is_indexed) {
        let kinds = [
            (FieldIndex::Value, CONTACT_VALUE_FIELDS.contains(&field.name)),
            (FieldIndex::Suffix, CONTACT_SUFFIX_FIELDS.contains(&field.name)),
            (FieldIndex::Phone, field.field_type == FieldType::Phone),
            (FieldIndex::Substring, !CONTACT_FIELDS_WITHOUT_TEXT.contains(&field.name)),
            (FieldIndex::Sort, CONTACT_SORT_FIELDS.contains(&field.name)),
        ];
        for (kind, _) in kinds.iter().filter(|(_, has)| *has) {
            summary.add_index(field, *kind);
        }
    }
    Arc::new(summary)
});

static DEFAULT_CALENDAR_CONFIG: LazyLock<Arc<IndexConfig>> = LazyLock::new(|| {
    let mut summary = IndexConfig::empty_for(CollectionType::Calendar);
    for field in CALENDAR_FIELDS.iter().filter(|field| field.is_indexed) {
        if CALENDAR_VALUE_FIELDS.contains(&field.name) {
            summary.add_index(field, FieldIndex::Value);
        }
        if CALENDAR_TEXT_FIELDS.contains(&field.name) {
            summary.add_index(field, FieldIndex::Substring);
        }
    }
    Arc::new(summary)
});

impl Default for IndexConfig {
    /// That of address books.
    fn default() -> IndexConfig {
        DEFAULT_CONTACT_CONFIG.as_ref().clone()
    }
}

impl IndexConfig {
    /// Nothing but which fields there are, of contacts.
    #[must_use]
    pub fn without_indexes() -> IndexConfig {
        IndexConfig::empty_for(CollectionType::AddressBook)
    }

    fn empty_for(collection_type: CollectionType) -> IndexConfig {
        IndexConfig { collection_type, index_bits: [0; FIELD_NUMBER_LIMIT] }
    }

    /// That of collections for which none was chosen.
    #[must_use]
    pub fn shared_default(family: CollectionType) -> Arc<IndexConfig> {
        Arc::clone(match family {
            CollectionType::AddressBook => &DEFAULT_CONTACT_CONFIG,
            CollectionType::Calendar => &DEFAULT_CALENDAR_CONFIG,
        })
    }

    /// What the items are that it is about.
    #[must_use]
    pub fn collection_type(&self) -> CollectionType {
        self.collection_type
    }

    /// The fields of these items.
    #[must_use]
    pub fn field_table(&self) -> &'static [Field] {
        match self.collection_type {
            CollectionType::AddressBook => CONTACT_FIELDS,
            CollectionType::Calendar => CALENDAR_FIELDS,
        }
    }

    /// Is it the default?
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == *IndexConfig::shared_default(self.collection_type)
    }

    /// Reads words like `full_name:prefix,sort`, which add up; `none` and `default` are such words,
    /// too.
    ///
    /// # Errors
    /// A field that items of this family do not have, or an index that a field cannot have.
    pub fn parse(text: &str, family: CollectionType) -> Result<IndexConfig, IndexConfigError> {
        let mut summary = IndexConfig::empty_for(family);
        text.split_whitespace().try_for_each(|word| summary.apply_token(word))?;
        Ok(summary)
    }

    /// Has this field an index of this kind?
    #[must_use]
    pub fn has_index(&self, field: &Field, kind: FieldIndex) -> bool {
        self.index_bits(field) & kind as u8 != 0
    }

    /// The fields that have an index of this kind, in the order of the table.
    pub fn fields_with_index(&self, kind: FieldIndex) -> impl Iterator<Item = &'static Field> + '_ {
        self.field_table().iter().filter(move |field| self.has_index(field, kind))
    }

    /// The names of the kinds of index that this field has.
    pub fn index_names(&self, field: &Field) -> impl Iterator<Item = &'static str> + use<> {
        let bits = self.index_bits(field);
        FIELD_INDEX_NAMES
            .iter()
            .filter(move |(_, kind)| bits & *kind as u8 != 0)
            .map(|(name, _)| *name)
    }

    /// Is there an order by the field of this number?
    pub(crate) fn has_sort_index(&self, field: u16) -> bool {
        self.index_bits
            .get(usize::from(field))
            .is_some_and(|bits| bits & FieldIndex::Sort as u8 != 0)
    }

    /// Are items found by other terms with the other one?
    pub(crate) fn has_different_text_indexes(&self, other: &IndexConfig) -> bool {
        self.has_different_bits(other, !(FieldIndex::Sort as u8))
    }

    /// Are items in other orders with the other one?
    pub(crate) fn has_different_sort_indexes(&self, other: &IndexConfig) -> bool {
        self.has_different_bits(other, FieldIndex::Sort as u8)
    }

    /// As it is stored: nothing for the default, so that a later version may have a better one.
    pub(crate) fn to_stored(&self) -> String {
        if self.is_default() { String::new() } else { self.to_string() }
    }

    /// One that is stored. What this program does not know of it, it does not index.
    pub(crate) fn from_stored(text: &str, family: CollectionType) -> Arc<IndexConfig> {
        if text.is_empty() {
            return IndexConfig::shared_default(family);
        }
        let mut summary = IndexConfig::empty_for(family);
        for word in text.split_whitespace() {
            let _unknown = summary.apply_token(word);
        }
        Arc::new(summary)
    }

    /// Is this field's text indexed in any way?
    pub(crate) fn has_text_index(&self, field: &Field) -> bool {
        self.index_bits(field) & !(FieldIndex::Sort as u8) != 0
    }

    fn index_bits(&self, field: &Field) -> u8 {
        self.index_bits.get(usize::from(field.id)).copied().unwrap_or_default()
    }

    fn has_different_bits(&self, other: &IndexConfig, bits: u8) -> bool {
        self.index_bits.iter().zip(&other.index_bits).any(|(a, b)| (a ^ b) & bits != 0)
    }

    fn add_index(&mut self, field: &Field, kind: FieldIndex) {
        if let Some(bits) = self.index_bits.get_mut(usize::from(field.id)) {
            *bits |= kind as u8;
        }
    }

    /// Adds what one word says.
    fn apply_token(&mut self, word: &str) -> Result<(), IndexConfigError> {
        let Some((name, kinds)) = word.split_once(':') else {
            match word {
                "none" => {}
                "default" => {
                    let default = IndexConfig::shared_default(self.collection_type);
                    let both = self.index_bits.iter_mut().zip(&default.index_bits);
                    both.for_each(|(mine, default)| *mine |= default);
                }
                _ => return Err(IndexConfigError::NoFieldIndex { name: word.to_string() }),
            }
            return Ok(());
        };
        let (known, nearest) = match self.collection_type {
            CollectionType::AddressBook => (find_contact_field(name), suggest_contact_field(name)),
            CollectionType::Calendar => {
                (find_calendar_field(name), suggest_field(CALENDAR_FIELDS, name))
            }
        };
        let Some(field) = known else {
            return Err(IndexConfigError::UnknownField { name: name.to_string(), nearest });
        };
        if !field.is_indexed {
            return Err(IndexConfigError::NotIndexable {
                name: field.name,
                subset_of: field.subset_of,
            });
        }
        for name in kinds.split(',') {
            let known =
                FIELD_INDEX_NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            let Some((_, kind)) = known else {
                let (name, field) = (name.to_string(), field.name);
                return Err(IndexConfigError::UnknownFieldIndex { name, field });
            };
            if *kind == FieldIndex::Phone && field.field_type != FieldType::Phone {
                return Err(IndexConfigError::NotPhoneField { field: field.name });
            }
            self.add_index(field, *kind);
        }
        Ok(())
    }
}

impl FromStr for IndexConfig {
    type Err = IndexConfigError;

    /// Reads the summary of an address book.
    fn from_str(text: &str) -> Result<IndexConfig, IndexConfigError> {
        IndexConfig::parse(text, CollectionType::AddressBook)
    }
}

impl fmt::Display for IndexConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for field in self.field_table().iter().filter(|field| self.index_bits(field) != 0) {
            let kinds: Vec<&str> = self.index_names(field).collect();
            let blank = if first { "" } else { " " };
            write!(f, "{blank}{}:{}", field.name, kinds.join(","))?;
            first = false;
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}
