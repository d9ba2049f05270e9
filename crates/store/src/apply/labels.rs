//! Writing the labels of a batch: the copy in `index.db` of the labels in `data.db`.
//!
//! Separate from `mail`, whose changes come from the files of one collection: labels belong to a
//! Message-ID, in whatever collections it is.

use super::ApplyError;
use super::batch_writer::BatchWriter;
use crate::Kind;
use crate::batch::ChangeOutcome;
use crate::error::DatabaseResult;
use crate::mail::before_image::BeforeImageWriter;
use crate::mail::labels::{LABEL_CURSOR_KEY, LabelBatch, LabelWriter, read_label_cursor};
use crate::mail_state_changes::StateChangeWriter;
use crate::meta::write_meta;
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, UidFinder, UidLookup};
use larder_extract::message_summary::MessageSummary;

impl BatchWriter<'_> {
    /// Writes labels.
    pub(super) fn apply_labels(&mut self, batch: &LabelBatch) -> Result<ChangeOutcome, ApplyError> {
        let tx = self.tx;
        if read_label_cursor(tx)? != batch.from {
            return Ok(ChangeOutcome::Conflict(None, None));
        }
        let mut writer = LabelWriter::default();
        let mut before = BeforeImageWriter::new(self.rows.last_row_number);
        if batch.is_restart {
            writer.clear(tx)?;
            before.mark_unknown();
        }
        let collections = read_mail_collections(tx)?;
        // Of many messages, each looked up by its name: the statements are prepared once.
        let (mut texts, mut changes) = (TextHashReader::new(tx)?, StateChangeWriter::new(tx)?);
        let mut neighbours = NeighbourFinder::new(tx)?;
        let (mut holders, mut changed) = (Vec::new(), Vec::new());
        for (uid, one) in &batch.messages {
            holders.clear();
            for collection in &collections {
                let item = match neighbours.find(collection, uid)? {
                    Some(item) => Some(item),
                    None => match self.finder.find(collection, uid, "")? {
                        UidLookup::Item(item) => Some(item),
                        UidLookup::Free(_) | UidLookup::HandleTaken => None,
                    },
                };
                if let Some(item) = item {
                    neighbours.note_found(item);
                    holders.push((item, texts.is_text(item, one.text_hash)?));
                }
            }
            writer.give_labels(tx, uid, one, &holders, &mut changed)?;
            for item in changed.drain(..) {
                let ordinal = self.next_ordinal();
                changes.write(item, self.seq, ordinal)?;
                self.updated += 1;
            }
        }
        writer.write(tx, &mut before)?;
        before.write(tx, self.seq)?;
        write_meta(tx, LABEL_CURSOR_KEY, batch.to.to_string())?;
        self.has_unnumbered_changes = true;
        Ok(ChangeOutcome::Done)
    }
}

/// The lookups that find nothing after which a [`NeighbourFinder`] gives up, beside those that find
/// something.
const MAX_VAIN_LOOKUPS: i64 = 16;

/// Finds messages by their names in the row after the one that was found last. A label on many
/// messages is mostly one on neighbours, whose names come in the order of the rows: a row is read
/// for its text anyway, and a step into the index of handles takes longer.
struct NeighbourFinder<'a> {
    select: ReadStatement<'a>,
    next_row: Option<ItemRow>,
    /// The number of further lookups that may find nothing.
    patience: i64,
}

impl<'a> NeighbourFinder<'a> {
    fn new(tx: &ReadTransaction<'a>) -> DatabaseResult<NeighbourFinder<'a>> {
        let sql =
            "SELECT collection = ?2 AND uid = ?3 AND recurrence_id = '' FROM item WHERE id = ?1";
        let select = tx.prepare_cached(sql)?;
        Ok(NeighbourFinder { select, next_row: None, patience: MAX_VAIN_LOOKUPS })
    }

    /// Returns the message with a name in a collection if it is in the next row.
    fn find(&mut self, collection: &CollectionKey, uid: &str) -> DatabaseResult<Option<ItemRow>> {
        let Some(row) = self.next_row.filter(|_| self.patience > 0) else { return Ok(None) };
        let is_found = {
            let mut rows = self.select.query((row, collection.id, uid))?;
            rows.next()?.map(|row| row.get(0)).transpose()?.unwrap_or(false)
        };
        self.patience += if is_found { 1 } else { -1 };
        Ok(is_found.then_some(row))
    }

    /// Notes the row of a message, however it was found.
    fn note_found(&mut self, item: ItemRow) {
        self.next_row = Some(ItemRow::from_number(item.to_number() + 1));
    }
}

/// Reads the hashes of the texts of messages.
struct TextHashReader<'a>(ReadStatement<'a>);

impl<'a> TextHashReader<'a> {
    fn new(tx: &ReadTransaction<'a>) -> DatabaseResult<TextHashReader<'a>> {
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
    fn is_text(&mut self, item: ItemRow, text_hash: Option<u64>) -> DatabaseResult<bool> {
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
