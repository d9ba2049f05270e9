//! A commit of git: who made it and when, its message, its parents, and the paths that it changed.
//!
//! Parsing never fails: what is missing in a commit object is empty. The hash and the paths are not
//! in the object; they come from git.
//!
//! ```
//! use larder_format::commit::Commit;
//!
//! let bytes = b"tree 1\nauthor Anna Berg <anna@example.org> 1577880000 +0100\n\
//!     committer Otto <otto@example.org> 1577880060 +0000\n\nFix the walrus\n\nIt sank.\n";
//! let commit = Commit::parse(bytes);
//! assert_eq!(commit.author.person.display_name(), "Anna Berg");
//! assert_eq!(commit.author.date.to_rfc3339(), "2020-01-01T12:00:00Z");
//! assert_eq!((commit.subject().as_str(), commit.body()), ("Fix the walrus", "It sank.\n"));
//! ```

use crate::decoding::decode_charset;
use crate::field::FieldSource::Properties;
use crate::field::FieldType::{Date, Email, Text, Uid};
use crate::field::{Field, field_row};
use crate::message::{MailAddress, MessageDate};

/// All fields of commits.
#[rustfmt::skip] // A table is read by its columns.
pub const COMMIT_FIELDS: &[Field] = &[
    field_row(420, "hash", Uid, Properties(&["commit"]), "the hash of the commit"),
    field_row(421, "date", Date, Properties(&["author"]), "the time at which the change was made"),
    field_row(422, "subject", Text, Properties(&["subject"]), "the first paragraph of the commit message").searched_by_default(),
    field_row(423, "author", Email, Properties(&["author"]), "the author of the change: name and address").searched_by_default(),
    field_row(424, "committer", Email, Properties(&["committer"]), "the committer: name and address").searched_by_default(),
    field_row(425, "commit_date", Date, Properties(&["committer"]), "the time at which the commit was made"),
    field_row(426, "body", Text, Properties(&["message"]), "the commit message without its first paragraph").searched_by_default(),
    field_row(427, "path", Text, Properties(&["path"]), "the paths that the commit changed").multi_valued(),
    field_row(428, "parent", Uid, Properties(&["parent"]), "the hashes of the parents").multi_valued(),
];

/// A parsed commit. It owns all texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commit {
    /// The hash, in hexadecimal digits; empty if it is not known.
    pub hash: String,
    /// The hashes of the parents.
    pub parents: Vec<String>,
    /// The author of the change, with the time of it.
    pub author: CommitSignature,
    /// The committer, with the time of the commit.
    pub committer: CommitSignature,
    /// The message.
    pub message: String,
    /// The paths that differ from the first parent; none of a merge, or if they are not known.
    pub paths: Vec<String>,
}

/// A person and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSignature {
    /// The person.
    pub person: MailAddress,
    /// The time.
    pub date: MessageDate,
}

impl Default for CommitSignature {
    fn default() -> CommitSignature {
        let person = MailAddress { name: None, address: String::new() };
        CommitSignature { person, date: MessageDate { seconds: 0, offset_minutes: 0 } }
    }
}

impl CommitSignature {
    /// Makes a signature of a name, an address and a time, each of which may be empty.
    #[must_use]
    pub fn new(name: &str, address: &str, seconds: i64, offset_minutes: i32) -> CommitSignature {
        let name = (!name.is_empty()).then(|| name.to_string());
        let person = MailAddress { name, address: address.to_string() };
        CommitSignature { person, date: MessageDate { seconds, offset_minutes } }
    }

    /// Parses `Name <address> seconds zone`.
    fn parse(text: &str) -> CommitSignature {
        let (name, rest) = text.split_once('<').unwrap_or((text, ""));
        let (address, time) = rest.rsplit_once('>').unwrap_or((rest, ""));
        let mut time = time.split_whitespace();
        let seconds = time.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        let offset = time.next().map_or(0, parse_offset);
        CommitSignature::new(name.trim(), address.trim(), seconds, offset)
    }
}

/// Returns the minutes of an offset such as `+0130`.
fn parse_offset(text: &str) -> i32 {
    let number: i32 = text.parse().unwrap_or_default();
    // A few commits have offsets that no clock has.
    let number = number.clamp(-2359, 2359);
    number / 100 * 60 + number % 100
}

impl Commit {
    /// Parses a commit object, in the character set that it declares.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Commit {
        let (header, message) = split_header(bytes);
        let charset =
            field_values(header, b"encoding").next().map(|value| String::from_utf8_lossy(value));
        let decode = |value: &[u8]| decode_charset(value, charset.as_deref()).into_owned();
        let signature = |name| {
            let value = field_values(header, name).next();
            value.map(|value| CommitSignature::parse(&decode(value))).unwrap_or_default()
        };
        Commit {
            hash: String::new(),
            parents: field_values(header, b"parent").map(decode).collect(),
            author: signature(b"author"),
            committer: signature(b"committer"),
            message: decode(message),
            paths: Vec::new(),
        }
    }

    /// Returns the first paragraph of the message on one line, as git does.
    #[must_use]
    pub fn subject(&self) -> String {
        let (subject, _) = split_message(&self.message);
        subject.lines().map(str::trim).collect::<Vec<_>>().join(" ")
    }

    /// Returns the message without its first paragraph.
    #[must_use]
    pub fn body(&self) -> &str {
        split_message(&self.message).1
    }

    /// Returns the values of a field of [`COMMIT_FIELDS`] in order, none of them empty.
    #[must_use]
    pub fn values(&self, field: &Field) -> Vec<String> {
        let mut values = match field.name {
            "hash" => vec![self.hash.clone()],
            "date" => vec![self.author.date.to_rfc3339()],
            "commit_date" => vec![self.committer.date.to_rfc3339()],
            "subject" => vec![self.subject()],
            "author" => vec![self.author.person.to_string()],
            "committer" => vec![self.committer.person.to_string()],
            "body" => vec![self.body().to_string()],
            "path" => self.paths.clone(),
            "parent" => self.parents.clone(),
            _ => Vec::new(),
        };
        values.retain(|value| !value.is_empty());
        values
    }
}

/// Returns the header and the message of a commit object.
fn split_header(bytes: &[u8]) -> (&[u8], &[u8]) {
    if let Some(message) = bytes.strip_prefix(b"\n") {
        return (b"", message);
    }
    match bytes.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 2..).unwrap_or_default()),
        None => (bytes, b""),
    }
}

/// Returns the values of the lines of the header with this name. Lines that continue a signature
/// begin with a space.
fn field_values<'h>(header: &'h [u8], name: &'static [u8]) -> impl Iterator<Item = &'h [u8]> {
    let lines = header.split(|byte| *byte == b'\n');
    lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(b" "))
}

/// Returns the first paragraph of a message, and the rest without the empty lines between them.
fn split_message(message: &str) -> (&str, &str) {
    let message = message.trim_start_matches('\n');
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        if line.trim().is_empty() {
            let (subject, rest) = message.split_at(at);
            return (subject.trim(), rest.trim_start_matches(['\n', '\r']));
        }
        at += line.len();
    }
    (message.trim(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_divided_as_git_does() {
        for (message, subject, body) in [
            ("", "", ""),
            ("one\n", "one", ""),
            ("\n\none\ntwo\n\nbody\n\nmore\n", "one two", "body\n\nmore\n"),
            ("one\n \n\nbody", "one", " \n\nbody"),
        ] {
            let commit = Commit { message: message.into(), ..Commit::default() };
            assert_eq!((commit.subject().as_str(), commit.body()), (subject, body), "{message:?}");
        }
    }

    #[test]
    fn objects_are_parsed_whatever_is_wrong_with_them() {
        let commit = Commit::parse(
            b"tree 1\nparent ab\nparent cd\nauthor M\xfcller <m@x> 12 -0130\ncommitter broken\n\
              encoding ISO-8859-1\ngpgsig -----BEGIN\n author Eve <e@x> 1 +0000\n\nGr\xfc\xdfe\n",
        );
        assert_eq!(commit.parents, ["ab", "cd"]);
        assert_eq!(commit.author, CommitSignature::new("M\u{fc}ller", "m@x", 12, -90));
        assert_eq!(commit.committer, CommitSignature::new("broken", "", 0, 0));
        assert_eq!(commit.subject(), "Gr\u{fc}\u{df}e");
        for damaged in
            [&b""[..], b"\n", b"\n\n", b"tree", b"author <<>> 9999999999999999999 +999999999\n\n"]
        {
            let commit = Commit::parse(damaged);
            assert_eq!(commit.author.date.seconds, 0);
        }
    }
}
