//! Occurrences instead of items: when in a window what an answer has happens, or when its alarms ring.
//!
//! The index knows of each item what it is in time, so no item is read for it. Work is bounded: of a rule that happens every
//! second only so much is given as was asked for, and it is said that there is more.

use crate::answer::Answer;
use crate::error::Error;
use crate::query::Query;
use crate::time::TimeTest;
use larder_store::{Occurring, Reader, Window};

/// Items that are asked in one transaction.
const PAGE: usize = 1024;

/// When the items of an answer happen in a window.
#[derive(Debug, Clone, Default)]
pub struct Expansion {
    /// Rows of items, and an occurrence of each, in the order of their beginnings; of alarms in the order in which they ring.
    pub occurrences: Vec<(i64, Occurring)>,
    /// There are more than were asked for.
    pub cut: bool,
    /// Rows of items of which not all occurrences could be found within bounds, or not the end of a COUNT.
    pub unsure: Vec<i64>,
}

/// Finds when the items of an answer happen in a window: the first `limit` of each, and in all.
///
/// # Errors
/// What the store reports.
pub fn expand(
    reader: &Reader,
    answer: &Answer,
    window: &Window,
    limit: usize,
) -> Result<Expansion, Error> {
    let mut expansion = Expansion { unsure: answer.unsure.clone(), ..Expansion::default() };
    let rows = answer.rows();
    for page in rows.chunks(PAGE) {
        reader.times(page, &mut |row, times| {
            let mut left = limit;
            let whole = times.each(window, &mut |occurring| {
                if left == 0 {
                    expansion.cut = true;
                    return false;
                }
                left -= 1;
                expansion.occurrences.push((row, occurring));
                true
            });
            if !whole {
                expansion.unsure.push(row);
            }
            // What comes behind the limit is not needed for the next items, either.
            if expansion.occurrences.len() > limit.saturating_mul(2) {
                cut(&mut expansion, limit);
            }
            true
        })?;
    }
    cut(&mut expansion, limit);
    expansion.unsure.sort_unstable();
    expansion.unsure.dedup();
    Ok(expansion)
}

fn cut(expansion: &mut Expansion, limit: usize) {
    let when = |occurring: &Occurring| match occurring.alarm {
        Some((at, _)) => at,
        None => occurring.of.start,
    };
    // In place: a stable sort takes as much memory again.
    expansion.occurrences.sort_unstable_by_key(|(row, occurring)| {
        (when(occurring), occurring.of.start, *row, occurring.alarm.map(|(_, line)| line))
    });
    expansion.cut |= expansion.occurrences.len() > limit;
    expansion.occurrences.truncate(limit);
}

/// The window in which a question wants something to be, where it wants one: what all of its answers have in common.
#[must_use]
pub fn window_of(query: &Query) -> Option<&Window> {
    match query {
        Query::Time(TimeTest::In(window)) => Some(window),
        Query::And(all) => all.iter().find_map(window_of),
        _ => None,
    }
}

/// Does any part of a question ask for a window?
pub(crate) fn asks_for_a_window(query: &Query) -> bool {
    match query {
        Query::Time(TimeTest::In(_)) => true,
        Query::And(all) | Query::Or(all) => all.iter().any(asks_for_a_window),
        Query::Not(of) => asks_for_a_window(of),
        _ => false,
    }
}
