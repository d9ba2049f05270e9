//! `larder sync --watch` in a pipe, while mail is delivered, and fields of mail in `larder watch`.

use crate::test_home::{ANNA, Home};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};

fn deliver(home: &Home, number: u32) {
    let text =
        format!("From: anna@example.org\nMessage-ID: <m{number}@x>\nSubject: note\n\nseal\n");
    home.write(&format!("staged-{number}"), &text);
    let name = home.work(&format!("mail/new/{number}.host"));
    std::fs::rename(home.work(&format!("staged-{number}")), name).unwrap();
}

/// Each line comes when its round has ended, and the watch ends when nobody reads its lines.
#[test]
fn lines_come_at_once_and_a_watch_without_a_reader_ends() {
    let home = Home::new();
    for folder in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(home.work(&format!("mail/{folder}"))).unwrap();
    }
    deliver(&home, 1);
    home.ok(&["sources", "add", "mail"]);
    let mut child = home.spawn(&mut home.command(&["sync", "--watch", "--format", "json"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next_count = |key: &str| -> u64 {
        let line = lines.next().expect("the watch has ended").unwrap();
        let value: Value = serde_json::from_str(&line).expect(&line);
        value[key].as_u64().unwrap()
    };
    deliver(&home, 2);
    let mut added = 0;
    while added < 2 {
        added += next_count("added_files");
    }
    drop(lines);
    deliver(&home, 3);
    // It may end before it reads the last message.
    assert!(child.wait().unwrap().success());
    home.ok(&["sync"]);
    assert!(home.ok(&["find", "--kind", "message", "--count", "seal"]).contains('3'));
}

#[test]
fn fields_of_messages_are_no_empty_columns() {
    let home = Home::new();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    for fields in ["from", "file_as,from", "hash"] {
        let run = home.code(&["watch", "anna", "--fields", fields, "--changes", "0"], 2);
        assert!(run.stderr().contains("no item that is watched has the field"), "{fields}");
    }
    home.ok(&["watch", "anna", "--fields", "file_as,email,start", "--changes", "0"]);
}
