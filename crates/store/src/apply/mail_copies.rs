//! The file that a message has its values from, and files that must be read again.
//!
//! A message has the values and the words of one of its files, the one with the least rank
//! (`MessageSummary::copy_rank`). If that one comes later, the message gets another row; if it goes
//! away, the file with the next rank is marked to be read again, and the message keeps the old
//! values until then: the store cannot read files. After a change of the rules by which messages
//! are read, all files are to be read again.
//!
//! Separate from `mail`, which writes the files themselves.

use super::ApplyError;
use super::mail::{DirectoryRow, MailWriter};
use crate::mail::batch::{PreparedMessage, file_key};
use crate::mail::columns::{MailColumn, MailSet, row_number};
use crate::mail_schema::{FINGERPRINT_KEY, FORMER_RULES_END_KEY, OUTDATED_END_KEY};
use crate::meta::{delete_meta, has_meta, read_meta_text, write_meta};
use crate::row_ids::ItemRow;
use larder_extract::message_summary::MessageSummary;
use rusqlite::OptionalExtension as _;

impl MailWriter<'_, '_> {
    pub(super) fn set_reading_rules(&mut self, fingerprint: String) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        let is_known = has_meta(tx, FINGERPRINT_KEY)?;
        if is_known && read_meta_text(tx, FINGERPRINT_KEY)? == fingerprint {
            return Ok(());
        }
        write_meta(tx, FINGERPRINT_KEY, fingerprint)?;
        if is_known {
            self.outdated_end = self.batch.rows.last_row_number + 1;
            write_meta(tx, OUTDATED_END_KEY, self.outdated_end)?;
        }
        self.batch.has_unnumbered_changes = true;
        Ok(())
    }

    /// Ends the reading by new rules for the collection, whose files were all tried. Those that
    /// could not be read are marked, and tried again by each synchronisation.
    pub(super) fn finish_reading_rules(&mut self) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        tx.prepare_cached(
            "UPDATE mail_file SET rank = NULL WHERE item < ?2 AND rank IS NOT NULL AND
             directory IN (SELECT id FROM mail_directory WHERE collection = ?1)",
        )?
        .execute((self.collection.id, self.outdated_end))?;
        self.least_ranks.clear();
        let has_outdated: bool = tx
            .prepare_cached(
                "SELECT EXISTS(SELECT 1 FROM mail_file WHERE item < ?1 AND rank IS NOT NULL)",
            )?
            .query_row([self.outdated_end], |row| row.get(0))?;
        if !has_outdated {
            delete_meta(tx, OUTDATED_END_KEY)?;
            if self.outdated_end > 0 {
                write_meta(tx, FORMER_RULES_END_KEY, self.outdated_end)?;
                self.former_rules_end = std::mem::take(&mut self.outdated_end);
            }
            self.batch.has_unnumbered_changes = true;
        }
        Ok(())
    }

    /// Marks a file to be read again.
    pub(super) fn expire_file(&mut self, directory: i64, name: &[u8]) -> Result<(), ApplyError> {
        self.batch
            .tx
            .prepare_cached(
                "UPDATE mail_file SET rank = NULL
                 WHERE directory = ?1 AND base = ?2 AND name = ?3",
            )?
            .execute((directory, file_key(name), name))?;
        self.least_ranks.clear();
        self.batch.has_unnumbered_changes = true;
        Ok(())
    }

    /// Returns whether a message has the values and the words that other rules gave it.
    pub(super) fn is_outdated(&self, item: ItemRow) -> bool {
        item.to_number() < self.outdated_end.max(self.former_rules_end)
    }

    /// Gives a message that has a file of this name, just read, the values of the file that it must
    /// have.
    pub(super) fn settle_copy(
        &mut self,
        item: ItemRow,
        directory: DirectoryRow,
        name: &[u8],
        message: &PreparedMessage,
    ) -> Result<(), ApplyError> {
        if self.is_outdated(item) {
            let new = self.replace_message(item, message)?;
            // The ranks of its other files are those of other rules.
            self.batch
                .tx
                .prepare_cached(
                    "UPDATE mail_file SET rank = NULL
                     WHERE item = ?1 AND NOT (directory = ?2 AND name = ?3)",
                )?
                .execute((new, directory.id, name))?;
            self.least_ranks.remove(&new);
            return Ok(());
        }
        let least = self.least_rank(item)?;
        if least == self.message_rank(item)? {
            // A converter that failed before may have a text now, whose words have no row yet.
            if least != Some(message.rank)
                || self.conversions.has_texts(self.batch.tx, item, &message.conversions)?
                    && self.has_content_flags(item, message)?
            {
                return self.update_states(item);
            }
            self.replace_message(item, message).map(drop)
        } else if least == Some(message.rank) {
            self.replace_message(item, message).map(drop)
        } else {
            self.expire_least(item)?;
            self.update_states(item)
        }
    }

    /// Returns the rank of the file whose values a message has.
    fn message_rank(&self, item: ItemRow) -> Result<Option<i64>, ApplyError> {
        let mut select =
            self.batch.tx.prepare_cached("SELECT stored_fields FROM item WHERE id = ?1")?;
        let mut rows = select.query([item])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let summary = row.get_ref(0)?.as_blob_or_null().ok().flatten().unwrap_or_default();
        Ok(MessageSummary::copy_rank_of(summary))
    }

    /// Returns whether a message has the flags of the content of a file.
    fn has_content_flags(
        &mut self,
        item: ItemRow,
        message: &PreparedMessage,
    ) -> Result<bool, ApplyError> {
        let known = self.flags(item)?;
        Ok(known.without_file_flags() == message.flags.without_file_flags())
    }

    /// Returns the least rank of the files of a message; `None`: all are to be read again. It is
    /// kept until the batch ends: a message may have thousands of files.
    fn least_rank(&mut self, item: ItemRow) -> Result<Option<i64>, ApplyError> {
        if let Some(known) = self.least_ranks.get(&item) {
            return Ok(*known);
        }
        let sql = "SELECT min(rank) FROM mail_file WHERE item = ?1";
        let least = self.batch.tx.prepare_cached(sql)?.query_row([item], |row| row.get(0))?;
        self.least_ranks.insert(item, least);
        Ok(least)
    }

    /// Forgets the least rank of the files of a message, one of which was deleted, unless another
    /// one has it.
    pub(super) fn settle_least_rank(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let Some(Some(least)) = self.least_ranks.get(&item) else { return Ok(()) };
        let sql = "SELECT EXISTS(SELECT 1 FROM mail_file WHERE item = ?1 AND rank = ?2)";
        if !self.batch.tx.prepare_cached(sql)?.query_row((item, least), |row| row.get(0))? {
            self.least_ranks.remove(&item);
        }
        Ok(())
    }

    /// Marks the file with the least rank to be read again.
    fn expire_least(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let sql = "SELECT directory, name FROM mail_file WHERE item = ?1 AND rank IS NOT NULL
                   ORDER BY rank, directory, name LIMIT 1";
        let least: Option<(i64, Vec<u8>)> = self
            .batch
            .tx
            .prepare_cached(sql)?
            .query_row([item], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        match least {
            Some((directory, name)) => self.expire_file(directory, &name),
            None => Ok(()),
        }
    }

    /// Gives a message the values of another one of its files, in another row. Returns the row.
    fn replace_message(
        &mut self,
        item: ItemRow,
        message: &PreparedMessage,
    ) -> Result<ItemRow, ApplyError> {
        let tx = self.batch.tx;
        let (uid, uid_origin): (String, i64) = tx
            .prepare_cached("SELECT uid, uid_origin FROM item WHERE id = ?1")?
            .query_row([item], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let folders: Vec<i64> = tx
            .prepare_cached(
                "SELECT DISTINCT d.folder FROM mail_file f JOIN mail_directory d
                 ON d.id = f.directory WHERE f.item = ?1",
            )?
            .query_map([item], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let was_known = self.is_known(item)?;
        self.delete_message(item)?;
        let lookup = self.find_message(&uid)?;
        let new = self.insert_message(&uid, uid_origin, &lookup, message)?;
        if was_known {
            self.mark_known(new)?;
        }
        tx.prepare_cached("UPDATE mail_file SET item = ?2 WHERE item = ?1")?
            .execute((item, new))?;
        self.least_ranks.remove(&new);
        for folder in folders {
            let set = MailSet::Folder(folder);
            self.columns.set_member(tx, set, row_number(item)?, false)?;
            self.columns.set_member(tx, set, row_number(new)?, true)?;
        }
        self.columns.set_value(tx, MailColumn::Flags, message.row, message.flags.bits().into())?;
        self.write_states(new)?;
        Ok(new)
    }

    /// Marks the file whose values a message must have to be read again, if it has those of a file
    /// that is gone.
    pub(super) fn settle_rest(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let least = self.least_rank(item)?;
        if self.is_outdated(item) || least.is_none() || least == self.message_rank(item)? {
            return Ok(());
        }
        self.expire_least(item)
    }
}
