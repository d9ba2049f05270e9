//! The bytes of a message as the parser expects them.
//!
//! Mailboxes have files whose lines end with CR alone, lines of an mbox in front of the header, and
//! headers with bytes of an undeclared character set. The parser would read none of them right.

use crate::message::damage::{MAX_NESTED_MESSAGES, MessageProblem};
use memchr::memmem;
use std::borrow::Cow;

/// The number of bytes in which a line of a message ends.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Returns the message with line ends of a usual form and a header in UTF-8, from its first header
/// field to the last part that is parsed.
pub(super) fn normalize<'a>(bytes: &'a [u8], problems: &mut Vec<MessageProblem>) -> Cow<'a, [u8]> {
    let bytes = limit_nesting(skip_mbox_line(bytes), problems);
    let bytes = normalize_line_ends(bytes);
    let header_end = find_header_end(&bytes);
    let (header, body) = bytes.split_at(header_end);
    if std::str::from_utf8(header).is_ok() {
        return bytes;
    }
    problems.push(MessageProblem::HeaderNotAscii);
    let header = guess_text(header);
    Cow::Owned([header.as_bytes(), body].concat())
}

/// Decodes text of an unknown character set.
pub(super) fn guess_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, chardetng::Utf8Detection::Allow);
    encoding.decode_without_bom_handling(bytes).0
}

/// Returns the message without the `From ` lines of an mbox in front of it, and without empty
/// lines.
fn skip_mbox_line(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest).trim_ascii_start();
        if !rest.starts_with(b"From ") && !rest.starts_with(b">From ") {
            return rest;
        }
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        rest = end.and_then(|end| rest.get(end..)).unwrap_or_default();
    }
}

/// Returns the message up to its deepest part that is parsed: the parser needs stack for each
/// nested message.
fn limit_nesting<'a>(bytes: &'a [u8], problems: &mut Vec<MessageProblem>) -> &'a [u8] {
    // `message/rfc822`, `message/global` and `multipart/digest`, in any case.
    let is_type = |at: &usize| {
        let tail = bytes.get(at + 1..at + 7).unwrap_or_default();
        let types: [&[u8]; 3] = [b"rfc822", b"global", b"digest"];
        types.iter().any(|name| tail.eq_ignore_ascii_case(name))
    };
    let mut types = memmem::find_iter(bytes, b"/").filter(is_type);
    match types.nth(MAX_NESTED_MESSAGES) {
        Some(end) => {
            problems.push(MessageProblem::NestedTooDeep);
            bytes.get(..end).unwrap_or_default()
        }
        None => bytes,
    }
}

/// Replaces CR by LF if no line ends otherwise.
fn normalize_line_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    let start = bytes.get(..MAX_LINE_BYTES).unwrap_or(bytes);
    if start.contains(&b'\n') || !start.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect())
}

/// Returns the number of bytes in front of the empty line after the header.
fn find_header_end(bytes: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', bytes);
    let is_empty_line = |at: &usize| {
        let rest = bytes.get(at + 1..).unwrap_or_default();
        rest.first().is_none_or(|byte| *byte == b'\n') || rest.starts_with(b"\r\n")
    };
    ends.filter(is_empty_line).map(|at| at + 1).next().unwrap_or(bytes.len())
}
