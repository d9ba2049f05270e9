//! The size of a step of long work, adapted to the time for which steps hold the write lock.
//!
//! Separate from the work, which counts pages, bytes or items.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A step should hold the lock for this time: short for those who wait, and long enough that
/// syncing each step to the disk is a small part of the work.
const TARGET_LOCK_TIME: Duration = Duration::from_millis(50);

/// A number of pages, bytes or items.
#[derive(Debug, Clone)]
pub(crate) struct StepSize {
    current: usize,
    limits: RangeInclusive<usize>,
}

impl StepSize {
    /// The size of the first step, and the limits of the sizes of further steps.
    pub(crate) const fn new(first: usize, limits: RangeInclusive<usize>) -> StepSize {
        StepSize { current: first, limits }
    }

    /// Returns the size of the next step.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Adapts the size after a step that held the lock for this time.
    pub(crate) fn adapt(&mut self, held: Duration) {
        let next = if held > 2 * TARGET_LOCK_TIME {
            self.current / 2
        } else if held > TARGET_LOCK_TIME {
            self.current / 4 * 3
        } else if held < TARGET_LOCK_TIME / 2 {
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
        for (held, expect) in [(10, 150), (40, 150), (60, 111), (200, 55), (1, 82)] {
            check(&mut size, held, expect);
        }
        (0..20).for_each(|_| size.adapt(Duration::ZERO));
        check(&mut size, 0, 1000);
        (0..20).for_each(|_| size.adapt(Duration::from_secs(1)));
        check(&mut size, 1000, 10);
    }
}
