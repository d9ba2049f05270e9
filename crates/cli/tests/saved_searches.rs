//! `larder searches`, and `@name` in search lines.

use crate::test_home::{Home, Run};
use insta::assert_snapshot;

/// Creates a home with five messages, of which two are unread, and the three contacts.
fn home_with_mail() -> Home {
    let home = Home::with_book();
    let people = ["anna", "anna", "bruno", "anna", "chloe"];
    for (number, (from, flags)) in people.iter().zip(["S", "", "S", "FS", ""]).enumerate() {
        let text = format!(
            "Message-ID: <{number}@example.org>\nFrom: {from}@example.org\nSubject: budget {number}\n\
             Date: Wed, 0{} Jan 2020 10:00:00 +0000\n\nwalrus\n",
            number + 1
        );
        home.write(&format!("mail/cur/{number}.host:2,{flags}"), text);
        std::fs::create_dir_all(home.work("mail/new")).unwrap();
    }
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    home
}

fn print(run: &Run) -> String {
    run.masked_output()
}

#[test]
fn searches_are_defined_listed_used_and_removed() {
    let home = home_with_mail();
    let run = |args: &[&str]| print(&home.run(args));
    assert_snapshot!(run(&["searches"]), @"
    ! note: no saved searches; to define one: larder searches add NAME QUERY
    exit 1
    ");
    assert_snapshot!(run(&["searches", "add", "work", "from:anna", "or", "subject:nothing"]), @"@work added: 3 messages, 1 unread. Undo: larder undo 3");
    assert_snapshot!(run(&["searches", "add", "new", "@work flag:unread", "--label", "+todo", "-old"]), @"@new added: 1 message, 1 unread; new mail gets +todo -old. Undo: larder undo 4");
    assert_snapshot!(run(&["searches", "add", "friends", "--kind", "contact", "org:orchard"]), @"@friends added: 1 contact. Undo: larder undo 5");
    assert_snapshot!(run(&["searches", "add", "all"]), @"@all added: 5 messages, 2 unread. Undo: larder undo 6");
    assert_snapshot!(run(&["searches"]), @"
    all      5 messages  2 unread
    friends  1 contact             org:orchard
    new      1 message   1 unread  @work flag:unread  +todo -old
    work     3 messages  1 unread  from:anna or subject:nothing
    ");
    assert_snapshot!(run(&["searches", "--format", "json"]), @r#"
    {"name":"all","kind":"message","query":"","labels":[],"items":5,"unread":2}
    {"name":"friends","kind":"contact","query":"org:orchard","labels":[],"items":1,"unread":null}
    {"name":"new","kind":"message","query":"@work flag:unread","labels":["+todo","-old"],"items":1,"unread":1}
    {"name":"work","kind":"message","query":"from:anna or subject:nothing","labels":[],"items":3,"unread":1}
    "#);
    assert_snapshot!(run(&["find", "--kind", "message", "@work and date:..2020-01-02"]), @"
    k3yqxsh4  2020-01-02 10:00  anna@example.org  u  budget 1
    d66shtsc  2020-01-01 10:00  anna@example.org     budget 0
    ");
    assert_snapshot!(run(&["find", "--kind", "message", "--count", "-@work"]), @"2");
    assert_snapshot!(run(&["find", "@new"]), @"k3yqxsh4  2020-01-02 10:00  anna@example.org  u  budget 1");
    assert_snapshot!(run(&["find", "@friends"]), @"xdnskgpk  Anna Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works");
    assert_snapshot!(run(&["searches", "add", "work", "from:bruno"]), @"@work changed: 1 message. Undo: larder undo 7");
    assert_snapshot!(run(&["searches", "remove", "work"]), @"
    @work removed. Undo: larder undo 8
    ! warning: @new uses it, and cannot be run any more
    ");
    assert_snapshot!(run(&["searches"]), @r#"
    all      5 messages  2 unread
    friends  1 contact             org:orchard
    new                            @work flag:unread  +todo -old
    ! error: @new: no saved search is named "work" (at character 1 of the query)
    ! hint: `larder searches` lists them; to search for the word, quote it
    exit 3
    "#);
    home.code(&["searches"], 3);
    assert_snapshot!(run(&["undo"]), @"Undid operation 8 (searches remove): 1 item restored. Redo: larder undo 9");
    assert_snapshot!(run(&["undo"]), @"Undid operation 7 (searches add): 1 item restored. Redo: larder undo 10");
    assert_snapshot!(run(&["find", "--kind", "message", "--count", "@new"]), @"1");
    assert_snapshot!(run(&["log", "@work"]), @"
    searches add  operation 3, [TIME]
      + BEGIN:SAVED-SEARCH
      + UID:work
      + QUERY:from:anna or subject:nothing
      + KIND:message
      + END:SAVED-SEARCH
    searches add  operation 7, [TIME]
      - QUERY:from:anna or subject:nothing
      + QUERY:from:bruno
    searches remove  operation 8, [TIME]  removed
    undo  operation 9, [TIME]
    undo  operation 10, [TIME]
      - QUERY:from:bruno
      + QUERY:from:anna or subject:nothing
    ");
    home.assert_store_is_sound();
}

#[test]
fn items_of_a_saved_search_are_removed() {
    let home = Home::with_book();
    home.ok(&["searches", "add", "friends", "--kind", "contact", "org:orchard"]);
    let run = home.run(&["remove", "--query", "@friends", "--dry-run"]);
    assert_snapshot!(print(&run), @"xdnskgpk  Anna Hölderlin");
    home.ok(&["remove", "--query", "@friends"]);
    assert_eq!(home.ok(&["find", "--kind", "contact", "--count"]), "2\n");
    let run = home.code(&["remove", "--query", "@friend"], 2);
    assert!(run.stderr().contains(r#"no saved search is named "friend""#), "{}", run.stderr());
}

/// Labels of all mail are changed by `*` alone, not by a saved search with an empty text.
#[test]
fn saved_searches_without_a_text_change_no_labels() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "all"]);
    home.ok(&["searches", "add", "quoted", "\"\" or budget"]);
    home.ok(&["searches", "add", "nested", "from:anna (@quoted)"]);
    for name in ["@all", "@quoted", "@nested"] {
        home.code(&["edit", "--query", name, "--label", "+x"], 2);
    }
    home.ok(&["searches", "add", "quoted", "budget"]);
    home.ok(&["edit", "--query", "@nested", "--label", "+x"]);
}

#[test]
fn saved_searches_begin_with_negated_terms() {
    let home = home_with_mail();
    let run = |args: &[&str]| print(&home.run(args));
    assert_snapshot!(run(&["searches", "add", "noemail", "--kind", "contact", "-has:email"]), @"@noemail added: 1 contact. Undo: larder undo 3");
    assert_snapshot!(run(&["searches", "add", "fresh", "-flag:seen", "walrus", "--label", "+new", "-old"]), @"@fresh added: 2 messages, 2 unread; new mail gets +new -old. Undo: larder undo 4");
    assert_snapshot!(run(&["searches"]), @"
    fresh    2 messages  2 unread  not flag:seen walrus  +new -old
    noemail  1 contact             not has:email
    ");
}

/// A saved search with labels labels the new mail of a synchronisation.
#[test]
fn rules_run_at_the_end_of_a_synchronisation() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "bills", "subject:budget", "--label", "+tax", "-inbox"]);
    let run = |args: &[&str]| print(&home.run(args));
    let sync = || {
        // The number of folders that are listed depends on the time.
        let cut = |line: &str| match line.strip_prefix("mail: ") {
            Some(counts) => counts.split(" (").next().unwrap_or_default().to_string(),
            None => line.to_string(),
        };
        run(&["sync"]).lines().map(cut).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(sync(), @"nothing changed");
    let text = "Message-ID: <new@example.org>\nFrom: a@example.org\nSubject: budget\n\nx\n";
    home.write("mail/new/9.host", text);
    assert_snapshot!(sync(), @"
    1 file added
    rules: +tax -inbox on 1 message (@bills). Undo: larder undo 4
    ");
    assert_snapshot!(run(&["undo"]), @"Undid operation 4 (rules): labels of 1 message changed back. Redo: larder undo 5");
    assert_snapshot!(sync(), @"nothing changed");
    assert_snapshot!(run(&["sync", "--rules", "--format", "json"]).lines().last().unwrap(), @r#"{"rules":[{"search":"bills","labels":"+tax -inbox","messages":6}],"changed":6,"operation":6}"#);
    assert_snapshot!(run(&["log", "-n", "2"]).replace("  ", " "), @"
    6 [TIME] rules   +6        +tax -inbox on 6 messages
    5 [TIME] undo   -1        operation 4, rules
    ");
    // Another query keeps the labels, unless they are dropped.
    assert_snapshot!(run(&["searches", "add", "bills", "budget 1"]), @"@bills changed: 1 message, 1 unread; new mail gets +tax -inbox. Undo: larder undo 7");
    assert_snapshot!(run(&["searches", "add", "bills", "budget", "--no-label"]), @"@bills changed: 6 messages, 3 unread. Undo: larder undo 8");
    home.ok(&["searches", "remove", "bills"]);
    home.ok(&["searches", "add", "other", "x"]);
    home.ok(&["searches", "add", "bad", "@other", "--label", "+x"]);
    home.ok(&["searches", "remove", "other"]);
    assert_snapshot!(sync(), @r#"
    nothing changed
    ! error: @bad: no saved search is named "other" (at character 1 of the query)
    ! hint: mend the rule, then run it on all messages: larder sync --rules
    exit 3
    "#);
    home.assert_store_is_sound();
}

#[test]
fn bad_definitions_are_refused() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "a", "from:anna"]);
    home.ok(&["searches", "add", "b", "@a flag:unread"]);
    let run = |args: &[&str]| print(&home.run(args));
    assert_snapshot!(run(&["searches", "add", "a", "@b"]), @"
    ! error: the saved search @b uses itself: @b uses @a uses @b (at character 1 of the query)
    ! hint: to define it anew: larder searches add NAME QUERY
    exit 2
    ");
    assert_snapshot!(run(&["searches", "add", "c", "@bb"]), @r#"
    ! error: no saved search is named "bb" (at character 1 of the query)
    ! hint: `larder searches` lists them; to search for the word, quote it
    exit 2
    "#);
    assert_snapshot!(run(&["searches", "add", "c", "date:nonsense"]), @r#"
    ! error: unknown date "nonsense" (at character 1 of the query)
    ! hint: dates are 2016, 2016-03-01, today, 2w or @1456790400; ranges 2015..2016
    exit 2
    "#);
    assert_snapshot!(run(&["searches", "add", "c.d", "x"]), @r#"
    ! error: "c.d" cannot be the name of a saved search
    ! hint: use at most 100 letters, digits, - and _
    exit 2
    "#);
    assert_snapshot!(run(&["searches", "add", "c", "x", "--label", "todo"]), @r#"
    ! error: "todo" has no sign: +todo adds the label, -todo removes it
    ! hint: --label takes all words that follow: write IDs and other options before it
    exit 2
    "#);
    assert_snapshot!(run(&["searches", "add", "c", "x", "--label", "+a,-b"]), @r#"
    ! error: "+a,-b" has several labels
    ! hint: write them apart: --label +a -b
    exit 2
    "#);
    assert_snapshot!(run(&["searches", "add", "c", "x", "--label", "+unread"]), @"
    ! error: unread is a flag of the file of a message: larder changes no mail
    ! hint: set it in your mail program; larder sync then notes it
    exit 2
    ");
    assert_snapshot!(run(&["searches", "add", "c", "x", "--kind", "event", "--label", "+x"]), @"
    ! error: only messages have labels
    exit 2
    ");
    assert_snapshot!(run(&["searches", "remove", "aa"]), @r#"
    ! error: no saved search is named "aa"
    ! hint: `larder searches` lists them
    exit 1
    "#);
    assert_snapshot!(run(&["find", "--kind", "message", "@aa"]), @r#"
    ! error: no saved search is named "aa" (at character 1 of the query)
    ! hint: `larder searches` lists them; to search for the word, quote it
    exit 2
    "#);
    // Nothing of it was stored.
    assert_eq!(home.ok(&["searches"]).lines().count(), 2);
}

/// The collection of saved searches is in no list, its items are found by no search, and its name
/// is taken.
#[test]
fn the_collection_is_not_listed() {
    let home = Home::with_book();
    home.ok(&["searches", "add", "anna", "anna", "--kind", "contact"]);
    assert_eq!(home.ok(&["collections"]).lines().count(), 1);
    assert_eq!(home.ok(&["find", "--count"]).trim(), "3");
    assert_eq!(home.ok(&["find", "--count", "anna"]).trim(), "1");
    assert_eq!(home.ok(&["find", "--count", "@anna"]).trim(), "1");
    home.code(&["collections", "remove", "larder:searches"], 1);
    home.code(&["collections", "rename", "larder:searches", "x"], 1);
    home.code(&["collections", "create", "larder:searches"], 2);
    home.code(&["collections", "rename", "contacts", "larder:searches"], 2);
    home.code(&["import", "book.vcf", "--into", "larder:searches"], 3);
    // An import takes no saved searches.
    home.write("odd.vcf", "BEGIN:SAVED-SEARCH\r\nUID:x\r\nQUERY:y\r\nEND:SAVED-SEARCH\r\n");
    home.run(&["import", "odd.vcf"]);
    assert_eq!(home.ok(&["searches"]).lines().count(), 1);
    // A backup has them.
    home.ok(&["backup", "copy.db"]);
    home.ok(&["searches", "remove", "anna"]);
    home.ok(&["restore", "copy.db"]);
    assert_eq!(home.ok(&["find", "--count", "@anna"]).trim(), "1");
    home.assert_store_is_sound();
}
