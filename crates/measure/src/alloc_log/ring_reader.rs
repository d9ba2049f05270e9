//! The collector's end of a ring: the memory that a recorded process writes events to.
//!
//! Apart from the other modules because it alone touches memory that another process changes, for
//! which Rust has no safe type. The process may be of any program, so nothing in the ring is
//! trusted: a header that does not fit is refused, and events are only numbers.

#![allow(unsafe_code)]

use super::ring_layout::{
    ALL_OPERATIONS, HEADER_BYTES, LAP_BIT, LONG_SIZE, MAX_EVENT_WORDS, PAYLOAD_MASK, RING_MAGIC,
    RING_VERSION, RingOperation, THREAD_BIT, fixed_operands, head_address, head_operation,
    head_size, lap_bit, offset, operand_words,
};
use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;
use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The smallest and the largest ring, as logarithms of the number of words.
const CAPACITY_LIMITS_LOG2: (u32, u32) = (10, 24);
/// A read position that no writer reaches; the sum with the number of words does not overflow.
const ENDLESS_SPACE: u64 = 1 << 62;

/// The distance to the word whose address is passed on before it is read. Most events have one
/// word, and sixteen take longer than a read of memory.
const LOOKAHEAD_WORDS: u64 = 16;

/// As many waiters as there are: the kernel takes the number as a signed one.
const ALL_WAITERS: u32 = i32::MAX.cast_unsigned();

/// An event of a recorded process.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingEvent<'a> {
    pub(super) operation: RingOperation,
    pub(super) address: u64,
    /// Bytes that were asked for, or the length of the operands.
    pub(super) size: u64,
    /// The operand of an operation that has one, else 0.
    pub(super) operand: u64,
    /// The thread, by an arbitrary number; 0 in a process with one thread.
    pub(super) thread: u64,
    /// The operands of an operation with several.
    pub(super) operands: &'a [u64],
}

/// A ring of a recorded process, mapped into the memory of this one.
pub(super) struct RingReader {
    base: *mut u8,
    bytes: usize,
    capacity_log2: u32,
    position: u64,
    /// The events up to this position were looked at before they are read.
    looked_up_to: u64,
    process: u32,
    parent: u32,
    fork_number: u32,
    fork_position: u64,
    parent_ring: u64,
    inode: u64,
    operands: Vec<u64>,
}

/// A failure to map a ring.
#[derive(Debug, thiserror::Error)]
pub(super) enum RingError {
    #[error("not a ring of the recorder")]
    NoRing,
    #[error("the recorder in the program is of another version of larder")]
    OtherVersion,
    #[error("cannot map a ring: {0}")]
    Map(#[from] io::Error),
}

/// The result of reading events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// All complete events were read: so many words.
    Words(u64),
    /// Reading stopped at a request of the receiver, after so many words.
    Stopped(u64),
    /// The ring holds something that is no event: it is not read further.
    Damaged,
}

impl RingReader {
    /// Maps the ring of a descriptor that a process has sent.
    ///
    /// # Errors
    /// It is not a ring, not of this version, may be cut off, or cannot be mapped. A program whose
    /// ring is of another version goes on: it never waits for space.
    pub(super) fn open(file: &OwnedFd) -> Result<RingReader, RingError> {
        // A ring that is cut off would end this process when it reads.
        if !fcntl_get_seals(file).map_err(io::Error::from)?.contains(SealFlags::SHRINK) {
            return Err(RingError::NoRing);
        }
        let found = rustix::fs::fstat(file).map_err(io::Error::from)?;
        let bytes = usize::try_from(found.st_size).unwrap_or(0);
        let words = bytes.saturating_sub(HEADER_BYTES) / 8;
        let capacity_log2 = words.checked_ilog2().unwrap_or(0);
        let is_whole = bytes == HEADER_BYTES + (8 << capacity_log2);
        let (min, max) = CAPACITY_LIMITS_LOG2;
        if !is_whole || !(min..=max).contains(&capacity_log2) {
            return Err(RingError::NoRing);
        }
        // SAFETY: a new mapping at an address of the kernel's choice. It is unmapped when dropped,
        // and accessed by atomic operations only.
        let base = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mmap(null_mut(), bytes, access, MapFlags::SHARED, file, 0).map_err(io::Error::from)?
        };
        let mut reader = RingReader {
            base: base.cast(),
            bytes,
            capacity_log2,
            position: 0,
            looked_up_to: 0,
            process: 0,
            parent: 0,
            fork_number: 0,
            fork_position: 0,
            parent_ring: 0,
            inode: found.st_ino,
            operands: Vec::new(),
        };
        if reader.header_u64(offset::MAGIC).load(Ordering::Acquire) != RING_MAGIC {
            return Err(RingError::NoRing);
        }
        if reader.header_u32(offset::VERSION).load(Ordering::Relaxed) != RING_VERSION {
            reader.release_writers();
            return Err(RingError::OtherVersion);
        }
        reader.process = reader.header_u32(offset::PROCESS).load(Ordering::Relaxed);
        reader.parent = reader.header_u32(offset::PARENT).load(Ordering::Relaxed);
        reader.fork_number = reader.header_u32(offset::FORK_NUMBER).load(Ordering::Relaxed);
        reader.fork_position = reader.header_u64(offset::FORK_POSITION).load(Ordering::Relaxed);
        reader.parent_ring = reader.header_u64(offset::PARENT_RING).load(Ordering::Relaxed);
        Ok(reader)
    }

    /// Returns the process as it sees its own id.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Returns the parent as the process sees its id, and the number of the fork there; 0: not
    /// known.
    pub(super) fn origin(&self) -> (u32, u32) {
        (self.parent, self.fork_number)
    }

    /// Returns the position in the parent's ring at that fork.
    pub(super) fn fork_position(&self) -> u64 {
        self.fork_position
    }

    /// Returns the inode of the ring of the process that this one was forked from; 0: it began
    /// with exec.
    pub(super) fn parent_ring(&self) -> u64 {
        self.parent_ring
    }

    /// Returns the position up to which the ring was read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the inode of the memory file, which no other ring has.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns one of the states of `ring_state`.
    pub(super) fn state(&self) -> u32 {
        self.header_u32(offset::STATE).load(Ordering::Acquire)
    }

    /// Returns the number of calls that release a null pointer.
    pub(super) fn null_frees(&self) -> u64 {
        self.header_u64(offset::NULL_FREES).load(Ordering::Relaxed)
    }

    /// Returns how often a thread of the program had to wait for the collector.
    pub(super) fn stalls(&self) -> u32 {
        self.header_u32(offset::STALLS).load(Ordering::Relaxed)
    }

    /// Returns the number of words.
    pub(super) fn capacity(&self) -> u64 {
        1 << self.capacity_log2
    }

    /// Returns whether the process has written half a ring beyond what was read.
    pub(super) fn is_half_full(&self) -> bool {
        let position = self.position + self.capacity() / 2;
        self.word(position) & LAP_BIT == lap_bit(position, self.capacity_log2)
    }

    /// Returns whether the process has begun to write an event that is not read yet.
    pub(super) fn has_event(&self) -> bool {
        self.word(self.position) & LAP_BIT == lap_bit(self.position, self.capacity_log2)
    }

    /// Passes complete events up to a position on, at most about a quarter of the ring, and makes
    /// their space free. The receiver returns whether to go on. With each event it gets an address
    /// that a later event probably has, so that the memory for it can be fetched.
    pub(super) fn read_events(
        &mut self,
        limit: u64,
        mut receive: impl FnMut(&RingEvent<'_>, u64) -> bool,
    ) -> ReadProgress {
        let start = self.position;
        let end = limit.min(start + self.capacity() / 4);
        let mut progress = None;
        while self.position < end {
            let head = self.word(self.position);
            if head & LAP_BIT != lap_bit(self.position, self.capacity_log2) {
                break;
            }
            let Some((event, count)) = self.decode_event(self.position, head) else {
                progress = Some(ReadProgress::Damaged);
                break;
            };
            let event = RingEvent { operands: &self.operands, ..event };
            // The word may be an operand, or of the lap before: then it is any address.
            let later_address = head_address(self.word(self.position + LOOKAHEAD_WORDS));
            let goes_on = receive(&event, later_address);
            self.position += count;
            if !goes_on {
                progress = Some(ReadProgress::Stopped(self.position - start));
                break;
            }
        }
        self.looked_up_to = self.position;
        if self.position != start {
            self.free_space(self.position);
        }
        progress.unwrap_or(ReadProgress::Words(self.position - start))
    }

    /// Returns whether a complete event that is not read yet fits a condition. Looks at each event
    /// once for all calls until reading goes on.
    pub(super) fn has_event_ahead(&mut self, fits: impl Fn(&RingEvent<'_>) -> bool) -> bool {
        let end = self.position + self.capacity();
        let mut position = self.looked_up_to.max(self.position);
        let mut is_found = false;
        while !is_found && position < end {
            let head = self.word(position);
            if head & LAP_BIT != lap_bit(position, self.capacity_log2) {
                break;
            }
            let Some((event, count)) = self.decode_event(position, head) else { break };
            is_found = fits(&event);
            position += count;
        }
        self.looked_up_to = position;
        is_found
    }

    /// Returns the position after the last complete event that the process has written.
    pub(super) fn end_position(&mut self) -> u64 {
        let mut position = self.position;
        while position < self.position + self.capacity() {
            let head = self.word(position);
            if head & LAP_BIT != lap_bit(position, self.capacity_log2) {
                break;
            }
            let Some((_, count)) = self.decode_event(position, head) else { break };
            position += count;
        }
        position
    }

    /// Decodes the event of the head word at a position; several operands are left in `operands`.
    /// Returns the event and the number of its words.
    #[inline(always)]
    fn decode_event(&mut self, position: u64, head: u64) -> Option<(RingEvent<'static>, u64)> {
        let operation = *ALL_OPERATIONS.get(head_operation(head))?;
        let (address, size) = (head_address(head), head_size(head));
        let is_one_word = fixed_operands(operation) == Some(0) && head & THREAD_BIT == 0;
        if is_one_word && size != LONG_SIZE {
            let event =
                RingEvent { operation, address, size, operand: 0, thread: 0, operands: &[] };
            return Some((event, 1));
        }
        self.decode_long_event(position, head, operation)
    }

    /// Decodes an event of several words.
    #[inline(never)]
    fn decode_long_event(
        &mut self,
        position: u64,
        head: u64,
        operation: RingOperation,
    ) -> Option<(RingEvent<'static>, u64)> {
        let mut size = head_size(head);
        let mut next = position + 1;
        let mut operand = 0;
        match fixed_operands(operation) {
            Some(0) => {}
            Some(_) => {
                operand = self.word(next) & PAYLOAD_MASK;
                next += 1;
            }
            None => {
                let count = operand_words(operation, size);
                if count as usize > MAX_EVENT_WORDS {
                    return None;
                }
                self.operands.clear();
                for _ in 0..count {
                    self.operands.push(self.word(next) & PAYLOAD_MASK);
                    next += 1;
                }
            }
        }
        if size == LONG_SIZE {
            size = self.word(next) & PAYLOAD_MASK;
            next += 1;
        }
        let mut thread = 0;
        if head & THREAD_BIT != 0 {
            thread = self.word(next) & PAYLOAD_MASK;
            next += 1;
        }
        let address = head_address(head);
        let event = RingEvent { operation, address, size, operand, thread, operands: &[] };
        Some((event, next - position))
    }

    /// Lets the process write without ever waiting: its ring is not read any more.
    pub(super) fn release_writers(&self) {
        self.free_space(ENDLESS_SPACE);
    }

    /// Tells the process how far its events were read.
    fn free_space(&self, position: u64) {
        self.header_u64(offset::READ_POSITION).store(position, Ordering::Release);
        // A writer announces that it waits, then looks at the position again: one of both sees what
        // the other has stored.
        fence(Ordering::SeqCst);
        let waiters = self.header_u32(offset::WAITERS);
        if waiters.load(Ordering::SeqCst) != 0 {
            waiters.store(0, Ordering::SeqCst);
            let moves = self.header_u32(offset::SPACE_FUTEX);
            moves.fetch_add(1, Ordering::SeqCst);
            // A failure leaves the waiters to their time limit.
            let _ = futex::wake(moves, futex::Flags::empty(), ALL_WAITERS);
        }
    }

    #[inline(always)]
    fn word(&self, position: u64) -> u64 {
        let index = (position & (self.capacity() - 1)) as usize;
        // SAFETY: the index is within the mapping, which is as long as the capacity says.
        let place = unsafe { &*self.base.add(HEADER_BYTES).cast::<AtomicU64>().add(index) };
        place.load(Ordering::Acquire)
    }

    fn header_u64(&self, field: usize) -> &AtomicU64 {
        // SAFETY: the fields are aligned and within the header, which the mapping contains.
        unsafe { &*self.base.add(field).cast::<AtomicU64>() }
    }

    fn header_u32(&self, field: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.base.add(field).cast::<AtomicU32>() }
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        // SAFETY: no reference into the mapping outlives the reader.
        let _ = unsafe { munmap(self.base.cast::<c_void>(), self.bytes) };
    }
}
