//! The layout of the ring through which a recorded process passes its allocator calls on.
//!
//! One file, included by the recorder (the only writer) and by the collector in larder-measure
//! (the only reader), so that both always agree. Plain numbers and pure functions: no memory is
//! touched here.
//!
//! A ring is a memory file: one page with the [header](RING_MAGIC), then a power of two of words of
//! 8 bytes. An *event* is one head word and up to [`MAX_EVENT_WORDS`] words after it:
//!
//! | bits | of a head word |
//! |---|---|
//! | 63 | lap: 1 in the first lap through the ring, then alternating; every word has it |
//! | 62 | a word with the thread follows |
//! | 57 to 61 | the operation, see [`RingOperation`] |
//! | 44 to 56 | the size in bytes; [`LONG_SIZE`]: a word with the size follows |
//! | 0 to 43 | the address divided by 8 |
//!
//! The further words follow in the order: operand words (their number depends on the operation),
//! size, thread. Each carries 63 bits. The head word is stored last, so an event whose head has the
//! expected lap bit is complete; as every word has the lap bit of its own position, a stale word of
//! the lap before is never taken for a head.

/// The first 8 bytes of a header: "LARDRING".
pub const RING_MAGIC: u64 = u64::from_le_bytes(*b"LARDRING");
/// The version of this layout, with its operations: a reader takes an unknown one for damage.
pub const RING_VERSION: u32 = 4;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;

/// Offsets of the fields of the header, in bytes. Fields that different processes write are in
/// different cache lines.
pub mod offset {
    /// [`RING_MAGIC`](super::RING_MAGIC), 8 bytes.
    pub const MAGIC: usize = 0;
    /// [`RING_VERSION`](super::RING_VERSION), 4 bytes.
    pub const VERSION: usize = 8;
    /// The process, in its own namespace of process ids, 4 bytes.
    pub const PROCESS: usize = 12;
    /// The number of words, 8 bytes.
    pub const CAPACITY: usize = 16;
    /// The parent process, in that namespace, 4 bytes.
    pub const PARENT: usize = 24;
    /// The number of the fork in the parent's ring (`Fork` events) that made this process; 0: the
    /// process began with exec, was forked in a way that runs no fork handlers, or when more than
    /// 64 threads forked at once. Such a child is logged as one that inherits nothing. 4 bytes.
    pub const FORK_NUMBER: usize = 28;
    /// The write position in the parent's ring at the fork that made this process, 8 bytes.
    pub const FORK_POSITION: usize = 32;
    /// The inode of the ring of the process that this one was forked from; 0: it began with exec.
    /// 8 bytes.
    pub const PARENT_RING: usize = 48;
    /// One of the [`ring_state`](super::ring_state)s, 4 bytes.
    pub const STATE: usize = 40;
    /// The number of calls of `free` and `delete` with a null pointer, 8 bytes.
    pub const NULL_FREES: usize = 64;
    /// Position up to which the collector has read, 8 bytes. This place, magic and version are the
    /// same in all versions: a collector lets a program of another one go on.
    pub const READ_POSITION: usize = 256;
    /// Futex that the collector wakes after it has moved the read position: counts its moves,
    /// 4 bytes.
    pub const SPACE_FUTEX: usize = 264;
    /// Nonzero while a thread waits for space, 4 bytes.
    pub const WAITERS: usize = 268;
    /// How often a thread had to wait, 4 bytes.
    pub const STALLS: usize = 272;
}

/// The states of a ring.
pub mod ring_state {
    /// The process writes events.
    pub const RECORDING: u32 = 1;
    /// The process ended by `exit` or `_exit`.
    pub const EXITED: u32 = 2;
    /// The process stopped recording: the collector was gone, or did not read for 10 seconds by
    /// the clock, while the process was not stopped.
    pub const ABANDONED: u32 = 3;
}

/// The operations of events.
///
/// The calls come first, up to `LAST_CALL`. A call is recorded when it has succeeded, one that
/// releases memory before it is made, so that no address is seen allocated twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RingOperation {
    /// `malloc(size)`.
    Malloc = 0,
    /// `free(address)`.
    Free = 1,
    /// `calloc(n, m)`, with the product as size.
    Calloc = 2,
    /// `realloc(old, size)`; operand: `old`.
    Realloc = 3,
    /// `realloc(NULL, size)`.
    ReallocOfNull = 4,
    /// `realloc(address, 0)` that returned NULL.
    ReallocToZero = 5,
    /// `reallocarray(old, n, m)`; operand: `old`, which may be null.
    Reallocarray = 6,
    /// `posix_memalign(alignment, size)`; operand: the alignment.
    PosixMemalign = 7,
    /// `aligned_alloc(alignment, size)`; operand: the alignment.
    AlignedAlloc = 8,
    /// `memalign(alignment, size)`; operand: the alignment.
    Memalign = 9,
    /// `valloc(size)`.
    Valloc = 10,
    /// `pvalloc(size)`.
    Pvalloc = 11,
    /// `operator new(size)`, with or without `nothrow`.
    New = 12,
    /// `operator new[](size)`, with or without `nothrow`.
    NewArray = 13,
    /// `operator new(size, alignment)`; operand: the alignment.
    NewAligned = 14,
    /// `operator new[](size, alignment)`; operand: the alignment.
    NewArrayAligned = 15,
    /// All forms of `operator delete(address)`.
    Delete = 16,
    /// All forms of `operator delete[](address)`.
    DeleteArray = 17,
    /// `cfree(address)`.
    Cfree = 18,
    /// `free_sized(address, size)`.
    FreeSized = 19,
    /// `free_aligned_sized(address, alignment, size)`.
    FreeAlignedSized = 20,
    /// A call that failed; the size is the requested one; operand: the operation. A `realloc` of
    /// that kind left the old memory in place.
    Failure = 21,
    /// In a process with threads: memory that a `realloc` is about to release.
    Release = 22,
    /// A mark of the program: the size is the number of bytes of its name, which follow in
    /// operands, 7 in each.
    Mark = 23,
    /// A number that the program names: the first operand is the number, then as for a mark.
    Number = 24,
    /// A fork is about to happen; the size is its number.
    Fork = 25,
    /// A sample of the call stack of the allocation of this address: operands are the instruction
    /// pointer, the stack pointer, the frame pointer, and the stack; the size is their number.
    Stack = 26,
    /// In a process with samples of call stacks: the program closed a library, which is perhaps
    /// unloaded; the address is the difference between its addresses in memory and in its file.
    Unload = 27,
    /// A fork has failed; the size is its number.
    ForkFailure = 28,
}

/// The last operation that is a call of the program.
pub const LAST_CALL: RingOperation = RingOperation::FreeAlignedSized;
/// The number of operations.
pub const OPERATIONS: usize = 29;

/// All operations, by number.
pub const ALL_OPERATIONS: [RingOperation; OPERATIONS] = {
    use RingOperation::*;
    [
        Malloc,
        Free,
        Calloc,
        Realloc,
        ReallocOfNull,
        ReallocToZero,
        Reallocarray,
        PosixMemalign,
        AlignedAlloc,
        Memalign,
        Valloc,
        Pvalloc,
        New,
        NewArray,
        NewAligned,
        NewArrayAligned,
        Delete,
        DeleteArray,
        Cfree,
        FreeSized,
        FreeAlignedSized,
        Failure,
        Release,
        Mark,
        Number,
        Fork,
        Stack,
        Unload,
        ForkFailure,
    ]
};

/// The size field of a head word whose size follows in a word of its own.
pub const LONG_SIZE: u64 = (1 << 13) - 1;
/// Bytes of a name that one operand holds.
pub const NAME_BYTES_IN_WORD: usize = 7;
/// The longest name of a mark or number, in bytes; longer ones are cut.
pub const MAX_NAME_BYTES: usize = 119;
/// Words of the stack that a sample holds at most: 32 KiB.
pub const MAX_STACK_WORDS: usize = 4096;
/// Words of the longest event.
pub const MAX_EVENT_WORDS: usize = 1 + 3 + MAX_STACK_WORDS + 2;

/// The lap bit of a word.
pub const LAP_BIT: u64 = 1 << 63;
/// The bit of a head word that a thread word follows.
pub const THREAD_BIT: u64 = 1 << 62;
/// The bits of a word that are not the lap bit.
pub const PAYLOAD_MASK: u64 = LAP_BIT - 1;

const OPERATION_SHIFT: u32 = 57;
const SIZE_SHIFT: u32 = 44;
const ADDRESS_MASK: u64 = (1 << SIZE_SHIFT) - 1;

/// Returns the lap bit of a word at a position of a ring of `1 << capacity_log2` words.
#[inline(always)]
pub const fn lap_bit(position: u64, capacity_log2: u32) -> u64 {
    (!(position >> capacity_log2) & 1) << 63
}

/// Returns a head word without lap and thread bits. A size of [`LONG_SIZE`] or more has to follow
/// in a word of its own.
#[inline(always)]
pub const fn head_word(operation: RingOperation, address: u64, size: u64) -> u64 {
    let short_size = if size < LONG_SIZE { size } else { LONG_SIZE };
    (operation as u64) << OPERATION_SHIFT | short_size << SIZE_SHIFT | (address >> 3) & ADDRESS_MASK
}

/// Returns the number of the operation of a head word.
#[inline(always)]
pub const fn head_operation(head: u64) -> usize {
    (head >> OPERATION_SHIFT & 31) as usize
}

/// Returns the size in a head word, or [`LONG_SIZE`].
#[inline(always)]
pub const fn head_size(head: u64) -> u64 {
    head >> SIZE_SHIFT & LONG_SIZE
}

/// Returns the address in a head word.
#[inline(always)]
pub const fn head_address(head: u64) -> u64 {
    (head & ADDRESS_MASK) << 3
}

/// Returns the number of operands of an operation that has always the same number; `None` for a
/// mark, a number and a stack, where it depends on the size ([`operand_words`]).
#[inline(always)]
pub const fn fixed_operands(operation: RingOperation) -> Option<u64> {
    use RingOperation::*;
    match operation {
        Realloc | Reallocarray | PosixMemalign | AlignedAlloc | Memalign | NewAligned
        | NewArrayAligned | Failure => Some(1),
        Mark | Number | Stack => None,
        _ => Some(0),
    }
}

/// Returns the number of operands of a mark, a number or a stack of a size.
#[inline]
pub const fn operand_words(operation: RingOperation, size: u64) -> u64 {
    let name_words = size.div_ceil(NAME_BYTES_IN_WORD as u64);
    match operation {
        RingOperation::Mark => name_words,
        RingOperation::Number => 1 + name_words,
        RingOperation::Stack => size,
        _ => 0,
    }
}

/// The environment variable that tells the recorder where the collector listens:
/// `CAPACITY_LOG2:STACK_INTERVAL:COLLECTOR_PROCESS:SOCKET_PATH`. A stack interval of 0 takes no
/// stacks. The form is the same in all versions, so that the collector hears of a recorder of
/// another version, and can name it; the process is for those of former versions.
pub const ENVIRONMENT_VARIABLE: &str = "LARDER_ALLOCLOG";
