//! Reading an object of a pack that is being written.
//!
//! Only for texts that had to be dropped from memory; objects of the repository are read by git.

use super::delta;
use super::object::OFFSET_DELTA;
use flate2::bufread::ZlibDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt as _;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 32 << 10;

/// The most bytes that are reserved before an object is read: its length may be damaged.
const MAX_RESERVED_BYTES: usize = 16 << 20;

/// A file from a position on.
struct FileFrom<'f> {
    file: &'f File,
    position: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

fn damage_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the pack being written is damaged")
}

/// Reads the object at an offset, whose bases are in the same pack.
pub(crate) fn read_object(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut deltas = Vec::new();
    let mut position = offset;
    loop {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, FileFrom { file, position });
        let (number, len) = read_entry_header(&mut reader)?;
        let distance = match number {
            OFFSET_DELTA => Some(read_base_distance(&mut reader)?),
            _ => None,
        };
        let mut content = Vec::with_capacity(len.min(MAX_RESERVED_BYTES));
        ZlibDecoder::new(reader).take((len as u64).saturating_add(1)).read_to_end(&mut content)?;
        if content.len() != len {
            return Err(damage_error());
        }
        let Some(distance) = distance else {
            return deltas.iter().rev().try_fold(content, |base, one: &Vec<u8>| {
                delta::apply(&base, one).ok_or_else(damage_error)
            });
        };
        deltas.push(content);
        position =
            position.checked_sub(distance).filter(|_| distance > 0).ok_or_else(damage_error)?;
    }
}

fn read_byte(reader: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn read_entry_header(reader: &mut impl Read) -> io::Result<(u8, usize)> {
    let first = read_byte(reader)?;
    let (number, mut len) = (first >> 4 & 7, usize::from(first & 15));
    let (mut byte, mut shift) = (first, 4);
    while byte & 0x80 != 0 {
        byte = read_byte(reader)?;
        len |= usize::from(byte & 0x7f).checked_shl(shift).ok_or_else(damage_error)?;
        shift += 7;
    }
    Ok((number, len))
}

fn read_base_distance(reader: &mut impl Read) -> io::Result<u64> {
    let mut byte = read_byte(reader)?;
    let mut distance = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = read_byte(reader)?;
        distance =
            (distance + 1).checked_mul(128).ok_or_else(damage_error)? | u64::from(byte & 0x7f);
    }
    Ok(distance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        file.rewind()?;
        read_object(&file, 0)
    }

    /// Damaged lengths of any size: nothing is reserved for them.
    #[test]
    fn lengths_that_are_wrong_are_refused() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"hello").expect("bytes in memory");
        let content = encoder.finish().expect("bytes in memory");
        assert_eq!(read(&[&[0x35][..], &content].concat()).expect("an object"), b"hello");
        let huge = [0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        // Found by fuzzing: a length of 64 bits.
        let largest = [&[0xbf][..], &[0xff; 8], &[0x0f]].concat();
        for header in [&[0x34][..], &[0x36], &huge, &largest] {
            assert!(read(&[header, &content].concat()).is_err(), "{header:?}");
        }
    }
}
