//! The names of messages, and the labels that follow them.
//!
//! A message has its Message-ID as its name. A further text with the Message-ID has a name that is
//! made from its content. Labels belong to a name; the text that they were given to keeps the name
//! when the index is made again and another text comes first.
//!
//! Separate from `mail`, which writes messages and their files.

use super::ApplyError;
use super::labels::{find_elsewhere, is_text, read_text_hash};
use super::mail::{FoundMessage, KnownFile, MailWriter};
use crate::mail::batch::{OTHER_TEXT_ORIGIN, PreparedMessage, name_other_text};
use crate::mail::columns::row_number;
use crate::mail::threads::find_thread;
use crate::mail_reader::find_other_texts;
use crate::mail_state_changes::delete_state_change;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::uid_lookup::{UidLookup, delete_collision};
use larder_extract::hash_message_id;
use larder_extract::message_flags::MessageFlag;
use larder_format::label::MessageLabels;

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
                let others = self.find_elsewhere(&message.uid)?;
                let labels = self.find_labels(&message.uid, &others)?;
                match labels.is_some_and(|one| one.text_hash == Some(message.text_hash)) {
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
        self.note_other_text(item, hash_message_id(message_id))?;
        Ok(true)
    }

    /// Gives a draft the Message-ID of its former text, which has just been deleted: many programs
    /// save a draft in a new file before they delete the former one, so that the new text met the
    /// former one and got another name. Other messages keep theirs, and their labels.
    pub(super) fn rename_draft(&mut self, message_id: &str) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        for row in find_other_texts(tx, message_id)? {
            let item = ItemRow::from_number(i64::from(row));
            let collection: CollectionRow = tx
                .prepare_cached("SELECT collection FROM item WHERE id = ?1")?
                .query_row([item], |row| row.get(0))?;
            let is_draft = collection == self.collection.id
                && self.settled_flags(item)?.contains(MessageFlag::Draft)
                && self.labels.labels(tx, row)?.is_empty();
            if is_draft {
                let lookup = self.find_message(message_id)?;
                if !matches!(lookup, UidLookup::Item(_)) {
                    self.rename_message(item, message_id, 0, &lookup)?;
                    self.forget_other_text(item)?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// Notes a message whose name is made from its text, with the hash of its Message-ID.
    pub(super) fn note_other_text(&self, item: ItemRow, message_id: i64) -> Result<(), ApplyError> {
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
        let (tx, row) = (self.batch.tx, row_number(item)?);
        self.labels.set_labels(tx, row, &MessageLabels::default())?;
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
        self.restore_labels(uid, item)?;
        self.batch.updated += 1;
        Ok(())
    }

    /// Gives a new message the labels that its name has. Those that belong to its text, which came
    /// back, are taken from other texts with the name.
    pub(super) fn restore_labels(&mut self, uid: &str, item: ItemRow) -> Result<(), ApplyError> {
        if !self.labels.has_labels(self.batch.tx)? {
            return Ok(());
        }
        let mut holders = self.find_elsewhere(uid)?;
        let Some(one) = self.find_labels(uid, &holders)? else { return Ok(()) };
        holders.push(item);
        self.give_labels(uid, &one, &holders, Some(item))
    }

    /// Takes the labels of a message that is about to be deleted. Other texts with its name have
    /// them until it comes back.
    pub(super) fn keep_labels(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        if !self.labels.has_labels(tx)? || self.labels.labels(tx, row)?.is_empty() {
            return Ok(());
        }
        let uid: String = tx
            .prepare_cached("SELECT uid FROM item WHERE id = ?1")?
            .query_row([item], |row| row.get(0))?;
        let Some(one) = self.find_labels(&uid, &[item])? else { return Ok(()) };
        self.labels.set_labels(tx, row, &MessageLabels::default())?;
        let holders = self.find_elsewhere(&uid)?;
        self.give_labels(&uid, &one, &holders, None)
    }

    /// Returns the messages with a name in other collections.
    fn find_elsewhere(&mut self, uid: &str) -> Result<Vec<ItemRow>, ApplyError> {
        Ok(find_elsewhere(self.batch.tx, &mut self.batch.finder, &self.collection, uid)?)
    }

    /// Returns the labels of a name, with the text that they were given to: those that wait, or
    /// those of a message with the name.
    fn find_labels(
        &mut self,
        uid: &str,
        holders: &[ItemRow],
    ) -> Result<Option<MessageLabels>, ApplyError> {
        let tx = self.batch.tx;
        let waiting = self.labels.find_waiting(tx, uid)?;
        if waiting.is_some() {
            return Ok(waiting);
        }
        for item in holders {
            let row = row_number(*item)?;
            let labels = self.labels.labels(tx, row)?;
            if !labels.is_empty() {
                let text_hash = match self.labels.has_labels_of_any_text(tx, row)? {
                    true => None,
                    false => read_text_hash(tx, *item)?,
                };
                return Ok(Some(MessageLabels { text_hash, labels }));
            }
        }
        Ok(None)
    }

    /// Gives the messages with a name its labels, and records the changes, but not that of a
    /// message whose row the batch wrote.
    fn give_labels(
        &mut self,
        uid: &str,
        one: &MessageLabels,
        holders: &[ItemRow],
        written: Option<ItemRow>,
    ) -> Result<(), ApplyError> {
        let (tx, mut changed) = (self.batch.tx, Vec::new());
        let mut compared = Vec::with_capacity(holders.len());
        for item in holders {
            compared.push((*item, is_text(tx, *item, one.text_hash)?));
        }
        self.labels.give_labels(tx, uid, one, &compared, &mut changed)?;
        changed
            .into_iter()
            .filter(|item| Some(*item) != written)
            .try_for_each(|item| self.touch_item(item))
    }
}
