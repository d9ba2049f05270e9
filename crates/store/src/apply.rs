//! Writing: a batch of changes, in one transaction, under one sequence number.
//!
//! `batch_writer` applies changes to items, whose rows `item_rows` writes, `collections` those to
//! collections, `mail`, `mail_files`, `message_names`, `mail_copies`, `mail_purge` and `known_mail`
//! those of maildirs, and `labels` those of labels. This module is separate because only it holds
//! the lock and the transaction.

mod batch_writer;
mod collections;
mod item_rows;
mod known_mail;
mod labels;
mod mail;
mod mail_copies;
mod mail_files;
mod mail_purge;
mod message_names;
mod message_texts;
mod text_labels;

use crate::batch::{AppliedBatch, BatchChange, ChangeOutcome, InternalChange, Operation};
use crate::commit_record::CommittedState;
use crate::derived_index::{self, DerivedIndex};
use crate::error::{DatabaseError, Error, Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::handle::Handle;
use crate::meta::{EPOCH_KEY, MetaTable};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::store::Store;
use crate::uid_lookup::{UidFinder, UidLookup};
use crate::{Seq, history, uid_lookup};
use batch_writer::BatchWriter;
use larder_extract::IndexConfig;
use larder_extract::SortKeys;
use larder_format::contact::is_same_card;
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The data that a batch reads before it takes the lock, by the index of each change.
#[derive(Default)]
struct PrefetchedItems {
    /// The last batch, and the epoch of the store.
    seq: Seq,
    epoch: String,
    /// The sort keys of the item that the change replaces.
    replaced: HashMap<usize, ReplacedSortKeys>,
    /// For new UIDs: the collection of the item, and the handle that is free for it.
    free_handles: HashMap<usize, (CollectionRow, Handle)>,
}

/// The sort keys of an item; valid while it was last changed by this batch and its collection has
/// this index configuration.
struct ReplacedSortKeys {
    seq: Seq,
    index_config: Arc<IndexConfig>,
    keys: SortKeys,
}

/// The reason why a change could not be made.
enum ApplyError {
    /// A row could not be read or written.
    Row(DatabaseError),
    /// The change is refused.
    Store(Error),
}

impl<E: Into<DatabaseError>> From<E> for ApplyError {
    fn from(error: E) -> ApplyError {
        ApplyError::Row(error.into())
    }
}

impl Store {
    /// Writes changes in one transaction, as one batch of `operation`, and returns its number; the
    /// batch is on the disk when this returns. If nothing changes, nothing is written and no number
    /// is used.
    ///
    /// Waits for the write lock, which writers get in the order of their requests. Up to 4,000
    /// changes hold the lock for a short time only; items larger than a few megabytes should be
    /// written in a batch of their own.
    ///
    /// # Errors
    /// On any error, nothing of the batch is written; earlier batches remain.
    pub fn apply(
        &mut self,
        operation: &mut Operation,
        changes: Vec<BatchChange>,
    ) -> Result<AppliedBatch> {
        self.ensure_writable()?;
        let prefetched = self.prefetch(&changes).map_err(sqlite_error_at(&self.path))?;
        let lock = self.lock_files.acquire()?;
        let locked_at = Instant::now();
        self.verify_before_write(&lock)?;
        let mut applied =
            self.write_batch(operation, changes, prefetched).map_err(|error| match error {
                ApplyError::Row(error) => sqlite_error_at(&self.path)(error),
                ApplyError::Store(error) => error,
            })?;
        applied.lock_held = locked_at.elapsed();
        self.release_and_checkpoint(lock);
        Ok(applied)
    }

    fn write_batch(
        &self,
        operation: &mut Operation,
        changes: Vec<BatchChange>,
        mut prefetched: PrefetchedItems,
    ) -> Result<AppliedBatch, ApplyError> {
        let tx = self.conn.begin_write()?;
        let meta = MetaTable::read(&tx)?;
        let epoch = meta.text(EPOCH_KEY)?;
        if let Some((begun_in, id)) = &operation.undoes
            && *begun_in != epoch
        {
            return Err(ApplyError::Store(Error::RestoredDuringUndo { id: *id }));
        }
        if operation.expected_epoch.as_deref().is_some_and(|expected| expected != epoch) {
            return Err(ApplyError::Store(Error::StoreRestored));
        }
        if let Some((begun_in, id)) = &operation.id_in_epoch
            && *begun_in == epoch
            && history::is_ended(&tx, &meta, *id)?
        {
            return Err(ApplyError::Store(Error::OperationUndone { id: *id }));
        }
        if prefetched.epoch != epoch {
            // The store was restored in between: the same numbers may name other bytes.
            prefetched = PrefetchedItems::default();
        }
        let mut batch = BatchWriter::begin(&tx, &self.extractor, &prefetched, operation, &meta)?;
        let mut outcomes = Vec::with_capacity(changes.len());
        for (index, change) in changes.into_iter().enumerate() {
            outcomes.push(batch.apply_change(index, change)?);
        }
        let seq = batch.seq;
        // Without a commit, the transaction is rolled back.
        let has_conflict =
            outcomes.iter().any(|outcome| matches!(outcome, ChangeOutcome::Conflict(..)));
        if !batch.has_changes() || (operation.all_or_nothing && has_conflict) {
            return Ok(AppliedBatch { seq: seq - 1, outcomes, lock_held: Duration::ZERO });
        }
        derived_index::invalidate_stale(&tx, &self.extractor, &meta)?;
        if !DerivedIndex::Interval.is_current(&meta, &self.extractor) {
            history::set_schedule_history_start(&tx, Some(seq))?;
        }
        let written = batch.finish(operation, &meta)?;
        tx.commit()?;
        if operation.id_in_epoch.as_ref() != Some(&written) {
            operation.first_seq = Some(seq);
        }
        self.last_commit.set(written.1);
        operation.id_in_epoch = Some(written);
        self.lock_files.notify_commit(&CommittedState { seq, epoch: epoch.to_string() });
        Ok(AppliedBatch { seq, outcomes, lock_held: Duration::ZERO })
    }

    /// Reads and parses the items that the changes replace, before the lock is taken.
    fn prefetch(&self, changes: &[BatchChange]) -> rusqlite::Result<PrefetchedItems> {
        // One read transaction costs less than one for each change. Nothing is written in it, and
        // it is never upgraded.
        let tx = self.conn.begin_read()?;
        let sql = "SELECT (SELECT value FROM meta WHERE key = 'last_seq'), value FROM meta WHERE key = 'epoch'";
        let (seq, epoch) =
            tx.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut prefetched = PrefetchedItems { seq, epoch, ..PrefetchedItems::default() };
        let mut finder = UidFinder::new(&tx)?;
        let mut collections: HashMap<&str, Option<uid_lookup::CollectionKey>> = HashMap::new();
        let mut extractors = ExtractorCache::new(&self.extractor);
        for (index, change) in changes.iter().enumerate() {
            let found: Option<(ItemRow, Seq, CollectionRow)> = match change {
                BatchChange::Put(put) => {
                    if !collections.contains_key(&*put.collection) {
                        let found = uid_lookup::find_collection(&tx, &put.collection)?;
                        collections.insert(&put.collection, found);
                    }
                    match collections.get(&*put.collection) {
                        Some(Some(key)) => {
                            let (uid, recurrence) = (&put.uid, put.parsed.recurrence_id());
                            match finder.find(key, uid, recurrence)? {
                                UidLookup::Item(row) => find_item_by_row(&tx, row)?,
                                UidLookup::Free(handle) => {
                                    prefetched.free_handles.insert(index, (key.id, handle));
                                    None
                                }
                                UidLookup::HandleTaken => None,
                            }
                        }
                        _ => None,
                    }
                }
                BatchChange::Remove(handle, _)
                | BatchChange::Internal(InternalChange::Purge(handle)) => tx
                    .prepare_cached("SELECT id, seq, collection FROM item WHERE handle = ?1")?
                    .query_row([handle.to_bytes()], id_seq_collection_from_row)
                    .optional()?,
                _ => None,
            };
            if let Some((id, seq, collection)) = found
                && let Some(stored) = extractors.read_item(&tx, id)?
                && stored.is_sound
                && !is_unchanged_put(change, &stored.bytes)
            {
                let extractor = extractors.for_collection(&tx, collection)?;
                let keys = extractor.extract_sort_keys(&stored.bytes, &stored.context);
                let index_config = Arc::clone(extractor.index_config());
                prefetched.replaced.insert(index, ReplacedSortKeys { seq, index_config, keys });
            }
        }
        Ok(prefetched)
    }
}

fn find_item_by_row(
    tx: &ReadTransaction<'_>,
    row: ItemRow,
) -> rusqlite::Result<Option<(ItemRow, Seq, CollectionRow)>> {
    tx.prepare_cached("SELECT id, seq, collection FROM item WHERE id = ?1")?
        .query_row([row], id_seq_collection_from_row)
        .optional()
}

fn id_seq_collection_from_row(
    row: &rusqlite::Row<'_>,
) -> rusqlite::Result<(ItemRow, Seq, CollectionRow)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}

/// Returns whether a put has the same bytes as the stored item. Such a change has no effect, so the
/// stored item is not parsed.
fn is_unchanged_put(change: &BatchChange, bytes: &[u8]) -> bool {
    matches!(change, BatchChange::Put(put) if is_same_card(bytes, put.parsed.bytes()))
}
