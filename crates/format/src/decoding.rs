//! Transfer encodings, character sets and escapes: from the bytes of a value to its text.
//!
//! Each function decodes as much as it can; only malformed base64 is refused.
//! [`Property`](crate::property::Property) and the readers of fields decide which of them apply.

use crate::charset::decode_named_charset;
use crate::utf16::{self, Endian};
use memchr::{memchr, memchr2};
use std::borrow::Cow;

/// Decodes quoted-printable (RFC 2045, 6.7). An `=` without two hexadecimal digits is literal; soft
/// breaks and a lone final `=` are removed.
#[must_use]
pub fn decode_quoted_printable(value: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr(b'=', value) else {
        return Cow::Borrowed(value);
    };
    let mut decoded = Vec::with_capacity(value.len());
    let (plain, mut rest) = value.split_at(first);
    decoded.extend_from_slice(plain);
    while let [b'=', tail @ ..] = rest {
        let mut next = tail;
        match tail {
            [] => {}
            [b'\r', b'\n', behind @ ..] | [b'\n', behind @ ..] => next = behind,
            [high, low, behind @ ..] => match (hex_digit_value(*high), hex_digit_value(*low)) {
                (Some(high), Some(low)) => {
                    decoded.push(high << 4 | low);
                    next = behind;
                }
                _ => decoded.push(b'='),
            },
            _ => decoded.push(b'='),
        }
        let (plain, behind) = next.split_at(memchr(b'=', next).unwrap_or(next.len()));
        decoded.extend_from_slice(plain);
        rest = behind;
    }
    Cow::Owned(decoded)
}

fn hex_digit_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The value of each digit of base64 in both alphabets, below 64; above are classes of other bytes.
const BASE64_DIGITS: [u8; 256] = {
    let mut digits = [BASE64_FOREIGN; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = 0;
    while value < alphabet.len() {
        digits[alphabet[value] as usize] = value as u8;
        value += 1;
    }
    digits[b'-' as usize] = 62;
    digits[b'_' as usize] = 63;
    digits[b'=' as usize] = BASE64_PADDING;
    let mut byte = 0;
    while byte < digits.len() {
        if (byte as u8).is_ascii_whitespace() {
            digits[byte] = BASE64_SPACE;
        }
        byte += 1;
    }
    digits
};
const BASE64_SPACE: u8 = 64;
const BASE64_PADDING: u8 = 65;
const BASE64_FOREIGN: u8 = 66;

/// Decodes base64 (RFC 4648, both alphabets). White space is skipped, and padding is optional; any
/// other foreign byte gives `None`.
#[must_use]
pub fn decode_base64(value: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(value.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0u32, 0u32);
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        // Whole groups of digits are most of a value.
        if let ([a, b, c, d, behind @ ..], 0) = (rest, count) {
            let digits = [a, b, c, d].map(|digit| BASE64_DIGITS[usize::from(*digit)]);
            if digits.iter().all(|digit| *digit < 64) {
                let [a, b, c, d] = digits.map(u32::from);
                let [_, first, second, third] = (a << 18 | b << 12 | c << 6 | d).to_be_bytes();
                decoded.extend_from_slice(&[first, second, third]);
                rest = behind;
                continue;
            }
        }
        rest = tail;
        match BASE64_DIGITS[usize::from(*byte)] {
            BASE64_SPACE => {}
            BASE64_PADDING => {
                let is_end = |byte: &u8| {
                    matches!(BASE64_DIGITS[usize::from(*byte)], BASE64_SPACE | BASE64_PADDING)
                };
                if !tail.iter().all(is_end) {
                    return None;
                }
                break;
            }
            BASE64_FOREIGN => return None,
            six => {
                bits = bits << 6 | u32::from(six);
                count += 6;
                if count >= 8 {
                    count -= 8;
                    decoded.push((bits >> count & 0xff) as u8);
                }
            }
        }
    }
    (count < 6).then_some(decoded)
}

/// Decodes uuencode (POSIX): the lines between `begin MODE NAME` and `end`, which may be missing.
/// Text around them is left out. `None`: there is no such beginning, or a line is malformed.
#[must_use]
pub fn decode_uuencode(value: &[u8]) -> Option<Vec<u8>> {
    let lines = value.split(|byte| *byte == b'\n');
    let mut lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.find(|line| begins_uuencode(line))?;
    let mut decoded = Vec::new();
    for line in lines {
        let Some((length, digits)) = line.split_first() else { continue };
        // The last line has no bytes.
        let length = usize::from(uuencode_digit(*length)?);
        if length == 0 {
            break;
        }
        let end = decoded.len() + length;
        for group in digits.chunks(4).take(length.div_ceil(3)) {
            let mut bits = 0;
            for place in 0..4 {
                // Spaces at the end of a line may be missing, and are zeros.
                let digit = group.get(place).map_or(Some(0), |digit| uuencode_digit(*digit))?;
                bits = bits << 6 | u32::from(digit);
            }
            let [_, high, middle, low] = bits.to_be_bytes();
            decoded.extend([high, middle, low]);
        }
        decoded.resize(end, 0);
        // Missing spaces must not make much of nothing.
        if end > value.len() {
            return None;
        }
    }
    Some(decoded)
}

/// Returns whether a line is `begin MODE NAME`.
fn begins_uuencode(line: &[u8]) -> bool {
    let mode =
        line.strip_prefix(b"begin ").and_then(|rest| rest.split(|byte| *byte == b' ').next());
    mode.is_some_and(|mode| {
        matches!(mode.len(), 3 | 4) && mode.iter().all(|digit| (b'0'..=b'7').contains(digit))
    })
}

/// Returns the six bits of a digit of uuencode.
fn uuencode_digit(digit: u8) -> Option<u8> {
    (b' '..=b'`').contains(&digit).then_some(digit.wrapping_sub(b' ') & 0x3f)
}

/// Decodes text in a named character set. Without a known name the text
/// is UTF-8, or Windows-1252 if it has no character of several bytes in UTF-8. In UTF-8, a stray
/// byte is read as Windows-1252, and a character that is cut off becomes U+FFFD.
#[must_use]
pub fn decode_charset<'a>(value: &'a [u8], label: Option<&str>) -> Cow<'a, str> {
    let is_utf8 = |label: &str| {
        let encoding = encoding_rs::Encoding::for_label(label.trim().as_bytes());
        encoding == Some(encoding_rs::UTF_8)
    };
    let label = label.filter(|label| !is_utf8(label));
    match label.and_then(|label| decode_named_charset(value, label)) {
        Some(text) => text,
        None => match std::str::from_utf8(value) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => decode_damaged_utf8(value),
        },
    }
}

/// Decodes text that is not valid UTF-8. Damage in one place, as a phone does that cuts a value
/// inside a character, leaves the rest readable.
fn decode_damaged_utf8(value: &[u8]) -> Cow<'_, str> {
    fn windows_1252(bytes: &[u8]) -> Cow<'_, str> {
        encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0
    }
    if value.utf8_chunks().all(|chunk| chunk.valid().is_ascii()) {
        return windows_1252(value);
    }
    let mut text = String::with_capacity(value.len());
    let mut chunks = value.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            [byte] if chunks.peek().is_some() || !(0xc2..=0xf4).contains(byte) => {
                text.push_str(&windows_1252(std::slice::from_ref(byte)));
            }
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(text)
}

/// Returns the text of an item in UTF-16 without its byte-order mark, or `None` for any other item.
/// UTF-16 is detected by the mark or by the first bytes of BEGIN; the splitter uses the same rule.
/// Unpaired surrogates become U+FFFD.
#[must_use]
pub fn decode_utf16(item: &[u8]) -> Option<String> {
    Endian::detect(item).map(|order| utf16::decode(item, order))
}

/// Removes the escapes of a text value (RFC 6350, 3.4): `\n`, `\,`, `\;`, `\\`, and `\:` of older
/// programs. Any other backslash is literal.
#[must_use]
pub fn unescape_text(text: &str) -> Cow<'_, str> {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n' | 'N') => plain.push('\n'),
            Some(c @ (',' | ';' | ':' | '\\')) => plain.push(c),
            Some(c) => plain.extend(['\\', c]),
            None => plain.push('\\'),
        }
    }
    Cow::Owned(plain)
}

/// Splits a structured value at unescaped separators (`;` between components, `,` between list
/// members) and unescapes each part. The result has at least one part.
///
/// To read lists inside components, split without unescaping: see [`split_raw`].
#[must_use]
pub fn split_structured(text: &str, separator: char) -> Vec<Cow<'_, str>> {
    split_raw(text, separator).map(unescape_text).collect()
}

/// Splits like [`split_structured`], without unescaping.
pub fn split_raw(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, tail) = split_at_unescaped(text, separator);
        rest = tail;
        Some(part)
    })
}

/// Returns the text before the first unescaped separator, and the text after it.
fn split_at_unescaped(text: &str, separator: char) -> (&str, Option<&str>) {
    let Ok(wanted) = u8::try_from(separator) else {
        return (text, None);
    };
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = memchr2(wanted, b'\\', bytes.get(from..).unwrap_or_default()) {
        let at = from + found;
        if bytes[at] == wanted {
            return (&text[..at], Some(&text[at + 1..]));
        }
        from = at + 2;
    }
    (text, None)
}

/// Trims a text and normalises its line feeds; `None` if nothing is left.
pub(crate) fn clean_text(text: &str) -> Option<String> {
    let text = text.trim();
    match text {
        "" => None,
        text if text.contains('\r') => Some(text.replace("\r\n", "\n").replace('\r', "\n")),
        text => Some(text.to_string()),
    }
}
