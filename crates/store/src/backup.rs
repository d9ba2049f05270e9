//! Backup and restore: copies a store in use, verifies the copy, and replaces a store with such a
//! copy.

use crate::commit_record::CommittedState;
use crate::connection::{ReadConnection, WriteConnection};
use crate::data_directory::DataDirectory;
use crate::database_copy::{TempCopy, copy_atomically, verify_content, with_suffix};
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use crate::lock::LockFiles;
use crate::pending_work;
use crate::read_transaction::ReadTransaction;
use crate::schema::{self, SchemaState};
use crate::store::{Store, StoreOptions};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// The copy of the previous state of the store.
    pub previous_copy: PathBuf,
    /// The number of items in the restored store.
    pub items: u64,
}

impl Store {
    /// Copies the store into one file while it is in use, verifies the copy, and then renames it: a
    /// file with that name is always complete. An older backup of that name is replaced, any other
    /// file is not. Returns the size of the copy in bytes.
    ///
    /// # Errors
    /// [`Error::PurgePending`] if a purge is not finished: the copy would have the purged bytes.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        if to.exists() {
            ensure_replaceable(to)?;
        }
        let is_purging = pending_work::has_purge(&self.autocommit_read());
        if is_purging.map_err(sqlite_error_at(&self.path))? {
            return Err(Error::PurgePending { path: self.path.clone() });
        }
        copy_atomically(&self.conn, &self.path, to)?;
        Ok(fs::metadata(to).map_err(file_error_at(to))?.len())
    }

    /// Replaces the content of the store by a backup, also for the processes that have it open; the
    /// previous state is copied first, after a purge that was interrupted is completed. Older
    /// cursors expire.
    pub fn restore(&mut self, from: &Path) -> Result<RestoreReport> {
        self.ensure_writable()?;
        self.finish_pending_purge()?;
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let staged = stage_backup(&self.directory, from)?;
        let before = self.directory.unused_copy_path("restore");
        copy_atomically(&self.conn, &self.path, &before)?;
        let read_state = |conn: &ReadConnection| {
            CommittedState::read(&conn.autocommit_read()).map_err(sqlite_error_at(&self.path))
        };
        let (former, restored) = (read_state(&self.conn)?, read_state(&staged.conn)?);
        // If this process dies, either state may be that of the store.
        self.lock_files.notify_commit(&[&former, &restored]);
        let mut put = || -> rusqlite::Result<u64> {
            let backup = self.conn.begin_copy(&staged.conn)?;
            backup.run_to_completion(i32::MAX, Duration::ZERO, None)?;
            drop(backup);
            count_items(&self.conn.autocommit_read())
        };
        let items = put().map_err(sqlite_error_at(&self.path))?;
        drop(staged);
        let locale = crate::meta::read_locale(&self.conn.autocommit_read())
            .map_err(sqlite_error_at(&self.path))?;
        self.extractor =
            crate::Extractor::with_zones(&locale, self.extractor.zone_database().clone());
        self.lock_files.notify_commit(&[&restored]);
        drop(lock);
        self.refresh()?;
        Ok(RestoreReport { previous_copy: before, items })
    }
}

impl DataDirectory {
    /// Replaces a store by a backup, like [`Store::restore`], even if the store is damaged or
    /// another program replaced one of its files: its files are then renamed, not copied.
    pub fn restore(&self, options: &StoreOptions, from: &Path) -> Result<RestoreReport> {
        let restored = Store::open(self.path(), options).and_then(|mut store| store.restore(from));
        match restored {
            Err(Error::BatchesMissing { path, .. } | Error::StoreReplaced { path })
                if path == self.database_path() =>
            {
                self.replace_damaged(options, from)
            }
            Err(error) if error.damaged_file() == Some(&self.database_path()) => {
                self.replace_damaged(options, from)
            }
            restored => restored,
        }
    }

    /// Renames the files of a damaged store, and puts a backup in its place. Processes that have
    /// the store open see it when they open it again.
    fn replace_damaged(&self, options: &StoreOptions, from: &Path) -> Result<RestoreReport> {
        let locks = LockFiles::open(self, options.requester.clone())?;
        let lock = locks.acquire()?;
        let staged = stage_backup(self, from)?;
        let items = count_items(&staged.conn.autocommit_read());
        let items = items.map_err(sqlite_error_at(&staged.path))?;
        let restored = CommittedState::read(&staged.conn.autocommit_read())
            .map_err(sqlite_error_at(&staged.path))?;
        let before = self.replace_database(&locks, &staged.path, &restored)?;
        lock.mark_clean();
        Ok(RestoreReport { previous_copy: before, items })
    }

    /// Puts a new file with this last state in the place of the database, and returns the name that
    /// the former file gets. The caller holds the write lock.
    pub(crate) fn replace_database(
        &self,
        locks: &LockFiles,
        new: &Path,
        state: &CommittedState,
    ) -> Result<PathBuf> {
        let (data, before) = (self.database_path(), self.unused_copy_path("damaged"));
        // A hard link first, so that a store exists at every moment; then the write-ahead log,
        // which may have data to be rescued and must not be read into the backup.
        fs::hard_link(&data, &before).map_err(file_error_at(&data))?;
        let wal = with_suffix(&data, "-wal");
        if wal.exists() {
            fs::rename(&wal, with_suffix(&before, "-wal")).map_err(file_error_at(&wal))?;
        }
        let _none = fs::remove_file(with_suffix(&data, "-shm"));
        // Before the rename: a replacement that was interrupted is repeated in any case.
        locks.notify_commit(&[state]);
        fs::rename(new, &data).map_err(file_error_at(&data))?;
        File::open(self.path())
            .and_then(|dir| dir.sync_all())
            .map_err(file_error_at(self.path()))?;
        Ok(before)
    }
}

/// Refuses to replace a file that is no backup. A file in write-ahead mode is a store in use,
/// perhaps this one.
fn ensure_replaceable(to: &Path) -> Result<()> {
    let old = ReadConnection::open(to).map_err(sqlite_error_at(to))?;
    schema::read_schema_state(&old.autocommit_read(), to)?;
    if old.journal_mode().map_err(sqlite_error_at(to))? == "wal" {
        return Err(file_error_at(to)(std::io::Error::other("is a store in use, not a backup")));
    }
    Ok(())
}

/// Copies and verifies a backup, migrates the copy to the current version, and gives it a new
/// epoch.
fn stage_backup(directory: &DataDirectory, from: &Path) -> Result<TempCopy> {
    let source = ReadConnection::open(from).map_err(sqlite_error_at(from))?;
    let schema_state = schema::read_schema_state(&source.autocommit_read(), from)?;
    schema::refuse_development_schema(&source.autocommit_read(), schema_state, from)?;
    match schema_state {
        SchemaState::Empty => {
            return Err(Error::NotAStore { path: from.to_path_buf(), found: 0 });
        }
        SchemaState::NewerMinor(major, minor) => {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: from.to_path_buf(), version: minor });
        }
        SchemaState::Current => schema::verify_schema(&source.autocommit_read(), from)?,
        SchemaState::Older(..) => {}
    }
    verify_content(&source, from)?;
    let path = directory.path().join("data.db.restore.partial");
    let _none = fs::remove_file(&path);
    copy_atomically(&source, from, &path)?;
    let conn = WriteConnection::open(&path).map_err(sqlite_error_at(&path))?;
    let staged = TempCopy { conn, path };
    if let SchemaState::Older(major, minor) = schema_state {
        schema::migrate(&staged.conn, directory, (major, minor), schema::MIGRATIONS)?;
    }
    let set_epoch = || -> rusqlite::Result<()> {
        let tx = staged.conn.begin_write()?;
        crate::meta::write_new_epoch(&tx)?;
        tx.commit()
    };
    set_epoch().map_err(sqlite_error_at(&staged.path))?;
    Ok(staged)
}

fn count_items(tx: &ReadTransaction<'_>) -> rusqlite::Result<u64> {
    tx.query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}
