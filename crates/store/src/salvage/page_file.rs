//! The pages of a database file and of its write-ahead log, read without SQLite.
//!
//! SQLite refuses a file whose first page is damaged, and ends a query at the first damaged page.
//! The formats are those of <https://sqlite.org/fileformat2.html>.

use crate::page_layout::PageNumber;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The page size of a store, if the header that says it is damaged.
const DEFAULT_PAGE_BYTES: usize = 4096;
/// The length of the header of the file, which is the beginning of the first page.
pub(super) const FILE_HEADER_BYTES: usize = 100;
/// The first bytes of a database file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The first number of a write-ahead log whose checksums are computed with little-endian words; the
/// next number means big-endian words.
const WAL_MAGIC: u32 = 0x377f_0682;

/// A database file with the committed pages of its write-ahead log.
pub(super) struct PageFile {
    file: File,
    wal: Option<File>,
    /// The offsets in the log of the pages that it has.
    wal_offsets: HashMap<PageNumber, u64>,
    page_bytes: usize,
    /// The bytes at the end of each page that are not used.
    reserved_bytes: usize,
    page_count: PageNumber,
}

impl PageFile {
    /// Opens a database file, and its write-ahead log if there is one.
    pub(super) fn open(path: &Path, wal_path: &Path) -> io::Result<PageFile> {
        let file = File::open(path)?;
        let mut header = [0; FILE_HEADER_BYTES];
        let is_header_sound =
            file.read_exact_at(&mut header, 0).is_ok() && header.starts_with(MAGIC);
        let stored = match read_u16(&header, 16) {
            Some(1) => 65_536,
            Some(bytes) => usize::from(bytes),
            None => 0,
        };
        let is_size = is_header_sound && stored.is_power_of_two() && stored >= 512;
        let page_bytes = if is_size { stored } else { DEFAULT_PAGE_BYTES };
        let reserved = header.get(20).map_or(0, |bytes| usize::from(*bytes));
        let reserved_bytes = if is_size && reserved <= 32 { reserved } else { 0 };
        let pages = file.metadata()?.len().div_ceil(page_bytes as u64);
        let mut pages_file = PageFile {
            file,
            wal: None,
            wal_offsets: HashMap::new(),
            page_bytes,
            reserved_bytes,
            page_count: PageNumber::try_from(pages).unwrap_or(PageNumber::MAX),
        };
        if let Ok(wal) = File::open(wal_path) {
            pages_file.read_wal(&wal)?;
            pages_file.wal = Some(wal);
        }
        Ok(pages_file)
    }

    /// Returns the number of pages.
    pub(super) fn page_count(&self) -> PageNumber {
        self.page_count
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

    /// Finds the pages of the transactions that the log has completely.
    fn read_wal(&mut self, wal: &File) -> io::Result<()> {
        let mut header = [0; WAL_HEADER_BYTES];
        if wal.metadata()?.len() < WAL_HEADER_BYTES as u64 {
            return Ok(());
        }
        wal.read_exact_at(&mut header, 0)?;
        let magic = read_u32(&header, 0).unwrap_or_default();
        let is_little_endian = magic == WAL_MAGIC;
        let page_bytes = read_u32(&header, 8).unwrap_or_default() as usize;
        if magic & !1 != WAL_MAGIC || page_bytes != self.page_bytes {
            return Ok(());
        }
        let mut sums = wal_checksum((0, 0), &header[..24], is_little_endian);
        let mut uncommitted = Vec::new();
        let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
        let mut offset = WAL_HEADER_BYTES as u64;
        while wal.read_exact_at(&mut frame, offset).is_ok() {
            sums = wal_checksum(sums, &frame[..8], is_little_endian);
            sums = wal_checksum(sums, &frame[FRAME_HEADER_BYTES..], is_little_endian);
            let stored = (read_u32(&frame, 16), read_u32(&frame, 20));
            if frame[8..16] != header[16..24] || stored != (Some(sums.0), Some(sums.1)) {
                break;
            }
            let number = read_u32(&frame, 0).unwrap_or_default();
            uncommitted.push((number, offset + FRAME_HEADER_BYTES as u64));
            let pages_after_commit = read_u32(&frame, 4).unwrap_or_default();
            if pages_after_commit > 0 {
                self.wal_offsets.extend(uncommitted.drain(..));
                self.page_count = pages_after_commit;
            }
            offset += frame.len() as u64;
        }
        Ok(())
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

pub(super) fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

pub(super) fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
