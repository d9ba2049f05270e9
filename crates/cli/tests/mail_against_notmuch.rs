//! Queries for messages find what notmuch finds: both programs index the same maildir, and answer
//! the same queries. A table names the queries whose answers differ, with the rule of each.

use crate::mail_against_mu::{find_with_larder, write_maildir};
use crate::test_home::{Home, left_out};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The queries whose answers differ, and what larder does otherwise than notmuch.
const DIFFERENCES: &[(&str, &str)] = &[
    ("reports", "words are not reduced to their stems"),
    ("cafe", "accents do not matter"),
    ("brook", "a joined word is found by its parts"),
    ("walrus NEAR/3 audit", "a joined word between two others counts as its parts"),
    ("to:bruno", "to: is the header To alone, as in mu"),
    ("recip:bruno", "notmuch has no such field"),
    ("mimetype:pdf", "a type is a whole value"),
    ("path:Inbox", "a folder may be named without cur and new"),
    ("* and not walrus", "a star is a term like others"),
    ("tag:tax tag:bill", "terms of one field must all match"),
    ("walrus not budget audit", "a negation is of one term"),
    ("enclosure", "a free word is searched in attached texts, too"),
    ("photo", "a free word is not searched in the names of attachments, as in mu"),
    ("hyperlink", "HTML is indexed if a message has no plain text"),
    ("forwarded", "a free word is searched in the subjects of attached messages, too"),
    ("subject:/^walrus/", "a regular expression matches one word"),
    ("tag:/t/", "flags are no labels"),
    ("date:\"5 years\"..", "an end of a range may be quoted"),
    ("date:..1980", "a message without a date has the date of its file"),
];

/// The queries with equal answers.
const QUERIES: &str = r#"
walrus
budget and audit
budget audit
budget or audit
budget xor audit
walrus and not budget
walrus -budget
(walrus or kernel) and audit
"annual audit"
"walrus report"
"the walrus"
wal*
annu*
café
größe
привет
don't
2024
1.5
brook_stone
frobnitzel
exilate
unheard
walrus NEAR/1 audit
walrus ADJ/1 audit
WALRUS AND budget
Walrus
from:anna
from:anna@tusk.example
from:"Anna Berg"
from:tusk
from:example
from:me@example.com
from:anna or from:bruno
from:anna and subject:audit
subject:invoice
subject:"walrus report"
subject:audit and subject:budget
subject:walr*
subject:don't
body:walrus
body:meeting
attachment:plan.pdf
attachment:plan
attachment:note.txt
mimetype:application/pdf
mimetype:image/png
mimetype:text/html
tag:tax
tag:bill
tag:tax and tag:bill
tag:tax or tag:bill
tag:tax xor tag:bill
not tag:tax
is:tax
is:unread
tag:unread
tag:flagged
tag:replied
tag:passed
tag:draft
tag:attachment
tag:signed
tag:encrypted
tag:unread and from:anna
tag:none
id:5.message@mail.example
mid:6.message@mail.example
id:none@x
thread:{from:anna}
thread:{tag:tax} and from:bruno
thread:{subject:invoice}
thread:{subject:invoice} and not subject:invoice
folder:Inbox
folder:Archive/2019
folder:Archive
folder:"Lists/tusk"
folder:Inbox or folder:Sent
folder:/Archive/
folder:/^Archive/
folder:/^Inbox$/
subject:""
not subject:""
subject:"" or from:anna
path:Inbox/cur
path:Inbox/new
path:Archive/**
path:**
date:2020
date:2020..2021
date:2020-03..2020-05
date:2023..
date:2020-03-01..2020-03-31
date:@1577836800..@1609459200
date:yesterday..
date:5years..
date:100months..80months
date:last_year..
date:29-feb-2020..
date:"29 feb 2020"
date:march_2020..june_2020
date:noon..
date:2000weeks..600weeks
date:2019..2021 and subject:report
subject:/inv.*/
from:/an+a/
from:/tusk/
*
from:anna or from:bruno and tag:tax
(from:anna or from:bruno) and tag:tax
not (from:anna or from:bruno)
walrus and (from:anna or from:bruno)
from:anna and date:2019.. and not tag:tax
body:walrus and subject:budget
"#;

/// Queries that are adopted, and then find what they find in notmuch.
const ADOPTED_QUERIES: &[&str] = &[
    "tag:tax tag:bill",
    "tag:tax walrus tag:bill",
    "from:anna from:bruno subject:audit subject:report",
    "walrus not budget audit",
    "not tag:tax tag:bill",
    "walrus or from:anna from:bruno and not tag:tax walrus",
    "(from:anna from:bruno) walrus",
    "to:anna to:bruno",
    "mimetype:pdf",
    "subject:\"(report walrus)\"",
    "folder:Inbox folder:Sent",
    "date:2019 date:2021",
];

fn run_notmuch(home: &Home, arguments: &[&str]) -> String {
    let output = home.program("notmuch").args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the Message-IDs that notmuch finds.
fn find_with_notmuch(home: &Home, query: &str) -> BTreeSet<String> {
    let found = run_notmuch(home, &["search", "--output=messages", "--", query]);
    found.lines().filter_map(|line| line.strip_prefix("id:")).map(ToString::to_string).collect()
}

/// Returns a line for each query whose answers differ.
fn compare(home: &Home, queries: &[&str]) -> String {
    let mut report = String::new();
    for query in queries {
        let (expected, found) = (find_with_notmuch(home, query), find_with_larder(home, query));
        if expected != found {
            let missing: Vec<_> = expected.difference(&found).take(3).collect();
            let extra: Vec<_> = found.difference(&expected).take(3).collect();
            let counts = format!("notmuch {}, larder {}", expected.len(), found.len());
            writeln!(report, "{query}: {counts}; missing {missing:?}, extra {extra:?}").unwrap();
        }
    }
    report
}

#[test]
fn queries_find_what_notmuch_finds() {
    let home = Home::new();
    let version = home.program("notmuch").arg("--version").output();
    if !version.is_ok_and(|output| output.stdout.starts_with(b"notmuch 0.37")) {
        return left_out("queries_find_what_notmuch_finds", "notmuch 0.37 is not installed");
    }
    let maildir = home.work("mail");
    write_maildir(&maildir);
    let config = format!(
        "[database]\npath={}\n[user]\nname=Me\nprimary_email=me@example.com\n[new]\ntags=\n\
         [search]\nexclude_tags=\n[maildir]\nsynchronize_flags=true\n[query]\n",
        maildir.display()
    );
    let adopted = ADOPTED_QUERIES.iter().enumerate();
    let adopted = adopted.map(|(number, query)| format!("q{number}={query}\n"));
    let config = config + &adopted.collect::<String>();
    std::fs::write(home.path().join("home/.notmuch-config"), config).unwrap();
    run_notmuch(&home, &["new"]);
    run_notmuch(&home, &["tag", "+tax", "--", "subject:invoice"]);
    run_notmuch(&home, &["tag", "+bill", "--", "from:anna"]);
    home.ok(&["sources", "add", maildir.to_str().unwrap(), "--into", "mail"]);
    home.ok(&["sync"]);
    home.ok(&["adopt", "notmuch"]);
    let queries: Vec<&str> = QUERIES.lines().filter(|line| !line.is_empty()).collect();
    assert!(queries.len() >= 100 && DIFFERENCES.len() <= 20, "{}", queries.len());
    let report: String = std::thread::scope(|scope| {
        let parts = queries.chunks(queries.len().div_ceil(8));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| compare(&home, part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(report, "");
    for (number, query) in ADOPTED_QUERIES.iter().enumerate() {
        let expected = find_with_notmuch(&home, query);
        assert!(!expected.is_empty(), "{query}");
        assert_eq!(find_with_larder(&home, &format!("@q{number}")), expected, "{query}");
    }
    for (query, rule) in DIFFERENCES {
        let is_equal = find_with_notmuch(&home, query) == find_with_larder(&home, query);
        assert!(!is_equal, "{query:?} finds what notmuch finds now; the rule was: {rule}");
    }
}
