//! `larder import`: valid, invalid and oversized input.

use crate::test_home::{ANNA, BRUNO, CHLOE, Home};
use insta::assert_snapshot;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

fn book() -> String {
    [ANNA, BRUNO, CHLOE].concat()
}

#[test]
fn a_second_import_updates() {
    let home = Home::new();
    home.write("book.vcf", book());
    assert_snapshot!(home.run(&["import", "book.vcf"]).masked_output(), @"
    3 contacts added to contacts (1 file, 512 bytes)
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ");
    assert_snapshot!(home.run(&["import", "book.vcf"]).masked_output(), @"nothing new: 3 contacts unchanged in contacts (1 file, 512 bytes)");
    // One card changes, one is new, one is the same, and one is missing in the file but stays in
    // the store.
    let changed = ANNA.replace("Orchard Works", "Meadow Works");
    let new = BRUNO.replace("bruno-2", "bruno-3");
    home.write("book.vcf", [changed.as_str(), &new, CHLOE].concat());
    assert_snapshot!(home.run(&["import", "book.vcf"]).masked_output(), @"
    1 contact added to contacts, 1 updated, 1 unchanged (1 file, 511 bytes)
    Undo: larder undo 2
    ");
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"Undid operation 2 (import): 2 items reverted. Redo: larder undo 3");
    assert_eq!(home.run(&["export", "contacts"]).out, book().as_bytes());
    home.assert_store_is_sound();
}

#[test]
fn json_has_the_counts() {
    let home = Home::new();
    home.write("book.vcf", book());
    assert_snapshot!(home.run(&["--format", "json", "import", "book.vcf"]).masked_output(), @r#"
    {"collection":"contacts","collections":["contacts"],"added":3,"updated":0,"cancelled":0,"unchanged":0,"uid_conflicts":0,"rejected":0,"warnings":0,"files":1,"bytes":512,"operation":1,"counts":[{"collection":"contacts","kind":"contact","added":3,"updated":0,"cancelled":0,"unchanged":0}],"zones_defined":0,"zones_stored":0}
    ! note: created a new store in [HOME]/home/.local/share/larder
    "#);
    assert_snapshot!(home.run(&["-q", "--format", "json", "import", "book.vcf"]).masked_output(), @r#"{"collection":"contacts","collections":["contacts"],"added":0,"updated":0,"cancelled":0,"unchanged":3,"uid_conflicts":0,"rejected":0,"warnings":0,"files":1,"bytes":512,"operation":null,"counts":[{"collection":"contacts","kind":"contact","added":0,"updated":0,"cancelled":0,"unchanged":3}],"zones_defined":0,"zones_stored":0}"#);
}

#[test]
fn folders_and_standard_input_are_read() {
    let home = Home::new();
    home.write("books/a.vcf", ANNA);
    home.write("books/deeper/b.vcard", BRUNO);
    home.write("books/notes.txt", "not a book");
    assert_snapshot!(home.run(&["import", "books", "--into", "friends"]).masked_output(), @"
    2 contacts added to friends (2 files, 318 bytes)
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ");
    assert_snapshot!(home.run_with(&["import", "-", "--quiet"], CHLOE.as_bytes()).masked_output(), @"
    1 contact added to contacts (1 file, 194 bytes)
    Undo: larder undo 2
    ");
    assert_snapshot!(home.run(&["collections"]).masked_output(), @r"
    contacts              1 contact
    friends               2 contacts
    ");
}

#[test]
fn invalid_items_are_reported_and_written() {
    let home = Home::new();
    let empty = "BEGIN:VCARD\nEND:VCARD\n";
    let event = "BEGIN:VEVENT\nSUMMARY:a walk\nEND:VEVENT\n";
    let cut = "BEGIN:VCARD\nVERSION:3.0\nFN:Cut off in mid-";
    let bad = [ANNA, "scribbles\n", empty, BRUNO, event, ANNA, cut].concat();
    home.write("bad.vcf", &bad);
    let run = home.run(&["import", "bad.vcf", "--rejects", "rejects.vcf"]);
    assert_snapshot!(run.masked_output(), @"
    3 contacts added to contacts, 1 unchanged
    1 event added to bad
    1 file, 630 bytes
    2 rejected; written to rejects.vcf
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ! error: rejected bad.vcf:11: text outside any item
    ! error: rejected bad.vcf:12: empty card
    ! warning: bad.vcf:21: no DTSTART: the event will not appear in the calendar
    ! warning: bad.vcf:36: missing END:VCARD
    exit 3
    ");
    let rejects = std::fs::read_to_string(home.work("rejects.vcf")).unwrap();
    assert_snapshot!(rejects, @r"
    scribbles
    BEGIN:VCARD
    END:VCARD
    ");
    // Rejects are reported without --rejects, and with --quiet.
    assert_snapshot!(home.run(&["import", "bad.vcf", "--quiet"]).masked_output(), @"
    nothing new: 4 contacts unchanged in contacts
    nothing new: 1 event unchanged in bad
    1 file, 630 bytes
    2 rejected; --rejects FILE writes them to a file
    ! error: rejected bad.vcf:11: text outside any item
    ! error: rejected bad.vcf:12: empty card
    exit 3
    ");
}

/// Two cards with one UID in one import are two items; a warning alone is no failure.
#[test]
fn a_second_card_with_one_uid() {
    let home = Home::new();
    home.write("book.vcf", [ANNA, &BRUNO.replace("bruno-2", "anna-1")].concat());
    assert_snapshot!(home.run(&["import", "book.vcf"]).masked_output(), @"
    2 contacts added to contacts (1 file, 317 bytes)
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ! warning: book.vcf:11: second item with UID anna-1: added under a derived UID
    ");
    assert_snapshot!(home.run(&["import", "book.vcf"]).masked_output(), @"nothing new: 2 contacts unchanged in contacts (1 file, 317 bytes)");
    assert_snapshot!(home.run(&["find"]).masked_output(), @"
    m67fy4am  Bruno Álvarez                     030 765-43-21 (home)
    xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works
    ");
}

#[test]
fn unreadable_files_are_named() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.write("empty.vcf", "");
    std::fs::create_dir(home.work("nothing")).unwrap();
    assert_snapshot!(home.run(&["import", "missing.vcf"]).masked_output(), @"
    nothing was imported (0 files, 0 bytes)
    ! note: created a new store in [HOME]/home/.local/share/larder
    ! error: missing.vcf: no such file
    ! hint: check the name and the permissions
    exit 5
    ");
    assert_snapshot!(home.run(&["import", "missing.vcf", "book.vcf"]).masked_output(), @"
    1 contact added to contacts (1 file, 199 bytes)
    Undo: larder undo 1
    ! error: missing.vcf: no such file
    ! hint: check the name and the permissions; the other files were imported
    exit 5
    ");
    assert_snapshot!(home.run(&["import", "empty.vcf"]).masked_output(), @"
    no items in empty.vcf (1 file, 0 bytes)
    ! warning: empty.vcf: the file is empty
    ");
    assert_snapshot!(home.run(&["import", "nothing"]).masked_output(), @"
    no items in nothing (0 files, 0 bytes)
    ! warning: nothing: no .vcf, .vcard or .ics file in this folder
    ");
    assert_snapshot!(home.run(&["import", "book.vcf", "--rejects", "book.vcf"]).masked_output(), @"
    ! error: book.vcf is one of the files to import: rejected input cannot be written to it
    ! hint: choose another file with --rejects
    exit 2
    ");
    assert_snapshot!(home.run(&["import", "book.vcf", "--rejects", "no/such/folder"]).masked_output(), @"
    ! error: no/such/folder: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_eq!(std::fs::read_to_string(home.work("book.vcf")).unwrap(), ANNA);
}

#[test]
fn oversized_items_are_left_out() {
    let home = Home::new();
    let note = "x".repeat(70);
    let large = format!(
        "BEGIN:VCARD\nVERSION:3.0\nFN:Large\nNOTE:{}\nEND:VCARD\n",
        format!("{note}\n ").repeat(20_000)
    );
    home.write("large.vcf", [ANNA, &large, BRUNO].concat());
    let args = ["import", "large.vcf", "--max-item", "1M", "--rejects", "large-rejects.vcf"];
    assert_snapshot!(home.run(&args).masked_output(), @"
    2 contacts added to contacts (1 file, 1.4 MB)
    1 rejected; written to large-rejects.vcf
    Undo: larder undo 1
    ! note: created a new store in [HOME]/home/.local/share/larder
    ! error: rejected large.vcf:11: item larger than 1 MB (--max-item)
    exit 3
    ");
    assert!(std::fs::read_to_string(home.work("large-rejects.vcf")).unwrap() == large);
    let garbage: Vec<u8> =
        (0..4_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    home.write("garbage.vcf", &garbage);
    let run = home.code(&["import", "garbage.vcf"], 3);
    assert!(run.stderr().starts_with("error: rejected garbage.vcf:1: "), "{}", run.masked_output());
    let properties = "TEL:+49 30 1234567\n".repeat(100_000);
    home.write(
        "properties.vcf",
        format!("BEGIN:VCARD\nVERSION:3.0\nFN:Many\n{properties}END:VCARD\n"),
    );
    let run = home.run(&["import", "properties.vcf"]);
    assert_snapshot!(run.masked_output(), @"
    no items in properties.vcf (1 file, 1.9 MB)
    1 rejected; --rejects FILE writes them to a file
    ! error: rejected properties.vcf:65538: card with more than 65536 properties
    ! hint: larder reads vCard (BEGIN:VCARD) and iCalendar (BEGIN:VCALENDAR), not CSV or other formats
    exit 3
    ");
    home.assert_store_is_sound();
}

#[test]
fn items_of_another_type_have_a_hint_about_the_collection() {
    let home = Home::with_book();
    let event = "BEGIN:VEVENT\nUID:a\nDTSTART:20260311T100000Z\nEND:VEVENT\n";
    home.write("win.ics", format!("BEGIN:VCALENDAR\nVERSION:2.0\n{event}END:VCALENDAR\n"));
    let errors = home.code(&["import", "win.ics", "--into", "contacts"], 3).stderr();
    assert!(errors.contains("contacts cannot contain this event"), "{errors}");
    assert!(errors.contains("hint: import these items into another collection"), "{errors}");
    assert!(!errors.contains("CSV"), "{errors}");
}

/// An interrupt ends the import between two batches; committed batches stay.
#[test]
fn an_interrupt_keeps_committed_batches() {
    let home = Home::new();
    let mut import = home.command(&["import", "-", "--batch", "1"]);
    let mut child = home.spawn(import.stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let rung = || home.data().join("data.notify").metadata().is_ok_and(|bell| bell.len() > 0);
    // Writes input until a batch is committed, and keeps the input open.
    for number in 0..2_000_000 {
        let card =
            format!("BEGIN:VCARD\nVERSION:4.0\nUID:u{number}\nFN:Nobody {number}\nEND:VCARD\n");
        if stdin.write_all(card.as_bytes()).is_err() || (number % 100 == 0 && rung()) {
            break;
        }
    }
    let killed =
        std::process::Command::new("kill").arg("-INT").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    assert!(
        text.ends_with(
            "interrupted: items imported so far are stored; run the command again to continue\n"
        ),
        "{text}"
    );
    drop(stdin);
    home.assert_store_is_sound();
}

#[test]
fn numbers_of_added_items_agree() {
    let home = Home::new();
    home.write("two.vcf", [ANNA, &ANNA.replace("Anna", "Eva")].concat());
    let summary = &home.json(&["import", "two.vcf", "--format", "json"])[0];
    let log = &home.json(&["log", "--format", "json"])[0];
    for number in [&summary["added"], &summary["counts"][0]["added"], &log["added"]] {
        assert_eq!(number, 2, "{summary} {log}");
    }
    assert_eq!(summary["uid_conflicts"], 1);
    // One of two cards is rejected, as its UID is taken.
    home.write("some.vcf", [ANNA, BRUNO].concat());
    home.code(&["add", "some.vcf"], 3);
    assert_snapshot!(home.run(&["log", "2"]).masked_output(), @"    2  [TIME]  add       +1                some.vcf into contacts");
}
