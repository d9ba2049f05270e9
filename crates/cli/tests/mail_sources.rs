//! Sources of mail and commits on the command line: names, and hints about other commands.

use crate::commits::home_with_repository;
use crate::mail_lists::home_with_mail;
use crate::test_home::Home;
use insta::assert_snapshot;

/// The undo is committed before the sources that came back are looked for in the index.
#[test]
fn an_undo_succeeds_with_a_damaged_index() {
    let home = home_with_mail();
    home.ok(&["sources", "remove", "post"]);
    for name in ["index.db-wal", "index.db-shm"] {
        let _missing = std::fs::remove_file(home.data().join(name));
    }
    std::fs::write(home.data().join("index.db"), vec![b'x'; 8192]).unwrap();
    let undo = home.code(&["undo"], 0);
    assert!(undo.stdout().contains("Undid operation"), "{}", undo.masked_output());
    assert!(undo.stderr().contains("the change is committed"), "{}", undo.masked_output());
    std::fs::remove_file(home.data().join("index.db")).unwrap();
    assert!(home.ok(&["collections"]).contains("post"));
}

/// A message that is not found may be in mail that no index has yet.
#[test]
fn an_unknown_id_without_an_index_has_a_note() {
    let home = home_with_mail();
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        let _missing = std::fs::remove_file(home.data().join(name));
    }
    for args in [&["show", "a1"][..], &["save", "a1"]] {
        let error = home.code(args, 1).stderr();
        assert!(error.contains("mail is not indexed yet; run: larder sync"), "{error}");
    }
}

/// The name of a source is in the index, too, and follows at once: also after an undo.
#[test]
fn messages_are_found_by_the_new_name_of_their_source() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "sea", "in:post", "list:sea"]);
    home.ok(&["searches", "add", "audits", "audit"]);
    let count = |name: &str| {
        let run = home.run(&["find", "--kind", "message", "--count", &format!("in:{name}")]);
        if run.code == 2 { "unknown".to_string() } else { run.stdout().trim().to_string() }
    };
    assert_eq!((count("post"), count("mail")), ("4".into(), "unknown".into()));
    assert_snapshot!(home.run(&["collections", "rename", "post", "mail"]).masked_output(), @"
    post is now mail. Undo: larder undo 4
    ! warning: saved searches that name post: @sea
    ! hint: to define one anew: larder searches add NAME QUERY
    ");
    assert_eq!((count("post"), count("mail")), ("unknown".into(), "4".into()));
    assert_eq!(home.json(&["find", "msgid:a1"])[0]["collection"], "mail");
    assert!(home.ok(&["collections"]).contains("4 messages"));
    assert!(home.ok(&["sync"]).starts_with("mail: nothing changed"));
    home.ok(&["undo"]);
    assert!(home.ok(&["sources"]).starts_with("post  4 messages"));
    assert_eq!((count("post"), count("mail")), ("4".into(), "unknown".into()));
    // Names may be exchanged.
    std::fs::create_dir_all(home.work("other/cur")).unwrap();
    std::fs::copy(home.work("mail/INBOX/cur/4.host:2,S"), home.work("other/cur/9.host")).unwrap();
    home.ok(&["sources", "add", "other", "--into", "other"]);
    home.ok(&["sync"]);
    for (from, to) in [("post", "x"), ("other", "post"), ("x", "other")] {
        home.code(&["collections", "rename", from, to], 0);
    }
    assert_eq!((count("post"), count("other")), ("1".into(), "4".into()));
    home.ok(&["check"]);
}

#[test]
fn a_maildir_that_is_registered_is_named() {
    let home = home_with_mail();
    std::os::unix::fs::symlink(home.work("mail"), home.work("link")).unwrap();
    assert_snapshot!(home.run(&["sources", "add", "mail", "--into", "post"]).masked_output(), @"
    ! error: [HOME]/work/mail is already registered: it is the source post
    ! hint: larder sync indexes it
    exit 2
    ");
    assert_snapshot!(home.run(&["sources", "add", "link"]).masked_output(), @"
    ! error: [HOME]/work/link is already registered: it is the source post, [HOME]/work/mail
    ! hint: larder sync indexes it
    exit 2
    ");
    std::fs::create_dir_all(home.work("other/cur")).unwrap();
    assert_snapshot!(home.run(&["sources", "add", "other", "--into", "post"]).masked_output(), @"
    ! error: the name post belongs to the source [HOME]/work/mail
    ! hint: choose another name with --into
    exit 2
    ");
    assert_snapshot!(home.run(&["sources", "add", "mail/INBOX"]).masked_output(), @"
    ! error: messages of [HOME]/work/mail/INBOX belong to the source post, [HOME]/work/mail
    ! hint: larder sources remove post makes room for it
    exit 2
    ");
}

#[test]
fn files_beside_maildirs_are_named_and_may_be_registered() {
    let home = Home::new();
    let message = |id: &str| format!("Message-ID: <{id}@example.org>\nSubject: walrus\n\nText.\n");
    let mbox = |id: &str| format!("From anna Thu Jan  1 10:00:00 2026\n{}", message(id));
    // A message may begin as an mbox file does.
    home.write("mail/INBOX/cur/1:2,S", mbox("m1"));
    std::fs::create_dir(home.work("mail/INBOX/new")).unwrap();
    home.write("mail/2023.mbox", mbox("m2"));
    home.write("mail/2022.mbox", mbox("m3"));
    home.write("mail/eml/1.eml", message("m4"));
    home.ok(&["sources", "add", "mail/2022.mbox", "--into", "older"]);
    assert_snapshot!(home.run(&["sources", "add", "mail"]).masked_output(), @"
    mail is [HOME]/work/mail (2 directories); to index it: larder sync
    ! note: left out beside the maildirs: 1 mbox file, 1 folder of .eml files, such as [HOME]/work/mail/2023.mbox; each can be a source of its own, a folder if no maildir is in it
    ");
    home.ok(&["sources", "add", "mail/2023.mbox", "--into", "old"]);
    home.ok(&["sources", "add", "mail/eml", "--into", "eml"]);
    let run = home.code(&["sources", "add", "mail/INBOX/cur/1:2,S", "--into", "one"], 2);
    assert!(run.stderr().contains("belong to the source mail"), "{}", run.stderr());
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "walrus"]), "4\n");
    // A folder of an archive may have the name of a part of a maildir.
    home.write("years/new/2024.mbox", mbox("m5"));
    home.write("years/old/2023.mbox", mbox("m6"));
    home.ok(&["sources", "add", "years", "--into", "years"]);
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "in:years"]), "2\n");
}

#[test]
fn commits_are_found_by_the_new_name_of_their_repository() {
    let home = home_with_repository();
    home.ok(&["collections", "rename", "project", "work"]);
    assert_eq!(home.ok(&["find", "--kind", "commit", "--count", "in:work"]).trim(), "2");
    assert!(home.ok(&["sources"]).starts_with("work  2 commits"));
}

#[test]
fn a_source_is_not_removed_as_a_collection() {
    let home = home_with_mail();
    assert_snapshot!(home.run(&["collections", "remove", "post"]).masked_output(), @"
    ! error: post is a source of messages
    ! hint: larder sources remove post
    exit 2
    ");
}

#[test]
fn an_unknown_message_is_no_file() {
    let home = home_with_mail();
    for operand in ["nobody@x.example", "zzzzzzzz"] {
        let run = home.code(&["save", operand], 1);
        assert!(run.stderr().contains("no message has the ID"), "{}", run.stderr());
    }
    for operand in ["./missing", "mail/missing.eml"] {
        let run = home.run(&["save", operand]);
        assert!(run.stderr().contains("no such file"), "{}", run.stderr());
    }
}

/// Every group has a heading, also the first.
#[test]
fn messages_and_commits_have_headings() {
    let home = home_with_repository();
    home.write(
        "Mail/cur/1:2,S", "Message-ID: <w@x>\nFrom: a@x\nDate: 03 Jan 2020 10:00:00 +0000\nSubject: walrus\n\nText.\n");
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    assert_snapshot!(home.run(&["find", "walrus"]).masked_output(), @"
    Messages
    fyasjyg8  2020-01-03 10:00  a@x  walrus

    Commits
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ");
}

#[test]
fn long_addresses_keep_the_columns_in_a_pipe() {
    let home = home_with_mail();
    let from = "somebody.with.a.long.name@mail.walrus-audits.example";
    let date = "02 Feb 2020 10:00:00 +0000";
    let text = format!("Message-ID: <w@x>\nFrom: {from}\nDate: {date}\nSubject: Walrus audit\n\n");
    home.write("mail/INBOX/cur/6.host:2,S", text);
    home.ok(&["sync"]);
    assert_snapshot!(home.run(&["find", "subject:audit"]).masked_output(), @"
    316wd8hh  2020-02-02 10:00  somebody.with.a.long.name@mail.…     Walrus audit
    2fcxswsc  2020-01-02 10:00  Bruno                             u  Re: Walrus audit
    4ffqdjt5  2020-01-01 10:00  Anna Berg                            Walrus audit
    ");
    // The number of a thread is that of a row, and depends on which reader is the first.
    let summary = home.ok(&["find", "subject:audit", "--summary"]);
    let summary =
        summary.lines().map(|line| line.get("0000000000000006  ".len()..).unwrap_or(line));
    assert_snapshot!(summary.collect::<Vec<&str>>().join("\n"), @"
    2020-02-02 10:00  [1/1]  somebody.with.a.long.name@mail.walrus-audits.ex…     Walrus audit
    2020-01-02 10:00  [2/2]  Anna Berg, Bruno                                  u  Walrus audit
    ");
}

#[test]
fn words_of_mu_and_notmuch_have_a_hint() {
    let home = home_with_mail();
    let hint = |args: &[&str]| {
        let error = home.code(args, 2).stderr();
        let line = error.lines().find(|line| line.contains("hint")).unwrap_or_default();
        line.trim_start_matches("hint: ").to_string()
    };
    for (typed, hinted) in [
        ("index", "sync"),
        ("new", "sync, or add for a contact or an event"),
        ("init", "sources add MAILDIR"),
        ("setup", "sources add MAILDIR"),
        ("info", "collections"),
        ("tag", "edit ID --label +LABEL"),
        ("view", "show"),
        ("extract", "save"),
        ("cfind", "find --correspondents"),
        ("address", "find --correspondents"),
        ("count", "find --count"),
        ("dump", "labels export"),
    ] {
        assert_eq!(hint(&[typed, "walrus"]), format!("did you mean {hinted}?"), "{typed}");
    }
    for (typed, hinted) in [("--maxnum=3", "--limit"), ("--sortfield=date", "--sort")] {
        assert_eq!(hint(&["find", "walrus", typed]), format!("did you mean {hinted}?"), "{typed}");
    }
    let fields = ["find", "msgid:b1", "--kind", "message", "--fields", "d f s"];
    assert!(home.ok(&fields).contains("dora@x.example\tSeal news"));
    let fields = ["find", "msgid:b1", "--fields", "d f s"];
    assert!(home.ok(&fields).contains("dora@x.example\tSeal news"));
    let run = home.code(&["find", "--fields", "d f s"], 2);
    assert!(run.stderr().contains("messages have it: --kind message"), "{}", run.stderr());
}

#[test]
fn files_of_messages_are_counted() {
    let home = home_with_mail();
    let count = |args: &[&str]| home.ok(&[&["find", "msgid:c1", "--count"], args].concat());
    assert_eq!((count(&["--kind", "message"]).trim(), count(&["--files"]).trim()), ("1", "2"));
    assert_eq!(home.ok(&["find", "msgid:c1", "--files"]).lines().count(), 2);
}

/// Each file is named once, and a long list ends with the number of the others.
#[test]
fn a_full_synchronisation_names_each_damaged_file_once() {
    let home = home_with_mail();
    let damaged = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\
                   Content-Transfer-Encoding: base64\n\n!!!\n--b\n\
                   Content-Transfer-Encoding: base64\n\n???\n";
    for number in 10..35 {
        let text = format!("Message-ID: <d{number}>\nMIME-Version: 1.0\n{damaged}");
        home.write(&format!("mail/INBOX/cur/{number}.host:2,S"), text);
    }
    for args in [&["sync"][..], &["sync", "--full"]] {
        let run = home.code(args, 0);
        let error = run.stderr();
        let warnings: Vec<&str> = error.lines().filter(|line| line.contains(".host:2,S")).collect();
        let files: std::collections::BTreeSet<&str> =
            warnings.iter().filter_map(|line| line.split(".host").next()).collect();
        assert_eq!(warnings.len(), files.len(), "{error}");
        assert!(warnings.len() <= 20, "{error}");
        assert!(warnings.is_empty() || error.contains("further files with damage"), "{error}");
    }
}

/// Names of files are bytes, and what is no message does not hide the others.
#[test]
fn what_is_no_message_is_named_and_the_rest_is_found() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let home = home_with_mail();
    let folder = home.work("mail/INBOX/cur");
    let name = OsStr::from_bytes(b"7.h\xf6st:2,S");
    std::fs::write(folder.join(name), "Message-ID: <l1>\nSubject: latin\n\nText.\n").unwrap();
    assert!(home.program("mkfifo").arg(folder.join("8.pipe")).status().unwrap().success());
    let run = home.code(&["sync"], 3);
    assert!(run.stderr().contains("8.pipe: not a file"), "{}", run.stderr());
    assert!(home.ok(&["show", "l1"]).starts_with("latin\n"));
    let paths = home.run(&["find", "msgid:l1", "--files", "-0"]).out;
    assert_eq!(paths, [folder.join(name).as_os_str().as_bytes(), b"\0"].concat());
    home.ok(&["find", "msgid:l1", "--links", "links"]);
    assert_eq!(home.ok(&["find", "walrus", "--count", "--kind", "message"]).trim(), "3");
}

/// Other rules of reading: the old index answers, and each search says so.
#[test]
fn an_index_of_old_rules_is_not_searched_in_silence() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "sea", "walrus"]);
    home.configure("[mail]\naddresses = [\"a@x.example\"]\n");
    let note = "note: the index of mail is out of date; run: larder sync\n";
    let searches = [
        &["find", "walrus"][..],
        &["find", "@sea"],
        &["find", "--kind", "message", "walrus"],
        &["find", "--correspondents", "anna"],
        &["searches"],
        &["edit", "--query", "walrus", "--label", "+tax"],
        &["watch", "--kind", "message", "walrus", "--for", "0"],
    ];
    for args in searches {
        let run = home.run(args);
        assert_eq!(run.stderr().matches(note).count(), 1, "{args:?}: {}", run.masked_output());
    }
    home.ok(&["sync"]);
    for args in searches {
        let run = home.run(args);
        assert!(!run.stderr().contains(note), "{args:?}: {}", run.masked_output());
    }
}

/// An undo brings back the registration; until its files are read again, each search says so.
#[test]
fn a_source_that_came_back_is_not_searched_in_silence() {
    let home = home_with_mail();
    home.ok(&["searches", "add", "sea", "walrus"]);
    home.ok(&["sources", "remove", "post"]);
    let note = "note: not completely indexed yet: the messages of post; run: larder sync";
    let undo = home.code(&["undo"], 0);
    assert!(undo.stderr().contains(note), "{}", undo.masked_output());
    for args in [
        &["find", "walrus"][..],
        &["find", "walrus", "--count"],
        &["find", "--kind", "message", "walrus"],
        &["find", "--in", "post", "walrus"],
        &["find", "--threads", "walrus"],
        &["find", "--correspondents", "anna"],
        &["searches"],
        &["edit", "--query", "walrus", "--label", "+tax"],
        &["watch", "--kind", "message", "walrus", "--for", "0"],
        &["show", "a1"],
        &["save", "a1"],
    ] {
        let run = home.run(args);
        assert!(run.stderr().contains(note), "{args:?}: {}", run.masked_output());
    }
    home.ok(&["sync"]);
    let run = home.code(&["find", "walrus"], 0);
    assert!(!run.stderr().contains("indexed"), "{}", run.masked_output());
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "walrus"]).trim(), "3");
    // A source that was registered, but never read, beside one that was.
    home.write("other/cur/9.host:2,S", "Message-ID: <o1>\nSubject: Walrus\n\nText.\n");
    home.ok(&["sources", "add", "other", "--into", "other"]);
    home.ok(&["sync", "post"]);
    let run = home.code(&["find", "walrus"], 0);
    assert!(run.stderr().contains("the messages of other; run"), "{}", run.masked_output());
    let run = home.code(&["find", "--in", "post", "walrus"], 0);
    assert!(!run.stderr().contains("indexed"), "{}", run.masked_output());
    // An mbox file without messages is indexed.
    home.ok(&["sync"]);
    home.write("new.mbox", "From a 01 Jan 2020\nMessage-ID: <n1>\n\nText.\n");
    home.ok(&["sources", "add", "new.mbox", "--into", "new"]);
    home.write("new.mbox", "");
    home.run(&["sync"]);
    let run = home.code(&["find", "walrus"], 0);
    assert!(!run.stderr().contains("indexed"), "{}", run.masked_output());
}

#[test]
fn a_repository_that_came_back_is_not_searched_in_silence() {
    let home = home_with_repository();
    home.ok(&["sources", "remove", "project"]);
    let note = "note: not completely indexed yet: the commits of project; run: larder sync";
    let undo = home.code(&["undo"], 0);
    assert!(undo.stderr().contains(note), "{}", undo.masked_output());
    for args in [&["find", "walrus"][..], &["find", "--kind", "commit", "walrus"]] {
        let run = home.run(args);
        assert!(run.stderr().contains(note), "{args:?}: {}", run.masked_output());
    }
    home.ok(&["sync"]);
    let run = home.code(&["find", "walrus"], 0);
    assert!(!run.stderr().contains("indexed"), "{}", run.masked_output());
    std::fs::create_dir(home.work("empty")).unwrap();
    assert!(home.program("git").args(["init", "-q", "empty"]).status().unwrap().success());
    home.ok(&["sources", "add", "empty"]);
    home.ok(&["sync"]);
    let run = home.code(&["find", "walrus"], 0);
    assert!(!run.stderr().contains("indexed"), "{}", run.masked_output());
    // Without an index, the counts of saved searches leave out the commits, too.
    home.ok(&["searches", "add", "ships", "walrus", "--kind", "commit"]);
    std::fs::remove_file(home.data().join("commits.db")).unwrap();
    let note = "note: commits are not indexed yet; run: larder sync";
    for args in [&["find", "walrus"][..], &["searches"]] {
        let run = home.run(args);
        assert!(run.stderr().contains(note), "{args:?}: {}", run.masked_output());
    }
}

/// A kind that has none of the fields is not listed, and is named; a kind that has some of them has
/// empty columns for the others.
#[test]
fn fields_of_a_search_over_all_kinds_are_those_of_each_kind() {
    let home = home_with_repository();
    let text = "Message-ID: <w@x>\nFrom: a@x\nDate: 03 Jan 2020 10:00:00 +0000\n\
                Subject: walrus\n\nText.\n";
    home.write("Mail/cur/1:2,S", text);
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home.write("anna.vcf", crate::test_home::ANNA.replace("Anna Höl", "Walrus Höl"));
    home.ok(&["import", "anna.vcf"]);
    assert_snapshot!(home.run(&["find", "--fields", "from", "walrus"]).masked_output(), @"
    fyasjyg8	a@x
    ! note: not listed, as they have none of these fields: contacts or calendar items, commits
    ");
    assert_snapshot!(home.run(&["find", "--fields", "subject,author,email", "walrus"]).masked_output(), @"
    xdnskgpk			anna@example.org
    fyasjyg8	walrus		
    c014781	Describe the walrus	Anna Berg <anna@example.org>	
    21bfb1c	Begin	Anna Berg <anna@example.org>	
    ");
    assert_snapshot!(home.run(&["find", "--fields", "full_name", "walrus"]).masked_output(), @"
    xdnskgpk	Walrus Hölderlin
    ! note: not listed, as they have none of these fields: messages, commits
    ");
    assert_snapshot!(home.run(&["find", "--fields", "size", "walrus", "--format", "json"]).masked_output(), @r#"
    {"id":"fyasjyg8ay2xp","kind":"message","is_match":true,"size":84}
    ! note: not listed, as they have none of these fields: contacts or calendar items, commits
    "#);
    // No kind of the answer has the field.
    assert_snapshot!(home.run(&["find", "--fields", "parents", "msgid:w@x"]).masked_output(), @"
    ! note: not listed, as they have none of these fields: messages
    exit 1
    ");
    assert_snapshot!(home.run(&["find", "--fields", "e", "walrus"]).masked_output(), @r#"
    ! error: unknown field "e" in --fields
    ! hint: `larder fields` lists the fields
    ! hint: fields of messages: id, kind, collection, message_id, date, timestamp, size, priority, from, to, cc, bcc, reply_to, subject, list_id, references, keywords, flags, labels, folders, files, thread_id
    ! hint: fields of commits: id, kind, collection, hash, date, timestamp, author, committer, commit_date, subject, parents
    exit 2
    "#);
    assert_snapshot!(home.run(&["find", "--fields", "from"]).masked_output(), @r#"
    ! error: contacts and calendar items have no field "from"
    ! hint: messages have it: --kind message
    exit 2
    "#);
    assert_snapshot!(home.run(&["find", "--fields", "from", "--count", "walrus"]).masked_output(), @"4");
}

/// Kinds without the order of `--sort` are listed in their usual one, and are named.
#[test]
fn kinds_without_the_order_of_a_search_are_named() {
    let home = home_with_repository();
    for (name, size) in [("1", 10), ("2", 1000), ("3", 100)] {
        let header = format!("Message-ID: <{name}@x>\nSubject: walrus {name}\n");
        let date = format!("Date: 0{name} Jan 2020 10:00:00 +0000\n");
        let text = format!("{header}{date}\n{}", "x".repeat(size));
        home.write(&format!("Mail/cur/{name}.host:2,S"), text);
    }
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home.write("anna.vcf", crate::test_home::ANNA.replace("Anna Höl", "Walrus Höl"));
    home.ok(&["import", "anna.vcf"]);
    let sorted = |name: &str| home.run(&["find", "walrus", "--sort", name]).masked_output();
    assert_snapshot!(sorted("size"), @"
    Contacts
    xdnskgpk  Walrus Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works

    Messages
    j70akes1  2020-01-01 10:00  walrus 1
    0ef9vqj8  2020-01-03 10:00  walrus 3
    m1z58qca  2020-01-02 10:00  walrus 2

    Commits
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ! note: in their usual order, as they have no size: contacts or calendar items, commits
    ");
    assert_snapshot!(sorted("full_name"), @"
    Contacts
    xdnskgpk  Walrus Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works

    Messages
    0ef9vqj8  2020-01-03 10:00  walrus 3
    m1z58qca  2020-01-02 10:00  walrus 2
    j70akes1  2020-01-01 10:00  walrus 1

    Commits
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ! note: in their usual order, as they have no full_name: messages, commits
    ");
    assert_snapshot!(sorted("author"), @"
    Contacts
    xdnskgpk  Walrus Hölderlin  anna@example.org  +49 30 1234567 (mobile)  Orchard Works

    Messages
    0ef9vqj8  2020-01-03 10:00  walrus 3
    m1z58qca  2020-01-02 10:00  walrus 2
    j70akes1  2020-01-01 10:00  walrus 1

    Commits
    c014781  2020-01-02 10:00  Anna Berg  Describe the walrus
    21bfb1c  2020-01-01 10:00  Anna Berg  Begin
    ! note: in their usual order, as they have no author: contacts or calendar items
    ");
    assert_snapshot!(sorted("bogus"), @r#"
    ! error: unknown field "bogus"
    ! hint: `larder fields` lists the fields
    exit 2
    "#);
}

/// Nothing of a source is in the store: an export says where its messages are.
#[test]
fn an_export_of_a_source_says_where_its_messages_are() {
    let home = home_with_repository();
    home.write("Mail/cur/1:2,S", "Message-ID: <w@x>\nSubject: walrus\n\nText.\n");
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    assert_snapshot!(home.run(&["export", "mail"]).masked_output(), @"
    ! error: mail is a source: its messages are in [HOME]/work/Mail, and larder has no copies of them
    ! hint: to print the bytes of some: larder find --in mail --format raw QUERY
    ! hint: their paths: larder find --in mail --files QUERY; a maildir of links: --links DIR
    exit 2
    ");
    assert_snapshot!(home.run(&["export", "project", "-o", "out"]).masked_output(), @"
    ! error: project is a source: its commits are in [HOME]/work/project, and larder has no copies of them
    ! hint: to print the bytes of some: larder find --in project --format raw QUERY
    exit 2
    ");
    assert!(!home.work("out").exists());
}

/// A list has a message for each source that it is in, and its labels are changed once.
#[test]
fn copies_of_labelled_messages_are_counted_apart() {
    let home = home_with_mail();
    let name = "mail/Lists/sea/cur/3.host:2,FS";
    home.write("other/cur/3.host:2,FS", std::fs::read(home.work(name)).unwrap());
    home.ok(&["sources", "add", "other", "--into", "other"]);
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--count", "--kind", "message", "walrus"]).trim(), "4");
    let line = home.ok(&["edit", "--query", "walrus", "--label", "+sea"]);
    let listed = ". Lists show them as 4, one for each source. Undo: ";
    assert!(line.starts_with(&format!("3 messages changed{listed}")), "{line}");
    home.ok(&["edit", "--query", "walrus from:anna", "--label", "+new"]);
    let line = home.ok(&["edit", "--query", "walrus", "--label", "+new"]);
    assert!(line.contains(&format!(" unchanged{listed}")), "{line}");
    let report = home.json(&["edit", "--query", "walrus", "--label", "+old"]);
    assert_eq!((&report[0]["changed"], &report[0]["listed"]), (&3.into(), &4.into()));
    let line = home.ok(&["edit", "a1", "--label", "+tax"]);
    assert!(line.starts_with("1 message changed."), "{line}");
}

/// The damage of a message is named when it is first read, after a change of its file, and by
/// `check --full`.
#[test]
fn damage_is_named_once() {
    let home = home_with_mail();
    let text = "Message-ID: <d1>\nMIME-Version: 1.0\nContent-Type: text/plain\n\
                Content-Transfer-Encoding: base64\n\n!!!\n";
    let path = home.write("mail/INBOX/cur/20.host:2,S", text);
    let damage = "20.host:2,S: part 1: the transfer encoding is damaged";
    let is_named = |args: &[&str]| home.code(args, 0).stderr().contains(damage);
    assert!(is_named(&["sync"]));
    // The file is new, so it is read again.
    let run = home.code(&["sync", "--full"], 0);
    assert!(run.stdout().contains("read again") && run.stderr().is_empty(), "{}", run.stderr());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    home.ok(&["sync", "--full"]);
    assert!(!is_named(&["sync", "--full"]));
    // Other rules: all files are read again.
    home.configure("[mail]\naddresses = [\"a@x.example\"]\n");
    let run = home.code(&["sync"], 0);
    assert!(run.stdout().contains("read again") && run.stderr().is_empty(), "{}", run.stderr());
    home.write("mail/INBOX/cur/20.host:2,S", format!("{text}!\n"));
    assert!(is_named(&["sync", "--full"]));
    let run = home.code(&["check", "--full"], 0);
    assert!(run.stderr().contains(damage), "{}", run.stderr());
    assert!(run.stdout().contains("read and compared, 1 with damage"), "{}", run.stdout());
}

/// Queries name files by their paths, which have no `..`.
#[test]
fn the_path_of_a_source_has_no_steps_up() {
    let home = home_with_mail();
    home.ok(&["sources", "remove", "post"]);
    std::fs::create_dir_all(home.work("elsewhere/below")).unwrap();
    std::os::unix::fs::symlink("elsewhere/below", home.work("link")).unwrap();
    std::fs::rename(home.work("mail"), home.work("elsewhere/mail")).unwrap();
    home.ok(&["sources", "add", "link/../mail/./"]);
    home.ok(&["sync"]);
    let path = home.work("elsewhere/mail").canonicalize().unwrap();
    assert_eq!(home.json(&["sources"])[0]["path"].as_str(), path.to_str());
    let query = format!("path:{}/INBOX/**", path.display());
    assert_eq!(home.ok(&["find", "--count", &query]), "3\n");
    let error = home.code(&["sources", "add", "../nowhere/x"], 5).stderr();
    assert!(error.contains("../nowhere/x"), "{error}");
}

/// The files of its messages cannot be found, and the next synchronisation removes them.
#[test]
fn messages_of_a_source_that_an_undo_took_are_left_out() {
    let home = crate::mail_lists::home_with_mail();
    let text = "Message-ID: <other>\nFrom: Dora <d@x.example>\nSubject: Re: Walrus audit\n\
                References: <a1>\n\nA walrus.\n";
    let path = home.work("other/cur/1.host:2,S");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    home.ok(&["searches", "add", "audits", "--kind", "message", "walrus"]);
    home.ok(&["sources", "add", "other", "--into", "other"]);
    home.ok(&["sync"]);
    home.ok(&["find", "--correspondents", "d@x.example"]);
    let undo = home.code(&["undo"], 0);
    let note = "note: still indexed: the messages of other; run: larder sync\n";
    assert_eq!(undo.stderr(), note);
    let links = home.work("links");
    let links = links.to_str().unwrap();
    for options in [
        &["--format", "json"] as &[&str],
        &["--files"],
        &["--format", "raw"],
        &["--fields", "subject"],
        &["--snippets"],
        &["--threads", "--format", "json"],
        &["--related", "--format", "json"],
        &["--related"],
        &["--threads", "--related"],
        &["--summary"],
        &["--summary", "--format", "json"],
        &["--links", links],
    ] {
        let run = home.code(&[&["find", "--kind", "message", "walrus"], options].concat(), 0);
        let note = "the messages of other; run: larder sync";
        assert!(run.stderr().contains(note), "{options:?}: {}", run.masked_output());
        for text in ["A walrus.", "Dora", "/3]"] {
            assert!(!run.stdout().contains(text), "{options:?}: {}", run.masked_output());
        }
    }
    let thread = home.code(&["show", "--thread", "a1"], 0);
    assert!(!thread.stdout().contains("Dora"), "{}", thread.masked_output());
    assert!(thread.stderr().contains("the messages of other"), "{}", thread.masked_output());
    assert_eq!(home.json(&["show", "--thread", "a1"]).len(), 2);
    assert_eq!(home.code(&["show", "--thread", "b1"], 0).stderr(), "");
    for args in [&["show", "--thread", "other"] as &[&str], &["show", "mid:other"]] {
        let own = home.code(args, 5).stderr();
        assert!(own.contains("other is no registered source"), "{own}");
    }
    let count = |args: &[&str]| home.ok(&[&["find", "--count", "walrus"], args].concat());
    assert_eq!(count(&["--kind", "message"]), "3\n");
    assert_eq!(count(&[]), "3\n");
    assert!(home.ok(&["searches"]).contains("3 messages"));
    let correspondents = home.run(&["find", "--correspondents", "d@x.example"]);
    assert_eq!(correspondents.stdout(), "", "{}", correspondents.masked_output());
    let watched = home.ok(&["watch", "--kind", "message", "--changes", "0", "walrus"]);
    assert_eq!(watched.lines().count(), 3, "{watched}");
    let thread = home.run(&["find", "--kind", "message", "--count", "thread:{from:d@x.example}"]);
    assert_eq!(thread.stdout(), "0\n");
    let edit = home.ok(&["edit", "--query", "walrus", "--label", "+tax"]);
    assert!(edit.contains("3 messages"), "{edit}");
    home.ok(&["sync"]);
    assert_eq!(home.run(&["find", "--kind", "message", "--count", "walrus"]).stderr(), "");
}

/// Messages of a disk that is not mounted are not taken for deleted.
#[test]
fn a_maildir_that_is_missing_is_said_to_be() {
    let home = home_with_mail();
    std::fs::rename(home.work("mail"), home.work("elsewhere")).unwrap();
    let run = home.code(&["sync"], 5);
    let message = "/mail is missing (is its disk mounted?); messages that are indexed stay\n";
    assert!(run.stderr().contains(message), "{}", run.masked_output());
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "walrus"]), "3\n");
}

/// Programs need the path itself; text shows its invisible characters as escapes.
#[test]
fn the_json_of_sources_has_true_paths() {
    let home = Home::new();
    let (maildir, repository) = ("so\u{ad}ft", "co\u{ad}de");
    for folder in ["cur", "new"] {
        std::fs::create_dir_all(home.work(maildir).join(folder)).unwrap();
    }
    let mut git = home.program("git");
    assert!(git.args(["init", "-q", repository]).status().unwrap().success());
    let paths_of = |arguments: &[&str]| -> Vec<String> {
        let output = home.ok(&[arguments, &["--format", "json"]].concat());
        let objects = output.lines().map(|line| serde_json::from_str(line).unwrap());
        objects.map(|one: serde_json::Value| one["path"].as_str().unwrap().to_string()).collect()
    };
    let expected = [maildir, repository].map(|name| home.work(name).display().to_string());
    for (name, path) in [maildir, repository].into_iter().zip(&expected) {
        assert_eq!(paths_of(&["sources", "add", name]), [path.as_str()]);
    }
    assert_eq!(paths_of(&["sources"]), expected);
    let text = home.ok(&["sources"]);
    assert!(text.contains("/so<U+00AD>ft") && text.contains("/co<U+00AD>de"), "{text}");
}
