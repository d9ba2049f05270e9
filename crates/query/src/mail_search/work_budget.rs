//! The budget of a search for messages: the time that it may take, as far as that follows from what
//! it looks up.
//!
//! A unit of work is about a nanosecond. Separate from `step_counter`, whose steps are comparisons
//! of items of other kinds: there a query tests bytes, here it reads an index.

use crate::error::Error;
use std::cell::Cell;

/// The work of one search for messages: some ten seconds.
const MAX_SEARCH_WORK: u64 = 10_000_000_000;

/// Counts the work of one search.
#[derive(Debug)]
pub(super) struct WorkBudget {
    remaining: Cell<u64>,
    max_work: u64,
}

impl WorkBudget {
    pub(super) fn new(max_work: u64) -> WorkBudget {
        WorkBudget { remaining: Cell::new(max_work), max_work }
    }

    /// Begins to count anew.
    pub(super) fn restart(&self) {
        self.remaining.set(self.max_work);
    }

    /// Returns the work that is left.
    pub(super) fn remaining_work(&self) -> u64 {
        self.remaining.get()
    }

    /// Counts work. `term` names the term that takes it. After an error nothing is left: work may
    /// have been done before it was counted.
    ///
    /// # Errors
    /// [`Error::MailWorkLimit`].
    pub(super) fn spend(&self, work: u64, term: impl Fn() -> String) -> Result<(), Error> {
        match self.remaining.get().checked_sub(work) {
            Some(remaining) => {
                self.remaining.set(remaining);
                Ok(())
            }
            None => {
                self.remaining.set(0);
                Err(Error::MailWorkLimit { term: term() })
            }
        }
    }
}

impl Default for WorkBudget {
    fn default() -> WorkBudget {
        WorkBudget::new(MAX_SEARCH_WORK)
    }
}
