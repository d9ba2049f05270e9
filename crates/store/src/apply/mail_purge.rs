//! Deleting a message for a purge.
//!
//! Separate from `mail`, whose changes come from files that came or went: here the files stay, and
//! the store forgets that it read them.

use super::ApplyError;
use super::batch_writer::BatchWriter;
use super::item_rows::StoredItem;
use super::mail::MailWriter;
use crate::mail::columns::{MailSet, row_number};
use crate::row_ids::ItemRow;
use crate::uid_lookup::CollectionKey;

impl BatchWriter<'_> {
    /// Deletes a message, with its labels and the records of its files.
    pub(super) fn purge_message(&mut self, item: &StoredItem) -> Result<(), ApplyError> {
        let collection = self
            .tx
            .prepare_cached("SELECT id, handle_key FROM collection WHERE id = ?1")?
            .query_row([item.location.collection], |row| {
                Ok(CollectionKey { id: row.get(0)?, handle_key: row.get(1)? })
            })?;
        let mut writer = MailWriter::begin(self, collection)?;
        writer.forget_files(item.id)?;
        writer.delete_message(item.id)?;
        writer.finish()
    }
}

impl MailWriter<'_, '_> {
    /// Deletes the records of the files of a message. The next synchronisation lists their
    /// directories again, so that it finds the files that are still there.
    fn forget_files(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        let directories: Vec<(i64, i64)> = tx
            .prepare_cached(
                "SELECT DISTINCT d.id, d.folder FROM mail_file f JOIN mail_directory d
                 ON d.id = f.directory WHERE f.item = ?1",
            )?
            .query_map([item], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (directory, folder) in directories {
            self.columns.set_member(tx, MailSet::Folder(folder), row, false)?;
            tx.prepare_cached("UPDATE mail_directory SET state = x'' WHERE id = ?1")?
                .execute([directory])?;
        }
        tx.prepare_cached("DELETE FROM mail_file WHERE item = ?1")?.execute([item])?;
        Ok(())
    }
}
