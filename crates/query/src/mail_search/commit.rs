//! The tests that only commits have: changed paths and hashes.
//!
//! A path is a term, folded. Separate from `compilation`, whose tests messages have, too.

use super::block_test::BlockTest;
use super::expansion::{WordExpansion, word_term};
use super::row_origin::RowOrigin;
use super::row_values::RowValues;
use super::{MailSearch, compile_pattern};
use crate::error::{Error, SyntaxError};
use crate::mail_query::PathTest;
use crate::pattern::RegexPattern;
use larder_format::fold::fold;
use larder_store::{MailColumn, MessageTermField};

impl MailSearch<'_> {
    /// Compiles the test of the paths that a commit changed.
    pub(super) fn compile_changed_path(&self, test: &PathTest) -> Result<BlockTest, Error> {
        let (text, pattern) = match test {
            PathTest::Within(path) => match fold(path).trim_matches('/') {
                folder if folder.contains('/') || path.starts_with('/') || path.ends_with('/') => {
                    return self.compile_folder_path(folder);
                }
                name => (path, format!("(^|/){}(/|$)", regex::escape(name))),
            },
            PathTest::Glob(glob) => (glob, glob_pattern(&fold(glob))),
            PathTest::Pattern(text) => {
                let words = WordExpansion::from_pattern(text, compile_pattern(text)?);
                return self.compile_expansion(MessageTermField::Path, None, &[], &words);
            }
        };
        let pattern = RegexPattern::compile(&pattern).map_err(|reason| {
            let message = format!("the path {text:?} cannot be used: {reason}");
            SyntaxError { message, at: 1, hint: None }
        })?;
        let words = WordExpansion::from_pattern(text, pattern);
        self.compile_expansion(MessageTermField::Path, None, &[], &words)
    }

    /// Compiles the test of a path from the root of the repository on: a file, or a folder.
    fn compile_folder_path(&self, path: &str) -> Result<BlockTest, Error> {
        let mut rows = Vec::new();
        self.words.rows_with_term(&word_term(MessageTermField::Path, path), &mut rows)?;
        let below = word_term(MessageTermField::Path, &format!("{path}/"));
        self.words.rows_with_prefix(&below, &mut rows)?;
        Ok(BlockTest::Rows(rows, RowOrigin::PathTerms))
    }

    /// Returns the time at which a commit was made, in seconds since 1970; `None`: it is not known.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn read_commit_date(&self, row: u32) -> Result<Option<i64>, Error> {
        let value = RowValues::new(self.mail, MailColumn::Changed).get(row)?;
        Ok(value.checked_sub(1).map(i64::from))
    }

    /// Compiles the test of the beginning of a hash.
    pub(super) fn compile_hash(
        &self,
        field: MessageTermField,
        start: &str,
    ) -> Result<BlockTest, Error> {
        let mut rows = Vec::new();
        self.words.rows_with_prefix(&word_term(field, start), &mut rows)?;
        Ok(BlockTest::Rows(rows, RowOrigin::TermRange))
    }
}

/// Returns the regular expression of a glob. With a slash it is for the whole path, and a star
/// stands for slashes, too, as in the path arguments of git; else for the name of a file.
fn glob_pattern(glob: &str) -> String {
    let is_name = !glob.contains('/');
    let mut pattern = String::from(if is_name { "(^|/)" } else { "^" });
    let mut rest = glob.trim_start_matches('/');
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' => {
                rest = rest.trim_start_matches('*');
                pattern.push_str(if is_name { "[^/]*" } else { ".*" });
            }
            '?' => pattern.push_str("[^/]"),
            '[' => match rest.split_once(']') {
                Some((set, after)) if !set.trim_start_matches(['!', '^']).is_empty() => {
                    rest = after;
                    pattern.push_str(&set_pattern(set));
                }
                _ => pattern.push_str("\\["),
            },
            c => pattern.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push('$');
    pattern
}

/// Returns the character class of a set such as `a-z` or `!0-9`.
fn set_pattern(set: &str) -> String {
    let (start, members) = match set.strip_prefix(['!', '^']) {
        Some(members) => ("[^", members),
        None => ("[", set),
    };
    let escaped = members.chars().flat_map(|c| {
        let is_plain = c.is_alphanumeric() || c == '-';
        (!is_plain).then_some('\\').into_iter().chain([c])
    });
    let class: String = escaped.collect();
    format!("{start}{class}]")
}

#[cfg(test)]
mod tests {
    use super::glob_pattern;

    #[test]
    fn globs_are_those_of_git() {
        for (glob, path, is_match) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/a.rs", true),
            ("*.rs", "src/a.rs/b", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", true),
            ("src/*.rs", "x/src/a.rs", false),
            ("src/**/a.rs", "src/b/c/a.rs", true),
            ("/*.rs", "src/a.rs", true),
            ("a?c", "x/abc", true),
            ("a?c", "a/c", false),
            ("[ab].c", "b.c", true),
            ("[!ab].c", "b.c", false),
            ("[a.c", "[a.c", true),
            ("a.c*", "abc", false),
        ] {
            let pattern = regex::Regex::new(&glob_pattern(glob)).expect("a pattern");
            assert_eq!(pattern.is_match(path), is_match, "{glob} {path}");
        }
    }
}
