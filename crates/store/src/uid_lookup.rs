//! Finding an item by its UID, by way of its handle, which is made from it.
//!
//! An index of UIDs would cost every item some fifty bytes, and every import a random page, to say
//! what the index of handles says. Only where two UIDs of a collection share the first 64 bits of
//! their hash does the second one have a handle that cannot be made anew: those, which chance does
//! not bring about but malice can, are in `collided`.

use crate::handle::Handle;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _};
use std::borrow::Cow;

/// A collection: its row, and what handles are made from.
#[derive(Debug, Clone)]
pub(crate) struct CollectionKey {
    pub(crate) id: i64,
    pub(crate) handle_key: Vec<u8>,
}

/// The collection of this name, if there is one.
pub(crate) fn find_collection(
    conn: &Connection,
    name: &str,
) -> rusqlite::Result<Option<CollectionKey>> {
    conn.prepare_cached("SELECT id, handle_key FROM collection WHERE name = ?1 AND removed = 0")?
        .query_row([name], |row| Ok(CollectionKey { id: row.get(0)?, handle_key: row.get(1)? }))
        .optional()
}

/// What there is under a UID and a recurrence id.
pub(crate) enum UidLookup {
    /// The item in this row.
    Item(i64),
    /// Nothing, and this handle is free for it.
    Free(Handle),
    /// Nothing, and its first handle is another item's.
    HandleTaken,
}

/// Finds items by their UIDs, many in a row.
pub(crate) struct UidFinder<'c> {
    conn: &'c Connection,
    select: CachedStatement<'c>,
    /// Is anything in `collided`? Asked when it matters first: what comes there later, the owner
    /// has put there.
    has_collisions: Option<bool>,
}

impl<'c> UidFinder<'c> {
    pub(crate) fn new(conn: &'c Connection) -> rusqlite::Result<UidFinder<'c>> {
        let select = conn.prepare_cached(
            "SELECT id, collection = ?2 AND uid = ?3 AND recurrence_id = ?4 FROM item WHERE handle = ?1",
        )?;
        Ok(UidFinder { conn, select, has_collisions: None })
    }

    /// What there is under this UID, and this recurrence id (empty: a master), in this collection.
    pub(crate) fn find(
        &mut self,
        of: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<UidLookup> {
        let handle = Handle::from_uid(&of.handle_key, uid, recurrence, 0);
        let found: Option<(i64, bool)> = self
            .select
            .query_row((handle.to_bytes(), of.id, uid, recurrence), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((row, true)) = found {
            return Ok(UidLookup::Item(row));
        }
        if let Some(row) = self.find_collision(of, uid, recurrence)? {
            return Ok(UidLookup::Item(row));
        }
        Ok(if found.is_some() { UidLookup::HandleTaken } else { UidLookup::Free(handle) })
    }

    fn find_collision(
        &mut self,
        of: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<Option<i64>> {
        let some = match self.has_collisions {
            Some(some) => some,
            None => self
                .conn
                .prepare_cached("SELECT EXISTS(SELECT 1 FROM handle_collision)")?
                .query_row([], |row| row.get(0))?,
        };
        self.has_collisions = Some(some);
        if !some {
            return Ok(None);
        }
        self.conn
            .prepare_cached(
                "SELECT item FROM handle_collision WHERE collection = ?1 AND uid_key = ?2",
            )?
            .query_row((of.id, collision_key(uid, recurrence)), |row| row.get(0))
            .optional()
    }

    /// An item has got another handle than its first one.
    pub(crate) fn record_collision(&mut self) {
        self.has_collisions = Some(true);
    }
}

/// The row of the item with this UID, and this recurrence id (empty: a master), in this collection.
pub(crate) fn find_row(
    conn: &Connection,
    of: &CollectionKey,
    uid: &str,
    recurrence: &str,
) -> rusqlite::Result<Option<i64>> {
    Ok(match UidFinder::new(conn)?.find(of, uid, recurrence)? {
        UidLookup::Item(row) => Some(row),
        UidLookup::Free(_) | UidLookup::HandleTaken => None,
    })
}

/// As `collided.uid` has it: no UID and no recurrence id holds a NUL.
fn collision_key<'a>(uid: &'a str, recurrence: &str) -> Cow<'a, str> {
    match recurrence {
        "" => Cow::Borrowed(uid),
        _ => Cow::Owned(format!("{uid}\0{recurrence}")),
    }
}

/// A handle for a new item of this UID; noted where it is not the first choice.
pub(crate) fn allocate_handle(
    conn: &Connection,
    of: &CollectionKey,
    uid: &str,
    recurrence: &str,
    item: i64,
) -> rusqlite::Result<Handle> {
    let mut attempt = 0;
    loop {
        let handle = Handle::from_uid(&of.handle_key, uid, recurrence, attempt);
        let taken: Option<i64> = conn
            .prepare_cached("SELECT id FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], |row| row.get(0))
            .optional()?;
        if taken.is_none() {
            if attempt > 0 {
                let uid = collision_key(uid, recurrence);
                conn.execute(
                    "INSERT INTO handle_collision VALUES(?1, ?2, ?3)",
                    (of.id, uid, item),
                )?;
            }
            return Ok(handle);
        }
        attempt += 1;
    }
}

/// An item is about to go.
pub(crate) fn delete_collision(conn: &Connection, item: i64) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM handle_collision WHERE item = ?1")?.execute([item]).map(drop)
}
