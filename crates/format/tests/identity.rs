//! Derived UIDs, equality of cards, and the insertion of a UID.

use larder_format::contact::{Contact, derive_uid, is_same_card};
use larder_format::edit::insert_uid;
use larder_format::item_revision::ItemRevision;
use proptest::prelude::*;

#[test]
fn derived_uids_ignore_the_last_line_end() {
    let uid = derive_uid(b"BEGIN:VCARD\nFN:Anna\nEND:VCARD\n");
    assert_eq!(uid, "larder-372d8e403f38467c4a339f6988e17e40");
    assert_eq!(uid, derive_uid(b"BEGIN:VCARD\nFN:Anna\nEND:VCARD"));
    assert_eq!(uid, derive_uid(b"BEGIN:VCARD\nFN:Anna\nEND:VCARD\r\n\r\n"));
    assert_ne!(uid, derive_uid(b"BEGIN:VCARD\nFN:Anne\nEND:VCARD\n"));
}

/// A card in UTF-16 is exported as UTF-8, and is the same contact when it is imported again.
#[test]
fn derived_uids_do_not_depend_on_utf_16() {
    let card = "BEGIN:VCARD\r\nFN:Jürgen 国\r\nEND:VCARD";
    for encode in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
        for wide in [format!("{card}\r\n"), format!("\u{feff}{card}")] {
            let wide: Vec<u8> = wide.encode_utf16().flat_map(encode).collect();
            assert_eq!(derive_uid(&wide), derive_uid(card.as_bytes()));
        }
    }
}

#[test]
fn equal_cards_differ_only_in_the_last_line_end() {
    for (a, b, expect) in [
        (&b"A\nB"[..], &b"A\nB\r\n"[..], true),
        (b"A\nB", b"A\r\nB", false),
        (b"", b"\n", true),
        (b"B\0E\0\r\0\n\0", b"B\0E\0", true),
        (b"\0B\0E\0\n", b"\0B\0E", true),
        (b"B\0E\0\x0a\x0a", b"B\0E\0", false),
    ] {
        assert_eq!(is_same_card(a, b), expect, "{a:?} {b:?}");
        assert_eq!(derive_uid(a) == derive_uid(b), expect, "{a:?} {b:?}");
    }
}

#[test]
fn revisions_are_read_without_parsing() {
    let check = |lines: &str, expect: Option<(&str, &str, u64)>| {
        let event = format!("BEGIN:VEVENT\n{lines}\nEND:VEVENT\n");
        let found = ItemRevision::read(event.as_bytes());
        let text = |bytes| std::str::from_utf8(bytes).expect("text");
        let found = found.map(|one| (text(one.uid), text(one.recurrence_id), one.sequence));
        assert_eq!(found, expect, "{lines:?}");
    };
    check("UID:a\nSEQUENCE:3", Some(("a", "", 3)));
    check(
        "SEQUENCE:x\nuid;X=1:a\r\nRECURRENCE-ID;TZID=B:20260101T100000\r",
        Some(("a", "20260101T100000", 0)),
    );
    check("BEGIN:VALARM\nUID:alarm\nSEQUENCE:9\nEND:VALARM\nUID:a", Some(("a", "", 0)));
    check("SUMMARY:x\n UID:folded\nUIDX:a\nUID:", None);
    check("DESCRIPTION:BEGIN:x\nUID:a\nUID:b\nSEQUENCE:1\nSEQUENCE:2", Some(("a", "", 1)));
    assert_eq!(ItemRevision::read(b""), None);
}

#[test]
fn uids_are_inserted() {
    for (card, expect) in [
        (
            "BEGIN:VCARD\nVERSION:3.0\nFN:a\nEND:VCARD\n",
            "BEGIN:VCARD\nVERSION:3.0\nUID:u\nFN:a\nEND:VCARD\n",
        ),
        ("BEGIN:VCARD\r\nFN:a\r\nEND:VCARD", "BEGIN:VCARD\r\nUID:u\r\nFN:a\r\nEND:VCARD"),
        ("BEGIN:VCARD\rFN:a\rEND:VCARD\r", "BEGIN:VCARD\rUID:u\rFN:a\rEND:VCARD\r"),
        ("BEGIN:VCARD\r\r\nFN:a\r\r\n", "BEGIN:VCARD\r\r\nUID:u\r\r\nFN:a\r\r\n"),
        (
            "BEGIN:VCARD\nAGENT:\nBEGIN:VCARD\nVERSION:2.1\nEND:VCARD\nVERSION:2.1\n\nEND:VCARD\n",
            "BEGIN:VCARD\nAGENT:\nBEGIN:VCARD\nVERSION:2.1\nEND:VCARD\nVERSION:2.1\nUID:u\n\nEND:VCARD\n",
        ),
        (
            "\u{feff}BEGIN:VCARD\nVERSION:4\n .0\nEND:VCARD",
            "\u{feff}BEGIN:VCARD\nVERSION:4\n .0\nUID:u\nEND:VCARD",
        ),
        ("BEGIN:VCARD", "BEGIN:VCARD\nUID:u"),
        ("", "UID:u\n"),
    ] {
        let found = insert_uid(card.as_bytes(), "u");
        assert_eq!(String::from_utf8_lossy(&found), expect, "{card:?}");
        for encode in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(encode).collect() };
            if !card.is_empty() {
                assert_eq!(insert_uid(&wide(card), "u"), wide(expect), "{card:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn an_inserted_uid_is_found(uid in "[!-~é\\\\,;]{1,30}", end in prop::sample::select(vec!["\n", "\r\n"])) {
        let card = format!("BEGIN:VCARD{end}VERSION:3.0{end}NOTE:UID{end}END:VCARD{end}");
        let with = insert_uid(card.as_bytes(), &uid);
        prop_assert_eq!(Contact::parse(&with).uid(), Some(uid));
    }

    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>(), uid in any::<String>()) {
        prop_assert!(insert_uid(&bytes, &uid).len() > bytes.len());
        prop_assert!(is_same_card(&bytes, &bytes));
    }
}
