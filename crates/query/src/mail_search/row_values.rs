//! The values of a column by row.
//!
//! Separate from `block_test`, which tests whole blocks: a list reads the states of a few rows, and
//! neighbouring ones share a read.

use crate::error::Error;
use larder_store::{BlockValues, MailColumn, MailReader, block_of};

/// Reads values of a column, a block at a time.
pub(super) struct RowValues<'m> {
    mail: &'m MailReader<'m>,
    column: MailColumn,
    block: Option<u32>,
    values: BlockValues,
}

impl<'m> RowValues<'m> {
    pub(super) fn new(mail: &'m MailReader<'m>, column: MailColumn) -> RowValues<'m> {
        RowValues { mail, column, block: None, values: Vec::new() }
    }

    /// Returns the value of a row; 0: none.
    pub(super) fn get(&mut self, row: u32) -> Result<u32, Error> {
        let (block, place) = block_of(row);
        if self.block != Some(block) {
            self.mail.values(self.column, block, &mut self.values)?;
            self.block = Some(block);
        }
        Ok(self.values.get(place).copied().unwrap_or_default())
    }
}
