//! The functions of the frames of call stacks, by the symbols of the program's files.
//!
//! Names are read at the end of a recording, and are in its log: a program may be built anew before
//! the log is analysed. Where a recording was interrupted, the analysis reads them. Tables of
//! symbols are enough: they name functions, also of programs whose lines are not known. In a
//! stripped file only exported functions have names; the others are named by the file and the
//! address at which the function begins, so that the calls within a function are one entry.

use super::log_block::{StackFrame, StackModule};
use super::program_code::{ProgramCode, ProgramElf, build_id, open_program};
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, NativeEndian, UnwindSection as _};
use object::{Object as _, ObjectSymbol as _, ReadCache, SymbolKind};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longer names are cut.
const MAX_NAME_CHARS: usize = 300;
/// The crates of Rust's standard library, and the namespaces of C++'s.
const RUST_LIBRARY_ROOTS: [&str; 5] = ["alloc", "core", "std", "hashbrown", "__rustc"];
const CPP_LIBRARY_ROOTS: [&str; 4] = ["std", "__gnu_cxx", "__cxxabiv1", "operator new"];
/// The beginnings of the names of functions by which compilers call these libraries.
const RUNTIME_PREFIXES: [&str; 5] = ["__rust_", "__rdl_", "__rg_", "__cxa_", "_Unwind_"];
/// The beginnings of the names of files of the standard libraries of C, C++ and Rust.
const LIBRARY_FILE_PREFIXES: [&str; 14] = [
    "libc.so",
    "libc-2.",
    "libm.so",
    "libm-2.",
    "libpthread.so",
    "libpthread-2.",
    "ld-linux",
    "ld-2.",
    "libgcc_s.so",
    "libgcc_s-",
    "libstdc++.so",
    "libc++.so",
    "libc++abi.so",
    "libstd-",
];
/// The name of frames from where on a stack was cut off.
const CUT_NAME: &str = "[deeper]";
/// The name of code that is in no known file.
const GENERATED_NAME: &str = "[code of no file]";
/// The name of allocations without a stack.
pub(super) const UNKNOWN_NAME: &str = "[unknown]";

/// The functions of a process's frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionNames {
    /// The name of each function.
    pub(super) names: Vec<String>,
    /// The file of each function, as a number of a module of the process; 0: none.
    pub(super) modules: Vec<u32>,
    /// Whether each function is one of the standard libraries of C, C++ and Rust: by its name,
    /// because their templates and generic functions are compiled into every program, or by its
    /// file.
    pub(super) is_library: Vec<bool>,
    /// The function of each frame; index 0 is of stacks that could not be unwound.
    pub(super) by_frame: Vec<u32>,
    /// Files that were not those of the recording any more: their functions have no names.
    pub(super) changed_files: Vec<String>,
}

/// The names of the functions at the addresses that were asked for so far, by file; `None`: it is
/// not the file that was recorded. The symbols of a large program take many times the memory of the
/// names that are needed, so they are read again for further addresses.
#[derive(Default)]
pub(super) struct SymbolCache(FxHashMap<StackModule, Option<FileNames>>);

/// The functions at addresses of a file.
type FileNames = FxHashMap<u64, FunctionName>;

/// A function of a file.
struct FunctionSymbol {
    start: u64,
    end: u64,
    name: String,
}

impl FunctionSymbol {
    fn sort_key(&self) -> (u64, usize, &str) {
        let underscores = self.name.len() - self.name.trim_start_matches('_').len();
        (self.start, underscores, &self.name)
    }
}

/// Functions of a file.
struct FileSymbols {
    /// Those that some addresses are in, by their start.
    symbols: Vec<FunctionSymbol>,
    code: Rc<ProgramCode>,
}

impl FunctionNames {
    /// Names the functions of all frames of a process. The code of a module is read from its path
    /// if it is not given.
    pub(super) fn read(
        modules: &[StackModule],
        code: &[Rc<ProgramCode>],
        frames: &[StackFrame],
        cache: &mut SymbolCache,
    ) -> FunctionNames {
        let mut names = FunctionNames::default();
        let mut numbers = FxHashMap::default();
        let unknown = names.add(&mut numbers, UNKNOWN_NAME.into(), 0);
        names.by_frame = vec![unknown; frames.len() + 1];
        for (index, frame) in (1..).zip(frames).filter(|(_, frame)| frame.module == 0) {
            let name = if frame.address == 0 { CUT_NAME } else { GENERATED_NAME };
            names.by_frame[index] = names.add(&mut numbers, name.into(), 0);
        }
        let mut in_modules: Vec<(usize, &StackFrame)> =
            (1..).zip(frames).filter(|(_, frame)| frame.module != 0).collect();
        in_modules.sort_by_key(|(index, frame)| (frame.module, *index));
        for frames in in_modules.chunk_by(|one, next| one.1.module == next.1.module) {
            let Some(number) = frames.first().map(|(_, frame)| frame.module) else { continue };
            let place = number as usize - 1;
            let Some(module) = modules.get(place) else { continue };
            let mut addresses: Vec<u64> = frames.iter().map(|(_, frame)| frame.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            let found = cache.names(module, code.get(place), addresses);
            if found.is_none() {
                names.changed_files.push(module.path.clone());
            }
            let is_in_library = is_library_file(module.file_name());
            for (index, frame) in frames {
                let name = found.and_then(|names| names.get(&frame.address)).cloned();
                let unnamed = || place_name(module.file_name(), frame.address);
                let mut name = name.unwrap_or_else(unnamed);
                name.is_library |= is_in_library;
                names.by_frame[*index] = names.add(&mut numbers, name, number);
            }
        }
        names
    }

    /// Returns whether the numbers are those of a process with so many modules and frames.
    pub(super) fn fits(&self, modules: usize, frames: usize) -> bool {
        self.modules.len() == self.names.len()
            && self.is_library.len() == self.names.len()
            && self.by_frame.len() == frames + 1
            && self.by_frame.iter().all(|function| (*function as usize) < self.names.len())
            && self.modules.iter().all(|module| *module as usize <= modules)
    }

    fn add(
        &mut self,
        numbers: &mut FxHashMap<(u32, String), u32>,
        name: FunctionName,
        module: u32,
    ) -> u32 {
        let next = self.names.len() as u32;
        let number = *numbers.entry((module, name.text.clone())).or_insert(next);
        if number == next {
            self.names.push(name.text);
            self.modules.push(module);
            self.is_library.push(name.is_library);
        }
        number
    }
}

impl SymbolCache {
    /// Returns the names of a file, among them those at these addresses, which are in order; `None`
    /// if it is not the file that was recorded.
    fn names(
        &mut self,
        module: &StackModule,
        code: Option<&Rc<ProgramCode>>,
        mut addresses: Vec<u64>,
    ) -> Option<&FileNames> {
        let found = self.0.entry(module.clone()).or_insert_with(|| Some(FileNames::default()));
        if let Some(names) = found {
            addresses.retain(|address| !names.contains_key(address));
            if !addresses.is_empty() {
                match FileSymbols::read(module, code, &addresses) {
                    Some(symbols) => names.extend(addresses.into_iter().map(|address| {
                        (address, symbols.function_name(address, module.file_name()))
                    })),
                    // A file that has changed since then keeps the names that are known.
                    None if names.is_empty() => *found = None,
                    None => {}
                }
            }
        }
        found.as_ref()
    }
}

/// Returns the name of a place that no symbol names.
fn place_name(file: &str, address: u64) -> FunctionName {
    format!("{file}+{address:#x}").into()
}

impl FileSymbols {
    /// Reads the symbols of a file, and of its debug file if there is one, that some addresses are
    /// in; `None` if it is not the file that was recorded.
    fn read(
        module: &StackModule,
        code: Option<&Rc<ProgramCode>>,
        addresses: &[u64],
    ) -> Option<FileSymbols> {
        let code = match code.filter(|code| code.file.is_some()) {
            Some(code) => Rc::clone(code),
            None => Rc::new(ProgramCode::read(Path::new(&module.path))),
        };
        let is_same = code.build_id == module.build_id
            && (!code.build_id.is_empty() || code.version == module.version);
        if !is_same || code.is_empty() {
            return None;
        }
        let file = code.file.as_ref().and_then(|file| file.try_clone().ok());
        let debug_file = debug_file_path(&module.build_id).and_then(|path| open_program(&path));
        let files = file.into_iter().chain(debug_file);
        let mut symbols: Vec<FunctionSymbol> =
            files.flat_map(|file| read_symbols(file, &module.build_id, addresses)).collect();
        // Of several names the public one, which has the fewest underscores at its start.
        symbols.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
        symbols.dedup_by_key(|symbol| symbol.start);
        Some(FileSymbols { symbols, code })
    }

    /// Returns the name of the function at an address.
    fn function_name(&self, address: u64, file: &str) -> FunctionName {
        let index = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = index.checked_sub(1).and_then(|index| self.symbols.get(index));
        if let Some(symbol) = symbol.filter(|symbol| address < symbol.end) {
            return demangle(&symbol.name);
        }
        place_name(file, self.function_start(address).unwrap_or(address))
    }

    /// Returns the start of the function at an address, by the tables that unwind it.
    fn function_start(&self, address: u64) -> Option<u64> {
        let (index, table) = (self.code.eh_frame_hdr.as_ref()?, self.code.eh_frame.as_ref()?);
        let mut bases = BaseAddresses::default()
            .set_eh_frame(table.addresses.start)
            .set_eh_frame_hdr(index.addresses.start);
        if let Some(text) = &self.code.text {
            bases = bases.set_text(text.start);
        }
        if let Some(got) = &self.code.got {
            bases = bases.set_got(got.start);
        }
        let frames = EhFrame::new(&table.bytes, NativeEndian);
        let header = EhFrameHdr::new(&index.bytes, NativeEndian).parse(&bases, 8).ok()?;
        let entries = header.table()?;
        let entry =
            entries.fde_for_address(&frames, &bases, address, EhFrame::cie_from_offset).ok()?;
        Some(entry.initial_address())
    }
}

/// Reads the functions among the symbols of a file of this build that some addresses, which are in
/// order, are in. Names of others are not read.
fn read_symbols(file: File, expected_build_id: &str, addresses: &[u64]) -> Vec<FunctionSymbol> {
    let cache = ReadCache::new(file);
    let Ok(file) = ProgramElf::parse(&cache) else { return Vec::new() };
    if build_id(&file) != expected_build_id {
        return Vec::new();
    }
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions =
        symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    functions
        .filter_map(|symbol| {
            let start = symbol.address();
            let end = start.checked_add(symbol.size())?;
            let next = addresses.partition_point(|address| *address < start);
            let is_needed = addresses.get(next).is_some_and(|address| *address < end);
            is_needed.then_some(())?;
            Some(FunctionSymbol { start, end, name: symbol.name().ok()?.to_string() })
        })
        .collect()
}

/// Returns the place where debug information of a build is installed.
fn debug_file_path(build_id: &str) -> Option<PathBuf> {
    let (folder, name) = build_id.split_at_checked(2).filter(|(_, name)| !name.is_empty())?;
    Some(PathBuf::from(format!("/usr/lib/debug/.build-id/{folder}/{name}.debug")))
}

/// A name of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FunctionName {
    text: String,
    /// It is one of a standard library.
    is_library: bool,
}

impl<T: Into<String>> From<T> for FunctionName {
    fn from(text: T) -> FunctionName {
        FunctionName { text: text.into(), is_library: false }
    }
}

/// A text that ends after [`MAX_NAME_CHARS`]: a mangled name may stand for one of megabytes.
#[derive(Default)]
struct BoundedText {
    text: String,
    chars: usize,
}

impl fmt::Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            if self.chars == MAX_NAME_CHARS {
                return Err(fmt::Error);
            }
            self.text.push(character);
            self.chars += 1;
        }
        Ok(())
    }
}

impl BoundedText {
    /// Returns the text, which may have been cut.
    fn into_text(mut self) -> String {
        if self.chars == MAX_NAME_CHARS {
            self.text.push('…');
        }
        self.text
    }
}

/// Returns the name of a function as its source has it, without the types of its parameters and of
/// its result.
fn demangle(name: &str) -> FunctionName {
    let mut out = BoundedText::default();
    // A failure to write means that the name was cut.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let _ = write!(out, "{rust:#}");
        let text = out.into_text();
        return FunctionName { is_library: is_rust_library(&text), text };
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
    {
        let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
        let result = symbol.structured_demangle(&mut out, &options);
        if result.is_ok() || out.chars == MAX_NAME_CHARS {
            let text = out.into_text();
            let is_library = has_root(&text, &CPP_LIBRARY_ROOTS);
            return FunctionName { is_library, text };
        }
        out = BoundedText::default();
    }
    let _ = out.write_str(name);
    let is_library = RUNTIME_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    FunctionName { text: out.into_text(), is_library }
}

/// Returns whether a file is one of the standard libraries.
pub(super) fn is_library_file(name: &str) -> bool {
    LIBRARY_FILE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a path begins with one of these names.
fn has_root(path: &str, roots: &[&str]) -> bool {
    let rest = roots.iter().filter_map(|root| path.strip_prefix(root));
    let mut rest = rest.filter(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
    rest.next().is_some()
}

/// Returns whether a name is one of Rust's standard library. In `<TYPE as TRAIT>::NAME` a program
/// may have the type or the trait; what they are generic over makes no difference.
fn is_rust_library(name: &str) -> bool {
    let Some(inside) = name.strip_prefix('<') else { return has_root(name, &RUST_LIBRARY_ROOTS) };
    let (of_type, of_trait) = split_implementation(inside);
    // A primitive type, or a parameter of the implementation, has no path.
    let is_plain = !of_type.starts_with(|c: char| c.is_alphabetic() || c == '_')
        || path_root(of_type).len() == of_type.len();
    let is_library = |path: &str| has_root(path, &RUST_LIBRARY_ROOTS);
    (is_plain || is_library(of_type)) && of_trait.is_none_or(is_library)
}

/// Returns the part of a path before its first separator.
fn path_root(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Divides what stands between the outer angle brackets of a name into the type and the trait.
fn split_implementation(inside: &str) -> (&str, Option<&str>) {
    let (mut depth, mut of_type) = (0_usize, None);
    for (at, c) in inside.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if inside.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            '>' if depth == 0 => {
                let part = inside.get(of_type.map_or(0, |end| end + 4)..at).unwrap_or_default();
                return match of_type {
                    Some(end) => (inside.get(..end).unwrap_or_default(), Some(part)),
                    None => (part, None),
                };
            }
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && of_type.is_none() => {
                let is_end = inside.get(at..).is_some_and(|rest| rest.starts_with(" as "));
                of_type = is_end.then_some(at);
            }
            _ => {}
        }
    }
    (inside, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of functions that no frame is in are not read.
    #[test]
    fn only_the_symbols_of_frames_are_kept() {
        let path = std::env::current_exe().unwrap();
        let file = ReadCache::new(File::open(&path).unwrap());
        let elf = ProgramElf::parse(&file).unwrap();
        let main = elf.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap().address();
        let ProgramCode { build_id, version, .. } = ProgramCode::read(&path);
        let path = path.to_str().unwrap().to_string();
        let module = StackModule { path, build_id, version };
        let symbols = FileSymbols::read(&module, None, &[main]).unwrap();
        let names: Vec<&str> = symbols.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["main"]);
        let mut cache = SymbolCache::default();
        for addresses in [vec![main], vec![main, main + 1]] {
            let names = cache.names(&module, None, addresses).unwrap();
            assert!(names.values().all(|name| name.text == "main"), "{names:?}");
        }
    }

    #[test]
    fn names_are_as_in_the_source() {
        let text = |name| demangle(name).text;
        assert_eq!(
            text("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        assert_eq!(text("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(text("git_config_string"), "git_config_string");
        assert_eq!(text("_Z"), "_Z");
    }

    #[test]
    fn functions_of_the_standard_libraries_are_known() {
        let library = [
            "__rust_try",
            "__cxa_allocate_exception",
            "_ZN4core3fmt5write17h0123456789abcdefE",
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            // Of templates, names have the type of the result as well.
            "_ZNSt6vectorIdSaIdEE17_M_realloc_insertIJdEEEvN9__gnu_cxx17__normal_iteratorIPdS1_EEDpOT_",
        ];
        for name in library {
            assert!(demangle(name).is_library, "{name}");
        }
        let program = [
            // A namespace of C++ that is called as a library of Rust.
            "_ZN4core11make_bufferEv",
            "core::make_buffer",
            "allocate",
            // A template of the program, whose result is of the library.
            "_Z8make_allIdESt6vectorIT_SaIS1_EEi",
        ];
        for name in program {
            assert!(!demangle(name).is_library, "{name}");
        }
        assert_eq!(demangle(program[3]).text, "make_all<double>");
    }

    #[test]
    fn implementations_are_of_the_library_if_type_and_trait_are() {
        for name in [
            "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem",
            "<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec",
            "<alloc::vec::Vec<shop::Item> as core::clone::Clone>::clone",
            "<alloc::vec::Vec<fn(u8) -> u8>>::push",
            "<[shop::Item]>::to_vec",
            "<&str as core::convert::Into<alloc::string::String>>::into",
            "alloc::slice::<impl [T]>::to_vec",
        ] {
            assert!(is_rust_library(name), "{name}");
        }
        for name in [
            "<shop::Item as core::clone::Clone>::clone",
            "<alloc::vec::Vec<u8> as shop::Encode>::encode",
            "<T as shop::Encode>::encode",
            "<shop::Store>::add",
            "<alloc_counter::Counter as core::clone::Clone>::clone",
            "standard::make",
        ] {
            assert!(!is_rust_library(name), "{name}");
        }
    }

    #[test]
    fn files_of_the_standard_libraries_are_known() {
        for name in ["libc.so.6", "libstdc++.so.6.0.30", "ld-linux-x86-64.so.2", "libc-2.31.so"] {
            assert!(is_library_file(name), "{name}");
        }
        for name in ["libcurl.so.4", "libstdcpp", "a.out", "libcairo.so.2", ""] {
            assert!(!is_library_file(name), "{name}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        // Each substitution doubles the name.
        let nested =
            |levels: usize| (0..levels).fold("i".to_string(), |of, _| format!("1aI{of}{of}E"));
        let name = demangle(&format!("_Z1fI{}Evv", nested(12)));
        assert_eq!(name.text.chars().count(), MAX_NAME_CHARS + 1);
        assert_eq!(demangle(&"x".repeat(9000)).text.chars().count(), MAX_NAME_CHARS + 1);
    }
}
