//! The changes of the store during a search, applied to its result.
//!
//! A search reads in many short transactions, so that it keeps no writer waiting, and others may
//! write between them: its result then mixes several states of the store. [`apply_changes`] tests
//! the items again that were changed meanwhile, until the result is the answer at one state. Apart
//! from `query_run`, which publishes the answer and knows nothing of candidates.

use crate::collector::HitCollector;
use crate::error::Error;
use crate::result_set::{PAGE_ROWS, ResultSet};
use crate::search_request::SearchRequest;
use crate::verification::verify_rows;
use larder_store::{ItemRow, Reader, Seq, StoreState};
use std::collections::BTreeSet;

/// The maximum number of batches whose changes are listed in one transaction.
const MAX_BATCHES_PER_TX: Seq = 8;

/// Applies the changes after the state `since` to the result of a search that began at this state.
/// The request has no limit. Returns the state of the store at which the result is the answer;
/// `None`: the changes are not known, or concern more than items.
///
/// # Errors
/// [`Error::StepLimit`], or an error of the store.
pub(super) fn apply_changes(
    reader: &Reader,
    request: &SearchRequest,
    result: &mut ResultSet,
    since: &StoreState,
) -> Result<Option<StoreState>, Error> {
    let (mut state, mut update) = (since.clone(), None);
    loop {
        let transaction = reader.begin_read()?;
        let now = reader.changes().stamp()?;
        if now == state {
            break;
        }
        let is_comparable = now.seq > state.seq
            && now.collection_seq == state.collection_seq
            && now.epoch_and_zones == state.epoch_and_zones
            && now.rebuilds == state.rebuilds;
        if !is_comparable {
            return Ok(None);
        }
        let is_short = now.seq - state.seq <= MAX_BATCHES_PER_TX;
        let transaction = if is_short { Some(transaction) } else { None };
        let Some(rows) = list_changed_rows(reader, state.seq, now.seq)? else { return Ok(None) };
        let is_first = update.is_none();
        let hits = update.get_or_insert_with(|| HitCollector::new(reader, request));
        let rows = if is_first { take_hits(result, hits, rows) } else { rows };
        // A few items are tested in the transaction that named them: the result is then the answer
        // at its state, even if others write all the time.
        let is_last = transaction.is_some() && rows.len() <= PAGE_ROWS;
        if !is_last {
            drop(transaction);
        }
        hits.remove_rows(&rows);
        result.undecided_rows.retain(|row| !rows.contains(row));
        let rows: Vec<ItemRow> = rows.into_iter().collect();
        verify_rows(reader, &rows, result, hits)?;
        state = now;
        if is_last {
            break;
        }
    }
    if let Some(mut hits) = update {
        hits.unsorted.sort_unstable_by_key(|hit| hit.row);
        result.hits = hits.into_sorted_hits();
    }
    Ok(Some(state))
}

/// Moves the hits of a result to a collector. Returns the rows to test: the changed ones, and with
/// an order all, whose sort keys are not known any more.
fn take_hits(
    result: &mut ResultSet,
    hits: &mut HitCollector<'_>,
    mut changed: BTreeSet<ItemRow>,
) -> BTreeSet<ItemRow> {
    let found = std::mem::take(&mut result.hits);
    match hits.sort {
        Some(_) => changed.extend(found.iter().map(|hit| hit.row)),
        None => hits.unsorted = found,
    }
    changed
}

/// Lists the rows of the items that batches after `after` changed; `None` if they are not known.
fn list_changed_rows(
    reader: &Reader,
    mut after: Seq,
    last: Seq,
) -> Result<Option<BTreeSet<ItemRow>>, Error> {
    let mut all = BTreeSet::new();
    while after < last {
        let end = last.min(after + MAX_BATCHES_PER_TX);
        let Some(rows) = reader.changes().list_changed_rows(after, end)? else { return Ok(None) };
        all.extend(rows);
        after = end;
    }
    Ok(Some(all))
}
