//! The functions that the hooks replace: the next ones of their names in the order of loading.
//!
//! They are resolved once, before the first event. glibc before 2.34 allocates within `dlsym`; such
//! calls are served from a small arena that is never freed.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr::{addr_of, addr_of_mut, null_mut};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

pub(crate) type SizeFn = unsafe extern "C" fn(usize) -> *mut c_void;
pub(crate) type TwoSizesFn = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub(crate) type ReallocFn = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub(crate) type FreeFn = unsafe extern "C" fn(*mut c_void);
pub(crate) type PosixMemalignFn = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
pub(crate) type DlcloseFn = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(crate) type ForkFn = unsafe extern "C" fn() -> c_int;
pub(crate) type SixWordsFn =
    unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_int;
pub(crate) type AccessFn = unsafe extern "C" fn(*const c_char, c_int) -> c_int;
pub(crate) type AccessAtFn = unsafe extern "C" fn(c_int, *const c_char, c_int, c_int) -> c_int;
pub(crate) type OperatorFn = unsafe extern "C-unwind" fn(usize, usize, usize) -> *mut c_void;

/// The functions. Those of the allocator of C are always there once they are resolved; the others
/// are only in programs that use them.
pub(crate) struct RealFunctions {
    pub(crate) malloc: Option<SizeFn>,
    pub(crate) calloc: Option<TwoSizesFn>,
    pub(crate) realloc: Option<ReallocFn>,
    pub(crate) free: Option<FreeFn>,
    pub(crate) posix_memalign: Option<PosixMemalignFn>,
    pub(crate) aligned_alloc: Option<TwoSizesFn>,
    pub(crate) memalign: Option<TwoSizesFn>,
    pub(crate) valloc: Option<SizeFn>,
    pub(crate) pvalloc: Option<SizeFn>,
    pub(crate) access: Option<AccessFn>,
    pub(crate) faccessat: Option<AccessAtFn>,
    /// glibc's flag: nonzero while the process has one thread. Null before glibc 2.32.
    pub(crate) single_threaded: *const c_char,
}

static mut FUNCTIONS: RealFunctions = RealFunctions {
    malloc: None,
    calloc: None,
    realloc: None,
    free: None,
    posix_memalign: None,
    aligned_alloc: None,
    memalign: None,
    valloc: None,
    pvalloc: None,
    access: None,
    faccessat: None,
    single_threaded: core::ptr::null(),
};

const UNRESOLVED: u32 = 0;
const RESOLVING: u32 = 1;
const RESOLVED: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(UNRESOLVED);

/// Returns the functions, resolved or not.
#[inline(always)]
pub(crate) fn functions() -> &'static RealFunctions {
    // SAFETY: they are written once, by the first call of a hook, which is made by the loader or by
    // the only thread that there is.
    unsafe { &*addr_of!(FUNCTIONS) }
}

/// Resolves the functions, once. Returns whether they are there: not while they are being resolved.
pub(crate) fn resolve_functions() -> bool {
    if STATE.load(Ordering::Acquire) == RESOLVED {
        return true;
    }
    if STATE.compare_exchange(UNRESOLVED, RESOLVING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return STATE.load(Ordering::Acquire) == RESOLVED;
    }
    // SAFETY: this is the only writer; the names are those of functions of these types.
    unsafe {
        let functions = &mut *addr_of_mut!(FUNCTIONS);
        functions.calloc = next_function(c"calloc");
        functions.realloc = next_function(c"realloc");
        functions.free = next_function(c"free");
        functions.posix_memalign = next_function(c"posix_memalign");
        functions.aligned_alloc = next_function(c"aligned_alloc");
        functions.memalign = next_function(c"memalign");
        functions.valloc = next_function(c"valloc");
        functions.pvalloc = next_function(c"pvalloc");
        functions.access = next_function(c"access");
        functions.faccessat = next_function(c"faccessat");
        functions.single_threaded =
            libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()).cast();
        functions.malloc = next_function(c"malloc");
    }
    STATE.store(RESOLVED, Ordering::Release);
    true
}

/// Returns the next function of a name after this library. The type is a pointer to a function.
unsafe fn next_function<F>(name: &CStr) -> Option<F> {
    // SAFETY: the name ends with a zero byte; the caller's type is that of the function.
    unsafe {
        let symbol = next_symbol(name.as_ptr());
        if symbol.is_null() { None } else { Some(transmute_copy(&symbol)) }
    }
}

/// Returns the next symbol of a name after this library; null if there is none.
pub(crate) unsafe fn next_symbol(name: *const c_char) -> *mut c_void {
    // SAFETY: the name ends with a zero byte.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name) }
}

const ARENA_BYTES: usize = 16 * 1024;
#[repr(align(16))]
#[allow(dead_code)] // Only its address is used.
struct StartArena([u8; ARENA_BYTES]);
static mut ARENA: StartArena = StartArena([0; ARENA_BYTES]);
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);

/// Allocates from the arena for calls within `dlsym`, zeroed; null if it is full.
#[cold]
pub(crate) fn start_alloc(size: usize) -> *mut c_void {
    let rounded = size.wrapping_add(15) & !15;
    if rounded < size {
        return null_mut();
    }
    let start = ARENA_USED.fetch_add(rounded, Ordering::Relaxed);
    if start > ARENA_BYTES || rounded > ARENA_BYTES - start {
        return null_mut();
    }
    // SAFETY: the range is within the arena and given out once.
    unsafe { addr_of_mut!(ARENA).cast::<u8>().add(start).cast() }
}

/// Returns whether memory is of the arena.
#[inline(always)]
pub(crate) fn is_start_alloc(address: *mut c_void) -> bool {
    (address as usize).wrapping_sub(addr_of!(ARENA) as usize) < ARENA_BYTES
}

/// Returns the bytes from an address of the arena to its end.
pub(crate) fn start_alloc_bytes(address: *mut c_void) -> usize {
    ARENA_BYTES.wrapping_sub((address as usize).wrapping_sub(addr_of!(ARENA) as usize))
}
