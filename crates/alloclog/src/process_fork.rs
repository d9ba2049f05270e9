//! The forks of this process: events about them, and the rings of their children.
//!
//! The event of a fork comes before it, so that the collector knows what the child inherits. Only
//! the hook of `fork` sees that a fork has failed: a second event takes the first one back. The
//! handlers of libc see the forks of `daemon` and `forkpty`, too; if these fail, the collector
//! waits for a child.

use crate::real_functions::{ForkFn, next_symbol};
use crate::ring_layout::RingOperation;
use crate::ring_writer::{open_child_ring, writer};
use crate::syscall::thread_pointer;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The number of forks, with those of the processes that this one was forked from.
static FORKS: AtomicU32 = AtomicU32::new(0);
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
struct ForkingThread {
    /// The thread; 0: none.
    thread: AtomicU64,
    /// The number of its fork; 0: the event is not written.
    number: AtomicU32,
    /// Whether the hook releases it: 1, or 0.
    is_hooked: AtomicU32,
}

impl ForkingThread {
    /// Takes a free one for this thread.
    fn take(is_hooked: bool) -> Option<&'static ForkingThread> {
        let thread = thread_pointer();
        let free = FORKING_THREADS.iter().find(|slot| {
            let taken =
                slot.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        })?;
        free.is_hooked.store(u32::from(is_hooked), Ordering::Relaxed);
        Some(free)
    }

    fn release(&self) {
        self.number.store(0, Ordering::Relaxed);
        self.is_hooked.store(0, Ordering::Relaxed);
        self.thread.store(0, Ordering::Relaxed);
    }
}

/// Returns those of this thread: several if a handler of a fork or of a signal forks, too. The
/// thread of a child is that of its parent.
fn own_forks() -> impl Iterator<Item = &'static ForkingThread> {
    let thread = thread_pointer();
    FORKING_THREADS.iter().filter(move |slot| slot.thread.load(Ordering::Relaxed) == thread)
}

/// Returns the last fork that this thread has begun.
fn last_own_fork() -> Option<&'static ForkingThread> {
    own_forks()
        .filter(|slot| slot.number.load(Ordering::Relaxed) != 0)
        .max_by_key(|slot| slot.number.load(Ordering::Relaxed))
}

static REAL_FORK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `fork` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> c_int {
    let mut real = REAL_FORK.load(Ordering::Acquire);
    if real.is_null() {
        // SAFETY: the name ends with a zero byte.
        real = unsafe { next_symbol(c"fork".as_ptr()) };
        REAL_FORK.store(real, Ordering::Release);
    }
    if real.is_null() {
        return -1;
    }
    let slot = ForkingThread::take(true);
    // SAFETY: the type is that of fork.
    let result = unsafe { transmute::<*mut c_void, ForkFn>(real)() };
    // The child has released all.
    if let Some(slot) = slot.filter(|_| result != 0) {
        let number = slot.number.load(Ordering::Relaxed);
        slot.release();
        if result < 0
            && number != 0
            && let Some(writer) = writer()
        {
            writer.write(RingOperation::ForkFailure, 0, u64::from(number));
        }
    }
    result
}

/// Before a fork: the event tells the collector which memory the child inherits.
unsafe extern "C" fn before_fork() {
    if let Some(writer) = writer() {
        let number = FORKS.fetch_add(1, Ordering::Relaxed) + 1;
        let begun = own_forks().find(|slot| slot.number.load(Ordering::Relaxed) == 0);
        if let Some(slot) = begun.or_else(|| ForkingThread::take(false)) {
            slot.number.store(number, Ordering::Relaxed);
        }
        writer.write(RingOperation::Fork, 0, u64::from(number));
    }
}

/// In the parent, after a fork or its failure.
unsafe extern "C" fn after_fork_in_parent() {
    if let Some(slot) = last_own_fork()
        && slot.is_hooked.load(Ordering::Relaxed) == 0
    {
        slot.release();
    }
}

/// In the child of a fork: it gets a ring at once, so that it is known even if it never allocates.
unsafe extern "C" fn after_fork_in_child() {
    let number = last_own_fork().map_or(0, |slot| slot.number.load(Ordering::Relaxed));
    open_child_ring(number);
    // The threads of the parent are not in this process.
    for slot in &FORKING_THREADS {
        slot.release();
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

unsafe extern "C" fn at_load() {
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe {
        pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child))
    };
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;
