//! The labels of messages, as `index.db` has them: a set of rows for each label.
//!
//! Labels are items of `data.db`; these sets follow them (`label_feed`). A table of its own keeps
//! the labels of messages that are not in the index, and the batch that adds such a message gives
//! it its labels.
//!
//! The labels of a text are those of the items that `label_items` names, in whatever order these
//! and the messages came. If a Message-ID has one item, under the Message-ID, and a message with
//! this name has the text that the item names, then the item is that message's labels, and its text
//! or, for the rows of [`ANY_TEXT_SET`], any text. Otherwise a table keeps all items of the
//! Message-ID; they are called waiting, because most are those of messages that are not there.
//!
//! Separate from `columns`, because labels have names, and the labels of one message are read
//! together.

use super::before_image::BeforeImageWriter;
use super::columns::{
    ANY_TEXT_SET, MailSet, block_of, delete_label_sets, for_each_label_set, label_number,
    write_hidden_set, write_set,
};
use super::label_items::LabelItems;
use super::{BLOCK_WORDS, BlockRows};
use crate::change_feed::ChangeCursor;
use crate::error::{DatabaseError, DatabaseResult};
use crate::meta::read_index_state;
use crate::read_transaction::ReadTransaction;
use crate::write_transaction::WriteTransaction;
use larder_format::label::{LabelList, MessageLabels};
use rusqlite::OptionalExtension as _;
use std::collections::{BTreeMap, HashMap};

/// The key in `meta` of the position in the change feed of `data.db`.
pub(crate) const LABEL_CURSOR_KEY: &str = "label_cursor";

/// The labels of messages that changed in `data.db`, for the copy in `index.db`.
#[derive(Debug, Clone)]
pub struct LabelBatch {
    /// The position up to which the copy followed before; if it is elsewhere, another process
    /// followed, and nothing is written.
    pub from: Option<ChangeCursor>,
    /// Whether all labels are forgotten first.
    pub is_restart: bool,
    /// The Message-IDs of the changed messages, each with all of its labels.
    pub messages: Vec<(String, MessageLabels)>,
    /// The position after these changes.
    pub to: ChangeCursor,
}

/// The rows of a label in a block, and whether they were changed.
struct LabelRows {
    rows: BlockRows,
    is_changed: bool,
}

/// The labels that a batch changes.
#[derive(Default)]
pub(crate) struct LabelWriter {
    /// The numbers of the labels, and their names; `None`: not read yet.
    numbers: Option<HashMap<String, u32>>,
    names: HashMap<u32, String>,
    /// The labels of the blocks that were read.
    blocks: BTreeMap<u32, BTreeMap<u32, LabelRows>>,
    /// Whether labels wait for messages; `None`: not known yet.
    has_waiting: Option<bool>,
}

fn is_member(rows: &BlockRows, place: usize) -> bool {
    rows.get(place / 64).is_some_and(|word| word & 1 << (place % 64) != 0)
}

impl LabelWriter {
    /// Returns whether there is any label. Batches of a store without labels stop here.
    pub(crate) fn has_labels(&mut self, tx: &ReadTransaction<'_>) -> DatabaseResult<bool> {
        Ok(!self.numbers(tx)?.is_empty() || self.has_waiting(tx)?)
    }

    fn has_waiting(&mut self, tx: &ReadTransaction<'_>) -> DatabaseResult<bool> {
        if let Some(known) = self.has_waiting {
            return Ok(known);
        }
        let sql = "SELECT EXISTS(SELECT 1 FROM mail_waiting_label)";
        let known = tx.query_row(sql, [], |row| row.get(0))?;
        self.has_waiting = Some(known);
        Ok(known)
    }

    fn numbers(&mut self, tx: &ReadTransaction<'_>) -> DatabaseResult<&mut HashMap<String, u32>> {
        if self.numbers.is_none() {
            let labels = read_label_names(tx)?;
            self.names = labels.iter().cloned().collect();
            self.numbers = Some(labels.into_iter().map(|(number, name)| (name, number)).collect());
        }
        Ok(self.numbers.get_or_insert_default())
    }

    /// Returns the number of a label, which is made if there is none.
    fn number_of(&mut self, tx: &WriteTransaction<'_>, name: &str) -> DatabaseResult<u32> {
        if let Some(number) = self.numbers(tx)?.get(name) {
            return Ok(*number);
        }
        let row: i64 = tx
            .prepare_cached("INSERT INTO mail_label(name) VALUES(?1) RETURNING id")?
            .query_row([name], |row| row.get(0))?;
        let number = label_number(row)?;
        self.numbers(tx)?.insert(name.to_string(), number);
        self.names.insert(number, name.to_string());
        Ok(number)
    }

    fn block(
        &mut self,
        tx: &ReadTransaction<'_>,
        block: u32,
    ) -> DatabaseResult<&mut BTreeMap<u32, LabelRows>> {
        use std::collections::btree_map::Entry;
        Ok(match self.blocks.entry(block) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let mut labels = BTreeMap::new();
                for_each_label_set(tx, block..=block, &mut |_, label, rows| {
                    labels.insert(label, LabelRows { rows: *rows, is_changed: false });
                })?;
                entry.insert(labels)
            }
        })
    }

    /// Returns the labels of a row.
    pub(crate) fn labels(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: u32,
    ) -> DatabaseResult<LabelList> {
        let (block, place) = block_of(row);
        let sets = self.block(tx, block)?.iter();
        let numbers: Vec<u32> =
            sets.filter(|(_, set)| is_member(&set.rows, place)).map(|(label, _)| *label).collect();
        self.numbers(tx)?;
        let mut labels = LabelList::default();
        for name in numbers.iter().filter_map(|number| self.names.get(number)) {
            labels.insert(name);
        }
        Ok(labels)
    }

    /// Returns whether the labels of a row belong to any text with the Message-ID.
    pub(crate) fn has_labels_of_any_text(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: u32,
    ) -> DatabaseResult<bool> {
        let (block, place) = block_of(row);
        let set = self.block(tx, block)?.get(&ANY_TEXT_SET);
        Ok(set.is_some_and(|set| is_member(&set.rows, place)))
    }

    /// Sets the labels of a row. Returns whether they were others.
    pub(crate) fn set_labels(
        &mut self,
        tx: &WriteTransaction<'_>,
        row: u32,
        one: &MessageLabels,
    ) -> DatabaseResult<bool> {
        let mut wanted = Vec::new();
        for name in one.labels.iter() {
            wanted.push(self.number_of(tx, name)?);
        }
        if !wanted.is_empty() && one.text_hash.is_none() {
            wanted.push(ANY_TEXT_SET);
        }
        let (block, place) = block_of(row);
        let bit = 1 << (place % 64);
        let sets = self.block(tx, block)?;
        let mut is_changed = false;
        for (label, set) in sets.iter_mut() {
            if is_member(&set.rows, place) && !wanted.contains(label) {
                set.rows.iter_mut().skip(place / 64).take(1).for_each(|word| *word &= !bit);
                set.is_changed = true;
                is_changed |= *label != ANY_TEXT_SET;
            }
        }
        for label in wanted {
            let set = sets
                .entry(label)
                .or_insert(LabelRows { rows: [0; BLOCK_WORDS], is_changed: false });
            if !is_member(&set.rows, place) {
                set.rows.iter_mut().skip(place / 64).take(1).for_each(|word| *word |= bit);
                set.is_changed = true;
                is_changed |= label != ANY_TEXT_SET;
            }
        }
        Ok(is_changed)
    }

    /// Keeps an item beside the labels of the messages. `is_given`: there are messages with the
    /// Message-ID. One without labels is forgotten.
    pub(crate) fn keep_waiting(
        &mut self,
        tx: &WriteTransaction<'_>,
        uid: &str,
        one: &MessageLabels,
        message_id: Option<&str>,
        is_given: bool,
    ) -> DatabaseResult<()> {
        if !one.labels.is_empty() {
            tx.prepare_cached("INSERT OR REPLACE INTO mail_waiting_label VALUES(?1, ?2, ?3, ?4)")?
                .execute((uid, one.to_bytes(), is_given, message_id))?;
            self.has_waiting = Some(true);
        } else {
            self.forget_waiting(tx, uid)?;
        }
        Ok(())
    }

    /// Marks the items that are kept of a Message-ID: whether there are messages with it.
    pub(crate) fn mark_given(
        &self,
        tx: &WriteTransaction<'_>,
        message_id: &str,
        is_given: bool,
    ) -> DatabaseResult<()> {
        let sql = "UPDATE mail_waiting_label SET is_given = ?2
                   WHERE message_id = ?1 AND is_given <> ?2";
        tx.prepare_cached(sql)?.execute((message_id, is_given))?;
        Ok(())
    }

    /// Returns whether items are kept whose Message-ID is not known: those of former versions do
    /// not have it.
    pub(crate) fn has_unassigned(&mut self, tx: &ReadTransaction<'_>) -> DatabaseResult<bool> {
        if !self.has_waiting(tx)? {
            return Ok(false);
        }
        let sql = "SELECT EXISTS(SELECT 1 FROM mail_waiting_label WHERE message_id IS NULL)";
        Ok(tx.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Forgets an item that is kept.
    pub(crate) fn forget_waiting(
        &mut self,
        tx: &WriteTransaction<'_>,
        uid: &str,
    ) -> DatabaseResult<()> {
        if self.has_waiting(tx)? {
            tx.prepare_cached("DELETE FROM mail_waiting_label WHERE uid = ?1")?.execute([uid])?;
        }
        Ok(())
    }

    /// Returns the labels that wait for a message, or for one of the texts with its name.
    pub(crate) fn find_waiting(
        &mut self,
        tx: &ReadTransaction<'_>,
        uid: &str,
    ) -> DatabaseResult<Option<MessageLabels>> {
        if !self.has_waiting(tx)? {
            return Ok(None);
        }
        let bytes: Option<Vec<u8>> = tx
            .prepare_cached("SELECT labels FROM mail_waiting_label WHERE uid = ?1")?
            .query_row([uid], |row| row.get(0))
            .optional()?;
        Ok(bytes.map(|bytes| MessageLabels::parse(&bytes)))
    }

    /// Returns the Message-ID of an item that is kept, if it is known.
    pub(crate) fn find_waiting_id(
        &mut self,
        tx: &ReadTransaction<'_>,
        uid: &str,
    ) -> DatabaseResult<Option<String>> {
        if !self.has_waiting(tx)? {
            return Ok(None);
        }
        let mut select =
            tx.prepare_cached("SELECT message_id FROM mail_waiting_label WHERE uid = ?1")?;
        Ok(select.query_row([uid], |row| row.get(0)).optional()?.flatten())
    }

    /// Returns the kept items of a Message-ID.
    pub(crate) fn waiting_items(
        &mut self,
        tx: &ReadTransaction<'_>,
        message_id: &str,
    ) -> DatabaseResult<LabelItems> {
        match self.has_waiting(tx)? {
            true => read_waiting_items(tx, message_id),
            false => Ok(LabelItems::new(message_id)),
        }
    }

    /// Forgets all labels, of all messages.
    pub(crate) fn clear(&mut self, tx: &WriteTransaction<'_>) -> DatabaseResult<()> {
        *self = LabelWriter::default();
        delete_label_sets(tx)?;
        tx.execute("DELETE FROM mail_label", [])?;
        tx.execute("DELETE FROM mail_waiting_label", [])?;
        Ok(())
    }

    /// Writes the changed sets. Adds the former ones to a before-image.
    pub(crate) fn write(
        self,
        tx: &WriteTransaction<'_>,
        before: &mut BeforeImageWriter,
    ) -> DatabaseResult<()> {
        for (block, labels) in self.blocks {
            for (label, set) in labels.iter().filter(|(_, set)| set.is_changed) {
                let (page, rows) = (MailSet::Label(*label), &set.rows);
                match *label {
                    ANY_TEXT_SET => write_hidden_set(tx, page, block, rows)?,
                    _ => write_set(tx, page, block, rows, before)?,
                }
            }
        }
        Ok(())
    }
}

/// Reads the kept items of a Message-ID.
pub(crate) fn read_waiting_items(
    tx: &ReadTransaction<'_>,
    message_id: &str,
) -> DatabaseResult<LabelItems> {
    let mut items = LabelItems::new(message_id);
    let mut select =
        tx.prepare_cached("SELECT uid, labels FROM mail_waiting_label WHERE message_id = ?1")?;
    let mut rows = select.query([message_id])?;
    while let Some(row) = rows.next()? {
        let one = MessageLabels::parse(row.get_ref(1)?.as_blob()?);
        items.put(row.get_ref(0)?.as_str()?, one);
    }
    Ok(items)
}

/// Reads the position up to which the labels follow `data.db`; `None`: they are to be read anew.
pub(crate) fn read_label_cursor(tx: &ReadTransaction<'_>) -> DatabaseResult<Option<ChangeCursor>> {
    let text = read_index_state(tx, LABEL_CURSOR_KEY)?;
    Ok(text.and_then(|text| ChangeCursor::parse(&text)))
}

/// Reads the numbers and names of all labels, by name.
pub(crate) fn read_label_names(tx: &ReadTransaction<'_>) -> DatabaseResult<Vec<(u32, String)>> {
    let mut select = tx.prepare_cached("SELECT id, name FROM mail_label ORDER BY name")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    rows.map(|row| row.map_err(DatabaseError::from))
        .map(|row| row.and_then(|(row, name)| Ok((label_number(row)?, name))))
        .collect()
}

/// The labels of messages that are listed, with those of their neighbours.
#[derive(Debug, Default)]
pub struct ListedLabels {
    names: HashMap<u32, String>,
    blocks: HashMap<u32, Vec<(u32, BlockRows)>>,
}

impl ListedLabels {
    pub(crate) fn read(tx: &ReadTransaction<'_>) -> DatabaseResult<ListedLabels> {
        let names = read_label_names(tx)?.into_iter().collect();
        Ok(ListedLabels { names, blocks: HashMap::new() })
    }

    /// Returns the labels of a row, sorted.
    pub(crate) fn labels_of(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: u32,
    ) -> DatabaseResult<Vec<&str>> {
        let (block, place) = block_of(row);
        if !self.names.is_empty() && !self.blocks.contains_key(&block) {
            let mut sets = Vec::new();
            for_each_label_set(tx, block..=block, &mut |_, label, rows| sets.push((label, *rows)))?;
            self.blocks.insert(block, sets);
        }
        let sets = self.blocks.get(&block).into_iter().flatten();
        let found = sets.filter(|(_, rows)| is_member(rows, place));
        let mut labels: Vec<&str> =
            found.filter_map(|(label, _)| self.names.get(label)).map(String::as_str).collect();
        labels.sort_unstable();
        Ok(labels)
    }

    /// Returns whether the labels of a row that was listed belong to any text with the
    /// Message-ID.
    pub(crate) fn are_of_any_text(&self, row: u32) -> bool {
        let (block, place) = block_of(row);
        let mut sets = self.blocks.get(&block).into_iter().flatten();
        sets.any(|(label, rows)| *label == ANY_TEXT_SET && is_member(rows, place))
    }
}
