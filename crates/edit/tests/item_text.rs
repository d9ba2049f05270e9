//! Cards that a person typed or edited: which are taken, and what is said of the others.

use larder_edit::item_text::{
    EditBase, Error, MAX_TEXT_BYTES, SplitText, parse_edited_item, uid_from_random,
};
use larder_store::{CalendarContext, Extractor, Kind};
use larder_time::civil::Instant;

const CARD: &str = "BEGIN:VCARD\nVERSION:4.0\nUID:a\nFN:Anna\nEND:VCARD\n";

/// The UIDs taken, then `LINE: REMARK` for each.
fn parse_text(text: &str) -> Result<String, Error> {
    let typed = SplitText::from_bytes(text.as_bytes())?
        .parse_items(&Extractor::new("C"), &mut || Ok([7; 16]))?;
    let taken = typed.items.iter().map(|card| card.uid().unwrap_or_default().to_string());
    let said = typed.diagnostics.iter().map(|remark| format!("{}: {}", remark.line, remark.kind));
    Ok(taken.chain(said).collect::<Vec<_>>().join("; "))
}

#[test]
fn what_is_typed() {
    let check = |text: &str, expect: &str| match parse_text(text) {
        Ok(typed) => assert_eq!(typed, expect, "{text}"),
        Err(error) => assert_eq!(format!("error: {error}"), expect, "{text}"),
    };
    check(CARD, "a");
    check("", "error: no vCard and no calendar item in the text");
    check("hello\n", "error: no vCard and no calendar item in the text");
    check(&CARD.replace("UID:a\n", ""), "urn:uuid:07070707-0707-4707-8707-070707070707");
    check("BEGIN:VEVENT\nEND:VEVENT\n", "1: empty component");
    check("BEGIN:VEVENT\nUID:b\nDTSTART:20260305\nEND:VEVENT\n", "b");
    check(
        "BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:x\nDUE:tomorrow\nEND:VTODO\nEND:VCALENDAR\n",
        "urn:uuid:07070707-0707-4707-8707-070707070707; 4: \"tomorrow\" is neither a date nor a date-time",
    );
    let early = |kind: &str, lines: &str| format!("BEGIN:{kind}\nUID:b\n{lines}\nEND:{kind}\n");
    for (lines, expect) in [
        ("DTSTART:20260305T120000Z\nDTEND:20260305T110000Z", "b; 4: DTEND is before the start"),
        ("DTEND:20260304\nDTSTART:20260305", "b; 3: DTEND is before the start"),
        // A habit of some programs.
        ("DTSTART:20260305\nDTEND:20260305", "b"),
    ] {
        check(&early("VEVENT", lines), expect);
    }
    let task = "DTSTART:20260305\nDUE:20260304";
    check(&early("VTODO", task), "b; 4: DUE is before the start");
    check(&format!("scribbles\n{CARD}"), "a; 1: text outside any item");
    check(&format!("{CARD}BEGIN:VCARD\nEND:VCARD\n"), "a; 6: empty card");
    check(CARD.trim_end_matches("END:VCARD\n"), "a; 4: missing END:VCARD");
    assert!(matches!(
        SplitText::from_bytes(&vec![b'\n'; MAX_TEXT_BYTES + 1]),
        Err(Error::TooLarge)
    ));
}

#[test]
fn what_comes_back_from_an_editor() {
    let check = |before: &str, after: &str, expect: &str| {
        let original = EditBase {
            kind: Kind::Contact,
            uid: "kept",
            bytes: before.as_bytes(),
            context: &CalendarContext::default(),
        };
        let edited = parse_edited_item(
            &Extractor::new("C"),
            original,
            after.as_bytes(),
            Instant::from_seconds_clamped(0),
        );
        let got = match edited {
            Ok((card, _)) => String::from_utf8_lossy(card.bytes()).into_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, expect);
    };
    let changed = CARD.replace("Anna", "Anne");
    check(CARD, &format!("\n\n{changed}\n"), &changed);
    check(CARD, &format!("{changed}more\n"), "line 6: text outside the item");
    check(CARD, "", "expected one VCARD, found 0");
    check(CARD, &CARD.repeat(2), "expected one VCARD, found 2");
    check(CARD, CARD.trim_end_matches("END:VCARD\n"), "missing END:VCARD");
    check(CARD, &CARD.replace("UID:a\n", ""), "missing line UID:a");
    check(CARD, &CARD.replace("UID:a", "UID:b"), "the UID cannot be changed: it must stay \"a\"");
    // An item without a UID of its own may be given the one it is kept under, and no other.
    let without = CARD.replace("UID:a\n", "");
    check(&without, &without, &without);
    let kept = CARD.replace("UID:a", "UID:kept");
    check(&without, &kept, &kept);
    // A changed one gets it, because an import would not find the item by its new bytes.
    let numbered = without.replace("FN", "TEL:1\nFN");
    check(&without, &numbered, &numbered.replace("TEL", "UID:kept\nTEL"));
}

#[test]
fn a_fresh_uid_is_of_version_4() {
    assert_eq!(uid_from_random([0; 16]), "urn:uuid:00000000-0000-4000-8000-000000000000");
    assert_eq!(uid_from_random([0xff; 16]), "urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff");
}
