//! The budget of matching changes: the steps that one poll may spend on each query.
//!
//! A poll holds the engine's lock, so a query with thousands of terms and a change of many bytes
//! would delay every other client. A query that exceeds its budget is ended with an error. Separate
//! from the fan-out because a lagging view is brought up to date within the same budget.

use super::subscription_index::QueryId;
use crate::error::Error;
use crate::step_counter::StepCounter;
use rustc_hash::FxHashMap;

/// The steps of one query in one poll: some tenth of a second. A text of 50 MB that is replaced is
/// compared with one term.
pub(super) const CHANGE_STEPS_PER_POLL: u64 = 100_000_000;
/// The additional steps for each changed item, which takes as long to parse.
const STEPS_PER_CHANGE: u64 = 65_536;

/// The steps that one poll has spent on each query.
#[derive(Default)]
pub(super) struct ChangeBudget {
    changes: u64,
    taken: FxHashMap<QueryId, u64>,
    /// The queries that exceeded their budget.
    pub(super) exceeded: Vec<QueryId>,
}

impl ChangeBudget {
    /// Begins the tests of a changed item.
    pub(super) fn add_change(&mut self) {
        self.changes += 1;
    }

    /// Runs a test of a change for a query; `None` if the query has exceeded its budget.
    pub(super) fn run<T>(
        &mut self,
        query: QueryId,
        test: impl FnOnce(&StepCounter) -> T,
    ) -> Option<T> {
        let allowed =
            CHANGE_STEPS_PER_POLL.saturating_add(self.changes.saturating_mul(STEPS_PER_CHANGE));
        let taken = self.taken.entry(query).or_default();
        if *taken == u64::MAX {
            return None;
        }
        let steps = StepCounter::new(allowed.saturating_sub(*taken));
        let result = test(&steps);
        if steps.is_exceeded() {
            *taken = u64::MAX;
            self.exceeded.push(query);
            return None;
        }
        *taken += steps.count_taken();
        Some(result)
    }

    /// The error of a query that exceeded its budget.
    pub(super) fn error() -> Error {
        Error::StepLimit { max_steps: CHANGE_STEPS_PER_POLL }
    }
}
