//! Overwrites the bytes of a file that SQLite does not use, a number of pages at a time.
//!
//! `secure_delete` overwrites a row where it is when it is deleted. Copies of it may remain where
//! it was before: SQLite moves rows when it balances a tree, and without `secure_delete` it leaves
//! the bytes of deleted rows. Therefore each page is read once after the deletion, and its unused
//! bytes become zeros. Free pages come first: pages that are used later are then clean, and while a
//! purge is pending, all writers delete with `secure_delete`. So each page has to be visited only
//! once, and other writers may come in between.
//!
//! Pages are read and written through SQLite's table `sqlite_dbpage`, within a transaction.
//! Separate from `purge`, which decides when.

use crate::error::{DatabaseError, DatabaseResult};
use crate::page_layout::{
    BtreePage, FileHeader, MAX_TREE_DEPTH, OVERFLOW_HEADER_BYTES, Overflow, PageNumber, TrunkPage,
    read_u32,
};
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::collections::HashSet;

/// The progress of an erasure.
#[derive(Debug, Default)]
pub(crate) struct PageEraser {
    /// A bit for each page that was visited.
    visited: Vec<u64>,
    has_erased_free_pages: bool,
    /// The roots of the trees that were erased.
    erased_trees: HashSet<PageNumber>,
}

/// One step of an erasure.
struct EraserStep<'a> {
    tx: &'a WriteTransaction<'a>,
    reserved: usize,
    /// The number of pages that may still be visited.
    remaining: usize,
    visited: &'a mut Vec<u64>,
}

impl PageEraser {
    /// Visits about `pages` pages. Returns whether there are more.
    pub(crate) fn step(&mut self, tx: &WriteTransaction<'_>, pages: usize) -> DatabaseResult<bool> {
        let first = read_page(tx, 1)?;
        let header = FileHeader::parse(&first).ok_or_else(|| malformed_page(1))?;
        let mut step = EraserStep {
            tx,
            reserved: header.reserved,
            remaining: pages.max(1),
            visited: &mut self.visited,
        };
        if !self.has_erased_free_pages {
            if !step.erase_free_pages(header.first_trunk)? {
                return Ok(true);
            }
            self.has_erased_free_pages = true;
        }
        for root in tree_roots(tx)? {
            if self.erased_trees.contains(&root) {
                continue;
            }
            if !step.erase_tree(root)? {
                return Ok(true);
            }
            self.erased_trees.insert(root);
        }
        // A tree that grows or shrinks copies a page, with its unused bytes, to or from its root.
        step.visited.clear();
        for root in tree_roots(tx)? {
            step.erase_btree_page(root)?;
        }
        Ok(false)
    }
}

impl EraserStep<'_> {
    /// Visits a page. Returns false if it was visited before.
    fn visit(&mut self, page: PageNumber) -> bool {
        let (word, bit) = (page as usize / 64, 1 << (page % 64));
        if self.visited.len() <= word {
            self.visited.resize(word + 1, 0);
        }
        let is_new = self.visited.get(word).is_some_and(|bits| bits & bit == 0);
        if let Some(bits) = self.visited.get_mut(word).filter(|_| is_new) {
            *bits |= bit;
            self.remaining = self.remaining.saturating_sub(1);
        }
        is_new
    }

    fn is_visited(&self, page: PageNumber) -> bool {
        let word = self.visited.get(page as usize / 64);
        word.is_some_and(|bits| bits & (1 << (page % 64)) != 0)
    }

    /// Overwrites free pages. Returns whether all of them were visited.
    fn erase_free_pages(&mut self, first: Option<PageNumber>) -> DatabaseResult<bool> {
        let (mut next, mut trunks) = (first, HashSet::new());
        while let Some(number) = next {
            let mut page = read_page(self.tx, number)?;
            let trunk = TrunkPage::parse(&page).ok_or_else(|| malformed_page(number))?;
            if !trunks.insert(number) {
                return Err(malformed_page(number));
            }
            for free in trunk.free {
                if self.remaining == 0 {
                    return Ok(false);
                }
                if self.visit(free) {
                    let mut page = read_page(self.tx, free)?;
                    if erase(&mut page) {
                        write_page(self.tx, free, &page)?;
                    }
                }
            }
            if page.get_mut(trunk.unused).is_some_and(erase) {
                write_page(self.tx, number, &page)?;
            }
            next = trunk.next;
        }
        Ok(true)
    }

    /// Overwrites the unused bytes of a tree. Returns whether all of its pages were visited.
    fn erase_tree(&mut self, root: PageNumber) -> DatabaseResult<bool> {
        let mut depth = 0;
        let mut page = root;
        while let Some(child) = self.read_btree_page(page)?.children().next() {
            (page, depth) = (child, depth + 1);
            if depth > MAX_TREE_DEPTH {
                return Err(malformed_page(root));
            }
        }
        self.erase_subtree(root, depth)
    }

    /// Overwrites the unused bytes of the pages below this one, all leaves of which are `depth`
    /// pages below it.
    fn erase_subtree(&mut self, number: PageNumber, depth: usize) -> DatabaseResult<bool> {
        if self.remaining == 0 {
            return Ok(false);
        }
        if depth == 0 {
            if !self.is_visited(number) {
                self.erase_btree_page(number)?;
            }
            return Ok(true);
        }
        let children = match self.is_visited(number) {
            true => self.read_btree_page(number)?.children().collect(),
            false => self.erase_btree_page(number)?,
        };
        for child in children {
            if !self.erase_subtree(child, depth - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Overwrites the unused bytes of a page and of the overflow pages of its rows. Returns its
    /// children.
    fn erase_btree_page(&mut self, number: PageNumber) -> DatabaseResult<Vec<PageNumber>> {
        self.visit(number);
        let mut page = read_page(self.tx, number)?;
        let parsed = BtreePage::parse(number, &page, self.reserved);
        let parsed = parsed.ok_or_else(|| malformed_page(number))?;
        let mut has_changed = false;
        for range in &parsed.unused {
            has_changed |= page.get_mut(range.clone()).is_some_and(erase);
        }
        if has_changed {
            write_page(self.tx, number, &page)?;
        }
        for overflow in parsed.cells.iter().filter_map(|cell| cell.overflow) {
            self.erase_overflow(overflow)?;
        }
        Ok(parsed.children().collect())
    }

    /// Overwrites the bytes after the end of a payload, on its last overflow page.
    fn erase_overflow(&mut self, Overflow { first, bytes }: Overflow) -> DatabaseResult<()> {
        let (mut number, mut rest) = (first, bytes);
        let mut chain = HashSet::new();
        loop {
            // The pages of a chain are different ones, so it ends, whatever length a cell claims.
            if !chain.insert(number) {
                return Err(malformed_page(number));
            }
            self.visit(number);
            let mut page = read_page(self.tx, number)?;
            let space = page.len().saturating_sub(self.reserved + OVERFLOW_HEADER_BYTES);
            if rest <= space {
                let unused = page.get_mut(OVERFLOW_HEADER_BYTES + rest..);
                if unused.is_some_and(erase) {
                    write_page(self.tx, number, &page)?;
                }
                return Ok(());
            }
            rest -= space;
            number = read_u32(&page, 0).ok_or_else(|| malformed_page(number))?;
        }
    }

    fn read_btree_page(&self, number: PageNumber) -> DatabaseResult<BtreePage> {
        let page = read_page(self.tx, number)?;
        let parsed = BtreePage::parse(number, &page, self.reserved);
        parsed.ok_or_else(|| malformed_page(number))
    }
}

/// Overwrites bytes with zeros. Returns false if they were zeros.
fn erase(bytes: &mut [u8]) -> bool {
    let has_content = bytes.iter().any(|byte| *byte != 0);
    if has_content {
        bytes.fill(0);
    }
    has_content
}

fn malformed_page(number: PageNumber) -> DatabaseError {
    DatabaseError::Damaged(format!("page {number} is malformed"))
}

/// Returns the root pages of all trees, the schema's first.
fn tree_roots(tx: &WriteTransaction<'_>) -> rusqlite::Result<Vec<PageNumber>> {
    tx.prepare_cached("SELECT 1 UNION SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")?
        .query_map([], |row| row.get(0))?
        .collect()
}

fn read_page(tx: &WriteTransaction<'_>, number: PageNumber) -> DatabaseResult<Vec<u8>> {
    tx.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?
        .query_row([number], |row| row.get(0))
        .optional()?
        .ok_or_else(|| malformed_page(number))
}

fn write_page(tx: &WriteTransaction<'_>, number: PageNumber, page: &[u8]) -> DatabaseResult<()> {
    tx.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?
        .execute((number, page))
        .map(drop)
        .map_err(DatabaseError::from)
}
