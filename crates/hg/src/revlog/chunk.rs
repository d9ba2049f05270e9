//! The data of one revision as a revlog stores it: its first byte names the compression.

use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, Read as _};

/// How much the buffer of decompressed data grows at once, at least.
const GROWTH_BYTES: usize = 4 << 10;

/// Frames that claim more than this are read piece by piece, so that memory is only reserved for
/// data that exists.
const TRUSTED_FRAME_BYTES: usize = 1 << 20;

/// The first byte of the stored data, where it is not part of the data.
const ZLIB: u8 = b'x';
const ZSTD: u8 = 0x28;
const RAW: u8 = b'u';
const NUL: u8 = 0;

/// Why stored data cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    /// The first byte is none that is known.
    #[error("an unknown compression, {0:#04x}")]
    Compression(u8),
    /// The compressed data is damaged.
    #[error("damaged compressed data: {0}")]
    Compressed(String),
    /// The data is longer than the index allows.
    #[error("the data is longer than the index says")]
    Length,
}

/// The state of the decompressors, kept from one revision to the next.
pub struct ChunkDecoder {
    zlib: Decompress,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl ChunkDecoder {
    /// Creates a decoder for any number of revlogs.
    pub fn new() -> ChunkDecoder {
        ChunkDecoder { zlib: Decompress::new(true), zstd: None }
    }

    /// Writes the data of a chunk over `data`, at most `limit` bytes.
    pub fn decode(
        &mut self,
        chunk: &[u8],
        limit: usize,
        data: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        data.clear();
        match chunk.split_first() {
            None => Ok(()),
            Some((&NUL, _)) => copy_raw(chunk, limit, data),
            Some((&RAW, raw)) => copy_raw(raw, limit, data),
            Some((&ZLIB, _)) => self.inflate(chunk, limit, data),
            Some((&ZSTD, _)) => self.decode_zstd(chunk, limit, data),
            Some((&other, _)) => Err(ChunkError::Compression(other)),
        }
    }

    fn inflate(
        &mut self,
        chunk: &[u8],
        limit: usize,
        data: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        self.zlib.reset(true);
        loop {
            let rest = chunk.get(self.zlib.total_in() as usize..).unwrap_or_default();
            if data.len() == data.capacity() {
                data.reserve(data.len().max(chunk.len().saturating_mul(3)).max(GROWTH_BYTES));
            }
            let before = (self.zlib.total_in(), self.zlib.total_out());
            let status = self.zlib.decompress_vec(rest, data, FlushDecompress::None);
            let status = status.map_err(|error| ChunkError::Compressed(error.to_string()))?;
            if data.len() > limit {
                return Err(ChunkError::Length);
            }
            match status {
                Status::StreamEnd => return Ok(()),
                // Nothing was read or written although there is room: the input is cut off.
                _ if before == (self.zlib.total_in(), self.zlib.total_out()) => {
                    return Err(ChunkError::Compressed("the end is missing".to_owned()));
                }
                _ => {}
            }
        }
    }

    fn decode_zstd(
        &mut self,
        chunk: &[u8],
        limit: usize,
        data: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        let failed = |error: io::Error| ChunkError::Compressed(error.to_string());
        match zstd::zstd_safe::get_frame_content_size(chunk) {
            Ok(Some(len)) if len > limit as u64 => return Err(ChunkError::Length),
            Ok(Some(len)) if len <= TRUSTED_FRAME_BYTES as u64 => {
                let decoder = match &mut self.zstd {
                    Some(decoder) => decoder,
                    none => none.insert(zstd::bulk::Decompressor::new().map_err(failed)?),
                };
                data.reserve(len as usize);
                decoder.decompress_to_buffer(chunk, data).map_err(failed)?;
                return Ok(());
            }
            _ => {}
        }
        let stream = zstd::stream::read::Decoder::with_buffer(chunk).map_err(failed)?;
        stream.take(limit as u64 + 1).read_to_end(data).map_err(failed)?;
        if data.len() > limit { Err(ChunkError::Length) } else { Ok(()) }
    }
}

impl Default for ChunkDecoder {
    fn default() -> ChunkDecoder {
        ChunkDecoder::new()
    }
}

fn copy_raw(raw: &[u8], limit: usize, data: &mut Vec<u8>) -> Result<(), ChunkError> {
    if raw.len() > limit {
        return Err(ChunkError::Length);
    }
    data.extend_from_slice(raw);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text).expect("memory does not fail");
        encoder.finish().expect("memory does not fail")
    }

    fn decode(chunk: &[u8], limit: usize) -> Result<Vec<u8>, ChunkError> {
        let mut data = b"the text before".to_vec();
        ChunkDecoder::new().decode(chunk, limit, &mut data).map(|()| data)
    }

    #[test]
    fn each_compression_is_read() {
        let text = b"some text, ".repeat(3_000);
        let zstd = zstd::bulk::compress(&text, 3).expect("zstd");
        for chunk in [deflate(&text), zstd, [b"u", text.as_slice()].concat()] {
            assert_eq!(decode(&chunk, text.len()).expect("a chunk"), text);
            assert!(matches!(decode(&chunk, text.len() - 1), Err(ChunkError::Length)));
        }
        assert_eq!(decode(b"\0raw", 4).expect("a chunk"), b"\0raw");
        assert_eq!(decode(b"", 0).expect("a chunk"), b"");
        assert!(matches!(decode(b"BZh9", 10), Err(ChunkError::Compression(b'B'))));
    }

    #[test]
    fn a_large_frame_is_read_in_pieces() {
        let text = vec![b'x'; TRUSTED_FRAME_BYTES + 1];
        let chunk = zstd::bulk::compress(&text, 3).expect("zstd");
        assert_eq!(decode(&chunk, text.len()).expect("a chunk"), text);
        assert!(decode(&chunk[..chunk.len() - 5], text.len()).is_err());
    }

    #[test]
    fn damaged_data_is_an_error() {
        let text = b"some text, ".repeat(30);
        for chunk in [deflate(&text), zstd::bulk::compress(&text, 3).expect("zstd")] {
            for end in 1..chunk.len() - 4 {
                let cut = chunk.get(..end).expect("a prefix");
                assert!(decode(cut, text.len()).is_err(), "{end} of {}", chunk.len());
            }
        }
    }
}
