//! The effect of the clock on answers: the difference between two readings of a relative query.
//!
//! Separate from the fan-out because the change feed does not contain these changes: the clock is
//! the only cause of a changed answer besides a batch.

use super::change_budget::CHANGE_STEPS_PER_POLL;
use super::item_version::list_range_occurrences;
use super::pending_changes::PendingRows;
use super::query_registry::RegisteredQuery;
use super::view_event::RemovedItem;
use super::view_query::ResolvedQuery;
use crate::error::Error;
use crate::execution::find;
use crate::search_request::{QueryBudget, SearchRequest};
use larder_store::{ItemRow, Reader, Seq};
use std::collections::HashSet;

/// Returns how the answer to a query differs from its answer under the resolution `next`.
pub(super) fn diff_answers(
    reader: &Reader,
    query: &RegisteredQuery,
    next: &ResolvedQuery,
    seq: Seq,
) -> Result<PendingRows, Error> {
    let mut changes = PendingRows { seq, by_clock: true, ..PendingRows::default() };
    let before = find_rows(reader, query.search_request())?.into_iter().collect::<HashSet<_>>();
    let after = find_rows(reader, query.view_query.search_request(&next.query))?;
    changes.added = after.iter().copied().filter(|row| !before.contains(row)).collect();
    let after = after.into_iter().collect::<HashSet<ItemRow>>();
    let mut removed: Vec<ItemRow> = before.difference(&after).copied().collect();
    removed.sort_unstable();
    reader.items().for_each(&removed, &mut |meta, _| {
        changes.removed.push(RemovedItem::from_meta(&meta));
        true
    })?;
    if let (Some(previous), Some(next)) = (&query.resolved.occurrence_range, &next.occurrence_range)
    {
        let mut common: Vec<ItemRow> = before.intersection(&after).copied().collect();
        common.sort_unstable();
        reader.items().for_each_schedule(&common, &mut |row, schedule| {
            if list_range_occurrences(Some(schedule), previous)
                != list_range_occurrences(Some(schedule), next)
            {
                changes.modified.push(row);
            }
            true
        })?;
    }
    Ok(changes)
}

/// Returns the rows of an answer, within the budget of changes; a missing collection holds nothing.
fn find_rows(reader: &Reader, request: SearchRequest) -> Result<Vec<ItemRow>, Error> {
    let max_steps = QueryBudget(CHANGE_STEPS_PER_POLL);
    match find(reader, &SearchRequest { max_steps, ..request }) {
        Ok(answer) => Ok(answer.rows()),
        Err(Error::Store(larder_store::Error::NoCollection { .. })) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
