//! The query, independent of the syntax that it was written in.

use crate::saved_searches::SavedSearches;
use crate::time_test::TimeTest;
use larder_date_phrase::UserLocale;
use larder_format::collection_type::CollectionType;
use larder_format::field::{Field, FieldType};
use std::fmt;
use std::sync::Arc;

/// Alternatives with at least this many UIDs are turned into one set of UIDs.
const MIN_UIDS_PER_SET: usize = 16;

/// The text form of [`FieldSelector::Nothing`]: no property has this name.
const NO_FIELD_NAME: &str = "x-larder-no-field";

/// A query for items.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Query {
    /// Every item.
    #[default]
    All,
    /// Items that match all of these queries.
    And(Vec<Query>),
    /// Items that match any of these queries; an empty list matches nothing.
    Or(Vec<Query>),
    /// Items that do not match this query.
    Not(Box<Query>),
    /// A bare word or quoted phrase: searched in names, nicknames, organisations, e-mail addresses
    /// and phone numbers. One or two letters match the start of a word, longer texts any part.
    Word(String),
    /// One of these UIDs, compared byte by byte; sorted and unique (see [`Query::from_uids`]).
    Uids(Vec<String>),
    /// A test of one field.
    Test(FieldTest),
    /// A test of the schedule.
    Time(TimeTest),
    /// A comparison of a number.
    Number(NumericOperand, Comparison, i64),
    /// An item of this kind.
    Kind(larder_store::Kind),
}

/// A number of an item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum NumericOperand {
    /// The number in a field; -1 if it has none, as in evolution-data-server.
    Field(&'static Field),
    /// The number of occurrences in a time range; -1 if the query names no range.
    Occurrences(Option<larder_store::TimeRange>),
    /// A constant.
    Constant(i64),
}

/// The comparison of two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the operators")]
pub enum Comparison {
    Less,
    Equal,
    Greater,
}

impl Comparison {
    /// Returns whether the comparison of `a` with `b` is true.
    #[must_use]
    pub fn compare(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::Equal => a == b,
            Comparison::Greater => a > b,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::Equal => "=",
            Comparison::Greater => ">",
        }
    }
}

/// The context that the text of a query is parsed in.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    /// The region (`AT`) of phone numbers, if a query names none. `None`: numbers without a country
    /// code are compared by their digits.
    pub region: Option<String>,
    /// The user's time zone and language, and the current time.
    pub user_locale: UserLocale,
    /// The saved searches that the query may use.
    pub saved_searches: Arc<SavedSearches>,
    /// The line is searched in items of all kinds: a field that only other kinds have matches
    /// nothing, negated or not, and is no error.
    pub is_among_kinds: bool,
}

impl QueryContext {
    /// Returns the context for a line that is searched in items of all kinds.
    #[must_use]
    pub fn among_kinds(&self) -> QueryContext {
        QueryContext { is_among_kinds: true, ..self.clone() }
    }
}

/// A test of one field: true if any of its values passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTest {
    /// The values to test.
    pub subject: FieldSelector,
    /// The comparison.
    pub op: MatchOp,
    /// The text to compare with; not used by [`MatchOp::Exists`] and [`MatchOp::ExistsVcard`].
    pub text: String,
    /// The region of phone numbers; only used by the comparisons of phone numbers.
    pub region: Option<String>,
}

impl Query {
    /// Matches items with one of these UIDs.
    #[must_use]
    pub fn from_uids(mut uids: Vec<String>) -> Query {
        uids.sort_unstable();
        uids.dedup();
        Query::Uids(uids)
    }

    /// Matches items that pass a test. A contact without a flag passes the test that it is off.
    #[must_use]
    pub fn from_test(test: FieldTest) -> Query {
        let is_contact_flag = |field: &Field| {
            field.field_type == FieldType::Flag
                && CollectionType::from_field(field) == CollectionType::default()
        };
        let is_flag =
            matches!(&test.subject, FieldSelector::Field(field) if is_contact_flag(field));
        if !is_flag || test.op != MatchOp::Is || test.text != "0" {
            return Query::Test(test);
        }
        let is_on = Query::Test(FieldTest { text: "1".to_string(), ..test });
        let kind = CollectionType::default().main_kind();
        Query::And(vec![Query::Kind(kind), Query::Not(Box::new(is_on))])
    }

    /// Returns whether every item matches, whatever it has: the query is [`Query::All`], or its
    /// operators join nothing else, as in `() and ()`.
    #[must_use]
    pub fn is_unconditional(&self) -> bool {
        self.is_constant(true)
    }

    /// Returns whether the query has this answer for every item, whatever it has.
    fn is_constant(&self, answer: bool) -> bool {
        match self {
            Query::All => answer,
            Query::And(all) if answer => all.iter().all(|one| one.is_constant(true)),
            Query::And(all) => all.iter().any(|one| one.is_constant(false)),
            Query::Or(any) if answer => any.iter().any(|one| one.is_constant(true)),
            Query::Or(any) => any.iter().all(|one| one.is_constant(false)),
            Query::Not(query) => query.is_constant(!answer),
            _ => false,
        }
    }

    /// Returns whether the query has a bare word or phrase without a text, `""`, which every item
    /// with a value matches.
    #[must_use]
    pub fn has_empty_word(&self) -> bool {
        match self {
            Query::And(all) | Query::Or(all) => all.iter().any(Query::has_empty_word),
            Query::Not(query) => query.has_empty_word(),
            Query::Word(text) => text.trim().is_empty(),
            _ => false,
        }
    }

    /// Returns the kind that every match has, if the query names one.
    pub(crate) fn required_kind(&self) -> Option<larder_store::Kind> {
        match self {
            Query::Kind(kind) => Some(*kind),
            Query::And(all) => all.iter().find_map(Query::required_kind),
            _ => None,
        }
    }

    /// Matches any of these. Many tests of a single UID become one set, which takes a single
    /// lookup.
    pub(crate) fn from_alternatives(any: Vec<Query>) -> Query {
        if any.iter().filter(|query| query.single_uid().is_some()).count() < MIN_UIDS_PER_SET {
            return Query::Or(any);
        }
        let set = any.iter().filter_map(Query::single_uid).map(str::to_string).collect();
        let mut any: Vec<Query> =
            any.into_iter().filter(|query| query.single_uid().is_none()).collect();
        any.push(Query::from_uids(set));
        if any.len() == 1 { any.swap_remove(0) } else { Query::Or(any) }
    }

    /// Returns the UID if the query is a test of one UID.
    fn single_uid(&self) -> Option<&str> {
        match self {
            Query::Test(FieldTest {
                subject: FieldSelector::Field(field),
                op: MatchOp::Is,
                text,
                ..
            }) if field.field_type == FieldType::Uid => Some(text),
            _ => None,
        }
    }
}

impl FieldSelector {
    /// Selects a property by its name; nothing if no property can have this name.
    #[must_use]
    pub fn from_property_name(name: &str) -> FieldSelector {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
        match !name.is_empty() && name != NO_FIELD_NAME && name.chars().all(is_name) {
            true => FieldSelector::Property(name.to_string()),
            false => FieldSelector::Nothing,
        }
    }
}

impl FieldTest {
    /// A test without a region.
    #[must_use]
    pub fn new(subject: FieldSelector, op: MatchOp, text: impl Into<String>) -> FieldTest {
        FieldTest { subject, op, text: text.into(), region: None }
    }
}

/// The values that a test looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldSelector {
    /// A field of the table; for `full_name`, also the family name, the given name and nicknames.
    Field(&'static Field),
    /// Each component of a property, by its name in any case (see
    /// [`FieldSelector::from_property_name`]).
    Property(String),
    /// Any indexed field (`x-evolution-any-field`), without UIDs, photos, sounds and keys.
    Any,
    /// An unknown field: the test matches nothing, as in evolution-data-server.
    Nothing,
}

/// The comparison of a value with a text. Texts are folded, that is, compared regardless of case
/// and accents, except UIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchOp {
    /// The value contains the text; the first space after a word in the text matches any
    /// characters. A phone number also matches by its digits. An empty text matches every contact,
    /// unless the field is a list without values.
    ContainsWords,
    /// The value is the text.
    Is,
    /// The value begins with the text.
    BeginsWith,
    /// The value ends with the text.
    EndsWith,
    /// The value contains the text, including its spaces.
    Substring,
    /// The field has a value that is not empty.
    Exists,
    /// The first component of the first such property is not empty.
    ExistsVcard,
    /// Some part of the folded value matches the regular expression.
    RegexNormal,
    /// Some part of the value, not folded, matches the regular expression.
    RegexRaw,
    /// The same phone number, both with a country code.
    EqPhone,
    /// The same phone number, where one may lack the country code.
    EqPhoneNational,
    /// The same phone number, or one ends with the other.
    EqPhoneShort,
}

impl MatchOp {
    /// The name in S-expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchOp::ContainsWords => "contains",
            MatchOp::Is => "is",
            MatchOp::BeginsWith => "beginswith",
            MatchOp::EndsWith => "endswith",
            MatchOp::Substring => "includes",
            MatchOp::Exists => "exists",
            MatchOp::ExistsVcard => "exists_vcard",
            MatchOp::RegexNormal => "regex_normal",
            MatchOp::RegexRaw => "regex_raw",
            MatchOp::EqPhone => "eqphone",
            MatchOp::EqPhoneNational => "eqphone_national",
            MatchOp::EqPhoneShort => "eqphone_short",
        }
    }

    /// Returns whether the comparison takes no text.
    pub(crate) fn is_presence(self) -> bool {
        matches!(self, MatchOp::Exists | MatchOp::ExistsVcard)
    }

    pub(crate) fn is_pattern(self) -> bool {
        matches!(self, MatchOp::RegexNormal | MatchOp::RegexRaw)
    }

    pub(crate) fn is_phone(self) -> bool {
        matches!(self, MatchOp::EqPhone | MatchOp::EqPhoneNational | MatchOp::EqPhoneShort)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            FieldSelector::Field(field) => {
                let collection_type = CollectionType::from_field(field);
                if collection_type != CollectionType::default() {
                    write!(f, "{}:", collection_type.name())?;
                }
                field.name
            }
            FieldSelector::Property(name) => name,
            FieldSelector::Any => "x-evolution-any-field",
            FieldSelector::Nothing => NO_FIELD_NAME,
        };
        f.write_str(name)
    }
}

impl fmt::Display for Query {
    /// Writes the query as an S-expression of evolution-data-server, with the extensions `word` and
    /// `uids`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, queries: &[Query]| {
            write!(f, "({name}")?;
            for query in queries {
                write!(f, " {query}")?;
            }
            f.write_str(")")
        };
        match self {
            Query::All => f.write_str("#t"),
            Query::And(all) => list(f, "and", all),
            Query::Or(any) => list(f, "or", any),
            Query::Not(query) => write!(f, "(not {query})"),
            Query::Word(word) => write!(f, "(word {})", quote(word)),
            Query::Uids(uids) => {
                f.write_str("(uids")?;
                uids.iter().try_for_each(|uid| write!(f, " {}", quote(uid)))?;
                f.write_str(")")
            }
            Query::Time(test) => test.fmt(f),
            Query::Kind(kind) => write!(f, "(kind {})", quote(kind.name())),
            Query::Number(number, comparison, value) => {
                write!(f, "({} ", comparison.symbol())?;
                match number {
                    NumericOperand::Field(field) => write!(f, "(number {})", quote(field.name))?,
                    NumericOperand::Constant(number) => write!(f, "{number}")?,
                    NumericOperand::Occurrences(None) => f.write_str("(occurrences-count?)")?,
                    NumericOperand::Occurrences(Some(time_range)) => {
                        write!(
                            f,
                            "(occurrences-count? {})",
                            crate::time_test::to_sexp_range(time_range)
                        )?;
                    }
                }
                write!(f, " {value})")
            }
            Query::Test(FieldTest { subject, op, text, region }) => {
                write!(f, "({} {}", op.name(), quote(&subject.to_string()))?;
                if !op.is_presence() {
                    write!(f, " {}", quote(text))?;
                }
                if let Some(region) = region {
                    write!(f, " {}", quote(region))?;
                }
                f.write_str(")")
            }
        }
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
