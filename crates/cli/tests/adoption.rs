//! `larder adopt`: labels and saved searches of notmuch and mu.

use crate::test_home::{Home, left_out};
use insta::assert_snapshot;

const DUMP: &str = "#notmuch-dump batch-tag:3 config,properties,tags\n\
    #@ query.bad date%3anonsense\n#@ query.db subject%3awalrus%20%22a%20b%22\n\
    #@ query.my%20mail query%3adb%20and%20tag%3atax\n#@ query.uses query%3abad\n\
    +inbox +tax +unread -- id:m1@x\n+tax -- id:m2@x\n+%zz -- id:m3@x\n";

/// Writes a maildir with a message.
fn write_mail(home: &Home) {
    let text = "Message-ID: <m1@x>\nFrom: a@example.org\nSubject: walrus\n\na b\n";
    home.write("mail/cur/1.host:2,S", text);
    std::fs::create_dir_all(home.work("mail/new")).unwrap();
}

#[test]
fn a_dump_of_notmuch_is_taken_over() {
    let home = Home::new();
    write_mail(&home);
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    home.write("dump", DUMP);
    let run = |args: &[&str]| home.run(args).masked_output();
    assert_snapshot!(run(&["adopt", "notmuch", "--from", "dump"]), @r#"
    @db  subject:walrus "a b"
    @my-mail  @db and tag:tax
    From notmuch: 2 messages labelled, 2 searches. Undo: larder undo 2
    ! error: labels: line 8: "+%zz" is not encoded as notmuch does
    ! error: search bad left out: date:nonsense: unknown date "nonsense" (at character 1 of the query)
    ! error: search uses left out: @bad: in the saved search @bad: unknown date "nonsense" (at character 1 of the query)
    ! note: 1 message not in the index: labelled when they come
    ! note: tags that are flags of the files were left out: unread
    exit 3
    "#);
    assert_snapshot!(run(&["searches"]), @r#"
    db       1 message  subject:walrus "a b"
    my-mail  1 message  @db and tag:tax
    "#);
    assert_snapshot!(run(&["find", "--kind", "message", "--count", "label:tax"]), @"1");
    // It is one operation, and can be repeated.
    assert_snapshot!(run(&["undo"]), @"Undid operation 2 (adopt): 4 items removed. Redo: larder undo 3");
    home.code(&["searches"], 1);
    home.ok(&["sync"]);
    home.code(&["find", "--kind", "message", "--count", "label:tax"], 1);
    home.code(&["adopt", "notmuch", "--from", "dump"], 3);
    assert_snapshot!(run(&["adopt", "notmuch", "--from", "dump", "--format", "json"]), @r#"
    {"program":"notmuch","labelled":0,"waiting":1,"unnamed":0,"flag_tags":["unread"],"bad_lines":1,"searches":[],"refused":[{"name":"bad","query":"date:nonsense","reason":"unknown date \"nonsense\" (at character 1 of the query)"},{"name":"uses","query":"@bad","reason":"in the saved search @bad: unknown date \"nonsense\" (at character 1 of the query)"}],"operation":null}
    ! error: labels: line 8: "+%zz" is not encoded as notmuch does
    ! error: search bad left out: date:nonsense: unknown date "nonsense" (at character 1 of the query)
    ! error: search uses left out: @bad: in the saved search @bad: unknown date "nonsense" (at character 1 of the query)
    exit 3
    "#);
    assert_snapshot!(run(&["adopt", "mu", "--from", "dump"]), @"
    ! error: the file has no labels of mu
    exit 5
    ");
    home.assert_store_is_sound();
}

#[test]
fn bookmarks_of_mu_are_taken_over() {
    let home = Home::new();
    let text = "[mu]\ninbox=maildir:/inbox   # all\nbig = size:1M.. flag:attach\nbad=flag:sen\n";
    home.write("mu/bookmarks", text);
    home.write("labels", ";; version:0\npath:/m/1\nmessage-id:m1@x\nlabels:tax,todo\n\n");
    home.ok(&["searches", "add", "big", "size:2M.."]);
    let run = |args: &[&str]| home.run(args).masked_output();
    assert_snapshot!(run(&["adopt", "mu", "--muhome", "mu", "--from", "labels"]), @r#"
    @inbox  maildir:/inbox
    From mu: 1 message labelled, 1 search. Undo: larder undo 2
    ! error: search big left out: size:1M.. flag:attach: another search is named @big
    ! error: search bad left out: flag:sen: unknown flag "sen" (at character 1 of the query)
    ! note: 1 message not in the index: labelled when they come
    exit 3
    "#);
    assert_snapshot!(run(&["searches"]), @"
    big    0 messages  size:2M..
    inbox  0 messages  maildir:/inbox
    ");
}

#[test]
fn a_directory_without_a_database_of_mu_is_refused() {
    let home = Home::new();
    let run = home.run(&["adopt", "mu", "--muhome", "nowhere"]);
    assert_snapshot!(run.masked_output(), @r"
    ! error: cannot read nowhere/xapian: entity not found
    exit 5
    ");
    assert!(!home.path().join("work/nowhere").exists());
}

#[test]
fn notmuch_itself_is_read() {
    let home = Home::new();
    if home.program("notmuch").arg("--version").output().is_err() {
        return left_out("notmuch_itself_is_read", "notmuch is not installed");
    }
    let run = |args: &[&str]| home.run(args).masked_output();
    assert!(run(&["adopt", "notmuch"]).contains("error: cannot run notmuch"));
    write_mail(&home);
    let config = format!(
        "[database]\npath={}\n[user]\nname=Me\nprimary_email=me@example.com\n[new]\ntags=inbox\n\
         [search]\nexclude_tags=deleted;spam\n[query]\nwork=tag:inbox\n",
        home.work("mail").display()
    );
    std::fs::write(home.path().join("home/.notmuch-config"), config).unwrap();
    home.program("notmuch").arg("new").output().unwrap();
    assert_snapshot!(run(&["adopt", "notmuch"]), @r#"
    @work  tag:inbox
    From notmuch: 1 message labelled, 1 search. Undo: larder undo 1
    ! note: 1 message not in the index: labelled when they come
    ! note: [HOME]/work/mail is not registered: larder sources add '[HOME]/work/mail'; larder sync
    ! note: to hide the same messages, put into config.toml: [mail] exclude-labels = ["deleted", "spam"]
    "#);
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "@work"]).trim(), "1");
}
