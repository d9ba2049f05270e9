//! Comparing everything that has a checksum with it.
//!
//! Separate from `checksum`, which compares one object while it is read, and from `check`, because
//! copies are verified too.

use crate::Kind;
use crate::checksum::Checksum;
use crate::damaged_object::DamagedObject;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::{
    BATCH, COLLECTION, COLLECTION_HISTORY, CheckedTable, ITEM, ITEM_HISTORY, OPERATION,
};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow, OperationId};
use crate::stored_version::StoredVersion;
use crate::{calendar_context_table, meta};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Handles of a UID that are tried: more UIDs of a collection never have the same first handle.
const MAX_HANDLE_ATTEMPTS: u32 = 16;

/// The damage of a store.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    /// The damaged objects.
    pub(crate) objects: Vec<DamagedObject>,
    /// The items of which damage is known, and the other items whose schedules depend on them.
    pub(crate) affected_items: HashSet<ItemRow>,
}

/// Compares all objects with their checksums. A store of an older version, which has none, has no
/// damage that this would find.
pub(crate) fn find_damage(tx: &ReadTransaction<'_>) -> DatabaseResult<Damage> {
    let sql = "SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'checksum'";
    if tx.query_row(sql, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Damage::default());
    }
    let mut scan = DamageScan { tx, collections: read_collections(tx)?, damage: Damage::default() };
    scan.scan_blobs()?;
    scan.scan_items()?;
    scan.scan_versions()?;
    scan.scan_calendar_contexts()?;
    scan.scan_collections()?;
    scan.scan_operations()?;
    scan.damage.objects.extend(meta::find_damaged_values(tx)?);
    scan.add_dependent_items()?;
    Ok(scan.damage)
}

/// The names of the collections, and the keys of their handles.
type HandleKeys = BTreeMap<CollectionRow, (String, Vec<u8>)>;

fn read_collections(tx: &ReadTransaction<'_>) -> DatabaseResult<HandleKeys> {
    let mut select = tx.prepare_cached("SELECT id, name, handle_key FROM collection")?;
    let (mut rows, mut names) = (select.query([])?, HandleKeys::new());
    while let Some(row) = rows.next()? {
        names.insert(row.get(0)?, (text_at(row, 1), bytes_at(row, 2).unwrap_or_default().into()));
    }
    Ok(names)
}

struct DamageScan<'a> {
    tx: &'a ReadTransaction<'a>,
    collections: HandleKeys,
    damage: Damage,
}

impl DamageScan<'_> {
    fn collection_name(&self, row: CollectionRow) -> String {
        self.collections.get(&row).map(|(name, _)| name.clone()).unwrap_or_default()
    }

    fn scan_blobs(&mut self) -> DatabaseResult<()> {
        let mut select = self.tx.prepare_cached("SELECT hash, bytes FROM blob")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let hash = bytes_at(row, 0).unwrap_or_default();
            let is_sound =
                bytes_at(row, 1).is_some_and(|bytes| Sha256::digest(bytes).as_slice() == hash);
            if !is_sound {
                let hash_prefix = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                self.damage.objects.push(DamagedObject::Blob { hash_prefix });
            }
        }
        Ok(())
    }

    fn scan_items(&mut self) -> DatabaseResult<()> {
        let changed_rows = self.find_changed_rows(&ITEM)?;
        let sql = "SELECT i.id, i.handle, i.collection, i.uid, i.recurrence_id,
                          coalesce(s.bytes, b.bytes), s.checksum, i.kind
                   FROM item i LEFT JOIN source_bytes s ON s.item = i.id
                   LEFT JOIN blob b ON b.hash = s.blob_hash ORDER BY i.id";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let item: ItemRow = row.get(0)?;
            let handle = Handle::from_bytes(bytes_at(row, 1).unwrap_or_default());
            let collection: CollectionRow = row.get(2)?;
            // The bytes of a message are in the files of a maildir, those of a commit in git.
            let is_elsewhere = Kind::from_number(row.get(7)?).is_some_and(Kind::has_locator);
            let is_sound = is_elsewhere
                || bytes_at(row, 5).is_some_and(|bytes| {
                    checksum_at(row, 6) == Some(Checksum::from_item(item, bytes))
                });
            let has_identity =
                self.is_handle_of(handle, collection, &text_at(row, 3), &text_at(row, 4));
            // A wrong identity has an object of its own.
            let is_row_changed = has_identity && changed_rows.contains(&item.to_number());
            if !is_sound || is_row_changed {
                let collection = self.collection_name(collection);
                self.damage.objects.push(DamagedObject::Item { handle, collection });
                self.damage.affected_items.insert(item);
            }
            if !has_identity {
                let collection = self.collection_name(collection);
                self.damage.objects.push(DamagedObject::Identity { handle, collection });
                self.damage.affected_items.insert(item);
            }
        }
        Ok(())
    }

    /// Returns whether a handle is one of those that the identity of an item gives.
    fn is_handle_of(
        &self,
        handle: Handle,
        collection: CollectionRow,
        uid: &str,
        recurrence_id: &str,
    ) -> bool {
        let Some((_, key)) = self.collections.get(&collection) else { return false };
        is_handle_of_identity(handle, key, uid, recurrence_id)
    }

    fn scan_versions(&mut self) -> DatabaseResult<()> {
        let changed_rows = self.find_changed_rows(&ITEM_HISTORY)?;
        let sql = "SELECT f.id, f.handle, f.collection, f.uid, f.recurrence_id,
                          coalesce(f.bytes, b.bytes), f.checksum, f.item, f.seq
                   FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash ORDER BY f.id";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let handle = Handle::from_bytes(bytes_at(row, 1).unwrap_or_default());
            let collection: CollectionRow = row.get(2)?;
            let version = StoredVersion {
                row: row.get(0)?,
                item: row.get(7)?,
                bytes: bytes_at(row, 5),
                checksum: checksum_at(row, 6),
            };
            let has_uid = row.get_ref(3)?.data_type() != Type::Null;
            let has_identity = match has_uid {
                true => self.is_handle_of(handle, collection, &text_at(row, 3), &text_at(row, 4)),
                // A purged version has neither a UID nor bytes.
                false => version.checksum.is_none(),
            };
            let is_row_changed = changed_rows.contains(&version.row.to_number());
            if !version.is_sound() || !has_identity || is_row_changed {
                let (collection, until) = (self.collection_name(collection), row.get(8)?);
                self.damage.objects.push(DamagedObject::FormerVersion {
                    handle,
                    collection,
                    until,
                });
            }
        }
        Ok(())
    }

    fn scan_calendar_contexts(&mut self) -> DatabaseResult<()> {
        let (objects, affected) = calendar_context_table::find_damaged_rows(self.tx)?;
        self.damage.objects.extend(objects);
        if affected.is_empty() {
            return Ok(());
        }
        let sql = "SELECT id, calendar_context FROM item WHERE calendar_context IS NOT NULL";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if affected.contains(&row.get::<_, CalendarContextRow>(1)?) {
                self.damage.affected_items.insert(row.get(0)?);
            }
        }
        Ok(())
    }

    /// Compares collections and their former versions, each with its properties.
    fn scan_collections(&mut self) -> DatabaseResult<()> {
        for row in self.find_changed_rows(&COLLECTION)? {
            let collection = self.collection_name(CollectionRow::from_number(row));
            self.damage.objects.push(DamagedObject::Collection { collection });
            // Its index configuration may be wrong.
            let mut select = self.tx.prepare_cached("SELECT id FROM item WHERE collection = ?1")?;
            let items = select.query_map([row], |row| row.get::<_, ItemRow>(0))?;
            self.damage.affected_items.extend(items.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        for until in self.find_changed_rows(&COLLECTION_HISTORY)? {
            self.damage.objects.push(DamagedObject::FormerCollection { until });
        }
        let sql = "SELECT id, properties, properties_checksum FROM collection
                   UNION ALL
                   SELECT collection, properties, properties_checksum FROM collection_history";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let collection: CollectionRow = row.get(0)?;
            let expected =
                bytes_at(row, 1).map(|bytes| Checksum::from_properties(collection, bytes));
            if expected != checksum_at(row, 2) {
                let collection = self.collection_name(collection);
                self.damage.objects.push(DamagedObject::CollectionProperties { collection });
            }
        }
        Ok(())
    }

    fn scan_operations(&mut self) -> DatabaseResult<()> {
        for number in self.find_changed_rows(&OPERATION)? {
            let operation = OperationId::from_number(number);
            self.damage.objects.push(DamagedObject::Operation { operation });
        }
        for seq in self.find_changed_rows(&BATCH)? {
            self.damage.objects.push(DamagedObject::Batch { seq });
        }
        Ok(())
    }

    /// Returns the keys of the rows of a table that do not match their checksums.
    fn find_changed_rows(&self, table: &CheckedTable) -> DatabaseResult<BTreeSet<i64>> {
        Ok(table.find_changed_rows(self.tx)?.into_iter().collect())
    }

    /// Adds the items that have the UID of an affected item: their schedules depend on it.
    fn add_dependent_items(&mut self) -> DatabaseResult<()> {
        let affected = &mut self.damage.affected_items;
        if affected.is_empty() {
            return Ok(());
        }
        let mut select = self.tx.prepare_cached("SELECT id, collection, uid FROM item")?;
        let mut series: HashSet<(CollectionRow, String)> = HashSet::new();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if affected.contains(&row.get::<_, ItemRow>(0)?) {
                series.insert((row.get(1)?, text_at(row, 2)));
            }
        }
        drop(rows);
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if series.contains(&(row.get(1)?, text_at(row, 2))) {
                affected.insert(row.get(0)?);
            }
        }
        Ok(())
    }
}

/// Returns whether a handle is one of those that an identity gives: the key of a collection, a UID
/// and a recurrence-id.
pub(crate) fn is_handle_of_identity(
    handle: Handle,
    handle_key: &[u8],
    uid: &str,
    recurrence_id: &str,
) -> bool {
    let made = |attempt| Handle::from_uid(handle_key, uid, recurrence_id, attempt);
    (0..MAX_HANDLE_ATTEMPTS).any(|attempt| made(attempt) == handle)
}

/// Returns a column of bytes; `None`: it is NULL, or damage gave it another type.
fn bytes_at<'a>(row: &'a Row<'_>, column: usize) -> Option<&'a [u8]> {
    match row.get_ref(column) {
        Ok(ValueRef::Blob(bytes)) => Some(bytes),
        _ => None,
    }
}

/// Returns a column of text, as far as it is text.
fn text_at(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn checksum_at(row: &Row<'_>, column: usize) -> Option<Checksum> {
    row.get(column).ok()
}
