//! A number of bytes that several threads share: the one that asks for more waits.

use crate::mutex::lock;
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes that are given away in shares.
pub(super) struct ByteBudget {
    max: usize,
    used: Mutex<usize>,
    returned: Condvar,
}

/// A part of the budget, which is returned when it is dropped.
pub(super) struct BudgetShare<'b> {
    budget: &'b ByteBudget,
    bytes: usize,
}

impl ByteBudget {
    /// Creates a budget of so many bytes.
    pub(super) fn new(max: usize) -> ByteBudget {
        ByteBudget { max, used: Mutex::new(0), returned: Condvar::new() }
    }

    /// Waits until a share fits. One that is larger than the budget is given when no other is out.
    pub(super) fn take(&self, bytes: usize) -> BudgetShare<'_> {
        let used = lock(&self.used);
        let waited = self.returned.wait_while(used, |used| !self.has_room(*used, bytes));
        *waited.unwrap_or_else(PoisonError::into_inner) += bytes;
        BudgetShare { budget: self, bytes }
    }

    fn has_room(&self, used: usize, bytes: usize) -> bool {
        used == 0 || used.saturating_add(bytes) <= self.max
    }
}

impl Drop for BudgetShare<'_> {
    fn drop(&mut self) {
        let mut used = lock(&self.budget.used);
        *used = used.saturating_sub(self.bytes);
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_share_beyond_the_budget_is_given_alone() {
        let budget = ByteBudget::new(10);
        drop(budget.take(25));
        assert_eq!(*lock(&budget.used), 0);
        let _first = budget.take(4);
        assert!(budget.has_room(4, 6));
        assert!(!budget.has_room(4, 7));
        assert!(!budget.has_room(4, usize::MAX));
    }

    #[test]
    fn threads_never_have_more_than_the_budget() {
        let budget = ByteBudget::new(10);
        let (used, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for bytes in 1..=8 {
                let (budget, used, most) = (&budget, &used, &most);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _share = budget.take(bytes);
                        most.fetch_max(
                            used.fetch_add(bytes, Ordering::SeqCst) + bytes,
                            Ordering::SeqCst,
                        );
                        used.fetch_sub(bytes, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10);
        assert_eq!(*lock(&budget.used), 0);
    }
}
