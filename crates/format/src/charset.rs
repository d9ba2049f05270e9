//! Character sets by the names that mail and address books give them.
//!
//! One table serves header fields, bodies and cards: the names of the WHATWG encoding standard,
//! those that programs of single systems write (`cp932`), and sets that the standard leaves out:
//! UTF-32, code page 437, and the sets of ISO 2022 with shifts (`iso_2022`).

use crate::charset::iso_2022::decode_iso_2022;
use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_874};
use mail_parser::decoders::charsets::map::charset_decoder;
use std::borrow::Cow;

mod iso_2022;

/// The characters of code page 437 from 0x80 on.
const CODE_PAGE_437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// A character set that the WHATWG encoding standard does not have, or not under this name.
#[derive(Debug, Clone, Copy)]
enum OtherCharset {
    /// One of the standard under another name.
    Renamed(&'static Encoding),
    Iso2022,
    CodePage437,
    Utf32 {
        /// `None`: the byte-order mark or the first character tells.
        is_big_endian: Option<bool>,
    },
}

/// The names of each set, in lower case and with `-` for `_`.
const OTHER_CHARSETS: [(&[&str], OtherCharset); 11] = [
    (&["cp932", "cp943", "ibm943"], OtherCharset::Renamed(SHIFT_JIS)),
    (&["cp949", "ms949", "uhc", "ibm949"], OtherCharset::Renamed(EUC_KR)),
    (&["cp950", "ms950", "windows-950"], OtherCharset::Renamed(BIG5)),
    (&["cp936", "ms936", "windows-936"], OtherCharset::Renamed(GBK)),
    (&["cp874", "ms874", "ibm874"], OtherCharset::Renamed(WINDOWS_874)),
    (&["cp51932", "eucjp", "eucjp-ms", "eucjp-win"], OtherCharset::Renamed(EUC_JP)),
    (
        &[
            "iso-2022-jp",
            "csiso2022jp",
            "iso-2022-jp-1",
            "iso-2022-jp-2",
            "csiso2022jp2",
            "iso-2022-kr",
            "csiso2022kr",
            "cp50220",
            "cp50221",
        ],
        OtherCharset::Iso2022,
    ),
    (&["cp437", "ibm437", "437", "cspc8codepage437"], OtherCharset::CodePage437),
    (
        &["utf-32", "utf32", "csutf32", "ucs-4", "iso-10646-ucs-4", "csucs4"],
        OtherCharset::Utf32 { is_big_endian: None },
    ),
    (&["utf-32be", "csutf32be", "ucs-4be"], OtherCharset::Utf32 { is_big_endian: Some(true) }),
    (&["utf-32le", "csutf32le", "ucs-4le"], OtherCharset::Utf32 { is_big_endian: Some(false) }),
];

impl OtherCharset {
    /// Finds a set without a request for memory: each text of a message asks.
    fn find(label: &str) -> Option<OtherCharset> {
        let label = label.trim();
        let is_name = |name: &str| {
            let letter = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
            name.len() == label.len() && name.bytes().eq(label.bytes().map(letter))
        };
        let (_, found) =
            OTHER_CHARSETS.iter().find(|(names, _)| names.iter().any(|name| is_name(name)))?;
        Some(*found)
    }

    fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self {
            OtherCharset::Renamed(encoding) => encoding.decode_without_bom_handling(bytes).0,
            OtherCharset::Iso2022 => Cow::Owned(decode_iso_2022(bytes)),
            OtherCharset::CodePage437 => Cow::Owned(decode_code_page_437(bytes)),
            OtherCharset::Utf32 { is_big_endian } => Cow::Owned(decode_utf32(bytes, is_big_endian)),
        }
    }
}

/// Returns whether the WHATWG encoding standard does not have a character set, or not under this
/// name; false for unknown names, too.
pub(crate) fn is_other_charset(label: &str) -> bool {
    OtherCharset::find(label).is_some()
}

/// Decodes text in the named character set; `None`: the name is unknown. Bytes that are not of the
/// set become U+FFFD.
#[must_use]
pub(crate) fn decode_named_charset<'b>(bytes: &'b [u8], label: &str) -> Option<Cow<'b, str>> {
    if let Some(charset) = OtherCharset::find(label) {
        return Some(charset.decode(bytes));
    }
    // The parser's table has UTF-7 and code page 850 besides, and reads byte-order marks.
    match charset_decoder(label.trim().as_bytes()) {
        Some(decode) => Some(Cow::Owned(decode(bytes))),
        None => Encoding::for_label(label.trim().as_bytes())
            .map(|encoding| encoding.decode_without_bom_handling(bytes).0),
    }
}

fn decode_code_page_437(bytes: &[u8]) -> String {
    let high: Vec<char> = CODE_PAGE_437.chars().collect();
    let decode = |byte: &u8| match byte.checked_sub(0x80) {
        None => char::from(*byte),
        Some(at) => high.get(usize::from(at)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    bytes.iter().map(decode).collect()
}

fn decode_utf32(bytes: &[u8], is_big_endian: Option<bool>) -> String {
    // A character in the other order is beyond Unicode, unless it is NUL.
    let is_big_endian = is_big_endian.unwrap_or_else(|| bytes.first() == Some(&0));
    let (units, rest) = bytes.as_chunks::<4>();
    let decode = |unit: &[u8; 4]| {
        let number =
            if is_big_endian { u32::from_be_bytes(*unit) } else { u32::from_le_bytes(*unit) };
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    let text: String = units.iter().map(decode).filter(|c| *c != '\u{feff}').collect();
    if rest.is_empty() { text } else { text + "\u{fffd}" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_single_systems_and_sets_outside_of_the_standard() {
        for (label, bytes, text) in [
            ("cp932", &b"\x93\xfa\x96{"[..], "日本"),
            ("CP949", b"\xc7\xd1\xb1\xdb", "한글"),
            ("ms949", b"\xc7\xd1\xb1\xdb", "한글"),
            ("cp950", b"\xa4\xa4\xa4\xe5", "中文"),
            ("cp874", b"\xe4\xb7\xc2", "ไทย"),
            ("cp437", b"M\x81ller \xe1\xff", "Müller ß\u{a0}"),
            ("IBM437", b"\x80\xfe", "Ç■"),
            ("cp850", b"M\x81ller", "Müller"),
            ("utf-7", b"M+APw-ller", "Müller"),
            ("utf-32", b"\0\0\xfe\xff\0\0\0\xfc", "ü"),
            ("utf-32", b"\xff\xfe\0\0\xfc\0\0\0", "ü"),
            ("utf-32le", b"\xfc\0\0\0x\0\0", "ü\u{fffd}"),
            ("UTF-32BE", b"\0\x01\xf6\0\0\x11\0\0", "😀\u{fffd}"),
            ("koi8-r", b"\xf1", "Я"),
        ] {
            assert_eq!(decode_named_charset(bytes, label).as_deref(), Some(text), "{label}");
        }
        assert_eq!(CODE_PAGE_437.chars().count(), 128);
        assert_eq!(decode_named_charset(b"x", "x-nothing"), None);
    }
}
