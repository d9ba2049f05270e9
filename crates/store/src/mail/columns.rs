//! Columns of values by row, and sets of rows, in pages of one block each.
//!
//! A block is [`BLOCK_ROWS`] neighbouring rows. A writer reads each page of a block once, changes
//! it in memory, and writes it when the batch ends. Separate from the tables of items because these
//! values are read for many neighbouring rows at once.

use super::before_image::{BeforeImageWriter, ChangedPageKind};
use super::{BLOCK_ROWS, BLOCK_WORDS, BlockRows};
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::collections::BTreeMap;
use std::mem;
use std::ops::RangeInclusive;

/// A column of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MailColumn {
    /// The date, in seconds since 1970, plus one; 0: the row has no message. Dates outside of 1970
    /// to 2106 are the nearest one.
    Date = 1,
    /// The bits of [`larder_extract::message_flags::MessageFlags`].
    Flags = 2,
    /// The number of the thread.
    Thread = 3,
    /// The bytes of the file.
    Size = 4,
    /// The newest time at which the state of a file of the message changed, as a date.
    Changed = 5,
}

/// A set of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MailSet {
    /// The messages of a folder, by its row.
    Folder(i64),
    /// The messages with a label, by its row.
    Label(u32),
    /// The rows of messages that were known before under another row, because a file was read
    /// again: they are no new mail.
    Reread,
}

/// The rows whose labels belong to any text with the Message-ID, and not only to the text
/// of the message. No label has the row 0.
pub(crate) const ANY_TEXT_SET: u32 = 0;

impl MailSet {
    pub(crate) fn page(self, block: u32) -> i64 {
        match self {
            MailSet::Folder(folder) => folder << 24 | i64::from(block),
            // No folder has the row 0.
            MailSet::Reread => i64::from(block),
            MailSet::Label(label) => FIRST_LABEL_PAGE | i64::from(block) << 24 | i64::from(label),
        }
    }
}

/// The first page of the sets of labels.
pub(crate) const FIRST_LABEL_PAGE: i64 = 1 << 62;
/// The end of the numbers of labels.
const LABEL_END: u32 = 1 << 24;

/// The nanoseconds of a second.
const NANOSECONDS: i64 = 1_000_000_000;

/// The bytes of a page in front of the codes.
const HEADER_BYTES: usize = 5;

/// The values of a block.
pub type BlockValues = Vec<u32>;

/// A block with the dates of its messages, as the column has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailBlock {
    /// The number of the block.
    pub block: u32,
    /// The newest date; 0: the block has no message.
    pub newest: u32,
    /// The oldest date; 0: the block has no message.
    pub oldest: u32,
}

/// Returns the block of a row, and its place in the block.
#[must_use]
pub fn block_of(row: u32) -> (u32, usize) {
    (row / BLOCK_ROWS, (row % BLOCK_ROWS) as usize)
}

/// Returns the date as the column has it.
#[must_use]
pub fn date_value(seconds: i64) -> u32 {
    u32::try_from(seconds.clamp(0, i64::from(u32::MAX) - 1)).unwrap_or_default() + 1
}

/// Returns the time of a change, in nanoseconds since 1970, as the column has it.
pub(crate) fn change_value(nanoseconds: i64) -> u32 {
    date_value(nanoseconds / NANOSECONDS)
}

/// Returns the number of a row of messages.
pub(crate) fn row_number(item: ItemRow) -> DatabaseResult<u32> {
    u32::try_from(item.to_number())
        .map_err(|_| DatabaseError::Damaged("the row of a message is too large".into()))
}

fn malformed_page_error() -> DatabaseError {
    DatabaseError::Damaged("a page of a mail column is malformed".into())
}

/// Packs values. A page is the width of a code in bytes, the least value but 0 in four bytes, and a
/// code for each row: 0 for the value 0, else what the value exceeds the least one by, plus one.
/// Codes of one width are packed and unpacked many at a time, which takes a fraction of the time of
/// varints: each message that comes by itself changes a page of each column.
fn pack_values(values: &[u32]) -> Vec<u8> {
    let end = values.iter().rposition(|value| *value != 0).map_or(0, |last| last + 1);
    let values = values.get(..end).unwrap_or_default();
    // The value 0 becomes the greatest number, which is no least one.
    let (excess, greatest) = values.iter().fold((u32::MAX, 0), |(least, greatest), value| {
        (least.min(value.wrapping_sub(1)), greatest.max(*value))
    });
    if values.is_empty() {
        return Vec::new();
    }
    let least = excess + 1;
    let width = 4 - (greatest - least + 1).leading_zeros() as usize / 8;
    let mut bytes = vec![width as u8; HEADER_BYTES + end * width];
    let (header, codes) = bytes.split_at_mut(HEADER_BYTES);
    header[1..].copy_from_slice(&least.to_le_bytes());
    match width {
        1 => pack_codes::<1>(values, least, codes),
        2 => pack_codes::<2>(values, least, codes),
        3 => pack_codes::<3>(values, least, codes),
        _ => pack_codes::<4>(values, least, codes),
    }
    bytes
}

/// Writes the code of each value.
fn pack_codes<const WIDTH: usize>(values: &[u32], least: u32, codes: &mut [u8]) {
    for (value, code) in values.iter().zip(codes.as_chunks_mut::<WIDTH>().0) {
        let number = if *value == 0 { 0 } else { value - least + 1 }.to_le_bytes();
        if let Some(bytes) = number.first_chunk() {
            *code = *bytes;
        }
    }
}

fn unpack_values(bytes: &[u8], values: &mut BlockValues) -> DatabaseResult<()> {
    values.clear();
    values.resize(BLOCK_ROWS as usize, 0);
    let Some((width, rest)) = bytes.split_first() else { return Ok(()) };
    let (least, codes) = rest.split_first_chunk().ok_or_else(malformed_page_error)?;
    let least = u32::from_le_bytes(*least);
    let is_sound = match width {
        1 => unpack_codes::<1>(codes, least, values),
        2 => unpack_codes::<2>(codes, least, values),
        3 => unpack_codes::<3>(codes, least, values),
        4 => unpack_codes::<4>(codes, least, values),
        _ => false,
    };
    if is_sound { Ok(()) } else { Err(malformed_page_error()) }
}

/// Replaces the first values by those of codes of a width in bytes. Returns whether there is a
/// place for each code, and no value is too large.
fn unpack_codes<const WIDTH: usize>(bytes: &[u8], least: u32, values: &mut [u32]) -> bool {
    let (codes, rest) = bytes.as_chunks::<WIDTH>();
    let mut greatest = 0;
    for (value, code) in values.iter_mut().zip(codes) {
        let mut number = [0; 4];
        if let Some(bytes) = number.first_chunk_mut() {
            *bytes = *code;
        }
        let code = u32::from_le_bytes(number);
        greatest = code.max(greatest);
        // No branch: the rows without a value are in no order.
        *value = least.wrapping_add(code.wrapping_sub(1)) & u32::from(code == 0).wrapping_sub(1);
    }
    rest.is_empty() && codes.len() <= values.len() && least <= u32::MAX - greatest.saturating_sub(1)
}

/// Reads the values of a block; rows without a value have 0.
pub(crate) fn read_values(
    tx: &ReadTransaction<'_>,
    column: MailColumn,
    block: u32,
    values: &mut BlockValues,
) -> DatabaseResult<()> {
    let mut select = tx.prepare_cached("SELECT data FROM mail_column WHERE id = ?1")?;
    let mut rows = select.query([column_page(column, block)])?;
    match rows.next()? {
        Some(row) => unpack_values(row.get_ref(0)?.as_blob()?, values),
        None => unpack_values(&[], values),
    }
}

/// Returns the rows that have a value.
pub(crate) fn present_rows(values: &[u32]) -> BlockRows {
    let mut rows = [0; BLOCK_WORDS];
    for (word, values) in rows.iter_mut().zip(values.chunks(64)) {
        for (bit, value) in values.iter().enumerate() {
            *word |= u64::from(*value > 0) << bit;
        }
    }
    rows
}

/// Reads the blocks before a number, ascending. A later one is in a damaged table.
pub(crate) fn read_blocks(
    tx: &ReadTransaction<'_>,
    end_block: u32,
) -> DatabaseResult<Vec<MailBlock>> {
    let sql = "SELECT id, newest, oldest FROM mail_block WHERE id < ?1 ORDER BY id";
    let mut select = tx.prepare_cached(sql)?;
    let rows = select.query_map([end_block], |row| {
        Ok(MailBlock { block: row.get(0)?, newest: row.get(1)?, oldest: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Reads the rows of a set in a block.
pub(crate) fn read_set(
    tx: &ReadTransaction<'_>,
    set: MailSet,
    block: u32,
) -> DatabaseResult<BlockRows> {
    let mut select = tx.prepare_cached("SELECT rows FROM mail_set WHERE id = ?1")?;
    let mut rows = select.query([set.page(block)])?;
    match rows.next()? {
        Some(row) => unpack_set(row.get_ref(0)?.as_blob()?),
        None => Ok([0; BLOCK_WORDS]),
    }
}

pub(crate) fn unpack_set(bytes: &[u8]) -> DatabaseResult<BlockRows> {
    let mut bitmap = [0; BLOCK_WORDS];
    let (words, rest) = bytes.as_chunks::<8>();
    if words.len() != BLOCK_WORDS || !rest.is_empty() {
        return Err(malformed_page_error());
    }
    for (word, bytes) in bitmap.iter_mut().zip(words) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(bitmap)
}

/// Writes the rows of a set in a block. Adds the former ones to a before-image.
pub(crate) fn write_set(
    tx: &WriteTransaction<'_>,
    set: MailSet,
    block: u32,
    rows: &BlockRows,
    before: &mut BeforeImageWriter,
) -> DatabaseResult<()> {
    if before.has_known_rows(block) {
        before.add_set(set.page(block), block, &read_set(tx, set, block)?, rows);
    }
    write_hidden_set(tx, set, block, rows)
}

/// Writes the rows of a set in a block, which no query names.
pub(crate) fn write_hidden_set(
    tx: &WriteTransaction<'_>,
    set: MailSet,
    block: u32,
    rows: &BlockRows,
) -> DatabaseResult<()> {
    let page = set.page(block);
    if rows.iter().all(|word| *word == 0) {
        tx.prepare_cached("DELETE FROM mail_set WHERE id = ?1")?.execute([page])?;
        return Ok(());
    }
    let bytes: Vec<u8> = rows.iter().flat_map(|word| word.to_le_bytes()).collect();
    tx.prepare_cached("INSERT OR REPLACE INTO mail_set VALUES(?1, ?2)")?.execute((page, bytes))?;
    Ok(())
}

/// Passes the rows of each label that a message of these blocks has to `visit`: the block, the
/// label and the rows.
pub(crate) fn for_each_label_set(
    tx: &ReadTransaction<'_>,
    blocks: RangeInclusive<u32>,
    visit: &mut dyn FnMut(u32, u32, &BlockRows),
) -> DatabaseResult<()> {
    let first = MailSet::Label(0).page(*blocks.start());
    let last = MailSet::Label(LABEL_END - 1).page(*blocks.end());
    let sql = "SELECT id, rows FROM mail_set WHERE id BETWEEN ?1 AND ?2";
    let mut select = tx.prepare_cached(sql)?;
    let mut rows = select.query((first, last))?;
    while let Some(row) = rows.next()? {
        let page: i64 = row.get(0)?;
        let number = |bits: i64| u32::try_from(bits).map_err(|_| malformed_page_error());
        let label = number(page & i64::from(LABEL_END - 1))?;
        let block = number((page ^ FIRST_LABEL_PAGE) >> 24)?;
        visit(block, label, &unpack_set(row.get_ref(1)?.as_blob()?)?);
    }
    Ok(())
}

/// Deletes the sets of all labels.
pub(crate) fn delete_label_sets(tx: &WriteTransaction<'_>) -> rusqlite::Result<()> {
    let sql = "DELETE FROM mail_set WHERE id >= ?1";
    tx.prepare_cached(sql)?.execute([FIRST_LABEL_PAGE]).map(drop)
}

/// Returns the number of a new label from its row; an error: there are too many.
pub(crate) fn label_number(row: i64) -> DatabaseResult<u32> {
    let number = u32::try_from(row).ok().filter(|number| *number < LABEL_END);
    number.ok_or_else(|| DatabaseError::Damaged("the number of a label is too large".into()))
}

pub(crate) fn column_page(column: MailColumn, block: u32) -> i64 {
    (column as i64) << 32 | i64::from(block)
}

/// A page of a column that a batch reads or changes.
#[derive(Default)]
struct ChangedColumnPage {
    values: BlockValues,
    /// The places that were set to another value, with the value before, in the order of the
    /// changes.
    changes: Vec<(usize, u32)>,
}

impl ChangedColumnPage {
    /// Returns the places whose values are others than before, ascending, with the former values.
    fn take_changes(&mut self) -> Vec<(usize, u32)> {
        let mut changes = mem::take(&mut self.changes);
        // The sort is stable, so that the first value of a place is the former one.
        changes.sort_by_key(|(place, _)| *place);
        changes.dedup_by_key(|(place, _)| *place);
        changes.retain(|(place, former)| self.values.get(*place) != Some(former));
        changes
    }
}

/// The columns and sets that a batch changes.
#[derive(Default)]
pub(crate) struct ColumnWriter {
    columns: BTreeMap<(MailColumn, u32), ChangedColumnPage>,
    sets: BTreeMap<(MailSet, u32), BlockRows>,
}

impl ColumnWriter {
    fn column_page(
        &mut self,
        tx: &ReadTransaction<'_>,
        column: MailColumn,
        block: u32,
    ) -> DatabaseResult<&mut ChangedColumnPage> {
        use std::collections::btree_map::Entry;
        Ok(match self.columns.entry((column, block)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut page = ChangedColumnPage::default();
                read_values(tx, column, block, &mut page.values)?;
                entry.insert(page)
            }
        })
    }

    /// Returns the value of a row.
    pub(crate) fn value(
        &mut self,
        tx: &ReadTransaction<'_>,
        column: MailColumn,
        row: u32,
    ) -> DatabaseResult<u32> {
        let (block, place) = block_of(row);
        let page = self.column_page(tx, column, block)?;
        Ok(page.values.get(place).copied().unwrap_or_default())
    }

    /// Sets the value of a row.
    pub(crate) fn set_value(
        &mut self,
        tx: &ReadTransaction<'_>,
        column: MailColumn,
        row: u32,
        value: u32,
    ) -> DatabaseResult<()> {
        let (block, place) = block_of(row);
        let page = self.column_page(tx, column, block)?;
        if let Some(stored) = page.values.get_mut(place).filter(|stored| **stored != value) {
            page.changes.push((place, mem::replace(stored, value)));
        }
        Ok(())
    }

    /// Returns whether a row is in a set, with what has not been written yet.
    pub(crate) fn is_member(
        &self,
        tx: &ReadTransaction<'_>,
        set: MailSet,
        row: u32,
    ) -> DatabaseResult<bool> {
        let (block, place) = block_of(row);
        let has_place =
            |words: &[u64]| words.get(place / 64).is_some_and(|word| word & 1 << (place % 64) != 0);
        Ok(match self.sets.get(&(set, block)) {
            Some(bitmap) => has_place(bitmap.as_slice()),
            None => has_place(read_set(tx, set, block)?.as_slice()),
        })
    }

    /// Adds a row to a set, or removes it.
    pub(crate) fn set_member(
        &mut self,
        tx: &ReadTransaction<'_>,
        set: MailSet,
        row: u32,
        is_member: bool,
    ) -> DatabaseResult<()> {
        use std::collections::btree_map::Entry;
        let (block, place) = block_of(row);
        let bitmap = match self.sets.entry((set, block)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(read_set(tx, set, block)?),
        };
        if let Some(word) = bitmap.get_mut(place / 64) {
            let bit = 1 << (place % 64);
            *word = if is_member { *word | bit } else { *word & !bit };
        }
        Ok(())
    }

    /// Writes the changed pages, and the newest date of each changed block. Adds the former states
    /// to a before-image.
    pub(crate) fn write(
        mut self,
        tx: &WriteTransaction<'_>,
        before: &mut BeforeImageWriter,
    ) -> DatabaseResult<()> {
        for ((column, block), page) in &mut self.columns {
            let changes = page.take_changes();
            if changes.is_empty() {
                continue;
            }
            let number = column_page(*column, *block);
            let kind = match column {
                MailColumn::Thread | MailColumn::Changed => ChangedPageKind::HiddenColumn,
                _ => ChangedPageKind::Column,
            };
            before.add_values(kind, number, *block, &changes);
            tx.prepare_cached("INSERT OR REPLACE INTO mail_column VALUES(?1, ?2)")?
                .execute((number, pack_values(&page.values)))?;
            if *column == MailColumn::Date {
                write_block_dates(tx, *block, &page.values)?;
            }
        }
        for ((set, block), bitmap) in &self.sets {
            write_set(tx, *set, *block, bitmap, before)?;
        }
        Ok(())
    }
}

/// Writes the newest and the oldest date of a block.
fn write_block_dates(tx: &WriteTransaction<'_>, block: u32, dates: &[u32]) -> DatabaseResult<()> {
    let newest = dates.iter().max().copied().unwrap_or_default();
    let oldest = dates.iter().filter(|date| **date > 0).min().copied().unwrap_or_default();
    let stored: Option<(u32, u32)> = tx
        .prepare_cached("SELECT newest, oldest FROM mail_block WHERE id = ?1")?
        .query_row([block], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if stored != Some((newest, oldest)) {
        tx.prepare_cached("INSERT OR REPLACE INTO mail_block VALUES(?1, ?2, ?3)")?
            .execute((block, newest, oldest))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_unpacked_as_they_were_packed(
            least in 0..=u32::MAX,
            bits in 0..32_u32,
            values in proptest::collection::vec((0..8_u8, 0..=u32::MAX), 0..=BLOCK_ROWS as usize),
        ) {
            let value = |(choice, excess): &(u8, u32)| match choice {
                0 => 0,
                _ => least.saturating_add(excess & ((1 << bits) - 1)),
            };
            let mut values: Vec<u32> = values.iter().map(value).collect();
            let mut unpacked = vec![7];
            unpack_values(&pack_values(&values), &mut unpacked).expect("a page");
            values.resize(BLOCK_ROWS as usize, 0);
            prop_assert_eq!(unpacked, values);
        }

        #[test]
        fn malformed_pages_never_panic(bytes in proptest::collection::vec(0_u8.., 0..20)) {
            let mut values = Vec::new();
            if unpack_values(&bytes, &mut values).is_ok() {
                prop_assert_eq!(values.len(), BLOCK_ROWS as usize);
            }
        }
    }

    #[test]
    fn malformed_pages_are_errors() {
        let mut values = Vec::new();
        let page = |width: u8, least: u32, codes: &[u8]| {
            [&[width], least.to_le_bytes().as_slice(), codes].concat()
        };
        assert!(unpack_values(&page(1, 5, &[0, 1, 255]), &mut values).is_ok());
        assert_eq!(values.get(..3), Some([0, 5, 259].as_slice()));
        for malformed in [
            vec![1],
            vec![1, 0, 0, 0],
            page(0, 1, &[]),
            page(5, 1, &[0; 5]),
            page(2, 1, &[0; 3]),
            page(1, u32::MAX, &[2]),
            page(1, 1, &[0; 1025]),
        ] {
            assert!(unpack_values(&malformed, &mut values).is_err(), "{malformed:?}");
        }
    }
}
