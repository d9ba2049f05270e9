//! The values of a column by row.
//!
//! Separate from `block_test`, which tests whole blocks: a list reads the states of a few rows, and
//! neighbouring ones share a read.

use crate::error::Error;
use larder_store::{BlockValues, MailColumn, MailReader, block_of};
use std::sync::Arc;

/// Reads values of a column, a block at a time.
pub(super) struct RowValues<'m> {
    mail: &'m MailReader<'m>,
    column: MailColumn,
    block: Option<(u32, Arc<BlockValues>)>,
}

impl<'m> RowValues<'m> {
    pub(super) fn new(mail: &'m MailReader<'m>, column: MailColumn) -> RowValues<'m> {
        RowValues { mail, column, block: None }
    }

    /// Returns the value of a row; 0: none.
    pub(super) fn get(&mut self, row: u32) -> Result<u32, Error> {
        let (block, place) = block_of(row);
        let values = match &self.block {
            Some((known, values)) if *known == block => values,
            _ => {
                let values = self.mail.values(self.column, block)?;
                &self.block.insert((block, values)).1
            }
        };
        Ok(values.get(place).copied().unwrap_or_default())
    }
}
