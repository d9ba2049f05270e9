//! The contents of the file for rejects, and the time it is written.

use crate::book::{Book, card, options, path, stream};
use larder_sync::{Error, ImportOptions};
use std::path::Path;

fn options_with_rejects(rejects: &Path) -> ImportOptions {
    ImportOptions { rejects: Some(rejects.into()), max_item_bytes: 4 << 10, ..options() }
}

/// Imports `input` and compares the file of rejects; `None` if there is no file.
fn check(input: impl AsRef<[u8]>, kept: Option<&[u8]>) {
    let mut book = Book::new();
    book.file("folder/x", "");
    let target = book.path("folder/rejects.vcf");
    let outcome = book.take(input, &options_with_rejects(&target));
    assert_eq!(outcome.summary.rejects_file.is_some(), kept.is_some(), "{outcome:?}");
    assert_eq!(std::fs::read(&target).ok().as_deref(), kept);
    let files = std::fs::read_dir(book.path("folder")).unwrap().count();
    assert_eq!(files, 1 + usize::from(kept.is_some()), "a temporary file was left");
}

#[test]
fn stretches_are_kept_byte_for_byte() {
    let (a, b) = (card("a", "Ada"), card("b", "Bo"));
    check(&a, None);
    check("", None);
    check(format!("{a}hello\r\n\tthere\n{b}"), Some(b"hello\r\n\tthere\n"));
    check(format!("{a}hello"), Some(b"hello"));
    let event = "BEGIN:VEVENT\nUID:e\nEND:VEVENT\n";
    let kept = format!("one\n{event}END:VCARD\n");
    let input = format!("one\n{a}BEGIN:VCALENDAR\n{event}END:VCALENDAR\n{b}END:VCARD\n");
    check(input, Some(kept.as_bytes()));
    check(format!("{a}BEGIN:VCARD\r\nEND:VCARD\r\n{b}"), Some(b"BEGIN:VCARD\r\nEND:VCARD\r\n"));
    check(b"\xff\x00\x80 x\n", Some(b"\xff\x00\x80 x\n"));
}

#[test]
fn a_stretch_begins_on_its_own_line() {
    let mut book = Book::new();
    let target = book.path("rejects.vcf");
    let one = book.file("1.vcf", "no line end");
    let two = book.file("2.vcf", "END:VCARD\r\n");
    book.import(vec![path(one), path(two)], &options_with_rejects(&target));
    assert_eq!(std::fs::read_to_string(target).unwrap(), "no line end\nEND:VCARD\r\n");
}

#[test]
fn a_card_that_is_too_large_is_kept_whole() {
    let large = card("large", &"name ".repeat(4000));
    let (a, b) = (card("a", "Ada"), card("b", "Bo"));
    check(format!("{a}{large}{b}"), Some(large.as_bytes()));
}

#[test]
fn an_earlier_file_is_replaced_only_by_rejects() {
    let mut book = Book::new();
    let target = book.file("rejects.vcf", "earlier");
    book.take(card("a", "Ada"), &options_with_rejects(&target));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "earlier");
    book.take("later", &options_with_rejects(&target));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "later");
}

#[test]
fn an_unwritable_target_is_reported_first() {
    let mut book = Book::new();
    book.file("folder/x", "");
    for target in [book.path("folder"), book.path("nowhere/rejects.vcf"), "/".into()] {
        let error = book
            .try_import(vec![stream(card("a", "Ada"))], &options_with_rejects(&target))
            .unwrap_err();
        assert!(matches!(error, Error::RejectsFile { .. }), "{error}");
        assert_eq!(book.store.last_seq().unwrap(), 0);
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let mut book = Book::new();
    let real = book.file("real", "earlier");
    std::os::unix::fs::symlink(&real, book.path("link")).unwrap();
    book.take("later", &options_with_rejects(&book.path("link")));
    assert!(book.path("link").is_symlink());
    assert_eq!(std::fs::read_to_string(real).unwrap(), "later");

    std::os::unix::fs::symlink("/dev/null", book.path("null")).unwrap();
    let outcome = book.take("gone", &options_with_rejects(&book.path("null")));
    assert_eq!(outcome.summary.rejects_file, Some(book.path("null")));
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn the_file_for_rejects_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut book = Book::new();
    book.file("x", "");
    let target = book.path("rejects.vcf");
    book.take("text", &options_with_rejects(&target));
    assert_eq!(std::fs::metadata(target).unwrap().permissions().mode() & 0o777, 0o600);
}
