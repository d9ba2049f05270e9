//! Parsing of calendar components into properties and subcomponents.

use crate::corpora::calendars;
use crate::split::split;
use larder_format::component::{
    CalendarVersion, Component, ComponentKind, MAX_PROPERTIES_PER_ITEM, TimeProperty, derive_uid,
    is_same_component,
};
use larder_format::edit::insert_uid;
use larder_format::field::CALENDAR_FIELDS;
use proptest::prelude::*;

/// Checks the problems of a component, as `line: problem`, and the refusal if there is one.
#[track_caller]
fn check(item: impl AsRef<[u8]>, expect: &[&str]) {
    let component = Component::parse(item.as_ref());
    let problems =
        component.problems().iter().map(|problem| format!("{}: {problem}", problem.line));
    let refusal =
        component.fatal_problem().map(|problem| format!("{}: refused: {problem}", problem.line));
    let found = problems.chain(refusal).collect::<Vec<_>>();
    let start = &item.as_ref()[..item.as_ref().len().min(300)];
    assert_eq!(found, expect, "{:?}", String::from_utf8_lossy(start));
}

#[test]
fn harmless_components_have_no_problem() {
    check("BEGIN:VEVENT\nUID:a\nDTSTART:20260101\nEND:VEVENT\n", &[]);
    // Line ends, blank lines, no UID, DTSTAMP or DTSTART, and a date without its type are no
    // problems.
    check("BEGIN:VEVENT\r\n\r\nSUMMARY:x\r\r\nEND:VEVENT", &[]);
    check("\u{feff}begin : vevent \nSUMMARY:x\nend:vevent\n", &[]);
    check("BEGIN:VEVENT\rSUMMARY:x\rEND:VEVENT\r", &[]);
    check(format!("BEGIN:VEVENT\nSUMMARY:{}\nEND:VEVENT", "x".repeat(2000)), &[]);
    check("BEGIN:VEVENT\nDTSTART;X;Y=:20260101T000000Z\nEND:VEVENT", &[]);
    check("BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\nEND:VEVENT", &[]);
}

#[test]
fn problems_name_their_line() {
    check(
        "BEGIN:VEVENT\nSUMMARY:x\nlost its fold\nand another\nUID:a\n1.2,3:x\nEND:VEVENT\n",
        &[
            "3: no colon in this line: it is kept but ignored",
            "6: no property name in this line: it is kept but ignored",
        ],
    );
    check(
        "BEGIN:VEVENT\nATTENDEE;CN=\"a:b@c\nEND:VEVENT\n",
        &["2: unclosed quote before the colon"],
    );
    check(
        b"BEGIN:VEVENT\nSUMMARY:\xfc\nLOCATION:\xfc\0\nEND:VEVENT\n",
        &["2: not UTF-8: read as Windows-1252", "3: NUL byte: removed from the value"],
    );
    check(
        "BEGIN:VEVENT\nUID:a\nUID:a\nUID:b\nDTSTART:20260101\nDTSTART:20260102\nEND:VEVENT\n",
        &["4: second UID: ignored", "6: second DTSTART: ignored"],
    );
    check(
        "BEGIN:VEVENT\nDTSTART;VALUE=date:20260101T120000\nEND:VEVENT\n",
        &["2: date with a time: read as a time"],
    );
    check("BEGIN:VEVENT\nUID:a\n", &["2: missing END"]);
    check(
        "BEGIN:VEVENT\nUID:a\nBEGIN:VALARM\nBEGIN:X-A\nEND:VTODO\nEND:VALARM\nBEGIN:VALARM\nEND:VEVENT\n",
        &[
            "5: END without BEGIN: ignored",
            "6: unclosed subcomponent: it ends here",
            "8: unclosed subcomponent: it ends here",
        ],
    );
}

/// A fold after BEGIN or END is the rest of a line that was lost: names are not folded.
#[test]
fn folds_after_markers_are_unknown_lines() {
    let item = "BEGIN:VEVENT\n lost\nUID:a\nBEGIN:VALARM\n\tlost\nEND:VALARM\r\n lost\r\nSUMMARY:b\nEND:VEVENT\n";
    let unknown = "no colon in this line: it is kept but ignored";
    check(item, &[&*format!("2: {unknown}"), &format!("5: {unknown}"), &format!("7: {unknown}")]);
    let event = Component::parse(item.as_bytes());
    assert_eq!((event.kind(), event.subcomponents()[0].name()), (&ComponentKind::Event, "VALARM"));
    assert_eq!(event.properties().len(), 2);
}

#[test]
fn non_components_are_refused() {
    let none = &["1: refused: not a calendar component: no BEGIN line"];
    for text in ["", "x", "UID:a\n", "BEGIN:\n", "BEGIN:a b\n", " BEGIN:VEVENT\n"] {
        check(text, none);
    }
    check("BEGIN:VEVENT\nSUMMARY:\nEND:VEVENT\n", &["1: refused: empty component"]);
    check("BEGIN:VEVENT\nSUMMARY:x\n", &["2: refused: missing END"]);
    let more = "X:1\n".repeat(MAX_PROPERTIES_PER_ITEM + 1);
    check(
        format!("BEGIN:VEVENT\n{more}END:VEVENT\n"),
        &["65538: refused: more than 65536 properties"],
    );
    let deep = "BEGIN:A\n".repeat(40);
    check(format!("BEGIN:VEVENT\n{deep}"), &["34: refused: components nested too deeply"]);
}

#[test]
fn components_have_a_kind_and_subcomponents() {
    for (name, kind) in [
        ("VEVENT", ComponentKind::Event),
        ("vtodo", ComponentKind::Task),
        ("VJOURNAL", ComponentKind::Memo),
        ("VFREEBUSY", ComponentKind::FreeBusy),
        ("VTIMEZONE", ComponentKind::TimeZone),
        ("vpoll", ComponentKind::Other("VPOLL".into())),
    ] {
        let item = format!("BEGIN:{name}\nUID:a\nEND:{name}\n");
        let component = Component::parse(item.as_bytes());
        assert_eq!((component.kind(), component.kind().name()), (&kind, &*name.to_uppercase()));
    }
    let item = "BEGIN:VEVENT\nUID:a\nBEGIN:VALARM\nUID:b\nTRIGGER;RELATED=END:-PT5M\nBEGIN:X-A\nUID:c\nEND:X-A\n\
                ACTION:AUDIO\nEND:VALARM\nSUMMARY:s\nBEGIN:valarm\nEND:valarm\nEND:VEVENT\nDESCRIPTION:no\n";
    let event = Component::parse(item.as_bytes());
    let names = |properties: &[larder_format::property::Property<'_>]| {
        properties.iter().map(|property| property.name().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(event.properties()), "UID SUMMARY");
    let parts: Vec<_> = event
        .subcomponents()
        .iter()
        .map(|part| (part.name(), part.line_number(), part.depth(), names(part.properties())))
        .collect();
    assert_eq!(
        parts,
        [
            ("VALARM", 3, 1, "UID TRIGGER ACTION".to_string()),
            ("X-A", 6, 2, "UID".to_string()),
            ("VALARM", 12, 1, String::new()),
        ]
    );
    let trigger = event.subcomponents()[0].time_properties("trigger").next().expect("a trigger");
    assert_eq!((&*trigger.text, trigger.related.as_deref()), ("-PT5M", Some("END")));
}

#[test]
fn date_times_are_parsed_with_their_zone() {
    let item = "BEGIN:VEVENT\nDTSTART;TZID=\"Amsterdam, Berlin\":20260101T000000\n\
                EXDATE;TZID=Europe/Prague;VALUE=DATE-TIME: 20260101T000000,\n 20260102T000000 \n\
                EXDATE;tzid=Amsterdam, Berlin:20260103T000000\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260104\n\
                RRULE:FREQ=DAILY\nDTEND;TZID=:20260101T\nBEGIN:VALARM\nTRIGGER;TZID=^'x^':20260101T000000\n\
                END:VALARM\nEND:VEVENT\n";
    let event = Component::parse(item.as_bytes());
    let shown = |times: &mut dyn Iterator<Item = TimeProperty<'_>>| -> Vec<String> {
        let part = |text: Option<std::borrow::Cow<'_, str>>| text.unwrap_or_default().into_owned();
        times
            .map(|t| {
                format!(
                    "{}|{}|{}|{}|{}",
                    t.line,
                    t.text,
                    part(t.tzid),
                    part(t.value_type),
                    part(t.range)
                )
            })
            .collect()
    };
    assert_eq!(
        shown(&mut event.time_properties("DTSTART")),
        ["2|20260101T000000|Amsterdam, Berlin||"]
    );
    assert_eq!(
        shown(&mut event.time_properties("EXDATE")),
        [
            "3|20260101T000000,20260102T000000|Europe/Prague|DATE-TIME|",
            "5|20260103T000000|Amsterdam, Berlin||"
        ]
    );
    assert_eq!(shown(&mut event.recurrence_id().into_iter()), ["6|20260104|||THISANDFUTURE"]);
    assert_eq!(shown(&mut event.time_properties("RDATE")), [""; 0]);
    assert_eq!(event.tzids(), ["Amsterdam, Berlin", "Europe/Prague", "\"x\""]);
}

#[test]
fn calendars_have_a_version() {
    for (lines, version) in [
        ("BEGIN:VCALENDAR\nVERSION:1.0\n", CalendarVersion::V1_0),
        ("PRODID:x\r\nversion: 1.0\r\n", CalendarVersion::V1_0),
        ("BEGIN:VCALENDAR\nVERSION:2.0\n", CalendarVersion::V2_0),
        ("X:1\n", CalendarVersion::V2_0),
        ("", CalendarVersion::V2_0),
    ] {
        assert_eq!(CalendarVersion::from_calendar_lines(lines.as_bytes()), version, "{lines:?}");
    }
    let item = b"BEGIN:VEVENT\nSUMMARY;ENCODING=QUOTED-PRINTABLE;CHARSET=iso-8859-1:=FC=\n=\n=FC\nEND:VEVENT\n";
    let event = Component::parse_with_version(item, CalendarVersion::V1_0);
    assert_eq!((event.version(), &*event.properties()[0].text()), (CalendarVersion::V1_0, "üü"));
}

#[test]
fn components_have_an_identity() {
    let event = "BEGIN:VEVENT\r\nDTSTART:20260101\r\nEND:VEVENT\r\n";
    assert!(is_same_component(event.as_bytes(), event.trim_end().as_bytes()));
    assert!(!is_same_component(event.as_bytes(), event.replace('6', "7").as_bytes()));
    assert_eq!(derive_uid(event.as_bytes()), derive_uid(event.trim_end().as_bytes()));
    let named = insert_uid(event.as_bytes(), "a");
    let expect = "BEGIN:VEVENT\r\nUID:a\r\nDTSTART:20260101\r\nEND:VEVENT\r\n";
    assert_eq!(String::from_utf8_lossy(&named), expect);
    let wide: Vec<u8> = event.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(Component::parse(&insert_uid(&wide, "ä")).uid().as_deref(), Some("ä"));
}

/// Every component of the corpora is parsed, and few are refused.
#[test]
fn corpora_components_are_parsed() {
    let (mut taken, mut refused) = (0, Vec::new());
    for (path, bytes) in calendars("corpora_components_are_parsed") {
        for piece in split([&bytes[..]], 32 << 20) {
            if piece.name != piece.name.to_uppercase() || piece.name == "VCARD" {
                continue;
            }
            let component = Component::parse(&piece.bytes);
            assert_eq!(component.kind().name(), piece.name, "{}", path.display());
            match component.fatal_problem() {
                None => taken += 1,
                Some(why) => {
                    refused.push(format!("{}:{}: {why}", path.display(), piece.line));
                }
            }
            for field in CALENDAR_FIELDS {
                let values = component.values(field);
                assert!(field.is_multi_valued || values.len() <= 1, "{}", field.name);
            }
            for tzid in component.tzids() {
                assert!(!tzid.is_empty());
            }
            if component.uid().is_none() && component.fatal_problem().is_none() {
                let named = insert_uid(&piece.bytes, "fresh");
                assert_eq!(Component::parse(&named).uid().as_deref(), Some("fresh"));
            }
        }
    }
    assert!(refused.len() < 60, "{taken} taken, refused:\n{}", refused.join("\n"));
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "BEGIN:VEVENT",
        "END:VEVENT",
        "BEGIN:VALARM",
        "END:VALARM",
        "BEGIN:X-A",
        "END:X-A",
        "UID:a",
        "UID:b",
        "DTSTART;TZID=x:1",
        "SUMMARY:s",
        " folded",
        "no colon",
        "",
        "X;=\":",
        "END:",
    ]);
    prop::collection::vec(line, 0..20)
        .prop_map(|lines| format!("BEGIN:VEVENT\n{}\n", lines.join("\n")))
}

proptest! {
    #[test]
    fn nothing_panics(bytes in any::<Vec<u8>>()) {
        drop(Component::parse(&bytes).tzids());
        let _version = CalendarVersion::from_calendar_lines(&bytes);
    }

    /// Every line belongs to the component or to one subcomponent, or is reported; the same holds
    /// in UTF-16.
    #[test]
    fn every_line_belongs_to_one_component(text in lines()) {
        let component = Component::parse(text.as_bytes());
        let mut numbers: Vec<u32> = component.properties().iter().map(|one| one.line_number()).collect();
        for part in component.subcomponents() {
            numbers.push(part.line_number());
            numbers.extend(part.properties().iter().map(|one| one.line_number()));
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), count);
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = Component::parse(&wide);
        prop_assert_eq!(wide.problems(), component.problems());
        prop_assert_eq!(wide.fatal_problem(), component.fatal_problem());
        prop_assert_eq!(wide.subcomponents().len(), component.subcomponents().len());
    }
}
