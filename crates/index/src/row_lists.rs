//! Rows of a term with their lists of positions, out of their blocks.
//!
//! Separate from the merge and its inputs, which both have them: an input has the rest of an entry
//! that is divided, and a merge has the rows of the next entry.

use crate::block::CorruptBlock;
use crate::position_list::PositionLists;
use crate::word_block::WordEntry;
use std::mem;

/// Rows of a term, ascending, with their lists of positions, one for each row or none at all.
#[derive(Debug, Default)]
pub(crate) struct RowLists {
    pub(crate) rows: Vec<u32>,
    pub(crate) lists: Vec<u8>,
}

impl RowLists {
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.lists.clear();
    }

    /// Appends the rows of an entry that does not continue another one. Its lists are counted, not
    /// decoded.
    pub(crate) fn add_entry(&mut self, entry: &WordEntry<'_>) -> Result<(), CorruptBlock> {
        entry.decode_rows(&mut self.rows)?;
        if !entry.positions.is_empty() {
            let mut lists = PositionLists::new(entry.positions);
            lists.skip(entry.count)?;
            if !lists.remaining_bytes().is_empty() {
                return Err(CorruptBlock);
            }
        }
        self.lists.extend_from_slice(entry.positions);
        Ok(())
    }

    /// Moves the first `count` rows to the end of `target`.
    pub(crate) fn move_first(
        &mut self,
        count: usize,
        target: &mut RowLists,
    ) -> Result<(), CorruptBlock> {
        let count = count.min(self.rows.len());
        let length = if count == self.rows.len() || self.lists.is_empty() {
            self.lists.len()
        } else {
            PositionLists::new(&self.lists).skip(count)?.len()
        };
        target.rows.extend(self.rows.drain(..count));
        target.lists.extend(self.lists.drain(..length));
        Ok(())
    }

    /// Removes the rows for which `is_dropped` is true. Returns whether there were any.
    pub(crate) fn remove(
        &mut self,
        is_dropped: &mut dyn FnMut(u32) -> bool,
    ) -> Result<bool, CorruptBlock> {
        let all = mem::take(self);
        let mut lists = PositionLists::new(&all.lists);
        for row in &all.rows {
            let list = if all.lists.is_empty() { &[] } else { lists.skip(1)? };
            if !is_dropped(*row) {
                self.rows.push(*row);
                self.lists.extend_from_slice(list);
            }
        }
        Ok(self.rows.len() < all.rows.len())
    }
}
