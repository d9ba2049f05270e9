//! Backup and restore: copies a store in use, verifies the copy, and replaces a store with such a
//! copy.

use crate::commit_record::CommittedState;
use crate::connection::{ReadConnection, WriteConnection};
use crate::data_directory::DataDirectory;
use crate::database_copy::{TempCopy, copy_and_verify, create_for_stream, verify_content};
use crate::error::{Error, OutputError, Result, file_error_at, sqlite_error_at};
use crate::interrupted_restore::{self, PREVIOUS_COPY};
use crate::lock::LockFiles;
use crate::output_file::{FilePrivacy, OutputFile, OutputTarget};
use crate::pending_work;
use crate::read_transaction::ReadTransaction;
use crate::schema::{self, SchemaState};
use crate::staging_file::remove_with_companions;
use crate::store::{Store, StoreOptions};
use rusqlite::backup::StepResult;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The pages that a restore copies before it looks whether it was stopped: 16 MB.
const COPY_STEP_PAGES: i32 = 4 << 10;
/// The time that a restore waits for readers before it leaves the write-ahead log as it is.
const READER_PATIENCE: Duration = Duration::from_secs(2);
/// The pause before a copy asks again for a lock.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// The copy of the previous state of the store; `None` if there was no store.
    pub previous_copy: Option<PathBuf>,
    /// The number of items in the restored store.
    pub items: u64,
}

impl Store {
    /// Copies the store into one file while it is in use, verifies the copy, and then renames it: a
    /// file with that name is always complete. An older backup of that name is replaced, any other
    /// file is not. A pipe, a device or a stream receives the verified copy. Returns the size of
    /// the copy in bytes.
    ///
    /// # Errors
    /// [`Error::PurgePending`] if a purge is not finished: the copy would have the purged bytes.
    pub fn backup(&self, to: impl Into<OutputTarget>) -> Result<u64> {
        let to = to.into();
        let is_purging = pending_work::has_purge(&self.autocommit_read());
        if is_purging.map_err(sqlite_error_at(&self.path))? {
            return Err(Error::PurgePending { path: self.path.clone() });
        }
        let mut output = OutputFile::create(&self.directory, &to, FilePrivacy::Private)?;
        let Some(staged) = output.staged_path() else {
            let copy = create_for_stream(&self.directory, &to, |folder| {
                TempCopy::create_unnamed(&self.conn, &self.directory, folder, "backup")
            })?;
            copy.verify(&self.path)?;
            let written = std::io::copy(&mut copy.file(), &mut output);
            return Ok(written.map_err(|error| output.to_error(error))?);
        };
        // A store in use has a log, which is not that of another database.
        if output.replaces_content() {
            ensure_replaceable(output.path())?;
        }
        output.refuse_foreign_log()?;
        copy_and_verify(&self.conn, &self.path, staged)?;
        Ok(output.commit()?)
    }

    /// Replaces the content of the store by a backup, also for the processes that have it open; the
    /// previous state is copied first, after a purge that was interrupted is completed. Older
    /// cursors expire.
    pub fn restore(&mut self, from: &Path) -> Result<RestoreReport> {
        self.restore_unless_stopped(from, &AtomicBool::new(false))
    }

    fn restore_unless_stopped(&mut self, from: &Path, stop: &AtomicBool) -> Result<RestoreReport> {
        self.ensure_writable()?;
        self.finish_pending_purge()?;
        let staged = stage_backup(&self.directory, from)?;
        fail_if_stopped(stop)?;
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let before =
            TempCopy::create(&self.conn, &self.path, &self.directory, PREVIOUS_COPY, |_| Ok(()))?;
        before.verify(&self.path)?;
        fail_if_stopped(stop)?;
        // On the disk before the restore commits. It gets its final name afterwards, as it is the
        // copy of a previous state only then.
        let before = before.keep()?;
        let read_state = |conn: &ReadConnection| {
            CommittedState::read(&conn.autocommit_read()).map_err(sqlite_error_at(&self.path))
        };
        let (former, restored) = (read_state(&self.conn)?, read_state(&staged.conn)?);
        // If this process dies, either state may be that of the store.
        self.lock_files
            .announce_restore(&[&former, &restored])
            .map_err(file_error_at(&self.directory.notify_path()))?;
        let put = replace_content(&mut self.conn, &self.path, &staged.conn, stop);
        if let Err(error) = put {
            // Whether the restore happened decides about the copy. A failure leaves it to the next
            // writer.
            let _kept = interrupted_restore::sweep(&self.directory, &self.conn);
            let _unemptied = self.conn.empty_wal(READER_PATIENCE);
            return Err(error);
        }
        let before =
            interrupted_restore::name_previous_copy(&self.directory, &before).unwrap_or(before);
        drop(staged);
        let items = self.verify_restored().map_err(not_verified)?;
        self.extractor = self.restored_extractor().map_err(not_verified)?;
        self.lock_files.notify_commit(&restored);
        drop(lock);
        self.refresh().map_err(not_verified)?;
        Ok(RestoreReport { previous_copy: Some(before), items })
    }

    /// Returns an extractor for the locale of the restored content.
    fn restored_extractor(&self) -> Result<crate::Extractor> {
        let locale = crate::meta::read_locale(&self.conn.autocommit_read());
        let locale = locale.map_err(sqlite_error_at(&self.path))?;
        Ok(crate::Extractor::with_zones(&locale, self.extractor.zone_database().clone()))
    }

    /// Moves the restored content from the write-ahead log into the database, as far as readers
    /// allow it, and verifies what other processes read from now on. Returns the number of items.
    fn verify_restored(&self) -> Result<u64> {
        // A reader may keep the log in use; it is read then, too.
        let _in_use = self.conn.empty_wal(READER_PATIENCE);
        verify_and_count(&self.path)
    }
}

impl DataDirectory {
    /// Replaces a store by a backup, like [`Store::restore`], even if the store is damaged, has
    /// another version, or another program replaced one of its files: its files are then renamed,
    /// not copied.
    pub fn restore(&self, options: &StoreOptions, from: &Path) -> Result<RestoreReport> {
        self.restore_unless_stopped(options, from, &AtomicBool::new(false))
    }

    /// Makes a [restore](DataDirectory::restore). When `stop` is set before the restore has
    /// happened, it ends with [`Error::RestoreStopped`] and the store as it was.
    pub fn restore_unless_stopped(
        &self,
        options: &StoreOptions,
        from: &Path,
        stop: &AtomicBool,
    ) -> Result<RestoreReport> {
        let had_store = self.has_store();
        let restored = Store::open(self, options)
            .and_then(|mut store| store.restore_unless_stopped(from, stop));
        match restored {
            // The copy of the store that was made for the restore has nothing.
            Ok(report) if !had_store => {
                let is_needed = |copy: &PathBuf| !remove_if_empty(copy);
                let previous_copy = report.previous_copy.filter(is_needed);
                Ok(RestoreReport { previous_copy, ..report })
            }
            Err(
                Error::BatchesMissing { path, .. }
                | Error::StoreReplaced { path }
                | Error::StoreMissing { path }
                | Error::SchemaTooNew { path, .. }
                | Error::NoMigration { path, .. }
                | Error::DevelopmentSchema { path }
                | Error::ReadOnly { path, .. }
                | Error::NotAStore { path, .. },
            ) if path == self.database_path() => self.replace_damaged(options, from, stop),
            Err(error) if error.damaged_file() == Some(&self.database_path()) => {
                self.replace_damaged(options, from, stop)
            }
            restored => restored,
        }
    }

    /// Renames the files of a damaged store, and puts a backup in its place. Processes that have
    /// the store open see it when they open it again.
    fn replace_damaged(
        &self,
        options: &StoreOptions,
        from: &Path,
        stop: &AtomicBool,
    ) -> Result<RestoreReport> {
        let staged = stage_backup(self, from)?;
        let locks = LockFiles::open(self, options.requester.clone())?;
        let lock = locks.acquire()?;
        fail_if_stopped(stop)?;
        let before = interrupted_restore::replace_database(self, &locks, staged.into_staging())?;
        let items = verify_and_count(&self.database_path()).map_err(not_verified)?;
        lock.mark_clean();
        Ok(RestoreReport { previous_copy: before, items })
    }
}

/// Replaces the content of a store by that of a verified copy, in one transaction.
fn replace_content(
    store: &mut WriteConnection,
    path: &Path,
    staged: &ReadConnection,
    stop: &AtomicBool,
) -> Result<()> {
    let backup = store.begin_copy(staged).map_err(sqlite_error_at(path))?;
    loop {
        fail_if_stopped(stop)?;
        match backup.step(COPY_STEP_PAGES).map_err(sqlite_error_at(path))? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            _ => std::thread::sleep(BUSY_PAUSE),
        }
    }
}

/// Adds to an error that the restore was made. A damaged result is another matter: the backup is
/// put in its place again.
fn not_verified(error: Error) -> Error {
    match error.damaged_file() {
        Some(_) => error,
        None => Error::RestoreNotVerified { source: Box::new(error) },
    }
}

fn fail_if_stopped(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) { Err(Error::RestoreStopped) } else { Ok(()) }
}

/// Verifies a database as other processes see it, and returns the number of its items.
fn verify_and_count(path: &Path) -> Result<u64> {
    let conn = ReadConnection::open(path).map_err(sqlite_error_at(path))?;
    verify_content(&conn, path)?;
    count_items(&conn.autocommit_read()).map_err(sqlite_error_at(path))
}

/// Deletes a copy of a store without items. Returns whether it had none: another program may have
/// filled the store meanwhile.
fn remove_if_empty(copy: &Path) -> bool {
    let count = || {
        let conn = ReadConnection::open(copy)?;
        count_items(&conn.autocommit_read())
    };
    let is_empty = matches!(count(), Ok(0));
    if is_empty {
        let _left = remove_with_companions(copy);
    }
    is_empty
}

/// Refuses to replace a file that is no backup. A file in write-ahead mode is a store in use.
fn ensure_replaceable(to: &Path) -> Result<()> {
    let old = ReadConnection::open(to).map_err(sqlite_error_at(to))?;
    schema::read_schema_state(&old.autocommit_read(), to)?;
    if old.journal_mode().map_err(sqlite_error_at(to))? == "wal" {
        let source = std::io::Error::other("is a store in use, not a backup");
        return Err(OutputError::File { path: to.to_path_buf(), source }.into());
    }
    Ok(())
}

/// Copies and verifies a backup, migrates the copy to the current version, and gives it a new
/// epoch. The copy is verified after that.
fn stage_backup(directory: &DataDirectory, from: &Path) -> Result<TempCopy> {
    let source = ReadConnection::open(from).map_err(sqlite_error_at(from))?;
    let store_file = directory.store_file();
    let schema_state = schema::verify_version(&source.autocommit_read(), from, store_file)?;
    match schema_state {
        SchemaState::Empty => {
            return Err(Error::NotAStore { path: from.to_path_buf(), found: 0 });
        }
        SchemaState::NewerMinor(major, minor) => {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: from.to_path_buf(), version: minor });
        }
        SchemaState::Current => {
            schema::verify_schema(&source.autocommit_read(), from, store_file)?;
        }
        SchemaState::Older(..) => {}
    }
    verify_content(&source, from)?;
    let staged = TempCopy::create(&source, from, directory, "restore", |copy| {
        if let SchemaState::Older(major, minor) = schema_state {
            schema::migrate(copy, directory, (major, minor), schema::MIGRATIONS)?;
        }
        let set_epoch = || -> rusqlite::Result<()> {
            let tx = copy.begin_write()?;
            crate::meta::write_new_epoch(&tx)?;
            tx.commit()
        };
        set_epoch().map_err(sqlite_error_at(from))
    })?;
    staged.verify(staged.path())?;
    Ok(staged)
}

fn count_items(tx: &ReadTransaction<'_>) -> rusqlite::Result<u64> {
    tx.query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
}
