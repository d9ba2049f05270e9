//! Reading of numbers and of bytes whose number a stream gives: no size is believed before the
//! bytes are there.

use crate::object_id::Node;
use crate::revision::ChangeError;
use std::io::{self, BufRead};

/// Reads as many bytes as the array has.
pub(crate) fn read_array<const N: usize>(read: &mut dyn BufRead) -> Result<[u8; N], ChangeError> {
    let mut bytes = [0; N];
    read.read_exact(&mut bytes).map_err(name_end)?;
    Ok(bytes)
}

/// Reads a node.
pub(crate) fn read_node(read: &mut dyn BufRead) -> Result<Node, ChangeError> {
    read_array(read).map(Node)
}

/// Reads `len` bytes over `bytes`, which grows only as bytes arrive.
pub(crate) fn read_bytes(
    read: &mut dyn BufRead,
    len: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), ChangeError> {
    bytes.clear();
    let mut left = len;
    while left > 0 {
        let arrived = fill(read)?;
        let taken = arrived.get(..left.min(arrived.len())).unwrap_or(arrived);
        let count = taken.len();
        if count == 0 {
            return Err(end_of_stream().into());
        }
        bytes.extend_from_slice(taken);
        read.consume(count);
        left -= count;
    }
    Ok(())
}

/// Reads and drops the rest of a stream.
pub(crate) fn drain(read: &mut dyn BufRead) -> Result<(), ChangeError> {
    loop {
        let count = fill(read)?.len();
        if count == 0 {
            return Ok(());
        }
        read.consume(count);
    }
}

/// Returns the bytes that are there, at least one unless the stream has ended.
pub(crate) fn fill(read: &mut dyn BufRead) -> io::Result<&[u8]> {
    // The first call is for its errors: the borrow of a call whose result is returned from a loop
    // would last for the whole loop.
    loop {
        match read.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(name_end(error)),
        }
    }
    read.fill_buf()
}

/// Returns the error of a stream that ended where more had to come.
pub(crate) fn end_of_stream() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended early")
}

/// Gives the ends that the standard library and decoders report the same words.
fn name_end(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
            if error.get_ref().is_none_or(|inner| !inner.is::<ChangeError>()) =>
        {
            end_of_stream()
        }
        _ => error,
    }
}
