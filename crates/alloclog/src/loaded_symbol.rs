//! Symbols of loaded libraries, read from their tables: nothing is allocated, so that the operators
//! of C++ are found when there is no memory. `RTLD_NEXT` does not see the libraries that `dlopen`
//! loads without `RTLD_GLOBAL`, and `dlsym` needs a handle, which a library loaded for another one
//! has not.

use crate::real_functions::next_symbol;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::zeroed;
use core::ptr::{addr_of, null, null_mut};

/// The beginning of a `link_map` of libc: a loaded library.
#[repr(C)]
struct LoadedLibrary {
    base: usize,
    path: *const c_char,
    dynamic: *const DynamicEntry,
    next: *mut LoadedLibrary,
    previous: *mut LoadedLibrary,
}

/// An entry of the dynamic section of a library.
#[repr(C)]
struct DynamicEntry {
    tag: i64,
    value: usize,
}

/// A symbol of ELF.
#[repr(C)]
struct ElfSymbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// The head of a hash table of GNU. Words of 8 bytes, buckets, and one hash for each symbol follow.
#[repr(C)]
struct HashHead {
    buckets: u32,
    first_symbol: u32,
    filter_words: u32,
    filter_shift: u32,
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// The type of a symbol that is a function.
const STT_FUNC: u8 = 2;
/// The flag of `dladdr1` that asks for the library.
const RTLD_DL_LINKMAP: c_int = 2;

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut LoadedLibrary,
        flags: c_int,
    ) -> c_int;
}

/// Returns the function of a name in the library of a caller, else in one that was loaded after it,
/// as those that it needs were, else in one that was loaded before. Null if there is none.
///
/// # Safety
/// The code of the caller is loaded, and so it stays. Another thread that unloads a library in this
/// very moment is not expected.
#[cold]
pub(crate) unsafe fn function_near(caller: *const c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the list is that of libc.
    unsafe {
        let (start, own) = (library_of(caller), own_library());
        for is_forward in [true, false] {
            let mut library = start;
            while !library.is_null() {
                let function = if library == own { null_mut() } else { (*library).find(name) };
                if !function.is_null() {
                    return function;
                }
                library = if is_forward { (*library).next } else { (*library).previous };
            }
        }
        null_mut()
    }
}

/// Returns whether the program has a function of one of these names that is neither of a standard
/// library, by the beginnings of their files' names, nor in the file of an address: before this
/// library, or as the next one.
///
/// # Safety
/// No library is unloaded meanwhile.
#[cold]
pub(crate) unsafe fn has_own_function<'a>(
    names: impl Iterator<Item = &'a CStr>,
    standard: &[&[u8]],
    address: *const c_void,
) -> bool {
    // SAFETY: the list is that of libc, the names end with a zero byte.
    unsafe {
        let own = own_library();
        let mut beside: *mut LoadedLibrary = null_mut();
        for name in names {
            let mut library = if own.is_null() { null_mut() } else { (*own).previous };
            while !library.is_null() {
                if !(*library).find(name).is_null() {
                    return true;
                }
                library = (*library).previous;
            }
            let next = next_symbol(name.as_ptr());
            if next.is_null() {
                continue;
            }
            let mut library = own;
            while !library.is_null() && (*library).find(name) != next {
                library = (*library).next;
            }
            if !library.is_null() && standard.iter().any(|start| (*library).is_named(start)) {
                continue;
            }
            if beside.is_null() {
                beside = library_of(address);
            }
            if library.is_null() || library != beside {
                return true;
            }
        }
        false
    }
}

/// Returns this library.
unsafe fn own_library() -> *mut LoadedLibrary {
    static OWN: u8 = 0;
    // SAFETY: an address of this library.
    unsafe { library_of(addr_of!(OWN).cast()) }
}

/// Returns the library of an address; null if there is none.
unsafe fn library_of(address: *const c_void) -> *mut LoadedLibrary {
    let mut library = null_mut();
    // SAFETY: libc writes both; all zeros are a value of the information.
    unsafe {
        let mut info: libc::Dl_info = zeroed();
        dladdr1(address, &raw mut info, &raw mut library, RTLD_DL_LINKMAP);
    }
    library
}

impl LoadedLibrary {
    /// Returns a table of the library. libc has made its address absolute, but that of the kernel's
    /// library is relative.
    unsafe fn table<T>(&self, tag: i64) -> *const T {
        let mut entry = self.dynamic;
        // SAFETY: the section ends with an entry of the tag 0.
        unsafe {
            while !entry.is_null() && (*entry).tag != 0 {
                if (*entry).tag == tag {
                    let address = (*entry).value;
                    let is_relative = address < self.base;
                    return (if is_relative { self.base + address } else { address }) as *const T;
                }
                entry = entry.add(1);
            }
        }
        null()
    }

    /// Returns whether the name of its file begins so.
    unsafe fn is_named(&self, start: &[u8]) -> bool {
        if self.path.is_null() {
            return false;
        }
        // SAFETY: the path ends with a zero byte.
        let path = unsafe { CStr::from_ptr(self.path) }.to_bytes();
        path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(start))
    }

    /// Returns the function of a name that the library defines; null if there is none.
    unsafe fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the tables are as the linker has made them.
        unsafe {
            let head: *const HashHead = self.table(DT_GNU_HASH);
            let symbols: *const ElfSymbol = self.table(DT_SYMTAB);
            let names: *const c_char = self.table(DT_STRTAB);
            if head.is_null() || symbols.is_null() || names.is_null() || (*head).buckets == 0 {
                return null_mut();
            }
            let filter: *const u64 = head.add(1).cast();
            let buckets: *const u32 = filter.add((*head).filter_words as usize).cast();
            let hashes = buckets.add((*head).buckets as usize);
            let hash = gnu_hash(name);
            let mut symbol = *buckets.add((hash % (*head).buckets) as usize);
            while symbol >= (*head).first_symbol {
                let found = *hashes.add((symbol - (*head).first_symbol) as usize);
                let entry = &*symbols.add(symbol as usize);
                let is_function = entry.section != 0 && entry.info & 15 == STT_FUNC;
                if found | 1 == hash | 1
                    && is_function
                    && CStr::from_ptr(names.add(entry.name as usize)) == name
                {
                    return (self.base + entry.value) as *mut c_void;
                }
                // The last hash of a bucket.
                if found & 1 == 1 {
                    break;
                }
                symbol += 1;
            }
        }
        null_mut()
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    let add = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.to_bytes().iter().fold(5381, add)
}
