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
//! | `maildir` | `m` | `/x`, `x`, `/x*`, `x/**`, `/regex/`, in any case |
//! | `folder` | | the same; of `Work` and `work`, the one that is named |
//! | `path` | `l` | a file `/x`, files `/x*`, a directory `/x/**`; or a folder as notmuch has it |
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
mod mail_flag;
mod parser;
mod query_text;
mod ranges;
mod text_fields;
mod tokens;

pub use self::mail_flag::MailFlag;
pub use self::text_fields::MailTextFields;
pub use self::tokens::MAIL_QUERY_FIELDS;
pub(crate) use self::tokens::is_mail_field;
use crate::error::SyntaxError;
use crate::query::{Comparison, Query, QueryContext};
use crate::result_domain::{ResultDomain, domain_of_query};
use crate::saved_searches::{SavedSearches, parse_search_reference};
use larder_date_phrase::UserLocale;
use larder_format::collection_type::find_any_field;
use larder_format::message::MessagePriority;
use larder_store::Kind;
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use std::collections::HashSet;
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
    /// The query, whose label must exist in a search that runs once: see
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
    /// The maildir itself, in any case.
    Is(String),
    /// The maildir of this name; if there is none, those whose names differ in case only.
    Named(String),
    /// The maildir or one below it; case matters as for `Named`.
    Within(String),
    /// A regular expression, matched with any part of the path, with or without its first slash.
    Pattern(String),
    /// The start of the path.
    Prefix(String),
    /// The source with this name.
    Source(String),
    /// An absolute path of the directory of the maildir or of one above it.
    Directory(String),
    /// The beginning of the absolute path of a file.
    FilePrefix(String),
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

    /// Returns whether a line has a phrase without a text and without a field, `""`, which every
    /// message matches, as in mu; or is empty itself. Saved searches in it count, too.
    #[must_use]
    pub fn has_empty_word(line: &str, searches: &SavedSearches) -> bool {
        let fields = parser::search_fields(Kind::Message);
        let (mut lines, mut known) = (vec![line], HashSet::new());
        while let Some(line) = lines.pop() {
            // A line with an error is refused by the parser.
            let Ok(tokens) = tokens::tokenize(line, fields, &mut 0) else { return false };
            let mut is_empty = tokens.is_empty();
            for (_, token) in tokens {
                let tokens::MailToken::Word(word) = token else { continue };
                if word.field.is_some() || word.unknown_field.is_some() {
                    continue;
                }
                is_empty |= word.is_quoted && word.value.trim().is_empty();
                let name = parse_search_reference(&word.value).filter(|_| !word.is_quoted);
                let search = name.and_then(|name| searches.get(name));
                let search =
                    search.filter(|one| Kind::from_saved_search(one) == Some(Kind::Message));
                lines.extend(search.filter(|one| known.insert(&*one.name)).map(|one| &*one.query));
            }
            if is_empty {
                return true;
            }
        }
        false
    }

    /// Returns the messages of this source that match.
    #[must_use]
    pub fn in_source(self, name: &str) -> MailQuery {
        MailQuery::And(vec![MailQuery::Folder(FolderTest::Source(name.to_string())), self])
    }

    /// Returns the messages that match and are not in these sources.
    #[must_use]
    pub(crate) fn without_sources(self, names: &[String]) -> MailQuery {
        if names.is_empty() {
            return self;
        }
        let sources = names.iter().map(|name| MailQuery::Folder(FolderTest::Source(name.clone())));
        let others = sources.map(|source| MailQuery::Not(Box::new(source)));
        MailQuery::And(std::iter::once(self).chain(others).collect())
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
        self.has_test(&|query| {
            matches!(
                query,
                MailQuery::Path(_)
                    | MailQuery::Folder(FolderTest::Directory(_) | FolderTest::FilePrefix(_))
            )
        })
    }

    /// Returns whether the query has a test of the paths that commits changed.
    #[must_use]
    pub fn has_changed_path(&self) -> bool {
        self.has_test(&|query| matches!(query, MailQuery::ChangedPath(_)))
    }

    /// Returns whether any part of the query is such a test.
    fn has_test(&self, is_test: &dyn Fn(&MailQuery) -> bool) -> bool {
        match self {
            MailQuery::And(all) | MailQuery::Or(all) => all.iter().any(|one| one.has_test(is_test)),
            MailQuery::Xor(left, right) => left.has_test(is_test) || right.has_test(is_test),
            MailQuery::Not(query) | MailQuery::ThreadOf(query) | MailQuery::Existing(query) => {
                query.has_test(is_test)
            }
            test => is_test(test),
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
