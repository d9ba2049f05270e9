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
use crate::mail::columns::row_number;
use crate::mail::labels::{LABEL_CURSOR_KEY, LabelBatch, LabelWriter, read_label_cursor};
use crate::meta::write_meta;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::write_item_place;
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, UidFinder, UidLookup};

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
        for (uid, labels) in &batch.messages {
            let mut is_indexed = false;
            for collection in &collections {
                let UidLookup::Item(item) = self.finder.find(collection, uid, "")? else {
                    continue;
                };
                is_indexed = true;
                if writer.set_labels(tx, row_number(item)?, labels)? {
                    let ordinal = self.next_ordinal();
                    write_item_place(tx, item, self.seq, ordinal)?;
                    self.updated += 1;
                }
            }
            if !is_indexed {
                writer.keep_waiting(tx, uid, labels)?;
            }
        }
        writer.write(tx, &mut before)?;
        before.write(tx, self.seq)?;
        write_meta(tx, LABEL_CURSOR_KEY, batch.to.to_string())?;
        self.has_unnumbered_changes = true;
        Ok(ChangeOutcome::Done)
    }
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

/// Finds the message with this name in another collection than one.
pub(super) fn find_elsewhere(
    tx: &ReadTransaction<'_>,
    finder: &mut UidFinder<'_>,
    collection: &CollectionKey,
    uid: &str,
) -> DatabaseResult<Option<ItemRow>> {
    for other in read_mail_collections(tx)?.iter().filter(|other| other.id != collection.id) {
        if let UidLookup::Item(item) = finder.find(other, uid, "")? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}
