//! Queries for messages find what mu 1.8 finds: both programs index the same maildir, and answer
//! the same queries. A table names the queries whose answers differ, with the rule of each.

use crate::test_home::{Home, Random, left_out};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// The number of messages of each maildir.
const MESSAGE_COUNT: u64 = 300;
/// The seed of the messages.
const SEED: u64 = 18;

/// The words of subjects and bodies, the frequent ones first.
const WORDS: [&str; 24] = [
    "the",
    "walrus",
    "report",
    "meeting",
    "budget",
    "invoice",
    "annual",
    "audit",
    "kernel",
    "patch",
    "holiday",
    "ticket",
    "café",
    "größe",
    "naïve",
    "señor",
    "привет",
    "отчёт",
    "καλημέρα",
    "don't",
    "2024",
    "1.5",
    "frobnitzel",
    "quuxilate",
];

/// The names and addresses of senders and recipients.
const PEOPLE: [(&str, &str); 7] = [
    ("Anna Berg", "anna@tusk.example"),
    ("Bruno Tal", "bruno@example.org"),
    ("Chloé Dupré", "chloe@example.net"),
    ("Jürgen Müller", "jurgen@example.org"),
    ("Мария Иванова", "maria@tusk.example"),
    ("Dora Lind", "lind@example.net"),
    ("", "me@example.com"),
];

const FOLDERS: [&str; 5] = ["Inbox", "Archive/2019", "Archive/2020", "Lists/tusk", "Sent"];

/// The queries whose answers differ, and what larder does otherwise than mu 1.8.
const DIFFERENCES: &[(&str, &str)] = &[
    ("hyperlink", "the text of HTML is indexed, as in mu 1.12 and later"),
    ("enclosure", "a free word is searched in attached texts, too, as in mu 1.12 and later"),
    ("brook", "a joined word is found by its parts"),
    ("body:brook-stone", "a joined word of a query finds its parts in sequence"),
    ("from:tusk", "addresses are split at every full stop"),
    ("budget.", "punctuation around a word of a query is left out"),
    ("grosse", "ß is equal to ss"),
    ("都会", "texts without spaces are found by any pair of characters"),
    ("*port", "a star may stand in front"),
    ("SUBJECT:report", "names of fields are in any case"),
    ("subject:/(walrus|report)/", "a regular expression may have groups"),
    (r"subject:/\bwalrus\b/", "a backslash in a regular expression is not doubled"),
    ("maildir:Inbox", "the first slash of a folder may be left out"),
    ("mime:multipart/mixed", "multiparts have types, too"),
    ("walrus xor report or budget", "or and xor join from left to right, as in mu 1.12 and later"),
    ("date:..1980", "a message without Date has the time of its file"),
    ("embed:exilate", "reports of mail servers are embedded texts"),
    ("-walrus", "a hyphen negates the term behind it"),
];

/// Returns a header value as an encoded word, unless it is ASCII.
fn encode_header(text: &str) -> String {
    if text.is_ascii() {
        return text.to_string();
    }
    let mut encoded = String::from("=?utf-8?Q?");
    text.bytes().for_each(|byte| write!(encoded, "={byte:02X}").unwrap());
    encoded + "?="
}

/// Generates messages.
struct Generator(Random);

impl Generator {
    fn next_below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next_below(end as u64)).unwrap()
    }

    fn is_one_in(&mut self, count: usize) -> bool {
        self.next_below(count) == 0
    }

    /// Returns words, the first ones of the list most often.
    fn words(&mut self, count: usize) -> String {
        let mut words = Vec::new();
        for _ in 0..count {
            let end = 1 + self.next_below(WORDS.len());
            words.push(WORDS[self.next_below(end)]);
        }
        words.join(" ")
    }

    fn person(&mut self) -> String {
        let (name, address) = PEOPLE[self.next_below(PEOPLE.len())];
        match name {
            "" => address.to_string(),
            name => format!("{} <{address}>", encode_header(name)),
        }
    }

    fn header(&mut self, number: u64) -> String {
        let (from, to, subject) = (self.person(), self.person(), self.words(3));
        let mut header = format!("From: {from}\nTo: {to}\nSubject: {}\n", encode_header(&subject));
        for name in ["Cc", "Bcc"] {
            if self.is_one_in(4) {
                writeln!(header, "{name}: {}", self.person()).unwrap();
            }
        }
        writeln!(header, "Message-ID: <{number}.message@mail.example>").unwrap();
        if number > 0 && self.is_one_in(3) {
            let parent = self.0.next_below(number);
            writeln!(header, "References: <{parent}.message@mail.example>").unwrap();
        }
        let (year, month, day) =
            (2015 + self.next_below(10), 1 + self.next_below(12), 1 + self.next_below(28));
        let names = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let name = &names[month * 3 - 3..month * 3];
        let (hour, minute) = (self.next_below(24), self.next_below(60));
        // The last message has no date.
        if number + 1 < MESSAGE_COUNT {
            let date = match number % 16 {
                1 => format!("{day} {name} {year} {hour:02}:{minute:02}:07"),
                3 => format!("Fri {name} {day} {hour:02}:{minute:02}:07 {year}"),
                5 => format!("Fri, {day}-{name}-{year} {hour:02}:{minute:02}:07 EST"),
                7 => format!("Fri {name} {day} {hour:02}:{minute:02}:07 GMT {year}"),
                9 => format!("{month}/{day}/{year}"),
                11 => format!("{day} {name} {:02}", year % 100),
                _ => format!("{day} {name} {year} {hour:02}:{minute:02}:07 +0100"),
            };
            writeln!(header, "Date: {date}").unwrap();
        }
        let rare = [
            "Precedence: bulk",
            "X-Priority: 1",
            "Importance: high",
            "Importance: low",
            "List-Id: Walrus talk <talk.tusk.example>",
            "List-Id: <audit.example.org>",
            "X-Label: work",
            "X-Keywords: travel, todo",
            "X-Label: work\nX-Keywords: todo",
        ];
        if self.is_one_in(2) {
            writeln!(header, "{}", rare[self.next_below(rare.len())]).unwrap();
        }
        header + "MIME-Version: 1.0\n"
    }

    fn message(&mut self, number: u64) -> String {
        let header = self.header(number);
        let length = [5, 20, 80, 800][self.next_below(4)];
        let mut text = self.words(length);
        match number % 50 {
            7 => text.push_str(" brook_stone"),
            8 => text.push_str(" 東京都会"),
            _ => {}
        }
        let plain = |text: &str| format!("Content-Type: text/plain; charset=utf-8\n\n{text}\n");
        let attachment = |media_type: &str, name: &str, content: &str| {
            format!(
                "Content-Type: {media_type}\n\
                 Content-Disposition: attachment; filename=\"{name}\"\n\n{content}\n"
            )
        };
        let multipart = |subtype: &str, parts: &[String]| {
            let parts: String = parts.iter().map(|part| format!("--b\n{part}")).collect();
            format!("Content-Type: multipart/{subtype}; boundary=b\n\n{parts}--b--\n")
        };
        let text = plain(&text);
        let html = "Content-Type: text/html; charset=utf-8\n\n<p>A <b>hyperlink</b>\n".to_string();
        let content = match number % 30 {
            1 => multipart("mixed", &[text, attachment("application/pdf", "plan.pdf", "%PDF")]),
            2 => multipart("mixed", &[text, attachment("image/png", "photo.png", "PNG")]),
            3 => multipart("mixed", &[text, attachment("text/plain", "note.txt", "an enclosure")]),
            4 => multipart("mixed", &[text, attachment("text/csv", "table.csv", "an enclosure")]),
            5 => multipart("alternative", &[text, html]),
            6 => html,
            7 => {
                let signature =
                    "Content-Type: application/pgp-signature\n\nsignature\n".to_string();
                multipart("signed", &[text, signature])
            }
            8 => {
                let data = "Content-Type: application/octet-stream\n\ndata\n".to_string();
                multipart("encrypted", &[data])
            }
            9 => {
                let inner = format!(
                    "Content-Type: message/rfc822\n\nSubject: forwarded\n{}",
                    plain("the enclosure")
                );
                multipart("mixed", &[text, inner])
            }
            10 => {
                let calendar = "Content-Type: text/calendar\n\nBEGIN:VCALENDAR\n".to_string();
                multipart("alternative", &[text, calendar])
            }
            11 => {
                let report =
                    "Content-Type: message/delivery-status\n\nDiagnostic-Code: smtp; 550 exilate\n";
                multipart("report", &[text, report.to_string()])
            }
            _ => text,
        };
        header + &content
    }
}

/// Writes a maildir of generated messages.
pub fn write_maildir(root: &Path) {
    let mut generator = Generator(Random(SEED));
    for number in 0..MESSAGE_COUNT {
        let message = generator.message(number);
        let folder = root.join(FOLDERS[generator.next_below(FOLDERS.len())]);
        for name in ["cur", "new", "tmp"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let path = match generator.next_below(8) {
            0 => format!("new/{number}.host"),
            1 => format!("cur/{number}.host:2,"),
            2 => format!("cur/{number}.host:2,DS"),
            3 => format!("cur/{number}.host:2,FRS"),
            4 => format!("cur/{number}.host:2,PS"),
            5 => format!("cur/{number}.host:2,T"),
            _ => format!("cur/{number}.host:2,S"),
        };
        let path = folder.join(path);
        std::fs::write(&path, message).unwrap();
        // A message without a Date has the time of its file.
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(number);
        std::fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
}

/// Returns the queries that must have equal answers.
fn queries() -> Vec<String> {
    let mut queries: Vec<String> = Vec::new();
    for word in WORDS {
        for field in ["", "subject:", "body:", "s:", "b:"] {
            queries.push(format!("{field}{word}"));
        }
    }
    for field in ["from", "f", "to", "t", "cc", "c", "bcc", "h", "recip", "contact"] {
        for word in
            ["anna", "berg", "anna@tusk.example", "tusk.example", "chloe", "\"jurgen muller\""]
        {
            queries.push(format!("{field}:{word}"));
        }
    }
    for (_, name, letter) in larder_query::MailFlag::ALL {
        queries.push(format!("flag:{name}"));
        queries.push(format!("g:{letter}"));
    }
    queries.extend(QUERIES.lines().filter(|line| !line.is_empty()).map(ToString::to_string));
    queries
}

/// Returns queries for single files, and for those whose paths begin with a text.
fn path_queries(maildir: &Path) -> Vec<String> {
    let directory = maildir.join(FOLDERS[0]).join("cur");
    let starts = ["", "/", "/In", "/Inbox/", "/Inbox/cur", "/Inbox/cur/", "/Inbox/new/1", "/none"];
    let starts = starts.map(|start| format!("path:{}{start}*", maildir.display()));
    let files = std::fs::read_dir(directory).unwrap().take(3);
    let files = files.map(|entry| format!("path:\"{}\"", entry.unwrap().path().display()));
    files.chain(starts).collect()
}

/// Queries, one on each line.
const QUERIES: &str = r#"

walrus report
walrus and report
walrus AND NOT report
walrus not report
not walrus
not not walrus
walrus or frobnitzel
walrus xor report
walrus xor report xor budget
walrus or report and budget
walrus and report or budget
(walrus or report) and budget
not (walrus or report)
(not walrus) or (report and not budget)
((walrus))
from:anna and to:bruno
from:anna or from:bruno and not to:chloe
(from:anna xor to:anna) subject:walrus
"the walrus"
"walrus the"
"annual audit"
subject:"walrus report"
subject:"the the"
body:"the walrus report"
body:"the the the"
from:"anna berg"
from:"berg anna"
"anna berg"
CAFÉ
cafe
GRÖßE
NAIVE
senor
ПРИВЕТ
отчет
καλημερα
東京都会
мария
from:мария
chloé
from:dupre
wal*
subject:wal*
subject:REP*
body:frob*
from:ann*
from:anna@*
to:tusk.ex*
прив*
zzz*
mime:image/*
mime:application/*
maildir:/Arch*
maildir:/Archive/*
msgid:12*
list:talk*
subject:/wal.us/
subject:/^rep/
subject:/walrus.report/
subject:/^the.*budget$/
subject:/port$/
subject:/WALRUS/
subject:/caf[eé]/
subject:/walrus|report/
body:/^frob.*zel$/
/^quux/
from:/^ann/
from:/example.org$/
from:/@tusk/
to:/^me@/
cc:/ber/
recip:/^chl/
contact:/dup/
maildir:/archive/
maildir:/Archive/
maildir:/20[12]9/
maildir:/2019$/
list:/tusk/
list:/./
mime:/image/
mime:/^text.plain$/
file:/pdf$/
file:/n[ao]/
tag:/o/
msgid:/^1.*message/
prio:high
prio:normal
prio:low
p:high
p:h
prio:l
prio:HIGH
not prio:normal
flag:Seen
flag:attach and flag:unread
flag:unread and not flag:new
flag:list or flag:replied
flag:flagged xor flag:seen
date:2019
date:2019-03
date:201903
date:2019..2020
date:2019..
date:2015..2018-06
date:20180501..20180731
date:2018-05-01..2018-07-31
date:2018/05/01..2018.07.31
date:2019-02-31..2019-04
date:2020..2019
date:2019-03-01T12:00..2019-06-02T13:30
date:2018-01-01..2018-02-31
date:1990..1999
date:2030..
date:today
date:now..
date:1y..
date:9999d..
date:600w..
date:100m..
date:12y..8y
date:8y..12y
d:2017
not date:2019..
date:2019 walrus
size:1k..
size:..1k
size:..1b
size:500..1000
size:500b..1000b
size:1k..2k
size:2k..1k
size:1K..1M
size:1m..
size:0..
size:..1024
size:1kb..
z:..700
not size:1k..
maildir:/Inbox
maildir:/inbox
maildir:/INBOX
maildir:/Archive/2019
maildir:/Archive
maildir:"/Sent"
m:/Sent
maildir:/Lists/tusk and walrus
maildir:/Sent or maildir:/Inbox
maildir:/none
msgid:7.message@mail.example
msgid:"7.message@mail.example"
i:8.message@mail.example
msgid:none@mail.example
mime:text/plain
mime:text/html
mime:application/pdf
mime:APPLICATION/PDF
mime:image/png
mime:message/rfc822
mime:text/calendar
mime:multipart/signed
y:text/csv
mime:text
list:talk.tusk.example
list:TALK.tusk.example
v:audit.example.org
list:talk
file:plan.pdf
file:photo.png
j:note.txt
file:PLAN.PDF
file:none
embed:enclosure
e:enclosure
embed:"the enclosure"
embed:none
embed:encl*
tag:work
tag:todo
x:travel
tag:WORK
tag:work and tag:todo
tag:none
tag:tod*
changed:1h..
k:2d..
changed:..2020
changed:1990..1999
not changed:1d..
changed:1h.. walrus
path:/none
unheard
http://nowhere.example/x
"#;

/// Returns the Message-IDs that mu finds.
fn find_with_mu(home: &Home, query: &str) -> BTreeSet<String> {
    let state = home.path().join("mu");
    let mut command = home.program("mu");
    command.args(["find", "--fields", "i", "--muhome"]).arg(state).arg("--").arg(query);
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(ToString::to_string).collect()
}

/// Returns the Message-IDs that larder finds.
pub fn find_with_larder(home: &Home, query: &str) -> BTreeSet<String> {
    let run =
        home.run(&["find", "--kind", "message", "--format", "json", "-n", "1000", "--", query]);
    assert!(!run.stderr().contains("error"), "{query}: {}", run.stderr());
    let found = run.stdout();
    let values = found.lines().map(|line| serde_json::from_str(line).expect(line));
    values.map(|value: serde_json::Value| value["message_id"].as_str().unwrap().into()).collect()
}

/// Returns a line for each query whose answers differ, and the number of queries that find nothing.
fn compare(home: &Home, queries: &[String]) -> (String, usize) {
    let (mut report, mut empty_count) = (String::new(), 0);
    for query in queries {
        let (expected, found) = (find_with_mu(home, query), find_with_larder(home, query));
        empty_count += usize::from(expected.is_empty());
        if expected != found {
            let missing: Vec<_> = expected.difference(&found).take(3).collect();
            let extra: Vec<_> = found.difference(&expected).take(3).collect();
            let counts = format!("mu {}, larder {}", expected.len(), found.len());
            writeln!(report, "{query}: {counts}; missing {missing:?}, extra {extra:?}").unwrap();
        }
    }
    (report, empty_count)
}

#[test]
fn queries_find_what_mu_finds() {
    let home = Home::new();
    let version = home.program("mu").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains("version 1.8")) {
        return left_out("queries_find_what_mu_finds", "mu 1.8 is not installed");
    }
    let maildir = home.work("mail");
    write_maildir(&maildir);
    let option = format!("--maildir={}", maildir.display());
    for arguments in [vec!["init", "--quiet", &option], vec!["index", "--quiet"]] {
        let mut command = home.program("mu");
        let output = command.args(arguments).arg("--muhome").arg(home.path().join("mu")).output();
        assert!(output.unwrap().status.success());
    }
    home.ok(&["sources", "add", maildir.to_str().unwrap(), "--into", "mail"]);
    home.ok(&["sync"]);

    let mut queries = queries();
    queries.extend(path_queries(&maildir));
    assert!(queries.len() >= 200 && DIFFERENCES.len() <= 20);
    // The programs mostly wait for the disk.
    let results: Vec<_> = std::thread::scope(|scope| {
        let parts = queries.chunks(queries.len().div_ceil(8));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| compare(&home, part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let report: String = results.iter().map(|(report, _)| report.as_str()).collect();
    assert_eq!(report, "", "seed {SEED}");
    let empty_count: usize = results.iter().map(|(_, count)| count).sum();
    assert!(empty_count < queries.len() / 4, "{empty_count} of {}", queries.len());
    for (query, rule) in DIFFERENCES {
        let is_equal = find_with_mu(&home, query) == find_with_larder(&home, query);
        assert!(!is_equal, "{query:?} finds what mu finds now; the rule was: {rule}");
    }
}
