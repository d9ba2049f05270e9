//! `larder check` of all stores of a data directory, and searches while one of them is damaged.

use crate::commits::home_with_repository;
use crate::test_home::{ANNA, Home};
use std::fs;

/// The stores of a data directory.
const FILES: [&str; 3] = ["data.db", "index.db", "commits.db"];

/// Returns a home with a contact, a message and commits that `anna` finds.
fn home_with_three_stores() -> Home {
    let home = home_with_repository();
    home.write("book.vcf", ANNA);
    home.ok(&["import", "book.vcf"]);
    let message = "Message-ID: <m1@example.org>\nFrom: Anna <anna@example.org>\nSubject: walrus\n\
                   Date: Thu, 01 Jan 2026 10:00:00 +0000\n\nText.\n";
    home.write("Mail/cur/1:2,S", message);
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home
}

/// Writes over the head of a store.
fn damage(home: &Home, file: &str) {
    let path = home.data().join(file);
    let mut bytes = fs::read(&path).unwrap();
    bytes[..100].fill(7);
    fs::write(&path, bytes).unwrap();
    for end in ["-wal", "-shm"] {
        drop(fs::remove_file(home.data().join(format!("{file}{end}"))));
    }
}

/// Returns the kinds of the items that a search lists, with the exit code of the search.
fn found_kinds(home: &Home, code: i32) -> (Vec<String>, String) {
    let run = home.code(&["find", "anna", "--format", "json"], code);
    let kind = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        object["kind"].as_str().unwrap().to_string()
    };
    (run.stdout().lines().map(kind).collect(), run.stderr())
}

#[test]
fn each_store_is_checked_whatever_the_others_have() {
    let home = home_with_three_stores();
    home.ok(&["check"]);
    let mut damaged: Vec<&str> = Vec::new();
    for file in ["commits.db", "data.db", "index.db"] {
        damage(&home, file);
        damaged.push(file);
        let check = home.code(&["check"], 4);
        let (stdout, stderr) = (check.stdout(), check.stderr());
        for file in FILES {
            let is_error = |line: &str| line.starts_with("error: ") && line.contains(file);
            let is_named = stderr.lines().any(is_error);
            assert_eq!(is_named, damaged.contains(&file), "{damaged:?} {file}: {stderr}");
            let is_listed = stdout.lines().any(|line| line.starts_with(file));
            assert_eq!(is_listed, !damaged.contains(&file), "{damaged:?} {file}: {stdout}");
        }
        let next_step = "to make the index again: larder check --rebuild";
        assert!(stderr.contains(next_step), "{damaged:?}: {stderr}");
    }
}

#[test]
fn the_other_groups_answer_beside_a_damaged_store() {
    let home = home_with_three_stores();
    assert_eq!(found_kinds(&home, 0).0, ["contact", "message", "commit", "commit"]);
    damage(&home, "commits.db");
    let (kinds, stderr) = found_kinds(&home, 4);
    assert_eq!(kinds, ["contact", "message"]);
    assert!(stderr.contains("commits.db is damaged"), "{stderr}");
    assert!(stderr.contains("hint: no commits are lost"), "{stderr}");
    damage(&home, "index.db");
    let (kinds, stderr) = found_kinds(&home, 4);
    assert_eq!(kinds, ["contact"]);
    assert!(stderr.contains("commits.db is damaged"), "{stderr}");
    assert!(stderr.contains("index.db is damaged"), "{stderr}");
    assert_eq!(home.code(&["find", "anna", "--count"], 4).stdout(), "1\n");
    home.code(&["check", "--rebuild"], 0);
    assert_eq!(found_kinds(&home, 0).0, ["contact", "message", "commit", "commit"]);
}
