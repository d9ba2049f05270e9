//! Text in ISO 2022: character sets that escape sequences and shifts choose.
//!
//! ISO-2022-JP (RFC 1468), ISO-2022-JP-2 (RFC 1554) and ISO-2022-KR (RFC 1557) designate other sets
//! by other sequences, so one decoder reads all. Sequences without text between them, as two
//! encoded words in a row have them, are no damage.

use encoding_rs::{EUC_JP, EUC_KR, Encoding, GBK, ISO_8859_7, WINDOWS_1252};

const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// A character set of 94 or 94 x 94 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    Ascii,
    /// JIS X 0201, its Latin letters.
    Roman,
    /// JIS X 0201, its katakana.
    Katakana,
    /// Two bytes, which a multi-byte encoding has with their high bits set, behind a prefix.
    Double(&'static Encoding, &'static [u8]),
}

const JIS_0208: Set = Set::Double(EUC_JP, b"");
const JIS_0212: Set = Set::Double(EUC_JP, b"\x8f");
const KS_1001: Set = Set::Double(EUC_KR, b"");
const GB_2312: Set = Set::Double(GBK, b"");

/// An escape sequence.
#[derive(Debug, Clone, Copy)]
enum Escape {
    /// The set of text.
    Text(Set),
    /// The set of text after a shift.
    Shifted(Set),
    /// The set of single high characters.
    High(&'static Encoding),
    /// The next byte is a high character.
    SingleShift,
}

/// The sequences without ESC.
const ESCAPES: [(&[u8], Escape); 15] = [
    (b"(B", Escape::Text(Set::Ascii)),
    (b"(J", Escape::Text(Set::Roman)),
    (b"(I", Escape::Text(Set::Katakana)),
    (b"$@", Escape::Text(JIS_0208)),
    (b"$B", Escape::Text(JIS_0208)),
    (b"$(@", Escape::Text(JIS_0208)),
    (b"$(B", Escape::Text(JIS_0208)),
    (b"$(D", Escape::Text(JIS_0212)),
    (b"$A", Escape::Text(GB_2312)),
    (b"$(A", Escape::Text(GB_2312)),
    (b"$(C", Escape::Text(KS_1001)),
    (b"$)C", Escape::Shifted(KS_1001)),
    (b".A", Escape::High(WINDOWS_1252)),
    (b".F", Escape::High(ISO_8859_7)),
    (b"N", Escape::SingleShift),
];

/// Decodes text in ISO 2022. Damage becomes U+FFFD.
pub(super) fn decode_iso_2022(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let (mut set, mut shifted, mut high) = (Set::Ascii, KS_1001, WINDOWS_1252);
    let mut is_shifted = false;
    let mut rest = bytes;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match *byte {
            ESCAPE => {
                let Some((sequence, escape)) =
                    ESCAPES.iter().find(|(sequence, _)| rest.starts_with(sequence))
                else {
                    text.push(char::REPLACEMENT_CHARACTER);
                    continue;
                };
                rest = rest.get(sequence.len()..).unwrap_or_default();
                match *escape {
                    Escape::Text(chosen) => set = chosen,
                    Escape::Shifted(chosen) => shifted = chosen,
                    Escape::High(chosen) => high = chosen,
                    Escape::SingleShift => {
                        if let [byte, tail @ ..] = rest {
                            push_character(&mut text, high, &[*byte | 0x80]);
                            rest = tail;
                        }
                    }
                }
            }
            SHIFT_OUT => is_shifted = true,
            SHIFT_IN => is_shifted = false,
            b'\n' => {
                is_shifted = false;
                text.push('\n');
            }
            byte if !byte.is_ascii() => text.push(char::REPLACEMENT_CHARACTER),
            byte if !byte.is_ascii_graphic() => text.push(char::from(byte)),
            byte => match if is_shifted { shifted } else { set } {
                Set::Ascii => text.push(char::from(byte)),
                Set::Roman => text.push(match byte {
                    b'\\' => '¥',
                    b'~' => '‾',
                    _ => char::from(byte),
                }),
                Set::Katakana => push_character(&mut text, EUC_JP, &[0x8e, byte | 0x80]),
                Set::Double(encoding, prefix) => match rest {
                    [trail, tail @ ..] if trail.is_ascii_graphic() => {
                        rest = tail;
                        let pair = [prefix, &[byte | 0x80, trail | 0x80]].concat();
                        push_character(&mut text, encoding, &pair);
                    }
                    _ => text.push(char::REPLACEMENT_CHARACTER),
                },
            },
        }
    }
    text
}

fn push_character(text: &mut String, encoding: &'static Encoding, bytes: &[u8]) {
    text.push_str(&encoding.decode_without_bom_handling(bytes).0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_japanese_korean_and_chinese_text() {
        for (bytes, text) in [
            (&b"\x1b$BF|K\\\x1b(B abc"[..], "日本 abc"),
            (b"\x1b$BF|\x1b(B\x1b$BK\\\x1b(B", "日本"),
            (b"\x1b(J\\~\x1b(I1\x1b(B\\", "¥‾ｱ\\"),
            (b"\x1b$A<r\x1b$(C<x\x1b(B \x1b.A\x1bNd", "简순 ä"),
            (b"\x1b$)C\x0eGQ1[\x0f abc", "한글 abc"),
            (b"\x1b$)C\x0eGQ\n1[", "한\n1["),
            (b"\x1b$BF", "\u{fffd}"),
            (b"\x1b\xfc", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(decode_iso_2022(bytes), text, "{bytes:x?}");
        }
    }
}
