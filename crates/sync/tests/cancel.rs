//! Messages with METHOD:CANCEL: the event is marked as cancelled, and keeps everything else.

use crate::book::{Book, ImportOutcome};
use larder_edit::item_text::SplitText;
use larder_store::{CollectionType, Operation, Store};
use larder_sync::ImportOptions;

const CALENDAR: &str = "calendar";

/// Returns a store with these events of the UID `u`; each is given without BEGIN, END and UID.
fn calendar(components: &[&str]) -> Book {
    let mut book = Book::new();
    let text: String = components
        .iter()
        .map(|lines| {
            let lines = lines.trim().replace('\n', "\r\n");
            format!("BEGIN:VEVENT\r\nUID:u\r\n{lines}\r\nEND:VEVENT\r\n")
        })
        .collect();
    let split = SplitText::from_bytes(text.as_bytes()).unwrap();
    let extractor =
        book.store.extractor_for_collection(CALENDAR, CollectionType::Calendar).unwrap();
    let parsed = split.parse_items(&extractor, &mut || Ok([1; 16])).unwrap();
    let mut operation = Operation::new("add", "", 0);
    let mut ignore = |_: &Store, _| Ok::<(), larder_store::Error>(());
    larder_edit::add_items(&mut book.store, &mut operation, CALENDAR, parsed.items, &mut ignore)
        .unwrap();
    book
}

/// Returns the text of all items, sorted.
fn bytes(book: &Book) -> Vec<String> {
    let mut items = book.items(CALENDAR);
    items.sort();
    items.into_iter().map(|item| String::from_utf8_lossy(&item).into_owned()).collect()
}

fn message(method: &str, components: &[&str]) -> String {
    let text: String = components
        .iter()
        .map(|lines| format!("BEGIN:VEVENT\nUID:u\n{}\nEND:VEVENT\n", lines.trim()))
        .collect();
    format!("BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:{method}\n{text}END:VCALENDAR\n")
}

fn take(book: &mut Book, text: &str) -> ImportOutcome {
    let options =
        ImportOptions { into: Some(CALENDAR.into()), ..ImportOptions::new(CALENDAR, 1_000) };
    book.take(text, &options)
}

/// Formats each item as recurrence-id, start, summary, status and revision.
fn format_items(book: &Book) -> Vec<String> {
    let line = |item: &String, name: &str| {
        let mut lines = item.lines().filter_map(|line| line.split_once([':', ';']));
        lines.find(|(key, _)| *key == name).map_or("-", |(_, value)| value).to_string()
    };
    let names = ["RECURRENCE-ID", "DTSTART", "SUMMARY", "STATUS", "SEQUENCE"];
    let outcome = |item: &String| names.map(|name| line(item, name)).join(" ");
    let mut shown: Vec<String> = bytes(book).iter().map(outcome).collect();
    shown.sort();
    shown
}

const LUNCH: &str =
    "SUMMARY:Lunch\nSEQUENCE:1\nDTSTAMP:20260301T000000Z\nDTSTART:20260310T110000Z\nDURATION:PT1H";
const DAILY: &str = "SUMMARY:Daily\nSEQUENCE:1\nDTSTAMP:20260301T000000Z\nDTSTART;TZID=Europe/Prague:20260309T090000\nDURATION:PT15M\nRRULE:FREQ=DAILY;COUNT=5";
const MOVED: &str = "SUMMARY:Moved\nSEQUENCE:1\nRECURRENCE-ID;TZID=Europe/Prague:20260311T090000\nDTSTART;TZID=Europe/Prague:20260311T160000\nDURATION:PT15M";

/// Checks an import of a CANCEL message: the stored components, the components of the message, the
/// stored components afterwards, and how many items are cancelled, unchanged and rejected.
fn check(stored: &[&str], components: &[&str], expect: &[&str], counts: [u64; 3]) {
    let mut book = calendar(stored);
    let text = message("CANCEL", components);
    let outcome = take(&mut book, &text);
    assert_eq!(format_items(&book), expect, "{components:?}");
    let summary = &outcome.summary;
    assert_eq!([summary.cancelled, summary.unchanged, summary.rejected], counts, "{outcome:?}");
    assert_eq!(summary.added + summary.updated, 0, "{outcome:?}");
    assert_eq!(summary.collections.len(), usize::from(counts[0] + counts[1] > 0));
    // The same message a second time changes nothing.
    let again = take(&mut book, &text).summary;
    assert!(!again.has_changes(), "{again:?}");
    assert_eq!(again.rejected, counts[2], "{again:?}");
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
    if let Some(operation) = summary.operation {
        let before = calendar(stored);
        book.store.undo(operation, 2_000).unwrap();
        assert_eq!(bytes(&book), bytes(&before));
    }
}

#[test]
fn a_cancelled_event_keeps_its_properties() {
    let cancelled = &["- 20260310T110000Z Lunch CANCELLED 2"];
    check(&[LUNCH], &["SEQUENCE:2\nSTATUS:CANCELLED"], cancelled, [1, 0, 0]);
    // The message to a person who is no longer invited has no STATUS.
    check(&[LUNCH], &["SEQUENCE:2\nDTSTART:20260310T110000Z"], cancelled, [1, 0, 0]);
    let mut book = calendar(&[LUNCH]);
    take(&mut book, &message("CANCEL", &["SEQUENCE:2\nDTSTAMP:20260305T000000Z\nCOMMENT:ill"]));
    assert_eq!(
        bytes(&book),
        [format!(
            "BEGIN:VEVENT\nUID:u\n{}\nSTATUS:CANCELLED\nEND:VEVENT\n",
            LUNCH.replace("SEQUENCE:1", "SEQUENCE:2").replace("20260301T", "20260305T")
        )
        .replace('\n', "\r\n")]
    );
}

#[test]
fn newer_revisions_stay() {
    let stored = &["- 20260310T110000Z Lunch - 1"];
    check(&[LUNCH], &["SEQUENCE:0\nSTATUS:CANCELLED"], stored, [0, 0, 1]);
    check(&[LUNCH], &["STATUS:CANCELLED"], stored, [0, 0, 1]);
    check(&[LUNCH], &["SEQUENCE:1\nDTSTAMP:20260228T000000Z"], stored, [0, 0, 1]);
    let daily = &["- TZID=Europe/Prague:20260309T090000 Daily - 1"];
    check(&[DAILY], &["RECURRENCE-ID:20260310T080000Z\nSEQUENCE:0"], daily, [0, 0, 1]);
}

#[test]
fn one_occurrence_is_cancelled() {
    let master = "- TZID=Europe/Prague:20260309T090000 Daily - 1";
    let tenth =
        "TZID=Europe/Prague:20260310T090000 TZID=Europe/Prague:20260310T090000 Daily CANCELLED 2";
    for id in [";TZID=Europe/Prague:20260310T090000", ":20260310T080000Z", ";VALUE=DATE:20260310"] {
        let cancellation = format!("RECURRENCE-ID{id}\nSEQUENCE:2\nSTATUS:CANCELLED");
        check(&[DAILY], &[&cancellation], &[master, tenth], [1, 0, 0]);
    }
    let moved = |rest: &str| {
        format!(
            "TZID=Europe/Prague:20260311T090000 TZID=Europe/Prague:20260311T160000 Moved {rest}"
        )
    };
    let id = "RECURRENCE-ID:20260311T080000Z\nSEQUENCE:2";
    check(&[DAILY, MOVED], &[id], &[master, &moved("CANCELLED 2")], [1, 0, 0]);
    // The store of a person who was invited to this occurrence only.
    check(&[MOVED], &[id], &[&moved("CANCELLED 2")], [1, 0, 0]);
}

#[test]
fn a_series_and_later_occurrences_are_cancelled() {
    let master = |rest: &str| format!("- TZID=Europe/Prague:20260309T090000 Daily {rest}");
    let moved =
        "TZID=Europe/Prague:20260311T090000 TZID=Europe/Prague:20260311T160000 Moved CANCELLED 2";
    check(&[DAILY, MOVED], &["SEQUENCE:2"], &[&master("CANCELLED 2"), moved], [1, 0, 0]);
    let from = "RECURRENCE-ID;RANGE=THISANDFUTURE:20260310T080000Z\nSEQUENCE:2";
    check(
        &[DAILY, MOVED],
        &[from],
        &[
            &master("- 1"),
            moved,
            "TZID=Europe/Prague;RANGE=THISANDFUTURE:20260310T090000 TZID=Europe/Prague:20260310T090000 Daily CANCELLED 2",
        ],
        [1, 0, 0],
    );
}

/// Components without a stored counterpart are stored as they are, and never changed by the import
/// itself.
#[test]
fn cancellations_without_a_counterpart_are_stored() {
    let check = |stored: &[&str], components: &[&str], added: u64| {
        let mut book = if stored.is_empty() { Book::new() } else { calendar(stored) };
        let text = message("CANCEL", components);
        let outcome = take(&mut book, &text);
        assert_eq!((outcome.summary.added, outcome.summary.cancelled), (added, 0), "{outcome:?}");
        assert!(bytes(&book).iter().any(|item| item.contains(components[0])), "{components:?}");
        let again = take(&mut book, &text).summary;
        assert!(!again.has_changes() && again.item_count() == added, "{again:?}");
    };
    check(&[], &["SEQUENCE:2\nDTSTART:20260310T110000Z"], 1);
    check(&[DAILY], &["RECURRENCE-ID:20260420T080000Z\nSEQUENCE:2"], 1);
    check(&[DAILY], &["RECURRENCE-ID:whenever\nSEQUENCE:2"], 1);
    check(&[], &[DAILY, MOVED], 2);
}

/// Components of several messages in one import are stored side by side, as always.
#[test]
fn messages_of_the_same_import_stay_apart() {
    let mut book = Book::new();
    let text = [message("REQUEST", &[DAILY]), message("CANCEL", &["SEQUENCE:3"])].concat();
    let outcome = take(&mut book, &text).summary;
    assert_eq!((outcome.added, outcome.uid_conflicts, outcome.cancelled), (2, 1, 0), "{outcome:?}");
    let again = take(&mut book, &text).summary;
    assert_eq!((again.unchanged, again.has_changes()), (2, false), "{again:?}");
    // One message about a whole series and one of its overrides.
    let mut book = calendar(&[DAILY, MOVED]);
    let id = "RECURRENCE-ID:20260311T080000Z\nSEQUENCE:3";
    let outcome = take(&mut book, &message("CANCEL", &["SEQUENCE:2", id, id])).summary;
    let counts = (outcome.cancelled, outcome.unchanged, outcome.added, outcome.uid_conflicts);
    assert_eq!(counts, (2, 1, 0, 0), "{outcome:?}");
    let ends = ["Daily CANCELLED 2", "Moved CANCELLED 3"];
    assert!(format_items(&book).iter().zip(ends).all(|(item, end)| item.ends_with(end)));
}

/// A message that names no calendar applies to the calendar that has its UID, whatever the name of
/// its file.
#[test]
fn a_message_finds_its_calendar() {
    let anywhere = ImportOptions { into: None, ..ImportOptions::new("", 1_000) };
    let newer = LUNCH.replace("SEQUENCE:1", "SEQUENCE:2").replace("Lunch", "Dinner");
    let named = message("PUBLISH", &[LUNCH]).replace("METHOD", "X-WR-CALNAME:Club\nMETHOD");
    let mut book = Book::new();
    assert_eq!(book.take(&named, &anywhere).summary.collections, ["Club"]);
    let outcome = book.take(message("REQUEST", &[&newer]), &anywhere).summary;
    assert_eq!(
        (outcome.updated, &outcome.collections[..]),
        (1, &["Club".to_string()][..]),
        "{outcome:?}"
    );
    let outcome = book.take(message("CANCEL", &["SEQUENCE:3"]), &anywhere).summary;
    assert_eq!((outcome.cancelled, &outcome.collections[..]), (1, &["Club".to_string()][..]));
    let stored = book.items("Club");
    assert_eq!(stored.len(), 1);
    assert!(String::from_utf8_lossy(&stored[0]).contains("SUMMARY:Dinner"));
    let exported = book.export("Club");
    assert!(String::from_utf8_lossy(&exported).contains("\nX-WR-CALNAME:Club\n"));
    assert!(book.collection(CALENDAR).is_none());
    // A published event is in a calendar of its own; where several calendars have a UID, a message
    // applies to the one named like its file.
    assert_eq!(book.take(message("PUBLISH", &[LUNCH]), &anywhere).summary.added, 1);
    let outcome = book.take(message("REQUEST", &[&newer]), &anywhere).summary;
    assert_eq!(
        (outcome.updated, &outcome.collections[..]),
        (1, &[CALENDAR.to_string()][..]),
        "{outcome:?}"
    );
    assert_eq!(outcome.warnings, 1, "several calendars have this UID: {outcome:?}");
    // Items of the same import count, and the lines of a message do not replace those of the stored
    // calendar.
    let coloured = named.replace("X-WR", "X-COLOR:red\nX-WR");
    let unnamed = message("REQUEST", &[&newer]).replace("METHOD", "X-OTHER:1\nMETHOD");
    let mut book = Book::new();
    let both = [coloured.as_str(), &unnamed].concat();
    let outcome = book.take(&both, &anywhere).summary;
    assert_eq!(
        (outcome.uid_conflicts, &outcome.collections[..]),
        (1, &["Club".to_string()][..]),
        "{outcome:?}"
    );
    let again = book.take(&both, &anywhere).summary;
    assert!(!again.has_changes(), "{again:?}");
    // A second message of an import follows the first.
    let mut book = Book::new();
    let both = [message("REQUEST", &[LUNCH]), message("REQUEST", &[&newer])].concat();
    let outcome = book.take(both, &anywhere).summary;
    assert_eq!(
        (outcome.added, outcome.uid_conflicts, outcome.collections.len()),
        (2, 1, 1),
        "{outcome:?}"
    );
}

/// RECURRENCE-ID names an instance: the text in UTC is that of the stored override.
#[test]
fn an_override_replaces_that_of_the_same_occurrence() {
    let later = |sequence: u8| {
        let lines = "SUMMARY:Later\nRECURRENCE-ID:20260311T080000Z\nDTSTART:20260311T170000Z\nDURATION:PT15M";
        message("REQUEST", &[&format!("{lines}\nSEQUENCE:{sequence}")])
    };
    let master = "- TZID=Europe/Prague:20260309T090000 Daily - 1";
    let mut book = calendar(&[DAILY, MOVED]);
    let before = bytes(&book);
    let older = take(&mut book, &later(0)).summary;
    assert_eq!((older.rejected, older.has_changes()), (1, false));
    assert_eq!(bytes(&book), before);
    let newer = take(&mut book, &later(2)).summary;
    assert_eq!((newer.added, newer.updated), (0, 1));
    assert_eq!(
        format_items(&book),
        [master, "20260311T080000Z 20260311T170000Z Later - 2"],
        "{newer:?}"
    );
    assert!(!take(&mut book, &later(2)).summary.has_changes());
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
    book.store.undo(newer.operation.unwrap(), 2_000).unwrap();
    assert_eq!(bytes(&book), before);
    // Another occurrence.
    let other = later(2).replace("RECURRENCE-ID:20260311", "RECURRENCE-ID:20260312");
    take(&mut book, &other);
    assert_eq!(bytes(&book).len(), 3);
    // One that applies to the following occurrences, too.
    let following = later(3).replace("RECURRENCE-ID:", "RECURRENCE-ID;RANGE=THISANDFUTURE:");
    take(&mut book, &following);
    assert_eq!(bytes(&book).len(), 4);
    let again = following
        .replace(
            "THISANDFUTURE:20260311T080000Z",
            "THISANDFUTURE;TZID=America/New_York:20260311T040000",
        )
        .replace("SEQUENCE:3", "SEQUENCE:4");
    let singles = |book: &_| -> Vec<String> {
        format_items(book).into_iter().filter(|item| !item.contains("RANGE")).collect()
    };
    let before = singles(&book);
    let replaced = take(&mut book, &again).summary;
    assert_eq!((replaced.added, replaced.updated, bytes(&book).len()), (0, 1, 4));
    assert_eq!(singles(&book), before);
}
