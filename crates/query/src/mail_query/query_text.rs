//! Mail queries as S-expressions, for tests and for messages about a query.
//!
//! Separate from the parser: this is no language that anybody types, and nothing reads it.

use super::{FolderTest, HeaderTest, MailQuery, PathTest, TextMatch};
use crate::query::Comparison;
use larder_time::civil::Instant;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;

impl fmt::Display for MailQuery {
    /// Writes the query as an S-expression.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MailQuery::All => f.write_str("(all)"),
            MailQuery::Nothing => f.write_str("(nothing)"),
            MailQuery::And(all) => write_list(f, "and", all),
            MailQuery::Or(any) => write_list(f, "or", any),
            MailQuery::Xor(left, right) => write!(f, "(xor {left} {right})"),
            MailQuery::Not(query) => write!(f, "(not {query})"),
            MailQuery::Text(test) => write!(f, "({} {})", test.fields, test.text),
            MailQuery::Flag(flag) => write!(f, "(flag {})", flag.name()),
            MailQuery::Priority(priority) => write!(f, "(priority {})", priority.name()),
            MailQuery::Date(range) => write_time_range(f, "date", range),
            MailQuery::Changed(range) => write_time_range(f, "changed", range),
            MailQuery::Size(range) => match *range.end() {
                u64::MAX => write!(f, "(size {} *)", range.start()),
                end => write!(f, "(size {} {end})", range.start()),
            },
            MailQuery::MessageId(id) => write_call(f, "message-id", id),
            MailQuery::Reference(id) => write_call(f, "reference", id),
            MailQuery::Folder(test) => write!(f, "(folder {test})"),
            MailQuery::Path(path) => write_call(f, "path", path),
            MailQuery::Thread(id) => write_call(f, "thread", id),
            MailQuery::ThreadOf(query) => write!(f, "(thread-of {query})"),
            MailQuery::Label(text) => write!(f, "(label {text})"),
            MailQuery::Existing(query) => query.fmt(f),
            MailQuery::ChangedPath(test) => write!(f, "(changed-path {test})"),
            MailQuery::Hash(start) => write_call(f, "hash", start),
            MailQuery::Parent(start) => write_call(f, "parent", start),
            MailQuery::Collection(name) => write_call(f, "collection", name),
            MailQuery::Header { name, test } => write!(f, "(header {} {test})", QuotedText(name)),
        }
    }
}

impl fmt::Display for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextMatch::Words(words) => QuotedText(words).fmt(f),
            TextMatch::Prefix(text) => write_call(f, "prefix", text),
            TextMatch::Suffix(text) => write_call(f, "suffix", text),
            TextMatch::Infix(text) => write_call(f, "infix", text),
            TextMatch::Pattern(text) => write_call(f, "pattern", text),
            TextMatch::Near { left, right, distance, is_ordered } => {
                let name = if *is_ordered { "adjacent" } else { "near" };
                write!(f, "({name} {distance} {} {})", QuotedText(left), QuotedText(right))
            }
            TextMatch::Exists => f.write_str("(exists)"),
        }
    }
}

impl fmt::Display for FolderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderTest::Is(path) => QuotedText(path).fmt(f),
            FolderTest::Named(path) => write_call(f, "named", path),
            FolderTest::Within(path) => write_call(f, "within", path),
            FolderTest::Pattern(text) => write_call(f, "pattern", text),
            FolderTest::Prefix(path) => write_call(f, "prefix", path),
            FolderTest::Source(name) => write_call(f, "source", name),
            FolderTest::Directory(path) => write_call(f, "directory", path),
            FolderTest::FilePrefix(path) => write_call(f, "file-prefix", path),
        }
    }
}

impl fmt::Display for PathTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathTest::Within(path) => write_call(f, "within", path),
            PathTest::Glob(text) => write_call(f, "glob", text),
            PathTest::Pattern(text) => write_call(f, "pattern", text),
        }
    }
}

impl fmt::Display for HeaderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderTest::Exists => f.write_str("(exists)"),
            HeaderTest::Contains(text) => QuotedText(text).fmt(f),
            HeaderTest::Pattern(text) => write_call(f, "pattern", text),
            HeaderTest::Compare(comparison, number) => {
                let symbol = match comparison {
                    Comparison::Less => '<',
                    Comparison::Equal => '=',
                    Comparison::Greater => '>',
                };
                write!(f, "({symbol} {number})")
            }
        }
    }
}

/// A text in double quotes, with quotes and backslashes in it escaped.
struct QuotedText<'a>(&'a str);

impl fmt::Display for QuotedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

fn write_call(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    write!(f, "({name} {})", QuotedText(text))
}

fn write_list(f: &mut fmt::Formatter<'_>, name: &str, queries: &[MailQuery]) -> fmt::Result {
    write!(f, "({name}")?;
    queries.iter().try_for_each(|query| write!(f, " {query}"))?;
    f.write_char(')')
}

fn write_time_range(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    range: &RangeInclusive<i64>,
) -> fmt::Result {
    write!(f, "({name} ")?;
    write_time(f, *range.start())?;
    f.write_char(' ')?;
    write_time(f, *range.end())?;
    f.write_char(')')
}

/// Writes a time in UTC, or `*` for an open end.
fn write_time(f: &mut fmt::Formatter<'_>, seconds: i64) -> fmt::Result {
    if seconds == i64::MIN || seconds == i64::MAX {
        return f.write_char('*');
    }
    let civil = Instant::from_seconds_clamped(seconds).to_civil(0);
    if civil.seconds() != seconds {
        return write!(f, "@{seconds}");
    }
    let (date, second) = (civil.date(), civil.second_of_day());
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(f, "{:04}-{:02}-{:02}T", date.year, date.month, date.day)?;
    write!(f, "{hour:02}:{minute:02}:{second:02}Z")
}
