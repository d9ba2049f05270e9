//! The bytes of a process by function and by call path.
//!
//! Frames of one function under the same callers are one node of a tree, so the addresses of calls
//! within a function make no difference.
//!
//! Bytes are charged to the function of the program that needed them. Functions of the standard
//! libraries ask for memory on behalf of their callers, so the innermost function outside of them
//! is charged. There is none where the compiler has put a function of the program into a template
//! or generic function of a library, as it does with closures that threads run: then the outermost
//! function that is compiled into the program, which is the one that was given the closure. Bytes
//! of a library alone are those of its innermost function.

use super::call_stacks::{CallStacks, StackBytes};
use super::end_point::EndPoint;
use super::function_names::{FunctionNames, SymbolCache, is_library_file};
use super::log_file::LoggedProcess;
use rustc_hash::{FxHashMap, FxHashSet};

/// The part of a name of Rust's library that marks where it calls the program: what called this is
/// the start of the program, or of a thread.
const RUST_BOUNDARY: &str = "__rust_begin_short_backtrace";
/// A function is passed through where one of its callees has this share of its bytes.
const PASSED_SHARE: f64 = 0.95;

/// The bytes of a process by call path.
#[derive(Debug, Clone, Default)]
pub struct StackProfile {
    pub(super) names: FunctionNames,
    /// The names of the modules' files; the first stands for none.
    pub(super) files: Vec<String>,
    pub(super) interval: u64,
    pub(super) samples: u64,
    pub(super) nodes: Vec<PathNode>,
    /// The nodes without a caller.
    pub(super) roots: Vec<u32>,
    /// The bytes of each function.
    pub(super) by_function: Vec<FunctionBytes>,
    /// The point to which its figures of the end belong.
    pub(super) end: EndPoint,
}

/// The bytes of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FunctionBytes {
    /// Bytes that are charged to it.
    pub(super) direct: StackBytes,
    /// Bytes that it asked for with all that it called.
    pub(super) total: StackBytes,
    /// The part of the total where not nearly all is of one callee.
    parted: u64,
}

/// A function with the path of its callers.
#[derive(Debug, Clone)]
pub(super) struct PathNode {
    pub(super) function: u32,
    pub(super) parent: Option<u32>,
    pub(super) children: Vec<u32>,
    /// Bytes that the function asked for itself.
    pub(super) own: StackBytes,
    /// Bytes that it asked for with all that it called.
    pub(super) total: StackBytes,
    /// No bytes are charged to it, nor to what it calls: it is part of its callers.
    pub(super) is_hidden: bool,
}

impl FunctionBytes {
    /// Returns whether nearly all of its bytes are of one callee wherever it is called.
    pub(super) fn is_passed_through(&self) -> bool {
        (self.parted as f64) < (1.0 - PASSED_SHARE) * self.total.requested as f64
    }
}

impl StackProfile {
    /// Builds the profile of a process. If its log has no names of functions, they are read from
    /// the program's files.
    #[must_use]
    pub fn new(process: &LoggedProcess, stacks: &CallStacks) -> StackProfile {
        let names = process.functions.clone().unwrap_or_else(|| {
            let mut cache = SymbolCache::default();
            FunctionNames::read(&process.modules, &[], &process.frames, &mut cache)
        });
        let files = process.modules.iter().map(|module| module.file_name().to_string());
        let mut profile = StackProfile {
            names,
            files: std::iter::once(String::new()).chain(files).collect(),
            interval: stacks.interval,
            end: process.end_point(),
            samples: stacks.by_frame.iter().map(|bytes| bytes.samples).sum(),
            ..StackProfile::default()
        };
        profile.add_nodes(process, stacks);
        profile.charge_bytes();
        profile.add_totals();
        profile.add_functions();
        profile
    }

    fn add_nodes(&mut self, process: &LoggedProcess, stacks: &CallStacks) {
        let mut known: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        let mut node_of_frame: Vec<Option<u32>> = vec![None];
        for (index, own) in stacks.by_frame.iter().enumerate() {
            let function = self.names.by_frame[index];
            let parent = match index.checked_sub(1).and_then(|index| process.frames.get(index)) {
                Some(frame) => node_of_frame[frame.caller as usize].filter(|_| frame.caller != 0),
                // Stacks that could not be unwound have a node only if there are any.
                None if own.samples == 0 => continue,
                None => None,
            };
            let node = *known.entry((parent, function)).or_insert_with(|| {
                let number = self.nodes.len() as u32;
                match parent {
                    Some(parent) => self.nodes[parent as usize].children.push(number),
                    None => self.roots.push(number),
                }
                let (own, total) = (StackBytes::default(), StackBytes::default());
                let (children, is_hidden) = (Vec::new(), true);
                self.nodes.push(PathNode { function, parent, children, own, total, is_hidden });
                number
            });
            self.nodes[node as usize].own += *own;
            match index {
                0 => node_of_frame[0] = Some(node),
                _ => node_of_frame.push(Some(node)),
            }
        }
    }

    /// Adds the bytes of each node to its callers, which were added before it.
    fn add_totals(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let own = self.nodes[index].own;
            self.nodes[index].total += own;
            let PathNode { total, is_hidden, .. } = self.nodes[index];
            if let Some(parent) = self.nodes[index].parent {
                let parent = &mut self.nodes[parent as usize];
                parent.total += total;
                parent.is_hidden &= is_hidden;
            }
        }
    }

    /// Charges the bytes of each node to a function.
    fn charge_bytes(&mut self) {
        self.by_function = vec![Default::default(); self.names.names.len()];
        for number in 0..self.nodes.len() {
            let own = self.nodes[number].own;
            if own.samples > 0 {
                let charged = self.charged_node(number);
                self.nodes[charged].is_hidden = false;
                self.by_function[self.nodes[charged].function as usize].direct += own;
            }
        }
    }

    /// Returns the node that is charged with the bytes of another.
    fn charged_node(&self, number: usize) -> usize {
        let (mut next, mut in_program, mut is_in_runtime) = (Some(number), None, false);
        while let Some(caller) = next {
            let function = self.nodes[caller].function as usize;
            if !self.names.is_library[function] {
                return caller;
            }
            let file = &self.files[self.names.modules[function] as usize];
            if !is_in_runtime && !is_library_file(file) {
                in_program = Some(caller);
                is_in_runtime = self.names.names[function].contains(RUST_BOUNDARY);
            }
            next = self.nodes[caller].parent.map(|parent| parent as usize);
        }
        in_program.unwrap_or(number)
    }

    /// Sums up the nodes of each function; one that calls itself is counted once.
    fn add_functions(&mut self) {
        let mut on_path = FxHashSet::default();
        for node in self.nodes.iter().filter(|node| node.own.samples > 0) {
            on_path.clear();
            let mut next = Some(node);
            while let Some(caller) = next {
                if on_path.insert(caller.function) {
                    self.by_function[caller.function as usize].total += node.own;
                }
                next = caller.parent.map(|parent| &self.nodes[parent as usize]);
            }
        }
        for node in &self.nodes {
            let requested = node.total.requested as f64;
            let is_passed_through = node.children.iter().any(|child| {
                let child = &self.nodes[*child as usize];
                !child.is_hidden && child.total.requested as f64 >= PASSED_SHARE * requested
            });
            if !is_passed_through {
                self.by_function[node.function as usize].parted += node.total.requested;
            }
        }
    }

    pub(super) fn total(&self) -> StackBytes {
        let mut sum = StackBytes::default();
        self.roots.iter().for_each(|root| sum += self.nodes[*root as usize].total);
        sum
    }

    pub(super) fn name(&self, node: &PathNode) -> &str {
        &self.names.names[node.function as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::OriginBytes;
    use super::super::log_block::StackFrame;
    use super::*;

    /// Returns memory at the peak and at the end of which nothing is inherited.
    fn live(at_peak: u64, at_end: u64) -> [OriginBytes; 2] {
        [at_peak, at_end].map(|own| OriginBytes { own, inherited: 0 })
    }

    /// `main` calls `work` (twice in its code) and itself.
    fn profile() -> StackProfile {
        let frame = |caller, address| StackFrame { caller, module: 0, address };
        let frames = vec![frame(0, 1), frame(1, 2), frame(1, 3), frame(1, 4), frame(4, 2)];
        let process = LoggedProcess { frames, ..LoggedProcess::default() };
        let bytes = |samples, at_peak| StackBytes {
            samples,
            requested: at_peak * 2,
            at_peak,
            ..StackBytes::default()
        };
        let by_frame =
            [bytes(0, 0), bytes(0, 0), bytes(1, 10), bytes(1, 20), bytes(1, 1), bytes(1, 5)];
        let stacks = CallStacks { interval: 1, by_frame: by_frame.to_vec() };
        let names = FunctionNames {
            names: vec!["?".into(), "main".into(), "work".into()],
            modules: vec![0, 1, 1],
            is_library: vec![false; 3],
            by_frame: vec![0, 1, 2, 2, 1, 2],
            changed_files: Vec::new(),
        };
        let files = vec![String::new(), "a.out".into()];
        let mut profile =
            StackProfile { names, files, interval: 1, samples: 4, ..StackProfile::default() };
        profile.add_nodes(&process, &stacks);
        profile.charge_bytes();
        profile.add_totals();
        profile.add_functions();
        profile
    }

    #[test]
    fn frames_of_a_function_are_one_node() {
        let profile = profile();
        let tree: Vec<(u32, Option<u32>, u64, u64)> = profile
            .nodes
            .iter()
            .map(|node| (node.function, node.parent, node.own.at_peak, node.total.at_peak))
            .collect();
        assert_eq!(
            tree,
            [(1, None, 0, 36), (2, Some(0), 30, 30), (1, Some(0), 1, 6), (2, Some(2), 5, 5)]
        );
        let by_function: Vec<(u64, u64)> = profile
            .by_function
            .iter()
            .map(|bytes| (bytes.direct.at_peak, bytes.total.at_peak))
            .collect();
        assert_eq!(by_function, [(0, 0), (1, 36), (35, 35)]);
    }

    /// Returns the profile of paths, each with the bytes of its end. Names with a colon are of a
    /// library; those with an @ in its file.
    fn profile_of(paths: &[(&[&str], StackBytes)]) -> StackProfile {
        let mut names = FunctionNames::default();
        let (mut frames, mut by_frame) = (Vec::new(), vec![StackBytes::default()]);
        names.by_frame.push(0);
        for (path, bytes) in paths {
            for (depth, name) in path.iter().enumerate() {
                let caller = if depth == 0 { 0 } else { frames.len() as u32 };
                frames.push(StackFrame { caller, module: 1, address: 7 });
                let known = names.names.iter().position(|known| known == name);
                let number = known.unwrap_or_else(|| {
                    names.names.push((*name).into());
                    names.modules.push(if name.contains('@') { 2 } else { 1 });
                    names.is_library.push(name.contains([':', '@']));
                    names.names.len() - 1
                });
                names.by_frame.push(number as u32);
                by_frame.push(StackBytes::default());
            }
            *by_frame.last_mut().unwrap() = *bytes;
        }
        let files = vec![String::new(), "a.out".into(), "libc.so.6".into()];
        let process = LoggedProcess { frames, ..LoggedProcess::default() };
        let mut profile = StackProfile { names, files, interval: 1, ..StackProfile::default() };
        profile.add_nodes(&process, &CallStacks { interval: 1, by_frame });
        profile.charge_bytes();
        profile.add_totals();
        profile.add_functions();
        profile
    }

    /// Returns the names of the functions that are charged in a profile of paths, each with one
    /// sample.
    fn charged_functions(paths: &[&[&str]]) -> Vec<String> {
        let sample = StackBytes { samples: 1, ..StackBytes::default() };
        let paths: Vec<(&[&str], StackBytes)> = paths.iter().map(|path| (*path, sample)).collect();
        let profile = profile_of(&paths);
        let functions = profile.names.names.iter().zip(&profile.by_function);
        let charged = functions.filter(|(_, bytes)| bytes.direct.samples > 0);
        charged.map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn bytes_are_charged_to_the_program() {
        // A function of the library that also calls the program.
        let collect: &[&str] = &["main", "make", "alloc::from_iter"];
        let closure: &[&str] = &["main", "make", "alloc::from_iter", "closure"];
        assert_eq!(charged_functions(&[collect, closure]), ["make", "closure"]);
        assert_eq!(charged_functions(&[&["main", "strdup@"]]), ["main"]);
        // A closure in a thread is compiled into the function of the library that calls it.
        let cpp: &[&str] = &["clone@", "start_thread@", "std::_M_run", "std::push_back"];
        assert_eq!(charged_functions(&[cpp]), ["std::_M_run"]);
        let boundary = "std::sys::backtrace::__rust_begin_short_backtrace";
        let rust: &[&str] = &["clone@", "std::thread_start", boundary, "alloc::finish_grow"];
        assert_eq!(charged_functions(&[rust]), [boundary]);
        let rust_main: &[&str] = &["main", "std::rt::lang_start", boundary, "alloc::finish_grow"];
        assert_eq!(charged_functions(&[rust_main]), ["main"]);
        assert_eq!(charged_functions(&[&["start@", "init@", "pool@"]]), ["pool@"]);
    }

    #[test]
    fn tables_have_the_functions_and_paths() {
        let profile = profile();
        let section = profile.section(72, &live(36, 0));
        let rows: Vec<Vec<String>> =
            section.tables.iter().flat_map(|table| table.rows.clone()).collect();
        let text: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(text.join("\n"), @"
        work | 35 bytes | 0 bytes | 0 bytes | 70 bytes | 0 bytes | 0 | 3
        main | 1 byte | 0 bytes | 0 bytes | 2 bytes | 0 bytes | 0 | 1
        main | 36 bytes | 0 bytes | 0 bytes | 72 bytes | 0 bytes | 0 | 4
        work | 35 bytes | 0 bytes | 0 bytes | 70 bytes | 0 bytes | 0 | 3
        main | 36 bytes | 100 %
        · work | 30 bytes | 83 %
        · main > work | 5 bytes | 14 %
        ");
        assert_eq!(section.charts.len(), 2);
    }

    #[test]
    fn memory_at_the_end_is_compared() {
        let (before, mut after) = (profile(), profile());
        after.by_function[2].direct.at_end = 4_000;
        let section = StackProfile::comparison(&before, &after);
        let rows: Vec<String> = section.tables[0].rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        work | 35 bytes | 35 bytes | = | 0 bytes | 4 kB | +4 kB | 70 bytes | 70 bytes | 3 | 3
        main | 1 byte | 1 byte | = | 0 bytes | 0 bytes | = | 2 bytes | 2 bytes | 1 | 1
        ");
        // A change within the error of the estimate is none, and is not listed first.
        after.by_function[2].direct.end_variance = 4_000_000;
        after.by_function[1].direct.at_end = 3_000;
        let section = StackProfile::comparison(&before, &after);
        let rows: Vec<String> = section.tables[0].rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        main | 1 byte | 1 byte | = | 0 bytes | 3 kB | +3 kB | 2 bytes | 2 bytes | 1 | 1
        work | 35 bytes | 35 bytes | = | 0 bytes | 4 kB | ≈ | 70 bytes | 70 bytes | 3 | 3
        ");
    }

    /// The function that needs the memory may be behind a wrapper: paths have their inner ends, and
    /// not the start of the program.
    #[test]
    fn paths_name_the_callers_of_a_wrapper() {
        let held =
            |at_peak, at_end| StackBytes { samples: 1, at_peak, at_end, ..Default::default() };
        let leak: &[&str] =
            &["_start", "start@", "main", "serve", "handle", "name", "xdup", "dup@"];
        let pool: &[&str] = &["_start", "start@", "main", "Pool.make"];
        let own: &[&str] = &["_start", "start@", "main", "malloc@"];
        let profile =
            profile_of(&[(leak, held(100, 90)), (pool, held(480, 0)), (own, held(300, 0))]);
        let rows = |figure| {
            let table = profile
                .section(0, &live(0, 0))
                .tables
                .into_iter()
                .find(|table| table.title == figure);
            let rows = table.unwrap().rows;
            rows.iter().map(|row| row.join(" | ")).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(rows("Paths to the memory at the peak"), @"
        main | 880 bytes | 100 %
        · itself, and paths with less | 300 bytes | 34 %
        · Pool.make | 480 bytes | 55 %
        · serve > handle > name > xdup | 100 bytes | 11 %
        ");
        let path = "main > serve > handle > name > xdup | 90 bytes | 100 %";
        assert_eq!(rows("Paths to the memory at the end"), path);
        assert_eq!(
            profile.describe_origins(&live(880, 90), "1"),
            "By the call stacks, Pool.make asked for the most memory: 55 % of the peak, mostly when \
             called by main. At the end, xdup asked for the most memory: 100 % of the memory that is \
             live then, mostly when called by main > serve > handle > name."
        );
    }

    /// Memory that a function itself asks for has a row, though only one path goes on from it.
    #[test]
    fn memory_of_an_inner_function_is_in_the_paths() {
        let held = |at_peak| StackBytes { samples: 1, at_peak, ..Default::default() };
        let profile = profile_of(&[(&["main"], held(30)), (&["main", "Pool.make"], held(48))]);
        let tables = profile.section(0, &live(0, 0)).tables;
        let table = tables.iter().find(|table| table.head[0] == "path").unwrap();
        let rows: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(rows, ["main", "· itself, and paths with less", "· Pool.make"]);
        let profile = profile_of(&[(&["_start", "start@", "main"], held(30))]);
        let text = "By the call stacks, main asked for the most memory: 100 % of the peak.";
        assert_eq!(profile.describe_origins(&live(30, 0), "1"), text);
    }

    /// Stacks that could not be unwound are no function that asked for the most memory.
    #[test]
    fn stacks_without_files_name_no_function() {
        let held = |at_peak| StackBytes { samples: 1, at_peak, ..Default::default() };
        let describe = |profile: &mut StackProfile, samples| {
            profile.samples = samples;
            profile.files.truncate(1);
            profile.names.modules.fill(0);
            let section = profile.section(0, &live(0, 0));
            (profile.describe_origins(&live(100, 0), "1"), section)
        };
        let reason = "no functions ([unknown]): the program had ended, or begun another one, before \
                      larder had read its files, which takes some milliseconds.";
        let mut all = profile_of(&[(&["[unknown]"], held(100))]);
        let (sentence, section) = describe(&mut all, 1);
        assert_eq!(sentence, format!("All of 1 call stack has {reason}"));
        assert!(section.text.ends_with(&sentence), "{}", section.text);
        let row = &section.tables[0].rows[0][0];
        assert_eq!(row, "[unknown], the program ended before its files were read");
        let mut most = profile_of(&[(&["[unknown]"], held(60)), (&["main"], held(40))]);
        assert_eq!(describe(&mut most, 2).0, format!("1 of 2 call stacks have {reason}"));
        let mut some = profile_of(&[(&["[unknown]"], held(40)), (&["main"], held(60))]);
        let named = "By the call stacks, main asked for the most memory: 60 % of the peak.";
        assert_eq!(describe(&mut some, 2).0, format!("{named} 1 of 2 call stacks have {reason}"));
        // Where the files are known, it was the stack that could not be read.
        some.files.push("a.out".into());
        let reason = "no functions ([unknown]): the stack could not be copied, as in a program \
                      that forbids itself the calls for it.";
        let text = some.describe_origins(&live(100, 0), "1");
        assert_eq!(text, format!("{named} 1 of 2 call stacks have {reason}"));
    }

    /// Estimates have their error, and name no function if it is too large.
    #[test]
    fn functions_are_named_as_far_as_samples_tell() {
        let held = |at_peak, peak_variance| StackBytes {
            samples: 1,
            at_peak,
            peak_variance,
            ..Default::default()
        };
        let text = |first, second, live: &[OriginBytes; 2]| {
            let (a, b): (&[&str], &[&str]) = (&["main", "a"], &["main", "b"]);
            profile_of(&[(a, first), (b, second)]).describe_origins(live, "64")
        };
        assert_eq!(
            text(held(700, 400), held(300, 400), &live(1000, 0)),
            "By the call stacks, a asked for the most memory: 70 % ± 4 % of the peak, mostly when \
             called by main."
        );
        assert_eq!(
            text(held(510, 400), held(490, 400), &live(1000, 0)),
            "By the call stacks, a asked for the most memory: 51 % ± 4 % of the peak, mostly when \
             called by main; with 49 %, b may have asked for more."
        );
        assert_eq!(
            text(held(700, 40_000), held(300, 40_000), &live(1000, 0)),
            "Of the call stacks, too few samples are of the memory at the peak to say which \
             function asked for the most of it (`--stacks 64` takes more)."
        );
        // Memory at the end of which there is no sample, and memory that is inherited.
        let mut forked = live(1000, 7);
        forked[0].inherited = 1000;
        assert_eq!(
            text(held(700, 0), held(300, 0), &forked),
            "By the call stacks, a asked for the most memory: 35 % of the peak, mostly when called \
             by main. At the end, too few samples are of the memory that is live then to say which \
             function asked for the most of it (`--stacks 64` takes more)."
        );
    }
}
