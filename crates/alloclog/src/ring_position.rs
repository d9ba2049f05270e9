//! The position of the next free word of a ring, which a writer moves in one instruction: whatever
//! interrupts the writer, no two events have the same words.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// The position of the next free word, counted from the start of the recording.
pub(crate) struct RingPosition(AtomicU64);

impl RingPosition {
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds to the position in a process with one thread; returns what it was. The instruction
    /// takes no lock: it guards against handlers of signals, which run on the same processor.
    #[inline(always)]
    pub(crate) fn add_single(&self, words: u64) -> u64 {
        let before: u64;
        // SAFETY: the place is an aligned word of this process, which no other thread changes.
        unsafe {
            asm!("xadd [{place}], {words}", place = in(reg) self.0.as_ptr(),
                words = inlateout(reg) words => before, options(nostack));
        }
        before
    }

    /// Moves the position, if nobody has moved it meanwhile; else returns where it is.
    #[inline(always)]
    pub(crate) fn advance(&self, from: u64, to: u64) -> Result<(), u64> {
        let moved = self.0.compare_exchange_weak(from, to, Ordering::Relaxed, Ordering::Relaxed);
        moved.map(|_| ())
    }
}
