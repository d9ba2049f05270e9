//! The functions to which the operators of C++ are passed on.
//!
//! The operators of the standard libraries, and those in the file of the real `malloc` (jemalloc,
//! tcmalloc, mimalloc), are replaced: memory comes from the next `malloc`. A program, or a library
//! of it, may have operators of its own, which take memory elsewhere. Then each call goes on to the
//! next operator of its name, all operators alike, because those that the program has not replaced
//! call the others. A library linked with `-Bsymbolic` calls its own operators by itself, so `new`
//! may never be seen of memory that `delete` is called with.

use crate::loaded_symbol::{function_near, has_own_function};
use crate::real_functions::{
    FreeFn, OperatorFn, SizeFn, TwoSizesFn, functions, next_symbol, resolve_functions,
};
use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The functions in place of replaced operators; null: those of the program are called, or it is
/// not known yet.
static MALLOC: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static MEMALIGN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static FREE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The kind of the operators, by one of the constants below; unknown before the first call.
static KIND: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const REPLACED: u32 = 1;
const OWN: u32 = 2;

/// The names of the standard libraries of C++, up to their versions.
const STANDARD_LIBRARIES: [&[u8]; 3] = [b"libstdc++.", b"libc++.", b"libc++abi."];

/// Returns `malloc` in place of `new`; `None` as long as [`are_replaced`] has to be asked.
#[inline(always)]
pub(crate) fn malloc_of_new() -> Option<SizeFn> {
    // SAFETY: a pointer to a function of this type, or null.
    unsafe { transmute::<*mut c_void, Option<SizeFn>>(MALLOC.load(Ordering::Relaxed)) }
}

/// As [`malloc_of_new`], of aligned memory.
#[inline(always)]
pub(crate) fn memalign_of_new() -> Option<TwoSizesFn> {
    // SAFETY: as above.
    unsafe { transmute::<*mut c_void, Option<TwoSizesFn>>(MEMALIGN.load(Ordering::Relaxed)) }
}

/// Returns `free` in place of `delete`, as [`malloc_of_new`].
#[inline(always)]
pub(crate) fn free_of_delete() -> Option<FreeFn> {
    // SAFETY: as above.
    unsafe { transmute::<*mut c_void, Option<FreeFn>>(FREE.load(Ordering::Relaxed)) }
}

/// Returns whether the operators are replaced; finds it out if it is not known. The names are those
/// of all operators.
#[cold]
pub(crate) fn are_replaced<'a>(names: impl Iterator<Item = &'a CStr>) -> bool {
    if KIND.load(Ordering::Acquire) == UNKNOWN && resolve_functions() {
        let address =
            |function: Option<SizeFn>| function.map_or(null_mut(), |it| it as *mut c_void);
        let malloc = address(functions().malloc);
        let is_own = has_own_function(names, &STANDARD_LIBRARIES, malloc);
        if !is_own {
            let memalign = functions().memalign.map_or(null_mut(), |it| it as *mut c_void);
            let free = functions().free.map_or(null_mut(), |it| it as *mut c_void);
            MEMALIGN.store(memalign, Ordering::Relaxed);
            FREE.store(free, Ordering::Relaxed);
            MALLOC.store(malloc, Ordering::Relaxed);
        }
        KIND.store(if is_own { OWN } else { REPLACED }, Ordering::Release);
    }
    KIND.load(Ordering::Acquire) == REPLACED
}

/// An operator of C++.
pub(crate) struct Operator {
    pub(crate) name: &'static CStr,
    /// It returns null if there is no memory.
    is_nothrow: bool,
    /// The next operator of this name, once it was called in place of the hook.
    next: AtomicPtr<c_void>,
}

impl Operator {
    pub(crate) const fn new(name: &'static CStr, is_nothrow: bool) -> Operator {
        Operator { name, is_nothrow, next: AtomicPtr::new(null_mut()) }
    }

    /// Calls the operator of the program, or of a library, in place of the hook.
    ///
    /// # Safety
    /// The arguments are those of the caller.
    #[cold]
    pub(crate) unsafe fn call_own(
        &self,
        arguments: [usize; 3],
        caller: *const c_void,
    ) -> *mut c_void {
        let mut next = self.next.load(Ordering::Relaxed);
        if next.is_null() {
            // SAFETY: the name ends with a zero byte.
            next = unsafe { next_symbol(self.name.as_ptr()) };
            self.next.store(next, Ordering::Relaxed);
        }
        if next.is_null() {
            // SAFETY: the duty of the caller.
            return unsafe { self.call_next(arguments, caller) };
        }
        // SAFETY: the operator takes no further arguments, the duty of the caller.
        unsafe { call(next, arguments) }
    }

    /// Calls the next operator of this name, also one that only the caller sees, when there is no
    /// memory. A program that calls an operator that throws has one: where none is found it ends
    /// here, because it would take any memory that is returned for its own.
    ///
    /// # Safety
    /// The arguments are those of the caller, which is in code that is loaded.
    #[cold]
    pub(crate) unsafe fn call_next(
        &self,
        arguments: [usize; 3],
        caller: *const c_void,
    ) -> *mut c_void {
        // SAFETY: the name ends with a zero byte; the duty of the caller.
        unsafe {
            let mut next = next_symbol(self.name.as_ptr());
            if next.is_null() {
                next = function_near(caller, self.name);
            }
            match (next.is_null(), self.is_nothrow) {
                (true, true) => null_mut(),
                (true, false) => libc::abort(),
                (false, _) => call(next, arguments),
            }
        }
    }
}

/// Calls an operator with all words that it may take; it may unwind.
unsafe fn call(operator: *mut c_void, [a, b, c]: [usize; 3]) -> *mut c_void {
    // SAFETY: an operator does not read the registers of arguments that it has not.
    unsafe { transmute::<*mut c_void, OperatorFn>(operator)(a, b, c) }
}
