//! The names of messages, and the labels that follow them.
//!
//! A message has its Message-ID as its name. A further text with the Message-ID has a name that is
//! made from its content. A text that has labels under one of these names has this name when the
//! index is made again and another text comes first.
//!
//! Separate from `mail`, which writes messages and their files.

use super::ApplyError;
use super::mail::{FoundMessage, KnownFile, MailWriter};
use super::message_texts::{find_named, read_message_id};
use crate::mail::batch::{OTHER_TEXT_ORIGIN, PreparedMessage, name_other_text};
use crate::mail::columns::row_number;
use crate::mail::text_hash::read_text_hash;
use crate::mail::threads::find_thread;
use crate::mail_reader::{find_other_texts, has_other_texts};
use crate::mail_state_changes::delete_state_change;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::uid_lookup::{UidLookup, delete_collision};
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
            if read_text_hash(self.batch.tx, item)? == Some(message.text_hash)
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
            lookup => match self.has_other_name(&message.uid, message.text_hash)? {
                true => FoundMessage::OtherText,
                false => FoundMessage::None(lookup),
            },
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
        self.restore_labels(message_id, Some(text_hash), (item, false))?;
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
                && self.find_label_item(message_id, &uid)?.is_none();
            if is_draft {
                let lookup = self.find_message(message_id)?;
                if !matches!(lookup, UidLookup::Item(_)) {
                    self.rename_message(item, message_id, 0, &lookup)?;
                    self.forget_other_text(item)?;
                    let text_hash = read_text_hash(tx, item)?;
                    self.restore_labels(message_id, text_hash, (item, true))?;
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

    /// Notes that a text was added, or got another name: the texts with its Message-ID get their
    /// labels when the batch ends.
    pub(super) fn restore_labels(
        &mut self,
        message_id: &str,
        text_hash: Option<u64>,
        (item, is_named): (ItemRow, bool),
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        if self.text_groups.get(message_id).is_some() {
            return Ok(self.text_groups.note_text(tx, message_id, item, is_named)?);
        }
        if !self.labels.has_labels(tx)? {
            return Ok(());
        }
        let name = text_hash.map(|text_hash| name_other_text(text_hash, message_id));
        let is_alone = self.labels.waiting_items(tx, message_id)?.is_empty()
            && name.map_or(Ok(None), |name| self.labels.find_waiting(tx, &name))?.is_none()
            && self.find_elsewhere(message_id)?.is_empty()
            && !has_other_texts(tx, message_id)?;
        if !is_alone {
            let finder = &mut self.batch.finder;
            self.text_groups.get_or_read(tx, finder, &mut self.labels, message_id)?;
        }
        Ok(())
    }

    /// Takes the labels of a message that is about to be deleted. Other texts with its Message-ID
    /// have them until it comes back.
    pub(super) fn keep_labels(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        let has_labels = self.labels.has_labels(tx)? && !self.labels.labels(tx, row)?.is_empty();
        if !has_labels && self.text_groups.is_empty() {
            return Ok(());
        }
        let message_id = read_message_id(tx, item)?;
        if has_labels {
            let finder = &mut self.batch.finder;
            self.text_groups.get_or_read(tx, finder, &mut self.labels, &message_id)?;
            self.labels.set_labels(tx, row, &MessageLabels::default())?;
        }
        self.text_groups.note_departure(&message_id, item);
        Ok(())
    }

    /// Gives the texts of the batch their labels, and records the changes, but not those of
    /// messages whose rows the batch wrote.
    pub(super) fn settle_labels(&mut self) -> Result<(), ApplyError> {
        let (tx, seq) = (self.batch.tx, self.batch.seq);
        let mut select = tx.prepare_cached("SELECT seq = ?2 FROM item WHERE id = ?1")?;
        for item in self.text_groups.give_labels(tx, &mut self.labels)? {
            if !select.query_row((item, seq), |row| row.get(0))? {
                self.touch_item(item)?;
            }
        }
        Ok(())
    }

    /// Returns the messages with a name in other collections.
    fn find_elsewhere(&mut self, uid: &str) -> Result<Vec<ItemRow>, ApplyError> {
        let (tx, own) = (self.batch.tx, Some(self.collection.id));
        let found = find_named(tx, &mut self.batch.finder, uid, own)?;
        Ok(found.into_iter().map(|(_, item)| item).collect())
    }

    /// Returns an item with labels that is kept, or of which the batch changed texts.
    fn find_label_item(
        &mut self,
        message_id: &str,
        name: &str,
    ) -> Result<Option<MessageLabels>, ApplyError> {
        match self.text_groups.get(message_id) {
            Some(group) => Ok(group.item(name).cloned()),
            None => Ok(self.labels.find_waiting(self.batch.tx, name)?),
        }
    }

    /// Returns whether a text was labelled while another text had the Message-ID as its name.
    fn has_other_name(&mut self, message_id: &str, text_hash: u64) -> Result<bool, ApplyError> {
        let name = name_other_text(text_hash, message_id);
        match self.find_label_item(message_id, &name)? {
            Some(item) if !item.is_named => {
                let under_id = self.find_label_item(message_id, message_id)?;
                Ok(under_id.is_none_or(|item| item.text_hash != Some(text_hash)))
            }
            _ => Ok(false),
        }
    }

    /// Returns whether the labels of a Message-ID belong to a text, or to all texts, and this one
    /// was labelled while the Message-ID was its name.
    fn are_labels_of_text(&mut self, message_id: &str, text_hash: u64) -> Result<bool, ApplyError> {
        let tx = self.batch.tx;
        let under_id = self.find_label_item(message_id, message_id)?;
        if let Some(named) = under_id.and_then(|item| item.text_hash) {
            return Ok(named == text_hash);
        }
        let name = name_other_text(text_hash, message_id);
        if self.find_label_item(message_id, &name)?.is_some_and(|item| item.is_named) {
            return Ok(true);
        }
        if self.text_groups.get(message_id).is_some()
            || !self.labels.has_labels(tx)?
            || !self.labels.waiting_items(tx, message_id)?.is_empty()
        {
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
