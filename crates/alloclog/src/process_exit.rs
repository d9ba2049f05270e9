//! The end of the process by `_exit` or `quick_exit`, which run none of the usual handlers: such an
//! end could not be told from one by a signal. Forked children often end so.
//!
//! The next functions are looked up at the start, because `_exit` may be called by a handler of a
//! signal. Another library may have one of its own.

use crate::real_functions::next_symbol;
use crate::ring_writer::{note_exit, note_own_exit};
use crate::syscall::syscall3;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

static NEXT_EXIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static NEXT_C_EXIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// `_exit` of POSIX.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _exit(code: c_int) -> ! {
    end_process(&NEXT_EXIT, code)
}

/// `_Exit` of C.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // The name is C's.
pub(crate) extern "C" fn _Exit(code: c_int) -> ! {
    end_process(&NEXT_C_EXIT, code)
}

fn end_process(next: &AtomicPtr<c_void>, code: c_int) -> ! {
    note_exit();
    let next = next.load(Ordering::Acquire);
    if !next.is_null() {
        // SAFETY: the type is that of the functions.
        unsafe { transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(next)(code) };
    }
    loop {
        // SAFETY: takes no pointer.
        unsafe { syscall3(libc::SYS_exit_group, code as usize, 0, 0) };
    }
}

unsafe extern "C" {
    /// `at_quick_exit` of C as libc has it; the last argument names a library.
    fn __cxa_at_quick_exit(
        handler: unsafe extern "C" fn(*mut c_void),
        library: *mut c_void,
    ) -> c_int;
}

unsafe extern "C" fn at_quick_exit(_: *mut c_void) {
    note_own_exit();
}

unsafe extern "C" fn at_load() {
    // SAFETY: the names end with a zero byte; the handler is of this library, which is never
    // unloaded.
    unsafe {
        NEXT_EXIT.store(next_symbol(c"_exit".as_ptr()), Ordering::Release);
        NEXT_C_EXIT.store(next_symbol(c"_Exit".as_ptr()), Ordering::Release);
        __cxa_at_quick_exit(at_quick_exit, null_mut());
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;
