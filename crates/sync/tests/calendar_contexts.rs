//! The lines of a calendar around its items (version, time-zone definitions, name): on import, in
//! any order, and on export.

use crate::book::{Book, ImportOutcome, options, path};
use larder_query::{Query, SearchRequest, find, full_scan};
use larder_sync::ImportOptions;
use proptest::prelude::*;
use std::fmt::Write as _;

const INTO: &str = "calendar";

fn options_into(name: &str) -> ImportOptions {
    ImportOptions { into: Some(name.into()), ..options() }
}

fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n{components}END:VCALENDAR\n")
}

fn event(uid: &str, lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:{uid}\n{lines}END:VEVENT\n")
}

/// Returns a definition of a zone that the system does not have.
fn zone(tzid: &str, offset: &str) -> String {
    format!(
        "BEGIN:VTIMEZONE\nTZID:{tzid}\nBEGIN:STANDARD\nDTSTART:19700101T000000\n\
         TZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\nEND:STANDARD\nEND:VTIMEZONE\n"
    )
}

/// Returns how many items a query finds, and checks that a full scan finds the same.
fn count_found(book: &Book, query: &str) -> usize {
    let reader = book.store.open_reader().unwrap();
    let request = SearchRequest { query: Query::parse(query).unwrap(), ..SearchRequest::default() };
    let found = find(&reader, &request).unwrap();
    assert_eq!(found.rows(), full_scan(&reader, &request).unwrap().rows(), "{query}");
    found.len()
}

/// Exports the collection, imports that into another one, and checks that it has the same items in
/// the same calendar contexts.
fn check_round_trip(book: &mut Book) -> String {
    let exported = book.export(INTO);
    let outcome = book.take(&exported, &options_into("copy"));
    assert_eq!(outcome.rejected, [""; 0]);
    let ended = |items: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        let mut items: Vec<Vec<u8>> =
            items.into_iter().map(|item| item.trim_ascii_end().to_vec()).collect();
        items.sort();
        items
    };
    assert_eq!(ended(book.items("copy")), ended(book.items(INTO)));
    let back = book.take(&exported, &options_into(INTO)).summary;
    assert!(!back.has_changes(), "{back:?}");
    String::from_utf8(exported).unwrap()
}

/// Returns the numbers of time-zone definitions: in the input, and stored.
fn zones(outcome: &ImportOutcome) -> (u64, u64) {
    (outcome.summary.zones_defined, outcome.summary.zones_kept)
}

#[test]
fn a_zone_may_be_defined_after_its_use() {
    let timed = event("a", "DTSTART;TZID=Moon:20260301T120000\nDTEND;TZID=Moon:20260301T130000\n");
    let late = calendar(&format!("{timed}{}", zone("Moon", "+0730")));
    let mut book = Book::new();
    let file = book.file("late.ics", format!("{late}{}", calendar(&event("b", ""))));
    let outcome = book.import(vec![path(&file)], &options_into(INTO));
    assert_eq!((outcome.summary.added, zones(&outcome)), (2, (1, 1)));
    assert!(!outcome.warnings.iter().any(|line| line.contains("zone")), "{outcome:?}");
    let exported = book.export(INTO);
    assert!(String::from_utf8(exported).unwrap().contains("TZID:Moon\n"));
    let early = calendar(&format!("{}{timed}", zone("Moon", "+0730")));
    assert!(!book.take(early, &options_into(INTO)).summary.has_changes());

    // A stream is read only once, so a definition that comes too late causes a warning.
    let outcome = Book::new().take(late, &options_into(INTO));
    assert_eq!(zones(&outcome), (1, 0));
    let warning = "a time zone is defined after items that may use it";
    assert!(outcome.warnings.iter().any(|line| line.contains(warning)));
}

#[test]
fn the_name_of_a_calendar_may_follow_its_items() {
    let mut book = Book::new();
    let named = |name: &str| calendar(&format!("{}X-WR-CALNAME:{name}\n", event(name, "")));
    let file = book.file("file.ics", format!("{}{}", named("One"), named("Two")));
    let options = ImportOptions { into: None, ..options() };
    let outcome = book.import(vec![path(file)], &options);
    assert_eq!(outcome.summary.collections, ["One", "Two"]);
    assert_eq!((book.items("One").len(), book.items("Two").len()), (1, 1));
}

/// The same bytes with another definition of their zone are at another time.
#[test]
fn another_definition_of_a_zone_is_a_change() {
    let mut book = Book::new();
    let timed = event("a", "DTSTART;TZID=Moon:20260301T120000\nDURATION:PT1H\n");
    for (offset, changed) in [("+0730", true), ("+0730", false), ("-0100", true)] {
        let outcome =
            book.take(calendar(&format!("{}{timed}", zone("Moon", offset))), &options_into(INTO));
        assert_eq!(outcome.summary.has_changes(), changed, "{offset}");
    }
    assert!(check_round_trip(&mut book).contains("-0100"));
}

/// A name in another spelling than that of the system means the definition, if there is one.
#[test]
fn a_definition_of_another_item_does_not_change_a_zone() {
    for tzid in ["Moon", "Europe/lisbon", "Europe-Lisbon"] {
        let timed = |uid| event(uid, &format!("DTSTART;TZID={tzid}:20260701T100000\n"));
        let mut book = Book::new();
        book.take(calendar(&timed("d")), &options_into(INTO));
        book.take(calendar(&format!("{}{}", zone(tzid, "+0500"), timed("e"))), &options_into(INTO));
        let exported = check_round_trip(&mut book);
        assert_eq!(exported.matches("BEGIN:VCALENDAR").count(), 2, "{exported}");
    }
}

/// A definition that says the same as the system does not divide the calendar.
#[test]
fn an_agreeing_definition_of_another_item_is_shared() {
    for (tzid, offset, count) in [
        ("Africa/lagos", "+0100", 1),
        ("Africa-Lagos", "+0100", 1),
        ("Africa/lagos", "+0500", 2),
        ("Africa-Lagos", "+0500", 2),
        ("Moon", "+0100", 2),
    ] {
        let timed = |uid| event(uid, &format!("DTSTART;TZID={tzid}:20260701T100000\n"));
        let mut book = Book::new();
        book.take(calendar(&timed("d")), &options_into(INTO));
        book.take(calendar(&format!("{}{}", zone(tzid, offset), timed("e"))), &options_into(INTO));
        let exported = String::from_utf8(book.export(INTO)).unwrap();
        assert_eq!(exported.matches("BEGIN:VCALENDAR").count(), count, "{tzid} {exported}");
    }
}

/// Thousands of definitions of one name are as many calendar contexts, and items with the same
/// definition share one.
#[test]
fn definitions_of_one_name_stay_apart() {
    let mut book = Book::new();
    let mut text = String::new();
    for number in 0..600 {
        let timed = |uid: String| event(&uid, "DTSTART;TZID=Moon:20260301T120000\n");
        let offset = format!("+{:02}{:02}", number / 60, number % 60);
        let both = format!("{}{}", timed(format!("a{number}")), timed(format!("b{number}")));
        let both = format!("{}{both}", zone("Moon", &offset));
        write!(text, "{}", calendar(&both)).unwrap();
    }
    book.take(text, &options_into(INTO));
    let exported = check_round_trip(&mut book);
    assert_eq!(exported.matches("BEGIN:VCALENDAR").count(), 600);
}

/// A component without END ends with the component around it.
#[test]
fn unclosed_components_swallow_nothing() {
    let (a, b) = (event("a", ""), event("b", ""));
    for open in ["", "BEGIN:VALARM\nEND:VALARM\n", "BEGIN:VEVENT\nUID:c\nEND:VEVENT\n"] {
        let open = format!("BEGIN:X-THING\nUID:x\n{open}");
        let mut book = Book::new();
        book.take(
            format!("{}{}", calendar(&format!("{a}{open}")), calendar(&b)),
            &options_into(INTO),
        );
        assert_eq!(book.items(INTO).len(), 3);
        check_round_trip(&mut book);
        // Outside a calendar, END:VCALENDAR does not end a component.
        let mut book = Book::new();
        book.take(format!("{a}{open}END:VCALENDAR\nX:1\n{}", calendar(&b)), &options_into(INTO));
        assert_eq!(book.items(INTO).len(), 3);
        check_round_trip(&mut book);
    }
    let mut book = Book::new();
    book.take(calendar(&a.replace("END:VEVENT\n", "")), &options_into(INTO));
    let exported = book.export(INTO);
    assert!(!book.take(exported, &options_into(INTO)).summary.has_changes());
}

#[test]
fn line_ends_of_the_input_are_exported() {
    let text = calendar(&event("a", "DTSTART:20260301T120000Z\n"));
    for text in [text.clone(), text.replace('\n', "\r\n")] {
        let mut book = Book::new();
        book.take(&text, &options_into(INTO));
        assert_eq!(book.export(INTO), text.as_bytes());
        // The line ends of the items alone are enough.
        let mut book = Book::new();
        let bare = text.split_inclusive('\n').skip(3).take(4).collect::<String>();
        book.take(&bare, &options_into(INTO));
        let exported = book.export(INTO);
        let lines = text.matches("\r\n").count();
        assert_eq!(String::from_utf8(exported).unwrap().matches("\r\n").count(), lines);
    }
}

/// In version 1.0, a semicolon separates the members of a list.
#[test]
fn calendars_of_version_1_keep_their_syntax() {
    let one = |version: &str| {
        let lines = "CATEGORIES:Meeting;Travel\nDTSTART:20260301T120000Z\n";
        let text = calendar(&event("a", lines));
        let mut book = Book::new();
        book.take(text.replace("VERSION:2.0", &format!("VERSION:{version}")), &options_into(INTO));
        book
    };
    let mut book = one("1.0");
    assert_eq!(count_found(&book, "category:=travel"), 1);
    assert_eq!(count_found(&one("2.0"), "category:=travel"), 0);
    let exported = check_round_trip(&mut book);
    assert!(exported.contains("VERSION:1.0\n"), "{exported}");
    assert_eq!(count_found(&book, "category:=travel"), 2);
}

/// The METHOD of a calendar decides how it is imported: an older revision, or a mere reply,
/// replaces nothing.
#[test]
fn older_messages_replace_nothing() {
    let check = |method: &str, sequence: &str, stamp: &str, updated: bool| {
        let mut book = Book::new();
        let one = |title: &str, sequence: &str, stamp: &str| {
            let stamp = format!("DTSTAMP:202603{stamp}T000000Z\n");
            event("a", &format!("SUMMARY:{title}\n{sequence}{stamp}DTSTART:20260401T000000Z\n"))
        };
        book.take(calendar(&one("there", "SEQUENCE:3\n", "05")), &options_into(INTO));
        let arriving = one("arriving", sequence, stamp);
        let message = calendar(&format!("{method}{arriving}"));
        let outcome: ImportOutcome = book.take(&message, &options_into(INTO));
        let case = format!("{method:?} {sequence:?} {stamp}: {outcome:?}");
        let changed = outcome.summary.updated + outcome.summary.cancelled;
        assert_eq!(changed, u64::from(updated), "{case}");
        assert_eq!(outcome.rejected.len(), usize::from(!updated), "{case}");
        // If there is nothing to replace, the message is imported.
        assert_eq!(book.take(&message, &options_into("another")).summary.added, 1, "{case}");
        let exported = book.export("another");
        assert!(!String::from_utf8(exported).unwrap().contains("METHOD"));
    };
    for whole in ["METHOD:REQUEST\n", "METHOD:PUBLISH\n", "method:cancel\n"] {
        check(whole, "SEQUENCE:4\n", "01", true);
        check(whole, "SEQUENCE:3\n", "06", true);
        check(whole, "SEQUENCE:3\n", "05", true);
        check(whole, "SEQUENCE:3\n", "04", false);
        check(whole, "SEQUENCE:2\n", "06", false);
        check(whole, "", "06", false);
    }
    for part in ["REPLY", "COUNTER", "REFRESH", "DECLINECOUNTER", "ADD"] {
        check(&format!("METHOD:{part}\n"), "SEQUENCE:4\n", "06", false);
    }
    // Without a known METHOD it is an ordinary file: the last version wins.
    check("", "SEQUENCE:1\n", "01", true);
    check("METHOD:X-OWN\n", "SEQUENCE:1\n", "01", true);
}

/// The own lines of a calendar are stored up to a size; the rest is reported, and written to the
/// rejects.
#[test]
fn oversized_calendar_lines_are_rejected() {
    let mut book = Book::new();
    let mut text = String::from("BEGIN:VCALENDAR\nVERSION:2.0\n");
    for number in 0..3000 {
        writeln!(text, "X-LINE-{number:04}:{}", "x".repeat(20)).unwrap();
    }
    writeln!(text, "{}END:VCALENDAR", event("a", "")).unwrap();
    let target = book.file("rejects", "");
    let options = ImportOptions { rejects: Some((&target).into()), ..options_into(INTO) };
    let outcome = book.take(&text, &options);
    let [reported] = &outcome.rejected[..] else { panic!("{:?}", outcome.rejected) };
    assert!(reported.ends_with("a calendar's own lines beyond 64 KB"), "{reported}");
    let left = std::fs::read_to_string(target).unwrap();
    let line: usize = reported.split(':').nth(1).unwrap().parse().unwrap();
    assert_eq!(text.lines().nth(line - 1), left.lines().next());
    let exported = String::from_utf8(book.export(INTO)).unwrap();
    let kept = exported.matches("X-LINE-").count();
    assert_eq!(kept + left.matches("X-LINE-").count(), 3000);
}

/// A definition without a name cannot be used. It is reported, wherever it is, and written to the
/// rejects.
#[test]
fn a_zone_without_a_name_is_rejected() {
    let mut book = Book::new();
    let nameless = zone("Moon", "+0730").replace("TZID:Moon\n", "");
    let empty = zone("", "+0730");
    let timed = event("a", "DTSTART;TZID=Moon:20260301T120000\nDURATION:PT1H\n");
    let text = calendar(&format!("{nameless}{timed}{empty}{}", zone("Moon", "+0100")));
    let (file, target) = (book.file("file.ics", text), book.file("rejects", ""));
    let options = ImportOptions { rejects: Some((&target).into()), ..options_into(INTO) };
    let outcome = book.import(vec![path(file)], &options);
    let reason = "time zone definition without a TZID: nothing can refer to it";
    assert_eq!(outcome.rejected, [4, 16].map(|line| format!("file.ics:{line}: {reason}")));
    assert_eq!((outcome.summary.added, zones(&outcome)), (1, (1, 1)));
    assert_eq!(std::fs::read_to_string(target).unwrap(), format!("{nameless}{empty}"));
}

/// Reports about a calendar use the terms of calendars.
#[test]
fn reports_use_the_terms_of_calendars() {
    let mut book = Book::new();
    let mut check = |name: &str, text: String, reason: &str| {
        let file = book.file(name, text);
        let options = ImportOptions { max_item_bytes: 1 << 10, ..options_into(name) };
        let outcome = book.import(vec![path(file)], &options);
        let reasons: Vec<&str> = outcome
            .rejected
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|parts| parts.1)
            .collect();
        assert_eq!(reasons, [reason], "{name}");
    };
    check("a.ics", "scribbles\n".into(), "text outside any calendar");
    check("b.txt", format!("{}scribbles\n", calendar("")), "text outside any calendar");
    check("c.vcf", "scribbles\n".into(), "text outside any item");
    let large = event("a", &format!("SUMMARY:{}\n", "x".repeat(2000)));
    check("d.ics", calendar(&large), "item larger than 1 KB (--max-item)");
    check("e.ics", "END:VCALENDAR\n".into(), "END without BEGIN");
}

/// Generates a part of a calendar file, valid or not; parts are concatenated in any order.
fn part() -> impl Strategy<Value = String> {
    let lines = |uid: u8, tzid: u8, title: &str| {
        format!("UID:{uid}\nDTSTART;TZID=Z{tzid}:20260301T120000\nSUMMARY:{title}\n")
    };
    prop_oneof![
        4 => (0..4u8, 0..3u8, "[a-c]?").prop_map(move |(uid, tzid, title)| {
            format!("BEGIN:VEVENT\n{}END:VEVENT\n", lines(uid, tzid, &title))
        }),
        2 => (0..4u8, 0..3u8).prop_map(move |(uid, tzid)| {
            format!("BEGIN:VEVENT\n{}", lines(uid, tzid, "open"))
        }),
        1 => (0..4u8, 0..3u8).prop_map(move |(uid, tzid)| {
            format!("BEGIN:X-THING\n{}", lines(uid, tzid, "thing"))
        }),
        3 => (0..3u8, 0..3u8).prop_map(|(tzid, offset)| zone(&format!("Z{tzid}"), &format!("+0{offset}00"))),
        3 => Just("BEGIN:VCALENDAR\nVERSION:2.0\n".into()),
        1 => Just("BEGIN:VCALENDAR\nVERSION:1.0\n".into()),
        3 => Just("END:VCALENDAR\n".into()),
        1 => Just("X-WR-CALNAME:Name\nMETHOD:PUBLISH\n".into()),
        1 => Just("BEGIN:VALARM\nEND:VALARM\n".into()),
        1 => Just("\n \n".into()),
    ]
}

/// Returns the items of a collection with their calendar contexts, sorted.
fn items_with_contexts(book: &Book, name: &str) -> Vec<(Vec<u8>, bool, Vec<[u8; 32]>)> {
    let Some(collection) = book.collection(name) else { return Vec::new() };
    let reader = book.store.open_reader().unwrap();
    let heads = reader.items().list_after(&collection, None, 1000).unwrap();
    let mut all: Vec<_> = heads
        .iter()
        .map(|head| {
            let bytes = reader.items().source_bytes(head.row).unwrap().unwrap();
            let calendar_context = head
                .calendar_context
                .and_then(|row| reader.items().calendar_context(row).unwrap())
                .unwrap_or_default();
            let zones = calendar_context.zone_definitions.iter().map(|zone| *zone.hash()).collect();
            (bytes.trim_ascii_end().to_vec(), calendar_context.is_vcalendar_1, zones)
        })
        .collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_export_has_the_same_items(
        parts in prop::collection::vec(part(), 0..14),
        crlf in any::<bool>(),
    ) {
        let text = if crlf { parts.concat().replace('\n', "\r\n") } else { parts.concat() };
        let mut book = Book::new();
        let file = book.file("file.ics", &text);
        let first = book.import(vec![path(&file)], &options_into(INTO)).summary;
        let again = book.import(vec![path(&file)], &options_into(INTO)).summary;
        prop_assert!(!again.has_changes(), "{again:?}");
        prop_assert_eq!(first.item_count(), again.item_count());
        let exported = book.export(INTO);
        let shown = String::from_utf8_lossy(&exported).into_owned();
        let outcome = book.take(&exported, &options_into("copy"));
        prop_assert!(outcome.rejected.is_empty(), "{outcome:?}\n{shown}");
        prop_assert_eq!(items_with_contexts(&book, "copy"), items_with_contexts(&book, INTO), "{}", shown);
        let back = book.take(&exported, &options_into(INTO)).summary;
        prop_assert!(!back.has_changes(), "{back:?}\n{shown}");
        prop_assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
    }
}
