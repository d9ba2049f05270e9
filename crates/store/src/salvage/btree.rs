//! B-trees of a database file: their pages, cells and records, as far as they can be read.
//!
//! Separate from `page_file`, which gives the pages, and from `salvage`, which knows the tables.

use super::page_file::{FILE_HEADER_BYTES, PageFile, read_u16, read_u32};
use crate::page_layout::PageNumber;
use rusqlite::types::Value;
use std::collections::HashSet;

const INTERIOR_INDEX: u8 = 2;
const INTERIOR_TABLE: u8 = 5;
const LEAF_INDEX: u8 = 10;
const LEAF_TABLE: u8 = 13;

/// A row: its row id, 0 in an index or a table without row ids, and its columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) row_id: i64,
    pub(super) values: Vec<Value>,
}

/// The rows of a leaf page that no tree leads to.
pub(super) struct StrayLeaf {
    /// Whether its rows have row ids.
    pub(super) is_table: bool,
    pub(super) records: Vec<Record>,
}

/// Reads the trees of a file, and notes the pages that it has read.
pub(super) struct BtreeReader<'a> {
    pages: &'a PageFile,
    visited: HashSet<PageNumber>,
    /// Whether a page or a cell of the trees read so far could not be read.
    has_damage: bool,
}

impl<'a> BtreeReader<'a> {
    pub(super) fn new(pages: &'a PageFile) -> BtreeReader<'a> {
        BtreeReader { pages, visited: HashSet::new(), has_damage: false }
    }

    /// Passes the rows of the tree with this root to `visit`, as far as they can be read. Returns
    /// whether all of them could be.
    pub(super) fn for_each_record(
        &mut self,
        root: PageNumber,
        visit: &mut dyn FnMut(Record) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<bool> {
        self.has_damage = false;
        let mut pending = vec![root];
        while let Some(number) = pending.pop() {
            // A page that was read already belongs to another tree, or the tree has a cycle.
            let page = match self.visited.insert(number) {
                true => self.pages.read_page(number),
                false => None,
            };
            let Some(page) = page else {
                self.has_damage = true;
                continue;
            };
            let children = self.read_tree_page(number, &page, visit)?;
            // Children are read in their order.
            pending.extend(children.into_iter().rev());
        }
        Ok(!self.has_damage)
    }

    /// Reads the cells of a page, and returns its children.
    fn read_tree_page(
        &mut self,
        number: PageNumber,
        page: &[u8],
        visit: &mut dyn FnMut(Record) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Vec<PageNumber>> {
        let Some(layout) = PageLayout::read(number, page) else {
            self.has_damage = true;
            return Ok(Vec::new());
        };
        let mut children = Vec::new();
        for index in 0..layout.cell_count {
            let cell = layout.cell(page, index).and_then(|cell| self.read_cell(&layout, cell));
            match cell {
                Some(cell) => {
                    children.extend(cell.child);
                    if let Some(record) = cell.record {
                        visit(record)?;
                    }
                }
                None => self.has_damage = true,
            }
        }
        children.extend(layout.last_child);
        Ok(children)
    }

    fn read_cell(&mut self, layout: &PageLayout, mut cell: &[u8]) -> Option<BtreeCell> {
        let child = match layout.kind {
            INTERIOR_INDEX | INTERIOR_TABLE => {
                let child = read_u32(cell, 0)?;
                cell = cell.get(4..)?;
                Some(child)
            }
            _ => None,
        };
        if layout.kind == INTERIOR_TABLE {
            return Some(BtreeCell { child, record: None });
        }
        let payload_bytes = usize::try_from(read_varint(&mut cell)?).ok()?;
        let row_id = if layout.kind == LEAF_TABLE { read_varint(&mut cell)? } else { 0 };
        let payload = self.read_payload(layout.kind, cell, payload_bytes)?;
        let values = decode_record(&payload)?;
        Some(BtreeCell { child, record: Some(Record { row_id, values }) })
    }

    /// Joins the part of a payload in its page with the parts in overflow pages.
    fn read_payload(&mut self, kind: u8, cell: &[u8], bytes: usize) -> Option<Vec<u8>> {
        let local = local_payload_bytes(kind, bytes, self.pages.usable_bytes());
        let mut payload = cell.get(..local)?.to_vec();
        if local == bytes {
            return Some(payload);
        }
        let mut next = read_u32(cell, local)?;
        while payload.len() < bytes {
            let page = self.pages.read_page(next)?;
            self.visited.insert(next);
            // The last page of a chain that was overwritten with zeros looks like one with data.
            self.has_damage |= page.iter().all(|byte| *byte == 0);
            let part = page.get(4..self.pages.usable_bytes())?;
            let missing = bytes - payload.len();
            payload.extend_from_slice(part.get(..missing).unwrap_or(part));
            next = read_u32(&page, 0)?;
        }
        Some(payload)
    }

    /// Notes the pages of the list of free pages.
    pub(super) fn skip_free_pages(&mut self) {
        let Some(first) = self.pages.read_page(1) else { return };
        let mut trunk = read_u32(&first, 32).unwrap_or_default();
        while trunk != 0 && self.visited.insert(trunk) {
            let Some(page) = self.pages.read_page(trunk) else { return };
            let leaves = read_u32(&page, 4).unwrap_or_default() as usize;
            let most = (self.pages.usable_bytes() / 4).saturating_sub(2);
            for index in 0..leaves.min(most) {
                self.visited.extend(read_u32(&page, 8 + 4 * index));
            }
            trunk = read_u32(&page, 0).unwrap_or_default();
        }
    }

    /// Passes the leaf pages that no tree led to, and that are not free, to `visit`.
    pub(super) fn for_each_stray_leaf(
        &mut self,
        visit: &mut dyn FnMut(StrayLeaf) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        for number in 1..=self.pages.page_count() {
            if self.visited.contains(&number) {
                continue;
            }
            let Some(page) = self.pages.read_page(number) else { continue };
            let Some(layout) = PageLayout::read(number, &page) else { continue };
            if !matches!(layout.kind, LEAF_INDEX | LEAF_TABLE) {
                continue;
            }
            let records = (0..layout.cell_count)
                .filter_map(|index| self.read_cell(&layout, layout.cell(&page, index)?)?.record)
                .collect();
            visit(StrayLeaf { is_table: layout.kind == LEAF_TABLE, records })?;
        }
        Ok(())
    }
}

struct BtreeCell {
    child: Option<PageNumber>,
    record: Option<Record>,
}

/// The header of a page of a tree.
struct PageLayout {
    kind: u8,
    cell_count: usize,
    last_child: Option<PageNumber>,
    /// The offset of the offsets of the cells.
    pointers: usize,
}

impl PageLayout {
    fn read(number: PageNumber, page: &[u8]) -> Option<PageLayout> {
        let start = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        let kind = *page.get(start)?;
        let is_interior = match kind {
            INTERIOR_INDEX | INTERIOR_TABLE => true,
            LEAF_INDEX | LEAF_TABLE => false,
            _ => return None,
        };
        let last_child = if is_interior { Some(read_u32(page, start + 8)?) } else { None };
        let pointers = start + if is_interior { 12 } else { 8 };
        let cell_count = usize::from(read_u16(page, start + 3)?);
        let is_possible = pointers + 2 * cell_count <= page.len();
        is_possible.then_some(PageLayout { kind, cell_count, last_child, pointers })
    }

    fn cell<'p>(&self, page: &'p [u8], index: usize) -> Option<&'p [u8]> {
        page.get(usize::from(read_u16(page, self.pointers + 2 * index)?)..)
    }
}

/// Returns the number of bytes of a payload that are in the page of its cell.
fn local_payload_bytes(kind: u8, bytes: usize, usable: usize) -> usize {
    let most = match kind {
        LEAF_TABLE => usable - 35,
        _ => (usable - 12) * 64 / 255 - 23,
    };
    if bytes <= most {
        return bytes;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let local = least + (bytes - least) % (usable - 4);
    if local <= most { local } else { least }
}

/// Reads a number of up to nine bytes.
fn read_varint(bytes: &mut &[u8]) -> Option<i64> {
    let mut number: u64 = 0;
    for place in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some((number << 8 | u64::from(*byte)).cast_signed());
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number.cast_signed())
}

/// Decodes the columns of a record.
fn decode_record(payload: &[u8]) -> Option<Vec<Value>> {
    let mut header = payload;
    let header_bytes = usize::try_from(read_varint(&mut header)?).ok()?;
    let mut body = payload.get(header_bytes..)?;
    let mut header = payload.get(payload.len() - header.len()..header_bytes)?;
    let mut values = Vec::new();
    while !header.is_empty() {
        let serial_type = read_varint(&mut header)?;
        values.push(decode_value(serial_type, &mut body)?);
    }
    Some(values)
}

fn decode_value(serial_type: i64, body: &mut &[u8]) -> Option<Value> {
    let integer_bytes = match serial_type {
        0 => return Some(Value::Null),
        8 | 9 => return Some(Value::Integer(serial_type - 8)),
        1..=4 => usize::try_from(serial_type).ok()?,
        5 => 6,
        6 | 7 => 8,
        12.. => {
            let bytes = take_bytes(body, usize::try_from((serial_type - 12) / 2).ok()?)?;
            return Some(match serial_type % 2 {
                0 => Value::Blob(bytes.to_vec()),
                _ => Value::Text(String::from_utf8(bytes.to_vec()).ok()?),
            });
        }
        _ => return None,
    };
    let bytes = take_bytes(body, integer_bytes)?;
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
    let number = bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte));
    Some(match serial_type {
        7 => Value::Real(f64::from_bits(number.cast_unsigned())),
        _ => Value::Integer(number),
    })
}

fn take_bytes<'b>(body: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (bytes, rest) = body.split_at_checked(count)?;
    *body = rest;
    Some(bytes)
}
