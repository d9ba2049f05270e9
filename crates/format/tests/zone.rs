//! Time-zone definitions.

use crate::corpora::calendars;
use crate::split::split;
use larder_format::vtimezone::{VtimezoneDefinition, VtimezoneObservance, normalise_definition};
use proptest::prelude::*;
use std::collections::HashSet;

const PRAGUE: &str = "BEGIN:VTIMEZONE\r\nTZID:Europe/Prague\r\nX-LIC-LOCATION:Europe/Prague\r\nBEGIN:DAYLIGHT\r\n\
    TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nTZNAME:CEST\r\nTZNAME:MESZ\r\nDTSTART:19700329T020000\r\n\
    RRULE:FREQ=YEARLY;BYMONTH=3;\r\n BYDAY=-1SU\r\nEND:DAYLIGHT\r\nBEGIN:standard\r\nTZOFFSETFROM:+0200\r\n\
    TZOFFSETTO:+0100\r\nDTSTART:19701025T030000\r\nRDATE:19701025T030000,19711031T030000\r\n\
    RDATE;VALUE=DATE-TIME:19721029T030000\r\nEND:standard\r\nEND:VTIMEZONE\r\n";

#[test]
fn definitions_are_parsed() {
    let text = |text: &str| text.to_string();
    let expect = VtimezoneDefinition {
        tzid: text("Europe/Prague"),
        location: Some(text("Europe/Prague")),
        observances: vec![
            VtimezoneObservance {
                is_daylight: true,
                dtstart: text("19700329T020000"),
                offset_from: text("+0100"),
                offset_to: text("+0200"),
                rrules: vec![text("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU")],
                rdates: vec![],
                name: Some(text("CEST")),
            },
            VtimezoneObservance {
                is_daylight: false,
                dtstart: text("19701025T030000"),
                offset_from: text("+0200"),
                offset_to: text("+0100"),
                rrules: vec![],
                rdates: ["19701025T030000", "19711031T030000", "19721029T030000"].map(text).into(),
                name: None,
            },
        ],
    };
    assert_eq!(VtimezoneDefinition::parse(PRAGUE.as_bytes()), Some(expect));
}

#[test]
fn names_are_text() {
    let zone = |tzid: &str| {
        let zone =
            format!("BEGIN:VTIMEZONE\nTZID:{tzid}\nBEGIN:STANDARD\nEND:STANDARD\nEND:VTIMEZONE\n");
        VtimezoneDefinition::parse(zone.as_bytes()).map(|zone| zone.tzid)
    };
    assert_eq!(zone("Amsterdam\\, Berlin").as_deref(), Some("Amsterdam, Berlin"));
    assert_eq!(zone("Amsterdam, Berlin ").as_deref(), Some("Amsterdam, Berlin"));
    assert_eq!(zone(""), None);
}

#[test]
fn other_text_is_not_a_definition() {
    for text in [
        "",
        "BEGIN:VEVENT\nTZID:a\nBEGIN:STANDARD\nEND:STANDARD\nEND:VEVENT\n",
        "BEGIN:VTIMEZONE\nTZID:a\nEND:VTIMEZONE\n",
        "BEGIN:VTIMEZONE\nTZID:a\nBEGIN:X-A\nBEGIN:STANDARD\nEND:STANDARD\nEND:X-A\nEND:VTIMEZONE\n",
    ] {
        assert_eq!(VtimezoneDefinition::parse(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn equal_definitions_have_equal_texts() {
    let plain = normalise_definition(PRAGUE.as_bytes());
    assert!(plain.starts_with(b"BEGIN:VTIMEZONE\nTZID:Europe/Prague\n"), "{plain:?}");
    let folded = PRAGUE.replace("Europe", "Eur\r\n\tope").replace("\r\n", "\n");
    for other in [
        PRAGUE.trim_end().to_string(),
        format!("\u{feff}{PRAGUE}\n\n"),
        PRAGUE.replace("\r\n", "\r\r\n"),
        folded,
    ] {
        assert_eq!(normalise_definition(other.as_bytes()), plain, "{other:?}");
    }
    let wide: Vec<u8> = PRAGUE.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(normalise_definition(&wide), plain);
    assert_ne!(normalise_definition(PRAGUE.replace("+0200", "+0300").as_bytes()), plain);
}

/// The counts are those of the specification: 1,785 closed definitions have 299 distinct texts. The
/// others have no name or no observance.
#[test]
fn corpora_definitions_are_parsed() {
    let (mut closed, mut read, mut texts) = (0, 0, HashSet::new());
    let files = calendars("corpora_definitions_are_parsed");
    for (_, bytes) in &files {
        let pieces = split([&bytes[..]], 32 << 20);
        for piece in pieces.iter().filter(|piece| piece.name == "VTIMEZONE" && piece.closed) {
            closed += 1;
            read += usize::from(VtimezoneDefinition::parse(&piece.bytes).is_some());
            texts.insert(normalise_definition(&piece.bytes));
        }
    }
    assert!(
        files.is_empty() || (closed, texts.len()) == (1785, 299),
        "{closed}, {read}, {}",
        texts.len()
    );
}

proptest! {
    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>()) {
        let once = normalise_definition(&bytes);
        prop_assert!(VtimezoneDefinition::parse(&bytes).is_none() && once.len() <= bytes.len() * 2 + 1);
    }

    /// Where no line end is missing, a second normalization changes nothing.
    #[test]
    fn normalisation_is_idempotent(texts in prop::collection::vec("[!-~][ -~]{0,20}", 0..8)) {
        let once = normalise_definition(format!("BEGIN:VTIMEZONE\n{}", texts.join("\r\n")).as_bytes());
        prop_assert_eq!(normalise_definition(&once), once);
    }
}
