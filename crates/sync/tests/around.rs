//! What a calendar says around its items: on the way in, wherever it is said, and on the way out.

use crate::book::{Book, options};
use larder_query::{Find, Query, find, walk};
use larder_sync::ImportOptions;

const INTO: &str = "calendar";

fn into(name: &str) -> ImportOptions {
    ImportOptions { into: Some(name.into()), ..options() }
}

fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n{components}END:VCALENDAR\n")
}

fn event(uid: &str, lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:{uid}\n{lines}END:VEVENT\n")
}

/// How many items are found, by the index and without it.
fn found(book: &Book, question: &str) -> usize {
    let reader = book.store.reader().unwrap();
    let asked = Find { query: Query::parse(question).unwrap(), ..Find::default() };
    let found = find(&reader, &asked).unwrap();
    assert_eq!(found.rows(), walk(&reader, &asked).unwrap().rows(), "{question}");
    found.len()
}

/// Exports, and imports that into another collection, where the same items must be with the same frames.
fn goes_round(book: &mut Book) -> String {
    let exported = book.export(INTO);
    let told = book.take(&exported, &into("copy"));
    assert_eq!(told.rejected, [""; 0]);
    let ended = |items: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        let mut items: Vec<Vec<u8>> =
            items.into_iter().map(|item| item.trim_ascii_end().to_vec()).collect();
        items.sort();
        items
    };
    assert_eq!(ended(book.items("copy")), ended(book.items(INTO)));
    let back = book.take(&exported, &into(INTO)).summary;
    assert!(!back.changed(), "{back:?}");
    String::from_utf8(exported).unwrap()
}

/// The members of a list are divided otherwise there.
#[test]
fn a_calendar_of_version_1() {
    let one = |version: &str| {
        let lines = "CATEGORIES:Meeting;Travel\nDTSTART:20260301T120000Z\n";
        let text = calendar(&event("a", lines));
        let mut book = Book::new();
        book.take(text.replace("VERSION:2.0", &format!("VERSION:{version}")), &into(INTO));
        book
    };
    let mut book = one("1.0");
    assert_eq!(found(&book, "category:=travel"), 1);
    assert_eq!(found(&one("2.0"), "category:=travel"), 0);
    let exported = goes_round(&mut book);
    assert!(exported.contains("VERSION:1.0\n"), "{exported}");
    assert_eq!(found(&book, "category:=travel"), 2);
}
