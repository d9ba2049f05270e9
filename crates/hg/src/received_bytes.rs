//! How many bytes have arrived, for a display.

use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes that have arrived from a repository, as they came: compressed ones are not
/// unpacked. Copies count together.
#[derive(Clone, Debug, Default)]
pub struct ReceivedBytes(Arc<AtomicU64>);

impl ReceivedBytes {
    /// Returns the number so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A stream whose bytes are counted.
pub(crate) struct CountedStream<R> {
    read: R,
    received: ReceivedBytes,
}

impl<R> CountedStream<R> {
    pub(crate) fn new(read: R, received: ReceivedBytes) -> CountedStream<R> {
        CountedStream { read, received }
    }
}

impl<R: Read> Read for CountedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read.read(buffer)?;
        self.received.add(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for CountedStream<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.read.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.received.add(count);
        self.read.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_counted_once() {
        let received = ReceivedBytes::default();
        let mut stream = CountedStream::new(&b"0123456789"[..], received.clone());
        let mut three = [0; 3];
        stream.read_exact(&mut three).unwrap();
        stream.consume(2);
        assert_eq!(received.count(), 5);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), received.count()), ("56789", 10));
    }
}
