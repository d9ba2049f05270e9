//! The ring of this process: opened by its first call, and once more in each forked child.
//!
//! The private state is in a page that the kernel empties in a forked child (`MADV_WIPEONFORK`),
//! whichever way the child came about: it finds no ring and opens one of its own. The page after it
//! has the write position, and is not emptied: the child knows the position of its fork.
//!
//! A handler of a signal may fork between any two instructions of a writer, which then goes on in
//! the child, too. Words that it had reserved are the parent's: so the child has other memory in
//! place of the parent's ring.
//!
//! A full ring makes its writers wait for the collector, but not for one that stands still: then
//! recording ends and the program goes on.

use crate::forking_thread::fork_number;
use crate::idle_time::IdleTime;
use crate::real_functions::resolve_functions;
use crate::replay::run_if_asked;
use crate::ring_connection::{
    RecordingSettings, RingOrigin, open_ring, read_settings, ring_bytes, wake_collector,
};
use crate::ring_layout::{HEADER_BYTES, offset, ring_state};
use crate::ring_position::RingPosition;
use crate::sample_distance::next_distance;
use crate::syscall::{clock_nanoseconds, parent_id, process_id, syscall3, syscall6};
use core::ptr::{addr_of_mut, null_mut};
use core::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// The state of recording in this process; all zero: not recording.
#[repr(C)]
pub(crate) struct WriterState {
    words: AtomicPtr<u64>,
    /// The number of words of the ring, as a logarithm.
    pub(crate) capacity_log2: u32,
    /// Words up to this position may be written without asking for the read position.
    limit: AtomicU64,
    /// The read position after a wait in vain for the collector.
    idle_read: AtomicU64,
    /// Bytes until the next sample of the stack.
    pub(crate) bytes_to_sample: AtomicI64,
    /// The mean distance of samples in bytes; 0: none are taken.
    pub(crate) stack_interval: u64,
    /// The state of the random numbers for the distance of samples.
    pub(crate) random: AtomicU64,
}

/// Bytes of the page of the state; that of the write position follows.
const STATE_BYTES: usize = 4096;

/// The state of a process that does not record.
static mut IDLE: WriterState = WriterState {
    words: AtomicPtr::new(null_mut()),
    capacity_log2: 0,
    limit: AtomicU64::new(0),
    idle_read: AtomicU64::new(u64::MAX),
    bytes_to_sample: AtomicI64::new(i64::MAX),
    stack_interval: 0,
    random: AtomicU64::new(0),
};
static STATE: AtomicPtr<WriterState> = AtomicPtr::new(addr_of_mut!(IDLE));

/// How far recording has come in this program.
static PHASE: AtomicU32 = AtomicU32::new(UNSTARTED);
const UNSTARTED: u32 = 0;
const OPENING: u32 = 1;
const OPEN: u32 = 2;
const ENDED: u32 = 3;

/// The settings of the first ring, for the children of forks: a program that writes a title for its
/// process overwrites the environment that the kernel shows, and one that gives up rights may not
/// read it. Accessed by the thread that has moved [`PHASE`] to [`OPENING`].
static mut SETTINGS: Option<RecordingSettings> = None;

/// The process that opened the current ring, the parent of one that is forked from it.
static RING_PROCESS: AtomicU32 = AtomicU32::new(0);

/// The inode of the file of the current ring, by which a child of a fork names its parent.
static RING_INODE: AtomicU64 = AtomicU64::new(0);

/// The address of the ring, 0 if there is none.
static RING_PLACE: AtomicUsize = AtomicUsize::new(0);

/// In the child of a fork, the write position of its parent at that moment.
static FORK_POSITION: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of a wait for space.
const WAIT_NANOSECONDS: usize = 100_000_000;
/// Nanoseconds without any progress of the collector after which recording ends. Nobody asks sooner
/// whether it is there: a program may have forbidden itself each system call for that.
const MAX_IDLE_NANOSECONDS: i64 = 10_000_000_000;
/// How long a thread waits until the collector has read what there is.
const READ_WAIT_NANOSECONDS: i64 = 100_000_000;

/// A ring that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessRing {
    state: *mut WriterState,
    words: *mut u64,
}

/// Returns the ring of this process; `None` if it is not recorded. The first call of a process
/// opens it.
#[inline(always)]
pub(crate) fn process_ring() -> Option<ProcessRing> {
    let state = STATE.load(Ordering::Relaxed);
    // SAFETY: the state is either the static one or a page that is never unmapped.
    let words = unsafe { (*state).words.load(Ordering::Acquire) };
    if words.is_null() { start_recording() } else { Some(ProcessRing { state, words }) }
}

/// Returns the ring that is open. Opens none.
pub(crate) fn opened_ring() -> Option<ProcessRing> {
    let state = STATE.load(Ordering::Relaxed);
    // SAFETY: the state is never unmapped.
    let words = unsafe { (*state).words.load(Ordering::Acquire) };
    (!words.is_null()).then_some(ProcessRing { state, words })
}

/// Opens the ring of a process that has none: a new program, or a forked child.
#[cold]
#[inline(never)]
fn start_recording() -> Option<ProcessRing> {
    if PHASE.load(Ordering::Acquire) == ENDED || !resolve_functions() {
        return None;
    }
    if PHASE.compare_exchange(UNSTARTED, OPENING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        return open_own_ring(parent_id(), 0);
    }
    // A state that is empty although a ring was open: the kernel has emptied it in a forked child.
    if PHASE.compare_exchange(OPEN, OPENING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // The handler of a signal forked after the state was looked up: the child has its ring.
        let ring = opened_ring();
        if ring.is_some() {
            note_open();
            return ring;
        }
        leave_ring_of_parent();
        return open_own_ring(RING_PROCESS.load(Ordering::Relaxed), fork_number());
    }
    None
}

fn open_own_ring(parent: u32, fork_number: u32) -> Option<ProcessRing> {
    // SAFETY: this thread has moved the phase to `OPENING`.
    let kept = unsafe { (&raw const SETTINGS).read() };
    let opened = kept.or_else(read_settings).and_then(|settings| {
        // SAFETY: as above.
        unsafe { (&raw mut SETTINGS).write(Some(settings)) };
        let fork_position = FORK_POSITION.load(Ordering::Relaxed);
        let parent_ring = RING_INODE.load(Ordering::Relaxed);
        let origin = RingOrigin { parent, parent_ring, fork_number, fork_position };
        let ring = open_ring(&settings, origin)?;
        // SAFETY: the ring is new memory of this process.
        let state = unsafe { new_state(&settings) }?;
        RING_INODE.store(ring.inode, Ordering::Relaxed);
        RING_PROCESS.store(process_id(), Ordering::Relaxed);
        RING_PLACE.store(ring.words as usize - HEADER_BYTES, Ordering::Relaxed);
        STATE.store(state, Ordering::Release);
        // SAFETY: the state is a page of its own.
        unsafe { (*state).words.store(ring.words, Ordering::Release) };
        Some(ProcessRing { state, words: ring.words })
    });
    match opened {
        Some(_) => note_open(),
        None => PHASE.store(ENDED, Ordering::Release),
    }
    opened
}

/// Notes that there is a ring, unless the handler of a signal has ended recording since.
fn note_open() {
    let _ = PHASE.compare_exchange(OPENING, OPEN, Ordering::AcqRel, Ordering::Relaxed);
}

/// In the child of a fork: notes the position of the fork, and maps memory in place of the parent's
/// ring, which is not in this process. Memory that is there already is left alone.
fn leave_ring_of_parent() {
    let place = RING_PLACE.swap(0, Ordering::Relaxed);
    // SAFETY: the settings are not changed after a ring was opened with them.
    let settings = unsafe { (&raw const SETTINGS).read() };
    let Some(settings) = settings.filter(|_| place != 0) else { return };
    // SAFETY: the ring was opened with this state, whose pages stay.
    let position = unsafe { (*position_of(STATE.load(Ordering::Relaxed))).get() };
    FORK_POSITION.store(position, Ordering::Relaxed);
    let bytes = ring_bytes(settings.capacity_log2);
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let kind = (kind | libc::MAP_FIXED_NOREPLACE) as usize;
    // SAFETY: a new mapping, which replaces none. An old kernel may place it elsewhere.
    unsafe {
        let mapped = syscall6(libc::SYS_mmap, [place, bytes, access, kind, usize::MAX, 0]);
        if mapped != place as isize && !(-4095..0).contains(&mapped) {
            syscall3(libc::SYS_munmap, mapped as usize, bytes, 0);
        }
    }
}

/// Returns the write position that belongs to a state.
#[inline(always)]
fn position_of(state: *mut WriterState) -> *const RingPosition {
    state.wrapping_byte_add(STATE_BYTES).cast()
}

/// Maps a page for the state, which is empty in a forked child, and one for the write position.
unsafe fn new_state(settings: &RecordingSettings) -> Option<*mut WriterState> {
    // SAFETY: the mapping is new; `WriterState` fits into a page and all zeros are a value of it.
    unsafe {
        let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let page = syscall6(libc::SYS_mmap, [0, 2 * STATE_BYTES, access, kind, usize::MAX, 0]);
        if (-4095..0).contains(&page) {
            return None;
        }
        let advice = libc::MADV_WIPEONFORK as usize;
        if syscall3(libc::SYS_madvise, page as usize, STATE_BYTES, advice) < 0 {
            return None;
        }
        let state = page as *mut WriterState;
        (*state).capacity_log2 = settings.capacity_log2;
        (*state).limit = AtomicU64::new(1 << settings.capacity_log2);
        (*state).idle_read = AtomicU64::new(u64::MAX);
        (*state).stack_interval = settings.stack_interval;
        // Processes differ by their ids, and where these are alike by the address.
        let seed = u64::from(process_id()) << 32 ^ page as u64;
        (*state).random = AtomicU64::new(seed);
        (*state).bytes_to_sample =
            AtomicI64::new(next_distance(settings.stack_interval, &(*state).random));
        Some(state)
    }
}

impl ProcessRing {
    /// Returns the state.
    #[inline(always)]
    pub(crate) fn state(&self) -> &WriterState {
        // SAFETY: the page is never unmapped.
        unsafe { &*self.state }
    }

    #[inline(always)]
    fn position(&self) -> &RingPosition {
        // SAFETY: the page follows that of the state, and is never unmapped.
        unsafe { &*position_of(self.state) }
    }

    /// Reserves words, once the ring has space for them. `None`: recording has ended.
    ///
    /// A thread that waits beside others has reserved nothing: the reader stops at reserved words,
    /// and would see none of what the others wrote after them before the process was killed.
    #[inline(always)]
    pub(crate) fn reserve(&self, count: u64, is_single: bool) -> Option<u64> {
        let position = self.position();
        let limit = &self.state().limit;
        if is_single {
            let start = position.add_single(count);
            let end = start + count;
            let has_space = end <= limit.load(Ordering::Relaxed)
                || self.wait_for_space(end)
                || self.has_parent_reserved(end);
            return has_space.then_some(start);
        }
        let mut start = position.get();
        loop {
            let end = start + count;
            if end > limit.load(Ordering::Relaxed) && !self.wait_for_space(end) {
                return None;
            }
            match position.advance(start, end) {
                Ok(()) => return Some(start),
                Err(moved) => start = moved,
            }
        }
    }

    /// Returns whether this is the child of a fork, and words were reserved in its parent.
    #[cold]
    fn has_parent_reserved(&self, end: u64) -> bool {
        self.state != STATE.load(Ordering::Relaxed) && end <= FORK_POSITION.load(Ordering::Relaxed)
    }

    /// Waits until the ring has space up to a position. Returns `false` if recording has ended.
    #[cold]
    #[inline(never)]
    fn wait_for_space(&self, end: u64) -> bool {
        let state = self.state();
        if state.words.load(Ordering::Relaxed).is_null() {
            return false;
        }
        let capacity = 1_u64 << state.capacity_log2;
        let read = self.header_u64(offset::READ_POSITION);
        let mut last_read = read.load(Ordering::Acquire);
        let mut idle = IdleTime::default();
        let mut is_wait_in_vain = false;
        let mut is_stalled = false;
        loop {
            if state.words.load(Ordering::Relaxed).is_null() {
                return false;
            }
            let futex = self.header_u32(offset::SPACE_FUTEX);
            let moves = futex.load(Ordering::Acquire);
            let now = read.load(Ordering::Acquire);
            if end <= now + capacity {
                state.limit.fetch_max(now + capacity, Ordering::Relaxed);
                return true;
            }
            if !is_stalled {
                self.header_u32(offset::STALLS).fetch_add(1, Ordering::Relaxed);
                is_stalled = true;
            }
            if now != last_read {
                idle.end();
            } else if is_wait_in_vain {
                // By the clock: a handler of a signal ends a wait early.
                if idle.note_wait(clock_nanoseconds()) > MAX_IDLE_NANOSECONDS {
                    self.end_recording();
                    return false;
                }
            }
            last_read = now;
            is_wait_in_vain = false;
            self.header_u32(offset::WAITERS).store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            // The collector may have moved on before it could see that somebody waits.
            if end <= read.load(Ordering::SeqCst) + capacity {
                continue;
            }
            let limit = [0_usize, WAIT_NANOSECONDS];
            // SAFETY: the futex is in memory shared with the collector.
            let result = unsafe {
                syscall6(
                    libc::SYS_futex,
                    [
                        futex.as_ptr() as usize,
                        libc::FUTEX_WAIT as usize,
                        moves as usize,
                        limit.as_ptr() as usize,
                        0,
                        0,
                    ],
                )
            };
            is_wait_in_vain = ![0, -(libc::EAGAIN as isize)].contains(&result);
        }
    }

    /// Wakes the collector and waits until it has read all events so far, but for about a tenth of
    /// a second at most. After a wait in vain there is none until the collector goes on reading.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_until_read(&self) {
        let state = self.state();
        let end = self.position().get();
        let read = self.header_u64(offset::READ_POSITION);
        let first_read = read.load(Ordering::Acquire);
        if first_read >= end || state.idle_read.load(Ordering::Relaxed) == first_read {
            return;
        }
        // SAFETY: the settings are not changed after a ring was opened with them.
        let settings = unsafe { (&raw const SETTINGS).read() };
        if !settings.is_some_and(|settings| wake_collector(&settings)) {
            self.end_recording();
            return;
        }
        let limit = clock_nanoseconds() + READ_WAIT_NANOSECONDS;
        let limit = [limit / 1_000_000_000, limit % 1_000_000_000];
        loop {
            let futex = self.header_u32(offset::SPACE_FUTEX);
            let moves = futex.load(Ordering::Acquire);
            self.header_u32(offset::WAITERS).store(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            // As in `wait_for_space`.
            if read.load(Ordering::SeqCst) >= end {
                return;
            }
            // SAFETY: the futex is in memory shared with the collector, the time as the kernel
            // defines it.
            let result = unsafe {
                syscall6(
                    libc::SYS_futex,
                    [
                        futex.as_ptr() as usize,
                        libc::FUTEX_WAIT_BITSET as usize,
                        moves as usize,
                        limit.as_ptr() as usize,
                        0,
                        libc::FUTEX_BITSET_MATCH_ANY as u32 as usize,
                    ],
                )
            };
            if ![0, -(libc::EAGAIN as isize), -(libc::EINTR as isize)].contains(&result) {
                state.idle_read.store(read.load(Ordering::Relaxed), Ordering::Relaxed);
                return;
            }
        }
    }

    /// Ends the recording of this process: the collector is gone, or stands still.
    #[cold]
    fn end_recording(&self) {
        PHASE.store(ENDED, Ordering::Release);
        self.header_u32(offset::STATE).store(ring_state::ABANDONED, Ordering::Release);
        self.state().words.store(null_mut(), Ordering::Release);
    }

    /// Returns the place of the word at a position.
    #[inline(always)]
    pub(crate) fn word(&self, position: u64) -> *mut u64 {
        let mask = (1_u64 << self.state().capacity_log2) - 1;
        // SAFETY: the index is within the ring.
        unsafe { self.words.add((position & mask) as usize) }
    }

    #[inline(always)]
    fn header(&self) -> *mut u8 {
        // SAFETY: the header comes before the words.
        unsafe { self.words.cast::<u8>().sub(HEADER_BYTES) }
    }

    #[inline(always)]
    pub(crate) fn header_u64(&self, field: usize) -> &AtomicU64 {
        // SAFETY: the fields are within the header, and aligned.
        unsafe { &*self.header().add(field).cast::<AtomicU64>() }
    }

    #[inline(always)]
    fn header_u32(&self, field: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.header().add(field).cast::<AtomicU32>() }
    }
}

/// Opens the ring of the child of a fork, unless a call of the child has done so: another handler
/// of the fork may have come before.
pub(crate) fn open_child_ring() {
    if opened_ring().is_some() {
        return;
    }
    leave_ring_of_parent();
    if PHASE.compare_exchange(OPEN, OPENING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        open_own_ring(RING_PROCESS.load(Ordering::Relaxed), fork_number());
    }
}

/// Notes that the process ends by its own will. The caller knows that this is no child that shares
/// the memory of the process after `vfork`. Call stacks are looked up in the files of the process,
/// so one that takes samples lets the collector read what there is.
pub(crate) fn note_own_exit() {
    if let Some(ring) = opened_ring().filter(|ring| ring.state().stack_interval != 0) {
        ring.wait_until_read();
    }
    change_ring_state(ring_state::RECORDING, ring_state::EXITED);
}

/// Notes that the process ends by its own will, unless this is a child that shares its memory after
/// `vfork`.
pub(crate) fn note_exit() {
    if RING_PROCESS.load(Ordering::Relaxed) == process_id() {
        note_own_exit();
    }
}

/// Notes that the process goes on after all.
pub(crate) fn take_back_exit() {
    if RING_PROCESS.load(Ordering::Relaxed) == process_id() {
        change_ring_state(ring_state::EXITED, ring_state::RECORDING);
    }
}

/// Changes the state of the ring. One that was abandoned stays so, because later calls are not in
/// it.
fn change_ring_state(from: u32, to: u32) {
    if let Some(ring) = opened_ring() {
        let state = ring.header_u32(offset::STATE);
        let _ = state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }
}

unsafe extern "C" fn at_load() {
    run_if_asked();
    let _ = process_ring();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;

const _: () = assert!(size_of::<WriterState>() <= STATE_BYTES);
