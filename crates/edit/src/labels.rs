//! Labels of messages: changing them in `data.db`, and bringing the copy in `index.db` up to date.
//!
//! Labels are items in `data.db`; which of them a text has its labels from, and under which name
//! it gets new ones, follows from its Message-ID, its text and these items (`LabelItems` of
//! larder-store). A change of many messages is one operation in several short batches. Separate
//! from `item_edits`, because these items are changed by a rule for each, and have a copy in
//! another store.
//!
//! Locks: the labels in `data.db` are written first, then `index.db` follows. No two write locks
//! are held at once.

use larder_format::label::{LabelChange, LabelList, MAX_LABELS, MessageLabels};
use larder_store::{
    AppliedBatch, BatchChange, CalendarContext, ChangeOutcome, CollectionType, Error, Extractor,
    Handle, ItemPut, Kind, LabelBatch, LabelledText, Operation, Precondition, Reader, StepSize,
    Store, StoredLabels,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
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

/// Leaves each text once, in the order of the messages: its copies in several collections have the
/// same labels.
///
/// The order stays because messages come by row: neighbours in the index are read and written
/// together when it follows.
#[must_use]
pub fn unique_texts(messages: Vec<LabelledText>) -> Vec<LabelledText> {
    let mut known: HashSet<(&str, Option<u64>)> = HashSet::with_capacity(messages.len());
    let is_first: Vec<bool> = messages.iter().map(|one| known.insert(one.identity())).collect();
    let unique = messages.into_iter().zip(is_first).filter(|(_, is_first)| *is_first);
    unique.map(|(message, _)| message).collect()
}

/// The items with the labels of a text, by their names. The first one gets new labels.
struct TextItems<'t>(Vec<(Cow<'t, str>, StoredLabels)>);

impl TextItems<'_> {
    fn labels(&self) -> LabelList {
        let mut lists = self.0.iter().map(|(_, stored)| &stored.labels.labels);
        let mut labels = lists.next().cloned().unwrap_or_default();
        labels.extend(lists.flat_map(LabelList::iter));
        labels
    }
}

/// Reads the items with the labels of each text.
fn read_text_items<'t>(
    data: &Reader,
    texts: &[&'t LabelledText],
) -> Result<Vec<TextItems<'t>>, Error> {
    let count_others =
        |text: &LabelledText| text.sources.iter().filter(|name| **name != text.uid).count();
    let mut names: Vec<&'t str> = Vec::with_capacity(texts.len());
    for text in texts {
        names.push(&text.uid);
        names.extend(text.sources.iter().filter(|name| **name != text.uid).map(String::as_str));
    }
    let stored = data.stored_labels(&names)?;
    let mut stored = names.iter().map(|name| Cow::Borrowed(*name)).zip(stored);
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        let mut items: Vec<_> = stored.by_ref().take(1 + count_others(text)).collect();
        let is_of_text = items.first().is_none_or(|(name, own)| {
            let named = own.labels.text_hash;
            match own.item {
                None => text.sources.is_empty(),
                Some(_) => {
                    named.is_none()
                        || text.text_hash.is_none()
                        || named == text.text_hash
                        || text.sources.iter().any(|source| source == name)
                }
            }
        });
        if let Some(name) = text.other_name().filter(|_| !is_of_text) {
            items.remove(0);
            match items.iter().position(|(other, _)| *other == name) {
                Some(place) => items.swap(0, place),
                None => {
                    let own = data.stored_labels(&[&name])?.pop().unwrap_or_default();
                    items.insert(0, (Cow::Owned(name), own));
                }
            }
        }
        found.push(TextItems(items));
    }
    Ok(found)
}

/// Returns the labels that each text has in `data.db`.
///
/// # Errors
/// The store cannot be read.
pub fn read_text_labels(data: &Reader, texts: &[&LabelledText]) -> Result<Vec<LabelList>, Error> {
    Ok(read_text_items(data, texts)?.iter().map(TextItems::labels).collect())
}

/// Gives each text the labels that `replace` returns for it and its labels.
///
/// # Errors
/// As [`change_labels`].
pub fn replace_labels(
    data: &mut Store,
    operation: &mut Operation,
    messages: &[LabelledText],
    replace: &mut dyn FnMut(&LabelledText, &LabelList) -> LabelList,
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
            for (message, items) in open.iter().zip(read_text_items(&reader, &open)?) {
                let before = items.labels();
                let after = replace(message, &before);
                if after == before {
                    report.unchanged += 1;
                    continue;
                }
                if after.is_too_long() {
                    return Err(Error::TooManyLabels { uid: message.uid.clone(), max: MAX_LABELS });
                }
                let planned =
                    plan_changes(&items, &extractor, &collection, message, (&before, &after));
                changed.push((*message, planned.len()));
                changes.extend(planned);
            }
            if changes.is_empty() {
                open = Vec::new();
                break;
            }
            let AppliedBatch { outcomes, lock_held, .. } = data.apply(operation, changes)?;
            size.adapt_to(outcomes.len(), lock_held);
            let mut outcomes = outcomes.into_iter();
            let mut has_conflict = |count: usize| {
                let outcomes = outcomes.by_ref().take(count);
                outcomes.fold(false, |found, outcome| {
                    found | matches!(outcome, ChangeOutcome::Conflict(..))
                })
            };
            let changed_count = changed.len();
            open = changed
                .into_iter()
                .filter(|(_, count)| has_conflict(*count))
                .map(|(message, _)| message)
                .collect();
            report.changed += (changed_count - open.len()) as u64;
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

/// Returns the changes of the items of a text that give it these labels: each item loses those that
/// the text does not have any more, and one gets the new ones.
fn plan_changes(
    items: &TextItems<'_>,
    extractor: &Extractor,
    collection: &Arc<str>,
    message: &LabelledText,
    (before, after): (&LabelList, &LabelList),
) -> Vec<BatchChange> {
    let mut changes = Vec::new();
    for (place, (name, stored)) in items.0.iter().enumerate() {
        let mut labels = LabelList::default();
        labels.extend(stored.labels.labels.iter().filter(|label| after.contains(label)));
        if place == 0 {
            labels.extend(after.iter().filter(|label| !before.contains(label)));
        }
        if labels != stored.labels.labels {
            let is_target = place == 0;
            changes.extend(plan_change(
                (name, stored),
                extractor,
                collection,
                message,
                labels,
                is_target,
            ));
        }
    }
    changes
}

/// Returns the change from stored labels to others.
fn plan_change(
    (name, stored): (&str, &StoredLabels),
    extractor: &Extractor,
    collection: &Arc<str>,
    message: &LabelledText,
    labels: LabelList,
    is_target: bool,
) -> Option<BatchChange> {
    let precondition = match stored.item {
        Some((_, seq)) => Precondition::UnchangedSince(seq),
        None => Precondition::Absent,
    };
    if labels.is_empty() {
        return stored.item.map(|(handle, _)| BatchChange::Remove(handle, precondition));
    }
    let (message_id, _) = message.identity();
    let text_hash = match stored.item {
        Some(_) if !is_target => stored.labels.text_hash,
        // Labels that were given to another text of this name may belong to either.
        Some(_) if stored.labels.text_hash != message.text_hash => None,
        _ => message.text_hash,
    };
    let message_id = match &stored.labels.message_id {
        None if is_target && name != message_id => Some(message_id.to_string()),
        known => known.clone(),
    };
    let bytes = MessageLabels { text_hash, message_id, labels }.to_bytes();
    let parsed = extractor.parse_item(Kind::Labels, bytes, &CalendarContext::default()).ok()?;
    Some(BatchChange::Put(ItemPut {
        collection: Arc::clone(collection),
        uid: name.to_string(),
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

/// Passes each item with labels to `visit`, with its name.
///
/// # Errors
/// The store cannot be read.
pub fn for_each_labelled(
    data: &Reader,
    visit: &mut dyn FnMut(String, MessageLabels),
) -> Result<(), Error> {
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
    for_each_labelled(data, &mut |_, item| {
        for name in item.labels.iter() {
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
    for_each_labelled(data, &mut |uid, MessageLabels { text_hash, message_id, labels }| {
        if labels.contains(label) {
            found.push(LabelledText { uid, text_hash, message_id, sources: Vec::new() });
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
        let named = data.stored_labels(&[uid])?.pop().unwrap_or_default().labels.text_hash;
        let (mut purged, mut rest) = (Vec::new(), Vec::new());
        let rows = mail.rows_with_uid(uid)?;
        for (row, text) in rows.iter().zip(mail.labelled_texts(&rows)?) {
            let Some(message) = mail.message(*row)? else { continue };
            let is_purged = messages.iter().any(|(handle, _)| *handle == message.handle);
            if is_purged { &mut purged } else { &mut rest }.push(text);
        }
        let is_shared = rest
            .iter()
            .any(|text| text.uid == *uid && (named.is_none() || text.text_hash == named));
        if !is_shared {
            found.extend(data.label_handles(uid)?);
        }
        for text in purged.iter().filter(|text| text.uid == *uid && text.message_id.is_none()) {
            if rest.iter().all(|other| other.identity() != text.identity())
                && let Some(name) = text.other_name()
            {
                found.extend(data.label_handles(&name)?);
            }
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
