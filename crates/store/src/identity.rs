//! Finding an item by its UID, by way of its handle, which is made from it.
//!
//! An index of UIDs would cost every item some fifty bytes, and every import a random page, to say what the index of
//! handles says. Only where two UIDs of a collection share the first 64 bits of their hash does the second one have a
//! handle that cannot be made anew: those, which chance does not bring about but malice can, are in `collided`.

use crate::handle::Handle;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _};
use std::borrow::Cow;

/// A collection: its row, and what handles are made from.
#[derive(Debug, Clone)]
pub(crate) struct Of {
    pub(crate) id: i64,
    pub(crate) key: Vec<u8>,
}

/// The collection of this name, if there is one.
pub(crate) fn collection(conn: &Connection, name: &str) -> rusqlite::Result<Option<Of>> {
    conn.prepare_cached("SELECT id, key FROM collection WHERE name = ?1 AND removed = 0")?
        .query_row([name], |row| Ok(Of { id: row.get(0)?, key: row.get(1)? }))
        .optional()
}

/// What there is under a UID and a recurrence id.
pub(crate) enum Standing {
    /// The item in this row.
    Item(i64),
    /// Nothing, and this handle is free for it.
    Free(Handle),
    /// Nothing, and its first handle is another item's.
    Taken,
}

/// Finds items by their UIDs, many in a row.
pub(crate) struct Finder<'c> {
    conn: &'c Connection,
    select: CachedStatement<'c>,
    /// Is anything in `collided`? Asked when it matters first: what comes there later, the owner has put there.
    collisions: Option<bool>,
}

impl<'c> Finder<'c> {
    pub(crate) fn new(conn: &'c Connection) -> rusqlite::Result<Finder<'c>> {
        let select = conn.prepare_cached(
            "SELECT id, collection = ?2 AND uid = ?3 AND recurrence = ?4 FROM item WHERE handle = ?1",
        )?;
        Ok(Finder { conn, select, collisions: None })
    }

    /// What there is under this UID, and this recurrence id (empty: a master), in this collection.
    pub(crate) fn look(
        &mut self,
        of: &Of,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<Standing> {
        let handle = Handle::of(&of.key, uid, recurrence, 0);
        let found: Option<(i64, bool)> = self
            .select
            .query_row((handle.to_bytes(), of.id, uid, recurrence), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((row, true)) = found {
            return Ok(Standing::Item(row));
        }
        if let Some(row) = self.collided(of, uid, recurrence)? {
            return Ok(Standing::Item(row));
        }
        Ok(if found.is_some() { Standing::Taken } else { Standing::Free(handle) })
    }

    fn collided(&mut self, of: &Of, uid: &str, recurrence: &str) -> rusqlite::Result<Option<i64>> {
        let some = match self.collisions {
            Some(some) => some,
            None => self
                .conn
                .prepare_cached("SELECT EXISTS(SELECT 1 FROM collided)")?
                .query_row([], |row| row.get(0))?,
        };
        self.collisions = Some(some);
        if !some {
            return Ok(None);
        }
        self.conn
            .prepare_cached("SELECT item FROM collided WHERE collection = ?1 AND uid = ?2")?
            .query_row((of.id, collided(uid, recurrence)), |row| row.get(0))
            .optional()
    }

    /// An item has got another handle than its first one.
    pub(crate) fn has_collided(&mut self) {
        self.collisions = Some(true);
    }
}

/// The row of the item with this UID, and this recurrence id (empty: a master), in this collection.
pub(crate) fn row(
    conn: &Connection,
    of: &Of,
    uid: &str,
    recurrence: &str,
) -> rusqlite::Result<Option<i64>> {
    Ok(match Finder::new(conn)?.look(of, uid, recurrence)? {
        Standing::Item(row) => Some(row),
        Standing::Free(_) | Standing::Taken => None,
    })
}

/// As `collided.uid` has it: no UID and no recurrence id holds a NUL.
fn collided<'a>(uid: &'a str, recurrence: &str) -> Cow<'a, str> {
    match recurrence {
        "" => Cow::Borrowed(uid),
        _ => Cow::Owned(format!("{uid}\0{recurrence}")),
    }
}

/// A handle for a new item of this UID; noted where it is not the first choice.
pub(crate) fn give_handle(
    conn: &Connection,
    of: &Of,
    uid: &str,
    recurrence: &str,
    item: i64,
) -> rusqlite::Result<Handle> {
    let mut attempt = 0;
    loop {
        let handle = Handle::of(&of.key, uid, recurrence, attempt);
        let taken: Option<i64> = conn
            .prepare_cached("SELECT id FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], |row| row.get(0))
            .optional()?;
        if taken.is_none() {
            if attempt > 0 {
                let uid = collided(uid, recurrence);
                conn.execute("INSERT INTO collided VALUES(?1, ?2, ?3)", (of.id, uid, item))?;
            }
            return Ok(handle);
        }
        attempt += 1;
    }
}

/// An item is about to go.
pub(crate) fn forget(conn: &Connection, item: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM collided WHERE item = ?1")?.execute([item]).map(drop)
}
