//! Libraries that the program loads as it runs.
//!
//! `RTLD_DEEPBIND` makes a library prefer its own symbols to those loaded before it, so that its
//! calls would pass this library by. The hook removes the flag and jumps on: the real function sees
//! the caller's return address, by which it finds the folders in which to search.

use crate::real_functions::next_symbol;
use core::arch::naked_asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

static REAL_DLOPEN: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Resolves the real function; keeps the registers with the arguments of `dlopen`. The caller has
/// pushed nothing, so two pushes leave the stack aligned.
#[unsafe(naked)]
unsafe extern "C" fn resolve_dlopen() {
    naked_asm!(
        "push rdi",
        "push rsi",
        "call {store}",
        "pop rsi",
        "pop rdi",
        "ret",
        store = sym store_dlopen,
    )
}

extern "C" fn store_dlopen() {
    // SAFETY: the name ends with a zero byte.
    REAL_DLOPEN.store(unsafe { next_symbol(c"dlopen".as_ptr()) }, Ordering::Release);
}

/// `dlopen` of POSIX.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlopen(
    path: *const libc::c_char,
    flags: libc::c_int,
) -> *mut c_void {
    naked_asm!(
        "and esi, {mask}",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jnz 2f",
        "call {resolve}",
        "mov rax, [rip + {real}]",
        "2: jmp rax",
        mask = const !libc::RTLD_DEEPBIND,
        real = sym REAL_DLOPEN,
        resolve = sym resolve_dlopen,
    )
}
