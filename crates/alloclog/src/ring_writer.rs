//! Events into the ring.
//!
//! A writer reserves words that are free by moving the write position, fills all but the first, and
//! stores the first last. While the process has one thread that takes no locked instruction; with
//! more it takes one. A handler of a signal may write events between any two instructions of a
//! writer, whose words are then reserved, or not yet; if it forks, an event of which nothing was
//! reserved is written to the ring of the child.

use crate::process_ring::{ProcessRing, WriterState, process_ring};
use crate::real_functions::functions;
use crate::ring_layout::{
    LAP_BIT, LONG_SIZE, PAYLOAD_MASK, RingOperation, THREAD_BIT, head_word, lap_bit, offset,
};
use crate::syscall::{syscall6, thread_id, thread_pointer};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

/// A writer of events, in a process that records.
#[derive(Clone, Copy)]
pub(crate) struct RingWriter {
    ring: ProcessRing,
}

/// Returns the writer of this process; `None` if it is not recorded. The first call of a process
/// opens the ring.
#[inline(always)]
pub(crate) fn writer() -> Option<RingWriter> {
    process_ring().map(|ring| RingWriter { ring })
}

impl RingWriter {
    /// Returns the state, for samples of the stack.
    #[inline(always)]
    pub(crate) fn state(&self) -> &WriterState {
        self.ring.state()
    }

    /// Returns whether the process has one thread.
    #[inline(always)]
    pub(crate) fn is_single_threaded(&self) -> bool {
        let flag = functions().single_threaded;
        // SAFETY: the flag is a byte of libc.
        !flag.is_null() && unsafe { flag.read_volatile() } != 0
    }

    /// Writes an event without operands.
    #[inline(always)]
    pub(crate) fn write(&self, operation: RingOperation, address: u64, size: u64) {
        self.write_event(operation, address, size, None);
    }

    /// Writes an event with one operand.
    #[inline(always)]
    pub(crate) fn write_operand(
        &self,
        operation: RingOperation,
        address: u64,
        size: u64,
        operand: u64,
    ) {
        self.write_event(operation, address, size, Some(operand));
    }

    #[inline(always)]
    fn write_event(&self, operation: RingOperation, address: u64, size: u64, operand: Option<u64>) {
        let is_single = self.is_single_threaded();
        let is_long = size >= LONG_SIZE;
        let count = 1 + u64::from(operand.is_some()) + u64::from(is_long) + u64::from(!is_single);
        let Some(start) = self.ring.reserve(count, is_single) else {
            self.write_in_child((operation, address, size), operand);
            return;
        };
        let mut position = start + 1;
        let mut head = head_word(operation, address, size);
        if let Some(operand) = operand {
            self.put(position, operand);
            position += 1;
        }
        if is_long {
            self.put(position, size);
            position += 1;
        }
        if !is_single {
            self.put(position, thread_pointer());
            head |= THREAD_BIT;
        }
        self.publish(start, head);
    }

    /// Writes an event into the ring of the child of a fork that came before words were reserved.
    #[cold]
    #[inline(never)]
    fn write_in_child(
        &self,
        (operation, address, size): (RingOperation, u64, u64),
        operand: Option<u64>,
    ) {
        if let Some(writer) = writer().filter(|writer| writer.ring != self.ring) {
            writer.write_event(operation, address, size, operand);
        }
    }

    /// Writes an event whose number of operands depends on its size; `operand` gives each.
    pub(crate) fn write_operands(
        &self,
        operation: RingOperation,
        address: u64,
        size: u64,
        operands: u64,
        operand: impl Fn(u64) -> u64,
    ) {
        self.write_filled(operation, address, size, operands, |first| {
            for number in 0..operands {
                self.put(first + number, operand(number));
            }
        });
    }

    /// Writes an event whose operands, from a position on, `fill` puts into the ring.
    #[cold]
    #[inline(never)]
    fn write_filled(
        &self,
        operation: RingOperation,
        address: u64,
        size: u64,
        operands: u64,
        fill: impl Fn(u64),
    ) {
        let is_single = self.is_single_threaded();
        let count = 1 + operands + u64::from(!is_single);
        if count > 1 << (self.state().capacity_log2 - 1) {
            return;
        }
        let Some(start) = self.ring.reserve(count, is_single) else { return };
        fill(start + 1);
        let mut head = head_word(operation, address, size);
        if !is_single {
            self.put(start + 1 + operands, thread_pointer());
            head |= THREAD_BIT;
        }
        self.publish(start, head);
    }

    /// Writes the event of a sample: registers, then words of the stack.
    pub(crate) fn write_stack(&self, address: u64, registers: [u64; 3], stack: u64, words: u64) {
        let size = registers.len() as u64 + words;
        self.write_filled(RingOperation::Stack, address, size, size, |first| {
            let mut position = first;
            for register in registers {
                self.put(position, register);
                position += 1;
            }
            self.copy_memory(position, stack, words);
        });
    }

    /// Copies words of this process's memory to reserved words; what cannot be read is zero. The
    /// kernel copies, since memory that is gone would end the program. The reader stops at the head
    /// of the event, so it sees no lap bit that is wrong in the meantime.
    fn copy_memory(&self, position: u64, source: u64, words: u64) {
        let capacity = 1_u64 << self.state().capacity_log2;
        let first = position & (capacity - 1);
        let before_wrap = words.min(capacity - first);
        let part = |index: u64, words: u64| libc::iovec {
            iov_base: self.ring.word(index).cast(),
            iov_len: words as usize * 8,
        };
        let places = [part(first, before_wrap), part(0, words - before_wrap)];
        let memory = libc::iovec { iov_base: source as *mut c_void, iov_len: words as usize * 8 };
        // SAFETY: the kernel writes at most the words of `places`, which are reserved for this
        // thread, and reads what is readable.
        let bytes = unsafe {
            syscall6(
                libc::SYS_process_vm_readv,
                [
                    // As in `stack_sample`: the first thread may have ended.
                    thread_id() as usize,
                    places.as_ptr() as usize,
                    places.len(),
                    &raw const memory as usize,
                    1,
                    0,
                ],
            )
        };
        let copied = bytes.max(0) as u64 / 8;
        for number in 0..words {
            let place = position + number;
            // SAFETY: as in `put`.
            let word = unsafe { *self.ring.word(place) };
            self.put(place, if number < copied { word } else { 0 });
        }
    }

    /// See [`ProcessRing::wait_until_read`].
    pub(crate) fn wait_until_read(&self) {
        self.ring.wait_until_read();
    }

    /// Counts a call that released nothing.
    #[inline(always)]
    pub(crate) fn count_null_free(&self) {
        self.ring.header_u64(offset::NULL_FREES).fetch_add(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn put(&self, position: u64, payload: u64) {
        let state = self.state();
        let word = payload & PAYLOAD_MASK | lap_bit(position, state.capacity_log2);
        // SAFETY: the word is in the ring, and reserved for this thread.
        unsafe { *self.ring.word(position) = word };
    }

    #[inline(always)]
    fn publish(&self, position: u64, head: u64) {
        let state = self.state();
        let word = head & !LAP_BIT | lap_bit(position, state.capacity_log2);
        // SAFETY: as in `put`.
        let place = unsafe { &*self.ring.word(position).cast::<AtomicU64>() };
        place.store(word, Ordering::Release);
    }
}
