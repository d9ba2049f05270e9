//! Mail queries: the query of each line, the errors of invalid lines, and any other text.

use larder_query::{
    Kind, MailFlag, MailQuery, MailQueryContext, MailTextFields, QueryContext, UserLocale,
};
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use proptest::prelude::*;
use std::sync::Arc;

/// Monday, 21 September 2026, 16:13:20 in Vienna.
const NOW_SECONDS: i64 = 1_790_000_000;

fn vienna() -> MailQueryContext {
    let zone = jiff::tz::TimeZone::get("Europe/Vienna").unwrap();
    MailQueryContext {
        saved_searches: Arc::default(),
        kind: Kind::Message,
        now: Instant::from_seconds_clamped(NOW_SECONDS),
        zone: Zone::from_system(zone, "Europe/Vienna"),
        is_among_kinds: false,
    }
}

/// Checks each row, `line => query`, and reports all failures together.
fn check_table(table: &str) {
    let context = vienna();
    let mut wrong = Vec::new();
    for row in table.lines().filter(|row| !row.is_empty()) {
        let (line, expect) = row.split_once(" => ").unwrap();
        let found = match MailQuery::parse(line, &context) {
            Ok(query) => query.to_string(),
            Err(error) => format!("error at {}: {}", error.at, error.message),
        };
        if found != expect {
            wrong.push(format!("{line} => {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_are_parsed_into_trees() {
    check_table(
        r##"
foo => (any "foo")
foo bar => (and (any "foo") (any "bar"))
foo AND bar => (and (any "foo") (any "bar"))
foo or bar Or baz => (or (any "foo") (any "bar") (any "baz"))
a xor b => (xor (any "a") (any "b"))
a xor b xor c xor d => (xor (xor (any "a") (any "b")) (xor (any "c") (any "d")))
a or b xor c => (xor (or (any "a") (any "b")) (any "c"))
a xor b or c => (or (xor (any "a") (any "b")) (any "c"))
a b or c d => (or (and (any "a") (any "b")) (and (any "c") (any "d")))
a and b or c => (or (and (any "a") (any "b")) (any "c"))
a (b or c) => (and (any "a") (or (any "b") (any "c")))
(a) => (any "a")
((a b)) => (and (any "a") (any "b"))
not a => (not (any "a"))
NOT not a => (any "a")
not a and not b => (and (not (any "a")) (not (any "b")))
a not b => (and (any "a") (not (any "b")))
a -b => (and (any "a") (not (any "b")))
-a => (not (any "a"))
-(a b) => (not (and (any "a") (any "b")))
-"a b" => (not (any "a b"))
-subject:a => (not (subject "a"))
- a => (any "a")
Sales & Marketing - plan => (and (any "Sales") (any "Marketing") (any "plan"))
a and not & b => (and (any "a") (any "b"))
a or & => (or (any "a") (any "&"))
& (- !) => (any "!")
a "&" => (and (any "a") (any "&"))
--force => (any "--force")
-> => (any "->")
a-b => (any "a-b")
"hi there" => (any "hi there")
"and" => (any "and")
a "or" b => (and (any "a") (any "or") (any "b"))
\or => (any "or")
"a \"b\" c" => (any "a \"b\" c")
"a ""b"" c" => (any "a \"b\" c")
foo"bar baz" => (any "foobar baz")
"" => (all)
subject:"" or from:"" => (or (not (subject (exists))) (not (from (exists))))
not subject:"" => (subject (exists))
label:"" => (not (label (exists)))
tag:"" => (not (or (keyword (exists)) (label (exists))))
subject: => (subject (exists))
"a"b => (and (any "a") (any "b"))
"##,
    );
}

#[test]
fn words_have_wildcards_and_patterns() {
    check_table(
        r##"
* => (all)
** => (all)
perf* => (any (prefix "perf"))
*nitz => (any (suffix "nitz"))
*obnit* => (any (infix "obnit"))
foo*bar => error at 1: a star stands inside a word
"foo*bar" => (any "foo*bar")
"two words*" => (any (prefix "two words"))
/h.llo/ => (any (pattern "h.llo"))
/ => (any "/")
/usr/bin => (any "/usr/bin")
/usr/bin x/ => (and (any "/usr/bin") (any "x/"))
/1234567 => (any "/1234567")
"/inbox" => (any "/inbox")
\/inbox => (any "/inbox")
/two words/ => (any (pattern "two words"))
/two words/ more => (and (any (pattern "two words")) (any "more"))
(subject:/^re: \[patch/ or x) => (or (subject (pattern "^re: \\[patch")) (any "x"))
subject:/a\/b c/ => (subject (pattern "a\\/b c"))
subject:/(a b|c) d/ => (subject (pattern "(a b|c) d"))
-subject:/a or b/ => (not (subject (pattern "a or b")))
label:/a b/ => (label (pattern "a b"))
header:x-mailer:/a b/ => (header "x-mailer" (pattern "a b"))
maildir:/inbox b/ => (and (folder "/inbox") (any "b/"))
folder:/a/b c => (and (folder (named "/a/b")) (any "c"))
/inbox => error at 1: the regular expression has no closing slash
subject:/foo bar => error at 1: the regular expression has no closing slash
subject:/foo subject:/bar/ => error at 1: the regular expression has no closing slash
/foo or /bar/ => error at 1: the regular expression has no closing slash
subject:/foo "bar/ x/" => error at 1: the regular expression has no closing slash
header:x-mailer:/mu => error at 1: the regular expression has no closing slash
/a(b|c)d/ => (any (pattern "a(b|c)d"))
subject:/a(b|(c d))/ => (subject (pattern "a(b|(c d))"))
subject:/a(b|(c|d))/ x => (and (subject (pattern "a(b|(c|d))")) (any "x"))
(subject:/x(y)/) => (subject (pattern "x(y)"))
subject:/\d+\.\(x\)/ => (subject (pattern "\\d+\\.\\(x\\)"))
subject:"/a b\"c/" => (subject (pattern "a b\"c"))
(maildir:/a or maildir:/b) => (or (folder "/a") (folder "/b"))
http://example.org/?a:b => (any "http://example.org/?a:b")
re: hello => (and (any "re:") (any "hello"))
subjct:foo => error at 1: unknown field "subjct"
12:30 => (any "12:30")
:x => (any ":x")
foo@bar.com => (any "foo@bar.com")
"##,
    );
}

#[test]
fn fields_have_names_in_mu_and_notmuch() {
    check_table(
        r##"
subject:hello => (subject "hello")
Subject:hello => (subject "hello")
s:hello => (subject "hello")
subject:"hi there" => (subject "hi there")
"subject:hi there" => (subject "hi there")
subject: => (subject (exists))
subject:* => (subject (exists))
subject:(a or b) => (or (subject "a") (subject "b"))
from:(mary smith) lamb => (and (and (from "mary") (from "smith")) (any "lamb"))
subject:a.b-c => (subject "a.b-c")
from:joe => (from "joe")
f:joe => (from "joe")
to:joe => (to "joe")
t:joe => (to "joe")
cc:joe => (cc "joe")
c:joe => (cc "joe")
bcc:joe => (bcc "joe")
h:joe => (bcc "joe")
body:word => (body "word")
b:word => (body "word")
embed:word => (embed "word")
e:word => (embed "word")
file:a.pdf => (file "a.pdf")
j:"a b.pdf" => (file "a b.pdf")
attachment:pdf => (file "pdf")
mime:image/* => (mime (prefix "image/"))
y:text/html => (mime "text/html")
mimetype:application/pdf => (mime "application/pdf")
list:mu.example.org => (list "mu.example.org")
v:mu* => (list (prefix "mu"))
lang:en => (lang "en")
a:de => (lang "de")
tags:work => (keyword "work")
x:work => (keyword "work")
recip:joe => (to+cc+bcc "joe")
contact:joe => (from+to+cc+bcc "joe")
recip:/j.e/ => (to+cc+bcc (pattern "j.e"))
"##,
    );
}

#[test]
fn flags_and_priorities_have_names() {
    check_table(
        r##"
flag:unread => (flag unread)
flag:UNREAD => (flag unread)
g:u => (flag unread)
g:S => (flag seen)
flag:attach => (flag attach)
flag:attachment => (flag attach)
flags:x => (flag encrypted)
g:z => (flag signed)
g:q => (flag personal)
g:c => (flag calendar)
g:n => (flag new)
prio:high => (priority high)
p:low => (priority low)
priority:Normal => (priority normal)
p:h => (priority high)
"##,
    );
}

#[test]
fn folders_and_paths_are_tested() {
    check_table(
        r##"
maildir:/inbox => (folder "/inbox")
m:/ => (folder "/")
maildir:"/Sent Items" => (folder "/Sent Items")
maildir:/Sent\ Items => (folder "/Sent Items")
maildir:/lists/* => (folder (prefix "/lists/"))
maildir:/lists/ => (folder (pattern "lists"))
maildir:/lis(t|p)s/ => (folder (pattern "lis(t|p)s"))
maildir:foo => (folder "/foo")
folder:INBOX => (folder (named "/INBOX"))
folder:"" => (folder (named "/"))
folder:.classes.topology => (folder (named "/.classes.topology"))
folder:"/^.*/(Junk|Spam)$/" => (folder (pattern "^.*/(Junk|Spam)$"))
path:/home/x/Maildir/cur/1:2,S => (path "/home/x/Maildir/cur/1:2,S")
l:/home/x/1 => (path "/home/x/1")
path:inbox/** => (folder (within "/inbox"))
path:** => (all)
path:inbox => (folder (named "/inbox"))
path:inbox/cur => (and (folder (named "/inbox")) (not (flag new)))
path:inbox/new => (and (folder (named "/inbox")) (flag new))
path:new => (and (folder (named "/")) (flag new))
path:"" => (folder (named "/"))
path:/** => (all)
path:lists/* => (folder (within "/lists"))
path:/home/a/Mail/lists/* => (folder (file-prefix "/home/a/Mail/lists/"))
path:"/home/a b/Mail/li*" => (folder (file-prefix "/home/a b/Mail/li"))
path:/home/a/Mail/** => (folder (directory "/home/a/Mail"))
path:/a.b/ => (folder (pattern "a.b"))
"##,
    );
}

#[test]
fn ids_threads_and_labels_are_tested() {
    check_table(
        r##"
msgid:a@b => (message-id "a@b")
i:<a@b> => (message-id "a@b")
id:a@b => (message-id "a@b")
mid:a@b => (message-id "a@b")
mid:/^a.*/ => (header "message-id" (pattern "^a.*"))
message-id:a.b* => (header "message-id" (pattern "^<?a\\.b"))
msgid:*b.org => (header "message-id" (pattern "b\\.org>?$"))
ref:<a@b> => (reference "a@b")
r:a@b => (reference "a@b")
references:a@b => (reference "a@b")
related:a@b => (or (message-id "a@b") (reference "a@b"))
thread:abc@x => (thread "abc@x")
w:<abc@x> => (thread "abc@x")
thread:{from:mallory} => (thread-of (from "mallory"))
thread:{from:mallory and date:2009} x => (and (thread-of (and (from "mallory") (date 2008-12-31T23:00:00Z 2009-12-31T22:59:59Z))) (any "x"))
thread:"{from:mallory}" and thread:"{subject:crypto}" => (and (thread-of (from "mallory")) (thread-of (subject "crypto")))
thread:"{subject:""a b""}" => (thread-of (subject "a b"))
w:{thread:{a}} => (thread-of (thread-of (any "a")))
label:work => (label "work")
labels:work* => (label (prefix "work"))
q:/w.rk/ => (label (pattern "w.rk"))
q:"a b" => (label "a b")
tag:unread => (flag unread)
tag:work => (or (keyword "work") (label "work"))
tag:"""quoted tag""" => (or (keyword "\"quoted tag\"") (label "\"quoted tag\""))
tag:new => (or (keyword "new") (label "new"))
is:flagged => (flag flagged)
is:new => (or (flag new) (label "new"))
is:inbox => (label "inbox")
"##,
    );
}

#[test]
fn headers_are_tested() {
    check_table(
        r##"
header:x-spam-score:>5 => (header "x-spam-score" (> 5))
header:X-Spam-Score:<=-1.5 => (or (header "x-spam-score" (< -1.5)) (header "x-spam-score" (= -1.5)))
header:x-spam-score:=0 => (header "x-spam-score" (= 0))
header:x-mailer => (header "x-mailer" (exists))
header:x-mailer:* => (header "x-mailer" (exists))
header:x-mailer:mutt => (header "x-mailer" "mutt")
header:x-mailer:"two words" => (header "x-mailer" "two words")
header:x-mailer:/^mu/ => (header "x-mailer" (pattern "^mu"))
header:Message-ID:m1* => (header "message-id" (pattern "^<?m1"))
header:references:* => (header "references" (exists))
header:references:*x> => (header "references" (pattern "x>?$"))
header:in-reply-to:m1 => (header "in-reply-to" "m1")
header:subject:a:b => (header "subject" "a:b")
header:x:>abc => (header "x" ">abc")
header:x:>= => error at 1: a number is missing behind ">="
a header:x:> 5 => error at 3: a number is missing behind ">"
header:x:/>/ => (header "x" (pattern ">"))
"##,
    );
}

#[test]
fn words_can_be_near_each_other() {
    check_table(
        r##"
a NEAR/5 b => (any (near 5 "a" "b"))
a NEAR b => (any (near 10 "a" "b"))
a ADJ/3 b => (any (adjacent 3 "a" "b"))
a ADJ b c => (and (any (adjacent 10 "a" "b")) (any "c"))
subject:a NEAR/3 b => (subject (near 3 "a" "b"))
subject:a NEAR/3 subject:b => (subject (near 3 "a" "b"))
subject:a NEAR/3 from:b => error at 11: a word is missing on a side of NEAR or ADJ
a NEAR b NEAR/2 c => (and (any (near 10 "a" "b")) (any (near 2 "b" "c")))
NEAR => (any "NEAR")
a near b => (and (any "a") (any "near") (any "b"))
-a NEAR b => (not (any (near 10 "a" "b")))
a NEAR/x b => error at 3: unknown distance "x" of NEAR
a ADJ/ b => error at 3: unknown distance "" of ADJ
NEAR/99999999999 => error at 1: unknown distance "99999999999" of NEAR
a "NEAR/x" near/x => (and (any "a") (any "NEAR/x") (any "near/x"))
"##,
    );
}

#[test]
fn dates_are_extended_to_periods() {
    check_table(
        r##"
date:2016 => (date 2015-12-31T23:00:00Z 2016-12-31T22:59:59Z)
date:2016-03 => (date 2016-02-29T23:00:00Z 2016-03-31T21:59:59Z)
date:201603 => (date 2016-02-29T23:00:00Z 2016-03-31T21:59:59Z)
date:2016/03/05 => (date 2016-03-04T23:00:00Z 2016-03-05T22:59:59Z)
date:2016.3.5 => (date 2016-03-04T23:00:00Z 2016-03-05T22:59:59Z)
date:20160305 => (date 2016-03-04T23:00:00Z 2016-03-05T22:59:59Z)
date:2016-03-05T12 => (date 2016-03-05T11:00:00Z 2016-03-05T11:59:59Z)
date:2016-03-05T12:30 => (date 2016-03-05T11:30:00Z 2016-03-05T11:30:59Z)
date:20160305123015 => (date 2016-03-05T11:30:15Z 2016-03-05T11:30:15Z)
date:"2016-03-05 12:30" => (date 2016-03-05T11:30:00Z 2016-03-05T11:30:59Z)
date:2016..2016 => (date 2015-12-31T23:00:00Z 2016-12-31T22:59:59Z)
date:2016..2015 => (date 2014-12-31T23:00:00Z 2016-12-31T22:59:59Z)
date:20160301.. => (date 2016-02-29T23:00:00Z *)
date:..2017-10-01T12:00 => (date * 2017-10-01T10:00:59Z)
date:.. => (date * *)
d:2015-02-31.. => (date 2015-02-28T22:59:59Z *)
date:..2015-02-31 => (date * 2015-02-28T22:59:59Z)
date:"2016-03".. => (date 2016-02-29T23:00:00Z *)
date:.."2016-03" => (date * 2016-03-31T21:59:59Z)
date:"1 march 2016".."5 march 2016" x => (and (date 2016-02-29T23:00:00Z 2016-03-05T22:59:59Z) (any "x"))
date:2016-02 => (date 2016-01-31T23:00:00Z 2016-02-29T22:59:59Z)
date:1w.. => (date 2026-09-14T14:13:20Z *)
date:2d..1d => (date 2026-09-19T14:13:20Z 2026-09-20T14:13:20Z)
date:1d..2d => (date 2026-09-19T14:13:20Z 2026-09-20T14:13:20Z)
date:3m.. => (date 2026-06-21T14:13:20Z *)
date:1y6m.. => (date 2025-03-21T15:13:20Z *)
date:90M.. => (date 2026-09-21T12:43:20Z *)
date:2h..now => (date 2026-09-21T12:13:20Z 2026-09-21T14:13:20Z)
date:36h => (date 2026-09-20T02:13:20Z 2026-09-20T02:13:20Z)
date:30s.. => (date 2026-09-21T14:12:50Z *)
date:today => (date 2026-09-20T22:00:00Z 2026-09-21T21:59:59Z)
date:today..now => (date 2026-09-20T22:00:00Z 2026-09-21T14:13:20Z)
date:yesterday => (date 2026-09-19T22:00:00Z 2026-09-20T21:59:59Z)
date:yesterday.. => (date 2026-09-19T22:00:00Z *)
date:monday => (date 2026-09-13T22:00:00Z 2026-09-14T21:59:59Z)
date:tue..wed => (date 2026-09-14T22:00:00Z 2026-09-16T21:59:59Z)
date:march => (date 2026-02-28T23:00:00Z 2026-03-31T21:59:59Z)
date:march_2015 => (date 2015-02-28T23:00:00Z 2015-03-31T21:59:59Z)
date:jan-2015..feb-2015 => (date 2014-12-31T23:00:00Z 2015-02-28T22:59:59Z)
date:@123456..@123999 => (date 1970-01-02T10:17:36Z 1970-01-02T10:26:39Z)
date:@9000000000000 => (date @9000000000000 @9000000000000)
date:31-07-2012 => (date 2012-07-30T22:00:00Z 2012-07-31T21:59:59Z)
date:7/31/2012 => (date 2012-07-30T22:00:00Z 2012-07-31T21:59:59Z)
date:7/2012 => (date 2012-06-30T22:00:00Z 2012-07-31T21:59:59Z)
date:2012-3-5.. => (date 2012-03-04T23:00:00Z *)
date:2026-03-29 => (date 2026-03-28T23:00:00Z 2026-03-29T21:59:59Z)
date:2026-10-25 => (date 2026-10-24T22:00:00Z 2026-10-25T22:59:59Z)
date:2026-10-25T02 => (date 2026-10-25T00:00:00Z 2026-10-25T01:59:59Z)
changed:2d.. => (changed 2026-09-19T14:13:20Z *)
k:2016 => (changed 2015-12-31T23:00:00Z 2016-12-31T22:59:59Z)
"##,
    );
}

/// The periods are those of notmuch; it is Monday, 2026-09-21, 16:13 in Vienna.
#[test]
fn dates_in_words_are_periods() {
    check_table(
        r##"
date:last_week => (date 2026-09-12T22:00:00Z 2026-09-19T21:59:59Z)
date:this_week.. => (date 2026-09-19T22:00:00Z *)
date:this_month => (date 2026-08-31T22:00:00Z 2026-09-30T21:59:59Z)
date:last_month => (date 2026-07-31T22:00:00Z 2026-08-31T21:59:59Z)
date:last_year => (date 2024-12-31T23:00:00Z 2025-12-31T22:59:59Z)
date:this_day => (date 2026-09-20T22:00:00Z 2026-09-21T21:59:59Z)
date:last_hour.. => (date 2026-09-21T13:00:00Z *)
date:1mo => (date 2026-07-31T22:00:00Z 2026-08-31T21:59:59Z)
date:3weeks.. => (date 2026-08-29T22:00:00Z *)
date:2_days.. => (date 2026-09-18T22:00:00Z *)
date:two_days_ago.. => (date 2026-09-18T22:00:00Z *)
date:"3 years".. => (date 2022-12-31T23:00:00Z *)
date:90minutes.. => (date 2026-09-21T12:43:00Z *)
date:1hour25minutes.. => (date 2026-09-21T12:48:00Z *)
date:"29 feb 2020" => (date 2020-02-28T23:00:00Z 2020-02-29T22:59:59Z)
date:29-feb-2020 => (date 2020-02-28T23:00:00Z 2020-02-29T22:59:59Z)
date:29feb2020 => (date 2020-02-28T23:00:00Z 2020-02-29T22:59:59Z)
date:feb_29_2020 => (date 2020-02-28T23:00:00Z 2020-02-29T22:59:59Z)
date:"august 3" => (date 2026-08-02T22:00:00Z 2026-08-03T21:59:59Z)
date:3rd_aug => (date 2026-08-02T22:00:00Z 2026-08-03T21:59:59Z)
date:noon => (date 2026-09-21T10:00:00Z 2026-09-21T10:00:00Z)
date:midnight.. => (date 2026-09-20T22:00:00Z *)
date:17:05.. => (date 2026-09-21T15:05:00Z *)
date:5pm.. => (date 2026-09-21T15:00:00Z *)
date:yesterday_noon.. => (date 2026-09-20T10:00:00Z *)
date:30_feb_2020 => error at 1: unknown date "30_feb_2020"
date:13pm => error at 1: unknown date "13pm"
date:one => error at 1: unknown date "one"
"##,
    );
}

#[test]
fn unknown_fields_are_refused_and_other_colons_are_text() {
    check_table(
        r##"
form:anna => error at 1: unknown field "form"
a subjet:"b c" => error at 3: unknown field "subjet"
since:2026 => error at 1: unknown field "since"
"form:anna" => (any "form:anna")
form\:anna => (any "form:anna")
form: anna => (and (any "form:") (any "anna"))
http://nowhere.example/x => (any "http://nowhere.example/x")
10:30 => (any "10:30")
std::vec => (any "std::vec")
a@b.example:25 => (any "a@b.example:25")
in:work => (folder (source "work"))
in:"my mail" a => (and (folder (source "my mail")) (any "a"))
path:/home/anna/Mail/** => (folder (directory "/home/anna/Mail"))
path:/x/** => (folder (directory "/x"))
is:message => (all)
lastmod:3.. => error at 1: lastmod: is a revision of the database of notmuch, which Larder does not have
date:2026-02-30 => error at 1: unknown date "2026-02-30"
"##,
    );
    let hint = |line: &str| MailQuery::parse(line, &vienna()).unwrap_err().hint.unwrap_or_default();
    assert!(hint("form:anna").starts_with("did you mean from:?"), "{}", hint("form:anna"));
    assert!(hint("since:2026").contains("date:"));
    assert!(hint("org:acme").starts_with("org is a field of other kinds"), "{}", hint("org:acme"));
    assert!(hint("x-mailer:mutt").contains("header:x-mailer:TEXT"));
}

/// Signs and spaces of other query languages would quietly mean something else.
#[test]
fn what_other_languages_write_is_refused() {
    let error = |line: &str| {
        let error = MailQuery::parse(line, &vienna()).unwrap_err();
        format!("{}; {}", error.message, error.hint.unwrap_or_default())
    };
    for (line, message) in [
        ("a || b", "\"||\" is no operator; write or; to look for the text, quote it"),
        ("a | b", "\"|\" is no operator; write or; to look for the text, quote it"),
        ("a && b", "\"&&\" is no operator; write and; to look for the text, quote it"),
        ("!report", "\"!\" is no operator; write not; to look for the text, quote it"),
        ("a||b", "\"||\" is no operator; write or; to look for the text, quote it"),
        ("a &&b", "\"&&\" is no operator; write and; to look for the text, quote it"),
    ] {
        assert_eq!(error(line), message);
    }
    let star = "a star stands inside a word; stars stand at its beginning and its end; ";
    assert_eq!(error("rep*ort"), format!("{star}/rep.*ort/ is a regular expression"));
    assert_eq!(error("subject:*a*b"), format!("{star}/a.*b/ is a regular expression"));
    assert_eq!(error("file:r*.pdf"), format!("{star}/r.*\\.pdf/ is a regular expression"));
    let space = "\"subject:\" has no text; leave out the space behind it; ";
    let field = "subject:* finds each message that has the field";
    assert_eq!(error("subject: report"), format!("{space}{field}"));
    assert_eq!(error("subject: (a or b)"), format!("{space}{field}"));
    assert!(error("label: tax").ends_with("label:* finds each message that has the field"));
    assert!(error("folder: tax").ends_with("folder:/ is the root"));
    assert!(error("\"*nual audit\"").ends_with("leave it out: \"nual audit\" is a phrase"));
    for field in ["tag:", "is:", "msgid:", "ref:", "related:", "folder:", "maildir:", "path:"] {
        assert!(error(&format!("{field} tax")).starts_with(&format!("\"{field}\" has no text")));
    }
    assert_eq!(
        error("x label:(a or b)"),
        "\"label:\" has no text; write the field before each value: label:a or label:b"
    );
    // Other kinds may answer.
    let among = MailQueryContext::from(&QueryContext::default().among_kinds());
    assert!(MailQuery::parse("a || b", &among).is_ok());
    for line in [
        "subject: date:2026",
        "subject:",
        "label: (from:a or from:b)",
        "mime:*a/b*",
        "\"a*b\"",
        "a & b",
        "2 * 3",
        "*a*",
        "hello!",
        "\"||\"",
    ] {
        assert!(MailQuery::parse(line, &vienna()).is_ok(), "{line}");
    }
}

#[test]
fn terms_that_only_messages_have_are_recognised() {
    let context = QueryContext::default();
    for (line, is_only, names_only) in [
        ("flag:seen", true, true),
        ("anna -is:unread", true, true),
        ("(flag:seen", true, true),
        ("from:anna", false, true),
        ("from:anna subject:b", false, true),
        ("anna", false, false),
        ("re:lunch", false, false),
        ("is:tax", false, false),
        ("org:acme", false, false),
    ] {
        assert_eq!(MailQuery::is_only_of(Kind::Message, line, &context), is_only, "{line}");
        assert_eq!(MailQuery::names_only_mail(line, &context), names_only, "{line}");
    }
}

#[test]
fn sizes_are_ranges() {
    check_table(
        r##"
size:0 => (size 0 0)
size:10k..2m => (size 10240 2097152)
size:2m..10k => (size 10240 2097152)
z:1M.. => (size 1048576 *)
size:..1kb => (size 0 1024)
size:1g => (size 1073741824 1073741824)
size:100b => (size 100 100)
date:..-5 => error at 1: unknown date "..-5"
"##,
    );
}

#[test]
fn invalid_lines_are_refused_with_a_position() {
    check_table(
        r##"
(a => error at 1: unclosed "("
a) => error at 2: unmatched ")"
() => error at 2: a term is missing here
a or => error at 5: the query ends where a term is expected
or a => error at 1: a term is missing here
a and => error at 6: the query ends where a term is expected
and => error at 1: a term is missing here
not => error at 4: the query ends where a term is expected
xor b => error at 1: a term is missing here
a or or b => error at 6: a term is missing here
"a b => error at 1: unclosed quote
subject:"a => error at 9: unclosed quote
thread:{a => error at 8: unclosed "{"
thread:{a or} => error at 13: the query ends where a term is expected
thread:{} => (thread-of (all))
flag:unraed => error at 1: unknown flag "unraed"
flag:foo => error at 1: unknown flag "foo"
flag: => error at 1: unknown flag ""
x flag:y => error at 3: unknown flag "y"
prio:urgent => error at 1: unknown priority "urgent"
prio:hihg => error at 1: unknown priority "hihg"
date:foo => error at 1: unknown date "foo"
date: => error at 1: unknown date ""
date:2016-13 => error at 1: unknown date "2016-13"
date:5 => error at 1: unknown date "5"
date:20161 => error at 1: unknown date "20161"
date:2016-03-01T25 => error at 1: unknown date "2016-03-01T25"
date:5x.. => error at 1: unknown date "5x.."
date:99999d => error at 1: unknown date "99999d"
size:foo => error at 1: unknown size "foo"
size:5x => error at 1: unknown size "5x"
size: => error at 1: unknown size ""
size:99999999999999999999 => error at 1: unknown size "99999999999999999999"
size:99999999999g => error at 1: unknown size "99999999999g"
/(/ => error at 1: the regular expression "(" cannot be used: unclosed group
subject:/a[/ => error at 1: the regular expression "a[" cannot be used: unclosed character class
property:a=b => error at 1: the fields property and sexp of notmuch are not available
query:saved => error at 1: query: is a named query of notmuch, which Larder calls a saved search
sexp:x => error at 1: the fields property and sexp of notmuch are not available
header: => error at 1: no header is named ""
header:"a b" => error at 1: no header is named "a b"
"##,
    );
}

#[test]
fn an_empty_line_is_every_message() {
    for line in ["", " ", "\t\n", "\u{0}"] {
        assert_eq!(MailQuery::parse(line, &vienna()), Ok(MailQuery::All), "{line:?}");
    }
}

#[test]
fn errors_say_how_to_correct_the_line() {
    let hint = |line: &str| MailQuery::parse(line, &vienna()).unwrap_err().hint.unwrap_or_default();
    assert_eq!(hint("flag:unraed"), "did you mean unread?");
    assert_eq!(hint("prio:hihg"), "did you mean high?");
    assert_eq!(hint("prio:urgent"), "one of low, normal, high");
    assert!(hint("date:foo").contains("2016-03-01"));
    assert!(hint("a or").contains("quote it"));
}

#[test]
fn names_of_flags_are_those_of_both_programs() {
    for (flag, name, _) in MailFlag::ALL {
        assert_eq!(MailFlag::from_name(name), Some(flag));
        assert_eq!(flag.name(), name);
    }
    assert_eq!(MailFlag::from_name("Attachment"), Some(MailFlag::Attachment));
}

#[test]
fn sets_of_texts_have_members() {
    let free = MailTextFields::FREE;
    assert!(free.contains(MailTextFields::CONTACTS) && !free.contains(MailTextFields::FILE));
    assert_eq!(free.iter().count(), 7);
    assert!(MailTextFields::default().is_empty() && !free.is_empty());
    assert_eq!(free.iter().fold(MailTextFields::default(), MailTextFields::union), free);
}

#[test]
fn the_size_and_depth_of_a_query_are_bounded() {
    let context = MailQueryContext::from(&UserLocale::default());
    let parse = |line: &str| MailQuery::parse(line, &context);
    let message = |line: &str| parse(line).unwrap_err().message;
    assert!(parse(&format!("{}a{}", "(".repeat(99), ")".repeat(99))).is_ok());
    let deep = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(message(&deep).contains("too deeply"));
    let threads = format!("{}a{}", "thread:{".repeat(101), "}".repeat(101));
    assert!(message(&threads).contains("too deeply"));
    assert!(message(&vec!["a or b"; 200].join(" xor ")).contains("too deeply"));
    // Operators in groups that are closed count, too.
    let mut nested = String::from("a");
    for _ in 0..20 {
        nested = format!("({nested}){}", " or a xor a".repeat(10));
    }
    assert!(message(&nested).contains("too deeply"));
    assert!(message(&"a ".repeat(16_385)).contains("16384 words"));
    assert!(message(&"a* /b/ ".repeat(65)).contains("64 regular expressions"));
    assert!(message(&"a".repeat((1 << 20) + 1)).contains("1048576 bytes"));
    // A long chain of one operator makes no deep tree.
    for operator in [" ", " or ", " xor ", " and not "] {
        let line = vec!["a"; 5000].join(operator);
        assert!(!parse(&line).unwrap().to_string().is_empty());
    }
    assert!(parse(&"-(a) ".repeat(4000)).is_ok());
    assert!(matches!(parse(&format!("{}a", "not ".repeat(9001))), Ok(MailQuery::Not(_))));
    // Unclosed groups do not make the tokenizer read the rest of the line for each word.
    assert!(parse(&"/(".repeat(500_000)).is_err());
}

/// Parts of lines that are likely to be special.
const FRAGMENTS: &[&str] = &[
    "a", "b*", "*c", "\"", "\\", "(", ")", "{", "}", "/", "..", " ", "and ", "or ", "xor ", "not ",
    "-", " NEAR/3 ", " ADJ ", "subject:", "thread:", "date:", "size:", "maildir:", "header:",
    "msgid:", "flag:", "2016", "12", "@", ":", "today", "1y", "9999w", "\u{e9}", "\u{0}", "<", ">",
    "T", "_",
];

proptest! {
    #[test]
    fn any_text_gives_a_query_or_an_error(line in any::<String>()) {
        check_any(&line);
    }

    #[test]
    fn any_fragments_give_a_query_or_an_error(
        parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..20),
    ) {
        check_any(&parts.concat());
    }

    #[test]
    fn any_date_gives_a_range_or_an_error(text in "[0-9/.:T@a-z_-]{0,20}") {
        check_any(&format!("date:{text}"));
        check_any(&format!("date:{text}..{text}"));
    }
}

fn check_any(line: &str) {
    let context = vienna();
    match MailQuery::parse(line, &context) {
        Ok(query) => assert!(query.to_string().starts_with('(')),
        Err(error) => assert!(error.at <= line.chars().count() + 1, "{line:?}: {error}"),
    }
}
