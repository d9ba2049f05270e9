//! The pages of a database file and of its write-ahead log, read without SQLite.
//!
//! SQLite refuses a file whose first page is damaged, and ends a query at the first damaged page.
//! The formats are those of <https://sqlite.org/fileformat2.html>.

use super::readable_file::{ReadableFile, UnreadableParts};
use crate::page_layout::{BtreePage, FILE_HEADER_BYTES, PageNumber, read_u32};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// The page size of a store, if the header that says it is damaged.
const DEFAULT_PAGE_BYTES: usize = 4096;
/// The first bytes of a database file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The first number of a write-ahead log whose checksums are computed with little-endian words; the
/// next number means big-endian words.
const WAL_MAGIC: u32 = 0x377f_0682;

/// A database file with the committed pages of its write-ahead log.
pub(super) struct PageFile {
    file: ReadableFile,
    wal: Option<ReadableFile>,
    /// The offsets in the log of the pages that it has.
    wal_offsets: HashMap<PageNumber, u64>,
    page_bytes: usize,
    /// The bytes at the end of each page that are not used.
    pub(super) reserved_bytes: usize,
    page_count: PageNumber,
    /// Whether the log has a commit that does not follow from the frames before it, or may have one
    /// after a frame that the disk failed to read.
    pub(super) has_cut_log: bool,
}

impl PageFile {
    /// Opens a database file, and its write-ahead log if there is one. The log is opened first: it
    /// may be copied into the file and deleted meanwhile.
    pub(super) fn open(path: &Path, wal_path: &Path) -> io::Result<PageFile> {
        let wal = match ReadableFile::open(wal_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let file = ReadableFile::open(path)?;
        let mut header = [0; FILE_HEADER_BYTES];
        let is_header_sound =
            file.read_exact_at(&mut header, 0).is_ok() && header.starts_with(MAGIC);
        let stored = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            bytes => usize::from(bytes),
        };
        let is_size = is_header_sound && stored.is_power_of_two() && stored >= 512;
        let reserved = usize::from(header[20]);
        let mut pages = PageFile {
            file,
            wal: None,
            wal_offsets: HashMap::new(),
            page_bytes: if is_size { stored } else { DEFAULT_PAGE_BYTES },
            reserved_bytes: 0,
            page_count: 0,
            has_cut_log: false,
        };
        let commits = wal.as_ref().map(|wal| pages.read_wal(wal)).transpose()?;
        pages.has_cut_log |= wal.as_ref().is_some_and(|wal| wal.unreadable_parts().is_some());
        pages.wal = wal;
        let file_pages = pages.file.byte_count()?.div_ceil(pages.page_bytes as u64);
        let file_pages = PageNumber::try_from(file_pages).unwrap_or(PageNumber::MAX);
        pages.page_count = commits.flatten().unwrap_or(file_pages);
        // A larder store reserves none: another number is right only if the first page agrees.
        let is_right = |first: Vec<u8>| BtreePage::parse(1, &first, reserved).is_some();
        if is_size && reserved <= 32 && pages.read_page(1).is_some_and(is_right) {
            pages.reserved_bytes = reserved;
        }
        Ok(pages)
    }

    /// Returns the number of pages.
    pub(super) fn page_count(&self) -> PageNumber {
        self.page_count
    }

    /// Returns the parts of the file and of its log that the disk failed to read until now.
    pub(super) fn unreadable_parts(&self) -> Vec<UnreadableParts> {
        let files = [Some(&self.file), self.wal.as_ref()];
        files.into_iter().flatten().filter_map(ReadableFile::unreadable_parts).collect()
    }

    /// Returns the number of bytes of a page that are used.
    pub(super) fn usable_bytes(&self) -> usize {
        self.page_bytes - self.reserved_bytes
    }

    /// Reads a page; `None`: there is none, or the disk does not give it.
    pub(super) fn read_page(&self, number: PageNumber) -> Option<Vec<u8>> {
        if number == 0 || number > self.page_count {
            return None;
        }
        let mut page = vec![0; self.page_bytes];
        let read = match (self.wal_offsets.get(&number), &self.wal) {
            (Some(offset), Some(wal)) => wal.read_exact_at(&mut page, *offset),
            _ => {
                let offset = u64::from(number - 1) * self.page_bytes as u64;
                self.file.read_exact_at(&mut page, offset)
            }
        };
        read.ok().map(|()| page)
    }

    /// Finds the pages of the transactions that the log has completely. Returns the number of pages
    /// after the last of them. A log ends at a frame that the disk fails to read: the checksums of
    /// the following frames cover its bytes.
    fn read_wal(&mut self, wal: &ReadableFile) -> io::Result<Option<PageNumber>> {
        let mut header = [0; WAL_HEADER_BYTES];
        if wal.byte_count()? < WAL_HEADER_BYTES as u64 {
            return Ok(None);
        }
        if wal.read_exact_at(&mut header, 0).is_err() {
            return Ok(None);
        }
        let mut frame = vec![0; FRAME_HEADER_BYTES + self.page_bytes];
        let mut offset = WAL_HEADER_BYTES as u64;
        let Some(mut chain) = WalChain::begin(&header, || {
            wal.read_exact_at(&mut frame, offset).is_ok().then(|| frame.clone())
        }) else {
            return Ok(None);
        };
        let (mut uncommitted, mut page_count, mut is_cut) = (Vec::new(), None, false);
        while wal.read_exact_at(&mut frame, offset).is_ok() {
            is_cut |= !chain.accepts(&frame);
            let pages_after_commit = read_u32(&frame, 4).filter(|pages| *pages > 0);
            if is_cut {
                // Frames of the former content of the log have other salts.
                let is_own = frame.get(8..16) == Some(&chain.salts);
                self.has_cut_log |= is_own && pages_after_commit.is_some();
            } else {
                let number = read_u32(&frame, 0).unwrap_or_default();
                uncommitted.push((number, offset + FRAME_HEADER_BYTES as u64));
                if pages_after_commit.is_some() {
                    self.wal_offsets.extend(uncommitted.drain(..));
                    page_count = pages_after_commit;
                }
            }
            offset += frame.len() as u64;
        }
        Ok(page_count)
    }
}

/// The checksums of a write-ahead log: that of a frame covers the header of the log and all frames
/// before it.
struct WalChain {
    is_little_endian: bool,
    sums: (u32, u32),
    /// The salts of the frames, which the header repeats.
    salts: [u8; 8],
}

impl WalChain {
    /// Begins with the header. If that does not match its own checksum, the first frame decides
    /// which part of the header is right.
    fn begin(
        header: &[u8; WAL_HEADER_BYTES],
        first_frame: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<WalChain> {
        let stored = (read_u32(header, 24)?, read_u32(header, 28)?);
        let magic = read_u32(header, 0)?;
        let is_little_endian = magic == WAL_MAGIC;
        let salts: [u8; 8] = header[16..24].try_into().ok()?;
        let computed = wal_checksum((0, 0), &header[..24], is_little_endian);
        if computed == stored {
            let is_known = magic & !1 == WAL_MAGIC;
            return is_known.then_some(WalChain { is_little_endian, sums: stored, salts });
        }
        let frame = first_frame()?;
        let salts: [u8; 8] = frame.get(8..16)?.try_into().ok()?;
        let possible = [true, false].into_iter().flat_map(|is_little_endian| {
            let computed = wal_checksum((0, 0), &header[..24], is_little_endian);
            [stored, computed].map(|sums| WalChain { is_little_endian, sums, salts })
        });
        let mut possible = possible.filter(|chain| WalChain { ..*chain }.accepts(&frame));
        possible.next()
    }

    /// Continues with a frame. Returns false if its checksum is wrong.
    fn accepts(&mut self, frame: &[u8]) -> bool {
        let Some((header, page)) = frame.split_at_checked(FRAME_HEADER_BYTES) else { return false };
        self.sums = wal_checksum(self.sums, &header[..8], self.is_little_endian);
        self.sums = wal_checksum(self.sums, page, self.is_little_endian);
        let stored = (read_u32(header, 16), read_u32(header, 20));
        header[8..16] == self.salts && stored == (Some(self.sums.0), Some(self.sums.1))
    }
}

/// Continues the checksum of a write-ahead log.
fn wal_checksum(sums: (u32, u32), bytes: &[u8], is_little_endian: bool) -> (u32, u32) {
    let words = bytes.chunks_exact(4).map(|word| {
        let word: [u8; 4] = [word[0], word[1], word[2], word[3]];
        if is_little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    });
    let words: Vec<u32> = words.collect();
    words.chunks_exact(2).fold(sums, |(first, second), pair| {
        let first = first.wrapping_add(pair[0]).wrapping_add(second);
        (first, second.wrapping_add(pair[1]).wrapping_add(first))
    })
}
