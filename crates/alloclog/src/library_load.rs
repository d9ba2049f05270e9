//! Libraries that the program loads and closes as it runs.
//!
//! `RTLD_DEEPBIND` makes a library prefer its own symbols to those loaded before it, so that its
//! calls would pass this library by. The hook removes the flag and jumps on: the real function sees
//! the caller's return address, by which it finds the folders in which to search.
//!
//! Call stacks are looked up in the files that are mapped when the collector reads them. So
//! `dlclose` lets the collector read what there is, and then tells it that the library may be gone.

use crate::real_functions::{DlcloseFn, next_symbol};
use crate::ring_layout::RingOperation;
use crate::ring_writer::{RingWriter, writer};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
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

static REAL_DLCLOSE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// `dlclose` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(library: *mut c_void) -> c_int {
    let mut real = REAL_DLCLOSE.load(Ordering::Acquire);
    if real.is_null() {
        // SAFETY: the name ends with a zero byte.
        real = unsafe { next_symbol(c"dlclose".as_ptr()) };
        REAL_DLCLOSE.store(real, Ordering::Release);
    }
    if real.is_null() {
        return -1;
    }
    let offset = sampler().filter(|_| !library.is_null()).map(|writer| {
        writer.wait_until_read();
        // SAFETY: a handle is a `link_map`, whose first word this is, and the duty of the caller.
        unsafe { *library.cast::<u64>() }
    });
    // SAFETY: the type is that of dlclose.
    let result = unsafe { transmute::<*mut c_void, DlcloseFn>(real)(library) };
    // The library may have forked as it was unloaded: then this is a child with another writer.
    if let (Some(offset), Some(writer)) = (offset, sampler()) {
        writer.write(RingOperation::Unload, offset, 0);
    }
    result
}

/// Returns the writer of a process that takes samples of call stacks.
fn sampler() -> Option<RingWriter> {
    writer().filter(|writer| writer.state().stack_interval != 0)
}
