//! The steps of a replay, between the reader of a log and the process that makes the calls. One
//! file, included by both sides.
//!
//! A step is two words: the code in the lowest 8 bits, the logarithm of the alignment in the next
//! 8, the slot of the object above them; and the size. Before the first step come the number of
//! slots and the largest number of samples.

/// The variable that makes the library replay. Its value is the path of the allocator's library,
/// or empty for the allocator of libc.
pub const REPLAY_VARIABLE: &[u8] = b"LARDER_ALLOCLOG_REPLAY\0";
/// The exit code of a replay whose `malloc` is not one of that library.
pub const EXIT_OTHER_ALLOCATOR: u8 = 2;
/// Bytes of a step.
pub const STEP_BYTES: usize = 16;

/// The code of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayCode(pub u8);

impl ReplayCode {
    /// `malloc(size)` into a slot.
    pub const MALLOC: ReplayCode = ReplayCode(0);
    /// `calloc(1, size)` into a slot.
    pub const CALLOC: ReplayCode = ReplayCode(1);
    /// `realloc(slot, size)`.
    pub const REALLOC: ReplayCode = ReplayCode(2);
    /// `free(slot)`.
    pub const FREE: ReplayCode = ReplayCode(3);
    /// `memalign(alignment, size)` into a slot.
    pub const ALIGNED: ReplayCode = ReplayCode(4);
    /// A sample of resident memory.
    pub const SAMPLE: ReplayCode = ReplayCode(5);
}

/// Returns the words of a step.
pub const fn encode_step(code: ReplayCode, slot: u64, alignment_log2: u32, size: u64) -> [u64; 2] {
    [code.0 as u64 | (alignment_log2 as u64) << 8 | slot << 16, size]
}

/// Returns code, slot, logarithm of the alignment, and size.
pub const fn decode_step(words: [u64; 2]) -> (ReplayCode, u64, u32, u64) {
    let [word, size] = words;
    (ReplayCode(word as u8), word >> 16, (word >> 8) as u32 & 255, size)
}
