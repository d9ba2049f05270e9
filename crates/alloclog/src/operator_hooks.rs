//! The operators `new` and `delete` of C++.
//!
//! They are hooked apart from `malloc`, because the operators of jemalloc, tcmalloc and mimalloc do
//! not call it. Memory comes from the next `malloc` and is recorded once. If there is none, the
//! next operator of that name is called, which asks the program's new-handler, or throws; it may
//! unwind through the hook. That operator may be of a library that only the caller sees, as that of
//! a plugin: so the hooks pass the address to which they return.

use crate::hooks::{real_malloc, record_aligned, record_alloc, release};
use crate::loaded_symbol::function_near;
use crate::real_functions::{NewAlignedFn, NewFn, functions, next_symbol, resolve_functions};
use crate::ring_layout::RingOperation;
use core::arch::naked_asm;
use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr::null_mut;

/// `operator new`, and `operator new[]`: of zero bytes they return distinct memory, as malloc does.
#[inline(always)]
unsafe fn new(
    operation: RingOperation,
    size: usize,
    name: &CStr,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: nothing is asked of the caller.
    let address = unsafe { real_malloc(size) };
    record_alloc(operation, address, size);
    if address.is_null() {
        // SAFETY: the type is that of the operator.
        return unsafe { transmute::<*mut c_void, NewFn>(next_new(name, caller))(size) };
    }
    address
}

/// Returns the operator of a name behind the hook. A program that calls one has one: where none is
/// found it ends here, because it would take any memory that is returned for its own.
#[cold]
fn next_new(name: &CStr, caller: *const c_void) -> *mut c_void {
    // SAFETY: the name ends with a zero byte; the caller is in code that is loaded.
    let next = unsafe {
        let next = next_symbol(name.as_ptr());
        if next.is_null() { function_near(caller, name) } else { next }
    };
    if next.is_null() {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    next
}

#[inline(always)]
unsafe fn allocate_aligned(size: usize, alignment: usize) -> *mut c_void {
    resolve_functions();
    // SAFETY: the type is that of memalign.
    match functions().memalign {
        Some(memalign) => unsafe { memalign(alignment, size) },
        None => null_mut(),
    }
}

#[inline(always)]
unsafe fn new_aligned(
    operation: RingOperation,
    size: usize,
    alignment: usize,
    name: &CStr,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: nothing is asked of the caller.
    let address = unsafe { allocate_aligned(size, alignment) };
    record_aligned(operation, address, alignment, size);
    if address.is_null() {
        let next = next_new(name, caller);
        // SAFETY: the type is that of the operator.
        return unsafe { transmute::<*mut c_void, NewAlignedFn>(next)(size, alignment) };
    }
    address
}

/// Defines hooks of operators that take memory. The names are those of the C++ ABI (Itanium):
/// `_Znw` new, `_Zna` new[], `m` the size, `St11align_val_t` the alignment, `RKSt9nothrow_t`
/// nothrow.
macro_rules! new_operators {
    ($($symbol:ident, $nothrow:ident, $aligned:ident, $aligned_nothrow:ident:
       $plain:ident, $with_alignment:ident;)*) => {$(
        const _: () = {
            unsafe extern "C-unwind" fn hook(size: usize, caller: *const c_void) -> *mut c_void {
                let name = const_name(concat!(stringify!($symbol), "\0"));
                // SAFETY: the name is that of this operator.
                unsafe { new(RingOperation::$plain, size, name, caller) }
            }

            /// An operator that takes memory.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $symbol(size: usize) -> *mut c_void {
                naked_asm!("mov rsi, [rsp]", "jmp {hook}", hook = sym hook)
            }
        };

        /// An operator that takes memory, and returns null if there is none.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $nothrow(size: usize, _nothrow: *const c_void) -> *mut c_void {
            // SAFETY: nothing is asked of the caller.
            let address = unsafe { real_malloc(size) };
            record_alloc(RingOperation::$plain, address, size);
            address
        }

        const _: () = {
            unsafe extern "C-unwind" fn hook(
                size: usize,
                alignment: usize,
                caller: *const c_void,
            ) -> *mut c_void {
                let name = const_name(concat!(stringify!($aligned), "\0"));
                // SAFETY: the name is that of this operator.
                unsafe { new_aligned(RingOperation::$with_alignment, size, alignment, name, caller) }
            }

            /// An operator that takes aligned memory.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $aligned(size: usize, alignment: usize) -> *mut c_void {
                naked_asm!("mov rdx, [rsp]", "jmp {hook}", hook = sym hook)
            }
        };

        /// An operator that takes aligned memory, and returns null if there is none.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $aligned_nothrow(
            size: usize,
            alignment: usize,
            _nothrow: *const c_void,
        ) -> *mut c_void {
            // SAFETY: nothing is asked of the caller.
            let address = unsafe { allocate_aligned(size, alignment) };
            record_aligned(RingOperation::$with_alignment, address, alignment, size);
            address
        }
    )*};
}

/// Returns a name that ends with a zero byte.
#[inline(always)]
const fn const_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

new_operators! {
    _Znwm, _ZnwmRKSt9nothrow_t, _ZnwmSt11align_val_t, _ZnwmSt11align_val_tRKSt9nothrow_t:
        New, NewAligned;
    _Znam, _ZnamRKSt9nothrow_t, _ZnamSt11align_val_t, _ZnamSt11align_val_tRKSt9nothrow_t:
        NewArray, NewArrayAligned;
}

/// Defines hooks of operators that release memory: their further arguments (size, alignment,
/// nothrow) say nothing that is not known.
macro_rules! delete_operators {
    ($($operation:ident: $($symbol:ident)*;)*) => {$($(
        /// An operator that releases memory.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol(address: *mut c_void) {
            // SAFETY: the duty of the caller.
            unsafe { release(RingOperation::$operation, address) };
        }
    )*)*};
}

delete_operators! {
    Delete: _ZdlPv _ZdlPvm _ZdlPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdlPvmSt11align_val_t
        _ZdlPvSt11align_val_tRKSt9nothrow_t;
    DeleteArray: _ZdaPv _ZdaPvm _ZdaPvRKSt9nothrow_t _ZdaPvSt11align_val_t _ZdaPvmSt11align_val_t
        _ZdaPvSt11align_val_tRKSt9nothrow_t;
}
