//! The bytes of a process by function and by call path.
//!
//! Frames of one function under the same callers are one node of a tree, so the addresses of calls
//! within a function make no difference.

use super::call_stacks::{CallStacks, StackBytes};
use super::function_names::{FunctionNames, SymbolCache};
use super::log_file::LoggedProcess;
use rustc_hash::{FxHashMap, FxHashSet};

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
}

/// The bytes of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FunctionBytes {
    /// Bytes that it asked for itself, or through a standard library.
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
    /// It and all that it calls is of a standard library.
    pub(super) is_library: bool,
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
            samples: stacks.by_frame.iter().map(|bytes| bytes.samples).sum(),
            ..StackProfile::default()
        };
        profile.add_nodes(process, stacks);
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
                let is_library = self.names.is_library[function as usize];
                self.nodes.push(PathNode {
                    function,
                    parent,
                    children: Vec::new(),
                    own,
                    total,
                    is_library,
                });
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
            let total = self.nodes[index].total;
            let is_library = self.nodes[index].is_library;
            if let Some(parent) = self.nodes[index].parent {
                let parent = &mut self.nodes[parent as usize];
                parent.total += total;
                parent.is_library &= is_library;
            }
        }
    }

    /// Sums up the nodes of each function; one that calls itself is counted once.
    fn add_functions(&mut self) {
        self.by_function = vec![Default::default(); self.names.names.len()];
        let mut on_path = FxHashSet::default();
        for node in self.nodes.iter().filter(|node| node.own.samples > 0) {
            on_path.clear();
            let (mut next, mut is_caller_found) = (Some(node), false);
            while let Some(caller) = next {
                let bytes = &mut self.by_function[caller.function as usize];
                if on_path.insert(caller.function) {
                    bytes.total += node.own;
                }
                // Of a stack that is all of a library, the outermost function.
                if !is_caller_found && (!caller.is_library || caller.parent.is_none()) {
                    is_caller_found = true;
                    bytes.direct += node.own;
                }
                next = caller.parent.map(|parent| &self.nodes[parent as usize]);
            }
        }
        for node in &self.nodes {
            let requested = node.total.requested as f64;
            let is_passed_through = node.children.iter().any(|child| {
                let child = &self.nodes[*child as usize];
                !child.is_library && child.total.requested as f64 >= PASSED_SHARE * requested
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
    use super::super::log_block::StackFrame;
    use super::*;

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

    #[test]
    fn tables_have_the_functions_and_paths() {
        let profile = profile();
        let section = profile.section(72, 36);
        let rows: Vec<Vec<String>> =
            section.tables.iter().flat_map(|table| table.rows.clone()).collect();
        let text: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(text.join("\n"), @"
        work | 35 bytes | 70 bytes | 0 bytes | 0 bytes | 3
        main | 1 bytes | 2 bytes | 0 bytes | 0 bytes | 1
        main | 36 bytes | 72 bytes | 0 bytes | 0 bytes | 4
        work | 35 bytes | 70 bytes | 0 bytes | 0 bytes | 3
        main | 36 bytes | 100 %
        · work | 30 bytes | 83 %
        · main > work | 5 bytes | 14 %
        ");
        assert_eq!(section.charts.len(), 2);
    }
}
