//! The indexes that are derived from the source bytes, and the state of each.
//!
//! An index is current if `meta` has the fingerprint with which this program would fill it; during
//! a rebuild, `meta` has its progress. Apart from `index_maintenance`, which refills indexes,
//! because readers need only the state.

use crate::error::RowResult;
use crate::history;
use crate::index_pages::IndexPages;
use crate::interval_table;
use crate::meta::MetaTable;
use crate::sort_index_pages::SortIndexPages;
use crate::write_transaction::WriteTransaction;
use larder_extract::Extractor;
use larder_index::IndexId;
use rusqlite::{Connection, OptionalExtension as _};

/// An index with a fingerprint of its own, which is rebuilt as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedIndex {
    /// Terms for searching; depends on case folding.
    Text = 1,
    /// Sort keys; depends on the locale, too.
    Sort = 2,
    /// Schedules and intervals; depends on the time zones, too.
    Schedule = 3,
}

impl DerivedIndex {
    pub(crate) const ALL: [DerivedIndex; 3] =
        [DerivedIndex::Text, DerivedIndex::Sort, DerivedIndex::Schedule];

    /// Returns the name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DerivedIndex::Text => "text",
            DerivedIndex::Sort => "sort",
            DerivedIndex::Schedule => "time",
        }
    }

    pub(crate) fn meta_key(self) -> &'static str {
        match self {
            DerivedIndex::Text => "fingerprint:text",
            DerivedIndex::Sort => "fingerprint:sort",
            DerivedIndex::Schedule => "fingerprint:schedule",
        }
    }

    pub(crate) fn fingerprint(self, extractor: &Extractor) -> String {
        match self {
            DerivedIndex::Text => extractor.text_fingerprint(),
            DerivedIndex::Sort => extractor.sort_fingerprint(),
            DerivedIndex::Schedule => extractor.time_fingerprint(),
        }
    }

    pub(crate) fn read_state(self, conn: &Connection) -> rusqlite::Result<Option<String>> {
        conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
            .query_row([self.meta_key()], |row| row.get(0))
            .optional()
    }

    pub(crate) fn write_state(self, conn: &Connection, state: &str) -> rusqlite::Result<()> {
        // While the interval index is incomplete, replaced versions are stored without schedules.
        if self == DerivedIndex::Schedule {
            history::set_schedule_history_start(conn, None)?;
        }
        conn.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", (self.meta_key(), state))
            .map(drop)
    }

    /// Marks the index stale: readers ignore it, and the next refresh rebuilds it.
    pub(crate) fn invalidate(self, conn: &Connection) -> rusqlite::Result<()> {
        self.write_state(conn, "empty")
    }

    /// Returns whether the index is complete and has the current fingerprint.
    pub(crate) fn is_current(self, meta: &MetaTable, extractor: &Extractor) -> bool {
        meta.text(self.meta_key()) == self.fingerprint(extractor)
            && (self != DerivedIndex::Schedule
                || meta.text(interval_table::ZONE_DATA_VERSION_KEY)
                    == extractor.zone_database().data_version())
    }

    pub(crate) fn is_complete(
        self,
        conn: &Connection,
        extractor: &Extractor,
    ) -> rusqlite::Result<bool> {
        Ok(self.read_state(conn)?.as_deref() == Some(&self.fingerprint(extractor)))
    }

    /// Returns the number of its inverted index.
    pub(crate) fn index_id(self) -> IndexId {
        IndexId(self as i64)
    }

    /// Deletes all rows of the index.
    pub(crate) fn clear(self, conn: &Connection) -> RowResult<()> {
        match self {
            DerivedIndex::Text => larder_index::delete_all(&IndexPages::new(conn), self.index_id()),
            DerivedIndex::Sort => Ok(SortIndexPages::new(conn).clear()?),
            DerivedIndex::Schedule => Ok(interval_table::clear(conn)?),
        }
    }
}

/// Marks all indexes of a new, empty store as complete.
pub(crate) fn mark_complete(conn: &Connection, extractor: &Extractor) -> rusqlite::Result<()> {
    for set in DerivedIndex::ALL {
        set.write_state(conn, &set.fingerprint(extractor))?;
    }
    interval_table::write_zone_data_version(conn, extractor)
}

/// Marks the indexes stale that a program with another fingerprint began to fill since this store
/// was opened: with rows of both fingerprints, an index is of no use. The next refresh rebuilds it.
pub(crate) fn invalidate_stale(
    conn: &Connection,
    extractor: &Extractor,
    meta: &MetaTable,
) -> rusqlite::Result<()> {
    for set in DerivedIndex::ALL {
        let (state, fingerprint) = (meta.text(set.meta_key()), set.fingerprint(extractor));
        let others = set == DerivedIndex::Schedule
            && meta.text(interval_table::ZONE_DATA_VERSION_KEY)
                != extractor.zone_database().data_version();
        if others || (state != fingerprint && rebuild_progress(state, &fingerprint).is_none()) {
            set.invalidate(conn)?;
        }
    }
    Ok(())
}

/// Merges the text index into one segment, without the terms of removed items, and the levels of
/// the sort index into one.
pub(crate) fn merge_all_levels(tx: &WriteTransaction<'_>) -> RowResult<()> {
    larder_index::compact_level_zero(&SortIndexPages::new(tx))?;
    larder_index::merge_all(&IndexPages::new(tx), DerivedIndex::Text.index_id())
}

/// Deletes the rows of indexes that this program cannot use: those with another fingerprint, or
/// whose rebuild has not begun.
pub(crate) fn clear_stale(conn: &Connection, extractor: &Extractor) -> RowResult<()> {
    for set in DerivedIndex::ALL {
        let state = set.read_state(conn)?.unwrap_or_default();
        let fingerprint = set.fingerprint(extractor);
        if state != fingerprint && rebuild_progress(&state, &fingerprint).is_none() {
            set.clear(conn)?;
        }
    }
    Ok(())
}

/// Returns the last item that the rebuild with this fingerprint has indexed; `None`: it has to
/// begin.
pub(crate) fn rebuild_progress(state: &str, fingerprint: &str) -> Option<i64> {
    let (last, found) = state.strip_prefix("rebuilding ")?.split_once(' ')?;
    if found == fingerprint { last.parse().ok() } else { None }
}
