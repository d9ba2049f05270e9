//! Writing the rows of items: inserted, updated, deleted, and copied into the history.
//!
//! Separate from `batch_writer`, which decides the outcome of a change. This module decides
//! nothing.

use crate::batch::ItemPut;
use crate::calendar_context_table::ContextRefCounts;
use crate::checksum::Checksum;
use crate::error::DatabaseResult;
use crate::handle::Handle;
use crate::item_meta::{ITEM_META_COLUMNS, kind_condition};
use crate::meta::MetaTable;
use crate::row_checksum::{VersionColumns, history_place_checksum, is_item_row_sound};
use crate::row_ids::{CalendarContextRow, CollectionRow, ItemRow};
use crate::series::ItemLocation;
use crate::write_transaction::WriteTransaction;
use crate::{Kind, Seq, blob, uid_lookup};
use larder_extract::IndexDocument;
use rusqlite::CachedStatement;
use std::sync::LazyLock;

/// An item as it is in the transaction.
pub(super) struct StoredItem {
    pub(super) id: ItemRow,
    pub(super) handle: Handle,
    /// The batch that last changed it.
    pub(super) seq: Seq,
    pub(super) location: ItemLocation,
    pub(super) has_locator: bool,
    /// Whether the row matches its checksum.
    pub(super) is_row_sound: bool,
}

/// The columns of [`stored_item_from_row`], for a query over `item i`.
pub(super) static STORED_ITEM_COLUMNS: LazyLock<String> =
    LazyLock::new(|| format!("{ITEM_META_COLUMNS}, i.ordinal, i.row_checksum"));

/// Reads an item from the columns [`STORED_ITEM_COLUMNS`].
pub(super) fn stored_item_from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredItem> {
    let is_row_sound = is_item_row_sound(row, 9, 10)?;
    Ok(StoredItem {
        id: row.get(0)?,
        handle: Handle::from_bytes(&row.get::<_, Vec<u8>>(1)?),
        seq: row.get(6)?,
        location: ItemLocation {
            // A changed kind may hide a schedule.
            is_in_calendar: !is_row_sound
                || Kind::from_number(row.get(2)?)
                    .is_some_and(|kind| kind.collection_type().has_schedules()),
            collection: row.get(3)?,
            uid: row.get(4)?,
            recurrence_id: row.get(7)?,
            is_new: false,
        },
        has_locator: Kind::from_number(row.get(2)?).is_some_and(Kind::has_locator),
        is_row_sound,
    })
}

/// Statements that a batch runs for each new item.
#[derive(Default)]
struct InsertStatements<'a> {
    item: Option<CachedStatement<'a>>,
    source_bytes: Option<CachedStatement<'a>>,
}

impl<'a> InsertStatements<'a> {
    fn item(&mut self, tx: &'a WriteTransaction<'a>) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepare_once(
            &mut self.item,
            tx,
            "INSERT INTO item(id, collection, kind, uid, recurrence_id, uid_origin, handle, seq, ordinal, stored_fields,
                              calendar_context, row_checksum) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )
    }

    fn source_bytes(
        &mut self,
        tx: &'a WriteTransaction<'a>,
    ) -> rusqlite::Result<&mut CachedStatement<'a>> {
        prepare_once(&mut self.source_bytes, tx, "INSERT INTO source_bytes VALUES(?1, ?2, ?3, ?4)")
    }
}

fn prepare_once<'s, 'a>(
    slot: &'s mut Option<CachedStatement<'a>>,
    tx: &'a WriteTransaction<'a>,
    sql: &str,
) -> rusqlite::Result<&'s mut CachedStatement<'a>> {
    let statement = match slot.take() {
        Some(statement) => statement,
        None => tx.prepare_cached(sql)?,
    };
    Ok(slot.insert(statement))
}

/// The identity of a new item.
pub(super) struct NewItem {
    pub(super) id: ItemRow,
    pub(super) collection: CollectionRow,
    pub(super) handle: Handle,
    pub(super) ordinal: i64,
}

/// Writes the rows of a batch's items.
pub(super) struct ItemRowWriter<'a> {
    tx: &'a WriteTransaction<'a>,
    seq: Seq,
    inserts: InsertStatements<'a>,
    pub(super) context_refs: ContextRefCounts,
    /// The number of the last row that was given to an item.
    pub(super) last_row_number: i64,
    /// The bytes of the versions in the history.
    pub(super) history_bytes: i64,
}

impl<'a> ItemRowWriter<'a> {
    pub(super) fn new(
        tx: &'a WriteTransaction<'a>,
        seq: Seq,
        meta: &MetaTable,
    ) -> DatabaseResult<ItemRowWriter<'a>> {
        Ok(ItemRowWriter {
            tx,
            seq,
            inserts: InsertStatements::default(),
            context_refs: ContextRefCounts::default(),
            last_row_number: meta.number("last_item")?,
            history_bytes: meta.number("history_bytes")?,
        })
    }

    /// Returns the row of a new item.
    pub(super) fn allocate_row(&mut self) -> ItemRow {
        self.last_row_number += 1;
        ItemRow::from_number(self.last_row_number)
    }

    /// Inserts an item.
    pub(super) fn insert(
        &mut self,
        item: &NewItem,
        put: ItemPut,
        entry: &IndexDocument,
    ) -> DatabaseResult<()> {
        let context = self.acquire_calendar_context(&put)?;
        let kind = put.parsed.kind().number();
        let uid_origin = encode_uid_origin(put.derived_uid, entry.has_uid);
        let columns = VersionColumns {
            item: item.id,
            handle: item.handle,
            kind,
            collection: item.collection,
            uid: &put.uid,
            uid_origin,
            seq: self.seq,
            recurrence_id: put.parsed.recurrence_id(),
            calendar_context: context,
        };
        let row_checksum = columns.to_checksum().at_ordinal(item.ordinal);
        self.inserts.item(self.tx)?.execute((
            item.id,
            item.collection,
            kind,
            &put.uid,
            put.parsed.recurrence_id(),
            uid_origin,
            item.handle.to_bytes(),
            self.seq,
            item.ordinal,
            &entry.stored_fields,
            context,
            row_checksum,
        ))?;
        let bytes = put.parsed.into_bytes();
        let checksum = Checksum::from_item(item.id, &bytes);
        let stored = blob::store_bytes(self.tx, bytes)?;
        let row = (item.id, stored.bytes, stored.blob_hash, checksum);
        self.inserts.source_bytes(self.tx)?.execute(row)?;
        Ok(())
    }

    /// Replaces an item, whose version was copied into the history.
    pub(super) fn update(
        &mut self,
        item: &StoredItem,
        ordinal: i64,
        put: ItemPut,
        entry: &IndexDocument,
    ) -> DatabaseResult<()> {
        let context = self.acquire_calendar_context(&put)?;
        let kind = put.parsed.kind().number();
        let uid_origin = encode_uid_origin(put.derived_uid, entry.has_uid);
        let columns = VersionColumns {
            item: item.id,
            handle: item.handle,
            kind,
            collection: item.location.collection,
            uid: &item.location.uid,
            uid_origin,
            seq: self.seq,
            recurrence_id: &item.location.recurrence_id,
            calendar_context: context,
        };
        let row_checksum = columns.to_checksum().at_ordinal(ordinal);
        let bytes = put.parsed.into_bytes();
        let checksum = Checksum::from_item(item.id, &bytes);
        let stored = blob::store_bytes(self.tx, bytes)?;
        self.tx
            .prepare_cached(
                "UPDATE source_bytes SET bytes = ?2, blob_hash = ?3, checksum = ?4 WHERE item = ?1",
            )?
            .execute((item.id, stored.bytes, stored.blob_hash, checksum))?;
        self.tx
            .prepare_cached(
                "UPDATE item SET seq = ?2, ordinal = ?3, uid_origin = ?4, stored_fields = ?5, kind = ?6, calendar_context = ?7,
                        row_checksum = ?8 WHERE id = ?1",
            )?
            .execute((
                item.id,
                self.seq,
                ordinal,
                uid_origin,
                &entry.stored_fields,
                kind,
                context,
                row_checksum,
            ))?;
        Ok(())
    }

    /// Deletes an item, whose version was copied into the history.
    pub(super) fn delete(&mut self, item: ItemRow) -> rusqlite::Result<()> {
        uid_lookup::delete_collision(self.tx, item)?;
        self.tx.prepare_cached("DELETE FROM source_bytes WHERE item = ?1")?.execute([item])?;
        self.tx.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([item])?;
        Ok(())
    }

    /// Copies the current version of an item into `item_history`. Bytes in a blob are not copied.
    pub(super) fn log_version(
        &mut self,
        item: ItemRow,
        ordinal: i64,
        is_removed: bool,
    ) -> rusqlite::Result<()> {
        self.tx.prepare_cached(&LOG_ITEM_VERSION_SQL)?.execute((
            item,
            self.seq,
            ordinal,
            is_removed,
            history_place_checksum(self.seq, ordinal, is_removed),
        ))?;
        // The reference to a blob moves from `source_bytes` to `item_history`: its count stays the
        // same.
        self.history_bytes += self
            .tx
            .prepare_cached(
                "SELECT coalesce(length(s.bytes), length(b.bytes), 0)
                 FROM source_bytes s LEFT JOIN blob b ON b.hash = s.blob_hash WHERE s.item = ?1",
            )?
            .query_row([item], |row| row.get::<_, i64>(0))?;
        Ok(())
    }

    fn acquire_calendar_context(
        &mut self,
        put: &ItemPut,
    ) -> DatabaseResult<Option<CalendarContextRow>> {
        put.parsed
            .calendar_context()
            .map(|context| self.context_refs.acquire(self.tx, context))
            .transpose()
    }
}

/// Copies an item into `item_history`, with its schedule if its kind has one. The checksum of the
/// row is that of the item, without its place in its batch, and with the place of the version: a
/// damaged row stays one. SQLite has no operator for an exclusive or.
static LOG_ITEM_VERSION_SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO item_history(seq, ordinal, handle, collection, kind, removed, since, uid,
                                  recurrence_id, uid_origin, bytes, blob_hash, checksum,
                                  calendar_context, item, schedule, row_checksum)
         SELECT ?2, ?3, i.handle, i.collection, i.kind, ?4, i.seq, i.uid, i.recurrence_id,
                i.uid_origin, s.bytes, s.blob_hash, s.checksum, i.calendar_context, i.id,
                CASE WHEN {} THEN (SELECT data FROM idx_schedule WHERE item = i.id) END,
                (i.version_checksum | ?5) - (i.version_checksum & ?5)
         FROM (SELECT *, (row_checksum | ordinal) - (row_checksum & ordinal) AS version_checksum
               FROM item WHERE id = ?1) i JOIN source_bytes s ON s.item = i.id",
        kind_condition(Kind::has_schedule)
    )
});

/// Returns the value of `item.uid_origin`.
fn encode_uid_origin(derived_uid: bool, names_uid: bool) -> i64 {
    i64::from(derived_uid) * (1 + i64::from(names_uid))
}
