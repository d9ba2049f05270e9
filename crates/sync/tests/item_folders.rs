//! Folders with one file for each item, as vdirsyncer and khal keep them: one collection each.

use crate::book::{Book, card, options, path};
use larder_sync::{ImportOptions, ImportReport};

fn event(uid: &str, header: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\n{header}BEGIN:VEVENT\r\nUID:{uid}\r\n\
         SUMMARY:{uid}\r\nDTSTART:20260306T090000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

/// Imports the folder `files` without `into`.
fn import_all(book: &mut Book) -> ImportReport {
    let options = ImportOptions { into: None, ..options() };
    let outcome = book.import(vec![path(book.path(""))], &options);
    assert_eq!((outcome.rejected, outcome.warnings), (vec![], vec![]));
    outcome.summary
}

#[track_caller]
fn check(files: &[(&str, String)], expect: &[&str]) {
    let mut book = Book::new();
    for (name, bytes) in files {
        book.file(name, bytes);
    }
    assert_eq!(import_all(&mut book).collections, expect);
    let again = import_all(&mut book);
    assert_eq!(
        (again.collections, again.added),
        (expect.iter().map(|s| s.to_string()).collect(), 0)
    );
}

fn text(text: &str) -> String {
    text.to_string()
}

#[test]
fn a_folder_of_single_items_is_one_collection() {
    let files: Vec<(String, String)> =
        (0..12).map(|n| (format!("private/{n}.ics"), event(&format!("u{n}"), ""))).collect();
    let files: Vec<(&str, String)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    check(&files, &["private"]);
    // A lone file is an item of its folder if it has the name of its UID.
    check(&[("private/u1.ics", event("u1", ""))], &["private"]);
    check(&[("downloads/dentist.ics", event("u1", ""))], &["dentist"]);
    check(
        &[("friends/a.vcf", card("a", "Anna")), ("friends/b.vcf", card("b", "Bea"))],
        &["friends"],
    );
}

#[test]
fn displayname_names_the_collection() {
    let named = [
        ("x1/displayname", text("My / Calendar\n")),
        ("x1/dentist.ics", event("u1", "")),
        ("x2/displayname", text("\n")),
        ("x2/dentist.ics", event("u1", "X-WR-CALNAME:Other\r\n")),
        ("x3/color", text("#ff0000\n")),
        ("x3/dentist.ics", [event("u1", ""), event("u2", "")].concat()),
        ("x4/displayname", text("Friends")),
        ("x4/all.vcf", [card("a", "Anna"), card("b", "Bea")].concat()),
    ];
    check(&named, &["My   Calendar", "x2", "x3", "Friends"]);
}

#[test]
fn nested_folders_are_collections_of_their_own() {
    let nested = [
        ("google/personal/u1.ics", event("u1", "")),
        ("google/personal/u2.ics", event("u2", "")),
        ("google/u3.ics", event("u3", "")),
        ("nextcloud/personal/u1.ics", event("u1", "")),
        ("people/personal/a.vcf", card("a", "Anna")),
        ("people/personal/b.vcf", card("b", "Bea")),
        ("people/calendar/c.vcf", card("c", "Cleo")),
    ];
    check(
        &nested,
        &["personal", "google", "personal (nextcloud)", "calendar (people)", "personal (people)"],
    );
}

#[test]
fn other_folders_keep_a_collection_for_each_file() {
    let two = || [event("u1", ""), event("u2", "")].concat();
    check(&[("a/work.ics", two()), ("a/one.ics", event("u3", ""))], &["one", "work"]);
    let name = "X-WR-CALNAME:Work\r\n";
    check(&[("a/u1.ics", event("u1", name)), ("a/u2.ics", event("u2", ""))], &["Work", "u2"]);
    let mixed = [("a/u1.ics", event("u1", "")), ("a/b.vcf", card("b", "Bea"))];
    check(&mixed, &["contacts", "u1"]);
    // An invitation is a message, and no item of a folder.
    let invitation = event("u1", "METHOD:REQUEST\r\n");
    check(&[("a/i.ics", invitation), ("a/u2.ics", event("u2", ""))], &["i", "u2"]);
}

#[test]
fn a_collection_of_another_type_keeps_its_name() {
    let mut book = Book::new();
    book.file("first/displayname", "Private");
    book.file("first/a.vcf", card("a", "Anna"));
    assert_eq!(import_all(&mut book).collections, ["Private"]);
    std::fs::remove_dir_all(book.path("first")).unwrap();
    book.file("second/displayname", "Private");
    book.file("second/u1.ics", event("u1", ""));
    assert_eq!(import_all(&mut book).collections, ["Private (files)"]);
}

#[test]
fn into_wins() {
    let mut book = Book::new();
    book.file("private/displayname", "Private");
    book.file("private/u1.ics", event("u1", ""));
    let outcome = book.import(vec![path(book.path(""))], &options());
    assert_eq!(outcome.summary.collections, [crate::book::INTO]);
}

/// The properties of the collection are of the first file, with the name and the colour of the
/// folder.
#[test]
fn the_name_and_the_colour_become_properties() {
    let mut book = Book::new();
    let header = "X-WR-CALNAME:Old\r\nX-APPLE-CALENDAR-COLOR:#000000\r\nMETHOD:PUBLISH\r\n";
    book.file("x/displayname", "Home, sweet");
    book.file("x/color", "#00ff00FF\n");
    book.file("x/u1.ics", event("u1", header));
    import_all(&mut book);
    let bytes = String::from_utf8(book.export("Home, sweet")).unwrap();
    let lines: Vec<&str> = bytes.lines().take_while(|line| *line != "BEGIN:VEVENT").collect();
    let has = |line: &str| lines.iter().filter(|other| **other == line).count();
    assert_eq!(has("PRODID:-//x//EN"), 1, "{lines:?}");
    assert_eq!(has("X-WR-CALNAME:Home\\, sweet"), 1, "{lines:?}");
    assert_eq!(has("X-APPLE-CALENDAR-COLOR:#00ff00FF"), 1, "{lines:?}");
    assert!(!bytes.contains("Old") && !bytes.contains("METHOD") && !bytes.contains("#000000"));
    // Text that is no colour is ignored.
    book.file("x/color", "#00ff00\r\nBEGIN:VEVENT");
    import_all(&mut book);
    assert!(!String::from_utf8(book.export("Home, sweet")).unwrap().contains("#00ff00"));
}
