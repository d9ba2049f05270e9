//! The labels of messages in `data.db`, and the changes of them after a cursor.
//!
//! The labels of a message are an item, whose UID is the Message-ID and whose bytes are the labels.
//! The copy in `index.db` (`mail::labels`) is brought up to date from here. Separate from
//! `change_feed`, whose reader reads each changed item by its handle: here, the labels come with
//! the change, also of a removed item, of which the UID is needed.

use crate::change_feed::ChangeCursor;
use crate::checksum::{Checksum, verify_item};
use crate::error::{DatabaseError, DatabaseResult, Result};
use crate::handle::{Handle, derive_collection_key};
use crate::mail::batch::name_other_text;
use crate::meta::read_meta_number;
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::row_checksum::verify_item_row;
use crate::row_ids::ItemRow;
use crate::uid_lookup::{UidFinder, UidLookup, find_collection};
use crate::{CollectionType, Kind, Seq};
use larder_format::label::MessageLabels;
use rusqlite::OptionalExtension as _;
use std::sync::Arc;

/// The changes of labels after a cursor.
#[derive(Debug, Clone)]
pub struct LabelChanges {
    /// Whether the cursor had expired, or there was none: these are the first labels of all.
    pub is_restart: bool,
    /// The Message-IDs of the changed messages, each with all of its labels.
    pub messages: Vec<(String, MessageLabels)>,
    /// The position after these changes.
    pub cursor: ChangeCursor,
    /// Whether these are the last changes.
    pub is_last: bool,
}

/// The labels of a message, with the item that they are.
#[derive(Debug, Clone, Default)]
pub struct StoredLabels {
    /// The handle of the item, and the batch that last changed it; `None`: the message has no
    /// labels.
    pub item: Option<(Handle, Seq)>,
    /// The labels.
    pub labels: MessageLabels,
}

/// A text of a message that labels are given to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelledText {
    /// The name by which the index knows the message.
    pub uid: String,
    /// The hash of its text; `None`: any text with this name.
    pub text_hash: Option<u64>,
    /// The Message-ID, if it is not the name.
    pub message_id: Option<String>,
    /// The texts with the Message-ID, if this one may have labels that others have, too; `None`:
    /// the item that has its labels is under its name, and belongs to the text or to any.
    pub siblings: Option<Arc<SiblingTexts>>,
}

/// The texts with one Message-ID.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiblingTexts {
    /// The hashes of the texts that messages have.
    pub hashes: Vec<Option<u64>>,
    /// The names of the items with labels of texts that are gone, and of others.
    pub item_names: Vec<String>,
}

impl LabelledText {
    /// Returns the Message-ID and the text, which are the same for each copy of the message.
    #[must_use]
    pub fn identity(&self) -> (&str, Option<u64>) {
        (self.message_id.as_ref().unwrap_or(&self.uid), self.text_hash)
    }

    /// Returns the name that is made from Message-ID and text; `None`: it is any text.
    #[must_use]
    pub fn other_name(&self) -> Option<String> {
        let (message_id, text_hash) = self.identity();
        text_hash.map(|text_hash| name_other_text(text_hash, message_id))
    }
}

impl From<String> for LabelledText {
    /// Any text with a name.
    fn from(uid: String) -> LabelledText {
        LabelledText { uid, text_hash: None, message_id: None, siblings: None }
    }
}

/// Returns the handle that an item with the labels of a message has in any copy of a store.
#[must_use]
pub fn label_handle(uid: &str) -> Handle {
    let collection = CollectionType::Labels.default_collection();
    Handle::from_uid(&derive_collection_key(collection, 0), uid, "", 0)
}

/// A change: its position, the Message-ID (`None`: it was purged) and the labels.
type PositionedChange = ((Seq, i64), Option<String>, MessageLabels);

impl Reader {
    /// Returns the changes of labels after `cursor`, about `limit` at most. Without a cursor, or
    /// with an expired one, they begin anew.
    ///
    /// # Errors
    /// The store cannot be read, or the labels of a message are damaged.
    pub fn label_changes(
        &self,
        cursor: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<LabelChanges> {
        self.read(|tx| {
            let now = ChangeCursor::read_current(tx)?;
            if let Some(cursor) = cursor
                && let Some(changes) = read_changes(tx, cursor, &now, limit)?
            {
                return Ok(changes);
            }
            let start = now.to_start();
            let changes = read_changes(tx, &start, &now, limit)?;
            let changes = changes
                .ok_or_else(|| DatabaseError::Damaged("the change feed has no beginning".into()))?;
            Ok(LabelChanges { is_restart: true, ..changes })
        })
    }

    /// Returns the labels of messages, in the order of their names.
    ///
    /// # Errors
    /// The store cannot be read, or the labels of a message are damaged.
    pub fn stored_labels(&self, uids: &[&str]) -> Result<Vec<StoredLabels>> {
        self.read(|tx| {
            let collection = find_collection(tx, CollectionType::Labels.default_collection())?;
            let Some(collection) = collection else {
                return Ok(vec![StoredLabels::default(); uids.len()]);
            };
            let mut finder = UidFinder::new(tx)?;
            uids.iter()
                .map(|uid| match finder.find(&collection, uid, "")? {
                    UidLookup::Item(item) => read_labels(tx, item),
                    _ => Ok(StoredLabels::default()),
                })
                .collect()
        })
    }

    /// Returns the handles of the items with the labels of a message, also of removed ones that
    /// have versions in the history.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn label_handles(&self, uid: &str) -> Result<Vec<Handle>> {
        self.read(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT handle FROM item WHERE kind = ?1 AND uid = ?2
                 UNION SELECT handle FROM item_history WHERE kind = ?1 AND uid = ?2",
            )?;
            let rows = select.query_map((Kind::Labels.number(), uid), |row| {
                Ok(Handle::from_bytes(row.get_ref(0)?.as_blob()?))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the name of the message whose labels are the item with this handle, also one that
    /// was removed; `None`: there is no such item.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn labelled_message(&self, labels: Handle) -> Result<Option<String>> {
        self.read(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT uid FROM item WHERE kind = ?1 AND handle = ?2
                 UNION SELECT uid FROM item_history WHERE kind = ?1 AND handle = ?2",
            )?;
            let parameters = (Kind::Labels.number(), labels.to_bytes());
            Ok(select.query_row(parameters, |row| row.get(0)).optional()?)
        })
    }

    /// Returns whether labels changed after `cursor`, or nothing is known of what happened since.
    ///
    /// # Errors
    /// As [`Reader::label_changes`].
    pub fn has_label_changes(&self, cursor: Option<&ChangeCursor>) -> Result<bool> {
        if self.read(|tx| Ok(cursor == Some(&ChangeCursor::read_current(tx)?)))? {
            return Ok(false);
        }
        let changes = self.label_changes(cursor, 1)?;
        Ok(!changes.messages.is_empty() || (changes.is_restart && cursor.is_some()))
    }
}

fn read_labels(tx: &ReadTransaction<'_>, item: ItemRow) -> DatabaseResult<StoredLabels> {
    verify_item_row(tx, item)?;
    let mut select = tx.prepare_cached(
        "SELECT i.handle, i.seq, coalesce(s.bytes, b.bytes), s.checksum
         FROM item i JOIN source_bytes s ON s.item = i.id LEFT JOIN blob b ON b.hash = s.blob_hash
         WHERE i.id = ?1",
    )?;
    let mut rows = select.query([item])?;
    let row = rows.next()?.ok_or_else(|| DatabaseError::missing_source_bytes(item))?;
    let bytes = row.get_ref(2)?.as_blob_or_null()?.unwrap_or_default();
    verify_item(tx, item, bytes, row.get(3)?)?;
    let handle = Handle::from_bytes(row.get_ref(0)?.as_blob()?);
    Ok(StoredLabels { item: Some((handle, row.get(1)?)), labels: MessageLabels::parse(bytes) })
}

/// Reads the changes after a cursor; `None`: it has expired.
fn read_changes(
    tx: &ReadTransaction<'_>,
    cursor: &ChangeCursor,
    now: &ChangeCursor,
    limit: usize,
) -> DatabaseResult<Option<LabelChanges>> {
    if cursor.is_expired(now, read_meta_number(tx, "history_from")?) {
        return Ok(None);
    }
    let limit = limit.max(1);
    let mut changes = read_puts(tx, cursor, limit)?;
    changes.extend(read_removals(tx, cursor, limit)?);
    changes.sort_unstable_by_key(|(position, ..)| *position);
    let is_last = changes.len() < limit;
    changes.truncate(limit);
    let next = match changes.last() {
        Some((position, ..)) if !is_last => cursor.with_position(*position),
        _ => now.clone(),
    };
    let mut messages = Vec::with_capacity(changes.len());
    for (_, uid, labels) in changes {
        // Which message had the labels that were purged is not known any more.
        let Some(uid) = uid else { return Ok(None) };
        messages.push((uid, labels));
    }
    Ok(Some(LabelChanges { is_restart: false, messages, cursor: next, is_last }))
}

fn read_puts(
    tx: &ReadTransaction<'_>,
    cursor: &ChangeCursor,
    limit: usize,
) -> DatabaseResult<Vec<PositionedChange>> {
    let mut select = tx.prepare_cached(
        "SELECT i.seq, i.ordinal, i.uid, coalesce(s.bytes, b.bytes), s.checksum, i.id
         FROM item i JOIN source_bytes s ON s.item = i.id LEFT JOIN blob b ON b.hash = s.blob_hash
         WHERE (i.seq, i.ordinal) > (?1, ?2) AND i.kind = ?3
         ORDER BY i.seq, i.ordinal LIMIT ?4",
    )?;
    let (seq, ordinal) = cursor.position();
    let mut rows = select.query((seq, ordinal, Kind::Labels.number(), limit as i64))?;
    let mut changes = Vec::new();
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(3)?.as_blob_or_null()?.unwrap_or_default();
        let (checksum, item): (Checksum, ItemRow) = (row.get(4)?, row.get(5)?);
        verify_item(tx, item, bytes, checksum)?;
        let position = (row.get(0)?, row.get(1)?);
        changes.push((position, Some(row.get(2)?), MessageLabels::parse(bytes)));
    }
    Ok(changes)
}

/// Reads the removals of labels that were not added again. A reader that began at the start of the
/// feed needs none that came before.
fn read_removals(
    tx: &ReadTransaction<'_>,
    cursor: &ChangeCursor,
    limit: usize,
) -> DatabaseResult<Vec<PositionedChange>> {
    let mut select = tx.prepare_cached(
        "SELECT seq, ordinal, uid FROM item_history f
         WHERE (seq, ordinal) > (?1, ?2) AND kind = ?3 AND removed = 1
           AND NOT EXISTS (SELECT 1 FROM item i WHERE i.handle = f.handle)
         ORDER BY seq, ordinal LIMIT ?4",
    )?;
    let (seq, ordinal) = cursor.position_of_removals();
    let rows = select.query_map((seq, ordinal, Kind::Labels.number(), limit as i64), |row| {
        Ok(((row.get(0)?, row.get(1)?), row.get(2)?, MessageLabels::default()))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
