//! Messages that are no new mail although their rows are new: the rules for new mail pass over
//! them.
//!
//! A message gets another row if its values change, if it comes back after its last file went, and
//! if it comes into another collection. The rules run on a message once: the new row is marked as
//! [`MailSet::Reread`] if the rules have been run on the message before. A message is known by its
//! Message-ID and its text, in whatever source another text has the Message-ID. Those of messages
//! that went are kept for this, as hashes, and only so many.
//!
//! Separate from `mail`, which writes the messages themselves.

use super::ApplyError;
use super::mail::MailWriter;
use super::message_texts::{find_named, read_message_id};
use crate::mail::batch::{name_other_text, rule_row_key};
use crate::mail::columns::{MailSet, row_number};
use crate::mail::text_hash::read_text_hash;
use crate::meta::find_meta_number;
use crate::row_ids::{CollectionRow, ItemRow};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of messages that went whose names are kept.
const MAX_DEPARTED: i64 = 1_000_000;

impl MailWriter<'_, '_> {
    /// Returns whether a message of this collection is no new mail.
    pub(super) fn is_known(&self, item: ItemRow) -> Result<bool, ApplyError> {
        self.is_known_mail(self.collection.id, item)
    }

    /// Marks the row of a message that came back, or that is in another collection, if it is no new
    /// mail there.
    pub(super) fn mark_returned(
        &mut self,
        message_id: &str,
        text_hash: u64,
        new: ItemRow,
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        // The first synchronisation finds no new mail.
        if self.find_rule_row(self.collection.id)?.is_none() {
            return Ok(());
        }
        let has_departed: bool = tx
            .prepare_cached("SELECT EXISTS(SELECT 1 FROM mail_departed WHERE name = ?1)")?
            .query_row([hash_text_identity(message_id, text_hash)], |row| row.get(0))?;
        if has_departed {
            return self.mark_known(new);
        }
        // The text has one of two names in another collection. In this one it is a copy.
        let other_name = name_other_text(text_hash, message_id);
        for name in [message_id, &other_name] {
            let (finder, own) = (&mut self.batch.finder, Some(self.collection.id));
            for (collection, other) in find_named(tx, finder, name, own)? {
                if read_text_hash(tx, other)? == Some(text_hash)
                    && self.is_known_mail(collection, other)?
                {
                    return self.mark_known(new);
                }
            }
        }
        Ok(())
    }

    /// Keeps the identity of a message that is about to be deleted, if it is no new mail.
    pub(super) fn keep_name(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        if !self.is_known(item)? {
            return Ok(());
        }
        let tx = self.batch.tx;
        let text_hash = read_text_hash(tx, item)?.unwrap_or_default();
        let identity = hash_text_identity(&read_message_id(tx, item)?, text_hash);
        let sql = "INSERT OR REPLACE INTO mail_departed(name) VALUES(?1) RETURNING id";
        let id: i64 = tx.prepare_cached(sql)?.query_row([identity], |row| row.get(0))?;
        tx.prepare_cached("DELETE FROM mail_departed WHERE id <= ?1")?
            .execute([id - MAX_DEPARTED])?;
        Ok(())
    }

    /// Returns whether the rules have been run on a message of a collection, or need not be.
    fn is_known_mail(&self, collection: CollectionRow, item: ItemRow) -> Result<bool, ApplyError> {
        if self.find_rule_row(collection)?.is_some_and(|rule_row| item.to_number() < rule_row) {
            return Ok(true);
        }
        Ok(self.columns.is_member(self.batch.tx, MailSet::Reread, row_number(item)?)?)
    }

    fn find_rule_row(&self, collection: CollectionRow) -> Result<Option<i64>, ApplyError> {
        let rule_row = find_meta_number(self.batch.tx, &rule_row_key(collection))?;
        Ok(rule_row.filter(|rule_row| *rule_row > 0))
    }

    /// Marks a message that is no new mail, although its row is new.
    pub(super) fn mark_known(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let row = row_number(item)?;
        Ok(self.columns.set_member(self.batch.tx, MailSet::Reread, row, true)?)
    }
}

/// Returns a hash of the Message-ID and the text of a message.
fn hash_text_identity(message_id: &str, text_hash: u64) -> i64 {
    xxh3_64_with_seed(message_id.as_bytes(), text_hash).cast_signed()
}
