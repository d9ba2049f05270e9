//! Limits the memory of the data that is in transit between the reading and the writing thread.
//!
//! It only counts bytes. It is separate from the pipeline because it is the only place where the
//! reading thread waits for the writing thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A number of bytes that may be in flight. Closing it wakes and turns away all waiting threads.
pub(super) struct MemoryBudget {
    limit: usize,
    state: Mutex<BudgetState>,
    freed: Condvar,
}

#[derive(Default)]
struct BudgetState {
    used: usize,
    closed: bool,
}

impl MemoryBudget {
    pub(super) fn new(limit: usize) -> MemoryBudget {
        MemoryBudget { limit, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Waits until `cost` fits. A larger cost than the whole budget passes when nothing else is in
    /// flight. Returns `false` if the budget was closed.
    pub(super) fn acquire(&self, cost: usize) -> bool {
        let mut state = self.lock();
        while !state.closed && state.used > 0 && state.used + cost > self.limit {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.used += cost;
        !state.closed
    }

    /// Returns bytes to the budget.
    pub(super) fn release(&self, cost: usize) {
        let mut state = self.lock();
        state.used = state.used.saturating_sub(cost);
        drop(state);
        self.freed.notify_all();
    }

    /// Closes the budget.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The counts are consistent after every statement, so a panicked thread did not break them.
    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
