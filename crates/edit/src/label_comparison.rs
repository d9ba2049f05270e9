//! Comparing the labels in `index.db` with those in `data.db`.
//!
//! Separate from `labels`, which brings the copy up to date: here nothing is written.

use larder_format::label::MessageLabels;
use larder_store::{BLOCK_ROWS, Error, LabelItems, LabelledText, MailReader, Reader, block_of};
use std::collections::{BTreeMap, HashMap};

/// The number of labelled messages that are read at once.
const MESSAGES_PER_PAGE: usize = 2000;
/// The messages with wrong labels that are named.
const MAX_NAMED_LABEL_DIFFERENCES: usize = 20;

/// The messages whose labels in `index.db` are not those in `data.db`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelDifferences {
    /// Their number.
    pub count: u64,
    /// The names of the first ones.
    pub names: Vec<String>,
}

impl LabelDifferences {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.names.len() < MAX_NAMED_LABEL_DIFFERENCES {
            self.names.push(name());
        }
    }
}

/// Compares the labels of each message in both stores. `None`: the copy in `index.db` is older than
/// `data.db`, and has to follow first.
///
/// # Errors
/// A store cannot be read, or labels in `data.db` are damaged.
pub fn compare_labels(data: &Reader, index: &Reader) -> Result<Option<LabelDifferences>, Error> {
    let mail = index.mail()?;
    if data.has_label_changes(mail.label_cursor()?.as_ref())? {
        return Ok(None);
    }
    compare_current(data, &mail)
}

/// Compares the labels of each message, as [`compare_labels`], after both stores were found to be
/// at the same change.
fn compare_current(
    data: &Reader,
    mail: &MailReader<'_>,
) -> Result<Option<LabelDifferences>, Error> {
    let found = compare_all(data, mail)?;
    // Each page of labels is read in a transaction of its own, so changes made meanwhile look like
    // damage.
    let is_changed = found.count > 0 && data.has_label_changes(mail.label_cursor()?.as_ref())?;
    Ok((!is_changed).then_some(found))
}

fn compare_all(data: &Reader, mail: &MailReader<'_>) -> Result<LabelDifferences, Error> {
    let mut found = LabelDifferences::default();
    let mut compared = ComparedRows::default();
    let mut listed = mail.listed_labels()?;
    // The Message-IDs with several items or texts that were compared, and whether the items follow
    // from the messages.
    let mut shared: HashMap<String, bool> = HashMap::new();
    let mut waiting_count = 0;
    let mut page = data.label_changes(None, MESSAGES_PER_PAGE)?;
    loop {
        for (uid, one) in &page.messages {
            let named = match &one.message_id {
                Some(id) => Some(id.clone()),
                None => mail.message_id_of(uid)?,
            };
            let message_id = named.as_ref().unwrap_or(uid);
            let mut is_same = true;
            let follows = if let Some(follows) = shared.get(message_id) {
                *follows
            } else {
                let rows = mail.rows_with_uid(message_id)?;
                let texts = mail.labelled_texts(&rows)?;
                let waiting = mail.waiting_items(message_id)?;
                let is_shared = named.is_some() || !waiting.is_empty() || texts.len() > 1;
                let items = read_items(data, message_id, (uid, one), &texts, &waiting)?;
                let hashes: Vec<Option<u64>> = texts.iter().map(|text| text.text_hash).collect();
                let expected = items.text_labels(&hashes);
                for (row, text) in rows.into_iter().zip(&texts) {
                    let expected = expected.get(text.text_hash);
                    let labels: Vec<&str> = expected.labels.iter().collect();
                    is_same &= mail.labels_of(&mut listed, row)? == labels;
                    let is_of_any_text = !labels.is_empty() && expected.text_hash.is_none();
                    is_same &= mail.are_labels_of_any_text(&listed, row) == is_of_any_text;
                    compared.add(row);
                }
                let named = texts.iter().filter(|text| text.message_id.is_none());
                let named: Vec<Option<u64>> = named.map(|text| text.text_hash).collect();
                let follows = items.follow_from_messages(&named);
                if is_shared {
                    shared.insert(message_id.clone(), follows);
                }
                follows
            };
            let kept = mail.waiting_labels(uid)?;
            is_same &= match &kept {
                Some(kept) => kept.labels == one.labels && kept.text_hash == one.text_hash,
                None => follows,
            };
            waiting_count += u64::from(kept.is_some());
            if !is_same {
                found.add(|| uid.clone());
            }
        }
        if page.is_last {
            break;
        }
        page = data.label_changes(Some(&page.cursor), MESSAGES_PER_PAGE)?;
    }
    add_labelled_elsewhere(mail, &compared, &mut found)?;
    found.count += mail.count_all_waiting_labels()?.saturating_sub(waiting_count);
    Ok(found)
}

/// The rows whose labels were compared, as bits.
#[derive(Default)]
struct ComparedRows(BTreeMap<u32, [u64; BLOCK_ROWS as usize / 64]>);

impl ComparedRows {
    fn add(&mut self, row: u32) {
        let (block, place) = block_of(row);
        let bits = self.0.entry(block).or_insert([0; BLOCK_ROWS as usize / 64]);
        bits.iter_mut().skip(place / 64).take(1).for_each(|word| *word |= 1 << (place % 64));
    }
}

/// Reads the items with the labels of a Message-ID, one of which is `known`.
fn read_items(
    data: &Reader,
    message_id: &str,
    (name, known): (&str, &MessageLabels),
    texts: &[LabelledText],
    waiting: &LabelItems,
) -> Result<LabelItems, Error> {
    let mut items = LabelItems::new(message_id);
    items.put(name, known.clone());
    let is_alone = name == message_id
        && waiting.is_empty()
        && texts.iter().all(|text| text.uid == message_id && text.text_hash == known.text_hash);
    if is_alone {
        return Ok(items);
    }
    let mut names: Vec<String> = texts.iter().filter_map(LabelledText::other_name).collect();
    names.push(message_id.to_string());
    names.extend(waiting.iter().map(|(name, _)| name.to_string()));
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|one| *one != name).collect();
    for (name, stored) in names.iter().zip(data.stored_labels(&names)?) {
        items.put(name, stored.labels);
    }
    Ok(items)
}

/// Adds the messages that have labels in `index.db`, and none in `data.db`.
fn add_labelled_elsewhere(
    mail: &MailReader<'_>,
    compared: &ComparedRows,
    found: &mut LabelDifferences,
) -> Result<(), Error> {
    let labels = mail.labels()?;
    for block in mail.blocks()? {
        let mut others = [0; BLOCK_ROWS as usize / 64];
        for (_, set) in &labels {
            let rows = mail.set(*set, block.block)?;
            others.iter_mut().zip(rows).for_each(|(all, rows)| *all |= rows);
        }
        if let Some(compared) = compared.0.get(&block.block) {
            others.iter_mut().zip(compared).for_each(|(all, compared)| *all &= !compared);
        }
        for place in 0..BLOCK_ROWS {
            let word = others.get(place as usize / 64).copied().unwrap_or_default();
            if word & 1 << (place % 64) != 0 {
                let name = mail.uid(block.block * BLOCK_ROWS + place)?.unwrap_or_default();
                found.add(|| name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::{change_labels, follow_labels};
    use larder_format::label::LabelChange;
    use larder_store::{DataDirectory, LabelledText, Operation, Store, StoreFile, StoreOptions};

    /// The index is read in one transaction, the labels in one for each page.
    #[test]
    fn changes_during_the_comparison_are_no_differences() {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { create: true, ..StoreOptions::default() };
        let directory = DataDirectory::new(folder.path());
        let mut data = Store::open(directory.clone(), &options).unwrap();
        let mut index = Store::open(directory.with_store_file(StoreFile::Index), &options).unwrap();
        let add = |data: &mut Store, uid: &str| {
            let change = LabelChange::parse(["+tax"]).unwrap();
            let names = [LabelledText::from(uid.to_string())];
            change_labels(data, &mut Operation::new("edit", "", 0), &names, &change).unwrap();
        };
        add(&mut data, "m1");
        let labels = data.open_reader().unwrap();
        follow_labels(&labels, &mut index, 0).unwrap();
        let reader = index.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let none = Some(LabelDifferences::default());
        assert_eq!(compare_current(&labels, &mail).unwrap(), none);
        add(&mut data, "m2");
        assert_eq!(compare_current(&labels, &mail).unwrap(), None);
    }
}
