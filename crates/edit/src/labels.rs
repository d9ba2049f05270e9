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

use larder_format::label::{LabelChange, LabelList, MAX_ITEM_LABELS, MAX_LABELS, MessageLabels};
use larder_store::{
    AppliedBatch, BatchChange, CalendarContext, ChangeOutcome, CollectionType, Error, Extractor,
    Handle, ItemPut, Kind, LabelBatch, LabelItems, LabelledText, Operation, Precondition, Reader,
    SiblingTexts, StepSize, Store, StoredLabels, WantedLabels, label_handle,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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

/// The texts with one Message-ID that labels are given to, and the items with their labels.
struct LabelledGroup<'t> {
    message_id: &'t str,
    texts: Vec<&'t LabelledText>,
    /// The hashes of the texts that there are.
    hashes: Vec<Option<u64>>,
    stored: BTreeMap<String, StoredLabels>,
    items: LabelItems,
}

impl<'t> LabelledGroup<'t> {
    fn new(text: &'t LabelledText) -> LabelledGroup<'t> {
        let (message_id, _) = text.identity();
        LabelledGroup {
            message_id,
            texts: Vec::new(),
            hashes: Vec::new(),
            stored: BTreeMap::new(),
            items: LabelItems::new(message_id),
        }
    }

    fn siblings(&self) -> Option<&'t SiblingTexts> {
        self.texts.iter().find_map(|text| text.siblings.as_deref())
    }

    fn add_stored(&mut self, name: &str, stored: StoredLabels) {
        self.items.put(name, stored.labels.clone());
        self.stored.insert(name.to_string(), stored);
    }

    /// Reads the items that a text may have labels from, beside the one under the Message-ID.
    fn read_further(&mut self, data: &Reader) -> Result<(), Error> {
        self.hashes.extend(self.texts.iter().map(|text| text.text_hash).filter(Option::is_some));
        let mut names: BTreeSet<String> = BTreeSet::new();
        match self.siblings() {
            Some(siblings) => {
                self.hashes.extend(&siblings.hashes);
                names.extend(siblings.item_names.iter().cloned());
                let hashes: BTreeSet<u64> = self.hashes.iter().flatten().copied().collect();
                names.extend(hashes.iter().map(|hash| self.items.text_name(*hash)));
            }
            None => {
                let item = self.items.get(self.message_id);
                let owner = item.map(|item| item.text_hash);
                if self.texts.iter().all(|text| text.text_hash.is_some()) {
                    // The text that it names has its labels alone.
                    self.hashes.extend(owner.filter(Option::is_some));
                }
                for text in &self.texts {
                    if text.uid != self.message_id
                        || owner.is_some_and(|owner| owner != text.text_hash)
                    {
                        names.extend(text.other_name());
                    }
                }
            }
        }
        self.hashes.sort_unstable();
        self.hashes.dedup();
        self.read_names(data, &names)
    }

    fn read_names(&mut self, data: &Reader, names: &BTreeSet<String>) -> Result<(), Error> {
        let names: Vec<&str> = names
            .iter()
            .filter(|name| !self.stored.contains_key(*name))
            .map(String::as_str)
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        for (name, stored) in names.iter().zip(data.stored_labels(&names)?) {
            self.add_stored(name, stored);
        }
        Ok(())
    }

    /// Returns the items that give the texts these labels.
    fn plan(&mut self, data: &Reader, wanted: &[WantedLabels]) -> Result<LabelItems, Error> {
        loop {
            let mut items = self.items.clone();
            items.change_texts(&self.hashes, wanted);
            // An item that was not read may have labels.
            let names = items.iter().map(|(name, _)| name.to_string());
            let unread: BTreeSet<String> =
                names.filter(|name| !self.stored.contains_key(name)).collect();
            if unread.is_empty() {
                return Ok(items);
            }
            self.read_names(data, &unread)?;
        }
    }
}

/// Reads the items with the labels of texts, by Message-ID, in the order of the texts. A text that
/// comes several times is there once.
fn read_groups<'t>(
    data: &Reader,
    texts: impl IntoIterator<Item = &'t LabelledText>,
) -> Result<Vec<LabelledGroup<'t>>, Error> {
    let mut groups: Vec<LabelledGroup<'t>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for text in texts {
        let (message_id, _) = text.identity();
        let place = *places.entry(message_id).or_insert(groups.len());
        if place == groups.len() {
            groups.push(LabelledGroup::new(text));
        }
        if let Some(group) = groups.get_mut(place) {
            group.texts.push(text);
        }
    }
    let names: Vec<&str> = groups.iter().map(|group| group.message_id).collect();
    for (group, stored) in groups.iter_mut().zip(data.stored_labels(&names)?) {
        group.add_stored(group.message_id, stored);
        group.read_further(data)?;
    }
    Ok(groups)
}

/// Returns the labels that each text has in `data.db`.
///
/// # Errors
/// The store cannot be read.
pub fn read_text_labels(data: &Reader, texts: &[&LabelledText]) -> Result<Vec<LabelList>, Error> {
    let mut found = HashMap::with_capacity(texts.len());
    for group in read_groups(data, texts.iter().copied())? {
        let labels = group.items.text_labels(&group.hashes);
        for text in group.texts {
            found.insert(text.identity(), labels.get(text.text_hash).labels);
        }
    }
    Ok(texts.iter().map(|text| found.get(&text.identity()).cloned().unwrap_or_default()).collect())
}

/// Gives each text the labels that `replace` returns for it and its labels.
///
/// Texts with one Message-ID are changed together, and a batch is written completely or not at all:
/// a label that leaves an item of several texts goes into the items of those that keep it.
///
/// # Errors
/// As [`change_labels`].
pub fn replace_labels(
    data: &mut Store,
    operation: &mut Operation,
    messages: &[LabelledText],
    replace: &mut dyn FnMut(&LabelledText, &LabelList) -> LabelList,
) -> Result<LabelReport, Error> {
    *operation = operation.clone().all_or_nothing();
    let collection_type = CollectionType::Labels;
    let collection: Arc<str> = Arc::from(collection_type.default_collection());
    let extractor = data.extractor_for_collection(&collection, collection_type)?;
    let reader = data.open_reader()?;
    let (mut report, mut size) = (LabelReport::default(), MESSAGES_PER_BATCH);
    let messages = order_texts(messages);
    let mut rest = messages.as_slice();
    while !rest.is_empty() {
        let is_same =
            |one: &LabelledText, other: &LabelledText| one.identity().0 == other.identity().0;
        let mut count = size.current().min(rest.len());
        while count < rest.len()
            && let (Some(last), Some(next)) = (rest.get(count - 1), rest.get(count))
            && is_same(last, next)
        {
            count += 1;
        }
        let (batch, further) = rest.split_at(count);
        rest = further;
        let mut is_written = false;
        for _ in 0..MAX_ATTEMPTS {
            let (mut changes, mut planned) = (Vec::new(), LabelReport::default());
            for mut group in read_groups(&reader, batch.iter().copied())? {
                let wanted = find_wanted(&group, replace, &mut planned)?;
                if !wanted.is_empty() {
                    let items = group.plan(&reader, &wanted)?;
                    add_changes(&group, &items, &extractor, &collection, &mut changes)?;
                }
            }
            let has_changes = !changes.is_empty();
            if has_changes {
                let AppliedBatch { outcomes, lock_held, .. } = data.apply(operation, changes)?;
                size.adapt_to(outcomes.len(), lock_held);
                let is_conflict = |one: &ChangeOutcome| matches!(one, ChangeOutcome::Conflict(..));
                if outcomes.iter().any(is_conflict) {
                    continue;
                }
            }
            report.changed += planned.changed;
            report.unchanged += planned.unchanged;
            is_written = true;
            break;
        }
        if let Some(message) = batch.first().filter(|_| !is_written) {
            return Err(Error::LabelsBusy { uid: message.identity().0.to_string() });
        }
    }
    data.merge_after_change(report.changed);
    Ok(report)
}

/// Returns the texts in their order, those with one Message-ID together.
fn order_texts(messages: &[LabelledText]) -> Vec<&LabelledText> {
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(messages.len());
    for (place, message) in messages.iter().enumerate() {
        places.entry(message.identity().0).or_insert(place);
    }
    let mut ordered: Vec<&LabelledText> = messages.iter().collect();
    if places.len() < messages.len() {
        ordered.sort_by_key(|message| places.get(message.identity().0));
    }
    ordered
}

/// Returns the labels that the texts of a group are to have, of those that are to have others, and
/// counts them.
fn find_wanted(
    group: &LabelledGroup<'_>,
    replace: &mut dyn FnMut(&LabelledText, &LabelList) -> LabelList,
    report: &mut LabelReport,
) -> Result<Vec<WantedLabels>, Error> {
    let known = group.items.text_labels(&group.hashes);
    let mut wanted: Vec<WantedLabels> = Vec::new();
    let mut seen = HashSet::with_capacity(group.texts.len());
    for text in &group.texts {
        let before = known.get(text.text_hash).labels;
        let labels = replace(text, &before);
        if labels == before || !seen.insert(text.text_hash) {
            report.unchanged += 1;
            continue;
        }
        if labels.exceeds_limit(&before) {
            return Err(too_many_labels(group.message_id));
        }
        report.changed += 1;
        let is_named = text.uid == group.message_id;
        wanted.push(WantedLabels { text_hash: text.text_hash, is_named, labels });
    }
    Ok(wanted)
}

fn too_many_labels(message_id: &str) -> Error {
    Error::TooManyLabels { uid: message_id.to_string(), max: MAX_LABELS }
}

/// Adds the changes from the stored items of a group to others.
fn add_changes(
    group: &LabelledGroup<'_>,
    items: &LabelItems,
    extractor: &Extractor,
    collection: &Arc<str>,
    changes: &mut Vec<BatchChange>,
) -> Result<(), Error> {
    for (name, stored) in &group.stored {
        let precondition = match stored.item {
            Some((_, seq)) => Precondition::UnchangedSince(seq),
            None => Precondition::Absent,
        };
        let item = match (items.get(name), stored.item) {
            (Some(item), _) if *item == stored.labels => continue,
            (Some(item), _) => item,
            (None, Some((handle, _))) => {
                changes.push(BatchChange::Remove(handle, precondition));
                continue;
            }
            (None, None) => continue,
        };
        if item.labels.len() > MAX_ITEM_LABELS {
            return Err(too_many_labels(group.message_id));
        }
        let context = CalendarContext::default();
        let Ok(parsed) = extractor.parse_item(Kind::Labels, item.to_bytes(), &context) else {
            continue;
        };
        changes.push(BatchChange::Put(ItemPut {
            collection: Arc::clone(collection),
            uid: name.clone(),
            derived_uid: true,
            parsed,
            precondition,
        }));
    }
    Ok(())
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

/// Returns the items with a label, each as a text whose only item it is.
///
/// # Errors
/// The store cannot be read.
pub fn find_labelled(data: &Reader, label: &str) -> Result<Vec<LabelledText>, Error> {
    let mut found = Vec::new();
    for_each_labelled(data, &mut |uid, MessageLabels { text_hash, labels, .. }| {
        if labels.contains(label) {
            found.push(LabelledText { uid, text_hash, message_id: None, siblings: None });
        }
    })?;
    Ok(found)
}

/// Returns the items with the labels of messages that are about to be purged, also of removed ones.
/// Items that a message which stays has labels from stay, unless they name a removed text.
///
/// # Errors
/// A store cannot be read.
pub fn find_labels_to_purge(
    data: &Reader,
    index: &Reader,
    messages: &[(Handle, String)],
) -> Result<Vec<Handle>, Error> {
    let mail = index.mail()?;
    let mut found = BTreeSet::new();
    let handles: HashSet<Handle> = messages.iter().map(|(handle, _)| *handle).collect();
    let mut message_ids = BTreeSet::new();
    for (_, uid) in messages {
        message_ids.insert(mail.message_id_of(uid)?.unwrap_or_else(|| uid.clone()));
    }
    let mut removed: HashMap<Handle, &str> =
        messages.iter().map(|(handle, uid)| (*handle, uid.as_str())).collect();
    for message_id in &message_ids {
        let rows = mail.rows_with_uid(message_id)?;
        let texts = mail.labelled_texts(&rows)?;
        let (mut purged, mut rest) = (Vec::new(), Vec::new());
        for (row, text) in rows.iter().zip(&texts) {
            let handle = mail.message(*row)?.map(|message| message.handle);
            handle.map(|handle| removed.remove(&handle));
            let is_purged = handle.is_some_and(|handle| handles.contains(&handle));
            if is_purged { &mut purged } else { &mut rest }.push(text);
        }
        let is_removed = removed.values().any(|uid| uid == message_id);
        let unknown = LabelledText::from(message_id.clone());
        let unknown = texts.is_empty().then_some(&unknown);
        for group in read_groups(data, texts.iter().chain(unknown))? {
            let mut kept = HashSet::new();
            for text in &rest {
                kept.extend(group.items.names_of(text.text_hash, &group.hashes));
            }
            let under_id = group.items.get(message_id).and_then(|item| item.text_hash);
            if is_removed && under_id.is_some_and(|text| !group.hashes.contains(&Some(text))) {
                kept.remove(message_id.as_str());
            }
            // The names of items that were removed are in the history.
            let mut names: BTreeSet<String> = BTreeSet::new();
            names.extend(purged.iter().filter_map(|text| text.other_name()));
            if rest.iter().all(|text| text.uid != *message_id) {
                names.insert(message_id.clone());
            }
            for text in &purged {
                let sources = group.items.names_of(text.text_hash, &group.hashes);
                names.extend(sources.map(str::to_string));
            }
            if rest.is_empty() {
                let waiting = mail.waiting_items(message_id)?;
                names.extend(waiting.iter().map(|(name, _)| name.to_string()));
            }
            for name in rest.iter().filter_map(|text| text.other_name()) {
                names.remove(&name);
            }
            for name in names.iter().filter(|name| !kept.contains(name.as_str())) {
                found.extend(data.label_handles(name)?);
                // A copy of the store may have labels that the store itself has no longer.
                found.insert(label_handle(name));
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the items with the labels of a Message-ID, also of removed ones, for a message that is
/// not in the index.
///
/// # Errors
/// The store cannot be read.
pub fn find_labels_of_unknown_message(
    data: &Reader,
    message_id: &str,
) -> Result<Vec<Handle>, Error> {
    let mut names = BTreeSet::from([message_id.to_string()]);
    for_each_labelled(data, &mut |name, item| {
        if item.message_id.as_deref() == Some(message_id) {
            names.insert(name);
        }
    })?;
    let mut found = Vec::new();
    for name in names {
        found.extend(data.label_handles(&name)?);
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
