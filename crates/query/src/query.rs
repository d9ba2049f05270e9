//! The question itself, whichever way it was written.

use crate::time::TimeTest;
use larder_date_phrase::Language;
use larder_format::field::{Field, Kind, calendar_field};
use larder_time::civil::Instant;
use larder_time::zone::{Zone, Zones};
use std::fmt;
use std::sync::Arc;

/// So many UIDs among alternatives are a set.
const SET: usize = 16;

/// How [`Subject::Nothing`] is written: there is no such property.
const NO_FIELD: &str = "x-larder-no-field";

/// Before the names of fields of events, tasks and memos, as a field or a property of contacts may be called the same.
pub(crate) const OF_CALENDAR: &str = "calendar:";

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
    /// A free word, or a quoted phrase: looked for in names, nicknames, organisations, e-mail addresses and phone
    /// numbers. One or two letters are the beginning of a word, anything longer is found anywhere.
    Word(String),
    /// What has one of these UIDs, byte by byte; made by [`Query::uids`], in order and each once.
    Uids(Vec<String>),
    /// A test of one field.
    Test(Test),
    /// A test of what an item is in time.
    Time(TimeTest),
    /// A comparison of a number.
    Number(Number, Comparison, i64),
    /// An item of this kind.
    Kind(larder_store::Kind),
}

/// A number of an item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// The number that a field holds; -1 where it holds none.
    Field(&'static Field),
    /// How many occurrences there are in a window; -1 where none was named.
    Occurrences(Option<larder_store::Window>),
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
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Comparison::Less => a < b,
            Comparison::Equal => a == b,
            Comparison::Greater => a > b,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Comparison::Less => "<",
            Comparison::Equal => "=",
            Comparison::Greater => ">",
        }
    }
}

/// What a question is read with, besides its text.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The region (`AT`) that phone numbers are written for, where a question names none. `None`: numbers without
    /// a country are compared by their digits.
    pub region: Option<String>,
    /// Who asks, and when.
    pub asker: Asker,
}

/// What times mean to who asks.
#[derive(Debug, Clone)]
pub struct Asker {
    /// The time at which the question is asked.
    pub now: Instant,
    /// The clock by which days begin and end.
    pub local: Zone,
    /// The zones that there are.
    pub zones: Arc<Zones>,
    /// The words for days and months.
    pub language: Language,
}

impl Default for Asker {
    /// In 1970, in UTC, in English, with the zones that are built in.
    fn default() -> Asker {
        let zones = Zones::bundled();
        Asker { now: Instant::clamped(0), local: Zone::UTC, zones, language: Language::default() }
    }
}

/// A test of one field: true if any of its values passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What is looked at.
    pub subject: Subject,
    /// How it is compared.
    pub op: Op,
    /// With what; not used by [`Op::Exists`] and [`Op::ExistsVcard`].
    pub text: String,
    /// The region that phone numbers are written for; only used by [`Op::EqPhone`] and its like.
    pub region: Option<String>,
}

impl Query {
    /// What has one of these UIDs.
    #[must_use]
    pub fn uids(mut uids: Vec<String>) -> Query {
        uids.sort_unstable();
        uids.dedup();
        Query::Uids(uids)
    }

    /// The one kind that all answers are of.
    pub(crate) fn kind(&self) -> Option<larder_store::Kind> {
        match self {
            Query::Kind(kind) => Some(*kind),
            Query::And(all) => all.iter().find_map(Query::kind),
            _ => None,
        }
    }

    /// Any of these. Those that ask for a UID are brought together into a set if they are many, so that they
    /// are looked up at once.
    pub(crate) fn any(any: Vec<Query>) -> Query {
        if any.iter().filter(|query| query.wanted_uid().is_some()).count() < SET {
            return Query::Or(any);
        }
        let set = any.iter().filter_map(Query::wanted_uid).map(str::to_string).collect();
        let mut any: Vec<Query> =
            any.into_iter().filter(|query| query.wanted_uid().is_none()).collect();
        any.push(Query::uids(set));
        if any.len() == 1 { any.swap_remove(0) } else { Query::Or(any) }
    }

    /// The UID that it asks for, if it asks for nothing else.
    fn wanted_uid(&self) -> Option<&str> {
        match self {
            Query::Test(Test { subject: Subject::Field(field), op: Op::Is, text, .. })
                if field.kind == Kind::Uid =>
            {
                Some(text)
            }
            _ => None,
        }
    }
}

impl Subject {
    /// A property of the vCard by its name; nothing, if no property can have such a name.
    #[must_use]
    pub fn property(name: &str) -> Subject {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
        match !name.is_empty() && name != NO_FIELD && name.chars().all(is_name) {
            true => Subject::Property(name.to_string()),
            false => Subject::Nothing,
        }
    }
}

impl Test {
    /// A test of a subject, with a text.
    #[must_use]
    pub fn new(subject: Subject, op: Op, text: impl Into<String>) -> Test {
        Test { subject, op, text: text.into(), region: None }
    }
}

/// What a test looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A field of the table; of `full_name`, also the family name, the given name and the nicknames.
    Field(&'static Field),
    /// A property of the vCard, by its name in any case: each of its components; made by [`Subject::property`].
    Property(String),
    /// Any indexed field (`x-evolution-any-field`); UIDs, photos, sounds and keys are never looked at.
    Any,
    /// A name that no field has: such a test matches nothing, as in evolution-data-server.
    Nothing,
}

/// How values are compared. All but tests of a UID compare folded text: without regard to case and accents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// The text is in the value; the first blank behind a word stands for anything. Of a phone number, also its
    /// digits among the value's digits. An empty text is in every contact, unless the field is a list that has
    /// no values.
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

impl Op {
    /// Its name in S-expressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Op::Contains => "contains",
            Op::Is => "is",
            Op::BeginsWith => "beginswith",
            Op::EndsWith => "endswith",
            Op::Includes => "includes",
            Op::Exists => "exists",
            Op::ExistsVcard => "exists_vcard",
            Op::RegexNormal => "regex_normal",
            Op::RegexRaw => "regex_raw",
            Op::EqPhone => "eqphone",
            Op::EqPhoneNational => "eqphone_national",
            Op::EqPhoneShort => "eqphone_short",
        }
    }

    /// Is there nothing to compare with?
    pub(crate) fn is_presence(self) -> bool {
        matches!(self, Op::Exists | Op::ExistsVcard)
    }

    pub(crate) fn is_pattern(self) -> bool {
        matches!(self, Op::RegexNormal | Op::RegexRaw)
    }

    pub(crate) fn is_phone(self) -> bool {
        matches!(self, Op::EqPhone | Op::EqPhoneNational | Op::EqPhoneShort)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Subject::Field(field) => {
                let of_calendar = calendar_field(field.name).is_some_and(|of| of.id == field.id);
                f.write_str(if of_calendar { OF_CALENDAR } else { "" })?;
                field.name
            }
            Subject::Property(name) => name,
            Subject::Any => "x-evolution-any-field",
            Subject::Nothing => NO_FIELD,
        };
        f.write_str(name)
    }
}

impl fmt::Display for Query {
    /// Writes the question as an S-expression; `word` and `uids` are ours, the rest is evolution-data-server's.
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
            Query::Word(word) => write!(f, "(word {})", quoted(word)),
            Query::Uids(uids) => {
                f.write_str("(uids")?;
                uids.iter().try_for_each(|uid| write!(f, " {}", quoted(uid)))?;
                f.write_str(")")
            }
            Query::Time(test) => test.fmt(f),
            Query::Kind(kind) => write!(f, "(kind {})", quoted(kind.name())),
            Query::Number(number, comparison, value) => {
                write!(f, "({} ", comparison.sign())?;
                match number {
                    Number::Field(field) => write!(f, "(number {})", quoted(field.name))?,
                    Number::Constant(number) => write!(f, "{number}")?,
                    Number::Occurrences(None) => f.write_str("(occurrences-count?)")?,
                    Number::Occurrences(Some(window)) => {
                        write!(f, "(occurrences-count? {})", crate::time::range(window))?;
                    }
                }
                write!(f, " {value})")
            }
            Query::Test(Test { subject, op, text, region }) => {
                write!(f, "({} {}", op.name(), quoted(&subject.to_string()))?;
                if !op.is_presence() {
                    write!(f, " {}", quoted(text))?;
                }
                if let Some(region) = region {
                    write!(f, " {}", quoted(region))?;
                }
                f.write_str(")")
            }
        }
    }
}

fn quoted(text: &str) -> String {
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
