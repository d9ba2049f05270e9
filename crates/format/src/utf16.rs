//! UTF-16 items, as some address books export them: detection, decoding, and inserted lines.
//!
//! A separate module because stored bytes stay UTF-16, so that the splitter and the editing
//! functions count in its units.

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

/// Returns the text of an item without a leading byte-order mark. Each unpaired surrogate becomes
/// U+FFFD, and half a unit at the end is dropped, so that text offsets can be mapped back to bytes.
pub(crate) fn decode(bytes: &[u8], order: Endian) -> String {
    decode_chars(bytes, order).skip(usize::from(order.has_bom(bytes))).collect()
}

/// Returns the text of a part of a stream, in which a byte-order mark is a character.
pub(crate) fn decode_stream(bytes: &[u8], order: Endian) -> String {
    decode_chars(bytes, order).collect()
}

fn decode_chars(bytes: &[u8], order: Endian) -> impl Iterator<Item = char> {
    let units = bytes.chunks_exact(2).map(move |unit| order.decode_unit([unit[0], unit[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
}
