//! Inputs above the limits: large cards, endless garbage, and readers that are faster than the
//! writer.

use crate::book::{Book, INTO, card, cards, options};
use larder_sync::{ImportEvent, ImportInput, ImportOptions, import};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MB: u64 = 1 << 20;

/// Counts the bytes that are read through it.
struct CountingReader<R>(R, Arc<AtomicU64>);

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[test]
fn a_card_above_the_limit_is_left_out() {
    let mut book = Book::new();
    let large = card("large", &"n".repeat(3 << 20));
    let input = format!("{}{large}{}", card("a", "Ada"), card("b", "Bo"));
    let outcome = book.take(&input, &ImportOptions { max_item_bytes: 1 << 20, ..options() });
    assert_eq!(outcome.summary.added, 2);
    assert_eq!(outcome.rejected, ["standard input:6: item larger than 1 MB (--max-item)"]);
    assert_eq!(book.items(INTO).concat().len(), input.len() - large.len());

    let outcome = book.take(&input, &options());
    assert_eq!((outcome.summary.added, outcome.summary.unchanged), (1, 2));
    assert!(outcome.rejected.is_empty());
}

#[test]
fn limits_are_shown_in_whole_units() {
    for (max_item, shown) in [(1 << 10, "1 KB"), (1000, "1000 bytes"), (3 << 10, "3 KB")] {
        let outcome = Book::new().take(
            card("x", &"n".repeat(5000)),
            &ImportOptions { max_item_bytes: max_item, ..options() },
        );
        let expected = format!("standard input:1: item larger than {shown} (--max-item)");
        assert_eq!(outcome.rejected, [expected]);
    }
}

#[test]
fn odd_options_do_no_harm() {
    let mut book = Book::new();
    let odd = ImportOptions { batch: Some(0), threads: 0, ..options() };
    assert_eq!(book.take(card("a", "Ada"), &odd).summary.added, 1);
    let odd = ImportOptions { batch: Some(usize::MAX), max_item_bytes: usize::MAX, ..options() };
    assert_eq!(book.take(card("b", "Bo"), &odd).summary.added, 1);
    let odd = ImportOptions { max_item_bytes: 0, ..options() };
    assert_eq!(book.take(card("c", "Cy"), &odd).summary.rejected, 1);
}

/// Imports `input`, which is longer than `bound`, while the caller sleeps at its first event: by
/// then no more than `bound` bytes may have been read.
fn check_bound(input: impl Read + Send + 'static, rejects: bool, bound: u64) -> u64 {
    let mut book = Book::new();
    let read = Arc::new(AtomicU64::new(0));
    let mut slept = false;
    book.file("x", "");
    let options =
        ImportOptions { rejects: rejects.then(|| book.path("rejects").into()), ..options() };
    let counted = ImportInput::Stdin(Box::new(CountingReader(input, Arc::clone(&read))));
    let summary = import(&mut book.store, vec![counted], &options, &mut |event| {
        if !slept && !matches!(event, ImportEvent::Warning(_)) {
            slept = true;
            std::thread::sleep(Duration::from_millis(400));
            let read = read.load(Ordering::Relaxed);
            assert!(read <= bound, "{read} bytes were read");
        }
    })
    .unwrap();
    assert!(slept);
    assert_eq!(summary.bytes, read.load(Ordering::Relaxed));
    assert!(summary.bytes > bound);
    summary.rejected
}

#[test]
fn garbage_is_bounded_and_reported_once() {
    let lines = io::repeat(b'\0').take(20 * MB);
    assert_eq!(check_bound(lines, true, 12 * MB), 1);
    let lines = b"no card in here\n".repeat(1 << 20);
    assert_eq!(check_bound(io::Cursor::new(lines), true, 12 * MB), 1);
}

#[test]
fn a_card_above_the_usual_limit_passes_through_to_the_rejects() {
    let large = || {
        let (head, name) = (b"BEGIN:VCARD\nUID:large\n".as_slice(), io::repeat(b'n').take(40 * MB));
        head.chain(io::Cursor::new(b"FN:")).chain(name).chain(io::Cursor::new(b"\nEND:VCARD\n"))
    };
    let mut book = Book::new();
    book.file("x", "");
    let rejects = book.path("rejects");
    let input = ImportInput::Stdin(Box::new(large().chain(io::Cursor::new(card("a", "Ada")))));
    let options = ImportOptions { rejects: Some((&rejects).into()), ..options() };
    let outcome = book.import(vec![input], &options);
    assert_eq!(outcome.rejected, ["standard input:1: item larger than 32 MB (--max-item)"]);
    assert_eq!(outcome.summary.added, 1);
    let mut expected = Vec::new();
    large().read_to_end(&mut expected).unwrap();
    assert!(std::fs::read(rejects).unwrap() == expected, "other bytes were kept");
}

#[test]
fn reading_does_not_run_ahead_of_writing() {
    assert_eq!(check_bound(cards(60_000), false, 3 * MB), 0);
}
