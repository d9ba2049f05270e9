//! Reading the items of a collection past damage, from the table of items.
//!
//! Separate from `item_reader`, whose reads end at the first damaged page, and use indexes, which
//! have no checksums: with a changed byte, an index may lack items. These reads cost a step for
//! each row of the table, of any collection, and a lookup for each row of a damaged range.

use crate::DamagedObject;
use crate::collection_reader::Collection;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::item_meta::ItemMeta;
use crate::item_reader::ItemReader;
use crate::meta::read_meta_number;
use crate::row_ids::ItemRow;
use std::collections::BTreeMap;
use std::fmt;

/// An item of a damaged store that cannot be read.
#[derive(Debug)]
pub struct UnreadableItem {
    /// The row of the item.
    pub row: ItemRow,
    /// The item; `None`: it is unknown which item has the row.
    pub handle: Option<Handle>,
    /// The name of its collection.
    pub collection: String,
    /// The error of reading it.
    pub error: Error,
}

impl fmt::Display for UnreadableItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DamagedObject::{Identity, Item};
        if let Error::DamagedObject { object: object @ (Item { .. } | Identity { .. }), .. } =
            &self.error
        {
            return write!(f, "{object} does not match its checksum");
        }
        match self.handle {
            Some(handle) => write!(f, "item {handle:.8} in {}: ", self.collection)?,
            None => write!(f, "row {} of table item: ", self.row)?,
        }
        match &self.error {
            Error::Damaged { what, .. } => f.write_str(what),
            Error::DamagedObject { object, .. } => {
                write!(f, "{object} does not match its checksum")
            }
            error => error.fmt(f),
        }
    }
}

/// A step of reading past damage.
#[derive(Debug, Default)]
pub struct ReadableItems {
    /// The items that can be read.
    pub items: Vec<ItemMeta>,
    /// The items that cannot be read.
    pub unreadable: Vec<UnreadableItem>,
    /// The last row of the step; `None`: there are no more rows.
    pub last: Option<ItemRow>,
}

impl ItemReader<'_> {
    /// Returns the items of a collection in the next `limit` rows after `after`, whether the rows
    /// exist or not. Items that cannot be read come with their errors.
    pub fn list_past_damage(
        self,
        collection: &Collection,
        after: Option<ItemRow>,
        limit: usize,
    ) -> Result<ReadableItems> {
        let _transaction = self.reader().begin_read()?;
        let last = self.reader().read_statement(|tx| read_meta_number(tx, "last_item"))?;
        let first = after.map_or(1, |after| after.next().to_number());
        let last = last.min(first.saturating_add(limit as i64) - 1);
        if first > last {
            return Ok(ReadableItems::default());
        }
        let mut found =
            ReadableItems { last: Some(ItemRow::from_number(last)), ..ReadableItems::default() };
        if let Ok(items) = self.list_in_table(collection, first - 1, last)
            && items.is_sorted_by(|item, next| item.row < next.row)
        {
            found.items = items;
            return Ok(found);
        }
        for row in (first..=last).map(ItemRow::from_number) {
            match self.find_by_row(row) {
                Ok(Some(meta)) if meta.collection_row == collection.row => found.items.push(meta),
                Ok(_) => {}
                Err(_) if self.is_in_other_collection(collection, row) => {}
                Err(error) => found.unreadable.push(UnreadableItem {
                    row,
                    handle: None,
                    collection: collection.name.clone(),
                    error,
                }),
            }
        }
        Ok(found)
    }

    /// Returns whether the index of collections can be read, and does not have the row in this
    /// collection.
    fn is_in_other_collection(self, collection: &Collection, row: ItemRow) -> bool {
        let sql = "SELECT count(*) FROM item INDEXED BY item_collection
                   WHERE collection = ?1 AND id = ?2";
        let count = self.reader().read_statement(|tx| {
            Ok(tx.query_row(sql, (collection.row, row), |found| found.get::<_, i64>(0))?)
        });
        count.is_ok_and(|count| count == 0)
    }

    /// Finds the handles of unreadable items in the index of handles, as far as it can be read.
    pub fn name_unreadable(self, unreadable: &mut [UnreadableItem]) -> Result<()> {
        let mut unnamed: BTreeMap<ItemRow, &mut Option<Handle>> = unreadable
            .iter_mut()
            .filter(|item| item.handle.is_none())
            .map(|item| (item.row, &mut item.handle))
            .collect();
        if unnamed.is_empty() {
            return Ok(());
        }
        let named = self.reader().read_statement(|tx| {
            let sql = "SELECT id, handle FROM item INDEXED BY item_handle ORDER BY handle";
            let mut select = tx.prepare_cached(sql)?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(handle) = unnamed.get_mut(&row.get::<_, ItemRow>(0)?) {
                    **handle = Some(Handle::from_bytes(row.get_ref(1)?.as_blob()?));
                }
            }
            Ok(())
        });
        match named {
            // The others are named by their rows.
            Err(error) if error.damaged_file().is_some() => Ok(()),
            named => named,
        }
    }
}
