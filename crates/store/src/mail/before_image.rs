//! The states of messages that a batch changed, as they were before it: values of columns, and
//! membership in folders and labels.
//!
//! A view over messages keeps no answer. Whether a message was in it follows from these
//! before-images, and from the text, which never changes. One row of `mail_before_image` has the
//! changes of a batch, so that a batch of thousands of changed flags costs one insertion, and
//! messages that are new in a batch are not in it at all. The pages are compared when they are
//! written, whoever changed them.
//!
//! | part of the record | encoding |
//! |---|---|
//! | for each changed page: the block, and [`ChangedPageKind`] | varints |
//! | the page | signed varint |
//! | the number of changed rows in it | varint |
//! | each: the distance from the row before it, and the former value of a column | varints |
//!
//! The key of a record is the sum of the sizes of all records up to it, so that the oldest ones are
//! deleted by their keys when the table exceeds [`MAX_RECORD_BYTES`].
//!
//! `former_states` reads the records. Separate from `before_images`, whose images are the bytes of
//! items.

use super::{BLOCK_ROWS, BlockRows};
use crate::Seq;
use crate::error::DatabaseResult;
use crate::write_transaction::WriteTransaction;
use larder_index::varint::{write_signed_varint, write_varint};
use rusqlite::OptionalExtension as _;

/// The size of all records that are kept.
const MAX_RECORD_BYTES: i64 = 16 << 20;
/// The bytes of a row beside its data.
const RECORD_OVERHEAD_BYTES: i64 = 16;

/// The kind of a changed page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedPageKind {
    /// The values of a column, whose change a person sees.
    Column = 0,
    /// The values of a column that changes without a person, such as the number of the thread.
    HiddenColumn = 1,
    /// A folder or a label.
    Set = 2,
}

impl ChangedPageKind {
    pub(crate) fn from_number(number: u64) -> Option<ChangedPageKind> {
        let all = [ChangedPageKind::Column, ChangedPageKind::HiddenColumn, ChangedPageKind::Set];
        all.into_iter().find(|kind| *kind as u64 == number)
    }
}

/// Collects the former states of the messages that a part of a batch changes.
pub(crate) struct BeforeImageWriter {
    /// The first row that is new in the batch.
    first_new_row: u32,
    data: Vec<u8>,
    is_unknown: bool,
}

impl BeforeImageWriter {
    /// Begins a record. `last_row` is the last row before the batch.
    pub(crate) fn new(last_row: i64) -> BeforeImageWriter {
        let first_new_row = u32::try_from(last_row.saturating_add(1)).unwrap_or(u32::MAX);
        BeforeImageWriter { first_new_row, data: Vec::new(), is_unknown: false }
    }

    /// Returns the number of rows of a block that are not new.
    fn known_rows(&self, block: u32) -> usize {
        let first = u64::from(block) * u64::from(BLOCK_ROWS);
        let rows = u64::from(self.first_new_row).saturating_sub(first);
        rows.min(u64::from(BLOCK_ROWS)) as usize
    }

    /// Returns whether the former page of a block has anything to record.
    pub(crate) fn has_known_rows(&self, block: u32) -> bool {
        self.known_rows(block) > 0
    }

    /// Records that the former states are not known.
    pub(crate) fn mark_unknown(&mut self) {
        self.is_unknown = true;
    }

    /// Records the values of a block that change: places, ascending, with the former values.
    pub(crate) fn add_values(
        &mut self,
        kind: ChangedPageKind,
        page: i64,
        block: u32,
        changes: &[(usize, u32)],
    ) {
        let known = self.known_rows(block);
        let changes = changes.get(..changes.partition_point(|(place, _)| *place < known));
        let changes = changes.unwrap_or_default();
        let Some(data) = self.begin_page(kind, block, page, changes.len()) else { return };
        let mut next = 0;
        for (place, former) in changes {
            write_varint(data, (place - next) as u64);
            write_varint(data, u64::from(*former));
            next = place + 1;
        }
    }

    /// Records the rows of a block that enter or leave a set.
    pub(crate) fn add_set(&mut self, page: i64, block: u32, former: &BlockRows, rows: &BlockRows) {
        let is_changed = |place: &usize| {
            let word = |rows: &BlockRows| rows.get(place / 64).copied().unwrap_or_default();
            (word(former) ^ word(rows)) >> (place % 64) & 1 != 0
        };
        let places: Vec<usize> = (0..self.known_rows(block)).filter(is_changed).collect();
        let Some(data) = self.begin_page(ChangedPageKind::Set, block, page, places.len()) else {
            return;
        };
        let mut next = 0;
        for place in places {
            write_varint(data, (place - next) as u64);
            next = place + 1;
        }
    }

    fn begin_page(
        &mut self,
        kind: ChangedPageKind,
        block: u32,
        page: i64,
        count: usize,
    ) -> Option<&mut Vec<u8>> {
        if count == 0 {
            return None;
        }
        write_varint(&mut self.data, block.into());
        write_varint(&mut self.data, kind as u64);
        write_signed_varint(&mut self.data, page);
        write_varint(&mut self.data, count as u64);
        Some(&mut self.data)
    }

    /// Writes the record, and deletes the oldest ones beyond the limit.
    pub(crate) fn write(self, tx: &WriteTransaction<'_>, seq: Seq) -> DatabaseResult<()> {
        let newest: Option<(i64, Seq)> = tx
            .prepare_cached("SELECT id, seq FROM mail_before_image ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (last_id, previous) = newest.unwrap_or_default();
        let id = last_id + self.data.len() as i64 + RECORD_OVERHEAD_BYTES;
        let data = (!self.is_unknown).then_some(self.data);
        tx.prepare_cached(
            "INSERT INTO mail_before_image(id, seq, previous, first_new_row, data)
             VALUES(?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((id, seq, previous, self.first_new_row, data))?;
        tx.prepare_cached("DELETE FROM mail_before_image WHERE id < ?1")?
            .execute([id - MAX_RECORD_BYTES])?;
        Ok(())
    }
}
