//! The texts with a Message-ID, and the items that their labels are from.
//!
//! Separate from `waiting_labels`, which counts the labels of messages that are not there.

use super::{MailReader, find_other_texts};
use crate::error::{DatabaseResult, Result};
use crate::label_feed::{LabelledText, SiblingTexts};
use crate::mail::batch::{OTHER_TEXT_ORIGIN, is_other_text_name};
use crate::mail::columns::{ANY_TEXT_SET, MailSet, block_of, row_number};
use crate::mail::label_items::LabelItems;
use crate::mail::labels::read_waiting_items;
use crate::mail::text_hash::read_text_hash;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, find_row};
use larder_extract::message_summary::MessageSummary;
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of texts with a Message-ID from which on they are kept for the next one of them.
const MIN_KEPT_SIBLINGS: usize = 2;

impl MailReader<'_> {
    /// Returns the names of messages, and the hashes of their texts, in the order of the rows. Rows
    /// without a message are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn labelled_texts(&self, rows: &[u32]) -> Result<Vec<LabelledText>> {
        self.run(|tx| {
            let sql = "SELECT EXISTS(SELECT 1 FROM mail_waiting_label)";
            let has_waiting: bool = tx.query_row(sql, [], |row| row.get(0))?;
            let mut select =
                tx.prepare_cached("SELECT uid, uid_origin, stored_fields FROM item WHERE id = ?1")?;
            // Of many texts with one Message-ID, the others are read once.
            let mut known: HashMap<String, Option<Arc<SiblingTexts>>> = HashMap::new();
            let mut texts = Vec::with_capacity(rows.len());
            for row in rows {
                let mut found = select.query([row])?;
                let Some(item) = found.next()? else { continue };
                let summary = item.get_ref(2)?.as_blob_or_null()?.unwrap_or_default();
                let mut text = LabelledText {
                    uid: item.get(0)?,
                    text_hash: MessageSummary::text_hash_of(summary),
                    message_id: None,
                    siblings: None,
                };
                if item.get::<_, i64>(1)? == OTHER_TEXT_ORIGIN {
                    text.message_id = read_other_text_id(tx, *row)?;
                }
                let has_other_name = text.message_id.is_some();
                let is_of_any = || -> DatabaseResult<bool> {
                    let (block, place) = block_of(*row);
                    let set = self.cache.mail.set(tx, MailSet::Label(ANY_TEXT_SET), block)?;
                    Ok(set.get(place / 64).is_some_and(|word| word & 1 << (place % 64) != 0))
                };
                if has_other_name || has_waiting || is_of_any()? {
                    let (message_id, _) = text.identity();
                    if let Some(siblings) = known.get(message_id) {
                        text.siblings = siblings.clone();
                    } else {
                        let message_id = message_id.to_string();
                        let items = read_waiting_items(tx, &message_id)?;
                        if has_other_name || !items.is_empty() || is_of_any()? {
                            text.siblings = Some(Arc::new(find_siblings(tx, &message_id, &items)?));
                        }
                        // One that is alone is read once anyway.
                        let is_alone =
                            |known: &Arc<SiblingTexts>| known.hashes.len() < MIN_KEPT_SIBLINGS;
                        if !text.siblings.as_ref().is_none_or(is_alone) {
                            known.insert(message_id, text.siblings.clone());
                        }
                    }
                }
                texts.push(text);
            }
            Ok(texts)
        })
    }

    /// Returns any text with a Message-ID that no message in the index has.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn unindexed_text(&self, message_id: &str) -> Result<LabelledText> {
        let items = self.waiting_items(message_id)?;
        let item_names = items.iter().map(|(name, _)| name.to_string()).collect();
        let siblings = Some(Arc::new(SiblingTexts { hashes: Vec::new(), item_names }));
        Ok(LabelledText { siblings, ..LabelledText::from(message_id.to_string()) })
    }

    /// Returns the hash of the text of a message; `None`: there is no such message.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn text_hash(&self, row: u32) -> Result<Option<u64>> {
        self.run(|tx| read_text_hash(tx, ItemRow::from_number(i64::from(row))))
    }

    /// Returns the rows of the messages with this Message-ID, in all collections, also of those
    /// that have a name of their own because another text has the Message-ID.
    pub fn rows_with_uid(&self, uid: &str) -> Result<Vec<u32>> {
        self.run(|tx| find_rows(tx, uid))
    }

    /// Returns the Message-ID of the messages with a name that is made from Message-ID and text.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn message_id_of(&self, name: &str) -> Result<Option<String>> {
        if !is_other_text_name(name) {
            return Ok(None);
        }
        self.run(|tx| match find_named_rows(tx, name)?.first() {
            Some(row) => read_other_text_id(tx, *row),
            None => Ok(None),
        })
    }

    /// Returns the items that are kept of a Message-ID beside the labels of messages.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn waiting_items(&self, message_id: &str) -> Result<LabelItems> {
        self.run(|tx| read_waiting_items(tx, message_id))
    }
}

/// Returns the rows of the messages with this name.
fn find_named_rows(tx: &ReadTransaction<'_>, uid: &str) -> DatabaseResult<Vec<u32>> {
    let mut found = Vec::new();
    let mut select =
        tx.prepare_cached("SELECT id, handle_key FROM collection WHERE removed = 0 ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let key = CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
        if let Some(item) = find_row(tx, &key, uid, "")? {
            found.push(row_number(item)?);
        }
    }
    Ok(found)
}

fn find_rows(tx: &ReadTransaction<'_>, uid: &str) -> DatabaseResult<Vec<u32>> {
    let mut found = find_named_rows(tx, uid)?;
    found.extend(find_other_texts(tx, uid)?);
    Ok(found)
}

fn read_other_text_id(tx: &ReadTransaction<'_>, row: u32) -> DatabaseResult<Option<String>> {
    let mut select = tx.prepare_cached("SELECT message_id FROM mail_other_text WHERE item = ?1")?;
    Ok(select.query_row([row], |row| row.get(0)).optional()?)
}

/// Reads the texts with a Message-ID, and the names of the items that are kept.
fn find_siblings(
    tx: &ReadTransaction<'_>,
    message_id: &str,
    items: &LabelItems,
) -> DatabaseResult<SiblingTexts> {
    let mut siblings = SiblingTexts::default();
    for row in find_rows(tx, message_id)? {
        siblings.hashes.push(read_text_hash(tx, ItemRow::from_number(i64::from(row)))?);
    }
    siblings.item_names.extend(items.iter().map(|(name, _)| name.to_string()));
    Ok(siblings)
}
