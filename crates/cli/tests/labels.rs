//! Labels of messages on the command line: `larder edit --label`, `larder labels`, searches.

use crate::test_home::{Home, left_out};
use insta::assert_snapshot;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// A home with five messages in a maildir, which is registered and indexed.
pub fn home_with_mail() -> Home {
    let home = Home::new();
    for (number, (sender, subject)) in [
        ("bank@example.org", "statement of May"),
        ("bank@example.org", "statement of June"),
        ("anna@example.org", "walrus audit"),
        ("anna@example.org", "lunch"),
        ("spam@example.com", "win a walrus"),
    ]
    .into_iter()
    .enumerate()
    {
        let day = number + 1;
        let text = format!(
            "Message-ID: <m{number}@example.org>\nFrom: {sender}\nSubject: {subject}\n\
             Date: Thu, {day:02} Jan 2026 10:00:00 +0000\n\nText of message {number}.\n"
        );
        home.write(&format!("Mail/cur/{number}:2,S"), text);
    }
    std::fs::create_dir(home.work("Mail/new")).unwrap();
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    home
}

pub fn find(home: &Home, query: &str) -> Vec<String> {
    let run = home.run(&["find", "--kind", "message", "--format", "json", query]);
    assert!(matches!(run.code, 0 | 1), "{query}: {}", run.masked_output());
    let id = |line: &str| -> String {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = object["message_id"].as_str().unwrap();
        id.trim_end_matches("@example.org").to_string()
    };
    let mut found: Vec<String> = run.stdout().lines().map(id).collect();
    found.sort();
    found
}

/// The item that holds the labels of a message has an ID, which no command takes, also after the
/// labels were removed.
#[test]
fn labels_are_not_reached_as_items() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "*", "--label", "+tax"]);
    let check = || {
        // Without the letters with which the IDs of the messages begin.
        let beginnings = ('a'..='z').chain('0'..='9').filter(|letter| !"28aem".contains(*letter));
        let beginnings = beginnings.map(String::from);
        for id in beginnings.chain(["larder:labels/m0@example.org".to_string()]) {
            // A digit alone is the number of an operation of the log.
            let is_operation = id.starts_with(|c: char| c.is_ascii_digit());
            let verbs = ["remove", "purge", "log"].into_iter();
            for verb in verbs.filter(|verb| !(is_operation && *verb == "log")) {
                let run = home.code(&[verb, &id], 1);
                assert!(!run.stderr().contains("was removed"), "{verb}: {}", run.stderr());
            }
        }
    };
    check();
    assert_snapshot!(home.run(&["labels"]).masked_output(), @"tax  5 messages");
    home.ok(&["edit", "--query", "*", "--label", "-tax"]);
    check();
    home.ok(&["undo"]);
    assert_snapshot!(home.run(&["labels"]).masked_output(), @"tax  5 messages");
}

#[test]
fn messages_are_labelled_found_and_shown() {
    let home = home_with_mail();
    assert_snapshot!(home.run(&["edit", "--query", "from:bank", "--label", "+tax", "+todo"]).masked_output(), @"2 messages changed. Undo: larder undo 2");
    assert_snapshot!(home.run(&["edit", "mid:m2@example.org", "m3@example.org", "--label", "-todo", "+Töne"]).masked_output(), @"2 messages changed. Undo: larder undo 3");
    assert_snapshot!(home.run(&["edit", "m0@example.org", "--label", "-todo"]).masked_output(), @"1 message changed. Undo: larder undo 4");
    assert_snapshot!(home.run(&["labels"]).masked_output(), @"
    Töne  2 messages
    tax   2 messages
    todo  1 message
    ");
    assert_snapshot!(home.run(&["labels", "--format", "json"]).masked_output(), @r#"
    {"label":"Töne","messages":2}
    {"label":"tax","messages":2}
    {"label":"todo","messages":1}
    "#);
    assert_snapshot!(home.run(&["find", "--kind", "message"]).masked_output(), @"
    203nzq1g  2026-01-05 10:00  spam@example.com  win a walrus
    m6xddyfn  2026-01-04 10:00  anna@example.org  lunch  (Töne)
    ekpz65v2  2026-01-03 10:00  anna@example.org  walrus audit  (Töne)
    8t6tfc87  2026-01-02 10:00  bank@example.org  statement of June  (tax todo)
    ae1472ad  2026-01-01 10:00  bank@example.org  statement of May  (tax)
    ");
    assert_snapshot!(home.run(&["show", "m1@example.org"]).masked_output(), @"
    statement of June
    from    bank@example.org
    date    Fri 2 Jan 2026, 10:00
    flags   seen
    labels  tax todo

    Text of message 1.
    ");
    assert_eq!(
        home.json(&["show", "m1@example.org"])[0]["labels"],
        serde_json::json!(["tax", "todo"])
    );
    let found = home.json(&["find", "--kind", "message", "label:todo"]);
    assert_eq!(found[0]["labels"], serde_json::json!(["tax", "todo"]));
    assert_eq!(find(&home, "tag:tax"), ["m0", "m1"]);
    assert_eq!(find(&home, "is:Töne"), ["m2", "m3"]);
    assert_eq!(find(&home, "label:tax -label:todo"), ["m0"]);
    assert_snapshot!(home.run(&["log", "-n", "3"]).masked_output(), @"
    4  [TIME]  edit labels  ~1                -todo on ae1472ad statement of May, 2026-01-01 10:00
    3  [TIME]  edit labels  +2                +Töne -todo on 2 messages
    2  [TIME]  edit labels  +2                +tax +todo on 2 messages
    ");
    // Undo takes the labels back in the index at once.
    home.ok(&["undo"]);
    assert_eq!(find(&home, "label:todo"), ["m0", "m1"]);
    home.ok(&["undo", "2"]);
    assert_eq!(find(&home, "label:"), ["m2", "m3"]);
    home.assert_store_is_sound();
}

/// A label does not wait for one who holds both locks of the index all the time; the next search
/// finds it.
#[test]
fn labels_do_not_wait_for_the_locks_of_the_index() {
    let home = home_with_mail();
    let take = |name: &str| {
        let path = home.data().join(name);
        let mut options = std::fs::File::options();
        let file = options.create(true).truncate(false).read(true).write(true).open(path).unwrap();
        file.lock().unwrap();
        file
    };
    let (work, lock) = (take("index.lock-work"), take("index.lock"));
    for label in ["+tax", "+todo"] {
        let run = home.run(&["edit", "m0@example.org", "--label", label]);
        assert!(run.masked_output().starts_with("1 message changed."), "{}", run.masked_output());
        assert!(!run.masked_output().contains("warning"), "{}", run.masked_output());
    }
    home.ok(&["undo"]);
    drop(lock);
    // As between two transactions: a search brings the labels itself.
    assert_eq!(find(&home, "label:tax"), ["m0"]);
    assert_eq!(find(&home, "label:todo"), [""; 0]);
    home.ok(&["edit", "m1@example.org", "--label", "+tax"]);
    drop(work);
    assert_eq!(find(&home, "label:tax"), ["m0", "m1"]);
    home.assert_store_is_sound();
}

/// A label does not wait for a synchronisation that runs; the next search finds it, also if that
/// one is killed before it brings the label into the index.
#[test]
fn labels_are_found_after_a_synchronisation_that_was_killed() {
    let home = home_with_mail();
    // The converter prints until nobody reads: it ends soon after the synchronisation.
    let begun = home.work("begun");
    home.configure(&format!(
        "[mail.converters]\n\"application/x-slow\" = [\"sh\", \"-c\", \": > '{}'; while echo x; do sleep 0.05; done\"]\n",
        begun.display()
    ));
    home.write(
        "Mail/cur/9:2,S",
        "Message-ID: <m9@example.org>\nFrom: anna@example.org\nSubject: slow\n\
         Content-Type: application/x-slow\n\nText\n",
    );
    let mut sync = home.spawn(&mut home.command(&["sync"]));
    let started = Instant::now();
    while !begun.exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "the converter was not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    for label in ["+tax", "+todo"] {
        let run = home.run(&["edit", "m0@example.org", "--label", label]);
        assert!(run.masked_output().starts_with("1 message changed."), "{}", run.masked_output());
        assert!(!run.masked_output().contains("warning"), "{}", run.masked_output());
    }
    home.ok(&["undo"]);
    assert!(sync.try_wait().unwrap().is_none(), "the synchronisation ended");
    sync.kill().unwrap();
    assert_eq!(sync.wait().unwrap().signal(), Some(9));
    assert_eq!(find(&home, "label:tax"), ["m0"]);
    assert_eq!(find(&home, "label:todo"), [""; 0]);
    home.configure("");
    home.ok(&["sync"]);
    assert_eq!(find(&home, "label:tax"), ["m0"]);
    assert_eq!(find(&home, "slow"), ["m9"]);
    home.assert_store_is_sound();
}

#[test]
fn labels_survive_the_deletion_of_the_index() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "walrus", "--label", "+sea"]);
    for file in std::fs::read_dir(home.data()).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("index.") {
            std::fs::remove_file(path).unwrap();
        }
    }
    home.ok(&["sync"]);
    assert_eq!(find(&home, "label:sea"), ["m2", "m4"]);
    // Lists, exports and lookups do not show the items that labels are.
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    assert!(!home.ok(&["collections"]).contains("larder:"));
    assert_eq!(home.ok(&["find", "--count"]).trim(), "1");
    home.code(&["export", "larder:labels"], 1);
    home.code(&["collections", "create", "larder:labels"], 2);
    home.code(&["show", "uid:m3@example.org"], 1);
    home.ok(&["check"]);
}

/// The labels are stored with contacts and calendars.
#[test]
fn labels_are_listed_without_an_index() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "from:bank", "--label", "+tax", "+a b"]);
    home.ok(&["edit", "m0@example.org", "--label", "-tax"]);
    let listed = home.ok(&["labels"]);
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        drop(std::fs::remove_file(home.data().join(name)));
    }
    assert_snapshot!(home.run(&["labels"]).masked_output(), @"
    a b  2 messages
    tax  1 message
    ! note: mail is not indexed; to find messages by their labels, run: larder sync
    ");
    assert_eq!(home.ok(&["labels"]), listed);
    assert_snapshot!(Home::new().run(&["labels"]).masked_output(), @"
    ! note: no mail is indexed
    ! note: no labels; to label a message: larder edit ID --label +NAME
    exit 1
    ");
}

#[test]
fn excluded_labels_hide_messages_unless_they_are_named() {
    let home = home_with_mail();
    home.configure("[mail]\nexclude-labels = [\"spam\", \"deleted\"]\n");
    home.ok(&["edit", "m4@example.org", "--label", "+spam"]);
    assert_eq!(find(&home, "walrus"), ["m2"]);
    assert_eq!(find(&home, "walrus label:spam"), ["m4"]);
    assert_eq!(find(&home, ""), ["m0", "m1", "m2", "m3"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "walrus"]).trim(), "1");
    assert!(!home.ok(&["find", "walrus"]).contains("win a walrus"));
    let watch = |query| home.ok(&["watch", "--changes", "0", "--kind", "message", query]);
    assert_eq!(watch("walrus").lines().count(), 1);
    assert!(watch("walrus label:spam").contains("win a walrus"));
    home.ok(&["edit", "--query", "walrus", "--label", "+sea"]);
    assert_eq!(find(&home, "label:sea"), ["m2"]);
}

#[test]
fn labels_are_renamed_and_removed() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "from:bank", "--label", "+tax", "+a b"]);
    assert_snapshot!(home.run(&["labels", "rename", "tax", "taxes"]).masked_output(), @"2 messages changed. Undo: larder undo 3");
    assert_eq!(find(&home, "label:taxes"), ["m0", "m1"]);
    assert_snapshot!(home.run(&["labels", "remove", "a b"]).masked_output(), @"2 messages changed. Undo: larder undo 4");
    assert_eq!(home.ok(&["labels"]).lines().count(), 1);
    assert_snapshot!(home.code(&["labels", "rename", "taxes", "unread"], 2).masked_output(), @"
    ! error: unread is a flag of the file of a message: larder changes no mail
    ! hint: set it in your mail program; larder sync then notes it
    exit 2
    ");
    assert_snapshot!(home.code(&["labels", "remove", "tax"], 1).masked_output(), @r#"
    ! error: no message has the label "tax"
    ! hint: `larder labels` lists them
    exit 1
    "#);
    home.ok(&["undo"]);
    assert_eq!(find(&home, "label:\"a b\""), ["m0", "m1"]);
}

/// These keep the former name, and would find and label nothing from then on.
#[test]
fn users_of_a_renamed_label_are_named() {
    let home = home_with_mail();
    home.configure("[mail]\nexclude-labels = [\"spam\"]\ninherited-labels = [\"tax\"]\n");
    home.ok(&["edit", "--query", "from:bank", "--label", "+tax", "+spam"]);
    home.ok(&["searches", "add", "bills", "subject:invoice", "--label", "+tax"]);
    home.ok(&["searches", "add", "taxed", "label:tax"]);
    home.ok(&["searches", "add", "other", "tax"]);
    let run = |args: &[&str]| home.run(args).masked_output();
    assert_snapshot!(run(&["labels", "rename", "tax", "taxes"]), @"
    2 messages changed. Undo: larder undo 6
    ! warning: saved searches that name tax: @bills, @taxed
    ! hint: to define one anew: larder searches add NAME QUERY
    ! warning: mail.inherited-labels in the configuration names tax
    ");
    assert_snapshot!(run(&["labels", "remove", "spam"]), @"
    2 messages changed. Undo: larder undo 7
    ! warning: mail.exclude-labels in the configuration names spam
    ");
    assert_snapshot!(run(&["labels", "remove", "taxes"]), @"2 messages changed. Undo: larder undo 8");
}

#[test]
fn labels_are_exported_and_imported() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "from:bank", "--label", "+tax/2026", "+a b", "+ok"]);
    assert_snapshot!(home.run(&["labels", "export"]).masked_output(), @"
    #notmuch-dump batch-tag:3 tags
    +a%20b +ok +tax%2f2026 -- id:m0@example.org
    +a%20b +ok +tax%2f2026 -- id:m1@example.org
    ! note: notmuch has no database here, so tags such as unread are made from the files
    ");
    assert_snapshot!(home.run(&["labels", "export", "--for", "mu"]).masked_output(), @r#"
    ;; version:0

    path:[HOME]/work/Mail/cur/0:2,S
    message-id:m0@example.org
    labels:ok

    path:[HOME]/work/Mail/cur/1:2,S
    message-id:m1@example.org
    labels:ok

    ! warning: 2 messages exported without labels that mu does not take: "a b", "tax/2026"
    "#);
    home.ok(&["labels", "export", "dump"]);
    let other = home_with_mail();
    std::fs::copy(home.work("dump"), other.work("dump")).unwrap();
    assert_snapshot!(other.run(&["labels", "import", "dump"]).masked_output(), @"labels of 2 messages changed. Undo: larder undo 2");
    assert_eq!(find(&other, "label:tax/2026 label:\"a b\" label:ok"), ["m0", "m1"]);
    let partial = "+a%ff -- id:m0@example.org\n+ok +%0a -- id:m1@example.org\n";
    let imported = other.run_with(&["labels", "import", "-", "--replace"], partial.as_bytes());
    assert_eq!(imported.code, 3);
    assert_snapshot!(imported.masked_output(), @r#"
    labels of 1 message changed, 1 unchanged. Undo: larder undo 3
    ! error: standard input: line 1: the tag "+a%ff" is not UTF-8
    ! error: standard input: line 2: the label "\n" has a control character
    ! warning: 1 message (id:m1@example.org) replaced without the tags that cannot be labels
    ! warning: 1 message (id:m0@example.org) not replaced: the file has no tag for them that can be a label
    exit 3
    "#);
    assert_eq!(find(&other, "label:tax/2026"), ["m0"]);
    other.ok(&["undo", "3"]);
    let dump = "#notmuch-dump batch-tag:3 tags\n+new +unread -- id:m0@example.org\n\
        +later -- id:far@example.org\n+x y -- id:m1@example.org\n\
        +x -- id:notmuch-sha1-0123456789abcdef0123456789abcdef01234567\n";
    let imported = other.run_with(&["labels", "import", "-", "--replace"], dump.as_bytes());
    assert_eq!(imported.code, 3);
    assert_snapshot!(imported.masked_output(), @r#"
    labels of 2 messages changed. Undo: larder undo 5
    ! error: standard input: line 4: "y" is no tag: tags begin with +
    ! note: 1 message (id:far@example.org) not in the index; their labels wait until larder sync finds them
    ! note: 1 message left out: without a Message-ID
    ! note: left out, because they are flags: unread
    exit 3
    "#);
    assert_eq!(find(&other, "label:ok"), ["m1"]);
    // The labels of a message that was not there come with it.
    other.write("Mail/new/9", "Message-ID: <far@example.org>\nSubject: far\n\ntext\n");
    other.ok(&["sync"]);
    assert_eq!(find(&other, "label:later"), ["far"]);
    let mu = ";; version:0 @ 2026-03-01-10:00:00\n\npath:/x\nmessage-id:m3@example.org\nlabels:a,b,flagged\n";
    other.write("mu.txt", mu);
    assert_snapshot!(other.run(&["labels", "import", "mu.txt"]).masked_output(), @"
    labels of 1 message changed. Undo: larder undo 6
    ! note: left out, because they are flags: flagged
    ");
    assert_eq!(find(&other, "label:a label:b"), ["m3"]);
}

/// notmuch takes flags from files that a line does not name.
#[test]
fn messages_whose_flags_are_unknown_are_not_exported() {
    let home = home_with_mail();
    home.write("Mail/new/6", "From: a@example.org\nSubject: statement\n\nno Message-ID\n");
    home.write(
        "Mail/cur/7:2,FRS",
        "Message-ID: <m0@example.org>\nSubject: statement\n\nanother text\n",
    );
    home.ok(&["sync"]);
    home.ok(&["edit", "--query", "statement", "--label", "+tax"]);
    assert_snapshot!(home.run(&["labels", "export"]).masked_output(), @"
    #notmuch-dump batch-tag:3 tags
    +flagged +replied +tax -- id:m0@example.org
    +tax -- id:m1@example.org
    ! note: notmuch has no database here, so tags such as unread are made from the files
    ! warning: 1 message left out: no Message-ID
    exit 3
    ");
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        drop(std::fs::remove_file(home.data().join(name)));
    }
    assert_snapshot!(home.run(&["labels", "export"]).masked_output(), @"
    #notmuch-dump batch-tag:3 tags
    ! note: notmuch has no database here, so tags such as unread are made from the files
    ! warning: 3 messages (id:2bfdba0f5ad06bea976292e0a2e9ebcf@larder, id:m0@example.org, ...) left out: not in the index; run: larder sync
    exit 3
    ");
}

/// A text that came beside another one keeps the ID that it got then; its Message-ID is the one in
/// its header.
#[test]
fn a_further_text_is_exported_under_its_message_id() {
    let home = home_with_mail();
    let text = |body: &str| format!("Message-ID: <p@example.org>\nSubject: copy\n\n{body}\n");
    let direct = home.write("Mail/cur/8:2,S", text("direct"));
    home.ok(&["sync"]);
    home.write("Mail/cur/9:2,S", text("of a list"));
    home.ok(&["sync"]);
    home.ok(&["edit", "--query", "copy list", "--label", "+tax"]);
    std::fs::remove_file(direct).unwrap();
    home.ok(&["sync"]);
    assert_snapshot!(home.run(&["labels", "export"]).masked_output(), @"
    #notmuch-dump batch-tag:3 tags
    +tax -- id:p@example.org
    ! note: notmuch has no database here, so tags such as unread are made from the files
    ");
}

/// A line of notmuch cannot say which of the texts has a label.
#[test]
fn an_export_names_message_ids_whose_texts_have_other_labels() {
    let home = home_with_mail();
    for (name, body) in [("8", "direct"), ("9", "of a list")] {
        let text = format!("Message-ID: <p@example.org>\nSubject: copy\n\n{body}\n");
        home.write(&format!("Mail/cur/{name}:2,S"), text);
        home.ok(&["sync"]);
    }
    let warning = "1 message (id:p@example.org) with several texts whose labels differ";
    let export = |target: &str| home.code(&["labels", "export", "--for", target], 0).stderr();
    home.ok(&["edit", "--query", "copy", "--label", "+tax"]);
    assert!(!export("notmuch").contains("labels differ"));
    home.ok(&["edit", "--query", "copy list", "--label", "+list"]);
    assert!(export("notmuch").contains(warning), "{}", export("notmuch"));
    assert!(!export("mu").contains("labels differ"));
}

/// A label of mu has no spaces.
#[test]
fn the_reasons_why_messages_are_not_exported_are_counted() {
    let home = home_with_mail();
    home.write("Mail/new/6", "From: a@example.org\nSubject: statement\n\nno Message-ID\n");
    home.ok(&["sync"]);
    home.ok(&["edit", "--query", "statement", "--label", "+a/b c", "+a$", "+`", "+x y"]);
    assert_snapshot!(home.run(&["labels", "export", "--for", "mu"]).masked_output(), @r#"
    ;; version:0

    ! warning: 1 message left out: no Message-ID
    ! warning: 2 messages left out: no label that mu takes (no spaces, / , $ ' " \ `), but "`", "a$", "a/b c", ...
    exit 3
    "#);
}

#[test]
fn wrong_labels_are_refused() {
    let home = home_with_mail();
    for (args, expected) in [
        (&["--label", "-unread"][..], "unread is a flag of the file"),
        (&["--label", "+x", "+flagged"], "flagged is a flag of the file"),
    ] {
        let run = home.code(&[&["edit", "mid:m0@example.org"], args].concat(), 2);
        assert!(run.stderr().contains(expected), "{}", run.stderr());
        // No message has a label of this name.
        assert!(!run.stderr().contains("labels remove"), "{}", run.stderr());
    }
    let run = home.code(&["edit", "--label", "+x", "--query", "walrus"], 2);
    assert!(run.stderr().contains("write --query before it"), "{}", run.stderr());
    assert_snapshot!(home.run(&["edit", "m0@example.org", "--label", "+a,-b"]).masked_output(), @r#"
    ! error: "+a,-b" has several labels
    ! hint: write them apart: --label +a -b
    exit 2
    "#);
    check_wrong_labels();
}

fn check_wrong_labels() {
    let home = home_with_mail();
    home.write("dump.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00");
    home.write("other.txt", "hello\n");
    for args in [
        &["edit", "m0@example.org", "--label", "tax"][..],
        &["edit", "m0@example.org", "--label", "+a", "--query", "x"],
        &["edit", "m0@example.org", "--summary", "x", "--label", "+a"],
        &["edit", "m0@example.org", "m1@example.org"],
        &["edit", "missing@example.org", "--label", "+a"],
        &["edit", "--query", "nothing-at-all", "--label", "+a"],
        &["edit", "--query", " ", "--label", "+a"],
        &["edit", "--query", "\"\"", "--label", "+a"],
        &["edit", "--query", "\"\" or lunch", "--label", "+a"],
        &["edit", "--query", "lunch or subject:(\"\")", "--label", "+a"],
        &["labels", "import", "dump.gz"],
        &["labels", "import", "other.txt"],
    ] {
        let run = home.run(args);
        assert!(matches!(run.code, 1..=3), "{args:?}: {}", run.masked_output());
    }
    assert_snapshot!(home.run(&["edit", "m0@example.org", "--label", "tax"]).masked_output(), @r#"
    ! error: "tax" has no sign: +tax adds the label, -tax removes it
    ! hint: --label takes all words that follow: write IDs and other options before it
    exit 2
    "#);
    assert_snapshot!(home.run(&["edit", "m0@example.org", "--label", "+a", "--query", "x"]).masked_output(), @r#"
    ! error: the label "-query" begins with -
    ! hint: --label takes all words that follow: write IDs and other options before it
    exit 2
    "#);
    assert_snapshot!(home.run(&["remove", "m0@example.org"]).masked_output(), @r#"
    ! error: "m0@example.org" is a message: larder does not change mail
    ! hint: to label it: larder edit ID --label +NAME
    ! hint: to delete it, use your mail program; larder sync then forgets it
    exit 2
    "#);
    assert_snapshot!(home.run(&["edit", "m0@example.org", "--summary", "x"]).masked_output(), @r#"
    ! error: "m0@example.org" is a message: larder does not change mail
    ! hint: to label it: larder edit ID --label +NAME
    ! hint: to delete it, use your mail program; larder sync then forgets it
    exit 2
    "#);
    assert_snapshot!(home.run(&["labels", "import", "dump.gz"]).masked_output(), @"
    ! error: dump.gz is compressed (gzip)
    ! hint: gunzip -c dump.gz | larder labels import -
    exit 3
    ");
    assert_eq!(find(&home, "label:"), [""; 0]);
}

#[test]
fn labels_of_notmuch_are_found_as_notmuch_finds_them() {
    if Command::new("notmuch").arg("--version").output().is_err() {
        left_out("labels_of_notmuch_are_found_as_notmuch_finds_them", "notmuch is not installed");
        return;
    }
    let home = home_with_mail();
    let root = home.work("Mail");
    let settings = format!(
        "[database]\npath={}\n[new]\ntags=inbox\n[user]\nname=A\nprimary_email=a@example.org\n",
        root.display()
    );
    home.write("notmuch-config", settings);
    let notmuch = |arguments: &[&str]| -> String {
        let mut command = home.program("notmuch");
        command.args(arguments).env("NOTMUCH_CONFIG", home.work("notmuch-config"));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    notmuch(&["new", "--quiet"]);
    for (changes, query) in [
        (&["+tax", "+Tax/2026"][..], "from:bank"),
        (&["+a b", "+töne", "-inbox"], "walrus"),
        (&["+tax"], "id:m3@example.org"),
        (&["+q\"r", "++plus", "+100%"], "id:m4@example.org"),
    ] {
        notmuch(&[&["tag"], changes, &["--", query]].concat());
    }
    home.write("dump", notmuch(&["dump"]));
    let sup = home.run_with(&["labels", "import", "-"], b"#notmuch-dump sup:3 tags\nm@x (a b)\n");
    assert_snapshot!(sup.masked_output(), @"
    ! error: - is a dump of notmuch in the format sup, which is not read
    ! hint: notmuch dump --format=batch-tag writes the format that is read
    exit 3
    ");
    home.ok(&["labels", "import", "dump"]);
    for query in [
        "tag:inbox",
        "tag:tax",
        "tag:Tax/2026",
        "tag:tax and not tag:inbox",
        "tag:\"a b\"",
        "tag:töne or tag:tax",
        "is:tax",
        "tag:\"100%\"",
        "tag:+plus",
        "tag:/^ta/",
        "not tag:tax",
        "tag:nothing",
    ] {
        let expected = notmuch(&["search", "--output=messages", "--exclude=false", query]);
        let id = |line: &str| line.replace("id:", "").replace("@example.org", "");
        let mut expected: Vec<String> = expected.lines().map(id).collect();
        expected.sort();
        assert_eq!(find(&home, query), expected, "{query}");
    }
    // The tags come back as they were, with those of flags.
    let exported = home.ok(&["labels", "export"]);
    home.write("export", &exported);
    notmuch(&["tag", "-tax", "-inbox", "--", "*"]);
    let before = notmuch(&["dump", "--format=batch-tag", "--include=tags"]);
    notmuch(&["restore", "--accumulate", "--input", home.work("export").to_str().unwrap()]);
    let after = notmuch(&["dump", "--include=tags"]);
    assert_ne!(after, before);
    let sorted = |text: &str| -> Vec<String> {
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.starts_with('+')).map(str::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&after), sorted(&exported));
}

#[test]
fn changes_of_labels_are_logged_by_message() {
    let home = home_with_mail();
    assert_eq!(home.run(&["log", "m0@example.org"]).code, 1);
    let path = format!("path:{}/**", home.work("Mail").display());
    home.ok(&["edit", "--query", &format!("{path} and id:m0@example.org"), "--label", "+tax"]);
    home.ok(&["edit", "mid:m0@example.org", "--label", "+todo", "-tax"]);
    let log = |id: &str| crate::test_home::mask(&home.ok(&["log", id]), home.path());
    let text = log("m0@example.org");
    let changes: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(changes, ["  + tax", "  - tax", "  + todo"], "{text}");
    // The last label goes, and another one comes.
    home.ok(&["edit", "mid:m0@example.org", "--label", "-todo"]);
    home.ok(&["edit", "mid:m0@example.org", "--label", "+keep"]);
    let text = log("m0@example.org");
    let changes: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(changes[3..], ["  - todo", "  + keep"], "{text}");
    assert_eq!(log("mid:m0@example.org"), text);
    assert_eq!(log("<m0@example.org>"), text);
    let id = home.json(&["find", "--kind", "message", "id:m0@example.org"]);
    assert_eq!(log(id[0]["id"].as_str().unwrap()), text);
    let missing = home.run(&["log", "nobody@example.org"]);
    assert_eq!(missing.code, 1, "{}", missing.masked_output());
}

/// A message is named, and not the item of its labels.
#[test]
fn conflicts_of_labels_name_the_message() {
    let home = home_with_mail();
    home.ok(&["edit", "m0@example.org", "--label", "+tax"]);
    home.ok(&["edit", "m0@example.org", "--label", "+todo"]);
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"
    ae1472ad  statement of May, 2026-01-01 10:00
    - after operation 2  + current
      + todo
    ! error: operation 2 was not undone: 1 item changed after it
    ! hint: undo the later operations first (`larder log` lists them), or edit the items
    exit 2
    ");
    assert_snapshot!(home.run(&["log", "2"]).masked_output(), @"    2  [TIME]  edit labels  +1                +tax on ae1472ad statement of May, 2026-01-01 10:00");
    std::fs::remove_file(home.data().join("index.db")).unwrap();
    assert_snapshot!(home.run(&["undo", "2"]).masked_output(), @"
    cmrq9d1n  labels of m0@example.org
    - after operation 2  + current
      + todo
    ! error: operation 2 was not undone: 1 item changed after it
    ! hint: undo the later operations first (`larder log` lists them), or edit the items
    exit 2
    ");
}

/// Each text of a Message-ID has labels, and a history, of its own.
#[test]
fn labels_of_several_texts_are_logged_one_after_the_other() {
    let home = Home::new();
    for (number, label) in [(1, "+tax"), (2, "+todo")] {
        let text = format!("Message-ID: <m@example.org>\nSubject: text {number}\n\nText.\n");
        home.write(&format!("Mail/cur/{number}:2,S"), text);
        if number == 1 {
            home.ok(&["sources", "add", "Mail"]);
        }
        home.ok(&["sync"]);
        let path = home.work(&format!("Mail/cur/{number}:2,S"));
        home.ok(&["edit", "--query", &format!("path:{}", path.display()), "--label", label]);
    }
    let text = home.ok(&["log", "m@example.org"]);
    let lines = text.lines().filter(|line| line.starts_with("  ") || line.starts_with("labels"));
    let lines: Vec<&str> = lines.collect();
    let is_title = |at: usize| lines[at].starts_with("labels of ");
    assert_eq!(lines.len(), 4, "{text}");
    assert!(is_title(0) && is_title(2) && lines[0] != lines[2], "{text}");
    let mut changes = [lines[1], lines[3]];
    changes.sort_unstable();
    assert_eq!(changes, ["  + tax", "  + todo"], "{text}");
}
