//! What a reader sees: held still while it is looked at, told apart from what it sees later, and remembered as long as nobody
//! writes.
//!
//! It knows no items; reading those is in `items` and `reader`.

use crate::collection::{self, Known};
use crate::error::{Result, at};
use crate::index::Segment;
use crate::reader::Reader;
use crate::store::Meta;
use rusqlite::Connection;
use std::sync::{Arc, OnceLock};

/// What a reader sees, see [`Reader::moment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    reader: u64,
    data: i64,
}

/// What stays as it is as long as nobody writes.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// SQLite's own count of what others wrote.
    version: i64,
    /// What the store is known by until a restore replaces it.
    epoch: Arc<str>,
    /// What it says of itself.
    pub(crate) meta: Meta,
    /// All collections, by row.
    pub(crate) collections: Vec<Known>,
    /// The segments of the sets, once they were asked for: of those that are whole and of this program's making.
    pub(crate) text: OnceLock<Option<Vec<Segment>>>,
    pub(crate) sort: OnceLock<Option<Vec<Segment>>>,
}

impl Remembered {
    /// What there is to remember, in the snapshot in which SQLite's count is this.
    pub(crate) fn read(conn: &Connection, version: i64) -> rusqlite::Result<Remembered> {
        let meta = Meta::read(conn)?;
        Ok(Remembered {
            version,
            epoch: meta.text("epoch").into(),
            meta,
            collections: collection::all(conn)?,
            text: OnceLock::new(),
            sort: OnceLock::new(),
        })
    }
}

/// SQLite's count of what others wrote.
pub(crate) fn data_version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// While it lives, its reader sees the store as it was when the first of its calls was made, and each call costs less.
/// It keeps the write-ahead log from being cut back, so it must not live for longer than 200 ms, nor wait for anybody.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Snapshot<'a>(Option<&'a Connection>);

impl Snapshot<'_> {
    pub(crate) fn begin(conn: &Connection) -> rusqlite::Result<Snapshot<'_>> {
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(Snapshot(Some(conn)))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.0 {
            // Nothing was written, so there is nothing that ending could lose.
            let _ended = conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
}

impl Reader {
    /// Holds still what this reader sees. Within another snapshot of the same reader it is that one.
    pub fn snapshot(&self) -> Result<Snapshot<'_>> {
        self.hold().map_err(at(&self.path))
    }

    pub(crate) fn hold(&self) -> rusqlite::Result<Snapshot<'_>> {
        if !self.conn.is_autocommit() {
            return Ok(Snapshot(None));
        }
        self.version.set(None);
        Snapshot::begin(&self.conn)
    }

    /// SQLite's count of what others wrote; within a snapshot it stays as it is, and is asked once.
    fn version(&self) -> rusqlite::Result<i64> {
        if self.conn.is_autocommit() {
            return data_version(&self.conn);
        }
        if let Some(version) = self.version.get() {
            return Ok(version);
        }
        let version = data_version(&self.conn)?;
        self.version.set(Some(version));
        Ok(version)
    }

    /// What this reader sees: equal as long as nobody writes, and never equal to what another reader sees.
    pub fn moment(&self) -> Result<Moment> {
        let data = self.version().map_err(at(&self.path))?;
        Ok(Moment { reader: self.number, data })
    }

    /// What the store is known by until a restore replaces it: rows, batches and operations are numbered anew then.
    pub fn epoch(&self) -> Result<Arc<str>> {
        let run = || -> rusqlite::Result<Arc<str>> {
            let _snapshot = self.hold()?;
            Ok(Arc::clone(&self.remembered()?.epoch))
        };
        run().map_err(at(&self.path))
    }

    /// What is remembered, as of the snapshot in which this is called.
    pub(crate) fn remembered(&self) -> rusqlite::Result<Arc<Remembered>> {
        let version = self.version()?;
        if let Some(known) = self.remembered.borrow().as_ref()
            && known.version == version
        {
            return Ok(Arc::clone(known));
        }
        let known = Arc::new(Remembered::read(&self.conn, version)?);
        self.remembered.replace(Some(Arc::clone(&known)));
        Ok(known)
    }
}
