//! Header fields in character sets: encoded words (RFC 2047) and parameters in pieces (RFC 2231).

use larder_format::message::Message;

fn parse(text: impl AsRef<[u8]>) -> Message {
    Message::parse(text.as_ref())
}

fn subject(value: &str) -> String {
    let message = parse(format!("Subject: {value}\nFrom: a@example.org\n\nx\n"));
    let subject = message.headers.subject.unwrap_or_default();
    // All header fields are searched, too.
    let field = message.header_fields.iter().next();
    assert_eq!(field, Some(("subject", subject.as_str())), "{value}");
    subject
}

fn file_name(fields: &str) -> Option<String> {
    let message = parse(format!("Subject: x\n{fields}\n\nx\n"));
    message.parts[0].file_name.clone()
}

#[test]
fn a_character_may_be_divided_between_two_words() {
    for (value, expected) in [
        ("=?utf-8?Q?Gr=C3=BC=C3?= =?utf-8?Q?=9Fe?=", "Grüße"),
        ("=?utf-8?Q?Gr=C3=BC=C3?=\n\t=?UTF-8?q?=9Fe?=\n und", "Grüße und"),
        ("=?utf-8?B?R3LDvMM=?= =?utf-8?Q?=9Fe?=", "Grüße"),
        ("=?utf-8?Q?a=C3?= =?iso-8859-1?Q?=FC?=", "a\u{fffd}ü"),
        ("=?utf-8*de?Q?Gr=C3?==?utf-8?Q?=BCn?=", "Grün"),
        ("=?iso-2022-jp?B?GyRCRnwbKEI=?= =?iso-2022-jp?B?GyRCS1wbKEI=?=", "日本"),
        ("=?iso-2022-jp?B?GyRCRg==?= =?iso-2022-jp?B?fEtcGyhC?=", "日本"),
        ("=?euc-kr?B?x9Gx?= =?euc-kr?B?2w==?=", "한글"),
    ] {
        assert_eq!(subject(value), expected, "{value}");
    }
}

#[test]
fn text_beside_words_stays_as_it_is() {
    for (value, expected) in [
        ("[=?utf-8?Q?t=C3=A4g?=]", "[täg]"),
        ("Re:=?utf-8?Q?t=C3=A4g?= (=?utf-8?Q?a?=) b", "Re:täg (a) b"),
        ("=?utf-8?Q?a_b?=  c =?utf-8?Q?d\n e?=", "a b c de"),
        ("a =?b? =?utf-8?Q?c", "a =?b? =?utf-8?Q?c"),
        ("=?utf-8?X?a?= =?utf-8?B?!?=", "=?utf-8?X?a?= =?utf-8?B?!?="),
        ("=?utf-8?Q?=?= =?utf-8?Q??=x", "x"),
        ("=?utf-8?B?w6TDtg==w7w?=", "äöü"),
    ] {
        assert_eq!(subject(value), expected, "{value}");
    }
}

#[test]
fn names_of_people_and_lists_have_divided_characters() {
    let message = parse(
        "From: =?utf-8?Q?J=C3?= =?utf-8?Q?=B6rg?= Berg <j@example.org>,\n \
         \"=?utf-8?Q?M=C3?=\n =?utf-8?Q?=BCller,_?= =?utf-8?Q?Eva?=\" <e@example.org>\n\
         To: =?cp932?B?k/qWew==?= <n@example.org>, Leute: =?utf-8?Q?=C3?= =?utf-8?Q?=84nne?= \
         <a@example.org>;\n\
         Cc: [=?utf-8?Q?M=C3=BCx?=]o <m@example.org>, =?utf-8?Q?=22Q=22_=28r=29?= <q@example.org>\n\
         List-Id: =?utf-8?Q?=C3?= =?utf-8?Q?=84pfel?= <x.example.org>\n\nx\n",
    );
    let headers = &message.headers;
    assert_eq!(headers.from[0].to_string(), "Jörg Berg <j@example.org>");
    assert_eq!(headers.from[1].to_string(), "Müller, Eva <e@example.org>");
    assert_eq!(headers.to[0].to_string(), "日本 <n@example.org>");
    assert_eq!(headers.to[1].to_string(), "Änne <a@example.org>");
    assert_eq!(headers.cc[0].to_string(), "[Müx]o <m@example.org>");
    assert_eq!(headers.cc[1].to_string(), "\"Q\" (r) <q@example.org>");
    assert_eq!(headers.list_id.as_deref(), Some("x.example.org"));
}

#[test]
fn header_fields_have_the_character_sets_of_texts() {
    for (value, expected) in [
        ("=?cp932?B?k/qWew==?=", "日本"),
        ("=?cp949?B?x9Gx2w==?=", "한글"),
        ("=?ms949?Q?=C7=D1=B1=DB?=", "한글"),
        ("=?cp950?B?pKSk5Q==?=", "中文"),
        ("=?cp874?Q?=E4=B7=C2?=", "ไทย"),
        ("=?iso-2022-kr?B?GyQpQw5HUTFbDw==?=", "한글"),
        ("=?iso-2022-jp-2?B?GyRBPHIbKEI=?=", "简"),
        ("=?utf-32be?B?AAAA/A==?=", "ü"),
        ("=?cp437?Q?M=81ller?=", "Müller"),
        ("=?x-unknown?Q?M=C3=BCller?=", "Müller"),
    ] {
        assert_eq!(subject(value), expected, "{value}");
    }
}

#[test]
fn texts_have_the_character_sets_of_header_fields() {
    for (charset, bytes, expected) in [
        ("cp932", &b"\x93\xfa\x96{"[..], "日本"),
        ("iso-2022-kr", b"\x1b$)C\x0eGQ1[\x0f", "한글"),
        ("iso-2022-jp-2", b"\x1b$A<r\x1b(B", "简"),
        ("utf-32", b"\0\0\xfe\xff\0\0\0\xfc", "ü"),
        ("cp437", b"M\x81ller", "Müller"),
    ] {
        let header = format!("Subject: x\nContent-Type: text/plain; charset={charset}\n\n");
        let message = parse([header.as_bytes(), bytes].concat());
        assert_eq!(message.body_text(), expected, "{charset}");
        assert_eq!(message.problems, [], "{charset}");
    }
}

#[test]
fn a_character_may_be_divided_between_two_pieces_of_a_file_name() {
    for (fields, expected) in [
        (
            "Content-Disposition: attachment; filename*0*=UTF-8''Vertrag%20f%C3;\n \
             filename*1*=%BCr%20M%C3%BCller.pdf",
            "Vertrag für Müller.pdf",
        ),
        (
            "Content-Type: application/pdf;\n name=\"=?utf-8?Q?Rechnung_M=C3=A4?=\n \
             =?utf-8?Q?rz.pdf?=\"",
            "Rechnung März.pdf",
        ),
        (
            "Content-Type: application/pdf; name=\"=?utf-8?Q?M=C3?= =?utf-8?Q?=A4rz.pdf?=\"",
            "März.pdf",
        ),
        (
            "Content-Type: application/pdf; name==?utf-8?Q?M=C3?=\n =?utf-8?Q?=A4rz.pdf?=; x=y",
            "März.pdf",
        ),
        (
            "Content-Disposition: attachment; FileName*1=\".pdf\"; filename*0*=utf-8'de'M%C3%A4rz",
            "März.pdf",
        ),
        (
            "Content-Disposition: attachment; filename=\"M_rz.pdf\"; filename*=utf-8''M%C3%A4rz.pdf",
            "März.pdf",
        ),
        (
            "Content-Disposition: attachment; filename*0=\"=?utf-8?Q?M=C3?=\"; \
             filename*1=\"=?utf-8?Q?=A4rz.pdf?=\"",
            "März.pdf",
        ),
        ("Content-Disposition: attachment; filename*=cp932''%93%FA%96%7B.txt; size=3", "日本.txt"),
        ("Content-Disposition: attachment; filename=\"a*b \\\"c\\\".txt\"", "a*b \"c\".txt"),
        ("Content-Disposition: attachment; filename*=plain%20text.txt", "plain text.txt"),
    ] {
        assert_eq!(file_name(fields).as_deref(), Some(expected), "{fields}");
    }
}
