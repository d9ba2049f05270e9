//! The number of rows that a salvage could not read, as far as it is known.
//!
//! Separate from `repair`, which names lost rows one by one: an index says how many there are, and
//! without one the number is unknown.

use super::SalvageLoss;
use super::repair::Repair;
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
        let versions = named.filter(|version| !present.contains(&version.to_number())).count();
        if versions > 0 {
            self.losses.push(SalvageLoss::Versions { versions: versions as u64 });
        }
        Ok(())
    }

    /// Names the objects of which an unknown number may be missing, because neither their table nor
    /// an index of it could be read completely.
    pub(super) fn name_unknown_rows(&mut self) {
        let has_all_items = !self.is_damaged("item")
            || !self.is_damaged("source_bytes")
            || self.has_whole_index(&["item_handle", "item_collection", "item_seq"]);
        let has_all_collections = !self.is_damaged("collection")
            || self.has_whole_index(&["sqlite_autoindex_collection_1"]);
        let unknown = [
            (!has_all_items, "items"),
            (!has_all_collections, "collections"),
            (self.is_damaged("collection_history"), "previous versions of collections"),
            (self.is_damaged("operation"), "operations"),
            (self.is_damaged("batch"), "batches"),
            (self.is_damaged("meta"), "values of the store itself"),
        ];
        let unknown = unknown.into_iter().filter(|(is_unknown, _)| *is_unknown);
        self.losses.extend(unknown.map(|(_, objects)| SalvageLoss::Unknown { objects }));
    }
}
