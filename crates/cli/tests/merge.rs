//! `larder find --duplicates`, `larder merge`, and undoing a merge.

use crate::test_home::{ANNA, CHLOE, Home};
use insta::assert_snapshot;

/// A second card of Anna, from another program.
const AGAIN: &str = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:anna-9\r\nFN:Hölderlin\\, Anna\r\n\
    EMAIL;TYPE=work:ANNA@example.org\r\nTEL:+43 1 999\r\nBDAY:19700320\r\nEND:VCARD\r\n";

fn home() -> Home {
    let home = Home::with_book();
    home.write("again.vcf", AGAIN);
    home.ok(&["import", "again.vcf", "--into", "work"]);
    home
}

#[test]
fn likely_duplicates_are_listed() {
    let home = home();
    home.write(
        "more.vcf",
        AGAIN.replace("anna", "otto").replace("Anna", "Otto").replace("ANNA", "otto"),
    );
    home.write("chloe.vcf", CHLOE.replace("INTERNET:", "INTERNET:old."));
    home.ok(&["import", "more.vcf", "chloe.vcf", "--into", "work"]);
    assert_snapshot!(home.run(&["find", "--duplicates"]).masked_output(), @"
    same e-mail: anna@example.org; name: Anna Hölderlin
    xdnskgpk  Anna Hölderlin   anna@example.org  +49 30 1234567 (mobile)  Orchard Works
    790ng0e9  Hölderlin, Anna  ANNA@example.org  +43 1 999

    same name: Chloé Dupont
    fhbw2pvt  Chloé Dupont  chloe@example.com
    yj995b4d  Chloé Dupont  old.chloe@example.com
    ! note: merge duplicates into the first one with: larder merge ID ID
    ");
    assert_snapshot!(home.run(&["find", "--duplicates", "chloe", "--fields", "email"]).masked_output(), @"
    same name: Chloé Dupont
    fhbw2pvt	chloe@example.com
    yj995b4d	old.chloe@example.com
    ! note: merge duplicates into the first one with: larder merge ID ID
    ");
    assert_snapshot!(home.run(&["find", "--duplicates", "--count"]).masked_output(), @"2");
    assert_snapshot!(home.run(&["find", "--duplicates", "-n1", "--format", "json", "--fields", "email"]).masked_output(), @r#"{"reasons":[{"field":"email","value":"anna@example.org"},{"field":"full_name","value":"Anna Hölderlin"}],"items":[{"id":"xdnskgpk7xp6c","kind":"contact","collection":"contacts","uid":"anna-1","seq":1,"email":["anna@example.org"]},{"id":"790ng0e9rfcmc","kind":"contact","collection":"work","uid":"anna-9","seq":2,"email":["ANNA@example.org"]}]}"#);
    assert_snapshot!(home.run(&["find", "--duplicates", "--in", "contacts"]).masked_output(), @"
    ! note: no likely duplicates
    exit 1
    ");
    assert_snapshot!(home.run(&["find", "--duplicates", "--format", "raw"]).masked_output(), @"
    ! error: --format raw is not supported by this command
    ! hint: use --format text or json
    exit 2
    ");
    assert_snapshot!(home.run(&["find", "--duplicates", "--sort", "rev"]).masked_output(), @"
    ! error: --duplicates cannot be used with --sort <FIELD>
    ! hint: usage: larder find [OPTIONS] [QUERY]...
    exit 2
    ");
}

/// The listed groups can be merged until none is left.
#[test]
fn listed_duplicates_are_merged() {
    let home = home();
    for group in home.json(&["find", "--duplicates"]) {
        let ids =
            group["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap());
        home.ok(&[vec!["merge"], ids.collect()].concat());
    }
    let run = home.run(&["find", "--duplicates", "--count"]);
    assert_eq!((run.stdout().as_str(), run.code), ("0\n", 1));
    home.assert_store_is_sound();
}

#[test]
fn a_merge_is_undone() {
    let home = home();
    assert_snapshot!(home.run(&["merge", "-n", "uid:anna-1", "work/anna-9"]).masked_output(), @r"
    BEGIN:VCARD
    VERSION:3.0
    UID:anna-1
    FN:Anna Hölderlin
    N:Hölderlin;Anna;;;
    EMAIL;TYPE=work;TYPE=HOME:anna@example.org
    TEL;TYPE=CELL:+49 30 1234567
    ORG:Orchard Works
    X-KEEP;X-ODD=1:as it is
    X-LARDER-UID:anna-9
    X-LARDER-FN:Hölderlin\, Anna
    TEL:+43 1 999
    BDAY:19700320
    END:VCARD
    ");
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(), ANNA);
    assert_snapshot!(home.run(&["merge", "uid:anna-1", "work/anna-9"]).masked_output(), @"Merged 2 contacts into xdnskgpk  Anna Hölderlin. Undo: larder undo 3");
    assert_snapshot!(home.run(&["find", "anna"]).masked_output(), @"xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile), +43 1 999  Orchard Works");
    assert_snapshot!(home.run(&["log", "-n", "1"]).masked_output(), @"    3  [TIME]  merge     ~1 -1             xdnskgpk Anna Hölderlin 790ng0e9 Hölderlin, Anna");
    home.ok(&["undo", "3"]);
    assert_eq!(home.run(&["show", "uid:anna-1", "--format", "raw"]).stdout(), ANNA);
    assert_eq!(home.run(&["show", "uid:anna-9", "--format", "raw"]).stdout(), AGAIN);
    home.assert_store_is_sound();
}

#[test]
fn a_merge_prints_json() {
    let home = home();
    let would = home.json(&["merge", "--dry-run", "work/anna-9", "uid:anna-1"]);
    assert_eq!(would[0]["uid"], "anna-9");
    assert_eq!(would[0]["phone"].as_array().unwrap().len(), 2);
    assert!(would[0]["source_bytes"].as_str().unwrap().contains("X-LARDER-UID:anna-1\r\n"));
    assert_snapshot!(home.run(&["merge", "work/anna-9", "uid:anna-1", "--format", "json"]).masked_output(), @r#"{"id":"790ng0e9rfcmc","merged":["xdnskgpk7xp6c"],"seq":3,"operation":3}"#);
}

#[test]
fn invalid_merges_are_refused() {
    let home = home();
    assert_snapshot!(home.run(&["merge"]).masked_output(), @"
    ! error: missing <ID>...
    ! hint: usage: larder merge [OPTIONS] <ID>...
    exit 2
    ");
    assert_snapshot!(home.run(&["merge", "uid:anna-1"]).masked_output(), @"
    ! error: merging needs at least two contacts
    ! hint: `larder find --duplicates` lists likely duplicates
    exit 2
    ");
    assert_snapshot!(home.run(&["merge", "uid:anna-1", "xdnskgpk"]).masked_output(), @"
    ! error: the ID xdnskgpk is given twice
    ! hint: give each ID once
    exit 2
    ");
    assert_snapshot!(home.run(&["merge", "uid:anna-1", "uid:nobody"]).masked_output(), @r#"
    ! error: no item has the ID "uid:nobody"
    ! hint: `larder find` shows IDs; uid:TEXT and COLLECTION/UID work too
    exit 1
    "#);
    home.run_with(&["add", "-"], b"BEGIN:VCARD\nUID:half\nFN:x\n");
    assert_snapshot!(home.run(&["merge", "uid:half", "uid:anna-1"]).masked_output(), @"
    ! error: cannot merge into k7fkz1wq: its card is damaged or has no END:VCARD line
    ! hint: correct it with `larder edit k7fkz1wq`, or name another contact first; the first one is kept
    exit 3
    ");
    assert_eq!(home.ok(&["find", "--count"]), "5\n");
}
