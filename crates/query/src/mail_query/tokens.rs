//! The tokens of a mail query: words with their fields, operators and parentheses.
//!
//! Separate from `parser` because quotes, escapes and braces decide on the ends of words, without
//! regard to the structure of the query.

use super::MailTextFields;
use crate::error::{MAX_LINE_TOKENS, SyntaxError};

/// The number of words between two others if NEAR or ADJ has no number.
const DEFAULT_DISTANCE: u32 = 10;
/// The maximum number of characters of a group of a regular expression.
const MAX_GROUP_CHARS: usize = 4096;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MailToken {
    Open,
    Close,
    And,
    Or,
    Xor,
    Not,
    /// The operators NEAR and ADJ, with the text as written.
    Near {
        distance: u32,
        is_ordered: bool,
        text: String,
    },
    Word(MailWord),
}

/// A word or phrase, without quotes and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MailWord {
    pub(super) field: Option<MailField>,
    /// The text, without the name of the field.
    pub(super) value: String,
    /// The text in front of a colon that names no field, if it looks like the name of one.
    pub(super) unknown_field: Option<String>,
    pub(super) is_quoted: bool,
    /// The byte position behind the word.
    pub(super) end: usize,
}

/// A field that a query can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MailField {
    Text(MailTextFields),
    Date,
    Changed,
    Size,
    Flag,
    Priority,
    MessageId,
    Reference,
    Related,
    /// `maildir:` of mu.
    Maildir,
    /// `folder:` of notmuch.
    Folder,
    Path,
    Thread,
    Label,
    /// `tag:` of notmuch, and mu's name of the keywords.
    FlagOrKeyword,
    /// `is:` of notmuch.
    FlagOrLabel,
    Header,
    /// Commits: a path that was changed.
    ChangedPath,
    /// Commits: a hash.
    Hash,
    /// Commits: the hash of a parent.
    Parent,
    /// Commits: the repository.
    Collection,
    /// The name of a source.
    Source,
    /// The revisions of the database of notmuch.
    Revision,
    /// The named queries of notmuch.
    NamedQuery,
    /// A field of notmuch that has no equivalent.
    Unsupported,
}

impl MailField {
    /// Returns whether the field may have no value: then it tests whether a message has the field,
    /// or it is the root of the folders.
    pub(super) fn may_be_empty(self) -> bool {
        matches!(
            self,
            MailField::Text(_)
                | MailField::Label
                | MailField::FlagOrKeyword
                | MailField::FlagOrLabel
                | MailField::MessageId
                | MailField::Reference
                | MailField::Related
                | MailField::Maildir
                | MailField::Folder
                | MailField::Path
        )
    }
}

/// The fields of a kind, with their names.
pub(super) type SearchFields = &'static [(&'static [&'static str], MailField)];

/// The names of the fields in mu, then those of notmuch, in lower case.
pub(super) const MAIL_SEARCH_FIELDS: SearchFields = &[
    (&["bcc", "h"], MailField::Text(MailTextFields::BCC)),
    (&["body", "b"], MailField::Text(MailTextFields::BODY)),
    (&["cc", "c"], MailField::Text(MailTextFields::CC)),
    (&["embed", "e"], MailField::Text(MailTextFields::EMBEDDED)),
    (&["from", "f"], MailField::Text(MailTextFields::FROM)),
    (&["subject", "s"], MailField::Text(MailTextFields::SUBJECT)),
    (&["to", "t"], MailField::Text(MailTextFields::TO)),
    (&["file", "j", "attachment"], MailField::Text(MailTextFields::FILE)),
    (&["lang", "language", "a"], MailField::Text(MailTextFields::LANGUAGE)),
    (&["list", "v"], MailField::Text(MailTextFields::LIST)),
    (&["mime", "y", "mimetype", "mime-type"], MailField::Text(MailTextFields::MIME)),
    (&["tags", "x"], MailField::Text(MailTextFields::KEYWORD)),
    (&["recip"], MailField::Text(MailTextFields::RECIPIENTS)),
    (&["contact"], MailField::Text(MailTextFields::CONTACTS)),
    (&["date", "d"], MailField::Date),
    (&["changed", "k"], MailField::Changed),
    (&["size", "z"], MailField::Size),
    (&["flag", "flags", "g"], MailField::Flag),
    (&["prio", "priority", "p"], MailField::Priority),
    (&["msgid", "message-id", "i", "id", "mid"], MailField::MessageId),
    (&["ref", "references", "r"], MailField::Reference),
    (&["related"], MailField::Related),
    (&["maildir", "m"], MailField::Maildir),
    (&["folder"], MailField::Folder),
    (&["path", "l"], MailField::Path),
    (&["thread", "w"], MailField::Thread),
    (&["label", "labels", "q"], MailField::Label),
    (&["tag"], MailField::FlagOrKeyword),
    (&["is"], MailField::FlagOrLabel),
    (&["header"], MailField::Header),
    (&["in"], MailField::Source),
    (&["lastmod"], MailField::Revision),
    (&["query"], MailField::NamedQuery),
    (&["property", "sexp"], MailField::Unsupported),
];

/// The fields of queries for messages: their names, the short ones of mu behind the others, and
/// what they test.
pub const MAIL_QUERY_FIELDS: &[(&[&str], &str)] = &[
    (&["from", "f"], "words of the sender's name or address"),
    (&["to", "t"], "words of the recipients in To"),
    (&["cc", "c"], "words of the recipients in Cc"),
    (&["bcc", "h"], "words of the recipients in Bcc"),
    (&["recip"], "to, cc or bcc"),
    (&["contact"], "from, to, cc or bcc"),
    (&["subject", "s"], "words of the subject"),
    (&["body", "b"], "words of the text"),
    (&["embed", "e"], "words of attached texts, reports and messages"),
    (&["file", "attachment", "j"], "words of the file name of an attachment"),
    (&["mime", "mimetype", "mime-type", "y"], "the media type of a part"),
    (&["list", "v"], "the name of the mailing list"),
    (&["tags", "x"], "a keyword of X-Label, X-Keywords or Keywords"),
    (&["date", "d"], "a range of the dates of messages"),
    (&["changed", "k"], "a range of the times at which files changed"),
    (&["size", "z"], "a range of sizes: 10k..2m"),
    (
        &["flag", "flags", "g"],
        "a flag: unread, seen, flagged, replied, passed, draft, trashed, new, signed, encrypted, \
         attach, list, personal, calendar",
    ),
    (&["prio", "priority", "p"], "low, normal or high"),
    (&["msgid", "message-id", "id", "mid", "i"], "a Message-ID"),
    (&["ref", "references", "r"], "answers to a Message-ID"),
    (&["related"], "msgid or ref"),
    (&["thread", "w"], "the thread of a message or with an ID, or the threads of {QUERY}"),
    (&["maildir", "m"], "a folder, in any case: /INBOX, lists/**, /regex/"),
    (&["folder"], "the same; of several that differ in case only, the one of this name"),
    (&["path", "l"], "a file, /x* for files, /x/** for a directory; or a folder"),
    (&["in"], "a source"),
    (&["label", "labels", "q"], "a label"),
    (&["tag"], "a flag, a label or a keyword"),
    (&["is"], "a flag or a label; is:message is every message"),
    (&["header"], "a header of any name: header:x-mailer:mutt, header:x-spam-score:>5"),
];

/// Returns all names of fields, in lower case.
pub(super) fn field_names(fields: SearchFields) -> impl Iterator<Item = &'static str> {
    fields.iter().flat_map(|(names, _)| names.iter().copied())
}

/// Returns whether queries for messages have a field with this name, of more than one letter.
pub(crate) fn is_mail_field(name: &str) -> bool {
    name.len() > 1 && find_field(MAIL_SEARCH_FIELDS, name).is_some()
}

pub(super) fn find_field(fields: SearchFields, name: &str) -> Option<MailField> {
    let is_named = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    fields.iter().find(|(names, _)| is_named(names)).map(|(_, field)| *field)
}

/// Splits a line into tokens, each with its byte position. Adds their number to `count`, up to the
/// limit.
pub(super) fn tokenize(
    line: &str,
    fields: SearchFields,
    count: &mut usize,
) -> Result<Vec<(usize, MailToken)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
        if is_space(c) {
            at += c.len_utf8();
            continue;
        }
        *count += 1;
        if *count > MAX_LINE_TOKENS {
            let message = format!("the query has more than {MAX_LINE_TOKENS} words");
            return Err(SyntaxError::new(line, at, message));
        }
        let (token, end) = match c {
            '(' => (MailToken::Open, at + 1),
            ')' => (MailToken::Close, at + 1),
            '-' if is_negation(line, at) => (MailToken::Not, at + 1),
            _ => WordReader::new(line, fields, at).read()?,
        };
        tokens.push((at, token));
        at = end;
    }
    Ok(tokens)
}

/// Returns whether the character separates words. Control characters do, as in mu.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether the hyphen at this position negates a term: a term follows it immediately.
fn is_negation(line: &str, at: usize) -> bool {
    let next = line.get(at + 1..).and_then(|rest| rest.chars().next());
    next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '"' | '(' | '/' | '*' | '@'))
}

/// The reader of one word.
struct WordReader<'a> {
    line: &'a str,
    fields: SearchFields,
    start: usize,
    /// The text without escapes.
    plain: String,
    /// The text with the escapes of a regular expression.
    pattern: String,
    /// The length of `plain` up to the first colon and with it, if it ends the name of a field.
    value_start: usize,
    has_escape: bool,
}

impl<'a> WordReader<'a> {
    fn new(line: &'a str, fields: SearchFields, start: usize) -> WordReader<'a> {
        let (plain, pattern) = (String::new(), String::new());
        WordReader { line, fields, start, plain, pattern, value_start: 0, has_escape: false }
    }

    /// Reads up to white space, a parenthesis or a closing quote, and a regular expression up to
    /// its closing slash; returns also the end.
    fn read(mut self) -> Result<(MailToken, usize), SyntaxError> {
        let mut at = self.start;
        let (mut quote_start, mut pattern_end) = (None, 0);
        while let Some(c) = self.char_at(at) {
            let is_end = quote_start.is_none() && (is_space(c) || c == '(' || c == ')');
            if is_end && at >= pattern_end {
                pattern_end = self.find_pattern_end(at).unwrap_or(pattern_end);
            }
            match c {
                '"' if quote_start.is_none() => quote_start = Some(at),
                '"' if self.char_at(at + 1) == Some('"') => {
                    self.push('"');
                    at += 1;
                }
                '"' if self.is_range_continued(at + 1) => quote_start = None,
                '"' => return Ok((self.finish(at + 1, true)?, at + 1)),
                '\\' => at += self.push_escape(at),
                _ if quote_start.is_some() || at < pattern_end => {
                    self.push(if c.is_control() { ' ' } else { c });
                }
                _ if is_space(c) => break,
                '{' if self.is_thread_value() => {
                    let end = self.find_closing_brace(at)?;
                    self.plain.push_str(self.line.get(at..end).unwrap_or_default());
                    return Ok((self.finish(end, true)?, end));
                }
                '(' => match self.find_group_end(at) {
                    Some(end) => {
                        let group = self.line.get(at..end).unwrap_or_default();
                        self.plain.push_str(group);
                        self.pattern.push_str(group);
                        at = end;
                        continue;
                    }
                    None => break,
                },
                ')' => break,
                c => self.push(c),
            }
            at += c.len_utf8();
        }
        if let Some(quote) = quote_start {
            return Err(SyntaxError::new(self.line, quote, "unclosed quote")
                .with_hint("add a \" at the end of the phrase"));
        }
        Ok((self.finish(at, false)?, at))
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.line.get(at..)?.chars().next()
    }

    fn push(&mut self, c: char) {
        self.plain.push(c);
        self.pattern.push(c);
        if c == ':' && self.value_start == 0 {
            self.value_start = self.plain.len();
        }
    }

    /// Reads the backslash at this position. Returns the number of bytes behind it that belong to
    /// the escape.
    fn push_escape(&mut self, at: usize) -> usize {
        self.has_escape = true;
        let Some(next) = self.char_at(at + 1).filter(|c| !c.is_control()) else {
            self.push('\\');
            return 0;
        };
        self.plain.push(next);
        if next != '"' {
            self.pattern.push('\\');
        }
        self.pattern.push(next);
        next.len_utf8()
    }

    /// Returns the value that is a regular expression if it begins with a slash; `None`: it is the
    /// name of a folder or a file, or a field has no regular expressions.
    fn pattern_value(&self) -> Option<&str> {
        let value_start = if self.field().is_some() { self.value_start } else { 0 };
        // Both texts are equal up to the colon.
        let value = self.pattern.get(value_start..)?;
        let value = match self.field() {
            Some(MailField::Header) => value.split_once(':')?.1,
            None
            | Some(
                MailField::Text(_)
                | MailField::Label
                | MailField::FlagOrKeyword
                | MailField::FlagOrLabel
                | MailField::MessageId
                | MailField::Reference
                | MailField::Related,
            ) => value,
            Some(_) => return None,
        };
        value.starts_with('/').then_some(value)
    }

    /// Returns whether the text so far is a regular expression without its closing slash. A path
    /// such as `/usr/bin` has another slash, and is text.
    fn is_pattern_open(&self) -> bool {
        self.pattern_value().is_some_and(|value| find_slash(value.get(1..).unwrap_or("")).is_none())
    }

    /// Returns the position behind the regular expression that goes on at this position, where a
    /// word would end; `None`: the text so far is no regular expression, or it is not closed.
    fn find_pattern_end(&self, at: usize) -> Option<usize> {
        let is_slash_alone = self.pattern_value() == Some("/");
        if !self.is_pattern_open() || is_slash_alone && self.char_at(at) != Some('(') {
            return None;
        }
        let rest = self.line.get(at..)?;
        let rest = rest.get(..rest.floor_char_boundary(MAX_GROUP_CHARS)).unwrap_or(rest);
        let slash = find_slash(rest)?;
        let before = rest.get(..slash)?;
        // Another word may begin with the slash.
        let is_closing = !before.ends_with(|c| is_space(c) || c == ':') && !before.contains('"');
        let next = self.char_at(at + slash + 1);
        (is_closing && next.is_none_or(|c| is_space(c) || c == ')')).then_some(at + slash + 1)
    }

    fn is_thread_value(&self) -> bool {
        self.value_start == self.plain.len() && self.field() == Some(MailField::Thread)
    }

    /// Returns whether a range goes on at this position, behind a quoted end.
    fn is_range_continued(&self, at: usize) -> bool {
        let is_range =
            matches!(self.field(), Some(MailField::Date | MailField::Changed | MailField::Size));
        is_range && self.line.get(at..).is_some_and(|rest| rest.starts_with(".."))
    }

    /// Returns the text in front of the colon if it looks like the name of a field, but is none:
    /// `form:anna`, but neither `http://x`, `re:` and `10:30` nor a phrase.
    fn unknown_field(&self) -> Option<String> {
        let name = self.plain.get(..self.value_start.checked_sub(1)?)?;
        let value = self.plain.get(self.value_start..)?;
        let is_phrase = self.char_at(self.start) == Some('"');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let is_value = !value.is_empty() && !value.starts_with("//") && !value.starts_with(':');
        (is_name && is_value && !is_phrase && find_field(self.fields, name).is_none())
            .then(|| name.to_string())
    }

    /// Returns the field that the text so far begins with.
    fn field(&self) -> Option<MailField> {
        let name = self.plain.get(..self.value_start.checked_sub(1)?)?;
        find_field(self.fields, name)
    }

    /// Returns the position behind the brace that closes the one at `start`. Braces in quotes do
    /// not count.
    fn find_closing_brace(&self, start: usize) -> Result<usize, SyntaxError> {
        let (mut depth, mut is_quoted) = (0, false);
        for (offset, c) in self.line.get(start..).unwrap_or_default().char_indices() {
            match c {
                '"' => is_quoted = !is_quoted,
                '{' if !is_quoted => depth += 1,
                '}' if !is_quoted => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(start + offset + 1);
            }
        }
        Err(SyntaxError::new(self.line, start, "unclosed \"{\"")
            .with_hint("add a \"}\" at the end of the query of threads"))
    }

    /// Returns the end of a group of a regular expression, at whose parenthesis the position is; or
    /// `None` if the parenthesis does not belong to the word.
    fn find_group_end(&self, start: usize) -> Option<usize> {
        let value_start = if self.field().is_some() { self.value_start } else { 0 };
        if !self.plain.get(value_start..)?.starts_with('/') {
            return None;
        }
        let mut depth = 0_usize;
        let mut is_escaped = false;
        for (offset, c) in self.line.get(start..)?.char_indices().take(MAX_GROUP_CHARS) {
            match c {
                _ if is_escaped => {}
                '(' => depth += 1,
                ')' => depth = depth.checked_sub(1)?,
                '"' => return None,
                c if is_space(c) => return None,
                _ => {}
            }
            is_escaped = c == '\\' && !is_escaped;
            if depth == 0 {
                return Some(start + offset + 1);
            }
        }
        None
    }

    fn finish(self, end: usize, is_quoted: bool) -> Result<MailToken, SyntaxError> {
        if !is_quoted && !self.has_escape {
            if let Some(operator) = parse_operator(&self.plain) {
                return Ok(operator);
            }
            self.check_distance()?;
        }
        if !is_quoted {
            self.check_pattern_end()?;
        }
        let (field, unknown_field) = (self.field(), self.unknown_field());
        let start = if field.is_some() { self.value_start } else { 0 };
        let pattern = self.pattern.get(start..).filter(|text| pattern_text(text).is_some());
        let value = pattern.or_else(|| self.plain.get(start..)).unwrap_or_default().to_string();
        Ok(MailToken::Word(MailWord { field, value, unknown_field, is_quoted, end }))
    }

    /// Refuses a regular expression without an end, which would be a word.
    fn check_pattern_end(&self) -> Result<(), SyntaxError> {
        let text = self.pattern_value().unwrap_or_default().trim_start_matches('/');
        if !self.is_pattern_open() || !text.contains(char::is_alphabetic) {
            return Ok(());
        }
        let field = self.plain.get(..self.value_start).unwrap_or_default();
        Err(SyntaxError::new(self.line, self.start, "the regular expression has no closing slash")
            .with_hint(format!(
                "as a regular expression: {field}\"/{text}/\"; as text: {field}\"/{text}\""
            )))
    }

    /// Refuses an operator whose distance is no number, which would be a word that no text has.
    fn check_distance(&self) -> Result<(), SyntaxError> {
        match self.plain.split_once('/') {
            Some((operator @ ("NEAR" | "ADJ"), distance)) => {
                let message = format!("unknown distance {distance:?} of {operator}");
                Err(SyntaxError::new(self.line, self.start, message).with_hint(format!(
                    "a number of words, as in a {operator}/3 b; to look for the text itself, \
                     quote it"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the position of the first slash without a backslash in front of it.
fn find_slash(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_found = byte == b'/' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_found
    })
}

/// Returns the text between the slashes of `/text/`.
pub(super) fn pattern_text(value: &str) -> Option<&str> {
    value.strip_prefix('/')?.strip_suffix('/').filter(|text| !text.is_empty())
}

/// Returns the operator that a word stands for. NEAR and ADJ are in upper case, as `near` is a
/// frequent word.
fn parse_operator(text: &str) -> Option<MailToken> {
    let operators = [
        ("and", MailToken::And),
        ("or", MailToken::Or),
        ("xor", MailToken::Xor),
        ("not", MailToken::Not),
    ];
    for (name, token) in operators {
        if name.eq_ignore_ascii_case(text) {
            return Some(token);
        }
    }
    let (name, distance) = match text.split_once('/') {
        Some((name, number)) => (name, number.parse().ok()?),
        None => (text, DEFAULT_DISTANCE),
    };
    let is_ordered = match name {
        "NEAR" => false,
        "ADJ" => true,
        _ => return None,
    };
    Some(MailToken::Near { distance, is_ordered, text: text.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field that can be searched is described, by all of its names.
    #[test]
    fn all_fields_are_described() {
        let is_refused = |field: &MailField| {
            matches!(field, MailField::Revision | MailField::NamedQuery | MailField::Unsupported)
                || *field == MailField::Text(MailTextFields::LANGUAGE)
        };
        let parsed = MAIL_SEARCH_FIELDS.iter().filter(|(_, field)| !is_refused(field));
        let sorted = |names: &[&'static str]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        let mut parsed: Vec<_> = parsed.map(|(names, _)| sorted(names)).collect();
        let mut described: Vec<_> =
            MAIL_QUERY_FIELDS.iter().map(|(names, _)| sorted(names)).collect();
        parsed.sort();
        described.sort();
        assert_eq!(parsed, described);
    }
}
