//! Expansion: the occurrences, or alarms, of the items of a result in a time range.
//!
//! Schedules are in the index, so no item is read. Work is bounded: the number of occurrences is
//! limited, and a flag tells whether there are more. Separate from `agenda`, which adds the fields
//! that lists show.

use crate::error::Error;
use crate::query::Query;
use crate::result_set::ResultSet;
use crate::time_test::TimeTest;
use larder_store::{ItemOccurrence, ItemRow, Reader, TimeRange};
use larder_time::rule::StepBudget;

/// The maximum number of schedules read in one transaction.
const ITEMS_PER_TX: usize = 1024;

/// The occurrences of the items of a result in a time range.
#[derive(Debug, Clone, Default)]
pub struct Expansion {
    /// Rows of items with an occurrence each, by start; alarms by the time when they ring.
    pub occurrences: Vec<(ItemRow, ItemOccurrence)>,
    /// Whether there are more occurrences than the limit.
    pub truncated: bool,
    /// Rows of items whose occurrences, or whose last occurrence by COUNT, were not found within
    /// the budget.
    pub undecided_rows: Vec<ItemRow>,
}

/// Finds the first `limit` occurrences of the items of a result in a time range.
///
/// # Errors
/// Errors of the store.
pub fn expand_occurrences(
    reader: &Reader,
    result: &ResultSet,
    time_range: &TimeRange,
    limit: usize,
) -> Result<Expansion, Error> {
    let mut expansion =
        Expansion { undecided_rows: result.undecided_rows.clone(), ..Expansion::default() };
    let (rows, budget) = (result.rows(), StepBudget::for_occurrences(limit));
    for page in rows.chunks(ITEMS_PER_TX) {
        reader.items().for_each_schedule(page, &mut |row, schedule| {
            let mut remaining = limit;
            let is_complete = schedule.for_each_within(time_range, budget, &mut |occurrence| {
                if remaining == 0 {
                    expansion.truncated = true;
                    return false;
                }
                remaining -= 1;
                expansion.occurrences.push((row, occurrence));
                true
            });
            if !is_complete {
                expansion.undecided_rows.push(row);
            }
            // Occurrences after the limit are dropped early to bound the memory.
            if expansion.occurrences.len() > limit.saturating_mul(2) {
                apply_limit(&mut expansion, limit);
            }
            true
        })?;
    }
    apply_limit(&mut expansion, limit);
    expansion.undecided_rows.sort_unstable();
    expansion.undecided_rows.dedup();
    Ok(expansion)
}

fn apply_limit(expansion: &mut Expansion, limit: usize) {
    let sort_time = |occurrence: &ItemOccurrence| match occurrence.alarm {
        Some((at, _)) => at,
        None => occurrence.occurrence.start,
    };
    // Sorts in place, because a stable sort would need as much memory again.
    expansion.occurrences.sort_unstable_by_key(|(row, occurrence)| {
        (
            sort_time(occurrence),
            occurrence.occurrence.start,
            *row,
            occurrence.alarm.map(|(_, line)| line),
        )
    });
    expansion.truncated |= expansion.occurrences.len() > limit;
    expansion.occurrences.truncate(limit);
}

/// Returns the time range in which every match of a query has an occurrence, if the query has one.
#[must_use]
pub fn required_time_range(query: &Query) -> Option<&TimeRange> {
    match query {
        Query::Time(TimeTest::InRange(time_range)) => Some(time_range),
        Query::And(all) => all.iter().find_map(required_time_range),
        _ => None,
    }
}

/// Returns whether any part of a query is a time range.
pub(crate) fn has_time_range(query: &Query) -> bool {
    match query {
        Query::Time(TimeTest::InRange(_)) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(has_time_range),
        Query::Not(of) => has_time_range(of),
        _ => false,
    }
}
