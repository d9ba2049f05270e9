//! The budget of a query: the number of steps that its predicate may take.
//!
//! A step is one byte of a value compared with one term. The number of terms times the bytes of the
//! items has no other limit: a query of 40 KB has a thousand terms, and a full scan compares each
//! with every value of every item. Separate from `matcher`, which counts the steps, because each
//! search, and each reading of the change feed, has a budget of its own.

use crate::error::Error;
use std::cell::Cell;

/// The maximum number of steps of one search: some ten seconds. A full scan of a million contacts
/// takes about 300 million steps for each term.
pub const MAX_QUERY_STEPS: u64 = 10_000_000_000;

/// The steps of a test besides the bytes that it compares: to call it and to look its value up.
const STEPS_PER_TEST: u64 = 8;

/// Counts the steps of one search.
#[derive(Debug, Clone)]
pub(crate) struct StepCounter {
    remaining: Cell<u64>,
    max_steps: u64,
    is_exceeded: Cell<bool>,
}

impl StepCounter {
    pub(crate) fn new(max_steps: u64) -> StepCounter {
        StepCounter { remaining: Cell::new(max_steps), max_steps, is_exceeded: Cell::new(false) }
    }

    /// A counter without a limit.
    pub(crate) fn without_limit() -> StepCounter {
        StepCounter::new(u64::MAX)
    }

    /// Counts one test that compares this many bytes. Returns false if the budget is exceeded; then
    /// the test need not be made, because [`StepCounter::check`] fails.
    pub(crate) fn count_test(&self, bytes: u64) -> bool {
        if self.is_exceeded.get() {
            return false;
        }
        let remaining = self.remaining.get().checked_sub(bytes.saturating_add(STEPS_PER_TEST));
        match remaining {
            Some(remaining) => self.remaining.set(remaining),
            None => self.is_exceeded.set(true),
        }
        remaining.is_some()
    }

    /// Returns the number of steps that are left.
    pub(crate) fn count_remaining(&self) -> u64 {
        self.remaining.get()
    }

    /// Returns the number of steps taken.
    pub(crate) fn count_taken(&self) -> u64 {
        self.max_steps - self.remaining.get()
    }

    /// Returns whether a test was refused.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Fails if a test was refused: the results of the tests are then not known.
    ///
    /// # Errors
    /// [`Error::StepLimit`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.is_exceeded.get() {
            true => Err(Error::StepLimit { max_steps: self.max_steps }),
            false => Ok(()),
        }
    }
}

impl Default for StepCounter {
    fn default() -> StepCounter {
        StepCounter::new(MAX_QUERY_STEPS)
    }
}
