//! Parameters of the fields of parts that are written in pieces (RFC 2231) or in encoded words.
//!
//! The parser converts each piece for itself, but a piece may end within a character. Here the
//! bytes of all pieces are joined before they are converted. Other parameters are left to the
//! parser.

use crate::message::encoded_words::{decode_bytes, decode_words, has_encoded_words};
use crate::message::repair::guess_text;
use memchr::memchr;
use std::borrow::Cow;

/// A piece of a parameter.
#[derive(Debug)]
struct Piece {
    /// Its number; the parameter itself comes after its numbered pieces.
    number: u32,
    /// Its bytes are written as `%XX`, and the first piece begins with the character set.
    is_extended: bool,
    value: Vec<u8>,
}

/// Returns the text of a parameter that is written in pieces, as `NAME*`, or in encoded words;
/// `None`: it is not, or is missing.
pub(super) fn decode_parameter(field: &[u8], name: &str) -> Option<String> {
    if !has_encoded_words(field) && memchr(b'*', field).is_none() {
        return None;
    }
    let mut plain = None;
    let mut pieces = Vec::new();
    for_each_parameter(field, &mut |written, value| {
        let Some(suffix) = strip_name(written, name) else { return };
        if suffix.is_empty() {
            plain.get_or_insert(value);
        } else if let Some((number, is_extended)) = read_suffix(suffix) {
            pieces.push(Piece { number, is_extended, value });
        }
    });
    // Programs write the parameter for old readers besides (RFC 6266, 4.3).
    if pieces.is_empty() {
        let value = plain.filter(|value| has_encoded_words(value))?;
        return Some(decode_words(&value).trim().to_string());
    }
    pieces.sort_by_key(|piece| piece.number);
    Some(join_pieces(&pieces))
}

/// Returns what is behind the name of a parameter.
fn strip_name<'w>(written: &'w [u8], name: &str) -> Option<&'w [u8]> {
    let (front, suffix) = written.split_at_checked(name.len())?;
    let is_own = front.eq_ignore_ascii_case(name.as_bytes());
    (is_own && suffix.first().is_none_or(|byte| *byte == b'*')).then_some(suffix)
}

/// Reads `*`, `*0` or `*0*`: the number of a piece, and whether it is extended.
fn read_suffix(suffix: &[u8]) -> Option<(u32, bool)> {
    let suffix = str::from_utf8(suffix.strip_prefix(b"*")?).ok()?;
    match suffix.strip_suffix('*') {
        Some(number) => Some((number.parse().ok()?, true)),
        None if suffix.is_empty() => Some((u32::MAX, true)),
        None => Some((suffix.parse().ok()?, false)),
    }
}

fn join_pieces(pieces: &[Piece]) -> String {
    // One way of writing the parameter: numbered pieces, or all in one.
    let is_numbered = pieces.first().is_some_and(|first| first.number != u32::MAX);
    let mut charset: &[u8] = b"";
    let mut bytes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if is_numbered && piece.number == u32::MAX || !is_numbered && at > 0 {
            break;
        }
        let mut value = piece.value.as_slice();
        if !piece.is_extended {
            bytes.extend_from_slice(value);
            continue;
        }
        // CHARSET'LANGUAGE'TEXT
        let mut fields = value.splitn(3, |byte| *byte == b'\'');
        if at == 0
            && let (Some(first), Some(_), Some(text)) =
                (fields.next(), fields.next(), fields.next())
        {
            (charset, value) = (first, text);
        }
        bytes.extend(decode_percent(value));
    }
    let text = match charset {
        b"" if has_encoded_words(&bytes) => Cow::Owned(decode_words(&bytes)),
        b"" => guess_text(&bytes),
        _ => decode_bytes(&bytes, charset),
    };
    text.trim().to_string()
}

/// Replaces `%XX` by its byte. Others stay as they are.
fn decode_percent(value: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let pair = digit(tail.first()).zip(digit(tail.get(1)));
        match pair.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            Some(escaped) if *byte == b'%' => {
                decoded.push(escaped);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => decoded.push(*byte),
        }
    }
    decoded
}

/// Visits the parameters of a field with their values, without quotes and folds.
fn for_each_parameter<'f>(field: &'f [u8], visit: &mut dyn FnMut(&'f [u8], Vec<u8>)) {
    let Some(start) = memchr(b';', field) else { return };
    let mut rest = field.get(start..).unwrap_or_default();
    loop {
        let is_between = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
        let start = rest.iter().position(|byte| !is_between(byte)).unwrap_or(rest.len());
        rest = rest.get(start..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        let end = memchr::memchr3(b'=', b';', b'\n', rest).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end).unwrap_or((rest, b""));
        let Some(behind) = behind.strip_prefix(b"=") else {
            rest = behind;
            continue;
        };
        let behind = behind.trim_ascii_start();
        let (value, after) = match behind.strip_prefix(b"\"") {
            Some(quoted) => read_quoted_text(quoted),
            None => read_token(behind),
        };
        visit(name.trim_ascii(), value);
        rest = after;
    }
}

/// Reads a quoted text behind its first quote. Returns what is behind it, too.
fn read_quoted_text(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut value = Vec::new();
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (byte, tail) {
            (b'"', _) => break,
            (b'\\', [escaped, tail @ ..]) => {
                value.push(*escaped);
                rest = tail;
            }
            (b'\r' | b'\n', _) => {}
            _ => value.push(*byte),
        }
    }
    (value, rest)
}

/// Reads a value without quotes: up to a semicolon or the end of a line, unless an encoded word
/// begins the next one.
fn read_token(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut end = 0;
    while let Some(found) = memchr::memchr2(b';', b'\n', text.get(end..).unwrap_or_default()) {
        let rest = text.get(end + found..).unwrap_or_default();
        let is_word_behind = rest.trim_ascii_start().starts_with(b"=?");
        end += found;
        if rest.starts_with(b";") || !is_word_behind {
            let (value, rest) = text.split_at_checked(end).unwrap_or((text, b""));
            return (value.trim_ascii().to_vec(), rest);
        }
        end += 1;
    }
    (text.trim_ascii().to_vec(), b"")
}
