//! Headers of parts that a boundary ends, without an empty line.
//!
//! A boundary ends a part wherever it is (RFC 2046, 5.1.2), and programs attach messages of which
//! only the header is left. The parser takes the boundary for a line of that header, so the parts
//! behind it are lost. Separate from `repair`, which needs nothing about boundaries.

use crate::message::unfold::{MAX_HEADER_LINES, is_field_line, lines_before};
use memchr::{memchr, memchr_iter, memmem};
use std::collections::HashSet;
use std::ops::Range;

/// The name of the parameter with a boundary.
const PARAMETER: &[u8] = b"boundary";
/// The longest boundary. RFC 2046, 5.1.1, allows 70 bytes, and some programs write more.
const MAX_BOUNDARY_BYTES: usize = 256;
/// The most boundaries of a message that are known; further ones end no header.
const MAX_BOUNDARIES: usize = 1 << 16;

/// A message with an empty line behind each header that a boundary ends.
pub(super) struct CompleteMessage {
    pub(super) bytes: Vec<u8>,
    /// The places of the lines that were added, in order.
    added: Vec<usize>,
}

impl CompleteMessage {
    /// Returns the bytes of a range without the lines that were added.
    pub(super) fn original(&self, range: Range<usize>) -> Vec<u8> {
        let first = self.added.partition_point(|at| *at < range.start);
        let (mut original, mut start) = (Vec::new(), range.start);
        for at in self.added.iter().skip(first).take_while(|at| **at < range.end) {
            original.extend_from_slice(self.bytes.get(start..*at).unwrap_or_default());
            start = at + 1;
        }
        original.extend_from_slice(self.bytes.get(start..range.end).unwrap_or_default());
        original
    }
}

/// Returns the message with an empty line behind each header that a boundary ends; `None` if there
/// is none.
pub(super) fn complete_headers(bytes: &[u8]) -> Option<CompleteMessage> {
    let mut boundaries = None;
    let ends: Vec<usize> = memmem::find_iter(bytes, b"\n--")
        .map(|at| at + 1)
        .filter(|at| is_below_header(bytes, *at))
        .filter(|at| {
            let declared = boundaries.get_or_insert_with(|| declared_boundaries(bytes));
            is_end_of_part(bytes, *at, declared)
        })
        .collect();
    if ends.is_empty() {
        return None;
    }
    let mut complete = Vec::with_capacity(bytes.len() + ends.len());
    let (mut start, mut added) = (0, Vec::new());
    for end in ends {
        complete.extend_from_slice(&bytes[start..end]);
        added.push(complete.len());
        complete.push(b'\n');
        start = end;
    }
    complete.extend_from_slice(&bytes[start..]);
    Some(CompleteMessage { bytes: complete, added })
}

/// Returns whether the lines before a place are fields of a header, up to the beginning of the
/// message, a line that may be a boundary, or the header of a part that is a message.
fn is_below_header(bytes: &[u8], at: usize) -> bool {
    let mut lines = lines_before(bytes, at);
    let mut count = 0;
    let top = lines.find(|line| {
        count += 1;
        line.starts_with(b"--") || !is_field_line(line)
    });
    match top {
        None => count > 0 && count < MAX_HEADER_LINES,
        Some(_) if count == 1 => false,
        Some(line) if line.starts_with(b"--") => true,
        Some(line) => line.trim_ascii().is_empty() && is_message_header(lines),
    }
}

/// Returns whether the lines of a header, the last one first, are those of an attached message.
fn is_message_header<'l>(lines: impl Iterator<Item = &'l [u8]>) -> bool {
    let is_field = |line: &&[u8]| !line.starts_with(b"--") && is_field_line(line);
    let mut next: &[u8] = b"";
    for line in lines.take_while(is_field) {
        let name = b"content-type:";
        if let Some((start, value)) = line.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            let value = if value.trim_ascii().is_empty() { next } else { value };
            let types: [&[u8]; 2] = [b"message/rfc822", b"message/global"];
            let is_type = |name: &[u8]| {
                let start = value.trim_ascii_start().split_at_checked(name.len());
                let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
                start.is_some_and(|(start, rest)| {
                    start.eq_ignore_ascii_case(name) && rest.first().is_none_or(is_end)
                })
            };
            return types.into_iter().any(is_type);
        }
        next = line;
    }
    false
}

/// Returns whether the line at a place below fields is a boundary, and so is the line above these
/// fields, if it begins as one: a line of dashes may be text.
fn is_end_of_part(bytes: &[u8], at: usize, declared: &HashSet<&[u8]>) -> bool {
    let line = bytes.get(at..).unwrap_or_default();
    let line = line.get(..memchr(b'\n', line).unwrap_or(line.len())).unwrap_or_default();
    let Some(name) = line.trim_ascii_end().strip_prefix(b"--") else { return false };
    if !declared.contains(name) && !name.strip_suffix(b"--").is_some_and(|it| declared.contains(it))
    {
        return false;
    }
    let top = lines_before(bytes, at).find(|line| line.starts_with(b"--") || !is_field_line(line));
    top.and_then(|line| line.trim_ascii_end().strip_prefix(b"--"))
        .is_none_or(|name| declared.contains(name))
}

/// Returns the boundaries that the message declares. Each value is read up to its longest length
/// only: the values of `boundary=boundary=…` all end where the line ends.
fn declared_boundaries(bytes: &[u8]) -> HashSet<&[u8]> {
    let read_value = |at: usize| {
        let (front, value) = (bytes[..at].trim_ascii_end(), &bytes[at + 1..]);
        let name = &front[front.len().checked_sub(PARAMETER.len())?..];
        if !name.eq_ignore_ascii_case(PARAMETER) {
            return None;
        }
        let value = value.trim_ascii_start();
        let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
        let (value, end) = match value.strip_prefix(b"\"") {
            Some(value) => (value, memchr(b'"', limit(value))),
            None => (value, limit(value).iter().position(is_end).or_else(|| end_of_message(value))),
        };
        value.get(..end?)
    };
    let mut declared = HashSet::new();
    for name in memchr_iter(b'=', bytes).filter_map(read_value).filter(|name| !name.is_empty()) {
        if declared.len() == MAX_BOUNDARIES {
            break;
        }
        declared.insert(name);
    }
    declared
}

/// Returns the part of a text that can have a boundary and the byte behind it.
fn limit(value: &[u8]) -> &[u8] {
    value.get(..=MAX_BOUNDARY_BYTES).unwrap_or(value)
}

/// Returns the length of a value that ends with the message, if a boundary can be so long.
fn end_of_message(value: &[u8]) -> Option<usize> {
    (value.len() <= MAX_BOUNDARY_BYTES).then_some(value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the empty lines are written as `|`.
    #[test]
    fn a_boundary_ends_a_header() {
        for marked in [
            "Content-Type: a/b; boundary=b\n|--b\nX: y\n|--b--\n",
            "Content-Type: a/b; BOUNDARY = \"b c\"\r\n\r\n--b c\r\nX: y\r\n z\r\n|--b c--\r\n",
            "A: b; boundary=b\n\n--b \nContent-Type:\n Message/RFC822; x=y\n\nX: y\n|--b\n\n",
            "A: b; boundary=b\n\n--b\nX: y; boundary=b1\n|--b1\nX: y\n|--b1--\n--b--\n",
        ] {
            let text = marked.replace('|', "");
            let complete = complete_headers(text.as_bytes()).expect(marked);
            assert_eq!(complete.original(0..complete.bytes.len()), text.as_bytes());
            assert_eq!(String::from_utf8(complete.bytes), Ok(marked.replace('|', "\n")));
        }
    }

    #[test]
    fn other_lines_of_dashes_stay() {
        for text in [
            "A: b; boundary=b\n\n--b\n\nX: y\n--b--\n",
            "A: b; boundary=b\n\n--b\nA: b\n\n-- \nTel: 1\n--b--\n",
            "A: b; boundary=b\n\n--b\nA: b\n\ntext\nX: y\n--b--\n",
            "A: b; boundary=b\n\n--b\nA: b\n--b1\n\nx\n--b--\n",
            "A: b; boundary=b\n\n--b\nContent-Type: text/rfc822-headers\n\nX: y\n--b--\n",
            "A: b; boundary=b\n\n--b\nContent-Type: message/global-headers\n\nX: y\n--b--\n",
            "A: b; boundary=b\n\n--b--\nX: y\n--b\n",
            "A: b; boundary=b\n\n--b\n--b\nX: y\n\n--b--\n",
            "A: b\n--b\nX: y\n--b--\n",
        ] {
            assert!(complete_headers(text.as_bytes()).is_none(), "{text}");
        }
    }
    /// A time that grows with the square of the size would be hours.
    #[test]
    fn boundaries_in_boundaries_are_read_at_once() {
        for (value, is_known) in [
            ("boundary=".repeat(1 << 20), true),
            ("boundary=\"".repeat(1 << 20), true),
            ("boundary= ".repeat(1 << 20), true),
            ((0..MAX_BOUNDARIES).map(|n| format!("boundary=x{n};")).collect(), false),
        ] {
            let text = format!("A: {value}\nA: b; boundary=b\n\n--b\nX: y\n");
            let complete = complete_headers(format!("{text}--b--\n").as_bytes());
            let expect = is_known.then(|| format!("{text}\n--b--\n").into_bytes());
            assert!(complete.map(|it| it.bytes) == expect, "{}", &value[..20]);
        }
    }

    #[test]
    fn boundaries_have_a_longest_length() {
        for (length, is_known) in [(MAX_BOUNDARY_BYTES, true), (MAX_BOUNDARY_BYTES + 1, false)] {
            let name = "b".repeat(length);
            for value in [name.clone(), format!("\"{name}\"")] {
                let text = format!("A: b; boundary={value}\n\n--{name}\nX: y\n--{name}--\n");
                assert_eq!(complete_headers(text.as_bytes()).is_some(), is_known, "{value}");
            }
        }
    }
}
