//! Transfer encodings, character sets, escapes.

use larder_format::decoding::{
    decode_base64, decode_charset, decode_quoted_printable, decode_utf16, decode_uuencode,
    split_structured, unescape_text,
};
use proptest::prelude::*;

#[test]
fn quoted_printable_is_decoded() {
    for (input, expect) in [
        ("", ""),
        ("plain", "plain"),
        ("J=C3=BCrgen", "Jürgen"),
        ("J=c3=bcrgen", "Jürgen"),
        ("a=0D=0Ab", "a\r\nb"),
        ("a=\nb=\r\nc", "abc"),
        ("1+1=2", "1+1=2"),
        ("50=zz", "50=zz"),
        ("end=", "end"),
        ("end=4", "end=4"),
        ("=3D=3D", "=="),
    ] {
        let found = decode_quoted_printable(input.as_bytes());
        assert_eq!(String::from_utf8_lossy(&found), expect, "{input:?}");
    }
}

#[test]
fn base64_is_decoded() {
    for (input, expect) in [
        ("", Some("")),
        ("aGVsbG8=", Some("hello")),
        ("aGVsbG8", Some("hello")),
        (" aGVs\r\n\tbG8 = ", Some("hello")),
        ("8J+Riw==", Some("👋")),
        ("8J-Riw", Some("👋")),
        ("a", None),
        ("not base64!", None),
        ("aGVs=bG8=", None),
    ] {
        let found = decode_base64(input.as_bytes());
        assert_eq!(found.as_deref(), expect.map(str::as_bytes), "{input:?}");
    }
}

#[test]
fn uuencode_is_decoded() {
    for (input, expect) in [
        ("begin 644 cat.txt\n#0V%T\n`\nend\n", Some("Cat")),
        (
            "before\r\n\r\nbegin 0644 a b\r\n#0V%T\r\n#0V%T\r\n`\r\nend\r\nbehind\r\n",
            Some("CatCat"),
        ),
        ("begin 644 cat\n$0V%T\"@\n \nend\n", Some("Cat\n")),
        // Without the spaces at the end of a line, with a check sum, and without an end.
        ("begin 644 x\n#04$\n", Some("AA\0")),
        ("begin 644 x\n#0V%TX\n", Some("Cat")),
        ("begin 644 x\n`\nend\n", Some("")),
        ("begin 644 x\n", Some("")),
        ("", None),
        ("begin tomorrow at nine\n#0V%T\n", None),
        ("begin 644 x\n#0V%T\nThis is no line of it.\n", None),
    ] {
        let found = decode_uuencode(input.as_bytes());
        assert_eq!(found.as_deref(), expect.map(str::as_bytes), "{input:?}");
    }
    assert_eq!(decode_uuencode(format!("begin 644 x\n{}", "M\n".repeat(1000)).as_bytes()), None);
}

#[test]
fn character_sets_are_decoded() {
    for (input, label, expect) in [
        (&b"J\xc3\xbcrgen"[..], None, "Jürgen"),
        (b"J\xfcrgen", None, "Jürgen"),
        (b"J\xfcrgen", Some("ISO-8859-1"), "Jürgen"),
        (b"J\xc3\xbcrgen", Some("UTF-8"), "Jürgen"),
        (b"J\xfcrgen", Some("utf-8"), "Jürgen"),
        (b"\x93\xfa\x96\x7b", Some("Shift_JIS"), "日本"),
        (b"\xc8\xe2\xe0\xed", Some("windows-1251"), "Иван"),
        (b"J\xc3\xbcrgen", Some("no such set"), "Jürgen"),
        (b"\x80 5", None, "€ 5"),
        // One damaged character does not change the others.
        (b"\xe5\x9b\xbd Gr\xc3\xb6\xc3\x9fe \xe5\x9b", None, "国 Größe \u{fffd}"),
        (b"\xe5\x9b\xbd Gr\xc3\xb6\xc3\x9fe \xe5", None, "国 Größe \u{fffd}"),
        (b"\xe5\x9b z \xe5\x9b\xbd", None, "\u{fffd} z 国"),
        (b"Gr\xf6\xdfe, \xc3\xbc", None, "Größe, ü"),
        (b"na\xefve \xe9\x9b", None, "naïve é›"),
    ] {
        assert_eq!(decode_charset(input, label), expect, "{input:?} {label:?}");
    }
}

#[test]
fn escapes_are_decoded() {
    for (input, expect) in [
        ("plain", "plain"),
        (r"a\nb\Nc", "a\nb\nc"),
        (r"a\,b\;c\\d\:e", "a,b;c\\d:e"),
        (r"\x\", r"\x\"),
        (r"\\n", r"\n"),
    ] {
        assert_eq!(unescape_text(input), expect, "{input:?}");
    }
}

#[test]
fn structured_values_are_split() {
    for (input, separator, expect) in [
        ("", ';', &[""][..]),
        ("Berg;Anna;;;", ';', &["Berg", "Anna", "", "", ""]),
        (r"a\;b;c", ';', &["a;b", "c"]),
        (r"a\\;b", ';', &["a\\", "b"]),
        (r"a\,b,c;d", ',', &["a,b", "c;d"]),
        (r"a;b\", ';', &["a", r"b\"]),
        (r"ä\ö;ü", ';', &[r"ä\ö", "ü"]),
    ] {
        assert_eq!(split_structured(input, separator), expect, "{input:?}");
    }
}

#[test]
fn items_in_utf16_are_decoded() {
    let check = |item: &[u8], expect: Option<&str>| {
        assert_eq!(decode_utf16(item).as_deref(), expect, "{item:?}");
    };
    check(b"\xff\xfeB\0\xfc\0", Some("Bü"));
    check(b"\xfe\xff\0B\0\xfc", Some("Bü"));
    check(b"B\0E\0\0\xd8", Some("BE\u{fffd}"));
    check(b"\0b\0e\0g", Some("beg"));
    // One zero byte does not make a text UTF-16. The splitter has the same rule.
    check(b"B\0EGIN:VCARD", None);
    check(b"BEGIN:VCARD", None);
    check(b"", None);
}

/// Decodes base64 from all of its bits at once.
fn model_base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.split_ascii_whitespace().collect();
    let digits = text.trim_end_matches('=');
    let mut bits = String::new();
    for digit in digits.chars() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = if digit == '-' { '+' } else { digit };
        bits += &format!("{:06b}", alphabet.find(if digit == '_' { '/' } else { digit })?);
    }
    let bytes = bits.as_bytes().chunks_exact(8);
    let is_whole = bytes.remainder().len() < 6;
    let byte = |bits: &[u8]| bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0'));
    is_whole.then(|| bytes.map(byte).collect())
}

/// Decodes quoted-printable piece by piece.
fn model_quoted_printable(text: &str) -> Vec<u8> {
    let mut pieces = text.split('=');
    let mut decoded = pieces.next().unwrap_or_default().as_bytes().to_vec();
    let mut rest_count = pieces.clone().count();
    for piece in pieces {
        rest_count -= 1;
        let hex = piece.split_at_checked(2);
        let hex = hex.filter(|(hex, _)| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let byte = hex.and_then(|(hex, rest)| Some((u8::from_str_radix(hex, 16).ok()?, rest)));
        match byte {
            Some((byte, rest)) => decoded.extend([&[byte], rest.as_bytes()].concat()),
            None if piece.is_empty() && rest_count == 0 => {}
            None => match piece.strip_prefix("\r\n").or_else(|| piece.strip_prefix('\n')) {
                Some(rest) => decoded.extend(rest.as_bytes()),
                None => decoded.extend([b"=", piece.as_bytes()].concat()),
            },
        }
    }
    decoded
}

#[test]
fn each_byte_is_a_digit_of_base64_or_none() {
    for byte in 0..=u8::MAX {
        let found = decode_base64(&[b'Q', byte, b'U', b'I', b'J']);
        let expect = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => Some(b"A\x42\x09".to_vec()),
            // Five digits have six bits behind the last byte.
            _ => None,
        };
        assert_eq!(found, expect, "{byte}");
        let found = decode_base64(&[b'A', b'A', b'A', byte]);
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' | b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => {
                assert_eq!(found.as_deref(), Some(&[0, 0][..]), "{byte}");
                continue;
            }
            _ => {
                assert_eq!(found, None, "{byte}");
                continue;
            }
        };
        assert_eq!(found, Some(vec![0, 0, digit]), "{byte}");
    }
}

proptest! {
    #[test]
    fn base64_is_as_in_the_model(
        text in "([A-Za-z0-9+/]{4}|[A-Za-z0-9_-]|[ \t\r\n]){0,12}[= \n]{0,3}[!A]?",
    ) {
        prop_assert_eq!(decode_base64(text.as_bytes()), model_base64(&text));
    }

    #[test]
    fn quoted_printable_is_as_in_the_model(
        text in "(=[0-9A-Fa-f]{2}|=\r?\n|[a-c =\r\n\u{e4}]){0,20}",
    ) {
        let decoded = decode_quoted_printable(text.as_bytes());
        prop_assert_eq!(decoded.into_owned(), model_quoted_printable(&text));
    }

    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>(), text in ".*", label in ".{0,12}") {
        let _ = (decode_quoted_printable(&bytes), decode_base64(&bytes), decode_charset(&bytes, Some(&label)));
        let _ = decode_uuencode(&[b"begin 644 x\n", &*bytes].concat());
        prop_assert!(!split_structured(&text, ';').is_empty());
    }

    #[test]
    fn escaping_is_undone(text in r"[a-z\\;,]{0,20}") {
        let escaped = text.replace('\\', r"\\").replace(';', r"\;").replace(',', r"\,");
        prop_assert_eq!(split_structured(&escaped, ';'), vec![text]);
    }
}
