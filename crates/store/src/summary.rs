//! Summaries: which fields of a collection are indexed, and how.
//!
//! Each collection has one. What it leaves out is found all the same, by a scan: a summary decides what a question
//! costs and what an item costs, never what the answer is. It is only a table here; `contact` derives by it, and the
//! planner asks it. That a field is there at all is indexed for every field that can be, whatever the summary.

use crate::Family;
use larder_format::field::{
    CALENDAR_FIELDS, FIELDS, Field, Kind, calendar_field, field, nearest, nearest_in,
};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// How a field's values are indexed. The numbers are bits, and not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    /// Whole values, for equality and for beginnings: one index with two names, `exact` and `prefix`.
    Value = 1,
    /// Values from their end.
    Suffix = 2,
    /// The last digits of phone numbers; of fields that hold such.
    Phone = 4,
    /// Three characters in a row wherever they are, and the beginnings of words where free words look.
    Substring = 8,
    /// The place of the first value in the alphabet.
    Sort = 16,
}

/// The names of the kinds, in the order in which they are written.
const KINDS: &[(&str, IndexKind)] = &[
    ("exact", IndexKind::Value),
    ("prefix", IndexKind::Value),
    ("suffix", IndexKind::Suffix),
    ("phone", IndexKind::Phone),
    ("substring", IndexKind::Substring),
    ("sort", IndexKind::Sort),
];

/// The default: what has an index of values, of their ends, and of their order.
const VALUES: &[&str] = &[
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
const SUFFIXES: &[&str] = &["full_name", "given_name", "family_name", "nickname", "email", "phone"];
const SORTED: &[&str] = &["file_as", "full_name"];
/// What has no index of its text. By a UID an item is found without, and nobody looks for parts of one, or of a time of
/// revision.
const NO_TEXT: &[&str] = &["uid", "rev"];

/// The same of a calendar.
const CALENDAR_VALUES: &[&str] = &["category", "status", "class", "priority"];
/// What of a calendar has an index of its text: where free words look.
const CALENDAR_TEXT: &[&str] =
    &["summary", "description", "location", "comment", "category", "organizer", "attendee"];

/// One more than the largest number of a field.
const SIZE: usize = {
    let (contacts, calendar) = (size(FIELDS), size(CALENDAR_FIELDS));
    if contacts > calendar { contacts } else { calendar }
};

const fn size(fields: &[Field]) -> usize {
    let (mut at, mut size) = (0, 0);
    while at < fields.len() {
        if fields[at].id as usize >= size {
            size = fields[at].id as usize + 1;
        }
        at += 1;
    }
    size
}

/// Which fields are indexed, and how. As text: `full_name:exact,prefix,sort phone:phone`, or `none`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    family: Family,
    /// The bits of the kinds, by the field's number.
    kinds: [u8; SIZE],
}

/// What is wrong with the text of a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// No field has this name.
    #[error("there is no field {name:?} to index")]
    NoField {
        /// The name.
        name: String,
        /// The field that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// The field has no index of its own.
    #[error("the field {name} cannot be indexed")]
    NotIndexed {
        /// The field.
        name: &'static str,
        /// The field among whose values its own are.
        within: Option<&'static str>,
    },
    /// It does not say how.
    #[error("{name:?} does not say how to index it")]
    NoKinds {
        /// What was said.
        name: String,
    },
    /// No index is called so.
    #[error("{name:?} is no way to index {field}")]
    NoKind {
        /// The name.
        name: String,
        /// The field.
        field: &'static str,
    },
    /// Only phone numbers are indexed as such.
    #[error("{field} holds no phone numbers")]
    NoPhone {
        /// The field.
        field: &'static str,
    },
}

impl SummaryError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            SummaryError::NoField { nearest: Some(near), .. } => format!("did you mean {near}?"),
            SummaryError::NoField { .. } => "larder fields lists them".into(),
            SummaryError::NotIndexed { within: Some(within), .. } => {
                format!("it is found by the index of {within}")
            }
            SummaryError::NotIndexed { .. } => "larder fields tells which can be".into(),
            SummaryError::NoKinds { .. } | SummaryError::NoKind { .. } => {
                let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
                format!("write FIELD:KIND,KIND with kinds of {}", names.join(", "))
            }
            SummaryError::NoPhone { .. } => "phone:phone is the index of numbers".into(),
        }
    }
}

static CONTACTS: LazyLock<Arc<Summary>> = LazyLock::new(|| {
    let mut summary = Summary::none_of(Family::Contacts);
    for field in FIELDS.iter().filter(|field| field.indexed) {
        let kinds = [
            (IndexKind::Value, VALUES.contains(&field.name)),
            (IndexKind::Suffix, SUFFIXES.contains(&field.name)),
            (IndexKind::Phone, field.kind == Kind::Phone),
            (IndexKind::Substring, !NO_TEXT.contains(&field.name)),
            (IndexKind::Sort, SORTED.contains(&field.name)),
        ];
        for (kind, _) in kinds.iter().filter(|(_, has)| *has) {
            summary.add(field, *kind);
        }
    }
    Arc::new(summary)
});

static CALENDAR: LazyLock<Arc<Summary>> = LazyLock::new(|| {
    let mut summary = Summary::none_of(Family::Calendar);
    for field in CALENDAR_FIELDS.iter().filter(|field| field.indexed) {
        if CALENDAR_VALUES.contains(&field.name) {
            summary.add(field, IndexKind::Value);
        }
        if CALENDAR_TEXT.contains(&field.name) {
            summary.add(field, IndexKind::Substring);
        }
    }
    Arc::new(summary)
});

impl Default for Summary {
    /// That of address books.
    fn default() -> Summary {
        CONTACTS.as_ref().clone()
    }
}

impl Summary {
    /// Nothing but which fields there are, of contacts.
    #[must_use]
    pub fn none() -> Summary {
        Summary::none_of(Family::Contacts)
    }

    fn none_of(family: Family) -> Summary {
        Summary { family, kinds: [0; SIZE] }
    }

    /// That of collections for which none was chosen.
    #[must_use]
    pub fn shared_default(family: Family) -> Arc<Summary> {
        Arc::clone(match family {
            Family::Contacts => &CONTACTS,
            Family::Calendar => &CALENDAR,
        })
    }

    /// What the items are that it is about.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// The fields of these items.
    #[must_use]
    pub fn table(&self) -> &'static [Field] {
        match self.family {
            Family::Contacts => FIELDS,
            Family::Calendar => CALENDAR_FIELDS,
        }
    }

    /// Is it the default?
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == *Summary::shared_default(self.family)
    }

    /// Reads words like `full_name:prefix,sort`, which add up; `none` and `default` are such words, too.
    ///
    /// # Errors
    /// A field that items of this family do not have, or an index that a field cannot have.
    pub fn parse(text: &str, family: Family) -> Result<Summary, SummaryError> {
        let mut summary = Summary::none_of(family);
        text.split_whitespace().try_for_each(|word| summary.take(word))?;
        Ok(summary)
    }

    /// Has this field an index of this kind?
    #[must_use]
    pub fn has(&self, field: &Field, kind: IndexKind) -> bool {
        self.bits(field) & kind as u8 != 0
    }

    /// The fields that have an index of this kind, in the order of the table.
    pub fn fields(&self, kind: IndexKind) -> impl Iterator<Item = &'static Field> + '_ {
        self.table().iter().filter(move |field| self.has(field, kind))
    }

    /// The names of the kinds of index that this field has.
    pub fn kinds(&self, field: &Field) -> impl Iterator<Item = &'static str> + use<> {
        let bits = self.bits(field);
        KINDS.iter().filter(move |(_, kind)| bits & *kind as u8 != 0).map(|(name, _)| *name)
    }

    /// Is there an order by the field of this number?
    pub(crate) fn sorts_by(&self, field: u16) -> bool {
        self.kinds.get(usize::from(field)).is_some_and(|bits| bits & IndexKind::Sort as u8 != 0)
    }

    /// Are items found by other terms with the other one?
    pub(crate) fn finds_otherwise(&self, other: &Summary) -> bool {
        self.differs(other, !(IndexKind::Sort as u8))
    }

    /// Are items in other orders with the other one?
    pub(crate) fn sorts_otherwise(&self, other: &Summary) -> bool {
        self.differs(other, IndexKind::Sort as u8)
    }

    /// As it is stored: nothing for the default, so that a later version may have a better one.
    pub(crate) fn to_stored(&self) -> String {
        if self.is_default() { String::new() } else { self.to_string() }
    }

    /// One that is stored. What this program does not know of it, it does not index.
    pub(crate) fn of_stored(text: &str, family: Family) -> Arc<Summary> {
        if text.is_empty() {
            return Summary::shared_default(family);
        }
        let mut summary = Summary::none_of(family);
        for word in text.split_whitespace() {
            let _unknown = summary.take(word);
        }
        Arc::new(summary)
    }

    /// Is this field's text indexed in any way?
    pub(crate) fn finds(&self, field: &Field) -> bool {
        self.bits(field) & !(IndexKind::Sort as u8) != 0
    }

    fn bits(&self, field: &Field) -> u8 {
        self.kinds.get(usize::from(field.id)).copied().unwrap_or_default()
    }

    fn differs(&self, other: &Summary, bits: u8) -> bool {
        self.kinds.iter().zip(&other.kinds).any(|(a, b)| (a ^ b) & bits != 0)
    }

    fn add(&mut self, field: &Field, kind: IndexKind) {
        if let Some(bits) = self.kinds.get_mut(usize::from(field.id)) {
            *bits |= kind as u8;
        }
    }

    /// Adds what one word says.
    fn take(&mut self, word: &str) -> Result<(), SummaryError> {
        let Some((name, kinds)) = word.split_once(':') else {
            match word {
                "none" => {}
                "default" => {
                    let default = Summary::shared_default(self.family);
                    let both = self.kinds.iter_mut().zip(&default.kinds);
                    both.for_each(|(mine, default)| *mine |= default);
                }
                _ => return Err(SummaryError::NoKinds { name: word.to_string() }),
            }
            return Ok(());
        };
        let (known, nearest) = match self.family {
            Family::Contacts => (field(name), nearest(name)),
            Family::Calendar => (calendar_field(name), nearest_in(CALENDAR_FIELDS, name)),
        };
        let Some(field) = known else {
            return Err(SummaryError::NoField { name: name.to_string(), nearest });
        };
        if !field.indexed {
            return Err(SummaryError::NotIndexed { name: field.name, within: field.within });
        }
        for name in kinds.split(',') {
            let known = KINDS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            let Some((_, kind)) = known else {
                let (name, field) = (name.to_string(), field.name);
                return Err(SummaryError::NoKind { name, field });
            };
            if *kind == IndexKind::Phone && field.kind != Kind::Phone {
                return Err(SummaryError::NoPhone { field: field.name });
            }
            self.add(field, *kind);
        }
        Ok(())
    }
}

impl FromStr for Summary {
    type Err = SummaryError;

    /// Reads the summary of an address book.
    fn from_str(text: &str) -> Result<Summary, SummaryError> {
        Summary::parse(text, Family::Contacts)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for field in self.table().iter().filter(|field| self.bits(field) != 0) {
            let kinds: Vec<&str> = self.kinds(field).collect();
            let blank = if first { "" } else { " " };
            write!(f, "{blank}{}:{}", field.name, kinds.join(","))?;
            first = false;
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}
