//! The calls of one process, from ring events to the tokens of a log.

use super::address_table::{AddressTable, HeapObject};
use super::call_token::{
    LONG_ALLOC, LONG_CALLOC, LONG_FAILURE, LONG_FREE, LONG_FREE_INHERITED, LONG_FREE_NEAR,
    LONG_FREE_UNKNOWN, LONG_MARK, LONG_NEW, LONG_NUMBER, LONG_OTHER, LONG_REALLOC,
    LONG_REALLOC_INHERITED, LONG_REALLOC_TO_ZERO, LONG_REALLOC_UNKNOWN, LONG_TIME, MIN_NEAR_AGE,
    NEAR_OFFSET, OTHER_STACK, OTHER_THREAD, SHORT_FREE, SHORT_MALLOC, SHORT_REALLOC, long_token,
    push_varint, short_token, takes_alignment,
};
use super::log_block::CallBlock;
use super::ring_layout::{NAME_BYTES_IN_WORD, RingOperation};
use super::ring_reader::RingEvent;
use rustc_hash::FxHashMap;

/// Bytes of tokens after which a block is complete.
const BLOCK_BYTES: usize = 256 * 1024;

/// Encodes the events of a process.
pub(super) struct ProcessEncoder {
    objects: AddressTable,
    /// Objects that a `realloc` is about to release, with their addresses, by thread.
    released: FxHashMap<u64, (u64, HeapObject)>,
    threads: FxHashMap<u64, u64>,
    thread: u64,
    last_ordinal: u64,
    /// Objects up to this number are from before the fork.
    inherited_ordinal: u64,
    last_freed: u64,
    block: CallBlock,
    tokens_time_us: u64,
    /// Releases of unknown addresses, and allocations of addresses that were live.
    anomalies: u64,
    /// Marks, and values of numbers, of this process alone.
    marks: u64,
    number_values: u64,
}

impl ProcessEncoder {
    pub(super) fn new() -> ProcessEncoder {
        ProcessEncoder {
            objects: AddressTable::new(),
            released: FxHashMap::default(),
            threads: FxHashMap::default(),
            thread: 0,
            last_ordinal: 0,
            inherited_ordinal: 0,
            last_freed: 0,
            block: CallBlock::default(),
            tokens_time_us: 0,
            anomalies: 0,
            marks: 0,
            number_values: 0,
        }
    }

    /// Returns the encoder of a process that has just been forked from this one: it inherits what
    /// is live. Both share the tables until they differ.
    pub(super) fn fork(&mut self) -> ProcessEncoder {
        ProcessEncoder {
            objects: self.objects.share(),
            last_ordinal: self.last_ordinal,
            inherited_ordinal: self.last_ordinal,
            block: CallBlock {
                live_bytes: self.block.live_bytes,
                live_objects: self.block.live_objects,
                peak_bytes: self.block.live_bytes,
                ..CallBlock::default()
            },
            ..ProcessEncoder::new()
        }
    }

    /// Returns bytes and number of the objects from before the fork, and the number of the last.
    pub(super) fn inheritance(&self) -> (u64, u64, u64) {
        (self.block.live_bytes, self.block.live_objects, self.inherited_ordinal)
    }

    /// Returns the bytes of its tables that are not shared with the encoder it was forked from.
    pub(super) fn bytes_apart(&self, parent: &ProcessEncoder) -> usize {
        self.objects.bytes_apart(&parent.objects)
    }

    /// Returns how many pages of its tables no other process shares.
    #[cfg(test)]
    pub(super) fn own_pages(&self) -> usize {
        self.objects.own_pages()
    }

    pub(super) fn anomalies(&self) -> u64 {
        self.anomalies
    }

    /// Returns the number of marks, and that of values of numbers.
    pub(super) fn marks_and_values(&self) -> (u64, u64) {
        (self.marks, self.number_values)
    }

    /// Returns the number of calls since the start.
    pub(super) fn calls(&self) -> u64 {
        self.block.first_call + self.block.calls
    }

    /// Returns whether the block has the size at which it is written.
    pub(super) fn is_block_full(&self) -> bool {
        self.block.tokens.len() >= BLOCK_BYTES
    }

    /// Returns the block, and begins the next one; `None` if nothing is in it.
    pub(super) fn take_block(&mut self, time_us: u64) -> Option<CallBlock> {
        if self.block.tokens.is_empty() {
            return None;
        }
        self.tokens_time_us = time_us;
        let next = CallBlock {
            first_call: self.calls(),
            start_us: time_us,
            live_bytes: self.block.live_bytes,
            live_objects: self.block.live_objects,
            peak_bytes: self.block.live_bytes,
            tokens: Vec::with_capacity(BLOCK_BYTES + 4096),
            ..CallBlock::default()
        };
        let mut block = std::mem::replace(&mut self.block, next);
        block.end_us = time_us;
        Some(block)
    }

    /// Notes the time at which the calls so far had been made, in microseconds since the start of
    /// the recording.
    pub(super) fn note_time(&mut self, time_us: u64) {
        if self.block.tokens.is_empty() {
            self.block.start_us = time_us;
        } else {
            self.long(LONG_TIME, time_us.saturating_sub(self.tokens_time_us));
        }
        self.tokens_time_us = time_us;
    }

    /// Notes a mark that the collector has found.
    pub(super) fn mark(&mut self, name: &[u8]) {
        self.marks += 1;
        self.long(LONG_MARK, name.len() as u64);
        self.block.tokens.extend_from_slice(name);
    }

    /// Notes the innermost frame of the call stack of the object at an address. One that has been
    /// released meanwhile, by another thread, has none.
    pub(super) fn note_stack(&mut self, address: u64, frame: u32) {
        if let Some(object) = self.objects.get(address)
            && object.ordinal > self.inherited_ordinal
        {
            self.long(LONG_OTHER, u64::from(frame) << 1 | OTHER_STACK);
            self.operand(self.last_ordinal - object.ordinal);
        }
    }

    /// Fetches the memory for an address of a later event.
    #[inline(always)]
    pub(super) fn prefetch(&self, address: u64) {
        self.objects.prefetch(address);
    }

    /// Encodes an event.
    #[inline(always)]
    pub(super) fn encode(&mut self, event: &RingEvent<'_>) {
        if event.thread != self.thread {
            self.switch_thread(event.thread);
        }
        match event.operation {
            RingOperation::Malloc => {
                self.short(SHORT_MALLOC, event.size);
                self.add(event);
            }
            RingOperation::Free => self.free(event),
            _ => self.encode_other(event),
        }
    }

    /// Encodes an event of the rarer operations.
    #[inline(never)]
    fn encode_other(&mut self, event: &RingEvent<'_>) {
        use RingOperation as Op;
        match event.operation {
            Op::Delete | Op::DeleteArray | Op::Cfree | Op::FreeSized | Op::FreeAlignedSized => {
                self.free(event);
            }
            Op::Calloc => {
                self.long(LONG_CALLOC, event.size);
                self.add(event);
            }
            Op::New => {
                self.long(LONG_NEW, event.size);
                self.add(event);
            }
            Op::Reallocarray if event.operand == 0 => self.allocate(event),
            Op::Realloc | Op::Reallocarray => self.reallocate(event),
            Op::ReallocToZero => self.reallocate_to_zero(event),
            Op::ReallocOfNull
            | Op::PosixMemalign
            | Op::AlignedAlloc
            | Op::Memalign
            | Op::Valloc
            | Op::Pvalloc
            | Op::NewArray
            | Op::NewAligned
            | Op::NewArrayAligned => {
                self.allocate(event);
            }
            Op::Failure => self.failure(event),
            Op::Release => self.release(event),
            Op::Mark => self.program_mark(event),
            Op::Number => self.program_number(event),
            Op::Malloc | Op::Free | Op::Fork | Op::Stack | Op::Unload | Op::ForkFailure => {}
        }
    }

    #[inline(always)]
    fn short(&mut self, code: u64, value: u64) {
        push_varint(&mut self.block.tokens, short_token(code, value));
    }

    #[inline(always)]
    fn long(&mut self, code: u64, value: u64) {
        push_varint(&mut self.block.tokens, long_token(code, value));
    }

    #[inline(always)]
    fn operand(&mut self, value: u64) {
        push_varint(&mut self.block.tokens, value);
    }

    #[cold]
    fn switch_thread(&mut self, thread: u64) {
        self.thread = thread;
        // 0 is the only thread of a process without others.
        let next = self.threads.len() as u64 + 1;
        let number = if thread == 0 { 0 } else { *self.threads.entry(thread).or_insert(next) };
        self.long(LONG_OTHER, number << 1 | OTHER_THREAD);
    }

    fn allocate(&mut self, event: &RingEvent<'_>) {
        self.long(LONG_ALLOC, event.operation as u64);
        self.operand(event.size);
        if takes_alignment(event.operation) {
            self.operand(u64::from(event.operand.max(1).ilog2()));
        }
        self.add(event);
    }

    /// Adds an object, by a call that is encoded.
    #[inline(always)]
    fn add(&mut self, event: &RingEvent<'_>) {
        self.last_ordinal += 1;
        let object = HeapObject::new(self.last_ordinal, event.size, event.operation);
        self.put_at(event.address, object);
        self.block.calls += 1;
        self.block.live_objects += 1;
        self.block.live_bytes += object.size();
        self.block.peak_bytes = self.block.peak_bytes.max(self.block.live_bytes);
    }

    /// Puts an object at an address. If another one is there, its release was not seen.
    #[inline(always)]
    fn put_at(&mut self, address: u64, object: HeapObject) {
        if self.objects.put(address, object) {
            self.anomalies += 1;
        }
    }

    /// Counts an object that is live no more.
    #[inline(always)]
    fn count_release(&mut self, object: HeapObject) {
        self.block.live_objects -= 1;
        self.block.live_bytes -= object.size();
    }

    /// Counts a release, and returns its object. A release of one from before the fork, or of
    /// unknown origin, is encoded here: then returns `None`.
    #[inline(always)]
    fn count_release_of_own(
        &mut self,
        object: Option<HeapObject>,
        event: &RingEvent<'_>,
    ) -> Option<HeapObject> {
        self.block.calls += 1;
        let Some(object) = object else {
            self.anomalies += 1;
            self.long(LONG_FREE_UNKNOWN, event.operation as u64);
            return None;
        };
        self.count_release(object);
        if object.ordinal <= self.inherited_ordinal {
            self.long(LONG_FREE_INHERITED, event.operation as u64);
            self.operand(object.size());
            return None;
        }
        Some(object)
    }

    #[inline(always)]
    fn free(&mut self, event: &RingEvent<'_>) {
        let object = self.objects.take(event.address);
        let Some(object) = self.count_release_of_own(object, event) else { return };
        let age = self.last_ordinal - object.ordinal;
        if !object.is_usual_release(event.operation) {
            self.long(LONG_FREE, event.operation as u64);
            self.operand(age);
        } else {
            let distance = object.ordinal as i64 - self.last_freed as i64 + NEAR_OFFSET;
            if age >= MIN_NEAR_AGE && (0..2 * NEAR_OFFSET).contains(&distance) {
                self.long(LONG_FREE_NEAR, distance as u64);
            } else {
                self.short(SHORT_FREE, age);
            }
        }
        self.last_freed = object.ordinal;
    }

    fn reallocate(&mut self, event: &RingEvent<'_>) {
        self.block.calls += 1;
        let function = event.operation as u64;
        let Some(object) = self.take_released(event.thread, event.operand) else {
            self.anomalies += 1;
            self.long(LONG_REALLOC_UNKNOWN, function);
            self.operand(event.size);
            self.block.calls -= 1;
            self.add(event);
            return;
        };
        if object.ordinal <= self.inherited_ordinal {
            self.count_release(object);
            self.long(LONG_REALLOC_INHERITED, function);
            self.operand(object.size());
            self.operand(event.size);
            self.block.calls -= 1;
            self.add(event);
            return;
        }
        let age = self.last_ordinal - object.ordinal;
        if event.operation == RingOperation::Realloc {
            self.short(SHORT_REALLOC, age);
        } else {
            self.long(LONG_REALLOC, function);
            self.operand(age);
        }
        self.operand(event.size);
        let resized = object.with_size(event.size);
        self.block.live_bytes = self.block.live_bytes + resized.size() - object.size();
        self.block.peak_bytes = self.block.peak_bytes.max(self.block.live_bytes);
        self.put_at(event.address, resized);
    }

    /// Takes out the object of a `realloc`, whose release may have been announced.
    #[inline]
    fn take_released(&mut self, thread: u64, address: u64) -> Option<HeapObject> {
        if self.released.is_empty() {
            return self.objects.take(address);
        }
        match self.released.remove(&thread) {
            Some((_, object)) => Some(object),
            None => self.objects.take(address),
        }
    }

    fn reallocate_to_zero(&mut self, event: &RingEvent<'_>) {
        let object = self.take_released(event.thread, event.address);
        let Some(object) = self.count_release_of_own(object, event) else { return };
        self.long(LONG_REALLOC_TO_ZERO, self.last_ordinal - object.ordinal);
        self.last_freed = object.ordinal;
    }

    fn failure(&mut self, event: &RingEvent<'_>) {
        self.block.calls += 1;
        self.long(LONG_FAILURE, event.operand);
        self.operand(event.size);
        // A failed realloc leaves its object in place.
        if let Some((address, object)) = self.released.remove(&event.thread) {
            self.put_at(address, object);
        }
    }

    /// Notes that a `realloc` is about to release an object.
    fn release(&mut self, event: &RingEvent<'_>) {
        if let Some(object) = self.objects.take(event.address) {
            self.released.insert(event.thread, (event.address, object));
        }
    }

    fn program_mark(&mut self, event: &RingEvent<'_>) {
        let name = unpack_name(event.operands, event.size);
        self.mark(&name);
    }

    fn program_number(&mut self, event: &RingEvent<'_>) {
        let Some((value, words)) = event.operands.split_first() else { return };
        let name = unpack_name(words, event.size);
        self.number_values += 1;
        self.long(LONG_NUMBER, name.len() as u64);
        self.block.tokens.extend_from_slice(&name);
        self.operand(*value);
    }
}

/// Returns the name in the operands of a mark.
fn unpack_name(words: &[u64], size: u64) -> Vec<u8> {
    let bytes =
        words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(NAME_BYTES_IN_WORD));
    bytes.take(usize::try_from(size).unwrap_or(0)).collect()
}
