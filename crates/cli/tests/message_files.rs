//! Files of mail messages: `larder show FILE` and `larder save FILE`.

use crate::mail_lists::home_with_mail;
use crate::test_home::Home;
use insta::assert_snapshot;

/// Returns the path of a sample message.
fn sample(name: &str) -> String {
    format!("{}/../../samples/mail/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_message_is_shown_without_a_store() {
    let home = Home::new();
    assert_snapshot!(home.run(&["show", &sample("audit-reply.eml")]).masked_output(), @"
    Re: Annual walrus audit
    from   Bruno Tal <bruno@example.org>
    to     Anna Berg <anna.berg@walrus.example>
    cc     Chloé Dupré <chloe@example.net>
    date   Mon 2 Mar 2026, 16:40
    parts  5 figures.csv (text/csv, 37 bytes)
           6 Counts of 2025 (message/rfc822)

    On 2 March 2026, Anna Berg wrote:
    > the annual walrus audit is due on Friday. Could you send me the figures
    > for the café in Zürich, and the counts of last year?

    The figures are attached. Last year there were 214 walruses; see the message below.

    Bruno

    Message: Counts of 2025
    from   Dora Lind <dora@walrus.example>
    to     Bruno Tal <bruno@example.org>
    date   Fri 7 Mar 2025, 08:00

    We counted 214 walruses this year.
    ");
    assert_snapshot!(home.run(&["show", &sample("newsletter.eml")]).masked_output(), @"
    Tusk Weekly № 9 — spring
    from   Tusk Weekly <news@tusk.example>
    date   Tue 3 Mar 2026, 11:00
    list   weekly.tusk.example

    Spring is here

    Three things to read this week:

    - The ice report
    - A recipe for clam chowder & bread
    - Cafés with a view

    > The time has come to talk of many things.

    Monday fog
    Tuesday sun
    ");
    assert!(!home.data().exists());
}

#[test]
fn damaged_and_encrypted_messages_are_shown_as_far_as_they_can_be_read() {
    let home = Home::new();
    let show = |name: &str| home.run(&["show", &sample(name)]).masked_output();
    assert_snapshot!(show("raw-bytes.eml"), @"
    Grüße aus Köln
    from   Jörg Müller <joerg@example.de>
    to     bruno@example.org
    date   Wed 4 Mar 2026, 07:30

    Schöne Grüße aus Köln! Der Zug fährt um 9 Uhr, ich bin müde.
    ");
    assert_snapshot!(show("broken.eml").replace(&sample(""), ""), @"
    no end, no type, no date
    from   nobody
    parts  3 half (application/octet-stream, 13 bytes)

    This is not base64 at all!
    ! warning: broken.eml: part 2: the transfer encoding is damaged
    ! warning: broken.eml: part 3: its end is missing, the message may be cut off
    ");
    assert_snapshot!(show("encrypted.eml"), @"
    ...
    from   Dora Lind <dora@walrus.example>
    to     Bruno Tal <bruno@example.org>
    date   Thu 5 Mar 2026, 12:00
    flags  encrypted
    parts  2 (no name) (application/pgp-encrypted, 10 bytes)
           3 encrypted.asc (application/octet-stream, 93 bytes)

    (encrypted)
    ");
}

#[test]
fn a_message_is_read_from_standard_input_and_printed_as_it_came() {
    let home = Home::new();
    let bytes = std::fs::read(sample("raw-bytes.eml")).unwrap();
    assert!(home.run_with(&["show", "-"], &bytes).stdout().starts_with("Grüße aus Köln\n"));
    assert_eq!(home.run_with(&["show", "-", "--format", "raw"], &bytes).out, bytes);
    let json = home.json(&["show", &sample("audit.eml")]);
    assert_eq!(json[0]["headers"]["date"], "2026-03-02T10:12:01+01:00");
    assert_eq!(json[0]["headers"]["from"][0]["address"], "anna.berg@walrus.example");
    assert_eq!(json[0]["parts"][0]["role"], "body");
}

/// The name of a file in a maildir has its flags.
#[test]
fn flags_of_a_maildir_are_shown() {
    let home = Home::new();
    std::fs::create_dir_all(home.work("INBOX/cur")).unwrap();
    std::fs::create_dir_all(home.work("INBOX/new")).unwrap();
    for (name, flags) in [("cur/1.host:2,FRS", "flagged replied seen"), ("new/2.host", "new")] {
        let path = format!("INBOX/{name}");
        std::fs::copy(sample("audit.eml"), home.work(&path)).unwrap();
        let page = home.ok(&["show", &path]);
        assert!(page.contains(&format!("\nflags  {flags}\n")), "{page}");
    }
}

/// A message has the flags of all of its files, in lists and in pages. A file without header
/// fields, which is in the index, has a page, too.
#[test]
fn flags_of_all_files_of_a_message_are_shown() {
    let home = crate::mail_lists::home_with_mail();
    let archive = home.work("mail/Archive/cur");
    std::fs::rename(archive.join("5.host:2,S"), archive.join("5.host:2,FR")).unwrap();
    std::fs::write(archive.join("6.host:2,D"), "").unwrap();
    home.run(&["sync"]);
    let expected = "flagged replied seen";
    let page = home.ok(&["show", "c1"]);
    assert!(page.contains(&format!("\nflags  {expected}\n")), "{page}");
    let page = home.ok(&["show", "--thread", "c1"]);
    assert!(page.contains(&format!("\nflags  {expected}\n")), "{page}");
    let flags = &home.json(&["show", "c1"])[0]["flags"];
    assert_eq!(*flags, serde_json::json!(["flagged", "replied", "seen"]));
    let found = home.ok(&["find", "--kind", "message", "flag:draft"]);
    let id = found.split_whitespace().next().unwrap().to_string();
    assert_snapshot!(home.code(&["show", &id], 0).masked_output(), @"
    (no subject)
    flags  draft

    (no text)
    ! warning: [HOME]/work/mail/Archive/cur/6.host:2,D: no header field of mail
    ");
}

/// A message sends neither escape sequences to the terminal nor hides what it says.
#[test]
fn messages_cannot_control_the_terminal() {
    let home = Home::new();
    home.write(
        "evil.eml",
        "From: \x1b]0;x\x07 <a@example.org>\nSubject: =?utf-8?q?pay_=E2=80=AE001?=\n\n\
         \x1b[2Jgone \u{202e}txt\n",
    );
    let page = home.ok(&["show", "evil.eml"]);
    assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{page}");
    assert!(page.contains("<U+202E>"), "{page}");
}

#[test]
fn files_that_are_no_messages_are_refused() {
    let home = Home::with_book();
    home.write("book.vcf", "BEGIN:VCARD\nVERSION:3.0\nFN:Anna\nEND:VCARD\n");
    assert_snapshot!(home.run(&["show", "./book.vcf"]).masked_output(), @"
    ! error: ./book.vcf: no mail message: no From, To, Subject or Date
    ! hint: contacts and calendars are shown after `larder import FILE`
    exit 3
    ");
    assert_snapshot!(home.run(&["show", "missing.eml"]).masked_output(), @"
    ! error: missing.eml: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(home.run(&["show", "."]).masked_output(), @"
    ! error: .: is a directory
    ! hint: name a file
    exit 5
    ");
    // Files and items in one command; COLLECTION/UID is no file.
    let page = home.ok(&["show", &sample("audit.eml"), "contacts/anna-1"]);
    assert!(page.contains("Annual walrus audit\n") && page.contains("\n\nAnna"), "{page}");
}

#[test]
fn attachments_are_saved() {
    let home = Home::new();
    let message = sample("audit-reply.eml");
    assert_snapshot!(home.run(&["save", &message, "--to", "out"]).masked_output(), @"
    Saved out/figures.csv (37 bytes)
    Saved out/Counts of 2025.eml (230 bytes)
    ");
    let saved = |name: &str| std::fs::read_to_string(home.work(&format!("out/{name}"))).unwrap();
    assert_eq!(saved("figures.csv"), "place,guests\nZürich,1204\nVienna,977\n");
    assert!(saved("Counts of 2025.eml").ends_with("\n\nWe counted 214 walruses this year.\n"));
    // Nothing is replaced, and nothing is half done.
    std::fs::remove_file(home.work("out/figures.csv")).unwrap();
    assert_snapshot!(home.run(&["save", &message, "--to", "out"]).masked_output(), @"
    ! error: out/Counts of 2025.eml exists
    ! hint: replace it with --overwrite, or choose a directory with --to DIR
    exit 2
    ");
    assert!(!home.work("out/figures.csv").exists());
    home.ok(&["save", &message, "--to", "out", "--overwrite"]);
    assert!(home.work("out/figures.csv").exists());
}

#[test]
fn parts_are_chosen() {
    let home = Home::new();
    let message = sample("audit-reply.eml");
    let save = |args: &[&str]| {
        let args = [&["save", &message, "--overwrite", "--to", "out"], args].concat();
        home.run(&args).masked_output().replace(&sample(""), "")
    };
    assert_snapshot!(save(&["--part", "3", "--part", "5"]), @"
    Saved out/part-3.txt (256 bytes)
    Saved out/figures.csv (37 bytes)
    ");
    assert_snapshot!(save(&["--match", "FIG.*csv$", "--format", "json"]), @r#"{"file":"out/figures.csv","size":37}"#);
    assert_snapshot!(save(&["--all"]), @"
    Saved out/part-3.txt (256 bytes)
    Saved out/part-4.html (74 bytes)
    Saved out/figures.csv (37 bytes)
    Saved out/Counts of 2025.eml (230 bytes)
    Saved out/part-7.txt (35 bytes)
    ");
    assert_snapshot!(save(&["--match", "pdf"]), @"
    ! note: audit-reply.eml: no such attachment
    exit 1
    ");
    for number in ["0", "1", "99"] {
        let run = home.code(&["save", &message, "--part", number], 1);
        assert!(run.stderr().contains(&format!("has no part {number} that can be saved")));
    }
    assert_snapshot!(save(&["--match", "(("]), @"
    ! error: --match ((: no regular expression: unclosed group
    exit 2
    ");
}

/// A name in a message chooses no folder, and no part replaces another.
#[test]
fn names_in_messages_are_harmless() {
    let home = Home::new();
    let part = |name: &str| {
        format!("--x\nContent-Disposition: attachment; filename=\"{name}\"\n\n{name}\n")
    };
    let names = ["../up.txt", "/etc/passwd", ".hidden", "same.txt", "same.txt", ".."];
    let parts: String = names.iter().map(|name| part(name)).collect();
    home.write(
        "names.eml",
        format!("Subject: x\nContent-Type: multipart/mixed; boundary=x\n\n{parts}--x--\n"),
    );
    home.ok(&["save", "names.eml", "--to", "out"]);
    let saved = std::fs::read_dir(home.work("out")).unwrap();
    let mut saved: Vec<String> =
        saved.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    saved.sort();
    assert_eq!(saved, ["hidden", "part-7.txt", "passwd", "same-2.txt", "same.txt", "up.txt"]);
    assert!(!home.work("up.txt").exists());
}

/// An mbox file is not one message that has the others as its text.
#[test]
fn the_first_message_of_an_mbox_file_is_shown() {
    let home = Home::new();
    let message = |number: u32| {
        let head = format!("From a@x Mon Nov 30 1{number}:00:00 2020\nFrom: a@x.example\n");
        format!("{head}Subject: {number}\n\nText {number}.\n>From here.\n\n")
    };
    home.write("two.mbox", message(1) + &message(2));
    assert_snapshot!(home.run(&["show", "./two.mbox"]).masked_output(), @"
    1
    from   a@x.example

    Text 1.
    From here.
    ! note: ./two.mbox is an mbox file with 2 messages, of which this is the first; `larder sources add` makes all of them searchable
    ");
    // By its name this is a message, with what looks like another one in its text.
    home.write("two.eml", message(1) + &message(2));
    let run = home.run(&["show", "two.eml"]);
    assert!(run.stdout().contains("Text 2.") && run.err.is_empty(), "{}", run.masked_output());
    home.write("one.mbox", message(1));
    assert!(!home.run(&["show", "./one.mbox"]).stderr().contains("note: "));
}

/// Other mail programs read the messages of a search.
#[test]
fn messages_are_printed_as_an_mbox_file() {
    let home = home_with_mail();
    let text = home.ok(&["find", "--kind", "message", "subject:walrus", "--format", "mbox"]);
    let first = "From b@x.example Thu Jan  2 10:00:00 2020\nMessage-ID: <a2>\n";
    assert!(text.starts_with(first), "{text}");
    let second = "\nYes.\n\nFrom anna@x.example Wed Jan  1 10:00:00 2020\nMessage-ID: <a1>\n";
    assert!(text.contains(second), "{text}");
    let thread = home.ok(&["show", "a1", "--thread", "--format", "mbox"]);
    assert_eq!(thread.matches("\nMessage-ID: ").count(), 2, "{thread}");
    // It is a source, too.
    home.write("some.mbox", &text);
    home.ok(&["sources", "add", "some.mbox", "--into", "some"]);
    home.ok(&["sync"]);
    assert_eq!(home.ok(&["find", "--kind", "message", "--count", "in:some"]), "2\n");
    for args in [&["find", "walrus"][..], &["find", "--kind", "commit"], &["agenda"]] {
        let run = home.code(&[args, &["--format", "mbox"]].concat(), 2);
        assert!(run.stderr().contains("--format mbox is not supported"), "{}", run.stderr());
    }
}
