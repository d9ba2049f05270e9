//! Occurrences instead of items: when in a window what an answer has happens, or when its alarms
//! ring.
//!
//! The index knows of each item what it is in time, so no item is read for it. Work is bounded: of
//! a rule that happens every second only so much is given as was asked for, and it is said that
//! there is more.

use crate::error::Error;
use crate::query::Query;
use crate::result_set::ResultSet;
use crate::time_test::TimeTest;
use larder_store::{ItemOccurrence, Reader, TimeRange};

/// Items that are asked in one transaction.
const ITEMS_PER_TX: usize = 1024;

/// When the items of an answer happen in a window.
#[derive(Debug, Clone, Default)]
pub struct Expansion {
    /// Rows of items, and an occurrence of each, in the order of their beginnings; of alarms in the
    /// order in which they ring.
    pub occurrences: Vec<(i64, ItemOccurrence)>,
    /// There are more than were asked for.
    pub truncated: bool,
    /// Rows of items of which not all occurrences could be found within bounds, or not the end of a
    /// COUNT.
    pub uncertain_rows: Vec<i64>,
}

/// Finds when the items of an answer happen in a window: the first `limit` of each, and in all.
///
/// # Errors
/// What the store reports.
pub fn expand_occurrences(
    reader: &Reader,
    answer: &ResultSet,
    window: &TimeRange,
    limit: usize,
) -> Result<Expansion, Error> {
    let mut expansion =
        Expansion { uncertain_rows: answer.uncertain_rows.clone(), ..Expansion::default() };
    let rows = answer.rows();
    for page in rows.chunks(ITEMS_PER_TX) {
        reader.for_each_schedule(page, &mut |row, times| {
            let mut left = limit;
            let whole = times.for_each_in(window, &mut |occurring| {
                if left == 0 {
                    expansion.truncated = true;
                    return false;
                }
                left -= 1;
                expansion.occurrences.push((row, occurring));
                true
            });
            if !whole {
                expansion.uncertain_rows.push(row);
            }
            // What comes behind the limit is not needed for the next items, either.
            if expansion.occurrences.len() > limit.saturating_mul(2) {
                apply_limit(&mut expansion, limit);
            }
            true
        })?;
    }
    apply_limit(&mut expansion, limit);
    expansion.uncertain_rows.sort_unstable();
    expansion.uncertain_rows.dedup();
    Ok(expansion)
}

fn apply_limit(expansion: &mut Expansion, limit: usize) {
    let when = |occurring: &ItemOccurrence| match occurring.alarm {
        Some((at, _)) => at,
        None => occurring.occurrence.start,
    };
    // In place: a stable sort takes as much memory again.
    expansion.occurrences.sort_unstable_by_key(|(row, occurring)| {
        (when(occurring), occurring.occurrence.start, *row, occurring.alarm.map(|(_, line)| line))
    });
    expansion.truncated |= expansion.occurrences.len() > limit;
    expansion.occurrences.truncate(limit);
}

/// The window in which a question wants something to be, where it wants one: what all of its
/// answers have in common.
#[must_use]
pub fn required_time_range(query: &Query) -> Option<&TimeRange> {
    match query {
        Query::Time(TimeTest::InRange(window)) => Some(window),
        Query::And(all) => all.iter().find_map(required_time_range),
        _ => None,
    }
}

/// Does any part of a question ask for a window?
pub(crate) fn has_time_range(query: &Query) -> bool {
    match query {
        Query::Time(TimeTest::InRange(_)) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(has_time_range),
        Query::Not(of) => has_time_range(of),
        _ => false,
    }
}
