//! Extractors of the collections of a store, with their index configurations, and the stored items
//! that they read.
//!
//! Separate from `larder-extract`, which is pure: here the configurations, the source bytes and the
//! calendar contexts are read from the database.

use crate::blob;
use crate::calendar_context_table::{self, UnverifiedContext};
use crate::checksum::Checksum;
use crate::combined_schedules::CombinedSchedules;
use crate::error::DatabaseResult;
use crate::item_meta::ITEM_META_COLUMNS;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::is_item_row_sound;
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use larder_extract::{Extractor, IndexConfig, IndexDocument, ItemContext};
use larder_format::collection_type::CollectionType;
use larder_format::kind::Kind;
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

/// The extractors of a store's collections, whose index configurations are read on first use, and
/// the calendar contexts of their items.
pub(crate) struct ExtractorCache<'a> {
    base: &'a Extractor,
    by_collection: HashMap<CollectionRow, Extractor>,
    calendar_contexts: HashMap<CalendarContextRow, Option<UnverifiedContext>>,
    combined_schedules: CombinedSchedules,
}

/// Reads an item with its bytes and its checksums.
static SELECT_ITEM_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {ITEM_META_COLUMNS}, s.bytes, s.checksum, i.ordinal, i.row_checksum
         FROM item i CROSS JOIN source_bytes s ON s.item = i.id WHERE i.id = ?1"
    )
});

/// The maximum number of calendar contexts in the cache.
const MAX_CACHED_CONTEXTS: usize = 64;

/// An item, as it is stored.
pub(crate) struct ItemRecord {
    row: ItemRow,
    pub(crate) collection: CollectionRow,
    pub(crate) uid: String,
    pub(crate) context: ItemContext,
    pub(crate) bytes: Vec<u8>,
    /// Whether the bytes, the row and the calendar context match their checksums.
    pub(crate) is_sound: bool,
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
            .prepare_cached(&SELECT_ITEM_SQL)?
            .query_row([row], |row| {
                let place: (i64, String, Option<CalendarContextRow>) =
                    (row.get(2)?, row.get(7)?, row.get(8)?);
                let stored: (Option<Vec<u8>>, Checksum) = (row.get(9)?, row.get(10)?);
                Ok((row.get(3)?, row.get(4)?, place, stored, is_item_row_sound(row, 11, 12)?))
            })
            .optional()?;
        let Some((collection, uid, place, stored, is_row_sound)) = found else { return Ok(None) };
        let (kind, recurrence, context_row) = place;
        let Some(kind) = Kind::from_number(kind) else { return Ok(None) };
        let found = match context_row {
            Some(context_row) => self.calendar_context(tx, context_row)?,
            None => None,
        };
        let is_context_sound = found.as_ref().is_none_or(|found| found.damage.is_none());
        let calendar_context = found.map(|found| found.context);
        let (bytes, are_bytes_sound) = match stored {
            (Some(bytes), checksum) => {
                let is_sound = Checksum::from_item(row, &bytes) == checksum;
                (bytes, is_sound)
            }
            (None, _) => blob::read_unverified_bytes(tx, row)?
                .map(|stored| stored.into_parts(row))
                .unwrap_or_default(),
        };
        let context = ItemContext { kind, recurrence_id: recurrence, calendar_context };
        let is_sound = are_bytes_sound && is_row_sound && is_context_sound;
        Ok(Some(ItemRecord { row, collection, uid, context, bytes, is_sound }))
    }

    fn calendar_context(
        &mut self,
        tx: &ReadTransaction<'_>,
        row: CalendarContextRow,
    ) -> rusqlite::Result<Option<UnverifiedContext>> {
        if let Some(known) = self.calendar_contexts.get(&row) {
            return Ok(known.clone());
        }
        if self.calendar_contexts.len() >= MAX_CACHED_CONTEXTS {
            self.calendar_contexts.clear();
        }
        let context = calendar_context_table::read_unverified_context(tx, row)?;
        self.calendar_contexts.insert(row, context.clone());
        Ok(context)
    }

    /// Extracts the entry of an item. A damaged item keeps its stored fields, because lists print
    /// them without reading the item. It keeps terms and a place in each order, because a list
    /// without it would hide it.
    pub(crate) fn extract(
        &mut self,
        tx: &ReadTransaction<'_>,
        item: &ItemRecord,
    ) -> rusqlite::Result<IndexDocument> {
        let extractor = self.for_collection(tx, item.collection)?;
        let mut entry = extractor.extract(&item.bytes, &item.context);
        if !item.is_sound {
            let sql = "SELECT stored_fields FROM item WHERE id = ?1";
            entry.stored_fields = tx.query_row(sql, [item.row], |row| row.get(0))?;
            entry.has_uid = false;
        }
        Ok(entry)
    }

    /// Replaces the cache of combined schedules by one of an earlier reading.
    pub(crate) fn with_combined_schedules(self, combined: CombinedSchedules) -> Self {
        ExtractorCache { combined_schedules: combined, ..self }
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
) -> DatabaseResult<Option<ItemContext>> {
    let Some(kind) = Kind::from_number(kind) else { return Ok(None) };
    let calendar_context = match calendar_context {
        Some(row) => calendar_context_table::read_context(tx, row)?,
        None => None,
    };
    Ok(Some(ItemContext { kind, recurrence_id, calendar_context }))
}
