//! How much may be in memory between the thread that reads and the one that writes.
//!
//! It counts; it holds nothing itself. It is apart because it is the only place where the reading
//! thread waits for the writing one, and so the only place where the two could wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may be in flight. Closing it wakes and turns away whoever waits.
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

    /// Waits until `cost` fits. What is larger than the whole budget passes when nothing else is in
    /// flight. False where the budget was closed.
    pub(super) fn acquire(&self, cost: usize) -> bool {
        let mut state = self.lock();
        while !state.closed && state.used > 0 && state.used + cost > self.limit {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.used += cost;
        !state.closed
    }

    /// Gives back what was taken.
    pub(super) fn release(&self, cost: usize) {
        let mut state = self.lock();
        state.used = state.used.saturating_sub(cost);
        drop(state);
        self.freed.notify_all();
    }

    /// Nothing is wanted any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The counts are whole after every statement, so a thread that panicked did not break them.
    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
