//! The allocator of C: each function calls the next one of its name and records the call.
//!
//! A call that takes memory is recorded after it was made, one that releases memory before, so an
//! address is never seen allocated a second time before it was released.

use crate::real_functions::{
    FreeFn, TwoSizesFn, functions, is_start_alloc, resolve_functions, start_alloc,
};
use crate::ring_layout::RingOperation;
use crate::ring_writer::{RingWriter, writer};
use crate::stack_sample::sample_stack;
use core::ffi::{c_int, c_void};
use core::ptr::{copy_nonoverlapping, null_mut};

/// Bytes of a page, the alignment of `valloc`.
const PAGE_BYTES: usize = 4096;

/// Records memory that a call has taken, or that it failed.
#[inline(always)]
pub(crate) fn record_alloc(operation: RingOperation, address: *mut c_void, size: usize) {
    let Some(writer) = writer() else { return };
    if address.is_null() {
        record_failure(writer, operation, size);
    } else {
        writer.write(operation, address as u64, size as u64);
        sample_stack(writer, address, size);
    }
}

/// Records aligned memory that a call has taken, or that it failed.
#[inline(always)]
pub(crate) fn record_aligned(
    operation: RingOperation,
    address: *mut c_void,
    alignment: usize,
    size: usize,
) {
    let Some(writer) = writer() else { return };
    if address.is_null() {
        record_failure(writer, operation, size);
    } else {
        writer.write_operand(operation, address as u64, size as u64, alignment as u64);
        sample_stack(writer, address, size);
    }
}

#[cold]
fn record_failure(writer: RingWriter, operation: RingOperation, size: usize) {
    writer.write_operand(RingOperation::Failure, 0, size as u64, operation as u64);
}

/// Releases memory and records that, the event first.
#[inline(always)]
pub(crate) unsafe fn release(operation: RingOperation, address: *mut c_void) {
    // SAFETY: the duty of the caller.
    unsafe { release_by(operation, address, || functions().free) };
}

/// As [`release`], by another function than `free`.
#[inline(always)]
pub(crate) unsafe fn release_by(
    operation: RingOperation,
    address: *mut c_void,
    free: impl FnOnce() -> Option<FreeFn>,
) {
    if address.is_null() {
        if let Some(writer) = writer() {
            writer.count_null_free();
        }
        return;
    }
    if is_start_alloc(address) {
        return;
    }
    if let Some(writer) = writer() {
        writer.write(operation, address as u64, 0);
    }
    // SAFETY: the caller passes what an allocator of this process has given.
    if let Some(free) = free() {
        unsafe { free(address) };
    }
}

/// Allocates as malloc does, without recording.
#[inline(always)]
unsafe fn real_malloc(size: usize) -> *mut c_void {
    // SAFETY: the type is that of malloc.
    match functions().malloc {
        Some(malloc) => unsafe { malloc(size) },
        None => first_malloc(size),
    }
}

/// Allocates when the functions are not yet known.
#[cold]
fn first_malloc(size: usize) -> *mut c_void {
    resolve_functions();
    match functions().malloc {
        // SAFETY: as above.
        Some(malloc) => unsafe { malloc(size) },
        None => start_alloc(size),
    }
}

/// `malloc` of C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: nothing is asked of the caller.
    let address = unsafe { real_malloc(size) };
    if !is_start_alloc(address) {
        record_alloc(RingOperation::Malloc, address, size);
    }
    address
}

/// `free` of C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(address: *mut c_void) {
    // SAFETY: the duty of the caller.
    unsafe { release(RingOperation::Free, address) };
}

/// `cfree` of older C libraries.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cfree(address: *mut c_void) {
    // SAFETY: the duty of the caller.
    unsafe { release(RingOperation::Cfree, address) };
}

/// `free_sized` of C23.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_sized(address: *mut c_void, _size: usize) {
    // SAFETY: the duty of the caller.
    unsafe { release(RingOperation::FreeSized, address) };
}

/// `free_aligned_sized` of C23.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_aligned_sized(
    address: *mut c_void,
    _alignment: usize,
    _size: usize,
) {
    // SAFETY: the duty of the caller.
    unsafe { release(RingOperation::FreeAlignedSized, address) };
}

/// `calloc` of C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    resolve_functions();
    let product = count.saturating_mul(size);
    let Some(calloc) = functions().calloc else { return start_alloc(product) };
    // SAFETY: the type is that of calloc.
    let address = unsafe { calloc(count, size) };
    record_alloc(RingOperation::Calloc, address, product);
    address
}

/// `realloc` of C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the duty of the caller.
    unsafe { reallocate(RingOperation::Realloc, old, size) }
}

/// `reallocarray` of glibc and C23.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(
    old: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the duty of the caller.
        Some(product) => unsafe { reallocate(RingOperation::Reallocarray, old, product) },
        None => {
            if let Some(writer) = writer() {
                record_failure(writer, RingOperation::Reallocarray, usize::MAX);
            }
            // SAFETY: errno belongs to this thread.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            null_mut()
        }
    }
}

unsafe fn reallocate(operation: RingOperation, old: *mut c_void, size: usize) -> *mut c_void {
    resolve_functions();
    if is_start_alloc(old) {
        // SAFETY: the arena is readable as far as `size` in most cases; it holds only small blocks.
        return unsafe { move_start_alloc(old, size) };
    }
    let Some(realloc) = functions().realloc else { return start_alloc(size) };
    let Some(writer) = writer() else {
        // SAFETY: the duty of the caller.
        return unsafe { realloc(old, size) };
    };
    // Another thread may get the old address from within realloc, so its release is recorded first.
    let announces = !old.is_null() && !writer.is_single_threaded();
    if announces {
        writer.write(RingOperation::Release, old as u64, 0);
    }
    // SAFETY: the duty of the caller.
    let address = unsafe { realloc(old, size) };
    match (address.is_null(), old.is_null()) {
        (true, false) if size == 0 => writer.write(RingOperation::ReallocToZero, old as u64, 0),
        (true, _) => record_failure(writer, operation, size),
        (false, true) if operation == RingOperation::Realloc => {
            writer.write(RingOperation::ReallocOfNull, address as u64, size as u64);
        }
        (false, _) => writer.write_operand(operation, address as u64, size as u64, old as u64),
    }
    if !address.is_null() {
        sample_stack(writer, address, size);
    }
    address
}

#[cold]
unsafe fn move_start_alloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: nothing is asked of the caller of malloc; both are readable for `room` bytes.
    unsafe {
        let new = malloc(size);
        if !new.is_null() {
            let room = size.min(crate::real_functions::start_alloc_bytes(old));
            copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), room);
        }
        new
    }
}

/// `posix_memalign` of POSIX.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    resolve_functions();
    let Some(posix_memalign) = functions().posix_memalign else { return libc::ENOMEM };
    // SAFETY: the duty of the caller; the result is written only on success.
    let code = unsafe { posix_memalign(result, alignment, size) };
    let address = if code == 0 { unsafe { *result } } else { null_mut() };
    record_aligned(RingOperation::PosixMemalign, address, alignment, size);
    code
}

/// `aligned_alloc` of C11.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    resolve_functions();
    // SAFETY: the duty of the caller.
    unsafe { align(RingOperation::AlignedAlloc, functions().aligned_alloc, alignment, size) }
}

/// `memalign` of older systems.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    resolve_functions();
    // SAFETY: the duty of the caller.
    unsafe { align(RingOperation::Memalign, functions().memalign, alignment, size) }
}

unsafe fn align(
    operation: RingOperation,
    real: Option<TwoSizesFn>,
    alignment: usize,
    size: usize,
) -> *mut c_void {
    let Some(real) = real else { return null_mut() };
    // SAFETY: the duty of the caller.
    let address = unsafe { real(alignment, size) };
    record_aligned(operation, address, alignment, size);
    address
}

/// `valloc` of older systems.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    resolve_functions();
    // SAFETY: the types are those of the functions.
    let address = unsafe {
        match (functions().valloc, functions().memalign) {
            (Some(valloc), _) => valloc(size),
            (None, Some(memalign)) => memalign(PAGE_BYTES, size),
            (None, None) => null_mut(),
        }
    };
    record_alloc(RingOperation::Valloc, address, size);
    address
}

/// `pvalloc` of glibc.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    resolve_functions();
    // SAFETY: the types are those of the functions.
    let address = unsafe {
        match (functions().pvalloc, functions().memalign) {
            (Some(pvalloc), _) => pvalloc(size),
            (None, Some(memalign)) => memalign(PAGE_BYTES, size.next_multiple_of(PAGE_BYTES)),
            (None, None) => null_mut(),
        }
    };
    record_alloc(RingOperation::Pvalloc, address, size);
    address
}
