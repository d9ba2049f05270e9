//! What is extracted from messages.

use larder_extract::message_flags::MessageFlag;
use larder_extract::{HEADER_POSITIONS, MessageExtractor, MessageTermField};

/// Returns the words of all text of a message, in the order of their visits.
fn text_words(bytes: &str) -> Vec<String> {
    let mut extractor = MessageExtractor::new(&[]);
    let document = extractor.extract(bytes.as_bytes(), 0);
    let mut words = Vec::new();
    extractor.for_each_term(&document, |field, word, _| {
        if field == MessageTermField::Text as u8 {
            words.push(String::from_utf8(word.to_vec()).unwrap());
        }
    });
    words
}

/// Each text is looked up among those of the body.
#[test]
fn messages_of_very_many_parts_take_linear_time() {
    let (body, attached) = ("--b\n\na\n".repeat(200_000), "--b\nContent-Type: text/csv\n\nb\n");
    let head = "Content-Type: multipart/mixed; boundary=b\n\n";
    let words = text_words(&format!("{head}{body}{attached}--b--\n"));
    // Texts are far away from each other, and a message has a limited number of positions.
    assert!(words.len() > 1000, "{}", words.len());
    assert_eq!(words.last().map(String::as_str), Some("b"));
}

/// As mu and notmuch have it, measured with both: they take a message in a transfer encoding for a
/// file.
#[test]
fn an_attached_message_in_base64_is_an_attachment() {
    let declared = "Content-Disposition: attachment; filename=f.eml\n";
    let base64 = "Content-Transfer-Encoding: base64\n";
    let quoted = "Content-Transfer-Encoding: quoted-printable\n";
    for (fields, content, is_attachment) in [
        (format!("{declared}{base64}"), "U3ViamVjdDogeAoKdGV4dAo=", true),
        (format!("{declared}{quoted}"), "Subject: x\n\ntext", true),
        (declared.to_string(), "Subject: x\n\ntext", false),
        (base64.to_string(), "U3ViamVjdDogeAoKdGV4dAo=", false),
    ] {
        let source = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n\
             --b\nContent-Type: message/rfc822\n{fields}\n{content}\n--b--\n"
        );
        let document = MessageExtractor::new(&[]).extract(source.as_bytes(), 0);
        assert_eq!(document.flags.contains(MessageFlag::Attachment), is_attachment, "{source}");
    }
}

/// Of a mail that came directly and through a list, the list is to be found.
#[test]
fn the_copy_of_a_list_comes_first() {
    let rank = |source: String| {
        MessageExtractor::new(&[]).extract(source.as_bytes(), 0).summary.copy_rank()
    };
    for number in 0..20 {
        let mail = |header: &str, day: u32| {
            format!("Message-ID: <{number}>\nDate: {day} Jan 2020 10:00:00 +0000\n{header}\nx\n")
        };
        let (list, direct) = ("List-Id: <l.example>\n", "");
        assert!(rank(mail(list, 2)) < rank(mail(direct, 2)), "{number}");
        assert!(rank(mail(direct, 1)) < rank(mail(list, 2)), "{number}");
    }
}

fn text_hash(source: &[u8]) -> u64 {
    MessageExtractor::new(&[]).extract(source, 0).summary.text_hash
}

/// `data.db` keeps the hashes with labels: a number here that changes takes labels from messages.
#[test]
fn the_hashes_of_texts_never_change() {
    let mixed = b"Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
        <p>Gr=FC=DFe</p>\n--b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n\
        JVBERi0=\n--b\nContent-Type: message/rfc822\n\nSubject: inner\n\ntext\n--b--\n";
    for (source, hash) in [
        (b"\n" as &[u8], 0x2d06_8005_38d3_94c2),
        (b"From: Anna <a@x.example>\nTo: b@x.example\nSubject: x\n\ntext\n", 0x939e_1e2e_fc25_701a),
        // EUC-KR in the header and the body, without a declaration; Q with raw bytes.
        (
            b"Subject: \xc5\xab \xc1\xfd \xbe\xc8\xb3\xbb\n\n\xc5\xab \xc1\xfd\n",
            0x6c22_284a_8328_c634,
        ),
        (b"Subject: =?iso-8859-1?Q?Fr\xf6sche?=\n\ntext\n", 0x43ae_d038_dc6c_ea72),
        (
            b"Subject: x\nContent-Transfer-Encoding: uuencode\n\nbegin 644 a\n#0V%T\n`\nend\n",
            0x3bea_6c9d_e647_6e6c,
        ),
        (mixed, 0xdc79_dab7_4aca_68ac),
    ] {
        let text = String::from_utf8_lossy(source);
        assert_eq!(text_hash(source), hash, "{:#x}: {text}", text_hash(source));
    }
}

#[test]
fn servers_on_the_way_do_not_make_another_text() {
    let message = |header: &str, encoding: &str, body: &[u8]| {
        let fields = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding";
        let head = format!("{header}\n{fields}: {encoding}\n\n");
        text_hash(&[head.as_bytes(), body].concat())
    };
    let header = "From: Anna <a@x.example>\nTo: b@x.example, c@x.example\nSubject: two words";
    let raw = b"Gr\xfc\xdfe\nund so weiter\n";
    let known = message(header, "8bit", raw);
    for (header, encoding, body) in [
        (header, "quoted-printable", b"Gr=FC=DFe\nund so =\nweiter\n" as &[u8]),
        (header, "base64", b"R3L832UKdW5kIHNvIHdlaXRlcgo=\n"),
        (header, "base64", b"R3L832UNCnVuZCBzbyB3ZWl0ZXINCg==\n"),
        (
            "Received: x\nX-Y: z\nTo: b@x.example,\n\t\"C\" <c@x.example>\nFrom: a@x.example\n\
          SUBJECT: two\n words",
            "8bit",
            raw,
        ),
    ] {
        assert_eq!(message(header, encoding, body), known, "{header}: {encoding}");
    }
    let windows = [header.as_bytes(), b"\n\ntext\n"].concat();
    let lines = String::from_utf8(windows.clone()).unwrap().replace('\n', "\r\n");
    assert_eq!(text_hash(&windows), text_hash(lines.as_bytes()));
    for header in [
        header.replace("two words", "two word"),
        header.replace("a@x", "d@x"),
        header.replace(", c@", ", d@"),
    ] {
        assert_ne!(message(&header, "8bit", raw), known, "{header}");
    }
    assert_ne!(message(header, "8bit", b"Gr\xfc\xdfe\nund so fort\n"), known);
}

/// The texts of addresses have room in the positions of the header, however many there are.
#[test]
fn the_last_of_very_many_recipients_is_found() {
    for count in [3_000, 20_000] {
        let recipients =
            (0..count).map(|at| format!("Person P{at} <user{at}@host{at}.example.org>"));
        let recipients = recipients.collect::<Vec<_>>().join(",\n ");
        let bytes = format!("Subject: x\nTo: {recipients}\nCc: Last One <last@example.org>\n\nx\n");
        let mut extractor = MessageExtractor::new(&[]);
        let document = extractor.extract(bytes.as_bytes(), 0);
        let (mut found, mut positions) = (Vec::new(), Vec::new());
        let last = format!("user{}", count - 1);
        extractor.for_each_term(&document, |field, word, position| {
            if [last.as_bytes(), b"last"].contains(&word) && position.is_some() {
                found.push((char::from(field), String::from_utf8_lossy(word).into_owned()));
                positions.extend(position);
            }
        });
        for (field, word) in [('t', &*last), ('w', &*last), ('c', "last"), ('w', "last")] {
            assert!(found.contains(&(field, word.to_string())), "{field}:{word}: {found:?}");
        }
        assert!(positions.iter().all(|position| *position < HEADER_POSITIONS.end));
    }
}
