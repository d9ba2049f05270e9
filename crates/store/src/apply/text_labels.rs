//! Giving the texts with a Message-ID their labels, after one of them came or went, or an item with
//! labels changed.
//!
//! Separate from `labels`, which follows the change feed of `data.db`, and from `message_names`:
//! the names of messages have no effect on their labels.

use super::message_texts::{read_mail_collections, read_text_hash};
use crate::error::DatabaseResult;
use crate::mail::batch::name_other_text;
use crate::mail::columns::row_number;
use crate::mail::label_items::LabelItems;
use crate::mail::labels::LabelWriter;
use crate::mail_reader::find_other_texts;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::uid_lookup::{UidFinder, UidLookup};
use crate::write_transaction::WriteTransaction;
use larder_format::label::MessageLabels;

/// A message with a Message-ID.
struct MessageText {
    item: ItemRow,
    text_hash: Option<u64>,
    /// The Message-ID is its name.
    is_named: bool,
}

/// Finds the messages with a Message-ID, in all collections.
fn find_texts(
    tx: &ReadTransaction<'_>,
    finder: &mut UidFinder<'_>,
    message_id: &str,
) -> DatabaseResult<Vec<MessageText>> {
    let mut texts = Vec::new();
    for collection in read_mail_collections(tx)? {
        if let UidLookup::Item(item) = finder.find(&collection, message_id, "")? {
            let text_hash = read_text_hash(tx, item)?;
            texts.push(MessageText { item, text_hash, is_named: true });
        }
    }
    for row in find_other_texts(tx, message_id)? {
        let item = ItemRow::from_number(i64::from(row));
        let text_hash = read_text_hash(tx, item)?;
        texts.push(MessageText { item, text_hash, is_named: false });
    }
    Ok(texts)
}

/// The event after which labels are given anew.
pub(super) enum LabelEvent<'e> {
    /// A message was added, or got another name.
    MessageAdded,
    /// A message is about to be deleted.
    MessageLeaves(ItemRow),
    /// The item with this name has these labels now.
    ItemChanged(&'e str, &'e MessageLabels),
}

/// Gives the texts with a Message-ID their labels. Returns the messages that had others.
pub(super) fn settle_labels(
    tx: &WriteTransaction<'_>,
    finder: &mut UidFinder<'_>,
    labels: &mut LabelWriter,
    message_id: &str,
    event: &LabelEvent<'_>,
) -> DatabaseResult<Vec<ItemRow>> {
    let mut texts = find_texts(tx, finder, message_id)?;
    let mut items = find_items(tx, labels, message_id, &texts)?;
    let mut changed = Vec::new();
    match event {
        LabelEvent::MessageAdded => {}
        LabelEvent::MessageLeaves(item) => {
            texts.retain(|text| text.item != *item);
            labels.set_labels(tx, row_number(*item)?, &MessageLabels::default())?;
        }
        LabelEvent::ItemChanged(name, one) => {
            labels.forget_waiting(tx, name)?;
            items.put(name, (*one).clone());
        }
    }
    let hashes: Vec<Option<u64>> = texts.iter().map(|text| text.text_hash).collect();
    for text in &texts {
        let one = items.labels_of(text.text_hash, &hashes);
        if labels.set_labels(tx, row_number(text.item)?, &one)? {
            changed.push(text.item);
        }
    }
    let named: Vec<Option<u64>> =
        texts.iter().filter(|text| text.is_named).map(|text| text.text_hash).collect();
    let is_kept = !items.follow_from_messages(&named);
    for (name, one) in items.iter() {
        match is_kept {
            true => labels.keep_waiting(tx, name, one, Some(message_id), !texts.is_empty())?,
            false => labels.forget_waiting(tx, name)?,
        }
    }
    Ok(changed)
}

/// Finds the items with labels of a Message-ID: those that are kept, else the one that follows from
/// the labels of the messages.
fn find_items(
    tx: &ReadTransaction<'_>,
    labels: &mut LabelWriter,
    message_id: &str,
    texts: &[MessageText],
) -> DatabaseResult<LabelItems> {
    let mut items = labels.waiting_items(tx, message_id)?;
    if items.is_empty() {
        for text in texts.iter().filter(|text| text.is_named) {
            let row = row_number(text.item)?;
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
    // An item of a former version does not have the Message-ID.
    for text_hash in texts.iter().filter_map(|text| text.text_hash) {
        let name = name_other_text(text_hash, message_id);
        if let Some(item) = labels.find_waiting(tx, &name)? {
            items.put(&name, item);
        }
    }
    Ok(items)
}
