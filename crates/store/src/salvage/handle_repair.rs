//! The handles of salvaged items and former versions.
//!
//! Separate from `repair`, which makes the rows: handles follow from the rows and from the keys of
//! the collections.

use super::SalvageLoss;
use super::repair::Repair;
use crate::damage_scan::is_handle_of_identity;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::row_ids::{ItemHistoryRow, ItemRow};
use crate::uid_lookup::{self, CollectionKey};
use std::collections::BTreeMap;

impl Repair<'_> {
    /// Gives items whose handle does not match their UID and collection the right one.
    pub(super) fn complete_handles(&mut self) -> DatabaseResult<()> {
        self.tx
            .execute("DELETE FROM handle_collision WHERE item NOT IN (SELECT id FROM item)", [])?;
        let sql = "SELECT i.id, i.collection, c.handle_key, i.uid, i.recurrence_id, i.handle
                   FROM item i JOIN collection c ON c.id = i.collection
                   WHERE i.id NOT IN (SELECT item FROM handle_collision)";
        let mut wrong = Vec::new();
        {
            let mut select = self.tx.prepare_cached(sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let location = CollectionKey { id: row.get(1)?, handle_key: row.get(2)? };
                let (uid, recurrence_id): (String, String) = (row.get(3)?, row.get(4)?);
                let handle = Handle::from_bytes(row.get_ref(5)?.as_blob()?);
                if Handle::from_uid(&location.handle_key, &uid, &recurrence_id, 0) != handle {
                    wrong.push((row.get::<_, ItemRow>(0)?, handle, location, uid, recurrence_id));
                }
            }
        }
        let mut changed = BTreeMap::new();
        for (item, handle, location, uid, recurrence_id) in wrong {
            let new_handle =
                uid_lookup::allocate_handle(self.tx, &location, &uid, &recurrence_id, item)?;
            let sql = "UPDATE item SET handle = ?2 WHERE id = ?1";
            self.tx.execute(sql, (item, new_handle.to_bytes()))?;
            changed.insert(item, handle);
        }
        // The UID of an item that was made again may be another one, and so its handle.
        for item in &self.restored_items {
            changed.extend(self.copied.entries.item_handles.get(item).map(|old| (*item, *old)));
        }
        for (item, handle) in changed {
            let sql = "SELECT handle, collection FROM item WHERE id = ?1";
            let (new_handle, collection) = self.tx.query_row(sql, [item], |row| {
                Ok((Handle::from_bytes(row.get_ref(0)?.as_blob()?), row.get(1)?))
            })?;
            if new_handle != handle {
                let collection = self.collection_name(collection)?;
                self.losses.push(SalvageLoss::Identity { handle, new_handle, collection });
            }
        }
        Ok(())
    }

    /// Gives former versions in a collection with a new key the handle of their item, or a new one
    /// if the item was removed.
    pub(super) fn complete_version_handles(&mut self) -> DatabaseResult<()> {
        let sql = "SELECT f.id, f.uid, f.recurrence_id, i.handle FROM item_history f
                   LEFT JOIN item i ON i.id = f.item
                   WHERE f.collection = ?1 AND f.uid IS NOT NULL";
        for collection in &self.new_keys {
            let key = collection.to_number().to_be_bytes();
            let mut handles = Vec::new();
            let mut select = self.tx.prepare_cached(sql)?;
            let mut rows = select.query([collection])?;
            while let Some(row) = rows.next()? {
                let (version, uid): (ItemHistoryRow, String) = (row.get(0)?, row.get(1)?);
                let recurrence_id: Option<String> = row.get(2)?;
                let recurrence_id = recurrence_id.unwrap_or_default();
                let current = row.get_ref(3)?.as_blob_or_null()?.map(Handle::from_bytes);
                let own =
                    |handle: &Handle| is_handle_of_identity(*handle, &key, &uid, &recurrence_id);
                let first = || Handle::from_uid(&key, &uid, &recurrence_id, 0);
                handles.push((version, current.filter(own).unwrap_or_else(first)));
            }
            for (version, handle) in handles {
                let sql = "UPDATE item_history SET handle = ?2 WHERE id = ?1";
                self.tx.execute(sql, (version, handle.to_bytes()))?;
            }
        }
        Ok(())
    }
}
