//! Encoded words in header fields (RFC 2047).
//!
//! The parser decodes each word for itself, but many programs divide a text between two words
//! within a character, and the white space between them is no part of the text. Here the bytes of
//! adjacent words of one character set are joined before they are converted.

use crate::charset::decode_named_charset;
use crate::decoding::{decode_base64, decode_quoted_printable};
use crate::message::repair::guess_text;
use memchr::memmem;
use std::borrow::Cow;

/// The longest encoded word. Some programs write all of a field in one.
const MAX_WORD_BYTES: usize = 64 << 10;
/// The longest name of a character set, with a language.
const MAX_CHARSET_BYTES: usize = 60;

/// An encoded word without its transfer encoding.
#[derive(Debug)]
struct EncodedWord<'f> {
    charset: &'f [u8],
    bytes: Vec<u8>,
}

/// Returns whether a field may have encoded words.
pub(super) fn has_encoded_words(field: &[u8]) -> bool {
    memchr::memchr_iter(b'=', field).any(|at| field.get(at + 1) == Some(&b'?'))
}

/// Returns the text of a field without structure. Line ends become spaces.
pub(super) fn decode_words(field: &[u8]) -> String {
    let mut text = String::with_capacity(field.len());
    for_each_piece(field, &mut |piece| match piece {
        FieldPiece::Literal(bytes) => {
            let literal = String::from_utf8_lossy(bytes);
            text.extend(literal.chars().map(|c| if matches!(c, '\r' | '\n') { ' ' } else { c }));
        }
        FieldPiece::Words(words) => text.push_str(words),
    });
    text
}

/// Returns a field of addresses as the parser reads it right: with text in place of encoded words,
/// or with one word in UTF-8 for adjacent ones if the text has signs of the syntax.
pub(super) fn recode_words(field: &[u8]) -> Vec<u8> {
    let mut recoded = Vec::with_capacity(field.len());
    let is_plain = |c: char| !c.is_control() && !",<>()\":;\\@=".contains(c);
    for_each_piece(field, &mut |piece| match piece {
        FieldPiece::Literal(bytes) => recoded.extend_from_slice(bytes),
        FieldPiece::Words(words) if words.chars().all(is_plain) => {
            recoded.extend_from_slice(words.as_bytes());
        }
        FieldPiece::Words(words) => {
            recoded.extend_from_slice(b"=?utf-8?Q?");
            for byte in words.bytes() {
                recoded.extend_from_slice(format!("={byte:02X}").as_bytes());
            }
            recoded.extend_from_slice(b"?=");
        }
    });
    // The parser reads up to the end of a line.
    if !recoded.ends_with(b"\n") {
        recoded.push(b'\n');
    }
    recoded
}

/// A piece of a field.
enum FieldPiece<'p> {
    /// Bytes outside of encoded words.
    Literal(&'p [u8]),
    /// The text of adjacent encoded words.
    Words(&'p str),
}

/// Visits the pieces of a field in their order.
fn for_each_piece(field: &[u8], visit: &mut dyn FnMut(FieldPiece<'_>)) {
    let (mut literal_start, mut at) = (0, 0);
    while let Some(found) = memmem::find(field.get(at..).unwrap_or_default(), b"=?") {
        let start = at + found;
        let mut words = Vec::new();
        let mut end = start;
        let mut next = start;
        while let Some((word, length)) = read_word(field.get(next..).unwrap_or_default()) {
            words.push(word);
            end = next + length;
            let behind = field.get(end..).unwrap_or_default();
            next = end + (behind.len() - behind.trim_ascii_start().len());
        }
        if words.is_empty() {
            at = start + 2;
            continue;
        }
        visit(FieldPiece::Literal(field.get(literal_start..start).unwrap_or_default()));
        visit(FieldPiece::Words(&join_words(words)));
        (literal_start, at) = (end, end);
    }
    visit(FieldPiece::Literal(field.get(literal_start..).unwrap_or_default()));
}

/// Returns the text of adjacent words. The bytes of those of one character set are one text.
fn join_words(words: Vec<EncodedWord<'_>>) -> String {
    let mut joined: Vec<EncodedWord<'_>> = Vec::new();
    for word in words {
        match joined.last_mut() {
            Some(last) if last.charset.eq_ignore_ascii_case(word.charset) => {
                last.bytes.extend(word.bytes);
            }
            _ => joined.push(word),
        }
    }
    joined.iter().map(|word| decode_bytes(&word.bytes, word.charset)).collect()
}

/// Returns the text of bytes in a character set, which is guessed if its name is unknown.
pub(super) fn decode_bytes<'b>(bytes: &'b [u8], charset: &[u8]) -> Cow<'b, str> {
    let label = str::from_utf8(charset).unwrap_or_default();
    decode_named_charset(bytes, label).unwrap_or_else(|| guess_text(bytes))
}

/// Reads the encoded word that a text begins with. Returns its length, too.
fn read_word(text: &[u8]) -> Option<(EncodedWord<'_>, usize)> {
    let inner = text.strip_prefix(b"=?")?;
    let charset_end = memchr::memchr(b'?', inner.get(..MAX_CHARSET_BYTES).unwrap_or(inner))?;
    let (charset, rest) = inner.split_at_checked(charset_end)?;
    if charset.is_empty() || !charset.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let [b'?', encoding, b'?', content @ ..] = rest else { return None };
    let content = content.get(..find_word_end(content)?)?;
    let bytes = match encoding.to_ascii_lowercase() {
        b'q' => decode_q(content),
        b'b' => decode_b(content)?,
        _ => return None,
    };
    // A language may follow (RFC 2231, 5).
    let charset = charset.split(|byte| *byte == b'*').next().unwrap_or(charset);
    let length = "=?".len() + charset_end + "?x?".len() + content.len() + "?=".len();
    Some((EncodedWord { charset, bytes }, length))
}

/// Returns the place of the `?=` at the end of a word. A fold may be in the word, the end of the
/// field not.
fn find_word_end(content: &[u8]) -> Option<usize> {
    let end = memmem::find(content.get(..MAX_WORD_BYTES).unwrap_or(content), b"?=")?;
    let has_field_end = memchr::memchr_iter(b'\n', content.get(..end)?)
        .any(|at| !matches!(content.get(at + 1), Some(b' ' | b'\t')));
    (!has_field_end).then_some(end)
}

/// Decodes the encoding Q.
fn decode_q(content: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> =
        unfold(content).map(|byte| if byte == b'_' { b' ' } else { byte }).collect();
    decode_quoted_printable(&spaced).into_owned()
}

/// Decodes the encoding B. Padding may be missing, or be within the word; `None`: the bytes are
/// not base64.
fn decode_b(content: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = unfold(content).filter(|byte| !byte.is_ascii_whitespace()).collect();
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    if !digits.iter().all(is_digit) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for piece in digits.split(|byte| *byte == b'=') {
        // A single digit at the end is no byte.
        let whole = if piece.len() % 4 == 1 { piece.get(..piece.len() - 1)? } else { piece };
        bytes.extend(decode_base64(whole)?);
    }
    Some(bytes)
}

/// Returns the bytes without folds: line ends and the white space behind them.
fn unfold(content: &[u8]) -> impl Iterator<Item = u8> {
    let mut is_fold = false;
    content.iter().copied().filter(move |byte| {
        is_fold = *byte == b'\n' || is_fold && matches!(byte, b' ' | b'\t');
        !is_fold && *byte != b'\r'
    })
}
