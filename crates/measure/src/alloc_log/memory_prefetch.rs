//! Memory that the processor fetches before it is needed.
//!
//! Apart from its users because Rust has no safe function for it.

#![allow(unsafe_code)]

/// Bytes that the processor fetches at once.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Asks the processor to fetch a value that is soon read or changed.
#[inline(always)]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<T>()).step_by(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is in the value; and no address has an effect on the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
