//! The question itself, whichever way it was written.

use larder_format::field::Field;
use std::fmt;

/// A question about items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// Everything.
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
    /// A test of one field.
    Test(Test),
}

/// A test of one field: true if any of its values passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// What is looked at.
    pub subject: Subject,
    /// How it is compared.
    pub op: Op,
    /// With what; not used by [`Op::Exists`].
    pub text: String,
}

/// What a test looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A field of the table.
    Field(&'static Field),
    /// Any indexed field (`x-evolution-any-field`); photos, sounds and keys are never looked at.
    Any,
    /// A name that no field has: such a test matches nothing, as in evolution-data-server.
    Nothing,
}

/// How values are compared. All but tests of a UID compare folded text: without regard to case and accents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// The text is in the value; of a phone number, also its digits among the value's digits. An empty text:
    /// the field is there.
    Contains,
    /// The value is the text.
    Is,
    /// The value begins with the text.
    BeginsWith,
    /// The value ends with the text.
    EndsWith,
    /// The field is there and not empty.
    Exists,
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
            Op::Exists => "exists",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Field(field) => field.name,
            Subject::Any => "x-evolution-any-field",
            Subject::Nothing => "x-larder-no-field",
        })
    }
}

impl fmt::Display for Query {
    /// Writes the question as an S-expression; `word` is ours, the rest is evolution-data-server's.
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
            Query::Test(Test { subject, op: Op::Exists, .. }) => {
                write!(f, "(exists {})", quoted(&subject.to_string()))
            }
            Query::Test(Test { subject, op, text }) => {
                write!(f, "({} {} {})", op.name(), quoted(&subject.to_string()), quoted(text))
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
