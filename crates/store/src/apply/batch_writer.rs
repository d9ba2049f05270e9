//! Writing the items of a batch: put, update, remove and purge.
//!
//! It takes no lock and begins no transaction (`apply` does both). Apart from `collections` because
//! these are the rules of items: conflicts, duplicates, and the versions to record.

use super::{ApplyError, PrefetchedItems, ReplacedSortKeys};
use crate::batch::{BatchChange, ChangeOutcome, InternalChange, ItemPut, Operation, Precondition};
use crate::calendar_context_table::{self, ContextRefCounts};
use crate::error::RowResult;
use crate::extractor_cache::ExtractorCache;
use crate::handle::Handle;
use crate::index_updates::IndexUpdates;
use crate::item_meta::kind_condition;
use crate::meta::{MetaTable, set_meta};
use crate::row_ids::{CalendarContextRow, ItemRow, OperationId};
use crate::series::ItemLocation;
use crate::uid_lookup::{self, CollectionKey, UidFinder, UidLookup};
use crate::write_transaction::WriteTransaction;
use crate::{CollectionType, Kind, Seq, blob, history};
use larder_extract::is_newer_revision;
use larder_extract::{Extractor, SortKeys};
use larder_format::contact::{derive_uid, is_same_card};
use rusqlite::{CachedStatement, OptionalExtension as _};
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// The item that has the UID of an incoming item.
enum ExistingItem {
    Item(StoredItem),
    /// No item has it; this handle is free, if that is known.
    Absent(Option<Handle>),
}

/// An item as it is in the transaction.
struct StoredItem {
    id: ItemRow,
    handle: Handle,
    seq: Seq,
    location: ItemLocation,
}

/// The first batch and the number of an operation that puts each item once.
struct ImportDedup {
    first_batch: Option<(Seq, OperationId)>,
}

impl ImportDedup {
    fn from_operation(operation: &Operation, epoch: &str) -> ImportDedup {
        let written = operation.id_in_epoch.as_ref().filter(|(of, _)| of == epoch);
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
    /// The last row number given to an item.
    last_item_row: i64,
    history_bytes: i64,
    index_updates: IndexUpdates,
    context_refs: ContextRefCounts,
    /// The handles that were given to new items.
    new_handles: HashSet<Handle>,
    /// For an operation that puts each item once: the items it put that were unchanged, and its
    /// earlier batches.
    unchanged_items: HashSet<ItemRow>,
    dedup: Option<ImportDedup>,
    finder: UidFinder<'a>,
    inserts: InsertStatements<'a>,
    pub(super) collections: HashMap<String, (CollectionKey, CollectionType)>,
    added: i64,
    updated: i64,
    removed: i64,
    /// Operations that this one undoes.
    undone_operations: Vec<OperationId>,
    /// Whether operations were marked as undone or redone, which are changes without an ordinal.
    operations_marked: bool,
    /// Whether a precondition of a change failed.
    has_conflict: bool,
}

/// Statements that a batch runs for each new item.
#[derive(Default)]
struct InsertStatements<'a> {
    item: Option<CachedStatement<'a>>,
    source_bytes: Option<CachedStatement<'a>>,
}

impl<'a> InsertStatements<'a> {
    fn item(&mut self, tx: &'a WriteTransaction<'a>) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepare_once(
            &mut self.item,
            tx,
            "INSERT INTO item(id, collection, kind, uid, recurrence_id, uid_origin, handle, seq, ordinal, stored_fields,
                              calendar_context) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
    }

    fn source_bytes(
        &mut self,
        tx: &'a WriteTransaction<'a>,
    ) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepare_once(&mut self.source_bytes, tx, "INSERT INTO source_bytes VALUES(?1, ?2, ?3)")
    }
}

fn prepare_once<'s, 'a>(
    kept: &'s mut Option<CachedStatement<'a>>,
    tx: &'a WriteTransaction<'a>,
    sql: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    let statement = match kept.take() {
        Some(statement) => statement,
        None => tx.prepare_cached(sql)?,
    };
    Ok(kept.insert(statement))
}

impl<'a> BatchWriter<'a> {
    pub(super) fn begin(
        tx: &'a WriteTransaction<'a>,
        extractor: &'a Extractor,
        known: &'a PrefetchedItems,
        operation: &Operation,
        meta: &MetaTable,
    ) -> RowResult<BatchWriter<'a>> {
        Ok(BatchWriter {
            tx,
            extractors: ExtractorCache::new(extractor),
            prefetched: known,
            seq: meta.number("last_seq")? + 1,
            ordinal: 0,
            last_item_row: meta.number("last_item")?,
            history_bytes: meta.number("history_bytes")?,
            index_updates: IndexUpdates::begin(extractor, meta),
            context_refs: ContextRefCounts::default(),
            new_handles: HashSet::new(),
            unchanged_items: HashSet::new(),
            dedup: operation
                .puts_each_once
                .then(|| ImportDedup::from_operation(operation, meta.text("epoch"))),
            finder: UidFinder::new(tx)?,
            inserts: InsertStatements::default(),
            collections: HashMap::new(),
            added: 0,
            updated: 0,
            removed: 0,
            undone_operations: Vec::new(),
            operations_marked: false,
            has_conflict: false,
        })
    }

    pub(super) fn has_changes(&self) -> bool {
        self.ordinal > 0 || self.operations_marked
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
            BatchChange::Remove(handle, expect) => {
                let outcome = self.remove_item(index, handle, expect)?;
                self.has_conflict |= is_conflict(&outcome);
                Ok(outcome)
            }
            BatchChange::Internal(InternalChange::MarkUndone(_))
            | BatchChange::Internal(InternalChange::MarkRedone(_))
                if self.has_conflict =>
            {
                Ok(ChangeOutcome::Conflict(None, None))
            }
            BatchChange::Internal(InternalChange::Purge(handle)) => self.purge_item(index, handle),
            BatchChange::CreateCollection(name, kind) => self.create_new_collection(&name, kind),
            BatchChange::SetIndexConfig(name, summary) => self.set_index_config(&name, &summary),
            BatchChange::SetCollectionProperties(name, head) => {
                self.set_collection_properties(&name, head.as_deref())
            }
            BatchChange::RenameCollection(from, to) => self.rename_collection(&from, &to),
            BatchChange::RemoveCollection(name) => self.remove_collection(&name),
            BatchChange::Internal(InternalChange::RestoreCollection(id)) => {
                self.restore_collection(id)
            }
            BatchChange::Internal(InternalChange::MarkUndone(id)) => self.mark_operation(id, true),
            BatchChange::Internal(InternalChange::MarkRedone(id)) => self.mark_operation(id, false),
        }
    }

    /// Writes the gathered changes, and the rows of the batch. Returns the epoch and the number of
    /// the operation.
    pub(super) fn finish(
        mut self,
        operation: &Operation,
        meta: &MetaTable,
    ) -> Result<(String, OperationId), ApplyError> {
        let tx = self.tx;
        self.index_updates.write(tx, &mut self.extractors, self.seq)?;
        self.context_refs.write(tx)?;
        let epoch = meta.text("epoch");
        let id = match &operation.id_in_epoch {
            Some((of, id)) if *of == epoch => *id,
            _ => {
                tx.prepare_cached(
                    "INSERT INTO operation(verb, detail, started_ms, undoes, added, updated, removed)
                     VALUES(?1, ?2, ?3, ?4, 0, 0, 0)",
                )?
                .execute((
                    &operation.verb,
                    &operation.detail,
                    operation.started_at_ms,
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
        tx.prepare_cached("INSERT INTO batch VALUES(?1, ?2)")?.execute((self.seq, id))?;
        for undone in &self.undone_operations {
            tx.prepare_cached("UPDATE operation SET undone_by = ?2 WHERE id = ?1")?
                .execute((undone, id))?;
        }
        let kept = history::prune(tx, id, operation.started_at_ms, self.history_bytes)?;
        for (key, now) in
            [("last_seq", self.seq), ("last_item", self.last_item_row), ("history_bytes", kept)]
        {
            if meta.number(key)? != now {
                set_meta(tx, key, now)?;
            }
        }
        calendar_context_table::delete_unreferenced(tx)?;
        Ok((epoch.to_string(), id))
    }

    pub(super) fn next_ordinal(&mut self) -> i64 {
        self.ordinal += 1;
        self.ordinal
    }

    /// Looks up the item that the change at `index` puts, unless that was done before the lock was
    /// taken.
    fn find_existing(
        &mut self,
        index: usize,
        of: &CollectionKey,
        put: &ItemPut,
    ) -> rusqlite::Result<ExistingItem> {
        if let Some((collection, handle)) = self.prefetched.free_handles.get(&index)
            && self.prefetched.seq + 1 == self.seq
            && *collection == of.id
            && !self.new_handles.contains(handle)
        {
            return Ok(ExistingItem::Absent(Some(*handle)));
        }
        self.find_by_uid(of, &put.uid, put.parsed.recurrence_id())
    }

    fn find_by_uid(
        &mut self,
        of: &CollectionKey,
        uid: &str,
        recurrence: &str,
    ) -> rusqlite::Result<ExistingItem> {
        let row = match self.finder.find(of, uid, recurrence)? {
            UidLookup::Item(row) => row,
            UidLookup::Free(handle) => return Ok(ExistingItem::Absent(Some(handle))),
            UidLookup::HandleTaken => return Ok(ExistingItem::Absent(None)),
        };
        self.tx
            .prepare_cached(
                "SELECT id, handle, seq, kind, collection, uid, recurrence_id FROM item WHERE id = ?1",
            )?
            .query_row([row], stored_item_from_row)
            .map(ExistingItem::Item)
    }

    fn find_by_handle(&self, handle: Handle) -> rusqlite::Result<Option<StoredItem>> {
        self.tx
            .prepare_cached(concat!(
                "SELECT id, handle, seq, kind, collection, uid, recurrence_id FROM item ",
                "WHERE handle = ?1"
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
        if let Some(ReplacedSortKeys { seq, index_config: summary, keys }) =
            self.prefetched.replaced.get(&index)
            && *seq == item.seq
            && extractor.has_index_config(summary)
        {
            return Ok(keys.clone());
        }
        let Some(stored) = self.extractors.read_item(self.tx, item.id)? else {
            return Ok(SortKeys::new());
        };
        let extractor = self.extractors.for_collection(self.tx, collection)?;
        Ok(extractor.extract_sort_keys(&stored.bytes, &stored.context))
    }

    fn put_item(&mut self, index: usize, put: ItemPut) -> Result<ChangeOutcome, ApplyError> {
        if matches!(put.precondition, Precondition::UnchangedSince(_))
            && self.find_collection(&put.collection)?.is_none()
        {
            return Ok(ChangeOutcome::Conflict(None, None));
        }
        let into = self.find_or_create_collection(&put.collection, put.parsed.kind())?;
        let item = match self.find_existing(index, &into, &put)? {
            ExistingItem::Item(item) => item,
            ExistingItem::Absent(_)
                if matches!(put.precondition, Precondition::UnchangedSince(_)) =>
            {
                return Ok(ChangeOutcome::Conflict(None, None));
            }
            ExistingItem::Absent(free) => {
                return Ok(ChangeOutcome::Added(self.add_item(&into, put, free)?));
            }
        };
        let second = match put.precondition {
            Precondition::DuplicateInImport => true,
            Precondition::UnchangedSince(_) => false,
            _ => self.is_repeat_in_operation(&item)?,
        };
        let there = blob::require_source_bytes(self.tx, item.id)?;
        let same = is_same_card(&there, put.parsed.bytes());
        // The same bytes mean another time if the calendar defines the zone differently.
        let same = same && (second || self.has_same_calendar_context(&item, &put)?);
        if second && !same {
            return self.put_duplicate(&into, put);
        }
        let outcome = match put.precondition {
            Precondition::UnchangedSince(seq) if seq != item.seq => {
                ChangeOutcome::Conflict(Some(item.handle), Some(item.seq))
            }
            _ if same => ChangeOutcome::Unchanged(item.handle),
            Precondition::Absent => ChangeOutcome::Conflict(Some(item.handle), Some(item.seq)),
            Precondition::NotNewer if is_newer_revision(&there, put.parsed.bytes()) => {
                ChangeOutcome::Conflict(Some(item.handle), Some(item.seq))
            }
            Precondition::UnchangedSince(_) => ChangeOutcome::Updated(item.handle),
            _ => match self.find_duplicate(&into, &item, &put)? {
                Some(beside) => ChangeOutcome::UnchangedDuplicate(beside),
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

    /// Returns whether this operation puts each item once, and has put this one already.
    fn is_repeat_in_operation(&self, item: &StoredItem) -> rusqlite::Result<bool> {
        let Some(once) = &self.dedup else { return Ok(false) };
        if item.seq == self.seq || self.unchanged_items.contains(&item.id) {
            return Ok(true);
        }
        let Some((_, id)) = once.first_batch.filter(|(began, _)| item.seq >= *began) else {
            return Ok(false);
        };
        // In the last batch, or in an earlier one whose item another operation has changed since.
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
        into: &CollectionKey,
        item: &StoredItem,
        put: &ItemPut,
    ) -> rusqlite::Result<Option<Handle>> {
        let uid = derive_uid(put.parsed.bytes());
        Ok(match self.find_by_uid(into, &uid, put.parsed.recurrence_id())? {
            ExistingItem::Item(beside) if beside.id != item.id => Some(beside.handle),
            _ => None,
        })
    }

    /// Adds a second item with the UID of another, under a UID made from its bytes.
    fn put_duplicate(
        &mut self,
        into: &CollectionKey,
        mut put: ItemPut,
    ) -> Result<ChangeOutcome, ApplyError> {
        put.uid = derive_uid(put.parsed.bytes());
        put.derived_uid = true;
        Ok(match self.find_by_uid(into, &put.uid, put.parsed.recurrence_id())? {
            ExistingItem::Item(item) => ChangeOutcome::UnchangedDuplicate(item.handle),
            ExistingItem::Absent(free) => {
                ChangeOutcome::AddedAsDuplicate(self.add_item(into, put, free)?)
            }
        })
    }

    /// Adds an item, with this handle if one is known to be free.
    fn add_item(
        &mut self,
        into: &CollectionKey,
        mut put: ItemPut,
        free: Option<Handle>,
    ) -> Result<Handle, ApplyError> {
        let entry =
            self.extractors.for_collection(self.tx, into.id)?.take_or_extract(&mut put.parsed);
        self.last_item_row += 1;
        let (id, ordinal) = (ItemRow::from_number(self.last_item_row), self.next_ordinal());
        let recurrence = put.parsed.recurrence_id();
        let handle = match free {
            Some(handle) => handle,
            None => {
                self.finder.record_collision();
                uid_lookup::allocate_handle(self.tx, into, &put.uid, recurrence, id)?
            }
        };
        self.new_handles.insert(handle);
        let frame = self.acquire_calendar_context(&put)?;
        self.inserts.item(self.tx)?.execute((
            id,
            into.id,
            put.parsed.kind().number(),
            &put.uid,
            recurrence,
            encode_uid_origin(put.derived_uid, entry.has_uid),
            handle.to_bytes(),
            self.seq,
            ordinal,
            &entry.stored_fields,
            frame,
        ))?;
        let whose =
            ItemLocation::new(put.parsed.kind(), into.id, &put.uid, put.parsed.recurrence_id());
        let place = blob::store_bytes(self.tx, put.parsed.into_bytes())?;
        self.inserts.source_bytes(self.tx)?.execute((id, place.bytes, place.blob_hash))?;
        self.added += 1;
        self.index_updates.put(id, whose, SortKeys::new(), entry);
        Ok(handle)
    }

    fn update_item(
        &mut self,
        index: usize,
        item: &StoredItem,
        mut put: ItemPut,
    ) -> Result<(), ApplyError> {
        let old = self.sort_keys_before(index, item)?;
        let collection = item.location.collection;
        let entry =
            self.extractors.for_collection(self.tx, collection)?.take_or_extract(&mut put.parsed);
        let ordinal = self.next_ordinal();
        self.log_item_version(item, ordinal, false)?;
        let (kind, frame) = (put.parsed.kind(), self.acquire_calendar_context(&put)?);
        let place = blob::store_bytes(self.tx, put.parsed.into_bytes())?;
        self.tx
            .prepare_cached("UPDATE source_bytes SET bytes = ?2, blob_hash = ?3 WHERE item = ?1")?
            .execute((item.id, place.bytes, place.blob_hash))?;
        self.tx
            .prepare_cached(
                "UPDATE item SET seq = ?2, ordinal = ?3, uid_origin = ?4, stored_fields = ?5, kind = ?6, calendar_context = ?7
                 WHERE id = ?1",
            )?
            .execute((
                item.id,
                self.seq,
                ordinal,
                encode_uid_origin(put.derived_uid, entry.has_uid),
                &entry.stored_fields,
                kind.number(),
                frame,
            ))?;
        self.updated += 1;
        self.index_updates.put(item.id, item.location.clone(), old, entry);
        Ok(())
    }

    fn has_same_calendar_context(
        &self,
        item: &StoredItem,
        put: &ItemPut,
    ) -> rusqlite::Result<bool> {
        if !item.location.is_in_calendar {
            return Ok(true);
        }
        let row: Option<CalendarContextRow> = self
            .tx
            .prepare_cached("SELECT calendar_context FROM item WHERE id = ?1")?
            .query_row([item.id], |row| row.get(0))?;
        let frame = match row {
            Some(row) => calendar_context_table::read_context(self.tx, row)?,
            None => None,
        };
        Ok(frame
            .as_deref()
            .is_some_and(|is| put.parsed.calendar_context().is_some_and(|to| is.is_equivalent(to)))
            || (frame.is_none() && put.parsed.calendar_context().is_none()))
    }

    fn acquire_calendar_context(
        &mut self,
        put: &ItemPut,
    ) -> rusqlite::Result<Option<CalendarContextRow>> {
        put.parsed
            .calendar_context()
            .map(|frame| self.context_refs.acquire(self.tx, frame))
            .transpose()
    }

    /// Copies the current version of an item into `item_history`. Bytes in a blob are not copied.
    fn log_item_version(
        &mut self,
        item: &StoredItem,
        ordinal: i64,
        removed: bool,
    ) -> rusqlite::Result<()> {
        self.tx
            .prepare_cached(&LOG_ITEM_VERSION_SQL)?
            .execute((item.id, self.seq, ordinal, removed))?;
        // The reference to a blob moves from `source_bytes` to `item_history`: its count stays the
        // same.
        self.history_bytes += self
            .tx
            .prepare_cached(
                "SELECT coalesce(length(s.bytes), length(b.bytes), 0)
                 FROM source_bytes s LEFT JOIN blob b ON b.hash = s.blob_hash WHERE s.item = ?1",
            )?
            .query_row([item.id], |row| row.get::<_, i64>(0))?;
        Ok(())
    }

    fn remove_item(
        &mut self,
        index: usize,
        handle: Handle,
        expect: Precondition,
    ) -> Result<ChangeOutcome, ApplyError> {
        let Some(item) = self.find_by_handle(handle)? else {
            return Ok(ChangeOutcome::Conflict(None, None));
        };
        if let Precondition::UnchangedSince(seq) = expect
            && seq != item.seq
        {
            return Ok(ChangeOutcome::Conflict(Some(handle), Some(item.seq)));
        }
        let old = self.sort_keys_before(index, &item)?;
        let ordinal = self.next_ordinal();
        self.log_item_version(&item, ordinal, true)?;
        self.delete_item_rows(&item, old)?;
        Ok(ChangeOutcome::Removed(handle))
    }

    fn delete_item_rows(&mut self, item: &StoredItem, old: SortKeys) -> Result<(), ApplyError> {
        self.index_updates.remove(item.id, item.location.clone(), old);
        uid_lookup::delete_collision(self.tx, item.id)?;
        self.tx.prepare_cached("DELETE FROM source_bytes WHERE item = ?1")?.execute([item.id])?;
        self.tx.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([item.id])?;
        self.removed += 1;
        Ok(())
    }

    fn purge_item(&mut self, index: usize, handle: Handle) -> Result<ChangeOutcome, ApplyError> {
        let item = self.find_by_handle(handle)?;
        if let Some(item) = &item {
            let old = self.sort_keys_before(index, item)?;
            let ordinal = self.next_ordinal();
            self.log_item_version(item, ordinal, true)?;
            self.delete_item_rows(item, old)?;
        }
        let (erased, bytes) = history::erase_item_history(self.tx, handle)?;
        self.history_bytes -= bytes;
        self.operations_marked |= erased > 0;
        match (item, erased) {
            (None, 0) => Ok(ChangeOutcome::Conflict(None, None)),
            _ => {
                history::mark_rewrite_pending(self.tx, self.seq)?;
                Ok(ChangeOutcome::Removed(handle))
            }
        }
    }

    fn mark_operation(
        &mut self,
        id: OperationId,
        undone: bool,
    ) -> Result<ChangeOutcome, ApplyError> {
        match undone {
            // The number of the undoing operation is known when the batch is finished.
            true => self.undone_operations.push(id),
            false => drop(
                self.tx
                    .prepare_cached("UPDATE operation SET undone_by = NULL WHERE id = ?1")?
                    .execute([id])?,
            ),
        }
        self.operations_marked = true;
        Ok(ChangeOutcome::Done)
    }
}

/// Copies an item into `item_history`, with its schedule if its kind has one.
static LOG_ITEM_VERSION_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO item_history(seq, ordinal, handle, collection, kind, removed, since, uid,
                                  recurrence_id, uid_origin, bytes, blob_hash, calendar_context,
                                  item, schedule)
         SELECT ?2, ?3, i.handle, i.collection, i.kind, ?4, i.seq, i.uid, i.recurrence_id,
                i.uid_origin, s.bytes, s.blob_hash, i.calendar_context, i.id,
                CASE WHEN {} THEN (SELECT data FROM idx_schedule WHERE item = i.id) END
         FROM item i JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1",
        kind_condition(Kind::has_schedule)
    )
});

/// Returns the value of `item.uid_origin`.
fn encode_uid_origin(derived_uid: bool, names_uid: bool) -> i64 {
    i64::from(derived_uid) * (1 + i64::from(names_uid))
}

fn is_conflict(outcome: &ChangeOutcome) -> bool {
    matches!(outcome, ChangeOutcome::Conflict(..))
}

fn stored_item_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredItem> {
    Ok(StoredItem {
        id: row.get(0)?,
        handle: Handle::from_bytes(&row.get::<_, Vec<u8>>(1)?),
        seq: row.get(2)?,
        location: ItemLocation {
            is_in_calendar: Kind::from_number(row.get(3)?)
                .is_some_and(|kind| kind.collection_type().has_schedules()),
            collection: row.get(4)?,
            uid: row.get(5)?,
            recurrence_id: row.get(6)?,
            is_new: false,
        },
    })
}
