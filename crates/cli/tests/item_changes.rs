//! `add`, `edit`, `remove`, `undo`, `log` and `purge`.

use crate::test_home::{ANNA, BRUNO, Home};
use insta::assert_snapshot;

#[test]
fn a_card_is_added() {
    let home = Home::new();
    home.write("anna.vcf", ANNA);
    assert_snapshot!(home.run(&["add", "anna.vcf"]).masked_output(), @"xdnskgpk  Anna Hölderlin  added to contacts");
    assert_snapshot!(home.run(&["add", "anna.vcf"]).masked_output(), @r#"
    ! error: rejected Anna Hölderlin: an item with UID "anna-1" already exists
    ! hint: change it with: larder edit 'uid:anna-1'
    exit 3
    "#);
    // One hint for all.
    let both = [ANNA, &ANNA.replace("Anna", "Eva")].concat();
    assert_snapshot!(home.run_with(&["add"], both.as_bytes()).masked_output(), @r#"
    ! error: rejected Anna Hölderlin: an item with UID "anna-1" already exists
    ! error: rejected Eva Hölderlin: an item with UID "anna-1" already exists
    ! hint: change it with: larder edit 'uid:anna-1'
    exit 3
    "#);
    assert_snapshot!(home.run_with(&["add", "--into", "friends", "--format", "json"], BRUNO.as_bytes()).masked_output(), @r#"{"id":"sq5e8yw1mjjzy","uid":"bruno-2","collection":"friends"}"#);
    assert_snapshot!(home.run_with(&["add"], b"").masked_output(), @r#"
    ! error: standard input: no vCard and no calendar item in the text
    ! hint: a vCard begins with BEGIN:VCARD and ends with END:VCARD
    ! hint: for example: printf 'BEGIN:VCARD\nVERSION:4.0\nFN:Anna Example\nEND:VCARD\n' | larder add
    ! hint: to add an event in words: larder add --kind event "Lunch tomorrow 12:30"
    exit 3
    "#);
    assert_snapshot!(home.run_with(&["add", "-"], b"BEGIN:VCARD\nUID:x\nFN:x\n").masked_output(), @"
    ym2b1n40  x  added to contacts
    ! warning: standard input:3: missing END:VCARD
    ");
    assert_snapshot!(home.run_with(&["add", "-"], b"BEGIN:VEVENT\nEND:VEVENT\n").masked_output(), @"
    ! error: rejected standard input:1: empty component
    exit 3
    ");
    assert_snapshot!(home.run(&["add", "missing.vcf"]).masked_output(), @"
    ! error: missing.vcf: no such file or directory
    ! hint: check the name
    exit 5
    ");
    home.assert_store_is_sound();
}

/// A card without a UID gets a new one in a line of its own; nothing else changes.
#[test]
fn add_assigns_a_uid() {
    let home = Home::new();
    let card = "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Nameless\r\nEND:VCARD\r\n";
    for _ in 0..2 {
        let run = home.run_with(&["add", "--format", "json"], card.as_bytes());
        assert_eq!(run.code, 0, "{}", run.masked_output());
        let added: serde_json::Value = serde_json::from_str(run.stdout().trim()).unwrap();
        let uid = added["uid"].as_str().unwrap();
        assert!(uid.starts_with("urn:uuid:") && uid.len() == "urn:uuid:".len() + 36, "{uid}");
        let shown = home.run(&["show", added["id"].as_str().unwrap(), "--format", "raw"]).stdout();
        assert_eq!(shown.replace(&format!("UID:{uid}\r\n"), ""), card);
    }
    assert_eq!(home.ok(&["find", "--count"]), "2\n");
}

#[test]
fn removals_are_undone() {
    let home = Home::with_book();
    let all = home.run(&["export", "contacts"]).out;
    assert_snapshot!(home.run(&["remove", "uid:anna-1"]).masked_output(), @"Removed xdnskgpk  Anna Hölderlin. Undo: larder undo 2");
    assert_snapshot!(home.run(&["undo"]).masked_output(), @"Undid operation 2 (remove): 1 item restored. Redo: larder undo 3");
    assert_snapshot!(home.run(&["remove", "--query", "example", "--dry-run"]).masked_output(), @r"
    fhbw2pvt  Chloé Dupont
    xdnskgpk  Anna Hölderlin
    ");
    assert_snapshot!(home.run(&["remove", "--query", "example"]).masked_output(), @"Removed 2 items. Undo: larder undo 4");
    assert_eq!(home.ok(&["find", "--count"]), "1\n");
    assert_snapshot!(home.run(&["undo", "--format", "json"]).masked_output(), @r#"{"undone":4,"operation":5,"items":2,"erased":[]}"#);
    assert_eq!(
        crate::test_home::cards(&home.run(&["export", "contacts"]).out),
        crate::test_home::cards(&all)
    );
    assert_snapshot!(home.run(&["remove", "--query", "nobody"]).masked_output(), @"
    ! error: no item matches the query
    ! hint: `larder find QUERY` shows what a query matches
    exit 1
    ");
    assert_snapshot!(home.run(&["remove", "--query", " "]).masked_output(), @"
    ! error: an empty query would remove everything
    ! hint: to remove a collection: larder collections remove NAME; to remove everything: --query 'has:uid or -has:uid'
    exit 2
    ");
    assert_snapshot!(home.run(&["remove"]).masked_output(), @"
    ! error: missing <ID>...
    ! hint: usage: larder remove [OPTIONS] [ID]...
    exit 2
    ");
    assert_snapshot!(home.run(&["remove", "uid:nobody"]).masked_output(), @r#"
    ! error: no item has the ID "uid:nobody"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    home.assert_store_is_sound();
}

/// An unset variable of a script leaves quotes or parentheses without a text.
#[test]
fn a_query_without_a_text_removes_nothing() {
    let home = Home::with_book();
    for query in [
        "\"\"",
        "()",
        "( \"\" )",
        "\"\" or anna",
        "not not \"\"",
        "and",
        "(and) or anna",
        "() and (and)",
    ] {
        home.code(&["remove", "--query", query], 2);
        assert_eq!(home.ok(&["find", "--count"]), "3\n", "{query}");
    }
    assert_snapshot!(home.run(&["remove", "--query", "( \"\" )"]).masked_output(), @"
    ! error: an empty query would remove everything
    ! hint: to remove a collection: larder collections remove NAME; to remove everything: --query 'has:uid or -has:uid'
    exit 2
    ");
    assert_snapshot!(home.run(&["remove", "--query", "\"\" or anna"]).masked_output(), @r#"
    ! error: the query of --query has an empty text, "", which everything matches
    ! hint: to remove a collection: larder collections remove NAME; to remove everything: --query 'has:uid or -has:uid'
    exit 2
    "#);
    home.ok(&["remove", "--query", "has:uid or -has:uid"]);
}

#[test]
fn a_file_replaces_an_item() {
    let home = Home::with_book();
    home.write("new.vcf", ANNA.replace("Orchard", "Meadow"));
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "new.vcf"]).masked_output(), @"xdnskgpk  Anna Hölderlin  changed");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "new.vcf"]).masked_output(), @"! note: no changes");
    assert_snapshot!(home.run(&["log", "uid:anna-1"]).masked_output(), @r"
    import  operation 1, [TIME]
      + BEGIN:VCARD
      + VERSION:3.0
      + UID:anna-1
      + FN:Anna Hölderlin
      + N:Hölderlin;Anna;;;
      + EMAIL;TYPE=HOME:anna@example.org
      + TEL;TYPE=CELL:+49 30 1234567
      + ORG:Orchard Works
      + X-KEEP;X-ODD=1:as it is
      + END:VCARD
    edit  operation 2, [TIME]
      - ORG:Orchard Works
      + ORG:Meadow Works
    ");
    home.write("new.vcf", ANNA.replace("anna-1", "anna-2"));
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "new.vcf"]).masked_output(), @r#"
    ! error: new.vcf: the UID cannot be changed: it must stay "anna-1"
    ! hint: nothing was changed; correct the text and run the command again
    exit 3
    "#);
    home.write("new.vcf", ANNA.replace("UID:anna-1\r\n", ""));
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "new.vcf"]).masked_output(), @"
    ! error: new.vcf: missing line UID:anna-1
    ! hint: nothing was changed; correct the text and run the command again
    exit 3
    ");
    home.write("new.vcf", [ANNA, BRUNO].concat());
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "new.vcf"]).masked_output(), @"
    ! error: new.vcf: expected one VCARD, found 2
    ! hint: nothing was changed; correct the text and run the command again
    exit 3
    ");
    assert_snapshot!(home.run(&["edit", "uid:anna-1", "--from", "missing.vcf"]).masked_output(), @"
    ! error: missing.vcf: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(home.run(&["edit", "uid:nobody", "--from", "new.vcf"]).masked_output(), @r#"
    ! error: no item has the ID "uid:nobody"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    home.ok(&["undo"]);
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).out, ANNA.as_bytes());
}

#[test]
fn undo_shows_conflicting_versions() {
    let home = Home::with_book();
    home.write("new.vcf", ANNA.replace("Orchard", "Meadow"));
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    home.write("new.vcf", ANNA.replace("Orchard", "Forest"));
    home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"
    xdnskgpk  Anna Hölderlin
    - after operation 2  + current
      - ORG:Meadow Works
      + ORG:Forest Works
    ! error: operation 2 was not undone: 1 item changed after it
    ! hint: undo the later operations first (`larder log` lists them), or edit the items
    exit 2
    ");
    assert_eq!(
        home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(),
        ANNA.replace("Orchard", "Forest")
    );
    home.ok(&["undo", "3"]);
    home.ok(&["undo", "2"]);
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(), ANNA);
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"
    ! error: operation 2 was already undone by operation 5
    ! hint: redo with: larder undo 5
    exit 1
    ");
    assert_snapshot!(home.run(&["undo", "99"]).masked_output(), @"
    ! error: no such operation: 99
    ! hint: `larder log` lists operations
    exit 1
    ");
    assert_snapshot!(home.run(&["log"]).masked_output(), @r"
    5  [TIME]  undo      ~1                operation 2, edit
    4  [TIME]  undo      ~1                operation 3, edit
    3  [TIME]  edit      ~1                xdnskgpk Anna Hölderlin in contacts  (undone by 4)
    2  [TIME]  edit      ~1                xdnskgpk Anna Hölderlin in contacts  (undone by 5)
    1  [TIME]  import    +3                book.vcf
    ");
    home.assert_store_is_sound();
}

#[test]
fn the_log_lists_operations() {
    let home = Home::with_book();
    home.ok(&["remove", "uid:anna-1"]);
    assert_snapshot!(home.run(&["log", "-n", "1"]).masked_output(), @"    2  [TIME]  remove    -1                xdnskgpk Anna Hölderlin");
    let rows = home.json(&["log"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["command"], "remove");
    assert_eq!(rows[0]["removed"], 1);
    assert_eq!(rows[1]["added"], 3);
    let id = home.json(&["find", "bruno"])[0]["id"].as_str().unwrap().to_string();
    assert_eq!(home.run(&["log", &id, "--format", "raw"]).out, BRUNO.as_bytes());
    assert_eq!(home.json(&["log", &id]).len(), 1);
    assert_snapshot!(home.run(&["log", "zzzzzzzz"]).masked_output(), @r#"
    ! error: no item has the ID "zzzzzzzz"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
}

/// The ID of a removed item still works for `log` and `purge`.
#[test]
fn purge_erases_items() {
    const TOKEN: &str = "Quokkabriefmarke";
    let home = Home::with_book();
    let secret =
        |note: &str| ANNA.replace("END:VCARD", &format!("NOTE:{TOKEN} {note}\r\nEND:VCARD"));
    for note in ["one", "two", &"three ".repeat(20_000)] {
        home.write("new.vcf", secret(note));
        home.ok(&["edit", "uid:anna-1", "--from", "new.vcf"]);
    }
    let id = home.json(&["find", "anna"])[0]["id"].as_str().unwrap().to_string();
    home.ok(&["remove", &id]);
    assert_snapshot!(home.run(&["purge", &id]).masked_output(), @"
    ! error: nothing was purged
    ! hint: this would permanently delete: a removed item (xdnskgpk)
    ! hint: use --yes to purge without confirmation
    exit 2
    ");
    assert_snapshot!(home.run(&["purge", &id, "--yes"]).masked_output(), @"Purged 1 item with all previous versions");
    for entry in std::fs::read_dir(home.data()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        for part in [TOKEN.to_lowercase().as_str(), "anna@example.org", "hölderlin"] {
            assert!(!text.contains(part), "{part} is in {}", path.display());
        }
    }
    assert_snapshot!(home.run(&["log", &id]).masked_output(), @r#"
    ! error: no item has the ID "xdnskgpk7xp6c"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    assert_snapshot!(home.run(&["purge", "uid:anna-1", "--yes"]).masked_output(), @r#"
    ! error: no item has the ID "uid:anna-1"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    assert_snapshot!(home.run(&["purge", "uid:bruno-2", "--yes"]).masked_output(), @"Purged 1 item with all previous versions");
    home.assert_store_is_sound();
    // An undo cannot restore purged items.
    let undo = home.run(&["undo", "5"]);
    assert_ne!(undo.code, 101, "{}", undo.masked_output());
    assert!(!home.run(&["export", "contacts"]).stdout().contains(TOKEN));
    home.assert_store_is_sound();
}

#[test]
fn an_undo_without_a_number_stops_at_a_purge() {
    let home = Home::new();
    home.ok(&["add", "Alpha 2026-12-01 9:00"]);
    home.ok(&["add", "Beta 2026-12-02 9:00"]);
    let beta = home.json(&["find", "Beta", "--format", "json"])[0]["id"].clone();
    home.ok(&["edit", beta.as_str().unwrap(), "--location", "Room 3"]);
    home.ok(&["purge", "--yes", beta.as_str().unwrap()]);
    home.code(&["undo"], 1);
    assert_snapshot!(home.run(&["undo"]).masked_output(), @"
    ! error: operation 4 is a purge: it cannot be undone
    ! hint: an older backup may contain the items: larder restore FILE replaces the whole store
    ! hint: to undo an older operation, give its number; `larder log` lists them
    exit 1
    ");
    assert_eq!(home.json(&["log", "--format", "json"])[0]["operation"], 4);
    assert_snapshot!(home.run(&["undo", "3"]).masked_output(), @"! note: nothing of operation 3 (edit) is left to undo: changed back or purged since");
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"! note: nothing of operation 2 (add) is left to undo: changed back or purged since");
    assert_snapshot!(home.run(&["undo", "1"]).masked_output(), @"Undid operation 1 (add): 1 item removed. Redo: larder undo 7");
    home.assert_store_is_sound();
}
