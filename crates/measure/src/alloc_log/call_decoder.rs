//! The calls of a process, from the tokens of a log to a visitor.

use super::AllocLogError;
use super::call_token::{
    LONG_ALLOC, LONG_CALLOC, LONG_FAILURE, LONG_FREE, LONG_FREE_INHERITED, LONG_FREE_NEAR,
    LONG_FREE_UNKNOWN, LONG_MARK, LONG_NEW, LONG_NUMBER, LONG_OTHER, LONG_REALLOC,
    LONG_REALLOC_INHERITED, LONG_REALLOC_TO_ZERO, LONG_REALLOC_UNKNOWN, LONG_TIME, NEAR_OFFSET,
    OTHER_STACK, SHORT_FREE, SHORT_MALLOC, SHORT_REALLOC, takes_alignment, usual_release,
};
use super::live_table::{LiveObject, LiveTable, MAX_SIZE};
use super::log_block::CallBlock;
use super::log_file::AllocLog;
use super::ring_layout::{ALL_OPERATIONS, RingOperation};

/// The tokens that are looked at before they are decoded: the objects that they release are
/// fetched together.
const LOOKAHEAD_TOKENS: usize = 32;
/// The tokens up to the next look, if none of these releases an old object.
const TOKENS_BETWEEN_LOOKS: usize = 256;
/// From this age on, in allocations, an object is probably not in the processor's cache any more.
const OLD_AGE: u64 = 16 * 1024;

/// The calls that count for the age of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LifetimeClock {
    /// All calls.
    #[default]
    AllCalls,
    /// All calls but those that change a size.
    WithoutReallocs,
}

/// A call that is being visited.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallPlace {
    /// The number of the call in the process, from 0 on.
    pub(super) call: u64,
    /// The clock before the call: the number of calls before it that count.
    pub(super) clock: u64,
    pub(super) function: RingOperation,
}

/// Receives the calls of a process in order. Methods that are not needed do nothing.
pub(super) trait CallVisitor {
    /// An object was allocated.
    fn alloc(&mut self, _at: CallPlace, _object: &LiveObject, _alignment_log2: u64) {}
    /// An object was released.
    fn free(&mut self, _at: CallPlace, _object: &LiveObject) {}
    /// The size of an object was changed.
    fn realloc(&mut self, _at: CallPlace, _object: &LiveObject, _new_size: u64) {}
    /// A call failed.
    fn failure(&mut self, _at: CallPlace, _size: u64) {}
    /// Memory of unknown origin was released.
    fn unknown_free(&mut self, _at: CallPlace) {}
    /// Memory from before the fork was released.
    fn inherited_free(&mut self, _at: CallPlace, _size: u64) {}
    /// Memory from before the fork became this object.
    fn inherited_realloc(&mut self, _at: CallPlace, _old_size: u64, _object: &LiveObject) {}
    /// The program, or the collector, set a mark before this call. Returns the number of the phase
    /// that begins, which the objects that are asked for in it have.
    fn mark(&mut self, _call: u64, _name: &[u8]) -> u8 {
        0
    }
    /// The program named a number before this call.
    fn number(&mut self, _call: u64, _name: &[u8], _value: u64) {}
    /// The time at which the calls before this one had been made, in microseconds, and the clock
    /// then, see `CallPlace`.
    fn time(&mut self, _call: u64, _clock: u64, _time_us: u64) {}
    /// An object, or a new size of it, is a sample: the innermost frame of its call stack.
    fn stack(&mut self, _object: &LiveObject, _frame: u64) {}
}

/// Decodes the calls of one process.
pub(super) struct CallDecoder {
    clock_kind: LifetimeClock,
    live: LiveTable,
    last_ordinal: u64,
    last_freed: u64,
    call: u64,
    clock: u64,
    phase: u8,
}

/// Decodes all calls of a process in a log. Returns what is live at its end.
///
/// # Errors
/// The file cannot be read, or a token is not one.
pub(super) fn decode_process(
    log: &AllocLog,
    process: usize,
    clock_kind: LifetimeClock,
    visitor: &mut impl CallVisitor,
) -> Result<LiveTable, AllocLogError> {
    let first_ordinal = log.processes[process].start.first_ordinal;
    let mut decoder = CallDecoder {
        clock_kind,
        live: LiveTable::new(first_ordinal.wrapping_add(1)),
        last_ordinal: first_ordinal,
        last_freed: 0,
        call: 0,
        clock: 0,
        phase: 0,
    };
    log.for_each_block(process, |block| {
        decoder.decode_block(block, visitor).ok_or_else(|| {
            AllocLogError::Content(format!("call {} of process {process}", decoder.call))
        })
    })?;
    Ok(decoder.live)
}

/// The tokens of a block that are not yet read.
struct TokenBytes<'a>(&'a [u8]);

impl<'a> TokenBytes<'a> {
    #[inline(always)]
    fn varint(&mut self) -> Option<u64> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        self.long_varint(u64::from(first & 0x7F))
    }

    #[inline]
    fn long_varint(&mut self, mut value: u64) -> Option<u64> {
        let mut shift = 7;
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }
}

impl CallDecoder {
    fn decode_block(&mut self, block: &CallBlock, visitor: &mut impl CallVisitor) -> Option<()> {
        let mut tokens = TokenBytes(&block.tokens);
        let mut time_us = block.start_us;
        visitor.time(self.call, self.clock, time_us);
        let mut tokens_to_look = 0;
        while !tokens.0.is_empty() {
            if tokens_to_look == 0 {
                tokens_to_look = self.fetch_old_objects(TokenBytes(tokens.0));
            }
            tokens_to_look -= 1;
            let token = tokens.varint()?;
            let value = token >> 2;
            match token & 3 {
                SHORT_MALLOC => self.alloc(visitor, RingOperation::Malloc, value, 0),
                SHORT_FREE => {
                    let object = self.live.take(self.last_ordinal.checked_sub(value)?)?;
                    self.free(visitor, usual_release(object.allocated_by), &object);
                }
                SHORT_REALLOC => {
                    let size = tokens.varint()?;
                    self.realloc(visitor, RingOperation::Realloc, value, size)?;
                }
                _ => {
                    self.decode_long(visitor, &mut tokens, value & 15, value >> 4, &mut time_us)?;
                }
            }
        }
        visitor.time(self.call, self.clock, block.end_us);
        Some(())
    }

    /// Fetches the memory of old objects that the next tokens release. An operand of a token is
    /// looked at as if it were a token, too: then an object is missed, or fetched for nothing.
    /// Returns after how many tokens to look again.
    #[inline(never)]
    fn fetch_old_objects(&self, mut tokens: TokenBytes<'_>) -> usize {
        let mut ordinal = self.last_ordinal;
        let mut is_any = false;
        for _ in 0..LOOKAHEAD_TOKENS {
            let Some(token) = tokens.varint() else { break };
            match token & 3 {
                SHORT_MALLOC => ordinal = ordinal.wrapping_add(1),
                SHORT_FREE if token >> 2 >= OLD_AGE => {
                    self.live.prefetch(ordinal.wrapping_sub(token >> 2));
                    is_any = true;
                }
                _ => {}
            }
        }
        if is_any { LOOKAHEAD_TOKENS } else { TOKENS_BETWEEN_LOOKS }
    }

    #[inline]
    fn decode_long(
        &mut self,
        visitor: &mut impl CallVisitor,
        tokens: &mut TokenBytes<'_>,
        code: u64,
        value: u64,
        time_us: &mut u64,
    ) -> Option<()> {
        match code {
            LONG_FREE_NEAR => {
                let distance = value.cast_signed().checked_sub(NEAR_OFFSET)?;
                let object = self.live.take(self.last_freed.checked_add_signed(distance)?)?;
                self.free(visitor, usual_release(object.allocated_by), &object);
            }
            LONG_CALLOC => self.alloc(visitor, RingOperation::Calloc, value, 0),
            LONG_NEW => self.alloc(visitor, RingOperation::New, value, 0),
            LONG_ALLOC => {
                let function = operation(value)?;
                let size = tokens.varint()?;
                let alignment = if takes_alignment(function) { tokens.varint()? } else { 0 };
                self.alloc(visitor, function, size, alignment);
            }
            LONG_FREE => {
                let age = tokens.varint()?;
                let object = self.live.take(self.last_ordinal.checked_sub(age)?)?;
                self.free(visitor, operation(value)?, &object);
            }
            LONG_REALLOC => {
                let (age, size) = (tokens.varint()?, tokens.varint()?);
                self.realloc(visitor, operation(value)?, age, size)?;
            }
            LONG_REALLOC_TO_ZERO => {
                let object = self.live.take(self.last_ordinal.checked_sub(value)?)?;
                self.free(visitor, RingOperation::ReallocToZero, &object);
            }
            LONG_MARK => self.phase = visitor.mark(self.call, tokens.bytes(value)?),
            LONG_NUMBER => {
                let name = tokens.bytes(value)?;
                visitor.number(self.call, name, tokens.varint()?);
            }
            LONG_TIME => {
                *time_us = time_us.saturating_add(value);
                visitor.time(self.call, self.clock, *time_us);
            }
            LONG_OTHER => {
                if value & 1 == OTHER_STACK {
                    let age = tokens.varint()?;
                    let object = self.live.get(self.last_ordinal.checked_sub(age)?)?;
                    visitor.stack(&object, value >> 1);
                }
            }
            _ => self.decode_rare(visitor, tokens, code, operation(value)?)?,
        }
        Some(())
    }

    #[cold]
    fn decode_rare(
        &mut self,
        visitor: &mut impl CallVisitor,
        tokens: &mut TokenBytes<'_>,
        code: u64,
        function: RingOperation,
    ) -> Option<()> {
        match code {
            LONG_FAILURE => {
                let size = tokens.varint()?;
                visitor.failure(self.call_place(function), size);
                self.next_call(false);
            }
            LONG_FREE_UNKNOWN => {
                visitor.unknown_free(self.call_place(function));
                self.next_call(function == RingOperation::ReallocToZero);
            }
            LONG_REALLOC_UNKNOWN => {
                let size = tokens.varint()?;
                self.alloc(visitor, function, size, 0);
            }
            LONG_FREE_INHERITED => {
                let size = tokens.varint()?;
                visitor.inherited_free(self.call_place(function), size);
                self.next_call(function == RingOperation::ReallocToZero);
            }
            LONG_REALLOC_INHERITED => {
                let (old_size, size) = (tokens.varint()?, tokens.varint()?);
                let object = self.new_object(function, size);
                visitor.inherited_realloc(self.call_place(function), old_size, &object);
                self.live.insert(&object);
                self.next_call(true);
            }
            _ => return None,
        }
        Some(())
    }

    fn call_place(&self, function: RingOperation) -> CallPlace {
        CallPlace { call: self.call, clock: self.clock, function }
    }

    #[inline(always)]
    fn next_call(&mut self, is_realloc: bool) {
        self.call += 1;
        if !is_realloc || self.clock_kind == LifetimeClock::AllCalls {
            self.clock += 1;
        }
    }

    #[inline(always)]
    fn new_object(&mut self, function: RingOperation, size: u64) -> LiveObject {
        self.last_ordinal = self.last_ordinal.wrapping_add(1);
        let counts = self.clock_kind == LifetimeClock::AllCalls || !is_realloc(function);
        LiveObject {
            ordinal: self.last_ordinal,
            birth: self.clock + u64::from(counts),
            size: size & MAX_SIZE,
            allocated_by: function,
            phase: self.phase,
        }
    }

    #[inline(always)]
    fn alloc(
        &mut self,
        visitor: &mut impl CallVisitor,
        function: RingOperation,
        size: u64,
        alignment_log2: u64,
    ) {
        let object = self.new_object(function, size);
        visitor.alloc(self.call_place(function), &object, alignment_log2);
        self.live.insert(&object);
        self.next_call(is_realloc(function));
    }

    /// Passes the release of an object on that was taken out.
    #[inline(always)]
    fn free(
        &mut self,
        visitor: &mut impl CallVisitor,
        function: RingOperation,
        object: &LiveObject,
    ) {
        self.last_freed = object.ordinal;
        visitor.free(self.call_place(function), object);
        self.next_call(function == RingOperation::ReallocToZero);
    }

    #[inline(always)]
    fn realloc(
        &mut self,
        visitor: &mut impl CallVisitor,
        function: RingOperation,
        age: u64,
        size: u64,
    ) -> Option<()> {
        let object = self.live.get(self.last_ordinal.checked_sub(age)?)?;
        let size = size & MAX_SIZE;
        visitor.realloc(self.call_place(function), &object, size);
        self.live.replace(&LiveObject { size, phase: self.phase, ..object });
        self.next_call(true);
        Some(())
    }
}

fn operation(number: u64) -> Option<RingOperation> {
    ALL_OPERATIONS.get(usize::try_from(number).ok()?).copied()
}

/// Returns whether a function is one of those that change a size.
pub(super) fn is_realloc(function: RingOperation) -> bool {
    use RingOperation::{Realloc, ReallocOfNull, ReallocToZero, Reallocarray};
    matches!(function, Realloc | ReallocOfNull | ReallocToZero | Reallocarray)
}
