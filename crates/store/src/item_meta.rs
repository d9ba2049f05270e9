//! The metadata of an item: everything about it but its bytes.
//!
//! Separate from `item_reader` because every module that reads the table `item` makes these.

use crate::checksum::{damaged_item_error, verify_item};
use crate::collection::CollectionMeta;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::{is_item_row_sound, verify_item_row};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::{Kind, Seq, blob};
use larder_extract::StoredFields;
use rusqlite::Row;
use std::borrow::Cow;
use std::sync::Arc;

/// An item without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemMeta {
    /// The row in this file, by which the bytes are read. It is never shown or stored.
    pub row: ItemRow,
    /// The handle.
    pub handle: Handle,
    /// The kind.
    pub kind: Kind,
    /// The row of the collection.
    pub collection_row: CollectionRow,
    /// The name of the collection.
    pub collection: Arc<str>,
    /// The UID, unique in the collection together with the recurrence-id.
    pub uid: String,
    /// The recurrence-id of an override: `20260305T120000`, followed by Z if it is in UTC, without
    /// the time if it is a day. Empty: the item is no override.
    pub recurrence_id: String,
    /// Whether the UID is derived, because the bytes do not name it.
    pub derived_uid: bool,
    /// The batch that last changed it.
    pub seq: Seq,
    /// The calendar context: a row of this file, for
    /// [`ItemReader::calendar_context`](crate::ItemReader::calendar_context).
    pub calendar_context: Option<CalendarContextRow>,
}

/// Returns the SQL condition that `item i` is of a kind with a capability.
///
/// It is a chain of comparisons: for each evaluation of a list after IN that has more than two
/// values, SQLite fills a temporary table.
pub(crate) fn kind_condition(has_capability: impl Fn(Kind) -> bool) -> String {
    let kinds = Kind::all().filter(|kind| has_capability(*kind));
    let terms: Vec<String> = kinds.map(|kind| format!("i.kind = {}", kind.number())).collect();
    format!("({})", if terms.is_empty() { "FALSE".to_string() } else { terms.join(" OR ") })
}

/// The columns of an [`ItemMeta`], for a query over `item i`.
pub(crate) const ITEM_META_COLUMNS: &str = "i.id, i.handle, i.kind, i.collection, i.uid, i.uid_origin, i.seq, i.recurrence_id, i.calendar_context";

/// Reads the metadata of an item; `None` if its kind is unknown.
pub(crate) fn item_meta_from_row(
    row: &Row<'_>,
    collections: &[CollectionMeta],
) -> rusqlite::Result<Option<ItemMeta>> {
    let kind = Kind::from_number(row.get(2)?);
    kind.map(|kind| item_meta_of_kind(row, kind, collections)).transpose()
}

/// Reads the metadata of an item; `None` if its kind is unknown.
///
/// # Errors
/// The item by name, if its kind is unknown because of damage.
pub(crate) fn known_item_meta(
    tx: &ReadTransaction<'_>,
    row: &Row<'_>,
    collections: &[CollectionMeta],
) -> DatabaseResult<Option<ItemMeta>> {
    let meta = item_meta_from_row(row, collections)?;
    if meta.is_none() {
        verify_item_row(tx, row.get(0)?)?;
    }
    Ok(meta)
}

pub(crate) fn item_meta_of_kind(
    row: &Row<'_>,
    kind: Kind,
    collections: &[CollectionMeta],
) -> rusqlite::Result<ItemMeta> {
    let collection: CollectionRow = row.get(3)?;
    let known = collections.binary_search_by_key(&collection, |known| known.collection_key.id).ok();
    let name = known.and_then(|at| collections.get(at)).map(|known| &known.name);
    item_meta_in_collection(row, kind, name)
}

/// Reads the metadata of an item, with the names of collections, sorted by row; `None` if its kind
/// is unknown.
pub(crate) fn item_meta_with_names(
    row: &Row<'_>,
    names: &[(CollectionRow, Arc<str>)],
) -> rusqlite::Result<Option<ItemMeta>> {
    let collection: CollectionRow = row.get(3)?;
    let known = names.binary_search_by_key(&collection, |(row, _)| *row).ok();
    let name = known.and_then(|at| names.get(at)).map(|(_, name)| name);
    let kind = Kind::from_number(row.get(2)?);
    kind.map(|kind| item_meta_in_collection(row, kind, name)).transpose()
}

fn item_meta_in_collection(
    row: &Row<'_>,
    kind: Kind,
    collection: Option<&Arc<str>>,
) -> rusqlite::Result<ItemMeta> {
    Ok(ItemMeta {
        row: row.get(0)?,
        handle: Handle::from_bytes(row.get_ref(1)?.as_blob()?),
        kind,
        collection_row: row.get(3)?,
        collection: collection.map_or_else(|| Arc::from(""), Arc::clone),
        uid: row.get(4)?,
        derived_uid: row.get(5)?,
        seq: row.get(6)?,
        recurrence_id: row.get(7)?,
        calendar_context: row.get(8)?,
    })
}

/// The columns of the stored fields, of the source bytes with their checksum, and of the rest of
/// the row with its checksum, after those of [`ITEM_META_COLUMNS`].
const STORED_FIELDS_COLUMN: usize = 9;
const BYTES_COLUMN: usize = 10;
const CHECKSUM_COLUMN: usize = 11;
const ORDINAL_COLUMN: usize = 12;
const ROW_CHECKSUM_COLUMN: usize = 13;

/// Reads the stored fields, after the columns of an [`ItemMeta`].
pub(crate) fn stored_fields_from_row<'a>(row: &'a Row<'_>) -> Option<StoredFields<'a>> {
    let kind = Kind::from_number(row.get(2).ok()?)?;
    let bytes = row.get_ref(STORED_FIELDS_COLUMN).ok()?.as_blob_or_null().ok()??;
    StoredFields::from_bytes(kind, bytes)
}

/// Reads the source bytes of the item in this row, after the columns of an [`ItemMeta`] and of the
/// stored fields, and verifies them and the row.
pub(crate) fn bytes_from_row<'a>(
    tx: &ReadTransaction<'_>,
    row: &'a Row<'_>,
    item: ItemRow,
) -> DatabaseResult<Cow<'a, [u8]>> {
    if !is_item_row_sound(row, ORDINAL_COLUMN, ROW_CHECKSUM_COLUMN)? {
        return Err(damaged_item_error(tx, item));
    }
    Ok(match row.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
        Some(bytes) => {
            verify_item(tx, item, bytes, row.get(CHECKSUM_COLUMN)?)?;
            Cow::Borrowed(bytes)
        }
        None => Cow::Owned(blob::require_source_bytes(tx, item)?),
    })
}
