//! Messages: header fields, bodies, attachments, character sets, damage.

use crate::corpora::messages;
use larder_format::message::{
    MAX_NESTED_MESSAGES, Message, MessagePriority, MessageProblem, PartContent, PartRole,
    trim_message_id,
};

fn parse(text: &str) -> Message {
    Message::parse(text.as_bytes())
}

fn attachments(message: &Message) -> Vec<(&str, Option<&str>)> {
    let attachments = message.attachments();
    attachments.map(|(_, part)| (part.media_type.as_str(), part.file_name.as_deref())).collect()
}

#[test]
fn headers() {
    let message = parse(
        "Received: from a by b; Fri, 6 Mar 2026 12:31:00 +0000\n\
         Date: Fri, 6 Mar 2026 13:30:00 +0100\n\
         From: =?utf-8?q?J=C3=B6rg?= Berg <joerg@example.org>, other@example.org\n\
         To: friends: Anna <anna@example.org>, \"Berg, Bruno\" <bruno@example.org>;\n\
         Cc: undisclosed-recipients:;\n\
         Subject: =?iso-8859-1?q?caf=E9?=\n =?iso-8859-1?q?_au?= lait\n\
         Message-ID: <one@example.org>\n\
         In-Reply-To: <zero@example.org>\n\
         References: <root@example.org>\n <zero@example.org>\n\
         List-Id: Walrus watchers <walrus.example.org>\n\nHello\n",
    );
    let headers = &message.headers;
    assert_eq!(headers.subject.as_deref(), Some("caf\u{e9} au lait"));
    let from: Vec<String> = headers.from.iter().map(ToString::to_string).collect();
    assert_eq!(from, ["J\u{f6}rg Berg <joerg@example.org>", "other@example.org"]);
    let to: Vec<String> = headers.to.iter().map(ToString::to_string).collect();
    assert_eq!(to, ["Anna <anna@example.org>", "Berg, Bruno <bruno@example.org>"]);
    assert_eq!(headers.cc, []);
    let date = headers.date.unwrap();
    assert_eq!((date.seconds, date.offset_minutes), (1_772_800_200, 60));
    assert_eq!(headers.message_id.as_deref(), Some("one@example.org"));
    assert_eq!(headers.in_reply_to, ["zero@example.org"]);
    assert_eq!(headers.references, ["root@example.org", "zero@example.org"]);
    assert_eq!(headers.list_id.as_deref(), Some("walrus.example.org"));
    assert_eq!(message.problems, []);
}

/// White space between the angle brackets is not a part of a Message-ID, as in notmuch.
#[test]
fn white_space_in_message_ids_is_left_out() {
    for (field, expected) in [
        ("<a b@c>", "ab@c"),
        ("\n <fold\n ed@c>", "folded@c"),
        ("<t\tab@c>", "tab@c"),
        ("< lead@c >", "lead@c"),
        ("\"q s\"@c", "\"q s\"@c"),
        ("bare id@c", "bare id@c"),
        ("bare\n id@c", "bare id@c"),
        ("bare\r\n id@c", "bare id@c"),
    ] {
        let message = parse(&format!("Message-ID: {field}\nSubject: x\n\nx\n"));
        assert_eq!(message.headers.message_id.as_deref(), Some(expected), "{field}");
        let message = parse(&format!("References: <r@c> {field}\nSubject: x\n\nx\n"));
        if field.contains('<') {
            assert_eq!(message.headers.references, ["r@c", expected], "{field}");
        }
        let typed = format!("<{expected}>").replace("ab@", "a b@");
        assert_eq!(trim_message_id(&typed), expected.replace(' ', ""));
    }
}

/// The first one is that of the message, in mu and notmuch, too.
#[test]
fn a_field_with_two_message_ids_has_the_first() {
    let message = parse("Message-ID: <a@x> <b@x>\nSubject: x\n\nx\n");
    assert_eq!(message.headers.message_id.as_deref(), Some("a@x"));
}

#[test]
fn the_name_of_a_list_is_decoded() {
    let message = parse("Subject: x\nList-Id: =?utf-8?q?Walrus_watchers?=\n\nx\n");
    assert_eq!(message.headers.list_id.as_deref(), Some("Walrus watchers"));
}

/// Without a Date, or with one that is no date, the time at which the last server got the message
/// counts.
#[test]
fn the_date_of_a_message_without_one_is_that_of_the_last_server() {
    for date in ["", "Date: yesterday\n", "Date: Fri, 99 Foo 2026 99:99 +0000\n"] {
        let message = parse(&format!(
            "Received: from b by c; Fri, 6 Mar 2026 12:31:00 +0000\n\
             Received: from a by b; Fri, 6 Mar 2026 12:30:00 +0000\n{date}Subject: x\n\nx\n"
        ));
        assert_eq!(message.headers.date.map(|date| date.seconds), Some(1_772_800_260), "{date}");
    }
    let comment = "Received: from b by c; Fri, 6 Mar 2026 12:31:00 +0000 (x; y)\n\nx\n";
    assert_eq!(parse(comment).headers.date.map(|date| date.seconds), Some(1_772_800_260));
    assert_eq!(parse("Subject: x\n\nx\n").headers.date, None);
}

/// A value may be on another line than its name (RFC 5322, 3.2.2).
#[test]
fn parameters_may_be_folded_beside_their_equals_sign() {
    for fold in ["=\n ", "= \n\t", "\n =", "=\r\n ", " \r\n = \r\n "] {
        let source = format!(
            "Subject: x\nContent-Type: multipart/mixed; boundary{fold}\"b1\"\n\n\
             --b1\nContent-Type: text/plain; charset{fold}koi8-u\n\n?\n\
             --b1\nContent-Type: application/pdf\n\
             Content-Disposition: attachment; filename{fold}\"a b.pdf\"\n\nPDF\n\
             --b1\nContent-Type: message/rfc822\n\n\
             Content-Type: text/plain; charset{fold}koi8-u\nSubject: y\n\n?\n--b1--\n"
        );
        // In KOI8-U, this byte is a letter that it is in no other character set.
        let bytes: Vec<u8> =
            source.bytes().map(|byte| if byte == b'?' { 0xa4 } else { byte }).collect();
        let message = Message::parse(&bytes);
        let texts: Vec<_> = message.parts.iter().filter_map(|part| part.plain_text()).collect();
        assert_eq!(texts, ["\u{454}", "\u{454}"], "{fold:?}");
        assert_eq!(message.parts[2].file_name.as_deref(), Some("a b.pdf"), "{fold:?}");
        // The bytes of the message in the message are those of the source.
        let inner = Message::part_source(&bytes, 3).unwrap();
        let inner = String::from_utf8_lossy(&inner).into_owned();
        let header = format!("Content-Type: text/plain; charset{fold}koi8-u\nSubject: y\n\n");
        assert!(inner.starts_with(&header), "{inner:?}");
    }
}

#[test]
fn file_names_of_raw_bytes_are_guessed() {
    for field in ["Content-Disposition: attachment; filename", "Content-Type: image/png; name"] {
        let mut bytes = format!("Subject: x\n{field}=\"R").into_bytes();
        bytes.extend_from_slice(b"\xe9sum\xe9.pdf\"\n\ntext\n");
        let mut parted = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n".to_vec();
        parted.extend_from_slice(&bytes);
        for (bytes, place) in [(bytes, 0), (parted, 1)] {
            let name = &Message::parse(&bytes).parts[place].file_name;
            assert_eq!(name.as_deref(), Some("R\u{e9}sum\u{e9}.pdf"), "{field}");
        }
    }
}

/// The parser of the parts reads a zone as three bytes, the end of the line among them.
#[test]
fn a_date_that_ends_with_a_short_word_leaves_the_next_field() {
    for zone in ["UT", "Z", "PM", "GMT", "+0000", "(x)"] {
        let header = format!("Date: Fri, 6 Mar 2026 12:31:00 {zone}\nFrom: a1b@x.example\n");
        let inner = format!("{header}Subject: inner\n\ntext\n");
        let message = parse(&format!(
            "{header}Resent-{header}Content-Type: message/rfc822\nTo: c@x.example\n\n{inner}"
        ));
        let PartContent::Message(inner) = &message.parts[0].content else { panic!("{message:?}") };
        for headers in [&message.headers, inner] {
            assert_eq!(headers.from[0].address, "a1b@x.example", "{zone}");
            assert_eq!(headers.date.map(|date| date.seconds), Some(1_772_800_260), "{zone}");
        }
        assert_eq!(message.headers.to[0].address, "c@x.example", "{zone}");
    }
}

#[test]
fn an_alternative_is_one_text() {
    let message = parse(
        "Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n\
         --a\nContent-Type: multipart/alternative; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\nplain\n--b\nContent-Type: text/html\n\n<p>html\n--b--\n\
         --a\nContent-Type: application/pdf; name=\"report.pdf\"\n\
         Content-Transfer-Encoding: base64\n\nUERG\n\
         --a\nContent-Type: message/rfc822\n\nSubject: inner\n\ninner text\n--a--\n",
    );
    assert_eq!(message.body_text(), "plain");
    let roles: Vec<_> = message.parts.iter().map(|part| (part.depth, part.role)).collect();
    assert_eq!(
        roles,
        [
            (0, PartRole::Container),
            (1, PartRole::Container),
            (2, PartRole::Body),
            (2, PartRole::AlternativeBody),
            (1, PartRole::Attachment),
            (1, PartRole::Attachment),
            (2, PartRole::Body),
        ]
    );
    assert_eq!(
        attachments(&message),
        [("application/pdf", Some("report.pdf")), ("message/rfc822", None)]
    );
    assert_eq!(message.parts[4].bytes(), Some(&b"PDF"[..]));
    let PartContent::Message(inner) = &message.parts[5].content else { panic!() };
    assert_eq!(inner.subject.as_deref(), Some("inner"));
}

/// The reports of mail servers are texts, and attachments with their bytes.
#[test]
fn reports_are_texts() {
    let text = "Subject: x\nContent-Type: multipart/report; boundary=a\n\n--a\n\nFailed\n";
    for (head, body, shown) in [
        ("delivery-status", "Diagnostic-Code: smtp; 550\r\n", Some("Diagnostic-Code: smtp; 550\n")),
        ("feedback-report", "Feedback-Type: abuse\n", Some("Feedback-Type: abuse\n")),
        (
            "global-delivery-status\nContent-Transfer-Encoding: base64",
            "Y2Fmw6k=",
            Some("caf\u{e9}"),
        ),
        ("partial", "a\0b", None),
    ] {
        let message = parse(&format!("{text}--a\nContent-Type: message/{head}\n\n{body}\n--a--\n"));
        let part = &message.parts[2];
        assert_eq!(part.plain_text().as_deref(), shown, "{head}");
        assert_eq!(part.is_report(), shown.is_some(), "{head}");
        assert_eq!(part.role, PartRole::Attachment, "{head}");
        assert_eq!(message.body_text(), "Failed", "{head}");
    }
}

/// A message in a message is saved with the bytes that it came with.
#[test]
fn messages_in_messages_have_their_bytes() {
    let inner = "Subject: inner\nX-Odd:  two  blanks\n\ntext\n";
    let encoded = "U3ViamVjdDogaW5uZXIKWC1PZGQ6ICB0d28gIGJsYW5rcwoKdGV4dAo=";
    for (encoding, body) in [("7bit", inner), ("base64", encoded)] {
        let bytes = format!(
            "Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\ntext\n\
             --a\nContent-Type: message/rfc822\nContent-Transfer-Encoding: {encoding}\n\n{body}\n--a--\n"
        );
        let source = Message::part_source(bytes.as_bytes(), 2).unwrap();
        assert_eq!(String::from_utf8(source).unwrap(), inner, "{encoding}");
        assert_eq!(Message::part_source(bytes.as_bytes(), 0), None);
        assert_eq!(Message::part_source(bytes.as_bytes(), 3), Some(b"text\n".to_vec()));
    }
}

/// An attached text is saved in its own character set, whatever it was decoded to.
#[test]
fn attached_texts_keep_their_bytes() {
    for (head, body, saved) in [
        (
            "Content-Type: text/plain; charset=iso-8859-1",
            &b"caf\xe9\r\nx"[..],
            &b"caf\xe9\r\nx"[..],
        ),
        ("Content-Type: text/csv\nContent-Transfer-Encoding: base64", b"Y2Fm6Q==", b"caf\xe9"),
        ("Content-Type: image/png\nContent-Transfer-Encoding: base64", b"SGVsbG8", b"Hello"),
        ("Content-Transfer-Encoding: quoted-printable", b"caf=E9=\n!", b"caf\xe9!"),
        ("Content-Transfer-Encoding: base64", b"no base64!", b"no base64!"),
    ] {
        let bytes = [format!("Subject: x\n{head}\n\n").as_bytes(), body].concat();
        let source = Message::part_source(&bytes, 0);
        assert_eq!(source.as_deref(), Some(saved), "{head}");
    }
}

#[test]
fn a_message_in_html_has_a_text() {
    let message = parse("Subject: x\nContent-Type: text/html\n\n<b>Hi</b> <p>you\n");
    assert_eq!(message.body_text(), "Hi\n\nyou\n");
    // Some programs write an empty text beside the HTML.
    let message = parse(
        "Subject: x\nContent-Type: multipart/alternative; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\n \n--b\nContent-Type: text/html\n\n<p>html\n--b--\n",
    );
    assert_eq!(message.body_text(), "html\n");
}

#[test]
fn wrong_and_missing_character_sets_are_guessed() {
    let mixed = |charset: &str, encoding: &str, body: &[u8]| {
        let head = format!(
            "Subject: x\nContent-Type: text/plain{charset}\nContent-Transfer-Encoding: {encoding}\n\n"
        );
        Message::parse(&[head.as_bytes(), body].concat())
    };
    let latin = b"Gr\xfc\xdfe aus K\xf6ln, sch\xf6ne Feiertage und viel Gl\xfcck";
    let german = "Gr\u{fc}\u{df}e aus K\u{f6}ln, sch\u{f6}ne Feiertage und viel Gl\u{fc}ck";
    assert_eq!(mixed("; charset=us-ascii", "8bit", latin).body_text(), german);
    for charset in ["", "; charset=utf-8", "; charset=no-such"] {
        let message = mixed(charset, "8bit", latin);
        assert_eq!(message.body_text(), german, "{charset}");
        assert_eq!(message.problems, [MessageProblem::BadCharset { part: 0 }], "{charset}");
    }
    let message = mixed("; charset=utf-8", "quoted-printable", b"Gr=FC=DFe aus K=F6ln");
    assert_eq!(message.body_text(), "Gr\u{fc}\u{df}e aus K\u{f6}ln");
    let message = mixed("; charset=ISO-2022-JP", "7bit", b"\x1b$B$3$s$K$A$O\x1b(B");
    assert_eq!(message.body_text(), "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}");
    assert_eq!(message.problems, []);
}

#[test]
fn a_header_of_raw_bytes_is_guessed() {
    let message = Message::parse(b"From: J\xf6rg <j@example.org>\nSubject: Gr\xfc\xdfe\n\nok\n");
    assert_eq!(message.headers.subject.as_deref(), Some("Gr\u{fc}\u{df}e"));
    assert_eq!(message.headers.from[0].to_string(), "J\u{f6}rg <j@example.org>");
    assert_eq!(message.problems, [MessageProblem::HeaderNotAscii]);
    // Words in UTF-8 are not read in the set that is guessed for the others.
    let message = Message::parse(b"Subject: Fr\xc3\xb6sche und \xd6l f\xfcr Gr\xfc\xdfe\n\nok\n");
    assert_eq!(
        message.headers.subject.as_deref(),
        Some("Fr\u{f6}sche und \u{d6}l f\u{fc}r Gr\u{fc}\u{df}e")
    );
}

/// C5 AB is a word of Korean, and C4 A3 one of Chinese, but valid UTF-8, too.
#[test]
fn east_asian_words_that_are_utf8_by_chance_are_in_the_character_set_of_the_others() {
    for (subject, expected) in [
        (b"\xc5\xab \xc1\xfd \xbe\xc8\xb3\xbb \xb8\xbb\xbe\xb8\xc0\xbb \xb5\xe5\xb8\xb3\xb4\xcf\xb4\xd9" as &[u8], "\u{d070} \u{c9d1} \u{c548}\u{b0b4} \u{b9d0}\u{c500}\u{c744} \u{b4dc}\u{b9bd}\u{b2c8}\u{b2e4}"),
        (b"\xc4\xa3 \xca\xbd \xca\xb6\xb1\xf0\xb5\xc4\xbb\xe1\xd2\xe9\xcd\xa8\xd6\xaa" as &[u8], "\u{6a21} \u{5f0f} \u{8bc6}\u{522b}\u{7684}\u{4f1a}\u{8bae}\u{901a}\u{77e5}"),
        (b"\xbb\xe1\xd2\xe9 \xc4\xa3\xca\xbd \xcd\xa8\xd6\xaa" as &[u8], "\u{4f1a}\u{8bae} \u{6a21}\u{5f0f} \u{901a}\u{77e5}"),
        (b"\xc5\xab \xc1\xfd \xbe\xc8\xb3\xbb \xb8\xbb\xbe\xb8\xc0\xbb \xb5\xe5\xb8\xb3\xb4\xcf\xb4\xd9 \xd0\xae\xd0\xbd\xd0\xb8\xd0\xba\xd0\xbe\xd0\xb4 Jos\xc3\xa9 \xec\xa7\x91", "\u{d070} \u{c9d1} \u{c548}\u{b0b4} \u{b9d0}\u{c500}\u{c744} \u{b4dc}\u{b9bd}\u{b2c8}\u{b2e4} \u{42e}\u{43d}\u{438}\u{43a}\u{43e}\u{434} Jos\u{e9} \u{c9d1}"),
    ] {
        let message = Message::parse(&[b"Subject: ", subject, b"\n\nok\n"].concat());
        assert_eq!(message.headers.subject.as_deref(), Some(expected));
    }
}

#[test]
fn raw_bytes_in_an_encoded_word_are_in_its_character_set() {
    let message = Message::parse(
        b"From: a@example.org\nTo: \"=?iso-8859-1?Q?M\xfcller?=\" <m@example.org>\n\
        Cc: =?windows-1251?q?\xcf\xf0=E8_x?= <p@example.org>\n\
        Subject: =? =?x?B?\xfc =?iso-8859-1?Q?Fr\xf6sche?= =?iso-8859-1?Q?_&_\xd6l?=\n\nok\n",
    );
    assert_eq!(message.headers.to[0].name.as_deref(), Some("M\u{fc}ller"));
    assert_eq!(message.headers.cc[0].name.as_deref(), Some("\u{41f}\u{440}\u{438} x"));
    let subject = message.headers.subject.unwrap();
    assert!(subject.ends_with("Fr\u{f6}sche & \u{d6}l"), "{subject}");
    let message = Message::parse(b"Subject: =?iso-8859-1?Q?Fr\xf6sche?=\n\nok\n");
    assert_eq!(message.headers.subject.as_deref(), Some("Fr\u{f6}sche"));
    assert_eq!(message.problems, []);
}

/// Files of mboxes, of old Macintoshes, and files that are no mail.
#[test]
fn unusual_files() {
    let message = parse("From anna Fri Mar  6 12:30:00 2026\nSubject: x\n\nbody\n");
    assert_eq!((message.headers.subject.as_deref(), message.problems.len()), (Some("x"), 0));
    let message = parse("Subject: x\rTo: a@example.org\r\rone\rtwo\r");
    assert_eq!(message.headers.to.len(), 1);
    assert_eq!(message.body_text(), "one\ntwo\n");
    assert_eq!(parse("Subject: x\r\n\r\none\r\ntwo\r\n").body_text(), "one\ntwo\n");
    for (text, body) in [("", ""), ("\n\n", ""), ("no header at all", "")] {
        let message = parse(text);
        assert_eq!(message.body_text(), body, "{text:?}");
        assert!(message.problems.contains(&MessageProblem::NoHeader), "{text:?}");
    }
}

#[test]
fn encrypted_and_signed_messages_are_told_apart() {
    for (head, is_encrypted, is_signed) in [
        ("Content-Type: text/plain", false, false),
        ("Content-Type: multipart/encrypted; boundary=x", true, false),
        (
            "Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\nMAsGCSqGSIb3DQEHAw==",
            true,
            false,
        ),
        (
            "Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: base64\n\nMAsGCSqGSIb3DQEHAg==",
            false,
            true,
        ),
        ("Content-Type: multipart/signed; boundary=x", false, true),
    ] {
        let body = if head.contains("base64") { "" } else { "\n--x\n\ntext\n--x--\n" };
        let message = parse(&format!("Subject: x\n{head}\n{body}"));
        assert_eq!(
            (message.is_encrypted(), message.is_signed()),
            (is_encrypted, is_signed),
            "{head}"
        );
    }
    for (front, is_encrypted) in
        [("", true), ("text\n", true), ("> ", false), ("> -----BEGIN PGP MESSAGE-----\n", true)]
    {
        let armor = "-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n";
        let message = parse(&format!("Subject: x\n\n{front}{armor}"));
        assert_eq!(message.is_encrypted(), is_encrypted, "{front}");
    }
}

/// A message of half a megabyte can contain thirty thousand messages, one in the other.
#[test]
fn messages_in_messages_need_bounded_stack() {
    for head in [
        "Content-Type: message/rfc822\n\n",
        "content-type: MESSAGE/Global\n\n",
        "Content-Type: multipart/digest; boundary=x\n\n--x\n\n",
        "Content-Type: message/rfc822\nContent-Transfer-Encoding: 7bit\n\n",
    ] {
        for repeated in [MAX_NESTED_MESSAGES, 30_000] {
            let message = parse(&(head.repeat(repeated) + "Subject: x\n\ninnermost\n"));
            assert!(message.parts.len() <= 2 * MAX_NESTED_MESSAGES + 2, "{}", message.parts.len());
            let is_cut = message.problems.contains(&MessageProblem::NestedTooDeep);
            assert_eq!(is_cut, repeated > MAX_NESTED_MESSAGES, "{head}");
        }
    }
    let deep: String = (0..20_000)
        .map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n"))
        .collect();
    assert!(parse(&deep).parts.len() > 1000);
}

/// Each file of the corpora is parsed, and what a plain search finds in its header is there.
#[test]
fn every_file_of_the_corpora_has_its_header() {
    let files = messages("every_file_of_the_corpora_has_its_header");
    if files.is_empty() {
        return;
    }
    let (mut count, mut ids, mut texts, mut damaged) = (0, 0, 0, Vec::new());
    for (path, bytes) in files {
        let message = Message::parse(&bytes);
        let name = path.display();
        count += 1;
        if let Some(id) = plain_message_id(&bytes) {
            assert_eq!(message.headers.message_id.as_deref(), Some(id.as_str()), "{name}");
            ids += 1;
        }
        texts += u32::from(!message.body_text().trim().is_empty());
        let shown = [message.headers.subject.clone().unwrap_or_default(), message.body_text()];
        if shown.iter().any(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
            damaged.push(name.to_string());
        }
    }
    assert!(count > 4100 && ids > 3900 && texts > 4000, "{count} files, {ids} IDs, {texts} texts");
    // These are cut off in a character, or their senders wrote U+FFFD.
    assert!(damaged.len() <= 4, "{damaged:#?}");
}

/// Returns the Message-ID that a search for one usual line finds.
fn plain_message_id(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n");
    let header = text.trim_start().split("\n\n").next()?.to_string();
    let mut lines = header.lines().filter(|line| line.to_lowercase().starts_with("message-id:"));
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let id = line.split_once(':')?.1.trim().strip_prefix('<')?.strip_suffix('>')?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>()\"\\".contains(&byte));
    (is_plain && id.contains('@')).then(|| id.to_string())
}

#[test]
fn a_picture_with_a_damaged_encoding_is_no_text() {
    let message = parse(
        "Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\ntext\n--a\n\
         Content-Type: image/jpeg\nContent-Transfer-Encoding: base64\n\naHR0cA==\n\nCheerio!\n--a--\n",
    );
    assert_eq!(message.problems, [MessageProblem::BadTransferEncoding { part: 2 }]);
    assert_eq!(message.parts[2].role, PartRole::Attachment);
    assert!(matches!(message.parts[2].content, PartContent::Binary(_)), "{message:?}");
    assert_eq!(message.body_text(), "text");
}

/// A message that ends before the boundary behind its last part.
#[test]
fn a_missing_end_is_no_damaged_encoding() {
    let head = "Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\nfirst\n--a\n";
    for (part, text, is_cut_off) in [
        ("Content-Type: text/plain\n\nlast", "last", true),
        ("Content-Type: text/plain\n\nlast\n--a--", "last", false),
        (
            "Content-Type: text/plain; charset=utf-8\n\
             Content-Transfer-Encoding: quoted-printable\n\nGr=C3=BC=\n=C3=9Fe",
            "Grüße",
            true,
        ),
        (
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n\
             ZGllIGpheHJlc3ByZWlzZSB2b24gZsO8bmY=\n",
            "die jaxrespreise von fünf\n",
            true,
        ),
    ] {
        let message = parse(&format!("{head}{part}"));
        assert_eq!(message.parts[2].plain_text().as_deref(), Some(text), "{part}");
        let expected = is_cut_off.then_some(MessageProblem::MissingEnd { part: 2 });
        assert_eq!(message.problems, expected.into_iter().collect::<Vec<_>>(), "{part}");
    }
    let source =
        format!("{head}Content-Type: image/png\nContent-Transfer-Encoding: base64\n\nUE5H\n");
    let message = parse(&source);
    assert_eq!(message.parts[2].content, PartContent::Binary(b"PNG".to_vec()));
    let problem = message.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(problem, ["part 3: its end is missing, the message may be cut off"]);
}

#[test]
fn a_footer_behind_base64_is_text() {
    let message = parse(
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n\n\
         dGhlIGFubnVhbCB3YWxydXMgYXVkaXQgaW4gWsO8cmljaAo=\n\n-- \nfooter of the list\n",
    );
    let text = message.body_text();
    assert!(text.starts_with("the annual walrus audit in Zürich\n"), "{text}");
    assert!(text.ends_with("footer of the list\n"), "{text}");
    let message = parse("Content-Transfer-Encoding: base64\n\nThis\nwhat? no.\n");
    assert!(message.body_text().starts_with("This\n"));
    // Letters are digits of base64.
    let padded = "dGhlIGFubnVhbCB3YWxydXMgYXVkaXQgaW4gWsO8cmljaAo=";
    let whole = "dGhlIGFubnVhbCB3YWxydXMgYXVkaXQgaW4gU2VvdWwK";
    for (encoded, gap, footer) in [
        (padded, "\n", "This list is hosted by example org"),
        (padded, "\n", "regards\nAnna"),
        (padded, "\r\n\r\n", "regards\r\nAnna"),
        (whole, "\n\n", "This list is hosted by example org"),
    ] {
        let message = parse(&format!(
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n\
             {encoded}{gap}{footer}\n"
        ));
        let text = message.body_text();
        assert!(text.starts_with("the annual walrus audit in "), "{footer}: {text}");
        assert!(text.ends_with(&format!("{}\n", footer.replace('\r', ""))), "{text}");
        let problems: Vec<String> = message.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["part 1: the transfer encoding is damaged"]);
    }
    // Texts in base64, one behind the other, and lines that are padded one by one, have no footer.
    for blocks in [
        [whole, padded].join("\n"),
        [whole, padded].join("\n\n"),
        [padded, padded, padded].join("\n"),
        ["YQ==", "Yg==", padded].join("\n"),
        [padded, "WsO8cmljaAo="].join("\n\n"),
    ] {
        let head = "Content-Transfer-Encoding: base64\n\n";
        let message = parse(&format!("{head}{blocks}\n"));
        assert!(message.body_text().ends_with("Zürich\n"), "{}", message.body_text());
        assert_eq!(message.problems, [], "{blocks}");
    }
}

/// Some programs leave out the padding: all digits count.
#[test]
fn base64_without_padding_is_whole() {
    let head = "Content-Transfer-Encoding: base64\n\n";
    for (encoded, text) in [("SGVsbG8", "Hello"), ("SGVs\nbG8gdG9kYXk\n", "Hello today")] {
        let message = parse(&format!("{head}{encoded}"));
        assert_eq!((message.body_text().as_str(), message.problems.len()), (text, 0));
        let message = parse(&format!("Content-Type: image/png\n{head}{encoded}"));
        assert_eq!(message.parts[0].bytes(), Some(text.as_bytes()));
        let message = parse(&format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n{head}{encoded}\n--b--\n"
        ));
        assert_eq!(message.body_text(), text);
    }
}

/// A boundary ends a header, too: a part without a body, and a message of which the header is left.
#[test]
fn a_boundary_ends_the_header_of_a_part() {
    let attached = |name: &str| {
        format!(
            "--b\nContent-Type: message/rfc822; name={name}\n\
             Content-Disposition: attachment\n\n\
             Subject: {name}\nContent-Type: multipart/mixed; boundary=gone\n"
        )
    };
    let source = format!(
        "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n\
         {}{}--b\nContent-Type: application/pdf; name=empty\n{}--b--\n",
        attached("one"),
        attached("two"),
        attached("three")
    );
    for source in [source.clone(), source.replace('\n', "\r\n")] {
        let message = parse(&source);
        let names: Vec<_> =
            message.attachments().filter_map(|(_, part)| part.file_name.as_deref()).collect();
        assert_eq!(names, ["one", "two", "empty", "three"]);
        for (place, part) in message.attachments().filter(|(_, part)| part.file_name.is_some()) {
            let bytes = Message::part_source(source.as_bytes(), place).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            match part.file_name.as_deref() {
                Some("empty") => assert_eq!(text, ""),
                name => {
                    let header = attached(name.unwrap());
                    let (_, header) = header.split_once("\n\n").unwrap();
                    assert_eq!(text.replace('\r', ""), header);
                }
            }
        }
        assert_eq!(message.body_text().trim_end(), "text");
    }
    // The pieces that identify the message are of its own bytes, and never change.
    let mut pieces = Vec::new();
    let _message = Message::parse_with(source.as_bytes(), &mut |piece| pieces.push(piece.to_vec()));
    let pieces: Vec<_> = pieces.iter().map(|piece| String::from_utf8_lossy(piece)).collect();
    let rest = "Subject: three\nContent-Type: multipart/mixed; boundary=gone\n--b--\n";
    assert_eq!(pieces, ["x", "text", rest]);
}

/// An attachment that looks like a message is saved as it is.
#[test]
fn the_source_of_a_part_has_no_further_bytes() {
    let text = "From: a\nContent-Type: multipart/mixed; boundary=c\n\n--c\nX: y\n--c--\n\n=3D";
    for kind in ["text/plain", "application/octet-stream", "message/rfc822", "text/rfc822-headers"]
    {
        for encoding in ["8bit", "quoted-printable"] {
            if encoding != "8bit" && !kind.starts_with("text/") {
                continue;
            }
            let source = format!(
                "Content-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n\
                 Content-Type: {kind}\nContent-Disposition: attachment; filename=f\n\
                 Content-Transfer-Encoding: {encoding}\n\n{text}\n--b--\n"
            );
            let expect = match encoding {
                "8bit" => text.to_string(),
                _ => text.replace("=3D", "="),
            };
            let saved = Message::part_source(source.as_bytes(), 2).unwrap();
            let saved = String::from_utf8(saved).unwrap();
            assert_eq!(saved.trim_end(), expect, "{kind} {encoding}");
        }
    }
}

/// A message may have no more than a header, and empty fields.
#[test]
fn a_header_alone_is_a_message_without_damage() {
    for source in [
        "From: x@y.example\nSubject: a\n",
        "From: x@y.example\nSubject: a",
        "Subject: a\nContent-Transfer-Encoding: base64\n",
    ] {
        let message = parse(source);
        assert_eq!((message.problems, message.parts.len()), (Vec::new(), 1), "{source}");
        assert_eq!(message.parts[0].role, PartRole::Body, "{source}");
    }
    assert_eq!(parse("Subject: \n\nbody\n").problems, []);
    assert_eq!(parse("X-Nothing: \n\nbody\n").problems, [MessageProblem::NoHeader]);
}

#[test]
fn the_first_header_of_a_priority_decides() {
    let priority = |header: &str| parse(&format!("{header}\n\ntext\n")).headers.priority;
    assert_eq!(priority("Importance: high"), Some(MessagePriority::High));
    assert_eq!(priority("Importance: high\nX-Priority: 5 (Lowest)"), Some(MessagePriority::Low));
    assert_eq!(priority("Precedence: special\nX-Priority: 1"), None);
}

#[test]
fn a_media_type_ends_at_white_space() {
    let message = parse("Content-Type: TEXT/PLAIN charset=US-ASCII\n\ntext\n");
    assert_eq!(message.parts[0].media_type, "text/plain");
    assert!(!message.parts[0].is_declared_attachment);
    let message = parse("Content-Type: text/csv\nContent-Disposition: Attachment\n\n1\n");
    assert!(message.parts[0].is_declared_attachment);
}

/// Programs of the time before MIME wrote so, under several names.
#[test]
fn parts_in_uuencode_are_decoded() {
    let parts = "--b\nContent-Transfer-Encoding: X-UUencode\nContent-Type: text/plain\n\n\
         begin 644 note.txt\n#0V%T\n`\nend\n\
         --b\nContent-Type: application/zip\nContent-Transfer-Encoding: x-uue\n\n\
         begin 600 a.zip\n#0V%T\n`\nend\n\
         --b\nContent-Type: text/plain\nContent-Transfer-Encoding: uuencode\n\nno such text\n--b--\n";
    let source = format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}");
    let message = parse(&source);
    assert_eq!(message.body_text(), "Cat\nno such text");
    assert_eq!(message.parts[2].content, PartContent::Binary(b"Cat".to_vec()));
    assert_eq!(message.problems, [MessageProblem::BadTransferEncoding { part: 3 }]);
    for place in [1, 2] {
        assert_eq!(Message::part_source(source.as_bytes(), place).unwrap(), b"Cat");
    }
    // The character set is that of the content.
    let message = parse(
        "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: x-uuencode\n\n\
         begin 644 x\n&6OQR:6-H\n`\nend\n",
    );
    assert_eq!(message.body_text(), "Zürich");
}

/// Each part is looked up among those of the text, and in the list of the texts in HTML.
#[test]
fn messages_of_very_many_parts_take_linear_time() {
    let parts = 300_000;
    let texts = "--b\n\na\n".repeat(parts / 3 * 2);
    let pages = "--b\nContent-Type: text/html\n\na\n".repeat(parts / 3);
    let message =
        parse(&format!("Content-Type: multipart/mixed; boundary=b\n\n{texts}{pages}--b--\n"));
    assert_eq!(message.parts.len(), parts + 1);
    assert_eq!(message.body_parts().count(), parts);
}
