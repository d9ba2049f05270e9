//! Queries for messages: their meaning, independent of how they are stored.
//!
//! [`MailQuery::parse`] reads the language of mu (1.8 to 1.14), with what only notmuch has.
//! Separate from `search_line` and `query`, because a message has no fields in the sense of a
//! vCard: its flags, folder, thread and text are properties of a maildir and of an index.
//!
//! | names | short | matches |
//! |---|---|---|
//! | `from` `to` `cc` `bcc` `subject` `body` `embed` | `f t c h s b e` | words of the text |
//! | `file` `attachment`, `mime` `mimetype`, `list` | `j y v` | words of the text |
//! | `lang` `language`, `tags` | `a x` | words of the text |
//! | `recip`, `contact` | | `to cc bcc`; these and `from` |
//! | no name | | `contact`, `subject`, `body` and `embed` |
//! | `date`, `changed` | `d k` | a range of times |
//! | `size` | `z` | a range of bytes; `k` is 1024 |
//! | `flag` `flags`, `prio` `priority` | `g p` | one flag by name or letter; low, normal, high |
//! | `msgid` `message-id` `id` `mid`, `ref` `references` | `i r` | an id without its brackets |
//! | `related` | | `msgid` or `ref` |
//! | `maildir` `folder` | `m` | `/x`, `x`, `/x*`, `x/**`, `/regex/` |
//! | `path` | `l` | a file `/x`, a directory `/x/**`; or a folder as notmuch has it |
//! | `in` | | a source |
//! | `thread` | `w` | an id, or the threads of `{query}` |
//! | `label` `labels` | `q` | a label |
//! | `is` | | a flag, or `message`; another word is a label |
//! | `tag` | | a flag; another word is a keyword of the message (mu) or a label (notmuch) |
//! | `header` | | `name`, `name:text`, `name:/regex/`, `name:>5` |
//!
//! Commits have fields of their own, see `commit`; the rest is the same.
//!
//! Names are in any case. A name with a text that is no field, as in `form:anna`, is an error;
//! `http://x`, `re:`, `10:30` and phrases are text. Where mu and
//! notmuch define a name differently, mu decides: `to` is only the header To, `m` in a relative
//! date is a month and `M` a minute, and a phrase may begin with a field (`"subject:a b"`).
//!
//! ```text
//! line = terms { ( "or" | "xor" ) terms }        from left to right
//! terms = unit { [ "and" ] unit }
//! unit = { "not" | "-" } ( "(" line ")" | field ":(" line ")" | word [ near word ] )
//! near = NEAR/n | ADJ/n
//! word = "@" saved search | [ field ":" ] ( text | "a phrase" | text* | *text | *text* | /regex/ )
//! ```
//!
//! In contrast to mu, which ignores the rest of a line that it cannot read, an unmatched
//! parenthesis or quote, an operator without a term, and an unknown field, date, size, flag or
//! priority are errors.

mod commit;
mod label_exclusion;
mod parser;
mod ranges;
mod tokens;

pub use self::tokens::MAIL_QUERY_FIELDS;
pub(crate) use self::tokens::is_mail_field;
use crate::error::SyntaxError;
use crate::query::{Comparison, Query, QueryContext};
use crate::result_domain::{ResultDomain, domain_of_query};
use crate::saved_searches::SavedSearches;
use larder_date_phrase::UserLocale;
use larder_format::collection_type::find_any_field;
use larder_format::message::MessagePriority;
use larder_store::Kind;
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A query for messages.
#[derive(Debug, Clone, PartialEq)]
pub enum MailQuery {
    /// Every message.
    All,
    /// No message.
    Nothing,
    /// Messages that match all of these queries.
    And(Vec<MailQuery>),
    /// Messages that match any of these queries.
    Or(Vec<MailQuery>),
    /// Messages that match exactly one of the two queries.
    Xor(Box<MailQuery>, Box<MailQuery>),
    /// Messages that do not match the query.
    Not(Box<MailQuery>),
    /// A test of text.
    Text(TextTest),
    /// Messages with the flag.
    Flag(MailFlag),
    /// Messages of the priority.
    Priority(MessagePriority),
    /// The time of the header Date, in seconds since 1970. `i64::MIN` and `i64::MAX` are open ends.
    Date(RangeInclusive<i64>),
    /// The time of the last change, in seconds since 1970; open ends as in `Date`.
    Changed(RangeInclusive<i64>),
    /// The size in bytes. `u64::MAX` is an open end.
    Size(RangeInclusive<u64>),
    /// The message with this Message-ID, without its brackets.
    MessageId(String),
    /// Messages that refer to this Message-ID.
    Reference(String),
    /// A test of the maildir that the message is in.
    Folder(FolderTest),
    /// The absolute path of the file of the message.
    Path(String),
    /// The messages of the thread with this id.
    Thread(String),
    /// The messages of each thread that contains a match of the query.
    ThreadOf(Box<MailQuery>),
    /// A test of the labels.
    Label(TextMatch),
    /// The query, whose label or folder must exist in a search that runs once: see
    /// [`MailSearch::check_names`](crate::MailSearch::check_names).
    Existing(Box<MailQuery>),
    /// Commits: a test of the paths that were changed.
    ChangedPath(PathTest),
    /// Commits: the beginning of the hash, in lower case.
    Hash(String),
    /// Commits: the beginning of the hash of a parent, in lower case.
    Parent(String),
    /// The items of a collection.
    Collection(String),
    /// A test of a header.
    Header {
        /// The name of the header, in lower case.
        name: String,
        /// The test of its values.
        test: HeaderTest,
    },
}

/// A test of some texts of a message: true if any of them matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTest {
    /// The texts.
    pub fields: MailTextFields,
    /// The test of each.
    pub text: TextMatch,
}

/// A set of the texts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MailTextFields(u16);

/// The texts and their names.
const TEXT_FIELD_NAMES: [(MailTextFields, &str); 13] = [
    (MailTextFields::FROM, "from"),
    (MailTextFields::TO, "to"),
    (MailTextFields::CC, "cc"),
    (MailTextFields::BCC, "bcc"),
    (MailTextFields::SUBJECT, "subject"),
    (MailTextFields::BODY, "body"),
    (MailTextFields::EMBEDDED, "embed"),
    (MailTextFields::FILE, "file"),
    (MailTextFields::MIME, "mime"),
    (MailTextFields::LIST, "list"),
    (MailTextFields::KEYWORD, "keyword"),
    (MailTextFields::LANGUAGE, "lang"),
    (MailTextFields::COMMITTER, "committer"),
];

impl MailTextFields {
    /// The addresses and names of the header From.
    pub const FROM: MailTextFields = MailTextFields(1);
    /// The addresses and names of the header To.
    pub const TO: MailTextFields = MailTextFields(1 << 1);
    /// The addresses and names of the header Cc.
    pub const CC: MailTextFields = MailTextFields(1 << 2);
    /// The addresses and names of the header Bcc.
    pub const BCC: MailTextFields = MailTextFields(1 << 3);
    /// The subject.
    pub const SUBJECT: MailTextFields = MailTextFields(1 << 4);
    /// The text of the message itself.
    pub const BODY: MailTextFields = MailTextFields(1 << 5);
    /// The text of attachments and of forwarded messages.
    pub const EMBEDDED: MailTextFields = MailTextFields(1 << 6);
    /// The file names of attachments.
    pub const FILE: MailTextFields = MailTextFields(1 << 7);
    /// The MIME types of the parts.
    pub const MIME: MailTextFields = MailTextFields(1 << 8);
    /// The id of the mailing list.
    pub const LIST: MailTextFields = MailTextFields(1 << 9);
    /// The keywords of the headers X-Label, X-Keywords and Keywords, which mu calls tags.
    pub const KEYWORD: MailTextFields = MailTextFields(1 << 10);
    /// The language of the text.
    pub const LANGUAGE: MailTextFields = MailTextFields(1 << 11);
    /// Commits: the name and the address of the committer. The author is the sender, and the names
    /// of files are the paths.
    pub const COMMITTER: MailTextFields = MailTextFields(1 << 12);
    /// The recipients.
    pub const RECIPIENTS: MailTextFields =
        MailTextFields::TO.union(MailTextFields::CC).union(MailTextFields::BCC);
    /// The recipients and the sender.
    pub const CONTACTS: MailTextFields = MailTextFields::RECIPIENTS.union(MailTextFields::FROM);
    /// The texts that a word without a field is searched in.
    pub const FREE: MailTextFields = MailTextFields::CONTACTS
        .union(MailTextFields::SUBJECT)
        .union(MailTextFields::BODY)
        .union(MailTextFields::EMBEDDED);

    /// Returns the texts of both sets.
    #[must_use]
    pub const fn union(self, other: MailTextFields) -> MailTextFields {
        MailTextFields(self.0 | other.0)
    }

    /// Returns whether the set has all texts of the other one.
    #[must_use]
    pub const fn contains(self, other: MailTextFields) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns each text of the set, as a set of one.
    pub fn iter(self) -> impl Iterator<Item = MailTextFields> {
        let all = TEXT_FIELD_NAMES.into_iter().map(|(field, _)| field);
        all.filter(move |field| self.contains(*field))
    }
}

/// The test of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMatch {
    /// One or more words in sequence: a phrase.
    Words(String),
    /// The start of a word, or of the last word of a phrase.
    Prefix(String),
    /// The end of a word.
    Suffix(String),
    /// A part of a word.
    Infix(String),
    /// A regular expression.
    Pattern(String),
    /// Two words with at most `distance` words from one to the other.
    Near {
        /// The first word.
        left: String,
        /// The second word.
        right: String,
        /// The maximum difference of their positions.
        distance: u32,
        /// The words must occur in this order.
        is_ordered: bool,
    },
    /// Any text at all.
    Exists,
}

/// A test of the maildir. Paths begin with a slash, at the root of all maildirs, which is `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderTest {
    /// The maildir itself.
    Is(String),
    /// The maildir or one below it.
    Within(String),
    /// A regular expression, matched with any part of the path.
    Pattern(String),
    /// The start of the path.
    Prefix(String),
    /// The source with this name.
    Source(String),
    /// An absolute path of the directory of the maildir or of one above it.
    Directory(String),
}

/// A test of a path that a commit changed, as a pattern of `.gitignore` has it: a text without a
/// slash may stand at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathTest {
    /// The path itself, or a folder above it.
    Within(String),
    /// A pattern with `*`, `?` or `[...]`, for the whole path; a star stands for slashes, too.
    Glob(String),
    /// A regular expression, matched with any part of the path.
    Pattern(String),
}

/// A test of the values of a header.
#[derive(Debug, Clone, PartialEq)]
pub enum HeaderTest {
    /// The header is present.
    Exists,
    /// A value contains the text.
    Contains(String),
    /// A value matches the regular expression.
    Pattern(String),
    /// A value is a number that compares in this way with the given one.
    Compare(Comparison, f64),
}

/// A flag of a message: of its file name, of its contents, or derived from these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailFlag {
    /// A draft.
    Draft,
    /// Marked by the user as important.
    Flagged,
    /// Forwarded or bounced.
    Passed,
    /// Answered.
    Replied,
    /// Read.
    Seen,
    /// Moved to the trash.
    Trashed,
    /// Not yet seen by a mail reader.
    New,
    /// Has a signature.
    Signed,
    /// Encrypted.
    Encrypted,
    /// Has an attachment.
    Attachment,
    /// New or not seen.
    Unread,
    /// From a mailing list.
    List,
    /// From or to an address of the user.
    Personal,
    /// Has a part with calendar data.
    Calendar,
}

impl MailFlag {
    /// All flags, with their names and letters in mu.
    pub const ALL: [(MailFlag, &str, char); 14] = [
        (MailFlag::Draft, "draft", 'd'),
        (MailFlag::Flagged, "flagged", 'f'),
        (MailFlag::Passed, "passed", 'p'),
        (MailFlag::Replied, "replied", 'r'),
        (MailFlag::Seen, "seen", 's'),
        (MailFlag::Trashed, "trashed", 't'),
        (MailFlag::New, "new", 'n'),
        (MailFlag::Signed, "signed", 'z'),
        (MailFlag::Encrypted, "encrypted", 'x'),
        (MailFlag::Attachment, "attach", 'a'),
        (MailFlag::Unread, "unread", 'u'),
        (MailFlag::List, "list", 'l'),
        (MailFlag::Personal, "personal", 'q'),
        (MailFlag::Calendar, "calendar", 'c'),
    ];

    /// Returns the name, as mu writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        MailFlag::ALL.iter().find(|(flag, ..)| *flag == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the flag with this name in mu or notmuch, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<MailFlag> {
        let name = if name.eq_ignore_ascii_case("attachment") { "attach" } else { name };
        let mut all = MailFlag::ALL.into_iter();
        all.find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(flag, ..)| flag)
    }
}

/// The time and place that dates of a query are relative to, and what it can refer to.
#[derive(Debug, Clone)]
pub struct MailQueryContext {
    /// The current time.
    pub now: Instant,
    /// The time zone of the user: days begin and end by it.
    pub zone: Zone,
    /// The saved searches that the query may use.
    pub saved_searches: Arc<SavedSearches>,
    /// The kind of the items, which decides which fields there are.
    pub kind: Kind,
    /// As [`QueryContext::is_among_kinds`].
    pub is_among_kinds: bool,
}

impl MailQueryContext {
    /// Returns the context of queries for another kind of items.
    #[must_use]
    pub fn with_kind(self, kind: Kind) -> MailQueryContext {
        MailQueryContext { kind, ..self }
    }

    /// Parses a time as `date:` has it; a period is its first second. `None`: it is no time.
    #[must_use]
    pub fn parse_time(&self, text: &str) -> Option<i64> {
        ranges::parse_time(text, self)
    }
}

impl From<&UserLocale> for MailQueryContext {
    fn from(user_locale: &UserLocale) -> MailQueryContext {
        MailQueryContext {
            now: user_locale.now,
            zone: user_locale.zone.clone(),
            saved_searches: Arc::default(),
            kind: Kind::Message,
            is_among_kinds: false,
        }
    }
}

impl From<&QueryContext> for MailQueryContext {
    fn from(context: &QueryContext) -> MailQueryContext {
        MailQueryContext {
            saved_searches: Arc::clone(&context.saved_searches),
            is_among_kinds: context.is_among_kinds,
            ..MailQueryContext::from(&context.user_locale)
        }
    }
}

impl MailQuery {
    /// Parses a line. An empty line matches every message.
    ///
    /// # Errors
    /// An unclosed quote or parenthesis, an unmatched parenthesis, an operator without a term, an
    /// unknown date, size, flag or priority, or a pattern that cannot be compiled; with its
    /// position, and how to correct it.
    pub fn parse(line: &str, context: &MailQueryContext) -> Result<MailQuery, SyntaxError> {
        parser::parse_line(line, context)
    }

    /// Returns the messages of this source that match.
    #[must_use]
    pub fn in_source(self, name: &str) -> MailQuery {
        MailQuery::And(vec![MailQuery::Folder(FolderTest::Source(name.to_string())), self])
    }

    /// Returns whether a search line cannot be read for contacts and calendars, because it has a
    /// term that messages or commits of this kind have: `flag:seen`, `is:unread`, `author:anna`.
    #[must_use]
    pub fn is_only_of(kind: Kind, line: &str, context: &QueryContext) -> bool {
        let Err(error) = Query::parse_with(line, context) else { return false };
        let term: String = line.chars().skip(error.at.saturating_sub(1)).collect();
        let Some((name, rest)) = term.split_once(':') else { return false };
        let value = rest.split(|c: char| c.is_whitespace() || c == ')').next().unwrap_or_default();
        match tokens::find_field(parser::search_fields(kind), name) {
            Some(tokens::MailField::FlagOrLabel) => MailFlag::from_name(value).is_some(),
            Some(_) => find_any_field(name).is_none(),
            None => false,
        }
    }

    /// Returns whether no item of another kind can match a search line: it has a term that only
    /// messages have, or its fields are those of messages.
    #[must_use]
    pub fn names_only_mail(line: &str, context: &QueryContext) -> bool {
        let of_messages = ResultDomain::One(Kind::Message.collection_type());
        match Query::parse_with(line, context) {
            Ok(query) => domain_of_query(&query) == Some(of_messages),
            Err(_) => MailQuery::is_only_of(Kind::Message, line, context),
        }
    }

    /// Returns whether a search line that has a meaning for contacts and calendars has a term that
    /// only messages match.
    #[must_use]
    pub fn may_match_mail_only(line: &str, context: &QueryContext) -> bool {
        Query::parse_with(line, context).is_ok_and(|query| has_mail_term(&query))
    }

    /// Returns whether the query names a file or a directory by its absolute path.
    #[must_use]
    pub fn has_file_path(&self) -> bool {
        match self {
            MailQuery::Path(_) | MailQuery::Folder(FolderTest::Directory(_)) => true,
            MailQuery::And(all) | MailQuery::Or(all) => all.iter().any(MailQuery::has_file_path),
            MailQuery::Xor(left, right) => left.has_file_path() || right.has_file_path(),
            MailQuery::Not(query) | MailQuery::ThreadOf(query) | MailQuery::Existing(query) => {
                query.has_file_path()
            }
            _ => false,
        }
    }
}

/// Returns whether messages or commits have a field of this name.
pub(crate) fn is_mail_or_commit_field(name: &str) -> bool {
    let kinds = [Kind::Message, Kind::Commit];
    kinds.iter().any(|kind| tokens::find_field(parser::search_fields(*kind), name).is_some())
}

/// Returns whether a query has a test of a field of messages.
fn has_mail_term(query: &Query) -> bool {
    match query {
        Query::And(all) | Query::Or(all) => all.iter().any(has_mail_term),
        Query::Not(query) => has_mail_term(query),
        leaf => {
            let of_messages = ResultDomain::One(Kind::Message.collection_type());
            domain_of_query(leaf) == Some(of_messages)
        }
    }
}

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

impl fmt::Display for MailTextFields {
    /// Writes `any` for the texts of a word without a field, else the names with `+` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == MailTextFields::FREE {
            return f.write_str("any");
        }
        let names = TEXT_FIELD_NAMES.iter().filter(|(field, _)| self.contains(*field));
        for (at, (_, name)) in names.enumerate() {
            write!(f, "{}{name}", if at > 0 { "+" } else { "" })?;
        }
        Ok(())
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
            FolderTest::Within(path) => write_call(f, "within", path),
            FolderTest::Pattern(text) => write_call(f, "pattern", text),
            FolderTest::Prefix(path) => write_call(f, "prefix", path),
            FolderTest::Source(name) => write_call(f, "source", name),
            FolderTest::Directory(path) => write_call(f, "directory", path),
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
