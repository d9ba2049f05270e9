//! The layout of the pages of a SQLite file: which bytes of a page are unused, and which pages it
//! refers to. See "Database File Format" in the documentation of SQLite.
//!
//! Pure, and separate from `page_eraser`, which reads and writes the pages.

use std::ops::Range;

/// The length of the header of a file, which is at the beginning of page 1.
const FILE_HEADER_BYTES: usize = 100;
/// The first bytes of a free block of a b-tree page: the next free block, and the length.
const FREE_BLOCK_HEADER_BYTES: usize = 4;
/// The first bytes of an overflow page: the number of the next one.
pub(crate) const OVERFLOW_HEADER_BYTES: usize = 4;
/// The first bytes of a trunk page of the list of free pages: the next trunk, and the number of
/// pages that it lists.
const TRUNK_HEADER_BYTES: usize = 8;

/// The number of a page, from 1.
pub(crate) type PageNumber = u32;

/// A payload that continues on overflow pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// The first overflow page.
    pub(crate) first: PageNumber,
    /// The number of bytes on overflow pages.
    pub(crate) bytes: usize,
}

/// A page of a b-tree.
#[derive(Debug)]
pub(crate) struct BtreePage {
    /// The child pages in their order; empty: a leaf.
    pub(crate) children: Vec<PageNumber>,
    /// The payloads that continue on overflow pages.
    pub(crate) overflows: Vec<Overflow>,
    /// The bytes that no cell uses, except the headers of free blocks and fragments of up to three
    /// bytes.
    pub(crate) unused: Vec<Range<usize>>,
}

/// The kinds of b-tree pages, by their first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageKind {
    TableInterior,
    TableLeaf,
    IndexInterior,
    IndexLeaf,
}

fn read_u16(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_be_bytes(bytes)))
}

/// Reads a number of four bytes.
pub(crate) fn read_u32(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(page.get(at..at + 4)?.try_into().ok()?))
}

/// Reads a variable-length integer, and returns it with its length.
fn read_varint(page: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in page.get(at..)?.iter().take(9).enumerate() {
        if index == 8 {
            return Some((value << 8 | u64::from(byte), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    None
}

/// Returns the number of bytes of a payload that are in the cell itself.
fn local_payload_bytes(payload: usize, usable: usize, kind: PageKind) -> usize {
    let share = |parts: usize| (usable - 12) * parts / 255 - 23;
    let max = if kind == PageKind::TableLeaf { usable - 35 } else { share(64) };
    let min = share(32);
    if payload <= max {
        return payload;
    }
    let local = min + (payload - min) % (usable - OVERFLOW_HEADER_BYTES);
    if local <= max { local } else { min }
}

impl BtreePage {
    /// Reads a page of a b-tree whose last bytes may be reserved; `None`: it is malformed.
    pub(crate) fn parse(number: PageNumber, page: &[u8], reserved: usize) -> Option<BtreePage> {
        let usable = page.len().checked_sub(reserved).filter(|usable| *usable >= 480)?;
        let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        let kind = match page.get(header)? {
            2 => PageKind::IndexInterior,
            5 => PageKind::TableInterior,
            10 => PageKind::IndexLeaf,
            13 => PageKind::TableLeaf,
            _ => return None,
        };
        let is_leaf = matches!(kind, PageKind::TableLeaf | PageKind::IndexLeaf);
        let cells_at = header + if is_leaf { 8 } else { 12 };
        let cell_count = read_u16(page, header + 3)?;
        let content = match read_u16(page, header + 5)? {
            0 => 65_536,
            content => content,
        };
        let cells_end = cells_at + 2 * cell_count;
        if cells_end > content || content > usable {
            return None;
        }
        let mut parsed = BtreePage {
            children: Vec::new(),
            overflows: Vec::new(),
            unused: vec![cells_end..content, usable..page.len()],
        };
        parsed.add_free_blocks(page, read_u16(page, header + 1)?, content, usable)?;
        for cell in 0..cell_count {
            let at = read_u16(page, cells_at + 2 * cell)?;
            if at < content || at >= usable {
                return None;
            }
            parsed.add_cell(page, at, usable, kind)?;
        }
        if !is_leaf {
            parsed.children.push(read_u32(page, header + 8)?);
        }
        Some(parsed)
    }

    fn add_free_blocks(
        &mut self,
        page: &[u8],
        first: usize,
        content: usize,
        usable: usize,
    ) -> Option<()> {
        let (mut block, mut end) = (first, content);
        while block != 0 {
            let length = read_u16(page, block + 2)?;
            // Free blocks are in ascending order.
            if block < end || length < FREE_BLOCK_HEADER_BYTES || block + length > usable {
                return None;
            }
            self.unused.push(block + FREE_BLOCK_HEADER_BYTES..block + length);
            (block, end) = (read_u16(page, block)?, block + length);
        }
        Some(())
    }

    /// Reads the child page and the overflow pages of a cell.
    fn add_cell(&mut self, page: &[u8], at: usize, usable: usize, kind: PageKind) -> Option<()> {
        let mut at = at;
        if matches!(kind, PageKind::TableInterior | PageKind::IndexInterior) {
            self.children.push(read_u32(page, at)?);
            at += 4;
        }
        if kind == PageKind::TableInterior {
            return Some(());
        }
        let (payload, length) = read_varint(page, at)?;
        let payload = usize::try_from(payload).ok()?;
        at += length;
        if kind == PageKind::TableLeaf {
            at += read_varint(page, at)?.1;
        }
        let local = local_payload_bytes(payload, usable, kind);
        if local < payload {
            let first = read_u32(page, at + local)?;
            self.overflows.push(Overflow { first, bytes: payload - local });
        }
        Some(())
    }
}

/// A trunk page of the list of free pages.
#[derive(Debug)]
pub(crate) struct TrunkPage {
    /// The next trunk page.
    pub(crate) next: Option<PageNumber>,
    /// The free pages that it lists.
    pub(crate) free: Vec<PageNumber>,
    /// The bytes that it does not use.
    pub(crate) unused: Range<usize>,
}

impl TrunkPage {
    /// Reads a trunk page; `None`: it is malformed.
    pub(crate) fn parse(page: &[u8]) -> Option<TrunkPage> {
        let count = usize::try_from(read_u32(page, 4)?).ok()?;
        let end = count.checked_mul(4)?.checked_add(TRUNK_HEADER_BYTES)?;
        let numbers = page.get(TRUNK_HEADER_BYTES..end)?;
        let free = (0..count).filter_map(|index| read_u32(numbers, 4 * index)).collect();
        let next = read_u32(page, 0).filter(|next| *next != 0);
        Some(TrunkPage { next, free, unused: end..page.len() })
    }
}

/// The header of a file, which is on page 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileHeader {
    /// The first trunk page of the list of free pages.
    pub(crate) first_trunk: Option<PageNumber>,
    /// The number of bytes at the end of each page that are reserved for extensions.
    pub(crate) reserved: usize,
}

impl FileHeader {
    /// Reads the header from page 1.
    pub(crate) fn parse(page: &[u8]) -> Option<FileHeader> {
        Some(FileHeader {
            first_trunk: Some(read_u32(page, 32)?).filter(|first| *first != 0),
            reserved: usize::from(*page.get(20)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of a table with two cells, a free block and a gap.
    fn leaf() -> Vec<u8> {
        let mut page = vec![0xee; 512];
        page[..12].copy_from_slice(&[13, 1, 224, 0, 2, 1, 212, 0, 1, 212, 1, 244]);
        // A cell of 12 bytes, a free block of 20, a cell of 12.
        page[468..470].copy_from_slice(&[10, 1]);
        page[480..484].copy_from_slice(&[0, 0, 0, 20]);
        page[500..502].copy_from_slice(&[10, 2]);
        page
    }

    #[test]
    fn unused_bytes_of_a_leaf() {
        let parsed = BtreePage::parse(2, &leaf(), 0).expect("a page");
        assert_eq!(parsed.unused, [12..468, 512..512, 484..500]);
        assert!(parsed.children.is_empty() && parsed.overflows.is_empty());
        for (at, byte) in [(0, 0), (3, 9), (5, 9), (8, 0), (10, 9), (482, 9), (483, 2)] {
            let mut page = leaf();
            page[at] = byte;
            assert!(BtreePage::parse(2, &page, 0).is_none(), "byte {at}");
        }
        assert!(BtreePage::parse(2, &leaf()[..100], 0).is_none());
    }

    #[test]
    fn payloads_that_overflow() {
        let mut page = leaf();
        // 1,000 bytes: 39 + (1000 - 39) % 508 = 492 would be too many, so 39 are in the cell.
        page[8..12].copy_from_slice(&[1, 144, 1, 244]);
        page[5..7].copy_from_slice(&[1, 144]);
        page[400..403].copy_from_slice(&[0x87, 0x68, 1]);
        page[442..446].copy_from_slice(&[0, 0, 0, 77]);
        let parsed = BtreePage::parse(2, &page, 0).expect("a page");
        assert_eq!(parsed.overflows, [Overflow { first: 77, bytes: 1000 - 39 }]);
    }

    #[test]
    fn variable_length_integers() {
        assert_eq!(read_varint(&[0x81, 0x00], 0), Some((128, 2)));
        assert_eq!(read_varint(&[0xff; 9], 0), Some((u64::MAX, 9)));
        assert_eq!(read_varint(&[0x81], 0), None);
    }

    #[test]
    fn a_list_of_free_pages() {
        let mut page = vec![0; 512];
        page[..16].copy_from_slice(&[0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6]);
        let trunk = TrunkPage::parse(&page).expect("a page");
        assert_eq!((trunk.next, trunk.free, trunk.unused), (Some(9), vec![5, 6], 16..512));
        page[6] = 2;
        assert!(TrunkPage::parse(&page).is_none());
    }
}
