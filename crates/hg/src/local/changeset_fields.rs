//! The fields of a changeset's text that reading a repository needs.
//!
//! The text has a line with the node of the manifest, one with the user, one with the date and the
//! extra fields, a line for each changed file, and after an empty line the description
//! (mercurial/changelog.py). Lines that are missing count as empty.

use crate::object_id::Node;

/// Returns the manifest; null if there is none.
pub(crate) fn manifest_of(text: &[u8]) -> Option<Node> {
    lines(text).next().and_then(Node::from_hex)
}

/// Returns the paths of the files in the list of changed files.
pub(crate) fn files_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines(text).skip(3).take_while(|line| !line.is_empty())
}

/// Returns the branch, and whether the changeset closes it.
pub(crate) fn branch_of(text: &[u8]) -> (Vec<u8>, bool) {
    let mut branch = b"default".to_vec();
    let mut is_closing = false;
    let dates = lines(text).nth(2).unwrap_or_default();
    // Time, time zone, and the fields, which may contain spaces.
    let fields = dates.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
    for field in fields.split(|byte| *byte == 0) {
        if let Some(name) = field.strip_prefix(b"branch:") {
            branch = unescape(name);
        }
        is_closing |= field.starts_with(b"close:");
    }
    (branch, is_closing)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Decodes a field, in which a backslash begins the names of four characters.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            decoded.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => decoded.push(b'\n'),
            Some(b'r') => decoded.push(b'\r'),
            Some(b'0') => decoded.push(0),
            Some(b'\\') | None => decoded.push(b'\\'),
            Some(other) => decoded.extend([b'\\', other]),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let digits = "00112233445566778899aabbccddeeff00112233";
        let text = format!("{digits}\nuser\n1 0 branch:a\\\\b c\0close:1\na\nb c\n\ntext\nmore\n");
        assert_eq!(manifest_of(text.as_bytes()).expect("a node").to_string(), digits);
        assert_eq!(branch_of(text.as_bytes()), (b"a\\b c".to_vec(), true));
        let files: Vec<_> = files_of(text.as_bytes()).collect();
        assert_eq!(files, [b"a".as_slice(), b"b c"]);
    }

    #[test]
    fn fields_without_a_branch_mean_the_default_branch() {
        for text in ["", "x\n", "x\nuser\n1 0\n\ntext", "x\nuser\n1 0 novalue\n\n"] {
            assert_eq!(branch_of(text.as_bytes()), (b"default".to_vec(), false));
            assert_eq!(files_of(text.as_bytes()).count(), 0);
        }
        assert_eq!(branch_of(b"x\nuser\n1 0 branch:\n\n").0, b"");
    }
}
