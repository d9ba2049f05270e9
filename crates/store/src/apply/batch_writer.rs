//! Writing the items of a batch: put, update, remove and purge.
//!
//! It takes no lock and begins no transaction (`apply` does both). Separate from `collections` and
//! `item_rows` because these are the rules of items: conflicts, duplicates, and the versions to
//! record.

use super::item_rows::{
    ItemRowWriter, NewItem, STORED_ITEM_COLUMNS, StoredItem, stored_item_from_row,
};
use super::{ApplyError, PrefetchedItems, ReplacedSortKeys};
use crate::batch::{BatchChange, ChangeOutcome, InternalChange, ItemPut, Operation, Precondition};
use crate::calendar_context_table::{self, UnverifiedContext};
use crate::derived_index::DerivedIndex;
use crate::error::{DatabaseError, DatabaseResult};
use crate::extractor_cache::ExtractorCache;
use crate::handle::Handle;
use crate::index_updates::IndexUpdates;
use crate::meta::{EPOCH_KEY, MetaTable, write_meta};
use crate::row_checksum::{BATCH, OPERATION};
use crate::row_ids::{CalendarContextRow, ItemRow, OperationId};
use crate::series::ItemLocation;
use crate::sort_index_pages::find_sort_keys;
use crate::uid_lookup::{self, CollectionKey, UidFinder, UidLookup};
use crate::write_transaction::WriteTransaction;
use crate::{CollectionType, Seq, blob, history};
use larder_extract::is_newer_revision;
use larder_extract::{Extractor, SortKeys};
use larder_format::contact::{derive_uid, is_same_card};
use rusqlite::OptionalExtension as _;
use std::collections::{HashMap, HashSet};

/// The item that has the UID of an incoming item.
enum ExistingItem {
    Item(StoredItem),
    /// No item has the UID; the handle that is free for it, if it is known.
    Absent(Option<Handle>),
}

/// The first batch and the number of an operation that puts each item once.
struct ImportDedup {
    first_batch: Option<(Seq, OperationId)>,
}

impl ImportDedup {
    fn from_operation(operation: &Operation, epoch: &str) -> ImportDedup {
        let written = operation.id_in_epoch.as_ref().filter(|(known, _)| known == epoch);
        ImportDedup { first_batch: operation.first_seq.zip(written.map(|(_, id)| *id)) }
    }
}

/// A batch while it is being written.
pub(super) struct BatchWriter<'a> {
    pub(super) tx: &'a WriteTransaction<'a>,
    pub(super) extractors: ExtractorCache<'a>,
    prefetched: &'a PrefetchedItems,
    pub(super) seq: Seq,
    /// The place of the next change in the batch.
    ordinal: i64,
    pub(super) rows: ItemRowWriter<'a>,
    index_updates: IndexUpdates,
    /// The handles that were given to new items.
    new_handles: HashSet<Handle>,
    /// For an operation that puts each item once: the items it put that were unchanged, and its
    /// earlier batches.
    unchanged_items: HashSet<ItemRow>,
    dedup: Option<ImportDedup>,
    pub(super) finder: UidFinder<'a>,
    pub(super) collections: HashMap<String, (CollectionKey, CollectionType)>,
    pub(super) added: i64,
    pub(super) updated: i64,
    pub(super) removed: i64,
    /// Whether something changed that is no item, and so has no ordinal.
    pub(super) has_unnumbered_changes: bool,
    /// Operations that this one undoes.
    undone_operations: Vec<OperationId>,
    /// Whether the batch is one of an undo.
    is_undo: bool,
    /// Whether operations were marked as undone or redone, which are changes without an ordinal.
    operations_marked: bool,
    /// Whether a precondition of a change failed.
    has_conflict: bool,
}

impl<'a> BatchWriter<'a> {
    pub(super) fn begin(
        tx: &'a WriteTransaction<'a>,
        extractor: &'a Extractor,
        prefetched: &'a PrefetchedItems,
        operation: &Operation,
        meta: &MetaTable,
    ) -> DatabaseResult<BatchWriter<'a>> {
        let seq = meta.number("last_seq")? + 1;
        Ok(BatchWriter {
            tx,
            extractors: ExtractorCache::new(extractor),
            prefetched,
            seq,
            ordinal: 0,
            rows: ItemRowWriter::new(tx, seq, meta)?,
            index_updates: IndexUpdates::begin(extractor, meta),
            new_handles: HashSet::new(),
            unchanged_items: HashSet::new(),
            dedup: match operation.puts_each_once {
                true => Some(ImportDedup::from_operation(operation, meta.text(EPOCH_KEY)?)),
                false => None,
            },
            finder: UidFinder::new(tx)?,
            collections: HashMap::new(),
            added: 0,
            updated: 0,
            removed: 0,
            has_unnumbered_changes: false,
            is_undo: operation.undoes.is_some(),
            undone_operations: Vec::new(),
            operations_marked: false,
            has_conflict: false,
        })
    }

    pub(super) fn has_changes(&self) -> bool {
        self.ordinal > 0 || self.operations_marked || self.has_unnumbered_changes
    }

    pub(super) fn apply_change(
        &mut self,
        index: usize,
        change: BatchChange,
    ) -> Result<ChangeOutcome, ApplyError> {
        match change {
            BatchChange::Put(put) => {
                let outcome = self.put_item(index, put)?;
                self.has_conflict |= is_conflict(&outcome);
                Ok(outcome)
            }
            BatchChange::Remove(handle, precondition) => {
                let outcome = self.remove_item(index, handle, precondition)?;
                self.has_conflict |= is_conflict(&outcome);
                Ok(outcome)
            }
            BatchChange::Internal(InternalChange::MarkUndone { .. })
            | BatchChange::Internal(InternalChange::MarkRedone(_))
                if self.has_conflict =>
            {
                Ok(ChangeOutcome::Conflict(None, None))
            }
            BatchChange::Internal(InternalChange::Purge(handle)) => self.purge_item(index, handle),
            BatchChange::Mail(mail) => self.apply_mail(*mail),
            BatchChange::Labels(labels) => self.apply_labels(&labels),
            BatchChange::AdoptCollection { name, kind, handle_key } => {
                self.adopt_collection(&name, kind, &handle_key)
            }
            BatchChange::CreateCollection(name, kind) => self.create_new_collection(&name, kind),
            BatchChange::SetIndexConfig(name, config) => self.set_index_config(&name, &config),
            BatchChange::SetCollectionProperties(name, properties) => {
                self.set_collection_properties(&name, properties.as_deref())
            }
            BatchChange::RenameCollection(from, to) => self.rename_collection(&from, &to),
            BatchChange::RemoveCollection(name) => self.remove_collection(&name),
            BatchChange::Internal(InternalChange::RestoreCollection(id)) => {
                self.restore_collection(id)
            }
            BatchChange::Internal(InternalChange::MarkUndone { id, last_seq }) => {
                self.mark_undone(id, last_seq)
            }
            BatchChange::Internal(InternalChange::MarkRedone(id)) => self.mark_redone(id),
        }
    }

    /// Writes the collected changes, and the rows of the batch. Returns the epoch and the number of
    /// the operation.
    pub(super) fn finish(
        mut self,
        operation: &Operation,
        meta: &MetaTable,
    ) -> Result<(String, OperationId), ApplyError> {
        let tx = self.tx;
        self.index_updates.write(tx, &mut self.extractors, self.seq)?;
        self.rows.context_refs.write(tx)?;
        let epoch = meta.text(EPOCH_KEY)?;
        let id = match &operation.id_in_epoch {
            Some((known, id)) if *known == epoch => *id,
            _ => {
                tx.prepare_cached(
                    "INSERT INTO operation(verb, detail, started_ms, store_age_ms, undoes, added, updated, removed)
                     VALUES(?1, ?2, ?3, ?4, ?5, 0, 0, 0)",
                )?
                .execute((
                    &operation.verb,
                    &operation.detail,
                    operation.started_at_ms,
                    history::store_age_ms(tx, operation.started_at_ms)?,
                    operation.undoes.as_ref().map(|(_, id)| *id),
                ))?;
                OperationId::from_number(tx.last_insert_rowid())
            }
        };
        tx.prepare_cached(
            "UPDATE operation SET added = added + ?2, updated = updated + ?3, removed = removed + ?4
             WHERE id = ?1",
        )?
        .execute((id, self.added, self.updated, self.removed))?;
        tx.prepare_cached("INSERT INTO batch VALUES(?1, ?2, 0)")?.execute((self.seq, id))?;
        BATCH.write_checksums(tx, "seq = ?1", &[self.seq.into()])?;
        for undone in &self.undone_operations {
            OPERATION.update_row(tx, undone.to_number(), || {
                tx.prepare_cached("UPDATE operation SET undone_by = ?2 WHERE id = ?1")?
                    .execute((undone, id))
            })?;
        }
        OPERATION.write_checksums(tx, "id = ?1", &[id.to_number().into()])?;
        let history_bytes = history::prune(tx, id, self.rows.history_bytes)?;
        for (key, value) in [
            ("last_seq", self.seq),
            ("last_item", self.rows.last_row_number),
            ("history_bytes", history_bytes),
        ] {
            if meta.number(key)? != value {
                write_meta(tx, key, value)?;
            }
        }
        calendar_context_table::delete_unreferenced(tx)?;
        Ok((epoch.to_string(), id))
    }

    pub(super) fn next_ordinal(&mut self) -> i64 {
        self.ordinal += 1;
        self.ordinal
    }

    /// Looks up the item that the change at `index` puts, unless the lookup was made before the
    /// lock was taken.
    fn find_existing(
        &mut self,
        index: usize,
        collection: &CollectionKey,
        put: &ItemPut,
    ) -> rusqlite::Result<ExistingItem> {
        if let Some((known_collection, handle)) = self.prefetched.free_handles.get(&index)
            && self.prefetched.seq + 1 == self.seq
            && *known_collection == collection.id
            && !self.new_handles.contains(handle)
        {
            return Ok(ExistingItem::Absent(Some(*handle)));
        }
        self.find_by_uid(collection, &put.uid, put.parsed.recurrence_id())
    }

    fn find_by_uid(
        &mut self,
        collection: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<ExistingItem> {
        let row = match self.finder.find(collection, uid, recurrence)? {
            UidLookup::Item(row) => row,
            UidLookup::Free(handle) => return Ok(ExistingItem::Absent(Some(handle))),
            UidLookup::HandleTaken => return Ok(ExistingItem::Absent(None)),
        };
        self.tx
            .prepare_cached(&format!(
                "SELECT {} FROM item i WHERE i.id = ?1",
                *STORED_ITEM_COLUMNS
            ))?
            .query_row([row], stored_item_from_row)
            .map(ExistingItem::Item)
    }

    fn find_by_handle(&self, handle: Handle) -> rusqlite::Result<Option<StoredItem>> {
        self.tx
            .prepare_cached(&format!(
                "SELECT {} FROM item i WHERE i.handle = ?1",
                *STORED_ITEM_COLUMNS
            ))?
            .query_row([handle.to_bytes()], stored_item_from_row)
            .optional()
    }

    /// Returns the sort keys of an item before this batch. They are extracted under the lock only
    /// if another writer changed the item or its index configuration since it was read.
    fn sort_keys_before(
        &mut self,
        index: usize,
        item: &StoredItem,
    ) -> Result<SortKeys, ApplyError> {
        if self.index_updates.has_item(item.id) {
            return Ok(SortKeys::new());
        }
        let collection = item.location.collection;
        let extractor = self.extractors.for_collection(self.tx, collection)?;
        if let Some(ReplacedSortKeys { seq, index_config, keys }) =
            self.prefetched.replaced.get(&index)
            && *seq == item.seq
            && extractor.has_index_config(index_config)
        {
            return Ok(keys.clone());
        }
        let stored = self.extractors.read_item(self.tx, item.id)?;
        if !item.is_row_sound || stored.as_ref().is_some_and(|stored| !stored.is_sound) {
            // The bytes do not give the keys under which the item is sorted.
            let keys = find_sort_keys(self.tx, item.id, collection)?;
            if keys.is_none() {
                DerivedIndex::Sort.invalidate(self.tx)?;
            }
            return Ok(keys.unwrap_or_default());
        }
        let Some(stored) = stored else { return Ok(SortKeys::new()) };
        let extractor = self.extractors.for_collection(self.tx, collection)?;
        Ok(extractor.extract_sort_keys(&stored.bytes, &stored.context))
    }

    fn put_item(&mut self, index: usize, put: ItemPut) -> Result<ChangeOutcome, ApplyError> {
        if put.precondition.is_item_required() && self.find_collection(&put.collection)?.is_none() {
            return Ok(ChangeOutcome::Conflict(None, None));
        }
        let collection = self.find_or_create_collection(&put.collection, put.parsed.kind())?;
        let item = match self.find_existing(index, &collection, &put)? {
            ExistingItem::Item(item) => item,
            ExistingItem::Absent(_) if put.precondition.is_item_required() => {
                return Ok(ChangeOutcome::Conflict(None, None));
            }
            // An undo read the version before a purge erased it.
            ExistingItem::Absent(Some(handle))
                if self.is_undo && history::is_purged(self.tx, handle)? =>
            {
                return Ok(ChangeOutcome::Conflict(None, None));
            }
            ExistingItem::Absent(free_handle) => {
                return Ok(ChangeOutcome::Added(self.add_item(&collection, put, free_handle)?));
            }
        };
        let is_repeat = match put.precondition {
            Precondition::DeriveUidOnConflict => true,
            Precondition::Present | Precondition::UnchangedSince(_) => false,
            _ => self.is_repeat_in_operation(&item)?,
        };
        let stored_bytes = blob::read_unverified_bytes(self.tx, item.id)?
            .ok_or_else(|| DatabaseError::missing_source_bytes(item.id))?;
        // A damaged item is replaced, and its bytes are compared with nothing.
        let (stored_bytes, are_bytes_sound) = stored_bytes.into_parts(item.id);
        let is_sound = are_bytes_sound && item.is_row_sound;
        let is_same = is_sound && is_same_card(&stored_bytes, put.parsed.bytes());
        // The same bytes mean another time if the calendar defines the zone differently.
        let is_same = is_same && (is_repeat || self.has_same_calendar_context(&item, &put)?);
        if is_repeat && !is_same {
            return self.put_duplicate(&collection, put);
        }
        let outcome = match put.precondition {
            Precondition::UnchangedSince(seq) if seq != item.seq => {
                ChangeOutcome::Conflict(Some(item.handle), Some(item.seq))
            }
            _ if is_same => ChangeOutcome::Unchanged(item.handle),
            Precondition::Absent => ChangeOutcome::Conflict(Some(item.handle), Some(item.seq)),
            Precondition::NotNewer
                if is_sound && is_newer_revision(&stored_bytes, put.parsed.bytes()) =>
            {
                ChangeOutcome::Conflict(Some(item.handle), Some(item.seq))
            }
            Precondition::Present | Precondition::UnchangedSince(_) => {
                ChangeOutcome::Updated(item.handle)
            }
            _ => match self.find_duplicate(&collection, &item, &put)? {
                Some(duplicate) => ChangeOutcome::UnchangedWithDerivedUid(duplicate),
                None => ChangeOutcome::Updated(item.handle),
            },
        };
        match outcome {
            ChangeOutcome::Updated(_) => self.update_item(index, &item, put)?,
            // A change with a conflict puts nothing.
            ChangeOutcome::Conflict(..) => {}
            _ if self.dedup.is_some() => drop(self.unchanged_items.insert(item.id)),
            _ => {}
        }
        Ok(outcome)
    }

    /// Returns whether this operation stores each item at most once and has already stored this
    /// one.
    fn is_repeat_in_operation(&self, item: &StoredItem) -> rusqlite::Result<bool> {
        let Some(dedup) = &self.dedup else { return Ok(false) };
        if item.seq == self.seq || self.unchanged_items.contains(&item.id) {
            return Ok(true);
        }
        let Some((_, id)) = dedup.first_batch.filter(|(first, _)| item.seq >= *first) else {
            return Ok(false);
        };
        // The item was stored by the last batch, or by an earlier batch and then changed by another
        // operation.
        self.tx
            .prepare_cached(
                "SELECT EXISTS(SELECT 1 FROM batch WHERE seq = ?1 AND operation = ?3)
                     OR EXISTS(SELECT 1 FROM item_history f JOIN batch b ON b.seq = f.since
                               WHERE f.handle = ?2 AND b.operation = ?3)",
            )?
            .query_row((item.seq, item.handle.to_bytes(), id), |row| row.get(0))
    }

    /// Returns the handle of the duplicate of an item that has these bytes, if there is one.
    fn find_duplicate(
        &mut self,
        collection: &CollectionKey,
        item: &StoredItem,
        put: &ItemPut,
    ) -> rusqlite::Result<Option<Handle>> {
        let uid = derive_uid(put.parsed.bytes());
        Ok(match self.find_by_uid(collection, &uid, put.parsed.recurrence_id())? {
            ExistingItem::Item(duplicate) if duplicate.id != item.id => Some(duplicate.handle),
            _ => None,
        })
    }

    /// Adds a second item with the UID of another item, under a UID made from its bytes.
    fn put_duplicate(
        &mut self,
        collection: &CollectionKey,
        mut put: ItemPut,
    ) -> Result<ChangeOutcome, ApplyError> {
        put.uid = derive_uid(put.parsed.bytes());
        put.derived_uid = true;
        Ok(match self.find_by_uid(collection, &put.uid, put.parsed.recurrence_id())? {
            ExistingItem::Item(item) => ChangeOutcome::UnchangedWithDerivedUid(item.handle),
            ExistingItem::Absent(free_handle) => {
                ChangeOutcome::AddedWithDerivedUid(self.add_item(collection, put, free_handle)?)
            }
        })
    }

    /// Adds an item, with this handle if one is free.
    fn add_item(
        &mut self,
        collection: &CollectionKey,
        mut put: ItemPut,
        free_handle: Option<Handle>,
    ) -> Result<Handle, ApplyError> {
        let extractor = self.extractors.for_collection(self.tx, collection.id)?;
        let entry = extractor.take_or_extract(&mut put.parsed);
        let (id, ordinal) = (self.rows.allocate_row(), self.next_ordinal());
        let recurrence = put.parsed.recurrence_id();
        let handle = match free_handle {
            Some(handle) => handle,
            None => {
                self.finder.record_collision();
                uid_lookup::allocate_handle(self.tx, collection, &put.uid, recurrence, id)?
            }
        };
        self.new_handles.insert(handle);
        let location = ItemLocation::new(put.parsed.kind(), collection.id, &put.uid, recurrence);
        let item = NewItem { id, collection: collection.id, handle, ordinal };
        self.rows.insert(&item, put, &entry)?;
        self.added += 1;
        self.index_updates.put(id, location, SortKeys::new(), entry);
        Ok(handle)
    }

    fn update_item(
        &mut self,
        index: usize,
        item: &StoredItem,
        mut put: ItemPut,
    ) -> Result<(), ApplyError> {
        let former_keys = self.sort_keys_before(index, item)?;
        let extractor = self.extractors.for_collection(self.tx, item.location.collection)?;
        let entry = extractor.take_or_extract(&mut put.parsed);
        let ordinal = self.next_ordinal();
        self.rows.log_version(item.id, ordinal, false)?;
        self.rows.update(item, ordinal, put, &entry)?;
        self.updated += 1;
        self.index_updates.put(item.id, item.location.clone(), former_keys, entry);
        Ok(())
    }

    fn delete_item(&mut self, item: &StoredItem, former_keys: SortKeys) -> Result<(), ApplyError> {
        self.index_updates.remove(item.id, item.location.clone(), former_keys);
        self.rows.delete(item.id)?;
        self.removed += 1;
        Ok(())
    }

    fn has_same_calendar_context(&self, item: &StoredItem, put: &ItemPut) -> DatabaseResult<bool> {
        if !item.location.is_in_calendar {
            return Ok(true);
        }
        let row: Option<CalendarContextRow> = self
            .tx
            .prepare_cached("SELECT calendar_context FROM item WHERE id = ?1")?
            .query_row([item.id], |row| row.get(0))?;
        let stored = match row {
            Some(row) => match calendar_context_table::read_unverified_context(self.tx, row)? {
                // A damaged context is no context that the item had.
                Some(UnverifiedContext { damage: Some(_), .. }) => return Ok(false),
                found => found.map(|found| found.context),
            },
            None => None,
        };
        Ok(stored.as_deref().is_some_and(|stored| {
            put.parsed.calendar_context().is_some_and(|new| stored.is_equivalent(new))
        }) || (stored.is_none() && put.parsed.calendar_context().is_none()))
    }

    fn remove_item(
        &mut self,
        index: usize,
        handle: Handle,
        precondition: Precondition,
    ) -> Result<ChangeOutcome, ApplyError> {
        let Some(item) = self.find_by_handle(handle)? else {
            return Ok(ChangeOutcome::Conflict(None, None));
        };
        if let Precondition::UnchangedSince(seq) = precondition
            && seq != item.seq
        {
            return Ok(ChangeOutcome::Conflict(Some(handle), Some(item.seq)));
        }
        let former_keys = self.sort_keys_before(index, &item)?;
        let ordinal = self.next_ordinal();
        self.rows.log_version(item.id, ordinal, true)?;
        self.delete_item(&item, former_keys)?;
        Ok(ChangeOutcome::Removed(handle))
    }

    fn purge_item(&mut self, index: usize, handle: Handle) -> Result<ChangeOutcome, ApplyError> {
        let item = self.find_by_handle(handle)?;
        match &item {
            Some(item) if item.has_locator => self.purge_message(item)?,
            Some(item) => {
                let former_keys = self.sort_keys_before(index, item)?;
                let ordinal = self.next_ordinal();
                self.rows.log_version(item.id, ordinal, true)?;
                self.delete_item(item, former_keys)?;
            }
            None => {}
        }
        let (erased, bytes) = history::erase_item_history(self.tx, handle)?;
        self.rows.history_bytes -= bytes;
        self.operations_marked |= erased > 0;
        match (item, erased) {
            (None, 0) => Ok(ChangeOutcome::Conflict(None, None)),
            _ => {
                history::set_schedule_history_start(self.tx, Some(self.seq))?;
                Ok(ChangeOutcome::Removed(handle))
            }
        }
    }

    fn mark_undone(&mut self, id: OperationId, last_seq: Seq) -> Result<ChangeOutcome, ApplyError> {
        if history::has_later_batch(self.tx, id, last_seq)? {
            self.has_conflict = true;
            return Ok(ChangeOutcome::Conflict(None, None));
        }
        history::delete_stop_mark(self.tx, id)?;
        // The number of the undoing operation is known when the batch is finished.
        self.undone_operations.push(id);
        self.operations_marked = true;
        Ok(ChangeOutcome::Done)
    }

    fn mark_redone(&mut self, id: OperationId) -> Result<ChangeOutcome, ApplyError> {
        OPERATION.update_row(self.tx, id.to_number(), || {
            self.tx
                .prepare_cached("UPDATE operation SET undone_by = NULL WHERE id = ?1")?
                .execute([id])
        })?;
        self.operations_marked = true;
        Ok(ChangeOutcome::Done)
    }
}

fn is_conflict(outcome: &ChangeOutcome) -> bool {
    matches!(outcome, ChangeOutcome::Conflict(..))
}
