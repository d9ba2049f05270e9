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
pub(super) fn read_object(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut deltas = Vec::new();
    let mut position = offset;
    loop {
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, FileFrom { file, position });
        let (number, len) = read_entry_header(&mut reader)?;
        let distance = match number {
            OFFSET_DELTA => Some(read_base_distance(&mut reader)?),
            _ => None,
        };
        let mut content = Vec::with_capacity(len);
        ZlibDecoder::new(reader).read_to_end(&mut content)?;
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
