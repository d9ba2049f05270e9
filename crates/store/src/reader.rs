//! Reading: a read-only connection, and the narrow door through which queries pass.
//!
//! A reader never waits for a writer and never checkpoints. Each call is one short read transaction, so
//! a reader that sleeps between calls holds nothing up; long answers resume by key.

use crate::contact::Deriver;
use crate::derived::IndexSet;
use crate::directory::Directory;
use crate::error::{Error, Result, at, file};
use crate::handle::{Handle, HandlePrefix};
use crate::index::{self, Lookup, Named, Orders, Place};
use crate::store::{check_sqlite, connect, locale_of};
use crate::{Kind, Seq, schema};
use crate::{blob, identity};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, ToSql};
use std::path::{Path, PathBuf};

/// A store open for reading, in place.
#[derive(Debug)]
pub struct Reader {
    pub(crate) conn: Connection,
    pub(crate) path: PathBuf,
    pub(crate) deriver: Deriver,
}

/// An item without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemHead {
    /// Its row in this file: to ask for its bytes with, never to be shown or kept.
    pub row: i64,
    /// Its short name.
    pub handle: Handle,
    /// What it is.
    pub kind: Kind,
    /// The collection it is in.
    pub collection: String,
    /// Its UID in that collection.
    pub uid: String,
    /// True where the bytes do not name this UID themselves.
    pub derived_uid: bool,
    /// The batch that last changed it.
    pub seq: Seq,
}

/// A named set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Its row in this file.
    pub row: i64,
    /// Its name.
    pub name: String,
    /// What its items are.
    pub kind: Kind,
    /// How many items it holds.
    pub items: u64,
}

/// While it lives, its reader sees the store as it was when the first of its calls was made, and each call costs less.
/// It keeps the write-ahead log from being cut back, so it must not live for longer than 200 ms, nor wait for anybody.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Snapshot<'a>(Option<&'a Connection>);

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.0 {
            // Nothing was written, so there is nothing that ending could lose.
            let _ended = conn.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
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

/// The columns of an [`ItemHead`], for a query over `item i JOIN collection c`.
const HEAD: &str = "i.id, i.handle, i.kind, c.name, i.uid, i.derived_uid, i.seq";

fn head(row: &rusqlite::Row<'_>) -> rusqlite::Result<ItemHead> {
    Ok(ItemHead {
        row: row.get(0)?,
        handle: Handle::from_bytes(&row.get::<_, Vec<u8>>(1)?),
        kind: Kind::from_number(row.get(2)?).unwrap_or(Kind::Contact),
        collection: row.get(3)?,
        uid: row.get(4)?,
        derived_uid: row.get(5)?,
        seq: row.get(6)?,
    })
}

/// An order of items that is kept.
#[derive(Debug, Clone)]
pub struct Order {
    /// The number of one of the fields of [`crate::SORT_FIELDS`].
    pub field: u16,
    /// The rows of the collections whose items are in it.
    pub collections: Vec<i64>,
    /// From its end to its beginning.
    pub backwards: bool,
}

impl Order {
    fn orders(&self) -> Orders {
        Orders { field: self.field, collections: self.collections.clone() }
    }
}

/// What a look-up found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The items, in the order of their rows.
    pub items: Vec<Candidate>,
    /// How many entries of the index were read.
    pub read: u64,
}

/// An item that the index names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its row.
    pub row: i64,
    /// The row of its collection.
    pub collection: i64,
    /// The batch that last changed it.
    pub seq: Seq,
    /// It has what was looked up. Otherwise it has more text than is indexed, and may have it.
    pub sure: bool,
}

impl Reader {
    /// Opens the store in `dir`, which stays as it is.
    pub fn open(dir: &Path) -> Result<Reader> {
        check_sqlite()?;
        let directory = Directory::new(dir);
        directory.must_hold_store()?;
        let path = directory.data();
        // SQLite only says that it could not open the file; the system says why.
        std::fs::File::open(&path).map_err(file(&path))?;
        let conn = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(at(&path))?;
        if schema::standing(&conn, &path)? == schema::Standing::Empty {
            directory.must_not_be_emptied()?;
            return Err(Error::NoStore { dir: dir.to_path_buf() });
        }
        let locale = locale_of(&conn).map_err(at(&path))?;
        Ok(Reader { conn, path, deriver: Deriver::new(&locale) })
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

    /// Holds still what this reader sees. Within another snapshot of the same reader it is that one.
    pub fn snapshot(&self) -> Result<Snapshot<'_>> {
        self.hold().map_err(at(&self.path))
    }

    fn hold(&self) -> rusqlite::Result<Snapshot<'_>> {
        if !self.conn.is_autocommit() {
            return Ok(Snapshot(None));
        }
        self.conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(Snapshot(Some(&self.conn)))
    }

    /// Gives the items in these rows with their bytes to `each`, in the order of `rows` and without those that are
    /// gone, until it answers false. All within one read transaction: `each` must not wait for anybody.
    pub fn items(&self, rows: &[i64], each: &mut dyn FnMut(ItemHead, &[u8]) -> bool) -> Result<()> {
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.hold()?;
            // Rows that follow each other are read in one go.
            for run in rows.chunk_by(|a, b| a + 1 == *b) {
                let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
                if !self.range(*first, *last, each)? {
                    break;
                }
            }
            Ok(())
        };
        run().map_err(at(&self.path))
    }

    fn range(
        &self,
        first: i64,
        last: i64,
        each: &mut dyn FnMut(ItemHead, &[u8]) -> bool,
    ) -> rusqlite::Result<bool> {
        let mut select = self.conn.prepare_cached(concat!(
            "SELECT i.id, i.handle, i.kind, c.name, i.uid, i.derived_uid, i.seq, s.bytes, s.blob ",
            "FROM item i JOIN collection c ON c.id = i.collection JOIN source s ON s.item = i.id ",
            "WHERE i.id BETWEEN ?1 AND ?2 ORDER BY i.id"
        ))?;
        let mut rows = select.query([first, last])?;
        while let Some(row) = rows.next()? {
            let go_on = match row.get_ref(7)?.as_blob_or_null()? {
                Some(bytes) => each(head(row)?, bytes),
                None => each(head(row)?, &blob::must(&self.conn, row.get(0)?)?),
            };
            if !go_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What derives sort keys in this store's order.
    #[must_use]
    pub fn deriver(&self) -> &Deriver {
        &self.deriver
    }

    /// Is this index set whole, and of this program's making? Where it is not, scan.
    pub fn usable(&self, set: IndexSet) -> Result<bool> {
        set.usable(&self.conn, &self.deriver).map_err(at(&self.path))
    }

    /// The items that the inverted index names, in the order of their rows. `None`: it is not whole, or not of this
    /// program's making; scan. All within one read transaction.
    pub fn look_up(&self, lookup: &Lookup) -> Result<Option<Found>> {
        let run = || -> rusqlite::Result<Option<Found>> {
            let (tx, _snapshot) = (&self.conn, self.hold()?);
            if !IndexSet::Text.usable(tx, &self.deriver)? {
                return Ok(None);
            }
            let (named, read) = index::look_up(tx, lookup)?;
            let mut head = tx.prepare_cached("SELECT seq, collection FROM item WHERE id = ?1")?;
            let mut items = Vec::with_capacity(named.len());
            for Named { item, until, sure } in named {
                let mut rows = head.query([item])?;
                let Some(row) = rows.next()? else { continue };
                let seq: Seq = row.get(0)?;
                if seq <= until {
                    let sure = seq <= sure;
                    items.push(Candidate { row: item, collection: row.get(1)?, seq, sure });
                }
            }
            Ok(Some(Found { items, read }))
        };
        run().map_err(at(&self.path))
    }

    /// Places in the order by a field, of all items of these collections: `limit` at most, behind `after`, or before
    /// it if `backwards`. `None`: the order is not kept, or not of this program's making. All within one read
    /// transaction, without reading what lies between.
    pub fn places(
        &self,
        order: &Order,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Option<Vec<Place>>> {
        let run = || -> rusqlite::Result<Option<Vec<Place>>> {
            let (tx, _snapshot) = (&self.conn, self.hold()?);
            if !IndexSet::Sort.usable(tx, &self.deriver)? {
                return Ok(None);
            }
            let mut seq = tx.prepare_cached("SELECT seq FROM item WHERE id = ?1")?;
            let mut places = Vec::new();
            order.orders().walk(tx, after, order.backwards, &mut |place, until| {
                if places.len() >= limit {
                    return Ok(false);
                }
                let changed: Option<Seq> =
                    seq.query_row([place.row], |row| row.get(0)).optional()?;
                if changed.is_some_and(|changed| changed <= until) {
                    places.push(place);
                }
                Ok(true)
            })?;
            Ok(Some(places))
        };
        run().map_err(at(&self.path))
    }

    /// How many items of an order have a smaller sort key than this one, and how many there are; whatever lies before,
    /// it takes no longer. `None` as with [`Reader::places`].
    pub fn position(&self, order: &Order, key: &[u8]) -> Result<Option<(u64, u64)>> {
        let run = || -> rusqlite::Result<Option<(u64, u64)>> {
            let (tx, _snapshot) = (&self.conn, self.hold()?);
            if !IndexSet::Sort.usable(tx, &self.deriver)? {
                return Ok(None);
            }
            let orders = order.orders();
            Ok(Some((orders.before(tx, key)?, orders.total(tx)?)))
        };
        run().map_err(at(&self.path))
    }

    /// The rows of all collections, or of the one of this name, without counting their items.
    pub fn collection_rows(&self, name: Option<&str>) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM collection WHERE removed = 0 AND (?1 IS NULL OR name = ?1) ORDER BY name";
        let run = || -> rusqlite::Result<Vec<i64>> {
            self.conn.prepare_cached(sql)?.query_map([name], |row| row.get(0))?.collect()
        };
        run().map_err(at(&self.path))
    }

    /// All collections, by name.
    pub fn collections(&self) -> Result<Vec<Collection>> {
        let run = || -> rusqlite::Result<Vec<Collection>> {
            self.conn
                .prepare_cached(
                    "SELECT c.id, c.name, c.family,
                            (SELECT count(*) FROM item i WHERE i.collection = c.id)
                     FROM collection c WHERE c.removed = 0 ORDER BY c.name",
                )?
                .query_map([], |row| {
                    Ok(Collection {
                        row: row.get(0)?,
                        name: row.get(1)?,
                        kind: Kind::from_number(row.get(2)?).unwrap_or(Kind::Contact),
                        items: row.get::<_, i64>(3)?.unsigned_abs(),
                    })
                })?
                .collect()
        };
        run().map_err(at(&self.path))
    }

    /// The items that a beginning of a handle may mean, at most `limit`.
    pub fn by_handle(&self, prefix: HandlePrefix, limit: usize) -> Result<Vec<ItemHead>> {
        self.heads(
            &format!(
                "SELECT {HEAD} FROM item i JOIN collection c ON c.id = i.collection
                 WHERE i.handle BETWEEN ?1 AND ?2 ORDER BY i.handle LIMIT ?3"
            ),
            (prefix.first.to_bytes(), prefix.last.to_bytes(), limit as i64),
        )
    }

    /// The item of this UID in this collection, with its bytes: the shortest way to one item.
    pub fn get(&self, collection: &str, uid: &str) -> Result<Option<(ItemHead, Vec<u8>)>> {
        let mut found = None;
        let mut run = || -> rusqlite::Result<()> {
            let _snapshot = self.hold()?;
            let Some(of) = identity::collection(&self.conn, collection)? else { return Ok(()) };
            let Some(row) = identity::row(&self.conn, &of, uid)? else { return Ok(()) };
            self.range(row, row, &mut |head, bytes| {
                found = Some((head, bytes.to_vec()));
                false
            })?;
            Ok(())
        };
        run().map_err(at(&self.path))?;
        Ok(found)
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
                rows.extend(identity::row(&self.conn, &of, uid)?);
            }
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
        let sql = format!(
            "SELECT {HEAD} FROM item i JOIN collection c ON c.id = i.collection WHERE i.id = ?1"
        );
        Ok(self.heads(&sql, [row])?.pop())
    }

    /// Items of a collection in the order in which they came, `limit` at most, after row `after`: the step
    /// of an export.
    pub fn page(&self, collection: &Collection, after: i64, limit: usize) -> Result<Vec<ItemHead>> {
        // The plus keeps SQLite from sorting the whole collection for each page.
        self.heads(
            &format!(
                "SELECT {HEAD} FROM item i JOIN collection c ON c.id = i.collection
                 WHERE +i.collection = ?1 AND i.id > ?2 ORDER BY i.id LIMIT ?3"
            ),
            (collection.row, after, limit as i64),
        )
    }

    fn heads(&self, sql: &str, args: impl rusqlite::Params) -> Result<Vec<ItemHead>> {
        let run = || -> rusqlite::Result<Vec<ItemHead>> {
            self.conn.prepare_cached(sql)?.query_map(args, head)?.collect()
        };
        run().map_err(at(&self.path))
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
        locale_of(&self.conn).map_err(at(&self.path))
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
