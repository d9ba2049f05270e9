//! Writing the labels of a batch: the copy in `index.db` of the labels in `data.db`.
//!
//! Separate from `mail`, whose changes come from the files of one collection: labels belong to a
//! Message-ID and a text, in whatever collections they are; and from `text_labels`, by which the
//! changes here go that concern a Message-ID with several texts.

use super::ApplyError;
use super::batch_writer::BatchWriter;
use super::message_texts::{read_mail_collections, read_message_id};
use super::text_labels::{TextGroup, TextGroups};
use crate::batch::ChangeOutcome;
use crate::error::DatabaseResult;
use crate::mail::batch::is_other_text_name;
use crate::mail::before_image::BeforeImageWriter;
use crate::mail::labels::{LABEL_CURSOR_KEY, LabelBatch, LabelWriter, read_label_cursor};
use crate::mail::text_hash::TextHashReader;
use crate::mail_reader::has_other_texts;
use crate::mail_state_changes::StateChangeWriter;
use crate::meta::write_meta;
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, UidFinder, UidLookup};
use larder_format::label::MessageLabels;

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
        let sql = "SELECT EXISTS(SELECT 1 FROM mail_other_text)";
        let has_others: bool = tx.query_row(sql, [], |row| row.get(0))?;
        let mut groups = TextGroups::default();
        let mut changed = Vec::new();
        for (uid, one) in &batch.messages {
            let (finder, item) = (&mut self.finder, (uid.as_str(), one));
            let shared_id = match groups.get(uid) {
                Some(_) => Some(uid.clone()),
                None => find_shared_id(tx, finder, &mut writer, &collections, item, has_others)?,
            };
            if let Some(message_id) = shared_id {
                groups.get_or_read(tx, finder, &mut writer, &message_id)?.put_item(uid, one);
                continue;
            }
            let mut holders = Vec::new();
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
                    holders.push((item, texts.read(item)?));
                }
            }
            if holders.is_empty() && is_other_text_name(uid) {
                writer.keep_waiting(tx, uid, one, None, false)?;
                continue;
            }
            let mut group = TextGroup::new(uid, holders);
            group.put_item(uid, one);
            group.give_labels(tx, &mut writer, &mut changed)?;
        }
        changed.extend(groups.give_labels(tx, &mut writer)?);
        for item in changed {
            let ordinal = self.next_ordinal();
            changes.write(item, self.seq, ordinal)?;
            self.updated += 1;
        }
        writer.write(tx, &mut before)?;
        before.write(tx, self.seq)?;
        write_meta(tx, LABEL_CURSOR_KEY, batch.to.to_string())?;
        self.has_unnumbered_changes = true;
        Ok(ChangeOutcome::Done)
    }
}

/// Returns the Message-ID whose labels an item is, if the Message-ID has further items, or texts
/// under other names. `None`: it has none, or is not known. `has_others`: any Message-ID has such
/// texts.
fn find_shared_id(
    tx: &ReadTransaction<'_>,
    finder: &mut UidFinder<'_>,
    writer: &mut LabelWriter,
    collections: &[CollectionKey],
    (uid, one): (&str, &MessageLabels),
    has_others: bool,
) -> DatabaseResult<Option<String>> {
    if one.message_id.is_some() {
        return Ok(one.message_id.clone());
    }
    if is_other_text_name(uid) {
        for collection in collections {
            if let UidLookup::Item(item) = finder.find(collection, uid, "")? {
                return Ok(Some(read_message_id(tx, item)?));
            }
        }
        return writer.find_waiting_id(tx, uid);
    }
    let is_shared = has_others && has_other_texts(tx, uid)?
        || writer.waiting_items(tx, uid)?.iter().any(|(name, _)| name != uid);
    Ok(is_shared.then(|| uid.to_string()))
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
