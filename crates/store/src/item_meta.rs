//! The metadata of an item: everything about it but its bytes.
//!
//! Separate from `item_reader` because every module that reads the table `item` makes these.

use crate::checksum::{damaged_item_error, verify_item};
use crate::collection::CollectionMeta;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::read_transaction::ReadTransaction;
use crate::row_checksum::{
    VERSION_COLUMNS, item_row_checksum, read_version_columns, verify_item_row,
};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::{Kind, Seq, blob};
use larder_extract::StoredFields;
use rusqlite::Row;
use rusqlite::types::{FromSql, ValueRef};
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

/// The columns of an [`ItemMeta`] in a row. Each is read once: the metadata and the checksum of the
/// row are both made from them.
#[derive(Clone, Copy)]
pub(crate) struct ItemColumns<'r> {
    row: &'r Row<'r>,
    values: [ValueRef<'r>; VERSION_COLUMNS],
}

impl<'r> ItemColumns<'r> {
    /// Reads the first columns of a row.
    pub(crate) fn read(row: &'r Row<'r>) -> rusqlite::Result<ItemColumns<'r>> {
        Ok(ItemColumns { row, values: read_version_columns(row)? })
    }

    /// Returns the kind; `None` if it is unknown.
    pub(crate) fn kind(&self) -> rusqlite::Result<Option<Kind>> {
        self.get(2).map(Kind::from_number)
    }

    /// Returns the row of the collection.
    pub(crate) fn collection(&self) -> rusqlite::Result<CollectionRow> {
        self.get(3)
    }

    /// Returns the batch that last changed the item.
    pub(crate) fn seq(&self) -> rusqlite::Result<Seq> {
        self.get(6)
    }

    /// Returns the metadata of an item of this kind.
    pub(crate) fn meta_of_kind(
        &self,
        kind: Kind,
        collections: &[CollectionMeta],
    ) -> rusqlite::Result<ItemMeta> {
        let collection = self.collection()?;
        let known =
            collections.binary_search_by_key(&collection, |known| known.collection_key.id).ok();
        let name = known.and_then(|at| collections.get(at)).map(|known| &known.name);
        self.meta_in_collection(kind, name)
    }

    /// Returns the metadata of the item; `None` if its kind is unknown.
    ///
    /// # Errors
    /// The item by name, if its kind is unknown because of damage.
    pub(crate) fn known_meta(
        &self,
        tx: &ReadTransaction<'_>,
        collections: &[CollectionMeta],
    ) -> DatabaseResult<Option<ItemMeta>> {
        match self.kind()? {
            Some(kind) => Ok(Some(self.meta_of_kind(kind, collections)?)),
            None => verify_item_row(tx, self.get(0)?).map(|()| None),
        }
    }

    fn meta_in_collection(
        &self,
        kind: Kind,
        collection: Option<&Arc<str>>,
    ) -> rusqlite::Result<ItemMeta> {
        Ok(ItemMeta {
            row: self.get(0)?,
            handle: Handle::from_bytes(self.values[1].as_blob()?),
            kind,
            collection_row: self.collection()?,
            collection: collection.map_or_else(|| Arc::from(""), Arc::clone),
            uid: self.get(4)?,
            derived_uid: self.get(5)?,
            seq: self.seq()?,
            recurrence_id: self.get(7)?,
            calendar_context: self.get(8)?,
        })
    }

    fn get<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        let value = self.values[column];
        T::column_result(value).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
        })
    }
}

/// Reads the metadata of an item; `None` if its kind is unknown.
pub(crate) fn item_meta_from_row(
    row: &Row<'_>,
    collections: &[CollectionMeta],
) -> rusqlite::Result<Option<ItemMeta>> {
    let columns = ItemColumns::read(row)?;
    columns.kind()?.map(|kind| columns.meta_of_kind(kind, collections)).transpose()
}

/// Reads the metadata of an item, with the names of collections, sorted by row; `None` if its kind
/// is unknown.
pub(crate) fn item_meta_with_names(
    row: &Row<'_>,
    names: &[(CollectionRow, Arc<str>)],
) -> rusqlite::Result<Option<ItemMeta>> {
    let columns = ItemColumns::read(row)?;
    let collection = columns.collection()?;
    let known = names.binary_search_by_key(&collection, |(row, _)| *row).ok();
    let name = known.and_then(|at| names.get(at)).map(|(_, name)| name);
    columns.kind()?.map(|kind| columns.meta_in_collection(kind, name)).transpose()
}

/// The columns of the stored fields, of the source bytes with their checksum, and of the rest of
/// the row with its checksum, after those of [`ITEM_META_COLUMNS`].
const STORED_FIELDS_COLUMN: usize = 9;
const BYTES_COLUMN: usize = 10;
const CHECKSUM_COLUMN: usize = 11;
const ORDINAL_COLUMN: usize = 12;
const ROW_CHECKSUM_COLUMN: usize = 13;

impl<'r> ItemColumns<'r> {
    /// Reads the stored fields, after the columns of an [`ItemMeta`].
    pub(crate) fn stored_fields(&self) -> Option<StoredFields<'r>> {
        let kind = self.kind().ok()??;
        let bytes = self.row.get_ref(STORED_FIELDS_COLUMN).ok()?.as_blob_or_null().ok()??;
        StoredFields::from_bytes(kind, bytes)
    }

    /// Reads the source bytes of the item, after the columns of an [`ItemMeta`] and of the stored
    /// fields, and verifies them and the row.
    pub(crate) fn verified_bytes(
        &self,
        tx: &ReadTransaction<'_>,
        item: ItemRow,
    ) -> DatabaseResult<Cow<'r, [u8]>> {
        let checksum = item_row_checksum(&self.values, self.row.get_ref(ORDINAL_COLUMN)?);
        if self.row.get(ROW_CHECKSUM_COLUMN).ok() != Some(checksum) {
            return Err(damaged_item_error(tx, item));
        }
        Ok(match self.row.get_ref(BYTES_COLUMN)?.as_blob_or_null()? {
            Some(bytes) => {
                verify_item(tx, item, bytes, self.row.get(CHECKSUM_COLUMN)?)?;
                Cow::Borrowed(bytes)
            }
            None => Cow::Owned(blob::require_source_bytes(tx, item)?),
        })
    }
}
