//! The bytes of a message as the parser expects them.
//!
//! Mailboxes have files whose lines end with CR alone, lines of an mbox in front of the header, and
//! headers with bytes of an undeclared character set. The parser would read none of them right.

use crate::message::damage::{MAX_NESTED_MESSAGES, MessageProblem};
use memchr::memmem;
use std::borrow::Cow;

/// The number of bytes in which a line of a message ends.
const MAX_LINE_BYTES: usize = 64 << 10;
/// The longest encoded word whose bytes are repaired: as long as a line may be (RFC 5322, 2.1.1).
const MAX_ENCODED_WORD_BYTES: usize = 998;
/// The least number of characters of two bytes that are UTF-8 hardly by chance: of the characters
/// of EUC-KR and GBK in mail, about a tenth are valid in UTF-8.
const MIN_UTF8_CHARACTERS: usize = 3;

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
    let header = escape_encoded_words(header);
    let text = guess_words(&header);
    if matches!(text, Cow::Owned(_)) {
        problems.push(MessageProblem::HeaderNotAscii);
    }
    Cow::Owned([text.as_bytes(), body].concat())
}

/// Writes the bytes above ASCII in encoded words (RFC 2047) with the encoding Q as `=XX`: they are
/// in the character set of the word.
fn escape_encoded_words(header: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(header.len());
    let mut rest = header;
    while let Some(start) = memmem::find(rest, b"=?") {
        let (front, word) = rest.split_at(start);
        escaped.extend_from_slice(front);
        let length = encoded_word_length(word).unwrap_or(2);
        let (word, behind) = word.split_at(length);
        for byte in word {
            match byte.is_ascii() {
                true => escaped.push(*byte),
                false => escaped.extend_from_slice(format!("={byte:02X}").as_bytes()),
            }
        }
        rest = behind;
    }
    escaped.extend_from_slice(rest);
    escaped
}

/// Returns the number of bytes of the encoded word with the encoding Q that a text begins with.
fn encoded_word_length(text: &[u8]) -> Option<usize> {
    let text = text.get(..MAX_ENCODED_WORD_BYTES).unwrap_or(text);
    let line = text.split(|byte| *byte == b'\n').next()?;
    let mut fields = line.split(|byte| *byte == b'?');
    let (_, charset, encoding) = (fields.next()?, fields.next()?, fields.next()?);
    let is_charset = charset.iter().all(u8::is_ascii_graphic);
    if !is_charset || !encoding.eq_ignore_ascii_case(b"q") {
        return None;
    }
    let start = charset.len() + encoding.len() + "=???".len();
    Some(start + memmem::find(line.get(start..)?, b"?=")? + "?=".len())
}

/// Decodes a header of unknown character sets: words in UTF-8 as such, the others in one set that
/// is guessed. If it has characters of two bytes, short words that are UTF-8 by chance are in it,
/// too, such as the Korean C5 AB.
fn guess_words(header: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(header) {
        return Cow::Borrowed(text);
    }
    // No set that is guessed has bytes of white space within a character.
    let words = || header.split_inclusive(u8::is_ascii_whitespace);
    let is_other = |word: &&[u8]| word.is_ascii() || std::str::from_utf8(word).is_err();
    let encoding = guess_encoding(&words().filter(is_other).collect::<Vec<_>>().concat());
    let decode = |word| match std::str::from_utf8(word) {
        Ok(text) if text.is_ascii() || encoding.is_single_byte() || is_probable_utf8(text) => {
            Cow::Borrowed(text)
        }
        Ok(text) => encoding
            .decode_without_bom_handling_and_without_replacement(word)
            .unwrap_or(Cow::Borrowed(text)),
        Err(_) => encoding.decode_without_bom_handling(word).0,
    };
    Cow::Owned(words().map(decode).collect())
}

/// Returns whether a word is UTF-8, and hardly by chance a word of an East Asian character set: it
/// has several characters beyond ASCII, or a long one, or letters of ASCII beside them.
fn is_probable_utf8(word: &str) -> bool {
    let mut others = word.chars().filter(|c| !c.is_ascii());
    others.clone().any(|c| c.len_utf8() > 2)
        || others.nth(MIN_UTF8_CHARACTERS - 1).is_some()
        || word.contains(|c: char| c.is_ascii_alphabetic())
}

/// Decodes text of an unknown character set.
pub(super) fn guess_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    guess_encoding(bytes).decode_without_bom_handling(bytes).0
}

/// Returns the character set that bytes are probably in.
fn guess_encoding(bytes: &[u8]) -> &'static encoding_rs::Encoding {
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

/// Returns the message without the `From ` lines of an mbox in front of it, and without empty
/// lines.
pub(super) fn skip_mbox_line(bytes: &[u8]) -> &[u8] {
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
    // More types than are parsed take more bytes: each has seven.
    if bytes.len() <= MAX_NESTED_MESSAGES * "/rfc822".len() {
        return bytes;
    }
    // `message/rfc822`, `message/global` and `multipart/digest`, in any case.
    let is_type = |at: &usize| {
        let tail = bytes.get(at + 1..at + 7).unwrap_or_default();
        let types: [&[u8]; 3] = [b"rfc822", b"global", b"digest"];
        types.iter().any(|name| tail.eq_ignore_ascii_case(name))
    };
    let mut types = memchr::memchr_iter(b'/', bytes).filter(is_type);
    match types.nth(MAX_NESTED_MESSAGES) {
        Some(end) => {
            problems.push(MessageProblem::NestedTooDeep);
            bytes.get(..end).unwrap_or_default()
        }
        None => bytes,
    }
}

/// Replaces CR by LF if no line ends otherwise.
pub(super) fn normalize_line_ends(bytes: &[u8]) -> Cow<'_, [u8]> {
    let start = bytes.get(..MAX_LINE_BYTES).unwrap_or(bytes);
    if start.contains(&b'\n') || !start.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect())
}

/// Returns the number of bytes in front of the empty line after the header.
pub(super) fn find_header_end(bytes: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', bytes);
    let is_empty_line = |at: &usize| {
        let rest = bytes.get(at + 1..).unwrap_or_default();
        rest.first().is_none_or(|byte| *byte == b'\n') || rest.starts_with(b"\r\n")
    };
    ends.filter(is_empty_line).map(|at| at + 1).next().unwrap_or(bytes.len())
}
