//! The threads that are about to fork, with the numbers of their forks.
//!
//! A child finds the number of its fork here. Apart from `process_fork`, because the ring of the
//! child needs it, too, which may be opened before the handler of that module runs.

use crate::syscall::thread_pointer;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The forks that are about to happen: several threads may fork at the same time.
static FORKING_THREADS: [ForkingThread; MAX_FORKING_THREADS] = [const {
    ForkingThread {
        thread: AtomicU64::new(0),
        number: AtomicU32::new(0),
        is_hooked: AtomicU32::new(0),
    }
}; MAX_FORKING_THREADS];
/// Threads that fork at the same time of which a child still knows the number of its fork.
const MAX_FORKING_THREADS: usize = 64;

/// A thread that forks.
pub(crate) struct ForkingThread {
    /// The thread; 0: none.
    thread: AtomicU64,
    /// The number of its fork; 0: the event is not written.
    pub(crate) number: AtomicU32,
    /// 1 if the hook releases it, else 0.
    pub(crate) is_hooked: AtomicU32,
}

impl ForkingThread {
    /// Takes a free one for this thread.
    pub(crate) fn take(is_hooked: bool) -> Option<&'static ForkingThread> {
        let thread = thread_pointer();
        let free = FORKING_THREADS.iter().find(|slot| {
            let taken =
                slot.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        })?;
        free.is_hooked.store(u32::from(is_hooked), Ordering::Relaxed);
        Some(free)
    }

    /// Frees it for another fork.
    pub(crate) fn release(&self) {
        self.number.store(0, Ordering::Relaxed);
        self.is_hooked.store(0, Ordering::Relaxed);
        self.thread.store(0, Ordering::Relaxed);
    }
}

/// Returns those of this thread: several if a handler of a fork or of a signal forks, too. The
/// thread of a child is that of its parent.
pub(crate) fn own_forks() -> impl Iterator<Item = &'static ForkingThread> {
    let thread = thread_pointer();
    FORKING_THREADS.iter().filter(move |slot| slot.thread.load(Ordering::Relaxed) == thread)
}

/// Returns the last fork that this thread has begun.
pub(crate) fn last_own_fork() -> Option<&'static ForkingThread> {
    own_forks()
        .filter(|slot| slot.number.load(Ordering::Relaxed) != 0)
        .max_by_key(|slot| slot.number.load(Ordering::Relaxed))
}

/// In the child of a fork: returns the number of that fork; 0: it is not known.
pub(crate) fn fork_number() -> u32 {
    last_own_fork().map_or(0, |slot| slot.number.load(Ordering::Relaxed))
}

/// Releases those of all threads.
pub(crate) fn release_forks() {
    FORKING_THREADS.iter().for_each(ForkingThread::release);
}
