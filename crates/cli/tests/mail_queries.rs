//! Queries for messages as people type them: fields of mail among those of other kinds, sources,
//! IDs of threads, and what is said when there is nothing to search.

use crate::mail_lists::home_with_mail;
use crate::test_home::Home;

/// Returns a home with two maildirs, `work` and `home`, of a message each.
fn home_with_two_sources() -> Home {
    let home = Home::new();
    let files = [
        ("w/cur/1:2,", "Message-ID: <w1>\nFrom: Anna <anna@x.example>\nSubject: Seal\n"),
        ("h/cur/1:2,S", "Message-ID: <h1>\nFrom: Bruno <b@x.example>\nSubject: Seal\n"),
    ];
    for (name, header) in files {
        let path = home.work(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::create_dir_all(path.parent().unwrap().with_file_name("new")).unwrap();
        let date = "Date: 01 Jan 2020 10:00:00 +0000\n";
        std::fs::write(path, format!("{header}{date}\nwalrus\n")).unwrap();
    }
    home.ok(&["sources", "add", "w", "--into", "work"]);
    home.ok(&["sources", "add", "h", "--into", "home"]);
    home.ok(&["sync"]);
    home
}

/// Returns the Message-IDs that a search lists.
fn ids(home: &Home, args: &[&str]) -> Vec<String> {
    let found = home.run(&[&["find", "--format", "json"], args].concat()).stdout();
    let values = found.lines().map(|line| serde_json::from_str(line).expect(line));
    let mut ids: Vec<String> = values
        .map(|one: serde_json::Value| one["message_id"].as_str().unwrap_or("(other)").into())
        .collect();
    ids.sort();
    ids
}

#[test]
fn a_source_is_searched_alone() {
    let home = home_with_two_sources();
    assert_eq!(ids(&home, &["--kind", "message", "walrus"]), ["h1", "w1"]);
    assert_eq!(ids(&home, &["--kind", "message", "in:work", "walrus"]), ["w1"]);
    assert_eq!(ids(&home, &["--kind", "message", "-in:work"]), ["h1"]);
    assert_eq!(ids(&home, &["--kind", "message", "--in", "home", "seal"]), ["h1"]);
    assert_eq!(ids(&home, &["--in", "home"]), ["h1"]);
    assert_eq!(ids(&home, &["in:home", "walrus"]), ["h1"]);
    let path = format!("path:{}/**", home.work("w").display());
    assert_eq!(ids(&home, &["--kind", "message", &path]), ["w1"]);
    let run = home.code(&["find", "--kind", "message", "in:wrok"], 2);
    assert!(run.stderr().contains("no mail of a source \"wrok\" is indexed"), "{}", run.stderr());
    assert!(run.stderr().contains("sources with mail: home, work"), "{}", run.stderr());
}

#[test]
fn a_term_of_mail_restricts_a_search_of_all_kinds() {
    let home = home_with_mail();
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    assert_eq!(ids(&home, &["anna"]).first().map(String::as_str), Some("(other)"));
    assert_eq!(ids(&home, &["flag:seen", "anna"]), ["a1", "b1"]);
    assert_eq!(ids(&home, &["is:unread"]), ["a2"]);
    assert_eq!(ids(&home, &["maildir:/Lists/sea", "or", "header:x-label"]), ["a1", "b1"]);
    assert_eq!(ids(&home, &["is:message", "size:1.."]), ["a1", "a2", "b1", "c1"]);
    assert_eq!(home.ok(&["find", "--count", "flag:seen"]), "3\n");
    assert_eq!(ids(&home, &["email:anna"]), ["(other)"]);
    // What is wrong with such a term is said.
    let error = |args: &[&str]| home.code(args, 2).stderr();
    assert!(error(&["find", "flag:sen"]).contains("unknown flag \"sen\""));
    assert!(error(&["find", "form:anna"]).contains("did you mean from:?"));
    assert!(error(&["find", "--kind", "message", "form:anna"]).contains("did you mean from:?"));
    let run = home.code(&["find", "flag:seen", "--fields", "email"], 1);
    assert!(run.stderr().contains("have none of these fields: messages"));
    for query in ["flag:seen", "from:anna"] {
        assert!(error(&["watch", query]).contains("larder watch --kind message"), "{query}");
    }
}

/// A field that a kind does not have matches none of its items, and the other terms of an
/// alternative go on.
#[test]
fn alternatives_may_be_about_different_kinds() {
    let home = home_with_mail();
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    let other = "(other)";
    assert_eq!(ids(&home, &["from:anna", "or", "has:email"]), [other, "a1"]);
    assert_eq!(ids(&home, &["has:email", "or", "from:anna"]), [other, "a1"]);
    assert_eq!(ids(&home, &["flag:seen", "or", "org:nobody"]), ["a1", "b1", "c1"]);
    assert_eq!(ids(&home, &["is:unread", "or", "has:email"]), [other, "a2"]);
    assert_eq!(ids(&home, &["is:contact", "or", "subject:nothing"]), [other]);
    assert_eq!(ids(&home, &["author:nobody", "or", "from:anna"]), ["a1"]);
    // Items without the field are not the ones that a negation looks for.
    assert_eq!(ids(&home, &["anna", "-has:note"]), [other]);
    assert_eq!(ids(&home, &["anna", "-flag:unread"]), ["a1", "b1"]);
    for query in ["not org:acme", "-(org:acme or (nobody))", "not not org:orchard"] {
        assert_eq!(ids(&home, &[query]), [other], "{query}");
    }
    assert_eq!(ids(&home, &["not from:anna"]), ["a2", "b1", "c1"]);
    assert_eq!(ids(&home, &["-(from:anna and org:acme)"]), [other, "a2", "b1", "c1"]);
    assert!(ids(&home, &["not is:recurring"]).is_empty());
    home.code(&["remove", "--query", "not from:anna"], 1);
    let error = home.code(&["find", "form:anna", "or", "has:email"], 2).stderr();
    assert!(error.contains("did you mean from:?"), "{error}");
    let note = home.code(&["find", "date:nonsense"], 1).stderr();
    assert!(note.contains("messages are not searched: "), "{note}");
    home.ok(&["edit", "--query", "from:anna", "--label", "+tax"]);
    assert_eq!(ids(&home, &["is:tax"]), ["a1"]);
    assert_eq!(ids(&home, &["is:tax", "or", "is:contact"]), [other, "a1"]);
    let note = home.code(&["find", "is:foo"], 1).stderr();
    assert!(note.contains("unknown flag or label \"foo\""), "{note}");
    let note = home.code(&["find", "in:nowhere"], 1).stderr();
    assert!(note.contains("messages are not searched: no mail of a source \"nowhere\""), "{note}");
}

#[test]
fn a_missing_index_is_named() {
    let home = home_with_mail();
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    home.ok(&["searches", "add", "all", ""]);
    std::fs::remove_file(home.data().join("index.db")).unwrap();
    let note = "note: mail is not indexed yet; run: larder sync\n";
    assert_eq!(home.code(&["find", "anna"], 0).stderr(), note);
    assert!(home.code(&["find", "walrus"], 1).stderr().contains(note));
    assert!(home.run(&["searches"]).stderr().contains(note));
    let error = home.code(&["find", "--kind", "message", "walrus"], 4).stderr();
    assert_eq!(error, "error: no mail is indexed\nhint: run: larder sync\n");
}

#[test]
fn the_id_of_a_thread_is_shown_and_labelled() {
    let home = home_with_mail();
    let summary = home.json(&["find", "--summary", "subject:audit"]);
    let id = summary[0]["thread_id"].as_str().unwrap();
    for id in [id, &format!("thread:{id}")] {
        let text = home.ok(&["show", id]);
        assert!(text.contains("The walrus is due.") && text.contains("Yes."), "{text}");
        assert_eq!(home.json(&["show", "--thread", id]).len(), 2);
    }
    home.ok(&["edit", id, "--label", "+sea"]);
    assert_eq!(ids(&home, &["--kind", "message", "label:sea"]), ["a1", "a2"]);
    home.code(&["show", "00000000000fffff"], 1);
    // The labels are in the lists, also in a narrow one, and in the summary.
    let text = home.ok(&["find", "--summary", "subject:audit"]);
    assert!(text.trim_end().ends_with("[2/2]  Anna Berg, Bruno  u  Walrus audit  (sea)"), "{text}");
    assert_eq!(home.json(&["find", "--summary", "subject:audit"])[0]["labels"][0], "sea");
}

/// Mail that searches hide offers no addresses.
#[test]
fn hidden_messages_have_no_correspondents() {
    let home = home_with_mail();
    home.ok(&["edit", "b1", "--label", "+spam"]);
    assert!(home.ok(&["find", "--correspondents", "dora"]).starts_with("dora@x.example"));
    home.configure("[mail]\nexclude-labels = [\"spam\"]\n");
    assert_eq!(home.run(&["find", "--correspondents", "dora"]).stdout(), "");
    // Anna is in another message, too.
    assert!(home.ok(&["find", "--correspondents", "anna"]).contains("  1  "));
}

/// Of several texts with one Message-ID, the one that has it as its name is shown.
#[test]
fn a_message_id_of_several_texts_shows_the_one_with_the_name() {
    let home = home_with_mail();
    let other = "Message-ID: <b1>\nFrom: dora@x.example\nSubject: [sea] Seal news\n\
                 Date: 03 Jan 2020 10:00:00 +0000\n\nA walrus was seen.\n-- \nlist footer\n";
    std::fs::write(home.work("mail/INBOX/cur/9.host:2,"), other).unwrap();
    home.ok(&["sync"]);
    let shown = home.code(&["show", "b1"], 0);
    assert!(shown.stdout().starts_with("Seal news\n"), "{}", shown.stdout());
    assert!(
        shown.stderr().starts_with("note: other texts have this Message-ID, too: "),
        "{}",
        shown.stderr()
    );
    let named = shown.stderr().trim_end().rsplit(' ').next().unwrap().to_string();
    assert!(home.ok(&["show", &named]).starts_with("[sea] Seal news\n"));
}

/// A message that is in two sources has one text.
#[test]
fn a_message_of_two_sources_is_not_called_another_text() {
    let home = home_with_mail();
    let name = "mail/Lists/sea/cur/3.host:2,FS";
    home.write("other/cur/3.host:2,FS", std::fs::read(home.work(name)).unwrap());
    home.ok(&["sources", "add", "other", "--into", "other"]);
    home.ok(&["sync"]);
    let note = home.code(&["show", "b1"], 0).stderr();
    assert!(note.starts_with("note: this message is in other sources, too: "), "{note}");
    assert!(note.ends_with(" (other)\n") && note.lines().count() == 1, "{note}");
    // Another text beside it is named as such.
    home.write("other/cur/4.host:2,S", "Message-ID: <b1>\nSubject: Seal\n\nAnother text.\n");
    home.ok(&["sync"]);
    let note = home.code(&["show", "b1"], 0).stderr();
    assert_eq!(note.lines().count(), 2, "{note}");
    assert!(note.contains("\nnote: other texts have this Message-ID, too: "), "{note}");
}

/// A search that finds nothing because a name is wrong says so.
#[test]
fn unknown_names_are_refused_in_searches() {
    let home = home_with_mail();
    home.ok(&["edit", "a1", "--label", "+tax"]);
    for (query, message) in [
        ("is:foo", "unknown flag or label \"foo\""),
        ("is:taxx", "did you mean is:tax?"),
        ("is:flaged or walrus", "did you mean is:flagged?"),
        ("is:read", "did you mean is:seen?"),
        ("flag:deleted", "did you mean trashed?"),
        ("thread:{thread:nobody@x.example}", "unknown thread \"nobody@x.example\""),
    ] {
        let find = home.code(&["find", "--kind", "message", query], 2).stderr();
        assert!(find.contains(message), "{query}: {find}");
        assert!(home.code(&["find", "--kind", "message", "--count", query], 2).stderr() == find);
        let edit = home.code(&["edit", "--query", query, "--label", "+x"], 2).stderr();
        assert_eq!(edit, find);
    }
    let found = |query: &str| ids(&home, &["--kind", "message", query]);
    assert_eq!(found("is:tax"), ["a1"]);
    assert_eq!(found("path:INBOX"), found("maildir:/INBOX"));
    assert_eq!(found("path:inbox/cur"), found("maildir:/INBOX -flag:new"));
    // Messages may get the label, or the folder, later.
    assert!(found("label:foo").is_empty() && found("maildir:/nowhere").is_empty());
    assert!(found("path:nowhere").is_empty() && found("path:nowhere/new").is_empty());
    assert_eq!(found("walrus -path:nowhere"), found("walrus"));
    let edit = home.code(&["edit", "--query", "path:INBX", "--label", "+x"], 1).stderr();
    assert!(edit.contains("hint: no folder is \"/INBX\"; did you mean maildir:/INBOX?"), "{edit}");
    home.ok(&["watch", "--kind", "message", "is:foo", "--changes", "0"]);
    let error = home.code(&["find", "--correspondents", "from:anna"], 2).stderr();
    assert!(error.contains("unknown field \"from\" of correspondents"), "{error}");
}

/// Labels that no message has any more are named by no hint.
#[test]
fn hints_name_the_labels_that_messages_have() {
    let home = home_with_mail();
    home.ok(&["edit", "a1", "--label", "+journey", "+tax"]);
    home.ok(&["labels", "rename", "journey", "voyage"]);
    let hint =
        |code: i32, query: &str| home.code(&["find", "--kind", "message", query], code).stderr();
    let label = hint(1, "label:zzz");
    assert!(label.contains("labels: tax, voyage\n"), "{label}");
    let flag = hint(2, "is:zzzzzzzz");
    assert!(flag.contains("voyage") && !flag.contains("journey"), "{flag}");
    let gone = hint(1, "label:journey");
    assert!(gone.contains("no message has the label \"journey\""), "{gone}");
}

/// Folders that went are as unknown as in a new index.
#[test]
fn a_folder_that_went_is_unknown() {
    let home = home_with_mail();
    home.write("mail/.Old/cur/9.host:2,S", "Message-ID: <o>\nSubject: old\n\nText.\n");
    home.write("mail/.Old/new/.keep", "");
    home.ok(&["sync"]);
    assert_eq!(ids(&home, &["--kind", "message", "path:.Old"]), ["o"]);
    std::fs::remove_dir_all(home.work("mail/.Old")).unwrap();
    home.ok(&["sync"]);
    for query in ["path:.Old", "maildir:/.Old"] {
        let note = home.code(&["find", "--kind", "message", query], 1).stderr();
        assert!(note.contains("no folder is \"/.Old\""), "{note}");
        assert!(!note.contains("Old,") && !note.contains(":/.Old?"), "{note}");
    }
}

#[test]
fn a_thread_is_named_by_the_beginning_of_the_id_of_a_message() {
    let home = home_with_mail();
    let audit = ids(&home, &["--kind", "message", "thread:a1"]);
    assert_eq!(audit, ["a1", "a2"]);
    let listed = home.ok(&["find", "--kind", "message", "id:a2"]);
    let short = listed.split_whitespace().next().unwrap();
    assert!(short.len() < 13, "{listed}");
    assert_eq!(ids(&home, &["--kind", "message", &format!("thread:{short}")]), audit);
    let whole = home.json(&["find", "--kind", "message", "id:a2"])[0]["id"].clone();
    let whole = whole.as_str().unwrap();
    assert_eq!(ids(&home, &["--kind", "message", &format!("thread:{whole}")]), audit);
}

#[test]
fn names_that_no_message_has_are_named() {
    let home = home_with_mail();
    home.ok(&["edit", "a1", "--label", "+travel"]);
    // A saved search may name what messages get later.
    home.ok(&["searches", "add", "later", "--kind", "message", "is:foo"]);
    let hints = |query: &str| {
        let run = home.code(&["find", "--kind", "message", query], 1);
        let hints = run.stderr();
        let hints = hints.lines().filter_map(|line| line.strip_prefix("hint: "));
        hints.map(ToString::to_string).collect::<Vec<String>>().join("; ")
    };
    for (query, expected) in [
        ("list:sea.x", "list: compares whole names; list:sea.x* finds 1 message"),
        ("list:x.example", "list: compares whole names; list:*x.example* finds 1 message"),
        ("list:penguin", "no message is of the list \"penguin\""),
        (
            "list:SEA.x.exampel",
            "no message is of the list \"SEA.x.exampel\"; did you mean list:sea.x.example?",
        ),
        ("label:travle", "no label is \"travle\"; did you mean label:travel?"),
        ("tag:nolabel", "no label is \"nolabel\"; labels: travel"),
        ("maildir:/sea", "no folder is \"/sea\"; did you mean maildir:/Lists/sea?"),
        ("maildir:/INBX walrus", "no folder is \"/INBX\"; did you mean maildir:/INBOX?"),
        ("maildir:/sea/**", "no folder is \"/sea\"; did you mean maildir:/Lists/sea/**?"),
        ("maildir:/nope", "no folder is \"/nope\"; folders: /Archive, /INBOX, /Lists/sea"),
        (
            "path:/nope",
            "no message is in the file \"/nope\"; all files below a directory: path:/DIRECTORY/**",
        ),
        ("path:/nope/**", "no source has messages in the directory \"/nope\""),
        (
            "path:/nope/*",
            "no message is in a file whose path begins with \"/nope/\"; all files of a folder: \
             path:FOLDER/**",
        ),
        ("path:nope/*", "no folder is \"/nope\"; folders: /Archive, /INBOX, /Lists/sea"),
        ("path:nope", "no folder is \"/nope\"; folders: /Archive, /INBOX, /Lists/sea"),
        ("path:INBX", "no folder is \"/INBX\"; did you mean maildir:/INBOX?"),
        ("path:sea/cur walrus", "no folder is \"/sea\"; did you mean maildir:/Lists/sea?"),
        (
            "path:mail/INBOX/cur/1.host:2,S",
            "a file is named by its absolute path: path:/DIRECTORY/mail/INBOX/cur/1.host:2,S",
        ),
        ("maildir:nope*", "no folder begins with \"/nope\"; folders: /Archive, /INBOX, /Lists/sea"),
        ("@later", "no label is \"foo\"; labels: travel"),
        // What exists, or must not exist, is no reason.
        ("label:travel penguin", ""),
        ("not label:nolabel penguin", ""),
        ("maildir:/Lists/sea list:sea.x.example penguin", ""),
    ] {
        assert_eq!(hints(query), expected, "{query}");
    }
    let quiet = home.code(&["find", "--kind", "message", "label:travle", "--quiet"], 1);
    assert_eq!(quiet.stderr(), "");
}

/// Hints about messages are given among items of all kinds, too, unless commits have the field.
#[test]
fn a_search_of_all_kinds_names_what_no_message_has() {
    let home = home_with_mail();
    home.write("anna.vcf", crate::test_home::ANNA);
    home.ok(&["import", "anna.vcf"]);
    home.ok(&["edit", "a1", "--label", "+travel"]);
    let text = |query: &str| home.code(&["find", query], 1).stderr();
    let hints = [
        ("label:travle", "no label is \"travle\"; did you mean label:travel?"),
        ("anna label:nosuch", "no label is \"nosuch\"; labels: travel"),
        ("list:sea.x", "list: compares whole names; list:sea.x* finds 1 message"),
        ("folder:INBX", "no folder is \"/INBX\"; did you mean maildir:/INBOX?"),
        ("path:INBX", "no folder is \"/INBX\"; did you mean maildir:/INBOX?"),
    ];
    for (query, hint) in hints {
        assert_eq!(text(query), format!("note: no results\nhint: {hint}\n"));
    }
    assert!(!text("penguin").contains("hint: ") && !text("label:travel org:no").contains("hint: "));
    assert_eq!(home.code(&["find", "label:travle", "--quiet"], 1).stderr(), "");
    assert_eq!(home.code(&["find", "label:travle", "--format", "json"], 1).stderr(), "");
    home.ok(&["find", "label:travle or org:orchard"]);
    crate::commits::make_repository(&home);
    for (query, hint) in hints {
        let hint =
            if query.starts_with("path:") { String::new() } else { format!("hint: {hint}\n") };
        assert_eq!(text(query), format!("note: no results\n{hint}"));
    }
}

/// As in notmuch, but for `maildir:`, which is of mu.
#[test]
fn a_folder_of_the_name_comes_before_those_that_differ_in_case() {
    let home = Home::new();
    for (folder, id) in [("Plan", "upper"), ("plan", "lower"), ("plan/tax", "below"), ("In", "in")]
    {
        home.write(&format!("mail/{folder}/cur/1:2,S"), format!("Message-ID: <{id}>\n\nx\n"));
        std::fs::create_dir_all(home.work("mail").join(folder).join("new")).unwrap();
    }
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let found = |query: &str| ids(&home, &["--kind", "message", query]);
    assert_eq!(found("folder:plan"), ["lower"]);
    assert_eq!(found("path:Plan"), ["upper"]);
    assert_eq!(found("path:Plan/cur"), ["upper"]);
    assert_eq!(found("path:plan/**"), ["below", "lower"]);
    assert_eq!(found("folder:PLAN"), ["lower", "upper"]);
    assert_eq!(found("folder:in"), ["in"]);
    assert_eq!(found("maildir:/plan"), ["lower", "upper"]);
    assert_eq!(found("folder:/^plan/"), ["below", "lower", "upper"]);
    assert_eq!(found("path:plan/*"), ["below", "lower"]);
    let prefix = |end: &str| found(&format!("path:{}{end}", home.work("mail").display()));
    assert_eq!(prefix("/plan*"), ["below", "lower"]);
    assert_eq!(prefix("/plan/cur/*"), ["lower"]);
    assert_eq!(prefix("/plan/cur/1*"), ["lower"]);
    assert_eq!(prefix("/plan/new/*"), [""; 0]);
    assert_eq!(prefix("*"), ["below", "in", "lower", "upper"]);
}

#[test]
fn terms_of_different_kinds_have_a_note() {
    let home = home_with_mail();
    let note = "no item matches terms of messages and of contacts joined by `and`";
    let has_note = |query: &str| home.code(&["find", query], 1).stderr().contains(note);
    assert!(has_note("from:anna has:email"));
    assert!(!has_note("from:nobody walrus"));
    // A date is one of messages, too.
    assert!(!has_note("from:anna date:2031"));
    assert!(!has_note("from:nobody or phone:12345"));
    assert!(home.code(&["find", "from:anna or has:email"], 0).stderr().is_empty());
}

/// A script is to have all messages, a reader the beginning of a long list.
#[test]
fn lists_for_programs_have_no_default_limit() {
    let home = Home::new();
    let folder = home.work("mail/cur");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..1005 {
        let text = format!("Message-ID: <{number}>\nSubject: walrus {number}\n\nx\n");
        std::fs::write(folder.join(format!("{number}.host:2,S")), text).unwrap();
    }
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let find = |options: &[&str]| {
        let run = home.run(&[&["find", "--kind", "message", "walrus"], options].concat());
        (run.stdout().lines().count(), run.stderr())
    };
    let note = "note: the first 1,000 of 1,005 messages; -n N lists more\n";
    assert_eq!(find(&[]), (1000, note.to_string()));
    let page = "note: 3 to 1,002 of 1,005 messages; -n N lists more\n";
    assert_eq!(find(&["--offset", "2"]), (1000, page.to_string()));
    assert_eq!(find(&["--offset", "5"]), (1000, String::new()));
    assert_eq!(find(&["--fields", "subject"]), (1005, String::new()));
    assert_eq!(find(&["--files"]), (1005, String::new()));
    assert_eq!(find(&["--format", "json"]), (1005, String::new()));
    assert_eq!(find(&["--files", "-n", "7"]), (7, String::new()));
    assert_eq!(find(&["--links", "links"]).1, "note: 1,005 links made, 0 kept, 0 removed\n");
    assert_eq!(std::fs::read_dir(home.work("links/cur")).unwrap().count(), 1005);
}

/// A mail that came directly and through a list is one message, of which the list is found.
#[test]
fn mail_of_a_list_is_found_beside_its_direct_copy() {
    let home = Home::new();
    for (folder, header) in [("direct", ""), ("list", "List-Id: <l.example>\nPrecedence: list\n")] {
        let folder = home.work("mail").join(folder).join("cur");
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..20 {
            let head = format!("Message-ID: <{number}>\nDate: 02 Jan 2020 10:00:00 +0000\n");
            let text = format!("{head}{header}Subject: walrus {number}\n\nx\n");
            std::fs::write(folder.join(format!("{number}.host:2,S")), text).unwrap();
        }
    }
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    for query in ["list:l.example", "flag:list", "header:precedence:list", "maildir:/direct"] {
        assert_eq!(home.ok(&["find", "--kind", "message", "--count", query]), "20\n", "{query}");
    }
}

/// Parts of words, of values and of Message-IDs that a star or a pattern names.
#[test]
fn parts_of_words_are_found_where_words_have_them() {
    let home = Home::new();
    let file = |name: &str, header: &str| {
        home.write(
            &format!("mail/cur/{name}:2,S"),
            format!("{header}Subject: annual audit\n\n{name}\n"),
        );
    };
    file("1", "Message-ID: <Same.1@host>\nFrom: no-reply@x.example\nKeywords: 仕事用\n");
    file("2", "Message-ID: <Same.1@host>\nFrom: norbert@x.example\n");
    let long = "Invoice_2024_03_15_Acme_Corp_Final_v2.pdf";
    file(
        "3",
        &format!(
            "Message-ID: <m3>\nFrom: a-b-c-d-e-f-g-h@mail.x.example\nKeywords: 重要な仕事\n\
             Content-Type: application/pdf; name={long}\n"
        ),
    );
    home.write("mail/cur/4:2,S", "Message-ID: <m4>\nFrom: b@x.example\n\n電話番号 plan\n");
    std::fs::create_dir(home.work("mail/new")).unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let count = |query: &str| {
        home.run(&["find", "--kind", "message", "--count", query]).stdout().trim().to_string()
    };
    for (query, expected) in [
        ("msgid:Same.1@host", "2"),
        ("msgid:Same.1@host*", "2"),
        ("msgid:*same*", "2"),
        ("msgid:/same/", "2"),
        ("msgid:*larder*", "0"),
        ("from:no-*", "1"),
        ("from:no*", "2"),
        ("file:*.pdf", "1"),
        ("file:Invoice_2024_*", "1"),
        ("file:2024_*", "1"),
        ("from:x.*", "4"),
        ("header:from:no-*", "1"),
        ("from:*@mail.x.example", "1"),
        ("tags:*仕事*", "2"),
        ("tags:*仕事", "1"),
        ("電話 NEAR/5 plan", "1"),
    ] {
        assert_eq!(count(query), expected, "{query}");
    }
    for (query, message) in [
        ("\"*nual audit\"", "the star in front of \"nual audit\" stands for a part of a word"),
        ("電話番号 NEAR/1 plan", "NEAR takes two characters on each side, not \"電話番号\""),
    ] {
        let run = home.code(&["find", "--kind", "message", query], 2);
        assert!(run.stderr().contains(message), "{}", run.stderr());
    }
}

/// A letter with which the IDs of a contact and of a message begin names both.
#[test]
fn an_ambiguous_id_names_items_and_messages() {
    let home = Home::new();
    let cards: Vec<String> = (0..20)
        .map(|n| {
            format!("BEGIN:VCARD\r\nVERSION:4.0\r\nUID:c{n}\r\nFN:Person {n}\r\nEND:VCARD\r\n")
        })
        .collect();
    home.write("book.vcf", cards.concat());
    home.ok(&["import", "book.vcf"]);
    for n in 0..20 {
        let text = format!("Message-ID: <m{n}@example.org>\nFrom: a@b.c\n\nwalrus {n}\n");
        home.write(&format!("mail/cur/{n}.host:2,S"), text);
    }
    std::fs::create_dir_all(home.work("mail/new")).unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    let contacts = home.json(&["find", "--kind", "contact", "--fields", "full_name"]);
    let messages = home.json(&["find", "--kind", "message"]);
    let id = |object: &serde_json::Value| object["id"].as_str().unwrap().to_string();
    let both = contacts.iter().find_map(|contact| {
        let letter = id(contact)[..1].to_string();
        let message = messages.iter().map(id).find(|message| message.starts_with(&letter))?;
        Some((letter, id(contact), contact["full_name"].clone(), message))
    });
    let (letter, contact, name, message) = both.unwrap();
    let name = name[0].as_str().or(name.as_str()).unwrap();
    let told = home.code(&["show", &letter], 2).stderr();
    assert!(told.contains(&format!("hint: {contact}  {name}  (in contacts)")), "{told}");
    assert!(told.contains(&format!("hint: {message}  (no subject)")), "{told}");
}
