//! Collections as readers cache them: the key of their handles, and their index configurations.
//!
//! Separate from `apply`, which creates, renames and removes them.

use crate::CollectionType;
use crate::interval_table;
use crate::read_transaction::ReadTransaction;
use crate::uid_lookup::CollectionKey;
use larder_extract::{IndexConfig, TimeTarget};
use larder_index::interval;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A collection that is not removed.
#[derive(Debug)]
pub(crate) struct CollectionMeta {
    pub(crate) collection_key: CollectionKey,
    pub(crate) name: Arc<str>,
    pub(crate) index_config: Arc<IndexConfig>,
    /// The classes of spans that it has, of occurrences and of alarms.
    span_classes: [SpanClasses; 2],
}

#[derive(Debug, Default)]
struct SpanClasses {
    /// They have been requested.
    was_requested: AtomicBool,
    present: OnceLock<Vec<i64>>,
}

impl CollectionMeta {
    /// Returns the classes of spans to search, in the read transaction of the cache that this is
    /// part of. Finding the present classes costs about as much as searching an absent class, so
    /// the first caller gets all classes.
    pub(crate) fn span_classes(
        &self,
        tx: &ReadTransaction<'_>,
        target: TimeTarget,
    ) -> rusqlite::Result<&[i64]> {
        let [occurrences, alarms] = &self.span_classes;
        let classes = if target == TimeTarget::Alarms { alarms } else { occurrences };
        if let Some(present) = classes.present.get() {
            return Ok(present);
        }
        if !classes.was_requested.swap(true, Ordering::Relaxed) {
            return Ok(interval::span_classes(interval_table::layer(target)));
        }
        let found = interval_table::find_span_classes(tx, self.collection_key.id, target)?;
        Ok(classes.present.get_or_init(|| found))
    }
}

/// Reads all collections, by row.
pub(crate) fn read_collections(tx: &ReadTransaction<'_>) -> rusqlite::Result<Vec<CollectionMeta>> {
    let sql = "SELECT id, handle_key, name, index_config, type FROM collection WHERE removed = 0 ORDER BY id";
    tx.prepare_cached(sql)?
        .query_map([], |row| {
            let collection_key = CollectionKey { id: row.get(0)?, handle_key: row.get(1)? };
            let Some(collection_type) = CollectionType::from_number(row.get(4)?) else {
                return Ok(None);
            };
            let index_config = IndexConfig::from_stored(row.get_ref(3)?.as_str()?, collection_type);
            Ok(Some(CollectionMeta {
                collection_key,
                name: row.get(2)?,
                index_config,
                span_classes: Default::default(),
            }))
        })?
        .filter_map(Result::transpose)
        .collect()
}
