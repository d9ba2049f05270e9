//! The output of an export, byte for byte.

use crate::book::{Book, INTO, card, options};
use larder_store::{BatchChange, ItemPut, Operation, Precondition};
use larder_sync::{Error, ImportOptions, export};
use std::io::{self, Write};

/// Stores items as they are, and compares their export.
fn check(items: &[&[u8]], expected: &[u8], transcoded: u64) {
    let mut book = Book::new();
    put(&mut book, items);
    let mut out = Vec::new();
    let collection = book.collection(INTO).unwrap();
    let summary = export(&book.store.open_reader().unwrap(), &collection, &mut out).unwrap();
    assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
    assert_eq!(out, expected);
    assert_eq!((summary.items, summary.transcoded), (items.len() as u64, transcoded));
    assert_eq!(summary.bytes, expected.len() as u64);
}

fn put(book: &mut Book, items: &[&[u8]]) {
    let changes = items.iter().enumerate().map(|(number, bytes)| {
        let prepared = book.store.extractor().parse_contact(bytes.to_vec()).unwrap();
        let uid = format!("uid-{number}");
        let expect = Precondition::Absent;
        BatchChange::Put(ItemPut {
            collection: INTO.into(),
            uid,
            derived_uid: true,
            parsed: prepared,
            precondition: expect,
        })
    });
    let changes = changes.collect();
    book.store.apply(&mut Operation::new("add", "", 0), changes).unwrap();
}

fn utf16(text: &str, little: bool) -> Vec<u8> {
    let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
    text.encode_utf16().flat_map(bytes).collect()
}

const LF: &str = "BEGIN:VCARD\nFN:Ada\nEND:VCARD";
const CRLF: &str = "BEGIN:VCARD\r\nFN:Bo\r\nEND:VCARD";

#[test]
fn items_end_with_a_line_end_of_their_own_kind() {
    let (lf, crlf) = (format!("{LF}\n"), format!("{CRLF}\r\n"));
    check(&[lf.as_bytes(), crlf.as_bytes()], format!("{lf}{crlf}").as_bytes(), 0);
    check(&[LF.as_bytes(), CRLF.as_bytes()], format!("{lf}{crlf}").as_bytes(), 0);
    check(&[format!("{CRLF}\r").as_bytes()], crlf.as_bytes(), 0);
    check(&[format!("{lf}\n").as_bytes()], format!("{lf}\n").as_bytes(), 0);
}

#[test]
fn bytes_are_not_interpreted() {
    let odd = b"BEGIN:VCARD\nFN:\xff\xfe Ad\0a\n folded\nX-\x80:?\nEND:VCARD  \n";
    check(&[odd], odd, 0);
}

#[test]
fn one_file_has_one_encoding() {
    let text = "BEGIN:VCARD\r\nFN:Zoë 王 😀\r\nEND:VCARD\r\n";
    check(&[&utf16(text, true), &utf16(text, false)], text.repeat(2).as_bytes(), 2);
    let marked = utf16(&format!("\u{feff}{text}"), true);
    check(&[LF.as_bytes(), &marked], format!("{LF}\n{text}").as_bytes(), 1);
}

#[test]
fn exports_are_imported_unchanged() {
    let mut book = Book::new();
    let mut input = String::new();
    // More than one page of items, and an update in the middle, which keeps its position.
    for number in 0..600 {
        input += &card(&format!("u{number}"), &format!("Name {number}"));
    }
    book.take(&input, &options());
    assert_eq!(book.export(INTO), input.as_bytes());
    let changed = card("u300", "Somebody Else");
    book.take(&changed, &options());
    let input = input.replace(&card("u300", "Name 300"), &changed);
    assert_eq!(book.export(INTO), input.as_bytes());

    let outcome =
        book.take(book.export(INTO), &ImportOptions { into: Some("copy".into()), ..options() });
    assert_eq!(outcome.summary.added, 600);
    assert_eq!(book.items("copy"), book.items(INTO));
}

/// A pipe whose reading end is closed.
struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_is_an_error() {
    let mut book = Book::new();
    put(&mut book, &[LF.as_bytes()]);
    let collection = book.collection(INTO).unwrap();
    let error =
        export(&book.store.open_reader().unwrap(), &collection, &mut ClosedPipe).unwrap_err();
    let Error::Write(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
