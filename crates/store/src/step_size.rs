//! The size of a step of long work, adapted to the time for which steps hold the write lock.
//!
//! Separate from the work, which counts pages, bytes, items or messages.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A step should hold the lock of the store for this time: short for those who wait, once when they
/// open the store and once when they write, and long enough that syncing each step to the disk is a
/// small part of the work.
const TARGET_LOCK_TIME: Duration = Duration::from_millis(30);
/// A step of the index of mail should hold its lock for this time: only searches after a change of
/// labels wait for it, once, and what each step writes again is a smaller part of the work. With
/// 100 ms, a first index takes a twelfth less CPU time than with 30 ms.
const INDEX_LOCK_TIME: Duration = Duration::from_millis(80);

/// A number of pages, bytes, items or messages that are written in one transaction.
#[derive(Debug, Clone)]
pub struct StepSize {
    current: usize,
    target: Duration,
    limits: RangeInclusive<usize>,
}

impl StepSize {
    /// Creates the size of a first step, with the limits of the sizes of further steps.
    #[must_use]
    pub const fn new(first: usize, limits: RangeInclusive<usize>) -> StepSize {
        StepSize { current: first, target: TARGET_LOCK_TIME, limits }
    }

    /// Creates the size of a first step in the index of mail, whose steps may hold the lock longer.
    #[must_use]
    pub const fn in_index(first: usize, limits: RangeInclusive<usize>) -> StepSize {
        StepSize { current: first, target: INDEX_LOCK_TIME, limits }
    }

    /// Returns the size of the next step.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// Adapts the size after a step of so many that held the lock for this time. A quick step that
    /// was much smaller does not tell how long one of the whole size takes.
    pub fn adapt_to(&mut self, written: usize, held: Duration) {
        if written >= self.current / 2 || held > self.target {
            self.adapt(held);
        }
    }

    /// Adapts the size after a step that held the lock for this time.
    pub fn adapt(&mut self, held: Duration) {
        let next = if held > 2 * self.target {
            self.current / 2
        } else if held > self.target {
            self.current / 4 * 3
        } else if held < self.target / 2 {
            self.current.saturating_mul(3) / 2
        } else {
            self.current
        };
        self.current = next.clamp(*self.limits.start(), *self.limits.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_approach_the_target() {
        let mut size = StepSize::new(100, 10..=1000);
        let check = |size: &mut StepSize, milliseconds, expect| {
            size.adapt(Duration::from_millis(milliseconds));
            assert_eq!(size.current(), expect, "{milliseconds} ms");
        };
        for (held, expect) in [(10, 150), (20, 150), (40, 111), (200, 55), (1, 82)] {
            check(&mut size, held, expect);
        }
        check(&mut StepSize::in_index(100, 10..=1000), 30, 150);
        check(&mut StepSize::in_index(100, 10..=1000), 60, 100);
        size.adapt_to(10, Duration::ZERO);
        assert_eq!(size.current(), 82);
        size.adapt_to(10, Duration::from_millis(50));
        assert_eq!(size.current(), 60);
        (0..20).for_each(|_| size.adapt(Duration::ZERO));
        check(&mut size, 0, 1000);
        (0..20).for_each(|_| size.adapt(Duration::from_secs(1)));
        check(&mut size, 1000, 10);
    }
}
