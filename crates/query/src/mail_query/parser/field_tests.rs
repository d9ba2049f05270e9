//! The values of the fields that are tested with words, patterns or paths: texts, Message-IDs,
//! folders, tags, headers.
//!
//! Separate from `field_values`, whose values are of a set: here each value is a test, unless it is
//! a pattern that cannot be used.

use super::MailQueryParser;
use crate::error::SyntaxError;
use crate::item_terms::is_item_state;
use crate::mail_query::tokens::{MailField, pattern_text};
use crate::mail_query::{
    FolderTest, HeaderTest, MailFlag, MailQuery, MailTextFields, TextMatch, TextTest,
};
use crate::pattern::{MAX_PATTERNS, RegexPattern};
use crate::query::Comparison;
use larder_format::label::NOTMUCH_FLAG_TAGS;
use larder_format::message::trim_message_id;
use larder_store::Kind;
use larder_store::tokenizer::is_joiner;

impl MailQueryParser<'_> {
    /// Parses the text of a field: words, or stars or slashes around them.
    pub(super) fn parse_text(&mut self, at: usize, value: &str) -> Result<TextMatch, SyntaxError> {
        if let Some(pattern) = pattern_text(value) {
            self.check_pattern(at, pattern)?;
            return Ok(TextMatch::Pattern(pattern.to_string()));
        }
        let text = value.trim_matches('*').to_string();
        Ok(match (value.starts_with('*'), value.ends_with('*')) {
            _ if text.trim().is_empty() => TextMatch::Exists,
            (false, false) => TextMatch::Words(text),
            (false, true) => TextMatch::Prefix(text),
            (true, false) => TextMatch::Suffix(text),
            (true, true) => TextMatch::Infix(text),
        })
    }

    /// Parses the text of a field whose terms are words.
    pub(super) fn parse_words(&mut self, at: usize, value: &str) -> Result<TextMatch, SyntaxError> {
        let is_separator = |c: char| c.is_whitespace() || c.is_ascii_punctuation() && !is_joiner(c);
        match self.parse_text(at, value)? {
            // A joiner ends a word: `no-*` is not the beginning of `norbert`.
            TextMatch::Prefix(text) if text.ends_with(is_joiner) => Ok(TextMatch::Words(text)),
            // No word has a separator.
            TextMatch::Suffix(text) | TextMatch::Infix(text)
                if text.contains(is_separator) && !self.context.is_among_kinds =>
            {
                let message = format!("the star in front of {text:?} stands for a part of a word");
                Err(SyntaxError::new(self.line, at, message)
                    .with_hint(format!("leave it out: {text:?} is a phrase")))
            }
            text => Ok(text),
        }
    }

    /// Refuses a regular expression that cannot be used.
    pub(super) fn check_pattern(&mut self, at: usize, text: &str) -> Result<(), SyntaxError> {
        self.pattern_count += 1;
        if self.pattern_count > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} regular expressions in one query");
            return Err(SyntaxError::new(self.line, at, message));
        }
        RegexPattern::compile(text).map(drop).map_err(|reason| {
            let message = format!("the regular expression {text:?} cannot be used: {reason}");
            SyntaxError::new(self.line, at, message)
                .with_hint("to look for the text itself, leave out a slash")
        })
    }

    /// Parses a Message-ID, of the message itself or in the header References.
    pub(super) fn parse_id(
        &mut self,
        at: usize,
        header: &str,
        value: &str,
    ) -> Result<MailQuery, SyntaxError> {
        let pattern = match self.parse_text(at, value)? {
            TextMatch::Pattern(text) => text,
            TextMatch::Prefix(text) => {
                format!("^<?{}", regex::escape(text.trim_start_matches('<')))
            }
            TextMatch::Suffix(text) => format!("{}>?$", regex::escape(text.trim_end_matches('>'))),
            TextMatch::Infix(text) => regex::escape(&text),
            TextMatch::Exists => {
                let exists = |name: &str| MailQuery::Header {
                    name: name.to_string(),
                    test: HeaderTest::Exists,
                };
                return Ok(match header {
                    "references" => MailQuery::Or(vec![exists(header), exists("in-reply-to")]),
                    _ => exists(header),
                });
            }
            TextMatch::Words(_) | TextMatch::Near { .. } => {
                let id = trim_message_id(value).into_owned();
                return Ok(match header {
                    "references" => MailQuery::Reference(id),
                    _ => MailQuery::MessageId(id),
                });
            }
        };
        let test = HeaderTest::Pattern(pattern);
        Ok(MailQuery::Header { name: header.to_string(), test })
    }

    /// Parses `/x`, `x`, `x/**`, `x*` or `/regex/`. A name without a star is compared by `named`.
    pub(super) fn parse_folder(
        &mut self,
        at: usize,
        value: &str,
        named: fn(String) -> FolderTest,
    ) -> Result<MailQuery, SyntaxError> {
        if let Some(pattern) = pattern_text(value) {
            self.check_pattern(at, pattern)?;
            return Ok(MailQuery::Folder(FolderTest::Pattern(pattern.to_string())));
        }
        if let Some(parent) = value.strip_suffix("**") {
            return Ok(match folder_path(parent) {
                path if path == "/" => MailQuery::All,
                path => MailQuery::Folder(FolderTest::Within(path)),
            });
        }
        Ok(match value.strip_suffix('*') {
            Some("") => MailQuery::All,
            Some(start) => {
                let slash = if start.starts_with('/') { "" } else { "/" };
                MailQuery::Folder(FolderTest::Prefix(format!("{slash}{start}")))
            }
            None => MailQuery::Folder(named(folder_path(value))),
        })
    }

    /// Parses the path of a file, `/x*` for files whose paths begin with it, `/x/**` for all files
    /// below a directory, or the path of a folder without its first slash.
    pub(super) fn parse_path(&mut self, at: usize, value: &str) -> Result<MailQuery, SyntaxError> {
        if let Some(directory) = value.strip_suffix("/**").filter(|path| path.starts_with('/')) {
            return Ok(MailQuery::Folder(FolderTest::Directory(directory.to_string())));
        }
        if value.starts_with('/') && pattern_text(value).is_none() && !value.ends_with("**") {
            return Ok(match value.strip_suffix('*') {
                Some(start) => MailQuery::Folder(FolderTest::FilePrefix(start.to_string())),
                None => MailQuery::Path(value.to_string()),
            });
        }
        let is_new = |is_new: bool| match is_new {
            true => MailQuery::Flag(MailFlag::New),
            false => MailQuery::Not(Box::new(MailQuery::Flag(MailFlag::New))),
        };
        for (end, flag) in [("new", true), ("cur", false)] {
            if let Some(folder) = value.strip_suffix(end)
                && (folder.is_empty() || folder.ends_with('/'))
            {
                let folder = MailQuery::Folder(FolderTest::Named(folder_path(folder)));
                return Ok(MailQuery::And(vec![folder, is_new(flag)]));
            }
        }
        // The star stands for files, as in `/x/*`.
        if let Some(folder) = value.strip_suffix("/*") {
            return Ok(MailQuery::Folder(FolderTest::Within(folder_path(folder))));
        }
        self.parse_folder(at, value, FolderTest::Named)
    }

    /// Returns a query whose label must exist, unless it is that of a saved search, which may name
    /// what messages get later.
    fn require_name(&self, query: MailQuery) -> MailQuery {
        match self.expanded.is_empty() {
            true => MailQuery::Existing(Box::new(query)),
            false => query,
        }
    }

    /// Parses a tag: a label, for `tag:` also a keyword, or a flag. Flags that notmuch has no tag
    /// for can be names of labels: `tag:` takes them as such, and `is:` as both.
    pub(super) fn parse_tag(
        &mut self,
        at: usize,
        field: MailField,
        value: &str,
    ) -> Result<MailQuery, SyntaxError> {
        let flag = MailFlag::from_name(value);
        let is_flag_tag = NOTMUCH_FLAG_TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(value));
        match (flag, field) {
            (Some(flag), _) if is_flag_tag => return Ok(MailQuery::Flag(flag)),
            (Some(flag), MailField::FlagOrLabel) => {
                let label = MailQuery::Label(TextMatch::Words(value.to_string()));
                return Ok(MailQuery::Or(vec![MailQuery::Flag(flag), label]));
            }
            _ => {}
        }
        if field == MailField::FlagOrLabel && value.eq_ignore_ascii_case(Kind::Message.name()) {
            return Ok(MailQuery::All);
        }
        let text = self.parse_text(at, value)?;
        let label = MailQuery::Label(text.clone());
        if field == MailField::FlagOrLabel {
            let is_state = self.context.is_among_kinds && is_item_state(value);
            return Ok(match text {
                // Negated it is about items of the kinds with this state.
                TextMatch::Words(_) if is_state && Kind::from_name(value).is_none() => {
                    MailQuery::Or(vec![label, MailQuery::Nothing])
                }
                TextMatch::Words(_) if !is_state => self.require_name(label),
                _ => label,
            });
        }
        let keyword = MailQuery::Text(TextTest { fields: MailTextFields::KEYWORD, text });
        Ok(MailQuery::Or(vec![keyword, label]))
    }

    /// Parses `name`, `name:*`, `name:text`, `name:/regex/`, or `name:>5` and other comparisons.
    pub(super) fn parse_header(
        &mut self,
        at: usize,
        value: &str,
    ) -> Result<MailQuery, SyntaxError> {
        let (name, value) = value.split_once(':').unwrap_or((value, ""));
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name {
            return Err(SyntaxError::new(self.line, at, format!("no header is named {name:?}"))
                .with_hint("tests of headers are header:x-mailer:text or header:x-spam-score:>5"));
        }
        if matches!(value, ">" | "<" | "=" | ">=" | "<=") {
            let message = format!("a number is missing behind {value:?}");
            return Err(SyntaxError::new(self.line, at, message).with_hint(
                "without spaces, as in header:x-spam-score:>5; a text is header:x:/>/",
            ));
        }
        let query = |test| MailQuery::Header { name: name.to_ascii_lowercase(), test };
        if let Some((comparisons, number)) = parse_comparison(value) {
            let tests = comparisons.iter().map(|test| query(HeaderTest::Compare(*test, number)));
            let mut tests: Vec<MailQuery> = tests.collect();
            return Ok(if tests.len() == 1 { tests.swap_remove(0) } else { MailQuery::Or(tests) });
        }
        let has_star = value.starts_with('*') || value.ends_with('*');
        let test = match pattern_text(value) {
            Some(pattern) => {
                self.check_pattern(at, pattern)?;
                HeaderTest::Pattern(pattern.to_string())
            }
            None if value.is_empty() || value == "*" => HeaderTest::Exists,
            None if has_star && is_id_header(name) => {
                return self.parse_id(at, &name.to_ascii_lowercase(), value);
            }
            None => HeaderTest::Contains(value.to_string()),
        };
        Ok(query(test))
    }
}

/// Returns whether a header has Message-IDs.
fn is_id_header(name: &str) -> bool {
    ["message-id", "references", "in-reply-to"].iter().any(|id| id.eq_ignore_ascii_case(name))
}

/// Parses a comparison with a number.
fn parse_comparison(value: &str) -> Option<(&'static [Comparison], f64)> {
    let operators: [(&str, &[Comparison]); 5] = [
        (">=", &[Comparison::Greater, Comparison::Equal]),
        ("<=", &[Comparison::Less, Comparison::Equal]),
        (">", &[Comparison::Greater]),
        ("<", &[Comparison::Less]),
        ("=", &[Comparison::Equal]),
    ];
    for (operator, comparisons) in operators {
        if let Some(number) = value.strip_prefix(operator) {
            let number: Option<f64> = number.parse().ok();
            return number.filter(|number| number.is_finite()).map(|number| (comparisons, number));
        }
    }
    None
}

/// Returns the path of a folder with a slash at the start and none at the end.
fn folder_path(text: &str) -> String {
    format!("/{}", text.trim_matches('/'))
}
