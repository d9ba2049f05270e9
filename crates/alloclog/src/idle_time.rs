//! The time for which a thread has waited in vain for the collector.
//!
//! Plain numbers, which a test includes.

/// A wait of a tenth of a second that takes longer was one of a stopped process: its collector was
/// perhaps stopped, too.
const STOPPED_NANOSECONDS: i64 = 1_000_000_000;

/// The time since the collector was seen to stand still.
#[derive(Default)]
pub(crate) struct IdleTime {
    /// The time of the first wait in vain, and of the last.
    waits: Option<(i64, i64)>,
}

impl IdleTime {
    /// Notes that the collector goes on.
    pub(crate) fn end(&mut self) {
        self.waits = None;
    }

    /// Notes a wait in vain that has ended now, in nanoseconds; returns the time since the first.
    pub(crate) fn note_wait(&mut self, now: i64) -> i64 {
        let first = match self.waits {
            Some((first, last)) if now - last <= STOPPED_NANOSECONDS => first,
            _ => now,
        };
        self.waits = Some((first, now));
        now - first
    }
}
