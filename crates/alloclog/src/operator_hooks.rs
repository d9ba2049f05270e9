//! The operators `new` and `delete` of C++.
//!
//! They are hooked apart from `malloc`, because the operators of jemalloc, tcmalloc and mimalloc do
//! not call it. Memory comes from the next `malloc` and is recorded once. If there is none, the
//! next operator of that name is called, which asks the program's new-handler, or throws; it may
//! unwind through the hook. That operator may be of a library that only the caller sees, as that of
//! a plugin: so the hooks pass the address to which they return.
//!
//! A program with operators of its own keeps them, see `operator_functions`.

use crate::hooks::{record_aligned, record_alloc, release, release_by};
use crate::operator_functions::{
    Operator, are_replaced, free_of_delete, malloc_of_new, memalign_of_new,
};
use crate::ring_layout::RingOperation;
use core::arch::naked_asm;
use core::ffi::{CStr, c_void};
use core::ptr::null;

/// `operator new`, and `operator new[]`: of zero bytes they return distinct memory, as malloc does.
#[inline(always)]
unsafe fn allocate(
    operation: RingOperation,
    arguments: [usize; 3],
    operator: &Operator,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: the type is that of malloc; the arguments and the caller are those of the hook.
    unsafe {
        let [size, ..] = arguments;
        let Some(malloc) = malloc_of_new() else {
            return first_new(operation, arguments, operator, caller);
        };
        let address = malloc(size);
        record_alloc(operation, address, size);
        if address.is_null() {
            return operator.call_next(arguments, caller);
        }
        address
    }
}

#[cold]
#[inline(never)]
unsafe fn first_new(
    operation: RingOperation,
    arguments: [usize; 3],
    operator: &Operator,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: as in `allocate`.
    unsafe {
        if are_replaced(names()) && malloc_of_new().is_some() {
            return allocate(operation, arguments, operator, caller);
        }
        operator.call_own(arguments, caller)
    }
}

#[inline(always)]
unsafe fn allocate_aligned(
    operation: RingOperation,
    arguments: [usize; 3],
    operator: &Operator,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: the type is that of memalign; the arguments and the caller are those of the hook.
    unsafe {
        let [size, alignment, _] = arguments;
        let Some(memalign) = memalign_of_new() else {
            return first_new_aligned(operation, arguments, operator, caller);
        };
        let address = memalign(alignment, size);
        record_aligned(operation, address, alignment, size);
        if address.is_null() {
            return operator.call_next(arguments, caller);
        }
        address
    }
}

#[cold]
#[inline(never)]
unsafe fn first_new_aligned(
    operation: RingOperation,
    arguments: [usize; 3],
    operator: &Operator,
    caller: *const c_void,
) -> *mut c_void {
    // SAFETY: as in `allocate_aligned`.
    unsafe {
        if are_replaced(names()) && memalign_of_new().is_some() {
            return allocate_aligned(operation, arguments, operator, caller);
        }
        operator.call_own(arguments, caller)
    }
}

/// `operator delete`, and `operator delete[]`.
#[inline(always)]
unsafe fn delete(operation: RingOperation, arguments: [usize; 3], operator: &Operator) {
    let [address, ..] = arguments;
    // SAFETY: the duty of the caller.
    unsafe {
        if free_of_delete().is_none() {
            return first_delete(operation, arguments, operator);
        }
        release_by(operation, address as *mut c_void, free_of_delete);
    }
}

#[cold]
#[inline(never)]
unsafe fn first_delete(operation: RingOperation, arguments: [usize; 3], operator: &Operator) {
    let [address, ..] = arguments;
    // SAFETY: the duty of the caller.
    unsafe {
        if are_replaced(names()) {
            release(operation, address as *mut c_void);
        } else {
            operator.call_own(arguments, null());
        }
    }
}

/// Defines hooks of operators that take memory. The names are those of the C++ ABI (Itanium):
/// `_Znw` new, `_Zna` new[], `m` the size, `St11align_val_t` the alignment, `RKSt9nothrow_t`
/// nothrow.
macro_rules! new_operators {
    ($($symbol:ident: $allocate:ident $operation:ident, $is_nothrow:literal;)*) => {
        const NEW_NAMES: &[&CStr] = &[$(const_name(concat!(stringify!($symbol), "\0"))),*];

        $(const _: () = {
            static OPERATOR: Operator =
                Operator::new(const_name(concat!(stringify!($symbol), "\0")), $is_nothrow);

            unsafe extern "C-unwind" fn hook(
                a: usize,
                b: usize,
                c: usize,
                caller: *const c_void,
            ) -> *mut c_void {
                // SAFETY: the arguments are those of the operator.
                unsafe { $allocate(RingOperation::$operation, [a, b, c], &OPERATOR, caller) }
            }

            /// An operator that takes memory.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $symbol(size: usize) -> *mut c_void {
                naked_asm!("mov rcx, [rsp]", "jmp {hook}", hook = sym hook)
            }
        };)*
    };
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
    _Znwm: allocate New, false;
    _ZnwmRKSt9nothrow_t: allocate New, true;
    _ZnwmSt11align_val_t: allocate_aligned NewAligned, false;
    _ZnwmSt11align_val_tRKSt9nothrow_t: allocate_aligned NewAligned, true;
    _Znam: allocate NewArray, false;
    _ZnamRKSt9nothrow_t: allocate NewArray, true;
    _ZnamSt11align_val_t: allocate_aligned NewArrayAligned, false;
    _ZnamSt11align_val_tRKSt9nothrow_t: allocate_aligned NewArrayAligned, true;
}

/// Defines hooks of operators that release memory: their further arguments (size, alignment,
/// nothrow) are for operators of the program.
macro_rules! delete_operators {
    ($($symbol:ident: $operation:ident;)*) => {
        const DELETE_NAMES: &[&CStr] = &[$(const_name(concat!(stringify!($symbol), "\0"))),*];

        $(
            /// An operator that releases memory.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $symbol(address: usize, b: usize, c: usize) {
                static OPERATOR: Operator =
                    Operator::new(const_name(concat!(stringify!($symbol), "\0")), true);
                // SAFETY: the duty of the caller.
                unsafe { delete(RingOperation::$operation, [address, b, c], &OPERATOR) };
            }
        )*
    };
}

delete_operators! {
    _ZdlPv: Delete;
    _ZdlPvm: Delete;
    _ZdlPvRKSt9nothrow_t: Delete;
    _ZdlPvSt11align_val_t: Delete;
    _ZdlPvmSt11align_val_t: Delete;
    _ZdlPvSt11align_val_tRKSt9nothrow_t: Delete;
    _ZdaPv: DeleteArray;
    _ZdaPvm: DeleteArray;
    _ZdaPvRKSt9nothrow_t: DeleteArray;
    _ZdaPvSt11align_val_t: DeleteArray;
    _ZdaPvmSt11align_val_t: DeleteArray;
    _ZdaPvSt11align_val_tRKSt9nothrow_t: DeleteArray;
}

/// Returns the names of all operators.
fn names() -> impl Iterator<Item = &'static CStr> {
    NEW_NAMES.iter().chain(DELETE_NAMES).copied()
}
