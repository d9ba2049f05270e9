//! The messages of mbox files.

use larder_format::mbox::{
    MboxMessage, MboxScanner, MboxSection, first_message, format_message, hash_message,
    is_message_end, strip_status, unquote,
};
use proptest::prelude::*;

/// Scans a file, given in pieces of a size.
fn scan(file: &[u8], piece: usize) -> Vec<MboxMessage> {
    let mut scanner = MboxScanner::new(0);
    let mut found = Vec::new();
    let mut is_end = |at| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        at <= file.len() && is_message_end(&file[at..])
    };
    for bytes in file.chunks(piece) {
        scanner.push(bytes, &mut is_end);
        found.extend(scanner.take_messages());
    }
    found.extend(scanner.finish());
    found
}

fn bytes_of(file: &[u8], message: &MboxMessage) -> Vec<u8> {
    let start = usize::try_from(message.section.offset).expect("a test file is small");
    file[start..start + usize::try_from(message.section.length).expect("a test file is small")]
        .to_vec()
}

/// Returns the messages with their flags, and checks what is true of every file.
fn texts(file: &[u8]) -> Vec<(String, String)> {
    let found = scan(file, file.len().max(1));
    for piece in [1, 7] {
        assert_eq!(scan(file, piece), found, "in pieces of {piece}");
    }
    let text = |one: &MboxMessage| {
        let bytes = bytes_of(file, one);
        assert_eq!(hash_message(&strip_status(&bytes)), one.section.hash);
        let name = one.section.to_name(one.flags);
        assert_eq!(MboxSection::parse_name(name.as_bytes()), Some(one.section), "{name}");
        (String::from_utf8_lossy(&bytes).into_owned(), one.flags.to_string())
    };
    found.iter().map(text).collect()
}

const DAY: &str = "Thu Jan  1 10:20:30 2015";

#[test]
fn messages_are_found() {
    for (name, file, expected) in [
        (
            "two",
            format!("From a {DAY}\nA: 1\n\nx\n\nFrom b {DAY}\nB: 2\n\ny\n"),
            vec!["A: 1\n\nx\n", "B: 2\n\ny\n"],
        ),
        ("an empty line at the end", format!("From a {DAY}\nA: 1\n\nx\n\n"), vec!["A: 1\n\nx\n"]),
        ("no line end", format!("From a {DAY}\nA: 1\n\nx"), vec!["A: 1\n\nx"]),
        (
            "CR LF",
            format!("From a {DAY}\r\nA: 1\r\n\r\nx\r\n\r\nFrom -\r\nB: 1\r\n"),
            vec!["A: 1\r\n\r\nx\r\n", "B: 1\r\n"],
        ),
        (
            "a sentence",
            format!("From a {DAY}\nA: 1\n\nx\n\nFrom the sea\n"),
            vec!["A: 1\n\nx\n\nFrom the sea\n"],
        ),
        (
            "a date without an empty line",
            format!("From a {DAY}\nA: 1\n\nx\nFrom b {DAY}\nB:\n"),
            vec!["A: 1\n\nx\n", "B:\n"],
        ),
        (
            "a time without an empty line",
            format!("From a {DAY}\nA: 1\n\nx\nFrom 10:20 on\n"),
            vec!["A: 1\n\nx\nFrom 10:20 on\n"],
        ),
        (
            "the form of Gmail",
            "From 1@xxx Thu Jan 01 10:20:30 +0000 2015\r\nA: 1\r\n\r\nFrom \r\nB: 1\r\n".into(),
            vec!["A: 1\r\n", "B: 1\r\n"],
        ),
        (
            "a length",
            format!("From a\nContent-Length: 43\n\nx\n\nFrom b {DAY}\nsubject\n\nFrom -\nC: 1\n"),
            vec![&*format!("Content-Length: 43\n\nx\n\nFrom b {DAY}\nsubject\n"), "C: 1\n"],
        ),
        (
            "a wrong length",
            format!("From a\nContent-Length: 30\n\nx\n\nFrom b {DAY}\nB: 1\n"),
            vec!["Content-Length: 30\n\nx\n", "B: 1\n"],
        ),
        ("nothing", "From a\n\nFrom \n\n\n".into(), vec![]),
    ] {
        let found: Vec<String> = texts(file.as_bytes()).into_iter().map(|(text, _)| text).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn states_are_read_and_are_no_part_of_the_hash() {
    let hash = scan(b"From a\nA: 1\n\nx\n", 99)[0].section.hash;
    for (fields, flags, is_same) in [
        ("Status: RO\n", "seen", true),
        ("STATUS: O\nX-Status: AFTD\n", "draft flagged replied trashed", true),
        (
            "X-Mozilla-Status: 1007\nX-Mozilla-Status2: 00000000\n",
            "flagged passed replied seen",
            true,
        ),
        ("X-Status: F\n folded\n", "flagged", true),
        ("X-Gmail-Labels: Inbox,\n Starred\n", "flagged seen", false),
        ("X-Gmail-Labels: Unread\n", "", false),
        ("Statuses: R\n", "", false),
    ] {
        let file = format!("From a\n{fields}A: 1\n\nx\n");
        let found = texts(file.as_bytes());
        assert_eq!(found[0].1, flags, "{fields}");
        let found = scan(file.as_bytes(), 99)[0].section.hash;
        assert_eq!(found == hash, is_same, "{fields}");
    }
    let expunged = scan(b"From a\nX-Mozilla-Status: 0009\n\nx\n\nFrom -\nStatus: R\n\n", 99);
    assert_eq!(expunged.iter().map(|one| one.is_expunged).collect::<Vec<_>>(), [true, false]);
    // The text may have such a line.
    assert_eq!(strip_status(b"Status: R\nA: 1\n\nStatus: R\n"), b"A: 1\n\nStatus: R\n");
}

#[test]
fn quoted_lines_are_unquoted_unless_none_is() {
    for (text, expected) in [
        ("A: 1\n\n>From a\n>>From b\n> From c\n", "A: 1\n\nFrom a\n>From b\n> From c\n"),
        ("A: 1\n\n>From a\nFrom b\n", "A: 1\n\n>From a\nFrom b\n"),
        ("A: 1\n\nx\n", "A: 1\n\nx\n"),
    ] {
        let mut message = text.as_bytes().to_vec();
        unquote(&mut message);
        assert_eq!(String::from_utf8(message).unwrap(), expected);
    }
}

#[test]
fn dates_of_delivery_have_many_forms() {
    for (line, date) in [
        ("From a Thu Jan  1 00:00:01 1970", 1),
        ("From a@b Sat Feb 29 10:20:30 2020", 1_582_971_630),
        ("From 12@xxx Sat Feb 29 11:20:30 +0100 2020", 1_582_971_630),
        ("From - Sat, 29 Feb 2020 10:20:30 +0000", 1_582_971_630),
        ("From a Sat Feb 29 10:20 2020", 1_582_971_600),
        ("From may 5", 0),
        ("From a Sat Feb 29 25:20:30 2020", 0),
        ("From", 0),
    ] {
        let found = scan(format!("{line}\nA: 1\n").as_bytes(), 99);
        assert_eq!(found.first().map_or(0, |one| one.section.date), date, "{line}");
    }
    for name in ["1.2+3:2,S", "1.2+3,H=1:2,", "x", "1.02+3,H=0000000000000001:2,"] {
        assert_eq!(MboxSection::parse_name(name.as_bytes()), None, "{name}");
    }
}

/// A line has any length.
#[test]
fn long_lines_are_read_in_pieces() {
    let long = "x".repeat(200_000);
    let file =
        format!("From {long} {DAY}\nA: {long}\nStatus: {long}\nB: 1\n\n{long}\n\nFrom -\nC: 1\n");
    let found = texts_of_long(file.as_bytes());
    assert_eq!(found, [format!("A: {long}\nStatus: {long}\nB: 1\n\n{long}\n"), "C: 1\n".into()]);
}

fn texts_of_long(file: &[u8]) -> Vec<String> {
    let found = scan(file, 1000);
    assert_eq!(scan(file, file.len()), found);
    let text = |one: &MboxMessage| {
        let bytes = bytes_of(file, one);
        assert_eq!(hash_message(&strip_status(&bytes)), one.section.hash);
        String::from_utf8(bytes).expect("the text is UTF-8")
    };
    found.iter().map(text).collect()
}

proptest! {
    /// Any file is read alike in any pieces, and its messages do not overlap.
    #[test]
    fn any_file_is_read(parts in prop::collection::vec(prop::sample::select(vec![
        "From a Thu Jan  1 10:20:30 2015\n", "From \n", "From x\n", "\n", "\r\n", "A: 1\n",
        "Status: RO\n", " folded\n", "Content-Length: 9\n", "Content-Length: 99999999999\n", "text",
        "\0", ">From a\n", "X-Mozilla-Status: 0008\n",
    ]), 0..30)) {
        let file = parts.concat().into_bytes();
        texts(&file);
        let mut end = 0;
        for one in scan(&file, 3) {
            prop_assert!(one.section.offset >= end);
            end = one.section.offset + one.section.length;
            prop_assert!(end <= file.len() as u64);
        }
    }
}

#[test]
fn the_first_message_of_a_file_is_found() {
    let file = b"From a@x Mon Nov 30 10:00:00 2020\nSubject: 1\n\nfirst\n\n\
                 From b@x Mon Nov 30 11:00:00 2020\nSubject: 2\n\nsecond\n";
    let (place, count) = first_message(file).unwrap();
    assert_eq!((&file[place], count), (&b"Subject: 1\n\nfirst\n"[..], 2));
    assert_eq!(first_message(b"From a@x\nSubject: 1\n\nx\n"), Some((9..23, 1)));
    assert_eq!(first_message(b"From a\n\n"), None);
    assert_eq!(first_message(b"Subject: 1\n\nFrom x\n"), None);
    let text = b"From a@x\nSubject: 1\n\nWhen?\n\nFrom 10:30 on we meet.\nAnna\n";
    assert_eq!(first_message(text), None);
    // Each length leads to a run of empty lines.
    let header = "From \nContent-Length: 1000000\n\n";
    let hostile = [header.repeat(5_000), "\n".repeat(5_000_000), "x".into()].concat();
    assert_eq!(first_message(hostile.as_bytes()).map(|(_, count)| count), Some(1));
}

/// A file of messages has them as they were, whatever their lines begin with.
#[test]
fn messages_come_back_from_a_file() {
    let messages: [&[u8]; 4] = [
        b"Subject: 1\n\nFrom here\n>From there\n\nFrom x Mon Nov 30 10:00:00 2020\n",
        b"Subject: 2\r\n\r\n>>From a\r\n",
        b"Subject: 3\n\nno end of line",
        b"Subject: 4\n\n>From only\n",
    ];
    let time = "Mon Nov 30 10:00:00 2020";
    let parts = messages.map(|message| format_message(message, "a@x", time));
    let file = parts.concat();
    let mut scanner = MboxScanner::new(0);
    scanner.push(&file, &mut |_| false);
    let found = scanner.finish();
    assert_eq!(found.len(), 4);
    for (message, original) in found.iter().zip(messages) {
        let start = message.section.offset as usize;
        let mut bytes = file[start..start + message.section.length as usize].to_vec();
        unquote(&mut bytes);
        if !original.ends_with(b"\n") {
            assert_eq!(bytes.pop(), Some(b'\n'));
        }
        assert_eq!(bytes, original);
        assert!(message.section.date > 0);
    }
    let again = format_message(&parts[3], "a b", time);
    assert!(again.starts_with(b"From - Mon Nov 30 10:00:00 2020\nSubject: 4\n"));
}
