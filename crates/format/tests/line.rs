//! Content lines: ends, folds, soft breaks.

use larder_format::content_line::content_lines;
use proptest::prelude::*;

#[track_caller]
fn check(input: &str, expect: &[(u32, &str)]) {
    let found: Vec<(u32, String)> = content_lines(input.as_bytes())
        .map(|line| (line.number, String::from_utf8_lossy(&line.text).into_owned()))
        .collect();
    let found: Vec<(u32, &str)> = found.iter().map(|(number, text)| (*number, &**text)).collect();
    assert_eq!(found, expect, "{input:?}");
}

#[test]
fn every_kind_of_line_end_is_recognised() {
    check("", &[]);
    check("A:1\nB:2\n", &[(1, "A:1"), (2, "B:2")]);
    check("A:1\r\nB:2", &[(1, "A:1"), (2, "B:2")]);
    check("A:1\r\r\nB:2\r\r\n", &[(1, "A:1"), (2, "B:2")]);
    check("A:1\rB:2\rC;D=1:3\r", &[(1, "A:1"), (2, "B:2"), (3, "C;D=1:3")]);
    check("A:1\rnot a name\nB:2", &[(1, "A:1\rnot a name"), (2, "B:2")]);
    check("A:1\r\r\r\nB:2", &[(1, "A:1\r"), (2, "B:2")]);
    check("A:1\n\n\r\nB:2\n", &[(1, "A:1"), (4, "B:2")]);
    check(" \n\t\nA:1", &[(3, "A:1")]);
}

#[test]
fn folded_lines_are_joined() {
    check("NOTE:a\n b\n\tc\nB:2", &[(1, "NOTE:ab\tc".replace('\t', "").as_str()), (4, "B:2")]);
    check("NOTE:a\r\n  b\r\n", &[(1, "NOTE:a b")]);
    check("NOTE:a\n \n b\n", &[(1, "NOTE:ab")]);
    check("NOTE:a\n\n b\n", &[(1, "NOTE:a"), (3, " b")]);
    check(" a\nB:2\n", &[(1, " a"), (2, "B:2")]);
}

#[test]
fn folds_inside_a_character_are_removed() {
    let found: Vec<_> = content_lines(b"FN:J\xc3\n \xbcrgen\n").collect();
    assert_eq!(found[0].text.as_ref(), "FN:Jürgen".as_bytes());
    assert_eq!(found[0].raw, b"FN:J\xc3\n \xbcrgen\n");
}

#[test]
fn soft_breaks_are_joined() {
    check("A;QUOTED-PRINTABLE:a=\nb=\r\nc\nB:2", &[(1, "A;QUOTED-PRINTABLE:abc"), (4, "B:2")]);
    check("A;ENCODING=quoted-printable:=\n;x", &[(1, "A;ENCODING=quoted-printable:;x")]);
    check("A;QUOTED-PRINTABLE:a=\n b", &[(1, "A;QUOTED-PRINTABLE:a b")]);
    check("A;QUOTED-PRINTABLE:a=\n\nB:2", &[(1, "A;QUOTED-PRINTABLE:a"), (3, "B:2")]);
    check("A;QUOTED-PRINTABLE:a=\nEND:VCARD", &[(1, "A;QUOTED-PRINTABLE:a="), (2, "END:VCARD")]);
    check("A;ENCODING=b:aGk=\nB:2", &[(1, "A;ENCODING=b:aGk="), (2, "B:2")]);
    check("A:QUOTED-PRINTABLE=\nB:2", &[(1, "A:QUOTED-PRINTABLE="), (2, "B:2")]);
}

/// Phones write the lines of a picture in vCard 2.1 without the blank that folds them.
#[test]
fn base64_continues_without_a_blank() {
    for head in ["PHOTO;ENCODING=BASE64;JPEG", "photo;base64", "KEY;TYPE=PGP;ENCODING=b"] {
        let card = |rest: &str| format!("{head}:AAEC\n{rest}");
        check(&card("AwQ/\r\nBg+=\n\nFN:a"), &[(1, &format!("{head}:AAECAwQ/Bg+=")), (5, "FN:a")]);
        check(
            &card(" AwQF\nBgcI\nEND:VCARD"),
            &[(1, &format!("{head}:AAECAwQFBgcI")), (4, "END:VCARD")],
        );
        // A line with another character is no base64.
        check(&card("not this\n"), &[(1, &format!("{head}:AAEC")), (2, "not this")]);
    }
    for line in ["NOTE:AAEC", "NOTE;X=BASE64x:AAEC", "NOTE;TYPE=b:AAEC", "BASE64:AAEC"] {
        check(&format!("{line}\nAwQF\n"), &[(1, line), (2, "AwQF")]);
    }
}

#[test]
fn unfolded_lines_are_borrowed() {
    for line in content_lines(b"BEGIN:VCARD\r\nFN:Anna\r\nEND:VCARD\r\n") {
        assert!(matches!(line.text, std::borrow::Cow::Borrowed(_)));
    }
}

proptest! {
    /// Only blank lines are left out, and line numbers ascend.
    #[test]
    fn raw_lines_make_the_whole(bytes in "([A-Z:;= \t\r\n]|=\n|QUOTED-PRINTABLE){0,60}") {
        let (mut rest, mut number) = (bytes.as_bytes(), 0);
        for line in content_lines(bytes.as_bytes()) {
            prop_assert!(line.number > number);
            number = line.number;
            let at = rest.windows(line.raw.len()).position(|window| window == line.raw);
            let (skipped, tail) = rest.split_at(at.expect("raw is a part of the rest"));
            prop_assert!(skipped.iter().all(u8::is_ascii_whitespace));
            rest = &tail[line.raw.len()..];
        }
        prop_assert!(rest.iter().all(u8::is_ascii_whitespace));
    }
}

#[test]
fn hostile_lines_take_linear_time() {
    let params = "X=1;".repeat(250_000);
    for (head, part) in
        [(format!("A;{params}QUOTED-PRINTABLE:"), "=\n"), ("A;QUOTED-PRINTABLE".into(), "=\n ")]
    {
        let input = head + &part.repeat(500_000);
        assert!(content_lines(input.as_bytes()).count() >= 1);
    }
}
