//! Writing the rows of files and of their directories.
//!
//! Separate from `mail`, which decides the message that a file belongs to, and gives the message
//! the states of its files.

use super::ApplyError;
use super::mail::{DirectoryRow, KnownFile, MailWriter};
use crate::mail::batch::{MailFile, MailFileState, file_key};
use crate::row_ids::ItemRow;
use rusqlite::OptionalExtension as _;

impl MailWriter<'_, '_> {
    pub(super) fn find_directory(&mut self, path: &[u8]) -> Result<DirectoryRow, ApplyError> {
        if let Some(known) = self.directories.get(path) {
            return Ok(*known);
        }
        let directory = self
            .batch
            .tx
            .prepare_cached(
                "SELECT id, folder FROM mail_directory WHERE collection = ?1 AND path = ?2",
            )?
            .query_row((self.collection.id, path), |row| {
                Ok(DirectoryRow { id: row.get(0)?, folder: row.get(1)? })
            })?;
        self.directories.insert(path.to_vec(), directory);
        Ok(directory)
    }

    pub(super) fn put_directory(
        &mut self,
        path: &[u8],
        folder: &[u8],
        is_new: bool,
        state: &[u8],
    ) -> Result<(), ApplyError> {
        let tx = self.batch.tx;
        self.folder_directories.clear();
        tx.prepare_cached("INSERT OR IGNORE INTO mail_folder(collection, path) VALUES(?1, ?2)")?
            .execute((self.collection.id, folder))?;
        tx.prepare_cached(
            "INSERT INTO mail_directory(collection, folder, path, is_new, state)
             SELECT ?1, id, ?3, ?4, ?5 FROM mail_folder WHERE collection = ?1 AND path = ?2
             ON CONFLICT(collection, path) DO UPDATE SET state = excluded.state",
        )?
        .execute((self.collection.id, folder, path, is_new, state))?;
        self.batch.has_unnumbered_changes = true;
        Ok(())
    }

    pub(super) fn find_file(
        &self,
        directory: DirectoryRow,
        name: &[u8],
    ) -> Result<Option<KnownFile>, ApplyError> {
        Ok(self
            .batch
            .tx
            .prepare_cached(
                "SELECT item, rank, place FROM mail_file
                 WHERE directory = ?1 AND base = ?2 AND name = ?3",
            )?
            .query_row((directory.id, file_key(name), name), |row| {
                Ok(KnownFile { item: row.get(0)?, rank: row.get(1)?, place: row.get(2)? })
            })
            .optional()?)
    }

    /// Adds a file under a name that no file of the directory has.
    pub(super) fn insert_file(
        &mut self,
        directory: DirectoryRow,
        file: &MailFile,
        item: ItemRow,
        rank: Option<i64>,
    ) -> Result<(), ApplyError> {
        let [inode, size, modified, changed] = stored_state(file);
        // `INSERT .. SELECT` would keep a copy of each page, to take back a part of the statement.
        self.batch
            .tx
            .prepare_cached(
                "INSERT INTO mail_file VALUES(?1, ?2, (SELECT coalesce(max(place) + 1, 0)
                     FROM mail_file WHERE directory = ?1 AND base = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute((
                directory.id,
                file_key(&file.name),
                &file.name,
                inode,
                item,
                size,
                modified,
                changed,
                rank,
            ))?;
        if let Some(least) = self.least_ranks.get_mut(&item) {
            *least = (*least).into_iter().chain(rank).min();
        }
        Ok(())
    }

    /// Gives a file another name with the same key, and another state.
    pub(super) fn update_file(
        &mut self,
        directory: DirectoryRow,
        known: KnownFile,
        file: &MailFile,
        rank: Option<i64>,
    ) -> Result<(), ApplyError> {
        let [inode, size, modified, changed] = stored_state(file);
        // The key stays, and with it the index of items.
        self.batch
            .tx
            .prepare_cached(
                "UPDATE mail_file SET name = ?4, inode = ?5, size = ?6, modified = ?7,
                                      changed = ?8, rank = ?9
                 WHERE directory = ?1 AND base = ?2 AND place = ?3",
            )?
            .execute((
                directory.id,
                file_key(&file.name),
                known.place,
                &file.name,
                inode,
                size,
                modified,
                changed,
                rank,
            ))?;
        Ok(())
    }

    /// Gives a known file another state. Its message stays as it is.
    pub(super) fn set_file_state(&mut self, file: &MailFile) -> Result<(), ApplyError> {
        let directory = self.find_directory(&file.directory)?;
        if let Some(known) = self.find_file(directory, &file.name)? {
            self.update_file(directory, known, file, known.rank)?;
            self.batch.has_unnumbered_changes = true;
        }
        Ok(())
    }

    /// Gives a file another name, in another directory or in the same one.
    pub(super) fn move_file(
        &mut self,
        (from, from_name): (DirectoryRow, &[u8]),
        to: DirectoryRow,
        file: &MailFile,
        known: KnownFile,
    ) -> Result<(), ApplyError> {
        if from_name != file.name || from.id != to.id {
            // A file of the same message may have the name.
            self.delete_file_row(to, &file.name)?;
        }
        if from.id == to.id && file_key(from_name) == file_key(&file.name) {
            return self.update_file(to, known, file, known.rank);
        }
        self.delete_file_row(from, from_name)?;
        self.insert_file(to, file, known.item, known.rank)
    }

    pub(super) fn delete_file_row(
        &self,
        directory: DirectoryRow,
        name: &[u8],
    ) -> Result<(), ApplyError> {
        let sql = "DELETE FROM mail_file WHERE directory = ?1 AND base = ?2 AND name = ?3";
        let key = (directory.id, file_key(name), name);
        self.batch.tx.prepare_cached(sql)?.execute(key)?;
        Ok(())
    }
}

/// Returns the inode, the size and the times of a file as they are stored.
fn stored_state(file: &MailFile) -> [i64; 4] {
    let MailFileState { size, modified, changed } = file.state;
    [file.inode.cast_signed(), size.cast_signed(), modified, changed]
}
