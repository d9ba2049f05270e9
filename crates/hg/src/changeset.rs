//! The text of a changeset.
//!
//! A text has the manifest, the user, the time with the zone and the extra fields, the files, one a
//! line, an empty line, and the description (Mercurial's `changelog.py`). Bytes are kept as they
//! are.

use crate::object_id::Node;

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
        let description = rest.get(files_end + 2..)?;
        let mut date = date.splitn(3, |byte| *byte == b' ');
        Some(Changeset {
            manifest,
            user,
            time: date.next()?,
            zone: date.next()?,
            extra: date.next().unwrap_or_default(),
            description,
        })
    }

    /// Returns the value of an extra field, as it is stored.
    pub(crate) fn extra(&self, name: &[u8]) -> Option<&'t [u8]> {
        self.extra.split(|byte| *byte == 0).find_map(|field| {
            let at = memchr::memchr(b':', field)?;
            let (key, value) = field.split_at_checked(at)?;
            (key == name).then(|| value.get(1..)).flatten()
        })
    }

    /// Returns the name of the branch.
    pub(crate) fn branch(&self) -> &'t [u8] {
        self.extra(b"branch").unwrap_or(b"default")
    }

    /// Returns whether the changeset closes its branch.
    pub(crate) fn closes_branch(&self) -> bool {
        self.extra(b"close").is_some()
    }
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
        assert_eq!(changeset.description, b"first\n\nsecond");
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
