//! Making the rows of a salvaged store consistent, and naming what is missing.
//!
//! Separate from `salvage`, which finds the rows: here they are rows of a sound database.

use super::changed_item::ChangedItem;
use super::lost_contexts::LostReferences;
use super::{CopiedRows, SalvageLoss, SalvageReport};
use crate::checksum::Checksum;
use crate::damage_scan::is_handle_of_identity;
use crate::damaged_object::DamagedObject;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::history::SCHEDULE_HISTORY_FROM_KEY;
use crate::meta::write_meta;
use crate::row_checksum::ITEM_HISTORY;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::stored_version::StoredVersion;
use crate::uid_lookup::{self, CollectionKey};
use crate::write_transaction::WriteTransaction;
use crate::{Kind, Seq, calendar_context_table};
use larder_extract::{CalendarContext, Extractor, ParsedItem};
use larder_format::collection_type::CollectionType;
use larder_format::component::Component;
use larder_format::contact::derive_uid;
use rusqlite::OptionalExtension as _;
use rusqlite::types::{Value, ValueRef};
use std::collections::{BTreeMap, BTreeSet};

/// The verb of the operation that owns the rows whose operation could not be read.
const SALVAGE_COMMAND: &str = "salvage";

/// Takes over a value of the former store, unless it belongs to derived data or to that file.
pub(super) fn keep_meta_value(tx: &WriteTransaction<'_>, row: &[Value]) -> rusqlite::Result<()> {
    let [Value::Text(key), value, Value::Integer(sum)] = row else { return Ok(()) };
    let is_kept = matches!(
        key.as_str(),
        "collation_locale" | "last_seq" | "last_item" | "history_from" | "pending_purge"
    );
    let is_sound = Checksum::from_meta_value(key, ValueRef::from(value)).to_number() == *sum;
    if is_kept && is_sound { write_meta(tx, key, value.clone()) } else { Ok(()) }
}

/// The repair of a salvaged store, in the transaction that filled it.
pub(super) struct Repair<'a> {
    pub(super) tx: &'a WriteTransaction<'a>,
    extractor: &'a Extractor,
    pub(super) copied: &'a CopiedRows,
    pub(super) losses: Vec<SalvageLoss>,
    /// The items whose rows were made again from their bytes.
    pub(super) restored_items: Vec<ItemRow>,
    /// The items that are in `losses` by name.
    pub(super) named_items: BTreeSet<ItemRow>,
    /// The items whose rows are made again because they have changed, with their former columns.
    pub(super) changed_items: BTreeMap<ItemRow, ChangedItem>,
    /// The collections whose handle key could not be read.
    pub(super) new_keys: BTreeSet<CollectionRow>,
    /// The number of lost items that no index names.
    pub(super) unnamed_items: u64,
    /// The last batch of which a former version is missing; 0: none.
    pub(super) incomplete_until: Seq,
}

impl<'a> Repair<'a> {
    pub(super) fn new(
        tx: &'a WriteTransaction<'a>,
        extractor: &'a Extractor,
        copied: &'a CopiedRows,
    ) -> Repair<'a> {
        Repair {
            tx,
            extractor,
            copied,
            losses: Vec::new(),
            restored_items: Vec::new(),
            named_items: BTreeSet::new(),
            changed_items: BTreeMap::new(),
            new_keys: BTreeSet::new(),
            unnamed_items: 0,
            incomplete_until: 0,
        }
    }

    /// Repairs all tables.
    pub(super) fn run(mut self) -> DatabaseResult<SalvageReport> {
        self.find_changed_rows()?;
        let lost_references = LostReferences::count(self.tx, self.copied)?;
        self.count_missing_versions()?;
        self.restore_collections()?;
        self.delete_changed_properties()?;
        self.delete_changed_bytes()?;
        self.restore_item_rows()?;
        self.delete_items_without_bytes()?;
        self.name_missing_items()?;
        self.delete_changed_versions()?;
        self.delete_changed_contexts()?;
        let has_all_rows = self.has_all_item_rows();
        self.losses.extend(lost_references.assign(self.tx, &self.restored_items, has_all_rows)?);
        self.complete_handles()?;
        self.complete_version_handles()?;
        self.complete_operations()?;
        self.count_references()?;
        self.write_row_checksums()?;
        self.name_unknown_rows();
        let is_equal = self.compare_row_counts()?;
        self.write_numbers()?;
        let count = |sql: &str| self.tx.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(SalvageReport {
            items: count("SELECT count(*) FROM item")?.unsigned_abs(),
            versions: count("SELECT count(*) FROM item_history")?.unsigned_abs(),
            losses: self.losses,
            has_damaged_tables: !self.copied.damaged_tables.is_empty() || !is_equal,
            unreadable_parts: Vec::new(),
        })
    }

    pub(super) fn is_damaged(&self, table: &str) -> bool {
        self.copied.damaged_tables.contains(table)
    }

    /// Returns whether all entries of one of these indexes were read.
    pub(super) fn has_whole_index(&self, indexes: &[&str]) -> bool {
        indexes.iter().any(|index| self.copied.entries.whole.contains(index))
    }

    /// Returns the numbers that a query gives.
    pub(super) fn numbers(&self, sql: &str) -> rusqlite::Result<Vec<i64>> {
        self.tx.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
    }

    pub(super) fn collection_name(&self, collection: CollectionRow) -> rusqlite::Result<String> {
        let sql = "SELECT name FROM collection WHERE id = ?1";
        let name = self.tx.query_row(sql, [collection], |row| row.get(0)).optional()?;
        Ok(name.unwrap_or_default())
    }

    /// Inserts collections that items and former versions name, and whose rows could not be read.
    /// Their names and keys may be in indexes. One that was removed has a key there, and no name.
    fn restore_collections(&mut self) -> DatabaseResult<()> {
        let entries = &self.copied.entries;
        let sql = "SELECT collection FROM
                     (SELECT collection FROM item UNION SELECT collection FROM item_history)
                   WHERE collection NOT IN (SELECT id FROM collection)";
        let mut missing: BTreeSet<CollectionRow> =
            self.numbers(sql)?.into_iter().map(CollectionRow::from_number).collect();
        if self.is_damaged("collection") {
            missing.extend(entries.collection_names.keys());
            missing.extend(entries.handle_keys.keys());
            missing.extend(entries.item_collections.values());
        }
        for collection in missing {
            let name = match entries.collection_names.get(&collection) {
                Some(name) => name.clone(),
                None => format!("salvaged-{collection}"),
            };
            let key = match entries.handle_keys.get(&collection) {
                Some(key) => key.clone(),
                // `complete_handles` makes new handles with this key.
                None => {
                    self.new_keys.insert(collection);
                    collection.to_number().to_be_bytes().to_vec()
                }
            };
            let sql = "SELECT kind FROM item WHERE collection = ?1 LIMIT 1";
            let kind: Option<i64> =
                self.tx.query_row(sql, [collection], |row| row.get(0)).optional()?;
            let kind = kind.and_then(Kind::from_number);
            let is_removed = kind.is_none()
                && entries.handle_keys.contains_key(&collection)
                && !entries.collection_names.contains_key(&collection);
            let number = kind.map(Kind::collection_type).unwrap_or_default().number();
            let inserted = self.tx.execute(
                "INSERT OR IGNORE INTO collection(id, handle_key, name, type, seq, removed)
                 VALUES(?1, ?2, ?3, ?4, 0, ?5)",
                (collection, key, &name, number, is_removed),
            )?;
            if inserted > 0 {
                self.losses.push(SalvageLoss::Collection { collection: name });
            }
        }
        Ok(())
    }

    /// Deletes properties of collections, and former ones, that do not match their checksum.
    fn delete_changed_properties(&mut self) -> DatabaseResult<()> {
        for (table, key) in [("collection", "id"), ("collection_history", "collection")] {
            let sql = format!("SELECT {key}, properties, properties_checksum FROM {table}");
            let mut changed = BTreeSet::new();
            {
                let mut select = self.tx.prepare_cached(&sql)?;
                let mut rows = select.query([])?;
                while let Some(row) = rows.next()? {
                    let (collection, sum): (CollectionRow, Option<Checksum>) =
                        (row.get(0)?, row.get(2)?);
                    let properties = row.get_ref(1)?.as_blob_or_null()?;
                    if properties.map(|bytes| Checksum::from_properties(collection, bytes)) != sum {
                        changed.insert(collection);
                    }
                }
            }
            for collection in changed {
                let sql = format!(
                    "UPDATE {table} SET properties = NULL, properties_checksum = NULL
                     WHERE {key} = ?1"
                );
                self.tx.execute(&sql, [collection])?;
                let collection = self.collection_name(collection)?;
                let object = DamagedObject::CollectionProperties { collection };
                self.losses.push(SalvageLoss::Changed(object));
            }
        }
        Ok(())
    }

    /// Deletes source bytes that do not match their checksum.
    fn delete_changed_bytes(&mut self) -> DatabaseResult<()> {
        let sql = "SELECT s.item, s.checksum, coalesce(s.bytes, b.bytes)
                   FROM source_bytes s LEFT JOIN blob b ON b.hash = s.blob_hash";
        let mut changed = Vec::new();
        {
            let mut select = self.tx.prepare_cached(sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let (item, sum): (ItemRow, Checksum) = (row.get(0)?, row.get(1)?);
                let bytes = row.get_ref(2)?.as_blob_or_null()?;
                if bytes.is_none_or(|bytes| Checksum::from_item(item, bytes) != sum) {
                    changed.push((item, bytes.is_some()));
                }
            }
        }
        for (item, has_bytes) in changed {
            self.tx.execute("DELETE FROM source_bytes WHERE item = ?1", [item])?;
            let sql = "SELECT handle, collection FROM item WHERE id = ?1";
            let found = self
                .tx
                .query_row(sql, [item], |row| {
                    Ok((Handle::from_bytes(row.get_ref(0)?.as_blob()?), row.get(1)?))
                })
                .optional()?;
            match found {
                Some((handle, collection)) if has_bytes => {
                    let collection = self.collection_name(collection)?;
                    let object = DamagedObject::Item { handle, collection };
                    self.losses.push(SalvageLoss::Changed(object));
                    self.named_items.insert(item);
                    delete_item(self.tx, item)?;
                }
                // `delete_items_without_bytes` names it.
                Some(_) => {}
                None => self.count_unnamed_item(item),
            }
        }
        Ok(())
    }

    /// Counts a lost item, unless an index names it: then `name_missing_items` does.
    fn count_unnamed_item(&mut self, item: ItemRow) {
        let is_known = self.copied.entries.items.contains(&item);
        self.unnamed_items += u64::from(!is_known && self.is_damaged("item"));
    }

    /// Makes the rows of items whose bytes are there again, if rows could not be read; else such
    /// bytes are left over.
    fn restore_item_rows(&mut self) -> DatabaseResult<()> {
        let sql = "SELECT item FROM source_bytes WHERE item NOT IN (SELECT id FROM item)";
        let rows: Vec<ItemRow> = self.numbers(sql)?.into_iter().map(ItemRow::from_number).collect();
        let is_damaged = self.is_damaged("item");
        // A row of `source_bytes` in a page that no tree leads to may be one of a removed item.
        let has_index = self.is_damaged("source_bytes")
            && self.has_whole_index(&["item_handle", "item_collection", "item_seq"]);
        let mut in_fallback = 0;
        let mut without_place = 0;
        for (ordinal, item) in rows.into_iter().enumerate() {
            let changed = self.changed_items.remove(&item);
            let known = match &changed {
                Some(row) => Some(row.collection),
                None => self.copied.entries.item_collections.get(&item).copied(),
            };
            let is_live = changed.is_some()
                || is_damaged && (self.copied.entries.items.contains(&item) || !has_index);
            let place = match &changed {
                Some(row) => Some(row.place),
                None => self.find_free_place(item)?,
            };
            let new_place = (0, ordinal as i64);
            let identity = changed.as_ref().map(|row| (&*row.uid, &*row.recurrence_id));
            if is_live
                && self.restore_item_row(item, known, identity, place.unwrap_or(new_place))?
            {
                without_place += u64::from(place.is_none());
                self.restored_items.push(item);
                in_fallback += u64::from(known.is_none());
                continue;
            }
            self.tx.execute("DELETE FROM source_bytes WHERE item = ?1", [item])?;
            if is_live {
                self.count_unnamed_item(item);
            }
        }
        if in_fallback > 0 {
            self.losses.push(SalvageLoss::ItemCollections { items: in_fallback });
        }
        if without_place > 0 {
            self.losses.push(SalvageLoss::ItemBatches { items: without_place });
        }
        Ok(())
    }

    /// Returns the last batch of an item and its place in it, if an index has them and no other
    /// item does.
    fn find_free_place(&self, item: ItemRow) -> rusqlite::Result<Option<(i64, i64)>> {
        let Some(place) = self.copied.entries.item_places.get(&item) else { return Ok(None) };
        let sql = "SELECT 1 FROM item WHERE seq = ?1 AND ordinal = ?2";
        let other = self.tx.prepare_cached(sql)?.query_row(*place, |_| Ok(())).optional()?;
        Ok(other.is_none().then_some(*place))
    }

    /// Makes the row of an item from its bytes, and from its UID and recurrence-id if they are
    /// known. Returns whether the bytes are those of an item.
    fn restore_item_row(
        &mut self,
        item: ItemRow,
        collection: Option<CollectionRow>,
        identity: Option<(&str, &str)>,
        (seq, ordinal): (i64, i64),
    ) -> DatabaseResult<bool> {
        // Bytes without a name after BEGIN have no UID either.
        let unmarked_kind = match (collection, identity) {
            (Some(collection), Some(_)) => self.find_unmarked_kind(collection)?,
            _ => None,
        };
        let Some((parsed, derived_uid)) = self.parse_source_bytes(item, unmarked_kind)? else {
            return Ok(false);
        };
        let collection = match collection {
            Some(collection) => collection,
            None => self.fallback_collection(parsed.kind().collection_type())?,
        };
        let sql = "SELECT handle_key FROM collection WHERE id = ?1";
        let key = self.tx.query_row(sql, [collection], |row| row.get(0)).optional()?;
        let Some(handle_key) = key else { return Ok(false) };
        let (uid, recurrence_id) = identity.unzip();
        let recurrence_id = recurrence_id.unwrap_or(parsed.recurrence_id());
        let sql = "SELECT 1 FROM item WHERE collection = ?1 AND uid = ?2 AND recurrence_id = ?3";
        let is_free = |uid: &&str| -> bool {
            let found = self.tx.query_row(sql, (collection, uid, recurrence_id), |_| Ok(()));
            matches!(found, Err(rusqlite::Error::QueryReturnedNoRows))
        };
        let named = uid.or(parsed.uid()).filter(|uid| is_free(uid));
        let uid_origin = match parsed.uid() {
            Some(_) if named == parsed.uid() => 0,
            Some(_) => 2,
            None if unmarked_kind.is_some() => 0,
            None => 1,
        };
        let uid = named.unwrap_or(&derived_uid);
        let location = CollectionKey { id: collection, handle_key };
        let handle = uid_lookup::allocate_handle(self.tx, &location, uid, recurrence_id, item)?;
        self.tx.execute(
            "INSERT INTO item VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL, NULL, 0)",
            (
                item,
                collection,
                parsed.kind().number(),
                uid,
                recurrence_id,
                uid_origin,
                handle.to_bytes(),
                seq,
                ordinal,
            ),
        )?;
        Ok(true)
    }

    /// Parses the bytes of an item, whose kind is that of their mark if they have one. Returns also
    /// the UID that is derived from them; `None`: they are not those of an item.
    fn parse_source_bytes(
        &self,
        item: ItemRow,
        unmarked_kind: Option<Kind>,
    ) -> DatabaseResult<Option<(ParsedItem, String)>> {
        let sql = "SELECT coalesce(s.bytes, b.bytes) FROM source_bytes s
                   LEFT JOIN blob b ON b.hash = s.blob_hash WHERE s.item = ?1";
        let bytes: Vec<u8> = self.tx.query_row(sql, [item], |row| row.get(0))?;
        let kind = unmarked_kind
            .unwrap_or_else(|| Kind::from_component_name(Component::parse(&bytes).kind().name()));
        let derived_uid = derive_uid(&bytes);
        let parsed = self.extractor.parse_item(kind, bytes, &CalendarContext::default());
        Ok(parsed.ok().map(|parsed| (parsed, derived_uid)))
    }

    /// Returns the kind of the items in a collection if nothing in their bytes says it.
    fn find_unmarked_kind(&self, collection: CollectionRow) -> rusqlite::Result<Option<Kind>> {
        let sql = "SELECT type FROM collection WHERE id = ?1";
        let number = self.tx.query_row(sql, [collection], |row| row.get(0)).optional()?;
        Ok(number.and_then(CollectionType::from_number).and_then(Kind::from_unmarked_items))
    }

    /// Returns the collection for items whose own one is unknown.
    fn fallback_collection(
        &self,
        collection_type: CollectionType,
    ) -> rusqlite::Result<CollectionRow> {
        let name = format!("salvaged-type-{}", collection_type.number());
        let sql =
            "INSERT OR IGNORE INTO collection(handle_key, name, type, seq) VALUES(?1, ?2, ?3, 0)";
        self.tx.execute(sql, (name.as_bytes(), &name, collection_type.number()))?;
        let sql = "SELECT id FROM collection WHERE handle_key = ?1";
        self.tx.query_row(sql, [name.as_bytes()], |row| row.get(0))
    }

    fn delete_items_without_bytes(&mut self) -> DatabaseResult<()> {
        let sql = "SELECT id, handle, collection, uid FROM item
                   WHERE id NOT IN (SELECT item FROM source_bytes) ORDER BY id";
        let found: Vec<(ItemRow, Handle, CollectionRow, String)> = self
            .tx
            .prepare_cached(sql)?
            .query_map([], |row| {
                let handle = Handle::from_bytes(row.get_ref(1)?.as_blob()?);
                Ok((row.get(0)?, handle, row.get(2)?, row.get(3)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        for (item, handle, collection, uid) in found {
            let collection = self.collection_name(collection)?;
            self.losses.push(SalvageLoss::Bytes { handle, collection, uid });
            self.named_items.insert(item);
            delete_item(self.tx, item)?;
        }
        Ok(())
    }

    /// Names the items that an index has, and of which nothing could be read, and counts those of
    /// which not even the ID is known.
    fn name_missing_items(&mut self) -> DatabaseResult<()> {
        let present: BTreeSet<i64> = self.numbers("SELECT id FROM item")?.into_iter().collect();
        for item in &self.copied.entries.items {
            if present.contains(&item.to_number()) || self.named_items.contains(item) {
                continue;
            }
            let Some(handle) = self.copied.entries.item_handles.get(item).copied() else {
                self.unnamed_items += 1;
                continue;
            };
            let collection = match self.copied.entries.item_collections.get(item).copied() {
                Some(collection) => self.collection_name(collection)?,
                None => String::new(),
            };
            self.losses.push(SalvageLoss::Item { handle, collection });
        }
        if self.unnamed_items > 0 {
            self.losses.push(SalvageLoss::UnnamedItems { items: self.unnamed_items });
        }
        Ok(())
    }

    /// Erases the former versions whose bytes have changed. Their rows stay, as after a purge: an
    /// undo names them, and restores the others.
    fn delete_changed_versions(&mut self) -> DatabaseResult<()> {
        let sql = "SELECT f.id, f.item, coalesce(f.bytes, b.bytes), f.checksum, f.handle, f.seq,
                          coalesce(c.name, ''), f.uid, f.recurrence_id, c.handle_key, f.collection
                   FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash
                   LEFT JOIN collection c ON c.id = f.collection";
        let changed_rows = ITEM_HISTORY.find_changed_rows(self.tx)?;
        let mut changed = Vec::new();
        {
            let mut select = self.tx.prepare_cached(sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let version = StoredVersion {
                    row: row.get(0)?,
                    item: row.get(1)?,
                    bytes: row.get_ref(2)?.as_blob_or_null()?,
                    checksum: row.get(3)?,
                };
                let handle = Handle::from_bytes(row.get_ref(4)?.as_blob()?);
                let has_identity = match row.get_ref(7)?.as_str_or_null()? {
                    // `complete_handles` makes handles with the new key.
                    _ if self.new_keys.contains(&row.get(10)?) => true,
                    Some(uid) => {
                        let recurrence_id = row.get_ref(8)?.as_str_or_null()?.unwrap_or_default();
                        let key = row.get_ref(9)?.as_blob_or_null()?.unwrap_or_default();
                        is_handle_of_identity(handle, key, uid, recurrence_id)
                    }
                    None => version.checksum.is_none(),
                };
                let is_row_changed = changed_rows.contains(&version.row.to_number());
                if !version.is_sound() || !has_identity || is_row_changed {
                    let object = DamagedObject::FormerVersion {
                        handle,
                        collection: row.get(6)?,
                        until: row.get(5)?,
                    };
                    let is_known = has_identity && !is_row_changed;
                    changed.push((version.row, object, is_known));
                }
            }
        }
        for (version, object, is_known) in changed {
            let sql = if is_known {
                "UPDATE item_history SET uid = NULL, recurrence_id = NULL, bytes = NULL,
                   blob_hash = NULL, checksum = NULL, calendar_context = NULL
                 WHERE id = ?1"
            } else {
                // It is unknown which batch replaced it, and of which item it was.
                self.incomplete_until = Seq::MAX;
                "DELETE FROM item_history WHERE id = ?1"
            };
            self.tx.execute(sql, [version])?;
            self.losses.push(SalvageLoss::Changed(object));
        }
        Ok(())
    }

    /// Deletes calendar contexts and definitions that are damaged, or whose definitions are
    /// missing: their items are kept without them.
    fn delete_changed_contexts(&mut self) -> DatabaseResult<()> {
        let (objects, affected) = calendar_context_table::find_damaged_rows(self.tx)?;
        self.losses.extend(objects.into_iter().map(SalvageLoss::Changed));
        for context in affected {
            self.tx.execute("DELETE FROM calendar_context WHERE id = ?1", [context])?;
        }
        let sql = "SELECT DISTINCT calendar_context.id FROM calendar_context,
                     json_each('[' || replace(zone_definitions, ' ', ',') || ']')
                   WHERE value NOT IN (SELECT id FROM zone_definition)";
        for context in self.numbers(sql)? {
            self.tx.execute("DELETE FROM calendar_context WHERE id = ?1", [context])?;
        }
        let lost = "calendar_context IS NOT NULL
                    AND calendar_context NOT IN (SELECT id FROM calendar_context)";
        let items = self
            .tx
            .execute(&format!("UPDATE item SET calendar_context = NULL WHERE {lost}"), [])?;
        let sql = format!("SELECT coalesce(max(seq), 0) FROM item_history WHERE {lost}");
        let last: Seq = self.tx.query_row(&sql, [], |row| row.get(0))?;
        self.incomplete_until = self.incomplete_until.max(last);
        let versions = self.tx.execute(
            &format!("UPDATE item_history SET calendar_context = NULL WHERE {lost}"),
            [],
        )?;
        if items > 0 {
            self.losses.push(SalvageLoss::CalendarContexts { items: items as u64 });
        }
        if versions > 0 {
            self.losses.push(SalvageLoss::VersionContexts { versions: versions as u64 });
        }
        Ok(())
    }

    /// Inserts the batches and operations that rows name, and a batch for the rows that this
    /// salvage made.
    fn complete_operations(&mut self) -> DatabaseResult<()> {
        self.tx.execute_batch(
            "INSERT OR IGNORE INTO operation(id, verb, detail, started_ms, store_age_ms, added, updated, removed)
               SELECT DISTINCT operation, '?', '', 0,
                 coalesce((SELECT max(store_age_ms) FROM operation), 0), 0, 0, 0 FROM batch;",
        )?;
        let last: i64 = self.tx.query_row(
            "SELECT max(coalesce((SELECT max(seq) FROM batch), 0), coalesce((SELECT max(seq) FROM item), 0),
                        coalesce((SELECT max(seq) FROM item_history), 0),
                        (SELECT value FROM meta WHERE key = 'last_seq'))",
            [],
            |row| row.get(0),
        )?;
        let sql = "SELECT EXISTS(SELECT 1 FROM item WHERE seq NOT IN (SELECT seq FROM batch))
                       OR EXISTS(SELECT 1 FROM item_history WHERE seq NOT IN (SELECT seq FROM batch))
                       OR EXISTS(SELECT 1 FROM collection WHERE seq = 0)";
        if !self.tx.query_row(sql, [], |row| row.get(0))? {
            return Ok(write_meta(self.tx, "last_seq", last)?);
        }
        self.tx.execute(
            "INSERT INTO operation(verb, detail, started_ms, store_age_ms, added, updated, removed)
             VALUES(?1, '', coalesce((SELECT max(started_ms) FROM operation), 0),
               coalesce((SELECT max(store_age_ms) FROM operation), 0), 0, 0, 0)",
            [SALVAGE_COMMAND],
        )?;
        let operation = self.tx.last_insert_rowid();
        self.tx.execute("UPDATE item SET seq = ?1 WHERE seq = 0", [last + 1])?;
        self.tx.execute(
            "INSERT OR IGNORE INTO batch
               SELECT DISTINCT seq, ?1, 0 FROM
                 (SELECT seq FROM item UNION SELECT seq FROM item_history UNION SELECT ?2)",
            (operation, last + 1),
        )?;
        self.tx.execute("UPDATE collection SET seq = ?1 WHERE seq = 0", [last + 1])?;
        Ok(write_meta(self.tx, "last_seq", last + 1)?)
    }

    /// Counts the references to blobs and calendar contexts, and deletes unused rows.
    fn count_references(&mut self) -> DatabaseResult<()> {
        self.tx.execute_batch(
            "DELETE FROM blob WHERE hash NOT IN (SELECT blob_hash FROM source_bytes WHERE blob_hash IS NOT NULL
               UNION ALL SELECT blob_hash FROM item_history WHERE blob_hash IS NOT NULL);
             UPDATE blob SET ref_count = (SELECT count(*) FROM source_bytes WHERE blob_hash = blob.hash)
               + (SELECT count(*) FROM item_history WHERE blob_hash = blob.hash);
             CREATE TEMP TABLE context_use AS SELECT calendar_context AS id, count(*) AS uses FROM
               (SELECT calendar_context FROM item UNION ALL SELECT calendar_context FROM item_history)
               WHERE calendar_context IS NOT NULL GROUP BY 1;
             UPDATE calendar_context SET ref_count =
               coalesce((SELECT uses FROM context_use WHERE id = calendar_context.id), 0);
             DROP TABLE context_use;",
        )?;
        calendar_context_table::delete_unreferenced(self.tx)?;
        calendar_context_table::delete_unused_zones(self.tx)?;
        Ok(())
    }

    /// Writes the numbers in `meta` that follow from the rows.
    fn write_numbers(&mut self) -> DatabaseResult<()> {
        let number = |sql: &str| self.tx.query_row(sql, [], |row| row.get::<_, i64>(0));
        let last_seq = number("SELECT value FROM meta WHERE key = 'last_seq'")?;
        let last_item = number(
            "SELECT max(coalesce((SELECT max(id) FROM item), 0), coalesce((SELECT max(item) FROM item_history), 0),
                        (SELECT value FROM meta WHERE key = 'last_item'))",
        )?;
        let history_bytes = number(
            "SELECT coalesce(sum(coalesce(length(f.bytes), length(b.bytes), 0)), 0)
             FROM item_history f LEFT JOIN blob b ON b.hash = f.blob_hash",
        )?;
        write_meta(self.tx, "last_item", last_item)?;
        write_meta(self.tx, "history_bytes", history_bytes)?;
        write_meta(self.tx, SCHEDULE_HISTORY_FROM_KEY, last_seq + 1)?;
        // An undo of a batch whose versions are not all here would be incomplete.
        let kept = number("SELECT value FROM meta WHERE key = 'history_from'")?;
        let history_from = match self.losses.iter().any(SalvageLoss::affects_all_history) {
            true => last_seq + 1,
            false => kept.max(self.incomplete_until.min(last_seq) + 1),
        };
        write_meta(self.tx, "history_from", history_from)?;
        Ok(())
    }
}

/// Deletes the row of an item.
fn delete_item(tx: &WriteTransaction<'_>, item: ItemRow) -> rusqlite::Result<()> {
    uid_lookup::delete_collision(tx, item)?;
    tx.execute("DELETE FROM item WHERE id = ?1", [item]).map(drop)
}
