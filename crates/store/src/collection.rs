//! Collections as readers know them: what their items' handles are made from, and how they are
//! indexed.
//!
//! Making, renaming and removing them is a change like any other and lies in `apply`.

use crate::CollectionType;
use crate::interval_index;
use crate::uid_lookup::CollectionKey;
use larder_extract::IndexConfig;
use larder_extract::TimeTarget;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A collection that is there.
#[derive(Debug)]
pub(crate) struct CollectionMeta {
    pub(crate) collection_key: CollectionKey,
    pub(crate) name: Arc<str>,
    pub(crate) index_config: Arc<IndexConfig>,
    /// The classes of spans that it has, of occurrences and of alarms.
    row_classes: [RowClasses; 2],
}

#[derive(Debug, Default)]
struct RowClasses {
    /// They were asked for.
    was_requested: AtomicBool,
    present: OnceLock<Vec<i64>>,
}

impl CollectionMeta {
    /// The classes of spans to look at, in the snapshot in which it is known: those that it has. To
    /// find out which ones takes about as long as to look for one in vain, so who asks for the
    /// first time gets all that there can be.
    pub(crate) fn row_classes(
        &self,
        conn: &Connection,
        what: TimeTarget,
    ) -> rusqlite::Result<&[i64]> {
        let [occurrences, alarms] = &self.row_classes;
        let known = if what == TimeTarget::Alarms { alarms } else { occurrences };
        if let Some(classes) = known.present.get() {
            return Ok(classes);
        }
        if !known.was_requested.swap(true, Ordering::Relaxed) {
            return Ok(interval_index::all_classes(what));
        }
        let found = interval_index::find_classes(conn, self.collection_key.id, what)?;
        Ok(known.present.get_or_init(|| found))
    }
}

/// All of them, by row.
pub(crate) fn read_collections(conn: &Connection) -> rusqlite::Result<Vec<CollectionMeta>> {
    let sql = "SELECT id, key, name, summary, family FROM collection WHERE removed = 0 ORDER BY id";
    conn.prepare_cached(sql)?
        .query_map([], |row| {
            let of = CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
            let Some(collection_type) = CollectionType::from_number(row.get(4)?) else {
                return Ok(None);
            };
            let summary = IndexConfig::from_stored(row.get_ref(3)?.as_str()?, collection_type);
            Ok(Some(CollectionMeta {
                collection_key: of,
                name: row.get(2)?,
                index_config: summary,
                row_classes: Default::default(),
            }))
        })?
        .filter_map(Result::transpose)
        .collect()
}
