//! Extractors of the collections of a store, with their index configurations, and the stored items
//! that they read.
//!
//! Separate from `larder-extract`, which is pure: here the configurations, the source bytes and the
//! calendar contexts are read from the database.

use crate::blob;
use crate::calendar_context_table;
use crate::combined_schedules::CombinedSchedules;
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use larder_extract::{CalendarContext, Extractor, IndexConfig, IndexDocument, ItemContext};
use larder_format::collection_type::CollectionType;
use larder_format::kind::Kind;
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The extractors of a store's collections, whose index configurations are read on first use, and
/// the calendar contexts of their items.
pub(crate) struct ExtractorCache<'a> {
    base: &'a Extractor,
    by_collection: HashMap<CollectionRow, Extractor>,
    calendar_contexts: HashMap<CalendarContextRow, Option<Arc<CalendarContext>>>,
    combined_schedules: CombinedSchedules,
}

/// The maximum number of calendar contexts in the cache.
const MAX_CACHED_CONTEXTS: usize = 64;

/// An item, as it is stored.
pub(crate) struct ItemRecord {
    pub(crate) collection: CollectionRow,
    pub(crate) uid: String,
    pub(crate) context: ItemContext,
    pub(crate) bytes: Vec<u8>,
}

impl<'a> ExtractorCache<'a> {
    pub(crate) fn new(base: &'a Extractor) -> ExtractorCache<'a> {
        let (by_collection, calendar_contexts) = (HashMap::new(), HashMap::new());
        let combined_schedules = CombinedSchedules::default();
        ExtractorCache { base, by_collection, calendar_contexts, combined_schedules }
    }

    /// Returns the extractor of the collection in this row.
    pub(crate) fn for_collection(
        &mut self,
        tx: &ReadTransaction<'_>,
        collection: CollectionRow,
    ) -> rusqlite::Result<&Extractor> {
        match self.by_collection.entry(collection) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let found: Option<(String, i64)> = tx
                    .prepare_cached("SELECT index_config, type FROM collection WHERE id = ?1")?
                    .query_row([collection], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let config = found.and_then(|(config, number)| {
                    Some(IndexConfig::from_stored(&config, CollectionType::from_number(number)?))
                });
                Ok(new.insert(match config {
                    Some(config) => self.base.with_index_config(config),
                    None => self.base.clone(),
                }))
            }
        }
    }

    /// Reads the item in this row; `None` if there is none, or its kind is unknown.
    pub(crate) fn read_item(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: ItemRow,
    ) -> rusqlite::Result<Option<ItemRecord>> {
        let found = tx
            .prepare_cached(
                "SELECT i.collection, i.uid, i.kind, i.recurrence_id, i.calendar_context, s.bytes
                 FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1",
            )?
            .query_row([row], |row| {
                let place: (i64, String, Option<CalendarContextRow>) =
                    (row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((row.get(0)?, row.get(1)?, place, row.get::<_, Option<Vec<u8>>>(5)?))
            })
            .optional()?;
        let Some((collection, uid, (kind, recurrence, context_row), bytes)) = found else {
            return Ok(None);
        };
        let Some(kind) = Kind::from_number(kind) else { return Ok(None) };
        let calendar_context = match context_row {
            Some(context_row) => self.calendar_context(tx, context_row)?,
            None => None,
        };
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => blob::read_source_bytes(tx, row)?.unwrap_or_default(),
        };
        let context = ItemContext { kind, recurrence_id: recurrence, calendar_context };
        Ok(Some(ItemRecord { collection, uid, context, bytes }))
    }

    fn calendar_context(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: CalendarContextRow,
    ) -> rusqlite::Result<Option<Arc<CalendarContext>>> {
        if let Some(known) = self.calendar_contexts.get(&row) {
            return Ok(known.clone());
        }
        if self.calendar_contexts.len() >= MAX_CACHED_CONTEXTS {
            self.calendar_contexts.clear();
        }
        let context = calendar_context_table::read_context(tx, row)?;
        self.calendar_contexts.insert(row, context.clone());
        Ok(context)
    }

    /// Extracts the entry of an item.
    pub(crate) fn extract(
        &mut self,
        tx: &ReadTransaction<'_>,
        item: &ItemRecord,
    ) -> rusqlite::Result<IndexDocument> {
        Ok(self.for_collection(tx, item.collection)?.extract(&item.bytes, &item.context))
    }

    /// Returns the cache of combined schedules.
    pub(crate) fn combined_schedules(&mut self) -> &mut CombinedSchedules {
        &mut self.combined_schedules
    }

    /// Returns the extractor that all others are made from.
    pub(crate) fn base(&self) -> &'a Extractor {
        self.base
    }

    /// Drops the cached index configurations, which have changed.
    pub(crate) fn invalidate(&mut self) {
        self.by_collection.clear();
    }
}

/// Reads the context of an item from the columns of its row; `None` if its kind is unknown.
pub(crate) fn read_item_context(
    tx: &ReadTransaction<'_>,
    kind: i64,
    recurrence_id: String,
    calendar_context: Option<CalendarContextRow>,
) -> rusqlite::Result<Option<ItemContext>> {
    let Some(kind) = Kind::from_number(kind) else { return Ok(None) };
    let calendar_context = match calendar_context {
        Some(row) => calendar_context_table::read_context(tx, row)?,
        None => None,
    };
    Ok(Some(ItemContext { kind, recurrence_id, calendar_context }))
}
