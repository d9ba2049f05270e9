//! Reading mail: the files of maildirs, rows of messages, states by block, and words.
//!
//! Separate from `item_reader`, which reads items with their bytes: messages are listed from their
//! rows, and their bytes are in files. Separate from `mail`, which has the tables and their
//! writers. The modules `message_rows` and `mail_words` read the rows that lists show and the
//! words, `file_records` the files, `text_labels` the texts with a Message-ID and the origins of
//! their labels, `waiting_labels` the labels of messages that are not there.

mod file_records;
mod mail_words;
mod message_rows;
mod text_labels;
mod waiting_labels;

pub use self::file_records::{MailDirectoryRecord, MailFileRecord};
pub use self::mail_words::{MailWords, OpenMailWords};
pub use self::message_rows::MessageRow;

use crate::Seq;
use crate::before_images::read_changed_rows;
use crate::change_feed::ChangeCursor;
use crate::error::{DatabaseError, DatabaseResult, Result, sqlite_error_at};
use crate::handle::{Handle, HandlePrefix};
use crate::label_feed::LabelledText;
use crate::mail::batch::rule_row_key;
use crate::mail::columns::{
    BlockValues, MailBlock, MailColumn, MailSet, for_each_label_set, row_number,
};
use crate::mail::conversions::{
    ConversionKey, ConvertedText, find_conversion, find_used_conversion,
};
use crate::mail::former_states::FormerMailStates;
use crate::mail::labels::{ListedLabels, read_label_cursor, read_label_names};
use crate::mail::threads::{find_thread, thread_members};
use crate::mail::{BLOCK_ROWS, BlockRows};
use crate::mail_schema::{FINGERPRINT_KEY, OUTDATED_END_KEY};
use crate::meta::{find_meta_number, has_meta, read_meta_text};
use crate::read_transaction::ReadTransaction;
use crate::reader::Reader;
use crate::reader_cache::ReaderCache;
use rusqlite::OptionalExtension as _;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The last block that a row can be in.
const LAST_BLOCK: u32 = u32::MAX / BLOCK_ROWS;

/// The rules with which messages were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadingRules {
    /// The fingerprint; `None`: no messages were read.
    pub fingerprint: Option<String>,
    /// Whether messages are left that were read with former rules.
    pub has_outdated_messages: bool,
}

/// A message that left an answer, or no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedMessage {
    /// The row that it had.
    pub row: u32,
    /// The handle.
    pub handle: Handle,
    /// The Message-ID, or the name of a message without one.
    pub uid: String,
}

/// Reads mail in one transaction.
pub struct MailReader<'r> {
    reader: &'r Reader,
    tx: ReadTransaction<'r>,
    cache: Arc<ReaderCache>,
}

impl Reader {
    /// Returns the part that reads mail, within one read transaction. The store must have the
    /// tables of mail.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn mail(&self) -> Result<MailReader<'_>> {
        let tx = self.begin_read()?;
        let cache = self.cache(&tx).map_err(sqlite_error_at(&self.path))?;
        Ok(MailReader { reader: self, tx, cache })
    }
}

impl<'r> MailReader<'r> {
    /// Returns the collections whose messages searches leave out, see
    /// [`Reader::leave_out_collections`].
    #[must_use]
    pub fn left_out_collections(&self) -> &'r [String] {
        &self.reader.left_out_collections
    }

    pub(crate) fn run<T>(
        &self,
        read: impl FnOnce(&ReadTransaction<'r>) -> DatabaseResult<T>,
    ) -> Result<T> {
        read(&self.tx).map_err(sqlite_error_at(&self.reader.path))
    }

    /// Maps the file into memory, if so many rows are to be read that this is worth it.
    fn map_file(&self, rows: usize) {
        self.reader.map_file_for_items(rows);
    }

    /// Maps the file into memory, for a search that reads much of it.
    pub fn expect_large_read(&self) {
        self.map_file(usize::MAX);
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> MailWords<'_> {
        MailWords::new(&self.tx, &self.cache, &self.reader.path)
    }

    /// Returns the row after the last one that any message has or had.
    pub fn end_row(&self) -> Result<u32> {
        self.run(|_| {
            let last = self.cache.meta.number("last_item")?;
            u32::try_from(last + 1)
                .map_err(|_| DatabaseError::Damaged("the last row is too large".into()))
        })
    }

    /// Returns the values of a column in a block.
    pub fn values(&self, column: MailColumn, block: u32) -> Result<Arc<BlockValues>> {
        self.run(|tx| self.cache.mail.values(tx, column, block))
    }

    /// Returns the rows of a block that have a message.
    pub fn message_rows(&self, block: u32) -> Result<BlockRows> {
        self.run(|tx| self.cache.mail.message_rows(tx, block))
    }

    /// Returns the rows of a set in a block.
    pub fn set(&self, set: MailSet, block: u32) -> Result<BlockRows> {
        self.run(|tx| self.cache.mail.set(tx, set, block))
    }

    /// Returns the blocks, ascending.
    pub fn blocks(&self) -> Result<&[MailBlock]> {
        let end_block = self.end_row()?.div_ceil(BLOCK_ROWS);
        self.run(|tx| self.cache.mail.blocks(tx, end_block))
    }

    /// Returns the blocks, those with the newest dates first.
    pub fn newest_blocks(&self) -> Result<&[MailBlock]> {
        let end_block = self.end_row()?.div_ceil(BLOCK_ROWS);
        self.run(|tx| self.cache.mail.newest_blocks(tx, end_block))
    }

    /// Returns the Message-ID of a message, or its name; `None`: the row has no message.
    pub fn uid(&self, row: u32) -> Result<Option<String>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached("SELECT uid FROM item WHERE id = ?1")?;
            Ok(select.query_row([row], |row| row.get(0)).optional()?)
        })
    }

    /// Returns whether a message has a Message-ID. One without has a name made from its content.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has_message_id(&self, row: u32) -> Result<bool> {
        self.run(|tx| {
            let mut select = tx.prepare_cached("SELECT uid_origin <> 1 FROM item WHERE id = ?1")?;
            Ok(select.query_row([row], |row| row.get(0)).optional()?.unwrap_or_default())
        })
    }

    /// Returns the hash of the Message-ID in the header of a message of this thread, which is not
    /// the name of the message if another text has that; `None`: the row is not in the thread.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn header_message_id(&self, thread: u32, row: u32) -> Result<Option<i64>> {
        self.run(|tx| {
            let sql = "SELECT substr(ids, 1, 8) FROM mail_thread WHERE thread = ?1 AND item = ?2";
            let mut select = tx.prepare_cached(sql)?;
            let id: Option<Vec<u8>> =
                select.query_row((thread, row), |row| row.get(0)).optional()?;
            Ok(id.and_then(|bytes| Some(i64::from_le_bytes(bytes.try_into().ok()?))))
        })
    }

    /// Returns the name of a message, and the hash of its text; `None`: there is no such message.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn labelled_text(&self, row: u32) -> Result<Option<LabelledText>> {
        Ok(self.labelled_texts(&[row])?.pop())
    }

    /// Returns the rows of the messages whose handles begin with a prefix, at most `limit`.
    pub fn rows_with_handle(&self, prefix: HandlePrefix, limit: usize) -> Result<Vec<u32>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT id FROM item WHERE handle BETWEEN ?1 AND ?2 ORDER BY handle LIMIT ?3",
            )?;
            let (first, last) = (prefix.first.to_bytes(), prefix.last.to_bytes());
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = select.query_map((first, last, limit), |row| row.get(0))?;
            rows.map(|row| row_number(row?)).collect()
        })
    }

    /// Returns the handles and names of removed messages that the history names: those with this
    /// Message-ID, or whose handle begins with a prefix.
    pub fn find_removed(
        &self,
        uid: &str,
        prefix: Option<HandlePrefix>,
    ) -> Result<Vec<(Handle, String)>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT DISTINCT handle, uid FROM item_history f
                 WHERE (uid = ?1 OR uid IS NOT NULL AND handle BETWEEN ?2 AND ?3)
                   AND NOT EXISTS(SELECT 1 FROM item i WHERE i.handle = f.handle)",
            )?;
            let first = prefix.map(|prefix| prefix.first.to_bytes());
            let last = prefix.map(|prefix| prefix.last.to_bytes());
            let rows = select.query_map((uid, first, last), |row| {
                Ok((Handle::from_bytes(row.get_ref(0)?.as_blob()?), row.get(1)?))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Passes the row and the Message-ID of each message to `visit`.
    pub fn for_each_uid(&self, visit: &mut dyn FnMut(u32, &str)) -> Result<()> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT DISTINCT i.id, coalesce(o.message_id, i.uid) FROM mail_file f
                 JOIN item i ON i.id = f.item LEFT JOIN mail_other_text o ON o.item = i.id",
            )?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let uid = row.get_ref(1)?.as_str().unwrap_or_default();
                visit(row_number(row.get(0)?)?, uid);
            }
            Ok(())
        })
    }

    /// Returns the labels, each with the set of its messages, by name.
    pub fn labels(&self) -> Result<Vec<(String, MailSet)>> {
        self.run(|tx| {
            let labels = read_label_names(tx)?.into_iter();
            Ok(labels.map(|(number, name)| (name, MailSet::Label(number))).collect())
        })
    }

    /// Returns the labels that any message has, each with the number of messages, by name.
    pub fn count_labels(&self) -> Result<Vec<(String, u64)>> {
        self.run(|tx| {
            let mut counts = HashMap::new();
            for_each_label_set(tx, 0..=LAST_BLOCK, &mut |_, label, rows| {
                let count: u32 = rows.iter().map(|word| word.count_ones()).sum();
                *counts.entry(label).or_insert(0) += u64::from(count);
            })?;
            let labels = read_label_names(tx)?.into_iter();
            let labels = labels.map(|(number, name)| (name, counts.remove(&number)));
            Ok(labels.filter_map(|(name, count)| Some((name, count?))).collect())
        })
    }

    /// Begins to read the labels of single messages.
    pub fn listed_labels(&self) -> Result<ListedLabels> {
        self.run(|tx| ListedLabels::read(tx))
    }

    /// Returns the labels of a message, sorted.
    pub fn labels_of<'l>(&self, listed: &'l mut ListedLabels, row: u32) -> Result<Vec<&'l str>> {
        listed.labels_of(&self.tx, row).map_err(sqlite_error_at(&self.reader.path))
    }

    /// Returns whether the labels of a message, which were read before, belong to any text with its
    /// Message-ID.
    #[must_use]
    pub fn are_labels_of_any_text(&self, listed: &ListedLabels, row: u32) -> bool {
        listed.are_of_any_text(row)
    }

    /// Returns the position in the change feed of `data.db` up to which the labels are known.
    pub fn label_cursor(&self) -> Result<Option<ChangeCursor>> {
        self.run(|tx| read_label_cursor(tx))
    }

    /// Returns the states of messages after an earlier batch. `None`: they are not known any more.
    pub fn former_states(&self, after: Seq) -> Result<Option<FormerMailStates>> {
        let end_row = self.end_row()?;
        self.run(|tx| {
            let Some(mut states) = FormerMailStates::read(tx, after, end_row)? else {
                return Ok(None);
            };
            let Some(rows) = read_changed_rows(tx, after, Seq::MAX)? else { return Ok(None) };
            for row in rows {
                states.add_changed_row(row_number(row)?);
            }
            Ok(Some(states))
        })
    }

    /// Returns the handles and names that messages had after the batch `after`, also of those that
    /// no longer exist.
    pub fn name_removed(&self, rows: &[u32], after: Seq) -> Result<Vec<RemovedMessage>> {
        self.run(|tx| {
            let mut named = find_former_names(tx, rows, after)?;
            let known: BTreeSet<u32> = named.iter().map(|one| one.row).collect();
            let mut select = tx.prepare_cached("SELECT handle, uid FROM item WHERE id = ?1")?;
            for row in rows.iter().filter(|row| !known.contains(row)) {
                let mut found = select.query([row])?;
                if let Some(item) = found.next()? {
                    named.push(removed_message(*row, item, 0)?);
                }
            }
            Ok(named)
        })
    }

    /// Returns those of these messages that had another handle after the batch `after`, with that
    /// handle: a draft takes the name of its former text.
    pub fn find_renamed(&self, rows: &[u32], after: Seq) -> Result<Vec<RemovedMessage>> {
        self.run(|tx| {
            let mut renamed = Vec::new();
            let mut select = tx.prepare_cached("SELECT handle FROM item WHERE id = ?1")?;
            for former in find_former_names(tx, rows, after)? {
                let mut found = select.query([former.row])?;
                let Some(item) = found.next()? else { continue };
                if Handle::from_bytes(item.get_ref(0)?.as_blob()?) != former.handle {
                    renamed.push(former);
                }
            }
            Ok(renamed)
        })
    }

    /// Returns the members of a thread.
    pub fn thread_members(&self, thread: u32) -> Result<Vec<u32>> {
        self.run(|tx| Ok(thread_members(tx, thread)?))
    }

    /// Returns the thread of a Message-ID, by its hash.
    pub fn find_thread(&self, id: i64) -> Result<Option<u32>> {
        self.run(|tx| find_thread(tx, id))
    }

    /// Returns the text that a converter made of an attachment, if it is known.
    pub fn find_conversion(&self, key: &ConversionKey) -> Result<Option<ConvertedText>> {
        self.run(|tx| find_conversion(tx, key))
    }

    /// Returns the text that a converter made of an attachment of the message in a row, if it is
    /// known.
    pub fn find_used_conversion(
        &self,
        row: u32,
        key: &ConversionKey,
    ) -> Result<Option<ConvertedText>> {
        self.run(|tx| find_used_conversion(tx, row, key))
    }

    /// Returns the rules with which the messages were read.
    pub fn reading_rules(&self) -> Result<ReadingRules> {
        self.run(|tx| {
            let fingerprint = match has_meta(tx, FINGERPRINT_KEY)? {
                true => Some(read_meta_text(tx, FINGERPRINT_KEY)?),
                false => None,
            };
            let has_outdated_messages = find_meta_number(tx, OUTDATED_END_KEY)?.is_some();
            Ok(ReadingRules { fingerprint, has_outdated_messages })
        })
    }

    /// Returns the first row of a collection that the rules have not been run on; `None`: it is not
    /// known, as no synchronisation has completed.
    pub fn rule_row(&self, collection: &str) -> Result<Option<u32>> {
        self.run(|tx| {
            let sql = "SELECT id FROM collection WHERE name = ?1 AND removed = 0";
            let found =
                tx.prepare_cached(sql)?.query_row([collection], |row| row.get(0)).optional()?;
            let Some(collection) = found else { return Ok(None) };
            let row = find_meta_number(tx, &rule_row_key(collection))?;
            Ok(row.and_then(|row| u32::try_from(row).ok()).filter(|row| *row > 0))
        })
    }

    /// Returns the name of the collection of a message.
    pub fn collection_of(&self, row: u32) -> Result<Option<String>> {
        self.run(|tx| {
            let sql = "SELECT c.name FROM item i JOIN collection c ON c.id = i.collection
                 WHERE i.id = ?1";
            Ok(tx.prepare_cached(sql)?.query_row([row], |row| row.get(0)).optional()?)
        })
    }
}

/// Reads the handle and the name of a message from two columns.
fn removed_message(
    row: u32,
    item: &rusqlite::Row<'_>,
    first_column: usize,
) -> DatabaseResult<RemovedMessage> {
    let handle = Handle::from_bytes(item.get_ref(first_column)?.as_blob()?);
    let uid: Option<String> = item.get(first_column + 1)?;
    Ok(RemovedMessage { row, handle, uid: uid.unwrap_or_default() })
}

/// Returns the handles and names after the batch `after` of those of these messages that a later
/// batch removed or renamed.
fn find_former_names(
    tx: &ReadTransaction<'_>,
    rows: &[u32],
    after: Seq,
) -> DatabaseResult<Vec<RemovedMessage>> {
    let mut wanted: BTreeSet<u32> = rows.iter().copied().collect();
    let mut named = Vec::new();
    if wanted.is_empty() {
        return Ok(named);
    }
    let sql = "SELECT item, handle, uid FROM item_history WHERE seq > ?1 AND removed = 1
               ORDER BY seq, ordinal";
    let mut select = tx.prepare_cached(sql)?;
    let mut found = select.query([after])?;
    while let Some(item) = found.next()? {
        let row = item.get::<_, Option<u32>>(0)?;
        if let Some(row) = row.filter(|row| wanted.remove(row)) {
            named.push(removed_message(row, item, 1)?);
        }
    }
    Ok(named)
}

/// Returns the rows of the messages with a Message-ID whose names are made from their texts.
pub(crate) fn find_other_texts(
    tx: &ReadTransaction<'_>,
    message_id: &str,
) -> DatabaseResult<Vec<u32>> {
    let mut select = tx.prepare_cached(
        "SELECT i.id FROM mail_other_text o
         JOIN item i ON i.id = o.item JOIN collection c ON c.id = i.collection
         WHERE o.message_id = ?1 AND c.removed = 0 ORDER BY o.item",
    )?;
    let rows = select.query_map([message_id], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns whether a Message-ID has other texts than the one that has it as its name.
pub(crate) fn has_other_texts(tx: &ReadTransaction<'_>, message_id: &str) -> DatabaseResult<bool> {
    let mut select =
        tx.prepare_cached("SELECT EXISTS(SELECT 1 FROM mail_other_text WHERE message_id = ?1)")?;
    Ok(select.query_row([message_id], |row| row.get(0))?)
}
