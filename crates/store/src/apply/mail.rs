//! Writing the mail of a batch: messages, their files, states and threads.
//!
//! It takes no lock and begins no transaction. Separate from `batch_writer`, whose items have bytes
//! in the store and versions in the history: the versions of a message are files; from
//! `message_names`, which chooses the name of a message; from `mail_copies`, which chooses the file
//! that a message has its values from; from `mail_files`, which writes the rows of files; and from
//! `known_mail`, which tells new mail from mail that came before.

use super::ApplyError;
use super::batch_writer::BatchWriter;
use super::item_rows::{STORED_ITEM_COLUMNS, StoredItem, stored_item_from_row};
use super::text_labels::TextGroups;
use crate::batch::ChangeOutcome;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::mail::batch::{
    MailBatch, MailChange, MailFile, OTHER_TEXT_ORIGIN, PreparedMessage, name_other_text,
    rule_row_key, write_words,
};
use crate::mail::before_image::BeforeImageWriter;
use crate::mail::columns::{
    ColumnWriter, MailColumn, MailSet, change_value, date_value, row_number,
};
use crate::mail::conversions::ConversionWriter;
use crate::mail::labels::LabelWriter;
use crate::mail::text_hash::read_text_hash;
use crate::mail::threads::{ThreadDepartures, join_thread};
use crate::mail_schema::{FORMER_RULES_END_KEY, OUTDATED_END_KEY};
use crate::mail_state_changes::{StateChangeWriter, delete_state_change};
use crate::meta::{find_meta_number, write_meta};
use crate::row_checksum::{VersionColumns, history_place_checksum};
use crate::row_ids::ItemRow;
use crate::uid_lookup::{CollectionKey, UidLookup, allocate_handle, delete_collision};
use crate::{CollectionType, Kind};
use larder_extract::message_flags::MessageFlags;
use larder_format::maildir_name::{MaildirFlags, MaildirName};
use std::collections::{BTreeSet, HashMap};
use std::mem;

/// Asks for a file of a message in a directory. A message may have many files, so it seeks the
/// first in the index.
const FILE_IN_DIRECTORY_SQL: &str =
    "SELECT EXISTS(SELECT 1 FROM mail_file WHERE item = ?1 AND directory = ?2)";

/// A directory of the collection.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryRow {
    pub(super) id: i64,
    pub(super) folder: i64,
}

/// A file as the store knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownFile {
    pub(super) item: ItemRow,
    pub(super) rank: Option<i64>,
    /// Its place among the files of its directory whose base names have the same hash.
    pub(super) place: i64,
}

/// The message that a new file may be a copy of.
pub(super) enum FoundMessage {
    /// This message has the text, too.
    Copy(ItemRow),
    /// A message has the Message-ID, and another text, or had it when the text was labelled.
    OtherText,
    /// This message has the Message-ID, and another text; the labels of the Message-ID were given
    /// to the text of the new file.
    NameHolder(ItemRow),
    /// No message has the Message-ID as its name.
    None(UidLookup),
}

/// The state of mail that is being written.
pub(super) struct MailWriter<'w, 'a> {
    pub(super) batch: &'w mut BatchWriter<'a>,
    pub(super) collection: CollectionKey,
    /// The kind of its items: messages or commits.
    kind: Kind,
    pub(super) columns: ColumnWriter,
    pub(super) labels: LabelWriter,
    /// The texts with one Message-ID that get their labels when the batch ends.
    pub(super) text_groups: TextGroups,
    pub(super) conversions: ConversionWriter,
    pub(super) directories: HashMap<Vec<u8>, DirectoryRow>,
    /// The directories of folders.
    pub(super) folder_directories: HashMap<i64, Vec<i64>>,
    departures: ThreadDepartures,
    /// The messages that get the states of their files when the batch ends: one with many files
    /// would be read for each of them.
    unsettled: BTreeSet<ItemRow>,
    /// The least ranks of the files of messages that were looked up, see `least_rank`.
    pub(super) least_ranks: HashMap<ItemRow, Option<i64>>,
    /// The row before which messages were read with other rules.
    pub(super) outdated_end: i64,
    /// The row before which the messages are those whose files could not be read since.
    pub(super) former_rules_end: i64,
}

impl BatchWriter<'_> {
    /// Writes the mail of a collection.
    pub(super) fn apply_mail(&mut self, mail: MailBatch) -> Result<ChangeOutcome, ApplyError> {
        let collection_type = self.find_collection(&mail.collection)?.map(|(.., number)| number);
        let kind = located_kind(collection_type);
        let collection = self.find_or_create_collection(&mail.collection, kind)?;
        let mut writer = MailWriter::begin(self, collection)?;
        for change in mail.changes {
            writer.apply_change(change)?;
        }
        writer.finish()?;
        write_words(self.tx, mail.words)?;
        self.rows.last_row_number = self.rows.last_row_number.max(i64::from(mail.end_row) - 1);
        Ok(ChangeOutcome::Done)
    }
}

/// Returns the kind of the items of a collection, by the number of its type: messages, if there is
/// no such collection yet.
fn located_kind(collection_type: Option<i64>) -> Kind {
    let kind = collection_type.and_then(CollectionType::from_number).map(CollectionType::main_kind);
    kind.filter(|kind| kind.has_locator()).unwrap_or(Kind::Message)
}

impl<'w, 'a> MailWriter<'w, 'a> {
    /// Begins to write the mail of a collection.
    pub(super) fn begin(
        batch: &'w mut BatchWriter<'a>,
        collection: CollectionKey,
    ) -> Result<MailWriter<'w, 'a>, ApplyError> {
        let number =
            |key| Ok::<_, ApplyError>(find_meta_number(batch.tx, key)?.unwrap_or_default());
        let (outdated_end, former_rules_end) =
            (number(OUTDATED_END_KEY)?, number(FORMER_RULES_END_KEY)?);
        let collection_type = batch
            .tx
            .prepare_cached("SELECT type FROM collection WHERE id = ?1")?
            .query_row([collection.id], |row| row.get(0))?;
        Ok(MailWriter {
            kind: located_kind(Some(collection_type)),
            batch,
            collection,
            columns: ColumnWriter::default(),
            labels: LabelWriter::default(),
            text_groups: TextGroups::default(),
            conversions: ConversionWriter::default(),
            directories: HashMap::new(),
            folder_directories: HashMap::new(),
            departures: ThreadDepartures::default(),
            unsettled: BTreeSet::new(),
            least_ranks: HashMap::new(),
            outdated_end,
            former_rules_end,
        })
    }

    /// Writes what was collected: columns, labels and threads, with their before-image.
    pub(super) fn finish(mut self) -> Result<(), ApplyError> {
        for item in mem::take(&mut self.unsettled) {
            self.write_states(item)?;
        }
        self.settle_labels()?;
        let MailWriter { batch, mut columns, labels, conversions, departures, .. } = self;
        let tx = batch.tx;
        conversions.finish(tx)?;
        departures.divide_threads(tx, &mut columns)?;
        let mut before = BeforeImageWriter::new(batch.rows.last_row_number);
        columns.write(tx, &mut before)?;
        labels.write(tx, &mut before)?;
        before.write(tx, batch.seq)?;
        Ok(())
    }
}

impl MailWriter<'_, '_> {
    fn apply_change(&mut self, change: MailChange) -> Result<(), ApplyError> {
        match change {
            MailChange::AddFile { file, message } => self.add_file(&file, &message),
            MailChange::RenameFile { from: (directory, name), file } => {
                self.rename_file(&directory, &name, &file)
            }
            MailChange::SetFileState(file) => self.set_file_state(&file),
            MailChange::RemoveFile { directory, name } => self.remove_file(&directory, &name),
            MailChange::PutDirectory { path, folder, is_new, state } => {
                self.put_directory(&path, &folder, is_new, &state)
            }
            MailChange::RemoveDirectory(path) => {
                let tx = self.batch.tx;
                self.directories.remove(&path);
                self.folder_directories.clear();
                tx.prepare_cached(
                    "DELETE FROM mail_directory WHERE collection = ?1 AND path = ?2",
                )?
                .execute((self.collection.id, path))?;
                self.batch.has_unnumbered_changes = true;
                Ok(())
            }
            MailChange::SetRuleRow(row) => {
                let key = rule_row_key(self.collection.id);
                write_meta(self.batch.tx, &key, i64::from(row.unwrap_or_default()))?;
                self.batch.has_unnumbered_changes = true;
                Ok(())
            }
            MailChange::ExpireFile { directory, name } => {
                let directory = self.find_directory(&directory)?;
                self.expire_file(directory.id, &name)
            }
            MailChange::SetReadingRules(fingerprint) => self.set_reading_rules(fingerprint),
            MailChange::FinishReadingRules => self.finish_reading_rules(),
        }
    }

    /// Adds a file, or one that was read again: to the message that it is a copy of, or as a new
    /// message.
    fn add_file(&mut self, file: &MailFile, message: &PreparedMessage) -> Result<(), ApplyError> {
        let directory = self.find_directory(&file.directory)?;
        let known = self.find_file(directory, &file.name)?;
        let mut found = self.find_copy(message, known)?;
        let mut was_known = false;
        if let Some(known) = known {
            if let FoundMessage::Copy(item) = found
                && item == known.item
            {
                self.least_ranks.remove(&item);
                self.update_file(directory, known, file, Some(message.rank))?;
                self.batch.has_unnumbered_changes = true;
                return self.settle_copy(item, directory, &file.name, message);
            }
            // The file was replaced by another one of the same name. Its former message may go. If
            // its text is the same, it has another Message-ID by newer rules of reading.
            let former_text = read_text_hash(self.batch.tx, known.item)?;
            was_known = former_text == Some(message.text_hash) && self.is_known(known.item)?;
            self.delete_file(directory, &file.name, known.item)?;
            found = self.find_copy(message, None)?;
        }
        if let FoundMessage::NameHolder(holder) = found {
            found = match self.rename_to_other_text(holder, &message.uid)? {
                true => FoundMessage::None(self.find_message(&message.uid)?),
                false => FoundMessage::OtherText,
            };
        }
        let item = match found {
            FoundMessage::Copy(item) => {
                self.insert_file(directory, file, item, Some(message.rank))?;
                self.set_folder(directory, item)?;
                return self.settle_copy(item, directory, &file.name, message);
            }
            FoundMessage::OtherText | FoundMessage::NameHolder(_) => {
                let name = name_other_text(message.text_hash, &message.uid);
                let lookup = self.find_message(&name)?;
                self.insert_message(&name, OTHER_TEXT_ORIGIN, &lookup, message)?
            }
            FoundMessage::None(lookup) => {
                let origin = i64::from(!message.has_message_id);
                self.insert_message(&message.uid, origin, &lookup, message)?
            }
        };
        if was_known {
            self.mark_known(item)?;
        }
        self.insert_file(directory, file, item, Some(message.rank))?;
        self.set_folder(directory, item)?;
        let flags = message.flags.with_file_flags(file.flags).bits().into();
        let tx = self.batch.tx;
        self.columns.set_value(tx, MailColumn::Flags, message.row, flags)?;
        let changed = change_value(file.state.changed);
        Ok(self.columns.set_value(tx, MailColumn::Changed, message.row, changed)?)
    }

    fn set_folder(&mut self, directory: DirectoryRow, item: ItemRow) -> Result<(), ApplyError> {
        let set = MailSet::Folder(directory.folder);
        Ok(self.columns.set_member(self.batch.tx, set, row_number(item)?, true)?)
    }

    pub(super) fn find_message(&mut self, uid: &str) -> Result<UidLookup, ApplyError> {
        Ok(self.batch.finder.find(&self.collection, uid, "")?)
    }

    /// Returns the handle of a new name, which is not that of an item.
    pub(super) fn handle_for(
        &mut self,
        uid: &str,
        lookup: &UidLookup,
        item: ItemRow,
    ) -> Result<Handle, ApplyError> {
        Ok(match lookup {
            UidLookup::Free(handle) => *handle,
            _ => {
                self.batch.finder.record_collision();
                allocate_handle(self.batch.tx, &self.collection, uid, "", item)?
            }
        })
    }

    pub(super) fn message_columns<'u>(
        &self,
        item: ItemRow,
        handle: Handle,
        uid: &'u str,
        uid_origin: i64,
    ) -> VersionColumns<'u> {
        VersionColumns {
            item,
            handle,
            kind: self.kind.number(),
            collection: self.collection.id,
            uid,
            uid_origin,
            seq: self.batch.seq,
            recurrence_id: "",
            calendar_context: None,
        }
    }

    pub(super) fn insert_message(
        &mut self,
        uid: &str,
        uid_origin: i64,
        lookup: &UidLookup,
        message: &PreparedMessage,
    ) -> Result<ItemRow, ApplyError> {
        let tx = self.batch.tx;
        let item = ItemRow::from_number(i64::from(message.row));
        let handle = self.handle_for(uid, lookup, item)?;
        let ordinal = self.batch.next_ordinal();
        let columns = self.message_columns(item, handle, uid, uid_origin);
        let row_checksum = columns.to_checksum().at_ordinal(ordinal);
        tx.prepare_cached(
            "INSERT INTO item(id, collection, kind, uid, recurrence_id, uid_origin, handle, seq,
                              ordinal, stored_fields, row_checksum)
             VALUES(?1, ?2, ?3, ?4, '', ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute((
            item,
            self.collection.id,
            columns.kind,
            uid,
            uid_origin,
            handle.to_bytes(),
            self.batch.seq,
            ordinal,
            &message.summary,
            row_checksum,
        ))?;
        if uid_origin == OTHER_TEXT_ORIGIN {
            self.note_other_text(item, &message.uid)?;
        }
        let row = message.row;
        self.columns.set_value(tx, MailColumn::Date, row, date_value(message.date))?;
        self.columns.set_value(tx, MailColumn::Size, row, message.size)?;
        join_thread(tx, &mut self.columns, row, &message.thread_ids)?;
        let is_named = uid_origin != OTHER_TEXT_ORIGIN;
        self.restore_labels(&message.uid, Some(message.text_hash), (item, is_named))?;
        self.conversions.add_uses(tx, item, &message.conversions)?;
        self.mark_returned(&message.uid, message.text_hash, item)?;
        self.batch.added += 1;
        Ok(item)
    }

    pub(super) fn flags(&mut self, item: ItemRow) -> DatabaseResult<MessageFlags> {
        let value = self.columns.value(self.batch.tx, MailColumn::Flags, row_number(item)?)?;
        Ok(MessageFlags::from_bits(u16::try_from(value).unwrap_or_default()))
    }

    /// Gives a message the states of its files when the batch ends, and records the change.
    pub(super) fn update_states(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        self.unsettled.insert(item);
        self.touch_item(item)
    }

    /// Returns the flags of a message, with those of its files.
    pub(super) fn settled_flags(&mut self, item: ItemRow) -> Result<MessageFlags, ApplyError> {
        if self.unsettled.remove(&item) {
            self.write_states(item)?;
        }
        Ok(self.flags(item)?)
    }

    /// Gives a message the flags of its files, beside those of its content, and the newest time of
    /// a change.
    pub(super) fn write_states(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        let (mut union, mut newest) = (MessageFlags::default(), 0);
        {
            let mut select = tx.prepare_cached(
                "SELECT f.name, d.is_new, f.changed FROM mail_file f
                 JOIN mail_directory d ON d.id = f.directory WHERE f.item = ?1",
            )?;
            let mut rows = select.query([item])?;
            while let Some(row) = rows.next()? {
                let name = MaildirName::parse(row.get_ref(0)?.as_blob().unwrap_or_default());
                let flags: MaildirFlags = name.flags(row.get(1)?);
                union = union.union(MessageFlags::default().with_file_flags(flags));
                newest = newest.max(row.get::<_, i64>(2)?);
            }
        }
        let flags = self.flags(item)?.without_file_flags().union(union);
        self.columns.set_value(tx, MailColumn::Flags, row, flags.bits().into())?;
        let changed = change_value(newest);
        Ok(self.columns.set_value(tx, MailColumn::Changed, row, changed)?)
    }

    /// Records that the batch changed a message.
    pub(super) fn touch_item(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, seq) = (self.batch.tx, self.batch.seq);
        let ordinal = self.batch.next_ordinal();
        StateChangeWriter::new(tx)?.write(item, seq, ordinal)?;
        self.batch.updated += 1;
        Ok(())
    }

    fn rename_file(
        &mut self,
        from_directory: &[u8],
        from_name: &[u8],
        file: &MailFile,
    ) -> Result<(), ApplyError> {
        let from = self.find_directory(from_directory)?;
        let Some(known) = self.find_file(from, from_name)? else {
            return Ok(());
        };
        let item = known.item;
        let to = self.find_directory(&file.directory)?;
        if let Some(other) = self.find_file(to, &file.name)?
            && other.item != item
        {
            // The file was moved over another one.
            self.delete_file(to, &file.name, other.item)?;
        }
        self.move_file((from, from_name), to, file, known)?;
        if from.folder != to.folder {
            self.update_folder(item, from.folder)?;
            self.set_folder(to, item)?;
        }
        self.settle_rest(item)?;
        self.update_states(item)
    }

    /// Removes a message from a folder if none of its files is there.
    fn update_folder(&mut self, item: ItemRow, folder: i64) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        let mut select = tx.prepare_cached(FILE_IN_DIRECTORY_SQL)?;
        for directory in self.folder_directories(folder)? {
            if select.query_row((item, directory), |row| row.get(0))? {
                return Ok(());
            }
        }
        let set = MailSet::Folder(folder);
        Ok(self.columns.set_member(tx, set, row_number(item)?, false)?)
    }

    /// Returns the directories of a folder.
    fn folder_directories(&mut self, folder: i64) -> Result<Vec<i64>, ApplyError> {
        if let Some(known) = self.folder_directories.get(&folder) {
            return Ok(known.clone());
        }
        let sql = "SELECT id FROM mail_directory WHERE folder = ?1";
        let mut select = self.batch.tx.prepare_cached(sql)?;
        let rows = select.query_map([folder], |row| row.get(0))?;
        let directories: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
        self.folder_directories.insert(folder, directories.clone());
        Ok(directories)
    }

    fn remove_file(&mut self, directory: &[u8], name: &[u8]) -> Result<(), ApplyError> {
        let directory = self.find_directory(directory)?;
        match self.find_file(directory, name)? {
            Some(known) => self.delete_file(directory, name, known.item),
            None => Ok(()),
        }
    }

    /// Deletes a file of a message, and the message with its last file.
    fn delete_file(
        &mut self,
        directory: DirectoryRow,
        name: &[u8],
        item: ItemRow,
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        self.delete_file_row(directory, name)?;
        self.settle_least_rank(item)?;
        self.update_folder(item, directory.folder)?;
        let has_files: bool = tx
            .prepare_cached("SELECT EXISTS(SELECT 1 FROM mail_file WHERE item = ?1)")?
            .query_row([item], |row| row.get(0))?;
        if has_files {
            self.settle_rest(item)?;
            return self.update_states(item);
        }
        let (uid, uid_origin): (String, i64) = tx
            .prepare_cached("SELECT uid, uid_origin FROM item WHERE id = ?1")?
            .query_row([item], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.delete_message(item)?;
        if uid_origin == 0 { self.rename_draft(&uid) } else { Ok(()) }
    }

    pub(super) fn delete_message(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, row) = (self.batch.tx, row_number(item)?);
        self.keep_labels(item)?;
        self.conversions.release_uses(tx, item)?;
        self.keep_name(item)?;
        self.record_removal(item)?;
        if self.columns.is_member(tx, MailSet::Reread, row)? {
            self.columns.set_member(tx, MailSet::Reread, row, false)?;
        }
        let columns = [MailColumn::Date, MailColumn::Flags, MailColumn::Size, MailColumn::Changed];
        for column in columns {
            self.columns.set_value(tx, column, row, 0)?;
        }
        self.unsettled.remove(&item);
        self.least_ranks.remove(&item);
        self.departures.leave(tx, &mut self.columns, row)?;
        delete_collision(tx, item)?;
        delete_state_change(tx, item)?;
        self.forget_other_text(item)?;
        tx.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([item])?;
        self.batch.removed += 1;
        Ok(())
    }

    /// Records the removal in the history, without bytes: the change feed names the message.
    pub(super) fn record_removal(&mut self, item: ItemRow) -> Result<(), ApplyError> {
        let (tx, seq) = (self.batch.tx, self.batch.seq);
        let stored: StoredItem = tx
            .prepare_cached(&format!(
                "SELECT {} FROM item i WHERE i.id = ?1",
                *STORED_ITEM_COLUMNS
            ))?
            .query_row([item], stored_item_from_row)?;
        let ordinal = self.batch.next_ordinal();
        let (since, kind) = (stored.seq, self.kind.number());
        let columns = VersionColumns {
            item,
            handle: stored.handle,
            kind,
            collection: stored.location.collection,
            uid: &stored.location.uid,
            uid_origin: 0,
            seq: since,
            recurrence_id: "",
            calendar_context: None,
        };
        let place = history_place_checksum(seq, ordinal, true);
        tx.prepare_cached(
            "INSERT INTO item_history(seq, ordinal, handle, collection, kind, removed, since, uid,
                                      recurrence_id, uid_origin, item, row_checksum)
             VALUES(?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, '', 0, ?8, ?9)",
        )?
        .execute((
            seq,
            ordinal,
            stored.handle.to_bytes(),
            stored.location.collection,
            kind,
            since,
            &stored.location.uid,
            item,
            columns.to_checksum().combine(place),
        ))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail_schema::MAIL_SCHEMA_SQL;

    /// Of a message with many files, one that read them all for each file that is deleted would
    /// take quadratic time.
    #[test]
    fn a_file_of_a_message_in_a_directory_is_sought() {
        let database = rusqlite::Connection::open_in_memory().unwrap();
        database.execute_batch(MAIL_SCHEMA_SQL).unwrap();
        let sql = format!("EXPLAIN QUERY PLAN {FILE_IN_DIRECTORY_SQL}");
        let mut plan = database.prepare(&sql).unwrap();
        let steps = plan.query_map([1, 1], |row| row.get::<_, String>("detail")).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        let expected =
            "SEARCH mail_file USING COVERING INDEX mail_file_item (item=? AND directory=?)";
        assert!(steps.iter().any(|step| step == expected), "{steps:?}");
    }
}
