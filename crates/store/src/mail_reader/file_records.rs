//! The files of messages as the store knows them, and their directories and folders.
//!
//! Separate from `mail_reader`, which reads messages: a synchronisation compares these records with
//! the files that there are, and reads no message for it.

use super::MailReader;
use crate::error::Result;
use crate::mail::batch::{MailFile, MailFileState, file_key};
use crate::mail::columns::MailSet;
use crate::mail::conversions::unconverted_files;
use crate::mail_schema::OUTDATED_END_KEY;
use crate::meta::find_meta_number;
use larder_format::maildir_name::MaildirName;
use rusqlite::OptionalExtension as _;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A directory of a maildir, as it was last listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailDirectoryRecord {
    /// Its row.
    pub id: i64,
    /// The path below the root.
    pub path: Vec<u8>,
    /// The path of its folder.
    pub folder: Vec<u8>,
    /// Its state when it was listed; empty: no synchronisation has read it to the end.
    pub state: Vec<u8>,
}

/// A file of a directory, as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFileRecord {
    /// The name.
    pub name: Vec<u8>,
    /// The inode.
    pub inode: u64,
    /// The state.
    pub state: MailFileState,
}

impl MailReader<'_> {
    /// Returns the folders of all collections, also those that are gone, of which live views need
    /// the former messages: the collection's name, the path, and the set of messages.
    pub fn folders(&self) -> Result<Vec<(String, Vec<u8>, MailSet)>> {
        self.run(|tx| {
            let sql = "SELECT c.name, f.path, f.id FROM mail_folder f
                 JOIN collection c ON c.id = f.collection WHERE c.removed = 0
                 ORDER BY c.name, f.path";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map([], |row| {
                Ok((row.get(0)?, row.get(1)?, MailSet::Folder(row.get(2)?)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the paths of the folders that there are, each once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn present_folders(&self) -> Result<Vec<Vec<u8>>> {
        self.run(|tx| {
            let sql = "SELECT DISTINCT f.path FROM mail_folder f
                 JOIN collection c ON c.id = f.collection
                 WHERE c.removed = 0 AND f.id IN (SELECT folder FROM mail_directory)";
            let mut select = tx.prepare_cached(sql)?;
            let paths = select.query_map([], |row| row.get(0))?;
            Ok(paths.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns whether a collection has directories, and a synchronisation has read each of them to
    /// the end: it has a state.
    pub fn has_complete_directories(&self, collection: &str) -> Result<bool> {
        self.run(|tx| {
            let sql = "SELECT coalesce(min(length(state)), 0) > 0 FROM mail_directory
                 WHERE collection = (SELECT id FROM collection WHERE name = ?1 AND removed = 0)";
            Ok(tx.prepare_cached(sql)?.query_row([collection], |row| row.get(0))?)
        })
    }

    /// Returns the directories of a collection, by path.
    pub fn directories(&self, collection: &str) -> Result<Vec<MailDirectoryRecord>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT d.id, d.path, f.path, d.state FROM mail_directory d
                 JOIN mail_folder f ON f.id = d.folder
                 WHERE d.collection = (SELECT id FROM collection WHERE name = ?1 AND removed = 0)
                 ORDER BY d.path",
            )?;
            let rows = select.query_map([collection], |row| {
                Ok(MailDirectoryRecord {
                    id: row.get(0)?,
                    path: row.get(1)?,
                    folder: row.get(2)?,
                    state: row.get(3)?,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Passes the name of each file of a directory to `visit`, in no order.
    pub fn for_each_file_name(&self, directory: i64, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.run(|tx| {
            let sql = "SELECT name FROM mail_file WHERE directory = ?1";
            let mut select = tx.prepare_cached(sql)?;
            let mut rows = select.query([directory])?;
            while let Some(row) = rows.next()? {
                visit(row.get_ref(0)?.as_blob()?);
            }
            Ok(())
        })
    }

    /// Returns the files of a directory, in no order.
    pub fn files_in(&self, directory: i64) -> Result<Vec<MailFileRecord>> {
        let mut files = Vec::new();
        self.for_each_file(directory, &mut |name, inode, state| {
            files.push(MailFileRecord { name: name.to_vec(), inode, state });
        })?;
        Ok(files)
    }

    /// Passes the name, the inode and the state of each file of a directory to `visit`, in no
    /// order. It must not read files.
    pub fn for_each_file(
        &self,
        directory: i64,
        visit: &mut dyn FnMut(&[u8], u64, MailFileState),
    ) -> Result<()> {
        self.run(|tx| {
            let sql = "SELECT name, inode, size, modified, changed FROM mail_file
                 WHERE directory = ?1";
            let mut select = tx.prepare_cached(sql)?;
            let mut rows = select.query([directory])?;
            while let Some(row) = rows.next()? {
                let state = MailFileState {
                    size: row.get::<_, i64>(2)?.cast_unsigned(),
                    modified: row.get(3)?,
                    changed: row.get(4)?,
                };
                visit(row.get_ref(0)?.as_blob()?, row.get::<_, i64>(1)?.cast_unsigned(), state);
            }
            Ok(())
        })
    }

    /// Passes the files of a collection that must be read again to `visit`, and whether each is in
    /// a directory `new`: after a change of the rules these are all.
    pub fn for_each_expired_file(
        &self,
        collection: &str,
        visit: &mut dyn FnMut(MailFile, bool),
    ) -> Result<()> {
        self.run(|tx| {
            let outdated_end = find_meta_number(tx, OUTDATED_END_KEY)?.unwrap_or_default();
            // Without the names of the indexes and the order of the join, SQLite reads all files.
            let mut select = tx.prepare_cached(
                "SELECT d.path, f.name, f.inode, d.is_new
                 FROM (SELECT directory, name, inode FROM mail_file INDEXED BY mail_file_unread
                       WHERE rank IS NULL
                       UNION ALL
                       SELECT directory, name, inode FROM mail_file INDEXED BY mail_file_item
                       WHERE item < ?2 AND rank IS NOT NULL) f
                 CROSS JOIN mail_directory d ON d.id = f.directory
                 WHERE d.collection = (SELECT id FROM collection WHERE name = ?1 AND removed = 0)",
            )?;
            let mut rows = select.query((collection, outdated_end))?;
            while let Some(row) = rows.next()? {
                let (name, is_new): (Vec<u8>, bool) = (row.get(1)?, row.get(3)?);
                let file = MailFile {
                    directory: row.get(0)?,
                    inode: row.get::<_, i64>(2)?.cast_unsigned(),
                    flags: MaildirName::parse(&name).flags(is_new),
                    state: MailFileState::default(),
                    name,
                };
                visit(file, is_new);
            }
            Ok(())
        })
    }

    /// Returns the files of a collection with attachments that could not be converted, as directory
    /// and name.
    pub fn unconverted_files(&self, collection: &str) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        self.run(|tx| unconverted_files(tx, collection))
    }

    /// Returns the message of a file; `None`: the file is not known. Directories are named by their
    /// paths below the root of the maildir.
    pub fn find_file(
        &self,
        collection: &str,
        directory: &[u8],
        name: &[u8],
    ) -> Result<Option<u32>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT f.item FROM mail_file f JOIN mail_directory d ON d.id = f.directory
                 JOIN collection c ON c.id = d.collection
                 WHERE c.name = ?1 AND c.removed = 0 AND d.path = ?2 AND f.base = ?3
                   AND f.name = ?4",
            )?;
            let key = (collection, directory, file_key(name), name);
            Ok(select.query_row(key, |row| row.get(0)).optional()?)
        })
    }

    /// Returns the files of a message, as paths below the root of its maildir, with the name of its
    /// collection.
    pub fn message_files(&self, row: u32) -> Result<Vec<(String, PathBuf)>> {
        let files = self.located_files(row)?.into_iter();
        Ok(files.map(|(collection, path, _)| (collection, path)).collect())
    }

    /// Returns the paths of the folders that a message is in.
    pub fn message_folders(&self, row: u32) -> Result<Vec<Vec<u8>>> {
        self.run(|tx| {
            let sql = "SELECT DISTINCT o.path FROM mail_file f
                 JOIN mail_directory d ON d.id = f.directory
                 JOIN mail_folder o ON o.id = d.folder WHERE f.item = ?1 ORDER BY o.path";
            let mut select = tx.prepare_cached(sql)?;
            let rows = select.query_map([row], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the files of a message as [`MailReader::message_files`] does, each with its inode.
    pub fn located_files(&self, row: u32) -> Result<Vec<(String, PathBuf, u64)>> {
        self.run(|tx| {
            let mut select = tx.prepare_cached(
                "SELECT c.name, d.path, f.name, f.inode FROM mail_file f
                 JOIN mail_directory d ON d.id = f.directory
                 JOIN collection c ON c.id = d.collection WHERE f.item = ?1 ORDER BY d.path, f.name",
            )?;
            let rows = select.query_map([row], |row| {
                let directory = PathBuf::from(OsString::from_vec(row.get(1)?));
                let name = OsString::from_vec(row.get(2)?);
                let inode = row.get::<_, i64>(3)?.cast_unsigned();
                Ok((row.get(0)?, directory.join(name), inode))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Returns the number of files of a message.
    pub fn count_files(&self, row: u32) -> Result<u64> {
        self.run(|tx| {
            let sql = "SELECT count(*) FROM mail_file WHERE item = ?1";
            let count: u32 = tx.prepare_cached(sql)?.query_row([row], |row| row.get(0))?;
            Ok(u64::from(count))
        })
    }
}
