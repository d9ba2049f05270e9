//! The changes that one batch makes to the indexes.
//!
//! They are collected so that each index is written once. Separate from `index_maintenance`, which
//! refills whole indexes.

use crate::Seq;
use crate::derived_index::{DerivedIndex, IndexState};
use crate::error::DatabaseResult;
use crate::extractor_cache::ExtractorCache;
use crate::history;
use crate::index_tables::IndexTableWriter;
use crate::interval_table;
use crate::meta::MetaTable;
use crate::row_ids::{CollectionRow, ItemRow};
use crate::series::{self, ItemLocation};
use crate::sort_index_pages::SortIndexPageWriter;
use crate::write_transaction::WriteTransaction;
use larder_extract::{
    ExtractedTerms, Extractor, IndexDocument, ParsedSchedule, SeriesMember, SortKeys, term,
};
use larder_index::{
    PartitionOrder, PositionChange, SegmentBuffer, SortPosition, TermDecoder, TermSet,
};
use std::collections::{BTreeMap, HashSet};
use std::mem;

/// Unpacks a packed term.
pub(crate) const TERM_DECODER: TermDecoder = term::unpack_term;

/// The changes of a batch to the indexes.
pub(crate) struct IndexUpdates {
    text: SegmentBuffer,
    sort: BTreeMap<ItemRow, SortUpdate>,
    schedules: BTreeMap<ItemRow, ScheduleUpdate>,
    /// The state of each index: during a rebuild, the rebuild adds the items after the last one.
    text_state: IndexState,
    sort_state: IndexState,
    schedule_state: IndexState,
}

/// A calendar item that the batch changed.
struct ScheduleUpdate {
    location: ItemLocation,
    change: ScheduleChange,
}

/// The effect of a batch on the schedule of an item.
enum ScheduleChange {
    /// The item was put; its schedule, if it has one.
    Put(Option<Box<ParsedSchedule>>),
    /// The item was removed.
    Remove,
}

/// The sort keys of an item in its collection: before the batch, and from now on.
struct SortUpdate {
    collection: CollectionRow,
    before: SortKeys,
    after: SortKeys,
}

impl IndexUpdates {
    pub(crate) fn begin(extractor: &Extractor, meta: &MetaTable) -> IndexUpdates {
        let state = |set: DerivedIndex| {
            IndexState::parse(meta.index_state(set.meta_key()), &set.fingerprint(extractor))
        };
        IndexUpdates {
            text: SegmentBuffer::default(),
            sort: BTreeMap::new(),
            schedules: BTreeMap::new(),
            text_state: state(DerivedIndex::Text),
            sort_state: state(DerivedIndex::Sort),
            schedule_state: state(DerivedIndex::Interval),
        }
    }

    /// Returns whether the batch changed this item before.
    pub(crate) fn has_item(&self, item: ItemRow) -> bool {
        self.sort.contains_key(&item)
    }

    /// Sets the entry of an item of this collection. `was`: its sort keys before the batch.
    pub(crate) fn put(
        &mut self,
        item: ItemRow,
        location: ItemLocation,
        was: SortKeys,
        entry: IndexDocument,
    ) {
        if self.text_state.has_reached(item) {
            self.text.put(item.to_number(), to_term_set(entry.terms));
        }
        self.put_sort_keys(item, location.collection, was, entry.sort_keys);
        if location.is_in_calendar {
            self.schedules.insert(
                item,
                ScheduleUpdate { location, change: ScheduleChange::Put(entry.parsed_schedule) },
            );
        }
    }

    /// Removes the entry of an item of this collection. `was`: its sort keys before the batch.
    pub(crate) fn remove(&mut self, item: ItemRow, location: ItemLocation, was: SortKeys) {
        if self.text_state.has_reached(item) {
            self.text.remove(item.to_number());
        }
        self.put_sort_keys(item, location.collection, was, SortKeys::new());
        if location.is_in_calendar {
            self.schedules
                .insert(item, ScheduleUpdate { location, change: ScheduleChange::Remove });
        }
    }

    fn put_sort_keys(
        &mut self,
        item: ItemRow,
        collection: CollectionRow,
        before: SortKeys,
        after: SortKeys,
    ) {
        let new = || SortUpdate { collection, before, after: SortKeys::new() };
        self.sort.entry(item).or_insert_with(new).after = after;
    }

    /// Writes all changes, as of the batch `seq`.
    pub(crate) fn write(
        &mut self,
        tx: &WriteTransaction<'_>,
        extractors: &mut ExtractorCache<'_>,
        seq: Seq,
    ) -> DatabaseResult<()> {
        self.write_schedules(tx, extractors, seq)?;
        let pages = IndexTableWriter::new(tx);
        let text = mem::take(&mut self.text);
        text.flush(&pages, DerivedIndex::Text.index_id(), seq, TERM_DECODER)?;
        let mut changes = Vec::with_capacity(self.sort.len() * 2);
        for (item, SortUpdate { collection, before, after }) in mem::take(&mut self.sort) {
            if self.sort_state.has_reached(item) && before != after {
                changes.extend(position_changes(item, collection, before, false));
                changes.extend(position_changes(item, collection, after, true));
            }
        }
        larder_index::write_position_changes(&SortIndexPageWriter::new(tx), changes)
    }

    /// Writes the schedules of all items with the UID of a changed item: an override changes the
    /// schedule of its master, and vice versa. Each UID is computed once.
    fn write_schedules(
        &mut self,
        tx: &WriteTransaction<'_>,
        extractors: &mut ExtractorCache<'_>,
        seq: Seq,
    ) -> DatabaseResult<()> {
        let mut writer = interval_table::IntervalWriter::new(tx, extractors.base());
        let mut changed: BTreeMap<(CollectionRow, String), Vec<SeriesMember>> = BTreeMap::new();
        let (mut new, mut changed_items) = (HashSet::new(), HashSet::new());
        for (item, ScheduleUpdate { location, change }) in mem::take(&mut self.schedules) {
            changed_items.insert(item);
            if location.is_new {
                new.insert(item);
            }
            let ItemLocation { collection, uid, recurrence_id: recurrence, .. } = location;
            let ScheduleChange::Put(parsed_schedule) = change else {
                interval_table::delete_item(tx, extractors.base(), collection, item)?;
                changed.entry((collection, uid)).or_default();
                continue;
            };
            let member = SeriesMember {
                row: item.to_number(),
                recurrence_id: recurrence,
                parsed_schedule,
                is_changed: true,
            };
            changed.entry((collection, uid)).or_default().push(member);
        }
        for ((collection, uid), members) in changed {
            let times = series::compute_schedules(tx, extractors, collection, &uid, members)?;
            for (item, times) in times {
                // The former schedule of a changed item is in `item_history`. The change feed names
                // the other items even if their former schedules are not known.
                if !changed_items.contains(&item) {
                    history::record_schedule(tx, seq, item)?;
                }
                if self.schedule_state.has_reached(item) {
                    writer.put(collection, item, times.as_ref(), new.contains(&item))?;
                }
            }
        }
        Ok(writer.finish()?)
    }
}

/// Converts the terms of an item to the index's form without a copy.
pub(crate) fn to_term_set(terms: ExtractedTerms) -> TermSet {
    TermSet::from_encoded(terms.encoded_terms, terms.packed_terms, terms.is_oversized)
}

/// Returns the changes that insert an item at its positions in the orders of its collection, or
/// remove it from them.
pub(crate) fn position_changes(
    item: ItemRow,
    collection: CollectionRow,
    keys: SortKeys,
    is_insert: bool,
) -> impl Iterator<Item = PositionChange> {
    keys.into_iter().map(move |(field, key)| PositionChange {
        order: PartitionOrder { order: field, partition: collection.to_number() },
        position: SortPosition { key, row: item.to_number() },
        is_insert,
    })
}
