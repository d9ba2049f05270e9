//! The texts with a Message-ID, and the items that their labels are from.
//!
//! Separate from `waiting_labels`, which counts the labels of messages that are not there.

use super::{MailReader, find_other_texts};
use crate::error::{DatabaseResult, Result};
use crate::label_feed::LabelledText;
use crate::mail::batch::{OTHER_TEXT_ORIGIN, is_other_text_name};
use crate::mail::columns::row_number;
use crate::mail::label_items::LabelItems;
use crate::mail::labels::{ListedLabels, read_waiting_items};
use crate::read_transaction::ReadTransaction;
use crate::uid_lookup::{CollectionKey, find_row};
use larder_extract::message_summary::MessageSummary;
use rusqlite::OptionalExtension as _;

impl MailReader<'_> {
    /// Returns the names of messages, and the hashes of their texts, in the order of the rows. Rows
    /// without a message are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn labelled_texts(&self, rows: &[u32]) -> Result<Vec<LabelledText>> {
        self.run(|tx| {
            let has_waiting: bool =
                tx.query_row("SELECT EXISTS(SELECT 1 FROM mail_waiting_label)", [], |row| {
                    row.get(0)
                })?;
            let mut select =
                tx.prepare_cached("SELECT uid, uid_origin, stored_fields FROM item WHERE id = ?1")?;
            let mut texts = Vec::with_capacity(rows.len());
            for row in rows {
                let mut found = select.query([row])?;
                let Some(item) = found.next()? else { continue };
                let summary = item.get_ref(2)?.as_blob_or_null()?.unwrap_or_default();
                let mut text = LabelledText {
                    uid: item.get(0)?,
                    text_hash: MessageSummary::text_hash_of(summary),
                    message_id: None,
                    sources: Vec::new(),
                };
                if item.get::<_, i64>(1)? == OTHER_TEXT_ORIGIN {
                    text.message_id = read_other_text_id(tx, *row)?;
                }
                if has_waiting || text.message_id.is_some() {
                    text.sources = find_sources(tx, &text)?;
                }
                texts.push(text);
            }
            Ok(texts)
        })
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

fn read_text_hash(tx: &ReadTransaction<'_>, row: u32) -> DatabaseResult<Option<u64>> {
    let mut select = tx.prepare_cached("SELECT stored_fields FROM item WHERE id = ?1")?;
    let mut rows = select.query([row])?;
    let Some(item) = rows.next()? else { return Ok(None) };
    Ok(MessageSummary::text_hash_of(item.get_ref(0)?.as_blob_or_null()?.unwrap_or_default()))
}

/// Returns the names of the items that a text has labels from.
fn find_sources(tx: &ReadTransaction<'_>, text: &LabelledText) -> DatabaseResult<Vec<String>> {
    let message_id = text.message_id.as_ref().unwrap_or(&text.uid);
    let items = read_waiting_items(tx, message_id)?;
    if items.is_empty() && text.message_id.is_none() {
        return Ok(Vec::new());
    }
    let rows = find_rows(tx, message_id)?;
    if items.is_empty() {
        // The item is the labels of a message whose name is the Message-ID.
        let mut listed = ListedLabels::read(tx)?;
        for row in find_named_rows(tx, message_id)? {
            if !listed.labels_of(tx, row)?.is_empty() {
                let is_source =
                    listed.are_of_any_text(row) || read_text_hash(tx, row)? == text.text_hash;
                return Ok(is_source.then(|| message_id.clone()).into_iter().collect());
            }
        }
        return Ok(Vec::new());
    }
    let mut texts = Vec::with_capacity(rows.len());
    for row in rows {
        texts.push(read_text_hash(tx, row)?);
    }
    Ok(items.names_of(text.text_hash, &texts).map(str::to_string).collect())
}
