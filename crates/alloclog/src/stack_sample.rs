//! The call stacks of some allocations.
//!
//! A sample is taken once in so many bytes that are asked for, at distances that are random around
//! that mean, so that a loop of equal allocations is not met always at the same place. The stack is
//! written to the ring as it is; the collector unwinds it, with the tables of the program's files,
//! which costs this process nothing.

use crate::ring_layout::MAX_STACK_WORDS;
use crate::ring_writer::RingWriter;
use crate::sample_distance::next_distance;
use crate::syscall::{syscall6, thread_id};
use core::arch::asm;
use core::ffi::c_void;
use core::sync::atomic::Ordering;

/// Counts the bytes of an allocation, and takes a sample if it is time.
#[inline(always)]
pub(crate) fn sample_stack(writer: RingWriter, address: *mut c_void, size: usize) {
    let state = writer.state();
    if state.stack_interval == 0 {
        return;
    }
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let left = state.bytes_to_sample.fetch_sub(size, Ordering::Relaxed);
    if left < size {
        end_distance(writer, address, (left, size));
    }
}

/// Takes a sample, unless the distance had ended before, and sets the distance of the next one.
#[cold]
#[inline(never)]
fn end_distance(writer: RingWriter, address: *mut c_void, (left, size): (i64, i64)) {
    let state = writer.state();
    let distance = next_distance(state.stack_interval, &state.random);
    if left >= 0 {
        state.bytes_to_sample.store(distance, Ordering::Relaxed);
    } else if distance >= size {
        // Another thread is about to set the next distance, which counts from there on. Distances
        // have no memory, so whether this allocation is a sample is a matter of one of its own.
        return;
    }
    take_sample(writer, address);
}

fn take_sample(writer: RingWriter, address: *mut c_void) {
    let (instruction, stack, frame): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) instruction, out(reg) stack,
            out(reg) frame, options(nostack, nomem, preserves_flags));
    }
    let registers = [instruction, stack, frame];
    writer.write_stack(address as u64, registers, stack, readable_words(stack));
}

/// Pages of which the stack of a sample may be.
const MAX_PAGES: usize = MAX_STACK_WORDS * 8 / PAGE_BYTES;
const PAGE_BYTES: usize = 4096;

/// Returns the number of words from an address of the stack upwards that are readable, at most
/// [`MAX_STACK_WORDS`]. The kernel tells, since nothing else knows where the stack begins. Above a
/// small stack is memory that another thread may unmap, so only the kernel may read these words.
fn readable_words(stack: u64) -> u64 {
    let start = stack as usize;
    let first_page_end = (start | (PAGE_BYTES - 1)) + 1;
    let mut words = [0_u64; MAX_PAGES];
    let place = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    // One word of each of the pages that follow.
    let mut page = first_page_end;
    let pages: [libc::iovec; MAX_PAGES] = core::array::from_fn(|_| {
        let word = libc::iovec { iov_base: page as *mut c_void, iov_len: 8 };
        page = page.wrapping_add(PAGE_BYTES);
        word
    });
    // SAFETY: the kernel writes at most the bytes of `place`, and reads what is readable.
    let count = unsafe {
        syscall6(
            libc::SYS_process_vm_readv,
            [
                // The first thread may have ended: then the process has no memory by its own id.
                thread_id() as usize,
                &raw const place as usize,
                1,
                pages.as_ptr() as usize,
                MAX_PAGES,
                0,
            ],
        )
    };
    let readable_pages = count.max(0) as usize / 8;
    let bytes = first_page_end - start + readable_pages * PAGE_BYTES;
    ((bytes / 8) as u64).min(MAX_STACK_WORDS as u64)
}
