//! Mbox files, and folders of .eml files, as sources.

use crate::test_home::Home;
use insta::assert_snapshot;

#[test]
fn a_source_without_its_files_is_said_to_be() {
    let home = Home::new();
    let message = "Message-ID: <m1@example.org>\nSubject: walrus\n\nText.\n";
    home.write("old.mbox", format!("From anna Thu Jan  1 10:00:00 2026\n{message}"));
    home.write("eml/1.eml", message);
    home.ok(&["sources", "add", "old.mbox", "--into", "old"]);
    home.ok(&["sources", "add", "eml", "--into", "eml"]);
    home.ok(&["sync"]);
    home.write("old.mbox", "To do: walrus\n");
    std::fs::rename(home.work("eml/1.eml"), home.work("eml/1.txt")).unwrap();
    assert_snapshot!(home.run(&["sync"]).masked_output(), @"
    ! error: old: [HOME]/work/old.mbox is no mbox file any more: it does not begin with \"From \"; its messages stay in the index until `larder sources remove old`
    ! error: eml: [HOME]/work/eml has no mbox or .eml files any more; its messages stay in the index until `larder sources remove eml`
    exit 5
    ");
    std::fs::remove_file(home.work("eml/1.txt")).unwrap();
    let run = home.code(&["sync", "eml"], 5);
    assert!(run.stderr().contains("has no folders with messages: is its disk mounted?"));
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "walrus"]), "2\n");
}
