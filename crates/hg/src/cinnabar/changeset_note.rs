//! The text of a changeset, from its commit and git-cinnabar's note of it.
//!
//! A note has a line for each field that the commit does not tell: `changeset` and `manifest`
//! nodes; `author`, if it is not that of the commit; `extra`; `files`, with NUL between them; and
//! `patch`, which replaces ranges of bytes of the text that the others give.

use crate::object_id::Node;
use crate::revision::hash_revision;
use std::collections::BTreeMap;

/// The fields of a commit that its changeset has, too.
pub(super) struct CommitFields<'c> {
    author: &'c [u8],
    committer: &'c [u8],
    message: &'c [u8],
    parents: [Node; 2],
}

impl<'c> CommitFields<'c> {
    /// Takes the fields of a commit; `None` if it has more than two parents, or no author.
    pub(super) fn new(
        lines: &[&'c [u8]],
        message: &'c [u8],
        parents: &[Node],
    ) -> Option<CommitFields<'c>> {
        let field = |word: &[u8]| lines.iter().find_map(|line| line.strip_prefix(word));
        let parents = match *parents {
            [] => [Node::NULL; 2],
            [p1] => [p1, Node::NULL],
            [p1, p2] => [p1, p2],
            _ => return None,
        };
        let (author, committer) = (field(b"author ")?, field(b"committer ")?);
        Some(CommitFields { author, committer, message, parents })
    }
}

/// A changeset made from its commit.
pub(super) struct RebuiltChangeset {
    pub(super) node: Node,
    pub(super) text: Vec<u8>,
    pub(super) has_hash: bool,
}

/// Makes the text of a changeset; `None` if the note is damaged.
pub(super) fn rebuild_text(commit: &CommitFields<'_>, note: &[u8]) -> Option<RebuiltChangeset> {
    let field = |word: &[u8]| {
        let mut lines = note.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(word))
    };
    let node = Node::from_hex(field(b"changeset ")?)?;
    let manifest = match field(b"manifest ") {
        Some(manifest) => Node::from_hex(manifest)?,
        None => Node::NULL,
    };
    let (user, date) = mercurial_signature(commit.author)?;
    let mut text = manifest.to_hex().to_vec();
    text.push(b'\n');
    text.extend_from_slice(field(b"author ").unwrap_or(&user));
    text.push(b'\n');
    text.extend_from_slice(&date);
    let extra = extra_fields(commit, field(b"extra "))?;
    for (number, (key, value)) in extra.iter().enumerate() {
        text.push(if number == 0 { b' ' } else { 0 });
        text.extend_from_slice(key);
        text.push(b':');
        text.extend_from_slice(value);
    }
    let mut files: Vec<&[u8]> =
        field(b"files ").map(|files| files.split(|byte| *byte == 0).collect()).unwrap_or_default();
    files.sort_unstable();
    for file in files {
        text.push(b'\n');
        text.extend_from_slice(file);
    }
    text.extend_from_slice(b"\n\n");
    text.extend_from_slice(commit.message);
    if let Some(patch) = field(b"patch ") {
        text = apply_patch(&text, patch)?;
    }
    let [p1, p2] = commit.parents;
    let mut has_hash = hash_revision(&p1, &p2, [text.as_slice()]) == node;
    let whole = text.len();
    // The bytes after which twins are different commits; there are few of them.
    while !has_hash && matches!(text.last(), Some(b'\n' | 0)) && whole - text.len() < 100 {
        text.pop();
        has_hash = hash_revision(&p1, &p2, [text.as_slice()]) == node;
    }
    Some(RebuiltChangeset { node, text, has_hash })
}

/// Returns the user, and the date with its zone, that a signature of git is made from.
fn mercurial_signature(signature: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let end = memchr::memrchr(b'>', signature)?;
    let (identity, date) = (signature.get(..end)?, signature.get(end + 2..)?);
    let start = memchr::memchr(b'<', identity)?;
    let (name, address) = (identity.get(..start)?, identity.get(start + 1..)?);
    let name = name.strip_suffix(b" ").unwrap_or(name);
    let user = match (name.is_empty(), address.is_empty()) {
        (true, _) => [b"<", address, b">"].concat(),
        (false, true) => name.to_vec(),
        (false, false) => [name, b" <", address, b">"].concat(),
    };
    let (time, zone) = date.split_at_checked(memchr::memchr(b' ', date)?)?;
    let zone = std::str::from_utf8(zone.get(1..)?).ok()?;
    let number: i64 = zone.parse().ok()?;
    let minutes = number.abs() / 100 * 60 + number.abs() % 100;
    let seconds_west = -number.signum() * minutes * 60;
    Some((user, [time, b" ", seconds_west.to_string().as_bytes()].concat()))
}

/// Returns the extra fields, with the committer if it is not the author.
fn extra_fields(
    commit: &CommitFields<'_>,
    extra: Option<&[u8]>,
) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut fields = BTreeMap::new();
    for field in extra.into_iter().flat_map(|extra| extra.split(|byte| *byte == 0)) {
        let (key, value) = field.split_at_checked(memchr::memchr(b':', field)?)?;
        fields.insert(key.to_vec(), value.get(1..)?.to_vec());
    }
    if commit.author != commit.committer && !fields.contains_key(b"committer".as_slice()) {
        let (user, date) = mercurial_signature(commit.committer)?;
        fields.insert(b"committer".to_vec(), [&user, b" ".as_slice(), &date].concat());
    }
    Some(fields)
}

/// Replaces ranges of a text: `start,end,data` with NUL between them; the data is percent-encoded.
fn apply_patch(text: &[u8], patch: &[u8]) -> Option<Vec<u8>> {
    let mut patched = Vec::with_capacity(text.len());
    let mut position = 0;
    for range in patch.split(|byte| *byte == 0) {
        let mut parts = range.splitn(3, |byte| *byte == b',');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<usize>().ok();
        let (start, end) = (number()?, number()?);
        patched.extend_from_slice(text.get(position..start)?);
        patched.extend_from_slice(&crate::percent::decode(parts.next()?));
        position = end;
    }
    patched.extend_from_slice(text.get(position..)?);
    Some(patched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_mercurial() {
        for (signature, user, date) in [
            ("Ann <a@b> 12 +0200", "Ann <a@b>", "12 -7200"),
            (" <a@b> 12 -0430", "<a@b>", "12 16200"),
            ("Ann <> 0 +0000", "Ann", "0 0"),
            (" <> 0 +0000", "<>", "0 0"),
            ("Ann  x <a> 1 -0001", "Ann  x <a>", "1 60"),
        ] {
            let (found_user, found_date) =
                mercurial_signature(signature.as_bytes()).expect("a signature");
            assert_eq!(String::from_utf8_lossy(&found_user), user);
            assert_eq!(String::from_utf8_lossy(&found_date), date);
        }
        for damaged in ["", "Ann", "Ann <a@b>", "Ann <a@b> 1", "<>", "> <", "é> 1 +é"] {
            assert_eq!(mercurial_signature(damaged.as_bytes()), None, "{damaged}");
        }
    }

    #[test]
    fn patches_replace_ranges() {
        let patched = apply_patch(b"hello world", b"0,1,H\x005,5,%2C\x0011,11,%21");
        assert_eq!(patched.as_deref(), Some(&b"Hello, world!"[..]));
        for damaged in ["", "1", "1,2", "5,3,x\x004,4,y", "12,12,x", "a,1,x"] {
            let result = apply_patch(b"hello world", damaged.as_bytes());
            assert!(result.is_none() || damaged.starts_with('5'), "{damaged}");
        }
    }
}
