//! Symbols of loaded libraries, read from their tables: nothing is allocated, so that the operators
//! of C++ are found when there is no memory. `RTLD_NEXT` does not see the libraries that `dlopen`
//! loads without `RTLD_GLOBAL`, and `dlsym` needs a handle, which a library loaded for another one
//! has not.
//!
//! libc shows its list of libraries under a lock, so that no thread changes the list or unloads a
//! library meanwhile. Nothing that takes another lock of the loader is called then.

use crate::real_functions::next_symbol;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ops::ControlFlow;
use core::ptr::{addr_of, null, null_mut};
use core::slice::from_raw_parts;

/// A loaded library, as long as libc shows it.
struct LoadedLibrary<'a> {
    base: usize,
    path: *const c_char,
    segments: &'a [libc::Elf64_Phdr],
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

type LibraryFn = unsafe extern "C" fn(*const libc::dl_phdr_info, usize, *mut c_void) -> c_int;
type EachLibraryFn = unsafe extern "C" fn(LibraryFn, *mut c_void) -> c_int;

/// An address of this library.
static OWN: u8 = 0;

/// Returns the function of a name in the library of a caller, else in one that was loaded after it,
/// as those that it needs were, else in one that was loaded before. Null if there is none.
#[cold]
pub(crate) fn function_near(caller: *const c_void, name: &CStr) -> *mut c_void {
    let (mut before, mut after) = (null_mut(), null_mut());
    let mut has_caller = false;
    each_library(|library| {
        has_caller |= library.contains(caller);
        if !library.contains(addr_of!(OWN).cast()) {
            let function = library.find(name);
            match has_caller {
                true if !function.is_null() => {
                    after = function;
                    return ControlFlow::Break(());
                }
                false if !function.is_null() => before = function,
                _ => {}
            }
        }
        ControlFlow::Continue(())
    });
    match has_caller {
        true if after.is_null() => before,
        true => after,
        false => null_mut(),
    }
}

/// Returns whether the program has a function of one of these names that is neither of a standard
/// library, by the beginnings of their files' names, nor in the file of an address: before this
/// library, or as the next one.
#[cold]
pub(crate) fn has_own_function<'a>(
    mut names: impl Iterator<Item = &'a CStr>,
    standard: &[&[u8]],
    address: *const c_void,
) -> bool {
    names.any(|name| {
        // SAFETY: the name ends with a zero byte.
        let next = unsafe { next_symbol(name.as_ptr()) };
        // A function that is in no library of the list is one of the program.
        let mut is_own = !next.is_null();
        let mut is_before = true;
        each_library(|library| {
            is_before &= !library.contains(addr_of!(OWN).cast());
            let function = library.find(name);
            if is_before && !function.is_null() {
                is_own = true;
                return ControlFlow::Break(());
            }
            if !is_before && !function.is_null() && function == next {
                let is_standard = standard.iter().any(|start| library.is_named(start));
                is_own = !is_standard && !library.contains(address);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        is_own
    })
}

/// Shows each loaded library in the order of loading.
fn each_library<F: FnMut(&LoadedLibrary<'_>) -> ControlFlow<()>>(mut see: F) {
    unsafe extern "C" fn see_one<F: FnMut(&LoadedLibrary<'_>) -> ControlFlow<()>>(
        info: *const libc::dl_phdr_info,
        _: usize,
        see: *mut c_void,
    ) -> c_int {
        // SAFETY: libc passes a library with its segments, and the function on.
        unsafe {
            let (info, see) = (&*info, &mut *see.cast::<F>());
            let segments = match info.dlpi_phdr.is_null() {
                true => &[],
                false => from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
            };
            let base = info.dlpi_addr as usize;
            c_int::from(see(&LoadedLibrary { base, path: info.dlpi_name, segments }).is_break())
        }
    }
    // That of libc: a program may have one of its own, which allocates.
    // SAFETY: the name ends with a zero byte, the type is that of the function.
    unsafe {
        let function = next_symbol(c"dl_iterate_phdr".as_ptr());
        if !function.is_null() {
            let each: EachLibraryFn = transmute(function);
            each(see_one::<F>, (&raw mut see).cast());
        }
    }
}

impl LoadedLibrary<'_> {
    /// Returns whether an address is in the memory of its file.
    fn contains(&self, address: *const c_void) -> bool {
        let address = address as usize;
        self.segments.iter().any(|segment| {
            let start = self.base.wrapping_add(segment.p_vaddr as usize);
            segment.p_type == libc::PT_LOAD
                && address.wrapping_sub(start) < segment.p_memsz as usize
        })
    }

    /// Returns a table of the library. libc has made its address absolute, but that of the kernel's
    /// library is relative.
    unsafe fn table<T>(&self, tag: i64) -> *const T {
        let section = self.segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC);
        let mut entry: *const DynamicEntry = section
            .map_or(null(), |segment| self.base.wrapping_add(segment.p_vaddr as usize) as *const _);
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
    fn is_named(&self, start: &[u8]) -> bool {
        if self.path.is_null() {
            return false;
        }
        // SAFETY: the path ends with a zero byte.
        let path = unsafe { CStr::from_ptr(self.path) }.to_bytes();
        path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(start))
    }

    /// Returns the function of a name that the library defines; null if there is none.
    fn find(&self, name: &CStr) -> *mut c_void {
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
