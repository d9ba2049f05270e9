//! The properties of generated address books that benchmarks rely on.
//!
//! The cards are parsed by code of this file, not by Larder's parser, because the address books
//! serve to measure it.

use std::collections::HashSet;
use std::io;

use larder_generate::write_contacts;
use proptest::prelude::*;

/// A sample in which a share of 2 % deviates by a few tenths at most.
const MANY: u64 = 20_000;

fn book(n: u64, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_contacts(n, seed, &mut bytes).unwrap();
    bytes
}

/// Returns the cards of a book, which must contain nothing else.
fn cards(book: &[u8]) -> Vec<&str> {
    let text = str::from_utf8(book).unwrap();
    let mut cards = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find("\nEND:VCARD") {
        let length = end + 1 + rest[end + 1..].find('\n').unwrap() + 1;
        let (card, tail) = rest.split_at(length);
        assert!(card.starts_with("BEGIN:VCARD"), "{card}");
        assert_eq!(card.matches("BEGIN:VCARD").count(), 1, "{card}");
        cards.push(card);
        rest = tail;
    }
    assert_eq!(rest, "");
    cards
}

/// Returns the lines of a card, without folds and soft line breaks.
fn unfold(card: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut soft = false;
    for line in card.lines() {
        match lines.last_mut() {
            Some(last) if soft => {
                last.pop();
                last.push_str(line);
            }
            Some(last) if line.starts_with(' ') => last.push_str(&line[1..]),
            _ => lines.push(line.to_owned()),
        }
        let whole = &lines[lines.len() - 1];
        soft = whole.contains("QUOTED-PRINTABLE:") && whole.ends_with('=');
    }
    lines
}

/// Returns the name of a property, without group and parameters; empty for the blank line after the
/// base64 of 2.1.
fn property(line: &str) -> &str {
    let head = line.split([':', ';']).next().unwrap_or_default();
    head.rsplit('.').next().unwrap_or_default()
}

/// Asserts that `holds` is true for `share` percent of the cards, within `slack`.
fn check_share(what: &str, cards: &[&str], share: f64, slack: f64, holds: impl Fn(&str) -> bool) {
    let found = cards.iter().filter(|card| holds(card)).count() as f64;
    let found = found * 100.0 / cards.len() as f64;
    assert!((found - share).abs() <= slack, "{what}: {found:.2} %, expected {share} %");
}

#[test]
fn equal_arguments_give_equal_bytes() {
    assert!(book(500, 7) == book(500, 7));
    assert!(book(500, 7) != book(500, 8));
    assert_eq!(book(0, 7), b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_smaller_book_is_a_prefix_of_a_larger_one(seed: u64, small in 0_u64..60, more in 0_u64..60) {
        prop_assert!(book(small + more, seed).starts_with(&book(small, seed)));
    }

    #[test]
    fn any_seed_gives_complete_cards(seed: u64, n in 0_u64..40) {
        prop_assert_eq!(cards(&book(n, seed)).len() as u64, n);
    }
}

#[test]
fn the_mix_is_as_documented() {
    let book = book(MANY, 1);
    let cards = cards(&book);
    let has = |property: &'static str| move |card: &str| card.contains(property);
    check_share("2.1", &cards, 20.0, 1.0, has("\nVERSION:2.1\r\n"));
    check_share("3.0", &cards, 50.0, 1.5, has("\nVERSION:3.0"));
    check_share("4.0", &cards, 30.0, 1.5, has("\nVERSION:4.0"));
    check_share("photo", &cards, 2.0, 0.4, has("\nPHOTO"));
    check_share("LF", &cards, 10.0, 1.0, |card| !card.contains('\r'));
    check_share("organisation", &cards, 60.0, 1.5, has("\nORG"));
    check_share("birthday", &cards, 40.0, 1.5, has("\nBDAY"));
    check_share("note", &cards, 50.0, 1.5, has("\nNOTE"));
    check_share("groups", &cards, 16.5, 1.5, has("\nitem1."));
    check_share("extension", &cards, 55.0, 8.0, |card| {
        unfold(card).iter().any(|line| property(line).starts_with("X-"))
    });
    check_share("quoted-printable", &cards, 17.0, 3.0, has(";ENCODING=QUOTED-PRINTABLE:"));

    let plain: Vec<_> = cards.iter().filter(|card| !card.contains("\nPHOTO")).collect();
    let mean = plain.iter().map(|card| card.len()).sum::<usize>() / plain.len();
    assert!((650..=750).contains(&mean), "a card has {mean} bytes");
}

#[test]
fn every_script_occurs() {
    let book = book(MANY, 3);
    let text = str::from_utf8(&book).unwrap();
    // One name of each culture that is not ASCII, from cards without quoted-printable.
    for name in [
        "Müller",
        "Groß",
        "Élodie",
        "Íñigo",
        "Łukasz",
        "Dvořák",
        "Åsa",
        "Øystein",
        "Yılmaz",
        "İbrahim",
        "Nguyễn",
        "Ελένη",
        "Фёдор",
        "Їжакевич",
        "محمد",
        "כהן",
        "राहुल",
        "สมชาย",
        "王",
        "陳",
        "佐藤",
        "김",
    ] {
        assert!(text.contains(name), "{name} does not occur");
    }
}

#[test]
fn lines_are_valid() {
    for card in cards(&book(MANY, 2)) {
        let newline = if card.contains('\r') { "\r\n" } else { "\n" };
        let old = card.contains("VERSION:2.1");
        let mut soft = false;
        for line in card.split_inclusive('\n') {
            let text = line.strip_suffix(newline).unwrap_or_else(|| panic!("{line:?} in\n{card}"));
            assert!(!text.contains(['\r', '\n', '\t']), "{line:?}");
            assert!(text.len() <= 75, "{line:?} is too long");
            if old {
                assert!(text.is_ascii(), "{line:?}");
                assert!(!text.starts_with(' ') || soft || card.contains("BASE64"), "{line:?}");
            } else {
                assert!(!text.is_empty() && text != " ", "an empty line in\n{card}");
            }
            soft = old && text.ends_with('=') && !text.contains("END:");
        }
        for line in unfold(card).iter().filter(|line| !line.is_empty()) {
            let named = property(line);
            assert!(!named.is_empty() && line.contains(':'), "{line:?} in\n{card}");
            assert!(
                named
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'-' || named == "X-ABLabel"),
                "{line:?}"
            );
        }
    }
}

/// Decodes quoted-printable; panics if a soft break is inside a character.
fn decode(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'=' {
            bytes.push(u8::from_str_radix(str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Returns the value of a line of vCard 2.1, in quoted-printable or plain.
fn old_value(line: &str) -> String {
    let (head, value) = line.split_once(':').unwrap();
    if !head.ends_with(";ENCODING=QUOTED-PRINTABLE") {
        return value.to_owned();
    }
    let text = decode(value);
    assert_eq!(head.contains(";CHARSET=UTF-8"), !text.is_ascii(), "{line}");
    text
}

#[test]
fn quoted_printable_is_decoded_to_text() {
    let book = book(MANY, 4);
    let mut beyond_ascii = HashSet::new();
    for card in cards(&book).iter().filter(|card| card.contains("VERSION:2.1")) {
        let lines = unfold(card);
        let value = |name| old_value(lines.iter().find(|line| property(line) == name).unwrap());
        let (parts, shown) = (value("N"), value("FN"));
        for part in parts.split(';') {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
        if !shown.is_ascii() {
            beyond_ascii.insert(shown);
        }
    }
    assert!(beyond_ascii.len() > 500, "{} names", beyond_ascii.len());
}

#[test]
fn photos_are_base64_of_the_documented_size() {
    let mut photos = 0;
    for card in cards(&book(MANY, 5)) {
        let lines = unfold(card);
        let Some(line) = lines.iter().find(|line| property(line) == "PHOTO") else { continue };
        let data = line.rsplit([':', ',']).next().unwrap();
        let padding = data.bytes().rev().take_while(|&byte| byte == b'=').count();
        let size = data.len() / 4 * 3 - padding;
        assert!(data.len() % 4 == 0 && (2_048..=12_288).contains(&size), "{size} bytes");
        assert!(data.starts_with("/9j/4AAQSkZJRgAB"), "{}", &data[..16]);
        assert!(data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
        photos += 1;
    }
    assert!(photos > 0);
}

#[test]
fn properties_occur_as_often_as_documented() {
    for card in cards(&book(2_000, 6)) {
        let lines = unfold(card);
        let count = |name: &str| lines.iter().filter(|line| property(line) == name).count();
        for (name, least, most) in [
            ("VERSION", 1, 1),
            ("N", 1, 1),
            ("FN", 1, 1),
            ("TEL", 1, 3),
            ("EMAIL", 1, 3),
            ("ADR", 1, 2),
            ("REV", 1, 1),
            ("UID", usize::from(!card.contains("VERSION:2.1")), 1),
        ] {
            assert!((least..=most).contains(&count(name)), "{} {name} in\n{card}", count(name));
        }
        assert_eq!(property(&lines[1]), "VERSION");
    }
}

#[test]
fn uids_are_unique() {
    let mut seen = HashSet::new();
    for card in cards(&book(MANY, 9)) {
        let uid = unfold(card).into_iter().find(|line| property(line) == "UID");
        assert!(uid.is_none_or(|uid| seen.insert(uid)), "seen before, in\n{card}");
    }
    assert!(seen.len() as u64 > MANY * 9 / 10);
}

/// All addresses are ASCII and have domains reserved by RFC 2606.
#[test]
fn addresses_are_reserved() {
    for card in cards(&book(MANY, 10)) {
        for line in unfold(card).iter().filter(|line| property(line) == "EMAIL") {
            let address = line.rsplit(':').next().unwrap();
            let (local, domain) = address.split_once('@').unwrap();
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
            assert!(local.bytes().all(is_allowed) && !local.starts_with('.'), "{address}");
            let reserved = domain.ends_with(".example")
                || ["com", "org", "net"]
                    .iter()
                    .any(|top| domain.ends_with(&format!("example.{top}")));
            assert!(reserved, "{address}");
        }
    }
}

/// A writer that fails after a number of bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_writer_are_returned() {
    for room in [0, 100_000] {
        let error = write_contacts(1_000, 1, &mut Full(room)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
