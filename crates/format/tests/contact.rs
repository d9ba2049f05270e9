//! Contacts: problems, refusals, versions.

use larder_format::contact::{Contact, MAX_PROPERTIES_PER_ITEM, VcardVersion, convert_card};
use proptest::prelude::*;

/// Formats each problem as `line: problem`, then the refusal.
fn show(card: &[u8]) -> Vec<String> {
    let contact = Contact::parse(card);
    let problems = contact.problems().iter().map(|p| format!("{}: {p}", p.line));
    problems.chain(contact.fatal_problem().map(|p| format!("{}: refused: {p}", p.line))).collect()
}

#[track_caller]
fn check(card: &str, expect: &[&str]) {
    assert_eq!(show(card.as_bytes()), expect, "{card:?}");
}

#[test]
fn harmless_cards_have_no_problem() {
    check("BEGIN:VCARD\nVERSION:3.0\nFN:Anna\nEND:VCARD\n", &[]);
    check("BEGIN:VCARD\nN:Berg;Anna\nEND:VCARD", &[]);
    check("BEGIN:VCARD\nFN:Anna\nUID:1\nUID:1\nUID:\nEND:VCARD", &[]);
    check("begin:vcard\r\nfn:Anna\r\nend:vcard\r\n", &[]);
    check("\u{feff}BEGIN:VCARD\nFN:Jürgen\nEND:VCARD\n", &[]);
    check("BEGIN:VCARD\nEMAIL:a@example.org\nEND:VCARD\n", &[]);
}

#[test]
fn problems_name_their_line() {
    const NO_COLON: &str = "no colon in this line: it is kept but ignored";
    let card = "BEGIN:VCARD\nFN:Anna\nno colon\nnone here\nNOTE:x\nnone again\nEND:VCARD";
    check(card, &[&format!("3: {NO_COLON}"), &format!("6: {NO_COLON}")]);
    check(
        "BEGIN:VCARD\nFN:Anna\n**TEL:1\nEND:VCARD",
        &["3: no property name in this line: it is kept but ignored"],
    );
    check(
        "BEGIN:VCARD\nFN:Anna\nTEL;TYPE=\"home:1\nEND:VCARD",
        &["3: unclosed quote before the colon"],
    );
    check("BEGIN:VCARD\nFN:An\0na\nEND:VCARD", &["2: NUL byte: removed from the value"]);
    check("BEGIN:VCARD\nFN:Anna\n", &["2: missing END:VCARD"]);
    check(
        "BEGIN:VCARD\nUID:1\nTEL:1\n",
        &["3: missing END:VCARD", "1: no name, organisation or e-mail address in this card"],
    );
    check("BEGIN:VCARD\nFN:Anna\nUID:1\nUID: \nUID:2\nEND:VCARD", &["5: second UID: ignored"]);
    check(
        "BEGIN:VCARD\nTEL:1\nEND:VCARD",
        &["1: no name, organisation or e-mail address in this card"],
    );
    let latin = b"BEGIN:VCARD\nFN:J\xfcrgen\nNOTE:\xfc\nEND:VCARD";
    assert_eq!(show(latin), ["2: not UTF-8: read as Windows-1252"]);
    assert!(show(b"BEGIN:VCARD\nFN;CHARSET=ISO-8859-1:J\xfcrgen\nEND:VCARD").is_empty());
    assert!(show(b"BEGIN:VCARD\nFN:J\xc3\n \xbcrgen\nEND:VCARD").is_empty());
}

#[test]
fn the_number_of_problems_is_bounded() {
    let card = format!("BEGIN:VCARD\nFN:Anna\n{}END:VCARD", "none\nNOTE:x\n".repeat(1000));
    assert_eq!(show(card.as_bytes()).len(), 20);
    // An incomplete card replaces no other one, so this problem is never left out.
    let problems = show(card.trim_end_matches("END:VCARD").as_bytes());
    assert_eq!(problems.len(), 21);
    assert!(problems[20].ends_with(": missing END:VCARD"), "{problems:?}");
}

#[test]
fn non_cards_are_refused() {
    check("", &["1: refused: not a vCard: no BEGIN:VCARD line"]);
    check("BEGIN:VCALENDAR\nEND:VCALENDAR", &["1: refused: not a vCard: no BEGIN:VCARD line"]);
    check("BEGIN:VCARD\nVERSION:3.0\nEND:VCARD", &["1: refused: empty card"]);
    check("BEGIN:VCARD\nFN:\nTEL: \nEND:VCARD", &["1: refused: empty card"]);
    check("BEGIN:VCARD\nTEL:1\n", &["2: refused: missing END:VCARD"]);
    check("BEGIN:VCARD\nTEL:1\nN:;;;;\n", &["3: refused: missing END:VCARD"]);
}

#[test]
fn a_million_properties_are_parsed() {
    let full = format!("BEGIN:VCARD\n{}END:VCARD\n", "FN:a\n".repeat(MAX_PROPERTIES_PER_ITEM));
    check(&full, &[]);
    let more = format!("BEGIN:VCARD\n{}END:VCARD\n", "FN:a\n".repeat(1_000_000));
    check(&more, &["65538: refused: card with more than 65536 properties"]);
}

#[test]
fn hostile_cards_take_linear_time() {
    let line = |n: usize| format!("IMPP:x{n}\nN:a;b\nTEL;HOME;A;B;C:{n}\n");
    let card = format!("BEGIN:VCARD\n{}END:VCARD\n", (0..20_000).map(line).collect::<String>());
    let contact = Contact::parse(card.as_bytes());
    let count: usize =
        larder_format::field::CONTACT_FIELDS.iter().map(|field| contact.values(field).len()).sum();
    assert!(count > 20_000);
}

#[test]
fn cards_have_a_version() {
    for (lines, expect) in [
        ("VERSION:2.1", VcardVersion::V2_1),
        ("VERSION: 4.0 ", VcardVersion::V4_0),
        ("VERSION:4", VcardVersion::V4_0),
        ("VERSION:3.0\nTEL;HOME:1", VcardVersion::V3_0),
        ("TEL;HOME:1", VcardVersion::V2_1),
        ("TEL;TYPE=HOME:1", VcardVersion::V3_0),
        ("VERSION:odd", VcardVersion::V3_0),
        ("", VcardVersion::V3_0),
    ] {
        let card = format!("BEGIN:VCARD\n{lines}\nFN:a\nEND:VCARD\n");
        assert_eq!(Contact::parse(card.as_bytes()).version(), expect, "{lines}");
    }
}

#[test]
fn nested_cards_do_not_count() {
    for agent in [
        "AGENT:\nBEGIN:VCARD",
        "AGENT:BEGIN:VCARD",
        "BEGIN:X-EXTRA\nUID:x\nEND:X-EXTRA\nAGENT:\nBEGIN:VCARD",
    ] {
        let card =
            format!("BEGIN:VCARD\n{agent}\nUID:inner\nEND:VCARD\nUID:outer\nFN:Anna\nEND:VCARD\n");
        assert_eq!(Contact::parse(card.as_bytes()).uid().as_deref(), Some("outer"), "{agent}");
        check(&card, &[]);
    }
    check("BEGIN:VCARD\nFN:Anna\nBEGIN:X-EXTRA\nUID:x\nEND:VCARD\n", &[]);
}

#[test]
fn utf_16_is_decoded() {
    let card = "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Łukasz 😀\r\nUID:1\r\nEND:VCARD\r\n";
    for text in [card.to_string(), format!("\u{feff}{card}")] {
        for bytes in [
            text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
            text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ] {
            let contact = Contact::parse(&bytes);
            assert_eq!(contact.fatal_problem(), None);
            assert_eq!(contact.properties()[1].text(), "Łukasz 😀");
            assert_eq!(contact.properties()[1].line_number(), 3);
            assert_eq!(contact.uid().as_deref(), Some("1"));
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>(), body in "([A-Z:;=,\"\n\r \\\\]|UID:|N:|FN:|END:VCARD|BEGIN:VCARD|=\r\n|QUOTED-PRINTABLE){0,40}") {
        let card = format!("BEGIN:VCARD\n{body}");
        for bytes in [&bytes[..], card.as_bytes()] {
            let contact = Contact::parse(bytes);
            for field in larder_format::field::CONTACT_FIELDS {
                for value in contact.values(field) {
                    prop_assert!(!value.trim().is_empty(), "{}", field.name);
                }
            }
        }
    }
}

/// A card is converted to another version.
#[test]
fn cards_are_converted_to_another_version() {
    #[track_caller]
    fn check(card: &str, version: VcardVersion, expect: &str) {
        let written =
            convert_card(&Contact::parse(card.as_bytes()), version, "\r\n", &|property| {
                !property.has_name("REV")
            });
        assert_eq!(written.replace("\r\n", "|"), expect, "{card:?}");
    }
    let new =
        "BEGIN:VCARD\nVERSION:4.0\nFN:Anna\\, B\nTEL;VALUE=uri:tel:+43-1\nREV:1\nlost\nEND:VCARD\n";
    check(new, VcardVersion::V3_0, "BEGIN:VCARD|VERSION:3.0|FN:Anna\\, B|TEL:+43-1|END:VCARD|");
    let old = "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Gro=C3=9F;J\nTEL;CELL:1\nEND:VCARD\n";
    check(old, VcardVersion::V3_0, "BEGIN:VCARD|VERSION:3.0|N:Groß;J|TEL;TYPE=CELL:1|END:VCARD|");
    let same = "BEGIN:VCARD\nVERSION:3.0\nitem1.NOTE:a\n  b\nX-A;X-B=c:d\nEND:VCARD";
    check(
        same,
        VcardVersion::V3_0,
        "BEGIN:VCARD|VERSION:3.0|item1.NOTE:a|  b|X-A;X-B=c:d|END:VCARD|",
    );
}
