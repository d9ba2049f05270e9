//! Small inputs: the number of their cards, the rejected ranges and their lines.

use crate::book::{Book, INTO, options};

/// Imports `input` and checks `rejected`: the lines and reasons of rejected parts. For a reason
/// that begins with `~`, only the line is compared, as the wording belongs to another crate.
fn check(input: &str, added: u64, rejected: &[(u64, &str)]) {
    let mut book = Book::new();
    let outcome = book.take(input, &options());
    assert_eq!(outcome.summary.added, added, "added of {input:?}: {outcome:?}");
    assert_eq!(outcome.rejected.len(), rejected.len(), "rejected of {input:?}: {outcome:?}");
    for (outcome, (line, reason)) in outcome.rejected.iter().zip(rejected) {
        if reason.starts_with('~') {
            assert!(outcome.starts_with(&format!("standard input:{line}: ")), "{outcome}");
        } else {
            assert_eq!(*outcome, format!("standard input:{line}: {reason}"), "of {input:?}");
        }
    }
    for item in book.items(INTO) {
        let item = String::from_utf8(item).unwrap();
        assert!(input.contains(&item), "{item:?} is no part of {input:?}");
    }
}

const A: &str = "BEGIN:VCARD\nUID:a\nFN:Ada\nEND:VCARD\n";
const B: &str = "BEGIN:VCARD\r\nUID:b\r\nFN:Bo\r\nEND:VCARD\r\n";
const CALENDAR: &str = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:e\nEND:VEVENT\nEND:VCALENDAR\n";
const NO_CARD: &str = "contacts cannot contain this event, only contacts";
const NO_EVENT: &str = "contacts cannot contain this contact, only events, tasks and memos";

#[test]
fn cards_are_imported() {
    check("", 0, &[]);
    check("\r\n\n", 0, &[]);
    check(A, 1, &[]);
    check(A.trim_end(), 1, &[]);
    check(&format!("{A}{B}"), 2, &[]);
    check(&format!("\n\n{A}\r\n\n{B}\n"), 2, &[]);
    check("begin:vcard\nfn:Small\nend:vcard\n", 1, &[]);
    check("BEGIN:VCARD\nFN:Nobody\nEND:VCARD\n", 1, &[]);
}

#[test]
fn other_text_is_reported() {
    check("hello\n", 0, &[(1, "text outside any item")]);
    check(&format!("{A}hello\nthere\n{B}"), 2, &[(5, "text outside any item")]);
    check(
        &format!("x\n{A}y\n{B}z"),
        2,
        &[
            (1, "text outside any item"),
            (6, "text outside any item"),
            (11, "text outside any item"),
        ],
    );
    check(&format!("{A}END:VCARD\n{B}"), 2, &[(5, "END without BEGIN")]);
    check(&format!("{CALENDAR}{A}"), 1, &[(6, NO_EVENT)]);
    check(&format!("{A}{CALENDAR}{B}"), 2, &[(6, NO_CARD)]);
    check(&format!("{A}\nBEGIN:VCARD\nEND:VCARD\n{B}"), 2, &[(6, "~nothing in it")]);
}

#[test]
fn a_stretch_is_reported_once() {
    check("one\ntwo\n\nEND:VCARD\nthree\n", 0, &[(1, "text outside any item")]);
    let ends = "END:VCARD\n".repeat(5);
    check(&format!("{ends}{A}{ends}"), 1, &[(1, "END without BEGIN"), (10, "END without BEGIN")]);
}

#[test]
fn a_missing_end_is_no_reason_to_refuse() {
    let open = "BEGIN:VCARD\nUID:open\nFN:Open\n";
    check(&format!("{open}{A}"), 2, &[]);
    check(open, 1, &[]);
    let mut book = Book::new();
    let outcome = book.take(format!("{open}{A}"), &options());
    assert_eq!(outcome.warnings.len(), 1, "{outcome:?}");
}

#[test]
fn two_cards_with_one_uid_are_both_kept() {
    let other = A.replace("Ada", "Eve");
    let mut book = Book::new();
    let input = format!("{A}{B}{other}{A}");
    let outcome = book.take(&input, &options());
    assert_eq!(
        (outcome.summary.added, outcome.summary.uid_conflicts, outcome.summary.unchanged),
        (3, 1, 1)
    );
    assert_eq!(outcome.summary.item_count(), 4);
    assert_eq!(
        outcome.warnings,
        ["standard input:9: second item with UID a: added under a derived UID"]
    );
    assert_eq!(book.items(INTO), [A.as_bytes(), B.as_bytes(), other.as_bytes()]);

    let seq = book.store.last_seq().unwrap();
    let outcome = book.take(&input, &options());
    assert_eq!((outcome.summary.unchanged, outcome.warnings.len()), (4, 0), "{outcome:?}");
    assert_eq!(outcome.summary.operation, None);
    assert_eq!(book.store.last_seq().unwrap(), seq);
}

#[test]
fn a_known_uid_is_an_update() {
    let mut book = Book::new();
    book.take(A, &options());
    let other = A.replace("Ada", "Eve");
    let outcome = book.take(&other, &options());
    assert_eq!((outcome.summary.updated, outcome.summary.added), (1, 0));
    assert!(outcome.summary.operation.is_some());
    assert_eq!(book.items(INTO), [other.as_bytes()]);
}

#[test]
fn cards_without_uid_are_recognised_again() {
    let cards = "BEGIN:VCARD\nFN:One\nEND:VCARD\nBEGIN:VCARD\nFN:Two\nEND:VCARD\n";
    let mut book = Book::new();
    assert_eq!(book.take(cards, &options()).summary.added, 2);
    assert_eq!(book.take(cards, &options()).summary.unchanged, 2);
    // Without its last line end it is the same card.
    let outcome = book.take(cards.trim_end(), &options());
    assert_eq!((outcome.summary.unchanged, outcome.summary.has_changes()), (2, false));
    assert_eq!(book.items(INTO).concat(), cards.as_bytes());
}

#[test]
fn one_import_is_one_operation() {
    let mut book = Book::new();
    let options = larder_sync::ImportOptions { batch: Some(1), ..options() };
    let outcome = book.take(format!("{A}{B}"), &options);
    assert_eq!(book.store.last_seq().unwrap(), 2);
    let log = book.store.open_reader().unwrap().changes().list_operations(None, 10).unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].id, outcome.summary.operation.unwrap());
    assert_eq!((log[0].verb.as_str(), log[0].detail.as_str()), ("import", "standard input"));
    assert_eq!((log[0].counts, log[0].started_at_ms), ([2, 0, 0], 1_000));
}
