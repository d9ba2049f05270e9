//! The calendar contexts of items whose rows could not be read.
//!
//! The bytes of an item do not say which context it has. The reference counts of the contexts do,
//! as long as each of them is due to one item. Separate from `repair`, which makes the rows.

use super::{CopiedRows, SalvageLoss};
use crate::Kind;
use crate::calendar_context_table::read_unverified_context;
use crate::error::DatabaseResult;
use crate::row_ids::{CalendarContextRow, ItemRow};
use crate::write_transaction::WriteTransaction;
use larder_extract::CalendarContext;
use larder_format::component::Component;
use larder_format::kind::SourceFormat;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The references to calendar contexts of rows that could not be read.
pub(super) struct LostReferences {
    /// The number of references for each context.
    contexts: BTreeMap<CalendarContextRow, u64>,
    /// Whether only rows of `item` have these references, and there are no others.
    is_exact: bool,
    /// The number of references that no lost row explains: the context of a row has changed.
    changed: u64,
}

impl LostReferences {
    /// Compares the stored reference counts with the rows that were read, before rows are deleted.
    pub(super) fn count(
        tx: &WriteTransaction<'_>,
        copied: &CopiedRows,
    ) -> DatabaseResult<LostReferences> {
        let sql = "SELECT c.id, c.ref_count - coalesce(u.uses, 0) AS lost
                   FROM calendar_context c LEFT JOIN
                     (SELECT calendar_context AS id, count(*) AS uses FROM
                       (SELECT calendar_context FROM item
                        UNION ALL SELECT calendar_context FROM item_history)
                      WHERE calendar_context IS NOT NULL GROUP BY 1) u ON u.id = c.id
                   WHERE lost <> 0";
        let differences: Vec<(CalendarContextRow, i64)> = tx
            .prepare_cached(sql)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let damaged = &copied.damaged_tables;
        let is_exact = !damaged.contains("calendar_context") && !damaged.contains("item_history");
        let lost = differences.iter().filter(|(_, lost)| *lost > 0);
        let contexts: BTreeMap<CalendarContextRow, u64> =
            lost.map(|(context, lost)| (*context, lost.unsigned_abs())).collect();
        let surplus: i64 = differences.iter().map(|(_, lost)| (-lost).max(0)).sum();
        let surplus = surplus.unsigned_abs();
        let has_all_rows = is_exact && !damaged.contains("item");
        let changed = if has_all_rows { surplus.max(contexts.values().sum()) } else { surplus };
        Ok(LostReferences { contexts, is_exact, changed })
    }

    /// Gives each item that was made again its context, where only one assignment is possible: all
    /// lost rows were made again (`has_all_rows`), and each reference belongs to one of them.
    /// Returns what is lost.
    pub(super) fn assign(
        &self,
        tx: &WriteTransaction<'_>,
        restored_items: &[ItemRow],
        has_all_rows: bool,
    ) -> DatabaseResult<Vec<SalvageLoss>> {
        let mut losses = Vec::new();
        if self.changed > 0 {
            losses.push(SalvageLoss::CalendarContexts { items: self.changed });
        }
        losses.extend(self.assign_to_items(tx, restored_items, has_all_rows)?);
        Ok(losses)
    }

    fn assign_to_items(
        &self,
        tx: &WriteTransaction<'_>,
        restored_items: &[ItemRow],
        has_all_rows: bool,
    ) -> DatabaseResult<Option<SalvageLoss>> {
        let items = read_calendar_items(tx, restored_items)?;
        if items.is_empty() {
            return Ok(None);
        }
        if !self.is_exact {
            return Ok(Some(SalvageLoss::Unknown { objects: "time-zone definitions of items" }));
        }
        let mut candidates: BTreeMap<ItemRow, Vec<CalendarContextRow>> = BTreeMap::new();
        for row in self.contexts.keys() {
            let Some(found) = read_unverified_context(tx, *row)? else { continue };
            for (item, _) in items.iter().filter(|(_, ids)| is_context_for(&found.context, ids)) {
                candidates.entry(*item).or_default().push(*row);
            }
        }
        let mut lost = 0;
        for (row, references) in &self.contexts {
            let fitting: Vec<(&ItemRow, &Vec<CalendarContextRow>)> =
                candidates.iter().filter(|(_, rows)| rows.contains(row)).collect();
            let is_certain = has_all_rows
                && self.changed == 0
                && fitting.len() as u64 == *references
                && fitting.iter().all(|(_, rows)| rows.len() == 1);
            if !is_certain {
                lost += references;
                continue;
            }
            for (item, _) in fitting {
                let sql = "UPDATE item SET calendar_context = ?2 WHERE id = ?1";
                tx.prepare_cached(sql)?.execute((item, row))?;
            }
        }
        // References of items that are lost are among them.
        let items = lost.min(items.len() as u64);
        Ok((items > 0).then_some(SalvageLoss::CalendarContexts { items }))
    }
}

/// Returns the calendar components among these items, with the TZIDs that they name.
fn read_calendar_items(
    tx: &WriteTransaction<'_>,
    items: &[ItemRow],
) -> DatabaseResult<Vec<(ItemRow, Vec<String>)>> {
    let sql =
        "SELECT i.kind, coalesce(s.bytes, b.bytes) FROM item i JOIN source_bytes s ON s.item = i.id
               LEFT JOIN blob b ON b.hash = s.blob_hash WHERE i.id = ?1";
    let mut select = tx.prepare_cached(sql)?;
    let mut found = Vec::new();
    for item in items {
        let mut rows = select.query([item])?;
        let Some(row) = rows.next()? else { continue };
        let kind = Kind::from_number(row.get(0)?);
        if kind.is_some_and(|kind| kind.source_format() == SourceFormat::Icalendar) {
            let component = Component::parse(row.get_ref(1)?.as_blob()?);
            let tzids = component.tzids().into_iter().map(Cow::into_owned).collect();
            found.push((*item, tzids));
        }
    }
    Ok(found)
}

/// Returns whether an item that names these TZIDs may have this context.
fn is_context_for(context: &Arc<CalendarContext>, tzids: &[String]) -> bool {
    context.subset_for(tzids).is_some_and(|subset| subset.is_equivalent(context))
}
