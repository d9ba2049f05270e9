//! Comparing the labels in `index.db` with those in `data.db`.
//!
//! Separate from `labels`, which brings the copy up to date: here nothing is written.

use larder_format::label::LabelList;
use larder_store::{BLOCK_ROWS, Error, MailReader, Reader, block_of};
use std::collections::BTreeMap;

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
    // The rows whose labels were compared, as bits.
    let mut compared = BTreeMap::<u32, [u64; BLOCK_ROWS as usize / 64]>::new();
    let mut listed = mail.listed_labels()?;
    let mut waiting_count = 0;
    let mut page = data.label_changes(None, MESSAGES_PER_PAGE)?;
    loop {
        for (uid, one) in &page.messages {
            let holders = find_holders(mail, uid, one.text_hash)?;
            let has_text = holders.iter().any(|(_, is_text)| *is_text);
            let mut is_same = true;
            for (row, is_text) in holders {
                // Without the text that was labelled, another one with the name has the labels.
                let expected =
                    if is_text == has_text { one.labels.clone() } else { LabelList::default() };
                let mut expected: Vec<&str> = expected.iter().collect();
                expected.sort_unstable();
                is_same &= mail.labels_of(&mut listed, row)? == expected;
                let is_of_any_text = !expected.is_empty() && one.text_hash.is_none();
                is_same &= mail.are_labels_of_any_text(&listed, row) == is_of_any_text;
                let (block, place) = block_of(row);
                let bits = compared.entry(block).or_insert([0; BLOCK_ROWS as usize / 64]);
                bits.iter_mut()
                    .skip(place / 64)
                    .take(1)
                    .for_each(|word| *word |= 1 << (place % 64));
            }
            // Labels that any text may have also wait for one that went.
            let waiting = mail.waiting_labels(uid)?;
            is_same &= match &waiting {
                Some(waiting) => waiting.labels == one.labels,
                None => has_text || one.labels.is_empty(),
            };
            waiting_count += u64::from(waiting.is_some());
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

/// Returns the rows of the messages with a name, and whether each has the text that was labelled.
fn find_holders(
    mail: &MailReader<'_>,
    uid: &str,
    text_hash: Option<u64>,
) -> Result<Vec<(u32, bool)>, Error> {
    let mut holders = Vec::new();
    for row in mail.rows_with_uid(uid)? {
        let Some(text) = mail.labelled_text(row)?.filter(|text| text.uid == uid) else { continue };
        holders.push((row, text_hash.is_none() || text.text_hash == text_hash));
    }
    Ok(holders)
}

/// Adds the messages that have labels in `index.db`, and none in `data.db`.
fn add_labelled_elsewhere(
    mail: &MailReader<'_>,
    compared: &BTreeMap<u32, [u64; BLOCK_ROWS as usize / 64]>,
    found: &mut LabelDifferences,
) -> Result<(), Error> {
    let labels = mail.labels()?;
    for block in mail.blocks()? {
        let mut others = [0; BLOCK_ROWS as usize / 64];
        for (_, set) in &labels {
            let rows = mail.set(*set, block.block)?;
            others.iter_mut().zip(rows).for_each(|(all, rows)| *all |= rows);
        }
        if let Some(compared) = compared.get(&block.block) {
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
