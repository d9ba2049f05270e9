//! The tokens into which a log encodes calls.
//!
//! A token is a varint (7 bits in a byte, least significant first), whose two lowest bits are one
//! of the `SHORT_` codes. Objects are named by their *age*: the number of allocations of the
//! process since theirs, so 0 is the latest one. Addresses are not kept, because the analysis needs
//! none and they cost most. `docs/alloclog.md` describes the format for readers of other programs.

use super::ring_layout::RingOperation;

/// `malloc`; the value is the size.
pub(super) const SHORT_MALLOC: u64 = 0;
/// Release by the usual function; the value is the age.
pub(super) const SHORT_FREE: u64 = 1;
/// `realloc`; the value is the age, the size follows.
pub(super) const SHORT_REALLOC: u64 = 2;
/// Everything else: the next four bits are one of the `LONG_` codes, the value is above them.
pub(super) const SHORT_OTHER: u64 = 3;

/// Release by the usual function; the value is the number of the object less that of the object
/// released before, plus [`NEAR_OFFSET`].
pub(super) const LONG_FREE_NEAR: u64 = 0;
/// `calloc`; the value is the size.
pub(super) const LONG_CALLOC: u64 = 1;
/// `operator new`; the value is the size.
pub(super) const LONG_NEW: u64 = 2;
/// Another function that allocates; the size follows, then, if it aligns, the logarithm of that.
pub(super) const LONG_ALLOC: u64 = 3;
/// Release by another function than the usual one; the age follows.
pub(super) const LONG_FREE: u64 = 4;
/// Another function that changes a size; the age and the size follow.
pub(super) const LONG_REALLOC: u64 = 5;
/// `realloc` to 0 bytes that released; the value is the age.
pub(super) const LONG_REALLOC_TO_ZERO: u64 = 6;
/// A function that failed; the size follows.
pub(super) const LONG_FAILURE: u64 = 7;
/// A function that released memory of unknown origin.
pub(super) const LONG_FREE_UNKNOWN: u64 = 8;
/// A function that changed the size of memory of unknown origin; the new size follows.
pub(super) const LONG_REALLOC_UNKNOWN: u64 = 9;
/// A function that released memory from before the fork; its size follows.
pub(super) const LONG_FREE_INHERITED: u64 = 10;
/// A function that changed the size of memory from before the fork; the old size and the new one
/// follow.
pub(super) const LONG_REALLOC_INHERITED: u64 = 11;
/// A mark: the value is the length of its name, which follows.
pub(super) const LONG_MARK: u64 = 12;
/// A number: the value is the length of its name, which follows, and then the number.
pub(super) const LONG_NUMBER: u64 = 13;
/// The value is the time since the last such token of the block, or since its start, in
/// microseconds.
pub(super) const LONG_TIME: u64 = 14;
/// The lowest bit of the value is [`OTHER_THREAD`] or [`OTHER_STACK`], a number is above it.
pub(super) const LONG_OTHER: u64 = 15;

/// The thread of the calls that follow.
pub(super) const OTHER_THREAD: u64 = 0;
/// The number is that of the innermost frame of the call stack of an object, whose age follows.
pub(super) const OTHER_STACK: u64 = 1;

/// Added to the distances of [`LONG_FREE_NEAR`], which are from -16 to 15.
pub(super) const NEAR_OFFSET: i64 = 16;
/// The smallest age for which the distance may be written instead.
pub(super) const MIN_NEAR_AGE: u64 = 16;

/// Returns the token of a short code.
#[inline(always)]
pub(super) const fn short_token(code: u64, value: u64) -> u64 {
    value << 2 | code
}

/// Returns the token of a long code.
#[inline(always)]
pub(super) const fn long_token(code: u64, value: u64) -> u64 {
    value << 6 | code << 2 | SHORT_OTHER
}

/// Appends a varint.
#[inline(always)]
pub(super) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Returns the usual function to release an object with.
#[inline(always)]
pub(super) const fn usual_release(allocated_by: RingOperation) -> RingOperation {
    use RingOperation::{Delete, DeleteArray, Free, New, NewAligned, NewArray, NewArrayAligned};
    match allocated_by {
        New | NewAligned => Delete,
        NewArray | NewArrayAligned => DeleteArray,
        _ => Free,
    }
}

/// Returns whether a function aligns: the logarithm of its alignment is in the log.
pub(super) const fn takes_alignment(function: RingOperation) -> bool {
    use RingOperation::{AlignedAlloc, Memalign, NewAligned, NewArrayAligned, PosixMemalign};
    matches!(function, PosixMemalign | AlignedAlloc | Memalign | NewAligned | NewArrayAligned)
}
