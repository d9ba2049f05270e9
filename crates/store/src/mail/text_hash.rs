//! Reading the hashes of the texts of messages, which tell those with one Message-ID apart.
//!
//! Separate from `label_items`, which reads nothing, and used by readers and writers.

use crate::error::DatabaseResult;
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::ItemRow;
use larder_extract::message_summary::MessageSummary;

/// Reads the hashes of the texts of messages.
pub(crate) struct TextHashReader<'a>(ReadStatement<'a>);

impl<'a> TextHashReader<'a> {
    pub(crate) fn new(tx: &ReadTransaction<'a>) -> DatabaseResult<TextHashReader<'a>> {
        let sql = "SELECT stored_fields FROM item WHERE id = ?1";
        Ok(TextHashReader(tx.prepare_cached(sql)?))
    }

    /// Returns the hash of the text of a message; `None`: there is no such message.
    pub(crate) fn read(&mut self, item: ItemRow) -> DatabaseResult<Option<u64>> {
        let mut rows = self.0.query([item])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let summary = row.get_ref(0)?.as_blob_or_null()?.unwrap_or_default();
        Ok(MessageSummary::text_hash_of(summary))
    }
}

/// Reads the hash of the text of a message; `None`: there is no such message.
pub(crate) fn read_text_hash(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> DatabaseResult<Option<u64>> {
    TextHashReader::new(tx)?.read(item)
}
