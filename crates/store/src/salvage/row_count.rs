//! The number of rows that a salvage could not read, as far as it is known.
//!
//! Separate from `repair`, which names lost rows one by one: an index says how many there are, and
//! without one the number is unknown.

use super::SalvageLoss;
use super::repair::Repair;
use super::table_spec::TABLES;
use crate::error::DatabaseResult;
use std::collections::BTreeSet;

impl Repair<'_> {
    /// Counts the former versions that an index names, and that could not be read.
    pub(super) fn count_missing_versions(&mut self) -> DatabaseResult<()> {
        if !self.is_damaged("item_history") {
            return Ok(());
        }
        if !self.has_whole_index(&["item_history_seq", "item_history_handle"]) {
            self.losses.push(SalvageLoss::Unknown { objects: "previous versions of items" });
            return Ok(());
        }
        let present: BTreeSet<i64> =
            self.numbers("SELECT id FROM item_history")?.into_iter().collect();
        let named = self.copied.entries.versions.iter();
        let missing: Vec<_> =
            named.filter(|(version, _)| !present.contains(&version.to_number())).collect();
        if !missing.is_empty() {
            self.losses.push(SalvageLoss::Versions { versions: missing.len() as u64 });
        }
        let batches = missing.into_iter().map(|(_, seq)| *seq);
        self.incomplete_until = batches.chain([self.incomplete_until]).max().unwrap_or_default();
        Ok(())
    }

    /// Returns whether all items are here, or are named by an index.
    pub(super) fn has_all_items(&self) -> bool {
        !self.is_damaged("item")
            || !self.is_damaged("source_bytes")
            || self.has_whole_index(&["item_handle", "item_collection", "item_seq"])
    }

    /// Returns whether each item is in the new store again whose row could not be read.
    pub(super) fn has_all_item_rows(&self) -> bool {
        let is_lost = |loss: &SalvageLoss| matches!(loss, SalvageLoss::Item { .. });
        self.has_all_items() && self.unnamed_items == 0 && !self.losses.iter().any(is_lost)
    }

    /// Names the objects of which an unknown number may be missing, because neither their table nor
    /// an index of it could be read completely.
    pub(super) fn name_unknown_rows(&mut self) {
        let has_all_collections = !self.is_damaged("collection")
            || self.has_whole_index(&["sqlite_autoindex_collection_1"]);
        let unknown = [
            (!self.has_all_items(), "items"),
            (!has_all_collections, "collections"),
            (self.is_damaged("collection_history"), "previous versions of collections"),
            (self.is_damaged("operation"), "operations"),
            (self.is_damaged("batch"), "batches"),
            (self.is_damaged("meta"), "values of the store itself"),
        ];
        let unknown = unknown.into_iter().filter(|(is_unknown, _)| *is_unknown);
        self.losses.extend(unknown.map(|(_, objects)| SalvageLoss::Unknown { objects }));
    }

    /// Compares the number of rows in the new store with the number in the trees of the old one.
    /// They differ only after a loss; a loss that has no name yet gets one.
    pub(super) fn compare_row_counts(&mut self) -> DatabaseResult<bool> {
        let mut is_equal = true;
        for table in TABLES.iter().filter(|table| table.name != "meta") {
            let sql = format!("SELECT count(*) FROM {}", table.name);
            let count: i64 = self.tx.query_row(&sql, [], |row| row.get(0))?;
            let expected = self.copied.row_counts.get(table.name);
            is_equal &= expected == Some(&count.unsigned_abs());
        }
        if !is_equal && self.losses.is_empty() && self.copied.damaged_tables.is_empty() {
            self.losses.push(SalvageLoss::Unknown { objects: "rows" });
        }
        Ok(is_equal)
    }
}
