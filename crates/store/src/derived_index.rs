//! The indexes that are derived from the source bytes, and the state of each.
//!
//! An index is current if `meta` has the fingerprint with which this program would fill it; during
//! a rebuild, `meta` has its progress. Separate from `index_maintenance`, which refills indexes,
//! because readers need only the state.

use crate::error::DatabaseResult;
use crate::history;
use crate::index_tables::IndexTableWriter;
use crate::interval_table;
use crate::mail_schema::{WORD_DICTIONARY, WORD_INDEX};
use crate::meta::{MetaTable, read_index_state, write_meta};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::ItemRow;
use crate::sort_index_pages::SortIndexPageWriter;
use crate::write_transaction::WriteTransaction;
use larder_extract::Extractor;
use larder_index::{FullMerge, IndexId};

/// The state of an index that has to be refilled.
const INVALID_STATE: &str = "empty";

/// An index with its own fingerprint, which is rebuilt as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedIndex {
    /// Terms for searching; depends on case folding.
    Text = 1,
    /// Sort keys; depends on the locale, too.
    Sort = 2,
    /// Schedules and intervals; depends on the time zones, too.
    Interval = 3,
}

impl DerivedIndex {
    pub(crate) const ALL: [DerivedIndex; 3] =
        [DerivedIndex::Text, DerivedIndex::Sort, DerivedIndex::Interval];

    /// Returns the name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DerivedIndex::Text => "text",
            DerivedIndex::Sort => "sort",
            DerivedIndex::Interval => "interval",
        }
    }

    pub(crate) fn meta_key(self) -> &'static str {
        match self {
            DerivedIndex::Text => "fingerprint:text",
            DerivedIndex::Sort => "fingerprint:sort",
            DerivedIndex::Interval => "fingerprint:schedule",
        }
    }

    pub(crate) fn fingerprint(self, extractor: &Extractor) -> String {
        match self {
            DerivedIndex::Text => extractor.text_fingerprint(),
            DerivedIndex::Sort => extractor.sort_fingerprint(),
            DerivedIndex::Interval => extractor.interval_fingerprint(),
        }
    }

    pub(crate) fn read_state(self, tx: &ReadTransaction<'_>) -> DatabaseResult<Option<String>> {
        read_index_state(tx, self.meta_key())
    }

    pub(crate) fn write_state(self, tx: &WriteTransaction<'_>, state: &str) -> DatabaseResult<()> {
        // While the interval index is incomplete, replaced versions are stored without schedules.
        if self == DerivedIndex::Interval {
            history::set_schedule_history_start(tx, None)?;
        }
        Ok(write_meta(tx, self.meta_key(), state.to_string())?)
    }

    /// Marks the index stale: readers ignore it, and the next refresh rebuilds it.
    pub(crate) fn invalidate(self, tx: &WriteTransaction<'_>) -> DatabaseResult<()> {
        self.write_state(tx, INVALID_STATE)
    }

    /// Returns whether the index is complete and has the current fingerprint.
    pub(crate) fn is_current(self, meta: &MetaTable, extractor: &Extractor) -> bool {
        meta.index_state(self.meta_key()) == self.fingerprint(extractor)
            && (self != DerivedIndex::Interval
                || meta.index_state(interval_table::ZONE_DATA_VERSION_KEY)
                    == extractor.zone_database().data_version())
    }

    pub(crate) fn is_complete(
        self,
        tx: &ReadTransaction<'_>,
        extractor: &Extractor,
    ) -> DatabaseResult<bool> {
        Ok(self.read_state(tx)?.as_deref() == Some(&self.fingerprint(extractor)))
    }

    /// Returns the number of its inverted index.
    pub(crate) fn index_id(self) -> IndexId {
        IndexId(self as i64)
    }

    /// Returns whether a rebuild was begun and is not complete.
    pub(crate) fn is_being_rebuilt(self, meta: &MetaTable, extractor: &Extractor) -> bool {
        let state = meta.index_state(self.meta_key());
        let parsed = IndexState::parse(state, &self.fingerprint(extractor));
        matches!(parsed, IndexState::Rebuilding(_))
    }

    /// Returns whether a change marked the index stale, and no rebuild was begun.
    pub(crate) fn is_invalidated(self, meta: &MetaTable) -> bool {
        meta.index_state(self.meta_key()) == INVALID_STATE
    }

    /// The tables of the index with their keys, those first without which the others are not read.
    fn tables(self) -> [(&'static str, &'static str); 3] {
        match self {
            DerivedIndex::Text => [
                ("idx_segment", "id"),
                ("idx_fence", "segment, first_term, block"),
                ("idx_block", "id"),
            ],
            DerivedIndex::Sort => [
                ("idx_sort_run", "id"),
                ("idx_sort_fence", "field, collection, key, item"),
                ("idx_sort_block", "id"),
            ],
            DerivedIndex::Interval => [
                ("idx_interval", "row_class, start, end, item"),
                ("idx_schedule", "item"),
                ("idx_zone_set", "id"),
            ],
        }
    }

    /// Deletes up to `limit` rows of the index, which is not in use, and none of the words of
    /// mail. Returns whether there may be more.
    pub(crate) fn clear_step(
        self,
        tx: &WriteTransaction<'_>,
        limit: usize,
    ) -> DatabaseResult<bool> {
        let mut remaining = limit;
        for (table, key) in self.tables() {
            // The words of messages are in the same tables, and are not derived from items.
            let words = format!(
                "SELECT id FROM idx_segment WHERE derived_index IN ({}, {}) OR derived_index < 0",
                WORD_INDEX.0, WORD_DICTIONARY.0
            );
            let condition = match table {
                "idx_segment" => format!("id NOT IN ({words})"),
                "idx_fence" => format!("segment NOT IN ({words})"),
                "idx_block" => format!("id >> 24 NOT IN ({words})"),
                _ => "TRUE".to_string(),
            };
            let sql = format!(
                "DELETE FROM {table} WHERE ({key}) IN
                 (SELECT {key} FROM {table} WHERE {condition} LIMIT ?1)"
            );
            remaining -= tx.prepare_cached(&sql)?.execute([remaining as i64])?.min(remaining);
        }
        Ok(remaining == 0)
    }
}

/// Marks all indexes of a new, empty store as complete.
pub(crate) fn mark_complete(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
) -> DatabaseResult<()> {
    for set in DerivedIndex::ALL {
        set.write_state(tx, &set.fingerprint(extractor))?;
    }
    Ok(interval_table::write_zone_data_version(tx, extractor)?)
}

/// Marks the indexes stale that a program with another fingerprint began to fill since this store
/// was opened: with rows of both fingerprints, an index is useless. The next refresh rebuilds it.
/// The interval index is also marked stale between two steps of an update of its zones, whichever
/// program made them: its rows are then of two versions of the zone data.
pub(crate) fn invalidate_stale(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
    meta: &MetaTable,
) -> DatabaseResult<()> {
    for set in DerivedIndex::ALL {
        let (state, fingerprint) = (meta.index_state(set.meta_key()), set.fingerprint(extractor));
        let others = set == DerivedIndex::Interval
            && meta.index_state(interval_table::ZONE_DATA_VERSION_KEY)
                != extractor.zone_database().data_version();
        if others || IndexState::parse(state, &fingerprint) == IndexState::Stale {
            set.invalidate(tx)?;
        }
    }
    Ok(())
}

/// Moves the sort keys of all levels of the sort index into one level.
pub(crate) fn compact_sort_index(tx: &WriteTransaction<'_>) -> DatabaseResult<()> {
    larder_index::compact_level_zero(&SortIndexPageWriter::new(tx)).map(drop)
}

/// Moves about this many bytes of a merge of the text index that leaves no term of items that were
/// removed before it. Returns whether there is more to do.
pub(crate) fn full_merge_step(
    tx: &WriteTransaction<'_>,
    merge: &mut FullMerge,
    bytes: usize,
) -> DatabaseResult<bool> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    merge.step(&IndexTableWriter::new(tx), DerivedIndex::Text.index_id(), bytes)
}

/// Deletes up to `limit` rows of indexes that this program cannot use: those with another
/// fingerprint, or whose rebuild has not begun. Returns whether there may be more.
pub(crate) fn clear_stale_step(
    tx: &WriteTransaction<'_>,
    extractor: &Extractor,
    limit: usize,
) -> DatabaseResult<bool> {
    for set in DerivedIndex::ALL {
        let state = set.read_state(tx)?.unwrap_or_default();
        let fingerprint = set.fingerprint(extractor);
        if IndexState::parse(&state, &fingerprint) == IndexState::Stale
            && set.clear_step(tx, limit)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The state of an index, which `meta` has as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexState {
    /// The index has all items.
    Complete,
    /// A rebuild has indexed the items up to this one; `None`: none yet.
    Rebuilding(Option<ItemRow>),
    /// The index has another fingerprint, or its rebuild has to begin.
    Stale,
}

impl IndexState {
    /// Reads the state of an index that has this fingerprint when it is complete.
    pub(crate) fn parse(text: &str, fingerprint: &str) -> IndexState {
        if text == fingerprint {
            return IndexState::Complete;
        }
        let progress = text.strip_prefix("rebuilding ").and_then(|rest| rest.split_once(' '));
        match progress {
            Some((last, found)) if found == fingerprint => match last.parse() {
                Ok(0) => IndexState::Rebuilding(None),
                Ok(last) => IndexState::Rebuilding(Some(ItemRow::from_number(last))),
                Err(_) => IndexState::Stale,
            },
            _ => IndexState::Stale,
        }
    }

    /// Returns the text of a rebuild with this fingerprint that has indexed the items up to `last`.
    pub(crate) fn format_rebuild(last: Option<ItemRow>, fingerprint: &str) -> String {
        // No item has row 0.
        format!("rebuilding {} {fingerprint}", last.map_or(0, ItemRow::to_number))
    }

    /// Returns whether a change to this item is written to the index now; if not, the rebuild
    /// indexes the item later.
    pub(crate) fn has_reached(self, item: ItemRow) -> bool {
        match self {
            IndexState::Complete => true,
            IndexState::Rebuilding(last) => last.is_some_and(|last| item <= last),
            IndexState::Stale => false,
        }
    }
}
