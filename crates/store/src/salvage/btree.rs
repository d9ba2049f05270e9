//! B-trees of a database file: their pages, cells and records, as far as they can be read.
//!
//! Separate from `page_file`, which gives the pages, and from `salvage`, which knows the tables.

use super::page_file::PageFile;
use crate::page_layout::{
    BtreePage, Cell, FileHeader, MAX_TREE_DEPTH, OVERFLOW_HEADER_BYTES, PageKind, PageNumber,
    TrunkPage, read_u32, read_varint,
};
use rusqlite::types::Value;
use std::cmp::Ordering;
use std::collections::HashSet;

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

/// The root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeRoot {
    pub(super) page: PageNumber,
    /// Whether the rows have row ids.
    pub(super) is_table: bool,
}

/// Receives the rows of a tree. It returns whether a row belongs to the tree.
pub(super) type RowVisitor<'v> = dyn FnMut(Record) -> rusqlite::Result<bool> + 'v;

/// Reads the trees of a file.
pub(super) struct BtreeReader<'a> {
    pages: &'a PageFile,
    /// The pages all rows of which came out.
    read: HashSet<PageNumber>,
    /// The free pages.
    free: HashSet<PageNumber>,
    /// Whether the list of free pages is whole.
    is_free_list_whole: bool,
}

/// A payload, with the pages that it continues on.
struct Payload {
    bytes: Vec<u8>,
    pages: Vec<PageNumber>,
    is_whole: bool,
}

/// The progress in a tree.
struct TreeWalk<'r, 'a, 'v> {
    reader: &'r mut BtreeReader<'a>,
    is_table: bool,
    visit: &'r mut RowVisitor<'v>,
    visited: HashSet<PageNumber>,
    /// The last row id, or the values of the last row of an index.
    last_row_id: Option<i64>,
    last_values: Vec<Value>,
    /// The depth of the leaves, which is the same for all.
    leaf_depth: Option<usize>,
    is_whole: bool,
}

impl<'a> BtreeReader<'a> {
    pub(super) fn new(pages: &'a PageFile) -> BtreeReader<'a> {
        let mut reader = BtreeReader {
            pages,
            read: HashSet::new(),
            free: HashSet::new(),
            is_free_list_whole: false,
        };
        reader.is_free_list_whole = reader.read_free_list().is_some();
        reader
    }

    /// Passes the rows of the tree with this root to `visit`, as far as they can be read. Returns
    /// whether all of them could be, and each belongs to the tree: the bytes of each page add up,
    /// the rows are in their order, and all leaves have the same depth.
    pub(super) fn for_each_record(
        &mut self,
        root: TreeRoot,
        visit: &mut RowVisitor<'_>,
    ) -> rusqlite::Result<bool> {
        let mut walk = TreeWalk {
            reader: self,
            is_table: root.is_table,
            visit,
            visited: HashSet::new(),
            last_row_id: None,
            last_values: Vec::new(),
            leaf_depth: None,
            is_whole: true,
        };
        walk.read_page(root.page, 0)?;
        Ok(walk.is_whole)
    }

    /// Reads the list of free pages; `None`: it is malformed. The pages until then are kept.
    fn read_free_list(&mut self) -> Option<()> {
        let header = FileHeader::parse(&self.pages.read_page(1)?)?;
        let most = (self.pages.usable_bytes() / 4).saturating_sub(2);
        let mut next = header.first_trunk;
        while let Some(number) = next {
            let trunk = TrunkPage::parse(&self.pages.read_page(number)?)?;
            if trunk.free.len() > most || !self.free.insert(number) {
                return None;
            }
            for page in trunk.free {
                let is_possible = page > 1 && page <= self.pages.page_count();
                if !is_possible || !self.free.insert(page) {
                    return None;
                }
            }
            next = trunk.next;
        }
        (self.free.len() == header.free_pages as usize).then_some(())
    }

    /// Joins the part of a payload in its page with the parts in overflow pages; `None`: they
    /// cannot be read.
    fn read_payload(&self, page: &[u8], cell: &Cell) -> Option<Payload> {
        let bytes = page.get(cell.local.clone())?.to_vec();
        let mut payload = Payload { bytes, pages: Vec::new(), is_whole: true };
        let Some(overflow) = cell.overflow else { return Some(payload) };
        let space = self.pages.usable_bytes() - OVERFLOW_HEADER_BYTES;
        // No chain is longer than the file: a wrong length takes no memory.
        if overflow.bytes.div_ceil(space) > self.pages.page_count() as usize {
            return None;
        }
        let (mut next, mut missing) = (overflow.first, overflow.bytes);
        while missing > 0 {
            let page = self.pages.read_page(next)?;
            payload.pages.push(next);
            // The last page of a chain that was overwritten with zeros looks like one with data.
            let is_free = self.is_free_list_whole && self.free.contains(&next);
            payload.is_whole &= !is_free && page.iter().any(|byte| *byte != 0);
            let part =
                page.get(OVERFLOW_HEADER_BYTES..OVERFLOW_HEADER_BYTES + missing.min(space))?;
            payload.bytes.extend_from_slice(part);
            missing -= part.len();
            next = read_u32(&page, 0)?;
        }
        payload.is_whole &= next == 0;
        Some(payload)
    }

    /// Passes the leaf pages that are not free, and of which not all rows came out, to `visit`.
    pub(super) fn for_each_stray_leaf(
        &mut self,
        visit: &mut dyn FnMut(StrayLeaf) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        for number in 1..=self.pages.page_count() {
            if self.read.contains(&number) || self.free.contains(&number) {
                continue;
            }
            let Some(bytes) = self.pages.read_page(number) else { continue };
            let reserved = self.pages.reserved_bytes;
            let page = BtreePage::read_damaged(number, &bytes, reserved, None);
            let Some(page) = page.filter(|page| page.kind.is_leaf()) else { continue };
            let records = page
                .cells
                .iter()
                .filter_map(|cell| {
                    let values = decode_record(&self.read_payload(&bytes, cell)?.bytes)?;
                    Some(Record { row_id: cell.row_id, values })
                })
                .collect();
            visit(StrayLeaf { is_table: page.kind.is_table(), records })?;
        }
        Ok(())
    }
}

impl TreeWalk<'_, '_, '_> {
    /// Reads a page and the pages below it.
    fn read_page(&mut self, number: PageNumber, depth: usize) -> rusqlite::Result<()> {
        let is_free = self.reader.is_free_list_whole && self.reader.free.contains(&number);
        if is_free || depth > MAX_TREE_DEPTH || !self.visited.insert(number) {
            self.is_whole = false;
            return Ok(());
        }
        let reserved = self.reader.pages.reserved_bytes;
        let found = self.reader.pages.read_page(number).and_then(|bytes| {
            let page = BtreePage::read_damaged(number, &bytes, reserved, Some(self.is_table))?;
            Some((bytes, page))
        });
        let Some((bytes, page)) = found else {
            self.is_whole = false;
            return Ok(());
        };
        let mut is_whole = page.is_whole;
        if page.kind.is_leaf() {
            is_whole &= *self.leaf_depth.get_or_insert(depth) == depth;
            // Only a root can be empty.
            is_whole &= depth == 0 || !page.cells.is_empty();
        }
        for cell in &page.cells {
            if let Some(child) = cell.child {
                self.read_page(child, depth + 1)?;
            }
            is_whole &= self.read_cell(&page, &bytes, cell)?;
        }
        if let Some(child) = page.last_child {
            self.read_page(child, depth + 1)?;
        }
        self.is_whole &= is_whole;
        if is_whole {
            self.reader.read.insert(number);
        }
        Ok(())
    }

    /// Reads the row of a cell. Returns whether it is whole, and belongs to the tree.
    fn read_cell(&mut self, page: &BtreePage, bytes: &[u8], cell: &Cell) -> rusqlite::Result<bool> {
        if page.kind == PageKind::TableInterior {
            // The row id is that of the last row before it, or of one that was deleted.
            let is_in_order = self.last_row_id.is_none_or(|last| last <= cell.row_id);
            self.last_row_id = Some(cell.row_id);
            return Ok(is_in_order);
        }
        let payload = self.reader.read_payload(bytes, cell);
        let found = payload.and_then(|payload| Some((decode_record(&payload.bytes)?, payload)));
        let Some((values, payload)) = found else { return Ok(false) };
        let is_in_order = self.follows_last_row(cell.row_id, &values);
        let is_own = (self.visit)(Record { row_id: cell.row_id, values })?;
        let mut is_whole = payload.is_whole && is_own && is_in_order;
        if is_whole {
            for page in payload.pages {
                is_whole &= self.reader.read.insert(page);
            }
        }
        Ok(is_whole)
    }

    /// Returns whether a row comes after the row before it.
    fn follows_last_row(&mut self, row_id: i64, values: &[Value]) -> bool {
        if self.is_table {
            // The row id in the page above may be the first one.
            let last = self.last_row_id.replace(row_id);
            return last.is_none_or(|last| last < row_id);
        }
        let last = std::mem::replace(&mut self.last_values, values.to_vec());
        let orders = last.iter().zip(values).map(|(last, value)| compare_values(last, value));
        last.is_empty() || orders.fold(Ordering::Equal, Ordering::then) == Ordering::Less
    }
}

/// Compares values as SQLite does in an index.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Integer(_) | Value::Real(_) => 1,
        Value::Text(_) => 2,
        Value::Blob(_) => 3,
    };
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Blob(left), Value::Blob(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Decodes the columns of a record.
fn decode_record(payload: &[u8]) -> Option<Vec<Value>> {
    let (header_bytes, mut at) = read_varint(payload, 0)?;
    let (header, mut body) = payload.split_at_checked(usize::try_from(header_bytes).ok()?)?;
    let mut values = Vec::new();
    while at < header.len() {
        let (serial_type, length) = read_varint(header, at)?;
        values.push(decode_value(serial_type.cast_signed(), &mut body)?);
        at += length;
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
