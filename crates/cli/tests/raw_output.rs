//! Items, messages and commits as bytes, one after the other: `--format raw` and `mbox`.

use crate::test_home::Home;

/// A card and messages without the end of their last lines.
const CARD: &str = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:w\r\nFN:Walrus\r\nEND:VCARD";

fn message(number: u8, fields: &str) -> String {
    format!(
        "Message-ID: <{number}@example.org>\nFrom: a@b.c\nDate: Thu, 0{number} Jan 2026 10:00:00 +0000\n\
         {fields}\nwalrus {number}"
    )
}

/// Creates a home with these messages, from 1 on.
fn home_with_mail(fields: &[&str]) -> (Home, Vec<String>) {
    let home = Home::new();
    let messages: Vec<String> =
        (1..).zip(fields).map(|(number, fields)| message(number, fields)).collect();
    for (number, text) in messages.iter().enumerate() {
        home.write(&format!("mail/cur/{number}.host:2,S"), text);
    }
    std::fs::create_dir_all(home.work("mail/new")).unwrap();
    home.ok(&["sources", "add", "mail"]);
    home.ok(&["sync"]);
    (home, messages)
}

#[test]
fn each_item_begins_a_line() {
    let (home, messages) = home_with_mail(&["Subject: one\n", "Subject: two\n"]);
    home.write("walrus.vcf", CARD);
    home.ok(&["import", "walrus.vcf"]);
    let [one, two] = &messages[..] else { unreachable!() };
    let raw = |args: &[&str]| home.ok(&[args, &["--format", "raw"]].concat());
    assert_eq!(raw(&["find", "walrus"]), format!("{CARD}\n{two}\n{one}"));
    assert_eq!(raw(&["find", "--kind", "message", "walrus"]), format!("{two}\n{one}"));
    assert_eq!(raw(&["find", "--kind", "contact"]), CARD);
    assert_eq!(
        raw(&["show", "1@example.org", "2@example.org", "uid:w"]),
        format!("{one}\n{two}\n{CARD}")
    );
}

#[test]
fn a_limit_of_threads_counts_threads() {
    let reply = "Subject: Re: one\nIn-Reply-To: <1@example.org>\n";
    let (home, messages) = home_with_mail(&["Subject: one\n", "Subject: two\n", reply, reply]);
    let run = |option: &str, format: &str, limit: &str| {
        home.ok(&["find", "walrus", option, "-n", limit, "--format", format])
    };
    for (limit, number) in [("1", 3), ("2", 4)] {
        let listed = home.json(&["find", "walrus", "--threads", "-n", limit]);
        let text = |object: &serde_json::Value| {
            let id = object["message_id"].as_str().unwrap();
            let header = format!("Message-ID: <{id}>\n");
            messages.iter().find(|text| text.starts_with(&header)).unwrap().as_str()
        };
        let expected: Vec<&str> = listed.iter().map(text).collect();
        assert_eq!(expected.len(), number);
        assert_eq!(run("--threads", "raw", limit), expected.join("\n"));
        assert_eq!(run("--summary", "raw", limit), expected.join("\n"));
        let mbox = run("--threads", "mbox", limit);
        assert_eq!(mbox.lines().filter(|line| line.starts_with("From ")).count(), number);
    }
}
