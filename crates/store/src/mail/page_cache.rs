//! Pages and lists that a reader keeps of mail until the next write: columns and sets, and the
//! lists of blocks and segments.
//!
//! A search reads the same pages again and again, and to unpack a page takes longer than to test
//! its values. Separate from `columns`, which has the format of the pages, and from `reader_cache`,
//! whose other parts are those of every store.

use super::columns::{
    BlockValues, MailBlock, MailColumn, MailSet, column_page, present_rows, read_blocks, read_set,
    read_values,
};
use super::{BLOCK_ROWS, BlockRows};
use crate::error::DatabaseResult;
use crate::index_tables::IndexTables;
use crate::mail_schema::{WORD_DICTIONARY, WORD_INDEX};
use crate::read_transaction::ReadTransaction;
use larder_index::{IndexId, ReadSegments as _, Segment};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The pages of columns that are kept, 4 KB each. The first ones stay: a search that reads more
/// begins with the newest, and so does the next one.
const MAX_COLUMN_PAGES: usize = 2048;
/// The pages of sets that are kept, 128 bytes each.
const MAX_SET_PAGES: usize = 16_384;

/// A column of a block, unpacked.
#[derive(Debug, Clone)]
struct ColumnPage {
    values: Arc<BlockValues>,
    /// The rows with a value.
    rows: BlockRows,
}

/// The pages and lists that were read.
#[derive(Debug, Default)]
pub(crate) struct MailPageCache {
    columns: Mutex<HashMap<i64, ColumnPage>>,
    sets: Mutex<HashMap<i64, BlockRows>>,
    blocks: OnceLock<BlockLists>,
    word_segments: OnceLock<Vec<Segment>>,
    dictionary_segments: OnceLock<Vec<Segment>>,
}

/// The blocks in both orders.
#[derive(Debug)]
struct BlockLists {
    ascending: Vec<MailBlock>,
    newest_first: Vec<MailBlock>,
}

impl MailPageCache {
    /// Returns the values of a column in a block.
    pub(crate) fn values(
        &self,
        tx: &ReadTransaction<'_>,
        column: MailColumn,
        block: u32,
    ) -> DatabaseResult<Arc<BlockValues>> {
        Ok(self.column_page(tx, column, block)?.values)
    }

    /// Returns the rows of a block that have a message.
    pub(crate) fn message_rows(
        &self,
        tx: &ReadTransaction<'_>,
        block: u32,
    ) -> DatabaseResult<BlockRows> {
        Ok(self.column_page(tx, MailColumn::Date, block)?.rows)
    }

    fn column_page(
        &self,
        tx: &ReadTransaction<'_>,
        column: MailColumn,
        block: u32,
    ) -> DatabaseResult<ColumnPage> {
        let key = column_page(column, block);
        let mut known = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = known.get(&key) {
            return Ok(page.clone());
        }
        let mut values = Vec::with_capacity(BLOCK_ROWS as usize);
        read_values(tx, column, block, &mut values)?;
        let page = ColumnPage { rows: present_rows(&values), values: Arc::new(values) };
        if known.len() < MAX_COLUMN_PAGES {
            known.insert(key, page.clone());
        }
        Ok(page)
    }

    /// Returns the rows of a set in a block.
    pub(crate) fn set(
        &self,
        tx: &ReadTransaction<'_>,
        set: MailSet,
        block: u32,
    ) -> DatabaseResult<BlockRows> {
        let mut known = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = known.get(&set.page(block)) {
            return Ok(*rows);
        }
        let rows = read_set(tx, set, block)?;
        if known.len() < MAX_SET_PAGES {
            known.insert(set.page(block), rows);
        }
        Ok(rows)
    }

    /// Returns the blocks before a number, ascending.
    pub(crate) fn blocks(
        &self,
        tx: &ReadTransaction<'_>,
        end_block: u32,
    ) -> DatabaseResult<&[MailBlock]> {
        Ok(&self.block_lists(tx, end_block)?.ascending)
    }

    /// Returns the blocks before a number, the newest first.
    pub(crate) fn newest_blocks(
        &self,
        tx: &ReadTransaction<'_>,
        end_block: u32,
    ) -> DatabaseResult<&[MailBlock]> {
        Ok(&self.block_lists(tx, end_block)?.newest_first)
    }

    fn block_lists(&self, tx: &ReadTransaction<'_>, end_block: u32) -> DatabaseResult<&BlockLists> {
        if let Some(known) = self.blocks.get() {
            return Ok(known);
        }
        let ascending = read_blocks(tx, end_block)?;
        let mut newest_first = ascending.clone();
        newest_first.sort_by_key(|one| std::cmp::Reverse((one.newest, one.block)));
        Ok(self.blocks.get_or_init(|| BlockLists { ascending, newest_first }))
    }

    /// Returns the segments of the index of words.
    pub(crate) fn word_segments(&self, pages: &IndexTables<'_>) -> DatabaseResult<&[Segment]> {
        read_once(&self.word_segments, pages, WORD_INDEX)
    }

    /// Returns the segments of the dictionary.
    pub(crate) fn dictionary_segments(
        &self,
        pages: &IndexTables<'_>,
    ) -> DatabaseResult<&[Segment]> {
        read_once(&self.dictionary_segments, pages, WORD_DICTIONARY)
    }
}

fn read_once<'c>(
    known: &'c OnceLock<Vec<Segment>>,
    pages: &IndexTables<'_>,
    index: IndexId,
) -> DatabaseResult<&'c [Segment]> {
    if let Some(segments) = known.get() {
        return Ok(segments);
    }
    let segments = pages.segments(index)?;
    Ok(known.get_or_init(|| segments))
}
