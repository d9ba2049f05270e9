//! Refilling the indexes in steps, and merging their segments.
//!
//! All derived data can be computed again from the source bytes. Each step holds the write lock for
//! a short time only, so that other writers come in between.

use crate::combined_schedules::CombinedSchedules;
use crate::derived_index::{DerivedIndex, IndexState};
use crate::error::{DatabaseResult, Result, sqlite_error_at};
use crate::extractor_cache::ExtractorCache;
use crate::history;
use crate::index_tables::IndexTableWriter;
use crate::index_updates::{TERM_DECODER, position_changes, to_term_set};
use crate::interval_table;
use crate::item_meta::kind_condition;
use crate::lock::WorkLock;
use crate::mail::batch::{
    BegunWordSegments, WordErasure, index_word_parts_step, merge_words_step, write_words_ahead,
};
use crate::meta::{MetaTable, find_meta_number, read_meta_number, write_meta};
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::ITEM;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::series;
use crate::sort_index_pages::SortIndexPageWriter;
use crate::step_size::StepSize;
use crate::store::Store;
use crate::write_transaction::WriteTransaction;
use crate::{Kind, Seq};
use larder_extract::{Extractor, IndexConfig, IndexDocument};
use larder_index::{EncodedSegment, SegmentBuffer};
use rusqlite::OptionalExtension as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of items of one step of a rebuild.
const REBUILD_STEP_ITEMS: StepSize = StepSize::new(200, 20..=2000);
/// The number of rows of an index that one step of a rebuild deletes.
const CLEARED_ROWS_PER_STEP: usize = 1000;
/// The maximum number of items that are extracted under the lock to complete a rebuild.
const MAX_TAIL_ITEMS: usize = 50;
/// The number of bytes of the index that are merged in one transaction.
const MERGE_STEP_BYTES: i64 = 2 << 20;

/// The key in `meta` of the number of rebuilds on request.
const REBUILDS_KEY: &str = "index_rebuilds";

/// Segments are merged after a change of at least so many items.
const MIN_ITEMS_FOR_MERGE: u64 = 1_000;

/// A step of a refresh.
struct RefreshStep {
    /// The number of items that were extracted again.
    items: u64,
    lock_held: Duration,
}

impl Store {
    /// Merges about `bytes` of the index of words towards at most `max_segments`, in a transaction
    /// of its own, and adapts that size. Returns whether there is more to merge.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn merge_words(&mut self, max_segments: usize, bytes: &mut StepSize) -> Result<bool> {
        let budget_bytes = i64::try_from(bytes.current()).unwrap_or(i64::MAX);
        let step =
            &mut |tx: &WriteTransaction<'_>| merge_words_step(tx, max_segments, budget_bytes);
        let (has_more, held) = self.step_words(step)?;
        bytes.adapt(held);
        Ok(has_more)
    }

    /// Merges as [`Store::merge_words`], and then adds the trigrams of the dictionary: later merges
    /// throw those of their segments away, so this is for an index at rest. Returns whether there
    /// may be more to do.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn settle_words(&mut self, max_segments: usize, bytes: &mut StepSize) -> Result<bool> {
        let budget_bytes = i64::try_from(bytes.current()).unwrap_or(i64::MAX);
        let step = &mut |tx: &WriteTransaction<'_>| {
            Ok(merge_words_step(tx, max_segments, budget_bytes)?
                || index_word_parts_step(tx, budget_bytes)?)
        };
        let (has_more, held) = self.step_words(step)?;
        bytes.adapt(held);
        Ok(has_more)
    }

    /// Writes a part of the words of messages that are written later, in the rows before `end_row`,
    /// in a transaction of its own. So a segment can have the words of more messages than can be
    /// written in one transaction. The parts of a segment are written one after the other. Returns
    /// the time for which the lock was held.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write_words_ahead(
        &mut self,
        part: &EncodedSegment,
        end_row: u32,
        begun: &mut BegunWordSegments,
    ) -> Result<Duration> {
        let write = &mut |tx: &WriteTransaction<'_>| {
            write_words_ahead(tx, part, end_row, begun)?;
            Ok(false)
        };
        self.step_words(write).map(|(_, held)| held)
    }

    /// Rewrites the index of words and its dictionary without the words of removed messages, in
    /// steps that let other writers in between. The pages that had them are free then, but not
    /// overwritten.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn erase_removed_words(&mut self) -> Result<()> {
        let mut erasure = WordErasure::new();
        while self.step_words(&mut |tx| erasure.step(tx, MERGE_STEP_BYTES))?.0 {}
        Ok(())
    }

    /// Runs a transaction that returns whether there is more to do. Returns also the time for which
    /// it held the lock.
    fn step_words(
        &mut self,
        step: &mut dyn FnMut(&WriteTransaction<'_>) -> DatabaseResult<bool>,
    ) -> Result<(bool, Duration)> {
        self.ensure_writable()?;
        let lock = self.lock_files.acquire()?;
        let locked_at = Instant::now();
        self.verify_before_write(&lock)?;
        let mut merge = || -> DatabaseResult<bool> {
            let tx = self.conn.begin_write()?;
            let has_more = step(&tx)?;
            tx.commit()?;
            Ok(has_more)
        };
        let has_more = merge().map_err(sqlite_error_at(&self.path))?;
        let held = locked_at.elapsed();
        self.release_and_checkpoint(lock);
        Ok((has_more, held))
    }

    /// Returns whether an index is complete and has the current fingerprint. Otherwise queries
    /// scan.
    pub fn is_index_current(&self, set: DerivedIndex) -> Result<bool> {
        let meta = MetaTable::read(&self.autocommit_read()).map_err(sqlite_error_at(&self.path))?;
        Ok(set.is_current(&meta, &self.extractor))
    }

    /// Merges the many segments and runs that a large import leaves, in steps that let other
    /// writers in between, so that readers have few to search.
    pub fn merge_segments(&mut self) -> Result<()> {
        self.ensure_writable()?;
        loop {
            let lock = self.lock_files.acquire()?;
            self.verify_before_write(&lock)?;
            let step = || -> DatabaseResult<bool> {
                let tx = self.conn.begin_write()?;
                let more = force_merge_step(&tx)?;
                tx.commit()?;
                Ok(more)
            };
            let more = step().map_err(sqlite_error_at(&self.path))?;
            self.release_and_checkpoint(lock);
            if !more {
                return Ok(());
            }
        }
    }

    /// Merges segments and runs after a change of this many items, if they are many. The change is
    /// complete, and merging only makes reading faster, so an error is ignored.
    pub fn merge_after_change(&mut self, items: u64) {
        if items >= MIN_ITEMS_FOR_MERGE {
            let _unmerged = self.merge_segments();
        }
    }

    /// Refills the indexes that have another fingerprint or index configuration, or whose rebuild
    /// was interrupted, in steps that let other writers in between. Waits for another process that
    /// refills them. Returns the number of items that were extracted again.
    pub fn refresh(&mut self) -> Result<u64> {
        if self.are_indexes_current()? {
            return Ok(0);
        }
        let work = self.lock_files.acquire_work_lock()?;
        self.refresh_in_steps(&work)
    }

    /// The same when the store is opened: if another process refills the indexes, this one leaves
    /// it to that process and does not wait.
    pub(crate) fn refresh_when_opened(&mut self) -> Result<()> {
        if !self.are_indexes_current()?
            && let Some(work) = self.lock_files.try_work_lock()?
        {
            self.refresh_in_steps(&work)?;
        }
        Ok(())
    }

    fn are_indexes_current(&self) -> Result<bool> {
        let meta = MetaTable::read(&self.autocommit_read()).map_err(sqlite_error_at(&self.path))?;
        Ok(DerivedIndex::ALL.into_iter().all(|set| set.is_current(&meta, &self.extractor)))
    }

    fn refresh_in_steps(&mut self, _work: &WorkLock) -> Result<u64> {
        let (mut derived, mut size) = (0, REBUILD_STEP_ITEMS);
        while let Some(step) = self.refresh_step_of(size.current())? {
            derived += step.items;
            size.adapt(step.lock_held);
        }
        if derived > 0 {
            self.merge_segments()?;
        }
        Ok(derived)
    }

    /// Makes one step of a refresh, with at most this many items, under the lock. Returns the
    /// number of items that were extracted again; `None`: all indexes are complete.
    pub fn refresh_step(&mut self, items: usize) -> Result<Option<u64>> {
        Ok(self.refresh_step_of(items)?.map(|step| step.items))
    }

    fn refresh_step_of(&mut self, items: usize) -> Result<Option<RefreshStep>> {
        for set in DerivedIndex::ALL {
            if !set
                .is_complete(&self.autocommit_read(), &self.extractor)
                .map_err(sqlite_error_at(&self.path))?
            {
                return self.rebuild_step(set, items).map(Some);
            }
        }
        let began = Instant::now();
        let updated = self.update_zones_step(items)?;
        Ok(updated.map(|items| RefreshStep { items, lock_held: began.elapsed() }))
    }

    /// Deletes and refills all derived data. Views that are open get their answers anew.
    pub fn rebuild(&mut self) -> Result<u64> {
        self.ensure_writable()?;
        let work = self.lock_files.acquire_work_lock()?;
        {
            let lock = self.lock_files.acquire()?;
            self.verify_before_write(&lock)?;
            let invalidate_all = || -> DatabaseResult<()> {
                let tx = self.conn.begin_write()?;
                for set in DerivedIndex::ALL {
                    set.invalidate(&tx)?;
                }
                let rebuilds = find_meta_number(&tx, REBUILDS_KEY)?.unwrap_or_default();
                write_meta(&tx, REBUILDS_KEY, rebuilds + 1)?;
                Ok(tx.commit()?)
            };
            invalidate_all().map_err(sqlite_error_at(&self.path))?;
        }
        self.refresh_in_steps(&work)
    }

    /// Refills an index with the next items. Items are parsed before the lock is taken, except for
    /// schedules; an item that changed in the meantime is extracted again under the lock.
    fn rebuild_step(&mut self, set: DerivedIndex, items: usize) -> Result<RefreshStep> {
        self.ensure_writable()?;
        let path = self.path.clone();
        let fingerprint = set.fingerprint(&self.extractor);
        let epoch = history::read_epoch(&self.autocommit_read()).map_err(sqlite_error_at(&path))?;
        let state = set
            .read_state(&self.autocommit_read())
            .map_err(sqlite_error_at(&path))?
            .unwrap_or_default();
        let progress = IndexState::parse(&state, &fingerprint);
        let page = match progress {
            IndexState::Rebuilding(last) => self
                .extract_page(&self.autocommit_read(), set, last, items)
                .map_err(sqlite_error_at(&path))?,
            IndexState::Complete | IndexState::Stale => Vec::new(),
        };
        let mut combined = std::mem::take(&mut self.combined_schedules);
        let lock = self.lock_files.acquire()?;
        let locked_at = Instant::now();
        self.verify_before_write(&lock)?;
        let mut step = || -> DatabaseResult<u64> {
            let tx = self.conn.begin_write()?;
            if set.read_state(&tx)?.unwrap_or_default() != state
                || history::read_epoch(&tx)? != epoch
            {
                return Ok(0); // Somebody else made a step, or restored the store: look again.
            }
            let IndexState::Rebuilding(last) = progress else {
                if set.clear_step(&tx, CLEARED_ROWS_PER_STEP)? {
                    tx.commit()?;
                    return Ok(0);
                }
                set.write_state(&tx, &IndexState::format_rebuild(None, &fingerprint))?;
                if set == DerivedIndex::Interval {
                    interval_table::write_zone_data_version(&tx, &self.extractor)?;
                }
                tx.commit()?;
                return Ok(0);
            };
            combined.keep_for(&epoch, read_meta_number(&tx, "last_seq")?);
            index_page(&tx, set, &self.extractor, &page, &mut combined)?;
            // Items that were added while the rebuild waited for the lock remain to be indexed. If
            // there are only a few, they are extracted under the lock; otherwise a continuous
            // writer could prevent the rebuild from ending.
            let last = page.last().map_or(last, |item| Some(item.id));
            let gap = MAX_TAIL_ITEMS.min(items);
            let mut rest = self.extract_page(&tx, set, last, gap + 1)?;
            if rest.len() > gap {
                rest.clear();
                set.write_state(&tx, &IndexState::format_rebuild(last, &fingerprint))?;
            } else {
                index_page(&tx, set, &self.extractor, &rest, &mut combined)?;
                combined = CombinedSchedules::default();
                set.write_state(&tx, &fingerprint)?;
            }
            tx.commit()?;
            Ok((page.len() + rest.len()) as u64)
        };
        let items = step().map_err(sqlite_error_at(&path))?;
        let lock_held = locked_at.elapsed();
        self.release_and_checkpoint(lock);
        self.combined_schedules = combined;
        Ok(RefreshStep { items, lock_held })
    }

    /// Extracts the next items after `last`, at most `limit`; `None`: the first ones.
    fn extract_page(
        &self,
        tx: &ReadTransaction<'_>,
        set: DerivedIndex,
        last: Option<ItemRow>,
        limit: usize,
    ) -> DatabaseResult<Vec<ExtractedItem>> {
        // What is derived from messages and commits is not derived from bytes in the store.
        let is_in_index = |kind: Kind| match set {
            DerivedIndex::Interval => kind.has_schedule(),
            DerivedIndex::Text | DerivedIndex::Sort => !kind.has_locator(),
        };
        let sql = format!(
            "SELECT i.id, i.seq, i.collection FROM item i WHERE i.id > coalesce(?1, 0) AND {}
             ORDER BY i.id LIMIT ?2",
            kind_condition(is_in_index)
        );
        let mut select = tx.prepare_cached(&sql)?;
        let heads = select
            .query_map((last, limit as i64), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(ItemRow, Seq, CollectionRow)>>>()?;
        let mut extractors = ExtractorCache::new(&self.extractor);
        let derive = |(id, seq, collection)| {
            let summary = Arc::clone(extractors.for_collection(tx, collection)?.index_config());
            let entry = match set {
                // Computed when it is written: it depends on other items, which other writers may
                // change.
                DerivedIndex::Interval => None,
                _ => {
                    let stored = extractors.read_item(tx, id)?;
                    stored.map(|stored| extractors.extract(tx, &stored)).transpose()?
                }
            };
            Ok(ExtractedItem { id, seq, index_config: summary, entry: entry.unwrap_or_default() })
        };
        heads.into_iter().map(derive).collect()
    }
}

/// The entry of an item; valid while the item was last changed by this batch and its collection has
/// this index configuration.
struct ExtractedItem {
    id: ItemRow,
    seq: Seq,
    index_config: Arc<IndexConfig>,
    entry: IndexDocument,
}

/// Moves level 0 of the sort index into level 1, or [`MERGE_STEP_BYTES`] of the text index towards
/// fewer segments. Returns whether there was anything to move.
fn force_merge_step(tx: &WriteTransaction<'_>) -> DatabaseResult<bool> {
    if larder_index::compact_level_zero(&SortIndexPageWriter::new(tx))? {
        return Ok(true);
    }
    let text = DerivedIndex::Text.index_id();
    larder_index::force_merge_step(&IndexTableWriter::new(tx), text, MERGE_STEP_BYTES)
}

/// Writes the stored fields of an item. Other rules may find a UID in bytes in which the former
/// rules found none; `uid_origin` is then 2.
fn write_stored_fields(
    tx: &WriteTransaction<'_>,
    item: ItemRow,
    entry: &IndexDocument,
) -> rusqlite::Result<()> {
    let sql = "UPDATE item SET stored_fields = ?2 WHERE id = ?1 RETURNING uid_origin";
    let uid_origin: i64 =
        tx.prepare_cached(sql)?.query_row((item, &entry.stored_fields), |row| row.get(0))?;
    if uid_origin != 1 || !entry.has_uid {
        return Ok(());
    }
    ITEM.update_row(tx, item.to_number(), || {
        tx.prepare_cached("UPDATE item SET uid_origin = 2 WHERE id = ?1")?.execute([item])
    })
}

fn index_page(
    tx: &WriteTransaction<'_>,
    set: DerivedIndex,
    extractor: &Extractor,
    page: &[ExtractedItem],
    combined: &mut CombinedSchedules,
) -> DatabaseResult<()> {
    let mut gathered = SegmentBuffer::default();
    let mut extractors =
        ExtractorCache::new(extractor).with_combined_schedules(std::mem::take(combined));
    let mut sort_changes = Vec::new();
    let mut writer = interval_table::IntervalWriter::new(tx, extractor);
    for ExtractedItem { id, seq, index_config: summary, entry } in page {
        let now: Option<(Seq, CollectionRow)> = tx
            .prepare_cached("SELECT seq, collection FROM item WHERE id = ?1")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((now, collection)) = now else { continue };
        if set == DerivedIndex::Interval {
            // The schedule depends on other items of the UID.
            let times = series::compute_schedule(tx, &mut extractors, *id)?;
            writer.put(collection, *id, times.as_ref(), false)?;
            continue;
        }
        let entry = if now == *seq
            && extractors.for_collection(tx, collection)?.has_index_config(summary)
        {
            entry.clone()
        } else {
            match extractors.read_item(tx, *id)? {
                Some(stored) => extractors.extract(tx, &stored)?,
                None => continue,
            }
        };
        if set == DerivedIndex::Text {
            write_stored_fields(tx, *id, &entry)?;
        }
        match set {
            DerivedIndex::Sort => {
                sort_changes.extend(position_changes(*id, collection, entry.sort_keys, true));
            }
            _ => gathered.put(id.to_number(), to_term_set(entry.terms)),
        }
    }
    *combined = std::mem::take(extractors.combined_schedules());
    match set {
        DerivedIndex::Interval => writer.finish()?,
        DerivedIndex::Sort => {
            larder_index::write_position_changes(&SortIndexPageWriter::new(tx), sort_changes)?;
        }
        DerivedIndex::Text => {
            let seq = read_meta_number(tx, "last_seq")?;
            gathered.flush(&IndexTableWriter::new(tx), set.index_id(), seq, TERM_DECODER)?;
        }
    }
    Ok(())
}
