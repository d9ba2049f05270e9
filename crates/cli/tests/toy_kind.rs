//! A toy kind, bookmarks, on its way through the program: imported, found, sorted, shown, watched,
//! edited, undone and exported.
//!
//! The feature that adds the kind is off in every release and in all other tests. The places that
//! name it are all that a kind needs; a test in `kind_places` lists them. So this is a test program
//! of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "the helpers of tests are tests too"
)]

#[allow(dead_code)] // The runner uses the rest.
mod test_home;

use crate::test_home::{ANNA, Home};
use std::io::{BufRead as _, BufReader};

/// Three bookmarks; the last has neither a UID nor a title.
const SHELF: &str = "BEGIN:BOOKMARK\r\nUID:rules\r\nTITLE:Recurrence rules\r\nTAG:calendar,reading\r\n\
    DATE:2026-03-05\r\nLINK:https://example.org/rules\r\nEND:BOOKMARK\r\n\
    BEGIN:BOOKMARK\r\nUID:apples\r\nTITLE:Ärger im Apfelgarten\r\nTAG:reading\r\nDATE:2025-11-01\r\n\
    END:BOOKMARK\r\n\
    BEGIN:BOOKMARK\r\nTAG:empty\r\nLINK:https://example.org/none\r\nEND:BOOKMARK\r\n";
/// An event that has the tag of a bookmark as its category.
const EVENT: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:club\r\nSUMMARY:Book club\r\n\
    CATEGORIES:reading\r\nDTSTART:20260310T180000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn home_with_shelf() -> Home {
    let home = Home::new();
    home.write("mixed.txt", [SHELF, ANNA, EVENT].concat());
    home.ok(&["import", "mixed.txt"]);
    home
}

fn uids(home: &Home, args: &[&str]) -> Vec<String> {
    let found = home.run(&[&["find"], args, &["--format", "json"]].concat());
    assert!(matches!(found.code, 0 | 1), "{args:?}: {}", found.stderr());
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let found: Vec<_> = found.stdout().lines().map(parse).collect();
    assert!(found.iter().all(|item| item["uid"].is_string()), "{args:?}: {found:?}");
    found.iter().map(|item| item["uid"].as_str().unwrap().to_string()).collect()
}

#[test]
fn bookmarks_are_imported_into_a_collection_of_their_own() {
    let home = Home::new();
    home.write("mixed.txt", [SHELF, ANNA, EVENT].concat());
    let said = home.ok(&["import", "mixed.txt"]);
    assert!(said.contains("3 bookmarks added to bookmarks"), "{said}");
    assert!(said.contains("1 contact added to contacts"), "{said}");
    let listed = home.ok(&["collections"]);
    assert!(listed.contains("3 bookmarks"), "{listed}");
    // The same file again changes nothing.
    let said = home.ok(&["import", "mixed.txt"]);
    assert!(said.contains("nothing new"), "{said}");
    // A collection of another type does not take them.
    home.code(&["import", "mixed.txt", "--into", "contacts"], 3);
    // A folder has them by their extension.
    let home = Home::new();
    home.write("shelf/first.bookmark", SHELF);
    let said = home.ok(&["import", "shelf"]);
    assert!(said.contains("3 bookmarks added to bookmarks"), "{said}");
    home.assert_store_is_sound();
}

#[test]
fn bookmarks_are_found_by_words_and_fields() {
    let home = home_with_shelf();
    assert_eq!(uids(&home, &["arger apfelgarten"]), ["apples"]);
    assert_eq!(uids(&home, &["is:bookmark", "reading"]), ["apples", "rules"]);
    assert_eq!(uids(&home, &["date:2026-03*"]), ["rules"]);
    assert_eq!(uids(&home, &["has:link", "-has:title"]).len(), 1);
    // The name of a contact's field and of a calendar's means the field of a bookmark, too.
    assert_eq!(uids(&home, &["title:recurrence"]), ["rules"]);
    assert_eq!(uids(&home, &["--kind", "bookmark", "tag:calendar"]), ["rules"]);
    // What has no time is in no time range.
    assert_eq!(uids(&home, &["when:2026-03"]), ["club"]);
    assert_eq!(uids(&home, &["when:2026-03 is:bookmark"]), [""; 0]);
    let explained = home.ok(&["find", "--explain", "--kind", "bookmark", "title:recurrence"]);
    assert!(explained.contains("read      1 row"), "{explained}");
    // The plan agrees with a scan without indexes.
    home.ok(&["collections", "index", "bookmarks", "--index", "none"]);
    assert_eq!(uids(&home, &["arger apfelgarten"]), ["apples"]);
    assert_eq!(uids(&home, &["is:bookmark", "reading"]), ["apples", "rules"]);
}

#[test]
fn bookmarks_have_an_order_and_columns() {
    let home = home_with_shelf();
    // By title, in the order of the locale; an empty title comes first.
    let sorted = uids(&home, &["is:bookmark"]);
    assert_eq!(sorted[1..], ["apples", "rules"]);
    assert_eq!(uids(&home, &["is:bookmark", "--sort", "-date", "-n", "1"]), ["rules"]);
    let lines = home.ok(&["find", "is:bookmark"]);
    let lines: Vec<&str> =
        lines.lines().map(|line| line.split_once("  ").unwrap().1.trim()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    (no title)            empty
    Ärger im Apfelgarten  reading            2025-11-01
    Recurrence rules      calendar, reading  2026-03-05
    ");
    assert_eq!(
        home.ok(&["find", "uid:rules", "--fields", "title,tag,date"])
            .split_once('\t')
            .unwrap()
            .1
            .trim(),
        "Recurrence rules\tcalendar, reading\t2026-03-05"
    );
    let page = home.ok(&["show", "uid:rules"]);
    assert!(page.starts_with("Recurrence rules\n"), "{page}");
    assert!(page.contains("link"), "{page}");
    let found = home.json(&["show", "uid:rules", "--format", "json"]);
    assert_eq!(found[0]["kind"], "bookmark");
    assert_eq!(found[0]["tag"], serde_json::json!(["calendar", "reading"]));
    assert!(home.ok(&["fields"]).contains("Bookmarks:"));
}

#[test]
fn a_view_of_bookmarks_is_notified() {
    let home = home_with_shelf();
    let mut watch = home.spawn(&mut home.command(&["watch", "tag:reading", "--format", "json"]));
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = |wanted: usize| -> Vec<String> {
        let objects = lines
            .by_ref()
            .map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
        let mut told: Vec<String> = objects
            .filter(|object| object["uid"].is_string())
            .take(wanted)
            .map(|object| {
                format!(
                    "{} {}",
                    object["change"].as_str().unwrap(),
                    object["uid"].as_str().unwrap()
                )
            })
            .collect();
        told.sort();
        told
    };
    assert_eq!(next(3), ["added apples", "added club", "added rules"]);
    home.write("new.bookmark", "BEGIN:BOOKMARK\nUID:new\nTITLE:New\nTAG:reading\nEND:BOOKMARK\n");
    home.ok(&["add", "new.bookmark"]);
    assert_eq!(next(1), ["added new"]);
    home.write("new.bookmark", "BEGIN:BOOKMARK\nUID:new\nTITLE:New\nTAG:other\nEND:BOOKMARK\n");
    home.ok(&["edit", "uid:new", "--from", "new.bookmark"]);
    assert_eq!(next(1), ["removed new"]);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn bookmarks_are_edited_and_undone() {
    let home = home_with_shelf();
    let before = home.ok(&["show", "uid:rules", "--raw"]);
    home.write("new", before.replace("Recurrence", "Repetition"));
    home.ok(&["edit", "uid:rules", "--from", "new"]);
    assert_eq!(uids(&home, &["repetition"]), ["rules"]);
    home.ok(&["undo"]);
    assert_eq!(home.ok(&["show", "uid:rules", "--raw"]), before);
    assert_eq!(uids(&home, &["repetition"]), [""; 0]);
    for (text, refusal) in [
        (before.replace("UID:rules", "UID:others"), "the UID cannot be changed"),
        (before.replace("END:BOOKMARK\r\n", ""), "missing END:BOOKMARK"),
        (before.repeat(2), "expected one BOOKMARK, found 2"),
    ] {
        home.write("new", text);
        let failed = home.code(&["edit", "uid:rules", "--from", "new"], 3);
        assert!(failed.stderr().contains(refusal), "{}", failed.stderr());
    }
    let failed = home.code(&["edit", "uid:rules", "--set", "summary=x"], 2);
    assert!(failed.stderr().contains("options cannot change bookmarks"));
    home.ok(&["remove", "uid:rules"]);
    home.ok(&["undo"]);
    assert_eq!(home.ok(&["show", "uid:rules", "--raw"]), before);
    home.assert_store_is_sound();
}

#[test]
fn bookmarks_are_exported_as_they_came() {
    let home = home_with_shelf();
    assert_eq!(home.ok(&["export", "bookmarks"]), SHELF);
    // A store without the derived data has the same answers.
    home.ok(&["check", "--rebuild"]);
    assert_eq!(uids(&home, &["is:bookmark", "reading"]), ["apples", "rules"]);
    home.assert_store_is_sound();
}
