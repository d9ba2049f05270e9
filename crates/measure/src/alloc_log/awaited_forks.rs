//! The forks of a process whose children have not sent their rings, and what these inherit.
//!
//! After the event of a fork the ring is read no further until the child appears: then it inherits
//! what is live in the parent. Where the parent cannot wait, a snapshot is kept for the child,
//! which may appear later, or never. Snapshots share their pages with the parent.

use super::process_encoder::ProcessEncoder;
use std::time::{Duration, Instant};

/// How long a child may take to appear.
const FORK_WAIT: Duration = Duration::from_secs(1);
/// Snapshots that are kept.
const MAX_SNAPSHOTS: usize = 64;

/// The objects that the child of a fork inherits.
struct ForkSnapshot {
    number: u32,
    limit: Instant,
    encoder: ProcessEncoder,
}

/// The forks of a process whose children have not appeared.
#[derive(Default)]
pub(super) struct AwaitedForks {
    /// The fork at which reading has stopped, and until when the child is awaited.
    last: Option<(u32, Instant)>,
    /// Earlier forks, the oldest first.
    snapshots: Vec<ForkSnapshot>,
    /// Forks whose snapshots made room for later ones.
    forgotten: u32,
}

impl AwaitedForks {
    /// Begins to wait for the child of the fork whose event was read.
    pub(super) fn begin(&mut self, number: u32) {
        self.last = Some((number, Instant::now() + FORK_WAIT));
    }

    /// Returns the number of the fork at which reading has stopped.
    pub(super) fn last_number(&self) -> Option<u32> {
        self.last.map(|(number, _)| number)
    }

    /// Takes a fork back that has failed.
    pub(super) fn take_back(&mut self, number: u32) {
        self.last = self.last.filter(|(last, _)| *last != number);
        self.snapshots.retain(|snapshot| snapshot.number != number);
    }

    /// Returns whether reading has to wait for the child of the last fork.
    pub(super) fn awaits_child(&mut self, parent: &mut ProcessEncoder) -> bool {
        if self.last.is_some_and(|(_, limit)| Instant::now() >= limit) {
            self.keep_snapshot(parent);
        }
        self.last.is_some()
    }

    /// Returns whether a child may still appear within the time that children take.
    pub(super) fn is_child_due(&self) -> bool {
        let now = Instant::now();
        self.last.is_some() || self.snapshots.iter().any(|snapshot| now < snapshot.limit)
    }

    /// Keeps what the child of the last fork inherits, so that reading can go on.
    pub(super) fn keep_snapshot(&mut self, parent: &mut ProcessEncoder) {
        let Some((number, limit)) = self.last.take() else { return };
        if self.snapshots.len() == MAX_SNAPSHOTS {
            self.snapshots.remove(0);
            self.forgotten += 1;
        }
        self.snapshots.push(ForkSnapshot { number, limit, encoder: parent.fork() });
    }

    /// Returns the number of children that have not appeared. Of a recording that was interrupted,
    /// they may be about to.
    pub(super) fn lost_children(&self) -> u32 {
        self.forgotten + self.snapshots.len() as u32 + u32::from(self.last.is_some())
    }

    /// Returns what the child of a fork inherits; `None`: the event of that fork was not read, or
    /// its snapshot is gone.
    pub(super) fn take(
        &mut self,
        number: u32,
        parent: &mut ProcessEncoder,
    ) -> Option<ProcessEncoder> {
        if self.last.is_some_and(|(last, _)| last == number) {
            self.last = None;
            return Some(parent.fork());
        }
        let index = self.snapshots.iter().position(|snapshot| snapshot.number == number)?;
        Some(self.snapshots.remove(index).encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_inherit_in_any_order() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        for number in 1..=3 {
            forks.begin(number);
            assert!(forks.awaits_child(&mut parent));
            forks.keep_snapshot(&mut parent);
            assert!(!forks.awaits_child(&mut parent));
        }
        forks.begin(4);
        for number in [2, 4, 3, 1] {
            assert!(forks.is_child_due());
            assert!(forks.take(number, &mut parent).is_some(), "{number}");
            assert!(forks.take(number, &mut parent).is_none(), "{number}");
        }
        assert!(!forks.is_child_due() && !forks.awaits_child(&mut parent));
        assert_eq!(forks.lost_children(), 0);
    }

    #[test]
    fn the_oldest_snapshot_makes_room() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        let last = MAX_SNAPSHOTS as u32 + 1;
        for number in 1..=last {
            forks.begin(number);
            forks.keep_snapshot(&mut parent);
        }
        assert_eq!(forks.lost_children(), last);
        assert!(forks.take(1, &mut parent).is_none());
        assert!((2..=last).all(|number| forks.take(number, &mut parent).is_some()));
    }
}
