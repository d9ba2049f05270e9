//! Reading: a read-only connection, and the narrow door through which queries pass.
//!
//! A reader never waits for a writer and never checkpoints. Each call is one short read transaction, so
//! a reader that sleeps between calls holds nothing up; long answers resume by key.

use crate::derived::IndexSet;
use crate::deriver::Deriver;
use crate::directory::Directory;
use crate::error::{Error, Result, at, file};
use crate::frame::{self, Frame};
use crate::handle::{Handle, HandlePrefix};
use crate::items::{HEAD, ItemHead, head};
use crate::schema::{self, Standing};
use crate::snapshot::{Remembered, Snapshot, data_version};
use crate::store::{check_sqlite, connect_unread, set_read_cache};
use crate::summary::Summary;
use crate::{Family, blob, identity, series};
use larder_format::component::{Component, Version};
use larder_time::zone::Zones;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, ToSql};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store open for reading, in place.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
    pub(crate) path: PathBuf,
    pub(crate) deriver: Deriver,
    /// No other reader of this process has it.
    pub(crate) number: u64,
    pub(crate) remembered: RefCell<Option<Arc<Remembered>>>,
    /// SQLite's count of what others wrote, in the snapshot that is held.
    pub(crate) version: Cell<Option<i64>>,
    /// The file is mapped into memory.
    pub(crate) mapped: Cell<bool>,
    /// Which file it is.
    file: Option<(u64, u64)>,
}

/// A named set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Its row in this file.
    pub row: i64,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub family: Family,
    /// How many items it holds.
    pub items: u64,
    /// How they are indexed.
    pub summary: Arc<Summary>,
}

/// What a collection says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its row in this file.
    pub row: i64,
    /// Its name.
    pub name: String,
    /// The lines that it has of its own, as they came, see [`Change::SetHead`](crate::Change::SetHead).
    pub head: Option<Vec<u8>>,
}

/// A value that is bound to a query's SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Integer(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A row of an answer, while it is being stepped over.
pub struct Row<'a>(&'a rusqlite::Row<'a>);

impl Row<'_> {
    /// A number; 0 where the column holds none.
    #[must_use]
    pub fn integer(&self, column: usize) -> i64 {
        self.0.get(column).unwrap_or_default()
    }

    /// A text; empty where the column holds none.
    #[must_use]
    pub fn text(&self, column: usize) -> String {
        self.0.get(column).unwrap_or_default()
    }

    /// Bytes; `None` where the column holds none.
    #[must_use]
    pub fn blob(&self, column: usize) -> Option<&[u8]> {
        self.0.get_ref(column).ok()?.as_blob_or_null().ok().flatten()
    }
}

/// Who reads so many items at once has the file mapped, and so many bytes of it: as many as SQLite maps of any.
const MAPPED_FROM: usize = 64;
const MAPPED: i64 = 0x7fff_0000;

fn which_file(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Readers that were opened.
static READERS: AtomicU64 = AtomicU64::new(0);

impl Reader {
    /// Opens the store in `dir`, which stays as it is; time zones are those that are built in.
    ///
    /// # Errors
    /// As [`Reader::open_with`].
    pub fn open(dir: &Path) -> Result<Reader> {
        Reader::open_with(dir, Zones::bundled())
    }

    /// Opens the store in `dir`, which stays as it is. Where its index of times was made with other zones, it is not used.
    ///
    /// # Errors
    /// [`Error::Older`] where an older version made it: who opens it for writing migrates it.
    pub fn open_with(dir: &Path, zones: Arc<Zones>) -> Result<Reader> {
        check_sqlite()?;
        let directory = Directory::new(dir);
        let path = directory.data();
        let conn = match connect_unread(&path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
            Ok(conn) => conn,
            Err(error) => {
                directory.must_hold_store()?;
                // SQLite only says that it could not open the file; the system says why.
                std::fs::File::open(&path).map_err(file(&path))?;
                return Err(at(&path)(error));
            }
        };
        // Where a connection is the last one, SQLite would try to empty the write-ahead log, which it may not.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(at(&path))?;
        let known = Reader::look(&conn, &directory)?;
        Ok(Reader {
            conn,
            path,
            deriver: Deriver::with_zones(known.meta.text("locale"), zones),
            number: READERS.fetch_add(1, Ordering::Relaxed),
            remembered: RefCell::new(Some(Arc::new(known))),
            version: Cell::new(None),
            mapped: Cell::new(false),
            file: which_file(&directory.data()),
        })
    }

    /// Is the file that this reader has open no longer the one at its place? Another was put there because it was damaged, or it was
    /// taken away. It has to be opened again, if it is there.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        which_file(&self.path) != self.file
    }

    /// Maps the file where so many items are going to be read: each lies in a page of its own, and a call of the system for each
    /// takes longer than what is done with it. To map it takes longer than to read few. Only what is in no write-ahead
    /// log is read there, and never written; SQLite maps anew what somebody else changed.
    pub(crate) fn prepare_for(&self, items: usize) {
        if items >= MAPPED_FROM && !self.mapped.replace(true) {
            // What is not mapped is read.
            let _unmapped = self.conn.pragma_update(None, "mmap_size", MAPPED);
        }
    }

    /// For who looks at the store after each batch: lets go of the file where it was mapped for an answer of many items. SQLite maps it
    /// anew with each change, and the system reads its tables of pages anew, which takes longer than to read the few pages
    /// that such a look needs.
    pub fn follow(&self) {
        if self.mapped.replace(false) {
            // What stays mapped is read all the same.
            let _mapped = self.conn.pragma_update(None, "mmap_size", 0);
        }
    }

    /// What is to be known of a store at its opening, in one transaction, which costs less than many.
    fn look(conn: &Connection, directory: &Directory) -> Result<Remembered> {
        let path = directory.data();
        let _snapshot = Snapshot::begin(conn).map_err(at(&path))?;
        // This begins it; the schema, which SQLite then reads for what comes next, would be a transaction of its own.
        let version = data_version(conn).map_err(at(&path))?;
        set_read_cache(conn).map_err(at(&path))?;
        let standing = schema::standing(conn, &path)?;
        if let Standing::Older(major, minor) = standing {
            return Err(Error::Older { path, major, minor });
        }
        if standing == Standing::Empty {
            directory.must_not_be_emptied()?;
            return Err(Error::NoStore { dir: directory.path().to_path_buf() });
        }
        Remembered::read(conn, version).map_err(at(&path))
    }

    /// Gives up what is held in memory for the sake of the next question, where none is expected soon.
    pub fn rest(&self) {
        self.remembered.replace(None);
        // What is not given up stays, as it was.
        let _kept = self.conn.execute_batch("PRAGMA shrink_memory");
    }

    /// Runs one SELECT and gives each row to `each` until that answers false. Returns how many rows were
    /// given. The read transaction ends with the call: `each` must not wait for anybody.
    pub fn rows(
        &self,
        sql: &str,
        args: &[Value],
        each: &mut dyn FnMut(&Row<'_>) -> bool,
    ) -> Result<u64> {
        let mut run = || -> rusqlite::Result<u64> {
            let mut select = self.conn.prepare_cached(sql)?;
            let mut rows = select.query(rusqlite::params_from_iter(args))?;
            let mut given = 0;
            while let Some(row) = rows.next()? {
                given += 1;
                if !each(&Row(row)) {
                    break;
                }
            }
            Ok(given)
        };
        run().map_err(at(&self.path))
    }

    /// What derives sort keys in this store's order.
    #[must_use]
    pub fn deriver(&self) -> &Deriver {
        &self.deriver
    }

    /// Is this index set whole, and of this program's making? Where it is not, scan.
    pub fn usable(&self, set: IndexSet) -> Result<bool> {
        let run = || -> rusqlite::Result<bool> {
            let _snapshot = self.hold()?;
            Ok(set.usable(&self.remembered()?.meta, &self.deriver))
        };
        run().map_err(at(&self.path))
    }

    /// The rows of all collections, or of the one of this name, without counting their items.
    pub fn collection_rows(&self, name: Option<&str>) -> Result<Vec<i64>> {
        let run = || -> rusqlite::Result<Vec<i64>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            let asked = known.collections.iter();
            let mut asked: Vec<_> =
                asked.filter(|known| name.is_none_or(|name| *known.name == *name)).collect();
            asked.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(asked.into_iter().map(|known| known.of.id).collect())
        };
        run().map_err(at(&self.path))
    }

    /// The rows of all collections, with what each has an index of. For what is looked up next that holds within the
    /// same [`Reader::snapshot`].
    pub fn summaries(&self) -> Result<Vec<(i64, Arc<Summary>)>> {
        let run = || -> rusqlite::Result<Vec<(i64, Arc<Summary>)>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            let summaries = known.collections.iter();
            Ok(summaries.map(|known| (known.of.id, Arc::clone(&known.summary))).collect())
        };
        run().map_err(at(&self.path))
    }

    /// The rows and names of all collections, by row.
    pub fn collection_names(&self) -> Result<Vec<(i64, Arc<str>)>> {
        let run = || -> rusqlite::Result<Vec<(i64, Arc<str>)>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            Ok(known.collections.iter().map(|of| (of.of.id, Arc::clone(&of.name))).collect())
        };
        run().map_err(at(&self.path))
    }

    /// All collections, by name.
    pub fn collections(&self) -> Result<Vec<Collection>> {
        let run = || -> rusqlite::Result<Vec<Collection>> {
            self.conn
                .prepare_cached(
                    "SELECT c.id, c.name, c.family,
                            (SELECT count(*) FROM item i WHERE i.collection = c.id), c.summary
                     FROM collection c WHERE c.removed = 0 ORDER BY c.name",
                )?
                .query_map([], |row| {
                    let family = Family::of_number(row.get(2)?);
                    Ok(Collection {
                        row: row.get(0)?,
                        name: row.get(1)?,
                        family,
                        items: row.get::<_, i64>(3)?.unsigned_abs(),
                        summary: Summary::of_stored(row.get_ref(4)?.as_str()?, family),
                    })
                })?
                .collect()
        };
        run().map_err(at(&self.path))
    }

    /// What the collections of a family say of themselves, in the order in which they were made. No item is counted.
    pub fn said(&self, family: Family) -> Result<Vec<Said>> {
        let sql =
            "SELECT id, name, head FROM collection WHERE removed = 0 AND family = ?1 ORDER BY id";
        let run = || -> rusqlite::Result<Vec<Said>> {
            let said = |row: &rusqlite::Row<'_>| {
                Ok(Said { row: row.get(0)?, name: row.get(1)?, head: row.get(2)? })
            };
            self.conn.prepare_cached(sql)?.query_map([family as i64], said)?.collect()
        };
        run().map_err(at(&self.path))
    }

    /// The items that a beginning of a handle may mean, at most `limit`.
    pub fn by_handle(&self, prefix: HandlePrefix, limit: usize) -> Result<Vec<ItemHead>> {
        self.heads(
            &format!(
                "SELECT {HEAD} FROM item i
                 WHERE i.handle BETWEEN ?1 AND ?2 ORDER BY i.handle LIMIT ?3"
            ),
            (prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64),
        )
    }

    /// The items of this UID, in one collection or in any.
    pub fn by_uid(&self, collection: Option<&str>, uid: &str) -> Result<Vec<ItemHead>> {
        let _snapshot = self.snapshot()?;
        let run = || -> rusqlite::Result<Vec<i64>> {
            let of = self
                .conn
                .prepare_cached(
                    "SELECT id, key FROM collection
                     WHERE removed = 0 AND (?1 IS NULL OR name = ?1) ORDER BY name",
                )?
                .query_map([collection], |row| {
                    Ok(identity::Of { id: row.get(0)?, key: row.get(1)? })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut rows = Vec::new();
            for of in of {
                rows.extend(identity::row(&self.conn, &of, uid, "")?);
            }
            Ok(rows)
        };
        let mut found = Vec::new();
        for row in run().map_err(at(&self.path))? {
            found.extend(self.by_row(row)?);
        }
        Ok(found)
    }

    /// All items of one UID in the collection of an item: the master, where there is one, and then the detached occurrences.
    pub fn series_of(&self, head: &ItemHead) -> Result<Vec<ItemHead>> {
        self.series(&head.collection, &head.uid)
    }

    /// The same of a UID in a collection.
    pub fn series(&self, collection: &str, uid: &str) -> Result<Vec<ItemHead>> {
        let _snapshot = self.snapshot()?;
        let run = || -> rusqlite::Result<Vec<i64>> {
            let of = identity::collection(&self.conn, collection)?;
            let Some(of) = of else { return Ok(Vec::new()) };
            let mut rows: Vec<i64> = identity::row(&self.conn, &of, uid, "")?.into_iter().collect();
            let detached = series::detached(&self.conn, of.id, uid)?;
            rows.extend(detached.into_iter().map(|(row, _)| row));
            Ok(rows)
        };
        let mut found = Vec::new();
        for row in run().map_err(at(&self.path))? {
            found.extend(self.by_row(row)?);
        }
        Ok(found)
    }

    /// The item in this row, if it is there still.
    pub fn by_row(&self, row: i64) -> Result<Option<ItemHead>> {
        let sql = format!("SELECT {HEAD} FROM item i WHERE i.id = ?1");
        Ok(self.heads(&sql, [row])?.pop())
    }

    /// Items of a collection in the order in which they came, `limit` at most, after row `after`: the step
    /// of an export.
    pub fn page(&self, collection: &Collection, after: i64, limit: usize) -> Result<Vec<ItemHead>> {
        // The plus keeps SQLite from sorting the whole collection for each page.
        self.heads(
            &format!(
                "SELECT {HEAD} FROM item i
                 WHERE +i.collection = ?1 AND i.id > ?2 ORDER BY i.id LIMIT ?3"
            ),
            (collection.row, after, limit as i64),
        )
    }

    fn heads(&self, sql: &str, args: impl rusqlite::Params) -> Result<Vec<ItemHead>> {
        let run = || -> rusqlite::Result<Vec<ItemHead>> {
            let _snapshot = self.hold()?;
            let known = self.remembered()?;
            let mut select = self.conn.prepare_cached(sql)?;
            select.query_map(args, |row| head(row, &known.collections))?.collect()
        };
        run().map_err(at(&self.path))
    }

    /// What the calendar around an item says that the item needs.
    pub fn frame(&self, row: i64) -> Result<Option<Arc<Frame>>> {
        frame::read(&self.conn, row).map_err(at(&self.path))
    }

    /// Takes an item of a calendar apart, as one of its version of the format.
    #[must_use]
    pub fn component<'b>(&self, head: &ItemHead, bytes: &'b [u8]) -> Component<'b> {
        let is_1 = |row| frame::is_version_1(&self.conn, row).unwrap_or_default();
        let version = if head.frame.is_some_and(is_1) { Version::V1_0 } else { Version::V2_0 };
        Component::parse_as(bytes, version)
    }

    /// The frames of a collection's items, each once; `None`: some have none.
    pub fn frames(&self, collection: &Collection) -> Result<Vec<Option<i64>>> {
        let sql = "SELECT DISTINCT frame FROM item WHERE collection = ?1 ORDER BY frame";
        let run = || -> rusqlite::Result<Vec<Option<i64>>> {
            self.conn.prepare_cached(sql)?.query_map([collection.row], |row| row.get(0))?.collect()
        };
        run().map_err(at(&self.path))
    }

    /// The lines that a calendar has of its own, as they came.
    pub fn head(&self, collection: &Collection) -> Result<Option<Vec<u8>>> {
        self.conn
            .prepare_cached("SELECT head FROM collection WHERE id = ?1")
            .and_then(|mut select| select.query_row([collection.row], |row| row.get(0)).optional())
            .map(Option::flatten)
            .map_err(at(&self.path))
    }

    /// The bytes of the item in this row, as they came.
    pub fn source(&self, row: i64) -> Result<Option<Vec<u8>>> {
        blob::source(&self.conn, row).map_err(at(&self.path))
    }

    /// How many letters of this handle name it without doubt, eight at least.
    pub fn letters(&self, handle: Handle) -> Result<usize> {
        let full = handle.to_string();
        for letters in 8..full.len() {
            let Some(prefix) = HandlePrefix::parse(&full[..letters]) else { break };
            let run = || -> rusqlite::Result<i64> {
                self.conn
                    .prepare_cached(
                        "SELECT count(*) FROM
                           (SELECT 1 FROM item WHERE handle BETWEEN ?1 AND ?2 LIMIT 2)",
                    )?
                    .query_row((prefix.first.to_bytes(), prefix.last.to_bytes()), |row| row.get(0))
            };
            if run().map_err(at(&self.path))? <= 1 {
                return Ok(letters);
            }
        }
        Ok(full.len())
    }

    /// The store's locale.
    pub fn locale(&self) -> Result<String> {
        self.meta_text("locale")
    }

    /// Single values of `meta` as text, for messages.
    pub(crate) fn meta_text(&self, key: &str) -> Result<String> {
        self.conn
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map(Option::unwrap_or_default)
            .map_err(at(&self.path))
    }
}
