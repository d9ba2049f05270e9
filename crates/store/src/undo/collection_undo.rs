//! The undo of the changes of collections: which are restored, renamed or removed, and when.
//!
//! This module writes nothing. Separate from `item_undo` because a collection has no versions with
//! bytes.

use crate::CollectionType;
use crate::batch::{BatchChange, InternalChange};
use crate::error::{DatabaseError, DatabaseResult};
use crate::read_transaction::ReadTransaction;
use crate::row_ids::{CollectionRow, OperationId};
use larder_extract::IndexConfig;
use rusqlite::{OptionalExtension as _, Row};
use std::collections::BTreeSet;

/// The changes of collections that an undo makes before it restores items.
pub(super) enum CollectionPlan {
    Changes(Vec<BatchChange>),
    /// A collection, which had this name after the operation, changed since.
    Conflict(String),
}

/// A collection that an operation created, renamed, indexed differently, removed or restored.
struct CollectionChange {
    collection: CollectionRow,
    /// The state before the operation; `None`: the collection did not exist.
    before: Option<CollectionState>,
    current: CollectionState,
}

/// The properties of a collection that can change.
#[derive(Debug, Clone)]
struct CollectionState {
    name: String,
    removed: bool,
    index_config: String,
    collection_type: CollectionType,
    properties: Option<Vec<u8>>,
}

/// Plans the undo of the changes that an operation made to collections.
pub(super) struct CollectionUndoPlanner<'a> {
    pub(super) tx: ReadTransaction<'a>,
    pub(super) operation: OperationId,
}

impl CollectionUndoPlanner<'_> {
    /// Plans the changes before the items are restored: the changes of collections that the items
    /// were in, and of collections that the operation renamed, indexed differently or removed; the
    /// newest change comes first.
    pub(super) fn plan_before_items(
        &self,
        item_collections: &BTreeSet<CollectionRow>,
    ) -> DatabaseResult<CollectionPlan> {
        let mut changes = self.plan_restores(item_collections)?;
        for change in self.find_changes()? {
            let after = self.find_state_after(&change)?;
            let CollectionChange { collection, before, current } = change;
            let Some(before) = before else {
                // An empty collection may have the name that another one gets back; one with items
                // waits until they are removed.
                if !current.removed {
                    changes.push(BatchChange::RemoveCollection(current.name));
                }
                continue;
            };
            let is_moved = (before.name != after.name || after.removed)
                && (before.name != current.name || current.removed);
            let is_reindexed = before.index_config != after.index_config
                && before.index_config != current.index_config;
            let has_moved_since = (&after.name, after.removed) != (&current.name, current.removed);
            let has_index_changed_since =
                after.index_config != current.index_config || after.removed != current.removed;
            if is_moved && has_moved_since || is_reindexed && has_index_changed_since {
                return Ok(CollectionPlan::Conflict(after.name));
            }
            let name = if is_moved { before.name } else { current.name.clone() };
            if is_moved && current.removed {
                changes.push(BatchChange::Internal(InternalChange::RestoreCollection(collection)));
            }
            if name != current.name {
                changes.push(BatchChange::RenameCollection(current.name, name.clone()));
            }
            // A colour that was set since is no reason to refuse the undo of an import: it stays.
            if before.properties != after.properties && after.properties == current.properties {
                changes.push(BatchChange::SetCollectionProperties(name.clone(), before.properties));
            }
            if is_reindexed {
                let config = IndexConfig::from_stored(&before.index_config, before.collection_type);
                changes.push(BatchChange::SetIndexConfig(name, config.as_ref().clone()));
            }
        }
        Ok(CollectionPlan::Changes(changes))
    }

    /// Returns the changes that restore the removed ones of these collections.
    fn plan_restores(
        &self,
        collections: &BTreeSet<CollectionRow>,
    ) -> DatabaseResult<Vec<BatchChange>> {
        let mut changes = Vec::new();
        for &collection in collections {
            let sql = "SELECT removed FROM collection WHERE id = ?1";
            if self.tx.query_row(sql, [collection], |row| row.get(0))? {
                let restore = InternalChange::RestoreCollection(collection);
                changes.push(BatchChange::Internal(restore));
            }
        }
        Ok(changes)
    }

    /// Plans the removals of the collections that did not exist before the operation, after their
    /// items are removed.
    pub(super) fn plan_removals(&self) -> DatabaseResult<Vec<BatchChange>> {
        let changes = self.find_changes()?.into_iter();
        let created = changes.filter(|change| change.before.is_none() && !change.current.removed);
        Ok(created.map(|change| BatchChange::RemoveCollection(change.current.name)).collect())
    }

    /// Returns the state of a collection after the operation: the state that the next operation
    /// replaced, or the current state if there was none.
    fn find_state_after(&self, change: &CollectionChange) -> rusqlite::Result<CollectionState> {
        let sql = "SELECT f.name, f.removed, f.index_config, f.properties FROM collection_history f
                   WHERE f.collection = ?2 AND f.seq >
                     (SELECT max(mine.seq) FROM collection_history mine JOIN batch b ON b.seq = mine.seq
                      WHERE mine.collection = ?2 AND b.operation = ?1)
                   ORDER BY f.seq, f.ordinal LIMIT 1";
        let read_row = |row: &Row<'_>| {
            Ok(CollectionState {
                name: row.get(0)?,
                removed: row.get(1)?,
                index_config: row.get(2)?,
                collection_type: change.current.collection_type,
                properties: row.get(3)?,
            })
        };
        let next =
            self.tx.query_row(sql, (self.operation, change.collection), read_row).optional()?;
        Ok(next.unwrap_or_else(|| change.current.clone()))
    }

    fn find_changes(&self) -> DatabaseResult<Vec<CollectionChange>> {
        let sql = "SELECT f.collection, c.type, iif(f.removed, NULL, f.name), f.index_config, f.properties,
                          c.name, c.removed, c.index_config, c.properties
                   FROM batch b JOIN collection_history f ON f.seq = b.seq
                   JOIN collection c ON c.id = f.collection
                   WHERE b.operation = ?1 ORDER BY f.seq, f.ordinal";
        let mut select = self.tx.prepare_cached(sql)?;
        let mut rows = select.query([self.operation])?;
        let mut changes: Vec<CollectionChange> = Vec::new();
        while let Some(row) = rows.next()? {
            let change = collection_change_from_row(row)?;
            // The oldest row of a collection has its state before the operation.
            if changes.iter().all(|known| known.collection != change.collection) {
                changes.push(change);
            }
        }
        changes.reverse();
        Ok(changes)
    }
}

fn collection_change_from_row(row: &Row<'_>) -> DatabaseResult<CollectionChange> {
    let (collection, number) = (row.get(0)?, row.get(1)?);
    let collection_type = CollectionType::from_number(number)
        .ok_or_else(|| DatabaseError::unknown_collection_type(collection, number))?;
    let name_before: Option<String> = row.get(2)?;
    let before = match name_before {
        Some(name) => Some(CollectionState {
            name,
            removed: false,
            index_config: row.get(3)?,
            collection_type,
            properties: row.get(4)?,
        }),
        None => None,
    };
    let current = CollectionState {
        name: row.get(5)?,
        removed: row.get(6)?,
        index_config: row.get(7)?,
        collection_type,
        properties: row.get(8)?,
    };
    Ok(CollectionChange { collection, before, current })
}
