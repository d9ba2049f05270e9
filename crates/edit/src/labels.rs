//! Labels of messages: changing them in `data.db`, and bringing the copy in `index.db` up to date.
//!
//! Each labelled message has an item in `data.db`, under the name by which `index.db` knows the
//! message. A change of many messages is one operation in several short batches. Separate from
//! `item_edits`, because these items are changed by a rule for each, and have a copy in another
//! store.
//!
//! Locks: the labels in `data.db` are written first, then `index.db` follows. No two write locks
//! are held at once.

use larder_format::label::{LabelChange, LabelList, MAX_LABELS, MessageLabels};
use larder_store::{
    AppliedBatch, BatchChange, CalendarContext, ChangeOutcome, CollectionType, Error, Extractor,
    Handle, ItemPut, Kind, LabelBatch, LabelledText, Operation, Precondition, Reader, StepSize,
    Store, StoredLabels,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The number of messages in a batch.
const MESSAGES_PER_BATCH: StepSize = StepSize::new(1000, 50..=2000);
/// The number of messages that are read in one transaction.
const MESSAGES_PER_READ: usize = 2000;
/// The number of attempts to change labels that others change at the same time.
const MAX_ATTEMPTS: usize = 100;

/// The result of a change of labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelReport {
    /// The number of messages that have other labels than before.
    pub changed: u64,
    /// The number of messages that have the labels that they had.
    pub unchanged: u64,
}

/// Adds labels to messages, and removes others. The messages have the names that `index.db` gives
/// them, which need not be in the index.
///
/// # Errors
/// The store cannot be written, or a message would have too many labels. The batches before the
/// error are kept.
pub fn change_labels(
    data: &mut Store,
    operation: &mut Operation,
    messages: &[LabelledText],
    change: &LabelChange,
) -> Result<LabelReport, Error> {
    replace_labels(data, operation, messages, &mut |_, labels| change.apply(labels))
}

/// Leaves each name once, in the order of the messages. A name that several texts have, in several
/// collections, is that of any text.
///
/// The order stays because messages come by row: neighbours in the index are read and written
/// together when it follows.
#[must_use]
pub fn unique_names(messages: Vec<LabelledText>) -> Vec<LabelledText> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(messages.len());
    let mut unique: Vec<LabelledText> = Vec::with_capacity(messages.len());
    for message in messages {
        match places.get(&message.uid).and_then(|place| unique.get_mut(*place)) {
            Some(first) if first.text_hash != message.text_hash => first.text_hash = None,
            Some(_) => {}
            None => {
                places.insert(message.uid.clone(), unique.len());
                unique.push(message);
            }
        }
    }
    unique
}

/// Gives each message the labels that `replace` returns for its name and its labels.
///
/// # Errors
/// As [`change_labels`].
pub fn replace_labels(
    data: &mut Store,
    operation: &mut Operation,
    messages: &[LabelledText],
    replace: &mut dyn FnMut(&str, &LabelList) -> LabelList,
) -> Result<LabelReport, Error> {
    let collection_type = CollectionType::Labels;
    let collection: Arc<str> = Arc::from(collection_type.default_collection());
    let extractor = data.extractor_for_collection(&collection, collection_type)?;
    let reader = data.open_reader()?;
    let (mut report, mut size) = (LabelReport::default(), MESSAGES_PER_BATCH);
    let mut rest = messages;
    while let (batch, further) = rest.split_at(size.current().min(rest.len()))
        && !batch.is_empty()
    {
        rest = further;
        let mut open: Vec<&LabelledText> = batch.iter().collect();
        for _ in 0..MAX_ATTEMPTS {
            let mut changes = Vec::new();
            let mut changed = Vec::new();
            let names: Vec<&str> = open.iter().map(|message| message.uid.as_str()).collect();
            for (message, stored) in open.into_iter().zip(reader.stored_labels(&names)?) {
                let after = replace(&message.uid, &stored.labels.labels);
                if after == stored.labels.labels {
                    report.unchanged += 1;
                    continue;
                }
                if after.is_too_long() {
                    return Err(Error::TooManyLabels { uid: message.uid.clone(), max: MAX_LABELS });
                }
                if let Some(change) = plan_change(&stored, &extractor, &collection, message, after)
                {
                    changes.push(change);
                    changed.push(message);
                }
            }
            if changes.is_empty() {
                open = Vec::new();
                break;
            }
            let AppliedBatch { outcomes, lock_held, .. } = data.apply(operation, changes)?;
            size.adapt_to(outcomes.len(), lock_held);
            let is_conflict =
                |outcome: &ChangeOutcome| matches!(outcome, ChangeOutcome::Conflict(..));
            open = changed
                .into_iter()
                .zip(&outcomes)
                .filter(|(_, outcome)| is_conflict(outcome))
                .map(|(message, _)| message)
                .collect();
            report.changed += (outcomes.len() - open.len()) as u64;
            if open.is_empty() {
                break;
            }
        }
        if let Some(message) = open.first() {
            return Err(Error::LabelsBusy { uid: message.uid.clone() });
        }
    }
    data.merge_after_change(report.changed);
    Ok(report)
}

/// Returns the change from stored labels to others.
fn plan_change(
    stored: &StoredLabels,
    extractor: &Extractor,
    collection: &Arc<str>,
    message: &LabelledText,
    labels: LabelList,
) -> Option<BatchChange> {
    let precondition = match stored.item {
        Some((_, seq)) => Precondition::UnchangedSince(seq),
        None => Precondition::Absent,
    };
    if labels.is_empty() {
        return stored.item.map(|(handle, _)| BatchChange::Remove(handle, precondition));
    }
    // Labels that were given to another text of this name may belong to either.
    let text_hash = match stored.item {
        Some(_) if stored.labels.text_hash != message.text_hash => None,
        _ => message.text_hash,
    };
    let bytes = MessageLabels { text_hash, labels }.to_bytes();
    let parsed = extractor.parse_item(Kind::Labels, bytes, &CalendarContext::default()).ok()?;
    Some(BatchChange::Put(ItemPut {
        collection: Arc::clone(collection),
        uid: message.uid.clone(),
        derived_uid: true,
        parsed,
        precondition,
    }))
}

/// Returns the labels of a message in `data.db`.
///
/// # Errors
/// The store cannot be read.
pub fn read_labels(data: &Reader, uid: &str) -> Result<LabelList, Error> {
    let labels = data.stored_labels(&[uid])?.pop().unwrap_or_default();
    Ok(labels.labels.labels)
}

/// Passes each labelled message to `visit`, with its labels.
///
/// # Errors
/// The store cannot be read.
pub fn for_each_labelled(
    data: &Reader,
    visit: &mut dyn FnMut(String, LabelList),
) -> Result<(), Error> {
    for_each_item(data, &mut |uid, item| visit(uid, item.labels))
}

fn for_each_item(data: &Reader, visit: &mut dyn FnMut(String, MessageLabels)) -> Result<(), Error> {
    let mut page = data.label_changes(None, MESSAGES_PER_READ)?;
    loop {
        page.messages.into_iter().for_each(|(uid, item)| visit(uid, item));
        if page.is_last {
            return Ok(());
        }
        page = data.label_changes(Some(&page.cursor), MESSAGES_PER_READ)?;
    }
}

/// Returns the labels that any message has in `data.db`, each with the number of messages, by name.
/// So they can be counted while mail is not indexed.
///
/// # Errors
/// The store cannot be read.
pub fn count_stored_labels(data: &Reader) -> Result<Vec<(String, u64)>, Error> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for_each_labelled(data, &mut |_, labels| {
        for name in labels.iter() {
            match counts.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(counts.insert(name.to_string(), 1)),
            }
        }
    })?;
    Ok(counts.into_iter().collect())
}

/// Returns the messages with a label.
///
/// # Errors
/// The store cannot be read.
pub fn find_labelled(data: &Reader, label: &str) -> Result<Vec<LabelledText>, Error> {
    let mut found = Vec::new();
    for_each_item(data, &mut |uid, MessageLabels { text_hash, labels }| {
        if labels.contains(label) {
            found.push(LabelledText { uid, text_hash });
        }
    })?;
    Ok(found)
}

/// Returns the items with the labels of messages that are about to be purged, also of removed ones.
/// The labels of a name that a further message has stay.
///
/// # Errors
/// A store cannot be read.
pub fn find_labels_to_purge(
    data: &Reader,
    index: &Reader,
    messages: &[(Handle, String)],
) -> Result<Vec<Handle>, Error> {
    let mail = index.mail()?;
    let mut found = Vec::new();
    for (_, uid) in messages {
        let mut is_shared = false;
        for row in mail.rows_with_uid(uid)? {
            is_shared |= mail.message(row)?.is_some_and(|other| {
                other.uid == *uid && messages.iter().all(|(handle, _)| *handle != other.handle)
            });
        }
        if !is_shared {
            found.extend(data.label_handles(uid)?);
        }
    }
    Ok(found)
}

/// Returns whether the labels in `index.db` are older than those in `data.db`.
///
/// # Errors
/// A store cannot be read.
pub fn are_labels_outdated(data: &Reader, index: &Reader) -> Result<bool, Error> {
    let cursor = index.mail()?.label_cursor()?;
    data.has_label_changes(cursor.as_ref())
}

/// Brings the labels in `index.db` up to date. Returns whether any changed.
///
/// Nothing is lost if it is interrupted, or if several processes do so at once: each batch names
/// the position that it continues from, and the next call goes on there.
///
/// # Errors
/// A store cannot be used, or labels in `data.db` are damaged. The batches before the error are
/// kept.
pub fn follow_labels(data: &Reader, index: &mut Store, at: i64) -> Result<bool, Error> {
    let mut operation = Operation::new("labels", "", at);
    let reader = index.open_reader()?;
    let (mut has_changed, mut size) = (false, MESSAGES_PER_BATCH);
    loop {
        let from = reader.mail()?.label_cursor()?;
        let page = data.label_changes(from.as_ref(), size.current())?;
        has_changed |= !page.messages.is_empty() || page.is_restart;
        if from.as_ref() == Some(&page.cursor) {
            return Ok(has_changed);
        }
        let written = page.messages.len();
        let batch = LabelBatch {
            from,
            is_restart: page.is_restart,
            messages: page.messages,
            to: page.cursor,
        };
        let applied = index.apply(&mut operation, vec![BatchChange::Labels(Box::new(batch))])?;
        size.adapt_to(written, applied.lock_held);
        let is_written = applied.outcomes == [ChangeOutcome::Done];
        if is_written && page.is_last {
            return Ok(has_changed);
        }
    }
}
