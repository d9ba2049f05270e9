//! The forks of a process whose children have not sent their rings, and what these inherit.
//!
//! After the event of a fork the ring is read no further until the child appears: its ring tells
//! the position of the fork itself, because other threads write events in between. There the child
//! inherits what is live in the parent. Where the parent cannot wait, a snapshot is kept for the
//! child, which may appear later, or never. Snapshots share their pages with the parent until it
//! changes them, so they are dropped when they are old, or when they hold too much that it no
//! longer has.

use super::process_encoder::ProcessEncoder;
use std::time::{Duration, Instant};

/// How long a child may take to appear.
const FORK_WAIT: Duration = Duration::from_secs(1);
/// How long one may take after another child of the same parent did not appear: the rest of its
/// children may be as that one.
const SHORT_FORK_WAIT: Duration = Duration::from_millis(20);
/// How long a snapshot is kept for a child that is late.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(10);
/// Snapshots that are kept.
const MAX_SNAPSHOTS: usize = 64;
/// Bytes that snapshots may hold when there is a new one, apart from what the parent still has.
/// Later changes of the parent are held once for all snapshots.
const MAX_SNAPSHOT_BYTES: usize = 32_000_000;

/// The objects that the child of a fork inherits.
struct ForkSnapshot {
    number: u32,
    /// Until when the child was awaited.
    limit: Instant,
    encoder: ProcessEncoder,
}

/// A child that has appeared, but whose fork is not reached.
struct ArrivedChild {
    number: u32,
    /// The position of the fork.
    position: u64,
    /// Whether the event of the fork was read, which comes before that position.
    is_begun: bool,
}

/// The forks of a process whose children have not appeared, or wait for the ring to be read.
#[derive(Default)]
pub(super) struct AwaitedForks {
    /// The fork at whose event reading has stopped, and until when the child is awaited.
    last: Option<(u32, Instant)>,
    arrived: Vec<ArrivedChild>,
    /// Forks whose children have no rings, and whose events are not reached.
    failed: Vec<u32>,
    /// Earlier forks, the oldest first.
    snapshots: Vec<ForkSnapshot>,
    /// Forks whose snapshots were dropped.
    forgotten: u32,
    /// The last child that was awaited in vain has not appeared since.
    is_child_missing: bool,
}

impl AwaitedForks {
    /// Begins to wait for the child of the fork whose event was read.
    pub(super) fn begin(&mut self, number: u32) {
        if let Some(index) = self.failed.iter().position(|failed| *failed == number) {
            self.failed.swap_remove(index);
            return;
        }
        match self.arrived.iter_mut().find(|child| child.number == number) {
            Some(child) => child.is_begun = true,
            None => {
                let wait = if self.is_child_missing { SHORT_FORK_WAIT } else { FORK_WAIT };
                self.last = Some((number, Instant::now() + wait));
            }
        }
    }

    /// Notes that the child of a fork has appeared, and at which position the fork was.
    pub(super) fn note_child(&mut self, number: u32, position: u64) {
        if self.arrived.iter().all(|child| child.number != number) {
            let is_begun = self.last_number() == Some(number);
            if is_begun {
                self.last = None;
            }
            self.arrived.push(ArrivedChild { number, position, is_begun });
        }
    }

    /// Returns the position up to which the ring may be read: there is the next fork whose child
    /// has appeared.
    pub(super) fn next_position(&self) -> u64 {
        let begun = self.arrived.iter().filter(|child| child.is_begun);
        begun.map(|child| child.position).min().unwrap_or(u64::MAX)
    }

    /// Returns the number of the fork at which reading has stopped.
    pub(super) fn last_number(&self) -> Option<u32> {
        self.last.map(|(number, _)| number)
    }

    /// Takes a fork back that has failed.
    pub(super) fn take_back(&mut self, number: u32) {
        self.last = self.last.filter(|(last, _)| *last != number);
        self.arrived.retain(|child| child.number != number);
        self.snapshots.retain(|snapshot| snapshot.number != number);
    }

    /// Notes that the child of a fork has appeared, and can have no ring.
    pub(super) fn note_failure(&mut self, number: u32) {
        let is_begun = self.last_number() == Some(number)
            || self.snapshots.iter().any(|snapshot| snapshot.number == number);
        if is_begun {
            self.take_back(number);
        } else {
            self.failed.push(number);
        }
    }

    /// Returns whether reading has to wait for the child of the last fork.
    pub(super) fn awaits_child(&mut self, parent: &mut ProcessEncoder) -> bool {
        let now = Instant::now();
        if self.last.is_some_and(|(_, limit)| now >= limit) {
            self.is_child_missing = true;
            self.keep_snapshot(parent);
        }
        self.drop_old_snapshots(now);
        self.last.is_some()
    }

    /// Returns whether a child waits, or may still appear within the time that children take.
    pub(super) fn is_child_due(&self) -> bool {
        let now = Instant::now();
        self.last.is_some()
            || !self.arrived.is_empty()
            || self.snapshots.iter().any(|snapshot| now < snapshot.limit)
    }

    /// Keeps what the child of the last fork inherits, so that reading can go on.
    pub(super) fn keep_snapshot(&mut self, parent: &mut ProcessEncoder) {
        let Some((number, limit)) = self.last.take() else { return };
        let bytes = self.snapshots.iter().map(|snapshot| snapshot.encoder.bytes_apart(parent));
        let bytes: Vec<usize> = bytes.collect();
        let mut sum: usize = bytes.iter().sum();
        let mut dropped = self.snapshots.len().saturating_sub(MAX_SNAPSHOTS - 1);
        sum -= bytes.iter().take(dropped).sum::<usize>();
        for bytes in bytes.iter().skip(dropped) {
            if sum <= MAX_SNAPSHOT_BYTES {
                break;
            }
            sum -= bytes;
            dropped += 1;
        }
        self.snapshots.drain(..dropped);
        self.forgotten += dropped as u32;
        self.snapshots.push(ForkSnapshot { number, limit, encoder: parent.fork() });
    }

    /// Drops the snapshots whose children are very late.
    fn drop_old_snapshots(&mut self, now: Instant) {
        let before = self.snapshots.len();
        self.snapshots.retain(|snapshot| now < snapshot.limit + SNAPSHOT_LIFETIME);
        self.forgotten += (before - self.snapshots.len()) as u32;
    }

    /// Returns the number of children that have not appeared.
    pub(super) fn lost_children(&self) -> u32 {
        self.forgotten + self.snapshots.len() as u32 + u32::from(self.last.is_some())
    }

    /// Returns what the child of a fork inherits that was noted, if the ring was read up to its
    /// position, or is read no further; or else if there is a snapshot.
    pub(super) fn take(
        &mut self,
        number: u32,
        (position, is_last): (u64, bool),
        parent: &mut ProcessEncoder,
    ) -> Option<ProcessEncoder> {
        let is_noted = |child: &ArrivedChild| child.number == number;
        let snapshot = self.snapshots.iter().position(|snapshot| snapshot.number == number);
        if let Some(index) = snapshot {
            self.is_child_missing = false;
            self.arrived.retain(|child| !is_noted(child));
            return Some(self.snapshots.remove(index).encoder);
        }
        let index = self.arrived.iter().position(is_noted)?;
        let child = self.arrived.get(index).filter(|child| child.is_begun || is_last)?;
        if !is_last && position < child.position {
            return None;
        }
        let is_begun = self.arrived.remove(index).is_begun;
        is_begun.then(|| parent.fork())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring_layout::RingOperation;
    use super::super::ring_reader::RingEvent;
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
        let mut take = |forks: &mut AwaitedForks, number| {
            forks.note_child(number, 0);
            forks.take(number, (0, true), &mut parent).is_some()
        };
        for number in [2, 4, 3, 1] {
            assert!(forks.is_child_due());
            assert!(take(&mut forks, number), "{number}");
            assert!(!take(&mut forks, number), "{number}");
        }
        assert!(!forks.is_child_due() && !forks.awaits_child(&mut parent));
        assert_eq!(forks.lost_children(), 0);
    }

    #[test]
    fn a_child_without_a_ring_is_not_awaited() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        forks.begin(1);
        forks.note_failure(1);
        assert!(!forks.awaits_child(&mut parent) && !forks.is_child_due());
        forks.note_failure(2);
        forks.begin(2);
        assert!(!forks.awaits_child(&mut parent) && !forks.is_child_due());
        assert_eq!(forks.lost_children(), 0);
    }

    #[test]
    fn a_child_inherits_at_the_position_of_its_fork() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        forks.begin(1);
        forks.note_child(1, 500);
        assert!(!forks.awaits_child(&mut parent) && forks.is_child_due());
        assert_eq!(forks.next_position(), 500);
        assert!(forks.take(1, (499, false), &mut parent).is_none());
        // A child may appear before the event of its fork was read.
        forks.note_child(2, 300);
        assert_eq!(forks.next_position(), 500);
        assert!(forks.take(2, (400, false), &mut parent).is_none());
        forks.begin(2);
        assert!(!forks.awaits_child(&mut parent));
        assert_eq!(forks.next_position(), 300);
        assert!(forks.take(2, (300, false), &mut parent).is_some());
        assert!(forks.take(1, (500, false), &mut parent).is_some());
        assert!(!forks.is_child_due());
        assert_eq!((forks.next_position(), forks.lost_children()), (u64::MAX, 0));
    }

    #[test]
    fn one_missing_child_is_waited_for() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        forks.begin(1);
        forks.last = Some((1, Instant::now()));
        assert!(!forks.awaits_child(&mut parent));
        forks.begin(2);
        let limit = |forks: &AwaitedForks| forks.last.unwrap().1;
        assert!(limit(&forks) <= Instant::now() + SHORT_FORK_WAIT);
        // The first one was late.
        forks.note_child(1, 0);
        assert!(forks.take(1, (0, false), &mut parent).is_some());
        forks.begin(3);
        assert!(limit(&forks) > Instant::now() + SHORT_FORK_WAIT);
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
        assert!(forks.take(1, (0, true), &mut parent).is_none());
        assert!((2..=last).all(|number| forks.take(number, (0, true), &mut parent).is_some()));
    }

    #[test]
    fn old_snapshots_are_dropped() {
        let mut parent = ProcessEncoder::new();
        let mut forks = AwaitedForks::default();
        forks.begin(1);
        forks.keep_snapshot(&mut parent);
        forks.drop_old_snapshots(Instant::now() + FORK_WAIT);
        assert_eq!((forks.snapshots.len(), forks.lost_children()), (1, 1));
        forks.drop_old_snapshots(Instant::now() + FORK_WAIT + SNAPSHOT_LIFETIME);
        assert_eq!((forks.snapshots.len(), forks.lost_children()), (0, 1));
    }

    /// Snapshots of a parent that changes all of its objects after each fork share nothing with it.
    #[test]
    fn snapshots_hold_few_bytes() {
        let mut parent = ProcessEncoder::new();
        let event = |operation, number: u64, size| RingEvent {
            operation,
            address: 0x5555_0000_0000 + number * 48,
            size,
            operand: 0,
            thread: 0,
            operands: &[],
        };
        let objects = 50_000;
        (0..objects).for_each(|number| parent.encode(&event(RingOperation::Malloc, number, 40)));
        let mut forks = AwaitedForks::default();
        for number in 1..=30 {
            forks.begin(number);
            forks.keep_snapshot(&mut parent);
            for number in 0..objects {
                parent.encode(&event(RingOperation::Free, number, 0));
                parent.encode(&event(RingOperation::Malloc, number, 40));
            }
            parent.take_block(0);
        }
        let bytes = |snapshot: &ForkSnapshot| snapshot.encoder.bytes_apart(&parent);
        let table = bytes(forks.snapshots.last().unwrap());
        let sum: usize = forks.snapshots.iter().map(bytes).sum();
        assert!(table > 1_000_000, "a table of {table} bytes");
        assert!(sum <= MAX_SNAPSHOT_BYTES + table, "{sum} bytes, {table} of each");
        assert!(forks.snapshots.len() > 2);
        assert_eq!(forks.lost_children(), 30);
    }
}
