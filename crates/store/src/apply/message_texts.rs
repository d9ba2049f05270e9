//! Reading the Message-IDs and texts of messages, in all collections.
//!
//! Separate from `labels`, `text_labels` and `message_names`, which all need it.

use crate::Kind;
use crate::error::DatabaseResult;
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, UidFinder, UidLookup};
use larder_extract::message_summary::MessageSummary;

/// Reads the hashes of the texts of messages.
pub(super) struct TextHashReader<'a>(ReadStatement<'a>);

impl<'a> TextHashReader<'a> {
    pub(super) fn new(tx: &ReadTransaction<'a>) -> DatabaseResult<TextHashReader<'a>> {
        let sql = "SELECT stored_fields FROM item WHERE id = ?1";
        Ok(TextHashReader(tx.prepare_cached(sql)?))
    }

    /// Returns the hash of the text of a message; `None`: there is no such message.
    fn read(&mut self, item: ItemRow) -> DatabaseResult<Option<u64>> {
        let mut rows = self.0.query([item])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let summary = row.get_ref(0)?.as_blob_or_null()?.unwrap_or_default();
        Ok(MessageSummary::text_hash_of(summary))
    }

    /// Returns whether a message has this text, or any text will do.
    pub(super) fn is_text(
        &mut self,
        item: ItemRow,
        text_hash: Option<u64>,
    ) -> DatabaseResult<bool> {
        Ok(match text_hash {
            Some(hash) => self.read(item)? == Some(hash),
            None => true,
        })
    }
}

/// Returns whether a message has this text, or any text will do.
pub(super) fn is_text(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
    text_hash: Option<u64>,
) -> DatabaseResult<bool> {
    TextHashReader::new(tx)?.is_text(item, text_hash)
}

/// Reads the hash of the text of a message; `None`: there is no such message.
pub(super) fn read_text_hash(
    tx: &ReadTransaction<'_>,
    item: ItemRow,
) -> DatabaseResult<Option<u64>> {
    TextHashReader::new(tx)?.read(item)
}

/// Reads the collections that messages are in.
pub(super) fn read_mail_collections(
    tx: &ReadTransaction<'_>,
) -> rusqlite::Result<Vec<CollectionKey>> {
    let sql = "SELECT id, handle_key FROM collection WHERE removed = 0 AND type = ?1";
    let mut select = tx.prepare_cached(sql)?;
    let rows = select.query_map([Kind::Message.collection_type().number()], |row| {
        Ok(CollectionKey { id: row.get(0)?, handle_key: row.get(1)? })
    })?;
    rows.collect()
}

/// Finds the messages with this name in other collections than one.
pub(super) fn find_elsewhere(
    tx: &ReadTransaction<'_>,
    finder: &mut UidFinder<'_>,
    collection: &CollectionKey,
    uid: &str,
) -> DatabaseResult<Vec<ItemRow>> {
    let mut found = Vec::new();
    for other in read_mail_collections(tx)?.iter().filter(|other| other.id != collection.id) {
        if let UidLookup::Item(item) = finder.find(other, uid, "")? {
            found.push(item);
        }
    }
    Ok(found)
}

/// Reads the Message-ID of a message, which another text may have as its name.
pub(super) fn read_message_id(tx: &ReadTransaction<'_>, item: ItemRow) -> DatabaseResult<String> {
    let mut select = tx.prepare_cached(
        "SELECT coalesce(o.message_id, i.uid) FROM item i
         LEFT JOIN mail_other_text o ON o.item = i.id WHERE i.id = ?1",
    )?;
    Ok(select.query_row([item], |row| row.get(0))?)
}
