//! Lists of messages and threads that `larder find` prints.

use crate::test_home::Home;
use insta::assert_snapshot;
use std::os::unix::ffi::OsStrExt as _;

/// The files of the maildir: folder and name, header lines, and a body.
const FILES: [(&str, &str, &str); 5] = [
    (
        "INBOX/cur/1.host:2,S",
        "Message-ID: <a1>\nFrom: Anna Berg <anna@x.example>\nTo: Bruno <b@x.example>\n\
         Reply-To: <desk@x.example>\nSubject: Walrus audit\nDate: 01 Jan 2020 10:00:00 +0000\n\
         X-Label: todo tax\nX-Priority: 1\n",
        "The walrus is due.",
    ),
    (
        "INBOX/new/2.host",
        "Message-ID: <a2>\nFrom: Bruno <b@x.example>\nSubject: Re: Walrus audit\n\
         References: <a1>\nDate: 02 Jan 2020 10:00:00 +0000\n",
        "Yes.",
    ),
    (
        "Lists/sea/cur/3.host:2,FS",
        "Message-ID: <b1>\nFrom: dora@x.example\nBcc: Anna <anna@x.example>\nSubject: Seal\tnews\n\
         List-Id: Sea <sea.x.example>\nDate: 03 Jan 2020 10:00:00 +0000\n",
        "A walrus was seen.",
    ),
    (
        "INBOX/cur/4.host:2,S",
        "Message-ID: <c1>\nFrom: Chloe <c@x.example>\nDate: 04 Jan 2020 10:00:00 +0000\n",
        "Nothing.",
    ),
    (
        "Archive/cur/5.host:2,S",
        "Message-ID: <c1>\nFrom: Chloe <c@x.example>\nDate: 04 Jan 2020 10:00:00 +0000\n",
        "Nothing.",
    ),
];

/// Returns a home whose maildir is indexed.
pub(crate) fn home_with_mail() -> Home {
    let home = Home::new();
    for (name, header, body) in FILES {
        let path = home.work("mail").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{header}\n{body}\n")).unwrap();
    }
    home.ok(&["sources", "add", "mail", "--into", "post"]);
    home.ok(&["sync"]);
    home
}

/// Runs `larder find --kind message` and returns its lines without the ID in front of each.
fn lines(home: &Home, args: &[&str]) -> Vec<String> {
    let text = home.ok(&[&["find", "--kind", "message"], args].concat());
    let text = crate::test_home::mask(&text, home.path());
    let rest = |line: &str| {
        let end = line.find([' ', '\t']).unwrap_or_default();
        line[end..].trim_start_matches(' ').to_string()
    };
    text.lines().map(rest).collect()
}

#[test]
fn messages_are_sorted_and_their_fields_printed() {
    let home = home_with_mail();
    let fields = "message_id,subject,reply_to,bcc,keywords,priority,folders,list";
    assert_eq!(
        lines(&home, &["--sort", "date", "--fields", fields]),
        [
            "\ta1\tWalrus audit\tdesk@x.example\t\ttodo, tax\thigh\t/INBOX\t",
            "\ta2\tRe: Walrus audit\t\t\t\tnormal\t/INBOX\t",
            "\tb1\tSeal news\t\tAnna <anna@x.example>\t\tnormal\t/Lists/sea\tsea.x.example",
            "\tc1\t\t\t\t\tnormal\t/Archive, /INBOX\t",
        ]
    );
    assert_eq!(
        lines(&home, &["--sort", "-from", "--fields", "from,date,flags", "-n", "2"]),
        [
            "\tdora@x.example\t2020-01-03T10:00:00Z\tflagged, seen, list",
            "\tChloe <c@x.example>\t2020-01-04T10:00:00Z\tseen",
        ]
    );
    let run = home.code(&["find", "--kind", "message", "--sort", "colour"], 2);
    assert!(run.stderr().contains("one of date, subject, from"), "{}", run.stderr());
    let run = home.code(&["find", "--kind", "message", "--fields", "colour"], 2);
    assert!(run.stderr().contains("one of id, kind, collection"), "{}", run.stderr());
    let run = home.code(&["find", "--threads", "--sort", "from"], 2);
    assert!(run.stderr().contains("threads are sorted by date only"), "{}", run.stderr());
}

#[test]
fn json_has_everything_that_is_stored() {
    let home = home_with_mail();
    let find = |args: &[&str]| home.json(&[&["find", "--kind", "message"], args].concat());
    let found = find(&["msgid:a1"]);
    let object = &found[0];
    assert_eq!(object["collection"], "post");
    assert_eq!(object["reply_to"][0]["address"], "desk@x.example");
    assert_eq!(object["keywords"], serde_json::json!(["todo", "tax"]));
    assert_eq!(object["priority"], "high");
    assert_eq!(object["folders"], serde_json::json!(["/INBOX"]));
    let file = home.work("mail/INBOX/cur/1.host:2,S").canonicalize().unwrap();
    assert_eq!(object["files"], serde_json::json!([file.to_str().unwrap()]));
    assert_eq!(find(&["msgid:c1"])[0]["files"].as_array().unwrap().len(), 2);
    let id = object["thread_id"].as_str().unwrap();
    assert_eq!(find(&[&format!("thread:{id}")]).len(), 2);
    let selected = find(&["msgid:a1", "--fields", "subject,maildir"]);
    let names: Vec<&String> = selected[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "kind", "is_match", "subject", "folders"]);
}

#[test]
fn threads_are_counted_summed_up_and_kept_whole() {
    let home = home_with_mail();
    assert_eq!(
        lines(&home, &["walrus", "--threads", "--related"]),
        [
            "[TIME]  dora@x.example  F  Seal news".replace("[TIME]", "2020-01-03 10:00"),
            "2020-01-01 10:00  Anna Berg          Walrus audit".into(),
            "2020-01-02 10:00  Bruno           u  \u{2514} Re: Walrus audit".into(),
        ]
    );
    assert_eq!(
        lines(&home, &["body:walrus", "--summary"]),
        [
            "2020-01-03 10:00  [1/1]  dora@x.example     F  Seal news",
            "2020-01-01 10:00  [1/2]  Anna Berg | Bruno     Walrus audit",
        ]
    );
    assert_eq!(home.ok(&["find", "--threads", "--count"]), "3\n");
    assert_eq!(home.json(&["find", "--threads", "-n", "1", "--offset", "2"]).len(), 2);
    let summaries = home.json(&["find", "--summary", "from:anna"]);
    assert_eq!(summaries[0]["matched"], 1);
    assert_eq!(summaries[0]["total"], 2);
    assert_eq!(summaries[0]["authors"], serde_json::json!(["Anna Berg"]));
    assert_eq!(summaries[0]["other_message_ids"], serde_json::json!(["a2"]));
    assert_eq!(
        lines(&home, &["subject:walrus", "--threads", "--fields", "msgid,subject"]),
        ["\ta1\tWalrus audit", "\ta2\tRe: Walrus audit"]
    );
    let threads = home.json(&["find", "--threads", "subject:walrus", "--fields", "subject"]);
    assert_eq!(threads[1]["thread"]["level"], 1);
    home.code(&["find", "--summary", "--fields", "subject"], 2);
    let threads = home.json(&["find", "--threads", "subject:walrus"]);
    assert_eq!(threads[1]["thread"]["path"], serde_json::json!([0, 0]));
}

#[test]
fn messages_and_threads_are_shown_as_html_and_json() {
    let home = home_with_mail();
    let html = home.ok(&["show", "a1", "--thread", "--format", "html"]);
    assert_eq!(html.matches("<article>").count(), 2, "{html}");
    assert!(html.contains("<h1>Walrus audit</h1>") && html.contains("The walrus is due."));
    assert!(html.contains("Content-Security-Policy"));
    let run = home.code(&["show", "nothing", "--format", "html"], 1);
    assert!(run.stderr().contains("no message is named"), "{}", run.stderr());
    let text = home.ok(&["show", "a2", "--thread"]);
    assert!(text.starts_with("── 1 of 2: ") && text.contains("\n\n── 2 of 2: "), "{text}");
    let thread = home.json(&["show", "a2", "--thread"]);
    assert_eq!(thread[1]["message_id"], "a2");
    assert_eq!(thread[1]["thread"]["level"], 1);
    assert_eq!(thread[0]["thread_id"], thread[1]["thread_id"]);
    assert!(home.json(&["show", "a2"])[0].get("thread").is_none());
    home.code(&["find", "--kind", "message", "--format", "html"], 2);
}

#[test]
fn options_of_lists_of_messages_are_refused_for_other_kinds() {
    let home = home_with_mail();
    let run = home.code(&["find", "--kind", "event", "--threads", "walrus"], 2);
    let message = "error: --threads is for messages and commits\nhint: use --kind message";
    assert!(run.stderr().contains(message), "{}", run.stderr());
}

#[test]
fn a_message_id_is_taken_as_headers_and_queries_have_it() {
    let home = home_with_mail();
    let expected = home.ok(&["show", "a1"]);
    for id in ["mid:a1", "id:a1", "msgid:a1", "<a1>", "id:<a1>"] {
        assert_eq!(home.ok(&["show", id]), expected, "{id}");
    }
}

#[test]
fn paths_may_end_with_zero_bytes() {
    let home = home_with_mail();
    let paths = home.ok(&["find", "msgid:c1", "--files", "-0"]);
    let names: Vec<&str> =
        paths.split_terminator('\0').map(|path| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["5.host:2,S", "4.host:2,S"]);
    assert!(!paths.contains('\n'));
}

#[test]
fn related_messages_are_listed_and_not_counted() {
    let home = home_with_mail();
    let error = home.code(&["find", "subject:audit", "--related", "--count"], 2).stderr();
    assert!(error.contains("--related") && error.contains("--count"), "{error}");
}

#[test]
fn snippets_show_the_text_around_the_first_hit() {
    let home = home_with_mail();
    assert_eq!(
        lines(&home, &["body:walrus", "--snippets"]),
        [
            "2020-01-03 10:00  dora@x.example  F  Seal news",
            "A walrus was seen.",
            "2020-01-01 10:00  Anna Berg          Walrus audit",
            "The walrus is due.",
        ]
    );
    let found = home.json(&["find", "--snippets", "body:walrus"]);
    assert_eq!(found[0]["snippet"]["text"], "A walrus was seen.");
    assert_eq!(found[0]["snippet"]["hits"], serde_json::json!([[2, 8]]));
    let coloured =
        home.ok(&["--color", "always", "find", "--snippets", "body:walrus", "--threads"]);
    assert!(coloured.contains("\x1b[1m\x1b[33mwalrus\x1b[0m"), "{coloured:?}");
    std::fs::remove_file(home.work("mail/Lists/sea/cur/3.host:2,FS")).unwrap();
    let run = home.code(&["find", "--snippets", "body:walrus"], 0);
    assert!(run.stderr().contains("3.host"), "{}", run.stderr());
    assert!(run.stdout().contains("The walrus is due."));
}

#[test]
fn links_stand_in_a_maildir_of_their_own() {
    let home = home_with_mail();
    let names = |directory: &str| {
        let entries = std::fs::read_dir(home.work("links").join(directory)).unwrap();
        let mut targets: Vec<String> = entries
            .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap())
            .map(|target| target.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        targets.sort();
        targets.join(" ")
    };
    let run = home.code(&["find", "walrus", "--links", "links"], 0);
    assert!(run.stderr().contains("3 links made, 0 kept, 0 removed"), "{}", run.stderr());
    assert_eq!((names("cur"), names("new")), ("1.host:2,S 3.host:2,FS".into(), "2.host".into()));
    let run = home.json(&["find", "msgid:b1", "--links", "links"]);
    assert_eq!(run[0]["kept"], 1);
    home.ok(&["find", "msgid:b1", "--links", "links", "--clear"]);
    assert_eq!((names("cur"), names("new")), ("3.host:2,FS".into(), String::new()));
    // The links are no second copy of the messages for a source.
    let run = home.code(&["sources", "add", "links", "--into", "links"], 2);
    assert!(run.stderr().contains("has no mail"), "{}", run.stderr());
    // Links of others and files of a mail program stay.
    home.write("links/cur/note", "");
    std::os::unix::fs::symlink("/nowhere", home.work("links/new/own")).unwrap();
    let run = home.code(&["find", "walrus", "--links", "links", "--clear"], 0);
    assert!(run.stderr().contains("3 links made, 0 kept, 1 removed"), "{}", run.stderr());
    assert!(home.work("links/cur/note").exists());
    assert!(home.work("links/new/own").is_symlink());
}

/// A mail reader that marks a message as read renames its file.
#[test]
fn files_that_were_renamed_since_the_synchronisation_are_found() {
    let home = home_with_mail();
    for (known, present) in [
        ("INBOX/cur/1.host:2,S", "INBOX/cur/1.host:2,RS"),
        ("INBOX/new/2.host", "INBOX/cur/2.host:2,FS"),
    ] {
        std::fs::rename(home.work("mail").join(known), home.work("mail").join(present)).unwrap();
    }
    let run = |args: &[&str]| {
        let run = home.code(args, 0);
        assert_eq!(run.stderr(), "", "{args:?}");
        run.stdout()
    };
    let page = run(&["show", "a2"]);
    assert!(page.contains("\nflags  flagged seen\n"), "{page}");
    assert!(run(&["show", "--thread", "a2"]).contains("The walrus is due."));
    assert!(run(&["find", "msgid:a1", "--format", "raw"]).contains("Message-ID: <a1>"));
    assert!(run(&["find", "due", "--snippets"]).contains("The walrus is due."));
    assert!(run(&["save", "a2", "--all", "--to", "saved"]).starts_with("Saved saved/part-1.txt"));
    let paths = run(&["find", "--kind", "message", "msgid:a1", "or", "msgid:a2", "--files"]);
    assert!(paths.lines().all(|path| std::path::Path::new(path).exists()), "{paths}");
    assert_eq!(paths.lines().count(), 2);
    home.ok(&["find", "walrus", "--links", "links"]);
    let links = std::fs::read_dir(home.work("links/cur")).unwrap();
    let broken = links.filter(|link| !link.as_ref().unwrap().path().exists());
    assert_eq!(broken.count(), 0);
    let purged = home.code(&["purge", "--yes", "mid:a2"], 3);
    assert!(purged.stdout().contains("INBOX/cur/2.host:2,FS"), "{}", purged.stdout());
}

#[test]
fn links_are_kept_out_of_mail_and_of_folders_of_others() {
    let home = home_with_mail();
    // A maildir of links that others made, as that of git-annex.
    home.write("annex/cur/.keep", "");
    std::os::unix::fs::symlink("/nowhere", home.work("annex/cur/1")).unwrap();
    // A marker of the user says nothing about who made the files.
    home.write("hidden/.noindex", "");
    home.write("hidden/1", "");
    std::os::unix::fs::symlink("mail", home.work("alias")).unwrap();
    let before = tree(&home);
    for (folder, reason) in [
        ("mail", "has to be apart"),
        ("mail/INBOX", "has to be apart"),
        ("mail/new-folder/links", "has to be apart"),
        ("alias/links", "has to be apart"),
        (".", "has to be apart"),
        ("..", "has to be apart"),
        ("annex", "is neither empty nor a folder of links"),
        ("hidden", "is neither empty nor a folder of links"),
    ] {
        for clear in [&[][..], &["--clear"]] {
            let args = [&["find", "walrus", "--links", folder], clear].concat();
            let run = home.run(&args);
            assert!(run.stderr().contains(reason), "{folder}: {}", run.stderr());
            assert_eq!(run.code, 2, "{folder}: {}", run.stderr());
        }
    }
    assert_eq!(tree(&home), before);
    // A folder whose marker was not finished is continued.
    home.write("killed/.noindex", "");
    home.ok(&["find", "walrus", "--links", "killed"]);
}

/// Returns the paths of all files below the working directory.
fn tree(home: &Home) -> Vec<std::path::PathBuf> {
    let mut found = vec![home.work("")];
    let mut at = 0;
    while at < found.len() {
        let path = found[at].clone();
        at += 1;
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(path).unwrap();
            found.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    found.sort();
    found
}

#[test]
fn one_question_is_about_all_kinds() {
    let home = home_with_mail();
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    home.ok(&["add", "Lunch with Anna on 2026-03-06 12:30"]);
    let text = home.ok(&["find", "anna"]);
    let text = crate::test_home::mask(&text, home.path());
    let titles: Vec<&str> = text.lines().filter(|line| !line.contains("  ")).collect();
    assert_eq!(titles, ["Events", "", "Contacts", "", "Messages"], "{text}");
    assert!(text.lines().last().unwrap().ends_with("Walrus audit"), "{text}");
    let kinds = home.json(&["find", "anna"]);
    let kinds: Vec<&str> = kinds.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["event", "contact", "message", "message"]);
    assert_eq!(home.ok(&["find", "anna", "--count"]), "4\n");
    assert_eq!(home.json(&["find", "anna", "-n", "1", "--sort", "date"])[1]["message_id"], "a1");
    // A single group needs no heading.
    assert!(!home.ok(&["find", "walrus"]).contains("Messages"));
    assert!(!home.ok(&["find", "lunch"]).contains("Events"));
    home.code(&["find", "anna", "--offset", "1"], 2);
}

/// Nothing in `index.db` is lost with it.
#[test]
fn a_damaged_index_is_made_again() {
    let home = home_with_mail();
    home.ok(&["edit", "--query", "walrus", "--label", "+tax"]);
    let before = lines(&home, &["walrus"]);
    for damage in [&b"garbage"[..], &[0; 40_000]] {
        let path = home.data().join("index.db");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[..damage.len().min(40_000)].copy_from_slice(damage);
        std::fs::write(&path, bytes).unwrap();
        for name in ["index.db-wal", "index.db-shm"] {
            drop(std::fs::remove_file(home.data().join(name)));
        }
        for args in [&["find", "walrus"][..], &["sync"], &["labels"]] {
            let run = home.code(args, 4);
            assert!(run.stderr().contains("larder check --rebuild"), "{args:?} {}", run.stderr());
            assert!(!run.stderr().contains("restore"), "{args:?} {}", run.stderr());
        }
        let check = home.code(&["check"], 4);
        assert!(check.stderr().contains("larder check --rebuild"), "{}", check.stderr());
        let rebuilt = home.code(&["check", "--rebuild"], 0);
        assert!(rebuilt.stderr().contains("index.db was made anew"), "{}", rebuilt.stderr());
        assert_eq!(lines(&home, &["walrus"]), before);
        assert_eq!(lines(&home, &["label:tax"]).len(), before.len());
        assert_eq!(home.code(&["check"], 0).stderr(), "");
    }
}

/// A process that creates `index.db` may be killed before the file has tables.
#[test]
fn an_index_without_tables_is_made_by_the_next_synchronisation() {
    let home = home_with_mail();
    let before = lines(&home, &["walrus"]);
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        drop(std::fs::remove_file(home.data().join(name)));
    }
    std::fs::write(home.data().join("index.db"), "").unwrap();
    let check = home.code(&["check"], 0);
    assert_eq!(
        check.stderr(),
        "note: the creation of index.db was interrupted; run: larder sync\n"
    );
    let find = home.code(&["find", "--kind", "message", "walrus"], 4);
    assert!(find.stderr().starts_with("error: no mail is indexed\n"), "{}", find.stderr());
    home.code(&["find", "walrus"], 1);
    assert!(home.ok(&["sources"]).contains("post"));
    home.ok(&["sync"]);
    assert_eq!(lines(&home, &["walrus"]), before);
    assert_eq!(home.code(&["check"], 0).stderr(), "");
}

/// The warning about attachments that cannot be converted, and words of those that can.
#[test]
fn converters_are_configured() {
    let home = Home::new();
    home.configure(
        "[mail.converters]\n\"application/pdf\" = [\"tr\", \"A-Z\", \"a-z\"]\n\
         \"application/x-a\" = [\"no-such-program\"]\n",
    );
    let part = |media_type| {
        format!(
            "--b\nContent-Type: {media_type}; name=x\nContent-Disposition: attachment\n\nSEAL\n"
        )
    };
    let text = format!(
        "From: a@x.example\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{}{}--b--\n",
        part("application/pdf"),
        part("application/x-a"),
    );
    std::fs::create_dir_all(home.work("mail/cur")).unwrap();
    std::fs::write(home.work("mail/cur/1:2,S"), text).unwrap();
    home.ok(&["sources", "add", "mail"]);
    assert_snapshot!(home.code(&["sync"], 0).masked_output(), @r"
    mail: 1 file added (1 folder of 1 listed)
    ! warning: converter no-such-program: the program was not found (1 attachment, such as in [HOME]/work/mail/cur/1:2,S)
    ");
    let found = home.ok(&["find", "--kind", "message", "--count", "seal"]);
    assert_eq!(found.trim(), "1");
    let shown = home.ok(&["show", "--converted", "mail/cur/1:2,S"]);
    assert_snapshot!(shown.split_once("(no text)").unwrap().1.trim(), @r"
    2 x, text by tr
    seal

    3 x, text by no-such-program
    (the program was not found)
    ");
    assert!(!home.ok(&["show", "mail/cur/1:2,S"]).contains("seal"));
    let object = home.ok(&["show", "--format", "json", "mail/cur/1:2,S"]);
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!(object["parts"][1]["converted_text"], "seal");
    assert_eq!(object["parts"][2]["conversion_failure"], "the program was not found");
    // A message is shown without its index.
    let index = home.data().join("index.db");
    let intact = std::fs::read(&index).unwrap();
    std::fs::write(&index, [&[7; 100], &intact[100..]].concat()).unwrap();
    let shown = home.code(&["show", "--format", "json", "mail/cur/1:2,S"], 0);
    assert!(shown.stderr().contains("without the texts of attachments"), "{}", shown.stderr());
    let object: serde_json::Value = serde_json::from_str(&shown.stdout()).unwrap();
    assert_eq!(object["parts"][1]["file_name"], "x");
    std::fs::write(&index, intact).unwrap();
    home.configure("[mail.converters]\npdf = [\"pdftotext\"]\n");
    assert_snapshot!(home.code(&["sync"], 2).masked_output(), @r#"
    ! error: [HOME]/home/.config/larder/config.toml: line 2: "pdf" is no media type: write one as "application/pdf" or "image/*"
    ! hint: see docs/configuration.md
    exit 2
    "#);
}

/// Messages of an mbox file are listed, shown and saved; they have no files of their own.
#[test]
fn mbox_files_are_sources() {
    let home = Home::new();
    let message = |id: &str, body: &str| {
        format!(
            "From a Wed Jan  1 10:00:00 2020\nMessage-ID: <{id}>\nFrom: Anna <a@x.example>\n\
             Subject: Old {id}\nDate: 01 Jan 2020 10:00:00 +0000\nStatus: RO\n\n{body}\n\n"
        )
    };
    home.write("old.mbox", message("m1", "walrus") + &message("m2", ">From the sea"));
    home.write("old.mbox.gz", b"\x1f\x8b\x08\0");
    let added = home.ok(&["sources", "add", "old.mbox", "--into", "old"]);
    assert!(added.contains("(1 mbox file)"), "{added}");
    home.ok(&["sync"]);
    assert_eq!(home.json(&["sources"])[0]["type"], "files");
    let files = home.ok(&["find", "--kind", "message", "--files", "--sort", "subject", "old"]);
    let files: Vec<&str> = files.lines().collect();
    assert_eq!(files.len(), 2);
    assert!(files[0].contains("/old.mbox/1577872800.32+"), "{files:?}");
    // Folders of mbox files are named as queries take them.
    home.write("old/sub/c.mbox", message("c1", "seal"));
    home.write("old/Inbox.sbd/Plan", message("w1", "seal"));
    home.ok(&["sources", "add", "old", "--into", "files"]);
    home.ok(&["sync"]);
    for (id, folder) in [("c1", "/sub/c"), ("w1", "/Inbox/Plan")] {
        let listed = &home.json(&["find", &format!("maildir:{folder}")])[0];
        assert_eq!(
            (listed["message_id"].as_str(), &listed["folders"][0]),
            (Some(id), &folder.into())
        );
    }
    home.ok(&["sources", "remove", "files"]);
    assert!(home.ok(&["show", files[0]]).contains("walrus"));
    assert!(home.ok(&["show", "m2"]).ends_with("\nFrom the sea\n"));
    let raw = home.ok(&["show", "m2", "--raw"]);
    assert!(raw.contains("Status: RO\n") && raw.contains("\nFrom the sea\n"), "{raw}");
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "flag:seen"]).trim(), "2");
    let run = home.code(&["find", "--kind", "message", "old", "--links", "links"], 0);
    assert!(run.stderr().contains("2 messages in mbox files"), "{}", run.stderr());
    let run = home.code(&["sources", "add", "old.mbox.gz", "--into", "z"], 2);
    assert!(run.stderr().contains("compressed with gzip"), "{}", run.stderr());
    // Another message at this place is not taken for it.
    home.write("old.mbox", message("m3", "walrus and more"));
    let run = home.run(&["show", "m1"]);
    assert!(run.code != 0 && run.stderr().contains("larder sync"), "{}", run.stderr());
}

#[test]
fn the_plan_of_a_search_for_messages_is_explained() {
    let home = home_with_mail();
    let explain = |args: &[&str]| {
        home.run(&[&["find", "--kind", "message", "--explain"], args].concat()).masked_output()
    };
    assert_snapshot!(explain(&["walrus -flag:unread (from:anna or *ora) date:2020"]), @r#"
    query     (and (any "walrus") (not (flag unread)) (or (from "anna") (any (suffix "ora"))) (date 2020-01-01T00:00:00Z 2020-12-31T23:59:59Z))
    plan      all of these: 2 messages
                (date 2020-01-01T00:00:00Z 2020-12-31T23:59:59Z): column of dates, 4 messages
                (any "walrus"): posting list, 3 messages
                any of these: 2 messages
                  (from "anna"): posting list, 1 message
                  (any (suffix "ora")): posting lists of the words in the dictionary that match, 1 message
                all but these: 3 messages
                  (flag unread): column of flags, 1 message
    order     blocks by date, until the limit is reached
    read      1 of 1 block of rows, by their dates
    matched   2 messages
    "#);
    assert_snapshot!(explain(&["label:none", "--sort", "subject"]), @r#"
    query     (label "none")
    plan      (label "none"): no message, 0 messages
    order     the row of each match, sorted
    read      0 of 1 block of rows, by their dates
    matched   0 messages
    exit 1
    "#);
    home.ok(&["edit", "--query", "from:anna", "--label", "+sea"]);
    let plan = |query: &str| {
        let run = home.run(&["find", "--kind", "message", "--explain", query, "--format", "json"]);
        let found: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        found["plan"][0].as_str().unwrap().split_once("): ").unwrap().1.to_string()
    };
    let thread = home.json(&["find", "--kind", "message", "-n", "1"])[0]["thread_id"].clone();
    for (query, expected) in [
        ("wal*", "posting lists of a range of terms, 3 messages"),
        ("from:*nna", "posting lists of the terms of the field that match, 1 message"),
        ("*alru*", "posting lists of the words in the dictionary that match, 3 messages"),
        ("header:x-none:5", "posting lists of the values of the header that match, 0 messages"),
        ("label:sea", "bitmap of a label, 1 message"),
        ("flag:unread", "column of flags, 1 message"),
        ("date:2020", "column of dates, 4 messages"),
        ("msgid:/nothing.*/", "all Message-IDs, 0 messages"),
        (
            "subject:/nothing here/",
            "posting lists of the terms of the field that match, or all subjects, 0 messages",
        ),
        (&format!("thread:{}", thread.as_str().unwrap()), "table of threads, 1 message"),
    ] {
        assert_eq!(plan(query), expected, "{query}");
    }
    let json =
        &home.json(&["find", "--kind", "message", "--explain", "walrus", "--format", "json"])[0];
    assert_eq!(json["matched"], 3, "{json}");
}

/// Each line has an ID, a date and the beginning of a subject.
#[test]
fn lists_fit_narrow_terminals() {
    let home = home_with_mail();
    let list = |columns: &str, args: &[&str]| {
        let args = [&["find", "--kind", "message", "walrus"], args].concat();
        let output = home.command(&args).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let width = columns.parse::<usize>().unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        // The last digit of a thread depends on which reader was the first.
        let mask = |line: &str| match line.strip_prefix("000000000000000") {
            Some(rest) => format!("000000000000000#{}\n", &rest[1..]),
            None => format!("{line}\n"),
        };
        text.lines().map(mask).collect::<String>()
    };
    assert_snapshot!(list("40", &[]), @"
    w72y5f31  2020-01-03  dora@x…  F  Seal …
    2fcxswsc  2020-01-02  Bruno    u  Re: W…
    4ffqdjt5  2020-01-01  Anna B…     Walru…
    ");
    home.ok(&["edit", "b1", "--label", "+sea lions"]);
    assert_snapshot!(list("40", &["list:sea.*"]), @"w72y5f31  2020-01-03  dora@x…  F  Seal …");
    assert_snapshot!(list("80", &["list:sea.*"]), @r#"w72y5f31  2020-01-03 10:00  dora@x.example  F  Seal news  ("sea lions")"#);
    assert!(home.ok(&["show", "b1"]).contains("  \"sea lions\"\n"));
    home.ok(&["edit", "b1", "--label", "-sea lions"]);
    assert_snapshot!(list("60", &[]), @"
    w72y5f31  2020-01-03  dora@x.example  F  Seal news
    2fcxswsc  2020-01-02  Bruno           u  Re: Walrus audit
    4ffqdjt5  2020-01-01  Anna Berg          Walrus audit
    ");
    assert_snapshot!(list("40", &["--summary"]), @"
    000000000000000#  2020-01-03  do…  F  S…
    000000000000000#  2020-01-02  An…  u  W…
    ");
    assert_snapshot!(list("60", &["--summary"]), @"
    000000000000000#  2020-01-03  dora@x.examp…  F  Seal news
    000000000000000#  2020-01-02  Anna Berg, B…  u  Walrus audit
    ");
}

/// A path in a pipe names the file, whatever bytes its name has.
#[test]
fn files_whose_names_are_not_utf_8_are_found_again() {
    let home = Home::new();
    let name = std::ffi::OsStr::from_bytes(b"mail/Caf\xe9/cur/1.host:2,S");
    let path = home.path().join("work").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::create_dir_all(path.parent().unwrap().with_file_name("new")).unwrap();
    std::fs::write(&path, "Message-ID: <m1>\nFrom: Anna <a@x.example>\n\nwalrus\n").unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let listed = home.run(&["find", "--kind", "message", "--files"]);
    assert_eq!(listed.out, [path.as_os_str().as_bytes(), b"\n"].concat());
    let shown = home.run(&[std::ffi::OsStr::new("show"), path.as_os_str()]);
    assert!(shown.stdout().ends_with("walrus\n"), "{}", shown.masked_output());
    let missing = path.with_file_name("none");
    assert_eq!(home.run(&[std::ffi::OsStr::new("show"), missing.as_os_str()]).code, 5);
    let object = &home.json(&["find", "--kind", "message"])[0];
    assert_eq!(object["folders"], serde_json::json!(["/Caf\u{fffd}"]));
}

/// A thread may be a chain of as many replies as there are messages.
#[test]
fn deep_threads_are_drawn_in_few_columns() {
    let home = Home::new();
    let count = 150;
    for number in 0..count {
        let above = (number > 0).then(|| format!("In-Reply-To: <m{}>\n", number - 1));
        let text = format!(
            "Message-ID: <m{number}>\nFrom: Anna <a@x.example>\nSubject: Walrus {number}\n{}\nx\n",
            above.unwrap_or_default()
        );
        home.write(&format!("mail/cur/{number}.host:2,S"), text);
    }
    std::fs::create_dir_all(home.work("mail/new")).unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let listed = home.ok(&["find", "--threads", "walrus"]);
    let indent = |line: &str| line.split("Walrus").next().unwrap().chars().count();
    let lines: Vec<usize> = listed.lines().map(indent).collect();
    assert_eq!(lines.len(), count);
    assert_eq!(lines[20] - lines[0], 40);
    assert!(lines[20..].iter().all(|columns| *columns == lines[20]), "{lines:?}");
    let last = home.json(&["find", "--threads", "walrus"]).pop().unwrap();
    assert_eq!(last["thread"]["level"], count - 1);
    assert_eq!(last["thread"]["path"].as_array().unwrap().len(), 100);
}

/// The other messages are printed, and the exit code says that one is missing.
#[test]
fn a_message_whose_file_is_gone_hides_no_other_one() {
    let home = home_with_mail();
    std::fs::remove_file(home.work("mail/INBOX/cur/1.host:2,S")).unwrap();
    let messages = |args: &[&str], line: &str| {
        let run = home.code(&[&["--quiet"], args].concat(), 5);
        assert!(run.stderr().contains("left out: ") && run.stderr().contains("1.host:2,S"));
        run.stdout().lines().filter(|one| one.starts_with(line)).count()
    };
    assert_eq!(messages(&["show", "a2", "--thread"], "from "), 1);
    assert_eq!(messages(&["show", "a1", "--thread", "--format", "json"], "{"), 1);
    assert_eq!(messages(&["show", "a1", "--thread", "--format", "html"], "<article"), 1);
    let raw = ["find", "--kind", "message", "audit", "or", "walrus", "--format", "raw"];
    assert_eq!(messages(&raw, "Subject: "), 2);
    assert_eq!(messages(&["find", "audit", "or", "walrus", "--format", "raw"], "Subject: "), 2);
    // A message by itself is what was asked for.
    home.code(&["show", "a1"], 5);
}
