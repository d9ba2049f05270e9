//! The text of a changeset.
//!
//! A text has the manifest, the user, the time with the zone and the extra fields, the files, one a
//! line, an empty line, and the description (Mercurial's `changelog.py`). Bytes are kept as they
//! are.

use crate::object_id::Node;
use std::borrow::Cow;

/// The branch of changesets that name none.
const DEFAULT_BRANCH: &[u8] = b"default";

/// The parts of a changeset's text that a commit needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changeset<'t> {
    pub(crate) manifest: Node,
    pub(crate) user: &'t [u8],
    /// Seconds since 1970, in decimal digits; negative or with a fraction in old repositories.
    pub(crate) time: &'t [u8],
    /// Seconds west of UTC.
    pub(crate) zone: &'t [u8],
    /// Fields `key:value` with NUL between them, escaped.
    extra: &'t [u8],
    /// The paths of changed files, one a line.
    files: &'t [u8],
    pub(crate) description: &'t [u8],
}

impl<'t> Changeset<'t> {
    /// Divides a text; `None` if it is not one of a changeset.
    pub(crate) fn parse(text: &'t [u8]) -> Option<Changeset<'t>> {
        let (manifest, rest) = split_line(text)?;
        let manifest = Node::from_hex(manifest)?;
        let (user, rest) = split_line(rest)?;
        // The files begin after the third newline, the description after an empty line: where no
        // file is, the third newline is the first of the two.
        let date_end = memchr::memchr(b'\n', rest)?;
        let (date, rest) = rest.split_at_checked(date_end)?;
        let files_end = memchr::memmem::find(rest, b"\n\n")?;
        let files = rest.get(1..files_end).unwrap_or_default();
        let description = rest.get(files_end + 2..)?;
        let mut date = date.splitn(3, |byte| *byte == b' ');
        Some(Changeset {
            manifest,
            user,
            time: date.next()?,
            zone: date.next()?,
            extra: date.next().unwrap_or_default(),
            files,
            description,
        })
    }

    /// Returns the extra fields, as they are stored.
    fn fields(&self) -> impl Iterator<Item = (&'t [u8], &'t [u8])> {
        self.extra.split(|byte| *byte == 0).filter_map(|field| {
            let (name, value) = field.split_at_checked(memchr::memchr(b':', field)?)?;
            Some((name, value.get(1..)?))
        })
    }

    /// Returns the value of an extra field, as it is stored.
    pub(crate) fn extra(&self, name: &[u8]) -> Option<&'t [u8]> {
        self.fields().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Returns the names of the extra fields.
    pub(crate) fn extra_names(&self) -> impl Iterator<Item = &'t [u8]> {
        self.fields().map(|(name, _)| name)
    }

    /// Returns the name of the branch as it is stored.
    pub(crate) fn branch(&self) -> &'t [u8] {
        self.extra(b"branch").unwrap_or(DEFAULT_BRANCH)
    }

    /// Returns the name of the branch as Mercurial reads it: without escapes, and the last one of
    /// several.
    fn branch_name(&self) -> Cow<'t, [u8]> {
        let names = self.fields().filter(|(name, _)| *name == b"branch");
        names.last().map_or(DEFAULT_BRANCH.into(), |(_, name)| unescape(name))
    }

    /// Returns the paths in the list of changed files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &'t [u8]> {
        self.files.split(|byte| *byte == b'\n').filter(|path| !path.is_empty())
    }

    /// Returns whether the changeset closes its branch.
    pub(crate) fn closes_branch(&self) -> bool {
        self.extra(b"close").is_some()
    }
}

/// Returns the manifest that a text names; null if it is not the text of a changeset.
pub(crate) fn manifest_of(text: &[u8]) -> Node {
    text.get(..40).and_then(Node::from_hex).unwrap_or(Node::NULL)
}

/// Returns the branch that a text names; the default branch if it is not the text of a changeset.
pub(crate) fn branch_of(text: &[u8]) -> Vec<u8> {
    let name = Changeset::parse(text).map(|changeset| changeset.branch_name().into_owned());
    name.unwrap_or_else(|| DEFAULT_BRANCH.to_vec())
}

/// Undoes the escapes of extra fields: `\\`, `\n`, `\r` and `\0`.
fn unescape(field: &[u8]) -> Cow<'_, [u8]> {
    if !field.contains(&b'\\') {
        return field.into();
    }
    let mut text = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => text.push(b'\n'),
            Some(b'r') => text.push(b'\r'),
            Some(b'0') => text.push(0),
            Some(b'\\') | None => text.push(b'\\'),
            Some(other) => text.extend([b'\\', other]),
        }
    }
    text.into()
}

/// Splits off a line without its newline.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "00112233445566778899aabbccddeeffaabbccdd";

    fn text(rest: &str) -> Vec<u8> {
        format!("{MANIFEST}\n{rest}").into_bytes()
    }

    #[test]
    fn parts_are_found() {
        let text = text("Ann <a@b.c>\n12 -7200 branch:stable\0close:1\na\nb/c\n\nfirst\n\nsecond");
        let changeset = Changeset::parse(&text).expect("a changeset");
        assert_eq!(changeset.manifest.to_string(), MANIFEST);
        assert_eq!(changeset.user, b"Ann <a@b.c>");
        assert_eq!((changeset.time, changeset.zone), (&b"12"[..], &b"-7200"[..]));
        assert_eq!(changeset.branch(), b"stable");
        assert!(changeset.closes_branch());
        assert_eq!(changeset.files().collect::<Vec<_>>(), [&b"a"[..], b"b/c"]);
        assert_eq!(changeset.description, b"first\n\nsecond");
    }

    #[test]
    fn branches_are_read_as_by_mercurial() {
        let check = |extra: &str, expected: &str| {
            let text = text(&format!("Ann\n12 0{extra}\n\ntext"));
            assert_eq!(branch_of(&text).escape_ascii().to_string(), expected, "{extra}");
            assert_eq!(Changeset::parse(&text).unwrap().files().count(), 0);
        };
        check("", "default");
        check(" novalue", "default");
        check(" branch:", "");
        check(" branch:a b:c\0close:1", "a b:c");
        check(" branch:first\0x:y\0branch:last", "last");
        check(" branch:a\\\\b\\n\\r\\0\\x\\", r"a\\b\n\r\x00\\x\\");
        assert_eq!(branch_of(b"no changeset"), DEFAULT_BRANCH);
    }

    #[test]
    fn user_and_description_may_be_empty() {
        let text = text("\n0 0\n\n");
        let changeset = Changeset::parse(&text).expect("a changeset");
        assert_eq!((changeset.user, changeset.description), (&b""[..], &b""[..]));
        assert_eq!(changeset.branch(), b"default");
    }

    #[test]
    fn other_texts_are_none() {
        for damaged in ["", "x", "Ann\n", "Ann\n12\n\n", "Ann\n12 0\nfile"] {
            assert_eq!(Changeset::parse(&text(damaged)), None, "{damaged:?}");
        }
        assert_eq!(Changeset::parse(b"0011\nAnn\n12 0\n\n"), None);
    }
}
