//! Searches for header fields by any name.

use crate::mailbox::{Mailbox, context};
use larder_query::{MailQuery, MailSearch};

/// The messages: an id, and header lines.
const MESSAGES: [(&str, &str); 6] = [
    ("mutt", "X-Mailer: Mutt/1.5 (Linux)\nX-Spam-Score: 5.2 / 5.0\nX-Spam-Level: *****\n"),
    ("gnus", "User-Agent: Gnus\nX-Spam-Score: -1\nDKIM-Signature: v=1; a=rsa\n"),
    (
        "cafe",
        "X-Mailer: =?utf-8?Q?Caf=C3=A9?=\n  Mailer\nX-Spam-Score: 12\nReply-To: <b@c.example>\n",
    ),
    ("two", "X-Hop: first\nX-Hop: second one\nX-Spam-Score: 10.0.0.1\n"),
    ("empty", "X-Mailer:\nX-Odd\u{e9}: a\nKeywords: red, green\n"),
    ("plain", "In-Reply-To: <mutt>\nList-Id: Walrus <walrus.example>\n"),
];

fn mailbox() -> Mailbox {
    let mut mailbox = Mailbox::new();
    for (id, header) in MESSAGES {
        let text = format!(
            "Message-ID: <{id}>\nFrom: Anna <anna@example.org>\nSubject: note {id}\n{header}\
             Content-Type: multipart/mixed; boundary={id}\n\n--{id}\n\ntext\n--{id}--\n"
        );
        mailbox.write(format!("cur/{id}:2,S"), text);
    }
    mailbox.sync();
    mailbox
}

#[test]
fn headers_are_found_by_presence_words_patterns_and_numbers() {
    let mailbox = mailbox();
    let all = "cafe empty gnus mutt plain two";
    for (query, expected) in [
        ("header:x-mailer", "cafe empty mutt"),
        ("header:X-Mailer:*", "cafe empty mutt"),
        ("not header:x-mailer", "gnus plain two"),
        ("header:x-mail", ""),
        ("header:x-mailer:mutt", "mutt"),
        ("header:x-mailer:cafe", "cafe"),
        ("header:x-mailer:MUTT", "mutt"),
        ("header:x-mailer:mut", ""),
        ("header:x-mailer:mut*", "mutt"),
        ("header:x-mailer:*utt*", "mutt"),
        ("\"header:x-mailer:cafe mailer\"", "cafe"),
        ("\"header:x-mailer:mailer cafe\"", ""),
        ("header:x-mailer:/^mutt/", "mutt"),
        ("header:x-mailer:/mailer$/", "cafe"),
        ("header:x-mailer:/^$/", "empty"),
        ("header:x-hop:second", "two"),
        ("\"header:x-hop:first second\"", ""),
        ("header:x-spam-score:>5", "cafe mutt"),
        ("header:x-spam-score:>=12", "cafe"),
        ("header:x-spam-score:<0", "gnus"),
        ("header:x-spam-score:=5.2", "mutt"),
        ("header:x-spam-level:****", "mutt"),
        ("header:keywords:green", "empty"),
        ("header:list-id:walrus", "plain"),
        ("header:reply-to:b@c.example", "cafe"),
        ("header:dkim-signature", "gnus"),
        ("header:content-type:multipart/mixed", all),
        ("header:content-type:/mixed$/", all),
        ("header:message-id", all),
        ("header:message-id:mutt", "mutt"),
        ("header:in-reply-to", "plain"),
        ("header:in-reply-to:mutt", "plain"),
        ("header:in-reply-to:/^mu/", "plain"),
        ("header:references", ""),
        ("header:from", all),
        ("header:from:anna", all),
        ("header:subject:gnus", "gnus"),
        ("header:subject:gnu*", "gnus"),
        ("header:subject:/mut+/", "mutt"),
        ("msgid:*", all),
        ("ref:*", "plain"),
    ] {
        assert_eq!(mailbox.find(query).join(" "), expected, "{query}");
    }
}

#[test]
fn values_that_are_not_indexed_are_refused_by_name() {
    let mailbox = mailbox();
    let reader = mailbox.store.open_reader().unwrap();
    let mail = reader.mail().unwrap();
    let words = mail.words();
    let search = MailSearch::open(&mail, &words).unwrap();
    let errors: Vec<String> =
        ["header:dkim-signature:rsa", "header:date:>5", "header:received:/x/", "header:from:>1"]
            .into_iter()
            .map(|line| {
                let query = MailQuery::parse(line, &context()).unwrap();
                search.count(&query).unwrap_err().to_string()
            })
            .collect();
    for (error, name) in errors.iter().zip(["dkim-signature", "date", "received", "from"]) {
        assert!(
            error.contains(&format!("the values of the header {name} are not indexed")),
            "{error}"
        );
    }
}
