//! Index configurations: which fields of a collection are indexed, and how.
//!
//! Each collection has one. A field without an index is still searched, by a scan: the
//! configuration affects the cost of a query and of a change, but not the result. This module is
//! the table; `field_extraction` extracts by it, and the planner reads it. The presence of a field
//! is indexed for every field that can be, whatever the configuration.

use larder_format::collection_type::{COLLECTION_TYPES, CollectionType, TextFields};
use larder_format::field::{Field, FieldType, find_field, suggest_field};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// An index of a field's values. The numbers are bits, and not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldIndex {
    /// Whole values, for equality and for prefixes: one index with two names, `exact` and `prefix`.
    Value = 1,
    /// Values from their end.
    Suffix = 2,
    /// The last digits of phone numbers; only for fields that contain phone numbers.
    Phone = 4,
    /// Trigrams; for fields that bare words search, also the beginnings of words.
    Substring = 8,
    /// The sort key of the first value.
    Sort = 16,
}

/// The names of the indexes, in the order in which they are written.
const FIELD_INDEX_NAMES: &[(&str, FieldIndex)] = &[
    ("exact", FieldIndex::Value),
    ("prefix", FieldIndex::Value),
    ("suffix", FieldIndex::Suffix),
    ("phone", FieldIndex::Phone),
    ("substring", FieldIndex::Substring),
    ("sort", FieldIndex::Sort),
];

/// One more than the largest number of a field.
const FIELD_NUMBER_LIMIT: usize = {
    let (mut limit, mut table) = (0, 0);
    while table < COLLECTION_TYPES.len() {
        let (fields, mut at) = (COLLECTION_TYPES[table].fields, 0);
        while at < fields.len() {
            if fields[at].id as usize >= limit {
                limit = fields[at].id as usize + 1;
            }
            at += 1;
        }
        table += 1;
    }
    limit
};

/// The number of parsed configurations that are kept.
const MAX_PARSED_CONFIGS: usize = 64;

/// The configurations that were parsed last, with their stored forms.
static PARSED_CONFIGS: Mutex<VecDeque<(Box<str>, Arc<IndexConfig>)>> = Mutex::new(VecDeque::new());

/// Which fields are indexed, and how. As text: `full_name:exact,prefix,sort phone:phone`, or
/// `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    collection_type: CollectionType,
    /// The bits of the indexes, by the number of the field.
    index_bits: [u8; FIELD_NUMBER_LIMIT],
}

/// An error in the text of an index configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexConfigError {
    /// No field has this name.
    #[error("unknown field {name:?}")]
    UnknownField {
        /// The name.
        name: String,
        /// The field that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The field has no index of its own.
    #[error("the field {name} cannot be indexed")]
    NotIndexable {
        /// The field.
        name: &'static str,
        /// The field whose index has its values, too.
        subset_of: Option<&'static str>,
    },
    /// A field without an index.
    #[error("no index given for {name:?}")]
    NoFieldIndex {
        /// The word.
        name: String,
    },
    /// No index has this name.
    #[error("unknown index {name:?} for {field}")]
    UnknownFieldIndex {
        /// The name.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// Only phone numbers are indexed as such.
    #[error("{field} is not a phone field")]
    NotPhoneField {
        /// The field.
        field: &'static str,
    },
}

impl IndexConfigError {
    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            IndexConfigError::UnknownField { nearest: Some(near), .. } => {
                format!("did you mean {near}?")
            }
            IndexConfigError::UnknownField { .. } => "`larder fields` lists the fields".into(),
            IndexConfigError::NotIndexable { subset_of: Some(within), .. } => {
                format!("the index of {within} covers this field")
            }
            IndexConfigError::NotIndexable { .. } => {
                "`larder fields` lists the fields that can be indexed".into()
            }
            IndexConfigError::NoFieldIndex { .. } | IndexConfigError::UnknownFieldIndex { .. } => {
                let names: Vec<&str> = FIELD_INDEX_NAMES.iter().map(|(name, _)| *name).collect();
                format!("write FIELD:INDEX,..; the indexes are {}", names.join(", "))
            }
            IndexConfigError::NotPhoneField { .. } => {
                "use phone:phone, the index of phone numbers".into()
            }
        }
    }
}

/// The default configurations, by number of the collection type.
static DEFAULTS: LazyLock<Vec<Arc<IndexConfig>>> =
    LazyLock::new(|| CollectionType::all().map(IndexConfig::build_default).map(Arc::new).collect());

impl Default for IndexConfig {
    /// Returns the default configuration of the default type of collection.
    fn default() -> IndexConfig {
        IndexConfig::shared_default(CollectionType::default()).as_ref().clone()
    }
}

impl IndexConfig {
    /// Returns a configuration of the default type of collection that indexes only which fields
    /// are present.
    #[must_use]
    pub fn without_indexes() -> IndexConfig {
        IndexConfig::empty_for(CollectionType::default())
    }

    fn empty_for(collection_type: CollectionType) -> IndexConfig {
        IndexConfig { collection_type, index_bits: [0; FIELD_NUMBER_LIMIT] }
    }

    fn build_default(collection_type: CollectionType) -> IndexConfig {
        let mut config = IndexConfig::empty_for(collection_type);
        let default = &collection_type.row().default_indexes;
        for field in collection_type.fields().iter().filter(|field| field.is_indexed) {
            let has_text_index = match &default.text_fields {
                TextFields::Only(names) => names.contains(&field.name),
                TextFields::AllBut(names) => !names.contains(&field.name),
            };
            let indexes = [
                (FieldIndex::Value, default.value_fields.contains(&field.name)),
                (FieldIndex::Suffix, default.suffix_fields.contains(&field.name)),
                (FieldIndex::Phone, field.field_type == FieldType::Phone),
                (FieldIndex::Substring, has_text_index),
                (FieldIndex::Sort, default.sort_fields.contains(&field.name)),
            ];
            for (index, _) in indexes.iter().filter(|(_, is_wanted)| *is_wanted) {
                config.add_index(field, *index);
            }
        }
        config
    }

    /// Returns the configuration of collections for which none was chosen.
    #[must_use]
    pub fn shared_default(collection_type: CollectionType) -> Arc<IndexConfig> {
        Arc::clone(&DEFAULTS[collection_type.index()])
    }

    /// Returns the type of the collections that it is for.
    #[must_use]
    pub fn collection_type(&self) -> CollectionType {
        self.collection_type
    }

    /// Returns the fields of their items.
    #[must_use]
    pub fn field_table(&self) -> &'static [Field] {
        self.collection_type.fields()
    }

    /// Returns whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == *IndexConfig::shared_default(self.collection_type)
    }

    /// Reads words like `full_name:prefix,sort`, which add up; `none` and `default` are such words,
    /// too.
    ///
    /// # Errors
    /// A field that such items do not have, or an index that a field cannot have.
    pub fn parse(
        text: &str,
        collection_type: CollectionType,
    ) -> Result<IndexConfig, IndexConfigError> {
        let mut config = IndexConfig::empty_for(collection_type);
        text.split_whitespace().try_for_each(|word| config.apply_token(word))?;
        Ok(config)
    }

    /// Returns whether a field has this index.
    #[must_use]
    pub fn has_index(&self, field: &Field, kind: FieldIndex) -> bool {
        self.index_bits(field) & kind as u8 != 0
    }

    /// Returns the fields that have this index, in the order of the table.
    pub fn fields_with_index(&self, kind: FieldIndex) -> impl Iterator<Item = &'static Field> + '_ {
        self.field_table().iter().filter(move |field| self.has_index(field, kind))
    }

    /// Returns the names of the indexes of a field.
    pub fn index_names(&self, field: &Field) -> impl Iterator<Item = &'static str> + use<> {
        let bits = self.index_bits(field);
        FIELD_INDEX_NAMES
            .iter()
            .filter(move |(_, kind)| bits & *kind as u8 != 0)
            .map(|(name, _)| *name)
    }

    /// Returns whether the field with this number has an index of sort keys.
    #[must_use]
    pub fn has_sort_index(&self, field: u16) -> bool {
        self.index_bits
            .get(usize::from(field))
            .is_some_and(|bits| bits & FieldIndex::Sort as u8 != 0)
    }

    /// Returns whether items have other terms by the other configuration.
    #[must_use]
    pub fn has_different_text_indexes(&self, other: &IndexConfig) -> bool {
        self.has_different_bits(other, !(FieldIndex::Sort as u8))
    }

    /// Returns whether items have other sort keys by the other configuration.
    #[must_use]
    pub fn has_different_sort_indexes(&self, other: &IndexConfig) -> bool {
        self.has_different_bits(other, FieldIndex::Sort as u8)
    }

    /// Returns the stored form: empty for the default, so that a later version can change the
    /// default.
    #[must_use]
    pub fn to_stored(&self) -> String {
        if self.is_default() { String::new() } else { self.to_string() }
    }

    /// Reads the stored form. Unknown fields and indexes are ignored. The configurations read last
    /// are kept: each write reads those of all collections, and a configuration has a hundred
    /// words.
    #[must_use]
    pub fn from_stored(text: &str, collection_type: CollectionType) -> Arc<IndexConfig> {
        if text.is_empty() {
            return IndexConfig::shared_default(collection_type);
        }
        let mut known = PARSED_CONFIGS.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |(known, config): &(Box<str>, Arc<IndexConfig>)| {
            **known == *text && config.collection_type == collection_type
        };
        if let Some((_, config)) = known.iter().find(|known| is_this(known)) {
            return Arc::clone(config);
        }
        let mut config = IndexConfig::empty_for(collection_type);
        for word in text.split_whitespace() {
            let _unknown = config.apply_token(word);
        }
        let config = Arc::new(config);
        if known.len() == MAX_PARSED_CONFIGS {
            known.pop_front();
        }
        known.push_back((text.into(), Arc::clone(&config)));
        config
    }

    /// Returns whether a field has an index other than the index of sort keys.
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

    /// Adds the indexes that one word names.
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
        let Some(field) = find_field(self.field_table(), name) else {
            let nearest = suggest_field(self.field_table(), name);
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

    /// Reads the configuration of the default type of collection.
    fn from_str(text: &str) -> Result<IndexConfig, IndexConfigError> {
        IndexConfig::parse(text, CollectionType::default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_configuration_is_parsed_once() {
        let [book, calendar] = [CollectionType::AddressBook, CollectionType::Calendar];
        let read = |text: &str| IndexConfig::from_stored(text, book);
        let first = read("full_name:sort");
        assert!(Arc::ptr_eq(&first, &read("full_name:sort")));
        assert_ne!(*first, *read("full_name:substring"));
        assert_ne!(*first, *IndexConfig::from_stored("full_name:sort", calendar));
        for n in 0..2 * MAX_PARSED_CONFIGS {
            assert_eq!(read(&format!("full_name:sort unknown{n}:sort")), first);
        }
        assert!(PARSED_CONFIGS.lock().unwrap().len() <= MAX_PARSED_CONFIGS);
    }
}
