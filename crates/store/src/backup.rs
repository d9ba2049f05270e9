//! Copies: an online backup that is verified before it gets its name, and the way back.

use crate::check::{Fault, integrity};
use crate::directory::Directory;
use crate::error::{Error, Result, at, file};
use crate::lock::Locks;
use crate::schema::{self, Standing};
use crate::store::{Options, Store, connect};
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a restore did.
#[derive(Debug, Clone)]
pub struct Restored {
    /// Where what was there before lies now.
    pub before: PathBuf,
    /// Items in the store now.
    pub items: u64,
}

impl Store {
    /// Copies the store into one file while it is in use, verifies the copy, and gives it its name last: there
    /// is never half a backup under that name. An older backup of that name is replaced; anything else is not.
    /// Returns the copy's size in bytes.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        if to.exists() {
            replaceable(to)?;
        }
        copy(&self.conn, &self.path, to)?;
        Ok(fs::metadata(to).map_err(file(to))?.len())
    }

    /// Puts a backup in the store's place, for all who have it open; what was there is copied aside first.
    /// Cursors of before expire.
    pub fn restore(&mut self, from: &Path) -> Result<Restored> {
        self.writable()?;
        let lock = self.locks.acquire()?;
        self.recover(&lock)?;
        let staged = staged(&self.directory, from)?;
        let before = self.directory.copy_before("restore");
        copy(&self.conn, &self.path, &before).map_err(|error| match error {
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
        let items = put().map_err(at(&self.path))?;
        drop(staged);
        let locale = crate::store::locale_of(&self.conn).map_err(at(&self.path))?;
        self.deriver = crate::Deriver::with_zones(&locale, self.deriver.zones().clone());
        let seq = crate::store::meta(&self.conn, "seq").map_err(at(&self.path))?;
        self.locks.ring(seq);
        drop(lock);
        self.refresh()?;
        Ok(Restored { before, items })
    }
}

impl Directory {
    /// Puts a backup in the place of a store, as [`Store::restore`] does, also where that store is damaged: its
    /// files are then moved aside as they are.
    pub fn restore(&self, options: &Options, from: &Path) -> Result<Restored> {
        let restored = Store::open(self.path(), options).and_then(|mut store| store.restore(from));
        match restored {
            Err(Error::Damaged { path, .. }) if path == self.data() => self.replace(from),
            restored => restored,
        }
    }

    /// Moves a damaged store aside and puts a backup in its place. Who has it open sees that at the next opening.
    fn replace(&self, from: &Path) -> Result<Restored> {
        let locks = Locks::open(self)?;
        let lock = locks.acquire()?;
        let staged = staged(self, from)?;
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0).map(i64::unsigned_abs);
        let items = staged.conn.query_row("SELECT count(*) FROM item", [], count);
        let items = items.map_err(at(&staged.path))?;
        let (data, before) = (self.data(), self.copy_before("damaged"));
        // A second name first, so that there is a store at every moment; then its write-ahead log, which may
        // hold what could still be saved from it and must not be read into the backup.
        fs::hard_link(&data, &before).map_err(file(&data))?;
        let wal = with_end(&data, "-wal");
        if wal.exists() {
            fs::rename(&wal, with_end(&before, "-wal")).map_err(file(&wal))?;
        }
        let _none = fs::remove_file(with_end(&data, "-shm"));
        fs::rename(&staged.path, &data).map_err(file(&data))?;
        File::open(self.path()).and_then(|dir| dir.sync_all()).map_err(file(self.path()))?;
        lock.verified();
        Ok(Restored { before, items })
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Refuses a file that is no backup. One in write-ahead mode is a store in use, perhaps this very one.
fn replaceable(to: &Path) -> Result<()> {
    let old = connect(to, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(at(to))?;
    schema::standing(&old, to)?;
    let mode: String =
        old.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(at(to))?;
    if mode == "wal" {
        return Err(file(to)(std::io::Error::other("is a store in use, not a backup")));
    }
    Ok(())
}

/// A copy in the data directory, for a while: it is removed when dropped.
pub(crate) struct Staged {
    pub(crate) conn: Connection,
    path: PathBuf,
}

impl Staged {
    /// A copy of a store as it is at this moment, whatever is wrong with it.
    pub(crate) fn of(conn: &Connection, directory: &Directory) -> Result<Staged> {
        let name = format!("check-{}.partial", std::process::id());
        let path = with_end(&directory.data(), &format!(".{name}"));
        let _none = fs::remove_file(&path);
        let conn = raw_copy(conn, &directory.data(), &path)?;
        Ok(Staged { conn, path })
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _left = fs::remove_file(&self.path);
    }
}

/// A verified copy of a backup, of the newest version, with an epoch of its own.
fn staged(directory: &Directory, from: &Path) -> Result<Staged> {
    let source = connect(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(at(from))?;
    let standing = schema::standing(&source, from)?;
    match standing {
        Standing::Empty => {
            return Err(Error::NotAStore { path: from.to_path_buf(), found: 0 });
        }
        Standing::NewerMinor(major, minor) => {
            let minor = format!("{major}.{minor}");
            return Err(Error::ReadOnly { path: from.to_path_buf(), minor });
        }
        Standing::Current | Standing::Older(..) => {}
    }
    verify(&source, from)?;
    let path = directory.path().join("data.db.restoring");
    let _none = fs::remove_file(&path);
    copy(&source, from, &path)?;
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut staged = Staged { conn: connect(&path, access).map_err(at(&path))?, path };
    if let Standing::Older(major, minor) = standing {
        schema::migrate(&mut staged.conn, directory, (major, minor), schema::MIGRATIONS)?;
    }
    staged
        .conn
        .execute("UPDATE meta SET value = lower(hex(randomblob(8))) WHERE key = 'epoch'", [])
        .map_err(at(&staged.path))?;
    Ok(staged)
}

fn verify(conn: &Connection, path: &Path) -> Result<()> {
    match integrity(conn).map_err(at(path))?.into_iter().next() {
        None => Ok(()),
        Some(Fault::Page(what)) => Err(Error::Damaged { path: path.to_path_buf(), what }),
        Some(other) => Err(Error::Damaged { path: path.to_path_buf(), what: other.to_string() }),
    }
}

/// Copies a database into one file: under another name first, verified, synced, then renamed.
pub(crate) fn copy(conn: &Connection, from: &Path, to: &Path) -> Result<()> {
    let partial = with_end(to, ".partial");
    let _none = fs::remove_file(&partial);
    let result = copy_to(conn, from, &partial).and_then(|()| {
        File::open(&partial).and_then(|copy| copy.sync_all()).map_err(file(&partial))?;
        fs::rename(&partial, to).map_err(file(to))?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(file(folder))
    });
    if result.is_err() {
        let _left = fs::remove_file(&partial);
    }
    result
}

fn copy_to(conn: &Connection, from: &Path, partial: &Path) -> Result<()> {
    verify(&raw_copy(conn, from, partial)?, partial)
}

fn raw_copy(conn: &Connection, from: &Path, partial: &Path) -> Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    // Only its owner may read a copy, from its first moment on.
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(partial)
        .map(drop)
        .map_err(file(partial))?;
    let mut target = connect(partial, access).map_err(at(partial))?;
    {
        let backup = Backup::new(conn, &mut target).map_err(at(from))?;
        // In one step: a copy in many begins again whenever somebody writes.
        backup.run_to_completion(i32::MAX, Duration::ZERO, None).map_err(at(partial))?;
    }
    // A single file, without a write-ahead log beside it.
    target.pragma_update(None, "journal_mode", "delete").map_err(at(partial))?;
    Ok(target)
}
