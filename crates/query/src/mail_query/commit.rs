//! The fields of commits in a query, and the tests that only they have.
//!
//! | names | matches |
//! |---|---|
//! | `author` `from`, `committer`, `subject`, `body` | words of the text |
//! | `date`, `committed` `changed` | the time of the author, of the committer |
//! | `path` | `src/main.rs`, `src`, `src/*.rs`, `main.rs` at any depth, `/regex/` |
//! | `file` | words of the paths |
//! | `id` `hash`, `parent` | the beginning of a hash |
//! | `in` `repository` | the name of the collection |
//! | no name | `author`, `committer`, `subject` and `body` |
//!
//! Separate from `tokens`, whose table has the fields of mu and notmuch.

use super::tokens::{MailField, pattern_text};
use super::{MailQuery, MailTextFields, PathTest};

/// The names of the fields.
pub(super) const COMMIT_SEARCH_FIELDS: &[(&[&str], MailField)] = &[
    (&["author", "from", "f"], MailField::Text(MailTextFields::FROM)),
    (&["committer"], MailField::Text(MailTextFields::COMMITTER)),
    (&["subject", "s"], MailField::Text(MailTextFields::SUBJECT)),
    (&["body", "b"], MailField::Text(MailTextFields::BODY)),
    (&["file"], MailField::Text(MailTextFields::FILE)),
    (&["date", "d", "author_date"], MailField::Date),
    (&["committed", "changed", "commit_date"], MailField::Changed),
    (&["path", "p"], MailField::ChangedPath),
    (&["id", "hash", "commit"], MailField::Hash),
    (&["parent"], MailField::Parent),
    (&["in", "repository", "repo"], MailField::Collection),
];

/// Returns the test of a path; a regular expression was checked.
pub(super) fn parse_path_test(value: &str) -> MailQuery {
    if let Some(pattern) = pattern_text(value) {
        return MailQuery::ChangedPath(PathTest::Pattern(pattern.to_string()));
    }
    if value.chars().all(|c| matches!(c, '*' | '/')) {
        return MailQuery::ChangedPath(PathTest::Glob("*".into()));
    }
    let within = MailQuery::ChangedPath(PathTest::Within(value.to_string()));
    if !value.contains(['*', '?', '[']) {
        return within;
    }
    let glob = MailQuery::ChangedPath(PathTest::Glob(value.to_string()));
    // A file may be named `[id].tsx`. As in git, such a path is also one that is meant literally.
    if value.contains('[') { MailQuery::Or(vec![within, glob]) } else { glob }
}

/// Returns the beginning of a hash as terms have it; `None`: it is none.
pub(super) fn parse_hash_start(value: &str) -> Option<String> {
    let start = value.trim_end_matches('*');
    let is_hex = start.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && (1..=64).contains(&start.len())).then(|| start.to_ascii_lowercase())
}
