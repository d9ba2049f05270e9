//! Finding an item by its UID, through the handle that is made from the UID.
//!
//! An index of UIDs would cost about fifty bytes for each item, and a random page access for each
//! imported item, and would add nothing to the index of handles. Two UIDs of a collection can have
//! the same first 64 bits of their hash, but in practice only if someone constructs them. Then the
//! second item has another handle, and a row in `handle_collision`.

use crate::handle::Handle;
use crate::read_transaction::{ReadStatement, ReadTransaction};
use crate::row_ids::{CollectionRow, ItemRow};
use crate::write_transaction::WriteTransaction;
use rusqlite::OptionalExtension as _;
use std::borrow::Cow;

/// A collection: its row, and the key of the handles of its items.
#[derive(Debug, Clone)]
pub(crate) struct CollectionKey {
    pub(crate) id: CollectionRow,
    pub(crate) handle_key: Vec<u8>,
}

/// Returns the collection with this name; `None` if there is none.
pub(crate) fn find_collection(
    tx: &ReadTransaction<'_>,
    name: &str,
) -> rusqlite::Result<Option<CollectionKey>> {
    tx.prepare_cached("SELECT id, handle_key FROM collection WHERE name = ?1 AND removed = 0")?
        .query_row([name], |row| Ok(CollectionKey { id: row.get(0)?, handle_key: row.get(1)? }))
        .optional()
}

/// The result of a lookup by UID and recurrence-id.
pub(crate) enum UidLookup {
    /// The item has this row.
    Item(ItemRow),
    /// No item has the UID, and this handle is free for one.
    Free(Handle),
    /// No item has the UID, and another item has its first handle.
    HandleTaken,
}

/// Finds many items by their UIDs.
pub(crate) struct UidFinder<'c> {
    tx: &'c ReadTransaction<'c>,
    select: ReadStatement<'c>,
    /// Whether `handle_collision` has rows; read when first needed. The owner reports the rows that
    /// it adds later.
    has_collisions: Option<bool>,
}

impl<'c> UidFinder<'c> {
    pub(crate) fn new(tx: &'c ReadTransaction<'_>) -> rusqlite::Result<UidFinder<'c>> {
        let select = tx.prepare_cached(
            "SELECT id, collection = ?2 AND uid = ?3 AND recurrence_id = ?4 FROM item WHERE handle = ?1",
        )?;
        Ok(UidFinder { tx, select, has_collisions: None })
    }

    /// Looks up a UID with a recurrence-id (empty: a master) in a collection.
    pub(crate) fn find(
        &mut self,
        collection: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<UidLookup> {
        let handle = Handle::from_uid(&collection.handle_key, uid, recurrence, 0);
        let found: Option<(ItemRow, bool)> = self
            .select
            .query_row((handle.to_bytes(), collection.id, uid, recurrence), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((row, true)) = found {
            return Ok(UidLookup::Item(row));
        }
        if let Some(row) = self.find_collision(collection, uid, recurrence)? {
            return Ok(UidLookup::Item(row));
        }
        Ok(if found.is_some() { UidLookup::HandleTaken } else { UidLookup::Free(handle) })
    }

    fn find_collision(
        &mut self,
        collection: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<Option<ItemRow>> {
        let has_collisions = match self.has_collisions {
            Some(known) => known,
            None => self
                .tx
                .prepare_cached("SELECT EXISTS(SELECT 1 FROM handle_collision)")?
                .query_row([], |row| row.get(0))?,
        };
        self.has_collisions = Some(has_collisions);
        if !has_collisions {
            return Ok(None);
        }
        self.tx
            .prepare_cached(
                "SELECT item FROM handle_collision WHERE collection = ?1 AND uid_key = ?2",
            )?
            .query_row((collection.id, collision_key(uid, recurrence)), |row| row.get(0))
            .optional()
    }

    /// Notes that an item has another handle than its first one.
    pub(crate) fn record_collision(&mut self) {
        self.has_collisions = Some(true);
    }
}

/// Returns the row of the item with this UID and recurrence-id (empty: a master) in a collection.
pub(crate) fn find_row(
    tx: &ReadTransaction<'_>,
    collection: &CollectionKey,
    uid: &str,
    recurrence: &str,
) -> rusqlite::Result<Option<ItemRow>> {
    Ok(match UidFinder::new(tx)?.find(collection, uid, recurrence)? {
        UidLookup::Item(row) => Some(row),
        UidLookup::Free(_) | UidLookup::HandleTaken => None,
    })
}

/// Returns the key as in `handle_collision.uid_key`. No UID and no recurrence-id has a NUL.
fn collision_key<'a>(uid: &'a str, recurrence: &str) -> Cow<'a, str> {
    match recurrence {
        "" => Cow::Borrowed(uid),
        _ => Cow::Owned(format!("{uid}\0{recurrence}")),
    }
}

/// Returns a handle for a new item with this UID, and records it if it is not the first one.
pub(crate) fn allocate_handle(
    tx: &WriteTransaction<'_>,
    collection: &CollectionKey,
    uid: &str,
    recurrence: &str,
    item: ItemRow,
) -> rusqlite::Result<Handle> {
    let mut attempt = 0;
    loop {
        let handle = Handle::from_uid(&collection.handle_key, uid, recurrence, attempt);
        let taken: Option<ItemRow> = tx
            .prepare_cached("SELECT id FROM item WHERE handle = ?1")?
            .query_row([handle.to_bytes()], |row| row.get(0))
            .optional()?;
        if taken.is_none() {
            if attempt > 0 {
                let uid = collision_key(uid, recurrence);
                tx.execute(
                    "INSERT INTO handle_collision VALUES(?1, ?2, ?3)",
                    (collection.id, uid, item),
                )?;
            }
            return Ok(handle);
        }
        attempt += 1;
    }
}

/// Deletes the record of the handle of an item that is about to be deleted.
pub(crate) fn delete_collision(tx: &WriteTransaction<'_>, item: ItemRow) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM handle_collision WHERE item = ?1")?.execute([item]).map(drop)
}
