//! `larder adopt`: labels and saved searches of notmuch and mu.

use crate::corpora::folder;
use crate::test_home::{Home, Random, left_out};
use insta::assert_snapshot;
use std::path::Path;

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
    ! note: 1 message (id:m2@x) not in the index; their labels wait until larder sync finds them
    ! note: tags that are flags of the files were left out: unread
    exit 3
    "#);
    assert_snapshot!(run(&["searches"]), @r#"
    db       1 message  subject:walrus "a b"
    my-mail  1 message  @db and tag:tax
    "#);
    assert_snapshot!(run(&["find", "--kind", "message", "--count", "label:tax"]), @"1");
    // It is one operation, and can be repeated.
    assert_snapshot!(run(&["undo"]), @"Undid operation 2 (adopt): labels and saved searches (4) changed back. Redo: larder undo 3");
    home.code(&["searches"], 1);
    home.ok(&["sync"]);
    home.code(&["find", "--kind", "message", "--count", "label:tax"], 1);
    home.code(&["adopt", "notmuch", "--from", "dump"], 3);
    assert_snapshot!(run(&["adopt", "notmuch", "--from", "dump", "--format", "json"]), @r#"
    {"program":"notmuch","labelled":0,"waiting":1,"waiting_ids":["m2@x"],"unnamed":0,"flag_tags":["unread"],"bad_lines":1,"searches":[],"refused":[{"name":"bad","query":"date:nonsense","reason":"unknown date \"nonsense\" (at character 1 of the query)"},{"name":"uses","query":"@bad","reason":"in the saved search @bad: unknown date \"nonsense\" (at character 1 of the query)"}],"operation":null}
    ! error: labels: line 8: "+%zz" is not encoded as notmuch does
    ! error: search bad left out: date:nonsense: unknown date "nonsense" (at character 1 of the query)
    ! error: search uses left out: @bad: in the saved search @bad: unknown date "nonsense" (at character 1 of the query)
    exit 3
    "#);
    assert_snapshot!(run(&["adopt", "mu", "--from", "dump"]), @"
    ! error: dump: no labels of mu
    ! hint: `mu labels export` writes such a file
    exit 3
    ");
    home.assert_store_is_sound();
}

#[test]
fn bookmarks_of_mu_are_taken_over() {
    let home = Home::new();
    let text = "[mu]\ninbox=maildir:/inbox   # all\nbig = size:1M.. flag:attach\nbad=flag:sen\n\
                org=from:/.*\\\\\\\\.org/\nnone=\nwalrus=\\ssubject:walrus\n";
    home.write("mu/bookmarks", text);
    home.write("labels", ";; version:0\npath:/m/1\nmessage-id:m1@x\nlabels:tax,todo\n\n");
    home.ok(&["searches", "add", "big", "size:2M.."]);
    let run = |args: &[&str]| home.run(args).masked_output();
    assert_snapshot!(run(&["adopt", "mu", "--muhome", "mu", "--from", "labels"]), @r#"
    @inbox  maildir:/inbox
    @org  from:/.*\.org/
    @walrus  subject:walrus
    From mu: 1 message labelled, 3 searches. Undo: larder undo 2
    ! note: the bookmark "org" is now from:/.*\.org/, with the same meaning
    ! error: search big left out: size:1M.. flag:attach: another search is named @big
    ! error: search none left out: it has no query
    ! error: search bad left out: flag:sen: unknown flag "sen" (at character 1 of the query)
    ! note: 1 message (id:m1@x) not in the index; their labels wait until larder sync finds them
    exit 3
    "#);
    assert_snapshot!(run(&["searches"]), @r"
    big     0 messages  size:2M..
    inbox   0 messages  maildir:/inbox
    org     0 messages  from:/.*\.org/
    walrus  0 messages  subject:walrus
    ");
}

#[test]
fn a_directory_without_a_database_of_mu_is_refused() {
    let home = Home::new();
    // Bookmarks are read without it.
    home.write("only/bookmarks", "[mu]\nbig=size:1M..\n");
    assert_snapshot!(home.run(&["adopt", "mu", "--muhome", "only"]).masked_output(), @"
    @big  size:1M..
    From mu: 0 messages labelled, 1 search. Undo: larder undo 1
    ! note: only/xapian is missing: labels of mu are not read
    ");
    home.write("only/bookmarks", "[other]\nbig=size:1M..\n");
    let run = home.code(&["adopt", "mu", "--muhome", "only"], 5);
    assert!(run.stderr().contains("bookmarks in only\n"), "{}", run.stderr());
    home.write("labels", ";; version:0\npath:/m/1\nmessage-id:m1@x\nlabels:tax\n\n");
    let run = home.run(&["adopt", "mu", "--muhome", "only", "--from", "labels"]);
    let expected = "note: only/bookmarks has no bookmarks in a group [mu]";
    assert!(run.stderr().contains(expected), "{}", run.stderr());
    let run = home.run(&["adopt", "mu", "--muhome", "nowhere"]);
    assert_snapshot!(run.masked_output(), @r"
    ! error: mu has neither a database nor bookmarks in nowhere
    ! hint: --muhome names the directory that `mu info` shows
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
    ! note: 1 message (id:m1@x) not in the index; their labels wait until larder sync finds them
    ! note: [HOME]/work/mail is not registered: larder sources add '[HOME]/work/mail'; larder sync
    ! note: to hide the same messages, put into config.toml: [mail] exclude-labels = ["deleted", "spam"]
    "#);
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "@work"]).trim(), "1");
}

/// notmuch keeps a part of the white space in some Message-IDs.
#[test]
fn messages_with_white_space_in_their_ids_are_labelled() {
    let home = Home::new();
    let test = "messages_with_white_space_in_their_ids_are_labelled";
    if home.program("notmuch").arg("--version").output().is_err() {
        return left_out(test, "notmuch is not installed");
    }
    let ids = [
        "\n <fold@x>",
        "<fold@\n x>",
        "<fo ld@x>",
        "< fold@x >",
        "<fold\t@x>",
        "fo ld@x",
        "<fold@x\n >",
        "<fold\n  \t x@x>",
        "<fold  x@x>",
        "<fold \n x@x>",
        "<fold   x@x>",
        "fold\n @x",
        "fold\n  @x",
        "<fold@x> (x y)",
        "<\"fo  ld\"@x>",
        "<fold@x> <other@x>",
    ];
    std::fs::create_dir_all(home.work("mail/new")).unwrap();
    for (number, id) in ids.iter().enumerate() {
        let id = id.replace("fo", &format!("{number}fo"));
        let text = format!("Message-ID: {id}\nFrom: a@x.example\nSubject: {number}\n\nx\n");
        home.write(&format!("mail/cur/{number}.host:2,S"), text);
    }
    let config = format!("[database]\npath={}\n[new]\ntags=tax\n", home.work("mail").display());
    std::fs::write(home.path().join("home/.notmuch-config"), config).unwrap();
    home.program("notmuch").arg("new").output().unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let run = home.code(&["adopt", "notmuch"], 0);
    let unlabelled = home.run(&["find", "--kind", "message", "not label:tax"]).stdout();
    assert!(unlabelled.is_empty(), "{unlabelled}: {}", run.masked_output());
}

/// Writes messages of the corpora into a maildir with all kinds of flags. Of some it writes copies
/// that notmuch reads as other messages, or as none: with other line ends or an empty first line.
fn write_corpora(home: &Home, corpora: &Path) -> usize {
    let mut random = Random(15);
    let mut files = Vec::new();
    let mut folders = vec![corpora.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut count = 0;
    for path in files.iter().step_by(12) {
        let bytes = std::fs::read(path).unwrap();
        let lines = || bytes.split(|byte| *byte == b'\n');
        let copies = [
            bytes.clone(),
            lines().collect::<Vec<_>>().join(&b'\r'),
            lines().collect::<Vec<_>>().join(&b"\r\n"[..]),
            [b"\n", &bytes[..]].concat(),
        ];
        for copy in copies.iter().take(1 + random.next_below(4) as usize) {
            let flags: String = "DFPRS".chars().filter(|_| random.next_below(3) == 0).collect();
            let name = match random.next_below(4) {
                0 => format!("Mail/new/{count}.host"),
                _ => format!("Mail/cur/{count}.host:2,{flags}"),
            };
            home.write(&name, copy);
            count += 1;
        }
    }
    count
}

/// notmuch takes a file for one in the format of sup if its first message has a parenthesis.
#[test]
fn the_first_message_of_an_export_has_no_parenthesis() {
    let home = Home::new();
    write_mail(&home);
    let text = "Message-ID: <a(1)@x>\nFrom: a@example.org\nSubject: round\n\ntext\n";
    home.write("mail/cur/2:2,S", text);
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    home.ok(&["edit", "--query", "subject:round", "--label", "+tax"]);
    assert_snapshot!(home.run(&["labels", "export"]).masked_output(), @r#"
    #notmuch-dump batch-tag:3 tags
    +tax -- id:"a(1)@x"
    ! note: notmuch has no database here, so tags such as unread are made from the files
    ! warning: each Message-ID has a parenthesis, so notmuch takes the file for another format: restore it with `notmuch restore --format=batch-tag`
    "#);
    home.ok(&["edit", "m1@x", "--label", "+todo"]);
    let exported = home.ok(&["labels", "export"]);
    let lines: Vec<&str> = exported.lines().skip(1).collect();
    assert!(lines[0].ends_with(" -- id:m1@x"), "{exported}");
    assert_eq!(lines[1..], ["+tax -- id:\"a(1)@x\""]);
}

/// Nothing that was taken over changes if it is written back: neither tags nor names of files.
#[test]
fn an_export_restored_into_notmuch_changes_nothing() {
    let home = Home::new();
    let test = "an_export_restored_into_notmuch_changes_nothing";
    if home.program("notmuch").arg("--version").output().is_err() {
        return left_out(test, "notmuch is not installed");
    }
    write_mail(&home);
    if let Some(corpora) = folder("mail") {
        assert!(write_corpora(&home, &corpora) > 300);
    }
    // A copy that notmuch takes for another message, as it reads no lines that end with CR alone.
    let text = "Message-ID: <m2@x>\nFrom: a@example.org\nSubject: walrus\n\ncopied\n";
    home.write("Mail/cur/m2.host:2,", text);
    home.write("Mail/cur/m2-copy.host:2,FRS", text.replace('\n', "\r"));
    let picture = "Message-ID: <m3@x>\nFrom: a@example.org\nContent-Type: multipart/related; boundary=b\n\n\
        --b\nContent-Type: text/html\n\nx\n--b\nContent-Type: image/png\n\nx\n--b--\n";
    home.write("Mail/new/m3.host", picture);
    let config = format!(
        "[database]\npath={}\n[user]\nname=Me\nprimary_email=me@example.com\n[new]\ntags=inbox;unread\n\
         [maildir]\nsynchronize_flags=true\n",
        home.work("Mail").display()
    );
    std::fs::write(home.path().join("home/.notmuch-config"), config).unwrap();
    let notmuch = |arguments: &[&str]| {
        let output = home.program("notmuch").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    notmuch(&["new", "--quiet"]);
    notmuch(&["tag", "+tax", "--", "date:..2010"]);
    notmuch(&["tag", "+a b", "-inbox", "--", "subject:re or id:m2@x"]);
    notmuch(&["tag", "-attachment", "-unread", "--", "from:anna"]);
    // A tag that cannot be a label stays in notmuch.
    notmuch(&["tag", "+x\ty", "--", "id:m2@x"]);
    home.ok(&["sources", "add", "Mail"]);
    assert!([0, 3].contains(&home.run(&["sync", "-q"]).code));
    let state = || (notmuch(&["dump"]), notmuch(&["search", "--output=files", "*"]));
    let before = state();
    home.code(&["adopt", "notmuch"], 3);
    home.ok(&["labels", "export", "dump"]);
    notmuch(&["restore", "--input=dump"]);
    let after = state();
    assert_eq!(after.0, before.0);
    assert_eq!(after.1, before.1);
    // A changed label is the only change.
    home.ok(&["edit", "m2@x", "--label", "+todo", "-a b"]);
    home.ok(&["labels", "export", "changed-dump"]);
    notmuch(&["restore", "--input=changed-dump"]);
    let changed: Vec<String> =
        state().0.into_iter().filter(|line| !before.0.contains(line)).collect();
    assert_eq!(changed, ["+todo +unread +x%09y -- id:m2@x"]);
}
