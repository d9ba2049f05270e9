//! The end of the process by its own will, which is told from one by a signal: `exit` calls a
//! function of this library, `_exit` and `quick_exit`, by which forked children often end, run none
//! of the usual handlers.
//!
//! A child after `vfork` is in the memory of its parent, whose end is not that of the child. It may
//! not call `exit`, but some do when they cannot begin their program. A system call tells them
//! apart, which a restricted program may have forbidden itself: so `exit` makes it only in a
//! program that has called `vfork`.
//!
//! The next functions are looked up at the start, because `_exit` may be called by a handler of a
//! signal. Another library may have one of its own.

use crate::process_ring::{note_exit, note_own_exit};
use crate::real_functions::next_symbol;
use crate::syscall::syscall3;
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static NEXT_EXIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static NEXT_C_EXIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static NEXT_VFORK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// 1 if the program has called `vfork`, else 0.
static HAS_VFORKED: AtomicU32 = AtomicU32::new(0);

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

/// `vfork` of POSIX. It returns twice, so the hook leaves nothing on the stack, and jumps on.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn vfork() -> c_int {
    naked_asm!(
        "mov dword ptr [rip + {has_vforked}], 1",
        "mov rax, [rip + {next}]",
        "test rax, rax",
        "jnz 2f",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "mov rax, [rip + {next}]",
        "2: jmp rax",
        has_vforked = sym HAS_VFORKED,
        next = sym NEXT_VFORK,
        find = sym find_vfork,
    )
}

extern "C" fn find_vfork() {
    // SAFETY: the name ends with a zero byte.
    NEXT_VFORK.store(unsafe { next_symbol(c"vfork".as_ptr()) }, Ordering::Release);
}

/// Notes that `exit` or `quick_exit` was called.
fn note_exit_by_handlers() {
    match HAS_VFORKED.load(Ordering::Relaxed) {
        0 => note_own_exit(),
        _ => note_exit(),
    }
}

unsafe extern "C" fn at_exit() {
    note_exit_by_handlers();
}

unsafe extern "C" {
    /// `at_quick_exit` of C as libc has it; the last argument names a library.
    fn __cxa_at_quick_exit(
        handler: unsafe extern "C" fn(*mut c_void),
        library: *mut c_void,
    ) -> c_int;
}

unsafe extern "C" fn at_quick_exit(_: *mut c_void) {
    note_exit_by_handlers();
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
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: unsafe extern "C" fn() = at_exit;
