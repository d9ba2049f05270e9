//! Writing of lines and components, and changes of one property in a component.

use larder_format::component::Component;
use larder_format::content_line::content_lines;
use larder_format::edit::{
    append_property, append_subcomponent, remove_property, remove_subcomponents, set_property,
};
use larder_format::property::Property;
use larder_format::writer::{ComponentBuilder, ParamPairs, escape_text, format_content_line};
use proptest::prelude::*;

const EVENT: &str = "BEGIN:VEVENT\nUID:a\nSUMMARY;LANGUAGE=en:b\n c\n\nX-A:1\nSUMMARY:d\n\
                     BEGIN:VALARM\nSUMMARY:e\nEND:VALARM\nlost\nEND:VEVENT\n";

#[track_caller]
fn check(changed: Option<Vec<u8>>, expect: &str) {
    let changed = changed.expect("a component");
    assert_eq!(String::from_utf8_lossy(&changed), expect);
}

#[test]
fn one_property_is_set() {
    check(
        set_property(EVENT.as_bytes(), "summary", &[("X-B", "1,2")], "x"),
        "BEGIN:VEVENT\nUID:a\nsummary;X-B=\"1,2\":x\n\nX-A:1\n\
         BEGIN:VALARM\nSUMMARY:e\nEND:VALARM\nlost\nEND:VEVENT\n",
    );
    check(
        set_property(EVENT.as_bytes(), "STATUS", &[], "CONFIRMED"),
        &EVENT.replace("SUMMARY:d\n", "SUMMARY:d\nSTATUS:CONFIRMED\n"),
    );
    let item = "BEGIN:VEVENT\nBEGIN:VALARM\nACTION:AUDIO\nEND:VALARM\nEND:VEVENT\n";
    check(
        set_property(item.as_bytes(), "ACTION", &[], "x"),
        "BEGIN:VEVENT\nACTION:x\nBEGIN:VALARM\nACTION:AUDIO\nEND:VALARM\nEND:VEVENT\n",
    );
}

#[test]
fn one_property_is_removed_or_added() {
    check(
        remove_property(EVENT.as_bytes(), "Summary"),
        "BEGIN:VEVENT\nUID:a\n\nX-A:1\nBEGIN:VALARM\nSUMMARY:e\nEND:VALARM\nlost\nEND:VEVENT\n",
    );
    check(remove_property(EVENT.as_bytes(), "DTSTART"), EVENT);
    check(
        append_property(EVENT.as_bytes(), "SUMMARY:x"),
        &EVENT.replace("SUMMARY:d\n", "SUMMARY:d\nSUMMARY:x\n"),
    );
    let alarm = ComponentBuilder::new("valarm").add_property("TRIGGER", &[], "PT0S");
    check(
        append_subcomponent(EVENT.as_bytes(), alarm),
        &EVENT.replace("END:VEVENT", "BEGIN:VALARM\nTRIGGER:PT0S\nEND:VALARM\nEND:VEVENT"),
    );
}

#[test]
fn subcomponents_are_removed() {
    let alarm = "BEGIN:VALARM\nSUMMARY:e\nEND:VALARM\n";
    let bare = EVENT.replace(alarm, "");
    check(remove_subcomponents(EVENT.as_bytes(), &|part| part.name() == "VALARM"), &bare);
    check(remove_subcomponents(EVENT.as_bytes(), &|part| part.name() == "VEVENT"), EVENT);
    let two =
        EVENT.replace(alarm, &format!("{alarm}{alarm}begin:valarm\nBEGIN:X\nEND:X\nend:Valarm\n"));
    check(remove_subcomponents(two.as_bytes(), &|part| part.name() == "VALARM"), &bare);
    assert_eq!(
        remove_subcomponents(b"BEGIN:VEVENT\nEND:VEVENT\n", &|part| part.name() == "VALARM"),
        None
    );
    assert_eq!(remove_subcomponents(b"", &|part| part.name() == "VALARM"), None);
}

#[test]
fn matching_subcomponents_are_removed() {
    let summary = |text: &'static str| {
        move |part: &larder_format::component::Subcomponent<'_>| {
            part.properties_named("SUMMARY").any(|of| of.value() == text.as_bytes())
        }
    };
    check(
        remove_subcomponents(EVENT.as_bytes(), &summary("e")),
        &EVENT.replace("BEGIN:VALARM\nSUMMARY:e\nEND:VALARM\n", ""),
    );
    check(remove_subcomponents(EVENT.as_bytes(), &summary("d")), EVENT);
    // A subcomponent is removed with its contents and, where its END is missing, up to the END of
    // the component around it. Others stay.
    let one = "BEGIN:VALARM\r\nSUMMARY:1\r\nBEGIN:X\r\n folded\r\nEND:VALARM\r\n";
    let two = "BEGIN:VALARM\r\nSUMMARY:2\r\n";
    let event = format!("BEGIN:VEVENT\r\n{one}X-A:1\r\n{two}END:VEVENT\r\n");
    check(remove_subcomponents(event.as_bytes(), &summary("1")), &event.replace(one, ""));
    check(remove_subcomponents(event.as_bytes(), &summary("2")), &event.replace(two, ""));
    check(
        remove_subcomponents(event.as_bytes(), &|_| true),
        "BEGIN:VEVENT\r\nX-A:1\r\nEND:VEVENT\r\n",
    );
}

#[test]
fn malformed_components_and_lines_are_refused() {
    for item in ["", "UID:a\n", "BEGIN:VEVENT\nEND:VEVENT\n"] {
        assert_eq!(set_property(item.as_bytes(), "UID", &[], "a"), None);
        assert_eq!(remove_property(item.as_bytes(), "UID"), None);
        assert_eq!(append_property(item.as_bytes(), "UID:a"), None);
    }
    // Bytes after a UTF-8 byte order mark are not UTF-16.
    let mixed: Vec<u8> = EVENT.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(set_property(&[b"\xef\xbb\xbf", &mixed[..]].concat(), "UID", &[], "a"), None);
    for line in ["", "a", "UID", "A:1\nB:2", "END:VEVENT", "begin:X", " A:1", "\rA:1"] {
        assert_eq!(append_property(EVENT.as_bytes(), line), None, "{line:?}");
    }
    for name in ["", "END", ":", "ü"] {
        assert_eq!(set_property(EVENT.as_bytes(), name, &[], "x"), None, "{name:?}");
    }
}

#[test]
fn line_ends_and_encodings_stay() {
    for end in ["\n", "\r\n", "\r\r\n", "\r"] {
        let with = |text: &str| text.replace('\n', end);
        let event = with("BEGIN:VEVENT\nUID:a\nSUMMARY:b\nDTSTART:1\nEND:VEVENT\n");
        check(set_property(event.as_bytes(), "SUMMARY", &[], "x"), &event.replace('b', "x"));
        check(
            append_property(event.as_bytes(), "X-A:1"),
            &with("BEGIN:VEVENT\nUID:a\nSUMMARY:b\nDTSTART:1\nX-A:1\nEND:VEVENT\n"),
        );
        check(
            remove_property(event.as_bytes(), "UID"),
            &with("BEGIN:VEVENT\nSUMMARY:b\nDTSTART:1\nEND:VEVENT\n"),
        );
        for encode in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(encode).collect() };
            let event = event.replace('b', "ü\u{1f600}");
            assert_eq!(
                set_property(&wide(&event), "DTSTART", &[], "ä"),
                Some(wide(&event.replace("DTSTART:1", "DTSTART:ä")))
            );
            let marked = wide(&format!("\u{feff}{event}"));
            let expect = wide(&format!("\u{feff}{}", event.replace("UID:a", "UID:c")));
            assert_eq!(set_property(&marked, "UID", &[], "c"), Some(expect));
        }
    }
    let cut = b"\xef\xbb\xbfBEGIN:VEVENT\r\nUID:a";
    check(set_property(cut, "UID", &[], "b"), "\u{feff}BEGIN:VEVENT\r\nUID:b");
    check(append_property(cut, "X:1"), "\u{feff}BEGIN:VEVENT\r\nUID:a\r\nX:1");
    check(remove_property(cut, "uid"), "\u{feff}BEGIN:VEVENT\r\n");
    // A lone CR is a line end only before a name.
    let event = b"BEGIN:VEVENT\rUID:a\rX-A:1\nlost\r\nEND:VEVENT";
    check(remove_property(event, "X-A"), "BEGIN:VEVENT\rUID:a\r\nlost\r\nEND:VEVENT");
    // A soft break without a continuation would take the next line.
    let event = b"BEGIN:VEVENT\nUID;ENCODING=QUOTED-PRINTABLE:a=\nEND:VEVENT\n";
    check(
        append_property(event, "X-A:1"),
        "BEGIN:VEVENT\nX-A:1\nUID;ENCODING=QUOTED-PRINTABLE:a=\nEND:VEVENT\n",
    );
}

#[test]
fn lines_are_written() {
    let check = |params: ParamPairs<'_>, value: &str, expect: &str| {
        assert_eq!(format_content_line("X-A", params, value), expect);
    };
    check(&[], "a", "X-A:a");
    check(&[("CN", "Berg, Anna"), ("X-B", "\"^\n")], "a:b", "X-A;CN=\"Berg, Anna\";X-B=^'^^^n:a:b");
    check(&[("TZID", "Europe/Prague")], "a\r\nb\rc", "X-A;TZID=Europe/Prague:a\\nb\\nc");
    assert_eq!(format_content_line("X:;\nÄ-B", &[("a=b", "")], ""), "X-B;ab=:");
    assert_eq!(escape_text("a\\b;c,d\r\ne\rf\tg\0\u{7f}:\"ü"), "a\\\\b\\;c\\,d\\ne\\nf\tg:\"ü");
}

#[test]
fn long_lines_are_folded() {
    let event = ComponentBuilder::new("VEVENT").add_text("SUMMARY", &"ü,".repeat(60)).finish();
    assert!(event.lines().count() > 4 && event.lines().all(|line| line.len() <= 75), "{event}");
    let read = Component::parse(event.as_bytes());
    let summary = read.properties()[0].text().replace('\\', "");
    assert_eq!(summary, "ü,".repeat(60));
}

#[test]
fn components_are_written() {
    let event = ComponentBuilder::new("vtodo")
        .add_property("DUE", &[("TZID", "Europe/Prague"), ("X-A", "a;b")], "20260101T000000")
        .add_text("SUMMARY", "a, b\nc")
        .add_subcomponent(ComponentBuilder::new("VALARM").add_property("ACTION", &[], "DISPLAY"))
        .finish();
    assert_eq!(
        event,
        "BEGIN:VTODO\r\nDUE;TZID=Europe/Prague;X-A=\"a;b\":20260101T000000\r\nSUMMARY:a\\, b\\nc\r\n\
         BEGIN:VALARM\r\nACTION:DISPLAY\r\nEND:VALARM\r\nEND:VTODO\r\n"
    );
}

/// Generates events without two lone CRs in a row: one of them is a part of the value, which
/// changes when the line after it is removed.
fn events() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "UID:a",
        "SUMMARY:b",
        "SUMMARY;X=\"a:b\":c",
        " folded",
        "no colon",
        "",
        "X-A:1",
        "BEGIN:VALARM\nSUMMARY:d\nEND:VALARM",
        "X;ENCODING=QUOTED-PRINTABLE:a=",
        "BEGIN:X-B\nEND:Y",
    ]);
    let end = prop::sample::select(vec!["\n", "\r\n", "\r", "\r\r\n"]);
    prop::collection::vec((line, end), 0..10).prop_map(|lines| {
        let lines: String = lines
            .iter()
            .flat_map(|(line, end)| [*line, if line.is_empty() { "\n" } else { *end }])
            .collect();
        format!("BEGIN:VEVENT\nUID:x\n{lines}END:VEVENT\n")
    })
}

/// Returns all properties with their bytes, except those with this name.
fn other_properties(item: &[u8], name: &str) -> Vec<(usize, Vec<u8>)> {
    let component = Component::parse(item);
    let parts = component.subcomponents().iter().flat_map(|part| {
        part.properties().iter().map(move |one| (part.depth(), one.value().to_vec()))
    });
    let own = component.properties().iter().filter(|one| !one.has_name(name));
    own.map(|one| (0, one.value().to_vec())).chain(parts).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A property that was set is read back, a property that was removed is not found, and all
    /// others are unchanged.
    #[test]
    fn only_one_thing_changes(event in events(), value in "[^\\p{C}]{0,100}", wide in any::<bool>()) {
        let item: Vec<u8> = match wide {
            true => event.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            false => event.clone().into_bytes(),
        };
        let text = escape_text(&value);
        let changed = set_property(&item, "SUMMARY", &[("X-V", &value)], &text).expect("a component");
        let read = Component::parse(&changed);
        let summaries: Vec<_> = read.properties_named("SUMMARY").collect();
        prop_assert_eq!(summaries.len(), 1);
        prop_assert_eq!(&*summaries[0].text(), &text);
        let param = summaries[0].single_param("X-V").map(std::borrow::Cow::into_owned);
        prop_assert_eq!(param, Some(value));
        prop_assert_eq!(other_properties(&changed, "SUMMARY"), other_properties(&item, "SUMMARY"));
        let removed = remove_property(&changed, "SUMMARY").expect("a component");
        prop_assert_eq!(Component::parse(&removed).properties_named("SUMMARY").count(), 0);
        prop_assert_eq!(other_properties(&removed, "SUMMARY"), other_properties(&item, "SUMMARY"));
    }

    /// A written line is read back with the same value and parameter, whatever they contain.
    #[test]
    fn written_lines_are_read_back(value in any::<String>(), param in any::<String>()) {
        let text = escape_text(&value);
        let event = ComponentBuilder::new("VEVENT").add_property("X-A", &[("X-P", &param)], &text).finish();
        prop_assert!(event.lines().all(|line| line.len() <= 75));
        let line = content_lines(event.as_bytes()).nth(1).expect("a line");
        let property = Property::parse(line);
        prop_assert!(property.has_name("X-A"));
        prop_assert_eq!(&*property.text(), &text);
    }

    #[test]
    fn nothing_panics(item in any::<Vec<u8>>(), line in any::<String>()) {
        let _ = (set_property(&item, &line, &[(&line, &line)], &line), append_property(&item, &line), remove_property(&item, &line));
    }
}
