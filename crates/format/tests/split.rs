//! Splitting of a stream of bytes into items.

use larder_format::splitter::{SkipReason, Splitter, StreamPiece};
use proptest::prelude::*;

/// A piece that owns its bytes, with the parts of a stretch joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedPiece {
    pub(crate) name: String,
    pub(crate) line: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) closed: bool,
}

/// Splits an input that arrives in these chunks. Stretches are named `outside`, `too long` and
/// `end`, the parts of calendars `begins`, `lines` and `ends`.
pub(crate) fn split<'b>(
    chunks: impl IntoIterator<Item = &'b [u8]>,
    max_item: usize,
) -> Vec<OwnedPiece> {
    let mut found: Vec<OwnedPiece> = Vec::new();
    let mut sink = |piece: StreamPiece<'_>| match piece {
        StreamPiece::Component { name, line, bytes, closed } => {
            found.push(OwnedPiece { name: name.into(), line, bytes: bytes.into(), closed });
        }
        StreamPiece::CalendarBegins { line, bytes } => {
            found.push(OwnedPiece {
                name: "begins".into(),
                line,
                bytes: bytes.into(),
                closed: true,
            });
        }
        StreamPiece::CalendarLines { line, bytes, .. } => {
            found.push(OwnedPiece {
                name: "lines".into(),
                line,
                bytes: bytes.into(),
                closed: true,
            });
        }
        StreamPiece::CalendarEnds { line, bytes, closed, .. } => {
            found.push(OwnedPiece { name: "ends".into(), line, bytes: bytes.into(), closed });
        }
        StreamPiece::Skipped { line, bytes, why, first } => {
            assert!(!bytes.is_empty(), "an empty part");
            let name = match why {
                SkipReason::Outside => "outside",
                SkipReason::TooLarge => "too long",
                SkipReason::EndWithoutBegin => "end",
                SkipReason::NestedCalendarEnd => "nested end",
                SkipReason::DamagedBegin => "damaged",
            };
            match found.last_mut().filter(|_| !first) {
                Some(stretch) => {
                    assert_eq!(stretch.name, name, "a part of another stretch");
                    stretch.bytes.extend_from_slice(bytes);
                }
                None => {
                    assert!(first, "a stretch without beginning");
                    found.push(OwnedPiece {
                        name: name.into(),
                        line,
                        bytes: bytes.into(),
                        closed: false,
                    });
                }
            }
        }
    };
    let mut splitter = Splitter::new(max_item);
    for chunk in chunks {
        splitter.push(chunk, &mut sink);
    }
    splitter.finish(&mut sink);
    found
}

/// Compares pieces as `name line[!] bytes`; `!` is a component without END.
#[track_caller]
fn check_with(input: &[u8], max_item: usize, expect: &[(&str, u64, &str)]) {
    for size in [1, 3, 7, usize::MAX] {
        let found = split(input.chunks(size.min(input.len().max(1))), max_item);
        let found: Vec<(String, u64, String)> = found
            .into_iter()
            .map(|found| {
                let can_be_open = found.name == "ends" || found.name == found.name.to_uppercase();
                let mark = if can_be_open && !found.closed { "!" } else { "" };
                let bytes = String::from_utf8_lossy(&found.bytes).into_owned();
                (found.name + mark, found.line, bytes)
            })
            .collect();
        let found: Vec<(&str, u64, &str)> =
            found.iter().map(|(n, l, b)| (&**n, *l, &**b)).collect();
        assert_eq!(found, expect, "{:?} by {size}", String::from_utf8_lossy(input));
    }
}

#[track_caller]
fn check(input: &str, expect: &[(&str, u64, &str)]) {
    check_with(input.as_bytes(), 1 << 20, expect);
}

#[test]
fn items_are_found() {
    check("", &[]);
    check("\n \r\n", &[]);
    check("BEGIN:VCARD\nFN:a\nEND:VCARD\n", &[("VCARD", 1, "BEGIN:VCARD\nFN:a\nEND:VCARD\n")]);
    check("begin:vCard \nend:VCARD", &[("VCARD", 1, "begin:vCard \nend:VCARD")]);
    check(
        "\r\n\r\nBEGIN:VCARD\r\nEND:VCARD\r\n\r\nBEGIN:VCARD\r\nEND:VCARD\r\n",
        &[
            ("VCARD", 3, "BEGIN:VCARD\r\nEND:VCARD\r\n"),
            ("VCARD", 6, "BEGIN:VCARD\r\nEND:VCARD\r\n"),
        ],
    );
    check(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\nBEGIN:VCARD\nEND:VCARD\n",
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("VEVENT", 2, "BEGIN:VEVENT\nEND:VEVENT\n"),
            ("ends", 4, "END:VCALENDAR\n"),
            ("VCARD", 5, "BEGIN:VCARD\nEND:VCARD\n"),
        ],
    );
    check(
        "BEGIN:VCARD\rFN:a\rEND:VCARD\rBEGIN:VCARD\rFN:b\rEND:VCARD\r",
        &[
            ("VCARD", 1, "BEGIN:VCARD\rFN:a\rEND:VCARD\r"),
            ("VCARD", 4, "BEGIN:VCARD\rFN:b\rEND:VCARD\r"),
        ],
    );
    check("BEGIN:VCARD\r\r\nEND:VCARD\r\r\n", &[("VCARD", 1, "BEGIN:VCARD\r\r\nEND:VCARD\r\r\n")]);
}

#[test]
fn unclosed_items_are_found() {
    check(
        "BEGIN:VCARD\nFN:a\n\nBEGIN:VCARD\nFN:b\nEND:VCARD\n",
        &[("VCARD!", 1, "BEGIN:VCARD\nFN:a\n\n"), ("VCARD", 4, "BEGIN:VCARD\nFN:b\nEND:VCARD\n")],
    );
    check("BEGIN:VCARD\nFN:a", &[("VCARD!", 1, "BEGIN:VCARD\nFN:a")]);
    check(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nBEGIN:VCARD\nEND:VCARD\n",
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("VEVENT!", 2, "BEGIN:VEVENT\n"),
            ("ends!", 3, ""),
            ("VCARD", 3, "BEGIN:VCARD\nEND:VCARD\n"),
        ],
    );
    check(
        "BEGIN:VCARD\nEND:VEVENT\nEND:VCARD\n",
        &[("VCARD", 1, "BEGIN:VCARD\nEND:VEVENT\nEND:VCARD\n")],
    );
}

#[test]
fn calendars_are_split_into_components() {
    let event = "BEGIN:VEVENT\nBEGIN:VALARM\nEND:VALARM\nEND:VEVENT\n";
    check(
        &format!(
            "BEGIN:VCALENDAR\nVERSION:2.0\n\nPRODID:\n x\n\nBEGIN:VTIMEZONE\nBEGIN:STANDARD\nEND:STANDARD\nEND:VTIMEZONE\n\n\
             {event}X-WR-CALNAME:c\nbegin:x-own\nEND:X-OWN\nEND:VCALENDAR\n{event}"
        ),
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("lines", 2, "VERSION:2.0\n\nPRODID:\n x\n\n"),
            ("VTIMEZONE", 7, "BEGIN:VTIMEZONE\nBEGIN:STANDARD\nEND:STANDARD\nEND:VTIMEZONE\n"),
            ("VEVENT", 12, event),
            ("lines", 16, "X-WR-CALNAME:c\n"),
            ("X-OWN", 17, "begin:x-own\nEND:X-OWN\n"),
            ("ends", 19, "END:VCALENDAR\n"),
            ("VEVENT", 20, event),
        ],
    );
    check(
        "\u{feff}BEGIN:VCALENDAR\rVERSION:2.0\rBEGIN:VEVENT\rEND:VEVENT\rEND:VCALENDAR\r",
        &[
            ("begins", 1, "BEGIN:VCALENDAR\r"),
            ("lines", 2, "VERSION:2.0\r"),
            ("VEVENT", 3, "BEGIN:VEVENT\rEND:VEVENT\r"),
            ("ends", 5, "END:VCALENDAR\r"),
        ],
    );
}

#[test]
fn broken_calendars_are_split() {
    let begins = ("begins", 1, "BEGIN:VCALENDAR\n");
    // The end of a calendar ends its components.
    check(
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:a\nEND:VCALENDAR\n",
        &[begins, ("VEVENT!", 2, "BEGIN:VEVENT\nUID:a\n"), ("ends", 4, "END:VCALENDAR\n")],
    );
    // The beginning of a component that cannot be nested ends the one before it.
    check(
        "BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nBEGIN:VEVENT\nBEGIN:X-A\nEND:VTODO\nBEGIN:VEVENT\nEND:VEVENT\n",
        &[
            begins,
            ("VTIMEZONE!", 2, "BEGIN:VTIMEZONE\n"),
            ("VEVENT!", 3, "BEGIN:VEVENT\nBEGIN:X-A\nEND:VTODO\n"),
            ("VEVENT", 6, "BEGIN:VEVENT\nEND:VEVENT\n"),
            ("ends!", 8, ""),
        ],
    );
    // A poll contains events.
    let poll = "BEGIN:VPOLL\nBEGIN:VEVENT\nEND:VEVENT\nEND:VPOLL\n";
    check(poll, &[("VPOLL", 1, poll)]);
    // Calendars are not nested: the beginning of the next one ends a calendar, and the END that it
    // has nevertheless is known.
    check(
        "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VCALENDAR\nBEGIN:VTODO\nBEGIN:VCALENDAR\nEND:VCALENDAR\nEND:VCALENDAR\n",
        &[
            begins,
            ("lines", 2, "VERSION:2.0\n"),
            ("ends!", 3, ""),
            ("begins", 3, "BEGIN:VCALENDAR\n"),
            ("VTODO!", 4, "BEGIN:VTODO\n"),
            ("ends!", 5, ""),
            ("begins", 5, "BEGIN:VCALENDAR\n"),
            ("ends", 6, "END:VCALENDAR\n"),
            ("nested end", 7, "END:VCALENDAR\n"),
        ],
    );
    // An END without BEGIN separates the lines around it.
    check(
        "BEGIN:VCALENDAR\n folded\nEND:VEVENT\nno colon\nEND:VCALENDAR\nx\n",
        &[
            begins,
            ("lines", 2, " folded\n"),
            ("end", 3, "END:VEVENT\n"),
            ("lines", 4, "no colon\n"),
            ("ends", 5, "END:VCALENDAR\n"),
            ("outside", 6, "x\n"),
        ],
    );
    // Lines of a calendar after a card belong to nothing.
    check(
        "BEGIN:VCALENDAR\nBEGIN:VCARD\nEND:VCARD\nX:1\nEND:VCALENDAR\n",
        &[
            begins,
            ("ends!", 2, ""),
            ("VCARD", 2, "BEGIN:VCARD\nEND:VCARD\n"),
            ("outside", 4, "X:1\n"),
            ("end", 5, "END:VCALENDAR\n"),
        ],
    );
}

/// A damaged BEGIN makes the lines after it neither properties of the calendar nor an item.
#[test]
fn components_with_a_damaged_begin_are_skipped() {
    for begin in [
        "BEGIN=VTODO",
        "BEGIN VTODO",
        "a.begin:vtodo",
        "BEGIN;A=b:VTODO",
        "BEGIN:\"VTODO\"",
        "BEGIN::VTODO ",
        "\u{a0}BEGIN:VTODO",
        "\0BEGIN:VTODO",
    ] {
        let damaged = format!("{begin}\nUID:d\nBEGIN:VALARM\nEND:VALARM\nEND:VTODO\n");
        let event = "BEGIN:VEVENT\nEND:VEVENT\n";
        let calendar = |parts: &str| format!("BEGIN:VCALENDAR\nPRODID:x\n{parts}END:VCALENDAR\n");
        let (begins, lines) = (("begins", 1, "BEGIN:VCALENDAR\n"), ("lines", 2, "PRODID:x\n"));
        check(
            &calendar(&format!("{damaged}{event}")),
            &[
                begins,
                lines,
                ("damaged", 3, &damaged),
                ("VEVENT", 8, event),
                ("ends", 10, "END:VCALENDAR\n"),
            ],
        );
        // Its END is missing as well.
        check(
            &calendar(&format!("{begin}\nUID:d\n{event}")),
            &[
                begins,
                lines,
                ("damaged", 3, &format!("{begin}\nUID:d\n")),
                ("VEVENT", 5, event),
                ("ends", 7, "END:VCALENDAR\n"),
            ],
        );
        // Outside a calendar all of it is text.
        check(&format!("{begin}\nUID:d\n"), &[("outside", 1, &format!("{begin}\nUID:d\n"))]);
    }
    // No damaged BEGIN: folded text, another word, a name that is no component.
    for line in [" BEGIN:VTODO", "BEGINNING:VTODO", "X-BEGIN:VTODO", "BEGIN=X-A", "X:BEGIN=VTODO"] {
        let calendar = format!("BEGIN:VCALENDAR\nPRODID:x\n{line}\nEND:VCALENDAR\n");
        let lines = format!("PRODID:x\n{line}\n");
        check(
            &calendar,
            &[
                ("begins", 1, "BEGIN:VCALENDAR\n"),
                ("lines", 2, &lines),
                ("ends", 4, "END:VCALENDAR\n"),
            ],
        );
    }
}

/// A component whose BEGIN is misspelt ends at its END, and does not swallow the next one.
#[test]
fn components_with_a_misspelt_begin_are_skipped() {
    let misspelt = "BEGIN:VEVNT\nUID:d\nEND:VEVENT\n";
    let event = "BEGIN:VEVENT\nEND:VEVENT\n";
    check(
        &format!("BEGIN:VCALENDAR\n{misspelt}{event}END:VCALENDAR\n"),
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("damaged", 2, misspelt),
            ("VEVENT", 5, event),
            ("ends", 7, "END:VCALENDAR\n"),
        ],
    );
    // A component of unknown name may contain events.
    let unknown = format!("BEGIN:X-GROUP\n{event}BEGIN:VTODO\nEND:VTODO\nEND:X-GROUP\n");
    check(
        &format!("BEGIN:VCALENDAR\n{unknown}END:VCALENDAR\n"),
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("X-GROUP", 2, &unknown),
            ("ends", 8, "END:VCALENDAR\n"),
        ],
    );
}

/// The lines of a calendar in UTF-16 come with their text; lines of UTF-8 may have a NUL anywhere.
#[test]
fn calendar_lines_in_utf_16_have_a_text() {
    let texts = |stream: &[u8]| {
        let mut texts = Vec::new();
        let mut splitter = Splitter::new(1 << 20);
        let mut sink = |piece: StreamPiece<'_>| {
            if let StreamPiece::CalendarLines { utf16_text, .. } = piece {
                texts.push(utf16_text.map(str::to_string));
            }
        };
        splitter.push(stream, &mut sink);
        splitter.finish(&mut sink);
        texts
    };
    let calendar = "BEGIN:VCALENDAR\nVERSION:1.0\nBEGIN:VEVENT\nEND:VEVENT\nX:ü\nEND:VCALENDAR\n";
    for encode in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
        let wide: Vec<u8> = calendar.encode_utf16().flat_map(encode).collect();
        assert_eq!(texts(&wide), [Some("VERSION:1.0\n".into()), Some("X:ü\n".into())]);
    }
    assert_eq!(texts(calendar.as_bytes()), [None, None]);
    for lines in ["X\0-A:b\n", "\0X:b\n", "A\0B\0:c\n"] {
        let calendar = format!("BEGIN:VCALENDAR\n{lines}END:VCALENDAR\n");
        assert_eq!(texts(calendar.as_bytes()), [None], "{lines:?}");
    }
}

#[test]
fn oversized_calendar_lines_are_skipped() {
    let long = "x".repeat(700);
    check_with(
        format!(
            "BEGIN:VCALENDAR\nX-A:{long}\nX-B:1\nBEGIN:VEVENT\nX:{long}\nEND:VEVENT\nX:1\nBEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR\n"
        )
        .as_bytes(),
        500,
        &[
            ("begins", 1, "BEGIN:VCALENDAR\n"),
            ("too long", 2, &format!("X-A:{long}\nX-B:1\n")),
            ("too long", 4, &format!("BEGIN:VEVENT\nX:{long}\nEND:VEVENT\n")),
            ("lines", 7, "X:1\n"),
            ("VEVENT", 8, "BEGIN:VEVENT\nEND:VEVENT\n"),
            ("ends", 10, "END:VCALENDAR\n"),
        ],
    );
}

#[test]
fn nested_cards_belong_to_their_card() {
    for agent in ["AGENT:\n", "agent;x=1: \n\n", "AGENT:BEGIN:VCARD\nVERSION:2.1\n"] {
        let begin = if agent.contains("BEGIN") { "" } else { "BEGIN:VCARD\n" };
        let card = format!("BEGIN:VCARD\n{agent}{begin}FN:b\nEND:VCARD\nFN:a\nEND:VCARD\n");
        check(&card, &[("VCARD", 1, &card)]);
    }
    check(
        "BEGIN:VCARD\nAGENT;VALUE=uri:\n cid:1\nBEGIN:VCARD\nEND:VCARD\n",
        &[
            ("VCARD!", 1, "BEGIN:VCARD\nAGENT;VALUE=uri:\n cid:1\n"),
            ("VCARD", 4, "BEGIN:VCARD\nEND:VCARD\n"),
        ],
    );
    check(
        "BEGIN:VCARD\nAGENT:BEGIN:VCARD\\nFN:b\\nEND:VCARD\nEND:VCARD\n",
        &[("VCARD", 1, "BEGIN:VCARD\nAGENT:BEGIN:VCARD\\nFN:b\\nEND:VCARD\nEND:VCARD\n")],
    );
}

#[test]
fn text_outside_items_is_skipped() {
    check("hello\nworld\n", &[("outside", 1, "hello\nworld\n")]);
    check(
        "\nhello\n\nworld\n\nBEGIN:VCARD\nEND:VCARD\nmore",
        &[
            ("outside", 2, "hello\n\nworld\n\n"),
            ("VCARD", 6, "BEGIN:VCARD\nEND:VCARD\n"),
            ("outside", 8, "more"),
        ],
    );
    check(
        "FN:a\nEND:VCARD\n\nEND:VCARD\n",
        &[("outside", 1, "FN:a\n"), ("end", 2, "END:VCARD\n"), ("end", 4, "END:VCARD\n")],
    );
    check(
        "BEGIN:\nBEGIN VCARD\nBEGINNING:x\n",
        &[("outside", 1, "BEGIN:\nBEGIN VCARD\nBEGINNING:x\n")],
    );
}

#[test]
fn byte_order_marks_are_skipped() {
    let card = "BEGIN:VCARD\nEND:VCARD\n";
    check(
        &format!("\u{feff}{card}\u{feff}{card}\u{feff}\n"),
        &[("VCARD", 1, card), ("VCARD", 3, card)],
    );
    check("\u{feff}text\n", &[("outside", 1, "\u{feff}text\n")]);
}

#[test]
fn utf_16_is_split() {
    let text = "BEGIN:VCARD\r\nFN:Ünal Ł\r\nEND:VCARD\r\n\r\nbegin:vcard\nend:vcard\n";
    let (first, second) = text.split_at(text.find("\r\nbegin").expect("the second") + 2);
    let first = first.trim_end_matches("\r\n").to_string() + "\r\n";
    for (mark, encode) in [
        (true, u16::to_le_bytes as fn(u16) -> [u8; 2]),
        (true, u16::to_be_bytes),
        (false, u16::to_le_bytes),
        (false, u16::to_be_bytes),
    ] {
        let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(encode).collect() };
        let input = wide(&format!("{}{text}", if mark { "\u{feff}" } else { "" }));
        for size in [1, 2, 3, 5, input.len()] {
            let found = split(input.chunks(size), 1 << 20);
            let found: Vec<_> = found.iter().map(|found| (found.line, &found.bytes[..])).collect();
            assert_eq!(found, [(1, &wide(&first)[..]), (5, &wide(second)[..])]);
        }
    }
}

#[test]
fn oversized_items_are_skipped() {
    let card = "BEGIN:VCARD\nNOTE:0123456789\nEND:VCARD\n";
    let small = "BEGIN:VCARD\nEND:VCARD\n";
    let all = format!("{small}{card}\n{small}");
    check_with(
        all.as_bytes(),
        card.len(),
        &[("VCARD", 1, small), ("VCARD", 3, card), ("VCARD", 7, small)],
    );
    check_with(
        all.as_bytes(),
        card.len() - 1,
        &[("VCARD", 1, small), ("too long", 3, card), ("VCARD", 7, small)],
    );
    check_with(
        format!("BEGIN:VCARD\nNOTE:0123456789\n{small}").as_bytes(),
        22,
        &[("too long", 1, "BEGIN:VCARD\nNOTE:0123456789\n"), ("VCARD", 3, small)],
    );
    let long_line = format!("BEGIN:VCARD\nNOTE:{}\nEND:VCARD\n{small}", "x".repeat(5000));
    let (bad, _) = long_line.split_at(long_line.len() - small.len());
    check_with(long_line.as_bytes(), 1000, &[("too long", 1, bad), ("VCARD", 4, small)]);
}

#[test]
fn memory_is_bounded() {
    let calendar = [b"BEGIN:VCALENDAR\n", &b"x".repeat(1 << 16)[..]].concat();
    for garbage in [
        b"x".repeat(1 << 16),
        b"BEGIN:VCARD\nx\n".repeat(1 << 12),
        vec![b'\r'; 1 << 16],
        b"BEGIN:VCALENDAR\nx\n".repeat(1 << 12),
        b"BEGIN:VEVENT\nx\nEND:VEVENT\nx\n".repeat(1 << 12),
        calendar,
    ] {
        let (mut splitter, mut given, mut pushed) = (Splitter::new(1000), 0, 0);
        let mut sink = |piece: StreamPiece<'_>| match piece {
            StreamPiece::Component { bytes, .. }
            | StreamPiece::CalendarBegins { bytes, .. }
            | StreamPiece::CalendarLines { bytes, .. }
            | StreamPiece::CalendarEnds { bytes, .. }
            | StreamPiece::Skipped { bytes, .. } => given += bytes.len(),
        };
        for _ in 0..16 {
            splitter.push(&garbage, &mut sink);
            pushed += garbage.len();
        }
        assert!(given + 2000 > pushed, "{given} of {pushed} given out");
    }
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        3 => Just("BEGIN:VCARD".to_string()),
        3 => Just("END:VCARD".to_string()),
        6 => prop::sample::select(vec!["BEGIN:VCALENDAR", "END:VCALENDAR", "BEGIN:VEVENT", "END:VEVENT", "AGENT:",
            "BEGIN:VPOLL", "END:VPOLL", "BEGIN:X-A", "END:X-A", "BEGIN=VEVENT", "\0BEGIN:VTODO"])
            .prop_map(String::from),
        6 => prop::sample::select(vec!["\n", "\r\n", "\r", "\r\r\n", "\r\r"]).prop_map(String::from),
        2 => prop::sample::select(vec![" ", "\t", "FN:x", "\u{feff}", "ü", "\0", "A", ":", ";"]).prop_map(String::from),
        1 => (1usize..400).prop_map(|length| "x".repeat(length)),
        1 => (1usize..400).prop_map(|length| " ".repeat(length)),
    ];
    (prop::collection::vec(token, 0..40), 0..5).prop_map(|(tokens, encoding)| {
        let text = tokens.concat();
        match encoding {
            0 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            1 => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => text.into_bytes(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The sizes of the chunks do not matter, and only blanks and byte order marks are left out.
    #[test]
    fn chunks_do_not_matter(
        bytes in stream(),
        cuts in prop::collection::vec(1usize..50, 1..30),
        max_item in prop::sample::select(vec![20usize, 60, 300, 5000]),
    ) {
        let whole = split([&bytes[..]], max_item);
        let mut chunks = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, tail) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = tail;
        }
        prop_assert_eq!(&split(chunks, max_item), &whole);
        prop_assert_eq!(&split(bytes.chunks(1), max_item), &whole);

        // Each calendar is closed once, and none is inside another.
        let mut inside = false;
        for found in &whole {
            match &*found.name {
                "begins" => prop_assert!(!std::mem::replace(&mut inside, true)),
                "ends" => prop_assert!(std::mem::take(&mut inside)),
                "lines" => prop_assert!(inside),
                _ => {}
            }
        }
        prop_assert!(!inside);

        let mut rest = &bytes[..];
        for found in whole.iter().filter(|found| !found.bytes.is_empty()) {
            let at = rest.windows(found.bytes.len()).position(|window| window == found.bytes);
            let (skipped, tail) = rest.split_at(at.expect("a piece is a part of the stream"));
            let skips = |byte: &u8| byte.is_ascii_whitespace() || [0, 0xef, 0xbb, 0xbf, 0xfe, 0xff].contains(byte);
            prop_assert!(skipped.iter().all(skips));
            rest = &tail[found.bytes.len()..];
        }
    }

    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>(), max_item in 0usize..100) {
        split(bytes.chunks(7), max_item);
    }
}

/// A name of the greatest allowed length follows a lone CR, with its colon in the next chunk.
#[test]
fn a_late_colon_is_waited_for() {
    for length in 98..=102 {
        let line = format!("FN:A\r{}:b\nFN:C\n", "x".repeat(length));
        for bytes in [line.as_bytes().to_vec(), line.bytes().flat_map(|byte| [byte, 0]).collect()] {
            let whole = split([&bytes[..]], 1000);
            assert_eq!(split(bytes.chunks(1), 1000), whole, "{length} letters");
        }
    }
}
