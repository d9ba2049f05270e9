//! UTF-16, as some address books export it: recognising it, reading it, writing a line of it.
//!
//! It is apart because stored bytes stay UTF-16: what finds items and what adds a line has to count
//! in its units.

use std::borrow::Cow;

/// The byte-order mark in UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The order of bytes in a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    /// The order, if this is UTF-16: it begins with a byte-order mark, or as BEGIN does in it.
    pub(crate) fn detect(bytes: &[u8]) -> Option<Endian> {
        match bytes {
            [0xff, 0xfe, ..] | [b'B' | b'b', 0, b'E' | b'e', 0, ..] => Some(Endian::Little),
            [0xfe, 0xff, ..] | [0, b'B' | b'b', 0, b'E' | b'e', ..] => Some(Endian::Big),
            _ => None,
        }
    }

    /// Do these bytes begin with a byte-order mark?
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

    /// The units, with the ones that are not ASCII as 0xff: enough to find lines and markers.
    pub(crate) fn narrow(self, bytes: &[u8]) -> impl Iterator<Item = u8> {
        bytes.chunks_exact(2).map(move |unit| {
            let unit = self.decode_unit([unit[0], unit[1]]);
            u8::try_from(unit).ok().filter(u8::is_ascii).unwrap_or(0xff)
        })
    }
}

/// The text, without a byte-order mark at its beginning. Halves of pairs become U+FFFD, one for
/// one, and half a unit at the end is left out, so that places in the text can be counted back to
/// bytes.
pub(crate) fn decode(bytes: &[u8], order: Endian) -> String {
    let units = bytes.chunks_exact(2).map(|unit| order.decode_unit([unit[0], unit[1]]));
    let text = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.skip(usize::from(order.has_bom(bytes))).collect()
}

/// The order of lines that may be UTF-16 without anything that says so.
pub(crate) fn detect_line_endian(lines: &[u8]) -> Option<Endian> {
    match lines {
        [0, first, ..] if *first != 0 => Some(Endian::Big),
        [first, 0, ..] if *first != 0 => Some(Endian::Little),
        _ => Endian::detect(lines),
    }
}

/// Bytes of lines that may be UTF-16 without anything that says so, as one byte for each character.
pub(crate) fn narrow_lines(lines: &[u8]) -> Cow<'_, [u8]> {
    match detect_line_endian(lines) {
        Some(order) => Cow::Owned(order.narrow(lines).collect()),
        None => Cow::Borrowed(lines),
    }
}
