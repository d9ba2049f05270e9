//! Copies: an online backup that is verified before it gets its name, and the way back.

use crate::check::{Fault, check_integrity};
use crate::connection::open_connection;
use crate::data_directory::DataDirectory;
use crate::error::{Error, Result, file_error_at, sqlite_error_at};
use crate::lock::LockFiles;
use crate::schema::{self, SchemaState};
use crate::store::{Store, StoreOptions};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a restore did.
#[derive(Debug, Clone)]
pub struct RestoreReport {
    /// Where what was there before lies now.
    pub previous_copy: PathBuf,
    /// Items in the store now.
    pub items: u64,
}

impl Store {
    /// Copies the store into one file while it is in use, verifies the copy, and gives it its name
    /// last: there is never half a backup under that name. An older backup of that name is
    /// replaced; anything else is not. Returns the copy's size in bytes.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        if to.exists() {
            ensure_replaceable(to)?;
        }
        copy_atomically(&self.conn, &self.path, to)?;
        Ok(fs::metadata(to).map_err(file_error_at(to))?.len())
    }

    /// Puts a backup in the store's place, for all who have it open; what was there is copied aside
    /// first. Cursors of before expire.
    pub fn restore(&mut self, from: &Path) -> Result<RestoreReport> {
        self.ensure_writable()?;
        let lock = self.lock_files.acquire()?;
        self.verify_before_write(&lock)?;
        let staged = stage_backup(&self.directory, from)?;
        let before = self.directory.unused_copy_path("restore");
        copy_atomically(&self.conn, &self.path, &before).map_err(|error| match error {
            // It is the store that is damaged, not its copy.
            Error::Damaged { what, .. } => Error::Damaged { path: self.path.clone(), what },
            error => error,
        })?;
        let mut put = || -> rusqlite::Result<u64> {
            let backup = Backup::new(&staged.conn, &mut self.conn)?;
            backup.run_to_completion(i32::MAX, Duration::ZERO, None)?;
            drop(backup);
            self.conn
                .query_row("SELECT count(*) FROM item", [], |row| row.get::<_, i64>(0))
                .map(i64::unsigned_abs)
        };
        let items = put().map_err(sqlite_error_at(&self.path))?;
        drop(staged);
        let locale = crate::meta::read_locale(&self.conn).map_err(sqlite_error_at(&self.path))?;
        self.extractor =
            crate::Extractor::with_zones(&locale, self.extractor.zone_database().clone());
        let seq = crate::meta::read_meta_number(&self.conn, "last_seq")
            .map_err(sqlite_error_at(&self.path))?;
        self.lock_files.notify_commit(seq);
        drop(lock);
        self.refresh()?;
        Ok(RestoreReport { previous_copy: before, items })
    }
}

impl DataDirectory {
    /// Puts a backup in the place of a store, as [`Store::restore`] does, also where that store is
    /// damaged: its files are then moved aside as they are.
    pub fn restore(&self, options: &StoreOptions, from: &Path) -> Result<RestoreReport> {
        let restored = Store::open(self.path(), options).and_then(|mut store| store.restore(from));
        match restored {
            Err(Error::Damaged { path, .. }) if path == self.database_path() => {
                self.replace_damaged(from)
            }
            restored => restored,
        }
    }

    /// Moves a damaged store aside and puts a backup in its place. Who has it open sees that at the
    /// next opening.
    fn replace_damaged(&self, from: &Path) -> Result<RestoreReport> {
        let locks = LockFiles::open(self)?;
        let lock = locks.acquire()?;
        let staged = stage_backup(self, from)?;
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(i64::unsigned_abs);
        let items = staged.conn.query_row("SELECT count(*) FROM item", [], count);
        let items = items.map_err(sqlite_error_at(&staged.path))?;
        let (data, before) = (self.database_path(), self.unused_copy_path("damaged"));
        // A second name first, so that there is a store at every moment; then its write-ahead log,
        // which may hold what could still be saved from it and must not be read into the backup.
        fs::hard_link(&data, &before).map_err(file_error_at(&data))?;
        let wal = with_suffix(&data, "-wal");
        if wal.exists() {
            fs::rename(&wal, with_suffix(&before, "-wal")).map_err(file_error_at(&wal))?;
        }
        let _none = fs::remove_file(with_suffix(&data, "-shm"));
        fs::rename(&staged.path, &data).map_err(file_error_at(&data))?;
        File::open(self.path())
            .and_then(|dir| dir.sync_all())
            .map_err(file_error_at(self.path()))?;
        lock.mark_clean();
        Ok(RestoreReport { previous_copy: before, items })
    }
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses a file that is no backup. One in write-ahead mode is a store in use, perhaps this very
/// one.
fn ensure_replaceable(to: &Path) -> Result<()> {
    let old = open_connection(to, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite_error_at(to))?;
    schema::read_schema_state(&old, to)?;
    let mode: String = old
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .map_err(sqlite_error_at(to))?;
    if mode == "wal" {
        return Err(file_error_at(to)(std::io::Error::other("is a store in use, not a backup")));
    }
    Ok(())
}

/// A copy in the data directory, for a while: it is removed when dropped.
pub(crate) struct TempCopy {
    pub(crate) conn: Connection,
    path: PathBuf,
}

impl TempCopy {
    /// A copy of a store as it is at this moment, whatever is wrong with it.
    pub(crate) fn from_connection(
        conn: &Connection,
        directory: &DataDirectory,
    ) -> Result<TempCopy> {
        let name = format!("check-{}.partial", std::process::id());
        let path = with_suffix(&directory.database_path(), &format!(".{name}"));
        let _none = fs::remove_file(&path);
        let conn = copy_raw(conn, &directory.database_path(), &path)?;
        Ok(TempCopy { conn, path })
    }
}

impl Drop for TempCopy {
    fn drop(&mut self) {
        let _left = fs::remove_file(&self.path);
    }
}

/// A verified copy of a backup, of the newest version, with an epoch of its own.
fn stage_backup(directory: &DataDirectory, from: &Path) -> Result<TempCopy> {
    let source =
        open_connection(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite_error_at(from))?;
    let standing = schema::read_schema_state(&source, from)?;
    schema::refuse_development_schema(&source, standing, from)?;
    match standing {
        SchemaState::Empty => {
            return Err(Error::NotAStore { path: from.to_path_buf(), found: 0 });
        }
        SchemaState::NewerMinor(major, minor) => {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: from.to_path_buf(), version: minor });
        }
        SchemaState::Current | SchemaState::Older(..) => {}
    }
    verify_integrity(&source, from)?;
    let path = directory.path().join("data.db.restore.partial");
    let _none = fs::remove_file(&path);
    copy_atomically(&source, from, &path)?;
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut staged =
        TempCopy { conn: open_connection(&path, access).map_err(sqlite_error_at(&path))?, path };
    if let SchemaState::Older(major, minor) = standing {
        schema::migrate(&mut staged.conn, directory, (major, minor), schema::MIGRATIONS)?;
    }
    staged
        .conn
        .execute("UPDATE meta SET value = lower(hex(randomblob(8))) WHERE key = 'epoch'", [])
        .map_err(sqlite_error_at(&staged.path))?;
    Ok(staged)
}

fn verify_integrity(conn: &Connection, path: &Path) -> Result<()> {
    match check_integrity(conn).map_err(sqlite_error_at(path))?.into_iter().next() {
        None => Ok(()),
        Some(Fault::Page(what)) => Err(Error::Damaged { path: path.to_path_buf(), what }),
        Some(other) => Err(Error::Damaged { path: path.to_path_buf(), what: other.to_string() }),
    }
}

/// Copies a database into one file: under another name first, verified, synced, then renamed.
pub(crate) fn copy_atomically(conn: &Connection, from: &Path, to: &Path) -> Result<()> {
    let partial = with_suffix(to, ".partial");
    let _none = fs::remove_file(&partial);
    let result = copy_and_verify(conn, from, &partial).and_then(|()| {
        File::open(&partial).and_then(|copy| copy.sync_all()).map_err(file_error_at(&partial))?;
        fs::rename(&partial, to).map_err(file_error_at(to))?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(file_error_at(folder))
    });
    if result.is_err() {
        let _left = fs::remove_file(&partial);
    }
    result
}

fn copy_and_verify(conn: &Connection, from: &Path, partial: &Path) -> Result<()> {
    verify_integrity(&copy_raw(conn, from, partial)?, partial)
}

fn copy_raw(conn: &Connection, from: &Path, partial: &Path) -> Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    // Only its owner may read a copy, from its first moment on.
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(partial)
        .map(drop)
        .map_err(file_error_at(partial))?;
    let mut target = open_connection(partial, access).map_err(sqlite_error_at(partial))?;
    {
        let backup = Backup::new(conn, &mut target).map_err(sqlite_error_at(from))?;
        // In one step: a copy in many begins again whenever somebody writes.
        backup
            .run_to_completion(i32::MAX, Duration::ZERO, None)
            .map_err(sqlite_error_at(partial))?;
    }
    // A single file, without a write-ahead log beside it.
    target.pragma_update(None, "journal_mode", "delete").map_err(sqlite_error_at(partial))?;
    Ok(target)
}
