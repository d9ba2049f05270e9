//! The indexes beside a `data.db` that is missing, older or foreign: it knows neither all sources
//! nor all labels, so nothing may leave an index because of it.

use crate::labels::{find, home_with_mail};
use crate::test_home::Home;
use std::fs;
use std::path::Path;

/// Puts a copy in the place of `data.db`, as a person does who restores a file by hand.
fn replace_data(home: &Home, copy: &Path) {
    for end in ["-wal", "-shm"] {
        let _missing = fs::remove_file(home.data().join(format!("data.db{end}")));
    }
    fs::copy(copy, home.data().join("data.db")).unwrap();
}

/// A `data.db` that lacks commits knows neither all sources nor all labels.
#[test]
fn the_index_stays_beside_an_older_or_foreign_store() {
    let home = Home::with_book();
    let (data, old, newest) = (home.data().join("data.db"), home.work("old"), home.work("newest"));
    fs::copy(&data, &old).unwrap();
    let message = "Message-ID: <m1@example.org>\nSubject: walrus\n\nText.\n";
    home.write("Mail/cur/1:2,S", message);
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home.ok(&["edit", "mid:m1@example.org", "--label", "+tax"]);
    let labelled = ["find", "--kind", "message", "--count", "label:tax"];
    assert_eq!(home.ok(&labelled), "1\n");
    fs::copy(&data, &newest).unwrap();
    let other = Home::with_book();
    for copy in [old, other.data().join("data.db")] {
        replace_data(&home, &copy);
        for args in [&["sync"][..], &["sync", "--watch"]] {
            let refused = home.code(args, 4);
            assert_eq!(refused.stdout(), "");
            assert!(refused.stderr().contains("larder restore FILE"), "{}", refused.stderr());
            assert!(!refused.stderr().contains("left the index"), "{}", refused.stderr());
        }
        assert_eq!(home.code(&labelled, 0).stdout(), "1\n");
    }
    replace_data(&home, &newest);
    assert!(home.ok(&["sync"]).starts_with("mail: nothing changed"));
    assert_eq!(home.ok(&labelled), "1\n");
    home.ok(&["check"]);
}

/// Without `data.db`, the index has the last copy of the labels, which a synchronisation would drop
/// with all mail.
#[test]
fn a_missing_store_of_labels_is_named() {
    let home = home_with_mail();
    home.ok(&["edit", "m0@example.org", "--label", "+tax"]);
    home.ok(&["backup", "backup.db"]);
    for end in ["", "-wal", "-shm"] {
        drop(fs::remove_file(home.data().join(format!("data.db{end}"))));
    }
    for arguments in [&["labels"][..], &["find", "--kind", "message", "label:tax"]] {
        let run = home.code(arguments, 0);
        assert_eq!(run.stderr().matches("warning: data.db is missing").count(), 1);
        assert!(run.stderr().contains("larder restore FILE"), "{}", run.stderr());
    }
    let refused = home.code(&["sync"], 4).stderr();
    assert!(refused.contains("data.db is missing") && refused.contains("larder restore FILE"));
    home.ok(&["restore", "backup.db"]);
    home.ok(&["sync"]);
    assert_eq!(find(&home, "label:tax"), ["m0"]);
    assert_eq!(home.code(&["labels"], 0).stderr(), "");
    home.assert_store_is_sound();
}
