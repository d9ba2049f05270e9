//! The layout of the pages of a SQLite file: the cells of a page, the bytes that it does not use,
//! and whether it is whole. See "Database File Format" in the documentation of SQLite.
//!
//! Pure, and separate from `page_eraser`, which reads and writes pages through SQLite, and from
//! `salvage`, which reads them without it.

use std::ops::Range;

/// The length of the header of a file, which is at the beginning of page 1.
pub(crate) const FILE_HEADER_BYTES: usize = 100;
/// The first bytes of a free block of a b-tree page: the next free block, and the length.
const FREE_BLOCK_HEADER_BYTES: usize = 4;
/// The bytes that SQLite gives to each cell at least.
const MIN_CELL_BYTES: usize = 4;
/// The first bytes of an overflow page: the number of the next one.
pub(crate) const OVERFLOW_HEADER_BYTES: usize = 4;
/// The first bytes of a trunk page of the list of free pages: the next trunk, and the number of
/// pages that it lists.
const TRUNK_HEADER_BYTES: usize = 8;

/// No tree of pages is deeper.
pub(crate) const MAX_TREE_DEPTH: usize = 24;

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

/// A cell of a page of a b-tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The page with the rows before this one, of an interior page.
    pub(crate) child: Option<PageNumber>,
    /// The row id, of a table.
    pub(crate) row_id: i64,
    /// The part of the payload that is on the page.
    pub(crate) local: Range<usize>,
    /// The rest of the payload.
    pub(crate) overflow: Option<Overflow>,
    /// All bytes of the cell.
    extent: Range<usize>,
}

/// A page of a b-tree.
#[derive(Debug)]
pub(crate) struct BtreePage {
    pub(crate) kind: PageKind,
    /// The cells in their order.
    pub(crate) cells: Vec<Cell>,
    /// The page with the rows after those of the last cell, of an interior page.
    pub(crate) last_child: Option<PageNumber>,
    /// The bytes that no cell uses, except the headers of free blocks and fragments of up to three
    /// bytes.
    pub(crate) unused: Vec<Range<usize>>,
    /// Whether the cells, the free blocks, the fragments and the gap before them are all bytes of
    /// the page, as in each page that SQLite writes.
    pub(crate) is_whole: bool,
}

/// The kinds of b-tree pages, by their first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    TableInterior,
    TableLeaf,
    IndexInterior,
    IndexLeaf,
}

impl PageKind {
    const ALL: [PageKind; 4] = [
        PageKind::TableLeaf,
        PageKind::IndexLeaf,
        PageKind::TableInterior,
        PageKind::IndexInterior,
    ];

    fn from_byte(byte: u8) -> Option<PageKind> {
        Some(match byte {
            2 => PageKind::IndexInterior,
            5 => PageKind::TableInterior,
            10 => PageKind::IndexLeaf,
            13 => PageKind::TableLeaf,
            _ => return None,
        })
    }

    pub(crate) fn is_leaf(self) -> bool {
        matches!(self, PageKind::TableLeaf | PageKind::IndexLeaf)
    }

    /// Returns whether the rows have row ids.
    pub(crate) fn is_table(self) -> bool {
        matches!(self, PageKind::TableLeaf | PageKind::TableInterior)
    }
}

fn read_u16(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_be_bytes(bytes)))
}

/// Reads a number of four bytes.
pub(crate) fn read_u32(page: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(page.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Reads a variable-length integer, and returns it with its length.
pub(crate) fn read_varint(page: &[u8], at: usize) -> Option<(u64, usize)> {
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

/// The header of a page of a b-tree, and the bytes that it describes.
#[derive(Clone, Copy)]
struct PageHeader<'p> {
    page: &'p [u8],
    usable: usize,
    /// The offset of the header.
    at: usize,
    kind: PageKind,
    cell_count: usize,
    /// The beginning of the cells and free blocks.
    content: usize,
}

impl<'p> PageHeader<'p> {
    /// Reads the header of a page whose kind is known, or taken from the page.
    fn read(
        number: PageNumber,
        page: &'p [u8],
        reserved: usize,
        kind: Option<PageKind>,
    ) -> Option<PageHeader<'p>> {
        let usable = page.len().checked_sub(reserved).filter(|usable| *usable >= 480)?;
        let at = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        let kind = kind.or(PageKind::from_byte(*page.get(at)?))?;
        let content = match read_u16(page, at + 5)? {
            0 => 65_536,
            content => content,
        };
        Some(PageHeader { page, usable, at, kind, cell_count: read_u16(page, at + 3)?, content })
    }

    /// Returns the offset of the offsets of the cells.
    fn cells_at(&self) -> usize {
        self.at + if self.kind.is_leaf() { 8 } else { 12 }
    }

    fn cells_end(&self) -> usize {
        self.cells_at() + 2 * self.cell_count
    }

    fn last_child(&self) -> Option<PageNumber> {
        if self.kind.is_leaf() { None } else { read_u32(self.page, self.at + 8) }
    }

    /// Reads a cell; `None`: it is not within the page.
    fn cell(&self, index: usize) -> Option<Cell> {
        let page = self.page.get(..self.usable)?;
        let start = read_u16(page, self.cells_at() + 2 * index)?;
        let mut at = start;
        let mut cell =
            Cell { child: None, row_id: 0, local: at..at, overflow: None, extent: at..at };
        if !self.kind.is_leaf() {
            cell.child = Some(read_u32(page, at)?);
            at += 4;
        }
        let mut payload = 0;
        if self.kind != PageKind::TableInterior {
            let (bytes, length) = read_varint(page, at)?;
            payload = usize::try_from(bytes).ok()?;
            at += length;
        }
        if self.kind.is_table() {
            let (row_id, length) = read_varint(page, at)?;
            cell.row_id = row_id.cast_signed();
            at += length;
        }
        let local = local_payload_bytes(payload, self.usable, self.kind);
        cell.local = at..at + local;
        at += local;
        if local < payload {
            let first = read_u32(page, at)?;
            cell.overflow = Some(Overflow { first, bytes: payload - local });
            at += 4;
        }
        cell.extent = start..at.max(start + MIN_CELL_BYTES);
        (cell.extent.end <= self.usable).then_some(cell)
    }

    /// Reads the free blocks; `None`: their list is malformed.
    fn free_blocks(&self) -> Option<Vec<Range<usize>>> {
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let mut block = read_u16(self.page, self.at + 1)?;
        let mut end = self.content;
        while block != 0 {
            let length = read_u16(self.page, block + 2)?;
            // Free blocks are in ascending order.
            let is_possible = block >= end && length >= FREE_BLOCK_HEADER_BYTES;
            if !is_possible || block + length > self.usable {
                return None;
            }
            blocks.push(block..block + length);
            end = block + length;
            block = read_u16(self.page, block)?;
        }
        Some(blocks)
    }

    /// Returns whether these cells and free blocks are all bytes from the beginning of the content
    /// to the end of the page, but the fragments that the header counts.
    fn is_whole(&self, cells: &[Cell], free_blocks: &[Range<usize>]) -> bool {
        if cells.len() != self.cell_count
            || self.cells_end() > self.content
            || self.content > self.usable
        {
            return false;
        }
        let mut used: Vec<&Range<usize>> =
            cells.iter().map(|cell| &cell.extent).chain(free_blocks).collect();
        used.sort_by_key(|range| range.start);
        let (mut end, mut fragments) = (self.content, 0);
        for range in used {
            if range.start < end {
                return false;
            }
            fragments += range.start - end;
            end = range.end;
        }
        let counted = self.page.get(self.at + 7).map(|bytes| usize::from(*bytes));
        end <= self.usable && counted == Some(fragments + self.usable - end)
    }

    /// Reads the page, as far as it can be read.
    fn to_page(self) -> BtreePage {
        let cells: Vec<Cell> =
            (0..self.cell_count).map_while(|index| self.try_cell(index)).flatten().collect();
        let free_blocks = self.free_blocks();
        let is_whole = free_blocks.as_ref().is_some_and(|blocks| self.is_whole(&cells, blocks));
        let mut unused = vec![self.cells_end()..self.content, self.usable..self.page.len()];
        let blocks = free_blocks.into_iter().flatten();
        unused.extend(blocks.map(|block| block.start + FREE_BLOCK_HEADER_BYTES..block.end));
        let last_child = self.last_child();
        BtreePage { kind: self.kind, cells, last_child, unused, is_whole }
    }

    /// Reads a cell; the outer `None`: there are no more offsets.
    fn try_cell(&self, index: usize) -> Option<Option<Cell>> {
        let is_within = self.cells_at() + 2 * index + 2 <= self.usable;
        is_within.then(|| self.cell(index))
    }

    /// Returns the number of cells with which the page is whole.
    fn find_cell_count(&self) -> Option<usize> {
        let free_blocks = self.free_blocks()?;
        let free: usize = free_blocks.iter().map(ExactSizeIterator::len).sum();
        let fragments = usize::from(*self.page.get(self.at + 7)?);
        let rest = self.usable.checked_sub(self.content)?.checked_sub(free + fragments)?;
        let (mut used, mut cells) = (0, Vec::new());
        while used < rest {
            let cell = self.cell(cells.len())?;
            used += cell.extent.len();
            cells.push(cell);
        }
        let found = PageHeader { cell_count: cells.len(), ..*self };
        found.is_whole(&cells, &free_blocks).then_some(cells.len())
    }
}

impl BtreePage {
    /// Reads a page of a b-tree whose last bytes may be reserved; `None`: it is malformed.
    pub(crate) fn parse(number: PageNumber, page: &[u8], reserved: usize) -> Option<BtreePage> {
        let header = PageHeader::read(number, page, reserved, None)?;
        Some(header.to_page()).filter(|page| page.is_whole)
    }

    /// Reads a page that may be damaged, as far as it can be read. If its kind or the number of its
    /// cells is wrong, and only one makes the page whole, that one is taken; `is_whole` is false
    /// all the same. `is_table`: whether the page belongs to a tree with row ids; `None`: unknown.
    /// Returns `None` if nothing can be read.
    pub(crate) fn read_damaged(
        number: PageNumber,
        page: &[u8],
        reserved: usize,
        is_table: Option<bool>,
    ) -> Option<BtreePage> {
        let own = PageHeader::read(number, page, reserved, None);
        let is_possible =
            |kind: PageKind| is_table.is_none_or(|is_table| kind.is_table() == is_table);
        let own = own.filter(|header| is_possible(header.kind));
        if let Some(header) = own {
            let found = header.to_page();
            if found.is_whole {
                return Some(found);
            }
        }
        let kinds: Vec<PageKind> = match (is_table, own) {
            (Some(_), _) => PageKind::ALL.into_iter().filter(|kind| is_possible(*kind)).collect(),
            (None, own) => own.iter().map(|header| header.kind).collect(),
        };
        for kind in kinds {
            let header = PageHeader::read(number, page, reserved, Some(kind))?;
            if let Some(cell_count) = header.find_cell_count().filter(|count| *count > 0) {
                let found = PageHeader { cell_count, ..header }.to_page();
                return Some(BtreePage { is_whole: false, ..found });
            }
        }
        own.map(|header| BtreePage { is_whole: false, ..header.to_page() })
    }

    /// Returns the child pages in their order; none: a leaf.
    pub(crate) fn children(&self) -> impl Iterator<Item = PageNumber> {
        self.cells.iter().filter_map(|cell| cell.child).chain(self.last_child)
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
    /// The number of free pages.
    pub(crate) free_pages: u32,
    /// The number of bytes at the end of each page that are reserved for extensions.
    pub(crate) reserved: usize,
}

impl FileHeader {
    /// Reads the header from page 1.
    pub(crate) fn parse(page: &[u8]) -> Option<FileHeader> {
        Some(FileHeader {
            first_trunk: Some(read_u32(page, 32)?).filter(|first| *first != 0),
            free_pages: read_u32(page, 36)?,
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
        assert!(parsed.children().next().is_none());
        assert!(parsed.cells.iter().all(|cell| cell.overflow.is_none()));
        for (at, byte) in [(0, 0), (3, 9), (5, 9), (8, 0), (10, 9), (7, 1), (482, 9), (483, 2)] {
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
        page[8..12].copy_from_slice(&[1, 178, 1, 244]);
        page[5..7].copy_from_slice(&[1, 178]);
        page[434..437].copy_from_slice(&[0x87, 0x68, 1]);
        page[476..480].copy_from_slice(&[0, 0, 0, 77]);
        let parsed = BtreePage::parse(2, &page, 0).expect("a page");
        let overflows: Vec<Overflow> =
            parsed.cells.iter().filter_map(|cell| cell.overflow).collect();
        assert_eq!(overflows, [Overflow { first: 77, bytes: 1000 - 39 }]);
    }

    /// The bytes of a page say its kind and the number of its cells once more.
    #[test]
    fn a_damaged_header_is_corrected() {
        let cells = BtreePage::parse(2, &leaf(), 0).expect("a page").cells;
        for (at, is_table) in [(0, Some(true)), (3, None), (4, None), (4, Some(true)), (7, None)] {
            for bit in 0..8 {
                let mut page = leaf();
                page[at] ^= 1 << bit;
                let found = BtreePage::read_damaged(2, &page, 0, is_table).expect("a page");
                assert_eq!((found.is_whole, &found.cells), (false, &cells), "byte {at}, bit {bit}");
            }
        }
        let whole = BtreePage::read_damaged(2, &leaf(), 0, None).expect("a page");
        assert!(whole.is_whole);
        assert!(BtreePage::read_damaged(2, &[0; 512], 0, Some(true)).is_none());
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
