//! The end of the process by `_exit`, which runs no handlers: without its hook such an end could
//! not be told from one by a signal. Forked children often end so.

use crate::ring_writer::note_exit;
use crate::syscall::syscall3;
use core::ffi::c_int;

/// `_exit` of POSIX.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _exit(code: c_int) -> ! {
    note_exit();
    loop {
        // SAFETY: takes no pointer.
        unsafe { syscall3(libc::SYS_exit_group, code as usize, 0, 0) };
    }
}

/// `_Exit` of C.
#[unsafe(no_mangle)]
#[allow(non_snake_case)] // The name is C's.
pub(crate) extern "C" fn _Exit(code: c_int) -> ! {
    _exit(code)
}
