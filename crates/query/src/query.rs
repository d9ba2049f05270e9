//! The question itself, whichever way it was written.

use crate::time_test::TimeTest;
use larder_date_phrase::UserLocale;
use larder_format::field::{Field, FieldType, find_calendar_field};
use std::fmt;

/// So many UIDs among alternatives are a set.
const MIN_UIDS_PER_SET: usize = 16;

/// How [`Subject::Nothing`] is written: there is no such property.
const NO_FIELD_NAME: &str = "x-larder-no-field";

/// Before the names of fields of events, tasks and memos, as a field or a property of contacts may
/// be called the same.
pub(crate) const CALENDAR_FIELD_PREFIX: &str = "calendar:";

/// A question about items.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Query {
    /// Everything.
    #[default]
    All,
    /// All of these.
    And(Vec<Query>),
    /// Any of these; none of them: nothing.
    Or(Vec<Query>),
    /// Everything but this.
    Not(Box<Query>),
    /// A free word, or a quoted phrase: looked for in names, nicknames, organisations, e-mail
    /// addresses and phone numbers. One or two letters are the beginning of a word, anything longer
    /// is found anywhere.
    Word(String),
    /// What has one of these UIDs, byte by byte; made by [`Query::uids`], in order and each once.
    Uids(Vec<String>),
    /// A test of one field.
    Test(FieldTest),
    /// A test of what an item is in time.
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
    /// The number that a field holds; -1 where it holds none.
    Field(&'static Field),
    /// How many occurrences there are in a window; -1 where none was named.
    Occurrences(Option<larder_store::TimeRange>),
    /// This number.
    Constant(i64),
}

/// How numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called as their signs")]
pub enum Comparison {
    Less,
    Equal,
    Greater,
}

impl Comparison {
    /// Is `a` so compared with `b`?
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

/// What a question is read with, besides its text.
#[derive(Debug, Clone, Default)]
pub struct QueryContext {
    /// The region (`AT`) that phone numbers are written for, where a question names none. `None`:
    /// numbers without a country are compared by their digits.
    pub region: Option<String>,
    /// Who asks, and when.
    pub user_locale: UserLocale,
}

/// A test of one field: true if any of its values passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTest {
    /// What is looked at.
    pub subject: FieldSelector,
    /// How it is compared.
    pub op: MatchOp,
    /// With what; not used by [`MatchOp::Exists`] and [`MatchOp::ExistsVcard`].
    pub text: String,
    /// The region that phone numbers are written for; only used by [`MatchOp::EqPhone`] and its
    /// like.
    pub region: Option<String>,
}

impl Query {
    /// What has one of these UIDs.
    #[must_use]
    pub fn from_uids(mut uids: Vec<String>) -> Query {
        uids.sort_unstable();
        uids.dedup();
        Query::Uids(uids)
    }

    /// The one kind that all answers are of.
    pub(crate) fn required_kind(&self) -> Option<larder_store::Kind> {
        match self {
            Query::Kind(kind) => Some(*kind),
            Query::And(all) => all.iter().find_map(Query::required_kind),
            _ => None,
        }
    }

    /// Any of these. Those that ask for a UID are brought together into a set if they are many, so
    /// that they are looked up at once.
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

    /// The UID that it asks for, if it asks for nothing else.
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
    /// A property of the vCard by its name; nothing, if no property can have such a name.
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
    /// A test of a subject, with a text.
    #[must_use]
    pub fn new(subject: FieldSelector, op: MatchOp, text: impl Into<String>) -> FieldTest {
        FieldTest { subject, op, text: text.into(), region: None }
    }
}

/// What a test looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldSelector {
    /// A field of the table; of `full_name`, also the family name, the given name and the
    /// nicknames.
    Field(&'static Field),
    /// A property of the vCard, by its name in any case: each of its components; made by
    /// [`Subject::property`].
    Property(String),
    /// Any indexed field (`x-evolution-any-field`); UIDs, photos, sounds and keys are never looked
    /// at.
    Any,
    /// A name that no field has: such a test matches nothing, as in evolution-data-server.
    Nothing,
}

/// How values are compared. All but tests of a UID compare folded text: without regard to case and
/// accents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchOp {
    /// The text is in the value; the first blank behind a word stands for anything. Of a phone
    /// number, also its digits among the value's digits. An empty text is in every contact, unless
    /// the field is a list that has no values.
    Contains,
    /// The value is the text.
    Is,
    /// The value begins with the text.
    BeginsWith,
    /// The value ends with the text.
    EndsWith,
    /// The text is in the value, as it is, blanks and all.
    Includes,
    /// The field is there and not empty.
    Exists,
    /// The first value of the first such property is not empty.
    ExistsVcard,
    /// The folded value matches this regular expression, somewhere.
    RegexNormal,
    /// The value as it is matches this regular expression, somewhere.
    RegexRaw,
    /// The value is this phone number, and both name their country.
    EqPhone,
    /// The value is this phone number; a country that only one names is not compared.
    EqPhoneNational,
    /// The value is this phone number, or one of them ends with the other.
    EqPhoneShort,
}

impl MatchOp {
    /// Its name in S-expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchOp::Contains => "contains",
            MatchOp::Is => "is",
            MatchOp::BeginsWith => "beginswith",
            MatchOp::EndsWith => "endswith",
            MatchOp::Includes => "includes",
            MatchOp::Exists => "exists",
            MatchOp::ExistsVcard => "exists_vcard",
            MatchOp::RegexNormal => "regex_normal",
            MatchOp::RegexRaw => "regex_raw",
            MatchOp::EqPhone => "eqphone",
            MatchOp::EqPhoneNational => "eqphone_national",
            MatchOp::EqPhoneShort => "eqphone_short",
        }
    }

    /// Is there nothing to compare with?
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
                let of_calendar =
                    find_calendar_field(field.name).is_some_and(|of| of.id == field.id);
                f.write_str(if of_calendar { CALENDAR_FIELD_PREFIX } else { "" })?;
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
    /// Writes the question as an S-expression; `word` and `uids` are ours, the rest is
    /// evolution-data-server's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, of: &[Query]| {
            write!(f, "({name}")?;
            for query in of {
                write!(f, " {query}")?;
            }
            f.write_str(")")
        };
        match self {
            Query::All => f.write_str("#t"),
            Query::And(of) => list(f, "and", of),
            Query::Or(of) => list(f, "or", of),
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
                    NumericOperand::Occurrences(Some(window)) => {
                        write!(
                            f,
                            "(occurrences-count? {})",
                            crate::time_test::to_sexp_range(window)
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
