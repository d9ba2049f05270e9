//! The names of messages, and the labels that follow them.
//!
//! A message has its Message-ID as its name. A further text with the Message-ID has a name that is
//! made from its content. A text that has labels under one of these names has this name when the
//! index is made again and another text comes first.
//!
//! Separate from `mail`, which writes messages and their files.

use super::ApplyError;
use super::mail::{FoundMessage, KnownFile, MailWriter};
use super::message_texts::{find_elsewhere, is_text, read_message_id, read_text_hash};
use super::text_labels::{LabelEvent, settle_labels};
use crate::mail::batch::{OTHER_TEXT_ORIGIN, PreparedMessage, name_other_text};
use crate::mail::columns::row_number;
use crate::mail::threads::find_thread;
use crate::mail_reader::{find_other_texts, has_other_texts};
use crate::mail_state_changes::delete_state_change;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::uid_lookup::{UidLookup, delete_collision};
use larder_extract::message_flags::MessageFlag;

impl MailWriter<'_, '_> {
    /// Looks for a message with the same Message-ID and text. The hash of a text that was made by
    /// other rules cannot be compared: such a message is the one that the file belonged to.
    pub(super) fn find_copy(
        &mut self,
        message: &PreparedMessage,
        known: Option<KnownFile>,
    ) -> Result<FoundMessage, ApplyError> {
        let lookup = self.find_message(&message.uid)?;
        if let UidLookup::Item(item) = lookup {
            let is_own = known.is_some_and(|known| known.item == item);
            if is_text(self.batch.tx, item, Some(message.text_hash))?
                || is_own && self.is_outdated(item)
            {
                return Ok(FoundMessage::Copy(item));
            }
        }
        // The text has another name if it came while another one had the Message-ID, which may be
        // gone. A Message-ID without a thread was never seen.
        let may_have_name = match (&lookup, message.thread_ids.first()) {
            (UidLookup::Item(_), _) => true,
            (_, Some(id)) => find_thread(self.batch.tx, *id)?.is_some(),
            (_, None) => false,
        };
        if may_have_name {
            let name = name_other_text(message.text_hash, &message.uid);
            if let UidLookup::Item(item) = self.find_message(&name)? {
                return Ok(FoundMessage::Copy(item));
            }
        }
        Ok(match lookup {
            UidLookup::Item(item) => {
                match self.are_labels_of_text(&message.uid, message.text_hash)? {
                    true => FoundMessage::NameHolder(item),
                    false => FoundMessage::OtherText,
                }
            }
            lookup => {
                let name = name_other_text(message.text_hash, &message.uid);
                match self.labels.find_waiting(self.batch.tx, &name)? {
                    Some(_) => FoundMessage::OtherText,
                    None => FoundMessage::None(lookup),
                }
            }
        })
    }

    /// Gives a message whose Message-ID belongs to another text the name of a further text.
    /// Returns false if that name is taken.
    pub(super) fn rename_to_other_text(
        &mut self,
        item: ItemRow,
        message_id: &str,
    ) -> Result<bool, ApplyError> {
        let text_hash = read_text_hash(self.batch.tx, item)?.unwrap_or_default();
        let uid = name_other_text(text_hash, message_id);
        let lookup = self.find_message(&uid)?;
        if matches!(lookup, UidLookup::Item(_)) {
            return Ok(false);
        }
        self.rename_message(item, &uid, OTHER_TEXT_ORIGIN, &lookup)?;
        self.note_other_text(item, message_id)?;
        self.restore_labels(message_id, Some(text_hash), item)?;
        Ok(true)
    }

    /// Gives a draft the Message-ID of its former text, which has just been deleted: many programs
    /// save a draft in a new file before they delete the former one, so that the new text met the
    /// former one and got another name. Other messages keep theirs, and so does a draft that was
    /// labelled under it.
    pub(super) fn rename_draft(&mut self, message_id: &str) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        for row in find_other_texts(tx, message_id)? {
            let item = ItemRow::from_number(i64::from(row));
            let (collection, uid): (CollectionRow, String) = tx
                .prepare_cached("SELECT collection, uid FROM item WHERE id = ?1")?
                .query_row([item], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let is_draft = collection == self.collection.id
                && self.settled_flags(item)?.contains(MessageFlag::Draft)
                && self.labels.find_waiting(tx, &uid)?.is_none();
            if is_draft {
                let lookup = self.find_message(message_id)?;
                if !matches!(lookup, UidLookup::Item(_)) {
                    self.rename_message(item, message_id, 0, &lookup)?;
                    self.forget_other_text(item)?;
                    let text_hash = read_text_hash(tx, item)?;
                    self.restore_labels(message_id, text_hash, item)?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Notes a message whose name is made from its text, with its Message-ID.
    pub(super) fn note_other_text(
        &self,
        item: ItemRow,
        message_id: &str,
    ) -> Result<(), ApplyError> {
        let sql = "INSERT INTO mail_other_text VALUES(?1, ?2)";
        self.batch.tx.prepare_cached(sql)?.execute((item, message_id))?;
        Ok(())
    }

    /// Forgets a message whose name was made from its text, if it was noted as one.
    pub(super) fn forget_other_text(&self, item: ItemRow) -> Result<(), ApplyError> {
        let sql = "DELETE FROM mail_other_text WHERE item = ?1";
        self.batch.tx.prepare_cached(sql)?.execute([item])?;
        Ok(())
    }

    fn rename_message(
        &mut self,
        item: ItemRow,
        uid: &str,
        uid_origin: i64,
        lookup: &UidLookup,
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        self.record_removal(item)?;
        delete_collision(tx, item)?;
        delete_state_change(tx, item)?;
        let handle = self.handle_for(uid, lookup, item)?;
        let ordinal = self.batch.next_ordinal();
        let row_checksum = self.message_columns(item, handle, uid, uid_origin).to_checksum();
        tx.prepare_cached(
            "UPDATE item SET uid = ?2, uid_origin = ?3, handle = ?4, seq = ?5, ordinal = ?6,
                             row_checksum = ?7 WHERE id = ?1",
        )?
        .execute((
            item,
            uid,
            uid_origin,
            handle.to_bytes(),
            self.batch.seq,
            ordinal,
            row_checksum.at_ordinal(ordinal),
        ))?;
        self.batch.updated += 1;
        Ok(())
    }

    /// Gives the texts with a Message-ID their labels, after one of them was added or renamed.
    pub(super) fn restore_labels(
        &mut self,
        message_id: &str,
        text_hash: Option<u64>,
        item: ItemRow,
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        if !self.labels.has_labels(tx)? {
            return Ok(());
        }
        let name = text_hash.map(|text_hash| name_other_text(text_hash, message_id));
        let is_alone = self.labels.waiting_items(tx, message_id)?.is_empty()
            && name.map_or(Ok(None), |name| self.labels.find_waiting(tx, &name))?.is_none()
            && self.find_elsewhere(message_id)?.is_empty()
            && !has_other_texts(tx, message_id)?;
        if is_alone {
            return Ok(());
        }
        self.settle_labels(message_id, &LabelEvent::MessageAdded, Some(item))
    }

    /// Takes the labels of a message that is about to be deleted. Other texts with its Message-ID
    /// have them until it comes back.
    pub(super) fn keep_labels(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        if !self.labels.has_labels(tx)? || self.labels.labels(tx, row)?.is_empty() {
            return Ok(());
        }
        let message_id = read_message_id(tx, item)?;
        self.settle_labels(&message_id, &LabelEvent::MessageLeaves(item), None)
    }

    /// Gives the texts with a Message-ID their labels, and records the changes, but not that of a
    /// message whose row the batch wrote.
    fn settle_labels(
        &mut self,
        message_id: &str,
        event: &LabelEvent<'_>,
        written: Option<ItemRow>,
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        let changed =
            settle_labels(tx, &mut self.batch.finder, &mut self.labels, message_id, event)?;
        changed
            .into_iter()
            .filter(|item| Some(*item) != written)
            .try_for_each(|item| self.touch_item(item))
    }

    /// Returns the messages with a name in other collections.
    fn find_elsewhere(&mut self, uid: &str) -> Result<Vec<ItemRow>, ApplyError> {
        Ok(find_elsewhere(self.batch.tx, &mut self.batch.finder, &self.collection, uid)?)
    }

    /// Returns whether the labels of a Message-ID belong to a text.
    fn are_labels_of_text(&mut self, message_id: &str, text_hash: u64) -> Result<bool, ApplyError> {
        let tx = self.batch.tx;
        if let Some(one) = self.labels.find_waiting(tx, message_id)? {
            return Ok(one.text_hash == Some(text_hash));
        }
        if !self.labels.has_labels(tx)? || !self.labels.waiting_items(tx, message_id)?.is_empty() {
            return Ok(false);
        }
        for item in self.find_elsewhere(message_id)? {
            let row = row_number(item)?;
            if !self.labels.labels(tx, row)?.is_empty() {
                return Ok(!self.labels.has_labels_of_any_text(tx, row)?
                    && read_text_hash(tx, item)? == Some(text_hash));
            }
        }
        Ok(false)
    }
}
