//! Rows of a salvaged store that do not match their checksums.
//!
//! Separate from `repair` because the checksums are compared before anything is repaired, and
//! written when everything is. A changed row of an item is made again from the item's bytes, where
//! its identity is right; the others are kept and named.

use super::SalvageLoss;
use super::changed_item::ChangedItem;
use super::repair::Repair;
use crate::damage_scan::is_handle_of_identity;
use crate::damaged_object::DamagedObject;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::row_checksum::{BATCH, CHECKED_TABLES, COLLECTION, COLLECTION_HISTORY, ITEM, OPERATION};
use crate::row_ids::{CollectionRow, ItemRow, OperationId};
use rusqlite::OptionalExtension as _;

impl Repair<'_> {
    /// Names the rows that do not match their checksums, and deletes those that are made again.
    pub(super) fn find_changed_rows(&mut self) -> DatabaseResult<()> {
        for row in ITEM.find_changed_rows(self.tx)? {
            self.delete_changed_item(ItemRow::from_number(row))?;
        }
        for row in COLLECTION.find_changed_rows(self.tx)? {
            let collection = self.collection_name(CollectionRow::from_number(row))?;
            self.losses.push(SalvageLoss::Changed(DamagedObject::Collection { collection }));
        }
        for until in COLLECTION_HISTORY.find_changed_rows(self.tx)? {
            self.losses.push(SalvageLoss::Changed(DamagedObject::FormerCollection { until }));
        }
        for number in OPERATION.find_changed_rows(self.tx)? {
            let operation = OperationId::from_number(number);
            self.losses.push(SalvageLoss::Changed(DamagedObject::Operation { operation }));
        }
        for seq in BATCH.find_changed_rows(self.tx)? {
            self.losses.push(SalvageLoss::Changed(DamagedObject::Batch { seq }));
        }
        Ok(())
    }

    fn delete_changed_item(&mut self, item: ItemRow) -> DatabaseResult<()> {
        let Some(found) = self.read_changed_item(item)? else { return Ok(()) };
        let (handle, collection) = (found.handle, found.collection_name.clone());
        if !found.has_identity {
            let object = DamagedObject::Identity { handle, collection };
            self.losses.push(SalvageLoss::Changed(object));
            return Ok(());
        }
        self.losses.push(SalvageLoss::Changed(DamagedObject::Item { handle, collection }));
        self.named_items.insert(item);
        self.changed_items.insert(item, found);
        self.tx.execute("DELETE FROM item WHERE id = ?1", [item])?;
        Ok(())
    }

    fn read_changed_item(&self, item: ItemRow) -> DatabaseResult<Option<ChangedItem>> {
        let sql = "SELECT i.handle, i.collection, coalesce(c.name, ''), i.seq, i.ordinal,
                          coalesce(c.handle_key, x''), i.uid, i.recurrence_id
                   FROM item i LEFT JOIN collection c ON c.id = i.collection WHERE i.id = ?1";
        let found = self.tx.query_row(sql, [item], |row| {
            let handle = Handle::from_bytes(row.get_ref(0)?.as_blob()?);
            let key = row.get_ref(5)?.as_blob()?;
            let (uid, recurrence_id) = (row.get_ref(6)?.as_str()?, row.get_ref(7)?.as_str()?);
            Ok(ChangedItem {
                handle,
                collection: row.get(1)?,
                collection_name: row.get(2)?,
                uid: uid.to_string(),
                recurrence_id: recurrence_id.to_string(),
                place: (row.get(3)?, row.get(4)?),
                has_identity: is_handle_of_identity(handle, key, uid, recurrence_id),
            })
        });
        Ok(found.optional()?)
    }

    /// Writes the checksums of the rows that the repair changed, and of those that it only named.
    pub(super) fn write_row_checksums(&self) -> DatabaseResult<()> {
        for table in CHECKED_TABLES {
            table.write_checksums(self.tx, "1", &[])?;
        }
        Ok(())
    }
}
