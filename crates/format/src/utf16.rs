//! UTF-16 items, as some address books export them: detection, decoding, and inserted lines.
//!
//! A separate module because stored bytes stay UTF-16, so that the splitter and the editing
//! functions count in its units.

use std::borrow::Cow;

/// The byte-order mark in UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The byte order of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    /// Returns the byte order if this is UTF-16: it begins with a byte-order mark, or like BEGIN in
    /// UTF-16.
    pub(crate) fn detect(bytes: &[u8]) -> Option<Endian> {
        match bytes {
            [0xff, 0xfe, ..] | [b'B' | b'b', 0, b'E' | b'e', 0, ..] => Some(Endian::Little),
            [0xfe, 0xff, ..] | [0, b'B' | b'b', 0, b'E' | b'e', ..] => Some(Endian::Big),
            _ => None,
        }
    }

    /// Returns whether the bytes begin with a byte-order mark.
    pub(crate) fn has_bom(self, bytes: &[u8]) -> bool {
        bytes.first_chunk().is_some_and(|unit| self.decode_unit(*unit) == 0xfeff)
    }

    pub(crate) fn decode_unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn encode(self, text: &str) -> Vec<u8> {
        let bytes = |unit: u16| match self {
            Endian::Little => unit.to_le_bytes(),
            Endian::Big => unit.to_be_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    }

    /// Returns one byte for each unit, 0xff for units that are not ASCII: enough to find lines and
    /// markers.
    pub(crate) fn narrow(self, bytes: &[u8]) -> impl Iterator<Item = u8> {
        bytes.chunks_exact(2).map(move |unit| {
            let unit = self.decode_unit([unit[0], unit[1]]);
            u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(0xff)
        })
    }
}

/// Returns the text without a leading byte-order mark. Each unpaired surrogate becomes U+FFFD, and
/// half a unit at the end is dropped, so that text offsets can be mapped back to bytes.
pub(crate) fn decode(bytes: &[u8], order: Endian) -> String {
    let units = bytes.chunks_exact(2).map(|unit| order.decode_unit([unit[0], unit[1]]));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.skip(usize::from(order.has_bom(bytes))).collect()
}

/// Returns the byte order of lines that may be UTF-16 without a mark.
pub(crate) fn detect_line_endian(lines: &[u8]) -> Option<Endian> {
    match lines {
        [0, first, ..] if *first != 0 => Some(Endian::Big),
        [first, 0, ..] if *first != 0 => Some(Endian::Little),
        _ => Endian::detect(lines),
    }
}

/// Returns one byte for each character of lines that may be UTF-16 without a mark.
pub(crate) fn narrow_lines(lines: &[u8]) -> Cow<'_, [u8]> {
    match detect_line_endian(lines) {
        Some(order) => Cow::Owned(order.narrow(lines).collect()),
        None => Cow::Borrowed(lines),
    }
}
