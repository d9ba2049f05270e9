//! The forks of this process: events about them, and the rings of their children.
//!
//! The event of a fork comes before it, from a handler of libc, so that the collector knows what
//! the child inherits. The hooks of `fork`, and of `daemon` and `forkpty`, which fork within libc,
//! see that a fork has failed: a second event takes the first one back.

use crate::forking_thread::{ForkingThread, last_own_fork, own_forks, release_forks};
use crate::process_ring::{note_exit, open_child_ring, take_back_exit};
use crate::real_functions::{ForkFn, SixWordsFn, next_symbol};
use crate::ring_layout::RingOperation;
use crate::ring_writer::writer;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The number of forks, with those of the processes that this one was forked from.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The next function of a name after this library, looked up when it is first called.
struct NextFunction(AtomicPtr<c_void>, &'static CStr);

static REAL_FORK: NextFunction = NextFunction(AtomicPtr::new(null_mut()), c"fork");
static REAL_PLAIN_FORK: NextFunction = NextFunction(AtomicPtr::new(null_mut()), c"_Fork");
static REAL_DAEMON: NextFunction = NextFunction(AtomicPtr::new(null_mut()), c"daemon");
static REAL_FORKPTY: NextFunction = NextFunction(AtomicPtr::new(null_mut()), c"forkpty");

impl NextFunction {
    /// Returns the function; null if there is none.
    fn address(&self) -> *mut c_void {
        let mut address = self.0.load(Ordering::Acquire);
        if address.is_null() {
            // SAFETY: the name ends with a zero byte.
            address = unsafe { next_symbol(self.1.as_ptr()) };
            self.0.store(address, Ordering::Release);
        }
        address
    }
}

/// Calls a function that forks; if it fails, the events of its forks are taken back.
fn call_fork(function: impl FnOnce() -> c_int) -> c_int {
    let slot = ForkingThread::take(true);
    let result = function();
    // In the child, which has released all, the number is 0.
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

/// `fork` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn fork() -> c_int {
    let real = REAL_FORK.address();
    if real.is_null() {
        return -1;
    }
    // SAFETY: the type is that of fork.
    call_fork(|| unsafe { transmute::<*mut c_void, ForkFn>(real)() })
}

/// `_Fork` of POSIX, which calls no handlers, and is for handlers of signals.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn _Fork() -> c_int {
    let real = REAL_PLAIN_FORK.address();
    if real.is_null() {
        return -1;
    }
    call_fork(|| {
        // SAFETY: the type is that of fork; the handlers are called in the order of a fork.
        unsafe {
            before_fork();
            let result = transmute::<*mut c_void, ForkFn>(real)();
            if result == 0 {
                after_fork_in_child();
            }
            result
        }
    })
}

/// `daemon` of BSD and glibc. It returns in the child, and in the parent if it has not forked.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn daemon(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_int {
    // The parent ends within libc, where no hook sees it.
    note_exit();
    // SAFETY: the arguments are those of the caller.
    let result = unsafe { call_next_fork(&REAL_DAEMON, [a, b, c, d, e, f]) };
    take_back_exit();
    result
}

/// `forkpty` of BSD and glibc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn forkpty(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_int {
    // SAFETY: the arguments are those of the caller.
    unsafe { call_next_fork(&REAL_FORKPTY, [a, b, c, d, e, f]) }
}

/// Calls a function with all words that registers pass: a library may have a function of its own
/// by such a name, with other arguments.
unsafe fn call_next_fork(function: &NextFunction, [a, b, c, d, e, f]: [usize; 6]) -> c_int {
    let real = function.address();
    if real.is_null() {
        return -1;
    }
    // SAFETY: what a function does not take from registers, it does not read.
    call_fork(|| unsafe { transmute::<*mut c_void, SixWordsFn>(real)(a, b, c, d, e, f) })
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
    open_child_ring();
    // The threads of the parent are not in this process.
    release_forks();
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
