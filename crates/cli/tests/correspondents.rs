//! `larder find --correspondents`: the people of the mail, in the order of mu, and in the formats
//! of other programs.

use crate::test_home::{Home, Random, left_out};
use insta::assert_snapshot;
use larder_format::message::MessageDate;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the header Date of a time.
fn date_header(seconds: i64) -> String {
    let date = MessageDate { seconds, offset_minutes: 0 }.to_rfc3339();
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = date[5..7].parse::<usize>().unwrap() * 3;
    format!("{} {} {} {} +0000", &date[8..10], &months[month - 3..month], &date[..4], &date[11..19])
}

/// Writes a message with these header fields, which end with a line end.
fn write_message(maildir: &Path, number: usize, fields: &str, seconds: i64) {
    let folder = maildir.join("cur");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(maildir.join("new")).unwrap();
    let date = date_header(seconds);
    let text = format!("Message-ID: <m{number}@mail.example>\nDate: {date}\n{fields}\nhello\n");
    std::fs::write(folder.join(format!("{number}.host:2,S")), text).unwrap();
}

fn index(home: &Home, maildir: &Path) {
    home.configure("[mail]\naddresses = [\"me@my.example\"]\n");
    home.ok(&["sources", "add", maildir.to_str().unwrap(), "--into", "mail"]);
    home.ok(&["sync"]);
}

/// On a narrow terminal, a long address leaves the names and the dates of the others whole.
#[test]
fn one_long_address_does_not_cut_names_and_dates() {
    let home = Home::new();
    let maildir = home.work("mail");
    let long = "x".repeat(66);
    let fields = format!("From: Anna Margarete Berg <anna@b.example>\nTo: {long}@c.example\n");
    write_message(&maildir, 0, &fields, 1_772_798_400);
    index(&home, &maildir);
    let mut list = home.command(&["find", "--correspondents"]);
    let output = list.env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("  Anna Margarete Berg  1  2026-03-06\n"), "{text}");
    assert_eq!(text.matches("1  2026-03-06").count(), 2, "{text}");
}

#[test]
fn people_are_listed_with_their_contacts() {
    let home = Home::new();
    let maildir = home.work("mail");
    let day = |number: i64| 1_772_798_400 + number * 86_400;
    let messages = [
        ("From: Anna Berg <anna@b.example>\nTo: me@my.example\n", 0),
        ("From: Anna B. <Anna@B.example>\nTo: anton@c.example, list@d.example\n", 1),
        ("From: \"Tal, Bruno\" <bruno@e.example>\nTo: list@d.example\n", 2),
        ("From: Nobody <nobody>\nTo: list@d.example\nReply-To: Ann List <x@f.example>\n", 3),
    ];
    for (number, (fields, at)) in messages.into_iter().enumerate() {
        write_message(&maildir, number, fields, day(at));
    }
    assert_snapshot!(home.run(&["find", "--correspondents"]).masked_output(), @"
    ! error: no mail is indexed
    ! hint: register a maildir: larder sources add MAILDIR; then: larder sync
    exit 4
    ");
    index(&home, &maildir);
    assert_snapshot!(home.ok(&["find", "--correspondents"]), @"
    anna@b.example   Anna B.     2  2026-03-07
    me@my.example                1  2026-03-06
    list@d.example               3  2026-03-09
    anton@c.example              1  2026-03-07
    bruno@e.example  Tal, Bruno  1  2026-03-08
    x@f.example      Ann List    1  2026-03-09
    ");
    let card = "BEGIN:VCARD\nVERSION:4.0\nUID:a\nFN:Anna Maria Berg\nEMAIL:ANNA@b.example\n\
                EMAIL:x@f.example\nEND:VCARD\n";
    home.ok(&["import", home.write("book.vcf", card).to_str().unwrap()]);
    assert_snapshot!(home.ok(&["find", "--correspondents", "an"]), @"
    anna@b.example   Anna Maria Berg  2  2026-03-07  6zeg5t8p
    anton@c.example                   1  2026-03-07
    x@f.example      Anna Maria Berg  1  2026-03-09  6zeg5t8p
    ");
    assert_eq!(home.ok(&["find", "--correspondents", "an", "--count", "-n", "1"]), "3\n");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--personal", "-n", "1"]), @"anna@b.example  Anna Maria Berg  2  2026-03-07  6zeg5t8p");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--after", "2026-03-08", "/^x|bru/"]), @"
    bruno@e.example  Tal, Bruno       1  2026-03-08
    x@f.example      Anna Maria Berg  1  2026-03-09  6zeg5t8p
    ");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--format", "json", "anna b"]), @r#"
    {"kind":"correspondent","address":"anna@b.example","name":"Anna Maria Berg","message_count":2,"last_seen":"2026-03-07T12:00:00Z","timestamp":1772884800,"is_personal":true,"contact":"6zeg5t8ptsa9p"}
    "#);
    assert_snapshot!(home.ok(&["find", "--correspondents", "--format", "mutt", "b"]), @"
    Correspondents of Larder
    anna@b.example	Anna Maria Berg	2 messages, 2026-03-07
    bruno@e.example	Tal, Bruno	1 message, 2026-03-08
    ");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--format", "mutt-alias", "b"]), @r#"
    alias AnnaB Anna Maria Berg <anna@b.example>
    alias TalB "Tal, Bruno" <bruno@e.example>
    "#);
    assert_snapshot!(home.ok(&["find", "--correspondents", "--format", "csv", "b"]), @r#"
    "Anna Maria Berg","anna@b.example"
    "Tal, Bruno","bruno@e.example"
    "#);
    assert_snapshot!(home.ok(&["find", "--correspondents", "--count"]), @"6");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--count", "@b.example"]), @"1");
    assert_snapshot!(home.ok(&["find", "--correspondents", "--count", "@b.example ann"]), @"1");
    assert_snapshot!(home.code(&["find", "--correspondents", "nna"], 1).masked_output(), @"
    ! note: no results
    exit 1
    ");
    assert_snapshot!(home.code(&["find", "--correspondents", "/a(/"], 2).masked_output(), @"
    ! error: the pattern /a(/ cannot be used: unclosed group (at character 1 of the query)
    ! hint: `larder find --help` shows the syntax of queries
    exit 2
    ");
    let run = home.code(&["find", "--correspondents", "--after", "soon", "a"], 2);
    assert_snapshot!(run.masked_output(), @r#"
    ! error: unknown date "soon" in --after
    ! hint: write it as in date:, such as 2026-03-06, 6w or @1772755200
    exit 2
    "#);
    for option in [&["--links", "links"][..], &["--snippets"], &["--summary"]] {
        let run = home.code(&[&["find", "--correspondents"][..], option, &["b"]].concat(), 2);
        assert!(run.stderr().contains(option[0]), "{}", run.stderr());
    }
    for kind in [&["--kind", "message"][..], &["--kind", "contact"], &["anna"]] {
        for (option, term) in
            [(&["--after", "2026-03-06"][..], "date:"), (&["--personal"], "flag:")]
        {
            let run = home.code(&[&["find"][..], option, kind].concat(), 2).masked_output();
            assert!(run.starts_with(&format!("! error: {} is for --corr", option[0])), "{run}");
            assert!(run.contains(&format!("by the query: {term}")), "{run}");
        }
    }
    let run = home.code(&["find", "--format", "mutt", "anna"], 2);
    assert_snapshot!(run.masked_output(), @"
    ! error: --format mutt is not supported by this command
    ! hint: use --format text or json or raw
    exit 2
    ");
}

/// A correspondent in mu or Larder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct KnownAddress {
    address: String,
    name: String,
    is_personal: bool,
    count: u64,
    last_seen: String,
}

impl KnownAddress {
    /// The rank by all but the address.
    fn rank(&self, recently: &str) -> (bool, &str, u64) {
        let is_recent = self.last_seen.as_str() > recently;
        (self.is_personal, if is_recent { &self.last_seen } else { "" }, self.count)
    }
}

fn list_with_mu(home: &Home, pattern: &str) -> Vec<KnownAddress> {
    let mut command = home.program("mu");
    command.args(["cfind", "--format=debug", "--muhome"]).arg(home.path().join("mu"));
    let output = command.env("TZ", "UTC").arg(pattern).output().unwrap();
    let mut found: Vec<KnownAddress> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(field) = line.strip_prefix('\t') else {
            found.push(KnownAddress { address: line.into(), ..KnownAddress::default() });
            continue;
        };
        let one = found.last_mut().unwrap();
        match field.split_once(": ") {
            Some(("name", "<none>")) => {}
            Some(("name", name)) => one.name = name.into(),
            Some(("personal", text)) => one.is_personal = text == "yes",
            Some(("freq", count)) => one.count = count.parse().unwrap(),
            Some(("last-seen", time)) => one.last_seen = time.replace(' ', "T") + "Z",
            _ => {}
        }
    }
    found
}

fn list_with_larder(home: &Home, query: &str) -> Vec<KnownAddress> {
    let found = home.json(&["find", "--correspondents", query]);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let known = |one: serde_json::Value| KnownAddress {
        address: text(&one["address"]),
        name: text(&one["name"]),
        is_personal: one["is_personal"].as_bool().unwrap(),
        count: one["message_count"].as_u64().unwrap(),
        last_seen: text(&one["last_seen"]),
    };
    found.into_iter().map(known).collect()
}

/// Addresses that mu lists in another way.
const DIFFERENCES: &[(&str, &str)] = &[
    ("upper@case.example", "addresses are listed in lower case"),
    ("jü@x.example", "an address that is none by the pattern of HTML is left out"),
    ("nobody", "an address that is none by the pattern of HTML is left out"),
    ("once@x.example", "an address of one personal message is personal, not by the newest one"),
    ("twice@x.example", "a message counts once, however often it names an address"),
];

/// The order of both programs is the same, except that of equal ranks: mu lists these from z to a.
#[test]
fn people_are_ranked_as_in_mu() {
    let home = Home::new();
    let version = home.program("mu").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains("version 1.8")) {
        return left_out("people_are_ranked_as_in_mu", "mu 1.8 is not installed");
    }
    let maildir = home.work("mail");
    let now =
        i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let mut random = Random(7);
    for number in 0..240 {
        // A person has one name: in mu, it depends on the order of indexing which one is shown.
        // Other people write to the user than to each other, and an address is in one field only.
        let is_personal = random.next_below(3) == 0;
        let first = if is_personal { 0 } else { 40 };
        let mut people: Vec<u64> =
            (0..3).map(|_| first + random.next_below(40).min(random.next_below(40))).collect();
        people.sort_unstable();
        people.dedup();
        let mut fields = String::new();
        if is_personal {
            writeln!(fields, "From: me@my.example").unwrap();
        }
        for (person, field) in people.into_iter().zip(["To", "Cc", "Bcc"]) {
            let name = ["", "Anna", "Anna Berg", "Bruno Tal"][usize::try_from(person % 4).unwrap()];
            let address = format!("p{person}@x{}.example", person % 7);
            match name {
                "" => writeln!(fields, "{field}: {address}"),
                name => writeln!(fields, "{field}: {name} <{address}>"),
            }
            .unwrap();
        }
        let seconds = now - 3600 - i64::try_from(random.next_below(60 * 86_400)).unwrap();
        write_message(&maildir, number, &fields, seconds);
    }
    let different = [
        "From: Upper <Upper@Case.example>\nTo: jü@x.example, Nobody <nobody>\n",
        "From: twice@x.example\nReply-To: twice@x.example\nTo: twice@x.example\n",
        "From: once@x.example\nTo: me@my.example\n",
        "From: once@x.example\nTo: list@x.example\n",
    ];
    for (number, fields) in different.into_iter().enumerate() {
        write_message(
            &maildir,
            1000 + number,
            fields,
            now - (200 - i64::try_from(number).unwrap()) * 86_400,
        );
    }
    let option = format!("--maildir={}", maildir.display());
    let own = "--my-address=me@my.example";
    for arguments in [vec!["init", "--quiet", &option, own], vec!["index", "--quiet"]] {
        let mut command = home.program("mu");
        let output = command.args(arguments).arg("--muhome").arg(home.path().join("mu")).output();
        assert!(output.unwrap().status.success());
    }
    index(&home, &maildir);
    let recently = MessageDate { seconds: now - 15 * 86_400, offset_minutes: 0 }.to_rfc3339();
    for (pattern, query) in [("", ""), ("tal", "tal"), ("^p1", "/^p1/"), ("x3.ex", "x3.ex")] {
        let (mut expected, mut found) =
            (list_with_mu(&home, pattern), list_with_larder(&home, query));
        let is_equal = |one: &KnownAddress| {
            DIFFERENCES.iter().all(|(known, _)| !known.eq_ignore_ascii_case(&one.address))
        };
        expected.retain(is_equal);
        found.retain(is_equal);
        assert!(found.len() > 5, "{query}: {}", found.len());
        let ranks = |all: &[KnownAddress]| -> Vec<String> {
            all.iter().map(|one| format!("{:?}", one.rank(&recently))).collect()
        };
        assert_eq!(ranks(&found), ranks(&expected), "{query}");
        let sort = |mut all: Vec<KnownAddress>| {
            all.sort_by(|a, b| a.address.cmp(&b.address));
            all
        };
        assert_eq!(sort(found), sort(expected), "{query}");
    }
    let (in_mu, in_larder) = (list_with_mu(&home, ""), list_with_larder(&home, ""));
    for (address, rule) in DIFFERENCES {
        let find = |all: &[KnownAddress]| {
            all.iter().find(|one| one.address.eq_ignore_ascii_case(address)).cloned()
        };
        assert_ne!(find(&in_mu), find(&in_larder), "{address}; the rule was: {rule}");
    }
}

#[test]
fn a_wrong_format_has_a_hint_with_those_of_the_command() {
    let home = Home::new();
    let check = |args: &[&str]| home.code(args, 2).stderr();
    assert_snapshot!(check(&["find", "--correspondents", "--format", "vcrad"]), @r#"
    error: invalid value "vcrad" for --format <FORMAT>
    hint: did you mean vcard?
    hint: possible values: text, json, mutt, mutt-alias, csv, org, bbdb, vcard
    "#);
    assert_snapshot!(check(&["--format", "xml", "find", "--correspondents"]), @r#"
    error: invalid value "xml" for --format <FORMAT>
    hint: larder prints no XML; --format json has all values
    hint: possible values: text, json, mutt, mutt-alias, csv, org, bbdb, vcard
    "#);
    assert_snapshot!(check(&["show", "x", "--format", "htm"]), @r#"
    error: invalid value "htm" for --format <FORMAT>
    hint: did you mean html?
    hint: possible values: text, json, raw, html, mbox
    "#);
}
