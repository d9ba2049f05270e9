//! The removal of items that belong to series, such as those that a query finds.
//!
//! Without its override, an occurrence has the time and the values of its series again: if the
//! override was all that cancelled it, it would come back. So an override is removed with its
//! occurrence, and a master with its overrides, which would be items of their own. Separate from
//! `scope`, whose caller names a scope.

use super::Error;
use super::scope::{exclude_occurrence, truncate_series};
use super::uid_group::UidGroup;
use crate::item_edits::RemovalOutcome;
use larder_store::{BatchChange, ChangeOutcome, ItemMeta, Operation, Precondition, Store};
use larder_time::civil::Instant;
use std::collections::BTreeMap;

/// Removes items of series, each with its occurrences, unless it was changed after the batch of its
/// sequence number. Each is a batch of `operation`; what was removed is added to `removed`.
///
/// # Errors
/// Errors of the store. The batches before the error are kept.
pub fn remove_series_items(
    store: &mut Store,
    operation: &mut Operation,
    items: &[ItemMeta],
    now: Instant,
    removed: &mut RemovalOutcome,
) -> Result<(), Error> {
    let mut groups: BTreeMap<(&str, &str), Vec<&ItemMeta>> = BTreeMap::new();
    for item in items {
        groups.entry((&*item.collection, &item.uid)).or_default().push(item);
    }
    operation.set_all_or_nothing(true);
    let result = groups.into_values().try_for_each(|items| {
        let masters = items.iter().filter(|item| item.recurrence_id.is_empty()).count();
        let is_step = |item: &&&ItemMeta| masters == 0 || item.recurrence_id.is_empty();
        items
            .iter()
            .filter(is_step)
            .try_for_each(|item| remove_series_item(store, operation, item, now, removed))
    });
    operation.set_all_or_nothing(false);
    removed.operation = operation.id();
    result
}

fn remove_series_item(
    store: &mut Store,
    operation: &mut Operation,
    item: &ItemMeta,
    now: Instant,
    removed: &mut RemovalOutcome,
) -> Result<(), Error> {
    let extractor =
        store.extractor_for_collection(&item.collection, item.kind.collection_type())?;
    let group = UidGroup::read(&store.open_reader()?, &extractor, item)?;
    match group.stored_seq(item.handle) {
        None => removed.already_removed += 1,
        Some(seq) if seq != item.seq => removed.changed.push(item.handle),
        Some(_) => {
            let changes = compute_item_removal(&group, item, now)?;
            let applied = store.apply(operation, changes)?;
            let is_removal =
                |outcome: &&ChangeOutcome| matches!(outcome, ChangeOutcome::Removed(_));
            let is_conflict =
                |outcome: &ChangeOutcome| matches!(outcome, ChangeOutcome::Conflict(..));
            match applied.outcomes.iter().any(is_conflict) {
                true => removed.changed.push(item.handle),
                false => {
                    removed.items += applied.outcomes.iter().filter(is_removal).count() as u64;
                }
            }
        }
    }
    Ok(())
}

/// Computes the changes that remove an item: all items of the UID if it is the master, else the
/// occurrences that it overrides.
fn compute_item_removal(
    group: &UidGroup<'_>,
    item: &ItemMeta,
    now: Instant,
) -> Result<Vec<BatchChange>, Error> {
    if item.recurrence_id.is_empty() {
        return group.compute_changes(Vec::new());
    }
    let alone = vec![BatchChange::Remove(item.handle, Precondition::UnchangedSince(item.seq))];
    let Some(key) = group.item_key(item) else { return Ok(alone) };
    if group.check_format_version().is_err() {
        return Ok(alone);
    }
    let parts = match group.is_following_override(key) {
        true => truncate_series(group, key, now)?,
        false => exclude_occurrence(group, key, now),
    };
    group.compute_changes(parts)
}
