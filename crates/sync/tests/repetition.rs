//! A second import of the same input changes nothing, and neither the sizes of its pieces nor the
//! number of threads makes a difference.

use crate::book::{Book, INTO, ImportOutcome, card, options};
use larder_sync::{ImportInput, ImportOptions};
use proptest::prelude::*;
use std::io::{self, Read};

/// Yields its bytes in pieces of these sizes, over and over.
struct Pieces {
    bytes: io::Cursor<Vec<u8>>,
    sizes: Vec<usize>,
    next: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.next % self.sizes.len()].min(buffer.len());
        self.next += 1;
        self.bytes.read(&mut buffer[..size])
    }
}

/// Generates a part of an address book, valid or not; parts are concatenated in any order.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..6u8, "[a-z]{0,8}").prop_map(|(uid, name)| card(&format!("u{uid}"), &name)),
        1 => "[a-z]{1,8}".prop_map(|name| format!("BEGIN:VCARD\nFN:{name}\nEND:VCARD\n")),
        1 => "[a-z]{1,8}".prop_map(|name| format!("BEGIN:VCARD\nFN:{name}\n")),
        1 => Just("BEGIN:VCALENDAR\nX:y\nEND:VCALENDAR\n".into()),
        1 => Just("END:VCARD\n".into()),
        1 => Just("\r\n\n".into()),
        1 => "[ -~]{0,20}\n",
        1 => Just(card("large", &"n".repeat(3000))),
    ]
}

fn run(
    text: &str,
    sizes: &[usize],
    options: &ImportOptions,
) -> (ImportOutcome, Vec<Vec<u8>>, Option<Vec<u8>>) {
    let mut book = Book::new();
    book.file("x", "");
    let rejects = book.path("rejects");
    let options = ImportOptions { rejects: Some((&rejects).into()), ..options.clone() };
    let bytes = io::Cursor::new(text.as_bytes().to_vec());
    let pieces = Pieces { bytes, sizes: sizes.to_vec(), next: 0 };
    let mut outcome = book.import(vec![ImportInput::Stdin(Box::new(pieces))], &options);
    outcome.summary.rejects_file = None;

    let (items, seq) =
        (book.items(options.into.as_deref().unwrap()), book.store.last_seq().unwrap());
    let again = book.take(text, &options).summary;
    assert_eq!((again.has_changes(), again.operation), (false, None), "{text:?}");
    assert_eq!(again.item_count(), outcome.summary.item_count(), "{text:?}");
    assert_eq!(book.store.last_seq().unwrap(), seq);
    assert_eq!(book.items(options.into.as_deref().unwrap()), items);
    (outcome, items, std::fs::read(rejects).ok())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn neither_chunks_nor_threads_matter(
        parts in prop::collection::vec(part(), 0..12),
        sizes in prop::collection::vec(1..200usize, 1..6),
        threads in 1..4usize,
    ) {
        let text = parts.concat();
        let options = ImportOptions { max_item_bytes: 2 << 10, ..options() };
        let whole = run(&text, &[usize::MAX], &options);
        let cut = run(&text, &sizes, &ImportOptions { threads, ..options });
        prop_assert_eq!(whole, cut);
    }

    #[test]
    fn batches_change_nothing_but_their_number(
        parts in prop::collection::vec(part(), 0..12),
        batch in 1..5usize,
    ) {
        let text = parts.concat();
        let (mut whole, items, kept) = run(&text, &[usize::MAX], &options());
        let (mut cut, cut_items, cut_kept) =
            run(&text, &[usize::MAX], &ImportOptions { batch: Some(batch), ..options() });
        // Warnings about repeated cards come when their batch is written, which is earlier in
        // smaller batches.
        whole.warnings.sort();
        cut.warnings.sort();
        prop_assert_eq!((whole, items, kept), (cut, cut_items, cut_kept));
    }
}

/// A file that ends in the middle of a card has half of it, which must not replace a complete one.
#[test]
fn half_a_card_does_not_replace_a_complete_one() {
    let mut book = Book::new();
    let whole = "BEGIN:VCARD\nUID:b\nFN:Otto\nEND:VCARD\n";
    book.take(whole, &options());
    let outcome = book.take(&whole[..24], &options());
    assert_eq!((outcome.summary.updated, outcome.summary.rejected), (0, 1), "{outcome:?}");
    assert_eq!(book.items(INTO), [whole.as_bytes()]);
    // If there is no complete card, half of one is stored; the second import of it changes
    // nothing.
    let half = "BEGIN:VCARD\nUID:c\nFN:Ot";
    assert_eq!(book.take(half, &options()).summary.added, 1);
    assert_eq!(book.take(half, &options()).summary.unchanged, 1);
}
