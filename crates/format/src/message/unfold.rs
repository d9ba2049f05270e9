//! Parameters of the fields of parts with a line break beside their `=`.
//!
//! `boundary=` with its value on the next line is allowed (RFC 5322, 3.2.2; RFC 2045, 5.1), and
//! some programs write names of files so. The parser takes such a parameter for an empty one, and
//! the message loses its parts. Separate from `repair`, whose damage no RFC allows.

use memchr::{memchr, memchr_iter, memmem, memrchr};
use std::borrow::Cow;

/// The end of the word that the fields of parts begin with. The first letter may be of any case.
const FIELD_START: &[u8] = b"ontent-";
/// The most lines between a field and the beginning of its header.
pub(super) const MAX_HEADER_LINES: usize = 1000;

/// Returns the message with spaces in place of line ends beside a `=` in the fields of parts. Each
/// byte keeps its place.
pub(super) fn unfold_parameters(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let folds: Vec<usize> = memmem::find_iter(&bytes, FIELD_START)
        .filter_map(|at| at.checked_sub(1))
        .filter(|start| is_line_start(&bytes, *start))
        .flat_map(|start| parameter_folds(&bytes, start))
        .collect();
    if folds.is_empty() {
        return bytes;
    }
    let mut unfolded = bytes.into_owned();
    for fold in folds {
        let start = if unfolded[..fold].ends_with(b"\r") { fold - 1 } else { fold };
        unfolded[start..=fold].fill(b' ');
    }
    Cow::Owned(unfolded)
}

fn is_line_start(bytes: &[u8], at: usize) -> bool {
    at == 0 || bytes.get(at - 1) == Some(&b'\n')
}

/// Returns the places of the line ends beside a `=` in a field, if it is in a header.
fn parameter_folds(bytes: &[u8], start: usize) -> Vec<usize> {
    let field = bytes.get(start..).unwrap_or_default();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut folds = Vec::new();
    for end in memchr_iter(b'\n', field) {
        let (before, after) = (&field[..end], &field[end + 1..]);
        if !after.first().is_some_and(is_blank) {
            break;
        }
        if before.trim_ascii_end().ends_with(b"=") || after.trim_ascii_start().starts_with(b"=") {
            folds.push(start + end);
        }
    }
    if folds.is_empty() || !is_in_header(bytes, start) { Vec::new() } else { folds }
}

/// Returns whether a line is in a header: the lines before it are fields, up to the beginning of
/// the message, a boundary, or the header of a part that is a message.
fn is_in_header(bytes: &[u8], start: usize) -> bool {
    let mut lines = lines_before(bytes, start);
    let is_empty = |line: &[u8]| line.trim_ascii().is_empty();
    match lines.find(|line| !is_field_line(line)) {
        None => true,
        Some(line) if line.starts_with(b"--") => true,
        Some(line) if is_empty(line) => lines.take_while(|line| is_field_line(line)).any(|line| {
            line.to_ascii_lowercase().windows(MESSAGE_TYPE.len()).any(|part| part == MESSAGE_TYPE)
        }),
        Some(_) => false,
    }
}

/// The beginning of the media types of messages.
const MESSAGE_TYPE: &[u8] = b"message/";

/// Returns whether a line is of a header field: its first line or a further one.
pub(super) fn is_field_line(line: &[u8]) -> bool {
    match line.first() {
        Some(b' ' | b'\t') => !line.trim_ascii().is_empty(),
        _ => memchr(b':', line).is_some_and(|colon| line[..colon].iter().all(u8::is_ascii_graphic)),
    }
}

/// Returns the lines before a place, the last one first.
pub(super) fn lines_before(bytes: &[u8], start: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.get(..start).unwrap_or_default();
    std::iter::from_fn(move || {
        let line = rest.strip_suffix(b"\n")?;
        let begin = memrchr(b'\n', line).map_or(0, |at| at + 1);
        rest = &rest[..begin];
        Some(&line[begin..])
    })
    .take(MAX_HEADER_LINES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfold(text: &str) -> String {
        let bytes = unfold_parameters(Cow::Borrowed(text.as_bytes()));
        assert_eq!(bytes.len(), text.len());
        String::from_utf8(bytes.into_owned()).unwrap()
    }

    #[test]
    fn line_ends_beside_an_equals_sign_become_spaces() {
        for (folded, line) in [
            ("Content-Type: a/b; c=\n d\n\n", "Content-Type: a/b; c=  d\n\n"),
            ("Content-Type: a/b; c= \r\n d\r\n\r\n", "Content-Type: a/b; c=    d\r\n\r\n"),
            ("content-type: a/b; c\n\t=d\n\n", "content-type: a/b; c \t=d\n\n"),
            ("To: a@b\nContent-Type: a/b;\n c=\n d\n\n", "To: a@b\nContent-Type: a/b;\n c=  d\n\n"),
            ("x: y\n\n--b\nContent-Type: a/b; c=\n d\n", "x: y\n\n--b\nContent-Type: a/b; c=  d\n"),
            (
                "Content-Type: message/rfc822\n\nContent-Type: a/b; c=\n d\n\n",
                "Content-Type: message/rfc822\n\nContent-Type: a/b; c=  d\n\n",
            ),
        ] {
            assert_eq!(unfold(folded), line);
        }
    }

    #[test]
    fn other_line_ends_stay() {
        for text in [
            "Content-Type: a/b;\n c=d\n\n",
            "Content-Type: a/b; c=\nd: e\n\n",
            "Subject: x\n\nContent-Type: a/b; c=\n d\n",
            "Subject: x\n\ntext\nContent-Type: a/b; c=\n d\n",
            "Subject: x=\n Content-Type: a/b; c=\n d\n",
            "Content-Type: a/b; c=",
            "Content-Type: a/b; c=\n",
        ] {
            assert_eq!(unfold(text), text);
        }
    }
}
