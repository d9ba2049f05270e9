//! The compression of objects in packs: zlib streams (RFC 1950).
//!
//! A pack has hundreds of thousands of small objects, each of them in memory as a whole. libdeflate
//! is made for that: it keeps nothing between two objects, and needs less time than zlib, which
//! clears 128 KB before each. The smallest objects are stored as they are.

use libdeflater::{CompressionLvl, Compressor};

/// Inputs of at most so many bytes are stored: most of them would hardly become smaller.
const MAX_STORED_BYTES: usize = 96;

/// The level of libdeflate. Packs of level 5 are smaller than those of zlib at level 6, the default
/// of git.
const LEVEL: i32 = 5;

/// A compressor that is used for many objects.
pub(crate) struct Deflater {
    compressor: Compressor,
}

impl Deflater {
    /// Creates a compressor.
    pub(crate) fn new() -> Deflater {
        Deflater { compressor: Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default()) }
    }

    /// Appends the compressed bytes.
    pub(crate) fn deflate(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if bytes.len() <= MAX_STORED_BYTES {
            store(bytes, out);
            return;
        }
        let start = out.len();
        let bound = self.compressor.zlib_compress_bound(bytes.len());
        if start == 0 {
            // Memory that the system gives zeroed takes room only where it is written.
            *out = vec![0; bound];
        } else {
            out.resize(start + bound, 0);
        }
        let room = out.get_mut(start..).unwrap_or_default();
        match self.compressor.zlib_compress(bytes, room) {
            Ok(len) => out.truncate(start + len),
            // Only too little room is an error, and the bound is enough for any input.
            Err(_) => {
                out.truncate(start);
                store(bytes, out);
            }
        }
    }
}

/// Appends a stream of stored blocks.
pub(crate) fn store(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x78, 0x01]);
    let mut blocks = bytes.chunks(usize::from(u16::MAX)).peekable();
    if blocks.peek().is_none() {
        write_stored_block(&[], true, out);
    }
    while let Some(block) = blocks.next() {
        write_stored_block(block, blocks.peek().is_none(), out);
    }
    out.extend(adler32(bytes).to_be_bytes());
}

fn write_stored_block(block: &[u8], is_last: bool, out: &mut Vec<u8>) {
    let len = block.len() as u16;
    out.push(u8::from(is_last));
    out.extend(len.to_le_bytes());
    out.extend((!len).to_le_bytes());
    out.extend_from_slice(block);
}

fn adler32(bytes: &[u8]) -> u32 {
    // So many bytes fit into 32 bits before the remainder is needed.
    const RUN: usize = 5552;
    const BASE: u32 = 65521;
    let (mut a, mut b) = (1_u32, 0_u32);
    for run in bytes.chunks(RUN) {
        for byte in run {
            a += u32::from(*byte);
            b += a;
        }
        (a, b) = (a % BASE, b % BASE);
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read as _;

    #[test]
    fn streams_are_read_again() {
        let mut deflater = Deflater::new();
        for len in [0, 1, 96, 97, 5_000, 70_000, 200_000] {
            let noise = |i: usize| (i.wrapping_mul(2_654_435_761) >> 7) as u8;
            let bytes: Vec<u8> = (0..len).map(noise).collect();
            for is_stored in [false, true] {
                let mut out = Vec::new();
                if is_stored {
                    store(&bytes, &mut out);
                } else {
                    deflater.deflate(&bytes, &mut out);
                }
                let mut read = Vec::new();
                ZlibDecoder::new(&out[..]).read_to_end(&mut read).expect("a zlib stream");
                assert!(read == bytes, "{len} bytes");
            }
        }
    }
}
