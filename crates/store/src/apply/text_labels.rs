//! Giving the texts with a Message-ID their labels, after some of them came or went, or items with
//! labels changed.
//!
//! A batch reads the texts and items of a Message-ID once, when the first of these changes, and
//! gives the texts their labels once, at its end: a Message-ID may have thousands of texts.
//!
//! Separate from `labels`, which follows the change feed of `data.db`, and from `message_names`:
//! the names of messages have no effect on their labels.

use super::message_texts::find_named;
use crate::error::DatabaseResult;
use crate::mail::batch::name_other_text;
use crate::mail::columns::row_number;
use crate::mail::label_items::LabelItems;
use crate::mail::labels::LabelWriter;
use crate::mail::text_hash::{TextHashReader, read_text_hash};
use crate::mail_reader::find_other_texts;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::uid_lookup::UidFinder;
use crate::write_transaction::WriteTransaction;
use larder_format::label::MessageLabels;
use std::collections::{BTreeMap, BTreeSet};

/// A message with a Message-ID.
struct MessageText {
    text_hash: Option<u64>,
    /// Whether the Message-ID is its name.
    is_named: bool,
}

/// The texts with a Message-ID, and the items with their labels.
pub(super) struct TextGroup {
    message_id: String,
    texts: BTreeMap<ItemRow, MessageText>,
    items: LabelItems,
    /// The names of the items that the table has as they are here.
    kept: BTreeSet<String>,
    /// The names of those that it has in another state.
    outdated: BTreeSet<String>,
}

impl TextGroup {
    /// Begins with the texts that have the Message-ID as their name, and no other items than the
    /// one under it.
    pub(super) fn new(
        message_id: &str,
        texts: impl IntoIterator<Item = (ItemRow, Option<u64>)>,
    ) -> TextGroup {
        let named = |(item, text_hash)| (item, MessageText { text_hash, is_named: true });
        TextGroup {
            message_id: message_id.to_string(),
            texts: texts.into_iter().map(named).collect(),
            items: LabelItems::new(message_id),
            kept: BTreeSet::new(),
            outdated: BTreeSet::from([message_id.to_string()]),
        }
    }

    /// Reads the texts with a Message-ID, in all collections, and the items with their labels:
    /// those that are kept, else the one that follows from the labels of the messages.
    fn read(
        tx: &ReadTransaction<'_>,
        finder: &mut UidFinder<'_>,
        labels: &mut LabelWriter,
        message_id: &str,
    ) -> DatabaseResult<TextGroup> {
        let mut texts = BTreeMap::new();
        let mut reader = TextHashReader::new(tx)?;
        for (_, item) in find_named(tx, finder, message_id, None)? {
            texts.insert(item, MessageText { text_hash: reader.read(item)?, is_named: true });
        }
        for row in find_other_texts(tx, message_id)? {
            let item = ItemRow::from_number(i64::from(row));
            texts.insert(item, MessageText { text_hash: reader.read(item)?, is_named: false });
        }
        let mut items = labels.waiting_items(tx, message_id)?;
        let kept = items.iter().map(|(name, _)| name.to_string()).collect();
        if items.is_empty() {
            for (item, text) in texts.iter().filter(|(_, text)| text.is_named) {
                let row = row_number(*item)?;
                let found = labels.labels(tx, row)?;
                if !found.is_empty() {
                    let is_of_any = labels.has_labels_of_any_text(tx, row)?;
                    let text_hash = text.text_hash.filter(|_| !is_of_any);
                    let item = MessageLabels { text_hash, labels: found, ..Default::default() };
                    items.put(message_id, item);
                    break;
                }
            }
        }
        let mut outdated = BTreeSet::new();
        if labels.has_unassigned(tx)? {
            for text_hash in texts.values().filter_map(|text| text.text_hash) {
                let name = name_other_text(text_hash, message_id);
                if items.get(&name).is_none()
                    && let Some(item) = labels.find_waiting(tx, &name)?
                {
                    items.put(&name, item);
                    outdated.insert(name);
                }
            }
        }
        Ok(TextGroup { message_id: message_id.to_string(), texts, items, kept, outdated })
    }

    /// Puts an item in place of the one with this name.
    pub(super) fn put_item(&mut self, name: &str, item: &MessageLabels) {
        if self.kept.remove(name) {
            self.outdated.insert(name.to_string());
        }
        self.items.put(name, item.clone());
    }

    /// Returns the item with this name.
    pub(super) fn item(&self, name: &str) -> Option<&MessageLabels> {
        self.items.get(name)
    }

    /// Gives the texts their labels. Adds the messages that had others to `changed`.
    pub(super) fn give_labels(
        &self,
        tx: &WriteTransaction<'_>,
        labels: &mut LabelWriter,
        changed: &mut Vec<ItemRow>,
    ) -> DatabaseResult<()> {
        let hashes: Vec<Option<u64>> = self.texts.values().map(|text| text.text_hash).collect();
        let found = self.items.text_labels(&hashes);
        for (item, text) in &self.texts {
            if labels.set_labels(tx, row_number(*item)?, &found.get(text.text_hash))? {
                changed.push(*item);
            }
        }
        let named: Vec<Option<u64>> =
            self.texts.values().filter(|text| text.is_named).map(|text| text.text_hash).collect();
        let is_kept = !self.items.follow_from_messages(&named);
        for name in self.kept.iter().chain(&self.outdated) {
            if !is_kept || self.items.get(name).is_none() {
                labels.forget_waiting(tx, name)?;
            }
        }
        if is_kept {
            for (name, one) in self.items.iter().filter(|(name, _)| !self.kept.contains(*name)) {
                labels.keep_waiting(tx, name, one, Some(&self.message_id), !hashes.is_empty())?;
            }
            if !self.kept.is_empty() {
                labels.mark_given(tx, &self.message_id, !hashes.is_empty())?;
            }
        }
        Ok(())
    }
}

/// The groups of texts that a batch changes, by Message-ID.
#[derive(Default)]
pub(super) struct TextGroups(BTreeMap<String, TextGroup>);

impl TextGroups {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a group that the batch changed before.
    pub(super) fn get(&self, message_id: &str) -> Option<&TextGroup> {
        self.0.get(message_id)
    }

    /// Returns a group, which is read if it is not known.
    pub(super) fn get_or_read(
        &mut self,
        tx: &ReadTransaction<'_>,
        finder: &mut UidFinder<'_>,
        labels: &mut LabelWriter,
        message_id: &str,
    ) -> DatabaseResult<&mut TextGroup> {
        use std::collections::btree_map::Entry;
        Ok(match self.0.entry(message_id.to_string()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(TextGroup::read(tx, finder, labels, message_id)?),
        })
    }

    /// Notes a message that was added, or got another name.
    pub(super) fn note_text(
        &mut self,
        tx: &ReadTransaction<'_>,
        message_id: &str,
        item: ItemRow,
        is_named: bool,
    ) -> DatabaseResult<()> {
        if let Some(group) = self.0.get_mut(message_id) {
            let text_hash = read_text_hash(tx, item)?;
            group.texts.insert(item, MessageText { text_hash, is_named });
        }
        Ok(())
    }

    /// Notes a message that is about to be deleted.
    pub(super) fn note_departure(&mut self, message_id: &str, item: ItemRow) {
        if let Some(group) = self.0.get_mut(message_id) {
            group.texts.remove(&item);
        }
    }

    /// Gives the texts of all groups their labels. Returns the messages that had others.
    pub(super) fn give_labels(
        &self,
        tx: &WriteTransaction<'_>,
        labels: &mut LabelWriter,
    ) -> DatabaseResult<Vec<ItemRow>> {
        let mut changed = Vec::new();
        self.0.values().try_for_each(|group| group.give_labels(tx, labels, &mut changed))?;
        Ok(changed)
    }
}
