//! Imports that end before their input does: nothing hangs, and committed batches stay.

use crate::book::{Book, INTO, card, cards, options, path};
use larder_sync::{Error, ImportEvent, ImportInput, ImportOptions, import};
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

/// Yields its bytes, then blocks until the test is over, like a terminal.
struct BlockingReader<R>(R, Receiver<()>);

impl<R: Read> Read for BlockingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => self.1.recv().map_or(Ok(0), |()| Ok(0)),
            read => Ok(read),
        }
    }
}

fn blocking_input(input: impl Read + Send + 'static) -> (ImportInput, Sender<()>) {
    let (hold, held) = mpsc::channel();
    (ImportInput::Stdin(Box::new(BlockingReader(input, held))), hold)
}

/// Yields its bytes, then fails.
struct FailingReader<R>(R);

impl<R: Read> Read for FailingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk went away")),
            read => Ok(read),
        }
    }
}

struct PanickingReader;

impl Read for PanickingReader {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        panic!("this panic belongs to the test")
    }
}

/// Runs in another thread, so that a deadlock fails the test instead of blocking it forever.
fn within_a_minute<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(run()));
    receive.recv_timeout(Duration::from_secs(60)).expect("the import hangs, or its test failed")
}

#[test]
fn a_store_that_fails_ends_the_import() {
    // The first batch fails while the reader waits for room and the parsers have results to pass
    // on.
    let error = within_a_minute(|| {
        let mut book = Book::new();
        let file = {
            let mut bytes = Vec::new();
            cards(100_000).read_to_end(&mut bytes).unwrap();
            book.file("many.vcf", bytes)
        };
        let options = ImportOptions { into: Some("no/name".into()), threads: 4, ..options() };
        book.try_import(vec![path(file)], &options).unwrap_err()
    });
    assert!(
        matches!(error, Error::Store(larder_store::Error::InvalidCollectionName { .. })),
        "{error}"
    );
}

#[test]
fn a_store_that_fails_does_not_wait_for_the_input() {
    let error = within_a_minute(|| {
        let (input, _hold) = blocking_input(cards(5000));
        let options = ImportOptions { into: Some("no/name".into()), ..options() };
        Book::new().try_import(vec![input], &options).unwrap_err()
    });
    assert!(matches!(error, Error::Store(_)), "{error}");
}

#[test]
fn a_stop_ends_after_whole_batches() {
    let (summary, items) = within_a_minute(|| {
        let mut book = Book::new();
        let options = ImportOptions { batch: Some(100), ..options() };
        let mut batches = 0;
        let input = vec![ImportInput::Stdin(Box::new(cards(20_000)))];
        let summary = import(&mut book.store, input, &options, &mut |event| {
            if let ImportEvent::Progress { items, .. } = event {
                assert_eq!(items % 100, 0);
                batches += 1;
                options.stop.store(batches == 3, Ordering::Relaxed);
            }
        });
        (summary.unwrap(), book.items(INTO).len())
    });
    assert!(summary.interrupted);
    assert_eq!((summary.added, items), (300, 300));
}

#[test]
fn a_stop_does_not_wait_for_the_input() {
    let summary = within_a_minute(|| {
        let mut book = Book::new();
        let (input, _hold) = blocking_input(io::empty());
        let options = options();
        let stop = std::sync::Arc::clone(&options.stop);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        book.import(vec![input], &options).summary
    });
    assert!(summary.interrupted);
}

#[test]
fn cards_before_a_read_error_are_imported() {
    let mut book = Book::new();
    let cut = format!("{}BEGIN:VCARD\r\nUID:b\r\nFN:Half\r\n", card("a", "Ada"));
    let input = ImportInput::Stdin(Box::new(FailingReader(io::Cursor::new(cut))));
    let next = book.file("next.vcf", card("c", "Cy"));
    let outcome = book.import(vec![input, path(next)], &options());
    assert_eq!(outcome.unreadable, ["standard input: the disk went away"]);
    assert_eq!((outcome.summary.added, outcome.summary.files), (2, 1));
    assert_eq!(book.items(INTO), [card("a", "Ada").as_bytes(), card("c", "Cy").as_bytes()]);
}

#[test]
fn a_panic_while_reading_is_an_error() {
    let error = within_a_minute(|| {
        Book::new()
            .try_import(vec![ImportInput::Stdin(Box::new(PanickingReader))], &options())
            .unwrap_err()
    });
    assert!(matches!(error, Error::ThreadDied), "{error}");
}
